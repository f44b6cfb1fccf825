-- ToCPS and UnCPS: what continuation-passing style looks like, and that the way
-- there and back computes the same.

local pl = require "perilune"

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

local function assert_becomes(pass, before, after)
  local out = pass(parse(before))
  assert(pl.verify(out))
  local expected = parse(after)
  assert(pl.equal(out, expected), pl.mismatch(out, expected))
end

local to_cps, un_cps = pl.passes.ToCPS(), pl.passes.UnCPS()

describe("ToCPS", function()
  it("binds calls of operators and calls the continuation with the result", function()
    assert_becomes(to_cps, [[
      def @main(%x: float32) -> float32 { exp(tanh(%x)) }
    ]], [[
      def @main[answer](%x: float32, %k: fn (float32) -> answer) -> answer {
        let %a = tanh(%x);
        let %b = exp(%a);
        %k(%b)
      }
    ]])
  end)

  it("makes a function of what follows a call of a function", function()
    assert_becomes(to_cps, [[
      def @main(%x: float32) -> float32 {
        let %f = fn (%y: float32) -> float32 { exp(%y) };
        tanh(%f(%x))
      }
    ]], [[
      def @main[answer](%x: float32, %k: fn (float32) -> answer) -> answer {
        let %f = fn (%y: float32, %k1: fn (float32) -> answer) -> answer {
          let %a = exp(%y);
          %k1(%a)
        };
        %f(%x, fn (%arg: float32) -> answer { let %b = tanh(%arg); %k(%b) })
      }
    ]])
  end)

  it("binds what follows an If, because both branches call it", function()
    assert_becomes(to_cps, [[
      def @main(%c: bool, %x: float32) -> float32 {
        add(%x, if (%c) { exp(%x) } else { %x })
      }
    ]], [[
      def @main[answer](%c: bool, %x: float32, %k: fn (float32) -> answer) -> answer {
        let %j = fn (%arg: float32) -> answer { let %s = add(%x, %arg); %k(%s) };
        if (%c) { let %e = exp(%x); %j(%e) } else { %j(%x) }
      }
    ]])
  end)

  it("binds what follows a Match", function()
    assert_becomes(to_cps, [[
      type Option[A] { Some(A), None, }
      def @main(%o: Option[float32]) -> float32 {
        tanh(match (%o) { Some(%v) => { %v }, None => { 0f }, })
      }
    ]], [[
      type Option[A] { Some(A), None, }
      def @main[answer](%o: Option[float32], %k: fn (float32) -> answer) -> answer {
        let %j = fn (%arg: float32) -> answer { let %s = tanh(%arg); %k(%s) };
        match (%o) { Some(%v) => { %j(%v) }, None => { %j(0f) }, }
      }
    ]])
  end)

  it("adds the form of functions that are referred to under another name", function()
    assert_becomes(to_cps, [[
      def @f[T](%x: T) -> T { %x }
      def @main(%x: float32) -> float32 { @f(%x) }
    ]], [[
      def @f[T, answer](%x: T, %k: fn (T) -> answer) -> answer { %k(%x) }
      def @f_cps[T, answer](%x: T, %k: fn (T) -> answer) -> answer { %k(%x) }
      def @main[answer](%x: float32, %k: fn (float32) -> answer) -> answer {
        @f_cps(%x, fn (%arg: float32) -> answer { %k(%arg) })
      }
    ]])
  end)

  it("refuses a shared value, and names the pass that binds it", function()
    local mod = parse [[
      def @main(%x: float32) -> float32 { %0 = exp(%x); add(%0, %0) }
    ]]
    assert.error_matches(function() to_cps(mod) end, "ToCPS.*exp.*ToANormalForm")
    assert(pl.verify(to_cps(pl.passes.ToANormalForm()(mod))))
  end)

  it("refuses primitive functions", function()
    local mod = parse [[
      def @main(%x: float32) -> float32 {
        let %f = fn (%y: float32, Primitive=1) -> float32 { exp(%y) };
        %f(%x)
      }
    ]]
    assert.error_matches(function() to_cps(mod) end, "Primitive")
  end)

  it("does not recurse on deep programs", function()
    local lines = {}
    for i = 1, 20000 do lines[i] = ("let %%a%d = %%f(%%a%d);"):format(i, i - 1) end
    local mod = parse("def @main(%f: fn (float32) -> float32, %a0: float32) -> float32 {"
      .. table.concat(lines, "\n") .. "%a20000 }")
    assert(pl.verify(to_cps(mod)))
  end)
end)

describe("UnCPS", function()
  it("calls the function with the identity as continuation", function()
    assert_becomes(un_cps, [[
      def @main[answer](%x: float32, %k: fn (float32) -> answer) -> answer { %k(%x) }
    ]], [[
      def @main(%x: float32) -> float32 {
        %1 = fn [answer](%y: float32, %k: fn (float32) -> answer) -> answer { %k(%y) };
        %1(%x, fn (%z: float32) -> float32 { %z })
      }
    ]])
  end)

  it("gives back a module that computes the same as before ToCPS", function()
    local mod = parse [[
      def @factorial(%n: int32) -> int32 {
        if (%n <= 0) { 1 } else { %n * @factorial(%n - 1) }
      }
      def @main(%x: int32) -> int32 {
        let %a = (let %b = @factorial(%x); add(%b, 1));
        let %r = ref(%a);
        ref_write(%r, if (%a == 2) { let %q = ref_write(%r, 3); @factorial(%a) } else { 4 });
        add(1, @factorial(ref_read(%r)))
      }
    ]]
    local back = un_cps(to_cps(mod))
    assert(pl.verify(back))
    for n = 0, 4 do
      local x = pl.tensor(n, "int32")
      assert.equal(pl.eval(mod, x):to_table(), pl.eval(back, x):to_table())
    end
  end)

  it("leaves a function alone that takes no continuation", function()
    local mod = parse "def @main(%x: float32) -> float32 { %x }"
    assert.equal(mod, un_cps(mod))
  end)
end)
