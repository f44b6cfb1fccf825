/* warp_allreduce.c: a reduction over threads whose registers are exchanged
 * within warps (allreduce.h).
 *
 * Called by lower_thread_allreduce.c. A warp halves the number of values with
 * each exchange. Several warps put what each of them has into shared memory,
 * from which one warp of each group reduces again.
 *
 *     t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 16, 32, 32)
 *     red_buf0[0] = red_buf0[0] + t0[0]
 *
 * Semantics: MakeWarpAllreduce of TVM's lower_thread_allreduce.cc. */

#include "lower/thread/allreduce.h"

/* One exchange of registers in each warp. */
typedef struct warp_round {
  int64_t extent;                    /* values to reduce */
  pln_ref values[PLN_MOST_REDUCED];  /* to begin with */
  pln_ref predicate;                 /* of threads that have one; or PLN_NONE */
  pln_ref mask_value;                /* of the threads that take part */
  pln_ref mask;                      /* its Buffer; PLN_NONE: no masks */
  pln_ref reduced[PLN_MOST_REDUCED]; /* Buffers: the results */
  pln_ref received[PLN_MOST_REDUCED]; /* Buffers: from another thread */
} warp_round;

static bool has_masks(const pln_allreduce *r) {
  return !pln_slice_is(r->target->kind, "metal");
}

/* ---------------------------------------------------------------- conditions
 */

/* Registers hold 4 to 8 bytes, or two halves. */
static bool fits_register(const pln_allreduce *r, pln_type type) {
  const pln_engine *e = r->e.b->engine;
  uint32_t bits = pln_dtype_bits(pln_type_dtype(e, type));
  int64_t lanes = pln_type_number(e, type);
  if (pln_slice_is(r->target->kind, "rocm") && (lanes != 1 || bits != 32))
    return false;
  if (pln_type_dtype(e, type) == PLN_FLOAT16)
    return lanes <= 2;
  return lanes == 1 && bits >= 32 && bits <= 64;
}

static bool has_warps(const pln_allreduce *r) {
  return pln_slice_is(r->target->kind, "cuda") ||
         pln_slice_is(r->target->kind, "rocm") ||
         pln_slice_is(r->target->kind, "metal");
}

bool pln_is_warp_allreduce(const pln_allreduce *r) {
  int64_t warp = r->target->warp_size, threads = r->target->max_num_threads;
  if (!has_warps(r) || r->reduce_extent == 1 || warp < 1 ||
      r->contiguous_extent != r->reduce_extent)
    return false;
  for (uint32_t i = 0; i < r->size; i++)
    if (!fits_register(r, r->types[i]))
      return false;
  if (pln_slice_is(r->target->kind, "rocm"))
    return r->reduce_extent == warp;
  bool within = warp % r->reduce_extent == 0;
  bool several =
      threads != -1 && threads / warp <= warp && r->reduce_extent % warp == 0;
  return within || several ||
         (r->group_extent == 1 && r->reduce_extent <= warp);
}

/* --------------------------------------------------------------------- masks
 */

static pln_ref active_mask(pln_allreduce *r) {
  return pln_emit_call(&r->e, "tvm_warp_activemask",
                       pln_emit_type(&r->e, PLN_UINT32), 0, NULL);
}

enum { MOST_MASKED = 31 }; /* a mask has 32 bits, of which one is the sign */

/* The active threads among `n` of each group, whose bits are shifted by `n` for
 * each group before. */
static pln_ref group_mask(pln_allreduce *r, int64_t n, bool unsigned_shift) {
  pln_emit *e = &r->e;
  pln_type bits = pln_emit_type(e, PLN_UINT32);
  pln_ref pair[2] = {active_mask(r), PLN_NONE}, shift[2];
  if (e->status == PLN_OK && n > MOST_MASKED)
    e->status = pln_diag_error(
        e->b->engine, PLN_ERR_ARGUMENT, NULL,
        "tir.LowerThreadAllreduce: a mask of more than %d threads",
        MOST_MASKED);
  int64_t ones = n > MOST_MASKED ? 0 : ((int64_t)1 << n) - 1;
  if (r->group_extent == 1) {
    pair[1] = pln_emit_int_of(e, bits, ones);
  } else if (unsigned_shift) {
    shift[0] = pln_emit_int_of(e, bits, ones);
    shift[1] = pln_emit_folded(e, PLN_PRIM_MUL, pln_emit_int_of(e, bits, n),
                               pln_emit_cast(e, bits, r->group_index));
    pair[1] = pln_emit_call(e, "shift_left", bits, 2, shift);
  } else {
    shift[0] = pln_allreduce_index(r, ones);
    shift[1] = pln_emit_folded(e, PLN_PRIM_MUL, r->group_index,
                               pln_allreduce_index(r, n));
    pair[1] = pln_emit_cast(e, bits,
                            pln_emit_call(e, "shift_left",
                                          pln_emit_type_of(e, r->group_index),
                                          2, shift));
  }
  return pln_emit_call(e, "bitwise_and", bits, 2, pair);
}

static void declare_mask(pln_allreduce *r, warp_round *x) {
  pln_emit *e = &r->e;
  x->mask = PLN_NONE;
  if (!has_masks(r))
    return;
  pln_type type = pln_emit_type(e, PLN_UINT32);
  pln_ref data = pln_emit_var(e, "mask", pln_emit_pointer(e, type, "local"));
  x->mask =
      pln_emit_buffer(e, "mask", data, type, pln_emit_int(e, PLN_INT32, 1));
  pln_allreduce_push(
      r,
      pln_emit_store(e, x->mask, pln_emit_int(e, PLN_INT32, 0), x->mask_value));
}

/* ------------------------------------------------------------------ exchange
 */

static pln_ref register_of(pln_allreduce *r, pln_ref buffer) {
  return pln_emit_load(&r->e, buffer, pln_emit_int(&r->e, PLN_INT32, 0));
}

static void set_register(pln_allreduce *r, pln_ref buffer, pln_ref value) {
  pln_allreduce_push(
      r,
      pln_emit_store(&r->e, buffer, pln_emit_int(&r->e, PLN_INT32, 0), value));
}

static pln_ref shuffle(pln_allreduce *r, const warp_round *x, const char *how,
                       uint32_t i, pln_ref lane) {
  pln_emit *e = &r->e;
  pln_ref width = pln_emit_int(e, PLN_INT32, r->target->warp_size);
  pln_ref args[5] = {PLN_NONE, register_of(r, x->reduced[i]), lane, width,
                     width};
  args[0] = x->mask == PLN_NONE ? pln_emit_int(e, PLN_INT32, 0)
                                : register_of(r, x->mask);
  return pln_emit_call(e, how, r->types[i], 5, args);
}

static void combine_registers(pln_allreduce *r, const warp_round *x) {
  pln_ref mine[PLN_MOST_REDUCED], other[PLN_MOST_REDUCED];
  pln_ref values[PLN_MOST_REDUCED];
  pln_ref zero = pln_emit_int(&r->e, PLN_INT32, 0);
  for (uint32_t i = 0; i < r->size; i++) {
    pln_allreduce_load(r, x->reduced, zero, mine);
    pln_allreduce_load(r, x->received, zero, other);
    values[i] = pln_allreduce_combine(r, i, mine, other);
  }
  pln_allreduce_assign(r, x->reduced, zero, values);
}

/* Threads beyond the last value have none to give. */
static void exchange(pln_allreduce *r, const warp_round *x, int64_t offset) {
  pln_emit *e = &r->e;
  for (uint32_t i = 0; i < r->size; i++)
    set_register(r, x->received[i],
                 shuffle(r, x, "tvm_warp_shuffle_down", i,
                         pln_emit_int(e, PLN_INT32, offset)));
  uint32_t first = r->n;
  combine_registers(r, x);
  if (offset * 2 <= x->extent)
    return;
  pln_ref last = pln_emit_folded(e, PLN_PRIM_ADD, r->reduce_index,
                                 pln_allreduce_index(r, offset));
  pln_ref inside =
      pln_emit_folded(e, PLN_PRIM_LT, last, pln_allreduce_index(r, x->extent));
  pln_allreduce_push(
      r, pln_emit_if(e, inside, pln_allreduce_take(r, first), PLN_NONE));
}

/* Afterwards the first thread of each group has the results. */
static void reduce_warp(pln_allreduce *r, warp_round *x) {
  int64_t offset = 1;
  uint32_t first = r->n;
  for (uint32_t i = 0; i < r->size; i++) {
    x->reduced[i] = pln_allreduce_buffer(r, "red_buf%u", i, "local", 1);
    x->received[i] = pln_allreduce_buffer(r, "t%u", i, "local", 1);
    set_register(r, x->reduced[i], x->values[i]);
  }
  if (x->predicate != PLN_NONE)
    pln_allreduce_push(r, pln_emit_if(&r->e, x->predicate,
                                      pln_allreduce_take(r, first), PLN_NONE));
  declare_mask(r, x);
  while (offset * 2 < x->extent)
    offset *= 2;
  for (; offset > 0; offset /= 2)
    exchange(r, x, offset);
}

static void allocate_round(pln_allreduce *r, const warp_round *x) {
  for (uint32_t i = 0; i < r->size; i++)
    pln_allreduce_local(r, x->received[i]);
  if (x->mask != PLN_NONE)
    pln_allreduce_local(r, x->mask);
}

/* ------------------------------------------------------------------ one warp
 */

/* All threads of a group get the results of its first one. */
static void broadcast(pln_allreduce *r, const warp_round *x) {
  pln_emit *e = &r->e;
  for (uint32_t i = 0; i < r->size; i++) {
    pln_ref first = pln_emit_folded(e, PLN_PRIM_MUL,
                                    pln_allreduce_index(r, r->reduce_extent),
                                    r->group_index);
    set_register(r, x->reduced[i], shuffle(r, x, "tvm_warp_shuffle", i, first));
  }
}

static void reduce_within(pln_allreduce *r) {
  warp_round x = {.extent = r->reduce_extent, .predicate = PLN_NONE};
  bool part = r->group_extent > 1 && r->reduce_extent < r->target->warp_size;
  memcpy(x.values, r->values, sizeof x.values);
  x.mask_value = part ? group_mask(r, r->reduce_extent, true) : active_mask(r);
  reduce_warp(r, &x);
  allocate_round(r, &x);
  broadcast(r, &x);
  memcpy(r->results, x.reduced, sizeof r->results);
  r->result_index = pln_emit_int(&r->e, PLN_INT32, 0);
  r->extents[0] = pln_emit_int(&r->e, PLN_INT32, 1);
}

/* ------------------------------------------------------------- several warps
 */

/* Each warp's first thread stores what the warp has. */
static void stage(pln_allreduce *r, const warp_round *x, const pln_ref *staging,
                  pln_ref base) {
  pln_emit *e = &r->e;
  pln_ref warp = pln_allreduce_index(r, r->target->warp_size);
  pln_ref at = pln_emit_folded(
      e, PLN_PRIM_ADD, base,
      pln_emit_folded(e, PLN_PRIM_FLOORDIV, r->reduce_index, warp));
  uint32_t first = r->n;
  for (uint32_t i = 0; i < r->size; i++)
    pln_allreduce_push(
        r, pln_emit_store(e, staging[i], at, register_of(r, x->reduced[i])));
  pln_ref lane = pln_emit_folded(e, PLN_PRIM_FLOORMOD, r->reduce_index, warp);
  pln_ref is_first =
      pln_emit_folded(e, PLN_PRIM_EQ, lane, pln_allreduce_index(r, 0));
  pln_allreduce_push(
      r, pln_emit_if(e, is_first, pln_allreduce_take(r, first), PLN_NONE));
  pln_allreduce_sync(r, "shared");
}

/* The first thread of each group stores the results for all of them. */
static void publish(pln_allreduce *r, const warp_round *x) {
  pln_emit *e = &r->e;
  uint32_t first = r->n;
  for (uint32_t i = 0; i < r->size; i++) {
    r->results[i] =
        pln_allreduce_buffer(r, "red_result", i, "shared", r->group_extent);
    pln_allreduce_push(r, pln_emit_store(e, r->results[i], r->group_index,
                                         register_of(r, x->reduced[i])));
  }
  pln_ref is_first = pln_emit_folded(e, PLN_PRIM_EQ, r->reduce_index,
                                     pln_allreduce_index(r, 0));
  pln_allreduce_push(
      r, pln_emit_if(e, is_first, pln_allreduce_take(r, first), PLN_NONE));
  pln_allreduce_sync(r, "shared");
  r->result_index = r->group_index;
  r->extents[0] = pln_allreduce_index(r, r->group_extent);
}

static void allocate_reduced(pln_allreduce *r, const warp_round *x) {
  for (uint32_t i = 0; i < r->size; i++)
    pln_allreduce_local(r, x->reduced[i]);
}

static void reduce_across(pln_allreduce *r) {
  pln_emit *e = &r->e;
  int64_t warp = r->target->warp_size, warps = r->reduce_extent / warp;
  warp_round x = {.extent = warp, .predicate = PLN_NONE};
  warp_round y = {.extent = warps};
  pln_ref staging[PLN_MOST_REDUCED];
  pln_ref count = pln_allreduce_index(r, warps);
  pln_ref base = pln_emit_folded(e, PLN_PRIM_MUL, r->group_index, count);
  for (uint32_t i = 0; i < r->size; i++) {
    staging[i] = pln_allreduce_buffer(r, "red_buf_staging", i, "shared",
                                      warps * r->group_extent);
    pln_allreduce_local(r, staging[i]);
  }
  memcpy(x.values, r->values, sizeof x.values);
  x.mask_value = active_mask(r);
  reduce_warp(r, &x);
  allocate_round(r, &x);
  allocate_reduced(r, &x);
  stage(r, &x, staging, base);
  pln_allreduce_load(r, staging,
                     pln_emit_folded(e, PLN_PRIM_ADD, base, r->reduce_index),
                     y.values);
  y.predicate = pln_emit_folded(e, PLN_PRIM_LT, r->reduce_index, count);
  if (has_masks(r))
    y.mask_value = warps < warp ? group_mask(r, warps, false) : active_mask(r);
  reduce_warp(r, &y);
  allocate_round(r, &y);
  allocate_reduced(r, &y);
  publish(r, &y);
}

void pln_warp_allreduce(pln_allreduce *r) {
  r->n_extents = 1;
  if (r->reduce_extent <= r->target->warp_size)
    reduce_within(r);
  else
    reduce_across(r);
}
