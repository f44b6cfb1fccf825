--- ResNet-50 as the TorchScript exporter writes it: BatchNormalization kept,
-- constants as nodes, the flattening spelled out with Shape, Gather, Concat and
-- Reshape, the batch dynamic. Weights are made up, the same every time.

local model = require "perilune.zoo.model"

local resnet = {}

local function conv(m, x, name, shape, stride)
  local out, channels, size = shape[1], shape[2], shape[3]
  local fan_in = channels * size * size
  local count = out * fan_in
  local w = m:initializer(name .. ".weight", "float32", { out, channels, size, size },
    model.noise(count, (2 / fan_in) ^ 0.5))
  local pad = size // 2
  return m:node("Conv", { x, w }, {
    dilations = { 1, 1 }, group = 1, kernel_shape = { size, size },
    pads = { pad, pad, pad, pad }, strides = { stride, stride } })
end

-- `gamma` is small where a block's branch ends, so that sums of branches stay
-- in range through all sixteen blocks.
local function norm(m, x, name, channels, gamma)
  local function parameter(part, bytes)
    return m:initializer(name .. "." .. part, "float32", { channels }, bytes)
  end
  return m:node("BatchNormalization", {
    x, parameter("weight", model.noise(channels, 0.05, gamma)),
    parameter("bias", model.noise(channels, 0.05)),
    parameter("running_mean", model.noise(channels, 0.1)),
    parameter("running_var", model.noise(channels, 0.05, 1)),
  }, { epsilon = 1e-5, momentum = 0.9, training_mode = 0 })
end

local function bottleneck(m, x, name, channels, width, stride)
  local out = width * 4
  local y = conv(m, x, name .. ".conv1", { width, channels, 1 }, 1)
  y = m:node("Relu", { norm(m, y, name .. ".bn1", width, 1) })
  y = conv(m, y, name .. ".conv2", { width, width, 3 }, stride)
  y = m:node("Relu", { norm(m, y, name .. ".bn2", width, 1) })
  y = norm(m, conv(m, y, name .. ".conv3", { out, width, 1 }, 1), name .. ".bn3", out, 0.3)
  local shortcut = x
  if stride ~= 1 or channels ~= out then
    shortcut = conv(m, x, name .. ".downsample.0", { out, channels, 1 }, stride)
    shortcut = norm(m, shortcut, name .. ".downsample.1", out, 1)
  end
  return m:node("Relu", { m:node("Add", { y, shortcut }) }), out
end

-- torch's x.view(x.size(0), -1).
local function flatten(m, x)
  local batch = m:node("Gather", { m:node("Shape", { x }), m:constant(0) }, { axis = 0 })
  local rows = m:node("Unsqueeze", { batch, m:constant { 0 } })
  local shape = m:node("Concat", { rows, m:constant { -1 } }, { axis = 0 })
  return m:node("Reshape", { x, shape })
end

--- options.blocks: how many blocks a stage has (default { 3, 4, 6, 3 }).
function resnet.build(options)
  local m = model.new { name = "resnet50", opset = 17 }
  local x = m:input("input", "float32", { "N", 3, 224, 224 })
  x = norm(m, conv(m, x, "conv1", { 64, 3, 7 }, 2), "bn1", 64, 1)
  x = m:node("MaxPool", { m:node("Relu", { x }) }, {
    ceil_mode = 0, dilations = { 1, 1 }, kernel_shape = { 3, 3 },
    pads = { 1, 1, 1, 1 }, strides = { 2, 2 } })
  local channels = 64
  for stage, blocks in ipairs(options and options.blocks or { 3, 4, 6, 3 }) do
    for block = 1, blocks do
      local stride = block == 1 and stage > 1 and 2 or 1
      local name = ("layer%d.%d"):format(stage, block - 1)
      x, channels = bottleneck(m, x, name, channels, 32 << stage, stride)
    end
  end
  x = flatten(m, m:node("GlobalAveragePool", { x }))
  local w = m:initializer("fc.weight", "float32", { 1000, channels },
    model.noise(1000 * channels, (1 / channels) ^ 0.5))
  local b = m:initializer("fc.bias", "float32", { 1000 }, model.noise(1000, 0.01))
  local y = m:node("Gemm", { x, w, b }, { alpha = 1.0, beta = 1.0, transB = 1 }, "output")
  m:output(y, "float32", { "N", 1000 })
  return m
end

return resnet
