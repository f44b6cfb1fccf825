/* variables.c: where a function keeps its variables, and what it captures.
 *
 * Called once per function of the module, and at each Function that is
 * evaluated. A frame has a slot for each variable that is bound in the function
 * itself, branches included, and one for each variable that it uses of the
 * functions around it. Linear in the graph and the captures. */

#include "ir/type/substitute.h"
#include "ir/type/type.h"
#include "transform/partial_eval/partial_evaluate.h"

/* ------------------------------------------------------------------ sources */

static uint64_t capture_key(pln_ref function, pln_ref var) {
  return (uint64_t)function << 32 | var;
}

/* By scope: the innermost function around it. */
static void find_functions(const pln_graph *g, pln_ref *around) {
  around[0] = PLN_NONE;
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    const pln_scope_row *row = &g->scopes[s];
    around[s] = g->nodes[row->owner].kind == PLN_FUNCTION ? row->owner
                                                          : around[row->parent];
  }
}

static pln_status add_capture(pe_source *s, pln_ref function, pln_ref var) {
  pln_engine *e = s->graph->engine;
  PLN_TRY(pln_mem_grow(e, (void **)&s->list, &s->cap_list,
                       (size_t)s->n_list + 1, sizeof *s->list));
  s->list[s->n_list] =
      (pe_capture){var, s->slot[function]++, s->captured[function]};
  s->captured[function] = s->n_list++;
  return pln_idmap_set(s->captures, capture_key(function, var), s->n_list);
}

/* A use captures the variable in each function between it and the binding. */
static pln_status note_use(pe_source *s, const pln_ref *around,
                           pln_ref function, pln_ref var) {
  const pln_graph *g = s->graph;
  if (g->nodes[var].kind != PLN_VAR)
    return PLN_OK;
  while (function != s->owner[var] && function != PLN_NONE) {
    if (pln_idmap_get(s->captures, capture_key(function, var)))
      return PLN_OK;
    PLN_TRY(add_capture(s, function, var));
    function = around[g->scopes[g->nodes[function].data].parent];
  }
  return PLN_OK;
}

static pln_status find_captures(pe_source *s, const pln_ref *around) {
  const pln_graph *g = s->graph;
  pln_scope_cursor at = {.graph = g};
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    pln_ref function = around[pln_scope_cursor_at(&at, ref)];
    for (uint32_t i = 0; i < g->nodes[ref].count; i++)
      PLN_TRY(note_use(s, around, function, pln_operand(g, ref, i)));
  }
  for (pln_scope k = 1; k < g->n_scopes; k++)
    PLN_TRY(note_use(s, around, around[k], g->scopes[k].result));
  return PLN_OK;
}

static void assign_slots(pe_source *s, const pln_ref *around) {
  const pln_graph *g = s->graph;
  pln_scope_cursor at = {.graph = g};
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    pln_ref function = around[pln_scope_cursor_at(&at, ref)];
    if (g->nodes[ref].kind != PLN_VAR)
      continue;
    s->owner[ref] = function;
    if (function != PLN_NONE)
      s->slot[ref] = s->slot[function]++;
  }
}

pln_status pe_source_prepare(pe_source *s, const pln_graph *g) {
  pln_engine *e = g->engine;
  size_t n = g->n_nodes, k = g->n_scopes;
  s->graph = g;
  s->owner = pln_mem_new(e, n * sizeof *s->owner);
  s->slot = pln_mem_zeroed(e, n * sizeof *s->slot);
  s->captured = pln_mem_new(e, n * sizeof *s->captured);
  s->fuel = pln_mem_zeroed(e, n * sizeof *s->fuel);
  s->map = pln_mem_new(e, n * sizeof *s->map);
  pln_ref *around = pln_mem_new(e, k * sizeof *around);
  pln_status status = PLN_OK;
  if (!s->owner || !s->slot || !s->captured || !s->fuel || !s->map || !around)
    status = pln_nomem(e);
  if (status == PLN_OK)
    status = pln_idmap_new(e, &s->captures);
  if (status == PLN_OK) {
    memset(s->captured, 0xff, n * sizeof *s->captured);
    find_functions(g, around);
    assign_slots(s, around);
    status = find_captures(s, around);
  }
  pln_mem_free(e, around, k * sizeof *around);
  PLN_TRY(status);
  return pln_expression_tree_new(g, "PartialEvaluate", &s->tree);
}

void pe_source_free(pe_source *s) {
  if (!s->graph)
    return;
  pln_engine *e = s->graph->engine;
  size_t n = s->graph->n_nodes;
  pln_expression_tree_free(&s->tree);
  pln_mem_free(e, s->owner, n * sizeof *s->owner);
  pln_mem_free(e, s->slot, n * sizeof *s->slot);
  pln_mem_free(e, s->captured, n * sizeof *s->captured);
  pln_mem_free(e, s->fuel, n * sizeof *s->fuel);
  pln_mem_free(e, s->map, n * sizeof *s->map);
  pln_mem_free(e, s->list, s->cap_list * sizeof *s->list);
  pln_idmap_free(s->captures);
  s->graph = NULL;
}

/* ------------------------------------------------------------------- frames */

pe_value **pe_slot(const pe_run *pe, pln_ref var) {
  const pe_frame *f = pe->frame;
  const pe_source *s = f->source;
  if (s->owner[var] == f->function)
    return &f->slots[s->slot[var]];
  uint32_t found = pln_idmap_get(s->captures, capture_key(f->function, var));
  return found ? &f->slots[s->list[found - 1].slot] : NULL;
}

pln_status pe_closure_new(pe_run *pe, pln_ref function, pln_ref self,
                          pe_closure **out) {
  pe_source *s = pe->frame->source;
  pe_closure *c = pe_alloc(pe, sizeof *c);
  uint32_t n = 0;
  for (uint32_t i = s->captured[function]; i != PLN_NONE; i = s->list[i].next)
    n++;
  if (!c || !(c->captures = pe_alloc(pe, n * sizeof *c->captures)))
    return PLN_ERR_NOMEM;
  c->source = s;
  c->function = function;
  c->self = self;
  c->types = pe->frame->types;
  n = 0;
  for (uint32_t i = s->captured[function]; i != PLN_NONE; i = s->list[i].next)
    c->captures[n++] =
        s->list[i].var == self ? NULL : *pe_slot(pe, s->list[i].var);
  *out = c;
  return PLN_OK;
}

pln_status pe_type(pe_run *pe, const pe_types *types, pln_type type,
                   pln_type *out) {
  if (!types->n || !(pln_type_flags(pe->engine, type) & PLN_TYPE_HAS_VAR)) {
    *out = type;
    return PLN_OK;
  }
  return pln_type_substitute(pe->engine, type, types->n, types->vars,
                             types->types, out);
}
