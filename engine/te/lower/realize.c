/* realize.c: the memory of a stage's tensors around producer and consumer, and
 * where stages are attached. Definitions: TVM 0.14, MakePipeline and
 * InjectAttach in src/te/schedule/schedule_ops.cc; BuildRealize. */

#include "te/te.h"

pln_term pln_te_buffer(const pln_te_state *s, uint32_t tensor) {
  const pln_te_tensor *t = &s->tensors[tensor];
  if (t->alias)
    t = &s->tensors[t->alias - 1];
  return t->lowered ? t->lowered : t->buffer;
}

static pln_term range(pln_te_state *s, pln_term min, pln_term extent) {
  if (!min || !extent)
    return PLN_NO_TERM;
  return pln_term_binary(s->a, PLN_RANGE, min, extent);
}

static pln_term whole(pln_te_state *s, pln_term dim) {
  return range(s, pln_const_like(s->a, dim, 0), dim);
}

/* The dimensions of a scan's output: all steps up to the last one, and what its
 * other axes run over. */
static void scan_bounds(pln_te_state *s, uint32_t stage, uint32_t i,
                        pln_term *bounds) {
  const pln_te_stage *g = &s->stages[stage];
  uint32_t rank = pln_te_rank(s, g->first_tensor + i), axis = 1;
  const pln_te_axis *time = &s->axes[g->axis.items[0]];
  for (uint32_t k = 0; k < i; k++)
    axis += pln_te_rank(s, g->first_tensor + k) - 1;
  pln_term steps =
      pln_simplify_term(s->a, pln_add(s->a, time->count, time->low), 2);
  bounds[0] = whole(s, steps);
  for (uint32_t k = 1; k < rank; k++) {
    const pln_te_axis *x = &s->axes[g->axis.items[axis + k - 1]];
    bounds[k] = range(s, x->low, x->count);
  }
}

static void tensor_bounds(pln_te_state *s, uint32_t stage, uint32_t i,
                          pln_term *bounds) {
  const pln_te_stage *g = &s->stages[stage];
  uint32_t tensor = g->first_tensor + i;
  if (g->kind == PLN_TE_SCAN) {
    scan_bounds(s, stage, i, bounds);
    return;
  }
  for (uint32_t k = 0; k < pln_te_rank(s, tensor); k++) {
    const pln_te_axis *x =
        g->kind == PLN_TE_COMPUTE ? &s->axes[g->axis.items[k]] : NULL;
    bounds[k] =
        x ? range(s, x->low, x->count) : whole(s, pln_te_dim(s, tensor, k));
  }
}

static pln_status align(pln_te_state *s, uint32_t stage, uint32_t tensor,
                        pln_ref *stmt) {
  const pln_te_list *axis = &s->stages[stage].axis;
  for (uint32_t i = 0; i < axis->n; i++) {
    const pln_te_axis *x = &s->axes[axis->items[i]];
    if (x->align_factor == 0)
      continue;
    pln_term tuple[3] = {pln_term_int(s->a, PLN_INT32, 1, i),
                         pln_term_int(s->a, PLN_INT32, 1, x->align_factor),
                         pln_term_int(s->a, PLN_INT32, 1, x->align_offset)};
    PLN_TRY(pln_te_build_attr(s, pln_te_buffer(s, tensor), "buffer_dim_align",
                              pln_te_call(s, "tvm_tuple", 3, tuple), *stmt,
                              stmt));
  }
  return PLN_OK;
}

static pln_status realize_tensor(pln_te_state *s, uint32_t stage, uint32_t i,
                                 pln_ref *stmt) {
  uint32_t tensor = s->stages[stage].first_tensor + i;
  uint32_t rank = pln_te_rank(s, tensor);
  pln_term *terms = pln_arena_new(&s->arena, (rank + 2) * sizeof *terms);
  if (!terms)
    return pln_nomem(s->engine);
  terms[0] = pln_te_buffer(s, tensor);
  terms[1] = pln_term_bool(s->a, true);
  tensor_bounds(s, stage, i, terms + 2);
  pln_te_stmt realize = {
      .kind = PLN_BUFFER_REALIZE, .n = rank + 2, .terms = terms, .body = *stmt};
  PLN_TRY(pln_te_build(s, &realize, stmt));
  return s->stages[stage].kind == PLN_TE_COMPUTE ? align(s, stage, tensor, stmt)
                                                 : PLN_OK;
}

static pln_status mark_outputs(pln_te_state *s, uint32_t stage, const char *key,
                               pln_term value, pln_ref *stmt) {
  for (uint32_t i = s->stages[stage].n_tensors; i-- > 0;)
    PLN_TRY(pln_te_build_attr(
        s, pln_te_buffer(s, s->stages[stage].first_tensor + i), key, value,
        *stmt, stmt));
  return PLN_OK;
}

/* True if one of the loops around an axis, or its own, has several rounds. */
static bool has_loop(const pln_te_state *s, uint32_t stage, uint32_t axis) {
  const pln_te_list *leaves = &s->stages[stage].leaves;
  bool found = false;
  for (uint32_t i = 0; i < leaves->n; i++) {
    found |= !pln_is_value(s->a, s->axes[leaves->items[i]].count, 1);
    if (leaves->items[i] == axis)
      break;
  }
  return found;
}

/* Rounds of a scan follow from those before: none can be computed ahead. */
static pln_status check_double_buffer(pln_te_state *s, uint32_t stage) {
  uint32_t at = stage;
  if (!s->stages[stage].double_buffer)
    return PLN_OK;
  const pln_te_stage *spec = &s->stages[pln_te_attach_spec(s, at)];
  while (spec->attach == PLN_ATTACH_SCOPE &&
         !has_loop(s, spec->attach_stage, spec->attach_axis)) {
    at = spec->attach_stage;
    spec = &s->stages[pln_te_attach_spec(s, at)];
  }
  if (spec->attach != PLN_ATTACH_SCAN_UPDATE)
    return PLN_OK;
  return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                        "schedule: stage '%s' is part of a scan's round, which "
                        "cannot be double buffered",
                        pln_te_stage_name(s, stage));
}

pln_status pln_te_pipeline(pln_te_state *s, uint32_t stage, pln_ref consumer,
                           pln_ref *out) {
  pln_ref stmt = s->stages[stage].stmt;
  PLN_TRY(check_double_buffer(s, stage));
  if (s->stages[stage].double_buffer)
    PLN_TRY(mark_outputs(s, stage, "double_buffer_scope",
                         pln_term_int(s->a, PLN_INT32, 1, 1), &stmt));
  PLN_TRY(pln_te_build_seq(s, stmt, consumer, &stmt));
  if (s->stages[stage].rolling_buffer)
    PLN_TRY(mark_outputs(s, stage, "rolling_buffer_scope",
                         pln_term_bool(s->a, true), &stmt));
  for (uint32_t i = s->stages[stage].n_tensors;
       !s->stages[stage].no_memory && i-- > 0;)
    PLN_TRY(realize_tensor(s, stage, i, &stmt));
  *out = stmt;
  return PLN_OK;
}

/* A producer comes before the stages that read it, and is attached outside of
 * those that come later. */
pln_status pln_te_attach_users(pln_te_state *s, uint32_t stage, uint32_t axis,
                               pln_ref *stmt) {
  const pln_te_list *users = &s->stages[stage].users;
  for (uint32_t i = users->n; i-- > 0;) {
    uint32_t user = s->stages[stage].users.items[i];
    if (s->stages[pln_te_attach_spec(s, user)].attach_axis == axis)
      PLN_TRY(pln_te_pipeline(s, user, *stmt, stmt));
  }
  return PLN_OK;
}
