-- BackwardFoldScaleAxis, ForwardFoldScaleAxis and FoldScaleAxis: golden pairs of Relay text,
-- that both compute the same, and what is left alone.

local pl = require "perilune"

local function floats(...) return pl.tensor({ ... }, "float32") end
local function shaped(shape, ...)
  return pl.tensor.from_bytes(("<" .. ("f"):rep(select("#", ...))):pack(...), shape, "float32")
end

-- Modules of one function; $NAME stands for a constant of `constants`.
local function parse(text, constants)
  local names, list = {}, {}
  text = text:gsub("%$(%w+)", function(name)
    if not names[name] then
      list[#list + 1] = assert(constants[name], name)
      names[name] = #list - 1
    end
    return ("meta[relay.Constant][%d]"):format(names[name])
  end)
  return pl.passes.InferType()(assert(pl.parse('#[version = "0.0.5"]\ndef @main' .. text,
    { init_meta = { ["relay.Constant"] = list } })))
end

local function run(name, mod)
  local out = pl.passes[name]()(mod)
  assert(pl.verify(out))
  assert(pl.check(mod, out))
  return out
end

local function becomes(name, before, after, constants)
  local mod = parse(before, constants)
  local out, wanted = run(name, mod), parse(after, constants)
  assert(pl.equal(out, wanted), pl.mismatch(out, wanted) or "")
  assert.equal(out, pl.passes[name]()(out))
end

local function stays(name, text, constants)
  local mod = parse(text, constants)
  assert.equal(mod, pl.passes[name]()(mod))
end

local scale = { s = floats(0.5, 2, 3, 0.25), n = floats(0.5, -2, 3, 0.25), z = floats(0, 1, 2, 3),
  c = shaped({ 4, 1, 1 }, 0.5, 2, 3, 0.25),
  b = shaped({ 1, 2, 1, 1, 2 }, 0.5, 2, 3, 0.25) }

describe("BackwardFoldScaleAxis", function()
  it("scales the weight and the bias of a convolution, through nn.relu", function()
    becomes("BackwardFoldScaleAxis", [[
(%x: Tensor[(1, 2, 6, 6), float32], %w: Tensor[(4, 2, 3, 3), float32],
 %b: Tensor[(4, 1, 1), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[0, 0, 0, 0], channels=4, kernel_size=[3, 3]);
  %1 = nn.relu(add(%0, %b));
  multiply(%1, $c)
}]], [[
(%x: Tensor[(1, 2, 6, 6), float32], %w: Tensor[(4, 2, 3, 3), float32],
 %b: Tensor[(4, 1, 1), float32]) {
  %0 = squeeze($c, axis=[1, 2]);
  %1 = multiply(%w, expand_dims(%0, axis=1, num_newaxis=3));
  %2 = nn.conv2d(%x, %1, padding=[0, 0, 0, 0], channels=4, kernel_size=[3, 3]);
  %3 = multiply(%b, expand_dims(%0, axis=1, num_newaxis=2));
  nn.relu(add(%2, %3))
}]], scale)
  end)

  it("scales both sides of a sum, and keeps one scale for all", function()
    becomes("BackwardFoldScaleAxis", [[
(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32], %v: Tensor[(4, 3), float32]) {
  %0 = nn.leaky_relu(nn.dense(%x, %w, units=None), alpha=0.1f);
  %1 = subtract(%0, nn.dense(%x, %v, units=None));
  multiply($s, %1)
}]], [[
(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32], %v: Tensor[(4, 3), float32]) {
  %0 = $s;
  %1 = nn.dense(%x, multiply(%w, expand_dims(%0, axis=1)), units=None);
  %2 = nn.dense(%x, multiply(%v, expand_dims(%0, axis=1)), units=None);
  subtract(nn.leaky_relu(%1, alpha=0.1f), %2)
}]], scale)
  end)

  it("scales blocks of channels", function()
    becomes("BackwardFoldScaleAxis", [[
(%x: Tensor[(1, 2, 5, 5, 2), float32], %w: Tensor[(2, 2, 3, 3, 2, 2), float32],
 %b: Tensor[(1, 2, 1, 1, 2), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3],
    data_layout="NCHW2c", kernel_layout="OIHW2i2o");
  multiply(add(%b, %0), $b)
}]], [[
(%x: Tensor[(1, 2, 5, 5, 2), float32], %w: Tensor[(2, 2, 3, 3, 2, 2), float32],
 %b: Tensor[(1, 2, 1, 1, 2), float32]) {
  %0 = squeeze($b, axis=[0, 2, 3]);
  %1 = multiply(%b, reshape(%0, newshape=[1, 2, 1, 1, 2]));
  %2 = multiply(%w, reshape(%0, newshape=[2, 1, 1, 1, 1, 2]));
  add(%1, nn.conv2d(%x, %2, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3],
    data_layout="NCHW2c", kernel_layout="OIHW2i2o"))
}]], scale)
  end)

  it("repeats a scalar, and scales what nn.bias_add adds", function()
    becomes("BackwardFoldScaleAxis", [[
(%x: Tensor[(1, 2, 4, 4, 4), float32], %w: Tensor[(3, 2, 1, 1, 1), float32],
 %b: Tensor[(3), float32], %s: float32) {
  %0 = nn.conv3d(%x, %w, padding=[0, 0, 0, 0, 0, 0], channels=3, kernel_size=[1, 1, 1]);
  multiply(nn.bias_add(%0, %b), %s)
}]], [[
(%x: Tensor[(1, 2, 4, 4, 4), float32], %w: Tensor[(3, 2, 1, 1, 1), float32],
 %b: Tensor[(3), float32], %s: float32) {
  %0 = repeat(expand_dims(%s, axis=0), repeats=3, axis=0);
  %1 = multiply(%w, expand_dims(%0, axis=1, num_newaxis=4));
  %2 = nn.conv3d(%x, %1, padding=[0, 0, 0, 0, 0, 0], channels=3, kernel_size=[1, 1, 1]);
  nn.bias_add(%2, multiply(%b, %0))
}]], scale)
  end)

  local dense = "(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32], " ..
    "%s: Tensor[(4), float32]) { "
  for what, body in pairs {
    ["a negative scale behind nn.relu"] = "multiply(nn.relu(nn.dense(%x, %w, units=None)), $n) }",
    ["a scale that is not known behind nn.relu"] =
      "multiply(nn.relu(nn.dense(%x, %w, units=None)), %s) }",
    ["a product with two users"] =
      "%0 = nn.dense(%x, %w, units=None); add(multiply(%0, %s), %0) }",
    ["a product that a let binds"] =
      "let %y = nn.dense(%x, %w, units=None); multiply(%y, %s) }",
    ["a sum with a tensor of the whole shape"] =
      "%0 = add(nn.dense(%x, %w, units=None), tanh(nn.dense(%x, %w, units=None))); " ..
      "multiply(%0, %s) }",
    ["a scale of rows"] =
      "multiply(nn.dense(%x, %w, units=None), reshape(take(%s, 0), newshape=[1, 1])) }",
  } do
    it("leaves " .. what .. " alone", function()
      stays("BackwardFoldScaleAxis", dense .. body, scale)
    end)
  end

  it("leaves grouped convolutions, differing layouts and differing dtypes alone", function()
    stays("BackwardFoldScaleAxis", [[
(%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(4, 2, 3, 3), float32]) {
  multiply(nn.conv2d(%x, %w, groups=2, channels=4, kernel_size=[3, 3]), $c)
}]], scale)
    stays("BackwardFoldScaleAxis", [[
(%x: Tensor[(4, 4, 6, 6), float32], %w: Tensor[(4, 4, 1, 1), float32]) {
  %0 = nn.conv2d(%x, %w, channels=4, kernel_size=[1, 1]);
  %1 = nn.conv2d(%x, %w, channels=4, kernel_size=[1, 1], out_layout="CNHW");
  multiply(add(%0, %1), $c)
}]], scale)
    stays("BackwardFoldScaleAxis", [[
(%x: Tensor[(2, 3), int8], %w: Tensor[(4, 3), int8], %s: Tensor[(4), int32]) {
  multiply(nn.dense(%x, %w, units=None, out_dtype="int32"), %s)
}]], scale)
  end)

  it("scales integers that wrap alike", function()
    becomes("BackwardFoldScaleAxis", [[
(%x: Tensor[(2, 3), int32], %w: Tensor[(4, 3), int32], %s: Tensor[(4), int32]) {
  multiply(nn.dense(%x, %w, units=None), %s)
}]], [[
(%x: Tensor[(2, 3), int32], %w: Tensor[(4, 3), int32], %s: Tensor[(4), int32]) {
  nn.dense(%x, multiply(%w, expand_dims(%s, axis=1)), units=None)
}]], scale)
  end)
end)

describe("ForwardFoldScaleAxis", function()
  it("scales the weight of a depthwise convolution, and divides what is added", function()
    becomes("ForwardFoldScaleAxis", [[
(%x: Tensor[(1, 6, 6, 4), float32], %w: Tensor[(3, 3, 1, 4), float32],
 %b: Tensor[(4), float32]) {
  %0 = subtract(nn.relu(multiply($s, %x)), %b);
  %1 = nn.conv2d(%0, %w, padding=[1, 1, 1, 1], groups=4, channels=4, kernel_size=[3, 3],
    data_layout="NHWC", kernel_layout="HWIO");
  %2 = nn.conv2d(%0, %w, padding=[1, 1, 1, 1], groups=4, channels=4, kernel_size=[3, 3],
    data_layout="NHWC", kernel_layout="HWIO");
  add(%1, %2)
}]], [[
(%x: Tensor[(1, 6, 6, 4), float32], %w: Tensor[(3, 3, 1, 4), float32],
 %b: Tensor[(4), float32]) {
  %0 = $s;
  %1 = subtract(nn.relu(%x), divide(%b, %0));
  %2 = nn.conv2d(%1, multiply(%w, %0), padding=[1, 1, 1, 1], groups=4, channels=4,
    kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");
  %3 = nn.conv2d(%1, multiply(%w, %0), padding=[1, 1, 1, 1], groups=4, channels=4,
    kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");
  add(%2, %3)
}]], scale)
  end)

  it("scales blocks of channels", function()
    becomes("ForwardFoldScaleAxis", [[
(%x: Tensor[(1, 2, 5, 5, 2), float32], %w: Tensor[(2, 1, 3, 3, 4, 2), float32],
 %b: Tensor[(1, 2, 1, 1, 2), float32]) {
  %0 = add(nn.relu(multiply(%x, $b)), %b);
  nn.conv2d(%0, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3],
    data_layout="NCHW2c", kernel_layout="OIHW4i2o")
}]], [[
(%x: Tensor[(1, 2, 5, 5, 2), float32], %w: Tensor[(2, 1, 3, 3, 4, 2), float32],
 %b: Tensor[(1, 2, 1, 1, 2), float32]) {
  %0 = squeeze($b, axis=[0, 2, 3]);
  %1 = add(nn.relu(%x), divide(%b, reshape(%0, newshape=[1, 2, 1, 1, 2])));
  %2 = multiply(%w, reshape(%0, newshape=[1, 1, 1, 1, 4, 1]));
  nn.conv2d(%1, %2, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3],
    data_layout="NCHW2c", kernel_layout="OIHW4i2o")
}]], scale)
  end)

  it("scales the columns of a dense weight by a scale of any sign", function()
    becomes("ForwardFoldScaleAxis", [[
(%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32]) {
  nn.dense(multiply(%x, $n), %w, units=None)
}]], [[
(%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32]) {
  nn.dense(%x, multiply(%w, $n), units=None)
}]], scale)
  end)

  local dense = "(%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32], " ..
    "%s: Tensor[(4), float32]) { "
  for what, body in pairs {
    ["a scale that another user needs"] =
      "%0 = multiply(%x, $s); (nn.dense(%0, %w, units=None), %0) }",
    ["a negative scale before nn.relu"] =
      "nn.dense(nn.relu(multiply(%x, $n)), %w, units=None) }",
    ["a scale with a zero before a sum"] =
      "nn.dense(add(multiply(%x, $z), %s), %w, units=None) }",
    ["a scale that may be zero before a sum"] =
      "nn.dense(add(multiply(%x, %s), $s), %w, units=None) }",
    ["a scale that a let binds"] =
      "let %y = multiply(%x, $s); nn.dense(%y, %w, units=None) }",
    ["a product of data and itself"] =
      "%0 = multiply(%x, $s); nn.dense(%0, %0, units=None) }",
    ["a scale of rows"] =
      "nn.dense(multiply(%x, reshape(take(%s, 0), newshape=[1, 1])), %w, units=None) }",
  } do
    it("leaves " .. what .. " alone", function()
      stays("ForwardFoldScaleAxis", dense .. body, scale)
    end)
  end
end)

describe("FoldScaleAxis", function()
  local text = [[
(%x: Tensor[(1, 4, 6, 6), float32]) {
  %0 = nn.conv2d(multiply(%x, $c), $w, channels=4, kernel_size=[3, 3]);
  multiply(%0, 2f)
}]]
  local constants = { c = scale.c, w = pl.tensor.random({ 4, 4, 3, 3 }, "float32", { seed = 7 }) }

  it("folds both ways, and the constants", function()
    local mod = parse(text, constants)
    local out = pl.with(pl.context { opt_level = 3 }, pl.passes.FoldScaleAxis(), mod)
    assert(pl.check(mod, out))
    local names = {}
    for node in out.main:nodes() do
      if node.kind == "Call" then names[#names + 1] = node.op.name end
    end
    assert.same({ "nn.conv2d" }, names)
  end)

  it("is a sequential whose elements the context's level enables", function()
    local mod = parse(text, constants)
    assert.equal("sequential", pl.passes.FoldScaleAxis().kind)
    assert.equal(0, pl.passes.FoldScaleAxis().info.opt_level)
    assert.equal(mod, pl.with(pl.context { opt_level = 2 }, pl.passes.FoldScaleAxis(), mod))
    assert.equal("FoldScaleAxis", tostring(pl.pipeline "FoldScaleAxis"))
    assert.truthy(pl.equal(pl.with(pl.context { opt_level = 3 }, pl.pipeline "FoldScaleAxis", mod),
      pl.with(pl.context { opt_level = 3 }, pl.pipeline
        "BackwardFoldScaleAxis,ForwardFoldScaleAxis,FoldConstant", mod)))
  end)

  it("takes no other name for its elements", function()
    assert.has_error(function() pl.passes.FoldScaleAxis = { kind = "function", run = print } end)
    assert.has_error(function() pl.passes.FoldScaleAxis { level = 1 } end)
  end)
end)

describe("FoldScaleAxis on models of ONNX", function()
  local op = pl.op
  local x = pl.var("x", "Tensor[(2, 4, 6, 6), float32]")
  local path = os.tmpname() .. ".onnx"
  local function random(shape, seed)
    return pl.const(pl.tensor.random(shape, "float32", { seed = seed }))
  end

  local function model(params, body)
    assert(pl.onnx.save(pl.module { main = pl.func(params, body) }, path))
    local mod = assert(pl.onnx.load(path))
    os.remove(path)
    return mod
  end

  -- The names of the calls that stay; the result computes the same, also as ONNX.
  local function folded(mod)
    local out = pl.with(pl.context { opt_level = 3 }, pl.passes.FoldScaleAxis(), mod)
    assert(pl.check(mod, out, { rtol = 1e-4, atol = 1e-4 }))
    assert(pl.onnx.save(out, path))
    assert(pl.check(mod, (assert(pl.onnx.load(path))), { rtol = 1e-4, atol = 1e-4 }))
    os.remove(path)
    local names = {}
    for node in out.main:nodes() do
      if node.kind == "Call" then names[#names + 1] = node.op.name end
    end
    return table.concat(names, " ")
  end

  it("scales weights and biases of nn.conv, backwards", function()
    local conv = op.nn.conv(x, random({ 4, 4, 3, 3 }, 1), random({ 4 }, 2),
      { kernel_shape = { 3, 3 } })
    assert.equal("nn.conv", folded(model({ x }, op.multiply(conv, random({ 4, 1, 1 }, 3)))))
    local grouped = op.nn.conv(x, random({ 4, 1, 3, 3 }, 1), { kernel_shape = { 3, 3 }, group = 4 })
    assert.equal("nn.conv", folded(model({ x }, op.multiply(grouped, random({ 4, 1, 1 }, 3)))))
  end)

  it("scales weights of nn.conv, forwards", function()
    local scaled = op.multiply(x, random({ 4, 1, 1 }, 3))
    local conv = op.nn.conv(scaled, random({ 8, 4, 3, 3 }, 1), random({ 8 }, 2),
      { kernel_shape = { 3, 3 } })
    assert.equal("nn.conv", folded(model({ x }, conv)))
  end)

  it("leaves other groups, and scales that are no constants", function()
    local grouped = op.nn.conv(x, random({ 4, 2, 3, 3 }, 1),
      { kernel_shape = { 3, 3 }, group = 2 })
    assert.equal("nn.conv multiply",
      folded(model({ x }, op.multiply(grouped, random({ 4, 1, 1 }, 3)))))
    local s = pl.var("s", "Tensor[(4, 1, 1), float32]")
    local conv = op.nn.conv(x, random({ 4, 4, 3, 3 }, 1), { kernel_shape = { 3, 3 } })
    assert.equal("nn.conv multiply", folded(model({ x, s }, op.multiply(conv, s))))
  end)
end)
