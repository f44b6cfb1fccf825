/* let_list.c: a list of lets around a value that is not built yet. Called by
 * Gradient and FirstOrderGradient.
 *
 * Several lists are one array: a nested list starts where it is opened and is
 * removed when it is wrapped. */

#include "transform/gradient/let_list.h"

pln_status pln_let_list_bind(pln_let_list *list, pln_ref var, pln_ref value) {
  PLN_TRY(pln_mem_grow(list->b->engine, (void **)&list->pairs, &list->capacity,
                       (size_t)list->n + 1, sizeof *list->pairs));
  list->pairs[list->n++] = (pln_let_pair){var, value};
  return PLN_OK;
}

pln_status pln_let_list_push(pln_let_list *list, pln_ref value, pln_ref *out) {
  pln_builder *b = list->b;
  pln_symbol x;
  PLN_TRY(pln_symbol_intern(b->engine, pln_text("x"), &x));
  PLN_TRY(pln_build_var(b, x, b->graph->nodes[value].type, 0, out));
  return pln_let_list_bind(list, *out, value);
}

pln_status pln_let_list_wrap(pln_let_list *list, uint32_t first, pln_ref body,
                             pln_ref *out) {
  *out = body;
  while (list->n > first) {
    pln_let_pair p = list->pairs[--list->n];
    PLN_TRY(pln_build_floating_let(list->b, p.var, p.value, *out, out));
  }
  return PLN_OK;
}

void pln_let_list_free(pln_let_list *list) {
  if (list->b)
    pln_mem_free(list->b->engine, list->pairs,
                 list->capacity * sizeof *list->pairs);
}
