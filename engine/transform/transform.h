/* transform.h: the built-in passes (passes.def), and their installation. */

#ifndef PLN_TRANSFORM_TRANSFORM_H
#define PLN_TRANSFORM_TRANSFORM_H

#include "pass/pass.h"

/* Registers the rows of passes.def, once an engine. */
pln_status pln_transform_install(pln_engine *engine) PLN_CHECKED;
/* config_keys.c: the config keys of passes. */
pln_status pln_transform_install_keys(pln_engine *engine) PLN_CHECKED;

/* `node` of the new graph was made in place of one of that type: it gets what
 * both types say. A variable's type, which is a signature's, and one that
 * contradicts stay. */
pln_status pln_keep_type(pln_rewrite *rw, pln_ref node,
                         pln_type type) PLN_CHECKED;
/* The same of a node that was there before, when its rank is not known. */
pln_status pln_keep_rank(pln_rewrite *rw, pln_ref node,
                         pln_type type) PLN_CHECKED;

/* What becomes of one function; `function` itself, retained, or NULL when it
 * stays as it is. */
typedef pln_status (*pln_form_fn)(pln_pass_run *run, const pln_graph *function,
                                  pln_graph **out);
/* Of a module pass: forms each function by itself. */
pln_status pln_run_on_functions(pln_pass_run *run,
                                pln_form_fn form) PLN_CHECKED;

/* The bodies of all rows. */
#define PASS(name, kind, opt_level, options, run, doc) \
  pln_status run(pln_pass_run *pass_run) PLN_CHECKED;
#include "transform/passes.def"

#endif
