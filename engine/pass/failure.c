/* failure.c: records the data of a reproducer: the pass that failed last, its
 * input module, and the context.
 *
 * Recorded by pipeline/position.c, read by the Lua binding, which writes the
 * file. Invariant: nothing is recorded unless the context's config names a
 * file. */

#include "pass/pass.h"

static const pln_option keys[] = {
    {.name = "reproducer",
     .kind = PLN_ATTR_STRING,
     .fallback = "",
     .doc = "The file for a reproducer when passes fail; '': none."},
    {.name = "reproducer.from",
     .kind = PLN_ATTR_STRING,
     .fallback = "pass",
     .doc = "Where a reproducer begins: at the pass that failed, or with the "
            "input of the whole pipeline.",
     .choices = "pass|input"},
    {.name = "reproducer.embed",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Whether a reproducer holds weights over 1 MiB itself."},
};

pln_status pln_failure_install(pln_engine *engine) {
  for (size_t i = 0; i < PLN_COUNT(keys); i++)
    PLN_TRY(pln_config_register(engine, &keys[i]));
  return PLN_OK;
}

const pln_failure *pln_failure_last(const pln_engine *engine) {
  const pln_failure *failure = &engine->passes->failure;
  return failure->pass ? failure : NULL;
}

void pln_failure_clear(pln_engine *engine) {
  pln_failure failure = engine->passes->failure;
  engine->passes->failure = (pln_failure){NULL, NULL, NULL};
  pln_pass_release(failure.pass);
  pln_module_release(failure.module);
  pln_context_release(failure.context);
}

/* If memory runs out nothing is recorded, and the original failure stands. */
void pln_failure_record(const pln_execution *x, const pln_pass *pass,
                        const pln_pass_target *before) {
  pln_attrs config = x->context->config;
  size_t mark = pln_diag_count(x->engine);
  pln_module *module;
  if (!config || !pln_attrs_string(x->engine, config, "reproducer", "").size)
    return;
  pln_failure_clear(x->engine);
  if (pln_pass_target_module(before, &module) != PLN_OK) {
    pln_diag_drop(x->engine, mark);
    return;
  }
  x->engine->passes->failure = (pln_failure){pln_pass_retain(pass), module,
                                             pln_context_retain(x->context)};
}
