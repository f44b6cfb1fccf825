/* microsoft.c: type inference of ONNX Runtime's own operators, domain
 * com.microsoft. Called through ops.def; the kernels are in kernel/microsoft/.
 *
 *     FusedMatMul<transA=1>((8, 2, 3), (8, 2, 5))   =>   (8, 3, 5)
 *
 * Semantics: ONNX Runtime's contrib operators (docs/ContribOperators.md). */

#include "op/infer/matmul.h"
#include "op/infer/window.h"

/* Operands behind an optional one that must be there. */
static pln_status require(const pln_infer *call, uint32_t n,
                          const uint32_t *operands) {
  for (uint32_t i = 0; i < n; i++)
    if (pln_arg_absent(call, operands[i]))
      return pln_arg_error(call, operands[i], "is missing");
  return PLN_OK;
}

/* ------------------------------------------------------------- activations */

/* Operands added to operand 0, whose type is the result's. */
pln_status pln_infer_biased(pln_infer *call) {
  pln_dtype dtype;
  PLN_TRY(pln_args_one_dtype(call, 0, call->n_args, &dtype));
  pln_result_like(call, 0, 0);
  return PLN_OK;
}

/* Half as many columns. */
pln_status pln_infer_bias_split_gelu(pln_infer *call) {
  pln_dtype dtype;
  pln_shape x;
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &dtype));
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  if (x.rank > 0)
    PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, x.dims[x.rank - 1], 2,
                          &x.dims[x.rank - 1]));
  return pln_result_tensor(call, 0, dtype, &x);
}

/* ---------------------------------------------------------------- products */

static void swap_dims(pln_dim *a, pln_dim *b) {
  pln_dim kept = *a;
  *a = *b;
  *b = kept;
}

/* The operand of FusedMatMul as its product takes it. */
static void transpose_operand(const pln_infer *call, uint32_t arg,
                              const char *batch, const char *last,
                              pln_shape *x) {
  pln_arg_shape(call, arg, x);
  if (x->rank < 2)
    return;
  if (pln_call_int(call, batch, 0))
    for (int32_t i = 0; i + 2 < x->rank; i++)
      swap_dims(&x->dims[i], &x->dims[i + 1]);
  if (pln_call_int(call, last, 0))
    swap_dims(&x->dims[x->rank - 2], &x->dims[x->rank - 1]);
}

pln_status pln_infer_fused_matmul(pln_infer *call) {
  pln_dtype dtype;
  pln_shape a, b, out;
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &dtype));
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, INT32_MAX));
  PLN_TRY(pln_arg_expect_rank_within(call, 1, 1, INT32_MAX));
  transpose_operand(call, 0, "transBatchA", "transA", &a);
  transpose_operand(call, 1, "transBatchB", "transB", &b);
  pln_shape_unknown(&out);
  if (a.rank > 0 && b.rank > 0)
    PLN_TRY(pln_infer_multiply_shapes(call, 1, &a, &b, &out));
  return pln_result_tensor(call, 0, dtype, &out);
}

/* (x, weights, bias) */
pln_status pln_infer_gemm_fast_gelu(pln_infer *call) {
  pln_dtype dtype;
  pln_shape shape;
  PLN_TRY(pln_args_one_dtype(call, 0, 3, &dtype));
  PLN_TRY(pln_infer_product_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, dtype, &shape);
}

/* (x, weights, bias, summand) */
pln_status pln_infer_fused_conv(pln_infer *call) {
  pln_dtype dtype;
  pln_shape shape;
  PLN_TRY(pln_args_one_dtype(call, 0, 4, &dtype));
  PLN_TRY(pln_infer_conv_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, dtype, &shape);
}

/* (a, b, scale of a, scale of b, zero of a, zero of b, bias) */
pln_status pln_infer_matmul_integer_to_float(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_product_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 2), &shape);
}

/* (a, b, scale of b, zero of b, bias) */
pln_status pln_infer_dynamic_quantize_matmul(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_product_shape(call, 0, 1, &shape));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

/* (a, scale, zero, b, scale, zero, c, scale of y, zero of y) */
pln_status pln_infer_qgemm(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_infer_gemm_shape(call, 0, 3, &shape));
  pln_dtype dtype =
      pln_arg_absent(call, 7) ? pln_arg_dtype(call, 1) : pln_arg_dtype(call, 8);
  return pln_result_tensor(call, 0, dtype, &shape);
}

/* A product with packed weights of N rows and K columns. */
pln_status pln_infer_packed_matmul(pln_infer *call) {
  int64_t n = pln_call_int(call, "N", 0), k = pln_call_int(call, "K", 0);
  pln_shape x;
  if (n < 1 || k < 1 || !PLN_DIM_IS_CONST(n) || !PLN_DIM_IS_CONST(k))
    return pln_call_error(call,
                          "N is %lld and K is %lld; both must be positive",
                          (long long)n, (long long)k);
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  if (x.rank > 0) {
    pln_dim *last = &x.dims[x.rank - 1];
    PLN_TRY(pln_infer_same_dim(call, 0, last, k));
    *last = n;
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &x);
}

/* (x, router_probs, weights...): x has a row for each token, router_probs too.
 */
static pln_status infer_experts(pln_infer *call, uint32_t second) {
  pln_dtype dtype;
  PLN_TRY(require(call, 1, &second));
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &dtype));
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 2, 3));
  PLN_TRY(pln_arg_expect_rank(call, 1, 2));
  PLN_TRY(pln_arg_expect_rank(call, 2, 3));
  PLN_TRY(pln_arg_expect_rank(call, second, 3));
  pln_result_like(call, 0, 0);
  return PLN_OK;
}

pln_status pln_infer_mixture_of_experts(pln_infer *call) {
  return infer_experts(call, 4);
}

pln_status pln_infer_quantised_mixture_of_experts(pln_infer *call) {
  return infer_experts(call, 5);
}

/* (data, indices, scales, zeros): the data's shape with the gathered axis
 * replaced; bytes hold two elements of 4 bits. */
pln_status pln_infer_gather_block_quantized(pln_infer *call) {
  pln_shape data, index, out;
  int32_t axis, at = 0;
  pln_arg_shape(call, 0, &data);
  pln_arg_shape(call, 1, &index);
  pln_shape_unknown(&out);
  if (data.rank > 0)
    PLN_TRY(pln_call_axis(call, pln_call_int(call, "gather_axis", 0), data.rank,
                          &axis));
  if (data.rank > 0 && index.rank >= 0 &&
      data.rank + index.rank <= PLN_MAX_RANK) {
    pln_dim *last = &data.dims[data.rank - 1];
    if (pln_arg_dtype(call, 0) == PLN_UINT8 &&
        pln_call_int(call, "bits", 4) == 4)
      PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, *last, 2, last));
    pln_shape_ranked(&out, data.rank - 1 + index.rank);
    for (int32_t i = 0; i < data.rank; i++) {
      for (int32_t k = 0; i == axis && k < index.rank; k++)
        out.dims[at++] = index.dims[k];
      if (i != axis)
        out.dims[at++] = data.dims[i];
    }
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 2), &out);
}

/* ----------------------------------------------------------- normalisation */

static pln_status result_statistics(pln_infer *call, uint32_t from) {
  pln_shape x;
  pln_arg_shape(call, 0, &x);
  if (x.rank > 0)
    x.dims[x.rank - 1] = 1;
  PLN_TRY(pln_result_tensor(call, from, PLN_FLOAT32, &x));
  return pln_result_tensor(call, from + 1, PLN_FLOAT32, &x);
}

/* Results: the norm, mean, inverse deviation, and the sum that is
 * normalised. */
pln_status pln_infer_skip_norm(pln_infer *call) {
  pln_dtype dtype;
  PLN_TRY(pln_args_one_dtype(call, 0, call->n_args, &dtype));
  pln_result_like(call, 0, 0);
  if (call->n_results > 3)
    pln_result_like(call, 3, 0);
  return result_statistics(call, 1);
}

/* Results: the norm and the inverse deviation. */
pln_status pln_infer_simplified_norm(pln_infer *call) {
  pln_shape s;
  int32_t axis;
  pln_arg_shape(call, 0, &s);
  pln_result_like(call, 0, 0);
  if (s.rank > 0) {
    PLN_TRY(pln_call_axis(call, pln_call_int(call, "axis", -1), s.rank, &axis));
    for (int32_t i = axis; i < s.rank; i++)
      s.dims[i] = 1;
  }
  return pln_result_tensor(call, 1, PLN_FLOAT32, &s);
}

/* (ids, segments, words, positions, ...). Results: the norm, the mask's sums,
 * the embedding. */
static pln_status infer_embedding(pln_infer *call, pln_dtype dtype) {
  pln_shape ids, words, out;
  PLN_TRY(pln_arg_expect_rank(call, 0, 2));
  PLN_TRY(pln_arg_expect_rank(call, 2, 2));
  PLN_TRY(pln_arg_expect_rank(call, 3, 2));
  pln_arg_shape(call, 0, &ids);
  pln_arg_shape(call, 2, &words);
  pln_shape_ranked(&out, 3);
  if (ids.rank == 2) {
    out.dims[0] = ids.dims[0];
    out.dims[1] = ids.dims[1];
  }
  if (words.rank == 2)
    out.dims[2] = words.dims[1];
  pln_shape counts = {1, {out.dims[0]}};
  PLN_TRY(pln_result_tensor(call, 0, dtype, &out));
  PLN_TRY(pln_result_tensor(call, 1, PLN_INT32, &counts));
  return pln_result_tensor(call, 2, dtype, &out);
}

/* (ids, segments, words, positions, segment table, gamma, beta, mask,
 * position ids) */
pln_status pln_infer_embed_layer_norm(pln_infer *call) {
  static const uint32_t required[] = {2, 3, 5, 6};
  PLN_TRY(require(call, PLN_COUNT(required), required));
  return infer_embedding(call, pln_arg_dtype(call, 2));
}

/* (ids, segments, words, positions, segment table, gamma, beta, mask), the
 * scales of the five tables, their zero points. */
pln_status pln_infer_qembed_layer_norm(pln_infer *call) {
  static const uint32_t required[] = {2, 3, 5, 6, 8, 9, 11, 12, 13, 14, 16, 17};
  PLN_TRY(require(call, PLN_COUNT(required), required));
  return infer_embedding(call, pln_arg_dtype(call, 8));
}

/* --------------------------------------------------------------- attention */

/* The extent of an axis of a tensor of that rank, else unknown. */
static pln_dim extent_of(const pln_infer *call, uint32_t arg, int32_t rank,
                         int32_t axis) {
  return pln_arg_rank(call, arg) == rank ? pln_arg_dims(call, arg)[axis]
                                         : (pln_dim)PLN_DIM_UNKNOWN;
}

static pln_status check_heads(const pln_infer *call, const char *name) {
  int64_t n = pln_call_int(call, name, 0);
  if (n > 0 && PLN_DIM_IS_CONST(n))
    return PLN_OK;
  return pln_call_error(call, "%s is %lld, not positive", name, (long long)n);
}

/* Columns of the values: attribute qkv_hidden_sizes, else a third of the
 * weights'. */
static pln_status value_columns(const pln_infer *call, pln_dim *out) {
  uint32_t n;
  const int64_t *sizes = pln_call_ints(call, "qkv_hidden_sizes", &n);
  if (sizes && n == 3 && PLN_DIM_IS_CONST(sizes[2])) {
    *out = sizes[2];
    return PLN_OK;
  }
  return pln_infer_dim(call, PLN_DIM_FLOORDIV, extent_of(call, 1, 2, 1), 3,
                       out);
}

/* Keys and values in one tensor: (2, batch, heads, past and new steps, size).
 */
static pln_status result_pair(pln_infer *call, uint32_t past, pln_dim columns) {
  int64_t heads = pln_call_int(call, "num_heads", 1);
  pln_dim steps = extent_of(call, 0, 3, 1);
  pln_shape pair = {
      5, {2, extent_of(call, 0, 3, 0), heads, steps, PLN_DIM_UNKNOWN}};
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, columns, heads, &pair.dims[4]));
  if (pln_call_int(call, "past_present_share_buffer", 0))
    pair.dims[3] = extent_of(call, past, 5, 3);
  else if (!pln_arg_absent(call, past))
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, steps, extent_of(call, past, 5, 3),
                          &pair.dims[3]));
  return pln_result_tensor(call, 1,
                           call->n_results > 1 ? pln_arg_dtype(call, 2)
                                               : (pln_dtype)PLN_DTYPE_NONE,
                           &pair);
}

static pln_status infer_self_attention(pln_infer *call, pln_dtype dtype,
                                       uint32_t past) {
  pln_dim columns;
  PLN_TRY(check_heads(call, "num_heads"));
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  PLN_TRY(pln_arg_expect_rank(call, 1, 2));
  PLN_TRY(value_columns(call, &columns));
  pln_shape out = {
      3, {extent_of(call, 0, 3, 0), extent_of(call, 0, 3, 1), columns}};
  PLN_TRY(pln_result_tensor(call, 0, dtype, &out));
  return result_pair(call, past, columns);
}

/* (input, weights, bias, mask, past, attention bias, past length) */
pln_status pln_infer_packed_attention(pln_infer *call) {
  return infer_self_attention(call, pln_arg_dtype(call, 0), 4);
}

/* (input, weights, bias, scale of the input, scale of the weights, mask, zero
 * of the input, zero of the weights, past) */
pln_status pln_infer_qattention(pln_infer *call) {
  return infer_self_attention(call, pln_arg_dtype(call, 3), 8);
}

/* Columns of the result, from the operand that holds the values. */
static pln_status joined_columns(const pln_infer *call, pln_dim *out) {
  uint32_t arg = !pln_arg_absent(call, 2) ? 2 : !pln_arg_absent(call, 1);
  int32_t rank = pln_arg_rank(call, arg);
  const pln_dim *dims = rank > 0 ? pln_arg_dims(call, arg) : NULL;
  *out = rank == 3 ? dims[2] : (pln_dim)PLN_DIM_UNKNOWN;
  if (rank == 4)
    return pln_infer_dim(call, PLN_DIM_MUL, dims[1], dims[3], out);
  if (rank == 5)
    return pln_infer_dim(call, PLN_DIM_MUL, dims[2], dims[4], out);
  return PLN_OK;
}

/* (query, key, value, bias, padding mask, attention bias, past key, past
 * value) */
pln_status pln_infer_multi_head_attention(pln_infer *call) {
  pln_shape out, cache;
  pln_dtype dtype = pln_arg_dtype(call, 0);
  PLN_TRY(check_heads(call, "num_heads"));
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 3, 5));
  pln_shape_ranked(&out, 3);
  if (pln_arg_rank(call, 0) > 0) {
    out.dims[0] = pln_arg_dims(call, 0)[0];
    out.dims[1] = pln_arg_dims(call, 0)[1];
  }
  PLN_TRY(joined_columns(call, &out.dims[2]));
  pln_shape_ranked(&cache, 4);
  cache.dims[0] = out.dims[0];
  cache.dims[1] = pln_call_int(call, "num_heads", 1);
  PLN_TRY(pln_result_tensor(call, 0, dtype, &out));
  PLN_TRY(pln_result_tensor(call, 1, dtype, &cache));
  PLN_TRY(pln_result_tensor(call, 2, dtype, &cache));
  pln_shape_ranked(&cache, 4);
  return pln_result_tensor(call, 3, dtype, &cache);
}

/* Columns of the queries; without keys, operand 0 holds all three. */
static pln_status query_columns(const pln_infer *call, pln_dim *out) {
  int64_t q = pln_call_int(call, "num_heads", 1), all;
  *out = extent_of(call, 0, 3, 2);
  if (!pln_arg_absent(call, 1))
    return PLN_OK;
  if (__builtin_mul_overflow(pln_call_int(call, "kv_num_heads", 1), 2, &all) ||
      __builtin_add_overflow(all, q, &all) || !PLN_DIM_IS_CONST(all))
    return pln_call_error(call, "kv_num_heads is too large");
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, *out, all, out));
  return pln_infer_dim(call, PLN_DIM_MUL, *out, q, out);
}

/* (query, key, value, past key, past value, lengths, total length, cosines,
 * sines, positions, bias, sink). How long the present keys are depends on
 * values. */
pln_status pln_infer_group_query_attention(pln_infer *call) {
  pln_dtype dtype = pln_arg_dtype(call, 0);
  int64_t heads = pln_call_int(call, "num_heads", 1);
  pln_dim columns, size;
  static const uint32_t required[] = {5, 6};
  PLN_TRY(require(call, PLN_COUNT(required), required));
  PLN_TRY(check_heads(call, "num_heads"));
  PLN_TRY(check_heads(call, "kv_num_heads"));
  PLN_TRY(pln_arg_expect_rank(call, 0, 3));
  PLN_TRY(query_columns(call, &columns));
  PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, columns, heads, &size));
  pln_shape out = {
      3, {extent_of(call, 0, 3, 0), extent_of(call, 0, 3, 1), columns}};
  pln_shape cache = {4,
                     {out.dims[0], pln_call_int(call, "kv_num_heads", 1),
                      PLN_DIM_UNKNOWN, size}};
  PLN_TRY(pln_result_tensor(call, 0, dtype, &out));
  PLN_TRY(pln_result_tensor(call, 1, dtype, &cache));
  PLN_TRY(pln_result_tensor(call, 2, dtype, &cache));
  pln_shape_ranked(&cache, 4);
  return pln_result_tensor(call, 3, dtype, &cache);
}

/* --------------------------------------------------------------- quantised */

/* (x, scale, zero, scale of y, zero of y): element by element. */
pln_status pln_infer_qlinear_unary(pln_infer *call) {
  static const uint32_t required[] = {3};
  PLN_TRY(require(call, PLN_COUNT(required), required));
  pln_result_like(call, 0, 0);
  return PLN_OK;
}

/* (a, scale, zero, b, scale, zero, scale of c, zero of c) */
pln_status pln_infer_qlinear_binary(pln_infer *call) {
  static const uint32_t required[] = {3, 4, 6};
  PLN_TRY(require(call, PLN_COUNT(required), required));
  pln_shape a, b;
  pln_arg_shape(call, 0, &a);
  pln_arg_shape(call, 3, &b);
  PLN_TRY(pln_infer_broadcast_shape(call, 3, &a, &b));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &a);
}

/* (condition, x, scale, zero, y, scale, zero, scale of z, zero of z) */
pln_status pln_infer_qlinear_where(pln_infer *call) {
  pln_shape out, x, y;
  pln_arg_shape(call, 0, &out);
  pln_arg_shape(call, 1, &x);
  pln_arg_shape(call, 4, &y);
  PLN_TRY(pln_infer_broadcast_shape(call, 1, &out, &x));
  PLN_TRY(pln_infer_broadcast_shape(call, 4, &out, &y));
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 1), &out);
}

/* (scale of y, zero of y, then x, scale, zero of each operand) */
pln_status pln_infer_qlinear_concat(pln_infer *call) {
  pln_shape out, x;
  int32_t axis;
  pln_arg_shape(call, 2, &out);
  for (uint32_t i = 5; i < call->n_args; i += 3) {
    pln_arg_shape(call, i, &x);
    if (x.rank < 0)
      pln_shape_unknown(&out);
    if (out.rank < 0)
      break;
    PLN_TRY(pln_arg_expect_rank(call, i, out.rank));
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", 0), out.rank, &axis));
    for (int32_t d = 0; d < out.rank; d++)
      if (d != axis)
        PLN_TRY(pln_infer_same_dim(call, i, &out.dims[d], x.dims[d]));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, out.dims[axis], x.dims[axis],
                          &out.dims[axis]));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 1), &out);
}

/* Moves the last axis to place 1, or back. */
static void move_channels(pln_shape *x, bool to_second) {
  for (int32_t i = 1; i + 1 < x->rank; i++) {
    int32_t at = to_second ? x->rank - 1 - i : i;
    swap_dims(&x->dims[at], &x->dims[at + 1]);
  }
}

static pln_status slide_window(pln_infer *call, bool channels_last) {
  pln_shape x, out;
  pln_extents window;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 3, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  pln_shape_unknown(&out);
  if (channels_last)
    move_channels(&x, true);
  pln_window_extents(call, PLN_NONE, &window);
  if (x.rank > 0) {
    PLN_TRY(pln_window_slide(call, &x, &window, &out));
    out.dims[0] = x.dims[0];
    out.dims[1] = x.dims[1];
  }
  if (channels_last)
    move_channels(&out, false);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_infer_qlinear_average_pool(pln_infer *call) {
  return slide_window(call, pln_call_int(call, "channels_last", 0) != 0);
}

pln_status pln_infer_nhwc_max_pool(pln_infer *call) {
  return slide_window(call, true);
}

pln_status pln_infer_qlinear_global_average_pool(pln_infer *call) {
  bool last = pln_call_int(call, "channels_last", 0) != 0;
  pln_shape x;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 3, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  for (int32_t i = 2; i < x.rank; i++)
    x.dims[i - last] = 1;
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &x);
}

/* Attribute axes, all of them if it is empty. */
static pln_status reduce_shape(const pln_infer *call, pln_shape *x) {
  uint32_t n = 0;
  const int64_t *axes = pln_call_ints(call, "axes", &n);
  bool keep = pln_call_int(call, "keepdims", 1) != 0, gone[PLN_MAX_RANK] = {0};
  int32_t axis, rank = 0;
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(pln_call_axis(call, axes[i], x->rank, &axis));
    gone[axis] = true;
  }
  for (int32_t i = 0; i < x->rank; i++) {
    bool drop = gone[i] || !axes || n == 0;
    if (!drop || keep)
      x->dims[rank++] = drop ? 1 : x->dims[i];
  }
  x->rank = rank;
  return PLN_OK;
}

static pln_status reduce_to(pln_infer *call, pln_dtype dtype) {
  pln_shape x;
  pln_arg_shape(call, 0, &x);
  if (x.rank >= 0)
    PLN_TRY(reduce_shape(call, &x));
  return pln_result_tensor(call, 0, dtype, &x);
}

pln_status pln_infer_qlinear_reduce_mean(pln_infer *call) {
  return reduce_to(call, pln_arg_dtype(call, 0));
}

pln_status pln_infer_reduce_sum_integer(pln_infer *call) {
  return reduce_to(call, PLN_INT32);
}

/* As qlinear_conv; with channels_last, images are (batch, space...,
 * channels). */
pln_status pln_infer_qlinear_conv_layout(pln_infer *call) {
  pln_shape x, w, out;
  pln_extents window;
  if (!pln_call_int(call, "channels_last", 0))
    return pln_infer_qlinear_conv(call);
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 3, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  pln_arg_shape(call, 3, &w);
  pln_shape_unknown(&out);
  move_channels(&x, true);
  pln_window_extents(call, 3, &window);
  if (x.rank > 0) {
    PLN_TRY(pln_window_slide(call, &x, &window, &out));
    out.dims[0] = x.dims[0];
    out.dims[1] = w.rank > 0 ? w.dims[0] : (pln_dim)PLN_DIM_UNKNOWN;
  }
  move_channels(&out, false);
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 7), &out);
}

/* ------------------------------------------------------------------ others */

/* (a, b): distances of each row of a to each row of b. */
pln_status pln_infer_cdist(pln_infer *call) {
  pln_dtype dtype;
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &dtype));
  PLN_TRY(pln_arg_expect_rank(call, 0, 2));
  PLN_TRY(pln_arg_expect_rank(call, 1, 2));
  pln_shape out = {2, {extent_of(call, 0, 2, 0), extent_of(call, 1, 2, 0)}};
  return pln_result_tensor(call, 0, dtype, &out);
}
