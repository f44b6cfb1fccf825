-- Legalize: calls that the target computes in place of others.

local pl = require "perilune"
local op = pl.op

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

local function legalize(mod, target, options)
  local context = pl.context { opt_level = 3, target = target }
  local out = pl.with(context, pl.passes.Legalize(options), mod)
  assert(pl.verify(out))
  return out
end

local function becomes(before, after, target)
  local mod = parse(before)
  local out, expected = legalize(mod, target), parse(after)
  assert(pl.equal(expected, out), pl.mismatch(expected, out) or tostring(out))
  return mod, out
end

local function computes_the_same(before, target)
  local mod = parse(before)
  local out = legalize(mod, target)
  assert.not_equal(mod, out)
  assert(pl.check(mod, out, { rounds = 2 }))
end

describe("Legalize", function()
  it("takes from tensors of unknown extents apart from what computes them", function()
    becomes([[
def @main(%x: Tensor[(?), int32], %y: Tensor[(4), int32], %i: int32) {
  %0 = take(%x, %i);
  %1 = take(%y, %i);
  add(%0, %1)
}]], [[
def @main(%x: Tensor[(?), int32], %y: Tensor[(4), int32], %i: int32) {
  %0 = annotation.stop_fusion(%x);
  %1 = take(%0, %i);
  %2 = take(%y, %i);
  add(%1, %2)
}]])
  end)

  it("computes transposed convolutions with channels first", function()
    local mod, out = becomes([[
def @main(%x: Tensor[(1, 6, 6, 4), float32], %w: Tensor[(4, 8, 3, 3), float32]) {
  nn.conv2d_transpose(%x, %w, channels=8, kernel_size=[3, 3], padding=[0, 0, 0, 0],
    data_layout="NHWC", kernel_layout="IOHW")
}]], [[
def @main(%x: Tensor[(1, 6, 6, 4), float32], %w: Tensor[(4, 8, 3, 3), float32]) {
  %0 = transpose(%x, axes=[0, 3, 1, 2]);
  %1 = nn.conv2d_transpose(%0, %w, channels=8, kernel_size=[3, 3], padding=[0, 0, 0, 0]);
  transpose(%1, axes=[0, 2, 3, 1])
}]])
    assert(pl.check(mod, out, { rounds = 2 }))
    computes_the_same [[
def @main(%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(3, 3, 8, 4), float32]) {
  nn.conv2d_transpose(%x, %w, channels=8, kernel_size=[3, 3], padding=[0, 0, 0, 0],
    kernel_layout="HWOI")
}]]
    computes_the_same [[
def @main(%x: Tensor[(1, 3, 3, 3, 4), float32], %w: Tensor[(2, 2, 2, 4, 8), float32]) {
  nn.conv3d_transpose(%x, %w, channels=8, kernel_size=[2, 2, 2], padding=[0, 0, 0, 0, 0, 0],
    data_layout="NDHWC", kernel_layout="DHWIO")
}]]
  end)

  it("computes gradients of weights as convolutions", function()
    computes_the_same [[
def @main(%g: Tensor[(2, 8, 4, 4), float32], %x: Tensor[(2, 4, 9, 9), float32]) {
  nn.conv2d_backward_weight(%g, %x, strides=[2, 2], padding=[0, 0, 0, 0], channels=8,
    kernel_size=[3, 3], out_layout="OIHW", kernel_layout="NCHW")
}]]
  end)

  local BYTES = [[
def @main(%%x: Tensor[(1, 5, 5, 3), %s], %%w: Tensor[(3, 3, 3, 8), int8]) {
  nn.conv2d(%%x, %%w, padding=[%s], channels=8, kernel_size=[3, 3], data_layout="NHWC",
    kernel_layout="HWIO", out_dtype="int32")
}]]

  it("fills vectors of bytes on x86", function()
    becomes(BYTES:format("int8", "0, 0, 0, 0"), [=[
def @main(%x: Tensor[(1, 5, 5, 3), int8], %w: Tensor[(3, 3, 3, 8), int8]) {
  %0 = cast(%x, dtype="int32");
  %1 = add(%0, 128);
  %2 = cast(%1, dtype="uint8");
  %3 = nn.pad(%w, 0, pad_width=[[0, 0], [0, 0], [0, 1], [0, 0]]);
  %4 = nn.pad(%2, 0, pad_width=[[0, 0], [0, 0], [0, 0], [0, 1]]);
  %5 = nn.pad(%3, 0, pad_width=[[0, 0], [0, 0], [0, 0], [0, 8]]);
  %6 = nn.conv2d(%4, %5, padding=[0, 0, 0, 0], channels=16, kernel_size=[3, 3],
    data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32");
  %7 = cast(%w, dtype="int32");
  %8 = sum(%7, axis=[0, 1, 2]);
  %9 = strided_slice(%6, begin=[0, 0, 0, 0], end=[1, 3, 3, 8], strides=[1]);
  %10 = multiply(%8, 128);
  subtract(%9, %10)
}]=], "llvm -mcpu=cascadelake")
    computes_the_same(BYTES:format("int8", "1, 0, 2, 1"), "llvm -mcpu=cascadelake")
    computes_the_same(BYTES:format("uint8", "1, 1, 1, 1"), "llvm -mcpu=cascadelake")
    computes_the_same([[
def @main(%x: Tensor[(1, 3, 5, 5), int8], %w: Tensor[(8, 3, 3, 3), int8]) {
  nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3], out_dtype="int32")
}]], "llvm -mcpu=cascadelake")
    computes_the_same([[
def @main(%x: Tensor[(3, 8), int8], %w: Tensor[(16, 8), int8]) {
  nn.dense(%x, %w, units=16, out_dtype="int32")
}]], "llvm -mcpu=cascadelake")
    computes_the_same([[
def @main(%x: Tensor[(2, 3, 8), int8], %w: Tensor[(2, 16, 8), int8]) {
  nn.batch_matmul(%x, %w, out_dtype="int32", transpose_b=True)
}]], "llvm -mcpu=cascadelake")
  end)

  it("leaves out clips that repeat the limits of a requantised tensor", function()
    becomes([[
def @main(%x: Tensor[(4), int32]) {
  %0 = qnn.requantize(%x, 1f, 0, 2f, 0, out_dtype="int8");
  (clip(%0, a_min=-128f, a_max=127f), clip(%0, a_min=0f, a_max=127f),
   clip(%x, a_min=-128f, a_max=127f))
}]], [[
def @main(%x: Tensor[(4), int32]) {
  %0 = qnn.requantize(%x, 1f, 0, 2f, 0, out_dtype="int8");
  (%0, clip(%0, a_min=0f, a_max=127f), clip(%x, a_min=-128f, a_max=127f))
}]])
  end)

  it("leaves bytes where the target is unknown", function()
    local mod = parse(BYTES:format("int8", "0, 0, 0, 0"))
    assert.equal(mod, legalize(mod))
    assert.equal(mod, legalize(mod, "llvm"))
  end)

  it("asks the function of an operator under the key that is named", function()
    local types
    pl.op_attr("nn.relu", "my.legalize", function(_, inputs, given)
      types = { tostring(given[1]), tostring(given[2]) }
      return op.maximum(inputs[1], 0)
    end)
    local mod = parse "def @main(%x: Tensor[(2), float32]) { %0 = nn.relu(%x); tanh(%0) }"
    assert.equal(mod, legalize(mod))
    local out = legalize(mod, nil, { legalize_map_attr_name = "my.legalize" })
    pl.op_attr("nn.relu", "my.legalize", nil)
    local expected = parse "def @main(%x: Tensor[(2), float32]) { %0 = maximum(%x, 0f); tanh(%0) }"
    assert(pl.equal(expected, out), tostring(out))
    assert.same({ "Tensor[(2), float32]", "Tensor[(2), float32]" }, types)
  end)

  it("gives a diagnostic for what is no call, and leaves the module", function()
    local mod = parse "def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }"
    pl.op_attr("nn.relu", "FTVMLegalize", function(_, inputs) return inputs[1] end)
    local ok, diag = pcall(legalize, mod)
    pl.op_attr("nn.relu", "FTVMLegalize", nil)
    assert.is_false(ok)
    local text = tostring(diag)
    assert.truthy(text:find("'FTVMLegalize' of 'nn.relu': a call", 1, true), text)
  end)
end)
