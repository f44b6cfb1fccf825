/* layout.c: transform_layout: the elements of a stage's tensors lie in memory
 * where a map of indices says, and its loops run in that order. Definition: TVM
 * 0.14, Stage::transform_layout in src/te/schedule/schedule_lang.cc.
 *
 * The map is text, T.index_map(lambda i: (i // 4, i % 4)), which lowering puts
 * on the Buffers for tir.ApplyLayoutTransforms. The loops need the way back:
 * the map must be bijective. A placeholder has no loops. */

#include "arith/iter/index_map.h"
#include "te/te.h"

#include <stdio.h>

typedef struct layout {
  pln_te_state *s;
  const pln_schedule_step *step;
  const pln_graph *map;
  pln_te_list from; /* the axes whose values are mapped */
  uint32_t at;      /* the position of the first one among the loops */
  pln_term old[PLN_MOST_AXES]; /* extents, variables, and */
  pln_term old_vars[PLN_MOST_AXES];
  uint32_t n_to;
  pln_term extents[PLN_MOST_AXES]; /* the same of what they are mapped to */
  pln_term vars[PLN_MOST_AXES];
  pln_term inverse[PLN_MOST_AXES]; /* the old ones, by `vars` */
} layout;

/* ------------------------------------------------------------------- checks */

static bool is_of_scan(const pln_te_state *s, uint32_t stage) {
  for (uint32_t i = 0; i < s->n_stages; i++) {
    const pln_te_stage *g = &s->stages[i];
    for (uint32_t k = 0; g->kind == PLN_TE_SCAN && k < 3 * g->n_tensors; k++)
      if (s->tensors[g->body.items[k]].stage == stage)
        return true;
  }
  return false;
}

static pln_status check_kind(const layout *x) {
  const pln_te_state *s = x->s;
  const pln_te_stage *g = &s->stages[x->step->stage];
  if (g->kind != PLN_TE_COMPUTE && g->kind != PLN_TE_PLACEHOLDER)
    return pln_te_refuse(s, x->step,
                         "only a compute and a placeholder have a layout");
  if (is_of_scan(s, x->step->stage))
    return pln_te_refuse(s, x->step,
                         "it is part of a scan, in whose tensor it lies");
  for (uint32_t i = 0; i < g->axis.n; i++)
    if (s->axes[g->axis.items[i]].align_factor != 0)
      return pln_te_refuse(s, x->step,
                           "the stride of axis '%s' is aligned, which is not "
                           "kept in another layout",
                           pln_te_axis_name(s, g->axis.items[i]));
  if (!x->step->text)
    return pln_te_refuse(s, x->step, "it needs a map of indices");
  return PLN_OK;
}

/* The state keeps the map. */
static pln_status read_map(layout *x) {
  pln_te_state *s = x->s;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->maps, &s->cap_maps,
                       (size_t)s->n_maps + 1, sizeof(pln_graph *)));
  PLN_TRY(pln_index_map_parse(s->engine,
                              pln_symbol_text(s->engine, x->step->text),
                              &s->maps[s->n_maps]));
  x->map = s->maps[s->n_maps++];
  return PLN_OK;
}

static const pln_te_transform *last_transform(const pln_te_stage *g) {
  for (uint32_t i = g->n_relations; i-- > 0;)
    if (g->relations[i].kind == PLN_TE_TRANSFORM)
      return g->relations[i].transform;
  return NULL;
}

/* The loops that run over the layout as it is. */
static pln_status find_axes(layout *x) {
  pln_te_state *s = x->s;
  const pln_te_stage *g = &s->stages[x->step->stage];
  const pln_te_transform *last = last_transform(g);
  x->from = g->axis;
  if (last)
    x->from = (pln_te_list){last->to, last->n_to, last->n_to};
  else if (g->layouts.n > 0)
    return pln_te_refuse(s, x->step,
                         "its loops are not those of its layout any more");
  for (uint32_t i = 0; i < x->from.n; i++) {
    uint32_t at;
    PLN_TRY(pln_te_find_loop(s, x->step, x->from.items[i], &at));
    if (i == 0)
      x->at = at;
    if (at != x->at + i)
      return pln_te_refuse(s, x->step,
                           "axis '%s' does not follow '%s' any more: the axes "
                           "of a layout must be neighbours in their order",
                           pln_te_axis_name(s, x->from.items[i]),
                           pln_te_axis_name(s, x->from.items[i - 1]));
  }
  return PLN_OK;
}

/* The extents of the layout as it is, and variables that run over them. */
static pln_status find_extents(layout *x) {
  pln_te_state *s = x->s;
  const pln_te_stage *g = &s->stages[x->step->stage];
  uint32_t rank =
      g->layouts.n ? g->layout_shape.n : pln_te_rank(s, g->first_tensor);
  if (rank == 0 || rank >= PLN_MOST_AXES)
    return pln_te_refuse(s, x->step, "its tensor has %u dimensions", rank);
  for (uint32_t i = 0; i < rank; i++) {
    x->old[i] = g->layouts.n ? g->layout_shape.items[i]
                             : pln_te_dim(s, g->first_tensor, i);
    x->old_vars[i] = pln_term_fresh(s->a, x->old[i], "i");
  }
  return s->a->status;
}

static uint32_t rank_of(const layout *x) {
  const pln_te_stage *g = &x->s->stages[x->step->stage];
  return g->layouts.n ? g->layout_shape.n : pln_te_rank(x->s, g->first_tensor);
}

static pln_status check_separators(const layout *x) {
  int64_t last = 0;
  if (x->step->n_values > 0 && x->s->stages[x->step->stage].double_buffer)
    return pln_te_refuse(x->s, x->step,
                         "it is a double buffer, which has one dimension in "
                         "memory: its layout has no axis separators");
  for (uint32_t i = 0; i < x->step->n_values; i++) {
    int64_t at = x->step->values[i].number;
    if (x->step->values[i].graph || at <= last || at >= x->n_to)
      return pln_te_refuse(x->s, x->step,
                           "axis separators stand between indices, in order");
    last = at;
  }
  return PLN_OK;
}

/* No index lies before the memory. */
static pln_status check_minima(layout *x) {
  pln_analyzer *a = x->s->a;
  pln_term_domain domains[PLN_MOST_AXES];
  pln_term indices[PLN_MOST_AXES], min, max;
  for (uint32_t i = 0; i < rank_of(x); i++)
    domains[i] =
        (pln_term_domain){x->old_vars[i], pln_const_like(a, x->old[i], 0),
                          pln_add_const(a, x->old[i], -1)};
  PLN_TRY(pln_index_map_apply(x->map, a, rank_of(x), x->old_vars, indices,
                              &x->n_to));
  for (uint32_t i = 0; i < x->n_to; i++) {
    pln_term zero = pln_const_like(a, x->old[0], 0);
    PLN_TRY(pln_analyzer_int_set(a, indices[i], rank_of(x), domains, false,
                                 &min, &max));
    if (pln_is_infinite(min) ||
        !pln_prove(a, pln_fold(a, PLN_PRIM_GE, min, zero), 0))
      return pln_te_refuse(x->s, x->step,
                           "index %u of the map may be less than 0", i);
  }
  return a->status;
}

/* ------------------------------------------------------------------ inverse */

static pln_status refuse_map(const layout *x) {
  return pln_te_refuse(x->s, x->step,
                       "the map of indices is not bijective on the shape, so "
                       "that the loops cannot run in its order");
}

static pln_term product(pln_analyzer *a, uint32_t n, const pln_term *extents) {
  pln_term p = extents[0];
  for (uint32_t i = 1; i < n; i++)
    p = pln_mul(a, p, extents[i]);
  return p;
}

/* An old variable that the inverse does not have has the value 0. */
static pln_status take_values(layout *x, uint32_t n, const pln_term *vars,
                              const pln_term *values) {
  pln_analyzer *a = x->s->a;
  for (uint32_t i = 0; i < rank_of(x); i++) {
    x->inverse[i] = PLN_NO_TERM;
    for (uint32_t k = 0; k < n; k++)
      if (vars[k] == x->old_vars[i])
        x->inverse[i] = values[k];
    if (x->inverse[i])
      continue;
    if (!pln_is_value(a, x->old[i], 1))
      return refuse_map(x);
    x->inverse[i] = pln_const_like(a, x->old[i], 0);
  }
  return a->status;
}

static pln_status invert_with(layout *x, pln_iter_map *map,
                              const pln_term *indices) {
  pln_term_range ranges[PLN_MOST_AXES];
  pln_term vars[PLN_MOST_AXES], values[PLN_MOST_AXES];
  uint32_t sums[PLN_MOST_AXES], n_vars, n = rank_of(x);
  pln_analyzer *a = x->s->a;
  bool found;
  for (uint32_t i = 0; i < n; i++)
    ranges[i] = (pln_term_range){x->old_vars[i],
                                 pln_const_like(a, x->old[i], 0), x->old[i]};
  PLN_TRY(pln_iter_map_detect(map, x->n_to, indices, n, ranges, PLN_NO_TERM,
                              PLN_ITER_BIJECTIVE, false, sums, &found));
  if (!found || !pln_proves_equal(a, product(a, n, x->old),
                                  product(a, x->n_to, x->extents)))
    return refuse_map(x);
  for (uint32_t i = 0; i < x->n_to; i++)
    x->vars[i] = pln_term_fresh(a, x->extents[i], "axis");
  PLN_TRY(pln_iter_map_inverse(map, x->n_to, sums, x->vars, PLN_MOST_AXES, vars,
                               values, &n_vars));
  return take_values(x, n_vars, vars, values);
}

static pln_status invert(layout *x) {
  pln_iter_map *map;
  pln_term indices[PLN_MOST_AXES];
  PLN_TRY(pln_index_map_apply(x->map, x->s->a, rank_of(x), x->old_vars, indices,
                              &x->n_to));
  PLN_TRY(pln_iter_map_new(x->s->a, &map));
  pln_status status = invert_with(x, map, indices);
  pln_iter_map_free(map);
  return status;
}

/* -------------------------------------------------------------------- loops */

static pln_status new_axis(layout *x, uint32_t i, uint32_t *out) {
  pln_te_state *s = x->s;
  char text[24];
  pln_symbol name;
  int n = snprintf(text, sizeof text, "axis%u", i);
  PLN_TRY(pln_symbol_intern(s->engine, (pln_slice){text, (size_t)n}, &name));
  PLN_TRY(pln_te_axis_new(s, x->step->stage, name,
                          pln_te_dtype(s, x->extents[i]), PLN_ITER_DATA_PAR,
                          pln_const_like(s->a, x->extents[i], 0), x->extents[i],
                          out));
  return pln_te_push(s, &s->stages[x->step->stage].all, *out);
}

/* The new axes, and the way back by their variables. */
static pln_status fill_transform(layout *x, pln_te_transform *t) {
  pln_te_state *s = x->s;
  pln_term vars[PLN_MOST_AXES];
  t->map = x->map;
  t->n_from = x->from.n;
  t->n_to = x->n_to;
  t->from = pln_arena_new(&s->arena, t->n_from * sizeof *t->from);
  t->to = pln_arena_new(&s->arena, t->n_to * sizeof *t->to);
  t->inverse = pln_arena_new(&s->arena, t->n_from * sizeof *t->inverse);
  if (!t->from || !t->to || !t->inverse)
    return pln_nomem(s->engine);
  memcpy(t->from, x->from.items, t->n_from * sizeof *t->from);
  for (uint32_t i = 0; i < t->n_to; i++) {
    PLN_TRY(new_axis(x, i, &t->to[i]));
    vars[i] = s->axes[t->to[i]].var;
  }
  for (uint32_t i = 0; i < t->n_from; i++)
    t->inverse[i] =
        pln_te_substitute(s, x->inverse[i], t->n_to, x->vars, vars, false);
  return s->a->status;
}

static pln_status transform_loops(layout *x) {
  pln_te_state *s = x->s;
  pln_te_transform *t = pln_arena_new(&s->arena, sizeof *t);
  if (!t)
    return pln_nomem(s->engine);
  PLN_TRY(fill_transform(x, t));
  pln_te_relation r = {.kind = PLN_TE_TRANSFORM,
                       .a = t->from[0],
                       .b = t->from[0],
                       .c = t->from[0],
                       .transform = t};
  PLN_TRY(pln_te_relate(s, x->step->stage, r));
  pln_te_list *leaves = &s->stages[x->step->stage].leaves;
  for (uint32_t i = 0; i < t->n_from; i++) {
    s->axes[t->from[i]].step = s->step;
    pln_te_remove(leaves, x->at);
  }
  for (uint32_t i = 0; i < t->n_to; i++)
    PLN_TRY(pln_te_insert(s, leaves, x->at + i, t->to[i]));
  return PLN_OK;
}

static pln_status note_layout(layout *x) {
  pln_te_state *s = x->s;
  pln_te_stage *g = &s->stages[x->step->stage];
  PLN_TRY(pln_te_push(s, &g->layouts, x->step->text));
  g->layout_shape.n = g->separators.n = 0;
  for (uint32_t i = 0; i < x->n_to; i++)
    PLN_TRY(pln_te_push(s, &g->layout_shape, x->extents[i]));
  for (uint32_t i = 0; i < x->step->n_values; i++)
    PLN_TRY(
        pln_te_push(s, &g->separators, (uint32_t)x->step->values[i].number));
  return PLN_OK;
}

pln_status pln_te_transform_layout(pln_te_state *s,
                                   const pln_schedule_step *step) {
  layout x = {.s = s, .step = step};
  bool loops = s->stages[step->stage].kind == PLN_TE_COMPUTE;
  PLN_TRY(check_kind(&x));
  PLN_TRY(read_map(&x));
  if (loops)
    PLN_TRY(find_axes(&x));
  PLN_TRY(find_extents(&x));
  PLN_TRY(
      pln_index_map_shape(x.map, s->a, rank_of(&x), x.old, x.extents, &x.n_to));
  if (x.n_to == 0)
    return pln_te_refuse(s, step, "the map of indices gives no index");
  PLN_TRY(check_separators(&x));
  if (!loops)
    PLN_TRY(check_minima(&x));
  if (loops) {
    PLN_TRY(invert(&x));
    PLN_TRY(transform_loops(&x));
  }
  return note_layout(&x);
}
