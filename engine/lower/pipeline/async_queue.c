/* async_queue.c: commits and waits of asynchronous stages of a pipeline
 * (async_queue.h).
 *
 * Called by inject_software_pipeline.c, for each part of a pipeline: what is
 * before the loop, the loop, and what is behind it. Statements of an
 * asynchronous stage are committed in groups; a statement that reads what they
 * write waits until at most as many groups are under way as were begun after
 * the one that it needs. Where that number is not known it is 0.
 *
 * Semantics: PopulateWaitCounts and EmitImpl of TVM's
 * inject_software_pipeline.cc. */

#include "lower/pipeline/async_queue.h"

pln_status pln_async_queue_new(pln_async_queue *q, const pln_pipelines *all) {
  pln_engine *e = all->g->engine;
  size_t nodes = all->g->n_nodes;
  *q = (pln_async_queue){.g = all->g, .all = all};
  q->stage_of = pln_mem_zeroed(e, nodes * sizeof *q->stage_of);
  q->group_of = pln_mem_zeroed(e, nodes * sizeof *q->group_of);
  q->seen = pln_mem_zeroed(e, nodes * sizeof *q->seen);
  return q->stage_of && q->group_of && q->seen ? PLN_OK : pln_nomem(e);
}

void pln_async_queue_free(pln_async_queue *q) {
  pln_engine *e = q->g->engine;
  size_t nodes = q->g->n_nodes;
  pln_mem_free(e, q->stage_of, nodes * sizeof *q->stage_of);
  pln_mem_free(e, q->group_of, nodes * sizeof *q->group_of);
  pln_mem_free(e, q->seen, nodes * sizeof *q->seen);
  pln_mem_free(e, q->stages, q->cap_stages * sizeof *q->stages);
  pln_mem_free(e, q->counted, q->cap_counted * sizeof *q->counted);
}

pln_status pln_async_queue_enter(pln_async_queue *q, const pln_pipeline *p,
                                 pln_ref var) {
  q->n_stages = (uint32_t)p->max_stage + 1;
  PLN_TRY(pln_mem_grow(q->g->engine, (void **)&q->stages, &q->cap_stages,
                       q->n_stages, sizeof *q->stages));
  for (uint32_t i = 0; i < q->n_stages; i++)
    q->stages[i] = (pln_async_stage){
        .head = pln_emit_int_of(&q->e, pln_emit_type_of(&q->e, var), -1)};
  for (uint32_t i = p->first; i < p->first + p->n; i++) {
    pln_ref buffer;
    for (uint32_t k = 0;
         (buffer = pln_pipeline_buffer(q->all, &q->all->children[i], true,
                                       k)) != PLN_NONE;
         k++)
      q->stage_of[buffer] = q->group_of[buffer] = 0;
  }
  return q->e.status;
}

void pln_async_queue_begin(pln_async_queue *q) {
  q->part++;
  q->n_groups = 0;
  for (uint32_t i = 0; i < q->n_stages; i++)
    q->stages[i] = (pln_async_stage){.head = q->stages[i].head,
                                     .now = PLN_NONE,
                                     .predicate = PLN_NONE,
                                     .wait_count = PLN_NONE};
}

/* ---------------------------------------------------------------- terms */

static pln_status proves(pln_async_queue *q, pln_analyzer *a, pln_ref condition,
                         bool *out) {
  pln_term term;
  PLN_TRY(q->e.status);
  PLN_TRY(pln_analyzer_import_built(a, q->e.b, condition, &term));
  return pln_analyzer_can_prove(a, term, 0, out);
}

static pln_status simplify(pln_async_queue *q, pln_analyzer *a, pln_ref *node) {
  pln_term term;
  PLN_TRY(q->e.status);
  PLN_TRY(pln_analyzer_import_built(a, q->e.b, *node, &term));
  PLN_TRY(pln_analyzer_simplify(a, term, 2, &term));
  return pln_analyzer_export(a, q->e.b, term, node);
}

/* ----------------------------------------------------------------- producers
 */

/* The stage that writes the Buffer asynchronously, if it is not after that
 * one; or NULL. */
static pln_async_stage *producer_of(const pln_async_queue *q, pln_ref buffer,
                                    int64_t stage) {
  uint32_t at = q->stage_of[buffer];
  return at && (int64_t)at - 1 <= stage ? &q->stages[at - 1] : NULL;
}

static pln_status note_writes(pln_async_queue *q, const pln_emitted *stmt) {
  uint32_t stage = (uint32_t)stmt->child->stage + 1;
  pln_ref buffer;
  for (uint32_t k = 0;
       (buffer = pln_pipeline_buffer(q->all, stmt->child, true, k)) != PLN_NONE;
       k++) {
    if (q->stage_of[buffer] && q->stage_of[buffer] != stage)
      return pln_diag_error(q->g->engine, PLN_ERR_ARGUMENT, NULL,
                            "tir.InjectSoftwarePipeline: two asynchronous "
                            "stages write one buffer");
    q->stage_of[buffer] = stage;
    q->group_of[buffer] = stmt->group;
  }
  return PLN_OK;
}

static pln_status add_predicate(pln_async_queue *q, pln_async_stage *stage,
                                pln_ref condition) {
  bool always = stage->predicate == PLN_NONE;
  pln_ref both[2] = {stage->predicate, condition};
  if (!always)
    PLN_TRY(proves(q, q->normal, stage->predicate, &always));
  if (always) {
    stage->predicate = condition;
    return PLN_OK;
  }
  stage->predicate = pln_emit_call(&q->e, "bitwise_and",
                                   pln_emit_type(&q->e, PLN_BOOL), 2, both);
  return simplify(q, q->normal, &stage->predicate);
}

static pln_status add_producer(pln_async_queue *q, pln_emitted *stmt) {
  pln_async_stage *stage = &q->stages[stmt->child->stage];
  if (stage->n_groups == 0 || stage->consumed) {
    stage->n_groups++;
    stage->first_group = ++q->n_groups;
  }
  stmt->group = stage->first_group;
  stage->met = true;
  stage->now = stmt->index;
  PLN_TRY(note_writes(q, stmt));
  return add_predicate(q, stage, stmt->condition);
}

pln_status pln_async_queue_add(pln_async_queue *q, pln_emitted *stmt) {
  pln_ref buffer;
  if (stmt->child->async)
    PLN_TRY(add_producer(q, stmt));
  for (uint32_t k = 0; (buffer = pln_pipeline_buffer(q->all, stmt->child, false,
                                                     k)) != PLN_NONE;
       k++) {
    pln_async_stage *stage = producer_of(q, buffer, stmt->child->stage);
    if (stage)
      stage->met = stage->consumed = true;
  }
  return PLN_OK;
}

/* --------------------------------------------------------------------- waits
 */

/* count + (head - the statement's round); PLN_NONE: not known. */
static pln_status add_head(pln_async_queue *q, const pln_emitted *stmt,
                           pln_ref head, pln_ref *count) {
  pln_ref zero, rounds;
  bool known = false;
  if (*count == PLN_NONE || head == PLN_NONE) {
    *count = PLN_NONE;
    return PLN_OK;
  }
  zero = pln_emit_int_of(&q->e, pln_emit_type_of(&q->e, head), 0);
  PLN_TRY(proves(q, q->normal, pln_emit_folded(&q->e, PLN_PRIM_GE, head, zero),
                 &known));
  rounds = pln_emit_folded(&q->e, PLN_PRIM_SUB, head, stmt->index);
  PLN_TRY(simplify(q, q->own, &rounds));
  *count =
      known ? pln_emit_folded(&q->e, PLN_PRIM_ADD, *count, rounds) : PLN_NONE;
  return q->e.status;
}

/* The round that the group of the Buffer has written in this part: if it is not
 * written yet, that of the round before. */
static pln_status add_group(pln_async_queue *q, const pln_emitted *stmt,
                            uint32_t number, const pln_async_stage *stage,
                            pln_ref buffer, pln_ref *count) {
  uint32_t group = q->group_of[buffer];
  pln_ref head = stage->now;
  if (!group) {
    *count = PLN_NONE;
    return PLN_OK;
  }
  if (q->counted[group - 1] == number + 1)
    return PLN_OK;
  q->counted[group - 1] = number + 1;
  if (q->seen[buffer] != q->part)
    head = pln_emit_folded(
        &q->e, PLN_PRIM_SUB, head,
        pln_emit_int_of(&q->e, pln_emit_type_of(&q->e, head), 1));
  return add_head(q, stmt, head, count);
}

static pln_status find_producer(pln_async_queue *q, const pln_emitted *stmt,
                                pln_async_stage **out) {
  pln_ref buffer;
  *out = NULL;
  for (uint32_t k = 0; (buffer = pln_pipeline_buffer(q->all, stmt->child, false,
                                                     k)) != PLN_NONE;
       k++) {
    pln_async_stage *stage = producer_of(q, buffer, stmt->child->stage);
    if (stage && *out && stage != *out)
      return pln_diag_error(q->g->engine, PLN_ERR_ARGUMENT, NULL,
                            "tir.InjectSoftwarePipeline: a statement reads "
                            "what two asynchronous stages write");
    if (stage)
      *out = stage;
  }
  return PLN_OK;
}

static pln_status count_groups(pln_async_queue *q, const pln_emitted *stmt,
                               uint32_t number, const pln_async_stage *stage,
                               pln_ref *count) {
  pln_ref buffer;
  *count = pln_emit_int(&q->e, PLN_INT32, 0);
  if (stage->n_groups == 0)
    PLN_TRY(add_head(q, stmt, stage->head, count));
  for (uint32_t k = 0;
       stage->n_groups > 0 && (buffer = pln_pipeline_buffer(
                                   q->all, stmt->child, false, k)) != PLN_NONE;
       k++)
    if (producer_of(q, buffer, stmt->child->stage) == stage)
      PLN_TRY(add_group(q, stmt, number, stage, buffer, count));
  if (*count == PLN_NONE)
    *count = pln_emit_int(&q->e, PLN_INT32, 0);
  return q->e.status;
}

static pln_status count_wait(pln_async_queue *q, const pln_emitted *stmts,
                             uint32_t i) {
  pln_async_stage *stage;
  pln_ref count;
  bool less = false;
  PLN_TRY(find_producer(q, &stmts[i], &stage));
  if (!stage)
    return PLN_OK;
  stage->met = true;
  PLN_TRY(count_groups(q, &stmts[i], i, stage, &count));
  if (!stage->waits) {
    stage->waits = true;
    stage->wait_before = i;
    stage->wait_count = count;
    return PLN_OK;
  }
  PLN_TRY(proves(q, q->own,
                 pln_emit_folded(&q->e, PLN_PRIM_LT, count, stage->wait_count),
                 &less));
  if (less)
    stage->wait_count = count;
  return PLN_OK;
}

/* Where the stage is written under a condition only, the number is right only
 * under it. */
static pln_status place_wait(pln_async_queue *q, pln_emitted *stmts,
                             uint32_t i) {
  const pln_async_stage *stage = &q->stages[i];
  pln_emitted *stmt;
  bool always = stage->predicate == PLN_NONE;
  if (!stage->waits)
    return PLN_OK;
  stmt = &stmts[stage->wait_before];
  stmt->wait_count = stage->wait_count;
  stmt->wait_stage = i;
  if (!always)
    PLN_TRY(proves(q, q->normal, stage->predicate, &always));
  if (always)
    return PLN_OK;
  pln_ref args[3] = {stage->predicate, stage->wait_count,
                     pln_emit_int(&q->e, PLN_INT32, 0)};
  stmt->wait_count = pln_emit_call(&q->e, "if_then_else",
                                   pln_emit_type(&q->e, PLN_INT32), 3, args);
  return q->e.status;
}

static void note_seen(pln_async_queue *q, const pln_emitted *stmt) {
  pln_ref buffer;
  for (uint32_t k = 0;
       (buffer = pln_pipeline_buffer(q->all, stmt->child, true, k)) != PLN_NONE;
       k++)
    q->seen[buffer] = q->part;
}

pln_status pln_async_queue_count(pln_async_queue *q, uint32_t n,
                                 pln_emitted *stmts) {
  PLN_TRY(pln_mem_grow(q->g->engine, (void **)&q->counted, &q->cap_counted,
                       (size_t)q->n_groups + 1, sizeof *q->counted));
  memset(q->counted, 0, (q->n_groups + (size_t)1) * sizeof *q->counted);
  for (uint32_t i = 0; i < n; i++) {
    if (stmts[i].child->async)
      note_seen(q, &stmts[i]);
    PLN_TRY(count_wait(q, stmts, i));
  }
  for (uint32_t i = 0; i < q->n_stages; i++)
    PLN_TRY(place_wait(q, stmts, i));
  return PLN_OK;
}

/* The last round that was written is known as long as all of them were. */
pln_status pln_async_queue_end(pln_async_queue *q, pln_ref extent) {
  for (uint32_t i = 0; i < q->n_stages; i++) {
    pln_async_stage *stage = &q->stages[i];
    bool always = false;
    if (!stage->met)
      continue;
    if (stage->predicate != PLN_NONE)
      PLN_TRY(proves(q, q->normal, stage->predicate, &always));
    if (always && stage->head != PLN_NONE)
      stage->head = pln_emit_folded(&q->e, PLN_PRIM_ADD, stage->head, extent);
    else
      stage->head = PLN_NONE;
  }
  return q->e.status;
}
