/* target.c: the target of a pass: a module, or one function of it inside
 * functions{..}.
 *
 * Made by execute.c and pipeline/per_function.c, replaced by primitive.c.
 * Invariants: the target owns both references; an unchanged target has the same
 * pointers. */

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

/* Returns true if callers cannot tell the functions apart: same signature and
 * effects. */
static bool looks_the_same(const pln_graph *f, const pln_graph *g) {
  return pln_signature(f) == pln_signature(g) &&
         pln_node_call_effect(&f->nodes[f->root]) ==
             pln_node_call_effect(&g->nodes[g->root]);
}

/* Used by hooks before and after each pass over each function; its cost must
 * not depend on the number of functions. */
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
