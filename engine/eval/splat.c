/* splat.c: calls whose operands are splats, computed as one element. Called by
 * call.c before a kernel runs.
 *
 * Invariant: a splat that is moved gets the shape that inference gives for the
 * operands, never the declared one. */

#include "eval/splat.h"

static bool traits_have(const pln_graph *g, const pln_node *n, uint32_t bits) {
  return (pln_op_row(g->engine, n->data)->traits & bits) != 0;
}

/* Data movement that cannot fail on operands that inference accepted. */
static bool only_moves(pln_op op) {
  return op == PLN_OP_RESHAPE || op == PLN_OP_FLATTEN || op == PLN_OP_SQUEEZE ||
         op == PLN_OP_UNSQUEEZE || op == PLN_OP_TRANSPOSE ||
         op == PLN_OP_SLICE || op == PLN_OP_EXPAND || op == PLN_OP_TILE;
}

static bool constant_dims(const pln_engine *e, pln_type type) {
  int32_t rank = pln_type_rank(e, type);
  const pln_dim *dims = pln_type_dims(e, type);
  for (int32_t i = 0; i < rank; i++)
    if (!PLN_DIM_IS_CONST(dims[i]))
      return false;
  return rank >= 0;
}

bool pln_splat_is_moved(const pln_node *n, uint32_t count,
                        const pln_tensor *const *args) {
  return count > 0 && count <= PLN_FEW_ARGS && args[0] && args[0]->splat &&
         n->results == 0 && only_moves(n->data);
}

/* The result type inferred from these tensors; 0 when inference cannot
 * determine it or refuses. The node's own type is not used, because a file may
 * declare a wrong one. */
static pln_status infer_result_type(const pln_graph *g, const pln_node *n,
                                    uint32_t count,
                                    const pln_tensor *const *args,
                                    pln_type *out) {
  pln_engine *e = g->engine;
  pln_type types[PLN_FEW_ARGS];
  pln_infer call = {.engine = e,
                    .graph = g,
                    .n_args = count,
                    .op = n->data,
                    .fields = types,
                    .tensors = args,
                    .results = out};
  *out = 0;
  PLN_TRY(pln_attrs_within(e, n->attrs, &call.attrs));
  for (uint32_t i = 0; i < count; i++)
    PLN_TRY(pln_tensor_type(e, args[i], &types[i]));
  size_t mark = pln_diag_count(e);
  pln_status status = pln_op_row(e, n->data)->infer(&call);
  if (status != PLN_ERR_TYPE)
    return status;
  pln_diag_drop(e, mark);
  *out = 0;
  return PLN_OK;
}

/* Moving a splat gives a splat if the result's shape is known; otherwise *out
 * is left unset. */
pln_status pln_splat_move(const pln_graph *g, const pln_node *n, uint32_t count,
                          const pln_tensor *const *args, pln_tensor **out) {
  pln_type type;
  const void *data;
  PLN_TRY(infer_result_type(g, n, count, args, &type));
  if (!constant_dims(g->engine, type))
    return PLN_OK;
  PLN_TRY(pln_tensor_data(args[0], &data));
  return pln_tensor_splat(g->engine, (pln_dtype)args[0]->dtype,
                          (uint32_t)pln_type_rank(g->engine, type),
                          pln_type_dims(g->engine, type), data, out);
}

/* True for an elementwise call whose operands are pln_splat_element elements or
 * splats, with at least one splat. */
bool pln_splats_are_mapped(const pln_graph *g, const pln_node *n,
                           uint32_t count, const pln_tensor *const *args) {
  bool many = false;
  for (uint32_t i = 0; i < count; i++) {
    if (args[i] && args[i]->count != 1 && !args[i]->splat)
      return false;
    if (args[i] && args[i]->count == 0)
      return false;
    many |= args[i] && args[i]->count > 1;
  }
  return many && n->results == 0 && n->data != PLN_OP_EXPAND &&
         n->data != PLN_OP_CAST_LIKE &&
         traits_have(g, n, PLN_TRAIT_ELEMENTWISE | PLN_TRAIT_BROADCAST);
}

/* The broadcast shape of the operands; false when they do not broadcast. */
bool pln_splats_broadcast(uint32_t n, const pln_tensor *const *args,
                          uint32_t *rank, int64_t *dims) {
  *rank = 0;
  for (uint32_t i = 0; i < n; i++)
    if (args[i] && args[i]->rank > *rank)
      *rank = args[i]->rank;
  if (*rank > PLN_SPLAT_RANK)
    return false;
  for (uint32_t k = 0; k < *rank; k++)
    dims[k] = 1;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; args[i] && k < args[i]->rank; k++) {
      int64_t *dim = &dims[*rank - args[i]->rank + k];
      if (*dim != 1 && args[i]->dims[k] != 1 && *dim != args[i]->dims[k])
        return false;
      if (*dim == 1)
        *dim = args[i]->dims[k];
    }
  return true;
}

/* The pln_splat_element stored element of a tensor, as a tensor of the same
 * rank. */
pln_status pln_splat_element(const pln_tensor *x, pln_tensor **out) {
  int64_t ones[PLN_SPLAT_RANK];
  for (uint32_t i = 0; i < x->rank; i++)
    ones[i] = 1;
  const void *data;
  PLN_TRY(pln_tensor_data(x, &data));
  return pln_tensor_from_bytes(x->engine, (pln_dtype)x->dtype, x->rank, ones,
                               data, pln_splat_bytes((pln_dtype)x->dtype), out);
}
