/* layout.h: common part of the two layout algorithms: a list of nodes in
 * sequence, and the scope of each. */

#ifndef PLN_IR_GRAPH_LAYOUT_H
#define PLN_IR_GRAPH_LAYOUT_H

#include "ir/graph/graph.h"

/* True if the node is laid out even when unused. */
static inline bool pln_is_scheduled(const pln_node *n) {
  return pln_is_effect_ordered(n) || (n->flags & PLN_NODE_PARAM);
}

typedef struct pln_layout {
  pln_engine *engine;
  const pln_graph *from; /* the builder's graph */
  size_t nodes, scopes;  /* lengths of the tables below */
  uint32_t n;            /* nodes to lay out, */
  pln_ref *order;        /*   in sequence: operands and scopes first */
  pln_scope *node_scope; /* per node of `from`: its scope */
  pln_ref *at;           /* per node of `from`: its position, or PLN_NONE */
  pln_ref *result;       /* per scope of `from`: its result */
  pln_ref root;
  /* Filled by pln_layout_place, one entry per scope of `from`. */
  uint32_t *size; /* nodes inside, nested ones included */
  pln_ref *begin;
  pln_ref *cursor;
  pln_scope *row;   /* its row in the sealed graph */
  pln_scope *found; /* scopes in order of discovery, outer before inner */
  uint32_t n_found;
  /* When laid out in place: nodes that own scopes, and Constants. */
  uint32_t n_owners, n_constants;
} pln_layout;

/* Allocates the tables for `from`. The caller then fills `order`, `node_scope`
 * and `result`. pln_layout_end frees the tables, also after a failure. */
pln_status pln_layout_begin(pln_layout *layout, const pln_graph *from,
                            pln_ref root) PLN_CHECKED;
void pln_layout_end(pln_layout *layout);
/* Assigns each node its position and each scope its interval and row. */
pln_status pln_layout_place(pln_layout *layout) PLN_CHECKED;
/* Writes the sealed graph. */
pln_status pln_layout_emit(const pln_layout *layout,
                           pln_graph **out) PLN_CHECKED;
/* The end of sealing: *out is `graph` if `status` is PLN_OK and the verifier
 * accepts it; otherwise it is released. NULL after a failure. */
pln_status pln_layout_verified(pln_status status, pln_graph *graph,
                               pln_graph **out) PLN_CHECKED;

/* The part of a builder's graph that a root reaches, as a separate graph
 * (layout_reachable.c): in evaluation order, the root last. Its tensors and
 * origins are borrowed from the builder. */
typedef struct pln_reachable_copy {
  pln_builder *builder;
  pln_graph part; /* for a floating arm, `begin` of its scope: the parameters */
  pln_scope
      *node_scope;   /* per node: the scope it was copied into, or PLN_NONE */
  pln_ref *order;    /* per node: its number in the builder */
  pln_scope *scopes; /* per scope: its number in the builder */
  pln_ref *stack;    /* of the walk */
  pln_ref arm;       /* first node of the latest floating arm */
  uint32_t top, cap_node_scope, cap_order, cap_scopes, cap_stack;
} pln_reachable_copy;

/* pln_reachable_copy_end frees the copy, also after a failure. */
pln_status pln_reachable_copy_begin(pln_reachable_copy *reach,
                                    pln_builder *builder,
                                    pln_ref root) PLN_CHECKED;
void pln_reachable_copy_end(pln_reachable_copy *reach);

#endif
