/* batch_space.c: space_to_batch_nd and batch_to_space_nd: blocks of the axes
 * behind the first become batches, and back. Types. Called through ops.def. */

#include "op/infer.h"

/* Pair i of a list of pairs, both together; 0 when there is none. */
static int64_t both_of(const pln_infer *call, const char *name, uint32_t i) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  int64_t sum;
  if (!a || a->kind != PLN_ATTR_LIST ||
      i >= pln_attrs_count(call->engine, a->v.dict))
    return 0;
  const pln_attr *pair = pln_attrs_get(call->engine, a->v.dict, i);
  if (pair->kind != PLN_ATTR_INTS || pair->count != 2 ||
      __builtin_add_overflow(pair->v.ints[0], pair->v.ints[1], &sum))
    return 0;
  return sum;
}

static pln_status read_blocks(const pln_infer *call, pln_shape *shape,
                              uint32_t *n, const int64_t **blocks) {
  static const int64_t ones[] = {1, 1};
  *blocks = pln_call_ints(call, "block_shape", n);
  if (!*blocks) {
    *blocks = ones;
    *n = 2;
  }
  pln_arg_shape(call, 0, shape);
  for (uint32_t i = 0; i < *n; i++)
    if ((*blocks)[i] < 1)
      return pln_call_error(call, "a block of %lld", (long long)(*blocks)[i]);
  if (shape->rank >= 0 && (uint32_t)shape->rank < *n + 1)
    return pln_arg_error(call, 0, "expected rank %u or more, got %d", *n + 1,
                         shape->rank);
  return PLN_OK;
}

pln_status pln_infer_space_to_batch(pln_infer *call) {
  pln_shape shape;
  uint32_t n;
  const int64_t *blocks;
  PLN_TRY(read_blocks(call, &shape, &n, &blocks));
  for (uint32_t i = 0; shape.rank >= 0 && i < n; i++) {
    pln_dim *dim = &shape.dims[i + 1];
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, *dim, both_of(call, "paddings", i),
                          dim));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, *dim, blocks[i], dim));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, shape.dims[0], blocks[i],
                          &shape.dims[0]));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

pln_status pln_infer_batch_to_space(pln_infer *call) {
  pln_shape shape;
  uint32_t n;
  const int64_t *blocks;
  PLN_TRY(read_blocks(call, &shape, &n, &blocks));
  for (uint32_t i = 0; shape.rank >= 0 && i < n; i++) {
    pln_dim *dim = &shape.dims[i + 1];
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, *dim, blocks[i], dim));
    PLN_TRY(
        pln_infer_dim(call, PLN_DIM_SUB, *dim, both_of(call, "crops", i), dim));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, shape.dims[0], blocks[i],
                          &shape.dims[0]));
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}
