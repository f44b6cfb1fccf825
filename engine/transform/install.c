/* install.c: registers the built-in passes. Called once, by engine.c. */

#include "transform/transform.h"

static const pln_option fold_options[] = {
    PLN_FOLD_OPTION,
};

static const pln_option batch_norm_options[] = {
    PLN_FOLD_OPTION,
    {.name = "halves",
     .kind = PLN_ATTR_INT,
     .is_bool = true,
     .fallback = "false",
     .doc = "Also into weights of 16 bits, which are rounded once more."},
};

enum {
  N_fold_options = PLN_COUNT(fold_options),
  N_batch_norm_options = PLN_COUNT(batch_norm_options),
  N_no_options = 0
};
#define no_options NULL

static const pln_pass_spec specs[] = {
#define PASS(pass, KIND, level, rows, body, text) \
  {.name = #pass,                                 \
   .kind = PLN_PASS_##KIND,                       \
   .opt_level = level,                            \
   .traceable = true,                             \
   .doc = text,                                   \
   .n_options = N_##rows,                         \
   .options = rows,                               \
   .run = body},
#include "transform/passes.def"
};

pln_status pln_transform_install(pln_engine *engine) {
  for (size_t i = 0; i < PLN_COUNT(specs); i++)
    PLN_TRY(pln_pass_register_built_in(engine, &specs[i]));
  return PLN_OK;
}
