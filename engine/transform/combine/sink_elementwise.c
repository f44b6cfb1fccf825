/* sink_elementwise.c: SinkElementwise: computes an elementwise operator once,
 * behind the concatenation of its results.
 *
 * Run by the executor, once per function. Requires a verified graph. Operands
 * of a concatenation that are calls of one unary operator with equal
 * attributes, and that nothing else uses, are concatenated before it. Each
 * operand has to be such a call, or, if the operator is idempotent, consist of
 * results of it already. At least two calls go, so that fewer are left. It
 * comes behind CombineParallelOps, which looks for parallel branches with what
 * follows them.
 *
 *     concatenate(relu(%a), relu(%b), split(relu(%c)).0)
 *       =>   relu(concatenate(%a, %b, split(relu(%c)).0))
 *
 * 16-bit floats stay as they are: ONNX Runtime computes elementwise operators
 * that follow each other in float32, so that a concatenation between two of
 * them decides where it rounds. */

#include "ir/analysis/users.h"
#include "op/infer/infer.h"
#include "transform/simplify/rule.h"

enum { MAX_PARTS = 64, MAX_STEPS = 16 };

typedef struct sink_sweep {
  pln_engine *engine;
  const pln_graph *graph;
  pln_users u;
  int64_t sunk;
} sink_sweep;

/* ---------------------------------------------------------------- operators
 */

/* Returns true for a call with one operand whose result has, at each position,
 * a function of the operand's element there. */
static bool is_function(const sink_sweep *s, pln_ref node) {
  const pln_graph *g = s->graph;
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || !n->data || n->count != 1 ||
      (n->flags & (PLN_NODE_KEEP | PLN_NODE_EFFECT)) ||
      !pln_is_call(g, node, n->data))
    return false;
  uint32_t traits = pln_op_row(g->engine, n->data)->traits;
  return (traits & PLN_TRAIT_ELEMENTWISE) && (traits & PLN_TRAIT_PURE) &&
         !(traits & (PLN_TRAIT_RANDOM | PLN_TRAIT_CONTAINER)) &&
         !pln_attrs_find(g->engine, n->attrs, "axis");
}

static pln_dtype dtype_at(const sink_sweep *s, pln_ref node) {
  return pln_type_dtype(s->engine, s->graph->nodes[node].type);
}

static bool is_sinkable(const sink_sweep *s, pln_ref node, pln_ref concat) {
  if (!is_function(s, node) || !pln_users_once(&s->u, node) ||
      s->u.node_scope[node] != s->u.node_scope[concat])
    return false;
  pln_dtype to = dtype_at(s, node);
  pln_dtype from = dtype_at(s, pln_operand(s->graph, node, 0));
  return !pln_dtype_is_half(to) && !pln_dtype_is_half(from);
}

static bool are_equal_calls(const sink_sweep *s, pln_ref a, pln_ref b) {
  const pln_node *n = &s->graph->nodes[a], *m = &s->graph->nodes[b];
  return n->kind == PLN_CALL && n->data == m->data && n->attrs == m->attrs &&
         n->count == m->count;
}

/* Returns true for a call that only moves elements of operand 0. */
static bool moves_elements(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || !n->data || !pln_op_is_onnx_form(g, node) ||
      !pln_call_is_valid(g, node))
    return false;
  switch (n->data) {
  case PLN_OP_SPLIT:
  case PLN_OP_SLICE:
  case PLN_OP_RESHAPE:
  case PLN_OP_FLATTEN:
  case PLN_OP_SQUEEZE:
  case PLN_OP_UNSQUEEZE:
  case PLN_OP_TRANSPOSE: return true;
  default: return false;
  }
}

/* Returns true if the elements of `node` are results of the idempotent
 * function that `call` computes. */
static bool are_results(const sink_sweep *s, pln_ref node, pln_ref call) {
  const pln_graph *g = s->graph;
  for (uint32_t i = 0; i < MAX_STEPS; i++) {
    if (are_equal_calls(s, node, call))
      return is_function(s, node);
    if (g->nodes[node].kind != PLN_TUPLE_GET_ITEM && !moves_elements(g, node))
      return false;
    node = pln_operand(g, node, 0);
  }
  return false;
}

/* ------------------------------------------------------------ concatenations
 */

/* A call that the others are compared with; PLN_NONE: none can be moved. */
static pln_ref first_sinkable(const sink_sweep *s, pln_ref concat) {
  for (uint32_t i = 0; i < s->graph->nodes[concat].count; i++) {
    pln_ref x = pln_operand(s->graph, concat, i);
    if (is_sinkable(s, x, concat))
      return x;
  }
  return PLN_NONE;
}

/* Marks in `sinks` the operands that are calls like `call`; returns true if at
 * least two are, and the others are results of it. */
static bool mark_sinks(const sink_sweep *s, pln_ref concat, pln_ref call,
                       bool *sinks) {
  const pln_graph *g = s->graph;
  bool idempotent =
      pln_op_row(s->engine, g->nodes[call].data)->traits & PLN_TRAIT_IDEMPOTENT;
  pln_dtype dtype = dtype_at(s, pln_operand(g, call, 0));
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->nodes[concat].count; i++) {
    pln_ref x = pln_operand(g, concat, i);
    sinks[i] = is_sinkable(s, x, concat) && are_equal_calls(s, x, call) &&
               dtype_at(s, pln_operand(g, x, 0)) == dtype;
    n += sinks[i];
    if (!sinks[i] &&
        !(idempotent && dtype_at(s, x) == dtype && are_results(s, x, call)))
      return false;
  }
  return n >= 2;
}

static pln_status build_sunk(sink_sweep *s, pln_rewrite *rw, pln_ref old,
                             pln_ref call, const bool *sinks, pln_ref *node) {
  const pln_node n = s->graph->nodes[old], f = s->graph->nodes[call];
  pln_ref args[MAX_PARTS], concat;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  for (uint32_t i = 0; i < n.count; i++) {
    pln_ref x = pln_operand(s->graph, old, i);
    x = sinks[i] ? pln_operand(s->graph, x, 0) : x;
    args[i] = pln_rewrite_image(rw, x);
  }
  PLN_TRY(pln_build_call(b, n.data, n.attrs, 0, n.count, args, &concat));
  PLN_TRY(pln_build_call(b, f.data, f.attrs, 0, 1, &concat, node));
  s->sunk++;
  return pln_keep_type(rw, *node, n.type);
}

static pln_status visit_concat(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  sink_sweep *s = ud;
  bool sinks[MAX_PARTS], allowed;
  if (!pln_is_call(s->graph, old, PLN_OP_CONCAT) ||
      s->graph->nodes[old].count > MAX_PARTS)
    return PLN_OK;
  pln_ref call = first_sinkable(s, old);
  if (call == PLN_NONE || !mark_sinks(s, old, call, sinks))
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "sink", &allowed));
  return allowed ? build_sunk(s, rw, old, call, sinks, node) : PLN_OK;
}

/* -------------------------------------------------------------------- pass */

pln_status pln_pass_sink_elementwise(pln_pass_run *run) {
  sink_sweep s = {.engine = pln_run_engine(run),
                  .graph = pln_run_function(run)};
  pln_mutator m = {.ud = &s, .visit = visit_concat, .keeps_types = true};
  pln_graph *out = NULL;
  pln_status status = pln_users_begin(&s.u, s.graph);
  if (status == PLN_OK)
    status = pln_graph_rewrite(s.graph, &m, &out);
  pln_users_end(&s.u);
  if (status == PLN_OK && s.sunk)
    status = pln_run_count(run, "sunk", s.sunk);
  if (status == PLN_OK)
    pln_run_set_function(run, out);
  else
    pln_graph_release(out);
  return status;
}
