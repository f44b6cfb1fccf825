-- FakeQuantizationToInteger: which regions are computed with integers, and what
-- of.

local pl = require "perilune"

local function parse(body) return assert(pl.parse('#[version = "0.0.5"]\n' .. body)) end

local function convert(mod, options)
  local out = pl.passes.FakeQuantizationToInteger(options or {})(mod)
  assert(pl.verify(out))
  return out
end

local function becomes(before, after, options)
  local mod = parse(before)
  local out = convert(mod, options)
  assert.is_nil((pl.mismatch(out, pl.passes.InferType()(parse(after)))))
  return mod, out
end

describe("FakeQuantizationToInteger converts", function()
  it("a convolution, with the product of the scales", function()
    becomes([[
def @main(%x: Tensor[(1, 3, 8, 8), int8], %w: Tensor[(4, 3, 3, 3), int8]) {
  %0 = qnn.dequantize(%x, 2f, 1, out_dtype="float32");
  %1 = qnn.dequantize(%w, 0.5f, 2, out_dtype="float32");
  %2 = nn.conv2d(%0, %1, padding=[0, 0, 0, 0], channels=4, kernel_size=[3, 3]);
  qnn.quantize(%2, 4f, 3, out_dtype="int8")
}]], [[
def @main(%x: Tensor[(1, 3, 8, 8), int8], %w: Tensor[(4, 3, 3, 3), int8]) {
  %0 = qnn.conv2d(%x, %w, 1, 2, 2f, 0.5f, padding=[0, 0, 0, 0], channels=4, kernel_size=[3, 3],
    out_dtype="int32");
  qnn.requantize(%0, 1f, 0, 4f, 3, axis=1, out_dtype="int8")
}]])
  end)

  it("what only moves elements, without any arithmetic", function()
    local mod, out = becomes([[
def @main(%x: Tensor[(2, 3), int8]) {
  %0 = transpose(qnn.dequantize(%x, 2f, 1, out_dtype="float32"), axes=[1, 0]);
  qnn.quantize(nn.relu(%0), 2f, 1, out_dtype="int8")
}]], [[
def @main(%x: Tensor[(2, 3), int8]) { maximum(transpose(%x, axes=[1, 0]), 1i8) }]])
    assert(pl.check(mod, out))
  end)

  it("constants to the type of the other operand", function()
    becomes([[
def @main(%x: Tensor[(2, 3), int8]) {
  %0 = add(qnn.dequantize(%x, 2f, 1, out_dtype="float32"), 4f);
  qnn.quantize(%0, 3f, 0, out_dtype="int8")
}]], [[
def @main(%x: Tensor[(2, 3), int8]) {
  %0 = qnn.quantize(4f, 2f, 1, out_dtype="int8");
  qnn.add(%x, %0, 2f, 1, 2f, 1, 3f, 0)
}]])
  end)

  it("pools by the mean, at the scale of the result only if they are the result", function()
    becomes([[
def @main(%x: Tensor[(1, 3, 8, 8), int8]) {
  %0 = nn.avg_pool2d(qnn.dequantize(%x, 2f, 1), pool_size=[2, 2], padding=[1]);
  qnn.quantize(%0, 1f, 3, out_dtype="int8")
}]], [[
def @main(%x: Tensor[(1, 3, 8, 8), int8]) {
  qnn.avg_pool2d(%x, 2f, 1, 1f, 3, pool_size=[2, 2], padding=[1, 1, 1, 1])
}]])
    becomes([[
def @main(%x: Tensor[(1, 3, 8, 8), int8]) {
  %0 = nn.avg_pool2d(qnn.dequantize(%x, 2f, 1), pool_size=[2, 2], padding=[0, 0, 0, 0]);
  qnn.quantize(nn.batch_flatten(%0), 1f, 3, out_dtype="int8")
}]], [[
def @main(%x: Tensor[(1, 3, 8, 8), int8]) {
  %0 = qnn.avg_pool2d(%x, 2f, 1, 2f, 1, pool_size=[2, 2], padding=[0, 0, 0, 0]);
  qnn.requantize(nn.batch_flatten(%0), 2f, 1, 1f, 3, out_dtype="int8")
}]])
  end)

  it("the sum of a product and a bias of its scale to an addition", function()
    becomes([[
def @main(%x: Tensor[(2, 4), int8], %w: Tensor[(3, 4), int8], %b: Tensor[(3), int32]) {
  %0 = nn.dense(qnn.dequantize(%x, 2f, 0), qnn.dequantize(%w, 0.5f, 0), units=None);
  %1 = add(%0, qnn.dequantize(%b, 1f, 0));
  qnn.quantize(%1, 4f, 0, out_dtype="int8")
}]], [[
def @main(%x: Tensor[(2, 4), int8], %w: Tensor[(3, 4), int8], %b: Tensor[(3), int32]) {
  %0 = qnn.dense(%x, %w, 0, 0, 2f, 0.5f, units=None, out_dtype="int32");
  qnn.requantize(add(%0, %b), 1f, 0, 4f, 0, axis=1, out_dtype="int8")
}]])
  end)

  it("take by constant indices", function()
    becomes([[
def @main(%x: Tensor[(5, 3), int8]) {
  %0 = take(qnn.dequantize(%x, 2f, 0), 1, axis=0);
  qnn.quantize(%0, 2f, 0, out_dtype="int8")
}]], "def @main(%x: Tensor[(5, 3), int8]) { take(%x, 1, axis=0) }")
  end)

  it("a bias of a product whose scale is a parameter", function()
    becomes([[
def @main(%x: Tensor[(2, 4), int8], %w: Tensor[(3, 4), int8], %b: Tensor[(3), int32],
          %s: float32) {
  %0 = nn.dense(qnn.dequantize(%x, 2f, 0), qnn.dequantize(%w, %s, 0), units=None);
  %1 = nn.bias_add(%0, qnn.dequantize(%b, multiply(2f, %s), cast(zeros_like(multiply(2f, %s)),
    dtype="int32")));
  qnn.quantize(%1, 4f, 0, out_dtype="int8")
}]], [[
def @main(%x: Tensor[(2, 4), int8], %w: Tensor[(3, 4), int8], %b: Tensor[(3), int32],
          %s: float32) {
  %0 = qnn.dense(%x, %w, 0, 0, 2f, %s, units=None, out_dtype="int32");
  %1 = multiply(2f, %s);
  qnn.requantize(nn.bias_add(%0, %b), %1, cast(zeros_like(%1), dtype="int32"), 4f, 0, axis=1,
    out_dtype="int8")
}]])
  end)

  it("clip to the integers of its bounds", function()
    local mod, out = becomes([[
def @main(%x: Tensor[(2, 3), uint8]) {
  %0 = clip(qnn.dequantize(%x, 2f, 114, out_dtype="float32"), a_min=0f, a_max=6f);
  qnn.quantize(%0, 2f, 114, out_dtype="uint8")
}]], [[
def @main(%x: Tensor[(2, 3), uint8]) { clip(%x, a_min=114f, a_max=117f) }]])
    assert(pl.check(mod, out))
  end)

  it("concatenations, by the types of the fields", function()
    becomes([[
def @main(%x: Tensor[(2, 3), uint8], %y: Tensor[(2, 3), uint8]) {
  %0 = (qnn.dequantize(%x, 2f, 1, out_dtype="float32"),
    qnn.dequantize(%y, 3f, 2, out_dtype="float32"));
  qnn.quantize(concatenate(%0, axis=1), 4f, 3, out_dtype="uint8")
}]], [[
def @main(%x: Tensor[(2, 3), uint8], %y: Tensor[(2, 3), uint8]) {
  qnn.concatenate((%x, %y), (2f, 3f), (1, 2), 4f, 3, axis=1)
}]])
  end)

  it("concatenations of sums, which are requantised behind it", function()
    becomes([[
def @main(%x: Tensor[(2, 3), int8], %w: Tensor[(3, 3), int8]) {
  %0 = nn.dense(qnn.dequantize(%x, 2f, 0, out_dtype="float32"),
    qnn.dequantize(%w, 3f, 0, out_dtype="float32"), units=None);
  qnn.quantize(concatenate((%0, %0), axis=1), 4f, 3, out_dtype="int8")
}]], [[
def @main(%x: Tensor[(2, 3), int8], %w: Tensor[(3, 3), int8]) {
  %0 = qnn.dense(%x, %w, 0, 0, 2f, 3f, units=None, out_dtype="int32");
  %1 = qnn.concatenate((%0, %0), (6f, 6f), (0, 0), 4f, 3, axis=1);
  qnn.requantize(%1, 4f, 3, 4f, 3, out_dtype="int8")
}]])
  end)

  it("one operator alone with use_qat", function()
    becomes([[
def @main(%x: Tensor[(2, 4), int8], %w: Tensor[(3, 4), int8]) {
  %0 = qnn.dequantize(%x, 2f, 0, out_dtype="float32");
  %1 = nn.dense(%0, qnn.dequantize(%w, 0.5f, 0, out_dtype="float32"), units=None);
  atan(%1)
}]], [[
def @main(%x: Tensor[(2, 4), int8], %w: Tensor[(3, 4), int8]) {
  %0 = qnn.dense(%x, %w, 0, 0, 2f, 0.5f, units=None, out_dtype="int32");
  atan(qnn.dequantize(%0, 1f, 0, out_dtype="float32", axis=1))
}]], { use_qat = true })
  end)

  it("operators that optional_qnn_ops names", function()
    local text = [[
def @main(%x: Tensor[(2, 4), int8]) {
  %0 = nn.softmax(qnn.dequantize(%x, 0.5f, 0, out_dtype="float32"));
  qnn.quantize(%0, 0.0078125f, 0, out_dtype="int8")
}]]
    local mod = parse(text)
    assert.equal(mod, convert(mod))
    becomes(text, [[
def @main(%x: Tensor[(2, 4), int8]) { qnn.softmax(%x, 0.5f, 0, 0.0078125f, 0, axis=-1) }]],
      { optional_qnn_ops = { "nn.softmax" } })
  end)
end)

describe("FakeQuantizationToInteger asks an operator's attribute", function()
  local key = "FTVMFakeQuantizationToInteger"
  local text = [[
def @main(%x: Tensor[(2, 3), int8]) {
  %0 = ceil(qnn.dequantize(%x, 2f, 1, out_dtype="float32"));
  qnn.quantize(%0, 3f, 0, out_dtype="int8")
}]]

  local function with_attribute(f, body)
    local reset = { __close = function() pl.op_attr("ceil", key, nil) end }
    local scope <close> = setmetatable({}, reset) -- luacheck: ignore scope
    pl.op_attr("ceil", key, f)
    return body()
  end

  it("for the expression and its type", function()
    with_attribute(function(expr, types)
      local t = types[expr.args[1]]
      assert.same({ "int8", -1 }, { t.dtype, t.axis })
      assert.equal("int8", types[expr].dtype)
      return { pl.op.negative(expr.args[1]), t }
    end, function()
      becomes(text, [[
def @main(%x: Tensor[(2, 3), int8]) {
  qnn.requantize(negative(%x), 2f, 1, 3f, 0, out_dtype="int8")
}]])
    end)
  end)

  it("and keeps the region if it has nothing to say", function()
    with_attribute(function() end, function()
      local mod = parse(text)
      assert.equal(mod, convert(mod))
    end)
  end)

  it("and refuses other answers", function()
    for _, answer in ipairs { "int8", { 1 }, { 1, { dtype = "int3" } } } do
      with_attribute(function() return answer end, function()
        local ok, diag = pcall(convert, parse(text))
        assert.is_false(ok)
        assert.matches("'" .. key .. "' of 'ceil'", tostring(diag))
      end)
    end
  end)
end)

describe("FakeQuantizationToInteger keeps", function()
  local arctan = [[
def @main(%x: Tensor[(2, 3), int8]) {
  %0 = atan(qnn.dequantize(%x, 2f, 1, out_dtype="float32"));
  qnn.quantize(%0, 2f, 1, out_dtype="int8")
}]]

  it("regions with an operator that has no conversion", function()
    local mod = parse(arctan)
    assert.equal(mod, convert(mod))
  end)

  it("regions that begin with floats", function()
    local mod = parse [[
def @main(%x: Tensor[(2, 3), float32]) { qnn.quantize(nn.relu(%x), 2f, 1, out_dtype="int8") }]]
    assert.equal(mod, convert(mod, { hard_fail = true }))
  end)

  it("nothing with hard_fail, but says which operator", function()
    local ok, diag = pcall(convert, parse(arctan), { hard_fail = true })
    assert.is_false(ok)
    assert.matches("'atan' has no conversion", tostring(diag))
  end)
end)

describe("FakeQuantizationToInteger computes nearly the same", function()
  local seed = tonumber(os.getenv "SEED") or os.time()
  print("fake_quantization_to_integer_spec: SEED=" .. seed)
  math.randomseed(seed)

  local function integers(n)
    local list = {}
    for i = 1, n do list[i] = math.random(-128, 127) end
    return list
  end

  local function image()
    local channels = {}
    for c = 1, 3 do
      channels[c] = {}
      for row = 1, 4 do channels[c][row] = integers(4) end
    end
    return pl.tensor({ channels }, "int8")
  end

  -- The largest difference between elements of two tensors, as tables.
  local function distance(a, b)
    if type(a) == "number" then return math.abs(a - b) end
    local most = 0
    for i = 1, #a do most = math.max(most, distance(a[i], b[i])) end
    return most
  end

  -- Of an operator of %0 and %1: how far results may be apart, in steps of the result, when
  -- a step of the first operand is `ratio` of them.
  local function one() return 1 end
  local function by_step(ratio) return 1 + math.ceil(ratio) end
  local bodies = {
    ["nn.relu(%0)"] = one, ["add(%0, %1)"] = one, ["multiply(%0, %1)"] = one,
    ["subtract(%0, %1)"] = one, ["maximum(%0, %1)"] = one, ["sigmoid(%0)"] = one,
    ["tanh(%1)"] = one, ["reshape(%0, newshape=[-1])"] = one,
    ["nn.max_pool2d(%0, pool_size=[2, 2], padding=[0, 0, 0, 0])"] = one,
    ["nn.pad(%0, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])"] = one,
    ["nn.bias_add(nn.dense(reshape(%0, newshape=[12, 4]), reshape(%1, newshape=[12, 4])), %2)"] =
      one,
    ["concatenate((%0, %1), axis=1)"] = one, ["nn.leaky_relu(%0, alpha=0.25f)"] = one,
    ["clip(%0, a_min=-3f, a_max=5f)"] = by_step,
  }
  for body, tolerance in pairs(bodies) do
    it("for " .. body, function()
      for _ = 1, 5 do
        local r = math.random
        local step, out_step = r(5, 40) / 100, r(5, 40) / 100
        local text = ([[
def @main(%%x: Tensor[(1, 3, 4, 4), int8], %%y: Tensor[(1, 3, 4, 4), int8],
  %%z: Tensor[(12), int8]) {
  %%0 = qnn.dequantize(%%x, %gf, %d, out_dtype="float32");
  %%1 = qnn.dequantize(%%y, %gf, %d, out_dtype="float32");
  %%2 = qnn.dequantize(%%z, 0.5f, 0, out_dtype="float32");
  %%3 = %s;
  qnn.quantize(%%3, %gf, %d, out_dtype="int8")
}]]):format(step, r(-9, 9), r(5, 40) / 100, r(-9, 9), body, out_step, r(-9, 9))
        local mod = parse(text)
        local out = convert(mod, { hard_fail = true })
        assert.not_equal(mod, out)
        out = pl.passes["qnn.CanonicalizeOps"]()(out) -- qnn.leaky_relu has no kernel
        local args = { image(), image(), pl.tensor(integers(12), "int8") }
        local apart = distance(pl.eval(mod, table.unpack(args)):to_table(),
          pl.eval(out, table.unpack(args)):to_table())
        assert(apart <= tolerance(step / out_step), text .. "\n" .. apart)
      end
    end)
  end
end)
