-- MergeComposite: composite functions of what matches the patterns of a table.

local pl = require "perilune"
local golden = require "spec.transform.golden"

local df = pl.dataflow_pattern

local function merge(list) return pl.passes.MergeComposite { pattern_table = list } end

local function becomes(list, before, after) golden.becomes(merge(list), before, after) end

local conv_relu = [[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(4, 4, 3, 3), float32]) {
  nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]))
}]]

local merged = [[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(4, 4, 3, 3), float32]) {
  %0 = fn (%a: Tensor[(1, 4, 8, 8), float32], %b: Tensor[(4, 4, 3, 3), float32],
      PartitionedFromPattern="nn.conv2d_nn.relu_", Composite="spec.conv_relu") {
    nn.relu(nn.conv2d(%a, %b, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]))
  };
  %0(%x, %w)
}]]

describe("MergeComposite", function()
  it("makes a function of a match", function()
    local conv = df.is_op "nn.conv2d" (df.wildcard(), df.wildcard())
    becomes({ { "spec.conv_relu", df.is_op "nn.relu" (conv) } }, conv_relu, merged)
  end)

  it("takes patterns as text", function()
    becomes({ { "spec.conv_relu", "nn.relu(nn.conv2d(*, *))" } }, conv_relu, merged)
    local either = " nn.relu ( tanh(_) | nn.conv2d(*, Var) ) "
    becomes({ { "spec.conv_relu", either } }, conv_relu, merged)
  end)

  it("uses the patterns in the order of the table", function()
    local list = { { "spec.exp", "exp(*)" }, { "spec.both", "exp(tanh(*))" },
      { "spec.tanh", "tanh(*)" } }
    becomes(list, [[
def @main(%x: Tensor[(4), float32]) { exp(tanh(%x)) }]], [[
def @main(%x: Tensor[(4), float32]) {
  %0 = fn (%a: Tensor[(4), float32], PartitionedFromPattern="tanh_", Composite="spec.tanh") {
    tanh(%a)
  };
  %1 = fn (%a: Tensor[(4), float32], PartitionedFromPattern="exp_", Composite="spec.exp") {
    exp(%a)
  };
  %1(%0(%x))
}]])
  end)

  it("asks checks: functions, and texts about attributes", function()
    local seen
    local list = { { "spec.conv_relu", "nn.relu(nn.conv2d(*, *))", function(root)
      seen = root.op.name
      return #root.type.shape == 4
    end } }
    becomes(list, conv_relu, merged)
    assert.equal("nn.relu", seen)
    local function checked(text)
      return merge { { "spec.conv_relu", "nn.relu(nn.conv2d(*, *))", text } }
    end
    golden.becomes(checked "check: groups == 1 and data_layout == NCHW", conv_relu, merged)
    golden.stays(checked "data_layout == NHWC", conv_relu)
    golden.stays(checked "groups == 1 and channels == 8", conv_relu)
  end)

  it("takes the name of a registered table, in pipelines too", function()
    local list = { { "spec.conv_relu", "nn.relu(nn.conv2d(*, *))" } }
    pl.pattern_table("spec.table", list)
    assert.equal(list, pl.pattern_table "spec.table")
    assert.is_nil(pl.pattern_table "spec.no_table")
    golden.becomes(pl.pipeline 'MergeComposite{pattern_table="spec.table"}', conv_relu, merged)
    pl.pattern_table("spec.table", {})
    golden.stays(pl.pipeline 'MergeComposite{pattern_table="spec.table"}', conv_relu)
  end)

  it("leaves everything as it is without a table", function()
    golden.stays(pl.passes.MergeComposite(), conv_relu)
  end)

  it("partitions with the passes that follow", function()
    local out = pl.sequential { merge { { "spec.conv_relu", "nn.relu(nn.conv2d(*, *))" } },
      pl.passes.AnnotateTarget { targets = "spec" }, "MergeCompilerRegions", "PartitionGraph" } (
      golden.module(conv_relu))
    assert.equal("spec", out.functions.tvmgen_default_spec_main_0.attrs.Compiler)
    assert(pl.check(golden.module(conv_relu), out))
  end)

  it("reports checks that raise or yield, and leaves the module", function()
    local mod = golden.module(conv_relu)
    local function refused(check, message)
      local pass = merge { { "spec.conv_relu", "nn.relu(nn.conv2d(*, *))", check } }
      local ok, diag = pcall(pass, mod)
      assert.is_false(ok)
      assert.is_truthy(tostring(diag):find(message), tostring(diag))
      assert.is_truthy(tostring(diag):find("'spec.conv_relu'", 1, true), tostring(diag))
    end
    refused(function() error "broken" end, "merge_composite_spec.lua:%d+: broken")
    refused(function() coroutine.yield() end, "attempt to yield")
  end)

  it("refuses what is no table, pattern or check", function()
    local function refused(list, message)
      assert.error_matches(function() merge(list)(golden.module(conv_relu)) end, message)
    end
    refused("spec.nothing", "no pattern table is called 'spec.nothing'")
    refused(1, "expects a string, got an integer")
    refused({ 1 }, "row of pattern_table: a table expected, got number")
    refused({ { 1, "exp(*)" } }, "name: a string expected, got number")
    refused({ { "a", 1 } }, "a dataflow pattern expected, got number")
    refused({ { "a", "exq(*)" } }, "at 4: no operator is called 'exq'; did you mean 'exp'")
    refused({ { "a", "exp(*" } }, "at 6: ',' or '%)' expected")
    refused({ { "a", "exp(*) x" } }, "at 8: the end expected")
    refused({ { "a", "exp(*)", "groups" } }, "NAME == VALUE expected, got 'groups'")
    refused({ { "a", "exp(*)", 1 } }, "check: a function")
  end)
end)
