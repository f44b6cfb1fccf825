/* region_function.h: regions as functions of the module, for PartitionGraph. */

#ifndef PLN_TRANSFORM_PARTITION_REGION_FUNCTION_H
#define PLN_TRANSFORM_PARTITION_REGION_FUNCTION_H

#include "transform/partition/region.h"

/* A region that is a function. */
typedef struct pln_region_function {
  pln_symbol name;
  pln_graph *function;         /* retained */
  uint32_t args, n_args;       /* in `inputs`: what the call takes */
  uint32_t results, n_results; /* in `outputs`: the nodes that it gives */
} pln_region_function;

typedef struct pln_region_functions {
  pln_region_set *set;
  bool bind_constants;
  pln_slice mod_name, function; /* what the names are made of */
  pln_region_function *rows;    /* by region */
  pln_ref *inputs, *outputs;
  uint32_t n_inputs, cap_inputs, n_outputs, cap_outputs;
  /* Scratch, by node. */
  uint32_t *seen;    /* the region + 1 whose walk reached it */
  uint32_t *param;   /* what is behind begins and ends: its place in `found` */
  uint32_t *place;   /* of a begin among the inputs of its region */
  uint8_t *constant; /* a constant, or a tuple of such */
  pln_ref *found;    /* begins of the region in the order of its parameters */
  uint32_t n_found, cap_found;
  pln_ref *stack;
  uint32_t n_stack, cap_stack;
} pln_region_functions;

/* Makes a function of each region that has an end. They are called
 * "tvmgen_MOD_COMPILER_FUNCTION_NUMBER". */
pln_status pln_region_functions_make(pln_region_functions *f) PLN_CHECKED;
/* Also after a failure. */
void pln_region_functions_free(pln_region_functions *f);
/* "tvmgen_MOD_NAME", as a name of C. */
pln_status pln_mangle_name(pln_engine *engine, pln_slice mod_name,
                           pln_slice name, pln_symbol *out) PLN_CHECKED;
/* rename_functions.c: the module with its functions for other compilers renamed
 * so; the same one, retained, when there are none. */
pln_status pln_rename_compiler_functions(const pln_module *module,
                                         pln_slice mod_name,
                                         pln_module **out) PLN_CHECKED;

#endif
