/* relay/print/plan.h: the text plan: the order of lines, the numbers of graph
 * variables, the names of variables. */

#ifndef PLN_IR_RELAY_PRINT_PLAN_H
#define PLN_IR_RELAY_PRINT_PLAN_H

#include "ir/graph/graph.h"
#include "ir/relay/metadata/references.h"
#include "ir/tensor/literal.h"
#include "ir/type/fragment.h"
#include "ir/type/print_cache.h"

/* State shared by all functions of a text. */
typedef struct pln_naming {
  pln_engine *engine;
  pln_interner *names; /* names in use */
  uint32_t *suffixes;  /* per name: the last number appended to it */
  uint32_t n_suffixes, cap_suffixes;
  uint32_t n_temps; /* number of graph variables %0, %1, ... */
  pln_metadata meta;
  pln_fragments attrs;    /* cached texts of attributes */
  pln_idmap *type_names;  /* bound type variable -> its name */
  pln_idmap *bound_types; /* name -> how many enclosing scopes bind it */
} pln_naming;

pln_status pln_naming_init(pln_naming *naming, pln_engine *engine) PLN_CHECKED;
void pln_naming_free(pln_naming *naming);

/* The place of a node in the text. */
typedef struct pln_text_node {
  uint32_t uses;        /* number of uses by printed nodes */
  uint32_t number;      /* of a graph variable; of a Constant in the metadata; a
                         * Var's name; PLN_NONE: printed inline */
  pln_ref next;         /* the next line of the same scope */
  pln_scope node_scope; /* while planning: the scope where it is printed or was
                         * visited */
  uint32_t attrs;       /* fragment of its attributes; PLN_NONE: none */
  bool kept;            /* unused, marked `keep` */
  bool declared;        /* its type is written, because it cannot be inferred */
  uint8_t state;
} pln_text_node;

/* The lines of a scope, then its result. */
typedef struct pln_text_scope {
  pln_ref first, last; /* nodes with a line: `%0 = ...`, `let ...` or `free_var
                        * ...` */
  pln_ref result;
  pln_ref statement; /* while planning: the next Let or kept node */
  pln_scope within;  /* while planning: the scope where its owner is printed;
                      * PLN_NONE: not yet */
} pln_text_scope;

/* The row after those of the graph is the text's own scope. */
typedef struct pln_text_plan {
  const pln_graph *graph;
  pln_naming *naming;
  pln_text_node *nodes;
  pln_text_scope *scopes;
  pln_ref *statements; /* per node: the next statement of its scope */
  pln_idmap *vars;     /* Var identity -> name */
} pln_text_plan;

/* Plans the text of `root`: a definition (its parameters and body), or an
 * expression. The plan must be freed in any case. */
pln_status pln_text_plan_make(pln_text_plan *plan, pln_naming *naming,
                              const pln_graph *graph, pln_ref root,
                              bool definition) PLN_CHECKED;
void pln_text_plan_free(pln_text_plan *plan);

/* Function attributes printed separately: its device, and a list of its
 * parameters' devices, None where they have none. */
#define PLN_DEVICE_ATTR "virtual_device"
#define PLN_PARAM_DEVICES_ATTR "param_virtual_devices"
/* Prefix of the scope attributes of a Function or If, which are printed among
 * its own. */
#define PLN_SCOPE_PREFIX "scope."
#define PLN_THEN_PREFIX "then."
#define PLN_ELSE_PREFIX "else."
#define PLN_INPUT_NAMES_ATTR "input_names"
/* declared_types.c: true if parsing the text would not infer the node's
 * type. */
pln_status pln_text_needs_type(const pln_graph *graph, pln_ref node,
                               bool *out) PLN_CHECKED;
/* kept_nodes.c: marks nodes that need `keep`. The `uses` of nodes are counted,
 * and node_scope is set. */
pln_status pln_text_find_kept_nodes(pln_text_plan *plan) PLN_CHECKED;
/* The device of a parameter, or NULL. */
const pln_attr *pln_param_device(const pln_graph *graph, pln_ref function,
                                 uint32_t param);

/* Kinds that never have a line: they are printed at each use. */
static inline bool pln_is_atomic_expr(uint8_t kind) {
  return kind <= PLN_CONSTRUCTOR;
}
/* A parameter: for a floating Function an operand, else one of the first nodes
 * of the scope. */
static inline pln_ref pln_param(const pln_graph *g, pln_scope scope,
                                pln_ref owner, uint32_t i) {
  return owner != PLN_NONE && g->nodes[owner].kind == PLN_FUNCTION &&
                 g->nodes[owner].count > 0
             ? pln_operand(g, owner, i)
             : g->scopes[scope].begin + i;
}

#endif
