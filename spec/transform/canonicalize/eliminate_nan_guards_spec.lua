-- EliminateNaNGuards: a replacement of NaN goes where the tensor is proven to be finite, and
-- only there.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, module, calls = simplified.var, simplified.module, simplified.calls

local ids = var("ids", { "N", 6 }, "int64")
local keep = var("keep", { "N", 1, 6 }, "bool")

local function number(x, dtype) return pl.const(pl.tensor(x, dtype or "float32")) end

local function weight(shape, dtype, seed)
  return pl.const(pl.tensor.random(shape, dtype or "float32", { seed = seed or 1 }))
end

-- Embeddings, normalised, whose scores get a mask with `masked` where a key is left out.
local function attention(masked, dtype, embedded)
  embedded = embedded or op.take(weight({ 9, 8 }, dtype), ids, { axis = 0 })
  local x = op.nn.layer_norm(embedded, weight({ 8 }, dtype), weight({ 8 }, dtype, 2))
  local scores = op.nn.matmul(op.nn.matmul(x, weight({ 8, 8 }, dtype, 3)),
    op.transpose(x, { axes = { 0, 2, 1 } }))
  local mask = op.where(keep, number(0, dtype), number(masked, dtype))
  local p = op.nn.softmax(op.add(scores, mask))
  return op.nn.matmul(op.where(op.isnan(p), number(0, dtype), p), x)
end

local function guards_left(vars, body)
  local mod = module(vars, body)
  local out = pl.passes.EliminateNaNGuards()(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3 } }))
  assert.equal(out, pl.passes.EliminateNaNGuards()(out))
  local _, n = calls(out):gsub("isnan", "")
  assert.equal(n > 0, mod == out)
  return n
end

describe("EliminateNaNGuards", function()
  it("leaves out the guard of a softmax whose mask is finite", function()
    assert.equal(0, guards_left({ ids, keep }, attention(-3.4028234663852886e38)))
    assert.equal(0, guards_left({ ids, keep }, attention(-1e4)))
  end)

  it("keeps it where a row may be masked with -inf as a whole", function()
    assert.equal(1, guards_left({ ids, keep }, attention(-math.huge)))
  end)

  it("keeps it where a sum with the mask may overflow, as in float16", function()
    assert.equal(1, guards_left({ ids, keep }, attention(-65504, "float16")))
    assert.equal(0, guards_left({ ids, keep }, attention(-1e3, "float16")))
  end)

  it("keeps it where a parameter or a constant may hold NaN", function()
    local x = var("x", { "N", 6, 8 })
    assert.equal(1, guards_left({ x, keep }, attention(-1e4, nil, x)))
    local table = pl.const(pl.tensor({ { 1, 2, 3, 4, 5, 6, 7, 0 / 0 } }, "float32"))
    local taken = op.take(table, op.multiply(ids, number(0, "int64")), { axis = 0 })
    assert.equal(1, guards_left({ ids, keep }, attention(-1e4, nil, taken)))
  end)

  it("bounds the second layer by the first", function()
    local x = attention(-1e4)
    local squares = op.mean(op.power(x, number(2)), { axes = { -1 }, keepdims = 1 })
    local y = op.divide(x, op.sqrt(op.add(squares, number(1e-6))))
    assert.equal(0, guards_left({ ids, keep }, attention(-1e4, nil, y)))
  end)

  -- Programs whose values are at the limits of the dtype: none that is proven finite is NaN.
  it("is right on random programs with large numbers", function()
    local left, gone = 0, 0
    for seed = 1, 300 do
      local random = pl.tensor.random({ 12 }, "float64", { seed = seed }):to_table()
      local at = 0
      local function below(n)
        at = at % 12 + 1
        return math.floor((random[at] + 1) * 1e4) % n
      end
      local function scale() return number(10.0 ^ (below(40) - 5)) end
      local x = op.take(weight({ 9, 4 }, nil, seed), ids, { axis = 0 })
      for _ = 1, 5 do
        local kind = below(7)
        if kind == 0 then x = op.multiply(x, scale())
        elseif kind == 1 then x = op.subtract(x, op.multiply(x, scale()))
        elseif kind == 2 then x = op.divide(x, op.add(op.abs(x), number(1e-3)))
        elseif kind == 3 then x = op.multiply(x, x)
        elseif kind == 4 then x = op.nn.matmul(x, op.multiply(weight({ 4, 4 }, nil, seed), scale()))
        elseif kind == 5 then x = op.sqrt(op.nn.relu(x))
        else x = op.exp(x) end
      end
      local p = op.nn.softmax(x)
      local n = guards_left({ ids }, op.where(op.isnan(p), number(0), p))
      left, gone = left + n, gone + 1 - n
    end
    assert(left > 30 and gone > 30, left .. " " .. gone)
  end)
end)
