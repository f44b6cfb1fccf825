/* bound_check.c: the guards of a stage's loops. Definition: TVM 0.14,
 * PassUpBoundCheck and MakeBoundCheck in src/te/schedule/message_passing.cc. */

#include "te/te.h"

/* The value of an axis is the inverse of a map of indices. */
enum { BY_MAP = 2 };

typedef struct check {
  pln_te_state *s;
  uint32_t stage;
  pln_term *vars; /* of all axes with a range, and */
  pln_interval *sets;
  uint32_t n;
  pln_te_list *out;
  pln_te_list *axes; /* the axis of each condition, or NULL */
  uint32_t axis;     /* that is tested */
} check;

/* An axis that a split may run out of needs a guard; what is made of such axes
 * passes the need up. The masks of the axes may be in use, hence a table. */
static bool split_runs_out(pln_te_state *s, const pln_te_relation *r) {
  pln_term parts = s->axes[r->b].count, each = s->axes[r->c].count;
  if (!parts || !each || !s->axes[r->a].count)
    return true;
  return !pln_proves_equal(s->a, s->axes[r->a].count,
                           pln_mul(s->a, each, parts));
}

/* Only what belongs to the stage is cleared: the table is of all axes. */
static void clear(pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  for (uint32_t i = 0; i < g->all.n; i++)
    s->flags[g->all.items[i]] = 0;
  for (uint32_t i = 0; i < g->n_relations; i++) {
    const pln_te_relation *r = &g->relations[i];
    s->flags[r->a] = s->flags[r->b] = s->flags[r->c] = 0;
  }
}

static void pass_up(check *c, uint8_t *of) {
  pln_te_state *s = c->s;
  const pln_te_stage *g = &s->stages[c->stage];
  for (uint32_t i = g->n_relations; i-- > 0;) {
    const pln_te_relation *r = &g->relations[i];
    if (r->kind == PLN_TE_SPLIT)
      of[r->a] = of[r->b] || of[r->c] || split_runs_out(s, r);
    else if (r->kind == PLN_TE_FUSE)
      of[r->b] = of[r->c] = of[r->a];
    else if (r->kind == PLN_TE_REBASE)
      of[r->a] = of[r->b];
    else if (r->kind == PLN_TE_TRANSFORM)
      for (uint32_t k = 0; k < r->transform->n_from; k++)
        of[r->transform->from[k]] = BY_MAP; /* the range may be a part */
  }
}

static pln_status collect_sets(check *c) {
  pln_te_state *s = c->s;
  const pln_te_stage *g = &s->stages[c->stage];
  size_t n = g->all.n + 1u;
  c->vars = pln_arena_new(&s->arena, n * 2 * sizeof *c->vars);
  c->sets = pln_arena_new(&s->arena, n * 2 * sizeof *c->sets);
  if (!c->vars || !c->sets)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < g->all.n; i++) {
    const pln_te_axis *x = &s->axes[g->all.items[i]];
    if (!x->count)
      continue;
    pln_interval set = {
        x->low, pln_add_const(s->a, pln_add(s->a, x->low, x->count), -1)};
    c->vars[c->n] = x->var;
    c->sets[c->n++] = set;
    if (x->bind != PLN_NONE) {
      c->vars[c->n] = s->axes[x->bind].var;
      c->sets[c->n++] = set;
    }
  }
  return PLN_OK;
}

static bool proves(check *c, pln_kind kind, pln_term x, pln_term y) {
  if (pln_is_infinite(x) || !x)
    return false;
  return pln_prove(c->s->a, pln_fold(c->s->a, kind, x, y), 0);
}

static pln_status guard(check *c, pln_kind kind, pln_term x, pln_term y) {
  if (c->axes)
    PLN_TRY(pln_te_push(c->s, c->axes, c->axis));
  return pln_te_push(c->s, c->out, pln_fold(c->s->a, kind, x, y));
}

/* Sets of the ends may be over variables that have ranges themselves. */
static pln_interval set_of(check *c, pln_term value) {
  return pln_interval_of(c->s->a, value, c->n, c->vars, c->sets, true);
}

static pln_status guard_range(check *c, uint32_t axis, bool by_map) {
  pln_te_state *s = c->s;
  const pln_te_axis *x = &s->axes[axis];
  pln_term value = pln_sub(s->a, x->value, x->low);
  c->axis = axis;
  if (by_map)
    value = pln_simplify_term(s->a, value, 2);
  pln_interval set = set_of(c, value);
  return proves(c, PLN_PRIM_LT, set.max, x->count)
             ? PLN_OK
             : guard(c, PLN_PRIM_LT, value, x->count);
}

static pln_status guard_declared(check *c, uint32_t axis) {
  pln_te_state *s = c->s;
  const pln_te_axis *x = &s->axes[axis];
  c->axis = axis;
  if (x->low == x->min && x->count == x->extent)
    return PLN_OK;
  if (pln_proves_equal(s->a, x->low, x->min) &&
      pln_proves_equal(s->a, x->count, x->extent))
    return PLN_OK;
  pln_term value = pln_sub(s->a, x->value, x->min);
  pln_interval set = set_of(c, value);
  pln_term zero = pln_const_like(s->a, value, 0);
  if (!proves(c, PLN_PRIM_GE, set.min, zero))
    PLN_TRY(guard(c, PLN_PRIM_GE, value, zero));
  if (!proves(c, PLN_PRIM_LT, set.max, x->extent))
    PLN_TRY(guard(c, PLN_PRIM_LT, value, x->extent));
  return PLN_OK;
}

static bool is_skipped(const check *c, const pln_te_list *skip, uint32_t axis) {
  const pln_te_axis *x = &c->s->axes[axis];
  return x->type == PLN_ITER_OPAQUE || !x->count ||
         !pln_te_has_value(c->s, axis) ||
         (skip && pln_te_index(skip, axis) != PLN_NONE);
}

static pln_status guard_axes(check *c, const uint8_t *of,
                             const pln_te_list *skip) {
  const pln_te_stage *g = &c->s->stages[c->stage];
  for (uint32_t i = 0; i < g->all.n; i++)
    if (of[g->all.items[i]] && !is_skipped(c, skip, g->all.items[i]))
      PLN_TRY(guard_range(c, g->all.items[i], of[g->all.items[i]] == BY_MAP));
  return PLN_OK;
}

static pln_status guard_roots(check *c, const pln_te_list *roots,
                              const pln_te_list *skip) {
  for (uint32_t i = 0; i < roots->n; i++)
    if (!is_skipped(c, skip, roots->items[i]))
      PLN_TRY(guard_declared(c, roots->items[i]));
  return PLN_OK;
}

static pln_status run_check(check *c, bool skip_declared,
                            const pln_te_list *skip) {
  pln_te_state *s = c->s;
  PLN_TRY(collect_sets(c));
  PLN_TRY(
      pln_mem_grow(s->engine, (void **)&s->flags, &s->cap_flags, s->n_axes, 1));
  clear(s, c->stage);
  pass_up(c, s->flags);
  PLN_TRY(guard_axes(c, s->flags, skip));
  if (!skip_declared) {
    PLN_TRY(guard_roots(c, &s->stages[c->stage].axis, skip));
    PLN_TRY(guard_roots(c, &s->stages[c->stage].reduce, skip));
  }
  return s->a->status;
}

pln_status pln_te_bound_check(pln_te_state *s, uint32_t stage,
                              bool skip_declared, const pln_te_list *skip,
                              pln_te_list *out) {
  check c = {.s = s, .stage = stage, .out = out};
  return run_check(&c, skip_declared, skip);
}

pln_status pln_te_bound_check_by_axis(pln_te_state *s, uint32_t stage,
                                      pln_te_list *out, pln_te_list *axes) {
  check c = {.s = s, .stage = stage, .out = out, .axes = axes};
  return run_check(&c, false, NULL);
}
