-- What TVM's tests of data types (tests/python/relay/test_adt.py) pin, each named
-- after the test: what the usual functions on lists, trees and numbers are typed
-- when nothing but their parameters' types is written down, and what they give.

local pl = require "perilune"
local ir = pl.ir

local PRELUDE = [==[#[version = "0.0.5"]
type Nat { Z, S(Nat) }
type Option[A] { Some(A), None }
type List[A] { Cons(A, List[A]), Nil }
type Tree[A] { Rose(A, List[Tree[A]]) }

def @count(%n: Nat) { match (%n) { Z => 0, S(%m) => 1 + @count(%m) } }
def @plus(%a: Nat, %b: Nat) { match (%a) { Z => %b, S(%m) => S(@plus(%m, %b)) } }
def @double(%n: Nat) { match (%n) { Z => Z, S(%m) => S(S(@double(%m))) } }
def @length[A](%l: List[A]) { match (%l) { Nil => 0, Cons(_, %t) => 1 + @length(%t) } }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Nil => Nil, Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)) }
}
def @foldl[A, B](%f: fn (A, B) -> A, %z: A, %l: List[B]) -> A {
  match (%l) { Nil => %z, Cons(%h, %t) => @foldl(%f, %f(%z, %h), %t) }
}
def @foldr[A, B](%f: fn (A, B) -> B, %z: B, %l: List[A]) -> B {
  match (%l) { Nil => %z, Cons(%h, %t) => %f(%h, @foldr(%f, %z, %t)) }
}
def @sum(%l: List[int32]) { @foldl(fn (%a, %b) { %a + %b }, 0, %l) }
def @tmap[A, B](%f: fn (A) -> B, %t: Tree[A]) -> Tree[B] {
  match (%t) { Rose(%v, %l) => Rose(%f(%v), @map(fn (%c) { @tmap(%f, %c) }, %l)) }
}
def @size[A](%t: Tree[A]) -> int32 {
  match (%t) { Rose(_, %l) => @foldl(fn (%n, %c) { %n + @size(%c) }, 1, %l) }
}
def @digits(%l: List[int32]) { @foldl(fn (%a, %b) { %a * 10 + %b }, 0, %l) }
]==]

-- The type of a function; what `expr`, an int32, gives.
local mod = assert(pl.parse(PRELUDE))
local function type_of(name) return tostring(mod.functions[name].type) end
local function value_of(expr, more)
  local whole = assert(pl.parse(PRELUDE .. (more or "") .. "def @main() { " .. expr .. " }"))
  return pl.eval(whole):to_table()
end
local function infers(expr)
  local text = PRELUDE .. "def @main() { " .. expr .. " }"
  return tostring(assert(pl.parse(text)).main.type):match "%-> (.*)$"
end

describe("test_adt", function()
  it("test_nat_constructor, test_nat_value: constructors are functions", function()
    assert.equal("Nat[]", infers "Z")
    assert.equal("Nat[]", infers "S(Z)")
    assert.equal("fn (Nat[]) -> Nat[]",
      tostring(assert(pl.infer_type(ir.Constructor "S", mod)).type))
    assert.equal(3, value_of "@count(S(S(S(Z))))")
  end)

  it("test_double, test_add: recursion whose result nobody wrote down", function()
    assert.equal("fn (Nat[]) -> Nat[]", type_of "double")
    assert.equal("fn (Nat[], Nat[]) -> Nat[]", type_of "plus")
    assert.equal(4, value_of "@count(@double(S(S(Z))))")
    assert.equal(3, value_of "@count(@plus(S(Z), S(S(Z))))")
  end)

  it("test_list_constructor: an element tells the list", function()
    assert.equal("fn [A]() -> List[A]",
      tostring(assert(pl.infer_type(ir.Constructor "Nil", mod)).type))
    assert.equal("List[Nat[]]", infers "Cons(Z, Nil)")
    assert.equal("List[List[int32]]", infers "Cons(Nil, Cons(Cons(1, Nil), Nil))")
  end)

  it("test_length, test_hd_tl: of any element", function()
    assert.equal("fn [A](List[A]) -> int32", type_of "length")
    assert.equal(2, value_of "@length(Cons(True, Cons(False, Nil)))")
  end)

  it("test_map, test_foldl, test_foldr, test_sum: functions are given functions", function()
    assert.equal("fn [A, B](fn (A) -> B, List[A]) -> List[B]", type_of "map")
    assert.equal("fn [A, B](fn (A, B) -> A, A, List[B]) -> A", type_of "foldl")
    assert.equal("fn [A, B](fn (A, B) -> B, B, List[A]) -> B", type_of "foldr")
    assert.equal("fn (List[int32]) -> int32", type_of "sum")
    assert.equal("List[bool]", infers "@map(fn (%x) { %x < 2 }, Cons(1, Cons(2, Nil)))")
    assert.equal(23, value_of "@digits(@map(fn (%x) { %x + 1 }, Cons(1, Cons(2, Nil))))")
    assert.equal(321, value_of
      "@digits(@foldl(fn (%l, %x) { Cons(%x, %l) }, Nil, Cons(1, Cons(2, Cons(3, Nil)))))")
    assert.equal(123, value_of
      "@digits(@foldr(fn (%x, %l) { Cons(%x, %l) }, Nil, Cons(1, Cons(2, Cons(3, Nil)))))")
    assert.equal(6, value_of "@sum(Cons(1, Cons(2, Cons(3, Nil))))")
  end)

  it("test_option_matching: what is there is kept", function()
    assert.equal(31, value_of [[@digits(@foldr(fn (%o, %l) {
      match (%o) { Some(%v) => Cons(%v, %l), None => %l } }, Nil,
      Cons(Some(3), Cons(None, Cons(Some(1), Nil)))))]])
  end)

  it("test_tmap, test_size: trees, whose children are a list of trees", function()
    assert.equal("fn [A, B](fn (A) -> B, Tree[A]) -> Tree[B]", type_of "tmap")
    assert.equal("fn [A](Tree[A]) -> int32", type_of "size")
    local leaf = "Rose(1, Nil)"
    assert.equal(3, value_of(("@size(Rose(0, Cons(%s, Cons(%s, Nil))))"):format(leaf, leaf)))
    assert.equal(2, value_of
      "match (@tmap(fn (%x) { %x + 1 }, Rose(1, Nil))) { Rose(%v, _) => %v }")
  end)

  it("test_wildcard_match_solo, test_wildcard_match_order: the first arm that fits", function()
    assert.equal(7, value_of "match (Cons(1, Nil)) { _ => 7 }")
    assert.equal(7, value_of "match (Cons(1, Nil)) { _ => 7, Cons(%y, _) => %y, Nil => 1 }")
  end)

  it("test_nested_matches, test_nested_pattern_match: matches and patterns inside", function()
    local flatten = [==[def @flatten[A](%l: List[List[A]]) -> List[A] {
      match (%l) { Nil => Nil, Cons(%y, %w) => {
        match (%y) { Nil => @flatten(%w), Cons(%h, %t) => Cons(%h, @flatten(Cons(%t, %w))) } } } }
    ]==]
    assert.equal(123, value_of("@digits(@flatten(Cons(Cons(1, Cons(2, Nil)), Cons(Nil, "
      .. "Cons(Cons(3, Nil), Nil)))))", flatten))
    assert.equal(2, value_of
      "match (Cons(1, Cons(2, Nil))) { Cons(_, Cons(%h, _)) => %h, _ => 0 }")
  end)

  it("test_match_full_var: a variable takes all", function()
    assert.equal("List[_]", infers "let %f = fn (%x) { match (%x) { %v => %v } }; %f(Nil)")
    assert.equal(2, value_of
      "let %f = fn (%x) { match (%x) { %v => %v } }; @length(%f(Cons(Z, Cons(Z, Nil))))")
  end)
end)
