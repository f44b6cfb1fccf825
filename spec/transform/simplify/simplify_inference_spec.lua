-- SimplifyInference: normalisations in primitive operators, dropouts left out.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local pass = pl.passes.SimplifyInference()
local function becomes(before, after, inputs) golden.becomes(pass, before, after, inputs) end

describe("SimplifyInference writes", function()
  it("a batch_norm", function()
    becomes([[
def @main(%x: Tensor[(2, 3, 4, 5), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32],
          %m: Tensor[(3), float32], %v: Tensor[(3), float32]) {
  nn.batch_norm(%x, %g, %b, %m, %v, epsilon=0.01f).0
}]], [[
def @main(%x: Tensor[(2, 3, 4, 5), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32],
          %m: Tensor[(3), float32], %v: Tensor[(3), float32]) {
  %0 = divide(1f, sqrt(add(%v, 0.01f)));
  %1 = multiply(%0, %g);
  %2 = add(multiply(negative(%m), %1), %b);
  %3 = multiply(%x, expand_dims(%1, axis=1, num_newaxis=2));
  add(%3, expand_dims(%2, axis=1, num_newaxis=2))
}]])
  end)

  it("a batch_norm on the last axis, without scale and center", function()
    becomes([[
def @main(%x: Tensor[(2, 4, 3), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32],
          %m: Tensor[(3), float32], %v: Tensor[(3), float32]) {
  nn.batch_norm(%x, %g, %b, %m, %v, axis=-1, center=False, scale=False).0
}]], [[
def @main(%x: Tensor[(2, 4, 3), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32],
          %m: Tensor[(3), float32], %v: Tensor[(3), float32]) {
  %0 = divide(1f, sqrt(add(%v, 1e-05f)));
  %1 = multiply(negative(%m), %0);
  add(multiply(%x, %0), %1)
}]])
  end)

  it("a batch_norm at each of its first results, and keeps the call for the others", function()
    becomes([[
def @main(%x: Tensor[(2, 3), float16], %g: Tensor[(3), float16], %b: Tensor[(3), float16],
          %m: Tensor[(3), float16], %v: Tensor[(3), float16]) {
  %0 = nn.batch_norm(%x, %g, %b, %m, %v);
  (%0.0, %0.1)
}]], [[
def @main(%x: Tensor[(2, 3), float16], %g: Tensor[(3), float16], %b: Tensor[(3), float16],
          %m: Tensor[(3), float16], %v: Tensor[(3), float16]) {
  %0 = divide(1f16, sqrt(add(%v, 1.00136e-05f16)));
  %1 = multiply(%0, %g);
  %2 = add(multiply(negative(%m), %1), %b);
  %3 = nn.batch_norm(%x, %g, %b, %m, %v);
  (add(multiply(%x, %1), %2), %3.1)
}]], { rtol = 0.1, atol = 0.1 })
  end)

  it("a layer_norm", function()
    becomes([[
def @main(%x: Tensor[(2, 3, 4), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32]) {
  nn.layer_norm(%x, %g, %b, axis=1, epsilon=0.001f)
}]], [[
def @main(%x: Tensor[(2, 3, 4), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32]) {
  %0 = mean(%x, axis=[1], keepdims=True);
  %1 = variance(%x, %0, axis=[1], keepdims=True);
  %2 = divide(subtract(%x, %0), sqrt(add(%1, 0.001f)));
  %3 = multiply(%2, expand_dims(%g, axis=1, num_newaxis=1));
  add(%3, expand_dims(%b, axis=1, num_newaxis=1))
}]])
  end)

  it("an instance_norm", function()
    becomes([[
def @main(%x: Tensor[(2, 4, 5, 3), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32]) {
  nn.instance_norm(%x, %g, %b, axis=3, scale=False)
}]], [[
def @main(%x: Tensor[(2, 4, 5, 3), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32]) {
  %0 = mean(%x, axis=[1, 2], keepdims=True);
  %1 = variance(%x, %0, axis=[1, 2], keepdims=True);
  %2 = divide(subtract(%x, %0), sqrt(add(%1, 1e-05f)));
  add(%2, %b)
}]])
  end)

  it("a group_norm", function()
    becomes([[
def @main(%x: Tensor[(2, 6, 4, 5), float32], %g: Tensor[(6), float32], %b: Tensor[(6), float32]) {
  nn.group_norm(%x, %g, %b, num_groups=3)
}]], [[
def @main(%x: Tensor[(2, 6, 4, 5), float32], %g: Tensor[(6), float32], %b: Tensor[(6), float32]) {
  %0 = reshape(%x, newshape=[2, 3, 2, 4, 5]);
  %1 = mean(%0, axis=[2, 3, 4], keepdims=True);
  %2 = variance(%0, %1, axis=[2, 3, 4], keepdims=True);
  %3 = divide(subtract(%0, %1), sqrt(add(%2, 1e-05f)));
  %4 = reshape(%3, newshape=[2, 6, 4, 5]);
  %5 = multiply(%4, expand_dims(%g, axis=1, num_newaxis=2));
  add(%5, expand_dims(%b, axis=1, num_newaxis=2))
}]])
  end)

  it("an l2_normalize", function()
    becomes([[
def @main(%x: Tensor[(2, 3, 4), float32]) { nn.l2_normalize(%x, eps=0.001f, axis=[1, 2]) }]], [[
def @main(%x: Tensor[(2, 3, 4), float32]) {
  %0 = sum(multiply(%x, %x), axis=[1, 2], keepdims=True);
  divide(%x, sqrt(maximum(%0, 0.001f)))
}]])
    becomes([[
def @main(%x: Tensor[(2, 3), float32]) { nn.l2_normalize(%x, eps=0.001f, axis=None) }]], [[
def @main(%x: Tensor[(2, 3), float32]) {
  divide(%x, sqrt(maximum(sum(multiply(%x, %x), keepdims=True), 0.001f)))
}]])
  end)
end)

describe("SimplifyInference leaves out", function()
  it("dropouts, with what they read", function()
    becomes([[
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = nn.dropout(%x, rate=0.3f);
  if (less(sum(%x), 0f)) { tanh(%0.0) } else { nn.dropout(exp(%0.0)).0 }
}]], [[
def @main(%x: Tensor[(2, 3), float32]) {
  if (less(sum(%x), 0f)) { tanh(%x) } else { exp(%x) }
}]])
  end)

  it("the first result of a dropout whose mask is used", function()
    becomes("def @main(%x: float32) { %0 = nn.dropout(%x); (tanh(%0.0), %0.1) }",
      "def @main(%x: float32) { %0 = nn.dropout(%x); (tanh(%x), %0.1) }", false)
  end)
end)

describe("SimplifyInference keeps", function()
  local function stays(text) golden.stays(pass, text) end

  it("tuples that are used whole, or behind a let", function()
    stays [[
def @main(%x: Tensor[(2, 3), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32],
          %m: Tensor[(3), float32], %v: Tensor[(3), float32]) {
  let %d = nn.dropout(%x);
  (nn.batch_norm(%x, %g, %b, %m, %v), nn.dropout(%x), %d.0)
}]]
  end)

  it("a group_norm of unknown extents", function()
    stays [[
def @main(%x: Tensor[(?, 6, 4), float32], %g: Tensor[(6), float32], %b: Tensor[(6), float32]) {
  nn.group_norm(%x, %g, %b, num_groups=3)
}]]
  end)

  it("normalisations inside of primitive functions", function()
    stays [[
def @main(%x: Tensor[(2, 3), float32], SkipOptimization=1) { nn.dropout(%x).0 }]]
  end)
end)

describe("SimplifyInference on models of ONNX", function()
  local op = pl.op
  local x = pl.var("x", "Tensor[(2, 3, 4, 5), float32]")
  local vectors = {}
  for i = 1, 4 do vectors[i] = pl.var("v" .. i, "Tensor[(3), float32]") end
  local path = os.tmpname() .. ".onnx"

  local function saved_and_read(body)
    assert(pl.onnx.save(pl.module { main = pl.func({ x, table.unpack(vectors) }, body) }, path))
    local mod = assert(pl.onnx.load(path))
    os.remove(path)
    return mod
  end

  it("writes a batch_norm with operators that ONNX has", function()
    local mod = saved_and_read(op.nn.batch_norm(x, table.unpack(vectors)))
    local out = golden.apply(pass, mod)
    assert(pl.check(mod, out))
    assert.is_nil(tostring(out):find("batch_norm", 1, true))
    assert(pl.onnx.save(out, path))
    local again = assert(pl.onnx.load(path))
    os.remove(path)
    assert(pl.check(mod, again))
  end)

  it("keeps an instance_norm, whose variance ONNX lacks", function()
    local mod = saved_and_read(op.nn.instance_norm(x, vectors[1], vectors[2]))
    assert.equal(mod, pass(mod))
  end)

  it("keeps a batch_norm that trains", function()
    local mod = saved_and_read(op.nn.batch_norm(x, vectors[1], vectors[2], vectors[3], vectors[4],
      { training_mode = 1, n_results = 3 }):get(0))
    assert.equal(mod, pass(mod))
  end)
end)
