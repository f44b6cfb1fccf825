-- pl.topi.nn: padding, by TVM's names.

local core = require "perilune.core"
core.internal()

local dims = require "perilune.topi.dims"
local layout = require "perilune.topi.layout"
local operand = require "perilune.tir.operand"
local tir = require "perilune.tir"

local nn = {}

-- Whether an index lies in the operand; nil: always.
local function inside(index, before, after, shape)
  local condition
  local function also(holds)
    condition = condition and tir.logical_and(condition, holds) or holds
  end
  for i, dim in ipairs(shape) do
    if before[i] > 0 then also(tir.ge(index[i], before[i])) end
    if after[i] > 0 then also(tir.lt(index[i], dim + before[i])) end
  end
  return condition
end

local function shifted(index, before)
  local own = {}
  for i in ipairs(index) do own[i] = before[i] == 0 and index[i] or index[i] - before[i] end
  return own
end

local function padded_shape(x, before, after)
  local shape = dims.of(x)
  for i, dim in ipairs(shape) do shape[i] = dim + before[i] + after[i] end
  return shape
end

-- Widths around the axes of a blocked tensor.
local function of_blocks(widths) return { widths[1], 0, widths[3], widths[4], 0 } end

--- Borders of a value before and after each axis, or elements removed where a width is negative.
function nn.pad(x, pad_before, pad_after, pad_value, name)
  local shape = dims.of(dims.tensor(x, "topi.nn.pad"))
  local before = dims.list(pad_before, #shape, "topi.nn.pad", "pad_before")
  local after = dims.list(pad_after or before, #shape, "topi.nn.pad", "pad_after")
  local blocked = layout.of(x)
  if blocked and before[2] == 0 and after[2] == 0 then
    return layout.view(nn.pad(blocked, of_blocks(before), of_blocks(after), pad_value, name))
  end
  local value = dims.expr(pad_value or 0, x.dtype)
  if operand.is_float(x.dtype) and value.kind == "IntImm" then
    value = operand.const(value.value, x.dtype)
  end
  return dims.compute(padded_shape(x, before, after), function(index)
    local condition = inside(index, before, after, shape)
    local element = x[shifted(index, before)]
    return condition and tir.if_then_else(condition, element, value) or element
  end, name or "T_pad", "injective,pad")
end

--- Borders of a value whose widths are expressions, in a result of a known shape; elements are
-- removed where a width is negative.
function nn.dynamic_pad(x, pad_before, pad_value, out_shape)
  local shape = dims.of(dims.tensor(x, "topi.nn.dynamic_pad"))
  dims.list(pad_before, #shape, "topi.nn.dynamic_pad", "pad_before")
  local value = dims.expr(pad_value or 0, x.dtype)
  return dims.compute(out_shape, function(index)
    local own, condition = {}, nil
    for i, before in ipairs(pad_before) do
      own[i] = index[i]
      if before ~= 0 or not dims.equal(shape[i], out_shape[i]) then
        own[i] = before == 0 and index[i] or index[i] - before
        local inner = tir.logical_and(tir.ge(own[i], 0), tir.lt(own[i], shape[i]))
        condition = condition and tir.logical_and(condition, inner) or inner
      end
    end
    return condition and tir.if_then_else(condition, x[own], value) or x[own]
  end, "T_dynamic_pad", "injective,pad")
end

-- A position mirrored at the ends: without the border element ("REFLECT") or with it.
local function mirrored(at, extent, reflect)
  local first, last = reflect and 0 or -1, reflect and 2 * extent - 2 or 2 * extent - 1
  at = tir.Select(tir.lt(at, 0), first - at, at)
  return tir.Select(tir.ge(at, extent), last - at, at)
end

--- Borders of elements mirrored at the ends; mode: "SYMMETRIC" (with the border) or "REFLECT".
function nn.mirror_pad(x, pad_before, pad_after, mode)
  local shape = dims.of(dims.tensor(x, "topi.nn.mirror_pad"))
  local before = dims.list(pad_before, #shape, "topi.nn.mirror_pad", "pad_before")
  local after = dims.list(pad_after or before, #shape, "topi.nn.mirror_pad", "pad_after")
  return dims.compute(padded_shape(x, before, after), function(index)
    local own = shifted(index, before)
    for i, dim in ipairs(shape) do
      if before[i] > 0 or after[i] > 0 then own[i] = mirrored(own[i], dim, mode == "REFLECT") end
    end
    return x[own]
  end, "T_mirror_pad", "injective")
end

--- Borders of the nearest element.
function nn.edge_pad(x, pad_before, pad_after)
  local shape = dims.of(dims.tensor(x, "topi.nn.edge_pad"))
  local before = dims.list(pad_before, #shape, "topi.nn.edge_pad", "pad_before")
  local after = dims.list(pad_after or before, #shape, "topi.nn.edge_pad", "pad_after")
  return dims.compute(padded_shape(x, before, after), function(index)
    local own = shifted(index, before)
    for i, dim in ipairs(shape) do
      if before[i] ~= 0 or after[i] ~= 0 then
        own[i] = tir.max(tir.min(own[i], dim - 1), 0)
      end
    end
    return x[own]
  end, "T_edge_pad", "injective")
end

--- strides - 1 values between neighbouring elements.
function nn.dilate(x, strides, dilation_value)
  local shape = dims.of(dims.tensor(x, "topi.nn.dilate"))
  dims.list(strides, #shape, "topi.nn.dilate", "strides")
  local out, value = {}, dims.expr(dilation_value or 0, x.dtype)
  if value.dtype ~= x.dtype then value = operand.cast(x.dtype, value) end
  for i, dim in ipairs(shape) do out[i] = (dim - 1) * strides[i] + 1 end
  return dims.compute(out, function(index)
    local own, condition = {}, nil
    for i, step in ipairs(strides) do
      own[i] = step == 1 and index[i] or tir.indexdiv(index[i], step)
      if step ~= 1 then
        local holds = tir.eq(tir.indexmod(index[i], step), 0)
        condition = condition and tir.logical_and(condition, holds) or holds
      end
    end
    return condition and tir.if_then_else(condition, x[own], value) or x[own]
  end, "T_dilate", "injective,dilate")
end

return nn
