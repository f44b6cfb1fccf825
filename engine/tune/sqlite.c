/* sqlite.c: the records of tuning in SQLite.
 *
 * Called by lua/tune. The library is opened at run time, as OpenBLAS is; its
 * functions are declared here by its documented interface, which is stable
 * (https://sqlite.org/capi3ref.html). Files may be corrupt, locked, or on a
 * disk that is full: each is a diagnostic with the path and SQLite's reason. */

#include <stdio.h>

#include "base/library.h"
#include "tune/sqlite.h"

#define FILE_NAME "libsqlite3.so.0"

/* Result codes, flags and types of the interface. */
enum {
  SQLITE_OK = 0,
  SQLITE_BUSY = 5,
  SQLITE_ROW = 100,
  SQLITE_DONE = 101,
  OPEN_READONLY = 1,
  OPEN_READWRITE = 2,
  OPEN_CREATE = 4,
  OPEN_FULLMUTEX = 0x10000,
  TYPE_INTEGER = 1,
  TYPE_FLOAT = 2,
  TYPE_NULL = 5
};

enum { MOST_COLUMNS = 64 };

typedef struct functions {
  int (*open)(const char *, void **, int, const char *);
  int (*close)(void *);
  int (*busy_timeout)(void *, int);
  int (*prepare)(void *, const char *, int, void **, const char **);
  int (*finalize)(void *);
  int (*reset)(void *);
  int (*step)(void *);
  int (*bind_null)(void *, int);
  int (*bind_int64)(void *, int, int64_t);
  int (*bind_double)(void *, int, double);
  int (*bind_text)(void *, int, const char *, int, void (*)(void *));
  int (*parameter_count)(void *);
  int (*column_count)(void *);
  const char *(*column_name)(void *, int);
  int (*column_type)(void *, int);
  int64_t (*column_int64)(void *, int);
  double (*column_double)(void *, int);
  const void *(*column_blob)(void *, int);
  int (*column_bytes)(void *, int);
  int (*changes)(void *);
  int (*get_autocommit)(void *);
  int (*sleep)(int);
  const char *(*errmsg)(void *);
  const char *(*errstr)(int);
  const char *(*version)(void);
} functions;

struct pln_sqlite {
  pln_engine *engine;
  void *library;
  void *handle;
  functions f;
  char *path;
  double wait; /* seconds for locks of other processes */
};

/* ----------------------------------------------------------------- opening */

static bool find_functions(void *library, functions *f) {
  const struct {
    const char *name;
    void *function;
  } rows[] = {{"sqlite3_open_v2", &f->open},
              {"sqlite3_close_v2", &f->close},
              {"sqlite3_busy_timeout", &f->busy_timeout},
              {"sqlite3_prepare_v2", &f->prepare},
              {"sqlite3_finalize", &f->finalize},
              {"sqlite3_reset", &f->reset},
              {"sqlite3_step", &f->step},
              {"sqlite3_bind_null", &f->bind_null},
              {"sqlite3_bind_int64", &f->bind_int64},
              {"sqlite3_bind_double", &f->bind_double},
              {"sqlite3_bind_text", &f->bind_text},
              {"sqlite3_bind_parameter_count", &f->parameter_count},
              {"sqlite3_column_count", &f->column_count},
              {"sqlite3_column_name", &f->column_name},
              {"sqlite3_column_type", &f->column_type},
              {"sqlite3_column_int64", &f->column_int64},
              {"sqlite3_column_double", &f->column_double},
              {"sqlite3_column_blob", &f->column_blob},
              {"sqlite3_column_bytes", &f->column_bytes},
              {"sqlite3_changes", &f->changes},
              {"sqlite3_get_autocommit", &f->get_autocommit},
              {"sqlite3_sleep", &f->sleep},
              {"sqlite3_errmsg", &f->errmsg},
              {"sqlite3_errstr", &f->errstr},
              {"sqlite3_libversion", &f->version}};
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (!pln_library_find(library, rows[i].name, rows[i].function))
      return false;
  return true;
}

static pln_status load(pln_sqlite *db) {
  db->library = pln_library_open(FILE_NAME);
  if (!db->library)
    return pln_diag_error(db->engine, PLN_ERR_IO, NULL,
                          "records need SQLite, and %s cannot be opened; "
                          "install it (Debian: libsqlite3-0)",
                          FILE_NAME);
  if (!find_functions(db->library, &db->f))
    return pln_diag_error(db->engine, PLN_ERR_IO, NULL,
                          "%s lacks functions that records need", FILE_NAME);
  return PLN_OK;
}

static pln_status fail(const pln_sqlite *db, int code) {
  const char *reason =
      db->handle ? db->f.errmsg(db->handle) : db->f.errstr(code);
  return pln_diag_error(
      db->engine, PLN_ERR_IO, NULL, "%s: %s%s", db->path, reason,
      (code & 0xff) == SQLITE_BUSY ? "; another process has it open" : "");
}

static pln_status open_file(pln_sqlite *db, bool writable, double seconds) {
  int flags = (writable ? OPEN_READWRITE | OPEN_CREATE : OPEN_READONLY) |
              OPEN_FULLMUTEX;
  int code = db->f.open(db->path, &db->handle, flags, NULL);
  if (code != SQLITE_OK)
    return fail(db, code);
  db->wait = seconds < 0 ? 0 : seconds < 1e6 ? seconds : 1e6;
  (void)db->f.busy_timeout(db->handle, (int)(db->wait * 1000));
  return PLN_OK;
}

static pln_status copy_path(pln_sqlite *db, const char *path) {
  size_t n = strlen(path) + 1;
  db->path = pln_mem_new(db->engine, n);
  if (!db->path)
    return pln_nomem(db->engine);
  memcpy(db->path, path, n);
  return PLN_OK;
}

static pln_status open_all(pln_sqlite *db, const char *path, bool writable,
                           double seconds) {
  PLN_TRY(copy_path(db, path));
  PLN_TRY(load(db));
  return open_file(db, writable, seconds);
}

pln_status pln_sqlite_open(pln_engine *engine, const char *path, bool writable,
                           double seconds, pln_sqlite **out) {
  pln_sqlite *db = pln_mem_zeroed(engine, sizeof *db);
  *out = NULL;
  if (!db)
    return pln_nomem(engine);
  db->engine = engine;
  pln_status status = open_all(db, path, writable, seconds);
  if (status == PLN_OK)
    *out = db;
  else
    pln_sqlite_close(db);
  return status;
}

void pln_sqlite_close(pln_sqlite *db) {
  if (!db)
    return;
  if (db->handle)
    (void)db->f.close(db->handle);
  pln_library_close(db->library);
  if (db->path)
    pln_mem_free(db->engine, db->path, strlen(db->path) + 1);
  pln_mem_free(db->engine, db, sizeof *db);
}

/* --------------------------------------------------------------- statements */

static int bind(const pln_sqlite *db, void *statement, int i,
                const pln_sqlite_value *value) {
  switch (value->kind) {
  case PLN_SQLITE_NULL: return db->f.bind_null(statement, i);
  case PLN_SQLITE_INTEGER:
    return db->f.bind_int64(statement, i, value->integer);
  case PLN_SQLITE_NUMBER: return db->f.bind_double(statement, i, value->number);
  case PLN_SQLITE_TEXT:
    /* NULL: the bytes outlive the statement. */
    return db->f.bind_text(statement, i, value->text.data,
                           (int)value->text.size, NULL);
  }
  return SQLITE_OK;
}

static pln_status bind_all(const pln_sqlite *db, void *statement, uint32_t n,
                           const pln_sqlite_value *params) {
  if ((uint32_t)db->f.parameter_count(statement) != n)
    return pln_diag_error(db->engine, PLN_ERR_ARGUMENT, NULL,
                          "%s: a statement with %d parameters got %u", db->path,
                          db->f.parameter_count(statement), n);
  for (uint32_t i = 0; i < n; i++) {
    if (params[i].kind == PLN_SQLITE_TEXT && params[i].text.size > INT32_MAX)
      return pln_diag_error(db->engine, PLN_ERR_LIMIT, NULL,
                            "%s: a text of more than 2 GiB", db->path);
    int code = bind(db, statement, (int)i + 1, &params[i]);
    if (code != SQLITE_OK)
      return fail(db, code);
  }
  return PLN_OK;
}

static pln_sqlite_value field_at(const pln_sqlite *db, void *statement, int i) {
  pln_sqlite_value value = {0};
  switch (db->f.column_type(statement, i)) {
  case TYPE_INTEGER:
    value.kind = PLN_SQLITE_INTEGER;
    value.integer = db->f.column_int64(statement, i);
    break;
  case TYPE_FLOAT:
    value.kind = PLN_SQLITE_NUMBER;
    value.number = db->f.column_double(statement, i);
    break;
  case TYPE_NULL: break;
  default: /* texts, and blobs of other programs */
    value.kind = PLN_SQLITE_TEXT;
    value.text.data = db->f.column_blob(statement, i);
    value.text.size = (size_t)db->f.column_bytes(statement, i);
    if (!value.text.data) /* empty */
      value.text = (pln_slice){"", 0};
  }
  return value;
}

static pln_status give_row(const pln_sqlite *db, void *statement,
                           pln_sqlite_row_fn row, void *ud) {
  pln_sqlite_value fields[MOST_COLUMNS];
  const char *names[MOST_COLUMNS];
  int n = db->f.column_count(statement);
  if (n > MOST_COLUMNS)
    return pln_diag_error(db->engine, PLN_ERR_LIMIT, NULL,
                          "%s: a row of %d columns", db->path, n);
  for (int i = 0; i < n; i++) {
    fields[i] = field_at(db, statement, i);
    names[i] = db->f.column_name(statement, i);
    if (!names[i])
      return pln_nomem(db->engine);
  }
  return row(ud, (uint32_t)n, names, fields);
}

/* SQLite's own waiting ends at once where two processes might wait for each
 * other: one that makes a file's log while another one opens it, for instance.
 * A statement that is no part of a transaction is safely tried again then. */
static bool try_again(const pln_sqlite *db, int code, double begin) {
  if ((code & 0xff) != SQLITE_BUSY || !db->f.get_autocommit(db->handle) ||
      pln_seconds_now() - begin >= db->wait)
    return false;
  (void)db->f.sleep(1);
  return true;
}

static int first_step(const pln_sqlite *db, void *statement) {
  double begin = pln_seconds_now();
  int code = db->f.step(statement);
  while (try_again(db, code, begin)) {
    (void)db->f.reset(statement);
    code = db->f.step(statement);
  }
  return code;
}

static pln_status step_all(const pln_sqlite *db, void *statement,
                           pln_sqlite_row_fn row, void *ud) {
  for (int code = first_step(db, statement);; code = db->f.step(statement)) {
    if (code == SQLITE_DONE)
      return PLN_OK;
    if (code != SQLITE_ROW)
      return fail(db, code);
    if (row)
      PLN_TRY(give_row(db, statement, row, ud));
  }
}

/* The schema of the file is read here, if it was not or has changed. */
static int prepare(const pln_sqlite *db, pln_slice sql, void **statement) {
  double begin = pln_seconds_now();
  int code;
  do
    code = db->f.prepare(db->handle, sql.data, (int)sql.size, statement, NULL);
  while (try_again(db, code, begin));
  return code;
}

pln_status pln_sqlite_run(pln_sqlite *db, pln_slice sql, uint32_t n,
                          const pln_sqlite_value *params, pln_sqlite_row_fn row,
                          void *ud) {
  void *statement = NULL;
  if (sql.size > INT32_MAX)
    return pln_diag_error(db->engine, PLN_ERR_LIMIT, NULL,
                          "%s: the statement is too long", db->path);
  int code = prepare(db, sql, &statement);
  if (code != SQLITE_OK)
    return fail(db, code);
  if (!statement)
    return PLN_OK; /* a comment */
  pln_status status = bind_all(db, statement, n, params);
  if (status == PLN_OK)
    status = step_all(db, statement, row, ud);
  (void)db->f.finalize(statement);
  return status;
}

int64_t pln_sqlite_changes(const pln_sqlite *db) {
  return db->f.changes(db->handle);
}

const char *pln_sqlite_version(const pln_sqlite *db) {
  return db->f.version();
}
