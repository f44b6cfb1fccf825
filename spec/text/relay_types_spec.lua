-- Types of calls of Relay's operators, from text without types: families that no
-- kernel here computes, by their definitions.

local pl = require "perilune"

local function parse(params, body)
  return pl.parse(("#[version = \"0.0.5\"]\ndef @main(%s) { %s }"):format(params, body))
end

-- Types stand for themselves: "(1, 8, ?) int8" is Tensor[(1, 8, ?), int8].
local function types(text)
  return (text:gsub("(%([%d, ?]*%)) (%l+%d+)", "Tensor[%1, %2]"))
end

local function gives(title, params, body, want)
  it(title, function()
    local mod, why = parse(types(params), body)
        local type = tostring((mod or error(why)).main.type)
    assert.equal("-> " .. types(want), type:sub(-#types(want) - 3))
  end)
end

local function refuses(title, params, body, message)
  it(title, function()
    local mod, why = parse(types(params), body)
    assert.is_nil(mod)
    assert.equal(message, (why.message:gsub(": in .*", "")))
    assert.truthy(tostring(why):find "^text:2:%d+: error: ", tostring(why))
  end)
end

describe("weights for one way of convolution are typed", function()
  gives("by Winograd's tiles", "%w: (16, 8, 3, 3) float32",
    "nn.contrib_conv2d_winograd_weight_transform(%w, tile_size=4)", "(6, 6, 16, 8) float32")
  gives("by Winograd's tiles along all of three axes", "%w: (16, 8, 3, 3, 5) float32",
    "nn.contrib_conv3d_winograd_weight_transform(%w, tile_size=4)", "(6, 6, 8, 16, 8) float32")
  gives("by Winograd's tiles along two of three axes", "%w: (16, 8, 2, 3, 5) float32",
    "nn.contrib_conv3d_winograd_weight_transform(%w, tile_size=4)", "(6, 8, 2, 16, 8) float32")
  gives("by nothing where the depth is unknown", "%w: (16, 8, ?, 3, 5) float32",
    "nn.contrib_conv3d_winograd_weight_transform(%w, tile_size=4)", "(?, ?, ?, 16, 8) float32")
  gives("by NNPACK's transforms", "%w: (16, 8, 3, 3) float32", [[
      nn.contrib_conv2d_winograd_nnpack_weight_transform(%w, convolution_algorithm=0,
                                                         out_dtype="float16")]],
    "(16, 8, 8, 8) float16")
  gives("by tiles", "%w: (3, 3, 10, 17) float32",
    "nn.contrib_conv2d_gemm_weight_transform(%w, tile_N=4, tile_K=8)", "(5, 12, 8, 4) float32")
  gives("by transposed tiles of bytes", "%w: (1, 1, 32, 16) int8",
    "nn.contrib_conv2d_gemm_weight_transform(%w, tile_N=4, tile_K=8)", "(4, 4, 4, 8) int8")
  refuses("but none of no size", "%w: (3, 3, 10, 17) float32",
    "nn.contrib_conv2d_gemm_weight_transform(%w, tile_N=0, tile_K=8)",
    "'nn.contrib_conv2d_gemm_weight_transform': tile_N is 0, expected 1 to 32767")
  refuses("but none of another rank", "%w: (3, 3) float32",
    "nn.contrib_conv2d_winograd_weight_transform(%w, tile_size=4)",
    "'nn.contrib_conv2d_winograd_weight_transform', operand 0: expected rank 4, got 2")
end)

describe("convolutions of such weights are typed", function()
  gives("whatever the weight's shape", "%x: (1, 8, 12, ?) float32, %w: (6, 6, 2, 2, 4, 4) float32",
    [[nn.contrib_conv2d_winograd_without_weight_transform(%x, %w, tile_size=4, padding=[1, 1],
        channels=16, kernel_size=[3, 3])]], "(1, 16, 12, ?) float32")
  gives("of three axes", "%x: (1, 8, 5, 12, 12) float32, %w: (6, 6, 6, 16, 8) float32",
    [[nn.contrib_conv3d_winograd_without_weight_transform(%x, %w, tile_size=4,
        channels=16, kernel_size=[3, 3, 3])]], "(1, 16, 3, 10, 10) float32")
  gives("in any layout", "%x: (1, 12, 12, 8) float32, %w: (5, 12, 8, 4) float32",
    [[nn.contrib_conv2d_gemm_without_weight_transform(%x, %w, channels=16, kernel_size=[3, 3],
        data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32")]], "(1, 10, 10, 16) int32")
  gives("in blocks of channels", "%x: (1, 2, 12, 12, 4) float32, %w: (4, 2, 3, 3, 4, 4) float32",
    [[nn.contrib_conv2d_NCHWc(%x, %w, channels=16, kernel_size=[3, 3], data_layout="NCHW4c",
        kernel_layout="OIHW4i4o", out_layout="NCHW8c")]], "(1, 2, 10, 10, 8) float32")
  refuses("only with a window", "%x: (1, 8, 12, 12) float32, %w: (6, 6, 16, 8) float32",
    "nn.contrib_conv2d_winograd_without_weight_transform(%x, %w, tile_size=4, channels=16)",
    "'nn.contrib_conv2d_winograd_without_weight_transform': kernel_size is missing")
  refuses("only with channels", "%x: (1, 8, 12, 12) float32, %w: (6, 6, 16, 8) float32",
    [[nn.contrib_conv2d_winograd_without_weight_transform(%x, %w, tile_size=4,
        kernel_size=[3, 3])]],
    "'nn.contrib_conv2d_winograd_without_weight_transform': channels is missing")
end)

describe("packed bits are typed", function()
  gives("with an axis of bits", "%x: (1, 64, 8, 8) int16",
    "nn.bitpack(%x, bits=2, pack_axis=1, bit_axis=2, pack_type=\"uint32\")",
    "(1, 2, 2, 8, 8) uint32")
  gives("with bits last", "%x: (4, 64) int16",
    "nn.bitpack(%x, bits=3, pack_axis=1, bit_axis=2, pack_type=\"uint8\")", "(4, 8, 3) uint8")
  gives("without an axis of bits", "%x: (4, ?) int16",
    "nn.bitpack(%x, pack_type=\"uint8\")", "(4, ?) uint8")
  refuses("as words of some dtype", "%x: (4, 64) int16", "nn.bitpack(%x)",
    "'nn.bitpack': pack_type is missing")
  refuses("along an axis there is", "%x: (4, 64) int16",
    "nn.bitpack(%x, pack_axis=2, pack_type=\"uint8\")",
    "'nn.bitpack': pack_axis 2 is outside of [0, 2)")
  gives("in products", "%x: (4, 64) int16, %w: (10, 64) int16",
    "nn.bitserial_dense(%x, %w, units=10, out_dtype=\"int32\")", "(4, 10) int32")
  gives("in convolutions of any weight", "%x: (1, 8, 8, 32) uint8, %w: (1, 3, 3, 1, 4, 16) uint8",
    [[nn.bitserial_conv2d(%x, %w, padding=[1, 1], channels=16, data_layout="NHWC",
        kernel_layout="HWIO", out_dtype="int16")]], "(1, 8, 8, 16) int16")
  gives("in windows of three by three where none is said",
    "%x: (1, 32, 8, 8) uint8, %w: (16, 32, 3, 3) uint8",
    "nn.bitserial_conv2d(%x, %w, channels=16, strides=[2, 2])", "(1, 16, 3, 3) uint8")
end)

describe("windows that slide are typed", function()
  gives("of dilations", "%x: (1, 3, 10, ?) float32, %w: (3, 4, 4) float32",
    "image.dilation2d(%x, %w, strides=[2, 2], padding=[1, 1], dilations=[2, 1])",
    "(1, 3, 3, ?) float32")
  gives("of dilations in another layout", "%x: (1, 10, 10, 3) float32, %w: (4, 4, 3) float32",
    [[image.dilation2d(%x, %w, data_layout="NHWC", kernel_layout="HWI", out_dtype="float16")]],
    "(1, 7, 7, 3) float16")
  refuses("of dilations with a kernel", "%x: (1, 3, 10, 10) float32, %w: (3, 3, 4, 4) float32",
    "image.dilation2d(%x, %w)", "'image.dilation2d', operand 1: expected rank 3, got 4")
  gives("of correlations", "%a: (2, 3, 10, 12) float32, %b: (2, 3, 10, 12) float32",
    "nn.correlation(%a, %b, kernel_size=3, max_displacement=4, stride2=2, padding=[4, 4])",
    "(2, 25, 8, 10) float32")
  gives("of correlations in steps", "%a: (2, 3, 10, 12) float32, %b: (2, 3, 10, 12) float32",
    "nn.correlation(%a, %b, stride1=3)", "(2, 9, 3, 4) float32")
  refuses("of correlations that fit", "%a: (2, 3, 4, 4) float32, %b: (2, 3, 4, 4) float32",
    "nn.correlation(%a, %b, kernel_size=9)",
    "'nn.correlation': the window is larger than axis H")
  refuses("of correlations by steps", "%a: (2, 3, 4, 4) float32, %b: (2, 3, 4, 4) float32",
    "nn.correlation(%a, %b, stride2=0)", "'nn.correlation': stride2 is 0")
end)

describe("boxes are typed", function()
  local boxes = "%b: (2, 10, 4) float32, %s: (2, 3, 10) float32, %m: int64, %i: float32, " ..
    "%t: float32"
  gives("of every class, as ONNX counts them", boxes,
    "vision.all_class_non_max_suppression(%b, %s, %m, %i, %t)", "((60, 3) int64, (1) int64)")
  gives("of every class, image by image", boxes,
    [[vision.all_class_non_max_suppression(%b, %s, %m, %i, %t, output_format="tensorflow")]],
    "((2, 30, 2) int64, (2, 30) float32, (2) int64)")
  gives("whose number is unknown", (boxes:gsub("%(2, 10, 4%)", "(2, ?, 4)")),
    "vision.all_class_non_max_suppression(%b, %s, %m, %i, %t)", "((?, 3) int64, (1) int64)")
  refuses("of three axes", (boxes:gsub("%(2, 10, 4%)", "(10, 4)")),
    "vision.all_class_non_max_suppression(%b, %s, %m, %i, %t)",
    "'vision.all_class_non_max_suppression', operand 0: expected rank 3, got 2")
  gives("of each image as many", "%b: (2, 10, 4) float32, %s: (2, 10, 3) float32",
    [[vision.regular_non_max_suppression(%b, %s, max_detections_per_class=5, max_detections=7,
        num_classes=2, iou_threshold=0.5f, score_threshold=0.1f)]],
    "((2, 7, 4) float32, (2, 7) float32, (2, 7) float32, (2) int32)")
  gives("of regions that are proposed",
    "%p: (2, 18, 5, 5) float32, %o: (2, 36, 5, 5) float32, %s: (2, 3) float32",
    "vision.proposal(%p, %o, %s, rpn_post_nms_top_n=50)", "(100, 5) float32")
  refuses("of regions of images of three sizes",
    "%p: (2, 18, 5, 5) float32, %o: (2, 36, 5, 5) float32, %s: (2, 4) float32",
    "vision.proposal(%p, %o, %s)", "'vision.proposal', operand 2: expected extent 3, got 4")
end)

describe("tensors of several tensors are typed", function()
  gives("as grids", "%a: (3) float32, %b: (4) float32, %c: float32",
    "meshgrid((%a, %b, %c))",
    "((3, 4, 1) float32, (3, 4, 1) float32, (3, 4, 1) float32)")
  gives("as grids of columns and rows", "%a: (3) float32, %b: (4) float32",
    "meshgrid((%a, %b), indexing=\"xy\").1", "(4, 3) float32")
  gives("as grids of a tuple's fields", "%t: ((3) int8, (4) int8)", "meshgrid(%t).0", "(3, 4) int8")
  refuses("as grids of lists only", "%a: (3) float32, %b: (4, 4) float32", "meshgrid((%a, %b))",
    "'meshgrid', operand 1: expected rank 1 or less, got 2")
  refuses("as grids of one dtype", "%a: (3) float32, %b: (4) int8", "meshgrid((%a, %b))",
    "'meshgrid', operand 1: expected float32, got int8")
  gives("joined, of quantised elements",
    "%a: (1, 3) int8, %b: (1, 4) int8, %s: float32, %z: int32",
    "qnn.concatenate((%a, %b), (%s, %s), (%z, %z), %s, %z, axis=1)", "(1, 7) int8")
  refuses("joined, when they fit",
    "%a: (1, 3) int8, %b: (2, 4) int8, %s: float32, %z: int32",
    "qnn.concatenate((%a, %b), (%s, %s), (%z, %z), %s, %z, axis=1)",
    "'qnn.concatenate', operand 1: expected extent 1, got 2")
end)

describe("images of dynamic sizes are typed", function()
  gives("where their layout says what stays",
    "%x: (1, 3, 8, 8) float32, %s: (2) int64, %r: (4) float32",
    "dyn.image.resize2d(%x, %s, %r)", "(1, 3, ?, ?) float32")
  gives("with channels last", "%x: (1, 8, 8, 3) float32, %s: (2) int64, %r: (4) float32",
    'dyn.image.resize2d(%x, %s, %r, layout="NHWC")', "(1, ?, ?, 3) float32")
  gives("by factors", "%x: (1, 3, 8, 8) float32, %h: float32",
    "dyn.nn.upsampling(%x, %h, %h)", "(1, 3, ?, ?) float32")
  gives("by factors, of volumes", "%x: (1, 3, 8, 8, 8) float32, %h: float32",
    "dyn.nn.upsampling3d(%x, %h, %h, %h)", "(1, 3, ?, ?, ?) float32")
  gives("in regions, with channels last", "%x: (1, 8, 8, 3) float32, %r: (4, 5) float32",
    'vision.roi_align(%x, %r, pooled_size=[2, 5], spatial_scale=1f, layout="NHWC")',
    "(4, 2, 5, 3) float32")
  refuses("in regions of a known layout", "%x: (1, 8, 8, 3) float32, %r: (4, 5) float32",
    'vision.roi_align(%x, %r, pooled_size=[2, 5], spatial_scale=1f, layout="HWCN")',
    "'vision.roi_align': layout 'HWCN' is neither NCHW nor NHWC")
end)

describe("transposed axes", function()
  gives("may count from the end", "%x: (2, 3, 4) float32", "transpose(%x, axes=[-1, 0, 1])",
    "(4, 2, 3) float32")
  refuses("are a permutation", "%x: (2, 3, 4) float32", "transpose(%x, axes=[-4, 0, 1])",
    "'transpose': axes is not a permutation of 3 axes")
end)

describe("layouts with inner parts of inner parts", function()
  gives("are packed", "%x: (128, 3, 3, 32) int8", [[
      layout_transform(%x, src_layout="OHWI", dst_layout="OHWI16i64o2i")]],
    "(2, 3, 3, 1, 16, 64, 2) int8")
  gives("are kernels", "%x: (1, 8, 8, 32) int8, %w: (2, 3, 3, 1, 16, 64, 2) int8", [[
      nn.conv2d(%x, %w, data_layout="NHWC", kernel_layout="OHWI16i64o2i", channels=128,
        kernel_size=[3, 3], out_dtype="int32")]], "(1, 6, 6, 128) int32")
end)

describe("layouts that schedules make are typed", function()
  gives("by the numbers in them", "%x: (1, 32, 8, 8) float32", [[
      auto_scheduler_layout_transform(%x, src_layout="NCHW", dst_layout="1N4C8h8w8c")]],
    "(1, 4, 8, 8, 8) float32")
  refuses("by letters and numbers only", "%x: (1, 32, 8, 8) float32", [[
      auto_scheduler_layout_transform(%x, src_layout="NCHW", dst_layout="1N-2C")]],
    "'auto_scheduler_layout_transform': dst_layout '1N-2C' is not a layout")
end)

describe("products with packed and sparse weights are typed", function()
  gives("of quantised elements",
    "%x: (4, 64) uint8, %w: (2, 64, 16) int8, %s: float32, %z: int32", [[
      qnn.contrib_dense_pack(%x, %w, %z, %z, %s, %s, units=32, weight_layout="NC16n")]],
    "(4, 32) int32")
  local sparse = "%x: (1, 8, 8, 16) float32, %v: (10, 4, 1) float32, %c: (10) int32, %b: (9) int32"
  gives("of images", sparse, "nn.sparse_conv2d(%x, %v, %c, %b)", "(1, 8, 8, 32) float32")
  gives("of images with channels first", sparse,
    "nn.sparse_conv2d(%x, %v, %c, %b, layout=\"NCHW\")", "(1, 32, 8, 16) float32")
  refuses("of images in two layouts", sparse,
    "nn.sparse_conv2d(%x, %v, %c, %b, layout=\"CHWN\")",
    "'nn.sparse_conv2d': layout is neither NHWC nor NCHW")
end)

describe("memory and keys are typed", function()
  gives("of draws of classes", "%p: (2, 5) float32, %k: (10) uint64",
    "random.multinomial(%k, %p, num_samples=3)", "((10) uint64, (2, 3) int32)")
  it("by what is drawn with them", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
def @main(%k, %low, %high) {
  random.uniform(%k, %low, %high, out_shape=[2, 3], out_dtype="float64")
}
]])
    mod = pl.passes.InferType()(mod)
    assert.equal(types "fn ((10) uint64, float64, float64) -> ((10) uint64, (2, 3) float64)",
      tostring(mod.main.type))
  end)
  refuses("of floats only", "%k: (10) uint64, %a: int32",
    "random.uniform(%k, %a, %a, out_shape=[2], out_dtype=\"int32\")",
    "'random.uniform': out_dtype is int32, expected float32 or float64")
  gives("of shapes of scalars", "%x: float32", "vm.shape_of(%x, dtype=\"int64\")", "int64")
  gives("of what is given back", "%x: float32", "memory.kill(%x)", "()")
  it("as Storage", function()
    local mod = assert(pl.parse [[
#[version = "0.0.5"]
type Storage { }
def @main(%size: int64, %shape: Tensor[(1), int64], %align: int64) {
  let %s = memory.alloc_storage(%size, %shape, %align, virtual_device=None);
  memory.alloc_tensor(%s, %size, %shape, const_shape=None, assert_shape=[2, 3])
}
]])
    assert.truthy(tostring(mod):find("let %%s: Storage"))
    assert.equal("Tensor[(2, 3), float32]", tostring(mod.main.type):match "%-> (.*)")
  end)
end)

describe("operators of Ethos-U are typed", function()
  local conv = "%x: (1, 8, 8, 3) int8, %w: (16, 3, 3, 3) int8, %s: (16, 10) uint8, %t: (0) int8"
  local scales = "ifm_scale=0.5f, ifm_zero_point=1, weight_zero_point=2, ofm_scale=0.5f, " ..
    "ofm_zero_point=3, "
  gives("that convolve", conv, "contrib.ethosu.conv2d(%x, %w, %s, %t, " .. scales ..
    "kernel_shape=[3, 3], ofm_channels=16, padding=[1, 1, 0, 0])", "(1, 7, 7, 16) int8")
  gives("that make an image larger first", conv, "contrib.ethosu.conv2d(%x, %w, %s, %t, " ..
    scales .. "kernel_shape=[3, 3], ofm_channels=16, upscale=\"ZEROS\")", "(1, 14, 14, 16) int8")
  gives("that cut channels", (conv:gsub("16", "17")), "contrib.ethosu.conv2d(%x, %w, %s, %t, " ..
    scales .. "kernel_shape=[3, 3], ofm_channels=17, ofm_layout=\"NHCWB16\")",
    "(1, 6, 2, 6, 16) int8")
  gives("that take cut channels", (conv:gsub("%(1, 8, 8, 3%)", "(1, 8, 1, 9, 16)")),
    "contrib.ethosu.conv2d(%x, %w, %s, %t, " .. scales ..
    "kernel_shape=[3, 3], ofm_channels=16, ifm_layout=\"NHCWB16\")", "(1, 6, 7, 16) int8")
  gives("that convolve each channel", conv, "contrib.ethosu.depthwise_conv2d(%x, %w, %s, %t, " ..
    scales .. "kernel_shape=[3, 3], ofm_channels=16, dilation=[2, 2], ofm_dtype=\"int16\")",
    "(1, 4, 4, 16) int16")
  refuses("that convolve bytes", (conv:gsub("%) int8", ") int32", 1)),
    "contrib.ethosu.conv2d(%x, %w, %s, %t, " .. scales .. "kernel_shape=[3, 3], ofm_channels=16)",
    "'contrib.ethosu.conv2d', operand 0: elements cannot be int32")
  refuses("that convolve with as many channels", conv, "contrib.ethosu.conv2d(%x, %w, %s, %t, " ..
    scales .. "kernel_shape=[3, 3], ofm_channels=8)",
    "'contrib.ethosu.conv2d', operand 1: expected extent 16, got 8")
  refuses("that convolve in windows", conv, "contrib.ethosu.conv2d(%x, %w, %s, %t, " ..
    scales .. "kernel_shape=[0, 3], ofm_channels=16)",
    "'contrib.ethosu.conv2d': a window of 0 by 1")

  local image = "%x: (1, 8, 8, 3) int8, %y: (1, 8, 8, 3) int8, %t: (0) int8"
  local one = "ifm_scale=0.5f, ifm_zero_point=1, ofm_scale=0.5f, ofm_zero_point=3, "
  local two = "ifm_scale=0.5f, ifm_zero_point=1, ifm2_scale=0.5f, ifm2_zero_point=2, " ..
    "ofm_scale=0.5f, ofm_zero_point=3, ifm_channels=3, ifm2_channels=3, "
  gives("that pool", image, "contrib.ethosu.pooling(%x, %t, pooling_type=\"MAX\", " .. one ..
    "pool_shape=[2, 2], ofm_channels=3, ofm_dtype=\"int8\", strides=[2, 2])", "(1, 4, 4, 3) int8")
  gives("that sum up", image, "contrib.ethosu.pooling(%x, %t, pooling_type=\"SUM\", " .. one ..
    "pool_shape=[1, 1], ofm_channels=1, ofm_dtype=\"int32\")", "(1, 8, 8, 1) int32")
  refuses("that pool in one way", image, "contrib.ethosu.pooling(%x, %t, pooling_type=\"MIN\", " ..
    one .. "pool_shape=[2, 2], ofm_channels=3, ofm_dtype=\"int8\")",
    "'contrib.ethosu.pooling': pooling_type is 'MIN', expected one of AVG MAX SUM")
  refuses("that pool to the same dtype", image,
    "contrib.ethosu.pooling(%x, %t, pooling_type=\"MAX\", " .. one ..
    "pool_shape=[2, 2], ofm_channels=3, ofm_dtype=\"uint8\")",
    "'contrib.ethosu.pooling', operand 0: expected uint8, got int8")
  gives("of two operands", image,
    "contrib.ethosu.binary_elementwise(%x, %y, %t, operator_type=\"ADD\", " .. two ..
    "ofm_dtype=\"int32\")", "(1, 8, 8, 3) int32")
  refuses("of two operands of some dtypes", image,
    "contrib.ethosu.binary_elementwise(%x, %y, %t, operator_type=\"SHR\", " .. two ..
    "ofm_dtype=\"int32\")",
    "'contrib.ethosu.binary_elementwise', operand 0: elements cannot be int8")
  gives("of one operand", image,
    "contrib.ethosu.unary_elementwise(%x, %t, operator_type=\"ABS\", " .. one ..
    "ofm_channels=3, ofm_layout=\"NHCWB16\")", "(1, 8, 1, 8, 16) int8")
  gives("that change the scale", "%x: (4, ?) uint8, %t: (0) int8",
    "contrib.ethosu.identity(%x, %t, ifm_scale=0.5f, ifm_zero_point=1, ofm_scale=0.5f, " ..
    "ofm_zero_point=3)", "(4, ?) uint8")
end)

describe("calls of functions of TIR are typed", function()
  gives("by the function", "%f: fn ((2) float32) -> (3) int8, %x: (2) float32",
    "call_lowered(%f, (%x,))", "(3) int8")
  refuses("of functions only", "%f: float32, %x: (2) float32", "call_lowered(%f, (%x,))",
    "'call_lowered', operand 0: expected a function")
end)
