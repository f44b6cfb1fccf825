-- Attributes are printed in the order in which TVM's structs declare them, and
-- those equal to their default are left out: calls with everything said, in
-- another order, and what stands in their text.

local pl = require "perilune"

-- The text of the call, by itself.
local function printed(call)
  local mod, why = pl.parse(("#[version = \"0.0.5\"]\ndef @main(%%a, %%b, %%c) {\n  %s\n}\n")
    :format(call))
  return (tostring(mod or error(why)):match "{\n  (.-)\n}":gsub(" /%*.-%*/", ""))
end

local function prints(want)
  it("as in " .. want:sub(1, 70), function()
    assert.equal(want, printed(want))
    -- The same attributes the other way round.
    local name, operands, attrs = want:match "^([%w_.]+)%(([%%abc(), ]-), (%l[%w_]*=.*)%)$"
    local list, from = {}, 1
    for at, key in (attrs .. ", z="):gmatch "(), (%l[%w_]*)=" do
      table.insert(list, 1, attrs:sub(from, at - 1))
      from = at + 2
      if key == "z" then break end
    end
    assert.equal(want, printed(("%s(%s, %s)"):format(name, operands, table.concat(list, ", "))))
  end)
end

local function prints_as(given, want)
  it("without defaults, as in " .. want, function() assert.equal(want, printed(given)) end)
end

describe("attributes are printed in the order of their struct", function()
  prints "nn.conv1d(%a, %b, strides=[2], padding=[1, 1], dilation=[2], groups=2, channels=4, \z
    kernel_size=[3], data_layout=\"NWC\", kernel_layout=\"WIO\", out_layout=\"NWC\", \z
    out_dtype=\"int32\")"
  prints "nn.conv2d(%a, %b, strides=[2, 2], padding=[1, 1, 1, 1], dilation=[2, 2], groups=2, \z
    channels=4, kernel_size=[3, 3], data_layout=\"NHWC\", kernel_layout=\"HWIO\", \z
    out_layout=\"NHWC\", out_dtype=\"int32\")"
  prints "nn.conv1d_transpose(%a, %b, channels=4, kernel_size=[3], strides=[2], \z
    output_padding=[1], padding=[1, 1], dilation=[2], groups=2, data_layout=\"NWC\", \z
    kernel_layout=\"WIO\", out_layout=\"NWC\", out_dtype=\"int32\")"
  prints "nn.conv2d_transpose(%a, %b, channels=4, kernel_size=[3, 3], strides=[2, 2], \z
    output_padding=[1, 1], padding=[1, 1, 1, 1], dilation=[2, 2], groups=2, \z
    data_layout=\"NHWC\", kernel_layout=\"HWIO\", out_layout=\"NHWC\", out_dtype=\"int32\")"
  prints "nn.conv3d_transpose(%a, %b, channels=4, kernel_size=[3, 3, 3], strides=[2, 2, 2], \z
    output_padding=[1, 1, 1], padding=[1, 1, 1], dilation=[2, 2, 2], groups=2, \z
    data_layout=\"NDHWC\", kernel_layout=\"DHWIO\", out_layout=\"NDHWC\", out_dtype=\"int32\")"
  prints "nn.contrib_conv2d_winograd_without_weight_transform(%a, %b, tile_size=4, \z
    strides=[2, 2], padding=[1, 1], dilation=[2, 2], groups=2, channels=4, kernel_size=[3, 3], \z
    out_dtype=\"int32\")"
  prints "nn.deformable_conv2d(%a, %b, %c, strides=[2, 2], padding=[1, 1], dilation=[2, 2], \z
    deformable_groups=2, groups=2, channels=4, kernel_size=[3, 3], out_dtype=\"float16\")"
  prints "nn.bitserial_conv2d(%a, %b, strides=[2, 2], padding=[1, 1], kernel_size=[5, 5], \z
    channels=8, activation_bits=2, weight_bits=2, data_layout=\"NHWC\", kernel_layout=\"HWIO\", \z
    pack_dtype=\"uint8\", out_dtype=\"int16\", unipolar=False)"
  prints "nn.max_pool2d(%a, pool_size=[2, 2], strides=[2, 2], dilation=[2, 2], \z
    padding=[1, 1, 1, 1], layout=\"NHWC\", out_layout=\"NHWC\", ceil_mode=True)"
  prints "nn.avg_pool1d(%a, pool_size=[2], strides=[2], dilation=[2], padding=[1, 1], \z
    layout=\"NWC\", out_layout=\"NWC\", ceil_mode=True, count_include_pad=True)"
  prints "nn.adaptive_avg_pool3d(%a, output_size=[1, 2, 3], layout=\"NDHWC\", \z
    out_layout=\"NDHWC\")"
  prints "nn.matmul(%a, %b, units=4, out_dtype=\"int32\", transpose_a=True, transpose_b=True)"
  prints "nn.sparse_conv2d(%a, %b, %c, %a, layout=\"NCHW\", kernel_size=[3, 3])"
  prints "nn.upsampling3d(%a, scale_d=2f, scale_h=2f, scale_w=3f, layout=\"NDHWC\", \z
    method=\"trilinear\", coordinate_transformation_mode=\"asymmetric\")"
  prints "nn.mirror_pad(%a, mode=\"REFLECT\", pad_width=[[1, 2], [3, 4]])"
  prints "nn.group_norm(%a, %b, %c, num_groups=2, axis=2, epsilon=0.001f, center=False, \z
    scale=False)"
  prints "nn.lrn(%a, size=3, axis=2, bias=1f, alpha=0.5f, beta=0.25f)"
  prints "nn.correlation(%a, %b, kernel_size=3, max_displacement=2, stride1=2, stride2=2, \z
    padding=[1, 1], is_multiply=False)"
  prints "nn.space_to_batch_nd(%a, block_shape=[2, 3], paddings=[[0, 1], [1, 0]], pad_value=1f)"
  prints "nn.depth_to_space(%a, block_size=2, layout=\"NHWC\", mode=\"CRD\")"
  prints "image.resize3d(%a, size=[4, 4, 4], roi=[0f, 0f, 0f, 1f, 1f, 1f], layout=\"NDHWC\", \z
    method=\"cubic\", coordinate_transformation_mode=\"asymmetric\", rounding_method=\"floor\", \z
    cubic_alpha=-0.75f, cubic_exclude=1, extrapolation_value=2f, out_dtype=\"float16\")"
  prints "image.crop_and_resize(%a, %b, %c, crop_size=[2, 2], layout=\"NHWC\", \z
    method=\"nearest_neighbor\", extrapolation_value=1f, out_dtype=\"float16\")"
  prints "image.dilation2d(%a, %b, strides=[2, 2], padding=[1, 1], dilations=[2, 2], \z
    data_layout=\"NHWC\", kernel_layout=\"HWI\", out_dtype=\"float16\")"
  prints "vision.multibox_prior(%a, sizes=[0.5f, 0.25f], ratios=[1f, 2f], steps=[1f, 1f], \z
    offsets=[0.25f, 0.25f], clip=True)"
  prints "vision.non_max_suppression(%a, %b, %c, %a, %b, force_suppress=True, top_k=5, \z
    coord_start=1, score_index=0, id_index=-1, return_indices=False, invalid_to_bottom=True)"
  prints "vision.proposal(%a, %b, %c, scales=[2f], ratios=[1f], feature_stride=8, \z
    threshold=0.5f, rpn_pre_nms_top_n=100, rpn_post_nms_top_n=10, rpn_min_size=2, iou_loss=True)"
  prints "strided_slice(%a, begin=[0], end=[1], strides=[1], slice_mode=\"size\", axes=[0])"
  prints "matrix_set_diag(%a, %b, k1=-1, k2=1, super_diag_right_align=False, \z
    sub_diag_right_align=True)"
  prints "reshape_like(%a, %b, lhs_begin=1, lhs_end=2, rhs_begin=1, rhs_end=3)"
  prints "argmax(%a, axis=[1], keepdims=True, select_last_index=True, exclude=True)"
  prints "stft(%a, %b, n_fft=8, hop_length=2, win_length=8, normalized=True, onesided=False)"
  prints "qnn.requantize(%a, %b, %c, %b, %c, axis=1, rounding=\"UPWARD\", \z
    compute_dtype=\"int64\", out_dtype=\"uint8\")"
  prints "qnn.dequantize(%a, %b, %c, out_dtype=\"float16\", axis=1)"
  prints "qnn.add(%a, %b, %c, %a, %b, %c, %a, %b, lhs_axis=1, rhs_axis=0)"
end)

describe("attributes are printed", function()
  prints_as("image.resize1d(%a, size=[4], roi=None, layout=\"NCW\")",
    "image.resize1d(%a, size=[4])")
  prints_as("nn.conv2d_transpose(%a, %b, output_padding=[0, 0], padding=[1, 1], groups=1)",
    "nn.conv2d_transpose(%a, %b, padding=[1, 1])")
  prints_as("nn.batch_norm(%a, %b, %c, %b, %c, epsilon=1e-5f, axis=1, scale=True)",
    "nn.batch_norm(%a, %b, %c, %b, %c)")
  prints_as("vision.multibox_transform_loc(%a, %b, %c, variances=[0.1f, 0.1f, 0.2f, 0.2f])",
    "vision.multibox_transform_loc(%a, %b, %c)")
  prints_as("qnn.mul(%a, %b, %c, %a, %b, %c, %a, %b, lhs_axis=-1)",
    "qnn.mul(%a, %b, %c, %a, %b, %c, %a, %b)")
end)
