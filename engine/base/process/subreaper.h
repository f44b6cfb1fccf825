/* subreaper.h: a process between the host and a child, which ends all that the
 * child has started. */

#ifndef PLN_BASE_SUBREAPER_H
#define PLN_BASE_SUBREAPER_H

#include "base/process/process.h"

/* What a subreaper says of its child, in memory that it shares with the host.
 */
typedef struct pln_subreaper_report {
  volatile bool is_asked; /* by the host, which sends SIGTERM then, to end it */
  int child;              /* its number; 0: it was not started */
  bool has_ended;         /* what follows is set */
  int status;             /* as wait says it */
  double seconds;         /* from its start to its end */
  uint64_t resident;  /* bytes, the most at once, of the child and of what it
                       * waited for; Linux counts what it had before exec */
  uint64_t inherited; /* at most so much of it is of the copy of the host */
} pln_subreaper_report;

/* NULL when there is no memory. */
pln_subreaper_report *pln_subreaper_report_new(void);
/* NULL is accepted. */
void pln_subreaper_report_free(pln_subreaper_report *report);

/* Called in a new child of the process `parent`. Returns in a child of this
 * one. This one closes `n` descriptors, waits, and ends behind that child and
 * with `parent`, after it has killed everything that the child has started:
 * what left its process group or session is found because a subreaper becomes
 * the parent of orphans. */
void pln_subreaper_run(int parent, const int *fds, size_t n,
                       pln_subreaper_report *report);

/* Kills all descendants of a process, except itself. Where the system does not
 * list children it does nothing. */
void pln_kill_descendants(int process);
/* The largest peak of resident memory, in bytes, among the descendants of a
 * process that run now; 0: unknown. */
uint64_t pln_descendants_resident(int process);

#endif
