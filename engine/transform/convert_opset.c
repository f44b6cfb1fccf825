/* convert_opset.c: a model in another opset of ONNX.
 *
 * Run by the executor, once per module, after `perilune opt --opset`. What the
 * model computes stays; operators that the opset does not have become such that
 * it has, or the pass fails with the operator's name. On the work of
 * onnx/convert_opset.c. */

#include "transform/transform.h"

pln_status pln_pass_convert_opset(pln_pass_run *run) {
  pln_module *out;
  int64_t opset = pln_run_int(run, "opset");
  if (opset == 0)
    return PLN_OK;
  PLN_TRY(pln_onnx_convert_opset(run->module, opset, &out));
  pln_run_set_module(run, out);
  return PLN_OK;
}
