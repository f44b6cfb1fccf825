/* default_input.h: the default values of all inputs of a model. */

#ifndef PLN_ONNX_IMPORT_DEFAULT_INPUT_H
#define PLN_ONNX_IMPORT_DEFAULT_INPUT_H

#include "ir/graph/module.h"

typedef struct pln_input_default {
  pln_symbol input;
  pln_tensor *value; /* retained */
} pln_input_default;

typedef struct pln_input_defaults {
  pln_input_default *items;
  uint32_t n, cap;
} pln_input_defaults;

/* Finds the initializers that have the name of an input, in one pass over the
 * file that the module was read from. `out` is empty before; the caller frees
 * it, after a failure too. */
pln_status pln_find_input_defaults(const pln_module *module,
                                   pln_input_defaults *out) PLN_CHECKED;
void pln_free_input_defaults(pln_engine *engine, pln_input_defaults *defaults);

#endif
