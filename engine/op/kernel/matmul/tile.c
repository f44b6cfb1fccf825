/* tile.c: small tiles of a float matrix product, one set per family of
 * processors. Called by gemm.c and conv.c.
 *
 * The sets differ only in vector length and fused multiply-add. A set with
 * optional instructions is chosen only if the processor has them. This file is
 * compiled with contraction of products and sums allowed. */

#include "op/kernel/matmul/tile.h"

#define UNROLL _Pragma("GCC unroll 8")
/* A product that is rounded before it is added. */
#if defined(__x86_64__) && defined(__GNUC__)
#define ROUNDED(product) __asm__("" : "+x"(product))
#else
#define ROUNDED(product) (void)(product)
#endif
/* Selects four elements of a and b by number; those of b follow those of a. */
#define SELECT(a, b, i) ((i) < 4 ? (a)[(i) % 4] : (b)[(i) % 4])
#define SHUFFLE(a, b, i, j, k, l)                                      \
  (quad) {                                                             \
    SELECT(a, b, i), SELECT(a, b, j), SELECT(a, b, k), SELECT(a, b, l) \
  }

#define T float
#define BYTES 16
#define ROWS 4
#define FUSED false
#define TARGET
#define NAME(x) base32_##x
#include "op/kernel/matmul/tile.def"
#define T double
#define BYTES 16
#define ROWS 4
#define FUSED false
#define TARGET
#define NAME(x) base64_##x
#include "op/kernel/matmul/tile.def"

#if defined(__x86_64__) && defined(__GNUC__)
#define T float
#define BYTES 32
#define ROWS 4
#define FUSED true
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) avx32_##x
#include "op/kernel/matmul/tile.def"
#define T double
#define BYTES 32
#define ROWS 4
#define FUSED true
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) avx64_##x
#include "op/kernel/matmul/tile.def"
#define T float
#define BYTES 64
#define ROWS 8
#define FUSED true
#define TARGET __attribute__((target("avx512f,avx512vl,fma")))
#define NAME(x) wide32_##x
#include "op/kernel/matmul/tile.def"
#define T double
#define BYTES 64
#define ROWS 8
#define FUSED true
#define TARGET __attribute__((target("avx512f,avx512vl,fma")))
#define NAME(x) wide64_##x
#include "op/kernel/matmul/tile.def"

static bool runs_wide(void) {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
}

static bool runs_avx(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static uint32_t find_sets(const pln_tiles **singles,
                          const pln_tiles **doubles) {
  uint32_t n = 0;
  if (runs_wide()) {
    singles[n] = &wide32_set;
    doubles[n++] = &wide64_set;
  }
  if (runs_avx()) {
    singles[n] = &avx32_set;
    doubles[n++] = &avx64_set;
  }
  singles[n] = &base32_set;
  doubles[n++] = &base64_set;
  return n;
}
#else
static uint32_t find_sets(const pln_tiles **singles,
                          const pln_tiles **doubles) {
  singles[0] = &base32_set;
  doubles[0] = &base64_set;
  return 1;
}
#endif

const pln_tiles *pln_tiles_at(pln_dtype dtype, uint32_t index) {
  const pln_tiles *singles[3], *doubles[3];
  if (index >= find_sets(singles, doubles))
    return NULL;
  return dtype == PLN_FLOAT32   ? singles[index]
         : dtype == PLN_FLOAT64 ? doubles[index]
                                : NULL;
}

/* The height, as a power of 2, of the tile for `m` rows or the first of
 * them. */
static uint32_t height_of(const pln_tiles *set, size_t m) {
  uint32_t height = 0;
  while (height + 1 < PLN_TILE_HEIGHTS && (size_t)2 << height <= m &&
         2u << height <= set->rows)
    height++;
  return height;
}

static void run_tile(const pln_tiles *set, const pln_tile *tile,
                     uint32_t height, uint32_t vectors) {
  (tile->single ? set->single : set->of[height])[vectors - 1](tile);
}

/* A tile computed into a buffer, because c gets only parts of it. */
typedef struct packed_side {
  const pln_tiles *set;
  uint32_t n_parts;
  const pln_tile_part *parts;
} packed_side;

/* Copies the parts of `rows` rows from c to the tile, or back. */
static void copy_parts(const packed_side *s, bool to_c, char *c, size_t c_row,
                       char *tile, size_t tile_row, size_t rows) {
  size_t size = s->set->size;
  for (size_t i = 0; i < rows; i++)
    for (uint32_t k = 0; k < s->n_parts; k++) {
      const pln_tile_part *p = &s->parts[k];
      char *there = c + (i * c_row + p->to) * size;
      char *here = tile + (i * tile_row + p->at) * size;
      memcpy(to_c ? there : here, to_c ? here : there, p->count * size);
    }
}

static void run_aside(const packed_side *s, const pln_tile *tile,
                      uint32_t height, uint32_t vectors) {
  double data[PLN_MAX_TILE_ROWS] __attribute__((aligned(64)));
  size_t row = (size_t)vectors * s->set->lanes, rows = (size_t)1 << height;
  pln_tile t = *tile;
  t.c = data;
  t.c_row = row;
  if (t.add) {
    memset(data, 0, rows * row * s->set->size);
    copy_parts(s, false, tile->c, tile->c_row, t.c, row, rows);
  }
  run_tile(s->set, &t, height, vectors);
  copy_parts(s, true, tile->c, tile->c_row, t.c, row, rows);
}

void pln_tiles_run_parts(const pln_tiles *set, const pln_tile *tile, size_t m,
                         size_t n, uint32_t n_parts,
                         const pln_tile_part *parts) {
  packed_side s = {set, n_parts, parts};
  uint32_t vectors = (uint32_t)((n + set->lanes - 1) / set->lanes);
  bool whole = n_parts == 1 && parts[0].at == 0 && parts[0].to == 0 &&
               parts[0].count == (size_t)vectors * set->lanes;
  pln_tile t = *tile;
  while (m > 0) {
    uint32_t height = height_of(set, m);
    size_t rows = (size_t)1 << height;
    if (whole)
      run_tile(set, &t, height, vectors);
    else
      run_aside(&s, &t, height, vectors);
    t.a = (const char *)t.a + rows * t.a_row * set->size;
    t.c = (char *)t.c + rows * t.c_row * set->size;
    if (t.bias)
      t.bias = (const char *)t.bias + rows * set->size;
    m -= rows;
  }
}

void pln_tiles_run(const pln_tiles *set, const pln_tile *tile, size_t m,
                   size_t n) {
  pln_tile_part all = {0, n, 0};
  pln_tiles_run_parts(set, tile, m, n, 1, &all);
}
