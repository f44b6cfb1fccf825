-- Types are of the kinds that their places want: what TVM's checker of kinds
-- pins, and what a module's definitions and functions must keep.

local pl = require "perilune"
local ir = pl.ir

local float = pl.type "float32"
local others = { "ShapeVar", "BaseType", "Constraint" }

local function kind_of(type, mod) return assert(pl.check_kind(type, mod)) end

local function refused(type, mod)
  local kind, diag = pl.check_kind(type, mod)
  assert.is_nil(kind)
  assert.equal("type", diag.code)
  return diag.message
end

-- type Pair[A, B] { MkPair(A, B) }
local function with_pair()
  return pl.module():with_type { name = "Pair", vars = { "A", "B" },
    constructors = { { name = "MkPair", inputs = { "A", "B" } } } }
end

describe("the kind of a type", function()
  it("is its own for a type variable", function()
    assert.equal("Type", kind_of(ir.TypeVar "a"))
    for _, kind in ipairs(others) do assert.equal(kind, kind_of(ir.TypeVar("a", kind))) end
  end)

  it("is Type for a tuple of Types", function()
    assert.equal("Type", kind_of(ir.TupleType { ir.TypeVar "a", float, ir.TupleType {} }))
  end)

  it("is Type for a function of Types under Constraints", function()
    local a, b = ir.TypeVar "a", ir.TypeVar "b"
    local relation = ir.TypeRelation("Broadcast", { a, b }, 1)
    assert.equal("Type", kind_of(ir.FuncType({ a, float }, b, { a, b }, { relation })))
  end)

  it("is Type for a reference to a Type", function()
    assert.equal("Type", kind_of(ir.RefType(ir.TypeVar "a")))
  end)

  it("is Constraint for a relation of Types", function()
    assert.equal("Constraint", kind_of(ir.TypeRelation("Broadcast", { float, ir.TypeVar "a" }, 1)))
  end)

  it("is AdtHandle for the name of a data type", function()
    assert.equal("AdtHandle", kind_of(ir.GlobalTypeVar "Pair"))
  end)

  it("is Type for a data type with its arguments", function()
    assert.equal("Type", kind_of(ir.TypeCall("Pair", { float, ir.TypeVar "a" }), with_pair()))
  end)
end)

describe("the checker of kinds refuses", function()
  for _, kind in ipairs(others) do
    it("a tuple with a field of kind " .. kind, function()
      assert.matches("a tuple's field must be of kind Type, but a is of kind " .. kind,
        refused(ir.TupleType { float, ir.TypeVar("a", kind) }))
    end)

    it("a function with a parameter or a result of kind " .. kind, function()
      local a = ir.TypeVar("a", kind)
      assert.matches("parameter or result", refused(ir.FuncType({ a }, float, { a })))
      assert.matches("parameter or result", refused(ir.FuncType({ float }, a, { a })))
    end)

    it("a reference to kind " .. kind, function()
      assert.matches("a reference's content", refused(ir.RefType(ir.TypeVar("a", kind))))
    end)

    it("a relation of kind " .. kind, function()
      assert.matches("a relation's argument",
        refused(ir.TypeRelation("Broadcast", { float, ir.TypeVar("a", kind) }, 1)))
    end)
  end

  it("a constraint that is none", function()
    assert.matches("constraint must be of kind Constraint",
      refused(ir.FuncType({ float }, float, {}, { ir.TypeVar "a" })))
  end)

  it("what is inside of what is inside", function()
    local a = ir.TypeVar("a", "ShapeVar")
    local wrong = ir.TupleType { a }
    refused(ir.FuncType({ wrong }, float))
    refused(ir.FuncType({ float }, wrong))
    refused(ir.FuncType({ float }, float, {}, { ir.TypeRelation("r", { wrong }, 1) }))
    refused(ir.TupleType { ir.FuncType({ float }, a) })
  end)

  it("a data type that is not defined, or has wrong arguments, or too few", function()
    local mod = with_pair()
    assert.matches("defines no type 'Pear'", refused(ir.TypeCall("Pear", { float, float }), mod))
    assert.matches("takes 2 arguments, got 1", refused(ir.TypeCall("Pair", { float }), mod))
    assert.matches("argument must be of kind Type, but Pair is of kind AdtHandle",
      refused(ir.TypeCall("Pair", { float, ir.GlobalTypeVar "Pair" }), mod))
  end)

  it("does not stop at deep types", function()
    local deep = ir.TypeVar("a", "ShapeVar")
    for _ = 1, 10000 do deep = ir.TupleType { deep, deep } end
    refused(deep)
  end)
end)

describe("InferType refuses", function()
  local function message(mod)
    local typed, diag = pl.infer_type(mod)
    assert.is_nil(typed)
    return diag.message
  end

  it("a free type variable", function()
    local x = pl.var("x", ir.TypeVar "A")
    assert.matches("function 'main' has the free type variable 'A'",
      message(pl.module { main = pl.func({ x }, x) }))
    local mod = pl.module():with_type { name = "T", vars = { "A" },
      constructors = { { name = "C", inputs = { ir.TypeVar "B" } } } }
    assert.matches("type 'T' has the free type variable 'B'", message(mod))
  end)

  it("a value of a type that is not defined", function()
    local x = pl.var("x", "List[float32]")
    assert.matches("the module defines no type 'List': in %%x",
      message(pl.module { main = pl.func({ x }, x) }))
  end)

  it("a definition whose parts are of another kind", function()
    local mod = pl.module():with_type { name = "T", vars = { ir.TypeVar("A", "ShapeVar") },
      constructors = {} }
    assert.matches("a data type's variable must be of kind Type", message(mod))
  end)
end)
