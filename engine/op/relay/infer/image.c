/* image.c: type inference of Relay's operators on images and boxes
 * (image.resize2d, vision.multibox_prior, ...). Called through ops.def. */

#include "op/relay/data_layout.h"
#include "op/relay/form.h"

/* The number of spatial axes, less one. */
static int spatial_form(pln_op op) {
  switch (op) {
  case PLN_OP_RESIZE_1D: return 0;
  case PLN_OP_RESIZE_3D:
  case PLN_OP_DYN_UPSAMPLING_3D: return 2;
  default: return 1;
  }
}

/* Spatial extents are those of attribute `size`, of which one may stand for
 * all; of a dynamic operator they are not known. */
pln_status pln_infer_resize_to(pln_infer *call) {
  static const char *const spaces[] = {"W", "HW", "DHW"};
  static const char *const plain[] = {"NCW", "NCHW", "NCDHW"};
  int form = spatial_form(call->op);
  pln_data_layout layout;
  pln_shape shape;
  uint32_t n;
  const int64_t *size = pln_call_ints(call, "size", &n);
  PLN_TRY(pln_data_layout_of(call, "layout", plain[form], &layout));
  PLN_TRY(pln_arg_expect_rank(call, 0, layout.rank));
  pln_arg_shape(call, 0, &shape);
  for (int32_t i = 0; shape.rank >= 0 && i < layout.rank; i++) {
    const char *at = strchr(spaces[form], layout.letter[i]);
    if (!at || layout.factor[i])
      continue;
    uint32_t k = (uint32_t)(at - spaces[form]);
    shape.dims[i] = size && k < n    ? size[k]
                    : size && n == 1 ? size[0]
                                     : PLN_DIM_UNKNOWN;
  }
  pln_dtype dtype = pln_arg_dtype(call, 0);
  return pln_result_tensor(call, 0, pln_call_dtype(call, "out_dtype", dtype),
                           &shape);
}

/* (images, boxes, image of each box): a crop of that size for each box. */
pln_status pln_infer_crop_and_resize(pln_infer *call) {
  pln_data_layout layout;
  pln_shape shape;
  uint32_t n;
  const int64_t *size = pln_call_ints(call, "crop_size", &n);
  PLN_TRY(pln_data_layout_of(call, "layout", "NCHW", &layout));
  PLN_TRY(pln_arg_expect_rank(call, 0, layout.rank));
  PLN_TRY(pln_arg_expect_rank(call, 1, 2));
  if (!size || n != 2)
    return pln_call_error(call, "crop_size is missing");
  pln_arg_shape(call, 0, &shape);
  for (int32_t i = 0; shape.rank >= 0 && i < layout.rank; i++) {
    char letter = layout.letter[i];
    if (letter == 'N')
      shape.dims[i] = pln_arg_rank(call, 1) == 2 ? pln_arg_dims(call, 1)[0]
                                                 : (pln_dim)PLN_DIM_UNKNOWN;
    else if (letter == 'H' || letter == 'W')
      shape.dims[i] = size[letter == 'W'];
  }
  return pln_result_tensor(
      call, 0, pln_call_dtype(call, "out_dtype", pln_arg_dtype(call, 0)),
      &shape);
}

/* Blocks of stride x stride spatial elements become channels. */
pln_status pln_infer_yolo_reorg(pln_infer *call) {
  pln_shape shape;
  int64_t stride = pln_call_int(call, "stride", 1);
  if (stride < 1 || stride > INT16_MAX)
    return pln_call_error(call, "stride %lld", (long long)stride);
  PLN_TRY(pln_arg_expect_rank(call, 0, 4));
  pln_arg_shape(call, 0, &shape);
  if (shape.rank == 4) {
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, shape.dims[1], stride * stride,
                          &shape.dims[1]));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, shape.dims[2], stride,
                          &shape.dims[2]));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, shape.dims[3], stride,
                          &shape.dims[3]));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

static int64_t count_of(const pln_infer *call, const char *name) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  return a && a->kind == PLN_ATTR_FLOATS ? a->count : 1;
}

/* One box per size and per additional ratio, at each position. */
pln_status pln_infer_multibox_prior(pln_infer *call) {
  pln_shape x, out = {.rank = 3, .dims = {1, PLN_DIM_UNKNOWN, 4}};
  int64_t boxes = count_of(call, "sizes") + count_of(call, "ratios") - 1;
  PLN_TRY(pln_arg_expect_rank(call, 0, 4));
  pln_arg_shape(call, 0, &x);
  if (x.rank == 4) {
    PLN_TRY(
        pln_infer_dim(call, PLN_DIM_MUL, x.dims[2], x.dims[3], &out.dims[1]));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, out.dims[1], boxes, &out.dims[1]));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* Relay's nn.upsampling: factors of the spatial axes, by layout. */
pln_status pln_infer_upsampling(pln_infer *call) {
  static const char *const names[] = {"scale_d", "scale_h", "scale_w"};
  static const char axes[] = "DHW";
  bool deep = call->op == PLN_OP_UPSAMPLING_3D;
  pln_data_layout layout;
  pln_shape shape;
  PLN_TRY(pln_data_layout_of(call, "layout", deep ? "NCDHW" : "NCHW", &layout));
  PLN_TRY(pln_arg_expect_rank(call, 0, layout.rank));
  pln_arg_shape(call, 0, &shape);
  for (int32_t i = 0; i < shape.rank; i++) {
    const char *at = strchr(axes, layout.letter[i]);
    if (!at || layout.factor[i])
      continue;
    double by = pln_attrs_float(call->engine, call->attrs, names[at - axes], 1);
    double extent = (double)shape.dims[i] * by;
    bool known = PLN_DIM_IS_CONST(shape.dims[i]) && by >= 0 && extent < 1e15;
    shape.dims[i] = known ? (pln_dim)(extent + 0.5) : PLN_DIM_UNKNOWN;
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

/* (class probabilities, offsets, anchors): a box of six numbers per anchor, and
 * the number of valid ones. */
pln_status pln_infer_multibox_transform_loc(pln_infer *call) {
  pln_shape x, boxes = {.rank = 3, .dims = {0, PLN_DIM_UNKNOWN, 6}};
  pln_shape counts = {.rank = 1};
  pln_arg_shape(call, 0, &x);
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  boxes.dims[0] = counts.dims[0] = x.rank == 3 ? x.dims[0] : PLN_DIM_UNKNOWN;
  if (x.rank == 3)
    boxes.dims[1] = x.dims[2];
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &boxes));
  return pln_result_tensor(call, 1, PLN_INT32, &counts);
}

/* (batch, boxes, fields): the number of valid boxes, the boxes, their former
 * indices. */
pln_status pln_infer_get_valid_counts(pln_infer *call) {
  pln_shape x, list;
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  pln_arg_shape(call, 0, &x);
  pln_shape_ranked(&list, 1);
  if (x.rank == 3)
    list.dims[0] = x.dims[0];
  PLN_TRY(pln_result_tensor(call, 0, PLN_INT32, &list));
  pln_result_like(call, 1, 0);
  pln_shape_ranked(&list, 2);
  for (int32_t i = 0; i < 2 && x.rank == 3; i++)
    list.dims[i] = x.dims[i];
  return pln_result_tensor(call, 2, PLN_INT32, &list);
}

/* (boxes, scores, limit per class, two thresholds): the indices of the boxes
 * kept per class, and their number; or per image, with their scores. */
pln_status pln_infer_all_class_nms(pln_infer *call) {
  pln_dim all = PLN_DIM_UNKNOWN, images = PLN_DIM_UNKNOWN;
  pln_shape boxes, scores;
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  PLN_TRY(pln_arg_expect_rank(call, 1, 3));
  pln_arg_shape(call, 0, &boxes);
  pln_arg_shape(call, 1, &scores);
  if (boxes.rank == 3)
    images = boxes.dims[0];
  if (boxes.rank == 3 && scores.rank == 3)
    PLN_TRY(
        pln_infer_dim(call, PLN_DIM_MUL, scores.dims[1], boxes.dims[1], &all));
  if (pln_call_string_is(call, "output_format", "onnx", "onnx")) {
    pln_shape indices = {.rank = 2, .dims = {0, 3}};
    pln_shape count = {.rank = 1, .dims = {1}};
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, images, all, &indices.dims[0]));
    PLN_TRY(pln_result_tensor(call, 0, PLN_INT64, &indices));
    return pln_result_tensor(call, 1, PLN_INT64, &count);
  }
  pln_shape indices = {.rank = 3, .dims = {images, all, 2}};
  pln_shape best = {.rank = 2, .dims = {images, all}};
  pln_shape counts = {.rank = 1, .dims = {images}};
  PLN_TRY(pln_result_tensor(call, 0, PLN_INT64, &indices));
  PLN_TRY(pln_result_tensor(call, 1, PLN_FLOAT32, &best));
  return pln_result_tensor(call, 2, PLN_INT64, &counts);
}

/* (boxes, scores): per image a fixed number of boxes, with classes and scores,
 * and the number of valid ones. */
pln_status pln_infer_regular_nms(pln_infer *call) {
  int64_t most = pln_call_int(call, "max_detections", -1);
  pln_shape x, boxes = {.rank = 3, .dims = {PLN_DIM_UNKNOWN, most, 4}};
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  PLN_TRY(pln_arg_expect_rank(call, 1, 3));
  if (most < 0)
    return pln_call_error(call, "max_detections is missing");
  pln_arg_shape(call, 0, &x);
  if (x.rank == 3)
    boxes.dims[0] = x.dims[0];
  PLN_TRY(pln_result_tensor(call, 0, PLN_FLOAT32, &boxes));
  boxes.rank = 2;
  PLN_TRY(pln_result_tensor(call, 1, PLN_FLOAT32, &boxes));
  PLN_TRY(pln_result_tensor(call, 2, PLN_FLOAT32, &boxes));
  boxes.rank = 1;
  return pln_result_tensor(call, 3, PLN_INT32, &boxes);
}

/* (scores, offsets, image sizes): a number of regions per image, of five
 * numbers each. */
pln_status pln_infer_proposal(pln_infer *call) {
  int64_t most = pln_call_int(call, "rpn_post_nms_top_n", 300);
  pln_shape x, sizes, out = {.rank = 2, .dims = {PLN_DIM_UNKNOWN, 5}};
  pln_dim numbers = 3;
  PLN_TRY(pln_arg_expect_rank(call, 0, 4));
  PLN_TRY(pln_arg_expect_rank(call, 1, 4));
  PLN_TRY(pln_arg_expect_rank(call, 2, 2));
  if (most < 0)
    return pln_call_error(call, "rpn_post_nms_top_n is %lld", (long long)most);
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 2, &sizes);
  if (sizes.rank == 2)
    PLN_TRY(pln_infer_same_dim(call, 2, &numbers, sizes.dims[1]));
  if (x.rank == 4)
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, x.dims[0], most, &out.dims[0]));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* Relay's grid is (batch, coordinate, space...). */
pln_status pln_infer_relay_grid_sample(pln_infer *call) {
  pln_shape x, grid;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 4, 5));
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &grid);
  for (int32_t i = 2; i < x.rank; i++)
    x.dims[i] = grid.rank == x.rank ? grid.dims[i] : PLN_DIM_UNKNOWN;
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &x);
}

/* (batch, 2, height, width) of attribute target_shape. */
pln_status pln_infer_relay_affine_grid(pln_infer *call) {
  pln_list target = pln_arg_list(call, PLN_NONE, "target_shape");
  pln_shape x, out = {.rank = 4, .dims = {PLN_DIM_UNKNOWN, 2}};
  pln_arg_shape(call, 0, &x);
  if (target.count != 2)
    return pln_call_error(call, "target_shape is missing");
  if (x.rank > 0)
    out.dims[0] = x.dims[0];
  for (uint32_t i = 0; i < 2; i++)
    out.dims[2 + i] = pln_list_at(&target, i);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}
