/* budget.c: decides which constants a pass may create. Called by FoldConstant
 * and every other pass that creates constants, node by node.
 *
 * Invariant: once every allowed node of a graph is folded, no further node
 * becomes allowed, because the decision depends only on the node and the
 * constants that die with it. */

#include "eval/eval.h"

static const char *const names[PLN_N_REFUSALS] = {
    [PLN_REFUSED_NOT] = "folded",
    [PLN_REFUSED_NO_KERNEL] = "no_kernel",
    [PLN_REFUSED_EFFECT] = "effect",
    [PLN_REFUSED_OVER_BUDGET] = "over_budget",
    [PLN_REFUSED_REFERENCE] = "attribute_reference",
    [PLN_REFUSED_UNDEFINED] = "undefined",
    [PLN_REFUSED_STEPS] = "too_many_steps",
};

const char *pln_refusal_name(pln_refusal why) {
  return why < PLN_N_REFUSALS ? names[why] : "";
}

void pln_budget_refuse(pln_budget *budget, pln_refusal why) {
  if (why < PLN_N_REFUSALS)
    budget->refused[why]++;
}

bool pln_budget_allows(pln_budget *budget, size_t bytes, size_t freed) {
  if (budget->all || bytes <= PLN_BUDGET_FREE || bytes <= freed)
    return true;
  pln_budget_refuse(budget, PLN_REFUSED_OVER_BUDGET);
  return false;
}

/* Stored size of a Constant: a splat stores one element. */
static size_t stored_bytes(const pln_tensor *t) {
  return t->splat ? pln_splat_bytes((pln_dtype)t->dtype) : t->bytes;
}

/* How often `node` uses its operand `i`; 0 when an earlier operand is the same
 * node. In calls of many operands each counts as used once. */
static uint32_t own_uses(const pln_ref *args, uint32_t n, uint32_t i) {
  enum { FEW = 64 };
  uint32_t count = 1;
  if (n > FEW)
    return 1;
  for (uint32_t k = 0; k < n; k++) {
    if (args[k] != args[i] || k == i)
      continue;
    if (k < i)
      return 0;
    count++;
  }
  return count;
}

size_t pln_budget_freed(const pln_graph *graph, pln_ref node,
                        const uint32_t *uses) {
  const pln_node *n = &graph->nodes[node];
  const pln_ref *args = pln_operands(graph, n);
  size_t sum = 0;
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_node *arg = &graph->nodes[args[i]];
    if (arg->kind == PLN_CONSTANT &&
        own_uses(args, n->count, i) == uses[args[i]])
      sum += stored_bytes(graph->tensors[arg->data]);
  }
  return sum;
}

static size_t type_bytes(const pln_engine *engine, pln_type type) {
  int32_t rank = pln_type_rank(engine, type);
  pln_dtype dtype = pln_type_dtype(engine, type);
  size_t count, bytes;
  if (rank < 0 || !dtype)
    return SIZE_MAX;
  const pln_dim *dims = pln_type_dims(engine, type);
  for (int32_t i = 0; i < rank; i++)
    if (!PLN_DIM_IS_CONST(dims[i]))
      return SIZE_MAX;
  if (pln_tensor_size(dtype, (uint32_t)rank, dims, &count, &bytes) != PLN_OK)
    return SIZE_MAX;
  return bytes;
}

size_t pln_budget_bytes(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  pln_engine *engine = graph->engine;
  if (pln_type_get_kind(engine, n->type) != PLN_TYPE_TUPLE)
    return type_bytes(engine, n->type);
  size_t sum = 0;
  for (uint32_t i = 0; i < pln_type_n_parts(engine, n->type); i++) {
    size_t bytes = type_bytes(engine, pln_type_part_at(engine, n->type, i));
    if (bytes > SIZE_MAX - sum)
      return SIZE_MAX;
    sum += bytes;
  }
  return sum;
}
