/* det.c: det: determinants of square matrices. Called through ops.def.
 *
 * Gaussian elimination with partial pivoting, in double for all dtypes. */

#include <math.h>

#include "op/kernel/element.h"
#include "op/kernel/half_as_float.h"

pln_status pln_infer_det(pln_infer *call) {
  pln_shape s;
  pln_arg_shape(call, 0, &s);
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 2, INT32_MAX));
  if (s.rank >= 0) {
    PLN_TRY(
        pln_infer_same_dim(call, 0, &s.dims[s.rank - 2], s.dims[s.rank - 1]));
    s.rank -= 2;
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &s);
}

/* The row from `k` on with the greatest element in column `k`. */
static size_t pivot_row(const double *a, size_t n, size_t k) {
  size_t best = k;
  for (size_t i = k + 1; i < n; i++)
    if (fabs(a[i * n + k]) > fabs(a[best * n + k]))
      best = i;
  return best;
}

static void swap_rows(double *x, double *y, size_t n) {
  for (size_t i = 0; i < n; i++) {
    double swap = x[i];
    x[i] = y[i];
    y[i] = swap;
  }
}

/* Clears column `k` below the diagonal. */
static void eliminate(const pln_engine *engine, double *a, size_t n, size_t k) {
  size_t done = 0;
  for (size_t i = k + 1; i < n; i++) {
    if (pln_is_stopped_after(engine, &done, n - k))
      return;
    double factor = a[i * n + k] / a[k * n + k];
    for (size_t j = k + 1; j < n; j++)
      a[i * n + j] -= factor * a[k * n + j];
  }
}

/* Overwrites `a`. */
static double determinant(const pln_engine *engine, double *a, size_t n) {
  double product = 1;
  size_t done = 0;
  for (size_t k = 0; k < n; k++) {
    if (pln_is_stopped_after(engine, &done, n * n))
      return 0;
    size_t pivot = pivot_row(a, n, k);
    if (a[pivot * n + k] == 0)
      return 0;
    if (pivot != k) {
      swap_rows(a + k * n, a + pivot * n, n);
      product = -product;
    }
    product *= a[k * n + k];
    eliminate(engine, a, n, k);
  }
  return product;
}

static pln_status compute_det(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  void *out;
  if (!pln_is_float32_or_64(x))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
    return pln_kernel_refuse(call, "the matrices are not square");
  size_t n = (size_t)x->dims[x->rank - 1];
  size_t cells = x->count ? n * n : 0;
  PLN_TRY(pln_kernel_result(call, 0, (pln_dtype)x->dtype, x->rank - 2, x->dims,
                            &out));
  double *matrix = pln_mem_new(call->engine, cells * sizeof *matrix);
  if (!matrix && cells)
    return pln_nomem(call->engine);
  for (size_t i = 0; i < call->results[0]->count; i++) {
    for (size_t k = 0; k < cells; k++)
      matrix[k] = pln_element_at(x, i * cells + k);
    pln_element_set(call->results[0], i,
                    determinant(call->engine, matrix, cells ? n : 0));
  }
  pln_mem_free(call->engine, matrix, cells * sizeof *matrix);
  return PLN_OK;
}

pln_status pln_kernel_det(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", compute_det);
}
