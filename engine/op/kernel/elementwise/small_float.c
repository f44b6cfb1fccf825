/* small_float.c: 8-bit and 4-bit floats. Called by the cast kernels.
 *
 * Definitions: ONNX, "Float stored in 8 bits" and "4 bits". The formats differ
 * in the widths of exponent and mantissa, in the bias, and in the encoding of
 * infinity and NaN. */

#include "op/kernel/elementwise/small_float.h"

#include <math.h>

typedef struct format {
  pln_dtype dtype;
  int bits, mantissa, bias;
  uint8_t infinity; /* 0: there is none */
  uint8_t nan;      /* 0: there is none */
  double max;
  bool no_minus_zero; /* the bits of -0 are the NaN */
} format;

static const format formats[] = {
    {PLN_FLOAT8_E4M3FN, 8, 3, 7, 0, 0x7f, 448, false},
    {PLN_FLOAT8_E4M3FNUZ, 8, 3, 8, 0, 0x80, 240, true},
    {PLN_FLOAT8_E5M2, 8, 2, 15, 0x7c, 0x7f, 57344, false},
    {PLN_FLOAT8_E5M2FNUZ, 8, 2, 16, 0, 0x80, 57344, true},
    {PLN_FLOAT4_E2M1FN, 4, 1, 1, 0, 0, 6, false},
};

static const format *find_float_format(pln_dtype dtype) {
  for (size_t i = 0; i < PLN_COUNT(formats); i++)
    if (formats[i].dtype == dtype)
      return &formats[i];
  return NULL;
}

bool pln_is_small_float(pln_dtype dtype) {
  return dtype == PLN_FLOAT8_E8M0FNU || find_float_format(dtype) != NULL;
}

static bool is_nan(const format *f, uint8_t bits, uint8_t magnitude) {
  if (f->no_minus_zero)
    return bits == f->nan;
  if (f->infinity)
    return magnitude > f->infinity;
  return f->nan && magnitude == f->nan;
}

/* ----------------------------------------------------------- powers of two */

enum { E8M0_BIAS = 127, E8M0_GREATEST = 254, E8M0_NAN = 255 };

static double e8m0_to_double(uint8_t bits) {
  return bits == E8M0_NAN ? (double)NAN : ldexp(1, bits - E8M0_BIAS);
}

/* The exponent that `value`, above 0, is rounded to. */
static int e8m0_exponent(double value, pln_e8m0_round how) {
  int exponent;
  double fraction = 2 * frexp(value, &exponent); /* from 1 to 2 */
  bool up = how == PLN_E8M0_UP        ? fraction > 1
            : how == PLN_E8M0_NEAREST ? fraction >= 1.5
                                      : false;
  return exponent - 1 + up;
}

bool pln_double_to_e8m0(double value, pln_e8m0_round how, bool saturate,
                        uint8_t *bits) {
  *bits = E8M0_NAN;
  if (isnan(value))
    return true;
  if (value < 0)
    return false;
  int code = isinf(value) ? E8M0_NAN
             : value == 0 ? -1
                          : e8m0_exponent(value, how) + E8M0_BIAS;
  bool under = value < 0x1p-127 && (code < 0 || !saturate);
  if (saturate && under)
    *bits = 0;
  else if (code <= E8M0_GREATEST && !under)
    *bits = (uint8_t)code;
  else if (saturate)
    *bits = E8M0_GREATEST;
  return true;
}

/* ---------------------------------------------------------- other formats */

double pln_small_to_double(pln_dtype dtype, uint8_t bits) {
  if (dtype == PLN_FLOAT8_E8M0FNU)
    return e8m0_to_double(bits);
  const format *f = find_float_format(dtype);
  uint8_t sign = (uint8_t)(1 << (f->bits - 1));
  uint8_t magnitude = bits & (uint8_t)(sign - 1);
  int exponent = magnitude >> f->mantissa;
  int fraction = magnitude & ((1 << f->mantissa) - 1);
  if (is_nan(f, bits, magnitude))
    return NAN;
  double value = exponent ? ldexp(fraction + (1 << f->mantissa),
                                  exponent - f->bias - f->mantissa)
                          : ldexp(fraction, 1 - f->bias - f->mantissa);
  if (f->infinity && magnitude == f->infinity)
    value = INFINITY;
  return bits & sign ? -value : value;
}

/* The bits of a positive finite number; more than those of the maximum if it is
 * too large. */
static uint32_t magnitude_of(const format *f, double value) {
  int exponent;
  frexp(value, &exponent);
  exponent--;
  bool normal = exponent >= 1 - f->bias;
  int scale = (normal ? exponent : 1 - f->bias) - f->mantissa;
  uint32_t steps = (uint32_t)rint(ldexp(value, -scale));
  return normal ? ((uint32_t)(exponent + f->bias) << f->mantissa) + steps -
                      (1u << f->mantissa)
                : steps;
}

/* The bits of the greatest number. */
static uint32_t greatest(const format *f) {
  return magnitude_of(f, f->max);
}

/* The encoding of a number that is too large. */
static uint8_t beyond(const format *f, uint8_t sign, bool saturate) {
  if (saturate || (!f->infinity && !f->nan))
    return (uint8_t)(greatest(f) | sign);
  if (f->infinity)
    return f->infinity | sign;
  return f->no_minus_zero ? f->nan : f->nan | sign;
}

uint8_t pln_double_to_small(pln_dtype dtype, double value, bool saturate) {
  const format *f = find_float_format(dtype);
  uint8_t top = (uint8_t)(1 << (f->bits - 1));
  uint8_t sign = signbit(value) ? top : 0;
  double size = fabs(value);
  if (isnan(value))
    return f->nan ? f->nan : top;
  uint32_t magnitude = size > 2 * f->max ? UINT32_MAX
                       : size == 0       ? 0
                                         : magnitude_of(f, size);
  if (magnitude > greatest(f))
    return beyond(f, sign, saturate);
  if (magnitude == 0 && f->no_minus_zero)
    return 0;
  return (uint8_t)(magnitude | sign);
}
