/* reaper.h: a process between the host and a program that it runs. */

#ifndef PLN_BASE_PROCESS_REAPER_H
#define PLN_BASE_PROCESS_REAPER_H

#include "base/process/process.h"

/* How the program ended: the status of wait(2), and its peak resident memory in
 * bytes. */
typedef struct pln_reaper_report {
  int status;
  uint64_t resident;
} pln_reaper_report;

/* In a child of the host, which pln_child_enter has prepared to get SIGTERM
 * when the host ends: runs the program with its standard output in `output`,
 * waits for its end or for SIGTERM, kills whatever it has started and writes a
 * report to the pipe `report`. Does not return. */
_Noreturn void pln_reaper_run(const pln_child_limits *limits,
                              const char *const *argv, int output, int report);

/* What the child does before it becomes a program or calls a function. */
void pln_child_discard(int fd);
void pln_child_pin(void);
void pln_child_limit_memory(uint64_t bytes);

#endif
