/* kernel_call.h: one operator computed on tensors, for tests of kernels. */

#ifndef SPEC_ONE_CALL_H
#define SPEC_ONE_CALL_H

#include "check.h"

#include "eval/call.h"
#include "ir/tensor/tensor.h"

enum { ONE_CALL_ARGS = 4 };

/* Attributes of a call. */
static inline pln_attr one_int(pln_engine *e, const char *name, int64_t value) {
  pln_attr a = {.kind = PLN_ATTR_INT};
  CHECK_OK(pln_symbol_intern(e, pln_text(name), &a.name));
  a.v.i = value;
  return a;
}

static inline pln_attr one_ints(pln_engine *e, const char *name, uint32_t n,
                                const int64_t *values) {
  pln_attr a = {.kind = PLN_ATTR_INTS, .count = n};
  CHECK_OK(pln_symbol_intern(e, pln_text(name), &a.name));
  a.v.ints = values;
  return a;
}

static inline pln_attr one_string(pln_engine *e, const char *name,
                                  const char *text) {
  pln_attr a = {.kind = PLN_ATTR_STRING};
  CHECK_OK(pln_symbol_intern(e, pln_text(name), &a.name));
  a.v.s = pln_text(text);
  return a;
}

static inline pln_tensor *one_tensor(pln_engine *e, pln_dtype dtype,
                                     uint32_t rank, const int64_t *dims,
                                     const void *data) {
  pln_tensor *t = NULL;
  size_t size = pln_dtype_bits(dtype) / 8;
  for (uint32_t i = 0; i < rank; i++)
    size *= (size_t)dims[i];
  CHECK_OK(pln_tensor_from_bytes(e, dtype, rank, dims, data, size, &t));
  return t;
}

/* The call's results; the arguments are released. */
static inline void one_calls(pln_engine *e, const char *op, uint32_t n_attrs,
                             pln_attr *list, uint32_t n, pln_tensor **args,
                             uint32_t n_results, pln_tensor **results) {
  pln_builder *b;
  pln_attrs attrs = 0;
  pln_ref refs[ONE_CALL_ARGS] = {PLN_NONE}, node = PLN_NONE;
  CHECK_OK(pln_builder_new(e, &b));
  CHECK_OK(pln_attrs_make(e, n_attrs, list, &attrs));
  for (uint32_t i = 0; i < n; i++)
    CHECK_OK(pln_build_constant(b, args[i], &refs[i]));
  CHECK_OK(pln_build_call(b, pln_op_find(e, pln_text(op)), attrs,
                          n_results > 1 ? n_results : 0, n, refs, &node));
  memset(results, 0, n_results * sizeof *results);
  CHECK_OK(pln_compute(pln_builder_graph(b), node, n,
                       (const pln_tensor *const *)args, results));
  pln_builder_free(b);
  for (uint32_t i = 0; i < n; i++)
    pln_tensor_release(args[i]);
}

static inline pln_tensor *one_call(pln_engine *e, const char *op,
                                   uint32_t n_attrs, pln_attr *list, uint32_t n,
                                   pln_tensor **args) {
  pln_tensor *out;
  one_calls(e, op, n_attrs, list, n, args, 1, &out);
  return out;
}

#endif
