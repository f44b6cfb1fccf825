/* apply.c: applies one step to a state, and what the primitives share: checks
 * of axes and values, and messages that name step, stage, axis and history. */

#include "te/te.h"

#include <stdio.h>

static const struct {
  int min_axes, max_axes;
} arity[] = {
#define PRIMITIVE(ID, name, min_axes, max_axes, doc) {min_axes, max_axes},
#include "perilune/te_primitives.def"
#undef PRIMITIVE
};

pln_status pln_te_refuse(const pln_te_state *s, const pln_schedule_step *step,
                         const char *format, ...) {
  char text[768];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const char *name = step ? pln_primitive_name(step->primitive) : "scan";
  if (!step || step->stage >= s->n_stages ||
      step->primitive == PLN_SCHEDULE_THREAD_AXIS)
    return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                          "schedule step %u, %s: %s", s->step, name, text);
  return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                        "schedule step %u, %s of stage '%s': %s", s->step, name,
                        pln_te_stage_name(s, step->stage), text);
}

/* ------------------------------------------------------------------ leaves */

/* "i.outer, i.inner, k" */
static void list_axes(const pln_te_state *s, const pln_te_list *axes,
                      char *text, size_t size) {
  size_t at = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < axes->n && at + 4 < size; i++) {
    int n = snprintf(text + at, size - at, "%s%s", i ? ", " : "",
                     pln_te_axis_name(s, axes->items[i]));
    at += n > 0 ? (size_t)n : 0;
  }
}

static bool is_from(const pln_te_transform *t, uint32_t axis) {
  for (uint32_t i = 0; i < t->n_from; i++)
    if (t->from[i] == axis)
      return true;
  return false;
}

static pln_status refuse_used(const pln_te_state *s,
                              const pln_schedule_step *step, uint32_t axis) {
  const pln_te_stage *g = &s->stages[step->stage];
  char loops[384];
  list_axes(s, &g->leaves, loops, sizeof loops);
  const char *name = pln_te_axis_name(s, axis);
  unsigned by = s->axes[axis].step;
  for (uint32_t i = 0; i < g->n_relations; i++) {
    const pln_te_relation *r = &g->relations[i];
    const char *b = pln_te_axis_name(s, r->b), *c = pln_te_axis_name(s, r->c);
    if (r->kind == PLN_TE_SPLIT && r->a == axis)
      return pln_te_refuse(s, step,
                           "axis '%s' has already been split, by step %u into "
                           "'%s' and '%s'; its loops are %s",
                           name, by, b, c, loops);
    if (r->kind == PLN_TE_FUSE && (r->b == axis || r->c == axis))
      return pln_te_refuse(s, step,
                           "axis '%s' has already been fused, by step %u into "
                           "'%s'; its loops are %s",
                           name, by, pln_te_axis_name(s, r->a), loops);
    if (r->kind == PLN_TE_TRANSFORM && is_from(r->transform, axis))
      return pln_te_refuse(s, step,
                           "axis '%s' has been replaced by the layout of step "
                           "%u; its loops are %s",
                           name, by, loops);
  }
  return pln_te_refuse(s, step,
                       "axis '%s' is no loop of this stage; its loops are %s",
                       name, loops);
}

pln_status pln_te_find_loop(pln_te_state *s, const pln_schedule_step *step,
                            uint32_t axis, uint32_t *at) {
  uint32_t owner = s->axes[axis].stage;
  *at = pln_te_index(&s->stages[step->stage].leaves, axis);
  if (*at != PLN_NONE)
    return PLN_OK;
  if (owner != step->stage && owner != PLN_NONE)
    return pln_te_refuse(s, step,
                         "axis '%s' is not part of this stage: it belongs to "
                         "stage '%s'",
                         pln_te_axis_name(s, axis),
                         pln_te_stage_name(s, owner));
  return refuse_used(s, step, axis);
}

pln_status pln_te_value(pln_te_state *s, const pln_schedule_value *value,
                        pln_dtype dtype, pln_term *out) {
  if (value->graph) {
    PLN_TRY(pln_analyzer_import(s->a, value->graph,
                                pln_graph_root(value->graph), out));
  } else {
    *out = pln_term_int(s->a, dtype, 1, value->number);
  }
  return s->a->status;
}

/* ------------------------------------------------------------------ checks */

static pln_status check_numbers(pln_te_state *s,
                                const pln_schedule_step *step) {
  int n = (int)step->n_axes;
  if (n < arity[step->primitive].min_axes ||
      (arity[step->primitive].max_axes >= 0 &&
       n > arity[step->primitive].max_axes))
    return pln_te_refuse(s, step, "it has %d axes", n);
  for (uint32_t i = 0; i < step->n_axes; i++)
    if (step->axes[i] >= s->n_axes)
      return pln_te_refuse(s, step, "an axis is not part of the schedule");
  for (uint32_t i = 0; i < step->n_tensors; i++)
    if (step->tensors[i] >= s->n_tensors)
      return pln_te_refuse(s, step, "a tensor is not part of the schedule");
  if (step->primitive != PLN_SCHEDULE_THREAD_AXIS && step->stage >= s->n_stages)
    return pln_te_refuse(s, step, "there is no such stage");
  return PLN_OK;
}

static bool makes_stages(pln_primitive p) {
  return p == PLN_SCHEDULE_CACHE_READ || p == PLN_SCHEDULE_CREATE_GROUP ||
         p == PLN_SCHEDULE_THREAD_AXIS;
}

static bool is_for_groups(pln_primitive p) {
  return p == PLN_SCHEDULE_COMPUTE_AT || p == PLN_SCHEDULE_COMPUTE_ROOT;
}

static pln_status check_stage(pln_te_state *s, const pln_schedule_step *step) {
  if (makes_stages(step->primitive))
    return PLN_OK;
  const pln_te_stage *g = &s->stages[step->stage];
  if (g->is_group && !is_for_groups(step->primitive))
    return pln_te_refuse(s, step, "the stage is a group, which has no loops");
  if (g->kind == PLN_TE_PLACEHOLDER && !g->is_group &&
      step->primitive != PLN_SCHEDULE_TRANSFORM_LAYOUT)
    return pln_te_refuse(s, step,
                         "the stage is a placeholder, which computes "
                         "nothing");
  return PLN_OK;
}

/* A thread is described by its name, its tag and an optional extent. */
static pln_status thread_axis(pln_te_state *s, const pln_schedule_step *step) {
  pln_term min = PLN_NO_TERM, extent = PLN_NO_TERM;
  uint32_t axis;
  if (!step->text)
    return pln_te_refuse(s, step, "a thread needs a tag");
  if (step->n_values > 0) {
    PLN_TRY(pln_te_value(s, &step->values[0], PLN_INT32, &extent));
    min = pln_const_like(s->a, extent, 0);
  }
  PLN_TRY(pln_te_axis_new(s, PLN_NONE, step->text, PLN_INT32,
                          PLN_ITER_THREAD_INDEX, min, extent, &axis));
  s->axes[axis].tag = step->text;
  return PLN_OK;
}

pln_status pln_te_apply(pln_te_state *s, const pln_schedule_step *step) {
  PLN_TRY(check_numbers(s, step));
  PLN_TRY(check_stage(s, step));
  switch (step->primitive) {
  case PLN_SCHEDULE_THREAD_AXIS: return thread_axis(s, step);
  case PLN_SCHEDULE_SPLIT:
  case PLN_SCHEDULE_FUSE:
  case PLN_SCHEDULE_REORDER: return pln_te_apply_loop(s, step);
  case PLN_SCHEDULE_COMPUTE_AT:
  case PLN_SCHEDULE_COMPUTE_INLINE:
  case PLN_SCHEDULE_COMPUTE_ROOT: return pln_te_apply_attach(s, step);
  case PLN_SCHEDULE_CACHE_READ: return pln_te_cache_read(s, step);
  case PLN_SCHEDULE_CACHE_WRITE: return pln_te_cache_write(s, step);
  case PLN_SCHEDULE_TRANSFORM_LAYOUT: return pln_te_transform_layout(s, step);
  case PLN_SCHEDULE_RFACTOR: return pln_te_rfactor(s, step);
  case PLN_SCHEDULE_CREATE_GROUP: return pln_te_create_group(s, step);
  default: return pln_te_apply_annotation(s, step);
  }
}
