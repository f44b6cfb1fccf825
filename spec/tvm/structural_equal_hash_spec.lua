-- Structural equality and hash of Relay as TVM has them: the counterparts of its
-- test_ir_structural_equal_hash.py, by name. What equality means beside them is
-- in equal_spec.lua.

local pl = require "perilune"
local consistent = require "spec.ir.consistent_equal"

local ir = pl.ir
local same, differs, types_differ = consistent.same, consistent.differs, consistent.types_differ
local function f32(...) return ir.TensorType({ ... }, "float32") end
local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

describe("structural equality of types", function()
  local s, t = f32(1, 2), f32(1, 2, 3)

  it("test_tensor_type_sequal: shape and dtype", function()
    same(f32(3, 4), f32(3, 4))
    same(f32(), f32())
    differs(f32(3, 4), f32(3, 4, 5))
    differs(f32(3, 4), ir.TensorType({ 3, 4 }, "int8"))
  end)

  it("test_incomplete_type_sequal: each is equal to itself only", function()
    local shape, a, b = ir.IncompleteType "ShapeVar", ir.IncompleteType(), ir.IncompleteType()
    same(a, a)
    same(shape, shape)
    types_differ(shape, a)
    types_differ(a, b)
  end)

  it("test_type_param_sequal: function types make variables correspond, of one kind", function()
    local a, n, b = ir.TypeVar "a", ir.TypeVar("n", "ShapeVar"), ir.TypeVar "b"
    same(a, a)
    same(n, n)
    differs(a, n)
    differs(a, b)
    same(a, b, { map_free_vars = true })
    same(ir.FuncType({}, a, { a }), ir.FuncType({}, b, { b }))
    differs(ir.FuncType({}, a, { a }), ir.FuncType({}, n, { n }))
  end)

  it("test_func_type_sequal: arguments, variables and relations, in order", function()
    local a, b = ir.TypeVar "a", ir.TypeVar "b"
    local m, n = ir.TypeVar("m", "ShapeVar"), ir.TypeVar("n", "ShapeVar")
    local one = ir.TypeRelation("Broadcast", { a, m }, 1)
    local mapped = ir.TypeRelation("Broadcast", { b, n }, 1)
    local other = ir.TypeRelation("Identity", { a, m }, 1)
    local f = ir.FuncType({ s, t }, a, { a, m }, { one })
    same(f, ir.FuncType({ s, t }, b, { b, n }, { mapped }))
    for _, g in ipairs {
      ir.FuncType({ s }, a, { a, m }, { one }),
      ir.FuncType({ t, s }, a, { a, m }, { one }),
      ir.FuncType({ s, t }, a, { a, m }),
      ir.FuncType({ s, t }, b, { a, b, m }, { one }),
      ir.FuncType({ s, t }, a, { a, b, m, n }, { one, mapped }),
      ir.FuncType({ s, t }, a, { a, m }, { other }),
      ir.FuncType({ s, t }, a, { a, m }, { one, other }),
    } do types_differ(f, g) end
  end)

  it("test_tuple_type_sequal: field by field", function()
    local a, b = ir.TypeVar "a", ir.TypeVar "b"
    same(ir.TupleType { s, t, a }, ir.TupleType { s, t, a })
    differs(ir.TupleType { s, t, a }, ir.TupleType { t, s, a })
    types_differ(ir.TupleType { s, t, a }, ir.TupleType { s, t, b })
  end)

  it("test_type_relation_sequal: function, order, inputs and attributes", function()
    local attrs, more = { padding = { 3, 4 } }, { padding = { 3, 4, 4 } }
    local one = ir.TypeRelation("Broadcast", { s, t }, 1, attrs)
    same(one, ir.TypeRelation("Broadcast", { s, t }, 1, attrs))
    same(one, ir.TypeRelation("Broadcast", { s, t }, 1, { padding = { 3, 4 } }))
    differs(one, ir.TypeRelation("Identity", { s, t }, 1, attrs))
    differs(one, ir.TypeRelation("Broadcast", { t, s }, 1, attrs))
    differs(one, ir.TypeRelation("Broadcast", { t, f32(4) }, 1, attrs))
    differs(one, ir.TypeRelation("Broadcast", { s, t }, 1, more))
    differs(one, ir.TypeRelation("Broadcast", { s, t }, 2, attrs))
  end)

  it("test_type_call_sequal: definition and arguments in order", function()
    local call = ir.TypeCall("h", { s, t })
    same(call, ir.TypeCall("h", { s, t }))
    differs(call, ir.TypeCall("i", { s, t }))
    differs(call, ir.TypeCall("h", { s }))
    differs(call, ir.TypeCall("h", { s, t, s }))
    differs(call, ir.TypeCall("h", { t, s }))
  end)

  it("test_type_node_sequal: variables of definitions, by kind and one by one", function()
    differs(ir.TypeVar("v", "TypeData"), ir.TypeVar("v", "TypeData"))
    differs(ir.TypeVar("v", "Type"), ir.TypeVar("v", "TypeData"))
  end)

  it("test_type_node_incompatible_sequal: no variables of programs", function()
    differs(ir.TypeVar("v", "TypeData"), pl.var "v")
  end)
end)

describe("structural equality of expressions", function()
  it("test_constant_sequal: by content", function()
    local x = pl.const(1)
    same(x, x)
    same(x, pl.const(1))
    differs(x, pl.const(2))
    differs(x, pl.const(1.0))
    differs(pl.const { 1 }, pl.const(1))
  end)

  it("test_expr_node_incompatible_sequal: a variable is no pattern", function()
    differs(pl.var "v", ir.PatternVar(pl.var "w"))
  end)

  it("test_var_sequal: the same one, or bound alike, of the same type", function()
    local v, w = pl.var "v", pl.var "w"
    same(v, v)
    differs(v, w)
    same(v, w, { map_free_vars = true })
    same(pl.let(v, 1, v), pl.let(w, 1, w))
    differs(pl.let(v, 1, v), pl.let(pl.var "v", 1, w))
    -- What the value's type says is the variable's own: here it says nothing.
    local function let(type)
      local var = pl.var("v", type)
      return pl.let(var, pl.call(pl.global "f", {}), var)
    end
    same(let "int32", let "int32")
    differs(let "int32", let "int64")
    differs(let "int32", let())
  end)

  it("test_global_var_sequal: by name", function()
    same(pl.global "f", pl.global "f")
    differs(pl.global "f", pl.global "g")
    differs(pl.global "f", pl.global "g", { map_free_vars = true })
  end)

  it("test_tuple_sequal: field by field, the empty one too", function()
    local v, a, b = pl.var "v", pl.var "a", pl.var "b"
    local function tuple(first, last)
      return pl.tuple { first, 2, 3, pl.tuple { last } }
    end
    same(pl.tuple {}, pl.tuple {})
    same(tuple(v, 4), tuple(v, 4))
    same(pl.let(a, tuple(v, 4), a), pl.let(b, tuple(v, 4), b))
    differs(tuple(v, 4), pl.tuple { v, 2, 3, pl.tuple { 4 }, v })
    differs(tuple(v, 4), pl.tuple { v, 2, 3 })
    differs(tuple(v, 4), tuple(v, 5))
    differs(tuple(v, 4), tuple(a, 4))
    differs(tuple(v, 4), pl.tuple { v, 2, 3, pl.tuple { 4, 5 } })
  end)

  it("test_tuple_get_item_sequal: tuple and index", function()
    local x, y = pl.var("x", "(int8, int8, int8)"), pl.var("y", "(int8, int8, int8)")
    same(ir.TupleGetItem(x, 1), ir.TupleGetItem(x, 1))
    differs(ir.TupleGetItem(x, 1), ir.TupleGetItem(y, 1))
    differs(ir.TupleGetItem(x, 1), ir.TupleGetItem(x, 2))
    local u = pl.var "u"
    same(ir.TupleGetItem(u, 1), ir.TupleGetItem(u, 1))
  end)

  it("test_function_attr: a name that a function has", function()
    local function named(name)
      local x, y, z = pl.var("x", f32(10, 10)), pl.var("y", f32(10, 10)), pl.var("z", f32(10, 10))
      return pl.func({ x, y, z }, (x + y - z) * z, { FuncName = name })
    end
    same(named "a", named "a")
    differs(named "a", named "b")
  end)

  it("test_function_sequal: parameters, body, result, type parameters", function()
    local a, b = f32(1, 2, 3), pl.type "Tensor[(4, 5, 6), int8]"
    local tp = { ir.TypeVar "p", ir.TypeVar "q", ir.TypeVar "r" }
    local s, n = ir.TypeVar("s", "ShapeVar"), ir.TypeVar("n", "ShapeVar")
    local function func(make, types, ret, type_params)
      local params = {}
      for i, type in ipairs(types) do params[i] = pl.var("x" .. i, type) end
      return pl.func(params, make(table.unpack(params)), ret, nil, type_params or { tp[1], tp[2] })
    end
    local function first(x) return x end
    local function second(_, y) return y end
    local f = func(first, { a, b }, a)
    same(f, func(first, { a, b }, a))
    for _, other in ipairs {
      func(first, { a }, a),
      func(first, { a, b, b }, a),
      func(second, { b, a }, a),
      func(first, { a, ir.TupleType { a, b } }, a),
      func(second, { a, a }, a),
      func(second, { a, b }, b),
      func(first, { a, b }, a, { tp[1] }),
      func(first, { a, b }, a, { tp[1], tp[2], tp[3] }),
      func(first, { a, b }, a, { s, n }),
      func(function(x, y) return pl.tuple { x, y } end, { a, b }, ir.TupleType { a, b }, {}),
    } do differs(f, other) end
    -- Neither a name nor an order that nothing tells apart counts.
    local free = pl.var "free"
    same(pl.func({}, free), pl.func({}, free))
    differs(pl.func({}, free, a), pl.func({}, free))
  end)

  it("test_call_sequal: callee, arguments, attributes", function()
    local f, v = pl.var "f", pl.var "v"
    local attrs = { name = "attr", padding = { 3, 4 } }
    local function args() return { 1, 2, v, pl.tuple {} } end
    local one = ir.Call(f, args(), attrs)
    same(one, ir.Call(f, args(), { name = "attr", padding = { 3, 4 } }))
    differs(one, ir.Call(v, args(), attrs))
    differs(one, ir.Call(f, { 1, 2, v }, attrs))
    differs(one, ir.Call(f, { 2, 1, pl.tuple {}, v }, attrs))
    differs(one, ir.Call(f, { 1, 2, 3 }, attrs))
    differs(one, ir.Call(f, { 1, 2, v, pl.tuple {}, 3, 4 }, attrs))
    differs(one, ir.Call(f, args(), { name = "attr", padding = { 3, 4, 4 } }))
    differs(one, ir.Call(f, args()))
  end)

  it("test_let_sequal: value, body and the variable's type, not its name", function()
    local v, w, u = pl.var "v", pl.var "w", pl.var "u"
    local one = pl.let(v, 2, v)
    same(one, pl.let(w, 2, w))
    differs(one, pl.let(w, 2, u))
    differs(one, pl.let(w, 3, w))
    differs(one, pl.let(w, 2, 12))
    differs(pl.let(v, 2, 12), pl.let(w, 3, 12))
    local typed, free = pl.var("v", f32()), pl.var "free"
    same(pl.let(typed, free, typed), pl.let(typed, free, typed))
    differs(pl.let(typed, free, typed), pl.let(v, free, v))
    local other = pl.var("v", pl.type "int8")
    differs(pl.let(typed, free, typed), pl.let(other, free, other))
  end)

  it("test_if_sequal: condition and branches", function()
    local v, w = pl.var "v", pl.var "w"
    local function choose(cond, first, ...) return pl.if_(cond, first, pl.tuple { ... }) end
    local one = choose(v, pl.tuple { 1, 1 }, 2, 3)
    same(one, choose(v, pl.tuple { 1, 1 }, 2, 3))
    differs(one, choose(w, pl.tuple { 1, 1 }, 2, 3))
    differs(one, choose(v, pl.tuple { 1, 2 }, 2, 3))
    differs(one, choose(v, pl.tuple { 1, 1 }, 2, 2))
  end)

  it("test_op_sequal: by name", function()
    same(ir.Op "add", ir.Op "add")
    differs(ir.Op "add", ir.Op "take")
  end)

  it("test_graph_equal: one node used twice is not two equal ones", function()
    local x = pl.var("x", f32(2))
    local y, z = x + x, x + x
    same(y + y, z + z)
    differs(y + y, (x + x) + (x + x))
    differs(pl.tuple { y, y, x + x }, pl.tuple { y, z, z })
  end)

  it("test_hash_unequal: other shapes have another hash", function()
    local function sum(shape)
      local x, y = pl.var("x", shape), pl.var("y", shape)
      return pl.func({ x, y }, x + y)
    end
    same(sum(f32(10, 10)), sum(f32(10, 10)))
    differs(sum(f32(10, 10)), sum(f32(20, 10)))
  end)

  it("test_fn_attribute: one that another function has not, types found or not", function()
    local function sum(attrs)
      local x, y = pl.var("x", f32(10, 10)), pl.var("y", f32(10, 10))
      return assert(pl.infer_type(pl.func({ x, y }, x + y, attrs)))
    end
    same(sum { TestAttribute = "test" }, sum { TestAttribute = "test" })
    differs(sum { TestAttribute = "test" }, sum())
  end)

  it("test_fn_vid_map: attributes that are dictionaries, compared key by key", function()
    local function named(key, deep)
      local x = pl.var("x", f32(10))
      return pl.func({ x }, x, nil, { dict = { [key] = 1, list = { 1, "a", { 2, { deep } } } } })
    end
    same(named("x", 3), named("x", 3))
    differs(named("x", 3), named("y", 3))
    differs(named("x", 3), named("x", 4))
  end)

  it("test_lets: names may change places, bindings may not", function()
    local function lets(first, second, swap)
      local p, q = pl.var("p", f32(5, 5)), pl.var("q", f32(5, 5))
      local a, b, c = pl.var(first), pl.var(second), pl.var "c"
      local x, y = swap and q or p, swap and p or q
      local sum = swap and b + a or a + b
      return pl.func({ p, q }, pl.let(a, x + 1, pl.let(b, y + 1, pl.let(c, sum, c))))
    end
    same(lets("a", "b"), lets("b", "a"))
    differs(lets("a", "b"), lets("a", "b", true))
  end)
end)

describe("structural equality of data types", function()
  local types = [[
type List[A] { Cons(A, List[A]), Nil }
type Option[A] { Some(A), None }
]]
  local function of(body)
    return parse(types .. ("def @main(%%l: List[int32], %%o: Option[int32]) { %s }"):format(body))
  end

  it("test_constructor_sequal: by name and inputs", function()
    local function cons(text)
      return parse(text .. "def @main() { Cons(1, Nil) }").main.body.callee
    end
    local one = cons "type List[A] { Cons(A, List[A]), Nil }\n"
    same(one, one)
    same(one, cons "type List[B] { Cons(B, List[B]), Nil }\n")
    assert.is_false(pl.equal(one, cons "type List[A] { Cons(int32, List[A]), Nil }\n"))
    differs(of "Nil".main.body.callee, one)
    differs(of "Nil", of "Cons(1, Nil)")
  end)

  it("test_match_sequal: arm by arm, in order", function()
    local one = of "match (%l) { Nil => Nil, Cons(%x, %y) => Cons(%x, %y) }"
    same(one, one)
    same(one, of "match (%l) { Nil => Nil, Cons(%z, %a) => Cons(%z, %a) }")
    for _, other in ipairs {
      "match? (%l) { Nil => Nil }",
      "match? (%l) { Cons(%x, %y) => Cons(%x, %y) }",
      "match? (%l) { }",
      "match (Cons(1, %l)) { Nil => Nil, Cons(%x, %y) => Cons(%x, %y) }",
      "match (%l) { Cons(%x, %y) => Cons(%x, %y), Nil => Nil }",
      "match (%l) { Nil => Cons(1, Nil), Cons(%x, %y) => Cons(%x, %y) }",
      "match (%l) { Nil => Nil, Cons(_, _) => Nil }",
      "match (%l) { Nil => Nil, Cons(%x, %y) => Cons(%x, %y), _ => Nil }",
      "match? (%l) { Nil => Nil, Cons(%x, %y) => Cons(%x, %y) }",
      "match (%o) { None => Nil, Some(%x) => Cons(%x, Nil) }",
    } do differs(one, of(other)) end
  end)

  it("test_tuple_match: patterns of tuples", function()
    local function pair(a, b)
      return of(("match ((1, 1)) { (%%%s, %%%s) => %%%s + %%%s }"):format(a, b, a, b))
    end
    same(pair("a", "b"), pair("c", "d"))
    differs(of "match ((1, 2)) { (%a, %b) => %a }", of "match ((1, 2)) { (%a, %b) => %b }")
  end)
end)
