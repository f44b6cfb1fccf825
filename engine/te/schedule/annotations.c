/* annotations.c: the primitives that annotate axes and stages: bind, vectorize,
 * unroll, parallel, pragma, prefetch, storage_align, set_scope, double_buffer,
 * rolling_buffer, env_threads, set_store_predicate, tensorize. */

#include "te/te.h"

static pln_status find_loop(pln_te_state *s, const pln_schedule_step *step,
                            pln_te_axis **out) {
  uint32_t at;
  PLN_TRY(pln_te_find_loop(s, step, step->axes[0], &at));
  *out = &s->axes[step->axes[0]];
  return PLN_OK;
}

static bool is_thread(const pln_te_axis *x) {
  return x->type == PLN_ITER_THREAD_INDEX;
}

static pln_status bind_thread(pln_te_state *s, const pln_schedule_step *step) {
  pln_te_axis *x;
  PLN_TRY(find_loop(s, step, &x));
  if (x->type != PLN_ITER_DATA_PAR && x->type != PLN_ITER_COMM_REDUCE)
    return pln_te_refuse(
        s, step, "axis '%s' must be of type DataPar or CommReduce to be bound",
        pln_te_axis_name(s, step->axes[0]));
  if (!is_thread(&s->axes[step->axes[1]]))
    return pln_te_refuse(s, step, "'%s' is no thread",
                         pln_te_axis_name(s, step->axes[1]));
  if (x->bind != PLN_NONE && x->bind != step->axes[1])
    pln_diag_warn(s->engine, NULL,
                  "schedule step %u: axis '%s' is bound to '%s' "
                  "already, and now to '%s'",
                  s->step, pln_te_axis_name(s, step->axes[0]),
                  pln_te_axis_name(s, x->bind),
                  pln_te_axis_name(s, step->axes[1]));
  x->bind = step->axes[1];
  return PLN_OK;
}

static pln_status set_loop(pln_te_state *s, const pln_schedule_step *step,
                           pln_iter_type loop, bool reductions) {
  pln_te_axis *x;
  PLN_TRY(find_loop(s, step, &x));
  bool data = x->type == PLN_ITER_DATA_PAR;
  if (pln_te_is_stmt_loop(s, step->axes[0]) && !data)
    return pln_te_refuse(s, step,
                         "axis '%s' is written as another loop than a serial "
                         "one",
                         pln_te_axis_name(s, step->axes[0]));
  if (!data && !(reductions && (x->type == PLN_ITER_COMM_REDUCE ||
                                x->type == PLN_ITER_ORDERED)))
    return pln_te_refuse(s, step,
                         "axis '%s' carries a dependence from round to round, "
                         "so that its rounds cannot run at once",
                         pln_te_axis_name(s, step->axes[0]));
  x->loop = (uint8_t)loop;
  return PLN_OK;
}

/* values[0]: the value, 1 if it is left out. */
static pln_status pragma(pln_te_state *s, const pln_schedule_step *step) {
  pln_te_axis *x;
  pln_term value = pln_term_int(s->a, PLN_INT32, 1, 1);
  pln_slice key = pln_symbol_text(s->engine, step->text);
  if (!step->text)
    return pln_te_refuse(s, step, "a pragma needs a key");
  if (strcmp(key.data, "unroll") == 0)
    return set_loop(s, step, PLN_ITER_UNROLLED, true);
  if (strcmp(key.data, "vectorize") == 0)
    return set_loop(s, step, PLN_ITER_VECTORIZED, false);
  PLN_TRY(find_loop(s, step, &x));
  if (step->n_values > 0)
    PLN_TRY(pln_te_value(s, &step->values[0], PLN_INT32, &value));
  PLN_TRY(pln_te_push(s, &x->pragmas, step->text));
  return pln_te_push(s, &x->pragmas, value);
}

/* Whether the stage reads what `producer` computes, or may by stages that are
 * inlined: what is not read has no region, and perhaps no memory. */
static pln_status reads_stage(pln_te_state *s, uint32_t stage,
                              uint32_t producer, bool *out) {
  pln_te_list stack = {0}, list = {0};
  uint8_t *seen = pln_arena_new(&s->arena, s->n_stages);
  if (!seen)
    return pln_nomem(s->engine);
  memset(seen, 0, s->n_stages);
  *out = false;
  PLN_TRY(pln_te_push(s, &stack, stage));
  while (stack.n > 0 && !*out) {
    PLN_TRY(pln_te_producers(s, stack.items[--stack.n], &list));
    for (uint32_t i = 0; i < list.n; i++) {
      uint32_t other = list.items[i];
      *out |= other == producer;
      if (!seen[other] && s->stages[other].attach == PLN_ATTACH_INLINE)
        PLN_TRY(pln_te_push(s, &stack, other));
      seen[other] = 1;
    }
  }
  return PLN_OK;
}

static pln_status prefetch(pln_te_state *s, const pln_schedule_step *step) {
  pln_te_axis *x;
  bool reads = false;
  pln_term offset = pln_term_int(s->a, PLN_INT32, 1, 1);
  PLN_TRY(find_loop(s, step, &x));
  if (step->n_tensors != 1)
    return pln_te_refuse(s, step, "it needs one tensor");
  if (pln_te_is_stmt_loop(s, step->axes[0]))
    return pln_te_refuse(s, step,
                         "axis '%s' is a loop of a statement, which reads "
                         "whole tensors",
                         pln_te_axis_name(s, step->axes[0]));
  uint32_t producer = s->tensors[step->tensors[0]].stage;
  PLN_TRY(reads_stage(s, step->stage, producer, &reads));
  if (!reads)
    return pln_te_refuse(s, step, "axis '%s': the stage does not read '%s'",
                         pln_te_axis_name(s, step->axes[0]),
                         pln_te_stage_name(s, producer));
  if (step->n_values > 0)
    PLN_TRY(pln_te_value(s, &step->values[0], PLN_INT32, &offset));
  PLN_TRY(pln_te_push(s, &x->prefetches, step->tensors[0]));
  return pln_te_push(s, &x->prefetches, offset);
}

/* values: factor, offset. The axis is a dimension, loop or not. */
static pln_status storage_align(pln_te_state *s,
                                const pln_schedule_step *step) {
  const pln_te_stage *g = &s->stages[step->stage];
  if (pln_te_index(&g->axis, step->axes[0]) == PLN_NONE ||
      pln_te_is_stmt_loop(s, step->axes[0]))
    return pln_te_refuse(s, step, "axis '%s' is no dimension of its tensor",
                         pln_te_axis_name(s, step->axes[0]));
  if (g->layouts.n > 0)
    return pln_te_refuse(s, step,
                         "its layout is transformed, so that the dimension has "
                         "no stride");
  if (step->n_values != 2 || step->values[0].graph || step->values[1].graph)
    return pln_te_refuse(s, step, "it needs a factor and an offset, numbers");
  if (step->values[0].number <= 0 || step->values[0].number > INT32_MAX)
    return pln_te_refuse(
        s, step, "axis '%s': a factor must be positive, got %lld",
        pln_te_axis_name(s, step->axes[0]), (long long)step->values[0].number);
  s->axes[step->axes[0]].align_factor = step->values[0].number;
  s->axes[step->axes[0]].align_offset = step->values[1].number;
  return PLN_OK;
}

/* The inits and updates of a scan write into its tensors. */
static bool writes_into_scan(const pln_te_state *s, uint32_t stage) {
  for (uint32_t i = 0; i < s->n_stages; i++) {
    const pln_te_stage *g = &s->stages[i];
    for (uint32_t k = 0; g->kind == PLN_TE_SCAN && k < 2 * g->n_tensors; k++)
      if (s->tensors[g->body.items[k]].stage == stage)
        return true;
  }
  return false;
}

static pln_status set_buffering(pln_te_state *s, const pln_schedule_step *step,
                                bool rolling) {
  pln_te_stage *g = &s->stages[step->stage];
  if (g->is_output)
    return pln_te_refuse(s, step, "an output cannot be a %s buffer",
                         rolling ? "rolling" : "double");
  if (!rolling && g->n_tensors > 1)
    return pln_te_refuse(s, step,
                         "a stage with several outputs cannot be a double "
                         "buffer");
  if (!rolling && g->separators.n > 0)
    return pln_te_refuse(s, step,
                         "its layout has axis separators, and a double buffer "
                         "has one dimension in memory");
  if (writes_into_scan(s, step->stage))
    return pln_te_refuse(s, step,
                         "it writes into the tensor of a scan, which cannot be "
                         "a %s buffer",
                         rolling ? "rolling" : "double");
  if (rolling)
    g->rolling_buffer = true;
  else
    g->double_buffer = true;
  return PLN_OK;
}

static pln_status env_threads(pln_te_state *s, const pln_schedule_step *step) {
  pln_te_stage *g = &s->stages[step->stage];
  if (g->kind != PLN_TE_SCAN)
    return pln_te_refuse(s, step, "only a scan has env_threads");
  if (g->threads.n > 0)
    return pln_te_refuse(s, step, "its env_threads are set already");
  for (uint32_t i = 0; i < step->n_axes; i++)
    if (!is_thread(&s->axes[step->axes[i]]))
      return pln_te_refuse(s, step, "'%s' is no thread",
                           pln_te_axis_name(s, step->axes[i]));
  for (uint32_t i = 0; i < step->n_axes; i++) {
    PLN_TRY(pln_te_push(s, &g->threads, step->axes[i]));
    PLN_TRY(pln_te_insert(s, &g->leaves, i, step->axes[i]));
    PLN_TRY(pln_te_insert(s, &g->all, i, step->axes[i]));
  }
  return PLN_OK;
}

static pln_status set_predicate(pln_te_state *s,
                                const pln_schedule_step *step) {
  pln_term predicate;
  if (step->n_values != 1)
    return pln_te_refuse(s, step, "it needs a condition");
  if (s->stages[step->stage].kind == PLN_TE_EXTERN)
    return pln_te_refuse(s, step,
                         "its stores are those of its statement, which a "
                         "condition does not change");
  PLN_TRY(pln_te_value(s, &step->values[0], PLN_BOOL, &predicate));
  if (!pln_is_bool(s->a, predicate))
    return pln_te_refuse(s, step, "a condition must be a bool");
  s->stages[step->stage].predicate = predicate;
  return PLN_OK;
}

/* ---------------------------------------------------------------- tensorize */

/* `n` operands of the root of a graph, from `at` on. */
static pln_status import_parts(pln_te_state *s, const pln_graph *g,
                               uint32_t *at, uint32_t n, pln_term **out) {
  const pln_ref *parts = pln_node_operands(g, pln_graph_root(g));
  *out = pln_arena_new(&s->arena, (n + 1) * sizeof **out);
  if (!*out)
    return pln_nomem(s->engine);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_analyzer_import(s->a, g, parts[(*at)++], &(*out)[i]));
  return PLN_OK;
}

static pln_status check_kinds(pln_te_state *s, const pln_schedule_step *step,
                              uint32_t n, const pln_term *terms,
                              pln_kind kind) {
  for (uint32_t i = 0; i < n; i++)
    if (pln_term_kind(s->a, terms[i]) != kind ||
        (kind == PLN_ITER_VAR && pln_at(s->a, terms[i])->n != 2))
      return pln_te_refuse(s, step, "a part of the intrinsic must be a %s",
                           pln_kind_name(kind));
  return PLN_OK;
}

/* values: numbers of inputs, outputs and axes, their nodes in an Array, then
 * the statements, or 0: body, reset, update; of a call what read_call reads. */
static pln_status read_intrin(pln_te_state *s, const pln_schedule_step *step,
                              pln_te_intrin *in) {
  const pln_schedule_value *v = step->values;
  const pln_graph *g = step->n_values >= 7 ? v[3].graph : NULL;
  uint32_t at = 0;
  if (!g || pln_node_kind(g, pln_graph_root(g)) != PLN_PRIM_ARRAY ||
      v[0].number < 0 || v[1].number < 1 || v[2].number < 0 ||
      v[0].number > UINT16_MAX || v[1].number > UINT16_MAX ||
      v[2].number > UINT16_MAX ||
      pln_node_n_operands(g, pln_graph_root(g)) !=
          2 * v[0].number + 2 * v[1].number + v[2].number)
    return pln_te_refuse(s, step, "it needs an intrinsic");
  in->n_inputs = (uint32_t)v[0].number;
  in->n_outputs = (uint32_t)v[1].number;
  in->n_axis = (uint32_t)v[2].number;
  PLN_TRY(import_parts(s, g, &at, in->n_inputs, &in->inputs));
  PLN_TRY(import_parts(s, g, &at, in->n_inputs + in->n_outputs, &in->buffers));
  PLN_TRY(import_parts(s, g, &at, in->n_axis, &in->axis));
  PLN_TRY(import_parts(s, g, &at, in->n_outputs, &in->bodies));
  PLN_TRY(check_kinds(s, step, in->n_inputs, in->inputs, PLN_BUFFER));
  PLN_TRY(check_kinds(s, step, in->n_inputs + in->n_outputs, in->buffers,
                      PLN_BUFFER));
  PLN_TRY(check_kinds(s, step, in->n_axis, in->axis, PLN_ITER_VAR));
  in->body = v[4].graph;
  in->reset = v[5].graph;
  in->update = v[6].graph;
  return s->a->status;
}

static pln_status push_all(pln_te_state *s, pln_te_list *list, uint32_t n,
                           const pln_term *terms) {
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_te_push(s, list, terms[i]));
  return PLN_OK;
}

static pln_status check_regions(pln_te_state *s, const pln_schedule_step *step,
                                uint32_t n, const pln_term *loads) {
  for (uint32_t i = 0; i < n; i++)
    if (pln_term_kind(s->a, loads[i]) != PLN_PRODUCER_LOAD ||
        pln_te_load_tensor(s, loads[i]) == PLN_NONE ||
        pln_te_load_tensor(s, loads[i]) !=
            pln_te_load_tensor(s, loads[i & ~1u]))
      return pln_te_refuse(s, step, "a call of an intrinsic needs regions");
  return PLN_OK;
}

/* values[7], the number of scalar parameters, and values[8], an Array of them,
 * each before its value, and of the regions: first and last element. */
static pln_status read_call(pln_te_state *s, const pln_schedule_step *step,
                            const pln_te_intrin *in) {
  const pln_schedule_value *v = step->values;
  const pln_graph *g = step->n_values == 9 ? v[8].graph : NULL;
  pln_term *scalars, *loads;
  uint32_t at = 0, n = (uint32_t)v[7].number;
  if (!g || pln_node_kind(g, pln_graph_root(g)) != PLN_PRIM_ARRAY ||
      v[7].number < 0 || v[7].number > UINT16_MAX ||
      pln_node_n_operands(g, pln_graph_root(g)) != 2 * n + 2 * in->n_inputs)
    return pln_te_refuse(s, step, "it needs a call of an intrinsic");
  PLN_TRY(import_parts(s, g, &at, 2 * n, &scalars));
  PLN_TRY(import_parts(s, g, &at, 2 * in->n_inputs, &loads));
  PLN_TRY(check_regions(s, step, 2 * in->n_inputs, loads));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(check_kinds(s, step, 1, &scalars[2 * i], PLN_VAR));
  PLN_TRY(push_all(s, &s->stages[step->stage].scalars, 2 * n, scalars));
  PLN_TRY(
      push_all(s, &s->stages[step->stage].regions, 2 * in->n_inputs, loads));
  s->stages[step->stage].call = 1 + step->axes[0];
  return s->a->status;
}

/* TVM keeps the loop too, without a word. */
static pln_status keep_loop(pln_te_state *s, const pln_schedule_step *step) {
  pln_diag_warn(s->engine, NULL,
                "schedule step %u, tensorize of stage '%s': it is "
                "computed by an intrinsic already, and the loop of "
                "'%s' stays",
                s->step, pln_te_stage_name(s, step->stage),
                pln_te_axis_name(s, step->axes[0]));
  return PLN_OK;
}

static pln_status tensorize(pln_te_state *s, const pln_schedule_step *step) {
  pln_te_axis *x;
  PLN_TRY(find_loop(s, step, &x));
  if (s->stages[step->stage].kind != PLN_TE_COMPUTE)
    return pln_te_refuse(s, step, "only a compute stage is tensorized");
  if (x->bind != PLN_NONE || is_thread(x))
    return pln_te_refuse(s, step, "axis '%s' is bound to a thread",
                         pln_te_axis_name(s, step->axes[0]));
  pln_te_intrin *in = pln_arena_new(&s->arena, sizeof *in);
  if (!in)
    return pln_nomem(s->engine);
  *in = (pln_te_intrin){.name = step->text};
  PLN_TRY(read_intrin(s, step, in));
  if (s->stages[step->stage].call)
    return keep_loop(s, step);
  if (step->n_values > 7)
    PLN_TRY(read_call(s, step, in));
  x->loop = PLN_ITER_TENSORIZED;
  x->intrin = in;
  return PLN_OK;
}

pln_status pln_te_apply_annotation(pln_te_state *s,
                                   const pln_schedule_step *step) {
  switch (step->primitive) {
  case PLN_SCHEDULE_BIND: return bind_thread(s, step);
  case PLN_SCHEDULE_VECTORIZE:
    return set_loop(s, step, PLN_ITER_VECTORIZED, false);
  case PLN_SCHEDULE_UNROLL: return set_loop(s, step, PLN_ITER_UNROLLED, true);
  case PLN_SCHEDULE_PARALLEL:
    return set_loop(s, step, PLN_ITER_PARALLELIZED, false);
  case PLN_SCHEDULE_PRAGMA: return pragma(s, step);
  case PLN_SCHEDULE_PREFETCH: return prefetch(s, step);
  case PLN_SCHEDULE_STORAGE_ALIGN: return storage_align(s, step);
  case PLN_SCHEDULE_SET_SCOPE:
    s->stages[step->stage].scope = step->text;
    return PLN_OK;
  case PLN_SCHEDULE_DOUBLE_BUFFER: return set_buffering(s, step, false);
  case PLN_SCHEDULE_ROLLING_BUFFER: return set_buffering(s, step, true);
  case PLN_SCHEDULE_ENV_THREADS: return env_threads(s, step);
  case PLN_SCHEDULE_SET_STORE_PREDICATE: return set_predicate(s, step);
  case PLN_SCHEDULE_TENSORIZE: return tensorize(s, step);
  default: return pln_te_refuse(s, step, "there is no such primitive");
  }
}
