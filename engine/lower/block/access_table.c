/* access_table.c: what the blocks of a function access, inner blocks first
 * (body_access.h).
 *
 * Called by complete_script.c and the software pipeline's access_regions.c,
 * which both give blocks their regions. */

#include "lower/block/body_access.h"

static pln_ref data_of(const pln_graph *g, pln_ref buffer) {
  return pln_operand(g, buffer, 0);
}

static void note_node(pln_access_table *t, pln_ref ref) {
  const pln_node *n = &t->g->nodes[ref];
  pln_ref buffer;
  switch ((pln_kind)n->kind) {
  case PLN_ALLOCATE: t->alloc_of[t->g->scopes[n->data].begin] = ref; return;
  case PLN_BUFFER_BIND: buffer = pln_operand(t->g, ref, 1); break;
  case PLN_ALLOC_BUFFER:
    buffer = pln_operand(t->g, ref, 0);
    t->alloc_of[data_of(t->g, buffer)] = ref;
    break;
  case PLN_MATCH_BUFFER:
    buffer = pln_operand(t->g, ref, 0);
    t->view_of[data_of(t->g, buffer)] = ref;
    break;
  default: return;
  }
  t->buffer_of[data_of(t->g, buffer)] = buffer;
}

pln_status pln_access_table_begin(const pln_graph *g, pln_access_table *t) {
  pln_engine *e = g->engine;
  size_t nodes = g->n_nodes;
  pln_scope_cursor at = {.graph = g};
  *t = (pln_access_table){.g = g};
  t->scope_of = pln_mem_new(e, nodes * sizeof *t->scope_of);
  t->alloc_of = pln_mem_new(e, nodes * sizeof *t->alloc_of);
  t->buffer_of = pln_mem_new(e, nodes * sizeof *t->buffer_of);
  t->view_of = pln_mem_new(e, nodes * sizeof *t->view_of);
  t->of = pln_mem_zeroed(e, nodes * sizeof *t->of);
  if (!t->scope_of || !t->alloc_of || !t->buffer_of || !t->view_of || !t->of)
    return pln_nomem(e);
  for (pln_ref ref = 0; ref < nodes; ref++) {
    t->scope_of[ref] = pln_scope_cursor_at(&at, ref);
    t->alloc_of[ref] = t->buffer_of[ref] = t->view_of[ref] = PLN_NONE;
  }
  for (pln_ref ref = 0; ref < nodes; ref++)
    note_node(t, ref);
  return pln_analyzer_new(e, &t->a);
}

void pln_access_table_end(pln_access_table *t) {
  pln_engine *e = t->g->engine;
  size_t nodes = t->g->n_nodes;
  if (t->a)
    pln_analyzer_free(t->a);
  for (uint32_t i = 0; i < t->n; i++)
    pln_body_accesses_free(e, &t->lists[i]);
  pln_mem_free(e, t->lists, t->cap * sizeof *t->lists);
  pln_mem_free(e, t->scope_of, nodes * sizeof *t->scope_of);
  pln_mem_free(e, t->alloc_of, nodes * sizeof *t->alloc_of);
  pln_mem_free(e, t->buffer_of, nodes * sizeof *t->buffer_of);
  pln_mem_free(e, t->view_of, nodes * sizeof *t->view_of);
  pln_mem_free(e, t->of, nodes * sizeof *t->of);
}

/* Memory that is allocated in the statements is not seen around them. */
static void drop_inside(const pln_access_table *t, pln_ref first, pln_ref end,
                        pln_body_accesses *list) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < list->n; i++) {
    pln_ref at = t->alloc_of[data_of(t->g, list->items[i].buffer)];
    if (at == PLN_NONE || at < first || at >= end)
      list->items[left++] = list->items[i];
  }
  list->n = left;
}

pln_status pln_access_table_add(pln_access_table *t, pln_ref node,
                                pln_scope scope, pln_ref first, pln_ref end) {
  PLN_TRY(pln_mem_grow(t->g->engine, (void **)&t->lists, &t->cap,
                       (size_t)t->n + 1, sizeof *t->lists));
  PLN_TRY(pln_body_accesses_find(t, scope, first, end, &t->lists[t->n]));
  drop_inside(t, first, end, &t->lists[t->n]);
  t->of[node] = ++t->n;
  return PLN_OK;
}
