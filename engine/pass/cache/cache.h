/* cache.h: the pass result cache. It maps a pass and the content of its input
 * to the result. */

#ifndef PLN_PASS_CACHE_CACHE_H
#define PLN_PASS_CACHE_CACHE_H

#include "pass/pass.h"

/* The counters of a run before it came to the current function. */
typedef struct pln_cache_mark {
  size_t diags;
  uint64_t again;
  uint64_t op_attr_uses; /* a run that calls functions of operators is not kept,
                            because they may depend on anything */
  uint32_t n_counters;
  int64_t counters[8]; /* a result that changes more counters is not cached */
} pln_cache_mark;

/* Returns true if results of this run can be cached: the context gives the
 * cache room, and the pass declares that its result depends on its input only.
 */
bool pln_cache_works(const pln_pass_run *run);
/* Returns true if the result is probably cached; such functions are not given
 * to worker threads. May be wrong either way. */
bool pln_cache_may_have(const pln_pass_run *run, const pln_pass_target *in);
/* Looks up the result for `in`, the function or module of the run. If it is
 * there *found is true, *out has the result, and the counters of the original
 * run are added to this one's. */
pln_status pln_cache_find(pln_pass_run *run, const pln_pass_target *in,
                          bool *found, pln_pass_target *out) PLN_CHECKED;
void pln_cache_begin(pln_pass_run *run, pln_cache_mark *mark);
/* Stores the result of the pass and the counters since the mark. A run that
 * reported diagnostics is not stored. */
pln_status pln_cache_keep(pln_pass_run *run, const pln_cache_mark *mark,
                          const pln_pass_target *in,
                          const pln_pass_target *out) PLN_CHECKED;
/* Drops the entries of a definition that is released. */
void pln_cache_forget(pln_engine *engine, pln_pass_def *def);
void pln_cache_free(pln_engine *engine);

#endif
