-- What is said of programs that are ill-typed: each contradiction once, with its
-- code, its node, its place in the text and the line there; several in one run.

local pl = require "perilune"

local HEAD = '#[version = "0.0.5"]\n'
local LIST = HEAD .. "type List[A] { Cons(A, List[A]), Nil }\n"

-- The diagnostics of a text, each as it is printed.
local function errors(text)
  local mod, diag = pl.parse(text, "t.relay")
  assert.is_nil(mod)
  assert.equal("type", diag.code)
  local all = { diag }
  table.move(diag.notes, 1, #diag.notes, 2, all)
  return all
end

local function messages(text)
  local list = {}
  for i, diag in ipairs(errors(text)) do list[i] = diag.message end
  return list
end

describe("an error of types", function()
  it("that shows when all is read has its place and its line", function()
    local diag = errors(HEAD .. "def @main() {\n  let %id = fn (%x) { %x };\n"
      .. "  (%id(1), %id(()))\n}")[1]
    assert.equal("t.relay:4:15: error: argument 1: expected int32, got (): in %id(Tuple: ()) "
      .. "of @main\n      (%id(1), %id(()))\n                  ^~~~~",
      tostring(diag):match "^[^\n]*\n[^\n]*\n[^\n]*")
    assert.equal(4, diag.span.row)
    assert.equal(15, diag.span.column)
  end)

  it("of arms, of a match that leaves out cases, of a pattern has its place", function()
    local where = {}
    local wrong = { "Cons(%h, _) => %h, Nil => 1", "Cons(%h, _) => %h", "Cons(%h) => %h" }
    for i, arms in ipairs(wrong) do
      local diag = errors(LIST .. "def @main(%l: List[float32]) {\n  match (%l) { "
        .. arms .. " }\n}")[1]
      where[i] = diag.span.row .. ":" .. diag.span.column
    end
    assert.same({ "4:3", "4:3", "4:16" }, where)
  end)

  it("of kinds has its place and its function", function()
    local diag = errors(LIST .. "def @main(%f: fn (List) -> int32) { %f }")[1]
    assert.equal("the type 'List' takes 1 argument, got 0: in %f of @main", diag.message)
    assert.equal(3, diag.span.row)
  end)

  it("of kinds does not hide the next, and is told once of each type", function()
    assert.same({
      "the type 'List' takes 1 argument, got 0: in %x of @main",
      "the type 'List' takes 1 argument, got 2: in %y of @main",
      "the type 'List' takes 1 argument, got 0: in %z of @other",
    }, messages(LIST .. "def @main(%x: List, %w: (List, List), %y: List[int8, int8]) { (%x, %y) }\n"
      .. "def @other(%z: List) { %z }"))
  end)

  it("does not hide the next, of another function either", function()
    assert.same({
      "argument 1: expected int32, got (): in %f(Tuple: ()) of @one",
      "argument 1: expected int32, got bool: in %g(%c: bool) of @one",
      "field 2 of a tuple of 2: in TupleGetItem(%t) of @two",
    }, messages(HEAD .. [[
def @one(%c: bool) {
  let %f = fn (%x) { %x };
  let %g = fn (%y) { if (%c) { %y } else { 1 } };
  (%f(1), %f(()), %g(%c))
}
def @two() { let %p = fn (%t) { %t.2 }; %p((1, 2)) }
def @three() { let %f = fn (%x) { %x }; %f(1) }]]))
  end)

  it("is told once, not again by all that depend on it", function()
    assert.same({ "argument 1: expected int32, got (): in %f(Tuple: ()) of @main" },
      messages(HEAD .. [[
def @main() {
  let %f = fn (%x) { %x };
  let %a = %f(1);
  let %b = %f(());
  let %c = add(%b, 1);
  (%c, multiply(%c, %b), @other(%b))
}
def @other(%x) { add(%x, 1f) }]]))
  end)

  it("is the last after twenty", function()
    local calls = {}
    for i = 1, 50 do calls[i] = "%f(())" end
    assert.equal(20, #messages(HEAD .. "def @main() { let %f = fn (%x) { %x }; (%f(1), "
      .. table.concat(calls, ", ") .. ") }"))
  end)
end)

describe("InferType on a module that was read", function()
  it("says where a node stands", function()
    local mod = assert(pl.parse(LIST .. "def @main(%l: List[int32]) -> int32 {\n"
      .. "  match (%l) { Nil => 1, Cons(_, _) => 2 }\n}", "t.relay"))
    local list = mod.types.List
    list.constructors[3] = { name = "Snoc", inputs = { "List[A]", "A" } }
    local typed, diag = pl.infer_type(mod:with_type(list))
    assert.is_nil(typed)
    assert.matches("does not cover Snoc%(_, _%)", diag.message)
    assert.equal("t.relay", diag.span.source)
    assert.equal(4, diag.span.row)
  end)
end)

describe("patterns that are known throughout", function()
  local COLORS = HEAD .. "type Color { Red, Green }\ntype Size { Small(int32), Large }\n"

  it("are of the data's type", function()
    assert.same({
      "the pattern: expected Color[], got Size[]: in Small(PatternVar: int32) of @main",
      "the pattern: expected Color[], got Size[]: in Large of @main",
    }, messages(COLORS .. [[def @main(%c: Color) -> int32 {
      match (%c) { Small(%x) => %x, Red => 1, Large => 2, Green => 3 } }]]))
    assert.same({ "the pattern: expected int32, got Color[]: in Red of @main" },
      messages(COLORS .. "def @main(%c: int32) -> int32 { match (%c) { Red => 1, _ => 2 } }"))
  end)

  it("are so inside of tuples, in number and type", function()
    local list = errors(COLORS .. [[def @main(%c: (Color, Size)) -> int32 {
      match (%c) { (Large, Red) => 1, (_, _) => 2 } }]])
    assert.equal(1, #list)
    assert.equal("the pattern: expected (Color[], Size[]), got (Size[], Color[]): in "
      .. "PatternTuple(Large: Size[], Red: Color[]) of @main", list[1].message)
    assert.equal(5, list[1].span.row)
    assert.equal(20, list[1].span.column)
    list = errors(COLORS .. "def @main(%c: (Color, Size)) -> int32 {\n"
      .. "  match (%c) { (_, _, _) => 2 } }")
    assert.matches("expected %(Color%[%], Size%[%]%), got %(_, _, _%)", list[1].message)
    assert.equal("5:16", list[1].span.row .. ":" .. list[1].span.column)
  end)

  it("are so of matches that may leave out cases, and in expressions of scripts", function()
    assert.matches("expected int32, got Color", messages(COLORS
      .. "def @main(%c: int32) -> int32 { match? (%c) { Red => 1 } }")[1])
    local mod = assert(pl.parse(COLORS .. "def @main(%c: Color) -> int32 { 1 }"))
    local c = pl.var("c", "int32")
    local match = pl.match(c, { { pl.ir.PatternConstructor "Red", c }, { "_", c } })
    local typed, diag = pl.infer_type(match, mod)
    assert.is_nil(typed)
    assert.matches("the pattern: expected int32, got Color", diag.message)
  end)
end)

describe("a type variable", function()
  local OUTSIDE = "the type variable 'A' is used outside of the function that binds it: in "

  it("does not leave the function that binds it", function()
    local list = errors(HEAD .. "def @main(%x) { let %f = fn [A](%y: A) -> A { %x }; %f(%x) }")
    assert.equal(OUTSIDE .. "%x of @main", list[1].message)
    assert.equal("2:11", list[1].span.row .. ":" .. list[1].span.column)
  end)

  it("is used inside, by closures, in lists, and by functions given to functions", function()
    assert(pl.parse(LIST .. [[def @main[A](%x: A, %l: List[A]) -> fn (A) -> List[A] {
      let %g = fn (%y: A) { Cons(%x, Cons(%y, %l)) };
      let %id = fn [B](%z: B) -> B { let %w = %z; %w };
      fn (%v: A) -> List[A] { %g(%id(%v)) } }]]))
    assert(pl.parse(HEAD .. [[
def @app(%f: fn [A](A) -> A) { (%f(1), %f(())) }
def @deep(%f: fn [A](fn [B](A, B) -> B, A) -> A) { %f(fn [B](%a: int32, %b: B) -> B { %b }, 1) }
def @main() { @app(fn [B](%x: B) -> B { %x }) }]]))
  end)

  it("is another in each function", function()
    local mod = assert(pl.parse(HEAD .. [[
def @f[A](%x: A, %n: int32) { if (%n == 0) { %x } else { @g(%x, %n - 1) } }
def @g[A](%x: A, %n: int32) { @f(%x, %n) }
def @main() { (@f(1, 2), @g((), 3)) }]]))
    assert.equal("fn () -> (int32, ())", tostring(mod.main.type))
    assert.equal("fn [A](A, int32) -> A", tostring(mod.f.type))
    assert.equal("fn [A](A, int32) -> A", tostring(mod.g.type))
    local x = mod.g.params[1].type
    assert.equal(x, mod.g.type.ret_type)
    assert.are_not.equal(x, mod.f.params[1].type)
  end)
end)

describe("a module", function()
  it("refuses constructors that it does not define", function()
    local ir = pl.ir
    local x = pl.var("x", "int32")
    local function refused(body)
      local ok, err = pcall(pl.module, { main = pl.func({ x }, body) })
      assert.is_false(ok)
      return (tostring(err):match "error: (.*)$")
    end
    assert.equal("the module defines no constructor 'Put': in Put of @main",
      refused(ir.Constructor("Put")(x)))
    assert.equal("the module defines no constructor 'Put': in Put(PatternWildcard) of @main",
      refused(pl.match(x, { { ir.PatternConstructor("Put", { ir.PatternWildcard() }), x } },
        { complete = false })))
  end)
end)
