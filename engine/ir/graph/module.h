/* module.h: what modules are made of. */

#ifndef PLN_IR_GRAPH_MODULE_H
#define PLN_IR_GRAPH_MODULE_H

#include "ir/graph/graph.h"

typedef struct pln_module_row {
  pln_symbol name;
  pln_graph *function; /* retained */
} pln_module_row;

/* A module has rows of its own, or is another one but for one function: what a
 * hook sees of a pass over one of many functions. pln_module_name_at and
 * pln_module_function_at know both. */

struct pln_module {
  pln_engine *engine;
  uint32_t refs;
  uint32_t count, capacity;
  pln_module_row *own; /* NULL when there is a base */
  pln_idmap *by_name;  /* symbol -> index + 1; the base's */
  pln_module *base;    /* retained, with rows of its own; or NULL */
  uint32_t index;      /* of the function that differs from the base's */
  pln_graph *function; /* retained */
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
/* The module with another function in the place of one, which has the same
 * signature: in constant time and memory, however many functions there are. */
pln_status pln_module_overlay(const pln_module *module, uint32_t index,
                              const pln_graph *function,
                              pln_module **out) PLN_CHECKED;
/* A copy without the functions that are marked, one mark a function. */
pln_status pln_module_drop(const pln_module *module, const bool *dropped,
                           pln_module **out) PLN_CHECKED;
pln_status pln_module_set(pln_module *module, pln_symbol name,
                          const pln_graph *function) PLN_CHECKED;
void pln_module_set_source(pln_module *module, pln_file *source,
                           pln_symbol directory);
/* The module was read from an ONNX model, or from the text of one: its
 * attributes say so. Such a module may hold calls that inference refuses. */
bool pln_module_was_onnx(const pln_module *module);

/* The verifier, on one function of a module: by itself, and against the
 * module. */
pln_status pln_module_verify_function(const pln_module *module,
                                      uint32_t index) PLN_CHECKED;
/* Whether each GlobalVar of a function names one of the module. */
pln_status pln_module_check_names(const pln_module *module,
                                  const pln_graph *function) PLN_CHECKED;
/* Its part that looks at GlobalVars: each names a function of the module, has
 * its type, and no less effects. */
pln_status pln_module_check_globals(const pln_module *module,
                                    uint32_t index) PLN_CHECKED;

/* Adds a definition of a new name to a module that nobody else has seen. */
pln_status pln_module_set_type(pln_module *module,
                               const pln_type_def *data) PLN_CHECKED;

/* type/retype.c. The type of a function's root. */
pln_type pln_signature(const pln_graph *function);
/* Types those again that call functions whose signature or latent effect is not
 * what it was `before`, as far as these change. `replaced` marks the functions
 * that are new, and in the end those that were typed again as well.
 * PLN_ERR_TYPE when a caller does not fit any more. */
pln_status pln_module_reinfer_callers(pln_module *module,
                                      const pln_module *before,
                                      bool *replaced) PLN_CHECKED;

/* graph/adt.c: the definitions of a module, counted like a module. */
struct pln_definitions *
pln_definitions_retain(struct pln_definitions *definitions);
void pln_definitions_release(struct pln_definitions *definitions);
uint64_t pln_definitions_bytes(const struct pln_definitions *definitions);

#endif
