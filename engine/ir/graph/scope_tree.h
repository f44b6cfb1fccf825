/* scope_tree.h: which scope encloses which, and the innermost that encloses
 * two. */

#ifndef PLN_IR_GRAPH_SCOPE_TREE_H
#define PLN_IR_GRAPH_SCOPE_TREE_H

#include "ir/graph/graph.h"

typedef struct pln_scope_tree {
  pln_engine *engine;
  uint32_t n;        /* scopes */
  pln_scope *parent; /* a scope; the root's is the root */
  pln_scope *jump;   /* an enclosing scope further out */
  uint32_t *depth;
} pln_scope_tree;

/* `n` scopes that all hang nowhere but the root, 0. Freed in either case. */
pln_status pln_scope_tree_begin(pln_scope_tree *tree, pln_engine *engine,
                                uint32_t n) PLN_CHECKED;
void pln_scope_tree_end(pln_scope_tree *tree);
/* `parent` hangs in its place already. */
void pln_scope_tree_add_child(pln_scope_tree *tree, pln_scope scope,
                              pln_scope parent);
/* The innermost scope that encloses both. */
pln_scope pln_scope_tree_lca(const pln_scope_tree *tree, pln_scope a,
                             pln_scope b);

#endif
