-- Arithmetic of TIR, as TVM's operators and functions on PrimExprs
-- give it: dtypes are matched, constants computed, what makes no sense refused.
--
--     tir.ceildiv(n, 4)      -- (n + 4 - 1) // 4
--     tir.likely(i < 4)      -- a call of the builtin, or the condition when it is constant
--
-- perilune.tir takes these functions over.

local core = require "perilune.core"
local argument = require "perilune.argument"
core.internal()

local operand = require "perilune.tir.operand"

local expr, matched, folded, call = operand.value, operand.matched, operand.folded, operand.call
local is_float, is_integer, lanes_of = operand.is_float, operand.is_integer, operand.lanes

local math_of = {}

local function refuse(name, what, dtype)
  argument.fail(("%s: %s, not %s"):format(name, what, dtype or "this value"))
end

-- --------------------------------------------------------------- arithmetic

for name, kind in pairs {
  add = "Add", subtract = "Sub", multiply = "Mul", div = "Div", truncmod = "Mod",
  min = "Min", max = "Max", eq = "EQ", ne = "NE", lt = "LT", le = "LE", gt = "GT", ge = "GE",
} do
  math_of[name] = function(a, b) return folded(kind, matched(a, b)) end
end

-- Quotients and remainders of integers.
for name, kind in pairs {
  truncdiv = "Div", floordiv = "FloorDiv", floormod = "FloorMod",
  indexdiv = "FloorDiv", indexmod = "FloorMod",
} do
  math_of[name] = function(a, b)
    a, b = matched(a, b)
    if not is_integer(a.dtype) then refuse(name, "of integers", a.dtype) end
    return folded(kind, a, b)
  end
end

--- The quotient of integers towards plus infinity, for a positive divisor.
function math_of.ceildiv(a, b)
  a, b = matched(a, b)
  if not is_integer(a.dtype) then refuse("ceildiv", "of integers", a.dtype) end
  return math_of.floordiv(math_of.subtract(math_of.add(a, b), 1), b)
end

-- Conditions are of bools, which are not matched with anything else.
for name, kind in pairs { logical_and = "And", logical_or = "Or" } do
  math_of[name] = function(a, b) return folded(kind, expr(a), expr(b)) end
end

--- A condition negated; a constant one is computed.
function math_of.logical_not(a)
  a = expr(a)
  if a.kind == "IntImm" and a.dtype == "bool" then return operand.const(a.value == 0) end
  return operand.node("Not", { a })
end

--- All of the conditions; any of them.
function math_of.all(first, ...)
  for _, condition in ipairs { ... } do first = math_of.logical_and(first, condition) end
  return first
end

function math_of.any(first, ...)
  for _, condition in ipairs { ... } do first = math_of.logical_or(first, condition) end
  return first
end

--- One of two values, of which the other is not evaluated.
function math_of.if_then_else(condition, true_value, false_value)
  condition = expr(condition)
  if condition.dtype ~= "bool" then
    refuse("if_then_else", "its condition must be a bool", condition.dtype)
  end
  local a, b = matched(true_value, false_value)
  local known = operand.number(condition)
  if known then return known ~= 0 and a or b end
  return call(a.dtype, "if_then_else", { condition, a, b })
end

--- A condition that holds nearly always; a constant is itself.
function math_of.likely(condition)
  condition = expr(condition)
  if condition.kind == "IntImm" then return condition end
  return call(condition.dtype, "likely", { condition })
end

-- --------------------------------------------------------------------- bits

-- Constants are computed of the dtypes of indices only, as in TVM.
local function is_index(dtype) return dtype == "int32" or dtype == "int64" end

local function integers(name, a, b)
  a, b = matched(a, b)
  if not is_integer(a.dtype) then refuse(name, "of integers", a.dtype) end
  return a, b
end

for name, compute in pairs {
  bitwise_and = function(m, n) return m & n end,
  bitwise_or = function(m, n) return m | n end,
  bitwise_xor = function(m, n) return m ~ n end,
} do
  math_of[name] = function(a, b)
    a, b = integers(name, a, b)
    local m, n = operand.number(a), operand.number(b)
    if m and n and is_index(a.dtype) then return operand.const(compute(m, n), a.dtype) end
    return call(a.dtype, name, { a, b })
  end
end

--- Every bit negated.
function math_of.bitwise_not(a)
  a = expr(a)
  if not is_integer(a.dtype) then refuse("bitwise_not", "of integers", a.dtype) end
  return call(a.dtype, "bitwise_not", { a })
end

-- What has more bits than the dtype wraps, as a product does.
local function shifted_left(number, by, dtype)
  local shifted = number << by
  if dtype == "int32" then shifted = (shifted + (1 << 31) & 0xffffffff) - (1 << 31) end
  return operand.const(shifted, dtype)
end

local function shift(name, compute)
  return function(a, b)
    a, b = integers(name, a, b)
    local m, by, dtype = operand.number(a), operand.number(b), a.dtype
    if not by or not is_index(dtype) then return call(dtype, name, { a, b }) end
    if by < 0 or by >= operand.bits(dtype) then
      argument.fail(("%s: %s has no shift by %d bits"):format(name, dtype, by))
    end
    if m then return compute(m, by, dtype) end
    return by == 0 and a or call(dtype, name, { a, b })
  end
end

math_of.shift_left = shift("shift_left", shifted_left)
math_of.shift_right = shift("shift_right", function(number, by, dtype)
  return operand.const(by == 63 and (number < 0 and -1 or 0) or number // (1 << by), dtype)
end)

-- ------------------------------------------------------------------ numbers

--- x to the power of y, of floats.
function math_of.pow(x, y)
  x, y = matched(x, y)
  if not is_float(x.dtype) then refuse("pow", "of floats", x.dtype) end
  return call(x.dtype, "pow", { x, y })
end

math_of.power = math_of.pow

--- The remainder of a division of floats, with the sign of x.
function math_of.fmod(x, y)
  x, y = matched(x, y)
  if not is_float(x.dtype) then refuse("fmod", "of floats", x.dtype) end
  return call(x.dtype, "fmod", { x, y })
end

--- The number without its sign.
function math_of.abs(x)
  x = expr(x)
  local number, dtype = operand.number(x), x.dtype
  if is_float(dtype) then
    if number then return operand.const(math.abs(number), dtype) end
    return call(dtype, "fabs", { x })
  end
  if not operand.is_signed(dtype) then
    if not is_integer(dtype) then refuse("abs", "of a number", dtype) end
    return x
  end
  if number and number ~= math.mininteger then
    return operand.const(math.abs(number), dtype)
  end
  local zero = operand.const(0, dtype)
  return operand.node("Select", { math_of.ge(x, zero), x, math_of.subtract(zero, x) })
end

-- The nearest whole number; of two the even one.
local function nearest(number)
  local low = math.floor(number)
  local rest = number - low
  if rest == 0.5 then return low % 2 == 0 and low or low + 1 end
  return rest < 0.5 and low or low + 1
end

-- A float that is whole already, or no number, stays what it is.
local function whole(number, compute)
  if number ~= number or math.abs(number) >= 2 ^ 52 then return number end
  local result = compute(number) + 0.0
  return result == 0 and number < 0 and -0.0 or result
end

for name, compute in pairs {
  floor = math.floor, ceil = math.ceil, round = nearest, nearbyint = nearest,
  trunc = function(number) return number < 0 and math.ceil(number) or math.floor(number) end,
} do
  math_of[name] = function(x)
    x = expr(x)
    if is_integer(x.dtype) then return x end
    if x.kind == "FloatImm" then return operand.const(whole(x.value, compute), x.dtype) end
    return call(x.dtype, name, { x })
  end
end

local function bool_of(x) return operand.vector("bool", lanes_of(x.dtype)) end

local function number_type(name, x)
  if not is_float(x.dtype) and not is_integer(x.dtype) then
    refuse(name, "of a number", x.dtype)
  end
  return is_integer(x.dtype)
end

--- Whether a float is no number; of half floats, of what they are in single precision.
function math_of.isnan(x)
  x = expr(x)
  if number_type("isnan", x) then return operand.const(false, bool_of(x)) end
  if x.kind == "FloatImm" then return operand.const(x.value ~= x.value, bool_of(x)) end
  if operand.bits(x.dtype) == 16 then
    x = operand.cast(operand.vector("float32", lanes_of(x.dtype)), x)
  end
  return call(bool_of(x), "isnan", { x })
end

--- Whether a float is infinite: its absolute value is, and it is a number.
function math_of.isinf(x)
  x = expr(x)
  if number_type("isinf", x) then return operand.const(false, bool_of(x)) end
  return math_of.logical_and(math_of.eq(math_of.abs(x), math_of.infinity(x.dtype)),
    math_of.logical_not(math_of.isnan(x)))
end

--- Whether a float is a number and not infinite.
function math_of.isfinite(x)
  return math_of.logical_and(math_of.logical_not(math_of.isinf(x)),
    math_of.logical_not(math_of.isnan(x)))
end

--- The bits of a value as those of another dtype of the same size.
function math_of.reinterpret(dtype, x)
  x = expr(x)
  if x.dtype == dtype then return x end
  if x.dtype ~= "handle" and dtype ~= "handle"
      and operand.bits(x.dtype) * lanes_of(x.dtype) ~= operand.bits(dtype) * lanes_of(dtype) then
    argument.fail(("reinterpret: %s and %s differ in size"):format(x.dtype, dtype))
  end
  return call(dtype, "reinterpret", { x })
end

-- ------------------------------------------------------------------- limits

local single = 0x1.fffffep+127
local greatest = {
  float16 = 65504.0, float32 = single, float64 = 0x1.fffffffffffffp+1023, bfloat16 = single,
  float8_e4m3fn = 448.0, float8_e5m2 = 57344.0,
}

local function limit(name, dtype, of_float, of_integer)
  if greatest[dtype] then return operand.FloatImm(dtype, of_float(greatest[dtype])) end
  local whole_bits = is_integer(dtype) and lanes_of(dtype) == 1 and operand.bits(dtype)
  if not whole_bits then argument.fail(("%s: %s has none"):format(name, dtype)) end
  return operand.IntImm(dtype, of_integer(whole_bits))
end

--- The greatest number of a dtype, and the least.
function math_of.max_value(dtype)
  return limit("max_value", dtype, function(number) return number end, function(bits)
    if operand.is_signed(dtype) then return math.maxinteger >> (64 - bits) end
    if bits == 64 then argument.fail("max_value: that of uint64 is not an IntImm") end
    return (1 << bits) - 1
  end)
end

function math_of.min_value(dtype)
  return limit("min_value", dtype, function(number) return -number end, function(bits)
    return operand.is_signed(dtype) and -(math.maxinteger >> (64 - bits)) - 1 or 0
  end)
end

--- Infinity of a floating-point dtype.
function math_of.infinity(dtype)
  if not (is_float(dtype) and dtype:find "^float%d+$") then
    argument.fail(("infinity: %s has none"):format(dtype))
  end
  return operand.FloatImm(dtype, math.huge)
end

return math_of
