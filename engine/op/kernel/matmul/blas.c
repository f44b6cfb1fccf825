/* blas.c: matrix products by OpenBLAS. Called by gemm.c for each product;
 * engine.c makes and frees the state.
 *
 * The library is searched once per engine, and not before a product is large.
 * If the process had not loaded it before, it is set to one thread. A missing
 * library is an error only if it was chosen by name. */

#include "op/kernel/matmul/blas.h"
#include "base/library.h"

#include <limits.h>

/* The number of multiplications from which on calling the library pays off. */
#define LARGE ((double)(1 << 21))

/* The constants of cblas.h. */
enum { ROWS_FIRST = 101, NOT_TRANSPOSED = 111, TRANSPOSED = 112 };

typedef void (*float_fn)(int order, int transpose_a, int transpose_b, int m,
                         int n, int k, float alpha, const float *a, int lda,
                         const float *b, int ldb, float beta, float *c,
                         int ldc);
typedef void (*double_fn)(int order, int transpose_a, int transpose_b, int m,
                          int n, int k, double alpha, const double *a, int lda,
                          const double *b, int ldb, double beta, double *c,
                          int ldc);
typedef void (*threads_fn)(int threads);

struct pln_blas {
  pln_blas_choice choice;
  bool tried;        /* opening was tried */
  bool borrow_state; /* the parent owns the library */
  void *library;
  float_fn single;
  double_fn twice; /* double precision */
};

pln_status pln_blas_new(pln_engine *engine) {
  engine->blas = pln_mem_zeroed(engine, sizeof *engine->blas);
  return engine->blas ? PLN_OK : pln_nomem(engine);
}

pln_status pln_blas_child(pln_engine *child) {
  PLN_TRY(pln_blas_new(child));
  *child->blas = *child->parent->blas;
  child->blas->borrow_state = child->blas->library != NULL;
  return PLN_OK;
}

/* ------------------------------------------------------------------ opening */

static const char file_name[] = "libopenblas.so.0";

/* If the host has loaded it, its number of threads is the host's concern. */
static void open_library(struct pln_blas *blas) {
  threads_fn set_threads;
  bool loaded = pln_library_is_loaded(file_name);
  void *library = pln_library_open(file_name);
  blas->tried = true;
  if (!library)
    return;
  if (!pln_library_find(library, "cblas_sgemm", &blas->single) ||
      !pln_library_find(library, "cblas_dgemm", &blas->twice)) {
    pln_library_close(library);
    return;
  }
  blas->library = library;
  if (!loaded &&
      pln_library_find(library, "openblas_set_num_threads", &set_threads))
    set_threads(1);
}

static bool is_open(struct pln_blas *blas) {
  if (!blas->tried)
    open_library(blas);
  return blas->library != NULL;
}

void pln_blas_free(pln_engine *engine) {
  if (!engine->blas)
    return;
  if (!engine->blas->borrow_state)
    pln_library_close(engine->blas->library);
  pln_mem_free(engine, engine->blas, sizeof *engine->blas);
  engine->blas = NULL;
}

/* ----------------------------------------------------------------- choosing */

static const char *const names[] = {
    [PLN_BLAS_AUTO] = "auto",
    [PLN_BLAS_OWN] = "own",
    [PLN_BLAS_OPENBLAS] = "openblas",
};

const char *pln_blas_name(pln_blas_choice choice) {
  return (size_t)choice < PLN_COUNT(names) ? names[choice] : "";
}

pln_status pln_blas_find(pln_engine *engine, pln_slice name,
                         pln_blas_choice *out) {
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    if (pln_slice_is(name, names[i])) {
      *out = (pln_blas_choice)i;
      return PLN_OK;
    }
  return pln_diag_error(engine, PLN_ERR_NAME, NULL,
                        "expected a BLAS (auto, own or openblas), got '%.*s'",
                        (int)(name.size < 64 ? name.size : 64), name.data);
}

pln_status pln_blas_set_choice(pln_engine *engine, pln_blas_choice choice) {
  if ((size_t)choice >= PLN_COUNT(names))
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL, "no such BLAS");
  if (choice == PLN_BLAS_OPENBLAS && !is_open(engine->blas))
    return pln_diag_error(engine, PLN_ERR_UNSUPPORTED, NULL,
                          "OpenBLAS (libopenblas.so.0) cannot be opened");
  engine->blas->choice = choice;
  return PLN_OK;
}

pln_blas_choice pln_blas_get_choice(const pln_engine *engine) {
  return engine->blas->choice;
}

bool pln_blas_is_open(const pln_engine *engine) {
  return engine->blas->library != NULL;
}

/* ------------------------------------------------------------------ running */

/* The layout of an operand: as it is, or transposed, with rows `lead` apart. */
typedef struct layout {
  int transpose, lead;
} layout;

static bool lies(size_t rows, size_t cols, size_t row, size_t col,
                 layout *out) {
  size_t step = col == 1 ? row : col, least = col == 1 ? cols : rows;
  if ((col != 1 && row != 1) || step < least || step < 1 || step > INT_MAX)
    return false;
  out->transpose = col == 1 ? NOT_TRANSPOSED : TRANSPOSED;
  out->lead = (int)step;
  return true;
}

static bool is_large(const pln_product *s) {
  return s->m > 1 && s->n > 1 && s->m <= INT_MAX && s->n <= INT_MAX &&
         s->k <= INT_MAX && s->c_row <= INT_MAX &&
         (double)s->m * (double)s->n * (double)s->k >= LARGE;
}

/* C requires aligned pointers to floats; data in a file may be unaligned. */
static bool is_aligned(const void *data, const pln_tiles *tiles) {
  return ((uintptr_t)data & (tiles->size - 1)) == 0;
}

/* Tiles with fused multiply-add are at least as fast as OpenBLAS. */
bool pln_blas_wanted(const pln_engine *engine, const pln_tiles *tiles) {
  const struct pln_blas *blas = engine->blas;
  return blas->choice == PLN_BLAS_OPENBLAS ||
         (blas->choice == PLN_BLAS_AUTO && !tiles->fused);
}

bool pln_blas_takes(pln_engine *engine, const pln_tiles *tiles,
                    const pln_product *s) {
  layout a, b;
  return pln_blas_wanted(engine, tiles) && is_large(s) &&
         is_aligned(s->a, tiles) && is_aligned(s->b, tiles) &&
         lies(s->m, s->k, s->a_row, s->a_col, &a) &&
         lies(s->k, s->n, s->b_row, s->b_col, &b) && is_open(engine->blas);
}

void pln_blas_run(pln_engine *engine, bool twice, const pln_product *s) {
  const struct pln_blas *blas = engine->blas;
  int m = (int)s->m, n = (int)s->n, k = (int)s->k, c_row = (int)s->c_row;
  layout a = {0}, b = {0};
  lies(s->m, s->k, s->a_row, s->a_col, &a);
  lies(s->k, s->n, s->b_row, s->b_col, &b);
  int keep = s->add || s->bias;
  if (twice)
    blas->twice(ROWS_FIRST, a.transpose, b.transpose, m, n, k, 1, s->a, a.lead,
                s->b, b.lead, keep, s->c, c_row);
  else
    blas->single(ROWS_FIRST, a.transpose, b.transpose, m, n, k, 1, s->a, a.lead,
                 s->b, b.lead, (float)keep, s->c, c_row);
}
