/* defunctionalization.h: the functions that Defunctionalization makes, and what
 * they are made from. */

#ifndef PLN_TRANSFORM_FUNCTIONAL_DEFUNCTIONALIZATION_H
#define PLN_TRANSFORM_FUNCTIONAL_DEFUNCTIONALIZATION_H

#include "transform/functional/captures.h"
#include "transform/functional/closure_types.h"

/* A function of the module whose nodes are copied. The image of a node counts
 * only while `instance` is the number of the instance being built. */
typedef struct pln_defunc_source {
  const pln_graph *graph; /* NULL: not needed so far */
  pln_captures captures;
  uint8_t *of_operator; /* by node: a function that an operator takes */
  uint8_t *bound;       /* by node: a variable that a let binds */
  pln_ref *map;         /* by node: its image, or PLN_NONE */
  uint32_t *instance;   /* by node: the instance that the image belongs to */
  pln_scope *scopes;    /* by scope: its image */
  pln_scope *owner; /* by function literal: the new scope that it stands in */
} pln_defunc_source;

/* A function to be made: one of the module or a function literal, for given
 * types. */
typedef struct pln_defunc_instance {
  uint32_t function; /* index in the module */
  pln_ref node;      /* the function; the root, or a literal */
  /* A tuple: type variables, then as many types without type variables. */
  pln_type bound;
  pln_symbol name;
  pln_type type;    /* a function of captures and parameters */
  uint32_t closure; /* of a literal: its constructor; else PLN_NONE */
  uint32_t next;    /* the next instance of the same function, or PLN_NONE */
  pln_graph *graph; /* once it is made */
} pln_defunc_instance;

typedef struct pln_defunc {
  pln_engine *engine;
  const pln_module *module;
  pln_closure_types closures;
  pln_defunc_source *sources; /* by function of the module */
  pln_defunc_instance *instances;
  uint32_t n_instances, cap_instances;
  pln_idmap *by_node;  /* (function, node) -> the last instance + 1 */
  pln_idmap *by_atom;  /* (kind, data) -> the last closure + 1 */
  uint32_t *same_atom; /* by closure: the closure before it of that atom */
  uint32_t cap_same_atom;
} pln_defunc;

/* `type` with the type variables of `bound` replaced. */
pln_status pln_defunc_substitute(const pln_defunc *d, pln_type bound,
                                 pln_type type, pln_type *out) PLN_CHECKED;
/* `bound` with more variables: those of the tuple `vars`. */
pln_status pln_defunc_extend(const pln_defunc *d, pln_type bound, pln_type vars,
                             const pln_type *types, pln_type *out) PLN_CHECKED;
/* The source of a function of the module. */
pln_status pln_defunc_source_of(pln_defunc *d, uint32_t function,
                                pln_defunc_source **out) PLN_CHECKED;
/* The instance of a function of the module for a tuple of type arguments (0:
 * none). Its type has no functions in it. */
pln_status pln_defunc_specialize(pln_defunc *d, uint32_t function,
                                 pln_type args, uint32_t *out) PLN_CHECKED;
/* The closure for a function literal as a value of function type `type`. */
pln_status pln_defunc_literal(pln_defunc *d, uint32_t function, pln_ref node,
                              pln_type bound, pln_type type,
                              uint32_t *closure) PLN_CHECKED;
/* The closure for a GlobalVar, Constructor or Operator as a value of that
 * type. */
pln_status pln_defunc_atom(pln_defunc *d, const pln_graph *graph, pln_ref node,
                           pln_type type, uint32_t *closure) PLN_CHECKED;
/* The types for the type parameters of the generic function type `function`
 * that make it `type`, as a tuple. */
pln_status pln_defunc_match(const pln_defunc *d, pln_type function,
                            pln_type type, pln_type *args) PLN_CHECKED;
/* A capture that is copied instead: it is the same everywhere. */
bool pln_defunc_is_copied(const pln_node *node);

/* first_order_function.c: builds the graph of an instance. */
pln_status pln_first_order_function(pln_defunc *d,
                                    uint32_t instance) PLN_CHECKED;

#endif
