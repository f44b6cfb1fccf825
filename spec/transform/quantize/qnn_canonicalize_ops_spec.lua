-- qnn.CanonicalizeOps and qnn.Legalize: what quantised operators become, and
-- that it computes the same.

local pl = require "perilune"

local function parse(body) return assert(pl.parse('#[version = "0.0.5"]\n' .. body)) end

local function apply(name, mod, config)
  local context = pl.context { opt_level = 3, config = config }
  local scope <close> = context:enter() -- luacheck: ignore scope
  local out = pl.passes[name]()(mod)
  assert(pl.verify(out))
  return out
end

-- One pass makes the other text of the first; both compute the same.
local function becomes(name, before, after, config)
  local mod = parse(before)
  local out = apply(name, mod, config)
  assert.is_nil((pl.mismatch(out, pl.passes.InferType()(parse(after)))))
  return mod, out
end

local function canonical(before, after, config)
  return becomes("qnn.CanonicalizeOps", before, after, config)
end

local function has_qnn(mod)
  for node in mod.main:nodes() do
    if node.kind == "Call" and node.op.name:find "^qnn%." then return true end
  end
  return false
end

describe("qnn.CanonicalizeOps writes", function()
  it("qnn.quantize as rounding and limits", function()
    assert(pl.check(canonical([[
def @main(%x: Tensor[(2, 3), float32]) { qnn.quantize(%x, 0.5f, 3, out_dtype="uint8") }]], [[
def @main(%x: Tensor[(2, 3), float32]) {
  cast(clip(add(round(divide(%x, 0.5f)), cast(3, dtype="float32")), a_min=0f, a_max=255f),
    dtype="uint8")
}]])))
  end)

  it("qnn.dequantize with a scale for each channel", function()
    assert(pl.check(canonical([[
def @main(%x: Tensor[(2, 3, 4), int8], %s: Tensor[(3), float32]) {
  qnn.dequantize(%x, %s, 0, out_dtype="float32", axis=1)
}]], [[
def @main(%x: Tensor[(2, 3, 4), int8], %s: Tensor[(3), float32]) {
  multiply(cast(subtract(cast(%x, dtype="int32"), 0), dtype="float32"),
    expand_dims(%s, axis=1, num_newaxis=1))
}]])))
  end)

  it("qnn.requantize in fixed point, halves up", function()
    assert(pl.check(canonical([[
def @main(%x: Tensor[(2, 3), int32]) {
  qnn.requantize(%x, 0.5f, 0, 2f, 1, out_dtype="int8")
}]], [[
def @main(%x: Tensor[(2, 3), int32]) {
  %0 = fixed_point_multiply(cast(%x, dtype="int32"), multiplier=1073741824, shift=-1);
  cast(clip(add(cast(1, dtype="int32"), %0), a_min=-128f, a_max=127f), dtype="int8")
}]])))
  end)

  it("qnn.requantize with halves away from zero", function()
    local mod, out = canonical([[
def @main(%x: Tensor[(2), int8]) {
  qnn.requantize(%x, 1f, 0, 2f, 0, rounding="TONEAREST", out_dtype="int32")
}]], [[
def @main(%x: Tensor[(2), int8]) {
  %0 = multiply(cast(cast(%x, dtype="int32"), dtype="int64"), 1073741824i64);
  %1 = where(greater_equal(%0, zeros(shape=[2], dtype="int64")),
    full(1073741824i64, shape=[2], dtype="int64"), full(1073741823i64, shape=[2], dtype="int64"));
  cast(right_shift(add(%0, %1), 31i64), dtype="int32")
}]])
    assert(pl.check(mod, out))
    local x = pl.tensor({ -1, 3 }, "int8")
    assert.same({ -1, 2 }, pl.eval(out, x):to_table())
  end)

  it("qnn.dense as sums, of which those times 0 are left out", function()
    assert(pl.check(canonical([[
def @main(%x: Tensor[(2, 4), uint8], %w: Tensor[(3, 4), int8]) {
  qnn.dense(%x, %w, 5, 0, 0.5f, 0.25f, units=None, out_dtype="int32")
}]], [[
def @main(%x: Tensor[(2, 4), uint8], %w: Tensor[(3, 4), int8]) {
  subtract(nn.dense(%x, %w, units=None, out_dtype="int32"),
    multiply(5, sum(cast(%w, dtype="int32"), axis=[1])))
}]])))
  end)

  it("qnn.softmax as powers of 2, if the scale is a constant of at most 1", function()
    local text = 'def @main(%%x: Tensor[(2, 3), int8], %%s: float32) { %s }'
    canonical(text:format "qnn.softmax(%x, 0.5f, 3, 0.5f, 0, axis=1)", [[
def @main(%x: Tensor[(2, 3), int8], %s: float32) {
  %0 = subtract(cast(%x, dtype="int32"), 3);
  %1 = subtract(%0, max(%0, axis=[1], keepdims=True));
  %2 = subtract(add(%1, right_shift(%1, 1)), right_shift(%1, 4));
  %3 = cast(clip(2f, a_min=-2147483648f, a_max=2147483647f), dtype="int32");
  %4 = clip(divide(%2, negative(%3)), a_min=0f, a_max=20f);
  %5 = subtract(%2, multiply(%4, negative(%3)));
  %6 = add(right_shift(%5, 1), %3);
  %7 = left_shift(%6, subtract(max(%4, axis=[1], keepdims=True), %4));
  %8 = divide(1073741824, sum(%7, axis=[1], keepdims=True));
  %9 = right_shift(multiply(%8, %7), 23);
  %10 = fixed_point_multiply(cast(%9, dtype="int32"), multiplier=1073741824, shift=-5);
  cast(clip(%10, a_min=-128f, a_max=127f), dtype="int8")
}]])
    for _, scale in ipairs { "1.5f", "%s" } do
      local mod = parse(text:format("qnn.softmax(%x, " .. scale .. ", 3, 0.5f, 0, axis=1)"))
      assert.equal(mod, apply("qnn.CanonicalizeOps", mod))
    end
  end)

  it("functions between conversions", function()
    canonical([[
def @main(%x: Tensor[(4), uint8]) { qnn.tanh(%x, 0.1f, 3, 0.01f, 128) }]], [[
def @main(%x: Tensor[(4), uint8]) {
  %0 = qnn.dequantize(%x, 0.1f, 3, out_dtype="float32", axis=-1);
  qnn.quantize(tanh(%0), 0.01f, 128, out_dtype="uint8", axis=-1)
}]])
  end)

  it("scales as floats, if the config says so", function()
    canonical([[
def @main(%x: Tensor[(2), int32]) { qnn.requantize(%x, 1f, 0, 4f, 0, out_dtype="int32") }]], [[
def @main(%x: Tensor[(2), int32]) {
  %0 = multiply(0.25f, cast(%x, dtype="float32"));
  %1 = add(%0, 0.5f);
  %2 = cast(cast(%1, dtype="int32"), dtype="float32");
  %3 = logical_or(equal(%1, %2), greater_equal(%1, 0f));
  cast(where(isfinite(%0), where(%3, %2, subtract(%2, 1f)), %0), dtype="int32")
}]], { ["relay.qnn.requantize.compute_dtype"] = "float32" })
  end)
end)

describe("qnn.CanonicalizeOps computes the same", function()
  local seed = tonumber(os.getenv "SEED") or os.time()
  print("qnn_canonicalize_ops_spec: SEED=" .. seed)
  math.randomseed(seed)

  local function pick(list) return list[math.random(#list)] end
  -- A zero point of that dtype; of int8 by default.
  local function zero(dtype)
    return pick { 0, 0, 1, math.random(dtype == "uint8" and 0 or -20, 20) }
  end
  local function scale() return ("%gf"):format(math.random(1, 999) / 500) end

  local cases = {
    add = function(dtype)
      return ("def @main(%%a: Tensor[(3, 4), %s], %%b: Tensor[(4), %s]) "
        .. "{ qnn.%s(%%a, %%b, %s, %d, %s, %d, %s, %d) }"):format(dtype, dtype,
        pick { "add", "subtract", "mul" }, scale(), zero(dtype), scale(), zero(dtype), scale(),
        zero(dtype))
    end,
    requantize = function(dtype)
      return ('def @main(%%x: Tensor[(3, 4), %s]) { qnn.requantize(%%x, %s, %d, %s, %d, '
        .. 'rounding="%s", out_dtype="%s") }'):format(dtype, scale(), zero(dtype), scale(), zero(),
        pick { "UPWARD", "TONEAREST" }, pick { "int8", "uint8", "int32" })
    end,
    dense = function(dtype)
      return ('def @main(%%x: Tensor[(3, 5), %s], %%w: Tensor[(2, 5), int8]) { qnn.dense(%%x, %%w, '
        .. '%d, %d, 1f, 1f, units=2, out_dtype="int32") }'):format(dtype, zero(dtype), zero())
    end,
    batch_matmul = function(dtype)
      return ('def @main(%%x: Tensor[(2, 3, 5), %s], %%w: Tensor[(2, 4, 5), int8]) { '
        .. 'qnn.batch_matmul(%%x, %%w, %d, %d, 1f, 1f, out_dtype="int32", transpose_b=True) }')
        :format(dtype, zero(dtype), zero())
    end,
    conv2d = function(dtype)
      local dilation = pick { 1, 1, 2 }
      return ('def @main(%%x: Tensor[(1, 4, 9, 8), %s], %%w: Tensor[(6, 4, 3, 2), int8]) { '
        .. 'qnn.conv2d(%%x, %%w, %d, %d, 1f, 1f, strides=[%d, %d], padding=[%d, 0, 1, %d], '
        .. 'dilation=[%d, %d], channels=6, kernel_size=[3, 2], out_dtype="int32") }'):format(dtype,
        zero(dtype), zero(), math.random(2), math.random(2), math.random(0, 2), math.random(0, 1),
        dilation, dilation)
    end,
    depthwise = function(dtype)
      return ('def @main(%%x: Tensor[(1, 4, 6, 6), %s], %%w: Tensor[(4, 1, 3, 3), int8]) { '
        .. 'qnn.conv2d(%%x, %%w, %d, %d, 1f, 1f, padding=[1, 1, 1, 1], groups=4, channels=4, '
        .. 'kernel_size=[3, 3], out_dtype="int32") }'):format(dtype, zero(dtype), zero())
    end,
    nhwc = function(dtype)
      return ('def @main(%%x: Tensor[(1, 6, 6, 3), %s], %%w: Tensor[(3, 3, 3, 5), int8]) { '
        .. 'qnn.conv2d(%%x, %%w, %d, %d, 1f, 1f, padding=[1, 1, 1, 1], channels=5, '
        .. 'kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32") }')
        :format(dtype, zero(dtype), zero())
    end,
    grouped = function(dtype)
      return ('def @main(%%x: Tensor[(1, 4, 5, 5), %s], %%w: Tensor[(6, 2, 1, 1), int8]) { '
        .. 'qnn.conv2d(%%x, %%w, %d, %d, 1f, 1f, padding=[0, 0, 0, 0], groups=2, channels=6, '
        .. 'kernel_size=[1, 1], out_dtype="int32") }'):format(dtype, zero(dtype), zero())
    end,
  }
  it("as qnn requantize by channel", function()
    local x = pl.var("x", pl.type { shape = { 2, 3, 4 }, dtype = "int32" })
    for _, rounding in ipairs { "UPWARD", "TONEAREST" } do
      local r = math.random
      local scales = pl.const(pl.tensor({ r(), r(), 2 * r() }, "float32"))
      local zeros = pl.const(pl.tensor({ 0, zero(), zero() }, "int32"))
      local mod = pl.module { main = pl.func({ x }, pl.op.qnn.requantize(x, scales, zeros,
        pl.const(pl.tensor(0.75, "float32")), pl.const(pl.tensor(zero(), "int32")),
        { axis = 1, rounding = rounding, out_dtype = "int8" })) }
      local out = apply("qnn.CanonicalizeOps", mod)
      assert(not has_qnn(out))
      assert(pl.check(mod, out, { rounds = 2 })) -- the third would overflow x - zero
    end
  end)

  for name, text in pairs(cases) do
    it("as qnn " .. name, function()
      for _ = 1, 12 do
        local body = text(pick { "int8", "uint8" })
        local mod = parse(body)
        local out = apply("qnn.CanonicalizeOps", mod)
        assert(not has_qnn(out), body)
        local same, diag = pl.check(mod, out, { rounds = 2 })
        assert(same, body .. "\n" .. tostring(diag))
      end
    end)
  end
end)

describe("qnn.CanonicalizeOps leaves", function()
  it("what has scales that are not constant", function()
    local mod = parse [[
def @main(%x: Tensor[(2), int32], %s: float32) {
  qnn.requantize(%x, %s, 0, 1f, 0, out_dtype="int8")
}]]
    assert.equal(mod, apply("qnn.CanonicalizeOps", mod))
  end)

  it("programs without quantised operators", function()
    local mod = parse [[def @main(%x: Tensor[(2), int32]) { add(%x, %x) }]]
    assert.equal(mod, apply("qnn.CanonicalizeOps", mod))
  end)
end)

describe("qnn.Legalize", function()
  local x = [[def @main(%x: Tensor[(4), int8]) { qnn.sqrt(%x, 0.5f, -3, 0.25f, 7) }]]

  it("looks functions up in tables", function()
    local mod = parse(x)
    local out = apply("qnn.Legalize", mod)
    assert.equal("take", out.main.body.op.name)
    local values = pl.tensor({ -3, 0, 41, 127 }, "int8")
    assert.same(pl.eval(mod, values):to_table(), pl.eval(out, values):to_table())
  end)

  it("convolves transposed images of 16 bits", function()
    becomes("qnn.Legalize", [[
def @main(%x: Tensor[(1, 2, 4, 4), uint8], %w: Tensor[(2, 3, 2, 2), int8]) {
  qnn.conv2d_transpose(%x, %w, 8, 3, 0.5f, 0.5f, channels=3, kernel_size=[2, 2],
    padding=[0, 0, 0, 0], out_dtype="int32")
}]], [[
def @main(%x: Tensor[(1, 2, 4, 4), uint8], %w: Tensor[(2, 3, 2, 2), int8]) {
  nn.conv2d_transpose(subtract(cast(%x, dtype="int16"), cast(8, dtype="int16")),
    subtract(cast(%w, dtype="int16"), cast(3, dtype="int16")), channels=3, kernel_size=[2, 2],
    padding=[0, 0, 0, 0], out_dtype="int32")
}]])
  end)

  it("gives products the operands that a target multiplies fast", function()
    local before = [[
def @main(%x: Tensor[(2, 4), int8], %w: Tensor[(3, 4), int8]) {
  qnn.dense(%x, %w, 1, 2, 0.5f, 0.25f, units=None, out_dtype="int32")
}]]
    local function legal(target, body)
      local mod, out = becomes("qnn.Legalize", before,
        "def @main(%x: Tensor[(2, 4), int8], %w: Tensor[(3, 4), int8]) {" .. body .. "}",
        { target = target })
      assert(pl.check(mod, out))
    end
    if not pl.config.target then pl.config.target = { default = "", doc = "A target's text." } end
    legal("llvm -keys=cpu", [[
      nn.dense(subtract(cast(%x, dtype="int16"), cast(1, dtype="int16")),
        subtract(cast(%w, dtype="int16"), cast(2, dtype="int16")), units=None, out_dtype="int32")]])
    legal("llvm -keys=cpu -mcpu=skylake-avx512", [[
      %0 = cast(add(cast(%x, dtype="int32"), 128), dtype="uint8");
      qnn.dense(%0, %w, 129, 2, 0.5f, 0.25f, units=None, out_dtype="int32")]])
    local mod = parse(before)
    assert.equal(mod, apply("qnn.Legalize", mod, { target = "cuda -keys=cuda,gpu" }))
    assert.equal(mod, apply("qnn.Legalize", mod))
  end)

  it("pads channels to whole vectors for Hexagon", function()
    local config = { target = "hexagon -keys=hexagon" }
    local function aligned(before, after)
      local mod, out = becomes("qnn.Legalize", before, after, config)
      assert(pl.check(mod, out))
      assert.equal(out, apply("qnn.Legalize", out, config))
    end
    local dense = "def @main(%x: Tensor[(2, 3), uint8], %w: Tensor[(20, 3), int8]) {"
    for _, units in ipairs { { "20", "32" }, { "None", "None" } } do
      aligned(([[
%s qnn.dense(%%x, %%w, 1, 2, 0.5f, 0.25f, units=%s, out_dtype="int32") }]]):format(dense, units[1]),
        ([=[
%s
  %%0 = nn.pad(%%w, 0, pad_width=[[0, 12], [0, 0]]);
  %%1 = qnn.dense(%%x, %%0, 1, 2, 0.5f, 0.25f, units=%s, out_dtype="int32");
  strided_slice(%%1, begin=[0, 0], end=[2, 20], strides=[1], axes=None)
}]=]):format(dense, units[2]))
    end
    -- The data of a new input channel is the zero point if the weight's is not 0.
    local conv = "def @main(%x: Tensor[(1, 3, 4, 4), int8], %w: Tensor[(33, 3, 2, 2), int8]) {"
    for _, zero in ipairs { { 2, 1 }, { 0, 0 } } do
      aligned(([[
%s
  qnn.conv2d(%%x, %%w, 1, %d, 0.5f, 0.25f, padding=[0, 0, 0, 0], channels=33, kernel_size=[2, 2],
    out_dtype="int32")
}]]):format(conv, zero[1]), ([=[
%s
  %%0 = nn.pad(%%x, %d, pad_width=[[0, 0], [0, 1], [0, 0], [0, 0]]);
  %%1 = nn.pad(%%w, 0, pad_width=[[0, 0], [0, 1], [0, 0], [0, 0]]);
  %%2 = nn.pad(%%1, 0, pad_width=[[0, 31], [0, 0], [0, 0], [0, 0]]);
  %%3 = qnn.conv2d(%%0, %%2, 1, %d, 0.5f, 0.25f, padding=[0, 0, 0, 0], channels=64,
    kernel_size=[2, 2], out_dtype="int32");
  strided_slice(%%3, begin=[0, 0, 0, 0], end=[1, 33, 3, 3], strides=[1], axes=None)
}]=]):format(conv, zero[2], zero[1]))
    end
    local vectors = parse [[
def @main(%x: Tensor[(2, 4), int8], %w: Tensor[(3, 4), int8]) {
  qnn.dense(%x, %w, 1, full(2, shape=[3], dtype="int32"), 0.5f, full(0.25f, shape=[3],
    dtype="float32"), units=None, out_dtype="int32")
}]]
    assert.equal(vectors, apply("qnn.Legalize", vectors, config))
    local constants = pl.passes.FoldConstant()(vectors)
    local out = apply("qnn.Legalize", constants, config)
    assert.equal("strided_slice", out.main.body.op.name)
    assert(pl.check(constants, out))
    local grouped = parse [[
def @main(%x: Tensor[(1, 3, 4, 4), int8], %w: Tensor[(3, 1, 2, 2), int8]) {
  qnn.conv2d(%x, %w, 1, 2, 0.5f, 0.25f, padding=[0, 0, 0, 0], channels=3, groups=3,
    kernel_size=[2, 2], out_dtype="int32")
}]]
    assert.equal(grouped, apply("qnn.Legalize", grouped, config))
  end)

  it("asks an operator's attribute", function()
    local key = "FTVMQnnLegalize"
    local reset = { __close = function() pl.op_attr("qnn.sqrt", key, nil) end }
    local scope <close> = setmetatable({}, reset) -- luacheck: ignore scope
    pl.op_attr("qnn.sqrt", key, function(_, inputs, types)
      assert.equal("Tensor[(4), int8]", tostring(types[6]))
      return pl.op.nn.relu(inputs[1])
    end)
    assert.equal("nn.relu", apply("qnn.Legalize", parse(x)).main.body.op.name)
    pl.op_attr("qnn.sqrt", key, function() return "relu" end)
    local mod = parse(x)
    local ok, diag = pcall(apply, "qnn.Legalize", mod)
    assert.is_false(ok)
    assert.matches("FTVMQnnLegalize", tostring(diag))
  end)

  it("runs from a pipeline's text", function()
    local out = pl.pipeline '"qnn.Legalize","qnn.CanonicalizeOps"' (parse(x))
    assert.is_false(has_qnn(out))
  end)
end)
