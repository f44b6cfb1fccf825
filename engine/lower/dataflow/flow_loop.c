/* flow_loop.c: what holds in the body of a loop, and after it (flow.h).
 *
 * Called by buffer_flow.c. A loop's body is visited once: in it holds what held
 * before the loop, but for what other iterations access; after it that, and
 * what the iterations made. An element that one iteration made is found by
 * solving the region for the loop's variable: of A[4 * i + 1] the iteration is
 * (axis - 1) // 4. Where that is not possible, what the last iteration made
 * holds. Forwards accesses are stores; backwards they are loads, and first and
 * last change places. */

#include "lower/dataflow/flow.h"
#include "lower/lower.h"

pln_status pln_flow_range_of(pln_flow *x, pln_scope scope, flow_range *out) {
  const pln_graph *g = x->g;
  pln_ref loop = g->scopes[scope].owner;
  *out = (flow_range){0};
  if (g->nodes[loop].kind != PLN_FOR)
    return PLN_OK;
  pln_term min = pln_flow_term(x, pln_operand(g, loop, 0)),
           extent = pln_flow_term(x, pln_operand(g, loop, 1));
  PLN_TRY(x->a->status);
  if (!min || !extent)
    return PLN_OK;
  PLN_TRY(pln_analyzer_import_more(x->a, g, g->scopes[scope].begin, &out->var));
  pln_for_kind kind = pln_for_kind_of(g, loop);
  out->serial = kind == PLN_FOR_SERIAL || kind == PLN_FOR_UNROLLED;
  out->min = min;
  out->max = pln_simplify_term(
      x->a, pln_add_const(x->a, pln_add(x->a, min, extent), -1), 2);
  return x->a->status;
}

static pln_term compare(pln_flow *x, pln_kind kind, pln_term p, pln_term q) {
  return pln_fold(x->a, kind, p, q);
}

/* ----------------------------------------------------------------- accesses
 */

/* The accesses in the loops that are open; each loop's begin at a mark. */
typedef struct collector {
  pln_flow *x;
  flow_access *pending;
  uint32_t n, cap;
  uint32_t *first; /* by open loop */
  bool *all;
  uint32_t depth, cap_first, cap_all;
} collector;

static pln_status add_pending(collector *c, pln_ref access, uint32_t operand) {
  flow_access a = {.access = access};
  bool exact;
  if (c->depth == 0 || c->all[c->depth - 1])
    return PLN_OK;
  PLN_TRY(pln_flow_region_of(c->x, access, operand, &a.region, &exact));
  if (c->x->wild[a.region.memory] ||
      c->n - c->first[c->depth - 1] >= FLOW_MOST_ACCESSES) {
    c->all[c->depth - 1] = true;
    return PLN_OK;
  }
  PLN_TRY(pln_mem_grow(c->x->g->engine, (void **)&c->pending, &c->cap,
                       (size_t)c->n + 1, sizeof *c->pending));
  c->pending[c->n++] = a;
  return PLN_OK;
}

static pln_status collect_reads(collector *c, pln_ref stmt) {
  pln_flow *x = c->x;
  if (c->depth == 0)
    return PLN_OK;
  PLN_TRY(pln_flow_find_reads(x, stmt, 0));
  for (uint32_t i = 0; i < x->n_reads; i++) {
    bool load = x->g->nodes[x->reads[i]].kind == PLN_BUFFER_LOAD;
    if (!load && pln_flow_forgets(x, x->reads[i]))
      c->all[c->depth - 1] = true;
    if (load && x->backward)
      PLN_TRY(add_pending(c, x->reads[i], 1));
  }
  return PLN_OK;
}

static pln_status open_loop(collector *c) {
  pln_engine *e = c->x->g->engine;
  size_t n = (size_t)c->depth + 1;
  PLN_TRY(
      pln_mem_grow(e, (void **)&c->first, &c->cap_first, n, sizeof *c->first));
  PLN_TRY(pln_mem_grow(e, (void **)&c->all, &c->cap_all, n, sizeof *c->all));
  c->first[c->depth] = c->n;
  c->all[c->depth++] = false;
  return PLN_OK;
}

static pln_status keep_accesses(collector *c, pln_scope scope) {
  pln_flow *x = c->x;
  uint32_t first = c->first[c->depth - 1], n = c->n - first;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->accesses, &x->cap_accesses,
                       (size_t)x->n_accesses + n, sizeof *x->accesses));
  if (n > 0)
    memcpy(x->accesses + x->n_accesses, c->pending + first,
           n * sizeof *x->accesses);
  x->accesses_of[scope] =
      (flow_accesses){x->n_accesses, n, c->all[c->depth - 1]};
  x->n_accesses += n;
  return PLN_OK;
}

/* What the loop accesses in all iterations is accessed by the one around it. */
static pln_status close_loop(collector *c, pln_scope scope) {
  pln_flow *x = c->x;
  flow_range range;
  PLN_TRY(keep_accesses(c, scope));
  PLN_TRY(pln_flow_range_of(x, scope, &range));
  uint32_t first = c->first[--c->depth];
  bool all = c->all[c->depth];
  if (c->depth == 0) {
    c->n = first;
    return PLN_OK;
  }
  for (uint32_t i = first; i < c->n; i++)
    c->pending[i].region = pln_flow_all_iterations(
        x, &c->pending[i].region, range.var, range.min, range.max);
  uint32_t outer = c->first[c->depth - 1];
  c->all[c->depth - 1] =
      c->all[c->depth - 1] || all || c->n - outer > FLOW_MOST_ACCESSES;
  if (c->all[c->depth - 1])
    c->n = outer;
  return x->a->status;
}

static bool is_loop(const pln_graph *g, pln_scope scope) {
  pln_ref owner = g->scopes[scope].owner;
  return owner != PLN_NONE &&
         (g->nodes[owner].kind == PLN_FOR || g->nodes[owner].kind == PLN_WHILE);
}

static pln_status collect(collector *c, const flow_event *event) {
  pln_flow *x = c->x;
  switch (event->kind) {
  case FLOW_OPEN: return collect_reads(c, event->at);
  case FLOW_ENTER:
    PLN_TRY(pln_flow_bind_params(x, event->at));
    return is_loop(x->g, event->at) ? open_loop(c) : PLN_OK;
  case FLOW_LEAVE:
    return is_loop(x->g, event->at) ? close_loop(c, event->at) : PLN_OK;
  case FLOW_SIMPLE:
    if (!x->backward && x->g->nodes[event->at].kind == PLN_BUFFER_STORE &&
        !x->out->overwritten[event->at])
      PLN_TRY(add_pending(c, event->at, 2));
    return collect_reads(c, event->at);
  default: return PLN_OK;
  }
}

pln_status pln_flow_find_accesses(pln_flow *x) {
  collector c = {.x = x};
  pln_engine *e = x->g->engine;
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < x->n_events && status == PLN_OK; i++)
    status = collect(&c, &x->events[i]);
  pln_mem_free(e, c.pending, c.cap * sizeof *c.pending);
  pln_mem_free(e, c.first, c.cap_first * sizeof *c.first);
  pln_mem_free(e, c.all, c.cap_all * sizeof *c.all);
  return status;
}

/* --------------------------------------------------------------- the body */

static pln_status enter_range(pln_flow *x, const flow_range *r) {
  pln_analyzer *a = x->a;
  uint32_t mark;
  pln_term extent =
      pln_simplify_term(a, pln_add_const(a, pln_sub(a, r->max, r->min), 1), 2);
  PLN_TRY(a->status);
  PLN_TRY(pln_analyzer_bind_range(a, r->var, r->min, extent, true));
  PLN_TRY(
      pln_analyzer_enter(a, compare(x, PLN_PRIM_GE, r->var, r->min), &mark));
  return pln_analyzer_enter(a, compare(x, PLN_PRIM_LE, r->var, r->max), &mark);
}

/* Forgets what the iterations before `at` accessed; backwards: those behind
 * it. */
static pln_status forget_others(pln_flow *x, const flow_access *access,
                                const flow_range *r) {
  pln_analyzer *a = x->a;
  flow_region region = access->region;
  pln_term guard = PLN_NO_TERM;
  if (!r->var)
    return pln_flow_forget(x, &region, PLN_NO_TERM);
  if (!pln_flow_uses(x, &region, r->var))
    guard = x->backward ? compare(x, PLN_PRIM_LE, r->max, r->var)
                        : compare(x, PLN_PRIM_LE, r->var, r->min);
  region = x->backward ? pln_flow_sweep(x, &region, r->var,
                                        pln_add_const(a, r->var, 1), r->max)
                       : pln_flow_sweep(x, &region, r->var, r->min,
                                        pln_add_const(a, r->var, -1));
  return pln_flow_forget(x, &region, guard);
}

pln_status pln_flow_enter_loop(pln_flow *x, pln_scope scope) {
  const flow_accesses *all = &x->accesses_of[scope];
  flow_range range;
  PLN_TRY(pln_flow_range_of(x, scope, &range));
  PLN_TRY(pln_flow_push(x));
  if (range.var)
    PLN_TRY(enter_range(x, &range));
  if (all->all)
    pln_flow_forget_all(x);
  for (uint32_t i = 0; i < all->n && !all->all; i++)
    PLN_TRY(forget_others(x, &x->accesses[all->first + i], &range));
  return PLN_OK;
}

/* ----------------------------------------------------------- after the loop */

/* The region [c * var + b, ... + length] of one dimension. */
typedef struct linear_axis {
  uint32_t k;
  int64_t c, length;
  pln_term b;
} linear_axis;

/* A dimension whose index tells the iteration. */
static bool find_axis(pln_flow *x, const flow_region *r, pln_term var,
                      linear_axis *out) {
  pln_analyzer *a = x->a;
  for (uint32_t k = 0; k < r->rank; k++) {
    pln_term coefs[2];
    if (!r->lo[k] || !pln_term_uses(a, r->lo[k], var) ||
        r->dtype[k] != pln_at(a, var)->dtype ||
        !pln_detect_linear(a, r->lo[k], 1, &var, coefs) ||
        !pln_is_const(a, coefs[0]))
      continue;
    pln_term length = pln_simplify_term(a, pln_sub(a, r->hi[k], r->lo[k]), 2);
    if (!pln_is_const(a, length))
      continue;
    *out = (linear_axis){k, pln_const(a, coefs[0]), pln_const(a, length),
                         coefs[1]};
    if ((out->c > 0 && out->length < out->c) ||
        (out->c == -1 && out->length == 0))
      return true;
  }
  return false;
}

/* The iteration of the element at the axis variable. */
static pln_term iteration_of(pln_flow *x, const linear_axis *l, pln_term axis) {
  pln_analyzer *a = x->a;
  if (l->c == -1)
    return pln_sub(a, l->b, axis);
  pln_term offset = pln_sub(a, axis, l->b);
  return l->c == 1 ? offset
                   : pln_fold(a, PLN_PRIM_FLOORDIV, offset,
                              pln_const_like(a, axis, l->c));
}

static pln_term simplified(pln_flow *x, pln_term t, pln_term var,
                           pln_term value) {
  return pln_simplify_term(x->a, pln_term_substitute(x->a, t, 1, &var, &value),
                           2);
}

/* Puts `value` in the place of the loop's variable. Conditions that then are
 * true go. False: the fact never holds, or is too long. */
static bool substitute(pln_flow *x, flow_fact *f, pln_term var,
                       pln_term value) {
  pln_analyzer *a = x->a;
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->n_conditions; i++) {
    pln_term t = simplified(x, f->conditions[i], var, value);
    if (!t || pln_at(a, t)->size > FLOW_MOST_SIZE || pln_is_value(a, t, 0))
      return false;
    if (!pln_is_const(a, t))
      f->conditions[n++] = t;
  }
  f->n_conditions = n;
  for (uint32_t k = 0; k < f->region.rank; k++) {
    if (!f->region.lo[k])
      continue;
    f->region.lo[k] = simplified(x, f->region.lo[k], var, value);
    f->region.hi[k] = simplified(x, f->region.hi[k], var, value);
  }
  if (f->value)
    f->value = simplified(x, f->value, var, value);
  return a->status == PLN_OK &&
         (!f->value || pln_at(a, f->value)->size <= FLOW_MOST_SIZE);
}

static bool add_condition(pln_flow *x, flow_fact *f, pln_term condition) {
  pln_term t = pln_simplify_term(x->a, condition, 2);
  if (t && pln_is_const(x->a, t))
    return pln_const(x->a, t) != 0;
  if (!t || f->n_conditions == FLOW_MOST_CONDITIONS)
    return false;
  f->conditions[f->n_conditions++] = t;
  return true;
}

/* Bounds that depend on the iteration become conditions. */
static bool move_bounds(pln_flow *x, flow_fact *f, uint32_t except,
                        pln_term var) {
  flow_region *r = &f->region;
  for (uint32_t k = 0; k < r->rank; k++) {
    if (k == except || !r->lo[k] ||
        !(pln_term_uses(x->a, r->lo[k], var) ||
          pln_term_uses(x->a, r->hi[k], var)))
      continue;
    pln_term axis = pln_flow_axis(x, k, r->dtype[k]);
    if (!add_condition(x, f, compare(x, PLN_PRIM_LE, r->lo[k], axis)) ||
        !add_condition(x, f, compare(x, PLN_PRIM_LE, axis, r->hi[k])))
      return false;
    r->lo[k] = r->hi[k] = PLN_NO_TERM;
  }
  return true;
}

/* The fact of all iterations, where an index tells which one made it. */
static bool solve(pln_flow *x, flow_fact *f, const flow_range *r,
                  const linear_axis *l, pln_term iteration) {
  pln_analyzer *a = x->a;
  flow_region *region = &f->region;
  pln_term axis = pln_flow_axis(x, l->k, region->dtype[l->k]);
  pln_term first = l->c > 0 ? r->min : r->max,
           last = l->c > 0 ? r->max : r->min;
  if (!move_bounds(x, f, l->k, r->var) || !substitute(x, f, r->var, iteration))
    return false;
  region->lo[l->k] =
      pln_simplify_term(a, pln_add(a, pln_mul_const(a, first, l->c), l->b), 2);
  region->hi[l->k] = pln_simplify_term(
      a,
      pln_add_const(a, pln_add(a, pln_mul_const(a, last, l->c), l->b),
                    l->length),
      2);
  if (a->status != PLN_OK)
    return false;
  if (l->c <= 1 || l->length + 1 == l->c)
    return true;
  pln_term rest = pln_fold(a, PLN_PRIM_FLOORMOD, pln_sub(a, axis, l->b),
                           pln_const_like(a, axis, l->c));
  return add_condition(
      x, f, compare(x, PLN_PRIM_LE, rest, pln_const_like(a, axis, l->length)));
}

/* What other iterations access after the one that made the fact. */
static pln_status exclude_later(pln_flow *x, const flow_accesses *all,
                                const flow_range *r, pln_term iteration,
                                uint32_t *fact) {
  pln_analyzer *a = x->a;
  for (uint32_t i = 0; i < all->n && *fact != PLN_NONE; i++) {
    const flow_access access = x->accesses[all->first + i];
    flow_region region = access.region;
    pln_term guard = PLN_NO_TERM;
    if (region.memory != x->facts[*fact].region.memory ||
        access.access == x->facts[*fact].access)
      continue;
    if (!pln_flow_uses(x, &region, r->var))
      guard = x->backward ? compare(x, PLN_PRIM_LE, iteration, r->min)
                          : compare(x, PLN_PRIM_LE, r->max, iteration);
    region = x->backward
                 ? pln_flow_sweep(x, &region, r->var, r->min,
                                  pln_add_const(a, iteration, -1))
                 : pln_flow_sweep(x, &region, r->var,
                                  pln_add_const(a, iteration, 1), r->max);
    PLN_TRY(pln_flow_exclude(x, *fact, &region, guard, fact));
  }
  return a->status;
}

/* *out: what a fact of the body's end says after the loop, or PLN_NONE. */
static pln_status widen(pln_flow *x, uint32_t fact, const flow_accesses *all,
                        const flow_range *r, uint32_t *out) {
  flow_fact f = x->facts[fact];
  linear_axis l;
  *out = PLN_NONE;
  if (!r->var)
    return PLN_OK;
  if (!find_axis(x, &f.region, r->var, &l)) {
    bool ok = (r->serial || !pln_flow_fact_uses(x, &f, r->var)) &&
              substitute(x, &f, r->var, x->backward ? r->min : r->max) &&
              add_condition(x, &f, compare(x, PLN_PRIM_LE, r->min, r->max));
    return ok ? pln_flow_add_fact(x, &f, out) : x->a->status;
  }
  pln_term iteration =
      iteration_of(x, &l, pln_flow_axis(x, l.k, f.region.dtype[l.k]));
  if (!solve(x, &f, r, &l, iteration))
    return x->a->status;
  PLN_TRY(pln_flow_add_fact(x, &f, out));
  return exclude_later(x, all, r, iteration, out);
}

static pln_status add_to(pln_flow *x, flow_list *list, uint32_t fact) {
  (void)x;
  if (fact != PLN_NONE && list->n < FLOW_MOST_FACTS)
    list->ids[list->n++] = fact;
  return PLN_OK;
}

/* What held before the loop, and is not accessed in it. */
static pln_status keep_untouched(pln_flow *x, const flow_accesses *all,
                                 const flow_range *r, uint32_t *fact) {
  for (uint32_t i = 0; i < all->n && *fact != PLN_NONE; i++) {
    const flow_access *access = &x->accesses[all->first + i];
    flow_region region = access->region;
    if (region.memory != x->facts[*fact].region.memory)
      continue;
    if (r->var)
      region = pln_flow_sweep(x, &region, r->var, r->min, r->max);
    PLN_TRY(pln_flow_exclude(x, *fact, &region, PLN_NO_TERM, fact));
  }
  return x->a->status;
}

static pln_status after_loop(pln_flow *x, const flow_accesses *all,
                             const flow_range *r, const flow_frame *f,
                             const flow_change *c, flow_list *out) {
  const flow_list now = *pln_flow_facts(x, c->memory);
  *out = (flow_list){.epoch = x->epoch};
  for (uint32_t i = 0; i < now.n; i++) {
    uint32_t fact;
    if (x->facts[now.ids[i]].root < f->first_fact)
      continue;
    PLN_TRY(widen(x, now.ids[i], all, r, &fact));
    PLN_TRY(add_to(x, out, fact));
  }
  for (uint32_t i = 0; i < c->before.n && c->before.epoch == x->epoch; i++) {
    uint32_t fact = c->before.ids[i];
    PLN_TRY(keep_untouched(x, all, r, &fact));
    PLN_TRY(add_to(x, out, fact));
  }
  return PLN_OK;
}

pln_status pln_flow_leave_loop(pln_flow *x, pln_scope scope) {
  const flow_accesses all = x->accesses_of[scope];
  flow_frame f = x->frames[x->n_frames - 1];
  flow_range range;
  PLN_TRY(pln_flow_range_of(x, scope, &range));
  pln_analyzer_leave(x->a, f.mark);
  if (all.all || x->epoch != f.epoch) {
    pln_flow_pop(x);
    pln_flow_forget_all(x);
    return PLN_OK;
  }
  for (uint32_t i = f.first_change; i < x->n_changes; i++) {
    const flow_change c = x->changes[i];
    flow_list list;
    PLN_TRY(after_loop(x, &all, &range, &f, &c, &list));
    x->lists[c.memory] = list;
  }
  pln_flow_pop(x);
  return PLN_OK;
}
