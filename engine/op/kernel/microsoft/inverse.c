/* inverse.c: Inverse and CDist of com.microsoft: inverted matrices, distances
 * of rows. Called through ops.def.
 *
 *     Inverse([[2, 0], [0, 4]])   =>   [[0.5, 0], [0, 0.25]]
 *
 * Inverted by Gauss-Jordan elimination with partial pivoting, in float64. A
 * singular matrix has no inverse: folding refuses it, a run gives what division
 * by zero does. Semantics: ONNX Runtime's CPU kernels. */

#include <math.h>

#include "op/kernel/composed.h"
#include "op/kernel/half_as_float.h"

static void swap_rows(double *a, double *b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    double kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  }
}

/* The row from `at` on with the greatest element in column `at`. */
static size_t find_pivot(const double *m, size_t n, size_t at) {
  size_t best = at;
  for (size_t i = at + 1; i < n; i++)
    if (fabs(m[i * n + at]) > fabs(m[best * n + at]))
      best = i;
  return best;
}

/* Subtracts multiples of row `at` from all others. */
static void eliminate(double *m, double *out, size_t n, size_t at) {
  for (size_t i = 0; i < n; i++) {
    double factor = m[i * n + at];
    if (i == at || factor == 0)
      continue;
    for (size_t k = 0; k < n; k++) {
      m[i * n + k] -= factor * m[at * n + k];
      out[i * n + k] -= factor * out[at * n + k];
    }
  }
}

/* Turns m into the identity and `out` into the inverse; false if m is
 * singular. */
static bool invert(double *m, double *out, size_t n) {
  bool regular = true;
  for (size_t i = 0; i < n * n; i++)
    out[i] = i / n == i % n;
  for (size_t at = 0; at < n; at++) {
    size_t pivot = find_pivot(m, n, at);
    if (pivot != at) {
      swap_rows(m + pivot * n, m + at * n, n);
      swap_rows(out + pivot * n, out + at * n, n);
    }
    double p = m[at * n + at];
    regular &= p != 0;
    for (size_t k = 0; k < n; k++) {
      m[at * n + k] /= p;
      out[at * n + k] /= p;
    }
    eliminate(m, out, n, at);
  }
  return regular;
}

static pln_status inverse(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_composition s;
  pln_tensor *t = NULL;
  pln_composition_begin(&s, call);
  if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
    return pln_kernel_refuse(call, "the matrices are not square");
  const pln_tensor *in = pln_compose_cast(&s, x, PLN_FLOAT64);
  int64_t dims[1] = {(int64_t)x->count};
  size_t n = (size_t)x->dims[x->rank - 1];
  if (in)
    s.status = pln_tensor_unset(call->engine, PLN_FLOAT64, 1, dims, &t);
  const pln_tensor *scratch = pln_compose_own(&s, t);
  if (!scratch)
    return pln_composition_end(&s);
  double *m = pln_tensor_writable(t), *out = NULL;
  pln_tensor *y = NULL;
  memcpy(m, in->data, x->count * sizeof *m);
  s.status = pln_tensor_unset(call->engine, PLN_FLOAT64, x->rank, x->dims, &y);
  const pln_tensor *kept = pln_compose_own(&s, y);
  out = kept ? pln_tensor_writable(y) : NULL;
  for (size_t i = 0; kept && i + 1 <= x->count; i += n * n) {
    if (pln_is_stopped(call->engine))
      break;
    if (!invert(m + i, out + i, n) && call->folding)
      pln_composition_refuse(&s, "a matrix is singular");
  }
  return pln_composition_finish(
      &s, pln_compose_cast(&s, kept, (pln_dtype)x->dtype));
}

pln_status pln_kernel_inverse(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", inverse);
}

/* ---------------------------------------------------------------- distances
 */

/* The squared distance of two rows; differences are squared one by one, so that
 * nothing cancels. */
static double squared_distance(const double *a, const double *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

static const pln_tensor *distances(pln_composition *s, const pln_tensor *a,
                                   const pln_tensor *b, bool root) {
  int64_t dims[2] = {a->dims[0], b->dims[0]};
  size_t n = (size_t)a->dims[1], done = 0;
  pln_tensor *t = NULL;
  s->status = pln_tensor_unset(s->call->engine, PLN_FLOAT64, 2, dims, &t);
  if (!pln_compose_own(s, t))
    return NULL;
  double *out = pln_tensor_writable(t);
  for (size_t i = 0; i < t->count; i++) {
    size_t row = i / (size_t)dims[1], column = i % (size_t)dims[1];
    double d = squared_distance((const double *)a->data + row * n,
                                (const double *)b->data + column * n, n);
    out[i] = root ? sqrt(d) : d;
    if (pln_is_stopped_after(s->call->engine, &done, n))
      break;
  }
  return t;
}

/* (a, b) */
pln_status pln_kernel_cdist(pln_kernel_call *call) {
  const pln_tensor *a = pln_kernel_arg(call, 0), *b = pln_kernel_arg(call, 1);
  bool root = pln_kernel_string_is(call, "metric", "sqeuclidean", "euclidean");
  pln_composition s;
  pln_composition_begin(&s, call);
  if (!root &&
      !pln_kernel_string_is(call, "metric", "sqeuclidean", "sqeuclidean"))
    return pln_kernel_refuse(call, "metric is neither euclidean nor "
                                   "sqeuclidean");
  if (a->rank != 2 || b->rank != 2 || a->dims[1] != b->dims[1])
    return pln_kernel_refuse(call, "the operands are not of rows of one size");
  const pln_tensor *x = pln_compose_cast(&s, a, PLN_FLOAT64);
  const pln_tensor *y = pln_compose_cast(&s, b, PLN_FLOAT64);
  const pln_tensor *d = x && y ? distances(&s, x, y, root) : NULL;
  return pln_composition_finish(&s,
                                pln_compose_cast(&s, d, (pln_dtype)a->dtype));
}
