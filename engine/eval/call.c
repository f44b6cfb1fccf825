/* call.c: evaluates one operator on tensors. Called by the evaluator for each
 * call, and by passes that fold constants.
 *
 * Invariants: kernels get dense tensors whose elements are in memory. Where it
 * is cheap to see that a result of splats is a splat, it is computed as one. */

#include "eval/call.h"

/* Maximum number of arguments stored without an allocation. */
enum { FEW_ARGS = 8 };

static bool traits_have(const pln_graph *g, const pln_node *n, uint32_t bits) {
  return (pln_op_row(g->engine, n->data)->traits & bits) != 0;
}

/* ------------------------------------------------------------------- splats */

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

static bool moves_splat(const pln_node *n, uint32_t count,
                        const pln_tensor *const *args) {
  return count > 0 && count <= FEW_ARGS && args[0] && args[0]->splat &&
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
  pln_type types[FEW_ARGS];
  pln_infer call = {.engine = e,
                    .graph = g,
                    .n_args = count,
                    .op = n->data,
                    .fields = types,
                    .tensors = args,
                    .results = out};
  *out = 0;
  PLN_TRY(pln_attrs_within(e, n->attrs, &call.attrs));
  for (uint32_t i = 0; i < count; i++) {
    types[i] = 0;
    if (args[i])
      PLN_TRY(pln_type_tensor(e, (pln_dtype)args[i]->dtype,
                              (int32_t)args[i]->rank, args[i]->dims,
                              &types[i]));
  }
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
static pln_status move_splat(const pln_graph *g, const pln_node *n,
                             uint32_t count, const pln_tensor *const *args,
                             pln_tensor **out) {
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

/* True for an elementwise call whose operands are single elements or splats,
 * with at least one splat. */
static bool maps_splats(const pln_graph *g, const pln_node *n, uint32_t count,
                        const pln_tensor *const *args) {
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

enum { SPLAT_RANK = 64 };

/* The broadcast shape of the operands; false when they do not broadcast. */
static bool broadcast_dims(uint32_t n, const pln_tensor *const *args,
                           uint32_t *rank, int64_t *dims) {
  *rank = 0;
  for (uint32_t i = 0; i < n; i++)
    if (args[i] && args[i]->rank > *rank)
      *rank = args[i]->rank;
  if (*rank > SPLAT_RANK)
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

/* The single stored element of a tensor, as a tensor of the same rank. */
static pln_status single(const pln_tensor *x, pln_tensor **out) {
  int64_t ones[SPLAT_RANK];
  for (uint32_t i = 0; i < x->rank; i++)
    ones[i] = 1;
  const void *data;
  PLN_TRY(pln_tensor_data(x, &data));
  return pln_tensor_from_bytes(x->engine, (pln_dtype)x->dtype, x->rank, ones,
                               data, pln_splat_bytes((pln_dtype)x->dtype), out);
}

/* ------------------------------------------------------------------ kernels */

static void release_all(uint32_t n, pln_tensor **tensors) {
  for (uint32_t i = 0; i < n; i++) {
    pln_tensor_release(tensors[i]);
    tensors[i] = NULL;
  }
}

static uint32_t n_results(const pln_node *n) {
  return n->results ? n->results : 1;
}

/* A file may omit an operand that the kernel requires. */
static pln_status check_present(const pln_graph *g, const pln_node *n,
                                uint32_t count, const pln_tensor *const *args) {
  const pln_op_info *row = pln_op_row(g->engine, n->data);
  for (uint32_t i = 0; i < count; i++)
    if (!args[i] && (i < (uint32_t)row->min_args || row->max_args < 0))
      return pln_diag_error(g->engine, PLN_ERR_UNSUPPORTED, NULL,
                            "'%s', operand %u: is missing", row->name, i);
  if (count >= (uint32_t)row->min_args)
    return PLN_OK;
  return pln_diag_error(g->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "'%s' takes at least %d operands", row->name,
                        row->min_args);
}

/* A call with its arguments. */
typedef struct prepared_call {
  const pln_graph *graph;
  const pln_node *node;
  pln_attrs attrs; /* the node's attributes with references resolved */
  uint32_t count;
  const pln_tensor *const *args;
  pln_tensor **results;
  bool folding; /* called by a pass, not by a run */
} prepared_call;

/* An interrupted kernel leaves its output incomplete; the output is
 * discarded. */
static pln_status run_kernel(const prepared_call *w,
                             const pln_tensor *const *args) {
  pln_kernel_call call = {.engine = w->graph->engine,
                          .op = w->node->data,
                          .attrs = w->attrs,
                          .n_args = w->count,
                          .args = args,
                          .n_results = n_results(w->node),
                          .results = w->results,
                          .folding = w->folding};
  size_t mark = pln_diag_count(call.engine);
  pln_status status = pln_op_row(call.engine, call.op)->kernel(&call);
  if (pln_is_stopped(call.engine)) {
    pln_diag_drop(call.engine, mark); /* its diagnostics concern incomplete
                                       * data */
    status = pln_stopped(call.engine);
  }
  if (status != PLN_OK)
    release_all(call.n_results, w->results);
  return status;
}

typedef pln_status (*prepare_fn)(const pln_tensor *tensor, pln_tensor **out);

/* Runs the kernel on the arguments converted by `prepare`. */
static pln_status run_prepared(const prepared_call *w, prepare_fn prepare) {
  pln_engine *e = w->graph->engine;
  pln_tensor *few[FEW_ARGS] = {NULL}, **ready = few;
  size_t size = w->count * sizeof *ready;
  if (w->count > FEW_ARGS && !(ready = pln_mem_zeroed(e, size)))
    return pln_nomem(e);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < w->count && status == PLN_OK; i++)
    if (w->args[i])
      status = prepare(w->args[i], &ready[i]);
  if (status == PLN_OK)
    status = run_kernel(w, (const pln_tensor *const *)ready);
  release_all(w->count, ready);
  if (ready != few)
    pln_mem_free(e, ready, size);
  return status;
}

/* A view may start at any address in its file. */
static bool aligned(const pln_tensor *t) {
  uint32_t size = pln_dtype_bits((pln_dtype)t->dtype) / 8;
  uint32_t unit = size > 8 ? 8 : size > 1 ? size : 1;
  return ((uintptr_t)t->data & (unit - 1)) == 0;
}

static bool is_float32_or_64(const pln_tensor *t) {
  return t->dtype == PLN_FLOAT32 || t->dtype == PLN_FLOAT64;
}

/* Opens external data, expands splats, aligns. */
static pln_status dense(const pln_tensor *tensor, pln_tensor **out) {
  const void *data;
  PLN_TRY(pln_tensor_data(tensor, &data));
  if (tensor->splat || aligned(tensor))
    return pln_tensor_dense(tensor, out);
  return pln_tensor_from_bytes(tensor->engine, (pln_dtype)tensor->dtype,
                               tensor->rank, tensor->dims, data, tensor->bytes,
                               out);
}

/* The same for a kernel with PLN_TRAIT_LOOSE: floats are not copied for
 * alignment. */
static pln_status loose(const pln_tensor *tensor, pln_tensor **out) {
  if (is_float32_or_64(tensor) && !tensor->splat && !tensor->external) {
    *out = pln_tensor_retain(tensor);
    return PLN_OK;
  }
  return dense(tensor, out);
}

static pln_status map_splats(const prepared_call *w) {
  uint32_t rank;
  int64_t dims[SPLAT_RANK];
  if (!broadcast_dims(w->count, w->args, &rank, dims))
    return run_prepared(w, dense);
  PLN_TRY(run_prepared(w, single));
  pln_tensor *one = w->results[0];
  w->results[0] = NULL;
  pln_status status = pln_tensor_splat(w->graph->engine, (pln_dtype)one->dtype,
                                       rank, dims, one->data, w->results);
  pln_tensor_release(one);
  return status;
}

static bool ready_as_they_are(bool is_loose, uint32_t n,
                              const pln_tensor *const *args) {
  for (uint32_t i = 0; i < n; i++)
    if (args[i] &&
        (args[i]->splat || args[i]->external ||
         (!aligned(args[i]) && !(is_loose && is_float32_or_64(args[i])))))
      return false;
  return true;
}

static pln_status run_prepared_kernel(const prepared_call *w) {
  const pln_graph *g = w->graph;
  const pln_op_info *row = pln_op_row(g->engine, w->node->data);
  if (!row->kernel)
    return pln_diag_error(g->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "operator '%s' cannot be evaluated", row->name);
  PLN_TRY(check_present(g, w->node, w->count, w->args));
  /* Weights are large and often unaligned in their file. Kernels that accept
   * that save a copy on each call. */
  bool is_loose = row->traits & PLN_TRAIT_LOOSE;
  if (ready_as_they_are(is_loose, w->count, w->args))
    return run_kernel(w, w->args);
  if (moves_splat(w->node, w->count, w->args)) {
    PLN_TRY(move_splat(g, w->node, w->count, w->args, w->results));
    if (w->results[0])
      return PLN_OK;
  }
  if (maps_splats(g, w->node, w->count, w->args))
    return map_splats(w);
  return run_prepared(w, is_loose ? loose : dense);
}

pln_status pln_compute_as(const pln_graph *graph, pln_ref node, pln_attrs attrs,
                          uint32_t n, const pln_tensor *const *args,
                          pln_tensor **results) {
  prepared_call w = {graph, &graph->nodes[node], attrs, n, args, results,
                     false};
  return run_prepared_kernel(&w);
}

pln_status pln_compute(const pln_graph *graph, pln_ref node, uint32_t n,
                       const pln_tensor *const *args, pln_tensor **results) {
  return pln_compute_as(graph, node, graph->nodes[node].attrs, n, args,
                        results);
}

/* ------------------------------------------------------------------ folding */

/* The operands, or the fields of the only operand when that is a Tuple, as in
 * Relay's concatenate. */
static const pln_ref *inputs_of(const pln_graph *g, const pln_node *n,
                                uint32_t *count) {
  const pln_ref *args = pln_operands(g, n);
  const pln_node *only = n->count == 1 ? &g->nodes[args[0]] : NULL;
  bool tuple = only && only->kind == PLN_TUPLE;
  *count = tuple ? only->count : n->count;
  return tuple ? pln_operands(g, only) : args;
}

static bool operands_constant(const pln_graph *g, const pln_node *n) {
  uint32_t count;
  const pln_ref *args = inputs_of(g, n, &count);
  for (uint32_t i = 0; i < count; i++) {
    uint8_t kind = g->nodes[args[i]].kind;
    if (kind != PLN_CONSTANT && kind != PLN_ABSENT)
      return false;
  }
  return true;
}

bool pln_eval_can_fold(const pln_graph *graph, pln_ref node, pln_refusal *why) {
  const pln_node *n = &graph->nodes[node];
  *why = PLN_REFUSED_NOT;
  if (n->kind != PLN_CALL || n->data == 0 || !operands_constant(graph, n))
    return false;
  const pln_op_info *row = pln_op_row(graph->engine, n->data);
  if (!(row->traits & PLN_TRAIT_PURE))
    *why = PLN_REFUSED_EFFECT;
  else if (!row->kernel || (row->traits & PLN_TRAIT_DATA))
    *why = PLN_REFUSED_NO_KERNEL;
  else if (pln_attrs_has_refs(graph->engine, n->attrs))
    *why = PLN_REFUSED_REFERENCE;
  return *why == PLN_REFUSED_NOT;
}

/* True if the result has the type that the node promises; a declared type may
 * be wrong. */
bool pln_tensor_fits(const pln_engine *e, const pln_tensor *t, pln_type type) {
  if (!t || !type)
    return true;
  pln_dtype dtype = pln_type_dtype(e, type);
  int32_t rank = pln_type_rank(e, type);
  if ((dtype && dtype != t->dtype) || (rank >= 0 && rank != (int32_t)t->rank))
    return false;
  const pln_dim *dims = pln_type_dims(e, type);
  for (int32_t i = 0; i < rank; i++)
    if (PLN_DIM_IS_CONST(dims[i]) && dims[i] != t->dims[i])
      return false;
  return true;
}

static bool all_have_type(const pln_graph *g, const pln_node *n,
                          pln_tensor *const *results) {
  if (!n->results)
    return pln_tensor_fits(g->engine, results[0], n->type);
  uint32_t parts = pln_type_n_parts(g->engine, n->type);
  for (uint32_t i = 0; i < n->results && i < parts; i++)
    if (!pln_tensor_fits(g->engine, results[i],
                         pln_type_part_at(g->engine, n->type, i)))
      return false;
  return true;
}

/* A file may contain an ill-typed call; kernels never see it. */
static pln_status check_types(const pln_graph *g, const pln_node *n) {
  pln_type few[FEW_ARGS] = {0}, *types = few;
  size_t size = n_results(n) * sizeof *types;
  if (n_results(n) > FEW_ARGS && !(types = pln_mem_zeroed(g->engine, size)))
    return pln_nomem(g->engine);
  pln_infer call = {.engine = g->engine,
                    .graph = g,
                    .args = pln_operands(g, n),
                    .n_args = n->count,
                    .op = n->data,
                    .attrs = n->attrs,
                    .n_results = n->results,
                    .results = types};
  pln_status status = pln_infer_call(&call);
  if (types != few)
    pln_mem_free(g->engine, types, size);
  return status == PLN_ERR_TYPE ? PLN_ERR_UNSUPPORTED : status;
}

static pln_status fold_call(const pln_graph *g, pln_ref node,
                            const pln_tensor **args, pln_tensor **results) {
  const pln_node *n = &g->nodes[node];
  size_t mark = pln_diag_count(g->engine);
  uint32_t count;
  const pln_ref *refs = inputs_of(g, n, &count);
  for (uint32_t i = 0; i < count; i++) {
    const pln_node *arg = &g->nodes[refs[i]];
    args[i] = arg->kind == PLN_CONSTANT ? g->tensors[arg->data] : NULL;
  }
  memset(results, 0, n_results(n) * sizeof *results);
  pln_status status = check_types(g, n);
  if (status == PLN_OK)
    status = run_prepared_kernel(
        &(prepared_call){g, n, n->attrs, count, args, results, true});
  if (status == PLN_OK && !all_have_type(g, n, results)) {
    release_all(n_results(n), results);
    status = PLN_ERR_UNSUPPORTED;
  }
  if (status == PLN_ERR_UNSUPPORTED)
    pln_diag_drop(g->engine, mark);
  return status;
}

pln_status pln_eval_call(const pln_graph *graph, pln_ref node,
                         pln_tensor **results) {
  uint32_t n;
  (void)inputs_of(graph, &graph->nodes[node], &n);
  const pln_tensor *few[FEW_ARGS], **args = few;
  if (n > FEW_ARGS && !(args = pln_mem_new(graph->engine, n * sizeof *args)))
    return pln_nomem(graph->engine);
  pln_status status = fold_call(graph, node, args, results);
  if (args != few)
    pln_mem_free(graph->engine, args, n * sizeof *args);
  return status;
}
