-- ConvertLayout: convolutions in the layouts that are desired, the other
-- operators in those that follow, and conversions in between.

local pl = require "perilune"

local NCHW = { ["nn.conv2d"] = { "NCHW", "default" } }
local NHWC = { ["nn.conv2d"] = { "NHWC", "default" } }

local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

-- As TVM runs a pass in a sequential: what it requires runs before.
local function convert(mod, desired, skipped)
  local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore scope
  local pass = pl.passes.ConvertLayout { desired_layouts = desired, skip_layers = skipped }
  local out = pl.sequential { pass } (mod)
  assert(pl.verify(out))
  return out
end

-- The result of the program computes the same, and is `after`.
local function becomes(before, after, desired, unchecked)
  local mod = parse(before)
  local out = convert(mod, desired or NCHW)
  local expected = parse(after)
  assert(pl.equal(expected, out), pl.mismatch(expected, out) or tostring(out))
  assert(unchecked or pl.check(mod, out, { rounds = 1 }))
  assert.equal(out, convert(out, desired or NCHW))
end

local function stays(before, desired)
  local mod = parse(before)
  assert.equal(mod, convert(mod, desired or NCHW))
end

-- %y is a convolution in NHWC; the text behind it uses it.
local function after_conv(rest, parameters)
  return (([[
def @main(%%x: Tensor[(1, 8, 8, 4), float32], %%w: Tensor[(3, 3, 4, 8), float32]%s) {
  %%y = nn.conv2d(%%x, %%w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3],
    data_layout="NHWC", kernel_layout="HWIO");
  %s
}]]):format(parameters or "", rest):gsub("%%y", "%%0"))
end

-- %y is the same convolution in NCHW.
local function after_converted(rest, parameters)
  return (([[
def @main(%%x: Tensor[(1, 8, 8, 4), float32], %%w: Tensor[(3, 3, 4, 8), float32]%s) {
  %%0 = layout_transform(%%x, src_layout="NHWC", dst_layout="NCHW");
  %%1 = layout_transform(%%w, src_layout="HWIO", dst_layout="OIHW");
  %%y = nn.conv2d(%%0, %%1, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  %s
}]]):format(parameters or "", rest):gsub("%%y", "%%2"))
end

local function to_nhwc(node)
  return ('layout_transform(%s, src_layout="NCHW", dst_layout="NHWC")'):format(node)
end

local function follows(before, after, parameters, unchecked)
  becomes(after_conv(before, parameters), after_converted(after, parameters), NCHW, unchecked)
end

describe("ConvertLayout converts", function()
  it("a convolution and its operands", function()
    follows("nn.relu(%y)", "%3 = nn.relu(%y); " .. to_nhwc "%3")
  end)

  it("to NHWC as well", function()
    becomes([[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(8, 4, 3, 3), float32]) {
  nn.conv2d(%x, %w, channels=8, kernel_size=[3, 3])
}]], [[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(8, 4, 3, 3), float32]) {
  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
  %1 = layout_transform(%w, src_layout="OIHW", dst_layout="HWIO");
  %2 = nn.conv2d(%0, %1, padding=[0, 0, 0, 0], channels=8, kernel_size=[3, 3],
    data_layout="NHWC", kernel_layout="HWIO");
  layout_transform(%2, src_layout="NHWC", dst_layout="NCHW")
}]], NHWC)
  end)

  it("depthwise weights to HWOI", function()
    becomes([[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(4, 1, 3, 3), float32]) {
  nn.conv2d(%x, %w, padding=[0, 0, 0, 0], groups=4, channels=4, kernel_size=[3, 3])
}]], [[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(4, 1, 3, 3), float32]) {
  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
  %1 = layout_transform(%w, src_layout="OIHW", dst_layout="HWOI");
  %2 = nn.conv2d(%0, %1, padding=[0, 0, 0, 0], groups=4, channels=4, kernel_size=[3, 3],
    data_layout="NHWC", kernel_layout="HWOI");
  layout_transform(%2, src_layout="NHWC", dst_layout="NCHW")
}]], NHWC)
  end)

  it("to the weights' layout that is named", function()
    becomes([[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(8, 4, 3, 3), float32]) {
  nn.conv2d(%x, %w, padding=[0, 0, 0, 0], channels=8, kernel_size=[3, 3])
}]], [[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(8, 4, 3, 3), float32]) {
  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
  %1 = layout_transform(%w, src_layout="OIHW", dst_layout="OHWI");
  %2 = nn.conv2d(%0, %1, padding=[0, 0, 0, 0], channels=8, kernel_size=[3, 3],
    data_layout="NHWC", kernel_layout="OHWI");
  layout_transform(%2, src_layout="NHWC", dst_layout="NCHW")
}]], { ["nn.conv2d"] = { "NHWC", "OHWI" } })
  end)

  it("to blocks of channels", function()
    becomes([[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(8, 4, 3, 3), float32]) {
  nn.conv2d(%x, %w, padding=[0, 0, 0, 0], channels=8, kernel_size=[3, 3])
}]], [[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(8, 4, 3, 3), float32]) {
  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c");
  %1 = layout_transform(%w, src_layout="OIHW", dst_layout="OIHW4o");
  %2 = nn.contrib_conv2d_NCHWc(%0, %1, padding=[0, 0, 0, 0], channels=8, kernel_size=[3, 3],
    data_layout="NCHW4c", kernel_layout="OIHW4o");
  layout_transform(%2, src_layout="NCHW4c", dst_layout="NCHW")
}]], { ["nn.conv2d"] = { "NCHW4c", "OIHW4o" } })
  end)

  it("transposed convolutions", function()
    becomes([[
def @main(%x: Tensor[(1, 8, 8, 4), float32], %w: Tensor[(3, 3, 8, 4), float32]) {
  nn.conv2d_transpose(%x, %w, channels=8, kernel_size=[3, 3], padding=[0, 0, 0, 0],
    data_layout="NHWC", kernel_layout="HWOI")
}]], [[
def @main(%x: Tensor[(1, 8, 8, 4), float32], %w: Tensor[(3, 3, 8, 4), float32]) {
  %0 = layout_transform(%x, src_layout="NHWC", dst_layout="NCHW");
  %1 = layout_transform(%w, src_layout="HWOI", dst_layout="IOHW");
  %2 = nn.conv2d_transpose(%0, %1, channels=8, kernel_size=[3, 3], padding=[0, 0, 0, 0]);
  layout_transform(%2, src_layout="NCHW", dst_layout="NHWC")
}]], { ["nn.conv2d_transpose"] = { "NCHW", "default" } })
  end)

  it("pooling", function()
    becomes([[
def @main(%x: Tensor[(1, 8, 8, 4), float32]) {
  nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0], layout="NHWC")
}]], [[
def @main(%x: Tensor[(1, 8, 8, 4), float32]) {
  %0 = layout_transform(%x, src_layout="NHWC", dst_layout="NCHW");
  %1 = nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0],
    out_layout="NCHW");
  layout_transform(%1, src_layout="NCHW", dst_layout="NHWC")
}]], { ["nn.max_pool2d"] = { "NCHW" } })
  end)
end)

describe("ConvertLayout lets operators follow:", function()
  it("pooling of quantised images, alone and behind a convolution", function()
    local pool = 'qnn.avg_pool2d(%s, 1f, 0, 2f, 1, pool_size=[2, 2], padding=[0, 0, 0, 0]%s)'
    local x = "def @main(%x: Tensor[(1, 8, 8, 4), int8]"
    becomes(("%s) { %s }"):format(x, pool:format("%x", ', layout="NHWC"')), ([[
%s) {
  %%0 = layout_transform(%%x, src_layout="NHWC", dst_layout="NCHW");
  layout_transform(%s, src_layout="NCHW", dst_layout="NHWC")
}]]):format(x, pool:format("%0", ', out_layout="NCHW"')), { ["qnn.avg_pool2d"] = { "NCHW" } })
    local head = x .. ", %w: Tensor[(1, 1, 4, 4), int8]) {"
    becomes(([[
%s
  %%0 = qnn.conv2d(%%x, %%w, 0, 0, 1f, 1f, padding=[0, 0, 0, 0], channels=4, kernel_size=[1, 1],
    data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32");
  %%1 = qnn.requantize(%%0, 1f, 0, 2f, 0, axis=3, out_dtype="int8");
  %s
}]]):format(head, pool:format("%1", ', layout="NHWC"')), ([[
%s
  %%0 = layout_transform(%%x, src_layout="NHWC", dst_layout="NCHW");
  %%1 = layout_transform(%%w, src_layout="HWIO", dst_layout="OIHW");
  %%2 = qnn.conv2d(%%0, %%1, 0, 0, 1f, 1f, padding=[0, 0, 0, 0], channels=4, kernel_size=[1, 1],
    out_dtype="int32");
  %%3 = qnn.requantize(%%2, 1f, 0, 2f, 0, axis=1, out_dtype="int8");
  layout_transform(%s, src_layout="NCHW", dst_layout="NHWC")
}]]):format(head, pool:format("%3", "")), { ["qnn.conv2d"] = { "NCHW", "default" } })
  end)

  it("a bias", function()
    follows("add(%y, %b)", [[
  %3 = expand_dims(%b, axis=0, num_newaxis=3);
  %4 = layout_transform(%3, src_layout="NHWC", dst_layout="NCHW");
  %5 = add(%y, %4);
  ]] .. to_nhwc "%5", ", %b: Tensor[(8), float32]")
  end)

  it("nn.bias_add, which CanonicalizeOps writes as a sum", function()
    follows("nn.bias_add(%y, %b, axis=3)", [[
  %3 = expand_dims(%b, axis=0, num_newaxis=3);
  %4 = layout_transform(%3, src_layout="NHWC", dst_layout="NCHW");
  %5 = add(%y, %4);
  ]] .. to_nhwc "%5", ", %b: Tensor[(8), float32]")
  end)

  it("a scalar, as it is", function()
    follows("multiply(%y, 2f)", "%3 = multiply(%y, 2f); " .. to_nhwc "%3")
  end)

  it("a reduction", function()
    follows("sum(%y, axis=[1, 2])",
      "%3 = sum(%y, axis=[2, 3]); %3")
    follows("mean(%y, axis=[3], keepdims=True)",
      "%3 = mean(%y, axis=[1], keepdims=True); " .. to_nhwc "%3")
    follows("max(%y, axis=[3], exclude=True)", "max(%y, axis=[1], exclude=True)")
  end)

  it("a concatenation and a split", function()
    follows("%1 = nn.relu(%y); %2 = (%y, %1); concatenate(%2, axis=-1)",
      "%3 = nn.relu(%y); %4 = (%y, %3); %5 = concatenate(%4, axis=1); " .. to_nhwc "%5")
    follows("%1 = split(%y, indices_or_sections=2, axis=3); %2 = %1.0; nn.relu(%2)",
      "%3 = split(%y, indices_or_sections=2, axis=1); %4 = %3.0; %5 = nn.relu(%4); "
        .. to_nhwc "%5")
  end)

  it("the results of a split that are used as a whole", function()
    follows("split(%y, indices_or_sections=2, axis=3)", [[
  %3 = split(%y, indices_or_sections=2, axis=1);
  %4 = %3.0;
  %5 = ]] .. to_nhwc "%4" .. [[;
  %6 = %3.1;
  %7 = ]] .. to_nhwc "%6" .. [[;
  (%5, %7)]])
  end)

  it("a transposition", function()
    follows("%1 = transpose(%y, axes=[0, 3, 1, 2]); nn.relu(%1)",
      "%3 = transpose(%y, axes=[0, 1, 2, 3]); nn.relu(%3)")
  end)

  it("a squeeze", function()
    follows("%1 = sum(%y, axis=[1, 2], keepdims=True); squeeze(%1, axis=[1, 2])",
      "%3 = sum(%y, axis=[2, 3], keepdims=True); squeeze(%3, axis=[2, 3])")
  end)

  it("a slice", function()
    follows("strided_slice(%y, begin=[0, 1, 0, 2], end=[1, 5, 8, 6], strides=[1, 2, 1, 1])",
      "%3 = strided_slice(%y, begin=[0, 2, 1, 0], end=[1, 6, 5, 8], strides=[1, 1, 2, 1]); "
        .. to_nhwc "%3")
  end)

  it("padding and pooling", function()
    follows([=[
  %1 = nn.pad(%y, 0f, pad_width=[[0, 0], [1, 2], [3, 4], [0, 0]]);
  nn.avg_pool2d(%1, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0], layout="NHWC")]=], [=[
  %3 = nn.pad(%y, 0f, pad_width=[[0, 0], [0, 0], [1, 2], [3, 4]]);
  %4 = nn.avg_pool2d(%3, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);
  ]=] .. to_nhwc "%4")
  end)

  it("upsampling and resizing", function()
    follows([[nn.upsampling(%y, scale_h=2f, scale_w=2f, layout="NHWC")]], [[
  %3 = ]] .. to_nhwc "%y" .. [[;
  nn.upsampling(%3, scale_h=2f, scale_w=2f, layout="NHWC")]])
    follows([[image.resize2d(%y, size=[16, 16], roi=[0f, 0f, 0f, 0f], layout="NHWC")]],
      "%3 = image.resize2d(%y, size=[16, 16], roi=[0f, 0f, 0f, 0f]); " .. to_nhwc "%3")
  end)

  it("a normalisation", function() -- the evaluator has only that of axis 1
    follows([[
  %1 = nn.batch_norm(%y, %b, %b, %b, %b, axis=-1);
  %2 = %1.0;
  nn.relu(%2)]], [[
  %3 = nn.batch_norm(%y, %b, %b, %b, %b, axis=1);
  %4 = %3.0;
  %5 = nn.relu(%4);
  ]] .. to_nhwc "%5", ", %b: Tensor[(8), float32]", true)
    follows("nn.l2_normalize(%y, eps=0.001f, axis=[3])",
      "%3 = nn.l2_normalize(%y, eps=0.001f, axis=[1]); " .. to_nhwc "%3")
  end)
end)

describe("ConvertLayout converts back", function()
  it("before operators that cannot follow, once for all of them", function()
    follows("%1 = nn.softmax(%y); %2 = nn.softmax(%y, axis=1); (%1, %2)", [[
  %3 = ]] .. to_nhwc "%y" .. [[;
  %4 = nn.softmax(%3);
  %5 = nn.softmax(%3, axis=1);
  (%4, %5)]])
  end)

  it("in front of lets, branches and functions", function()
    becomes(after_conv "let %a = nn.relu(%y); nn.relu(%a)", after_converted(
      "%3 = nn.relu(%y); let %a = " .. to_nhwc "%3" .. "; nn.relu(%a)"))
    becomes(after_conv("if (%p) { nn.relu(%y) } else { tanh(%y) }", ", %p: bool"),
      after_converted("if (%p) { %3 = nn.relu(%y); " .. to_nhwc "%3"
        .. " } else { %4 = tanh(%y); " .. to_nhwc "%4" .. " }", ", %p: bool"))
  end)

  it("where blocks would be cut", function()
    local desired = { ["nn.conv2d"] = { "NCHW4c", "OIHW4o" } }
    local mod = parse [[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(8, 4, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[0, 0, 0, 0], channels=8, kernel_size=[3, 3]);
  %1 = split(%0, indices_or_sections=[2], axis=1);
  %2 = strided_slice(%0, begin=[0, 1], end=[1, 3], strides=[1, 1]);
  (%1.0, %1.1, %2)
}]]
    local out = convert(mod, desired)
    assert(pl.check(mod, out, { rounds = 1 }))
    assert.truthy(tostring(out):find("NCHW4c", 1, true))
  end)
end)

describe("ConvertLayout leaves", function()
  it("programs without the operator, and operators without a wish", function()
    stays [[
def @main(%x: Tensor[(1, 4), float32]) { nn.relu(%x) }]]
    stays(after_conv "nn.relu(%y)", { ["nn.conv3d"] = { "NCDHW", "default" } })
  end)

  it("what is in the layout already", function()
    stays(after_converted("nn.relu(%y)"))
  end)

  it("models of ONNX", function()
    local op = pl.op
    local x = pl.var("x", "Tensor[(1, 4, 8, 8), float32]")
    local w = pl.var("w", "Tensor[(8, 4, 3, 3), float32]")
    local mod = pl.module { main = pl.func({ x, w }, op.nn.relu(op.nn.conv(x, w))) }
    assert.equal(mod, convert(mod, NHWC))
  end)

  it("layers that are skipped", function()
    local mod = parse(after_conv "nn.relu(%y)")
    assert.equal(mod, convert(mod, NCHW, { 0 }))
    assert.not_equal(mod, convert(mod, NCHW, { 1 }))
    local config <close> = pl.layout_config { skip_layers = { 0 } } -- luacheck: ignore config
    assert.equal(mod, pl.passes.ConvertLayout { desired_layouts = NCHW } (mod))
  end)
end)

describe("ConvertLayout after another one", function()
  it("keeps a bias whose blocks are one", function()
    local mod = parse [[
def @main(%x: Tensor[(2, 16, 4, 4), float32], %w: Tensor[(16, 16, 1, 1), float32],
          %v: Tensor[(8, 16, 1, 1), float32], %b: Tensor[(8, 1, 1), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[0, 0, 0, 0], channels=16, kernel_size=[1, 1]);
  %1 = nn.conv2d(%0, %v, padding=[0, 0, 0, 0], channels=8, kernel_size=[1, 1]);
  add(%1, %b)
}]]
    local blocked = convert(mod, { ["nn.conv2d"] = { "NCHW8c", "OIHW8i8o" } }, { 0 })
    assert.matches("NCHW8c", tostring(blocked))
    local both = convert(blocked, { ["nn.conv2d"] = { "NCHW16c", "OIHW16i16o" } })
    assert.matches("NCHW16c", tostring(both))
    assert(pl.check(mod, both))
  end)
end)

describe("ConvertLayout refuses", function()
  local mod = parse(after_conv "nn.relu(%y)")

  local function refused(desired, pattern)
    local ok, diag = pcall(function()
      return pl.passes.ConvertLayout { desired_layouts = desired } (mod)
    end)
    assert.is_false(ok)
    assert.truthy(tostring(diag):find(pattern), tostring(diag))
  end

  it("wishes that are no layouts", function()
    refused({ ["nn.conv2dd"] = { "NCHW" } }, "'nn.conv2dd', which is no operator")
    refused({ ["nn.conv2d"] = { "NCHW" } }, "two layouts, of the data and the weights, got '1 lay")
    refused({ ["nn.conv2d"] = { "default", "OIHW" } }, "data has no default layout")
    refused({ ["nn.conv2d"] = { "CHWN", "default" } }, "no default layout for data in this")
    refused({ ["nn.conv2d"] = { "NN", "OIHW" } }, "layouts such as 'NHWC'")
    refused({ ["nn.conv2d"] = "NCHW" }, "a list of strings, got a string")
    refused({ "NCHW" }, "a table of lists of strings, got a list")
  end)

  it("layouts that the operator does not have", function()
    refused({ ["nn.conv2d"] = { "NCHW", "OHW" } }, "the axes that are there, got 'OHW'")
  end)
end)

describe("ConvertLayout in a pipeline's text", function()
  it("is printed as it is parsed", function()
    local text = 'ConvertLayout{desired_layouts={nn.conv2d=["NCHW","default"]},skip_layers=[1]}'
    local pass = pl.pipeline(text)
    assert.equal(text, tostring(pl.pipeline(tostring(pass))))
    local mod = parse(after_conv "nn.relu(%y)")
    local scope <close> = pl.context { opt_level = 3 }:enter() -- luacheck: ignore scope
    assert(pl.equal(parse(after_converted("%3 = nn.relu(%y); " .. to_nhwc "%3")), pass(mod)))
  end)
end)
