-- Which operators take a relu behind them into their kernel, as TVM registers
-- them: those that compute sums or elements of their own, and not those that are
-- opaque or compute nothing.

local pl = require "perilune"

-- How many kernels the body becomes.
local function kernels(params, body)
  local mod = assert(pl.parse(("#[version = \"0.0.5\"]\ndef @main(%s) {\n  nn.relu(%s)\n}\n")
    :format(params, body)))
  local fused = pl.passes.FuseOps { fuse_opt_level = 3 }(pl.passes.InferType()(mod))
  return select(2, tostring(fused):gsub("Primitive=1", ""))
end

local image, blocks = "%x: Tensor[(1, 8, 12, 12), float32]", "%w: Tensor[(6, 6, 16, 8), float32]"

describe("a relu is fused", function()
  for name, body in pairs {
    ["nn.contrib_conv2d_winograd_without_weight_transform"] =
      "(%x, %w, tile_size=4, channels=16, kernel_size=[3, 3])",
    ["nn.contrib_conv2d_gemm_without_weight_transform"] =
      "(%x, %w, channels=16, kernel_size=[3, 3])",
    ["nn.contrib_conv2d_winograd_weight_transform"] = "(%x, tile_size=4)",
    ["nn.contrib_conv2d_gemm_weight_transform"] = "(%x, tile_N=4, tile_K=4)",
    ["nn.correlation"] = "(%x, %x)",
    ["vision.roi_pool"] = "(%x, %r, pooled_size=[2, 2], spatial_scale=1f)",
  } do
    it("behind " .. name, function()
      assert.equal(1, kernels(image .. ", " .. blocks .. ", %r: Tensor[(3, 5), float32]",
        name .. body))
    end)
  end

  for name, body in pairs {
    ["nn.contrib_conv2d_winograd_nnpack_weight_transform"] = "(%x, convolution_algorithm=0)",
    ["nn.lrn"] = "(%x)",
    ["sliding_window"] = "(%x, axis=2, window_shape=[2, 2], strides=[1, 1])",
  } do
    it("never behind " .. name, function() assert.equal(2, kernels(image, name .. body)) end)
  end
end)
