-- pl.topi.nn: activation functions, by TVM's names; NaN stays NaN.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local dims = require "perilune.topi.dims"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local nn = {}

local function as(x, number)
  return operand.const(dims.number(number, nil, "topi.nn", "a parameter"), x.dtype)
end

local function define(name, f)
  nn[name] = function(x, ...)
    dims.tensor(x, "topi.nn." .. name)
    local rest = table.pack(...)
    if not operand.is_float(x.dtype) and not (name == "relu" and operand.is_signed(x.dtype)) then
      argument.fail(("topi.nn.%s: of floats, not %s"):format(name, x.dtype))
    end
    return dims.compute(dims.of(x), function(index)
      return f(x[index], table.unpack(rest, 1, rest.n))
    end, "T_" .. name, "elemwise")
  end
end

-- exp is applied to what is not positive, so that it does not overflow.
local function sigmoid(x)
  local e = tir.exp(tir.subtract(as(x, 0), tir.abs(x)))
  return tir.div(tir.Select(tir.lt(x, as(x, 0)), e, as(x, 1)), tir.add(e, as(x, 1)))
end

local function softplus(x)
  local tail = tir.log(tir.add(tir.exp(tir.subtract(as(x, 0), tir.abs(x))), as(x, 1)))
  return tir.Select(tir.gt(x, as(x, 0)), tir.add(x, tail), tail)
end

-- Limited to [0, 1].
local function unit(y)
  return tir.Select(tir.lt(y, as(y, 0)), as(y, 0), tir.Select(tir.gt(y, as(y, 1)), as(y, 1), y))
end

local function expm1(x) return tir.subtract(tir.exp(x), as(x, 1)) end

-- f of what is negative, g of the rest.
local function by_sign(x, f, g) return tir.Select(tir.lt(x, as(x, 0)), f, g) end

define("relu", function(x) return by_sign(x, as(x, 0), x) end)
define("sigmoid", sigmoid)
define("leaky_relu", function(x, alpha)
  return by_sign(x, tir.multiply(x, as(x, alpha or 0.01)), x)
end)
define("elu", function(x, alpha)
  return by_sign(x, tir.multiply(expm1(x), as(x, alpha or 1)), x)
end)
define("celu", function(x, alpha)
  return by_sign(x, tir.multiply(expm1(tir.div(x, as(x, alpha or 1))), as(x, alpha or 1)), x)
end)
define("selu", function(x, alpha, gamma)
  return tir.multiply(by_sign(x, tir.multiply(expm1(x), as(x, alpha or 1.67326319217681884765625)),
    x), as(x, gamma or 1.05070102214813232421875))
end)
define("gelu", function(x)
  local e = tir.erf(tir.multiply(x, as(x, 0.70710678118654752440)))
  return tir.multiply(tir.multiply(x, as(x, 0.5)), tir.add(e, as(x, 1)))
end)
define("gelu_tanh", function(x)
  local cube = tir.multiply(tir.multiply(x, x), tir.multiply(x, as(x, 0.044715)))
  local t = tir.tanh(tir.multiply(tir.add(x, cube), as(x, 0.79788456080286535588)))
  return tir.multiply(tir.multiply(x, as(x, 0.5)), tir.add(t, as(x, 1)))
end)
define("hard_sigmoid", function(x, alpha, beta)
  return unit(tir.add(tir.multiply(x, as(x, alpha or 0.2)), as(x, beta or 0.5)))
end)
define("hard_swish", function(x)
  return tir.multiply(x, unit(tir.add(tir.div(x, as(x, 6)), as(x, 0.5))))
end)
define("softplus", softplus)
define("mish", function(x) return tir.multiply(x, tir.tanh(softplus(x))) end)
define("softsign", function(x) return tir.div(x, tir.add(tir.abs(x), as(x, 1))) end)
define("silu", function(x, alpha)
  return tir.multiply(x, sigmoid(tir.multiply(x, as(x, alpha or 1))))
end)
define("thresholded_relu", function(x, alpha)
  return tir.Select(tir.gt(x, as(x, alpha or 1)), x, as(x, 0))
end)
define("shrink", function(x, bias, lambd)
  bias, lambd = as(x, bias or 0), dims.number(lambd, 0.5, "topi.nn.shrink", "lambd")
  return tir.Select(tir.lt(x, as(x, -lambd)), tir.add(x, bias),
    tir.Select(tir.gt(x, as(x, lambd)), tir.subtract(x, bias), as(x, 0)))
end)

return nn
