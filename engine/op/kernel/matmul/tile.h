/* tile.h: small tiles of a matrix product, held in registers: the basis of the
 * blocked product (gemm.c) and of convolutions (kernel/conv/conv.c).
 *
 * Each family of processors has its own set of tiles, chosen at run time. */

#ifndef PLN_OP_KERNEL_MATMUL_TILE_H
#define PLN_OP_KERNEL_MATMUL_TILE_H

#include "op/kernel/kernel.h"

/* Tiles have 8, 4, 2 or 1 rows and 1 to PLN_TILE_VECTORS vectors. */
enum { PLN_TILE_HEIGHTS = 4, PLN_TILE_VECTORS = 3, PLN_TILE_MOST_ROWS = 8 };
/* The most elements of a tile of any set. */
enum { PLN_MAX_TILE_ROWS = PLN_TILE_MOST_ROWS * 48 };

/* c = a * b, or c += a * b. Strides count elements. Row p of b is contiguous
 * and begins at b + b_at[p]; element (i, p) of a is at i * a_row + p * a_col;
 * row i of c at i * c_row. bias[i], unless NULL, is added last. */
typedef struct pln_tile {
  size_t k;
  const void *a;
  size_t a_row, a_col;
  const void *b;
  const size_t *b_at;
  void *c;
  size_t c_row;
  const void *bias;
  /* Cache lines to fetch meanwhile, `ahead_step` bytes apart, one for each row
   * of b; NULL: none. */
  const void *ahead;
  size_t ahead_step;
  bool add;
  bool single; /* the product has one row, whose sums have an order of their
                  own */
} pln_tile;

/* c[i * c_row + j * c_step] += sum over p of a[i * a_row + p] * b[j * b_row +
 * p], for i < m, j < n, p < k. */
typedef struct pln_dots {
  size_t m, n, k;
  const void *a;
  size_t a_row;
  const void *b;
  size_t b_row;
  void *c;
  size_t c_row, c_step;
} pln_dots;

typedef struct pln_tiles {
  bool fused;     /* has a fused multiply-add */
  uint32_t size;  /* bytes of an element */
  uint32_t rows;  /* rows of the highest tile */
  uint32_t lanes; /* elements of a vector */
  uint32_t width; /* elements of PLN_TILE_VECTORS vectors */
  /* Tiles by height (index 0: one row, 1: two, ...) and by number of vectors
   * minus one. They read whole vectors of b and write whole vectors of c. */
  void (*of[PLN_TILE_HEIGHTS][PLN_TILE_VECTORS])(const pln_tile *tile);
  void (*single[PLN_TILE_VECTORS])(const pln_tile *tile);
  /* One row by a packed panel of `width` elements: b_at and bias are not
   * used. The same bits as the tile of one row. */
  void (*panel_row)(const pln_tile *tile);
  /* Packs `k` rows of n elements, `from_row` apart, into panels: each has
   * `width` elements of all rows, densely. The last one ends with zeros. */
  void (*pack)(void *to, const void *from, size_t from_row, size_t k, size_t n);
  /* One panel of a transposed source, n <= width: element (p, j) is at
   * j * from_col + p. */
  void (*pack_transposed)(void *to, const void *from, size_t from_col, size_t k,
                          size_t n);
  void (*dots)(const pln_dots *dots);
  /* c[i][j] += sum over p of a[i][p] * b[p][j] for j < n; row p of b is at p *
   * b_row (b_at and bias are not used). For 1, 2 and 4 rows. */
  void (*rows_sum[3])(const pln_tile *tile, size_t n, size_t b_row);
} pln_tiles;

/* The sets that this processor can run, best first; NULL past the last one, and
 * for dtypes other than FLOAT32 and FLOAT64. */
const pln_tiles *pln_tiles_at(pln_dtype dtype, uint32_t index);
/* The best set. */
static inline const pln_tiles *pln_tiles_for(pln_dtype dtype) {
  return pln_tiles_at(dtype, 0);
}
/* Computes m rows of n <= width elements with the tiles of a set and writes
 * only those; b is read in whole vectors. */
void pln_tiles_run(const pln_tiles *set, const pln_tile *tile, size_t m,
                   size_t n);
/* Columns [at, at + count) of a tile are stored at c + to, ... in each row. */
typedef struct pln_tile_part {
  size_t at, count, to;
} pln_tile_part;
/* The same, storing only the columns in the parts. */
void pln_tiles_run_parts(const pln_tiles *set, const pln_tile *tile, size_t m,
                         size_t n, uint32_t n_parts,
                         const pln_tile_part *parts);

#endif
