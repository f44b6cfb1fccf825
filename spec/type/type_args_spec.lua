-- What calls give for the type parameters of what they call: found from the
-- arguments and the result, or written where those do not tell.

local pl = require "perilune"
local ir = pl.ir

local int, float = pl.type "int32", pl.type "float32"
local y = pl.var("y", int)

-- fn [A, B](A) -> A, whose B nothing tells.
local function phantom()
  local a, b = ir.TypeVar "A", ir.TypeVar "B"
  local x = pl.var("x", a)
  return ir.Function({ x }, x, nil, nil, { a, b })
end

local function refuses(message, callee, args, type_args)
  local ok, err = pcall(pl.call, callee, args, nil, type_args)
  assert.is_false(ok)
  assert.matches(message, tostring(err), 1, true)
end

describe("type arguments of a call", function()
  local f = phantom()

  it("follow from its arguments, else are incomplete", function()
    assert.same({ int, pl.type "_" }, f(y).type_args)
    assert.same({}, pl.func({ y }, y)(y).type_args)
    assert.same({}, pl.op.tanh(pl.const(1.5)).type_args)
    assert.is_nil(y.type_args)
  end)

  it("follow from its result, too", function()
    local mod = assert(pl.parse [[#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
def @main(%x: int32) { Cons(%x, Nil) }
]])
    local cons = mod.main.body
    assert.same({ int }, cons.type_args)
    assert.equal("Nil", cons.args[2].callee.name)
    assert.same({ int }, cons.args[2].type_args)
  end)

  it("are kept where they are written", function()
    local call = pl.call(f, { y }, nil, { "int32", "float32" })
    assert.same({ int, float }, call.type_args)
    assert.equal(int, call.type)
    assert.same({ "int32", "float32" }, { tostring(call.attrs.type_args[1]),
      tostring(call.attrs.type_args[2]) })
  end)

  it("are kept only as far as they are needed", function()
    local call = pl.call(f, { y }, nil, { int })
    assert.is_nil(call.attrs.type_args)
    assert.is_true(pl.equal(call, f(y)))
  end)

  it("are kept until more is known of what is called", function()
    local g = pl.var "g"
    local call = pl.call(g, { y }, nil, { int, float })
    assert.same({ int, float }, call.type_args)
    local block = pl.func({ y }, pl.let(g, f, call))
    assert.is_true(pl.verify(block))
    assert.equal(int, pl.infer_type(block).ret_type)
  end)

  it("tell what the result is", function()
    local a = ir.TypeVar "A"
    local none = pl.var("none", ir.FuncType({}, ir.TypeCall("List", { a }), { a }))
    assert.equal(pl.type "List[_]", none().type)
    assert.equal(pl.type "List[int32]", pl.call(none, {}, nil, { int }).type)
  end)

  it("tell calls apart", function()
    local function call(...) return pl.call(f, { y }, nil, { ... }) end
    assert.is_true(pl.equal(call(int, float), call(int, float)))
    assert.is_false(pl.equal(call(int, float), call(int, int)))
    assert.is_false(pl.equal(call(int, float), f(y)))
    assert.not_equal(pl.hash(call(int, float)), pl.hash(call(int, int)))
    assert.equal(pl.hash(call(int, float)), pl.hash(call(int, float)))
  end)

  it("are printed where they are written, and read", function()
    local main = pl.func({ y }, pl.call(pl.global("f", f.type), { y }, nil, { int, float }))
    local mod = pl.module { f = f, main = main }
    local text = tostring(mod)
    assert.matches("@f(%y, type_args=[int32, float32])", text, 1, true)
    local again = assert(pl.parse(text))
    assert.is_true(pl.equal(mod, again))
    assert.equal(text, tostring(again))
    assert.equal(again, pl.passes.InferType()(again))
  end)

  it("change by name", function()
    local call = pl.call(f, { y }, nil, { int, float })
    assert.equal(call, call:with { type_args = { int, float } })
    local other = call:with { type_args = { int, "int8" } }
    assert.same({ int, pl.type "int8" }, other.type_args)
    assert.same({ int, float }, call:with { args = { pl.const(1, "int32") } }.type_args)
  end)

  it("are visited and mutated as types, and their variables found", function()
    local b = ir.TypeVar "T"
    local call = pl.call(f, { y }, nil, { int, b })
    local seen = 0
    pl.visitor { TypeVar = function(t) if t == b then seen = seen + 1 end end } (call)
    assert.equal(1, seen)
    assert.same({ b }, pl.free_type_vars(call))
    local out = pl.mutator { TypeVar = function(t) return t == b and float or t end } (call)
    assert.equal(float, out.type_args[2])
  end)
end)

describe("type arguments are refused", function()
  local f = phantom()

  it("when there are too many", function()
    refuses("the function takes 2 type arguments, got 3: in Function(%y: int32)", f, { y },
      { int, int, int })
    refuses("the function takes 0 type arguments, got 1: in Function(%y: int32)",
      pl.func({ y }, y), { y }, { int })
  end)

  it("when arguments are of other types", function()
    refuses("argument 1 must be float32, got int32: in Function(%y: int32)", f, { y }, { float })
  end)

  it("of operators", function()
    refuses("operators have no type arguments", "tanh", { y }, { int })
  end)

  it("when they are no types", function()
    refuses("type", f, { y }, { 7 })
    refuses("ir.Call: type_args: a table expected, got string", f, { y }, "int32")
  end)
end)

describe("a generic function beside one that is not", function()
  local text = [[
def @id[A](%x: A) -> A { %x }
def @main(%f: fn (int32) -> int32, %c: bool) { BODY }
]]
  local function type_of(body)
    local program = text:gsub("BODY", function() return body end)
    local mod = assert(pl.parse('#[version = "0.0.5"]\n' .. program))
    assert.is_true(pl.verify(mod))
    return tostring(mod.main.body.type)
  end

  it("is an instance in the branches of an If, in either order", function()
    assert.equal("fn (int32) -> int32", type_of "if (%c) { @id } else { %f }")
    assert.equal("fn (int32) -> int32", type_of "if (%c) { %f } else { @id }")
    assert.equal("fn [A](A) -> A", type_of "if (%c) { @id } else { @id }")
  end)

  it("is an instance in the arms of a Match", function()
    assert.equal("fn (int32) -> int32", type_of "match (%c) { _ => @id, _ => %f }")
    assert.equal("fn (int32) -> int32", type_of "match (%c) { _ => %f, _ => @id }")
  end)
end)
