/* dtype_conversion.c: floating-point numbers of one width as those of another,
 * by operations on their bits (legalize.h).
 *
 * Called by tir.BF16ComputeLegalize and tir.FP8ComputeLegalize. Numbers below
 * the smallest normal one become 0; infinities and NaNs are not looked at, as
 * in TVM. */

#include "lower/dtype/legalize.h"

typedef struct float_format {
  int32_t exponent, mantissa, bias;
} float_format;

static float_format format_of(pln_dtype dtype) {
  switch (dtype) {
  case PLN_BFLOAT16: return (float_format){8, 7, 127};
  case PLN_FLOAT16: return (float_format){5, 10, 15};
  case PLN_FLOAT8_E4M3FN: return (float_format){4, 3, 7};
  case PLN_FLOAT8_E5M2: return (float_format){5, 2, 15};
  default: return (float_format){8, 23, 127};
  }
}

bool pln_is_narrow(const pln_engine *e, pln_type type,
                   pln_narrow_family family) {
  if (pln_type_get_kind(e, type) == PLN_TYPE_POINTER)
    type = pln_type_part_at(e, type, 0);
  if (pln_type_get_kind(e, type) != PLN_TYPE_PRIM)
    return false;
  pln_dtype dtype = pln_type_dtype(e, type);
  return family == PLN_NARROW_BFLOAT16
             ? dtype == PLN_BFLOAT16
             : dtype == PLN_FLOAT8_E4M3FN || dtype == PLN_FLOAT8_E5M2;
}

pln_status pln_type_with_dtype(pln_engine *e, pln_type type, pln_dtype dtype,
                               pln_type *out) {
  pln_type element;
  if (pln_type_get_kind(e, type) != PLN_TYPE_POINTER)
    return pln_type_prim(e, dtype, pln_type_number(e, type), out);
  PLN_TRY(
      pln_type_with_dtype(e, pln_type_part_at(e, type, 0), dtype, &element));
  return pln_type_make(e, PLN_TYPE_POINTER, pln_type_symbol(e, type), 1,
                       &element, out);
}

pln_dtype pln_storage_dtype(pln_dtype dtype) {
  switch (pln_dtype_bits(dtype)) {
  case 8: return PLN_UINT8;
  case 16: return PLN_UINT16;
  default: return PLN_UINT32;
  }
}

typedef struct conversion {
  pln_emit *e;
  float_format from, to;
  pln_type from_bits, to_bits, result; /* with the value's lanes */
  uint32_t from_width, to_width;
} conversion;

static pln_ref number(conversion *c, pln_type type, int64_t value) {
  pln_engine *engine = c->e->b->engine;
  pln_ref scalar = pln_emit_int(c->e, pln_type_dtype(engine, type), value);
  uint32_t lanes = pln_type_number(engine, type);
  if (lanes == 1)
    return scalar;
  return pln_emit_prim(c->e, &(pln_prim){.kind = PLN_BROADCAST,
                                         .data = lanes,
                                         .n = 1,
                                         .operands = &scalar});
}

static pln_ref bits_op(conversion *c, const char *builtin, pln_ref x,
                       int64_t y) {
  pln_type type = pln_emit_type_of(c->e, x);
  pln_ref args[2] = {x, number(c, type, y)};
  return pln_emit_call(c->e, builtin, type, 2, args);
}

static pln_ref or_of(conversion *c, pln_ref x, pln_ref y) {
  pln_ref args[2] = {x, y};
  return pln_emit_call(c->e, "bitwise_or", pln_emit_type_of(c->e, x), 2, args);
}

static pln_ref plus(conversion *c, pln_kind kind, pln_ref x, int64_t y) {
  return pln_emit_binary(c->e, kind, x,
                         number(c, pln_emit_type_of(c->e, x), y));
}

static pln_ref reinterpret(pln_emit *e, pln_type type, pln_ref x) {
  return pln_emit_call(e, "reinterpret", type, 1, &x);
}

/* The exponent, with the sign shifted out. */
static pln_ref exponent_of(conversion *c, pln_ref bits) {
  return bits_op(c, "shift_right", bits_op(c, "shift_left", bits, 1),
                 c->from.mantissa + 1);
}

/* The three parts, each at its place in the result. */
static pln_ref join(conversion *c, pln_ref mantissa, pln_ref exponent,
                    pln_ref bits) {
  pln_ref sign = pln_emit_cast(
      c->e, c->to_bits, bits_op(c, "shift_right", bits, c->from_width - 1));
  pln_ref low = or_of(
      c,
      bits_op(c, "bitwise_and", mantissa, (INT64_C(1) << c->to.mantissa) - 1),
      bits_op(c, "shift_left", pln_emit_cast(c->e, c->to_bits, exponent),
              c->to.mantissa));
  return or_of(c, low, bits_op(c, "shift_left", sign, c->to_width - 1));
}

/* More bits of mantissa: every number has an exact image. */
static pln_ref widen(conversion *c, pln_ref bits) {
  pln_ref wide = bits_op(c, "shift_left", pln_emit_cast(c->e, c->to_bits, bits),
                         c->to.mantissa - c->from.mantissa);
  if (c->from.exponent == c->to.exponent)
    return wide;
  return join(
      c, wide,
      plus(c, PLN_PRIM_ADD, exponent_of(c, bits), c->to.bias - c->from.bias),
      bits);
}

/* Half of the last bit that stays, less one if that bit is even. */
static pln_ref rounded(conversion *c, pln_ref bits) {
  int32_t shift = c->from.mantissa - c->to.mantissa;
  pln_ref odd =
      bits_op(c, "bitwise_and", bits_op(c, "shift_right", bits, shift), 1);
  pln_ref half = plus(c, PLN_PRIM_ADD, odd, (INT64_C(1) << (shift - 1)) - 1);
  return pln_emit_binary(c->e, PLN_PRIM_ADD, bits, half);
}

static pln_ref narrow(conversion *c, pln_ref bits) {
  pln_emit *e = c->e;
  int32_t shift = c->from.mantissa - c->to.mantissa;
  int32_t bias = c->from.bias - c->to.bias;
  bits = rounded(c, bits);
  pln_ref low =
      pln_emit_cast(e, c->to_bits, bits_op(c, "shift_right", bits, shift));
  if (c->from.exponent == c->to.exponent)
    return low;
  pln_ref small = plus(c, PLN_PRIM_LT, exponent_of(c, bits), bias);
  pln_ref normal =
      join(c, low, plus(c, PLN_PRIM_SUB, exponent_of(c, bits), bias), bits);
  pln_ref args[3] = {small, number(c, c->to_bits, 0), normal};
  return pln_emit_call(e, "if_then_else", c->to_bits, 3, args);
}

static conversion conversion_of(pln_emit *e, pln_type type, pln_dtype dtype) {
  pln_engine *engine = e->b->engine;
  pln_dtype from = pln_type_dtype(engine, type);
  conversion c = {.e = e,
                  .from = format_of(from),
                  .to = format_of(dtype),
                  .from_width = pln_dtype_bits(from),
                  .to_width = pln_dtype_bits(dtype)};
  e->status =
      pln_type_with_dtype(engine, type, pln_storage_dtype(from), &c.from_bits);
  if (e->status == PLN_OK)
    e->status =
        pln_type_with_dtype(engine, type, pln_storage_dtype(dtype), &c.to_bits);
  if (e->status == PLN_OK)
    e->status = pln_type_with_dtype(engine, type, dtype, &c.result);
  return c;
}

pln_ref pln_emit_float_bits(pln_emit *e, pln_ref value, pln_dtype dtype) {
  if (e->status != PLN_OK)
    return PLN_NONE;
  conversion c = conversion_of(e, pln_emit_type_of(e, value), dtype);
  pln_ref bits = reinterpret(e, c.from_bits, value);
  bits = c.to.mantissa < c.from.mantissa ? narrow(&c, bits) : widen(&c, bits);
  return reinterpret(e, c.result, bits);
}
