/* shape_select.c: elements chosen by conditions, and indices as conditions:
 * where, nonzero, compress, one_hot. Called through ops.def. */

#include "op/indices.h"
#include "op/strided.h"

#include <math.h>

/* -------------------------------------------------------------------- where */

/* Operand `i` repeated to `count` elements; false when it is not known. */
static bool repeat_value(const pln_infer *call, uint32_t i, uint32_t count,
                         pln_dim *out) {
  pln_value value = pln_arg_value(call, i);
  uint32_t n = pln_value_count(call->engine, value);
  if (!value || (n != 1 && n != count))
    return false;
  const pln_dim *from = pln_value_elements(call->engine, value);
  for (uint32_t k = 0; k < count; k++)
    out[k] = from[n == 1 ? 0 : k];
  return true;
}

static pln_status where_value(pln_infer *call) {
  int32_t rank = pln_type_rank(call->engine, call->results[0]);
  if (rank < 0 || rank > 1)
    return PLN_OK;
  pln_dim n = rank ? pln_type_dims(call->engine, call->results[0])[0] : 1;
  if (!PLN_DIM_IS_CONST(n) || n < 0 || n > PLN_VALUE_MAX)
    return PLN_OK;
  pln_dim cond[PLN_VALUE_MAX], yes[PLN_VALUE_MAX], no[PLN_VALUE_MAX];
  if (!repeat_value(call, 0, (uint32_t)n, cond) ||
      !repeat_value(call, 1, (uint32_t)n, yes) ||
      !repeat_value(call, 2, (uint32_t)n, no))
    return PLN_OK;
  for (pln_dim i = 0; i < n; i++)
    if (!PLN_DIM_IS_CONST(cond[i]))
      yes[i] = yes[i] == no[i] ? yes[i] : PLN_DIM_UNKNOWN;
    else if (cond[i] == 0)
      yes[i] = no[i];
  return pln_infer_set_value(call, (uint32_t)rank, (uint32_t)n, yes);
}

pln_status pln_infer_where(pln_infer *call) {
  pln_dtype dtype;
  pln_shape shape;
  PLN_TRY(pln_args_one_dtype(call, 1, 3, &dtype));
  PLN_TRY(pln_args_broadcast(call, 0, 3, &shape));
  PLN_TRY(pln_result_tensor(call, 0, dtype, &shape));
  return where_value(call);
}

/* Steps of each operand along the axes of the result. */
typedef struct choice {
  uint32_t rank;
  int64_t dims[PLN_MAX_RANK];
  int64_t steps[3][PLN_MAX_RANK];
} choice;

static bool widen(choice *c, const pln_tensor *t) {
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t *dim = &c->dims[c->rank - t->rank + i];
    if (*dim != 1 && t->dims[i] != 1 && *dim != t->dims[i])
      return false;
    if (*dim == 1)
      *dim = t->dims[i];
  }
  return true;
}

static void lay_steps(const choice *c, const pln_tensor *t, int64_t *steps) {
  int64_t own[PLN_MAX_RANK];
  uint32_t shift = c->rank - t->rank;
  pln_dense_steps(t->rank, t->dims, own);
  for (uint32_t i = 0; i < c->rank; i++)
    steps[i] = i < shift || t->dims[i - shift] == 1 ? 0 : own[i - shift];
}

static bool plan_choice(const pln_kernel_call *call, choice *c) {
  c->rank = 0;
  for (uint32_t i = 0; i < 3; i++)
    if (call->args[i]->rank > c->rank)
      c->rank = call->args[i]->rank;
  if (c->rank > PLN_MAX_RANK)
    return false;
  for (uint32_t i = 0; i < c->rank; i++)
    c->dims[i] = 1;
  for (uint32_t i = 0; i < 3; i++)
    if (!widen(c, call->args[i]))
      return false;
  for (uint32_t i = 0; i < 3; i++)
    lay_steps(c, call->args[i], c->steps[i]);
  return true;
}

/* One row: the innermost axis. `at` are the operands' first elements. */
static void choose_row(const pln_kernel_call *call, const choice *c,
                       const int64_t *at, size_t size, char *to) {
  uint32_t last = c->rank - 1;
  const uint8_t *cond = (const uint8_t *)call->args[0]->data + at[0];
  const char *yes = (const char *)call->args[1]->data + at[1] * (int64_t)size;
  const char *no = (const char *)call->args[2]->data + at[2] * (int64_t)size;
  int64_t step = c->steps[0][last];
  int64_t yes_step = c->steps[1][last] * (int64_t)size;
  int64_t no_step = c->steps[2][last] * (int64_t)size;
  for (int64_t k = 0; k < c->dims[last]; k++)
    memcpy(to + k * (int64_t)size,
           cond[k * step] ? yes + k * yes_step : no + k * no_step, size);
}

static void choose(const pln_kernel_call *call, const choice *c,
                   const pln_moved *moved) {
  int64_t place[PLN_MAX_RANK] = {0}, at[3] = {0, 0, 0};
  uint32_t last = c->rank - 1;
  size_t rows = moved->count / (size_t)c->dims[last];
  size_t run = (size_t)c->dims[last] * moved->size;
  for (size_t r = 0; r < rows; r++) {
    choose_row(call, c, at, moved->size, (char *)moved->data + r * run);
    for (uint32_t i = last; i-- > 0;) {
      bool more = ++place[i] < c->dims[i];
      for (int k = 0; k < 3; k++)
        at[k] += c->steps[k][i] * (more ? 1 : 1 - c->dims[i]);
      if (more)
        break;
      place[i] = 0;
    }
  }
}

pln_status pln_kernel_where(pln_kernel_call *call) {
  const pln_tensor *yes = call->args[1];
  choice c;
  pln_moved moved;
  if (call->args[0]->dtype != PLN_BOOL || yes->dtype != call->args[2]->dtype ||
      !plan_choice(call, &c))
    return pln_kernel_refuse(call, "the operands do not fit each other");
  PLN_TRY(
      pln_moved_begin(call, 0, (pln_dtype)yes->dtype, c.rank, c.dims, &moved));
  if (c.rank == 0)
    memcpy(moved.data,
           *(const uint8_t *)call->args[0]->data ? yes->data
                                                 : call->args[2]->data,
           moved.size);
  else if (moved.count)
    choose(call, &c, &moved);
  return pln_moved_end(&moved, PLN_OK);
}

/* ------------------------------------------------------------------ nonzero */

pln_status pln_infer_nonzero(pln_infer *call) {
  pln_shape shape;
  int32_t rank = pln_arg_rank(call, 0);
  pln_shape_ranked(&shape, 2);
  if (rank >= 0)
    shape.dims[0] = rank;
  return pln_result_tensor(call, 0, PLN_INT64, &shape);
}

/* Floats are zero with either sign: the sign bit is masked out. */
static uint64_t zero_mask(pln_dtype dtype, size_t size) {
  bool is_float = dtype == PLN_FLOAT32 || dtype == PLN_FLOAT64 ||
                  dtype == PLN_FLOAT16 || dtype == PLN_BFLOAT16;
  uint64_t all = size == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * size)) - 1;
  return is_float ? all >> 1 : all;
}

static bool is_set(const pln_tensor *x, size_t i, size_t size, uint64_t mask) {
  uint64_t bits = 0;
  memcpy(&bits, (const char *)x->data + i * size, size);
  return (bits & mask) != 0;
}

pln_status pln_kernel_nonzero(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_dtype dtype = (pln_dtype)x->dtype;
  size_t size = pln_element_size(dtype);
  int64_t dims[2] = {x->rank, 0};
  void *data;
  if (size == 0 || size > 8 || dtype == PLN_COMPLEX64 ||
      (dtype >= PLN_FLOAT8_E4M3FN && dtype <= PLN_FLOAT8_E5M2FNUZ))
    return pln_kernel_no_dtype(call, dtype);
  uint64_t mask = zero_mask(dtype, size);
  for (size_t i = 0; i < x->count; i++)
    dims[1] += is_set(x, i, size, mask);
  PLN_TRY(pln_kernel_result(call, 0, PLN_INT64, 2, dims, &data));
  int64_t *to = data;
  for (size_t i = 0; i < x->count; i++) {
    if (!is_set(x, i, size, mask))
      continue;
    size_t rest = i;
    for (uint32_t k = x->rank; k-- > 0;) {
      to[(int64_t)k * dims[1]] = (int64_t)(rest % (size_t)x->dims[k]);
      rest /= (size_t)x->dims[k];
    }
    to++;
  }
  return PLN_OK;
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

/* Without an axis the operand is one row of its elements. */
pln_status pln_kernel_compress(pln_kernel_call *call) {
  const pln_tensor *x = call->args[0], *cond = call->args[1];
  int64_t dims[PLN_MAX_RANK], kept = 0, flat = (int64_t)x->count;
  bool has_axis = pln_attrs_find(call->engine, call->attrs, "axis") != NULL;
  uint32_t axis = 0, rank = has_axis ? x->rank : 1;
  pln_moved moved;
  if (rank > PLN_MAX_RANK || cond->dtype != PLN_BOOL || cond->rank != 1 ||
      (has_axis &&
       !pln_kernel_axis(pln_kernel_int(call, "axis", 0), rank, &axis)))
    return pln_kernel_refuse(call, "the condition does not fit the operand");
  memcpy(dims, has_axis ? x->dims : &flat, rank * sizeof *dims);
  int64_t extent = dims[axis];
  int64_t n = cond->dims[0] < extent ? cond->dims[0] : extent;
  const uint8_t *keep = cond->data;
  for (int64_t i = 0; i < n; i++)
    kept += keep[i] != 0;
  size_t rows = pln_dims_product(dims, 0, axis);
  dims[axis] = kept;
  PLN_TRY(pln_moved_begin(call, 0, (pln_dtype)x->dtype, rank, dims, &moved));
  size_t run = pln_dims_product(dims, axis + 1, rank) * moved.size;
  char *to = moved.data;
  for (size_t r = 0; r < rows && moved.count; r++)
    for (int64_t i = 0; i < n; i++)
      if (keep[i]) {
        memcpy(to,
               (const char *)x->data + (r * (size_t)extent + (size_t)i) * run,
               run);
        to += run;
      }
  return pln_moved_end(&moved, PLN_OK);
}

/* ------------------------------------------------------------------ one_hot */

pln_status pln_infer_one_hot(pln_infer *call) {
  pln_shape in, out;
  int32_t axis;
  pln_list depth = pln_arg_list(call, 1, NULL);
  PLN_TRY(pln_arg_expect_rank(call, 2, 1));
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
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 2), &out);
}

/* Any number as an integer; false for what is none. */
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

static pln_status light(pln_kernel_call *call, const pln_moved *moved,
                        size_t inner, int64_t depth) {
  const pln_tensor *x = call->args[0];
  const char *off = call->args[2]->data, *on = off + moved->size;
  for (size_t i = 0; i < moved->count; i++)
    memcpy((char *)moved->data + i * moved->size, off, moved->size);
  for (size_t i = 0; i < x->count; i++) {
    int64_t at;
    if (!whole_at(x, i, &at))
      return pln_kernel_undefined(call);
    at += at < 0 ? depth : 0;
    if (at < 0 || at >= depth)
      continue; /* outside: nothing is on */
    size_t to = (i / inner * (size_t)depth + (size_t)at) * inner + i % inner;
    memcpy((char *)moved->data + to * moved->size, on, moved->size);
  }
  return PLN_OK;
}

pln_status pln_kernel_one_hot(pln_kernel_call *call) {
  const pln_tensor *x = call->args[0], *values = call->args[2];
  int64_t dims[PLN_MAX_RANK], depth;
  uint32_t axis;
  pln_moved moved;
  if (values->count != 2 || call->args[1]->count != 1 ||
      x->rank + 1 > PLN_MAX_RANK || !whole_at(call->args[1], 0, &depth) ||
      depth < 0 ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", -1), x->rank + 1, &axis))
    return pln_kernel_refuse(call, "the depth or the axis is out of range");
  for (uint32_t i = 0, k = 0; i < x->rank + 1; i++)
    dims[i] = i == axis ? depth : x->dims[k++];
  PLN_TRY(pln_moved_begin(call, 0, (pln_dtype)values->dtype, x->rank + 1, dims,
                          &moved));
  size_t inner = pln_dims_product(x->dims, axis, x->rank);
  pln_status status = PLN_OK;
  if (moved.count)
    status = light(call, &moved, inner, depth);
  return pln_moved_end(&moved, status);
}
