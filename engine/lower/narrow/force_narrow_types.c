/* force_narrow_types.c: decides which integers become int32 whatever their
 * values are (narrow.h).
 *
 * Called by narrow_data_type.c for tir.ForceNarrowIndexToInt32. Immediates of
 * int64 become int32 everywhere, variables and casts where they stand in an
 * index, a shape, or the domain of a loop. An immediate that does not fit is an
 * error, and so is a buffer of int64 among the parameters or in a block.
 *
 * Semantics: Int32DTypeNarrower of TVM's force_narrow_index_to_i32.cc. */

#include "lower/narrow/narrow.h"

static bool is_int64(const pln_engine *e, pln_type type) {
  return pln_type_get_kind(e, type) == PLN_TYPE_PRIM &&
         pln_type_dtype(e, type) == PLN_INT64;
}

/* ------------------------------------------------------------------- checks
 */

static pln_status check_buffer(const pln_graph *g, pln_ref buffer,
                               const char *where) {
  if (pln_buffer_fields_of(g, buffer).dtype != PLN_INT64)
    return PLN_OK;
  pln_slice name = pln_symbol_text(g->engine, g->nodes[buffer].data);
  return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.ForceNarrowIndexToInt32: the buffer '%.*s' %s "
                        "has dtype int64",
                        (int)name.size, name.data, where);
}

static pln_status check_node(const pln_graph *g, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind == PLN_BUFFER_BIND)
    return check_buffer(g, pln_operand(g, ref, 1), "of a parameter");
  if (n->kind == PLN_ALLOC_BUFFER)
    return check_buffer(g, pln_operand(g, ref, 0), "that a block allocates");
  if (n->kind != PLN_INT_IMM || !is_int64(g->engine, n->type) ||
      (int64_t)pln_imm_bits(n) <= INT32_MAX)
    return PLN_OK;
  return pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                        "tir.ForceNarrowIndexToInt32: %lld does not fit in "
                        "int32",
                        (long long)pln_imm_bits(n));
}

/* ------------------------------------------------------------- index contexts
 */

static void mark_params(const pln_graph *g, pln_ref owner, uint8_t *index) {
  const pln_scope_row *scope = &g->scopes[g->nodes[owner].data];
  for (uint32_t i = 0; i < scope->n_params; i++)
    index[scope->begin + i] = 1;
}

static bool is_index_of(const pln_node *n, uint32_t i, bool inside) {
  if (n->kind == PLN_BUFFER || n->kind == PLN_BUFFER_LOAD)
    return i > 0;
  return pln_is_stmt(n) ? pln_is_index_operand(n, i) : inside;
}

/* Users come after their operands: backwards, all of them are seen. */
static void mark_node(const pln_graph *g, pln_ref ref, uint8_t *index) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind == PLN_FOR || n->kind == PLN_BLOCK)
    mark_params(g, ref, index);
  bool thread = n->kind == PLN_ATTR_STMT && pln_binds_thread(g, n);
  if (thread)
    index[pln_operand(g, pln_operand(g, ref, 0), 0)] = 1;
  for (uint32_t i = 0; i < n->count; i++)
    if (is_index_of(n, i, index[ref]) || (thread && i == 1))
      index[pln_operand(g, ref, i)] = 1;
}

static pln_status narrow_type(const pln_graph *g, pln_ref ref, bool index,
                              pln_type *out) {
  const pln_node *n = &g->nodes[ref];
  bool narrows = n->kind == PLN_INT_IMM ||
                 (index && (n->kind == PLN_VAR || n->kind == PLN_PRIM_CAST));
  *out = 0;
  if (!narrows || !is_int64(g->engine, n->type))
    return PLN_OK;
  return pln_type_prim(g->engine, PLN_INT32,
                       (uint32_t)pln_type_number(g->engine, n->type), out);
}

static pln_status fill_types(const pln_graph *g, uint8_t *index,
                             pln_type *types, bool *any) {
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    PLN_TRY(pln_poll_round(g->engine, ref));
    PLN_TRY(check_node(g, ref));
    mark_node(g, ref, index);
  }
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    PLN_TRY(pln_poll_round(g->engine, ref));
    PLN_TRY(narrow_type(g, ref, index[ref], &types[ref]));
    *any |= types[ref] != 0;
  }
  return PLN_OK;
}

pln_status pln_force_narrow_types(const pln_graph *g, pln_type **types,
                                  bool *any) {
  uint8_t *index = pln_mem_zeroed(g->engine, g->n_nodes);
  *any = false;
  *types = pln_mem_zeroed(g->engine, g->n_nodes * sizeof **types);
  pln_status status = index && *types ? fill_types(g, index, *types, any)
                                      : pln_nomem(g->engine);
  if (status != PLN_OK)
    pln_mem_free(g->engine, *types, g->n_nodes * sizeof **types);
  pln_mem_free(g->engine, index, g->n_nodes);
  return status;
}
