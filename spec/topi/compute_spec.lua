-- Each operator that has a compute gives the same by loops as by the evaluator's kernel, on random
-- tensors of a seed that is printed when it fails.

local pl = require "perilune"
local programs = dofile "spec/topi/programs.lua"

local float, typed = programs.float, programs.typed
local cases, case = programs.cases()

-- ------------------------------------------------------------- element-wise

for _, op in ipairs {
  "exp", "tanh", "sigmoid", "erf", "sin", "cos", "tan", "atan", "sinh", "cosh", "asinh", "floor",
  "ceil", "trunc", "abs", "negative", "sign", "copy", "isnan", "isfinite", "isinf", "round",
  "nn.relu", "nn.elu", "nn.celu", "nn.selu", "nn.gelu", "nn.hard_sigmoid", "nn.hard_swish",
  "nn.mish", "nn.softplus", "nn.softsign", "nn.silu", "nn.thresholded_relu", "nn.shrink",
  "nn.leaky_relu",
} do
  -- No number and the infinities too, where the definition of the operator covers them.
  case(op, { float(3, 17) }, nil, { special = not (op == "sin" or op == "cos" or op == "tan"
    or op == "sinh" or op == "cosh" or op:find "^nn" ~= nil and op ~= "nn.relu"
    and op ~= "nn.leaky_relu") })
end
for _, op in ipairs { "log", "log2", "log10", "sqrt", "rsqrt", "reciprocal" } do
  case(op, { float(5, 4) }, nil, { positive = true })
end
case("acosh", { float(7) }, nil, { positive = true, shift = true })
case("round", { float(4, 16) }, { relay = 1 }, { special = true })
case("nn.gelu", { float(2, 9) }, { approximate = "tanh" })
case("nn.leaky_relu", { float(8) }, { alpha = 0.3 }, { special = true })
case("clip", { float(3, 8) }, { a_min = -0.5, a_max = 0.75 }, { special = true })
case("clip", { float(6) }, { a_max = 0.25 })
for _, dtype in ipairs { "int8", "int32", "int64" } do
  case("abs", { typed(dtype, 3, 5) })
  case("negative", { typed(dtype, 9) })
  case("add", { typed(dtype, 3, 5), typed(dtype, 5) })
end
for _, to in ipairs { "float32", "int32", "int64", "bool", "float64" } do
  case("cast", { typed("int64", 4, 3) }, { dtype = to })
end
case("cast", { float(5, 3) }, { dtype = "int32" })
case("cast", { float(5, 3) }, { dtype = "float64" })
case("logical_not", { typed("bool", 7) })

-- ---------------------------------------------------------------- broadcast

for _, op in ipairs { "add", "subtract", "multiply", "divide", "maximum", "minimum" } do
  case(op, { float(2, 3, 8), float(3, 1) }, nil, { special = true })
  case(op, { float(4), float(3, 1, 4) })
end
for _, op in ipairs { "equal", "not_equal", "greater", "greater_equal", "less", "less_equal" } do
  case(op, { float(3, 16), float(1, 16) }, nil, { special = true })
  case(op, { typed("int64", 3, 4), typed("int64", 3, 1) })
end
for _, op in ipairs { "logical_and", "logical_or", "logical_xor" } do
  case(op, { typed("bool", 3, 4), typed("bool", 4) })
end
for _, op in ipairs { "bitwise_and", "bitwise_or", "bitwise_xor" } do
  case(op, { typed("int32", 3, 4), typed("int32", 4) })
end
case("power", { float(3, 4), float(4) }, nil, { positive = true })
case("mod", { float(9), float(9) }, { fmod = 1 }, { positive = true })
for _, op in ipairs { "floor_divide", "floor_mod", "trunc_divide", "trunc_mod", "mod" } do
  case(op, { typed("int32", 11), typed("int32", 11) }, nil, { low = 1 })
end
case("maximum", { float(3, 4), float(4), float(1) }, nil, { special = true })
case("add_n", { float(3, 4), float(4), float(3, 1) })
case("where", { typed("bool", 3, 1), float(3, 4), float(4) }, nil, { special = true })
case("nn.bias_add", { float(2, 3, 4, 5), float(3) }, { axis = 1 })
case("nn.bias_add", { float(2, 3, 4), float(4) }, { axis = -1 })
case("nn.prelu", { float(2, 3, 5), float(3) }, { axis = 1 })
case("broadcast_to", { float(3, 1) }, { shape = { 2, 3, 4 } })
case("zeros_like", { float(3, 2) })
case("ones_like", { float(3, 2) })

-- --------------------------------------------------------------- reductions

for _, op in ipairs {
  "sum", "mean", "max", "min", "prod", "reduce_l1", "reduce_l2", "reduce_sum_square", "logsumexp",
} do
  case(op, { float(3, 4, 5) }, { axes = { 1 } })
  case(op, { float(3, 4, 5) }, { axes = { 0, -1 }, keepdims = 0 })
  case(op, { float(2, 7) }, { keepdims = 0 })
end
for _, op in ipairs { "max", "min" } do
  case(op, { float(6, 9) }, { axes = { 1 } }, { special = true })
  case(op, { typed("int32", 3, 9) }, { axes = { 0 } })
end
case("sum", { typed("int64", 3, 9) }, { axes = { 1 }, keepdims = 0 })
for _, op in ipairs { "argmax", "argmin" } do
  case(op, { float(4, 11) }, { axis = 1 })
  case(op, { typed("int32", 4, 11) }, { axis = 1, keepdims = 0 })
  case(op, { typed("int32", 4, 11) }, { axis = 0, select_last_index = 1 })
  case(op, { float(5, 9) }, { axis = -1, keepdims = 0 }, { special = true })
  case(op, { float(5, 9) }, { axis = 0, select_last_index = 1 }, { special = true })
end

-- ------------------------------------------------------------------- movers

case("reshape", { float(3, 4) }, { newshape = { 2, -1, 2 } })
case("flatten", { float(2, 3, 4) }, { axis = 2 })
case("squeeze", { float(1, 3, 1, 4) }, { axes = { 0 } })
case("transpose", { float(2, 3, 4) }, { axes = { 2, 0, 1 } })
case("transpose", { float(2, 3, 16) })
case("concatenate", { float(2, 3), float(2, 1), float(2, 5) }, { axis = 1 })
case("concatenate", { float(2, 3), float(1, 3) }, { axis = 0 })
case("stack", { float(2, 3), float(2, 3) }, { axis = 1 })
case("shape_of", { float(2, 3, 7) })
case("shape_of", { float(2, 3, 7, 5) }, { start = 1, ["end"] = -1 })
case("constant_of_shape", { typed("int64", 2) }, { value = pl.tensor({ 2.5 }, "float32") },
  { constants = { pl.tensor({ 2, 3 }, "int64") } })
case("one_hot", { typed("int64", 3, 2), float(), float() }, { depth = 5, axis = 1,
  dtype = "float32" })
case("layout_transform", { float(1, 8, 3, 2) }, { src_layout = "NCHW", dst_layout = "NCHW4c" })
case("layout_transform", { float(1, 8, 3, 2) }, { src_layout = "NCHW", dst_layout = "NHWC" })
case("tile", { float(2, 3) }, { reps = { 2, 3 } })
case("repeat", { float(2, 3) }, { repeats = 3, axis = 1 })
case("reverse", { float(2, 5) }, { axis = 1 })
case("strided_slice", { float(5, 8) }, { starts = { 1, -1 }, ends = { 4, -7 },
  strides = { 1, -2 } })
case("strided_slice", { float(5, 8) }, { starts = { 2 }, ends = { 100 }, axes = { 1 } })
case("strided_slice", { float(5, 8), typed("int64", 1), typed("int64", 1), typed("int64", 1) },
  nil, { constants = { nil, pl.tensor({ 2 }, "int64"), pl.tensor({ 7 }, "int64"),
    pl.tensor({ 1 }, "int64") } })
case("take", { float(5, 3), typed("int64", 2, 2) }, { axis = 0 }, { low = -5, high = 5 })
case("take", { float(2, 4, 3), typed("int32", 3) }, { axis = 1, mode = "clip" })
case("take", { float(2, 4, 3), typed("int32", 3) }, { axis = 2, mode = "wrap" })
case("gather", { float(4, 3), typed("int64", 2, 3) }, { axis = 0 }, { low = -4, high = 4 })
case("gather_nd", { float(4, 3, 2), typed("int64", 5, 2) }, nil, { low = -3, high = 3 })
case("nn.pad", { float(2, 3) }, { pad_width = { { 1, 2 }, { 0, 1 } } })
case("nn.pad", { float(4, 5) }, { pads = { 1, 2, 0, 3 }, value = 1.5 })
case("nn.pad", { float(4, 5) }, { pads = { 1, 2, 2, 3 }, pad_mode = "edge" })
case("nn.pad", { float(4, 5) }, { pads = { 1, 2, 2, 3 }, pad_mode = "reflect" })
case("nn.mirror_pad", { float(4, 5) }, { pad_width = { { 1, 2 }, { 0, 3 } },
  mode = "SYMMETRIC" })
case("trilu", { float(2, 4, 5) }, { upper = 0 })
case("trilu", { float(4, 5) })
case("nn.depth_to_space", { float(1, 8, 2, 3) }, { block_size = 2 })
case("nn.depth_to_space", { float(1, 8, 2, 3) }, { block_size = 2, mode = "CRD" })
case("nn.space_to_depth", { float(1, 2, 4, 6) }, { block_size = 2 })
case("nn.space_to_depth", { float(1, 2, 4, 6) }, { block_size = 2, mode = "CRD" })

-- ----------------------------------------------------------------- products

case("nn.matmul", { float(5, 7), float(7, 9) })
case("nn.matmul", { float(2, 3, 8, 16), float(3, 16, 32) })
case("nn.matmul", { float(7), float(7, 4) })
case("nn.matmul", { float(3, 7), float(7) })
case("nn.dense", { float(3, 64), float(10, 64) }, { units = 10 })
case("nn.dense", { float(3, 7), float(5, 7) }, { units = 5 })
case("nn.batch_matmul", { float(2, 4, 48), float(2, 6, 48) }, { transpose_b = 1 })
case("nn.batch_matmul", { float(2, 4, 8), float(2, 8, 6) })
case("nn.gemm", { float(3, 8), float(8, 6), float(6) }, { alpha = 0.5, beta = 2 })
case("nn.gemm", { float(3, 32), float(6, 32), float(3, 1) }, { transB = 1 })

-- ------------------------------------------------------------- convolutions

case("nn.conv", { float(1, 3, 8, 8), float(4, 3, 3, 3) }, { pads = { 1, 1, 1, 1 } })
case("nn.conv", { float(2, 4, 9, 7), float(6, 2, 3, 3), float(6) },
  { group = 2, strides = { 2, 1 }, pads = { 0, 1, 1, 2 } })
case("nn.conv", { float(1, 6, 8, 16), float(6, 1, 3, 3), float(6) },
  { group = 6, pads = { 1, 1, 1, 1 } })
case("nn.conv", { float(1, 3, 9, 9), float(2, 3, 3, 3) },
  { dilations = { 2, 2 }, auto_pad = "SAME_UPPER", strides = { 2, 2 } })
case("nn.conv", { float(2, 3, 16), float(4, 3, 5) }, { strides = { 2 } })
case("nn.conv", { float(1, 2, 4, 5, 6), float(3, 2, 2, 2, 2) })
case("nn.conv", { float(1, 3, 8, 8), float(4, 3, 1, 1) })
case("nn.conv2d", { float(1, 3, 8, 8), float(4, 3, 3, 3) }, { padding = { 1, 1 },
  kernel_size = { 3, 3 }, channels = 4 })
case("nn.conv2d", { float(1, 8, 8, 3), float(3, 3, 3, 4) }, { padding = { 1, 1 },
  kernel_size = { 3, 3 }, channels = 4, data_layout = "NHWC", kernel_layout = "HWIO" })
case("nn.conv1d", { float(1, 3, 12), float(4, 3, 3) }, { padding = { 1, 1 },
  kernel_size = { 3 }, channels = 4, strides = { 2 } })
case("nn.conv3d", { float(1, 2, 4, 4, 4), float(3, 2, 2, 2, 2) }, { kernel_size = { 2, 2, 2 },
  channels = 3, padding = { 1, 0, 1 } })
case("nn.conv_transpose", { float(1, 3, 5, 4), float(3, 2, 3, 3), float(2) },
  { strides = { 2, 2 }, pads = { 1, 1, 1, 1 }, output_padding = { 1, 1 } })
case("nn.conv_transpose", { float(1, 4, 5), float(4, 2, 3) }, { group = 2 })
case("nn.conv2d_transpose", { float(1, 3, 5, 4), float(3, 2, 3, 3) },
  { strides = { 2, 2 }, padding = { 1, 1 }, kernel_size = { 3, 3 }, channels = 2 })

-- With constant weights, which are packed.
local function constant(shape, seed)
  return pl.tensor.random(shape, "float32", { seed = seed, low = -1, high = 1 })
end
case("nn.conv", { float(2, 3, 9, 8), float(16, 3, 3, 3), float(16) },
  { pads = { 1, 1, 1, 1 }, strides = { 2, 1 } },
  { constants = { nil, constant({ 16, 3, 3, 3 }, 1), constant({ 16 }, 2) } })
case("nn.conv", { float(1, 8, 7, 7), float(40, 8, 1, 1) }, nil,
  { constants = { nil, constant({ 40, 8, 1, 1 }, 3) } })
case("nn.dense", { float(3, 12), float(10, 12) }, { units = 10 },
  { constants = { nil, constant({ 10, 12 }, 4) } })
case("nn.gemm", { float(3, 32), float(6, 32), float(6) }, { transB = 1 },
  { constants = { nil, constant({ 6, 32 }, 5), constant({ 6 }, 6) } })

-- ------------------------------------------------------------------ pooling

case("nn.max_pool", { float(1, 3, 9, 9) }, { kernel_shape = { 3, 3 }, strides = { 2, 2 },
  pads = { 1, 1, 1, 1 } })
case("nn.max_pool", { float(1, 2, 8, 7) }, { kernel_shape = { 3, 2 }, strides = { 2, 2 },
  ceil_mode = 1 }, { special = true })
case("nn.max_pool", { float(1, 2, 10) }, { kernel_shape = { 3 }, dilations = { 2 } })
case("nn.avg_pool", { float(1, 3, 9, 9) }, { kernel_shape = { 3, 3 }, strides = { 2, 2 },
  pads = { 1, 1, 1, 1 } })
case("nn.avg_pool", { float(1, 3, 8, 8) }, { kernel_shape = { 3, 3 }, strides = { 2, 2 },
  pads = { 1, 1, 1, 1 }, count_include_pad = 1, ceil_mode = 1 })
case("nn.max_pool2d", { float(1, 3, 8, 8) }, { pool_size = { 2, 2 }, strides = { 2, 2 } })
case("nn.avg_pool2d", { float(1, 8, 8, 3) }, { pool_size = { 2, 2 }, strides = { 2, 2 },
  layout = "NHWC", padding = { 1, 1 } })
case("nn.adaptive_avg_pool2d", { float(1, 3, 8, 6) }, { output_size = { 2, 3 } })
case("nn.adaptive_max_pool2d", { float(1, 3, 8, 6) }, { output_size = { 4, 1 } })
case("nn.upsampling", { float(1, 2, 3, 4) }, { scale_h = 2, scale_w = 3 })
case("nn.upsampling", { float(1, 2, 3, 4) }, { scale_h = 2, scale_w = 2, method = "bilinear" })
case("variance", { float(3, 8), float(3, 1) }, { axis = { 1 } })
case("nn.global_avg_pool", { float(2, 3, 5, 4) })
case("nn.global_max_pool", { float(2, 3, 5, 4) })
case("nn.global_avg_pool2d", { float(2, 3, 5, 4) })

case("nn.avg_pool2d", { float(1, 2, 6, 8) }, { pool_size = { 3, 3 }, strides = { 2, 2 },
  ceil_mode = true, count_include_pad = true })
for _, counts in ipairs { true, false } do
  case("nn.avg_pool2d", { float(1, 2, 6, 7) }, { pool_size = { 3, 2 }, strides = { 2, 2 },
    ceil_mode = true, count_include_pad = counts, padding = { 1, 0, 0, 1 } })
  case("nn.avg_pool", { float(1, 2, 6, 7) }, { kernel_shape = { 3, 2 }, strides = { 2, 2 },
    ceil_mode = 1, count_include_pad = counts and 1 or 0, pads = { 1, 0, 0, 1 } })
  case("nn.avg_pool", { float(1, 2, 9, 7) }, { kernel_shape = { 3, 2 }, dilations = { 2, 3 },
    count_include_pad = counts and 1 or 0 })
end
case("nn.avg_pool2d", { float(1, 2, 9, 7) }, { pool_size = { 3, 2 }, dilation = { 2, 3 } })
-- ------------------------------------------------------------ softmax, norms

case("nn.softmax", { float(3, 16) })
case("nn.softmax", { float(3, 4, 5) }, { axis = 1 })
case("nn.softmax", { float(3, 4, 5) }, { axis = 1, coerce_2d = 1 })
case("nn.log_softmax", { float(3, 10) })
case("nn.layer_norm", { float(2, 3, 32), float(32), float(32) })
case("nn.layer_norm", { float(2, 4, 6), float(4, 6), float(4, 6) }, { axis = 1 })
case("nn.rms_norm", { float(3, 12), float(12) })
case("nn.instance_norm", { float(2, 3, 4, 5), float(3), float(3) })
case("nn.group_norm", { float(2, 6, 4, 5), float(6), float(6) }, { num_groups = 3 })
case("nn.batch_norm", { float(2, 3, 4, 5), float(3), float(3), float(3), float(3) }, nil,
  { positive = true })
case("nn.l2_normalize", { float(3, 8) }, { eps = 1e-6, axis = { 1 } })
case("nn.lrn", { float(1, 8, 3, 4) }, { size = 5 })
case("image.resize2d", { float(1, 2, 4, 5) }, { size = { 8, 10 }, method = "linear",
  coordinate_transformation_mode = "half_pixel" })
case("image.resize2d", { float(1, 2, 4, 5) }, { size = { 7, 3 }, method = "nearest_neighbor",
  coordinate_transformation_mode = "asymmetric", rounding_method = "floor" })
case("image.resize2d", { float(1, 2, 4, 5) }, { size = { 7, 9 }, method = "linear",
  coordinate_transformation_mode = "align_corners" })

for _, mode in ipairs { "half_pixel", "align_corners", "asymmetric" } do
  for _, method in ipairs { "linear", "nearest_neighbor" } do
    local attrs = { size = { 9 }, method = method, coordinate_transformation_mode = mode }
    case("image.resize1d", { float(2, 3, 5) }, attrs)
    case("image.resize3d", { float(1, 2, 3, 4, 5) }, { size = { 6, 3, 7 }, method = method,
      coordinate_transformation_mode = mode })
  end
end
case("image.resize1d", { float(2, 3, 5) }, { size = { 9 }, method = "cubic" })
case("image.resize2d", { float(1, 2, 4, 5) }, { size = { 7, 9 }, method = "cubic" })

-- ------------------------------------------------------------ quantisation

for _, dtype in ipairs { "uint8", "int8", "uint16", "int16" } do
  case("quantize_linear", { float(3, 7), float(), typed(dtype) }, nil, { positive = true })
  case("dequantize_linear", { typed(dtype, 3, 7), float(), typed(dtype) })
end
case("quantize_linear", { float(3, 7), float(3), typed("int8", 3) }, { axis = 0 },
  { positive = true })
case("quantize_linear", { float(2, 40), float(1) }, { axis = 0 }, { constants = { nil,
  pl.tensor({ 0.003 }, "float32") } })
case("quantize_linear", { float(2, 6), float(2, 3) }, { axis = 1, block_size = 2 },
  { positive = true })
case("dequantize_linear", { typed("int32", 3, 4), float(4) }, { axis = -1 })
case("dequantize_linear", { typed("int8", 5, 4), float(3, 4), typed("int8", 3, 4) },
  { axis = 0, block_size = 2 })
case("dynamic_quantize_linear", { float(3, 20) })
case("dynamic_quantize_linear", { float(9) }, nil, { positive = true })
case("matmul_integer", { typed("uint8", 4, 9), typed("int8", 9, 5), typed("uint8"),
  typed("int8", 5) })
case("matmul_integer", { typed("int8", 2, 4, 9), typed("int8", 9, 5), typed("int8", 4) })
case("matmul_integer", { typed("uint8", 9), typed("uint8", 9, 5), typed("uint8", 1) })
case("conv_integer", { typed("uint8", 1, 3, 6, 6), typed("int8", 4, 3, 3, 3), typed("uint8"),
  typed("int8", 4) }, { pads = { 1, 1, 1, 1 }, strides = { 2, 2 } })
case("conv_integer", { typed("int8", 1, 4, 9), typed("int8", 4, 2, 3) }, { group = 2 })

for _, dtype in ipairs { "uint8", "int8" } do
  case("qlinear_matmul", { typed(dtype, 3, 4, 9), float(), typed(dtype), typed("int8", 9, 5),
    float(5), typed("int8", 5), float(), typed(dtype) }, nil, { positive = true })
  case("qlinear_conv", { typed(dtype, 1, 3, 6, 5), float(), typed(dtype), typed("int8", 4, 3, 3, 3),
    float(4), typed("int8", 4), float(), typed(dtype), typed("int32", 4) },
    { pads = { 1, 1, 1, 1 } }, { positive = true })
end

for _, shift in ipairs { -7, 0, 2 } do
  case("fixed_point_multiply", { typed("int32", 4, 9) }, { multiplier = 1717986854, shift = shift },
    { low = -1000, high = 1000 })
end
case("fixed_point_multiply_per_axis", { typed("int32", 3, 5), typed("int32", 3),
  typed("int32", 3), typed("int32", 3) }, { axes = { 0 } }, { low = 0, high = 9 })
for _, to in ipairs { "int8", "int16" } do
  case("cast", { float(5, 3) }, { dtype = to })
end
case("cast", { float(5, 3) }, { dtype = "uint8" }, { positive = true })
case("clip", { typed("int32", 5, 3) }, { a_min = -2.0, a_max = 3.5 })
case("clip", { typed("int8", 5, 3) }, { a_min = -1000.0, a_max = 2.0 })

-- --------------------------------------------------------- com.microsoft

case("microsoft.gelu", { float(3, 5) })
case("microsoft.bias_gelu", { float(3, 5), float(5) })
case("microsoft.fast_gelu", { float(3, 5), float(5) })
case("microsoft.fast_gelu", { float(3, 5) })
case("microsoft.quick_gelu", { float(3, 5) })
case("microsoft.fused_matmul", { float(2, 4, 3), float(2, 5, 4) },
  { transA = 1, transB = 1, alpha = 0.5 })
case("microsoft.skip_layer_normalization", { float(2, 3, 8), float(2, 3, 8), float(8), float(8),
  float(8) })
case("microsoft.skip_layer_normalization", { float(2, 3, 8), float(3, 8), float(8) })
case("microsoft.skip_simplified_layer_normalization", { float(2, 3, 8), float(2, 3, 8), float(8) })
case("microsoft.multi_head_attention", { float(2, 3, 8), float(2, 5, 8), float(2, 5, 8),
  float(24) }, { num_heads = 2 })
case("microsoft.multi_head_attention", { float(2, 3, 8), float(2, 3, 8), float(2, 3, 8) },
  { num_heads = 4, unidirectional = 1, scale = 0.3 })
case("microsoft.attention", { float(2, 3, 6), float(6, 24), float(24) }, { num_heads = 2 })

-- ------------------------------------------------- cumulative, recurrent

for _, op in ipairs { "cumsum", "cumprod" } do
  case(op, { float(3, 5, 4) }, { axis = 1 })
  case(op, { float(3, 5) }, { axis = -1, reverse = 1 })
  case(op, { float(4, 3) }, { axis = 0, exclusive = 1 })
  case(op, { typed("int64", 7) }, { axis = 0, exclusive = 1, reverse = 1 })
  case(op, { float(2, 3) })
end

local function recurrent(op, gates, d, batch, attrs, more)
  local t, i, n = 4, 3, attrs.hidden_size or 5
  local first_axes = attrs.layout == 1 and { batch, t } or { t, batch }
  local state = attrs.layout == 1 and float(batch, d, n) or float(d, batch, n)
  local types = { float(first_axes[1], first_axes[2], i), float(d, gates * n, i),
    float(d, gates * n, n), float(d, 2 * gates * n), typed("int32", batch), state }
  if op == "lstm" then types[7], types[8] = state, float(d, 3 * n) end
  for k = (more or 3) + 1, 8 do types[k] = nil end
  attrs.hidden_size = n
  case(op, types, attrs, { constants = more and more > 4 and { [5] =
    pl.tensor(batch == 1 and { 3 } or { 4, 2 }, "int32") } or nil })
end

for op, gates in pairs { lstm = 4, gru = 3, rnn = 1 } do
  recurrent(op, gates, 1, 1, {})
  recurrent(op, gates, 1, 2, { hidden_size = 16 }, 6)
  recurrent(op, gates, 1, 2, { direction = "reverse" }, 4)
  recurrent(op, gates, 2, 2, { direction = "bidirectional", clip = 0.5 }, 6)
  recurrent(op, gates, 1, 2, { direction = "reverse", layout = 1 }, 6)
end
recurrent("lstm", 4, 2, 2, { direction = "bidirectional", input_forget = 1 }, 8)
recurrent("lstm", 4, 1, 1, { activations = { "HardSigmoid", "ScaledTanh", "Softsign" },
  activation_alpha = { 0.3, 0.7 }, activation_beta = { 0.4, 0.6 } }, 8)
recurrent("gru", 3, 2, 2, { direction = "bidirectional", linear_before_reset = 1 }, 6)
recurrent("gru", 3, 1, 2, { linear_before_reset = 1, activations = { "Relu", "LeakyRelu" } }, 4)

-- ------------------------------------------------------------------ sorting

for _, n in ipairs { 1, 2, 7, 16, 37 } do
  case("argsort", { float(2, n) }, { dtype = "int64" }, { special = true })
  case("sort", { typed("int32", n, 3) }, { axis = 0, is_ascend = 0 })
end
case("argsort", { typed("int32", 4, 9, 2) }, { axis = 1, is_ascend = 0 })
case("sort", { float(20) }, nil, { special = true })
case("topk", { float(3, 20) }, { k = 5 }, { special = true })
case("topk", { typed("int64", 20, 3) }, { k = 4, axis = 0, largest = 0 })
case("topk", { typed("int32", 20) }, { k = 6, is_ascend = 1, dtype = "int32" })
case("topk", { typed("int32", 20) }, { k = 6, ret_type = "indices", dtype = "int32" })

-- ------------------------------------------------------ scatter, attention

for _, reduction in ipairs { "none", "add", "mul", "min", "max" } do
  case("scatter_elements", { float(4, 5), typed("int64", 2, 3), float(2, 3) },
    { axis = 1, reduction = reduction }, { low = -4, high = 5 })
  case("scatter_nd", { float(6, 5, 2), typed("int64", 4, 2), float(4, 2) },
    { reduction = reduction }, { low = -5, high = 5 })
end
case("scatter", { float(3, 4), typed("int32", 3, 2), float(3, 2) }, nil, { low = 0, high = 3 })

case("attention", { float(2, 3, 4, 8), float(2, 3, 6, 8), float(2, 3, 6, 8) })
case("attention", { float(2, 4, 24), float(2, 6, 12), float(2, 6, 6) },
  { q_num_heads = 4, kv_num_heads = 2, is_causal = 1, softcap = 0.75 })
case("attention", { float(1, 2, 4, 8), float(1, 2, 6, 8), float(1, 2, 6, 5), float(4, 6) },
  { scale = 0.25 })
case("attention", { float(1, 2, 4, 8), float(1, 2, 6, 8), float(1, 2, 6, 8),
  typed("bool", 1, 2, 4, 6) }, { left_window_size = 2, right_window_size = 1 })

case("ml.array_feature_extractor", { float(3, 5), typed("int64", 4) }, nil, { low = 0, high = 5 })
case("ml.array_feature_extractor", { typed("int64", 5), typed("int64", 1) }, nil,
  { low = 0, high = 5 })

-- ---------------------------------------------------------------- einsum

for equation, types in pairs {
  ["ij,jk->ik"] = { float(3, 4), float(4, 5) },
  ["bqhd, bkhd -> bhqk"] = { float(2, 3, 2, 4), float(2, 5, 2, 4) },
  ["ij,jk"] = { float(3, 4), float(4, 5) },
  ["ii->i"] = { float(4, 4) },
  ["ii"] = { float(4, 4) },
  ["...ij,...jk->...ik"] = { float(2, 1, 3, 4), float(5, 4, 2) },
  ["...ij"] = { float(2, 3, 4) },
  ["i,j,k->kij"] = { float(2), float(3), float(4) },
  ["i...->..."] = { float(3, 2, 4) },
  ["ij->"] = { float(3, 5) },
  ["ba,a->b"] = { typed("int64", 3, 4), typed("int64", 4) },
} do
  case("einsum", types, { equation = equation })
end

-- ------------------------------------------------- limits, masks as operands

case("clip", { float(3, 5), float(), float() })
case("clip", { float(3, 5), float(), float() }, nil, { constants = { nil,
  pl.tensor(-0.25, "float32"), pl.tensor(0.5, "float32") } })
case("nn.dropout", { float(3, 5) })
case("nn.dropout", { float(3, 5) }, { mask = 0 })

for _, mode in ipairs { "half_pixel", "align_corners", "asymmetric" } do
  local axes = { axes = { 2, 3 }, mode = "cubic", coordinate_transformation_mode = mode }
  case("image.resize", { float(1, 2, 4, 5), float(1), float(1), typed("int64", 2) }, axes,
    { constants = { nil, pl.tensor({}, "float32"), pl.tensor({}, "float32"),
      pl.tensor({ 8, 15 }, "int64") } })
end
case("image.resize", { float(1, 2, 4, 4), float(1), float(1), typed("int64", 4) },
  { mode = "cubic", cubic_coeff_a = -0.5 }, { constants = { nil, pl.tensor({}, "float32"),
    pl.tensor({}, "float32"), pl.tensor({ 1, 2, 8, 8 }, "int64") } })

-- ------------------------------------------- sequences, grids, coordinates

case("sequence_mask", { float(4, 3, 2), typed("int32", 3) }, { mask_value = -1.5, axis = 0 })
case("sequence_mask", { float(3, 5), typed("int64", 3) }, { axis = 1 }, { low = 0, high = 7 })
case("reverse_sequence", { float(4, 3, 2), typed("int64", 3) }, { time_axis = 0, batch_axis = 1 },
  { low = 1, high = 5 })
case("reverse_sequence", { float(3, 5), typed("int64", 3) }, { time_axis = 1, batch_axis = 0 },
  { low = 1, high = 6 })
for _, indexing in ipairs { "ij", "xy" } do
  case("meshgrid", { float(3), float(4), float(2) }, { indexing = indexing },
    { tuple = true })
end
case("sliding_window", { float(2, 7, 9) }, { axis = 1, window_shape = { 3, 4 },
  strides = { 2, 3 } })
case("sliding_window", { float(7, 2) }, { axis = 0, window_shape = { 7, 1 }, strides = { 1, 1 } })
case("nn.dilate", { float(2, 3, 4) }, { strides = { 1, 2, 3 }, dilation_value = 0.5 })
case("nn.space_to_batch_nd", { float(2, 3, 6, 2) }, { block_shape = { 2, 3 },
  paddings = { { 1, 0 }, { 1, 2 } }, pad_value = 0.5 })
case("nn.batch_to_space_nd", { float(12, 2, 3, 2) }, { block_shape = { 2, 3 },
  crops = { { 1, 0 }, { 0, 2 } } })
case("adv_index", { float(4, 5, 3), typed("int64", 2, 1), typed("int64", 3) }, nil,
  { low = 0, high = 4, tuple = true })
case("unravel_index", { typed("int32", 7), typed("int32", 3) }, nil, { low = 0, high = 24,
  constants = { nil, pl.tensor({ 2, 3, 4 }, "int32") } })
case("invert_permutation", { typed("int32", 1) }, nil, { low = 0, high = 1 })
for _, op in ipairs { "left_shift", "right_shift" } do
  case(op, { typed("int32", 4, 5), typed("int32", 5) }, nil, { low = 0, high = 12 })
  case(op, { typed("int8", 40), typed("int8", 40) }, nil, { low = -9, high = 12 })
  case(op, { typed("uint8", 40), typed("uint8", 40) }, nil, { high = 12 })
end

describe("computes of operators", function()
  programs.each(cases, function(name, agrees)
    it(name, function() assert.is_true(agrees()) end)
  end)
end)
