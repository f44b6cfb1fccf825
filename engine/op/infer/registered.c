/* registered.c: type inference of registered operators: by one of the rules of
 * perilune/operator.h, or by the operator's callback.
 *
 * Called through the rows of registered operators, and by their kernel for the
 * types of what it computes. A callback may call back into the engine, so
 * nothing that points into a graph is used after it. */

#include "op/infer/registered.h"
#include "ir/registered_op.h"

/* A call whose operands' types are in one array. */
typedef struct typed_call {
  pln_engine *engine;
  pln_op op;
  const pln_operator_spec *spec;
  pln_attrs attrs; /* as stored */
  uint32_t n;
  const pln_type *args; /* 0: omitted, or unknown */
  bool unknown;         /* one of them is */
  pln_type *results;    /* as many as the operator has */
} typed_call;

/* Broadcasting of all operands that are there. `present` is memory for them. */
static pln_status broadcast_all(const typed_call *t, pln_type *present) {
  pln_infer all = {.engine = t->engine,
                   .op = t->op,
                   .fields = present,
                   .results = t->results};
  pln_dtype dtype;
  pln_shape shape;
  for (uint32_t i = 0; i < t->n; i++)
    if (t->args[i])
      present[all.n_args++] = t->args[i];
  if (t->unknown || all.n_args == 0)
    return PLN_OK;
  PLN_TRY(pln_args_one_dtype(&all, 0, all.n_args, &dtype));
  PLN_TRY(pln_args_broadcast(&all, 0, all.n_args, &shape));
  PLN_TRY(pln_result_tensor(&all, 0, dtype, &shape));
  for (uint32_t i = 1; i < t->spec->n_results; i++)
    t->results[i] = t->results[0];
  return PLN_OK;
}

static pln_status infer_broadcast(const typed_call *t) {
  pln_type *present = pln_mem_new(t->engine, (t->n + 1u) * sizeof *present);
  pln_status status =
      present ? broadcast_all(t, present) : pln_nomem(t->engine);
  pln_mem_free(t->engine, present, (t->n + 1u) * sizeof *present);
  return status;
}

/* A type that tells a callback all it asks for. */
static bool is_known(const typed_call *t, pln_type type) {
  const pln_engine *e = t->engine;
  if (pln_type_get_kind(e, type) != PLN_TYPE_TENSOR)
    return t->spec->traits & PLN_OPERATOR_VALUES;
  return pln_type_dtype(e, type) && pln_type_rank(e, type) >= 0;
}

static pln_status call_back(const typed_call *t) {
  const pln_registered_op *op = pln_op_row(t->engine, t->op)->registered;
  pln_operator_typing call = {.engine = t->engine,
                              .op = t->op,
                              .n_args = t->n,
                              .args = t->args,
                              .n_results = t->spec->n_results,
                              .results = t->results};
  for (uint32_t i = 0; i < t->n; i++)
    if (t->unknown || (t->args[i] && !is_known(t, t->args[i])))
      return PLN_OK;
  PLN_TRY(pln_registered_full(t->engine, op, t->attrs, &call.attrs));
  PLN_TRY(pln_op_callback_begin(t->engine, t->op, "infer"));
  pln_status status = t->spec->infer(t->spec->ud, &call);
  pln_op_callback_end(t->engine);
  return status;
}

static pln_status infer_by_rule(const typed_call *t) {
  const pln_operator_spec *s = t->spec;
  switch (s->rule) {
  case PLN_OPERATOR_UNTYPED: return PLN_OK;
  case PLN_OPERATOR_LIKE:
    for (uint32_t i = 0; i < s->n_results && s->like < t->n; i++)
      t->results[i] = t->args[s->like];
    return PLN_OK;
  case PLN_OPERATOR_BROADCASTS: return infer_broadcast(t);
  case PLN_OPERATOR_INFERS: return call_back(t);
  }
  return PLN_OK;
}

pln_status pln_registered_types(pln_engine *engine, pln_op op, pln_attrs attrs,
                                uint32_t n, const pln_type *args,
                                pln_type *results) {
  const pln_operator_spec *spec = pln_op_registered(engine, op);
  typed_call t = {.engine = engine,
                  .op = op,
                  .spec = spec,
                  .attrs = attrs,
                  .n = n,
                  .args = args,
                  .results = results};
  memset(results, 0, spec->n_results * sizeof *results);
  return infer_by_rule(&t);
}

/* ------------------------------------------------------- of a node's operands
 */

/* Copies the operands' types. A required operand must be there. */
static pln_status read_types(const pln_infer *call, typed_call *t,
                             pln_type *args) {
  for (uint32_t i = 0; i < call->n_args; i++) {
    uint32_t arg = i < t->spec->n_args ? i : t->spec->n_args - 1;
    bool absent = pln_arg_absent(call, i);
    if (absent && !t->spec->args[arg].optional)
      return pln_arg_error(call, i, "'%s' is missing", t->spec->args[arg].name);
    args[i] = pln_arg_type(call, i);
    t->unknown |= !absent && !args[i];
  }
  t->n = call->n_args;
  t->args = args;
  return PLN_OK;
}

static pln_status infer_results(pln_infer *call, typed_call *t,
                                pln_type *args) {
  uint32_t n = pln_call_n_results(call);
  if (n > t->spec->n_results)
    return pln_call_error(call, "it has %u result%s, not %u",
                          t->spec->n_results,
                          t->spec->n_results == 1 ? "" : "s", n);
  PLN_TRY(pln_registered_check(call->engine, call->op, call->attrs));
  PLN_TRY(read_types(call, t, args));
  memset(t->results, 0, t->spec->n_results * sizeof *t->results);
  PLN_TRY(infer_by_rule(t));
  memcpy(call->results, t->results, n * sizeof *t->results);
  return PLN_OK;
}

pln_status pln_infer_registered(pln_infer *call) {
  typed_call t = {.engine = call->engine,
                  .op = call->op,
                  .spec = pln_op_registered(call->engine, call->op),
                  .attrs = call->attrs};
  size_t n = (size_t)call->n_args + t.spec->n_results;
  pln_type *types = pln_mem_new(call->engine, n * sizeof *types);
  if (!types)
    return pln_nomem(call->engine);
  t.results = types + call->n_args;
  pln_status status = infer_results(call, &t, types);
  pln_mem_free(call->engine, types, n * sizeof *types);
  return status;
}
