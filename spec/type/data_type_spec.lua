-- Types from Lua: a constructor, fields and text for each kind; visits and changed
-- copies; the data types that a module defines.

local pl = require "perilune"
local ir = pl.ir

local float = pl.type "float32"

describe("a type made from its parts", function()
  local a, b = ir.TypeVar "A", ir.TypeVar("B", "ShapeVar")
  local relation = ir.TypeRelation("Broadcast", { a, float }, 1, { axis = 2 })
  -- what it is, its kind, its text, its fields
  local rows = {
    { ir.TensorType({ 2, "N+1", "?" }, "int8"), "tensor", "Tensor[(2, N+1, ?), int8]",
      { rank = 3, dtype = "int8" } },
    { ir.TensorType(nil, "int8"), "tensor", "Tensor[*, int8]", { dtype = "int8" } },
    { ir.TupleType { float, a }, "tuple", "(float32, A)", {} },
    { ir.FuncType({ a }, float, { a, b }), "func", "fn [A, B](A) -> float32",
      { ret_type = float } },
    { ir.FuncType({}, a, nil, { relation }), "func", nil, { ret_type = a } },
    { ir.RefType(a), "ref", "ref(A)", { element = a } },
    { a, "var", "A", { name = "A", var_kind = "Type" } },
    { b, "var", "B", { var_kind = "ShapeVar" } },
    { ir.GlobalTypeVar "List", "global_var", "List", { name = "List" } },
    { ir.TypeCall("List", { float }), "call", "List[float32]", { name = "List" } },
    { ir.TypeCall(ir.GlobalTypeVar "List", { float }), "call", "List[float32]", {} },
    { relation, "relation", nil, { name = "Broadcast", n_inputs = 1 } },
    { ir.IncompleteType(), "hole", "_", {} },
    { ir.PrimType("int32", 4), "prim", "int32x4", { dtype = "int32", lanes = 4 } },
    { ir.PrimType(), "prim", "handle", { lanes = 1 } },
    { ir.PointerType(ir.PrimType "float32"), "pointer", nil,
      { name = "global", element = ir.PrimType "float32" } },
    { ir.SequenceType(float), "sequence", "seq(float32)", { element = float } },
    { ir.OptionalType(float), "optional", "optional(float32)", { element = float } },
    { ir.MapType(pl.type "int64", float), "map", "map(int64, float32)", {} },
    { ir.SparseType(float), "sparse", "sparse(float32)", { element = float } },
    { ir.OpaqueType "a.b::C", "opaque", 'opaque("a.b::C")', { name = "a.b::C" } },
  }
  for i, row in ipairs(rows) do
    local type, kind, text, fields = table.unpack(row)
    it(("says what it is: %s %d"):format(kind, i), function()
      assert.equal(kind, type.kind)
      if text then assert.equal(text, tostring(type)) end
      for field, wanted in pairs(fields) do assert.equal(wanted, type[field]) end
    end)
  end

  it("has lists of parts", function()
    local f = ir.FuncType({ a, float }, a, { a }, { relation })
    assert.same({ a, float }, f.params)
    assert.same({ a }, f.type_params)
    assert.same({ relation }, f.constraints)
    assert.same({ a, float, a }, f.parts)
    assert.equal(2, relation.attrs.axis)
    assert.is_nil(float.params)
  end)

  it("is equal to those of equal parts, but for new variables and holes", function()
    assert.equal(ir.RefType(a), ir.RefType(a))
    assert.equal(ir.PrimType "int8", ir.PrimType("int8", 1))
    assert.not_equal(ir.TypeVar "A", ir.TypeVar "A")
    assert.not_equal(ir.IncompleteType(), ir.IncompleteType())
  end)

  it("is refused when its parts are of no use", function()
    assert.error_matches(function() ir.FuncType({}, float, { float }) end, "type variable")
    assert.error_matches(function() ir.TypeVar("A", "Sort") end, "Sort")
    assert.error_matches(function() ir.TypeRelation("r", { a }, 2) end, "at most as many")
    assert.error_matches(function() ir.PrimType("int8", 0) end, "lanes")
    assert.error_matches(function() ir.TupleType { 3 } end, "perilune.Type")
  end)
end)

describe("a type read from text", function()
  for _, text in ipairs {
    "fn [A](A) -> A", "fn [A, B](fn (A) -> B, List[A]) -> List[B]", "ref(Tensor[(2), int8])",
    "List[Tensor[(N, ?), float32]]", "Tree[(int32, _)]", "fn [A](A, fn [B](A, B) -> A) -> A",
    "fn () -> _",
  } do
    it("prints as it was written: " .. text, function()
      assert.equal(text, tostring(pl.type(text)))
      assert.equal(pl.type(text), pl.type(text))
    end)
  end

  it("has lanes in a tensor's elements", function()
    local t = pl.type "Tensor[(2, ?), float32x4]"
    assert.equal("Tensor[(2, ?), float32x4]", tostring(t))
    assert.equal(4, t.lanes)
    assert.equal(1, float.lanes)
    assert.equal("int8x16", tostring(pl.type "int8x16"))
    assert.equal("Tensor[(2, ?), float32x4]", tostring(t:unify "Tensor[(2, 3), float32x4]"))
    assert.is_nil(t:unify "Tensor[(2, 3), float32]")
    assert.equal("Tensor[(5), int8x2]", tostring(ir.TensorType({ 5 }, "int8x2")))
    assert.error_matches(function() pl.type "float32x" end, "expected a type")
  end)

  it("keeps apart what a nested function calls the same", function()
    local f = pl.type "fn [A](A, fn [A](A) -> A) -> A"
    assert.not_equal(f.type_params[1], f.parts[2].type_params[1])
    assert.equal(f.params[1], f.ret_type)
  end)

  it("knows data types by their capital or their arguments only", function()
    assert.equal("call", pl.type "Nat".kind)
    assert.equal("call", pl.type "nat[int8]".kind)
    assert.error_matches(function() pl.type "flaot32" end, "expected a type")
    assert.error_matches(function() pl.type "fn [A(A) -> A" end, "expected ',' or '%]', got")
  end)
end)

describe("walking into a type", function()
  it("visits each distinct part once, parts before the whole", function()
    local t = ir.TupleType { float, ir.RefType(float) }
    local seen = {}
    t:visit(function(part) seen[#seen + 1] = tostring(part) end)
    assert.same({ "float32", "ref(float32)", "(float32, ref(float32))" }, seen)
  end)

  it("maps parts, and gives back the same type when nothing changes", function()
    local t = pl.type "fn [A](A, List[float32]) -> (A, ref(float32))"
    local half = pl.type "float16"
    local mapped = t:map(function(part) return part == float and half or nil end)
    assert.equal("fn [A](A, List[float16]) -> (A, ref(float16))", tostring(mapped))
    assert.equal(t, t:map(function() end))
  end)

  it("substitutes variables", function()
    local a = ir.TypeVar "A"
    local t = ir.TupleType { a, ir.RefType(a) }
    assert.equal("(float32, ref(float32))", tostring(t:substitute { [a] = float }))
  end)

  it("unifies", function()
    local t = pl.type "(Tensor[(?, 3), float32], _)"
    assert.equal("(Tensor[(?, 3), float32], int8)",
      tostring(t:unify "(Tensor[(2, 3), float32], int8)"))
    assert.is_nil(t:unify "(Tensor[(2, 4), float32], int8)")
  end)

  it("takes time and stack in proportion to distinct parts", function()
    local t = float
    for _ = 1, 10000 do t = ir.TupleType { t, t } end
    local n = 0
    t:visit(function() n = n + 1 end)
    assert.equal(10001, n)
    local half = pl.type "float16"
    local mapped = t:map(function(part) return part == float and half or nil end)
    assert.not_equal(t, mapped)
  end)
end)

describe("a module's data types", function()
  local list = { name = "List", vars = { "A" }, constructors = {
    { name = "Cons", inputs = { "A", "List[A]" } }, { name = "Nil" } } }

  it("are read back by name and in order", function()
    local mod = pl.module():with_type(list):with_type { name = "Handle", extern = true }
    assert.equal(2, #mod.types)
    assert.equal("Handle", mod.types[2].name)
    assert.is_true(mod.types.Handle.extern)
    local read = mod.types.List
    assert.equal("A", read.vars[1].name)
    assert.equal("Cons", read.constructors[1].name)
    assert.equal("List[A]", tostring(read.constructors[1].inputs[2]))
    assert.equal("fn [A](A, List[A]) -> List[A]", tostring(read.constructors[1].type))
    assert.equal("fn [A]() -> List[A]", tostring(read.constructors[2].type))
    assert.equal(0, #pl.module().types)
  end)

  it("are printed", function()
    assert.matches("type List%[A%] {\n  Cons%(A, List%[A%]%),\n  Nil,\n}",
      tostring(pl.module():with_type(list)))
  end)

  it("are replaced under their name, in a copy", function()
    local one = pl.module():with_type(list)
    local two = one:with_type { name = "List", vars = {}, constructors = { { name = "E" } } }
    assert.equal(2, #one.types.List.constructors)
    assert.equal(1, #two.types.List.constructors)
  end)

  it("are refused when they make no sense", function()
    local mod = pl.module():with_type(list)
    assert.error_matches(function()
      mod:with_type { name = "Other", constructors = { { name = "Nil" } } }
    end, "'Nil' is defined by 'List' already")
    assert.error_matches(function() mod:with_type {} end, "has a name")
    assert.error_matches(function() mod:with_type { name = "T", constructors = { 3 } } end,
      "a constructor is")
    assert.error_matches(function()
      mod:with_type { name = "T", extern = true, constructors = { { name = "C" } } }
    end, "no constructors")
    assert.error_matches(function() mod:with_type { name = "T", vars = { float } } end,
      "type variables")
  end)
end)
