/* integer_gemm.c: the product of two byte matrices. Called by
 * kernel/quantize/matmul.c.
 *
 * Blocks of both are packed as int16 minus their zero points, those of b in
 * pairs of rows whose elements alternate, and multiplied tile by tile. With few
 * rows of a, b is read in place, as rows that are accumulated; its zero points
 * are subtracted at the end.
 *
 * Sums are uint32, so that they wrap; the result does not depend on the
 * order. */

#include "op/kernel/matmul/integer_gemm.h"
#include "op/kernel/multiversion.h"

/* Extents of a block: of k, of n, of m. WIDE is a multiple of the width of each
 * set, HIGH of its rows. */
enum { DEPTH = 512, WIDE = 672, HIGH = 128 };
/* Elements of the largest tile. */
enum { TILE_ROWS = 8, TILE_WIDTH = 48 };
/* Up to this many rows of a, b is read in place; columns at a time. */
enum { FEW_ROWS = 4, NEAR = 2048 };

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

/* ------------------------------------------------------------------ copying */

#define WIDEN(T)                                                      \
  PLN_MULTIVERSION static void widen_##T(const T *from, int16_t zero, \
                                         size_t n, int16_t *to) {     \
    for (size_t i = 0; i < n; i++)                                    \
      to[i] = (int16_t)(from[i] - zero);                              \
  }
WIDEN(int8_t)
WIDEN(uint8_t)

/* Interleaves two rows, minus the zero points of the columns. */
#define ZIP(T)                                                            \
  PLN_MULTIVERSION static void zip_##T(const T *first, const T *second,   \
                                       const int16_t *zero, size_t n,     \
                                       int16_t *restrict to) {            \
    for (size_t j = 0; j < n; j++) {                                      \
      to[2 * j] = (int16_t)(first[j] - zero[j]);                          \
      to[2 * j + 1] = (int16_t)(second[j] - zero[j]);                     \
    }                                                                     \
  }                                                                       \
  static void zip_last_##T(const T *first, const int16_t *zero, size_t n, \
                           int16_t *to) {                                 \
    for (size_t j = 0; j < n; j++) {                                      \
      to[2 * j] = (int16_t)(first[j] - zero[j]);                          \
      to[2 * j + 1] = 0;                                                  \
    }                                                                     \
  }
ZIP(int8_t)
ZIP(uint8_t)

typedef struct blocks {
  const pln_integer_product *p;
  const pln_integer_tiles *tiles;
  int16_t *a, *b;
  size_t k, depth, pairs; /* rows [k, k + depth) of b */
  size_t j, wide;         /* columns of b */
} blocks;

/* Rows [i, i + n), and rows of 0 up to whole tiles. */
static void pack_a(const blocks *s, size_t i, size_t n) {
  const pln_integer_product *p = s->p;
  size_t row = 2 * s->pairs;
  size_t rows = (n + s->tiles->rows - 1) / s->tiles->rows * s->tiles->rows;
  memset(s->a, 0, rows * row * sizeof *s->a);
  for (size_t r = 0; r < n; r++) {
    int16_t zero = p->a_zero[(i + r) * p->a_zero_step];
    size_t at = (i + r) * p->k + s->k;
    if (p->a_signed)
      widen_int8_t((const int8_t *)p->a + at, zero, s->depth, s->a + r * row);
    else
      widen_uint8_t((const uint8_t *)p->a + at, zero, s->depth, s->a + r * row);
  }
}

/* Pair `q` of rows, of n columns from j on. */
static void pack_pair(const blocks *s, size_t q, size_t j, size_t n,
                      const int16_t *zero, int16_t *to) {
  const pln_integer_product *p = s->p;
  size_t at = (s->k + 2 * q) * p->n + j;
  bool both = 2 * q + 1 < s->depth;
  const int8_t *x = (const int8_t *)p->b + at;
  const uint8_t *y = (const uint8_t *)p->b + at;
  if (p->b_signed && both)
    zip_int8_t(x, x + p->n, zero, n, to);
  else if (p->b_signed)
    zip_last_int8_t(x, zero, n, to);
  else if (both)
    zip_uint8_t(y, y + p->n, zero, n, to);
  else
    zip_last_uint8_t(y, zero, n, to);
}

static void pack_b(const blocks *s) {
  size_t width = s->tiles->width;
  int16_t zero[TILE_WIDTH], *to = s->b;
  for (size_t j = 0; j < s->wide; j += width) {
    size_t n = min_size(width, s->wide - j);
    for (size_t i = 0; i < n; i++)
      zero[i] = s->p->b_zero[(s->j + j + i) * s->p->b_zero_step];
    if (n < width)
      memset(to, 0, s->pairs * 2 * width * sizeof *to);
    for (size_t q = 0; q < s->pairs; q++, to += 2 * width)
      pack_pair(s, q, s->j + j, n, zero, to);
  }
}

/* -------------------------------------------------------------------- tiles */

/* A tile of which only m x n elements are in c. */
static void run_edge(const blocks *s, const int16_t *a, const int16_t *b,
                     size_t m, size_t n, uint32_t *c) {
  uint32_t tile[TILE_ROWS * TILE_WIDTH];
  size_t width = s->tiles->width;
  s->tiles->tile(a, 2 * s->pairs, b, s->pairs, tile, width, false);
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++) {
      uint32_t *to = &c[i * s->p->n + j];
      *to = (s->k > 0 ? *to : 0) + tile[i * width + j];
    }
}

static void run_tiles(const blocks *s, size_t i, size_t high) {
  const pln_integer_tiles *t = s->tiles;
  for (size_t j = 0; j < s->wide; j += t->width)
    for (size_t r = 0; r < high; r += t->rows) {
      const int16_t *a = s->a + r * 2 * s->pairs;
      const int16_t *b = s->b + j * 2 * s->pairs;
      uint32_t *c = (uint32_t *)s->p->c + (i + r) * s->p->n + s->j + j;
      size_t m = min_size(t->rows, high - r),
             n = min_size(t->width, s->wide - j);
      if (m == t->rows && n == t->width)
        t->tile(a, 2 * s->pairs, b, s->pairs, c, s->p->n, s->k > 0);
      else
        run_edge(s, a, b, m, n, c);
    }
}

static void run_blocks(const pln_engine *engine, blocks *s) {
  const pln_integer_product *p = s->p;
  size_t done = 0;
  for (s->j = 0; s->j < p->n; s->j += WIDE) {
    s->wide = min_size(WIDE, p->n - s->j);
    for (s->k = 0; s->k < p->k; s->k += DEPTH) {
      s->depth = min_size(DEPTH, p->k - s->k);
      s->pairs = (s->depth + 1) / 2;
      pack_b(s);
      for (size_t i = 0; i < p->m; i += HIGH) {
        size_t high = min_size(HIGH, p->m - i);
        if (pln_is_stopped_after(engine, &done, high * s->wide))
          return;
        pack_a(s, i, high);
        run_tiles(s, i, high);
      }
    }
  }
}

pln_status pln_integer_multiply_with(pln_engine *engine,
                                     const pln_integer_tiles *tiles,
                                     const pln_integer_product *p) {
  size_t pairs = (min_size(p->k, DEPTH) + 1) / 2;
  size_t rows = min_size(p->m, HIGH) + TILE_ROWS;
  size_t columns = min_size(p->n, WIDE) + TILE_WIDTH;
  size_t bytes = (rows + columns) * 2 * pairs * sizeof(int16_t);
  if (p->m == 0 || p->n == 0)
    return PLN_OK;
  if (p->k == 0) {
    memset(p->c, 0, p->m * p->n * sizeof *p->c);
    return PLN_OK;
  }
  int16_t *memory = pln_mem_new(engine, bytes);
  if (!memory)
    return pln_nomem(engine);
  blocks s = {
      .p = p, .tiles = tiles, .a = memory, .b = memory + rows * 2 * pairs};
  run_blocks(engine, &s);
  pln_mem_free(engine, memory, bytes);
  return PLN_OK;
}

/* ------------------------------------------------------------ few rows of a */

/* c[j] += the sum of four rows of b, each times an element of a. */
#define ADD_ROWS(T)                                                           \
  PLN_MULTIVERSION static void add_rows_##T(const T *b, size_t row,           \
                                            const int32_t *a, size_t n,       \
                                            uint32_t *restrict c) {           \
    const T *b1 = b + row, *b2 = b1 + row, *b3 = b2 + row;                    \
    for (size_t j = 0; j < n; j++)                                            \
      c[j] += (uint32_t)(a[0] * b[j] + a[1] * b1[j] + a[2] * b2[j] +          \
                         a[3] * b3[j]);                                       \
  }                                                                           \
  PLN_MULTIVERSION static void add_row_##T(const T *b, int32_t a, size_t n,   \
                                           uint32_t *restrict c) {            \
    for (size_t j = 0; j < n; j++)                                            \
      c[j] += (uint32_t)(a * b[j]);                                           \
  }                                                                           \
  static void add_all_##T(const T *b, size_t row, const int32_t *a, size_t k, \
                          size_t n, uint32_t *c) {                            \
    size_t p = 0;                                                             \
    for (; p + 4 <= k; p += 4)                                                \
      add_rows_##T(b + p * row, row, a + p, n, c);                            \
    for (; p < k; p++)                                                        \
      add_row_##T(b + p * row, a[p], n, c);                                   \
  }
ADD_ROWS(int8_t)
ADD_ROWS(uint8_t)

/* Rows [k, k + n) of b by a row of a, into columns from j on. */
static void add_part(const pln_integer_product *p, size_t i, size_t k, size_t n,
                     size_t j) {
  int32_t a[DEPTH];
  size_t wide = min_size(NEAR, p->n - j), at = i * p->k + k;
  int32_t zero = p->a_zero[i * p->a_zero_step];
  uint32_t *c = (uint32_t *)p->c + i * p->n + j, sum = 0;
  for (size_t q = 0; q < n; q++) {
    int32_t x = p->a_signed ? ((const int8_t *)p->a)[at + q]
                            : ((const uint8_t *)p->a)[at + q];
    a[q] = x - zero;
    sum += (uint32_t)a[q];
  }
  if (p->b_signed)
    add_all_int8_t((const int8_t *)p->b + k * p->n + j, p->n, a, n, wide, c);
  else
    add_all_uint8_t((const uint8_t *)p->b + k * p->n + j, p->n, a, n, wide, c);
  for (size_t q = 0; q < wide; q++)
    c[q] -= sum * (uint32_t)p->b_zero[(j + q) * p->b_zero_step];
}

pln_status pln_integer_multiply(pln_engine *engine,
                                const pln_integer_product *p) {
  if (p->m > FEW_ROWS)
    return pln_integer_multiply_with(engine, pln_integer_tiles_at(0), p);
  if (p->m == 0 || p->n == 0)
    return PLN_OK;
  memset(p->c, 0, p->m * p->n * sizeof *p->c);
  for (size_t j = 0; j < p->n; j += NEAR)
    for (size_t k = 0; k < p->k && !pln_is_stopped(engine); k += DEPTH)
      for (size_t i = 0; i < p->m; i++)
        add_part(p, i, k, min_size(DEPTH, p->k - k), j);
  return PLN_OK;
}
