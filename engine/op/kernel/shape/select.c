/* select.c: nonzero, compress, one_hot. Called through ops.def. */

#include "op/kernel/elementwise/convert.h"
#include "op/kernel/indices.h"
#include "op/kernel/strided.h"

#include <math.h>

/* ------------------------------------------------------------------ nonzero */

pln_status pln_infer_nonzero(pln_infer *call) {
  pln_shape shape;
  int32_t rank = pln_arg_rank(call, 0);
  pln_shape_ranked(&shape, 2);
  if (rank >= 0)
    shape.dims[0] = rank;
  return pln_result_tensor(call, 0, PLN_INT64, &shape);
}

/* elements tested at a time */
enum { BLOCK = 512 };

/* Sets set[i] for each nonzero one of n elements, at most BLOCK. */
static void mark_nonzero(const pln_tensor *x, size_t at, size_t n,
                         uint8_t *set) {
  pln_conversion c = {.from = (pln_dtype)x->dtype, .to = PLN_BOOL};
  const char *from =
      (const char *)x->data + at * pln_element_size((pln_dtype)x->dtype);
  if (c.from != PLN_BOOL) {
    (void)pln_convert(&c, from, n, set); /* conversion to bool cannot fail */
    return;
  }
  for (size_t i = 0; i < n; i++)
    set[i] = from[i] != 0;
}

static pln_status count_set(const pln_kernel_call *call, const pln_tensor *x,
                            int64_t *count) {
  uint8_t set[BLOCK];
  size_t done = 0;
  *count = 0;
  for (size_t at = 0; at < x->count; at += BLOCK) {
    size_t n = x->count - at < BLOCK ? x->count - at : BLOCK;
    uint32_t in_block = 0;
    PLN_TRY(pln_poll_after(call->engine, &done, n));
    mark_nonzero(x, at, n, set);
    for (size_t i = 0; i < n; i++)
      in_block += set[i];
    *count += in_block;
  }
  return PLN_OK;
}

/* Lists the indices of nonzero elements row by row: those of the last axis,
 * then those of the row. `to` has room for `count` indices per axis. */
static pln_status list_set(const pln_kernel_call *call, const pln_tensor *x,
                           size_t count, int64_t *to) {
  int64_t row[PLN_MAX_RANK] = {0}, places[BLOCK + 1];
  uint32_t last = x->rank ? x->rank - 1 : 0;
  size_t width = x->rank ? (size_t)x->dims[last] : 1;
  uint8_t set[BLOCK];
  size_t done = 0;
  for (size_t base = 0; base < x->count; base += width) {
    for (size_t at = 0; at < width; at += BLOCK) {
      size_t n = width - at < BLOCK ? width - at : BLOCK, found = 0;
      PLN_TRY(pln_poll_after(call->engine, &done, 4 * n));
      mark_nonzero(x, base + at, n, set);
      for (size_t i = 0; i < n; i++) {
        places[found] = (int64_t)(at + i);
        found += set[i];
      }
      for (uint32_t k = 0; k < last; k++)
        for (size_t i = 0; i < found; i++)
          to[k * count + i] = row[k];
      if (found && x->rank)
        memcpy(to + last * count, places, found * sizeof *places);
      to += found;
    }
    for (uint32_t k = last; k-- > 0; row[k] = 0)
      if (++row[k] < x->dims[k])
        break;
  }
  return PLN_OK;
}

pln_status pln_kernel_nonzero(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_dtype dtype = (pln_dtype)x->dtype;
  int64_t dims[2] = {x->rank, 0};
  void *data;
  if (x->rank > PLN_MAX_RANK || !pln_convertible(dtype) ||
      pln_is_small_float(dtype) || !pln_element_size(dtype))
    return pln_kernel_no_dtype(call, dtype);
  PLN_TRY(count_set(call, x, &dims[1]));
  PLN_TRY(pln_kernel_unset(call, 0, PLN_INT64, 2, dims, &data));
  return list_set(call, x, (size_t)dims[1], data);
}

/* ----------------------------------------------------------------- compress */

pln_status pln_infer_compress(pln_infer *call) {
  pln_shape shape;
  int32_t axis;
  PLN_TRY(pln_arg_expect_rank(call, 1, 1));
  pln_arg_shape(call, 0, &shape);
  if (!pln_call_has(call, "axis")) {
    pln_shape_ranked(&shape, 1);
  } else if (shape.rank >= 0) {
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", 0), shape.rank, &axis));
    shape.dims[axis] = PLN_DIM_UNKNOWN;
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &shape);
}

/* Selects slices along an axis; without one the operand is flattened. */
pln_status pln_kernel_compress(pln_kernel_call *call) {
  const pln_tensor *x = call->args[0], *cond = call->args[1];
  int64_t dims[PLN_MAX_RANK], kept = 0, flat = (int64_t)x->count;
  bool has_axis = pln_attrs_find(call->engine, call->attrs, "axis") != NULL;
  uint32_t axis = 0, rank = has_axis ? x->rank : 1;
  pln_strided_result moved;
  if (rank > PLN_MAX_RANK || cond->dtype != PLN_BOOL || cond->rank != 1 ||
      (has_axis &&
       !pln_kernel_axis(pln_kernel_int(call, "axis", 0), rank, &axis)))
    return pln_kernel_refuse(call, "the condition does not match the operand");
  memcpy(dims, has_axis ? x->dims : &flat, rank * sizeof *dims);
  int64_t extent = dims[axis];
  int64_t n = cond->dims[0] < extent ? cond->dims[0] : extent;
  const uint8_t *keep = cond->data;
  for (int64_t i = 0; i < n; i++)
    kept += keep[i] != 0;
  size_t rows = pln_dims_product(dims, 0, axis);
  dims[axis] = kept;
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, rank, dims,
                                   &moved));
  size_t run = pln_dims_product(dims, axis + 1, rank) * moved.size;
  char *to = moved.data;
  size_t done = 0;
  for (size_t r = 0; r < rows && moved.count; r++)
    for (int64_t i = 0; i < n; i++)
      if (pln_is_stopped_after(call->engine, &done, 4)) {
        return pln_strided_result_end(&moved, pln_stopped(call->engine));
      } else if (keep[i]) {
        memcpy(to,
               (const char *)x->data + (r * (size_t)extent + (size_t)i) * run,
               run);
        to += run;
      }
  return pln_strided_result_end(&moved, PLN_OK);
}

/* ------------------------------------------------------------------ one_hot */

/* The type of one_hot. ONNX's operands are (indices, depth, values), Relay's
 * (indices, on, off) with the depth as an attribute. */
pln_status pln_infer_one_hot(pln_infer *call) {
  pln_shape in, out;
  int32_t axis;
  bool relay = pln_call_has(call, "depth");
  pln_list depth = pln_arg_list(call, relay ? PLN_NONE : 1, "depth");
  pln_dtype dtype = pln_arg_dtype(call, relay ? 1 : 2);
  PLN_TRY(pln_arg_expect_rank(call, 2, relay ? 0 : 1));
  pln_arg_shape(call, 0, &in);
  pln_shape_ranked(&out, in.rank < 0 ? -1 : (int64_t)in.rank + 1);
  if (out.rank >= 0) {
    PLN_TRY(
        pln_call_axis(call, pln_call_int(call, "axis", -1), out.rank, &axis));
    for (int32_t i = 0, k = 0; i < out.rank; i++)
      if (i != axis)
        out.dims[i] = in.dims[k++];
    if (depth.sized && depth.count == 1)
      out.dims[axis] = pln_list_at(&depth, 0);
    if (PLN_DIM_IS_CONST(out.dims[axis]) && out.dims[axis] < 0)
      return pln_arg_error(call, 1, "the depth is negative");
  }
  dtype = relay ? pln_call_dtype(call, "dtype", dtype) : dtype;
  return pln_result_tensor(call, 0, dtype, &out);
}

/* Reads any number as an integer; false if it is not integral. */
static bool whole_at(const pln_tensor *t, size_t i, int64_t *out) {
  double value;
  float single;
  if (pln_tensor_int(t, i, out))
    return true;
  if (t->dtype == PLN_FLOAT32) {
    memcpy(&single, (const char *)t->data + i * sizeof single, sizeof single);
    value = single;
  } else if (t->dtype == PLN_FLOAT64) {
    memcpy(&value, (const char *)t->data + i * sizeof value, sizeof value);
  } else {
    return false;
  }
  if (!(fabs(value) < 9007199254740992.0))
    return false;
  *out = (int64_t)value;
  return true;
}

static pln_status light(pln_kernel_call *call, const pln_strided_result *moved,
                        size_t inner, int64_t depth, bool relay) {
  const pln_tensor *x = call->args[0];
  const char *off = call->args[2]->data;
  const char *on = relay ? call->args[1]->data : off + moved->size;
  pln_fill(call->engine, moved->data, moved->count, off, moved->size);
  size_t done = 0;
  for (size_t i = 0; i < x->count; i++) {
    int64_t at;
    PLN_TRY(pln_poll_after(call->engine, &done, 4));
    if (!whole_at(x, i, &at))
      return pln_kernel_undefined(call);
    at += at < 0 && !relay ? depth : 0;
    if (at < 0 || at >= depth)
      continue; /* an index outside: no element is set */
    size_t to = (i / inner * (size_t)depth + (size_t)at) * inner + i % inner;
    memcpy((char *)moved->data + to * moved->size, on, moved->size);
  }
  return PLN_OK;
}

/* Reads the depth; false if the operands do not fit their form. */
static bool read_depth(const pln_kernel_call *call, bool relay,
                       int64_t *depth) {
  const pln_tensor *second = call->args[1], *third = call->args[2];
  if (!relay)
    return third->count == 2 && second->count == 1 &&
           whole_at(second, 0, depth) && *depth >= 0;
  *depth = pln_kernel_int(call, "depth", 1);
  pln_slice s = pln_attrs_string(call->engine, call->attrs, "dtype", "");
  return second->count == 1 && third->count == 1 &&
         second->dtype == third->dtype && *depth >= 0 &&
         (s.size == 0 || pln_dtype_find(s) == (pln_dtype)third->dtype);
}

pln_status pln_kernel_one_hot(pln_kernel_call *call) {
  const pln_tensor *x = call->args[0], *values = call->args[2];
  bool relay = pln_attrs_find(call->engine, call->attrs, "depth") != NULL;
  int64_t dims[PLN_MAX_RANK], depth;
  uint32_t axis;
  pln_strided_result moved;
  if (!read_depth(call, relay, &depth) || x->rank + 1 > PLN_MAX_RANK ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", -1), x->rank + 1, &axis))
    return pln_kernel_refuse(call, "the depth or the axis is out of range");
  for (uint32_t i = 0, k = 0; i < x->rank + 1; i++)
    dims[i] = i == axis ? depth : x->dims[k++];
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)values->dtype,
                                   x->rank + 1, dims, &moved));
  size_t inner = pln_dims_product(x->dims, axis, x->rank);
  pln_status status = PLN_OK;
  if (moved.count)
    status = light(call, &moved, inner, depth, relay);
  return pln_strided_result_end(&moved, status);
}
