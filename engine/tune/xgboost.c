/* xgboost.c: cost models of tuning by XGBoost.
 *
 * Called by lua/tune. The library is opened at run time, as OpenBLAS is; its
 * functions are declared here by its documented C interface
 * (https://xgboost.readthedocs.io/en/stable/c.html). It works on one thread:
 * tuning forks, and threads do not survive that. */

#include "tune/xgboost.h"

#include <math.h>

#include "base/library.h"

/* The names of packages: Debian's, and the one of PyPI. */
static const char *const names[] = {"libxgboost.so.0", "libxgboost.so"};

/* Trees, with Ansor's parameters where they suit some hundred samples. */
enum { ROUNDS = 60 };

static const char *const parameters[][2] = {
    {"nthread", "1"},
    {"verbosity", "0"},
    {"seed", "1"},
    {"tree_method", "exact"},
    {"objective", "reg:squarederror"},
    {"max_depth", "4"},
    {"eta", "0.15"},
    {"gamma", "0.001"},
    {"min_child_weight", "2"},
};

typedef struct functions {
  int (*matrix)(const float *, uint64_t, uint64_t, float, void **);
  int (*set_info)(void *, const char *, const float *, uint64_t);
  int (*free_matrix)(void *);
  int (*create)(void *const *, uint64_t, void **);
  int (*free)(void *);
  int (*set)(void *, const char *, const char *);
  int (*update)(void *, int, void *);
  int (*predict)(void *, void *, int, unsigned, int, uint64_t *,
                 const float **);
  const char *(*error)(void);
} functions;

struct pln_xgboost {
  pln_engine *engine;
  void *library;
  void *booster;
  functions f;
  uint32_t columns;
};

static bool find_functions(void *library, functions *f) {
  const struct {
    const char *name;
    void *function;
  } rows[] = {{"XGDMatrixCreateFromMat", &f->matrix},
              {"XGDMatrixSetFloatInfo", &f->set_info},
              {"XGDMatrixFree", &f->free_matrix},
              {"XGBoosterCreate", &f->create},
              {"XGBoosterFree", &f->free},
              {"XGBoosterSetParam", &f->set},
              {"XGBoosterUpdateOneIter", &f->update},
              {"XGBoosterPredict", &f->predict},
              {"XGBGetLastError", &f->error}};
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (!pln_library_find(library, rows[i].name, rows[i].function))
      return false;
  return true;
}

static pln_status load(pln_xgboost *m, const char *file) {
  for (size_t i = 0; i < PLN_COUNT(names) && !file && !m->library; i++)
    m->library = pln_library_open(names[i]);
  if (file)
    m->library = pln_library_open(file);
  if (!m->library)
    return pln_diag_error(m->engine, PLN_ERR_IO, NULL,
                          "the cost model 'xgboost' needs %s, which cannot be "
                          "opened; install it (Debian: libxgboost0), or take "
                          "'trees'",
                          file ? file : names[0]);
  if (!find_functions(m->library, &m->f))
    return pln_diag_error(m->engine, PLN_ERR_IO, NULL,
                          "%s lacks functions that cost models need",
                          file ? file : names[0]);
  return PLN_OK;
}

static pln_status check(const pln_xgboost *m, int code) {
  return code == 0 ? PLN_OK
                   : pln_diag_error(m->engine, PLN_ERR_IO, NULL,
                                    "XGBoost: %.300s", m->f.error());
}

static pln_status train(pln_xgboost *m, void *matrix, uint64_t rows,
                        const float *targets) {
  PLN_TRY(check(m, m->f.set_info(matrix, "label", targets, rows)));
  PLN_TRY(check(m, m->f.create(&matrix, 1, &m->booster)));
  for (size_t i = 0; i < PLN_COUNT(parameters); i++)
    PLN_TRY(check(m, m->f.set(m->booster, parameters[i][0], parameters[i][1])));
  for (int round = 0; round < ROUNDS; round++) {
    PLN_TRY(pln_poll(m->engine));
    PLN_TRY(check(m, m->f.update(m->booster, round, matrix)));
  }
  return PLN_OK;
}

static pln_status fit(pln_xgboost *m, const char *file, uint32_t rows,
                      const float *features, const float *targets) {
  void *matrix = NULL;
  PLN_TRY(load(m, file));
  PLN_TRY(check(m, m->f.matrix(features, rows, m->columns, NAN, &matrix)));
  pln_status status = train(m, matrix, rows, targets);
  (void)m->f.free_matrix(matrix);
  return status;
}

pln_status pln_xgboost_fit(pln_engine *engine, const char *file, uint32_t rows,
                           uint32_t columns, const float *features,
                           const float *targets, pln_xgboost **out) {
  pln_xgboost *m = pln_mem_zeroed(engine, sizeof *m);
  *out = NULL;
  if (!m)
    return pln_nomem(engine);
  m->engine = engine;
  m->columns = columns;
  pln_status status = fit(m, file, rows, features, targets);
  if (status == PLN_OK)
    *out = m;
  else
    pln_xgboost_free(m);
  return status;
}

pln_status pln_xgboost_predict(pln_xgboost *m, const float *row, double *out) {
  void *matrix = NULL;
  uint64_t n = 0;
  const float *values = NULL;
  PLN_TRY(check(m, m->f.matrix(row, 1, m->columns, NAN, &matrix)));
  pln_status status =
      check(m, m->f.predict(m->booster, matrix, 0, 0, 0, &n, &values));
  if (status == PLN_OK && n == 1)
    *out = (double)values[0];
  else if (status == PLN_OK)
    status = pln_diag_error(m->engine, PLN_ERR_IO, NULL,
                            "XGBoost gave %llu values for a row",
                            (unsigned long long)n);
  (void)m->f.free_matrix(matrix);
  return status;
}

uint32_t pln_xgboost_columns(const pln_xgboost *m) {
  return m->columns;
}

/* The library stays open: its threads' destructors may run later. */
void pln_xgboost_free(pln_xgboost *m) {
  if (!m)
    return;
  if (m->booster)
    (void)m->f.free(m->booster);
  pln_mem_free(m->engine, m, sizeof *m);
}
