/* shared_allreduce.c: a reduction over threads through shared memory
 * (allreduce.h).
 *
 * Called by lower_thread_allreduce.c. Each thread stores its value; with each
 * step the first half of those that are left combine theirs with those of the
 * second half. There is a barrier of the block after each step, and barriers of
 * the warp where one warp has all that is left.
 *
 * Semantics: MakeBufAllreduce of TVM's lower_thread_allreduce.cc. */

#include <stdio.h>

#include "lower/thread/allreduce.h"

typedef struct shared_round {
  pln_allreduce *r;
  pln_ref buffers[PLN_MOST_REDUCED];
  pln_ref index; /* of the present thread's element */
} shared_round;

/* group_index * reduce_extent + index, simplified. */
static pln_ref element_of(pln_allreduce *r, pln_ref index) {
  pln_emit *e = &r->e;
  pln_term term, simple;
  pln_ref out = PLN_NONE;
  if (r->group_extent == 1)
    return index;
  pln_ref base = pln_emit_folded(e, PLN_PRIM_MUL, r->group_index,
                                 pln_allreduce_index(r, r->reduce_extent));
  pln_ref sum = pln_emit_folded(e, PLN_PRIM_ADD, base, index);
  if (e->status == PLN_OK)
    e->status = pln_analyzer_import_built(r->a, e->b, sum, &term);
  if (e->status == PLN_OK)
    e->status = pln_analyzer_simplify(r->a, term, 2, &simple);
  if (e->status == PLN_OK)
    e->status = pln_analyzer_export(r->a, e->b, simple, &out);
  return out;
}

/* Value `i` of the present thread combined with that of another. */
static pln_ref combined(shared_round *x, uint32_t i, pln_ref other) {
  pln_ref mine[PLN_MOST_REDUCED], theirs[PLN_MOST_REDUCED];
  pln_allreduce_load(x->r, x->buffers, other, theirs);
  pln_allreduce_load(x->r, x->buffers, x->index, mine);
  return pln_allreduce_combine(x->r, i, mine, theirs);
}

static pln_ref other_element(shared_round *x, int64_t offset) {
  pln_allreduce *r = x->r;
  return element_of(r, pln_emit_folded(&r->e, PLN_PRIM_ADD, r->reduce_index,
                                       pln_allreduce_index(r, offset)));
}

static pln_ref is_below(pln_allreduce *r, int64_t limit) {
  return pln_emit_folded(&r->e, PLN_PRIM_LT, r->reduce_index,
                         pln_allreduce_index(r, limit));
}

/* The threads below `limit` combine, then all threads of the block wait. */
static void reduce_block(shared_round *x, int64_t offset, int64_t limit) {
  pln_allreduce *r = x->r;
  pln_ref other = other_element(x, offset), values[PLN_MOST_REDUCED];
  uint32_t first = r->n;
  for (uint32_t i = 0; i < r->size; i++)
    values[i] = combined(x, i, other);
  pln_allreduce_assign(r, x->buffers, x->index, values);
  pln_allreduce_push(r, pln_emit_if(&r->e, is_below(r, limit),
                                    pln_allreduce_take(r, first), PLN_NONE));
  pln_allreduce_sync(r, "shared");
}

/* All threads of the warp combine: they load before any of them stores. */
static void reduce_in_warp(shared_round *x, int64_t offset) {
  pln_allreduce *r = x->r;
  pln_ref other = other_element(x, offset), vars[PLN_MOST_REDUCED];
  uint32_t first = r->n;
  pln_allreduce_sync(r, "warp");
  for (uint32_t i = 0; i < r->size; i++) {
    char name[48];
    (void)snprintf(name, sizeof name, "w_%lld_%u", (long long)offset, i);
    vars[i] = pln_emit_var(&r->e, name, r->types[i]);
    pln_allreduce_push(r,
                       pln_emit_store(&r->e, x->buffers[i], x->index, vars[i]));
  }
  pln_allreduce_sync(r, "warp");
  pln_ref body = pln_allreduce_take(r, first);
  for (uint32_t i = 0; i < r->size; i++)
    body = pln_emit_let(&r->e, vars[i], combined(x, i, other), body);
  pln_allreduce_push(r, body);
}

/* `left`: a power of two, of values that are left. */
static void reduce_last(shared_round *x, int64_t left) {
  pln_allreduce *r = x->r;
  uint32_t first = r->n;
  if (left <= 1)
    return;
  pln_ref in_warp = is_below(r, left / 2);
  for (; left > 1; left /= 2)
    reduce_in_warp(x, left / 2);
  pln_allreduce_push(
      r, pln_emit_if(&r->e, in_warp, pln_allreduce_take(r, first), PLN_NONE));
  pln_allreduce_sync(r, "shared");
}

static void reduce_all(shared_round *x) {
  pln_allreduce *r = x->r;
  int64_t left = 1, warp = r->target->warp_size;
  while (left < r->reduce_extent)
    left *= 2;
  if (left > r->reduce_extent) {
    left /= 2;
    reduce_block(x, left, r->reduce_extent - left);
  }
  bool aligned = r->group_extent == 1 || r->contiguous_extent % warp == 0;
  while (left > 1 && (left > r->contiguous_extent || left > warp || !aligned)) {
    left /= 2;
    reduce_block(x, left, left);
  }
  reduce_last(x, left);
}

/* The first barrier is for reads of results of the round before. */
void pln_shared_allreduce(pln_allreduce *r) {
  shared_round x = {.r = r, .index = element_of(r, r->reduce_index)};
  pln_allreduce_sync(r, "shared");
  for (uint32_t i = 0; i < r->size; i++) {
    x.buffers[i] = pln_allreduce_buffer(r, "red_buf%u", i, "shared",
                                        r->group_extent * r->reduce_extent);
    pln_allreduce_push(
        r, pln_emit_store(&r->e, x.buffers[i], x.index, r->values[i]));
  }
  pln_allreduce_sync(r, "shared");
  reduce_all(&x);
  memcpy(r->results, x.buffers, sizeof r->results);
  r->result_index = element_of(r, pln_allreduce_index(r, 0));
  r->extents[0] = pln_emit_int(&r->e, PLN_INT32, r->group_extent);
  r->extents[1] = pln_emit_int(&r->e, PLN_INT32, r->reduce_extent);
  r->n_extents = 2;
}
