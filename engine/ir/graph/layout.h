/* layout.h: what the two ways to lay a builder out have in common: a list of
 * nodes in sequence, and the scope of each. */

#ifndef PLN_IR_GRAPH_LAYOUT_H
#define PLN_IR_GRAPH_LAYOUT_H

#include "ir/graph/graph.h"

/* Laid out although nothing may use it. */
static inline bool pln_is_scheduled(const pln_node *n) {
  return pln_is_effect_ordered(n) || (n->flags & PLN_NODE_PARAM);
}

typedef struct pln_layout {
  pln_engine *engine;
  const pln_graph *from; /* the builder's graph */
  size_t nodes, scopes;  /* lengths of the tables below */
  uint32_t n;            /* nodes to lay out, */
  pln_ref *order;        /*   in sequence: operands and scopes first */
  pln_scope *node_scope; /* a node of `from`: its scope */
  pln_ref *at;           /* a node of `from`: its place, or PLN_NONE */
  pln_ref *result;       /* a scope of `from`: its result */
  pln_ref root;
  /* Filled by pln_layout_place, a scope of `from` each. */
  uint32_t *size; /* nodes inside, nested ones included */
  pln_ref *begin;
  pln_ref *cursor;
  pln_scope *row;   /* its row in the sealed graph */
  pln_scope *found; /* scopes in order of discovery, outer before inner */
  uint32_t n_found;
} pln_layout;

/* Allocates the tables for `from`; `order`, `home` and `result` are then to be
 * filled. pln_layout_end frees them, also after a failure. */
pln_status pln_layout_begin(pln_layout *layout, const pln_graph *from,
                            pln_ref root) PLN_CHECKED;
void pln_layout_end(pln_layout *layout);
/* Gives each node its place and each scope its interval and row. */
pln_status pln_layout_place(pln_layout *layout) PLN_CHECKED;
/* Writes the sealed graph. */
pln_status pln_layout_emit(const pln_layout *layout,
                           pln_graph **out) PLN_CHECKED;
/* What sealing ends with: *out is `graph` when all went well and the verifier
 * takes it; else it is released. NULL after a failure. */
pln_status pln_layout_verified(pln_status status, pln_graph *graph,
                               pln_graph **out) PLN_CHECKED;

/* The part of a builder's graph that a root needs, as a graph of its own
 * (layout_reachable.c): in order of evaluation, the root last. Its tensors and
 * origins are the builder's. */
typedef struct pln_reachable_copy {
  pln_builder *builder;
  pln_graph part; /* `begin` of a scope: the parameters of a free arm */
  pln_scope
      *node_scope; /* a node: the scope that it was copied into, or PLN_NONE */
  pln_ref *order;  /* a node: the builder's */
  pln_scope *scopes; /* a scope: the builder's */
  pln_ref *stack;    /* of the walk */
  pln_ref arm;       /* the first node of the last free arm */
  uint32_t top, cap_node_scope, cap_order, cap_scopes, cap_stack;
} pln_reachable_copy;

/* pln_reachable_copy_end frees what it holds, also after a failure. */
pln_status pln_reachable_copy_begin(pln_reachable_copy *reach,
                                    pln_builder *builder,
                                    pln_ref root) PLN_CHECKED;
void pln_reachable_copy_end(pln_reachable_copy *reach);

#endif
