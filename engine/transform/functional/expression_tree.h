/* expression_tree.h: a sealed function read as the tree of its Relay
 * expressions, for ToCPS, PartialEvaluate and Gradient, which build their
 * results in the order in which Relay evaluates that tree. */

#ifndef PLN_TRANSFORM_FUNCTIONAL_EXPRESSION_TREE_H
#define PLN_TRANSFORM_FUNCTIONAL_EXPRESSION_TREE_H

#include "ir/graph/graph.h"

/* The value of a scope is its statements in order, then its result. A statement
 * is a Let, or a node with an effect that nothing uses. */
typedef struct pln_expression_tree {
  const pln_graph *graph;
  pln_ref *first; /* by scope: its first statement, or PLN_NONE */
  pln_ref *next;  /* by node: the next statement of the same scope */
} pln_expression_tree;

/* PLN_ERR_INVALID, in the name of `pass`, if a node other than a variable, a
 * constant or a name has several uses: in a tree it would be computed as often.
 * TVM refuses such programs too; ToANormalForm binds what is shared. */
pln_status pln_expression_tree_new(const pln_graph *graph, const char *pass,
                                   pln_expression_tree *out) PLN_CHECKED;
void pln_expression_tree_free(pln_expression_tree *tree);
/* PLN_ERR_INVALID: why `pass` cannot transform the node. */
pln_status pln_refuse_node(const pln_graph *graph, pln_ref node,
                           const char *pass, const char *why) PLN_CHECKED;

/* Sets the origin of the nodes built next: made from a node of another graph by
 * the current rule. Name and location are not inherited. */
pln_status pln_builder_derive(pln_builder *b, const pln_graph *from,
                              pln_ref node) PLN_CHECKED;
/* Copies a node without operands and scopes to the current scope. */
pln_status pln_copy_atom(pln_builder *b, const pln_graph *from, pln_ref node,
                         pln_ref *out) PLN_CHECKED;
/* Copies the pattern of an arm of a Match, the scope being open. map[v] is the
 * image of each variable v of the pattern, and receives those of the other
 * nodes. Appends the Clause too. */
pln_status pln_copy_pattern(pln_builder *b, const pln_graph *from,
                            pln_scope arm, pln_ref *map) PLN_CHECKED;

#endif
