/* equal.h: shared parts of comparing graphs, modules and types. */

#ifndef PLN_IR_COMPARE_EQUAL_H
#define PLN_IR_COMPARE_EQUAL_H

#include "ir/attrs/attrs.h"
#include "ir/graph/graph.h"

/* A one-to-one correspondence between numbers of two sides: type variables, or
 * free variables. Tables are allocated when first needed. */
typedef struct pln_bijection {
  pln_idmap *to, *from;
} pln_bijection;

void pln_bijection_free(pln_bijection *pairing);
/* True if x and y correspond, or both are still without partner. */
bool pln_bijection_allows(const pln_bijection *pairing, uint32_t x, uint32_t y);
pln_status pln_bijection_add(pln_engine *engine, pln_bijection *pairing,
                             uint32_t x, uint32_t y) PLN_CHECKED;

/* Two numbers and their former partners, or 0; pln_bijection_restore undoes
 * pln_bijection_add with it. */
typedef struct pln_pair_of {
  uint32_t x, y, of_x, of_y;
} pln_pair_of;

pln_pair_of pln_bijection_get(const pln_bijection *pairing, uint32_t x,
                              uint32_t y);
pln_status pln_bijection_restore(pln_bijection *pairing,
                                 const pln_pair_of *had) PLN_CHECKED;

/* A generic function type being compared: the correspondence to restore after
 * it. */
typedef struct pln_type_scope {
  pln_idmap *seen;
  uint32_t n_rebound;
} pln_type_scope;

/* A comparison of types; continues across the graphs of two modules. */
typedef struct pln_type_match {
  pln_engine *engine;
  bool map_free;      /* free type variables may correspond */
  bool contents;      /* constants are compared by content, large ones too */
  pln_bijection vars; /* type variables */
  pln_idmap *seen;    /* pairs of types already compared under this
                       * correspondence */
  pln_type *stack;    /* pairs to compare; two END mark the end of a scope */
  uint32_t top, cap_stack;
  pln_type_scope *scopes; /* open scopes of generic function types */
  uint32_t n_scopes, cap_scopes;
  pln_pair_of *rebound;
  uint32_t n_rebound, cap_rebound;
} pln_type_match;

/* spans.c: true if the nodes of graphs with as many nodes have the same spans,
 * each as the one of the same index. */
bool pln_graph_same_spans(const pln_graph *a, const pln_graph *b);

void pln_type_match_free(pln_type_match *match);
/* Binds the type variables at equal positions of two parameter lists for the
 * comparisons that follow. */
pln_status pln_type_match_bind(pln_type_match *match, pln_type x, pln_type y,
                               bool *same) PLN_CHECKED;
/* Compares types up to renaming of bound type variables. */
pln_status pln_type_match_run(pln_type_match *match, pln_type x, pln_type y,
                              bool *same) PLN_CHECKED;

/* ------------------------------------------------------------------- graphs */

/* How many operands of a TIR expression, from the first on, it defines when
 * they are Vars. */
uint32_t pln_n_defined(const pln_node *n);

/* The statements of a graph's scopes; effect_order.c. Initialise with { graph
 * }. */
typedef struct pln_effect_order {
  const pln_graph *graph;
  uint8_t *used; /* per node: its value is used; made when first needed */
} pln_effect_order;

void pln_effect_order_free(pln_effect_order *statements);
/* The statement of `scope` before `at`, or PLN_NONE. Start at the scope's end
 * and continue at pln_skip_effect_ordered. */
pln_status pln_effect_order_before(pln_effect_order *statements,
                                   pln_scope scope, pln_ref at,
                                   pln_ref *out) PLN_CHECKED;
/* True if the node has an effect but is compared at its use. */
bool pln_is_used_effect(const pln_effect_order *statements, pln_ref ref);

/* A hash of a whole graph that includes types, the sharing of every kind of
 * node (constants too) and the number of unused nodes. Graphs with equal hashes
 * differ at most in names, order and origins. */
pln_status pln_graph_whole_hash(const pln_graph *graph,
                                uint64_t *out) PLN_CHECKED;

/* The edge by which a comparison reached a node. */
typedef enum pln_edge_kind {
  PLN_EDGE_ROOT,
  PLN_EDGE_OPERAND,   /* index: which operand */
  PLN_EDGE_PARAM,     /* index: which parameter of the owner's scope `scope` */
  PLN_EDGE_STATEMENT, /* a statement of the scope */
  PLN_EDGE_RESULT,    /* its result */
  PLN_EDGE_RET        /* none: the result types of two functions */
} pln_edge_kind;

typedef struct pln_pair {
  pln_ref x, y;
  pln_ref from;   /* the node of x's graph with that edge */
  uint8_t edge;   /* pln_edge_kind */
  uint32_t scope; /* index among the scopes of `from`; PLN_NONE: the whole
                   * graph */
  uint32_t index;
} pln_pair;

/* How two nodes differ. */
typedef enum pln_mismatch_kind {
  PLN_MISMATCH_KIND,
  PLN_MISMATCH_OPERANDS, /* number of operands */
  PLN_MISMATCH_RESULTS,
  PLN_MISMATCH_PAYLOAD,
  PLN_MISMATCH_ATTRS,
  PLN_MISMATCH_SHARING,
  PLN_MISMATCH_TYPE,
  PLN_MISMATCH_PARAMS, /* number of parameters of `in_scope`; the next two
                        * likewise */
  PLN_MISMATCH_STATEMENTS,
  PLN_MISMATCH_ORDER, /* order of two values with effects */
  PLN_MISMATCH_SCOPE_ATTRS,
  PLN_MISMATCH_SCOPES,
  PLN_MISMATCH_TYPE_PARAMS
} pln_mismatch_kind;

typedef struct pln_comparison {
  pln_engine *engine;
  const pln_graph *a, *b;
  pln_effect_order in_a, in_b;
  bool map_free;
  pln_type_match *types;
  pln_ref *to;        /* per node of a: its partner in b, or PLN_NONE */
  pln_ref *from;      /* per node of b: its partner in a */
  pln_bijection free; /* identities of free Vars */
  pln_idmap *again;   /* compared pairs of nodes that may have several
                       * partners */
  pln_pair *stack;    /* pairs to compare, the next one on top */
  uint32_t top, cap_stack;
  pln_pair *via; /* per node of a: how it was reached; NULL: not traced */
  bool equal;
  pln_pair at; /* the current pair; if unequal, the first difference */
  pln_mismatch_kind why;
  uint32_t in_scope; /* index among the scopes of at.x; PLN_NONE: the whole
                      * graph */
} pln_comparison;

/* `trace`: record how each node was reached. */
pln_status pln_comparison_begin(pln_comparison *c, const pln_graph *a,
                                const pln_graph *b, pln_type_match *types,
                                bool trace) PLN_CHECKED;
pln_status pln_comparison_run(pln_comparison *c, pln_ref x,
                              pln_ref y) PLN_CHECKED;
void pln_comparison_end(pln_comparison *c);

/* The node of scope `s` before `at` that is evaluated in its place, or
 * PLN_NONE; skips nested scopes. Start at the scope's end. */
static inline pln_ref pln_prev_effect_ordered(const pln_graph *g, pln_scope s,
                                              pln_ref at) {
  while (at > g->scopes[s].begin) {
    pln_ref ref = at - 1;
    const pln_node *n = &g->nodes[ref];
    if (pln_is_effect_ordered(n))
      return ref;
    at = pln_owns(n) ? g->scopes[n->data].begin : ref;
  }
  return PLN_NONE;
}
/* Where to continue after such a node. */
static inline pln_ref pln_skip_effect_ordered(const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  return pln_owns(n) ? g->scopes[n->data].begin : ref;
}

#endif
