-- com.microsoft's MoE and QMoE against a plain loop: the forms that ONNX Runtime computes on
-- other devices only, and operands that are refused. spec/cross/contrib.py compares with it.

local pl = require "perilune"

local TOKENS, HIDDEN, INNER, EXPERTS = 3, 4, 3, 3

-- Numbers between -1 and 1 that are the same in every run.
local function numbers(n, seed)
  local list = {}
  for i = 1, n do list[i] = math.sin(i * 12.9898 + seed * 78.233) end
  return list
end

local function floats(shape, seed)
  local n = 1
  for _, extent in ipairs(shape) do n = n * extent end
  local list = numbers(n, seed)
  return pl.tensor(string.pack("<" .. ("f"):rep(n), table.unpack(list)), shape, "float32"), list
end

local function evaluate(name, operands, attributes)
  local params, values, args = {}, {}, {}
  for i = 1, operands.n or #operands do
    local t = operands[i]
    if t then
      params[#params + 1] = pl.var("x" .. i, tostring(pl.const(t).type))
      values[#values + 1] = t
    end
    args[i] = t and params[#params] or pl.ir.Absent()
  end
  args[#args + 1] = attributes
  local call = pl.op["com.microsoft::" .. name](table.unpack(args))
  return pl.eval(pl.func(params, call), table.unpack(values))
end

local function sigmoid(x) return 1 / (1 + math.exp(-x)) end
local function gelu(x)
  local y = 0.7978845608 * (x + 0.044715 * x * x * x)
  return 0.5 * x * (2 * sigmoid(2 * y))
end

-- What is done with a gate and, of gated forms, the linear part beside it.
local forms = {
  relu2 = function(g) return math.max(g, 0) ^ 2 end,
  silu = function(g, l) return g * sigmoid(g) * (l or 1) end,
  geglu = function(g, l) return gelu(g) * l end,
  swiglu = function(g, l) return g * sigmoid(1.5 * g) * (l + 0.5) end,
  limited = function(g, l)
    return math.min(g * sigmoid(1.5 * g), 0.25) * (math.max(-0.25, math.min(l, 0.25)) + 0.5)
  end,
}

-- Row e of weights (experts, rows, columns) times x, and a bias.
local function product(w, b, e, rows, x)
  local out = {}
  for r = 1, rows do
    local sum = b and b[(e - 1) * rows + r] or 0
    for c = 1, #x do sum = sum + w[((e - 1) * rows + r - 1) * #x + c] * x[c] end
    out[r] = sum
  end
  return out
end

local function likeliest(logits, k)
  local order = {}
  for e = 1, EXPERTS do order[e] = e end
  table.sort(order, function(a, b) return logits[a] > logits[b] end)
  return { table.unpack(order, 1, k) }
end

local function reference(data, form, split)
  local out = {}
  for t = 1, TOKENS do
    local x = { table.unpack(data.x, (t - 1) * HIDDEN + 1, t * HIDDEN) }
    local logits, sum = { table.unpack(data.r, (t - 1) * EXPERTS + 1, t * EXPERTS) }, 0
    for e = 1, EXPERTS do sum = sum + math.exp(logits[e]) end
    local y = {}
    for c = 1, HIDDEN do y[c] = 0 end
    for _, e in ipairs(likeliest(logits, 2)) do
      local h, act = product(data.w1, data.b1, e, data.rows, x), {}
      local other = data.w3 and product(data.w3, nil, e, INNER, x)
      for i = 1, INNER do
        local g, l = split(h, i)
        act[i] = form(g, other and other[i] or l)
      end
      local result = product(data.w2, nil, e, HIDDEN, act)
      for c = 1, HIDDEN do y[c] = y[c] + math.exp(logits[e]) / sum * result[c] end
    end
    out[t] = y
  end
  return out
end

local function plain(h, i) return h[i] end
local function adjacent(h, i) return h[2 * i - 1], h[2 * i] end
local function behind(h, i) return h[i], h[INNER + i] end

local function compare(attributes, form, split, width, with_fc3)
  local data, operands = { rows = width * INNER }, { n = 7 }
  operands[1], data.x = floats({ TOKENS, HIDDEN }, 1)
  operands[2], data.r = floats({ TOKENS, EXPERTS }, 2)
  operands[3], data.w1 = floats({ EXPERTS, width * INNER, HIDDEN }, 3)
  operands[4], data.b1 = floats({ EXPERTS, width * INNER }, 4)
  operands[5], data.w2 = floats({ EXPERTS, HIDDEN, INNER }, 5)
  if with_fc3 then operands[7], data.w3 = floats({ EXPERTS, INNER, HIDDEN }, 6) end
  attributes.k = 2
  local got, wanted = evaluate("MoE", operands, attributes):to_table(), reference(data, form, split)
  for t = 1, TOKENS do
    for c = 1, HIDDEN do assert.near(wanted[t][c], got[t][c], 1e-5) end
  end
end

describe("MoE", function()
  it("activates what the first product gives", function()
    compare({ activation_type = "relu2" }, forms.relu2, plain, 1)
    compare({ activation_type = "silu" }, forms.silu, plain, 1)
  end)

  it("takes gate and linear part from one product, side by side or one behind the other", function()
    local swiglu = { activation_type = "swiglu", activation_alpha = 1.5, activation_beta = 0.5 }
    for fusion, split in ipairs { adjacent, behind } do
      swiglu.swiglu_fusion = fusion
      compare(swiglu, forms.swiglu, split, 2)
      compare({ activation_type = "geglu", swiglu_fusion = fusion }, forms.geglu, split, 2)
    end
    swiglu.swiglu_limit, swiglu.swiglu_limit_after_activation = 0.25, 1
    compare(swiglu, forms.limited, behind, 2)
  end)

  it("takes the linear part from a product of its own", function()
    compare({ activation_type = "silu" }, forms.silu, plain, 1, true)
    compare({ activation_type = "swiglu", activation_alpha = 1.5, activation_beta = 0.5 },
      forms.swiglu, plain, 1, true)
  end)

  it("gives the same bits whatever the number of threads", function()
    local x, r = floats({ 64, 32 }, 1), floats({ 64, 4 }, 2)
    local w1, w2 = floats({ 4, 48, 32 }, 3), floats({ 4, 32, 48 }, 4)
    local params = {}
    for i, t in ipairs { x, r, w1, w2 } do
      params[i] = pl.var("x" .. i, tostring(pl.const(t).type))
    end
    local call = pl.op["com.microsoft::MoE"](params[1], params[2], params[3], pl.ir.Absent(),
      params[4], { k = 2, activation_type = "gelu" })
    local fn = pl.func(params, call)
    local one = pl.eval(fn, x, r, w1, w2)
    assert.is_true(one:equal(pl.eval { fn, x, r, w1, w2, threads = 3 }))
  end)

  it("refuses what does not fit, and what has no definition", function()
    local function operands()
      return { floats({ TOKENS, HIDDEN }, 1), floats({ TOKENS, EXPERTS }, 2),
        floats({ EXPERTS, INNER, HIDDEN }, 3), false, (floats({ EXPERTS, HIDDEN, INNER }, 5)) }
    end
    local function refuses(message, attributes, change)
      local list = operands()
      for i, t in pairs(change or {}) do list[i] = t end
      local ok, why = pcall(evaluate, "MoE", list, attributes)
      assert.is_false(ok)
      assert.matches(message, tostring(why), 1, true)
    end
    assert(evaluate("MoE", operands(), {}))
    refuses("k is 4 of 3 experts", { k = 4 })
    refuses("k is 0 of 3 experts", { k = 0 })
    refuses("activation_type is not known", { activation_type = "tanh" })
    refuses("swiglu_fusion 3 is not known", { swiglu_fusion = 3 })
    refuses("the sparse mixer is not computed", { use_sparse_mixer = 1 })
    refuses("does not give what the activation takes", { activation_type = "swiglu" })
    refuses("does not give what the activation takes",
      { activation_type = "swiglu", swiglu_fusion = 1 })
    refuses("router_probs has not 3 rows", {}, { [2] = (floats({ 2, EXPERTS }, 2)) })
    refuses("weights are not of 3 x 4 x 3", {}, { [5] = (floats({ EXPERTS, HIDDEN, 2 }, 5)) })
    refuses("weights are not of 3 x 3 x 4", {}, { [3] = (floats({ 2, INNER, HIDDEN }, 5)) })
    refuses("a bias is not of 3 x 3 floats", {}, { [4] = (floats({ EXPERTS, 2 }, 5)) })
  end)
end)

describe("QMoE", function()
  local function operands()
    return { floats({ 2, 16 }, 1), floats({ 2, 2 }, 2), pl.tensor.full(0x9a, { 2, 32, 8 }, "uint8"),
      floats({ 2, 32 }, 3), false, pl.tensor.full(0x79, { 2, 16, 16 }, "uint8"),
      (floats({ 2, 16 }, 4)) }
  end

  it("refuses other quantisations and packed operands that do not fit", function()
    local function refuses(message, attributes, change)
      local list = operands()
      for i, t in pairs(change or {}) do list[i] = t end
      for i = 1, 14 do list[i] = list[i] or false end
      local ok, why = pcall(evaluate, "QMoE", list, attributes)
      assert.is_false(ok)
      assert.matches(message, tostring(why), 1, true)
    end
    assert(evaluate("QMoE", operands(), {}))
    refuses("only quant_type 'int' is computed", { quant_type = "fp4" })
    refuses("prepacked weights have no defined layout", { weights_prepacked = 1 })
    refuses("fc1_expert_weight_bits 3 is not 2, 4 or 8", { expert_weight_bits = 3 })
    refuses("block_size 32 does not divide 16", { block_size = 32 })
    refuses("weights are not of 64 x 16 elements", { expert_weight_bits = 8 })
    refuses("scales are not 64 floats", {}, { [4] = (floats({ 2, 31 }, 3)) })
    refuses("zero points are not 32 bytes", {},
      { [12] = pl.tensor.full(1, { 2, 15 }, "uint8") })
  end)
end)
