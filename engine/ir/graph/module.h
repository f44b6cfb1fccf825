/* module.h: the struct of modules. */

#ifndef PLN_IR_GRAPH_MODULE_H
#define PLN_IR_GRAPH_MODULE_H

#include "ir/graph/graph.h"

typedef struct pln_module_row {
  pln_symbol name;
  pln_graph *function; /* retained */
} pln_module_row;

/* A module has its own rows, or is an overlay: another module with one function
 * replaced, as hooks see it around a pass on one of many functions.
 * pln_module_name_at and pln_module_function_at handle both. */

struct pln_module {
  pln_engine *engine;
  uint32_t refs;
  uint32_t count, capacity;
  uint32_t n_prim_funcs; /* functions of the loop level among them */
  uint64_t n_nodes;      /* of all functions */
  pln_module_row *own;   /* NULL in an overlay */
  pln_idmap *by_name;    /* symbol -> index + 1; shared with the base */
  pln_module *base;      /* overlay: retained, has its own rows; else NULL */
  uint32_t index;        /* overlay: index of the replaced function */
  pln_graph *function;   /* retained */
  struct pln_definitions *types; /* shared by copies; NULL: none */
  pln_attrs attrs;
  /* The file it was imported from, retained, or NULL. Export takes from it what
   * the IR does not represent. */
  pln_file *source;
  /* Symbolic dims that were a tir.Var in the metadata of its text, and are
   * printed that way again: name -> dtype. */
  pln_attrs tir_vars;
  pln_symbol directory; /* directory of that file, to which external data is
                         * confined */
};

/* A mutable copy, for a loader to fill before anybody else sees it. */
pln_status pln_module_copy(const pln_module *module,
                           pln_module **out) PLN_CHECKED;
/* A copy with one function replaced by another of the same signature, in
 * constant time and memory. */
pln_status pln_module_overlay(const pln_module *module, uint32_t index,
                              const pln_graph *function,
                              pln_module **out) PLN_CHECKED;
/* A copy without the marked functions; one mark per function. */
pln_status pln_module_drop(const pln_module *module, const bool *dropped,
                           pln_module **out) PLN_CHECKED;
pln_status pln_module_set(pln_module *module, pln_symbol name,
                          const pln_graph *function) PLN_CHECKED;
/* Replaces the function of a row of the module's own; takes `function` over. */
void pln_module_put(pln_module *module, uint32_t index, pln_graph *function);
void pln_module_set_source(pln_module *module, pln_file *source,
                           pln_symbol directory);
/* True if the module was read from an ONNX model or from the text of one,
 * according to its attributes. It may contain calls that inference refuses. */
bool pln_module_was_onnx(const pln_module *module);
/* The version of ai.onnx that the module imports; 0: none. */
int64_t pln_module_opset(const pln_module *module);

/* Verifies what a pass made of the module `before`. PrimFuncs may have free
 * variables if one of `before` has: TVM's passes take such functions, and only
 * pl.verify reports them. */
pln_status pln_module_verify_result(const pln_module *module,
                                    const pln_module *before) PLN_CHECKED;
/* Verifies one function of a module, by itself and against the module. */
pln_status pln_module_verify_function(const pln_module *module,
                                      uint32_t index) PLN_CHECKED;
/* Checks that each GlobalVar of a function names one of the module. */
pln_status pln_module_check_names(const pln_module *module,
                                  const pln_graph *function) PLN_CHECKED;
/* The part of the verifier that checks GlobalVars: each names a function of the
 * module, has its type, and at least its effects. */
pln_status pln_module_check_globals(const pln_module *module,
                                    uint32_t index) PLN_CHECKED;

/* Adds a definition of a new name to a module that is not shared yet. */
pln_status pln_module_set_type(pln_module *module,
                               const pln_type_def *data) PLN_CHECKED;

/* infer/reinfer_callers.c. The type of a function's root. */
pln_type pln_signature(const pln_graph *function);
/* Infers the callers of functions whose signature or call effect differs from
 * `before`, transitively. `replaced` marks the new functions on entry, and also
 * the re-inferred ones on return. PLN_ERR_TYPE when a caller no longer
 * matches. */
pln_status pln_module_reinfer_callers(pln_module *module,
                                      const pln_module *before,
                                      bool *replaced) PLN_CHECKED;

/* graph/adt.c: the reference-counted definitions of a module. */
struct pln_definitions *
pln_definitions_retain(struct pln_definitions *definitions);
void pln_definitions_release(struct pln_definitions *definitions);
uint64_t pln_definitions_bytes(const struct pln_definitions *definitions);

#endif
