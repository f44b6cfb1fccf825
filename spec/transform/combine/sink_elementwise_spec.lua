-- SinkElementwise: an elementwise operator is computed once, behind the concatenation of its
-- results, where at least two calls go; the program computes the same, bit by bit.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, ints, module = simplified.var, simplified.ints, simplified.module

local function count(mod, name)
  local n = 0
  for node in mod.main:nodes() do
    if node.kind == "Call" and node.op.name == name then n = n + 1 end
  end
  return n
end

-- The calls of `name` before and after the pass.
local function sunk(name, vars, body)
  local mod = module(vars, body)
  local pass = pl.passes.SinkElementwise()
  local out = pass(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3 }, rtol = 0, atol = 0 }))
  assert.equal(out, pass(out))
  return count(mod, name), count(out, name), out, mod
end

local function counts(...)
  local before, after = sunk(...)
  return { before, after }
end

local x, y, z = var("x", { "N", 3 }), var("y", { "N", 4 }), var("z", { "N", 6 })

local function join(...) return op.concatenate({ ... }, { axis = 1 }) end

describe("SinkElementwise", function()
  it("concatenates before the operator", function()
    local before, after, out = sunk("nn.relu", { x, y, z },
      join(op.nn.relu(x), op.nn.relu(y), op.nn.relu(z)))
    assert.same({ 3, 1 }, { before, after })
    assert.same({ "N", 13 }, out.main.body.type.shape)
    assert.same({ 2, 1 }, counts("tanh", { x, y }, join(op.tanh(x), op.tanh(y))))
  end)

  it("compares attributes", function()
    local function limited(node, limit) return op.clip(node, { a_min = 0, a_max = limit }) end
    assert.same({ 2, 1 }, counts("clip", { x, y }, join(limited(x, 6), limited(y, 6))))
    assert.same({ 2, 2 }, counts("clip", { x, y }, join(limited(x, 6), limited(y, 5))))
  end)

  it("takes results of an idempotent operator as they are", function()
    local parts = op.split(op.nn.relu(z), ints(2, 4), { axis = 1, n_results = 2 })
    local a, b = parts:unpack()
    assert.same({ 3, 2 }, counts("nn.relu", { x, y, z },
      pl.tuple(join(a, op.nn.relu(x), op.nn.relu(y)), b)))
    local other = op.split(op.tanh(z), ints(2, 4), { axis = 1, n_results = 2 })
    a, b = other:unpack()
    local _, left, out, mod = sunk("tanh", { x, y, z },
      pl.tuple(join(a, op.tanh(x), op.tanh(y)), b))
    assert.equal(3, left)
    assert.equal(mod, out)
  end)

  it("leaves alone what would not go", function()
    local shared = op.nn.relu(x)
    local cases = { join(shared, op.nn.relu(y)), join(op.nn.relu(y), z),
      join(op.nn.relu(y), op.tanh(z)) }
    for _, body in ipairs(cases) do
      local _, _, out, mod = sunk("nn.relu", { x, y, z }, pl.tuple(body, shared))
      assert.equal(mod, out)
    end
  end)

  it("moves casts of equal dtypes only", function()
    local i, j = var("i", { "N", 2 }, "int32"), var("j", { "N", 2 }, "int64")
    local function cast(node) return op.cast(node, { to = 1 }) end
    assert.same({ 2, 1 }, counts("cast", { i }, join(cast(i), cast(op.negative(i)))))
    assert.same({ 2, 2 }, counts("cast", { i, j }, join(cast(i), cast(j))))
  end)

  it("does not move roundings of halves", function()
    local h = var("h", { "N", 2 }, "float16")
    assert.same({ 2, 2 }, counts("tanh", { h }, join(op.tanh(h), op.tanh(op.negative(h)))))
  end)

  it("works in branches", function()
    local text = [[#[version = "0.0.5"]
      def @main(%c: bool, %x: Tensor[(2, 3), float32]) {
        %0 = nn.relu(%x);
        if (%c) { concatenate(%0, nn.relu(negative(%x)), axis=1) } else {
          concatenate(%x, %x, axis=1) }
      }]]
    local mod = assert(pl.parse(text))
    local out = pl.passes.SinkElementwise()(mod)
    assert(pl.verify(out))
    assert.equal(1, count(out, "nn.relu"))
    assert(pl.check(mod, out, { rtol = 0, atol = 0 }))
  end)
end)
