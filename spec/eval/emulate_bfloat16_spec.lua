-- The pipeline emulate_bfloat16: operators step by step, rounded after each.

local pl = require "perilune"
local emulate = require "perilune.pipelines.emulate_bfloat16"

local function bfloat16(...) return pl.type { shape = { ... }, dtype = "bfloat16" } end

-- The results of a function after the pass, and before it.
local function run(fn, ...)
  local module = pl.module { main = fn }
  local after = emulate(module)
  assert(pl.verify(after))
  assert.equal(tostring(fn.ret_type), tostring(after.main.ret_type))
  return pl.eval(after.main, ...), pl.eval(fn, ...)
end

local function ones(...)
  local function fill(extent, ...)
    local t = {}
    for i = 1, extent do t[i] = select("#", ...) > 0 and fill(...) or 1 end
    return t
  end
  return pl.tensor(fill(...), "bfloat16")
end

local function round(value)
  return pl.tensor(value, "bfloat16"):to_table()
end

describe("emulate_bfloat16", function()
  -- 256 + 1 is 256 in bfloat16, so that a sum of ones ends there.
  local stuck = 256

  it("rounds a sum at each element", function()
    local x = pl.var("x", bfloat16(2, 300))
    local stepwise, once = run(pl.func({ x }, pl.op.sum(x, { axes = { 1 }, keepdims = 0 })),
      ones(2, 300))
    assert.same({ stuck, stuck }, stepwise:to_table())
    assert.same({ 300, 300 }, once:to_table())
  end)

  it("takes several axes at the end as one, from an operand too", function()
    local x = pl.var("x", bfloat16("N", 20, 15))
    local mean = pl.op.mean(x, pl.const(pl.tensor({ 1, -1 }, "int64")), { keepdims = 1 })
    local stepwise, once = run(pl.func({ x }, mean), ones(1, 20, 15))
    assert.same({ { { round(stuck / 300) } } }, stepwise:to_table())
    assert.same({ { { 1 } } }, once:to_table())
  end)

  it("rounds the scores, the weights and the result of attention", function()
    -- Weights of a third each, 0.333984375 in bfloat16: 1.001953125 in all, which is rounded to 1.
    local q, k = pl.var("q", bfloat16(1, 1, 1, 1)), pl.var("k", bfloat16(1, 1, 3, 1))
    local v = pl.var("v", bfloat16(1, 1, 3, 1))
    local values = pl.tensor({ { { { 256 }, { 1 }, { 1 } } } }, "bfloat16")
    local stepwise, once = run(pl.func({ q, k, v }, pl.op.attention(q, k, v, {})),
      ones(1, 1, 1, 1), ones(1, 1, 3, 1), values)
    local third = round(1 / 3)
    assert.same({ { { { round(256 * third + third + third) } } } }, stepwise:to_table())
    assert.same({ { { { round(86) } } } }, once:to_table())
  end)

  it("excludes keys of attention by a mask, by lengths and by their order", function()
    local q, k = pl.var("q", bfloat16(2, 2, 4)), pl.var("k", bfloat16(2, 3, 4))
    local v = pl.var("v", bfloat16(2, 3, 4))
    local lengths = pl.var("lengths", pl.type "Tensor[(2), int64]")
    local mask = pl.const(pl.tensor({ { true, true }, { true, false } }, "bool"))
    local attention = pl.op.attention(q, k, v, mask, pl.absent, pl.absent, lengths,
      { q_num_heads = 2, kv_num_heads = 2, is_causal = 1 })
    local fn = pl.func({ q, k, v, lengths }, attention)
    local rows = {}
    for b = 1, 2 do
      rows[b] = {}
      for i = 1, 3 do rows[b][i] = { i, 2 * i, -i, b } end
    end
    local stepwise, once = run(fn, ones(2, 2, 4), ones(2, 3, 4), pl.tensor(rows, "bfloat16"),
      pl.tensor({ 3, 2 }, "int64"))
    assert.same(once:to_table(), stepwise:to_table())
  end)

  it("leaves reductions of other axes alone", function()
    local x = pl.var("x", bfloat16(300, 2))
    local module = pl.module { main = pl.func({ x }, pl.op.sum(x, { axes = { 0 } })) }
    assert.equal(module, emulate(module))
  end)

  it("divides exponentials by their rounded sum", function()
    local x = pl.var("x", bfloat16(300, 1))
    local fn = pl.func({ x }, pl.op.nn.softmax(x, { axis = 0 }))
    local stepwise, once = run(fn, ones(300, 1))
    assert.same({ 1 / stuck }, stepwise:to_table()[300])
    assert.same({ round(1 / 300) }, once:to_table()[300])
    local logarithm = run(pl.func({ x }, pl.op.nn.log_softmax(x, { axis = 0 })), ones(300, 1))
    assert.same({ round(-math.log(stuck)) }, logarithm:to_table()[1])
  end)

  it("computes gelu as ONNX defines it", function()
    local x = pl.var("x", bfloat16(1))
    local at = pl.tensor({ 1.0 }, "bfloat16")
    -- erf(1 / bfloat16(sqrt(2))) = 0.6827 is rounded before 1 is added.
    local stepwise = run(pl.func({ x }, pl.op.nn.gelu(x)), at)
    assert.same({ round(0.5 * round(1 + round(0.6821))) }, stepwise:to_table())
    local rough = run(pl.func({ x }, pl.op.nn.gelu(x, { approximate = "tanh" })), at)
    assert.near(0.8412, rough:to_table()[1], 0.004)
  end)

  it("goes on in float32 behind epsilon", function()
    local x = pl.var("x", bfloat16(1, 4))
    local scale = pl.const(pl.tensor({ 1, 1, 1, 1 }, "bfloat16"))
    local attrs = { epsilon = 0.0, n_results = 3 }
    local norm = pl.op.nn.layer_norm(x, scale, scale, attrs)
    local fn = pl.func({ x }, pl.tuple { norm:get(0), norm:get(1), norm:get(2) })
    local after = emulate(pl.module { main = fn }).main
    local y, mean, inverse = pl.eval(after, pl.tensor({ { 1, 2, 3, 6 } }, "bfloat16"))
    assert.same({ { 3 } }, mean:to_table())
    -- The variance is 3.5.
    assert.near(3.5 ^ -0.5, inverse:to_table()[1][1], 1e-7)
    local expected = {}
    for i, value in ipairs { 1, 2, 3, 6 } do expected[i] = round(1 + (value - 3) * 3.5 ^ -0.5) end
    assert.same({ expected }, y:to_table())
  end)

  it("rounds squares and their mean in rms_norm", function()
    local x = pl.var("x", bfloat16(300))
    local scale = pl.const(ones(300))
    local fn = pl.func({ x }, pl.op.nn.rms_norm(x, scale, { axis = 0, epsilon = 0.0 }))
    local stepwise, once = run(fn, ones(300))
    assert.equal(round(round(stuck / 300) ^ -0.5), stepwise:to_table()[1])
    assert.equal(1, once:to_table()[1])
  end)

  it("rounds the product of batch_norm before the quotient", function()
    local x = pl.var("x", bfloat16(1, 1, 2))
    local function channel(value) return pl.const(pl.tensor({ value }, "bfloat16")) end
    local norm = pl.op.nn.batch_norm(x, channel(1.0078125), channel(0), channel(0), channel(9),
      { epsilon = 0.0 })
    local y = run(pl.func({ x }, norm), pl.tensor({ { { 1.0078125, 2 } } }, "bfloat16"))
    assert.same({ { { round(round(1.0078125 ^ 2) / 3), round(2 * 1.0078125 / 3) } } }, y:to_table())
  end)

  it("rounds the product of gemm before the sum", function()
    local x, w = pl.var("x", bfloat16(1, 2)), pl.const(pl.tensor({ { 1, 1 } }, "bfloat16"))
    local bias = pl.const(pl.tensor({ -256 }, "bfloat16"))
    local fn = pl.func({ x }, pl.op.nn.gemm(x, w, bias, { transB = 1 }))
    local stepwise, once = run(fn, pl.tensor({ { 256, 1 } }, "bfloat16"))
    assert.same({ { 0 } }, stepwise:to_table())
    assert.same({ { 1 } }, once:to_table())
  end)

  it("leaves functions without bfloat16 as they are", function()
    local y = pl.var("y", pl.type { shape = { 2, 3 }, dtype = "float32" })
    local module = pl.module { main = pl.func({ y }, pl.op.nn.softmax(y)) }
    assert.equal(module, emulate(module))
  end)
end)
