/* flex_attention.c: see flex_attention.h. Called through ops.def for a call
 * without functions, and by eval/flex_attention.c for one with functions.
 *
 * Invariant: the heads of the query that share a head of key and value are
 * adjacent, so one product of their joined rows serves them: nothing is
 * repeated. Scores are rounded as ONNX's reference rounds them: query and key
 * are scaled by the root of the scale, and their product has the operands'
 * dtype. */

#include "op/kernel/attention/flex_attention.h"

#include <math.h>

#include "op/infer/attention.h"
#include "op/kernel/composed.h"

static int64_t extent(const pln_kernel_call *call, uint32_t arg, uint32_t k) {
  return pln_kernel_arg(call, arg)->dims[k];
}

static pln_dtype precision_of(const pln_kernel_call *call) {
  return pln_flex_attention_precision(
      (pln_dtype)pln_kernel_arg(call, 0)->dtype,
      pln_kernel_int(call, "softmax_precision", 0));
}

static pln_status check_dtypes(const pln_kernel_call *call) {
  const pln_tensor *q = pln_kernel_arg(call, 0);
  for (uint32_t i = 0; i < 3; i++) {
    const pln_tensor *t = pln_kernel_arg(call, i);
    if (!t || t->rank != 4)
      return pln_kernel_refuse(call, "operand %u has not rank 4", i);
    if (t->dtype != q->dtype)
      return pln_kernel_refuse(call, "its operands differ in dtype");
  }
  if (pln_flex_attention_precision(PLN_FLOAT32, q->dtype) != q->dtype)
    return pln_kernel_no_dtype(call, (pln_dtype)q->dtype);
  if (!precision_of(call))
    return pln_kernel_refuse(call, "softmax_precision is no float dtype");
  return PLN_OK;
}

static pln_status check_flex_operands(const pln_kernel_call *call) {
  PLN_TRY(check_dtypes(call));
  int64_t heads = extent(call, 0, 1), groups = extent(call, 1, 1);
  if (extent(call, 0, 0) != extent(call, 1, 0) ||
      extent(call, 0, 0) != extent(call, 2, 0))
    return pln_kernel_refuse(call, "its operands differ in batch");
  if (groups != extent(call, 2, 1) || extent(call, 1, 2) != extent(call, 2, 2))
    return pln_kernel_refuse(call, "key and value differ in heads or length");
  if (extent(call, 0, 3) != extent(call, 1, 3))
    return pln_kernel_refuse(call, "query and key differ in head size");
  if (heads != groups && (groups < 1 || heads % groups))
    return pln_kernel_refuse(call,
                             "the %lld heads of the query are not a multiple "
                             "of the %lld heads of key and value",
                             (long long)heads, (long long)groups);
  return PLN_OK;
}

/* Joins the rows of the heads of each group: (batch, groups, rows, width). */
static const pln_tensor *join_groups(pln_composition *s, const pln_tensor *x) {
  const pln_kernel_call *call = s->call;
  int64_t groups = extent(call, 1, 1), steps = extent(call, 0, 2);
  if (!x)
    return NULL;
  int64_t rows = groups ? extent(call, 0, 1) / groups * steps : steps;
  return pln_compose_reshape(s, x, 4,
                             (int64_t[]){x->dims[0], groups, rows, x->dims[3]});
}

/* The reverse of join_groups. */
static const pln_tensor *split_groups(pln_composition *s, const pln_tensor *x) {
  const pln_kernel_call *call = s->call;
  if (!x)
    return NULL;
  return pln_compose_reshape(s, x, 4,
                             (int64_t[]){x->dims[0], extent(call, 0, 1),
                                         extent(call, 0, 2), x->dims[3]});
}

/* Ends a composition that makes `last`. */
static pln_status take(pln_composition *s, const pln_tensor *last,
                       pln_tensor **out) {
  *out = s->status == PLN_OK ? pln_tensor_retain(last) : NULL;
  return pln_composition_end(s);
}

/* ------------------------------------------------------------------- stages */

pln_status pln_flex_attention_scores(pln_kernel_call *call, pln_tensor **out) {
  pln_composition s;
  PLN_TRY(check_flex_operands(call));
  const pln_tensor *q = pln_kernel_arg(call, 0), *k = pln_kernel_arg(call, 1);
  double scale = pln_kernel_float(call, "scale", 1 / sqrt((double)q->dims[3]));
  pln_composition_begin(&s, call);
  const pln_tensor *root =
      pln_compose_scalar(&s, (pln_dtype)q->dtype, sqrtf((float)scale));
  q = join_groups(&s, pln_compose_binary(&s, PLN_OP_MUL, q, root));
  k = pln_compose_transpose(&s, pln_compose_binary(&s, PLN_OP_MUL, k, root), 4,
                            (int64_t[]){0, 1, 3, 2});
  const pln_tensor *scores = pln_compose_binary(&s, PLN_OP_MAT_MUL, q, k);
  scores = pln_compose_cast(&s, scores, precision_of(call));
  return take(&s, split_groups(&s, scores), out);
}

/* The softmax whose every step is rounded, as the reference computes it. */
static const pln_tensor *round_softmax(pln_composition *s,
                                       const pln_tensor *x) {
  const int64_t last = -1;
  pln_compose_ints(s, "axes", 1, &last);
  const pln_tensor *top = pln_compose_unary(s, PLN_OP_REDUCE_MAX, x);
  x = pln_compose_unary(s, PLN_OP_EXP,
                        pln_compose_binary(s, PLN_OP_SUB, x, top));
  pln_compose_ints(s, "axes", 1, &last);
  return pln_compose_binary(s, PLN_OP_DIV, x,
                            pln_compose_unary(s, PLN_OP_REDUCE_SUM, x));
}

pln_status pln_flex_attention_weights(pln_kernel_call *call,
                                      const pln_tensor *scores,
                                      pln_tensor **out) {
  pln_composition s;
  bool wide = scores->dtype == PLN_FLOAT32 || scores->dtype == PLN_FLOAT64;
  pln_composition_begin(&s, call);
  if (scores->count == 0)
    return take(&s, scores, out);
  return take(&s,
              wide ? pln_compose_unary(&s, PLN_OP_SOFTMAX, scores)
                   : round_softmax(&s, scores),
              out);
}

pln_status pln_flex_attention_product(pln_kernel_call *call,
                                      const pln_tensor *weights,
                                      pln_tensor **out) {
  pln_composition s;
  const pln_tensor *v = pln_kernel_arg(call, 2);
  pln_dtype dtype = (pln_dtype)v->dtype;
  pln_composition_begin(&s, call);
  v = pln_compose_cast(&s, v, (pln_dtype)weights->dtype);
  const pln_tensor *y =
      pln_compose_binary(&s, PLN_OP_MAT_MUL, join_groups(&s, weights), v);
  return take(&s, pln_compose_cast(&s, split_groups(&s, y), dtype), out);
}

pln_status pln_flex_attention_check(const pln_kernel_call *call,
                                    const char *name, const pln_tensor *given,
                                    const pln_tensor *returned) {
  if (returned->dtype != given->dtype)
    return pln_kernel_refuse(call, "%s returns %s for scores of %s", name,
                             pln_dtype_name((pln_dtype)returned->dtype),
                             pln_dtype_name((pln_dtype)given->dtype));
  if (returned->rank != given->rank ||
      memcmp(returned->dims, given->dims, given->rank * sizeof(int64_t)) != 0)
    return pln_kernel_refuse(call, "%s returns another shape than it is given",
                             name);
  return PLN_OK;
}

pln_status pln_kernel_flex_attention(pln_kernel_call *call) {
  pln_tensor *scores, *weights = NULL;
  PLN_TRY(pln_flex_attention_scores(call, &scores));
  pln_status status = pln_flex_attention_weights(call, scores, &weights);
  pln_tensor_release(scores);
  if (status == PLN_OK)
    status = pln_flex_attention_product(call, weights, &call->results[0]);
  pln_tensor_release(weights);
  return status;
}
