/* set.h: a set of rewrite rules as it is stored: patterns, attribute patterns,
 * the decision tree. For the files of this folder. */

#ifndef PLN_RULE_SET_H
#define PLN_RULE_SET_H

#include "ir/analysis/users.h"
#include "ir/rewrite/use_counts.h"
#include "op/infer/infer.h"
#include "rule/ast.h"
#include "rule/rule.h"

enum {
  PLN_RULE_MAX_VARS = 48,      /* variables of a rule */
  PLN_RULE_MAX_VARIANTS = 512, /* of a rule */
  PLN_RULE_MAX_NODES = 256     /* nodes of a pattern */
};

typedef enum pln_pattern_kind {
  PLN_MATCH_ANY,
  PLN_MATCH_CALL,
  PLN_MATCH_TUPLE,
  PLN_MATCH_FIELD, /* TupleGetItem */
  PLN_MATCH_VALUE, /* a Constant whose elements all equal `number` */
  PLN_MATCH_KIND   /* a node of the kind `index`; its parts (kind.c) */
} pln_pattern_kind;

/* A node of a variant: a pattern without alternatives. Parents come first. */
typedef struct pln_pattern_node {
  uint8_t kind;    /* pln_pattern_kind */
  bool again;      /* its variable was bound before: the same node again */
  bool any_count;  /* CALL: operands beyond n_args are allowed */
  bool optional;   /* may be omitted */
  uint16_t parent; /* PLN_MATCH_ROOT for a root */
  uint16_t arg;    /* number of the operand; of a root, its number */
  int16_t slot;    /* variable; -1: none */
  int16_t rest;    /* CALL: variable of the remaining operands; -1: none */
  int16_t op_slot; /* CALL: variable of the operator; -1: none */
  uint16_t n_args; /* CALL, TUPLE_OF */
  uint16_t n_least;
  uint32_t constraints;
  uint32_t ops, n_ops;     /* CALL: sorted; none: any operator */
  uint32_t attrs, n_attrs; /* CALL */
  uint32_t index;          /* FIELD; KIND: a pln_kind */
  pln_symbol name;         /* KIND: of a Var; 0: any */
  uint32_t ast;            /* the syntax tree's node */
  double number;           /* VALUE */
  int64_t integer;         /* the same, if is_int */
  bool is_int;
} pln_pattern_node;
#define PLN_MATCH_ROOT UINT16_MAX
/* Operands of a commutative call of which one pattern takes constants only: the
 * one that is a constant, and the other. This saves a choice. */
#define PLN_ARG_CONSTANT ((uint16_t)(UINT16_MAX - 1))
#define PLN_ARG_OTHER UINT16_MAX

typedef struct pln_attr_pattern {
  pln_slice name;
  uint32_t expression; /* node of the syntax tree */
  int16_t slot;        /* binds this variable; -1: compares */
} pln_attr_pattern;

/* One way to match a rule. */
typedef struct pln_rule_variant {
  uint32_t rule;
  uint32_t first, count;   /* patterns */
  uint16_t n_anchor;       /* patterns of the anchor, which come first */
  uint8_t n_roots, anchor; /* anchor: the root that the sweep meets first */
  uint8_t root[PLN_RULE_MAX_ROOTS]; /* pattern nodes of the roots */
  uint8_t link[PLN_RULE_MAX_ROOTS]; /* the anchor's pattern of the variable that
                                     * is an operand of each other root */
} pln_rule_variant;

typedef struct pln_rule_entry {
  pln_rule_info info;
  pln_ast ast;
  uint32_t n_vars;
  pln_slice vars[PLN_RULE_MAX_VARS];
  uint64_t node_vars; /* bits: variables that stand for nodes */
  uint64_t rest_vars, op_vars;
  uint32_t first_variant, n_variants;
  pln_rule_native native;
  const void *native_ud;
  bool unread; /* its text is read at the first node of one of its heads */
} pln_rule_entry;

/* An operator that the pattern of an unread rule may be a call of. */
typedef struct pln_rule_head {
  pln_op op;
  uint32_t rule;
} pln_rule_head;

/* A node of the decision tree: tests the operand at `path`, or is a leaf with
 * the variants to try, in order of the rules. A leaf tests the root's first
 * operand, and is its own child for every key. */
typedef struct pln_tree_node {
  uint32_t path;         /* 0: a leaf */
  uint32_t base;         /* of its table in the set's `jumps` */
  uint32_t otherwise;    /* child for other keys */
  uint32_t parent, arg;  /* of `path` */
  bool plain;            /* what is at `parent` has the operands that patterns
                          * see */
  uint32_t first, count; /* leaf: variants */
} pln_tree_node;
/* The leaf where no variant matches, and the one of rules that are not read. */
enum { PLN_TREE_NO_MATCH, PLN_TREE_UNREAD, PLN_TREE_FIRST };

/* The child of a tree node for a key. The tables of all nodes overlap in one
 * array: an entry is the node's that it names. */
typedef struct pln_tree_jump {
  uint32_t node, child;
} pln_tree_jump;

/* The operand `arg` of the node at `parent`. Path 0 is the root. */
typedef struct pln_tree_path {
  uint32_t parent, arg;
} pln_tree_path;

struct pln_rule_set {
  pln_engine *engine;
  pln_arena arena;
  const char *name;
  pln_rule_entry *rules;
  uint32_t n_rules, cap_rules;
  pln_rule_variant *variants;
  uint32_t n_variants, cap_variants;
  pln_pattern_node *patterns;
  uint32_t n_patterns, cap_patterns;
  pln_attr_pattern *attrs;
  uint32_t n_attrs, cap_attrs;
  pln_op *ops;
  uint32_t n_ops, cap_ops;
  uint32_t most_ast; /* the largest syntax tree */
  bool names_vars;   /* a pattern is of variables, below a root */
  bool saturates;    /* rules are applied by saturation only, so that they may
                      * match their own replacements */
  /* Of a set that is read as it is needed: itself, and how to go on. NULL: the
   * set is complete. */
  pln_rule_set *self;
  pln_rule_find_native find;
  pln_rule_head *heads;
  uint32_t n_heads, cap_heads;
  /* The decision tree, made when the set is complete. */
  bool compiled;
  uint32_t *roots;             /* by key: a node of the tree */
  uint32_t n_root_ops, n_keys; /* operators, and with them kinds */
  uint32_t let_keys[2];        /* of a Let: as a node of its own, in a block */
  pln_tree_node *tree;
  uint32_t n_tree, cap_tree;
  pln_tree_jump *jumps; /* from a node's `base` on, by key */
  uint32_t n_jumps, cap_jumps;
  uint32_t end_jumps;  /* behind the last entry that is taken */
  uint32_t first_base; /* where to look for room in `jumps` */
  pln_tree_path *paths;
  uint32_t n_paths, cap_paths;
  pln_idmap *path_ids; /* parent, arg -> path + 1 */
  uint32_t *leaves;    /* variants of leaves */
  uint32_t n_leaves, cap_leaves;
};

/* By node: what a let binds the variable to; PLN_NONE: nothing. */
typedef struct pln_bound_values {
  pln_ref *value;
  uint32_t n, cap;
} pln_bound_values;

/* The value of a variable that a let binds; any other node itself. */
static inline pln_ref pln_rule_bound_value(const pln_bound_values *v,
                                           pln_ref node) {
  while (node < v->n && v->value[node] != PLN_NONE)
    node = v->value[node];
  return node;
}

/* In the option `lets`: the values in the old graph and in the new one, and by
 * node of the new one the variable that is bound to the value. All are empty
 * for graphs without lets. */
typedef struct pln_let_map {
  pln_bound_values old, now, var;
  pln_ref noted; /* up to this node of the old graph */
} pln_let_map;

/* The state of a run over one graph. */
struct pln_rule_driver {
  pln_engine *engine;
  const pln_rule_set *set;
  const pln_rule_options *options;
  pln_rewrite *rw;
  pln_ref old; /* the node of the old graph being rewritten */
  pln_use_counts uses;
  bool counting;   /* uses are counted in this sweep */
  pln_ref counted; /* up to this node of the old graph */
  pln_budget budget;
  pln_ref *paths; /* by path of the tree: the node fetched last */
  uint32_t cap_paths, cap_values;
  int64_t *pool; /* elements of lists of the current match */
  uint32_t n_pool, cap_pool;
  pln_rule_value *values; /* by node of a rule's syntax tree */
  pln_rule_match *match;
  bool watched;
  bool saturates;         /* an e-graph is searched: uses do not count */
  uint8_t *other_results; /* by old node: a result other than the first is
                           * used; made at the first request in a sweep */
  bool unfinished;        /* a rule may match a node that this sweep passed */
  uint32_t hoisted;       /* calls copied out of scopes by the last answer */
  uint32_t last_rule;     /* the rule applied last */
  pln_ref *dead;          /* a stack of nodes that lost their last use */
  uint32_t n_dead, cap_dead;
  /* For rules of several roots (roots.c), from the first match on in a sweep:
   * by old node its replacement or PLN_NONE, and the users of old nodes. */
  pln_ref *replacements;
  pln_users users;
  pln_let_map lets;
};

/* lets.c: the values of variables in a sealed graph; *out stays empty for a
 * graph without lets. */
pln_status pln_rule_find_values(const pln_graph *graph,
                                pln_bound_values *out) PLN_CHECKED;
void pln_rule_forget_values(pln_engine *engine, pln_bound_values *values);
/* Before a sweep over the graph: finds its lets. */
pln_status pln_rule_begin_lets(pln_rule_driver *r,
                               const pln_graph *old) PLN_CHECKED;
/* Returns true if the swept graph has lets that patterns match through. */
static inline bool pln_rule_sees_lets(const pln_rule_driver *r) {
  return r->lets.old.n > 0;
}
/* Notes what the lets before the node being swept bind. */
pln_status pln_rule_note_lets(pln_rule_driver *r) PLN_CHECKED;
/* The tuple whose fields a call joins, itself or as a variable's value;
 * PLN_NONE: the call joins none. */
pln_ref pln_rule_joined_tuple(const pln_bound_values *v, const pln_graph *g,
                              pln_ref node);
/* What pln_rule_operands, pln_rule_operand_index and pln_rule_operand_at give,
 * where a variable is a tuple or constant if its value is. `resolve`: the
 * operand's value is wanted. */
const pln_ref *pln_rule_bound_operands(const pln_bound_values *v,
                                       const pln_graph *g, pln_ref node,
                                       uint32_t *count);
uint32_t pln_rule_bound_index(const pln_bound_values *v, const pln_graph *g,
                              const pln_ref *operands, uint32_t count,
                              uint32_t arg);
pln_ref pln_rule_bound_operand(const pln_bound_values *v, const pln_graph *g,
                               pln_ref node, uint32_t arg, bool resolve);
/* How often the node, which has `uses`, is used directly or by a variable. */
uint32_t pln_rule_bound_uses(const pln_rule_driver *r, pln_ref node,
                             uint32_t uses);
void pln_rule_forget_lets(pln_rule_driver *r);

/* A match in progress, and what conditions and replacements read. */
struct pln_rule_match {
  pln_rule_driver *run;
  const pln_rule_set *set;
  const pln_rule_entry *rule;
  const pln_rule_variant *variant;
  pln_ref root;     /* the node that is visited: the anchor of several roots */
  bool anchor_only; /* the other roots are not known yet */
  pln_ref roots[PLN_RULE_MAX_ROOTS];
  pln_ref old_roots[PLN_RULE_MAX_ROOTS];
  pln_ref answers[PLN_RULE_MAX_ROOTS]; /* their replacements */
  pln_ref nodes[PLN_RULE_MAX_NODES];   /* by pattern node of the variant */
  pln_rule_value slots[PLN_RULE_MAX_VARS];
  /* For explain.c: the pattern node where matching failed, the syntax tree's
   * node of the attribute that did or PLN_NONE, and why. */
  uint32_t failed_at, failed_attribute;
  const char *reason;
};

/* parse.c and lower.c: adds the variants of a rule whose tree is parsed. */
pln_status pln_rule_lower(pln_rule_set *set, pln_rule_entry *rule) PLN_CHECKED;
/* check.c: checks a node of a condition or of an attribute's value, whose
 * operands are checked: its property, name or dtype exists. */
pln_status pln_rule_check_value(const pln_rule_set *set,
                                const pln_rule_entry *rule,
                                uint32_t at) PLN_CHECKED;
/* Reports that there is no operator of that name, which is part of the text. */
pln_status pln_rule_unknown_operator(pln_rule_set *set, const pln_ast *ast,
                                     pln_slice name);
/* Reports that `op` has no attribute of the name that `named` gives. */
pln_status pln_rule_unknown_attribute(pln_rule_set *set, const pln_ast *ast,
                                      pln_op op, const pln_ast_node *named);
/* subsume.c: PLN_ERR_ARGUMENT if the rule's pattern matches a part of its
 * replacement, whatever its variables stand for. */
pln_status pln_rule_check_endless(const pln_rule_set *set,
                                  const pln_rule_entry *rule) PLN_CHECKED;
/* set.c: a rule whose text is read at the first node of one of its heads, the
 * operators that its pattern may be a call of, apart by spaces. If one of these
 * is no operator, it is read now. The texts are borrowed, and there is a
 * name. */
pln_status pln_rule_set_add_later(pln_rule_set *set, const pln_rule_info *info,
                                  const char *heads,
                                  pln_rule_find_native find) PLN_CHECKED;
/* Completes a set that is read as a graph needs it. Only one thread may run
 * it. */
pln_status pln_rule_set_compile_later(pln_rule_set *set,
                                      pln_rule_find_native find) PLN_CHECKED;
/* Reads the rules of an entry of `roots` that is unread, and builds its tree.
 * Pointers to variants and leaves are invalid then. */
pln_status pln_rule_set_read(const pln_rule_set *set,
                             uint32_t root) PLN_CHECKED;
/* The same of all entries. */
pln_status pln_rule_set_read_all(const pln_rule_set *set) PLN_CHECKED;
/* tree.c: builds the trees of all roots; of a set that is read as needed, notes
 * the roots. */
pln_status pln_rule_tree_build(pln_rule_set *set) PLN_CHECKED;
/* Builds the tree of one root. */
pln_status pln_rule_tree_add(pln_rule_set *set, uint32_t root) PLN_CHECKED;
/* Returns true if the variant's root accepts no operator beside the heads of
 * its rule, and no kind. */
bool pln_rule_tree_heads(const pln_rule_set *set, uint32_t variant);
/* Returns true for the kinds of nodes beside calls of operators that a rule may
 * replace. */
static inline bool pln_rule_can_replace(pln_kind kind) {
  return kind == PLN_TUPLE_GET_ITEM || kind == PLN_TUPLE || kind == PLN_IF ||
         kind == PLN_FUNCTION || kind == PLN_LET_BLOCK || kind == PLN_CALL;
}
/* The key by which a node is found in `roots` and `jumps` of a set: its
 * operator, or from n_root_ops on its kind. Operators that were registered
 * since the set was compiled are all 0. */
static inline uint32_t pln_rule_key(uint32_t n_root_ops, const pln_node *node) {
  if (node->kind != PLN_CALL || !node->data)
    return n_root_ops + node->kind;
  return node->data < n_root_ops ? node->data : 0;
}
/* The variants that a node may match, in order; *count 0: none. `root`: a node
 * of the tree whose rules are read. */
const uint32_t *pln_rule_tree_find(const pln_rule_set *set, const pln_graph *g,
                                   pln_ref node, uint32_t root, pln_ref *paths,
                                   uint32_t *count);
/* The same where a variable that a let binds stands for its value. No pattern
 * of the set may be of variables. */
const uint32_t *pln_rule_tree_find_bound(const pln_rule_set *set,
                                         const pln_graph *g,
                                         const pln_bound_values *values,
                                         pln_ref node, uint32_t root,
                                         pln_ref *paths, uint32_t *count);
/* The variants that the tree leaves for nodes that variant `v` matches, in
 * order of their rules. One that matches all these nodes is among them. */
const uint32_t *pln_rule_tree_find_general(const pln_rule_set *set,
                                           const pln_rule_variant *v,
                                           uint32_t *count);
/* The first node from `from` on, before `end`, that a variant may match, for
 * which rules must be read, or that is of the kind `also`; `end`: there is
 * none. */
pln_ref pln_rule_tree_next(const pln_rule_set *set, const pln_graph *g,
                           pln_ref from, pln_ref end, pln_kind also,
                           pln_ref *paths);
/* The same with pln_rule_tree_find_bound. */
pln_ref pln_rule_tree_next_bound(const pln_rule_set *set, const pln_graph *g,
                                 const pln_bound_values *values, pln_ref from,
                                 pln_ref end, pln_kind also, pln_ref *paths);
/* Returns true for Relay's form of a call that joins the fields of a tuple. */
static inline bool pln_rule_joins_tuple(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->count == 1 && n->data &&
         g->nodes[g->operands[n->first]].kind == PLN_TUPLE &&
         (pln_op_row(g->engine, n->data)->traits & PLN_TRAIT_JOIN) != 0;
}
/* The operands that patterns see: those of a call that joins a tuple are the
 * fields of the tuple. */
static inline const pln_ref *pln_rule_operands(const pln_graph *g, pln_ref node,
                                               uint32_t *count) {
  const pln_node *n = &g->nodes[node];
  if (pln_rule_joins_tuple(g, node))
    n = &g->nodes[g->operands[n->first]];
  *count = n->count;
  return g->operands + n->first;
}
/* The number of the operand that `arg` of a pattern means. If both operands are
 * constants, the second one counts as the constant. */
static inline uint32_t pln_rule_operand_index(const pln_graph *g,
                                              const pln_ref *operands,
                                              uint32_t count, uint32_t arg) {
  if (arg < PLN_ARG_CONSTANT || count < 2)
    return arg;
  uint32_t constant = g->nodes[operands[1]].kind != PLN_CONSTANT &&
                              g->nodes[operands[0]].kind == PLN_CONSTANT
                          ? 0
                          : 1;
  return arg == PLN_ARG_CONSTANT ? constant : 1 - constant;
}
/* kind.c: the kind of node that a pattern names, and how many parts it has; -1:
 * any number. False: it names none. */
bool pln_rule_find_kind(pln_slice name, pln_kind *kind, int32_t *parts);
/* The name of such a kind in a pattern. */
const char *pln_rule_kind_text(pln_kind kind);
/* The first Let of the scope itself at or after `from`; PLN_NONE: there is
 * none. The scope has ended. */
pln_ref pln_rule_next_let(const pln_graph *graph, pln_scope scope,
                          pln_ref from);
/* A part of an If, a Function or a Let, and how many there are, also of a Call.
 * PLN_NONE: there is no such part. */
pln_ref pln_rule_part(const pln_graph *graph, pln_ref node, uint32_t part);
uint32_t pln_rule_n_parts(const pln_graph *graph, pln_ref node);
/* The operand or part that `arg` of a pattern means; PLN_NONE: there is
 * none. */
static inline pln_ref pln_rule_operand_at(const pln_graph *g, pln_ref node,
                                          uint32_t arg) {
  uint32_t count;
  if (pln_owns(&g->nodes[node]) || g->nodes[node].kind == PLN_LET)
    return pln_rule_part(g, node, arg);
  const pln_ref *operands = pln_rule_operands(g, node, &count);
  arg = pln_rule_operand_index(g, operands, count, arg);
  return arg < count ? operands[arg] : PLN_NONE;
}
/* match.c: the number that all elements of a Constant equal; false: there is
 * none, or it is not known without reading a large tensor. */
bool pln_rule_uniform(const pln_graph *graph, pln_ref node, double *out);
/* The same of integers and truth values, which are exact. */
bool pln_rule_uniform_int(const pln_graph *graph, pln_ref node, int64_t *out);
/* match.c: binds the variables; *out is whether it matches. The condition is
 * not evaluated. */
pln_status pln_rule_match_variant(pln_rule_match *m, bool *out) PLN_CHECKED;
/* roots.c: the same, but first looks for calls that match the other roots of a
 * variant of several, and copies them into the new graph. */
pln_status pln_rule_find_match(pln_rule_match *m, bool *out) PLN_CHECKED;
/* Notes the replacements of the other roots, for when the sweep meets them. */
pln_status pln_rule_note_roots(pln_rule_match *m) PLN_CHECKED;
/* The noted replacement of the old node; PLN_NONE: there is none. */
static inline pln_ref pln_rule_noted(const pln_rule_driver *run, pln_ref old) {
  return run->replacements ? run->replacements[old] : PLN_NONE;
}
/* At the end of a sweep. */
void pln_rule_forget_roots(pln_rule_driver *run, const pln_graph *swept);
/* match.c: true if the pattern is of calls of that operator, among others. */
bool pln_rule_has_op(const pln_rule_set *set, const pln_pattern_node *p,
                     pln_op op);
/* Evaluates the condition of a matched rule. */
pln_status pln_rule_check_condition(pln_rule_match *m, bool *out) PLN_CHECKED;

/* value.c: evaluates the expression at node `root` of the rule's tree. */
pln_status pln_rule_evaluate(pln_rule_match *m, uint32_t root,
                             pln_rule_value *out) PLN_CHECKED;
/* The same for one node, whose operands are evaluated. */
pln_status pln_rule_evaluate_node(pln_rule_match *m, uint32_t at,
                                  pln_rule_value *out) PLN_CHECKED;
/* The attribute `name` of a call, under its core or Relay name: from an
 * operand, its attributes, or the schema's default. */
pln_status pln_rule_attribute(pln_rule_match *m, pln_ref call, pln_slice name,
                              pln_rule_value *out) PLN_CHECKED;
/* What an attribute that a call leaves out and whose schema in the core has no
 * default means: Relay's default, or that of ONNX's windows; kind NONE: there
 * is none. Patterns compare with it; replacements copy what is given. */
pln_status pln_rule_omitted(pln_rule_match *m, pln_ref call, pln_slice name,
                            pln_rule_value *out) PLN_CHECKED;
/* What leaving the attribute out means by the core's schema or, of ONNX's
 * windows, by their call. Relay's defaults are not asked for: an attribute that
 * only Relay has may select Relay's form of the operator. */
pln_status pln_rule_default(pln_rule_match *m, pln_ref call, pln_slice name,
                            pln_rule_value *out) PLN_CHECKED;
/* Applies an operator of expressions. */
pln_status pln_rule_operator(pln_rule_match *m, pln_ast_operator operator_,
                             const pln_rule_value *args,
                             pln_rule_value *out) PLN_CHECKED;
/* The property `name` of a value. */
pln_status pln_rule_property(pln_rule_match *m, const pln_rule_value *of,
                             pln_slice name, pln_rule_value *out) PLN_CHECKED;
pln_status pln_rule_index(pln_rule_match *m, const pln_rule_value *of,
                          const pln_rule_value *index,
                          pln_rule_value *out) PLN_CHECKED;
/* Calls a function of functions.def; `function` is its number. */
pln_status pln_rule_call_function(pln_rule_match *m, uint32_t function,
                                  uint32_t n, const pln_rule_value *args,
                                  pln_rule_value *out) PLN_CHECKED;
/* PLN_NONE: there is no such function. */
uint32_t pln_rule_function_find(pln_slice name);
/* Whether it takes that many arguments. */
bool pln_rule_function_takes(uint32_t function, uint32_t n);
/* NULL behind the last one. */
const char *pln_rule_function_name(uint32_t index);
bool pln_rule_value_equal(const pln_rule_match *m, const pln_rule_value *a,
                          const pln_rule_value *b, bool *known);
/* A list of `n` dims in the pool; *dims is where to write them, valid until the
 * next one is made. */
pln_status pln_rule_new_list(pln_rule_match *m, uint32_t n, pln_rule_value *out,
                             int64_t **dims) PLN_CHECKED;
/* lower.c: the number of a variable of the rule; PLN_NONE. */
uint32_t pln_rule_find_var(const pln_rule_entry *rule, pln_slice name);
/* The same; a new variable if there is none of that name. */
pln_status pln_rule_add_var(pln_rule_entry *rule, pln_slice name,
                            uint32_t position, uint32_t *out) PLN_CHECKED;
/* The operand that is the attribute `name` of `op` in ONNX's form; PLN_NONE. */
uint32_t pln_rule_parameter(pln_op op, pln_slice name);
/* The inverse; NULL. */
const char *pln_rule_parameter_name(pln_op op, uint32_t operand);
/* The value as a number, if it is one and constant. */
bool pln_rule_number(const pln_rule_value *value, double *out);
/* check.c: an error if a call of the operator gives an attribute that is an
 * integer or a dtype a text that names no dtype. */
pln_status pln_rule_check_attribute(const pln_rule_set *set, const pln_ast *ast,
                                    pln_op op,
                                    const pln_ast_node *named) PLN_CHECKED;
/* check.c: an error if the value, a condition, is neither true nor false. */
pln_status pln_rule_check_truth(const pln_rule_set *set,
                                const pln_rule_entry *rule,
                                uint32_t at) PLN_CHECKED;
/* check.c: an error if a negated literal is too small for the values of
 * conditions and replacements, which are dims. */
pln_status pln_rule_check_negation(const pln_ast *ast,
                                   const pln_ast_node *node) PLN_CHECKED;
/* What all elements of a Constant equal: a float, beyond 2^53 an integer, or
 * unknown. */
pln_rule_value pln_rule_uniform_value(const pln_graph *graph, pln_ref node);
/* The number of leading operands that are no attributes in another form;
 * UINT32_MAX: all. */
uint32_t pln_rule_n_data(pln_op op);
/* The text behind the name of an attribute in a schema of operators,
 * ":kind=default ..."; NULL: there is none. In Relay's schemas
 * "relay>core:kind" names both; *core is then the second. */
const char *pln_rule_find_in_schema(const char *schema, pln_slice name,
                                    pln_slice *core);
/* The core's name of an attribute of `op` given by its core or Relay name;
 * empty if there is none. */
pln_slice pln_rule_core_name(const pln_engine *engine, pln_op op,
                             pln_slice name);

/* The number of a new call's results, where an attribute may stand. */
#define PLN_RULE_RESULTS "n_results"
/* replace.c: builds the replacement of a matched rule. *out PLN_NONE: it would
 * be ill-typed, or a value in it is unknown. */
pln_status pln_rule_replace(pln_rule_match *m, pln_ref *out) PLN_CHECKED;
/* The operator that a sign of arithmetic stands for, as in TVM's patterns; 0:
 * none. */
pln_op pln_rule_operator_op(uint8_t sign);
/* drive.c: builds the replacement of a matched rule. *out PLN_NONE: there is
 * none, for the reason in the match. */
pln_status pln_rule_build_answer(pln_rule_match *m, pln_ref *out) PLN_CHECKED;
/* explain.c: explains why rules do not replace the node, for a run with the
 * option `explain`. */
pln_status pln_rule_explain_node(pln_rule_match *m, pln_ref node) PLN_CHECKED;
/* drive.c: the state of a run without a sweep; `end` frees it, also after a
 * failure. */
pln_status pln_rule_driver_begin(pln_rule_driver *run, pln_engine *engine,
                                 const pln_rule_set *set,
                                 const pln_rule_options *options) PLN_CHECKED;
/* Goes on with another set, all of whose rules are read. */
pln_status pln_rule_driver_use(pln_rule_driver *run,
                               const pln_rule_set *set) PLN_CHECKED;
void pln_rule_driver_end(pln_rule_driver *run);
/* match.c: compares a pattern of the variant with the node that was fetched for
 * it, or with PLN_NONE, and binds its variable. */
pln_status pln_rule_match_node(pln_rule_match *m, uint32_t at,
                               const pln_pattern_node *p, pln_ref node,
                               bool *out) PLN_CHECKED;
/* Compares the attributes of the first `count` patterns, whose nodes match. */
pln_status pln_rule_match_attrs(pln_rule_match *m, uint32_t count,
                                bool *out) PLN_CHECKED;
/* drive.c: replaces a call of constants by its value, within the budget. */
pln_status pln_rule_fold(pln_rule_driver *run, pln_ref *node) PLN_CHECKED;

/* The graph that is being written, which matching reads. */
static inline const pln_graph *pln_rule_graph(const pln_rule_match *m) {
  return pln_rewrite_graph(m->run->rw);
}

#endif
