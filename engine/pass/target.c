/* target.c: what passes work on: a module or, in a group, one function of it.
 *
 * Made by execute.c and pipeline/per_function.c, replaced by leaf.c. What
 * always holds: both are owned; unchanged is the same pointer. */

#include "pass/pass.h"

pln_pass_target pln_pass_target_copy(const pln_pass_target *s) {
  pln_pass_target copy = *s;
  if (s->module)
    pln_module_retain(s->module);
  if (s->function)
    pln_graph_retain(s->function);
  return copy;
}

void pln_pass_target_release(pln_pass_target *s) {
  pln_module_release(s->module);
  pln_graph_release(s->function);
  s->module = NULL;
  s->function = NULL;
}

bool pln_pass_target_same(const pln_pass_target *a, const pln_pass_target *b) {
  return a->module == b->module && a->function == b->function;
}

void pln_pass_target_set_module(pln_pass_target *s, pln_module *module) {
  pln_module *former = s->module;
  s->module = module;
  pln_module_release(former);
}

void pln_pass_target_set_function(pln_pass_target *s, pln_graph *function) {
  pln_graph *former = s->function;
  s->function = function;
  pln_graph_release(former);
}

/* Do those who call the function see the same in both? */
static bool looks_the_same(const pln_graph *f, const pln_graph *g) {
  return pln_signature(f) == pln_signature(g) &&
         pln_node_call_effect(&f->nodes[f->root]) ==
             pln_node_call_effect(&g->nodes[g->root]);
}

/* For hooks, before and after each pass over each function: what it costs must
 * not depend on how many functions there are. */
pln_status pln_pass_target_module(const pln_pass_target *s, pln_module **out) {
  const pln_graph *old =
      s->function ? pln_module_function_at(s->module, s->index) : NULL;
  if (s->function == old) {
    *out = pln_module_retain(s->module);
    return PLN_OK;
  }
  if (looks_the_same(s->function, old))
    return pln_module_overlay(s->module, s->index, s->function, out);
  return pln_module_with(s->module, pln_module_name_at(s->module, s->index),
                         s->function, out);
}
