/* fold_weights.h: shared by the passes that fold a neighbour into the weights
 * of a linear operator: conv, conv_transpose, gemm, or matmul of two matrices,
 * which becomes a gemm. Such an operator is called a product here. */

#ifndef PLN_TRANSFORM_FOLD_FOLD_WEIGHTS_H
#define PLN_TRANSFORM_FOLD_FOLD_WEIGHTS_H

#include "eval/eval.h"
#include "ir/rewrite/use_counts.h"
#include "transform/fold/weight.h"
#include "transform/simplify/rule.h"

/* A constant that was scaled by one number; it can be used in the scope. */
typedef struct pln_scaled_constant {
  pln_ref constant;
  pln_scope scope;
  double factor;
  pln_ref scaled;
} pln_scaled_constant;

/* Those of a sweep: what is scaled again by the same number is made once. */
typedef struct pln_scaled_constants {
  pln_engine *engine;
  pln_idmap *row_of; /* hash of constant, scope and factor -> 1 + a row */
  pln_scaled_constant *rows;
  uint32_t n, cap;
} pln_scaled_constants;

/* The constant that equals `wanted` but for `scaled`; PLN_NONE: there is
 * none. */
pln_ref pln_scaled_constants_find(const pln_scaled_constants *set,
                                  const pln_scaled_constant *wanted);
pln_status pln_scaled_constants_add(pln_scaled_constants *set,
                                    const pln_scaled_constant *row) PLN_CHECKED;

/* A call that may be folded into the product that computes its operand. */
typedef struct pln_fold_candidate {
  pln_rewrite_context at; /* the call */
  pln_budget *budget;
  pln_use_counts *uses;
  pln_scaled_constants *scaled;
  const pln_scope *node_scope; /* by node of the old graph */
  bool halves;                 /* 16-bit weights may be scaled */
  const char *rule;            /* the rule's name in reports */
} pln_fold_candidate;

/* Returns true if operand `i` is a plain call in the same scope that nothing
 * else uses. */
bool pln_fold_is_only_use(const pln_fold_candidate *ctx, uint32_t i);
/* Returns true if operand `i` is a product: conv, conv_transpose, gemm, matmul
 * of two matrices. */
bool pln_fold_is_product(const pln_fold_candidate *ctx, uint32_t i);
/* Asks the rule limits for permission to replace the call and `product` by
 * *node. Sets *node to PLN_NONE if refused. */
pln_status pln_fold_replace(pln_fold_candidate *ctx, pln_ref product,
                            pln_ref *node) PLN_CHECKED;
/* Number of channels of the product's result; 0 if unknown or if its operands
 * do not fit. */
size_t pln_fold_channels(const pln_fold_candidate *ctx, pln_ref product);
/* Builds product * factor + addend, with one factor and one addend per channel,
 * as one product. `factors` NULL means all 1; then the weight need not be
 * constant. A new bias takes the origin of the constant `like`. *out is
 * PLN_NONE if the weights are not constant or the budget refuses. */
pln_status pln_fold_affine(pln_fold_candidate *ctx, pln_ref product,
                           const double *factors, const double *addends,
                           pln_ref like, pln_ref *out) PLN_CHECKED;

/* A step behind the sweeps: replaces *graph and adds to *folded. */
typedef pln_status (*pln_fold_step)(pln_engine *engine, pln_budget *budget,
                                    bool halves, pln_graph **graph,
                                    int64_t *folded);
/* Tries the rule of its operator on each plain call. Repeats the sweep while
 * something changed and the budget refused something. Then runs the step `then`
 * (NULL: none). Reports under `key`. */
typedef struct pln_fold_rule_row {
  const char *name;
  pln_op op;
  pln_status (*rule)(pln_fold_candidate *ctx, pln_ref *out);
} pln_fold_rule_row;
pln_status pln_fold_weights(pln_pass_run *run, uint32_t n_rows,
                            const pln_fold_rule_row *rows, const char *key,
                            pln_fold_step then) PLN_CHECKED;

#endif
