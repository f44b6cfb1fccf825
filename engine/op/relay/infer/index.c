/* index.c: type inference of Relay's operators on indices: argwhere,
 * unravel_index, searchsorted, sparse_to_dense, gather_nd, sliding windows,
 * dilation. Called through ops.def; the kernels are in
 * relay/kernel/indexing.c. */

#include "op/infer/infer.h"
#include "op/relay/form.h"

/* One row of coordinates per nonzero element. */
pln_status pln_infer_argwhere(pln_infer *call) {
  pln_shape out = {.rank = 2, .dims = {PLN_DIM_UNKNOWN, PLN_DIM_UNKNOWN}};
  int32_t rank = pln_arg_rank(call, 0);
  if (rank >= 0)
    out.dims[1] = rank;
  return pln_result_tensor(call, 0, PLN_INT32, &out);
}

/* (indices, shape): one coordinate per axis of the shape. */
pln_status pln_infer_unravel_index(pln_infer *call) {
  pln_shape indices, out;
  PLN_TRY(pln_arg_expect_rank(call, 1, 1));
  pln_arg_shape(call, 0, &indices);
  pln_shape_ranked(&out, indices.rank < 0 ? -1 : (int64_t)indices.rank + 1);
  for (int32_t i = 0; i < indices.rank && out.rank > 0; i++)
    out.dims[i + 1] = indices.dims[i];
  if (out.rank > 0 && pln_arg_rank(call, 1) == 1)
    out.dims[0] = pln_arg_dims(call, 1)[0];
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* (sorted, values): one position per value. */
pln_status pln_infer_searchsorted(pln_infer *call) {
  return pln_result_shaped_like(call, 0, 1,
                                pln_call_dtype(call, "dtype", PLN_INT32));
}

pln_status pln_infer_sparse_to_dense(pln_infer *call) {
  pln_list list = pln_arg_list(call, PLN_NONE, "output_shape");
  pln_shape out;
  pln_shape_ranked(&out, list.given ? (int64_t)list.count : -1);
  for (int32_t i = 0; i < out.rank; i++)
    out.dims[i] = pln_list_at(&list, (uint32_t)i);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 1), &out);
}

/* Indices are (m, batch..., rest...). A vector of m indices selects a slice of
 * the axes after the batch axes, which data and indices share. */
pln_status pln_infer_relay_gather_nd(pln_infer *call) {
  pln_shape data, indices, out = {.rank = 0};
  int64_t batch = pln_call_int(call, "batch_dims", 0);
  pln_arg_shape(call, 0, &data);
  pln_arg_shape(call, 1, &indices);
  if (data.rank >= 0 && (batch < 0 || batch > data.rank))
    return pln_call_error(call, "batch_dims is %lld, of %d axes",
                          (long long)batch, data.rank);
  bool known =
      data.rank >= 0 && indices.rank > 0 && PLN_DIM_IS_CONST(indices.dims[0]);
  int64_t behind = known ? indices.dims[0] + batch : 0;
  if (!known || behind < 0 || data.rank + indices.rank > PLN_MAX_RANK) {
    pln_shape_unknown(&out);
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
  }
  if (behind > data.rank)
    return pln_arg_error(call, 1, "names %lld axes of %d", (long long)behind,
                         data.rank);
  for (int32_t i = 1; i < indices.rank; i++)
    out.dims[out.rank++] = indices.dims[i];
  for (int64_t i = behind; i < data.rank; i++)
    out.dims[out.rank++] = data.dims[i];
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* Windows over the axes from `axis` on: the window positions, then the window's
 * extents. */
pln_status pln_infer_sliding_window(pln_infer *call) {
  pln_list window = pln_arg_list(call, PLN_NONE, "window_shape");
  pln_list strides = pln_arg_list(call, PLN_NONE, "strides");
  pln_shape in, out;
  int32_t axis = 0;
  pln_arg_shape(call, 0, &in);
  if (in.rank > 0)
    PLN_TRY(pln_call_axis(call, pln_call_int(call, "axis", 0), in.rank, &axis));
  uint32_t n = in.rank < 0 ? 0 : (uint32_t)(in.rank - axis);
  if (in.rank >= 0 && (window.count != n || strides.count != n))
    return pln_call_error(call, "expected a window of %u axes", n);
  pln_shape_ranked(&out, in.rank < 0 ? -1 : (int64_t)in.rank + n);
  if (out.rank < 0)
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
  memcpy(out.dims, in.dims, (size_t)axis * sizeof *out.dims);
  for (uint32_t i = 0; i < n; i++) {
    pln_dim *dim = &out.dims[(uint32_t)axis + i];
    int64_t step = pln_list_at(&strides, i);
    if (step < 1)
      return pln_call_error(call, "stride %lld", (long long)step);
    PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, in.dims[(uint32_t)axis + i],
                          pln_list_at(&window, i), dim));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, *dim, step, dim));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *dim, 1, dim));
    out.dims[(uint32_t)in.rank + i] = pln_list_at(&window, i);
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* (extent - 1) * stride + 1 along each axis. */
pln_status pln_infer_dilate(pln_infer *call) {
  pln_list strides = pln_arg_list(call, PLN_NONE, "strides");
  pln_shape shape;
  pln_arg_shape(call, 0, &shape);
  for (int32_t i = 0; i < shape.rank; i++) {
    pln_dim *dim = &shape.dims[i];
    pln_dim by =
        (uint32_t)i < strides.count ? pln_list_at(&strides, (uint32_t)i) : 1;
    PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, *dim, 1, dim));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, *dim, by, dim));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *dim, 1, dim));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

/* The extent of a grid's axis: the length of its coordinate vector; 1 for a
 * scalar. */
static pln_status grid_axis(const pln_infer *call, uint32_t i, pln_dim *out) {
  int32_t rank = pln_arg_rank(call, i);
  PLN_TRY(pln_arg_expect_rank_within(call, i, 0, 1));
  *out = rank == 1 ? pln_arg_dims(call, i)[0] : rank == 0 ? 1 : PLN_DIM_UNKNOWN;
  return PLN_OK;
}

/* A tuple of tensors with the shape of the grid, one per axis. */
static pln_status infer_grid(pln_infer *call) {
  pln_type grid, types[PLN_MAX_RANK];
  uint32_t n = call->n_args;
  pln_dtype dtype;
  pln_shape shape;
  if (n < 1 || n > PLN_MAX_RANK)
    return pln_call_error(call, "expected 1 to %d axes, got %u", PLN_MAX_RANK,
                          n);
  PLN_TRY(pln_args_one_dtype(call, 0, n, &dtype));
  pln_shape_ranked(&shape, n);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(grid_axis(call, i, &shape.dims[i]));
  if (n >= 2 && pln_call_string_is(call, "indexing", "ij", "xy")) {
    pln_dim rows = shape.dims[1];
    shape.dims[1] = shape.dims[0];
    shape.dims[0] = rows;
  }
  PLN_TRY(pln_type_tensor(call->engine, dtype, shape.rank, shape.dims, &grid));
  for (uint32_t i = 0; i < n; i++)
    types[i] = grid;
  return pln_type_make(call->engine, PLN_TYPE_TUPLE, 0, n, types,
                       &call->results[0]);
}

pln_status pln_infer_meshgrid(pln_infer *call) {
  return pln_infer_spread(call, infer_grid);
}
