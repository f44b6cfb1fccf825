/* schedule.c: schedules as values: operations and a trace of steps.
 *
 * The state is derived: it is what the steps make of the operations, and every
 * step is checked before it changes anything. A step that fails for another
 * reason, such as lack of memory, has the state made again without it. */

#include "te/te.h"

static const char *const names[] = {
#define PRIMITIVE(ID, name, min_axes, max_axes, doc) name,
#include "perilune/te_primitives.def"
#undef PRIMITIVE
};

const char *pln_primitive_name(pln_primitive primitive) {
  return primitive < PLN_N_SCHEDULE_PRIMITIVES ? names[primitive] : "?";
}

/* ------------------------------------------------------------------- steps */

typedef struct step_size {
  size_t values, axes, tensors, vars, total;
} step_size;

static step_size size_of(const pln_schedule_step *step) {
  step_size z = {.values = step->n_values * sizeof *step->values,
                 .axes = step->n_axes * sizeof *step->axes,
                 .tensors = step->n_tensors * sizeof *step->tensors,
                 .vars = step->n_vars * sizeof *step->vars};
  z.total = z.values + z.axes + z.tensors + z.vars;
  return z;
}

static const void *copy_list(char **at, const void *from, size_t size) {
  void *to = *at;
  if (size)
    memcpy(to, from, size);
  *at += size;
  return to;
}

/* All lists in one block, which begins with the values. */
static pln_status copy_step(pln_engine *e, const pln_schedule_step *from,
                            pln_schedule_step *to) {
  step_size z = size_of(from);
  char *block = pln_mem_new(e, z.total);
  *to = *from;
  to->values = NULL;
  if (z.total == 0)
    return PLN_OK;
  if (!block)
    return pln_nomem(e);
  to->values = copy_list(&block, from->values, z.values);
  to->axes = copy_list(&block, from->axes, z.axes);
  to->tensors = copy_list(&block, from->tensors, z.tensors);
  to->vars = copy_list(&block, from->vars, z.vars);
  for (uint32_t i = 0; i < to->n_values; i++)
    if (to->values[i].graph)
      pln_graph_retain(to->values[i].graph);
  return PLN_OK;
}

static void free_step(pln_engine *e, pln_schedule_step *step) {
  step_size z = size_of(step);
  for (uint32_t i = 0; i < step->n_values; i++)
    pln_graph_release((pln_graph *)(uintptr_t)step->values[i].graph);
  if (z.total)
    pln_mem_free(e, (void *)(uintptr_t)step->values, z.total);
}

/* ---------------------------------------------------------------- lifetime */

static pln_status fill(pln_schedule *s, uint32_t n, pln_te_op *const *ops) {
  s->ops = pln_mem_new(s->engine, n * sizeof(pln_te_op *));
  if (!s->ops)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < n; i++)
    s->ops[i] = pln_te_op_retain(ops[i]);
  s->n_ops = n;
  return PLN_OK;
}

static pln_status new_schedule(pln_engine *engine, uint32_t n,
                               pln_te_op *const *ops, pln_schedule **out) {
  pln_schedule *s = pln_mem_zeroed(engine, sizeof *s);
  if (!s)
    return pln_nomem(engine);
  s->engine = engine;
  pln_status status = fill(s, n, ops);
  if (status != PLN_OK) {
    pln_schedule_free(s);
    return status;
  }
  *out = s;
  return PLN_OK;
}

pln_status pln_schedule_new(pln_engine *engine, uint32_t n,
                            pln_te_op *const *ops, pln_schedule **out) {
  *out = NULL;
  if (n == 0)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "te.create_schedule: there is no operation");
  pln_schedule *s;
  PLN_TRY(new_schedule(engine, n, ops, &s));
  pln_status status = pln_te_state_new(engine, n, s->ops, &s->state);
  if (status != PLN_OK) {
    pln_schedule_free(s);
    return status;
  }
  *out = s;
  return PLN_OK;
}

void pln_schedule_free(pln_schedule *s) {
  if (!s)
    return;
  pln_engine *e = s->engine;
  pln_te_state_free(s->state);
  for (uint32_t i = 0; i < s->n_steps; i++)
    free_step(e, &s->steps[i]);
  pln_mem_free(e, s->steps, s->cap_steps * sizeof *s->steps);
  for (uint32_t i = 0; i < s->n_ops; i++)
    pln_te_op_release(s->ops[i]);
  pln_mem_free(e, s->ops, s->n_ops * sizeof(pln_te_op *));
  pln_mem_free(e, s, sizeof *s);
}

/* ------------------------------------------------------------------ replay */

static pln_status run_step(pln_te_state *s, const pln_schedule_step *step,
                           uint32_t number) {
  s->step = number;
  s->made.n = 0;
  s->given = step->vars;
  s->n_given = step->n_vars;
  PLN_TRY(pln_te_apply(s, step));
  return s->a->status;
}

pln_status pln_te_replay(const pln_schedule *schedule, uint32_t n,
                         pln_te_state **out) {
  PLN_TRY(
      pln_te_state_new(schedule->engine, schedule->n_ops, schedule->ops, out));
  pln_status status = PLN_OK;
  for (uint32_t i = 0; status == PLN_OK && i < n; i++)
    status = run_step(*out, &schedule->steps[i], i + 1);
  if (status != PLN_OK) {
    pln_te_state_free(*out);
    *out = NULL;
  }
  return status;
}

static pln_status append_step(pln_schedule *s, const pln_schedule_step *step) {
  pln_schedule_step with_vars = *step;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->steps, &s->cap_steps,
                       (size_t)s->n_steps + 1, sizeof *s->steps));
  with_vars.n_vars = s->state->made.n;
  with_vars.vars = s->state->made.items;
  PLN_TRY(copy_step(s->engine, &with_vars, &s->steps[s->n_steps]));
  s->n_steps++;
  return PLN_OK;
}

/* After a failure inside of a step. */
static pln_status restore(pln_schedule *s, pln_status status) {
  pln_te_state *state;
  if (pln_te_replay(s, s->n_steps, &state) == PLN_OK) {
    pln_te_state_free(s->state);
    s->state = state;
  }
  return status;
}

/* What was done before to the stages that a refused step names. */
static void note_refusal(const pln_schedule *s, const pln_schedule_step *step) {
  if (step->primitive == PLN_SCHEDULE_THREAD_AXIS ||
      step->primitive == PLN_SCHEDULE_CREATE_GROUP)
    return;
  pln_te_note_history(s, step->stage);
  if (step->primitive == PLN_SCHEDULE_COMPUTE_AT && step->n_values == 1 &&
      step->values[0].number >= 0 && step->values[0].number < UINT32_MAX &&
      step->values[0].number != (int64_t)step->stage)
    pln_te_note_history(s, (uint32_t)step->values[0].number);
}

pln_status pln_schedule_apply(pln_schedule *s, const pln_schedule_step *step,
                              pln_schedule_made *made) {
  pln_te_state *t = s->state;
  pln_schedule_made m = {.first_axis = t->n_axes,
                         .first_tensor = t->n_tensors,
                         .first_stage = t->n_stages};
  if (step->primitive >= PLN_N_SCHEDULE_PRIMITIVES)
    return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                          "te: there is no such primitive");
  t->a->status = PLN_OK;
  pln_status status = run_step(t, step, s->n_steps + 1);
  if (status == PLN_OK)
    status = append_step(s, step);
  if (status == PLN_ERR_ARGUMENT)
    note_refusal(s, step);
  if (status == PLN_ERR_ARGUMENT && t->n_axes == m.first_axis &&
      t->n_tensors == m.first_tensor && t->n_stages == m.first_stage)
    return status; /* refused by a check */
  if (status != PLN_OK)
    return restore(s, status);
  m.n_axes = t->n_axes - m.first_axis;
  m.n_tensors = t->n_tensors - m.first_tensor;
  m.n_stages = t->n_stages - m.first_stage;
  if (made)
    *made = m;
  return PLN_OK;
}

static pln_status copy_steps(const pln_schedule *s, uint32_t n,
                             pln_schedule *to) {
  PLN_TRY(pln_mem_grow(s->engine, (void **)&to->steps, &to->cap_steps, n,
                       sizeof *to->steps));
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(copy_step(s->engine, &s->steps[i], &to->steps[i]));
    to->n_steps++;
  }
  return pln_te_replay(to, n, &to->state);
}

pln_status pln_schedule_copy(const pln_schedule *s, uint32_t n_steps,
                             pln_schedule **out) {
  pln_schedule *to;
  *out = NULL;
  PLN_TRY(new_schedule(s->engine, s->n_ops, s->ops, &to));
  pln_status status =
      copy_steps(s, n_steps < s->n_steps ? n_steps : s->n_steps, to);
  if (status != PLN_OK) {
    pln_schedule_free(to);
    return status;
  }
  *out = to;
  return PLN_OK;
}

/* A thread axis goes with the step for which it was introduced. */
static bool is_preparation(const pln_schedule *s, uint32_t n) {
  return n > 0 && s->steps[n - 1].primitive == PLN_SCHEDULE_THREAD_AXIS;
}

pln_status pln_schedule_undo(pln_schedule *s) {
  pln_te_state *state;
  uint32_t n = s->n_steps;
  if (n == 0)
    return pln_diag_error(s->engine, PLN_ERR_ARGUMENT, NULL,
                          "te: the schedule has no step to take back");
  do
    n--;
  while (is_preparation(s, n));
  PLN_TRY(pln_te_replay(s, n, &state));
  pln_te_state_free(s->state);
  s->state = state;
  while (s->n_steps > n)
    free_step(s->engine, &s->steps[--s->n_steps]);
  return PLN_OK;
}

/* ------------------------------------------------------------- comparisons */

static bool same_numbers(const uint32_t *x, const uint32_t *y, uint32_t n) {
  return n == 0 || memcmp(x, y, n * sizeof *x) == 0;
}

static bool same_value(const pln_schedule_value *x,
                       const pln_schedule_value *y) {
  bool equal = false;
  if (!x->graph != !y->graph)
    return false;
  if (!x->graph)
    return x->number == y->number;
  return pln_graph_equal(x->graph, pln_graph_root(x->graph), y->graph,
                         pln_graph_root(y->graph), true, &equal) == PLN_OK &&
         equal;
}

static bool same_step(const pln_schedule_step *x, const pln_schedule_step *y) {
  if (x->primitive != y->primitive || x->stage != y->stage ||
      x->text != y->text || x->n_axes != y->n_axes ||
      x->n_tensors != y->n_tensors || x->n_values != y->n_values)
    return false;
  for (uint32_t i = 0; i < x->n_values; i++)
    if (!same_value(&x->values[i], &y->values[i]))
      return false;
  return same_numbers(x->axes, y->axes, x->n_axes) &&
         same_numbers(x->tensors, y->tensors, x->n_tensors);
}

bool pln_schedule_equal(const pln_schedule *x, const pln_schedule *y) {
  if (x->n_ops != y->n_ops || x->n_steps != y->n_steps)
    return false;
  for (uint32_t i = 0; i < x->n_ops; i++)
    if (x->ops[i] != y->ops[i])
      return false;
  for (uint32_t i = 0; i < x->n_steps; i++)
    if (!same_step(&x->steps[i], &y->steps[i]))
      return false;
  return true;
}

uint32_t pln_schedule_n_steps(const pln_schedule *s) {
  return s->n_steps;
}

const pln_schedule_step *pln_schedule_step_at(const pln_schedule *s,
                                              uint32_t index) {
  return &s->steps[index];
}

/* ----------------------------------------------------------------- queries */

uint32_t pln_schedule_n_stages(const pln_schedule *s) {
  return s->state->order.n;
}

uint32_t pln_schedule_stage_at(const pln_schedule *s, uint32_t index) {
  return s->state->order.items[index];
}

uint32_t pln_schedule_find_axis(const pln_schedule *s, uint32_t var) {
  return pln_idmap_get(s->state->axis_of, var) - 1;
}

uint32_t pln_schedule_find_tensor(const pln_schedule *s, uint32_t var) {
  return pln_idmap_get(s->state->tensor_of, var) - 1;
}

uint32_t pln_schedule_tensor_stage(const pln_schedule *s, uint32_t tensor) {
  return s->state->tensors[tensor].stage;
}

uint32_t pln_schedule_n_axes(const pln_schedule *s) {
  return s->state->n_axes;
}

uint32_t pln_schedule_n_tensors(const pln_schedule *s) {
  return s->state->n_tensors;
}

void pln_schedule_stage(const pln_schedule *s, uint32_t stage,
                        pln_stage_info *out) {
  const pln_te_stage *g = &s->state->stages[stage];
  *out = (pln_stage_info){.name = g->name,
                          .scope = g->scope,
                          .attach = (pln_attach_type)g->attach,
                          .attach_stage = g->attach_stage,
                          .attach_axis = g->attach_axis,
                          .group = g->group,
                          .is_output = g->is_output,
                          .is_group = g->is_group,
                          .is_placeholder = g->kind == PLN_TE_PLACEHOLDER,
                          .n_leaves = g->leaves.n,
                          .n_all = g->all.n,
                          .n_axis = g->axis.n,
                          .n_reduce = g->reduce.n,
                          .n_tensors = g->n_tensors,
                          .leaves = g->leaves.items,
                          .all = g->all.items,
                          .axis = g->axis.items,
                          .reduce = g->reduce.items,
                          .first_tensor = g->first_tensor,
                          .n_layouts = g->layouts.n,
                          .layout_rank = g->layout_shape.n,
                          .n_separators = g->separators.n,
                          .layouts = g->layouts.items,
                          .separators = g->separators.items};
}

pln_status pln_schedule_build_axis(pln_schedule *s, uint32_t axis,
                                   pln_builder *builder, pln_ref *out) {
  pln_te_state *t = s->state;
  pln_term iter = pln_te_iter_var(t, axis);
  PLN_TRY(t->a->status);
  return pln_analyzer_export(t->a, builder, iter, out);
}

pln_status pln_schedule_build_tensor(pln_schedule *s, uint32_t tensor,
                                     pln_builder *builder, pln_ref *out) {
  pln_te_state *t = s->state;
  return pln_analyzer_export(t->a, builder, t->tensors[tensor].buffer, out);
}
