/* relay/parse/number.c: parses numbers: `1`, `-1i64`, `1.5f16`, `-inff`, and
 * makes their scalars.
 *
 * Called by the files of the parser. A sign is a separate token; as in TVM, two
 * minus signs cancel. */

#include <math.h>
#include <stdlib.h>

#include "base/text/source_text.h"
#include "ir/relay/parse/parse.h"

static const struct {
  const char *suffix;
  pln_dtype dtype;
  int64_t least, most;
} integers[] = {{"", PLN_INT32, INT64_MIN, INT64_MAX},
                {"i", PLN_INT32, INT32_MIN, INT32_MAX},
                {"i8", PLN_INT8, INT8_MIN, INT8_MAX},
                {"i16", PLN_INT16, INT16_MIN, INT16_MAX},
                {"i32", PLN_INT32, INT32_MIN, INT32_MAX},
                {"i64", PLN_INT64, INT64_MIN, INT64_MAX},
                {"u8", PLN_UINT8, 0, UINT8_MAX},
                {"u16", PLN_UINT16, 0, UINT16_MAX},
                {"u32", PLN_UINT32, 0, UINT32_MAX},
                {"u64", PLN_UINT64, 0, INT64_MAX}};

static const struct {
  const char *suffix;
  pln_dtype dtype;
} floats[] = {{"f", PLN_FLOAT32},
              {"f32", PLN_FLOAT32},
              {"f16", PLN_FLOAT16},
              {"f64", PLN_FLOAT64},
              {"bf16", PLN_BFLOAT16}};

static pln_dtype float_dtype(pln_slice suffix) {
  for (size_t i = 0; i < PLN_COUNT(floats); i++)
    if (pln_slice_is(suffix, floats[i].suffix))
      return floats[i].dtype;
  return PLN_DTYPE_NONE;
}

/* Returns the dtype of a special float such as `inff` or `nanf64`;
 * PLN_DTYPE_NONE for any other token. */
static pln_dtype special(const pln_token *t) {
  if (t->kind != PLN_T_NAME || t->text.size < 4 ||
      (memcmp(t->text.data, "inf", 3) && memcmp(t->text.data, "nan", 3)))
    return PLN_DTYPE_NONE;
  return float_dtype((pln_slice){t->text.data + 3, t->text.size - 3});
}

bool pln_parse_at_number(const pln_parser *p) {
  return p->token.kind == PLN_T_NUMBER || p->token.kind == PLN_T_MINUS ||
         special(&p->token) != PLN_DTYPE_NONE;
}

/* ---------------------------------------------------------------- integers */

static pln_status read_integer(pln_parser *p, bool negative,
                               pln_parsed_number *out) {
  const pln_token *t = &p->token;
  size_t row = 0;
  while (row < PLN_COUNT(integers) &&
         !pln_slice_is(t->suffix, integers[row].suffix))
    row++;
  if (row == PLN_COUNT(integers))
    return pln_parse_fail(p, t, "unknown suffix '%.*s' of a number",
                          t->suffix.size > 40 ? 40 : (int)t->suffix.size,
                          t->suffix.data);
  *out = (pln_parsed_number){.dtype = integers[row].dtype};
  bool fits = pln_text_digits(t->text, negative, &out->i);
  if (!fits || out->i < integers[row].least || out->i > integers[row].most) {
    out->i = 0;
    return pln_parse_report(
        p, t, PLN_ERR_FORMAT, "this integer does not fit in %s",
        t->suffix.size ? pln_dtype_name(out->dtype) : "int64");
  }
  if (t->suffix.size == 0 && (out->i > INT32_MAX || out->i < INT32_MIN))
    out->dtype = PLN_INT64;
  return PLN_OK;
}

/* ------------------------------------------------------------------ floats */

/* Converts the text of a float. strtod needs a terminated string; texts of 64
 * bytes or more are copied to p->word. */
static pln_status to_double(pln_parser *p, pln_slice text, double *out) {
  char near[64];
  if (text.size < sizeof near) {
    memcpy(near, text.data, text.size);
    near[text.size] = '\0';
    *out = strtod(near, NULL);
    return PLN_OK;
  }
  p->word.size = 0;
  PLN_TRY(pln_buffer_add(&p->word, text.data, text.size));
  PLN_TRY(pln_buffer_add(&p->word, "", 1));
  *out = strtod(p->word.data, NULL);
  return PLN_OK;
}

static pln_status read_float(pln_parser *p, bool negative,
                             pln_parsed_number *out) {
  const pln_token *t = &p->token;
  pln_dtype dtype = t->suffix.size == 0 ? PLN_FLOAT32 : float_dtype(t->suffix);
  if (dtype == PLN_DTYPE_NONE)
    return pln_parse_fail(p, t, "unknown suffix '%.*s' of a number",
                          t->suffix.size > 40 ? 40 : (int)t->suffix.size,
                          t->suffix.data);
  *out = (pln_parsed_number){.is_float = true, .dtype = dtype};
  PLN_TRY(to_double(p, t->text, &out->f));
  if (isinf(out->f)) {
    out->f = 0;
    return pln_parse_report(p, t, PLN_ERR_FORMAT,
                            "this number does not fit in float64");
  }
  out->f = negative ? -out->f : out->f;
  return PLN_OK;
}

static bool is_float_token(const pln_token *t) {
  for (size_t i = 0; i < t->text.size; i++)
    if (t->text.data[i] < '0' || t->text.data[i] > '9')
      return true;
  return float_dtype(t->suffix) != PLN_DTYPE_NONE;
}

static void read_special(const pln_parser *p, bool negative,
                         pln_parsed_number *out) {
  double value = p->token.text.data[0] == 'i' ? (double)INFINITY : (double)NAN;
  *out = (pln_parsed_number){.is_float = true,
                             .f = negative ? -value : value,
                             .dtype = special(&p->token)};
}

pln_status pln_parse_number(pln_parser *p, pln_parsed_number *out) {
  bool negative = false;
  while (p->token.kind == PLN_T_MINUS) {
    negative = !negative;
    PLN_TRY(pln_parse_next(p));
  }
  if (special(&p->token) != PLN_DTYPE_NONE)
    read_special(p, negative, out);
  else if (p->token.kind != PLN_T_NUMBER)
    return pln_parse_report_expected(p, "a number");
  else if (is_float_token(&p->token))
    PLN_TRY(read_float(p, negative, out));
  else
    PLN_TRY(read_integer(p, negative, out));
  return pln_parse_next(p);
}

pln_status pln_parse_count(pln_parser *p, uint32_t most, uint32_t *out) {
  int64_t value;
  if (p->token.kind != PLN_T_NUMBER || is_float_token(&p->token) ||
      p->token.suffix.size || !pln_text_digits(p->token.text, false, &value) ||
      value > most)
    return pln_parse_report_expected(p, "a number without sign and suffix");
  *out = (uint32_t)value;
  return pln_parse_next(p);
}

/* ----------------------------------------------------------------- scalars */

/* Rounds to the nearest float. A value that rounds beyond FLT_MAX becomes
 * infinite; in C that conversion is undefined. */
static float to_float(double f) {
  const double bound = 0x1.ffffffp127;
  if (fabs(f) < bound || isnan(f))
    return (float)f;
  return f < 0 ? -INFINITY : INFINITY;
}

static size_t store_float(const pln_parsed_number *n, char *bytes) {
  float narrow = to_float(n->f);
  uint16_t half;
  if (n->dtype == PLN_FLOAT64) {
    memcpy(bytes, &n->f, sizeof n->f);
    return sizeof n->f;
  }
  if (n->dtype == PLN_FLOAT32) {
    memcpy(bytes, &narrow, sizeof narrow);
    return sizeof narrow;
  }
  half = n->dtype == PLN_FLOAT16 ? pln_float_to_half(narrow)
                                 : pln_float_to_bfloat(narrow);
  memcpy(bytes, &half, sizeof half);
  return sizeof half;
}

/* Returns false if a finite number is too large for its dtype. */
static bool stays_finite(const pln_parsed_number *n) {
  const double most_half = 65504;
  float narrow = to_float(n->f);
  if (n->dtype == PLN_FLOAT64 || !isfinite(n->f))
    return true;
  if (n->dtype == PLN_FLOAT16)
    return fabs(n->f) <= most_half; /* as TVM: no more is rounded down to it */
  if (n->dtype == PLN_BFLOAT16)
    narrow = pln_bfloat_to_float(pln_float_to_bfloat(narrow));
  return isfinite(narrow);
}

pln_status pln_parse_scalar(pln_parser *p, const pln_token *token,
                            const pln_parsed_number *number, pln_tensor **out) {
  char bytes[8];
  size_t size = pln_dtype_bits(number->dtype) / 8;
  if (number->is_float && !stays_finite(number))
    PLN_TRY(pln_parse_report(p, token, PLN_ERR_FORMAT,
                             "this number does not fit in %s",
                             pln_dtype_name(number->dtype)));
  if (number->is_float)
    size = store_float(number, bytes);
  else
    memcpy(bytes, &number->i, sizeof bytes); /* little-endian, as tensors are */
  return pln_tensor_from_bytes(p->engine, number->dtype, 0, NULL, bytes, size,
                               out);
}
