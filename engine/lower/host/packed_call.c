/* packed_call.c: see packed_call.h. Called by tir.MakePackedAPI and
 * tir.MakeUnpackedAPI. */

#include "lower/host/packed_call.h"

#include "ir/graph/module.h"

bool pln_is_packed_function(const pln_graph *g) {
  const pln_node *n = &g->nodes[g->root];
  return n->kind == PLN_PRIM_FUNC &&
         pln_attrs_int(g->engine, n->attrs, "calling_conv", 0) == 0 &&
         pln_attrs_find(g->engine, n->attrs, "global_symbol");
}

const pln_graph *pln_called_function(const pln_module *module,
                                     const pln_graph *g, pln_ref call) {
  const pln_node *n = &g->nodes[call];
  if (n->kind != PLN_PRIM_CALL || n->data != 0 || n->count == 0)
    return NULL;
  const pln_node *name = &g->nodes[pln_operand(g, call, 0)];
  uint32_t at = name->kind == PLN_GLOBAL_VAR
                    ? pln_module_find(module, name->data)
                    : PLN_NONE;
  return at < pln_module_count(module) ? pln_module_function_at(module, at)
                                       : NULL;
}

pln_status pln_packed_call_lower(const pln_module *module, const pln_graph *g,
                                 pln_stmt_rewrite *s, pln_ref old,
                                 pln_ref *node) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  const pln_graph *callee = pln_called_function(module, g, old);
  pln_ref args[66];
  uint32_t n = g->nodes[old].count;
  if (!callee || !pln_is_packed_function(callee))
    return PLN_OK;
  if (n > 64)
    return pln_diag_error(g->engine, PLN_ERR_LIMIT, NULL,
                          "tir.MakePackedAPI: a call has more than 63 "
                          "arguments");
  args[0] = pln_emit_string(
      &e, pln_attrs_string(g->engine, callee->nodes[callee->root].attrs,
                           "global_symbol", ""));
  for (uint32_t i = 1; i < n; i++)
    args[i] = pln_stmt_image(s, pln_operand(g, old, i));
  pln_ref zero = pln_emit_int(&e, PLN_UINT64, 0);
  args[n] = pln_emit_call(&e, "reinterpret", pln_emit_type(&e, PLN_DTYPE_NONE),
                          1, &zero);
  *node =
      pln_emit_call(&e, "tvm_call_cpacked", g->nodes[old].type, n + 1, args);
  return e.status;
}

/* ------------------------------------------------------------------ modules */

typedef struct changed_functions {
  uint32_t n;
  pln_symbol *names;
  const pln_graph **functions; /* retained */
} changed_functions;

static pln_status rewrite_one(const pln_module *module, uint32_t i,
                              pln_prim_func_rewriter rewrite, void *ud,
                              changed_functions *all) {
  const pln_graph *old = pln_module_function_at(module, i);
  pln_graph *function;
  if (old->nodes[old->root].kind != PLN_PRIM_FUNC)
    return PLN_OK;
  PLN_TRY(rewrite(ud, module, i, old, &function));
  all->names[all->n] = pln_module_name_at(module, i);
  all->functions[all->n++] = function;
  return PLN_OK;
}

static pln_status rewrite_all(pln_pass_run *run, pln_prim_func_rewriter rewrite,
                              void *ud, changed_functions *all) {
  const pln_module *module = pln_run_module(run);
  pln_module *out;
  for (uint32_t i = 0; i < pln_module_count(module); i++)
    PLN_TRY(rewrite_one(module, i, rewrite, ud, all));
  PLN_TRY(pln_module_with_functions(module, all->n, all->names, all->functions,
                                    &out));
  pln_run_set_module(run, out);
  return PLN_OK;
}

pln_status pln_rewrite_prim_funcs(pln_pass_run *run,
                                  pln_prim_func_rewriter rewrite, void *ud) {
  pln_engine *e = pln_run_engine(run);
  uint32_t n = pln_module_count(pln_run_module(run));
  changed_functions all = {.names = pln_mem_new(e, n * sizeof(pln_symbol)),
                           .functions = pln_mem_new(e, n * sizeof(void *))};
  pln_status status = n == 0 ? PLN_OK
                      : all.names && all.functions
                          ? rewrite_all(run, rewrite, ud, &all)
                          : pln_nomem(e);
  for (uint32_t i = 0; i < all.n; i++)
    pln_graph_release((pln_graph *)(uintptr_t)all.functions[i]);
  pln_mem_free(e, all.names, n * sizeof(pln_symbol));
  pln_mem_free(e, all.functions, n * sizeof(void *));
  return status;
}
