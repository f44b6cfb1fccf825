/* relay_builder.h: builds calls of operators in Relay's form inside a rewrite,
 * with Relay's names of attributes.
 *
 * For passes that replace a node by several calls. A builder keeps its first
 * failure; after it every function returns PLN_NONE and does nothing, so that
 * an expression can be written as such and is checked once, by
 * pln_relay_finish. A call that type inference refuses is a failure too, but
 * one that only leaves the node as it was.
 *
 *     pln_relay_builder r;
 *     PLN_TRY(pln_relay_begin(&r, rw));
 *     pln_ref square = pln_relay_call(&r, PLN_OP_MUL, 2, x, x);
 *     pln_ref root = pln_relay_call(&r, PLN_OP_SQRT, 1, square);
 *     return pln_relay_finish(&r, "square_root", root, node); */

#ifndef PLN_TRANSFORM_RELAY_BUILDER_H
#define PLN_TRANSFORM_RELAY_BUILDER_H

#include "op/op.h"
#include "transform/transform.h"

typedef struct pln_relay_builder {
  pln_engine *engine;
  pln_rewrite *rw;
  pln_builder *b;
  pln_status status; /* the first failure; PLN_ERR_TYPE: without diagnostic */
} pln_relay_builder;

/* An attribute of the call under Relay's name. A bool is an INT, a dtype the
 * STRING of its name. */
typedef struct pln_relay_attr {
  const char *name;
  pln_attr value;
} pln_relay_attr;

static inline pln_relay_attr pln_relay_int(const char *name, int64_t i) {
  return (pln_relay_attr){name, {.kind = PLN_ATTR_INT, .v.i = i}};
}
/* The list is borrowed until the call is built. */
static inline pln_relay_attr pln_relay_ints(const char *name, uint32_t n,
                                            const int64_t *ints) {
  return (pln_relay_attr){name,
                          {.kind = PLN_ATTR_INTS, .count = n, .v.ints = ints}};
}

/* Prepares a builder that appends to the new graph of the rewrite. */
pln_status pln_relay_begin(pln_relay_builder *r, pln_rewrite *rw) PLN_CHECKED;
/* A call of `op` without attributes; `n` operands of type pln_ref follow. */
pln_ref pln_relay_call(pln_relay_builder *r, pln_op op, uint32_t n, ...);
/* A call with attributes; those that are not given have Relay's defaults. It
 * has as many results as Relay's operator. */
pln_ref pln_relay_call_with(pln_relay_builder *r, pln_op op, uint32_t n_attrs,
                            const pln_relay_attr *attrs, uint32_t n,
                            const pln_ref *args);
/* A call of `op` with core attributes, such as those of the replaced call. */
pln_ref pln_relay_call_core(pln_relay_builder *r, pln_op op, pln_attrs attrs,
                            uint32_t n, const pln_ref *args);
/* `vector` with axes of extent 1 appended, so that it broadcasts along `axis`
 * of a tensor of that rank. */
pln_ref pln_relay_along_axis(pln_relay_builder *r, pln_ref vector, int32_t rank,
                             int32_t axis);
/* A Tuple, and a field of one. */
pln_ref pln_relay_tuple(pln_relay_builder *r, uint32_t n,
                        const pln_ref *fields);
pln_ref pln_relay_field(pln_relay_builder *r, pln_ref tuple, uint32_t index);
/* A scalar constant. */
pln_ref pln_relay_scalar(pln_relay_builder *r, pln_dtype dtype, double value);
/* Applies the rule: sets *node to `result`, which gets what *node's type says
 * beyond its own. Leaves *node if a limit refuses the application, or if type
 * inference refused a call. Other failures are returned. */
pln_status pln_relay_finish(pln_relay_builder *r, const char *rule,
                            pln_ref result, pln_ref *node) PLN_CHECKED;

/* For passes that know before that every call is well-typed, and whose other
 * replacements depend on this one: the status, with a diagnostic where type
 * inference refused a call. */
pln_status pln_relay_status(const pln_relay_builder *r) PLN_CHECKED;

#endif
