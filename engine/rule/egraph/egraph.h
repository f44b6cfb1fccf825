/* egraph.h: e-graphs: sets of equal expressions, stored compactly (Nelson 1980;
 * Willsey et al., egg: Fast and extensible equality saturation, 2021).
 *
 * An e-node is a node of a graph that is being built; an e-class is a set of
 * e-nodes that compute the same value. An e-node stands for every node with its
 * operator and attributes whose operands are of the classes of its operands.
 * E-nodes with the same operator, attributes and classes of operands are one
 * (congruence). pln_egraph_merge leaves congruence for pln_egraph_rebuild, so
 * that many merges pay for it once.
 *
 * Attributes are compared in a canonical form, so that calls of which one gives
 * an attribute as its default and the other leaves it out are congruent.
 *
 * Classes are named by the node that union-find answers. What always holds:
 * the members of a class have one type; the operands that an e-node was built
 * with precede it in the graph, whatever was merged. For the files of this
 * folder. */

#ifndef PLN_RULE_EGRAPH_EGRAPH_H
#define PLN_RULE_EGRAPH_EGRAPH_H

#include "ir/rewrite/rewrite.h"

enum {
  PLN_ENODE_LIVE = 1, /* a member of its class, not congruent to another one */
  PLN_ENODE_OPAQUE = 2, /* its operands do not matter */
  PLN_ENODE_PINNED = 4, /* computed in any case, with the operands it has */
  PLN_ENODE_SEEN = 8    /* by a walk of extraction */
};

/* Where an e-node comes from. */
typedef struct pln_eorigin {
  uint32_t made_by;    /* 0: of the program; else 1 + the number of a rule */
  uint32_t generation; /* rules of several roots, one after the other, that it
                        * took to make it */
  /* Of a class: the first and the last node of the program that what it was
   * made for computes. Merges keep the narrower of two. */
  pln_ref first, last;
} pln_eorigin;

/* What is known of a node of the graph. */
typedef struct pln_enode {
  uint32_t parent; /* union-find; PLN_NONE: no e-node */
  uint32_t next;   /* the next node of the same class, in a ring */
  pln_attrs attrs; /* those of the call, in a canonical form */
  pln_eorigin origin;
  uint8_t flags; /* PLN_ENODE_* */
  /* Of the node that names a class: */
  uint32_t first_use, last_use, n_uses; /* in `uses`; PLN_NONE: none */
  uint32_t constant;                    /* a Constant; PLN_NONE: none */
  uint32_t stamp;                       /* of the last search that wanted it */
  uint32_t number;                      /* of extraction, + 1; 0: none */
} pln_enode;

/* An e-node that has an operand of a class. */
typedef struct pln_euse {
  pln_ref user;
  uint32_t next;
} pln_euse;

typedef struct pln_eslot {
  uint32_t hash;
  uint32_t node; /* node + 1; 0: empty */
} pln_eslot;

/* Uses of a class that became part of another one. */
typedef struct pln_emerge {
  uint32_t first, last;
} pln_emerge;

/* The canonical form of the attributes of a call of the graph (canonical.c). */
typedef pln_status (*pln_ecanonical_fn)(void *ud, const pln_graph *graph,
                                        pln_ref call, pln_attrs *out);

typedef struct pln_egraph {
  pln_engine *engine;
  pln_builder *b;
  pln_ecanonical_fn canonical; /* NULL: attributes as they are */
  void *ud;
  pln_scope scope;  /* nodes of other scopes are opaque */
  pln_enode *nodes; /* by node of the graph */
  uint32_t n, cap;
  pln_ref *added; /* nodes that are in the e-graph */
  uint32_t n_added, cap_added;
  const uint8_t *pinned; /* by node: PINNED or 0; NULL */
  uint32_t n_pinned;
  pln_euse *uses;
  uint32_t n_uses, cap_uses;
  pln_eslot *slots;
  uint32_t mask, n_slots; /* mask: capacity - 1; 0: none */
  pln_emerge *merged;     /* since the last rebuild */
  uint32_t n_merged, cap_merged;
  pln_ref *changed; /* classes that were made or got members since the last
                     * search */
  uint32_t n_changed, cap_changed;
  pln_ref *stack;
  uint32_t cap_stack;
  uint32_t n_live;     /* e-nodes */
  uint32_t n_classes;  /* sets of them */
  uint64_t n_rehashed; /* e-nodes that rebuilds looked at */
} pln_egraph;

/* Makes room for an e-graph; `end` frees it. */
void pln_egraph_begin(pln_egraph *eg, pln_engine *engine);
void pln_egraph_end(pln_egraph *eg);
/* An empty e-graph of nodes of the builder's scope. Borrowed: the builder. The
 * cost does not depend on the size of the graph, so that a graph may have any
 * number of scopes. */
void pln_egraph_open(pln_egraph *eg, pln_builder *b, pln_scope scope);
/* Forgets all nodes. */
void pln_egraph_close(pln_egraph *eg);

/* The class of a node that is in the e-graph; PLN_NONE: it is not. */
pln_ref pln_egraph_class(pln_egraph *eg, pln_ref node);
/* Adds a node and what it is computed of. */
pln_status pln_egraph_add_tree(pln_egraph *eg, pln_ref root) PLN_CHECKED;
/* Adds a node that was built, whose operands are e-nodes or opaque. If a
 * congruent one is there, the node only gets its class. `origin` NULL: of the
 * program. */
pln_status pln_egraph_add(pln_egraph *eg, pln_ref node,
                          const pln_eorigin *origin) PLN_CHECKED;
/* Makes the classes of two nodes one. *merged: they were two. Classes of
 * different types stay apart: *merged is false. */
pln_status pln_egraph_merge(pln_egraph *eg, pln_ref a, pln_ref b,
                            bool *merged) PLN_CHECKED;
/* Restores congruence after merges. Linear in the uses of the merged classes;
 * nothing without merges. */
pln_status pln_egraph_rebuild(pln_egraph *eg) PLN_CHECKED;

static inline bool pln_enode_is(const pln_egraph *eg, pln_ref node,
                                uint32_t flag) {
  return (eg->nodes[node].flags & flag) != 0;
}
static inline const pln_graph *pln_egraph_graph(const pln_egraph *eg) {
  return eg->b->graph;
}
/* The node that stands for a class: a Constant if it has one. */
static inline pln_ref pln_egraph_node(const pln_egraph *eg, pln_ref class_) {
  return eg->nodes[class_].constant != PLN_NONE ? eg->nodes[class_].constant
                                                : class_;
}

#endif
