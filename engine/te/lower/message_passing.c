/* message_passing.c: what is known of some axes of a stage, passed on to those
 * that its relations make of them. Definitions: TVM 0.14,
 * src/te/schedule/message_passing.cc.
 *
 * Down leads from an operation's axes to the leaves, in the order of the
 * relations; up leads back. Values, sets and masks are valid at the present
 * stamp; ranges are those of the axes. */

#include "arith/iter/index_map.h"
#include "te/te.h"

#include <stdio.h>

void pln_te_begin_walk(pln_te_state *s) {
  s->stamp++;
}

static pln_term zero_of(pln_te_state *s, uint32_t axis) {
  return pln_const_like(s->a, s->axes[axis].var, 0);
}

static bool is_zero(const pln_te_state *s, pln_term t) {
  return pln_is_value(s->a, t, 0);
}

/* ------------------------------------------------------------------ domains */

static pln_term ceil_div(pln_te_state *s, pln_term x, pln_term by) {
  pln_analyzer *a = s->a;
  pln_term rest = pln_fold(a, PLN_PRIM_FLOORMOD, x, by);
  if (pln_prove(a, pln_fold(a, PLN_PRIM_EQ, rest, pln_const_like(a, rest, 0)),
                0))
    return pln_simplify_term(a, pln_fold(a, PLN_PRIM_FLOORDIV, x, by), 2);
  pln_term more = pln_add(a, x, pln_add_const(a, by, -1));
  return pln_simplify_term(a, pln_fold(a, PLN_PRIM_FLOORDIV, more, by), 2);
}

/* y, unless x is known to be less. */
static pln_term lesser(pln_te_state *s, pln_term x, pln_term y) {
  bool less = pln_prove(s->a, pln_fold(s->a, PLN_PRIM_LT, x, y), 0);
  return pln_simplify_term(s->a, less ? x : y, 2);
}

/* The first range of an axis stands; another one must be equal. */
static pln_status set_range(pln_te_state *s, uint32_t axis, pln_term min,
                            pln_term extent) {
  pln_te_axis *x = &s->axes[axis];
  pln_dtype dtype = pln_te_dtype(s, x->var);
  min = pln_fold_cast(s->a, dtype, min);
  extent = pln_fold_cast(s->a, dtype, extent);
  if (!min || !extent)
    return s->a->status;
  if (!x->count) {
    x->low = min;
    x->count = extent;
    return pln_analyzer_bind_range(s->a, x->var, min, extent, true);
  }
  if (is_zero(s, x->low) && pln_proves_equal(s->a, extent, x->count))
    return PLN_OK;
  char had[128] = "?", wants[128] = "?";
  if (pln_is_const(s->a, x->count))
    snprintf(had, sizeof had, "%lld", (long long)pln_const(s->a, x->count));
  if (pln_is_const(s->a, extent))
    snprintf(wants, sizeof wants, "%lld", (long long)pln_const(s->a, extent));
  return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                        "schedule: the domain of '%s' is inferred already; "
                        "cannot prove that the extents %s and %s are the same",
                        pln_te_axis_name(s, axis), had, wants);
}

/* Axes from which a thread's loop is made, by stamp: their extents are not
 * reduced to what there is. */
static void mark_bound(pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  s->stamp++;
  for (uint32_t i = 0; i < g->leaves.n; i++)
    if (s->axes[g->leaves.items[i]].bind != PLN_NONE)
      pln_te_mask(s, g->leaves.items[i], 1);
  pln_te_pass_up_mask(s, stage);
}

static pln_status split_down(pln_te_state *s, const pln_te_relation *r,
                             const uint8_t *bound) {
  pln_term extent = s->axes[r->a].count;
  pln_term by = r->factor ? r->factor : r->nparts;
  uint32_t first = r->factor ? r->c : r->b; /* has the given extent */
  uint32_t other = r->factor ? r->b : r->c;
  pln_term least =
      bound[first == r->c] || is_zero(s, extent) ? by : lesser(s, extent, by);
  PLN_TRY(set_range(s, first, zero_of(s, first), least));
  return set_range(s, other, zero_of(s, other), ceil_div(s, extent, by));
}

static void fuse_down(pln_te_state *s, const pln_te_relation *r) {
  pln_te_axis *fused = &s->axes[r->a];
  pln_dtype dtype = pln_te_dtype(s, fused->var);
  pln_term x = pln_fold_cast(s->a, dtype, s->axes[r->b].count);
  pln_term y = pln_fold_cast(s->a, dtype, s->axes[r->c].count);
  fused->low = zero_of(s, r->a);
  fused->count = pln_mul(s->a, x, y);
}

static pln_status refuse_domain(const pln_te_state *s, uint32_t axis) {
  return pln_diag_error(s->engine, PLN_ERR_INVALID, NULL,
                        "schedule: the domain of '%s' is unknown",
                        pln_te_axis_name(s, axis));
}

/* The new axes hold what the ranges are mapped to, counted from 0. */
static pln_status transform_down(pln_te_state *s, const pln_te_transform *t,
                                 bool partial) {
  pln_term counts[PLN_MOST_AXES], extents[PLN_MOST_AXES];
  uint32_t n;
  for (uint32_t i = 0; i < t->n_from; i++) {
    counts[i] = s->axes[t->from[i]].count;
    if (!counts[i])
      return partial ? PLN_OK : refuse_domain(s, t->from[i]);
  }
  PLN_TRY(pln_index_map_shape(t->map, s->a, t->n_from, counts, extents, &n));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(set_range(s, t->to[i], zero_of(s, t->to[i]), extents[i]));
  return PLN_OK;
}

static pln_status domain_down(pln_te_state *s, const pln_te_relation *r,
                              bool partial, const uint8_t *bound) {
  bool known = s->axes[r->a].count;
  switch ((pln_te_relation_kind)r->kind) {
  case PLN_TE_FUSE:
    if (s->axes[r->b].count && s->axes[r->c].count)
      fuse_down(s, r);
    return PLN_OK;
  case PLN_TE_SINGLETON:
    return set_range(s, r->a, zero_of(s, r->a),
                     pln_const_like(s->a, s->axes[r->a].var, 1));
  case PLN_TE_REBASE:
    return known ? set_range(s, r->b, zero_of(s, r->b), s->axes[r->a].count)
                 : PLN_OK;
  case PLN_TE_TRANSFORM: return transform_down(s, r->transform, partial);
  case PLN_TE_SPLIT: break;
  }
  if (!known)
    return partial ? PLN_OK : refuse_domain(s, r->a);
  return split_down(s, r, bound);
}

static pln_status bind_threads(pln_te_state *s, uint32_t stage) {
  const pln_te_list *all = &s->stages[stage].all;
  for (uint32_t i = 0; i < all->n; i++) {
    const pln_te_axis *x = &s->axes[all->items[i]];
    if (x->bind != PLN_NONE && x->count)
      PLN_TRY(set_range(s, x->bind, x->low, x->count));
  }
  return PLN_OK;
}

pln_status pln_te_pass_down_domain(pln_te_state *s, uint32_t stage,
                                   bool partial) {
  uint32_t n = s->stages[stage].n_relations;
  uint8_t(*bound)[2] = pln_arena_new(&s->arena, (n + 1) * sizeof *bound);
  if (!bound)
    return pln_nomem(s->engine);
  memset(bound, 0, n * sizeof *bound);
  if (!partial) { /* then nothing else is kept at the present stamp */
    mark_bound(s, stage);
    for (uint32_t i = 0; i < n; i++) {
      const pln_te_relation *r = &s->stages[stage].relations[i];
      bound[i][0] = pln_te_mask_of(s, r->b);
      bound[i][1] = pln_te_mask_of(s, r->c);
    }
  }
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(domain_down(s, &s->stages[stage].relations[i], partial, bound[i]));
  return partial ? PLN_OK : bind_threads(s, stage);
}

/* --------------------------------------------------------------------- sets */

static pln_term last_of(pln_te_state *s, uint32_t axis) {
  const pln_te_axis *x = &s->axes[axis];
  return pln_add_const(s->a, pln_add(s->a, x->low, x->count), -1);
}

static pln_interval range_set(pln_te_state *s, uint32_t axis) {
  return (pln_interval){s->axes[axis].low, last_of(s, axis)};
}

static bool ends_equal(pln_te_state *s, pln_term x, pln_term y) {
  return x == y || (!pln_is_infinite(x) && !pln_is_infinite(y) &&
                    pln_proves_equal(s->a, x, y));
}

static bool covers(pln_te_state *s, uint32_t axis) {
  pln_interval all = range_set(s, axis), set = s->axes[axis].set;
  return ends_equal(s, set.min, all.min) && ends_equal(s, set.max, all.max);
}

static void set_set(pln_te_state *s, uint32_t axis, pln_interval set) {
  s->axes[axis].set = set;
  s->axes[axis].set_at = s->stamp;
}

/* min + max of an expression in two axes. */
static pln_interval evaluate(pln_te_state *s, pln_term t, uint32_t x,
                             uint32_t y) {
  pln_term vars[2] = {s->axes[x].var, s->axes[y].var};
  pln_interval sets[2] = {s->axes[x].set, s->axes[y].set};
  return pln_interval_of(s->a, t, 2, vars, sets, false);
}

static void split_up(pln_te_state *s, const pln_te_relation *r) {
  pln_term index;
  if (covers(s, r->b) && covers(s, r->c)) {
    set_set(s, r->a, range_set(s, r->a));
    return;
  }
  index = pln_mul(s->a, s->axes[r->b].var, s->axes[r->c].count);
  index = pln_add(s->a, index, s->axes[r->c].var);
  index = pln_add(s->a, index, s->axes[r->a].low);
  set_set(s, r->a, evaluate(s, index, r->b, r->c));
}

static pln_term offset(pln_te_state *s, uint32_t axis, pln_term t) {
  pln_term low = s->axes[axis].low;
  t = pln_fold_cast(s->a, pln_te_dtype(s, s->axes[axis].var), t);
  return is_zero(s, low) ? t : pln_add(s->a, low, t);
}

static pln_interval divided(pln_te_state *s, pln_kind kind, pln_interval set,
                            pln_term by, uint32_t axis) {
  return (pln_interval){offset(s, axis, pln_fold(s->a, kind, set.min, by)),
                        offset(s, axis, pln_fold(s->a, kind, set.max, by))};
}

static bool divides(pln_te_state *s, pln_term x, pln_term by) {
  pln_term rest = pln_fold(s->a, PLN_PRIM_FLOORMOD, x, by);
  return is_zero(s, pln_simplify_term(s->a, rest, 2));
}

/* The set of the inner axis of a fused one, of which a range is used. */
static pln_interval inner_set(pln_te_state *s, const pln_te_relation *r,
                              pln_interval set) {
  pln_term row = s->axes[r->c].count;
  pln_term n = pln_simplify_term(
      s->a, pln_add_const(s->a, pln_sub(s->a, set.max, set.min), 1), 2);
  if (pln_is_value(s->a, n, 0))
    return range_set(s, r->c);
  if (divides(s, row, n) && divides(s, set.min, n))
    return divided(s, PLN_PRIM_FLOORMOD, set, row, r->c);
  if (!divides(s, n, row) || !divides(s, set.min, row))
    pln_diag_warn(s->engine, NULL,
                  "schedule: '%s' and the axes that it fuses are not aligned; "
                  "this may cause redundant computations",
                  pln_te_axis_name(s, r->a));
  return range_set(s, r->c);
}

static void fuse_up(pln_te_state *s, const pln_te_relation *r) {
  pln_interval set = s->axes[r->a].set;
  pln_term row = s->axes[r->c].count;
  if (covers(s, r->a) || pln_is_infinite(set.min) || pln_is_infinite(set.max)) {
    set_set(s, r->b, range_set(s, r->b));
    set_set(s, r->c, range_set(s, r->c));
    return;
  }
  set_set(s, r->b, divided(s, PLN_PRIM_FLOORDIV, set, row, r->b));
  set_set(s, r->c,
          set.min == set.max ? divided(s, PLN_PRIM_FLOORMOD, set, row, r->c)
                             : inner_set(s, r, set));
}

static void rebase_up(pln_te_state *s, const pln_te_relation *r) {
  if (covers(s, r->b)) {
    set_set(s, r->a, range_set(s, r->a));
    return;
  }
  pln_interval set = s->axes[r->b].set;
  pln_term low = s->axes[r->a].low;
  if (!pln_is_infinite(set.min))
    set.min = pln_add(s->a, set.min, low);
  if (!pln_is_infinite(set.max))
    set.max = pln_add(s->a, set.max, low);
  set_set(s, r->a, set);
}

static void transform_up(pln_te_state *s, const pln_te_transform *t) {
  pln_term vars[PLN_MOST_AXES];
  pln_interval sets[PLN_MOST_AXES];
  bool whole = true;
  for (uint32_t i = 0; i < t->n_to; i++) {
    whole = whole && covers(s, t->to[i]);
    vars[i] = s->axes[t->to[i]].var;
    sets[i] = s->axes[t->to[i]].set;
  }
  for (uint32_t i = 0; i < t->n_from; i++) {
    pln_interval set = range_set(s, t->from[i]);
    if (!whole) {
      pln_term value = offset(s, t->from[i], t->inverse[i]);
      set = pln_interval_of(s->a, value, t->n_to, vars, sets, false);
    }
    set_set(s, t->from[i], set);
  }
}

pln_status pln_te_pass_up_domain(pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  for (uint32_t i = g->n_relations; i-- > 0;) {
    const pln_te_relation *r = &g->relations[i];
    switch ((pln_te_relation_kind)r->kind) {
    case PLN_TE_SPLIT: split_up(s, r); break;
    case PLN_TE_FUSE: fuse_up(s, r); break;
    case PLN_TE_REBASE: rebase_up(s, r); break;
    case PLN_TE_SINGLETON: break;
    case PLN_TE_TRANSFORM: transform_up(s, r->transform); break;
    }
  }
  return s->a->status;
}

/* ------------------------------------------------------------------ indices */

static void split_index_up(pln_te_state *s, const pln_te_relation *r) {
  pln_analyzer *a = s->a;
  if (!pln_te_has_value(s, r->b) || !pln_te_has_value(s, r->c))
    return;
  pln_term outer = pln_mul(a, s->axes[r->b].value, s->axes[r->c].count);
  pln_term value = pln_add(a, s->axes[r->c].value, outer);
  if (!is_zero(s, s->axes[r->a].low))
    value = pln_add(a, value, s->axes[r->a].low);
  pln_te_set_value(s, r->a, value);
}

static void fuse_index_up(pln_te_state *s, const pln_te_relation *r) {
  pln_analyzer *a = s->a;
  if (!pln_te_has_value(s, r->a))
    return;
  pln_term value = s->axes[r->a].value;
  pln_term row = pln_fold_cast(a, pln_te_dtype(s, value), s->axes[r->c].count);
  pln_te_set_value(s, r->b,
                   offset(s, r->b, pln_fold(a, PLN_PRIM_FLOORDIV, value, row)));
  pln_te_set_value(s, r->c,
                   offset(s, r->c, pln_fold(a, PLN_PRIM_FLOORMOD, value, row)));
}

static void transform_index_up(pln_te_state *s, const pln_te_transform *t) {
  pln_term vars[PLN_MOST_AXES], values[PLN_MOST_AXES];
  for (uint32_t i = 0; i < t->n_to; i++) {
    if (!pln_te_has_value(s, t->to[i]))
      return;
    vars[i] = s->axes[t->to[i]].var;
    values[i] =
        pln_fold_cast(s->a, pln_te_dtype(s, vars[i]), s->axes[t->to[i]].value);
  }
  for (uint32_t i = 0; i < t->n_from; i++) {
    pln_term value =
        pln_te_substitute(s, t->inverse[i], t->n_to, vars, values, false);
    value = pln_simplify_term(s->a, value, 2);
    pln_te_set_value(s, t->from[i], offset(s, t->from[i], value));
  }
}

void pln_te_pass_up_index(pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  for (uint32_t i = g->n_relations; i-- > 0;) {
    const pln_te_relation *r = &g->relations[i];
    if (r->kind == PLN_TE_SPLIT)
      split_index_up(s, r);
    else if (r->kind == PLN_TE_FUSE)
      fuse_index_up(s, r);
    else if (r->kind == PLN_TE_TRANSFORM)
      transform_index_up(s, r->transform);
    else if (r->kind == PLN_TE_REBASE && pln_te_has_value(s, r->b))
      pln_te_set_value(
          s, r->a,
          is_zero(s, s->axes[r->a].low)
              ? s->axes[r->b].value
              : pln_add(s->a, s->axes[r->b].value, s->axes[r->a].low));
  }
}

static void split_index_down(pln_te_state *s, const pln_te_relation *r) {
  pln_term value = s->axes[r->a].value, by = s->axes[r->c].count;
  pln_te_set_value(s, r->b, pln_fold(s->a, PLN_PRIM_FLOORDIV, value, by));
  pln_te_set_value(s, r->c, pln_fold(s->a, PLN_PRIM_FLOORMOD, value, by));
}

static void transform_index_down(pln_te_state *s, const pln_te_transform *t) {
  pln_term values[PLN_MOST_AXES], indices[PLN_MOST_AXES];
  uint32_t n;
  for (uint32_t i = 0; i < t->n_from; i++) {
    if (!pln_te_has_value(s, t->from[i]))
      return;
    values[i] =
        pln_sub(s->a, s->axes[t->from[i]].value, s->axes[t->from[i]].low);
  }
  pln_status status =
      pln_index_map_apply(t->map, s->a, t->n_from, values, indices, &n);
  if (status != PLN_OK) {
    pln_arith_fail(s->a, status);
    return;
  }
  for (uint32_t i = 0; i < n; i++)
    pln_te_set_value(s, t->to[i], indices[i]);
}

void pln_te_pass_down_index(pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  for (uint32_t i = 0; i < g->n_relations; i++) {
    const pln_te_relation *r = &g->relations[i];
    bool has_parts = pln_te_has_value(s, r->b) && pln_te_has_value(s, r->c);
    if (r->kind == PLN_TE_SPLIT && pln_te_has_value(s, r->a))
      split_index_down(s, r);
    else if (r->kind == PLN_TE_FUSE && has_parts)
      pln_te_set_value(
          s, r->a,
          pln_add(s->a, pln_mul(s->a, s->axes[r->b].value, s->axes[r->c].count),
                  s->axes[r->c].value));
    else if (r->kind == PLN_TE_REBASE && pln_te_has_value(s, r->a))
      pln_te_set_value(s, r->b, s->axes[r->a].value);
    else if (r->kind == PLN_TE_SINGLETON)
      pln_te_set_value(s, r->a, zero_of(s, r->a));
    else if (r->kind == PLN_TE_TRANSFORM)
      transform_index_down(s, r->transform);
  }
}

/* -------------------------------------------------------------------- masks */

uint8_t pln_te_mask_of(const pln_te_state *s, uint32_t axis) {
  const pln_te_axis *x = &s->axes[axis];
  return x->mask_at == s->stamp ? x->mask : 0;
}

void pln_te_mask(pln_te_state *s, uint32_t axis, uint8_t mask) {
  s->axes[axis].mask = pln_te_mask_of(s, axis) | mask;
  s->axes[axis].mask_at = s->stamp;
}

/* Each of the one list is made of all of the other. */
static void mask_all(pln_te_state *s, uint32_t n, const uint32_t *from,
                     uint32_t m, const uint32_t *to) {
  uint8_t mask = 0;
  for (uint32_t i = 0; i < n; i++)
    mask |= pln_te_mask_of(s, from[i]);
  for (uint32_t i = 0; i < m; i++)
    pln_te_mask(s, to[i], mask);
}

void pln_te_pass_down_mask(pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  for (uint32_t i = 0; i < g->n_relations; i++) {
    const pln_te_relation *r = &g->relations[i];
    if (r->kind == PLN_TE_FUSE) {
      pln_te_mask(s, r->a, pln_te_mask_of(s, r->b) | pln_te_mask_of(s, r->c));
    } else if (r->kind == PLN_TE_TRANSFORM) {
      const pln_te_transform *t = r->transform;
      mask_all(s, t->n_from, t->from, t->n_to, t->to);
    } else if (r->kind != PLN_TE_SINGLETON) {
      pln_te_mask(s, r->b, pln_te_mask_of(s, r->a));
      if (r->kind == PLN_TE_SPLIT)
        pln_te_mask(s, r->c, pln_te_mask_of(s, r->a));
    }
  }
}

void pln_te_mark_origins(pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  pln_te_begin_walk(s);
  for (uint32_t i = 0; i < g->axis.n; i++)
    pln_te_mask(s, g->axis.items[i], PLN_TE_OF_DIMENSION);
  for (uint32_t i = 0; i < g->reduce.n; i++)
    pln_te_mask(s, g->reduce.items[i], PLN_TE_OF_REDUCTION);
  pln_te_pass_down_mask(s, stage);
}

void pln_te_pass_up_mask(pln_te_state *s, uint32_t stage) {
  const pln_te_stage *g = &s->stages[stage];
  for (uint32_t i = g->n_relations; i-- > 0;) {
    const pln_te_relation *r = &g->relations[i];
    if (r->kind == PLN_TE_FUSE) {
      pln_te_mask(s, r->b, pln_te_mask_of(s, r->a));
      pln_te_mask(s, r->c, pln_te_mask_of(s, r->a));
    } else if (r->kind == PLN_TE_SPLIT) {
      pln_te_mask(s, r->a, pln_te_mask_of(s, r->b) | pln_te_mask_of(s, r->c));
    } else if (r->kind == PLN_TE_TRANSFORM) {
      const pln_te_transform *t = r->transform;
      mask_all(s, t->n_to, t->to, t->n_from, t->from);
    } else if (r->kind == PLN_TE_REBASE) {
      pln_te_mask(s, r->a, pln_te_mask_of(s, r->b));
    }
  }
}
