/* shape.c: arithmetic on extents and shapes for inference functions.
 * Broadcasting is NumPy's, as in ONNX. */

#include "ir/type/dim.h"
#include "op/infer/infer.h"

void pln_shape_unknown(pln_shape *shape) {
  shape->rank = -1;
}

void pln_shape_ranked(pln_shape *shape, int64_t rank) {
  shape->rank = rank < 0 || rank > PLN_MAX_RANK ? -1 : (int32_t)rank;
  for (int32_t i = 0; i < shape->rank; i++)
    shape->dims[i] = PLN_DIM_UNKNOWN;
}

/* Constants take a fast path without interning. */
pln_status pln_infer_dim(const pln_infer *call, pln_dim_op op, pln_dim a,
                         pln_dim b, pln_dim *out) {
  return pln_dim_binary(call->engine, op, a, b, out);
}

pln_status pln_infer_product(const pln_infer *call, const pln_dim *dims,
                             int32_t begin, int32_t end, pln_dim *out) {
  pln_dim product = 1;
  for (int32_t i = begin; i < end; i++) {
    if (dims[i] == 0) {
      *out = 0;
      return PLN_OK;
    }
    PLN_TRY(pln_infer_dim(call, PLN_DIM_MUL, product, dims[i], &product));
  }
  *out = product;
  return PLN_OK;
}

static bool is_name(const pln_engine *e, pln_dim dim) {
  return pln_dim_row_of(e, pln_dim_id(dim))->kind == PLN_DIM_SYMBOL;
}

pln_status pln_infer_same_dim(const pln_infer *call, uint32_t i, pln_dim *dim,
                              pln_dim other) {
  if (*dim == other || other == PLN_DIM_UNKNOWN)
    return PLN_OK;
  if (*dim == PLN_DIM_UNKNOWN ||
      (PLN_DIM_IS_CONST(other) && !PLN_DIM_IS_CONST(*dim)) ||
      (!PLN_DIM_IS_CONST(other) && is_name(call->engine, other) &&
       !PLN_DIM_IS_CONST(*dim) && !is_name(call->engine, *dim)))
    *dim = other;
  else if (PLN_DIM_IS_CONST(other))
    return pln_arg_error(call, i, "expected extent %lld, got %lld",
                         (long long)*dim, (long long)other);
  return PLN_OK;
}

/* Whether b is min(x, c) + k or max(x, c) + k for constants c and k; then it is
 * min(x + k, *limit), *limit = c + k. */
static bool read_limit(const pln_engine *e, pln_dim b, pln_dim_op op,
                       pln_dim *limit) {
  pln_sum sum;
  pln_sum_load(e, b, &sum);
  if (sum.unknown || sum.n != 1 || sum.terms[0].degree != 1 ||
      sum.terms[0].coef != 1)
    return false;
  const pln_dim_row *row = pln_dim_row_of(e, sum.terms[0].factors[0]);
  if (row->kind != PLN_DIM_CALL || row->op != op)
    return false;
  pln_dim c = PLN_DIM_IS_CONST(row->a) ? row->a : row->b;
  return PLN_DIM_IS_CONST(c) && !__builtin_add_overflow(c, sum.constant, limit);
}

/* Whether b is min(a, c) with c >= 1, or max(a, 0). */
static pln_status is_clipped(const pln_infer *call, pln_dim a, pln_dim b,
                             bool *out) {
  pln_engine *e = call->engine;
  pln_dim limit = 0, clipped;
  bool least = read_limit(e, b, PLN_DIM_MIN, &limit) && limit >= 1;
  PLN_TRY(pln_dim_binary(e, least ? PLN_DIM_MIN : PLN_DIM_MAX, a,
                         least ? limit : 0, &clipped));
  *out = clipped != PLN_DIM_UNKNOWN && clipped == b;
  return PLN_OK;
}

/* Whether b is max(a - 1, 0) + 1, which is a, or 1 if a is 0. */
static pln_status is_at_least_one(const pln_infer *call, pln_dim a, pln_dim b,
                                  bool *out) {
  pln_engine *e = call->engine;
  PLN_TRY(pln_dim_binary(e, PLN_DIM_SUB, a, 1, &a));
  PLN_TRY(pln_dim_binary(e, PLN_DIM_SUB, b, 1, &b));
  PLN_TRY(pln_dim_binary(e, PLN_DIM_MAX, a, 0, &a));
  *out = a != PLN_DIM_UNKNOWN && a == b;
  return PLN_OK;
}

/* Cases in which a and b broadcast to a. b is min(a, c) with c >= 1, or
 * max(a - 1, 0) + 1: they broadcast only if b is a or 1. b is max(a, 0): a is
 * an extent and therefore not negative. */
static pln_status is_capped(const pln_infer *call, pln_dim a, pln_dim b,
                            bool *out) {
  *out = false;
  if (PLN_DIM_IS_CONST(b) || b == PLN_DIM_UNKNOWN || a == PLN_DIM_UNKNOWN)
    return PLN_OK;
  PLN_TRY(is_clipped(call, a, b, out));
  return *out ? PLN_OK : is_at_least_one(call, a, b, out);
}

/* Two extents of which one is symbolic or unknown, and none is 1. */
static pln_status broadcast_symbols(const pln_infer *call, pln_dim a, pln_dim b,
                                    pln_dim *out) {
  bool takes_a = PLN_DIM_IS_CONST(a), takes_b = PLN_DIM_IS_CONST(b);
  if (!takes_a && !takes_b)
    PLN_TRY(is_capped(call, b, a, &takes_b));
  if (!takes_a && !takes_b)
    PLN_TRY(is_capped(call, a, b, &takes_a));
  *out = takes_b ? b : takes_a ? a : PLN_DIM_UNKNOWN;
  return PLN_OK;
}

pln_status pln_infer_broadcast_dim(const pln_infer *call, uint32_t i, pln_dim a,
                                   pln_dim b, pln_dim *out) {
  *out = a == 1 ? b : a;
  if (a == b || a == 1 || b == 1)
    return PLN_OK;
  if (PLN_DIM_IS_CONST(a) && PLN_DIM_IS_CONST(b))
    return pln_arg_error(call, i, "extents %lld and %lld do not broadcast",
                         (long long)a, (long long)b);
  return broadcast_symbols(call, a, b, out);
}

pln_status pln_infer_broadcast_shape(const pln_infer *call, uint32_t i,
                                     pln_shape *shape, const pln_shape *other) {
  if (shape->rank < 0 || other->rank < 0) {
    shape->rank = -1;
    return PLN_OK;
  }
  int32_t longer = other->rank - shape->rank;
  if (longer > 0) {
    memmove(shape->dims + longer, shape->dims,
            (size_t)shape->rank * sizeof *shape->dims);
    for (int32_t k = 0; k < longer; k++)
      shape->dims[k] = 1;
    shape->rank = other->rank;
  }
  int32_t shift = shape->rank - other->rank;
  for (int32_t k = 0; k < other->rank; k++)
    PLN_TRY(pln_infer_broadcast_dim(call, i, shape->dims[shift + k],
                                    other->dims[k], &shape->dims[shift + k]));
  return PLN_OK;
}

pln_status pln_args_broadcast(const pln_infer *call, uint32_t first,
                              uint32_t end, pln_shape *out) {
  out->rank = 0;
  for (uint32_t i = first; i < end && i < call->n_args; i++) {
    pln_shape shape;
    pln_arg_shape(call, i, &shape);
    PLN_TRY(pln_infer_broadcast_shape(call, i, out, &shape));
  }
  return PLN_OK;
}
