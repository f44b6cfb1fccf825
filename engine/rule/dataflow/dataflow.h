/* dataflow.h: dataflow patterns (TVM's relay.dataflow_pattern): patterns that
 * are graphs of pattern nodes, matched against the nodes of a sealed graph.
 *
 * A pattern is an array of rows, operands by number; an operand may come later,
 * so that patterns may be recursive. Immutable once finished. The rows of
 * rewrite rules (rule/set.h) describe trees of calls; these describe every kind
 * of Relay node, dominators and recursion.
 *
 * Semantics: TVM's DFPatternMatcher and PatternGrouper. One pattern node
 * matches one node in a match; what a failed alternative bound is unbound. */

#ifndef PLN_RULE_DATAFLOW_DATAFLOW_H
#define PLN_RULE_DATAFLOW_DATAFLOW_H

#include "ir/analysis/dominators.h"
#include "rule/set.h"

/* Kinds of pattern nodes: X(ID, "name"); the comments give operands and data.
 */
#define PLN_DATAFLOW_KINDS(X)                                                  \
  X(WILDCARD, "wildcard")             /* none, or one: matches what it does */ \
  X(OP, "op")                         /* the operator `data` */                \
  X(EXPR, "expr")                     /* an expression equal to `expr` */      \
  X(VAR, "var")                       /* a Var of the name `data`; 0: any */   \
  X(CONSTANT, "constant")             /* a Constant */                         \
  X(CALL, "call")                     /* callee, arguments */                  \
  X(FUNCTION, "function")             /* parameters, body */                   \
  X(LET, "let")                       /* variable, value, body */              \
  X(IF, "if")                         /* condition, two branches */            \
  X(TUPLE, "tuple")                   /* fields */                             \
  X(TUPLE_GET_ITEM, "tuple_get_item") /* tuple; `data`: index, NONE: any */    \
  X(ALT, "alt")                       /* left, right */                        \
  X(TYPE, "type")                     /* operand; the type `data` */           \
  X(DTYPE, "dtype")                   /* operand; the dtype `data` */          \
  X(SHAPE, "shape")         /* operand; the dims of the type `data` */         \
  X(ATTR, "attr")           /* operand; has all of `data` */                   \
  X(DOMINATOR, "dominator") /* parent, path, child */

typedef enum pln_dataflow_kind {
#define PLN_ROW(ID, name) PLN_DATAFLOW_##ID,
  PLN_DATAFLOW_KINDS(PLN_ROW)
#undef PLN_ROW
      PLN_N_DATAFLOW_KINDS
} pln_dataflow_kind;

/* The name of a kind, as the binding spells it. */
const char *pln_dataflow_kind_name(pln_dataflow_kind kind);

typedef struct pln_dataflow_node {
  uint8_t kind;   /* pln_dataflow_kind */
  bool any_count; /* CALL, FUNCTION, TUPLE: any arguments, parameters, fields */
  bool recursive; /* WILDCARD: its operand contains it */
  bool hidden;    /* made by pln_dataflow_finish */
  bool fuzzy;     /* a dominator's parent or path */
  bool closed;    /* DOMINATOR: nothing else contains a part of its parent */
  uint32_t first, count; /* operands */
  uint32_t data;
  pln_graph *expr; /* EXPR: sealed, retained; the root is compared */
  /* CALL: hidden nodes that match the call when its operator is another one:
   * a * b / c as a * (b / c). */
  uint32_t alternative, n_alternatives;
} pln_dataflow_node;

/* Returns true if the registry's attribute of an operator equals `attr`. */
typedef bool (*pln_dataflow_op_attr)(const pln_engine *engine, pln_op op,
                                     const pln_attr *attr);

enum { PLN_DATAFLOW_MAX_ROOT_OPS = 8 };

typedef struct pln_dataflow_pattern {
  pln_engine *engine;
  pln_dataflow_node *nodes;
  uint32_t n, cap, n_given; /* given by the user: not hidden */
  uint32_t *operands;
  uint32_t n_operands, cap_operands;
  uint32_t root;
  pln_op root_ops[PLN_DATAFLOW_MAX_ROOT_OPS]; /* it matches only their calls */
  uint32_t n_root_ops;                        /* 0: not known */
  pln_dataflow_op_attr op_attr; /* NULL: operators have no attributes */
} pln_dataflow_pattern;

enum { PLN_DATAFLOW_MAX_NODES = 1 << 14 };

/* Adds a row; `node` gives kind, any_count, data and expr (taken over, also on
 * failure). Operands are numbers of rows, also of later ones. */
pln_status pln_dataflow_add(pln_dataflow_pattern *pattern,
                            const pln_dataflow_node *node, uint32_t n,
                            const uint32_t *operands) PLN_CHECKED;
/* Completes the pattern with the root `root`. */
pln_status pln_dataflow_finish(pln_dataflow_pattern *pattern,
                               uint32_t root) PLN_CHECKED;
/* Returns false if it is obvious that the pattern does not match a node of that
 * kind or operator. */
static inline bool pln_dataflow_may_match(const pln_dataflow_pattern *p,
                                          const pln_node *node) {
  bool found = p->n_root_ops == 0;
  for (uint32_t i = 0; i < p->n_root_ops; i++)
    found = found || (node->kind == PLN_CALL && node->data == p->root_ops[i]);
  return found;
}
/* Also after a failure. */
void pln_dataflow_free(pln_dataflow_pattern *pattern);
static inline uint32_t pln_dataflow_operand(const pln_dataflow_pattern *p,
                                            uint32_t node, uint32_t i) {
  return p->operands[p->nodes[node].first + i];
}

/* ----------------------------------------------------------------- regions */

/* What a pattern node is compared with: a node, or an operator, which is no
 * node of its own. */
typedef uint32_t pln_candidate;
#define PLN_CANDIDATE_OP 0x80000000u

/* The nodes that `root` reaches, and what is computed of them when first
 * needed. */
typedef struct pln_dataflow_region {
  pln_engine *engine;
  const pln_graph *graph; /* sealed; borrowed */
  pln_ref root;
  pln_scope *node_scope;     /* per node */
  pln_dominators dominators; /* of the nodes up to the root */
  bool has_dominators;
  uint32_t *first_user; /* per node: start of its users, in CSR form */
  pln_ref *users;
  size_t n_users;
  pln_bound_values values; /* empty: variables of lets stand for themselves */
} pln_dataflow_region;

/* `lets`: a variable that a let binds is its value, as in graph normal form, if
 * that has no effect. */
pln_status pln_dataflow_region_begin(pln_dataflow_region *region,
                                     const pln_graph *graph, pln_ref root,
                                     bool lets) PLN_CHECKED;
/* What a node stands for: the value of a variable, what follows a let of
 * one. */
pln_ref pln_dataflow_value(const pln_dataflow_region *region, pln_ref node);
/* True for a let whose variable stands for its value. */
static inline bool pln_dataflow_is_bound_let(const pln_dataflow_region *r,
                                             pln_ref node) {
  const pln_node *n = &r->graph->nodes[node];
  return r->values.n && n->kind == PLN_LET &&
         r->values.value[r->graph->operands[n->first]] != PLN_NONE;
}
void pln_dataflow_region_end(pln_dataflow_region *region);
/* Computes what the functions below read. */
pln_status pln_dataflow_find_scopes(pln_dataflow_region *region) PLN_CHECKED;
pln_status
pln_dataflow_find_dominators(pln_dataflow_region *region) PLN_CHECKED;
pln_status pln_dataflow_find_users(pln_dataflow_region *region) PLN_CHECKED;
/* Returns true if every path of uses from `node` leads through `dominator`.
 * After find_dominators. */
bool pln_dataflow_dominates(const pln_dataflow_region *region,
                            pln_ref dominator, pln_ref node);
/* The value of a scope as Relay sees it: its first Let from `from` on (0: from
 * the start), else its result. */
pln_ref pln_dataflow_block_value(const pln_graph *graph, pln_scope scope,
                                 pln_ref from);
/* The Let that a node is, itself or as a block; PLN_NONE: it is none. */
pln_ref pln_dataflow_let(const pln_graph *graph, pln_ref node);
/* The innermost scope of a node. */
pln_scope pln_dataflow_scope_of(const pln_dataflow_region *region,
                                pln_ref node);
pln_candidate pln_dataflow_candidate(const pln_graph *graph, pln_ref node);

/* A growing list of nodes. */
typedef struct pln_ref_list {
  pln_ref *items;
  uint32_t n, cap;
} pln_ref_list;
pln_status pln_ref_list_add(pln_engine *engine, pln_ref_list *list,
                            pln_ref ref) PLN_CHECKED;
void pln_ref_list_free(pln_engine *engine, pln_ref_list *list);
/* Adds the expressions that a node is made of, in Relay's order: operands,
 * parameters, values of scopes. */
pln_status pln_dataflow_parts(const pln_dataflow_region *region, pln_ref node,
                              pln_ref_list *out) PLN_CHECKED;

/* ---------------------------------------------------------------- matching */

/* What a pattern node matched. */
typedef struct pln_dataflow_binding {
  uint32_t pattern;
  pln_candidate candidate;
  uint32_t frame;    /* the instance of a recursive pattern */
  uint32_t shadowed; /* the binding of the same pattern before this one + 1 */
  uint32_t outer;    /* the last one before it that is of no inner frame + 1 */
} pln_dataflow_binding;

typedef struct pln_dataflow_matcher pln_dataflow_matcher;

pln_status pln_dataflow_matcher_new(const pln_dataflow_pattern *pattern,
                                    pln_dataflow_region *region,
                                    pln_dataflow_matcher **out) PLN_CHECKED;
void pln_dataflow_matcher_free(pln_dataflow_matcher *matcher);
/* *matched: whether the pattern matches. PLN_ERR_LIMIT: it has too many
 * alternatives to be decided in reasonable time. */
pln_status pln_dataflow_match(pln_dataflow_matcher *matcher,
                              pln_candidate candidate,
                              bool *matched) PLN_CHECKED;
/* What the last match bound, in order of completion. Borrowed. */
const pln_dataflow_binding *
pln_dataflow_bindings(const pln_dataflow_matcher *matcher, uint32_t *n);

/* ------------------------------------------------------------------ groups */

/* A match that is rewritten or becomes a function. */
typedef struct pln_dataflow_group {
  pln_ref root;
  uint32_t number;               /* of all groups that were tried */
  uint32_t bindings, n_bindings; /* in groups.bindings */
  uint32_t inputs, n_inputs;     /* in groups.inputs */
  uint32_t name, n_name;         /* in groups.names */
  uint32_t vars, n_vars; /* in groups.vars: variables whose values are inside,
                          * values before those that use them */
} pln_dataflow_group;

typedef struct pln_dataflow_groups {
  pln_engine *engine;
  const pln_dataflow_pattern *pattern;
  bool partitions; /* groups become functions */
  pln_dataflow_region region;
  uint32_t *group_of; /* per node: its group + 1, or PLN_NONE: a variable that
                       * is bound and never a group */
  uint8_t *closed;    /* per scope: belongs to a partitioned function */
  pln_dataflow_group *rows;
  uint32_t n, cap;
  struct pln_dataflow_bound {
    uint32_t pattern, order;
    pln_candidate candidate;
  } * bindings; /* of each group: by pattern, then in order of completion */
  uint32_t n_bindings, cap_bindings;
  pln_ref_list inputs, vars;
  pln_buffer names;
  /* Scratch, by node: the last group of which it is an input (2 * number, + 1
   * if the walk reached it), is inside, was bound, or must not be an input. */
  uint32_t *input, *inside, *bound, *fuzzy, *listed;
  uint32_t tried; /* number of groups tried so far */
  pln_ref_list stack, order, wanted;
} pln_dataflow_groups;

/* Finds the matches that do not overlap, from the root downwards. */
pln_status pln_dataflow_groups_find(pln_dataflow_groups *groups,
                                    const pln_dataflow_pattern *pattern,
                                    const pln_graph *graph, bool partitions,
                                    bool lets) PLN_CHECKED;
void pln_dataflow_groups_free(pln_dataflow_groups *groups);
/* The group with that root; NULL: there is none. */
const pln_dataflow_group *
pln_dataflow_group_at(const pln_dataflow_groups *groups, pln_ref root);

/* Returns false in *wanted for a group that stays as it is. */
typedef pln_status (*pln_dataflow_check)(void *ud, pln_rewrite *rw,
                                         pln_ref root, bool *wanted);
/* Replaces each group by a call of a new function with the attribute
 * PartitionedFromPattern and `attrs`. `check` may be NULL. *out: the new graph,
 * or `graph` itself, retained. */
pln_status pln_dataflow_partition(const pln_dataflow_pattern *pattern,
                                  const pln_graph *graph, bool lets,
                                  pln_attrs attrs, pln_dataflow_check check,
                                  void *ud, pln_graph **out) PLN_CHECKED;

#endif
