/* swiglu.c: nn.swiglu: silu(a) * b. Called through ops.def. */

#include <math.h>

#include "op/kernel/elementwise/approximation.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/multiversion.h"

pln_status pln_infer_swiglu(pln_infer *call) {
  pln_dtype dtype;
  pln_shape a, b;
  PLN_TRY(pln_args_one_dtype(call, 0, 2, &dtype));
  pln_arg_shape(call, 0, &a);
  pln_arg_shape(call, 1, &b);
  if (a.rank < 0)
    a = b;
  if (b.rank >= 0)
    PLN_TRY(pln_arg_expect_rank(call, 1, a.rank));
  for (int32_t i = 0; i < b.rank; i++)
    PLN_TRY(pln_infer_same_dim(call, 1, &a.dims[i], b.dims[i]));
  return pln_result_tensor(call, 0, dtype, &a);
}

PLN_MULTIVERSION static void gate_singles(const float *restrict a,
                                          const float *restrict b,
                                          float *restrict out, size_t n,
                                          double alpha) {
  for (size_t i = 0; i < n; i++)
    out[i] = pln_silu_float(a[i], alpha) * b[i];
}

static void gate_doubles(const double *a, const double *b, double *out,
                         size_t n, double alpha) {
  for (size_t i = 0; i < n; i++)
    out[i] = a[i] / (1 + exp(-alpha * a[i])) * b[i];
}

static pln_status gate(pln_kernel_call *call) {
  const pln_tensor *a = pln_kernel_arg(call, 0), *b = pln_kernel_arg(call, 1);
  double alpha = pln_kernel_float(call, "alpha", 1);
  void *out;
  if (a->dtype != PLN_FLOAT32 && a->dtype != PLN_FLOAT64)
    return pln_kernel_no_dtype(call, (pln_dtype)a->dtype);
  if (a->dtype != b->dtype || a->rank != b->rank ||
      (a->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims)))
    return pln_kernel_refuse(call, "the operands differ in type");
  PLN_TRY(
      pln_kernel_unset(call, 0, (pln_dtype)a->dtype, a->rank, a->dims, &out));
  if (a->dtype == PLN_FLOAT32)
    gate_singles(a->data, b->data, out, a->count, alpha);
  else
    gate_doubles(a->data, b->data, out, a->count, alpha);
  return PLN_OK;
}

pln_status pln_kernel_swiglu(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", gate);
}
