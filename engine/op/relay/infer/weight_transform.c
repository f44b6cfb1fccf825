/* weight_transform.c: type inference of Relay's operators that transform
 * weights for a convolution algorithm: tiles, Winograd transforms, packed bits.
 * Called through ops.def. */

#include "op/infer/infer.h"

/* Reads attribute `name`, a small positive number. `fallback` 0: it is
 * required. */
static pln_status size_of(const pln_infer *call, const char *name,
                          int64_t fallback, int64_t *out) {
  *out = pln_call_int(call, name, fallback);
  if (*out < 1 || *out > INT16_MAX)
    return pln_call_error(call, "%s is %lld, expected 1 to %d", name,
                          (long long)*out, INT16_MAX);
  return PLN_OK;
}

/* Reads the weight, which has `rank` axes with possibly unknown extents. */
static pln_status read_weight(const pln_infer *call, int32_t rank,
                              pln_shape *w) {
  PLN_TRY(pln_arg_expect_rank(call, 0, rank));
  pln_arg_shape(call, 0, w);
  if (w->rank < 0)
    pln_shape_ranked(w, rank);
  return PLN_OK;
}

/* --------------------------------------------------------------- Winograd's */

/* Axes [first, first + n) of `w` get the extent of a transformed tile, tile +
 * window - 1. */
static pln_status reaches(const pln_infer *call, const pln_shape *w,
                          int32_t first, int32_t n, pln_dim *out) {
  int64_t tile;
  PLN_TRY(size_of(call, "tile_size", 0, &tile));
  for (int32_t i = 0; i < n; i++)
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, w->dims[first + i], tile - 1,
                          &out[i]));
  return PLN_OK;
}

/* (out, in, height, width) to (reach, reach, out, in). */
pln_status pln_infer_winograd_weight(pln_infer *call) {
  pln_shape w, out;
  PLN_TRY(read_weight(call, 4, &w));
  pln_shape_ranked(&out, 4);
  PLN_TRY(reaches(call, &w, 2, 2, out.dims));
  memcpy(&out.dims[2], w.dims, 2 * sizeof *w.dims);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* (out, in, depth, height, width) to the reaches, out, in. A depth below 3 or
 * above 7 is not transformed and follows the other two. */
pln_status pln_infer_winograd_weight_3d(pln_infer *call) {
  pln_shape w, out;
  PLN_TRY(read_weight(call, 5, &w));
  pln_shape_ranked(&out, 5);
  pln_dim depth = w.dims[2];
  if (PLN_DIM_IS_CONST(depth) && depth > 2 && depth < 8) {
    PLN_TRY(reaches(call, &w, 2, 3, out.dims));
  } else if (PLN_DIM_IS_CONST(depth)) {
    PLN_TRY(reaches(call, &w, 3, 2, out.dims));
    out.dims[2] = depth;
  }
  memcpy(&out.dims[3], w.dims, 2 * sizeof *w.dims);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* (out, in, height, width): 8 x 8 transforms. */
pln_status pln_infer_nnpack_weight(pln_infer *call) {
  pln_dtype dtype = pln_arg_dtype(call, 0);
  pln_shape w;
  PLN_TRY(read_weight(call, 4, &w));
  w.dims[2] = w.dims[3] = 8;
  return pln_result_tensor(call, 0, pln_call_dtype(call, "out_dtype", dtype),
                           &w);
}

/* -------------------------------------------------------------------- tiles */

/* The number of tiles of `size` that cover the extent. */
static pln_status tiles(const pln_infer *call, pln_dim extent, int64_t size,
                        pln_dim *out) {
  PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, extent, size - 1, out));
  return pln_infer_dim(call, PLN_DIM_FLOORDIV, *out, size, out);
}

/* (height, width, in, out) as a matrix of tiles. The number of tiles along the
 * contracted axis is a multiple of four. Tiles of bytes are transposed. */
pln_status pln_infer_gemm_weight(pln_infer *call) {
  pln_dtype dtype = pln_arg_dtype(call, 0);
  bool bytes = dtype == PLN_INT8 || dtype == PLN_UINT8;
  int64_t n, k;
  pln_dim summed;
  pln_shape w, out;
  PLN_TRY(size_of(call, "tile_N", 0, &n));
  PLN_TRY(size_of(call, "tile_K", 0, &k));
  PLN_TRY(read_weight(call, 4, &w));
  pln_shape_ranked(&out, 4);
  PLN_TRY(pln_infer_product(call, w.dims, 0, 3, &summed));
  PLN_TRY(tiles(call, w.dims[3], n, &out.dims[0]));
  PLN_TRY(tiles(call, summed, 4 * k, &summed));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, summed, 4, &out.dims[1]));
  out.dims[bytes ? 2 : 3] = n;
  out.dims[bytes ? 3 : 2] = k;
  return pln_result_tensor(call, 0, dtype, &out);
}

/* --------------------------------------------------------------------- bits */

/* The packed axis counts words. The bits of each number form an axis of their
 * own, before bit_axis or last; with -1 there is none. */
static pln_status packed_shape(const pln_infer *call, pln_dtype word,
                               const pln_shape *x, pln_shape *out) {
  int64_t axis = pln_call_int(call, "pack_axis", 1);
  int64_t bit_axis = pln_call_int(call, "bit_axis", -1), bits;
  PLN_TRY(size_of(call, "bits", 1, &bits));
  if (axis < 0 || axis >= x->rank)
    return pln_call_error(call, "pack_axis %lld is outside of [0, %d)",
                          (long long)axis, x->rank);
  if (bit_axis < -1 || bit_axis > x->rank)
    return pln_call_error(call, "bit_axis %lld is outside of [-1, %d]",
                          (long long)bit_axis, x->rank);
  out->rank = 0;
  for (int32_t i = 0; i <= x->rank; i++) {
    if (i == bit_axis)
      out->dims[out->rank++] = bits;
    if (i == x->rank)
      break;
    out->dims[out->rank] = x->dims[i];
    if (i == axis)
      PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, x->dims[i],
                            pln_dtype_bits(word), &out->dims[out->rank]));
    out->rank++;
  }
  return PLN_OK;
}

pln_status pln_infer_bitpack(pln_infer *call) {
  pln_dtype word = pln_call_dtype(call, "pack_type", PLN_DTYPE_NONE);
  pln_shape x, out;
  if (pln_dtype_bits(word) == 0)
    return pln_call_error(call, "pack_type is missing");
  pln_arg_shape(call, 0, &x);
  pln_shape_unknown(&out);
  if (x.rank >= 0 && x.rank < PLN_MAX_RANK)
    PLN_TRY(packed_shape(call, word, &x, &out));
  return pln_result_tensor(call, 0, word, &out);
}
