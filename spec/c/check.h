/* check.h: the frame of the C tests.
 *
 *     static void adds(void) {
 *       CHECK(1 + 1 == 2);
 *       CHECK_EQ_INT(add(2, 3), 5);   // got, wanted
 *       CHECK_STR(name(), "add");     // terminated strings
 *       CHECK_OK(status());           // a pln_status
 *       CHECK_STATUS(status(), PLN_ERR_TYPE);
 *       REQUIRE(pointer);             // leaves the test when it fails
 *     }
 *     static const check_test tests[] = {{"adds numbers", adds}};
 *     CHECK_MAIN(tests)
 *
 * All files are linked into one program, c_tests, whose first argument says
 * which of them runs: `c_tests ir.builder [TEXT]...` (spec/c/CMakeLists.txt).
 * It prints TAP; a failed check says file, line, what was got and wanted. With
 * a TEXT only tests whose names contain one run. Exit status 1 on failure. A
 * file that needs more writes check_main itself instead of CHECK_MAIN.
 * print_diags(engine) shows what the engine has to say. */

#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "perilune.h"

typedef struct check_test {
  const char *name;
  void (*run)(void);
} check_test;

static unsigned check_failures;

static inline bool check_true(bool good, const char *file, int line,
                              const char *what) {
  if (good)
    return true;
  check_failures++;
  printf("# %s:%d: failed: %s\n", file, line, what);
  return false;
}

static inline bool check_int(int64_t got, int64_t wanted, const char *file,
                             int line, const char *what) {
  if (got == wanted)
    return true;
  check_failures++;
  printf("# %s:%d: %s is %" PRId64 ", not %" PRId64 "\n", file, line, what, got,
         wanted);
  return false;
}

static inline bool check_str(const char *got, const char *wanted,
                             const char *file, int line, const char *what) {
  if (got && wanted ? !strcmp(got, wanted) : got == wanted)
    return true;
  check_failures++;
  printf("# %s:%d: %s is\n#   %s\n# not\n#   %s\n", file, line, what,
         got ? got : "(null)", wanted ? wanted : "(null)");
  return false;
}

static inline bool check_status(pln_status got, pln_status wanted,
                                const char *file, int line, const char *what) {
  if (got == wanted)
    return true;
  check_failures++;
  printf("# %s:%d: %s is '%s', not '%s'\n", file, line, what,
         pln_status_text(got), pln_status_text(wanted));
  return false;
}

#define CHECK(cond) check_true((cond), __FILE__, __LINE__, #cond)
#define CHECK_EQ_INT(got, wanted) \
  check_int((int64_t)(got), (int64_t)(wanted), __FILE__, __LINE__, #got)
#define CHECK_STR(got, wanted) \
  check_str((got), (wanted), __FILE__, __LINE__, #got)
#define CHECK_STATUS(got, wanted) \
  check_status((got), (wanted), __FILE__, __LINE__, #got)
#define CHECK_OK(got) CHECK_STATUS(got, PLN_OK)
#define REQUIRE(cond) \
  do {                \
    if (!CHECK(cond)) \
      return;         \
  } while (0)
#define REQUIRE_OK(got) \
  do {                  \
    if (!CHECK_OK(got)) \
      return;           \
  } while (0)

static inline void print_diags(const pln_engine *engine) {
  char text[1024];
  for (size_t i = 0; i < pln_diag_count(engine); i++) {
    pln_diag_format(pln_diag_at(engine, i), text, sizeof text);
    printf("# %s\n", text);
  }
}

static inline bool check_chosen(const char *name, int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strstr(name, argv[i]))
      return true;
  return argc < 2;
}

static inline int check_run(const check_test *tests, size_t n, int argc,
                            char **argv) {
  unsigned failed = 0;
  setvbuf(stdout, NULL, _IOLBF, 0); /* a crash keeps what was said before it */
  printf("1..%zu\n", n);
  for (size_t i = 0; i < n; i++) {
    bool chosen = check_chosen(tests[i].name, argc, argv);
    check_failures = 0;
    if (chosen)
      tests[i].run();
    printf("%s %zu - %s%s\n", check_failures ? "not ok" : "ok", i + 1,
           tests[i].name, chosen ? "" : " # SKIP");
    failed += check_failures > 0;
  }
  return failed ? 1 : 0;
}

/* Of this file: the build gives each file's another name. argv[0] is the name
 * of the file's tests. */
int check_main(int argc, char **argv);

#define CHECK_MAIN(tests)                                                 \
  int check_main(int argc, char **argv) {                                 \
    return check_run(tests, sizeof(tests) / sizeof *(tests), argc, argv); \
  }

#endif
