/* number.h: arithmetic of the loop interpreter, defined for all operands:
 * integers wrap, shifts out of range give 0 or the sign. */

#ifndef PLN_EVAL_LOOP_NUMBER_H
#define PLN_EVAL_LOOP_NUMBER_H

#include "ir/tensor/dtype.h"

static inline int64_t pln_wrap32(uint64_t x) {
  return (int32_t)(uint32_t)x;
}
/* Division towards zero; INT64_MIN / -1 wraps. `y` is not 0. */
static inline int64_t pln_div_i64(int64_t x, int64_t y) {
  return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}
static inline int64_t pln_mod_i64(int64_t x, int64_t y) {
  return y == -1 ? 0 : x % y;
}
static inline int64_t pln_mod_i32(int64_t x, int64_t y) {
  return y == -1 ? 0 : (int32_t)x % (int32_t)y;
}
/* Towards minus infinity. */
static inline int64_t pln_floordiv_i64(int64_t x, int64_t y) {
  if (y == -1)
    return (int64_t)(0 - (uint64_t)x);
  int64_t q = x / y;
  return q - (x % y != 0 && (x < 0) != (y < 0));
}
static inline int64_t pln_floordiv_i32(int64_t x, int64_t y) {
  if (y == -1)
    return pln_wrap32(0 - (uint64_t)x);
  int32_t a = (int32_t)x, b = (int32_t)y;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
/* The sign of the divisor. */
static inline int64_t pln_floormod_i64(int64_t x, int64_t y) {
  int64_t r = pln_mod_i64(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static inline int64_t pln_floormod_i32(int64_t x, int64_t y) {
  int64_t r = pln_mod_i32(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static inline int64_t pln_shift_right(int64_t x, int64_t y) {
  return x >> ((uint64_t)y > 63 ? 63 : y);
}

/* The value of the low bits in an integer dtype; bool keeps whether it is 0. */
int64_t pln_loop_wrap(pln_dtype dtype, uint64_t value);
/* The index after `x`, in a dtype. */
static inline int64_t pln_loop_next(uint32_t dtype, int64_t x) {
  uint64_t next = (uint64_t)x + 1;
  return dtype == PLN_INT32 ? pln_wrap32(next)
                            : pln_loop_wrap((pln_dtype)dtype, next);
}
/* Rounds to a float dtype narrower than 32 bits. */
float pln_loop_round(pln_dtype dtype, float value);
/* Truncates, as cast does: out of range it is the least int32 or int64, see
 * op/kernel/elementwise/convert.c. */
int64_t pln_loop_float_to_int(pln_dtype to, double value);
int64_t pln_loop_popcount(pln_dtype dtype, int64_t value);
int64_t pln_loop_clz(pln_dtype dtype, int64_t value);
/* The bits of a value of one dtype as a value of another of the same width;
 * `pair` is from * 64 + to, the integers are the bits of cells. */
int64_t pln_loop_reinterpret(uint32_t pair, int64_t cell);
/* x * y * 2^(s - q), rounded half up: TVM's fixed-point product. `s` and `q`
 * out of range give 0. */
int64_t pln_loop_q_multiply_shift(int64_t x, int64_t y, int64_t q, int64_t s);

/* An element of a packed or small dtype, `bits` wide, and the reverse. */
int64_t pln_loop_unpack(pln_dtype dtype, uint64_t bits);
uint64_t pln_loop_pack(pln_dtype dtype, int64_t cell);

/* Functions of one and of two floats, by name; -1: there is none. */
typedef struct pln_loop_function {
  const char *name;
  float (*single)(float);
  double (*twice)(double);
} pln_loop_function;
typedef struct pln_loop_function2 {
  const char *name;
  float (*single)(float, float);
  double (*twice)(double, double);
} pln_loop_function2;
extern const pln_loop_function pln_loop_functions[];
extern const pln_loop_function2 pln_loop_functions2[];
int32_t pln_loop_find_function(pln_slice name);
int32_t pln_loop_find_function2(pln_slice name);

#endif
