/* arithmetic.c: rules for neutral operands (x + 0, x * 1, x and true) and for
 * variadic operators with one operand.
 *
 * x + 0 becomes x also for -0.0, where IEEE 754 gives +0.0: the two compare
 * equal. */

#include "transform/simplify/rule.h"

/* larger constants are not scanned */
enum { MAX_LOOK = 1024 };

/* Reads element `i` of a float tensor as a double; false for other dtypes. */
static bool read_float(const pln_tensor *t, size_t i, double *out) {
  uint16_t half;
  float single;
  const char *data = t->data;
  switch ((pln_dtype)t->dtype) {
  case PLN_FLOAT64: memcpy(out, data + i * 8, 8); return true;
  case PLN_FLOAT32:
    memcpy(&single, data + i * 4, 4);
    *out = (double)single;
    return true;
  case PLN_FLOAT16:
    memcpy(&half, data + i * 2, 2);
    *out = (double)pln_half_to_float(half);
    return true;
  case PLN_BFLOAT16:
    memcpy(&half, data + i * 2, 2);
    *out = (double)pln_bfloat_to_float(half);
    return true;
  default: return false;
  }
}

static bool element_equals(const pln_tensor *t, size_t i, int wanted) {
  double f;
  int64_t n;
  if (read_float(t, i, &f))
    return f == (double)wanted;
  return pln_tensor_int(t, i, &n) && n == wanted;
}

/* Returns true if operand `i` is a constant whose elements are all `wanted`. */
static bool is_all(const pln_rewrite_context *ctx, uint32_t i, int wanted) {
  const pln_tensor *t = pln_arg_tensor(&ctx->call, i);
  size_t n = t && t->splat ? 1 : t ? t->count : 0;
  if (!t || t->count == 0 || n > MAX_LOOK)
    return false;
  for (size_t k = 0; k < n; k++)
    if (!element_equals(t, k, wanted))
      return false;
  return true;
}

/* Returns true if broadcasting with operand `i` keeps the shape of operand
 * `x`. */
static bool keeps_shape(const pln_rewrite_context *ctx, uint32_t x,
                        uint32_t i) {
  const pln_tensor *t = pln_arg_tensor(&ctx->call, i);
  int32_t rank = pln_arg_rank(&ctx->call, x);
  if (t->count == 1 && (int64_t)t->rank <= rank)
    return true;
  return t->rank == 0 ||
         pln_same_shape(ctx->engine, ctx->type, pln_arg_type(&ctx->call, x));
}

/* Sets *out to the other operand if operand `i` is neutral. */
static bool drop_neutral(const pln_rewrite_context *ctx, uint32_t i,
                         int neutral, pln_ref *out) {
  uint32_t x = 1 - i;
  if (ctx->call.n_args != 2 || !is_all(ctx, i, neutral) ||
      !keeps_shape(ctx, x, i))
    return false;
  *out = pln_rule_arg(ctx, x);
  return true;
}

static pln_status drop_either(const pln_rewrite_context *ctx, int neutral,
                              pln_ref *out) {
  if (!drop_neutral(ctx, 1, neutral, out))
    drop_neutral(ctx, 0, neutral, out);
  return PLN_OK;
}

static pln_status drop_second(const pln_rewrite_context *ctx, int neutral,
                              pln_ref *out) {
  drop_neutral(ctx, 1, neutral, out);
  return PLN_OK;
}

pln_status pln_simplify_add_zero(pln_rewrite_context *ctx, pln_ref *out) {
  return drop_either(ctx, 0, out);
}

pln_status pln_simplify_subtract_zero(pln_rewrite_context *ctx, pln_ref *out) {
  return drop_second(ctx, 0, out);
}

pln_status pln_simplify_multiply_one(pln_rewrite_context *ctx, pln_ref *out) {
  return drop_either(ctx, 1, out);
}

pln_status pln_simplify_divide_one(pln_rewrite_context *ctx, pln_ref *out) {
  return drop_second(ctx, 1, out);
}

pln_status pln_simplify_power_one(pln_rewrite_context *ctx, pln_ref *out) {
  return drop_second(ctx, 1, out);
}

pln_status pln_simplify_and_true(pln_rewrite_context *ctx, pln_ref *out) {
  return drop_either(ctx, 1, out);
}

pln_status pln_simplify_or_false(pln_rewrite_context *ctx, pln_ref *out) {
  return drop_either(ctx, 0, out);
}

/* sum, mean, max or min of one operand => that operand; also a copy. */
pln_status pln_simplify_only_operand(pln_rewrite_context *ctx, pln_ref *out) {
  if (ctx->call.n_args == 1 && ctx->call.n_results == 0)
    *out = pln_rule_arg(ctx, 0);
  return PLN_OK;
}
