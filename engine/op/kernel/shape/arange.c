/* arange.c: arange: numbers from start by steps of delta, excluding limit.
 * Called through ops.def. */

#include "op/kernel/kernel.h"

#include <math.h>

/* ---------------------------------------------------------------- inference */

/* The constant value of operand i, or NULL. Relay repeats each operand as an
 * attribute. */
static const pln_tensor *constant_at(const pln_infer *call, uint32_t i) {
  static const char *const names[] = {"start", "stop", "step"};
  const pln_tensor *arg = pln_arg_tensor(call, i);
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, names[i]);
  bool given = a && a->kind == PLN_ATTR_TENSOR && !a->v.tensor->external;
  return arg || !given ? arg : a->v.tensor;
}

/* The element of a symbolic value with one element; PLN_DIM_UNKNOWN for any
 * other. */
static pln_dim number(const pln_infer *call, uint32_t i) {
  pln_value value = pln_arg_value(call, i);
  const pln_tensor *given = constant_at(call, i);
  int64_t whole;
  if (!value && given && given->count == 1 &&
      pln_tensor_int(given, 0, &whole) && PLN_DIM_IS_CONST(whole))
    return whole;
  if (!value || pln_value_count(call->engine, value) != 1)
    return PLN_DIM_UNKNOWN;
  return pln_value_elements(call->engine, value)[0];
}

/* max(0, ceil((limit - start) / delta)) for a constant delta. */
static pln_status length(const pln_infer *call, pln_dim start, pln_dim limit,
                         pln_dim delta, pln_dim *out) {
  *out = PLN_DIM_UNKNOWN;
  if (!PLN_DIM_IS_CONST(delta) || delta == 0)
    return PLN_OK;
  pln_dim span = PLN_DIM_UNKNOWN, step = delta;
  if (delta > 0) {
    PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, limit, start, &span));
  } else {
    PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, start, limit, &span));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, 0, delta, &step));
  }
  if (step != 1) {
    pln_dim less;
    PLN_TRY(pln_infer_dim(call, PLN_DIM_SUB, step, 1, &less));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, span, less, &span));
    PLN_TRY(pln_infer_dim(call, PLN_DIM_FLOORDIV, span, step, &span));
  }
  return pln_infer_dim(call, PLN_DIM_MAX, 0, span, out);
}

static pln_status list_numbers(pln_infer *call, pln_dim n) {
  pln_dim elements[PLN_VALUE_MAX], at = number(call, 0);
  if (!PLN_DIM_IS_CONST(n) || n < 0 || n > PLN_VALUE_MAX)
    return PLN_OK;
  for (pln_dim i = 0; i < n; i++) {
    elements[i] = at;
    PLN_TRY(pln_infer_dim(call, PLN_DIM_ADD, at, number(call, 2), &at));
  }
  return pln_infer_set_value(call, 1, (uint32_t)n, elements);
}

static bool float_at(const pln_tensor *t, double *out) {
  uint16_t half;
  float single;
  if (!t || t->count != 1)
    return false;
  switch ((int)t->dtype) {
  case PLN_FLOAT64: memcpy(out, t->data, sizeof *out); return true;
  case PLN_FLOAT32: memcpy(&single, t->data, sizeof single); break;
  case PLN_FLOAT16:
  case PLN_BFLOAT16:
    memcpy(&half, t->data, sizeof half);
    single = t->dtype == PLN_FLOAT16 ? pln_half_to_float(half)
                                     : pln_bfloat_to_float(half);
    break;
  default: return false;
  }
  *out = (double)single;
  return true;
}

/* Returns false if the number of elements is not representable. */
static bool float_length(double start, double limit, double delta,
                         int64_t *out) {
  double n = ceil((limit - start) / delta);
  if (!(n < 9007199254740992.0))
    return false;
  *out = n > 0 ? (int64_t)n : 0;
  return delta != 0;
}

static pln_dim float_extent(const pln_infer *call) {
  double start, limit, delta;
  int64_t n;
  if (!float_at(constant_at(call, 0), &start) ||
      !float_at(constant_at(call, 1), &limit) ||
      !float_at(constant_at(call, 2), &delta) ||
      !float_length(start, limit, delta, &n))
    return PLN_DIM_UNKNOWN;
  return n;
}

pln_status pln_infer_arange(pln_infer *call) {
  pln_dtype dtype;
  pln_shape shape = {.rank = 1};
  PLN_TRY(pln_args_one_dtype(call, 0, 3, &dtype));
  for (uint32_t i = 0; i < 3;
       i++) /* some exporters write vectors of one element instead of scalars */
    PLN_TRY(pln_arg_expect_rank_within(call, i, 0, 1));
  if (number(call, 2) == 0)
    return pln_arg_error(call, 2, "the step is 0");
  if (pln_dtype_is_float(dtype))
    shape.dims[0] = float_extent(call);
  else
    PLN_TRY(length(call, number(call, 0), number(call, 1), number(call, 2),
                   &shape.dims[0]));
  pln_dtype given = pln_call_dtype(call, "dtype", dtype);
  PLN_TRY(pln_result_tensor(call, 0, given, &shape));
  if (given != dtype)
    return PLN_OK;
  return list_numbers(call, shape.dims[0]);
}

/* ------------------------------------------------------------------- kernel */

/* Writes floats. 16-bit floats are computed as float32 and rounded once. */
static void write_floats(pln_dtype dtype, void *data, int64_t first,
                         int64_t end, double start, double delta) {
  float from = (float)start, step = (float)delta;
  double *twice = data;
  float *single = data;
  uint16_t *half = data;
  switch ((int)dtype) {
  case PLN_FLOAT64:
    for (int64_t i = first; i < end; i++)
      twice[i] = start + (double)i * delta;
    break;
  case PLN_FLOAT32:
    for (int64_t i = first; i < end; i++)
      single[i] = from + (float)i * step;
    break;
  case PLN_FLOAT16:
    for (int64_t i = first; i < end; i++)
      half[i] = pln_float_to_half(from + (float)i * step);
    break;
  default:
    for (int64_t i = first; i < end; i++)
      half[i] = pln_float_to_bfloat(from + (float)i * step);
  }
}

/* Writes integers; they wrap. */
static void write_integers(size_t size, void *data, uint64_t first,
                           uint64_t end, uint64_t start, uint64_t delta) {
  uint64_t *whole = data;
  uint32_t *word = data;
  uint16_t *half = data;
  for (uint64_t i = first, at = start + first * delta;
       i < end && size == sizeof *whole; i++, at += delta)
    whole[i] = at;
  for (uint64_t i = first, at = start + first * delta;
       i < end && size == sizeof *word; i++, at += delta)
    word[i] = (uint32_t)at;
  for (uint64_t i = first, at = start + first * delta;
       i < end && size == sizeof *half; i++, at += delta)
    half[i] = (uint16_t)at;
}

/* elements written between two polls for a stop */
enum { PART = 1 << 18 };

static int64_t part_end(int64_t at, int64_t n) {
  return n - at < PART ? n : at + PART;
}

static pln_status count_up(pln_kernel_call *call, double start, double limit,
                           double delta) {
  int64_t n;
  void *data;
  pln_dtype dtype = (pln_dtype)call->args[0]->dtype;
  if (!float_length(start, limit, delta, &n))
    return pln_kernel_refuse(call, "the number of elements is not defined");
  PLN_TRY(pln_kernel_unset(call, 0, dtype, 1, &n, &data));
  for (int64_t at = 0; at < n && !pln_is_stopped(call->engine); at += PART)
    write_floats(dtype, data, at, part_end(at, n), start, delta);
  return PLN_OK;
}

static pln_status count_whole(pln_kernel_call *call, const int64_t *v) {
  pln_dtype dtype = (pln_dtype)call->args[0]->dtype;
  size_t size = pln_element_size(dtype);
  uint64_t span = v[2] > 0 ? (uint64_t)v[1] - (uint64_t)v[0]
                           : (uint64_t)v[0] - (uint64_t)v[1];
  uint64_t step = v[2] > 0 ? (uint64_t)v[2] : 0 - (uint64_t)v[2];
  bool empty = v[2] > 0 ? v[1] <= v[0] : v[1] >= v[0];
  uint64_t n = empty ? 0 : (span - 1) / step + 1;
  void *data;
  if (n > INT64_MAX / 16)
    return pln_kernel_refuse(call, "the result is too large");
  int64_t dim = (int64_t)n;
  PLN_TRY(pln_kernel_unset(call, 0, dtype, 1, &dim, &data));
  for (int64_t at = 0; at < dim && !pln_is_stopped(call->engine); at += PART)
    write_integers(size, data, (uint64_t)at, (uint64_t)part_end(at, dim),
                   (uint64_t)v[0], (uint64_t)v[2]);
  return PLN_OK;
}

pln_status pln_kernel_arange(pln_kernel_call *call) {
  double f[3];
  int64_t v[3];
  pln_slice given = pln_attrs_string(call->engine, call->attrs, "dtype", "");
  if (given.size && (!call->args[0] ||
                     pln_dtype_find(given) != (pln_dtype)call->args[0]->dtype))
    return pln_kernel_refuse(call, "numbers of another dtype");
  for (uint32_t i = 0; i < 3; i++)
    if (call->args[i]->count != 1 ||
        call->args[i]->dtype != call->args[0]->dtype)
      return pln_kernel_refuse(call,
                               "an operand is not a number of that dtype");
  if (float_at(call->args[0], &f[0]) && float_at(call->args[1], &f[1]) &&
      float_at(call->args[2], &f[2]))
    return count_up(call, f[0], f[1], f[2]);
  pln_dtype dtype = (pln_dtype)call->args[0]->dtype;
  if (dtype != PLN_INT64 && dtype != PLN_INT32 && dtype != PLN_INT16)
    return pln_kernel_no_dtype(call, dtype);
  for (uint32_t i = 0; i < 3; i++)
    if (!pln_tensor_int(call->args[i], 0, &v[i]))
      return pln_kernel_undefined(call);
  if (v[2] == 0)
    return pln_kernel_refuse(call, "the step is 0");
  return count_whole(call, v);
}
