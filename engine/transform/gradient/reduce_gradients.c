/* reduce_gradients.c: gradients of reductions. Called through gradients.def.
 *
 * Semantics: TVM FPrimalGradient. */

#include "op/infer/infer.h"
#include "transform/gradient/operator_gradient.h"

/* The axes that a reduction is over. */
typedef struct reduction {
  const pln_dim *shape;
  int32_t rank;
  int32_t n; /* -1: all, and no axes were given */
  int64_t axes[PLN_MAX_RANK];
  bool keepdims;
} reduction;

static bool is_given(const int64_t *axes, int32_t n, int64_t axis) {
  for (int32_t i = 0; i < n; i++)
    if (axes[i] == axis)
      return true;
  return false;
}

/* Ascending, not negative, and without the excluded ones. */
static void normalise(pln_gradient *g, reduction *r) {
  int64_t given[PLN_MAX_RANK];
  bool exclude = pln_gradient_int(g, "exclude", 0);
  int32_t n = r->n;
  for (int32_t i = 0; i < n; i++)
    given[i] = r->axes[i] < 0 ? r->axes[i] + r->rank : r->axes[i];
  r->n = 0;
  for (int32_t axis = 0; axis < r->rank; axis++)
    if (is_given(given, n, axis) != exclude)
      r->axes[r->n++] = axis;
}

static bool read_reduction(pln_gradient *g, reduction *r) {
  r->shape = pln_gradient_shape(g, g->args[0], &r->rank);
  if (!r->shape)
    return false;
  r->n = pln_gradient_ints(g, "axis", PLN_MAX_RANK, r->axes);
  r->keepdims = pln_gradient_int(g, "keepdims", 0);
  if (r->n >= 0)
    normalise(g, r);
  return true;
}

static void take_all_axes(reduction *r) {
  if (r->n >= 0)
    return;
  for (r->n = 0; r->n < r->rank; r->n++)
    r->axes[r->n] = r->n;
}

/* The reduced axes again, with extent 1. */
static pln_ref expand(pln_gradient *g, const reduction *r, pln_ref x) {
  for (int32_t i = 0; i < r->n && !r->keepdims; i++) {
    pln_relay_attr axis = pln_relay_int("axis", r->axes[i]);
    x = pln_relay_call_with(&g->r, PLN_OP_UNSQUEEZE, 1, &axis, 1, &x);
  }
  return x;
}

static double count_of(const reduction *r) {
  double count = 1;
  for (int32_t i = 0; i < r->n; i++)
    count *= (double)r->shape[r->axes[i]];
  return count;
}

void pln_gradient_sum(pln_gradient *g) {
  reduction r;
  if (!read_reduction(g, &r))
    return;
  take_all_axes(&r);
  g->out[0] = pln_binary(g, PLN_OP_BROADCAST_TO_LIKE, expand(g, &r, g->grad),
                         g->args[0]);
}

void pln_gradient_mean(pln_gradient *g) {
  pln_ref data = g->args[0];
  reduction r;
  if (!read_reduction(g, &r))
    return;
  take_all_axes(&r);
  double factor = 1;
  for (int32_t i = 0; i < r.n; i++)
    factor /= (double)r.shape[r.axes[i]];
  pln_ref x = pln_binary(g, PLN_OP_MUL, expand(g, &r, g->grad),
                         pln_scalar_like(g, data, factor));
  g->out[0] = pln_binary(g, PLN_OP_BROADCAST_TO_LIKE, x, data);
}

static pln_ref repeat_along(pln_gradient *g, const reduction *r, pln_ref x) {
  for (int32_t i = 0; i < r->n; i++) {
    pln_relay_attr attrs[] = {pln_relay_int("repeats", r->shape[r->axes[i]]),
                              pln_relay_int("axis", r->axes[i])};
    x = pln_relay_call_with(&g->r, PLN_OP_REPEAT, 2, attrs, 1, &x);
  }
  return x;
}

/* Divided among all elements that are the greatest. */
void pln_gradient_max(pln_gradient *g) {
  pln_ref x = g->args[0], greatest, grad = g->grad;
  reduction r;
  if (!read_reduction(g, &r))
    return;
  if (r.n < 0) {
    greatest = pln_binary(g, PLN_OP_FULL_LIKE, x, g->orig);
  } else {
    greatest = repeat_along(g, &r, expand(g, &r, g->orig));
    grad = expand(g, &r, grad);
  }
  pln_ref equal = pln_binary(g, PLN_OP_EQUAL, greatest, x);
  pln_ref is_greatest = pln_binary(g, PLN_OP_CAST_LIKE, equal, grad);
  pln_ref count = pln_sum_over(g, is_greatest, r.n, r.axes, true, false);
  pln_ref share = pln_binary(g, PLN_OP_MUL, is_greatest, grad);
  g->out[0] = pln_binary(g, PLN_OP_DIV, share, count);
}

/* The mean is the second argument. */
void pln_gradient_variance(pln_gradient *g) {
  pln_ref data = g->args[0];
  double count, by_mean = -2;
  reduction r;
  if (!read_reduction(g, &r))
    return;
  take_all_axes(&r);
  count = count_of(&r);
  if (pln_gradient_int(g, "unbiased", 0)) {
    by_mean = by_mean * count / (count - 1);
    count -= 1;
  }
  pln_ref grad = expand(g, &r, g->grad);
  pln_ref scaled =
      pln_binary(g, PLN_OP_MUL, grad, pln_scalar_like(g, data, 2 / count));
  pln_ref minus =
      pln_binary(g, PLN_OP_MUL, pln_scalar_like(g, data, by_mean), grad);
  g->out[0] = pln_binary(g, PLN_OP_MUL, scaled, data);
  g->out[1] = pln_binary(g, PLN_OP_MUL, minus, g->args[1]);
}
