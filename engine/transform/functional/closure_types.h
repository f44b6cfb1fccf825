/* closure_types.h: function types as algebraic data types, for
 * Defunctionalization. */

#ifndef PLN_TRANSFORM_FUNCTIONAL_CLOSURE_TYPES_H
#define PLN_TRANSFORM_FUNCTIONAL_CLOSURE_TYPES_H

#include "ir/graph/graph.h"

/* A constructor of a closure type: a function that the program uses as a
 * value. Its arguments are what the function captures. */
typedef struct pln_closure {
  uint32_t owner; /* index of the closure type */
  uint32_t next;  /* the next closure of that type, or PLN_NONE */
  pln_symbol constructor;
  pln_type type; /* of the constructor: from the captures to the data type */
  /* What a call of it calls: a GlobalVar, a Constructor or an Operator with
   * that node's data, of type `called`. */
  pln_kind kind;
  uint32_t data;
  pln_type called;
} pln_closure;

/* The data type for a function type whose parts have no functions. */
typedef struct pln_closure_type {
  pln_type function;
  pln_type data;
  pln_type apply_type; /* fn (data, arguments) -> result */
  pln_symbol name;
  pln_symbol apply;     /* the function that calls a closure */
  uint32_t first, last; /* its closures, or PLN_NONE */
} pln_closure_type;

typedef struct pln_closure_types {
  pln_engine *engine;
  const pln_module *module;  /* whose names are taken */
  pln_type_mutator *convert; /* function types to data types */
  pln_type_mutator *erase;   /* see pln_has_function */
  pln_idmap *by_function;    /* function type -> index + 1 */
  pln_idmap *by_data;        /* data type -> index + 1 */
  pln_idmap *names;          /* symbols that are taken here */
  pln_closure_type *types;
  uint32_t n_types, cap_types;
  pln_closure *closures;
  uint32_t n_closures, cap_closures;
} pln_closure_types;

/* Zero the struct and set engine and module first. Free it also after a
 * failure. */
pln_status pln_closure_types_init(pln_closure_types *c) PLN_CHECKED;
void pln_closure_types_free(pln_closure_types *c);
/* A name that neither the module nor an earlier call has: `stem` and `end`,
 * followed by a number if need be. */
pln_status pln_closure_name(pln_closure_types *c, pln_slice stem,
                            const char *end, pln_symbol *out) PLN_CHECKED;
/* True if the type is that of a function, or contains one. */
pln_status pln_has_function(pln_closure_types *c, pln_type type,
                            bool *out) PLN_CHECKED;
/* The type with data types in the place of function types. PLN_ERR_UNSUPPORTED
 * if one of these has type parameters. */
pln_status pln_closure_convert(pln_closure_types *c, pln_type type,
                               pln_type *out) PLN_CHECKED;
/* The same for the parts of a function type, which stays one. */
pln_status pln_closure_convert_parts(pln_closure_types *c, pln_type function,
                                     pln_type *out) PLN_CHECKED;
/* The index of the closure type of a function type. */
pln_status pln_closure_type_find(pln_closure_types *c, pln_type function,
                                 uint32_t *out) PLN_CHECKED;
/* Adds a constructor to closure type `owner`. */
pln_status pln_closure_add(pln_closure_types *c, uint32_t owner,
                           uint32_t n_captures, const pln_type *captures,
                           uint32_t *out) PLN_CHECKED;
/* Adds the definitions of the data types to a module. */
pln_status pln_closure_define(const pln_closure_types *c,
                              pln_module *module) PLN_CHECKED;
/* The function that calls a closure of a type; the module has the definitions
 * of the data types. */
pln_status pln_closure_apply(const pln_closure_types *c,
                             const pln_module *module, uint32_t type,
                             pln_graph **out) PLN_CHECKED;

#endif
