-- PartialEvaluate: what it computes, inlines and follows, where it stops, and
-- that the result computes the same.

local pl = require "perilune"

local pe, dce = pl.passes.PartialEvaluate(), pl.passes.DeadCodeElimination()

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

-- What is left of a program, without the lets that nothing uses.
local function assert_becomes(before, after)
  local mod = parse(before)
  local out = pe(mod)
  assert(pl.verify(out))
  out = dce(out)
  local expected = parse(after)
  assert(pl.equal(out, expected), pl.mismatch(out, expected))
  return mod, out
end

describe("PartialEvaluate", function()
  it("binds each value, used or not, in the order of evaluation", function()
    local out = pe(parse "def @main(%x: float32) -> float32 { add(1f, exp(%x)) }")
    local expected = parse [[
      def @main(%x: float32) -> float32 {
        let %a = 1f; let %b = exp(%x); let %c = add(%a, %b); %c
      }
    ]]
    assert(pl.equal(out, expected), pl.mismatch(out, expected))
  end)

  it("inlines known functions and computes operators on constants", function()
    assert_becomes([[
      def @twice(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%f(%x)) }
      def @main(%x: float32) -> float32 {
        @twice(fn (%y: float32) -> float32 { multiply(%y, add(1f, 2f)) }, %x)
      }
    ]], [[
      def @twice(%f: fn (float32) -> float32, %x: float32) -> float32 {
        let %a = %f(%x); let %b = %f(%a); %b
      }
      def @main(%x: float32) -> float32 {
        let %a = 3f; let %b = multiply(%x, %a); let %c = 3f; let %d = multiply(%b, %c); %d
      }
    ]])
  end)

  it("unrolls a recursion over a known integer", function()
    assert_becomes([[
      def @power(%n: int32, %x: float32) -> float32 {
        if (%n == 0) { 1f } else { multiply(%x, @power(%n - 1, %x)) }
      }
      def @main(%x: float32) -> float32 { @power(2, %x) }
    ]], [[
      def @power(%n: int32, %x: float32) -> float32 {
        let %z = 0;
        let %c = equal(%n, %z);
        let %r = if (%c) { let %o = 1f; %o } else {
          let %o = 1; let %m = subtract(%n, %o); let %p = @power(%m, %x);
          let %q = multiply(%x, %p); %q
        };
        %r
      }
      def @main(%x: float32) -> float32 {
        let %o = 1f; let %a = multiply(%x, %o); let %b = multiply(%x, %a); %b
      }
    ]])
  end)

  it("stops at a recursion that makes no progress", function()
    assert_becomes([[
      def @loop(%x: int32) -> int32 { @loop(%x) }
      def @main() -> int32 { @loop(1) }
    ]], [[
      def @loop(%x: int32) -> int32 { let %a = @loop(%x); %a }
      def @main() -> int32 { let %o = 1; let %a = @loop(%o); %a }
    ]])
  end)

  it("evaluates data types, also of generic functions", function()
    assert_becomes([[
      type List[A] { Cons(A, List[A]), Nil, }
      def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
        match (%l) { Cons(%x, %r) => { Cons(%f(%x), @map(%f, %r)) }, Nil => { Nil }, }
      }
      def @main(%x: float32) -> List[float32] {
        @map(fn (%y: float32) -> float32 { add(%y, %x) }, Cons(1f, Nil))
      }
    ]], [[
      type List[A] { Cons(A, List[A]), Nil, }
      def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
        let %m = match (%l) {
          Cons(%x, %r) => {
            let %a = %f(%x); let %b = @map(%f, %r); let %c = Cons(%a, %b); %c
          },
          Nil => { let %n: List[B] = Nil; %n },
        };
        %m
      }
      def @main(%x: float32) -> List[float32] {
        let %o = 1f; let %a = add(%o, %x); let %n: List[float32] = Nil;
        let %c = Cons(%a, %n); %c
      }
    ]])
  end)

  it("takes the branch of a known condition, and the arm of a known value", function()
    assert_becomes([[
      type Option[A] { Some(A), None, }
      def @main(%x: float32) -> float32 {
        let %o = if (less(1f, 2f)) { Some(exp(%x)) } else { None };
        match (%o) { None => { 0f }, Some(%v) => { tanh(%v) }, }
      }
    ]], [[
      type Option[A] { Some(A), None, }
      def @main(%x: float32) -> float32 { let %a = exp(%x); let %b = tanh(%a); %b }
    ]])
  end)

  it("follows references until something unknown may have written them", function()
    local mod, out = assert_becomes([[
      def @main(%c: bool) -> int32 {
        let %r = ref(0);
        let %u = fn () { let %p = ref_write(%r, 1); () };
        let %a = %u();
        let %s = ref_read(%r);
        let %z = if (%c) { %u() } else { let %q = ref_write(%r, 2); () };
        add(%s, ref_read(%r))
      }
    ]], [[
      def @main(%c: bool) -> int32 {
        let %o = 0;
        let %r = ref(%o);
        let %i = 1;
        let %w = ref_write(%r, %i);
        let %z = if (%c) { let %j = 1; let %v = ref_write(%r, %j); let %e = (); %e } else {
          let %j = 2; let %v = ref_write(%r, %j); let %e = (); %e };
        let %t = ref_read(%r);
        let %s = add(%i, %t);
        %s
      }
    ]])
    assert(pl.check(mod, out))
  end)

  it("forgets references at a call of an unknown function", function()
    assert_becomes([[
      def @main(%f: fn (ref(int32)) -> int32) -> int32 {
        let %r = ref(1);
        let %a = %f(%r);
        ref_read(%r)
      }
    ]], [[
      def @main(%f: fn (ref(int32)) -> int32) -> int32 {
        let %o = 1;
        let %r = ref(%o);
        let %a = %f(%r);
        let %b = ref_read(%r);
        %b
      }
    ]])
  end)

  it("forgets references at a call that it does not inline", function()
    local mod = parse [[
      def @count(%r: ref(int32), %n: int32) -> int32 {
        if (%n <= 0) { ref_read(%r) } else {
          ref_write(%r, ref_read(%r) + 1);
          @count(%r, %n - 1)
        }
      }
      def @main(%n: int32) -> int32 {
        let %r = ref(0);
        let %a = @count(%r, %n);
        add(%a, ref_read(%r))
      }
    ]]
    local out = pe(mod)
    for n = 0, 3 do
      local x = pl.tensor(n, "int32")
      assert.equal(2 * n, pl.eval(out, x):to_table())
    end
  end)

  it("leaves primitive functions whole", function()
    local mod = parse [[
      def @main(%x: float32) -> float32 {
        let %f = fn (%y: float32, Primitive=1) -> float32 { exp(%y) };
        %f(%x)
      }
    ]]
    local out = pe(mod)
    assert(pl.verify(out))
    assert(pl.check(mod, out))
  end)

  it("keeps a function that makes itself again while it is evaluated", function()
    local mod = parse [[
      def @main(%x: float32) -> float32 {
        let %f = fn (%n: int32, %y: float32) -> float32 {
          if (%n == 0) { %y } else {
            let %g = fn (%z: float32) -> float32 { %f(%n - 1, add(%z, 1f)) };
            %g(%y)
          }
        };
        %f(3, %x)
      }
    ]]
    assert(pl.check(mod, pe(mod)))
  end)

  it("refuses a shared value", function()
    local mod = parse "def @main(%x: float32) -> float32 { %0 = exp(%x); add(%0, %0) }"
    assert.error_matches(function() pe(mod) end, "PartialEvaluate.*exp.*ToANormalForm")
  end)

  it("ends with a diagnostic when a program takes too many steps", function()
    local mod = parse [[
      def @f(%n: int32) -> int32 { if (%n == 0) { 1 } else { @f(%n - 1) + @f(%n - 1) } }
      def @main() -> int32 { @f(40) }
    ]]
    local bounded = pl.passes.PartialEvaluate { max_steps = 1000 }
    assert.error_matches(function() bounded(mod) end, "1000 steps.*max_steps")
  end)

  it("does not recurse on deep programs", function()
    local lines = {}
    for i = 1, 20000 do
      lines[i] = ("let %%a%d = add(%%a%d, 1f);"):format(i, i - 1)
    end
    local mod = parse("def @main(%a0: float32) -> float32 {"
      .. table.concat(lines, "\n") .. "%a20000 }")
    assert(pl.verify(pe(mod)))
    assert(pl.verify(pe(pl.passes.ToCPS()(mod))))
  end)

  it("undoes continuation-passing style", function()
    local mod = parse [[
      def @main(%x: float32) -> float32 {
        let %f = fn (%y: float32) -> float32 { exp(%y) };
        tanh(%f(%x))
      }
    ]]
    local back = dce(pe(pl.passes.UnCPS()(pl.passes.ToCPS()(mod))))
    local expected = parse [[
      def @main(%x: float32) -> float32 { let %a = exp(%x); let %b = tanh(%a); %b }
    ]]
    assert(pl.equal(back, expected), pl.mismatch(back, expected))
  end)
end)
