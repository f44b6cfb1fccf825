-- SimplifyExpr on tensors whose elements are all equal.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, ints = simplified.var, simplified.ints
local module, calls = simplified.module, simplified.calls

local pipeline = pl.pipeline "fixpoint(4){SimplifyExpr,FoldConstant}"

local function optimise(vars, body)
  local mod = module(vars, body)
  local out = pipeline(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { B = 2, S = 3 } }))
  return out
end

local ids = pl.var("ids", "Tensor[(B, S), int64]")
local x = var("x", { "B", "S", 4 })
local table_ = pl.const(pl.tensor({ { 1, 2, 3, 4 }, { 5, 6, 7, 8 } }, "float32"))

local function fill(dtype, value)
  return op.constant_of_shape(op.shape_of(ids), { value = pl.tensor({ value }, dtype) })
end

describe("A fill", function()
  it("is made of a scalar in a computed shape", function()
    local out = optimise({ ids }, op.broadcast_to(pl.const(0), op.shape_of(ids)))
    assert.equal("shape_of constant_of_shape", calls(out))
  end)

  it("takes a cast into its value", function()
    local out = optimise({ ids }, op.cast(fill("int64", 1), { to = 9 }))
    assert.equal("shape_of constant_of_shape", calls(out))
  end)

  it("selects one row, which an operator broadcasts", function()
    local rows = op.take(table_, fill("int64", 1), { axis = 0 })
    assert.equal("add", calls(optimise({ ids, x }, op.add(x, rows))))
  end)

  it("outside of the table stays", function()
    local mod = module({ ids, x }, op.add(x, op.take(table_, fill("int64", 2), { axis = 0 })))
    local out = pl.pipeline "SimplifyExpr" (mod)
    assert.equal("shape_of constant_of_shape take add", calls(out))
  end)

  it("that hides nothing is no mask", function()
    local m = pl.var("m", "Tensor[(B, S), bool]")
    assert.equal("", calls(optimise({ m, ids }, op.logical_and(m, op.cast(fill("int64", 1),
      { to = 9 })))))
    local kept = optimise({ m, ids }, op.logical_and(m, op.cast(fill("int64", 0), { to = 9 })))
    assert.equal("logical_and", calls(kept))
  end)

  it("is what equal elements of a constant are gathered to", function()
    local zeros = pl.const(pl.tensor({ { 0, 0, 0 }, { 0, 0, 0 } }, "int64"))
    local at = op.cast(op.cast(ids, { to = 9 }), { to = 7 })
    local out = optimise({ ids }, op.gather(zeros, at, { axis = 0 }))
    assert.equal("shape_of constant_of_shape", calls(out):match "shape_of.*")
  end)

  it("of which the upper triangle is left is a causal mask", function()
    local lower = op.trilu(fill("float32", 1), { upper = 0 })
    local mask = op.where(op.equal(lower, pl.const(0, "float32")), pl.const(-1e9, "float32"),
      pl.const(0, "float32"))
    assert.equal("shape_of constant_of_shape trilu", calls(optimise({ ids }, mask)))
  end)
end)

describe("A condition that always holds", function()
  it("hides nothing in a computed shape", function()
    local range = op.arange(pl.const(0), op.take(op.shape_of(ids), pl.const(1), { axis = 0 }),
      pl.const(1))
    local shape = op.shape_of(ids)
    local holds = op.broadcast_to(op.greater_equal(op.expand_dims(range, ints(0)), pl.const(0)),
      shape)
    local mask = op.where(holds, pl.const(0, "float32"), pl.const(-1e9, "float32"))
    local y = var("y", { "B", "S" })
    assert.equal("", calls(optimise({ ids, y }, op.add(y, mask))))
  end)
end)

describe("A product of flattened rows", function()
  it("without an addend keeps its batch axes", function()
    local y = var("y", { "B", 3, 4 })
    local w = pl.const(pl.tensor({ { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } }, "float32"))
    local zeros = pl.const(pl.tensor({ 0, 0 }, "float32"))
    local rows = op.nn.gemm(op.reshape(y, ints(-1, 4)), w, zeros)
    assert.equal("nn.matmul", calls(optimise({ y }, op.reshape(rows, ints(-1, 3, 2)))))
  end)
end)

describe("An axis of extent 1", function()
  it("that is repeated is broadcast", function()
    local y = var("y", { "B", 1 })
    assert.equal("broadcast_to", calls(optimise({ y }, op.tile(y, ints(1, 5)))))
    local z = var("z", { "B", 2 })
    assert.equal("tile", calls(optimise({ z }, op.tile(z, ints(1, 5)))))
  end)
end)
