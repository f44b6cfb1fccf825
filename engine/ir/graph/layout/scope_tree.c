/* scope_tree.c: the tree of scopes.
 *
 * Called to find the scope that encloses all uses of a node:
 * graph/layout_floating.c, relay/print/kept_nodes.c. Scopes are attached
 * top-down. Lowest common ancestors are found by jump pointers in logarithmic
 * time. */

#include "ir/graph/layout/scope_tree.h"

static size_t tables_size(const pln_scope_tree *tree) {
  return 3 * ((size_t)tree->n + 1) * sizeof *tree->parent;
}

/* One allocation for both tables. */
pln_status pln_scope_tree_begin(pln_scope_tree *tree, pln_engine *engine,
                                uint32_t n) {
  size_t k = (size_t)n + 1;
  *tree = (pln_scope_tree){.engine = engine, .n = n};
  tree->parent = pln_mem_zeroed(engine, tables_size(tree));
  if (!tree->parent)
    return pln_nomem(engine);
  tree->jump = tree->parent + k;
  tree->depth = tree->jump + k;
  return PLN_OK;
}

void pln_scope_tree_end(pln_scope_tree *tree) {
  if (!tree->engine)
    return;
  pln_mem_free(tree->engine, tree->parent, tables_size(tree));
  *tree = (pln_scope_tree){0};
}

/* Jump pointers as in E. Myers, "An applicative random-access stack" (1983): a
 * path to the root is climbed in logarithmic time. */
void pln_scope_tree_add_child(pln_scope_tree *t, pln_scope s,
                              pln_scope parent) {
  pln_scope j = t->jump[parent];
  t->parent[s] = parent;
  t->depth[s] = t->depth[parent] + 1;
  bool even =
      t->depth[parent] - t->depth[j] == t->depth[j] - t->depth[t->jump[j]];
  t->jump[s] = even ? t->jump[j] : parent;
}

pln_scope pln_scope_tree_lca(const pln_scope_tree *t, pln_scope a,
                             pln_scope b) {
  while (t->depth[a] > t->depth[b])
    a = t->depth[t->jump[a]] >= t->depth[b] ? t->jump[a] : t->parent[a];
  while (t->depth[b] > t->depth[a])
    b = t->depth[t->jump[b]] >= t->depth[a] ? t->jump[b] : t->parent[b];
  while (a != b) {
    bool far = t->jump[a] != t->jump[b];
    a = far ? t->jump[a] : t->parent[a];
    b = far ? t->jump[b] : t->parent[b];
  }
  return a;
}
