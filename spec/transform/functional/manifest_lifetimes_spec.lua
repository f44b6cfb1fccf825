-- ManifestLifetimes: where the last use of a variable is.

local pl = require "perilune"

local pass = pl.passes.ManifestLifetimes()

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

local function assert_becomes(before, after)
  local out = pass(parse(before))
  assert(pl.verify(out))
  local expected = parse(after)
  assert(pl.equal(out, expected), pl.mismatch(out, expected))
  assert.equal(out, pass(out))
end

describe("ManifestLifetimes", function()
  it("kills a variable after the let that uses it last", function()
    assert_becomes([[
      def @main(%x: float32) -> float32 {
        let %a = exp(%x); let %b = add(%a, %x); let %c = tanh(%b); %c
      }
    ]], [[
      def @main(%x: float32) -> float32 {
        let %a = exp(%x); let %b = add(%a, %x);
        let %u = memory.kill(%x); let %v = memory.kill(%a);
        let %c = tanh(%b); let %w = memory.kill(%b); %c
      }
    ]])
  end)

  it("kills in each branch what no branch needs afterwards", function()
    assert_becomes([[
      def @main(%c: bool, %x: float32, %y: float32) -> float32 {
        let %r = if (%c) { let %a = exp(%x); add(%a, %y) } else { let %b = tanh(%x); %b };
        let %s = add(%r, %y);
        %s
      }
    ]], [[
      def @main(%c: bool, %x: float32, %y: float32) -> float32 {
        let %r = if (%c) { let %a = exp(%x); let %u = memory.kill(%x); add(%a, %y) }
          else { let %b = tanh(%x); let %u = memory.kill(%x); %b };
        let %k = memory.kill(%c);
        let %s = add(%r, %y);
        let %v = memory.kill(%y); let %w = memory.kill(%r);
        %s
      }
    ]])
  end)

  it("replaces other names of a variable", function()
    assert_becomes([[
      def @main(%x: float32) -> float32 {
        let %y = %x; let %a = exp(%y); let %b = add(%a, %x); %b
      }
    ]], [[
      def @main(%x: float32) -> float32 {
        let %a = exp(%x); let %b = add(%a, %x);
        let %u = memory.kill(%x); let %v = memory.kill(%a); %b
      }
    ]])
  end)

  it("takes a variable that an arm binds for the data that it is", function()
    assert_becomes([[
      type Option[A] { Some(A), None, }
      def @main(%o: Option[float32]) -> float32 {
        let %r = match (%o) {
          Some(%v) => { let %a = exp(%v); %a },
          %p => { let %b = match (%p) { Some(%w) => { %w }, None => { 0f }, }; %b },
        };
        %r
      }
    ]], [[
      type Option[A] { Some(A), None, }
      def @main(%o: Option[float32]) -> float32 {
        let %r = match (%o) {
          Some(%v) => { let %a = exp(%v); let %u = memory.kill(%v); %a },
          %p => {
            let %b = match (%o) { Some(%w) => { %w }, None => { 0f }, };
            let %u = memory.kill(%o); %b
          },
        };
        %r
      }
    ]])
  end)

  it("leaves alone what a closure may still use, and functions without lets", function()
    for _, text in ipairs {
      [[def @main(%x: float32) -> float32 {
          let %f = fn () -> float32 { exp(%x) }; add(%f(), %f()) }]],
      [[def @main(%x: float32) -> float32 { add(%x, exp(%x)) }]],
    } do
      local mod = parse(text)
      assert.equal(mod, pass(mod))
    end
  end)

  it("is linear in the number of uses", function()
    local lines = {}
    for i = 1, 20000 do lines[i] = ("let %%a%d = add(%%a%d, %%x);"):format(i, i - 1) end
    local out = pass(parse("def @main(%x: float32, %a0: float32) -> float32 {"
      .. table.concat(lines, "\n") .. "%a20000 }"))
    assert(pl.verify(out))
  end)
end)
