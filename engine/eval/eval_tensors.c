/* eval_tensors.c: pln_eval_tensors: pln_eval_run for callers that use only
 * tensors. */

#include "eval/eval.h"
#include "ir/tensor/runtime_value.h"

/* Converts results to tensors; a sequence is an error. */
static pln_status take_tensors(pln_engine *engine, uint32_t n,
                               const pln_runtime_value *data,
                               pln_tensor **out) {
  for (uint32_t i = 0; i < n; i++)
    if (data[i].kind != PLN_RUNTIME_TENSOR &&
        data[i].kind != PLN_RUNTIME_ABSENT)
      return pln_diag_error(engine, PLN_ERR_UNSUPPORTED, NULL,
                            "result %u is not a tensor", i + 1);
  for (uint32_t i = 0; i < n; i++)
    out[i] = data[i].kind == PLN_RUNTIME_TENSOR
                 ? pln_tensor_retain(data[i].of.tensor)
                 : NULL;
  return PLN_OK;
}

pln_status pln_eval_tensors(const pln_module *module, const pln_graph *function,
                            uint32_t n_args, const pln_tensor *const *args,
                            uint32_t n_results, pln_tensor **results) {
  pln_engine *engine = function->engine;
  pln_ref_cell *in, *out;
  PLN_TRY(pln_ref_cell_new(engine, n_args, &in));
  pln_status status = pln_ref_cell_new(engine, n_results, &out);
  if (status == PLN_OK) {
    for (uint32_t i = 0; i < n_args; i++)
      in->items[i] = pln_runtime_value_tensor(args[i]);
    status = pln_eval_run(module, function, n_args, in->items, n_results,
                          out->items);
    if (status == PLN_OK)
      status = take_tensors(engine, n_results, out->items, results);
    pln_ref_cell_release(engine, out);
  }
  pln_ref_cell_release(engine, in);
  return status;
}
