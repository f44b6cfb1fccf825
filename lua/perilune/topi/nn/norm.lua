-- pl.topi.nn: normalisation, by TVM's names.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local broadcast = require "perilune.topi.broadcast"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local operand = require "perilune.tir.operand"
local pad = require "perilune.topi.nn.pad"
local reduction = require "perilune.topi.reduction"
local te = require "perilune.te"
local tir = require "perilune.tir"
local transform = require "perilune.topi.transform"

local nn = {}

local function number(x, value)
  return operand.const(dims.number(value, nil, "topi.nn", "a parameter"), x.dtype)
end

-- The mean over axes, which are kept.
local function mean(x, axes)
  local count = reduction.reduced_count(x, axes)
  if type(count) ~= "number" then
    return broadcast.divide(reduction.sum(x, axes, true), dims.size(count, x.dtype))
  end
  return broadcast.multiply(reduction.sum(x, axes, true), number(x, 1 / count))
end

local function square(x) return broadcast.multiply(x, x) end

-- (x - mean) / sqrt(variance + epsilon) over axes; the mean, and what the difference is multiplied
-- by.
local function standardized(x, axes, epsilon)
  local center = mean(x, axes)
  local distance = broadcast.subtract(x, center)
  local variance = mean(square(distance), axes)
  local factor = elementwise.rsqrt(broadcast.add(variance, number(x, epsilon or 1e-5)))
  return broadcast.multiply(distance, factor), center, factor
end

-- A tensor as it broadcasts to one of `rank` from axis `axis` on.
local function aligned(x, rank, axis)
  local shape = dims.of(x)
  for _ = 1, rank - axis - x.ndim do shape[#shape + 1] = 1 end
  return transform.reshape(x, shape)
end

local function scaled(x, gamma, beta, axis)
  if gamma then dims.tensor(gamma, "topi.nn", "gamma") end
  if beta then dims.tensor(beta, "topi.nn", "beta") end
  if gamma then x = broadcast.multiply(x, aligned(gamma, x.ndim, axis)) end
  if beta then x = broadcast.add(x, aligned(beta, x.ndim, axis)) end
  return x
end

--- What layer_norm gives, the mean over axes, which are kept, and 1 / sqrt(variance + epsilon).
function nn.layer_norm_with_moments(x, gamma, beta, axis, epsilon)
  dims.tensor(x, "topi.nn.layer_norm")
  axis = dims.list(type(axis) == "number" and { axis } or axis, nil, "topi.nn", "axis")
  local first = dims.axis(axis[1], x.ndim, "topi.nn.layer_norm")
  local y, center, factor = standardized(x, axis, epsilon)
  return scaled(y, gamma, beta, first), center, factor
end

--- Normalised over axes (neighbours), then times gamma plus beta (nil: without).
function nn.layer_norm(x, gamma, beta, axis, epsilon)
  return (nn.layer_norm_with_moments(x, gamma, beta, axis, epsilon))
end

--- Divided by the root mean square over axes, then times weight.
function nn.rms_norm(x, weight, axis, epsilon)
  dims.tensor(x, "topi.nn.rms_norm")
  axis = dims.list(type(axis) == "number" and { axis } or axis, nil, "topi.nn", "axis")
  local first = dims.axis(axis[1], x.ndim, "topi.nn.rms_norm")
  local factor = elementwise.rsqrt(broadcast.add(mean(square(x), axis),
    number(x, epsilon or 1e-5)))
  return scaled(broadcast.multiply(x, factor), weight, nil, first)
end

--- Normalised by instance and channel (axis 1): over all axes from 2 on.
function nn.instance_norm(x, gamma, beta, epsilon)
  local axes = {}
  for i = 2, dims.tensor(x, "topi.nn.instance_norm").ndim - 1 do axes[#axes + 1] = i end
  return scaled((standardized(x, axes, epsilon)), gamma, beta, 1)
end

--- Normalised by instance and group of channels (axis 1).
function nn.group_norm(x, gamma, beta, num_groups, epsilon)
  local shape = dims.of(dims.tensor(x, "topi.nn.group_norm"))
  num_groups = dims.integer(num_groups, nil, "topi.nn.group_norm", "num_groups")
  if #shape < 2 or num_groups < 1 or shape[2] % num_groups ~= 0 then
    argument.fail "topi.nn.group_norm: the channels are not divided into so many groups"
  end
  local grouped = { shape[1], num_groups, shape[2] // num_groups }
  table.move(shape, 3, #shape, 4, grouped)
  local axes = {}
  for i = 2, #grouped - 1 do axes[#axes + 1] = i end
  local result = standardized(transform.reshape(x, grouped), axes, epsilon)
  return scaled(transform.reshape(result, shape), gamma, beta, 1)
end

--- (x - mean) / sqrt(variance + epsilon) * gamma + beta along an axis, of given moments.
function nn.batch_norm(x, gamma, beta, moving_mean, moving_var, axis, epsilon)
  dims.tensor(x, "topi.nn.batch_norm")
  axis = dims.axis(axis or 1, x.ndim, "topi.nn.batch_norm")
  dims.tensor(moving_mean, "topi.nn.batch_norm", "moving_mean")
  dims.tensor(moving_var, "topi.nn.batch_norm", "moving_var")
  local factor = elementwise.rsqrt(broadcast.add(moving_var, number(moving_var, epsilon or 1e-5)))
  local result = broadcast.subtract(x, aligned(moving_mean, x.ndim, axis))
  return scaled(broadcast.multiply(result, aligned(factor, x.ndim, axis)), gamma, beta, axis)
end

--- Divided by the Euclidean norm over axes; epsilon is the least square of a norm.
function nn.l2_normalize(x, eps, axis)
  dims.tensor(x, "topi.nn.l2_normalize")
  local norm = broadcast.maximum(reduction.sum(square(x), axis, true), number(x, eps))
  return broadcast.divide(x, elementwise.sqrt(norm))
end

--- Local response normalisation across `size` neighbours along an axis.
function nn.lrn(x, size, axis, alpha, beta, bias)
  local shape = dims.of(dims.tensor(x, "topi.nn.lrn"))
  axis = dims.axis(axis or 1, #shape, "topi.nn.lrn")
  size = dims.integer(size, 5, "topi.nn.lrn", "size")
  alpha, beta, bias = alpha or 0.0001, beta or 0.75, bias or 1
  local before, after = {}, {}
  for i = 1, #shape do before[i], after[i] = 0, 0 end
  before[axis + 1], after[axis + 1] = (size - 1) // 2, size - 1 - (size - 1) // 2
  local wide, k = pad.pad(x, before, after, 0, "pad_temp"), te.reduce_axis({ 0, size }, "k")
  local sum = dims.compute(shape, function(index)
    local own = table.move(index, 1, #index, 1, {})
    own[axis + 1] = index[axis + 1] + k.var
    return te.sum(wide[own] * wide[own], k)
  end, "T_lrn_sum", "comm_reduce")
  return dims.compute(shape, function(index)
    local base = sum[index] * number(x, alpha / size) + number(x, bias)
    return x[index] / tir.pow(base, number(x, beta))
  end, "T_lrn", "injective")
end

return nn
