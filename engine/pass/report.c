/* report.c: what the last outermost application of a pass did. Written by the
 * executor, a row a leaf pass that ran, in order of completion. */

#include "pass/pass.h"

pln_status pln_report_add(pln_engine *engine, const pln_report_row *row) {
  struct pln_registry *r = engine->passes;
  PLN_TRY(pln_mem_grow(engine, (void **)&r->rows, &r->cap_rows,
                       (size_t)r->n_rows + 1, sizeof *r->rows));
  r->rows[r->n_rows++] = *row;
  return PLN_OK;
}

void pln_report_clear(pln_engine *engine) {
  engine->passes->n_rows = 0;
}

uint32_t pln_report_count(const pln_engine *engine) {
  return engine->passes->n_rows;
}

const pln_report_row *pln_report_get(const pln_engine *engine, uint32_t index) {
  const struct pln_registry *r = engine->passes;
  return index < r->n_rows ? &r->rows[index] : NULL;
}
