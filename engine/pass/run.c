/* run.c: the interface of a pass's body: its input, options, counters and
 * results.
 *
 * Called by bodies, in C or through the Lua binding. Invariant: the run owns
 * the result until primitive.c takes it. */

#include <stdio.h>

#include "pass/pass.h"

pln_engine *pln_run_engine(const pln_pass_run *run) {
  return run->engine;
}

const pln_pass *pln_run_pass(const pln_pass_run *run) {
  return run->pass;
}

void *pln_run_ud(const pln_pass_run *run) {
  return run->pass->def->ud;
}

const pln_module *pln_run_module(const pln_pass_run *run) {
  return run->module;
}

pln_symbol pln_run_name(const pln_pass_run *run) {
  return run->pass->def->kind == PLN_PASS_MODULE
             ? 0
             : pln_module_name_at(run->module, run->index);
}

const pln_graph *pln_run_function(const pln_pass_run *run) {
  return run->function;
}

/* ------------------------------------------------------------------ options */

/* The config value of "Pass.option" or "option", or NULL. */
static const pln_attr *configured(const pln_pass_run *run, const char *option) {
  char key[512];
  pln_attrs config = run->context->config;
  if (!config)
    return NULL;
  int n = snprintf(key, sizeof key, "%s.%s", pln_pass_name(run->pass), option);
  if (n > 0 && (size_t)n < sizeof key) {
    const pln_attr *own = pln_attrs_find(run->engine, config, key);
    if (own)
      return own;
  }
  return pln_attrs_find(run->engine, config, option);
}

bool pln_run_option(const pln_pass_run *run, const char *option,
                    pln_attr *out) {
  const pln_attr *value =
      pln_attrs_find(run->engine, run->pass->def->defaults, option);
  if (!value)
    return false;
  const pln_attr *given =
      pln_attrs_find(run->engine, run->pass->options, option);
  if (!given)
    given = configured(run, option);
  /* a config key of the same name may have another kind */
  *out = given && given->kind == value->kind ? *given : *value;
  return true;
}

int64_t pln_run_int(const pln_pass_run *run, const char *option) {
  pln_attr value;
  if (!pln_run_option(run, option, &value))
    return 0;
  bool whole = value.kind == PLN_ATTR_INT || value.kind == PLN_ATTR_BOOL;
  return whole ? value.v.i : 0;
}

pln_slice pln_run_string(const pln_pass_run *run, const char *option) {
  char text[64];
  pln_attr value;
  pln_symbol symbol;
  if (!pln_run_option(run, option, &value))
    return pln_text(NULL);
  if (value.kind == PLN_ATTR_STRING)
    return value.v.s;
  if (value.kind == PLN_ATTR_INT || value.kind == PLN_ATTR_BOOL)
    snprintf(text, sizeof text, "%lld", (long long)value.v.i);
  else if (value.kind == PLN_ATTR_FLOAT)
    snprintf(text, sizeof text, "%.17g", value.v.f);
  else
    return pln_text(NULL);
  if (pln_symbol_intern(run->engine, pln_text(text), &symbol) != PLN_OK)
    return pln_text(NULL);
  return pln_symbol_text(run->engine, symbol);
}

/* ------------------------------------------------------------------ results */

void pln_run_set_function(pln_pass_run *run, pln_graph *function) {
  pln_graph_release(run->new_function);
  run->new_function = function;
}

void pln_run_set_module(pln_pass_run *run, pln_module *module) {
  pln_module_release(run->new_module);
  run->new_module = module;
}

pln_status pln_run_remove_function(pln_pass_run *run) {
  if (run->pass->def->kind != PLN_PASS_PRIM_FUNC)
    return pln_diag_error(run->engine, PLN_ERR_ARGUMENT, NULL,
                          "only a pass over PrimFuncs removes functions");
  if (run->per_function)
    return pln_diag_error(run->engine, PLN_ERR_ARGUMENT, NULL,
                          "functions{...} keeps all functions");
  run->remove = true;
  return PLN_OK;
}

pln_status pln_run_drop(pln_pass_run *run, uint32_t index) {
  run->remove = false;
  if (!run->removed)
    run->removed =
        pln_mem_zeroed(run->engine, run->module->count * sizeof *run->removed);
  if (!run->removed)
    return pln_nomem(run->engine);
  run->removed[index] = true;
  return PLN_OK;
}

pln_status pln_rewrite_function(pln_pass_run *run, const pln_mutator *mutator) {
  pln_graph *function;
  PLN_TRY(pln_graph_rewrite(pln_run_function(run), mutator, &function));
  pln_run_set_function(run, function);
  return PLN_OK;
}

/* ----------------------------------------------------------------- counters */

static int64_t add_saturating(int64_t a, int64_t b) {
  if (b > 0 && a > INT64_MAX - b)
    return INT64_MAX;
  if (b < 0 && a < INT64_MIN - b)
    return INT64_MIN;
  return a + b;
}

pln_status pln_run_count(pln_pass_run *run, const char *key, int64_t n) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(run->engine, pln_text(key), &symbol));
  for (uint32_t i = 0; i < run->n_counters; i++)
    if (run->counters[i].key == symbol) {
      run->counters[i].n = add_saturating(run->counters[i].n, n);
      return PLN_OK;
    }
  PLN_TRY(pln_mem_grow(run->engine, (void **)&run->counters, &run->cap_counters,
                       (size_t)run->n_counters + 1, sizeof *run->counters));
  run->counters[run->n_counters++] = (pln_counter){symbol, n};
  return PLN_OK;
}

pln_status pln_run_add_count(pln_pass_run *run, const char *key, int64_t n) {
  if (!run->equal && !strcmp(key, PLN_EQUAL_COPY))
    run->equal = pln_run_name(run);
  return pln_run_count(run, key, n);
}

pln_status pln_run_counts(const pln_pass_run *run, pln_attrs *out) {
  uint32_t n = run->n_counters;
  *out = 0;
  if (!n)
    return PLN_OK;
  pln_attr *entries = pln_mem_zeroed(run->engine, n * sizeof *entries);
  if (!entries)
    return pln_nomem(run->engine);
  for (uint32_t i = 0; i < n; i++)
    entries[i] = (pln_attr){.name = run->counters[i].key,
                            .kind = PLN_ATTR_INT,
                            .v.i = run->counters[i].n};
  pln_status status = pln_attrs_make(run->engine, n, entries, out);
  pln_mem_free(run->engine, entries, n * sizeof *entries);
  return status;
}

pln_status pln_run_purity(pln_pass_run *run, const pln_purity **out) {
  *out = &run->purity;
  return run->purity.impure ? PLN_OK
                            : pln_purity_begin(&run->purity, run->module);
}

static void mark_references(const pln_module *module, const pln_graph *g,
                            bool *referenced) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind != PLN_GLOBAL_VAR)
      continue;
    uint32_t i = pln_module_find(module, g->nodes[ref].data);
    if (i != PLN_NONE)
      referenced[i] = true;
  }
}

pln_status pln_run_is_referenced(pln_pass_run *run, bool *out) {
  const pln_module *module = run->module;
  if (!run->referenced) {
    run->referenced =
        pln_mem_zeroed(run->engine, module->count * sizeof *run->referenced);
    if (!run->referenced)
      return pln_nomem(run->engine);
    for (uint32_t i = 0; i < module->count; i++)
      mark_references(module, pln_module_function_at(module, i),
                      run->referenced);
  }
  *out = run->referenced[run->index];
  return PLN_OK;
}

void pln_run_free(pln_pass_run *run) {
  if (run->referenced)
    pln_mem_free(run->engine, run->referenced,
                 run->module->count * sizeof *run->referenced);
  if (run->purity.impure)
    pln_purity_end(&run->purity);
  pln_graph_release(run->new_function);
  pln_module_release(run->new_module);
  if (run->removed)
    pln_mem_free(run->engine, run->removed,
                 run->module->count * sizeof *run->removed);
  pln_mem_free(run->engine, run->counters,
               run->cap_counters * sizeof *run->counters);
}
