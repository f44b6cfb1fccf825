/* cumulative.c: cumsum and cumprod along an axis. Called through ops.def.
 * Integers wrap. */

#include "op/kernel/half_as_float.h"

/* The type of cumsum and cumprod. The axis is an argument or an attribute;
 * without either the operand is flattened, as in Relay. */
pln_status pln_infer_running(pln_infer *call) {
  pln_slice text = pln_attrs_string(call->engine, call->attrs, "dtype", "");
  pln_dtype dtype = pln_dtype_find(text);
  pln_shape in, flat;
  PLN_TRY(pln_arg_expect_rank_within(call, 1, 0, 1));
  dtype = dtype ? dtype : pln_arg_dtype(call, 0);
  if (!pln_arg_absent(call, 1) || pln_call_has(call, "axis"))
    return pln_result_shaped_like(call, 0, 0, dtype);
  pln_arg_shape(call, 0, &in);
  pln_shape_ranked(&flat, 1);
  if (in.rank >= 0)
    PLN_TRY(pln_infer_product(call, in.dims, 0, in.rank, &flat.dims[0]));
  return pln_result_tensor(call, 0, dtype, &flat);
}

/* Rows along the axis, `n` of `inner` elements to each of `outer`. */
typedef struct rows {
  const pln_engine *engine;
  size_t outer, n, inner;
  bool reverse, exclusive;
} rows;

/* Combines two rows elementwise, so that the inner loop is contiguous. */
#define COMBINE(name, T, op)                                       \
  static void name##_##T(const T *restrict a, const T *restrict b, \
                         T *restrict out, size_t n) {              \
    for (size_t i = 0; i < n; i++)                                 \
      out[i] = a[i] op b[i];                                       \
  }

/* Rows of one element: the running value stays in a register, except between
 * parts of a long line. */
enum { PART = 1 << 18 };
#define IN_LINE(name, T, op, none)                                       \
  static void line_##name##_##T(const rows *r, const T *from, T *to) {   \
    T all = none;                                                        \
    for (size_t k = 0; k < r->n && !(k && pln_is_stopped(r->engine));) { \
      size_t end = r->n - k < PART ? r->n : k + PART;                    \
      for (; k < end; k++) {                                             \
        size_t i = r->reverse ? r->n - 1 - k : k;                        \
        T next = k ? all op from[i] : from[i];                           \
        to[i] = r->exclusive ? all : next;                               \
        all = next;                                                      \
      }                                                                  \
    }                                                                    \
  }

/* Each row is the previous one combined with the operand's row, with
 * `exclusive` with the operand's previous row. The first is the operand's, or
 * the neutral element. */
#define RUNNING(name, T, op, none)                                       \
  COMBINE(name, T, op)                                                   \
  IN_LINE(name, T, op, none)                                             \
  static void run_##name##_##T(const rows *r, const T *from, T *to) {    \
    size_t done = 0;                                                     \
    for (size_t o = 0; o < r->outer && r->inner == 1; o++) {             \
      if (pln_is_stopped_after(r->engine, &done, r->n))                  \
        return;                                                          \
      line_##name##_##T(r, from + o * r->n, to + o * r->n);              \
    }                                                                    \
    for (size_t o = 0; o < r->outer && r->inner != 1; o++)               \
      for (size_t k = 0; k < r->n; k++) {                                \
        if (k % 16 == 0 &&                                               \
            pln_is_stopped_after(r->engine, &done, 16 * r->inner))       \
          return;                                                        \
        size_t row = o * r->n + (r->reverse ? r->n - 1 - k : k);         \
        size_t last = r->reverse ? row + 1 : row - 1;                    \
        const T *x = from + (r->exclusive && k ? last : row) * r->inner; \
        T *out = to + row * r->inner;                                    \
        if (k)                                                           \
          name##_##T(to + last * r->inner, x, out, r->inner);            \
        else                                                             \
          for (size_t i = 0; i < r->inner; i++)                          \
            out[i] = r->exclusive ? none : x[i];                         \
      }                                                                  \
  }
#define RUNNING_OF_ALL(name, op, none) \
  RUNNING(name, float, op, none)       \
  RUNNING(name, double, op, none)      \
  RUNNING(name, uint32_t, op, none)    \
  RUNNING(name, uint64_t, op, none)
RUNNING_OF_ALL(sum, +, 0)
RUNNING_OF_ALL(product, *, 1)

static pln_status read_axis(const pln_kernel_call *call, uint32_t rank,
                            uint32_t *axis) {
  pln_list list = pln_kernel_list(call, 1, "axis");
  pln_dim requested = list.count == 1 ? pln_list_at(&list, 0) : PLN_DIM_UNKNOWN;
  if (requested == PLN_DIM_UNKNOWN)
    return pln_kernel_refuse(call, "the axis is not an integer");
  if (!pln_kernel_axis(requested, rank, axis))
    return pln_kernel_refuse(call, "axis %lld is outside of the operand",
                             (long long)requested);
  return PLN_OK;
}

static pln_status read_rows(const pln_kernel_call *call, rows *out) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  bool flat = !pln_kernel_list(call, 1, "axis").given;
  uint32_t axis = 0;
  if (!flat)
    PLN_TRY(read_axis(call, x->rank, &axis));
  *out =
      (rows){.engine = call->engine,
             .outer = flat ? 1 : pln_dims_product(x->dims, 0, axis),
             .n = flat ? x->count : (size_t)x->dims[axis],
             .inner = flat ? 1 : pln_dims_product(x->dims, axis + 1, x->rank),
             .reverse = pln_kernel_int(call, "reverse", 0) != 0,
             .exclusive = pln_kernel_int(call, "exclusive", 0) != 0};
  return PLN_OK;
}

#define RUN(T, product) \
  (product ? run_product_##T : run_sum_##T)(&r, x->data, data)

static pln_status accumulate_along_axis(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  bool product = call->op == PLN_OP_CUM_PROD;
  rows r = {0};
  bool flat = !pln_kernel_list(call, 1, "axis").given;
  const int64_t all = (int64_t)x->count;
  void *data;
  if (pln_attrs_string(call->engine, call->attrs, "dtype", "").size > 0 &&
      !pln_kernel_string_is(call, "dtype", "",
                            pln_dtype_name((pln_dtype)x->dtype)))
    return pln_kernel_refuse(call, "sums of another dtype are not implemented");
  PLN_TRY(read_rows(call, &r));
  PLN_TRY(pln_kernel_unset(call, 0, (pln_dtype)x->dtype, flat ? 1 : x->rank,
                           flat ? &all : x->dims, &data));
  if (x->count == 0)
    return PLN_OK;
  switch ((int)x->dtype) {
  case PLN_FLOAT32: RUN(float, product); return PLN_OK;
  case PLN_FLOAT64: RUN(double, product); return PLN_OK;
  case PLN_INT32:
  case PLN_UINT32: RUN(uint32_t, product); return PLN_OK;
  case PLN_INT64:
  case PLN_UINT64: RUN(uint64_t, product); return PLN_OK;
  }
  return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
}

pln_status pln_kernel_running(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", accumulate_along_axis);
}
