-- FlattenRows: a batch of matrices is computed as one, if that saves calls.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, ints = simplified.var, simplified.ints
local module, calls = simplified.module, simplified.calls

local pass = pl.passes.FlattenRows()

local function filled(shape, seed)
  return pl.const(pl.tensor.random(shape, "float32", { seed = seed or 1 }))
end

-- The result is valid, computes the same, and is final.
local function flatten(vars, body)
  local mod = module(vars, body)
  local out = pass(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3, S = 2 }, rtol = 1e-5, atol = 1e-6, scaled = true }))
  assert.equal(out, pass(out))
  return out, mod
end

local function keeps(vars, body)
  local out, mod = flatten(vars, body)
  assert.equal(mod, out)
end

local x = var("x", { "N", 5, 8 })

local function dense(y, columns, seed)
  return op.add(op.nn.matmul(y, filled({ 8, columns }, seed)), filled({ columns }, seed))
end

-- An attention's heads, whose layout the reshapes at the borders have already.
local function joined(y)
  return op.reshape(op.transpose(y, { axes = { 0, 2, 1, 3 } }), ints(0, 5, 8))
end

local h = var("h", { "N", 2, 5, 4 })

describe("FlattenRows", function()
  it("moves the shape to reshapes that are there", function()
    local body = op.reshape(op.nn.relu(dense(joined(h), 8)), ints(0, 5, 2, 4))
    local out = flatten({ h }, body)
    assert.equal("transpose reshape nn.matmul add nn.relu reshape", calls(out))
    assert.same({ "N", 5, 2, 4 }, out.main.body.type.shape)
    for node in out.main:nodes() do
      if node.kind == "Call" and node.op == op.nn.relu then assert.equal(2, #node.type.shape) end
    end
    local merged = pl.passes.MatMulAddToGemm()(out)
    assert.equal("transpose reshape nn.gemm nn.relu reshape", calls(merged))
  end)

  it("adds reshapes if that saves more products' sums", function()
    local y = op.nn.layer_norm(x, filled { 8 }, filled { 8 }, { axis = 2 })
    y = dense(op.nn.gelu(dense(y, 8, 1)), 8, 2)
    y = op.nn.softmax(dense(op.add(y, x), 8, 3), { axis = 2 })
    local out = flatten({ x }, y)
    assert.matches("^reshape nn.layer_norm", calls(out))
    assert.matches("nn.softmax reshape$", calls(out))
    assert.same({ "N", 5, 8 }, out.main.body.type.shape)
  end)

  it("takes constants of more axes as vectors", function()
    local y = op.add(op.nn.matmul(joined(h), filled { 8, 8 }), filled { 1, 1, 8 })
    local out = flatten({ h }, op.reshape(op.multiply(y, pl.const(2.0)), ints(0, 5, 2, 4)))
    assert.equal("transpose reshape nn.matmul add multiply reshape", calls(out))
  end)

  it("leaves alone what would become more", function()
    keeps({ x }, dense(x, 8))
    keeps({ h }, op.nn.relu(op.nn.matmul(joined(h), filled { 8, 8 })))
    keeps({ x }, op.add(op.nn.matmul(x, filled { 8, 8 }), filled { 5, 8 }))
  end)

  local function deep(y, n)
    for i = 1, n do y = op.tanh(dense(y, 8, i)) end
    return y
  end

  it("concatenates shapes that a constant cannot give of extents that are there", function()
    local ids = var("ids", { "N", "S" }, "int64")
    local y = op.take(filled { 10, 8 }, ids, { axis = 0 })
    local out = flatten({ ids }, deep(y, 5))
    assert.matches("^take reshape nn.matmul add tanh", calls(out))
    assert.matches("shape_of concatenate reshape$", calls(out))
    assert.same({ "N", "S", 8 }, out.main.body.type.shape)
    keeps({ ids }, deep(y, 3)) -- saves less than that costs
  end)

  it("takes extents of a longer shape", function()
    local z = var("z", { "N", "S", 8 })
    local out = flatten({ z }, deep(z, 6))
    assert.matches("^reshape nn.matmul", calls(out))
    assert.matches("shape_of strided_slice .*concatenate reshape$", calls(out))
    assert.same({ "N", "S", 8 }, out.main.body.type.shape)
    keeps({ z }, deep(z, 4))
  end)

  it("leaves alone extents without a name", function()
    local z = pl.var("z", "Tensor[(?, ?, 8), float32]")
    local mod = module({ z }, deep(z, 6))
    assert.equal(mod, pass(mod))
  end)

  it("shares shapes and matrices that are there", function()
    local ids = var("ids", { "N", "S" }, "int64")
    local taken = op.take(filled { 10, 8 }, ids, { axis = 0 })
    local shape = op.concatenate({ op.shape_of(ids), ints(2, 4) }, { axis = 0 })
    local other = op.reshape(op.reshape(op.tanh(op.reshape(taken, ints(-1, 8))), ints(-1, 8)),
      shape)
    local body = pl.tuple(op.reshape(dense(taken, 8), ints(0, 0, 2, 4)), other)
    local out = flatten({ ids }, body)
    assert.matches("nn.matmul add", calls(out))
    assert.equal(2, #out.main.body.fields[1].args[1].type.shape)
    keeps({ ids }, op.reshape(dense(taken, 8), ints(0, 0, 2, 4)))
  end)

  it("computes products with transposed constants, and reductions of rows", function()
    local y = op.divide(x, op.sqrt(op.reduce_sum_square(x, { axes = { -1 }, keepdims = 1 })))
    y = op.add(op.nn.matmul(y, filled { 8, 8 }), x)
    y = op.nn.matmul(y, op.transpose(filled { 6, 8 }, { axes = { 1, 0 } }))
    local out = flatten({ x }, op.nn.relu(dense(op.nn.matmul(y, filled { 6, 8 }), 3)))
    assert.matches("^reshape reduce_sum_square", calls(out))
    assert.matches("nn.relu reshape$", calls(out))
  end)

  it("begins behind sums of tensors that each would be reshaped", function()
    local z = var("z", { "N", 5, 8 })
    local w = var("w", { "N", 5, 8 })
    local y = op.add(op.add(x, z), w)
    for i = 1, 3 do y = op.add(dense(op.tanh(y), 8, i), y) end
    local out = flatten({ x, z, w }, y)
    assert.matches("^add add reshape tanh nn.matmul", calls(out))
    local _, n = calls(out):gsub("reshape", "")
    assert.equal(2, n)
  end)

  it("adds no reshapes, which round, among 16-bit floats", function()
    local z = var("z", { "N", 5, 8 }, "float16")
    local y = z
    for i = 1, 4 do
      local w = pl.const(pl.tensor.random({ 8, 8 }, "float16", { seed = i }))
      y = op.tanh(op.add(op.nn.matmul(y, w), z))
    end
    local mod = module({ z }, y)
    assert.equal(mod, pass(mod))
  end)
end)
