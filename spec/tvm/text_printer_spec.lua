-- Relay text as TVM prints it: the counterparts of its test_ir_text_printer.py,
-- by name. Each program is printed, read as the same one again, and printed the
-- same.

local pl = require "perilune"

local ir = pl.ir
local HEAD = '#[version = "0.0.5"]\n'
local shared = (os.getenv "PERILUNE_SHARED" or "../shared") .. "/conformance/relay-text/"

local function f32(...) return pl.type { shape = { ... }, dtype = "float32" } end

--- The text of an expression or a module, which is read as it was.
local function text_of(program)
  local text = tostring(program)
  local read = pl.ir.kind_of(program) == "Module" and pl.parse or pl.parse_expr
  local again = assert(read(text))
  pl.assert_equal(program, again, { map_free_vars = true })
  assert.equal(text, tostring(again))
  return text
end

--- The same without the types behind values.
local function shown(program) return (text_of(program):gsub(" /%*.-%*/", "")) end

local function count(text, what)
  local n = 0
  for _ in text:gmatch(what) do n = n + 1 end
  return n
end

--- The text has that in it, as it stands.
local function has(what, text) assert.truthy(text:find(what, 1, true), what) end

local function module(text) return assert(pl.parse(HEAD .. text)) end

describe("constants", function()
  it("test_scalars: are literals of their dtype", function()
    for dtype, text in pairs { int16 = "21i16", int32 = "21", int64 = "21i64", float16 = "21f16",
      float32 = "21f", float64 = "21f64" } do
      assert.equal(text, shown(pl.const(21, dtype)))
    end
    assert.equal("True", shown(pl.const(true)))
  end)

  it("test_zeros: of no dims are calls", function()
    assert.equal('zeros(shape=[], dtype="float32")',
      shown(pl.call("zeros", {}, { shape = {}, dtype = "float32" })))
  end)
end)

describe("functions and modules", function()
  it("test_large_graph: chains of any length", function()
    local x, y, one = pl.var("x", f32(3, 2)), pl.var "y", pl.const(10e10, "float32")
    local z = x + one
    for _ = 1, 90000 do z = z + one end
    local text = text_of(pl.func({ x, y }, z))
    assert.equal(90000, count(text, "\n  %%%d+ = add%("))
    has("%0 = add(%x, 1e+11f /* ty=float32 */)", text)
  end)

  it("test_func: a node with two uses has a number", function()
    local x, y = pl.var("x", f32(3, 2)), pl.var "y"
    local z = x + pl.const(10e10, "float32")
    z = z + z
    assert.equal([[
free_var %x: Tensor[(3, 2), float32];
%0 = add(%x, 1e+11f);
add(%0, %0)]], shown(z))
    assert.equal([[
fn (%x: Tensor[(3, 2), float32], %y) -> Tensor[(3, 2), float32] {
  %0 = add(%x, 1e+11f);
  add(%0, %0)
}]], shown(pl.func({ x, y }, z)))
  end)

  it("test_mod: the types are told", function()
    local x, y = pl.var("x", "float32"), pl.var("y", "float32")
    local z = x + y
    local text = text_of(pl.module { myf = pl.func({ x, y }, z + z) })
    has("def @myf(", text)
    has("add(%0, %0) /* ty=float32 */", text)
  end)

  it("test_optional_info: behind each value once", function()
    local c = pl.const(1, "int32")
    assert.equal(3, count(text_of(pl.module { main = pl.func({}, c + c) }), "/%* ty=int32 %*/"))
  end)

  it("test_unapplied_constructor: with its fields in the definition, without them as a value",
    function()
      local text = HEAD .. [[
type List[A] {
  Cons(A, List[A]),
  Nil,
}

def @main[A]() -> fn (A, List[A]) -> List[A] {
  Cons
}
]]
      assert.equal(text, text_of(assert(pl.parse(text))))
    end)
end)

describe("metadata", function()
  it("test_meta_data: symbolic dims that a text had there, and constants with elements", function()
    local path = shared .. "small/symbolic_shape.relay"
    local file = io.open(path)
    if not file then return pending("no " .. path) end
    local text = file:read "a"
    file:close()
    local mod = assert(pl.parse(text))
    assert.equal(text, tostring(mod):sub(1, #text))
    assert.matches("meta%[tir.%a*Var%]%[0%]", text)
    has("type_key", text)

    local node = pl.const { 1, 2, 3 }
    has("meta[relay.Constant][0]", text_of(pl.module { main = pl.func({}, node) }))
  end)

  it("dims that have names here are written by name", function()
    local f = pl.func({ pl.var("x", pl.type "Tensor[(n, 10, 8, 8), float32]") }, pl.const(1.0))
    has("%x: Tensor[(n, 10, 8, 8), float32]", text_of(f))
  end)
end)

describe("attributes", function()
  it("test_call_attrs: those that differ from the default, and no others", function()
    local x = pl.var("x", f32(2, 3, 4))
    assert.equal("free_var %x: Tensor[(2, 3, 4), float32];\nnn.softmax(%x, axis=2)",
      shown(pl.call("nn.softmax", { x }, { axis = 2 })))
    assert.equal("free_var %x: Tensor[(2, 3, 4), float32];\nnn.softmax(%x)",
      shown(pl.call("nn.softmax", { x })))
    has("expand_dims(%x, axis=2, num_newaxis=2)",
      shown(pl.call("expand_dims", { x }, { axes = { 2 }, num_newaxis = 2 })))
  end)

  it("test_null_attribute: nothing is None", function()
    local f = module("def @main(%x: int8, TestAttribute=None) { %x }").main
    has("TestAttribute=None", text_of(f))
  end)

  it("stand in the order of the text, what names their struct behind them", function()
    local mod = module [[
def @main(%x: float32) {
  %0 = fn (%y: float32) { %y };
  %0(%x, name="n", axis=3, attrs_type_key="attrs.TestAttrs")
}]]
    has('%0(%x, name="n", axis=3, attrs_type_key="attrs.TestAttrs")', text_of(mod))
  end)
end)

describe("scopes and names", function()
  it("test_let_if_scope: a let that is used twice stands in parentheses, in its branch", function()
    local x, y = pl.var("x", "float32"), pl.var("y", "float32")
    local cond = pl.var("cond", "bool")
    local v1, v2, v3 = pl.var("v", "float32"), pl.var("v", "float32"), pl.var("v", "float32")
    local inner = pl.let(v3, y, v3)
    local f = pl.func({ x, y, cond }, pl.if_(cond,
      pl.let(v1, pl.const(1, "float32"), pl.let(v2, x, v1 - v2)), inner + inner))
    local text = shown(f)
    assert.equal(3, count(text, "{"))
    has("%cond: bool", text)
    assert.equal([[
fn (%x: float32, %y: float32, %cond: bool) -> float32 {
  if (%cond) {
    let %v: float32 = 1f;
    let %v1: float32 = %x;
    subtract(%v, %v1)
  } else {
    %0 = (
      let %v2: float32 = %y;
      %v2
    );
    add(%0, %0)
  }
}]], text)
  end)

  it("test_variable_name: no variable is called as a number", function()
    assert.equal("free_var %v1;\n%v1", shown(pl.var "1"))
  end)

  it("test_slash_in_identifier", function()
    local x, y = pl.var("base/x", "int8"), pl.var("base/y", "int8")
    has("add(%base/x, %base/y)", shown(x + y))
  end)

  it("test_call_node_order: arguments before what is called", function()
    local x, y = pl.var "x", pl.var "y"
    assert.equal([[
%0 = fn (%y) {
  %y
};
%1 = %0(1);
%2 = fn (%x) {
  %x
};
%2(%1)]], shown(ir.Call(pl.func({ x }, x),
      { ir.Call(pl.func({ y }, y), { pl.const(1, "int32") }) })))
  end)

  it("test_let_inlining: a value stands in its let, unless it is used elsewhere", function()
    local zero = pl.const(0, "int32")
    local x, pair = pl.var "x", pl.tuple { zero, zero }
    assert.equal("%0 = (0, 0);\nlet %x: (int32, int32) = %0;\n%0",
      (shown(pl.let(pl.var("x", "(int32, int32)"), pair, pair))))
    assert.matches("^let %%x[^=]* = %(0, 0%);\n%%x$", shown(pl.let(x, pair, x)))
  end)
end)

describe("places", function()
  it("test_span: are told when the source told them", function()
    local f = module [[
def @main(%x: Tensor[(3, 2), float32]) {
  %0 = add(%x, 1f) /* span=Add0:0:0 */;
  add(%0, %0) /* span=Add1:0:0 */
}]].main
    local text = text_of(f)
    has("span=Add0:0:0 */;", text)
    has("span=Add1:0:0 */\n", text)
  end)
end)

describe("models", function()
  --- A text of TVM's comes back byte by byte.
  local function same(name)
    local file = io.open(shared .. "workload/" .. name .. ".relay")
    if not file then return pending("no " .. shared) end
    local text = file:read "a"
    file:close()
    assert.equal(text, text_of(assert(pl.parse(text))))
  end

  it("test_mlp", function() same "mlp" end)
  it("test_resnet", function() same "resnet50" end)
  it("test_mobilenet", function() same "mobilenet" end)
  it("test_lstm", function() same "lstm_unrolled_30" end)
  it("test_inception_v3", function() same "inception_v3" end)

  -- The others' own kinds of layers, smaller.
  local layers = 0
  local function weight(...)
    layers = layers + 1
    return pl.var("w" .. layers, f32(...))
  end
  local function conv(x, out, kernel, stride, pad)
    local n = x.type.shape[2]
    local w = weight(out, n, kernel, kernel)
    return pl.op.nn.relu(pl.call("nn.conv2d", { x, w }, { channels = out,
      kernel_size = { kernel, kernel }, strides = { stride, stride },
      padding = { pad, pad, pad, pad } }))
  end
  local function whole(x) return pl.module { main = pl.func(pl.free_vars(x), x) } end

  it("test_dqn: convolutions, a matrix product, a bias", function()
    local x = pl.var("data", f32(1, 4, 36, 36))
    x = conv(conv(x, 8, 8, 4, 0), 16, 4, 2, 0)
    x = pl.call("nn.batch_flatten", { x })
    x = pl.call("nn.bias_add", { pl.call("nn.dense", { x, weight(18, x.type.shape[2]) },
      { units = 18 }), weight(18) })
    assert.matches("units=18", text_of(whole(x)))
  end)

  it("test_dcgan: a matrix product, transposed convolutions, tanh", function()
    local x = pl.var("data", f32(1, 100))
    x = pl.op.nn.relu(pl.call("nn.dense", { x, weight(64, 100) }, { units = 64 }))
    x = pl.call("reshape", { x }, { newshape = { -1, 16, 2, 2 } })
    x = pl.call("nn.conv2d_transpose", { x, weight(16, 3, 4, 4) }, { channels = 3,
      kernel_size = { 4, 4 }, strides = { 2, 2 }, padding = { 1, 1, 1, 1 } })
    x = pl.op.nn.leaky_relu(x)
    has("kernel_size=[4, 4]", text_of(whole(pl.op.tanh(x))))
  end)

  it("test_squeezenet: branches that are joined", function()
    local x = conv(pl.var("data", f32(1, 3, 16, 16)), 8, 3, 2, 0)
    x = pl.call("nn.max_pool2d", { x }, { pool_size = { 3, 3 }, strides = { 2, 2 } })
    for _ = 1, 3 do
      local squeezed = conv(x, 4, 1, 1, 0)
      x = pl.call("concatenate",
        { pl.tuple { conv(squeezed, 4, 1, 1, 0), conv(squeezed, 4, 3, 1, 1) } }, { axis = 1 })
    end
    x = pl.call("nn.global_avg_pool2d", { pl.call("nn.dropout", { x }, { ratio = 0.4 }) })
    local text = text_of(whole(pl.call("nn.softmax", { pl.call("nn.batch_flatten", { x }) })))
    assert.equal(3, count(text, "concatenate%("))
  end)

  it("test_densenet: what each layer gives goes into all that follow", function()
    local x = conv(pl.var("data", f32(1, 3, 8, 8)), 4, 3, 1, 1)
    for _ = 1, 6 do
      x = pl.call("concatenate", { pl.tuple { x, conv(x, 4, 3, 1, 1) } }, { axis = 1 })
    end
    local text = text_of(whole(x))
    assert.equal(6, count(text, "concatenate%("))
  end)
end)
