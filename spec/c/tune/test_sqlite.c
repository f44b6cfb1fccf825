/* test_sqlite.c: statements, their parameters and rows; out of memory. */

#include "tune/sqlite.h"

#define OOM_ENGINE_NEW pln_base_new
#define OOM_ENGINE_FREE pln_base_free
#include "oom.h"

static pln_slice slice(const char *text) {
  return (pln_slice){text, strlen(text)};
}

/* What rows add up to. */
typedef struct sums {
  int64_t integers;
  double numbers;
  size_t bytes;
  uint32_t nulls, rows;
} sums;

static pln_status add_row(void *ud, uint32_t n, const char *const *names,
                          const pln_sqlite_value *fields) {
  sums *s = ud;
  s->rows++;
  for (uint32_t i = 0; i < n; i++) {
    s->integers += fields[i].integer;
    s->numbers += fields[i].number;
    s->bytes += fields[i].text.size;
    s->nulls += fields[i].kind == PLN_SQLITE_NULL;
    CHECK(names[i][0] >= 'a' && names[i][0] <= 'd');
  }
  return PLN_OK;
}

static pln_status fill(pln_sqlite *db, sums *s) {
  const pln_sqlite_value row[] = {
      {.kind = PLN_SQLITE_INTEGER, .integer = INT64_C(1) << 40},
      {.kind = PLN_SQLITE_NUMBER, .number = 0.5},
      {.kind = PLN_SQLITE_TEXT, .text = {"a\0b", 3}},
      {.kind = PLN_SQLITE_NULL}};
  PLN_TRY(pln_sqlite_run(db, slice("CREATE TABLE t(a, b, c, d)"), 0, NULL, NULL,
                         NULL));
  for (int i = 0; i < 3; i++)
    PLN_TRY(pln_sqlite_run(db, slice("INSERT INTO t VALUES(?, ?, ?, ?)"), 4,
                           row, NULL, NULL));
  return pln_sqlite_run(db, slice("SELECT * FROM t"), 0, NULL, add_row, s);
}

static void rows_come_back(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_sqlite *db;
  sums s = {0};
  REQUIRE(e);
  CHECK_OK(pln_sqlite_open(e, ":memory:", true, 1, &db));
  CHECK_OK(fill(db, &s));
  CHECK_EQ_INT(s.rows, 3);
  CHECK_EQ_INT(s.integers, 3 * (INT64_C(1) << 40));
  CHECK(s.numbers == 1.5);
  CHECK_EQ_INT(s.bytes, 9);
  CHECK_EQ_INT(s.nulls, 3);
  CHECK_EQ_INT(pln_sqlite_changes(db), 1);
  CHECK(pln_sqlite_version(db)[0] == '3');
  pln_sqlite_close(db);
  pln_base_free(e);
}

static void mistakes_are_told(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_sqlite *db;
  REQUIRE(e);
  CHECK_STATUS(pln_sqlite_open(e, "/nonexistent/file", true, 1, &db),
               PLN_ERR_IO);
  CHECK(!db);
  CHECK_OK(pln_sqlite_open(e, ":memory:", true, 1, &db));
  CHECK_STATUS(pln_sqlite_run(db, slice("SELEKT"), 0, NULL, NULL, NULL),
               PLN_ERR_IO);
  CHECK_STATUS(pln_sqlite_run(db, slice("SELECT ?"), 0, NULL, NULL, NULL),
               PLN_ERR_ARGUMENT);
  CHECK_OK(pln_sqlite_run(db, slice("-- nothing"), 0, NULL, NULL, NULL));
  pln_sqlite_close(db);
  pln_sqlite_close(NULL);
  pln_base_free(e);
}

static pln_status open_and_fill(pln_engine *engine, void *ud) {
  pln_sqlite *db;
  sums s = {0};
  (void)ud;
  PLN_TRY(pln_sqlite_open(engine, ":memory:", true, 1, &db));
  pln_status status = fill(db, &s);
  pln_sqlite_close(db);
  return status;
}

static void memory_may_be_out(void) {
  oom_sweep(open_and_fill, NULL);
}

static const check_test tests[] = {
    {"rows come back", rows_come_back},
    {"mistakes are told", mistakes_are_told},
    {"memory may be out", memory_may_be_out},
};
CHECK_MAIN(tests)
