-- SimplifyExpr on rows of constants that indices select, on positions, and on truth values as
-- factors; FuseOnnxOps on rows that a reshape splits off.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, ints, module = simplified.var, simplified.ints, simplified.module
local calls, keeps = simplified.calls, simplified.keeps

local tidy = pl.sequential { "SimplifyExpr", "FoldConstant", "DeadCodeElimination" }
local ids = var("ids", { "N", 6 }, "int64")

local function simplify(vars, body)
  local mod = module(vars, body)
  local out = pl.with(pl.context { opt_level = 3 }, tidy, mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3 }, rounds = 2 }))
  return calls(out)
end

local function rows(shape) return pl.const(pl.tensor.random(shape, "float32")) end

-- Indices that are in range for 4 rows.
local function small(x) return op.mod(x, pl.const(pl.tensor(4, "int64"))) end

describe("SimplifyExpr", function()
  it("takes rows of a constant that a constant selects at once", function()
    local kinds = op.take(ints(1, 0, 1, 1), small(ids), { axis = 0 })
    assert.equal("mod take", simplify({ ids }, op.take(rows { 2, 8 }, kinds, { axis = 0 })))
  end)

  it("leaves rows that are out of range, or many, to the second take", function()
    local kinds = op.take(ints(1, 0, 2, 1), ids, { axis = 0 })
    keeps({ ids }, op.take(rows { 2, 8 }, kinds, { axis = 0 }))
    kinds = op.take(ints(1, 0, 1, 1), ids, { axis = 0 })
    keeps({ ids }, op.take(rows { 2, 8192 }, kinds, { axis = 0 }))
  end)

  it("takes elements of equal rows from the one row", function()
    local row = pl.const(pl.tensor({ { 5, 6, 7, 8 } }, "int64"))
    local shape = op.concatenate({ op.strided_slice(op.shape_of(ids), ints(0), ints(1)), ints(4) },
      { axis = 0 })
    local body = op.gather(op.broadcast_to(row, shape), small(ids), { axis = 1 })
    assert.equal("mod take", simplify({ ids }, body))
  end)

  it("selects a factor by a truth value", function()
    local b = var("b", { "N", 6 }, "bool")
    local sixteen = pl.const(pl.tensor(16, "int64"))
    assert.equal("where", simplify({ b }, op.multiply(op.cast(b, { dtype = "int64" }), sixteen)))
    local half = pl.const(pl.tensor(0.5, "float32"))
    keeps({ b }, op.multiply(op.cast(b, { dtype = "float32" }), half))
  end)

  it("begins positions behind an extent at once", function()
    local x, y = var("x", { "M", 6 }), var("y", { "N", 6 })
    local function extent(of)
      return op.take(op.shape_of(of), pl.const(pl.tensor(0, "int64")), { axis = 0 })
    end
    local function number(n) return pl.const(pl.tensor(n, "int64")) end
    local past, new = extent(x), extent(y)
    local positions = op.add(op.arange(number(0), new, number(1)), past)
    assert.equal("shape_of take shape_of take add arange", simplify({ x, y }, positions))
  end)

  it("squeezes by a reshape", function()
    local x = var("x", { 1, "N", 6 })
    local body = op.squeeze(op.reshape(op.exp(x), ints(1, -1, 3)), ints(0))
    assert.equal("exp reshape", simplify({ x }, body))
  end)
end)

describe("FuseOnnxOps", function()
  local x = var("x", { "N", 5, 8 })

  local function first_rows(k, opset)
    local matrix = op.exp(op.reshape(x, ints(-1, 8)))
    local body = op.take(op.reshape(matrix, ints(-1, 5, 8)), pl.const(pl.tensor(k, "int64")),
      { axis = 1 })
    local mod = module({ x }, body):with_attrs { opset_import = { ["ai.onnx"] = opset } }
    local out = pl.passes.FuseOnnxOps()(mod)
    assert(pl.verify(out))
    assert(pl.check(mod, out, { dims = { N = 3 } }))
    assert.same({ "N", 8 }, out.main.body.type.shape)
    return calls(out)
  end

  it("slices rows of blocks", function()
    assert.equal("reshape exp strided_slice", first_rows(0, 17))
    assert.equal("reshape exp strided_slice", first_rows(0, 10))
  end)

  it("leaves other positions, and opsets without steps", function()
    assert.equal("reshape exp reshape take", first_rows(4, 17))
    assert.equal("reshape exp reshape take", first_rows(0, 9))
  end)
end)
