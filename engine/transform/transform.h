/* transform.h: the built-in passes (passes.def), and their installation. */

#ifndef PLN_TRANSFORM_H
#define PLN_TRANSFORM_H

#include "pass/pass.h"

/* Registers the rows of passes.def, once an engine. */
pln_status pln_transform_install(pln_engine *engine) PLN_CHECKED;

/* The bodies of all rows. */
#define PASS(name, kind, opt_level, options, run, doc) \
  pln_status run(pln_pass_run *pass_run) PLN_CHECKED;
#include "transform/passes.def"

#endif
