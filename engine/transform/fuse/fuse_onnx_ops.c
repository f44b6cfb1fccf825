/* fuse_onnx_ops.c: FuseOnnxOps: replaces computations by the one operator that
 * the model's opset has for them.
 *
 * Run by the executor, once per module, which has the opset. Runs the rules of
 * fusion.lua and rotary.lua in lua/perilune/rules, and with
 * fusions="com.microsoft" those of microsoft.lua, whose operators only ONNX
 * Runtime has. A module that is no ONNX model stays as it is.
 *
 *     x * 0.5 * (1 + erf(x / sqrt(2)))   =>   nn.gelu(x), from opset 20 on
 *
 * Sources: ONNX's function bodies; ONNX Runtime's GeluFusion, LayerNormFusion
 * and the like. */

#include "transform/shipped_rules.h"

static pln_status fuse_function(pln_pass_run *run, const pln_graph *function,
                                pln_graph **out) {
  pln_rule_options options = {
      .opset = pln_module_opset(run->module),
      .finite_math = pln_run_int(run, "finite_math"),
      .associative_math = pln_run_int(run, "associative_math"),
      .microsoft =
          pln_slice_is(pln_run_string(run, "fusions"), "com.microsoft"),
      .lenient = true};
  return pln_run_shipped_rules(run, "FuseOnnxOps", function, &options, out);
}

pln_status pln_pass_fuse_onnx_ops(pln_pass_run *run) {
  return pln_module_opset(run->module)
             ? pln_run_on_functions(run, fuse_function)
             : PLN_OK;
}
