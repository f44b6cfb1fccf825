/* let.h: queries on lets, and let construction, for the passes between graph
 * normal forms. */

#ifndef PLN_TRANSFORM_FUNCTIONAL_LET_H
#define PLN_TRANSFORM_FUNCTIONAL_LET_H

#include "ir/graph/graph.h"

/* Appends let %x = value in the current scope; *out is the Var. */
pln_status pln_let_new(pln_builder *b, pln_ref value, pln_ref *out) PLN_CHECKED;
/* Returns true for nodes that compute nothing: variables, names, operators,
 * constructors, Absent, lets, and all kinds that are not expressions. */
bool pln_let_is_atom(const pln_node *node);
/* first[i] is the first node that uses node i; for the result of a scope, its
 * owner; PLN_NONE if there is no user. */
void pln_let_first_users(const pln_graph *graph, pln_ref *first);
/* Marks the scopes inside functions with the attribute Primitive. */
void pln_let_primitive_scopes(const pln_graph *graph, uint8_t *primitive);
/* Marks functions that are arguments of operators, which must see them
 * directly. The array is preset to 0. */
void pln_let_operator_functions(const pln_graph *graph,
                                uint8_t *is_operator_function);
/* to_a_normal_form.c: the graph with its scopes in A-normal form, but for those
 * with outside[s]. */
pln_status pln_a_normal_form(const pln_graph *graph, const uint8_t *outside,
                             pln_graph **out) PLN_CHECKED;

#endif
