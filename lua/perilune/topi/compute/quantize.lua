-- Computes of quantised operators. As in the evaluator's kernels, scaling is computed in float32,
-- quotients are rounded to nearest, ties to even, and saturate; products are summed in int32.

local core = require "perilune.core"
core.internal()

local broadcast = require "perilune.topi.broadcast"
local conv = require "perilune.topi.nn.conv"
local dense = require "perilune.topi.nn.dense"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local operand = require "perilune.tir.operand"
local te = require "perilune.te"
local tir = require "perilune.tir"
local transform = require "perilune.topi.transform"
local window = require "perilune.topi.compute.window"

local compute = {}

-- The least and the greatest integer of the dtypes that are quantised to.
local ranges = { int8 = { -128, 127 }, uint8 = { 0, 255 }, int16 = { -32768, 32767 },
  uint16 = { 0, 65535 } }

local function single(value) return operand.const(value, "float32") end

local function to_float(value) return operand.cast("float32", value) end

-- ------------------------------------------------------------------ scaling

-- A function from the index of an element to the index of its scale: one for the tensor, one for
-- each index of an axis, or one for each block along it. nil where shapes do not agree.
local function place(attrs, x, scale)
  local shape, axis, block = dims.of(scale), attrs.axis or 1, attrs.block_size or 0
  if block == 0 and #shape <= 1 and (shape[1] or 1) == 1 then
    return function() return #shape == 0 and {} or { 0 } end
  end
  if axis < -x.ndim or axis >= x.ndim then return nil end
  axis = axis % x.ndim + 1
  if block == 0 then
    if #shape ~= 1 or shape[1] ~= dims.of(x)[axis] then return nil end
    return function(index) return { index[axis] } end
  end
  if #shape ~= x.ndim or block < 0 then return nil end
  return function(index)
    local own = table.move(index, 1, #index, 1, {})
    own[axis] = tir.indexdiv(index[axis], block)
    return own
  end
end

-- Functions from an index to the scale and the zero point as float32; nil and a reason.
local function parameters(attrs, inputs)
  local x, scale, zero = inputs[1], inputs[2], inputs[3]
  local of_scale = place(attrs, x, scale)
  local of_zero = zero and place(attrs, x, zero)
  if not of_scale or (zero and not of_zero) then return nil, "scales of this shape" end
  return function(index) return to_float(scale[of_scale(index)]) end,
    function(index) return zero and to_float(zero[of_zero(index)]) or single(0) end
end

-- x / scale + zero as an integer between two limits. No number is the least one.
local function quantized(x, scale, zero, dtype)
  local low, high = single(ranges[dtype][1]) - zero, single(ranges[dtype][2]) - zero
  local y = x / scale
  y = tir.Select(tir.ge(y, low), y, low)
  y = tir.Select(tir.gt(y, high), high, y)
  local whole = operand.cast("int32", tir.nearbyint(y)) + operand.cast("int32", zero)
  return operand.cast(dtype, whole)
end

compute.quantize_linear = function(attrs, inputs, out_type)
  local x, dtype = inputs[1], out_type.dtype
  if not ranges[dtype] then return nil, "to " .. dtype end
  local scale_at, zero_at = parameters(attrs, inputs)
  if not scale_at then return nil, zero_at end
  return dims.compute(dims.of(x), function(index)
    return quantized(to_float(x[index]), scale_at(index), zero_at(index), dtype)
  end, "T_quantize", "elemwise")
end

compute.dequantize_linear = function(attrs, inputs, out_type)
  local x = inputs[1]
  if not ranges[x.dtype] and x.dtype ~= "int32" then return nil, "from " .. x.dtype end
  local scale_at, zero_at = parameters(attrs, inputs)
  if not scale_at then return nil, zero_at end
  return dims.compute(dims.of(x), function(index)
    local value = (to_float(x[index]) - zero_at(index)) * scale_at(index)
    return operand.cast(out_type.dtype, value)
  end, "T_dequantize", "elemwise")
end

-- The extremes of all elements and 0; what is no number is neither.
local extremes = {
  min = te.comm_reducer(function(a, b) return tir.Select(tir.lt(b, a), b, a) end,
    function() return single(0) end, "least"),
  max = te.comm_reducer(function(a, b) return tir.Select(tir.gt(b, a), b, a) end,
    function() return single(0) end, "greatest"),
}

local function extreme(x, name)
  local axes, index = {}, {}
  for i, dim in ipairs(dims.of(x)) do
    axes[i] = te.reduce_axis({ 0, dim }, "k" .. i)
    index[i] = axes[i].var
  end
  return dims.compute({}, function()
    if #axes == 0 then
      return name == "min" and tir.min(x[index], single(0)) or tir.max(x[index], single(0))
    end
    return extremes[name](x[index], axes)
  end, "T_" .. name, "comm_reduce")
end

compute.dynamic_quantize_linear = function(_, inputs, out_type)
  local x = inputs[1]
  if x.dtype ~= "float32" then return nil, "of " .. x.dtype end
  local low, high = extreme(x, "min"), extreme(x, "max")
  local scale = dims.compute({}, function()
    local l, h = low[{}], high[{}]
    return tir.Select(tir.eq(l, h), single(1), (h - l) / single(255))
  end, "T_scale", "elemwise")
  local zero = dims.compute({}, function()
    local z = single(0) - low[{}] / scale[{}]
    z = tir.Select(tir.lt(z, single(255)), z, single(255))
    z = tir.Select(tir.lt(z, single(0)), single(0), z)
    return operand.cast("uint8", operand.cast("int32", tir.nearbyint(z)))
  end, "T_zero_point", "elemwise")
  local y = dims.compute(dims.of(x), function(index)
    return quantized(x[index], scale[{}], to_float(zero[{}]), "uint8")
  end, "T_quantize", "elemwise")
  if out_type.kind ~= "tuple" then return y end
  return table.move({ y, scale, zero }, 1, #out_type.parts, 1, {})
end

-- ----------------------------------------------------------------- products

local function is_byte(x) return x.dtype == "int8" or x.dtype == "uint8" end

local function to_int32(x) return elementwise.cast(x, "int32") end

-- An operand minus its zero points, which have `shape` where they are a list.
local function centred(x, zero, shape)
  if not zero then return to_int32(x) end
  local own = dims.of(zero)
  if #own == 1 and own[1] ~= 1 then zero = transform.reshape(zero, shape) end
  if #own == 1 and own[1] == 1 then zero = transform.reshape(zero, {}) end
  return broadcast.subtract(to_int32(x), to_int32(zero))
end

compute.matmul_integer = function(_, inputs, out_type)
  local a, b, a_zero = inputs[1], inputs[2], inputs[3]
  if not is_byte(a) or not is_byte(b) or out_type.dtype ~= "int32" then
    return nil, ("of %s and %s"):format(a.dtype, b.dtype)
  end
  if a.ndim == 1 and a_zero and a_zero.ndim == 1 and dims.of(a_zero)[1] ~= 1 then
    return nil, "zero points of a vector"
  end
  return dense.matmul(centred(a, a_zero, { -1, 1 }), centred(b, inputs[4], { -1 }), false, false,
    "int32")
end

local function integer_conv(attrs, x, weight, x_zero, weight_zero)
  local shape, kernel = dims.of(x), dims.of(weight)
  local n = #shape - 2
  if n < 1 or n > 3 then return nil, ("of rank %d"):format(#shape) end
  local by_output = { -1 }
  for i = 2, #kernel do by_output[i] = 1 end
  local padding = window.onnx_padding(attrs, shape, table.move(kernel, 3, #kernel, 1, {}))
  return conv[("conv%dd"):format(n)](centred(x, x_zero, by_output),
    centred(weight, weight_zero, by_output), window.none_if_empty(attrs.strides), padding,
    window.none_if_empty(attrs.dilations), attrs.group or 1)
end

compute.conv_integer = function(attrs, inputs, out_type)
  local x, weight = inputs[1], inputs[2]
  if not is_byte(x) or not is_byte(weight) or out_type.dtype ~= "int32" then
    return nil, ("of %s and %s"):format(x.dtype, weight.dtype)
  end
  return integer_conv(attrs, x, weight, inputs[3], inputs[4])
end

-- ---------------------------------------------------------- quantised results

local function is_single(x) return x.ndim == 0 or x.ndim == 1 and dims.of(x)[1] == 1 end

local function single_of(x) return to_float(x.ndim == 0 and x[{}] or x[{ 0 }]) end

-- int32 sums as the quantised result of (x, scale, zero, w, scale, zero, scale, zero, bias): the
-- scales of w, if several, and the bias are by the axis of the result.
local function requantized(sum, inputs, out_type, axis)
  local x_scale, w_scale, y_scale, y_zero = inputs[2], inputs[5], inputs[7], inputs[8]
  local bias = inputs[9]
  return dims.compute(out_type.shape, function(index)
    local at = index[axis]
    local of_w = is_single(w_scale) and single_of(w_scale) or to_float(w_scale[{ at }])
    local scale, zero = single_of(x_scale) * of_w / single_of(y_scale), single_of(y_zero)
    local total = sum[index]
    if bias then total = total + bias[{ at }] end
    local low, high = ranges[out_type.dtype][1], ranges[out_type.dtype][2]
    local value = to_float(total) * scale
    value = tir.max(value, single(low) - zero)
    value = tir.min(value, single(high) - zero)
    return operand.cast(out_type.dtype, operand.cast("int32", tir.nearbyint(value) + zero))
  end, "T_requantize", "injective")
end

-- Whether operands are bytes, and all but the weights have one scale; else why not.
local function check_quantized(inputs, out_type, extent)
  for _, i in ipairs { 1, 4 } do
    if not is_byte(inputs[i]) then return "of " .. inputs[i].dtype end
  end
  if out_type.dtype ~= "int8" and out_type.dtype ~= "uint8" then return "to " .. out_type.dtype end
  for _, i in ipairs { 2, 3, 7, 8 } do
    if not is_single(inputs[i]) then return "several scales of operand " .. i - 1 end
  end
  local weights = inputs[5]
  if not is_single(weights) and (weights.ndim ~= 1 or dims.of(weights)[1] ~= extent) then
    return "scales of this shape"
  end
end

compute.qlinear_matmul = function(_, inputs, out_type)
  local a, b = inputs[1], inputs[4]
  if a.ndim < 2 or b.ndim < 2 then return nil, "of a vector" end
  local reason = check_quantized(inputs, out_type, dims.of(b)[b.ndim])
  if reason then return nil, reason end
  local sum = dense.matmul(centred(a, inputs[3], { -1, 1 }), centred(b, inputs[6], { -1 }), false,
    false, "int32")
  return requantized(sum, inputs, out_type, out_type.rank)
end

compute.qlinear_conv = function(attrs, inputs, out_type)
  local reason = check_quantized(inputs, out_type, dims.of(inputs[4])[1])
  if reason then return nil, reason end
  local sum, why = integer_conv(attrs, inputs[1], inputs[4], inputs[3], inputs[6])
  if not sum then return nil, why end
  return requantized(sum, inputs, out_type, 2)
end

-- ------------------------------------------------------- fixed-point numbers

-- x * multiplier * 2^(shift - 31), halves rounded up; all are expressions of int64.
local function fixed_point(x, multiplier, shift)
  local zero, one = operand.const(0, "int64"), operand.const(1, "int64")
  local left = tir.max(shift, zero)
  local right = operand.const(31, "int64") + left - shift
  local product = tir.shift_left(x, left) * multiplier
  return tir.shift_right(product + tir.shift_left(one, right - one), right)
end

local function to_int64(value) return operand.cast("int64", value) end

compute.fixed_point_multiply = function(attrs, inputs)
  local x = inputs[1]
  if x.dtype ~= "int32" then return nil, "of " .. x.dtype end
  return dims.compute(dims.of(x), function(index)
    return operand.cast("int32", fixed_point(to_int64(x[index]),
      operand.const(attrs.multiplier or 0, "int64"), operand.const(attrs.shift or 0, "int64")))
  end, "T_fixed_point_multiply", "elemwise")
end

-- (x, multipliers, left shifts, right shifts), vectors along the axis.
compute.fixed_point_multiply_per_axis = function(attrs, inputs)
  local x, axes = inputs[1], attrs.axes or {}
  if x.dtype ~= "int32" or #axes ~= 1 then return nil, "several axes" end
  local axis = dims.axis(axes[1], x.ndim, "fixed_point_multiply_per_axis") + 1
  return dims.compute(dims.of(x), function(index)
    local at = { index[axis] }
    return operand.cast("int32", fixed_point(to_int64(x[index]), to_int64(inputs[2][at]),
      to_int64(inputs[3][at]) - to_int64(inputs[4][at])))
  end, "T_fixed_point_multiply_per_axis", "broadcast")
end

return compute
