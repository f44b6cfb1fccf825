/* fold_weights.h: what the passes stand on that fold a neighbour into the
 * weights of a product: a convolution, a transposed one, a gemm, or a product
 * of two matrices, which becomes a gemm. */

#ifndef PLN_TRANSFORM_FOLD_FOLD_WEIGHTS_H
#define PLN_TRANSFORM_FOLD_FOLD_WEIGHTS_H

#include "eval/eval.h"
#include "transform/fold/use_counts.h"
#include "transform/fold/weight.h"
#include "transform/simplify/rule.h"

/* A call that may be folded into the product that feeds it. */
typedef struct pln_fold_candidate {
  pln_rewrite_context at; /* the call */
  pln_budget *budget;
  pln_use_counts *uses;
  const pln_scope *node_scope; /* a node of the old graph */
  bool halves;                 /* weights of 16 bits may be scaled */
  const char *rule;            /* the name of the rule that looks at it */
} pln_fold_candidate;

/* Operand `i` is a plain call that nothing else uses, computed as often as the
 * call at hand: in the same scope. */
bool pln_fold_is_only_use(const pln_fold_candidate *ctx, uint32_t i);
/* It is such a product: conv, conv_transpose, gemm, matmul of two matrices. */
bool pln_fold_is_product(const pln_fold_candidate *ctx, uint32_t i);
/* To be asked when *node is to take the place of the call and of `product`:
 * PLN_NONE when it may not. */
pln_status pln_fold_replace(pln_fold_candidate *ctx, pln_ref product,
                            pln_ref *node) PLN_CHECKED;
/* How many channels the product's result has; 0 when not known, or when its
 * operands do not fit. */
size_t pln_fold_channels(const pln_fold_candidate *ctx, pln_ref product);
/* product * factor + addend, a number of each for each channel, as one product.
 * Factors NULL: all are 1, and the weight need not be constant. `like` is the
 * constant that a new bias takes after. PLN_NONE when the weights are not
 * constant or the budget does not allow it. */
pln_status pln_fold_affine(pln_fold_candidate *ctx, pln_ref product,
                           const double *factors, const double *addends,
                           pln_ref like, pln_ref *out) PLN_CHECKED;

/* Asks the rule of its operator for each plain call that has one, sweep after
 * sweep while one changes something and the budget refuses something; reports
 * under `key`. */
typedef struct pln_fold_rule_row {
  const char *name;
  pln_op op;
  pln_status (*rule)(pln_fold_candidate *ctx, pln_ref *out);
} pln_fold_rule_row;
pln_status pln_fold_weights(pln_pass_run *run, uint32_t n_rows,
                            const pln_fold_rule_row *rows,
                            const char *key) PLN_CHECKED;

#endif
