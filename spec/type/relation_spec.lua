-- Relations in the constraints of a function's type are solved when it is
-- called: what follows from the inputs is what the operator's inference says.

local pl = require "perilune"
local ir = pl.ir

local a, b, c = ir.TypeVar "a", ir.TypeVar "b", ir.TypeVar "c"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

local function relation(name, args, n_inputs, attrs)
  return ir.TypeRelation(name, args, n_inputs, attrs)
end

-- A variable of a function type, fn [a, b, c](params) -> ret.
local function callee(params, ret, constraints)
  return pl.var("f", ir.FuncType(params, ret, { a, b, c }, constraints))
end

local function fails(message, call, ...)
  local ok, why = pcall(call, ...)
  assert.is_false(ok)
  assert.is_truthy(tostring(why):find(message, 1, true), tostring(why))
end

local broadcast = relation("Broadcast", { a, b, c }, 2)

describe("a relation", function()
  it("tells the result of a call", function()
    local f = callee({ a, b }, c, { broadcast })
    local call = f(pl.var("x", f32(2, 1)), pl.var("y", f32(3)))
    assert.equal(f32(2, 3), call.type)
  end)

  it("has attributes under the names of Relay's text", function()
    local f = callee({ a }, b, { relation("Concatenate", { a, b }, 1, { axis = 1 }) })
    local x, y = pl.var("x", f32(2, 1)), pl.var("y", f32(2, 4))
    assert.equal(f32(2, 5), f(pl.tuple(x, y)).type)
    f = callee({ a }, b, { relation("Reduce", { a, b }, 1, { axis = { 0 }, keepdims = true }) })
    assert.equal(f32(1, 4), f(y).type)
  end)

  it("of several results tells all", function()
    local f = callee({ a }, b, { relation("Split", { a, b, c }, 1,
      { indices_or_sections = 2, axis = 1 }) })
    assert.equal(f32(2, 2), f(pl.var("y", f32(2, 4))).type)
  end)

  it("may need another, in any order", function()
    local d = ir.TypeVar "d"
    local f = pl.var("f", ir.FuncType({ a, b }, d, { a, b, c, d }, {
      relation("BroadcastComp", { c, a, d }, 2), broadcast }))
    local call = f(pl.var("x", f32(2, 1)), pl.var("y", f32(3)))
    assert.equal(pl.type "Tensor[(2, 3), bool]", call.type)
  end)

  it("of no variables is asked as well", function()
    local f = pl.var("f", ir.FuncType({ f32(2) }, f32(3), {},
      { relation("Identity", { f32(2), f32(3) }, 1) }))
    fails("argument 2 must be Tensor[(2), float32], got Tensor[(3), float32] in relation Identity",
      f, pl.var("x", f32(2)))
  end)

  it("that does not hold is an error that names it", function()
    local f = callee({ a, b }, c, { broadcast })
    fails("in relation Broadcast", f, pl.var("x", f32(2)), pl.var("y", f32(3)))
  end)

  it("nobody knows is an error when it is asked, with the nearest name", function()
    local f = callee({ a, b }, c, { relation("Brodcast", { a, b, c }, 2) })
    fails("there is no relation of types 'Brodcast'; did you mean 'Broadcast'?", f,
      pl.var("x", f32(2)), pl.var("y", f32(2)))
  end)

  it("with unknown attributes is an error", function()
    local f = callee({ a }, b, { relation("Concatenate", { a, b }, 1, { axes = 1 }) })
    fails("axes", f, pl.tuple(pl.var("x", f32(2))))
  end)
end)

describe("InferType", function()
  -- A call whose arguments nobody knows when it is built.
  local function late(f, y)
    local x = pl.var "x"
    local body = f(x, y)
    local g = pl.func({ x }, body)
    local known = pl.var("k", f32(2, 1))
    return pl.module { main = pl.func({ f, y, known }, g(known)) }
  end

  it("solves relations when their inputs are known", function()
    local f, y = callee({ a, b }, c, { broadcast }), pl.var("y", f32(3))
    local mod = pl.passes.InferType()(late(f, y))
    assert.equal(f32(2, 3), mod.main.body.type)
  end)

  it("tells where one does not hold", function()
    local f, y = callee({ a, b }, c, { broadcast }), pl.var("y", f32(4, 3))
    fails("in relation Broadcast", pl.passes.InferType(), late(f, y))
  end)
end)
