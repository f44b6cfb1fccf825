/* fold_log.h: the log of FoldConstant: a line for each node that was folded or
 * refused, with its rule and cost. */

#ifndef PLN_TRANSFORM_FOLD_FOLD_LOG_H
#define PLN_TRANSFORM_FOLD_FOLD_LOG_H

#include "eval/eval.h"
#include "transform/transform.h"

typedef struct pln_fold_log {
  pln_pass_run *run;
  pln_slice target;   /* a file's path; "-": where PrintIR prints; "": no log */
  pln_buffer folded;  /* lines of all sweeps */
  pln_buffer refused; /* of the current sweep: a later one may fold */
} pln_fold_log;

void pln_fold_log_begin(pln_fold_log *log, pln_pass_run *run);
/* Forgets the refusals of an earlier sweep. */
void pln_fold_log_sweep(pln_fold_log *log);
/* `node` of `graph` was replaced by `result`. */
pln_status pln_fold_log_fold(pln_fold_log *log, const pln_graph *graph,
                             pln_ref node, pln_ref result,
                             const char *rule) PLN_CHECKED;
pln_status pln_fold_log_refusal(pln_fold_log *log, const pln_graph *graph,
                                pln_ref node, pln_refusal why) PLN_CHECKED;
/* Writes the lines if `status` is PLN_OK, and frees them. Returns `status` or
 * the failure to write. */
pln_status pln_fold_log_end(pln_fold_log *log, pln_status status) PLN_CHECKED;

#endif
