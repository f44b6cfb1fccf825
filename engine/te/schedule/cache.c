/* cache.c: cache_read and cache_write, which add a stage and change what other
 * stages read. Definitions: TVM 0.14,
 * src/te/schedule/schedule_dataflow_rewrite.cc. */

#include "te/te.h"

#include <stdio.h>

/* A stage that the step adds stands at `position` in the order, and in the
 * group of `like`. */
static pln_status place(pln_te_state *s, uint32_t stage, uint32_t position,
                        uint32_t like) {
  uint32_t group = s->stages[like].group;
  s->stages[stage].group = group;
  if (group != PLN_NONE)
    s->stages[group].n_children++;
  return pln_te_insert(s, &s->order, position, stage);
}

static uint32_t position_of(const pln_te_state *s, uint32_t stage) {
  return pln_te_index(&s->order, stage);
}

/* -------------------------------------------------------------- cache_read */

static pln_status cache_name(pln_te_state *s, uint32_t tensor, pln_symbol scope,
                             pln_symbol *out) {
  const pln_te_tensor *t = &s->tensors[tensor];
  char suffix[32] = ".";
  if (s->stages[t->stage].n_tensors > 1)
    snprintf(suffix, sizeof suffix, ".v%u.", t->index);
  PLN_TRY(pln_te_name(s, s->stages[t->stage].name, suffix, out));
  return pln_te_name(s, *out, pln_symbol_text(s->engine, scope).data, out);
}

/* A name that no stage has. */
static pln_status unique_name(pln_te_state *s, pln_symbol *name) {
  for (uint32_t i = 0; i < s->n_stages; i++)
    if (s->stages[i].name == *name) {
      PLN_TRY(pln_te_name(s, *name, ".d", name));
      i = UINT32_MAX; /* begins again at 0 */
    }
  return PLN_OK;
}

/* The copy: cache[ax0, ax1, ...] = tensor[ax0, ax1, ...]. */
static pln_status build_copy(pln_te_state *s, uint32_t tensor, uint32_t stage) {
  uint32_t rank = pln_te_rank(s, tensor), axis, cache;
  pln_term *shape = pln_arena_new(&s->arena, rank * sizeof *shape);
  pln_term *indices = pln_arena_new(&s->arena, rank * sizeof *indices);
  if (!shape || !indices)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < rank; i++) {
    char text[24];
    pln_symbol name;
    shape[i] = pln_te_dim(s, tensor, i);
    int n = snprintf(text, sizeof text, "ax%u", i);
    PLN_TRY(pln_symbol_intern(s->engine, (pln_slice){text, (size_t)n}, &name));
    PLN_TRY(pln_te_axis_new(
        s, stage, name, pln_te_dtype(s, shape[i]), PLN_ITER_DATA_PAR,
        pln_const_like(s->a, shape[i], 0), shape[i], &axis));
    PLN_TRY(pln_te_push(s, &s->stages[stage].axis, axis));
    indices[i] = s->axes[axis].var;
  }
  pln_type type = pln_at(s->a, s->tensors[tensor].buffer)->type;
  s->stages[stage].first_tensor = s->n_tensors;
  s->stages[stage].n_tensors = 1;
  PLN_TRY(pln_te_tensor_new(s, stage, 0, s->stages[stage].name, type, rank,
                            shape, &cache));
  pln_term load = pln_te_load(s, tensor, indices);
  return pln_te_push(s, &s->stages[stage].body, load);
}

static bool reads(pln_te_state *s, uint32_t reader, uint32_t tensor) {
  bool found = false;
  const pln_te_stage *g = &s->stages[reader];
  if (g->kind == PLN_TE_EXTERN) {
    for (uint32_t i = g->n_tensors; i < g->body.n; i++)
      found |= g->body.items[i] == s->tensors[tensor].buffer;
    return found;
  }
  for (uint32_t i = 0; i < g->body.n && !found; i++)
    found = pln_term_uses(s->a, g->body.items[i], s->tensors[tensor].buffer);
  return found;
}

static void redirect_terms(pln_te_state *s, pln_te_list *terms, uint32_t tensor,
                           uint32_t cache) {
  for (uint32_t i = 0; i < terms->n; i++)
    terms->items[i] =
        pln_te_substitute(s, terms->items[i], 1, &s->tensors[tensor].buffer,
                          &s->tensors[cache].buffer, false);
}

static void redirect(pln_te_state *s, uint32_t reader, uint32_t tensor,
                     uint32_t cache) {
  redirect_terms(s, &s->stages[reader].body, tensor, cache);
  redirect_terms(s, &s->stages[reader].regions, tensor, cache);
}

/* values: the numbers of the readers. */
static pln_status check_readers(pln_te_state *s, const pln_schedule_step *step,
                                uint32_t tensor) {
  const char *name = pln_te_stage_name(s, s->tensors[tensor].stage);
  for (uint32_t i = 0; i < step->n_values; i++) {
    int64_t reader = step->values[i].number;
    if (step->values[i].graph || reader < 0 || reader >= s->n_stages)
      return pln_te_refuse(s, step, "there is no such reader");
    if (s->stages[reader].kind == PLN_TE_SCAN)
      return pln_te_refuse(s, step, "a scan does not read through a cache");
    if (!reads(s, (uint32_t)reader, tensor))
      return pln_te_refuse(s, step, "cannot find '%s' in the inputs of '%s'",
                           name, pln_te_stage_name(s, (uint32_t)reader));
    for (uint32_t k = 0; k < i; k++)
      if (step->values[k].number == reader)
        return pln_te_refuse(s, step, "'%s' is given twice",
                             pln_te_stage_name(s, (uint32_t)reader));
  }
  return PLN_OK;
}

pln_status pln_te_cache_read(pln_te_state *s, const pln_schedule_step *step) {
  uint32_t stage;
  pln_symbol name;
  if (step->n_tensors != 1 || !step->text)
    return pln_te_refuse(s, step, "it needs one tensor and a scope");
  uint32_t tensor = step->tensors[0], origin = s->tensors[tensor].stage;
  PLN_TRY(check_readers(s, step, tensor));
  PLN_TRY(cache_name(s, tensor, step->text, &name));
  PLN_TRY(unique_name(s, &name));
  PLN_TRY(pln_te_stage_new(s, PLN_TE_COMPUTE, name, &stage));
  s->stages[stage].scope = step->text;
  PLN_TRY(build_copy(s, tensor, stage));
  PLN_TRY(pln_te_stage_reset(s, stage));
  for (uint32_t i = 0; i < step->n_values; i++)
    redirect(s, (uint32_t)step->values[i].number, tensor,
             s->stages[stage].first_tensor);
  return place(s, stage, position_of(s, origin) + 1, origin);
}

/* ------------------------------------------------------------- cache_write */

/* The new axes, and what becomes of the old ones in the cache's expressions and
 * of the cache's indices in the original's. */
typedef struct relayout {
  pln_te_state *s;
  uint32_t origin, stage;
  pln_te_list leaves;      /* data leaves of the original */
  pln_te_list loop_vars;   /* those of them that are loops, and */
  pln_te_list cache_vars;  /* the variables of the new axes */
  pln_te_list axis_vars;   /* variables of the old axes, and */
  pln_te_list axis_values; /* their values by the leaves */
  pln_te_list predicates, indices, shape;
} relayout;

static bool is_reduction(const pln_te_state *s, uint32_t stage, uint32_t axis) {
  return s->axes[axis].type == PLN_ITER_COMM_REDUCE ||
         pln_te_index(&s->stages[stage].reduce, axis) != PLN_NONE;
}

/* A loop that dimensions and reduction axes were fused to has no place in the
 * cache. */
static pln_status check_fused(pln_te_state *s, const pln_schedule_step *step) {
  const pln_te_stage *g = &s->stages[step->stage];
  pln_te_mark_origins(s, step->stage);
  for (uint32_t i = 0; i < g->leaves.n; i++)
    if (pln_te_mask_of(s, g->leaves.items[i]) ==
        (PLN_TE_OF_DIMENSION | PLN_TE_OF_REDUCTION))
      return pln_te_refuse(s, step,
                           "axis '%s': only data parallel dimensions can be "
                           "relaid, and it is fused with a reduction axis",
                           pln_te_axis_name(s, g->leaves.items[i]));
  return PLN_OK;
}

static pln_status check_write(pln_te_state *s, const pln_schedule_step *step) {
  const pln_te_stage *g = &s->stages[step->stage];
  if (g->kind != PLN_TE_COMPUTE)
    return pln_te_refuse(s, step, "only a compute has a cache to write to");
  if (!step->text)
    return pln_te_refuse(s, step, "it needs a scope");
  if (step->n_tensors != g->n_tensors)
    return pln_te_refuse(
        s, step, "all %u outputs of one operation must be cached together",
        g->n_tensors);
  for (uint32_t i = 0; i < step->n_tensors; i++) {
    if (s->tensors[step->tensors[i]].stage != step->stage)
      return pln_te_refuse(
          s, step, "'%s' is no output of it",
          pln_te_stage_name(s, s->tensors[step->tensors[i]].stage));
    for (uint32_t k = 0; k < i; k++)
      if (step->tensors[k] == step->tensors[i])
        return pln_te_refuse(s, step, "an output is given twice");
  }
  for (uint32_t i = 0; i < g->leaves.n; i++) {
    uint32_t axis = g->leaves.items[i];
    if (!is_reduction(s, step->stage, axis) &&
        s->axes[axis].type != PLN_ITER_DATA_PAR)
      return pln_te_refuse(
          s, step, "axis '%s': only data parallel dimensions can be relaid",
          pln_te_axis_name(s, axis));
  }
  return check_fused(s, step);
}

static void clear_ranges(pln_te_state *s, uint32_t stage) {
  const pln_te_list *all = &s->stages[stage].all;
  for (uint32_t i = 0; i < all->n; i++)
    s->axes[all->items[i]].low = s->axes[all->items[i]].count = PLN_NO_TERM;
}

/* Ranges of all axes that come from dimensions. */
static pln_status set_ranges(relayout *r) {
  pln_te_state *s = r->s;
  const pln_te_list *axis = &s->stages[r->origin].axis;
  for (uint32_t i = 0; i < axis->n; i++) {
    pln_te_axis *x = &s->axes[axis->items[i]];
    x->low = x->min;
    x->count = x->extent;
    PLN_TRY(pln_analyzer_bind_range(s->a, x->var, x->low, x->count, true));
  }
  return pln_te_pass_down_domain(s, r->origin, true);
}

/* One new axis for each loop over data. */
static pln_status new_axis(relayout *r, uint32_t loop) {
  pln_te_state *s = r->s;
  pln_symbol name;
  uint32_t axis;
  pln_term low = s->axes[loop].low, count = s->axes[loop].count;
  PLN_TRY(pln_te_name(s, s->axes[loop].name, ".c", &name));
  PLN_TRY(pln_te_axis_new(s, r->stage, name, pln_te_dtype(s, s->axes[loop].var),
                          (pln_iter_type)s->axes[loop].type, low, count,
                          &axis));
  PLN_TRY(pln_te_push(s, &s->stages[r->stage].axis, axis));
  PLN_TRY(pln_te_push(s, &r->leaves, loop));
  PLN_TRY(pln_te_push(s, &r->shape, count));
  if (pln_is_value(s->a, count, 1)) {
    pln_te_set_value(s, loop, low);
    return PLN_OK;
  }
  pln_te_set_value(s, loop, s->axes[loop].var);
  PLN_TRY(pln_te_push(s, &r->loop_vars, s->axes[loop].var));
  return pln_te_push(s, &r->cache_vars, s->axes[axis].var);
}

static pln_status map_to_cache(relayout *r) {
  pln_te_state *s = r->s;
  pln_te_begin_walk(s);
  for (uint32_t i = 0; i < s->stages[r->origin].leaves.n; i++) {
    uint32_t axis = s->stages[r->origin].leaves.items[i];
    if (!is_reduction(s, r->origin, axis))
      PLN_TRY(new_axis(r, axis));
  }
  pln_te_pass_up_index(s, r->origin);
  PLN_TRY(pln_te_bound_check(s, r->origin, true, &s->stages[r->origin].reduce,
                             &r->predicates));
  const pln_te_list *axis = &s->stages[r->origin].axis;
  for (uint32_t i = 0; i < axis->n; i++) {
    const pln_te_axis *x = &s->axes[axis->items[i]];
    if (!pln_te_has_value(s, axis->items[i]))
      continue;
    PLN_TRY(pln_te_push(s, &r->axis_vars, x->var));
    PLN_TRY(pln_te_push(s, &r->axis_values, x->value));
  }
  return PLN_OK;
}

/* Where the original reads the cache. */
static pln_status map_from_cache(relayout *r) {
  pln_te_state *s = r->s;
  const pln_te_list *axis = &s->stages[r->origin].axis;
  pln_te_begin_walk(s);
  for (uint32_t i = 0; i < axis->n; i++)
    pln_te_set_value(s, axis->items[i], s->axes[axis->items[i]].var);
  pln_te_pass_down_index(s, r->origin);
  for (uint32_t i = 0; i < r->leaves.n; i++)
    PLN_TRY(pln_te_push(s, &r->indices, s->axes[r->leaves.items[i]].value));
  return PLN_OK;
}

static pln_term all_of(pln_te_state *s, const pln_te_list *conditions) {
  pln_term all = PLN_NO_TERM;
  for (uint32_t i = 0; i < conditions->n; i++)
    all = all ? pln_fold(s->a, PLN_PRIM_AND, all, conditions->items[i])
              : conditions->items[i];
  return all;
}

/* TVM's InjectPredicate: of a reduction a condition, else a select. */
static pln_term under_condition(pln_te_state *s, pln_term body,
                                pln_term condition) {
  if (!condition)
    return body;
  if (pln_term_kind(s->a, body) != PLN_REDUCE) {
    const pln_term_node *n = pln_at(s->a, body);
    pln_term zero = pln_is_float_dtype((pln_dtype)n->dtype)
                        ? pln_term_float(s->a, (pln_dtype)n->dtype, 0)
                        : pln_const_like(s->a, body, 0);
    return pln_term_select(s->a, condition, body, zero);
  }
  pln_te_reduce x = pln_te_reduce_of(s, body);
  pln_term both = pln_fold(s->a, PLN_PRIM_AND, x.condition, condition),
           *operands;
  uint32_t n = pln_at(s->a, body)->n;
  operands = pln_arena_new(&s->arena, n * sizeof *operands);
  if (!operands)
    return pln_arith_fail(s->a, pln_nomem(s->engine));
  for (uint32_t i = 0; i < n; i++)
    operands[i] = pln_term_operand(s->a, body, i);
  operands[1] = pln_te_likely(s, both);
  return pln_term_with(s->a, body, operands);
}

static pln_term cached_body(relayout *r, pln_term body) {
  pln_te_state *s = r->s;
  body = pln_te_substitute(s, body, r->axis_vars.n, r->axis_vars.items,
                           r->axis_values.items, false);
  body = under_condition(s, body, all_of(s, &r->predicates));
  return pln_te_substitute(s, body, r->loop_vars.n, r->loop_vars.items,
                           r->cache_vars.items, false);
}

static pln_status fill_cache(relayout *r) {
  pln_te_state *s = r->s;
  const pln_te_list *body = &s->stages[r->origin].body;
  s->stages[r->stage].first_tensor = s->n_tensors;
  s->stages[r->stage].n_tensors = s->stages[r->origin].n_tensors;
  for (uint32_t i = 0; i < body->n; i++) {
    uint32_t old = s->stages[r->origin].first_tensor + i, cache;
    pln_type type = pln_at(s->a, s->tensors[old].buffer)->type;
    PLN_TRY(pln_te_tensor_new(s, r->stage, i, s->stages[r->stage].name, type,
                              r->shape.n, r->shape.items, &cache));
    body = &s->stages[r->origin].body;
    pln_term value = cached_body(r, body->items[i]);
    PLN_TRY(pln_te_push(s, &s->stages[r->stage].body, value));
    s->stages[r->origin].body.items[i] =
        pln_te_load(s, cache, r->indices.items);
    body = &s->stages[r->origin].body;
  }
  return s->a->status;
}

/* An expression of the original, over the axes of the cache. */
static pln_term over_cache(relayout *r, pln_term t) {
  pln_te_state *s = r->s;
  t = pln_te_substitute(s, t, r->axis_vars.n, r->axis_vars.items,
                        r->axis_values.items, false);
  return pln_te_substitute(s, t, r->loop_vars.n, r->loop_vars.items,
                           r->cache_vars.items, false);
}

/* The axes of the reduction go with it; their domains may depend on others. */
static pln_status move_reduction(relayout *r) {
  pln_te_state *s = r->s;
  pln_te_list reduce = s->stages[r->origin].reduce;
  s->stages[r->stage].reduce = reduce;
  s->stages[r->origin].reduce = (pln_te_list){0};
  for (uint32_t i = 0; i < reduce.n; i++) {
    pln_te_axis *x = &s->axes[reduce.items[i]];
    x->stage = r->stage;
    x->min = over_cache(r, x->min);
    x->extent = over_cache(r, x->extent);
  }
  return s->a->status;
}

/* ------------------------------------------- cache_write of an intrinsic's
 * call
 */

/* The loops of the original by the axes of the cache: those around the
 * intrinsic, the reductions around it, what it computes, its reductions. */
static pln_status call_leaves(relayout *r, const pln_te_list *old, uint32_t at,
                              pln_te_list *out) {
  pln_te_state *s = r->s;
  pln_te_list axis = s->stages[r->stage].axis;
  pln_te_list reduce = s->stages[r->stage].reduce;
  uint32_t inner = PLN_NONE, data = 0;
  for (uint32_t i = at; inner == PLN_NONE && i < old->n; i++)
    inner = pln_te_index(&reduce, old->items[i]);
  inner = inner == PLN_NONE ? reduce.n : inner;
  while (data < axis.n && pln_te_index(old, r->leaves.items[data]) < at)
    PLN_TRY(pln_te_push(s, out, axis.items[data++]));
  for (uint32_t i = 0; i < inner; i++)
    PLN_TRY(pln_te_push(s, out, reduce.items[i]));
  while (data < axis.n)
    PLN_TRY(pln_te_push(s, out, axis.items[data++]));
  for (uint32_t i = inner; i < reduce.n; i++)
    PLN_TRY(pln_te_push(s, out, reduce.items[i]));
  return PLN_OK;
}

static void end_call(pln_te_state *s, uint32_t stage) {
  pln_te_stage *g = &s->stages[stage];
  s->axes[g->call - 1].loop = 0;
  s->axes[g->call - 1].intrin = NULL;
  g->call = 0;
  g->regions = g->scalars = (pln_te_list){0};
}

/* The intrinsic computes the cache, and the original is a copy. */
static pln_status move_call(relayout *r, const pln_te_list *old) {
  pln_te_state *s = r->s;
  uint32_t begin = s->stages[r->origin].call - 1;
  uint32_t k = pln_te_index(&r->leaves, begin);
  uint32_t axis = k == PLN_NONE ? begin : s->stages[r->stage].axis.items[k];
  const pln_te_intrin *intrin = s->axes[begin].intrin;
  pln_te_list leaves = {0};
  PLN_TRY(call_leaves(r, old, pln_te_index(old, begin), &leaves));
  pln_te_stage *from = &s->stages[r->origin], *to = &s->stages[r->stage];
  to->leaves = leaves;
  to->regions = from->regions;
  to->scalars = from->scalars;
  for (uint32_t i = 0; i < to->regions.n; i++)
    to->regions.items[i] = over_cache(r, to->regions.items[i]);
  for (uint32_t i = 1; i < to->scalars.n; i += 2)
    to->scalars.items[i] = over_cache(r, to->scalars.items[i]);
  end_call(s, r->origin);
  to->call = 1 + axis;
  s->axes[axis].loop = PLN_ITER_TENSORIZED;
  s->axes[axis].intrin = intrin;
  return s->a->status;
}

static pln_status relay(relayout *r) {
  pln_te_state *s = r->s;
  PLN_TRY(set_ranges(r));
  PLN_TRY(map_to_cache(r));
  PLN_TRY(map_from_cache(r));
  clear_ranges(s, r->origin);
  PLN_TRY(fill_cache(r));
  PLN_TRY(move_reduction(r));
  PLN_TRY(pln_te_stage_reset(s, r->stage));
  if (s->stages[r->origin].call)
    PLN_TRY(move_call(r, &s->stages[r->origin].leaves));
  return pln_te_stage_reset(s, r->origin);
}

pln_status pln_te_cache_write(pln_te_state *s, const pln_schedule_step *step) {
  relayout r = {.s = s, .origin = step->stage};
  pln_symbol name;
  PLN_TRY(check_write(s, step));
  PLN_TRY(pln_te_name(s, s->stages[step->stage].name, ".", &name));
  PLN_TRY(
      pln_te_name(s, name, pln_symbol_text(s->engine, step->text).data, &name));
  PLN_TRY(pln_te_stage_new(s, PLN_TE_COMPUTE, name, &r.stage));
  s->stages[r.stage].scope = step->text;
  PLN_TRY(relay(&r));
  return place(s, r.stage, position_of(s, r.origin), r.origin);
}
