/* codegen.h: shared declarations of codegen/: what a C source consists of, and
 * child processes. */

#ifndef PLN_CODEGEN_CODEGEN_H
#define PLN_CODEGEN_CODEGEN_H

#include "base/base.h"

struct pln_c_code {
  pln_engine *engine;
  pln_buffer source, header;
  pln_c_function *functions;
  uint32_t n_functions;
  bool threads;
};

/* How a child process ended. */
typedef struct pln_child_end {
  bool timed_out;
  int signal; /* that ended it; 0: none */
  int code;   /* its exit status */
} pln_child_end;

/* process.c: runs a program with its output and errors in the file `log`, both
 * limits as given. PLN_ERR_IO when it cannot be started. */
pln_status pln_process_run(pln_engine *engine, const char *const *argv, int log,
                           double seconds, uint64_t memory,
                           pln_child_end *out) PLN_CHECKED;
/* Waits for a child, kills its process group after `seconds`. */
pln_status pln_process_wait(pln_engine *engine, int child, double seconds,
                            pln_child_end *out) PLN_CHECKED;

#endif
