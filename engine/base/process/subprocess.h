/* subprocess.h: programs that run beside this one and talk with it by lines. */

#ifndef PLN_BASE_SUBPROCESS_H
#define PLN_BASE_SUBPROCESS_H

#include "base/process/process.h"

typedef struct pln_subprocess pln_subprocess;

/* Starts a program, which is found as execvp does. One socket is its standard
 * input and output; its standard error is that of this process. It gets SIGTERM
 * when this process ends, where the system can do that. PLN_ERR_IO when there
 * can be no process; a program that is not there ends with the status 127. */
pln_status pln_subprocess_start(pln_engine *engine, const char *const *argv,
                                pln_subprocess **out) PLN_CHECKED;
/* Kills the program's process group if it still runs. NULL is accepted. */
void pln_subprocess_free(pln_subprocess *p);
int pln_subprocess_id(const pln_subprocess *p);

/* Sends bytes, and keeps what the program writes meanwhile. PLN_ERR_IO when it
 * does not read any more, PLN_ERR_INTERRUPTED when the engine is stopped. */
pln_status pln_subprocess_send(pln_subprocess *p, pln_slice bytes) PLN_CHECKED;
/* The program reads the end of its input. */
void pln_subprocess_end_input(pln_subprocess *p);

/* Waits up to `seconds` until one of `n` programs has a line or has ended its
 * output: its index is in *ready, which is `n` when the time is over.
 * PLN_ERR_LIMIT for a line of more than 64 MiB. */
pln_status pln_subprocess_wait(pln_engine *engine, pln_subprocess *const *list,
                               size_t n, double seconds,
                               size_t *ready) PLN_CHECKED;
/* Takes the next line, without its end, if there is a whole one. It is borrowed
 * until the next call for this program. */
bool pln_subprocess_line(pln_subprocess *p, pln_slice *line);
/* True when no line is left and none will come. */
bool pln_subprocess_at_end(pln_subprocess *p);

/* Waits up to `seconds` for its end, then kills its process group. */
pln_status pln_subprocess_finish(pln_subprocess *p, double seconds,
                                 pln_child_end *out) PLN_CHECKED;

#endif
