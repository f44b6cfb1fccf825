/* number.c: elements of tensors as numbers of C, for code that handles every
 * dtype alike: rules and their conditions. */

#include <float.h>

#include "base/half.h"
#include "ir/tensor/dtype.h"
#include "ir/tensor/tensor.h"

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

bool pln_dtype_contains(pln_dtype to, pln_dtype from) {
  if (to == from && to)
    return true;
  if (from == PLN_FLOAT16 || from == PLN_BFLOAT16)
    return to == PLN_FLOAT32 || to == PLN_FLOAT64;
  if (from == PLN_FLOAT32)
    return to == PLN_FLOAT64;
  if (!magnitude_bits(from) || !magnitude_bits(to) || to == PLN_BOOL)
    return false;
  if (is_signed(from) && !is_signed(to))
    return false;
  return magnitude_bits(to) >= magnitude_bits(from);
}

double pln_float_load(pln_dtype dtype, const char *at) {
  uint16_t half;
  float single;
  double number;
  switch ((int)dtype) {
  case PLN_FLOAT64: memcpy(&number, at, 8); return number;
  case PLN_FLOAT32: memcpy(&single, at, 4); return (double)single;
  default: memcpy(&half, at, 2); break;
  }
  return (double)(dtype == PLN_FLOAT16 ? pln_half_to_float(half)
                                       : pln_bfloat_to_float(half));
}

double pln_float_greatest(pln_dtype dtype) {
  switch ((int)dtype) {
  case PLN_FLOAT16: return 65504;
  case PLN_BFLOAT16: return 0x1.fep127;
  case PLN_FLOAT32: return (double)FLT_MAX;
  default: return DBL_MAX;
  }
}

void pln_float_store(pln_dtype dtype, double number, char *at) {
  float single = (float)number;
  uint16_t half;
  switch ((int)dtype) {
  case PLN_FLOAT64: memcpy(at, &number, 8); return;
  case PLN_FLOAT32: memcpy(at, &single, 4); return;
  default: break;
  }
  half = dtype == PLN_FLOAT16 ? pln_float_to_half(single)
                              : pln_float_to_bfloat(single);
  memcpy(at, &half, 2);
}

bool pln_tensor_number(const pln_tensor *t, size_t index, double *out) {
  int64_t n;
  if (!t->data || index >= t->count)
    return false;
  if (pln_dtype_is_float((pln_dtype)t->dtype)) {
    size_t i = t->splat ? 0 : index;
    *out = pln_float_load((pln_dtype)t->dtype,
                          (const char *)t->data +
                              i * (pln_dtype_bits((pln_dtype)t->dtype) / 8));
    return true;
  }
  if (!pln_tensor_int(t, index, &n) || n > (int64_t)1 << 53 ||
      n < -((int64_t)1 << 53))
    return false;
  *out = (double)n;
  return true;
}

static bool has_integer(pln_dtype dtype, int64_t value) {
  uint32_t bits = magnitude_bits(dtype);
  if (value < 0)
    return is_signed(dtype) && (bits == 63 || value >= -((int64_t)1 << bits));
  return bits >= 63 || (bits && value < (int64_t)1 << bits);
}

/* Little-endian: the low bytes of the word are the element. */
static pln_status make_full(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                            const int64_t *dims, int64_t word,
                            pln_tensor **out) {
  if (rank == 0)
    return pln_tensor_from_bytes(engine, dtype, 0, NULL, &word,
                                 pln_dtype_bits(dtype) / 8, out);
  return pln_tensor_splat(engine, dtype, rank, dims, &word, out);
}

pln_status pln_tensor_full_int(pln_engine *engine, pln_dtype dtype,
                               uint32_t rank, const int64_t *dims,
                               int64_t value, pln_tensor **out) {
  *out = NULL;
  if (pln_dtype_is_float(dtype))
    return pln_tensor_full(engine, dtype, rank, dims, (double)value, out);
  return has_integer(dtype, value)
             ? make_full(engine, dtype, rank, dims, value, out)
             : PLN_OK;
}

/* Beyond 2^53 a number may be a rounded integer, but for -2^63. */
static bool is_exact(double value) {
  double limit = 0x1p53;
  return value == -0x1p63 ||
         (value >= -limit && value <= limit && value == (double)(int64_t)value);
}

pln_status pln_tensor_full(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                           const int64_t *dims, double value,
                           pln_tensor **out) {
  int64_t word = 0;
  *out = NULL;
  if (pln_dtype_is_float(dtype)) {
    pln_float_store(dtype, value, (char *)&word);
    return make_full(engine, dtype, rank, dims, word, out);
  }
  return is_exact(value) ? pln_tensor_full_int(engine, dtype, rank, dims,
                                               (int64_t)value, out)
                         : PLN_OK;
}
