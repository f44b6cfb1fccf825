/* equal.h: what comparing graphs, modules, types and attributes share. */

#ifndef PLN_IR_COMPARE_EQUAL_H
#define PLN_IR_COMPARE_EQUAL_H

#include "ir/graph/graph.h"

/* Numbers of one side that correspond to numbers of the other, two ways: type
 * variables, or free variables. The tables are made when first needed. */
typedef struct pln_bijection {
  pln_idmap *to, *from;
} pln_bijection;

void pln_bijection_free(pln_bijection *pairing);
/* Whether x and y correspond by now, or neither corresponds to another. */
bool pln_bijection_allows(const pln_bijection *pairing, uint32_t x, uint32_t y);
pln_status pln_bijection_add(pln_engine *engine, pln_bijection *pairing,
                             uint32_t x, uint32_t y) PLN_CHECKED;

/* Two numbers and the partner that each has, or 0; pln_bijection_restore gives
 * them back after pln_bijection_add. */
typedef struct pln_pair_of {
  uint32_t x, y, of_x, of_y;
} pln_pair_of;

pln_pair_of pln_bijection_get(const pln_bijection *pairing, uint32_t x,
                              uint32_t y);
pln_status pln_bijection_restore(pln_bijection *pairing,
                                 const pln_pair_of *had) PLN_CHECKED;

/* A generic function type being compared: what holds again behind it. */
typedef struct pln_type_scope {
  pln_idmap *seen;
  uint32_t n_rebound;
} pln_type_scope;

/* A comparison of types; goes on from graph to graph of two modules. */
typedef struct pln_type_match {
  pln_engine *engine;
  bool map_free;      /* free type variables may correspond */
  bool contents;      /* constants are what they hold, large ones too */
  pln_bijection vars; /* type variables */
  pln_idmap *seen; /* pairs of types that were compared, with these pairings */
  pln_type *stack; /* pairs still to be compared; two END: a scope's end */
  uint32_t top, cap_stack;
  pln_type_scope *scopes; /* of the types that are being compared */
  uint32_t n_scopes, cap_scopes;
  pln_pair_of *rebound;
  uint32_t n_rebound, cap_rebound;
} pln_type_match;

void pln_type_match_free(pln_type_match *match);
/* Type variables that stand in the same place of two lists of parameters, for
 * what is compared from now on. */
pln_status pln_type_match_bind(pln_type_match *match, pln_type x, pln_type y,
                               bool *same) PLN_CHECKED;
/* Types equal but for the names and numbers of bound type variables. */
pln_status pln_type_match_run(pln_type_match *match, pln_type x, pln_type y,
                              bool *same) PLN_CHECKED;

/* What is compared of an OBJECT: all but its number among those of its type,
 * which is another where other ones are printed. */
pln_slice pln_object_content(pln_slice object);
/* Floats within 1e-9 are equal, as Relay has it; all else is equal exactly. */
pln_status pln_attr_equal(pln_engine *engine, const pln_attr *a,
                          const pln_attr *b, bool *same) PLN_CHECKED;
pln_status pln_attrs_equal(pln_engine *engine, pln_attrs a, pln_attrs b,
                           bool *same) PLN_CHECKED;

/* A hash of the entries of a dictionary that agrees with pln_attrs_equal. */
uint64_t pln_attr_entries_hash(const pln_engine *engine, uint32_t count,
                               const pln_attr *entries);
/* A hash of a tensor that agrees with pln_tensor_equal and is the same from run
 * to run: one that is not compared by content counts by dtype and dims. */
uint64_t pln_tensor_content_hash(const pln_tensor *tensor);

/* ------------------------------------------------------------------- graphs */

/* How many of its operands, from the first on, an expression of the loop level
 * defines when they are Vars. */
uint32_t pln_n_defined(const pln_node *n);

/* The statements of a graph's scopes; statement.c. Starts as { graph }. */
typedef struct pln_effect_order {
  const pln_graph *graph;
  uint8_t *used; /* a node: something uses its value; made when first needed */
} pln_effect_order;

void pln_effect_order_free(pln_effect_order *statements);
/* The statement of `scope` before `at`, or PLN_NONE; begin with the scope's end
 * and go on at pln_skip_effect_ordered. */
pln_status pln_effect_order_before(pln_effect_order *statements,
                                   pln_scope scope, pln_ref at,
                                   pln_ref *out) PLN_CHECKED;
/* Whether an anchored node has been passed over as it is met where it is used.
 */
bool pln_is_used_effect(const pln_effect_order *statements, pln_ref ref);

/* A hash of a whole graph in which sharing counts for every kind of node,
 * constants among them, and so do types and how many nodes nothing uses: two
 * graphs with the same one differ in names, order and origins at the most. */
pln_status pln_graph_whole_hash(const pln_graph *graph,
                                uint64_t *out) PLN_CHECKED;

/* How a node was reached from the one that was compared before it. */
typedef enum pln_edge_kind {
  PLN_EDGE_ROOT,
  PLN_EDGE_OPERAND,   /* index: which operand */
  PLN_EDGE_PARAM,     /* index: which parameter of the owner's scope `scope` */
  PLN_EDGE_STATEMENT, /* a statement of it */
  PLN_EDGE_RESULT,    /* its result */
  PLN_EDGE_RET        /* none: the types that two functions give */
} pln_edge_kind;

typedef struct pln_pair {
  pln_ref x, y;
  pln_ref from;   /* the node of x's graph that it was reached from */
  uint8_t edge;   /* pln_edge_kind */
  uint32_t scope; /* of `from`, by number; PLN_NONE: the whole graph */
  uint32_t index;
} pln_pair;

/* In what two nodes differ. */
typedef enum pln_mismatch_kind {
  PLN_MISMATCH_KIND,
  PLN_MISMATCH_OPERANDS, /* how many */
  PLN_MISMATCH_RESULTS,
  PLN_MISMATCH_PAYLOAD,
  PLN_MISMATCH_ATTRS,
  PLN_MISMATCH_SHARING,
  PLN_MISMATCH_TYPE,
  PLN_MISMATCH_PARAMS, /* how many `in_scope` has; the next two likewise */
  PLN_MISMATCH_STATEMENTS,
  PLN_MISMATCH_ORDER, /* of two values with effects */
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
  pln_ref *to;        /* a node of a: its partner in b, or PLN_NONE */
  pln_ref *from;      /* a node of b: its partner in a */
  pln_bijection free; /* identities of free Vars */
  pln_idmap *again;   /* pairs of nodes without partner that were compared */
  pln_pair *stack;    /* pairs still to be compared, the next one last */
  uint32_t top, cap_stack;
  pln_pair *via; /* a node of a: how it was reached; NULL: not asked for */
  bool equal;
  pln_pair at; /* the pair at hand; when unequal, the first difference */
  pln_mismatch_kind why;
  uint32_t in_scope; /* of at.x, by number; PLN_NONE: the whole graph */
} pln_comparison;

/* `trace`: remember how each node was reached. */
pln_status pln_comparison_begin(pln_comparison *c, const pln_graph *a,
                                const pln_graph *b, pln_type_match *types,
                                bool trace) PLN_CHECKED;
pln_status pln_comparison_run(pln_comparison *c, pln_ref x,
                              pln_ref y) PLN_CHECKED;
void pln_comparison_end(pln_comparison *c);

/* The anchored node of scope `s` before `at`, or PLN_NONE; nodes of nested
 * scopes are passed over. Begin with the scope's end. */
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
/* Where the search goes on behind an anchored node. */
static inline pln_ref pln_skip_effect_ordered(const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  return pln_owns(n) ? g->scopes[n->data].begin : ref;
}

#endif
