--- Layers as PyTorch's TorchScript exporter writes them, chains of Shape, Gather,
-- Unsqueeze and Concat in front of every Reshape included: what the models of
-- the zoo are made of, and what an optimiser finds in real files.
--
-- Each takes the model (zoo/model.lua), then the name of its input; `name` is
-- what its weights are called; each gives the name of its output.

require "perilune.core".internal() -- errors name the scripts of others

local layers = {}

-- ---------------------------------------------------------------------- shapes

--- x.size(axis), a scalar.
function layers.size(m, x, axis)
  return m:node("Gather", { m:node("Shape", { x }), m:constant(axis) }, { axis = 0 })
end

--- A shape of integers and of names of scalars.
function layers.shape(m, parts)
  local rows = {}
  for i, part in ipairs(parts) do
    rows[i] = type(part) == "string" and m:node("Unsqueeze", { part, m:constant { 0 } })
      or m:constant { part }
  end
  return m:node("Concat", rows, { axis = 0 })
end

--- x.view(...).
function layers.view(m, x, parts)
  return m:node("Reshape", { x, layers.shape(m, parts) })
end

--- x[:, index].
function layers.select(m, x, axis, index)
  return m:node("Gather", { x, m:constant(index) }, { axis = axis })
end

-- ------------------------------------------------------------- fully connected

--- On the last of three axes: nn.Linear, its weight transposed beforehand; shape:
-- { inputs, outputs }.
function layers.linear(m, x, name, shape)
  local w = m:weight(name .. ".weight", shape, shape[1] ^ -0.5)
  local b = m:weight(name .. ".bias", { shape[2] }, 0.01)
  return m:node("Add", { b, m:node("MatMul", { x, w }) })
end

--- Of rows: nn.Linear as one Gemm; shape: { inputs, outputs }.
function layers.rows_linear(m, x, name, shape, output)
  local w = m:weight(name .. ".weight", { shape[2], shape[1] }, shape[1] ^ -0.5)
  local b = m:weight(name .. ".bias", { shape[2] }, 0.01)
  return m:node("Gemm", { x, w, b }, { alpha = 1.0, beta = 1.0, transB = 1 }, output)
end

-- ---------------------------------------------------------------------- images

--- shape: { outputs, inputs of a group, size }; options: stride, group, bias.
function layers.conv(m, x, name, shape, options)
  local out, channels, size = table.unpack(shape)
  local stride, pad = options.stride or 1, options.pad or size // 2
  local w = m:weight(name .. ".weight", { out, channels, size, size },
    (2 / (channels * size * size)) ^ 0.5) -- He et al. 2015, Delving deep into rectifiers
  local b = options.bias and m:weight(name .. ".bias", { out }, 0.01)
  return m:node("Conv", { x, w, b }, {
    dilations = { 1, 1 }, group = options.group or 1, kernel_shape = { size, size },
    pads = { pad, pad, pad, pad }, strides = { stride, stride } })
end

--- `gamma` is about how much larger the result's deviation is than 1.
function layers.batch_norm(m, x, name, channels, gamma)
  local function parameter(part, deviation, mean)
    return m:weight(name .. "." .. part, { channels }, deviation, mean)
  end
  return m:node("BatchNormalization", {
    x, parameter("weight", 0.05, gamma or 1), parameter("bias", 0.05),
    parameter("running_mean", 0.1), parameter("running_var", 0.05, 1),
  }, { epsilon = 1e-5, momentum = 0.9, training_mode = 0 })
end

-- ---------------------------------------------------------------- transformers

local function mean(m, x)
  if m.opset < 18 then return m:node("ReduceMean", { x }, { axes = { -1 } }) end
  return m:node("ReduceMean", { x, m:constant { -1 } })
end

--- One node from opset 17 on, nine before.
function layers.layer_norm(m, x, name, width, epsilon)
  local w = m:weight(name .. ".weight", { width }, 0.05, 1)
  local b = m:weight(name .. ".bias", { width }, 0.05)
  if m.opset >= 17 then
    return m:node("LayerNormalization", { x, w, b }, { axis = -1, epsilon = epsilon })
  end
  local centred = m:node("Sub", { x, mean(m, x) })
  local variance = mean(m, m:node("Pow", { centred, m:scalar(2) }))
  local root = m:node("Sqrt", { m:node("Add", { variance, m:scalar(epsilon) }) })
  local scaled = m:node("Mul", { m:node("Div", { centred, root }), w })
  return m:node("Add", { scaled, b })
end

--- Hendrycks and Gimpel 2016, exact; one node from opset 20 on.
function layers.gelu(m, x)
  if m.opset >= 20 then return m:node("Gelu", { x }, { approximate = "none" }) end
  local erf = m:node("Erf", { m:node("Div", { x, m:scalar(2 ^ 0.5) }) })
  local doubled = m:node("Mul", { x, m:node("Add", { erf, m:scalar(1) }) })
  return m:node("Mul", { doubled, m:scalar(0.5) })
end

--- The same by tanh, as GPT-2 has it.
function layers.gelu_tanh(m, x)
  local cube = m:node("Mul", { m:node("Pow", { x, m:scalar(3) }), m:scalar(0.044715) })
  local inner = m:node("Mul", { m:node("Add", { x, cube }), m:scalar((2 / math.pi) ^ 0.5) })
  local factor = m:node("Add", { m:node("Tanh", { inner }), m:scalar(1) })
  return m:node("Mul", { m:node("Mul", { x, m:scalar(0.5) }), factor })
end

--- (batch, sequence, width) to (batch, heads, sequence, width / heads), or with
-- the last two axes exchanged.
function layers.split_heads(m, x, heads, size, exchanged)
  local batch, sequence = layers.size(m, x, 0), layers.size(m, x, 1)
  local y = layers.view(m, x, { batch, sequence, heads, size })
  return m:node("Transpose", { y }, { perm = exchanged and { 0, 2, 3, 1 } or { 0, 2, 1, 3 } })
end

--- And back.
function layers.join_heads(m, x, width)
  local y = m:node("Transpose", { x }, { perm = { 0, 2, 1, 3 } })
  return layers.view(m, y, { layers.size(m, y, 0), layers.size(m, y, 1), width })
end

--- Vaswani et al. 2017, section 3.2.1, on heads; `mask(scores)` puts aside what
-- is not to be looked at.
function layers.attention(m, query, key, value, size, mask)
  local scores = m:node("Div", { m:node("MatMul", { query, key }), m:scalar(size ^ 0.5) })
  if mask then scores = mask(scores) end
  local weights = m:node("Softmax", { scores }, { axis = -1 })
  return m:node("MatMul", { weights, value })
end

return layers
