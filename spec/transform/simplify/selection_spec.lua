-- SimplifyExpr on takes and gathers at constant positions, on selections that decide nothing, on
-- sums of products and on indices that are computed; FuseOnnxOps on slices of different axes.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, ints, module = simplified.var, simplified.ints, simplified.module
local calls = simplified.calls

local function simplify(vars, body, passes)
  local mod = module(vars, body)
  local tidy = pl.sequential(passes or { "SimplifyExpr", "FoldConstant", "DeadCodeElimination" })
  local out = pl.with(pl.context { opt_level = 3 }, tidy, mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3 }, rounds = 2, rtol = 1e-5, atol = 1e-5 }))
  return calls(out)
end

local function onnx(vars, body, passes)
  local mod = module(vars, body):with_attrs { opset_import = { ["ai.onnx"] = 17 } }
  local tidy = pl.sequential(passes or { "SimplifyExpr", "FoldConstant", "DeadCodeElimination" })
  local out = pl.with(pl.context { opt_level = 3 }, tidy, mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3 }, rounds = 2 }))
  return calls(out)
end

local function random(...) return pl.const(pl.tensor.random({ ... }, "float32")) end

local x = var("x", { "N", 4 })
local table_of = var("t", { 5, 2 })

describe("SimplifyExpr", function()
  it("takes rows for an index of one axis", function()
    local index = pl.const(pl.tensor({ { { 1 }, { 0 } }, { { 3 }, { -1 } } }, "int64"))
    assert.equal("take", onnx({ table_of }, op.gather_nd(table_of, index)))
    local ids = var("ids", { "N" }, "int64")
    local small = op.mod(ids, pl.const(pl.tensor(5, "int64")))
    assert.equal("mod take", onnx({ table_of, ids },
      op.gather_nd(table_of, op.expand_dims(small, ints(-1)))))
  end)

  it("keeps an index of two axes", function()
    local index = pl.const(pl.tensor({ { 1, 0 }, { 3, 1 } }, "int64"))
    assert.equal("gather_nd", onnx({ table_of }, op.gather_nd(table_of, index)))
  end)

  it("gives positions the shape of the axes behind a take", function()
    local taken = op.take(table_of, ints(0, 4, 1, 1, 2, 3), { axis = 0 })
    assert.equal("take", simplify({ table_of }, op.reshape(taken, { newshape = { 3, 2, 2 } })))
    assert.equal("take reshape",
      simplify({ table_of }, op.reshape(taken, { newshape = { 4, 3 } })))
  end)

  it("takes columns of the transposed table", function()
    local taken = op.take(random(5, 2), pl.const(pl.tensor({ { 1, 2 }, { 0, 4 } }, "int64")),
      { axis = 0 })
    local y = var("y", { "N", 2, 2, 2 })
    assert.equal("add", simplify({ y }, op.add(y, op.transpose(taken, { axes = { 2, 0, 1 } }))))
  end)

  it("drops a second selection by the same condition", function()
    local c, y, z = var("c", { "N", 4 }, "bool"), var("y", { "N", 4 }), var("z", { "N", 4 })
    assert.equal("where", simplify({ c, x, y, z }, op.where(c, x, op.where(c, y, z))))
    assert.equal("where", simplify({ c, x, y, z }, op.where(c, op.where(c, x, y), z)))
    local d = var("d", { "N", 4 }, "bool")
    assert.equal("where where", simplify({ c, d, x, y, z }, op.where(c, x, op.where(d, y, z))))
  end)

  it("computes a softplus without its threshold, if float32 cannot tell", function()
    local function limited(t)
      return op.where(op.greater(x, pl.const(pl.tensor(t, "float32"))), x, op.nn.softplus(x))
    end
    assert.equal("nn.softplus", simplify({ x }, limited(20)))
    assert.equal("greater nn.softplus where", simplify({ x }, limited(5)))
  end)

  it("adds the constants of products of one matrix", function()
    local function gemm(w, b) return op.nn.gemm(x, w, b, { transB = 1 }) end
    local w, v, b, c = random(3, 4), random(3, 4), random(3), random(3)
    assert.equal("nn.gemm", simplify({ x }, op.add(gemm(w, b), gemm(v, c))))
    assert.equal("nn.gemm", simplify({ x }, gemm(w, gemm(v, c))))
    assert.equal("nn.gemm", simplify({ x }, gemm(w, op.nn.gemm(x, v, { transB = 1 }))))
    assert.equal("nn.matmul",
      simplify({ x }, op.add(op.nn.matmul(x, random(4, 3)), op.nn.matmul(x, random(4, 3)))))
  end)

  it("makes one product the addend of another, and keeps the constants of both", function()
    local y = var("y", { "N", 4 })
    local w, v, b, c = random(4, 4), random(4, 4), random(4), random(4)
    local first = op.nn.gemm(x, w, b)
    assert.equal("nn.gemm nn.gemm", simplify({ x, y }, op.add(first, op.nn.gemm(y, v, c))))
    local other = op.nn.gemm(x, v, c, { transB = 1 })
    assert.equal("nn.gemm nn.gemm", simplify({ x }, op.add(first, other)))
    local half = pl.const(pl.tensor(0.5, "float32"))
    assert.equal("nn.gemm nn.gemm", simplify({ x }, op.multiply(op.add(first, other), half)))
    assert.equal("nn.gemm nn.gemm", simplify({ x }, op.divide(op.add(first, other), half)))
  end)

  it("leaves out a take of all positions that rows and constants enumerate", function()
    local function taken(columns)
      local rows = op.arange(pl.const(pl.tensor(0, "int64")),
        op.squeeze(op.shape_of(x, { start = 0, ["end"] = 1 })), pl.const(pl.tensor(1, "int64")))
      local begins = op.expand_dims(op.multiply(rows, pl.const(pl.tensor(4, "int64"))), ints(1))
      return op.take(op.reshape(x, { newshape = { -1 } }), op.add(begins, columns), { axis = 0 })
    end
    local columns = pl.const(pl.tensor({ { 0, 1, 2, 3 } }, "int64"))
    assert.equal("tanh", simplify({ x }, op.tanh(taken(columns))))
    local swapped = pl.const(pl.tensor({ { 0, 2, 1, 3 } }, "int64"))
    assert.matches("take", simplify({ x }, op.tanh(taken(swapped))))
  end)

  it("makes a batched product of a flattened one without bias", function()
    local y = var("y", { "N", 5, 4 })
    local flat = op.reshape(y, { newshape = { -1, 4 } })
    local product = op.nn.gemm(flat, random(3, 4), { transB = 1 })
    assert.equal("nn.matmul", simplify({ y }, op.reshape(product, { newshape = { -1, 5, 3 } })))
  end)
end)

describe("FuseOnnxOps", function()
  local y = var("y", { "N", 6, 7, 2 })
  local passes = { "FuseOnnxOps", "FoldConstant", "DeadCodeElimination" }
  local function slice(of, axis, first, last)
    return op.strided_slice(of, ints(first), ints(last), ints(axis), ints(1))
  end

  it("slices several axes at once", function()
    assert.equal("strided_slice",
      onnx({ y }, slice(slice(slice(y, 1, 0, 4), 2, 1, 5), -1, 1, 2), passes))
  end)

  it("keeps slices of one axis, and a slice that is used twice", function()
    assert.equal("strided_slice strided_slice",
      onnx({ y }, slice(slice(y, 1, 0, 4), -3, 1, 3), passes))
    local once = slice(y, 1, 0, 4)
    assert.equal("strided_slice strided_slice strided_slice multiply",
      onnx({ y }, op.multiply(slice(once, 2, 1, 5), slice(once, 2, 0, 4)), passes))
  end)
end)
