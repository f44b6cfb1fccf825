/* take.c: take (ONNX Gather), gather (GatherElements) and gather_nd. Called
 * through ops.def. An index out of range is refused. */

#include "base/thread/thread_pool.h"
#include "op/kernel/composed.h"
#include "op/kernel/indices.h"
#include "op/kernel/strided.h"
#include "op/relay/form.h"

/* --------------------------------------------------------------------- take */

/* Returns true for ONNX's form, whose indices may be negative and must be in
 * range. In Relay's form the mode decides: "clip", "wrap" or "fast". */
static bool is_strict(const pln_infer *call) {
  return pln_call_string_is(call, "mode", "strict", "strict");
}

static pln_status take_value(pln_infer *call) {
  pln_value value = pln_arg_value(call, 0);
  pln_list list = pln_arg_list(call, 1, NULL);
  int32_t rank = pln_type_rank(call->engine, call->results[0]);
  if (!value || pln_value_rank(call->engine, value) != 1 || rank < 0 ||
      !pln_list_known(&list) || list.count > PLN_VALUE_MAX)
    return PLN_OK;
  pln_dim elements[PLN_VALUE_MAX];
  int64_t count = pln_value_count(call->engine, value);
  for (uint32_t i = 0; i < list.count; i++) {
    int64_t at = pln_list_at(&list, i);
    if (!is_strict(call) && (at < 0 || at >= count))
      return PLN_OK;
    if (at < -count || at >= count)
      return pln_arg_error(call, 1, "index %lld is outside of %lld elements",
                           (long long)at, (long long)count);
    elements[i] =
        pln_value_elements(call->engine, value)[at < 0 ? at + count : at];
  }
  return pln_infer_set_value(call, (uint32_t)rank, list.count, elements);
}

/* Returns true for a call in Relay's form: without an axis the operand is
 * flattened; with batch_dims the leading axes of both operands are batch
 * axes. */
static bool is_relay_take(const pln_infer *call) {
  const pln_attr *axis = pln_attrs_find(call->engine, call->attrs, "axis");
  return (axis && axis->kind == PLN_ATTR_NONE) ||
         pln_call_int(call, "batch_dims", 0) != 0;
}

static pln_status relay_take(pln_infer *call) {
  pln_shape data, indices, out = {.rank = 0};
  const pln_attr *given = pln_attrs_find(call->engine, call->attrs, "axis");
  int64_t batch = pln_call_int(call, "batch_dims", 0);
  int32_t axis;
  pln_arg_shape(call, 0, &data);
  pln_arg_shape(call, 1, &indices);
  if (given && given->kind == PLN_ATTR_NONE)
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &indices);
  if (data.rank < 0 || indices.rank < 0) {
    pln_shape_unknown(&out);
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
  }
  PLN_TRY(pln_call_axis(call, pln_call_int(call, "axis", 0), data.rank, &axis));
  batch += batch < 0 ? indices.rank : 0;
  if (batch < 0 || batch > indices.rank || batch > axis ||
      data.rank + indices.rank > PLN_MAX_RANK)
    return pln_call_error(call, "batch_dims %lld does not match the operands",
                          (long long)batch);
  for (int32_t i = 0; i < axis; i++)
    out.dims[out.rank++] = data.dims[i];
  for (int64_t i = batch; i < indices.rank; i++)
    out.dims[out.rank++] = indices.dims[i];
  for (int32_t i = axis + 1; i < data.rank; i++)
    out.dims[out.rank++] = data.dims[i];
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

pln_status pln_infer_take(pln_infer *call) {
  pln_shape data, indices, out;
  int32_t axis;
  if (is_relay_take(call))
    return relay_take(call);
  pln_arg_shape(call, 0, &data);
  pln_arg_shape(call, 1, &indices);
  pln_shape_ranked(&out, -1);
  if (data.rank == 0)
    return pln_arg_error(call, 0, "expected rank 1 or more, got 0");
  if (data.rank > 0)
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", 0), data.rank, &axis));
  if (data.rank > 0 && indices.rank >= 0)
    pln_shape_ranked(&out, (int64_t)data.rank + indices.rank - 1);
  for (int32_t i = 0; i < out.rank; i++)
    if (i < axis)
      out.dims[i] = data.dims[i];
    else if (i < axis + indices.rank)
      out.dims[i] = indices.dims[i - axis];
    else
      out.dims[i] = data.dims[i - indices.rank + 1];
  PLN_TRY(pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out));
  return take_value(call);
}

/* How indices out of range are treated. */
typedef enum take_mode { TAKE_STRICT, TAKE_CLIP, TAKE_WRAP } take_mode;

/* Finds the element that index i selects; false if it is out of range. */
static bool take_at(const pln_tensor *indices, size_t i, int64_t extent,
                    take_mode mode, int64_t *at) {
  if (mode == TAKE_STRICT)
    return pln_index_at(indices, i, extent, at);
  if (extent == 0 || !pln_tensor_int(indices, i, at))
    return false;
  if (mode == TAKE_WRAP)
    *at = *at % extent + (*at % extent < 0 ? extent : 0);
  *at = *at < 0 ? 0 : *at >= extent ? extent - 1 : *at;
  return true;
}

/* Copies of runs that threads share. */
typedef struct taking {
  const pln_engine *engine;
  const char *from;
  char *to;
  const pln_tensor *indices;
  take_mode mode;
  int64_t extent;
  size_t run; /* bytes */
  atomic_bool outside;
} taking;

static void take_range(void *ud, size_t begin, size_t end) {
  taking *t = ud;
  size_t n = t->indices->count, done = 0, i = begin % n, run = t->run;
  const char *row = t->from + begin / n * (size_t)t->extent * run;
  for (size_t k = begin; k < end; k++) {
    int64_t at;
    if (pln_is_stopped_after(t->engine, &done, 1 + run / 8))
      return;
    if (!take_at(t->indices, i, t->extent, t->mode, &at)) {
      atomic_store(&t->outside, true);
      return;
    }
    pln_copy_run(t->engine, t->to + k * run, row + (size_t)at * run, run);
    if (++i < n)
      continue;
    i = 0;
    row += (size_t)t->extent * run;
  }
}

/* The bytes that pay for another thread. */
enum { SHARED_WORK = 1 << 18 };

/* The number of runs of that size that pay for another thread. */
static size_t shared_runs(size_t run) {
  return 1 + SHARED_WORK / (run + 16);
}

/* Copies run `at` of `runs` in each row, for each index. */
static pln_status take_runs(pln_kernel_call *call,
                            const pln_strided_result *moved,
                            const pln_tensor *indices, size_t rows,
                            int64_t extent, size_t run) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  take_mode mode =
      pln_kernel_string_is(call, "mode", "strict", "clip")   ? TAKE_CLIP
      : pln_kernel_string_is(call, "mode", "strict", "wrap") ? TAKE_WRAP
                                                             : TAKE_STRICT;
  taking t = {.engine = call->engine,
              .from = x->data,
              .to = moved->data,
              .indices = indices,
              .mode = mode,
              .extent = extent,
              .run = run};
  pln_parallel_ranges(call->engine, rows * indices->count, shared_runs(run),
                      take_range, &t);
  return atomic_load(&t.outside)
             ? pln_kernel_index_outside(call, indices, 0, extent)
             : PLN_OK;
}

/* Relay's take without an axis: takes elements of the flattened operand. */
static pln_status take_flat(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *indices = pln_kernel_arg(call, 1);
  pln_strided_result moved;
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, indices->rank,
                                   indices->dims, &moved));
  pln_status status = PLN_OK;
  if (moved.count)
    status = take_runs(call, &moved, indices, 1, (int64_t)x->count, moved.size);
  return pln_strided_result_end(&moved, status);
}

pln_status pln_kernel_take(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *indices = pln_kernel_arg(call, 1);
  const pln_attr *given = pln_attrs_find(call->engine, call->attrs, "axis");
  if (pln_kernel_int(call, "batch_dims", 0) != 0)
    return pln_kernel_refuse(call, "axes are batches");
  if (given && given->kind == PLN_ATTR_NONE)
    return take_flat(call);
  int64_t dims[2 * PLN_MAX_RANK];
  uint32_t axis, rank = 0;
  pln_strided_result moved;
  if (x->rank + indices->rank > PLN_MAX_RANK ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 0), x->rank, &axis))
    return pln_kernel_refuse(call, "the axis does not match the operand");
  for (uint32_t i = 0; i < axis; i++)
    dims[rank++] = x->dims[i];
  for (uint32_t i = 0; i < indices->rank; i++)
    dims[rank++] = indices->dims[i];
  for (uint32_t i = axis + 1; i < x->rank; i++)
    dims[rank++] = x->dims[i];
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, rank, dims,
                                   &moved));
  pln_status status = PLN_OK;
  if (moved.count)
    status =
        take_runs(call, &moved, indices, pln_dims_product(x->dims, 0, axis),
                  x->dims[axis],
                  pln_dims_product(x->dims, axis + 1, x->rank) * moved.size);
  return pln_strided_result_end(&moved, status);
}

/* ------------------------------------------------------------------- gather */

pln_status pln_infer_gather(pln_infer *call) {
  int32_t rank = pln_arg_rank(call, 0), axis;
  if (rank >= 0)
    PLN_TRY(pln_arg_expect_rank(call, 1, rank));
  if (rank >= 0)
    PLN_TRY(pln_call_axis(call, pln_call_int(call, "axis", 0), rank, &axis));
  return pln_result_shaped_like(call, 0, 1, pln_arg_dtype(call, 0));
}

/* Indices read at a time. */
enum { BLOCK = 256 };

/* Copies n elements at a fixed stride, each displaced by its index along the
 * axis, until an index is outside of [0, extent) from either end. In one pass:
 * the operand's columns, a power of two apart, evict what was noted of them. */
#define PICK(type)                                                            \
  do {                                                                        \
    for (size_t k = 0; k < n; k++) {                                          \
      int64_t index = at[k] < 0 ? at[k] + extent : at[k];                     \
      if ((uint64_t)index >= (uint64_t)extent)                                \
        return false;                                                         \
      memcpy(to + k * sizeof(type),                                           \
             from +                                                           \
                 ((int64_t)k * step + index * scale) * (int64_t)sizeof(type), \
             sizeof(type));                                                   \
    }                                                                         \
  } while (0)
static bool pick(char *to, const char *from, const int64_t *at, int64_t extent,
                 int64_t scale, int64_t step, size_t n, size_t size) {
  switch (size) {
  case 1: PICK(uint8_t); break;
  case 2: PICK(uint16_t); break;
  case 4: PICK(uint32_t); break;
  case 8: PICK(uint64_t); break;
  default: PICK(pln_slice); break;
  }
  return true;
}

/* A gather, whose rows of indices threads share. */
typedef struct gathering {
  const pln_engine *engine;
  const pln_tensor *x, *indices;
  uint32_t axis;
  char *to;
  size_t size; /* of an element */
  int64_t steps[PLN_MAX_RANK];
  atomic_bool outside;
} gathering;

/* Gathers the elements of one row; false if an index is outside. */
static bool gather_row(const gathering *g, size_t first, int64_t base) {
  int64_t block[BLOCK], size = (int64_t)g->size;
  uint32_t last = g->x->rank - 1;
  int64_t step = g->axis == last ? 0 : 1, extent = g->x->dims[g->axis];
  size_t row = (size_t)g->indices->dims[last];
  for (size_t k = 0; k < row && !pln_is_stopped(g->engine); k += BLOCK) {
    size_t n = row - k < BLOCK ? row - k : BLOCK;
    const int64_t *at = (const int64_t *)g->indices->data + first + k;
    if (g->indices->dtype != PLN_INT64) {
      if (!pln_indices_at(g->indices, first + k, n, extent, block))
        return false;
      at = block;
    }
    if (!pick(g->to + (first + k) * g->size,
              (const char *)g->x->data + (base + (int64_t)k * step) * size, at,
              extent, g->steps[g->axis], step, n, g->size))
      return false;
  }
  return true;
}

static void gather_range(void *ud, size_t begin, size_t end) {
  gathering *g = ud;
  uint32_t last = g->x->rank - 1;
  size_t row = (size_t)g->indices->dims[last];
  int64_t place[PLN_MAX_RANK], base = 0;
  pln_indices_seek(g->indices, last, begin, place);
  for (uint32_t i = 0; i < last; i++)
    base += i == g->axis ? 0 : place[i] * g->steps[i];
  for (size_t i = begin; i < end; i++) {
    if (!gather_row(g, i * row, base)) {
      atomic_store(&g->outside, true);
      return;
    }
    base =
        pln_indices_advance(g->indices, last, g->axis, g->steps, place, base);
  }
}

/* Gathers the elements row by row of the indices. */
static pln_status gather_all(pln_kernel_call *call,
                             const pln_strided_result *moved,
                             const pln_tensor *x, const pln_tensor *indices,
                             uint32_t axis) {
  gathering g = {.engine = call->engine,
                 .x = x,
                 .indices = indices,
                 .axis = axis,
                 .to = moved->data,
                 .size = moved->size};
  if (indices->count == 0)
    return PLN_OK;
  size_t row = (size_t)indices->dims[x->rank - 1];
  pln_dense_strides(x->rank, x->dims, g.steps);
  pln_parallel_ranges(call->engine, indices->count / row,
                      shared_runs(row * moved->size), gather_range, &g);
  return atomic_load(&g.outside)
             ? pln_kernel_index_outside(call, indices, 0, x->dims[axis])
             : PLN_OK;
}

pln_status pln_kernel_gather(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *indices = pln_kernel_arg(call, 1);
  uint32_t axis;
  pln_strided_result moved;
  if (x->rank != indices->rank || x->rank > PLN_MAX_RANK ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 0), x->rank, &axis) ||
      !pln_indices_lie_within(indices, x, axis))
    return pln_kernel_refuse(call, "the indices do not match the operand");
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, indices->rank,
                                   indices->dims, &moved));
  return pln_strided_result_end(&moved,
                                gather_all(call, &moved, x, indices, axis));
}

/* ---------------------------------------------------------------- gather_nd */

pln_status pln_infer_gather_nd(pln_infer *call) {
  if (pln_call_int(call, "relay", 0))
    return pln_infer_relay_gather_nd(call);
  pln_shape data, indices, out;
  int64_t batch = pln_call_int(call, "batch_dims", 0);
  pln_arg_shape(call, 0, &data);
  pln_arg_shape(call, 1, &indices);
  pln_shape_ranked(&out, -1);
  if (indices.rank == 0 || data.rank == 0)
    return pln_call_error(call, "scalars have nothing to take from");
  if (batch < 0 || (indices.rank > 0 && batch >= indices.rank))
    return pln_call_error(call, "batch_dims %lld is out of range",
                          (long long)batch);
  pln_dim k = indices.rank > 0 ? indices.dims[indices.rank - 1] : -1;
  if (data.rank < 0 || !PLN_DIM_IS_CONST(k) || k < 0)
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
  if (k + batch > data.rank)
    return pln_arg_error(call, 1, "%lld coordinates exceed rank %d",
                         (long long)(k + batch), data.rank);
  int32_t from = (int32_t)(k + batch), lead = indices.rank - 1;
  pln_shape_ranked(&out, (int64_t)lead + data.rank - from);
  for (int32_t i = 0; i < out.rank; i++)
    out.dims[i] = i < lead ? indices.dims[i] : data.dims[from + i - lead];
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* Index vectors of `k` coordinates that select slices of `run` bytes. */
typedef struct vectors {
  uint32_t batch, k;
  size_t batches, per_batch; /* vectors in each batch */
  size_t stride;             /* elements of the operand per batch */
  size_t slice;              /* elements selected by one vector */
} vectors;

static bool plan_vectors(const pln_tensor *x, const pln_tensor *indices,
                         int64_t batch, vectors *v) {
  if (indices->rank == 0 || batch < 0 || batch >= (int64_t)indices->rank ||
      batch > (int64_t)x->rank)
    return false;
  int64_t k = indices->dims[indices->rank - 1];
  if (k > (int64_t)x->rank - batch)
    return false;
  v->batch = (uint32_t)batch;
  v->k = (uint32_t)k;
  v->batches = pln_dims_product(x->dims, 0, v->batch);
  v->per_batch = pln_dims_product(indices->dims, v->batch, indices->rank - 1);
  v->stride = pln_dims_product(x->dims, v->batch, x->rank);
  v->slice = pln_dims_product(x->dims, v->batch + v->k, x->rank);
  for (uint32_t i = 0; i < v->batch; i++)
    if (x->dims[i] != indices->dims[i])
      return false;
  return true;
}

/* Finds the first element of the slice that vector `n` of its batch selects. */
static pln_status find_slice(const pln_kernel_call *call, const vectors *v,
                             size_t n, size_t *out) {
  const pln_tensor *x = call->args[0], *indices = call->args[1];
  size_t at = 0;
  for (uint32_t i = 0; i < v->k; i++) {
    int64_t extent = x->dims[v->batch + i], index;
    if (!pln_index_at(indices, n * v->k + i, extent, &index))
      return pln_kernel_index_outside(call, indices, n * v->k + i, extent);
    at = at * (size_t)extent + (size_t)index;
  }
  *out = at * v->slice;
  return PLN_OK;
}

static pln_status gather_slices(pln_kernel_call *call,
                                const pln_strided_result *moved,
                                const pln_tensor *x, const vectors *v) {
  char *to = moved->data;
  size_t run = v->slice * moved->size, done = 0;
  for (size_t n = 0; n < v->batches * v->per_batch; n++, to += run) {
    size_t at = 0;
    PLN_TRY(pln_poll_after(call->engine, &done, v->k + run / 8));
    PLN_TRY(find_slice(call, v, n, &at));
    at += n / v->per_batch * v->stride;
    PLN_TRY(pln_copy_bytes(call->engine, to,
                           (const char *)x->data + at * moved->size, run));
  }
  return PLN_OK;
}

/* Relay's form has the parts of an index along axis 0 of the indices. */
static pln_status gather_nd_of_first_axis(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *args[2] = {
      pln_kernel_arg(call, 0),
      pln_compose_first_axis_last(&s, pln_kernel_arg(call, 1))};
  pln_compose_forward(&s, "batch_dims");
  return pln_composition_finish(
      &s, pln_compose_call(&s, PLN_OP_GATHER_ND, 2, args));
}

pln_status pln_kernel_gather_nd(pln_kernel_call *call) {
  if (pln_kernel_int(call, "relay", 0))
    return gather_nd_of_first_axis(call);
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *indices = pln_kernel_arg(call, 1);
  int64_t dims[PLN_MAX_RANK];
  uint32_t rank = 0;
  vectors v;
  pln_strided_result moved;
  if (!plan_vectors(x, indices, pln_kernel_int(call, "batch_dims", 0), &v) ||
      x->rank + indices->rank > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "the indices do not match the operand");
  for (uint32_t i = 0; i + 1 < indices->rank; i++)
    dims[rank++] = indices->dims[i];
  for (uint32_t i = v.batch + v.k; i < x->rank; i++)
    dims[rank++] = x->dims[i];
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, rank, dims,
                                   &moved));
  pln_status status = PLN_OK;
  if (moved.count)
    status = gather_slices(call, &moved, x, &v);
  return pln_strided_result_end(&moved, status);
}
