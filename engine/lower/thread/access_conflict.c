/* access_conflict.c: the accesses to shared memory since the last barrier, and
 * whether one more needs a barrier before it (sync_plan.h).
 *
 * Called by sync_plan.c. Of each memory only the first access is kept, and
 * whether another one differs: an access that meets two elements conflicts with
 * one of them in any case. So each question takes constant time. */

#include "lower/thread/sync_plan.h"

static uint32_t first_index(const pln_graph *g, pln_ref at) {
  return g->nodes[at].kind == PLN_BUFFER_STORE ? 2 : 1;
}

static bool same_element(const pln_graph *g, const pln_thread_access *x,
                         const pln_thread_access *y) {
  if (!x->is_point || !y->is_point)
    return false;
  uint32_t i = first_index(g, x->at), k = first_index(g, y->at);
  uint32_t n = g->nodes[x->at].count, m = g->nodes[y->at].count;
  if (n - i != m - k)
    return false;
  for (; i < n; i++, k++)
    if (!pln_same_expr(g, pln_operand(g, x->at, i), pln_operand(g, y->at, k)))
      return false;
  return true;
}

/* Each thread has elements of its own there. */
static bool is_of_thread(const pln_sync_plan *plan,
                         const pln_thread_access *access) {
  for (uint32_t i = first_index(plan->g, access->at);
       i < plan->g->nodes[access->at].count; i++)
    if (!(plan->facts[pln_operand(plan->g, access->at, i)].threads &
          access->thread))
      return false;
  return true;
}

pln_status pln_pending_new(pln_pending *p, const pln_sync_plan *plan) {
  const pln_graph *g = plan->g;
  *p = (pln_pending){.engine = g->engine, .epoch = 1};
  p->row_of = pln_mem_zeroed(g->engine, g->n_nodes * sizeof *p->row_of);
  if (!p->row_of)
    return pln_nomem(g->engine);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (pln_is_in_storage(g, ref, plan->scope))
      p->row_of[ref] = ++p->n_rows;
  if (p->n_rows == 0)
    return PLN_OK;
  p->rows = pln_mem_zeroed(g->engine, p->n_rows * sizeof *p->rows);
  return p->rows ? PLN_OK : pln_nomem(g->engine);
}

void pln_pending_free(pln_pending *p, const pln_sync_plan *plan) {
  pln_mem_free(p->engine, p->row_of, plan->g->n_nodes * sizeof *p->row_of);
  pln_mem_free(p->engine, p->rows, p->n_rows * sizeof *p->rows);
}

void pln_pending_clear(pln_pending *p) {
  p->epoch++;
}

bool pln_pending_add(pln_pending *p, const pln_sync_plan *plan,
                     const pln_thread_access *access) {
  pln_pending_cell *cell =
      &p->rows[p->row_of[access->data] - 1][access->type][access->double_write];
  if (cell->epoch != p->epoch) {
    *cell = (pln_pending_cell){.first = *access, .epoch = p->epoch};
    return true;
  }
  if (cell->mixed)
    return false;
  cell->mixed = !same_element(plan->g, &cell->first, access);
  return cell->mixed || cell->first.thread != access->thread;
}

bool pln_pending_conflicts(const pln_pending *p, const pln_sync_plan *plan,
                           const pln_thread_access *access, bool carried) {
  bool reads = access->type == PLN_ACCESS_READ;
  const pln_pending_cell *cells =
      p->rows[p->row_of[access->data] - 1]
             [reads ? PLN_ACCESS_WRITE : PLN_ACCESS_READ];
  for (uint32_t i = 0; i < 2; i++) {
    /* What is read of a double buffer is the half that is not written. */
    if (cells[i].epoch != p->epoch || (i == 1 && reads && !carried))
      continue;
    if (cells[i].mixed || !same_element(plan->g, &cells[i].first, access) ||
        !is_of_thread(plan, access))
      return true;
  }
  return false;
}
