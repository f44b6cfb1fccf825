/* child_engine.c: makes a child engine over the parts of its parent, as
 * engine.c makes an engine.
 *
 * Called by parallel.c. Invariant: making a child only reads the parent, so
 * that the thread that will use the child can make it. A child's diagnostics
 * are its own. */

#include "ir/worker/child_engine.h"
#include "ir/intern_tables.h"
#include "ir/provenance/rule_application.h"
#include "op/kernel/matmul/blas.h"
#include "pass/parallel/parallel.h"
#include "rule/library.h"

static pln_status make_parts(pln_engine *child, const pln_context *context) {
  PLN_TRY(pln_borrowed_new(child));
  PLN_TRY(pln_dims_child(child));
  PLN_TRY(pln_types_child(child));
  PLN_TRY(pln_attrs_child(child));
  PLN_TRY(pln_applications_child(child));
  PLN_TRY(pln_ops_child(child));
  PLN_TRY(pln_relay_child(child));
  PLN_TRY(pln_blas_child(child));
  return pln_passes_child(child, context);
}

pln_engine *pln_child_new(pln_worker_group *family,
                          const pln_context *context) {
  pln_engine *child = pln_base_child(family);
  if (!child || make_parts(child, context) == PLN_OK)
    return child;
  pln_child_free(child);
  return NULL;
}

void pln_child_free(pln_engine *child) {
  if (!child)
    return;
  pln_pass_clones_release(child);
  pln_passes_free(child);
  pln_blas_free(child);
  pln_relay_free(child);
  pln_ops_free(child);
  pln_library_free(child);
  pln_applications_free(child);
  pln_attrs_free(child);
  pln_borrowed_free(child);
  pln_types_free(child);
  pln_dims_free(child);
  pln_base_free(child);
}
