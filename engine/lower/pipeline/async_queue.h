/* async_queue.h: the emitted part of a pipeline, and the copies in it that are
 * waited for. */

#ifndef PLN_LOWER_PIPELINE_ASYNC_QUEUE_H
#define PLN_LOWER_PIPELINE_ASYNC_QUEUE_H

#include "arith/arith.h"
#include "lower/pipeline/pipeline.h"

/* A statement of the pipeline in one of its parts; nodes of the builder. */
typedef struct pln_emitted {
  const pln_pipeline_child *child; /* NULL: it has no round there */
  pln_ref condition, body, index;  /* index: of the round */
  pln_ref wait_count;              /* before it; PLN_NONE: none */
  int64_t wait_stage;
  uint32_t group; /* 1 + the commit group that it belongs to */
} pln_emitted;

/* Of a stage, in the present part. */
typedef struct pln_async_stage {
  pln_ref head;      /* global: the round last written to; PLN_NONE: unknown */
  pln_ref now;       /* the same in this part; PLN_NONE: none is written */
  pln_ref predicate; /* under which it is written; PLN_NONE: none yet */
  bool met, consumed, waits;
  uint32_t wait_before; /* number of a statement */
  pln_ref wait_count;
  uint32_t first_group, n_groups; /* of this part */
} pln_async_stage;

typedef struct pln_async_queue {
  const pln_graph *g;
  pln_emit e;
  pln_analyzer *own, *normal; /* rounds of the part, and counted from 0 */
  const pln_pipelines *all;
  pln_async_stage *stages;
  uint32_t n_stages;
  uint32_t *stage_of; /* by Buffer: 1 + the stage that writes it */
  uint32_t *group_of; /* by Buffer: 1 + its group in the present part */
  uint32_t *seen;     /* by Buffer: the part in which it was written */
  uint32_t part, n_groups;
  uint32_t *counted; /* by group: the statement that counts it, + 1 */
  uint32_t cap_stages, cap_counted;
} pln_async_queue;

pln_status pln_async_queue_new(pln_async_queue *q,
                               const pln_pipelines *all) PLN_CHECKED;
void pln_async_queue_free(pln_async_queue *q);
/* A pipeline begins, whose loop has this variable (of the builder). */
pln_status pln_async_queue_enter(pln_async_queue *q, const pln_pipeline *p,
                                 pln_ref var) PLN_CHECKED;
/* A part begins; a statement follows in it; all of them did. */
void pln_async_queue_begin(pln_async_queue *q);
pln_status pln_async_queue_add(pln_async_queue *q,
                               pln_emitted *stmt) PLN_CHECKED;
pln_status pln_async_queue_count(pln_async_queue *q, uint32_t n,
                                 pln_emitted *stmts) PLN_CHECKED;
/* The part, of so many rounds, is done. */
pln_status pln_async_queue_end(pln_async_queue *q, pln_ref extent) PLN_CHECKED;

#endif
