-- Computes of element-wise and broadcasting operators.

local core = require "perilune.core"
core.internal()

local activation = require "perilune.topi.nn.activation"
local broadcast = require "perilune.topi.broadcast"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local operand = require "perilune.tir.operand"

local compute = {}

local is_float = operand.is_float

-- Whether the operands are floats or integers, not bools.
local function of_numbers(f)
  return function(attrs, inputs, out_type, args)
    for _, x in ipairs(inputs) do
      if x and x.dtype == "bool" then return nil, "arithmetic of bools" end
    end
    return f(attrs, inputs, out_type, args)
  end
end

local function unary(name, f)
  compute[name] = function(_, inputs) return f(inputs[1]) end
end

local function unary_of_floats(name, f)
  compute[name] = function(_, inputs)
    if not is_float(inputs[1].dtype) then return nil, "not of floats" end
    return f(inputs[1])
  end
end

for _, name in ipairs {
  "exp", "log", "log2", "log10", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos", "tan", "asin",
  "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "reciprocal", "floor", "ceil",
  "trunc", "fast_exp", "fast_tanh", "fast_erf",
} do
  unary_of_floats(name, elementwise[name])
end
unary_of_floats("sigmoid", activation.sigmoid)

for _, name in ipairs { "abs", "sign", "negative" } do
  compute[name] = of_numbers(function(_, inputs) return elementwise[name](inputs[1]) end)
end
for _, name in ipairs { "isnan", "isfinite", "logical_not", "bitwise_not" } do
  unary(name, elementwise[name])
end
unary("copy", elementwise.identity)
unary("annotation.stop_fusion", elementwise.identity)

compute.round = function(attrs, inputs)
  if attrs.relay == 1 then return elementwise.round(inputs[1]) end
  return elementwise.rint(inputs[1])
end

compute.isinf = function(attrs, inputs)
  local x = inputs[1]
  local signs = { attrs.detect_negative ~= 0, attrs.detect_positive ~= 0 }
  if signs[1] and signs[2] then return elementwise.isinf(x) end
  if not signs[1] and not signs[2] then return elementwise.full(dims.of(x), "bool", false) end
  local bound = operand.const(0, x.dtype)
  local side = signs[1] and broadcast.less(x, bound) or broadcast.greater(x, bound)
  return broadcast.logical_and(elementwise.isinf(x), side)
end

-- Of unsigned integers. Beyond the width nothing is left.
compute.bit_shift = function(attrs, inputs)
  local x, y = inputs[1], inputs[2]
  local bits = math.tointeger(tonumber(x.dtype:match "^uint(%d+)$"))
  local shift = attrs.direction == "LEFT" and broadcast.left_shift
    or attrs.direction == "RIGHT" and broadcast.right_shift
  if not bits or not shift then return nil, "this dtype or direction" end
  local most = operand.const(bits - 1, y.dtype)
  return broadcast.where(broadcast.greater(y, most), elementwise.full_like(x, 0),
    shift(x, broadcast.minimum(y, most)))
end

-- Activations: the names of their attributes, in order.
for name, keys in pairs {
  relu = {}, leaky_relu = { "alpha" }, elu = { "alpha" }, celu = { "alpha" },
  selu = { "alpha", "gamma" }, hard_sigmoid = { "alpha", "beta" }, hard_swish = {},
  softplus = {}, mish = {}, softsign = {}, silu = { "alpha" }, thresholded_relu = { "alpha" },
  shrink = { "bias", "lambd" },
} do
  compute["nn." .. name] = function(attrs, inputs)
    return activation[name](inputs[1], attrs[keys[1]], attrs[keys[2]])
  end
end

compute["nn.gelu"] = function(attrs, inputs)
  return (attrs.approximate == "tanh" and activation.gelu_tanh or activation.gelu)(inputs[1])
end

-- ----------------------------------------------------------------- broadcast

for _, name in ipairs { "add", "subtract", "multiply", "divide" } do
  compute[name] = of_numbers(function(_, inputs)
    return broadcast[name](inputs[1], inputs[2])
  end)
end

for _, name in ipairs {
  "floor_divide", "floor_mod", "trunc_divide", "trunc_mod", "bitwise_and", "bitwise_or",
  "bitwise_xor", "logical_and", "logical_or", "logical_xor",
} do
  compute[name] = function(_, inputs) return broadcast[name](inputs[1], inputs[2]) end
end

for _, name in ipairs {
  "equal", "not_equal", "greater", "greater_equal", "less", "less_equal",
} do
  compute[name] = function(_, inputs) return broadcast[name](inputs[1], inputs[2]) end
end

compute.mod = of_numbers(function(attrs, inputs)
  local f = attrs.fmod == 1 and broadcast.mod or broadcast.floor_mod
  return f(inputs[1], inputs[2])
end)

-- Integers to the power of a constant that is not large.
local function whole_power(x, arg)
  local n = arg.constant and arg.constant:to_table()
  if type(n) == "table" then n = #n == 1 and n[1] end
  if math.type(n) ~= "integer" or n < 0 or n > 64 then return nil end
  local result, base = elementwise.full_like(x, 1), x
  while n > 0 do
    if n % 2 == 1 then result = broadcast.multiply(result, base) end
    n = n // 2
    if n > 0 then base = broadcast.multiply(base, base) end
  end
  return result
end

compute.power = function(_, inputs, out_type, args)
  local x, y = inputs[1], inputs[2]
  if is_float(x.dtype) then
    return broadcast.power(x, y.dtype == x.dtype and y or elementwise.cast(y, x.dtype))
  end
  if is_float(y.dtype) and (out_type.dtype == "int32" or out_type.dtype == "int64") then
    return elementwise.cast(broadcast.power(elementwise.cast(x, "float64"),
      elementwise.cast(y, "float64")), out_type.dtype)
  end
  local power = y.ndim <= x.ndim and whole_power(x, args[2])
  if not power then return nil, "integers to a power that is not a small constant" end
  return power
end

-- Of any number of operands.
for name, f in pairs { maximum = "maximum", minimum = "minimum", add_n = "add" } do
  compute[name] = of_numbers(function(_, inputs)
    local result = inputs[1]
    for i = 2, #inputs do result = broadcast[f](result, inputs[i]) end
    return result == inputs[1] and elementwise.identity(result) or result
  end)
end

compute.where = function(_, inputs) return broadcast.where(inputs[1], inputs[2], inputs[3]) end

compute.broadcast_to = function(_, inputs, out_type)
  return broadcast.broadcast_to(inputs[1], out_type.shape)
end
compute.broadcast_to_like = compute.broadcast_to

compute["nn.bias_add"] = function(attrs, inputs)
  local rank = inputs[1].ndim
  local axis = (attrs.axis or 1) % rank
  local shape = {}
  for i = 1, rank - axis do shape[i] = 1 end
  shape[1] = dims.of(inputs[2])[1]
  return broadcast.add(inputs[1], require "perilune.topi.transform".reshape(inputs[2], shape))
end

compute["nn.prelu"] = function(attrs, inputs)
  local x, slope = inputs[1], inputs[2]
  if attrs.axis ~= nil then
    local shape = {}
    for i = 1, x.ndim - attrs.axis % x.ndim do shape[i] = 1 end
    shape[1] = dims.of(slope)[1]
    slope = require "perilune.topi.transform".reshape(slope, shape)
  end
  local zero = operand.const(0, x.dtype)
  return broadcast.where(broadcast.less(x, zero), broadcast.multiply(x, slope), x)
end

-- ------------------------------------------------------------------- others

local function floats_to_integers(from, to)
  return is_float(from) and operand.is_integer(to) and to ~= "bool"
end

-- What floats become before they become these: conversions to narrow integers are not defined.
local wider = { int8 = "int32", uint8 = "int32", int16 = "int32", uint16 = "int32",
  uint32 = "int64" }

compute.cast = function(_, inputs, out_type)
  local x, to = inputs[1], out_type.dtype
  if floats_to_integers(x.dtype, to) and to ~= "int32" and to ~= "int64" then
    if not wider[to] then return nil, ("from %s to %s"):format(x.dtype, to) end
    x = elementwise.cast(x, wider[to])
  end
  return elementwise.cast(x, to)
end
compute.cast_like = compute.cast

-- A limit is an attribute, a constant operand, or an operand of one element.
local function limit(attr, arg, input)
  if not input then return attr end
  local value = arg.constant and arg.constant:to_table()
  if value == nil then return dims.first_element(input) end
  return type(value) == "table" and value[1] or value
end

-- Relay has floats as limits of integers too. One that is outside of the dtype limits nothing.
local function whole_limit(value, dtype)
  if math.type(value) ~= "float" or is_float(dtype) then return value end
  local whole = math.tointeger(value < 0 and math.ceil(value) or math.floor(value))
  local bits = math.tointeger(tonumber(dtype:match "%d+$")) - (dtype:find "^u" and 0 or 1)
  if not whole or bits < 62 and (whole >= 1 << bits or whole < (dtype:find "^u" and 0
      or -(1 << bits))) then
    return nil
  end
  return whole
end

compute.clip = function(attrs, inputs, _, args)
  local dtype = inputs[1].dtype
  return elementwise.clip(inputs[1], whole_limit(limit(attrs.a_min, args[2], inputs[2]), dtype),
    whole_limit(limit(attrs.a_max, args[3], inputs[3]), dtype))
end

-- Of inference: the operand itself, and a mask that keeps all.
compute["nn.dropout"] = function(_, inputs, out_type, args)
  local training = args[3].constant and args[3].constant:to_table()
  if inputs[3] and (training == nil or training == true) then return nil, "training" end
  local y = elementwise.identity(inputs[1])
  if out_type.kind ~= "tuple" then return y end
  local mask = out_type.parts[2]
  return { y, mask and elementwise.full(mask.shape, mask.dtype,
    mask.dtype == "bool" and true or 1) }
end

local function filled(value)
  return function(_, _, out_type)
    return elementwise.full(out_type.shape, out_type.dtype, value)
  end
end

-- One value, as a tensor of no dimensions or one element.
local function fill(x, out_type)
  return elementwise.cast(dims.compute(out_type.shape, function()
    return dims.first_element(x)
  end, "T_full", "elemwise"), out_type.dtype)
end

-- start + i * step; the number of elements is that of the type.
compute.arange = function(_, inputs, out_type)
  local function number(x, default)
    return x and fill(x, { shape = {}, dtype = out_type.dtype })[{}] or default
  end
  return dims.compute(out_type.shape, function(index)
    local step = number(inputs[3], operand.const(1, out_type.dtype))
    return number(inputs[1], operand.const(0, out_type.dtype))
      + operand.cast(out_type.dtype, index[1]) * step
  end, "T_arange", "injective")
end

for name, value in pairs { zeros = 0, zeros_like = 0, ones = 1, ones_like = 1 } do
  compute[name] = filled(value)
end

compute.constant_of_shape = function(attrs, _, out_type)
  local value = 0
  if attrs.value then value = attrs.value:to_table() end
  if type(value) == "table" then value = value[1] end
  return elementwise.full(out_type.shape, out_type.dtype, value)
end

compute.full = function(_, inputs, out_type) return fill(inputs[1], out_type) end
compute.full_like = function(_, inputs, out_type) return fill(inputs[2], out_type) end

return compute
