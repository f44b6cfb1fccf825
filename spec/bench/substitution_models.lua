-- The models that TASO and Tensat are measured with, in their sizes (Tensat's src/*.rs and
-- model/*.model), as ONNX's operators with random weights. An activation that is a part of their
-- convolution is a nn.relu behind it here, which the evaluator computes together with it.

local pl = require "perilune"

local op = pl.op
local seed = 0

local function weights(...)
  seed = seed + 1
  local fan_in = 1
  for i = 2, select("#", ...) do fan_in = fan_in * select(i, ...) end
  local bound = fan_in > 1 and (1 / fan_in) ^ 0.5 or 0.1
  return pl.const(pl.tensor.random({ ... }, "float32", { seed = seed, low = -bound,
    high = bound }))
end

local function image(c, n)
  return pl.var("x", ("Tensor[(1, %d, %d, %d), float32]"):format(c, n, n))
end

local function channels(x) return x.type.shape[2] end

-- { group =, stride =, bias =, pad = }; k: an extent, or those of both axes.
local function conv(x, out, k, options)
  options = options or {}
  local rows, columns = type(k) == "table" and k[1] or k, type(k) == "table" and k[2] or k
  local groups, stride = options.group or 1, options.stride or 1
  local top, left = options.pad or (rows - 1) // 2, options.pad or (columns - 1) // 2
  local w = weights(out, channels(x) // groups, rows, columns)
  return op.nn.conv(x, w, options.bias and weights(out) or nil,
    { kernel_shape = { rows, columns }, pads = { top, left, top, left }, group = groups,
      strides = { stride, stride } })
end

local function conv_relu(x, out, k, options) return op.nn.relu(conv(x, out, k, options)) end

local function pool(x, kind, k, stride, pad)
  return op.nn[kind](x, { kernel_shape = { k, k }, strides = { stride, stride },
    pads = { pad, pad, pad, pad } })
end

local function joined(parts) return op.concatenate(parts, { axis = 1 }) end

local function module(params, body) return pl.module { main = pl.func(params, body) } end

local models = {}

-- ------------------------------------------------------------------------ BERT

-- Attention and the two dense layers behind it, of 64 tokens.
local function bert_layer(x, hidden)
  local function projected() return op.nn.matmul(x, weights(hidden, hidden)) end
  local q, k, v = projected(), projected(), projected()
  local scores = op.nn.softmax(op.nn.matmul(q, op.transpose(k, { axes = { 1, 0 } })), { axis = -1 })
  local attended = op.add(x, op.nn.matmul(op.nn.matmul(scores, v), weights(hidden, hidden)))
  local inner = op.nn.relu(op.nn.matmul(attended, weights(hidden, 4 * hidden)))
  return op.add(attended, op.nn.matmul(inner, weights(4 * hidden, hidden)))
end

-- Eight layers of 1024.
function models.bert()
  local hidden, tokens, layers = 1024, 64, 8
  local x = pl.var("x", ("Tensor[(%d, %d), float32]"):format(tokens, hidden))
  local y = x
  for _ = 1, layers do y = bert_layer(y, hidden) end
  return module({ x }, y)
end

-- ---------------------------------------------------------------------- NasRNN

-- Eight gates of the state and an input, each with weights of its own.
local function nas_step(state, x, n)
  local gates = {}
  for i = 1, 8 do
    gates[i] = op.add(op.nn.matmul(state, weights(n, n)), op.nn.matmul(x, weights(n, n)))
  end
  local function gate(i, f) return f(gates[i]) end
  local a = op.multiply(gate(1, op.nn.relu), gate(4, op.sigmoid))
  local b = op.add(gate(2, op.sigmoid), gate(3, op.tanh))
  local c = op.multiply(gate(5, op.tanh), gate(6, op.sigmoid))
  local d = op.multiply(gate(7, op.sigmoid), gate(8, op.nn.relu))
  return op.tanh(op.multiply(op.tanh(op.add(a, b)), op.tanh(op.multiply(c, d))))
end

function models.nasrnn()
  local n, steps, params = 512, 5, {}
  for i = 0, steps do params[i + 1] = pl.var("x" .. i, ("Tensor[(1, %d), float32]"):format(n)) end
  local state = params[1]
  for i = 1, steps do state = nas_step(state, params[i + 1], n) end
  return module(params, state)
end

-- -------------------------------------------------------------------- NasNet-A

local function fitted(previous, current)
  local c = channels(current)
  if previous.type.shape[3] == current.type.shape[3] then return conv_relu(previous, c, 1) end
  return conv_relu(previous, c, 3, { stride = 2 })
end

-- As many groups as the result has channels.
local function separable(x, c, k, stride)
  return conv(conv(x, c, k, { group = c, stride = stride }), c, 1)
end

local function average(x, stride) return pool(x, "avg_pool", 3, stride or 1, 1) end

local function normal_cell(previous, current, c)
  current = conv_relu(current, c, 1)
  previous = fitted(previous, current)
  return joined { op.add(separable(current, c, 3), current),
    op.add(separable(previous, c, 3), separable(current, c, 3)),
    op.add(average(current), previous), op.add(average(previous), average(previous)),
    op.add(separable(previous, c, 3), separable(previous, c, 3)) }
end

local function reduction_cell(previous, current, c)
  current = conv_relu(current, c, 1)
  previous = fitted(previous, current)
  local function most() return pool(current, "max_pool", 3, 2, 1) end
  local first = op.add(separable(previous, c, 7, 2), separable(current, c, 5, 2))
  local second = op.add(most(), separable(previous, c, 7, 2))
  return joined { first, second, op.add(average(current, 2), separable(previous, c, 5, 2)),
    op.add(most(), separable(first, c, 3)), op.add(average(first), second) }
end

local function stem(input)
  return pool(conv_relu(input, 64, 7, { stride = 2 }), "max_pool", 3, 2, 1)
end

function models.nasnet()
  local input = image(3, 224)
  local x, c = stem(input), 128
  for _ = 1, 3 do
    local previous, current = x, x
    for _ = 1, 5 do previous, current = current, normal_cell(previous, current, c) end
    c = 2 * c
    x = reduction_cell(previous, current, c)
  end
  return module({ input }, x)
end

-- ------------------------------------------------------------------ ResNeXt-50

local function resnext_block(x, c, stride)
  local inner = conv_relu(conv_relu(x, c, 1), c, 3, { group = 32, stride = stride })
  local shortcut = x
  if stride > 1 or channels(x) ~= 2 * c then
    shortcut = conv_relu(x, 2 * c, 1, { stride = stride })
  end
  return op.nn.relu(op.add(shortcut, conv(inner, 2 * c, 1)))
end

function models.resnext50()
  local input = image(3, 224)
  local x = stem(input)
  for stage, n in ipairs { 3, 4, 6, 3 } do
    for i = 1, n do x = resnext_block(x, 64 << stage, stage > 1 and i == 1 and 2 or 1) end
  end
  return module({ input }, x)
end

-- ---------------------------------------------------------------- Inception-v3

local function inception_a(x, pooled)
  return joined { conv_relu(x, 64, 1), conv_relu(conv_relu(x, 48, 1), 64, 5),
    conv_relu(conv_relu(conv_relu(x, 64, 1), 96, 3), 96, 3), conv_relu(average(x), pooled, 1) }
end

local function inception_b(x)
  return joined { conv_relu(x, 384, 3, { stride = 2, pad = 0 }),
    conv_relu(conv_relu(conv_relu(x, 64, 1), 96, 3), 96, 3, { stride = 2, pad = 0 }),
    pool(x, "max_pool", 3, 2, 0) }
end

local function inception_c(x, c)
  local row, column = { 1, 7 }, { 7, 1 }
  local double = conv_relu(conv_relu(conv_relu(x, c, 1), c, column), c, row)
  return joined { conv_relu(x, 192, 1),
    conv_relu(conv_relu(conv_relu(x, c, 1), c, row), 192, column),
    conv_relu(conv_relu(double, c, column), 192, row), conv_relu(average(x), 192, 1) }
end

local function inception_d(x)
  local long = conv_relu(conv_relu(conv_relu(x, 192, 1), 192, { 1, 7 }), 192, { 7, 1 })
  return joined { conv_relu(conv_relu(x, 192, 1), 320, 3, { stride = 2, pad = 0 }),
    conv_relu(long, 192, 3, { stride = 2, pad = 0 }), pool(x, "max_pool", 3, 2, 0) }
end

local function inception_e(x)
  local function both(y) return conv_relu(y, 384, { 1, 3 }), conv_relu(y, 384, { 3, 1 }) end
  local a, b = both(conv_relu(x, 384, 1))
  local c, d = both(conv_relu(conv_relu(x, 448, 1), 384, 3))
  local most = pool(x, "max_pool", 3, 1, 1)
  return joined { conv_relu(x, 320, 1), a, b, c, d, conv_relu(most, 192, 1) }
end

function models.inception()
  local input = image(3, 299)
  local x = conv_relu(input, 32, 3, { stride = 2, pad = 0 })
  x = pool(conv_relu(conv_relu(x, 32, 3, { pad = 0 }), 64, 3), "max_pool", 3, 2, 0)
  x = pool(conv_relu(conv_relu(x, 80, 1), 192, 3, { pad = 0 }), "max_pool", 3, 2, 0)
  for _, pooled in ipairs { 32, 64, 64 } do x = inception_a(x, pooled) end
  x = inception_b(x)
  for _, c in ipairs { 128, 160, 160, 192 } do x = inception_c(x, c) end
  x = inception_e(inception_e(inception_d(x)))
  return module({ input }, pool(x, "avg_pool", 8, 1, 0))
end

-- ------------------------------------------------------------------ SqueezeNet

local function fire(x, n)
  local squeezed = conv_relu(x, n, 1, { bias = true })
  return joined { conv_relu(squeezed, 4 * n, 1, { bias = true }),
    conv_relu(squeezed, 4 * n, 3, { bias = true }) }
end

function models.squeezenet()
  local input = image(3, 224)
  local x = conv_relu(input, 64, 3, { stride = 2, pad = 0, bias = true })
  x = fire(fire(pool(x, "max_pool", 3, 2, 0), 16), 16)
  x = fire(fire(pool(x, "max_pool", 3, 2, 0), 32), 32)
  x = pool(x, "max_pool", 3, 2, 0)
  for _, n in ipairs { 48, 48, 64, 64 } do x = fire(x, n) end
  return module({ input }, op.nn.global_avg_pool(conv_relu(x, 1000, 1, { bias = true })))
end

-- ---------------------------------------------------------------------- VGG-19

-- Without the three dense layers, which no rule changes.
function models.vgg()
  local input = image(3, 224)
  local x = input
  for stage, n in ipairs { 2, 2, 4, 4, 4 } do
    for _ = 1, n do x = conv_relu(x, math.min(512, 32 << stage), 3, { bias = true }) end
    x = pool(x, "max_pool", 2, 2, 0)
  end
  return module({ input }, x)
end

return models
