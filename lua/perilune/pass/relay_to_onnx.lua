--- RelayToOnnx: Relay's convolutions and pools over two axes become those of ONNX, and changes of
-- layout become transposes and reshapes. Where a layout is not that of ONNX, they stand between
-- two such changes.
--
--     nn.conv2d(%x, %w, data_layout="NHWC", kernel_layout="HWIO")
--       =>   %0 = transpose(%x, axes=[0, 3, 1, 2])
--            %1 = transpose(%w, axes=[3, 2, 0, 1])
--            %2 = nn.conv(%0, %1)
--            transpose(%2, axes=[0, 2, 3, 1])
--
-- Semantics: TVM's operators and layouts; ONNX Conv, MaxPool, AveragePool, GlobalAveragePool.

local core = require "perilune.core"
core.internal()

local ir = require "perilune.ir"

-- --------------------------------------------------------------------- layouts

-- The axes of a layout in order: { letter = "C" } of one that is whole or has inner parts, and
-- { letter = "c", factor = 16 }.
local function axes_of(text)
  local list = {}
  for factor, letter in text:gmatch "(%d*)(%a)" do
    list[#list + 1] = { letter = letter, factor = math.tointeger(tonumber(factor)) }
  end
  return list
end

local function position(axes, letter)
  for i, axis in ipairs(axes) do if axis.letter == letter then return i end end
end

-- The axes with each divided one as its outer and inner part side by side.
local function divided(axes, of)
  local list = {}
  for _, axis in ipairs(axes) do
    local inner = of[position(of, axis.letter:lower())]
    list[#list + 1] = axis
    if inner and inner.letter ~= axis.letter then list[#list + 1] = inner end
  end
  return list
end

local function reshaped(x, shape)
  return ir.Call("reshape", { x, ir.Constant(core.tensor(shape, "int64")) })
end

-- Extents of the divided axes of a tensor (0: that of the same place, where nothing was divided).
local function divided_shape(shape, axes)
  local list = {}
  for _, axis in ipairs(axes) do
    local inner = axes[position(axes, axis.letter:lower())]
    local extent = shape[axis.letter]
    if axis.factor then extent = axis.factor
    elseif inner and inner ~= axis then extent = extent // inner.factor end
    list[#list + 1] = extent
  end
  return list
end

local function transposed(x, from, to)
  local axes, same = {}, true
  for i, axis in ipairs(to) do
    axes[i] = position(from, axis.letter) - 1
    same = same and axes[i] == i - 1
  end
  return same and x or ir.Call("transpose", { x }, { axes = axes })
end

local function has_letters(axes, others)
  for _, axis in ipairs(others) do
    if not axis.factor and not position(axes, axis.letter) then return false end
  end
  return true
end

-- Whole extents by letter; nil where one is not known.
local function extents(type_, axes)
  local shape, out = type_.shape, {}
  for i, axis in ipairs(axes) do
    local extent = shape and shape[i]
    if math.type(extent) ~= "integer" then return nil end
    local letter = axis.letter:upper()
    out[letter] = (out[letter] or 1) * extent
  end
  return out
end

local function is_divided(axes)
  for _, axis in ipairs(axes) do if axis.factor then return true end end
  return false
end

-- x in another layout; nil where that takes sizes that are not known. One of the two layouts may
-- divide axes.
local function relaid(x, from_text, to_text)
  if from_text == to_text then return x end
  local from, to = axes_of(from_text), axes_of(to_text)
  if not has_letters(from, to) or not has_letters(to, from) then return nil end
  if not is_divided(from) and not is_divided(to) then return transposed(x, from, to) end
  local sizes = not (is_divided(from) and is_divided(to)) and extents(x.type, from)
  if not sizes then return nil end
  if is_divided(to) then
    local middle = divided(from, to)
    return transposed(reshaped(x, divided_shape(sizes, middle)), middle, to)
  end
  local shape = {}
  for i, axis in ipairs(to) do shape[i] = sizes[axis.letter] end
  return reshaped(transposed(x, from, divided(to, from)), shape)
end

-- ------------------------------------------------------------------- operators

-- Of an attribute, which is true, false or a number.
local function holds(x) return x ~= nil and x ~= false and x ~= 0 end

local function given(text) return text and text ~= "" and text or nil end

-- Pads before all axes, then behind: of one number, of one an axis, or of all four.
local function pads_of(padding)
  local list = padding or { 0 }
  if #list == 1 then return { list[1], list[1], list[1], list[1] } end
  if #list == 2 then return { list[1], list[2], list[1], list[2] } end
  return list
end

-- Numbers of both axes; nil where they are 1: older versions of operators have no such attribute.
local function both(list)
  if list and #list == 1 then list = { list[1], list[1] } end
  return list and (list[1] ~= 1 or list[2] ~= 1) and list or nil
end

local function extents_of(list) return #list == 1 and { list[1], list[1] } or list end

-- The call of ONNX's operator on channels first, and the layouts around it.
local function around(call, layout, f)
  local plain = relaid(call.args[1], layout, "NCHW")
  local result = plain and f(plain)
  return result and relaid(result, "NCHW", given(call.attrs.out_layout) or layout)
end

local convert = {}

-- Relay's weights of one filter a channel may be (C, 1) or (1, C); ONNX has (C, 1).
local function weights_of(call, groups)
  local weights = relaid(call.args[2], given(call.attrs.kernel_layout) or "OIHW", "OIHW")
  local shape = weights and weights.type.shape
  if not shape or #shape ~= 4 then return nil end
  for i = 1, 4 do if math.type(shape[i]) ~= "integer" then return nil end end
  if groups > 1 and shape[1] == 1 and shape[2] == groups then
    weights = reshaped(weights, { shape[2], 1, shape[3], shape[4] })
  end
  return weights, { shape[3], shape[4] }
end

local function conv(call)
  local attrs = call.attrs
  local groups = attrs.groups or 1
  if given(attrs.out_dtype) and attrs.out_dtype ~= call.args[1].type.dtype then return nil end
  local weights, kernel = weights_of(call, groups)
  return weights and around(call, given(attrs.data_layout) or "NCHW", function(x)
    return ir.Call("nn.conv", { x, weights }, { strides = both(attrs.strides),
      pads = pads_of(attrs.padding), dilations = both(attrs.dilation), group = groups,
      kernel_shape = kernel })
  end)
end

convert["nn.conv2d"] = conv
convert["nn.contrib_conv2d_NCHWc"] = conv

-- Rounding sizes up means other things in ONNX and in Relay.
local function pool(name)
  return function(call)
    local attrs = call.attrs
    if holds(attrs.ceil_mode) then return nil end
    return around(call, given(attrs.layout) or "NCHW", function(x)
      local own = { kernel_shape = extents_of(attrs.pool_size), strides = both(attrs.strides),
        pads = pads_of(attrs.padding), dilations = both(attrs.dilation) }
      if name == "nn.avg_pool" and holds(attrs.count_include_pad) then own.count_include_pad = 1 end
      return ir.Call(name, { x }, own)
    end)
  end
end

convert["nn.max_pool2d"] = pool "nn.max_pool"
convert["nn.avg_pool2d"] = pool "nn.avg_pool"

local function global_pool(name)
  return function(call)
    return around(call, given(call.attrs.layout) or "NCHW", function(x)
      return ir.Call(name, { x }, {})
    end)
  end
end

convert["nn.global_avg_pool2d"] = global_pool "nn.global_avg_pool"
convert["nn.global_max_pool2d"] = global_pool "nn.global_max_pool"

convert["layout_transform"] = function(call)
  return relaid(call.args[1], call.attrs.src_layout, call.attrs.dst_layout)
end

return require "perilune.ir.mutator".make { Call = function(call)
  local f = call.op and convert[call.op.name]
  return f and f(call) or nil
end }
