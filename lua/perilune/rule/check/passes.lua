--- Passes whose rewrites are functions in C and no rules of a set, as
-- perilune.rule.check takes them: each has a name, its proof, and an example that makes
-- programs which it changes.

local core = require "perilune.core"
local check = require "perilune.rule.check"
local pass = require "perilune.pass"
core.internal()

-- ------------------------------------------------------------------- programs

-- A convolution of weights that are constant, perhaps with a bias: the node, the number of
-- its channels, and the shape of one number per channel.
local function convolution(g, dtype)
  local op, inputs, channels = g.op, g:size(), g:size()
  local x = g:var(dtype, { 1 + g:below(2), inputs, 2 + g:below(3), 2 + g:below(3) })
  local transposed = g:below(4) == 3
  local window = { 1 + g:below(2), 1 + g:below(2) }
  local shape = transposed and { inputs, channels } or { channels, inputs }
  local w = g:constant(dtype, { shape[1], shape[2], window[1], window[2] })
  local bias = g:below(2) == 1 and g:constant(dtype, { channels }) or nil
  local attrs = { pads = g:pick { { 0, 0, 0, 0 }, { 1, 0, 0, 1 } },
    strides = g:pick { { 1, 1 }, { 2, 1 } } }
  local name = transposed and "conv_transpose" or "conv"
  return op.nn[name](x, w, bias, attrs), channels, { channels, 1, 1 }
end

local function matrix_product(g, dtype)
  local m, k, n = g:size(), g:size(), g:size()
  local x, w = g:var(dtype, { m, k }), g:constant(dtype, { k, n })
  if g:below(2) == 0 then return g.op.nn.matmul(x, w), n, { n } end
  local bias = g:below(2) == 1 and g:constant(dtype, { n }) or nil
  return g.op.nn.gemm(x, w, bias), n, { n }
end

local function product(g, dtype)
  local make = g:pick { matrix_product, convolution }
  return make(g, dtype)
end

local function dtype_of(g) return g:pick { "float32", "float32", "float64" } end

local function normalised(g)
  local dtype = dtype_of(g)
  local y, channels = product(g, dtype)
  local function constant() return g:constant(dtype, { channels }) end
  return g.op.nn.batch_norm(y, constant(), constant(), constant(),
    g:positive(dtype, { channels }))
end

local function biased(g)
  local dtype = dtype_of(g)
  local y, _, shape = product(g, dtype)
  local bias = g:constant(dtype, g:pick { shape, {} })
  return g.op[g:pick { "add", "subtract" }](y, bias)
end

-- Factors behind a product, behind operators that move its result, and before it.
local function scaled(g)
  local op, dtype = g.op, dtype_of(g)
  local factor = g:number(g:pick { 2, 0.5, -3, 0.75 }, dtype)
  local how = g:below(4)
  if how == 3 then
    local x = op.multiply(g:var(dtype, { g:size(), 3 }), factor)
    return op.nn.matmul(x, g:constant(dtype, { 3, g:size() }))
  end
  local y, channels, shape = product(g, dtype)
  if how == 0 then return op.multiply(y, g:constant(dtype, g:pick { shape, {} })) end
  if how == 1 then return op.divide(y, g:positive(dtype, g:pick { {}, { channels } })) end
  return op.multiply(g:pick { op.nn.relu(y), op.transpose(y), y }, factor)
end

local function summed(g)
  local m, k, n = g:size(), g:size(), g:size()
  local dtype = dtype_of(g)
  local y = g.op.nn.matmul(g:var(dtype, { m, k }), g:var(dtype, { k, n }))
  return g.op.add(y, g:var(dtype, g:pick { { n }, { m, n }, { 1, n }, { m, 1 }, {} }))
end

local function padded(g)
  local op, dtype, inputs = g.op, dtype_of(g), g:size()
  local x = g:var(dtype, { 1, inputs, 2 + g:below(3), 2 + g:below(3) })
  local pads = { 0, 0, g:below(2), g:below(2), 0, 0, g:below(2), 1 }
  local wide = op.nn.pad(x, g:ints(table.unpack(pads)))
  if g:below(3) == 2 then
    return op.nn.avg_pool(wide, { kernel_shape = { 2, 2 }, count_include_pad = g:below(2) })
  end
  local w = g:constant(dtype, { g:size(), inputs, 1 + g:below(2), 2 })
  return op.nn.conv(wide, w, nil, { strides = g:pick { { 1, 1 }, { 2, 1 } } })
end

-- Constants, through operators of one or two operands.
local function constants(g)
  local op, dtype, shape = g.op, g:float_dtype(), g:shape()
  local a = g:constant(dtype, shape)
  local b = op[g:pick { "add", "multiply", "maximum", "divide" }](a, g:constant(dtype, shape))
  return op.add(g:var(dtype, shape), op[g:pick { "negative", "floor", "nn.relu", "abs" }](b))
end

-- The same computation twice.
local function twice(g)
  local op, dtype, shape = g.op, g:any_dtype "float32", g:shape()
  local x, y = g:var(dtype, shape), g:var(dtype, shape)
  local name = g:pick { "add", "subtract", "maximum", "minimum" }
  return op[g:pick { "add", "subtract" }](op[name](x, y), op[name](x, y))
end

-- Products of one tensor, and what is done to each result.
local function parallel(g)
  local op, dtype, k = g.op, dtype_of(g), g:extent()
  local x, like = g:var(dtype, { g:size(), k }), g:below(2)
  local fields = {}
  for i = 1, 3 do
    local n = g:extent()
    local y = op.nn.matmul(x, g:constant(dtype, { k, n }))
    if like == 1 then y = op.nn.relu(op.add(y, g:constant(dtype, { n }))) end
    fields[i] = y
  end
  return g.op.concatenate(fields, { axis = 1 })
end

-- Slices, or takes of all positions.
local function pieces(g)
  local op, n = g.op, g:extent()
  if g:below(2) == 0 then
    local x = g:var("float32", { g:size(), 2 * n })
    local function slice(from, to)
      return op.strided_slice(x, g:ints(from), g:ints(to), g:ints(1), g:ints(1))
    end
    return op.subtract(slice(0, n), slice(n, 2 * n))
  end
  local x = op.reshape(g:var("float32", { g:size(), 2 * n }), g:ints(0, 2, n))
  local function take(i) return op.take(x, g:number(i, "int64"), { axis = 1 }) end
  return op.subtract(take(0), take(1))
end

local function sequences(g)
  local op, n = g.op, g:extent()
  local x = g:var("float32", { g:size(), 2 * n })
  local parts = op.split_to_sequence(x, g:number(n, "int64"), { axis = 1, keepdims = 1 })
  local function at(i) return op.sequence_at(parts, g:number(i, "int64")) end
  return op.subtract(at(0), at(g:pick { 1, -1 }))
end

-- A product and a sum of rows, between reshapes.
local function rows_of(g)
  local op, dtype, a, b, k, n = g.op, dtype_of(g), g:extent(), g:extent(), g:extent(), g:extent()
  local x = op.reshape(g:var(dtype, { a * b, k }), g:ints(a, b, k))
  local y = op.nn.matmul(x, g:constant(dtype, { k, n }))
  y = op.add(y, g:constant(dtype, g:pick { { n }, { 1, 1, n }, {} }))
  return op.reshape(g:pick { y, op.nn.relu(y), op.nn.softmax(y) }, g:ints(a * b, n))
end

-- A sum with a broadcast of fewer elements, through another operator.
local function broadcast(g)
  local op, dtype, m, n = g.op, g:any_dtype "float32", g:extent(), g:extent()
  local x = g:var(dtype, { m, n })
  local small = g:var(dtype, g:pick { { 1, n }, { n }, {} })
  local wide = op.broadcast_to(small, g:ints(m, n))
  return op[g:pick { "add", "subtract" }](x, op[g:pick { "minimum", "maximum" }](wide,
    g:var(dtype, { 1, 1 })))
end

-- A softmax of bounded scores, or of scores that a parameter takes part in, and its guard.
local function guarded(g)
  local op, m, n = g.op, g:extent(), g:size()
  local rows = op.cast(g:var("bool", { m }), { to = 7 })
  local x = op.tanh(op.take(g:constant("float32", { 3, n }), rows))
  local scores = g:pick { x, op.multiply(x, g:number(100, "float32")), g:var("float32", { m, n }) }
  local p = g:pick { op.nn.softmax(scores), op.sqrt(op.nn.relu(scores)) }
  return op.where(g:pick { op.isnan(p), op.isinf(p) }, g:number(0, "float32"), p)
end

-- Transposes before an operator, and one behind it.
local function transposed(g)
  local op, dtype, shape = g.op, dtype_of(g), { g:extent(), g:extent(), g:extent() }
  local back = { axes = { 2, 0, 1 } }
  local function moved() return op.transpose(g:var(dtype, shape), { axes = { 1, 2, 0 } }) end
  local x, axis = moved(), g:below(3)
  local y = g:pick { op.add(x, moved()), op.concatenate({ x, moved() }, { axis = axis }),
    op.nn.softmax(x, { axis = axis }), op.max(x, { axes = { axis }, keepdims = 1 }),
    op.multiply(x, g:constant(dtype, { shape[1] })), op.tanh(x) }
  return op.transpose(y, back)
end

-- A concatenation of results of one operator, perhaps with a part of such a result.
local function joined(g)
  local op, dtype, n = g.op, dtype_of(g), g:extent()
  local f = g:pick { op.nn.relu, op.abs, op.tanh, op.negative }
  local function one() return f(g:var(dtype, { g:extent(), n })) end
  local parts = { one(), g:pick { one(), op.nn.relu(g:var(dtype, { 2, n })) }, one() }
  if g:below(2) == 0 then parts[#parts + 1] = op.transpose(f(g:var(dtype, { n, 2 })),
    { axes = { 1, 0 } }) end
  return op.concatenate(parts, { axis = 0 })
end

local rows = {
  { name = "FoldConstant", proof = "exact", example = constants },
  { name = "EliminateBroadcast", proof = "exact", example = broadcast },
  { name = "EliminateNaNGuards", proof = "exact", example = guarded },
  { name = "EliminateCommonSubexpr", proof = "exact", example = twice },
  { name = "FoldBatchNorm", proof = "reassociates", example = normalised },
  { name = "FoldConvBias", proof = "reassociates", example = biased },
  { name = "FoldConstantScale", proof = "reassociates", example = scaled },
  { name = "MatMulAddToGemm", proof = "reassociates", example = summed },
  { name = "CombineParallelOps", proof = "reassociates", example = parallel },
  { name = "SlicesToSplit", proof = "exact", example = pieces },
  { name = "SequenceToSplit", proof = "exact", example = sequences },
  { name = "SinkTransposes", proof = "reassociates", example = transposed },
  { name = "SinkElementwise", proof = "exact", example = joined },
  { name = "FlattenRows", proof = "reassociates", example = rows_of },
  { name = "FoldExplicitPadding", proof = "reassociates", example = padded },
}

-- ------------------------------------------------------------------- checking

-- Runs the pass; it was applied if it changed the module.
local function apply_by(name)
  local run = core.make(name)
  local context = pass.context { opt_level = 4 }
  return function(fn)
    local module = core.module { main = fn }
    local new = pass.with(context, run, module)
    return new.functions.main, new ~= module
  end
end

local passes = {}

--- The passes, or the one of that name, prepared; none: an empty list.
function passes.prepare(name)
  local list = {}
  for _, row in ipairs(rows) do
    if not name or row.name == name then
      list[#list + 1] = check.prepare(row, nil, nil, row.example, apply_by(row.name))
    end
  end
  return list
end

--- Their names.
function passes.names()
  local names = {}
  for i, row in ipairs(rows) do names[i] = row.name end
  return names
end

return passes
