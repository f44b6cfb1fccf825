/* call_cost.c: asks a function of an operator what a call costs.
 *
 * Called by EqualitySaturation with cost="measured", for each call of the
 * e-graph that is not of constants alone. pl.tune.call_costs
 * (lua/perilune/tune/cost/calls.lua) sets the function, which measures:
 *
 *     function(attrs, types, constants, n_results)   -> seconds
 *
 * `types` are those of the operands. `constants` has for each operand false; or
 * true, if it is computed of constants alone; or the list of its elements, if
 * it is a small constant of integers: a shape or sizes, which decide what is
 * computed. */

#include "transform/simplify/call_cost.h"

#include "ir/tensor/tensor.h"
#include "perilune/op_attr.h"

/* Constants of more elements are told by their types alone. */
enum { MOST_ELEMENTS = 64 };

static const char call_cost_key[] = "perilune.call_cost";

/* Elements of small constants, one list behind the other. */
typedef struct cost_question {
  const pln_graph *graph;
  const pln_node *node;
  uint64_t constants;
  pln_op_value *types, *flags, *elements;
} cost_question;

/* The small constant of integers that an operand is, or NULL. */
static const pln_tensor *small_constant(const pln_graph *g, pln_ref operand) {
  int64_t first;
  const pln_tensor *t = g->nodes[operand].kind == PLN_CONSTANT
                            ? pln_node_tensor(g, operand)
                            : NULL;
  bool small = t && pln_tensor_count(t) <= MOST_ELEMENTS;
  if (small && pln_tensor_count(t) > 0)
    small = pln_tensor_int(t, 0, &first);
  return small ? t : NULL;
}

/* The elements; returns their number. */
static uint32_t fill_elements(const pln_tensor *t, pln_op_value *out) {
  uint32_t n = (uint32_t)pln_tensor_count(t);
  for (uint32_t i = 0; i < n; i++) {
    out[i] = (pln_op_value){.kind = PLN_OP_INT};
    (void)pln_tensor_int(t, i, &out[i].v.i);
  }
  return n;
}

static void fill_operands(cost_question *q) {
  const pln_graph *g = q->graph;
  pln_op_value *at = q->elements;
  for (uint32_t i = 0; i < q->node->count; i++) {
    pln_ref operand = g->operands[q->node->first + i];
    const pln_tensor *t = small_constant(g, operand);
    bool constant = i < 64 && (q->constants >> i & 1);
    q->types[i] =
        (pln_op_value){.kind = PLN_OP_TYPE, .v.type = g->nodes[operand].type};
    q->flags[i] = (pln_op_value){.kind = PLN_OP_BOOL, .v.i = constant};
    if (!t)
      continue;
    uint32_t n = fill_elements(t, at);
    q->flags[i] = (pln_op_value){.kind = PLN_OP_LIST, .v.list = {n, at}};
    at += n;
  }
}

static size_t count_elements(const pln_graph *g, const pln_node *n) {
  size_t sum = 0;
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_tensor *t = small_constant(g, g->operands[n->first + i]);
    sum += t ? pln_tensor_count(t) : 0;
  }
  return sum;
}

static pln_status ask_cost(cost_question *q, pln_ref node, double *out) {
  const pln_graph *g = q->graph;
  uint32_t n = q->node->count;
  bool asked;
  pln_op_value args[] = {
      {.kind = PLN_OP_ATTRS, .v.attrs = q->node->attrs},
      {.kind = PLN_OP_LIST, .v.list = {n, q->types}},
      {.kind = PLN_OP_LIST, .v.list = {n, q->flags}},
      {.kind = PLN_OP_INT, .v.i = q->node->results},
  };
  pln_op_value result = {.kind = PLN_OP_FLOAT};
  pln_op_call call = {.graph = g,
                      .node = node,
                      .n_args = PLN_COUNT(args),
                      .args = args,
                      .result = &result};
  PLN_TRY(
      pln_op_attr_call(g->engine, q->node->data, call_cost_key, &call, &asked));
  *out = result.v.f;
  return asked ? PLN_OK
               : pln_diag_error(g->engine, PLN_ERR_ARGUMENT, NULL,
                                "cost 'measured': nothing measures calls of "
                                "'%s'; pl.tune.call_costs does, where it is in "
                                "use",
                                pln_op_name(g->engine, q->node->data).data);
}

pln_status pln_call_cost(void *ud, const pln_graph *graph, pln_ref node,
                         uint64_t constants, double *out) {
  /* The function may append nodes elsewhere, never to this graph. */
  const pln_node n = graph->nodes[node];
  pln_engine *e = graph->engine;
  size_t size = (2 * (size_t)n.count + count_elements(graph, &n) + 1) *
                sizeof(pln_op_value);
  (void)ud;
  cost_question q = {.graph = graph, .node = &n, .constants = constants};
  q.types = pln_mem_new(e, size);
  if (!q.types)
    return pln_nomem(e);
  q.flags = q.types + n.count;
  q.elements = q.flags + n.count;
  fill_operands(&q);
  pln_status status = ask_cost(&q, node, out);
  pln_mem_free(e, q.types, size);
  return status;
}
