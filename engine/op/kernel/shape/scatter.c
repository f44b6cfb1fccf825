/* scatter.c: scatter_elements and scatter_nd: copies with elements replaced or
 * combined by index. Called through ops.def. Without a reduction, the last of
 * several updates of an element wins. */

#include "op/kernel/composed.h"
#include "op/kernel/indices.h"
#include "op/kernel/strided.h"

/* ---------------------------------------------------------------- inference */

static pln_status infer_scatter(pln_infer *call) {
  pln_dtype dtype;
  if (pln_arg_dtype(call, 0) && pln_arg_dtype(call, 2) &&
      pln_arg_dtype(call, 0) != pln_arg_dtype(call, 2)) {
    dtype = pln_arg_dtype(call, 0);
    return pln_arg_error(call, 2, "expected %s, got %s", pln_dtype_name(dtype),
                         pln_dtype_name(pln_arg_dtype(call, 2)));
  }
  return pln_infer_identity_type(call);
}

pln_status pln_infer_scatter_elements(pln_infer *call) {
  int32_t rank = pln_arg_rank(call, 0), axis;
  if (rank >= 0) {
    PLN_TRY(pln_call_axis(call, pln_call_int(call, "axis", 0), rank, &axis));
    PLN_TRY(pln_arg_expect_rank(call, 1, rank));
    PLN_TRY(pln_arg_expect_rank(call, 2, rank));
  }
  return infer_scatter(call);
}

pln_status pln_infer_scatter_nd(pln_infer *call) {
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 1, PLN_MAX_RANK));
  PLN_TRY(pln_arg_expect_rank_within(call, 1, 1, PLN_MAX_RANK));
  return infer_scatter(call);
}

/* ---------------------------------------------------------------- combining */

typedef enum how { REPLACE, ADD, MULTIPLY, LEAST, GREATEST, UNKNOWN } how;

static how read_how(const pln_kernel_call *call) {
  static const char *const names[] = {"none", "add", "mul", "min", "max"};
  if (pln_kernel_string_is(call, "reduction", "none", "update"))
    return REPLACE; /* Relay's name for replacing */
  for (int i = 0; i < (int)PLN_COUNT(names); i++)
    if (pln_kernel_string_is(call, "reduction", "none", names[i]))
      return (how)i;
  return UNKNOWN;
}

/* Functions that combine two elements. Integers wrap, because they are computed
 * as unsigned ones. NaN wins in minimum and maximum. */
#define COMBINE_INTEGERS(NAME, type, wide)           \
  static type NAME(how h, type a, type b) {          \
    switch (h) {                                     \
    case ADD: return (type)((wide)a + (wide)b);      \
    case MULTIPLY: return (type)((wide)a * (wide)b); \
    case LEAST: return a < b ? a : b;                \
    case GREATEST: return a > b ? a : b;             \
    case REPLACE:                                    \
    case UNKNOWN: break;                             \
    }                                                \
    return b;                                        \
  }
#define COMBINE_FLOATS(NAME, type)                 \
  static type NAME(how h, type a, type b) {        \
    switch (h) {                                   \
    case ADD: return a + b;                        \
    case MULTIPLY: return a * b;                   \
    case LEAST: return a != a || a < b ? a : b;    \
    case GREATEST: return a != a || a > b ? a : b; \
    case REPLACE:                                  \
    case UNKNOWN: break;                           \
    }                                              \
    return b;                                      \
  }
COMBINE_INTEGERS(combine_i8, int8_t, uint32_t)
COMBINE_INTEGERS(combine_u8, uint8_t, uint32_t)
COMBINE_INTEGERS(combine_i16, int16_t, uint32_t)
COMBINE_INTEGERS(combine_u16, uint16_t, uint32_t)
COMBINE_INTEGERS(combine_i32, int32_t, uint32_t)
COMBINE_INTEGERS(combine_u32, uint32_t, uint32_t)
COMBINE_INTEGERS(combine_i64, int64_t, uint64_t)
COMBINE_INTEGERS(combine_u64, uint64_t, uint64_t)
COMBINE_FLOATS(combine_f32, float)
COMBINE_FLOATS(combine_f64, double)

#define EACH(type, fn)                                             \
  do {                                                             \
    type *a_ = to;                                                 \
    for (size_t i_ = 0; i_ < n; i_++) {                            \
      type b_;                                                     \
      memcpy(&b_, (const char *)from + i_ * sizeof b_, sizeof b_); \
      a_[i_] = fn(h, a_[i_], b_);                                  \
    }                                                              \
  } while (0)

static uint16_t combine_half(how h, uint16_t a, uint16_t b) {
  return pln_float_to_half(
      combine_f32(h, pln_half_to_float(a), pln_half_to_float(b)));
}

static uint16_t combine_bfloat(how h, uint16_t a, uint16_t b) {
  return pln_float_to_bfloat(
      combine_f32(h, pln_bfloat_to_float(a), pln_bfloat_to_float(b)));
}

/* Combines `n` elements; false for dtypes that are not computed. */
static bool combine(pln_dtype dtype, how h, void *to, const void *from,
                    size_t n) {
  if (h == REPLACE) {
    memcpy(to, from, n * pln_element_size(dtype));
    return true;
  }
  switch ((int)dtype) {
  case PLN_INT8: EACH(int8_t, combine_i8); return true;
  case PLN_UINT8: EACH(uint8_t, combine_u8); return true;
  case PLN_INT16: EACH(int16_t, combine_i16); return true;
  case PLN_UINT16: EACH(uint16_t, combine_u16); return true;
  case PLN_INT32: EACH(int32_t, combine_i32); return true;
  case PLN_UINT32: EACH(uint32_t, combine_u32); return true;
  case PLN_INT64: EACH(int64_t, combine_i64); return true;
  case PLN_UINT64: EACH(uint64_t, combine_u64); return true;
  case PLN_FLOAT32: EACH(float, combine_f32); return true;
  case PLN_FLOAT64: EACH(double, combine_f64); return true;
  case PLN_FLOAT16: EACH(uint16_t, combine_half); return true;
  case PLN_BFLOAT16: EACH(uint16_t, combine_bfloat); return true;
  }
  return false;
}

static pln_status copy_operand(const pln_kernel_call *call,
                               const pln_strided_result *moved) {
  return pln_copy_bytes(call->engine, moved->data, call->args[0]->data,
                        moved->count * moved->size);
}

/* --------------------------------------------------------- scatter_elements */

static bool same_dims(const pln_tensor *a, const pln_tensor *b) {
  return a->rank == b->rank &&
         (a->rank == 0 || !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims));
}

static pln_status scatter_all(pln_kernel_call *call,
                              const pln_strided_result *moved, uint32_t axis,
                              how h) {
  const pln_tensor *x = call->args[0], *indices = call->args[1];
  const pln_tensor *updates = call->args[2];
  int64_t steps[PLN_MAX_RANK], place[PLN_MAX_RANK] = {0}, base = 0;
  size_t done = 0;
  pln_dense_strides(x->rank, x->dims, steps);
  for (size_t n = 0; n < indices->count; n++) {
    int64_t at;
    PLN_TRY(pln_poll_after(call->engine, &done, 4));
    if (!pln_index_at(indices, n, x->dims[axis], &at))
      return pln_kernel_index_outside(call, indices, n, x->dims[axis]);
    size_t to = (size_t)(base + at * steps[axis]) * moved->size;
    if (!combine(moved->dtype, h, (char *)moved->data + to,
                 (const char *)updates->data + n * moved->size, 1))
      return pln_kernel_no_dtype(call, moved->dtype);
    base = pln_indices_advance(indices, x->rank, axis, steps, place, base);
  }
  return PLN_OK;
}

pln_status pln_kernel_scatter_elements(pln_kernel_call *call) {
  const pln_tensor *x = call->args[0], *indices = call->args[1];
  const pln_tensor *updates = call->args[2];
  how h = read_how(call);
  uint32_t axis;
  pln_strided_result moved;
  if (h == UNKNOWN || x->rank != indices->rank || x->rank > PLN_MAX_RANK ||
      !same_dims(indices, updates) || x->dtype != updates->dtype ||
      !pln_kernel_axis(pln_kernel_int(call, "axis", 0), x->rank, &axis) ||
      !pln_indices_lie_within(indices, x, axis))
    return pln_kernel_refuse(call, "the updates do not match the operand");
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, x->rank,
                                   x->dims, &moved));
  pln_status status = copy_operand(call, &moved);
  if (status == PLN_OK)
    status = scatter_all(call, &moved, axis, h);
  return pln_strided_result_end(&moved, status);
}

/* --------------------------------------------------------------- scatter_nd */

/* Checks the dims of updates: the leading axes of indices, then the remaining
 * axes of the operand. */
static bool updates_fit(const pln_tensor *x, const pln_tensor *indices,
                        const pln_tensor *updates, uint32_t k) {
  uint32_t lead = indices->rank - 1;
  if (updates->dtype != x->dtype || updates->rank != lead + x->rank - k)
    return false;
  for (uint32_t i = 0; i < updates->rank; i++)
    if (updates->dims[i] !=
        (i < lead ? indices->dims[i] : x->dims[k + i - lead]))
      return false;
  return true;
}

static pln_status scatter_slices(pln_kernel_call *call,
                                 const pln_strided_result *moved, uint32_t k,
                                 how h) {
  const pln_tensor *x = call->args[0], *indices = call->args[1];
  size_t slice = pln_dims_product(x->dims, k, x->rank);
  size_t n = pln_dims_product(indices->dims, 0, indices->rank - 1);
  const char *updates = call->args[2]->data;
  size_t done = 0;
  for (size_t r = 0; r < n; r++) {
    size_t at = 0;
    PLN_TRY(pln_poll_after(call->engine, &done, k + slice));
    for (uint32_t i = 0; i < k; i++) {
      int64_t index;
      if (!pln_index_at(indices, r * k + i, x->dims[i], &index))
        return pln_kernel_index_outside(call, indices, r * k + i, x->dims[i]);
      at = at * (size_t)x->dims[i] + (size_t)index;
    }
    if (slice && !combine(moved->dtype, h,
                          (char *)moved->data + at * slice * moved->size,
                          updates + r * slice * moved->size, slice))
      return pln_kernel_no_dtype(call, moved->dtype);
  }
  return PLN_OK;
}

/* Relay's form has the parts of an index along axis 0 of the indices. */
static pln_status scatter_nd_of_first_axis(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *args[3] = {
      pln_kernel_arg(call, 0),
      pln_compose_first_axis_last(&s, pln_kernel_arg(call, 1)),
      pln_kernel_arg(call, 2)};
  pln_compose_forward(&s, "reduction");
  return pln_composition_finish(
      &s, pln_compose_call(&s, PLN_OP_SCATTER_ND, 3, args));
}

pln_status pln_kernel_scatter_nd(pln_kernel_call *call) {
  if (pln_kernel_int(call, "relay", 0))
    return scatter_nd_of_first_axis(call);
  const pln_tensor *x = call->args[0], *indices = call->args[1];
  how h = read_how(call);
  pln_strided_result moved;
  int64_t k = indices->rank ? indices->dims[indices->rank - 1] : -1;
  if (h == UNKNOWN || k < 0 || k > (int64_t)x->rank ||
      !updates_fit(x, indices, call->args[2], (uint32_t)k))
    return pln_kernel_refuse(call, "the updates do not match the operand");
  PLN_TRY(pln_strided_result_begin(call, 0, (pln_dtype)x->dtype, x->rank,
                                   x->dims, &moved));
  pln_status status = copy_operand(call, &moved);
  if (status == PLN_OK)
    status = scatter_slices(call, &moved, (uint32_t)k, h);
  return pln_strided_result_end(&moved, status);
}
