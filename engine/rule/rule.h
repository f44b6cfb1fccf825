/* rule.h: rewrite rules: sets of rules, and running them over a function.
 *
 *     add(?x, 0) => ?x
 *
 * A set is made of texts, compiled to a decision tree (Maranget, Compiling
 * pattern matching to good decision trees, 2008), and immutable from then on.
 * The grammar is in rule/README.md. */

#ifndef PLN_RULE_RULE_H
#define PLN_RULE_RULE_H

#include "eval/eval.h"
#include "ir/graph/graph.h"

typedef struct pln_rule_set pln_rule_set;
typedef struct pln_rule_driver pln_rule_driver;
typedef struct pln_rule_match pln_rule_match;

/* How a rule's results compare to the original. */
typedef enum pln_proof_class {
  PLN_PROOF_EXACT,        /* bit for bit, except for the sign of zero */
  PLN_PROOF_REASSOCIATES, /* equal in exact arithmetic; rounded otherwise */
  PLN_PROOF_APPROXIMATES
} pln_proof_class;

/* A replacement written in C. `ud` is that of its row; `node`: the matched
 * call, in the new graph. *out: the node to use instead, or PLN_NONE. */
typedef pln_status (*pln_rule_native)(const void *ud, pln_rule_driver *driver,
                                      pln_ref node, pln_ref *out);

/* A condition or a replacement by callback, such as a Lua function. For a
 * condition *holds is set; for a replacement *out, PLN_NONE: no match. */
typedef pln_status (*pln_rule_callback)(void *ud, const pln_rule_match *match,
                                        bool *holds, pln_ref *out);

/* A rule. Texts are copied; `text` is `[name:] pattern [=> replacement] [where
 * condition]`. */
typedef struct pln_rule_info {
  const char *name; /* NULL: the text's name, else its pattern */
  const char *text;
  const char *file; /* where the text is, for messages; NULL: the set's name */
  uint32_t row;     /* 0: unknown */
  const char *reason, *source;
  pln_proof_class proof;
  bool grows;         /* may make more nodes than it removes */
  bool relay;         /* holds for calls in Relay's form, too */
  const char *native; /* name of a replacement in C; NULL: none */
  pln_rule_callback condition, replacement; /* NULL: none, or in the text */
  void *ud;                                 /* of both callbacks */
} pln_rule_info;

/* Finds a native replacement and what to pass it; NULL: there is none. */
typedef pln_rule_native (*pln_rule_find_native)(const char *name,
                                                const void **ud);

pln_status pln_rule_set_new(pln_engine *engine, const char *name,
                            pln_rule_set **out) PLN_CHECKED;
/* Adds a rule behind the others. PLN_ERR_FORMAT, PLN_ERR_NAME or PLN_ERR_TYPE
 * with a diagnostic that shows the place in the text. */
pln_status pln_rule_set_add(pln_rule_set *set, const pln_rule_info *info,
                            pln_rule_find_native find) PLN_CHECKED;
/* equation.c: the same for a set that is only used by saturation
 * (rule/egraph/saturate.h); its rules may also be equations, `a <=> b`, each of
 * which becomes two rules. */
pln_status pln_rule_set_add_equation(pln_rule_set *set,
                                     const pln_rule_info *info,
                                     pln_rule_find_native find) PLN_CHECKED;
/* Compiles the decision tree. The set is complete then. */
pln_status pln_rule_set_compile(pln_rule_set *set) PLN_CHECKED;
/* check.c: PLN_ERR_TYPE if the replacement of a rule has another type than its
 * pattern, or is ill-typed, for variables of whatever dtype and rank. */
pln_status pln_rule_check_types(const pln_rule_set *set) PLN_CHECKED;
/* subsume.c: warns of each rule that is never applied because an earlier one
 * matches whatever it matches and has no condition. */
pln_status pln_rule_warn_shadowed(const pln_rule_set *set) PLN_CHECKED;
void pln_rule_set_free(pln_rule_set *set);
uint32_t pln_rule_set_count(const pln_rule_set *set);
/* Rule `index`; its name is never NULL. Borrowed. */
const pln_rule_info *pln_rule_set_at(const pln_rule_set *set, uint32_t index);

/* What a run counts of a rule. */
typedef struct pln_rule_counter {
  uint32_t tried;   /* nodes that it was compared with */
  uint32_t matches; /* its pattern matched */
  uint32_t refused; /* of these, its condition did not hold */
  uint32_t applied;
  double seconds; /* in the option `timed` */
} pln_rule_counter;

/* Where a rule was applied last. */
typedef struct pln_rule_place {
  pln_ref node;   /* of the running sweep; PLN_NONE */
  char text[160]; /* as pln_history_describe says; "": nowhere or unknown */
} pln_rule_place;

/* How far matching a rule at a node gets. */
typedef enum pln_rule_stage {
  PLN_STAGE_STRUCTURE, /* some node differs from the pattern */
  PLN_STAGE_ATTRIBUTES,
  PLN_STAGE_CONDITION,
  PLN_STAGE_REPLACEMENT, /* there is no replacement, or it is refused */
  PLN_STAGE_APPLIES
} pln_rule_stage;

enum { PLN_EXPLAINED_DEPTH = 32 };

/* Why a rule does not replace a node: of the ways to match it, the one that
 * gets furthest. */
typedef struct pln_rule_explanation {
  uint32_t rule; /* in its set */
  pln_ref root;  /* the node that was tried */
  pln_rule_stage stage;
  uint32_t matched, total; /* nodes of the pattern */
  /* The part of the rule's text that fails; equal if it is not known. */
  uint32_t begin, end;
  /* STRUCTURE, ATTRIBUTES: the node there, PLN_NONE if there is none, and the
   * numbers of the operands on the way to it from the root. */
  pln_ref node;
  uint32_t depth, path[PLN_EXPLAINED_DEPTH];
  const char *reason; /* constant text */
} pln_rule_explanation;

/* A request for explanations, best first; `capacity` of them are kept. */
typedef struct pln_rule_explain {
  pln_ref node;  /* PLN_NONE: every node whose kind and operator fit */
  uint32_t rule; /* PLN_NONE: every rule, one explanation each */
  uint32_t n, capacity;
  pln_rule_explanation *best;
} pln_rule_explain;

typedef struct pln_rule_options {
  int64_t opset;    /* of ai.onnx, for conditions; 0: the program is no ONNX
                     * model */
  bool *asks_opset; /* set to true when a condition asks for it; may be NULL */
  bool exact;       /* only rules of PLN_PROOF_EXACT */
  bool finite_math; /* conditions may take it that no computed value is infinite
                     * or NaN */
  bool associative_math; /* conditions may take it that sums and products of
                          * floats may be computed in any order */
  bool microsoft;        /* conditions may ask for operators of com.microsoft */
  const pln_attr *only; /* a list of names: no other rule runs; NULL or an empty
                         * list: all run */
  bool number_values;   /* equal computations become one node */
  bool lenient; /* a replacement of a contradicting type is not used; else it
                 * is an error */
  bool lets;    /* patterns match through variables of lets, whose values have
                 * no effect */
  bool naive;   /* tries every rule on every node, without the decision
                 * tree: for tests of it */
  pln_rule_counter *counts;  /* by rule; NULL: not counted */
  bool timed;                /* counts->seconds are measured */
  pln_rule_place *places;    /* by rule; NULL: not described */
  pln_rule_explain *explain; /* nothing is rewritten; NULL: rules apply */
  /* Called for nodes of the kind `visited` after their rules. NULL: none. */
  pln_kind visited;
  pln_status (*visit)(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node);
  void *ud;
} pln_rule_options;

/* Returns true if the options let a rule of that name and proof run. */
bool pln_rule_is_enabled(const pln_rule_options *options, const char *name,
                         pln_proof_class proof);

/* Applies the rules to a graph until none matches: one bottom-up sweep in which
 * each result is looked at again. *out: the new graph, or `graph` itself,
 * retained. */
pln_status pln_rules_apply(const pln_rule_set *set, const pln_graph *graph,
                           const pln_rule_options *options,
                           pln_graph **out) PLN_CHECKED;

/* What native rules and callbacks ask of a run. */
pln_rewrite *pln_rule_driver_rewrite(const pln_rule_driver *driver);
/* The number of uses that a node of the new graph will have, as far as is
 * known. */
uint32_t pln_rule_driver_uses(const pln_rule_driver *driver, pln_ref node);
/* *out: of the results of the old node being rewritten none but the first is
 * used. */
pln_status pln_rule_driver_first_result_only(pln_rule_driver *driver,
                                             bool *out) PLN_CHECKED;
/* The old node being rewritten. */
pln_ref pln_rule_driver_old(const pln_rule_driver *driver);

/* The `ud` of the options. */
void *pln_rule_driver_ud(const pln_rule_driver *driver);

/* What callbacks ask of a match: its variables by number, their names, and
 * whether they are nodes (of the new graph). */
uint32_t pln_rule_match_count(const pln_rule_match *match);
pln_slice pln_rule_match_name(const pln_rule_match *match, uint32_t var);
/* A value of a match. */
typedef enum pln_rule_value_kind {
  PLN_VALUE_NONE,    /* a variable without a value; an omitted operand */
  PLN_VALUE_UNKNOWN, /* not known at compile time: no condition holds */
  PLN_VALUE_BOOL,
  PLN_VALUE_INT, /* a constant or symbolic dim */
  PLN_VALUE_FLOAT,
  PLN_VALUE_STRING, /* also a dtype, by its name */
  PLN_VALUE_LIST,   /* of dims */
  PLN_VALUE_NODE,
  PLN_VALUE_NODES,
  PLN_VALUE_ATTR /* an attribute of another kind: only compared and copied */
} pln_rule_value_kind;

typedef struct pln_rule_value {
  uint8_t kind;   /* pln_rule_value_kind */
  uint32_t count; /* LIST, NODES */
  union {
    bool b;
    pln_dim i;
    double f;
    pln_slice s;
    uint32_t at; /* LIST, NODES: for pln_rule_list */
    pln_ref node;
    const pln_attr *attr;
  } v;
} pln_rule_value;
/* The value of a variable, and the elements of a LIST or NODES; both, and
 * texts, are borrowed until the next match. */
const pln_rule_value *pln_rule_match_value(const pln_rule_match *match,
                                           uint32_t var);
const int64_t *pln_rule_list(const pln_rule_match *match,
                             const pln_rule_value *list);
/* The number of the rule in its set. */
uint32_t pln_rule_match_index(const pln_rule_match *match);
pln_ref pln_rule_match_root(const pln_rule_match *match);
pln_rule_driver *pln_rule_match_driver(const pln_rule_match *match);
const pln_rule_info *pln_rule_match_rule(const pln_rule_match *match);

/* Returns false for a call that inference refused, or that lacks an operand
 * that each form of its operator has. Files may contain such calls; rules
 * neither rewrite nor read them. */
bool pln_call_is_valid(const pln_graph *graph, pln_ref call);

#endif
