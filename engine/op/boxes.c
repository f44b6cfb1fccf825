/* boxes.c: the types of Relay's operators on images and boxes: image.resize2d
 * and its kin, vision.yolo_reorg, vision.multibox_prior. Called through
 * ops.def. */

#include "op/axis_layout.h"

/* The axes of space get the extents of attribute `size`, of which one may stand
 * for all. */
pln_status pln_infer_resize_to(pln_infer *call) {
  static const char *const spaces[] = {"W", "HW", "DHW"};
  static const char *const plain[] = {"NCW", "NCHW", "NCDHW"};
  int form = call->op == PLN_OP_RESIZE_1D   ? 0
             : call->op == PLN_OP_RESIZE_3D ? 2
                                            : 1;
  pln_layout layout;
  pln_shape shape;
  uint32_t n;
  const int64_t *size = pln_call_ints(call, "size", &n);
  PLN_TRY(pln_layout_of(call, "layout", plain[form], &layout));
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

/* Blocks of stride x stride elements of space become channels. */
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

/* A box for each size and for each further ratio at each position. */
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

/* nn.upsampling as Relay has it: factors of the axes of space, by layout. */
pln_status pln_infer_upsampling(pln_infer *call) {
  static const char *const names[] = {"scale_d", "scale_h", "scale_w"};
  static const char axes[] = "DHW";
  bool deep = call->op == PLN_OP_UPSAMPLING_3D;
  pln_layout layout;
  pln_shape shape;
  PLN_TRY(pln_layout_of(call, "layout", deep ? "NCDHW" : "NCHW", &layout));
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
