/* parallel.h: function passes in several threads; for primitive.c and group.c.
 *
 * A worker is a child engine over the engine, which is frozen while workers
 * work. Each takes functions, largest first, as long as there are any. What
 * they made is brought home when all are done, and taken function by function
 * in order of the module, so that everything is as one thread would leave it.
 * What did not go well, or nobody did, is left to the caller's thread, which
 * does it then as it always does: errors are those of one thread. */

#ifndef PLN_PASS_PARALLEL_PARALLEL_H
#define PLN_PASS_PARALLEL_PARALLEL_H

#include "pass/pass.h"

/* How many processors this process may use. */
uint32_t pln_processor_count(void);

/* crew.c. At most `n` helpers, which may be fewer when the system has no more
 * threads; kept until the outermost application ends. */
pln_status pln_thread_pool_get(pln_engine *engine, uint32_t n,
                               struct pln_thread_pool **out) PLN_CHECKED;
uint32_t pln_thread_pool_size(const struct pln_thread_pool *thread_pool);
/* Calls job(ud, part) for each part below `parts`, which is at most 1 + the
 * size: part 0 here, the others each in a thread of its own. */
void pln_thread_pool_run(struct pln_thread_pool *thread_pool, uint32_t parts,
                         void (*job)(void *ud, uint32_t part), void *ud);
void pln_thread_pool_free(struct pln_thread_pool *thread_pool);

/* child.c. NULL when memory is out; nothing is reported in the parent. Passes,
 * and contexts made there, are the child's; `context` is current. */
pln_engine *pln_child_new(pln_worker_group *family, const pln_context *context);
void pln_child_free(pln_engine *child);

/* One function for one worker: what it is given, and what it hands back. */
typedef struct pln_work_item {
  pln_engine *engine; /* the child; context and module are its own */
  pln_context *context;
  const pln_module *module;
  uint32_t index;
  pln_graph *result; /* owned; NULL: unchanged */
  bool removed;      /* the pass takes the function out */
  uint64_t changes;  /* a group: how often its passes changed something */
  uint32_t n_counters, cap_counters;
  pln_counter *counters;
} pln_work_item;

/* A pass, or a group of such, and the functions it is for. */
typedef struct pln_parallel_job {
  pln_engine *engine;
  const pln_context *context;
  const pln_module *module;
  const pln_pass *pass;
  uint32_t depth;               /* of the execution */
  const pln_position *position; /* a group's */
  uint32_t iteration;
  const bool *done; /* functions that need not be looked at; NULL: none */
  bool (*takes)(const pln_pass *pass, const pln_graph *function);
  pln_status (*run)(const struct pln_parallel_job *work, pln_work_item *share);
} pln_parallel_job;

typedef struct pln_parallel pln_parallel;
/* Runs what is worth it; *out is NULL when nothing is. */
pln_status pln_parallel_run(const pln_parallel_job *work,
                            pln_parallel **out) PLN_CHECKED;
/* What became of a function of the module; *taken is false when it is still to
 * be done. `run` (NULL: a group) gets the counters. In order of the module; the
 * parallel work may be NULL. */
pln_status pln_parallel_take(pln_parallel *parallel, uint32_t index,
                             pln_pass_run *run, pln_graph **result,
                             bool *taken) PLN_CHECKED;
/* Of a group, for a function that was taken. */
uint64_t pln_parallel_changes(const pln_parallel *parallel, uint32_t index);
void pln_parallel_free(pln_parallel *parallel);

#endif
