-- Computes of operators that move elements.

local core = require "perilune.core"
core.internal()

local dims = require "perilune.topi.dims"
local elementwise = require "perilune.topi.elementwise"
local operand = require "perilune.tir.operand"
local pad = require "perilune.topi.nn.pad"
local tir = require "perilune.tir"
local transform = require "perilune.topi.transform"

local compute = {}

-- The same elements in the shape of the result.
local function reshape(_, inputs, out_type)
  return transform.reshape(inputs[1], out_type.shape)
end

for _, name in ipairs {
  "reshape", "reshape_like", "flatten", "nn.batch_flatten", "squeeze", "expand_dims",
  "contrib_reverse_reshape",
} do
  compute[name] = reshape
end

compute.transpose = function(attrs, inputs)
  local axes = attrs.axes
  if axes and #axes == 0 then axes = nil end
  return transform.transpose(inputs[1], axes)
end

-- The extents are known: a choice among constants.
compute.shape_of = function(attrs, inputs, out_type)
  local shape, start = dims.of(inputs[1]), attrs.start or 0
  local first = math.max(0, math.min(#shape, start < 0 and start + #shape or start))
  return dims.compute(out_type.shape, function(index)
    local value = operand.const(0, out_type.dtype)
    for i = out_type.shape[1], 1, -1 do
      value = tir.Select(tir.eq(index[1], i - 1), dims.size(shape[first + i], out_type.dtype),
        value)
    end
    return value
  end, "T_shape", "injective")
end

local function all(inputs)
  for _, x in ipairs(inputs) do
    if not x then return nil end
  end
  return inputs
end

compute.concatenate = function(attrs, inputs)
  if not all(inputs) then return nil, "an omitted operand" end
  return transform.concatenate(inputs, attrs.axis or 0)
end

compute.stack = function(attrs, inputs)
  if not all(inputs) then return nil, "an omitted operand" end
  return transform.stack(inputs, attrs.axis or 0)
end

-- The parts have the extents of the results.
compute.split = function(attrs, inputs, out_type)
  local cuts, at = {}, 0
  local axis = dims.axis(attrs.axis or 0, inputs[1].ndim, "split") + 1
  if out_type.kind ~= "tuple" then return elementwise.identity(inputs[1]) end
  for i, part in ipairs(out_type.parts) do
    at = at + part.shape[axis]
    cuts[i] = at
  end
  cuts[#cuts] = nil
  return transform.split(inputs[1], cuts, axis - 1)
end

compute.tile = function(attrs, inputs, out_type)
  local shape, reps = dims.of(inputs[1]), {}
  if attrs.reps then return transform.tile(inputs[1], attrs.reps) end
  for i, dim in ipairs(out_type.shape) do
    local own = shape[i - #out_type.shape + #shape] or 1
    reps[i] = own == 0 and 1 or dims.equal(dim, own) and 1 or own == 1 and dim or dim // own
  end
  return transform.tile(inputs[1], reps)
end

compute["repeat"] = function(attrs, inputs)
  local x, axis = inputs[1], attrs.axis
  if axis == nil then x, axis = transform.reshape(x, { -1 }), 0 end
  return transform.repeat_(x, attrs.repeats, axis)
end

compute.reverse = function(attrs, inputs)
  if attrs.axis == nil then return nil, "without an axis" end
  return transform.flip(inputs[1], attrs.axis)
end

-- ---------------------------------------------------------------- slices

-- Integers of an attribute, or of a constant operand; nil and a reason.
local function integers(attr, input, arg)
  if not input then return attr end
  if not arg.constant then return nil, "bounds that are not constant" end
  local list = arg.constant:to_table()
  return type(list) == "table" and list or { list }
end

-- The places where a slice begins, which are constant or elements of an operand.
local function begins(attrs, input, arg, count)
  local list = integers(attrs.starts, input, arg)
  if list or not input then return list end
  list = {}
  for i = 1, count do list[i] = input[{ i - 1 }] end
  return list
end

-- A slice of axes of a symbolic extent, or with bounds that are not constant.
local function open_slice(attrs, inputs, out_type, args)
  local axes, reason = integers(attrs.axes, inputs[4], args[4])
  local strides, other = integers(attrs.strides, inputs[5], args[5])
  local count = dims.of(inputs[2] or inputs[1])[1]
  if reason or other or inputs[2] and (inputs[2].ndim ~= 1 or type(count) ~= "number") then
    return nil, "axes or steps that are not constant"
  end
  if axes and #axes == 0 then axes = nil end
  if strides and #strides == 0 then strides = nil end
  return transform.dynamic_strided_slice(inputs[1], begins(attrs, inputs[2], args[2], count),
    strides, axes, out_type.shape)
end

-- Whether integers tell the slice.
local function is_known_slice(attrs, inputs, args)
  for i = 2, 5 do
    if inputs[i] and not args[i].constant then return false end
  end
  local rank = inputs[1].ndim
  local axes = integers(attrs.axes, inputs[4], args[4])
  local starts = integers(attrs.starts, inputs[2], args[2]) or {}
  for i = 1, #starts do
    local axis = axes and axes[i] and axes[i] % rank or i - 1
    if type(dims.of(inputs[1])[axis + 1]) ~= "number" then return false end
  end
  return true
end

compute.strided_slice = function(attrs, inputs, out_type, args)
  if not is_known_slice(attrs, inputs, args) then
    return open_slice(attrs, inputs, out_type, args)
  end
  local names, values = { "starts", "ends", "axes", "strides" }, {}
  for i, name in ipairs(names) do
    local list, reason = integers(attrs[name], inputs[i + 1], args[i + 1])
    if reason then return nil, reason end
    if list and #list == 0 and name ~= "starts" then list = nil end
    values[name] = list
  end
  if not values.starts then return nil, "without bounds" end
  return transform.strided_slice(inputs[1], values.starts, values.ends, values.strides,
    values.axes, attrs.slice_mode)
end

local function widths(attrs, inputs, args)
  local rank, before, after = inputs[1].ndim, {}, {}
  if attrs.pad_width then
    for i, pair in ipairs(attrs.pad_width) do before[i], after[i] = pair[1], pair[2] end
    return before, after
  end
  local pads, reason = integers(attrs.pads, inputs[2], args[2])
  local axes, other = integers(nil, inputs[4], args[4])
  if not pads then return nil, reason or "without widths" end
  if other then return nil, other end
  for i = 1, rank do before[i], after[i] = 0, 0 end
  for i = 1, #pads // 2 do
    local at = axes and axes[i] % rank + 1 or i
    before[at], after[at] = pads[i], pads[#pads // 2 + i]
  end
  return before, after
end

local function pad_value(attrs, inputs, args)
  local at = attrs.pad_width and 2 or 3
  if not inputs[at] then return attrs.value or 0 end
  local constant = args[at].constant
  if not constant then return dims.first_element(inputs[at]) end
  local value = constant:to_table()
  return type(value) == "table" and value[1] or value
end

local function has_negative(list)
  for _, width in ipairs(list) do
    if width < 0 then return true end
  end
  return false
end

-- Widths that are elements of an operand: before each axis. nil and a reason.
local function open_widths(inputs, args)
  local rank, before = inputs[1].ndim, {}
  local axes, reason = integers(nil, inputs[4], args[4])
  local count = dims.of(inputs[2])[1]
  if reason or inputs[2].ndim ~= 1 or type(count) ~= "number" then
    return nil, reason or "widths of an unknown number"
  end
  for i = 1, rank do before[i] = 0 end
  for i = 1, count // 2 do
    before[axes and axes[i] % rank + 1 or i] = operand.cast("int32", inputs[2][{ i - 1 }])
  end
  return before
end

local function open_pad(attrs, inputs, out_type, args)
  if (attrs.pad_mode or "constant") ~= "constant" then
    return nil, "a border of widths that are not constant"
  end
  local before, reason = open_widths(inputs, args)
  if not before then return nil, reason end
  return pad.dynamic_pad(inputs[1], before, pad_value(attrs, inputs, args), out_type.shape)
end

compute["nn.pad"] = function(attrs, inputs, out_type, args)
  if not attrs.pad_width and inputs[2] and not args[2].constant then
    return open_pad(attrs, inputs, out_type, args)
  end
  local before, after = widths(attrs, inputs, args)
  if not before then return nil, after end
  local mode = attrs.pad_mode or "constant"
  if mode == "constant" then
    if has_negative(before) or has_negative(after) then return nil, "negative widths" end
    return pad.pad(inputs[1], before, after, pad_value(attrs, inputs, args))
  end
  if has_negative(before) or has_negative(after) then return nil, "negative widths" end
  if mode == "edge" then return pad.edge_pad(inputs[1], before, after) end
  if mode ~= "reflect" then return nil, "mode " .. mode end
  for i, dim in ipairs(dims.of(inputs[1])) do
    if type(dim) ~= "number" and before[i] + after[i] > 0 then
      return nil, "a mirrored axis whose extent is not known"
    end
    if type(dim) == "number" and (before[i] >= dim or after[i] >= dim) then
      return nil, "widths beyond the extent"
    end
  end
  return pad.mirror_pad(inputs[1], before, after, "REFLECT")
end

-- --------------------------------------------------------------- by index

compute.take = function(attrs, inputs)
  if (attrs.batch_dims or 0) ~= 0 then return nil, "batch_dims" end
  local mode, axis = attrs.mode or "strict", attrs.axis
  if mode == "fast" then mode = "clip" end
  if axis == nil and mode == "strict" then axis = 0 end
  return transform.take(inputs[1], inputs[2], axis, mode)
end

-- Columns by index.
compute["ml.array_feature_extractor"] = function(_, inputs, out_type)
  local x, indices = inputs[1], transform.reshape(inputs[2], { -1 })
  if x.ndim == 0 then return nil, "a scalar" end
  return transform.reshape(transform.take(x, indices, -1, "strict"), out_type.shape)
end

compute.gather = function(attrs, inputs)
  return transform.gather(inputs[1], attrs.axis or 0, inputs[2])
end

compute.gather_nd = function(attrs, inputs)
  if (attrs.batch_dims or 0) ~= 0 then return nil, "batch_dims" end
  local indices = inputs[2]
  if attrs.relay ~= 1 then -- ONNX has the vectors along the last axis
    local axes = { indices.ndim - 1 }
    for i = 0, indices.ndim - 2 do axes[#axes + 1] = i end
    indices = transform.transpose(indices, axes)
  end
  return transform.gather_nd(inputs[1], indices)
end

compute.trilu = function(attrs, inputs, _, args)
  local k = inputs[2] and args[2].constant and args[2].constant:to_table() or 0
  if type(k) == "table" then k = k[1] end
  if inputs[2] and not args[2].constant then k = dims.first_element(inputs[2]) end
  return transform.trilu(inputs[1], k, (attrs.upper or 1) ~= 0)
end

-- The axis, from 1, and where the others of an index are those of the indices.
local function one_hot(indices, attrs, out_type, value)
  local at = dims.axis(attrs.axis or -1, indices.ndim + 1, "one_hot") + 1
  return dims.compute(out_type.shape, function(index)
    local own = table.move(index, 1, at - 1, 1, {})
    table.move(index, at + 1, #index, at, own)
    return value(operand.cast(indices.dtype, index[at]), indices[own], out_type.shape[at])
  end, "T_one_hot", "injective")
end

-- Relay: (indices, on, off); ONNX: (indices, depth, (off, on)), of indices from -depth on.
compute.one_hot = function(attrs, inputs, out_type)
  if attrs.depth then
    local on, off = dims.first_element(inputs[2]), dims.first_element(inputs[3])
    return one_hot(inputs[1], attrs, out_type, function(at, index)
      return tir.Select(tir.eq(at, index), on, off)
    end)
  end
  local values, dtype = inputs[3], inputs[1].dtype
  return one_hot(inputs[1], attrs, out_type, function(at, index, depth)
    local back = index + operand.cast(dtype, dims.expr(depth, "int64"))
    return tir.Select(tir.logical_or(tir.eq(at, index), tir.eq(at, back)), values[{ 1 }],
      values[{ 0 }])
  end)
end

-- Axes in another order, and parts of axes: NCHW to NCHW4c.
compute.layout_transform = function(attrs, inputs)
  local ok, map = pcall(tir.bijective_layout, attrs.src_layout, attrs.dst_layout)
  if not ok or not map then return nil, "these layouts" end
  local out = {}
  for i, dim in ipairs(map:forward_shape(dims.of(inputs[1]))) do out[i] = dims.value(dim) end
  return dims.compute(out, function(index)
    return inputs[1][map:backward_index(index)]
  end, "T_layout_trans", "injective")
end

-- Channels are blocks of space: x as N, b, b, C or N, C, b, b, ...
local function shuffled(x, shape, axes, out_type)
  return transform.reshape(transform.transpose(transform.reshape(x, shape), axes), out_type.shape)
end

compute["nn.depth_to_space"] = function(attrs, inputs, out_type)
  if (attrs.layout or "NCHW") ~= "NCHW" then return nil, "layout " .. attrs.layout end
  local n, c, h, w = table.unpack(dims.of(inputs[1]))
  local b = attrs.block_size
  if attrs.mode == "CRD" then
    return shuffled(inputs[1], { n, c // (b * b), b, b, h, w }, { 0, 1, 4, 2, 5, 3 }, out_type)
  end
  return shuffled(inputs[1], { n, b, b, c // (b * b), h, w }, { 0, 3, 4, 1, 5, 2 }, out_type)
end

compute["nn.space_to_depth"] = function(attrs, inputs, out_type)
  if (attrs.layout or "NCHW") ~= "NCHW" then return nil, "layout " .. attrs.layout end
  local n, c, h, w = table.unpack(dims.of(inputs[1]))
  local b = attrs.block_size
  local order = attrs.mode == "CRD" and { 0, 1, 3, 5, 2, 4 } or { 0, 3, 5, 1, 2, 4 }
  return shuffled(inputs[1], { n, c, h // b, b, w // b, b }, order, out_type)
end

return compute
