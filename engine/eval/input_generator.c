/* input_generator.c: generates inputs for comparing two functions.
 *
 * Called by pl.check. Numbers are uniform over a small range; one in eight is a
 * value that often reveals errors: zeros of both signs, infinities, NaN, the
 * limits of an integer's range. Invariant: equal seeds give equal tensors, on
 * every machine, for every dtype. */

#include <math.h>

#include "ir/tensor/tensor.h"
#include "op/kernel/elementwise/small_float.h"

/* Floats are so small that sums and products of a few do not overflow: a
 * correct rewrite may change the order of computation and with it the
 * overflow. */
typedef struct value_choices {
  double low, high;          /* range of the uniform floats */
  int64_t least, most;       /* range of the integers, the minimum for signed
                              * dtypes */
  uint32_t n_floats, n_ints; /* number of special values */
  double floats[8];
  int64_t ints[4]; /* INT64_MIN and INT64_MAX: the dtype's own limits */
} value_choices;

static const value_choices palettes[PLN_N_GENERATOR_KINDS] = {
    [PLN_GENERATE_ORDINARY] = {.low = -2,
                               .high = 2,
                               .least = -2, /* also valid as indices into an
                                             * axis of size 2 */
                               .most = 1,
                               .n_floats = 6,
                               .n_ints = 1,
                               .floats = {0.0, -0.0, 1, -1, 0.5, 4},
                               .ints = {0}},
    [PLN_GENERATE_SMALL] = {.low = -1,
                            .high = 1,
                            .least = 0,
                            .most = 1,
                            .n_floats = 2,
                            .n_ints = 1,
                            .floats = {0.0, 1},
                            .ints = {0}},
    [PLN_GENERATE_SPECIAL] = {
        .low = -10,
        .high = 10,
        .least = -8,
        .most = 7,
        .n_floats = 8,
        .n_ints = 4,
        .floats = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e9, -1e9, 1e-40},
        .ints = {0, -1, INT64_MIN, INT64_MAX}}};

typedef struct input_generation {
  const value_choices *colours;
  pln_dtype dtype;
  uint8_t *data;
  uint64_t seed;
} input_generation;

static uint64_t bits_at(const input_generation *s, size_t i) {
  return pln_hash_mix(pln_hash_mix(s->seed, (uint64_t)s->dtype), i);
}

/* ----------------------------------------------------------------- storing */

static void store_bits(uint32_t bits, uint8_t *data, size_t i, uint64_t v) {
  if (bits >= 8) {
    memcpy(data + i * (bits / 8), &v, bits / 8); /* little-endian */
    return;
  }
  size_t per = 8 / bits;
  unsigned shift = (unsigned)(i % per) * bits, mask = (1u << bits) - 1;
  unsigned rest = data[i / per] & ~(mask << shift);
  data[i / per] = (uint8_t)(rest | ((unsigned)v & mask) << shift);
}

/* A power of two or NaN, the only values of the dtype. */
static uint8_t e8m0(double x) {
  uint8_t bits = 255;
  return pln_double_to_e8m0(fabs(x), PLN_E8M0_NEAREST, true, &bits) ? bits
                                                                    : 255;
}

static uint64_t float_bits(pln_dtype dtype, double x) {
  float f = (float)x;
  uint32_t single;
  uint64_t wide;
  memcpy(&single, &f, sizeof single);
  memcpy(&wide, &x, sizeof wide);
  switch (dtype) {
  case PLN_FLOAT16: return pln_float_to_half(f);
  case PLN_BFLOAT16: return pln_float_to_bfloat(f);
  case PLN_FLOAT32:
  case PLN_COMPLEX64: return single;
  case PLN_FLOAT64:
  case PLN_COMPLEX128: return wide;
  case PLN_FLOAT8_E8M0FNU: return e8m0(x);
  default: return pln_double_to_small(dtype, x, true);
  }
}

static bool is_complex(pln_dtype dtype) {
  return dtype == PLN_COMPLEX64 || dtype == PLN_COMPLEX128;
}

static bool is_any_float(pln_dtype dtype) {
  return pln_dtype_is_float(dtype) || is_complex(dtype) ||
         pln_is_small_float(dtype);
}

/* ----------------------------------------------------------------- drawing */

static double random_float(const value_choices *p, uint64_t bits) {
  uint64_t rest = bits >> 11;
  if ((bits & 7) == 0)
    return p->floats[rest % p->n_floats];
  return p->low + (double)rest * 0x1p-53 * (p->high - p->low);
}

static bool is_signed(pln_dtype dtype) {
  return dtype == PLN_INT8 || dtype == PLN_INT16 || dtype == PLN_INT32 ||
         dtype == PLN_INT64 || dtype == PLN_INT4 || dtype == PLN_INT2;
}

/* Replaces INT64_MIN and INT64_MAX by the dtype's limits, in two's
 * complement. */
static uint64_t own_limit(pln_dtype dtype, int64_t v) {
  uint32_t bits = pln_dtype_bits(dtype);
  uint64_t top = (uint64_t)1 << (bits - 1);
  if (v == INT64_MIN)
    return is_signed(dtype) ? top : 0;
  if (v == INT64_MAX)
    return is_signed(dtype) ? top - 1 : top | (top - 1);
  return (uint64_t)v;
}

static uint64_t random_int(const value_choices *p, pln_dtype dtype,
                           uint64_t bits) {
  uint64_t rest = bits >> 11;
  if (dtype == PLN_BOOL)
    return rest & 1;
  if ((bits & 7) == 0)
    return own_limit(dtype, p->ints[rest % p->n_ints]);
  int64_t least = is_signed(dtype) ? p->least : 0;
  return (uint64_t)least + rest % (uint64_t)(p->most - least + 1);
}

static void fill_floats(const input_generation *s, size_t count) {
  uint32_t bits = pln_dtype_bits(s->dtype);
  if (is_complex(s->dtype)) {
    count *= 2;
    bits /= 2;
  }
  for (size_t i = 0; i < count; i++)
    store_bits(bits, s->data, i,
               float_bits(s->dtype, random_float(s->colours, bits_at(s, i))));
}

static void fill_ints(const input_generation *s, size_t count) {
  uint32_t bits = pln_dtype_bits(s->dtype);
  for (size_t i = 0; i < count; i++)
    store_bits(bits, s->data, i,
               random_int(s->colours, s->dtype, bits_at(s, i)));
}

static pln_status random_strings(pln_engine *engine, uint32_t rank,
                                 const int64_t *dims, input_generation *s,
                                 pln_tensor **out) {
  static const char *const words[] = {"", "a", "b", "A", "a b", "12", "-1.5"};
  size_t count, bytes;
  if (pln_tensor_size(PLN_STRING, rank, dims, &count, &bytes) != PLN_OK)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL, "too many elements");
  pln_slice *strings = pln_mem_new(engine, count * sizeof *strings);
  if (!strings && count)
    return pln_nomem(engine);
  for (size_t i = 0; i < count; i++)
    strings[i] = pln_text(words[(bits_at(s, i) >> 11) % PLN_COUNT(words)]);
  pln_status status = pln_tensor_from_bytes(
      engine, PLN_STRING, rank, dims, strings, count * sizeof *strings, out);
  pln_mem_free(engine, strings, count * sizeof *strings);
  return status;
}

pln_status pln_tensor_generate(pln_engine *engine, pln_dtype dtype,
                               uint32_t rank, const int64_t *dims,
                               pln_generator_kind kind, uint64_t seed,
                               pln_tensor **out) {
  if ((unsigned)kind >= PLN_N_GENERATOR_KINDS)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "there is no such kind of sample");
  input_generation s = {
      .colours = &palettes[kind], .dtype = dtype, .seed = seed};
  if (dtype == PLN_STRING)
    return random_strings(engine, rank, dims, &s, out);
  PLN_TRY(pln_tensor_new(engine, dtype, rank, dims, out));
  s.data = pln_tensor_writable(*out);
  if (is_any_float(dtype))
    fill_floats(&s, (*out)->count);
  else
    fill_ints(&s, (*out)->count);
  return PLN_OK;
}
