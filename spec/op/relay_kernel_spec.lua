-- What Relay's operators compute, by their definitions, on numbers that can be
-- checked by hand.

local pl = require "perilune"

local computes, refuses = require "spec.op.computed" (it)

local function ints(values) return { "int32", values } end
local function floats(values) return { "float32", values } end

describe("element by element", function()
  computes("integers are divided towards minus infinity", "floor_divide(%a, %b)",
    { ints { -7, 7, -7, 6 }, ints { 2, -2, -2, 2 } }, { -4, -4, 3, 3 })
  refuses("division by zero is refused", "floor_divide(%a, %b)",
    { ints { 1 }, ints { 0 } }, "'floor_divide': an element has no defined result")
  computes("floats are divided, floored and cut",
    "(floor_divide(%a, %b), trunc_divide(%a, %b), floor_mod(%a, %b), trunc_mod(%a, %b))",
    { floats { -7, 7 }, floats { 2, 2 } }, { -4, 3 }, { -3, 3 }, { 1, 1 }, { -1, 1 })
  computes("logarithms of bases 2 and 10", "(log2(%a), log10(%a), trunc(%b), isfinite(%c))",
    { floats { 8, 100 }, floats { -1.5, 1.5 }, floats { 1 / 0, 1 } },
    { 3, 6.6438562 }, { 0.90308999, 2 }, { -1, 1 }, { false, true })
  computes("signed integers are shifted", "(left_shift(%a, %b), right_shift(%a, %b))",
    { ints { -7, 7 }, ints { 2, 1 } }, { -28, 14 }, { -2, 3 })
  computes("a shift past the width leaves the sign", "(left_shift(%a, %b), right_shift(%a, %b))",
    { ints { 1, -8 }, ints { -1, 64 } }, { 0, 0 }, { 0, -1 })
  computes("slopes lie along an axis", "(nn.prelu(%a, %b), nn.prelu(%a, %b, axis=2))",
    { floats { { { -1, -2 }, { -3, 4 } } }, floats { 10, 100 } },
    { { { -10, -20 }, { -300, 4 } } }, { { { -10, -200 }, { -30, 4 } } })
end)

describe("in order", function()
  local rows = floats { { 3, 1, 2 }, { 0, 5, 5 } }
  computes("sort and argsort take an axis", [[
      (sort(%a), argsort(%a, is_ascend=False, axis=1), sort(%a, axis=0))]], { rows },
    { { 1, 2, 3 }, { 0, 5, 5 } }, { { 0, 2, 1 }, { 1, 2, 0 } }, { { 0, 1, 2 }, { 3, 5, 5 } })
  computes("topk gives values, indices, or both", [[
      %0 = topk(%a, k=2, axis=1);
      (%0.0, %0.1, topk(%a, k=0, ret_type="values", is_ascend=True),
       topk(%a, k=1, ret_type="indices", dtype="int64"))]], { rows },
    { { 3, 2 }, { 5, 5 } }, { { 0, 2 }, { 1, 2 } }, { { 1, 2, 3 }, { 0, 5, 5 } }, { { 0 }, { 1 } })
  computes("dyn.topk is told how many", "%0 = dyn.topk(%a, %b, k=1); (%0.0, %0.1)",
    { rows, { "int64", 2 } }, { { 3, 2 }, { 5, 5 } }, { { 0, 2 }, { 1, 2 } })
  computes("what is no number comes last", "argsort(%a)", { floats { 0 / 0, 1, -1 } }, { 2, 1, 0 })
end)

describe("sums over products", function()
  computes("the variance is given the mean", [[
      %0 = mean(%a, axis=[1], keepdims=True);
      (variance(%a, %0, axis=[1]), variance(%a, %0, axis=[1], keepdims=True, unbiased=True),
       variance(%a, %0, axis=[0], exclude=True))]], { floats { { 3, 1, 2 }, { 0, 5, 4 } } },
    { 2 / 3, 14 / 3 }, { { 1 }, { 7 } }, { 2 / 3, 14 / 3 })
  computes("nn.l2_normalize divides by the norm, at least the root of eps",
    "(nn.l2_normalize(%a, eps=0f, axis=[1]), nn.l2_normalize(%a, eps=100f, axis=[1]))",
    { floats { { 3, 4 } } }, { { 0.6, 0.8 } }, { { 0.3, 0.4 } })
  computes("cross entropies are means over rows", [[
      (nn.cross_entropy(%a, %b), nn.cross_entropy_with_logits(%a, %b))]],
    { floats { { 1, 2 }, { 4, math.exp(3) } }, floats { { 1, 0 }, { 0, 1 } } },
    -1.5, -(1 + math.exp(3)) / 2)
end)

describe("borders", function()
  local x = floats { { 3, 1, 2 }, { 0, 5, 6 } }
  computes("mirror, with the edge or without", [=[
      (nn.mirror_pad(%a, pad_width=[[1, 0], [2, 1]]),
       nn.mirror_pad(%a, mode="REFLECT", pad_width=[[0, 1], [2, 1]]))]=], { x },
    { { 1, 3, 3, 1, 2, 2 }, { 1, 3, 3, 1, 2, 2 }, { 5, 0, 0, 5, 6, 6 } },
    { { 2, 1, 3, 1, 2, 1 }, { 6, 5, 0, 5, 6, 5 }, { 2, 1, 3, 1, 2, 1 } })
  refuses("are no wider than what they mirror", [=[
      nn.mirror_pad(%a, mode="REFLECT", pad_width=[[2, 0], [0, 0]])]=], { x },
    "'nn.mirror_pad': the widths do not match the operand")
end)

describe("windows in other layouts", function()
  local x = floats { { { { 1 }, { 2 }, { 3 } }, { { 4 }, { 5 }, { 6 } }, { { 7 }, { 8 }, { 9 } } } }
  computes("pool", [[
      (nn.max_pool2d(%a, pool_size=[2, 2], layout="NHWC"),
       nn.avg_pool2d(%a, pool_size=[2, 2], strides=[2, 2], ceil_mode=True, layout="NHWC"),
       nn.global_avg_pool2d(%a, layout="NHWC"))]], { x },
    { { { { 5 }, { 6 } }, { { 8 }, { 9 } } } }, { { { { 3 }, { 4.5 } }, { { 7.5 }, { 9 } } } },
    { { { { 5 } } } })
  computes("count the pads of the last window", [[
      nn.avg_pool2d(%a, pool_size=[2, 2], strides=[2, 2], ceil_mode=True, layout="NHWC",
                    count_include_pad=True)]], { x },
    { { { { 3 }, { 2.25 } }, { { 3.75 }, { 2.25 } } } })
  computes("adapt to a size", [[
      (nn.adaptive_avg_pool2d(%a, output_size=[2, 2], layout="NHWC"),
       nn.adaptive_max_pool2d(%a, output_size=[2], layout="NHWC"))]], { x },
    { { { { 3 }, { 4 } }, { { 6 }, { 7 } } } }, { { { { 5 }, { 6 } }, { { 8 }, { 9 } } } })
  computes("convolve", [[
      nn.conv2d(%a, %b, data_layout="NHWC", kernel_layout="HWIO", kernel_size=[2, 2])]],
    { x, floats { { { { 1, 10 } }, { { 0, 0 } } }, { { { 0, 0 } }, { { 1, 0 } } } } },
    { { { { 6, 10 }, { 8, 20 } }, { { 12, 40 }, { 14, 50 } } } })
  local two = floats { { { { 1, 2 } }, { { 3, 4 } } } }
  computes("depthwise weights have a multiplier beside the channels", [[
      nn.conv2d(%a, %b, groups=2, channels=4, kernel_size=[1, 1])]],
    { two, floats { { { { 1 } }, { { 10 } } }, { { { 2 } }, { { 20 } } } } },
    { { { { 1, 2 } }, { { 10, 20 } }, { { 6, 8 } }, { { 60, 80 } } } })
  computes("or in the layout HWOI", [[
      nn.conv2d(%a, %b, groups=2, channels=4, kernel_size=[1, 1], data_layout="NHWC",
        kernel_layout="HWOI")]],
    { floats { { { { 1, 3 }, { 2, 4 } } } }, floats { { { { 1, 10 }, { 2, 20 } } } } },
    { { { { 1, 10, 6, 60 }, { 2, 20, 8, 80 } } } })
  computes("convolve to another layout and dtype", [[
      nn.conv1d(%a, %b, kernel_size=[2], out_layout="NWC", out_dtype="int32")]],
    { { "int8", { { { 100, 100, 1 } } } }, { "int8", { { { 1, 1 } }, { { 2, 0 } } } } },
    { { { 200, 200 }, { 101, 200 } } })
  computes("convolve blocks of channels", [[
      %0 = nn.contrib_conv2d_NCHWc(
        layout_transform(%a, src_layout="NCHW", dst_layout="NCHW2c"),
        layout_transform(%b, src_layout="OIHW", dst_layout="OIHW2i2o"),
        kernel_size=[1, 1], channels=2, data_layout="NCHW2c", kernel_layout="OIHW2i2o");
      layout_transform(%0, src_layout="NCHW2c", dst_layout="NCHW")]],
    { floats { { { { 1, 2 } }, { { 3, 4 } } } }, floats { { { { 1 } }, { { 10 } } },
      { { { 100 } }, { { 0 } } } } }, { { { { 31, 42 } }, { { 100, 200 } } } })
  refuses("of another rank are refused", [[
      nn.contrib_conv2d_NCHWc(%a, %b, data_layout="NHC", kernel_layout="OIH")]],
    { floats { { { 1 } } }, floats { { { 1 } } } }, "has no axis W")
end)

describe("transposed convolutions", function()
  local x = floats { { { { 1, 2 }, { 3, 4 } } } }
  computes("spread each element by the window", [[
      nn.conv2d_transpose(%a, %b, strides=[2, 2], kernel_size=[2, 2], channels=1)]],
    { x, floats { { { { 1, 10 }, { 100, 0 } } } } },
    { { { { 1, 10, 2, 20 }, { 100, 0, 200, 0 }, { 3, 30, 4, 40 }, { 300, 0, 400, 0 } } } })
  computes("have the operand's channels first, whatever the layout calls them", [[
      (nn.conv1d_transpose(%a, %b, kernel_size=[1]),
       nn.conv1d_transpose(%a, %b, kernel_size=[1], kernel_layout="OIW"),
       nn.conv1d_transpose(%a, %c, kernel_size=[1], kernel_layout="WIO"))]],
    { floats { { { 1 }, { 2 } } }, floats { { { 1 }, { 10 }, { 0 } }, { { 0 }, { 1 }, { 5 } } },
      floats { { { 1, 10, 0 }, { 0, 1, 5 } } } },
    { { { 1 }, { 12 }, { 10 } } }, { { { 1 }, { 12 }, { 10 } } }, { { { 1 }, { 12 }, { 10 } } })
  computes("are longer by output_padding", [[
      nn.conv1d_transpose(%a, %b, kernel_size=[1], strides=[3], output_padding=[2])]],
    { floats { { { 1, 2 } } }, floats { { { 5 } } } }, { { { 5, 0, 0, 10, 0, 0 } } })
end)

describe("gradients of windows", function()
  local g, x = floats { { { { 1, 2 }, { 3, 4 } } } },
    floats { { { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } } } }
  computes("go to the greatest element, or to all alike", [[
      (nn.max_pool2d_grad(%a, %b, pool_size=[2, 2]), nn.avg_pool2d_grad(%a, %b, pool_size=[2, 2]))
    ]], { g, x }, { { { { 0, 0, 0 }, { 0, 1, 2 }, { 0, 3, 4 } } } },
    { { { { 0.25, 0.75, 0.5 }, { 1, 2.5, 1.5 }, { 0.75, 1.75, 1 } } } })
  computes("of weights are convolutions with the gradient", [[
      nn.conv2d_backward_weight(%a, %b, kernel_size=[2, 2], channels=1)]], { g, x },
    { { { { 37, 47 }, { 67, 77 } } } })
  computes("of grouped weights are those of each group", [[
      nn.conv2d_backward_weight(%a, %b, kernel_size=[1, 1], channels=2, groups=2)]],
    { floats { { { { 1, 2 } }, { { 3, 4 } } } }, floats { { { { 5, 6 } }, { { 7, 8 } } } } },
    { { { { 17 } } }, { { { 53 } } } })
  refuses("of another shape are refused", "nn.max_pool2d_grad(%a, %b, pool_size=[3, 3])", { g, x },
    "'nn.max_pool2d_grad': the gradient does not match the data")
end)

describe("indices along the first axis", function()
  local x = floats { { 1, 2 }, { 3, 4 } }
  computes("gather elements, slices, and per batch", [[
      (gather_nd(%a, %b), gather_nd(%a, %c), gather_nd(%a, %d, batch_dims=1))]],
    { x, ints { { 0, 1, 1 }, { 1, 0, 1 } }, ints { { 1, 0 } }, ints { { 1, 0 } } },
    { 2, 3, 4 }, { { 3, 4 }, { 1, 2 } }, { 2, 3 })
  computes("scatter elements, summed or replaced", [[
      (scatter_nd(%a, %b, %c, mode="add"), scatter_nd(%a, %b, %c))]],
    { x, ints { { 0, 1 }, { 1, 0 } }, floats { 10, 20 } },
    { { 1, 12 }, { 23, 4 } }, { { 1, 10 }, { 20, 4 } })
end)

describe("matrix products", function()
  computes("take transposed operands and a wider dtype", [[
      (nn.matmul(%a, %b, transpose_a=True), nn.matmul(%a, %b, transpose_b=True),
       nn.matmul(%c, %c, transpose_a=True, transpose_b=True, out_dtype="int32"))]],
    { floats { { 1, 2 }, { 3, 4 } }, floats { { 5, 6 }, { 7, 8 } },
      { "int8", { { 100, 2 }, { 3, 100 } } } },
    { { 26, 30 }, { 38, 44 } }, { { 17, 23 }, { 39, 53 } },
    { { 10006, 600 }, { 400, 10006 } })
  computes("take transposed operands of transposes", [[
      (nn.matmul(transpose(%a), transpose(%b), transpose_a=True, transpose_b=True),
       nn.matmul(transpose(%c, axes=[1, 0]), %c, out_dtype="int32"))]],
    { floats { { 1, 2 }, { 3, 4 } }, floats { { 5, 6 }, { 7, 8 } },
      { "int8", { { 100, 2 }, { 3, 100 } } } },
    { { 19, 22 }, { 43, 50 } }, { { 10009, 500 }, { 500, 10004 } })
  refuses("do not transpose vectors", "nn.matmul(%a, %b, transpose_a=True)",
    { floats { 1, 2 }, floats { { 1 }, { 2 } } }, "nn.matmul")
end)

describe("channels behind the image", function()
  local x = floats { { { { 1, 2, 3, 4, 5, 6, 7, 8 } } } }
  computes("become blocks, and blocks channels", [[
      (nn.depth_to_space(%a, block_size=2, layout="NHWC"),
       nn.depth_to_space(%a, block_size=2, layout="NHWC", mode="CRD"),
       nn.space_to_depth(nn.depth_to_space(%a, block_size=2, layout="NHWC"), block_size=2,
                         layout="NHWC"))]], { x },
    { { { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } } } },
    { { { { 1, 5 }, { 2, 6 } }, { { 3, 7 }, { 4, 8 } } } }, x[2])
end)

describe("quantised convolutions", function()
  computes("sum what is left without the zero points", [[
      qnn.conv2d(%a, %b, %c, %d, 1f, 1f, kernel_size=[1, 2], channels=1, padding=[0, 1])]],
    { { "uint8", { { { { 5, 7 } } } } }, { "int8", { { { { 1, 4 } } } } }, ints(3), ints(2) },
    { { { { 4, 6, -4 } } } })
end)

describe("kernels made of others", function()
  it("fold constants", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main() { %0 = (2f, 4f); nn.l2_normalize(stack(%0), eps=0f, axis=[0]) }]])
    assert.equal("Constant", pl.passes.FoldConstant()(mod).main.body.kind)
  end)
end)
