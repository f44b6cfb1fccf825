/* tir/binders.c: the variables that a TIR node binds in addition to the
 * parameters of its scopes: variables bound inside PrimExprs, thread variables,
 * and variables of buffers.
 *
 * Called by analysis/vars.c and alpha-renaming. A buffer of a parameter or
 * match binds all variables in its fields; a buffer of a block binds only its
 * data pointer. */

#include "ir/tir/tir.h"

static pln_status visit_bound_var(const pln_graph *g, pln_ref ref,
                                  pln_visit_fn fn, void *ud) {
  return g->nodes[ref].kind == PLN_VAR ? fn(ud, g, ref) : PLN_OK;
}

static pln_status visit_operand_vars(const pln_graph *g, const pln_node *n,
                                     uint32_t first, uint32_t end,
                                     pln_visit_fn fn, void *ud) {
  for (uint32_t i = first; i < end; i++)
    PLN_TRY(visit_bound_var(g, g->operands[n->first + i], fn, ud));
  return PLN_OK;
}

/* The variable of an IterVar; nothing for other nodes. */
static pln_status visit_iter_var(const pln_graph *g, pln_ref ref,
                                 pln_visit_fn fn, void *ud) {
  const pln_node *n = &g->nodes[ref];
  return n->kind == PLN_ITER_VAR && n->count > 0
             ? visit_bound_var(g, g->operands[n->first], fn, ud)
             : PLN_OK;
}

static pln_status visit_axes(const pln_graph *g, const pln_node *n,
                             pln_visit_fn fn, void *ud) {
  for (uint32_t i = 2; i < n->count; i++)
    PLN_TRY(visit_iter_var(g, g->operands[n->first + i], fn, ud));
  return PLN_OK;
}

/* The variables of a buffer's fields, or only its data pointer. */
static pln_status visit_buffer_vars(const pln_graph *g, pln_ref ref, bool all,
                                    pln_visit_fn fn, void *ud) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind != PLN_BUFFER)
    return PLN_OK;
  return visit_operand_vars(g, n, 0, all ? n->count : n->count > 0, fn, ud);
}

bool pln_binds_thread(const pln_graph *g, const pln_node *n) {
  pln_slice key = pln_attrs_string(g->engine, n->attrs, "attr_key", "");
  return (pln_slice_is(key, "thread_extent") ||
          pln_slice_is(key, "virtual_thread")) &&
         g->nodes[g->operands[n->first]].kind == PLN_ITER_VAR;
}

pln_status pln_tir_bound_vars(const pln_graph *g, pln_ref node, pln_visit_fn fn,
                              void *ud) {
  const pln_node *n = &g->nodes[node];
  const pln_ref *o = g->operands + n->first;
  switch ((pln_kind)n->kind) {
  case PLN_PRIM_LET: return visit_bound_var(g, o[0], fn, ud);
  case PLN_COMM_REDUCER:
    return visit_operand_vars(g, n, 0, n->count / 4 * 2, fn, ud);
  case PLN_REDUCE: return visit_axes(g, n, fn, ud);
  case PLN_FOR: return n->count > 2 ? visit_iter_var(g, o[2], fn, ud) : PLN_OK;
  case PLN_ATTR_STMT:
    return pln_binds_thread(g, n) ? visit_iter_var(g, o[0], fn, ud) : PLN_OK;
  case PLN_BUFFER_BIND: return visit_buffer_vars(g, o[1], true, fn, ud);
  case PLN_MATCH_BUFFER: return visit_buffer_vars(g, o[0], true, fn, ud);
  case PLN_ALLOC_BUFFER:
  case PLN_BUFFER_REALIZE: return visit_buffer_vars(g, o[0], false, fn, ud);
  default: return PLN_OK;
  }
}
