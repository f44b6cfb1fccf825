/* module.h: what modules are made of. */

#ifndef PLN_MODULE_H
#define PLN_MODULE_H

#include "ir/graph.h"

typedef struct pln_module_row {
  pln_symbol name;
  pln_graph *function; /* retained */
} pln_module_row;

struct pln_module {
  pln_engine *engine;
  uint32_t refs;
  uint32_t count, capacity;
  pln_module_row *rows;
  pln_idmap *by_name;            /* symbol -> index + 1 */
  struct pln_definitions *types; /* shared by copies; NULL: none */
  pln_attrs attrs;
  /* The file it was imported from, retained, or NULL: an exporter takes from
   * it what the IR does not hold. */
  pln_file *source;
  /* Symbolic dims that its text had as a tir.Var of the metadata, and will have
   * again: name -> dtype. */
  pln_attrs tir_vars;
  pln_symbol directory; /* of that file: external data is confined to it */
};

/* A changed copy that a loader fills before anybody else sees it. */
pln_status pln_module_copy(const pln_module *module,
                           pln_module **out) PLN_CHECKED;
/* A copy without the functions that are marked, one mark a function. */
pln_status pln_module_drop(const pln_module *module, const bool *dropped,
                           pln_module **out) PLN_CHECKED;
pln_status pln_module_set(pln_module *module, pln_symbol name,
                          const pln_graph *function) PLN_CHECKED;
void pln_module_set_source(pln_module *module, pln_file *source,
                           pln_symbol directory);
/* What an ONNX model declares stands even against inference, and so it does in
 * the text of one: its attributes tell. */
bool pln_module_was_onnx(const pln_module *module);

/* The verifier, on one function of a module: by itself, and against the
 * module. */
pln_status pln_module_verify_function(const pln_module *module,
                                      uint32_t index) PLN_CHECKED;
/* Its part that looks at GlobalVars: each names a function of the module, has
 * its type, and no less effects. */
pln_status pln_module_check_globals(const pln_module *module,
                                    uint32_t index) PLN_CHECKED;

/* Adds a definition of a new name to a module that nobody else has seen. */
pln_status pln_module_set_type(pln_module *module,
                               const pln_type_data *data) PLN_CHECKED;

/* type/retype.c. The type of a function's root. */
pln_type pln_signature(const pln_graph *function);
/* Types those again that call functions whose signature or latent effect is not
 * what it was `before`, as far as these change. `replaced` marks the functions
 * that are new, and in the end those that were typed again as well.
 * PLN_ERR_TYPE when a caller does not fit any more. */
pln_status pln_module_retype(pln_module *module, const pln_module *before,
                             bool *replaced) PLN_CHECKED;

/* type/data.c: the definitions of a module, counted like a module. */
struct pln_definitions *
pln_definitions_retain(struct pln_definitions *definitions);
void pln_definitions_release(struct pln_definitions *definitions);

#endif
