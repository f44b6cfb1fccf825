/* test_integer_gemm.c: products of matrices of bytes beside the plain sum, with
 * every set of tiles and with few rows, with extents around those of tiles and
 * blocks. */

#include "oom.h"

#include "op/kernel/matmul/integer_gemm.h"

static uint32_t noise;

static uint8_t next_byte(void) {
  noise = noise * 1664525u + 1013904223u;
  uint32_t x = noise >> 16;
  return (uint8_t)(x % 5 ? x : x & 32 ? 255 : 0); /* many extremes */
}

static uint8_t *bytes(size_t n) {
  uint8_t *data = malloc(n + 1);
  for (size_t i = 0; data && i < n; i++)
    data[i] = next_byte();
  return data;
}

static int32_t number(const void *data, bool is_signed, size_t i) {
  return is_signed ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
}

static void multiply_plainly(const pln_integer_product *p, int32_t *c) {
  for (size_t i = 0; i < p->m; i++)
    for (size_t j = 0; j < p->n; j++) {
      uint32_t sum = 0;
      for (size_t k = 0; k < p->k; k++) {
        int32_t x = number(p->a, p->a_signed, i * p->k + k);
        int32_t y = number(p->b, p->b_signed, k * p->n + j);
        sum += (uint32_t)((x - p->a_zero[i * p->a_zero_step]) *
                          (y - p->b_zero[j * p->b_zero_step]));
      }
      c[i * p->n + j] = (int32_t)sum;
    }
}

/* Form: which operands are signed, which have many zero points. */
static void compare(pln_engine *e, size_t m, size_t n, size_t k,
                    unsigned form) {
  int16_t *zero = malloc((m + n + 2) * sizeof *zero);
  uint8_t *a = bytes(m * k), *b = bytes(k * n);
  int32_t *want = malloc((m * n + 1) * sizeof *want);
  int32_t *got = malloc((m * n + 1) * sizeof *got);
  if (zero && a && b && want && got) {
    for (size_t i = 0; i < m + n + 2; i++)
      zero[i] = (int16_t)(next_byte() % 128);
    pln_integer_product p = {.m = m,
                             .n = n,
                             .k = k,
                             .a = a,
                             .b = b,
                             .a_signed = form & 1,
                             .b_signed = form & 2,
                             .a_zero = zero,
                             .b_zero = zero + m + 1,
                             .a_zero_step = (form & 4) != 0,
                             .b_zero_step = (form & 8) != 0,
                             .c = got};
    const pln_integer_tiles *t;
    multiply_plainly(&p, want);
    for (uint32_t i = 0; (t = pln_integer_tiles_at(i)); i++) {
      memset(got, 7, m * n * sizeof *got);
      CHECK_OK(pln_integer_multiply_with(e, t, &p));
      if (!CHECK(!memcmp(got, want, m * n * sizeof *got)))
        printf("# %zux%zux%zu, form %u, %u wide\n", m, n, k, form, t->width);
    }
    memset(got, 7, m * n * sizeof *got);
    CHECK_OK(pln_integer_multiply(e, &p));
    CHECK(!memcmp(got, want, m * n * sizeof *got));
  }
  free(zero), free(a), free(b), free(want), free(got);
}

static void agrees(void) {
  static const size_t extents[][3] = {
      {1, 1, 1},    {1, 7, 5},    {2, 13, 9},   {3, 50, 40},  {4, 48, 33},
      {5, 1, 70},   {8, 96, 512}, {9, 49, 513}, {13, 97, 12}, {200, 5, 3},
      {1, 2100, 6}, {6, 1400, 4}, {20, 673, 2}, {129, 17, 7}, {7, 12, 1030},
      {4, 16, 515}, {3, 0, 2},    {0, 3, 2},    {9, 3, 0},    {1, 3, 0}};
  pln_engine *e = pln_engine_new(NULL, NULL);
  for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
    for (unsigned form = 0; form < 16; form++)
      compare(e, extents[i][0], extents[i][1], extents[i][2], form);
  pln_engine_free(e);
}

static pln_status multiply(pln_engine *e, void *ud) {
  static const uint8_t a[20], b[20];
  static const int16_t zero = 3;
  int32_t c[25];
  (void)ud;
  pln_integer_product p = {.m = 5,
                           .n = 5,
                           .k = 4,
                           .a = a,
                           .b = b,
                           .a_zero = &zero,
                           .b_zero = &zero,
                           .c = c};
  return pln_integer_multiply(e, &p);
}

static void hears_of_memory(void) {
  oom_sweep(multiply, NULL);
}

static const check_test tests[] = {
    {"every set of tiles agrees with the plain sum", agrees},
    {"memory that runs out is heard of", hears_of_memory},
};
CHECK_MAIN(tests)
