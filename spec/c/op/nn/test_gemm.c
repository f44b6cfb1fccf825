/* test_gemm.c: products of matrices: small ones computed by hand, as tables
 * (op_table.h); then blocked ones of every set of tiles beside the plain sum,
 * with extents around those of tiles and blocks. */

#include "oom.h"

#include "op_table.h"

#include "op/kernel/matmul/gemm.h"

/* ------------------------------------------------------------------- tables */

static void multiplies(void) {
  static const row rows[] = {
      {"nn.matmul",
       "",
       {"float32 2x3: 1 2 3 4 5 6", "float32 3x2: 1 0 0 1 1 1"},
       "float32 2x2: 4 5 10 11",
       0},
      {"nn.matmul",
       "",
       {"float64 2: 1 2", "float64 2x3: 1 2 3 4 5 6"},
       "float64 3: 9 12 15",
       0},
      {"nn.matmul",
       "",
       {"float32 2x2: 1 2 3 4", "float32 2: 10 1"},
       "float32 2: 12 34",
       0},
      {"nn.matmul", "", {"float32 2: 1 2", "float32 2: 3 4"}, "float32: 11", 0},
      {"nn.matmul",
       "",
       {"float16 1x2: 1 0.5", "float16 2x1: 3 4"},
       "float16 1x1: 5",
       0},
      {"nn.matmul",
       "",
       {"bfloat16 1x2: 1 0.5", "bfloat16 2x1: 3 4"},
       "bfloat16 1x1: 5",
       0},
      {"nn.matmul",
       "",
       {"int32 1x2: 2147483647 2", "int32 2x1: 2 1"},
       "int32 1x1: 0",
       0},
      {"nn.matmul",
       "",
       {"uint64 1x1: 4294967296", "uint64 1x1: 4294967296"},
       "uint64 1x1: 0",
       0},
      {"nn.matmul",
       "",
       {"float32 2x1x2: 1 2 3 4", "float32 2x1: 1 10"},
       "float32 2x1x1: 21 43",
       0},
      {"nn.matmul",
       "",
       {"float32 1x2: 1 10", "float32 2x2x1: 1 2 3 4"},
       "float32 2x1x1: 21 43",
       0},
      {"nn.matmul",
       "",
       {"float32 2x1x1x1: 1 2", "float32 1x3x1x1: 1 10 100"},
       "float32 2x3x1x1: 1 10 100 2 20 200",
       0},
      {"nn.matmul",
       "",
       {"float32 2x0:", "float32 0x3:"},
       "float32 2x3: 0 0 0 0 0 0",
       0},
      {"nn.matmul", "", {"int64 2x0:", "int64 0x2:"}, "int64 2x2: 0 0 0 0", 0},
      {"nn.matmul",
       "",
       {"float32 0x2:", "float32 2x3: 1 2 3 4 5 6"},
       "float32 0x3:",
       0},
      {"nn.matmul",
       "",
       {"float32 1x1: inf", "float32 1x2: 0 1"},
       "float32 1x2: nan inf",
       0},
  };
  run_rows(ROWS(rows));
}

static void scales_and_adds(void) {
  static const row rows[] = {
      {"nn.gemm",
       "alpha=2.0 beta=0.5",
       {"float32 1x2: 1 2", "float32 2x2: 1 2 3 4", "float32 2: 10 20"},
       "float32 1x2: 19 30",
       0},
      {"nn.gemm",
       "transA=1 transB=1",
       {"float32 2x1: 1 2", "float32 2x2: 1 2 3 4"},
       "float32 1x2: 5 11",
       0},
      {"nn.gemm",
       "",
       {"float64 2x1: 1 2", "float64 1x2: 1 10", "float64 2x1: 100 200"},
       "float64 2x2: 101 110 202 220",
       0},
      {"nn.gemm",
       "",
       {"float16 1x1: 2", "float16 1x1: 3", "float16: 0.5"},
       "float16 1x1: 6.5",
       0},
      {"nn.gemm",
       "alpha=3.0",
       {"int32 1x1: 2", "int32 1x1: 3", "int32 1: 1"},
       "int32 1x1: 19",
       0},
      {"nn.gemm",
       "",
       {"float32 2x0:", "float32 0x2:", "float32 2: 1 2"},
       "float32 2x2: 1 2 1 2",
       0},
  };
  run_rows(ROWS(rows));
}

/* ---------------------------------------------------------- beside the plain
 */

static uint32_t noise;

/* A number of few bits, so that sums of float are exact. */
static double next_number(void) {
  noise = noise * 1664525u + 1013904223u;
  return (double)(int)((noise >> 16) % 17) - 8;
}

static double get(pln_dtype dtype, const void *data, size_t i) {
  return dtype == PLN_FLOAT32 ? (double)((const float *)data)[i]
                              : ((const double *)data)[i];
}

static void put(pln_dtype dtype, void *data, size_t i, double x) {
  if (dtype == PLN_FLOAT32)
    ((float *)data)[i] = (float)x;
  else
    ((double *)data)[i] = x;
}

static void *numbers(pln_dtype dtype, size_t n) {
  void *data = malloc(n * 8 + 8);
  for (size_t i = 0; data && i < n; i++)
    put(dtype, data, i, next_number());
  return data;
}

/* c as pln_gemm_run should leave it; what lies between rows stays. */
static void plain(pln_dtype dtype, const pln_product *s) {
  for (size_t i = 0; i < s->m; i++)
    for (size_t j = 0; j < s->n; j++) {
      double sum = s->add ? get(dtype, s->c, i * s->c_row + j) : 0;
      if (!s->add && s->bias)
        sum += get(dtype, s->bias, i);
      for (size_t p = 0; p < s->k; p++)
        sum += get(dtype, s->a, i * s->a_row + p * s->a_col) *
               get(dtype, s->b, p * s->b_row + j * s->b_col);
      put(dtype, s->c, i * s->c_row + j, sum);
    }
}

static void compare(pln_dtype dtype, const pln_tiles *tiles, pln_product s,
                    unsigned form) {
  pln_gemm gemm;
  size_t size = tiles->size, count = s.m * (s.n + 3);
  bool turn_a = form & 1, turn_b = form & 2;
  s.a_row = turn_a ? 1 : s.k;
  s.a_col = turn_a ? s.m : 1;
  s.b_row = turn_b ? 1 : s.n;
  s.b_col = turn_b ? s.k : 1;
  s.c_row = s.n == 1 ? 1 : s.n + 3; /* with room between rows */
  s.add = form & 4;
  void *a = numbers(dtype, s.m * s.k), *b = numbers(dtype, s.k * s.n);
  void *bias = numbers(dtype, s.m), *c = numbers(dtype, count);
  void *want = malloc(count * 8 + 8);
  if (a && b && c && bias && want) {
    s.a = a, s.b = b, s.c = want, s.bias = form & 8 ? bias : NULL;
    memcpy(want, c, count * size);
    plain(dtype, &s);
    s.c = c;
    CHECK_OK(pln_gemm_begin_with(engine, tiles, s.n, s.k, &gemm));
    pln_gemm_run(&gemm, &s);
    pln_gemm_end(&gemm);
    if (!CHECK(!memcmp(c, want, count * size)))
      printf("# %zux%zux%zu, form %u, %u lanes\n", s.m, s.n, s.k, form,
             tiles->lanes);
  }
  free(a), free(b), free(c), free(bias), free(want);
}

static void agrees(void) {
  static const size_t extents[][3] = {
      {1, 1, 1},    {1, 7, 5},      {2, 13, 9},    {3, 50, 40},   {4, 48, 33},
      {5, 1, 70},   {5, 3, 300},    {8, 96, 256},  {9, 49, 257},  {13, 97, 12},
      {15, 31, 1},  {16, 24, 8},    {200, 5, 3},   {193, 10, 17}, {1, 2100, 6},
      {6, 1400, 4}, {20, 673, 2},   {7, 12, 520},  {9, 6, 2100},  {17, 3, 2100},
      {4, 1030, 7}, {1030, 1, 6},   {1, 3, 0},     {9, 3, 0},     {0, 3, 2},
      {3, 0, 2},    {33, 690, 140}, {6, 1400, 50}, {25, 300, 260}};
  begin();
  for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
    for (unsigned form = 0; form < 16; form++)
      for (int d = 0; d < 2; d++) {
        pln_dtype dtype = d ? PLN_FLOAT64 : PLN_FLOAT32;
        pln_product s = {
            .m = extents[i][0], .n = extents[i][1], .k = extents[i][2]};
        const pln_tiles *tiles;
        for (uint32_t t = 0; (tiles = pln_tiles_at(dtype, t)); t++)
          compare(dtype, tiles, s, form);
      }
  end();
}

/* A row by a panel: the bits of the tile of one row. */
static void multiplies_a_panel(pln_dtype dtype, const pln_tiles *tiles,
                               size_t k, bool add) {
  size_t at[40], n = tiles->width;
  void *a = numbers(dtype, 3 * k), *b = numbers(dtype, k * n);
  void *c = numbers(dtype, n), *want = malloc(n * 8 + 8);
  for (size_t p = 0; p < k; p++)
    at[p] = p * n;
  if (a && b && c && want) {
    for (size_t i = 0; i < 3 * k; i++) /* sums that are rounded */
      put(dtype, a, i, next_number() / 7);
    memcpy(want, c, n * tiles->size);
    pln_tile tile = {
        .k = k, .a = a, .a_col = 3, .b = b, .b_at = at, .c = want, .add = add};
    pln_tiles_run(tiles, &tile, 1, n);
    tile.c = c;
    tiles->panel_row(&tile);
    CHECK(!memcmp(c, want, n * tiles->size));
  }
  free(a), free(b), free(c), free(want);
}

static void panels_agree(void) {
  const pln_tiles *tiles;
  for (int d = 0; d < 2; d++) {
    pln_dtype dtype = d ? PLN_FLOAT64 : PLN_FLOAT32;
    for (uint32_t t = 0; (tiles = pln_tiles_at(dtype, t)); t++)
      for (size_t k = 1; k <= 40; k += 3)
        for (int add = 0; add < 2; add++)
          multiplies_a_panel(dtype, tiles, k, add != 0);
  }
}

static void bounds_scratch(void) {
  pln_gemm gemm;
  begin();
  for (int d = 0; d < 2; d++) {
    CHECK_OK(pln_gemm_begin(engine, d ? PLN_FLOAT64 : PLN_FLOAT32, 1000000,
                            1000000, &gemm));
    CHECK(gemm.bytes <= PLN_GEMM_SCRATCH);
    pln_gemm_end(&gemm);
  }
  CHECK(!pln_tiles_at(PLN_FLOAT16, 0));
  end();
}

/* ------------------------------------------------------------------ failures
 */

static pln_status multiply_halves(pln_engine *e, void *ud) {
  const int64_t dims[2] = {20, 20};
  pln_builder *b;
  pln_tensor *t = NULL, *out = NULL;
  pln_ref node = 0;
  (void)ud;
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = pln_tensor_new(e, PLN_FLOAT16, 2, dims, &t);
  if (status == PLN_OK)
    status = pln_build_constant(b, t, &node);
  pln_tensor_release(t);
  pln_ref args[3] = {node, node, node};
  if (status == PLN_OK)
    status = pln_build_call(b, pln_op_find(e, pln_text("nn.gemm")), 0, 0, 3,
                            args, &node);
  if (status == PLN_OK)
    status = pln_eval_call(pln_builder_graph(b), node, &out);
  pln_tensor_release(out);
  pln_builder_free(b);
  return status;
}

static void hears_of_memory(void) {
  oom_sweep(multiply_halves, NULL);
}

static const check_test tests[] = {
    {"products of matrices by hand", multiplies},
    {"gemm by hand", scales_and_adds},
    {"every set of tiles agrees with the plain sum", agrees},
    {"a row by a panel has the bits of a tile", panels_agree},
    {"scratch is bounded", bounds_scratch},
    {"memory that runs out is heard of", hears_of_memory},
};
CHECK_MAIN(tests)
