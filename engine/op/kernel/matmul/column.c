/* column.c: products of a float32 matrix and a vector. Called by gemm.c.
 *
 * A dot product is summed in eight lanes, and products are rounded before they
 * are added, whatever the machine has: so does ONNX Runtime on x86-64, where a
 * convolution of a single pixel is such a product. It adds up the lanes of the
 * last rows, up to three, in another order; here a result depends on its own
 * row only, so that rows may change places. This file is compiled without
 * contraction of products and sums. */

#include "op/kernel/matmul/column.h"

#include <string.h>

#include "op/kernel/multiversion.h"

enum { LANES = 8, GROUP = 4 };

typedef float lanes8 __attribute__((vector_size(LANES * sizeof(float))));
typedef float unaligned8
    __attribute__((vector_size(LANES * sizeof(float)), aligned(1), may_alias));
typedef float element __attribute__((aligned(1), may_alias));

/* Adds the products of elements [whole, k), which are fewer than LANES. */
#define ADD_REST(sum, row, x, whole, k)  \
  for (size_t p = (whole); p < (k); p++) \
  (sum)[p - (whole)] += (row)[p] * (x)[p]

static inline float add_lanes(const float *s) {
  return (((s[0] + s[1]) + s[2]) + s[3]) + (((s[4] + s[5]) + s[6]) + s[7]);
}

PLN_MULTIVERSION static void add_groups(size_t m, size_t k, const element *a,
                                        size_t a_row, const element *x,
                                        float *c, size_t c_step) {
  size_t whole = k - k % LANES;
  for (size_t i = 0; i + GROUP <= m; i += GROUP, a += GROUP * a_row) {
    const element *b = a + a_row, *d = b + a_row, *e = d + a_row;
    lanes8 s = {0}, t = {0}, u = {0}, v = {0};
    for (size_t p = 0; p < whole; p += LANES) {
      const lanes8 y = *(const unaligned8 *)(x + p);
      s += *(const unaligned8 *)(a + p) * y;
      t += *(const unaligned8 *)(b + p) * y;
      u += *(const unaligned8 *)(d + p) * y;
      v += *(const unaligned8 *)(e + p) * y;
    }
    float sums[GROUP][LANES];
    memcpy(sums[0], &s, sizeof s);
    memcpy(sums[1], &t, sizeof t);
    memcpy(sums[2], &u, sizeof u);
    memcpy(sums[3], &v, sizeof v);
    for (size_t r = 0; r < GROUP; r++) {
      ADD_REST(sums[r], a + r * a_row, x, whole, k);
      c[(i + r) * c_step] += add_lanes(sums[r]);
    }
  }
}

PLN_MULTIVERSION static void add_rest(size_t m, size_t k, const element *a,
                                      size_t a_row, const element *x, float *c,
                                      size_t c_step) {
  size_t whole = k - k % LANES;
  for (size_t i = 0; i < m; i++, a += a_row) {
    lanes8 s = {0};
    for (size_t p = 0; p < whole; p += LANES)
      s += *(const unaligned8 *)(a + p) * *(const unaligned8 *)(x + p);
    float sums[LANES];
    memcpy(sums, &s, sizeof s);
    ADD_REST(sums, a, x, whole, k);
    c[i * c_step] += add_lanes(sums);
  }
}

void pln_column_add(size_t m, size_t k, const void *a, size_t a_row,
                    const void *x, float *c, size_t c_step) {
  size_t grouped = m - m % GROUP;
  const element *from = a;
  add_groups(grouped, k, from, a_row, x, c, c_step);
  add_rest(m - grouped, k, from + grouped * a_row, a_row, x,
           c + grouped * c_step, c_step);
}
