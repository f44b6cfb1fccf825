/* kernel.c: reads arguments and attributes of a call, and makes its results.
 * Called by all kernels. */

#include "op/kernel/kernel.h"

const pln_tensor *pln_kernel_arg(const pln_kernel_call *call, uint32_t i) {
  return i < call->n_args ? call->args[i] : NULL;
}

/* -------------------------------------------------------------- attributes */

int64_t pln_kernel_int(const pln_kernel_call *call, const char *name,
                       int64_t fallback) {
  return pln_attrs_int(call->engine, call->attrs, name, fallback);
}

double pln_kernel_float(const pln_kernel_call *call, const char *name,
                        double fallback) {
  return pln_attrs_float(call->engine, call->attrs, name, fallback);
}

bool pln_kernel_string_is(const pln_kernel_call *call, const char *name,
                          const char *fallback, const char *text) {
  pln_slice s = pln_attrs_string(call->engine, call->attrs, name, fallback);
  return pln_slice_is(s, text);
}

pln_list pln_kernel_list(const pln_kernel_call *call, uint32_t arg,
                         const char *attr) {
  const pln_tensor *t = arg == PLN_NONE ? NULL : pln_kernel_arg(call, arg);
  if (t)
    return (pln_list){.given = true,
                      .sized = t->count <= UINT32_MAX,
                      .count = (uint32_t)t->count,
                      .tensor = t};
  return pln_list_of_attr(call->engine, call->attrs, attr);
}

/* ----------------------------------------------------------------- results */

pln_status pln_kernel_result(pln_kernel_call *call, uint32_t i, pln_dtype dtype,
                             uint32_t rank, const int64_t *dims, void **data) {
  enum { PART = 1 << 20 };
  PLN_TRY(pln_kernel_unset(call, i, dtype, rank, dims, data));
  size_t bytes = call->results[i]->bytes;
  for (size_t at = 0; at < bytes; at += PART) {
    memset((char *)*data + at, 0, bytes - at < PART ? bytes - at : PART);
    PLN_TRY(pln_poll(call->engine));
  }
  return PLN_OK;
}

pln_status pln_kernel_unset(pln_kernel_call *call, uint32_t i, pln_dtype dtype,
                            uint32_t rank, const int64_t *dims, void **data) {
  PLN_TRY(pln_tensor_unset(call->engine, dtype, rank, dims, &call->results[i]));
  *data = pln_tensor_writable(call->results[i]);
  return PLN_OK;
}

void pln_kernel_same(pln_kernel_call *call, uint32_t i,
                     const pln_tensor *tensor) {
  call->results[i] = pln_tensor_retain(tensor);
}

/* -------------------------------------------------------------------- dims */

bool pln_kernel_axis(int64_t axis, uint32_t rank, uint32_t *out) {
  if (axis < -(int64_t)rank || axis >= (int64_t)rank)
    return false;
  *out = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
  return true;
}

size_t pln_dims_product(const int64_t *dims, uint32_t begin, uint32_t end) {
  size_t product = 1;
  for (uint32_t i = begin; i < end; i++)
    product *= (size_t)dims[i];
  return product;
}
