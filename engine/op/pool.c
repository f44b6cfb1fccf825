/* pool.c: the types of pooling. Called through ops.def. Operands are (batch,
 * channels, space...). */

#include "op/window.h"

pln_status pln_infer_pool(pln_infer *call) {
  pln_shape x, out;
  pln_extents window;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 3, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  pln_window_extents(call, PLN_NONE, &window);
  if (x.rank < 0)
    pln_shape_ranked(&x, window.rank < 0 ? -1 : (int64_t)window.rank + 2);
  pln_shape_unknown(&out);
  if (x.rank >= 0) {
    PLN_TRY(pln_window_slide(call, &x, &window, &out));
    out.dims[0] = x.dims[0];
    out.dims[1] = x.dims[1];
  }
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out));
  return pln_result_tensor(call, 1, PLN_INT64, &out); /* of max_pool */
}

pln_status pln_infer_global_pool(pln_infer *call) {
  pln_shape s;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 2, INT32_MAX));
  pln_arg_shape(call, 0, &s);
  for (int32_t i = 2; i < s.rank; i++)
    s.dims[i] = 1;
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &s);
}

pln_status pln_infer_max_unpool(pln_infer *call) {
  pln_list shape = pln_arg_list(call, 2, NULL);
  pln_shape x, out;
  pln_extents window;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 3, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  pln_shape_ranked(&out, x.rank);
  if (x.rank < 0)
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
  if (!shape.given) {
    pln_window_extents(call, PLN_NONE, &window);
    PLN_TRY(pln_window_unslide(call, &x, &window, &out));
    out.dims[0] = x.dims[0];
    out.dims[1] = x.dims[1];
  } else if (shape.sized && shape.count == (uint32_t)x.rank) {
    for (uint32_t i = 0; i < shape.count; i++)
      out.dims[i] = pln_list_at(&shape, i);
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_infer_max_roi_pool(pln_infer *call) {
  uint32_t n;
  const int64_t *pooled = pln_call_ints(call, "pooled_shape", &n);
  pln_shape x, rois, out;
  PLN_TRY(pln_arg_expect_rank(call, 0, 4));
  PLN_TRY(pln_arg_expect_rank(call, 1, 2));
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 1, &rois);
  pln_shape_ranked(&out, 4);
  if (rois.rank == 2)
    out.dims[0] = rois.dims[0];
  if (x.rank == 4)
    out.dims[1] = x.dims[1];
  for (uint32_t i = 0; pooled && n == 2 && i < 2; i++)
    if (PLN_DIM_IS_CONST(pooled[i]))
      out.dims[2 + i] = pooled[i];
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}
