/* selector.c: decides which passes the lists of a context select, by name or by
 * name and occurrence.
 *
 * Called by context.c. Invariant: a text that is a pass's own name selects that
 * pass, even if it ends in a colon and a number. */

#include "pass/pass.h"

static bool known(const pln_engine *engine, pln_symbol name) {
  return pln_idmap_get(engine->passes->seen, name) != 0 ||
         (engine->parent &&
          pln_idmap_get(engine->parent->passes->seen, name) != 0);
}

/* Returns the offset of a trailing ":2" and its number; else the end of the
 * text. */
static size_t split(pln_slice text, uint32_t *nth) {
  size_t at = text.size;
  uint64_t value = 0, place = 1;
  *nth = 0;
  while (at > 0 && text.data[at - 1] >= '0' && text.data[at - 1] <= '9' &&
         place <= 1000000000) {
    value += place * (uint64_t)(text.data[--at] - '0');
    place *= 10;
  }
  if (at < 2 || at == text.size || text.data[at - 1] != ':' || value == 0 ||
      value > UINT32_MAX)
    return text.size;
  *nth = (uint32_t)value;
  return at - 1;
}

static pln_status read_text(pln_engine *engine, const char *list,
                            const char *text, pln_selector *out) {
  pln_slice whole = pln_text(text);
  *out = (pln_selector){0};
  PLN_TRY(pln_symbol_intern(engine, whole, &out->text));
  out->name = out->text;
  if (known(engine, out->name))
    return PLN_OK;
  whole.size = split(whole, &out->nth);
  PLN_TRY(pln_symbol_intern(engine, whole, &out->name));
  if (known(engine, out->name))
    return PLN_OK;
  return pln_pass_unknown(engine, NULL, list,
                          pln_symbol_text(engine, out->name).data);
}

pln_status pln_selection_make(pln_engine *engine, const char *list, uint32_t n,
                              const char *const *texts, pln_selection *out) {
  if (!n)
    return PLN_OK;
  out->items = pln_mem_zeroed(engine, n * sizeof *out->items);
  if (!out->items)
    return pln_nomem(engine);
  out->n = n;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(read_text(engine, list, texts[i], &out->items[i]));
  return PLN_OK;
}

pln_status pln_selection_copy(pln_engine *engine, const pln_selection *from,
                              pln_selection *out) {
  size_t size = from->n * sizeof *from->items;
  out->items = pln_mem_new(engine, size);
  if (size && !out->items)
    return pln_nomem(engine);
  if (size)
    memcpy(out->items, from->items, size);
  out->n = from->n;
  return PLN_OK;
}

void pln_selection_free(pln_engine *engine, pln_selection *selection) {
  pln_mem_free(engine, selection->items,
               selection->n * sizeof *selection->items);
}

bool pln_selection_has(const pln_selection *selection, pln_symbol name,
                       uint32_t nth) {
  for (uint32_t i = 0; i < selection->n; i++) {
    const pln_selector *s = &selection->items[i];
    if (s->name == name && (s->nth == 0 || s->nth == nth))
      return true;
  }
  return false;
}

bool pln_selection_counts(const pln_selection *selection) {
  for (uint32_t i = 0; i < selection->n; i++)
    if (selection->items[i].nth)
      return true;
  return false;
}
