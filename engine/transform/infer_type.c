/* infer_type.c: the types that are not known yet.
 *
 * Run by the executor, on a module. Requires nothing: types that are known
 * stay, and a module in which all are comes back as it is. A contradiction, a
 * free type variable, a type of the wrong kind are errors with the node; what
 * nothing tells stays incomplete.
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
