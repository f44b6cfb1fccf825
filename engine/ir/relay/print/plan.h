/* relay/print/plan.h: the text plan: the order of lines, the numbers of graph
 * variables, the names of variables. */

#ifndef PLN_IR_RELAY_PRINT_PLAN_H
#define PLN_IR_RELAY_PRINT_PLAN_H

#include "ir/graph/graph.h"
#include "ir/relay/metadata/references.h"
#include "ir/tensor/literal.h"
#include "ir/type/fragment.h"

/* What all functions of one text share. */
typedef struct pln_naming {
  pln_engine *engine;
  pln_interner *names; /* those given out */
  uint32_t *suffixes;  /* a name: the last number that was put behind it */
  uint32_t n_suffixes, cap_suffixes;
  uint32_t n_temps; /* %0, %1, ... */
  pln_metadata meta;
  pln_fragments attrs;    /* texts of attributes */
  pln_idmap *type_names;  /* a type variable that was bound -> its name */
  pln_idmap *bound_types; /* a name -> how often it is bound around here */
} pln_naming;

pln_status pln_naming_init(pln_naming *naming, pln_engine *engine) PLN_CHECKED;
void pln_naming_free(pln_naming *naming);

/* A node as it is seen in text. */
typedef struct pln_text_node {
  uint32_t uses;   /* by what is printed */
  uint32_t number; /* a graph variable's; a Constant's in the metadata; a Var's
                      name; PLN_NONE: stands where it is used */
  pln_ref next;    /* the next line of the same scope */
  pln_scope
      node_scope; /* in planning: where it stands, or where it was visited */
  uint32_t attrs; /* the piece that its attributes are; PLN_NONE: none */
  bool kept;      /* nothing uses it: the text says that it stays */
  bool declared;  /* its type is told, for it cannot be inferred */
  uint8_t state;
} pln_text_node;

/* The lines of a scope, then its result. */
typedef struct pln_text_scope {
  pln_ref first, last; /* a node: `%0 = ...`, `let ...` or `free_var ...` */
  pln_ref result;
  pln_ref statement; /* in planning: Lets and nodes kept for no use, in order */
  pln_scope within;  /* in planning: one that its owner stands in; PLN_NONE: the
                        owner does not stand yet */
} pln_text_scope;

/* The row behind those of the graph is the text's own scope. */
typedef struct pln_text_plan {
  const pln_graph *graph;
  pln_naming *naming;
  pln_text_node *nodes;
  pln_text_scope *scopes;
  pln_ref *statements; /* a node: the next statement of its scope */
  pln_idmap *vars;     /* Var identity -> name */
} pln_text_plan;

/* Plans the text of `root`: a definition (its parameters and its body), or an
 * expression. The plan must be freed in either case. */
pln_status pln_text_plan_make(pln_text_plan *plan, pln_naming *naming,
                              const pln_graph *graph, pln_ref root,
                              bool definition) PLN_CHECKED;
void pln_text_plan_free(pln_text_plan *plan);

/* Attributes of a Function that stand elsewhere than the others: its device,
 * and a list of those of its parameters, None where they have none. */
#define PLN_DEVICE_ATTR "virtual_device"
#define PLN_PARAM_DEVICES_ATTR "param_virtual_devices"
/* What a function and an If tell of their scopes' attributes stands among their
 * own, with names that begin so. */
#define PLN_SCOPE_PREFIX "scope."
#define PLN_THEN_PREFIX "then."
#define PLN_ELSE_PREFIX "else."
#define PLN_INPUT_NAMES_ATTR "input_names"
/* declared_types.c: whether reading the text would not find the type that the
 * node has. */
pln_status pln_text_needs_type(const pln_graph *graph, pln_ref node,
                               bool *out) PLN_CHECKED;
/* kept_nodes.c: which nodes stay where they stand because the text says so.
 * `uses` of the nodes are counted, `next` is their scope. */
pln_status pln_text_find_kept_nodes(pln_text_plan *plan) PLN_CHECKED;
/* The device of a parameter, or NULL. */
const pln_attr *pln_param_device(const pln_graph *graph, pln_ref function,
                                 uint32_t param);
/* The pattern of an arm of a Match. */
pln_ref pln_arm_pattern(const pln_graph *graph, pln_scope arm);
/* The name of a type variable in this text. */
pln_slice pln_type_var_name(const pln_naming *naming, pln_type var);

/* Kinds that have no line of their own: they stand wherever they are used. */
static inline bool pln_is_atomic_expr(uint8_t kind) {
  return kind <= PLN_CONSTRUCTOR;
}
/* Parameters: of a freely built Function its operands, else the first nodes of
 * the scope. */
static inline pln_ref pln_param(const pln_graph *g, pln_scope scope,
                                pln_ref owner, uint32_t i) {
  return owner != PLN_NONE && g->nodes[owner].kind == PLN_FUNCTION &&
                 g->nodes[owner].count > 0
             ? pln_operand(g, owner, i)
             : g->scopes[scope].begin + i;
}

#endif
