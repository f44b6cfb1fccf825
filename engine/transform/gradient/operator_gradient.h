/* operator_gradient.h: gradients of calls of operators, and what the formulas
 * of operators are written with. */

#ifndef PLN_TRANSFORM_GRADIENT_OPERATOR_GRADIENT_H
#define PLN_TRANSFORM_GRADIENT_OPERATOR_GRADIENT_H

#include "op/op.h"
#include "transform/relay_builder.h"

/* One gradient: given the call and the gradient of its result, the gradients of
 * its arguments. All are nodes of a free builder. */
typedef struct pln_gradient {
  pln_relay_builder r; /* its rw is NULL */
  pln_op op;
  pln_attrs attrs; /* under Relay's names */
  pln_ref orig, grad;
  uint32_t n;
  const pln_ref *args;
  pln_ref *out; /* n: to be set */
} pln_gradient;

typedef void (*pln_gradient_fn)(pln_gradient *g);

/* True if operators of that number have a gradient. */
bool pln_has_gradient(const pln_engine *engine, pln_op op);
/* Builds the gradients of the arguments of `orig`, a call. */
pln_status pln_operator_gradient(pln_builder *b, pln_ref orig, pln_ref grad,
                                 pln_ref *out) PLN_CHECKED;

/* ----------------------------------------------------------------- formulas */

/* The gradient cannot be built: "the gradient of 'max': ...". */
void pln_gradient_refuse(pln_gradient *g, const char *why);
pln_type pln_gradient_type(const pln_gradient *g, pln_ref node);
/* The extents of a tensor; NULL, and the gradient is refused, if one is not
 * known. */
const pln_dim *pln_gradient_shape(pln_gradient *g, pln_ref node, int32_t *rank);
/* Attributes of the call. A boolean is an integer. */
int64_t pln_gradient_int(const pln_gradient *g, const char *name,
                         int64_t fallback);
double pln_gradient_float(const pln_gradient *g, const char *name,
                          double fallback);
const char *pln_gradient_text(const pln_gradient *g, const char *name,
                              const char *fallback);
/* Up to `most` integers; returns how many, or -1 if there is no such list. An
 * integer is a list of one. */
int32_t pln_gradient_ints(const pln_gradient *g, const char *name, int32_t most,
                          int64_t *out);

static inline pln_ref pln_unary(pln_gradient *g, pln_op op, pln_ref x) {
  return pln_relay_call(&g->r, op, 1, x);
}
static inline pln_ref pln_binary(pln_gradient *g, pln_op op, pln_ref x,
                                 pln_ref y) {
  return pln_relay_call(&g->r, op, 2, x, y);
}
/* A scalar of the dtype of `like`. */
pln_ref pln_scalar_like(pln_gradient *g, pln_ref like, double value);
/* A vector of int32. */
pln_ref pln_ints_constant(pln_gradient *g, int32_t n, const int64_t *values);
/* The elements of `x` in the extents `shape`. */
pln_ref pln_reshape_to(pln_gradient *g, pln_ref x, uint32_t n,
                       const int64_t *shape);
/* sum over axes; n -1: over all. */
pln_ref pln_sum_over(pln_gradient *g, pln_ref x, int32_t n, const int64_t *axes,
                     bool keepdims, bool exclude);

#define GRADIENT(op, function) void function(pln_gradient *g);
#include "transform/gradient/gradients.def"

#endif
