/* loop_order.c: what fuse and reorder may do to the loops of an extern's
 * statement (a hybrid function): they stay in their nest, and a loop whose
 * range depends on another one stays inside of that. */

#include "te/te.h"

/* What pln_te_mask marks. */
enum { MOVED = 1, NEEDED = 2 };

/* Whether the domain of an axis has the variable of another one. */
static bool uses(pln_te_state *s, uint32_t axis, uint32_t other) {
  const pln_te_axis *x = &s->axes[axis];
  return (!pln_is_const(s->a, x->extent) &&
          pln_term_uses(s->a, x->extent, s->axes[other].var)) ||
         (!pln_is_const(s->a, x->min) &&
          pln_term_uses(s->a, x->min, s->axes[other].var));
}

/* Lists the axes of the operation that `axis` is made of. */
static pln_status origins(pln_te_state *s, uint32_t stage, uint32_t axis,
                          pln_te_list *out) {
  const pln_te_list roots = s->stages[stage].axis;
  out->n = 0;
  pln_te_begin_walk(s);
  pln_te_mask(s, axis, MOVED);
  pln_te_pass_up_mask(s, stage);
  for (uint32_t i = 0; i < roots.n; i++)
    if (pln_te_mask_of(s, roots.items[i]) & MOVED)
      PLN_TRY(pln_te_push(s, out, roots.items[i]));
  return PLN_OK;
}

/* Marks the loops on which the range of `axis` depends. */
static pln_status mark_needed(pln_te_state *s, uint32_t stage, uint32_t axis) {
  const pln_te_list roots = s->stages[stage].axis;
  pln_te_list own = {0};
  PLN_TRY(origins(s, stage, axis, &own));
  pln_te_begin_walk(s);
  for (uint32_t i = 0; i < own.n; i++)
    for (uint32_t k = 0; k < roots.n; k++)
      if (uses(s, own.items[i], roots.items[k]))
        pln_te_mask(s, roots.items[k], NEEDED);
  pln_te_pass_down_mask(s, stage);
  return PLN_OK;
}

static bool has_constant_loops(const pln_te_state *s, uint32_t stage) {
  const pln_te_list *roots = &s->stages[stage].axis;
  for (uint32_t i = 0; i < roots->n; i++)
    if (!pln_is_const(s->a, s->axes[roots->items[i]].extent) ||
        !pln_is_const(s->a, s->axes[roots->items[i]].min))
      return false;
  return true;
}

static pln_status refuse_moved(pln_te_state *s, const pln_schedule_step *step,
                               uint32_t axis, uint32_t other) {
  bool fuse = step->primitive == PLN_SCHEDULE_FUSE;
  return pln_te_refuse(s, step, "the range of axis '%s' depends on '%s', %s",
                       pln_te_axis_name(s, axis), pln_te_axis_name(s, other),
                       fuse ? "so that they cannot be fused"
                            : "which must stay outside of it");
}

pln_status pln_te_check_order(pln_te_state *s, const pln_schedule_step *step,
                              uint32_t n, const uint32_t *loops) {
  if (has_constant_loops(s, step->stage))
    return PLN_OK;
  bool fuse = step->primitive == PLN_SCHEDULE_FUSE;
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(mark_needed(s, step->stage, loops[i]));
    for (uint32_t k = fuse ? 0 : i + 1; k < n; k++)
      if (k != i && (pln_te_mask_of(s, loops[k]) & NEEDED))
        return refuse_moved(s, step, loops[i], loops[k]);
  }
  return s->a->status;
}

pln_status pln_te_check_nest(pln_te_state *s, const pln_schedule_step *step) {
  if (s->stages[step->stage].kind != PLN_TE_EXTERN)
    return PLN_OK;
  for (uint32_t i = 1; i < step->n_axes; i++)
    if (s->axes[step->axes[i]].nest != s->axes[step->axes[0]].nest)
      return pln_te_refuse(
          s, step,
          "axes '%s' and '%s' are loops with other statements between them",
          pln_te_axis_name(s, step->axes[0]),
          pln_te_axis_name(s, step->axes[i]));
  return PLN_OK;
}
