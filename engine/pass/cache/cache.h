/* cache.h: what passes gave, kept to be given again. */

#ifndef PLN_PASS_CACHE_CACHE_H
#define PLN_PASS_CACHE_CACHE_H

#include "pass/pass.h"

/* Where the counters of a run stood before it came to a function. */
typedef struct pln_cache_mark {
  size_t diags;
  uint64_t again;
  uint32_t n_counters;
  int64_t counters[8]; /* more of them: the result is not kept */
} pln_cache_mark;

/* Whether results of this run are kept: the context has room for them and the
 * pass says that nothing but its input decides. */
bool pln_cache_works(const pln_pass_run *run);
/* Most likely it will be found: other threads need not look at it. */
bool pln_cache_may_have(const pln_pass_run *run, const pln_pass_target *in);
/* Looks for what the pass gave for `in`, the function or the module of the
 * run. When there is something *found, and *out holds it; the counters of that
 * run are added to this one's. */
pln_status pln_cache_find(pln_pass_run *run, const pln_pass_target *in,
                          bool *found, pln_pass_target *out) PLN_CHECKED;
void pln_cache_begin(const pln_pass_run *run, pln_cache_mark *mark);
/* Keeps what the pass gave since the mark, unless it said something. */
pln_status pln_cache_keep(pln_pass_run *run, const pln_cache_mark *mark,
                          const pln_pass_target *in,
                          const pln_pass_target *out) PLN_CHECKED;
/* What a pass gave that is released. */
void pln_cache_forget(pln_engine *engine, pln_pass_def *def);
void pln_cache_free(pln_engine *engine);

#endif
