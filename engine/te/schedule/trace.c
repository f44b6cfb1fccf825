/* trace.c: the trace of a schedule as text, one step a line:
 *
 *     1  split      C: i (factor 32) -> i.outer, i.inner
 *     2  vectorize  C: i.inner
 */

#include "te/te.h"

#include <stdio.h>

typedef struct printer {
  const pln_schedule *s;
  const pln_te_state *state;
  pln_write_fn write;
  void *ud;
} printer;

static pln_status put(const printer *p, const char *text) {
  return p->write(p->ud, text, strlen(text));
}

static pln_status put_format(const printer *p, const char *format, ...)
    PLN_PRINTF(2, 3);

static pln_status put_format(const printer *p, const char *format, ...) {
  char text[160];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return put(p, text);
}

static pln_status put_value(const printer *p, const pln_schedule_value *value) {
  if (!value->graph)
    return put_format(p, "%lld", (long long)value->number);
  return pln_print_node(value->graph, pln_graph_root(value->graph), NULL,
                        p->write, p->ud);
}

/* What the numbers of a primitive are called. */
static const char *label(pln_primitive primitive, uint32_t i) {
  switch (primitive) {
  case PLN_SCHEDULE_SPLIT: return i ? "nparts" : "factor";
  case PLN_SCHEDULE_STORAGE_ALIGN: return i ? "offset" : "factor";
  case PLN_SCHEDULE_TRANSFORM_LAYOUT: return "axis separator";
  case PLN_SCHEDULE_PREFETCH: return "offset";
  case PLN_SCHEDULE_RFACTOR: return "factor_axis";
  case PLN_SCHEDULE_THREAD_AXIS: return "extent";
  case PLN_SCHEDULE_PRAGMA: return "value";
  case PLN_SCHEDULE_SET_STORE_PREDICATE: return "predicate";
  default: return NULL;
  }
}

static pln_status put_values(const printer *p, const pln_schedule_step *step) {
  for (uint32_t i = 0; i < step->n_values; i++) {
    const char *name = label(step->primitive, i);
    bool unset = !step->values[i].graph && step->values[i].number == 0;
    if (!name || (unset && step->primitive == PLN_SCHEDULE_SPLIT))
      continue;
    PLN_TRY(put_format(p, " (%s ", name));
    PLN_TRY(put_value(p, &step->values[i]));
    PLN_TRY(put(p, ")"));
  }
  return PLN_OK;
}

/* Stages that stand in a step as numbers. */
static pln_status put_stages(const printer *p, const pln_schedule_step *step) {
  bool parent = step->primitive == PLN_SCHEDULE_COMPUTE_AT;
  if (!parent && step->primitive != PLN_SCHEDULE_CACHE_READ)
    return PLN_OK;
  for (uint32_t i = 0; i < step->n_values; i++) {
    PLN_TRY(put(p, i ? ", " : parent ? " in " : " for "));
    PLN_TRY(
        put(p, pln_te_stage_name(p->state, (uint32_t)step->values[i].number)));
  }
  return PLN_OK;
}

static pln_status put_tensors(const printer *p, const pln_schedule_step *step) {
  for (uint32_t i = 0; i < step->n_tensors; i++) {
    uint32_t stage = p->state->tensors[step->tensors[i]].stage;
    PLN_TRY(put(p, i ? ", " : " "));
    PLN_TRY(put(p, pln_te_stage_name(p->state, stage)));
  }
  return PLN_OK;
}

static pln_status put_axes(const printer *p, const pln_schedule_step *step) {
  for (uint32_t i = 0; i < step->n_axes; i++) {
    PLN_TRY(put(p, i ? ", " : " "));
    PLN_TRY(put(p, pln_te_axis_name(p->state, step->axes[i])));
  }
  return PLN_OK;
}

/* Axes are numbered in the order of the steps that make them. */
static pln_status put_made(printer *p, const pln_schedule_step *step) {
  const char *between = " -> ";
  for (uint32_t i = 0; i < step->n_vars; i++) {
    uint32_t axis = pln_idmap_get(p->state->axis_of, step->vars[i]);
    if (!axis)
      continue; /* a tensor's */
    PLN_TRY(put(p, between));
    PLN_TRY(put(p, pln_te_axis_name(p->state, axis - 1)));
    between = ", ";
  }
  return PLN_OK;
}

static pln_status put_step(printer *p, uint32_t i) {
  const pln_schedule_step *step = &p->s->steps[i];
  PLN_TRY(put_format(p, "%u  %s", i + 1, pln_primitive_name(step->primitive)));
  if (step->primitive != PLN_SCHEDULE_THREAD_AXIS &&
      step->primitive != PLN_SCHEDULE_CREATE_GROUP &&
      step->primitive != PLN_SCHEDULE_CACHE_READ) {
    PLN_TRY(put(p, " "));
    PLN_TRY(put(p, pln_te_stage_name(p->state, step->stage)));
    PLN_TRY(put(p, ":"));
  }
  if (step->text) {
    PLN_TRY(put(p, " \""));
    PLN_TRY(put(p, pln_symbol_text(p->s->engine, step->text).data));
    PLN_TRY(put(p, "\""));
  }
  PLN_TRY(put_axes(p, step));
  PLN_TRY(put_tensors(p, step));
  PLN_TRY(put_stages(p, step));
  PLN_TRY(put_values(p, step));
  return put_made(p, step);
}

/* ----------------------------------------------------------------- history */

/* True if a step was applied to the stage, or attached another one to it. */
static bool concerns(const pln_schedule_step *step, uint32_t stage) {
  if (step->primitive == PLN_SCHEDULE_THREAD_AXIS ||
      step->primitive == PLN_SCHEDULE_CREATE_GROUP)
    return false;
  if (step->primitive == PLN_SCHEDULE_COMPUTE_AT && step->n_values == 1 &&
      step->values[0].number == (int64_t)stage)
    return true;
  return step->stage == stage;
}

/* The last steps are the ones that explain a refusal. */
enum { MOST_LISTED = 8 };

static pln_status put_history(printer *p, uint32_t stage) {
  uint32_t total = 0, at = 0;
  for (uint32_t i = 0; i < p->s->n_steps; i++)
    total += concerns(&p->s->steps[i], stage);
  PLN_TRY(put(p, total > 0 ? "applied to stage '"
                           : "no step was applied to stage '"));
  PLN_TRY(put(p, pln_te_stage_name(p->state, stage)));
  PLN_TRY(put(p, total == 0             ? "' before"
                 : total <= MOST_LISTED ? "' before:"
                                        : "' before, the last steps:"));
  for (uint32_t i = 0; i < p->s->n_steps; i++)
    if (concerns(&p->s->steps[i], stage) && at++ + MOST_LISTED >= total) {
      PLN_TRY(put(p, "\n  "));
      PLN_TRY(put_step(p, i));
    }
  return PLN_OK;
}

pln_status pln_schedule_print_history(const pln_schedule *schedule,
                                      uint32_t stage, pln_write_fn write,
                                      void *ud) {
  printer p = {
      .s = schedule, .state = schedule->state, .write = write, .ud = ud};
  return stage < schedule->state->n_stages ? put_history(&p, stage) : PLN_OK;
}

typedef struct bounded_text {
  size_t n;
  char text[1400];
} bounded_text;

/* What does not fit is left out. */
static pln_status write_bounded(void *ud, const char *text, size_t size) {
  bounded_text *out = ud;
  size_t left = sizeof out->text - 1 - out->n;
  size_t n = size < left ? size : left;
  memcpy(out->text + out->n, text, n);
  out->n += n;
  out->text[out->n] = 0;
  return PLN_OK;
}

void pln_te_note_history(const pln_schedule *schedule, uint32_t stage) {
  bounded_text out = {.n = 0};
  if (pln_schedule_print_history(schedule, stage, write_bounded, &out) ==
          PLN_OK &&
      out.n > 0)
    pln_diag_note(schedule->engine, NULL, "%s", out.text);
}

/* ------------------------------------------------------------------- trace */

pln_status pln_schedule_print(const pln_schedule *schedule, pln_write_fn write,
                              void *ud) {
  printer p = {
      .s = schedule, .state = schedule->state, .write = write, .ud = ud};
  for (uint32_t i = 0; i < schedule->n_steps; i++) {
    PLN_TRY(put_step(&p, i));
    PLN_TRY(put(&p, "\n"));
  }
  return PLN_OK;
}
