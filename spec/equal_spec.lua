-- Equality and hash as Relay defines them, and what pl.assert_equal says. Each
-- case is looked at both ways, and hashes tell exactly what equality tells.

local pl = require "perilune"

local ir = pl.ir
local function f32(...) return ir.TensorType({ ... }, "float32") end

local function equal(a, b, options)
  local there = pl.equal(a, b, options)
  assert.equal(there, pl.equal(b, a, options))
  assert.equal(there, pl.hash(a, options) == pl.hash(b, options))
  assert.equal(there, pl.mismatch(a, b, options) == nil)
  return there
end

local function same(...) assert.is_true(equal(...)) end
local function differs(...) assert.is_false(equal(...)) end
-- Of types only those that are equal have one hash.
local function types_differ(a, b)
  assert.is_false(pl.equal(a, b))
  assert.is_false(pl.equal(b, a))
end

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

describe("equal contents of modules", function()
  local function of(list, dtype)
    local c = pl.const(pl.tensor(list, dtype or "float32"))
    return pl.module { main = pl.func({}, c) }
  end

  it("are asked for, when constants are large", function()
    local list, other, sevens = {}, {}, {}
    for i = 1, 400 do list[i], other[i], sevens[i] = i, i, 7 end
    other[400] = 0
    local contents = { contents = true }
    assert.is_false(pl.equal(of(list), of(list)))
    assert.is_true(pl.equal(of(list), of(list), contents))
    assert.is_nil(pl.mismatch(of(list), of(list), contents))
    assert.is_false(pl.equal(of(list), of(other), contents))
    assert.is_false(pl.equal(of(list), of(list, "float64"), contents))
    local splat = pl.module { main = pl.func({}, pl.const(pl.tensor.full(7, "float32", { 400 }))) }
    assert.is_true(pl.equal(splat, of(sevens), contents))
    assert.is_true(pl.equal(of(sevens), splat, contents))
    assert.is_false(pl.equal(of(list), splat, contents))
  end)
end)

describe("types", function()
  local s, t = f32(1, 2), f32(1, 2, 3)

  it("of tensors are equal by shape and dtype", function()
    same(f32(3, 4), f32(3, 4))
    same(f32(), f32())
    types_differ(f32(3, 4), f32(3, 4, 5))
    types_differ(f32(3, 4), ir.TensorType({ 3, 4 }, "int8"))
  end)

  it("that are incomplete are equal to themselves only", function()
    local a, b = ir.IncompleteType(), ir.IncompleteType()
    same(a, a)
    types_differ(a, b)
  end)

  it("that are variables correspond as parameters of function types", function()
    local a, b, c = ir.TypeVar "a", ir.TypeVar("b", "ShapeVar"), ir.TypeVar "c"
    same(a, a)
    types_differ(a, b)
    differs(a, c)
    same(a, c, { map_free_vars = true })
    same(ir.FuncType({}, a, { a }), ir.FuncType({}, c, { c }))
    types_differ(ir.FuncType({}, a, { a }), ir.FuncType({}, b, { b }))
  end)

  it("that are variables of definitions differ, by kind and one by one", function()
    differs(ir.TypeVar("v", "TypeData"), ir.TypeVar("v", "TypeData"))
    types_differ(ir.TypeVar("v", "Type"), ir.TypeVar("v", "TypeData"))
  end)

  it("of functions differ by arguments, variables and relations", function()
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

  it("of tuples are equal field by field", function()
    local a, b = ir.TypeVar "a", ir.TypeVar "b"
    same(ir.TupleType { s, t, a }, ir.TupleType { s, t, a })
    types_differ(ir.TupleType { s, t, a }, ir.TupleType { t, s, a })
    types_differ(ir.TupleType { s, t, a }, ir.TupleType { s, t, b })
  end)

  it("that are relations are equal by function, order, inputs and attributes", function()
    local attrs, more = { padding = { 3, 4 } }, { padding = { 3, 4, 4 } }
    local one = ir.TypeRelation("Broadcast", { s, t }, 1, attrs)
    same(one, ir.TypeRelation("Broadcast", { s, t }, 1, attrs))
    types_differ(one, ir.TypeRelation("Identity", { s, t }, 1, attrs))
    types_differ(one, ir.TypeRelation("Broadcast", { t, s }, 1, attrs))
    types_differ(one, ir.TypeRelation("Broadcast", { t, f32(4) }, 1, attrs))
    types_differ(one, ir.TypeRelation("Broadcast", { s, t }, 1, more))
    types_differ(one, ir.TypeRelation("Broadcast", { s, t }, 2, attrs))
  end)

  it("that are calls are equal by name and arguments in order", function()
    local call = ir.TypeCall("h", { s, t })
    same(call, ir.TypeCall("h", { s, t }))
    types_differ(call, ir.TypeCall("i", { s, t }))
    types_differ(call, ir.TypeCall("h", { s }))
    types_differ(call, ir.TypeCall("h", { s, t, s }))
    types_differ(call, ir.TypeCall("h", { t, s }))
  end)

  it("are no variables of programs", function()
    assert.is_false(pl.equal(ir.TypeVar "v", pl.var "v"))
    assert.is_false(pl.equal(pl.var "v", ir.TypeVar "v"))
  end)
end)

describe("leaves", function()
  it("that are constants are equal by content", function()
    local x = pl.const(1)
    same(x, x)
    same(x, pl.const(1))
    differs(x, pl.const(2))
    differs(x, pl.const(1.0))
    differs(pl.const { 1 }, pl.const(1))
  end)

  it("that are variables are equal to themselves, or bound alike", function()
    local v, w = pl.var "v", pl.var "w"
    same(v, v)
    differs(v, w)
    same(v, w, { map_free_vars = true })
    same(pl.let(v, 1, v), pl.let(w, 1, w))
    differs(pl.let(v, 1, v), pl.let(pl.var "v", 1, w))
  end)

  it("that are variables differ by their types", function()
    local function let(type)
      local v = pl.var("v", type)
      return pl.let(v, pl.var("x", type), v)
    end
    same(let "int32", let "int32", { map_free_vars = true })
    differs(let "int32", let "int64", { map_free_vars = true })
    differs(let "int32", let(), { map_free_vars = true })
    differs(pl.func({ pl.var("x", "int32") }, 1), pl.func({ pl.var "x" }, 1))
  end)

  it("that are names of functions are equal by name", function()
    same(pl.global "f", pl.global "f")
    differs(pl.global "f", pl.global "g")
    differs(pl.global "f", pl.global "g", { map_free_vars = true })
  end)

  it("that are operators are equal by name", function()
    same(ir.Op "add", ir.Op "add")
    differs(ir.Op "add", ir.Op "take")
  end)

  it("of two kinds differ", function()
    differs(pl.var "v", pl.const(1))
    differs(pl.var "v", pl.tuple {})
  end)
end)

describe("tuples", function()
  local v = pl.var "v"

  it("are equal field by field", function()
    local function tuple(first, last)
      return pl.tuple { first, 2, 3, pl.tuple { last } }
    end
    same(pl.tuple {}, pl.tuple {})
    same(tuple(v, 4), tuple(v, 4))
    local a, b = pl.var "a", pl.var "b"
    same(pl.let(a, tuple(v, 4), a), pl.let(b, tuple(v, 4), b))
    differs(tuple(v, 4), pl.tuple { v, 2, 3, pl.tuple { 4 }, v })
    differs(tuple(v, 4), pl.tuple { v, 2, 3 })
    differs(tuple(v, 4), tuple(v, 5))
    differs(tuple(v, 4), tuple(a, 4))
    differs(tuple(v, 4), pl.tuple { v, 2, 3, pl.tuple { 4, 5 } })
  end)

  it("give fields by index", function()
    local x, y = pl.var("x", "(int8, int8, int8)"), pl.var("y", "(int8, int8, int8)")
    same(ir.TupleGetItem(x, 1), ir.TupleGetItem(x, 1))
    differs(ir.TupleGetItem(x, 1), ir.TupleGetItem(y, 1))
    differs(ir.TupleGetItem(x, 1), ir.TupleGetItem(x, 2))
  end)
end)

describe("functions", function()
  local function sum(shape, attrs)
    local x, y = pl.var("x", shape), pl.var("y", shape)
    return pl.func({ x, y }, x + y, attrs)
  end

  it("differ by their attributes", function()
    same(sum(f32(10), { FuncName = "a" }), sum(f32(10), { FuncName = "a" }))
    differs(sum(f32(10), { FuncName = "a" }), sum(f32(10), { FuncName = "b" }))
  end)

  it("differ from those without an attribute", function()
    differs(sum(f32(10), { TestAttribute = "test" }), sum(f32(10)))
  end)

  it("have attributes that are dictionaries", function()
    local function named(key)
      return sum(f32(10), { dict = { [key] = 1, list = { 1, "a", { 2, 3 } } } })
    end
    same(named "x", named "x")
    differs(named "x", named "y")
  end)

  it("of other shapes have another hash", function()
    same(sum(f32(10, 10)), sum(f32(10, 10)))
    differs(sum(f32(10, 10)), sum(f32(20, 10)))
  end)

  it("are equal by parameters, body and what they give", function()
    local a, b = f32(1, 2, 3), pl.type "Tensor[(4, 5, 6), int8]"
    local v, w, u = pl.var("v", a), pl.var("w", b), pl.var("u", pl.type "(int8, int8)")
    local f = pl.func({ v, w }, v)
    local x, y = pl.var("x", a), pl.var("y", b)
    same(f, pl.func({ x, y }, x))
    differs(f, pl.func({ x }, x))
    differs(f, pl.func({ x, y, u }, x))
    differs(f, pl.func({ w, v }, v))
    differs(f, pl.func({ v, u }, v))
    differs(f, pl.func({ x, y }, y))
    differs(f, pl.func({ x, y }, pl.tuple { x, y }))
  end)

  it("are equal but for the names of type parameters", function()
    local function generic(params, type, ret)
      return parse(("def @f[%s](%%x: %s) -> %s { %%x }"):format(params, type, ret or type))
    end
    same(generic("A", "A"), generic("B", "B"))
    same(generic("A, B", "(A, B)"), generic("B, A", "(B, A)"))
    assert.is_false(pl.equal(generic("A, B", "(A, B)"), generic("A, B", "(B, A)")))
    assert.is_false(pl.equal(generic("A", "A"), generic("A, B", "A")))
  end)
end)

describe("calls", function()
  local f = pl.var "f"
  local function call(callee, args, attrs) return ir.Call(callee, args, attrs) end

  it("are equal by callee, arguments and attributes", function()
    local v, attrs = pl.var "v", { name = "attr", padding = { 3, 4 } }
    local function args() return { 1, 2, v, pl.tuple {} } end
    local one = call(f, args(), attrs)
    same(one, call(f, args(), { name = "attr", padding = { 3, 4 } }))
    differs(one, call(v, args(), attrs))
    differs(one, call(f, { 1, 2, v }, attrs))
    differs(one, call(f, { 2, 1, pl.tuple {}, v }, attrs))
    differs(one, call(f, { 1, 2, v, pl.tuple {}, 3 }, attrs))
    differs(one, call(f, args(), { name = "attr", padding = { 3, 4, 4 } }))
    differs(one, call(f, args()))
  end)

  it("tell floats apart beyond 1e-9", function()
    local function epsilon(value) return call(f, {}, { epsilon = value }) end
    same(epsilon(0.5), epsilon(0.5 + 1e-10))
    assert.is_false(pl.equal(epsilon(0.5), epsilon(0.5 + 1e-8)))
  end)
end)

describe("attributes of calls", function()
  local x = pl.var("x", f32(2, 3))

  it("that say a default are those that leave it out, as in TVM's structs", function()
    same(pl.op.nn.softmax(x), pl.op.nn.softmax(x, { axis = -1 }))
    same(pl.op.concatenate(x, x), pl.op.concatenate(x, x, { axis = 0 }))
    differs(pl.op.nn.softmax(x), pl.op.nn.softmax(x, { axis = 0 }))
    local text = pl.mismatch(pl.op.nn.softmax(x, { axis = -1 }), pl.op.nn.softmax(x, { axis = 0 }))
    assert.matches("attrs.axis: none versus 0", text)
  end)
end)

describe("lets", function()
  it("are equal by value and body, whatever the variable's name", function()
    local v, w, u = pl.var "v", pl.var "w", pl.var "u"
    local one = pl.let(v, 2, v)
    same(one, pl.let(w, 2, w))
    differs(one, pl.let(w, 2, u))
    differs(one, pl.let(w, 3, w))
    differs(one, pl.let(w, 2, 12))
    differs(pl.let(v, 2, 12), pl.let(w, 3, 12))
  end)

  it("count in order", function()
    local function lets(first, second, swap)
      local p, q = pl.var("p", f32(5, 5)), pl.var("q", f32(5, 5))
      local a, b, c = pl.var(first), pl.var(second), pl.var "a2"
      local x, y = swap and q or p, swap and p or q
      local sum = swap and b + a or a + b
      return pl.func({ p, q }, pl.let(a, x + 1, pl.let(b, y + 1, pl.let(c, sum, c))))
    end
    same(lets("a0", "a1"), lets("a1", "a0"))
    differs(lets("a0", "a1"), lets("a0", "a1", true))
  end)

  it("of functions that call themselves are equal", function()
    local function loop(name)
      local f, x = pl.var(name), pl.var "x"
      return pl.let(f, pl.func({ x }, ir.Call(f, { x })), f)
    end
    same(loop "f", loop "g")
  end)
end)

describe("ifs", function()
  it("are equal by condition and branches", function()
    local v, w = pl.var("v", "bool"), pl.var("w", "bool")
    local function choose(cond, first, second)
      return pl.if_(cond, pl.tuple { 1, first }, pl.tuple { 2, second })
    end
    local one = choose(v, 1, 2)
    same(one, choose(v, 1, 2))
    differs(one, choose(w, 1, 2))
    differs(one, choose(v, 2, 2))
    differs(one, choose(v, 1, 3))
  end)
end)

describe("references", function()
  it("are equal by what is created, read and written", function()
    local r, s = pl.var("r", "ref(int8)"), pl.var("s", "ref(int8)")
    same(ir.RefCreate(1), ir.RefCreate(1))
    differs(ir.RefCreate(1), ir.RefCreate(2))
    same(ir.RefRead(r), ir.RefRead(r))
    differs(ir.RefRead(r), ir.RefRead(s))
    differs(ir.RefWrite(r, pl.const(1, "int8")), ir.RefWrite(r, pl.const(2, "int8")))
  end)
end)

describe("data types", function()
  local types = [[
type List[A] { Cons(A, List[A]), Nil }
type Option[A] { Some(A), None }
]]
  local function of(body, generics)
    return parse(types .. ("def @main%s(%%l: List[int32], %%o: Option[int32]) { %s }"):format(
      generics or "", body))
  end

  it("have constructors, which are equal by name", function()
    same(of "Cons(1, Nil)", of "Cons(1, Nil)")
    differs(of "Nil", of "Cons(1, Nil)")
    local cons = of "Cons(1, Nil)".main.body.callee
    same(cons, of "Cons(2, Nil)".main.body.callee)
  end)

  it("are matched arm by arm", function()
    local one = of "match (%l) { Nil => Nil, Cons(%x, %y) => Cons(%x, %y) }"
    same(one, one)
    same(one, of "match (%l) { Nil => Nil, Cons(%z, %a) => Cons(%z, %a) }")
    for _, other in ipairs {
      "match? (%l) { Nil => Nil }",
      "match? (%l) { Cons(%x, %y) => Cons(%x, %y) }",
      "match (Cons(1, %l)) { Nil => Nil, Cons(%x, %y) => Cons(%x, %y) }",
      "match (%l) { Cons(%x, %y) => Cons(%x, %y), Nil => Nil }",
      "match (%l) { Nil => Cons(1, Nil), Cons(%x, %y) => Cons(%x, %y) }",
      "match (%l) { Nil => Nil, Cons(_, _) => Nil }",
      "match (%l) { Nil => Nil, Cons(%x, %y) => Cons(%x, %y), _ => Nil }",
      "match? (%l) { Nil => Nil, Cons(%x, %y) => Cons(%x, %y) }",
      "match (%o) { None => Nil, Some(%x) => Cons(%x, Nil) }",
    } do differs(one, of(other)) end
  end)

  it("are matched by patterns of tuples", function()
    local function pair(a, b)
      return of(("match ((1, 1)) { (%%%s, %%%s) => %%%s + %%%s }"):format(a, b, a, b))
    end
    same(pair("a", "b"), pair("c", "d"))
  end)

  it("are not matched by variables that stand elsewhere", function()
    differs(of "match ((1, 2)) { (%a, %b) => %a }", of "match ((1, 2)) { (%a, %b) => %b }")
  end)

  it("are equal by definition, whatever the variables' names", function()
    local function define(text) return parse(text .. "def @main() { 1 }") end
    local list = "type List[A] { Cons(A, List[A]), Nil }\n"
    same(define(list), define "type List[B] { Cons(B, List[B]), Nil }\n")
    differs(define(list), define "type List[A] { Nil, Cons(A, List[A]) }\n")
    differs(define(list), define "type List[A] { Cons(A), Nil }\n")
    differs(define(list), define "")
    assert.is_false(pl.equal(define(list),
      define "type List[A] { Cons(List[A], A), Nil }\n"))
  end)
end)

describe("sharing", function()
  local x = pl.var("x", f32(2))

  it("tells one node used twice from two equal ones", function()
    local y, z = x + x, x + x
    same(y + y, z + z)
    differs(y + y, (x + x) + (x + x))
    differs(pl.tuple { y, y, x + x }, pl.tuple { y, z, z })
  end)

  it("does not count for constants, fields, operators and names", function()
    local one, pair, f = pl.const(1.0), pl.var("p", "(int8, int8)"), pl.global "f"
    same(pl.tuple { one, one }, pl.tuple { pl.const(1.0), pl.const(1.0) })
    local first = ir.TupleGetItem(pair, 0)
    same(pl.tuple { first, first },
      pl.tuple { ir.TupleGetItem(pair, 0), ir.TupleGetItem(pair, 0) })
    same(pl.tuple { f, f }, pl.tuple { pl.global "f", pl.global "f" })
  end)

  it("of mapped free variables goes both ways", function()
    local v, w = pl.var("v", f32(2)), pl.var("w", f32(2))
    same(v + w, w + v, { map_free_vars = true })
    differs(v + v, v + w, { map_free_vars = true })
    differs(v + w, w + v)
  end)
end)

describe("modules", function()
  local function module(axis, extra)
    local x = pl.var("x", f32(2, 3))
    local f = pl.func({ x }, pl.op.nn.softmax(pl.op.tanh(x), { axis = axis }))
    return pl.module({ main = f, [extra or "other"] = pl.func({}, 1) })
  end

  it("are equal function by function, by name", function()
    same(module(1), module(1))
    differs(module(1), module(0))
    differs(module(1), module(1, "third"))
  end)

  it("are told apart by the place of the first difference", function()
    local text, a, b = pl.mismatch(module(1), module(0))
    assert.equal("@main.body.attrs.axis: 1 versus 0", text)
    assert.equal("nn.softmax", a.op.name)
    assert.equal(0, b.attrs.axis)
    assert.equal("only the first module has @other",
      pl.mismatch(module(1), module(1, "third")))
    assert.equal("type List: other definitions", pl.mismatch(
      parse "type List[A] { Nil }\ndef @main() { 1 }",
      parse "type List[A] { None }\ndef @main() { 1 }"))
  end)
end)

describe("the place of a difference", function()
  local x = pl.var("x", f32(2))
  local c = pl.var("c", "bool")
  local f, g = pl.var "f", pl.var "g"
  local rows = {
    { pl.op.tanh(x), pl.op.exp(x), "op: tanh versus exp" },
    { x + 1, x + 2, "args[1].data: 1 versus 2" },
    { x, pl.tuple { x }, "Var versus Tuple" },
    { pl.tuple { x }, pl.tuple { x, x }, "1 versus 2 operands" },
    { pl.tuple { x, pl.tuple {} }, pl.tuple { x, x }, "fields[1]: Tuple versus Var" },
    { ir.Call(f, { x }), ir.Call(f, { c }),
      "args[0]: x versus c, which do not correspond" },
    { ir.Call(f, { x }), ir.Call(g, { x }),
      "callee: f versus g, which do not correspond" },
    { pl.if_(c, x, x + 1), pl.if_(c, x, x * 1), "false_branch.op: add versus multiply" },
    { pl.func({ x }, x), pl.func({ x, c }, x), "1 versus 2 parameters" },
    { pl.func({ x }, 1), pl.func({ c }, 1),
      "params[0].type: Tensor[(2), float32] versus bool" },
    { pl.func({ x }, x, { Inline = 1 }), pl.func({ x }, x), "attrs.Inline: 1 versus none" },
    { pl.func({}, x), pl.func({}, pl.tuple { x }), "body: Var versus Tuple" },
    { pl.func({}, pl.let(c, true, x)), pl.func({}, pl.let(c, false, x)),
      "body.statements[0].value.data: true versus false" },
    { pl.func({}, pl.let(c, true, x)), pl.func({}, x),
      "body: other lets or calls with effects" },
    { ir.TupleGetItem(pl.tuple { x, x }, 0), ir.TupleGetItem(pl.tuple { x, x }, 1),
      "index: 0 versus 1" },
  }
  for _, row in ipairs(rows) do
    it("is told: " .. row[3], function()
      assert.equal(row[3], (pl.mismatch(row[1], row[2])))
    end)
  end

  it("lies in an arm", function()
    local function match(number, pattern)
      return parse(("def @main(%%p: ((int32, int32), int32)) { match (%%p) { (%s, _) => %d } }")
        :format(pattern, number))
    end
    assert.equal("@main.body.clauses[0].rhs.data: 1 versus 2",
      (pl.mismatch(match(1, "_"), match(2, "_"))))
    assert.equal("@main.body.clauses[0]: 0 versus 1 parameters",
      (pl.mismatch(match(1, "_"), match(1, "%a"))))
    assert.equal("@main.body.clauses[0].lhs.patterns[0]: PatternWildcard versus PatternTuple",
      (pl.mismatch(match(1, "_"), match(1, "(_, _)"))))
  end)

  it("is raised with both nodes", function()
    assert.equal(x, pl.assert_equal(x, x))
    local ok, message = pcall(pl.assert_equal, pl.tuple { x + 1 }, pl.tuple { x * 1 })
    assert.is_false(ok)
    assert.matches("not equal: fields%[0%]%.op: add versus multiply", message)
    assert.matches("the first has.*add%(%%x.*the second has.*multiply%(%%x", message)
  end)
end)

describe("programs read again", function()
  it("are equal to what was printed", function()
    local mod = parse [[
type Tree[A] { Leaf(A), Node(Tree[A], Tree[A]) }
def @size[A](%t: Tree[A]) -> int32 {
  match (%t) { Leaf(_) => 1, Node(%l, %r) => @size(%l) + @size(%r) }
}
def @main(%x: Tensor[(2), float32]) {
  let %r = ref(%x);
  let %f = fn (%y: Tensor[(2), float32]) { if (True) { %y } else { ref_read(%r) } };
  (%f(%x), @size(Leaf(1)))
}
]]
    same(mod, assert(pl.parse(tostring(mod))))
    assert(pl.well_formed(mod))
  end)
end)
