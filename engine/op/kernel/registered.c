/* registered.c: computes a call of a registered operator by its callback.
 * Called through the operator's row.
 *
 * Invariant: results have the types that inference gives for the operands; a
 * callback that computes something else is reported and its results are
 * released. A callback may call back into the engine. */

#include "op/kernel/registered.h"
#include "ir/graph/describe.h"
#include "ir/registered_op.h"
#include "op/infer/registered.h"

/* A call with memory for the types of its operands and results. */
typedef struct computed_call {
  const pln_kernel_call *call;
  const pln_operator_spec *spec;
  pln_type *args, *types;
  pln_tensor **results; /* as many as the operator has */
} computed_call;

static pln_status infer_types(const computed_call *c) {
  const pln_kernel_call *call = c->call;
  for (uint32_t i = 0; i < call->n_args; i++)
    PLN_TRY(pln_tensor_type(call->engine, call->args[i], &c->args[i]));
  return pln_registered_types(call->engine, call->op, call->attrs, call->n_args,
                              c->args, c->types);
}

/* "'my.op', result 0: ..." */
static pln_status check_result(const computed_call *c, uint32_t i) {
  pln_engine *e = c->call->engine;
  pln_description wanted, got;
  pln_type type;
  if (!c->results[i])
    return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                          "'%s', result %u: its function computed nothing",
                          c->spec->name, i);
  if (pln_tensor_fits(e, c->results[i], c->types[i]))
    return PLN_OK;
  PLN_TRY(pln_tensor_type(e, c->results[i], &type));
  return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                        "'%s', result %u: its function computed a %s, but the "
                        "call has type %s",
                        c->spec->name, i, pln_describe_type(e, type, &got),
                        pln_describe_type(e, c->types[i], &wanted));
}

static pln_status call_back(const computed_call *c) {
  const pln_kernel_call *call = c->call;
  const pln_registered_op *op = pln_op_row(call->engine, call->op)->registered;
  pln_operator_evaluation eval = {.engine = call->engine,
                                  .op = call->op,
                                  .n_args = call->n_args,
                                  .args = call->args,
                                  .n_results = c->spec->n_results,
                                  .types = c->types,
                                  .results = c->results,
                                  .folding = call->folding};
  PLN_TRY(pln_registered_full(call->engine, op, call->attrs, &eval.attrs));
  PLN_TRY(pln_op_callback_begin(call->engine, call->op, "eval"));
  pln_status status = c->spec->eval(c->spec->ud, &eval);
  pln_op_callback_end(call->engine);
  for (uint32_t i = 0; i < c->spec->n_results && status == PLN_OK; i++)
    status = check_result(c, i);
  return status;
}

/* A call may use fewer results than the operator has. */
static pln_status compute(const computed_call *c) {
  uint32_t n = c->call->n_results;
  if (n > c->spec->n_results)
    return pln_kernel_refuse(c->call, "it has %u results", c->spec->n_results);
  pln_status status =
      pln_registered_check(c->call->engine, c->call->op, c->call->attrs);
  if (status == PLN_OK)
    status = infer_types(c);
  if (status == PLN_OK)
    status = call_back(c);
  for (uint32_t i = 0; i < c->spec->n_results; i++)
    if (status == PLN_OK && i < n)
      c->call->results[i] = c->results[i];
    else
      pln_tensor_release(c->results[i]);
  return status;
}

/* ------------------------------------------------------------------- values
 */

static bool part_fits(const pln_engine *e, const pln_runtime_value *part,
                      pln_type type) {
  if (!type)
    return true;
  uint32_t kind = pln_type_get_kind(e, type);
  if (part->kind == PLN_RUNTIME_TENSOR)
    return kind == PLN_TYPE_TENSOR && pln_tensor_fits(e, part->of.tensor, type);
  if (part->kind == PLN_RUNTIME_ABSENT)
    return kind == PLN_TYPE_OPTIONAL;
  return (part->kind == PLN_RUNTIME_SEQUENCE && kind == PLN_TYPE_SEQUENCE) ||
         (part->kind == PLN_RUNTIME_TUPLE && kind == PLN_TYPE_TUPLE) ||
         (part->kind == PLN_RUNTIME_MAP && kind == PLN_TYPE_MAP);
}

/* The content of an optional stands for it. */
static bool value_fits(const pln_engine *e, const pln_runtime_value *value,
                       pln_type type) {
  if (type && pln_type_get_kind(e, type) == PLN_TYPE_OPTIONAL &&
      value->kind != PLN_RUNTIME_ABSENT)
    type = pln_type_part_at(e, type, 0);
  if (!type || !part_fits(e, value, type))
    return !type;
  bool tuple = value->kind == PLN_RUNTIME_TUPLE;
  if (!tuple && value->kind != PLN_RUNTIME_SEQUENCE)
    return true;
  uint32_t n = pln_runtime_value_count(value);
  if (tuple && n != pln_type_n_parts(e, type))
    return false;
  for (uint32_t i = 0; i < n; i++)
    if (!part_fits(e, pln_runtime_value_at(value, i),
                   pln_type_part_at(e, type, tuple ? i : 0)))
      return false;
  return true;
}

static pln_status check_value(const pln_kernel_call *call, const char *name) {
  pln_engine *e = call->engine;
  pln_description wanted;
  if (call->made->kind == PLN_RUNTIME_NONE)
    return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                          "'%s': its function computed nothing", name);
  if (value_fits(e, call->made, call->type))
    return PLN_OK;
  return pln_diag_error(e, PLN_ERR_TYPE, NULL,
                        "'%s': what its function computed is not of type %s, "
                        "which the call has",
                        name, pln_describe_type(e, call->type, &wanted));
}

static pln_status compute_value(const pln_kernel_call *call,
                                const pln_operator_spec *spec) {
  const pln_registered_op *op = pln_op_row(call->engine, call->op)->registered;
  pln_operator_evaluation eval = {.engine = call->engine,
                                  .op = call->op,
                                  .n_args = call->n_args,
                                  .n_results = 1,
                                  .types = &call->type,
                                  .values = call->data,
                                  .made = call->made,
                                  .folding = call->folding};
  PLN_TRY(pln_registered_check(call->engine, call->op, call->attrs));
  PLN_TRY(pln_registered_full(call->engine, op, call->attrs, &eval.attrs));
  PLN_TRY(pln_op_callback_begin(call->engine, call->op, "eval"));
  pln_status status = spec->eval(spec->ud, &eval);
  pln_op_callback_end(call->engine);
  if (status == PLN_OK)
    status = check_value(call, spec->name);
  if (status != PLN_OK)
    pln_runtime_value_release(call->engine, call->made);
  return status;
}

pln_status pln_kernel_registered(pln_kernel_call *call) {
  const pln_operator_spec *spec = pln_op_registered(call->engine, call->op);
  if (spec->traits & PLN_OPERATOR_VALUES)
    return compute_value(call, spec);
  size_t types = (size_t)call->n_args + spec->n_results;
  size_t results = spec->n_results * sizeof(pln_tensor *);
  pln_type *memory = pln_mem_new(call->engine, types * sizeof *memory);
  pln_tensor **tensors = pln_mem_zeroed(call->engine, results);
  computed_call c = {call, spec, memory, NULL, tensors};
  pln_status status = PLN_OK;
  if (memory && tensors) {
    c.types = memory + call->n_args;
    status = compute(&c);
  } else {
    status = pln_nomem(call->engine);
  }
  pln_mem_free(call->engine, memory, types * sizeof *memory);
  pln_mem_free(call->engine, tensors, results);
  return status;
}
