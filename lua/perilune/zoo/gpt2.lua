--- GPT-2 (Radford et al. 2019, Language models are unsupervised multitask
-- learners: section 2.3 and table 2), as the TorchScript exporter writes Hugging
-- Face's GPT2LMHeadModel: products on rows with a Reshape on both sides, a
-- causal mask in every block, the head's weight the embedding's.

require "perilune.core".internal() -- errors name the scripts of others

local layers = require "perilune.zoo.layers"

local gpt2 = {
  name = "gpt2", doc = "GPT-2: a transformer decoder, tokens to scores of the next.",
  parameters = {
    { name = "layers", default = 12, doc = "transformer blocks" },
    { name = "hidden", default = 768, doc = "width of a token, a multiple of heads" },
    { name = "heads", default = 12, doc = "attention heads" },
    { name = "vocabulary", default = 50257, doc = "tokens there are" },
    { name = "positions", default = 1024, doc = "longest sequence" },
    { name = "batch", default = "N", doc = "sequences" },
    { name = "sequence", default = "S", doc = "tokens of a sequence, at most positions" },
  },
  presets = {
    { "gpt2-medium", { layers = 24, hidden = 1024, heads = 16 } },
  },
}

function gpt2.check(p)
  if p.hidden % p.heads ~= 0 then return "hidden", "heads" end
end

-- Conv1D: nn.Linear on x.view(-1, inputs), and back.
local function conv1d(m, x, name, shape)
  local batch, sequence = layers.size(m, x, 0), layers.size(m, x, 1)
  local w = m:weight(name .. ".weight", shape, shape[1] ^ -0.5)
  local b = m:weight(name .. ".bias", { shape[2] }, 0.01)
  local rows = layers.view(m, x, { -1, shape[1] })
  rows = m:node("Gemm", { rows, w, b }, { alpha = 1.0, beta = 1.0 })
  return layers.view(m, rows, { batch, sequence, shape[2] })
end

-- A token sees itself and what came before it.
local function causal(m, scores)
  local length = layers.size(m, scores, 3)
  local ones = m:node("ConstantOfShape", { layers.shape(m, { length, length }) }, { value = {
    dtype = "float32", dims = { 1 }, bytes = string.pack("<f", 1) } })
  local seen = m:node("Cast", { m:node("Trilu", { ones }, { upper = 0 }) }, { to = 9 })
  return m:node("Where", { seen, scores, m:scalar(-10000) })
end

local function attention(m, x, name, p)
  local size = p.hidden // p.heads
  local parts = { m.scope .. "/query", m.scope .. "/key", m.scope .. "/value" }
  local joined = conv1d(m, x, name .. ".c_attn", { p.hidden, 3 * p.hidden })
  m:node("Split", { joined, m:constant { p.hidden, p.hidden, p.hidden } }, { axis = 2 }, parts)
  local context = layers.attention(m, layers.split_heads(m, parts[1], p.heads, size),
    layers.split_heads(m, parts[2], p.heads, size, true),
    layers.split_heads(m, parts[3], p.heads, size), size,
    function(scores) return causal(m, scores) end)
  return conv1d(m, layers.join_heads(m, context, p.hidden), name .. ".c_proj",
    { p.hidden, p.hidden })
end

local function block(m, x, name, p)
  local y = layers.layer_norm(m, x, name .. ".ln_1", p.hidden, 1e-5)
  x = m:node("Add", { attention(m, y, name .. ".attn", p), x })
  y = layers.layer_norm(m, x, name .. ".ln_2", p.hidden, 1e-5)
  y = layers.gelu_tanh(m, conv1d(m, y, name .. ".mlp.c_fc", { p.hidden, 4 * p.hidden }))
  y = conv1d(m, y, name .. ".mlp.c_proj", { 4 * p.hidden, p.hidden })
  return m:node("Add", { x, y })
end

-- Positions 0, 1, ... as a row of the batch.
local function positions(m, ids)
  local range = m:node("Range", { m:constant(0), layers.size(m, ids, 1), m:constant(1) })
  return m:node("Unsqueeze", { range, m:constant { 0 } })
end

function gpt2.build(m, p)
  local ids = m:input("input_ids", "int64", { p.batch, p.sequence })
  local words = m:weight("wte.weight", { p.vocabulary, p.hidden }, 0.02)
  local places = m:weight("wpe.weight", { p.positions, p.hidden }, 0.02)
  local x = m:node("Add", { m:node("Gather", { words, ids }),
    m:node("Gather", { places, positions(m, ids) }) })
  for i = 0, p.layers - 1 do
    local name = "h." .. i
    x = m:within(name, function() return block(m, x, name, p) end)
  end
  x = layers.layer_norm(m, x, "ln_f", p.hidden, 1e-5)
  local head = m:node("Transpose", { words }, { perm = { 1, 0 } })
  m:output(m:node("MatMul", { x, head }, nil, "logits"), "float32",
    { p.batch, p.sequence, p.vocabulary })
end

return gpt2
