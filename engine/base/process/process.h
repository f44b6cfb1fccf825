/* process.h: child processes with limits. */

#ifndef PLN_BASE_PROCESS_H
#define PLN_BASE_PROCESS_H

#include "base/base.h"

/* How a child process ended. */
typedef struct pln_child_end {
  bool timed_out;
  int signal; /* that ended it; 0: none */
  int code;   /* its exit status */
} pln_child_end;

/* In a new child of the process `parent`: it is the leader of a process group,
 * gets `signal` when its parent ends (where the system can do that), writes no
 * core and handles no signal. */
void pln_child_enter(int parent, int signal);

/* Runs a program with its output and errors in the file `log`: for `seconds` of
 * wall time, and each of its processes for `cpu_seconds` of a processor.
 * PLN_ERR_IO when it cannot be started. */
pln_status pln_process_run(pln_engine *engine, const char *const *argv, int log,
                           double seconds, double cpu_seconds, uint64_t memory,
                           pln_child_end *out) PLN_CHECKED;
/* Waits for a child, kills its process group after `seconds`. */
pln_status pln_process_wait(pln_engine *engine, int child, double seconds,
                            pln_child_end *out) PLN_CHECKED;

/* What a child may use; 0: no limit. */
typedef struct pln_child_limits {
  double seconds;  /* of wall time */
  uint64_t memory; /* bytes of address space beyond what the host has */
  size_t output;   /* bytes of output; needed */
  bool pinned;     /* it runs on one processor */
} pln_child_limits;

/* What a child left. The buffer belongs to the caller. */
typedef struct pln_child_result {
  pln_child_end end;
  pln_buffer output;
  bool too_long;     /* it wrote more than limits->output and was killed */
  uint64_t resident; /* bytes: the most that one of its processes had in memory
                      * at once, seen every 5 ms where the host has more */
  double seconds;    /* of wall time */
} pln_child_result;

/* Runs `body(ud, fd)` in a fork of this process; what it writes to `fd` is the
 * output. Standard output and errors are discarded. The child ends with the
 * body, and all that it has started with it, in other sessions too (Linux).
 * PLN_ERR_IO when there can be no child, PLN_ERR_INTERRUPTED when the engine is
 * stopped; a child that fails is no error. */
pln_status pln_child_call(pln_engine *engine, const pln_child_limits *limits,
                          void (*body)(void *ud, int fd), void *ud,
                          pln_child_result *out) PLN_CHECKED;
/* Runs a program; its standard output is the output. Its memory limit is
 * absolute. */
pln_status pln_child_run(pln_engine *engine, const pln_child_limits *limits,
                         const char *const *argv,
                         pln_child_result *out) PLN_CHECKED;

#endif
