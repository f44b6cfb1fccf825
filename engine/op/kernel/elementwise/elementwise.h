/* elementwise.h: drivers for elementwise loops: broadcasting, 16-bit floats,
 * results.
 *
 * A family gives a table with a loop per dtype; a dtype without a loop is
 * refused. float16 and bfloat16 without a loop use the float32 loop. */

#ifndef PLN_OP_KERNEL_ELEMENTWISE_ELEMENTWISE_H
#define PLN_OP_KERNEL_ELEMENTWISE_ELEMENTWISE_H

#include "op/kernel/kernel.h"
#include "op/kernel/multiversion.h"

/* Which operands of a run are a single repeated element. */
typedef enum pln_run { PLN_RUN_BOTH, PLN_RUN_A_ONE, PLN_RUN_B_ONE } pln_run;

/* Writes n elements; false if one has no defined result. */
typedef bool (*pln_pair_loop)(void *out, const void *a, const void *b, size_t n,
                              pln_run run);
/* Parameters of unary functions; each loop defines their meaning. */
typedef struct pln_params {
  double p, q;
} pln_params;
typedef bool (*pln_unary_loop)(void *out, const void *in, size_t n,
                               const pln_params *params);

typedef struct pln_pair_loops {
  pln_pair_loop of[PLN_N_DTYPES];
  bool predicate; /* results are bool */
  /* A loop that meets an undefined result writes what ONNX Runtime gives and
   * goes on; only folding refuses it. */
  bool goes_on;
} pln_pair_loops;
typedef struct pln_unary_loops {
  pln_unary_loop of[PLN_N_DTYPES];
  bool predicate;
} pln_unary_loops;

/* Makes the elementwise result of two broadcast tensors. */
pln_status pln_pair_compute(pln_kernel_call *call, const pln_pair_loops *loops,
                            const pln_tensor *a, const pln_tensor *b,
                            pln_tensor **out) PLN_CHECKED;
/* Arguments 0 and 1 into result 0. */
pln_status pln_pair_run(pln_kernel_call *call,
                        const pln_pair_loops *loops) PLN_CHECKED;
/* All arguments, at least one, combined from the first to the last by a loop
 * whose results are all defined. */
pln_status pln_pairs_fold(pln_kernel_call *call, const pln_pair_loops *loops,
                          pln_tensor **out) PLN_CHECKED;
/* Argument 0 into result 0. */
pln_status pln_unary_run(pln_kernel_call *call, const pln_unary_loops *loops,
                         const pln_params *params) PLN_CHECKED;

/* Converts n elements from 16-bit float to float, and back. */
void pln_widen(pln_dtype dtype, const void *in, float *out, size_t n);
void pln_narrow(pln_dtype dtype, const float *in, void *out, size_t n);

/* X(DTYPE, C type) */
#define PLN_SIGNED_TYPES(X) \
  X(INT8, int8_t) X(INT16, int16_t) X(INT32, int32_t) X(INT64, int64_t)
#define PLN_UNSIGNED_TYPES(X) \
  X(UINT8, uint8_t) X(UINT16, uint16_t) X(UINT32, uint32_t) X(UINT64, uint64_t)
#define PLN_INT_TYPES(X) PLN_SIGNED_TYPES(X) PLN_UNSIGNED_TYPES(X)
#define PLN_FLOAT_TYPES(X) X(FLOAT32, float) X(FLOAT64, double)

/* Defines a loop NAME_DTYPE over `f(x, y)`: three plain loops, so that each is
 * vectorised. */
#define PLN_PAIR_LOOP(name, D, T, R, f)                                     \
  static bool name##_##D(void *out, const void *a, const void *b, size_t n, \
                         pln_run run) {                                     \
    R *restrict to = out;                                                   \
    const T *x = a, *y = b;                                                 \
    if (run == PLN_RUN_BOTH) {                                              \
      for (size_t i = 0; i < n; i++)                                        \
        to[i] = (R)f(T, x[i], y[i]);                                        \
    } else if (run == PLN_RUN_A_ONE) {                                      \
      const T one = x[0];                                                   \
      for (size_t i = 0; i < n; i++)                                        \
        to[i] = (R)f(T, one, y[i]);                                         \
    } else {                                                                \
      const T one = y[0];                                                   \
      (void)one;                                                            \
      for (size_t i = 0; i < n; i++)                                        \
        to[i] = (R)f(T, x[i], one);                                         \
    }                                                                       \
    return true;                                                            \
  }

/* The same over `f(x, y, &result)`, which returns false if the result is
 * undefined. */
#define PLN_PAIR_CHECKED(name, D, T, f)                                     \
  static bool name##_##D(void *out, const void *a, const void *b, size_t n, \
                         pln_run run) {                                     \
    T *to = out;                                                            \
    const T *x = a, *y = b;                                                 \
    size_t step_x = run != PLN_RUN_A_ONE, step_y = run != PLN_RUN_B_ONE;    \
    bool good = true;                                                       \
    for (size_t i = 0; i < n; i++)                                          \
      good &= f(x[i * step_x], y[i * step_y], &to[i]);                      \
    return good;                                                            \
  }

#define PLN_UNARY_LOOP(name, D, T, R, f)                               \
  PLN_MULTIVERSION_AVX512 static bool name##_##D(                      \
      void *out, const void *in, size_t n, const pln_params *params) { \
    R *restrict to = out;                                              \
    const T *x = in;                                                   \
    const T p = (T)params->p, q = (T)params->q;                        \
    (void)p, (void)q;                                                  \
    for (size_t i = 0; i < n; i++)                                     \
      to[i] = (R)f(T, x[i]);                                           \
    return true;                                                       \
  }

/* Rows of pln_unary_loops: the loop of a dtype, and those of both floats. */
#define PLN_LOOP_OF(name, D) [PLN_##D] = name##_##D
#define PLN_FLOAT_LOOPS(name) \
  PLN_LOOP_OF(name, FLOAT32), PLN_LOOP_OF(name, FLOAT64)

#define PLN_UNARY_KERNEL(name, ...)                             \
  pln_status pln_kernel_##name(pln_kernel_call *call) {         \
    static const pln_unary_loops loops = {.of = {__VA_ARGS__}}; \
    return pln_unary_run(call, &loops, NULL);                   \
  }

/* Attribute names and defaults of p and q. */
#define PLN_PARAMETRIC_KERNEL(name, family, p_name, p_value, q_name, q_value) \
  pln_status pln_kernel_##name(pln_kernel_call *call) {                       \
    static const pln_unary_loops loops = {.of = {PLN_FLOAT_LOOPS(family)}};   \
    pln_params params = {pln_kernel_float(call, p_name, p_value),             \
                         pln_kernel_float(call, q_name, q_value)};            \
    return pln_unary_run(call, &loops, &params);                              \
  }

#endif
