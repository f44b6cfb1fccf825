-- What TVM's tests of kinds (tests/python/relay/test_pass_check_kind.py) pin, each
-- named after the test.

local pl = require "perilune"
local ir = pl.ir

local tensor = pl.type "Tensor[(1, 2, 3), float32]"
local thunk = ir.FuncType({}, tensor)

local function var(kind) return ir.TypeVar("tp", kind) end

local function kind_of(type, mod) return assert(pl.check_kind(type, mod)) end

local function refused(type, mod)
  local kind, diag = pl.check_kind(type, mod)
  assert.is_nil(kind)
  assert.equal("type", diag.code)
  return diag.message
end

local function defining(vars)
  return pl.module():with_type { name = "gtv", vars = vars, constructors = {} }
end

describe("test_pass_check_kind", function()
  it("test_typevar_kind: a variable's own", function()
    for _, kind in ipairs { "Type", "ShapeVar", "Constraint" } do
      assert.equal(kind, kind_of(var(kind)))
    end
  end)

  it("test_tuple_kind: of a variable, a function, a tensor", function()
    assert.equal("Type", kind_of(ir.TupleType { var "Type", thunk, tensor }))
  end)

  it("test_func_kind: with type parameters and a constraint", function()
    local a, b = var "Type", var "Type"
    local relation = ir.TypeRelation("Identity", { tensor, a }, 1)
    assert.equal("Type", kind_of(ir.FuncType({ a, tensor }, ir.TupleType { b, tensor }, { a, b },
      { relation })))
  end)

  it("test_ref_kind: to a tensor, a function, a tuple of references", function()
    local first, second = ir.RefType(tensor), ir.RefType(thunk)
    assert.equal("Type", kind_of(first))
    assert.equal("Type", kind_of(second))
    assert.equal("Type", kind_of(ir.RefType(ir.TupleType { first, second })))
  end)

  it("test_relation_kind: a relation is a constraint", function()
    local relation = ir.TypeRelation("Identity", { thunk, tensor, var "Type" }, 2)
    assert.equal("Constraint", kind_of(relation))
  end)

  it("test_global_typevar_kind: a name's own", function()
    assert.equal("AdtHandle", kind_of(ir.GlobalTypeVar("gtv1", "AdtHandle")))
    assert.equal("AdtHandle", kind_of(ir.GlobalTypeVar "gtv1"))
    assert.equal("Type", kind_of(ir.GlobalTypeVar("gtv2", "Type")))
    assert.are_not.equal(ir.GlobalTypeVar "gtv", ir.GlobalTypeVar("gtv", "Type"))
    assert.equal("Type", ir.GlobalTypeVar("gtv2", "Type").var_kind)
  end)

  it("test_typecall_kind: a data type with its arguments", function()
    assert.equal("Type", kind_of(ir.TypeCall("gtv", {}), defining {}))
    assert.equal("Type", kind_of(ir.TypeCall("gtv", { ir.TupleType {} }), defining { "tv" }))
  end)

  it("test_invalid_tuple_kind: a field of another kind", function()
    assert.equal("a tuple's field must be of kind Type, but tp is of kind ShapeVar, in "
      .. "(tp, tp, tp)", refused(ir.TupleType { var "ShapeVar", var "BaseType", var "Constraint" }))
  end)

  it("test_invalid_func_kind, test_func_with_invalid_arg_types, _ret_type: likewise", function()
    local a, b, c = var "ShapeVar", var "BaseType", var "Constraint"
    refused(ir.FuncType({ a, b }, c, { a, b, c }))
    local wanted = "a function's parameter or result must be of kind Type, but tp is of kind "
      .. "ShapeVar, in fn [tp, tp](tp) -> tp"
    local good = var "Type"
    assert.equal(wanted, refused(ir.FuncType({ good }, a, { good, a })))
    assert.equal(wanted, refused(ir.FuncType({ a }, good, { a, good })))
  end)

  it("test_invalid_ref_kind: what a reference refers to", function()
    assert.equal("a reference's content must be of kind Type, but tp is of kind ShapeVar, in "
      .. "ref(tp)", refused(ir.RefType(var "ShapeVar")))
  end)

  it("test_invalid_relation_kind: what a relation relates", function()
    local args = { var "ShapeVar", var "BaseType", var "Constraint" }
    assert.matches("a relation's argument must be of kind Type, but tp is of kind ShapeVar",
      refused(ir.TypeRelation("Broadcast", args, 2)))
  end)

  it("test_typecall_invalid_callee: what takes arguments is an AdtHandle", function()
    assert.error_matches(function() ir.TypeCall(ir.GlobalTypeVar("v1", "Type"), {}) end,
      "a type that takes arguments must be of kind AdtHandle, but v1 is of kind Type")
    assert.error_matches(function() ir.TypeCall(var "Type", {}) end, "but tp is of kind Type")
    assert.error_matches(function() ir.TypeCall(tensor, {}) end, "float32%] is of kind Type")
  end)

  it("test_typecall_invalid_args: arguments are Types", function()
    assert.matches("argument must be of kind Type, but gtv is of kind AdtHandle",
      refused(ir.TypeCall("gtv", { ir.GlobalTypeVar "gtv" }), defining { "tv" }))
  end)

  it("test_typecall_invalid_num_args: as many as the definition has", function()
    assert.equal("the type 'gtv' takes 1 argument, got 0",
      refused(ir.TypeCall("gtv", {}), defining { "tv" }))
  end)

  it("test_func_with_invalid_tuple, test_tuple_with_invalid_func: what is inside", function()
    local a = var "ShapeVar"
    assert.matches("a tuple's field", refused(ir.FuncType({}, ir.TupleType { a, a, a }, { a })))
    assert.matches("parameter or result",
      refused(ir.TupleType { tensor, ir.FuncType({}, a, { a }) }))
  end)

  it("test_func_with_invalid_relation: what is inside of a constraint", function()
    local a, b, c = var "Type", var "ShapeVar", var "Constraint"
    local relation = ir.TypeRelation("Identity", { b, c }, 1)
    assert.matches("a relation's argument",
      refused(ir.FuncType({ a }, a, { a, b, c }, { relation })))
  end)
end)
