-- pl.topi: functions of one element, by TVM's names. What they compute is what the evaluator's
-- kernels do: NaN stays NaN, halves go to the even integer in `rint` and away from zero in `round`.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local dims = require "perilune.topi.dims"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local topi = {}

-- Makes topi[name] of a function of an expression and further arguments.
local function define(name, f)
  local where = "topi." .. name
  topi[name] = function(x, ...)
    dims.tensor(x, where)
    local rest = table.pack(...)
    return dims.compute(dims.of(x), function(index)
      return f(x[index], table.unpack(rest, 1, rest.n))
    end, "T_" .. name, "elemwise")
  end
end

local function select(condition, a, b) return tir.Select(condition, a, b) end

local function as(x, number) return operand.const(number, x.dtype) end

-- A function of floats; others are refused.
local function define_float(name, f)
  define(name, function(x, ...)
    if not operand.is_float(x.dtype) then
      argument.fail(("topi.%s: of floats, not %s"):format(name, x.dtype))
    end
    return f(x, ...)
  end)
end

for _, name in ipairs {
  "exp", "log", "log2", "log10", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "sin", "cos", "tan",
  "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
} do
  define_float(name, tir[name])
end

for _, name in ipairs { "floor", "ceil", "trunc", "abs", "isnan", "isinf", "isfinite" } do
  define(name, tir[name])
end

topi.fast_exp, topi.fast_tanh, topi.fast_erf = topi.exp, topi.tanh, topi.erf

define("rint", tir.nearbyint)

-- Exact: a half that is added may round up by itself.
define("round", function(x)
  local whole = tir.trunc(x)
  local rest = tir.abs(tir.subtract(x, whole))
  local step = select(tir.lt(x, as(x, 0)), as(x, -1), as(x, 1))
  return select(tir.ge(rest, as(x, 0.5)), tir.add(whole, step), whole)
end)

define("identity", function(x) return x end)

define("negative", function(x)
  if operand.is_float(x.dtype) then return tir.multiply(x, as(x, -1)) end
  return tir.subtract(as(x, 0), x)
end)

-- NaN has no sign, as it is neither greater nor less.
define("sign", function(x)
  return select(tir.gt(x, as(x, 0)), as(x, 1), select(tir.lt(x, as(x, 0)), as(x, -1), x))
end)

define_float("reciprocal", function(x) return tir.div(as(x, 1), x) end)

define("logical_not", function(x) return tir.logical_not(x) end)

define("bitwise_not", tir.bitwise_not)

--- The element as another dtype.
local cast = function(x, dtype)
  if dtype == x.dtype then return x end
  if dtype == "bool" then return tir.ne(x, as(x, 0)) end
  return operand.cast(dtype, x)
end

function topi.cast(x, dtype)
  dims.tensor(x, "topi.cast")
  argument.string(dtype, "topi.cast", "dtype")
  return dims.compute(dims.of(x), function(index) return cast(x[index], dtype) end, "T_cast",
    "elemwise")
end

-- A limit that is nil is none; where limits cross, the upper one applies.
define("clip", function(x, least, most)
  local result = x
  if least ~= nil then
    least = dims.expr(least, x.dtype)
    result = select(tir.lt(x, least), least, x)
  end
  if most ~= nil then
    most = dims.expr(most, x.dtype)
    result = select(tir.gt(result, most), most, result)
  end
  return result
end)

--- A tensor of one value.
function topi.full(shape, dtype, value)
  argument.string(dtype, "topi.full", "dtype")
  shape = dims.list(shape, nil, "topi.full", "shape")
  value = dims.expr(value, dtype)
  return dims.compute(shape, function() return value end, "T_full", "elemwise")
end

function topi.full_like(x, value)
  return topi.full(dims.of(dims.tensor(x, "topi.full_like")), x.dtype, value)
end

topi.define, topi.define_float = define, define_float

return topi
