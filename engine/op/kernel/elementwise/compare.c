/* compare.c: comparisons, logic, isnan and the like. Called through ops.def.
 * Comparisons with NaN are false, as in IEEE 754. */

#include <math.h>

#include "op/kernel/elementwise/elementwise.h"

#define EQUAL_TO(T, x, y) ((x) == (y))
#define LESS_THAN(T, x, y) ((x) < (y))
#define LESS_EQUAL(T, x, y) ((x) <= (y))
#define MORE_THAN(T, x, y) ((x) > (y))
#define MORE_EQUAL(T, x, y) ((x) >= (y))
#define BOTH_HOLD(T, x, y) (((x) != 0) & ((y) != 0))
#define ONE_HOLDS(T, x, y) (((x) != 0) | ((y) != 0))
#define ONE_ONLY(T, x, y) (((x) != 0) != ((y) != 0))

#define EQUAL_LOOP(D, T) \
  PLN_MULTIVERSION PLN_PAIR_LOOP(equal, D, T, uint8_t, EQUAL_TO)
#define LESS_LOOP(D, T) \
  PLN_MULTIVERSION PLN_PAIR_LOOP(less, D, T, uint8_t, LESS_THAN)
#define LE_LOOP(D, T) \
  PLN_MULTIVERSION PLN_PAIR_LOOP(le, D, T, uint8_t, LESS_EQUAL)
#define MORE_LOOP(D, T) \
  PLN_MULTIVERSION PLN_PAIR_LOOP(more, D, T, uint8_t, MORE_THAN)
#define GE_LOOP(D, T) \
  PLN_MULTIVERSION PLN_PAIR_LOOP(ge, D, T, uint8_t, MORE_EQUAL)
#define ORDERED(X) PLN_INT_TYPES(X) PLN_FLOAT_TYPES(X)
ORDERED(EQUAL_LOOP)
ORDERED(LESS_LOOP)
ORDERED(LE_LOOP)
ORDERED(MORE_LOOP)
ORDERED(GE_LOOP)
PLN_PAIR_LOOP(and, BOOL, uint8_t, uint8_t, BOTH_HOLD)
PLN_PAIR_LOOP(or, BOOL, uint8_t, uint8_t, ONE_HOLDS)
PLN_PAIR_LOOP(xor, BOOL, uint8_t, uint8_t, ONE_ONLY)

static uint8_t same_truth(uint8_t x, uint8_t y) {
  return (x != 0) == (y != 0);
}
#define SAME_TRUTH(T, x, y) same_truth(x, y)
#define SAME_TEXT(T, x, y) pln_slice_equal(x, y)
PLN_PAIR_LOOP(equal, BOOL, uint8_t, uint8_t, SAME_TRUTH)
PLN_PAIR_LOOP(equal, STRING, pln_slice, uint8_t, SAME_TEXT)

#define ROW(name, D) [PLN_##D] = name##_##D
#define NUMBERS(name)                                                    \
  ROW(name, INT8), ROW(name, INT16), ROW(name, INT32), ROW(name, INT64), \
      ROW(name, UINT8), ROW(name, UINT16), ROW(name, UINT32),            \
      ROW(name, UINT64), ROW(name, FLOAT32), ROW(name, FLOAT64)

#define COMPARE_KERNEL(name, ...)                             \
  pln_status pln_kernel_##name(pln_kernel_call *call) {       \
    static const pln_pair_loops loops = {.of = {__VA_ARGS__}, \
                                         .predicate = true};  \
    return pln_pair_run(call, &loops);                        \
  }
COMPARE_KERNEL(equal, NUMBERS(equal), ROW(equal, BOOL), ROW(equal, STRING))
COMPARE_KERNEL(less, NUMBERS(less))
COMPARE_KERNEL(less_equal, NUMBERS(le))
COMPARE_KERNEL(greater, NUMBERS(more))
COMPARE_KERNEL(greater_equal, NUMBERS(ge))
COMPARE_KERNEL(logical_and, ROW(and, BOOL))
COMPARE_KERNEL(logical_or, ROW(or, BOOL))
COMPARE_KERNEL(logical_xor, ROW(xor, BOOL))

/* -------------------------------------------------------------- one operand */

/* p and q: whether +inf and -inf count. */
#define IS_NAN(T, x) ((x) != (x))
#define IS_INF(T, x) \
  (((x) == (T)INFINITY && p != 0) || ((x) == -(T)INFINITY && q != 0))
#define IS_FALSE(T, x) ((x) == 0)
PLN_UNARY_LOOP(isnan, FLOAT32, float, uint8_t, IS_NAN)
PLN_UNARY_LOOP(isnan, FLOAT64, double, uint8_t, IS_NAN)
PLN_UNARY_LOOP(isinf, FLOAT32, float, uint8_t, IS_INF)
PLN_UNARY_LOOP(isinf, FLOAT64, double, uint8_t, IS_INF)
#define IS_FINITE(T, x) ((x) - (x) == 0)
PLN_UNARY_LOOP(finite, FLOAT32, float, uint8_t, IS_FINITE)
PLN_UNARY_LOOP(finite, FLOAT64, double, uint8_t, IS_FINITE)
PLN_UNARY_LOOP(not, BOOL, uint8_t, uint8_t, IS_FALSE)

pln_status pln_kernel_isnan(pln_kernel_call *call) {
  static const pln_unary_loops loops = {
      .of = {ROW(isnan, FLOAT32), ROW(isnan, FLOAT64)}, .predicate = true};
  return pln_unary_run(call, &loops, NULL);
}

pln_status pln_kernel_isfinite(pln_kernel_call *call) {
  static const pln_unary_loops loops = {
      .of = {ROW(finite, FLOAT32), ROW(finite, FLOAT64)}, .predicate = true};
  return pln_unary_run(call, &loops, NULL);
}

pln_status pln_kernel_isinf(pln_kernel_call *call) {
  static const pln_unary_loops loops = {
      .of = {ROW(isinf, FLOAT32), ROW(isinf, FLOAT64)}, .predicate = true};
  pln_params params = {pln_kernel_int(call, "detect_positive", 1) != 0,
                       pln_kernel_int(call, "detect_negative", 1) != 0};
  return pln_unary_run(call, &loops, &params);
}

pln_status pln_kernel_logical_not(pln_kernel_call *call) {
  static const pln_unary_loops loops = {.of = {ROW(not, BOOL)},
                                        .predicate = true};
  return pln_unary_run(call, &loops, NULL);
}
