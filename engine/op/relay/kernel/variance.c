/* variance.c: kernels of Relay's operators composed of reductions: variance,
 * nn.l2_normalize, nn.cross_entropy, nn.cross_entropy_with_logits. Called
 * through ops.def. */

#include "op/kernel/composed.h"

/* The axes of attribute `name`, all if it is empty; with `exclude` the
 * others. */
static uint32_t read_variance_axes(const pln_kernel_call *call,
                                   const char *name, uint32_t rank,
                                   int64_t *out) {
  pln_list list = pln_kernel_list(call, PLN_NONE, name);
  bool chosen[PLN_MAX_RANK] = {false};
  bool exclude = list.count && pln_kernel_int(call, "exclude", 0);
  uint32_t n = 0, axis;
  for (uint32_t i = 0; i < list.count; i++)
    if (pln_kernel_axis(list.ints[i], rank, &axis))
      chosen[axis] = true;
  for (uint32_t i = 0; i < rank; i++)
    if (list.count == 0 || chosen[i] != exclude)
      out[n++] = i;
  return n;
}

static const pln_tensor *sum_over(pln_composition *s, const pln_tensor *x,
                                  uint32_t n, const int64_t *axes,
                                  bool keepdims) {
  if (n == 0)
    return x;
  pln_compose_ints(s, "axes", n, axes);
  pln_compose_int(s, "keepdims", keepdims);
  return pln_compose_unary(s, PLN_OP_REDUCE_SUM, x);
}

/* The mean of the squared differences to the mean, operand 1. */
pln_status pln_kernel_variance(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t axes[PLN_MAX_RANK];
  double count = 1;
  pln_composition s;
  if (x->rank > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "the operand has too many axes");
  uint32_t n = read_variance_axes(call, "axis", x->rank, axes);
  for (uint32_t i = 0; i < n; i++)
    count *= (double)x->dims[axes[i]];
  count -= pln_kernel_int(call, "unbiased", 0) != 0;
  pln_composition_begin(&s, call);
  const pln_tensor *rest =
      pln_compose_binary(&s, PLN_OP_SUB, x, pln_kernel_arg(call, 1));
  const pln_tensor *sum =
      sum_over(&s, pln_compose_binary(&s, PLN_OP_MUL, rest, rest), n, axes,
               pln_kernel_int(call, "keepdims", 0) != 0);
  return pln_composition_finish(
      &s,
      pln_compose_binary(&s, PLN_OP_DIV, sum,
                         pln_compose_scalar(&s, (pln_dtype)x->dtype, count)));
}

/* x / sqrt(max(sum of squares, eps)) */
pln_status pln_kernel_l2_normalize(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t axes[PLN_MAX_RANK];
  pln_composition s;
  if (x->rank > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "the operand has too many axes");
  uint32_t n = read_variance_axes(call, "axis", x->rank, axes);
  pln_composition_begin(&s, call);
  const pln_tensor *sum =
      sum_over(&s, pln_compose_binary(&s, PLN_OP_MUL, x, x), n, axes, true);
  const pln_tensor *least = pln_compose_scalar(
      &s, (pln_dtype)x->dtype, pln_kernel_float(call, "eps", 0));
  const pln_tensor *root = pln_compose_unary(
      &s, PLN_OP_SQRT, pln_compose_binary(&s, PLN_OP_MAX, sum, least));
  return pln_composition_finish(&s,
                                pln_compose_binary(&s, PLN_OP_DIV, x, root));
}

/* Minus the sum of the scores at the targets, divided by the number of rows. */
static pln_status cross_entropy(pln_kernel_call *call, bool logits) {
  static const int64_t axes[] = {0, 1};
  const pln_tensor *x = pln_kernel_arg(call, 0), *y = pln_kernel_arg(call, 1);
  pln_composition s;
  if (x->rank != 2 || y->rank != 2)
    return pln_kernel_refuse(call, "the operands are no matrices");
  pln_composition_begin(&s, call);
  const pln_tensor *scores = logits ? x : pln_compose_unary(&s, PLN_OP_LOG, x);
  const pln_tensor *sum = sum_over(
      &s, pln_compose_binary(&s, PLN_OP_MUL, scores, y), 2, axes, false);
  const pln_tensor *rows =
      pln_compose_scalar(&s, (pln_dtype)x->dtype, -(double)x->dims[0]);
  return pln_composition_finish(&s,
                                pln_compose_binary(&s, PLN_OP_DIV, sum, rows));
}

pln_status pln_kernel_cross_entropy(pln_kernel_call *call) {
  return cross_entropy(call, false);
}

pln_status pln_kernel_cross_entropy_with_logits(pln_kernel_call *call) {
  return cross_entropy(call, true);
}
