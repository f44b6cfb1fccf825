-- SimplifyExpr on gathers whose indices enumerate all positions, and on
-- conditions that always hold.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op
local var, ints = simplified.var, simplified.ints
local module, calls, keeps = simplified.module, simplified.calls, simplified.keeps

local pipeline = pl.pipeline "SimplifyExpr,FoldConstant,SimplifyExpr"

local function simplify(vars, body)
  local mod = module(vars, body)
  local out = pipeline(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out, { dims = { N = 3, S = 4 } }))
  return out
end

local m = var("m", { "N", "S" })

local function extent(x, i) return op.take(op.shape_of(x), pl.const(i), { axis = 0 }) end
local function range(n) return op.arange(pl.const(0), n, pl.const(1)) end
local rows = op.expand_dims(range(extent(m, 0)), ints(1, 2))
local columns = op.expand_dims(range(extent(m, 1)), ints(0, 1))

describe("A take of all positions in order", function()
  local index = op.add(columns, op.multiply(rows, extent(m, 1)))

  it("is a reshape", function()
    local flat = op.reshape(m, ints(-1))
    local out = simplify({ m }, op.take(flat, index, { axis = 0 }))
    assert.equal("reshape", calls(out))
    assert.same({ "N", 1, "S" }, out.main.body.type.shape)
    assert.equal("", calls(simplify({ m }, op.take(m, range(extent(m, 0)), { axis = 0 }))))
  end)

  it("of the first columns is a take of them", function()
    local q = var("q", { "P" })
    local some = op.expand_dims(range(extent(q, 0)), ints(0, 1))
    local first = op.add(some, op.multiply(rows, extent(m, 1)))
    local mod = module({ m, q }, op.take(op.reshape(m, ints(-1)), first, { axis = 0 }))
    local out = pipeline(mod)
    assert(pl.check(mod, out, { dims = { N = 3, S = 4, P = 2 } }))
    assert.matches("take reshape$", calls(out))
    assert.same({ "N", 1, "P" }, out.main.body.type.shape)
  end)

  it("is none if the positions are others", function()
    local flat = op.reshape(m, ints(-1))
    keeps({ m }, op.take(flat, op.add(columns, op.multiply(rows, pl.const(2))), { axis = 0 }))
    keeps({ m }, op.take(flat, range(extent(m, 1)), { axis = 0 }))
    keeps({ m }, op.take(m, op.arange(pl.const(1), extent(m, 0), pl.const(1)), { axis = 0 }))
  end)
end)

describe("A gather of all coordinates in order", function()
  local function grid(a, b)
    local both = op.shape_of(op.maximum(a, b))
    return op.concatenate(op.expand_dims(op.broadcast_to(a, both), ints(-1)),
      op.expand_dims(op.broadcast_to(b, both), ints(-1)), { axis = -1 })
  end

  it("is a reshape", function()
    local out = simplify({ m }, op.gather_nd(m, grid(rows, columns)))
    assert.equal("reshape", calls(out))
    assert.same({ "N", 1, "S" }, out.main.body.type.shape)
  end)

  it("of the first columns is a take of them", function()
    local q = var("q", { "P" })
    local some = op.expand_dims(range(extent(q, 0)), ints(0, 1))
    local mod = module({ m, q }, op.gather_nd(m, grid(rows, some)))
    local out = pipeline(mod)
    assert(pl.check(mod, out, { dims = { N = 3, S = 4, P = 2 } }))
    assert.matches("take reshape$", calls(out))
    local wide = op.broadcast_to(op.expand_dims(range(extent(m, 0)), ints(1, 2)),
      op.concatenate(op.reshape(extent(m, 0), ints(1)), ints(5, 1), { axis = 0 }))
    local repeated = module({ m, q }, op.gather_nd(m, grid(wide, some)))
    assert.matches("gather_nd$", calls(pipeline(repeated)))
  end)

  it("is none if the axes are exchanged", function()
    local s = var("s", { 4, 4 })
    local a = op.expand_dims(range(pl.const(4)), ints(1))
    local b = op.expand_dims(range(pl.const(4)), ints(0))
    assert.equal("", calls(simplify({ s }, op.gather_nd(s, grid(a, b)))))
    assert.matches("gather_nd", calls(simplify({ s }, op.gather_nd(s, grid(b, a)))))
  end)
end)

describe("A condition that always holds", function()
  local c = var("c", { "N", 1, "S" }, "bool")
  local x = var("x", { "N", "S", "S" })
  local holds = op.greater_equal(op.expand_dims(range(extent(m, 1)), ints(0, 2)), pl.const(0))

  it("is dropped where its shape is not needed", function()
    local both = op.logical_and(holds, c)
    local out = simplify({ m, c, x }, op.where(both, x, pl.const(0.0)))
    assert.equal("where", calls(out))
    out = simplify({ m, c, x }, op.add(x, op.where(both, pl.const(0.0), pl.const(-1e9))))
    assert.equal("where add", calls(out))
  end)

  it("stays where it makes the shape, or may fail", function()
    local function count(body)
      return select(2, calls(simplify({ m, c, x }, body)):gsub("logical", ""))
    end
    assert.equal(1, count(op.where(op.logical_and(holds, c), pl.const(0.0), pl.const(1.0))))
    local may = op.greater_equal(op.expand_dims(range(extent(m, 1)), ints(0, 2)), pl.const(1))
    assert.equal(1, count(op.where(op.logical_and(may, c), x, pl.const(0.0))))
  end)
end)
