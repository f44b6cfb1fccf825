/* lower_phases.c: tir.lower: the passes of TVM's default lowering as one pass
 * and as a sequential.
 *
 * pln_pass_tir_lower is run by the executor. It runs the sequential inside of
 * itself, so that instruments see each pass. What always holds: the config is
 * read when the list of passes is made, not while they run.
 *
 * Semantics: CreatePassList of TVM's src/driver/driver_api.cc. */

#include "lower/lower.h"

typedef enum step_condition { ALWAYS, WHEN, UNLESS } step_condition;

typedef struct lower_step {
  uint32_t phase; /* LAST: behind what a user added */
  step_condition condition;
  const char *key;
  const char *text;
} lower_step;

enum { LAST = 4, N_PHASES = 4 };

static const lower_step steps[] = {
#define STEP(phase, condition, key, text) {phase, condition, key, text},
#define FINISH(condition, key, text) {LAST, condition, key, text},
#include "lower/phases.def"
};

typedef struct pass_list {
  pln_engine *engine;
  const pln_context *context;
  bool simple_mode;
  const pln_attr *user; /* tir.add_lower_pass */
  pln_pass **items;
  uint32_t n, cap;
} pass_list;

/* Most texts are the name of a pass. */
static pln_status make_pass(pln_engine *e, pln_slice text, pln_pass **out) {
  pln_symbol name;
  if (memchr(text.data, '{', text.size) || memchr(text.data, ',', text.size))
    return pln_pipeline_parse(e, text, out);
  PLN_TRY(pln_symbol_intern(e, text, &name));
  return pln_pass_lookup(e, name)
             ? pln_pass_make(e, pln_symbol_text(e, name).data, 0, out)
             : pln_pipeline_parse(e, text, out);
}

static pln_status add_pass(pass_list *list, pln_slice text) {
  pln_pass *pass;
  PLN_TRY(pln_mem_grow(list->engine, (void **)&list->items, &list->cap,
                       (size_t)list->n + 1, sizeof(pln_pass *)));
  PLN_TRY(make_pass(list->engine, text, &pass));
  if (pln_pass_n_elements(pass) == 1) {
    pln_pass *only = pln_pass_retain(pln_pass_element_at(pass, 0));
    pln_pass_release(pass);
    pass = only;
  }
  list->items[list->n++] = pass;
  return PLN_OK;
}

/* *add: the step belongs to the list. */
static pln_status holds_for(const pass_list *list, const lower_step *step,
                            bool *add) {
  pln_attr flag = {.v.i = list->simple_mode};
  *add = true;
  if (step->condition == ALWAYS)
    return PLN_OK;
  if (strcmp(step->key, "simple_mode") != 0)
    PLN_TRY(pln_context_config_value(list->context, step->key, &flag));
  *add = (flag.v.i != 0) == (step->condition == WHEN);
  return PLN_OK;
}

static pln_status add_steps(pass_list *list, uint32_t phase) {
  for (size_t i = 0; i < PLN_COUNT(steps); i++) {
    bool add;
    if (steps[i].phase != phase)
      continue;
    PLN_TRY(holds_for(list, &steps[i], &add));
    if (add)
      PLN_TRY(add_pass(list, pln_text(steps[i].text)));
  }
  return PLN_OK;
}

/* "1:tir.Simplify": the phase and the pass. False if there is no phase. */
static bool split_entry(pln_slice entry, uint32_t *phase, pln_slice *text) {
  size_t i = 0;
  *phase = 0;
  for (; i < entry.size && entry.data[i] >= '0' && entry.data[i] <= '9'; i++)
    if (*phase < N_PHASES)
      *phase = *phase * 10 + (uint32_t)(entry.data[i] - '0');
  if (i == 0 || i == entry.size || entry.data[i] != ':')
    return false;
  *text = (pln_slice){entry.data + i + 1, entry.size - i - 1};
  if (*phase >= N_PHASES)
    *phase = N_PHASES - 1;
  return true;
}

/* A pass that is registered under the whole text, whatever the text looks
 * like, comes before a pipeline. */
static pln_status add_user_pass(pass_list *list, pln_slice text) {
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(list->engine, text, &name));
  if (!pln_pass_lookup(list->engine, name))
    return add_pass(list, text);
  PLN_TRY(pln_mem_grow(list->engine, (void **)&list->items, &list->cap,
                       (size_t)list->n + 1, sizeof(pln_pass *)));
  PLN_TRY(pln_pass_make(list->engine, pln_symbol_text(list->engine, name).data,
                        0, &list->items[list->n]));
  list->n++;
  return PLN_OK;
}

static pln_status add_user_passes(pass_list *list, uint32_t phase) {
  for (uint32_t i = 0; i < list->user->count; i++) {
    pln_slice entry = list->user->v.strings[i], text;
    uint32_t at;
    if (!split_entry(entry, &at, &text))
      return pln_diag_error(list->engine, PLN_ERR_ARGUMENT, NULL,
                            "tir.add_lower_pass: '%.*s' is not of the form "
                            "PHASE:PASS, where PHASE is 0, 1, 2 or 3",
                            (int)entry.size, entry.data);
    if (at == phase)
      PLN_TRY(add_user_pass(list, text));
  }
  return PLN_OK;
}

static pln_status fill_list(pass_list *list) {
  for (uint32_t phase = 0; phase < N_PHASES; phase++) {
    PLN_TRY(add_steps(list, phase));
    PLN_TRY(add_user_passes(list, phase));
  }
  return add_steps(list, LAST);
}

static void free_list(pass_list *list) {
  for (uint32_t i = 0; i < list->n; i++)
    pln_pass_release(list->items[i]);
  pln_mem_free(list->engine, list->items, list->cap * sizeof(pln_pass *));
}

pln_status pln_lower_passes(pln_engine *engine, bool simple_mode,
                            pln_pass **out) {
  pln_attr user;
  pass_list list = {.engine = engine,
                    .context = pln_context_current(engine),
                    .simple_mode = simple_mode,
                    .user = &user};
  PLN_TRY(pln_context_config_value(list.context, "tir.add_lower_pass", &user));
  pln_status status = fill_list(&list);
  if (status == PLN_OK)
    status = pln_sequential_new(engine, "tir.phases", 0, 0, NULL, list.n,
                                list.items, out);
  free_list(&list);
  return status;
}

pln_status pln_pass_tir_lower(pln_pass_run *run) {
  pln_pass *phases;
  pln_module *module = NULL;
  PLN_TRY(pln_lower_passes(pln_run_engine(run),
                           pln_run_int(run, "simple_mode") != 0, &phases));
  pln_status status = pln_pass_apply(phases, pln_run_module(run), &module);
  pln_pass_release(phases);
  if (status == PLN_OK)
    pln_run_set_module(run, module);
  return status;
}
