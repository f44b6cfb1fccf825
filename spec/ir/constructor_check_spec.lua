-- Constructors that scripts make know nothing of their definition: the module
-- that is given them, its verifier and the passes hold them against it.

local pl = require "perilune"
local ir = pl.ir

local lists = pl.parse '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\n'
local x, l = pl.var("x", "int32"), pl.var("l", "List[int32]")
local cons, none = ir.Constructor "Cons", ir.Constructor "Nil"

local function main_of(body) return { main = pl.func({ x, l }, body) } end

local function match_of(pattern) return pl.match(l, { { pattern, x }, { "_", x } }) end

local function refused(message, work, ...)
  local ok, err = pcall(function(...) return assert(work(...)) end, ...)
  assert.is_false(ok)
  assert.equal(message, tostring(err):match "error: ([^\n]*)")
end

local any = ir.PatternWildcard()

-- What is wrong, of values and of patterns.
local wrong = {
  ["the module defines no constructor 'Foo': in Foo of @main"] = ir.Constructor "Foo"(x),
  ["the module defines no constructor 'Fop': in Fop of @main"] =
    match_of(ir.PatternConstructor "Fop"),
  ["the function takes 2 arguments, got 1: in Cons(%x: int32) of @main"] = cons(x),
  ["the function takes 0 arguments, got 1: in Nil(%x: int32) of @main"] = none(x),
  ["argument 2: expected List[int32], got int32: in Cons(%x: int32, %x: int32) of @main"] =
    cons(x, x),
  ["the constructor 'Cons' has 2 fields, the pattern 1: in Cons(PatternWildcard) of @main"] =
    match_of(ir.PatternConstructor("Cons", { any })),
  ["the constructor 'Nil' has 0 fields, the pattern 1: in Nil(PatternWildcard) of @main"] =
    match_of(ir.PatternConstructor("Nil", { any })),
}

describe("a constructor", function()
  it("is held against its definition when a function is given to a module", function()
    for message, body in pairs(wrong) do
      refused(message, lists.with, lists, main_of(body))
    end
    for _, body in ipairs { cons(x, l), cons(x, none()), none,
      match_of(ir.PatternConstructor("Cons", { any, any })) } do
      local mod = lists:with(main_of(body))
      assert.is_true(pl.verify(mod))
      assert.is_true(pl.verify(pl.infer_type(mod)))
    end
  end)

  it("is held against another definition by the verifier and before a pass", function()
    local mod = lists:with(main_of(cons(x, none())))
    local other = mod:with_type { name = "List", vars = { "A" }, constructors = {
      { name = "Cons", inputs = { "A" } }, { name = "Nil", inputs = {} } } }
    local message = "the function takes 1 argument, got 2: in Cons(%x: int32, a call) of @main"
    refused(message, pl.verify, other)
    local typed, diag = pl.infer_type(other)
    assert.is_nil(typed)
    assert.equal(message, diag.message)
    local bare = mod:with_type { name = "List", constructors = {} }
    refused("the module defines no constructor 'Nil': in Nil of @main", pl.verify, bare)
  end)

  it("is refused in what a pass makes", function()
    pl.passes.Shorten = function(fn) return pl.func(fn.params, cons(fn.params[1])) end
    local ok, err = pcall(function()
      return assert(pl.passes.Shorten()(lists:with(main_of(cons(x, none())))))
    end)
    pl.passes.Shorten = nil
    assert.is_false(ok)
    assert.matches("the function takes 2 arguments, got 1: in Cons(", tostring(err), 1, true)
  end)
end)
