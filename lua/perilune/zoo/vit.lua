--- ViT (Dosovitskiy et al. 2020, An image is worth 16x16 words: section 3.1 and
-- table 1), as the TorchScript exporter writes timm's: query, key and value from
-- one product, the class token expanded to the batch.

require "perilune.core".internal() -- errors name the scripts of others

local layers = require "perilune.zoo.layers"

local vit = {
  name = "vit", doc = "ViT: a transformer over patches of an image, to classes.",
  parameters = {
    { name = "layers", default = 12, doc = "transformer blocks" },
    { name = "hidden", default = 768, doc = "width of a token, a multiple of heads" },
    { name = "heads", default = 12, doc = "attention heads" },
    { name = "mlp", default = 3072, doc = "width inside a block" },
    { name = "patch", default = 16, doc = "height and width of a patch" },
    { name = "image", default = 224, doc = "height and width of an image, a multiple of patch" },
    { name = "classes", default = 1000, doc = "outputs" },
    { name = "batch", default = "N", doc = "images" },
  },
  presets = {
    { "vit-b-16", {} }, { "vit-b-32", { patch = 32 } },
    { "vit-l-16", { layers = 24, hidden = 1024, heads = 16, mlp = 4096 } },
  },
}

function vit.check(p)
  if p.hidden % p.heads ~= 0 then return "hidden", "heads" end
  if p.image % p.patch ~= 0 then return "image", "patch" end
end

-- (batch, width, rows, columns) to (batch, 1 + patches, width).
local function embed(m, x, p)
  x = layers.conv(m, x, "patch_embed.proj", { p.hidden, 3, p.patch },
    { stride = p.patch, pad = 0, bias = true })
  local batch = layers.size(m, x, 0)
  x = m:node("Transpose", { layers.view(m, x, { batch, layers.size(m, x, 1), -1 }) },
    { perm = { 0, 2, 1 } })
  local class = m:node("Expand", { m:weight("cls_token", { 1, 1, p.hidden }, 0.02),
    layers.shape(m, { layers.size(m, x, 0), 1, p.hidden }) })
  x = m:node("Concat", { class, x }, { axis = 1 })
  local side = p.image // p.patch
  return m:node("Add", { x, m:weight("pos_embed", { 1, side * side + 1, p.hidden }, 0.02) })
end

-- One product, then (3, batch, heads, tokens, size) taken apart.
local function attention(m, x, name, p)
  local size = p.hidden // p.heads
  local y = layers.linear(m, x, name .. ".qkv", { p.hidden, 3 * p.hidden })
  y = layers.view(m, y, { layers.size(m, x, 0), layers.size(m, x, 1), 3, p.heads, size })
  y = m:node("Transpose", { y }, { perm = { 2, 0, 3, 1, 4 } })
  local query, key, value = layers.select(m, y, 0, 0), layers.select(m, y, 0, 1),
    layers.select(m, y, 0, 2)
  key = m:node("Transpose", { key }, { perm = { 0, 1, 3, 2 } })
  local context = layers.attention(m, query, key, value, size)
  return layers.linear(m, layers.join_heads(m, context, p.hidden), name .. ".proj",
    { p.hidden, p.hidden })
end

local function block(m, x, name, p)
  local y = layers.layer_norm(m, x, name .. ".norm1", p.hidden, 1e-6)
  x = m:node("Add", { x, attention(m, y, name .. ".attn", p) })
  y = layers.layer_norm(m, x, name .. ".norm2", p.hidden, 1e-6)
  y = layers.gelu(m, layers.linear(m, y, name .. ".mlp.fc1", { p.hidden, p.mlp }))
  return m:node("Add", { x, layers.linear(m, y, name .. ".mlp.fc2", { p.mlp, p.hidden }) })
end

function vit.build(m, p)
  local x = embed(m, m:input("input", "float32", { p.batch, 3, p.image, p.image }), p)
  for i = 0, p.layers - 1 do
    local name = "blocks." .. i
    x = m:within(name, function() return block(m, x, name, p) end)
  end
  x = layers.select(m, layers.layer_norm(m, x, "norm", p.hidden, 1e-6), 1, 0)
  x = layers.rows_linear(m, x, "head", { p.hidden, p.classes }, "output")
  m:output(x, "float32", { p.batch, p.classes })
end

return vit
