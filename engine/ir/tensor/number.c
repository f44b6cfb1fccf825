/* number.c: elements of tensors as numbers of C, for code that handles every
 * dtype alike: rules and their conditions. */

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

bool pln_tensor_number(const pln_tensor *t, size_t index, double *out) {
  int64_t n;
  if (!t->data || index >= t->count)
    return false;
  if (read_float(t, t->splat ? 0 : index, out))
    return true;
  if (!pln_tensor_int(t, index, &n) || n > (int64_t)1 << 53 ||
      n < -((int64_t)1 << 53))
    return false;
  *out = (double)n;
  return true;
}

typedef union element {
  double f64;
  float f32;
  uint16_t f16;
  int64_t i;
} element;

static bool store_float(pln_dtype dtype, double value, element *out) {
  switch (dtype) {
  case PLN_FLOAT64: out->f64 = value; return true;
  case PLN_FLOAT32: out->f32 = (float)value; return true;
  case PLN_FLOAT16: out->f16 = pln_float_to_half((float)value); return true;
  case PLN_BFLOAT16: out->f16 = pln_float_to_bfloat((float)value); return true;
  default: return false;
  }
}

/* Little-endian: the low bytes of the word are the element. */
static bool store_integer(pln_dtype dtype, double value, element *out) {
  uint32_t bits = magnitude_bits(dtype);
  bool narrow = bits && bits <= 53;
  double limit = narrow ? (double)((uint64_t)1 << bits) : 9007199254740992.0;
  if (!bits || value != (double)(int64_t)value || value >= limit ||
      value < (is_signed(dtype) ? -limit : 0))
    return false;
  out->i = (int64_t)value;
  return true;
}

pln_status pln_tensor_full(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                           const int64_t *dims, double value,
                           pln_tensor **out) {
  element e = {.i = 0};
  *out = NULL;
  bool tiny = value > -9e18 && value < 9e18;
  if (!store_float(dtype, value, &e) &&
      (!tiny || !store_integer(dtype, value, &e)))
    return PLN_OK;
  if (rank == 0)
    return pln_tensor_from_bytes(engine, dtype, 0, NULL, &e,
                                 pln_dtype_bits(dtype) / 8, out);
  return pln_tensor_splat(engine, dtype, rank, dims, &e, out);
}
