/* dropout.c: the rule for dropout. */

#include "transform/simplify/rule.h"

static bool is_zero(const pln_tensor *t) {
  static const char zero[16];
  size_t size = t ? pln_dtype_bits((pln_dtype)t->dtype) / 8 : 0;
  return t && t->count == 1 && t->dtype != PLN_STRING && size <= sizeof zero &&
         !memcmp(t->data, zero, size);
}

/* Returns true in inference mode or with ratio 0: no element is dropped. */
static bool is_inference(const pln_rewrite_context *ctx) {
  if (pln_arg_absent(&ctx->call, 2))
    return true;
  return is_zero(pln_arg_tensor(&ctx->call, 2)) ||
         is_zero(pln_arg_tensor(&ctx->call, 1));
}

/* dropout(x) => x; if it has a mask result, only if that is unused. */
pln_status pln_simplify_inference_dropout(pln_rewrite_context *ctx,
                                          pln_ref *out) {
  pln_ref fields[2] = {pln_rule_arg(ctx, 0)};
  uint32_t n = ctx->call.n_results;
  if (!is_inference(ctx))
    return PLN_OK;
  if (n == 0) {
    *out = fields[0];
    return PLN_OK;
  }
  bool first_only;
  PLN_TRY(pln_rule_driver_first_result_only(ctx->driver, &first_only));
  if (n > 2 || !first_only)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(ctx->rw);
  if (!b)
    return PLN_ERR_NOMEM;
  if (n == 2)
    PLN_TRY(pln_build_absent(b, &fields[1]));
  return pln_build_tuple(b, n, fields, out);
}
