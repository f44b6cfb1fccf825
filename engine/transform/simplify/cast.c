/* cast.c: rules for cast and cast_like. */

#include "transform/simplify/rule.h"

/* A cast to the operand's own dtype. */
pln_status pln_simplify_same_cast(pln_rewrite_context *ctx, pln_ref *out) {
  pln_dtype dtype = pln_arg_dtype(&ctx->call, 0);
  if (dtype && dtype == pln_type_dtype(ctx->engine, ctx->type))
    *out = pln_rule_arg(ctx, 0);
  return PLN_OK;
}

/* Magnitude bits of integers that the dtype represents exactly; 0 for other
 * dtypes. */
static uint32_t magnitude_bits(pln_dtype dtype) {
  switch (dtype) {
  case PLN_BOOL: return 1;
  case PLN_UINT8: return 8;
  case PLN_UINT16: return 16;
  case PLN_UINT32: return 32;
  case PLN_UINT64: return 64;
  case PLN_INT8: return 7;
  case PLN_INT16: return 15;
  case PLN_INT32: return 31;
  case PLN_INT64: return 63;
  default: return 0;
  }
}

static bool is_signed(pln_dtype dtype) {
  return dtype == PLN_INT8 || dtype == PLN_INT16 || dtype == PLN_INT32 ||
         dtype == PLN_INT64;
}

/* Returns true if every value of `from` is a value of `to`: integers to
 * integers, floats to floats. */
static bool dtype_contains(pln_dtype to, pln_dtype from) {
  if (pln_dtype_is_half(from))
    return to == PLN_FLOAT32 || to == PLN_FLOAT64;
  if (from == PLN_FLOAT32)
    return to == PLN_FLOAT64;
  if (!magnitude_bits(from) || !magnitude_bits(to) || to == PLN_BOOL)
    return false;
  if (is_signed(from) && !is_signed(to))
    return false;
  return magnitude_bits(to) >= magnitude_bits(from);
}

/* cast(cast(x, wider), any) => cast(x, any) */
pln_status pln_simplify_merge_cast(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref inner = pln_rule_arg(ctx, 0);
  if (!pln_is_call(g, inner, PLN_OP_CAST))
    return PLN_OK;
  pln_ref x = pln_operand(g, inner, 0);
  pln_dtype from = pln_type_dtype(ctx->engine, g->nodes[x].type);
  if (!dtype_contains(pln_arg_dtype(&ctx->call, 0), from))
    return PLN_OK;
  if (from == pln_type_dtype(ctx->engine, ctx->type)) {
    *out = x;
    return PLN_OK;
  }
  return pln_rule_replace_arg(ctx, 0, x, out);
}
