/* let.h: lets as the passes between graph forms see them. */

#ifndef PLN_TRANSFORM_FUNCTIONAL_LET_H
#define PLN_TRANSFORM_FUNCTIONAL_LET_H

#include "ir/graph/graph.h"

/* let %x = value, in the scope where the next node goes; *out is the Var. */
pln_status pln_let_new(pln_builder *b, pln_ref value, pln_ref *out) PLN_CHECKED;
/* A variable, constant-free atom or pattern: nothing is computed by it. */
bool pln_let_is_atom(const pln_node *node);
/* A node: the first node that uses it, an owner for the result of its scope;
 * PLN_NONE: no one. */
void pln_let_first_users(const pln_graph *graph, pln_ref *first);
/* A scope: whether it lies in a function with the attribute Primitive. */
void pln_let_primitive_scopes(const pln_graph *graph, uint8_t *primitive);
/* A node: whether it is a function that an operator is given, which must see
 * it. Preset to 0. */
void pln_let_operator_functions(const pln_graph *graph, uint8_t *in_sight);

#endif
