/* convert.c: converts runs of elements from one dtype to another. Called by
 * cast.
 *
 * Integers wrap. A float becomes an integer by truncation. What does not fit,
 * including NaN, is refused while folding; a run gives what x86 gives, as other
 * runtimes do: the least int64 for 64-bit integers, uint32 and dtypes smaller
 * than a byte; for the others the low bits of the least int32. Floats are
 * rounded to nearest, ties to even.
 *
 * Elements go through blocks of one of four intermediate forms, so that
 * there is a loop per dtype and a loop per pair of forms, not one per pair
 * of dtypes. */

#include "op/kernel/elementwise/convert.h"

#include "op/kernel/elementwise/elementwise.h"
#include "op/kernel/multiversion.h"

/* Elements of a block. */
enum { BLOCK = 512 };

/* float, double, int32_t, and int64_t or uint64_t by the dtype's sign. */
typedef enum element_form { NONE, SINGLE, TWICE, SHORT, LONG } element_form;

static element_form dtype_form_of(pln_dtype dtype) {
  switch ((int)dtype) {
  case PLN_FLOAT32:
  case PLN_FLOAT16:
  case PLN_BFLOAT16: return SINGLE;
  case PLN_FLOAT64: return TWICE;
  case PLN_BOOL:
  case PLN_INT8:
  case PLN_INT16:
  case PLN_INT32:
  case PLN_UINT8:
  case PLN_UINT16: return SHORT;
  case PLN_INT2:
  case PLN_INT4:
  case PLN_UINT2:
  case PLN_UINT4:
  case PLN_INT64:
  case PLN_UINT32:
  case PLN_UINT64: return LONG;
  }
  return pln_is_small_float(dtype) ? TWICE : NONE;
}

/* Returns true if elements of the dtype are stored in their form. */
static bool is_form(pln_dtype dtype) {
  return dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64 || dtype == PLN_INT32 ||
         dtype == PLN_INT64 || dtype == PLN_UINT64;
}

static bool is_signed(pln_dtype dtype) {
  return dtype == PLN_INT2 || dtype == PLN_INT4 || dtype == PLN_INT8 ||
         dtype == PLN_INT16 || dtype == PLN_INT32 || dtype == PLN_INT64;
}

bool pln_convertible(pln_dtype dtype) {
  return dtype_form_of(dtype) != NONE;
}

typedef union converted_block {
  float single[BLOCK];
  double twice[BLOCK];
  int32_t narrow[BLOCK];
  uint64_t whole[BLOCK];
} converted_block;

/* ------------------------------------------------------------ below a byte */

/* Element `i` of a packed run; low bits come first. */
static uint8_t packed_at(const void *from, size_t i, uint32_t bits) {
  uint32_t per_byte = 8 / bits;
  uint8_t byte = ((const uint8_t *)from)[i / per_byte];
  return (uint8_t)((byte >> (i % per_byte * bits)) & ((1u << bits) - 1));
}

/* Writes element `i`; the first element of a byte clears it. */
static void pack_at(void *to, size_t i, uint32_t bits, uint8_t element) {
  size_t per_byte = 8 / bits, at = i % per_byte * bits;
  uint8_t *byte = (uint8_t *)to + i / per_byte;
  uint8_t mask = (uint8_t)((1u << bits) - 1);
  *byte = (uint8_t)((at ? *byte : 0) | (element & mask) << at);
}

static void unpack(pln_dtype dtype, const void *from, size_t n, uint64_t *to) {
  uint32_t bits = pln_dtype_bits(dtype);
  uint64_t sign = is_signed(dtype) ? (uint64_t)1 << (bits - 1) : 0;
  for (size_t i = 0; i < n; i++)
    to[i] = (packed_at(from, i, bits) ^ sign) - sign;
}

static void widen_small(pln_dtype dtype, const void *from, size_t n,
                        double *to) {
  uint32_t bits = pln_dtype_bits(dtype);
  for (size_t i = 0; i < n; i++)
    to[i] = pln_small_to_double(dtype, packed_at(from, i, bits));
}

/* ------------------------------------------------------- dtypes to a form */

/* A loop from one element type to another. */
#define CONVERT(name, S, T, expr)                                      \
  PLN_MULTIVERSION_AVX512 static void name(const void *from, size_t n, \
                                           void *to) {                 \
    const S *restrict in = from;                                       \
    T *restrict out = to;                                              \
    for (size_t i = 0; i < n; i++) {                                   \
      const S x = in[i];                                               \
      out[i] = (T)(expr);                                              \
    }                                                                  \
  }
CONVERT(load_bool, uint8_t, int32_t, x != 0)
CONVERT(load_int8, int8_t, int32_t, x)
CONVERT(load_int16, int16_t, int32_t, x)
CONVERT(load_uint8, uint8_t, int32_t, x)
CONVERT(load_uint16, uint16_t, int32_t, x)
CONVERT(load_uint32, uint32_t, uint64_t, x)

static void load(pln_dtype dtype, const void *from, size_t n, void *to) {
  switch ((int)dtype) {
  case PLN_FLOAT16:
  case PLN_BFLOAT16: pln_widen(dtype, from, to, n); return;
  case PLN_BOOL: load_bool(from, n, to); return;
  case PLN_INT8: load_int8(from, n, to); return;
  case PLN_INT16: load_int16(from, n, to); return;
  case PLN_UINT8: load_uint8(from, n, to); return;
  case PLN_UINT16: load_uint16(from, n, to); return;
  case PLN_UINT32: load_uint32(from, n, to); return;
  }
  if (dtype_form_of(dtype) == TWICE)
    widen_small(dtype, from, n, to);
  else
    unpack(dtype, from, n, to);
}

/* ------------------------------------------------------------ form to form */

/* Truncates to int32. Only NaN is reported; callers that refuse other values
 * check them first. */
#define TRUNCATE_SHORT(name, S)                                        \
  PLN_MULTIVERSION_AVX512 static bool name(const void *from, size_t n, \
                                           void *to) {                 \
    const S *restrict in = from;                                       \
    int32_t *restrict out = to;                                        \
    uint32_t nan = 0;                                                  \
    for (size_t i = 0; i < n; i++) {                                   \
      const S x = in[i];                                               \
      const bool fits = x > (S)-0x1.00000002p31 && x < (S)0x1p31;      \
      const int32_t y = (int32_t)(fits ? x : 0);                       \
      nan |= x != x;                                                   \
      out[i] = fits ? y : INT32_MIN;                                   \
    }                                                                  \
    return !nan;                                                       \
  }
/* Truncates to int64. */
#define TRUNCATE_LONG(name, S)                                         \
  PLN_MULTIVERSION_AVX512 static bool name(const void *from, size_t n, \
                                           void *to) {                 \
    const S *restrict in = from;                                       \
    int64_t *restrict out = to;                                        \
    uint32_t nan = 0;                                                  \
    for (size_t i = 0; i < n; i++) {                                   \
      const S x = in[i];                                               \
      const bool fits = x >= (S)-0x1p63 && x < (S)0x1p63;              \
      const int64_t y = (int64_t)(fits ? x : 0);                       \
      nan |= x != x;                                                   \
      out[i] = fits ? y : INT64_MIN;                                   \
    }                                                                  \
    return !nan;                                                       \
  }
/* Truncates to uint64; values from 2^63 on are shifted down and back. */
#define TRUNCATE_UNSIGNED(name, S)                                        \
  PLN_MULTIVERSION_AVX512 static bool name(const void *from, size_t n,    \
                                           void *to) {                    \
    const S *restrict in = from;                                          \
    uint64_t *restrict out = to;                                          \
    uint32_t nan = 0;                                                     \
    for (size_t i = 0; i < n; i++) {                                      \
      const bool high = in[i] >= (S)0x1p63;                               \
      const S x = in[i] - (high ? (S)0x1p63 : 0);                         \
      const bool fits = x >= (S)-0x1p63 && x < (S)0x1p63;                 \
      const int64_t y = (int64_t)(fits ? x : 0);                          \
      nan |= in[i] != in[i];                                              \
      out[i] = (uint64_t)(fits ? y : INT64_MIN) + ((uint64_t)high << 63); \
    }                                                                     \
    return !nan;                                                          \
  }
TRUNCATE_SHORT(single_to_short, float)
TRUNCATE_SHORT(twice_to_short, double)
TRUNCATE_LONG(any_single_to_long, float)
TRUNCATE_LONG(twice_to_long, double)
TRUNCATE_UNSIGNED(single_to_unsigned, float)
TRUNCATE_UNSIGNED(twice_to_unsigned, double)
CONVERT(single_to_twice, float, double, x)
CONVERT(twice_to_single, double, float, x)
CONVERT(short_to_single, int32_t, float, x)
CONVERT(short_to_twice, int32_t, double, x)
CONVERT(short_to_long, int32_t, uint64_t, x)
CONVERT(long_to_single, int64_t, float, x)
CONVERT(long_to_twice, int64_t, double, x)
CONVERT(unsigned_to_single, uint64_t, float, x)
CONVERT(unsigned_to_twice, uint64_t, double, x)
CONVERT(long_to_short, uint64_t, int32_t, (uint32_t)x)

/* Most processors truncate vectors of floats to int32 only. */
CONVERT(near_single_to_long, float, int64_t, (int32_t)x)

PLN_MULTIVERSION static bool are_near(const float *x, size_t n) {
  uint32_t far = 0;
  for (size_t i = 0; i < n; i++)
    far |= !(x[i] > -0x1p31f && x[i] < 0x1p31f);
  return !far;
}

static bool single_to_long(const void *from, size_t n, void *to) {
  if (!are_near(from, n))
    return any_single_to_long(from, n, to);
  near_single_to_long(from, n, to);
  return true;
}

typedef void (*convert_run_fn)(const void *from, size_t n, void *to);
typedef bool (*truncate_fn)(const void *from, size_t n, void *to);

/* The loop from one form to a different one; it cannot fail. */
static convert_run_fn find_convert_run(element_form from, element_form to,
                                       bool has_sign) {
  if (from == SINGLE)
    return single_to_twice;
  if (from == TWICE)
    return twice_to_single;
  if (from == SHORT)
    return to == SINGLE  ? short_to_single
           : to == TWICE ? short_to_twice
                         : short_to_long;
  if (to == SHORT)
    return long_to_short;
  if (to == SINGLE)
    return has_sign ? long_to_single : unsigned_to_single;
  return has_sign ? long_to_twice : unsigned_to_twice;
}

static truncate_fn find_truncate(element_form from, pln_dtype to) {
  if (to == PLN_UINT64)
    return from == SINGLE ? single_to_unsigned : twice_to_unsigned;
  if (dtype_form_of(to) == SHORT)
    return from == SINGLE ? single_to_short : twice_to_short;
  return from == SINGLE ? single_to_long : twice_to_long;
}

/* ---------------------------------------------------- what folding refuses */

/* The least value, and the first value too large, of an integer dtype. Integers
 * smaller than a byte keep the low bits of any 64-bit integer, as in ONNX's
 * node tests. */
static void bounds(pln_dtype dtype, double *low, double *high) {
  if (pln_dtype_bits(dtype) < 8)
    dtype = PLN_INT64;
  double bits = (double)((uint64_t)1 << (pln_dtype_bits(dtype) - 1));
  *low = is_signed(dtype) ? -bits : 0;
  *high = is_signed(dtype) ? bits : 2 * bits;
}

/* Returns true if all truncated elements fit the dtype, or are NaN. */
static bool within(element_form from, const void *data, size_t n,
                   pln_dtype to) {
  double low, high;
  bounds(to, &low, &high);
  for (size_t i = 0; i < n; i++) {
    double x = from == SINGLE ? (double)((const float *)data)[i]
                              : ((const double *)data)[i];
    if (x == x && (!(x > low - 1 || x == low) || !(x < high)))
      return false;
  }
  return true;
}

/* -------------------------------------------------------- a form to dtypes */

CONVERT(store_byte, int32_t, uint8_t, x)
CONVERT(store_word, int32_t, uint16_t, x)
CONVERT(store_half_long, uint64_t, uint32_t, x)
CONVERT(test_single, float, uint8_t, x != 0)
CONVERT(test_twice, double, uint8_t, x != 0)
CONVERT(test_short, int32_t, uint8_t, x != 0)
CONVERT(test_long, uint64_t, uint8_t, x != 0)

static void test(element_form from, const void *data, size_t n, void *to) {
  if (from == SINGLE)
    test_single(data, n, to);
  else if (from == TWICE)
    test_twice(data, n, to);
  else if (from == SHORT)
    test_short(data, n, to);
  else
    test_long(data, n, to);
}

static void pack_subbyte_elements(pln_dtype dtype, const uint64_t *from,
                                  size_t n, void *to) {
  for (size_t i = 0; i < n; i++)
    pack_at(to, i, pln_dtype_bits(dtype), (uint8_t)from[i]);
}

static pln_converted narrow_small(const pln_conversion *c, const double *from,
                                  size_t n, void *to) {
  for (size_t i = 0; i < n; i++) {
    uint8_t bits;
    if (c->to != PLN_FLOAT8_E8M0FNU)
      bits = pln_double_to_small(c->to, from[i], c->saturate);
    else if (!pln_double_to_e8m0(from[i], c->rounding, c->saturate, &bits))
      return PLN_CONVERT_NEGATIVE;
    pack_at(to, i, pln_dtype_bits(c->to), bits);
  }
  return PLN_CONVERTED;
}

static pln_converted store_converted(const pln_conversion *c, const void *from,
                                     size_t n, void *to) {
  switch ((int)c->to) {
  case PLN_FLOAT16:
  case PLN_BFLOAT16: pln_narrow(c->to, from, to, n); break;
  case PLN_INT8:
  case PLN_UINT8: store_byte(from, n, to); break;
  case PLN_INT16:
  case PLN_UINT16: store_word(from, n, to); break;
  case PLN_UINT32: store_half_long(from, n, to); break;
  default:
    if (dtype_form_of(c->to) == TWICE)
      return narrow_small(c, from, n, to);
    pack_subbyte_elements(c->to, from, n, to);
  }
  return PLN_CONVERTED;
}

/* ------------------------------------------------------------------- blocks */

/* From the source's form to the target's, which is another. */
static pln_converted convert_elements(const pln_conversion *c, const void *from,
                                      size_t n, void *to) {
  element_form a = dtype_form_of(c->from), b = dtype_form_of(c->to);
  bool cuts = (a == SINGLE || a == TWICE) && (b == SHORT || b == LONG);
  if (!cuts) {
    find_convert_run(a, b, is_signed(c->from))(from, n, to);
    return PLN_CONVERTED;
  }
  if (c->folding && !within(a, from, n, c->to))
    return PLN_CONVERT_OUTSIDE;
  bool is_nan = !find_truncate(a, c->to)(from, n, to);
  return is_nan && c->folding ? PLN_CONVERT_NAN : PLN_CONVERTED;
}

static pln_converted convert_block(const pln_conversion *c, const void *from,
                                   size_t n, void *to) {
  converted_block first, second;
  element_form a = dtype_form_of(c->from), b = dtype_form_of(c->to);
  bool direct = is_form(c->to);
  if (!is_form(c->from)) {
    void *loaded = direct && a == b ? to : &first;
    load(c->from, from, n, loaded);
    from = loaded;
  }
  if (c->to == PLN_BOOL) {
    test(a, from, n, to);
    return PLN_CONVERTED;
  }
  if (a != b) {
    pln_converted done = convert_elements(c, from, n, direct ? to : &second);
    if (done != PLN_CONVERTED || direct)
      return done;
    from = &second;
  }
  if (!direct)
    return store_converted(c, from, n, to);
  if (from != to)
    memcpy(to, from, n * pln_element_size(c->to));
  return PLN_CONVERTED;
}

pln_converted pln_convert(const pln_conversion *c, const void *from, size_t n,
                          void *to) {
  size_t in = BLOCK * pln_dtype_bits(c->from) / 8;
  size_t out = BLOCK * pln_dtype_bits(c->to) / 8;
  size_t looked = 0;
  for (size_t i = 0; i < n; i += BLOCK) {
    size_t part = n - i < BLOCK ? n - i : BLOCK;
    if (c->engine && pln_is_stopped_after(c->engine, &looked, part))
      return PLN_CONVERTED;
    pln_converted done = convert_block(c, (const char *)from + i / BLOCK * in,
                                       part, (char *)to + i / BLOCK * out);
    if (done != PLN_CONVERTED)
      return done;
  }
  return PLN_CONVERTED;
}
