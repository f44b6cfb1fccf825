-- pl.topi.nn: convolutions of any rank, by TVM's names: batch and channels first, weights OI...
--
--     topi.nn.conv2d(x, w, { 1, 1 }, { 1, 1, 1, 1 }, { 1, 1 })
--
-- Padding is one number, one an axis, or those before all axes and then those behind.

local core = require "perilune.core"
core.internal()

local argument = require "perilune.argument"
local dims = require "perilune.topi.dims"
local layout = require "perilune.topi.layout"
local operand = require "perilune.tir.operand"
local pad = require "perilune.topi.nn.pad"
local te = require "perilune.te"
local tir = require "perilune.tir"

local nn = {}

--- Widths before and behind each of n axes.
local function split_padding(padding, n, where)
  if type(padding) == "table" and #padding == 2 * n and n > 0 then
    return table.move(padding, 1, n, 1, {}), table.move(padding, n + 1, 2 * n, 1, {})
  end
  padding = dims.list(padding or 0, n, where, "padding")
  return padding, padding
end

nn.split_padding = split_padding

local function is_zero(list)
  for _, width in ipairs(list) do
    if width ~= 0 then return false end
  end
  return true
end

local function with_channels(list, value)
  return table.move(list, 1, #list, 3, { value, value })
end

-- Shapes of data and weights, the number of spatial axes, strides and dilation.
local function geometry(x, w, options, where)
  local shape = dims.of(dims.tensor(x, where, "data"))
  local kernel = dims.of(dims.tensor(w, where, "weight"))
  local n = #shape - 2
  if n < 1 or #kernel ~= #shape then
    argument.fail(("%s: data of rank %d, weights of rank %d"):format(where, #shape, #kernel))
  end
  local strides = dims.list(options.strides or 1, n, where, "strides")
  local dilation = dims.list(options.dilation or 1, n, where, "dilation")
  return shape, kernel, n, strides, dilation
end

--- The convolution with weights (O, I / groups, ...). `options`: strides, padding, dilation,
-- groups, out_dtype.
local function convolve(x, w, options, where)
  local shape, kernel, n, strides, dilation = geometry(x, w, options, where)
  local before, after = split_padding(options.padding, n, where)
  local groups = dims.integer(options.groups, 1, where, "groups")
  local dtype = argument.string(options.out_dtype or x.dtype, where, "out_dtype")
  local channels, per_group = kernel[1], kernel[2]
  if groups < 1 or shape[2] ~= per_group * groups or channels % groups ~= 0 then
    argument.fail(("%s: %s channels in %s groups, weights of %s"):format(where, shape[2], groups,
      per_group))
  end
  local out = { shape[1], channels }
  for i = 1, n do
    local extent = shape[i + 2] + before[i] + after[i] - (kernel[i + 2] - 1) * dilation[i] - 1
    out[i + 2] = extent // strides[i] + 1
  end
  if not (is_zero(before) and is_zero(after)) then
    x = pad.pad(x, with_channels(before, 0), with_channels(after, 0), 0, "pad_temp")
  end
  local axes = { te.reduce_axis({ 0, per_group }, "rc") }
  for i = 1, n do
    axes[i + 1] = te.reduce_axis({ 0, kernel[i + 2] }, "r" .. ("xyz"):sub(i, i))
  end
  local per = channels // groups
  return dims.compute(out, function(index)
    local channel = axes[1].var
    if groups > 1 then
      local group = per == 1 and index[2] or tir.indexdiv(index[2], per)
      channel = per_group == 1 and group or group * per_group + channel
    end
    local own, weight = { index[1], channel }, { index[2], axes[1].var }
    for i = 1, n do
      own[i + 2] = index[i + 2] * strides[i] + axes[i + 1].var * dilation[i]
      weight[i + 2] = axes[i + 1].var
    end
    return te.sum(operand.cast(dtype, x[own]) * operand.cast(dtype, w[weight]), axes)
  end, groups > 1 and "T_group_conv" or "T_conv", groups > 1 and "group_conv" or "conv")
end

for n = 1, 3 do
  local where = ("topi.nn.conv%dd"):format(n)
  nn[("conv%dd"):format(n)] = function(data, weight, strides, padding, dilation, groups, out_dtype)
    if dims.tensor(data, where, "data").ndim ~= n + 2 then
      argument.fail(("%s: data of rank %d expected"):format(where, n + 2))
    end
    return convolve(data, weight, { strides = strides, padding = padding, dilation = dilation,
      groups = groups, out_dtype = out_dtype }, where)
  end
end

-- What a convolution over two axes with packed weights reads, and the shape of its result.
local function packed_geometry(data, weight, options, where)
  local shape = dims.of(dims.tensor(data, where, "data"))
  local kernel = dims.of(dims.tensor(weight, where, "weight"))
  if #shape ~= 4 or #kernel ~= 5 then
    argument.fail(where .. ": data of rank 4 and weights of rank 5 are expected")
  end
  local plan = { block = kernel[5], strides = dims.list(options.strides or 1, 2, where, "strides"),
    dilation = dims.list(options.dilation or 1, 2, where, "dilation") }
  local before, after = split_padding(options.padding, 2, where)
  plan.out = { shape[1], kernel[1], 0, 0, kernel[5] }
  for i = 1, 2 do
    local reach = (kernel[i + 2] - 1) * plan.dilation[i]
    plan.out[i + 2] = (shape[i + 2] + before[i] + after[i] - reach - 1) // plan.strides[i] + 1
  end
  plan.x = data
  if not (is_zero(before) and is_zero(after)) then
    plan.x = pad.pad(data, with_channels(before, 0), with_channels(after, 0), 0, "pad_temp")
  end
  plan.ry, plan.rx = te.reduce_axis({ 0, kernel[3] }, "ry"), te.reduce_axis({ 0, kernel[4] }, "rx")
  -- The row and the column that are read for those of the result.
  function plan.place(row, column)
    return row * plan.strides[1] + plan.ry.var * plan.dilation[1],
      column * plan.strides[2] + plan.rx.var * plan.dilation[2]
  end
  return plan, shape, kernel
end

-- The pixels of a blocked tensor that a convolution by 1 x 1 with strides reads, in rows of their
-- own.
local function strided_pixels(x, plan)
  local shape, strides = dims.of(x), plan.strides
  shape[3], shape[4] = plan.out[3], plan.out[4]
  plan.strides = { 1, 1 }
  return dims.compute(shape, function(index)
    return x[{ index[1], index[2], index[3] * strides[1], index[4] * strides[2], index[5] }]
  end, "T_strided", "injective,strided")
end

-- Whether the pixels of a result are those of the operand in their order: a tile of them may go on
-- from one row to the next.
local function joins_rows(x, plan, kernel)
  local shape = dims.of(x)
  return kernel[3] == 1 and kernel[4] == 1 and plan.strides[1] == 1 and plan.strides[2] == 1
    and dims.equal(shape[3], plan.out[3]) and dims.equal(shape[4], plan.out[4])
end

--- A convolution over two axes whose weights are packed as (O / b, I, H, W, b): sums of the
-- channels of a block are computed together. `options`: strides, padding, dilation.
function nn.conv2d_packed(data, weight, options)
  local where = "topi.nn.conv2d_packed"
  local plan, shape, kernel = packed_geometry(data, weight, options, where)
  if shape[2] ~= kernel[2] then
    argument.fail(("%s: %s channels, weights of %s"):format(where, shape[2], kernel[2]))
  end
  local blocked, block = layout.of(plan.x)
  local x = blocked or plan.x
  local skips = plan.strides[1] ~= 1 or plan.strides[2] ~= 1
  if blocked and skips and kernel[3] == 1 and kernel[4] == 1 then x = strided_pixels(x, plan) end
  local joins = blocked ~= nil and joins_rows(x, plan, kernel)
  local rc = te.reduce_axis({ 0, shape[2] // (block or 1) }, "rc")
  local lane = blocked and te.reduce_axis({ 0, block }, "rb")
  return layout.view(dims.compute(plan.out, function(index)
    local row, column = plan.place(index[3], index[4])
    local channel = lane and rc.var * block + lane.var or rc.var
    local element = x[{ index[1], rc.var, row, column, lane and lane.var }]
    return te.sum(element * weight[{ index[2], channel, plan.ry.var, plan.rx.var, index[5] }],
      { rc, plan.ry, plan.rx, lane or nil })
  end, "T_conv_packed", "packed_conv", joins and { joins_rows = 1 } or nil))
end

--- Each channel of a blocked tensor by itself: weights (C / b, 1, H, W, b).
function nn.depthwise_conv2d_packed(data, weight, options)
  local where = "topi.nn.depthwise_conv2d_packed"
  local plan, _, kernel = packed_geometry(data, weight, options, where)
  local x, block = layout.of(plan.x)
  if block ~= kernel[5] or dims.of(x)[2] ~= kernel[1] then
    argument.fail(where .. ": data and weights of one block are expected")
  end
  return layout.view(dims.compute(plan.out, function(index)
    local row, column = plan.place(index[3], index[4])
    return te.sum(x[{ index[1], index[2], row, column, index[5] }]
      * weight[{ index[2], 0, plan.ry.var, plan.rx.var, index[5] }], { plan.ry, plan.rx })
  end, "T_depthwise_packed", "blocked_window"))
end

--- Each channel by itself: weights (C, multiplier, H, W).
function nn.depthwise_conv2d_nchw(data, weight, strides, padding, dilation, out_dtype)
  local where = "topi.nn.depthwise_conv2d_nchw"
  local channels = dims.of(dims.tensor(data, where, "data"))[2]
  local kernel = dims.of(dims.tensor(weight, where, "weight"))
  local flat = require "perilune.topi.transform".reshape(weight,
    { kernel[1] * kernel[2], 1, kernel[3], kernel[4] })
  return convolve(data, flat, { strides = strides, padding = padding, dilation = dilation,
    groups = channels, out_dtype = out_dtype }, where)
end

--- The convolution of the dilated data with flipped weights (I, O / groups, ...), whose result has
-- `output_padding` more elements behind each axis.
local function transposed(x, w, options, where)
  local _, kernel, n, strides, dilation = geometry(x, w, options, where)
  local more = dims.list(options.output_padding or 0, n, where, "output_padding")
  local before, after = split_padding(options.padding, n, where)
  local groups = dims.integer(options.groups, 1, where, "groups")
  if groups < 1 or kernel[1] % groups ~= 0 then argument.fail(where .. ": groups") end
  local front, behind = {}, {}
  for i = 1, n do
    local reach = (kernel[i + 2] - 1) * dilation[i]
    front[i], behind[i] = reach - before[i], reach - after[i] + more[i]
  end
  x = pad.dilate(x, with_channels(strides, 1))
  x = pad.pad(x, with_channels(front, 0), with_channels(behind, 0), 0, "pad_temp")
  local per_group, per = kernel[1] // groups, kernel[2]
  local flipped_shape = table.move(kernel, 3, n + 2, 3, { per * groups, per_group })
  local flipped = dims.compute(flipped_shape, function(index)
    local group = groups == 1 and 0 or tir.indexdiv(index[1], per)
    local own = { group * per_group + index[2],
      groups == 1 and index[1] or tir.indexmod(index[1], per) }
    for i = 1, n do own[i + 2] = kernel[i + 2] - 1 - index[i + 2] end
    return w[own]
  end, "kernel_transform", "injective")
  return convolve(x, flipped, { dilation = dilation, groups = groups,
    out_dtype = options.out_dtype }, where)
end

for n = 1, 3 do
  local where = ("topi.nn.conv%dd_transpose"):format(n)
  nn[("conv%dd_transpose"):format(n)] = function(data, weight, strides, padding, output_padding,
    groups, dilation, out_dtype)
    if dims.tensor(data, where, "data").ndim ~= n + 2 then
      argument.fail(("%s: data of rank %d expected"):format(where, n + 2))
    end
    return transposed(data, weight, { strides = strides, padding = padding, groups = groups,
      output_padding = output_padding, dilation = dilation, out_dtype = out_dtype }, where)
  end
end

return nn
