/* composed.h: kernels made of the kernels of other operators, one step after
 * the other. A step that fails makes all that follow give NULL and do nothing,
 * so that a kernel reads like the formula it computes and is asked once, at its
 * end, how it went.
 *
 * The operands of a step must be what the inference of its operator accepts;
 * where only values tell that, the kernel refuses first. */

#ifndef PLN_OP_KERNEL_COMPOSED_H
#define PLN_OP_KERNEL_COMPOSED_H

#include "op/kernel/kernel.h"

enum {
  PLN_COMPOSITION_TENSORS = 48,
  PLN_COMPOSITION_ATTRS = 12,
  PLN_COMPOSITION_INTS = 256
};

typedef struct pln_composition {
  pln_kernel_call *call;
  pln_status status;
  uint32_t n_made, n_attrs, n_ints;
  pln_tensor *made[PLN_COMPOSITION_TENSORS]; /* owned until the end */
  pln_attr attrs[PLN_COMPOSITION_ATTRS];     /* of the next step */
  int64_t ints[PLN_COMPOSITION_INTS];
} pln_composition;

void pln_composition_begin(pln_composition *s, pln_kernel_call *call);
/* Result `i` is that tensor; passed over when the call has no such result. */
void pln_composition_set_result(pln_composition *s, uint32_t i,
                                const pln_tensor *tensor);
/* PLN_ERR_UNSUPPORTED with that message, unless a step has failed before. */
void pln_composition_refuse(pln_composition *s, const char *why);
/* Frees what the steps made and tells how they went. */
pln_status pln_composition_end(pln_composition *s) PLN_CHECKED;
/* Result 0 is `last`, and the end. */
pln_status pln_composition_finish(pln_composition *s,
                                  const pln_tensor *last) PLN_CHECKED;

/* Attributes of the next step. `ints` are copied. */
void pln_compose_int(pln_composition *s, const char *name, int64_t value);
void pln_compose_ints(pln_composition *s, const char *name, uint32_t n,
                      const int64_t *ints);
void pln_compose_float(pln_composition *s, const char *name, double value);
void pln_compose_string(pln_composition *s, const char *name, const char *text);

/* Takes over a tensor that the kernel made itself; NULL stays NULL. */
const pln_tensor *pln_compose_own(pln_composition *s, pln_tensor *tensor);

/* The first result of an operator's call; NULL when it fails. */
const pln_tensor *pln_compose_call(pln_composition *s, pln_op op,
                                   uint32_t n_args,
                                   const pln_tensor *const *args);
const pln_tensor *pln_compose_unary(pln_composition *s, pln_op op,
                                    const pln_tensor *x);
const pln_tensor *pln_compose_binary(pln_composition *s, pln_op op,
                                     const pln_tensor *a, const pln_tensor *b);

const pln_tensor *pln_compose_reshape(pln_composition *s, const pln_tensor *x,
                                      uint32_t rank, const int64_t *dims);
const pln_tensor *pln_compose_cast(pln_composition *s, const pln_tensor *x,
                                   pln_dtype dtype);
/* From one layout of axes to another; the same tensor when they are equal. */
const pln_tensor *pln_compose_layout(pln_composition *s, const pln_tensor *x,
                                     pln_slice from, pln_slice to);
/* A scalar. */
const pln_tensor *pln_compose_scalar(pln_composition *s, pln_dtype dtype,
                                     double value);
/* A vector of int64. */
const pln_tensor *pln_compose_vector(pln_composition *s, uint32_t n,
                                     const int64_t *ints);

#endif
