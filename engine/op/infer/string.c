/* string.c: type inference of string operators. Called through ops.def; the
 * kernels are in kernel/string/. */

#include "op/infer/infer.h"

pln_status pln_infer_string_concat(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_args_broadcast(call, 0, 2, &shape));
  return pln_result_tensor(call, 0, PLN_STRING, &shape);
}

/* Results: the parts along a new last axis, and their number. */
pln_status pln_infer_string_split(pln_infer *call) {
  pln_shape shape;
  pln_arg_shape(call, 0, &shape);
  PLN_TRY(pln_result_tensor(call, 1, PLN_INT64, &shape));
  if (shape.rank >= PLN_MAX_RANK)
    pln_shape_unknown(&shape);
  if (shape.rank >= 0)
    shape.dims[shape.rank++] = PLN_DIM_UNKNOWN;
  return pln_result_tensor(call, 0, PLN_STRING, &shape);
}

/* Removing stop words shortens the last axis, but never to 0. */
pln_status pln_infer_string_normalizer(pln_infer *call) {
  pln_shape shape;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, 2));
  pln_arg_shape(call, 0, &shape);
  if (shape.rank > 0 && pln_call_has(call, "stopwords"))
    shape.dims[shape.rank - 1] = PLN_DIM_UNKNOWN;
  return pln_result_tensor(call, 0, PLN_STRING, &shape);
}

/* The last axis becomes counts: its extent is the greatest index plus one. */
pln_status pln_infer_tf_idf_vectorizer(pln_infer *call) {
  uint32_t n;
  const int64_t *indexes = pln_call_ints(call, "ngram_indexes", &n);
  pln_shape shape;
  pln_dim width = PLN_DIM_UNKNOWN;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, 2));
  pln_arg_shape(call, 0, &shape);
  for (uint32_t i = 0; i < n; i++)
    if (indexes[i] < INT64_MAX && indexes[i] >= 0 && indexes[i] + 1 > width)
      width = indexes[i] + 1;
  if (shape.rank > 0)
    shape.dims[shape.rank - 1] = width;
  return pln_result_tensor(call, 0, PLN_FLOAT32, &shape);
}
