/* call.c: evaluates one operator on tensors. Called by the evaluator for each
 * call, and by fold_call.c.
 *
 * Invariants: kernels get dense tensors whose elements are in memory. Where it
 * is cheap to see that a result of splats is a splat, splat.c computes it as
 * one. */

#include "eval/call.h"
#include "eval/splat.h"

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

/* An interrupted kernel leaves its output incomplete; the output is
 * discarded. */
static pln_status run_kernel(const pln_prepared_call *w,
                             const pln_tensor *const *args) {
  pln_kernel_call call = {.engine = w->graph->engine,
                          .op = w->node->data,
                          .attrs = w->attrs,
                          .n_args = w->count,
                          .args = args,
                          .n_results = pln_n_results(w->graph, w->node),
                          .results = w->results,
                          .folding = w->folding,
                          .orders = w->orders};
  size_t mark = pln_diag_count(call.engine);
  pln_status status = pln_op_row(call.engine, call.op)->kernel(&call);
  if (pln_is_stopped(call.engine)) {
    pln_diag_drop(call.engine, mark); /* its diagnostics concern incomplete
                                       * data */
    status = pln_stopped(call.engine);
  }
  if (status != PLN_OK)
    pln_tensors_release(call.n_results, w->results);
  return status;
}

typedef pln_status (*prepare_fn)(const pln_tensor *tensor, pln_tensor **out);

/* Runs the kernel on the arguments converted by `prepare`. */
static pln_status run_prepared(const pln_prepared_call *w, prepare_fn prepare) {
  pln_engine *e = w->graph->engine;
  pln_tensor *few[PLN_FEW_ARGS] = {NULL}, **ready = few;
  size_t size = w->count * sizeof *ready;
  if (w->count > PLN_FEW_ARGS && !(ready = pln_mem_zeroed(e, size)))
    return pln_nomem(e);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < w->count && status == PLN_OK; i++)
    if (w->args[i])
      status = prepare(w->args[i], &ready[i]);
  if (status == PLN_OK)
    status = run_kernel(w, (const pln_tensor *const *)ready);
  pln_tensors_release(w->count, ready);
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

pln_status pln_call_operand(const pln_tensor *tensor, pln_tensor **out) {
  const void *data;
  PLN_TRY(pln_tensor_data(tensor, &data));
  if (tensor->splat || aligned(tensor))
    return pln_tensor_dense(tensor, out);
  return pln_tensor_from_bytes(tensor->engine, (pln_dtype)tensor->dtype,
                               tensor->rank, tensor->dims, data, tensor->bytes,
                               out);
}

/* The same for a kernel with PLN_TRAIT_UNALIGNED: floats are not copied for
 * alignment. */
static pln_status unaligned(const pln_tensor *tensor, pln_tensor **out) {
  if (is_float32_or_64(tensor) && !tensor->splat && !tensor->external) {
    *out = pln_tensor_retain(tensor);
    return PLN_OK;
  }
  return pln_call_operand(tensor, out);
}

static pln_status map_splats(const pln_prepared_call *w) {
  uint32_t rank;
  int64_t dims[PLN_SPLAT_RANK];
  if (!pln_splats_broadcast(w->count, w->args, &rank, dims))
    return run_prepared(w, pln_call_operand);
  PLN_TRY(run_prepared(w, pln_splat_element));
  pln_tensor *one = w->results[0];
  w->results[0] = NULL;
  pln_status status = pln_tensor_splat(w->graph->engine, (pln_dtype)one->dtype,
                                       rank, dims, one->data, w->results);
  pln_tensor_release(one);
  return status;
}

static bool ready_as_they_are(bool takes_unaligned, uint32_t n,
                              const pln_tensor *const *args) {
  for (uint32_t i = 0; i < n; i++)
    if (args[i] && (args[i]->splat || args[i]->external ||
                    (!aligned(args[i]) &&
                     !(takes_unaligned && is_float32_or_64(args[i])))))
      return false;
  return true;
}

pln_status pln_call_run(const pln_prepared_call *w) {
  const pln_graph *g = w->graph;
  const pln_op_info *row = pln_op_row(g->engine, w->node->data);
  if (!row->kernel)
    return pln_diag_error(g->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "operator '%s' cannot be evaluated", row->name);
  PLN_TRY(check_present(g, w->node, w->count, w->args));
  /* Weights are large and often unaligned in their file. Kernels that accept
   * that save a copy on each call. */
  bool takes_unaligned = row->traits & PLN_TRAIT_UNALIGNED;
  if (ready_as_they_are(takes_unaligned, w->count, w->args))
    return run_kernel(w, w->args);
  if (pln_splat_is_moved(w->node, w->count, w->args)) {
    PLN_TRY(pln_splat_move(g, w->node, w->count, w->args, w->results));
    if (w->results[0])
      return PLN_OK;
  }
  if (pln_splats_are_mapped(g, w->node, w->count, w->args))
    return map_splats(w);
  return run_prepared(w, takes_unaligned ? unaligned : pln_call_operand);
}

pln_status pln_compute_as(const pln_graph *graph, pln_ref node, pln_attrs attrs,
                          uint32_t n, const pln_tensor *const *args,
                          pln_tensor **results) {
  pln_prepared_call w = {.graph = graph,
                         .node = &graph->nodes[node],
                         .attrs = attrs,
                         .count = n,
                         .args = args,
                         .results = results};
  return pln_call_run(&w);
}

pln_status pln_compute(const pln_graph *graph, pln_ref node, uint32_t n,
                       const pln_tensor *const *args, pln_tensor **results) {
  return pln_compute_as(graph, node, graph->nodes[node].attrs, n, args,
                        results);
}
