-- Images sampled at computed positions, windows, and gradients of pooling give the same by loops as
-- by the evaluator's kernels.

local pl = require "perilune"
local programs = dofile "spec/topi/programs.lua"

local float, typed = programs.float, programs.typed
local cases, case = programs.cases()

-- -------------------------------------------------------------------- grids

for _, mode in ipairs { "linear", "nearest", "cubic" } do
  for _, padding in ipairs { "zeros", "border", "reflection" } do
    for aligned = 0, 1 do
      local attrs = { mode = mode, padding_mode = padding, align_corners = aligned }
      case("image.grid_sample", { float(2, 3, 5, 4), float(2, 3, 6, 2) }, attrs)
    end
  end
end
case("image.grid_sample", { float(1, 2, 3, 4, 5), float(1, 2, 3, 2, 3) }, { mode = "linear" })
case("image.grid_sample", { float(1, 2, 7), float(1, 4, 1) }, { padding_mode = "border" })
case("image.grid_sample", { float(1, 2, 4, 4), float(1, 9, 9, 2) }, nil, { special = true })
for _, method in ipairs { "bilinear", "nearest", "bicubic" } do
  case("image.grid_sample", { float(2, 3, 5, 4), float(2, 2, 3, 6) }, { relay = 1,
    method = method, layout = "NCHW", padding_mode = "border" })
end
case("image.affine_grid", { float(2, 2, 3) }, { target_shape = { 4, 5 } })
for aligned = 0, 1 do
  case("image.affine_grid", { float(2, 2, 3), typed("int64", 4) }, { align_corners = aligned },
    { constants = { nil, pl.tensor({ 2, 3, 4, 1 }, "int64") } })
  case("image.affine_grid", { float(1, 3, 4), typed("int64", 5) }, { align_corners = aligned },
    { constants = { nil, pl.tensor({ 1, 3, 2, 4, 3 }, "int64") } })
end

-- ------------------------------------------------------------------ regions

local boxes = pl.tensor({ { 0, 0, 1, 1 }, { 0.25, 0.1, 0.8, 0.9 }, { 0.9, 0.8, 0.1, 0.2 },
  { -0.5, 0, 0.5, 1.5 } }, "float32")
for _, method in ipairs { "bilinear", "nearest_neighbor" } do
  for _, size in ipairs { { 3, 4 }, { 1, 5 }, { 7, 7 } } do
    case("image.crop_and_resize", { float(2, 3, 6, 5), float(4, 4), typed("int32", 4) },
      { crop_size = size, method = method, extrapolation_value = 0.75 },
      { constants = { nil, boxes, pl.tensor({ 0, 1, 1, 0 }, "int32") } })
  end
end
case("image.crop_and_resize", { float(2, 6, 5, 3), float(4, 4), typed("int32", 4) },
  { crop_size = { 3, 2 }, layout = "NHWC" },
  { constants = { nil, boxes, pl.tensor({ 0, 1, 1, 0 }, "int32") } })

for _, mode in ipairs { "half_pixel", "align_corners", "asymmetric" } do
  for _, method in ipairs { "nearest_neighbor", "trilinear" } do
    case("nn.upsampling3d", { float(1, 2, 3, 4, 2) }, { scale_d = 2.0, scale_h = 3.0,
      scale_w = 2.0, method = method, coordinate_transformation_mode = mode })
  end
end
case("nn.upsampling3d", { float(1, 3, 4, 2, 2) }, { scale_d = 2.0, scale_h = 1.0, scale_w = 2.0,
  layout = "NDHWC", coordinate_transformation_mode = "asymmetric" })

for _, method in ipairs { "linear", "nearest_neighbor", "cubic" } do
  case("image.resize2d", { float(1, 5, 4, 2) }, { size = { 7, 6 }, layout = "NHWC",
    method = method, coordinate_transformation_mode = "asymmetric", rounding_method = "floor" })
  case("image.resize1d", { float(1, 5, 2) }, { size = { 8 }, layout = "NWC", method = method })
end
case("image.resize3d", { float(1, 2, 3, 4, 2) }, { size = { 4, 4, 3 }, method = "linear",
  coordinate_transformation_mode = "align_corners" })
case("image.resize2d", { float(1, 2, 6, 5) }, { size = { 1, 5 }, out_dtype = "float64" })

-- ------------------------------------------------------------------ windows

case("image.dilation2d", { float(2, 3, 7, 6), float(3, 3, 2) }, { strides = { 1, 2 },
  padding = { 1, 0 } })
case("image.dilation2d", { float(1, 7, 9, 2), float(2, 3, 2) }, { data_layout = "NHWC",
  kernel_layout = "HWI", dilations = { 2, 1 }, padding = { 1, 0, 2, 1 } })
case("nn.correlation", { float(2, 3, 8, 9), float(2, 3, 8, 9) }, { kernel_size = 1,
  max_displacement = 2, padding = { 2, 2 } })
case("nn.correlation", { float(1, 3, 9, 9), float(1, 3, 9, 9) }, { kernel_size = 3,
  max_displacement = 2, stride1 = 2, stride2 = 2, padding = { 3, 3 }, is_multiply = false })
case("nn.deformable_conv2d", { float(1, 4, 6, 5), float(1, 18, 6, 5), float(3, 4, 3, 3) },
  { padding = { 1, 1 }, kernel_size = { 3, 3 }, channels = 3 })
case("nn.deformable_conv2d", { float(2, 4, 7, 6), float(2, 16, 3, 5), float(4, 2, 2, 2) },
  { strides = { 2, 1 }, dilation = { 2, 1 }, groups = 2, deformable_groups = 2,
    kernel_size = { 2, 2 }, channels = 4 })
case("nn.deformable_conv", { float(1, 4, 5, 6), float(2, 4, 3, 3), float(1, 18, 5, 6), float(2),
  float(1, 9, 5, 6) }, { pads = { 1, 1, 1, 1 } })
case("nn.deformable_conv", { float(2, 4, 5, 6), float(4, 2, 2, 2), float(2, 16, 2, 5) },
  { group = 2, offset_group = 2, strides = { 2, 1 } })

-- ---------------------------------------------------------------- gradients

for _, op in ipairs { "nn.max_pool2d_grad", "nn.avg_pool2d_grad" } do
  case(op, { float(2, 3, 3, 4), float(2, 3, 6, 8) }, { pool_size = { 2, 2 },
    strides = { 2, 2 } })
  case(op, { float(1, 2, 5, 4), float(1, 2, 5, 7) }, { pool_size = { 3, 3 },
    strides = { 1, 2 }, padding = { 1, 1 } })
  case(op, { float(1, 3, 3, 2), float(1, 7, 6, 2) }, { pool_size = { 3, 2 }, layout = "NHWC",
    strides = { 2, 2 } })
end
case("nn.avg_pool2d_grad", { float(1, 2, 5, 4), float(1, 2, 5, 7) }, { pool_size = { 3, 3 },
  strides = { 1, 2 }, padding = { 1, 1 }, count_include_pad = true })
case("nn.max_pool2d_grad", { float(1, 2, 3, 3), typed("float32", 1, 2, 5, 5) },
  { pool_size = { 3, 3 } }, { constants = { nil, pl.tensor.full(1, { 1, 2, 5, 5 }, "float32") } })

describe("computes of sampled images and windows", function()
  programs.each(cases, function(name, agrees)
    it(name, function() assert.is_true(agrees()) end)
  end)
end)
