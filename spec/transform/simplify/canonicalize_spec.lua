-- FastMath, CanonicalizeOps, CanonicalizeCast, DivToMul, FlattenAtrousConv: calls in the form
-- that later passes know.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local function becomes(name, before, after, inputs)
  return golden.becomes(pl.passes[name](), before, after, inputs)
end
local function stays(name, text) golden.stays(pl.passes[name](), text) end

-- A model of ONNX with that result.
local function onnx_model(params, body)
  local path = os.tmpname() .. ".onnx"
  assert(pl.onnx.save(pl.module { main = pl.func(params, body) }, path))
  local mod = assert(pl.onnx.load(path))
  os.remove(path)
  return mod
end

describe("FastMath", function()
  it("replaces the four operators that have approximations", function()
    becomes("FastMath", [[
def @main(%x: Tensor[(2, 3), float32]) {
  nn.softmax(erf(tanh(exp(%x))), axis=0)
}]], [[
def @main(%x: Tensor[(2, 3), float32]) {
  nn.fast_softmax(fast_erf(fast_tanh(fast_exp(%x))), axis=0)
}]], { rtol = 1e-3, atol = 1e-3 })
  end)

  it("leaves other operators, and models of ONNX, which has no approximations", function()
    stays("FastMath", "def @main(%x: Tensor[(2, 3), float32]) { nn.log_softmax(sigmoid(%x)) }")
    local x = pl.var("x", "Tensor[(2, 3), float32]")
    local mod = onnx_model({ x }, pl.op.exp(x))
    assert.equal(mod, pl.passes.FastMath()(mod))
  end)

  it("is of level 4", function() assert.equal(4, pl.passes.FastMath.opt_level) end)
end)

describe("CanonicalizeOps", function()
  it("writes a bias_add as an addition", function()
    becomes("CanonicalizeOps", [[
def @main(%x: Tensor[(2, 3, 4, 5), float32], %b: Tensor[(3), float32]) {
  nn.bias_add(%x, %b)
}]], [[
def @main(%x: Tensor[(2, 3, 4, 5), float32], %b: Tensor[(3), float32]) {
  add(%x, expand_dims(%b, axis=1, num_newaxis=2))
}]])
  end)

  it("adds no axes for the last one, which may be counted from the end", function()
    becomes("CanonicalizeOps", [[
def @main(%x: Tensor[(2, 3), float32], %b: Tensor[(3), float32], %c: Tensor[(2), float32]) {
  nn.bias_add(nn.bias_add(%x, %b, axis=-1), %c, axis=-2)
}]], [[
def @main(%x: Tensor[(2, 3), float32], %b: Tensor[(3), float32], %c: Tensor[(2), float32]) {
  add(add(%x, %b), expand_dims(%c, axis=1))
}]])
  end)
end)

describe("CanonicalizeCast", function()
  it("gives each elementwise user a cast of its own", function()
    becomes("CanonicalizeCast", [[
def @main(%x: Tensor[(2, 3), int8], %y: Tensor[(2, 3), int32]) {
  %0 = cast(%x, dtype="int32");
  (add(%0, %y), multiply(%0, %y), add(%0, %0))
}]], [[
def @main(%x: Tensor[(2, 3), int8], %y: Tensor[(2, 3), int32]) {
  (add(cast(%x, dtype="int32"), %y), multiply(cast(%x, dtype="int32"), %y),
   add(cast(%x, dtype="int32"), cast(%x, dtype="int32")))
}]])
  end)

  it("lets users of other kinds share the first one", function()
    becomes("CanonicalizeCast", [[
def @main(%x: Tensor[(2, 3), float16]) {
  %0 = cast(%x, dtype="float32");
  (exp(%0), nn.softmax(%0), tanh(%0))
}]], [[
def @main(%x: Tensor[(2, 3), float16]) {
  %0 = cast(%x, dtype="float32");
  (exp(%0), nn.softmax(%0), tanh(cast(%x, dtype="float32")))
}]])
  end)

  it("copies a cast of bool, whose elements are bits", function()
    becomes("CanonicalizeCast", [[
def @main(%x: Tensor[(2), bool]) { %0 = cast(%x, dtype="int8"); (abs(%0), negative(%0)) }]], [[
def @main(%x: Tensor[(2), bool]) {
  (abs(cast(%x, dtype="int8")), negative(cast(%x, dtype="int8")))
}]])
  end)

  it("leaves narrowing casts shared", function()
    stays("CanonicalizeCast", [[
def @main(%x: Tensor[(2), int32]) { %0 = cast(%x, dtype="int8"); (abs(%0), negative(%0)) }]])
  end)
end)

describe("DivToMul", function()
  local function divided_by(constant, dtype)
    local x = pl.var("x", ("Tensor[(2, 3), %s]"):format(dtype))
    return pl.module { main = pl.func({ x }, x / pl.const(constant)) }
  end

  it("multiplies by reciprocals, element by element", function()
    for dtype, rtol in pairs { float16 = 1e-2, float32 = 1e-5, float64 = 1e-12 } do
      local mod = divided_by(pl.tensor({ 4, -8, 3 }, dtype), dtype)
      local out = golden.apply(pl.passes.DivToMul(), mod)
      assert(pl.check(mod, out, { rtol = rtol, atol = 1e-3 }))
      assert.equal("multiply", out.main.body.op.name)
      local factors = out.main.body.args[2].data:to_table()
      assert.equal(0.25, factors[1])
      assert.equal(-0.125, factors[2])
      assert.near(1 / 3, factors[3], rtol)
    end
  end)

  it("divides by equal elements", function()
    local mod = divided_by(pl.tensor({ 2, 2, 2 }, "float32"), "float32")
    local out = golden.apply(pl.passes.DivToMul(), mod)
    assert.same({ 0.5, 0.5, 0.5 }, out.main.body.args[2].data:to_table())
  end)

  it("leaves zeros, what has no finite reciprocal, integers and variables", function()
    for _, constant in ipairs { pl.tensor({ 1, 0, 2 }, "float32"), pl.tensor({ -0.0 }, "float32"),
      pl.tensor({ 1e-40 }, "float32"), pl.tensor({ 0 / 0 }, "float32") } do
      local mod = divided_by(constant, "float32")
      assert.equal(mod, pl.passes.DivToMul()(mod))
    end
    local mod = divided_by(pl.tensor({ 4 }, "int32"), "int32")
    assert.equal(mod, pl.passes.DivToMul()(mod))
    stays("DivToMul", "def @main(%x: float32, %y: float32) { divide(2f, divide(%x, %y)) }")
  end)

  it("requires FoldConstant in a pipeline", function()
    assert.same({ "FoldConstant" }, pl.passes.DivToMul.required)
    local before = golden.module "def @main(%x: float32) { divide(%x, multiply(2f, 4f)) }"
    assert.equal(before, pl.passes.DivToMul()(before)) -- a pass alone runs as it is
    local out = pl.pipeline "DivToMul" (before)
    assert(pl.equal(out, golden.module "def @main(%x: float32) { multiply(%x, 0.125f) }"))
  end)
end)

describe("FlattenAtrousConv", function()
  local pattern = [==[
def @main(%x: Tensor[(1, 5, 5, 4), float32], %w: Tensor[(3, 3, 4, 1), float32]) {
  %0 = nn.space_to_batch_nd(%x, block_shape=[B, B], paddings=[[P], [P]]);
  %1 = nn.conv2d(%0, %w, padding=[0, 0, 0, 0], groups=4, channels=4, kernel_size=[3, 3],
                 data_layout="NHWC", kernel_layout="HWOI");
  add(nn.batch_to_space_nd(%1, block_shape=[B, B], crops=[[C], [C]]), 1f)
}]==]

  local function blocks(values) return (pattern:gsub("%f[%w][BPC]%f[%W]", values)) end

  it("dilates the convolution by the blocks", function()
    for _, case in ipairs {
      { B = "2", P = "2, 3", C = "0, 1", padding = "2, 2, 2, 2" },
      { B = "4", P = "4, 7", C = "0, 3", padding = "4, 4, 4, 4" },
    } do
      becomes("FlattenAtrousConv", blocks(case), ([[
def @main(%%x: Tensor[(1, 5, 5, 4), float32], %%w: Tensor[(3, 3, 4, 1), float32]) {
  %%0 = nn.conv2d(%%x, %%w, padding=[%s], dilation=[%s, %s], groups=4, channels=4,
                 kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWOI");
  add(%%0, 1f)
}]]):format(case.padding, case.B, case.B))
    end
  end)

  it("leaves a padding that does not keep the extents", function()
    stays("FlattenAtrousConv", blocks { B = "2", P = "1, 2", C = "0, 0" })
    stays("FlattenAtrousConv", blocks { B = "2", P = "0, 1", C = "0, 0" })
  end)

  it("dilates a quantized convolution that is padded with the zero point", function()
    local quantized = [==[
def @main(%x: Tensor[(1, 5, 5, 4), int8], %w: Tensor[(3, 3, 4, 1), int8]) {
  %0 = nn.space_to_batch_nd(%x, block_shape=[2, 2], paddings=[[2, 3], [2, 3]], pad_value=VALUE);
  %1 = qnn.conv2d(%0, %w, 7, 0, 0.5f, 0.25f, padding=[0, 0, 0, 0], groups=4, channels=4,
                  kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWOI", out_dtype="int32");
  nn.batch_to_space_nd(%1, block_shape=[2, 2], crops=[[0, 1], [0, 1]])
}]==]
    becomes("FlattenAtrousConv", (quantized:gsub("VALUE", "7f")), [[
def @main(%x: Tensor[(1, 5, 5, 4), int8], %w: Tensor[(3, 3, 4, 1), int8]) {
  qnn.conv2d(%x, %w, 7, 0, 0.5f, 0.25f, padding=[2, 2, 2, 2], dilation=[2, 2], groups=4,
             channels=4, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWOI",
             out_dtype="int32")
}]])
    stays("FlattenAtrousConv", (quantized:gsub("VALUE", "0f")))
  end)

  it("leaves parts of the pattern, and what stands between them", function()
    stays("FlattenAtrousConv", [==[
def @main(%x: Tensor[(1, 5, 5, 4), float32], %w: Tensor[(3, 3, 4, 1), float32]) {
  %0 = nn.space_to_batch_nd(%x, block_shape=[2, 2], paddings=[[2, 3], [2, 3]]);
  nn.conv2d(%0, %w, padding=[0, 0, 0, 0], groups=4, channels=4, kernel_size=[3, 3],
            data_layout="NHWC", kernel_layout="HWOI")
}]==])
    local whole = blocks { B = "2", P = "2, 3", C = "0, 1" }
    stays("FlattenAtrousConv", (whole:gsub("conv2d%(%%0", "conv2d(nn.relu(%%0)")))
  end)
end)
