-- Relay text as it is read: what each form means, and what is said of text that
-- has none. Names of groups and cases follow what TVM's parser pins.

local pl = require "perilune"

local HEAD = '#[version = "0.0.5"]\n'

local function module(text) return assert(pl.parse(HEAD .. text, "m.relay")) end

--- The body of the function @main.
local function main(text) return module(text).functions.main end

--- The text of an expression, without the types behind it.
local function shown(text)
  local node = assert(pl.parse_expr(text, "e.relay"))
  return (tostring(node):gsub(" /%*.-%*/", ""))
end

--- What is said of bad text: the first error, and how many follow.
local function refused(text)
  local m, diag = pl.parse(text, "m.relay")
  assert.is_nil(m)
  return tostring(diag), diag
end

--- The same of a module with its version in the first line.
local function bad(text) return (refused(HEAD .. text)) end

local function constant(text)
  local node = assert(pl.parse_expr(text))
  assert.equal("Constant", node.kind)
  return node
end

describe("literals", function()
  it("are int32, or int64 when they need it", function()
    assert.equal("int32", tostring(constant("5").type))
    assert.equal("int32", tostring(constant("2147483647").type))
    assert.equal("int64", tostring(constant("2147483648").type))
    assert.equal("int64", tostring(constant("1i64").type))
    assert.equal("int16", tostring(constant("1i16").type))
    assert.equal("int8", tostring(constant("-128i8").type))
    assert.equal("uint8", tostring(constant("255u8").type))
  end)
  it("of floats have a suffix or a point", function()
    for text, dtype in pairs { ["1f"] = "float32", ["1.5"] = "float32", ["1e-3"] = "float32",
      ["1.0f16"] = "float16", ["2f64"] = "float64", ["1bf16"] = "bfloat16" } do
      assert.equal(dtype, tostring(constant(text).type))
    end
  end)
  it("are True and False", function()
    assert.equal("bool", tostring(constant("True").type))
    assert.equal("False", shown "False")
  end)
  it("fold their signs in pairs", function()
    assert.equal("10", shown "--10")
    assert.equal("-10", shown "---10")
  end)
  it("know infinity and what is no number", function()
    assert.equal("inff", shown "inff")
    assert.equal("-inff64", shown "-inff64")
    assert.equal("nanf16", shown "nanf16")
  end)
  it("that do not fit are refused", function()
    local text = refused(HEAD .. "def @main() { 300i8 }")
    assert.equal([[m.relay:2:15: error: this integer does not fit in int8
    def @main() { 300i8 }
                  ^~~~~]], text)
    assert.matches("does not fit in int64", bad("def @main() { 99999999999999999999 }"))
    assert.matches("unknown suffix 'q' of a number", bad("def @main() { 1q }"))
  end)
end)

describe("comments", function()
  it("reach to the end of the line, or nest", function()
    assert.equal("()", shown "// a\n /* b /* c */ d */ ()")
  end)
  it("without an end are refused", function()
    assert.matches("this comment is not closed", bad("/* /* */ def @main() { () }"))
  end)
end)

describe("infix operators", function()
  it("bind as in TVM, from left to right", function()
    local same = {
      ["%a + %b * %c"] = "add(%a, multiply(%b, %c))",
      ["%a - %b - %c"] = "subtract(subtract(%a, %b), %c)",
      ["%a * %b / %c"] = "divide(multiply(%a, %b), %c)",
      ["%a + %b < %c"] = "less(add(%a, %b), %c)",
      ["%a < %b == (%c >= %a)"] = "equal(less(%a, %b), greater_equal(%c, %a))",
      ["%a != %b"] = "not_equal(%a, %b)",
      ["(%a + %b) * %c"] = "multiply(add(%a, %b), %c)",
      ["%a -1"] = "subtract(%a, 1)",
    }
    for infix, prefix in pairs(same) do
      local free = "free_var %a: int32; free_var %b: int32; free_var %c: int32; "
      local a, b = assert(pl.parse_expr(free .. infix)), assert(pl.parse_expr(free .. prefix))
      assert.equal(tostring(b), tostring(a))
    end
  end)
end)

describe("names", function()
  it("may be any, in quotes", function()
    local f = main 'def @main(%"a b": int32, %"": int32) { %"a b" + %"" }'
    assert.equal("a b", f.params[1].name)
  end)
  it("hide those outside until their scope ends", function()
    local m = module "def @main(%x: int32) { let %y = { let %x = 1; %x }; add(%x, %y) }"
    assert.truthy(pl.equal(m,
      module "def @main(%a: int32) { let %y = { let %b = 1; %b }; add(%a, %y) }"))
  end)
  it("that mean nothing are refused, with the nearest", function()
    assert.equal([[m.relay:2:29: error: no variable is called 'imput'; did you mean 'input'?
    def @main(%input: int32) { (%imput, 1) }
                                ^~~~~~]], bad("def @main(%input: int32) { (%imput, 1) }"))
    assert.matches("no operator is called 'nn.rele'; did you mean 'nn.relu'%?",
      bad("def @main(%x: float32) { nn.rele(%x) }"))
    assert.matches("no function is called 'mian'; did you mean 'main'%?",
      bad("def @main() { @mian() }"))
    assert.matches("no type is called 'int23'; did you mean 'int32'%?",
      bad("def @main(%x: int23) { %x }"))
    assert.matches("the graph variable '%%1' is not defined before this use",
      bad("def @main() { %0 = add(%1, 1); %1 = 2; %0 }"))
  end)
end)

describe("graph variables", function()
  it("are one node, however often they are used", function()
    local shared = module "def @main(%x: int32) { %0 = add(%x, %x); add(%0, %0) }"
    local twice = module "def @main(%x: int32) { add(add(%x, %x), add(%x, %x)) }"
    assert.falsy(pl.equal(shared, twice))
  end)
end)

describe("let", function()
  it("binds in sequence", function()
    local f = main "def @main() { let %x = 1; let %y = %x + 2; %y }"
    assert.equal("Let", f.body.kind)
    assert.matches("let %%y: int32 [^\n]* = add%(%%x", tostring(f))
  end)
  it("takes an annotation", function()
    local f = main [[def @main(%y: Tensor[*, float32]) {
      let %x: Tensor[(N), float32] = nn.relu(%y); %x }]]
    assert.equal("Tensor[(N), float32]", tostring(f.body.var.type))
  end)
  it("is what `e; e` stands for", function()
    assert.equal("Let", main("def @main() { 1; 2 }").body.kind)
  end)
  it("of a function may call itself", function()
    local f = main [[def @main(%n: int32) -> int32 {
      let %f: fn (int32) -> int32 = fn (%k: int32) -> int32 {
        if (%k < 1) { 0 } else { %f(%k - 1) } };
      %f(%n) }]]
    assert.truthy(pl.equal(f,
      assert(pl.parse(HEAD .. "def @main" .. tostring(f):sub(4))).functions.main))
  end)
  it("stands in parentheses where it is no tail", function()
    local m = module "def @main(%x: int32) { add((let %y = %x; %y), 1) }"
    assert.truthy(pl.equal(m, assert(pl.parse(m:text()))))
  end)
end)

describe("if", function()
  it("has two branches", function()
    local f = main "def @main(%c: bool) { if (%c) { 1 } else { 2 } }"
    assert.equal("If", f.body.kind)
    assert.matches("expected 'else', got '}'", bad("def @main(%c: bool) { if (%c) { 1 } }"))
  end)
end)

describe("tuples", function()
  it("have any number of fields, one with a comma", function()
    assert.equal("()", shown "()")
    assert.equal("(1,)", shown "(1,)")
    assert.equal("(1, 2)", shown "(1, 2)")
    assert.equal("1", shown "(1)")
  end)
  it("are projected by numbers, again and again", function()
    local f = main "def @main(%t: ((int32, float32), bool)) { %t.0.1 }"
    assert.equal("float32", tostring(f.body.type))
  end)
end)

describe("functions", function()
  it("are values", function()
    local f = main "def @main(%x: int32) { fn (%y: int32) -> int32 { %x + %y } }"
    assert.equal("Function", f.body.kind)
  end)
  it("are called from anywhere in the module", function()
    local m = module "def @a(%x: int32) -> int32 { @b(%x) } def @b(%x: int32) -> int32 { @a(%x) }"
    assert.equal("int32", tostring(m.functions.a.body.type))
  end)
  it("are called one behind the other", function()
    local f = main "def @main(%f: fn (int32) -> fn (int32) -> int32) { %f(1)(2) }"
    assert.equal("int32", tostring(f.body.type))
  end)
  it("have attributes", function()
    local f = main('def @main(%x: int32, Inline=1, Compiler="c", l=[[1], [2, 3]], e=[], '
      .. "f=0.5f, b=True, n=None) { %x }")
    assert.equal(1, f.attrs.Inline)
    assert.equal("c", f.attrs.Compiler)
    assert.equal(0.5, f.attrs.f)
  end)
  it("of one name are refused", function()
    assert.equal([[m.relay:3:5: error: the function 'f' is defined twice
    def @f() { 2 }
        ^~]], bad("def @f() { 1 }\ndef @f() { 2 }"))
  end)
end)

describe("types", function()
  local function type_of(text) return tostring(main("def @main(%x: " .. text
    .. ") { %x }").params[1].type) end
  it("read as they print", function()
    for _, text in ipairs { "int32", "bool", "Tensor[(2, 3), float32]", "Tensor[(?, N), int8]",
      "Tensor[*, float16]", "(int32, bool)", "(int32,)", "()", "fn (int32, (bool,)) -> ()",
      "ref(int32)", "seq(Tensor[(?), float32])", "optional(seq(int64))", "map(int64, float32)",
      'opaque("a::b")', "sparse(Tensor[(3), float32])",
      "Tensor[(2*N-1, floordiv(N, 2), min(M, N)), float32]", 'Tensor[("a b", N+1), float32]',
      "Tensor[(4294967296i64), uint8]", "Tensor[(0), ?]" } do
      assert.equal(text, type_of(text))
    end
  end)
end)

describe("a number's type without a width", function()
  it("has 32 bits", function()
    local f = main "def @main(%a: int, %b: uint, %c: Tensor[(2), float]) { (%a, %b, %c) }"
    assert.equal("(int32, uint32, Tensor[(2), float32])", tostring(f.body.type))
  end)
end)

describe("a type alone", function()
  it("may nest to any depth", function()
    local deep = ("("):rep(100000) .. "int8" .. (",)"):rep(100000)
    assert.equal("tuple", pl.type(deep).kind)
  end)
  it("has more operators on dims", function()
    assert.equal("Tensor[(floordiv(N, 2), floormod(N, 3)), int8]",
      tostring(pl.type "Tensor[(N//2, N%3), int8]"))
  end)
  it("that is none is refused where it goes wrong", function()
    local ok, diag = pcall(pl.type, "Tensor[(1, 2), float33]")
    assert.is_false(ok)
    assert.equal([[type:1:16: error: no dtype is called 'float33'; did you mean 'float32'?
    Tensor[(1, 2), float33]
                   ^~~~~~~]], (tostring(diag):gsub("\nstack traceback.*", "")))
  end)
end)

describe("data types", function()
  local LIST = "type List[A] { Cons(A, List[A]), Nil, }\n"
  it("have type parameters and constructors", function()
    local m = module(LIST .. "def @main() -> List[int32] { Cons(1, Cons(2, Nil)) }")
    assert.matches("type List%[A%] {\n  Cons%(A, List%[A%]%),\n  Nil,\n}", tostring(m))
  end)
  it("may be empty, or defined elsewhere", function()
    assert.truthy(module "type Empty { } def @main(%x: Empty[]) { %x }")
    assert.truthy(module "extern type T[A] def @main(%x: T[int32]) { %x }")
    assert.matches("an extern type has no constructors", bad("extern type T { A }"))
  end)
  it("are matched", function()
    local f = main(LIST
      .. "def @main(%l: List[int32]) { match (%l) { Cons(%h, _) => { %h }, Nil => { 0 }, } }")
    assert.equal("Match", f.body.kind)
    f = main(LIST .. "def @main(%l: List[int32]) { match? (%l) { Cons(%h, Cons(_, %t)) => 1 } }")
    assert.equal("Match", f.body.kind)
  end)
  it("are matched without parentheses, and are types without brackets", function()
    local with = module("type N { Z, S(N) }\n"
      .. "def @f(%n: N[]) -> N[] { match (%n) { Z => { Z }, S(%m) => { @f(%m) } } }")
    assert.truthy(pl.equal(with, module("type N { Z, S(N) }\n"
      .. "def @f(%n: N) -> N { match %n { Z => Z, S(%m) => @f(%m) } }")))
  end)
  it("of one name, and constructors of one name, are refused", function()
    assert.matches("the type 'T' is defined twice", bad("type T { A } type T { B }"))
    assert.matches("the constructor 'A' is defined by 'T' already",
      bad("type T { A } type S { A }"))
    assert.matches("no constructor is called 'Con'; did you mean 'Cons'%?",
      (refused(HEAD .. LIST .. "def @main(%l: List[int32]) { match? (%l) { Con(%h, _) => 1 } }")))
  end)
end)

describe("attributes of calls", function()
  local CONV = "def @main(%x: Tensor[(1, 3, 4, 4), float32], %w: Tensor[(8, 3, 1, 1), float32]) { "
  it("are those of the operator", function()
    local f = main(CONV .. "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], data_layout=\"NCHW\") }")
    assert.equal("Tensor[(1, 8, 6, 6), float32]", tostring(f.body.type))
  end)
  it("are refused when it has no such", function()
    assert.matches("'nn.conv2d' has no attribute 'paddding'; did you mean 'padding'%?",
      bad(CONV .. "nn.conv2d(%x, %w, paddding=[0, 0]) }"))
    assert.matches("attribute 'groups' takes an integer",
      bad(CONV .. 'nn.conv2d(%x, %w, groups="a") }'))
    assert.matches("attribute 'groups' is given twice",
      bad(CONV .. "nn.conv2d(%x, %w, groups=1, groups=1) }"))
  end)
  it("may be any where the operator is not known", function()
    local f = main('def @main(%x: int32) { a.b::C(%x, k=[1f, 2f], s="t", n_results=2) }')
    assert.equal("a.b::C", f.body.op.name)
    assert.equal("t", f.body.attrs.s)
  end)
end)

describe("comments behind values", function()
  it("tell the types of what nobody here knows, and of nothing else", function()
    local f = main "def @main(%x: int32) { negative(a::B(%x) /* ty=Tensor[(2), bool] */) }"
    assert.equal("Tensor[(2), bool]", tostring(f.body.args[1].type))
    f = main "def @main(%x: int32) { negative(%x) /* ty=Tensor[(2), bool] span=a:1:2 */ }"
    assert.equal("int32", tostring(f.body.type))
    f = main "def @main(%x: int32) { a::B(%x) /* ty=no type] */ }"
    assert.equal("_", tostring(f.body.type))
  end)
  it("tell no source when they hold other comments", function()
    local text = tostring(main "def @main(%x: int32) { negative(%x) /* span=a /* b */ c:1:2 */ }")
    assert.is_nil(text:find("span", 1, true))
  end)
  it("do not end inside names", function()
    for _, name in ipairs { "a*/b", "a/*b", "/**/", "*//*", "//", "*" } do
      local mod = assert(pl.parse(([[#[version = "0.0.5"]
type "%s"[A] { C(A) }
def @main(%%x: "%s"[int32], %%y: Tensor[("%s"), float32], %%z: opaque("%s")) { (%%x, %%y, %%z) }
]]):format(name, name, name, name)))
      assert.is_true(pl.equal(mod, assert(pl.parse(mod:text()))), name)
    end
  end)
end)

describe("the metadata", function()
  local SECTION = [[

#[metadata]
{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["relay.Constant"],
 "data": [2]}, {"type_key": "Array", "data": [3]}, {"type_key": "relay.Constant",
 "attrs": {"data": "0"}}], "b64ndarrays": ["P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAgAAAAIgAQAC]]
    .. [[AAAAAAAAAAIAAAAAAAAAEAAAAAAAAAAAAIA/AAAAAAAAAAAAAIA/"]}]]
  it("hold constants", function()
    local f = main("def @main() { meta[relay.Constant][0] }" .. SECTION)
    assert.same({ { 1.0, 0.0 }, { 0.0, 1.0 } }, f.body.data:to_table())
  end)
  it("are one node where they are referred to twice", function()
    local f = main("def @main() { (meta[relay.Constant][0], meta[relay.Constant][0]) }" .. SECTION)
    assert.equal(f.body.fields[1], f.body.fields[2])
  end)
  it("hold objects, which are compared by what they are, not by their numbers", function()
    local device = '{"type_key": "VirtualDevice", "attrs": {"device_type_int": "%s"}}'
    local text = [[
def @main(a=meta[VirtualDevice][%d], b=meta[VirtualDevice][%d]) { 1 }
#[metadata]
{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["VirtualDevice"],
"data": [2]}, {"type_key": "Array", "data": [3, 4]}, ]] .. device .. ", " .. device
      .. '], "b64ndarrays": []}'
    local function devices(...) return module(text:format(...)) end
    local one = devices(0, 1, "1", "2")
    assert.truthy(pl.equal(one, devices(1, 0, "2", "1")))
    assert.equal(pl.hash(one), pl.hash(devices(1, 0, "2", "1")))
    assert.falsy(pl.equal(one, devices(1, 0, "1", "2")))
    for _, mod in ipairs { one, devices(1, 0, "1", "2"), devices(1, 0, "1", "1") } do
      pl.assert_equal(mod, assert(pl.parse(mod:text())))
    end
  end)
  it("are refused when they are none, or have no such entry", function()
    assert.matches("the metadata section has no entries of 'relay.Constant'",
      bad("def @main() { meta[relay.Constant][0] }"))
    assert.matches("the metadata section has no entry 1 of 'relay.Constant'",
      bad("def @main() { meta[relay.Constant][1] }" .. SECTION))
    assert.matches("4:10: error: this is not a metadata section of TVM",
      bad('def @main() { 1 }\n#[metadata]\n{"root": }'))
    assert.matches("this entry of the metadata section is not a constant",
      bad("def @main() { meta[relay.Constant][0] }" .. SECTION:gsub("P6G0", "AAAA")))
  end)
end)

describe("references", function()
  it("are made, read and written", function()
    local f = main [[def @main(%x: int32) {
      let %r = ref(%x); let %u = ref_write(%r, 2); ref_read(%r) }]]
    assert.equal("fn (int32) -> int32", tostring(f.type))
    assert.matches("this takes 2 arguments, got 1",
      bad("def @main(%r: ref(int32)) { ref_write(%r) }"))
  end)
end)

describe("the version", function()
  it("must be there, and known", function()
    assert.equal([[m.relay:1:1: error: expected #[version = "0.0.5"] in the first line
    def @main() { 1 }
    ^~~]], (refused "def @main() { 1 }"))
    assert.matches("unknown version of the text format; 0.0.5 is known",
      (refused '#[version = "0.0.6"] def @main() { 1 }'))
  end)
end)

describe("errors", function()
  it("are told together", function()
    local _, diag = refused(HEAD
      .. "def @a(%x: int32) { %0 = add(%x, ; let %y = %z; add(%y, %0) }\ndef @b() { if (1 }\n")
    assert.equal(2, #diag.notes)
    assert.matches("2:34: error: expected an expression, got ';'", tostring(diag))
    assert.matches("2:45: error: no variable is called 'z'", tostring(diag.notes[1]))
    assert.matches("3:18: error: expected '%)', got '}'", tostring(diag.notes[2]))
  end)
  it("of a pattern leave the rest of the match alone", function()
    local _, diag = refused(HEAD .. [[
def @main(%x: (int32, int32)) {
  match (%x) { (%a, 5) => { %a }, _ => { 1 } };
  %y
}]])
    assert.equal(1, #diag.notes)
    assert.matches("3:21: error: expected a pattern, got '5'", tostring(diag))
    assert.matches("4:3: error: no variable is called 'y'", tostring(diag.notes[1]))
  end)
  it("name what is missing", function()
    assert.matches("expected ',' or '%)', got '{'", bad("def @main(%x: int32 { %x }"))
    assert.matches("expected ';' or '}', got the end of the text", bad("def @main() { 1 "))
    assert.matches("expected a definition, got '}'", bad("def @main() { 1 } }"))
    assert.matches("expected 'def', 'type' or 'extern type', got 'fn'", bad("fn () { 1 }"))
  end)
  it("end the reading when there are many", function()
    local _, diag = refused(HEAD .. "def @main() { (" .. ("%x, "):rep(100) .. ") }")
    assert.equal(20, #diag.notes)
    assert.matches("parsing stops after 20 errors", tostring(diag.notes[20]))
  end)
  it("of types stand at the call", function()
    assert.matches("2:%d+: error: .*\n    def @main",
      bad("def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) { add(%x, %y) }"))
  end)
  it("name strange bytes", function()
    assert.matches("unexpected character", bad("def @main() { $ }"))
    assert.matches("a carriage return must be followed by a line feed", bad("def @main() { 1\r }"))
  end)
end)

describe("nesting", function()
  local depth = 100000
  local function deep(before, inner, after)
    return "def @main(%c: bool, %x: int32) { " .. before:rep(depth) .. inner .. after:rep(depth)
      .. " }"
  end
  it("may be of any depth", function()
    for _, text in ipairs { deep("(", "%x", ")"), deep("negative(", "%x", ")"),
      deep("let %x = negative(%x); ", "%x", ""), deep("if (%c) { ", "%x", "} else { %x }"),
      deep("(let %y = ", "%x", "; %y)"), deep("{", "%x", "}"), deep("", "%x", " + %x") } do
      assert.truthy(module(text))
    end
    local tuple = ("("):rep(depth) .. "int32" .. (",)"):rep(depth)
    assert.truthy(module("def @main(%x: " .. tuple .. ") { %x }"))
    assert.matches("got the end of the text", (refused(HEAD .. "def @main() { "
      .. ("("):rep(depth))))
  end)
end)

describe("lets around an expression", function()
  it("belong to it", function()
    local text = "let %x = 1; let %y = %x + 2; %y * 3"
    local node = assert(pl.parse_expr(text))
    assert.equal([[
let %x: int32 = 1;
let %y: int32 = add(%x, 2);
multiply(%y, 3)]], shown(text))
    assert.is_true(pl.equal(node, assert(pl.parse_expr(node:text()))))
    assert.equal(9, pl.eval(pl.func({}, node)):to_table())
  end)

  it("belong to one that is built", function()
    local x = pl.var("x", "int64")
    assert.matches("^let %%x: int64 .- = 1i64 .-;\n%%x$", tostring(pl.ir.Let(x, pl.const(1), x)))
  end)
end)
