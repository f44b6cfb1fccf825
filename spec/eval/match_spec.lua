-- Values of data types are made and matched when programs are evaluated.

local pl = require "perilune"

local function parse(text) return assert(pl.parse("#[version = \"0.0.5\"]\n" .. text)) end
local function f32(x) return pl.tensor(x, "float32") end
local function i32(x) return pl.tensor(x, "int32") end
local function value(text, ...) return pl.eval(parse(text), ...):to_table() end

local list = [[
type List[A] { Cons(A, List[A]), Nil }
def @iota(%n: int32, %l: List[int32]) -> List[int32] {
  if (equal(%n, 0)) { %l } else { @iota(subtract(%n, 1), Cons(%n, %l)) }
}
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } }
}
def @foldl[A, B](%f: fn (A, B) -> A, %acc: A, %l: List[B]) -> A {
  match (%l) { Cons(%h, %t) => { @foldl(%f, %f(%acc, %h), %t) }, Nil => { %acc } }
}
]]

describe("a Match", function()
  it("takes the first arm that fits, and binds its variables", function()
    local program = [[
      type Shape { Square(float32), Box(float32, float32), Point }
      def @area(%s: Shape[]) -> float32 {
        match (%s) {
          Box(%a, %b) => { multiply(%a, %b) },
          Square(%a) => { multiply(%a, %a) },
          _ => { 0f },
        }
      }
      def @main(%x: float32) -> (float32, float32, float32) {
        (@area(Square(%x)), @area(Box(%x, 2f)), @area(Point))
      }]]
    local square, box, point = pl.eval(parse(program), f32(3))
    assert.same({ 9, 6, 0 }, { square:to_table(), box:to_table(), point:to_table() })
  end)

  it("looks into fields and tuples", function()
    local program = [[
      type Option[A] { Some(A), None }
      def @main(%%x: float32, %%y: float32) -> float32 {
        %%0 = (%s, (%%x, %%y));
        match (%%0) {
          (Some((Some(%%a), _)), (_, %%b)) => { subtract(%%a, %%b) },
          (Some((None, %%a)), _) => { %%a },
          (None, (%%a, %%b)) => { add(%%a, %%b) },
        }
      }]]
    local inner = "Some((Some(multiply(%x, 2f)), %y))"
    assert.equal(1, value(program:format(inner), f32(3), f32(5)))
    assert.equal(5, value(program:format "Some((None, %y))", f32(3), f32(5)))
    assert.equal(8, value(program:format "None", f32(3), f32(5)))
  end)

  it("evaluates nothing of the other arms", function()
    assert.equal(2, value([[
      type Either { Left(float32), Right(float32) }
      def @main(%x: float32) -> float32 {
        let %r = ref(%x);
        let %v = match (Right(%x)) {
          Left(%a) => { let %u = ref_write(%r, 100f); %a },
          Right(%a) => { let %u = ref_write(%r, add(ref_read(%r), 1f)); %a },
        };
        ref_read(%r)
      }]], f32(1)))
  end)

  it("holds functions and references", function()
    assert.equal(24, value([[
      type Counter { Make(ref(float32), fn (float32) -> float32) }
      def @main(%x: float32) -> float32 {
        let %c = Make(ref(%x), fn (%a: float32) -> float32 { multiply(%a, %x) });
        match (%c) { Make(%r, %f) => { let %u = ref_write(%r, %f(ref_read(%r)));
          match (%c) { Make(%s, _) => { add(ref_read(%s), 8f) } } } }
      }]], f32(4)))
  end)

  it("has constructors as functions", function()
    assert.equal(7, value([[
      type Box { Full(float32) }
      def @apply(%f: fn (float32) -> Box[], %x: float32) -> Box[] { %f(%x) }
      def @main(%x: float32) -> float32 { match (@apply(Full, %x)) { Full(%y) => { %y } } }
      ]], f32(7)))
  end)

  it("takes lists of 20,000 apart, and lets them go", function()
    assert.equal(20000 * 20001, value(list .. [[
      def @main(%n: int32) -> int32 {
        %0 = @map(fn (%x: int32) -> int32 { multiply(%x, 2) }, @iota(%n, Nil));
        @foldl(fn (%a: int32, %b: int32) -> int32 { add(%a, %b) }, 0, %0)
      }]], i32(20000)))
  end)

  it("takes patterns that are 20,000 deep", function()
    local function wrap(inner) return ("S("):rep(20000) .. inner .. (")"):rep(20000) end
    assert.equal(5, value(([[
      type N { S(N[]), Z(float32) }
      def @main(%%x: float32) -> float32 { match (%s) { %s => { %%y }, _ => { 0f } } }]])
      :format(wrap "Z(%x)", wrap "Z(%y)"), f32(5)))
  end)

  it("is refused when no arm fits", function()
    local function refusal(...)
      local ok, diag = pcall(pl.eval, ...)
      assert.is_false(ok)
      return diag.message
    end
    assert.equal("no arm of the Match covers the result of 'Nil'", refusal(parse(list .. [[
      def @main(%n: int32) -> int32 {
        match? (@iota(%n, Nil)) { Cons(%h, _) => { %h } }
      }]]), i32(0)))
    assert.equal("no arm of the Match covers the value", refusal(parse(list .. [[
      def @main(%n: int32) -> int32 {
        match? ((@iota(%n, Nil), %n)) { (Cons(%h, _), _) => { %h } }
      }]]), i32(0)))
  end)

  it("gives no value of a data type to the caller", function()
    local mod = parse(list .. "def @main(%n: int32) { @iota(%n, Nil) }")
    local ok, diag = pcall(pl.eval, mod, i32(3))
    assert.is_false(ok)
    assert.equal("a result that is a function, a reference or a value of a data type cannot be "
      .. "evaluated", diag.message)
  end)
end)
