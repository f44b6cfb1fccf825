/* reduce_loops.c: see reduce_loops.h. Runs of floats are gathered in 16 lanes
 * of doubles, which are joined in pairs at the end. */

#include "op/reduce_loops.h"

#include <math.h>

#include "op/wide.h"

/* ------------------------------------------------------------------- floats */

enum { LANES = 8 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t masks __attribute__((vector_size(LANES * sizeof(int64_t))));
typedef float singles __attribute__((vector_size(LANES * sizeof(float))));

#define LANES_SUM(a, x) ((a) + (x))
#define LANES_ABS(a, x) ((a) + (lanes)((masks)(x)&INT64_MAX))
#define LANES_SQUARE(a, x) ((a) + (x) * (x))
#define LANES_PRODUCT(a, x) ((a) * (x))
#define ONE_SUM(a, x) ((a) + (x))
#define ONE_ABS(a, x) ((a) + fabs(x))
#define ONE_SQUARE(a, x) ((a) + (x) * (x))
#define ONE_PRODUCT(a, x) ((a) * (x))
#define ONE_GREATEST(a, x) (((a) >= (x)) | ((a) != (a)) ? (a) : (x))
#define ONE_SMALLEST(a, x) (((a) <= (x)) | ((a) != (a)) ? (a) : (x))
/* What two parts are joined with. */
#define JOIN_SUM(a, b) ((a) + (b))
#define JOIN_ABS(a, b) ((a) + (b))
#define JOIN_SQUARE(a, b) ((a) + (b))
#define JOIN_PRODUCT(a, b) ((a) * (b))

#define LOAD_float(v, from)                   \
  do {                                        \
    singles s_;                               \
    memcpy(&s_, (from), sizeof s_);           \
    (v) = __builtin_convertvector(s_, lanes); \
  } while (0)
#define LOAD_double(v, from) memcpy(&(v), (from), sizeof(v))

/* Four rows at a time, so that what is gathered is seldom stored. */
#define ROWS_LOOP(NAME, T)                                                     \
  PLN_WIDEST static void rows_##NAME##_##T(                                    \
      const void *in, size_t n, size_t rows, size_t step, pln_gathered *out) { \
    const T *restrict x = in;                                                  \
    double *restrict all = &out->number;                                       \
    size_t r = 0;                                                              \
    for (; r + 4 <= rows; r += 4, x += 4 * step)                               \
      for (size_t i = 0; i < n; i++) {                                         \
        double a = ONE_##NAME(all[i], (double)x[i]);                           \
        a = ONE_##NAME(a, (double)x[i + step]);                                \
        a = ONE_##NAME(a, (double)x[i + 2 * step]);                            \
        all[i] = ONE_##NAME(a, (double)x[i + 3 * step]);                       \
      }                                                                        \
    for (; r < rows; r++, x += step)                                           \
      for (size_t i = 0; i < n; i++)                                           \
        all[i] = ONE_##NAME(all[i], (double)x[i]);                             \
  }
#define TURNED(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#define SUM_LOOPS(NAME, T, start)                                              \
  PLN_WIDEST static void runs_##NAME##_##T(                                    \
      const void *in, size_t n, size_t rows, size_t step, pln_gathered *out) { \
    const T *x = in;                                                           \
    for (size_t r = 0; r < rows; r++, x += step) {                             \
      double all = out[r].number;                                              \
      lanes a = (lanes){0} + (start), b = a, y, z;                             \
      size_t i = 0;                                                            \
      for (; i + 2 * LANES <= n; i += 2 * LANES) {                             \
        LOAD_##T(y, x + i);                                                    \
        LOAD_##T(z, x + i + LANES);                                            \
        a = LANES_##NAME(a, y);                                                \
        b = LANES_##NAME(b, z);                                                \
      }                                                                        \
      if (i) {                                                                 \
        a = JOIN_##NAME(a, b);                                                 \
        a = JOIN_##NAME(a, TURNED(a, 4, 5, 6, 7, 0, 1, 2, 3));                 \
        a = JOIN_##NAME(a, TURNED(a, 2, 3, 0, 1, 6, 7, 4, 5));                 \
        a = JOIN_##NAME(a, TURNED(a, 1, 0, 3, 2, 5, 4, 7, 6));                 \
        all = JOIN_##NAME(all, a[0]);                                          \
      }                                                                        \
      for (; i < n; i++)                                                       \
        all = ONE_##NAME(all, (double)x[i]);                                   \
      out[r].number = all;                                                     \
    }                                                                          \
  }                                                                            \
  ROWS_LOOP(NAME, T)
/* The bits of a float as an integer that is ordered as floats are, and back.
 * NaN is noted apart. */
typedef int32_t bits_float;
typedef int64_t bits_double;
#define MOST_float INT32_MAX
#define MOST_double INT64_MAX
#define KEY(T, bits) ((bits) ^ ((bits) >> (8 * sizeof(T) - 1) & MOST_##T))
#define FIRST_GREATEST(T) (-MOST_##T - 1)
#define FIRST_SMALLEST(T) MOST_##T
#define BETTER_GREATEST(a, b) ((a) > (b) ? (a) : (b))
#define BETTER_SMALLEST(a, b) ((a) < (b) ? (a) : (b))
#define EXTREME_LOOPS(NAME, T, infinite)                                       \
  PLN_WIDEST static void runs_##NAME##_##T(                                    \
      const void *in, size_t n, size_t rows, size_t step, pln_gathered *out) { \
    const T *x = in;                                                           \
    for (size_t r = 0; r < rows; r++, x += step) {                             \
      bits_##T best = FIRST_##NAME(T), nan = 0;                                \
      T found;                                                                 \
      for (size_t i = 0; i < n; i++) {                                         \
        bits_##T bits;                                                         \
        memcpy(&bits, &x[i], sizeof bits);                                     \
        nan |= (bits & MOST_##T) > (infinite);                                 \
        best = BETTER_##NAME(best, KEY(T, bits));                              \
      }                                                                        \
      best = KEY(T, best);                                                     \
      memcpy(&found, &best, sizeof found);                                     \
      if (n)                                                                   \
        out[r].number =                                                        \
            ONE_##NAME(out[r].number, nan ? (double)NAN : (double)found);      \
    }                                                                          \
  }                                                                            \
  PLN_WIDEST static void rows_##NAME##_##T(                                    \
      const void *in, size_t n, size_t rows, size_t step, pln_gathered *out) { \
    const T *restrict x = in;                                                  \
    double *restrict all = &out->number;                                       \
    for (size_t r = 0; r < rows; r++, x += step)                               \
      for (size_t i = 0; i < n; i++)                                           \
        all[i] = ONE_##NAME(all[i], (double)x[i]);                             \
  }
#define FLOAT_GATHERS(T, infinite)     \
  SUM_LOOPS(SUM, T, 0)                 \
  SUM_LOOPS(ABS, T, 0)                 \
  SUM_LOOPS(SQUARE, T, 0)              \
  SUM_LOOPS(PRODUCT, T, 1)             \
  EXTREME_LOOPS(GREATEST, T, infinite) \
  EXTREME_LOOPS(SMALLEST, T, infinite)
FLOAT_GATHERS(float, 0x7f800000)
FLOAT_GATHERS(double, 0x7ff0000000000000)

/* ----------------------------------------------------------------- integers */

#define INT_SUM(T, a, x) ((a) + (uint64_t)(x))
#define INT_ABS(T, a, x) ((a) + ((x) < 1 ? 0 - (uint64_t)(x) : (uint64_t)(x)))
#define INT_SQUARE(T, a, x) ((a) + (uint64_t)(x) * (uint64_t)(x))
#define INT_PRODUCT(T, a, x) ((a) * (uint64_t)(x))
#define INT_GREATEST(T, a, x) ((T)(a) >= (x) ? (a) : (uint64_t)(x))
#define INT_SMALLEST(T, a, x) ((T)(a) <= (x) ? (a) : (uint64_t)(x))

#define INT_LOOPS(NAME, T)                                             \
  static void runs_##NAME##_##T(const void *in, size_t n, size_t rows, \
                                size_t step, pln_gathered *out) {      \
    const T *x = in;                                                   \
    for (size_t r = 0; r < rows; r++, x += step) {                     \
      uint64_t all = out[r].bits;                                      \
      for (size_t i = 0; i < n; i++)                                   \
        all = INT_##NAME(T, all, x[i]);                                \
      out[r].bits = all;                                               \
    }                                                                  \
  }                                                                    \
  static void rows_##NAME##_##T(const void *in, size_t n, size_t rows, \
                                size_t step, pln_gathered *out) {      \
    const T *restrict x = in;                                          \
    uint64_t *restrict all = &out->bits;                               \
    for (size_t r = 0; r < rows; r++, x += step)                       \
      for (size_t i = 0; i < n; i++)                                   \
        all[i] = INT_##NAME(T, all[i], x[i]);                          \
  }
#define INT_GATHERS(T)   \
  INT_LOOPS(SUM, T)      \
  INT_LOOPS(ABS, T)      \
  INT_LOOPS(SQUARE, T)   \
  INT_LOOPS(PRODUCT, T)  \
  INT_LOOPS(GREATEST, T) \
  INT_LOOPS(SMALLEST, T)
INT_GATHERS(int64_t)
INT_GATHERS(uint64_t)

/* ------------------------------------------------------------------- tables */

#define ROW(NAME, T, member, start_of) \
  [PLN_GATHER_##                       \
      NAME] = {runs_##NAME##_##T, rows_##NAME##_##T, {.member = (start_of)}}
#define ROWS(T, member, least, greatest)                                       \
  {                                                                            \
    ROW(SUM, T, member, 0), ROW(ABS, T, member, 0), ROW(SQUARE, T, member, 0), \
        ROW(PRODUCT, T, member, 1), ROW(GREATEST, T, member, least),           \
        ROW(SMALLEST, T, member, greatest)                                     \
  }

const pln_gather_loops *pln_gather_find(pln_gather gather, pln_dtype dtype) {
  static const pln_gather_loops singles_of[PLN_N_GATHERS] =
      ROWS(float, number, -INFINITY, INFINITY);
  static const pln_gather_loops doubles_of[PLN_N_GATHERS] =
      ROWS(double, number, -INFINITY, INFINITY);
  static const pln_gather_loops signed_of[PLN_N_GATHERS] =
      ROWS(int64_t, bits, (uint64_t)INT64_MIN, INT64_MAX);
  static const pln_gather_loops unsigned_of[PLN_N_GATHERS] =
      ROWS(uint64_t, bits, 0, UINT64_MAX);
  if (dtype == PLN_FLOAT32)
    return &singles_of[gather];
  if (dtype == PLN_FLOAT64)
    return &doubles_of[gather];
  return dtype == PLN_UINT64 ? &unsigned_of[gather] : &signed_of[gather];
}
