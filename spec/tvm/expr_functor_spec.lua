-- Visitors and mutators of expressions and types as TVM has them: the counterparts
-- of its test_expr_functor.py and test_type_functor.py, by name. Each expression
-- goes through a visitor of every kind and a mutator that changes nothing; what a
-- functor without a function for a kind does in TVM, raising, is here no error: a
-- kind that nobody asked for is passed by.

local pl = require "perilune"
local core = require "perilune.core"

local ir = pl.ir
local f32 = "Tensor[(2), float32]"
local all_kinds = {}
for _, kind in ipairs(ir.kinds()) do all_kinds[kind.name] = true end

-- How often each kind is visited.
local function visited(expr)
  local counts, functions = {}, {}
  for name in pairs(all_kinds) do
    functions[name] = function() counts[name] = (counts[name] or 0) + 1 end
  end
  pl.visitor(functions)(expr)
  return counts
end

-- A mutator that rebuilds every node gives an equal expression, one that answers
-- nothing the very same.
local function check_mutators(expr)
  local idle, rebuilding = {}, {}
  for name in pairs(all_kinds) do
    idle[name] = function() end
    rebuilding[name] = function(_, rebuild) return rebuild() end
  end
  assert.equal(expr, pl.mutator(idle)(expr))
  pl.assert_equal(pl.mutator(rebuilding)(expr), expr)
end

local function check_visit(expr, counts)
  check_mutators(expr)
  assert.same(counts, visited(expr))
end

describe("visiting and mutating", function()
  local x, y = pl.var("x", f32), pl.var("y", f32)

  it("test_constant", function() check_visit(pl.const(1.0), { Constant = 1 }) end)

  it("test_tuple", function() check_visit(pl.tuple { x }, { Tuple = 1, Var = 1 }) end)

  it("test_var", function() check_visit(x, { Var = 1 }) end)

  it("test_global", function() check_visit(pl.global "f", { GlobalVar = 1 }) end)

  it("test_function", function()
    check_visit(pl.func({ x, y }, x + y, f32), { Function = 1, Var = 2, Call = 1 })
  end)

  it("test_call", function() check_visit(x + y, { Call = 1, Var = 2 }) end)

  it("test_let", function()
    -- A let that is no body of a function stands in a block of its own.
    check_visit(pl.let(x, pl.const { 2.0, 2.0 }, x + x),
      { LetBlock = 1, Let = 1, Var = 1, Constant = 1, Call = 1 })
  end)

  it("test_ite", function()
    local cond = pl.var("cond", "bool")
    check_visit(pl.if_(cond, cond, cond), { If = 1, Var = 1 })
  end)

  it("test_get_item", function()
    check_visit(ir.TupleGetItem(pl.tuple { x }, 0), { TupleGetItem = 1, Tuple = 1, Var = 1 })
  end)

  it("test_ref_create", function()
    check_visit(ir.RefCreate(pl.const(1.0)), { RefCreate = 1, Constant = 1 })
  end)

  it("test_ref_read", function()
    check_visit(ir.RefRead(ir.RefCreate(pl.const(1.0))),
      { RefRead = 1, RefCreate = 1, Constant = 1 })
  end)

  it("test_ref_write", function()
    check_visit(ir.RefWrite(ir.RefCreate(pl.const(1.0)), pl.const(2.0)),
      { RefWrite = 1, RefCreate = 1, Constant = 2 })
  end)

  it("test_memo: a hundred doublings are a hundred calls", function()
    local expr = pl.const(1)
    for _ = 1, 100 do expr = expr + expr end
    check_visit(expr, { Call = 100, Constant = 1 })
  end)

  it("test_match: a function over a data type", function()
    local mod = assert(pl.parse [[#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) {
    Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)),
    Nil => Nil,
  }
}]])
    check_visit(mod.map, {
      Function = 1, Match = 1, Clause = 2, PatternConstructor = 2, PatternVar = 2, Var = 4,
      Call = 4, Constructor = 2,
      GlobalVar = 1,
    })
  end)

  it("test_match_completeness: it is kept", function()
    local data = pl.var("data", "(int32, int32)")
    for _, complete in ipairs { true, false } do
      local match = ir.Match(data, { { "_", x } }, { complete = complete })
      assert.equal(complete, match.complete)
      local out = pl.mutator { Var = function(v) return v == x and y or nil end } (match)
      assert.equal(complete, out.complete)
      assert.equal(y, out.clauses[1].rhs)
      local none = ir.Match(data, {}, { complete = complete })
      check_mutators(none)
      assert.equal(complete, pl.rewrite(none, { Var = function() return y end }).complete)
    end
  end)
end)

describe("visiting and mutating types", function()
  -- A visit of the parts, each once, and a mutator that changes nothing.
  local function check_type(type, kinds)
    local seen = {}
    type:visit(function(part) seen[#seen + 1] = part.kind end)
    assert.same(kinds, seen)
    assert.equal(type, type:map(function() end))
    local x = pl.var("x", type)
    local calls = 0
    local functions = {}
    for _, name in ipairs(core.type_kinds()) do
      functions[name] = function() calls = calls + 1 end
    end
    pl.visitor(functions)(x)
    assert.equal(#kinds, calls)
    assert.equal(x, pl.mutator(functions)(x))
  end

  it("test_type_var", function() check_type(ir.TypeVar "a", { "var" }) end)

  it("test_incomplete_type", function()
    local hole = ir.IncompleteType()
    check_type(hole, { hole.kind })
  end)

  it("test_tensor_type", function() check_type(ir.TensorType({}, "float32"), { "tensor" }) end)

  it("test_func_type", function()
    local tensor = ir.TensorType({ 1, 2, 3 }, "float32")
    check_type(ir.FuncType({ tensor }, tensor, { ir.TypeVar "a" }),
      { "tensor", "var", "func" })
  end)

  it("test_tuple_type", function()
    check_type(ir.TupleType { ir.TupleType {} }, { "tuple", "tuple" })
  end)

  it("test_type_relation", function()
    local relation = ir.TypeRelation("Broadcast", { ir.TypeVar "a",
      ir.FuncType({}, ir.TupleType {}), ir.TensorType({ 1, 2, 3 }, "float32") }, 2,
      { name = "attr", padding = { 3, 4 } })
    check_type(relation, { "var", "tuple", "func", "tensor", "relation" })
  end)

  it("test_ref_type", function()
    check_type(ir.RefType(ir.TupleType {}), { "tuple", "ref" })
  end)

  it("test_global_type_var", function()
    local name = ir.GlobalTypeVar "t"
    check_type(name, { name.kind })
  end)

  it("test_type_call", function()
    check_type(ir.TypeCall("t", { ir.TupleType {} }), { "tuple", "call" })
  end)

  it("test_type_data: the types of a definition's constructors", function()
    local mod = assert(pl.parse [[#[version = "0.0.5"]
type Tree[A] { Leaf(A), Node(Tree[A], Tree[A]) }
def @main() { Leaf(1) }]])
    local vars = 0
    local visit = pl.visitor { TypeVar = function() vars = vars + 1 end }
    visit(mod.main)
    assert.equal(1, vars)
    assert.equal(mod, pl.mutator { TypeVar = function() end } (mod))
  end)
end)
