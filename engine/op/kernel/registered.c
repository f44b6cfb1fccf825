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

pln_status pln_kernel_registered(pln_kernel_call *call) {
  const pln_operator_spec *spec = pln_op_registered(call->engine, call->op);
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
