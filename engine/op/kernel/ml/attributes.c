/* attributes.c: see attributes.h. Called by the kernels of ai.onnx.ml. */

#include "op/kernel/ml/attributes.h"

#include <stdio.h>

#include "op/kernel/elementwise/convert.h"

static const pln_attr *find(const pln_kernel_call *call, const char *name,
                            pln_attr_kind kind) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  return a && a->kind == kind ? a : NULL;
}

pln_ml_list pln_ml_ints(const pln_kernel_call *call, const char *name) {
  const pln_attr *a = find(call, name, PLN_ATTR_INTS);
  return a ? (pln_ml_list){.count = a->count, .ints = a->v.ints}
           : (pln_ml_list){0};
}

pln_ml_list pln_ml_strings(const pln_kernel_call *call, const char *name) {
  const pln_attr *a = find(call, name, PLN_ATTR_STRINGS);
  return a ? (pln_ml_list){.count = a->count, .strings = a->v.strings}
           : (pln_ml_list){0};
}

/* A view may start at any address of its file. */
static pln_status align_tensor(const pln_tensor *t, pln_tensor **out) {
  const void *data;
  PLN_TRY(pln_tensor_data(t, &data));
  if (t->splat || t->dtype == PLN_STRING || (uintptr_t)data % 8 == 0)
    return pln_tensor_dense(t, out);
  return pln_tensor_from_bytes(t->engine, (pln_dtype)t->dtype, t->rank, t->dims,
                               data, t->bytes, out);
}

const pln_tensor *pln_ml_tensor(pln_composition *s, const pln_tensor *tensor) {
  pln_tensor *aligned = NULL;
  if (s->status == PLN_OK)
    s->status = align_tensor(tensor, &aligned);
  const pln_tensor *kept = pln_compose_own(s, aligned);
  return s->status == PLN_OK ? kept : NULL;
}

/* The elements of a tensor attribute as float64. */
static pln_ml_list floats_of_tensor(pln_composition *s, pln_tensor *t) {
  const pln_tensor *kept = pln_ml_tensor(s, t);
  if (s->status == PLN_OK && !pln_convertible((pln_dtype)kept->dtype))
    pln_composition_refuse(s, "a tensor attribute is not of numbers");
  kept = s->status == PLN_OK ? pln_compose_cast(s, kept, PLN_FLOAT64) : NULL;
  return kept ? (pln_ml_list){.count = kept->count, .floats = kept->data}
              : (pln_ml_list){0};
}

pln_ml_list pln_ml_floats(pln_composition *s, const char *name) {
  char other[64];
  const pln_attr *a = find(s->call, name, PLN_ATTR_FLOATS);
  if (a)
    return (pln_ml_list){.count = a->count, .floats = a->v.floats};
  a = find(s->call, name, PLN_ATTR_TENSOR);
  if (!a) {
    snprintf(other, sizeof other, "%s_as_tensor", name);
    a = find(s->call, other, PLN_ATTR_TENSOR);
  }
  return a ? floats_of_tensor(s, a->v.tensor) : (pln_ml_list){0};
}

bool pln_ml_read_rows(pln_composition *s, pln_dtype dtype, pln_ml_rows *out) {
  const pln_tensor *x = pln_kernel_arg(s->call, 0);
  if (x->rank < 1 || x->rank > 2 || x->dtype == PLN_STRING ||
      !pln_convertible((pln_dtype)x->dtype)) {
    pln_composition_refuse(s, "the operand is no vector or matrix of numbers");
    return false;
  }
  *out = (pln_ml_rows){.tensor = pln_compose_cast(s, x, dtype),
                       .rows = x->rank == 1 ? 1 : x->dims[0],
                       .columns = x->dims[x->rank - 1]};
  return s->status == PLN_OK;
}
