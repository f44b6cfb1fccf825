/* convert_opset.c: ConvertOpset: converts a model to another ONNX opset.
 *
 * Run by the executor, once per module, for `perilune opt --opset`. The model
 * computes the same; operators that the target opset lacks are replaced by
 * equivalent ones, and the pass fails with the operator's name if there is
 * none. The work is done by onnx/opset/convert_opset.c. */

#include "transform/transform.h"

pln_status pln_pass_convert_opset(pln_pass_run *run) {
  pln_module *out;
  int64_t opset = pln_run_int(run, "opset");
  bool newer = pln_run_int(run, "newer") != 0;
  if (opset == 0 || (newer && opset <= pln_module_opset(run->module)))
    return PLN_OK;
  PLN_TRY(pln_onnx_convert_opset(run->module, opset, &out));
  pln_run_set_module(run, out);
  return PLN_OK;
}
