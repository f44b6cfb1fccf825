/* test_blas.c: products of matrices by OpenBLAS beside our own; skipped (exit
 * status 77) where the library is not installed. */

#include "check.h"

#include <stdlib.h>

#include "op/kernel/matmul/blas.h"

enum { M = 150, N = 170, K = 190 };

static pln_engine *engine;

/* Small whole numbers: their sums are exact in any order. */
static void fill(bool twice, void *data, size_t n, int step) {
  for (size_t i = 0; i < n; i++)
    if (twice)
      ((double *)data)[i] = (double)(int)(i * (size_t)step % 9) - 4;
    else
      ((float *)data)[i] = (float)(int)(i * (size_t)step % 9) - 4;
}

static void compute(pln_blas_choice choice, bool twice, const pln_product *s) {
  pln_gemm gemm;
  CHECK_OK(pln_blas_set_choice(engine, choice));
  CHECK_OK(
      pln_gemm_begin(engine, twice ? PLN_FLOAT64 : PLN_FLOAT32, N, K, &gemm));
  pln_gemm_run(&gemm, s);
  pln_gemm_end(&gemm);
}

/* One form: which operands are turned, whether sums begin with something. */
static void compare(bool twice, unsigned form) {
  size_t size = twice ? 8 : 4;
  char *a = malloc(M * K * size), *b = malloc(K * N * size);
  char *own = malloc(M * N * size), *other = malloc(M * N * size);
  char *bias = malloc(M * size);
  REQUIRE(a && b && own && other && bias);
  fill(twice, a, M * K, 5);
  fill(twice, b, K * N, 7);
  fill(twice, own, M * N, 2);
  fill(twice, other, M * N, 2);
  fill(twice, bias, M, 1);
  pln_product s = {.m = M, .n = N, .k = K, .a = a, .b = b, .c_row = N};
  s.a_row = form & 1 ? 1 : K;
  s.a_col = form & 1 ? M : 1;
  s.b_row = form & 2 ? 1 : N;
  s.b_col = form & 2 ? K : 1;
  s.add = form & 4;
  s.bias = form & 8 ? bias : NULL;
  s.c = own;
  compute(PLN_BLAS_OWN, twice, &s);
  s.c = other;
  compute(PLN_BLAS_OPENBLAS, twice, &s);
  if (!CHECK(!memcmp(own, other, M * N * size)))
    printf("# form %u\n", form);
  free(a), free(b), free(own), free(other), free(bias);
}

static void agrees(void) {
  engine = pln_engine_new(NULL, NULL);
  for (unsigned form = 0; form < 16; form++)
    for (int twice = 0; twice < 2; twice++)
      compare(twice, form);
  CHECK(pln_blas_is_open(engine));
  pln_engine_free(engine);
}

static void takes(void) {
  pln_product large = {.m = M,
                       .n = N,
                       .k = K,
                       .a_row = K,
                       .a_col = 1,
                       .b_row = N,
                       .b_col = 1,
                       .c_row = N};
  pln_product small = large, strided = large;
  pln_tiles plain = *pln_tiles_for(PLN_FLOAT32), fused = plain;
  plain.fused = false;
  fused.fused = true;
  small.m = small.n = small.k = 8;
  strided.a_col = 2;
  engine = pln_engine_new(NULL, NULL);
  CHECK(!pln_blas_takes(engine, &plain, &small));
  CHECK(!pln_blas_takes(engine, &fused, &large));
  CHECK(!pln_blas_is_open(engine));
  CHECK(pln_blas_takes(engine, &plain, &large));
  CHECK(pln_blas_is_open(engine));
  CHECK_OK(pln_blas_set_choice(engine, PLN_BLAS_OWN));
  CHECK(!pln_blas_takes(engine, &plain, &large));
  CHECK_OK(pln_blas_set_choice(engine, PLN_BLAS_OPENBLAS));
  CHECK(pln_blas_takes(engine, &fused, &large));
  CHECK(!pln_blas_takes(engine, &fused, &strided));
  CHECK_STATUS(pln_blas_set_choice(engine, (pln_blas_choice)9),
               PLN_ERR_ARGUMENT);
  CHECK_EQ_INT(pln_blas_get_choice(engine), PLN_BLAS_OPENBLAS);
  pln_engine_free(engine);
}

static bool is_installed(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  bool good = e && pln_blas_set_choice(e, PLN_BLAS_OPENBLAS) == PLN_OK;
  pln_engine_free(e);
  return good;
}

static const check_test tests[] = {
    {"OpenBLAS and our own product agree", agrees},
    {"OpenBLAS is taken where it is chosen and worth it", takes},
};

int check_main(int argc, char **argv) {
  if (!is_installed()) {
    puts("1..0 # SKIP libopenblas.so.0 is not there");
    return 77;
  }
  return check_run(tests, PLN_COUNT(tests), argc, argv);
}
