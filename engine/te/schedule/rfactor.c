/* rfactor.c: rfactor, which makes an axis of data of a part of a reduction.
 * Definition: TVM 0.14, src/te/schedule/schedule_dataflow_rewrite.cc. */

#include "te/te.h"

#include <stdio.h>

typedef struct factoring {
  pln_te_state *s;
  const pln_schedule_step *step;
  uint32_t origin, stage, axis;
  uint32_t position;        /* of the new dimension */
  pln_te_list untouched;    /* axes without a guard of their own */
  pln_te_list vars, values; /* reduction axes, and their values by leaves */
  pln_te_list reduce;       /* axes of the factored reduction */
  pln_te_list predicates;
  pln_te_reduce old;
  pln_term body; /* the old reduction */
} factoring;

/* ------------------------------------------------------------------ checks */

static pln_status check_rank(factoring *f) {
  const pln_te_stage *g = &f->s->stages[f->origin];
  int64_t at = f->step->n_values ? f->step->values[0].number : 0;
  int64_t rank = g->axis.n;
  if (at < 0)
    at += rank + 1;
  if (at < 0 || at > rank)
    return pln_te_refuse(f->s, f->step,
                         "factor_axis %lld is outside of the %lld dimensions",
                         (long long)f->step->values[0].number, (long long)rank);
  f->position = (uint32_t)at;
  return PLN_OK;
}

/* Masks of all axes that are made of the factored one or of which it is. */
static pln_status check_touched(factoring *f) {
  pln_te_state *s = f->s;
  pln_te_begin_walk(s);
  pln_te_mask(s, f->axis, 1);
  pln_te_pass_up_mask(s, f->origin);
  pln_te_pass_down_mask(s, f->origin);
  const pln_te_list *axis = &s->stages[f->origin].axis;
  for (uint32_t i = 0; i < axis->n; i++)
    if (pln_te_mask_of(s, axis->items[i]))
      return pln_te_refuse(s, f->step,
                           "the factored axis touches the data axis '%s'",
                           pln_te_axis_name(s, axis->items[i]));
  return PLN_OK;
}

static pln_status check(factoring *f) {
  pln_te_state *s = f->s;
  const pln_te_stage *g = &s->stages[f->origin];
  uint32_t at;
  if (g->kind != PLN_TE_COMPUTE)
    return pln_te_refuse(s, f->step, "only a compute can be factored");
  if (g->call)
    return pln_te_refuse(s, f->step,
                         "only a compute can be factored, not the call of an "
                         "intrinsic");
  PLN_TRY(pln_te_find_loop(s, f->step, f->axis, &at));
  if (s->axes[f->axis].type != PLN_ITER_COMM_REDUCE)
    return pln_te_refuse(s, f->step, "axis '%s' is no axis of a reduction",
                         pln_te_axis_name(s, f->axis));
  if (pln_term_kind(s->a, g->body.items[0]) != PLN_REDUCE)
    return pln_te_refuse(s, f->step, "its value is no reduction");
  PLN_TRY(check_rank(f));
  return check_touched(f);
}

/* ----------------------------------------------------------------- analysis */

static pln_status set_ranges(factoring *f) {
  pln_te_state *s = f->s;
  const pln_te_stage *g = &s->stages[f->origin];
  for (uint32_t i = 0; i < g->axis.n; i++)
    PLN_TRY(pln_te_push(s, &f->untouched, g->axis.items[i]));
  for (uint32_t i = 0; i < g->reduce.n; i++) {
    pln_te_axis *x = &s->axes[g->reduce.items[i]];
    PLN_TRY(pln_analyzer_bind_range(s->a, x->var, x->min, x->extent, true));
    if (pln_te_mask_of(s, g->reduce.items[i])) {
      x->low = x->min;
      x->count = x->extent;
    } else {
      PLN_TRY(pln_te_push(s, &f->untouched, g->reduce.items[i]));
    }
  }
  return pln_te_pass_down_domain(s, f->origin, true);
}

/* Leaves that the factored axis touches keep their variables. */
static void set_loop_values(factoring *f) {
  pln_te_state *s = f->s;
  const pln_te_list *leaves = &s->stages[f->origin].leaves;
  for (uint32_t i = 0; i < leaves->n; i++) {
    pln_te_axis *x = &s->axes[leaves->items[i]];
    if (pln_te_mask_of(s, leaves->items[i]))
      pln_te_set_value(s, leaves->items[i],
                       pln_is_value(s->a, x->count, 1) ? x->low : x->var);
  }
}

static pln_status split_axes(factoring *f) {
  pln_te_state *s = f->s;
  const pln_te_stage *g = &s->stages[f->origin];
  for (uint32_t i = 0; i < g->reduce.n; i++) {
    const pln_te_axis *x = &s->axes[g->reduce.items[i]];
    if (!pln_te_mask_of(s, g->reduce.items[i])) {
      PLN_TRY(pln_te_push(s, &f->reduce, g->reduce.items[i]));
      continue;
    }
    PLN_TRY(pln_te_push(s, &f->vars, x->var));
    PLN_TRY(pln_te_push(s, &f->values, x->value));
  }
  for (uint32_t i = 0; i < g->leaves.n; i++)
    if (pln_te_mask_of(s, g->leaves.items[i]) && g->leaves.items[i] != f->axis)
      PLN_TRY(pln_te_push(s, &f->reduce, g->leaves.items[i]));
  return PLN_OK;
}

static pln_status analyse(factoring *f) {
  pln_te_state *s = f->s;
  PLN_TRY(set_ranges(f));
  set_loop_values(f);
  pln_te_pass_up_index(s, f->origin);
  PLN_TRY(
      pln_te_bound_check(s, f->origin, true, &f->untouched, &f->predicates));
  if (!pln_is_value(s->a, s->axes[f->axis].low, 0))
    return pln_te_refuse(s, f->step,
                         "only a reduction whose domain starts from 0 can be "
                         "factored");
  return split_axes(f);
}

/* ------------------------------------------------------- the factored stage */

static pln_status factored_axes(factoring *f) {
  pln_te_state *s = f->s;
  pln_te_list *axis = &s->stages[f->stage].axis;
  const pln_te_list *old = &s->stages[f->origin].axis;
  for (uint32_t i = 0; i <= old->n; i++) {
    if (i == f->position)
      PLN_TRY(pln_te_push(s, axis, f->axis));
    if (i < old->n)
      PLN_TRY(pln_te_push(s, axis, old->items[i]));
  }
  return PLN_OK;
}

/* Axes belong to the factored stage from now on, with the domains that they
 * have by the splits. */
static void take_axes(factoring *f) {
  pln_te_state *s = f->s;
  const pln_te_list *all = &s->stages[f->origin].all;
  for (uint32_t i = 0; i < all->n; i++) {
    pln_te_axis *x = &s->axes[all->items[i]];
    if (pln_te_mask_of(s, all->items[i]) && x->count) {
      x->min = x->low;
      x->extent = x->count;
    }
    x->stage = f->stage;
    x->low = x->count = PLN_NO_TERM;
  }
  s->axes[f->axis].type = PLN_ITER_DATA_PAR;
}

static pln_term condition_of(factoring *f) {
  pln_te_state *s = f->s;
  pln_term all = pln_term_bool(s->a, true);
  for (uint32_t i = 0; i < f->predicates.n; i++)
    all = pln_fold(s->a, PLN_PRIM_AND, all, f->predicates.items[i]);
  return pln_te_likely(s, pln_fold(s->a, PLN_PRIM_AND, all, f->old.condition));
}

static pln_term *replaced_sources(factoring *f) {
  pln_te_state *s = f->s;
  uint32_t n = f->old.n_sources;
  pln_term *sources = pln_arena_new(&s->arena, n * sizeof *sources);
  for (uint32_t i = 0; sources && i < n; i++)
    sources[i] =
        pln_te_substitute(s, pln_term_operand(s->a, f->body, f->old.source + i),
                          f->vars.n, f->vars.items, f->values.items, false);
  return sources;
}

static pln_status factored_shape(factoring *f, pln_term **out) {
  pln_te_state *s = f->s;
  uint32_t old = s->stages[f->origin].first_tensor;
  uint32_t rank = pln_te_rank(s, old);
  *out = pln_arena_new(&s->arena, (rank + 1) * sizeof **out);
  if (!*out)
    return pln_nomem(s->engine);
  for (uint32_t i = 0, k = 0; i <= rank; i++) {
    if (i == f->position)
      (*out)[k++] = s->axes[f->axis].extent;
    if (i < rank)
      (*out)[k++] = pln_te_dim(s, old, i);
  }
  return PLN_OK;
}

static pln_status factored_values(factoring *f) {
  pln_te_state *s = f->s;
  pln_term *sources = replaced_sources(f), *shape;
  if (!sources)
    return pln_nomem(s->engine);
  pln_term condition = pln_te_substitute(s, condition_of(f), f->vars.n,
                                         f->vars.items, f->values.items, false);
  PLN_TRY(factored_shape(f, &shape));
  s->stages[f->stage].first_tensor = s->n_tensors;
  s->stages[f->stage].n_tensors = f->old.n_sources;
  for (uint32_t i = 0; i < f->old.n_sources; i++) {
    uint32_t tensor, old = s->stages[f->origin].first_tensor + i;
    pln_term value =
        pln_te_reduce_new(s, f->body, f->old.n_sources, sources, 0, NULL,
                          f->reduce.n, f->reduce.items, condition, i);
    PLN_TRY(s->a->status);
    PLN_TRY(pln_te_push(s, &s->stages[f->stage].body, value));
    PLN_TRY(pln_te_tensor_new(s, f->stage, i, s->stages[f->stage].name,
                              pln_at(s->a, s->tensors[old].buffer)->type,
                              pln_te_rank(s, old) + 1, shape, &tensor));
  }
  return PLN_OK;
}

/* ----------------------------------------------------- what is left to reduce
 */

static pln_status replacement_axes(factoring *f, pln_te_list *axes) {
  pln_te_state *s = f->s;
  uint32_t old = s->stages[f->origin].first_tensor, axis;
  for (uint32_t i = 0; i < pln_te_rank(s, old); i++) {
    char text[24];
    pln_symbol name;
    pln_term dim = pln_te_dim(s, old, i);
    int n = snprintf(text, sizeof text, "ax%u", i);
    PLN_TRY(pln_symbol_intern(s->engine, (pln_slice){text, (size_t)n}, &name));
    PLN_TRY(pln_te_axis_new(s, f->origin, name, pln_te_dtype(s, dim),
                            PLN_ITER_DATA_PAR, pln_const_like(s->a, dim, 0),
                            dim, &axis));
    PLN_TRY(pln_te_push(s, axes, axis));
  }
  return PLN_OK;
}

static pln_term *factored_loads(factoring *f, const pln_te_list *axes,
                                uint32_t reduce) {
  pln_te_state *s = f->s;
  uint32_t n = f->old.n_sources, rank = axes->n + 1;
  pln_term *loads = pln_arena_new(&s->arena, n * sizeof *loads);
  pln_term *indices = pln_arena_new(&s->arena, rank * sizeof *indices);
  if (!loads || !indices)
    return NULL;
  for (uint32_t i = 0, k = 0; i <= axes->n; i++) {
    if (i == f->position)
      indices[k++] = s->axes[reduce].var;
    if (i < axes->n)
      indices[k++] = s->axes[axes->items[i]].var;
  }
  for (uint32_t i = 0; i < n; i++)
    loads[i] = pln_te_load(s, s->stages[f->stage].first_tensor + i, indices);
  return loads;
}

/* An init of the old reduction starts this one, once. */
static pln_status replacement_values(factoring *f, const pln_te_list *axes,
                                     uint32_t reduce) {
  pln_te_state *s = f->s;
  uint32_t n = f->old.n_sources;
  pln_term *loads = factored_loads(f, axes, reduce);
  if (!loads)
    return pln_nomem(s->engine);
  pln_te_list *body = &s->stages[f->origin].body;
  for (uint32_t i = 0; i < n; i++)
    body->items[i] = pln_te_reduce_new(s, f->body, n, loads, 0, NULL, 1,
                                       &reduce, pln_term_bool(s->a, true), i);
  return s->a->status;
}

/* The store predicate is of the new data axes. */
static pln_status replace_predicate(factoring *f, const pln_te_list *axes) {
  pln_te_state *s = f->s;
  pln_te_stage *g = &s->stages[f->origin];
  pln_te_list from = {0}, to = {0};
  if (!g->predicate)
    return PLN_OK;
  for (uint32_t i = 0; i < axes->n; i++) {
    PLN_TRY(pln_te_push(s, &from, s->axes[g->axis.items[i]].var));
    PLN_TRY(pln_te_push(s, &to, s->axes[axes->items[i]].var));
  }
  g->predicate =
      pln_te_substitute(s, g->predicate, from.n, from.items, to.items, false);
  return s->a->status;
}

static pln_status replace(factoring *f, pln_term low, pln_term count) {
  pln_te_state *s = f->s;
  pln_te_list axes = {0}, reduces = {0};
  pln_symbol name;
  uint32_t reduce;
  PLN_TRY(pln_te_name(s, s->axes[f->axis].name, ".v", &name));
  PLN_TRY(pln_te_axis_new(s, f->origin, name,
                          pln_te_dtype(s, s->axes[f->axis].var),
                          PLN_ITER_COMM_REDUCE, low, count, &reduce));
  PLN_TRY(replacement_axes(f, &axes));
  PLN_TRY(replacement_values(f, &axes, reduce));
  PLN_TRY(replace_predicate(f, &axes));
  PLN_TRY(pln_te_push(s, &reduces, reduce));
  PLN_TRY(pln_te_name(s, s->stages[f->origin].name, ".repl",
                      &s->stages[f->origin].name));
  s->stages[f->origin].axis = axes;
  s->stages[f->origin].reduce = reduces;
  return pln_te_stage_reset(s, f->origin);
}

static pln_status factor(factoring *f) {
  pln_te_state *s = f->s;
  pln_symbol name;
  PLN_TRY(pln_te_name(s, s->stages[f->origin].name, ".rf", &name));
  PLN_TRY(pln_te_stage_new(s, PLN_TE_COMPUTE, name, &f->stage));
  PLN_TRY(factored_axes(f));
  take_axes(f);
  pln_term low = s->axes[f->axis].min, count = s->axes[f->axis].extent;
  PLN_TRY(factored_values(f));
  s->stages[f->stage].reduce = f->reduce;
  PLN_TRY(pln_te_stage_reset(s, f->stage));
  return replace(f, low, count);
}

/* Of the loops only the data axes have an image in the stage that is left. */
static pln_status check_predicate(const factoring *f) {
  pln_te_state *s = f->s;
  const pln_te_stage *g = &s->stages[f->origin];
  for (uint32_t i = 0; g->predicate && i < g->all.n; i++) {
    uint32_t axis = g->all.items[i];
    if (pln_te_index(&g->axis, axis) == PLN_NONE &&
        pln_term_uses(s->a, g->predicate, s->axes[axis].var))
      return pln_te_refuse(s, f->step,
                           "its store predicate depends on '%s', which the "
                           "stage does not have afterwards",
                           pln_te_axis_name(s, axis));
  }
  return PLN_OK;
}

/* values[0]: the position of the new dimension, 0 if it is left out. */
pln_status pln_te_rfactor(pln_te_state *s, const pln_schedule_step *step) {
  factoring f = {
      .s = s, .step = step, .origin = step->stage, .axis = step->axes[0]};
  PLN_TRY(check(&f));
  f.body = s->stages[f.origin].body.items[0];
  f.old = pln_te_reduce_of(s, f.body);
  if (f.old.n_inits > 0)
    return pln_te_refuse(s, step,
                         "a reduction with an init cannot be factored");
  PLN_TRY(check_predicate(&f));
  pln_status status = analyse(&f);
  if (status != PLN_OK) {
    const pln_te_list *all = &s->stages[f.origin].all;
    for (uint32_t i = 0; i < all->n; i++)
      s->axes[all->items[i]].low = s->axes[all->items[i]].count = PLN_NO_TERM;
    return status;
  }
  PLN_TRY(factor(&f));
  uint32_t group = s->stages[f.origin].group;
  s->stages[f.stage].group = group;
  if (group != PLN_NONE)
    s->stages[group].n_children++;
  return pln_te_insert(s, &s->order, pln_te_index(&s->order, f.origin),
                       f.stage);
}
