/* loops.c: the primitives that change the loops of a stage: split, fuse,
 * reorder. Definitions: TVM 0.14, src/te/schedule/schedule_lang.cc. */

#include "te/te.h"

#include <stdlib.h>

static const char *type_name(const pln_te_state *s, uint32_t axis) {
  static const char *const names[] = {
      "DataPar",  "ThreadIndex", "CommReduce",   "Ordered",   "Opaque",
      "Unrolled", "Vectorized",  "Parallelized", "Tensorized"};
  return names[s->axes[axis].type];
}

static bool may_split(pln_iter_type type) {
  return type == PLN_ITER_DATA_PAR || type == PLN_ITER_COMM_REDUCE ||
         type == PLN_ITER_ORDERED;
}

/* ------------------------------------------------------------------- split */

/* values: factor (a 0 stands for none), nparts. */
static pln_status check_factor(pln_te_state *s, const pln_schedule_step *step,
                               pln_term factor) {
  if (factor && !pln_is_integer(s->a, factor))
    return pln_te_refuse(s, step, "axis '%s': a factor must be an integer",
                         pln_te_axis_name(s, step->axes[0]));
  if (pln_is_const(s->a, factor) && pln_const(s->a, factor) <= 0)
    return pln_te_refuse(
        s, step, "axis '%s': a factor must be positive, got %lld",
        pln_te_axis_name(s, step->axes[0]), (long long)pln_const(s->a, factor));
  return PLN_OK;
}

static pln_status read_factors(pln_te_state *s, const pln_schedule_step *step,
                               pln_term *factor, pln_term *nparts) {
  pln_dtype dtype = pln_te_dtype(s, s->axes[step->axes[0]].var);
  *factor = *nparts = PLN_NO_TERM;
  if (step->n_values != 2)
    return pln_te_refuse(s, step,
                         "axis '%s': it needs a factor and a number of parts",
                         pln_te_axis_name(s, step->axes[0]));
  bool by_parts = step->values[1].graph || step->values[1].number != 0;
  bool by_factor = step->values[0].graph || step->values[0].number != 0;
  if (by_parts && by_factor)
    return pln_te_refuse(s, step,
                         "axis '%s': either factor or nparts is given, not "
                         "both",
                         pln_te_axis_name(s, step->axes[0]));
  if (!by_parts)
    PLN_TRY(pln_te_value(s, &step->values[0], dtype, factor));
  else
    PLN_TRY(pln_te_value(s, &step->values[1], dtype, nparts));
  return check_factor(s, step, by_parts ? *nparts : *factor);
}

static pln_status part_of(pln_te_state *s, uint32_t stage, uint32_t parent,
                          const char *suffix, uint32_t *out) {
  pln_symbol name;
  PLN_TRY(pln_te_name(s, s->axes[parent].name, suffix, &name));
  PLN_TRY(pln_te_axis_new(s, stage, name, pln_te_dtype(s, s->axes[parent].var),
                          (pln_iter_type)s->axes[parent].type, PLN_NO_TERM,
                          PLN_NO_TERM, out));
  s->axes[*out].nest = s->axes[parent].nest;
  return PLN_OK;
}

static pln_status split(pln_te_state *s, const pln_schedule_step *step) {
  uint32_t parent = step->axes[0], at, outer, inner;
  pln_term factor, nparts;
  PLN_TRY(pln_te_find_loop(s, step, parent, &at));
  if (!may_split((pln_iter_type)s->axes[parent].type))
    return pln_te_refuse(s, step, "axis '%s' of type %s cannot be split",
                         pln_te_axis_name(s, parent), type_name(s, parent));
  PLN_TRY(read_factors(s, step, &factor, &nparts));
  PLN_TRY(part_of(s, step->stage, parent, ".outer", &outer));
  PLN_TRY(part_of(s, step->stage, parent, ".inner", &inner));
  pln_te_relation r = {.kind = PLN_TE_SPLIT,
                       .a = parent,
                       .b = outer,
                       .c = inner,
                       .factor = factor,
                       .nparts = nparts};
  PLN_TRY(pln_te_relate(s, step->stage, r));
  pln_te_stage *g = &s->stages[step->stage];
  s->axes[parent].step = s->step;
  g->leaves.items[at] = outer;
  PLN_TRY(pln_te_insert(s, &g->leaves, at + 1, inner));
  PLN_TRY(pln_te_push(s, &g->all, outer));
  return pln_te_push(s, &g->all, inner);
}

/* -------------------------------------------------------------------- fuse */

static pln_status check_fused(pln_te_state *s, const pln_schedule_step *step,
                              uint32_t axis, uint32_t *at) {
  PLN_TRY(pln_te_find_loop(s, step, axis, at));
  if (may_split((pln_iter_type)s->axes[axis].type))
    return PLN_OK;
  return pln_te_refuse(s, step, "axis '%s' of type %s cannot be fused",
                       pln_te_axis_name(s, axis), type_name(s, axis));
}

/* The axes lie side by side, in order; of two also in the reverse order. */
static pln_status check_fuse(pln_te_state *s, const pln_schedule_step *step) {
  uint32_t first = 0;
  for (uint32_t i = 0; i < step->n_axes; i++) {
    uint32_t at;
    PLN_TRY(check_fused(s, step, step->axes[i], &at));
    bool reversed = i == 1 && at + 1 == first;
    if (i > 0 && at != first + i && !reversed)
      return pln_te_refuse(
          s, step, "only neighbouring axes can be fused: '%s' and '%s' are not",
          pln_te_axis_name(s, step->axes[i - 1]),
          pln_te_axis_name(s, step->axes[i]));
    if (reversed)
      first = at;
    else if (i == 0)
      first = at;
  }
  return PLN_OK;
}

static pln_dtype wider(const pln_te_state *s, uint32_t x, uint32_t y) {
  pln_dtype a = pln_te_dtype(s, s->axes[x].var);
  pln_dtype b = pln_te_dtype(s, s->axes[y].var);
  return pln_dtype_bits(b) > pln_dtype_bits(a) ? b : a;
}

static pln_status fused_name(pln_te_state *s, uint32_t outer, uint32_t inner,
                             pln_symbol *out) {
  pln_symbol name;
  PLN_TRY(pln_te_name(s, s->axes[outer].name, ".", &name));
  PLN_TRY(pln_te_name(s, name, pln_te_axis_name(s, inner), &name));
  return pln_te_name(s, name, ".fused", out);
}

static pln_status fuse_two(pln_te_state *s, const pln_schedule_step *step,
                           uint32_t outer, uint32_t inner, uint32_t *fused) {
  pln_te_stage *g = &s->stages[step->stage];
  uint32_t x = pln_te_index(&g->leaves, outer);
  uint32_t y = pln_te_index(&g->leaves, inner);
  if (y < x) {
    uint32_t swap = outer;
    outer = inner;
    inner = swap;
    x = y;
  }
  pln_symbol name;
  PLN_TRY(fused_name(s, outer, inner, &name));
  uint8_t type = s->axes[outer].type > s->axes[inner].type
                     ? s->axes[outer].type
                     : s->axes[inner].type;
  PLN_TRY(pln_te_axis_new(s, step->stage, name, wider(s, outer, inner),
                          (pln_iter_type)type, PLN_NO_TERM, PLN_NO_TERM,
                          fused));
  pln_te_relation r = {
      .kind = PLN_TE_FUSE, .a = *fused, .b = outer, .c = inner};
  PLN_TRY(pln_te_relate(s, step->stage, r));
  g = &s->stages[step->stage];
  s->axes[*fused].nest = s->axes[outer].nest;
  s->axes[outer].step = s->axes[inner].step = s->step;
  g->leaves.items[x] = *fused;
  pln_te_remove(&g->leaves, x + 1);
  return pln_te_push(s, &g->all, *fused);
}

/* Of no axis: a loop of one round around all. */
static pln_status singleton(pln_te_state *s, const pln_schedule_step *step) {
  pln_symbol name;
  uint32_t axis;
  if (s->stages[step->stage].kind == PLN_TE_EXTERN)
    return pln_te_refuse(s, step,
                         "its loops are those of its statement: at least one "
                         "axis is needed");
  PLN_TRY(pln_symbol_intern(s->engine, (pln_slice){"singleton", 9}, &name));
  PLN_TRY(pln_te_axis_new(s, step->stage, name, PLN_INT32, PLN_ITER_DATA_PAR,
                          pln_term_int(s->a, PLN_INT32, 1, 0),
                          pln_term_int(s->a, PLN_INT32, 1, 1), &axis));
  PLN_TRY(pln_te_relate(
      s, step->stage,
      (pln_te_relation){
          .kind = PLN_TE_SINGLETON, .a = axis, .b = axis, .c = axis}));
  PLN_TRY(pln_te_push(s, &s->stages[step->stage].all, axis));
  return pln_te_insert(s, &s->stages[step->stage].leaves, 0, axis);
}

/* Loops of a statement: at[i] is the place among the loops that axes[i] gets;
 * NULL: they become one. */
static pln_status check_stmt_loops(pln_te_state *s,
                                   const pln_schedule_step *step,
                                   const uint32_t *at) {
  const pln_te_list *leaves = &s->stages[step->stage].leaves;
  if (s->stages[step->stage].kind != PLN_TE_EXTERN || step->n_axes < 2)
    return PLN_OK;
  PLN_TRY(pln_te_check_nest(s, step));
  if (!at)
    return pln_te_check_order(s, step, step->n_axes, step->axes);
  uint32_t first = at[0], n = at[step->n_axes - 1] - first + 1;
  uint32_t *loops = pln_arena_new(&s->arena, n * sizeof *loops);
  if (!loops)
    return pln_nomem(s->engine);
  memcpy(loops, leaves->items + first, n * sizeof *loops);
  for (uint32_t i = 0; i < step->n_axes; i++)
    loops[at[i] - first] = step->axes[i];
  return pln_te_check_order(s, step, n, loops);
}

static pln_status fuse(pln_te_state *s, const pln_schedule_step *step) {
  if (step->n_axes == 0)
    return singleton(s, step);
  PLN_TRY(check_fuse(s, step));
  PLN_TRY(check_stmt_loops(s, step, NULL));
  uint32_t fused = step->axes[0];
  for (uint32_t i = 1; i < step->n_axes; i++)
    PLN_TRY(fuse_two(s, step, fused, step->axes[i], &fused));
  return PLN_OK;
}

/* ----------------------------------------------------------------- reorder */

static int by_number(const void *x, const void *y) {
  uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
  return a < b ? -1 : a > b;
}

static pln_status check_order(pln_te_state *s, const pln_schedule_step *step,
                              uint32_t *at) {
  for (uint32_t i = 0; i < step->n_axes; i++) {
    uint8_t type = s->axes[step->axes[i]].type;
    PLN_TRY(pln_te_find_loop(s, step, step->axes[i], &at[i]));
    if (type != PLN_ITER_DATA_PAR && type != PLN_ITER_COMM_REDUCE &&
        type != PLN_ITER_THREAD_INDEX)
      return pln_te_refuse(s, step, "axis '%s' of type %s cannot be reordered",
                           pln_te_axis_name(s, step->axes[i]),
                           type_name(s, step->axes[i]));
  }
  qsort(at, step->n_axes, sizeof *at, by_number);
  for (uint32_t i = 1; i < step->n_axes; i++)
    if (at[i] == at[i - 1])
      return pln_te_refuse(
          s, step, "the same axis '%s' cannot appear more than once",
          pln_te_axis_name(s, s->stages[step->stage].leaves.items[at[i]]));
  return PLN_OK;
}

static pln_status reorder(pln_te_state *s, const pln_schedule_step *step) {
  uint32_t *at = pln_arena_new(&s->arena, step->n_axes * sizeof *at);
  if (!at)
    return pln_nomem(s->engine);
  PLN_TRY(check_order(s, step, at));
  PLN_TRY(check_stmt_loops(s, step, at));
  for (uint32_t i = 0; i < step->n_axes; i++)
    s->stages[step->stage].leaves.items[at[i]] = step->axes[i];
  return PLN_OK;
}

pln_status pln_te_apply_loop(pln_te_state *s, const pln_schedule_step *step) {
  switch (step->primitive) {
  case PLN_SCHEDULE_SPLIT: return split(s, step);
  case PLN_SCHEDULE_FUSE: return fuse(s, step);
  default: return reorder(s, step);
  }
}
