-- Computes of operators on positions: sequences of several lengths, grids, windows, blocks of space
-- as batches, coordinates of flat indices.

local core = require "perilune.core"
core.internal()

local broadcast = require "perilune.topi.broadcast"
local dims = require "perilune.topi.dims"
local loops = require "perilune.topi.compute.loops"
local operand = require "perilune.tir.operand"
local pad = require "perilune.topi.nn.pad"
local te = require "perilune.te"
local tir = require "perilune.tir"
local transform = require "perilune.topi.transform"

local compute = {}

local function copy(list) return table.move(list, 1, #list, 1, {}) end

local function product(list)
  local n = 1
  for _, dim in ipairs(list) do n = n * dim end
  return n
end

local function is_open(shape)
  for _, dim in ipairs(shape) do
    if type(dim) ~= "number" then return true end
  end
  return false
end

-- ---------------------------------------------------------------- sequences

-- Elements of a batch from its length on become the mask.
compute.sequence_mask = function(attrs, inputs)
  local x, lengths, time = inputs[1], inputs[2], (attrs.axis or 0) + 1
  if x.ndim < 2 or time < 1 or time > 2 then return nil, "this axis" end
  local mask = operand.const(attrs.mask_value or 0, x.dtype)
  return dims.compute(dims.of(x), function(index)
    local length = operand.cast("int64", lengths[{ index[3 - time] }])
    return tir.Select(tir.lt(operand.cast("int64", index[time]), length), x[index], mask)
  end, "T_sequence_mask", "injective")
end

-- The first elements of each batch, as many as its length, in the opposite order.
compute.reverse_sequence = function(attrs, inputs)
  local x, shape = inputs[1], dims.of(inputs[1])
  local time = dims.axis(attrs.time_axis or 0, x.ndim, "reverse_sequence") + 1
  local batch = dims.axis(attrs.batch_axis or 1, x.ndim, "reverse_sequence") + 1
  return dims.compute(shape, function(index)
    local own, length = copy(index), operand.cast("int32", inputs[2][{ index[batch] }])
    local mirrored = dims.position(length - 1 - index[time], shape[time], "clip")
    own[time] = tir.Select(tir.lt(index[time], length), mirrored, index[time])
    return x[own]
  end, "T_reverse_sequence", "injective")
end

-- --------------------------------------------------------- grids and windows

compute.meshgrid = function(attrs, inputs, out_type)
  local types, results = out_type.kind == "tuple" and out_type.parts or { out_type }, {}
  for i, x in ipairs(inputs) do
    local along = i
    if attrs.indexing == "xy" and #inputs > 1 and i <= 2 then along = 3 - i end
    results[i] = dims.compute(types[i].shape, function(index)
      return x[x.ndim == 0 and {} or { index[along] }]
    end, "T_meshgrid", "injective")
  end
  return results
end

-- (lead..., places of the window..., elements of the window...)
compute.sliding_window = function(attrs, inputs, out_type)
  local x = inputs[1]
  local axis, strides = dims.axis(attrs.axis or 0, x.ndim, "sliding_window"), attrs.strides
  if not strides or #strides ~= x.ndim - axis then return nil, "these windows" end
  return dims.compute(out_type.shape, function(index)
    local own = copy(index)
    for i, stride in ipairs(strides) do
      own[axis + i] = index[axis + i] * stride + index[x.ndim + i]
    end
    return x[table.move(own, 1, x.ndim, 1, {})]
  end, "T_sliding_window", "injective")
end

compute["nn.dilate"] = function(attrs, inputs)
  return pad.dilate(inputs[1], attrs.strides, attrs.dilation_value or 0)
end

-- ---------------------------------------------------------- space and batches

-- Widths before and behind each axis, of pairs for those after the first.
local function pairs_of(list, blocks, rank)
  local before, after = {}, {}
  for i = 1, rank do
    local pair = i > 1 and i <= #blocks + 1 and list and list[i - 1] or { 0, 0 }
    before[i], after[i] = pair[1], pair[2]
  end
  return before, after
end

compute["nn.space_to_batch_nd"] = function(attrs, inputs, out_type)
  local x, blocks = inputs[1], attrs.block_shape or { 1, 1 }
  local before, after = pairs_of(attrs.paddings, blocks, x.ndim)
  if is_open(dims.of(x)) then return nil, "a symbolic shape" end
  local padded = pad.pad(x, before, after, attrs.pad_value or 0)
  local shape, cut, axes = dims.of(padded), {}, {}
  cut[1], axes[#blocks + 1] = shape[1], 0
  for i, block in ipairs(blocks) do
    cut[2 * i], cut[2 * i + 1] = shape[i + 1] // block, block
    axes[i], axes[#blocks + 1 + i] = 2 * i, 2 * i - 1
  end
  for i = #blocks + 2, x.ndim do
    cut[#blocks + i], axes[#blocks + i] = shape[i], #blocks + i - 1
  end
  return transform.reshape(transform.transpose(transform.reshape(padded, cut), axes),
    out_type.shape)
end

compute["nn.batch_to_space_nd"] = function(attrs, inputs, out_type)
  local x, blocks = inputs[1], attrs.block_shape or { 1, 1 }
  local before = pairs_of(attrs.crops, blocks, x.ndim)
  local shape, n = dims.of(x), #blocks
  if is_open(shape) then return nil, "a symbolic shape" end
  local cut, axes, whole = copy(blocks), { n }, { shape[1] // product(blocks) }
  cut[n + 1] = whole[1]
  for i = 2, x.ndim do
    cut[n + i] = shape[i]
    whole[i] = shape[i] * (blocks[i - 1] or 1)
    axes[#axes + 1] = n + i - 1
    if i <= n + 1 then axes[#axes + 1] = i - 2 end
  end
  local full = transform.reshape(transform.transpose(transform.reshape(x, cut), axes), whole)
  return dims.compute(out_type.shape, function(index)
    local own = {}
    for i, at in ipairs(index) do own[i] = at + before[i] end
    return full[own]
  end, "T_batch_to_space", "injective")
end

-- ------------------------------------------------------------------- indices

-- Elements by one tensor of indices for each of the first axes.
compute.adv_index = function(_, inputs, out_type)
  local x, shape, n = inputs[1], dims.of(inputs[1]), #inputs - 1
  local rank = #out_type.shape - (x.ndim - n)
  return dims.compute(out_type.shape, function(index)
    local lead, own = table.move(index, 1, rank, 1, {}), {}
    for i = 1, n do
      local pick = broadcast.broadcast_element(inputs[i + 1], dims.of(inputs[i + 1]), lead)
      own[i] = dims.position(pick, shape[i], "strict")
    end
    return x[table.move(index, rank + 1, #index, n + 1, own)]
  end, "T_adv_index", "injective")
end

-- Coordinates of flat indices, the last axis fastest: a row for each axis.
compute.unravel_index = function(_, inputs, out_type, args)
  local constant = args[2].constant
  if not constant then return nil, "a shape that is not constant" end
  local extents, x = constant:to_table(), inputs[1]
  if type(extents) ~= "table" then extents = { extents } end
  for _, extent in ipairs(extents) do
    if extent < 1 then return nil, "an empty shape" end
  end
  return dims.compute(out_type.shape, function(index)
    local rest = x[table.move(index, 2, #index, 1, {})]
    local value = operand.const(0, x.dtype)
    for i = #extents, 1, -1 do
      local extent = operand.const(extents[i], x.dtype)
      value = tir.Select(tir.eq(index[1], i - 1), tir.floormod(rest, extent), value)
      rest = tir.floordiv(rest, extent)
    end
    return value
  end, "T_unravel_index", "injective")
end

-- Each index is stored where it stands.
compute.invert_permutation = function(_, inputs)
  local x, shape = inputs[1], dims.of(inputs[1])
  return te.extern(shape, { x }, function(ins, outs)
    local function store(value_of, place_of)
      return loops.nest(shape, "i", function(index)
        return tir.BufferStore(outs[1], value_of(index[1]), { place_of(index) })
      end)
    end
    return loops.seq(store(function() return operand.const(0, x.dtype) end,
      function(index) return index[1] end),
      store(function(at) return operand.cast(x.dtype, at) end, function(index)
        return dims.position(tir.BufferLoad(ins[1], index), shape[1], "clip")
      end))
  end, { name = "T_invert_permutation", dtype = x.dtype })
end

-- ---------------------------------------------------------------------- bits

-- A shift by the width or more, or by less than 0, gives 0; to the right it keeps the sign.
local function shift(name, f, beyond)
  return function(_, inputs)
    local x, by = inputs[1], inputs[2]
    if x.dtype ~= by.dtype then return nil, "of two dtypes" end
    local zero = operand.const(0, x.dtype)
    local bits = operand.const(math.tointeger(tonumber(x.dtype:match "%d+$")), x.dtype)
    local a, b = dims.of(x), dims.of(by)
    return dims.compute(broadcast.broadcast_shape(a, b, name), function(index)
      local value = broadcast.broadcast_element(x, a, index)
      local distance = broadcast.broadcast_element(by, b, index)
      local fits = tir.logical_and(tir.ge(distance, zero), tir.lt(distance, bits))
      return tir.Select(fits, f(value, tir.Select(fits, distance, zero)), beyond(value, zero))
    end, "T_" .. name, "broadcast")
  end
end

compute.left_shift = shift("left_shift", tir.shift_left, function(_, zero) return zero end)
compute.right_shift = shift("right_shift", tir.shift_right, function(value, zero)
  if not operand.is_signed(value.dtype) then return zero end
  return tir.Select(tir.lt(value, zero), operand.const(-1, value.dtype), zero)
end)

return compute
