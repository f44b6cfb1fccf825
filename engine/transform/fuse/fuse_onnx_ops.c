/* fuse_onnx_ops.c: FuseOnnxOps: replaces computations by the one operator that
 * the model's opset has for them.
 *
 * Run by the executor, once per module, which has the opset. Runs the rules of
 * lua/perilune/rules/fusion.lua. A module that is no ONNX model stays as it is.
 *
 *     x * 0.5 * (1 + erf(x / sqrt(2)))   =>   nn.gelu(x), from opset 20 on
 *
 * Sources: ONNX's function bodies; ONNX Runtime's GeluFusion, LayerNormFusion
 * and the like. */

#include "rule/library.h"
#include "transform/rule_options.h"

/* The version of ai.onnx that the module imports; 0: none. */
static int64_t opset_of(const pln_module *module) {
  pln_engine *e = module->engine;
  const pln_attr *imports =
      pln_attrs_find(e, pln_module_attrs(module), "opset_import");
  if (!imports || imports->kind != PLN_ATTR_DICT)
    return 0;
  return pln_attrs_int(e, imports->v.dict, "ai.onnx", 0);
}

static pln_status fuse_function(pln_pass_run *run, const pln_graph *function,
                                pln_graph **out) {
  const pln_rule_set *rules;
  pln_rule_options options = {.opset = opset_of(run->module), .lenient = true};
  pln_attr only;
  PLN_TRY(pln_run_rule_options(run, &only, &options));
  PLN_TRY(pln_library_rules(run->engine, "FuseOnnxOps", NULL, &rules));
  size_t size = (pln_rule_set_count(rules) + 1) * sizeof *options.counts;
  options.counts = pln_mem_zeroed(run->engine, size);
  if (!options.counts)
    return pln_nomem(run->engine);
  pln_status status = pln_rules_apply(rules, function, &options, out);
  for (uint32_t i = 0; status == PLN_OK && i < pln_rule_set_count(rules); i++)
    if (options.counts[i].applied) {
      status = pln_run_count(run, pln_rule_set_at(rules, i)->name,
                             options.counts[i].applied);
      if (status != PLN_OK)
        pln_graph_release(*out);
    }
  pln_mem_free(run->engine, options.counts, size);
  return status;
}

pln_status pln_pass_fuse_onnx_ops(pln_pass_run *run) {
  return opset_of(run->module) ? pln_run_on_functions(run, fuse_function)
                               : PLN_OK;
}
