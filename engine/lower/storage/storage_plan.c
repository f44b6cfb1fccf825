/* storage_plan.c: plans the memory of a PrimFunc: an allocation gets memory
 * that no allocation that lives at the same time has (storage_plan.h).
 *
 * Called by storage_rewrite.c. Memory is free for others from its last use on.
 * It is used again for at most 16 times less or more than its size; that of a
 * source is used for a result computed in place. Tagged memory ("local.L0A") of
 * one place is one block. TVM's StoragePlanRewriter. */

#include <stdlib.h>

#include "lower/storage/liveness.h"
#include "lower/storage/row_list.h"

enum { MATCH_RANGE = 16, SMALL_BITS = 32 };

typedef struct planner {
  pln_storage_plan *plan;
  pln_access_pattern pattern;
  pln_liveness life;
  bool *taken; /* by allocation: its memory went to a result in place */
  /* Memory that is free: of a constant size, sorted by it, or not. */
  pln_row_list constant, symbolic;
  pln_ref thread; /* the parallel part that is planned, or PLN_NONE */
} planner;

/* --------------------------------------------------------------- free memory
 */

/* The first free row of at least so many bits; of more with `above`. */
static uint32_t lower_bound(const planner *p, uint64_t bits, bool above) {
  uint32_t low = 0, high = p->constant.n;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    uint64_t at = p->plan->storages[p->constant.rows[mid]].bits;
    if (at < bits || (above && at == bits))
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

/* Kinds of memory that a storage scope begins with. Those behind the second
 * are registers, which a compiler places better. */
static const char *const kinds[] = {"global",
                                    "shared",
                                    "warp",
                                    "local",
                                    "wmma.matrix_a",
                                    "wmma.matrix_b",
                                    "wmma.accumulator",
                                    "texture",
                                    "amx.tmm",
                                    "m16n8k8.matrixA",
                                    "m16n8k8.matrixB",
                                    "m16n8k8.matrixC"};

/* *tag: what follows the kind, "_TB2" of "local_TB2". */
static size_t kind_of_scope(const planner *p, pln_symbol scope,
                            pln_slice *tag) {
  pln_slice text = pln_symbol_text(p->plan->engine, scope);
  *tag = (pln_slice){0};
  for (size_t i = 0; i < PLN_COUNT(kinds); i++) {
    size_t n = strlen(kinds[i]);
    if (text.size < n || memcmp(text.data, kinds[i], n) != 0)
      continue;
    *tag = (pln_slice){text.data + n, text.size - n};
    return i;
  }
  return 0;
}

/* Tagged memory is not small, however small. */
static bool is_small(const planner *p, pln_symbol scope, uint64_t bits) {
  pln_slice tag;
  size_t kind = kind_of_scope(p, scope, &tag);
  return tag.size == 0 && (kind > 1 || (bits > 0 && bits <= SMALL_BITS));
}

/* Memory of a device that has one block of it for all allocations. */
static bool is_special(const planner *p, pln_symbol scope) {
  pln_slice tag;
  (void)kind_of_scope(p, scope, &tag);
  return tag.size > 0 && !pln_slice_is(tag, ".dyn") &&
         !pln_slice_is(tag, ".workspace") && !pln_slice_is(tag, ".vtcm");
}

static bool fits(const planner *p, const pln_storage *s,
                 const pln_storage_allocation *a) {
  return s->attach == p->thread && s->scope == a->scope;
}

/* A free row of constant size, or UINT32_MAX: larger ones first. */
static uint32_t find_constant(planner *p, const pln_storage_allocation *a) {
  pln_storage *rows = p->plan->storages;
  uint32_t begin = lower_bound(p, a->bits / MATCH_RANGE, false);
  uint32_t mid = lower_bound(p, a->bits, false);
  uint64_t most =
      a->bits > UINT64_MAX / MATCH_RANGE ? UINT64_MAX : a->bits * MATCH_RANGE;
  uint32_t end = lower_bound(p, most, true);
  for (uint32_t i = mid; i < end; i++)
    if (fits(p, &rows[p->constant.rows[i]], a))
      return pln_row_list_take(&p->constant, i);
  for (uint32_t i = mid; i-- > begin;)
    if (fits(p, &rows[p->constant.rows[i]], a) &&
        rows[p->constant.rows[i]].dtype == a->dtype)
      return pln_row_list_take(&p->constant, i);
  return UINT32_MAX;
}

pln_status pln_last_variable(const pln_graph *g, pln_ref stmt, pln_ref *out) {
  pln_ref *stack = NULL;
  uint32_t n = 0, cap = 0;
  pln_status status = PLN_OK;
  *out = PLN_NONE;
  for (uint32_t i = 1; status == PLN_OK && i < g->nodes[stmt].count; i++) {
    pln_ref at = pln_operand(g, stmt, i);
    while (status == PLN_OK) {
      if (g->nodes[at].kind == PLN_VAR && (*out == PLN_NONE || at > *out))
        *out = at;
      status = pln_mem_grow(g->engine, (void **)&stack, &cap,
                            (size_t)n + g->nodes[at].count, sizeof *stack);
      for (uint32_t k = 0; status == PLN_OK && k < g->nodes[at].count; k++)
        if (*out == PLN_NONE || pln_operand(g, at, k) > *out)
          stack[n++] = pln_operand(g, at, k);
      if (n == 0)
        break;
      at = stack[--n];
    }
  }
  pln_mem_free(g->engine, stack, cap * sizeof *stack);
  return status;
}

/* The scope of which a variable is a parameter: scopes are in the order of
 * their first nodes, which parameters are. */
static const pln_scope_row *scope_of(const pln_graph *g, pln_ref var) {
  uint32_t low = 0, high = g->n_scopes;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (g->scopes[middle].begin <= var)
      low = middle + 1;
    else
      high = middle;
  }
  const pln_scope_row *row = low > 0 ? &g->scopes[low - 1] : NULL;
  return row && var < row->begin + row->n_params ? row : NULL;
}

/* Memory whose size depends on a variable is allocated where that has a value:
 * in the body of what binds it, if this is inside of the present thread. */
static pln_status find_attach(const planner *p, const pln_storage_allocation *a,
                              pln_ref *attach) {
  const pln_graph *g = p->plan->graph;
  pln_ref var = PLN_NONE;
  *attach = p->thread;
  if (!a->bits)
    PLN_TRY(pln_last_variable(g, a->stmt, &var));
  const pln_scope_row *row = var == PLN_NONE ? NULL : scope_of(g, var);
  if (!row || (g->nodes[row->owner].kind != PLN_FOR &&
               g->nodes[row->owner].kind != PLN_LET_STMT))
    return PLN_OK;
  if (p->thread == PLN_NONE || row->owner < p->thread)
    *attach = row->owner;
  return PLN_OK;
}

/* Memory that is large enough for both has to be where both sizes have a value.
 */
static pln_status find_symbolic(planner *p, const pln_storage_allocation *a,
                                uint32_t *row) {
  pln_ref attach;
  PLN_TRY(find_attach(p, a, &attach));
  for (uint32_t i = 0; i < p->symbolic.n; i++) {
    const pln_storage *s = &p->plan->storages[p->symbolic.rows[i]];
    if (s->attach == attach && fits(p, s, a) && s->dtype == a->dtype) {
      *row = pln_row_list_take(&p->symbolic, i);
      break;
    }
  }
  return PLN_OK;
}

static pln_status new_storage(planner *p, const pln_storage_allocation *a,
                              uint32_t *row) {
  pln_storage_plan *plan = p->plan;
  pln_ref attach;
  PLN_TRY(find_attach(p, a, &attach));
  PLN_TRY(pln_mem_grow(plan->engine, (void **)&plan->storages,
                       &plan->cap_storages, (size_t)plan->n_storages + 1,
                       sizeof *plan->storages));
  *row = plan->n_storages;
  plan->storages[plan->n_storages++] = (pln_storage){.first = a->stmt,
                                                     .attach = attach,
                                                     .scope = a->scope,
                                                     .dtype = a->dtype,
                                                     .bits = a->bits};
  return PLN_OK;
}

/* One extent: memory of more may be packed, so that no other extents have its
 * layout, whatever their product is. */
static bool is_flat(const planner *p, pln_ref allocate) {
  return p->plan->graph->nodes[allocate].count == 2;
}

static pln_status find_storage(planner *p, const pln_storage_allocation *a,
                               uint32_t *row) {
  *row = UINT32_MAX;
  bool shares = is_flat(p, a->stmt) && !is_small(p, a->scope, a->bits);
  if (shares && a->bits)
    *row = find_constant(p, a);
  else if (shares)
    PLN_TRY(find_symbolic(p, a, row));
  if (*row == UINT32_MAX)
    return new_storage(p, a, row);
  if (a->bits > p->plan->storages[*row].bits)
    p->plan->storages[*row].bits = a->bits;
  return PLN_OK;
}

static pln_status free_storage(planner *p, uint32_t allocation) {
  uint32_t row = p->plan->allocations[allocation].storage - 1;
  const pln_storage *s = &p->plan->storages[row];
  if (!is_flat(p, s->first) || is_small(p, s->scope, s->bits))
    return PLN_OK;
  return s->bits ? pln_row_list_insert(p->plan->engine, &p->constant,
                                       lower_bound(p, s->bits, true), row)
                 : pln_row_list_insert(p->plan->engine, &p->symbolic,
                                       p->symbolic.n, row);
}

/* ----------------------------------------------------------------- planning */

static pln_ref var_of(const planner *p, uint32_t allocation) {
  const pln_graph *g = p->plan->graph;
  return g->scopes[g->nodes[p->plan->allocations[allocation].stmt].data].begin;
}

static bool is_equal_allocation(const planner *p, pln_ref x, pln_ref y) {
  const pln_graph *g = p->plan->graph;
  if (g->nodes[x].count != g->nodes[y].count)
    return false;
  for (uint32_t i = 1; i < g->nodes[x].count; i++)
    if (!pln_same_expr(g, pln_operand(g, x, i), pln_operand(g, y, i)))
      return false;
  return pln_slice_equal(
      pln_attrs_string(g->engine, g->nodes[x].attrs, "dtype", ""),
      pln_attrs_string(g->engine, g->nodes[y].attrs, "dtype", ""));
}

/* The memory of a source that the statement uses up, for its result. */
static uint32_t find_inplace(planner *p, pln_ref stmt, uint32_t allocation) {
  pln_storage_plan *plan = p->plan;
  const pln_storage_allocation *dst = &plan->allocations[allocation];
  for (uint32_t at = p->life.kill[stmt]; at; at = p->life.events[at - 1].next) {
    uint32_t source = p->life.events[at - 1].allocation;
    uint32_t row = plan->allocations[source].storage;
    if (p->taken[source] || !row)
      continue;
    const pln_storage *s = &plan->storages[row - 1];
    if (fits(p, s, dst) && s->dtype == dst->dtype && s->bits == dst->bits &&
        (is_flat(p, s->first) ? is_flat(p, dst->stmt)
                              : is_equal_allocation(p, s->first, dst->stmt)) &&
        pln_is_inplace(plan->graph, stmt, var_of(p, allocation),
                       var_of(p, source))) {
      p->taken[source] = true;
      return row - 1;
    }
  }
  return UINT32_MAX;
}

static void join_storage(planner *p, uint32_t allocation, uint32_t row) {
  pln_storage_allocation *a = &p->plan->allocations[allocation];
  pln_storage *s = &p->plan->storages[row];
  a->storage = row + 1;
  a->next = s->last;
  s->last = allocation + 1;
  s->merged |= !is_equal_allocation(p, s->first, a->stmt);
}

static pln_status begin_uses(planner *p, pln_ref stmt) {
  uint32_t begun = 0;
  for (uint32_t at = p->life.gen[stmt]; at; at = p->life.events[at - 1].next)
    begun++;
  for (uint32_t at = p->life.gen[stmt]; at; at = p->life.events[at - 1].next) {
    uint32_t allocation = p->life.events[at - 1].allocation;
    uint32_t row = begun <= 2 ? find_inplace(p, stmt, allocation) : UINT32_MAX;
    if (row == UINT32_MAX)
      PLN_TRY(find_storage(p, &p->plan->allocations[allocation], &row));
    join_storage(p, allocation, row);
  }
  return PLN_OK;
}

static pln_status end_uses(planner *p, pln_ref stmt) {
  for (uint32_t at = p->life.kill[stmt]; at; at = p->life.events[at - 1].next)
    if (!p->taken[p->life.events[at - 1].allocation])
      PLN_TRY(free_storage(p, p->life.events[at - 1].allocation));
  return PLN_OK;
}

/* Memory of a parallel part is not used outside of it. */
static void forget_attached(planner *p, pln_row_list *list, pln_ref stmt) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < list->n; i++)
    if (p->plan->storages[list->rows[i]].attach != stmt)
      list->rows[left++] = list->rows[i];
  list->n = left;
}

static void plan_parallel(planner *p, pln_ref stmt) {
  if (p->thread == PLN_NONE) {
    p->thread = stmt;
  } else if (p->thread == stmt) {
    forget_attached(p, &p->constant, stmt);
    forget_attached(p, &p->symbolic, stmt);
    p->thread = PLN_NONE;
  }
}

static bool is_parallel(const planner *p, pln_ref stmt) {
  const pln_graph *g = p->plan->graph;
  if (g->nodes[stmt].kind == PLN_FOR)
    return pln_for_kind_of(g, stmt) == PLN_FOR_PARALLEL;
  pln_slice key =
      g->nodes[stmt].kind == PLN_ATTR_STMT
          ? pln_attrs_string(g->engine, g->nodes[stmt].attrs, "attr_key", "")
          : pln_text("");
  return pln_slice_is(key, "thread_extent") ||
         pln_slice_is(key, "virtual_thread");
}

static pln_status plan_all(planner *p) {
  for (uint32_t i = 0; i < p->pattern.n; i++) {
    pln_access_entry entry = p->pattern.entries[i];
    if (entry.pair >= 0)
      PLN_TRY(begin_uses(p, entry.stmt));
    if (is_parallel(p, entry.stmt))
      plan_parallel(p, entry.stmt);
    if (entry.pair <= 0)
      PLN_TRY(end_uses(p, entry.stmt));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------- tagged memory
 */

enum { TAG_ALIGN = 32 }; /* bits */

/* A storage of tagged memory. */
typedef struct tagged_storage {
  pln_ref attach;
  pln_symbol scope;
  uint32_t row;
} tagged_storage;

static int by_place(const void *p, const void *q) {
  const tagged_storage *x = p, *y = q;
  if (x->attach != y->attach)
    return x->attach < y->attach ? -1 : 1;
  if (x->scope != y->scope)
    return x->scope < y->scope ? -1 : 1;
  return (x->row > y->row) - (x->row < y->row);
}

static uint64_t align_bits(uint64_t bits) {
  return (bits + TAG_ALIGN - 1) / TAG_ALIGN * TAG_ALIGN;
}

/* One after the other in the memory of the first of them. */
static void lay_out(planner *p, uint32_t n, const tagged_storage *list) {
  pln_storage *head = &p->plan->storages[list[0].row];
  uint64_t total = align_bits(head->bits);
  for (uint32_t i = 1; i < n; i++) {
    pln_storage *s = &p->plan->storages[list[i].row];
    s->head = list[0].row + 1;
    s->offset = total;
    total = align_bits(total + s->bits);
  }
  head->total = n > 1 ? total : 0;
}

static pln_status merge_tagged(planner *p) {
  pln_storage_plan *plan = p->plan;
  size_t size = (plan->n_storages + (size_t)1) * sizeof(tagged_storage);
  tagged_storage *list = pln_mem_new(plan->engine, size);
  uint32_t n = 0;
  if (!list)
    return pln_nomem(plan->engine);
  for (uint32_t i = 0; i < plan->n_storages; i++) {
    const pln_storage *s = &plan->storages[i];
    if (s->bits > 0 && is_flat(p, s->first) && is_special(p, s->scope))
      list[n++] = (tagged_storage){s->attach, s->scope, i};
  }
  qsort(list, n, sizeof *list, by_place);
  for (uint32_t i = 0, k; i < n; i = k) {
    for (k = i + 1; k < n; k++)
      if (list[k].attach != list[i].attach || list[k].scope != list[i].scope)
        break;
    lay_out(p, k - i, list + i);
  }
  pln_mem_free(plan->engine, list, size);
  return PLN_OK;
}

/* ------------------------------------------------------------------ the plan
 */

static pln_status make_plan(planner *p) {
  pln_engine *e = p->plan->engine;
  PLN_TRY(pln_access_pattern_find(&p->pattern, p->plan));
  p->taken = pln_mem_zeroed(e, (p->plan->n_allocations + (size_t)1) *
                                   sizeof *p->taken);
  if (!p->taken)
    return pln_nomem(e);
  PLN_TRY(pln_liveness_find(&p->life, p->plan, &p->pattern));
  PLN_TRY(plan_all(p));
  return merge_tagged(p);
}

pln_status pln_storage_plan_make(pln_storage_plan *plan,
                                 const pln_graph *function) {
  pln_engine *e = function->engine;
  planner p = {.plan = plan, .thread = PLN_NONE};
  *plan = (pln_storage_plan){.engine = e, .graph = function};
  plan->allocation_of =
      pln_mem_zeroed(e, function->n_nodes * sizeof *plan->allocation_of);
  pln_status status = plan->allocation_of ? make_plan(&p) : pln_nomem(e);
  pln_mem_free(e, p.taken,
               p.taken ? (plan->n_allocations + (size_t)1) * sizeof *p.taken
                       : 0);
  pln_liveness_free(&p.life);
  pln_mem_free(e, p.constant.rows, p.constant.cap * sizeof *p.constant.rows);
  pln_mem_free(e, p.symbolic.rows, p.symbolic.cap * sizeof *p.symbolic.rows);
  pln_access_pattern_free(e, &p.pattern);
  if (status != PLN_OK)
    pln_storage_plan_free(plan);
  return status;
}

void pln_storage_plan_free(pln_storage_plan *plan) {
  if (!plan->engine)
    return;
  pln_mem_free(plan->engine, plan->allocation_of,
               plan->graph->n_nodes * sizeof *plan->allocation_of);
  pln_mem_free(plan->engine, plan->allocations,
               plan->cap_allocations * sizeof *plan->allocations);
  pln_mem_free(plan->engine, plan->storages,
               plan->cap_storages * sizeof *plan->storages);
  plan->engine = NULL;
}
