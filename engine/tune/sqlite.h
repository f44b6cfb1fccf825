/* sqlite.h: databases of SQLite, opened at run time. */

#ifndef PLN_TUNE_SQLITE_H
#define PLN_TUNE_SQLITE_H

#include "base/base.h"

typedef struct pln_sqlite pln_sqlite;

typedef enum pln_sqlite_kind {
  PLN_SQLITE_NULL,
  PLN_SQLITE_INTEGER,
  PLN_SQLITE_NUMBER,
  PLN_SQLITE_TEXT
} pln_sqlite_kind;

/* A parameter, or a field of a row. The bytes of a text are borrowed. */
typedef struct pln_sqlite_value {
  pln_sqlite_kind kind;
  int64_t integer;
  double number;
  pln_slice text;
} pln_sqlite_value;

/* Opens a file, which is made if need be and `writable`. A lock of another
 * process is waited for up to `seconds`. PLN_ERR_IO with the reason, also when
 * the library libsqlite3.so.0 is not there. */
pln_status pln_sqlite_open(pln_engine *engine, const char *path, bool writable,
                           double seconds, pln_sqlite **out) PLN_CHECKED;
/* NULL is accepted. */
void pln_sqlite_close(pln_sqlite *db);

/* Runs one statement with `n` parameters. `row` (NULL: none is wanted) gets the
 * fields of each row and the names of columns; they are valid during the call.
 * PLN_ERR_IO with SQLite's reason. */
typedef pln_status (*pln_sqlite_row_fn)(void *ud, uint32_t n,
                                        const char *const *names,
                                        const pln_sqlite_value *fields);
pln_status pln_sqlite_run(pln_sqlite *db, pln_slice sql, uint32_t n,
                          const pln_sqlite_value *params, pln_sqlite_row_fn row,
                          void *ud) PLN_CHECKED;
/* The rows that the last statement changed. */
int64_t pln_sqlite_changes(const pln_sqlite *db);
/* The version of the library, such as "3.40.1". */
const char *pln_sqlite_version(const pln_sqlite *db);

#endif
