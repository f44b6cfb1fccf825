--- A language model of stacked LSTMs (Zaremba et al. 2014, Recurrent neural
-- network regularization: section 4.1, the medium one), as the TorchScript
-- exporter writes nn.LSTM with batch_first: states of zeros made by the batch's
-- size, Transpose before and after, one LSTM operator a layer.

require "perilune.core".internal() -- errors name the scripts of others

local layers = require "perilune.zoo.layers"

local lstm = {
  name = "lstm", doc = "LSTM: a recurrent language model, tokens to scores of the next.",
  parameters = {
    { name = "layers", default = 2, doc = "LSTMs one upon the other" },
    { name = "hidden", default = 650, doc = "units of each, width of a token" },
    { name = "directions", default = 1, choices = { 1, 2 }, doc = "2: backwards as well" },
    { name = "vocabulary", default = 10000, doc = "tokens there are" },
    { name = "batch", default = "N", doc = "sequences" },
    { name = "sequence", default = "S", doc = "tokens of a sequence" },
  },
  presets = { { "lstm-large", { hidden = 1500 } } },
}

local function zeros(m, dims)
  return m:node("ConstantOfShape", { layers.shape(m, dims) }, { value = {
    dtype = "float32", dims = { 1 }, bytes = string.pack("<f", 0) } })
end

-- (sequence, batch, inputs) to (sequence, batch, directions * hidden).
local function layer(m, x, index, inputs, p)
  local function weight(kind, dims)
    return m:weight(("lstm.%s_l%d"):format(kind, index), dims, (3 * p.hidden) ^ -0.5)
  end
  local gates = 4 * p.hidden
  local state = zeros(m, { p.directions, layers.size(m, x, 1), p.hidden })
  local y = m:node("LSTM", {
    x, weight("W", { p.directions, gates, inputs }), weight("R", { p.directions, gates, p.hidden }),
    weight("B", { p.directions, 2 * gates }), "", state, state,
  }, { hidden_size = p.hidden, direction = p.directions == 2 and "bidirectional" or "forward" })
  if p.directions == 1 then return m:node("Squeeze", { y, m:constant { 1 } }) end
  y = m:node("Transpose", { y }, { perm = { 0, 2, 1, 3 } })
  return m:node("Reshape", { y, m:constant { 0, 0, -1 } })
end

function lstm.build(m, p)
  local ids = m:input("input_ids", "int64", { p.batch, p.sequence })
  local words = m:weight("embedding.weight", { p.vocabulary, p.hidden }, 0.3)
  local x = m:node("Transpose", { m:node("Gather", { words, ids }) }, { perm = { 1, 0, 2 } })
  local width = p.hidden
  for i = 0, p.layers - 1 do
    x = m:within("lstm." .. i, function() return layer(m, x, i, width, p) end)
    width = p.directions * p.hidden
  end
  x = m:node("Transpose", { x }, { perm = { 1, 0, 2 } })
  x = layers.linear(m, x, "decoder", { width, p.vocabulary })
  x = m:node("Identity", { x }, nil, "logits")
  m:output(x, "float32", { p.batch, p.sequence, p.vocabulary })
end

return lstm
