/* annotate_entry_func.c: tir.AnnotateEntryFunc: marks the function that a
 * module is entered by.
 *
 * Run by the executor. It is the only PrimFunc of the module, or the only one
 * that is seen from outside (attribute global_symbol).
 *
 *     @T.prim_func def main(...)
 *         =>   T.func_attr({"tir.is_entry_func": T.bool(True)})
 *
 * Semantics: TVM's tir.AnnotateEntryFunc. */

#include "ir/graph/module.h"
#include "lower/lower.h"

static const pln_node *prim_func_at(const pln_module *module, uint32_t i) {
  const pln_graph *g = pln_module_function_at(module, i);
  const pln_node *n = &g->nodes[g->root];
  return n->kind == PLN_PRIM_FUNC ? n : NULL;
}

/* The number of the entry function; the module's count: there is none. */
static uint32_t entry_of(const pln_module *module) {
  uint32_t n = pln_module_count(module), prims = 0, external = 0, last = n,
           seen = n;
  for (uint32_t i = 0; i < n; i++) {
    const pln_node *function = prim_func_at(module, i);
    if (!function)
      continue;
    prims++;
    last = i;
    if (pln_attrs_find(module->engine, function->attrs, "global_symbol")) {
      external++;
      seen = i;
    }
  }
  return prims == 1 ? last : external == 1 ? seen : n;
}

static pln_status with_mark(pln_engine *e, pln_attrs attrs, pln_attrs *out) {
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(e, pln_text("tir.is_entry_func"), &name));
  return pln_attrs_with(
      e, attrs, &(pln_attr){.name = name, .kind = PLN_ATTR_BOOL, .v.i = 1},
      out);
}

/* The function's root with other attributes. */
static pln_status mark_root(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                            pln_ref *node) {
  const pln_graph *g = ud;
  const pln_node *n = &g->nodes[stmt];
  pln_prim spec = {.kind = PLN_PRIM_FUNC, .type = n->type};
  if (n->kind != PLN_PRIM_FUNC)
    return PLN_OK;
  PLN_TRY(with_mark(g->engine, n->attrs, &spec.attrs));
  return pln_stmt_rebuild_as(s, stmt, &spec, node);
}

pln_status pln_pass_tir_annotate_entry_func(pln_pass_run *run) {
  const pln_module *module = pln_run_module(run);
  uint32_t entry = entry_of(module), n = pln_module_count(module);
  pln_graph *function;
  pln_module *out;
  if (entry == n ||
      pln_attrs_find(module->engine, prim_func_at(module, entry)->attrs,
                     "tir.is_entry_func"))
    return PLN_OK;
  const pln_graph *old = pln_module_function_at(module, entry);
  pln_stmt_mutator mutator = {.ud = (void *)(uintptr_t)old, .leave = mark_root};
  PLN_TRY(pln_stmt_rewrite_function(old, &mutator, &function));
  pln_status status = pln_module_with(module, pln_module_name_at(module, entry),
                                      function, &out);
  pln_graph_release(function);
  if (status == PLN_OK)
    pln_run_set_module(run, out);
  return status;
}
