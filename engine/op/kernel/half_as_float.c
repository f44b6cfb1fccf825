/* half_as_float.c: 16-bit floats through float32. Called by kernels that
 * compute only in float32 and float64. Whole tensors are converted, once per
 * call; arguments are never changed. */

#include "op/kernel/half_as_float.h"

#include "op/kernel/elementwise/elementwise.h"

/* the most arguments of an operator that uses this */
enum { ARGS = 20 };

/* elements converted between two polls for a stop */
enum { PART = 1 << 16 };

pln_status pln_tensor_to_float32(const pln_tensor *half, pln_tensor **out) {
  const uint16_t *from = half->data;
  PLN_TRY(
      pln_tensor_unset(half->engine, PLN_FLOAT32, half->rank, half->dims, out));
  float *to = pln_tensor_writable(*out);
  for (size_t at = 0; at < half->count; at += PART) {
    size_t n = half->count - at < PART ? half->count - at : PART;
    pln_widen((pln_dtype)half->dtype, from + at, to + at, n);
    if (pln_is_stopped(half->engine))
      break;
  }
  return PLN_OK;
}

pln_status pln_tensor_from_float32(const pln_tensor *single, pln_dtype dtype,
                                   pln_tensor **out) {
  const float *from = single->data;
  PLN_TRY(
      pln_tensor_unset(single->engine, dtype, single->rank, single->dims, out));
  uint16_t *to = pln_tensor_writable(*out);
  for (size_t at = 0; at < single->count; at += PART) {
    size_t n = single->count - at < PART ? single->count - at : PART;
    pln_narrow(dtype, from + at, to + at, n);
    if (pln_is_stopped(single->engine))
      break;
  }
  return PLN_OK;
}

static pln_status widen_args(const pln_kernel_call *call, pln_tensor **wide) {
  for (uint32_t i = 0; i < call->n_args; i++) {
    const pln_tensor *arg = call->args[i];
    if (arg && pln_dtype_is_half((pln_dtype)arg->dtype))
      PLN_TRY(pln_tensor_to_float32(arg, &wide[i]));
    else if (arg)
      wide[i] = pln_tensor_retain(arg);
  }
  return PLN_OK;
}

static pln_status narrow_results(pln_kernel_call *call, const char *like) {
  for (uint32_t i = 0; i < call->n_results && like[i]; i++) {
    const pln_tensor *arg = pln_kernel_arg(call, (uint32_t)(like[i] - '0'));
    pln_tensor *single = call->results[i], *half;
    if (!arg || !pln_dtype_is_half((pln_dtype)arg->dtype) || !single ||
        single->dtype != PLN_FLOAT32)
      continue;
    PLN_TRY(pln_tensor_from_float32(single, (pln_dtype)arg->dtype, &half));
    pln_tensor_release(single);
    call->results[i] = half;
  }
  return PLN_OK;
}

pln_status pln_kernel_through_float(pln_kernel_call *call, const char *like,
                                    pln_kernel_fn kernel) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_tensor *wide[ARGS] = {NULL};
  if (!x || !pln_dtype_is_half((pln_dtype)x->dtype) || call->n_args > ARGS)
    return kernel(call);
  pln_kernel_call single = *call;
  single.args = (const pln_tensor *const *)wide;
  pln_status status = widen_args(call, wide);
  if (status == PLN_OK)
    status = kernel(&single);
  if (status == PLN_OK)
    status = narrow_results(call, like);
  for (uint32_t i = 0; i < ARGS; i++)
    pln_tensor_release(wide[i]);
  return status;
}
