-- pl.topi.image: images resampled, by TVM's names; layout NCHW.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local dims = require "perilune.topi.dims"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local image = {}

local function float(x) return operand.cast("float32", x) end

-- The quotient of two extents. Of expressions it is a number where one is a multiple of the other.
local function quotient(from, to)
  if type(from) == "number" and type(to) == "number" then
    return operand.const(from / to, "float32")
  end
  local factor = dims.multiple(to, from)
  if factor then return operand.const(1 / factor, "float32") end
  return dims.size(from, "float32") / dims.size(to, "float32")
end

-- The same of what lies between the first element and the last.
local function inner_quotient(from, to)
  if type(from) == "number" and type(to) == "number" then
    return operand.const(to > 1 and (from - 1) / (to - 1) or 0.0, "float32")
  end
  return dims.size(from - 1, "float32") / tir.max(dims.size(to - 1, "float32"),
    operand.const(1.0, "float32"))
end

-- A number as single precision has it.
local function single(x) return (string.unpack("f", string.pack("f", x))) end

-- (at + shift) / factor. A factor that is given is not the quotient of the extents, and divides.
local function scaled(at, shift, from, to, factor)
  at = float(at)
  if shift ~= 0 then at = at + shift end
  if factor then return at / operand.const(factor, "float32") end
  return at * quotient(from, to)
end

local function half_pixel(at, from, to, factor) return scaled(at, 0.5, from, to, factor) - 0.5 end

-- The position in the image of an index of the result. factor: that of the axis, if it is given.
-- Definition: ONNX, Resize, coordinate_transformation_mode.
local coordinates = {
  half_pixel = half_pixel,
  asymmetric = function(at, from, to, factor) return scaled(at, 0, from, to, factor) end,
  tf_half_pixel_for_nn = function(at, from, to, factor)
    return scaled(at, 0.5, from, to, factor)
  end,
  align_corners = function(at, from, to, factor)
    return float(at) * inner_quotient(from, factor and single(from * factor) or to)
  end,
  half_pixel_symmetric = function(at, from, to, factor)
    local shift = factor and from / 2 * (1 - to / single(from * factor)) or 0
    return half_pixel(at, from, to, factor) + operand.const(shift, "float32")
  end,
  pytorch_half_pixel = function(at, from, to, factor)
    return tir.Select(tir.gt(dims.size(to, "int32"), 1), half_pixel(at, from, to, factor),
      operand.const(0.0, "float32"))
  end,
}

local function limited(at, extent) return tir.max(tir.min(at, extent - 1), 0) end

-- Whole numbers of positions.
local rounding = {
  floor = tir.floor, ceil = tir.ceil,
  round = function(x) return tir.floor(x + 0.5) end,
  round_prefer_floor = function(x) return tir.ceil(x - 0.5) end,
  round_prefer_ceil = function(x) return tir.floor(x + 0.5) end,
}

-- Positions in a region of each axis: fractions of the first and last element.
local function in_region(plan, at, i)
  local k, n = i - 2, #plan.from - 2
  local first, last, most = plan.roi[k], plan.roi[n + k], plan.from[i] - 1
  if plan.to[i] == 1 then
    return operand.const((first + last) * 0.5, "float32") * dims.size(most, "float32")
  end
  return dims.size(most, "float32") * operand.const(first, "float32") + float(at)
    * (dims.size(most, "float32") * operand.const(last - first, "float32")
    / dims.size(plan.to[i] - 1, "float32"))
end

-- The position in the image of an index along axis i.
local function position_of(plan, at, i)
  if not plan.position then return in_region(plan, at, i) end
  return plan.position(at, plan.from[i], plan.to[i], plan.factors[i - 2])
end

-- Whether elements of an axis stay as they are.
local function is_kept(plan, i)
  return plan.position and dims.equal(plan.from[i], plan.to[i])
    and (plan.factors[i - 2] or 1) == 1
end

local function nearest(x, index, plan)
  local own = { index[1], index[2] }
  for i = 3, #index do
    local at = position_of(plan, index[i], i)
    own[i] = is_kept(plan, i) and index[i]
      or limited(operand.cast("int32", plan.round(at)), plan.from[i])
  end
  return x[own]
end

-- The weighted neighbours along axis i, then along those behind.
local function linear(x, index, plan, i, own)
  if i > #index then return operand.cast("float32", x[own]) end
  if is_kept(plan, i) then
    own[i] = index[i]
    return linear(x, index, plan, i + 1, own)
  end
  local at = position_of(plan, index[i], i)
  local low = tir.floor(at)
  local rest, whole = at - low, operand.cast("int32", low)
  own[i] = limited(whole, plan.from[i])
  local a = linear(x, index, plan, i + 1, table.move(own, 1, i, 1, {}))
  own[i] = limited(whole + 1, plan.from[i])
  local b = linear(x, index, plan, i + 1, table.move(own, 1, i, 1, {}))
  return a * (operand.const(1.0, "float32") - rest) + b * rest
end

-- The kernel of a cubic convolution at a distance of up to 1, and of 1 to 2.
local function cubic_weights(a, rest)
  local function near(t) return ((t * (a + 2) - (a + 3)) * t) * t + 1.0 end
  local function far(t) return ((t * a - 5 * a) * t + 8 * a) * t - 4 * a end
  return { far(rest + 1.0), near(rest), near(1.0 - rest), far(2.0 - rest) }
end

-- Whether a position along axis i lies in the image.
local function is_element(plan, at, i)
  return tir.logical_and(tir.ge(at, 0), tir.lt(at, plan.from[i]))
end

-- The weights of the neighbours of a position; without those outside, if so asked.
local function neighbours(plan, at, i)
  local low, list, sum = tir.floor(at), {}, nil
  for k, weight in ipairs(cubic_weights(plan.cubic_alpha, at - low)) do
    local place = operand.cast("int32", low) + (k - 2)
    if plan.exclude_outside then
      weight = tir.Select(is_element(plan, place, i), weight, operand.const(0.0, "float32"))
      sum = sum and sum + weight or weight
    end
    list[k] = { at = limited(place, plan.from[i]), weight = weight }
  end
  return list, sum
end

-- The weighted four neighbours along axis i, then along those behind.
local function cubic(x, index, plan, i, own)
  if i > #index then return operand.cast("float32", x[own]) end
  if is_kept(plan, i) then
    own[i] = index[i]
    return cubic(x, index, plan, i + 1, own)
  end
  local list, weights = neighbours(plan, position_of(plan, index[i], i), i)
  local sum
  for _, neighbour in ipairs(list) do
    own[i] = neighbour.at
    local term = cubic(x, index, plan, i + 1, table.move(own, 1, i, 1, {})) * neighbour.weight
    sum = sum and sum + term or term
  end
  return weights and sum / weights or sum
end

-- A method by its names in Relay and ONNX.
local methods = { nearest_neighbor = "nearest_neighbor", nearest = "nearest_neighbor",
  linear = "linear", bilinear = "linear", trilinear = "linear", cubic = "cubic",
  bicubic = "cubic" }

-- Whether all positions lie in the image.
local function is_inside(plan, index)
  local condition
  for i = 3, #index do
    local at = in_region(plan, index[i], i)
    local own = tir.logical_and(tir.ge(at, operand.const(0.0, "float32")),
      tir.le(at, dims.size(plan.from[i] - 1, "float32")))
    condition = condition and tir.logical_and(condition, own) or own
  end
  return condition
end

local function sample(x, index, plan, method)
  if method == "nearest_neighbor" then return nearest(x, index, plan) end
  local f = method == "cubic" and cubic or linear
  return operand.cast(x.dtype, f(x, index, plan, 3, { index[1], index[2] }))
end

-- The plan of a call, checked. options: those of image.resize behind the size.
local function plan_of(x, size, options, where)
  local from = dims.of(dims.tensor(x, where))
  dims.list(size, #from - 2, where, "size")
  local mode = options.mode or "half_pixel"
  local plan = { from = from, to = table.move(size, 1, #size, 3, { from[1], from[2] }),
    factors = options.factors or {}, exclude_outside = options.exclude_outside,
    position = coordinates[mode], round = rounding[options.rounding or "round"],
    cubic_alpha = dims.number(options.cubic_alpha, -0.75, where, "cubic_alpha") + 0.0 }
  if mode == "tf_crop_and_resize" then
    plan.roi = {}
    for i = 1, 2 * #from - 4 do
      plan.roi[i] = dims.number((options.roi or {})[i], nil, where, "roi") + 0.0
    end
  end
  if not (plan.position or plan.roi) or not plan.round then
    argument.fail(("%s: there is no mode '%s' or rounding '%s'"):format(where, tostring(mode),
      tostring(options.rounding)))
  end
  return plan
end

--- The image of a size (extents of all axes but the first two). method: "nearest_neighbor" or
-- "linear" or "cubic" (cubic_alpha: -0.75); coordinate_transformation_mode: "half_pixel",
-- "align_corners" or "asymmetric", or others of ONNX's Resize: "half_pixel_symmetric",
-- "pytorch_half_pixel", "tf_half_pixel_for_nn"; rounding_method: "round", "floor", "ceil",
-- "round_prefer_floor", "round_prefer_ceil". factors: of the same axes, where they are not the
-- quotients of the extents; exclude_outside: "cubic" leaves neighbours outside of the image out.
function image.resize(x, size, method, coordinate_transformation_mode, rounding_method,
    cubic_alpha, factors, exclude_outside)
  local plan = plan_of(x, size, { mode = coordinate_transformation_mode,
    rounding = rounding_method, cubic_alpha = cubic_alpha, factors = factors,
    exclude_outside = exclude_outside }, "topi.image.resize")
  return dims.compute(plan.to, function(index) return sample(x, index, plan, method) end,
    "T_resize", "injective")
end

-- A region of an image at a size; what lies outside is a constant.
local function resize_region(x, size, method, options, where)
  local plan = plan_of(x, size, options, where)
  plan.position = false
  local outside = operand.const(dims.number(options.extrapolation_value, 0, where,
    "extrapolation_value") + 0.0, x.dtype)
  return dims.compute(plan.to, function(index)
    return tir.if_then_else(is_inside(plan, index), sample(x, index, plan, method), outside)
  end, "T_resize", "injective")
end

-- x with channels first, and a function that puts the axes of such a tensor in order.
local function channels_first(x, layout, plain, where)
  if layout == nil or layout == plain then return x, function(y) return y end end
  local transform = require "perilune.topi.transform"
  local axes, back = {}, {}
  for i = 1, #plain do
    local at = #layout == #plain and layout:find(plain:sub(i, i), 1, true)
    if not at then argument.fail(("%s: layout '%s'"):format(where, tostring(layout))) end
    axes[i], back[at] = at - 1, i - 1
  end
  return transform.transpose(x, axes), function(y) return transform.transpose(y, back) end
end

-- TVM's function of a layout. roi: fractions of the first elements of the axes, then of the last
-- ones, for the mode "tf_crop_and_resize".
local function resizer(plain, where)
  return function(data, roi, size, layout, method, coordinate_transformation_mode,
      rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype)
    if type(size) ~= "table" then -- (data, size, method, mode, rounding, alpha)
      return image.resize(data, roi, size, layout, method, coordinate_transformation_mode)
    end
    if dims.tensor(data, where).ndim ~= #plain then
      argument.fail(("%s: a tensor of rank %d is expected"):format(where, #plain))
    end
    local own = methods[method or "linear"]
    if not own or own == "cubic" and bicubic_exclude and bicubic_exclude ~= 0 then
      argument.fail(("%s: method '%s'%s"):format(where, tostring(method),
        own and " with bicubic_exclude" or ""))
    end
    local x, restored = channels_first(data, layout, plain, where)
    local options = { mode = coordinate_transformation_mode, roi = roi,
      rounding = rounding_method ~= "" and rounding_method or nil,
      cubic_alpha = bicubic_alpha or -0.5, extrapolation_value = extrapolation_value }
    local sampled
    if coordinate_transformation_mode == "tf_crop_and_resize" then
      sampled = resize_region(x, size, own, options, where)
    else
      sampled = image.resize(x, size, own, options.mode, options.rounding, options.cubic_alpha)
    end
    local result = restored(sampled)
    if not out_dtype or out_dtype == "" or out_dtype == result.dtype then return result end
    return require "perilune.topi.elementwise".cast(result, out_dtype)
  end
end

--- Lines, images and volumes at a size, of all dtypes and layouts with whole axes:
-- topi.image.resize2d(x, { 0, 0, 0, 0 }, { h, w }, "NHWC", "linear", "half_pixel").
image.resize1d = resizer("NCW", "topi.image.resize1d")
image.resize2d = resizer("NCHW", "topi.image.resize2d")
image.resize3d = resizer("NCDHW", "topi.image.resize3d")

return image
