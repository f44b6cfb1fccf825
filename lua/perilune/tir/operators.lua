-- What Lua's operators do to PrimExprs. Called by the operators of nodes (perilune.ir).

local core = require "perilune.core"
core.internal()
local argument = require "perilune.argument"
local math = require "perilune.tir.math"
local operand = require "perilune.tir.operand"

-- A tensor (perilune.te) as the second operand has the operator.
local function with_tensors(event, f)
  return function(a, b)
    local meta = type(b) == "table" and getmetatable(b)
    if meta and meta.__name == "perilune.te.Tensor" then return meta[event](a, b) end
    return f(a, b)
  end
end

local operators = {
  __add = math.add,
  __sub = math.subtract,
  __mul = math.multiply,
  __div = function(a, b)
    a, b = operand.matched(a, b)
    if not operand.is_float(a.dtype) then
      argument.fail("division of integers is ambiguous: use a // b, tir.truncdiv or tir.div")
    end
    return math.div(a, b)
  end,
  __idiv = math.floordiv,
  __mod = math.floormod,
  __pow = math.pow,
  __unm = function(a) return math.multiply(a, -1) end,
  __band = math.bitwise_and,
  __bor = math.bitwise_or,
  __bxor = math.bitwise_xor,
  __shl = math.shift_left,
  __shr = math.shift_right,
  __bnot = function(a) return math.bitwise_not(a) end,
}
for _, event in ipairs { "__add", "__sub", "__mul", "__div" } do
  operators[event] = with_tensors(event, operators[event])
end

return operators
