-- Attributes of windows, of convolutions and pooling, as ONNX has them.

local core = require "perilune.core"
core.internal()

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

return window
