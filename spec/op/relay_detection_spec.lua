-- Kernels of Relay's operators on images, boxes and packed operands, on numbers
-- worked out by hand after TVM's TOPI.

local computes, refuses = require "spec.op.computed" (it)

describe("vision", function()
  computes("yolo_reorg takes the image as one of fewer channels",
    "vision.yolo_reorg(%a, stride=2)",
    { { "float32", { { { { 0, 1 }, { 2, 3 } }, { { 4, 5 }, { 6, 7 } }, { { 8, 9 }, { 10, 11 } },
      { { 12, 13 }, { 14, 15 } } } } } },
    { { { { 0 } }, { { 2 } }, { { 8 } }, { { 10 } }, { { 1 } }, { { 3 } }, { { 9 } }, { { 11 } },
      { { 4 } }, { { 6 } }, { { 12 } }, { { 14 } }, { { 5 } }, { { 7 } }, { { 13 } },
      { { 15 } } } })

  refuses("yolo_reorg has channels for the stride", "vision.yolo_reorg(%a, stride=2)",
    { { "float32", { { { { 0, 1 }, { 2, 3 } } } } } }, "no multiples of stride 2")

  computes("multibox_prior centres boxes",
    "vision.multibox_prior(%a, sizes=[0.5f], ratios=[1f, 4f])",
    { { "float32", { { { { 0 } } } } } },
    { { { 0.25, 0.25, 0.75, 0.75 }, { 0, 0.375, 1, 0.625 } } })

  computes("get_valid_counts moves valid rows to the front",
    "vision.get_valid_counts(%a, 0.5f, score_threshold=0.5f)",
    { { "float32", { { { 0, 0.25 }, { 1, 0.75 }, { -1, 1 }, { 2, 0.625 } } } } },
    { 2 }, { { { 1, 0.75 }, { 2, 0.625 }, { -1, -1 }, { -1, -1 } } }, { { 1, 3, -1, -1 } })

  computes("multibox_transform_loc keeps the best class of an anchor",
    "vision.multibox_transform_loc(%a, %b, %c)",
    { { "float32", { { { 0.1, 0.9 }, { 0.25, 0.05 }, { 0.65, 0.05 } } } },
      { "float32", { { 0, 0, 0, 0, 0, 0, 0, 0 } } },
      { "float32", { { { 0.25, 0.25, 0.5, 0.75 }, { 0, 0, 1, 1 } } } } },
    { { { 1, 0.65, 0.25, 0.25, 0.5, 0.75 }, { 0, 0.05, 0, 0, 1, 1 } } }, { 2 })
end)

describe("suppression", function()
  local boxes = { "float32", { { { 0, 0, 1, 1 }, { 1, 0.9, 0, 0 }, { 2, 2, 3, 3 } } } }
  local scores = { "float32", { { { 0.9, 0.8, 0.7 }, { 0.3, 0.95, 0.1 } } } }
  local call = "vision.all_class_non_max_suppression(%%a, %%b, %d, %s, 0.2f%s)"
  local none = { -1, -1, -1 }
  computes("keeps the best boxes of each class", call:format(2, "0.5f", ""), { boxes, scores },
    { { 0, 0, 0 }, { 0, 0, 2 }, { 0, 1, 1 }, none, none, none }, { 3 })
  computes("keeps at most as many as it is told to", call:format(1, "0.95f", ""),
    { boxes, scores }, { { 0, 0, 0 }, { 0, 1, 1 }, none, none, none, none }, { 2 })
  computes("keeps all of less overlap", call:format(-1, "0.95f", ""),
    { boxes, scores }, { { 0, 0, 0 }, { 0, 0, 1 }, { 0, 0, 2 }, { 0, 1, 1 }, { 0, 1, 0 }, none },
    { 5 })
  computes("of a threshold of zero keeps none", call:format(2, "0f", ""),
    { boxes, scores }, { none, none, none, none, none, none }, { 0 })
  computes("of equal scores takes the first box", call:format(1, "0.5f", ""),
    { boxes, { "float32", { { { 0.5, 0.75, 0.75 } } } } }, { { 0, 0, 1 }, none, none }, { 1 })
  computes("gives scores by image", call:format(2, "0.5f", ', output_format="tensorflow"'),
    { boxes, scores }, { { { 0, 0 }, { 0, 2 }, { 1, 1 }, { 0, 0 }, { 0, 0 }, { 0, 0 } } },
    { { 0.9, 0.7, 0.95, 0, 0, 0 } }, { 3 })
  refuses("has boxes of four corners", call:format(2, "0.5f", ""),
    { { "float32", { { { 0, 0, 1 } } } }, { "float32", { { { 0.5 } } } } },
    "are not boxes of float32")

  local regular = "vision.regular_non_max_suppression(%%a, %%b, max_detections_per_class=%d, "
    .. "max_detections=%d, num_classes=2, iou_threshold=0.5f, score_threshold=0.2f)"
  local ordered = { "float32", { { { 0, 0, 1, 1 }, { 0, 0, 1, 0.9 }, { 2, 2, 3, 3 } } } }
  local by_box = { "float32", { { { 0, 0.9, 0.3 }, { 0, 0.8, 0.95 }, { 0, 0.7, 0.1 } } } }
  computes("keeps the best of all classes", regular:format(2, 4), { ordered, by_box },
    { { { 0, 0, 1, 0.9 }, { 0, 0, 1, 1 }, { 2, 2, 3, 3 }, { 0, 0, 0, 0 } } },
    { { 1, 0, 0, 0 } }, { { 0.95, 0.9, 0.7, 0 } }, { 3 })
  computes("keeps fewer of them", regular:format(1, 1), { ordered, by_box },
    { { { 0, 0, 1, 0.9 } } }, { { 1 } }, { { 0.95 } }, { 1 })
end)

describe("proposed regions", function()
  local call = "vision.proposal(%%a, %%b, %%c, scales=[1f], ratios=[1f], feature_stride=16, "
    .. "threshold=0.1f, rpn_min_size=%d, rpn_post_nms_top_n=%d%s)"
  local scores = { "float32", { { { { 0.1, 0.2 } }, { { 0.6, 0.9 } } } } }
  local offsets = { "float32", { { { { 0, 0 } }, { { 0, 0 } }, { { 0, 0 } }, { { 0, 0 } } } } }
  computes("are anchors by their score, repeated", call:format(4, 3, ""),
    { scores, offsets, { "float32", { { 16, 32, 1 } } } },
    { { 0, 16, 0, 31, 15 }, { 0, 0, 0, 15, 15 }, { 0, 16, 0, 31, 15 } })
  computes("are the first of them", call:format(4, 2, ", rpn_pre_nms_top_n=1"),
    { scores, offsets, { "float32", { { 16, 32, 1 } } } },
    { { 0, 16, 0, 31, 15 }, { 0, 16, 0, 31, 15 } })
  computes("are last outside of the image and when they are small", call:format(9, 2, ""),
    { scores, offsets, { "float32", { { 16, 24, 1 } } } },
    { { 0, 0, 0, 15, 15 }, { 0, 0, 0, 15, 15 } })
  computes("move by the offsets", call:format(4, 1, ""),
    { { "float32", { { { { 0.5 } }, { { 0.5 } } } } },
      { "float32", { { { { 0.25 } }, { { 0.5 } }, { { math.log(0.5) } }, { { 0 } } } } },
      { "float32", { { 64, 64, 1 } } } }, { { 0, 8, 8, 15, 23 } })
  computes("move by corners", call:format(4, 1, ", iou_loss=True"),
    { { "float32", { { { { 0.5 } }, { { 0.5 } } } } },
      { "float32", { { { { 1 } }, { { 2 } }, { { 3 } }, { { 4 } } } } },
      { "float32", { { 64, 64, 1 } } } }, { { 0, 1, 2, 18, 19 } })
  refuses("have scores for all anchors", "vision.proposal(%a, %b, %c)",
    { scores, offsets, { "float32", { { 16, 32, 1 } } } }, "do not match scales and ratios")
end)

describe("regions of images", function()
  local image = { "float32", { { { { 0, 4 }, { 8, 12 } } }, { { { 1, 1 }, { 1, 1 } } } } }
  computes("are aligned by samples of their bins", [[
      vision.roi_align(%a, %b, pooled_size=[1, 2], spatial_scale=0.5f, sample_ratio=1)]],
    { image, { "float32", { { 0, 0, 0, 4, 2 }, { 1, 0, 0, 2, 2 } } } },
    { { { { 6, 8 } } }, { { { 1, 1 } } } })
  computes("give the greatest of their samples", [[
      vision.roi_align(%a, %b, pooled_size=[1, 1], spatial_scale=1f, sample_ratio=2, mode="max")]],
    { image, { "float32", { { 0, 0, 0, 2, 2 } } } }, { { { { 12 } } } })
  refuses("name an image", [[
      vision.roi_align(%a, %b, pooled_size=[1, 1], spatial_scale=1f)]],
    { image, { "float32", { { 2, 0, 0, 2, 2 } } } }, "region 0 refers to no image")
end)

describe("two images", function()
  computes("are correlated", "nn.correlation(%a, %b, max_displacement=1, padding=[1, 1])",
    { { "float32", { { { { 2 } } } } }, { "float32", { { { { 3 } } } } } },
    { { { { 0 } }, { { 0 } }, { { 0 } }, { { 0 } }, { { 6 } }, { { 0 } }, { { 0 } }, { { 0 } },
      { { 0 } } } })

  computes("are dilated", "image.dilation2d(%a, %b)",
    { { "float32", { { { { 1, 5 }, { 2, 3 } } } } }, { "float32", { { { 0, 0.5 } } } } },
    { { { { 5.5 }, { 3.5 } } } })
end)

describe("packed operands", function()
  computes("are laid out by inner parts of inner parts", [[
      (layout_transform(%a, src_layout="C", dst_layout="C2c3c"),
       layout_transform(layout_transform(%a, src_layout="C", dst_layout="C6c"),
         src_layout="C6c", dst_layout="3cC2c"),
       layout_transform(layout_transform(%a, src_layout="C", dst_layout="3cC2c"),
         src_layout="3cC2c", dst_layout="C"))]],
    { { "int32", { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 } } },
    { { { 0, 1, 2 }, { 3, 4, 5 } }, { { 6, 7, 8 }, { 9, 10, 11 } } },
    { { { 0, 1 }, { 6, 7 } }, { { 2, 3 }, { 8, 9 } }, { { 4, 5 }, { 10, 11 } } },
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 })
  refuses("have parts that divide each other",
    'layout_transform(layout_transform(%a, src_layout="C", dst_layout="C4c"), '
    .. 'src_layout="C4c", dst_layout="C6c")',
    { { "int32", { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 } } }, "the layouts do not match")

  computes("dense_pack has blocks of rows", 'nn.contrib_dense_pack(%a, %b, weight_layout="NC2n")',
    { { "float32", { { 1, 2 } } }, { "float32", { { { 1, 3 }, { 2, 4 } } } } },
    { { 5, 11 } })

  computes("bitpack puts the first element in the high bit",
    'nn.bitpack(%a, bits=2, pack_axis=1, bit_axis=1, pack_type="uint8")',
    { { "uint8", { { 1, 2, 0, 0, 0, 0, 0, 3 } } } }, { { { 129 }, { 65 } } })
end)

describe("sparse indices", function()
  computes("are transposed", "nn.sparse_transpose(%a, %b, %c)",
    { { "float32", { 5, 6, 7 } }, { "int32", { 1, 0, 1 } }, { "int32", { 0, 1, 3 } } },
    { 6, 5, 7 }, { 1, 0, 1 }, { 0, 1, 3 })

  refuses("are within the matrix", "nn.sparse_transpose(%a, %b, %c)",
    { { "float32", { 5 } }, { "int32", { 7 } }, { "int32", { 0, 1, 1 } } },
    "an index lies outside of the matrix")

  computes("are reshaped", "sparse_reshape(%a, %b, %c)",
    { { "int64", { { 0, 3 }, { 1, 1 } } }, { "int64", { 2, 4 } }, { "int64", { 4, -1 } } },
    { { 1, 1 }, { 2, 1 } }, { 4, 2 })
end)

describe("quantised tensors", function()
  computes("have leaky_relu", "qnn.leaky_relu(%a, 0.5f, 2, 0.25f, 0, alpha=0.5f)",
    { { "int8", { 4, 2, -2 } } }, { 4, 0, -4 })

  computes("have softmax", "qnn.softmax(%a, 1f, 0, 0.25f, 0)", { { "int8", { { 3, 3 } } } },
    { { 2, 2 } })

  computes("are simulated", "qnn.simulated_quantize(%a, 1, 0.5f, 3)",
    { { "float32", { 1.2, 100, -100 } } }, { 5, 127, -128 })

  computes("are simulated back", "qnn.simulated_dequantize(%a, 1, 0.5f, 3)",
    { { "float32", { 5, 3 } } }, { 1, 0 })
end)
