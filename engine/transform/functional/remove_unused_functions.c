/* remove_unused_functions.c: RemoveUnusedFunctions: removes the functions that
 * the entry functions do not reach.
 *
 * Run by the executor, once per module. Requires verified graphs. A function is
 * reached if an entry function, or a reached one, names it; PrimFuncs are
 * searched too. Type definitions and attributes stay. An entry function that
 * the module does not have is PLN_ERR_NAME.
 *
 *     def @f(%x) { tanh(%x) }  def @g(%x) { @f(%x) }  def @main(%x) { @f(%x) }
 *       =>   def @f(%x) { tanh(%x) }  def @main(%x) { @f(%x) }
 *
 * Semantics: TVM RemoveUnusedFunctions, which also changes its input; here the
 * input stays as it is. */

#include "transform/transform.h"

typedef struct reach {
  pln_engine *engine;
  const pln_module *module;
  bool *unused;   /* by function */
  uint32_t *list; /* reached functions, in order of processing */
  uint32_t n_list;
} reach;

static void reach_function(reach *r, uint32_t i) {
  if (!r->unused[i])
    return;
  r->unused[i] = false;
  r->list[r->n_list++] = i;
}

static pln_status reach_entry(reach *r, pln_slice name) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(r->engine, name, &symbol));
  uint32_t i = pln_module_find(r->module, symbol);
  if (i == PLN_NONE)
    return pln_diag_error(
        r->engine, PLN_ERR_NAME, NULL,
        "'entry_functions': the module has no function '%.*s'", (int)name.size,
        name.data);
  reach_function(r, i);
  return PLN_OK;
}

static void reach_callees(reach *r, const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    if (g->nodes[ref].kind != PLN_GLOBAL_VAR)
      continue;
    uint32_t i = pln_module_find(r->module, g->nodes[ref].data);
    if (i != PLN_NONE)
      reach_function(r, i);
  }
}

static pln_status reach_all(reach *r, const pln_attr *entries) {
  for (uint32_t i = 0; i < entries->count; i++)
    PLN_TRY(reach_entry(r, entries->v.strings[i]));
  for (uint32_t k = 0; k < r->n_list; k++)
    reach_callees(r, pln_module_function_at(r->module, r->list[k]));
  return PLN_OK;
}

static pln_status drop_unused(reach *r, pln_pass_run *run) {
  pln_module *module;
  bool allowed;
  uint32_t n = r->module->count - r->n_list;
  if (n == 0)
    return PLN_OK;
  PLN_TRY(pln_rule_apply(r->engine, "remove", PLN_NONE, &allowed));
  if (!allowed)
    return PLN_OK;
  PLN_TRY(pln_module_drop(r->module, r->unused, &module));
  pln_run_set_module(run, module);
  return pln_run_count(run, "removed", n);
}

pln_status pln_pass_remove_unused_functions(pln_pass_run *run) {
  reach r = {.engine = pln_run_engine(run), .module = pln_run_module(run)};
  size_t n = r.module->count + (size_t)1;
  pln_attr entries;
  pln_status status = PLN_OK;
  (void)pln_run_option(run, "entry_functions", &entries);
  r.unused = pln_mem_new(r.engine, n * sizeof *r.unused);
  r.list = pln_mem_new(r.engine, n * sizeof *r.list);
  if (r.unused && r.list) {
    memset(r.unused, true, n * sizeof *r.unused);
    status = reach_all(&r, &entries);
    if (status == PLN_OK)
      status = drop_unused(&r, run);
  } else {
    status = pln_nomem(r.engine);
  }
  pln_mem_free(r.engine, r.unused, n * sizeof *r.unused);
  pln_mem_free(r.engine, r.list, n * sizeof *r.list);
  return status;
}
