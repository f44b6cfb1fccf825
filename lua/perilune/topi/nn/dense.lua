-- pl.topi.nn: matrix products, by TVM's names.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local broadcast = require "perilune.topi.broadcast"
local dims = require "perilune.topi.dims"
local operand = require "perilune.tir.operand"
local te = require "perilune.te"
local tir = require "perilune.tir"

local nn = {}

local function check_reduced(a, b, where)
  if not dims.agree(a, b) then
    argument.fail(("%s: %s columns are multiplied with %s rows"):format(where, a, b))
  end
end

local function product(a, b, dtype)
  return operand.cast(dtype, a) * operand.cast(dtype, b)
end

--- The products of stacks of matrices, whose leading axes broadcast; vectors as in numpy.matmul.
function nn.matmul(x, y, transpose_a, transpose_b, out_dtype)
  local where = "topi.nn.matmul"
  local a = dims.of(dims.tensor(x, where, "tensor_a"))
  local b = dims.of(dims.tensor(y, where, "tensor_b"))
  if out_dtype ~= nil then argument.string(out_dtype, where, "out_dtype") end
  local row, column = #a == 1, #b == 1
  if #a == 0 or #b == 0 then argument.fail(where .. ": of a scalar") end
  local m, k = a[#a - 1], a[#a]
  local rows, n = b[#b - 1], b[#b]
  if transpose_a then m, k = k, m end
  if transpose_b then rows, n = n, rows end
  if column then rows, n = b[1], nil end
  check_reduced(k, rows, where)
  local lead_a, lead_b = table.move(a, 1, #a - 2, 1, {}), table.move(b, 1, #b - 2, 1, {})
  local out = broadcast.broadcast_shape(lead_a, lead_b, where)
  local lead = #out
  if not row then out[#out + 1] = m end
  if not column then out[#out + 1] = n end
  local axis, dtype = te.reduce_axis({ 0, k }, "k"), out_dtype or x.dtype
  -- The index of an operand: leading axes, then its own two.
  local function place(index, shape, first, second, swapped)
    local own = {}
    for i = 1, #shape do own[i] = shape[i] == 1 and 0 or index[lead - #shape + i] end
    if swapped then first, second = second, first end
    own[#own + 1] = first
    own[#own + 1] = second
    return own
  end
  return dims.compute(out, function(index)
    local i, j = index[lead + 1], index[#out]
    local left = row and { axis.var } or place(index, lead_a, i, axis.var, transpose_a)
    local right = column and { axis.var } or place(index, lead_b, axis.var, j, transpose_b)
    return te.sum(product(x[left], y[right], dtype), axis)
  end, "T_matmul", transpose_b and "dense" or "matmul")
end

--- x times a matrix that is packed in panels of columns, (panels, rows, columns of a panel).
function nn.matmul_panels(x, panels, out_dtype)
  local where = "topi.nn.matmul_panels"
  local a = dims.of(dims.tensor(x, where, "tensor_a"))
  local b = dims.of(dims.tensor(panels, where, "panels"))
  if #b ~= 3 then argument.fail(where .. ": panels of rank 3 are expected") end
  if #a < 2 then argument.fail(where .. ": the product of a matrix is expected") end
  check_reduced(a[#a], b[2], where)
  local columns = b[3]
  local axis, dtype = te.reduce_axis({ 0, b[2] }, "k"), out_dtype or x.dtype
  local out = table.move(a, 1, #a - 1, 1, {})
  out[#a] = b[1] * columns
  return dims.compute(out, function(index)
    local left, j = table.move(index, 1, #a - 1, 1, {}), index[#a]
    left[#a] = axis.var
    local right = { tir.indexdiv(j, columns), axis.var, tir.indexmod(j, columns) }
    return te.sum(product(x[left], panels[right], dtype), axis)
  end, "T_matmul", "matmul", { panel = columns })
end

--- x times the transposed matrix of weights, (units, columns of x), plus a bias.
function nn.dense(x, weight, bias, out_dtype)
  dims.tensor(x, "topi.nn.dense")
  dims.tensor(weight, "topi.nn.dense", "weight")
  local result = nn.matmul(x, weight, false, true, out_dtype)
  return bias and broadcast.add(result, bias) or result
end

--- The products of two stacks of matrices; the second are transposed unless transpose_b is false.
function nn.batch_matmul(x, y, transpose_a, transpose_b, out_dtype)
  if transpose_b == nil then transpose_b = true end
  return nn.matmul(x, y, transpose_a, transpose_b, out_dtype)
end

return nn
