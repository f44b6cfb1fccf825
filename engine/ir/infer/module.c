/* infer/module.c: infers the types of a module or an expression.
 *
 * Called by InferType, the text parser and scripts. Fully typed functions stay
 * the same objects. The others are inferred callees first; mutually recursive
 * functions (a component of the call graph) are inferred
 * together, each with one type for all calls among them. Invariants of the
 * result: kinds are checked, and every Match marked complete is complete. */

#include "ir/graph/call_graph.h"
#include "ir/infer/check_calls.h"
#include "ir/infer/check_kind.h"
#include "ir/infer/check_uses.h"
#include "ir/infer/inferencer.h"
#include "ir/infer/match_coverage.h"

typedef struct module_inference {
  pln_engine *engine;
  pln_module *module; /* a copy that receives the inferred functions */
  uint8_t *open;      /* per function: some type in it is unknown */
  uint32_t *along;    /* per function in the current component: its graph index
                       * there, plus 1 */
  uint32_t *stack;    /* open functions whose callers are not looked at yet */
  bool changed;
  uint32_t n_refused; /* contradictions reported */
} module_inference;

static pln_status set_up(module_inference *in, const pln_module *module) {
  size_t n = (size_t)module->count + 1;
  in->open = pln_mem_zeroed(in->engine, n * sizeof *in->open);
  in->along = pln_mem_zeroed(in->engine, n * sizeof *in->along);
  in->stack = pln_mem_zeroed(in->engine, n * sizeof *in->stack);
  return in->open && in->along && in->stack ? PLN_OK : pln_nomem(in->engine);
}

static void tear_down(module_inference *in, const pln_module *module) {
  size_t n = (size_t)module->count + 1;
  pln_mem_free(in->engine, in->open, n * sizeof *in->open);
  pln_mem_free(in->engine, in->along, n * sizeof *in->along);
  pln_mem_free(in->engine, in->stack, n * sizeof *in->stack);
}

/* ------------------------------------------------------------------ groups */

static pln_status store_inferred_function(module_inference *in,
                                          pln_inferencer *t, uint32_t i,
                                          uint32_t function) {
  pln_graph *typed;
  PLN_TRY(pln_inferencer_result(t, i, &typed));
  pln_status status = PLN_OK;
  if (typed != pln_module_function_at(in->module, function)) {
    in->changed = true;
    status = pln_module_set(in->module,
                            pln_module_name_at(in->module, function), typed);
  }
  pln_graph_release(typed);
  return status;
}

static pln_status type_members(module_inference *in, pln_inferencer *t,
                               uint32_t n, const uint32_t *functions) {
  t->along = in->along;
  for (uint32_t i = 0; i < n; i++)
    in->along[functions[i]] = i + 1;
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(
        pln_inferencer_add(t, pln_module_name_at(in->module, functions[i]),
                           pln_module_function_at(in->module, functions[i])));
  }
  PLN_TRY(pln_inferencer_solve(t));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(store_inferred_function(in, t, i, functions[i]));
  return PLN_OK;
}

/* A component with contradictions is left unchanged, and inference continues
 * with others so that their errors are reported too. */
static pln_status type_group(module_inference *in, uint32_t n,
                             const uint32_t *functions) {
  pln_inferencer t;
  pln_inferencer_init(&t, in->engine, in->module);
  t.most_refused = PLN_MOST_REFUSED - in->n_refused;
  pln_status status = type_members(in, &t, n, functions);
  pln_inferencer_free(&t);
  for (uint32_t i = 0; i < n; i++)
    in->along[functions[i]] = 0;
  if (status != PLN_ERR_TYPE)
    return status;
  in->n_refused += t.n_refused > 0 ? t.n_refused : 1;
  return in->n_refused < PLN_MOST_REFUSED ? PLN_OK : status;
}

/* ------------------------------------------------------------------ module */

/* A call that may become more precise when its callee is inferred: its caller,
 * and the next such call of the same callee + 1. */
typedef struct untyped_call {
  uint32_t caller, next;
} untyped_call;

typedef struct untyped_calls {
  untyped_call *rows;
  uint32_t *first; /* per callee: its first call + 1 */
  uint32_t n, capacity;
} untyped_calls;

/* Lists the GlobalVars of unknown type in the fully typed function `i`. */
static pln_status list_untyped_calls(module_inference *in, uint32_t i,
                                     untyped_calls *calls) {
  const pln_graph *g = pln_module_function_at(in->module, i);
  for (pln_ref ref = 0; ref < g->n_nodes && !in->open[i]; ref++) {
    const pln_node *n = &g->nodes[ref];
    if (n->kind != PLN_GLOBAL_VAR ||
        !(pln_type_flags(in->engine, n->type) & PLN_TYPE_HAS_OPEN_TENSOR))
      continue;
    uint32_t callee = pln_module_find(in->module, n->data);
    if (callee == PLN_NONE)
      continue;
    PLN_TRY(pln_mem_grow(in->engine, (void **)&calls->rows, &calls->capacity,
                         (size_t)calls->n + 1, sizeof *calls->rows));
    calls->rows[calls->n] = (untyped_call){i, calls->first[callee]};
    calls->first[callee] = ++calls->n;
  }
  return PLN_OK;
}

/* A function that calls an open function and knows little of its type becomes
 * open. */
static void open_callers(module_inference *in, const untyped_calls *calls) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < in->module->count; i++)
    if (in->open[i])
      in->stack[n++] = i;
  while (n > 0) {
    uint32_t call = calls->first[in->stack[--n]];
    for (; call; call = calls->rows[call - 1].next) {
      uint32_t caller = calls->rows[call - 1].caller;
      if (in->open[caller])
        continue;
      in->open[caller] = true;
      in->stack[n++] = caller;
    }
  }
}

static pln_status open_callers_of_open(module_inference *in) {
  size_t count = (size_t)in->module->count + 1;
  untyped_calls calls = {.n = 0};
  calls.first = pln_mem_zeroed(in->engine, count * sizeof *calls.first);
  if (!calls.first)
    return pln_nomem(in->engine);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < in->module->count && status == PLN_OK; i++)
    status = list_untyped_calls(in, i, &calls);
  if (status == PLN_OK)
    open_callers(in, &calls);
  pln_mem_free(in->engine, calls.first, count * sizeof *calls.first);
  pln_mem_free(in->engine, calls.rows, calls.capacity * sizeof *calls.rows);
  return status;
}

/* Checks functions that were fully typed before and were not inferred. */
static pln_status check_known(const pln_module *module) {
  PLN_TRY(pln_module_check_calls(module));
  return pln_module_check_early_uses(module);
}

/* Infers the open functions, callees first. */
static pln_status infer_components(module_inference *in,
                                   const pln_module *module) {
  pln_component_search search;
  pln_component c;
  PLN_TRY(pln_component_search_new(module, in->open, &search));
  pln_status status = PLN_OK;
  while (status == PLN_OK && pln_component_next(&search, &c))
    status = type_group(in, c.n, c.functions);
  pln_component_search_free(&search);
  return status;
}

static pln_status infer_all(module_inference *in, const pln_module *module) {
  bool any = false;
  for (uint32_t i = 0; i < in->module->count; i++) {
    in->open[i] = pln_graph_is_open(pln_module_function_at(in->module, i));
    any = any || in->open[i];
  }
  if (any)
    PLN_TRY(open_callers_of_open(in));
  if (any)
    PLN_TRY(infer_components(in, module));
  if (in->n_refused > 0)
    return PLN_ERR_TYPE;
  if (!pln_module_was_onnx(in->module))
    PLN_TRY(check_known(in->module));
  PLN_TRY(pln_module_check_kinds(in->module));
  return pln_module_check_matches(in->module);
}

pln_status pln_module_infer(const pln_module *module, pln_module **out) {
  module_inference in = {.engine = module->engine};
  PLN_TRY(pln_module_copy(module, &in.module));
  pln_stoppable_begin(in.engine);
  pln_status status = set_up(&in, module);
  if (status == PLN_OK)
    status = infer_all(&in, module);
  status = pln_work_done(in.engine, status);
  tear_down(&in, module);
  if (status == PLN_OK)
    *out = in.changed ? in.module : pln_module_retain(module);
  if (status != PLN_OK || !in.changed)
    pln_module_release(in.module);
  return status;
}

static pln_status infer_open(pln_inferencer *t, const pln_graph *graph,
                             pln_graph **out) {
  PLN_TRY(pln_inferencer_add(t, 0, graph));
  PLN_TRY(pln_inferencer_solve(t));
  return pln_inferencer_result(t, 0, out);
}

static pln_status infer_expression(const pln_graph *graph,
                                   const pln_module *module, pln_graph **out) {
  if (!pln_graph_is_open(graph)) {
    *out = pln_graph_retain(graph);
    return PLN_OK;
  }
  pln_inferencer t;
  pln_inferencer_init(&t, graph->engine, module);
  pln_status status = infer_open(&t, graph, out);
  pln_inferencer_free(&t);
  return status;
}

static pln_status infer_checked(const pln_graph *graph,
                                const pln_module *module, pln_graph **out) {
  pln_graph *typed;
  PLN_TRY(infer_expression(graph, module, &typed));
  pln_status status = pln_graph_check_early_uses(typed);
  if (status == PLN_OK)
    status = pln_graph_check_matches(typed, module);
  if (status == PLN_OK)
    *out = typed;
  else
    pln_graph_release(typed);
  return status;
}

pln_status pln_graph_infer(const pln_graph *graph, const pln_module *module,
                           pln_graph **out) {
  pln_stoppable_begin(graph->engine);
  return pln_work_done(graph->engine, infer_checked(graph, module, out));
}
