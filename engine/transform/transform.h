/* transform.h: the built-in passes (passes.def), and their installation. */

#ifndef PLN_TRANSFORM_TRANSFORM_H
#define PLN_TRANSFORM_TRANSFORM_H

#include "pass/pass.h"

/* Registers the passes of passes.def. Called once per engine. */
pln_status pln_transform_install(pln_engine *engine) PLN_CHECKED;
/* config_keys.c: the config keys of passes. */
pln_status pln_transform_install_keys(pln_engine *engine) PLN_CHECKED;

/* Transforms one function. *out is the new graph; `function` itself, retained,
 * or NULL if nothing changed. */
typedef pln_status (*pln_form_fn)(pln_pass_run *run, const pln_graph *function,
                                  pln_graph **out);
/* Body of a module pass that transforms each function independently. */
pln_status pln_run_on_functions(pln_pass_run *run,
                                pln_form_fn form) PLN_CHECKED;

/* The bodies of all passes in passes.def. */
#define PASS(name, kind, opt_level, required, options, run, doc) \
  pln_status run(pln_pass_run *pass_run) PLN_CHECKED;
#include "transform/passes.def"

#endif
