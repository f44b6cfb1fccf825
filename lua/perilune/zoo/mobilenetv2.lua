--- MobileNetV2 (Sandler et al. 2018, MobileNetV2: inverted residuals and linear
-- bottlenecks: table 2, `width` the multiplier of section 6.1), as the
-- TorchScript exporter writes torchvision's: ReLU6 as Clip with its bounds as
-- Constant nodes, Flatten by operator.

require "perilune.core".internal() -- errors name the scripts of others

local layers = require "perilune.zoo.layers"

local mobilenetv2 = {
  name = "mobilenetv2", doc = "MobileNetV2: depthwise convolutions, images to classes.",
  parameters = {
    { name = "width", default = 1.0, least = 0.05, most = 16, doc = "factor of all channels" },
    { name = "classes", default = 1000, doc = "outputs" },
    { name = "image", default = 224, doc = "height and width of an image" },
    { name = "batch", default = "N", doc = "images" },
  },
  presets = {},
}

-- Table 2: expansion t, channels c, blocks n, stride s of the first.
local stages = {
  { 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 }, { 6, 96, 3, 1 },
  { 6, 160, 3, 2 }, { 6, 320, 1, 1 },
}

-- Channels are multiples of 8, at most a tenth fewer than asked for.
local function channels_of(wanted)
  local rounded = math.max(8, math.floor(wanted + 4) // 8 * 8)
  return rounded < 0.9 * wanted and rounded + 8 or rounded
end

local function conv_norm(m, x, name, shape, options)
  x = layers.conv(m, x, name .. ".0", shape, options)
  return layers.batch_norm(m, x, name .. ".1", shape[1])
end

local function relu6(m, x)
  return m:node("Clip", { x, m:scalar(0), m:scalar(6) })
end

-- An inverted residual: widened by 1x1, filtered by depthwise 3x3, narrowed by a
-- 1x1 without activation.
local function block(m, x, name, channels, row)
  local expansion, out, stride = row[1], row[2], row[4]
  local hidden, y = channels * expansion, x
  if expansion ~= 1 then
    y = relu6(m, conv_norm(m, y, name .. ".expand", { hidden, channels, 1 }, {}))
  end
  y = relu6(m, conv_norm(m, y, name .. ".depthwise", { hidden, 1, 3 },
    { stride = stride, group = hidden }))
  y = conv_norm(m, y, name .. ".project", { out, hidden, 1 }, {})
  if stride == 1 and channels == out then y = m:node("Add", { x, y }) end
  return y
end

local function add_blocks(m, x, channels, width)
  local index = 0
  for _, row in ipairs(stages) do
    local out = channels_of(row[2] * width)
    for i = 1, row[3] do
      index = index + 1
      local name = "features." .. index
      x = m:within(name, function()
        return block(m, x, name, channels, { row[1], out, 1, i == 1 and row[4] or 1 })
      end)
      channels = out
    end
  end
  return x, channels
end

function mobilenetv2.build(m, p)
  local x = m:input("input", "float32", { p.batch, 3, p.image, p.image })
  local first = channels_of(32 * p.width)
  local last = channels_of(1280 * math.max(1.0, p.width))
  x = relu6(m, conv_norm(m, x, "features.0", { first, 3, 3 }, { stride = 2 }))
  local channels
  x, channels = add_blocks(m, x, first, p.width)
  x = relu6(m, conv_norm(m, x, "features.18", { last, channels, 1 }, {}))
  x = m:node("Flatten", { m:node("GlobalAveragePool", { x }) }, { axis = 1 })
  x = layers.rows_linear(m, x, "classifier.1", { last, p.classes }, "output")
  m:output(x, "float32", { p.batch, p.classes })
end

return mobilenetv2
