/* pool.c: type inference of Relay's pooling over one to three axes: windowed,
 * global, adaptive, and gradients. Called through ops.def. */

#include "op/infer/window.h"
#include "op/relay/data_layout.h"

const char *pln_pool_space(pln_op op, const char **data) {
  switch (op) {
  case PLN_OP_MAX_POOL_1D:
  case PLN_OP_AVG_POOL_1D:
  case PLN_OP_GLOBAL_MAX_POOL_1D:
  case PLN_OP_GLOBAL_AVG_POOL_1D:
  case PLN_OP_ADAPTIVE_MAX_POOL_1D:
  case PLN_OP_ADAPTIVE_AVG_POOL_1D: *data = "NCW"; return "W";
  case PLN_OP_MAX_POOL_3D:
  case PLN_OP_AVG_POOL_3D:
  case PLN_OP_GLOBAL_MAX_POOL_3D:
  case PLN_OP_GLOBAL_AVG_POOL_3D:
  case PLN_OP_ADAPTIVE_MAX_POOL_3D:
  case PLN_OP_ADAPTIVE_AVG_POOL_3D: *data = "NCDHW"; return "DHW";
  default: *data = "NCHW"; return "HW";
  }
}

typedef struct pool_call {
  const char *space;
  uint32_t n;
  pln_data_layout layout, out_layout;
  pln_shape x;
} pool_call;

static pln_status read_pool_call(const pln_infer *call, pool_call *c) {
  const char *data;
  c->space = pln_pool_space(call->op, &data);
  c->n = (uint32_t)strlen(c->space);
  PLN_TRY(pln_data_layout_of(call, "layout", data, &c->layout));
  c->out_layout = c->layout;
  if (!pln_call_string_is(call, "out_layout", "", ""))
    PLN_TRY(pln_data_layout_of(call, "out_layout", data, &c->out_layout));
  PLN_TRY(pln_arg_expect_rank(call, 0, c->layout.rank));
  pln_arg_shape(call, 0, &c->x);
  if (c->x.rank < 0)
    pln_shape_ranked(&c->x, c->layout.rank);
  return PLN_OK;
}

/* The position of axis `letter` in the layout, or -1. */
static int32_t axis_of(const pool_call *c, char letter) {
  for (int32_t i = 0; i < c->layout.rank; i++)
    if (c->layout.letter[i] == letter && !c->layout.factor[i])
      return i;
  return -1;
}

/* (extent + pads - reach [+ stride - 1]) / stride + 1 */
static pln_status slid(const pln_infer *call, uint32_t axes, uint32_t i,
                       pln_dim *dim) {
  int64_t stride = pln_window_int(call, "strides", i, 1);
  int64_t window = pln_window_int(call, "pool_size", i, 1), reach, more;
  int64_t dilation = pln_window_int(call, "dilation", i, 1);
  bool up = pln_call_int(call, "ceil_mode", 0) != 0;
  if (stride < 1 || stride > INT32_MAX || window < 0 ||
      __builtin_mul_overflow(window - 1, dilation, &reach) ||
      __builtin_sub_overflow(pln_window_pads(call, axes, i), reach, &more) ||
      __builtin_add_overflow(more, up ? stride - 2 : -1, &more) ||
      !PLN_DIM_IS_CONST(more))
    return pln_call_error(call, "a window of %lld by %lld", (long long)window,
                          (long long)stride);
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *dim, more, dim));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, *dim, stride, dim));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *dim, 1, dim));
  if (PLN_DIM_IS_CONST(*dim) && *dim < 0)
    return pln_call_error(call, "the window is larger than the operand");
  return PLN_OK;
}

static pln_status set_pool_result(pln_infer *call, const pool_call *c) {
  pln_shape out;
  PLN_TRY(
      pln_data_layout_convert(call, &c->layout, &c->x, &c->out_layout, &out));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_infer_pool_2d(pln_infer *call) {
  pool_call c;
  PLN_TRY(read_pool_call(call, &c));
  for (uint32_t i = 0; i < c.n; i++) {
    int32_t axis = axis_of(&c, c.space[i]);
    if (axis < 0)
      return pln_call_error(call, "layout has no axis %c", c.space[i]);
    PLN_TRY(slid(call, c.n, i, &c.x.dims[axis]));
  }
  return set_pool_result(call, &c);
}

/* Global pooling has output extents 1. Adaptive pooling has output_size, of
 * which one may stand for all axes; the operand's extents if it is missing. */
static pln_status pool_to_size(pln_infer *call, bool global) {
  pool_call c;
  PLN_TRY(read_pool_call(call, &c));
  for (uint32_t i = 0; i < c.n; i++) {
    int32_t axis = axis_of(&c, c.space[i]);
    if (axis >= 0)
      c.x.dims[axis] =
          global ? 1 : pln_window_int(call, "output_size", i, c.x.dims[axis]);
  }
  return set_pool_result(call, &c);
}

pln_status pln_infer_global_pool_2d(pln_infer *call) {
  return pool_to_size(call, true);
}

pln_status pln_infer_adaptive_pool(pln_infer *call) {
  return pool_to_size(call, false);
}

/* (gradient, data): the type of the data. */
pln_status pln_infer_pool_grad(pln_infer *call) {
  pln_result_like(call, 0, 1);
  return PLN_OK;
}
