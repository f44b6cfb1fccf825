-- Computes of operators that sample images at computed positions: grids, regions, displaced
-- windows.

local core = require "perilune.core"
core.internal()

local broadcast = require "perilune.topi.broadcast"
local conv = require "perilune.topi.nn.conv"
local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local image = require "perilune.topi.image"
local operand = require "perilune.tir.operand"
local pad = require "perilune.topi.nn.pad"
local te = require "perilune.te"
local tir = require "perilune.tir"
local transform = require "perilune.topi.transform"
local window = require "perilune.topi.compute.window"

local compute = {}

local function is_on(attr) return attr == true or attr == 1 end

local function float(value, dtype)
  if type(value) == "number" then return operand.const(value + 0.0, dtype) end
  return operand.cast(dtype, value)
end

local function is_short(dtype) return dtype == "float16" or dtype == "bfloat16" end

local function select(condition, a, b) return tir.Select(condition, a, b) end

-- A float as an index a little beyond both ends of an axis at most; NaN is before it.
local function whole(x, extent)
  local least, most = float(-4, x.dtype), float(extent, x.dtype) + 4.0
  x = select(tir.ge(x, least), x, least)
  return operand.cast("int32", select(tir.le(x, most), x, most))
end

local function inside(at, extent) return tir.logical_and(tir.ge(at, 0), tir.lt(at, extent)) end

local function all(list)
  local condition
  for _, one in ipairs(list) do
    condition = condition and tir.logical_and(condition, one) or one
  end
  return condition
end

-- ------------------------------------------------------------------- grids

-- Coordinates between the ends of an axis, mirrored at them.
local function reflected(x, least, most)
  local range = most - least
  local beyond = select(tir.lt(x, least), least - x, select(tir.gt(x, most), x - most,
    float(0, x.dtype)))
  local turns = tir.floor(beyond / range)
  local rest = beyond - turns * range
  local odd = tir.ne(turns - tir.floor(turns * 0.5) * 2.0, float(0, x.dtype))
  local from_least = select(odd, most - rest, least + rest)
  local from_most = select(odd, least + rest, most - rest)
  local result = select(tir.lt(x, least), from_least, select(tir.gt(x, most), from_most, x))
  return select(tir.logical_and(tir.gt(range, float(0, x.dtype)), tir.eq(x - x, float(0, x.dtype))),
    result, least)
end

-- A coordinate under the padding mode.
local function limited(plan, x, extent)
  local last = float(extent, x.dtype) - 1.0
  local zero = float(0, x.dtype)
  if plan.padding == "border" then
    return select(tir.gt(x, zero), select(tir.gt(x, last), last, x), zero)
  end
  if plan.padding ~= "reflection" then return x end
  local edge = float(plan.aligned and 0 or 0.5, x.dtype)
  return reflected(x, zero - edge, last + edge)
end

-- The elements that a coordinate stands for along an axis: { at =, inside = (nil: always),
-- weight = (nil: 1) }.
local function tap(plan, at, extent, weight)
  if plan.padding == "zeros" then
    local index = whole(at, extent)
    return { at = tir.max(tir.min(index, extent - 1), 0), inside = inside(index, extent),
      weight = weight }
  end
  local index = whole(tir.floor(limited(plan, at, extent)), extent)
  return { at = tir.max(tir.min(index, extent - 1), 0), weight = weight }
end

-- The kernel of a cubic convolution.
local function cubic_weight(x)
  local a = -0.75
  x = tir.abs(x)
  local near = ((x * (a + 2)) - (a + 3)) * x * x + 1.0
  local far = ((x * a - 5 * a) * x + 8 * a) * x - 4 * a
  return select(tir.le(x, float(1, x.dtype)), near,
    select(tir.lt(x, float(2, x.dtype)), far, float(0, x.dtype)))
end

local function taps(plan, where, extent)
  local size = float(extent, where.dtype)
  local x = plan.aligned and (where + 1.0) * 0.5 * (size - 1.0)
    or ((where + 1.0) * size - 1.0) * 0.5
  if plan.mode == "nearest" then x = tir.nearbyint(x) end
  if plan.mode ~= "cubic" or plan.padding ~= "border" then x = limited(plan, x, extent) end
  local low, list = tir.floor(x), {}
  if plan.mode == "nearest" then return { tap(plan, low, extent) } end
  for k = plan.mode == "cubic" and -1 or 0, plan.mode == "cubic" and 2 or 1 do
    local at = low + float(k, x.dtype)
    local away = at - x
    list[#list + 1] = tap(plan, at, extent, plan.mode == "cubic" and cubic_weight(away)
      or float(1, x.dtype) - tir.abs(away))
  end
  return list
end

-- An element times its weight; 0 where it lies outside, whatever the weight is.
local function term_of(x, dtype, tap_)
  local condition, value = all(tap_.conditions), operand.cast(dtype, x[tap_.at])
  if tap_.weight then value = tap_.weight * value end
  return condition and tir.if_then_else(condition, value, float(0, dtype)) or value
end

local function appended(list, one)
  local copy = table.move(list, 1, #list, 1, {})
  copy[#copy + 1] = one
  return copy
end

-- The sum of the weighted elements of all combinations of taps, from axis k on: `outer` is the
-- combination of axes before, { at =, conditions =, weight = }.
local function weighted(x, dtype, by_axis, outer, k)
  if k > #by_axis then return term_of(x, dtype, outer) end
  local sum
  for _, one in ipairs(by_axis[k]) do
    local weight = one.weight and operand.cast(dtype, one.weight)
    local term = weighted(x, dtype, by_axis, { at = appended(outer.at, one.at),
      conditions = one.inside and appended(outer.conditions, one.inside) or outer.conditions,
      weight = outer.weight and weight and outer.weight * weight or weight or outer.weight },
      k + 1)
    sum = sum and sum + term or term
  end
  return sum
end

-- The sum for an image and channel.
local function sampled(x, dtype, by_axis, batch, channel)
  return weighted(x, dtype, by_axis, { at = { batch, channel }, conditions = {} }, 1)
end

local modes = { linear = "linear", bilinear = "linear", nearest = "nearest", cubic = "cubic",
  bicubic = "cubic" }

local function grid_plan(attrs)
  local relay = is_on(attrs.relay)
  local mode = modes[relay and (attrs.method or "bilinear") or (attrs.mode or "linear")]
  local layout = attrs.layout or "NCHW"
  if relay and layout ~= "NCHW" and layout ~= "NCDHW" or not mode then return nil end
  local aligned = attrs.align_corners
  if aligned == nil then aligned = relay end
  return { relay = relay, mode = mode, aligned = is_on(aligned),
    padding = attrs.padding_mode or "zeros" }
end

-- ONNX has coordinates along the last axis of the grid, Relay along the second one; the coordinate
-- of the last axis comes first.
compute["image.grid_sample"] = function(attrs, inputs, out_type)
  local x, grid, plan = inputs[1], inputs[2], grid_plan(attrs)
  local shape, n = dims.of(inputs[1]), inputs[1].ndim - 2
  if not plan or n > 3 then return nil, "this layout, mode or rank" end
  local dtype = is_short(x.dtype) and "float32" or x.dtype
  -- Ties of the nearest element are found exactly.
  local precise = plan.mode == "nearest" and "float64" or is_short(grid.dtype) and "float32"
    or grid.dtype
  return dims.compute(out_type.shape, function(index)
    local by_axis = {}
    for k = 1, n do
      local at = { index[1] }
      if plan.relay then at[2] = n - k end
      table.move(index, 3, #index, #at + 1, at)
      if not plan.relay then at[#at + 1] = n - k end
      by_axis[k] = taps(plan, operand.cast(precise, grid[at]), shape[k + 2])
    end
    return operand.cast(x.dtype, sampled(x, dtype, by_axis, index[1], index[2]))
  end, "T_grid_sample", "injective")
end

-- The coordinate of an element of an axis in [-1, 1].
local function place(at, extent, aligned, dtype)
  if aligned then
    if extent == 1 then return float(1, dtype) end
    return float(at, dtype) * 2.0 / (float(extent, dtype) - 1.0) - 1.0
  end
  return (float(at, dtype) * 2.0 + 1.0) / float(extent, dtype) - 1.0
end

compute["image.affine_grid"] = function(attrs, inputs, out_type)
  local theta, relay = inputs[1], not inputs[2]
  local shape, n = out_type.shape, #out_type.shape - 2
  local aligned = relay or is_on(attrs.align_corners)
  local dtype = is_short(theta.dtype) and "float32" or theta.dtype
  local first = relay and 2 or 1
  return dims.compute(shape, function(index)
    local row = relay and index[2] or index[#index]
    local sum = operand.cast(dtype, theta[{ index[1], row, n }])
    for m = 0, n - 1 do
      local axis = first + n - m
      sum = sum + operand.cast(dtype, theta[{ index[1], row, m }])
        * place(index[axis], shape[axis], aligned, dtype)
    end
    return operand.cast(theta.dtype, sum)
  end, "T_affine_grid", "injective")
end

-- ------------------------------------------------------------------ regions

-- The position in an image of element i of n of a region's axis.
local function position_in(first, last, i, n, extent)
  local most = float(extent, "float32") - 1.0
  if n == 1 then return (first + last) * 0.5 * most end
  return first * most + float(i, "float32") * (last - first) * most / float(n - 1, "float32")
end

-- (images, boxes (y, x, y, x) in [0, 1], image of each box)
compute["image.crop_and_resize"] = function(attrs, inputs, out_type)
  local own = attrs.layout or "NCHW"
  local x, boxes = window.relaid(inputs[1], own, "NCHW"), inputs[2]
  local linear = (attrs.method or "bilinear") == "bilinear"
  if not x or not linear and attrs.method ~= "nearest_neighbor" then
    return nil, "this layout or method"
  end
  local shape, size = dims.of(x), attrs.crop_size
  local outside = float(attrs.extrapolation_value or 0, "float32")
  local result = dims.compute({ dims.of(boxes)[1], shape[2], size[1], size[2] }, function(index)
    local by_axis, valid = {}, {}
    for k = 1, 2 do
      local function bound(i) return operand.cast("float32", boxes[{ index[1], i }]) end
      local extent = shape[k + 2]
      local at = position_in(bound(k - 1), bound(k + 1), index[k + 2], size[k], extent)
      valid[2 * k - 1] = tir.ge(at, float(0, "float32"))
      valid[2 * k] = tir.le(at, float(extent, "float32") - 1.0)
      local low = tir.floor(linear and at or at + 0.5)
      by_axis[k] = {}
      for m = 0, linear and 1 or 0 do
        by_axis[k][m + 1] = { at = tir.max(tir.min(whole(low, extent) + m, extent - 1), 0),
          weight = linear and (m == 0 and 1.0 - (at - low) or at - low) or nil }
      end
    end
    local batch = dims.position(inputs[3][{ index[1] }], shape[1], "clip")
    return operand.cast(out_type.dtype, tir.if_then_else(all(valid),
      sampled(x, "float32", by_axis, batch, index[2]), outside))
  end, "T_crop_and_resize", "injective")
  return window.relaid(result, "NCHW", own)
end

local methods = { nearest_neighbor = "nearest_neighbor", nearest = "nearest_neighbor",
  trilinear = "linear", linear = "linear" }

compute["nn.upsampling3d"] = function(attrs, inputs, out_type)
  local own = attrs.layout or "NCDHW"
  local x = window.relaid(inputs[1], own, "NCDHW")
  local method = methods[attrs.method or "nearest_neighbor"]
  local mode = attrs.coordinate_transformation_mode or "half_pixel"
  if not x or not method then return nil, "this layout or method" end
  local size = {}
  for i, letter in ipairs { "D", "H", "W" } do
    size[i] = out_type.shape[own:find(letter, 1, true)]
  end
  return window.relaid(image.resize(x, size, method, mode,
    mode == "align_corners" and "round_prefer_ceil" or "floor"), "NCDHW", own)
end

-- ------------------------------------------------------------------ windows

local function padded(x, padding)
  local before, after = conv.split_padding(padding, 2, "image")
  return pad.pad(x, { 0, 0, before[1], before[2] }, { 0, 0, after[1], after[2] }, 0)
end

local greatest = te.comm_reducer(function(a, b)
  return tir.Select(dims.keeps_greater(a, b), a, b)
end, dims.least, "max")

-- The greatest sum of a window's elements and the kernel's; zeros around.
compute["image.dilation2d"] = function(attrs, inputs)
  local own = attrs.data_layout or "NCHW"
  local x = window.relaid(inputs[1], own, "NCHW")
  local kernel = window.relaid(inputs[2], attrs.kernel_layout or "IHW", "IHW")
  local padding = window.relay_padding(attrs.padding, 2)
  if not x or not kernel or not padding then return nil, "layout or padding" end
  local source = padded(x, padding)
  local shape, size = dims.of(source), dims.of(kernel)
  local strides = dims.list(window.one_or(attrs.strides, 2), 2, "dilation2d", "strides")
  local steps = dims.list(window.one_or(attrs.dilations, 2), 2, "dilation2d", "dilations")
  local axes, out = {}, { shape[1], shape[2] }
  for i = 1, 2 do
    axes[i] = te.reduce_axis({ 0, size[i + 1] }, "r" .. i)
    out[i + 2] = (shape[i + 2] - (size[i + 1] - 1) * steps[i] - 1) // strides[i] + 1
  end
  return window.relaid(dims.compute(out, function(index)
    local v, u = axes[1].var, axes[2].var
    return greatest(source[{ index[1], index[2], index[3] * strides[1] + v * steps[1],
      index[4] * strides[2] + u * steps[2] }] + kernel[{ index[2], v, u }], axes)
  end, "T_dilation2d", "dilation2d"), "NCHW", own)
end

-- The mean over a window and all channels of products or distances, for each displacement.
compute["nn.correlation"] = function(attrs, inputs)
  local size, most = attrs.kernel_size or 1, attrs.max_displacement or 1
  local stride, step = attrs.stride1 or 1, attrs.stride2 or 1
  local padding = window.relay_padding(attrs.padding, 2)
  if (attrs.layout or "NCHW") ~= "NCHW" or not padding then return nil, "layout or padding" end
  local a, b = padded(inputs[1], padding), padded(inputs[2], padding)
  local shape, radius, border = dims.of(a), most // step, most + size // 2
  local side, multiply = 2 * radius + 1, attrs.is_multiply == nil or is_on(attrs.is_multiply)
  local axes = { te.reduce_axis({ 0, shape[2] }, "rc"), te.reduce_axis({ 0, size }, "ry"),
    te.reduce_axis({ 0, size }, "rx") }
  local out = { shape[1], side * side, (shape[3] - 2 * border + stride - 1) // stride,
    (shape[4] - 2 * border + stride - 1) // stride }
  local sum = dims.compute(out, function(index)
    local y = index[3] * stride + most + axes[2].var
    local x = index[4] * stride + most + axes[3].var
    local down = (tir.floordiv(index[2], side) - radius) * step
    local right = (tir.floormod(index[2], side) - radius) * step
    local left = a[{ index[1], axes[1].var, y, x }]
    local moved = b[{ index[1], axes[1].var, y + down, x + right }]
    return te.sum(multiply and left * moved or tir.abs(left - moved), axes)
  end, "T_correlation", "correlation")
  return broadcast.divide(sum, dims.size(size * size * shape[2], sum.dtype))
end

-- The elements of each window at displaced positions: (batch, channels, taps, space...).
local function displaced(plan, x, offset, mask)
  local shape, kernel, out = dims.of(x), plan.kernel, plan.out
  local shared = shape[2] // plan.offset_groups
  local taps_, dtype = kernel[1] * kernel[2], plan.dtype
  return dims.compute({ shape[1], shape[2], taps_, out[1], out[2] }, function(index)
    local plane = tir.floordiv(index[2], shared) * taps_ + index[3]
    local by_axis, valid = {}, {}
    local places = { tir.floordiv(index[3], kernel[2]), tir.floormod(index[3], kernel[2]) }
    for k, tap_ in ipairs(places) do
      local extent = shape[k + 2]
      local still = index[k + 3] * plan.strides[k] + tap_ * plan.dilation[k] - plan.before[k]
      local at = float(still, dtype)
        + operand.cast(dtype, offset[{ index[1], plane * 2 + (k - 1), index[4], index[5] }])
      local low = tir.floor(at)
      valid[k] = tir.logical_and(tir.gt(at, float(-1, dtype)), tir.lt(at, float(extent, dtype)))
      local zeros = { padding = "zeros" }
      by_axis[k] = { tap(zeros, low, extent, 1.0 - (at - low)),
        tap(zeros, low + 1.0, extent, at - low) }
    end
    local value = tir.if_then_else(all(valid),
      sampled(x, dtype, by_axis, index[1], index[2]), float(0, dtype))
    if not mask then return value end
    return value * operand.cast(dtype, mask[{ index[1], plane, index[4], index[5] }])
  end, "T_displaced", "injective")
end

local function deformed(plan, x, weight, offset, bias, mask)
  local columns, size = displaced(plan, x, offset, mask), dims.of(weight)
  local taps_, per = plan.kernel[1] * plan.kernel[2], size[1] // plan.groups
  local axes = { te.reduce_axis({ 0, size[2] }, "rc"), te.reduce_axis({ 0, taps_ }, "rk") }
  local flat = transform.reshape(weight, { size[1], size[2], taps_ })
  local result = dims.compute({ dims.of(x)[1], size[1], plan.out[1], plan.out[2] }, function(index)
    local channel = tir.floordiv(index[2], per) * size[2] + axes[1].var
    return te.sum(columns[{ index[1], channel, axes[2].var, index[3], index[4] }]
      * operand.cast(plan.dtype, flat[{ index[2], axes[1].var, axes[2].var }]), axes)
  end, "deformable_conv2d", "deformable_conv2d")
  if bias then
    result = broadcast.add(result, elementwise.cast(transform.reshape(bias, { size[1], 1, 1 }),
      plan.dtype))
  end
  return elementwise.cast(result, x.dtype)
end

-- (x, weights, offsets, bias, mask)
compute["nn.deformable_conv"] = function(attrs, inputs, out_type)
  local x, weight = inputs[1], inputs[2]
  if x.ndim ~= 4 then return nil, "of this rank" end
  local size = dims.of(weight)
  local padding = window.onnx_padding(attrs, dims.of(x), { size[3], size[4] })
  local plan = { kernel = { size[3], size[4] }, groups = attrs.group or 1,
    offset_groups = attrs.offset_group or 1, out = { out_type.shape[3], out_type.shape[4] },
    strides = window.none_if_empty(attrs.strides) or { 1, 1 },
    dilation = window.none_if_empty(attrs.dilations) or { 1, 1 },
    dtype = is_short(x.dtype) and "float32" or x.dtype }
  plan.before = padding
  return deformed(plan, x, weight, inputs[3], inputs[4], inputs[5])
end

-- (data, offsets, weights)
compute["nn.deformable_conv2d"] = function(attrs, inputs, out_type)
  local own = attrs.data_layout or "NCHW"
  local padding = window.relay_padding(attrs.padding, 2)
  if own ~= "NCHW" or (attrs.kernel_layout or "OIHW") ~= "OIHW" or not padding then
    return nil, "layout or padding"
  end
  local x, size = inputs[1], dims.of(inputs[3])
  local plan = { kernel = { size[3], size[4] }, groups = attrs.groups or 1,
    offset_groups = attrs.deformable_groups or 1,
    out = { out_type.shape[3], out_type.shape[4] },
    strides = dims.list(window.one_or(attrs.strides, 2), 2, "deformable_conv2d", "strides"),
    dilation = dims.list(window.one_or(attrs.dilation, 2), 2, "deformable_conv2d", "dilation"),
    dtype = is_short(x.dtype) and "float32" or x.dtype }
  plan.before = conv.split_padding(padding, 2, "deformable_conv2d")
  return deformed(plan, x, inputs[3], inputs[2])
end

return compute
