/* op_info.h: what the IR must know of an operator: its row.
 *
 * op/ fills the table from ops.def when the engine is made; operators met in
 * files and known to nobody are added as opaque rows. */

#ifndef PLN_OP_INFO_H
#define PLN_OP_INFO_H

#include "base/base.h"

/* Traits of an operator. */
enum {
  PLN_TRAIT_PURE = 1 << 0, /* no effect; else unknown effects */
  PLN_TRAIT_COMMUTATIVE = 1 << 1,
  PLN_TRAIT_ASSOCIATIVE = 1 << 2,
  PLN_TRAIT_IDEMPOTENT = 1 << 3, /* f(f(x)) = f(x) */
  PLN_TRAIT_ELEMENTWISE = 1 << 4,
  PLN_TRAIT_BROADCAST = 1 << 5,
  PLN_TRAIT_INJECTIVE = 1 << 6,
  PLN_TRAIT_REDUCE = 1 << 7,
  PLN_TRAIT_RANDOM = 1 << 8, /* a new value each time: reads a hidden state */
  PLN_TRAIT_OPAQUE = 1 << 9, /* nobody here knows it */
  PLN_TRAIT_DATA = 1 << 10,  /* its kernel works on data, maybe no tensors */
  PLN_TRAIT_LOOSE = 1 << 11  /* its kernel reads floats at any address */
};

/* A call that is being typed. Operands are nodes of `graph`, already typed. */
typedef struct pln_infer {
  pln_engine *engine;
  const pln_graph *graph;
  const pln_ref *args;
  uint32_t n_args;
  pln_op op;
  pln_attrs attrs;
  uint32_t n_results; /* as pln_node_n_results */
  pln_type *results;  /* max(1, n_results) of them, preset to 0 */
  pln_value value;    /* of a plain result; preset to 0 */
} pln_infer;

/* Fills results with what can be known. PLN_ERR_TYPE with a diagnostic when
 * the call can never be valid. */
typedef pln_status (*pln_infer_fn)(pln_infer *call);

struct pln_kernel_call; /* op/op.h */
typedef pln_status (*pln_kernel_fn)(struct pln_kernel_call *call);

typedef struct pln_op_info {
  const char *name;
  int32_t min_args;
  int32_t max_args; /* -1: any number */
  uint32_t traits;
  const char *attrs;    /* schema: "axis:int=1 perm:ints epsilon:float=1e-5" */
  pln_infer_fn infer;   /* NULL: nothing is known of the result */
  pln_kernel_fn kernel; /* NULL: cannot be evaluated */
  const char *doc;
} pln_op_info;

/* Adds rows 1 .. n, once. The rows must live as long as the engine. */
pln_status pln_ops_install(pln_engine *engine, const pln_op_info *rows,
                           uint32_t n) PLN_CHECKED;
void pln_ops_free(pln_engine *engine);
/* The row of an opaque operator of that name, made when there is none. */
pln_status pln_op_opaque(pln_engine *engine, pln_slice name,
                         pln_op *out) PLN_CHECKED;
const pln_op_info *pln_op_row(const pln_engine *engine, pln_op op);

#endif
