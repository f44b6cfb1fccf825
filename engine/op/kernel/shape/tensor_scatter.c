/* tensor_scatter.c: tensor_scatter: writes an update into a cache of keys or
 * values, at each batch's position. Called through ops.def.
 *
 * Axis 0 is the batch. The update has the cache's extents except along the axis
 * of positions, where it may be shorter. */

#include "op/kernel/strided.h"

/* The cache as batches x outer x n x inner, with `length` positions written. */
typedef struct cache {
  size_t batches, outer, n, inner, length;
  bool circular;
} cache;

static pln_status read_cache(const pln_kernel_call *call, cache *c) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *u = pln_kernel_arg(call, 1);
  const pln_tensor *at = pln_kernel_arg(call, 2);
  int64_t requested = pln_kernel_int(call, "axis", -2);
  uint32_t axis;
  if (!pln_kernel_axis(requested, x->rank, &axis) || axis == 0)
    return pln_kernel_refuse(call, "axis %lld is not an axis of positions",
                             (long long)requested);
  bool fits = x->dtype == u->dtype && x->rank == u->rank;
  for (uint32_t i = 0; fits && i < x->rank; i++)
    fits = i == axis ? u->dims[i] <= x->dims[i] : u->dims[i] == x->dims[i];
  if (!fits)
    return pln_kernel_refuse(call, "the update does not match the cache");
  if (at && (at->rank != 1 || at->dims[0] != x->dims[0]))
    return pln_kernel_refuse(call, "the positions are not one for each batch");
  *c = (cache){.batches = (size_t)x->dims[0],
               .outer = pln_dims_product(x->dims, 1, axis),
               .n = (size_t)x->dims[axis],
               .inner = pln_dims_product(x->dims, axis + 1, x->rank),
               .length = (size_t)u->dims[axis],
               .circular =
                   pln_kernel_string_is(call, "mode", "linear", "circular")};
  return PLN_OK;
}

/* Finds the position at which the update of batch `b` is written. */
static pln_status position(const pln_kernel_call *call, const cache *c,
                           size_t b, size_t *out) {
  const pln_tensor *positions = pln_kernel_arg(call, 2);
  int64_t at = 0, most = (int64_t)(c->circular ? c->n - 1 : c->n - c->length);
  if (positions && !pln_tensor_int(positions, b, &at))
    return pln_kernel_no_dtype(call, (pln_dtype)positions->dtype);
  if (at < 0 || at > most)
    return pln_kernel_refuse(call, "position %lld is outside of [0, %lld]",
                             (long long)at, (long long)most);
  *out = (size_t)at;
  return PLN_OK;
}

static pln_status write_update(const pln_kernel_call *call, const cache *c,
                               size_t size, char *to) {
  const char *from = pln_kernel_data(pln_kernel_arg(call, 1));
  size_t run = c->inner * size, done = 0;
  for (size_t b = 0; b < c->batches; b++) {
    size_t at = 0;
    PLN_TRY(position(call, c, b, &at));
    for (size_t o = b * c->outer; o < (b + 1) * c->outer; o++)
      for (size_t i = 0; i < c->length; i++, from += run) {
        size_t row = at + i < c->n ? at + i : at + i - c->n;
        PLN_TRY(pln_poll_after(call->engine, &done, 1 + run / 8));
        PLN_TRY(pln_copy_bytes(call->engine, to + (o * c->n + row) * run, from,
                               run));
      }
  }
  return PLN_OK;
}

pln_status pln_kernel_tensor_scatter(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_strided_result moved;
  cache c = {0};
  PLN_TRY(read_cache(call, &c));
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, x->rank,
                                   x->dims, &moved));
  if (moved.count == 0)
    return pln_strided_result_end(&moved, PLN_OK);
  pln_status status =
      pln_copy_bytes(call->engine, moved.data, x->data, x->bytes);
  if (status == PLN_OK)
    status = write_update(call, &c, moved.size, moved.data);
  return pln_strided_result_end(&moved, status);
}
