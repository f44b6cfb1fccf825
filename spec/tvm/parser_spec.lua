-- Relay text as TVM reads it: the counterparts of its test_ir_parser.py, by
-- name. What TVM takes as it stands and types afterwards is typed here while it
-- is read, so programs whose types contradict each other are refused.

local pl = require "perilune"

local ir = pl.ir
local HEAD = '#[version = "0.0.5"]\n'
local LIST = "type List[A] { Cons(A, List[A]), Nil }\n"
local shared = (os.getenv "PERILUNE_SHARED" or "../shared") .. "/conformance/relay-text/"

--- The expression; what it prints is read as the same again.
local function expr(text, options)
  local node = assert(pl.parse_expr(text, options))
  local again = assert(pl.parse_expr(node:text(), options))
  assert.is_true(pl.equal(node, again, { map_free_vars = true }))
  assert.equal(node:text(), again:text())
  return node
end

--- The module; likewise.
local function module(text)
  local mod = assert(pl.parse(HEAD .. text))
  local again = assert(pl.parse(mod:text()))
  pl.assert_equal(mod, again)
  assert.equal(mod:text(), again:text())
  return mod
end

--- Both texts are the same expression.
local function same(a, b) pl.assert_equal(expr(a), expr(b), { map_free_vars = true }) end

--- The text is that node.
local function reads_as(text, node)
  pl.assert_equal(expr(text), node, { map_free_vars = true })
end

--- What is said of an expression, or of a module, that cannot be.
local function refused(text)
  local node, diag = pl.parse_expr(text, "e")
  assert.is_nil(node)
  return diag.message
end

local function refused_module(text)
  local mod, diag = pl.parse(HEAD .. text, "m")
  assert.is_nil(mod)
  return diag.message
end

local function value(text)
  local node = expr(text)
  assert.equal("Constant", node.kind)
  return node.data:to_table(), tostring(node.type)
end

local function let(name, bound, body) return pl.let(pl.var(name), bound, body) end

local function int(n) return pl.const(n, "int32") end

describe("test_comments", function()
  it("lines, blocks, blocks in blocks", function()
    for _, text in ipairs { "// a line\n()", "()// the last line", "/* more\n lines */ ()",
      "/* one /* in */ another */ ()", "/**/()", "/* // */ ()", "( /* within */ )" } do
      assert.equal("Tuple", expr(text).kind)
    end
  end)
end)

describe("literals", function()
  it("test_int_literal: values, dtypes, and those that do not fit", function()
    for text, row in pairs { ["7"] = { 7, "int32" }, ["-120"] = { -120, "int32" },
      ["-007"] = { -7, "int32" }, ["-12i"] = { -12, "int32" }, ["-12i16"] = { -12, "int16" },
      ["-12i32"] = { -12, "int32" }, ["-12i64"] = { -12, "int64" },
      ["9223372036854775807"] = { math.maxinteger, "int64" },
      ["-9223372036854775808"] = { math.mininteger, "int64" },
      ["2147483647"] = { 2147483647, "int32" }, ["2147483648"] = { 2147483648, "int64" },
      ["-2147483648"] = { -2147483648, "int32" } } do
      assert.same(row, { value(text) })
    end
    assert.equal("this integer does not fit in int32", refused "2147483648i32")
    assert.equal("this integer does not fit in int32", refused "2147483648i")
    assert.equal("this integer does not fit in int16", refused "-32769i16")
    assert.equal("this integer does not fit in int64", refused "9223372036854775808")
  end)

  it("test_float_literal: points, exponents, suffixes, and those that do not fit", function()
    for text, row in pairs { ["2.0f"] = { 2.0, "float32" }, ["-0.5f"] = { -0.5, "float32" },
      ["2e-1f64"] = { 0.2, "float64" }, ["2E+1f"] = { 20.0, "float32" },
      ["2.5e+1f"] = { 25.0, "float32" }, ["2.5E1"] = { 25.0, "float32" },
      ["5f16"] = { 5.0, "float16" }, ["5f32"] = { 5.0, "float32" }, ["5f"] = { 5.0, "float32" },
      ["5f64"] = { 5.0, "float64" }, ["65504f16"] = { 65504.0, "float16" },
      ["1e308f64"] = { 1e308, "float64" } } do
      assert.same(row, { value(text) })
    end
    assert.equal("this number does not fit in float32", refused "3.5e38f32")
    assert.equal("this number does not fit in float32", refused "-3.5e38f")
    for _, text in ipairs { "65505f16", "65519f16", "65520f16" } do
      assert.equal("this number does not fit in float16", refused(text))
    end
    assert.equal("this number does not fit in bfloat16", refused "3.4e38bf16")
    assert.equal("this number does not fit in float64", refused "1e309f64")
  end)

  it("test_bool_literal", function()
    assert.same({ true, "bool" }, { value "True" })
    assert.same({ false, "bool" }, { value "False" })
  end)

  it("test_negative: two signs are none", function()
    assert.equal(11, (value "--11"))
    assert.equal(-11, (value "---11"))
    assert.equal(-2.5, (value "---2.5f"))
  end)
end)

describe("infix operators", function()
  it("test_bin_op: each is its operator", function()
    for sign, name in pairs { ["*"] = "multiply", ["/"] = "divide", ["+"] = "add",
      ["-"] = "subtract", ["<"] = "less", [">"] = "greater", ["<="] = "less_equal",
      [">="] = "greater_equal", ["=="] = "equal", ["!="] = "not_equal" } do
      reads_as("2 " .. sign .. " 3", pl.call(name, { int(2), int(3) }))
      reads_as("2" .. sign .. "3", pl.call(name, { int(2), int(3) }))
    end
  end)

  it("test_parens: brackets group", function()
    same("2 * 3 + 4", "(2 * 3) + 4")
    assert.is_false(pl.equal(expr "2 * 3 + 4", expr "2 * (3 + 4)"))
  end)

  it("test_op_assoc: products before sums before comparisons", function()
    same("2 * 3 + 4 < 5 == True", "(((2 * 3) + 4) < 5) == True")
    same("True == 2 < 3 + 4 * 5", "True == (2 < (3 + (4 * 5)))")
    same("9 - 4 - 3", "(9 - 4) - 3")
  end)
end)

describe("names", function()
  it("test_vars: variables, globals, operators with and without a prefix", function()
    local bound = expr("fn () { let %a = (); %a }").body
    assert.same({ "Var", "a" }, { bound.body.kind, bound.body.name })
    local global = expr "@a"
    assert.same({ "GlobalVar", "a" }, { global.kind, global.name })
    for _, name in ipairs { "multiply", "nn.global_max_pool2d" } do
      local op = expr(name)
      assert.same({ "Op", name }, { op.kind, op.op.name })
    end
  end)

  it("test_meta_ref: without such an entry", function()
    assert.equal("the metadata section has no entries of 'some.Type'",
      refused "meta[some.Type][12]")
  end)
end)

describe("bindings", function()
  it("test_let: one, and one behind the other", function()
    reads_as("let %a = 2; ()", let("a", int(2), pl.tuple {}))
    reads_as("let %a = 2; let %b = 3; ()", let("a", int(2), let("b", int(3), pl.tuple {})))
  end)

  it("test_seq: what is no binding binds nothing", function()
    reads_as("(); ()", let("_", pl.tuple {}, pl.tuple {}))
    reads_as("let %_ = 2; ()", let("any", int(2), pl.tuple {}))
  end)

  it("test_graph: a number is one node", function()
    local unit = pl.tuple {}
    reads_as("%0 = (); %1 = 2; (%0, %0, %1)", pl.tuple { unit, unit, int(2) })
    assert.is_false(pl.equal(expr "%0 = (); (%0, %0)", expr "((), ())"))
  end)

  it("test_graph_single: numbers begin anywhere", function()
    reads_as("%7 = (); %7", pl.tuple {})
  end)

  it("test_let_global_var: none can be bound", function()
    assert.equal("expected a local variable, got '@a'; did you mean '%a'?",
      refused "let @a = 2; ()")
  end)

  it("test_let_op: nor can an operator", function()
    assert.equal("expected a local variable, got 'a'; did you mean '%a'?", refused "let a = 2; ()")
  end)
end)

describe("expressions", function()
  it("test_tuple", function()
    reads_as("()", pl.tuple {})
    reads_as("(5,)", pl.tuple { int(5) })
    reads_as("(5, 6)", pl.tuple { int(5), int(6) })
    reads_as("(5, 6, 7)", pl.tuple { int(5), int(6), int(7) })
    reads_as("(5, 6,)", pl.tuple { int(5), int(6) })
  end)

  it("test_tuple_proj: of a tuple that stands there; calls of what is no function", function()
    local x = pl.var "x"
    reads_as("free_var %x; %x((%x,).0, %x)",
      ir.Call(x, { ir.TupleGetItem(pl.tuple { x }, 0), x }))
    assert.matches("the callee is not a function",
      refused "free_var %x: float32; %x((%x,).0, %x)")
  end)

  it("test_func: parameters, annotations, attributes", function()
    local x, y = pl.var "x", pl.var "y"
    reads_as("fn () { 5 }", pl.func({}, int(5)))
    reads_as("fn (%x) { %x }", pl.func({ x }, x))
    reads_as("fn (%x, %y) { %x + %y }", pl.func({ x, y }, x + y))
    local z = pl.var("z", "int32")
    reads_as("fn (%z: int32) -> int32 { %z }", pl.func({ z }, z, "int32"))
    reads_as("fn (n=5) { () }", pl.func({}, pl.tuple {}, nil, { n = 5 }))
  end)

  it("test_ifelse", function()
    reads_as("if (True) { 5 } else { 6 }", pl.if_(pl.const(true), int(5), int(6)))
  end)

  it("test_ifelse_scope: a branch's names end with it", function()
    assert.equal("no variable is called 'a'",
      refused "if (True) { let %a = (); () } else { %a }")
  end)

  it("test_ref: made, written and read", function()
    local main = module [[
def @main(%x: float32) {
  %0 = ref(%x);
  ref_write(%0, 2f);
  ref_read(%0)
}]].main
    assert.equal("fn (float32) -> float32", tostring(main.type))
  end)

  it("test_call: names, no arguments, many, functions that stand there, results", function()
    local f, x, y = pl.var "f", pl.var "x", pl.var "y"
    local same_x = pl.func({ x }, x)
    reads_as("let %f = fn (%x) { %x }; 2 * %f(3)",
      pl.let(f, same_x, pl.call("multiply", { int(2), ir.Call(f, { int(3) }) })))
    f = pl.var "f"
    reads_as("let %f = fn () { 5 }; %f()", pl.let(f, pl.func({}, int(5)), ir.Call(f, {})))
    f = pl.var "f"
    reads_as("let %f = fn (%x, %y) { %x * %y }; %f(2, 3)",
      pl.let(f, pl.func({ x, y }, x * y), ir.Call(f, { int(2), int(3) })))
    reads_as("(fn (%x) { %x })(5)", ir.Call(same_x, { int(5) }))
    local curried = "let %f = fn (%x) { fn (%y) { %x * %y } }; "
    same(curried .. "%f(2); %f(2)(3)", curried .. "let %g = %f(2); %0 = %f(2); %0(3)")
    reads_as("abs(5)", pl.call("abs", { int(5) }))
  end)
end)

describe("definitions", function()
  it("test_defn: with and without annotations", function()
    assert.equal("fn (int32) -> int32",
      tostring(module("def @same(%x: int32) -> int32 { %x }").same.type))
    assert.equal("Function", module("def @same(%x) { %x }").same.kind)
  end)

  it("test_recursive_call", function()
    local mod = module "def @loop(%x: int32) -> int32 { @loop(%x) }"
    assert.equal("int32", tostring(mod.loop.body.type))
  end)
end)

describe("types", function()
  it("test_incomplete_type: stands for what the value is", function()
    reads_as("let %a: _ = (); ()", let("a", pl.tuple {}, pl.tuple {}))
  end)

  it("test_builtin_types: numbers of each width, and vectors of them", function()
    for _, name in ipairs { "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
      "uint64", "float16", "float32", "float64", "bool", "int8x4", "uint1x4", "float16x4" } do
      local f = expr(("fn (%%x: %s) { %%x }"):format(name))
      assert.equal(name, tostring(f.params[1].type))
    end
    assert.equal("bool", tostring(expr("fn (%x: uint1) { %x }").params[1].type))
  end)

  it("test_tensor_type: dims, unknown ones, none", function()
    for text, name in pairs { ["Tensor[(), float32]"] = "float32",
      ["Tensor[(1), float32]"] = "Tensor[(1), float32]",
      ["Tensor[(1,), float32]"] = "Tensor[(1), float32]",
      ["Tensor[(1, 1), float32]"] = "Tensor[(1, 1), float32]",
      ["Tensor[(?, 1), float32]"] = "Tensor[(?, 1), float32]" } do
      assert.equal(name, tostring(expr(("fn (%%x: %s) { %%x }"):format(text)).params[1].type))
    end
  end)

  it("test_function_type", function()
    for _, type in ipairs { "fn () -> int32", "fn (int32) -> int32", "fn (int32, int32) -> int32",
      "fn (fn () -> (int32,)) -> fn () -> ()" } do
      assert.equal(type, tostring(expr(("free_var %%f: %s; %%f"):format(type)).type))
    end
    same("let %f: fn (int32) -> int32 = fn (%x: int32) -> int32 { 5 }; ()",
      "let %g = fn (%y: int32) -> int32 { 5 }; ()")
  end)

  it("test_tuple_type", function()
    for type, text in pairs { ["()"] = "()", ["(int32,)"] = "(5,)",
      ["(int32, int32)"] = "(5, 6)" } do
      same(("let %%a: %s = %s; ()"):format(type, text), ("let %%a = %s; ()"):format(text))
    end
  end)
end)

describe("data types", function()
  local function constructors(mod, name)
    local out = {}
    for i, row in ipairs(mod.types[name].constructors) do
      local inputs = {}
      for j, type in ipairs(row.inputs) do inputs[j] = tostring(type) end
      out[i] = row.name .. "(" .. table.concat(inputs, ", ") .. ")"
    end
    return out
  end

  it("test_adt_defn", function()
    assert.same({ "One()" }, constructors(module "type Only { One }", "Only"))
  end)

  it("test_adt_any: fields with unknown dims", function()
    assert.same({ "box(Tensor[(?, 1), uint16])" },
      constructors(module "type boxes { box(Tensor[(?, 1), uint16]), }", "boxes"))
  end)

  it("test_empty_adt_defn", function()
    assert.same({}, constructors(module "type None { }", "None"))
  end)

  it("test_multiple_cons_defn", function()
    assert.same({ "Cons(A, List[A])", "Nil()" }, constructors(module(LIST), "List"))
  end)

  it("test_multiple_type_param_defn", function()
    assert.same({ "This(A)", "That(B)", "Both(A, B)" },
      constructors(module "type These[A, B] { This(A), That(B), Both(A, B) }", "These"))
  end)

  it("test_match: complete and not, patterns with types, arms with and without braces", function()
    for keyword, complete in pairs { match = true, ["match?"] = false } do
      local mod = module(LIST .. [[
def @count[A](%l: List[A]) -> int32 {
  ]] .. keyword .. [[ (%l) {
    Cons(_, %rest: List[A]) => {
      ();
      1 + @count(%rest)
    },
    Nil => 0,
  }
}]])
      local node = mod.count.body
      assert.equal("Match", node.kind)
      assert.equal(complete, node.complete)
      assert.equal(2, #node.clauses)
    end
  end)

  it("test_adt_cons_expr: calls of constructors, one without fields alone", function()
    local mod = module(LIST .. "def @one(%x: int32) -> List[int32] { Cons(%x, Nil) }")
    pl.assert_equal(mod,
      module(LIST .. "def @one(%x: int32) -> List[int32] { %0 = Nil; Cons(%x, %0) }"))
    assert.equal("List[int32]", tostring(mod.one.body.type))
  end)

  it("test_duplicate_adt_defn", function()
    assert.equal("the type 'List' is defined twice", refused_module(LIST .. LIST))
  end)

  it("test_duplicate_adt_cons: one name in two types", function()
    assert.equal("the constructor 'One' is defined by 'A' already",
      refused_module "type A { One } type B { One }")
  end)

  it("test_duplicate_adt_cons_defn: no expression defines a type; a constructor may "
    .. "have a type's name", function()
    assert.equal("expected an expression, got 'type'",
      refused "type A { B } type B { A }")
    assert.same({ "A()" }, constructors(module "type A { B } type B { A }", "B"))
  end)

  it("test_duplicate_global_var", function()
    assert.equal("the function 'f' is defined twice",
      refused_module "def @f[A](%x: A) -> A { %x } def @f[A](%x: A) -> A { %x }")
  end)

  it("test_extern_adt_defn: alone, and in front of others", function()
    assert.is_true(module("extern type T[A]").types.T.extern)
    local mod = module "extern type T[A] type B { C(T[int32]) } def @f(%b: B) { %b }"
    assert.same({ "C(T[int32])" }, constructors(mod, "B"))
  end)

  it("test_tuple_return_value: one constructor, two types", function()
    local mod = module [[
type Box[T] { box(T) }
def @main() { %0 = (); %1 = box(%0); %2 = box(0f); (%1, %2,) }]]
    assert.equal("(Box[()], Box[float32])", tostring(mod.main.body.type))
  end)
end)

describe("whole programs", function()
  local PRELUDE = LIST .. [=[
type Option[A] { Some(A), None }
type Tree[A] { Rose(A, List[Tree[A]]) }

def @id[A](%x: A) -> A { %x }
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B) -> fn (A) -> C {
  fn (%x: A) -> C { %f(%g(%x)) }
}
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) {
    Cons(%head, %tail) => { Cons(%f(%head), @map(%f, %tail)) },
    Nil => { Nil },
  }
}
def @foldl[A, B](%f: fn (A, B) -> A, %start: A, %l: List[B]) -> A {
  match (%l) {
    Cons(%head, %tail) => { @foldl(%f, %f(%start, %head), %tail) },
    Nil => { %start },
  }
}
def @rev[A](%l: List[A]) -> List[A] {
  @foldl(fn (%seen: List[A], %x: A) -> List[A] { Cons(%x, %seen) }, Nil, %l)
}
def @find[A](%f: fn (A) -> bool, %l: List[A]) -> Option[A] {
  match (%l) {
    Cons(%head, %tail) => { if (%f(%head)) { Some(%head) } else { @find(%f, %tail) } },
    Nil => { None },
  }
}
def @size[A](%t: Tree[A]) -> int32 {
  match (%t) {
    Rose(_, %children) => {
      1 + @foldl(fn (%n: int32, %c: Tree[A]) -> int32 { %n + @size(%c) }, 0, %children)
    },
  }
}
def @iterate[A](%f: fn (A) -> A, %n: int32) -> fn (A) -> A {
  if (%n == 0) { @id } else { @compose(%f, @iterate(%f, %n - 1)) }
}
]=]

  it("test_load_prelude: lists, options, trees and what works on them", function()
    local mod = module(PRELUDE)
    assert.equal("fn [A](Tree[A]) -> int32", tostring(mod.size.type))
    assert.equal("fn [A, B](fn (A) -> B, List[A]) -> List[B]", tostring(mod.map.type))
  end)

  it("test_import_grad: a program that names what another defines", function()
    local mod = assert(pl.parse(HEAD .. [[
def @sums(%l: List[int32]) -> List[int32] {
  @map(fn (%x: int32) -> int32 { %x + %x }, @rev(%l))
}]], { init_module = module(PRELUDE) }))
    assert.equal("fn (List[int32]) -> List[int32]", tostring(mod.sums.type))
    pl.assert_equal(mod, assert(pl.parse(mod:text())))
  end)

  local function workload(name)
    local file = io.open(shared .. "workload/" .. name)
    if not file then return pending("no " .. shared) end
    local text = file:read "a"
    file:close()
    return module(text:gsub("^#[^\n]*\n", "")), text
  end

  it("test_mlp", function()
    local mod, text = workload "mlp.relay"
    if mod then assert.equal(text, mod:text()) end
  end)

  it("test_mlp_inlined_params: constants come back out of the metadata", function()
    local mod = workload "mlp.relay"
    if not mod then return end
    local values, main = {}, mod.main
    for _, param in ipairs(main.params) do
      if param.name ~= "data" then
        values[param] = pl.tensor.full(0, param.type.shape, "float32")
      end
    end
    local body = pl.bind(main.body, values)
    local inlined = pl.module { main = pl.func(pl.free_vars(body), body) }
    local again = assert(pl.parse(inlined:text()))
    assert.equal(inlined:text(), again:text())
    assert.equal(1, #again.main.params)
  end)

  it("test_parse_if_in_binding", function()
    local mod = module "def @main(%b: bool) { %0 = if (%b) { 5 } else { 6 }; %0 }"
    assert.equal("If", mod.main.body.kind)
  end)
end)

describe("attributes", function()
  it("test_op_string_attr", function()
    local call = expr [[
free_var %x: Tensor[(1, 8, 8, 3), float32];
free_var %w: Tensor[(1, 1, 3, 5), float32];
nn.conv2d(%x, %w, channels=5, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO")]]
    assert.equal("nn.conv2d", call.op.name)
    assert.equal("NHWC", call.attrs.data_layout)
    assert.equal("HWIO", call.attrs.kernel_layout)
  end)

  it("test_call_attrs: of a call of a function, whatever they are", function()
    local mod = module [[
def @main(%p: Tensor[(2, 4), float32], %q: Tensor[(2, 4), float32]) {
  %1 = fn (%x: Tensor[(2, 4), float32], %w: Tensor[(2, 4), float32]) {
    %0 = nn.dense(%x, %w, units=None);
    nn.relu(%0) + 2f
  };
  %1(%p, %q, name="of_the_call", attrs_type_key="attrs.TestAttrs")
}]]
    assert.equal("of_the_call", mod.main.body.attrs.name)
    assert.matches('attrs_type_key="attrs.TestAttrs"', mod:text(), 1, true)
  end)

  it("test_func_attrs: of a function, with dots in names", function()
    local f = expr(
      "fn (%x: Tensor[(2, 3), float32], Primitive=1, relay.reshape_only=1) { "
        .. "reshape(%x, newshape=[-1]) }")
    assert.same({ 1, 1 }, { f.attrs.Primitive, f.attrs["relay.reshape_only"] })
  end)

  it("test_tokenize_inf: text that was printed gives nodes their places", function()
    local mod = module
      "def @main(%x: Tensor[(3, 4), float32]) { clip(%x, a_min=-inff, a_max=inff) }"
    local text = mod:text()
    assert.matches("clip%(%%x, a_min=%-inff, a_max=inff%)", text)
    local placed = assert(pl.parse(text, "GeneratedSource"))
    pl.assert_equal(mod, placed)
    assert.equal("GeneratedSource:3:3", placed.main.body:history()[1].source)
  end)
end)

describe("test_init_module_and_metatable", function()
  local data = pl.tensor { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } }
  local given = module(LIST .. [[
def @f(%y: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { negative(%y) }]])
  local MAIN = "def @main(%x: Tensor[(2, 3), float32]) { add(@f(%x), meta[relay.Constant][0]) }"

  it("functions and constants that stand elsewhere", function()
    local mod = assert(pl.parse(HEAD .. MAIN,
      { name = "main.relay", init_module = given, init_meta = { ["relay.Constant"] = { data } } }))
    assert.equal(2, #mod)
    assert.equal(given.f, mod.f)
    assert.equal(data, mod.main.body.args[2].data)
    pl.assert_equal(mod, assert(pl.parse(mod:text())))
  end)

  it("entries that are given come behind those of the text", function()
    local text = pl.module { main = pl.func({}, pl.const { 7.0, 8.0 }) }:text()
    local both = text:gsub("meta%[relay.Constant%]%[0%][^\n]*",
      "(meta[relay.Constant][0], meta[relay.Constant][1])", 1):gsub("%-> [^{]*", "")
    local mod = assert(pl.parse(both,
      { init_meta = { ["relay.Constant"] = { pl.const { 1.0 } } } }))
    assert.same({ 7.0, 8.0 }, mod.main.body.fields[1].data:to_table())
    assert.same({ 1.0 }, mod.main.body.fields[2].data:to_table())
    assert.equal("the metadata section has no entry 1 of 'relay.Constant'",
      select(2, pl.parse(both)).message)
  end)

  it("objects of attributes, such as devices", function()
    local function device(number)
      return ('[{"type_key": "VirtualDevice", "attrs": {"device_type_int": "%d", '
        .. '"memory_scope": 1, "target": 0, "virtual_device_id": "0"}}, '
        .. '{"type_key": "runtime.String"}]'):format(number)
    end
    local options = { init_meta = { VirtualDevice = { device(1), device(2) },
      ["relay.Constant"] = { pl.const { 1.0, 2.0 } } } }
    local mod = assert(pl.parse(HEAD .. [[
def @main(%a {virtual_device=meta[VirtualDevice][1]}: Tensor[(2), float32],
          virtual_device=meta[VirtualDevice][0]) {
  %0 = on_device(%a, virtual_device=meta[VirtualDevice][0], constrain_result=True);
  %1 = device_copy(%0, src_virtual_device=meta[VirtualDevice][0],
                   dst_virtual_device=meta[VirtualDevice][1]);
  add(%1, meta[relay.Constant][0])
}]], options))
    assert.equal(device(1), mod.main.attrs.virtual_device)
    local text = mod:text()
    assert.matches("%a {virtual_device=meta[VirtualDevice][", text, 1, true)
    local again = assert(pl.parse(text))
    pl.assert_equal(mod, again)
    assert.equal(text, again:text())
    local _, diag = pl.parse(HEAD .. "def @f(d=meta[VirtualDevice][2]) { 1 }", options)
    assert.equal("the metadata section has no entry 2 of 'VirtualDevice'", diag.message)
    _, diag = pl.parse(HEAD .. "def @f() { meta[VirtualDevice][0] }", options)
    assert.equal("this entry of the metadata section is not a constant", diag.message)
    for _, entry in ipairs { "relay.Constant][0", "VirtualDevice][1" } do
      _, diag = pl.parse(HEAD .. "def @f(%x: Tensor[(meta[" .. entry .. "]), int8]) { %x }",
        options)
      assert.equal("this entry of the metadata section is not a dim", diag.message)
    end
  end)

  it("data types are extended in a copy", function()
    local mod = assert(pl.parse(HEAD .. "type Pair { P(List[int32], int8) }",
      { init_module = given }))
    assert.truthy(mod.types.Pair)
    assert.is_nil(given.types.Pair)
    assert.equal("List[int32]", tostring(expr("Cons(1, Nil)", { init_module = given }).type))
  end)

  it("nothing is defined again, and all names are known", function()
    local mod, diag = pl.parse(HEAD .. [[
def @f() { 1 }
type List { One }
def @g() { @ff() }]], { init_module = given, name = "t" })
    assert.is_nil(mod)
    assert.equal("the function 'f' is defined by the given module already", diag.message)
    assert.equal("the type 'List' is defined by the given module already",
      diag.notes[1].message)
    assert.equal("no function is called 'ff'", diag.notes[2].message)
    local node
    node, diag = pl.parse_expr("@h", { init_module = given })
    assert.is_nil(node)
    assert.equal("no function is called 'h'", diag.message)
  end)

  it("options that are none are refused", function()
    local function message(options)
      local ok, err = pcall(pl.parse, HEAD, options)
      assert.is_false(ok)
      return err.message
    end
    assert.equal("reading text has no option 'x'", message { x = 1 })
    assert.equal("option 'name' is a string, got a table", message { name = {} })
    assert.equal("option 'init_module' is a module, got a number", message { init_module = 3 })
    assert.equal("option 'init_meta' is a table, got a number", message { init_meta = 3 })
    assert.equal("init_meta: a type key is a string, got a number", message { init_meta = { {} } })
    assert.equal("init_meta: the entries of 'x' are a list, got a boolean",
      message { init_meta = { x = true } })
    assert.equal("init_meta: entry 1 of 'VirtualDevice' is not an object of that type",
      message { init_meta = { VirtualDevice = { "a device" } } })
    assert.equal("init_meta: entry 1 of 'Target' is not an object of that type",
      message { init_meta = { Target = { '[{"type_key": "VirtualDevice"}]' } } })
    assert.equal("init_meta: the entries of 'relay.Constant' are a list, got a number",
      message { init_meta = { ["relay.Constant"] = 3 } })
    assert.equal("init_meta: entry 1 of 'relay.Constant' is a Var",
      message { init_meta = { ["relay.Constant"] = { pl.var "x" } } })
    assert.equal("init_meta: entry 2 of 'relay.Constant' is not a tensor",
      message { init_meta = { ["relay.Constant"] = { 1, print } } })
  end)
end)
