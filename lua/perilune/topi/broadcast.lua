-- pl.topi: functions of two operands that broadcast, by TVM's names. An operand may be a number or
-- an expression; of two of those the result is an expression.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local dims = require "perilune.topi.dims"
local operand = require "perilune.tir.operand"
local operation = require "perilune.te.operation"
local tir = require "perilune.tir"

local topi = {}

-- One dimension of the result: an extent of 1 gives way; expressions are taken to be equal.
local function joined(a, b, where)
  if a == 1 then return b end
  if b == 1 or a == b then return a end
  if not dims.agree(a, b) then
    argument.fail(("%s: extents %s and %s do not broadcast"):format(where, a, b))
  end
  return type(a) == "number" and a or b
end

--- The shape that two shapes broadcast to.
local function broadcast_shape(a, b, where)
  local rank, shape = math.max(#a, #b), {}
  for i = 0, rank - 1 do
    shape[rank - i] = joined(a[#a - i] or 1, b[#b - i] or 1, where)
  end
  return shape
end

-- The element of x for an index of the result.
local function element(x, shape, index)
  local own, skipped = {}, #index - #shape
  for i, dim in ipairs(shape) do own[i] = dim == 1 and 0 or index[skipped + i] end
  return x[own]
end

topi.broadcast_shape, topi.broadcast_element = broadcast_shape, element

local function read(x, shape, index)
  if shape then return element(x, shape, index) end
  return x
end

local function shape_of(x)
  return operation.is_tensor(x) and dims.of(x) or nil
end

local function check_operand(x, where, what)
  local kind = argument.kind_of(x)
  if kind ~= "Node" and kind ~= "number" and kind ~= "boolean" and not operation.is_tensor(x) then
    argument.fail(("%s: %s: a te.Tensor, an expression or a number expected, got %s"):format(where,
      what, kind))
  end
end

local function define(name, f)
  local where = "topi." .. name
  topi[name] = function(lhs, rhs)
    check_operand(lhs, where, "lhs")
    check_operand(rhs, where, "rhs")
    local a, b = shape_of(lhs), shape_of(rhs)
    if not a and not b then return f(lhs, rhs) end
    local dtype = a and lhs.dtype or rhs.dtype
    if not a then lhs = dims.expr(lhs, dtype) end
    if not b then rhs = dims.expr(rhs, dtype) end
    return dims.compute(broadcast_shape(a or {}, b or {}, where), function(index)
      return f(read(lhs, a, index), read(rhs, b, index))
    end, "T_" .. name, "broadcast")
  end
end

local function by_class(of_float, of_integer)
  return function(a, b)
    a, b = operand.matched(a, b)
    return (operand.is_float(a.dtype) and of_float or of_integer)(a, b)
  end
end

define("add", tir.add)
define("subtract", tir.subtract)
define("multiply", tir.multiply)
define("divide", tir.div)
define("floor_divide", by_class(function(a, b) return tir.floor(tir.div(a, b)) end, tir.floordiv))
define("trunc_divide", by_class(function(a, b) return tir.trunc(tir.div(a, b)) end, tir.truncdiv))
define("mod", by_class(tir.fmod, tir.truncmod))
define("trunc_mod", by_class(tir.fmod, tir.truncmod))
define("floor_mod", by_class(function(a, b)
  return tir.subtract(a, tir.multiply(tir.floor(tir.div(a, b)), b))
end, tir.floormod))
define("power", tir.pow)
define("left_shift", tir.shift_left)
define("right_shift", tir.shift_right)
define("bitwise_and", tir.bitwise_and)
define("bitwise_or", tir.bitwise_or)
define("bitwise_xor", tir.bitwise_xor)
define("logical_and", tir.logical_and)
define("logical_or", tir.logical_or)
define("logical_xor", function(a, b)
  return tir.logical_or(tir.logical_and(a, tir.logical_not(b)),
    tir.logical_and(tir.logical_not(a), b))
end)

for name, compare in pairs {
  equal = "eq", not_equal = "ne", greater = "gt", greater_equal = "ge", less = "lt",
  less_equal = "le",
} do
  define(name, tir[compare])
end

-- NaN if one is NaN.
define("maximum", function(a, b)
  a, b = operand.matched(a, b)
  return tir.Select(dims.keeps_greater(a, b), a, b)
end)
define("minimum", function(a, b)
  a, b = operand.matched(a, b)
  return tir.Select(dims.keeps_less(a, b), a, b)
end)

--- The tensor repeated along axes of extent 1, and along new ones in front.
function topi.broadcast_to(x, shape)
  dims.tensor(x, "topi.broadcast_to")
  dims.list(shape, nil, "topi.broadcast_to", "shape")
  local own = dims.of(x)
  if #own > #shape then
    argument.fail(("topi.broadcast_to: rank %d does not broadcast to rank %d"):format(#own, #shape))
  end
  for i, dim in ipairs(own) do joined(dim, shape[#shape - #own + i], "topi.broadcast_to") end
  return dims.compute(shape, function(index) return element(x, own, index) end, "T_broadcast_to",
    "broadcast")
end

--- Elements of x where the condition holds (is not 0), else of y.
function topi.where(condition, x, y)
  dims.tensor(condition, "topi.where", "condition")
  dims.tensor(x, "topi.where", "x")
  dims.tensor(y, "topi.where", "y")
  local c, a, b = dims.of(condition), dims.of(x), dims.of(y)
  local shape = broadcast_shape(c, broadcast_shape(a, b, "topi.where"), "topi.where")
  return dims.compute(shape, function(index)
    local holds = element(condition, c, index)
    if holds.dtype ~= "bool" then holds = tir.ne(holds, operand.const(0, holds.dtype)) end
    return tir.Select(holds, element(x, a, index), element(y, b, index))
  end, "T_where", "broadcast")
end

return topi
