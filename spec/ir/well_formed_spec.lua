-- Well-formedness as Relay defines it: each variable is bound once at the most,
-- not after it appeared free, and not used after its scope ended. What scripts
-- build wrongly is told with the node.

local pl = require "perilune"

local ir = pl.ir
local f32 = "Tensor[(2), float32]"

local function good(a)
  local ok, diag = pl.well_formed(a)
  assert.is_true(ok, tostring(diag))
end

local function bad(a, message)
  local ok, diag = pl.well_formed(a)
  assert.is_nil(ok)
  assert.matches(message, diag.message, 1, true)
end

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

describe("a let", function()
  local x, v, w = pl.var("x", f32), pl.var("v", f32), pl.var("w", f32)

  it("binds a variable that nothing else binds", function()
    good(pl.let(x, v, x))
    good(pl.let(x, v, pl.let(w, x, w)))
    bad(pl.let(x, v, pl.let(x, w, x)), "the variable 'x' is bound more than once: in Let(%x")
  end)

  it("is in no other let's value when it binds the same", function()
    bad(pl.let(x, pl.let(x, v, x), x), "the variable 'x' is bound more than once")
    good(pl.let(x, pl.let(w, v, w), x))
  end)

  it("binds no parameter", function()
    bad(pl.func({ x }, pl.let(x, v, x)), "the variable 'x' is bound more than once")
  end)

  it("may name its variable in its own value, a function", function()
    local f, y = pl.var "f", pl.var "y"
    good(pl.let(f, pl.func({ y }, ir.Call(f, { y })), f))
  end)

  it("binds no variable that appeared free", function()
    bad(pl.tuple { x, pl.let(x, v, x) }, "the variable 'x' is used outside of the let")
  end)

  it("does not bind beyond its body", function()
    bad(pl.tuple { pl.let(x, v, x), x }, "the variable 'x' is used outside of the let")
  end)
end)

describe("a tuple", function()
  it("has no two lets of one variable", function()
    local x, v = pl.var("x", f32), pl.var("v", f32)
    local let = pl.let(x, v, x)
    good(let)
    good(pl.tuple { v, v })
    good(pl.tuple { let, let })
    bad(pl.tuple { pl.let(x, v, x), pl.let(x, v, v) },
      "the variable 'x' is bound more than once")
    bad(ir.TupleGetItem(pl.tuple { pl.let(x, v, x), pl.let(x, v, v) }, 0),
      "the variable 'x' is bound more than once")
  end)
end)

describe("a function", function()
  local x, y = pl.var("x", f32), pl.var("y", f32)

  it("has parameters that differ", function()
    good(pl.func({ x, y }, x))
    bad(pl.func({ x, x }, x), "the variable 'x' is bound more than once: in Function(%x")
  end)

  it("shares no parameter with another, but may be used twice", function()
    local f = pl.func({ x }, x)
    good(pl.tuple { f, f })
    bad(pl.tuple { f, pl.func({ x }, x + 1) }, "the variable 'x' is bound more than once")
  end)

  it("keeps its parameters to itself", function()
    bad(pl.tuple { pl.func({ x }, x), x }, "the variable 'x' is used outside of its scope")
    bad(pl.func({ y }, pl.tuple { pl.func({ x }, x), x }), "'x' is used outside of its scope")
  end)
end)

describe("an arm", function()
  local list = "type List[A] { Cons(A, List[A]), Nil }\n"

  it("binds the variables of its pattern, as another arm does its own", function()
    good(parse(list .. [[
def @main(%l: List[int32]) { match (%l) { Cons(%x, %y) => Cons(%x, %y), Nil => Nil } }]]))
    good(parse [[
def @main(%p: (int32, int32)) { match? (%p) { (%a, _) => %a, (_, %b) => %b } }]])
  end)
end)

describe("a module", function()
  it("is well-formed function by function", function()
    local x = pl.var("x", f32)
    local f = pl.func({ x }, x)
    good(pl.module { f = f, g = f })
    bad(pl.module { f = pl.func({}, pl.call(pl.global "h", {})) }, "no function '@h'")
  end)
end)

describe("well-formedness", function()
  it("is asked of modules and expressions only", function()
    assert.has_error(function() pl.well_formed(12) end)
  end)

  it("takes runs of lets and nested functions as long as one likes", function()
    local x = pl.var("x", f32)
    local body = x
    for _ = 1, 20000 do
      local v = pl.var("v", f32)
      body = pl.let(v, x, body)
    end
    for _ = 1, 20000 do body = pl.func({}, body) end
    good(body)
  end)
end)
