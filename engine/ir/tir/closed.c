/* tir/closed.c: checks that a PrimFunc uses no variable that nothing in it
 * binds: no parameter, loop, let, allocation, block or buffer.
 *
 * Called by analysis/verify.c for functions of a module. Where a variable may
 * be used, inside its binder, is checked by var_scopes.c. Variables are
 * compared by identity, because the parameters of a buffer have no node that
 * all of their uses share. */

#include "ir/graph/describe.h"
#include "ir/tir/tir.h"

bool pln_tir_defines(const pln_node *n, uint32_t operand) {
  switch ((pln_kind)n->kind) {
  case PLN_PRIM_LET:
  case PLN_ITER_VAR:
  case PLN_BUFFER_REALIZE: return operand == 0;
  case PLN_COMM_REDUCER: return operand < n->count / 4 * 2;
  default: return false;
  }
}

static pln_status note_bound(void *ud, const pln_graph *g, pln_ref var) {
  return pln_idmap_set(ud, g->nodes[var].data, 1);
}

/* The buffer of a parameter, of a match or of a buffer_bind_scope, whose fields
 * are those of what is passed; else PLN_NONE. */
static pln_ref matched_buffer(const pln_graph *g, const pln_node *n) {
  const pln_ref *operands = pln_operands(g, n);
  switch ((pln_kind)n->kind) {
  case PLN_BUFFER_BIND: return operands[1];
  case PLN_MATCH_BUFFER: return operands[0];
  case PLN_ATTR_STMT:
    return pln_slice_is(pln_attrs_string(g->engine, n->attrs, "attr_key", ""),
                        "buffer_bind_scope")
               ? operands[0]
               : PLN_NONE;
  default: return PLN_NONE;
  }
}

/* All variables of matched buffers, those in an extent n * 2 too. */
static pln_status note_matched(const pln_graph *g, bool *matched,
                               pln_idmap *bound) {
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    pln_ref buffer = matched_buffer(g, n);
    if (buffer != PLN_NONE)
      matched[buffer] = true;
    if (matched[ref] && n->kind == PLN_VAR)
      PLN_TRY(note_bound(bound, g, ref));
    for (uint32_t i = 0; matched[ref] && i < n->count; i++)
      matched[pln_operand(g, ref, i)] = true;
  }
  return PLN_OK;
}

static pln_status note_all_bound(const pln_graph *g, pln_idmap *bound) {
  bool *matched = pln_mem_zeroed(g->engine, g->n_nodes * sizeof *matched);
  if (!matched)
    return pln_nomem(g->engine);
  pln_status status = note_matched(g, matched, bound);
  pln_mem_free(g->engine, matched, g->n_nodes * sizeof *matched);
  PLN_TRY(status);
  for (pln_scope i = 0; i < g->n_scopes; i++)
    for (uint32_t k = 0; k < g->scopes[i].n_params; k++)
      PLN_TRY(note_bound(bound, g, g->scopes[i].begin + k));
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    PLN_TRY(pln_tir_bound_vars(g, ref, note_bound, bound));
  return PLN_OK;
}

static pln_status refuse_free(const pln_graph *g, pln_ref var, pln_ref user) {
  pln_diag_error(g->engine, PLN_ERR_INVALID, NULL,
                 "invalid IR at node %u (Var): the variable '%s' is free in a "
                 "function of a module",
                 var, pln_symbol_text(g->engine, g->nodes[var].attrs).data);
  pln_note_node(g, user);
  return PLN_ERR_INVALID;
}

typedef struct free_use {
  pln_ref var, user; /* PLN_NONE: no variable is free */
} free_use;

static free_use first_free_use(const pln_graph *g, const pln_idmap *bound) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    for (uint32_t i = 0; i < n->count; i++) {
      pln_ref var = g->operands[n->first + i];
      if (g->nodes[var].kind == PLN_VAR && !pln_tir_defines(n, i) &&
          !(g->nodes[var].flags & PLN_NODE_PARAM) &&
          !pln_idmap_get(bound, g->nodes[var].data))
        return (free_use){var, ref};
    }
  }
  return (free_use){PLN_NONE, PLN_NONE};
}

static pln_status find_free_use(const pln_graph *g, free_use *out) {
  pln_idmap *bound;
  PLN_TRY(pln_idmap_new(g->engine, &bound));
  pln_status status = note_all_bound(g, bound);
  if (status == PLN_OK)
    *out = first_free_use(g, bound);
  pln_idmap_free(bound);
  return status;
}

/* Whether there is a variable that no scope has as a parameter. */
static bool may_be_open(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_VAR &&
        !(g->nodes[ref].flags & PLN_NODE_PARAM))
      return true;
  return false;
}

pln_status pln_tir_is_open(const pln_graph *g, bool *open) {
  free_use use;
  *open = false;
  if (g->nodes[g->root].kind != PLN_PRIM_FUNC || !may_be_open(g))
    return PLN_OK;
  PLN_TRY(find_free_use(g, &use));
  *open = use.var != PLN_NONE;
  return PLN_OK;
}

pln_status pln_verify_tir_closed(const pln_graph *g) {
  free_use use;
  PLN_TRY(find_free_use(g, &use));
  return use.var == PLN_NONE ? PLN_OK : refuse_free(g, use.var, use.user);
}
