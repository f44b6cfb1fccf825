--- ResNet (He et al. 2015, Deep residual learning for image recognition: table
-- 1, the stride in the 3x3 convolution as torchvision has it), as the
-- TorchScript exporter writes it: BatchNormalization kept, the flattening
-- spelled out.

require "perilune.core".internal() -- errors name the scripts of others

local layers = require "perilune.zoo.layers"

local resnet = {
  name = "resnet", doc = "ResNet: convolutions with shortcuts, images to classes.",
  parameters = {
    { name = "depth", default = 50, choices = { 18, 34, 50, 101, 152 }, doc = "weighted layers" },
    { name = "width", default = 64, doc = "channels of the first stage" },
    { name = "classes", default = 1000, doc = "outputs" },
    { name = "image", default = 224, doc = "height and width of an image" },
    { name = "batch", default = "N", doc = "images" },
  },
  presets = {
    { "resnet18", { depth = 18 } }, { "resnet34", { depth = 34 } }, { "resnet50", { depth = 50 } },
    { "resnet101", { depth = 101 } }, { "resnet152", { depth = 152 } },
  },
}

-- Blocks of the four stages.
local blocks_of = {
  [18] = { 2, 2, 2, 2 }, [34] = { 3, 4, 6, 3 }, [50] = { 3, 4, 6, 3 },
  [101] = { 3, 4, 23, 3 }, [152] = { 3, 8, 36, 3 },
}

-- A block's convolutions, { size, outputs }: two of 3x3, or 1x1, 3x3 and 1x1.
local function block_convs(depth, width)
  if depth < 50 then return { { 3, width }, { 3, width } } end
  return { { 1, width }, { 3, width }, { 1, width * 4 } }
end

-- Where a branch ends gamma is small, so that sums of branches stay in range
-- through all blocks.
local function branch(m, x, name, channels, convs, stride)
  for i, conv in ipairs(convs) do
    local size, out = conv[1], conv[2]
    local strides = size == 3 and stride or 1
    if size == 3 then stride = 1 end
    x = layers.conv(m, x, ("%s.conv%d"):format(name, i), { out, channels, size },
      { stride = strides })
    x = layers.batch_norm(m, x, ("%s.bn%d"):format(name, i), out, i == #convs and 0.3 or 1)
    if i < #convs then x = m:node("Relu", { x }) end
    channels = out
  end
  return x, channels
end

local function block(m, x, name, channels, convs, stride)
  local y, out = branch(m, x, name, channels, convs, stride)
  local shortcut = x
  if stride ~= 1 or channels ~= out then
    local down = name .. ".downsample."
    shortcut = layers.conv(m, x, down .. "0", { out, channels, 1 }, { stride = stride })
    shortcut = layers.batch_norm(m, shortcut, down .. "1", out)
  end
  return m:node("Relu", { m:node("Add", { y, shortcut }) }), out
end

local function stem(m, x, width)
  x = layers.conv(m, x, "conv1", { width, 3, 7 }, { stride = 2 })
  x = m:node("Relu", { layers.batch_norm(m, x, "bn1", width) })
  return m:node("MaxPool", { x }, {
    ceil_mode = 0, dilations = { 1, 1 }, kernel_shape = { 3, 3 },
    pads = { 1, 1, 1, 1 }, strides = { 2, 2 } })
end

function resnet.build(m, p)
  local x = m:input("input", "float32", { p.batch, 3, p.image, p.image })
  x = stem(m, x, p.width)
  local channels = p.width
  for stage, blocks in ipairs(blocks_of[p.depth]) do
    local convs = block_convs(p.depth, p.width << (stage - 1))
    for i = 1, blocks do
      local stride = i == 1 and stage > 1 and 2 or 1
      local name = ("layer%d.%d"):format(stage, i - 1)
      x, channels = m:within(name, function()
        return block(m, x, name, channels, convs, stride)
      end)
    end
  end
  x = m:node("GlobalAveragePool", { x })
  x = layers.view(m, x, { layers.size(m, x, 0), -1 }) -- x.view(x.size(0), -1)
  x = layers.rows_linear(m, x, "fc", { channels, p.classes }, "output")
  m:output(x, "float32", { p.batch, p.classes })
end

return resnet
