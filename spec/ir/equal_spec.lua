-- Equality and hash as Relay defines them, and what pl.assert_equal says. Each
-- case is looked at both ways, and hashes tell exactly what equality tells. TVM's own
-- cases are in tvm_structural_equal_hash_spec.lua.

local pl = require "perilune"
local consistent = require "spec.ir.consistent_equal"

local ir = pl.ir
local same, differs = consistent.same, consistent.differs
local function f32(...) return ir.TensorType({ ... }, "float32") end
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
    local a, b, c = of(list).main, of(list).main, of(other).main
    assert.is_false(pl.equal(a, b))
    assert.is_true(pl.equal(a, b, contents))
    assert.is_nil(pl.mismatch(a, b, contents))
    assert.is_false(pl.equal(a, c, contents))
    assert.truthy(pl.mismatch(a, c, contents))
    assert.is_false(pl.equal(of(list), of(list, "float64"), contents))
    local splat = pl.module { main = pl.func({}, pl.const(pl.tensor.full(7, { 400 }, "float32"))) }
    assert.is_true(pl.equal(splat, of(sevens), contents))
    assert.is_true(pl.equal(of(sevens), splat, contents))
    assert.is_false(pl.equal(of(list), splat, contents))
  end)
end)

describe("leaves", function()
  it("of two kinds differ", function()
    differs(pl.var "v", pl.const(1))
    differs(pl.var "v", pl.tuple {})
  end)
end)

describe("functions", function()
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

describe("type variables of function types", function()
  it("are those types' own: behind one they correspond as before", function()
    for _, text in ipairs {
      "def @main() { let %f = fn [A](%x: A) -> A { %f(%x) }; (%f(1), %f(())) }",
      "type L[A] { Cons(A, L[A]), Nil }\n"
        .. "def @main() { let %c = Cons; (%c(1, Nil), %c((), Nil)) }",
    } do
      local mod = parse(text)
      same(mod, parse(mod:text():gsub("^[^\n]*\n", "")))
    end
    local a, b = ir.TypeVar "a", ir.TypeVar "b"
    local own = ir.FuncType({ a }, a, { a })
    same(ir.TupleType { own, a }, ir.TupleType { ir.FuncType({ b }, b, { b }), a })
    assert.is_false(pl.equal(ir.TupleType { own, a },
      ir.TupleType { ir.FuncType({ b }, b, { b }), b }))
    assert.is_false(pl.equal(ir.FuncType({ own }, a, { a }), ir.FuncType({ own }, b, { a })))
    same(ir.FuncType({ own }, a, { a }), ir.FuncType({ own }, b, { b }))
  end)

  it("may be bound again and again inside, in linear time", function()
    local function nest(first, second)
      local type = ir.FuncType({ first }, first, { first })
      for k = 1, 500 do
        type = ir.FuncType({ type, type }, type, { k % 2 == 0 and first or second })
      end
      return type
    end
    same(nest(ir.TypeVar "a", ir.TypeVar "b"), nest(ir.TypeVar "c", ir.TypeVar "d"))
  end)
end)

describe("calls", function()
  it("tell floats apart beyond 1e-9", function()
    local f = pl.var "f"
    local function epsilon(value) return ir.Call(f, {}, { epsilon = value }) end
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
  it("of functions that call themselves are equal", function()
    local function loop(name)
      local f, x = pl.var(name), pl.var "x"
      return pl.let(f, pl.func({ x }, ir.Call(f, { x })), f)
    end
    same(loop "f", loop "g")
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

describe("values with effects", function()
  local x, y = pl.var("x", "int32"), pl.var("y", "int32")
  local g = pl.global("g", pl.type "fn (int32) -> int32")
  local f = pl.var("f", pl.type "fn (int32) -> int32")

  it("are equal whether their effects are known or not", function()
    local mod = pl.module { g = pl.func({ x }, pl.op.negative(x)), main = pl.func({ y }, g(y)) }
    same(mod, parse(mod:text():gsub("^[^\n]*\n", "")))
    same(g(y), g(y))
  end)

  it("count where they are used, in the order in which they come", function()
    local function two(swapped, used)
      local a, b = f(x), f(y)
      local first, second = swapped and b or a, swapped and a or b
      return pl.func({ f, x, y }, used and pl.tuple { first, second } or second)
    end
    same(two(false, true), two(false, true))
    differs(two(false, true), two(true, true))
    local function read(value)
      local r = pl.var("r", "ref(int32)")
      return pl.func({ r, x }, pl.let(pl.var("u", "()"), ir.RefWrite(r, value), ir.RefRead(r)))
    end
    same(read(x), read(x))
    differs(read(x), read(pl.const(1, "int32")))
  end)

  it("stand in the same order on both sides", function()
    local function parsed(first, second)
      return parse(("def @main(%%f: fn (int32) -> int32) { %%0 = %%f(%d); %%1 = %%f(%d);"
        .. " (%%%d, %%%d) }"):format(first, second, 0, 1)).main
    end
    same(parsed(1, 2), parsed(1, 2))
    differs(parsed(1, 2), parsed(2, 1))
  end)
end)

describe("data types", function()
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

  it("lies in a later branch of what is itself a statement", function()
    local function main(branch)
      return parse("def @main(%c: bool, %r: ref(int32)) { keep if (%c) { ref_write(%r, 0) } else { "
        .. branch .. " }; %r }")
    end
    assert.equal("@main.body.statements[0].false_branch: other lets or calls with effects",
      (pl.mismatch(main "let %b = 1; ref_write(%r, %b)", main "ref_write(%r, 1)")))
  end)

  it("is not where an object of TVM's stands in the metadata", function()
    local mod = assert(pl.parse [=[#[version = "0.0.5"]
def @main(%x: float32) { on_device(%x, virtual_device=meta[VirtualDevice][1]) }
#[metadata]
{"root": 1, "nodes": [{"type_key": ""},
  {"type_key": "Map", "keys": ["VirtualDevice"], "data": [2]},
  {"type_key": "Array", "data": [3, 4]},
  {"type_key": "VirtualDevice", "attrs": {"device_type_int": "1", "virtual_device_id": "0"}},
  {"type_key": "VirtualDevice", "attrs": {"device_type_int": "2", "virtual_device_id": "0"}}],
  "b64ndarrays": []}]=])
    local again = assert(pl.parse(mod:text()))
    assert.matches("virtual_device=meta%[VirtualDevice%]%[0%]", tostring(again))
    pl.assert_equal(mod, again)
    assert.equal(pl.hash(mod), pl.hash(again))
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
    same(mod, assert(pl.parse(mod:text())))
    assert(pl.well_formed(mod))
  end)
end)
