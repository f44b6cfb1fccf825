/* composed.h: kernels composed of other operators' kernels. After a call fails,
 * all later calls return NULL and do nothing, so that a kernel reads like its
 * formula and checks the status once at its end.
 *
 * What the inference of an operator does not accept is refused before its
 * kernel runs. */

#ifndef PLN_OP_KERNEL_COMPOSED_H
#define PLN_OP_KERNEL_COMPOSED_H

#include "op/kernel/kernel.h"

enum {
  PLN_COMPOSITION_TENSORS = 256,
  PLN_COMPOSITION_ATTRS = 12,
  PLN_COMPOSITION_INTS = 256,
  PLN_COMPOSITION_RESULTS = 4
};

typedef struct pln_composition {
  pln_kernel_call *call;
  pln_status status;
  uint32_t n_made, n_attrs, n_ints;
  pln_tensor
      *made[PLN_COMPOSITION_TENSORS];    /* owned until pln_composition_end */
  pln_attr attrs[PLN_COMPOSITION_ATTRS]; /* attributes of the next call */
  int64_t ints[PLN_COMPOSITION_INTS];
} pln_composition;

void pln_composition_begin(pln_composition *s, pln_kernel_call *call);
/* Sets result `i`; ignored if the call has no such result. */
void pln_composition_set_result(pln_composition *s, uint32_t i,
                                const pln_tensor *tensor);
/* Fails with PLN_ERR_UNSUPPORTED and that message, unless a call has failed
 * before. */
void pln_composition_refuse(pln_composition *s, const char *why);
/* Frees the tensors made and returns the status. */
pln_status pln_composition_end(pln_composition *s) PLN_CHECKED;
/* Sets result 0 to `last` and ends. */
pln_status pln_composition_finish(pln_composition *s,
                                  const pln_tensor *last) PLN_CHECKED;

/* Set attributes of the next call. `ints` are copied. */
void pln_compose_int(pln_composition *s, const char *name, int64_t value);
void pln_compose_ints(pln_composition *s, const char *name, uint32_t n,
                      const int64_t *ints);
void pln_compose_float(pln_composition *s, const char *name, double value);
void pln_compose_string(pln_composition *s, const char *name, const char *text);
/* Sets an attribute as the kernel's own call has it; ignored if it has none of
 * that name. */
void pln_compose_forward(pln_composition *s, const char *name);

/* Takes ownership of a tensor that the kernel made; NULL stays NULL. */
const pln_tensor *pln_compose_own(pln_composition *s, pln_tensor *tensor);

/* Calls an operator's kernel and returns its first result; NULL after a
 * failure. */
const pln_tensor *pln_compose_call(pln_composition *s, pln_op op,
                                   uint32_t n_args,
                                   const pln_tensor *const *args);
/* The same for the first n_results results, at most PLN_COMPOSITION_RESULTS, of
 * an operator that gives all of them. */
void pln_compose_results(pln_composition *s, pln_op op, uint32_t n_args,
                         const pln_tensor *const *args, uint32_t n_results,
                         const pln_tensor **out);
const pln_tensor *pln_compose_unary(pln_composition *s, pln_op op,
                                    const pln_tensor *x);
const pln_tensor *pln_compose_binary(pln_composition *s, pln_op op,
                                     const pln_tensor *a, const pln_tensor *b);

const pln_tensor *pln_compose_reshape(pln_composition *s, const pln_tensor *x,
                                      uint32_t rank, const int64_t *dims);
const pln_tensor *pln_compose_cast(pln_composition *s, const pln_tensor *x,
                                   pln_dtype dtype);
/* Transposes from one layout of axes to another; returns the same tensor if
 * they are equal. */
const pln_tensor *pln_compose_layout(pln_composition *s, const pln_tensor *x,
                                     pln_slice from, pln_slice to);
/* Elements [from, to) of an axis. */
const pln_tensor *pln_compose_slice(pln_composition *s, const pln_tensor *x,
                                    int64_t axis, int64_t from, int64_t to);
/* Permutes the axes. */
const pln_tensor *pln_compose_transpose(pln_composition *s, const pln_tensor *x,
                                        uint32_t rank, const int64_t *axes);
/* Moves the first axis behind the others. */
const pln_tensor *pln_compose_first_axis_last(pln_composition *s,
                                              const pln_tensor *x);
/* A scalar. */
const pln_tensor *pln_compose_scalar(pln_composition *s, pln_dtype dtype,
                                     double value);
/* A vector of int64. */
const pln_tensor *pln_compose_vector(pln_composition *s, uint32_t n,
                                     const int64_t *ints);

#endif
