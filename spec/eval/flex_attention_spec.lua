-- Attention whose scores and weights pass through functions.

local pl = require "perilune"
local onnx = require "spec.onnx.bytes"
local op = pl.op

local function tensor(name, type) return pl.var(name, pl.type("Tensor[" .. type .. "]")) end

-- A function of scores; `body` gives the result.
local function modifier(type, body)
  local x = tensor("x", type)
  return pl.func({ x }, body(x))
end

local scores = "(1, 2, 1, 2), float32"
local function double(x) return x + x end
local function negative(x) return op.negative(x) end

local function operands(dtype)
  dtype = dtype or "float32"
  return tensor("q", "(1, 2, 1, 2), " .. dtype), tensor("k", "(1, 1, 2, 2), " .. dtype),
    tensor("v", "(1, 1, 2, 3), " .. dtype)
end

-- Attention of two heads that share keys; the rest are functions and attributes.
local function attention(...)
  local q, k, v = operands()
  return pl.func({ q, k, v }, op.flex_attention(q, k, v, ...))
end

local q = { { { { 1, 0 } }, { { 0, 2 } } } }
local k = { { { { 1, 2 }, { 3, 4 } } } }
local v = { { { { 1, 2, 3 }, { 4, 5, 6 } } } }

-- The first elements of the result's rows, when the second key has these weights.
local function rows(f)
  local y = pl.eval(f, q, k, v):to_table()
  return { y[1][1][1][1], y[1][2][1][1] }
end

local function near(expected, got)
  for i, x in ipairs(expected) do assert.near(x, got[i], 1e-5) end
end

-- Of two scores that differ by d, the greater one's weight.
local function weight(d) return 1 / (1 + math.exp(-d)) end

describe("flex_attention", function()
  it("is attention without functions", function()
    local f = attention { scale = 1.0 }
    assert.equal("Tensor[(1, 2, 1, 3), float32]", tostring(f.ret_type))
    near({ 1 + 3 * weight(2), 1 + 3 * weight(4) }, rows(f))
  end)

  it("scales by the root of the head size by default", function()
    near({ 1 + 3 * weight(2 / math.sqrt(2)), 1 + 3 * weight(4 / math.sqrt(2)) }, rows(attention()))
  end)

  it("passes scores, and then weights, through functions", function()
    local f = modifier(scores, negative)
    near({ 1 + 3 * weight(-2), 1 + 3 * weight(-4) }, rows(attention(f, { scale = 1.0 })))
    local both = attention(f, modifier(scores, double), { scale = 1.0 })
    near({ 2 * (1 + 3 * weight(-2)), 2 * (1 + 3 * weight(-4)) }, rows(both))
  end)

  it("reads a function's result that is one element repeated", function()
    local f = modifier(scores, function(x) return op.zeros_like(x) end)
    near({ 2.5, 2.5 }, rows(attention(f)))
  end)

  it("names its functions by their places, also behind an omitted one", function()
    local f = attention(nil, modifier(scores, double), { scale = 1.0 })
    assert.same({ 4, nil }, { f.body.attrs.prob_mod, f.body.attrs.score_mod })
    near({ 2 * (1 + 3 * weight(2)) }, rows(f))
    local mod = pl.module { main = f }
    assert.is_true(pl.equal(mod, assert(pl.parse(tostring(mod)))))
    local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(mod))))
    assert.equal(4, #again.main.body.args)
    near({ 2 * (1 + 3 * weight(2)) }, rows(again.main))
  end)

  it("gives functions what they capture", function()
    local a, b, c = operands()
    local bias = tensor("bias", "(), float32")
    local f = pl.func({ a, b, c, bias }, op.flex_attention(a, b, c,
      modifier(scores, function(x) return x * bias end), { scale = 1.0 }))
    local y = pl.eval(f, q, k, v, 3.0):to_table()
    assert.near(1 + 3 * weight(6), y[1][1][1][1], 1e-5)
  end)

  it("has scores of the dtype that softmax_precision says", function()
    local f = modifier("(1, 2, 1, 2), float64", negative)
    near({ 1 + 3 * weight(-2), 1 + 3 * weight(-4) },
      rows(attention(f, { scale = 1.0, softmax_precision = 11 })))
  end)

  it("refuses operands that do not fit", function()
    local a, b, c = operands()
    local function refuses(what, ...)
      local args = table.pack(...)
      assert.error_matches(function() op.flex_attention(table.unpack(args, 1, args.n)) end, what, 1,
        true)
    end
    refuses("expected rank 4, got 3", tensor("q", "(2, 1, 2), float32"), b, c)
    refuses("the 3 heads of the query are not a multiple of the 2 heads of key and value",
      tensor("q", "(1, 3, 1, 2), float32"), tensor("k", "(1, 2, 2, 2), float32"),
      tensor("v", "(1, 2, 2, 3), float32"))
    refuses("operand 1", tensor("q", "(1, 2, 1, 5), float32"), b, c)
    refuses("operand 2", a, b, tensor("v", "(1, 1, 7, 3), float32"))
    refuses("float16, bfloat16, float32 or float64", operands("int32"))
    refuses("softmax_precision 7 is none of", a, b, c, { softmax_precision = 7 })
    refuses("softmax_precision 0 is none of", a, b, c, { softmax_precision = 0 })
  end)

  it("refuses functions that do not fit", function()
    local function refuses(what, ...)
      local args = table.pack(...)
      assert.error_matches(function() attention(table.unpack(args, 1, args.n)) end, what, 1, true)
    end
    local x, y = tensor("x", scores), tensor("y", scores)
    refuses("score_mod takes 2 arguments, expected 1", pl.func({ x, y }, x + y))
    refuses("score_mod takes Tensor[(1, 2, 1, 2), float16], expected",
      modifier("(1, 2, 1, 2), float16", double))
    refuses("score_mod returns Tensor[(1, 1, 1, 2), float32], expected",
      modifier(scores, function(s) return op.max(s, { axes = { 1 }, keepdims = 1 }) end))
    refuses("prob_mod returns", modifier(scores, double),
      modifier(scores, function(s) return op.cast(s, { dtype = "float16" }) end))
    refuses("operand 3", tensor("z", scores))
  end)

  it("refuses a function that returns another shape when it runs", function()
    local a, b, c = operands()
    local axes = tensor("axes", "(N), int64")
    local f = pl.func({ a, b, c, axes }, op.flex_attention(a, b, c, modifier(scores,
      function(s) return op.max(s, axes) end)))
    assert.error_matches(function() pl.eval(f, q, k, v, { 3 }) end,
      "score_mod returns another shape than it is given", 1, true)
  end)

  -- FlexAttention of a model: its functions negate scores, twice, and double weights.
  local function of_onnx()
    local function value(name) return onnx.value(name, 1, { 1, 2, 1, 2 }) end
    local score = onnx.graph { name = "score", inputs = { value "s" }, outputs = { value "t" },
      nodes = { onnx.node("Neg", "s", "a"), onnx.node("Neg", "a", "b"),
        onnx.node("Neg", "b", "t"), onnx.node("Exp", "a", "dead") } }
    local prob = onnx.graph { name = "prob", inputs = { value "p" }, outputs = { value "r" },
      nodes = { onnx.node("Add", "p p", "r") } }
    return onnx.model { opset = 26, domains = { ["ai.onnx.preview"] = 1 }, graph = onnx.graph {
      inputs = { onnx.value("q", 1, { 1, 2, 1, 2 }), onnx.value("k", 1, { 1, 1, 2, 2 }),
        onnx.value("v", 1, { 1, 1, 2, 3 }) },
      nodes = { onnx.node("FlexAttention", "q k v", "y", { onnx.subgraph("prob_mod", prob),
        onnx.subgraph("score_mod", score) }, { domain = "ai.onnx.preview" }) },
      outputs = { onnx.value("y", 1, { 1, 2, 1, 3 }) } } }
  end

  it("is FlexAttention of a model, whose functions are optimised", function()
    local bytes = of_onnx()
    local module = assert(pl.onnx.parse(bytes))
    assert.is_true(bytes == pl.onnx.tostring(module))
    local w = 1 + 3 * weight(-2 / math.sqrt(2))
    assert.near(2 * w, pl.eval(module, q, k, v):to_table()[1][1][1][1], 1e-5)
    local simpler = pl.passes.DeadCodeElimination()(pl.passes.SimplifyExpr()(module))
    assert.near(2 * w, pl.eval(simpler, q, k, v):to_table()[1][1][1][1], 1e-5)
    local text = tostring(simpler)
    assert.is_nil(text:match "exp%(")
    local again = assert(pl.onnx.parse(assert(pl.onnx.tostring(simpler))))
    assert.equal(1, again.attrs.opset_import["ai.onnx.preview"])
    assert.is_true(pl.equal(simpler.functions.main, again.functions.main))
  end)

  it("is one call where two are the same", function()
    local a, b, c = operands()
    local f = modifier(scores, negative)
    local function call() return op.flex_attention(a, b, c, f) end
    local mod = pl.module { main = pl.func({ a, b, c }, call() + call()) }
    local out = pl.passes.EliminateCommonSubexpr()(mod)
    local _, calls = tostring(out):gsub("flex_attention%(", "")
    assert.equal(1, calls)
    assert.same(pl.eval(mod, q, k, v):to_table(), pl.eval(out, q, k, v):to_table())
  end)

  it("keeps its value through passes that rewrite functions", function()
    local a, b, c = operands()
    local mod = pl.module { main = pl.func({ a, b, c }, op.flex_attention(a, b, c,
      modifier(scores, negative), modifier(scores, double))) }
    local expected = pl.eval(mod, q, k, v):to_table()
    for _, name in ipairs { "PartialEvaluate", "ToANormalForm", "FoldConstant", "InferType",
      "ToGraphNormalForm", "ToBasicBlockNormalForm", "DeadCodeElimination", "FuseOps" } do
      local out = pl.passes[name]()(mod)
      assert(pl.verify(out))
      assert.same(expected, pl.eval(out, q, k, v):to_table(), name)
    end
  end)

  it("folds when its operands are constants", function()
    local function const(t) return pl.const(pl.tensor(t, "float32")) end
    local function folded(...)
      local call = op.flex_attention(const(q), const(k), const(v), ...)
      local mod = pl.module { main = pl.func({}, call) }
      local body = pl.passes.FoldConstant()(mod).main.body
      assert.equal("Constant", body.kind)
      assert.same(pl.eval(mod):to_table(), body.data:to_table())
    end
    folded()
    folded(modifier(scores, negative))
    folded(modifier(scores, negative), modifier(scores, double))
  end)

  it("has neither loops nor closures", function()
    local features = pl.features(attention(modifier(scores, negative), modifier(scores, double)))
    assert.is_nil(features.loops)
    assert.is_nil(features.closures)
  end)

  it("costs two products of queries by keys", function()
    local call = attention(modifier(scores, negative)).body
    assert.equal(1 * 2 * 1 * 2 * 2 + 1 * 2 * 1 * 2 * 3, (pl.cost(call)))
  end)
end)
