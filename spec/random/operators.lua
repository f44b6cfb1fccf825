--- What graph.lua makes graphs of: by name, make(g) appends to a graph
-- and gives the new values, or nil when what it needs is not there.
--
--     product  its result may differ in the last bits when weights are folded
--     jumps    a last bit of its operand may change the result much: it takes
--              none that depends on a product

local pl = require "perilune"

local op = pl.op

local makers = {}
local function maker(name, make) makers[name] = { make = make } end
local function product(name, make) makers[name] = { make = make, product = true } end
local function jumping(name, make) makers[name] = { make = make, jumps = true } end

local unary = { "tanh", "negative", "abs", "sigmoid", "copy", "nn.relu", "erf", "nn.gelu" }
local binary = { "add", "subtract", "multiply", "maximum", "minimum" }
local FLOAT, INT64, FLOAT16, DOUBLE = 1, 7, 10, 11

local function ints(...) return pl.const(pl.tensor({ ... }, "int64")) end
local function ints_of(list) return pl.const(pl.tensor(list, "int64")) end
local function float(x) return pl.const(x, "float32") end

local function extent(shape)
  local n = 1
  for _, dim in ipairs(shape) do n = n * dim end
  return n
end

local function is_empty(shape)
  for _, dim in ipairs(shape) do if dim == 0 then return true end end
  return false
end

local function has_axes(shape) return #shape > 0 end

-- A float32 value, through an operator of one operand.
local function changed(g, x) return op[g:pick(unary)](x) end

-- ------------------------------------------------------------------- elements

maker("unary", function(g) return changed(g, g:value "float32") end)

jumping("rounding", function(g)
  local x = g:value "float32"
  return op[g:pick { "floor", "ceil", "round", "sign" }](x)
end)

maker("binary", function(g)
  local x, shape = g:value "float32"
  for _ = 1, 4 do
    local y, other = g:value "float32"
    local same = #other == #shape
    for i, dim in ipairs(shape) do same = same and other[i] == dim end
    if same then return op[g:pick(binary)](x, y) end
  end
  return op[g:pick(binary)](x, g:constant {})
end)

maker("broadcast", function(g)
  local x, shape = g:static("float32", 1)
  if not x or is_empty(shape) then return end
  local other = {}
  for i = g:below(#shape), #shape do other[#other + 1] = g:chance(0.5) and shape[i] or 1 end
  return op[g:pick(binary)](g:constant(other), x)
end)

maker("neutral", function(g)
  local x = g:value "float32"
  local zero, one = float(0), float(1)
  return g:pick { op.add(x, zero), op.subtract(x, zero), op.multiply(one, x), op.divide(x, one) }
end)

maker("constant_chain", function(g)
  local x = g:constant { 2, g:below(3) }
  for _ = 1, g:below(3) do x = changed(g, x) end
  return x
end)

maker("there_and_back", function(g)
  local x = g:value "float32"
  return op.cast(op.cast(x, { to = g:pick { DOUBLE, FLOAT } }), { to = FLOAT })
end)

jumping("halves", function(g)
  local x = op.cast(g:value "float32", { to = FLOAT16 })
  return op.cast(op[g:pick(binary)](x, op.tanh(x)), { to = FLOAT })
end)

jumping("select", function(g)
  local x = g:value "float32"
  local less = op.less(x, g:constant {})
  if g:chance(0.3) then less = op.logical_and(op.logical_not(less), op.less(x, float(1))) end
  return op.where(less, x, op.negative(x))
end)

maker("clip", function(g)
  return op.clip(g:value "float32", g:pick { float(-1), float(0) }, float(2))
end)

-- The same computation again: a duplicate.
maker("twice", function(g)
  local x, name = g:value "float32", g:pick(unary)
  return op.add(op[name](x), op[name](x))
end)

-- ------------------------------------------------------------------- integers

jumping("integers", function(g)
  local x = g:value("int64") or op.cast(op.clip(g:value "float32", float(-9), float(9)),
    { to = INT64 })
  local c = ints(g:pick { 0, 1, 2, 3, -2, 7 })
  local name = g:pick { "add", "subtract", "multiply", "maximum", "minimum" }
  return op[name](x, op.reshape(c, ints_of {}))
end)

jumping("from_integers", function(g)
  local x = g:value "int64"
  if not x then return end
  if g:chance(0.5) then x = op.mod(x, pl.const(3, "int64")) end
  return op.cast(x, { to = FLOAT })
end)

-- ------------------------------------------------------------ shapes and places

maker("transpose", function(g)
  local x, shape = g:value "float32"
  return op.transpose(x, { axes = g:permutation(#shape) })
end)

maker("reshape", function(g)
  local x, shape = g:static "float32"
  if not x then return end
  local n = extent(shape)
  if n == 0 then return end -- a 0 in a new shape is a copy
  local first = g:below(n)
  while n % first ~= 0 do first = first - 1 end
  return op.reshape(x, g:chance(0.5) and ints(first, -1) or ints(n // first, first))
end)

-- A reshape by the shape itself: it melts.
maker("reshape_by_shape", function(g)
  local x, dims = g:value "float32"
  local rank = #dims
  if rank == 0 or is_empty(dims) then return end -- -1 has no answer then
  local shape, parts = op.shape_of(x), {}
  for i = 1, rank do
    parts[i] = op.expand_dims(op.take(shape, pl.const(i - 1, "int64")), ints(0))
  end
  if g:chance(0.5) then parts[g:below(rank)] = ints(-1) end
  return op.reshape(changed(g, x), op.concatenate(parts, { axis = 0 }))
end)

maker("unsqueeze", function(g)
  local x, shape = g:value "float32"
  local axis = g:below(#shape + 1) - 1
  local wide = op.expand_dims(x, ints(axis))
  return g:chance(0.5) and op.squeeze(changed(g, wide), ints(axis)) or wide
end)

maker("slice", function(g)
  local x, shape = g:static("float32", 1)
  if not x then return end
  local axis = g:below(#shape)
  local start = g:below(shape[axis] + 1) - 1
  local stop = g:chance(0.5) and math.maxinteger or g:below(shape[axis] + 1)
  return op.strided_slice(x, ints(start), ints(stop), ints(axis - 1), ints(g:pick { 1, 1, 2 }))
end)

maker("join", function(g)
  local x, shape = g:value("float32", has_axes)
  return op.concatenate({ x, changed(g, x) }, { axis = g:below(#shape) - 1 })
end)

maker("split", function(g)
  local x, shape = g:static("float32", 1)
  local axis = x and g:below(#shape)
  if not x or shape[axis] < 2 then return end
  local first = g:below(shape[axis] - 1)
  return op.split(x, ints(first, shape[axis] - first), { axis = axis - 1, n_results = 2 }):unpack()
end)

maker("pad", function(g)
  local x, shape = g:static("float32", 1)
  if not x or #shape > 4 or is_empty(shape) then return end
  local pads = {}
  for i = 1, 2 * #shape do pads[i] = g:pick { 0, 0, 1 } end
  return op.nn.pad(x, ints_of(pads), nil, nil, { pad_mode = g:pick { "constant", "edge" } })
end)

maker("expand", function(g)
  local x, shape = g:static "float32"
  if not x or extent(shape) > 64 then return end
  return op.broadcast_to(x, ints_of { 2, table.unpack(shape) })
end)

maker("take", function(g)
  local x, shape = g:static("float32", 1)
  local axis = x and g:below(#shape)
  if not x or shape[axis] == 0 then return end
  local last = shape[axis] - 1
  return op.take(x, g:pick { ints(last, 0), ints(-1), pl.const(last, "int64") },
    { axis = axis - 1 })
end)

maker("scatter", function(g)
  local x, shape = g:static("float32", 1)
  if not x or is_empty(shape) then return end
  local row = { table.unpack(shape) }
  row[1] = 1
  return op.scatter_nd(x, pl.const(pl.tensor({ { shape[1] - 1 } }, "int64")), g:constant(row))
end)

-- ------------------------------------------------------------------- over axes

maker("reduce", function(g)
  local x, shape = g:value("float32", has_axes)
  local attrs = { axes = { g:below(#shape) - 1 }, keepdims = g:below(2) - 1 }
  return op[g:pick { "max", "min" }](x, attrs)
end)

-- Of a mean the divisor must not be 0.
product("sum", function(g)
  local x, shape = g:static("float32", 1)
  if not x or is_empty(shape) then return end
  local attrs = { axes = { g:below(#shape) - 1 }, keepdims = g:below(2) - 1 }
  return op[g:pick { "sum", "mean", "reduce_l2", "logsumexp" }](x, attrs)
end)

product("softmax", function(g)
  local x, shape = g:value("float32", has_axes)
  return op.nn.softmax(x, { axis = g:below(#shape) - 1 })
end)

product("running_sum", function(g)
  local x, shape = g:value("float32", has_axes)
  return op.cumsum(x, pl.const(g:below(#shape) - 1, "int64"))
end)

jumping("greatest", function(g)
  local x, shape = g:static("float32", 1)
  if not x or is_empty(shape) then return end
  local axis = g:below(#shape) - 1
  if g:chance(0.5) then return op.argmax(x, { axis = axis }) end
  return op.topk(x, ints(1), { axis = axis, n_results = 2 }):unpack()
end)

-- --------------------------------------------------------------------- products

product("matmul", function(g)
  local x, shape = g:static("float32", 2)
  if not x or shape[#shape] == 0 then return end
  local n = g:below(4)
  local y = op.nn.matmul(x, g:weight { shape[#shape], n })
  return op.tanh(g:chance(0.5) and op.add(y, g:weight { n }) or y)
end)

product("gemm", function(g)
  local x, shape = g:value("float32", function(shape)
    return #shape == 2 and math.type(shape[2]) == "integer" and shape[2] > 0
  end)
  if not x then return end
  local y = op.nn.gemm(x, g:weight { 3, shape[2] }, g:chance(0.5) and g:weight { 3 } or nil,
    { transB = 1 })
  return op.tanh(y)
end)

local function image(g)
  return g:static("float32", 4) or g.params[4]
end

-- Batch normalisation, or its parts one by one.
local function normalised(g, y, channels)
  local kind = g:below(4)
  if kind == 1 then
    return op.nn.batch_norm(y, g:weight { channels }, g:weight { channels },
      g:weight { channels }, g:weight({ channels }, 0.5))
  end
  if kind == 2 then return op.add(y, g:weight { channels, 1, 1 }) end
  return y
end

product("conv", function(g)
  local x = image(g)
  local shape = x.type.shape
  if #shape ~= 4 or is_empty(shape) then return end
  if g:chance(0.4) then x = op.nn.pad(x, ints(0, 0, 1, 1, 0, 0, 1, 0)) end
  local channels, window = g:below(3), g:below(2)
  if shape[3] < window or shape[4] < window then return end
  local y = op.nn.conv(x, g:weight { channels, shape[2], window, window },
    g:chance(0.5) and g:weight { channels } or nil,
    { pads = g:chance(0.5) and { 1, 0, 1, 0 } or nil, strides = g:pick { { 1, 1 }, { 2, 1 } } })
  return op.tanh(normalised(g, y, channels))
end)

product("conv_transpose", function(g)
  local x = image(g)
  local shape = x.type.shape
  if #shape ~= 4 or is_empty(shape) or extent(shape) > 200 then return end
  local channels = g:below(3)
  local y = op.nn.conv_transpose(x, g:weight { shape[2], channels, 2, 2 })
  return op.tanh(normalised(g, y, channels))
end)

product("pool", function(g)
  local x = image(g)
  local shape = x.type.shape
  if #shape ~= 4 or is_empty(shape) or shape[3] < 2 or shape[4] < 2 then return end
  if g:chance(0.4) then x = op.nn.pad(x, ints(0, 0, 1, 1, 0, 0, 1, 1)) end
  local attrs = { kernel_shape = { 2, 2 }, strides = g:pick { { 1, 1 }, { 2, 2 } } }
  if g:chance(0.5) then return op.nn.max_pool(x, attrs) end
  attrs.count_include_pad = g:below(2) - 1
  return op.nn.avg_pool(x, attrs)
end)

product("layer_norm", function(g)
  local x, shape = g:static("float32", 1)
  local n = x and shape[#shape]
  if not x or n < 2 then return end
  return op.nn.layer_norm(op.tanh(x), g:weight { n }, g:weight { n }, { epsilon = 0.1 })
end)

product("einsum", function(g)
  local x, shape = g:value("float32", function(shape)
    return #shape == 2 and math.type(shape[2]) == "integer" and shape[2] > 0
  end)
  if not x then return end
  return op.tanh(op.einsum({ x, g:weight { shape[2], 2 } }, { equation = "ij,jk->ki" }))
end)

-- ------------------------------------------------------------ control, sequences

maker("branch", function(g)
  local x = g:value "float32"
  local inside, other = changed(g, x), op.multiply(x, x)
  local cond = g:chance(0.3) and pl.const(g:chance(0.5), "bool")
    or op.less(op.max(g.params[1], { keepdims = 0 }), float(0.5))
  return pl.ir.If(cond, op.add(inside, inside), g:chance(0.5) and other or inside)
end)

maker("loop", function(g)
  local x = g:value "float32"
  local outer = op.tanh(x)
  local i, go = pl.var("i", "Tensor[(), int64]"), pl.var("go", "Tensor[(), bool]")
  local v = pl.var("v", x.type)
  local next_v = op.multiply(changed(g, v), g:chance(0.5) and outer or float(0.5))
  local kept = op.less(i, pl.const(g:below(3), "int64"))
  local body = pl.func({ i, go, v }, pl.tuple { kept, next_v, op.add(v, v) })
  local rounds = op.loop(pl.const(g:below(4) - 1, "int64"), pl.const(g:chance(0.9), "bool"), x,
    body, { n_results = 2 })
  return rounds:get(0)
end)

product("scan", function(g)
  local x, shape = g:static("float32", 2)
  if not x or is_empty(shape) then return end
  local rest = { table.unpack(shape, 2) }
  local row = pl.type { shape = rest, dtype = "float32" }
  local sum, each = pl.var("sum", row), pl.var("each", row)
  local next_sum = op.add(sum, changed(g, each))
  local body = pl.func({ sum, each }, pl.tuple { next_sum, op.tanh(next_sum) })
  return op.scan(g:constant(rest), x, body, { num_scan_inputs = 1, n_results = 2,
    scan_input_directions = { g:below(2) - 1 } }):unpack()
end)

maker("sequence", function(g)
  local x, shape = g:value("float32", has_axes)
  local list = op.sequence_construct { x, changed(g, x) }
  if g:chance(0.5) then list = op.sequence_insert(list, x, pl.const(g:below(2) - 1, "int64")) end
  if g:chance(0.5) then return op.sequence_at(list, pl.const(g:pick { 0, 1, -1 }, "int64")) end
  return op.concat_from_sequence(list, { axis = g:below(#shape) - 1 })
end)

return makers
