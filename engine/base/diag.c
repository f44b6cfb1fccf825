/* diag.c: the table of diagnostics, kept in the engine until cleared.
 *
 * Called by everything that can fail. Invariants: reporting never fails; when
 * out of memory, a constant row is reported instead. At most ROWS diagnostics
 * are kept. When all rows are used, one row says that more were dropped, and
 * the newest error overwrites the last row, so that every failure has an
 * error. */

#include <stdio.h>

#include "base/base.h"

enum { ROWS = PLN_MOST_DIAGS, SLOTS = ROWS + 2 };

typedef struct stored_diag {
  pln_diag diag;
  size_t block; /* bytes of this allocation */
  char text[];  /* message, source and line, each terminated */
} stored_diag;

struct pln_diags {
  size_t count;
  pln_place place;
  const pln_diag *rows[SLOTS]; /* stored rows, and the constant ones below */
};

static const pln_diag nomem_error = {
    PLN_ERROR, PLN_ERR_NOMEM, "out of memory", {0}};
static const pln_diag nomem_warning = {
    PLN_WARNING, PLN_ERR_NOMEM, "out of memory", {0}};
static const pln_diag dropped = {PLN_NOTE,
                                 PLN_ERR_LIMIT,
                                 "more diagnostics were reported than are kept",
                                 {0}};

static bool is_constant(const pln_diag *diag) {
  return diag == &nomem_error || diag == &nomem_warning || diag == &dropped;
}

pln_status pln_diags_new(pln_engine *engine) {
  engine->diags = pln_mem_zeroed(engine, sizeof *engine->diags);
  return engine->diags ? PLN_OK : PLN_ERR_NOMEM;
}

void pln_diags_free(pln_engine *engine) {
  if (!engine->diags)
    return;
  pln_diag_clear(engine);
  pln_mem_free(engine, engine->diags, sizeof *engine->diags);
  engine->diags = NULL;
}

static void free_row(pln_engine *engine, const pln_diag *diag) {
  if (is_constant(diag))
    return;
  stored_diag *s = (stored_diag *)diag;
  pln_mem_free(engine, s, s->block);
}

void pln_diag_drop(pln_engine *engine, size_t mark) {
  struct pln_diags *d = engine->diags;
  /* Once full, the last row is reused for every new error. */
  if (d->count == SLOTS && mark >= SLOTS)
    mark = SLOTS - 1;
  while (d->count > mark)
    free_row(engine, d->rows[--d->count]);
}

void pln_diag_clear(pln_engine *engine) {
  pln_diag_drop(engine, 0);
}

size_t pln_diag_count(const pln_engine *engine) {
  return engine->diags->count;
}

const pln_diag *pln_diag_at(const pln_engine *engine, size_t index) {
  return index < engine->diags->count ? engine->diags->rows[index] : NULL;
}

pln_place pln_diag_place(pln_engine *engine, pln_place place) {
  pln_place former = engine->diags->place;
  engine->diags->place = place;
  return former;
}

static void demote(const pln_diag **row) {
  if ((*row)->severity != PLN_ERROR)
    return;
  if (is_constant(*row))
    *row = &nomem_warning;
  else
    ((stored_diag *)*row)->diag.severity = PLN_WARNING;
}

bool pln_diag_ran_out(const pln_engine *engine, size_t mark) {
  const struct pln_diags *d = engine->diags;
  for (size_t i = mark; i < d->count; i++)
    if (d->rows[i]->code == PLN_ERR_NOMEM)
      return true;
  return false;
}

void pln_diag_demote(pln_engine *engine, size_t mark) {
  struct pln_diags *d = engine->diags;
  if (d->count == SLOTS && mark >= SLOTS)
    mark = SLOTS - 1;
  for (size_t i = mark; i < d->count; i++)
    demote(&d->rows[i]);
}

/* Takes the row and stores it. When all rows are used, an error goes to the
 * last row and anything else is dropped. */
static void store_diag(pln_engine *engine, const pln_diag *diag) {
  struct pln_diags *d = engine->diags;
  if (d->count == ROWS)
    d->rows[d->count++] = &dropped;
  if (d->count > ROWS && diag->severity != PLN_ERROR) {
    free_row(engine, diag);
    return;
  }
  if (d->count == SLOTS)
    free_row(engine, d->rows[--d->count]);
  d->rows[d->count++] = diag;
}

void pln_diag_adopt(pln_engine *parent, pln_engine *child, size_t begin,
                    size_t end) {
  struct pln_diags *d = child->diags;
  for (size_t i = begin; i < end && i < d->count; i++) {
    const pln_diag *row = d->rows[i];
    if (!is_constant(row))
      pln_mem_move_account(parent, child, ((const stored_diag *)row)->block);
    store_diag(parent, row);
    d->rows[i] = &dropped;
  }
}

pln_status pln_nomem(pln_engine *engine) {
  store_diag(engine, &nomem_error);
  return PLN_ERR_NOMEM;
}

/* Copies a terminated text to *at and advances *at behind it. NULL stays
 * NULL. */
static const char *copy_text(char **at, const char *text) {
  if (!text)
    return NULL;
  size_t size = strlen(text) + 1;
  char *copy = memcpy(*at, text, size);
  *at += size;
  return copy;
}

static size_t text_size(const char *text) {
  return text ? strlen(text) + 1 : 0;
}

/* Writes "PLACE: " into `text`. Returns its length; 0 without a location. */
static size_t write_place(const pln_place *place, char *text, size_t size) {
  size_t length = place->fn ? place->fn(place->ud, text, size) : 0;
  if (length && length + 2 < size)
    memcpy(text + length, ": ", 3);
  return length ? length + 2 : 0;
}

/* Allocates a row with room for a message of `length` bytes; NULL when out of
 * memory. */
static stored_diag *new_row(pln_engine *engine, const pln_span *span,
                            size_t length) {
  size_t size = sizeof(stored_diag) + length + 1 + text_size(span->source) +
                text_size(span->line);
  stored_diag *s = pln_mem_new(engine, size);
  if (!s)
    return NULL;
  char *at = s->text + length + 1;
  s->block = size;
  s->diag = (pln_diag){.message = s->text, .span = *span};
  s->diag.span.source = copy_text(&at, span->source);
  s->diag.span.line = copy_text(&at, span->line);
  return s;
}

static void report_diag(pln_engine *engine, pln_severity severity,
                        pln_status code, const pln_span *span,
                        const char *format, va_list list) {
  static const pln_span nowhere = {0};
  const pln_place place =
      severity == PLN_NOTE ? (pln_place){NULL, NULL} : engine->diags->place;
  va_list again;
  va_copy(again, list);
  int length = vsnprintf(NULL, 0, format, list);
  size_t text = length < 0 ? 0 : (size_t)length;
  size_t prefix = write_place(&place, NULL, 0);
  stored_diag *s = new_row(engine, span ? span : &nowhere, prefix + text);
  if (s) {
    s->diag.severity = severity;
    s->diag.code = code;
    write_place(&place, s->text, prefix + 1);
    s->text[prefix] = 0;
    if (text)
      vsnprintf(s->text + prefix, text + 1, format, again);
    store_diag(engine, &s->diag);
  } else if (severity == PLN_ERROR) {
    store_diag(engine, &nomem_error);
  }
  va_end(again);
}

/* When out of memory the row stays unchanged. */
void pln_diag_extend(pln_engine *engine, const char *first,
                     const char *second) {
  struct pln_diags *d = engine->diags;
  size_t at = d->count;
  while (at > 0 && d->rows[at - 1]->severity == PLN_NOTE)
    at--;
  const pln_diag *row = at > 0 ? d->rows[at - 1] : NULL;
  if (!row || row->severity != PLN_ERROR || is_constant(row))
    return;
  size_t length = strlen(row->message);
  size_t all = length + strlen(first) + strlen(second);
  stored_diag *s = new_row(engine, &row->span, all);
  if (!s)
    return;
  s->diag.severity = row->severity;
  s->diag.code = row->code;
  memcpy(s->text, row->message, length);
  snprintf(s->text + length, all - length + 1, "%s%s", first, second);
  free_row(engine, row);
  d->rows[at - 1] = &s->diag;
}

pln_status pln_diag_error(pln_engine *engine, pln_status code,
                          const pln_span *span, const char *format, ...) {
  va_list list;
  va_start(list, format);
  report_diag(engine, PLN_ERROR, code, span, format, list);
  va_end(list);
  return code;
}

void pln_diag_warn(pln_engine *engine, const pln_span *span, const char *format,
                   ...) {
  va_list list;
  va_start(list, format);
  report_diag(engine, PLN_WARNING, PLN_OK, span, format, list);
  va_end(list);
}

void pln_diag_note(pln_engine *engine, const pln_span *span, const char *format,
                   ...) {
  va_list list;
  va_start(list, format);
  report_diag(engine, PLN_NOTE, PLN_OK, span, format, list);
  va_end(list);
}

/* A copy of the diagnostic with a location; NULL when out of memory. */
static stored_diag *placed_row(pln_engine *engine, const pln_diag *diag,
                               const pln_span *span) {
  size_t length = strlen(diag->message);
  stored_diag *s = new_row(engine, span, length);
  if (!s)
    return NULL;
  memcpy(s->text, diag->message, length + 1);
  s->diag.severity = diag->severity;
  s->diag.code = diag->code;
  return s;
}

pln_status pln_diag_move(pln_engine *engine, size_t index,
                         const pln_span *span) {
  const pln_diag **row = &engine->diags->rows[index];
  if (is_constant(*row))
    return PLN_OK;
  stored_diag *s = placed_row(engine, *row, span);
  if (!s)
    return pln_nomem(engine);
  free_row(engine, *row);
  *row = &s->diag;
  return PLN_OK;
}

pln_status pln_diag_locate(pln_engine *engine, size_t mark,
                           const pln_span *span) {
  struct pln_diags *d = engine->diags;
  if (d->count == SLOTS && mark >= SLOTS)
    mark = SLOTS - 1;
  for (size_t i = mark; i < d->count; i++)
    if (!d->rows[i]->span.source)
      PLN_TRY(pln_diag_move(engine, i, span));
  return PLN_OK;
}
