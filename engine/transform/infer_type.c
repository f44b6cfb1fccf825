/* infer_type.c: InferType: resolves incomplete types.
 *
 * Run by the executor, on a module. Has no requirements. Known types stay, and
 * a module whose types are all known is returned unchanged. Contradictions,
 * free type variables and types of a wrong kind are errors at the node. A type
 * that nothing determines stays incomplete.
 *
 *     fn (%x) { add(%x, 1f) } (2f)   =>   fn (%x: float32) -> float32 { ... }
 *
 * Semantics: TVM InferType. */

#include "transform/transform.h"

pln_status pln_pass_infer_type(pln_pass_run *run) {
  pln_module *typed;
  PLN_TRY(pln_module_infer(pln_run_module(run), &typed));
  pln_run_set_module(run, typed);
  return PLN_OK;
}
