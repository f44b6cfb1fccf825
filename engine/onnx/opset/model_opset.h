/* model_opset.h: which opset of ai.onnx a model and its functions have, in the
 * module and in the file that they came from. */

#ifndef PLN_ONNX_OPSET_MODEL_OPSET_H
#define PLN_ONNX_OPSET_MODEL_OPSET_H

#include "ir/graph/module.h"

/* Attribute of modules: a function's name -> its opset_import, of those that
 * have other versions than the model. */
#define PLN_FUNCTION_OPSETS "function_opset_import"

/* The versions that the model imports; its own make when it says nothing. */
pln_status pln_model_opsets(const pln_module *module,
                            pln_attrs *out) PLN_CHECKED;
/* Those of a function: its own, else the model's. */
pln_status pln_function_opsets(const pln_module *module, pln_symbol function,
                               pln_attrs *out) PLN_CHECKED;
/* The version of ai.onnx that a function of the module is written in. */
int64_t pln_model_opset(const pln_module *module, pln_symbol function);
/* Functions of the module have other versions than the model. */
bool pln_model_is_mixed(const pln_module *module);
/* The opsets of the model file that was asked for last, which most functions of
 * a module share. Begins as zeros. */
typedef struct pln_file_opsets {
  const pln_file *file;
  pln_attrs opsets;
} pln_file_opsets;
/* The version that a function's nodes had in their file; 0: in none. */
pln_status pln_source_opset(pln_file_opsets *known, const pln_graph *graph,
                            pln_symbol function, int64_t *out) PLN_CHECKED;
/* A copy that says another version, for all of its functions. */
pln_status pln_model_with_opset(const pln_module *module, int64_t opset,
                                pln_module **out) PLN_CHECKED;

/* convert_opset.c: the module with what its opset does not have said otherwise;
 * itself, retained, when there is nothing of the kind. */
pln_status pln_model_convert_for_export(const pln_module *module,
                                        pln_module **out) PLN_CHECKED;

#endif
