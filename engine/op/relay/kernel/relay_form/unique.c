/* unique.c: the kernel of Relay's unique, composed of ONNX's. Called by
 * op/kernel/shape/unique.c, which has the types.
 *
 * The results have the operand's length; what is behind the unique elements is
 * 0, and of the indices the length. Semantics: TVM topi.unique. */

#include "op/kernel/composed.h"
#include "op/relay/kernel/relay_form/relay_form.h"

enum { ELEMENTS, FIRST, INVERSE, COUNTS, PARTS };

/* A vector of `n` integers of that value. */
static const pln_tensor *vector_of(pln_composition *s, int64_t n,
                                   int64_t value) {
  pln_tensor *out = NULL;
  if (s->status != PLN_OK)
    return NULL;
  s->status = pln_tensor_unset(s->call->engine, PLN_INT64, 1, &n, &out);
  if (s->status != PLN_OK)
    return NULL;
  int64_t *to = pln_tensor_writable(out);
  for (int64_t i = 0; i < n; i++)
    to[i] = value;
  return pln_compose_own(s, out);
}

/* x, cast, with `n` elements, the new ones of that value. */
static const pln_tensor *padded(pln_composition *s, const pln_tensor *x,
                                pln_dtype dtype, int64_t n, int64_t value) {
  const pln_tensor *args[2] = {pln_compose_cast(s, x, dtype), NULL};
  if (s->status != PLN_OK || x->dims[0] == n)
    return args[0];
  args[1] = pln_compose_cast(s, vector_of(s, n - x->dims[0], value), dtype);
  pln_compose_int(s, "axis", 0);
  return pln_compose_call(s, PLN_OP_CONCAT, 2, args);
}

/* (elements, first positions, inverse, number[, counts]) */
pln_status pln_kernel_relay_unique(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *parts[PARTS];
  pln_composition s;
  if (x->rank != 1)
    return pln_kernel_refuse(call, "the operand is no vector");
  int64_t n = x->dims[0];
  pln_composition_begin(&s, call);
  pln_compose_forward(&s, "sorted");
  pln_compose_results(&s, PLN_OP_UNIQUE, 1, &x, PARTS, parts);
  if (s.status != PLN_OK)
    return pln_composition_end(&s);
  int64_t number = parts[ELEMENTS]->dims[0];
  pln_composition_set_result(
      &s, 0, padded(&s, parts[ELEMENTS], (pln_dtype)x->dtype, n, 0));
  pln_composition_set_result(&s, 1, padded(&s, parts[FIRST], PLN_INT32, n, n));
  pln_composition_set_result(&s, 2,
                             pln_compose_cast(&s, parts[INVERSE], PLN_INT32));
  pln_composition_set_result(
      &s, 3,
      pln_compose_cast(&s, pln_compose_vector(&s, 1, &number), PLN_INT32));
  if (pln_kernel_int(call, "return_counts", 0))
    pln_composition_set_result(&s, 4,
                               padded(&s, parts[COUNTS], PLN_INT32, n, 0));
  return pln_composition_end(&s);
}
