-- SimplifyExpr on shapes that are computed: what comes out, that it computes the
-- same, and what must stay as it is.

local pl = require "perilune"
local simplified = require "spec.transform.simplified"

local op = pl.op

local var, ints = simplified.var, simplified.ints
local module, calls, keeps = simplified.module, simplified.calls, simplified.keeps

-- The result is valid, computes the same, and is final.
local function simplify(vars, body, pipeline)
  local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore scope
  local pass = pl.pipeline(pipeline or "SimplifyExpr")
  local mod = module(vars, body)
  local out = pass(mod)
  assert(pl.verify(out))
  for n = 1, 3 do assert(pl.check(mod, out, { dims = { N = n, S = 2 * n + 1 } })) end
  assert.equal(out, pass(out))
  return out
end

-- Extents [from, to) of x, as a vector.
local function extents(x, from, to)
  return op.strided_slice(op.shape_of(x), ints(from), ints(to), ints(0))
end

local function shape_arg(out) return out.main.body.args[2].data:to_table() end

describe("A reshape to a computed shape", function()
  local x = var("x", { "N", "S", 12 })

  it("copies extents, also where 0 would have meant 0", function()
    for _, allowzero in ipairs { 0, 1 } do
      local shape = op.concatenate(extents(x, 0, 2), ints(-1, 4), { axis = 0 })
      local out = simplify({ x }, op.reshape(x, shape, { allowzero = allowzero }))
      assert.equal("reshape", calls(out))
      assert.same({ 0, 0, 3, 4 }, shape_arg(out))
      assert.is_nil(out.main.body.attrs.allowzero)
    end
  end)

  it("leaves one extent open", function()
    keeps({ x }, op.reshape(x, op.concatenate(ints(12), extents(x, 0, 2), { axis = 0 })))
    local shape = op.concatenate(ints(3), extents(x, 1, 2), ints(-1), { axis = 0 })
    assert.same({ 3, 0, -1 }, shape_arg(simplify({ x }, op.reshape(x, shape))))
  end)
end)

describe("A broadcast to a computed shape", function()
  local x = var("x", { "N", 1, "S" })

  it("is one to a constant shape when the operand has the extents", function()
    local shape = op.concatenate(extents(x, 0, 1), ints(4), extents(x, 2, 3), { axis = 0 })
    local out = simplify({ x }, op.broadcast_to(x, shape))
    assert.equal("broadcast_to", calls(out))
    assert.same({ 1, 4, 1 }, shape_arg(out))
  end)

  it("may add axes of known extents", function()
    local shape = op.concatenate(ints(2, 3), op.shape_of(x), { axis = 0 })
    assert.same({ 2, 3, 1, 1, 1 }, shape_arg(simplify({ x }, op.broadcast_to(x, shape))))
  end)

  it("stays when an extent comes from elsewhere", function()
    keeps({ x }, op.broadcast_to(x, op.concatenate(extents(x, 0, 1), extents(x, 2, 3), ints(1),
      { axis = 0 })))
  end)

  it("of a number is a fill", function()
    local y = var("y", { "N", "S" })
    local out = simplify({ x, y }, op.broadcast_to(pl.const(1.0), op.shape_of(y)))
    assert.equal("shape_of constant_of_shape", calls(out))
  end)

  it("goes when the operator behind it broadcasts anyway", function()
    local y = var("y", { "N", 4, "S" })
    local full = op.broadcast_to(x, op.shape_of(y))
    assert.equal("minimum", calls(simplify({ x, y }, op.minimum(y, full))))
    assert.equal("add", calls(simplify({ x, y }, op.add(full, y))))
    local less = op.less(y, full)
    local all = op.broadcast_to(pl.const(0.0), op.shape_of(y))
    assert.equal("less where", calls(simplify({ x, y }, op.where(less, y, all))))
  end)

  it("stays when it makes the result larger", function()
    local y = var("y", { "N", 4, "S" })
    local full = op.broadcast_to(x, op.shape_of(y))
    assert.equal("broadcast_to add", calls(simplify({ x, y }, op.add(full, x))))
    local u = var("u", { "?", 4, "S" })
    keeps({ x, u }, op.add(op.broadcast_to(x, op.shape_of(u)), u))
  end)
end)

describe("Axes that are grouped, moved and taken apart again", function()
  local x = var("x", { "N", 4, "S", 16 })
  local function extent(i) return extents(x, i, i + 1) end

  it("are moved one by one", function()
    local flat = op.reshape(x, op.concatenate(ints(-1), extent(2), ints(16), { axis = 0 }))
    local back = op.concatenate(extent(0), ints(4, 16), extent(2), { axis = 0 })
    local out = simplify({ x }, op.reshape(op.transpose(flat, { axes = { 0, 2, 1 } }), back))
    assert.equal("transpose", calls(out))
    assert.same({ 0, 1, 3, 2 }, out.main.body.attrs.axes)
  end)

  it("as groups, in any order", function()
    local y = var("y", { 2, 3, 4, 5, 6 })
    local flat = op.reshape(y, ints(6, 4, 30))
    local out = simplify({ y }, op.reshape(op.transpose(flat, { axes = { 2, 0, 1 } }),
      ints(5, 6, 2, 3, 4)))
    assert.equal("transpose", calls(out))
    assert.same({ 3, 4, 0, 1, 2 }, out.main.body.attrs.axes)
  end)

  it("past axes of extent 1 that come and go", function()
    local y = var("y", { "S", "N", 3, 8 })
    local out = simplify({ y }, op.squeeze(op.transpose(op.expand_dims(y, ints(0)),
      { axes = { 3, 1, 2, 0, 4 } }), ints(3)))
    assert.equal("transpose", calls(out))
    assert.same({ 2, 0, 1, 3 }, out.main.body.attrs.axes)
  end)

  it("are taken apart before they are moved", function()
    local y = var("y", { 17, "N", 64 })
    local flat = op.reshape(y, ints(17, -1, 16))
    local moved = op.transpose(flat, { axes = { 1, 0, 2 } })
    local out = simplify({ y }, op.reshape(moved, ints(-1, 4, 17, 16)))
    assert.equal("reshape transpose", calls(out))
    assert.same({ 1, 2, 0, 3 }, out.main.body.attrs.axes)
    assert.same({ 17, 0, 4, 16 }, out.main.body.args[1].args[2].data:to_table())
    keeps({ y }, pl.tuple(moved, op.reshape(moved, ints(-1, 4, 17, 16))))
  end)

  it("stay when they are taken apart in another way", function()
    local y = var("y", { 2, 3, 4, 5 })
    local flat = op.reshape(y, ints(6, 20))
    local moved = op.transpose(flat, { axes = { 1, 0 } })
    keeps({ y }, op.reshape(moved, ints(40, 3)))
    keeps({ y }, op.reshape(moved, ints(8, 15)))
    local u = var("u", { "?", 12 })
    keeps({ u }, op.reshape(op.transpose(op.reshape(u, ints(-1, 6)), { axes = { 1, 0 } }),
      ints(2, 3, -1)))
  end)
end)

describe("Shapes put together piece by piece", function()
  local i = var("i", { "?" }, "int64")

  it("are put together at once", function()
    local inner = op.concatenate(i, ints(3), { axis = 0 })
    local out = simplify({ i }, op.concatenate(inner, inner, ints(4), { axis = 0 }))
    assert.equal("concatenate", calls(out))
    assert.equal(5, #out.main.body.args)
  end)

  it("but not too many at once", function()
    local parts = {}
    for k = 1, 64 do parts[k] = i end
    local many = op.concatenate(table.unpack(parts))
    keeps({ i }, op.concatenate(many, i))
  end)
end)

describe("A recurrent layer that is given zeros to begin with", function()
  local x = var("x", { "S", "N", 3 })
  local w, r = var("w", { 1, 16, 3 }), var("r", { 1, 16, 4 })
  local function zeros(value)
    return op.constant_of_shape(op.concatenate(ints(1), extents(x, 1, 2), ints(4), { axis = 0 }),
      { value = value and pl.tensor({ value }, "float32") })
  end
  local function layer(h, c)
    local all = op.lstm(x, w, r, nil, nil, h, c, { hidden_size = 4, n_results = 3 })
    return pl.ir.TupleGetItem(all, 0)
  end
  local function simple(body)
    return pl.passes.SimplifyExpr()(module({ x, w, r }, body)).main.body.tuple
  end

  it("is given nothing", function()
    assert.equal(3, #simple(layer(zeros(), zeros(-0.0))).args)
    local slice = op.strided_slice(zeros(), ints(0), ints(1), ints(0))
    assert.equal(3, #simple(layer(slice, slice)).args)
  end)

  it("keeps what is not zero", function()
    local args = simple(layer(zeros(), zeros(1))).args
    assert.equal(7, #args)
    assert.equal("Absent", args[6].kind)
    local h = var("h", { 1, "N", 4 })
    local mod = module({ x, w, r, h }, layer(h, h))
    assert.equal(mod, pl.passes.SimplifyExpr()(mod))
  end)
end)

describe("Calls that give the same extents", function()
  local x, y = var("x", { "N", "S" }), var("y", { "S", "N" })
  local function merge(vars, body) return simplify(vars, body, "EliminateCommonSubexpr") end
  local at = { [0] = pl.const(0), [1] = pl.const(1) }
  local function extent(z, i) return op.take(op.shape_of(z), at[i]) end

  it("become one", function()
    local out = merge({ x, y }, pl.tuple(extent(x, 0), extent(y, 1)))
    assert.equal("shape_of take", calls(out))
    out = merge({ x, y }, op.subtract(extent(x, 0) * extent(x, 1), extent(y, 0) * extent(y, 1)))
    assert.equal("shape_of take take multiply subtract", calls(out))
  end)

  it("stay two when a name, the rank or the dtype differs", function()
    local function keep(a, b)
      local mod = module({ x, y }, pl.tuple(a, b))
      assert.equal(mod, pl.passes.EliminateCommonSubexpr()(mod))
    end
    keep(extent(x, 0), extent(y, 0))
    keep(op.shape_of(x), op.shape_of(y))
    keep(extent(x, 0), extents(y, 1, 2))
    local shape = op.shape_of(x)
    keep(shape, op.cast(shape, { to = 6 }))
  end)

  it("stay two when an extent has no name", function()
    local u, v = var("u", { "?" }), var("v", { "?" })
    local mod = module({ u, v }, pl.tuple(op.shape_of(u), op.shape_of(v)))
    assert.equal(mod, pl.passes.EliminateCommonSubexpr()(mod))
  end)

  it("stay two in branches beside each other", function()
    local p = pl.var("p", "bool")
    local mod = module({ p, x, y }, pl.if_(p, extent(x, 0), extent(y, 1)))
    assert.equal(mod, pl.passes.EliminateCommonSubexpr()(mod))
  end)
end)
