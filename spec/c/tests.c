/* tests.c: the program of all C tests; its first argument chooses the file
 * whose tests run (check.h). One program, because each would be linked with the
 * whole engine. */

#include <stdio.h>
#include <string.h>

#define CHECK_FILE(name, run) int run(int argc, char **argv);
#include "check_files.h"
#undef CHECK_FILE

typedef struct check_file {
  const char *name;
  int (*run)(int argc, char **argv);
} check_file;

static const check_file files[] = {
#define CHECK_FILE(name, run) {name, run},
#include "check_files.h"
#undef CHECK_FILE
};
static const size_t n_files = sizeof files / sizeof *files;

static int usage(void) {
  fputs("Usage: c_tests FILE [TEXT]...\nFILE is one of\n", stderr);
  for (size_t i = 0; i < n_files; i++)
    fprintf(stderr, "  %s\n", files[i].name);
  return 2;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return usage();
  for (size_t i = 0; i < n_files; i++)
    if (!strcmp(files[i].name, argv[1]))
      return files[i].run(argc - 1, argv + 1);
  return usage();
}
