/* scope_tree.h: the tree of scopes with lowest common ancestors. */

#ifndef PLN_IR_GRAPH_SCOPE_TREE_H
#define PLN_IR_GRAPH_SCOPE_TREE_H

#include "ir/graph/graph.h"

typedef struct pln_scope_tree {
  pln_engine *engine;
  uint32_t n;        /* scopes */
  pln_scope *parent; /* a scope; the root's is the root */
  pln_scope *jump;   /* jump pointer: an ancestor further up */
  uint32_t *depth;
} pln_scope_tree;

/* A tree of `n` scopes, all still unattached except the root, 0. Must be freed
 * in any case. */
pln_status pln_scope_tree_begin(pln_scope_tree *tree, pln_engine *engine,
                                uint32_t n) PLN_CHECKED;
void pln_scope_tree_end(pln_scope_tree *tree);
/* `parent` is attached already. */
void pln_scope_tree_add_child(pln_scope_tree *tree, pln_scope scope,
                              pln_scope parent);
/* Lowest common ancestor of two scopes by jump pointers, O(log depth). */
pln_scope pln_scope_tree_lca(const pln_scope_tree *tree, pln_scope a,
                             pln_scope b);

#endif
