/* concat_split.c: splits and concatenates tensors. Called by the kernels of
 * sequences and by the evaluator for loop and scan. */

#include "op/kernel/shape/concat_split.h"

#include "op/kernel/strided.h"

/* Returns a call of the same operator whose only result goes to *out. */
static pln_kernel_call into(const pln_kernel_call *call, pln_tensor **out) {
  pln_kernel_call own = *call;
  *out = NULL;
  own.n_results = 1;
  own.results = out;
  return own;
}

pln_status pln_split_part(const pln_kernel_call *call, const pln_tensor *x,
                          uint32_t axis, int64_t begin, int64_t end, bool drop,
                          pln_tensor **out) {
  pln_kernel_call own = into(call, out);
  pln_strided view;
  pln_tensor *dense;
  int64_t dims[PLN_MAX_RANK];
  if (x->rank > PLN_MAX_RANK || begin < 0 || begin > end || end > x->dims[axis])
    return pln_kernel_refuse(call, "elements [%lld, %lld) of %lld",
                             (long long)begin, (long long)end,
                             (long long)x->dims[axis]);
  PLN_TRY(pln_tensor_dense(x, &dense));
  pln_dense_strides(x->rank, x->dims, view.from);
  size_t offset = (size_t)begin * (size_t)view.from[axis] *
                  pln_element_size((pln_dtype)x->dtype);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  dims[axis] = end - begin;
  uint32_t rank = x->rank;
  if (drop) {
    rank--;
    memmove(dims + axis, dims + axis + 1, (rank - axis) * sizeof *dims);
    memmove(view.from + axis, view.from + axis + 1,
            (rank - axis) * sizeof *view.from);
  }
  pln_status status = pln_strided_result_copy(
      &own, 0, dense, (const char *)dense->data + offset, rank, dims, &view);
  pln_tensor_release(dense);
  return status;
}

/* Copies a part to position `at` along the axis, counted in elements. */
static pln_status place(const pln_tensor *part, pln_strided_result *moved,
                        size_t rows, size_t row, size_t inner, size_t at) {
  pln_tensor *dense;
  PLN_TRY(pln_tensor_dense(part, &dense));
  const char *from = dense->data;
  char *to = (char *)moved->data + at * moved->size;
  size_t run = inner * moved->size;
  size_t done = 0;
  pln_engine *e = moved->call->engine;
  pln_status status = PLN_OK;
  for (size_t r = 0; r < rows && run && status == PLN_OK; r++) {
    status = pln_poll_after(e, &done, 1 + run / 8);
    if (status == PLN_OK)
      status =
          pln_copy_bytes(e, to + r * row * moved->size, from + r * run, run);
  }
  pln_tensor_release(dense);
  return status;
}

static const pln_tensor *tensor_at(const pln_runtime_value *parts, uint32_t i) {
  return parts[i].kind == PLN_RUNTIME_TENSOR ? parts[i].of.tensor : NULL;
}

/* Returns true for equal dtype and, except for `axis` (PLN_NONE: none), equal
 * dims. */
static bool parts_join_along_axis(const pln_tensor *a, const pln_tensor *b,
                                  uint32_t axis) {
  if (!b || a->dtype != b->dtype || a->rank != b->rank)
    return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (i != axis && a->dims[i] != b->dims[i])
      return false;
  return true;
}

pln_status pln_concat_parts(const pln_kernel_call *call, uint32_t n,
                            const pln_runtime_value *parts, int64_t axis,
                            pln_tensor **out) {
  pln_kernel_call own = into(call, out);
  const pln_tensor *first = tensor_at(parts, 0);
  int64_t dims[PLN_MAX_RANK];
  uint32_t k;
  pln_strided_result moved;
  if (!first || first->rank > PLN_MAX_RANK ||
      !pln_kernel_axis(axis, first->rank, &k))
    return pln_kernel_refuse(call, "axis %lld does not match the elements",
                             (long long)axis);
  memcpy(dims, first->dims, first->rank * sizeof *dims);
  for (uint32_t i = 1; i < n; i++)
    if (!parts_join_along_axis(first, tensor_at(parts, i), k) ||
        __builtin_add_overflow(dims[k], parts[i].of.tensor->dims[k], &dims[k]))
      return pln_kernel_refuse(call, "elements do not match each other");
  PLN_TRY(pln_strided_result_begin(&own, 0, (pln_dtype)first->dtype,
                                   first->rank, dims, &moved));
  size_t rows = pln_dims_product(dims, 0, k), at = 0;
  size_t inner = pln_dims_product(dims, k + 1, first->rank);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && moved.count && status == PLN_OK; i++) {
    const pln_tensor *part = parts[i].of.tensor;
    size_t run = (size_t)part->dims[k] * inner;
    status = place(part, &moved, rows, (size_t)dims[k] * inner, run, at);
    at += run;
  }
  return pln_strided_result_end(&moved, status);
}

pln_status pln_stack_parts(const pln_kernel_call *call, uint32_t n,
                           const pln_runtime_value *parts, int64_t axis,
                           bool backwards, pln_tensor **out) {
  pln_kernel_call own = into(call, out);
  const pln_tensor *first = tensor_at(parts, 0);
  int64_t dims[PLN_MAX_RANK];
  uint32_t k;
  pln_strided_result moved;
  if (!first || first->rank >= PLN_MAX_RANK ||
      !pln_kernel_axis(axis, first->rank + 1, &k))
    return pln_kernel_refuse(call, "axis %lld does not match the elements",
                             (long long)axis);
  for (uint32_t i = 1; i < n; i++)
    if (!parts_join_along_axis(first, tensor_at(parts, i), PLN_NONE))
      return pln_kernel_refuse(call, "elements differ in shape or dtype");
  memcpy(dims, first->dims, k * sizeof *dims);
  dims[k] = n;
  memcpy(dims + k + 1, first->dims + k, (first->rank - k) * sizeof *dims);
  PLN_TRY(pln_strided_result_begin(&own, 0, (pln_dtype)first->dtype,
                                   first->rank + 1, dims, &moved));
  size_t rows = pln_dims_product(dims, 0, k);
  size_t inner = pln_dims_product(dims, k + 1, first->rank + 1);
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < n && moved.count && status == PLN_OK; i++)
    status = place(parts[backwards ? n - 1 - i : i].of.tensor, &moved, rows,
                   n * inner, inner, i * inner);
  return pln_strided_result_end(&moved, status);
}
