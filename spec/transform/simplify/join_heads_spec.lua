-- SimplifyExpr on feature maps whose channels become rows of one tensor, as in detectors.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, ints, module = simplified.var, simplified.ints, simplified.module
local calls, keeps = simplified.calls, simplified.keeps

local pass = pl.passes.SimplifyExpr()

local function simplify(vars, body)
  local mod = module(vars, body)
  local out = pass(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3 }, rounds = 2 }))
  assert.equal(out, pass(out))
  return calls(out)
end

local sizes = { { 4, 3 }, { 2, 2 }, { 3, 2 }, { 5, 2 } }
local maps = {}
for i, size in ipairs(sizes) do maps[i] = var("m" .. i, { "N", 6, size[1], size[2] }) end

-- The rows of each map, of so many columns.
local function rows(columns, perm)
  local parts = {}
  for i, size in ipairs(sizes) do
    local moved = op.transpose(maps[i], { axes = perm or { 0, 2, 3, 1 } })
    parts[i] = op.reshape(moved, ints(0, size[1] * size[2] * 6 // columns, columns))
  end
  return parts
end

describe("SimplifyExpr", function()
  it("moves the channels of all maps at once", function()
    assert.equal("reshape reshape reshape reshape concatenate transpose reshape",
      simplify(maps, op.concatenate(rows(3), { axis = 1 })))
    assert.equal("reshape reshape reshape reshape concatenate transpose",
      simplify(maps, op.concatenate(rows(6), { axis = -2 })))
  end)

  it("takes a map of one pixel as it is", function()
    local pixel = var("pixel", { "N", 6, 1, 1 })
    local parts = rows(3)
    parts[5] = op.reshape(op.transpose(pixel, { axes = { 0, 2, 3, 1 } }), ints(0, 2, 3))
    local vars = { pixel, table.unpack(maps) }
    assert.equal("reshape reshape reshape reshape reshape concatenate transpose reshape",
      simplify(vars, op.concatenate(parts, { axis = 1 })))
  end)

  it("leaves rows of other axes, other columns and shared ones", function()
    keeps(maps, op.concatenate(rows(3, { 0, 3, 2, 1 }), { axis = 1 }))
    local parts = rows(3)
    parts[5] = var("x", { "N", 7, 3 })
    local with = { maps[1], maps[2], maps[3], maps[4], parts[5] }
    keeps(with, op.concatenate(parts, { axis = 1 }))
    parts = rows(3)
    keeps(maps, pl.tuple(op.concatenate(parts, { axis = 1 }), parts[1], parts[2], parts[4]))
  end)

  it("leaves two of them, which would be no fewer", function()
    local parts = rows(3)
    keeps({ maps[1], maps[2] }, op.concatenate({ parts[1], parts[2] }, { axis = 1 }))
  end)
end)
