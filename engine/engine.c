/* engine.c: puts an engine together from the parts of its layers.
 *
 * What always holds: parts are made from left to right (base, ir, op, pass,
 * transform, lower) and freed in the opposite order; a part that is not there
 * yet is passed over. */

#include "arith/arith.h"
#include "base/base.h"
#include "ir/intern_tables.h"
#include "ir/op_attr.h"
#include "ir/provenance/rule_application.h"
#include "lower/lower.h"
#include "op/kernel/matmul/blas.h"
#include "op/op.h"
#include "pass/pass.h"
#include "rule/dataflow/pattern_table.h"
#include "rule/library.h"
#include "transform/transform.h"

static pln_status make_parts(pln_engine *engine) {
  PLN_TRY(pln_dims_new(engine));
  PLN_TRY(pln_types_new(engine));
  PLN_TRY(pln_attrs_new(engine));
  PLN_TRY(pln_applications_new(engine));
  PLN_TRY(pln_op_install(engine));
  PLN_TRY(pln_blas_new(engine));
  PLN_TRY(pln_passes_new(engine));
  PLN_TRY(pln_transform_install(engine));
  PLN_TRY(pln_lower_install(engine));
  pln_config_seal(engine);
  return PLN_OK;
}

pln_engine *pln_engine_new(pln_alloc_fn alloc, void *ud) {
  pln_engine *engine = pln_base_new(alloc, ud);
  if (!engine)
    return NULL;
  if (make_parts(engine) == PLN_OK)
    return engine;
  pln_engine_free(engine);
  return NULL;
}

void pln_engine_free(pln_engine *engine) {
  if (!engine)
    return;
  pln_passes_free(engine);
  pln_pattern_tables_free(engine);
  pln_library_free(engine);
  pln_arith_rules_free(engine, engine->arith_rules);
  pln_blas_free(engine);
  pln_relay_free(engine);
  pln_op_attrs_free(engine);
  pln_ops_free(engine);
  pln_applications_free(engine);
  pln_attrs_free(engine);
  pln_types_free(engine);
  pln_dims_free(engine);
  pln_base_free(engine);
}

const char *pln_version(void) {
  return PERILUNE_VERSION;
}
