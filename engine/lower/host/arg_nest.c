/* arg_nest.c: lists of statements that stand around a body (arg_binder.h).
 * Called by tir.MakePackedAPI and the binder of arguments. */

#include "lower/host/arg_binder.h"

void pln_nest_add(pln_emit *e, pln_nest *nest, pln_nest_item item) {
  if (e->status == PLN_OK)
    e->status = pln_mem_grow(e->b->engine, (void **)&nest->items, &nest->cap,
                             (size_t)nest->n + 1, sizeof *nest->items);
  if (e->status == PLN_OK)
    nest->items[nest->n++] = item;
}

static pln_ref wrap(pln_emit *e, const pln_nest_item *item, pln_ref body) {
  pln_ref both[2] = {item->a, body};
  switch (item->kind) {
  case PLN_LET_STMT: return pln_emit_let(e, item->a, item->b, body);
  case PLN_ATTR_STMT:
    return pln_emit_attr(e, item->a, item->key, item->value, body);
  case PLN_ASSERT_STMT: return pln_emit_assert(e, item->a, item->b, body);
  case PLN_DECL_BUFFER: return pln_emit_decl_buffer(e, item->a, body);
  default: return pln_emit_seq(e, 2, both);
  }
}

pln_ref pln_nest_wrap(pln_emit *e, const pln_nest *nest, pln_ref body) {
  for (uint32_t i = nest->n; i-- > 0;)
    body = wrap(e, &nest->items[i], body);
  return body;
}

void pln_nest_free(pln_engine *engine, pln_nest *nest) {
  pln_mem_free(engine, nest->items, nest->cap * sizeof *nest->items);
}
