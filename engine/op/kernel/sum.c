/* sum.c: sums over contiguous floats. Called by pooling and normalization
 * kernels. A sum depends only on the elements and their number, not on the
 * machine. */

#include "op/kernel/sum.h"

#include <math.h>
#include <string.h>

#include "op/kernel/multiversion.h"

enum { LANES = 16, BLOCK = 1024 };

#define PLAIN(x, centre) (x)
#define SQUARE(x, centre) (((x) - (centre)) * ((x) - (centre)))

/* Adds up the lanes in pairs, in double. */
typedef double lanes4 __attribute__((vector_size(32)));
typedef float floats4 __attribute__((vector_size(16)));
#define ADD_LANES(T, vector)                                               \
  static inline                                                            \
      __attribute__((always_inline)) double add_lanes_##T(const T *lane) { \
    vector part[LANES / 4];                                                \
    memcpy(part, lane, sizeof part);                                       \
    const lanes4 all = (__builtin_convertvector(part[0], lanes4) +         \
                        __builtin_convertvector(part[1], lanes4)) +        \
                       (__builtin_convertvector(part[2], lanes4) +         \
                        __builtin_convertvector(part[3], lanes4));         \
    return (all[0] + all[2]) + (all[1] + all[3]);                          \
  }
ADD_LANES(float, floats4)
ADD_LANES(double, lanes4)

#define SUM(name, T, f)                                                      \
  PLN_MULTIVERSION static double name##_block_##T(const T *x, size_t n,      \
                                                  T centre) {                \
    T lane[LANES] = {0};                                                     \
    size_t whole = n - n % LANES;                                            \
    (void)centre;                                                            \
    for (size_t i = 0; i < whole; i += LANES)                                \
      for (size_t k = 0; k < LANES; k++)                                     \
        lane[k] += f(x[i + k], centre);                                      \
    for (size_t i = whole; i < n; i++)                                       \
      lane[i - whole] += f(x[i], centre);                                    \
    return add_lanes_##T(lane);                                              \
  }                                                                          \
  static double name##_##T(const T *x, size_t n, T centre) {                 \
    double all = 0;                                                          \
    for (size_t at = 0; at < n; at += BLOCK)                                 \
      all +=                                                                 \
          name##_block_##T(x + at, n - at < BLOCK ? n - at : BLOCK, centre); \
    return all;                                                              \
  }
#define ABS_float(x, centre) fabsf(x)
#define ABS_double(x, centre) fabs(x)
SUM(plain, float, PLAIN)
SUM(plain, double, PLAIN)
SUM(absolute, float, ABS_float)
SUM(absolute, double, ABS_double)
SUM(square, float, SQUARE)
SUM(square, double, SQUARE)

double pln_sum_float(const float *x, size_t n) {
  return plain_float(x, n, 0);
}

double pln_sum_double(const double *x, size_t n) {
  return plain_double(x, n, 0);
}

double pln_sum_abs_float(const float *x, size_t n) {
  return absolute_float(x, n, 0);
}

double pln_sum_abs_double(const double *x, size_t n) {
  return absolute_double(x, n, 0);
}

double pln_sum_square_float(const float *x, size_t n, float centre) {
  return square_float(x, n, centre);
}

double pln_sum_square_double(const double *x, size_t n, double centre) {
  return square_double(x, n, centre);
}
