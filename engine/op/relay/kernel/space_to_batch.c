/* space_to_batch.c: space_to_batch_nd and batch_to_space_nd: blocks of the axes
 * after the batch become batches, and back. Called through ops.def. */

#include "op/kernel/composed.h"

/* The sum of pair i of a list of pairs; 0 if it is missing. */
static int64_t both_of(const pln_infer *call, const char *name, uint32_t i) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  int64_t sum;
  if (!a || a->kind != PLN_ATTR_LIST ||
      i >= pln_attrs_count(call->engine, a->v.dict))
    return 0;
  const pln_attr *pair = pln_attrs_at(call->engine, a->v.dict, i);
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

/* ------------------------------------------------------------------ kernels */

enum { MAX_BLOCKS = 8 };

/* Blocks of the `n` axes after the first, and the padding or cropping of
 * each. */
typedef struct blocks {
  const pln_tensor *x;
  uint32_t n;
  int64_t size[MAX_BLOCKS];
  int64_t before[MAX_BLOCKS], after[MAX_BLOCKS];
  int64_t product;
} blocks;

static void read_pairs(const pln_kernel_call *call, const char *name,
                       blocks *b) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  for (uint32_t i = 0; i < b->n; i++) {
    bool there = a && a->kind == PLN_ATTR_LIST &&
                 i < pln_attrs_count(call->engine, a->v.dict);
    const pln_attr *pair =
        there ? pln_attrs_at(call->engine, a->v.dict, i) : NULL;
    bool given = pair && pair->kind == PLN_ATTR_INTS && pair->count == 2;
    b->before[i] = given ? pair->v.ints[0] : 0;
    b->after[i] = given ? pair->v.ints[1] : 0;
  }
}

static bool read_blocks_call(const pln_kernel_call *call, const char *pairs,
                             blocks *b) {
  pln_list list = pln_kernel_list(call, PLN_NONE, "block_shape");
  b->x = pln_kernel_arg(call, 0);
  b->n = list.given ? list.count : 2;
  b->product = 1;
  if (b->n > MAX_BLOCKS || b->x->rank < b->n + 1 ||
      b->x->rank + b->n > PLN_MAX_RANK)
    return false;
  read_pairs(call, pairs, b);
  for (uint32_t i = 0; i < b->n; i++) {
    b->size[i] = list.given ? list.ints[i] : 1;
    if (b->size[i] < 1 || b->before[i] < 0 || b->after[i] < 0 ||
        __builtin_mul_overflow(b->product, b->size[i], &b->product))
      return false;
  }
  return true;
}

static pln_status refuse_blocks(const pln_kernel_call *call) {
  return pln_kernel_refuse(call, "the blocks do not match the operand");
}

static const pln_tensor *pad_space(pln_composition *s, const blocks *b) {
  int64_t pads[2 * PLN_MAX_RANK] = {0};
  const pln_tensor *x = b->x;
  for (uint32_t i = 0; i < b->n; i++) {
    pads[i + 1] = b->before[i];
    pads[x->rank + i + 1] = b->after[i];
  }
  const pln_tensor *args[3] = {
      x, pln_compose_vector(s, 2 * x->rank, pads),
      pln_compose_scalar(s, (pln_dtype)x->dtype,
                         pln_kernel_float(s->call, "pad_value", 0))};
  return pln_compose_call(s, PLN_OP_PAD, 3, args);
}

/* (N, H / h, h, W / w, w, ...) transposed so that the block axes h, w come
 * first, as batches. */
static const pln_tensor *fold_space(pln_composition *s, const blocks *b,
                                    const pln_tensor *x) {
  int64_t dims[PLN_MAX_RANK], perm[PLN_MAX_RANK];
  uint32_t rank = x->rank + b->n;
  dims[0] = x->dims[0];
  perm[b->n] = 0;
  for (uint32_t i = 0; i < b->n; i++) {
    dims[1 + 2 * i] = x->dims[i + 1] / b->size[i];
    dims[2 + 2 * i] = b->size[i];
    perm[i] = 2 + 2 * i;
    perm[b->n + 1 + i] = 1 + 2 * i;
  }
  for (uint32_t i = b->n + 1; i < x->rank; i++) {
    dims[i + b->n] = x->dims[i];
    perm[i + b->n] = i + b->n;
  }
  x = pln_compose_reshape(s, x, rank, dims);
  pln_compose_ints(s, "axes", rank, perm);
  return pln_compose_unary(s, PLN_OP_TRANSPOSE, x);
}

pln_status pln_kernel_space_to_batch(pln_kernel_call *call) {
  int64_t dims[PLN_MAX_RANK];
  blocks b;
  pln_composition s;
  if (!read_blocks_call(call, "paddings", &b))
    return refuse_blocks(call);
  pln_composition_begin(&s, call);
  const pln_tensor *x = pad_space(&s, &b);
  if (!x)
    return pln_composition_end(&s);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  for (uint32_t i = 0; i < b.n; i++) {
    if (dims[i + 1] % b.size[i])
      pln_composition_refuse(&s, "the blocks do not match the operand");
    dims[i + 1] /= b.size[i];
  }
  if (__builtin_mul_overflow(dims[0], b.product, &dims[0]))
    pln_composition_refuse(&s, "the blocks do not match the operand");
  if (s.status != PLN_OK)
    return pln_composition_end(&s);
  return pln_composition_finish(
      &s, pln_compose_reshape(&s, fold_space(&s, &b, x), x->rank, dims));
}

/* (h, w, N, H, W, ...) transposed so that each block axis follows its spatial
 * axis. */
static const pln_tensor *unfold_space(pln_composition *s, const blocks *b,
                                      int64_t *out) {
  int64_t dims[PLN_MAX_RANK], perm[PLN_MAX_RANK];
  const pln_tensor *x = b->x;
  uint32_t rank = x->rank + b->n;
  for (uint32_t i = 0; i < x->rank; i++)
    dims[b->n + i] = out[i] = x->dims[i];
  dims[b->n] = out[0] = x->dims[0] / b->product;
  perm[0] = b->n;
  for (uint32_t i = 0; i < b->n; i++) {
    dims[i] = b->size[i];
    out[i + 1] *= b->size[i];
    perm[1 + 2 * i] = b->n + 1 + i;
    perm[2 + 2 * i] = i;
  }
  for (uint32_t i = 2 * b->n + 1; i < rank; i++)
    perm[i] = i;
  x = pln_compose_reshape(s, x, rank, dims);
  pln_compose_ints(s, "axes", rank, perm);
  return pln_compose_reshape(s, pln_compose_unary(s, PLN_OP_TRANSPOSE, x),
                             rank - b->n, out);
}

pln_status pln_kernel_batch_to_space(pln_kernel_call *call) {
  int64_t dims[PLN_MAX_RANK], axes[MAX_BLOCKS];
  blocks b;
  pln_composition s;
  if (!read_blocks_call(call, "crops", &b) || b.x->dims[0] % b.product)
    return refuse_blocks(call);
  for (uint32_t i = 0; i < b.n; i++) {
    int64_t extent;
    axes[i] = i + 1;
    if (__builtin_mul_overflow(b.x->dims[i + 1], b.size[i], &extent) ||
        b.after[i] > extent)
      return refuse_blocks(call);
    b.after[i] = extent - b.after[i];
  }
  pln_composition_begin(&s, call);
  const pln_tensor *args[4] = {
      unfold_space(&s, &b, dims), pln_compose_vector(&s, b.n, b.before),
      pln_compose_vector(&s, b.n, b.after), pln_compose_vector(&s, b.n, axes)};
  return pln_composition_finish(&s,
                                pln_compose_call(&s, PLN_OP_SLICE, 4, args));
}
