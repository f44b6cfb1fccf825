--- Programs for shipped rules that generation from their patterns seldom or never finds, by
-- the name of the rule: functions of the generator (perilune.rule.check.program).

local core = require "perilune.core"
local ir = require "perilune.ir"
core.internal()

local examples = {}

-- -------------------------------------------------------------------- extents

-- The number of elements that are left of a vector.
function examples.topk_extent(g)
  local op, n = g.op, g:size() + 1
  local x, k = g:var("float32", { n }), g:ints(1 + g:below(n))
  local values, positions = op.topk(x, k, { axis = g:pick { 0, -1 }, n_results = 2 }):unpack()
  return op.shape_of(g:pick { values, positions })
end

-- --------------------------------------------------------------------- reshapes

-- A product of the flattened leading axes, with weights as they are or transposed.
local function flattened(trans_b)
  return function(g)
    local op, a, b, k, n = g.op, g:extent(), g:extent(), g:extent(), g:size()
    local x = op.reshape(g:var("float32", { a, b, k }), { newshape = { a * b, k } })
    local w = g:constant("float32", trans_b == 1 and { n, k } or { k, n })
    local product = op.nn.gemm(x, w, g:var("float32", { n }), { transB = trans_b })
    return op.reshape(product, { newshape = { a, b, n } })
  end
end

examples.batched_gemm, examples.batched_gemm_transposed = flattened(0), flattened(1)

-- Two products of one form, of one matrix or of two, with constants.
local function two_gemms(g, one)
  local m, k, n, h = g:extent(), g:size(), g:size(), g:size()
  local trans_b = g:below(2)
  local x = g:var("float32", { m, k })
  local y = one and x or g:var("float32", { m, h })
  local function product(of, width, bias)
    local w = g:constant("float32", trans_b == 1 and { n, width } or { width, n })
    return g.op.nn.gemm(of, w, bias, { transB = trans_b })
  end
  return product, x, k, y, one and k or h, function() return g:constant("float32", { n }) end
end

function examples.sum_of_gemms(g)
  local product, x, k, y, h, bias = two_gemms(g, true)
  return g.op.add(product(x, k, bias()), product(y, h, bias()))
end

function examples.gemm_of_gemm(g)
  local product, x, k, y, h, bias = two_gemms(g, true)
  return product(x, k, product(y, h, bias()))
end

function examples.chain_of_gemms(g)
  local product, x, k, y, h, bias = two_gemms(g, false)
  return g.op.add(product(x, k, bias()), product(y, h, bias()))
end

function examples.multiply_chain(g)
  local product, x, k, y, h, bias = two_gemms(g, false)
  return g.op.multiply(product(x, k, product(y, h, bias())), g:number(0.5, "float32"))
end

function examples.divide_chain(g)
  local product, x, k, y, h, bias = two_gemms(g, false)
  return g.op.divide(product(x, k, product(y, h, bias())), g:number(3, "float32"))
end

-- The same without an addend.
local function flat_product(name, trans_b)
  return function(g)
    local op, a, b, k, n = g.op, g:extent(), g:extent(), g:extent(), g:size()
    local x = op.reshape(g:var("float32", { a, b, k }), { newshape = { a * b, k } })
    local w = g:constant("float32", trans_b == 1 and { n, k } or { k, n })
    local product = op.nn[name](x, w, trans_b and { transB = trans_b } or nil)
    return op.reshape(product, { newshape = { a, b, n } })
  end
end

examples.flat_matmul = flat_product "matmul"
examples.flat_gemm, examples.flat_gemm_transposed = flat_product("gemm", 0), flat_product("gemm", 1)

-- Batch axes in the wrong order before a product, and put right behind it.
function examples.transposed_product(g)
  local rows, n_batch, heads, width, n = g:extent(), g:extent(), g:extent(), g:extent(), g:extent()
  local y = g:var("float32", { n_batch, rows, heads, width })
  local t = g.op.transpose(y, { axes = { 1, 0, 2, 3 } })
  local r = g.op.reshape(t, { newshape = { rows, n_batch, heads * width } })
  local product = g.op.nn.matmul(r, g:constant("float32", { heads * width, n }))
  return g.op.transpose(g.op.add(product, g:constant("float32", { n })), { axes = { 1, 0, 2 } })
end

-- Batch axes that change places before a product and behind it, where its last axis is
-- split too.
function examples.transposed_batch(g)
  local op, a, b, k, heads, width = g.op, g:size(), g:size(), g:extent(), g:size(), g:size()
  local x = op.transpose(g:var("float32", { a, b, k }), { axes = { 1, 0, 2 } })
  local product = op.nn.matmul(x, g:constant("float32", { k, heads * width }))
  local y = op.add(product, g:constant("float32", { heads * width }))
  local split = op.reshape(y, { newshape = { b, a, heads, width } })
  return op.transpose(split, { axes = g:pick { { 1, 2, 0, 3 }, { 1, 0, 2, 3 }, { 1, 2, 3, 0 } } })
end

-- A filled tensor beside an operand of the same shape.
function examples.drop_fill(g)
  local op, a, b = g.op, g:extent(), g:extent()
  local name = g:pick { "add", "subtract", "multiply", "minimum", "maximum", "greater" }
  local dtype = g:pick { "float32", "int64" }
  local shape = g:pick { g:ints(a, b), op.shape_of(g:var("int64", { a, b })) }
  local fill = op.constant_of_shape(shape, { value = core.tensor({ g:pick { 0, 3 } }, dtype) })
  local x = g:var(dtype, { a, b })
  if g:below(2) == 0 then return op.where(g:var("bool", { a, b }), x, fill) end
  return g:below(2) == 0 and op[name](x, fill) or op[name](fill, x)
end

-- A fill, and shapes that give it: a constant or the extents of an input.
local function filled(g, dtype, value, a, b)
  if dtype == "bool" then value = value ~= 0 end
  return g.op.constant_of_shape(g.op.shape_of(g:var("int64", { a, b })),
    { value = core.tensor({ value }, dtype) })
end

function examples.fill_of_scalar(g)
  local shape = g.op.shape_of(g:var("int64", { g:extent(), g:extent() }))
  return g.op.broadcast_to(g:constant(g:pick { "float32", "int64", "bool" }, {}), shape)
end

function examples.fill_of_condition(g)
  local op = g.op
  local x = g:var("int64", { g:extent(), g:extent() })
  local range = op.arange(g:number(g:below(2), "int64"),
    op.take(op.shape_of(x), g:number(1, "int64"), { axis = 0 }), g:number(1, "int64"))
  return op.broadcast_to(op.greater_equal(op.expand_dims(range, g:ints(0)), g:number(0, "int64")),
    op.shape_of(op.strided_slice(x, g:ints(0), g:ints(9), g:ints(1))))
end

function examples.choice_of_fill(g)
  return g.op.where(filled(g, "bool", g:below(2), g:extent(), g:extent()),
    g:constant("float32", {}), g:constant("float32", g:pick { {}, { 1 } }))
end

function examples.cast_of_fill(g)
  return g.op.cast(filled(g, g:pick { "int64", "float32" }, g:below(3), g:extent(), g:extent()),
    { dtype = g:pick { "bool", "float64", "int32" } })
end

function examples.take_of_fill(g)
  local rows = g:size()
  return g.op.take(g:constant("float32", { rows, g:extent() }),
    filled(g, "int64", g:below(rows), g:extent(), g:extent()), { axis = 0 })
end

function examples.gather_of_fill(g)
  local op, rows, n = g.op, g:size() + 1, g:extent()
  local at = op.cast(op.cast(g:var("float32", { g:extent(), n }), { to = 9 }), { to = 7 })
  return op.gather(g:splat("int64", { rows, n }, g:below(3)), at, { axis = 0 })
end

-- A fill that changes nothing but the shape.
function examples.neutral_fill(g)
  local op, a, b = g.op, g:extent(), g:extent()
  local name = g:pick { "logical_and", "logical_or", "add", "multiply" }
  local logical = name:find "logical" ~= nil
  local dtype = logical and "bool" or g:pick { "float32", "int64" }
  local value = (name == "logical_and" or name == "multiply") and 1 or 0
  local fill = filled(g, dtype, value, a, b)
  if g:below(2) == 0 then fill = op.expand_dims(fill, g:ints(g:below(3))) end
  local x = g:var(dtype, { g:pick { 1, b } })
  return g:below(2) == 0 and op[name](x, fill) or op[name](fill, x)
end

-- The mask of attention to earlier positions.
function examples.triangle(g)
  local op, a = g.op, g:extent()
  local lower = op.trilu(filled(g, "float32", 1, a, g:pick { a, g:extent() }), { upper = 0 })
  return op.where(op.equal(lower, g:number(0, "float32")), g:constant("float32", {}),
    g:number(0, "float32"))
end

-- Rows at positions, as coordinates along one axis.
local function rows_by(g, axes)
  local op = g.op
  local at = op.cast(op.cast(g:var("float32", { g:extent() }), { to = 9 }), { to = 7 })
  return op.gather_nd(g:constant("float32", { g:size() + 1, g:size() }),
    op.expand_dims(at, axes), { batch_dims = 0 })
end

function examples.rows_by_one_index(g)
  return rows_by(g, g:pick { g:ints(0, -1), g:ints(1, 2), g:ints(0, 2) })
end

function examples.rows_by_column(g) return rows_by(g, g:pick { g:ints(-1), g:ints(1) }) end

-- A constant that is added to rows of a table.
function examples.row_in_table(g)
  local op, width = g.op, g:size()
  local at = op.cast(op.cast(g:var("float32", { g:extent() }), { to = 9 }), { to = 7 })
  local rows = op.take(g:constant("float32", { g:size() + 1, width }), at, { axis = 0 })
  return op[g:pick { "add", "subtract", "multiply", "divide" }](rows,
    g:constant("float32", g:pick { {}, { width } }))
end

-- Rows of a table that broadcast positions select.
function examples.rows_of_broadcast(g)
  local op, a, b, width, rows = g.op, g:extent(), g:extent(), g:size(), g:size()
  local positions = op.cast(op.cast(g:var("float32", { b }), { dtype = "bool" }),
    { dtype = "int64" })
  local x = g:var("float32", { a, b, width })
  local broadcast = op.broadcast_to(positions, g:ints(a, 1))
  return op[g:pick { "add", "subtract", "multiply" }](x,
    op.take(g:constant("float32", { rows + 1, width }), broadcast, { axis = 0 }))
end

-- A running sum of truth values.
function examples.narrow_cumsum(g)
  local op = g.op
  local x = g:var("bool", { g:extent(), g:extent() })
  local sum = op.cumsum(op.cast(x, { to = 7 }), g:number(g:pick { 0, 1, -1 }, "int64"),
    { exclusive = g:below(2), reverse = g:below(2) })
  return op.cast(sum, { to = 6 })
end

-- Axes that are merged, moved and split again.
function examples.factor_reshape(g)
  local a, b, c = g:size(), g:size(), g:size()
  local first = g:pick { true, false }
  local x = g.op.reshape(g:var("float32", { a, b, c }),
    { newshape = first and { a * b, c } or { a, b * c } })
  local moved = g.op.transpose(x, { axes = { 1, 0 } })
  return g.op.reshape(moved, { newshape = first and { c, a, b } or { b, c, a } })
end

-- A reshape, and axes of extent 1 that are added or removed behind it.
function examples.reshape_at_once(g)
  local a, b, c = g:size(), g:size(), g:size()
  local x = g:var("float32", { a * b, c })
  local name = g:pick { "expand_dims", "squeeze", "flatten" }
  if name == "squeeze" then
    return g.op.squeeze(g.op.reshape(x, { newshape = { a, 1, b * c } }), g:ints(1))
  end
  return g.op[name](g.op.reshape(x, { newshape = { a, b, c } }),
    name == "expand_dims" and g:ints(-1) or nil)
end

-- A pad, and axes of extent 1 that are added or removed behind it.
function examples.pad_behind(g)
  local a, b = g:size(), g:size()
  local padded = g.op.nn.pad(g:var("float32", { a, 1, b }),
    g:ints(g:below(2), 0, g:below(3), g:below(2), 0, g:below(2)))
  return g:below(2) == 0 and g.op.squeeze(padded, g:ints(1))
    or g.op.expand_dims(padded, g:ints(g:below(4)))
end

-- Axes that are split behind a transpose.
function examples.sink_reshape(g)
  local a, b, c, d = g:size(), g:size(), g:size(), g:size()
  local x = g.op.reshape(g:var("float32", { a * b * c, d }), { newshape = { a, b * c, d } })
  local moved = g.op.transpose(x, { axes = { 1, 0, 2 } })
  return g.op.reshape(moved, { newshape = { b, c, a, d } })
end

-- Axes that are merged between two transposes.
function examples.merge_behind(g)
  local a, b, c, d = g:extent(), g:size(), g:size(), g:extent()
  local moved = g.op.transpose(g:var("float32", { a, b, c, d }), { axes = { 2, 0, 1, 3 } })
  local first = g:pick { true, false }
  local merged = g.op.reshape(moved, { newshape = first and { c * a, b, d } or { c, a, b * d } })
  return g.op.transpose(merged, { axes = g:pick { { 1, 0, 2 }, { 2, 0, 1 }, { 2, 1, 0 } } })
end

-- An axis that is split, and moves as a whole.
function examples.split_behind(g)
  local a, b, c, d = g:size(), g:size(), g:size(), g:size()
  local x = g.op.reshape(g:var("float32", { a, b * c, d }), { newshape = { a, b, c, d } })
  local moved = g.op.transpose(x, { axes = { 0, 3, 1, 2 } })
  return g.op.reshape(moved, { newshape = { a, d * b, c } })
end

-- An axis that is removed before an elementwise operator and restored behind it.
function examples.reshape_around(g)
  local x = g:var("float32", { g:size(), 1, g:size() })
  local y = g.op.squeeze(x, g:ints(1))
  y = g:pick { g.op.multiply(y, g:number(2, "float32")), g.op.tanh(y) }
  return g.op.expand_dims(y, g:ints(1))
end

-- A new shape with an extent of the operand's, and another one.
function examples.fold_reshape_shape(g)
  local a, b, c = g:size(), g:size(), g:size()
  local x = g:var("float32", { a, b, c })
  local own = g.op.take(g.op.shape_of(x), g:ints(g:pick { 0, 0, 1, 2 }), { axis = 0 })
  return g.op.reshape(x, g.op.concatenate({ own, g:ints(g:pick { -1, b * c }) }, { axis = 0 }))
end

function examples.fold_broadcast_shape(g)
  local a, b = g:size(), g:size()
  local x = g:var("float32", { a, g:pick { b, 1 } })
  local own = g.op.take(g.op.shape_of(x), g:ints(0), { axis = 0 })
  return g.op.broadcast_to(x, g.op.concatenate({ own, g:ints(b) }, { axis = 0 }))
end

-- Parts of a Split that are joined again.
function examples.rejoin(g)
  local a, b = g:size(), g:size()
  local x = g:var("float32", { g:size(), a + b, g:size() })
  local one, two = g.op.split(x, g:ints(a, b), { axis = 1, n_results = 2 }):unpack()
  return g.op.concatenate({ one, two }, { axis = g:pick { 1, -2 } })
end

-- Operands that get the same new axis, along it or along another one.
function examples.join_inside(g)
  local n, along = g:size(), g:pick { true, false }
  local function operand()
    return g.op.expand_dims(g:var("float32", { n, along and 1 or g:size() }), g:ints(2))
  end
  return g.op.concatenate({ operand(), operand(), operand() }, { axis = along and 2 or 1 })
end

-- Extents of one tensor that follow each other, or do not.
function examples.join_extents(g)
  local x = g:var("float32", g:shape(3))
  local split = 1 + g:below(2)
  local first = g.op.shape_of(x, { start = 0, ["end"] = split })
  local second = g.op.shape_of(x, { start = g:pick { split, split, 0 }, ["end"] = 3 })
  return g.op.concatenate({ first, second }, { axis = 0 })
end

-- A reduction whose axes are restored behind it.
function examples.keep_axes(g)
  local x = g:var("float32", g:shape(3))
  local axis = g:below(3)
  local name = g:pick { "sum", "max", "mean", "min", "prod", "reduce_l2", "argmax" }
  local attrs = name == "argmax" and { axis = axis, keepdims = 0 }
    or { axes = { axis }, keepdims = 0 }
  return g.op.expand_dims(g.op[name](x, attrs), g:ints(axis))
end

-- Axes that a reduction keeps, and that are removed behind it.
function examples.drop_axes(g)
  local x = g:var("float32", g:shape(3))
  local axis = g:below(3)
  local name = g:pick { "sum", "max", "mean", "min", "prod", "reduce_l2", "argmax" }
  local attrs = name == "argmax" and { axis = axis, keepdims = 1 }
    or { axes = { axis }, keepdims = 1 }
  return g.op.squeeze(g.op[name](x, attrs), g:ints(axis))
end

function examples.pooled_vector(g)
  local x = g:var("float32", { g:size(), g:size(), g:size(), g:size() })
  return g.op.flatten(g.op.nn.global_avg_pool(x))
end

-- -------------------------------------------------------------------- positions

-- One position of an axis, which is removed, and restored for a vector of positions.
local function position(g)
  local x, axis = g:var(g:any_dtype "float32", { g:size(), g:size(), g:size() }), g:below(3)
  local at = g:below(x.type.shape[axis + 1])
  return x, axis, at
end

function examples.take_one(g)
  local x, axis, at = position(g)
  if g:below(4) == 3 then at = -1 end
  local stop = at == -1 and math.maxinteger or at + 1
  local slice = g.op.strided_slice(x, g:ints(at), g:ints(stop), g:ints(axis), g:ints(1))
  return g.op.squeeze(slice, g:ints(axis))
end

function examples.take_vector(g)
  local x, axis, at = position(g)
  local taken = g.op.take(x, g:number(at, "int64"), { axis = axis })
  return g.op.expand_dims(taken, g:ints(axis))
end

-- A position of an axis behind a transpose.
function examples.take_through_transpose(g)
  local moved = g.op.transpose(g:var("float32", { g:size(), g:size(), g:size() }),
    { axes = g:pick { { 0, 2, 1 }, { 2, 0, 1 }, { 1, 2, 0 }, { 1, 0, 2 } } })
  local axis = g:below(3)
  return g.op.take(moved, g:number(g:below(moved.type.shape[axis + 1]), "int64"), { axis = axis })
end

-- Elements that are broadcast along a new axis, which then merges with one of its
-- neighbours: the one before it, or by mistake the one behind it.
function examples.take_repeated(g)
  local op, a, b, c, times = g.op, g:size(), g:size(), g:size(), 2 + g:below(3)
  local x = g:var(g:any_dtype "float32", { a, b, c })
  local axis = 1 + g:below(3)
  local wide = { a, b, c }
  table.insert(wide, axis + 1, times)
  local merged = { a, b, c }
  local into = g:pick { axis, axis, math.min(axis + 1, 3) }
  merged[into] = merged[into] * times
  local spread = op.broadcast_to(op.expand_dims(x, g:ints(axis)), g:ints(table.unpack(wide)))
  return op.reshape(spread, { newshape = merged })
end

-- An axis that is split, whose parts change places, and that is merged again.
function examples.take_permuted(g)
  local op, axis, a, b, c = g.op, g:below(3), g:size(), g:size(), g:size()
  local shape = { g:size(), g:size(), g:size() }
  local parts = g:pick { { a, b }, { a, b, c } }
  shape[axis + 1] = #parts == 2 and a * b or a * b * c
  local split, axes = table.move(shape, 1, axis, 1, {}), { 0, 1, 2, 3, #parts == 3 and 4 or nil }
  table.move(parts, 1, #parts, #split + 1, split)
  table.move(shape, axis + 2, 3, #split + 1, split)
  local i, k = axis + 1, axis + 1 + g:pick { 1, #parts - 1 }
  axes[i], axes[k] = axes[k], axes[i]
  local x = op.reshape(g:var(g:any_dtype "float32", shape), { newshape = split })
  return op.reshape(op.transpose(x, { axes = axes }), { newshape = shape })
end

-- Slices or parts of a tensor, in another order.
function examples.take_pieces(g)
  local op, n = g.op, 2 + g:below(4)
  local x = g:var(g:any_dtype "float32", { g:size(), n, g:size() })
  local cut = 1 + g:below(n - 1)
  local parts
  if g:below(2) == 0 then
    local function slice(from, to)
      return op.strided_slice(x, g:ints(from), g:ints(to), g:ints(g:pick { 1, -2 }), g:ints(1))
    end
    parts = { slice(cut, g:pick { n, math.maxinteger }), slice(g:pick { 0, -n }, cut) }
  else
    local split = op.split(x, g:ints(cut, n - cut), { axis = 1, n_results = 2 })
    parts = { split:get(1), split:get(0) }
  end
  if g:below(3) == 2 then parts[1], parts[2] = parts[2], parts[1] end
  return op.concatenate(parts, { axis = g:pick { 1, 1, -2 } })
end

-- ------------------------------------------------------------------------ masks

-- Rows of a tensor where a mask holds.
local function masked(g)
  local op, n = g.op, g:extent()
  local shape = g:pick { { n }, { n, g:size() } }
  return op, g:var(g:any_dtype "float32", shape), op.nonzero(g:var("bool", { n }))
end

function examples.selected_rows(g)
  local op, x, at = masked(g)
  return op.gather_nd(x, op.transpose(at, { axes = { 1, 0 } }), { batch_dims = 0 })
end

-- Indices of one axis, of tables of any rank.
function examples.gather_rows(g)
  local n, m, rows = g:size(), g:size(), {}
  for i = 1, m do rows[i] = { g:below(2 * n) - n } end
  local x = g:var(g:any_dtype "float32", g:pick { { n }, { n, 2 }, { n, 3, 2 } })
  return g.op.gather_nd(x, ir.Constant(core.tensor(rows, "int64")), { batch_dims = 0 })
end

function examples.selected_positions(g)
  local op, x, at = masked(g)
  at = g:pick { op.squeeze(at, g:ints(0)), op.reshape(at, g:ints(-1)) }
  return op.take(x, at, { axis = g:pick { 0, -x.type.rank } })
end

function examples.least_extent(g)
  local op, dtype = g.op, g:pick { "int64", "int32" }
  local joined = op.concatenate({ g:var(dtype, { 1 }), g:var(dtype, { 1 }) }, { axis = 0 })
  return op.min(joined, { axes = g:pick { { 0 }, { -1 } }, keepdims = 1 })
end

function examples.greatest_extent(g)
  local op = g.op
  local joined = op.concatenate({ g:var("int64", { 1 }), g:var("int64", { 1 }) }, { axis = 0 })
  return op.max(joined, { keepdims = 1 })
end

-- ----------------------------------------------------------------------- blocks

-- One operator that moves elements of y: (first, n, columns), or splits and merges its axes.
local moves = {
  roll = function(g, y)
    local n = y.type.shape[2]
    local cut, op = 1 + g:below(n), g.op
    local function slice(from, to)
      return op.strided_slice(y, g:ints(from), g:ints(to), g:ints(1))
    end
    return op.concatenate({ slice(cut, n), slice(0, cut) }, { axis = 1 })
  end,
  every_other = function(g, y)
    local function slice(from)
      local step = g:ints(2)
      return g.op.strided_slice(y, g:ints(from), g:ints(math.maxinteger), g:ints(1), step)
    end
    return g.op.concatenate({ slice(0), slice(1) }, { axis = 1 })
  end,
  exchange = function(g, y)
    local shape, n = y.type.shape, y.type.shape[2]
    local inner = n % 2 == 0 and 2 or n % 3 == 0 and 3 or 1
    local split = g.op.reshape(y, g:ints(0, n // inner, inner, shape[3]))
    local moved = g.op.transpose(split, { axes = { 0, 2, 1, 3 } })
    return g.op.reshape(moved, g:ints(-1, n, shape[3]))
  end,
  take = function(g, y)
    local at, n = {}, y.type.shape[2]
    for i = 1, g:size() + 1 do at[i] = g:below(n) - (i % 2 == 0 and n or 0) end
    return g.op.take(y, g:ints(table.unpack(at)), { axis = 1 })
  end,
  parts = function(g, y)
    local n = y.type.shape[2]
    if n < 2 then return y end
    local cut = 1 + g:below(n - 1)
    local f = g:pick { g.op.tanh, function(x) return x end }
    local split = g.op.split(y, g:ints(cut, n - cut), { axis = 1, n_results = 2 })
    return g.op.concatenate({ f(split:get(1)), f(split:get(0)) }, { axis = 1 })
  end,
  windows = function(g, y) -- the first axis takes up a part of the next one
    local shape, n = y.type.shape, y.type.shape[2]
    local inner = n % 2 == 0 and n // 2 or n
    return g.op.reshape(y, g:ints(-1, inner, shape[3]))
  end,
}

function examples.take_blocks(g)
  local y = g:var(g:any_dtype "float32", { g:size(), 2 + g:below(6), g:pick { 4, 4, 5, 1 } })
  for _ = 1, 2 + g:below(3) do
    y = moves[g:pick { "roll", "every_other", "exchange", "take", "parts", "windows" }](g, y)
  end
  return g:pick { g.op.reshape(y, g:ints(0, -1)), y }
end

-- ------------------------------------------------------------------------- parts

-- The same operator on columns of tensors.
local function cut_columns(g)
  local op, n = g.op, 2 + g:below(3)
  local x, y = g:var("float32", { g:size(), n }), g:var("float32", { 1, n })
  local shape = x.type.shape
  y = op.broadcast_to(y, g:ints(shape[1], n))
  local name = g:pick { "subtract", "multiply", "maximum", "sigmoid", "none" }
  local x_parts, y_parts
  if n == 2 then
    x_parts = { op.split(x, g:ints(1, 1), { axis = 1, n_results = 2 }):unpack() }
    y_parts = { op.split(y, g:ints(1, 1), { axis = -1, n_results = 2 }):unpack() }
  end
  local parts, order = {}, g:pick { 1, -1 }
  for k = 1, n do
    local i = order == 1 and k or n + 1 - k
    local a = x_parts and x_parts[i] or op.take(x, g:ints(i - 1), { axis = 1 })
    local b = y_parts and y_parts[i] or op.take(y, g:ints(i - 1), { axis = -1 })
    if name == "none" then parts[k] = a
    elseif name == "sigmoid" then parts[k] = op.sigmoid(a)
    else parts[k] = op[name](a, b) end
  end
  if g:below(2) == 0 then parts[#parts + 1] = g:var("float32", { shape[1], 1 }) end
  return op.concatenate(parts, { axis = g:pick { 1, -1 } })
end

-- Products or sums of some columns each.
local function reduced(g)
  local op, parts = g.op, {}
  local x = g:var("float32", g:pick { { g:size(), 4 }, { g:size(), 4, g:size() } })
  local name = g:pick { "prod", "sum", "max" }
  for k = 1, 3 do
    local taken = op.take(x, g:ints(g:below(4), g:below(4) - 4), { axis = 1 })
    parts[k] = op[name](taken, { axes = { 1 }, keepdims = 1 })
  end
  return op.concatenate(parts, { axis = 1 })
end

function examples.join_calls(g) return g:pick { cut_columns, reduced }(g) end

-- Elements of rows that are equal.
function examples.gather_of_row(g)
  local op, rows, n = g.op, g:size(), 2 + g:below(3)
  local places = {}
  for i = 1, rows * 3 do places[i] = g:below(2 * n) - n end
  local row = g:constant(g:pick { "float32", "int64" }, { 1, n })
  local at = op.reshape(g:ints(table.unpack(places)), g:ints(rows, 3))
  return op.gather(op.broadcast_to(row, g:ints(rows, n)), at, { axis = 1 })
end

-- Positions behind an extent.
function examples.offset_arange(g)
  local op = g.op
  local function extent()
    return op.squeeze(op.shape_of(g:var("float32", { g:size() })), g:ints(0))
  end
  local zero, one = g:number(0, "int64"), g:number(1, "int64")
  return op.add(op.arange(zero, extent(), one), extent())
end

-- A truth value times a number.
function examples.select_number(g)
  local dtype = g:pick { "int64", "int32" }
  local factor = g:number(g:below(99) - 49, dtype)
  return g.op.multiply(g.op.cast(g:var("bool", g:shape(2)), { dtype = dtype }), factor)
end

-- Feature maps of several sizes whose channels become rows.
function examples.join_heads(g)
  local op, parts, batch, channels = g.op, {}, g:size(), 2 + 2 * g:below(3)
  local columns = g:pick { channels, channels // 2 }
  for k = 1, 3 + g:below(2) do
    local height, width = 1 + g:below(3), 1 + g:below(4)
    local x = g:var("float32", { batch, channels, height, width })
    local perms = { { 0, 2, 3, 1 }, { 0, 2, 3, 1 }, { 0, 3, 2, 1 } }
    local rows = op.transpose(x, { axes = g:pick(perms) })
    local n = height * width * channels // columns
    parts[k] = op.reshape(rows, g:ints(0, n, columns))
  end
  return op.concatenate(parts, { axis = g:pick { 1, -2 } })
end

-- A concatenation of negated and other operands, times a tensor.
function examples.move_signs(g)
  local op, rows, a, b = g.op, g:size(), g:extent(), g:size()
  local dtype = g:pick { "float32", "float16", "bfloat16", "float64" }
  local x, y = op.negative(g:var(dtype, { rows, a })), g:var(dtype, { rows, b })
  local parts = g:pick { { x, y }, { y, x }, { x, op.negative(y) } }
  local joined = op.concatenate(parts, { axis = g:pick { -1, 1 } })
  local t = g:var(dtype, g:pick { { rows, a + b }, { a + b }, { 1, a + b } })
  return g:pick { op.multiply(joined, t), op.multiply(t, joined) }
end

-- ----------------------------------------------------------------- enumerations

local function range(g, n)
  return g.op.arange(g:number(0, "int64"), g:number(n, "int64"), g:number(1, "int64"))
end

-- row * columns + column, by mistake row * rows + column, of a tensor with that many
-- positions.
function examples.take_enumeration(g)
  local op, rows, columns, axis = g.op, g:size(), g:size(), g:below(2)
  local row = op.reshape(range(g, rows), { newshape = { rows, 1 } })
  local column = op.reshape(range(g, columns), { newshape = { 1, columns } })
  local factor = g:number(g:pick { columns, columns, math.min(rows, columns) }, "int64")
  local index = op.add(op.multiply(row, factor), column)
  local shape = { g:size(), g:size() }
  shape[axis + 1] = rows * columns
  local x = g:var("float32", shape)
  return op.take(x, g:pick { index, op.reshape(index, { newshape = { -1 } }) }, { axis = axis })
end

-- Coordinates of all positions, in order or with the axes exchanged.
function examples.gather_grid(g)
  local op, a, b = g.op, g:size(), g:size()
  if g:below(3) == 2 then b = a end
  local function coordinate(n, shape)
    local part = op.broadcast_to(op.reshape(range(g, n), { newshape = shape }), g:ints(a, b))
    return op.expand_dims(part, g:ints(2))
  end
  local row, column = coordinate(a, { a, 1 }), coordinate(b, { 1, b })
  if a == b and g:below(2) == 1 then row, column = column, row end
  return op.gather_nd(g:var("float32", { a, b }), op.concatenate({ row, column }, { axis = -1 }))
end

-- A condition of which one part says that positions are not negative, or not below 1.
function examples.drop_tautology(g)
  local op, rows, n = g.op, g:size(), g:size()
  local least = g:number(g:pick { 0, 0, -1, 1 }, "int64")
  local holds = g:pick { op.greater_equal(range(g, n), least),
    op.less_equal(least, range(g, n)) }
  local condition = g:var("bool", g:pick { { rows, n }, { n }, { 1 } })
  local both = g:pick { op.logical_and(holds, condition), op.logical_and(condition, holds) }
  local x, y = g:var("float32", { rows, n }), g:var("float32", { rows, n })
  if g:below(2) == 0 then return op.where(both, x, y) end
  return op.add(x, op.where(both, g:number(0, "float32"), g:number(-3, "float32")))
end

-- --------------------------------------------------------------- normalisation

-- x less its mean, divided by the standard deviation over the last axis, scaled.
local function normalised(with_bias)
  return function(g)
    local op, shape, dtype = g.op, g:shape(g:pick { 2, 1, 3 }), g:float_dtype()
    local x = g:var(dtype, shape)
    local over = g:pick { { axes = { -1 }, keepdims = 1 }, { axes = { #shape - 1 }, keepdims = 1 } }
    local d = op.subtract(x, op.mean(x, over))
    local square = g:pick { op.multiply(d, d), op.power(d, g:number(2, dtype)) }
    local sum = op.add(op.mean(square, over), g:number(1e-3, dtype))
    local scale, bias = g:constant(dtype, { shape[#shape] }), g:constant(dtype, { shape[#shape] })
    local y = op.multiply(op.divide(d, op.sqrt(sum)), scale)
    return with_bias and op.add(y, bias) or y
  end
end

-- Attention of several heads; `scaled` is the operator that scales the scores, or nil.
local function attention(scaled, with_mask)
  return function(g)
    local op, n, heads, size = g.op, g:extent(), g:size(), g:extent()
    local queries, keys = g:extent(), g:extent()
    local scores = op.nn.matmul(g:var("float32", { n, heads, queries, size }),
      g:var("float32", { n, heads, size, keys }))
    if scaled then scores = op[scaled](scores, g:number(g:pick { 0.25, 3 }, "float32")) end
    if with_mask then
      local leading = g:pick { { n, 1, queries }, { queries }, { 1, queries },
        { n, heads, queries } }
      leading[#leading + 1] = keys
      scores = op.add(scores, g:var("float32", leading))
    end
    return op.nn.matmul(op.nn.softmax(scores, { axis = g:pick { -1, 3 } }),
      g:var("float32", { n, heads, keys, g:extent() }))
  end
end

for i, scaled in ipairs { false, "multiply", "divide" } do
  examples["attention_" .. i] = attention(scaled, false)
  examples["masked_attention_" .. i] = attention(scaled, true)
end

-- Attention with fewer heads of keys and values, which are repeated.
function examples.grouped_attention(g)
  local op, n, groups, times, size = g.op, g:extent(), g:size(), 1 + g:size(), g:size()
  local heads, keys, index = groups * times, g:extent(), {}
  for i = 0, heads - 1 do index[#index + 1] = i // times end
  local function repeated(width)
    return op.take(g:var("float32", { n, groups, keys, width }), g:ints(table.unpack(index)),
      { axis = 1 })
  end
  return op.attention(g:var("float32", { n, heads, g:extent(), size }), repeated(size),
    repeated(g:size()), { scale = 0.5 })
end

-- Rotation of the halves of each head by angles of its position.
local function rotation(g, n, positions)
  local op, heads, length, half = g.op, g:size(), g:extent(), g:size()
  local x = g:var("float32", { n, heads, length, 2 * half })
  local t = g:var("float32", { positions, 1, length, 1 })
  local angles, signs, index = {}, {}, {}
  for i = 1, 2 * half do
    angles[i] = 1 / (1 + (i - 1) % half)
    signs[i] = i <= half and -1 or 1
    index[i] = (i - 1 + half) % (2 * half)
  end
  local function vector(list) return core.constant(core.tensor(list, "float32")) end
  local w = vector(angles)
  local function table_of(name) return op[name](op.multiply(t, w)) end
  return op.add(op.multiply(x, table_of "cos"), op.multiply(op.take(x,
    g:ints(table.unpack(index)), { axis = 3 }), op.multiply(table_of "sin", vector(signs))))
end

function examples.rotary_embedding(g)
  local n = g:extent()
  return rotation(g, n, n)
end

function examples.microsoft_rotary_embedding(g) return rotation(g, g:extent(), 1) end

-- The same with heads side by side, as com.microsoft's operators take them.
local function side_by_side(fused, with_mask)
  return function(g)
    local op, n, heads, size, width = g.op, g:extent(), g:size(), g:size(), g:size()
    local queries, keys = g:extent(), g:extent()
    local function split(length, columns, axes)
      local x = g:var("float32", { n, length, heads * columns })
      return op.transpose(op.reshape(x, { newshape = { n, length, heads, columns } }),
        { axes = axes })
    end
    local q, k = split(queries, size, { 0, 2, 1, 3 }), split(keys, size, { 0, 2, 3, 1 })
    local scores = fused and op.microsoft.fused_matmul(q, k, { alpha = g:pick { 0.25, 2 } })
      or op.nn.matmul(q, k)
    if with_mask then
      scores = op.add(scores, g:var("float32", { g:pick { 1, n }, g:pick { 1, heads }, queries,
        keys }))
    end
    local y = op.nn.matmul(op.nn.softmax(scores, { axis = g:pick { -1, 3 } }),
      split(keys, width, { 0, 2, 1, 3 }))
    return op.reshape(op.transpose(y, { axes = { 0, 2, 1, 3 } }),
      { newshape = { n, queries, heads * width } })
  end
end

for i, fused in ipairs { false, true } do
  examples["multi_head_attention_" .. i] = side_by_side(fused, false)
  examples["multi_head_attention_biased_" .. i] = side_by_side(fused, true)
end

-- Projections of one operand before attention.
function examples.packed_attention(g)
  local op, n, length, width, heads, size = g.op, g:extent(), g:extent(), g:extent(), g:size(),
    g:size()
  local x = g:var("float32", { n, length, width })
  local function project()
    return op.add(op.nn.matmul(x, g:constant("float32", { width, heads * size })),
      g:constant("float32", { heads * size }))
  end
  return op.microsoft.multi_head_attention(project(), project(), project(),
    { num_heads = heads, scale = g:pick { 0.5, 1 } })
end

-- Embeddings of words and positions, perhaps of segments.
local function embedded(segments)
  return function(g)
    local op, n, length, width = g.op, g:extent(), g:extent(), 1 + g:size()
    local function rows()
      local ids = op.cast(g:var("bool", { n, length }), { to = 7 })
      return op.take(g:constant("float32", { 2, width }), ids, { axis = 0 })
    end
    local sum = op.add(rows(), rows())
    if segments then sum = op.add(sum, rows()) end
    return op.nn.layer_norm(sum, g:constant("float32", { width }), g:constant("float32", { width }),
      { axis = g:pick { -1, 2 }, epsilon = 1e-3 })
  end
end

examples.embed_layer_norm, examples.embed_layer_norm_segments = embedded(false), embedded(true)

-- A normalisation of a sum with a bias.
function examples.skip_layer_norm_bias(g)
  local op, width = g.op, 1 + g:size()
  local shape = { g:extent(), g:extent(), width }
  local function vector() return g:constant("float32", { width }) end
  local x = op.add(g:var("float32", shape), vector())
  return op.nn.layer_norm(op.add(g:var("float32", shape), x), vector(), vector(),
    { axis = g:pick { -1, 2 }, epsilon = 1e-3 })
end

-- Groups of channels as channels of an InstanceNormalization.
function examples.group_norm(g)
  local op, groups, each = g.op, g:size(), g:size()
  local n, height, width = g:extent(), g:extent(), g:extent()
  local channels = groups * each
  local x = g:var("float32", { n, channels, height, width })
  local grouped = op.reshape(x, { newshape = { n, groups, each * height * width } })
  local normal = op.nn.instance_norm(grouped, g:splat("float32", { groups }, 1),
    g:splat("float32", { groups }, 0), { epsilon = 1e-3 })
  local scale, bias = g:constant("float32", { channels, 1, 1 }),
    g:constant("float32", { channels, 1, 1 })
  return op.add(op.multiply(op.reshape(normal, { newshape = x.type.shape }), scale), bias)
end

examples.layer_norm, examples.layer_norm_without_bias = normalised(true), normalised(false)

-- A bias per channel behind an instance normalisation.
function examples.instance_norm_bias(g)
  local op, channels = g.op, g:size()
  local function vector() return g:constant("float32", { channels }) end
  local x = g:var("float32", { g:size(), channels, 1 + g:size() })
  local y = op.nn.instance_norm(x, vector(), vector())
  return op.add(y, g:constant("float32", { channels, 1 }))
end

return examples
