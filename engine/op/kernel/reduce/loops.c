/* loops.c: see loops.h. Sums of contiguous floats use 32 lanes of doubles,
 * which are added in pairs at the end. Plain float32 sums are first added 32 at
 * a time in float32, because converting to double costs more than reading
 * memory; sums of rows are, 8 rows at a time. */

#include "op/kernel/reduce/loops.h"

#include <float.h>
#include <math.h>

#include "op/kernel/multiversion.h"

/* --------------------------------------------------------- sums and products
 */

/* 32 lanes, in vectors of 4 doubles or, with AVX-512, of 8. Both do the same
 * lane by lane and give the same bits. Two versions are needed because GCC 12
 * spills vectors wider than the machine's. */
typedef double lanes4 __attribute__((vector_size(32)));
typedef double lanes8 __attribute__((vector_size(64)));
typedef double lanes16 __attribute__((vector_size(128)));
typedef float floats_8 __attribute__((vector_size(32)));
typedef float floats16 __attribute__((vector_size(64)));
typedef int64_t masks4 __attribute__((vector_size(32)));
typedef int64_t masks8 __attribute__((vector_size(64)));

#define LANES_SUM(N, a, x) ((a) + (x))
#define LANES_ABS(N, a, x) ((a) + (lanes##N)((masks##N)(x)&INT64_MAX))
#define LANES_SQUARE(N, a, x) ((a) + (x) * (x))
#define LANES_PRODUCT(N, a, x) ((a) * (x))
#define ONE_SUM(a, x) ((a) + (x))
#define ONE_ABS(a, x) ((a) + fabs(x))
#define ONE_SQUARE(a, x) ((a) + (x) * (x))
#define ONE_PRODUCT(a, x) ((a) * (x))
#define ONE_GREATEST(a, x) ((((a) >= (x)) | ((a) != (a))) ? (a) : (x))
#define ONE_SMALLEST(a, x) ((((a) <= (x)) | ((a) != (a))) ? (a) : (x))
/* Combines two partial results. */
#define MERGE_SUM(a, b) ((a) + (b))
#define MERGE_ABS(a, b) ((a) + (b))
#define MERGE_SQUARE(a, b) ((a) + (b))
#define MERGE_PRODUCT(a, b) ((a) * (b))

#define SHUFFLE(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)

/* Converts the next 16 elements to double; more do not fit the registers that
 * GCC uses. */
#define CONVERTED_float(from)     \
  floats16 s_;                    \
  memcpy(&s_, (from), sizeof s_); \
  const lanes16 t_ = __builtin_convertvector(s_, lanes16)
#define CONVERTED_double(from) \
  lanes16 t_;                  \
  memcpy(&t_, (from), sizeof t_)
#define TAKE4(NAME, T, from, a, b, c, d)                 \
  do {                                                   \
    CONVERTED_##T(from);                                 \
    a = LANES_##NAME(4, a, SHUFFLE(t_, 0, 1, 2, 3));     \
    b = LANES_##NAME(4, b, SHUFFLE(t_, 4, 5, 6, 7));     \
    c = LANES_##NAME(4, c, SHUFFLE(t_, 8, 9, 10, 11));   \
    d = LANES_##NAME(4, d, SHUFFLE(t_, 12, 13, 14, 15)); \
  } while (0)
#define TAKE8(NAME, T, from, a, b)                                     \
  do {                                                                 \
    CONVERTED_##T(from);                                               \
    a = LANES_##NAME(8, a, SHUFFLE(t_, 0, 1, 2, 3, 4, 5, 6, 7));       \
    b = LANES_##NAME(8, b, SHUFFLE(t_, 8, 9, 10, 11, 12, 13, 14, 15)); \
  } while (0)

/* Strips of 64 elements are added elementwise, MAX_STRIPS at a time, then the
 * 64 sums four by four, which gives 16 for the lanes. */
enum { STRIP = 64, MAX_STRIPS = 8 };
#define LOAD(to, from) memcpy(&(to), (from), sizeof(to))
#define LOAD8(k) LOAD(p##k, x + i + 8 * k)
#define ADD8(k) (LOAD(q, x + i + 8 * k), p##k += q)
/* Half of a vector of 8 floats, in double. */
#define HALF(v, ...) \
  __builtin_convertvector(__builtin_shufflevector(v, v, __VA_ARGS__), lanes4)
#define STRIPS4_FLOAT                                        \
  while (i + STRIP <= n) {                                   \
    floats_8 p0, p1, p2, p3, p4, p5, p6, p7, q;              \
    LOAD8(0), LOAD8(1), LOAD8(2), LOAD8(3);                  \
    LOAD8(4), LOAD8(5), LOAD8(6), LOAD8(7);                  \
    i += STRIP;                                              \
    for (int j = 1; j < MAX_STRIPS && i + STRIP <= n; j++) { \
      ADD8(0), ADD8(1), ADD8(2), ADD8(3);                    \
      ADD8(4), ADD8(5), ADD8(6), ADD8(7);                    \
      i += STRIP;                                            \
    }                                                        \
    p0 = (p0 + p2) + (p4 + p6);                              \
    p1 = (p1 + p3) + (p5 + p7);                              \
    a += HALF(p0, 0, 1, 2, 3);                               \
    b += HALF(p0, 4, 5, 6, 7);                               \
    c += HALF(p1, 0, 1, 2, 3);                               \
    d += HALF(p1, 4, 5, 6, 7);                               \
  }
#define STRIPS8_FLOAT                                        \
  while (i + STRIP <= n) {                                   \
    floats16 p[4], q;                                        \
    for (int k = 0; k < 4; k++)                              \
      LOAD(p[k], x + i + 16 * k);                            \
    i += STRIP;                                              \
    for (int j = 1; j < MAX_STRIPS && i + STRIP <= n; j++) { \
      for (int k = 0; k < 4; k++) {                          \
        LOAD(q, x + i + 16 * k);                             \
        p[k] += q;                                           \
      }                                                      \
      i += STRIP;                                            \
    }                                                        \
    q = (p[0] + p[1]) + (p[2] + p[3]);                       \
    TAKE8(SUM, float, &q, a, b);                             \
  }
#define STRIPS4_NONE
#define STRIPS8_NONE

#define RUNS4(NAME, T, start, STRIPS)                             \
  PLN_MULTIVERSION static void runs_##NAME##_##T(                 \
      const void *in, size_t n, size_t rows, size_t step,         \
      pln_reduce_accumulator *out) {                              \
    const T *x = in;                                              \
    for (size_t r = 0; r < rows; r++, x += step) {                \
      double all = out[r].number;                                 \
      lanes4 a = (lanes4){0} + (start), b = a, c = a, d = a;      \
      lanes4 e = a, f = a, g = a, h = a;                          \
      size_t i = 0;                                               \
      STRIPS4_##STRIPS for (; i + 32 <= n; i += 32) {             \
        TAKE4(NAME, T, x + i, a, b, c, d);                        \
        TAKE4(NAME, T, x + i + 16, e, f, g, h);                   \
      }                                                           \
      if (i + 16 <= n) {                                          \
        TAKE4(NAME, T, x + i, a, b, c, d);                        \
        i += 16;                                                  \
      }                                                           \
      if (i) {                                                    \
        a = MERGE_##NAME(MERGE_##NAME(a, c), MERGE_##NAME(e, g)); \
        b = MERGE_##NAME(MERGE_##NAME(b, d), MERGE_##NAME(f, h)); \
        a = MERGE_##NAME(a, b);                                   \
        a = MERGE_##NAME(a, SHUFFLE(a, 2, 3, 0, 1));              \
        a = MERGE_##NAME(a, SHUFFLE(a, 1, 0, 3, 2));              \
        all = MERGE_##NAME(all, a[0]);                            \
      }                                                           \
      for (; i < n; i++)                                          \
        all = ONE_##NAME(all, (double)x[i]);                      \
      out[r].number = all;                                        \
    }                                                             \
  }

#if defined __x86_64__ && defined __GNUC__
#define RUNS8(NAME, T, start, STRIPS)                                        \
  __attribute__((target("avx512f,avx512vl,avx512dq"))) static void           \
      runs8_##NAME##_##T(const void *in, size_t n, size_t rows, size_t step, \
                         pln_reduce_accumulator *out) {                      \
    const T *x = in;                                                         \
    for (size_t r = 0; r < rows; r++, x += step) {                           \
      double all = out[r].number;                                            \
      lanes8 a = (lanes8){0} + (start), b = a, c = a, d = a;                 \
      size_t i = 0;                                                          \
      STRIPS8_##STRIPS for (; i + 32 <= n; i += 32) {                        \
        TAKE8(NAME, T, x + i, a, b);                                         \
        TAKE8(NAME, T, x + i + 16, c, d);                                    \
      }                                                                      \
      if (i + 16 <= n) {                                                     \
        TAKE8(NAME, T, x + i, a, b);                                         \
        i += 16;                                                             \
      }                                                                      \
      if (i) {                                                               \
        a = MERGE_##NAME(MERGE_##NAME(a, b), MERGE_##NAME(c, d));            \
        a = MERGE_##NAME(a, SHUFFLE(a, 4, 5, 6, 7, 0, 1, 2, 3));             \
        a = MERGE_##NAME(a, SHUFFLE(a, 2, 3, 0, 1, 6, 7, 4, 5));             \
        a = MERGE_##NAME(a, SHUFFLE(a, 1, 0, 3, 2, 5, 4, 7, 6));             \
        all = MERGE_##NAME(all, a[0]);                                       \
      }                                                                      \
      for (; i < n; i++)                                                     \
        all = ONE_##NAME(all, (double)x[i]);                                 \
      out[r].number = all;                                                   \
    }                                                                        \
  }
static bool has_512(void) {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
}
#else
#define RUNS8(NAME, T, start, STRIPS)
#endif

/* The sum of eight lanes, and of four more elements unless `rest` is NULL. */
static inline float add_short_lanes(const floats_8 *lanes, const float *rest) {
  float v[8];
  memcpy(v, lanes, sizeof v);
  for (int i = 0; i < 4; i++)
    v[i] += v[i + 4];
  for (int i = 0; i < 4 && rest; i++)
    v[i] += rest[i];
  return (v[0] + v[2]) + (v[1] + v[3]);
}

/* Four rows at a time, because a sum waits for the one before it. */
PLN_MULTIVERSION void pln_sum_short_runs(const void *in, size_t n, size_t rows,
                                         size_t step,
                                         pln_reduce_accumulator *all) {
  const float *x = in;
  size_t whole = n - n % 8, r = 0;
  for (; r + 4 <= rows; r += 4, x += 4 * step) {
    floats_8 a = {0}, b = a, c = a, d = a, q;
    const float *rest = whole < n ? x + whole : NULL;
    for (size_t i = 0; i < whole; i += 8) {
      LOAD(q, x + i), a += q;
      LOAD(q, x + i + step), b += q;
      LOAD(q, x + i + 2 * step), c += q;
      LOAD(q, x + i + 3 * step), d += q;
    }
    all[r].number += (double)add_short_lanes(&a, rest);
    all[r + 1].number += (double)add_short_lanes(&b, rest ? rest + step : rest);
    all[r + 2].number +=
        (double)add_short_lanes(&c, rest ? rest + 2 * step : rest);
    all[r + 3].number +=
        (double)add_short_lanes(&d, rest ? rest + 3 * step : rest);
  }
  for (; r < rows; r++, x += step) {
    floats_8 a = {0}, q;
    for (size_t i = 0; i < whole; i += 8)
      LOAD(q, x + i), a += q;
    all[r].number += (double)add_short_lanes(&a, whole < n ? x + whole : NULL);
  }
}

/* Four rows at a time, so that accumulators are stored less often. */
#define ROWS_LOOP(NAME, T)                                \
  PLN_MULTIVERSION_AVX512 static void rows_##NAME##_##T(  \
      const void *in, size_t n, size_t rows, size_t step, \
      pln_reduce_accumulator *out) {                      \
    const T *restrict x = in;                             \
    double *restrict all = &out->number;                  \
    size_t r = 0;                                         \
    for (; r + 4 <= rows; r += 4, x += 4 * step)          \
      for (size_t i = 0; i < n; i++) {                    \
        double a = ONE_##NAME(all[i], (double)x[i]);      \
        a = ONE_##NAME(a, (double)x[i + step]);           \
        a = ONE_##NAME(a, (double)x[i + 2 * step]);       \
        all[i] = ONE_##NAME(a, (double)x[i + 3 * step]);  \
      }                                                   \
    for (; r < rows; r++, x += step)                      \
      for (size_t i = 0; i < n; i++)                      \
        all[i] = ONE_##NAME(all[i], (double)x[i]);        \
  }
/* Float32: up to MAX_STRIPS rows are first added in float32. */
#define ROW_STRIPS(NAME, T)                               \
  PLN_MULTIVERSION_AVX512 static void rows_##NAME##_##T(  \
      const void *in, size_t n, size_t rows, size_t step, \
      pln_reduce_accumulator *out) {                      \
    const T *restrict x = in;                             \
    double *restrict all = &out->number;                  \
    size_t r = 0;                                         \
    for (; r + MAX_STRIPS <= rows; r += MAX_STRIPS) {     \
      for (size_t i = 0; i < n; i++) {                    \
        T a = x[i];                                       \
        for (size_t k = 1; k < MAX_STRIPS; k++)           \
          a = a + x[i + k * step];                        \
        all[i] += (double)a;                              \
      }                                                   \
      x += MAX_STRIPS * step;                             \
    }                                                     \
    for (size_t i = 0; i < n && r < rows; i++) {          \
      T a = x[i];                                         \
      for (size_t k = 1; k < rows - r; k++)               \
        a = a + x[i + k * step];                          \
      all[i] += (double)a;                                \
    }                                                     \
  }
#define ROWS_NONE(NAME, T) ROWS_LOOP(NAME, T)
#define ROWS_FLOAT(NAME, T) ROW_STRIPS(NAME, T)
#define SUM_LOOPS(NAME, T, start, STRIPS) \
  RUNS4(NAME, T, start, STRIPS)           \
  RUNS8(NAME, T, start, STRIPS)           \
  ROWS_##STRIPS(NAME, T)

/* ----------------------------------------------------------------- extremes */

/* Zeros of both signs compare equal: where the result is a zero, its sign is
 * looked for again, so that it does not depend on the order. NaN is recorded
 * separately. */
typedef int32_t bits_float;
typedef int64_t bits_double;
#define BETTER_GREATEST(a, x) ((x) > (a) ? (x) : (a))
#define BETTER_SMALLEST(a, x) ((x) < (a) ? (x) : (a))
#define FIRST_GREATEST (-INFINITY)
#define FIRST_SMALLEST INFINITY
/* The sign of the zero that is preferred. */
#define ZERO_GREATEST false
#define ZERO_SMALLEST true

#define ZERO_OF(T)                                               \
  static T zero_among_##T(const T *x, size_t n, bool negative) { \
    for (size_t i = 0; i < n; i++)                               \
      if (x[i] == 0 && (signbit(x[i]) != 0) == negative)         \
        return x[i];                                             \
    return negative ? 0 : -(T)0;                                 \
  }
ZERO_OF(float)
ZERO_OF(double)

/* clang begins a reduction with the largest finite number in place of infinity:
 * such a result counts only if it is an element. */
#define LARGEST_float FLT_MAX
#define LARGEST_double DBL_MAX
#define ELEMENT_OF(T)                                              \
  static T element_or_##T(const T *x, size_t n, T best, T first) { \
    for (size_t i = 0; i < n; i++)                                 \
      if (x[i] == best)                                            \
        return best;                                               \
    return first;                                                  \
  }
ELEMENT_OF(float)
ELEMENT_OF(double)

/* The pragma lets the order of a maximum or minimum change. */
#define PRAGMA(text) _Pragma(#text)
#define EXTREME_LOOPS(NAME, T, which)                                    \
  PLN_MULTIVERSION_AVX512 static void runs_##NAME##_##T(                 \
      const void *in, size_t n, size_t rows, size_t step,                \
      pln_reduce_accumulator *out) {                                     \
    const T *x = in;                                                     \
    for (size_t r = 0; r < rows; r++, x += step) {                       \
      T best = FIRST_##NAME;                                             \
      bits_##T nan = 0;                                                  \
      PRAGMA(omp simd reduction(which : best) reduction(| : nan))        \
      for (size_t i = 0; i < n; i++) {                                   \
        best = BETTER_##NAME(best, x[i]);                                \
        nan |= x[i] != x[i];                                             \
      }                                                                  \
      if (fabs((double)best) == (double)LARGEST_##T)                     \
        best = element_or_##T(x, n, best, FIRST_##NAME);                 \
      if (best == 0)                                                     \
        best = zero_among_##T(x, n, ZERO_##NAME);                        \
      if (n)                                                             \
        out[r].number =                                                  \
            ONE_##NAME(out[r].number, nan ? (double)NAN : (double)best); \
    }                                                                    \
  }                                                                      \
  PLN_MULTIVERSION_AVX512 static void rows_##NAME##_##T(                 \
      const void *in, size_t n, size_t rows, size_t step,                \
      pln_reduce_accumulator *out) {                                     \
    const T *restrict x = in;                                            \
    double *restrict all = &out->number;                                 \
    for (size_t r = 0; r < rows; r++, x += step)                         \
      for (size_t i = 0; i < n; i++)                                     \
        all[i] = ONE_##NAME(all[i], (double)x[i]);                       \
  }
#define FLOAT_REDUCTIONS(T, STRIPS) \
  SUM_LOOPS(SUM, T, 0, STRIPS)      \
  SUM_LOOPS(ABS, T, 0, NONE)        \
  SUM_LOOPS(SQUARE, T, 0, NONE)     \
  SUM_LOOPS(PRODUCT, T, 1, NONE)    \
  EXTREME_LOOPS(GREATEST, T, max)   \
  EXTREME_LOOPS(SMALLEST, T, min)
FLOAT_REDUCTIONS(float, FLOAT)
FLOAT_REDUCTIONS(double, NONE)

/* ----------------------------------------------------------------- integers */

#define INT_SUM(T, a, x) ((a) + (uint64_t)(x))
#define INT_ABS(T, a, x) ((a) + ((x) < 1 ? 0 - (uint64_t)(x) : (uint64_t)(x)))
#define INT_SQUARE(T, a, x) ((a) + (uint64_t)(x) * (uint64_t)(x))
#define INT_PRODUCT(T, a, x) ((a) * (uint64_t)(x))
#define INT_GREATEST(T, a, x) ((T)(a) >= (x) ? (a) : (uint64_t)(x))
#define INT_SMALLEST(T, a, x) ((T)(a) <= (x) ? (a) : (uint64_t)(x))

#define INT_LOOPS(NAME, T)                                                  \
  static void runs_##NAME##_##T(const void *in, size_t n, size_t rows,      \
                                size_t step, pln_reduce_accumulator *out) { \
    const T *x = in;                                                        \
    for (size_t r = 0; r < rows; r++, x += step) {                          \
      uint64_t all = out[r].bits;                                           \
      for (size_t i = 0; i < n; i++)                                        \
        all = INT_##NAME(T, all, x[i]);                                     \
      out[r].bits = all;                                                    \
    }                                                                       \
  }                                                                         \
  static void rows_##NAME##_##T(const void *in, size_t n, size_t rows,      \
                                size_t step, pln_reduce_accumulator *out) { \
    const T *restrict x = in;                                               \
    uint64_t *restrict all = &out->bits;                                    \
    for (size_t r = 0; r < rows; r++, x += step)                            \
      for (size_t i = 0; i < n; i++)                                        \
        all[i] = INT_##NAME(T, all[i], x[i]);                               \
  }
#define INT_REDUCTIONS(T) \
  INT_LOOPS(SUM, T)       \
  INT_LOOPS(ABS, T)       \
  INT_LOOPS(SQUARE, T)    \
  INT_LOOPS(PRODUCT, T)   \
  INT_LOOPS(GREATEST, T)  \
  INT_LOOPS(SMALLEST, T)
INT_REDUCTIONS(int64_t)
INT_REDUCTIONS(uint64_t)

/* ------------------------------------------------------------------- tables */

#define ROW(runs, NAME, T, member, start_of) \
  [PLN_REDUCE_##                             \
      NAME] = {runs##_##NAME##_##T, rows_##NAME##_##T, {.member = (start_of)}}
#define ROWS(runs, T, member, least, greatest)                             \
  {                                                                        \
    ROW(runs, SUM, T, member, 0), ROW(runs, ABS, T, member, 0),            \
        ROW(runs, SQUARE, T, member, 0), ROW(runs, PRODUCT, T, member, 1), \
        ROW(runs, GREATEST, T, member, least),                             \
        ROW(runs, SMALLEST, T, member, greatest)                           \
  }
typedef pln_reduce_loops table[PLN_N_REDUCE_KINDS];
static const table floats = ROWS(runs, float, number, -INFINITY, INFINITY);
static const table doubles = ROWS(runs, double, number, -INFINITY, INFINITY);
static const table signeds =
    ROWS(runs, int64_t, bits, (uint64_t)INT64_MIN, INT64_MAX);
static const table unsigneds = ROWS(runs, uint64_t, bits, 0, UINT64_MAX);

static const pln_reduce_loops *find_reduce_row(pln_reduce_kind gather,
                                               pln_dtype dtype) {
  if (dtype == PLN_FLOAT32)
    return &floats[gather];
  if (dtype == PLN_FLOAT64)
    return &doubles[gather];
  return dtype == PLN_UINT64 ? &unsigneds[gather] : &signeds[gather];
}

#if defined __x86_64__ && defined __GNUC__
#define runs8_GREATEST_float runs_GREATEST_float
#define runs8_SMALLEST_float runs_SMALLEST_float
#define runs8_GREATEST_double runs_GREATEST_double
#define runs8_SMALLEST_double runs_SMALLEST_double
static const table floats8 = ROWS(runs8, float, number, -INFINITY, INFINITY);
static const table doubles8 = ROWS(runs8, double, number, -INFINITY, INFINITY);

const pln_reduce_loops *pln_reduce_find(pln_reduce_kind gather,
                                        pln_dtype dtype) {
  bool floating = dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64;
  if (floating && has_512())
    return dtype == PLN_FLOAT32 ? &floats8[gather] : &doubles8[gather];
  return find_reduce_row(gather, dtype);
}
#else
const pln_reduce_loops *pln_reduce_find(pln_reduce_kind gather,
                                        pln_dtype dtype) {
  return find_reduce_row(gather, dtype);
}
#endif
