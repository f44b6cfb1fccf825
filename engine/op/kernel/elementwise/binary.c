/* binary.c: arithmetic on two or more operands, with broadcasting. Called
 * through ops.def.
 *
 * Integers wrap. Division by zero, and of the least integer by -1, is refused.
 * Folding also refuses shifts past the width and integers to negative powers; a
 * run gives what ONNX Runtime gives. minimum and maximum give NaN if an operand
 * is NaN. */

#include <math.h>

#include "op/kernel/composed.h"
#include "op/kernel/element.h"
#include "op/kernel/elementwise/elementwise.h"

/* Unsigned arithmetic is defined; the cast back wraps. */
#define INT_ADD(T, x, y) ((T)((uint64_t)(x) + (uint64_t)(y)))
#define INT_SUB(T, x, y) ((T)((uint64_t)(x) - (uint64_t)(y)))
#define INT_MUL(T, x, y) ((T)((uint64_t)(x) * (uint64_t)(y)))
#define INT_MAX_OF(T, x, y) ((x) > (y) ? (x) : (y))
#define INT_MIN_OF(T, x, y) ((x) < (y) ? (x) : (y))
#define INT_AND(T, x, y) ((x) & (y))
#define INT_OR(T, x, y) ((x) | (y))
#define INT_XOR(T, x, y) ((x) ^ (y))
#define FLOAT_ADD(T, x, y) ((x) + (y))
#define FLOAT_SUB(T, x, y) ((x) - (y))
#define FLOAT_MUL(T, x, y) ((x) * (y))
#define FLOAT_DIV(T, x, y) ((x) / (y))
#define FLOAT_MAX_OF(T, x, y) ((x) > (y) || (x) != (x) ? (x) : (y))
#define FLOAT_MIN_OF(T, x, y) ((x) < (y) || (x) != (x) ? (x) : (y))

#define ADD_LOOP(D, T) PLN_MULTIVERSION PLN_PAIR_LOOP(add, D, T, T, INT_ADD)
#define SUB_LOOP(D, T) PLN_MULTIVERSION PLN_PAIR_LOOP(sub, D, T, T, INT_SUB)
#define MUL_LOOP(D, T) PLN_MULTIVERSION PLN_PAIR_LOOP(mul, D, T, T, INT_MUL)
#define MAX_LOOP(D, T) PLN_MULTIVERSION PLN_PAIR_LOOP(max, D, T, T, INT_MAX_OF)
#define MIN_LOOP(D, T) PLN_MULTIVERSION PLN_PAIR_LOOP(min, D, T, T, INT_MIN_OF)
#define AND_LOOP(D, T) PLN_PAIR_LOOP(and, D, T, T, INT_AND)
#define OR_LOOP(D, T) PLN_PAIR_LOOP(or, D, T, T, INT_OR)
#define XOR_LOOP(D, T) PLN_PAIR_LOOP(xor, D, T, T, INT_XOR)
PLN_INT_TYPES(ADD_LOOP)
PLN_INT_TYPES(SUB_LOOP)
PLN_INT_TYPES(MUL_LOOP)
PLN_INT_TYPES(MAX_LOOP)
PLN_INT_TYPES(MIN_LOOP)
PLN_INT_TYPES(AND_LOOP)
PLN_INT_TYPES(OR_LOOP)
PLN_INT_TYPES(XOR_LOOP)
/* Booleans are integers of one bit, as in TVM. */
PLN_PAIR_LOOP(add, BOOL, uint8_t, uint8_t, INT_XOR)
PLN_PAIR_LOOP(sub, BOOL, uint8_t, uint8_t, INT_XOR)
PLN_PAIR_LOOP(mul, BOOL, uint8_t, uint8_t, INT_AND)
PLN_PAIR_LOOP(max, BOOL, uint8_t, uint8_t, INT_OR)
PLN_PAIR_LOOP(min, BOOL, uint8_t, uint8_t, INT_AND)
#define ADD_FLOATS(D, T) PLN_MULTIVERSION PLN_PAIR_LOOP(add, D, T, T, FLOAT_ADD)
#define SUB_FLOATS(D, T) PLN_MULTIVERSION PLN_PAIR_LOOP(sub, D, T, T, FLOAT_SUB)
#define MUL_FLOATS(D, T) PLN_MULTIVERSION PLN_PAIR_LOOP(mul, D, T, T, FLOAT_MUL)
#define DIV_FLOATS(D, T) PLN_MULTIVERSION PLN_PAIR_LOOP(div, D, T, T, FLOAT_DIV)
#define MAX_FLOATS(D, T) \
  PLN_MULTIVERSION PLN_PAIR_LOOP(max, D, T, T, FLOAT_MAX_OF)
#define MIN_FLOATS(D, T) \
  PLN_MULTIVERSION PLN_PAIR_LOOP(min, D, T, T, FLOAT_MIN_OF)
PLN_FLOAT_TYPES(ADD_FLOATS)
PLN_FLOAT_TYPES(SUB_FLOATS)
PLN_FLOAT_TYPES(MUL_FLOATS)
PLN_FLOAT_TYPES(DIV_FLOATS)
PLN_FLOAT_TYPES(MAX_FLOATS)
PLN_FLOAT_TYPES(MIN_FLOATS)

/* --------------------------------------------------- division and remainder */

/* The least signed integer: the sign bit alone. */
#define LEAST(T) ((T)((uint64_t)1 << (8 * sizeof(T) - 1)))
#define SIGNED_DIVISION(D, T)                                         \
  static bool divide_one_##D(T x, T y, T *out) {                      \
    if (y == 0 || (y == -1 && x == LEAST(T)))                         \
      return false;                                                   \
    *out = (T)(x / y);                                                \
    return true;                                                      \
  }                                                                   \
  static bool floormod_one_##D(T x, T y, T *out) {                    \
    if (y == 0)                                                       \
      return false;                                                   \
    T rest = (T)(y == -1 ? 0 : x % y);                                \
    *out = (T)(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest); \
    return true;                                                      \
  }                                                                   \
  static bool truncmod_one_##D(T x, T y, T *out) {                    \
    if (y == 0)                                                       \
      return false;                                                   \
    *out = (T)(y == -1 ? 0 : x % y);                                  \
    return true;                                                      \
  }
#define UNSIGNED_DIVISION(D, T)                    \
  static bool divide_one_##D(T x, T y, T *out) {   \
    if (y == 0)                                    \
      return false;                                \
    *out = (T)(x / y);                             \
    return true;                                   \
  }                                                \
  static bool floormod_one_##D(T x, T y, T *out) { \
    if (y == 0)                                    \
      return false;                                \
    *out = (T)(x % y);                             \
    return true;                                   \
  }                                                \
  static bool truncmod_one_##D(T x, T y, T *out) { \
    return floormod_one_##D(x, y, out);            \
  }
PLN_SIGNED_TYPES(SIGNED_DIVISION)
PLN_UNSIGNED_TYPES(UNSIGNED_DIVISION)
#define DIV_LOOP(D, T) PLN_PAIR_CHECKED(div, D, T, divide_one_##D)
#define MOD_LOOP(D, T) PLN_PAIR_CHECKED(mod, D, T, floormod_one_##D)
#define FMOD_LOOP(D, T) PLN_PAIR_CHECKED(fmod, D, T, truncmod_one_##D)
PLN_INT_TYPES(DIV_LOOP)
PLN_INT_TYPES(MOD_LOOP)
PLN_INT_TYPES(FMOD_LOOP)

#define FLOAT_FMOD(T, x, y) fmod((double)(x), (double)(y))
#define FMOD_FLOATS(D, T) PLN_PAIR_LOOP(fmod, D, T, T, FLOAT_FMOD)
PLN_FLOAT_TYPES(FMOD_FLOATS)

/* Floats without fmod=1: the sign of the divisor. */
static double floored_mod(double x, double y) {
  double rest = fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
#define FLOAT_MOD(T, x, y) floored_mod((double)(x), (double)(y))
#define MOD_FLOATS(D, T) PLN_PAIR_LOOP(mod, D, T, T, FLOAT_MOD)
PLN_FLOAT_TYPES(MOD_FLOATS)

/* The quotient, decremented if truncation rounded up. */
#define FLOOR_DIVISION(D, T)                               \
  static bool floordiv_one_##D(T x, T y, T *out) {         \
    if (!divide_one_##D(x, y, out))                        \
      return false;                                        \
    *out = (T)(*out - (x % y != 0 && (x < 0) != (y < 0))); \
    return true;                                           \
  }                                                        \
  PLN_PAIR_CHECKED(floordiv, D, T, floordiv_one_##D)
#define FLOOR_UNSIGNED(D, T) PLN_PAIR_CHECKED(floordiv, D, T, divide_one_##D)
PLN_SIGNED_TYPES(FLOOR_DIVISION)
PLN_UNSIGNED_TYPES(FLOOR_UNSIGNED)
#define FLOAT_FLOORED(T, x, y) floor((double)((x) / (y)))
#define FLOAT_TRUNCATE(T, x, y) trunc((double)((x) / (y)))
#define FLOOR_FLOATS(D, T) PLN_PAIR_LOOP(floordiv, D, T, T, FLOAT_FLOORED)
#define TRUNC_FLOATS(D, T) PLN_PAIR_LOOP(truncdiv, D, T, T, FLOAT_TRUNCATE)
PLN_FLOAT_TYPES(FLOOR_FLOATS)
PLN_FLOAT_TYPES(TRUNC_FLOATS)

/* ------------------------------------------------------------------- shifts */

/* A right shift keeps the sign. A shift by the width or more gives 0 or -1. */
#define SHIFTS(D, T)                             \
  static bool left_one_##D(T x, T by, T *out) {  \
    bool fits = (uint64_t)by < 8 * sizeof(T);    \
    *out = (T)(fits ? (uint64_t)x << by : 0);    \
    return fits;                                 \
  }                                              \
  static bool right_one_##D(T x, T by, T *out) { \
    bool fits = (uint64_t)by < 8 * sizeof(T);    \
    *out = (T)(x >> (fits ? by : 0));            \
    if (!fits)                                   \
      *out = (T)(x < 1 && x != 0 ? -1 : 0);      \
    return fits;                                 \
  }                                              \
  PLN_PAIR_CHECKED(left, D, T, left_one_##D)     \
  PLN_PAIR_CHECKED(right, D, T, right_one_##D)
PLN_INT_TYPES(SHIFTS)

/* ------------------------------------------------------------------- powers */

/* What the power of floats is when it is cast: 1, -1, 0 and infinity. */
#define NEGATIVE_POWER(T, x, y)           \
  ((x) == (T)1    ? (T)1                  \
   : (x) == (T)-1 ? (T)((y) % 2 ? -1 : 1) \
   : (x) != 0     ? (T)0                  \
                  : (T)(sizeof(T) < 8 ? INT32_MIN : INT64_MIN))
#define INT_POWER(D, T)                                      \
  static bool power_one_##D(T x, T y, T *out) {              \
    uint64_t base = (uint64_t)x, result = 1, left;           \
    *out = NEGATIVE_POWER(T, x, y);                          \
    if (y < 1 && y != 0)                                     \
      return false;                                          \
    for (left = (uint64_t)y; left; left >>= 1, base *= base) \
      result *= left & 1 ? base : 1;                         \
    *out = (T)result;                                        \
    return true;                                             \
  }                                                          \
  PLN_PAIR_CHECKED(power, D, T, power_one_##D)
PLN_INT_TYPES(INT_POWER)

/* Fast paths for the most common exponents. The root of -0 is 0 here, and that
 * of -inf is inf. */
#define HALF_POWER(T, x, y) \
  ((x) == -(T)INFINITY ? (T)INFINITY : root_##T(x) + 0)
#define FLOAT_SQUARE(T, x, y) ((x) * (x))
#define FLOAT_CUBE(T, x, y) ((double)(x) * (double)(x) * (double)(x))
#define POW_FLOAT32(T, x, y) powf(x, y)
#define POW_FLOAT64(T, x, y) pow(x, y)
static float root_float(float x) {
  return sqrtf(x);
}
static double root_double(double x) {
  return sqrt(x);
}
PLN_PAIR_LOOP(half_power, FLOAT32, float, float, HALF_POWER)
PLN_PAIR_LOOP(half_power, FLOAT64, double, double, HALF_POWER)
PLN_PAIR_LOOP(square, FLOAT32, float, float, FLOAT_SQUARE)
PLN_PAIR_LOOP(square, FLOAT64, double, double, FLOAT_SQUARE)
PLN_PAIR_LOOP(cube, FLOAT32, float, float, FLOAT_CUBE)
PLN_PAIR_LOOP(pow, FLOAT32, float, float, POW_FLOAT32)
PLN_PAIR_LOOP(pow, FLOAT64, double, double, POW_FLOAT64)

static bool power_FLOAT32(void *out, const void *a, const void *b, size_t n,
                          pln_run run) {
  float exponent = run == PLN_RUN_B_ONE ? *(const float *)b : 0;
  pln_pair_loop loop = exponent == 2      ? square_FLOAT32
                       : exponent == 3    ? cube_FLOAT32
                       : exponent == 0.5f ? half_power_FLOAT32
                                          : pow_FLOAT32;
  return loop(out, a, b, n, run);
}

/* No fast cube for doubles: it would round twice. */
static bool power_FLOAT64(void *out, const void *a, const void *b, size_t n,
                          pln_run run) {
  double exponent = run == PLN_RUN_B_ONE ? *(const double *)b : 0;
  pln_pair_loop loop = exponent == 2     ? square_FLOAT64
                       : exponent == 0.5 ? half_power_FLOAT64
                                         : pow_FLOAT64;
  return loop(out, a, b, n, run);
}

/* ------------------------------------------------------------------ kernels */

#define ROW(name, D) [PLN_##D] = name##_##D
#define SIGNED(name) \
  ROW(name, INT8), ROW(name, INT16), ROW(name, INT32), ROW(name, INT64)
#define UNSIGNED(name) \
  ROW(name, UINT8), ROW(name, UINT16), ROW(name, UINT32), ROW(name, UINT64)
#define INTS(name) SIGNED(name), UNSIGNED(name)
#define FLOATS(name) ROW(name, FLOAT32), ROW(name, FLOAT64)

static const pln_pair_loops adds = {
    .of = {INTS(add), FLOATS(add), ROW(add, BOOL)}};
static const pln_pair_loops subs = {
    .of = {INTS(sub), FLOATS(sub), ROW(sub, BOOL)}};
static const pln_pair_loops muls = {
    .of = {INTS(mul), FLOATS(mul), ROW(mul, BOOL)}};
static const pln_pair_loops divs = {.of = {INTS(div), FLOATS(div)}};
static const pln_pair_loops mods = {.of = {INTS(mod), FLOATS(mod)}};
static const pln_pair_loops fmods = {.of = {INTS(fmod), FLOATS(fmod)}};
static const pln_pair_loops maxs = {
    .of = {INTS(max), FLOATS(max), ROW(max, BOOL)}};
static const pln_pair_loops mins = {
    .of = {INTS(min), FLOATS(min), ROW(min, BOOL)}};
static const pln_pair_loops ands = {.of = {INTS(and)}};
static const pln_pair_loops ors = {.of = {INTS(or)}};
static const pln_pair_loops xors = {.of = {INTS(xor)}};
static const pln_pair_loops floordivs = {
    .of = {INTS(floordiv), FLOATS(floordiv)}};
static const pln_pair_loops truncdivs = {.of = {INTS(div), FLOATS(truncdiv)}};
static const pln_pair_loops lefts = {.of = {INTS(left)}, .goes_on = true};
static const pln_pair_loops rights = {.of = {INTS(right)}, .goes_on = true};
static const pln_pair_loops powers = {.of = {INTS(power), FLOATS(power)},
                                      .goes_on = true};

#define PAIR_KERNEL(name, loops)                        \
  pln_status pln_kernel_##name(pln_kernel_call *call) { \
    return pln_pair_run(call, &loops);                  \
  }
PAIR_KERNEL(add, adds)
PAIR_KERNEL(subtract, subs)
PAIR_KERNEL(multiply, muls)
PAIR_KERNEL(divide, divs)
PAIR_KERNEL(floor_divide, floordivs)
PAIR_KERNEL(trunc_divide, truncdivs)
PAIR_KERNEL(floor_mod, mods)
PAIR_KERNEL(trunc_mod, fmods)
PAIR_KERNEL(left_shift, lefts)
PAIR_KERNEL(right_shift, rights)
PAIR_KERNEL(bitwise_and, ands)
PAIR_KERNEL(bitwise_or, ors)
PAIR_KERNEL(bitwise_xor, xors)

pln_status pln_kernel_mod(pln_kernel_call *call) {
  return pln_pair_run(call, pln_kernel_int(call, "fmod", 0) ? &fmods : &mods);
}

pln_status pln_kernel_bit_shift(pln_kernel_call *call) {
  if (pln_kernel_string_is(call, "direction", "", "LEFT"))
    return pln_pair_run(call, &lefts);
  if (pln_kernel_string_is(call, "direction", "", "RIGHT"))
    return pln_pair_run(call, &rights);
  return pln_kernel_refuse(call, "the direction is neither LEFT nor RIGHT");
}

pln_status pln_kernel_maximum(pln_kernel_call *call) {
  return pln_pairs_fold(call, &maxs, &call->results[0]);
}

pln_status pln_kernel_minimum(pln_kernel_call *call) {
  return pln_pairs_fold(call, &mins, &call->results[0]);
}

pln_status pln_kernel_add_n(pln_kernel_call *call) {
  return pln_pairs_fold(call, &adds, &call->results[0]);
}

/* A scalar of a float dtype; false for other dtypes. */
static bool write_float(pln_dtype dtype, double value, void *out) {
  float single = (float)value;
  if (dtype == PLN_FLOAT32)
    memcpy(out, &single, sizeof single);
  else if (dtype == PLN_FLOAT64)
    memcpy(out, &value, sizeof value);
  else if (pln_dtype_is_half(dtype))
    pln_narrow(dtype, &single, out, 1);
  else
    return false;
  return true;
}

pln_status pln_kernel_mean_n(pln_kernel_call *call) {
  pln_tensor *sum = NULL, *count;
  PLN_TRY(pln_pairs_fold(call, &adds, &sum));
  pln_dtype dtype = (pln_dtype)sum->dtype;
  pln_status status = pln_tensor_new(call->engine, dtype, 0, NULL, &count);
  if (status == PLN_OK) {
    if (write_float(dtype, call->n_args, pln_tensor_writable(count)))
      status = pln_pair_compute(call, &divs, sum, count, &call->results[0]);
    else
      status = pln_kernel_no_dtype(call, dtype);
    pln_tensor_release(count);
  }
  pln_tensor_release(sum);
  return status;
}

/* ------------------------------------------------- powers of another dtype */

static bool number_at(const pln_tensor *t, size_t i, double *out) {
  float single;
  int64_t integer;
  if (t->dtype == PLN_FLOAT64) {
    memcpy(out, (const char *)t->data + 8 * i, 8);
    return true;
  }
  if (t->dtype == PLN_FLOAT32)
    memcpy(&single, (const char *)t->data + 4 * i, 4);
  else if (pln_dtype_is_half((pln_dtype)t->dtype))
    pln_widen((pln_dtype)t->dtype, (const char *)t->data + 2 * i, &single, 1);
  else {
    *out = pln_tensor_int(t, i, &integer) ? (double)integer : (double)NAN;
    return *out == *out;
  }
  *out = (double)single;
  return true;
}

/* Small non-negative integers fit every integer dtype. */
static bool write_exponent(pln_dtype dtype, double value, char *out) {
  if (write_float(dtype, value, out))
    return true;
  if (!(value >= 0 && value <= 127) || value != floor(value))
    return false;
  *out = (char)value; /* little-endian, zeroed */
  return true;
}

static pln_status convert_exponents(pln_kernel_call *call, pln_dtype dtype,
                                    const pln_tensor *in, pln_tensor **out) {
  PLN_TRY(pln_tensor_new(call->engine, dtype, in->rank, in->dims, out));
  char *to = pln_tensor_writable(*out);
  size_t size = pln_element_size(dtype);
  for (size_t i = 0; i < in->count; i++) {
    double value;
    if (size && number_at(in, i, &value) &&
        write_exponent(dtype, value, to + i * size))
      continue;
    pln_tensor_release(*out);
    return pln_kernel_undefined(call);
  }
  return PLN_OK;
}

/* An integer to a float power: computed in double, truncated towards zero. */
static pln_status power_of_integers(pln_kernel_call *call, const pln_tensor *a,
                                    const pln_tensor *b) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *power =
      pln_compose_binary(&s, PLN_OP_POW, pln_compose_cast(&s, a, PLN_FLOAT64),
                         pln_compose_cast(&s, b, PLN_FLOAT64));
  return pln_composition_finish(
      &s, pln_compose_cast(&s, power, (pln_dtype)a->dtype));
}

pln_status pln_kernel_power(pln_kernel_call *call) {
  const pln_tensor *a = pln_kernel_arg(call, 0), *b = pln_kernel_arg(call, 1);
  pln_tensor *converted;
  if (!a || !b || a->dtype == b->dtype)
    return pln_pair_run(call, &powers);
  if (!powers.of[a->dtype] && a->dtype != PLN_FLOAT16 &&
      a->dtype != PLN_BFLOAT16)
    return pln_kernel_no_dtype(call, (pln_dtype)a->dtype);
  if (powers.of[a->dtype] && !pln_is_float32_or_64(a) &&
      pln_dtype_is_float((pln_dtype)b->dtype))
    return power_of_integers(call, a, b);
  PLN_TRY(convert_exponents(call, (pln_dtype)a->dtype, b, &converted));
  pln_status status =
      pln_pair_compute(call, &powers, a, converted, &call->results[0]);
  pln_tensor_release(converted);
  return status;
}
