/* report.c: the report on the last outermost application of a pass. The
 * executor adds one row per run of a primitive pass, in order of completion. */

#include "pass/pass.h"

pln_status pln_report_add(pln_engine *engine, const pln_report_row *row) {
  struct pln_registry *r = engine->passes;
  PLN_TRY(pln_mem_grow(engine, (void **)&r->rows, &r->cap_rows,
                       (size_t)r->n_rows + 1, sizeof *r->rows));
  r->rows[r->n_rows++] = *row;
  return PLN_OK;
}

/* ------------------------------------------------------------------- notes */

static bool has_equal(const pln_engine *e, const pln_report_row *row) {
  return pln_attrs_find(e, row->counts, PLN_EQUAL_COPY) != NULL;
}

static bool noted_before(const pln_engine *e, uint32_t index) {
  const pln_report_row *rows = e->passes->rows;
  for (uint32_t i = 0; i < index; i++)
    if (rows[i].pass == rows[index].pass && has_equal(e, &rows[i]))
      return true;
  return false;
}

static void note_equal_copy(pln_engine *e, const pln_report_row *row) {
  if (row->equal)
    pln_diag_note(e, NULL,
                  "pass '%s', function @%s: it gives an equal copy; the "
                  "function stays as it was",
                  row->pass, row->equal);
  else
    pln_diag_note(e, NULL,
                  "pass '%s': it gives an equal copy; the module stays as it "
                  "was",
                  row->pass);
}

void pln_report_note_copies(pln_engine *engine) {
  const struct pln_registry *r = engine->passes;
  for (uint32_t i = 0; i < r->n_rows; i++)
    if (has_equal(engine, &r->rows[i]) && !noted_before(engine, i))
      note_equal_copy(engine, &r->rows[i]);
}

void pln_report_clear(pln_engine *engine) {
  engine->passes->n_rows = 0;
}

uint32_t pln_report_count(const pln_engine *engine) {
  return engine->passes->n_rows;
}

const pln_report_row *pln_report_at(const pln_engine *engine, uint32_t index) {
  const struct pln_registry *r = engine->passes;
  return index < r->n_rows ? &r->rows[index] : NULL;
}
