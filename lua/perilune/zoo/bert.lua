--- BERT (Devlin et al. 2018, BERT: section 3, "model architecture", and A.2), as
-- the TorchScript exporter writes Hugging Face's BertModel: positions cut to the
-- sequence, the mask widened and added to the scores.

require "perilune.core".internal() -- errors name the scripts of others

local layers = require "perilune.zoo.layers"

local bert = {
  name = "bert", doc = "BERT: a transformer encoder, tokens to their states.",
  parameters = {
    { name = "layers", default = 12, doc = "transformer blocks" },
    { name = "hidden", default = 768, doc = "width of a token, a multiple of heads" },
    { name = "heads", default = 12, doc = "attention heads" },
    { name = "intermediate", default = 3072, doc = "width inside a block" },
    { name = "vocabulary", default = 30522, doc = "tokens there are" },
    { name = "positions", default = 512, doc = "longest sequence" },
    { name = "types", default = 2, doc = "kinds of segments" },
    { name = "batch", default = "N", doc = "sequences" },
    { name = "sequence", default = "S", doc = "tokens of a sequence, at most positions" },
  },
  presets = {
    { "bert-base", {} },
    { "bert-large", { layers = 24, hidden = 1024, heads = 16, intermediate = 4096 } },
  },
}

function bert.check(p)
  if p.hidden % p.heads ~= 0 then return "hidden", "heads" end
end

local function table_of(m, name, rows, width)
  return m:weight("embeddings." .. name .. "_embeddings.weight", { rows, width }, 0.02)
end

-- The buffer position_ids[:, :sequence].
local function position_ids(m, ids, p)
  local all = {}
  for i = 1, p.positions do all[i] = string.pack("<i8", i - 1) end
  local buffer = m:initializer("embeddings.position_ids", "int64", { 1, p.positions },
    table.concat(all))
  local length = m:node("Unsqueeze", { layers.size(m, ids, 1), m:constant { 0 } })
  return m:node("Slice", { buffer, m:constant { 0 }, length, m:constant { 1 }, m:constant { 1 } })
end

local function embed(m, ids, types, p)
  local words = m:node("Gather", { table_of(m, "word", p.vocabulary, p.hidden), ids })
  local kinds = m:node("Gather", { table_of(m, "token_type", p.types, p.hidden), types })
  local places = m:node("Gather", { table_of(m, "position", p.positions, p.hidden),
    position_ids(m, ids, p) })
  local x = m:node("Add", { m:node("Add", { words, kinds }), places })
  return layers.layer_norm(m, x, "embeddings.LayerNorm", p.hidden, 1e-12)
end

-- 0 where there is a token, -10000 elsewhere, of shape (batch, 1, 1, sequence).
local function widened_mask(m, mask)
  local x = m:node("Unsqueeze", { m:node("Unsqueeze", { mask, m:constant { 1 } }),
    m:constant { 2 } })
  x = m:node("Sub", { m:scalar(1), m:node("Cast", { x }, { to = 1 }) })
  return m:node("Mul", { x, m:scalar(-10000) })
end

local function attention(m, x, name, mask, p)
  local size = p.hidden // p.heads
  local function heads(part, exchanged)
    local y = layers.linear(m, x, ("%s.self.%s"):format(name, part), { p.hidden, p.hidden })
    return layers.split_heads(m, y, p.heads, size, exchanged)
  end
  local query, key, value = heads "query", heads("key", true), heads "value"
  local context = layers.attention(m, query, key, value, size, function(scores)
    return m:node("Add", { scores, mask })
  end)
  return layers.linear(m, layers.join_heads(m, context, p.hidden), name .. ".output.dense",
    { p.hidden, p.hidden })
end

local function block(m, x, name, mask, p)
  local y = attention(m, x, name .. ".attention", mask, p)
  x = layers.layer_norm(m, m:node("Add", { y, x }), name .. ".attention.output.LayerNorm",
    p.hidden, 1e-12)
  y = layers.linear(m, x, name .. ".intermediate.dense", { p.hidden, p.intermediate })
  y = layers.linear(m, layers.gelu(m, y), name .. ".output.dense", { p.intermediate, p.hidden })
  return layers.layer_norm(m, m:node("Add", { y, x }), name .. ".output.LayerNorm",
    p.hidden, 1e-12)
end

function bert.build(m, p)
  local shape = { p.batch, p.sequence }
  local ids = m:input("input_ids", "int64", shape)
  local tokens = m:input("attention_mask", "int64", shape)
  local types = m:input("token_type_ids", "int64", shape)
  local mask = widened_mask(m, tokens)
  local x = embed(m, ids, types, p)
  for i = 0, p.layers - 1 do
    local name = "encoder.layer." .. i
    x = m:within(name, function() return block(m, x, name, mask, p) end)
  end
  x = m:node("Identity", { x }, nil, "last_hidden_state")
  m:output(x, "float32", { p.batch, p.sequence, p.hidden })
  local first = layers.select(m, x, 1, 0)
  first = layers.rows_linear(m, first, "pooler.dense", { p.hidden, p.hidden })
  m:output(m:node("Tanh", { first }, nil, "pooler_output"), "float32", { p.batch, p.hidden })
end

return bert
