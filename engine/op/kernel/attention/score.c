/* score.c: operations on rows of attention scores. Called by attention.c.
 *
 * An excluded score is -inf, whatever it was. float32 scores are computed in
 * float32, sums of weights in double. */

#include "op/kernel/attention/score.h"

#include <math.h>

#include "op/kernel/elementwise/approximation.h"
#include "op/kernel/elementwise/elementwise.h"
#include "op/kernel/multiversion.h"
#include "op/kernel/sum.h"

#define EXP_float(x) pln_exp_float(x)
#define EXP_double(x) exp(x)
#define TANH_float(x) pln_tanh_float(x)
#define TANH_double(x) tanh(x)

#define SCORES(T)                                                    \
  PLN_MULTIVERSION static void scale_##T(T *x, size_t n, T factor) { \
    for (size_t i = 0; i < n; i++)                                   \
      x[i] *= factor;                                                \
  }                                                                  \
  PLN_MULTIVERSION static void cap_##T(T *x, size_t n, T cap) {      \
    for (size_t i = 0; i < n; i++)                                   \
      x[i] = cap * TANH_##T(x[i] / cap);                             \
  }                                                                  \
  PLN_MULTIVERSION static bool choose_##T(T *restrict x, size_t n,   \
                                          const uint8_t *mask) {     \
    uint8_t open = 0;                                                \
    for (size_t i = 0; i < n; i++) {                                 \
      open |= mask[i];                                               \
      x[i] = mask[i] ? x[i] : -(T)INFINITY;                          \
    }                                                                \
    return open != 0;                                                \
  }                                                                  \
  PLN_MULTIVERSION static bool bias_##T(T *restrict x, size_t n,     \
                                        const T *mask) {             \
    int open = 0;                                                    \
    for (size_t i = 0; i < n; i++) {                                 \
      int closed = mask[i] == -(T)INFINITY;                          \
      open |= !closed;                                               \
      x[i] = closed ? -(T)INFINITY : x[i] + mask[i];                 \
    }                                                                \
    return open != 0;                                                \
  }                                                                  \
  static void fill_##T(T *x, size_t begin, size_t end, T value) {    \
    for (size_t i = begin; i < end; i++)                             \
      x[i] = value;                                                  \
  }                                                                  \
  PLN_MULTIVERSION static T top_##T(const T *x, size_t n) {          \
    enum { LANES = 16 };                                             \
    T tops[LANES], top = -(T)INFINITY;                               \
    fill_##T(tops, 0, LANES, top);                                   \
    size_t i = 0;                                                    \
    for (; i + LANES <= n; i += LANES)                               \
      for (size_t k = 0; k < LANES; k++)                             \
        tops[k] = x[i + k] > tops[k] ? x[i + k] : tops[k];           \
    for (; i < n; i++)                                               \
      top = x[i] > top ? x[i] : top;                                 \
    for (size_t k = 0; k < LANES; k++)                               \
      top = tops[k] > top ? tops[k] : top;                           \
    return top;                                                      \
  }                                                                  \
  PLN_MULTIVERSION static void raise_##T(T *x, size_t n, T top) {    \
    for (size_t i = 0; i < n; i++)                                   \
      x[i] = EXP_##T(x[i] - top);                                    \
  }                                                                  \
  static void softmax_##T(T *x, size_t n) {                          \
    T top = top_##T(x, n);                                           \
    raise_##T(x, n, top > -(T)INFINITY ? top : 0);                   \
    double sum = pln_sum_##T(x, n);                                  \
    scale_##T(x, n, sum == 0 ? 1 : (T)(1 / sum));                    \
  }
SCORES(float)
SCORES(double)

void pln_score_scale(pln_dtype dtype, void *x, size_t n, double factor) {
  if (dtype == PLN_FLOAT32)
    scale_float(x, n, (float)factor);
  else
    scale_double(x, n, factor);
}

void pln_score_cap(pln_dtype dtype, void *x, size_t n, double cap) {
  if (dtype == PLN_FLOAT32)
    cap_float(x, n, (float)cap);
  else
    cap_double(x, n, cap);
}

bool pln_score_mask(pln_dtype dtype, void *x, size_t n, const void *mask,
                    pln_dtype mask_dtype) {
  if (mask_dtype == PLN_BOOL)
    return dtype == PLN_FLOAT32 ? choose_float(x, n, mask)
                                : choose_double(x, n, mask);
  return dtype == PLN_FLOAT32 ? bias_float(x, n, mask)
                              : bias_double(x, n, mask);
}

static void fill_outside(pln_dtype dtype, void *x, size_t n, size_t low,
                         size_t high, double value) {
  if (dtype == PLN_FLOAT32) {
    fill_float(x, 0, low, (float)value);
    fill_float(x, high, n, (float)value);
  } else {
    fill_double(x, 0, low, value);
    fill_double(x, high, n, value);
  }
}

void pln_score_mask_outside(pln_dtype dtype, void *x, size_t n, size_t low,
                            size_t high) {
  fill_outside(dtype, x, n, low, high, -INFINITY);
}

void pln_score_clear(pln_dtype dtype, void *x, size_t n, size_t low,
                     size_t high) {
  fill_outside(dtype, x, n, low, high, 0);
}

void pln_score_softmax(pln_dtype dtype, void *x, size_t n) {
  if (dtype == PLN_FLOAT32)
    softmax_float(x, n);
  else
    softmax_double(x, n);
}

/* ----------------------------------------------------------------- rounding */

enum { BLOCK = 256 };

static void round_float(float *x, size_t n, pln_dtype to) {
  uint16_t halves[BLOCK];
  for (size_t at = 0; at < n; at += BLOCK) {
    size_t part = n - at < BLOCK ? n - at : BLOCK;
    pln_narrow(to, x + at, halves, part);
    pln_widen(to, halves, x + at, part);
  }
}

static void round_double(double *x, size_t n, pln_dtype to) {
  float singles[BLOCK];
  for (size_t at = 0; at < n; at += BLOCK) {
    size_t part = n - at < BLOCK ? n - at : BLOCK;
    for (size_t i = 0; i < part; i++)
      singles[i] = (float)x[at + i];
    if (to != PLN_FLOAT32)
      round_float(singles, part, to);
    for (size_t i = 0; i < part; i++)
      x[at + i] = (double)singles[i];
  }
}

void pln_score_round(pln_dtype dtype, void *x, size_t n, pln_dtype to) {
  if (to == dtype || to == PLN_FLOAT64)
    return;
  if (dtype == PLN_FLOAT64)
    round_double(x, n, to);
  else
    round_float(x, n, to);
}
