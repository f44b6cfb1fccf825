/* parallel.h: runs function passes on a thread pool. Used by primitive.c and
 * pipeline/per_function.c.
 *
 * Each worker owns a child engine over the parent engine, which is frozen while
 * workers run, and takes functions as work items, largest first. When all
 * workers have stopped their results are merged into the parent in module
 * order, so that the outcome does not depend on the number of threads. A work
 * item that fails, or that no worker took, is run again on the caller's thread,
 * which reports the error as a run with one thread would. */

#ifndef PLN_PASS_PARALLEL_PARALLEL_H
#define PLN_PASS_PARALLEL_PARALLEL_H

#include "base/thread/thread_pool.h"
#include "pass/pass.h"

/* child_engine.c. Returns NULL if memory is out; nothing is reported in the
 * parent. The child has its own registry and contexts; a copy of `context` is
 * current. */
pln_engine *pln_child_new(pln_worker_group *family, const pln_context *context);
void pln_child_free(pln_engine *child);

/* One function for one worker: its input and its results. */
typedef struct pln_work_item {
  pln_engine *engine; /* the child engine; context and module belong to it */
  pln_context *context;
  const pln_module *module;
  uint32_t index;
  pln_graph *result; /* owned; NULL: unchanged */
  bool removed;      /* the pass removed the function */
  bool reads_module; /* pln_run_reads_module */
  uint64_t changes;  /* functions{..}: how many of its runs changed something */
  uint32_t n_counters, cap_counters;
  pln_counter *counters;
} pln_work_item;

/* A pass, or a functions{..} of such passes, and the functions to run it on. */
typedef struct pln_parallel_job {
  pln_engine *engine;
  const pln_context *context;
  const pln_module *module;
  const pln_pass *pass;
  uint32_t depth;               /* nesting depth of the execution */
  const pln_position *position; /* functions{..} only */
  uint32_t iteration;
  const bool *done; /* functions to leave out, one flag each; NULL: none */
  bool (*takes)(const pln_pass *pass, const pln_graph *function);
  pln_status (*run)(const struct pln_parallel_job *work, pln_work_item *share);
} pln_parallel_job;

typedef struct pln_parallel pln_parallel;
/* Runs the job on worker threads if that pays off; else *out is NULL. */
pln_status pln_parallel_run(const pln_parallel_job *work,
                            pln_parallel **out) PLN_CHECKED;
/* Takes the result of function `index`. *taken is false if the caller must run
 * the function itself. Must be called in module order. `run` gets the counters
 * (NULL: functions{..}). `parallel` may be NULL. */
pln_status pln_parallel_take(pln_parallel *parallel, uint32_t index,
                             pln_pass_run *run, pln_graph **result,
                             bool *taken) PLN_CHECKED;
/* How many runs of functions{..} changed function `index`, which was taken. */
uint64_t pln_parallel_changes(const pln_parallel *parallel, uint32_t index);
void pln_parallel_free(pln_parallel *parallel);

#endif
