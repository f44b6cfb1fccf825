/* qnn_legalize.c: replaces calls by what an operator's attribute or a table
 * says. Called by qnn.CanonicalizeOps and qnn.Legalize.
 *
 * An attribute is a function of the call's attributes, its operands and the
 * types of these and of the result; it returns an expression, or nothing.
 *
 * Semantics: TVM's Legalize (legalize.cc). */

#include "transform/quantize/qnn_legalize.h"

typedef struct qnn_rewrite {
  pln_engine *engine;
  const char *key;
  pln_qnn_replace_fn (*find)(pln_op op);
  pln_requantize_config config;
  pln_target_features target;
  pln_op_value *values; /* operands and types of a call */
  uint32_t cap_values;
  int64_t replaced;
} qnn_rewrite;

/* ----------------------------------------------------------------- attributes
 */

static pln_status ask(qnn_rewrite *s, pln_rewrite *rw, pln_ref old,
                      pln_ref node, pln_op_value *result) {
  const pln_graph *g = pln_rewrite_graph(rw);
  uint32_t n = g->nodes[node].count;
  bool called;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->values, &s->cap_values,
                       2 * (size_t)n + 1, sizeof *s->values));
  for (uint32_t i = 0; i <= n; i++) {
    pln_ref of = i < n ? pln_operand(g, node, i) : node;
    s->values[i] = (pln_op_value){.kind = PLN_OP_NODE, .v.node = of};
    s->values[n + i] =
        (pln_op_value){.kind = PLN_OP_TYPE, .v.type = g->nodes[of].type};
  }
  pln_op_value args[] = {
      {.kind = PLN_OP_ATTRS, .v.attrs = g->nodes[node].attrs},
      {.kind = PLN_OP_LIST, .v.list = {n, s->values}},
      {.kind = PLN_OP_LIST, .v.list = {n + 1, s->values + n}}};
  pln_op_call call = {.graph = pln_rewrite_old(rw),
                      .node = old,
                      .rewrite = rw,
                      .image = node,
                      .n_args = PLN_COUNT(args),
                      .args = args,
                      .result = result};
  return pln_op_attr_call(s->engine, g->nodes[node].data, s->key, &call,
                          &called);
}

static pln_status replace_by_attribute(qnn_rewrite *s, pln_rewrite *rw,
                                       pln_ref old, pln_ref *node) {
  pln_op_value result = {.kind = PLN_OP_NODE, .optional = true};
  bool allowed;
  PLN_TRY(ask(s, rw, old, *node, &result));
  if (result.kind == PLN_OP_NIL || result.v.node == *node)
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, s->key, &allowed));
  if (!allowed)
    return PLN_OK;
  *node = result.v.node;
  s->replaced++;
  return PLN_OK;
}

/* ---------------------------------------------------------------------- table
 */

static pln_status replace_by_table(qnn_rewrite *s, pln_rewrite *rw,
                                   pln_qnn_replace_fn replace, pln_ref *node) {
  pln_qnn_call q = {.config = s->config, .target = s->target};
  pln_ref call = *node;
  PLN_TRY(pln_relay_begin(&q.r, rw));
  const pln_graph *g = q.r.b->graph;
  const pln_node *n = &g->nodes[call];
  if (n->count > PLN_COUNT(q.args) || n->results != 0)
    return PLN_OK;
  q.op = n->data;
  q.attrs = n->attrs;
  q.type = n->type;
  q.n_args = n->count;
  if (n->count)
    memcpy(q.args, pln_operands(g, n), n->count * sizeof *q.args);
  PLN_TRY(pln_relay_finish(&q.r, "replace", replace(&q), node));
  s->replaced += *node != call;
  return PLN_OK;
}

static pln_status replace_call(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  qnn_rewrite *s = ud;
  const pln_node *n = &pln_rewrite_graph(rw)->nodes[*node];
  if (n->kind != PLN_CALL || !n->data)
    return PLN_OK;
  if (pln_op_attr_get(s->engine, n->data, s->key))
    return replace_by_attribute(s, rw, old, node);
  pln_qnn_replace_fn replace = s->find(n->data);
  return replace ? replace_by_table(s, rw, replace, node) : PLN_OK;
}

/* ---------------------------------------------------------------------- config
 */

#define ROUNDING "relay.qnn.requantize.rounding"
#define COMPUTE_DTYPE "relay.qnn.requantize.compute_dtype"

/* Where the context does not say what to compute with, it is float32 on targets
 * that round floats by one instruction, as in TVM. */
static pln_status read_config(const pln_pass_run *run,
                              const pln_target_features *target,
                              pln_requantize_config *out) {
  pln_attr rounding, compute;
  bool given = pln_attrs_find(run->engine, run->context->config, COMPUTE_DTYPE);
  PLN_TRY(pln_context_config_value(run->context, ROUNDING, &rounding));
  PLN_TRY(pln_context_config_value(run->context, COMPUTE_DTYPE, &compute));
  out->nearest = pln_slice_is(rounding.v.s, "TONEAREST");
  out->compute = pln_dtype_find(compute.v.s);
  out->has_rounding = target->has_sse41;
  if (target->has_sse41 && !given)
    out->compute = PLN_FLOAT32;
  return PLN_OK;
}

pln_status pln_qnn_legalize(pln_pass_run *run, const char *key,
                            pln_qnn_replace_fn (*find)(pln_op op)) {
  qnn_rewrite s = {.engine = pln_run_engine(run), .key = key, .find = find};
  pln_mutator m = {.ud = &s, .visit = replace_call};
  s.target = pln_target_features_of(run);
  PLN_TRY(read_config(run, &s.target, &s.config));
  pln_status status = pln_rewrite_function(run, &m);
  pln_mem_free(s.engine, s.values, s.cap_values * sizeof *s.values);
  PLN_TRY(status);
  return s.replaced ? pln_run_count(run, "replaced", s.replaced) : PLN_OK;
}
