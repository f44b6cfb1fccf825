/* gemm.c: the blocked product of two float matrices. Called by matmul.c and by
 * the convolutions.
 *
 * A block of b is packed so that a tile reads it contiguously; a is read in
 * place, by rows or columns. Products that use each element of b only a few
 * times read b in place too: as rows that are accumulated, or by dot products
 * with rows of a.
 *
 * A sum over k is the sum of those of blocks of k, in increasing order, then
 * the bias is added; the depth of a block depends on the extents of the product
 * only. So a product always gives the same bits, which are those of ONNX
 * Runtime on processors with fused multiply-add, but for products of a few
 * rows. Threads share a product by rows or columns of c, which changes
 * no sum. */

#include "base/thread/thread_pool.h"
#include "op/kernel/matmul/blas.h"
#include "op/kernel/matmul/column.h"

/* Extents of a block in elements: of k (pln_gemm_depth, LEAST_DEPTH to
 * MOST_DEPTH), of n in panels of a tile's width, of m. Blocks of 8-byte
 * elements and the offsets fit PLN_GEMM_SCRATCH; a tile's panel of b fits the
 * L1 cache, HIGH x depth of a the L2 cache. */
enum { LEAST_DEPTH = 128, MOST_DEPTH = 1024, WIDE = 672, HIGH = 192 };
/* Up to this many rows of a, b is read in place, row by row; if both are
 * contiguous along k, up to as many as a vector has elements. */
enum { FEW_ROWS = 4 };
/* Up to this many rows of a, panels of b are packed one by one, if b takes more
 * bytes than L2_PART. */
enum { PANEL_ROWS = 256, L2_PART = 256 << 10 };
/* Columns whose sums stay in the L1 cache while rows are accumulated; elements
 * along k that do. */
enum { NEAR = 1024, ALONG = 2048 };
/* Between two looks whether to stop: rows and columns of b, and elements of one
 * that is multiplied by a vector. */
enum { LONG = 8192, MANY = 2048, POLLED = 1 << 22 };

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

static size_t round_up(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

/* ------------------------------------------------------------------ scratch */

size_t pln_gemm_depth(size_t n, size_t k) {
  size_t depth = LEAST_DEPTH;
  for (size_t wide = 64; n < k && n <= wide && depth < MOST_DEPTH; wide /= 2)
    depth *= 2;
  return depth;
}

/* The most elements of a block of products of up to k x n. */
static size_t block_elements(const pln_tiles *tiles, size_t n, size_t k) {
  size_t most =
      min_size(k, LEAST_DEPTH) * round_up(min_size(n, WIDE), tiles->width);
  size_t depth = MOST_DEPTH, wide = 16;
  for (; depth > LEAST_DEPTH; depth /= 2, wide *= 2) {
    size_t room =
        min_size(k, depth) * round_up(min_size(n, wide), tiles->width);
    most = room > most ? room : most;
  }
  return most;
}

pln_status pln_gemm_begin_with(pln_engine *engine, const pln_tiles *tiles,
                               size_t n, size_t k, pln_gemm *out) {
  size_t depth = min_size(k, MOST_DEPTH);
  size_t block = block_elements(tiles, n, k) * tiles->size;
  size_t steps = round_up(depth * sizeof(size_t), 64);
  *out = (pln_gemm){.engine = engine,
                    .tiles = tiles,
                    .workers = pln_parallel_workers(engine),
                    .block_bytes = round_up(block, 64)};
  out->bytes = 64 + steps + out->workers * out->block_bytes;
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

static void pack_block(const pln_gemm *g, const pln_product *s, const block *b,
                       char *to) {
  const pln_tiles *t = g->tiles;
  const char *from = element(s->b, b->p * s->b_row + b->j * s->b_col, t->size);
  if (s->b_col == 1) {
    t->pack(to, from, s->b_row, b->k, b->n);
    return;
  }
  for (size_t j = 0; j < b->n; j += t->width) {
    t->pack_transposed(to, from, s->b_col, b->k, min_size(t->width, b->n - j));
    to += b->k * t->width * t->size;
    from += t->width * s->b_col * t->size;
  }
}

/* Computes rows [i, i + m) of c within the block. */
static void multiply_block(const pln_gemm *g, const pln_product *s,
                           const block *b, const char *packed, size_t i,
                           size_t m) {
  const pln_tiles *t = g->tiles;
  size_t size = t->size;
  pln_tile tile = {.k = b->k,
                   .a_row = s->a_row,
                   .a_col = s->a_col,
                   .b_at = g->steps,
                   .c_row = s->c_row,
                   .add = s->add || b->p > 0};
  tile.a = element(s->a, i * s->a_row + b->p * s->a_col, size);
  if (s->bias && !s->add && b->p + b->k == s->k)
    tile.bias = element(s->bias, i, size);
  for (size_t j = 0; j < b->n; j += t->width) {
    tile.b = packed + j * b->k * size;
    tile.c = (char *)s->c + (i * s->c_row + b->j + j) * size;
    pln_tiles_run(t, &tile, m, min_size(t->width, b->n - j));
  }
}

/* Rows [i, i + m) of c within a panel of the block. */
static void multiply_panel_rows(const pln_gemm *g, const pln_product *s,
                                const block *b, const pln_tile *panel, size_t j,
                                size_t i, size_t m) {
  const pln_tiles *t = g->tiles;
  pln_tile tile = *panel;
  tile.a = element(s->a, i * s->a_row + b->p * s->a_col, t->size);
  tile.c = (char *)s->c + (i * s->c_row + b->j + j) * t->size;
  if (s->bias && !s->add && b->p + b->k == s->k)
    tile.bias = element(s->bias, i, t->size);
  pln_tiles_run(t, &tile, m, min_size(t->width, b->n - j));
}

/* A panel by all rows of a. It is packed where the last one was, in the L1
 * cache. The first tiles fetch what the next one will be packed of: each a line
 * of all rows. */
static void multiply_panel(const pln_gemm *g, const pln_product *s,
                           const block *b, size_t j, char *packed) {
  enum { LINE = 64 };
  const pln_tiles *t = g->tiles;
  size_t n = min_size(t->width, b->n - j), i = 0;
  const char *from =
      element(s->b, b->p * s->b_row + (b->j + j) * s->b_col, t->size);
  const char *next = from + n * t->size;
  const char *end = next + min_size(t->width, b->n - j - n) * t->size;
  pln_tile tile = {.k = b->k,
                   .a_row = s->a_row,
                   .a_col = s->a_col,
                   .b = packed,
                   .b_at = g->steps,
                   .c_row = s->c_row,
                   .ahead_step = s->b_row * t->size,
                   .add = s->add || b->p > 0};
  t->pack(packed, from, s->b_row, b->k, n);
  for (next -= (uintptr_t)next % LINE; next < end && i + t->rows <= s->m;
       next += LINE) {
    tile.ahead = next;
    multiply_panel_rows(g, s, b, &tile, j, i, t->rows);
    i += t->rows;
  }
  tile.ahead = NULL;
  if (i < s->m)
    multiply_panel_rows(g, s, b, &tile, j, i, s->m - i);
}

static void multiply_panels(const pln_gemm *g, const pln_product *s,
                            const block *b, char *packed) {
  for (size_t j = 0; j < b->n && !pln_is_stopped(g->engine);
       j += g->tiles->width)
    multiply_panel(g, s, b, j, packed);
}

/* True if b, which does not fit the L2 cache, is packed for few tiles only. */
static bool takes_panels(const pln_gemm *g, const pln_product *s) {
  return s->m <= PANEL_ROWS && s->b_col == 1 &&
         s->n * s->k * g->tiles->size > L2_PART;
}

static void multiply_blocks(const pln_gemm *g, const pln_product *s,
                            size_t depth, char *packed) {
  size_t wide = WIDE / g->tiles->width * g->tiles->width;
  block b;
  for (b.j = 0; b.j < s->n; b.j += wide) {
    b.n = min_size(wide, s->n - b.j);
    for (b.p = 0; b.p < s->k; b.p += depth) {
      b.k = min_size(depth, s->k - b.p);
      if (takes_panels(g, s)) {
        multiply_panels(g, s, &b, packed);
        continue;
      }
      pack_block(g, s, &b, packed);
      for (size_t i = 0; i < s->m; i += HIGH) {
        if (pln_is_stopped(g->engine))
          return;
        multiply_block(g, s, &b, packed, i, min_size(HIGH, s->m - i));
      }
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

/* Adds summands [p, p + tile->k) to columns [j, j + NEAR). */
static void add_rows(const pln_tiles *t, const pln_product *s, pln_tile *tile,
                     size_t p, size_t j) {
  for (size_t i = 0; i < s->m;) {
    uint32_t height = s->m - i >= 4 ? 2 : s->m - i >= 2 ? 1 : 0;
    tile->a = element(s->a, i * s->a_row + p * s->a_col, t->size);
    tile->b = element(s->b, p * s->b_row + j, t->size);
    tile->c = (char *)s->c + (i * s->c_row + j) * t->size;
    t->rows_sum[height](tile, min_size(NEAR, s->n - j), s->b_row);
    i += (size_t)1 << height;
  }
}

/* Reads b once. */
static void multiply_rows(const pln_gemm *g, const pln_product *s) {
  pln_tile tile = {.a_row = s->a_row, .a_col = s->a_col, .c_row = s->c_row};
  for (size_t j = 0; j < s->n; j += NEAR)
    for (size_t p = 0; p < s->k; p += LONG) {
      if (pln_is_stopped(g->engine))
        return;
      tile.k = min_size(LONG, s->k - p);
      add_rows(g->tiles, s, &tile, p, j);
    }
}

/* Both are contiguous along k: dot products of rows of a and columns of b, in
 * parts that stay in the cache. */
static void multiply_columns(const pln_gemm *g, const pln_product *s) {
  const pln_tiles *t = g->tiles;
  pln_dots d = {.m = s->m,
                .a_row = s->a_row,
                .b_row = s->b_col,
                .c_row = s->c_row,
                .c_step = 1};
  for (size_t j = 0; j < s->n; j += MANY)
    for (size_t p = 0; p < s->k; p += ALONG) {
      if (pln_is_stopped(g->engine))
        return;
      d.n = min_size(MANY, s->n - j);
      d.k = min_size(ALONG, s->k - p);
      d.a = element(s->a, p, t->size);
      d.b = element(s->b, p + j * s->b_col, t->size);
      d.c = (char *)s->c + j * t->size;
      t->dots(&d);
    }
}

/* One column: b by the rows of a, whole groups of rows at a time. */
static void multiply_vector(const pln_gemm *g, const pln_product *s) {
  const pln_tiles *t = g->tiles;
  size_t rows = round_up(1 + POLLED / s->k, PLN_TILE_MOST_ROWS);
  pln_dots d = {.m = 1, .a = s->b, .b_row = s->a_row, .c_step = s->c_row};
  d.k = s->k;
  for (size_t i = 0; i < s->m && !pln_is_stopped(g->engine); i += rows) {
    d.n = min_size(rows, s->m - i);
    d.b = element(s->a, i * s->a_row, t->size);
    d.c = (char *)s->c + i * s->c_row * t->size;
    if (t->size == sizeof(float))
      pln_column_add(d.n, d.k, d.b, d.b_row, d.a, d.c, d.c_step);
    else
      t->dots(&d);
  }
}

/* One column, with contiguous columns of a: these are accumulated as the rows
 * of the transposed a. */
static void multiply_transposed(const pln_gemm *g, const pln_product *s) {
  pln_product transposed = *s;
  transposed.m = 1;
  transposed.n = s->m;
  transposed.a = s->b;
  transposed.a_col = s->b_row;
  transposed.b = s->a;
  transposed.b_row = s->a_col;
  multiply_rows(g, &transposed);
}

/* ----------------------------------------------------------- which algorithm
 */

typedef enum algorithm { BLOCKS, ROWS, COLUMNS, VECTOR, TRANSPOSED } algorithm;

/* Depends on the whole product, not on a worker's share of it. */
static algorithm choose_algorithm(const pln_tiles *t, const pln_product *s) {
  bool along = s->a_col == 1 && s->b_row == 1;
  if (s->n == 1 && along)
    return VECTOR;
  if (s->n == 1 && s->a_row == 1 && s->c_row == 1)
    return TRANSPOSED;
  if (s->m <= FEW_ROWS && s->b_col == 1)
    return ROWS;
  if (s->m <= t->lanes && along)
    return COLUMNS;
  return s->k > 0 ? BLOCKS : ROWS;
}

/* `depth`: that of the whole product. */
static void run_own(const pln_gemm *gemm, algorithm by, size_t depth,
                    const pln_product *s, char *packed) {
  if (by == BLOCKS) {
    multiply_blocks(gemm, s, depth, packed);
    return;
  }
  begin_sums(gemm->tiles, s);
  if (s->k == 0)
    return;
  switch (by) {
  case VECTOR: multiply_vector(gemm, s); break;
  case TRANSPOSED: multiply_transposed(gemm, s); break;
  case ROWS: multiply_rows(gemm, s); break;
  case COLUMNS: multiply_columns(gemm, s); break;
  case BLOCKS: break;
  }
}

/* ------------------------------------------------------------------- threads
 */

/* The number of multiplications that pays for another thread. */
enum { SHARED_WORK = 1 << 19 };

/* A product that workers share by rows or columns of c. */
typedef struct shared_product {
  const pln_gemm *gemm;
  const pln_product *all;
  algorithm by;
  bool by_columns;
  size_t step; /* rows or columns of a share */
} shared_product;

/* Columns are shared where there are more of them: each worker then packs its
 * own. Loops along columns of c, or along its rows where it is transposed, take
 * whole vectors but for the last ones, so shares are multiples of a vector. */
static void plan_shares(shared_product *shared, size_t workers) {
  const pln_product *s = shared->all;
  const pln_tiles *t = shared->gemm->tiles;
  switch (shared->by) {
  case BLOCKS: shared->by_columns = s->n >= s->m; break;
  case ROWS:
  case COLUMNS: shared->by_columns = true; break;
  case VECTOR:
  case TRANSPOSED: shared->by_columns = false; break;
  }
  size_t unit = t->width > PLN_TILE_MOST_ROWS ? t->width : PLN_TILE_MOST_ROWS;
  size_t extent = shared->by_columns ? s->n : s->m;
  shared->step = round_up((extent + workers - 1) / workers, unit);
}

static size_t count_shares(const shared_product *shared) {
  size_t extent = shared->by_columns ? shared->all->n : shared->all->m;
  return (extent + shared->step - 1) / shared->step;
}

static pln_product share_of(const shared_product *shared, size_t part) {
  pln_product s = *shared->all;
  size_t size = shared->gemm->tiles->size, from = part * shared->step;
  if (shared->by_columns) {
    s.n = min_size(shared->step, s.n - from);
    s.b = element(s.b, from * s.b_col, size);
    s.c = (char *)s.c + from * size;
    return s;
  }
  s.m = min_size(shared->step, s.m - from);
  s.a = element(s.a, from * s.a_row, size);
  s.c = (char *)s.c + from * s.c_row * size;
  if (s.bias)
    s.bias = element(s.bias, from, size);
  return s;
}

static void run_share(void *ud, size_t part, uint32_t worker) {
  const shared_product *shared = ud;
  const pln_gemm *g = shared->gemm;
  pln_product s = share_of(shared, part);
  size_t depth = pln_gemm_depth(shared->all->n, s.k);
  run_own(g, shared->by, depth, &s, g->block + worker * g->block_bytes);
}

static void run_shared(const pln_gemm *gemm, const pln_product *s) {
  shared_product shared = {.gemm = gemm, .all = s};
  double work = (double)s->m * (double)s->n * (double)s->k;
  size_t workers = gemm->workers;
  if (work < (double)workers * SHARED_WORK)
    workers = 1 + (size_t)(work / SHARED_WORK);
  shared.by = choose_algorithm(gemm->tiles, s);
  plan_shares(&shared, workers < gemm->workers ? workers : gemm->workers);
  pln_parallel_for(gemm->engine, count_shares(&shared), run_share, &shared);
}

/* ---------------------------------------------------------------- libraries */

/* A library does not look whether to stop, so it is called for parts of at most
 * this many multiplications, which take some 10 ms. Parts are at least as large
 * as LEAST along each axis, which keeps the library's speed. */
#define MAX_WORK ((size_t)1 << 29)
enum { LEAST_M = 512, LEAST_N = 1024, LEAST_K = 1024 };

/* The greatest extent of a part: of `least`, or more if the others are small,
 * and such that all parts are about equal. */
static size_t part_extent(size_t extent, size_t least, size_t other) {
  size_t most = other ? MAX_WORK / other : extent;
  most = most < least ? least : most;
  size_t parts = (extent + most - 1) / most;
  return parts > 1 ? (extent + parts - 1) / parts : extent;
}

/* Rows [i, ...), columns [j, ...) and the summands [p, ...) of a product. */
static pln_product part_of(const pln_product *s, size_t size, size_t i,
                           size_t j, size_t p) {
  pln_product part = *s;
  part.a = element(s->a, i * s->a_row + p * s->a_col, size);
  part.b = element(s->b, p * s->b_row + j * s->b_col, size);
  part.c = (char *)s->c + (i * s->c_row + j) * size;
  part.bias = s->bias && p == 0 ? element(s->bias, i, size) : NULL;
  part.add = s->add || p > 0;
  return part;
}

static void run_library(const pln_gemm *gemm, const pln_product *s) {
  size_t size = gemm->tiles->size;
  size_t m = min_size(s->m, LEAST_M), k = min_size(s->k, LEAST_K);
  size_t n = part_extent(s->n, LEAST_N, m * k);
  m = part_extent(s->m, LEAST_M, n * k);
  k = part_extent(s->k, LEAST_K, m * n);
  for (size_t j = 0; j < s->n; j += n)
    for (size_t i = 0; i < s->m; i += m)
      for (size_t p = 0; p < s->k; p += k) {
        pln_product part = part_of(s, size, i, j, p);
        part.m = min_size(m, s->m - i);
        part.n = min_size(n, s->n - j);
        part.k = min_size(k, s->k - p);
        if (pln_is_stopped(gemm->engine))
          return;
        if (part.bias)
          begin_sums(gemm->tiles, &part);
        pln_blas_run(gemm->engine, size == sizeof(double), &part);
      }
}

/* A requested stop leaves the rest unset; the evaluator drops the result. */
void pln_gemm_run(const pln_gemm *gemm, const pln_product *product) {
  if (pln_blas_takes(gemm->engine, gemm->tiles, product))
    run_library(gemm, product);
  else if (gemm->workers > 1)
    run_shared(gemm, product);
  else
    pln_gemm_run_on(gemm, 0, product);
}

void pln_gemm_run_on(const pln_gemm *gemm, uint32_t worker,
                     const pln_product *product) {
  run_own(gemm, choose_algorithm(gemm->tiles, product),
          pln_gemm_depth(product->n, product->k), product,
          gemm->block + worker * gemm->block_bytes);
}

/* Packed blocks are the same whatever b's strides are. */
bool pln_gemm_same_bits(const pln_gemm *gemm, const pln_product *x,
                        const pln_product *y) {
  return choose_algorithm(gemm->tiles, x) == BLOCKS &&
         choose_algorithm(gemm->tiles, y) == BLOCKS &&
         !pln_blas_takes(gemm->engine, gemm->tiles, x) &&
         !pln_blas_takes(gemm->engine, gemm->tiles, y);
}
