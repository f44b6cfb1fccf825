/* compare.c: compares a tensor with the expected one, within a tolerance.
 *
 * Called by scripts and commands that compare runs. Elements are compared in
 * blocks, as doubles; 64-bit integers, which a double cannot represent, are
 * compared as integers. Invariant: the difference reported is the first in
 * row-major order, in whatever order elements are compared. */

#include <math.h>
#include <stdio.h>

#include "ir/tensor/tensor.h"
#include "op/kernel/elementwise/small_float.h"

enum { BLOCK = 512 };

/* ---------------------------------------------------------------- elements */

static bool is_complex(pln_dtype dtype) {
  return dtype == PLN_COMPLEX64 || dtype == PLN_COMPLEX128;
}

static bool is_inexact_dtype(pln_dtype dtype) {
  return pln_dtype_is_float(dtype) || is_complex(dtype) ||
         pln_is_small_float(dtype);
}

/* True if elements are compared as 64-bit words, because a double cannot
 * represent them. */
static bool is_wide(pln_dtype dtype) {
  return dtype == PLN_INT64 || dtype == PLN_UINT64;
}

/* Bits of element `i` of a packed dtype. */
static uint8_t packed(uint32_t bits, const uint8_t *data, size_t i) {
  size_t per = 8 / bits;
  return (uint8_t)(data[i / per] >> (i % per) * bits & ((1u << bits) - 1));
}

static int sign_extended(uint8_t value, uint32_t bits) {
  int half = 1 << (bits - 1);
  return value < half ? value : value - 2 * half;
}

static double small_number(pln_dtype dtype, const uint8_t *data, size_t i) {
  uint32_t bits = pln_dtype_bits(dtype);
  uint8_t value = bits < 8 ? packed(bits, data, i) : data[i];
  if (pln_is_small_float(dtype))
    return pln_small_to_double(dtype, value);
  bool negative = dtype == PLN_INT4 || dtype == PLN_INT2;
  return negative ? sign_extended(value, bits) : value;
}

#define LOAD(type, expr)                                  \
  do {                                                    \
    for (size_t i = 0; i < n; i++) {                      \
      type x;                                             \
      memcpy(&x, data + (from + i) * sizeof x, sizeof x); \
      out[i] = (double)(expr);                            \
    }                                                     \
    return;                                               \
  } while (0)

/* Loads numbers from index `from` on; a complex element is two numbers. */
static void load_compared_elements(pln_dtype dtype, const uint8_t *data,
                                   size_t from, size_t n, double *out) {
  switch (dtype) {
  case PLN_COMPLEX64:
  case PLN_FLOAT32: LOAD(float, x);
  case PLN_COMPLEX128:
  case PLN_FLOAT64: LOAD(double, x);
  case PLN_FLOAT16: LOAD(uint16_t, pln_half_to_float(x));
  case PLN_BFLOAT16: LOAD(uint16_t, pln_bfloat_to_float(x));
  case PLN_INT8: LOAD(int8_t, x);
  case PLN_INT16: LOAD(int16_t, x);
  case PLN_UINT16: LOAD(uint16_t, x);
  case PLN_INT32: LOAD(int32_t, x);
  case PLN_UINT32: LOAD(uint32_t, x);
  case PLN_INT64: LOAD(int64_t, x);
  case PLN_UINT64: LOAD(uint64_t, x);
  default:
    for (size_t i = 0; i < n; i++)
      out[i] = small_number(dtype, data, from + i);
  }
}
#undef LOAD

/* --------------------------------------------------------------- comparing */

typedef struct tensor_comparison {
  pln_dtype dtype;
  const uint8_t *a, *b;
  bool a_splat, b_splat;
  double relative, absolute;
  pln_difference *out;
} tensor_comparison;

static void load_side(const tensor_comparison *c, bool expected, size_t from,
                      size_t n, double *out) {
  const uint8_t *data = expected ? c->b : c->a;
  if (!(expected ? c->b_splat : c->a_splat)) {
    load_compared_elements(c->dtype, data, from, n, out);
    return;
  }
  size_t period = is_complex(c->dtype) ? 2 : 1;
  load_compared_elements(c->dtype, data, 0, period,
                         out); /* blocks begin at an element boundary */
  for (size_t i = period; i < n; i++)
    out[i] = out[i - period];
}

/* NaN agrees with NaN, an infinity with itself. */
static bool agrees(const tensor_comparison *c, double a, double b) {
  double d = fabs(a - b);
  return a == b || (d <= c->absolute + c->relative * fabs(b) && d < INFINITY) ||
         (isnan(a) && isnan(b));
}

static void found(pln_difference *out, size_t index) {
  if (out->n_differ++ == 0)
    out->first = index;
}

/* Most blocks agree, so a loop without branches checks a block first. */
static bool block_agrees(const tensor_comparison *c, const double *a,
                         const double *b, size_t n) {
  unsigned bad = 0;
  double largest = c->out->largest;
  for (size_t i = 0; i < n; i++) {
    double d = fabs(a[i] - b[i]);
    bad |= !(a[i] == b[i]) & !(d <= c->absolute + c->relative * fabs(b[i]));
    largest = d > largest ? d : largest;
  }
  if (!(largest < INFINITY))
    return false;
  c->out->largest = largest;
  return !bad;
}

static void compare_block(const tensor_comparison *c, const double *a,
                          const double *b, size_t from, size_t n) {
  size_t width = is_complex(c->dtype) ? 2 : 1;
  if (block_agrees(c, a, b, n))
    return;
  for (size_t i = 0; i < n; i++) {
    double d = fabs(a[i] - b[i]);
    if (d > c->out->largest && a[i] != b[i])
      c->out->largest = d;
    if (agrees(c, a[i], b[i]))
      continue;
    found(c->out, (from + i) / width);
    i |= width - 1; /* a complex element counts once */
  }
}

static void compare_numbers(const tensor_comparison *c, size_t count) {
  double a[BLOCK], b[BLOCK];
  for (size_t from = 0; from < count; from += BLOCK) {
    size_t n = count - from < BLOCK ? count - from : BLOCK;
    load_side(c, false, from, n, a);
    load_side(c, true, from, n, b);
    compare_block(c, a, b, from, n);
  }
}

static uint64_t word(const uint8_t *data, size_t i) {
  uint64_t value;
  memcpy(&value, data + i * sizeof value, sizeof value);
  return value;
}

/* The distance between two integers. */
static double distance(pln_dtype dtype, uint64_t a, uint64_t b) {
  bool less = dtype == PLN_INT64 ? (int64_t)a < (int64_t)b : a < b;
  return (double)(less ? b - a : a - b);
}

static void compare_words(const tensor_comparison *c, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint64_t a = word(c->a, c->a_splat ? 0 : i);
    uint64_t b = word(c->b, c->b_splat ? 0 : i);
    if (a == b)
      continue;
    double d = distance(c->dtype, a, b);
    c->out->largest = d > c->out->largest ? d : c->out->largest;
    found(c->out, i);
  }
}

static void compare_strings(const tensor_comparison *c, size_t count) {
  const pln_slice *a = (const void *)c->a, *b = (const void *)c->b;
  for (size_t i = 0; i < count; i++)
    if (!pln_slice_equal(a[c->a_splat ? 0 : i], b[c->b_splat ? 0 : i]))
      found(c->out, i);
}

/* The largest finite magnitude of the expected elements, at least 1. */
static double magnitude(const tensor_comparison *c, size_t count) {
  double b[BLOCK], largest = 1;
  for (size_t from = 0; from < count; from += BLOCK) {
    size_t n = count - from < BLOCK ? count - from : BLOCK;
    load_side(c, true, from, n, b);
    for (size_t i = 0; i < n; i++)
      if (fabs(b[i]) > largest && fabs(b[i]) < INFINITY)
        largest = fabs(b[i]);
  }
  return largest;
}

static void compare_elements(tensor_comparison *c,
                             const pln_tolerance *tolerance, size_t count) {
  if (is_complex(c->dtype))
    count *= 2;
  if (is_inexact_dtype(c->dtype) && tolerance) {
    c->relative = tolerance->relative;
    c->absolute = tolerance->absolute;
    if (tolerance->scaled)
      c->absolute *= magnitude(c, count);
  }
  if (c->dtype == PLN_STRING)
    compare_strings(c, count);
  else if (is_wide(c->dtype))
    compare_words(c, count);
  else
    compare_numbers(c, count);
}

static bool same_dims(const pln_tensor *a, const pln_tensor *b) {
  return a->rank == b->rank &&
         (a->rank == 0 || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims));
}

pln_status pln_tensor_compare(const pln_tensor *tensor,
                              const pln_tensor *expected,
                              const pln_tolerance *tolerance,
                              pln_difference *out) {
  const void *a, *b;
  *out = (pln_difference){0};
  if (tensor->dtype != expected->dtype)
    out->kind = PLN_DIFFERENT_DTYPE;
  else if (!same_dims(tensor, expected))
    out->kind = PLN_DIFFERENT_SHAPE;
  if (out->kind || tensor == expected)
    return PLN_OK;
  PLN_TRY(pln_tensor_data(tensor, &a));
  PLN_TRY(pln_tensor_data(expected, &b));
  tensor_comparison c = {.dtype = (pln_dtype)tensor->dtype,
                         .a = a,
                         .b = b,
                         .a_splat = tensor->splat,
                         .b_splat = expected->splat,
                         .out = out};
  compare_elements(&c, tolerance, tensor->count);
  if (out->n_differ)
    out->kind = PLN_DIFFERENT_ELEMENTS;
  return PLN_OK;
}

/* ------------------------------------------------------------------- text */

/* The fewest digits that identify the number. */
static int number_text(pln_dtype dtype, double x, char *text, size_t size) {
  int digits = dtype == PLN_FLOAT64 || dtype == PLN_COMPLEX128  ? 17
               : dtype == PLN_FLOAT32 || dtype == PLN_COMPLEX64 ? 9
                                                                : 5;
  if (isnan(x))
    return snprintf(text, size, "nan");
  for (int n = digits - 3; n < digits; n++) {
    char shorter[40];
    double back = 0;
    snprintf(shorter, sizeof shorter, "%.*g", n, x);
    sscanf(shorter, "%lf", &back);
    if (digits == 9 ? (float)back == (float)x : back == x)
      return snprintf(text, size, "%s", shorter);
  }
  return snprintf(text, size, "%.*g", digits, x);
}

static int string_text(pln_slice s, char *text, size_t size) {
  enum { SHOWN = 60 };
  bool cut = s.size > SHOWN;
  return snprintf(text, size, "'%.*s%s'", (int)(cut ? SHOWN : s.size),
                  s.data ? s.data : "", cut ? "..." : "");
}

static int complex_text(pln_dtype dtype, const uint8_t *data, size_t i,
                        char *text, size_t size) {
  double parts[2];
  char re[40], im[40];
  load_compared_elements(dtype, data, 2 * i, 2, parts);
  number_text(dtype, parts[0], re, sizeof re);
  number_text(dtype, parts[1], im, sizeof im);
  return snprintf(text, size, "(%s, %s)", re, im);
}

static int element_text(pln_dtype dtype, const uint8_t *data, size_t i,
                        char *text, size_t size) {
  double x;
  if (dtype == PLN_STRING) {
    pln_slice s;
    memcpy(&s, data + i * sizeof s, sizeof s);
    return string_text(s, text, size);
  }
  if (dtype == PLN_BOOL)
    return snprintf(text, size, "%s", data[i] ? "true" : "false");
  if (dtype == PLN_INT64)
    return snprintf(text, size, "%lld", (long long)word(data, i));
  if (dtype == PLN_UINT64)
    return snprintf(text, size, "%llu", (unsigned long long)word(data, i));
  if (is_complex(dtype))
    return complex_text(dtype, data, i, text, size);
  load_compared_elements(dtype, data, i, 1, &x);
  return is_inexact_dtype(dtype) ? number_text(dtype, x, text, size)
                                 : snprintf(text, size, "%lld", (long long)x);
}

pln_status pln_tensor_element_text(const pln_tensor *tensor, size_t index,
                                   char *text, size_t size) {
  const void *data;
  if (index >= tensor->count)
    return pln_diag_error(tensor->engine, PLN_ERR_ARGUMENT, NULL,
                          "the tensor has no element %zu", index);
  PLN_TRY(pln_tensor_data(tensor, &data));
  element_text((pln_dtype)tensor->dtype, data, tensor->splat ? 0 : index, text,
               size);
  return PLN_OK;
}
