-- AlterOpLayout: operators in the forms that a target or a function of the
-- user wants, and the layouts of the others.

local pl = require "perilune"
local op = pl.op

local KEY = "FTVMAlterOpLayout"
local function parse(text) return assert(pl.parse('#[version = "0.0.5"]\n' .. text)) end

local function alter(mod, target)
  local context = pl.context { opt_level = 3, target = target }
  local out = pl.with(context, pl.passes.AlterOpLayout(), mod)
  assert(pl.verify(out))
  return out
end

local function becomes(before, after, target)
  local mod = parse(before)
  local out, expected = alter(mod, target), parse(after)
  assert(pl.equal(expected, out), pl.mismatch(expected, out) or tostring(out))
  return mod, out
end

local CONV = [[
def @main(%x: Tensor[(1, 6, 8, 8), float32], %w: Tensor[(16, 6, 3, 3), float32],
    %b: Tensor[(16, 1, 1), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[0, 0, 0, 0], channels=16, kernel_size=[3, 3]);
  %1 = add(%0, %b);
  nn.relu(%1)
}]]

-- Runs f while the operator has a function.
local function with_function(name, f, body)
  pl.op_attr(name, KEY, f)
  local done <close> = setmetatable({}, { __close = function() -- luacheck: ignore done
    pl.op_attr(name, KEY, nil)
  end })
  return body()
end

local PLAIN = [[
def @main(%x: Tensor[(1, 6, 8, 8), float32], %w: Tensor[(16, 6, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[0, 0, 0, 0], channels=16, kernel_size=[3, 3]);
  nn.relu(%0)
}]]

describe("AlterOpLayout", function()
  it("does nothing without a function and without a target", function()
    local mod = parse(PLAIN)
    assert.equal(mod, alter(mod))
    assert.equal(mod, alter(mod, "cuda"))
  end)

  it("computes convolutions in blocks of channels on x86", function()
    local mod, out = becomes(CONV, [[
def @main(%x: Tensor[(1, 6, 8, 8), float32], %w: Tensor[(16, 6, 3, 3), float32],
    %b: Tensor[(16, 1, 1), float32]) {
  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW6c");
  %1 = layout_transform(%w, src_layout="OIHW", dst_layout="OIHW6i16o");
  %2 = nn.contrib_conv2d_NCHWc(%0, %1, padding=[0, 0, 0, 0], channels=16, kernel_size=[3, 3],
    data_layout="NCHW6c", kernel_layout="OIHW6i16o", out_layout="NCHW16c");
  %3 = expand_dims(%b, axis=0);
  %4 = layout_transform(%3, src_layout="NCHW", dst_layout="NCHW16c");
  %5 = add(%2, %4);
  %6 = nn.relu(%5);
  layout_transform(%6, src_layout="NCHW16c", dst_layout="NCHW")
}]], "llvm -mcpu=cascadelake")
    assert(pl.check(mod, out, { rounds = 1 }))
    local _, narrow = pcall(alter, mod, "llvm")
    assert.truthy(tostring(narrow):find("NCHW4c", 1, true))
  end)

  it("packs the weights of dense products on x86", function()
    local out = alter(parse [[
def @main(%x: Tensor[(2, 6), float32], %w: Tensor[(24, 6), float32]) {
  nn.dense(%x, %w, units=None)
}]], "llvm -mcpu=cascadelake")
    local text = tostring(out)
    assert.truthy(text:find('dst_layout="NC24n"', 1, true), text)
    assert.truthy(text:find("nn.contrib_dense_pack", 1, true), text)
  end)

  it("leaves grouped and dilated channelwise convolutions", function()
    local mod = parse [[
def @main(%x: Tensor[(1, 8, 8, 8), float32], %w: Tensor[(8, 4, 3, 3), float32],
    %v: Tensor[(8, 1, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[0, 0, 0, 0], groups=2, channels=8, kernel_size=[3, 3]);
  %1 = nn.conv2d(%x, %v, padding=[0, 0, 0, 0], dilation=[2, 2], groups=8, channels=8,
    kernel_size=[3, 3]);
  (%0, %1)
}]]
    assert.equal(mod, alter(mod, "llvm"))
  end)

  it("asks the function of an operator", function()
    local seen
    with_function("nn.conv2d", function(attrs, inputs, types, out_type)
      seen = { attrs.channels, #inputs, tostring(types[2]), tostring(out_type) }
      return op.nn.conv2d(inputs[1], op.multiply(inputs[2], 2), {
        padding = attrs.padding, channels = attrs.channels, kernel_size = attrs.kernel_size,
        data_layout = "NCHW16c", kernel_layout = "OIHW" })
    end, function()
      local mod = parse [[
def @main(%x: Tensor[(1, 16, 8, 8), float32], %w: Tensor[(16, 16, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]);
  nn.relu(%0)
}]]
      local expected = parse [[
def @main(%x: Tensor[(1, 16, 8, 8), float32], %w: Tensor[(16, 16, 3, 3), float32]) {
  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW16c");
  %1 = multiply(%w, 2f);
  %2 = nn.conv2d(%0, %1, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3],
    data_layout="NCHW16c");
  %3 = nn.relu(%2);
  layout_transform(%3, src_layout="NCHW16c", dst_layout="NCHW")
}]]
      local out = alter(mod)
      assert(pl.equal(expected, out), tostring(out))
    end)
    assert.same({ 16, 2, "Tensor[(16, 16, 3, 3), float32]", "Tensor[(1, 16, 8, 8), float32]" },
      seen)
  end)

  it("leaves calls for which the function returns nil, whatever the target", function()
    local mod = parse(PLAIN)
    with_function("nn.conv2d", function() return nil end, function()
      assert.equal(mod, alter(mod, "llvm"))
    end)
  end)

  it("asks for operators whose layouts nobody knows", function()
    with_function("nn.softmax", function(_, inputs) return op.nn.log_softmax(inputs[1]) end,
      function()
        becomes("def @main(%x: Tensor[(2, 3), float32]) { nn.softmax(%x) }",
          "def @main(%x: Tensor[(2, 3), float32]) { nn.log_softmax(%x) }")
      end)
  end)

  it("gives a diagnostic for what is no call, and leaves the module", function()
    local mod = parse(CONV)
    local function refused(f, pattern)
      with_function("nn.conv2d", f, function()
        local ok, diag = pcall(alter, mod)
        assert.is_false(ok)
        assert.truthy(tostring(diag):find(pattern), tostring(diag))
      end)
    end
    refused(function(_, inputs) return inputs[1] end, "a call of an operator or nil expected")
    refused(function(_, inputs) return op.tanh(inputs[1]) end, "2 arguments expected, got one")
    refused(function() return 1 end, "FTVMAlterOpLayout")
    refused(function() error "no layout" end, "no layout")
    refused(function() coroutine.yield() end, "yield")
  end)
end)
