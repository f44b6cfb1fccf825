-- Relay text as TVM 0.14 prints it. Each text is what it prints: it is read, and
-- printed again byte for byte. Named after what TVM's own cases pin, then what
-- TVM cannot read back.

local pl = require "perilune"
local command = require "spec.cli.command"

local folder
setup(function() folder = command.folder() end)
teardown(function() os.execute("rm -rf " .. folder) end)

local VEC = "Tensor[(4), float32]"

-- T stands for the type that most have, TY for its comment.
local function spell(text)
  return (text:gsub("TY", "/* ty=" .. VEC .. " */"):gsub("%f[%w]T%f[%W]", VEC))
end

-- A module of these definitions prints as it stands.
local function check(text)
  text = '#[version = "0.0.5"]\n' .. spell(text):gsub("%f[%w]F%f[%W]", "fn (A, L[A]) -> L[A]")
  local mod = assert(pl.parse(text))
  assert.equal(text, mod:text())
  local again = assert(pl.parse(mod:text()))
  assert.is_true(pl.equal(mod, again))
  return mod
end

-- The body of a function of %x and %p prints as it stands.
local function check_body(body, result)
  local lines = ("\n" .. body):gsub("\n", "\n  ")
  return check(("def @main(%%x: T TY, %%p: bool /* ty=bool */) -> %s {%s\n}\n"):format(
    result or "T", lines))
end

describe("TVM's text", function()
  it("has a function with its parameters and its result", function()
    check_body "add(%x, %x) TY"
  end)

  it("has the functions of a module in order of their names", function()
    local mod = check [[
def @a(%x: T TY) -> T {
  @b(%x) TY
}

def @b(%x1: T TY) -> T {
  %x1
}
]]
    assert.same({ "a", "b" }, mod.names)
  end)

  it("gives functions names in order though they were added otherwise", function()
    local x = pl.var("x", VEC)
    local mod = pl.module { b = pl.func({ x }, x) }:with { a = pl.func({ x }, x) }
    assert.matches("def @a.*def @b", mod:text())
  end)

  it("refers to constants in the metadata, one time for each that is one", function()
    local x = pl.var("x", VEC)
    local c = pl.const({ 1, 2, 3, 4 }, "float32")
    local text = pl.module { main = pl.func({ x }, x + c + c) }:text()
    assert.matches("add%(%%x, meta%[relay.Constant%]%[0%] .-add%(%%0, meta%[relay.Constant%]%[0%]",
      text)
    assert.matches('"data": %[3%].*"b64ndarrays": %[\n    "[%w+/=]+"\n  %]', text)
    assert.equal(text, assert(pl.parse(text)):text())
  end)

  it("says of a call what differs from the default", function()
    check([[
def @main(%x: Tensor[(1, 3, 8, 8), float32] /* ty=Tensor[(1, 3, 8, 8), float32] */, ]]
      .. [[%w: Tensor[(8, 3, 3, 3), float32] /* ty=Tensor[(8, 3, 3, 3), float32] */) -> ]]
      .. [[Tensor[(1, 8, 8, 8), float32] {
  nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]) ]]
      .. [[/* ty=Tensor[(1, 8, 8, 8), float32] */
}
]])
  end)

  it("keeps lines in the branch that needs them", function()
    check_body [[
%1 = if (%p) {
  let %y: T TY = add(%x, %x) TY;
  %0 = exp(%y) TY;
  add(%0, %y) TY
} else {
  %x
};
add(%1, %x) TY]]
  end)

  it("makes names unique by counting over the whole module", function()
    check [[
def @f(%x: T TY, %x1: T TY) -> T {
  let %x2: T TY = add(%x, %x1) TY;
  %x2
}

def @g(%x3: T TY, %x21: T TY) -> T {
  %x21
}
]]
  end)

  it("gives names that begin with no letter a v", function()
    local x = pl.var("1", VEC)
    assert.matches("fn (%v1: ", tostring(pl.func({ x }, x)), 1, true)
    assert.matches("fn (%v_a: ", tostring(pl.func({ pl.var("_a", VEC) }, x)), 1, true)
  end)

  it("has arguments before the function that they are given to", function()
    check_body [[
%0 = exp(%x) TY;
%1 = fn (%y: T TY) -> T {
  nn.relu(%y) TY
} /* ty=fn (T) -> T */;
%1(%0) TY]]
  end)

  it("numbers graph variables on from function to function", function()
    check [[
def @f(%x: T TY) -> T {
  %0 = exp(%x) TY;
  add(%0, %0) TY
}

def @g(%x1: T TY) -> T {
  %1 = exp(%x1) TY;
  add(%1, %1) TY
}
]]
  end)

  it("has a let that is a value in parentheses", function()
    check_body [[
let %a: T TY = (
  let %b: T TY = exp(%x) TY;
  add(%b, %b) TY
);
add(%a, %a) TY]]
  end)

  it("has calls without arguments and their attributes", function()
    check [[
def @main() -> Tensor[(2, 2), float32] {
  zeros(shape=[2, 2], dtype="float32") /* ty=Tensor[(2, 2), float32] */
}
]]
  end)

  it("has constructors as values, and those without fields as they are", function()
    check [=[
type L[A] {
  C(A, L[A]),
  N,
}

def @fold[A](%f: F /* ty=F */, %l: L[A] /* ty=L[A] */) -> L[A] {
  match? (%l) {
    C(%h: A /* ty=A */, _) => {
      %f(%h, %l) /* ty=L[A] */
    },
    N => {
      @fold(C, %l) /* ty=L[A] */
    },
  }
}
]=]
  end)

  it("writes attributes that are nothing as None", function()
    check([[
def @main(%x: Tensor[(2, 4), float32] /* ty=Tensor[(2, 4), float32] */, ]]
      .. [[%w: Tensor[(3, 4), float32] /* ty=Tensor[(3, 4), float32] */) -> ]]
      .. [[Tensor[(2, 3), float32] {
  nn.dense(%x, %w, units=None) /* ty=Tensor[(2, 3), float32] */
}
]])
  end)

  it("tells where a node stood if its source told", function()
    check [[
def @main(%x: T /* ty=T span=from_string:1:2 */) -> T {
  %0 = exp(%x) /* ty=T span=from_string:3:4 */;
  tanh(%0) TY
}
]]
  end)

  it("tells the name that a node had in another framework, of no row", function()
    local mod = check [[
def @main(%x: T /* ty=T span=input.1:0:0 */) -> T {
  %0 = exp(%x) /* ty=T span=aten::exp_0.x:0:0 */;
  tanh(%0) /* ty=T span=two words:0:7 */
}
]]
    assert.equal("aten::exp_0.x", mod.main.body.args[1]:history()[1].source)
    assert.equal("two words", mod.main.body:history()[1].file)
    assert.is_nil(mod.main.body:history()[1].line)
  end)

  it("has slashes in names", function()
    check [[
def @main(%a/b: T TY) -> T {
  tanh(%a/b) TY
}
]]
  end)

  it("has scalars as literals of their dtype", function()
    check_body("(1 /* ty=int32 */, 1i64 /* ty=int64 */, -3i16 /* ty=int16 */, 1f /* ty=float32 */, "
      .. "0.5f64 /* ty=float64 */, 1f16 /* ty=float16 */, True /* ty=bool */) "
      .. "/* ty=(int32, int64, int16, float32, float64, float16, bool) */",
      "(int32, int64, int16, float32, float64, float16, bool)")
  end)

  it("has closures that call themselves", function()
    check_body [[
let %f: fn (T) -> T /* ty=fn (T) -> T */ = fn (%y: T TY) -> T {
  %f(%y) TY
} /* ty=fn (T) -> T */;
%f(%x) TY]]
  end)

  it("has a function that is called twice once", function()
    check_body [[
%0 = fn (%y: T TY) -> T {
  nn.relu(%y) TY
} /* ty=fn (T) -> T */;
%1 = %0(%x) TY;
%0(%1) TY]]
  end)

  it("has attributes of functions of every kind, in their order", function()
    check [=[
def @main(%x: T TY, z=1, a="s", b=[[1], [2, 3]], c=[], d=None, e=0.5f, f=["x", "y"]) -> T {
  %x
}
]=]
  end)

  it("has tuples of one, of none, and their fields", function()
    check_body([[
%0 = (%x,) /* ty=(T,) */;
%1 = () /* ty=() */;
%2 = %0.0 TY;
(%1, %2) /* ty=((), T) */]], "((), T)")
  end)
end)

describe("What TVM cannot read back", function()
  it("is a reference's type", function()
    check [[
def @main(%r: ref(T) /* ty=ref(T) */, %x: T TY) -> T {
  let %u: () /* ty=() */ = ref_write(%r, %x);
  ref_read(%r)
}
]]
  end)

  it("is a number that is none, or infinite", function()
    check_body("(nanf /* ty=float32 */, inff /* ty=float32 */, -inff64 /* ty=float64 */) "
      .. "/* ty=(float32, float32, float64) */", "(float32, float32, float64)")
  end)

  it("is a float with all of its digits", function()
    check_body("0.33333334f /* ty=float32 */", "float32")
    check_body("0.1f64 /* ty=float64 */", "float64")
    check_body("0.30000000000000004f64 /* ty=float64 */", "float64")
  end)

  it("is a name of any bytes", function()
    check [[
def @"a.b"(%"x y": T TY, %"\"\\\n": T TY) -> T {
  add(%"x y", %"\"\\\n") TY
}
]]
  end)

  it("is a string with escapes", function()
    check [[
def @main(%x: T TY, s="a\"b\\\n\x01\x7f") -> T {
  %x
}
]]
  end)

  it("is a dim with a name, or made of such", function()
    check([[
def @main(%x: Tensor[(N), float32] /* ty=Tensor[(N), float32] */, ]]
      .. [[%y: Tensor[(2*N+1, ?), float32] /* ty=Tensor[(2*N+1, ?), float32] */) -> ]]
      .. [[Tensor[(N), float32] {
  %x
}
]])
  end)

  it("is a type of ONNX's, or of unknown rank", function()
    check([[
def @main(%x: Tensor[*, float32] /* ty=Tensor[*, float32] */, ]]
      .. [[%y: seq(T) /* ty=seq(T) */, %z: optional(T) /* ty=optional(T) */, ]]
      .. [[%m: map(int64, T) /* ty=map(int64, T) */) -> Tensor[*, float32] {
  %x
}
]])
  end)

  it("is an extern type among others", function()
    check([[
extern type Far

type Near[A] {
  N(A),
}

type None0 {
]] .. "  \n}\n")

  end)

  it("is a type variable that hides another", function()
    check [[
def @main[A](%x: A /* ty=A */) -> fn [A1](A1) -> (A, A1) {
  fn [A1](%y: A1 /* ty=A1 */) -> (A, A1) {
    (%x, %y) /* ty=(A, A1) */
  } /* ty=fn [A1](A1) -> (A, A1) */
}
]]
  end)

  it("is a large splat", function()
    local splat = '{"dtype": "float32", "shape": [1024, 512], "splat": "AACAPw=="}'
    local mod = assert(pl.parse(([[
#[version = "0.0.5"]
def @main() {
  meta[relay.Constant][0]
}

#[metadata]
{"root": 1, "nodes": [{"type_key": ""},
  {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
  {"type_key": "Array", "data": [3]},
  {"type_key": "relay.Constant", "attrs": {"data": "0"}}],
"b64ndarrays": [SPLAT], "attrs": {"tvm_version": "0.14.0"}}]]):gsub("SPLAT", splat)))
    local text = mod:text()
    assert.matches(splat, text, 1, true)
    assert.equal(text, assert(pl.parse(text)):text())
  end)

  it("is a large tensor of a file", function()
    local model, relay = folder .. "/large.onnx", folder .. "/large.relay"
    local values = {}
    for i = 1, 300000 do values[i] = i end
    local x = pl.var("x", "Tensor[(300000), float32]")
    local fn = pl.func({ x }, x + pl.const(values, "float32"))
    assert(pl.onnx.save(pl.module { main = fn }, model))
    local mod = assert(pl.onnx.load(model))
    local text = mod:text()
    assert.is_true(#text < 10000)
    assert.matches('"file": "' .. model .. '", "offset": ', text, 1, true)
    command.write(relay, text)
    local again = assert(pl.load(relay))
    assert.equal(text, again:text())
    assert.is_true(pl.check(mod, again))
  end)
end)

describe("Graph variables", function()
  local exp, tanh, negative = pl.op.exp, pl.op.tanh, pl.op.negative

  -- What a function of x and p returns, printed, is read back and prints as it did.
  local function lines(make)
    local x, p = pl.var("x", VEC), pl.var("p", "bool")
    local mod = pl.module { main = pl.func({ x, p }, make(x, p)) }
    local text = mod:text()
    local again = assert(pl.parse(text))
    assert.is_true(pl.equal(mod, again))
    return (text:match("{\n(.*)}"):gsub(" /%*.-%*/", ""))
  end

  it("are bound above their uses when a branch binds what a later operand uses too", function()
    assert.equal([[
  %1 = if (%p) {
    %0 = exp(%x);
    tanh(%0)
  } else {
    %x
  };
  %2 = negative(%0);
  %3 = tanh(%2);
  add(%1, %3)
]], lines(function(x, p)
      local shared = exp(x)
      return pl.if_(p, tanh(shared), x) + tanh(negative(shared))
    end))
  end)

  it("are bound above their uses however deep the branch is, and the use", function()
    assert.equal([[
  %2 = if (%p) {
    %1 = if (%p) {
      %0 = exp(%x);
      tanh(%0)
    } else {
      %x
    };
    tanh(%1)
  } else {
    %x
  };
  %4 = if (%p) {
    %3 = negative(%0);
    tanh(%3)
  } else {
    %x
  };
  %5 = negative(%4);
  %6 = tanh(%5);
  add(%2, %6)
]], lines(function(x, p)
      local shared = exp(x)
      local one = pl.if_(p, tanh(pl.if_(p, tanh(shared), x)), x)
      return one + tanh(negative(pl.if_(p, tanh(negative(shared)), x)))
    end))
  end)

  it("and free variables have their lines above all uses as well", function()
    local x, y, p = pl.var("x", VEC), pl.var("y", VEC), pl.var("p", "bool")
    local text = tostring(pl.if_(p, tanh(y), x) + tanh(negative(y)))
    local line = text:find("free_var %y", 1, true)
    assert.is_true(line < text:find("tanh(%y)", 1, true))
    assert.is_true(line < text:find("negative(%y)", 1, true))
  end)
end)

describe("Printing", function()
  it("takes time and room as the text does", function()
    local function seconds(n)
      local lines = {}
      for i = 1, n do lines[i] = ("let %%x = exp(%%%s);"):format "x" end
      local text = ('#[version = "0.0.5"]\ndef @main(%%x: %s) {\n%s\n%%x\n}\n'):format(VEC,
        table.concat(lines, "\n"))
      local mod = assert(pl.parse(text))
      local best = math.huge
      for _ = 1, 3 do
        local start = os.clock()
        mod:text()
        best = math.min(best, os.clock() - start)
      end
      return best
    end
    assert.is_true(seconds(40000) < 30 * seconds(4000) + 0.01)
  end)

  it("does not repeat types that grow with nesting", function()
    local n = 3000
    local text = ('#[version = "0.0.5"]\ndef @main(%%x: %s) {\n%s%%x%s\n}\n'):format(VEC,
      ("fn (%%y: %s) {"):format(VEC):rep(n), ("}"):rep(n))
    local mod = assert(pl.parse(text))
    assert.is_true(#mod:text() < 3e7)
    assert.is_true(pl.equal(mod, assert(pl.parse(mod:text()))))
  end)
end)
