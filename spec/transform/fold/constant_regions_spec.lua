-- FoldConstant on computations of constants whose parts are over the budget, but whose result is
-- not, or is no larger than the constants that die with all of it.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, module, calls = simplified.var, simplified.module, simplified.calls

local function random(...) return pl.const(pl.tensor.random({ ... }, "float32")) end

local function fold(vars, body)
  local mod = module(vars, body)
  local once = pl.passes.FoldConstant()(mod)
  assert(pl.verify(once))
  assert.equal(once, pl.passes.FoldConstant()(once))
  assert(pl.check(mod, once, { rounds = 2, rtol = 1e-5, atol = 1e-5 }))
  return calls(once)
end

-- A weight over 64 KiB.
local function large() return random(64, 512) end

describe("FoldConstant", function()
  local x = var("x", { 4, 512 })

  local function centred(w)
    return op.subtract(w, op.mean(w, { axis = { 1 }, keepdims = 1 }))
  end

  it("folds what is computed of a large constant that dies with all of it", function()
    local y = centred(large())
    y = op.divide(y, op.sqrt(op.mean(op.multiply(y, y), { axis = { 1 }, keepdims = 1 })))
    assert.equal("nn.matmul", fold({ x }, op.nn.matmul(x, op.transpose(y, { axes = { 1, 0 } }))))
  end)

  local function small()
    return op.nn.matmul(op.nn.relu(op.nn.matmul(random(64, 2), random(2, 512))), random(512, 4))
  end

  it("folds a small result of large parts", function()
    local y = var("y", { 4, 64 })
    assert.equal("nn.matmul", fold({ y }, op.nn.matmul(y, small())))
  end)

  it("folds what comes before a result that is too large", function()
    local y = var("y", { 64 * 40, 4 * 40 })
    local tiled = op.tile(small(), { reps = { 40, 40 } })
    assert.equal("tile add", fold({ y }, op.add(y, tiled)))
  end)

  it("keeps what another user needs, too", function()
    local w, z = large(), var("z", { 64, 512 })
    assert.equal("subtract add add", fold({ z }, op.add(centred(w), op.add(w, z))))
  end)

  it("folds calls with several results", function()
    local parts = op.split(large(), pl.const(pl.tensor({ 256, 256 }, "int64")),
      { axis = 1, n_results = 2 })
    local y = var("y", { 64, 256 })
    assert.equal("add", fold({ y }, op.add(y, op.subtract(parts:get(0), parts:get(1)))))
  end)
end)
