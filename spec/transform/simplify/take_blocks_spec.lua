-- SimplifyExpr on trees of operators that only move blocks of one tensor: windows of
-- attention, rolls, merged patches, boxes that are cut into columns and put together again.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, ints = simplified.var, simplified.ints
local module, calls = simplified.module, simplified.calls

local tidy = pl.sequential { "SimplifyExpr", "EliminateCommonSubexpr", "DeadCodeElimination" }

-- What is left is valid, computes the same bits, and is final.
local function simplify(vars, body)
  local mod = module(vars, body)
  local function run(m) return pl.with(pl.context { opt_level = 3 }, tidy, m) end
  local out = run(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3 }, rounds = 2 }))
  assert.equal(out, run(out))
  return calls(out), out
end

local function slice(x, from, to, axis, step)
  return op.strided_slice(x, ints(from), ints(to), ints(axis), ints(step or 1))
end

local function roll(x, by, axis)
  return op.concatenate({ slice(x, by, math.maxinteger, axis), slice(x, 0, by, axis) },
    { axis = axis })
end

for what, first in pairs { static = 2, symbolic = "N" } do
  describe("SimplifyExpr, with a " .. what .. " batch,", function()
    local x = var("x", { first, 64, 6 })
    local image = op.reshape(x, ints(-1, 8, 8, 6))

    local function windows(y)
      y = op.transpose(op.reshape(y, ints(-1, 2, 4, 2, 4, 6)), { axes = { 0, 1, 3, 2, 4, 5 } })
      return op.reshape(y, ints(-1, 16, 6))
    end

    it("takes windows of a rolled image at once", function()
      assert.equal("take reshape", (simplify({ x }, windows(roll(roll(image, 3, 1), 3, 2)))))
    end)

    it("takes them back at once, where the batch is a part of the first axis", function()
      local y = op.nn.softmax(windows(image))
      y = op.transpose(op.reshape(y, ints(-1, 2, 2, 4, 4, 6)), { axes = { 0, 1, 3, 2, 4, 5 } })
      y = roll(roll(op.reshape(y, ints(-1, 8, 8, 6)), 5, 1), 5, 2)
      assert.equal("take reshape nn.softmax reshape take",
        (simplify({ x }, op.reshape(y, ints(-1, 64, 6)))))
    end)

    it("takes patches that are merged at once", function()
      local parts = {}
      for i, at in ipairs { { 0, 0 }, { 1, 0 }, { 0, 1 }, { 1, 1 } } do
        parts[i] = slice(slice(image, at[1], 8, 1, 2), at[2], 8, 2, 2)
      end
      local merged = op.concatenate(parts, { axis = -1 })
      assert.equal("take reshape", (simplify({ x }, op.reshape(merged, ints(-1, 16, 24)))))
    end)

    it("keeps rolls of which a part has another user", function()
      local part = slice(image, 3, math.maxinteger, 1)
      local rolled = op.concatenate({ part, slice(image, 0, 3, 1) }, { axis = 1 })
      local kept = simplify({ x }, pl.tuple(windows(rolled), op.sqrt(part)))
      assert.matches("concatenate", kept)
    end)
  end)
end

describe("SimplifyExpr", function()
  local boxes = var("boxes", { "N", 4 })

  it("leaves out a cut into columns that are put together again", function()
    local x, y = slice(boxes, 0, 4, 1, 2), slice(boxes, 1, 4, 1, 2)
    local function limited(z)
      local least, most = pl.const(pl.tensor(0, "float32")), pl.const(pl.tensor(7, "float32"))
      return op.expand_dims(op.clip(z, least, most), ints(-1))
    end
    local joined = op.concatenate({ limited(x), limited(y) }, { axis = -1 })
    assert.equal("clip", (simplify({ boxes }, op.reshape(joined, ints(-1, 4)))))
  end)

  it("keeps columns to which different operators are applied", function()
    local x, y = slice(boxes, 0, 4, 1, 2), slice(boxes, 1, 4, 1, 2)
    local joined = op.concatenate({ op.expand_dims(op.tanh(x), ints(-1)),
      op.expand_dims(op.sqrt(y), ints(-1)) }, { axis = -1 })
    local kept = simplify({ boxes }, op.reshape(joined, ints(-1, 4)))
    assert.matches("tanh.*sqrt.*concatenate", kept)
  end)

  it("keeps an elementwise operator before its moves if it is one for all of them", function()
    local x = var("x", { "N", 8, 4 })
    local y = op.nn.relu(x)
    local rolled = roll(y, 3, 1)
    assert.equal("nn.relu take", (simplify({ x }, rolled)))
  end)

  it("does not take single elements", function()
    local x = var("x", { "N", 4, 6 })
    local moved = op.transpose(op.reshape(x, ints(-1, 2, 2, 6)), { axes = { 0, 3, 1, 2 } })
    local body = op.reshape(op.transpose(op.reshape(moved, ints(-1, 2, 3, 4)),
      { axes = { 0, 2, 1, 3 } }), ints(-1, 24))
    assert.not_matches("take", (simplify({ x }, body)))
  end)
end)

describe("SimplifyExpr, on a concatenation of columns,", function()
  local x, y = var("x", { "N", 2 }), var("y", { "N", 2 })
  local function column(z, i) return op.take(z, ints(i), { axis = 1 }) end
  local function cut(z) return op.split(z, ints(1, 1), { axis = 1, n_results = 2 }):unpack() end

  it("applies the operator of all columns once", function()
    local a, b = cut(x)
    local c, d = cut(y)
    local corners = op.concatenate({ a - c, b - d, a + c, b + d }, { axis = 1 })
    assert.equal("subtract add concatenate", (simplify({ x, y }, corners)))
  end)

  it("reduces groups of columns at once", function()
    local z, parts = var("z", { "N", 3 }), {}
    for i = 0, 2 do
      for k = i, 2 do
        local pair = op.take(z, ints(i, k), { axis = 1 })
        parts[#parts + 1] = op.prod(pair, { axes = { 1 }, keepdims = 1 })
      end
    end
    assert.equal("take reshape prod", (simplify({ z }, op.concatenate(parts, { axis = 1 }))))
  end)

  it("takes neighbouring parts at once, beside others", function()
    local parts = { y, column(x, 0), column(x, 1), column(y, 1) }
    assert.equal("take concatenate", (simplify({ x, y }, op.concatenate(parts, { axis = 1 }))))
  end)

  it("keeps operators that something else uses, and columns of several tensors", function()
    local a, b = cut(x)
    local difference = op.sqrt(a)
    local joined = op.concatenate({ difference, op.sqrt(b) }, { axis = 1 })
    assert.matches("sqrt sqrt concatenate", (simplify({ x }, pl.tuple(joined, difference))))
    local mixed = op.concatenate({ op.sqrt(a), op.sqrt((cut(y))) }, { axis = 1 })
    assert.matches("sqrt.* sqrt concatenate", (simplify({ x, y }, mixed)))
  end)
end)
