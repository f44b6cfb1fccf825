/* symbolic_value.c: symbolic values: the integers in a small result, computed
 * on symbolic extents. Called by inference functions after they have set the
 * result's type.
 *
 * Invariants: a value agrees in rank and count with the result's type; unknown
 * elements are PLN_DIM_UNKNOWN; a vector without any known element has no
 * value. */

#include "op/infer/infer.h"

/* -------------------------------------------------------------- one result */

static bool any_known(uint32_t count, const pln_dim *elements) {
  for (uint32_t i = 0; i < count; i++)
    if (elements[i] != PLN_DIM_UNKNOWN)
      return true;
  return count == 0;
}

/* Exact arithmetic is wrong for a result that wraps in 32 bits. */
static void drop_overflows(uint32_t count, const pln_dim *in, pln_dim *out) {
  for (uint32_t i = 0; i < count; i++) {
    bool fits =
        !PLN_DIM_IS_CONST(in[i]) || (in[i] >= INT32_MIN && in[i] <= INT32_MAX);
    out[i] = fits ? in[i] : PLN_DIM_UNKNOWN;
  }
}

static bool agrees(const pln_infer *call, uint32_t rank, uint32_t count) {
  const pln_dim *dims = pln_type_dims(call->engine, call->results[0]);
  pln_dim product = 1;
  if (pln_type_rank(call->engine, call->results[0]) != (int32_t)rank)
    return false;
  for (uint32_t i = 0; i < rank; i++) {
    if (!PLN_DIM_IS_CONST(dims[i]) || dims[i] < 0 || dims[i] > PLN_VALUE_MAX)
      return false;
    product *= dims[i];
  }
  return product == (pln_dim)count;
}

pln_status pln_infer_set_value(pln_infer *call, uint32_t rank, uint32_t count,
                               const pln_dim *elements) {
  pln_dtype dtype = pln_type_dtype(call->engine, call->results[0]);
  if (dtype != PLN_INT64 && dtype != PLN_INT32 && dtype != PLN_BOOL)
    return PLN_OK;
  if (call->n_results || rank > PLN_MAX_RANK || count > PLN_VALUE_MAX ||
      !agrees(call, rank, count))
    return PLN_OK;
  pln_dim narrow[PLN_VALUE_MAX];
  if (dtype == PLN_INT32) {
    drop_overflows(count, elements, narrow);
    elements = narrow;
  }
  if (!any_known(count, elements))
    return PLN_OK;
  return pln_value_make(call->engine, rank, count, elements, &call->value);
}

/* ------------------------------------------------- a view of the first operand
 */

bool pln_infer_value_strides(const pln_infer *call, pln_dim *strides) {
  const pln_dim *dims = pln_arg_dims(call, 0);
  pln_dim stride = 1;
  if (call->n_results || !pln_arg_any_value(call, 0))
    return false;
  for (int32_t i = pln_arg_rank(call, 0); i-- > 0; stride *= dims[i])
    strides[i] = stride;
  return true;
}

pln_status pln_infer_value_strided(pln_infer *call, const pln_shape *shape,
                                   pln_dim begin, const pln_dim *strides) {
  pln_dim elements[PLN_VALUE_MAX], at[PLN_MAX_RANK] = {0};
  const pln_dim *from =
      pln_value_elements(call->engine, pln_arg_any_value(call, 0));
  uint32_t n = 1;
  for (int32_t i = 0; i < shape->rank; i++)
    n *= (uint32_t)shape->dims[i];
  for (uint32_t k = 0; k < n; k++) {
    elements[k] = from[begin];
    for (int32_t i = shape->rank; i-- > 0;) {
      begin += strides[i];
      if (++at[i] < shape->dims[i])
        break;
      begin -= at[i] * strides[i];
      at[i] = 0;
    }
  }
  return pln_infer_set_value(call, (uint32_t)shape->rank, n, elements);
}

/* ------------------------------------------------------------- two operands */

/* The elements of operand `i`, broadcast to `count`. */
typedef struct value_source {
  const pln_dim *elements;
  uint32_t count, rank, step;
} value_source;

static bool open_source(const pln_infer *call, uint32_t i, value_source *out) {
  pln_value value = pln_arg_value(call, i);
  if (!value)
    return false;
  out->elements = pln_value_elements(call->engine, value);
  out->count = pln_value_count(call->engine, value);
  out->rank = pln_value_rank(call->engine, value);
  out->step = out->count == 1 ? 0 : 1;
  return out->count <= PLN_VALUE_MAX;
}

static bool open_pair(const pln_infer *call, value_source *a, value_source *b,
                      uint32_t *rank, uint32_t *count) {
  if (!open_source(call, 0, a) || !open_source(call, 1, b))
    return false;
  *rank = a->rank > b->rank ? a->rank : b->rank;
  *count = a->count == 1 ? b->count : a->count;
  return b->count == 1 || b->count == *count;
}

typedef pln_status (*pair_fn)(const pln_infer *call, int how, pln_dim a,
                              pln_dim b, pln_dim *out);

static pln_status each_pair(pln_infer *call, pair_fn fn, int how) {
  value_source a, b;
  uint32_t rank, count;
  if (!open_pair(call, &a, &b, &rank, &count))
    return PLN_OK;
  pln_dim elements[PLN_VALUE_MAX];
  for (uint32_t i = 0; i < count; i++)
    PLN_TRY(fn(call, how, a.elements[i * a.step], b.elements[i * b.step],
               &elements[i]));
  return pln_infer_set_value(call, rank, count, elements);
}

static pln_status compute_dim_op(const pln_infer *call, int op, pln_dim a,
                                 pln_dim b, pln_dim *out) {
  return pln_dim_binary(call->engine, (pln_dim_op)op, a, b, out);
}

pln_status pln_infer_value_binary(pln_infer *call, pln_dim_op op) {
  return each_pair(call, compute_dim_op, op);
}

/* If both are known not to be negative, all definitions of the remainder
 * agree. */
static pln_status remainder_of(const pln_infer *call, int fmod, pln_dim a,
                               pln_dim b, pln_dim *out) {
  bool plain = !fmod || (pln_dim_lower_bound(call->engine, a) >= 0 &&
                         pln_dim_lower_bound(call->engine, b) > 0);
  if (plain)
    return pln_dim_binary(call->engine, PLN_DIM_FLOORMOD, a, b, out);
  *out = PLN_DIM_UNKNOWN;
  return PLN_OK;
}

pln_status pln_infer_value_mod(pln_infer *call) {
  return each_pair(call, remainder_of, pln_call_int(call, "fmod", 0) != 0);
}

/* ------------------------------------------------------------- comparisons */

/* Bounds on b - a. */
typedef struct dim_gap {
  bool equal, positive, negative, not_negative, not_positive;
} dim_gap;

static pln_status measure_dim_gap(const pln_infer *call, pln_dim a, pln_dim b,
                                  dim_gap *out) {
  pln_dim up, down;
  PLN_TRY(pln_dim_binary(call->engine, PLN_DIM_SUB, b, a, &up));
  PLN_TRY(pln_dim_binary(call->engine, PLN_DIM_SUB, a, b, &down));
  int64_t least = pln_dim_lower_bound(call->engine, up);
  int64_t less = pln_dim_lower_bound(call->engine, down);
  *out = (dim_gap){.equal = up == 0,
                   .positive = least > 0,
                   .negative = less > 0,
                   .not_negative = least >= 0,
                   .not_positive = less >= 0};
  return PLN_OK;
}

static pln_dim truth_value(bool holds, bool fails) {
  return holds ? 1 : fails ? 0 : PLN_DIM_UNKNOWN;
}

static pln_status compare_dims(const pln_infer *call, int order, pln_dim a,
                               pln_dim b, pln_dim *out) {
  dim_gap g;
  PLN_TRY(measure_dim_gap(call, a, b, &g));
  switch ((pln_order)order) {
  case PLN_ORDER_EQUAL:
    *out = truth_value(g.equal, g.positive || g.negative);
    break;
  case PLN_ORDER_LESS: *out = truth_value(g.positive, g.not_positive); break;
  case PLN_ORDER_LESS_EQUAL:
    *out = truth_value(g.not_negative, g.negative);
    break;
  case PLN_ORDER_GREATER: *out = truth_value(g.negative, g.not_negative); break;
  case PLN_ORDER_GREATER_EQUAL:
    *out = truth_value(g.not_positive, g.positive);
    break;
  }
  return PLN_OK;
}

pln_status pln_infer_value_compare(pln_infer *call, pln_order order) {
  return each_pair(call, compare_dims, order);
}

/* -------------------------------------------------- other numbers of operands
 */

pln_status pln_infer_value_negative(pln_infer *call) {
  value_source a;
  if (!open_source(call, 0, &a))
    return PLN_OK;
  pln_dim elements[PLN_VALUE_MAX];
  for (uint32_t i = 0; i < a.count; i++)
    PLN_TRY(pln_dim_binary(call->engine, PLN_DIM_SUB, 0, a.elements[i],
                           &elements[i]));
  return pln_infer_set_value(call, a.rank, a.count, elements);
}

static pln_status fold_operand(const pln_infer *call, pln_dim_op op,
                               const value_source *a, uint32_t *count,
                               pln_dim *elements, bool *broadcasts) {
  uint32_t longer = *count == 1 ? a->count : *count;
  *broadcasts = a->count == 1 || a->count == longer;
  if (!*broadcasts)
    return PLN_OK;
  for (uint32_t i = *count; i < longer; i++)
    elements[i] = elements[0];
  *count = longer;
  for (uint32_t i = 0; i < longer; i++)
    PLN_TRY(pln_dim_binary(call->engine, op, elements[i],
                           a->elements[i * a->step], &elements[i]));
  return PLN_OK;
}

pln_status pln_infer_value_variadic(pln_infer *call, pln_dim_op op) {
  value_source a;
  if (!open_source(call, 0, &a))
    return PLN_OK;
  uint32_t rank = a.rank, count = a.count;
  pln_dim elements[PLN_VALUE_MAX];
  if (count)
    memcpy(elements, a.elements, count * sizeof *elements);
  for (uint32_t k = 1; k < call->n_args; k++) {
    bool broadcasts;
    if (!open_source(call, k, &a))
      return PLN_OK;
    rank = a.rank > rank ? a.rank : rank;
    PLN_TRY(fold_operand(call, op, &a, &count, elements, &broadcasts));
    if (!broadcasts)
      return PLN_OK;
  }
  return pln_infer_set_value(call, rank, count, elements);
}

pln_status pln_infer_value_reduce(pln_infer *call, pln_dim_op op) {
  value_source a;
  if (!open_source(call, 0, &a) || a.count == 0)
    return PLN_OK;
  pln_dim all = a.elements[0];
  for (uint32_t i = 1; i < a.count; i++)
    PLN_TRY(pln_dim_binary(call->engine, op, all, a.elements[i], &all));
  int32_t rank = pln_type_rank(call->engine, call->results[0]);
  return rank < 0 ? PLN_OK : pln_infer_set_value(call, (uint32_t)rank, 1, &all);
}
