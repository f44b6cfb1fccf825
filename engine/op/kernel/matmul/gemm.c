/* gemm.c: the blocked product of two float matrices. Called by matmul.c and by
 * the convolutions.
 *
 * A block of b is packed so that a tile reads it contiguously; a is read in
 * place, by rows or columns. Products that use each element of b only a few
 * times read b in place too: as rows that are accumulated, or by dot products
 * with rows of a.
 *
 * A sum over k is accumulated block by block in increasing order of k, so that
 * a product always gives the same bits. */

#include "op/kernel/matmul/blas.h"

/* Extents of a block in elements: of k, of n in panels of a tile's width, of m.
 * DEPTH x WIDE elements of 8 bytes and the offsets fit PLN_GEMM_SCRATCH; a
 * tile's panel of b fits the L1 cache, HIGH x DEPTH of a the L2 cache. */
enum { DEPTH = 256, WIDE = 672, HIGH = 192 };
/* Up to this many rows of a, b is read in place, row by row; if both are
 * contiguous along k, up to as many as a vector has elements. */
enum { FEW_ROWS = 4 };
/* Columns whose sums stay in the L1 cache while rows are accumulated; elements
 * along k that do. */
enum { NEAR = 1024, ALONG = 2048 };

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

static size_t round_up(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

/* ------------------------------------------------------------------ scratch */

pln_status pln_gemm_begin_with(pln_engine *engine, const pln_tiles *tiles,
                               size_t n, size_t k, pln_gemm *out) {
  size_t depth = min_size(k, DEPTH);
  size_t wide = round_up(min_size(n, WIDE), tiles->width);
  size_t steps = round_up(depth * sizeof(size_t), 64);
  *out = (pln_gemm){.engine = engine, .tiles = tiles};
  out->bytes = 64 + steps + depth * wide * tiles->size;
  out->memory = pln_mem_new(engine, out->bytes);
  if (!out->memory)
    return pln_nomem(engine);
  uintptr_t at = (uintptr_t)out->memory;
  out->steps = (size_t *)(void *)((char *)out->memory + (64 - at % 64));
  out->block = (char *)out->steps + steps;
  for (size_t p = 0; p < depth; p++)
    out->steps[p] = p * tiles->width;
  return PLN_OK;
}

pln_status pln_gemm_begin(pln_engine *engine, pln_dtype dtype, size_t n,
                          size_t k, pln_gemm *out) {
  return pln_gemm_begin_with(engine, pln_tiles_for(dtype), n, k, out);
}

void pln_gemm_end(pln_gemm *gemm) {
  pln_mem_free(gemm->engine, gemm->memory, gemm->bytes);
  gemm->memory = NULL;
}

/* ------------------------------------------------------------------- blocks */

static const char *element(const void *data, size_t index, size_t size) {
  return (const char *)data + index * size;
}

/* A block: rows [p, p + k) of b, columns [j, j + n). */
typedef struct block {
  size_t p, k, j, n;
} block;

static void pack_block(const pln_gemm *g, const pln_product *s,
                       const block *b) {
  const pln_tiles *t = g->tiles;
  const char *from = element(s->b, b->p * s->b_row + b->j * s->b_col, t->size);
  char *to = g->block;
  for (size_t j = 0; j < b->n; j += t->width) {
    size_t n = min_size(t->width, b->n - j);
    if (s->b_col == 1)
      t->pack(to, from, s->b_row, b->k, n);
    else
      t->pack_transposed(to, from, s->b_col, b->k, n);
    to += b->k * t->width * t->size;
    from += t->width * s->b_col * t->size;
  }
}

/* Computes rows [i, i + m) of c within the block. */
static void multiply_block(const pln_gemm *g, const pln_product *s,
                           const block *b, size_t i, size_t m) {
  const pln_tiles *t = g->tiles;
  size_t size = t->size;
  pln_tile tile = {.k = b->k,
                   .a_row = s->a_row,
                   .a_col = s->a_col,
                   .b_at = g->steps,
                   .c_row = s->c_row,
                   .add = s->add || b->p > 0};
  tile.a = element(s->a, i * s->a_row + b->p * s->a_col, size);
  tile.bias = s->bias ? element(s->bias, i, size) : NULL;
  for (size_t j = 0; j < b->n; j += t->width) {
    tile.b = g->block + j * b->k * size;
    tile.c = (char *)s->c + (i * s->c_row + b->j + j) * size;
    pln_tiles_run(t, &tile, m, min_size(t->width, b->n - j));
  }
}

static void multiply_blocks(const pln_gemm *g, const pln_product *s) {
  size_t wide = WIDE / g->tiles->width * g->tiles->width;
  block b;
  for (b.j = 0; b.j < s->n; b.j += wide) {
    b.n = min_size(wide, s->n - b.j);
    for (b.p = 0; b.p < s->k; b.p += DEPTH) {
      b.k = min_size(DEPTH, s->k - b.p);
      pack_block(g, s, &b);
      for (size_t i = 0; i < s->m; i += HIGH)
        multiply_block(g, s, &b, i, min_size(HIGH, s->m - i));
    }
  }
}

/* ------------------------------------------------------------ few rows of a */

/* Without `add`, c begins with the bias. */
static void begin_sums(const pln_tiles *t, const pln_product *s) {
  for (size_t i = 0; i < s->m && !s->add; i++) {
    char *row = (char *)s->c + i * s->c_row * t->size;
    memset(row, 0, s->n * t->size);
    for (size_t j = 0; j < s->n && s->bias; j++)
      memcpy(row + j * t->size, element(s->bias, i, t->size), t->size);
  }
}

/* Reads b once. */
static void multiply_rows(const pln_tiles *t, const pln_product *s) {
  pln_tile tile = {
      .k = s->k, .a_row = s->a_row, .a_col = s->a_col, .c_row = s->c_row};
  for (size_t j = 0; j < s->n; j += NEAR)
    for (size_t i = 0; i < s->m;) {
      uint32_t height = s->m - i >= 4 ? 2 : s->m - i >= 2 ? 1 : 0;
      tile.a = element(s->a, i * s->a_row, t->size);
      tile.b = element(s->b, j, t->size);
      tile.c = (char *)s->c + (i * s->c_row + j) * t->size;
      t->rows_sum[height](&tile, min_size(NEAR, s->n - j), s->b_row);
      i += (size_t)1 << height;
    }
}

/* Both are contiguous along k: dot products of rows of a and columns of b, in
 * parts that stay in the cache. */
static void multiply_columns(const pln_tiles *t, const pln_product *s) {
  pln_dots d = {.m = s->m,
                .n = s->n,
                .a_row = s->a_row,
                .b_row = s->b_col,
                .c = s->c,
                .c_row = s->c_row,
                .c_step = 1};
  for (size_t p = 0; p < s->k; p += ALONG) {
    d.k = min_size(ALONG, s->k - p);
    d.a = element(s->a, p, t->size);
    d.b = element(s->b, p, t->size);
    t->dots(&d);
  }
}

/* One column: b by the rows of a. */
static void multiply_vector(const pln_tiles *t, const pln_product *s) {
  pln_dots d = {.m = 1,
                .n = s->m,
                .k = s->k,
                .a = s->b,
                .b = s->a,
                .b_row = s->a_row,
                .c = s->c,
                .c_step = s->c_row};
  t->dots(&d);
}

/* One column, with contiguous columns of a: these are accumulated as the rows
 * of the transposed a. */
static void multiply_transposed(const pln_tiles *t, const pln_product *s) {
  pln_product transposed = *s;
  transposed.m = 1;
  transposed.n = s->m;
  transposed.a = s->b;
  transposed.a_col = s->b_row;
  transposed.b = s->a;
  transposed.b_row = s->a_col;
  multiply_rows(t, &transposed);
}

static void run_own(const pln_gemm *gemm, const pln_product *s) {
  const pln_tiles *t = gemm->tiles;
  bool along = s->a_col == 1 && s->b_row == 1;
  bool vector = s->n == 1 && along;
  bool transposed = s->n == 1 && s->a_row == 1 && s->c_row == 1;
  bool rows = s->m <= FEW_ROWS && s->b_col == 1;
  bool columns = s->m <= t->lanes && along;
  if (s->k > 0 && !vector && !transposed && !rows && !columns) {
    multiply_blocks(gemm, s);
    return;
  }
  begin_sums(t, s);
  if (vector)
    multiply_vector(t, s);
  else if (transposed)
    multiply_transposed(t, s);
  else if (rows)
    multiply_rows(t, s);
  else if (columns)
    multiply_columns(t, s);
}

static void run_one(const pln_gemm *gemm, const pln_product *product) {
  if (!pln_blas_takes(gemm->engine, gemm->tiles, product)) {
    run_own(gemm, product);
    return;
  }
  if (product->bias)
    begin_sums(gemm->tiles, product);
  pln_blas_run(gemm->engine, gemm->tiles->size == sizeof(double), product);
}

/* From this many multiplications on a product is split, to poll for stops. */
#define MAX_WORK ((uint64_t)1 << 29)
enum { LEAST_ROWS = 256, MAX_COLUMNS = 2048 };

/* Rows of c computed together, so that packing b pays off. */
static size_t rows_of_block(const pln_product *s, size_t columns) {
  size_t rows = (size_t)(2 * MAX_WORK / ((uint64_t)columns * s->k));
  return rows < LEAST_ROWS ? LEAST_ROWS : rows;
}

/* The size of the next block, chosen so that no small rest remains. */
static size_t next_block(size_t left, size_t part) {
  return left < 2 * part ? left : part;
}

/* A requested stop leaves the rest unset; the evaluator drops the result. */
void pln_gemm_run(const pln_gemm *gemm, const pln_product *product) {
  const pln_product *all = product;
  size_t size = gemm->tiles->size, rows, columns;
  uint64_t line = (uint64_t)all->n * all->k;
  if (all->m < 2 * LEAST_ROWS || line < MAX_WORK / all->m) {
    run_one(gemm, all);
    return;
  }
  for (size_t j = 0; j < all->n; j += columns) {
    columns = next_block(all->n - j, MAX_COLUMNS);
    for (size_t i = 0; i < all->m; i += rows) {
      pln_product part = *all;
      rows = next_block(all->m - i, rows_of_block(all, columns));
      part.m = rows;
      part.n = columns;
      part.a = element(all->a, i * all->a_row, size);
      part.b = element(all->b, j * all->b_col, size);
      part.c = (char *)all->c + (i * all->c_row + j) * size;
      if (all->bias)
        part.bias = element(all->bias, i, size);
      if (pln_is_stopped(gemm->engine))
        return;
      run_one(gemm, &part);
    }
  }
}
