-- Whole models through generated C: pl.build of Relay code gives what the evaluator gives.

local pl = require "perilune"
local models = dofile "spec/topi/models.lua"

local agrees, from_zoo = models.agrees, models.from_zoo

local function folder()
  local name = os.tmpname()
  os.remove(name)
  assert(os.execute("mkdir " .. name))
  return name
end

local function relay(body) return assert(pl.parse("#[version = \"0.0.5\"]\n" .. body)) end

local mlp = [[
def @main(%x: Tensor[(3, 16), float32], %w: Tensor[(32, 16), float32], %b: Tensor[(32), float32],
    %v: Tensor[(4, 32), float32]) {
  %0 = nn.relu(nn.bias_add(nn.dense(%x, %w, units=32), %b));
  %1 = nn.dense(%0, %v, units=4);
  (nn.softmax(%1), nn.log_softmax(%1))
}]]

local small = {
  resnet = { depth = 18, width = 8, image = 32, batch = 1, classes = 10 },
  mobilenetv2 = { image = 32, batch = 2, classes = 10 },
  bert = { layers = 2, hidden = 32, heads = 2, intermediate = 64, vocabulary = 50,
    positions = 32, batch = 2, sequence = 12 },
  vit = { layers = 1, hidden = 32, heads = 2, mlp = 64, patch = 8, image = 32, classes = 10,
    batch = 1 },
  gpt2 = { layers = 1, hidden = 32, heads = 2, vocabulary = 50, positions = 32, batch = 1,
    sequence = 9 },
}

describe("built models", function()
  it("run layers on inputs without constants", function()
    local built = agrees(relay(mlp))
    local info = built:model()
    assert.equal(0, info.weight_bytes)
    assert.equal(4, #info.inputs)
    assert.equal(2, #info.outputs)
    assert.equal("Tensor[(3, 4), float32]", tostring(info.outputs[1]))
  end)

  for name, values in pairs(small) do
    it("of the zoo give what the evaluator gives: " .. name, function()
      agrees(from_zoo(name, values))
    end)
  end

  it("run in this process, with threads, and without vectors", function()
    agrees(relay(mlp), { run = "process" })
    agrees(relay(mlp), { threads = 2 })
    agrees(relay(mlp), { vector_bytes = 16 })
  end)

  it("use memory again when a value is not needed any more", function()
    local lines = { "def @main(%x: Tensor[(64, 64), float32]) {" }
    for i = 0, 19 do
      lines[#lines + 1] = ("  %%%d = nn.softmax(%s);"):format(i, i == 0 and "%x" or "%" .. i - 1)
    end
    lines[#lines + 1] = "  nn.softmax(%19)\n}"
    local info = agrees(relay(table.concat(lines, "\n"))):model()
    assert.equal(21, info.calls)
    assert.equal(2 * 64 * 64 * 4, info.arena_bytes) -- what is read, and what is made of it
  end)

  it("return inputs, constants and values that stand twice", function()
    agrees(relay [[
def @main(%x: Tensor[(4), float32]) {
  %0 = exp(%x);
  (%x, %0, %0, 2f)
}]])
  end)

  it("take what was lowered before", function()
    local mod = pl.sequential { "InferType", "FuseOps", "LowerTE" } (relay(mlp))
    agrees(mod)
  end)

  it("of operators that are statements give what the evaluator gives", function()
    local function var(name, type_) return pl.var(name, type_) end
    local x = var("x", "Tensor[(3, 20), float32]")
    local y = var("y", "Tensor[(3, 2), float32]")
    local indices = pl.const(pl.tensor({ { 3, -1 }, { 0, 19 }, { 7, 7 } }, "int64"))
    agrees(pl.module { main = pl.func({ x, y }, pl.tuple {
      pl.op.sort(x, { axis = 1 }), pl.op.argsort(x, { axis = 0, dtype = "int32" }),
      pl.op.cumsum(x, { axis = 1, reverse = 1 }),
      pl.op.scatter_elements(x, indices, y, { axis = 1, reduction = "add" }),
    }) })
    local q = var("q", "Tensor[(2, 3, 4, 8), float32]")
    local k = var("k", "Tensor[(2, 3, 6, 8), float32]")
    agrees(pl.module { main = pl.func({ q, k }, pl.op.attention(q, k, k, { is_causal = 1 })) })
    agrees(relay [[
def @main(%v: Tensor[(4, 33), float32]) {
  %0 = topk(%v, k=5, axis=-1, ret_type="both", dtype="int32");
  (%0.0, %0.1)
}]])
  end)

  it("of Relay's quantised operators are integers", function()
    local mod = relay [[
def @main(%x: Tensor[(2, 8), float32], %y: Tensor[(2, 8), float32]) {
  %0 = qnn.quantize(%x, 0.05f, 3, out_dtype="int8");
  %1 = qnn.quantize(%y, 0.02f, 0, out_dtype="int8");
  %2 = qnn.dense(%0, %1, 3, 0, 0.05f, 0.02f, units=2, out_dtype="int32");
  %3 = qnn.requantize(%2, 0.001f, 0, 0.02f, 1, out_dtype="int8");
  qnn.dequantize(%3, 0.02f, 1)
}]]
    agrees(pl.sequential { "qnn.CanonicalizeOps", "InferType" } (mod))
    assert.is_table(pl.build(mod):model())
  end)

  it("do not write their weights and inputs, which no call copies", function()
    local header = pl.build(from_zoo("bert", small.bert)):header()
    assert.matches("const uint8_t %*restrict weights", header)
    assert.not_matches("[(,] ?uint8_t %*restrict weights", header)
    local outputs = select(2, header:gsub("[(,] ?float %*restrict output%d", ""))
    assert.is_true(outputs > 0)
  end)

  it("write their constants beside the object", function()
    local path = folder()
    local built = pl.build(from_zoo("bert", small.bert))
    built:save(path .. "/bert.so")
    built:save(path .. "/bert.c")
    local file = assert(io.open(path .. "/bert.bin", "rb"))
    assert.equal(built:model().weight_bytes, file:seek "end")
    file:close()
    os.execute("rm -rf " .. path)
  end)

  -- Branches within branches, results that are inputs, or stand twice, or come from outside.
  it("run the branch of an If whose condition holds", function()
    local mod = relay [[
def @main(%c: bool, %d: bool, %x: Tensor[(n, 4), float32]) {
  %0 = exp(%x);
  %5 = if (%c) {
    %1 = nn.relu(%0);
    if (%d) { (%1, nn.softmax(%1), %1) } else { (tanh(%x), %x, %0) }
  } else {
    %2 = nn.softmax(nn.softmax(%0));
    %3 = sum(%2);
    if (greater(%3, 1.5f)) { (%x, %2, 2f * %x) } else { (%2, %x, %x) }
  };
  %6 = if (%d) { %x } else { %0 };
  (%5.0, add(%5.1, %0), %5.2, %6, if (%c) { exp(%6) } else { %6 })
}]]
    local built = pl.build(mod)
    for i = 0, 11 do
      local args = { pl.tensor(i % 2 == 0, "bool"), pl.tensor(i // 2 % 2 == 0, "bool"),
        pl.tensor.random({ i // 4 + 1, 4 }, "float32", { seed = i }) }
      local expected = table.pack(pl.eval(mod, table.unpack(args)))
      for k, result in ipairs(built.main(table.unpack(args))) do
        assert.is_true((result:compare(expected[k], { rtol = 1e-4, atol = 1e-4 })), i .. ":" .. k)
      end
    end
  end)

  it("tell what cannot be built", function()
    local function fails(text, f, ...)
      local ok, err = pcall(f, ...)
      assert.is_false(ok)
      assert.matches(text, tostring(err), 1, true)
    end
    fails("a value of type Tensor[*", pl.build,
      relay "def @main(%x: Tensor[*, float32]) { exp(%x) }")
    fails([[operator 'microsoft.inverse' has no compute
  at net.relay:3:16
  at net.relay:3:44
operator 'nonzero': the shape of its result, Tensor[(2, ?), int64], depends on data
  at net.relay:4:8]], pl.build, assert(pl.parse([[
#[version = "0.0.5"]
def @main(%x: Tensor[(4, 4), float32]) {
  %0 = exp(add(microsoft.inverse(exp(%x)), microsoft.inverse(%x)));
  %1 = nonzero(nn.relu(%0));
  (%0, %1)
}]], "net.relay")))
    fails("this control flow is not compiled", pl.build, relay [[
type Choice { First, Second }
def @main(%x: Tensor[(4), float32]) {
  let %c: Choice = First;
  match (%c) { First => exp(%x), Second => tanh(%x) }
}]])
    local partly = pl.passes.LowerTE { unsupported = "keep" } (pl.sequential { "InferType",
      "FuseOps" } (relay [[
def @main(%x: Tensor[(4, 4), float32]) { microsoft.inverse(exp(%x)) }]]))
    fails("is not lowered", pl.build, partly)
    fails("2 arguments expected, got 1", pl.build(relay [[
def @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) { add(%x, %y) }]]).main, { 1 })
  end)
end)

describe("calls between functions of a source", function()
  local text = [[
# from tvm.script import tir as T
@I.ir_module
class Module:
    @T.prim_func
    def a_step(A: T.Buffer((20000,), "float32"), B: T.Buffer((20000,), "float32")):
        C = T.allocate([20000], "float32", "global")
        C_1 = T.Buffer((20000,), data=C)
        for i in range(20000):
            C_1[i] = A[i] + T.float32(1)
        for i in range(20000):
            B[i] = C_1[i] * T.float32(2)
    @T.prim_func
    def b_twice(A: T.Buffer((20000,), "float32"), B: T.Buffer((20000,), "float32")):
        D = T.allocate([20000], "float32", "global")
        D_1 = T.Buffer((20000,), data=D)
        T.evaluate(T.call_extern("int32", "a_step", A.data, T.address_of(D_1[0])))
        T.evaluate(T.call_extern("int32", "a_step", T.address_of(D_1[0]), B.data))
]]

  it("pass on memory that the caller has", function()
    local built = pl.build(assert(pl.tir.parse((text:gsub("^#.-\n",
      "# from tvm.script import ir as I\n# from tvm.script import tir as T\n")))))
    local zeros = pl.tensor.full(0, { 20000 }, "float32")
    local result = built.b_twice(zeros, zeros)[2]
    assert.equal(6, result:get(1))
    assert.equal(6, result:get(20000))
    -- What is read only, by the called function as well, is constant.
    assert.matches("b_twice%(const float %*restrict A, float %*restrict B", built:header())
  end)

  it("are calls that write what their callees write", function()
    local source = text:gsub("^#.-\n",
      "# from tvm.script import ir as I\n# from tvm.script import tir as T\n")
    source = source:gsub('"a_step", A.data, T.address_of%(D_1%[0%]%)',
      '"a_step", T.address_of(A[0]), A.data'):gsub("T.address_of%(D_1%[0%]%), B.data",
      "A.data, B.data")
    local built = pl.build(assert(pl.tir.parse((source))), { flags = "-O1" })
    assert.matches("b_twice%(float %*", built:header())
    local zeros = pl.tensor.full(0, { 20000 }, "float32")
    local results = built.b_twice(zeros, zeros)
    assert.equal(2, results[1]:get(7))
    assert.equal(0, zeros:get(7))
  end)

  it("pass on the sizes of shapes, and memory that depends on them", function()
    local built = pl.build(assert(pl.tir.parse [[
# from tvm.script import ir as I
# from tvm.script import tir as T
@I.ir_module
class Module:
    @T.prim_func
    def a_step(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        C = T.allocate([n], "float32", "global")
        C_1 = T.Buffer((n,), data=C)
        for i in range(n):
            C_1[i] = A[i] + T.float32(1)
        for i in range(n):
            B[i] = C_1[i] * T.float32(2)
    @T.prim_func
    def b_twice(a: T.handle, b: T.handle):
        m = T.int64()
        A = T.match_buffer(a, (m,))
        B = T.match_buffer(b, (2 * m,))
        D = T.allocate([m * T.int64(3)], "float32", "global")
        D_1 = T.Buffer((m * T.int64(3),), data=D)
        T.evaluate(T.call_extern("int32", "a_step", A.data, T.address_of(D_1[0]), m))
        T.evaluate(T.call_extern("int32", "a_step", T.address_of(D_1[0]), B.data, m))
        T.evaluate(T.call_extern("int32", "a_step", A.data, T.address_of(B[m]), m))
]]))
    for _, n in ipairs { 1, 7, 100000 } do
      local result = built.b_twice(pl.tensor.full(1, { n }, "float32"),
        pl.tensor.full(0, { 2 * n }, "float32"))[2]
      assert.equal(10, result:get(1))
      assert.equal(10, result:get(n))
      assert.equal(4, result:get(n + 1))
      assert.equal(4, result:get(2 * n))
    end
  end)

  it("are refused where arguments are missing", function()
    local wrong = text:gsub("T.address_of%(D_1%[0%]%), B.data", "B.data")
      :gsub("^#.-\n", "# from tvm.script import ir as I\n# from tvm.script import tir as T\n")
    local ok, err = pcall(pl.build, assert(pl.tir.parse(wrong)))
    assert.is_false(ok)
    assert.matches("takes 2 arguments, not 1", tostring(err), 1, true)
  end)
end)
