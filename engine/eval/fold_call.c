/* fold_call.c: evaluates one call of a graph whose operands are constants.
 * Called by FoldConstant and by rules that make constants.
 *
 * Invariant: a result has the type of the node, or there is none; a file may
 * declare wrong types. */

#include "eval/call.h"

pln_ref pln_eval_skip_on_device(const pln_graph *graph, pln_ref node) {
  while (graph->nodes[node].kind == PLN_CALL &&
         graph->nodes[node].data == PLN_OP_ON_DEVICE)
    node = pln_operand(graph, node, 0);
  return node;
}

/* The inputs that operand i stands for: the fields of a Tuple, as in Relay's
 * concatenate, else itself. */
static const pln_ref *inputs_of(const pln_graph *g, const pln_node *n,
                                uint32_t i, uint32_t *count) {
  const pln_ref *args = pln_operands(g, n);
  bool joins =
      n->data && pln_op_row(g->engine, n->data)->traits & PLN_TRAIT_JOIN;
  const pln_node *arg =
      joins ? &g->nodes[pln_eval_skip_on_device(g, args[i])] : NULL;
  bool tuple = arg && arg->kind == PLN_TUPLE;
  *count = tuple ? arg->count : 1;
  return tuple ? pln_operands(g, arg) : args + i;
}

static uint32_t count_inputs(const pln_graph *g, const pln_node *n) {
  uint32_t sum = 0, count;
  for (uint32_t i = 0; i < n->count; i++) {
    (void)inputs_of(g, n, i, &count);
    sum += count;
  }
  return sum;
}

static bool operands_constant(const pln_graph *g, const pln_node *n) {
  uint32_t count;
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_ref *inputs = inputs_of(g, n, i, &count);
    for (uint32_t k = 0; k < count; k++) {
      uint8_t kind = g->nodes[pln_eval_skip_on_device(g, inputs[k])].kind;
      if (kind != PLN_CONSTANT && kind != PLN_ABSENT)
        return false;
    }
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

static bool all_have_type(const pln_graph *g, const pln_node *n,
                          pln_tensor *const *results) {
  uint32_t fields = pln_n_fields(g, n);
  if (!fields)
    return pln_tensor_fits(g->engine, results[0], n->type);
  uint32_t parts = pln_type_n_parts(g->engine, n->type);
  for (uint32_t i = 0; i < fields && i < parts; i++)
    if (!pln_tensor_fits(g->engine, results[i],
                         pln_type_part_at(g->engine, n->type, i)))
      return false;
  return true;
}

/* A file may contain an ill-typed call; kernels never see it. */
static pln_status check_types(const pln_graph *g, const pln_node *n) {
  pln_type few[PLN_FEW_ARGS] = {0}, *types = few;
  size_t size = pln_n_results(g, n) * sizeof *types;
  if (pln_n_results(g, n) > PLN_FEW_ARGS &&
      !(types = pln_mem_zeroed(g->engine, size)))
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

static void list_inputs(const pln_graph *g, const pln_node *n,
                        const pln_tensor **args) {
  uint32_t count;
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_ref *inputs = inputs_of(g, n, i, &count);
    for (uint32_t k = 0; k < count; k++) {
      const pln_node *arg = &g->nodes[pln_eval_skip_on_device(g, inputs[k])];
      *args++ = arg->kind == PLN_CONSTANT ? g->tensors[arg->data] : NULL;
    }
  }
}

static pln_status fold_call(const pln_graph *g, pln_ref node, uint32_t count,
                            const pln_tensor **args, pln_tensor **results) {
  const pln_node *n = &g->nodes[node];
  size_t mark = pln_diag_count(g->engine);
  list_inputs(g, n, args);
  memset(results, 0, pln_n_results(g, n) * sizeof *results);
  pln_status status = check_types(g, n);
  if (status == PLN_OK)
    status = pln_call_run(
        &(pln_prepared_call){g, n, n->attrs, count, args, results, true, NULL});
  if (status == PLN_OK && !all_have_type(g, n, results)) {
    pln_tensors_release(pln_n_results(g, n), results);
    status = PLN_ERR_UNSUPPORTED;
  }
  if (status == PLN_ERR_UNSUPPORTED)
    pln_diag_drop(g->engine, mark);
  return status;
}

pln_status pln_eval_call(const pln_graph *graph, pln_ref node,
                         pln_tensor **results) {
  uint32_t n = count_inputs(graph, &graph->nodes[node]);
  const pln_tensor *few[PLN_FEW_ARGS], **args = few;
  if (n > PLN_FEW_ARGS &&
      !(args = pln_mem_new(graph->engine, n * sizeof *args)))
    return pln_nomem(graph->engine);
  pln_status status = fold_call(graph, node, n, args, results);
  if (args != few)
    pln_mem_free(graph->engine, args, n * sizeof *args);
  return status;
}
