/* attach.c: the primitives that say where a stage is computed: compute_at,
 * compute_inline, compute_root. Definitions: TVM 0.14,
 * src/te/schedule/schedule_lang.cc; what TVM finds out while it lowers is
 * refused here. */

#include "te/te.h"

static pln_status check_movable(pln_te_state *s,
                                const pln_schedule_step *step) {
  const pln_te_stage *g = &s->stages[step->stage];
  if (g->attach == PLN_ATTACH_SCAN_UPDATE)
    return pln_te_refuse(s, step,
                         "it is the update of a scan, which has its place");
  if (g->is_output && step->primitive != PLN_SCHEDULE_COMPUTE_ROOT)
    return pln_te_refuse(s, step, "an output is computed at the root");
  return PLN_OK;
}

/* ------------------------------------------------------------- compute_at */

/* True if `stage` is in `group`, or in a group of it. */
static bool is_in_group(const pln_te_state *s, uint32_t stage, uint32_t group) {
  uint32_t g = s->stages[stage].group;
  while (g != PLN_NONE && g != group)
    g = s->stages[g].group;
  return g == group;
}

/* True if the loops of `inner` lie inside of those of `stage`. */
static bool is_attached_in(const pln_te_state *s, uint32_t inner,
                           uint32_t stage) {
  for (uint32_t n = 0; inner != PLN_NONE && n <= s->n_stages; n++) {
    if (inner == stage)
      return true;
    const pln_te_stage *g = &s->stages[pln_te_attach_spec(s, inner)];
    inner = g->attach == PLN_ATTACH_SCOPE || g->attach == PLN_ATTACH_SCAN_UPDATE
                ? g->attach_stage
                : PLN_NONE;
  }
  return false;
}

static pln_status check_parent(pln_te_state *s, const pln_schedule_step *step,
                               uint32_t parent) {
  uint32_t at, group = s->stages[step->stage].group;
  pln_schedule_step in_parent = *step;
  const char *name = pln_te_stage_name(s, parent);
  if (s->stages[parent].is_group)
    return pln_te_refuse(s, step, "'%s' is a group, which has no loops", name);
  if (s->stages[parent].kind == PLN_TE_EXTERN)
    return pln_te_refuse(s, step,
                         "nothing is computed in loop '%s' of '%s', which is "
                         "part of a statement and reads whole tensors",
                         pln_te_axis_name(s, step->axes[0]), name);
  if (group != PLN_NONE && !is_in_group(s, parent, group))
    return pln_te_refuse(s, step, "stage '%s' is not within the same group",
                         name);
  if (is_attached_in(s, parent, step->stage))
    return pln_te_refuse(s, step, "stage '%s' is computed inside of it already",
                         name);
  at = pln_te_index(&s->stages[parent].leaves, step->axes[0]);
  if (at != PLN_NONE)
    return PLN_OK;
  in_parent.stage = parent;
  return pln_te_find_loop(s, &in_parent, step->axes[0], &at);
}

/* An init of a scan runs before the loop of its scan, not in it. */
static pln_status check_init(pln_te_state *s, const pln_schedule_step *step,
                             uint32_t parent) {
  const pln_te_stage *scan = &s->stages[parent];
  if (scan->kind != PLN_TE_SCAN ||
      s->axes[step->axes[0]].type == PLN_ITER_THREAD_INDEX)
    return PLN_OK;
  for (uint32_t i = 0; i < scan->n_tensors; i++)
    if (s->tensors[scan->body.items[i]].stage == step->stage)
      return pln_te_refuse(s, step,
                           "it is an init of the scan '%s', which runs before "
                           "its loop '%s'",
                           pln_te_stage_name(s, parent),
                           pln_te_axis_name(s, step->axes[0]));
  return PLN_OK;
}

/* values[0]: the number of the parent's stage. */
static pln_status compute_at(pln_te_state *s, const pln_schedule_step *step) {
  PLN_TRY(check_movable(s, step));
  if (step->n_values != 1 || step->values[0].number < 0 ||
      step->values[0].number >= s->n_stages)
    return pln_te_refuse(s, step, "there is no such parent stage");
  uint32_t parent = (uint32_t)step->values[0].number;
  PLN_TRY(check_parent(s, step, parent));
  PLN_TRY(check_init(s, step, parent));
  pln_te_stage *g = &s->stages[step->stage];
  g->attach = PLN_ATTACH_SCOPE;
  g->attach_stage = parent;
  g->attach_axis = step->axes[0];
  return PLN_OK;
}

/* ----------------------------------------------------------- inline, root */

static pln_status compute_inline(pln_te_state *s,
                                 const pln_schedule_step *step) {
  pln_te_stage *g = &s->stages[step->stage];
  PLN_TRY(check_movable(s, step));
  if (g->kind != PLN_TE_COMPUTE)
    return pln_te_refuse(s, step, "only a compute can be inlined");
  if (g->call)
    return pln_te_refuse(s, step,
                         "only a compute can be inlined, not the call of an "
                         "intrinsic");
  if (g->n_tensors != 1)
    return pln_te_refuse(
        s, step, "only a compute with one output can be inlined, not with %u",
        g->n_tensors);
  if (pln_term_kind(s->a, g->body.items[0]) == PLN_REDUCE)
    return pln_te_refuse(s, step, "a reduction cannot be inlined");
  g->attach = PLN_ATTACH_INLINE;
  g->attach_stage = g->attach_axis = PLN_NONE;
  return PLN_OK;
}

static pln_status compute_root(pln_te_state *s, const pln_schedule_step *step) {
  pln_te_stage *g = &s->stages[step->stage];
  PLN_TRY(check_movable(s, step));
  g->attach = PLN_ATTACH_ROOT;
  g->attach_stage = g->attach_axis = PLN_NONE;
  return PLN_OK;
}

pln_status pln_te_apply_attach(pln_te_state *s, const pln_schedule_step *step) {
  switch (step->primitive) {
  case PLN_SCHEDULE_COMPUTE_AT: return compute_at(s, step);
  case PLN_SCHEDULE_COMPUTE_INLINE: return compute_inline(s, step);
  default: return compute_root(s, step);
  }
}

uint32_t pln_te_attach_spec(const pln_te_state *s, uint32_t stage) {
  while (s->stages[stage].attach == PLN_ATTACH_ROOT &&
         s->stages[stage].group != PLN_NONE)
    stage = s->stages[stage].group;
  return stage;
}
