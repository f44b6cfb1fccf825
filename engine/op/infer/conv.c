/* conv.c: type inference of convolutions. Called through ops.def. Operands are
 * (batch, channels, space...), weights (out, in / group, window...). */

#include "op/infer/window.h"

static pln_status check_channels(const pln_infer *call, uint32_t w_arg,
                                 const pln_shape *x, const pln_shape *w) {
  int64_t group = pln_call_int(call, "group", 1);
  pln_dim wanted;
  if (group < 1)
    return pln_call_error(call, "group must be positive");
  PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, w->dims[1], group, &wanted));
  if (!PLN_DIM_IS_CONST(wanted) || !PLN_DIM_IS_CONST(x->dims[1]) ||
      wanted == x->dims[1])
    return PLN_OK;
  return pln_arg_error(call, w_arg, "expected %lld channels, got %lld",
                       (long long)wanted, (long long)x->dims[1]);
}

pln_status pln_infer_conv_shape(const pln_infer *call, uint32_t x_arg,
                                uint32_t w_arg, pln_shape *out) {
  pln_shape x, w;
  pln_extents window;
  PLN_TRY(pln_arg_expect_rank_within(call, x_arg, 3, INT32_MAX));
  PLN_TRY(pln_arg_expect_rank_within(call, w_arg, 3, INT32_MAX));
  pln_arg_shape(call, x_arg, &x);
  pln_arg_shape(call, w_arg, &w);
  if (x.rank < 0)
    pln_shape_ranked(&x, w.rank);
  pln_shape_unknown(out);
  if (x.rank < 0)
    return PLN_OK;
  PLN_TRY(pln_arg_expect_rank(call, w_arg, x.rank));
  pln_window_extents(call, w_arg, &window);
  PLN_TRY(pln_window_slide(call, &x, &window, out));
  out->dims[0] = x.dims[0];
  if (w.rank < 0)
    return PLN_OK;
  out->dims[1] = w.dims[0];
  return check_channels(call, w_arg, &x, &w);
}

pln_status pln_infer_conv(pln_infer *call) {
  pln_dtype dtype;
  pln_shape shape;
  PLN_TRY(pln_args_one_dtype(call, 0, 3, &dtype));
  PLN_TRY(pln_infer_conv_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, dtype, &shape);
}

/* (x, w, offset, bias, mask) */
pln_status pln_infer_deform_conv(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_conv_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

pln_status pln_infer_conv_transpose(pln_infer *call) {
  pln_dtype dtype;
  pln_shape x, w, out;
  pln_extents window;
  int64_t group = pln_call_int(call, "group", 1);
  if (group < 1)
    return pln_call_error(call, "group must be positive");
  PLN_TRY(pln_args_one_dtype(call, 0, 3, &dtype));
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 3, INT32_MAX));
  PLN_TRY(pln_arg_expect_rank_within(call, 1, 3, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &w);
  pln_shape_unknown(&out);
  if (x.rank < 0)
    return pln_result_tensor(call, 0, dtype, &out);
  PLN_TRY(pln_arg_expect_rank(call, 1, x.rank));
  pln_window_extents(call, 1, &window);
  PLN_TRY(pln_window_unslide(call, &x, &window, &out));
  out.dims[0] = x.dims[0];
  if (w.rank >= 0)
    PLN_TRY(pln_infer_same_dim(call, 0, &x.dims[1], w.dims[0]));
  if (w.rank >= 0)
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, w.dims[1], group, &out.dims[1]));
  return pln_result_tensor(call, 0, dtype, &out);
}

/* (input, weights, bias, state): the input's type, and a state one element
 * shorter than the window. */
pln_status pln_infer_causal_conv(pln_infer *call) {
  pln_dtype dtype;
  pln_shape x, w, state;
  PLN_TRY(pln_args_one_dtype(call, 0, 4, &dtype));
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  PLN_TRY(pln_arg_expect_rank(call, 1, 3));
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &w);
  pln_shape_ranked(&state, 3);
  if (w.rank == 3) {
    state.dims[1] = w.dims[0];
    PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, w.dims[2], 1, &state.dims[2]));
  }
  if (x.rank == 3) {
    if (w.rank == 3)
      PLN_TRY(pln_infer_same_dim(call, 1, &x.dims[1], w.dims[0]));
    state.dims[0] = x.dims[0];
    state.dims[1] = x.dims[1];
  }
  PLN_TRY(pln_result_tensor(call, 0, dtype, &x));
  return pln_result_tensor(call, 1, dtype, &state);
}

/* (batch, channels * window, positions) to (batch, channels, image). */
pln_status pln_infer_col2im(pln_infer *call) {
  pln_list image = pln_arg_list(call, 1, NULL);
  pln_list block = pln_arg_list(call, 2, NULL);
  pln_dim size = 1;
  pln_shape x, out;
  pln_arg_shape(call, 0, &x);
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  pln_shape_ranked(&out, image.sized ? (int64_t)image.count + 2 : -1);
  if (out.rank < 0 || x.rank < 0)
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
  out.dims[0] = x.dims[0];
  for (uint32_t i = 0; i < image.count; i++)
    out.dims[i + 2] = pln_list_at(&image, i);
  for (uint32_t i = 0; i < block.count; i++)
    PLN_TRY(
        pln_infer_dim(call, PLN_DIM_MUL, size, pln_list_at(&block, i), &size));
  if (block.sized)
    PLN_TRY(
        pln_infer_dim(call, PLN_DIM_FLOORDIV, x.dims[1], size, &out.dims[1]));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}
