-- What is said of mistakes that people make writing Relay text: where, what, what
-- instead; every mistake once, and nothing of what only follows from one.

local pl = require "perilune"

local HEAD = '#[version = "0.0.5"]\n'

-- A text without its first line, and all that is said of it: "row:column: message",
-- rows counted without that line.
local mistakes = {
  { "def @main(%x: int32 %y: int32) { %x }",
    "1:21: expected ',' or ')', got '%y'" },
  { "def @main(%x: Tensor[2,3]) { %x }",
    "1:22: expected '(', as in Tensor[(1, ?), float32], got '2'" },
  { "def @main(%x: Tensor[(2,3) float32]) { %x }",
    "1:28: expected ',' and a dtype, as in Tensor[(1, ?), float32], got 'float32'" },
  { "def @main(%x: Tensor[(2,3)]) { %x }",
    "1:27: expected ',' and a dtype, as in Tensor[(1, ?), float32], got ']'" },
  { "def @main(%x: Tensor(2,3)) { %x }",
    "1:21: expected '[', as in Tensor[(1, ?), float32], got '('" },
  { "def @main(%x: Tensor) { %x }",
    "1:21: expected '[', as in Tensor[(1, ?), float32], got ')'" },
  { "def @main(%x: float23) { %x }",
    "1:15: no type is called 'float23'; did you mean 'float32'?" },
  { "def @main(%x: int32) { nn.rele(%x) }",
    "1:24: no operator is called 'nn.rele'; did you mean 'nn.relu'?" },
  { "def @main(%x: int32) { nn_relu(%x) }",
    "1:24: no operator is called 'nn_relu'; did you mean 'nn.relu'?" },
  { "def @main(%input: int32) { %inptu }",
    "1:28: no variable is called 'inptu'; did you mean 'input'?" },
  { "def @main(%x: int32) { x }",
    "1:24: no operator is called 'x'; did you mean '%x'?" },
  { "def @main(x: int32) { x }",
    "1:11: expected a parameter, got 'x'; did you mean '%x'?" },
  { "def main(%x: int32) { %x }",
    "1:5: expected a global name, got 'main'; did you mean '@main'?" },
  { "def @main(%x: int32) { add(%x) }",
    "1:24: 'add' takes at least 2 arguments, got 1: in add(%x: int32)" },
  { "def @main(%x: int32) { add(%x, %x, %x) }",
    "1:24: 'add' takes at most 2 arguments, got 3: in add(%x: int32, %x: int32, %x: int32)" },
  { "def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(%x, axi=1) }",
    "1:57: 'nn.softmax' has no attribute 'axi'; did you mean 'axis'?" },
  { 'def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(%x, axis="1") }',
    "1:57: attribute 'axis' takes an integer" },
  { "def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(%x, axis=) }",
    "1:62: expected the value of an attribute, got ')'" },
  { "def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(%x axis=1) }",
    "1:56: expected ',' or ')', got 'axis'" },
  { "def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(%x, axis=1, %x) }",
    "1:65: expected name=value or ')', got '%x'" },
  { "def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(%x, axis: 1) }",
    "1:61: expected '=', got ':'" },
  { "def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(%x, axis=1, axis=0) }",
    "1:65: attribute 'axis' is given twice" },
  { "def @main(%x: int32) { let %y = %x %y }",
    "1:36: expected ';', got '%y'" },
  { "def @main(%x: int32) { let %y %x; %y }",
    "1:31: expected '=', got '%x'" },
  { "def @main(%x: int32) { let y = %x; %y }",
    "1:28: expected a local variable, got 'y'; did you mean '%y'?" },
  { "def @main(%x: int32) { %0 = add(%x, 1) %0 }",
    "1:40: expected ';', got '%0'" },
  { [[
def @main(%x: int32) { %0 = add(%x, 1);
  %1 = add(%0, 2);
}]],
    "3:1: expected an expression, got '}'" },
  { "def @main(%x: int32) { }",
    "1:24: expected an expression, got '}'" },
  { "def @main(%x: int32) { fn (%y: int32) }",
    "1:39: expected '{', got '}'" },
  { "def @main(%x: int32) { fn %y { %y } }",
    "1:27: expected '(', got '%y'" },
  { "def @main(%x: int32) -> { %x }",
    "1:25: expected a type, got '{'" },
  { "def @main(%x: int32) -> int32",
    "1:30: expected '{', got the end of the text" },
  { "def @main(%x: int32) { %x",
    "1:26: expected ';' or '}', got the end of the text" },
  { "def @main(%x: int32) { (%x, %x }",
    "1:32: expected ',' or ')', got '}'" },
  { "def @main(%x: int32) { add(%x, %x }",
    "1:35: expected ',' or ')', got '}'" },
  { "def @main(%x: int32) { add(%x, %x)) }",
    "1:35: expected ';' or '}', got ')'" },
  { "def @main(%x: int32) { %x } }",
    "1:29: expected a definition, got '}'" },
  { 'def @main(s="abc) { 1 }',
    "1:13: this string is not closed on its line" },
  { "def @main() { /* 1 }",
    "1:15: this comment is not closed" },
  { [[
#[metadata]
{}
def @main() { 1 }]],
    "3:1: this is not a metadata section of TVM" },
  { "def @main() { 1 }\n#[metadata]",
    "2:12: this is not a metadata section of TVM" },
  { "def @main() { meta[relay.Constant][0] }",
    "1:20: the metadata section has no entries of 'relay.Constant'" },
  { "def @main() { meta[relay.Constant] }",
    "1:36: expected '[', got '}'" },
  { 'def @main() { meta["relay.Constant"][0] }',
    [[1:20: expected a type key, got '"relay.Constant"']] },
  { [[
def @f() { 1 }
def @f() { 2 }]],
    "2:5: the function 'f' is defined twice" },
  { [[
type A { B }
type A { C }]],
    "2:6: the type 'A' is defined twice" },
  { "def @main(%x: int32) { if (%x) { 1 } else { 2 } }",
    "1:24: the condition of an If must be boolean, not int32: in If(%x: int32)" },
  { "def @main(%c: bool) { if %c { 1 } else { 2 } }",
    "1:26: expected '(', got '%c'" },
  { "def @main(%c: bool) { if (%c) 1 else 2 }",
    "1:31: expected '{', got '1'" },
  { "def @main(%c: bool) { if (%c) { 1 } }",
    "1:37: expected 'else', got '}'" },
  { "def @main(%c: bool) { if (%c) { 1 } else { 2f } }",
    "1:23: the branches of an If have different types: int32 and float32: in If(%c: bool)" },
  { "def @main(%c: bool) { true }",
    "1:23: no operator is called 'true'; did you mean 'True'?" },
  { "def @main() { @mian() }",
    "1:15: no function is called 'mian'; did you mean 'main'?" },
  { "def @main() { None }",
    "1:15: no operator is called 'None'" },
  { [[
type L[A] { C(A, L[A]), N }
def @main(%l: L[int32]) { match (%l) { C(%h, %t) -> %h, N -> 0 } }]],
    "2:50: expected '=>', got '->'" },
  { [[
type L[A] { C(A, L[A]), N }
def @main(%l: L[int32]) { match (%l) { C(%h) => %h, N => 0 } }]],
    "2:40: the constructor 'C' has 2 fields, the pattern 1: in C(PatternVar)" },
  { [[
type L[A] { C(A, L[A]), N }
def @main(%l: L[int32]) { match (%l) { Cc(%h, _) => %h, N => 0 } }]],
    "2:40: no constructor is called 'Cc'" },
  { [[
type L[A] { C(A, L[A]), N }
def @main(%l: L[int32]) { match (%l) { C(h, _) => h, N => 0 } }]],
    "2:42: no constructor is called 'h'; did you mean '%h'?",
    "2:51: no operator is called 'h'" },
  { [[
type L[A] { C(A L[A]), N }
def @main() { 1 }]],
    "1:17: expected ',' or ')', got 'L'" },
  { [[
type l { c(a) }
def @main() { 1 }]],
    "1:12: no type is called 'a'" },
  { "def @main(%x: (int32, int32)) { %x.2 }",
    "1:35: field 2 of a tuple of 2 fields: in TupleGetItem(%x: (int32, int32))" },
  { "def @main(%x: (int32, int32)) { %x[0] }",
    "1:35: expected ';' or '}', got '['" },
  { "def @main(%x: int32) { -%x }",
    "1:25: expected a number, got '%x'" },
  { "def @main(%x: int32) { %x && %x }",
    "1:27: unexpected character" },
  { "def @main(%x: int32) { %x = 1; %x }",
    "1:24: a variable is bound by 'let %x = ...'" },
  { "def @main(%x: int32) { 1x }",
    "1:24: unknown suffix 'x' of a number" },
  { "def @main(%x: int32) { 300i8 }",
    "1:24: this integer does not fit in int8" },
  { "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3, 2), float32]) { add(%x, %y) }",
    "1:71: 'add', operand 1: extents 2 and 3 do not broadcast: in add(%x: Tensor[(2, 3),"
      .. " float32], %y: Tensor[(3, 2), float32])" },
  { "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), int32]) { %x + %y }",
    "1:72: 'add', operand 1: expected float32, got int32: in add(%x: Tensor[(2, 3),"
      .. " float32], %y: Tensor[(2, 3), int32])" },
  { "def @main(%x: int32) -> float32 { %x }",
    "1:5: the function is declared to return float32, but returns int32: in Function(%x:"
      .. " int32)" },
  { "def @main(%x: int32) { let %y: float32 = %x; %y }",
    "1:28: this variable is declared to be float32, but its value is int32" },
  { [[
def @main(%x: int32) { let %a = 1;
 let %y: float32 = %x;
 let %z: int8 = %x; %y }]],
    "2:6: this variable is declared to be float32, but its value is int32",
    "3:6: this variable is declared to be int8, but its value is int32" },
  { [[
def @f(%x: int32) -> int32 { %x }
def @main() { @f(1f) }]],
    "2:17: argument 1 must be int32, got float32: in @f(Constant: float32)" },
  { [[
def @f(%x: int32) -> int32 { %x }
def @main() { @f(1, 2) }]],
    "2:17: the function takes 1 argument, got 2: in @f(Constant: int32, Constant: int32)" },
  { "def @main(%x: int32) { %x }; def @g() { 1 }",
    "1:28: expected a definition, got ';'" },
  { "def @main(%x: Tensor[(-1, 3), float32]) { %x }",
    "1:23: a dim must not be negative" },
  { "def @main(%x: Tensor[(2.5, 3), float32]) { %x }",
    "1:23: a dim must be an integer" },
  { "let %x = 1;",
    "1:1: expected 'def', 'type' or 'extern type', got 'let'" },
  { "def @main(%x: int32) { return %x; }",
    "1:24: no operator is called 'return'" },
  { "def @main(%x: int32) { nn.conv2d(%x, %x, kernel_size=(3, 3), padding=[1, 1], chanels=3) }",
    "1:78: 'nn.conv2d' has no attribute 'chanels'; did you mean 'channels'?" },
  { "def @main() { 'abc' }",
    "1:15: strings are written in double quotes" },
  { "def @main(%x: Tensor[(2, 3), float32]) { %x: float32 }",
    "1:44: expected ';' or '}', got ':'" },
  { "def @main(%x: int32) { %1 + %0 }",
    "1:24: the graph variable '%1' is not defined before this use",
    "1:29: the graph variable '%0' is not defined before this use" },
  { [[
def @main(%x: int32) {
  %0 = add(%x, 1)
  %1 = add(%0, 2);
  let %a = %1
  let %b = %a;
  add(%1, %b)
}]],
    "3:3: expected ';', got '%1'",
    "5:3: expected ';', got 'let'" },
  { [[
def @f(%x: int32) {
  add(%x, %y)

def @g(%x: int32) {
  sub(%x, 1)
}]],
    "2:11: no variable is called 'y'",
    "4:1: expected ';' or '}', got 'def'",
    "5:3: no operator is called 'sub'; did you mean 'sum'?" },
  { [[
def @f(%x: int32) {
  add((%x, 1)
}

def @g(%x: int32) {
  %q
}]],
    "3:1: expected ',' or ')', got '}'",
    "6:3: no variable is called 'q'" },
  { [[
def @f(%x: imt32, %y: Tensor[(2) float32]) { %z }
def @g() { @f(1) + %w }]],
    "1:12: no type is called 'imt32'; did you mean 'int32'?",
    "1:34: expected ',' and a dtype, as in Tensor[(1, ?), float32], got 'float32'",
    "2:20: no variable is called 'w'" },
  { "def @f(%x: int32) { let %a = nn.bogus(%x); let %b = %a + 1; let %c = tanh(%b); (%c,"
      .. " %nope) }",
    "1:30: no operator is called 'nn.bogus'",
    "1:85: no variable is called 'nope'" },
  { "type L[A B] { C(A) }",
    "1:10: expected ',' or ']', got 'B'" },
  { "type L[A] { C(A) N }",
    "1:18: expected ',' or '}', got 'N'" },
  { [[
type L { C(Foo) }
def @f(%l: L) { 1 }]],
    "1:12: no type is called 'Foo'" },
  { "def @f(%x: int32) { if (%x < 1) { %a } else { %b } }",
    "1:35: no variable is called 'a'",
    "1:47: no variable is called 'b'" },
  { [[
type L[A] { C(A, L[A]), N }
def @f(%l: L[int32]) { match (%l) { C(%h, %t) => { %hh }, N => %k, } }]],
    "2:52: no variable is called 'hh'",
    "2:64: no variable is called 'k'" },
  { [[
type L[A] { C(A, L[A]), N }
def @f(%l: L[int32]) { match (%l) { C(%h, %t) => { %h } N => 1 } }]],
    "2:57: expected ',' or '}', got 'N'" },
  { [[
type L[A] { C(A, L[A]), N }
def @f(%l: L[int32]) { match (%l { C(%h, %t) => { %h }, N => 1 } }]],
    "2:34: expected ',' or ')', got '{'" },
  { "def @f(%x: int32) { add(%x, 1, }",
    "1:32: expected an expression, got '}'" },
  { "def @f(%x: Tensor[(2, 3), float32) { %x }",
    "1:34: expected ']', got ')'" },
  { "def @f(%x: (int32, int32) { %x }",
    "1:27: expected ',' or ')', got '{'" },
  { "def @f(%x: List[int32]) { %x }",
    "1:12: no type is called 'List'" },
  { "def @f(%x: int32, Primitive) { %x }",
    "1:19: expected a parameter, got 'Primitive'; did you mean '%Primitive'?" },
  { "def @f(%x: int32, Primitive=1 Inline=1) { %x }",
    "1:31: expected ',' or ')', got 'Inline'" },
  { "def @f(%x: int32, Primitive=yes) { %x }",
    "1:29: expected the value of an attribute, got 'yes'" },
  { "def @f(%x: int32, 3=1) { %x }",
    "1:19: expected a parameter or ')', got '3'" },
  { "def @f(%x: int32) { %x.y }",
    "1:24: expected a number without sign and suffix, got 'y'" },
  { "def @f(%x: int32) { let = 1; %x }",
    "1:25: expected a local variable, got '='" },
  { "def @f(%x: int32) { let %a: = 1; %a }",
    "1:29: expected a type, got '='" },
  { "def @f(%x: int32) { ref_write(%x) }",
    "1:21: this takes 2 arguments, got 1" },
  { "def @f(%x: int32) { @f }",
    "1:5: the type is infinite: it contains itself: in Function of @f" },
  { "def @f(%x: int32) {{ %x }",
    "1:26: expected ';' or '}', got the end of the text" },
  { "def f() { @f() }",
    "1:5: expected a global name, got 'f'; did you mean '@f'?" },
  { "def @f(%x: int32) { fn (y) { %y } }",
    "1:25: expected a parameter, got 'y'; did you mean '%y'?" },
  { "def @f(%x: int32) { match (%x) { _ => } }",
    "1:39: expected an expression, got '}'" },
  { "extern type T { A }",
    "1:15: an extern type has no constructors" },
  { "def",
    "1:4: expected a global name, got the end of the text" },
  { "def @f",
    "1:7: expected '(', got the end of the text" },
  { 'def @f(%x: int32) { "a }',
    "1:21: this string is not closed on its line" },
  { "def @f() { 1 } def @f2() { 1 } deff @g() { 1 } def @h() { %x }",
    "1:32: expected a definition, got 'deff'",
    "1:59: no variable is called 'x'" },
  { "def @f(%x: int32) { if (True) { 1 } else if (False) { 2 } else { 3 } }",
    "1:42: expected '{', got 'if'" },
  { "def @f(%x: int32) { %x ; }",
    "1:26: expected an expression, got '}'" },
  { "def @f(%x: int32) { ; }",
    "1:21: expected an expression, got ';'",
    "1:23: expected an expression, got '}'" },
  { "def @f(%x: int32) { add(, %x) }",
    "1:25: expected an expression, got ','" },
  { "def @f(%x: int32) -> Tensor[(2), float23] { %x }",
    "1:34: no dtype is called 'float23'; did you mean 'float32'?" },
  { "def @f(%x: int32) { $ @@@ ??? `` }",
    "1:21: unexpected character",
    "1:23: a name must follow here",
    "1:24: a name must follow here",
    "1:25: a name must follow here" },
  { "def @f(%x: int32) { add(%x, %x).0 }",
    "1:32: TupleGetItem: field 0 of a value that is not a tuple: in TupleGetItem(add: int32)" },
  { "def @f(%x: int32) { %x(1) }",
    "1:23: the callee is not a function: in %x(Constant: int32)" },
  { [[
def @f() { 1 }}
def @g() { %q }]],
    "1:15: expected a definition, got '}'",
    "2:12: no variable is called 'q'" },
  { [[
def @f(%x) { @g(%x) + 1 }
def @g(%x) { @f(%x) + 1f }]],
    "2:21: 'add', operand 1: expected int32, got float32: in add(a call: Tensor[*,"
      .. " int32], Constant: float32)" },
  { "def @f() { @f }",
    "1:5: the type is infinite: it contains itself: in Function of @f" },
  { "def @f(%x) { %x(%x) }",
    "1:8: the type is infinite: it contains itself: in %x of @f" },
  { "def @f(%x) { let %g = fn (%y) { %y }; (%g(1), %g(1f)) }",
    "1:49: argument 1: expected int32, got float32: in %g(Constant: float32) of @f" },
  -- what TVM prints and cannot read
  { "def @f() { 1 }\n# from tvm.script import tir as T\n@T.prim_func\ndef g(A: T.handle):",
    "2:1: TVMScript after Relay text can be printed but not parsed" },
  { "def @f = meta[ExternalFunc][0]\ndef @g() { %x }",
    "1:5: a function without a body cannot be parsed", "2:12: no variable is called 'x'" },
  { "@f(%x: int8) { %y }",
    "1:1: a function's definition begins with 'def'", "1:16: no variable is called 'y'" },
  { "def @f(%x-malformed-ir: int8) { %x }", "1:10: expected ',' or ')', got '-'" },
}

--- What is said of a text, one string a mistake.
local function said(text)
  local mod, diag = pl.parse(HEAD .. text, "m")
  assert.is_nil(mod)
  local out = {}
  local function add(told)
    local row, column, message = tostring(told):match "^m:(%d+):(%d+): error: ([^\n]*)"
    out[#out + 1] = ("%d:%s: %s"):format(tonumber(row) - 1, column, message)
  end
  add(diag)
  for _, note in ipairs(diag.notes) do add(note) end
  return out
end

--- The same as it is shown, of a whole text.
local function shown(text)
  local mod, diag = pl.parse(text, "m.relay")
  assert.is_nil(mod)
  return tostring(diag)
end

describe("of a mistake is told what is wrong, and where:", function()
  for _, row in ipairs(mistakes) do
    it(row[1]:gsub("%s+", " "), function()
      assert.same({ table.unpack(row, 2) }, said(row[1]))
    end)
  end
end)

describe("the place is shown under the line", function()
  it("behind tabs, which stand there as well", function()
    assert.equal("m.relay:3:11: error: no variable is called 'z'\n"
      .. "    \tlet %y = %z;\n    \t         ^~",
      shown(HEAD .. "def @f() {\n\tlet %y = %z;\n\t%y\n}"))
  end)

  it("behind letters of several bytes, by what is seen of them", function()
    assert.equal([[
m.relay:2:26: error: no variable is called 'z'
    def @f() { ("äöü"(1), %z) }
                          ^~]], tostring(select(2, pl.parse(HEAD
      .. 'def @f() { ("äöü"(1), %z) }', "m.relay")).notes[1]))
  end)

  it("in lines that end as on Windows", function()
    assert.equal([[
m.relay:3:12: error: no variable is called 'z'
      let %y = %z;
               ^~]], shown((HEAD .. "def @f() {\n  let %y = %z;\n  %y\n}\n"):gsub("\n", "\r\n")))
  end)

  it("in a text that begins with a mark of its encoding", function()
    local text = HEAD .. "def @f() { %z }"
    assert.equal(shown(text), shown("\u{feff}" .. text))
    assert.truthy(pl.parse("\u{feff}" .. HEAD .. "def @f() { 1 }"))
  end)
end)

describe("the version", function()
  it("that is missing, another, or none is told once", function()
    for text, message in pairs {
      ["def @f() { 1 }"] = 'expected #[version = "0.0.5"] in the first line',
      ["v0.0.4\ndef @f() { 1 }"] = 'expected #[version = "0.0.5"] in the first line',
      ["#[version = 0.0.5]\ndef @f() { 1 }"] = 'expected #[version = "0.0.5"] or #[metadata]',
      ['#[version = "0.0.4"]\ndef @f() { 1 }']
        = "unknown version of the text format; 0.0.5 is known",
    } do
      local _, diag = pl.parse(text)
      assert.same({ message, 0 }, { diag.message, #diag.notes })
    end
  end)
end)

describe("after a mistake", function()
  it("reading goes on in the same function, and in the next ones", function()
    assert.same({ "1:21: no variable is called 'a'", "2:3: no variable is called 'b'",
      "5:12: no variable is called 'c'", "6:15: expected an expression, got '}'" }, said [[
def @f() { let %x = %a;
  %b;
  1
}
def @g() { %c }
def @h() { 1; }]])
  end)

  it("what it would have bound is known", function()
    assert.same({ "1:25: no operator is called 'nn.bogus'", "1:47: expected a type, got '='",
      "2:8: no variable is called 'nope'" }, said [[
def @f(%x: int8) { %0 = nn.bogus(%x); let %a: = %0 + 1;
  (%a, %nope, %0) }]])
  end)
end)
