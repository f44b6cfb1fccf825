/* infer/relation.h: relations among types (PLN_TYPE_RELATION), which a function
 * type has as constraints. One of a name that TVM gives is solved by the
 * inference of an operator: from its first arguments, the inputs, follow the
 * others. */

#ifndef PLN_IR_INFER_RELATION_H
#define PLN_IR_INFER_RELATION_H

#include "ir/type/unify.h"

/* A relation by name, and the operator that knows it. */
typedef struct pln_relation_row {
  const char *name, *op;
} pln_relation_row;

/* The rows must live as long as the engine. */
void pln_relations_install(pln_engine *engine, const pln_relation_row *rows,
                           uint32_t n);
/* Unifies what follows from the constraints of an instantiated function type.
 * *unknown: a hole in the inputs of one that could not be solved yet, or 0.
 * PLN_ERR_NAME when nobody knows a relation, PLN_ERR_TYPE when one does not
 * hold. */
pln_status pln_relations_solve(pln_unifier *u, pln_type function,
                               pln_type *unknown) PLN_CHECKED;

#endif
