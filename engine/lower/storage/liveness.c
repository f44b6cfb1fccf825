/* liveness.c: finds the statements that use an allocation first and last
 * (liveness.h).
 *
 * Called by storage_plan.c and merge_dynamic_shared_memory.c. A use inside of a
 * statement with bodies is one of that statement, if the allocation is outside.
 * Semantics: LivenessAnalysis of TVM's storage_rewrite.cc. */

#include "lower/storage/liveness.h"

typedef struct finder {
  pln_liveness *out;
  const pln_access_pattern *pattern;
  bool *seen; /* by allocation */
} finder;

/* Behind the event *last of a list, which the new one becomes; 0: none. */
static pln_status add_event(pln_liveness *out, uint32_t *list, uint32_t *last,
                            uint32_t allocation) {
  PLN_TRY(pln_mem_grow(out->engine, (void **)&out->events, &out->cap,
                       (size_t)out->n + 1, sizeof *out->events));
  out->events[out->n++] = (pln_life_event){.allocation = allocation};
  *(*last ? &out->events[*last - 1].next : list) = out->n;
  *last = out->n;
  return PLN_OK;
}

/* Adds an event for what the entry touches and no entry before it did. */
static pln_status find_first(finder *f, uint32_t entry, uint32_t *list) {
  const pln_access_pattern *a = f->pattern;
  uint32_t last = 0;
  for (uint32_t at = *list; at; at = f->out->events[at - 1].next)
    last = at;
  for (uint32_t at = a->entries[entry].first; at;
       at = a->accesses[at - 1].next) {
    uint32_t allocation = a->accesses[at - 1].allocation;
    if (f->seen[allocation])
      continue;
    f->seen[allocation] = true;
    PLN_TRY(add_event(f->out, list, &last, allocation));
  }
  return PLN_OK;
}

static pln_status find_all(finder *f, uint32_t n_allocations) {
  const pln_access_entry *entries = f->pattern->entries;
  for (uint32_t i = f->pattern->n; i-- > 0;)
    PLN_TRY(find_first(f, i, &f->out->kill[entries[i].stmt]));
  memset(f->seen, 0, n_allocations * sizeof *f->seen);
  for (uint32_t i = 0; i < f->pattern->n; i++)
    if (entries[i].pair >= 0)
      PLN_TRY(find_first(f, i + (uint32_t)entries[i].pair,
                         &f->out->gen[entries[i].stmt]));
  return PLN_OK;
}

pln_status pln_liveness_find(pln_liveness *out, const pln_storage_plan *plan,
                             const pln_access_pattern *pattern) {
  pln_engine *e = plan->engine;
  size_t n = plan->n_allocations + (size_t)1;
  finder f = {.out = out, .pattern = pattern};
  *out = (pln_liveness){.engine = e, .nodes = plan->graph->n_nodes};
  out->gen = pln_mem_zeroed(e, 2 * out->nodes * sizeof *out->gen);
  f.seen = pln_mem_zeroed(e, n * sizeof *f.seen);
  pln_status status = PLN_OK;
  if (!out->gen || !f.seen)
    status = pln_nomem(e);
  if (status == PLN_OK) {
    out->kill = out->gen + out->nodes;
    status = find_all(&f, plan->n_allocations);
  }
  pln_mem_free(e, f.seen, n * sizeof *f.seen);
  return status;
}

void pln_liveness_free(pln_liveness *l) {
  if (!l->engine)
    return;
  pln_mem_free(l->engine, l->gen, 2 * l->nodes * sizeof *l->gen);
  pln_mem_free(l->engine, l->events, l->cap * sizeof *l->events);
}
