/* decorate_device_scope.c: tir.DecorateDeviceScope: says of a function's body
 * that it runs on a device.
 *
 * Run by the executor.
 *
 *     T.evaluate(x)   =>   T.attr(0, "device_scope", 0); T.evaluate(x)
 *
 * Semantics: TVM's tir.DecorateDeviceScope. */

#include "lower/host/host.h"

static pln_status leave_body(void *ud, pln_stmt_rewrite *s, pln_ref stmt,
                             uint32_t k, pln_ref *body, bool *again) {
  pln_emit e = {.b = pln_stmt_builder(s)};
  pln_ref rest;
  (void)ud;
  (void)k;
  (void)again;
  if (pln_stmt_old(s)->nodes[stmt].kind != PLN_PRIM_FUNC)
    return PLN_OK;
  PLN_TRY(pln_stmt_split_binds(s, *body, &rest));
  rest = pln_emit_attr(&e, pln_emit_int(&e, PLN_INT32, 0), "device_scope",
                       pln_emit_int(&e, PLN_INT32, 0), rest);
  PLN_TRY(e.status);
  return pln_stmt_join_binds(s, *body, rest, body);
}

pln_status pln_pass_tir_decorate_device_scope(pln_pass_run *run) {
  pln_stmt_mutator mutator = {.leave_body = leave_body};
  return pln_lower_function(run, &mutator);
}
