/* random.c: random tensors, counter-based: element i depends only on the seed
 * and i, so any slice can be generated alone, with the same result on every
 * machine. Called through perilune.h and by the binding, for model weights and
 * run inputs.
 *
 * The bits are splitmix64 of a counter (Steele, Lea, Flood: Fast splittable
 * pseudorandom number generators, 2014). The normal distribution is
 * approximated by the sum of four uniform integers (Irwin-Hall), because
 * logarithms differ between machines. */

#include <math.h>

#include "ir/tensor/random.h"
#include "ir/tensor/tensor.h"

enum { BLOCK = 512 }; /* elements generated before they are stored */

static uint64_t random_key_of(const pln_random_spec *spec) {
  return pln_splitmix64_at(spec->seed, 0);
}

static uint64_t bits_at(uint64_t key, uint64_t index) {
  return pln_splitmix64_at(key, index);
}

/* ------------------------------------------------------------------ drawing */

static void random_uniform(const pln_random_spec *spec, uint64_t first,
                           size_t n, double *out) {
  uint64_t key = random_key_of(spec);
  double low = spec->low, width = spec->high - low;
  for (size_t i = 0; i < n; i++)
    out[i] = low +
             (double)(int64_t)(bits_at(key, first + i) >> 11) * 0x1p-53 * width;
}

static void random_normal(const pln_random_spec *spec, uint64_t first, size_t n,
                          double *out) {
  /* mean and variance of the sum of four numbers in [0, 65536) */
  const double middle = 2 * 65535.0;
  uint64_t key = random_key_of(spec);
  double scale = spec->deviation / sqrt((65536.0 * 65536.0 - 1) / 3);
  for (size_t i = 0; i < n; i++) {
    uint64_t bits = bits_at(key, first + i);
    uint64_t pairs =
        (bits & 0x0000ffff0000ffffu) + (bits >> 16 & 0x0000ffff0000ffffu);
    int64_t sum = (int64_t)((pairs & 0xffffffffu) + (pairs >> 32));
    out[i] = spec->mean + ((double)sum - middle) * scale;
  }
}

static void random_element(const pln_random_spec *spec, uint64_t first,
                           size_t n, double *out) {
  if (spec->kind == PLN_RANDOM_UNIFORM)
    random_uniform(spec, first, n, out);
  else
    random_normal(spec, first, n, out);
}

/* ----------------------------------------------------------------- integers */

typedef struct range {
  int64_t low, high;
} range;

/* The range of an integer dtype within int64; {1, 0} for other dtypes. */
static range range_of(pln_dtype dtype) {
  switch ((int)dtype) {
  case PLN_BOOL: return (range){0, 1};
  case PLN_UINT2: return (range){0, 3};
  case PLN_UINT4: return (range){0, 15};
  case PLN_UINT8: return (range){0, UINT8_MAX};
  case PLN_UINT16: return (range){0, UINT16_MAX};
  case PLN_UINT32: return (range){0, UINT32_MAX};
  case PLN_UINT64: return (range){0, INT64_MAX};
  case PLN_INT2: return (range){-2, 1};
  case PLN_INT4: return (range){-8, 7};
  case PLN_INT8: return (range){INT8_MIN, INT8_MAX};
  case PLN_INT16: return (range){INT16_MIN, INT16_MAX};
  case PLN_INT32: return (range){INT32_MIN, INT32_MAX};
  case PLN_INT64: return (range){INT64_MIN, INT64_MAX};
  default: return (range){1, 0};
  }
}

static bool has_integer_range(pln_dtype dtype) {
  range r = range_of(dtype);
  return r.low <= r.high;
}

static int64_t clip(double x, range r) {
  if (x <= (double)r.low)
    return r.low;
  return x >= (double)r.high ? r.high : (int64_t)x;
}

/* The integers of a uniform distribution: none when low > high. */
static range uniform_range(const pln_random_spec *spec, pln_dtype dtype) {
  range all = range_of(dtype);
  double low = ceil(spec->low), high = floor(spec->high);
  if (low > high || low > (double)all.high || high < (double)all.low)
    return (range){1, 0};
  return (range){clip(low, all), clip(high, all)};
}

static void random_integers(const pln_random_spec *spec, pln_dtype dtype,
                            uint64_t first, size_t n, int64_t *out) {
  if (spec->kind == PLN_RANDOM_NORMAL) {
    double sampled[BLOCK];
    random_normal(spec, first, n, sampled);
    for (size_t i = 0; i < n; i++)
      out[i] = clip(rint(sampled[i]), range_of(dtype));
    return;
  }
  uint64_t key = random_key_of(spec);
  range r = uniform_range(spec, dtype);
  uint64_t width = (uint64_t)r.high - (uint64_t)r.low + 1; /* 0: all 2^64 */
  for (size_t i = 0; i < n; i++) {
    uint64_t bits = bits_at(key, first + i);
    out[i] = (int64_t)((uint64_t)r.low + (width ? bits % width : bits));
  }
}

/* ------------------------------------------------------------------ storing */

static void store_packed(const int64_t *in, uint32_t bits, size_t first,
                         size_t n, uint8_t *out) {
  size_t per = 8 / bits;
  for (size_t i = 0; i < n; i++) {
    size_t at = first + i;
    unsigned shift = (unsigned)(at % per) * bits;
    unsigned element = (unsigned)in[i] & ((1u << bits) - 1);
    unsigned before = shift ? out[at / per] : 0;
    out[at / per] = (uint8_t)(before | element << shift);
  }
}

#define NARROW(bits)             \
  for (size_t i = 0; i < n; i++) \
  ((uint##bits##_t *)out)[first + i] = (uint##bits##_t)in[i]

static void store_integers(const int64_t *in, pln_dtype dtype, size_t first,
                           size_t n, void *out) {
  switch (pln_dtype_bits(dtype)) {
  case 8: NARROW(8); break;
  case 16: NARROW(16); break;
  case 32: NARROW(32); break;
  case 64: NARROW(64); break;
  default: store_packed(in, pln_dtype_bits(dtype), first, n, out);
  }
}

#undef NARROW

static void store_floats(const double *in, pln_dtype dtype, size_t first,
                         size_t n, void *out) {
  for (size_t i = 0; i < n; i++) {
    if (dtype == PLN_FLOAT32)
      ((float *)out)[first + i] = (float)in[i];
    else if (dtype == PLN_FLOAT64)
      ((double *)out)[first + i] = in[i];
    else if (dtype == PLN_FLOAT16)
      ((uint16_t *)out)[first + i] = pln_float_to_half((float)in[i]);
    else
      ((uint16_t *)out)[first + i] = pln_float_to_bfloat((float)in[i]);
  }
}

void pln_random_fill(const pln_random_spec *spec, pln_dtype dtype,
                     uint64_t first, size_t count, void *out) {
  union {
    double floats[BLOCK];
    int64_t integers[BLOCK];
  } block;
  for (size_t at = 0; at < count; at += BLOCK) {
    size_t n = count - at < BLOCK ? count - at : BLOCK;
    if (has_integer_range(dtype)) {
      random_integers(spec, dtype, first + at, n, block.integers);
      store_integers(block.integers, dtype, at, n, out);
    } else {
      random_element(spec, first + at, n, block.floats);
      store_floats(block.floats, dtype, at, n, out);
    }
  }
}

/* ----------------------------------------------------------------- checking */

static pln_status check_uniform(pln_engine *engine, const pln_random_spec *spec,
                                pln_dtype dtype) {
  double low = spec->low, high = spec->high;
  if (!isfinite(high - low) || low > high)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "no numbers lie from %g to %g", low, high);
  range r = {0, 0};
  if (has_integer_range(dtype))
    r = uniform_range(spec, dtype);
  if (r.low > r.high)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "no %s lies from %g to %g", pln_dtype_name(dtype),
                          low, high);
  return PLN_OK;
}

pln_status pln_random_check(pln_engine *engine, const pln_random_spec *spec,
                            pln_dtype dtype) {
  if (!pln_dtype_is_float(dtype) && !has_integer_range(dtype))
    return pln_diag_error(engine, PLN_ERR_UNSUPPORTED, NULL,
                          "no random elements of dtype %s",
                          pln_dtype_name(dtype));
  if (spec->kind == PLN_RANDOM_UNIFORM)
    return check_uniform(engine, spec, dtype);
  if (!isfinite(spec->mean) || !isfinite(spec->deviation) ||
      spec->deviation < 0)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "no normal distribution has mean %g and deviation %g",
                          spec->mean, spec->deviation);
  return PLN_OK;
}

pln_status pln_tensor_random(pln_engine *engine, pln_dtype dtype, uint32_t rank,
                             const int64_t *dims, const pln_random_spec *spec,
                             pln_tensor **out) {
  pln_tensor *t;
  PLN_TRY(pln_random_check(engine, spec, dtype));
  PLN_TRY(pln_tensor_unset(engine, dtype, rank, dims, &t));
  pln_random_fill(spec, dtype, 0, t->count, (void *)t->data);
  *out = t;
  return PLN_OK;
}
