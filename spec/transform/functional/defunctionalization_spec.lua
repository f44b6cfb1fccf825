-- Defunctionalization: functions that are values become data.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local defunctionalize = pl.passes.Defunctionalization()

local list = [[
type List[A] {
  Cons(A, List[A]),
  Nil,
}
]]

-- Whether a type has a function in it.
local function holds_function(type)
  if type.kind == "Function" then return true end
  for _, part in ipairs(type.parts or {}) do if holds_function(part) then return true end end
  return tostring(type):find("fn %(", 1) ~= nil
end

-- Functions that a walk from @main reaches.
local function reached(mod)
  local seen, queue = { main = true }, { "main" }
  for _, name in ipairs(queue) do
    for node in mod.functions[name]:nodes() do
      if node.kind == "GlobalVar" and not seen[node.name] then
        seen[node.name] = true
        queue[#queue + 1] = node.name
      end
    end
  end
  return queue
end

local callable = { GlobalVar = true, Constructor = true, Op = true }

-- Nothing that @main reaches is a function other than what is called by name.
local function assert_first_order(mod)
  for _, name in ipairs(reached(mod)) do
    local fn = mod.functions[name]
    for node in fn:nodes() do
      if node ~= fn and not callable[node.kind] and node.type then
        assert.is_false(holds_function(node.type), tostring(node))
      end
    end
  end
end

-- Typed, first-order, final, and computing the same.
local function check(text)
  local mod = assert(pl.infer_type(golden.module(text)))
  local out = golden.apply(defunctionalize, mod)
  assert(pl.well_formed(out))
  assert_first_order(out)
  assert.equal(out, pl.infer_type(out))
  assert.is_nil(pl.mismatch(out, assert(pl.parse(out:text())), { contents = true }))
  assert(pl.check(mod, out))
  return out
end

local function refuses(text, why)
  local mod = assert(pl.infer_type(golden.module(text)))
  assert.error_matches(function() defunctionalize(mod) end, why)
end

describe("Defunctionalization", function()
  it("makes data of a function literal and what it captures", function()
    golden.becomes(defunctionalize, [[
def @twice(%f: fn (int32) -> int32, %x: int32) -> int32 { %f(%f(%x)) }
def @main(%n: int32) -> int32 { @twice(fn (%y: int32) -> int32 { add(%y, %n) }, 1) }
]], [[
type DefuncFuncType { Defunc(int32) }
def @applyFuncType(%x: DefuncFuncType[], %y: int32) -> int32 {
  match (%x) { Defunc(%c: int32) => { add(%y, %c) } }
}
def @twice(%f: fn (int32) -> int32, %x: int32) -> int32 { %f(%f(%x)) }
def @twiceFuncType(%f: DefuncFuncType[], %x: int32) -> int32 {
  @applyFuncType(%f, @applyFuncType(%f, %x))
}
def @main(%n: int32) -> int32 { @twiceFuncType(Defunc(%n), 1) }
]])
  end)

  it("specialises polymorphic functions, once for each type", function()
    local out = check(list .. [[
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%x, %r) => { Cons(%f(%x), @map(%f, %r)) }, Nil => { Nil } }
}
def @sum(%l: List[int32]) -> int32 {
  match (%l) { Cons(%x, %r) => { add(%x, @sum(%r)) }, Nil => { 0 } }
}
def @neg(%x: int32) -> int32 { negative(%x) }
def @main(%n: int32) -> int32 {
  %0 = @map(@neg, @map(fn (%y: int32) -> int32 { add(%y, %n) }, Cons(3, Cons(%n, Nil))));
  %1 = @map(fn (%x: int32) -> (int32, int32) { (%x, %x) }, %0);
  @sum(@map(fn (%p: (int32, int32)) -> int32 { multiply(%p.0, %p.1) }, %1))
}]])
    local made = {}
    for _, name in ipairs(out.names) do
      if name:find "^mapFuncType" then made[#made + 1] = name end
    end
    assert.same(3, #made)
    assert.truthy(out.functions.sum)
  end)

  it("gives names and polymorphic literals the types of their uses", function()
    check [[
def @id[A](%x: A) -> A { %x }
def @pair[A, B](%f: fn (A) -> A, %g: fn (B) -> B, %a: A, %b: B) -> (A, B) { (%f(%a), %g(%b)) }
def @main(%x: int32, %y: float32) -> (int32, float32) {
  %0 = @pair(@id, @id, %x, %y);
  @pair(fn[A](%z: A) -> A { %z }, fn[A](%z: A) -> A { %z }, %0.0, %0.1)
}]]
  end)

  it("puts bodies of literals in the place of their calls", function()
    golden.becomes(defunctionalize, [[
def @main(%x: int32) -> int32 {
  %0 = fn (%y: int32) -> int32 { add(%y, %x) };
  %1 = fn (%z: int32) -> int32 { %0(%0(%z)) };
  %1(%x)
}]], [[
def @main(%x: int32) -> int32 { add(add(%x, %x), %x) }]])
  end)

  it("takes functions that lets bind, also recursive ones", function()
    check [[
def @main(%n: int32) -> int32 {
  let %loop = fn (%i: int32, %acc: int32) -> int32 {
    if (greater(%i, 0)) { %loop(subtract(%i, 1), add(%acc, %n)) } else { %acc }
  };
  %loop(5, 0)
}]]
  end)

  it("takes functions that are returned, and held in tuples, references and data", function()
    check(list .. [[
def @compose[A](%l: List[fn (A) -> A]) -> fn (A) -> A {
  match (%l) {
    Cons(%f, %r) => { let %g = @compose(%r); fn (%x: A) -> A { %f(%g(%x)) } },
    Nil => { fn (%x: A) -> A { %x } }
  }
}
def @neg(%x: int32) -> int32 { negative(%x) }
def @main(%n: int32) -> int32 {
  let %r = ref(@neg);
  let %f = ref_read(%r);
  let %u = ref_write(%r, fn (%x: int32) -> int32 { multiply(%x, %n) });
  let %t = (ref_read(%r), %f);
  %0 = if (greater(%n, 2)) { %t.0 } else { %t.1 };
  @compose(Cons(%f, Cons(%t.0, Cons(%0, Nil))))(7)
}]])
  end)

  it("makes data types that hold each other", function()
    check(list .. [[
def @sum(%f: fn (int32) -> int32, %l: List[int32]) -> int32 {
  match (%l) {
    Cons(%x, %r) => { @sum(fn (%n: int32) -> int32 { add(%x, %f(%n)) }, %r) },
    Nil => { %f(0) }
  }
}
def @id[A](%x: A) -> A { %x }
def @main(%x: int32) -> int32 { @sum(@id, Cons(%x, Cons(3, Nil))) }]])
  end)

  it("keeps programs without functions", function()
    golden.stays(defunctionalize, [[
def @f(%x: int32) -> int32 { negative(%x) }
def @main(%x: int32) -> int32 { let %y = @f(%x); add(%y, %y) }]])
  end)

  it("makes names that the module does not have", function()
    local out = check [[
type DefuncFuncType { Defunc }
def @applyFuncType(%x: int32) -> int32 { %x }
def @twice(%f: fn (int32) -> int32, %x: int32) -> int32 { %f(%f(%x)) }
def @twiceFuncType(%x: int32) -> int32 { %x }
def @main(%n: int32) -> int32 { @twice(@applyFuncType, %n) }]]
    assert.truthy(out.functions.applyFuncType1 and out.functions.twiceFuncType1)
  end)

  it("refuses what has no first-order form", function()
    refuses("def @main(%f: fn (int32) -> int32) -> int32 { %f(1) }", "takes a function as argument")
    refuses("def @main(%x: int32) { fn (%y: int32) -> int32 { add(%x, %y) } }",
      "@main returns a function")
    refuses("def @main[A](%x: A) -> A { %x }", "@main has type parameters")
    refuses("def @f(%x: int32) -> int32 { %x }", "no function 'main'")
    refuses([[
type Box { Box(fn (int32) -> int32) }
def @main(%n: int32) -> int32 {
  match (Box(fn (%x: int32) -> int32 { %x })) { Box(%f) => { %f(%n) } }
}]], "its data type is defined with functions in it")
    refuses([[
def @main(%n: int32) -> int32 { let %id = fn[A](%x: A) -> A { %x }; %id(%n) }]],
      "a polymorphic function is bound to a variable")
  end)

  it("ends when a function calls itself with ever larger types", function()
    refuses([[
def @f[A](%g: fn (A) -> A, %x: A, %n: int32) -> int32 {
  if (greater(%n, 0)) {
    @f(fn (%y: (A, A)) -> (A, A) { %y }, (%x, %x), subtract(%n, 1))
  } else { %n }
}
def @main(%n: int32) -> int32 { @f(fn (%x: int32) -> int32 { %x }, 1, %n) }]],
      "more than 4096 functions")
  end)

  it("is a function of a function and a module too", function()
    local mod = golden.module [[
def @twice(%f: fn (int32) -> int32, %x: int32) -> int32 { %f(%f(%x)) }
def @neg(%x: int32) -> int32 { negative(%x) }
def @start(%n: int32) -> int32 { @twice(@neg, %n) }]]
    local fn, out = pl.defunctionalization(mod.functions.start, mod)
    assert.equal(fn, out.functions.main)
    assert.truthy(out.functions.twiceFuncType)
    assert.equal(5, pl.eval(out, pl.tensor(5, "int32")):to_table())
    assert.error_matches(function() pl.defunctionalization(1) end, "a function expected, got")
    assert.error_matches(function() pl.defunctionalization(fn, 2) end, "a module expected, got")
  end)
end)
