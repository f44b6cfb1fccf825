/* lower_intrin.h: the parts of tir.LowerIntrin. */

#ifndef PLN_LOWER_HOST_LOWER_INTRIN_H
#define PLN_LOWER_HOST_LOWER_INTRIN_H

#include "arith/arith.h"
#include "lower/host/host.h"

typedef struct pln_intrin_lowering {
  const pln_graph *g;
  pln_analyzer_scopes scopes;
  bool llvm;      /* the target; else C */
  bool fma;       /* the target multiplies and adds in one operation */
  pln_ref *guard; /* a node: the Select (or if_then_else) all of whose uses of
                   * the node are in one of its values; PLN_NONE: none */
  bool *is_false; /* and whether that is the value for false */
} pln_intrin_lowering;

/* floor_division.c: FloorDiv, FloorMod, and comparisons of them. *node is left
 * as it is where nothing is to be done. */
pln_status pln_floor_division_lower(pln_intrin_lowering *x, pln_emit *e,
                                    pln_stmt_rewrite *s, pln_ref old,
                                    pln_ref *node) PLN_CHECKED;
/* intrinsic_rules.c: a call of a builtin, with images of its arguments. */
pln_status pln_intrin_lower_call(const pln_intrin_lowering *x, pln_emit *e,
                                 const char *builtin, pln_type type, uint32_t n,
                                 const pln_ref *args,
                                 pln_ref *node) PLN_CHECKED;

#endif
