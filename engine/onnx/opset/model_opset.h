/* model_opset.h: the opsets of a model and its functions, in the module and in
 * the file that they came from. */

#ifndef PLN_ONNX_OPSET_MODEL_OPSET_H
#define PLN_ONNX_OPSET_MODEL_OPSET_H

#include "ir/graph/module.h"

/* Attribute of modules: a function's name -> its opset_import, for functions
 * whose versions differ from the model's. */
#define PLN_FUNCTION_OPSETS "function_opset_import"

/* The versions that the model imports; defaults for a module from no file. */
pln_status pln_model_opsets(const pln_module *module,
                            pln_attrs *out) PLN_CHECKED;
/* The versions of a function: its own, else the model's. */
pln_status pln_function_opsets(const pln_module *module, pln_symbol function,
                               pln_attrs *out) PLN_CHECKED;
/* The version of ai.onnx that a function of the module uses. */
int64_t pln_model_opset(const pln_module *module, pln_symbol function);
/* Returns true if functions of the module differ from the model in their
 * versions. */
bool pln_model_is_mixed(const pln_module *module);
/* Cache of the opsets of the last model file: most functions of a module share
 * one. Zero-initialized. */
typedef struct pln_file_opsets {
  const pln_file *file;
  pln_attrs opsets;
} pln_file_opsets;
/* The version that a function's nodes had in their file; 0: no file. */
pln_status pln_source_opset(pln_file_opsets *known, const pln_graph *graph,
                            pln_symbol function, int64_t *out) PLN_CHECKED;
/* Copies the module with another version for the model and all functions. */
pln_status pln_model_with_opset(const pln_module *module, int64_t opset,
                                pln_module **out) PLN_CHECKED;

/* convert_opset.c: converts what the module's opset does not have. *out is the
 * module itself, retained, if there is nothing to convert. */
pln_status pln_model_convert_for_export(const pln_module *module,
                                        pln_module **out) PLN_CHECKED;

#endif
