-- Computes of norms over one axis, or over windows.

local core = require "perilune.core"
core.internal()

local activation = require "perilune.topi.nn.activation"
local broadcast = require "perilune.topi.broadcast"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local operand = require "perilune.tir.operand"
local pad = require "perilune.topi.nn.pad"
local reduction = require "perilune.topi.reduction"
local te = require "perilune.te"
local tir = require "perilune.tir"
local transform = require "perilune.topi.transform"
local window = require "perilune.topi.compute.window"

local compute = {}

local function number(x, value) return operand.const(value, x.dtype) end

-- x as a float32 where it is a shorter float.
local function widened(x)
  local short = x.dtype == "float16" or x.dtype == "bfloat16"
  return short and elementwise.cast(x, "float32") or x
end

-- One at the first greatest element along an axis.
compute["nn.hardmax"] = function(attrs, inputs)
  local x, axis = inputs[1], attrs.axis or -1
  local shape = dims.of(x)
  axis = dims.axis(axis, #shape, "nn.hardmax")
  if attrs.coerce_2d == 1 then
    local matrix = transform.reshape(x, { dims.product(shape, 1, axis),
      dims.product(shape, axis + 1) })
    return transform.reshape(compute["nn.hardmax"]({ axis = 1 }, { matrix }), shape)
  end
  local best = reduction.argmax(x, axis, true)
  return dims.compute(shape, function(index)
    local own = table.move(index, 1, #index, 1, {})
    own[axis + 1] = 0
    return tir.Select(tir.eq(best[own], index[axis + 1]), number(x, 1), number(x, 0))
  end, "T_hardmax", "injective")
end

compute["nn.swiglu"] = function(attrs, inputs)
  return broadcast.multiply(activation.silu(inputs[1], attrs.alpha or 1), inputs[2])
end

-- Divided by the sum of magnitudes or the root of squares; zeros where that is 0.
compute["nn.lp_normalization"] = function(attrs, inputs)
  local x, p = widened(inputs[1]), attrs.p or 2
  if p ~= 1 and p ~= 2 then return nil, "this p" end
  local axis = attrs.axis or -1
  local by = p == 1 and reduction.sum(elementwise.abs(x), axis, true)
    or elementwise.sqrt(reduction.sum(broadcast.multiply(x, x), axis, true))
  return elementwise.cast(broadcast.where(broadcast.not_equal(by, number(x, 0)),
    broadcast.divide(x, by), elementwise.full_like(x, 0)), inputs[1].dtype)
end

-- The standard deviation gets 1e-9 added, as ONNX defines it.
compute["nn.mean_variance_normalization"] = function(attrs, inputs)
  local x, axes = widened(inputs[1]), attrs.axes or { 0, 2, 3 }
  local count = dims.size(reduction.reduced_count(x, axes), x.dtype)
  local function mean(y) return broadcast.divide(reduction.sum(y, axes, true), count) end
  local distance = broadcast.subtract(x, mean(x))
  local deviation = elementwise.sqrt(mean(broadcast.multiply(distance, distance)))
  return elementwise.cast(broadcast.divide(distance, broadcast.add(deviation,
    number(x, 1e-9))), inputs[1].dtype)
end

-- ------------------------------------------------------------------ p-norms

local function powered(x, p)
  if p == 1 then return elementwise.abs(x) end
  if p == 2 then return broadcast.multiply(x, x) end
  return broadcast.power(elementwise.abs(x), number(x, p + 0.0))
end

local function root(x, p)
  if p == 1 then return x end
  return p == 2 and elementwise.sqrt(x) or broadcast.power(x, number(x, 1 / p))
end

compute["nn.global_lp_pool"] = function(attrs, inputs)
  local x, p, axes = widened(inputs[1]), attrs.p or 2, {}
  for i = 2, x.ndim - 1 do axes[#axes + 1] = i end
  return elementwise.cast(root(reduction.sum(powered(x, p), axes, true), p), inputs[1].dtype)
end

-- Sums over windows; zeros around.
local function window_sums(x, attrs, out)
  local shape, n = dims.of(x), #attrs.kernel_shape
  local pads, axes = window.onnx_padding(attrs, shape, attrs.kernel_shape), {}
  local strides, steps = window.none_if_empty(attrs.strides), window.none_if_empty(attrs.dilations)
  local before, after = { 0, 0 }, { 0, 0 }
  for i = 1, n do
    local reach = (out[i + 2] - 1) * (strides and strides[i] or 1)
      + (attrs.kernel_shape[i] - 1) * (steps and steps[i] or 1) + 1
    before[i + 2] = pads[i]
    after[i + 2] = math.max(0, reach - pads[i] - shape[i + 2])
    axes[i] = te.reduce_axis({ 0, attrs.kernel_shape[i] }, "r" .. i)
  end
  local around = pad.pad(x, before, after, 0)
  return dims.compute(out, function(index)
    local own = { index[1], index[2] }
    for i = 1, n do
      own[i + 2] = index[i + 2] * (strides and strides[i] or 1)
        + axes[i].var * (steps and steps[i] or 1)
    end
    return te.sum(around[own], axes)
  end, "pool_sum", "pool_sum")
end

compute["nn.lp_pool"] = function(attrs, inputs, out_type)
  local x, p = widened(inputs[1]), attrs.p or 2
  for i, dim in ipairs(dims.of(x)) do
    if type(dim) ~= "number" or type(out_type.shape[i]) ~= "number" then
      return nil, "a symbolic shape"
    end
  end
  return elementwise.cast(root(window_sums(powered(x, p), attrs, out_type.shape), p),
    inputs[1].dtype)
end

return compute
