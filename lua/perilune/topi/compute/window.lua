-- Attributes of windows, of convolutions and pooling, as ONNX and Relay have them.

local core = require "perilune.core"
core.internal()

local transform = require "perilune.topi.transform"

local window = {}

--- Pads of an operator: those before each axis of space, then those behind.
function window.onnx_padding(attrs, shape, kernel)
  local auto = attrs.auto_pad or "NOTSET"
  local n = #shape - 2
  local pads = { before = {}, after = {} }
  for i = 1, n do
    local before, after = 0, 0
    if auto == "NOTSET" and attrs.pads then
      before, after = attrs.pads[i], attrs.pads[n + i]
    elseif auto:find "^SAME" then
      local stride = attrs.strides and attrs.strides[i] or 1
      local reach = (kernel[i] - 1) * (attrs.dilations and attrs.dilations[i] or 1) + 1
      local out = (shape[i + 2] + stride - 1) // stride
      local all = math.max(0, (out - 1) * stride + reach - shape[i + 2])
      before = auto == "SAME_UPPER" and all // 2 or all - all // 2
      after = all - before
    end
    pads.before[i], pads.after[i] = before, after
  end
  return table.move(pads.after, 1, n, n + 1, table.move(pads.before, 1, n, 1, {}))
end

--- The list, or nil where it is empty.
function window.none_if_empty(list) return list and #list > 0 and list or nil end

-- The axes of a layout in the order of another one, from 0; nil if they do not agree.
local function permutation(from, to)
  local axes = {}
  if #from ~= #to then return nil end
  for i = 1, #to do
    local at = from:find(to:sub(i, i), 1, true)
    if not at or not to:sub(i, i):find "%u" then return nil end
    axes[i] = at - 1
  end
  return axes
end

--- A tensor with its axes in the order of another layout; nil if the layouts do not agree.
function window.relaid(x, from, to)
  if from == to then return x end
  local axes = permutation(from, to)
  return axes and transform.transpose(x, axes)
end

--- Relay's padding: one number, one an axis, or before and behind.
function window.relay_padding(list, n)
  if list == nil then return 0 end
  if #list == 1 then return list[1] end
  if #list == n or #list == 2 * n then return list end
  return nil
end

--- Relay's numbers of axes, 1 where there are none.
function window.one_or(list, n)
  if not window.none_if_empty(list) then return 1 end
  return #list == 1 and n > 1 and list[1] or list
end

return window
