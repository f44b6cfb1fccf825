/* verify_module.c: verifies the functions of a module, each by itself and
 * against the module.
 *
 * Called by the executor after each pass, by scripts and by reading. */

#include "ir/graph/describe.h"
#include "ir/graph/module.h"
#include "ir/infer/check_calls.h"
#include "ir/infer/check_uses.h"
#include "ir/tir/tir.h"

static pln_status wrong_global(const pln_module *m, const pln_graph *g,
                               pln_ref ref, const char *before,
                               const char *behind) {
  pln_diag_error(m->engine, PLN_ERR_INVALID, NULL,
                 "invalid IR at node %u: %s'@%s'%s", ref, before,
                 pln_symbol_text(m->engine, g->nodes[ref].data).data, behind);
  pln_note_node(g, ref);
  return PLN_ERR_INVALID;
}

/* Checks that a GlobalVar names a function of the module, has its type and at
 * least its call effect. */
static pln_status check_global(const pln_module *m, const pln_graph *g,
                               pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  uint32_t i = pln_module_find(m, n->data);
  if (i == PLN_NONE)
    return wrong_global(m, g, ref, "the module has no function ", "");
  const pln_graph *f = pln_module_function_at(m, i);
  if (n->type && n->type != pln_signature(f) && !pln_has_own_type(g, n, f))
    return wrong_global(m, g, ref, "", " has another type in the module");
  if (pln_node_call_effect(n) < pln_node_call_effect(&f->nodes[f->root]))
    return wrong_global(m, g, ref, "", " has effects that its caller lacks");
  return PLN_OK;
}

pln_status pln_module_check_names(const pln_module *m, const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_GLOBAL_VAR &&
        pln_module_find(m, g->nodes[ref].data) == PLN_NONE)
      return wrong_global(m, g, ref, "the module has no function ", "");
  return PLN_OK;
}

pln_status pln_module_check_globals(const pln_module *m, uint32_t index) {
  const pln_graph *g = pln_module_function_at(m, index);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_GLOBAL_VAR)
      PLN_TRY(check_global(m, g, ref));
  return PLN_OK;
}

static pln_status verify_graph(const pln_module *m, uint32_t index, bool open) {
  const pln_graph *f = pln_module_function_at(m, index);
  bool prim_func = f->nodes[f->root].kind == PLN_PRIM_FUNC;
  pln_status status =
      open && prim_func ? pln_graph_verify(f) : pln_graph_verify_closed(f);
  if (status == PLN_ERR_INVALID)
    pln_diag_note(
        m->engine, NULL, "in function @%s",
        pln_symbol_text(m->engine, pln_module_name_at(m, index)).data);
  return pln_annotate_function(m, index, status);
}

static pln_status verify_function(const pln_module *m, uint32_t index,
                                  bool open) {
  const pln_graph *f = pln_module_function_at(m, index);
  PLN_TRY(verify_graph(m, index, open));
  PLN_TRY(pln_module_check_globals(m, index));
  return pln_annotate_function(m, index, pln_graph_check_constructors(f, m));
}

pln_status pln_module_verify_function(const pln_module *m, uint32_t index) {
  return verify_function(m, index, false);
}

static pln_status verify_all(const pln_module *module, bool open) {
  for (uint32_t i = 0; i < module->count; i++) {
    PLN_TRY(pln_poll_stoppable(module->engine));
    PLN_TRY(verify_function(module, i, open));
  }
  return PLN_OK;
}

pln_status pln_module_verify(const pln_module *module) {
  pln_stoppable_begin(module->engine);
  return pln_work_done(module->engine, verify_all(module, false));
}

/* *open: a PrimFunc of the module has a free variable. */
static pln_status is_open(const pln_module *module, bool *open) {
  *open = false;
  for (uint32_t i = 0; i < module->count && !*open; i++)
    PLN_TRY(pln_tir_is_open(pln_module_function_at(module, i), open));
  return PLN_OK;
}

pln_status pln_module_verify_result(const pln_module *module,
                                    const pln_module *before) {
  bool open;
  PLN_TRY(is_open(before, &open));
  pln_stoppable_begin(module->engine);
  return pln_work_done(module->engine, verify_all(module, open));
}
