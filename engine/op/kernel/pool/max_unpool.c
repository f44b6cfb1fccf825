/* max_unpool.c: max_unpool: puts elements back where max_pool took them. Type
 * and kernel. Called through ops.def. */

#include "op/infer/window.h"
#include "op/kernel/strided.h"

pln_status pln_infer_max_unpool(pln_infer *call) {
  pln_list shape = pln_arg_list(call, 2, NULL);
  pln_shape x, out;
  pln_extents window;
  PLN_TRY(pln_arg_expect_rank_within(call, 0, 3, INT32_MAX));
  pln_arg_shape(call, 0, &x);
  pln_shape_ranked(&out, x.rank);
  if (x.rank < 0)
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
  if (!shape.given) {
    pln_window_extents(call, PLN_NONE, &window);
    PLN_TRY(pln_window_unslide(call, &x, &window, &out));
    out.dims[0] = x.dims[0];
    out.dims[1] = x.dims[1];
  } else if (shape.sized && shape.count == (uint32_t)x.rank) {
    for (uint32_t i = 0; i < shape.count; i++)
      out.dims[i] = pln_list_at(&shape, i);
  }
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* Computes the extents that follow from the attributes. */
static pln_status inferred_dims(const pln_kernel_call *call,
                                const pln_tensor *x, int64_t *dims) {
  pln_list window = pln_kernel_list(call, PLN_NONE, "kernel_shape");
  pln_list strides = pln_kernel_list(call, PLN_NONE, "strides");
  pln_list pads = pln_kernel_list(call, PLN_NONE, "pads");
  uint32_t space = x->rank - 2;
  if (window.count != space || (strides.given && strides.count != space) ||
      (pads.given && pads.count != 2 * space))
    return pln_kernel_refuse(call, "attributes do not match rank %u", x->rank);
  for (uint32_t i = 0; i < space; i++) {
    int64_t pad = 0, extent;
    int64_t stride = strides.given ? strides.ints[i] : 1;
    if (pads.given &&
        __builtin_add_overflow(pads.ints[i], pads.ints[space + i], &pad))
      return pln_kernel_refuse(call, "pads are too large");
    if (__builtin_mul_overflow(x->dims[i + 2] - 1, stride, &extent) ||
        __builtin_add_overflow(extent, window.ints[i], &extent) ||
        __builtin_sub_overflow(extent, pad, &extent) || extent < 0)
      return pln_kernel_refuse(call, "axis %u has no valid extent", i + 2);
    dims[i + 2] = extent;
  }
  return PLN_OK;
}

/* Reads the requested extents, which must be at least `dims`. */
static pln_status given_dims(const pln_kernel_call *call, uint32_t rank,
                             const int64_t *dims, int64_t *given) {
  pln_list shape = pln_kernel_list(call, 2, NULL);
  if (shape.count != rank)
    return pln_kernel_refuse(call, "expected %u extents, got %u", rank,
                             shape.count);
  for (uint32_t i = 0; i < rank; i++) {
    given[i] = pln_list_at(&shape, i);
    if (given[i] < dims[i])
      return pln_kernel_refuse(call, "axis %u needs %lld elements, not %lld", i,
                               (long long)dims[i], (long long)given[i]);
  }
  return PLN_OK;
}

static pln_status put_back(pln_kernel_call *call, size_t size) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const int64_t *places = pln_kernel_data(pln_kernel_arg(call, 1));
  char *out = pln_tensor_writable(call->results[0]);
  for (size_t i = 0; i < x->count; i++) {
    if (places[i] < 0 || (uint64_t)places[i] >= call->results[0]->count)
      return pln_kernel_refuse(call, "index %lld lies outside",
                               (long long)places[i]);
    memcpy(out + (size_t)places[i] * size, (const char *)x->data + i * size,
           size);
  }
  return PLN_OK;
}

/* Places result 0 in the corner of a larger tensor of zeros. */
static pln_status enlarge(pln_kernel_call *call, const int64_t *dims,
                          size_t size) {
  pln_tensor *small = call->results[0];
  pln_strided view = {.rank = small->rank};
  void *out;
  call->results[0] = NULL;
  pln_status status = pln_kernel_result(call, 0, (pln_dtype)small->dtype,
                                        small->rank, dims, &out);
  memcpy(view.dims, small->dims, small->rank * sizeof *dims);
  pln_dense_strides(small->rank, dims, view.to);
  pln_dense_strides(small->rank, small->dims, view.from);
  if (status == PLN_OK && small->count)
    pln_strided_copy(call->engine, out, small->data, size, &view);
  pln_tensor_release(small);
  return status;
}

/* Indices refer to the tensor that the attributes describe. A larger shape may
 * be requested: elements then keep their coordinates. */
pln_status pln_kernel_max_unpool(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *at = pln_kernel_arg(call, 1);
  int64_t dims[PLN_MAX_RANK], given[PLN_MAX_RANK];
  size_t size = pln_element_size((pln_dtype)x->dtype);
  bool larger = pln_kernel_arg(call, 2) != NULL;
  void *out;
  if (size == 0 || x->dtype == PLN_STRING)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->rank < 3 || x->rank > PLN_MAX_RANK || at->count != x->count ||
      at->dtype != PLN_INT64)
    return pln_kernel_refuse(call, "the indices do not match the operand");
  memcpy(dims, x->dims, 2 * sizeof *dims);
  PLN_TRY(inferred_dims(call, x, dims));
  if (larger)
    PLN_TRY(given_dims(call, x->rank, dims, given));
  PLN_TRY(pln_kernel_result(call, 0, (pln_dtype)x->dtype, x->rank, dims, &out));
  PLN_TRY(put_back(call, size));
  if (larger && memcmp(dims, given, x->rank * sizeof *dims))
    return enlarge(call, given, size);
  return PLN_OK;
}
