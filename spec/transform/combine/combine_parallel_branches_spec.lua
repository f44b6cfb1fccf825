-- CombineParallelConv2D, CombineParallelDense, CombineParallelBatchMatmul and BatchingOps: golden
-- pairs of Relay text, and what is left alone.

local golden = require "spec.transform.golden"
local pl = require "perilune"

local becomes, stays, passes = golden.becomes, golden.stays, pl.passes

local function calls(mod)
  local names = {}
  for node in mod.main:nodes() do
    if node.kind == "Call" and node.op then names[node.op.name] = (names[node.op.name] or 0) + 1 end
  end
  return names
end

-- The module that `text` defines after the pass; it computes the same.
local function combined(pass, text)
  local mod = golden.module(text)
  local out = golden.apply(pass, mod)
  assert(pl.check(mod, out))
  return calls(out)
end

describe("CombineParallelConv2D", function()
  local pair = passes.CombineParallelConv2D { min_num_branches = 2 }

  it("concatenates kernels and what is added per channel, and slices the result", function()
    becomes(pair, [[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w1: Tensor[(2, 4, 1, 1), float32],
    %w2: Tensor[(3, 4, 1, 1), float32], %b1: Tensor[(2, 1, 1), float32],
    %b2: Tensor[(3, 1, 1), float32]) {
  %0 = nn.relu(add(nn.conv2d(%x, %w1, channels=2, kernel_size=[1, 1]), %b1));
  %1 = nn.relu(add(nn.conv2d(%x, %w2, channels=3, kernel_size=[1, 1]), %b2));
  %2 = nn.max_pool2d(%x, pool_size=[1, 1]);
  concatenate((%0, %1, %2), axis=1)
}]], [[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w1: Tensor[(2, 4, 1, 1), float32],
    %w2: Tensor[(3, 4, 1, 1), float32], %b1: Tensor[(2, 1, 1), float32],
    %b2: Tensor[(3, 1, 1), float32]) {
  %0 = nn.conv2d(%x, concatenate((%w1, %w2)), channels=5, kernel_size=[1, 1]);
  %1 = nn.relu(add(%0, concatenate((%b1, %b2))));
  %2 = strided_slice(%1, begin=[0, 0], end=[-1, 2], strides=[1, 1], slice_mode="size");
  %3 = strided_slice(%1, begin=[0, 2], end=[-1, 3], strides=[1, 1], slice_mode="size");
  %4 = nn.max_pool2d(%x, pool_size=[1, 1]);
  concatenate((%2, %3, %4), axis=1)
}]])
  end)

  it("follows the layouts of data and kernel", function()
    becomes(pair, [[
def @main(%x: Tensor[(1, 8, 8, 4), float32], %w1: Tensor[(1, 1, 4, 2), float32],
    %w2: Tensor[(1, 1, 4, 3), float32], %b1: Tensor[(2), float32], %b2: Tensor[(3), float32]) {
  %0 = nn.conv2d(%x, %w1, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
  %1 = nn.conv2d(%x, %w2, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
  (nn.bias_add(%0, %b1, axis=3), nn.bias_add(%1, %b2, axis=3))
}]], [[
def @main(%x: Tensor[(1, 8, 8, 4), float32], %w1: Tensor[(1, 1, 4, 2), float32],
    %w2: Tensor[(1, 1, 4, 3), float32], %b1: Tensor[(2), float32], %b2: Tensor[(3), float32]) {
  %0 = nn.conv2d(%x, concatenate((%w1, %w2), axis=3), channels=5, kernel_size=[1, 1],
    data_layout="NHWC", kernel_layout="HWIO");
  %1 = nn.bias_add(%0, concatenate((%b1, %b2)), axis=3);
  %2 = strided_slice(%1, begin=[0, 0, 0, 0], end=[-1, -1, -1, 2], strides=[1, 1, 1, 1],
    slice_mode="size");
  %3 = strided_slice(%1, begin=[0, 0, 0, 2], end=[-1, -1, -1, 3], strides=[1, 1, 1, 1],
    slice_mode="size");
  (%2, %3)
}]])
  end)

  it("takes compatible ones of several, in order, and stops where they differ", function()
    becomes(pair, [[
def @main(%x: Tensor[(1, 2, 8, 8), float32], %w: Tensor[(2, 2, 3, 3), float32],
    %v: Tensor[(2, 2, 1, 1), float32]) {
  %0 = nn.conv2d(%x, %w, kernel_size=[3, 3]);
  %1 = nn.conv2d(%x, %v, kernel_size=[1, 1]);
  %2 = nn.conv2d(%x, exp(%w), kernel_size=[3, 3]);
  %3 = nn.conv2d(%x, %v, strides=[2, 2], kernel_size=[1, 1]);
  (tanh(%0), %1, sigmoid(%2), %3)
}]], [[
def @main(%x: Tensor[(1, 2, 8, 8), float32], %w: Tensor[(2, 2, 3, 3), float32],
    %v: Tensor[(2, 2, 1, 1), float32]) {
  %0 = nn.conv2d(%x, concatenate((%w, exp(%w))), channels=4, kernel_size=[3, 3]);
  %1 = strided_slice(%0, begin=[0, 0], end=[-1, 2], strides=[1, 1], slice_mode="size");
  %2 = nn.conv2d(%x, %v, kernel_size=[1, 1]);
  %3 = strided_slice(%0, begin=[0, 2], end=[-1, 2], strides=[1, 1], slice_mode="size");
  %4 = nn.conv2d(%x, %v, strides=[2, 2], kernel_size=[1, 1]);
  (tanh(%1), %2, sigmoid(%3), %4)
}]])
  end)

  it("leaves too few branches and grouped convolutions alone", function()
    local text = [[
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(4, 2, 1, 1), float32],
    %v: Tensor[(2, 4, 1, 1), float32]) {
  %0 = nn.conv2d(%x, %v, kernel_size=[1, 1]);
  %1 = nn.conv2d(%x, %v, kernel_size=[1, 1]);
  (%0, %1, nn.conv2d(%x, %w, groups=2, channels=4, kernel_size=[1, 1]),
    nn.conv2d(%x, exp(%w), groups=2, channels=4, kernel_size=[1, 1]))
}]]
    stays(passes.CombineParallelConv2D(), text)
    assert.equal(3, combined(pair, text)["nn.conv2d"])
  end)
end)

describe("CombineParallelDense", function()
  local batch = passes.CombineParallelDense { min_num_branches = 2 }
  local flat = passes.CombineParallelDense { min_num_branches = 2, to_batch = false }

  it("stacks layers of equal shapes into a batch of products", function()
    becomes(batch, [[
def @main(%x: Tensor[(2, 8), float32], %w0: Tensor[(4, 8), float32],
    %w1: Tensor[(6, 8), float32], %w2: Tensor[(4, 8), float32], %b0: Tensor[(4), float32],
    %b2: Tensor[(4), float32], %s: float32) {
  %0 = multiply(add(nn.dense(%x, %w0, units=None), %b0), %s);
  %1 = nn.dense(%x, %w1, units=6);
  %2 = multiply(add(nn.dense(%x, %w2, units=4), %b2), 2f);
  (%0, %1, %2)
}]], [[
def @main(%x: Tensor[(2, 8), float32], %w0: Tensor[(4, 8), float32],
    %w1: Tensor[(6, 8), float32], %w2: Tensor[(4, 8), float32], %b0: Tensor[(4), float32],
    %b2: Tensor[(4), float32], %s: float32) {
  %0 = nn.batch_matmul(stack((%x, %x)), stack((%w0, %w2)), transpose_b=True);
  %1 = add(%0, stack((expand_dims(%b0, axis=0), expand_dims(%b2, axis=0))));
  %2 = multiply(%1, stack((expand_dims(%s, axis=0, num_newaxis=2),
    expand_dims(2f, axis=0, num_newaxis=2))));
  %3 = split(%2, indices_or_sections=2);
  (squeeze(%3.0, axis=[0]), nn.dense(%x, %w1, units=6), squeeze(%3.1, axis=[0]))
}]])
  end)

  it("makes one layer of layers that differ in units", function()
    becomes(flat, [[
def @main(%x: Tensor[(2, 8), float32], %w0: Tensor[(4, 8), float32],
    %w1: Tensor[(6, 8), float32], %b0: Tensor[(4), float32], %b1: Tensor[(6), float32],
    %s: Tensor[(1), float32], %t: float32) {
  %0 = nn.bias_add(nn.dense(%x, %w0, units=None), %b0, axis=-1);
  %1 = nn.bias_add(nn.dense(%x, %w1, units=None), %b1, axis=-1);
  (subtract(%t, multiply(%0, %s)), subtract(%t, multiply(%1, %s)))
}]], [[
def @main(%x: Tensor[(2, 8), float32], %w0: Tensor[(4, 8), float32],
    %w1: Tensor[(6, 8), float32], %b0: Tensor[(4), float32], %b1: Tensor[(6), float32],
    %s: Tensor[(1), float32], %t: float32) {
  %0 = nn.dense(%x, concatenate((%w0, %w1)), units=10);
  %1 = nn.bias_add(%0, concatenate((%b0, %b1)), axis=-1);
  %2 = multiply(%1, concatenate((repeat(%s, repeats=4, axis=0), repeat(%s, repeats=6, axis=0))));
  %3 = subtract(concatenate((repeat(expand_dims(%t, axis=-1), repeats=4, axis=0),
    repeat(expand_dims(%t, axis=-1), repeats=6, axis=0))), %2);
  (strided_slice(%3, begin=[0, 0], end=[-1, 4], strides=[1, 1], slice_mode="size"),
    strided_slice(%3, begin=[0, 4], end=[-1, 6], strides=[1, 1], slice_mode="size"))
}]])
  end)

  it("slices the axis of units behind an expand_dims", function()
    becomes(flat, [[
def @main(%x: Tensor[(2, 8), float32], %w0: Tensor[(4, 8), float32],
    %w1: Tensor[(6, 8), float32]) {
  %0 = expand_dims(nn.dense(%x, %w0, units=None), axis=2);
  %1 = expand_dims(nn.dense(%x, %w1, units=None), axis=2);
  (%0, %1)
}]], [[
def @main(%x: Tensor[(2, 8), float32], %w0: Tensor[(4, 8), float32],
    %w1: Tensor[(6, 8), float32]) {
  %0 = expand_dims(nn.dense(%x, concatenate((%w0, %w1)), units=10), axis=2);
  (strided_slice(%0, begin=[0, 0, 0], end=[-1, 4, -1], strides=[1, 1, 1], slice_mode="size"),
    strided_slice(%0, begin=[0, 4, 0], end=[-1, 6, -1], strides=[1, 1, 1], slice_mode="size"))
}]])
  end)

  local two = "def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32], " ..
    "%v: Tensor[(4, 4), float32], %b: Tensor[(2), float32]) {\n" ..
    "%0 = nn.dense(%x, %w, units=None); %1 = nn.dense(%x, %v, units=None);"

  it("ends a branch where the parts of a result would not be the results of the parts", function()
    for what, rest in pairs {
      ["broadcast_to"] = "(broadcast_to(%0, shape=[2, 4]), broadcast_to(%1, shape=[2, 4])) }",
      ["nn.bias_add"] = "(nn.bias_add(%0, %b, axis=0), nn.bias_add(%1, %b, axis=0)) }",
      ["repeat"] = "(repeat(%0, repeats=2, axis=1), repeat(%1, repeats=2, axis=1)) }",
    } do
      assert.equal(2, combined(flat, two .. rest)[what], what)
      assert.equal(2, combined(batch, two .. rest)[what], what)
    end
    local moved = "(expand_dims(%0, axis=1), expand_dims(%1, axis=1)) }"
    assert.equal(2, combined(batch, two .. moved).expand_dims)
    local higher = "%2 = stack((%w, %v)); %3 = strided_slice(%2, begin=[0, 0], end=[2, 2]); " ..
      "(add(%0, %3), add(%1, %3)) }"
    assert.equal(2, combined(batch, two .. higher).add)
  end)

  it("moves up what the operands of a later branch are computed of", function()
    becomes(flat, two .. [[
  %2 = tanh(%0);
  %3 = nn.dense(%x, add(exp(%w), sqrt(%v)), units=None);
  (%2, %1, sigmoid(%3), let %y = %2; add(%y, %1))
}]], [[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32],
    %v: Tensor[(4, 4), float32], %b: Tensor[(2), float32]) {
  %0 = nn.dense(%x, concatenate((%w, %v, add(exp(%w), sqrt(%v)))), units=12);
  %1 = tanh(strided_slice(%0, begin=[0, 0], end=[-1, 4], strides=[1, 1], slice_mode="size"));
  %2 = strided_slice(%0, begin=[0, 4], end=[-1, 4], strides=[1, 1], slice_mode="size");
  %3 = strided_slice(%0, begin=[0, 8], end=[-1, 4], strides=[1, 1], slice_mode="size");
  (%1, %2, sigmoid(%3), let %y = %1; add(%y, %2))
}]])
  end)

  it("leaves branches alone of which one depends on another", function()
    stays(flat, [[
def @main(%x: Tensor[(4, 4), float32], %w: Tensor[(4, 4), float32]) {
  %0 = nn.dense(%x, %w, units=None);
  nn.dense(%x, tanh(%0), units=None)
}]])
    local text = [[
def @main(%x: Tensor[(4, 4), float32], %y: Tensor[(4, 4), float32],
    %w: Tensor[(4, 4), float32]) {
  %0 = nn.dense(%x, %w, units=None);
  %1 = nn.dense(%y, %w, units=None);
  (nn.dense(%x, tanh(%1), units=None), nn.dense(%y, tanh(%0), units=None))
}]]
    assert.equal(3, combined(flat, text)["nn.dense"])
  end)

  it("leaves branches alone that a let or a reference cell stands between", function()
    stays(flat, [[
def @main(%x: Tensor[(4, 4), float32], %w: Tensor[(4, 4), float32]) {
  let %r = ref(%w);
  %0 = nn.dense(%x, %w, units=None);
  let %a = ref_write(%r, %0);
  let %v = ref_read(%r);
  (%0, nn.dense(%x, %v, units=None))
}]])
  end)

  it("is at level 4, and takes no other options", function()
    assert.equal(4, passes.CombineParallelDense().info.opt_level)
    assert.has_error(function() passes.CombineParallelDense { min_num_branches = -1 } end)
    assert.has_error(function() passes.CombineParallelDense { to_batch = "yes" } end)
    assert.has_error(function() passes.CombineParallelConv2D { to_batch = true } end)
  end)
end)

describe("CombineParallelBatchMatmul", function()
  local pair = passes.CombineParallelBatchMatmul { min_num_branches = 2 }

  it("concatenates the columns", function()
    becomes(pair, [[
def @main(%x: Tensor[(2, 3, 8), float32], %y: Tensor[(2, 5, 8), float32],
    %z: Tensor[(2, 4, 8), float32], %b: Tensor[(2, 1, 5), float32],
    %c: Tensor[(2, 1, 4), float32]) {
  %0 = nn.batch_matmul(%x, %y, transpose_b=True);
  %1 = nn.batch_matmul(%x, %z, transpose_b=True);
  (nn.relu(add(%0, %b)), nn.relu(add(%1, %c)))
}]], [[
def @main(%x: Tensor[(2, 3, 8), float32], %y: Tensor[(2, 5, 8), float32],
    %z: Tensor[(2, 4, 8), float32], %b: Tensor[(2, 1, 5), float32],
    %c: Tensor[(2, 1, 4), float32]) {
  %0 = nn.batch_matmul(%x, concatenate((%y, %z), axis=1), transpose_b=True);
  %1 = nn.relu(add(%0, concatenate((%b, %c), axis=-1)));
  (strided_slice(%1, begin=[0, 0, 0], end=[-1, -1, 5], strides=[1, 1, 1], slice_mode="size"),
    strided_slice(%1, begin=[0, 0, 5], end=[-1, -1, 4], strides=[1, 1, 1], slice_mode="size"))
}]])
  end)

  it("leaves other transposes, batches and broadcast operands alone", function()
    stays(pair, [[
def @main(%x: Tensor[(2, 3, 8), float32], %y: Tensor[(2, 8, 5), float32]) {
  (nn.batch_matmul(%x, %y), nn.batch_matmul(%x, tanh(%y)))
}]])
    local text = [[
def @main(%x: Tensor[(2, 3, 8), float32], %y: Tensor[(2, 5, 8), float32], %s: float32) {
  %0 = nn.batch_matmul(%x, %y, transpose_b=True);
  %1 = nn.batch_matmul(%x, tanh(%y), transpose_b=True);
  (add(%0, %s), add(%1, 2f))
}]]
    assert.equal(2, combined(pair, text).add)
  end)
end)

describe("BatchingOps", function()
  it("runs the three at level 4", function()
    local mod = golden.module [[
def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {
  (nn.dense(%x, %w, units=None), nn.dense(%x, %w, units=None), nn.dense(%x, %w, units=None))
}]]
    local pass = passes.BatchingOps()
    assert.equal(mod, pl.with(pl.context { opt_level = 3 }, pass, mod))
    local out = pl.with(pl.context { opt_level = 4 }, pass, mod)
    assert.equal(1, calls(out)["nn.batch_matmul"])
    assert(pl.check(mod, out))
  end)
end)
