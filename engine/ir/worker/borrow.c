/* borrow.c: gives a child engine its own tensor, graph and module headers over
 * its parent's arrays and data, so that reference counts belong to the child.
 *
 * Called by pass/parallel/child_engine.c and attrs.c. Invariants: nothing of
 * the parent is written, in particular no reference count of a graph, tensor or
 * module; a borrowed object does not outlive the original. Reference counts of
 * files, which are few, are atomic. */

#include "ir/worker/child_engine.h"

/* All borrowed tensors, and one table of origins per table of the parent. */
typedef struct pln_borrowed {
  pln_parent_counts counts;
  pln_arena tensors;
  uint32_t n_externals, cap_externals;
  pln_tensor **externals; /* those that may have opened a file */
  pln_idmap *origins_at;  /* address -> index + 1 */
  uint32_t n_origins, cap_origins;
  pln_origins **origins; /* retained */
} pln_borrowed;

pln_status pln_borrowed_new(pln_engine *child) {
  child->borrow_state = pln_mem_zeroed(child, sizeof *child->borrow_state);
  if (!child->borrow_state)
    return pln_nomem(child);
  child->borrow_state->counts =
      (pln_parent_counts){child->n_vars, child->n_type_vars};
  pln_arena_init(&child->borrow_state->tensors, child);
  return pln_idmap_new(child, &child->borrow_state->origins_at);
}

void pln_borrowed_free(pln_engine *child) {
  pln_borrowed *l = child->borrow_state;
  if (!l)
    return;
  for (uint32_t i = 0; i < l->n_externals; i++)
    if (!l->externals[i]->external)
      pln_file_release(l->externals[i]->file);
  pln_mem_free(child, l->externals, l->cap_externals * sizeof *l->externals);
  pln_arena_free(&l->tensors);
  for (uint32_t i = 0; i < l->n_origins; i++)
    pln_origins_release(l->origins[i]);
  pln_mem_free(child, l->origins, l->cap_origins * sizeof *l->origins);
  pln_idmap_free(l->origins_at);
  pln_mem_free(child, l, sizeof *l);
  child->borrow_state = NULL;
}

const pln_parent_counts *pln_parent_counts_of(const pln_engine *child) {
  return &child->borrow_state->counts;
}

pln_status pln_borrowed_merge_origins(pln_merge *join) {
  const pln_borrowed *l = join->child->borrow_state;
  for (uint32_t i = 0; i < l->n_origins; i++)
    PLN_TRY(pln_merge_origins(join, l->origins[i]));
  return PLN_OK;
}

/* ----------------------------------------------------------------- tensors */

static pln_status note_external(pln_borrowed *l, pln_engine *child,
                                pln_tensor *t) {
  PLN_TRY(pln_mem_grow(child, (void **)&l->externals, &l->cap_externals,
                       (size_t)l->n_externals + 1, sizeof *l->externals));
  l->externals[l->n_externals++] = t;
  return PLN_OK;
}

/* Freed with all others. The file belongs to the parent's tensor. */
pln_status pln_borrow_tensor(pln_engine *child, const pln_tensor *tensor,
                             pln_tensor **out) {
  size_t size = sizeof *tensor + tensor->rank * sizeof *tensor->dims;
  pln_tensor *t = pln_arena_new(&child->borrow_state->tensors, size);
  if (!t)
    return pln_nomem(child);
  memcpy(t, tensor, size);
  t->engine = child;
  t->refs = 1;
  t->owned = false;
  t->view_of = NULL;
  t->parent_tensor = tensor;
  *out = t;
  return t->external ? note_external(child->borrow_state, child, t) : PLN_OK;
}

/* ------------------------------------------------------------------ graphs */

static pln_status borrow_origins(pln_engine *child, pln_origins *base,
                                 pln_origins **out) {
  pln_borrowed *l = child->borrow_state;
  uint32_t at = pln_idmap_get(l->origins_at, (uint64_t)(uintptr_t)base);
  if (!at) {
    PLN_TRY(pln_mem_grow(child, (void **)&l->origins, &l->cap_origins,
                         (size_t)l->n_origins + 1, sizeof *l->origins));
    PLN_TRY(pln_origins_child(child, base, &l->origins[l->n_origins]));
    at = ++l->n_origins;
    PLN_TRY(pln_idmap_set(l->origins_at, (uint64_t)(uintptr_t)base, at));
  }
  *out = pln_origins_retain(l->origins[at - 1]);
  return PLN_OK;
}

pln_status pln_borrow_tensors(pln_engine *child, pln_graph *to) {
  const pln_graph *from = to->parent_graph;
  if (from->n_tensors == to->n_tensors)
    return PLN_OK;
  to->tensors = pln_mem_new(child, from->n_tensors * sizeof *to->tensors);
  if (!to->tensors)
    return pln_nomem(child);
  to->cap_tensors = from->n_tensors;
  for (; to->n_tensors < from->n_tensors; to->n_tensors++)
    PLN_TRY(pln_borrow_tensor(child, from->tensors[to->n_tensors],
                              &to->tensors[to->n_tensors]));
  return PLN_OK;
}

/* The arrays remain the parent's. */
pln_status pln_borrow_graph(pln_engine *child, const pln_graph *graph,
                            pln_graph **out) {
  pln_graph *g = NULL;
  PLN_TRY(pln_graph_new(child, &g));
  g->parent_graph = graph;
  g->nodes = graph->nodes;
  g->operands = graph->operands;
  g->scopes = graph->scopes;
  g->values = graph->values;
  g->origin = graph->origin;
  g->typed_from = graph->typed_from;
  g->n_nodes = graph->n_nodes;
  g->n_operands = graph->n_operands;
  g->n_scopes = graph->n_scopes;
  g->root = graph->root;
  g->sealed = graph->sealed;
  pln_status status = PLN_OK;
  if (graph->origins)
    status = borrow_origins(child, graph->origins, &g->origins);
  if (status == PLN_OK)
    *out = g;
  else
    pln_graph_release(g);
  return status;
}

/* ----------------------------------------------------------------- modules */

static pln_status borrow_functions(pln_engine *child, const pln_module *from,
                                   pln_module *to) {
  for (uint32_t i = 0; i < from->count; i++) {
    pln_graph *function = NULL;
    PLN_TRY(
        pln_borrow_graph(child, pln_module_function_at(from, i), &function));
    pln_status status =
        pln_module_set(to, pln_module_name_at(from, i), function);
    pln_graph_release(function);
    PLN_TRY(status);
  }
  return PLN_OK;
}

pln_status pln_borrow_module(pln_engine *child, const pln_module *module,
                             pln_module **out) {
  pln_module *m = NULL;
  PLN_TRY(pln_module_new(child, &m));
  m->attrs = module->attrs;
  m->types = pln_definitions_retain(module->types);
  m->tir_vars = module->tir_vars;
  pln_module_set_source(m, module->source, module->directory);
  pln_status status = borrow_functions(child, module, m);
  if (status == PLN_OK)
    *out = m;
  else
    pln_module_release(m);
  return status;
}
