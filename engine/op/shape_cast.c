/* shape_cast.c: elements as another dtype: cast, cast_like, bit_cast. Called
 * through ops.def.
 *
 * Between integers values wrap. From a float to an integer they are cut towards
 * zero; what does not fit, or is no number, refuses; integers of 4 and 2 bits
 * wrap there too. Floats are rounded to the
 * nearest, ties to even. */

#include "op/kernel.h"
#include "op/small_float.h"

/* ---------------------------------------------------------------- inference */

static pln_status read_to(const pln_infer *call, pln_dtype *out) {
  int64_t to = pln_call_int(call, "to", 0);
  if (to <= 0 || to >= PLN_N_DTYPES)
    return pln_call_error(call, "dtype %lld is unknown", (long long)to);
  *out = (pln_dtype)to;
  return PLN_OK;
}

/* Integers stay what they are, and are true when not 0. */
static pln_status cast_value(pln_infer *call, pln_dtype to) {
  pln_value value = pln_arg_value(call, 0);
  if (!value)
    return PLN_OK;
  uint32_t n = pln_value_count(call->engine, value);
  const pln_dim *from = pln_value_elements(call->engine, value);
  pln_dim elements[PLN_VALUE_MAX];
  if (n > PLN_VALUE_MAX)
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++)
    if (to != PLN_BOOL)
      elements[i] = from[i];
    else if (PLN_DIM_IS_CONST(from[i]))
      elements[i] = from[i] != 0;
    else
      elements[i] = PLN_DIM_UNKNOWN;
  return pln_infer_set_value(call, pln_value_rank(call->engine, value), n,
                             elements);
}

pln_status pln_infer_cast(pln_infer *call) {
  pln_dtype to = PLN_DTYPE_NONE;
  PLN_TRY(read_to(call, &to));
  PLN_TRY(pln_result_shaped_like(call, 0, 0, to));
  return cast_value(call, to);
}

pln_status pln_infer_cast_like(pln_infer *call) {
  pln_dtype to = pln_arg_dtype(call, 1);
  PLN_TRY(pln_result_shaped_like(call, 0, 0, to));
  return cast_value(call, to);
}

pln_status pln_infer_bit_cast(pln_infer *call) {
  pln_dtype to = PLN_DTYPE_NONE, from = pln_arg_dtype(call, 0);
  PLN_TRY(read_to(call, &to));
  if (from && pln_dtype_bits(from) != pln_dtype_bits(to))
    return pln_call_error(call, "%s and %s differ in size",
                          pln_dtype_name(from), pln_dtype_name(to));
  return pln_result_shaped_like(call, 0, 0, to);
}

/* ------------------------------------------------------------------- blocks */

/* Elements go through a block of doubles (floats) or of 64-bit integers, so
 * that there is one loop a dtype and not one a pair of them. */
enum { BLOCK = 512 };

typedef enum class { NOT, FLOATING, SIGNED, UNSIGNED } class;

static class class_of(pln_dtype dtype) {
  switch ((int)dtype) {
  case PLN_FLOAT32:
  case PLN_FLOAT64:
  case PLN_FLOAT16:
  case PLN_BFLOAT16: return FLOATING;
  case PLN_INT2:
  case PLN_INT4:
  case PLN_INT8:
  case PLN_INT16:
  case PLN_INT32:
  case PLN_INT64: return SIGNED;
  case PLN_BOOL:
  case PLN_UINT2:
  case PLN_UINT4:
  case PLN_UINT8:
  case PLN_UINT16:
  case PLN_UINT32:
  case PLN_UINT64: return UNSIGNED;
  }
  return pln_is_small_float(dtype) ? FLOATING : NOT;
}

/* Element `i` of a run that begins with a byte; low bits come first. */
static uint8_t packed_at(const void *from, size_t i, uint32_t bits) {
  uint32_t per_byte = 8 / bits;
  uint8_t byte = ((const uint8_t *)from)[i / per_byte];
  return (byte >> (i % per_byte * bits)) & (uint8_t)((1u << bits) - 1);
}

/* Into zeroed bytes. */
static void pack_at(void *to, size_t i, uint32_t bits, uint8_t element) {
  uint32_t per_byte = 8 / bits;
  uint8_t mask = (uint8_t)((1u << bits) - 1);
  ((uint8_t *)to)[i / per_byte] |=
      (uint8_t)((element & mask) << (i % per_byte * bits));
}

#define LOAD(type, expr)                       \
  do {                                         \
    const unsigned char *p_ = from;            \
    for (size_t i = 0; i < n; i++) {           \
      type x;                                  \
      memcpy(&x, p_ + i * sizeof x, sizeof x); \
      to[i] = (expr);                          \
    }                                          \
  } while (0)

static void load_floats(pln_dtype dtype, const void *from, size_t n,
                        double *to) {
  switch ((int)dtype) {
  case PLN_FLOAT32: LOAD(float, (double)x); break;
  case PLN_FLOAT64: LOAD(double, x); break;
  case PLN_FLOAT16: LOAD(uint16_t, (double)pln_half_to_float(x)); break;
  case PLN_BFLOAT16: LOAD(uint16_t, (double)pln_bfloat_to_float(x)); break;
  default:
    for (size_t i = 0; i < n; i++)
      to[i] =
          pln_small_to_double(dtype, packed_at(from, i, pln_dtype_bits(dtype)));
  }
}

static void unpack(pln_dtype dtype, const void *from, size_t n, uint64_t *to) {
  uint32_t bits = pln_dtype_bits(dtype);
  uint64_t sign = class_of(dtype) == SIGNED ? (uint64_t)1 << (bits - 1) : 0;
  for (size_t i = 0; i < n; i++)
    to[i] = (packed_at(from, i, bits) ^ sign) - sign;
}

static void load_integers(pln_dtype dtype, const void *from, size_t n,
                          uint64_t *to) {
  switch ((int)dtype) {
  case PLN_INT8: LOAD(int8_t, (uint64_t)x); break;
  case PLN_INT16: LOAD(int16_t, (uint64_t)x); break;
  case PLN_INT32: LOAD(int32_t, (uint64_t)x); break;
  case PLN_BOOL: LOAD(uint8_t, x != 0); break;
  case PLN_UINT8: LOAD(uint8_t, x); break;
  case PLN_UINT16: LOAD(uint16_t, x); break;
  case PLN_UINT32: LOAD(uint32_t, x); break;
  case PLN_INT64:
  case PLN_UINT64: LOAD(uint64_t, x); break;
  default: unpack(dtype, from, n, to); break;
  }
}

#define STORE(type, expr)          \
  do {                             \
    type *p_ = to;                 \
    for (size_t i = 0; i < n; i++) \
      p_[i] = (type)(expr);        \
  } while (0)

static void store_floats(pln_dtype dtype, const double *from, size_t n,
                         void *to) {
  switch ((int)dtype) {
  case PLN_FLOAT32: STORE(float, from[i]); break;
  case PLN_FLOAT64: STORE(double, from[i]); break;
  case PLN_FLOAT16: STORE(uint16_t, pln_float_to_half((float)from[i])); break;
  case PLN_BFLOAT16:
    STORE(uint16_t, pln_float_to_bfloat((float)from[i]));
    break;
  }
}

static void store_integers(pln_dtype dtype, const uint64_t *from, size_t n,
                           void *to) {
  switch ((int)dtype) {
  case PLN_BOOL: STORE(uint8_t, from[i] != 0); break;
  case PLN_INT8:
  case PLN_UINT8: STORE(uint8_t, from[i]); break;
  case PLN_INT16:
  case PLN_UINT16: STORE(uint16_t, from[i]); break;
  case PLN_INT32:
  case PLN_UINT32: STORE(uint32_t, from[i]); break;
  case PLN_INT64:
  case PLN_UINT64: STORE(uint64_t, from[i]); break;
  default:
    for (size_t i = 0; i < n; i++)
      pack_at(to, i, pln_dtype_bits(dtype), (uint8_t)from[i]);
  }
}

/* Integers become floats of the dtype in one rounding: through double only
 * where that is exact. */
static void round_integers(pln_dtype dtype, bool is_signed,
                           const uint64_t *from, size_t n, void *to) {
  switch ((int)dtype) {
  case PLN_FLOAT64:
    STORE(double, is_signed ? (double)(int64_t)from[i] : (double)from[i]);
    break;
  case PLN_FLOAT32:
    STORE(float, is_signed ? (float)(int64_t)from[i] : (float)from[i]);
    break;
  case PLN_FLOAT16:
    STORE(uint16_t, pln_float_to_half(is_signed ? (float)(int64_t)from[i]
                                                : (float)from[i]));
    break;
  case PLN_BFLOAT16:
    STORE(uint16_t, pln_float_to_bfloat(is_signed ? (float)(int64_t)from[i]
                                                  : (float)from[i]));
    break;
  }
}

/* ----------------------------------------------------------- float to integer
 */

/* The least and the first too great value of an integer dtype. Integers below
 * a byte keep the low bits of any 64-bit integer, as the node tests of ONNX
 * have it. */
static void bounds(pln_dtype dtype, double *low, double *high) {
  if (pln_dtype_bits(dtype) < 8)
    dtype = PLN_INT64;
  double bits = (double)((uint64_t)1 << (pln_dtype_bits(dtype) - 1));
  bool is_signed = class_of(dtype) == SIGNED;
  *low = is_signed ? -bits : 0;
  *high = is_signed ? bits : 2 * bits;
}

/* False when an element has no integer. */
static bool cut(pln_dtype dtype, const double *from, size_t n, uint64_t *to) {
  double low, high;
  bounds(dtype, &low, &high);
  for (size_t i = 0; i < n; i++) {
    double x = from[i];
    if (!(x > low - 1 || x == low) || !(x < high))
      return false;
    to[i] = x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
  }
  return true;
}

/* A cast. */
typedef struct pair {
  pln_dtype from, to;
  bool saturate;           /* small floats */
  pln_e8m0_round rounding; /* FLOAT8_E8M0FNU */
} pair;

/* False when an element has no number of that dtype. */
static bool shrink(const pair *p, const double *from, size_t n, void *to) {
  for (size_t i = 0; i < n; i++) {
    uint8_t bits;
    if (p->to != PLN_FLOAT8_E8M0FNU)
      bits = pln_double_to_small(p->to, from[i], p->saturate);
    else if (!pln_double_to_e8m0(from[i], p->rounding, p->saturate, &bits))
      return false;
    pack_at(to, i, pln_dtype_bits(p->to), bits);
  }
  return true;
}

static void test(const double *from, size_t n, void *to) {
  STORE(uint8_t, from[i] != 0);
}

/* ------------------------------------------------------------------- kernel */

static bool cast_floats(pair p, const void *from, size_t n, void *to) {
  double block[BLOCK];
  uint64_t whole[BLOCK];
  load_floats(p.from, from, n, block);
  if (pln_is_small_float(p.to))
    return shrink(&p, block, n, to);
  if (class_of(p.to) == FLOATING) {
    store_floats(p.to, block, n, to);
  } else if (p.to == PLN_BOOL) {
    test(block, n, to);
  } else {
    if (!cut(p.to, block, n, whole))
      return false;
    store_integers(p.to, whole, n, to);
  }
  return true;
}

/* Beyond 53 bits nothing is left that a small float could tell apart. */
static bool shrink_integers(pair p, const uint64_t *from, size_t n, void *to) {
  double block[BLOCK];
  round_integers(PLN_FLOAT64, class_of(p.from) == SIGNED, from, n, block);
  return shrink(&p, block, n, to);
}

static bool cast_integers(pair p, const void *from, size_t n, void *to) {
  uint64_t block[BLOCK];
  load_integers(p.from, from, n, block);
  if (pln_is_small_float(p.to))
    return shrink_integers(p, block, n, to);
  if (class_of(p.to) == FLOATING)
    round_integers(p.to, class_of(p.from) == SIGNED, block, n, to);
  else
    store_integers(p.to, block, n, to);
  return true;
}

static pln_e8m0_round read_rounding(const pln_kernel_call *call) {
  if (pln_kernel_string_is(call, "round_mode", "up", "down"))
    return PLN_E8M0_DOWN;
  if (pln_kernel_string_is(call, "round_mode", "up", "nearest"))
    return PLN_E8M0_NEAREST;
  return PLN_E8M0_UP;
}

static pln_status cast_to(pln_kernel_call *call, pln_dtype to) {
  const pln_tensor *x = call->args[0];
  pair p = {(pln_dtype)x->dtype, to, pln_kernel_int(call, "saturate", 1) != 0,
            read_rounding(call)};
  void *data;
  if (p.from == to) {
    pln_kernel_same(call, 0, x);
    return PLN_OK;
  }
  if (class_of(p.from) == NOT || class_of(to) == NOT)
    return pln_kernel_no_dtype(call, class_of(to) == NOT ? to : p.from);
  PLN_TRY(pln_kernel_result(call, 0, to, x->rank, x->dims, &data));
  for (size_t i = 0; i < x->count; i += BLOCK) {
    size_t n = x->count - i < BLOCK ? x->count - i : BLOCK;
    const char *at = (const char *)x->data + i * pln_dtype_bits(p.from) / 8;
    char *out = (char *)data + i * pln_dtype_bits(to) / 8;
    bool defined = class_of(p.from) == FLOATING ? cast_floats(p, at, n, out)
                                                : cast_integers(p, at, n, out);
    if (!defined)
      return pln_kernel_undefined(call);
  }
  return PLN_OK;
}

pln_status pln_kernel_cast(pln_kernel_call *call) {
  int64_t to = pln_kernel_int(call, "to", 0);
  if (to <= 0 || to >= PLN_N_DTYPES)
    return pln_kernel_refuse(call, "dtype %lld is unknown", (long long)to);
  return cast_to(call, (pln_dtype)to);
}

pln_status pln_kernel_cast_like(pln_kernel_call *call) {
  return cast_to(call, (pln_dtype)call->args[1]->dtype);
}

pln_status pln_kernel_bit_cast(pln_kernel_call *call) {
  const pln_tensor *x = call->args[0];
  int64_t to = pln_kernel_int(call, "to", 0);
  if (to <= 0 || to >= PLN_N_DTYPES || to == PLN_STRING ||
      x->dtype == PLN_STRING ||
      pln_dtype_bits((pln_dtype)to) != pln_dtype_bits((pln_dtype)x->dtype))
    return pln_kernel_refuse(call, "the dtypes differ in size");
  return pln_tensor_from(call->engine, (pln_dtype)to, x->rank, x->dims, x->data,
                         x->bytes, call->results);
}
