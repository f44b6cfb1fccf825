/* infer/relation.h: type relations (PLN_TYPE_RELATION), the constraints of
 * function types. A relation with a name of TVM's is solved by the inference of
 * an operator: its first arguments, the inputs, determine the others. */

#ifndef PLN_IR_INFER_RELATION_H
#define PLN_IR_INFER_RELATION_H

#include "ir/type/unify.h"

/* The name of a relation and the operator whose inference solves it. */
typedef struct pln_relation_row {
  const char *name, *op;
} pln_relation_row;

/* The rows must live as long as the engine. */
void pln_relations_install(pln_engine *engine, const pln_relation_row *rows,
                           uint32_t n);
/* Unifies what follows from the constraints of an instantiated function type.
 * *unknown: a hole in the inputs of a relation that could not be solved yet, or
 * 0. PLN_ERR_NAME for an unknown relation; PLN_ERR_TYPE when one does not
 * hold. */
pln_status pln_relations_solve(pln_unifier *u, pln_type function,
                               pln_type *unknown) PLN_CHECKED;

#endif
