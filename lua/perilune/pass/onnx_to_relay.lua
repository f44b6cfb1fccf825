--- OnnxToRelay: convolutions and pools over two axes in ONNX's form become those of Relay, which
-- have attributes for layouts. What Relay has no form for stays as it is.
--
--     nn.conv(%x, %w, %b, pads=[1, 1, 1, 1], group=1)
--       =>   %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3])
--            add(%0, reshape(%b, [C, 1, 1]))
--
-- Semantics: ONNX Conv, MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool.

local core = require "perilune.core"
core.internal()

local ir = require "perilune.ir"
local window = require "perilune.topi.compute.window"

-- The extents of a tensor with two axes of space; nil of another one.
local function image_shape(node)
  local type_ = node.type
  local shape = type_.kind == "tensor" and type_.shape
  return shape and #shape == 4 and shape or nil
end

local function is_known(dim) return math.type(dim) == "integer" end

-- Relay's padding of a window over an image, where it is no size that is not known.
local function padding_of(attrs, shape, kernel)
  local same = (attrs.auto_pad or "NOTSET"):find "^SAME"
  if same and not (is_known(shape[3]) and is_known(shape[4])) then return nil end
  local lists = { auto_pad = attrs.auto_pad }
  for _, name in ipairs { "pads", "strides", "dilations" } do
    lists[name] = window.none_if_empty(attrs[name])
  end
  return window.onnx_padding(lists, shape, kernel)
end

local function or_ones(list) return window.none_if_empty(list) or { 1, 1 } end

-- A vector along the axis of channels of an image.
local function by_channel(bias, n)
  local shape = ir.Constant(core.tensor({ n, 1, 1 }, "int64"))
  return ir.Call("reshape", { bias, shape })
end

local convert = {}

convert["nn.conv"] = function(call)
  local args, attrs = call.args, call.attrs
  local shape, weights = image_shape(args[1]), image_shape(args[2])
  if not shape or not weights or not is_known(weights[1]) or not is_known(weights[3])
    or not is_known(weights[4]) then return nil end
  local kernel = { weights[3], weights[4] }
  local padding = padding_of(attrs, shape, kernel)
  if not padding then return nil end
  local result = ir.Call("nn.conv2d", { args[1], args[2] }, { strides = or_ones(attrs.strides),
    padding = padding, dilation = or_ones(attrs.dilations), groups = attrs.group or 1,
    channels = weights[1], kernel_size = kernel })
  if not args[3] or args[3].kind == "Absent" then return result end
  return ir.Call("add", { result, by_channel(args[3], weights[1]) })
end

-- Rounding sizes up means other things in ONNX and in Relay.
local function pool(name)
  return function(call)
    local attrs, shape = call.attrs, image_shape(call.args[1])
    if not shape or call.type.kind ~= "tensor" or (attrs.ceil_mode or 0) ~= 0 then return nil end
    local padding = padding_of(attrs, shape, attrs.kernel_shape)
    if not padding then return nil end
    local own = { pool_size = attrs.kernel_shape, strides = or_ones(attrs.strides),
      padding = padding, dilation = or_ones(attrs.dilations) }
    if name == "nn.avg_pool2d" then own.count_include_pad = (attrs.count_include_pad or 0) ~= 0 end
    return ir.Call(name, { call.args[1] }, own)
  end
end

convert["nn.max_pool"] = pool "nn.max_pool2d"
convert["nn.avg_pool"] = pool "nn.avg_pool2d"

local function global_pool(name)
  return function(call)
    return image_shape(call.args[1]) and ir.Call(name, { call.args[1] }, {})
  end
end

convert["nn.global_avg_pool"] = global_pool "nn.global_avg_pool2d"
convert["nn.global_max_pool"] = global_pool "nn.global_max_pool2d"

return require "perilune.ir.mutator".make { Call = function(call)
  local f = call.op and convert[call.op.name]
  return f and f(call) or nil
end }
