-- What is called, and what it is given: each kind of callee, each wrong
-- argument, and functions that call themselves and each other.

local pl = require "perilune"
local ir = pl.ir

local x, i = pl.var("x", "Tensor[(2), float32]"), pl.var("i", "int32")
local pair, cell = pl.var("t", "(int32, float32)"), pl.var("r", "ref(int32)")
local g = pl.var("g", "fn (int32) -> int32")

local function refuses(message, work, ...)
  local ok, err = pcall(work, ...)
  assert.is_false(ok)
  assert.matches(message, tostring(err), 1, true)
end

local function parse(text) return pl.parse('#[version = "0.0.5"]\n' .. text) end

local function type_of(text, name)
  local mod = assert(parse(text))
  assert.is_true(pl.verify(mod))
  return tostring(mod.functions[name or "main"].type)
end

local function bad_text(message, text)
  local mod, err = parse(text)
  assert.is_nil(mod)
  assert.matches(message, tostring(err), 1, true)
end

describe("what is called", function()
  it("is a function", function()
    for callee, shown in pairs { [x] = "%x", [pair] = "%t", [cell] = "%r",
      [pl.const(1)] = "Constant", [g(i)] = "a call" } do
      refuses(("the callee is not a function: in %s(%%i: int32)"):format(shown), pl.call, callee,
        { i })
    end
    refuses("the callee is not a function: in Absent(", pl.call, nil, { x })
  end)

  it("may be what a call gives", function()
    local h = pl.var("h", "fn (int32) -> fn (int32) -> int32")
    assert.equal(pl.type "int32", h(i)(i).type)
    refuses("argument 1 must be int32, got Tensor[(2), float32]: in a call(", pl.call, h(i), { x })
  end)

  it("may be unknown for a time", function()
    local u = pl.var "u"
    assert.equal(pl.type "_", u(x).type)
    local _, err = pl.infer_type(pl.func({ u }, pl.tuple(u(x), u(x, x))))
    assert.matches("takes 1 argument, got 2: in %u(", tostring(err), 1, true)
  end)

  it("may be an operator as a value", function()
    local call = pl.call(ir.Op "add", { x, x })
    assert.equal("add", call.op.name)
    assert.is_true(pl.equal(call, x + x))
    refuses("'add' takes at least 2 arguments, got 1: in add(", pl.call, ir.Op "add", { x })
  end)

  it("is no pattern, and gives none", function()
    for _, body in ipairs { ir.PatternWildcard()(x), g(ir.PatternWildcard()),
      ir.PatternWildcard() } do
      refuses("patterns must be operands of patterns or Clauses", pl.verify, pl.func({ x }, body))
    end
  end)
end)

describe("an argument", function()
  it("is of the type that is wanted", function()
    for arg, shown in pairs { [x] = "Tensor[(2), float32]", [pair] = "(int32, float32)",
      [cell] = "ref(int32)", [g] = "fn (int32) -> int32" } do
      refuses("argument 1 must be int32, got " .. shown, pl.call, g, { arg })
    end
    refuses("the function takes 1 argument, got 0: in %g()", pl.call, g, {})
    refuses("the function takes 1 argument, got 2: in %g(", pl.call, g, { i, i })
  end)

  it("of an operator on elements is a tensor", function()
    for arg, shown in pairs { [pair] = "(int32, float32)", [cell] = "ref(int32)",
      [g] = "fn (int32) -> int32" } do
      refuses("'tanh', operand 0: expected a tensor, got " .. shown, pl.call, "tanh", { arg })
      refuses("'add', operand 1: expected a tensor, got " .. shown, pl.call, "add", { i, arg })
      refuses("'sum', operand 0: expected a tensor, got " .. shown, pl.call, "sum", { arg })
    end
    bad_text("'add', operand 0: expected a tensor, got fn () -> _: in add(@main",
      "def @main() { add(@main, 1) }")
  end)
end)

describe("a constructor", function()
  local list = "type List[A] { Cons(A, List[A]), Nil, }\n"
  local lists = parse(list)

  local function refused(message, body)
    refuses(message, lists.with, lists, { main = pl.func({ i, x }, body) })
  end

  it("takes its fields", function()
    local cons, none = ir.Constructor "Cons", ir.Constructor "Nil"
    refused("the function takes 2 arguments, got 1: in Cons(%i: int32) of @main", cons(i))
    refused("the function takes 0 arguments, got 1: in Nil(%i: int32) of @main", none(i))
    refused("argument 2: expected List[int32], got int32: in Cons(", cons(i, i))
    refused("argument 2: expected List[int32], got List[Tensor[(2), float32]]: in Cons(",
      cons(i, cons(x, none())))
    bad_text("the function takes 2 arguments, got 1: in Cons(", list .. "def @main() { Cons(1) }")
  end)

  it("without fields is called with none", function()
    local twice = assert(parse(list .. "def @main() { (Nil(), Nil) }")).main.body
    assert.equal(pl.type "List[_]", twice[1].type)
    assert.is_true(pl.equal(twice[1], twice[2]))
  end)
end)

describe("a function that calls itself", function()
  it("has the result of its other branch", function()
    assert.equal("fn (int32) -> int32", type_of [[
      def @main(%n: int32) {
        if (equal(%n, 0)) { 1 } else { multiply(%n, @main(subtract(%n, 1))) }
      }]])
    assert.equal("fn (int32) -> _", type_of "def @main(%n: int32) { @main(%n) }")
  end)

  it("through another has that one's", function()
    local text = [[
      def @even(%n: int32) { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
      def @odd(%n: int32) { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }]]
    assert.equal("fn (int32) -> bool", type_of(text, "even"))
    assert.equal("fn (int32) -> bool", type_of(text, "odd"))
  end)

  it("may be another instance of itself", function()
    assert.equal("fn [A](A, int32) -> int32", type_of [[
      def @main[A](%x: A, %n: int32) {
        if (equal(%n, 0)) { 1 } else { @main((%x, %x), subtract(%n, 1)) }
      }]])
  end)

  it("calls itself as it is", function()
    bad_text("argument 1: expected int32, got float32: in @f(Constant: float32) of @f",
      "def @f(%n: int32) { if (equal(%n, 0)) { 1 } else { @f(1f) } }")
    bad_text("the function takes 1 argument, got 2: in @f(",
      "def @f(%n: int32) -> int32 { if (equal(%n, 0)) { 1 } else { @f(%n, %n) } }")
    bad_text("argument 1 must be int32, got float32: in %f(Constant: float32)",
      "def @main() { let %f = fn (%n: int32) { if (equal(%n, 0)) { 1 } else { %f(1f) } }; %f(3) }")
  end)

  it("does not contain itself", function()
    bad_text("the type is infinite: it contains itself", "def @main(%x) { %x(%x) }")
  end)

  it("is one instance where it is bound without type parameters", function()
    bad_text("argument 1: expected int32, got float32: in %id(",
      "def @main() { let %id = fn (%x) { %x }; (%id(1), %id(2f)) }")
    assert.equal("fn () -> (int32, float32)", type_of(
      "def @main() { let %id = fn [A](%x: A) -> A { %x }; (%id(1), %id(2f)) }"))
  end)
end)
