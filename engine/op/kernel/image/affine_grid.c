/* affine_grid.c: affine_grid: the grid of sampling positions of an affine map.
 * Type and kernel. Called through ops.def. */

#include "op/kernel/element.h"
#include "op/kernel/half_as_float.h"
#include "op/relay/form.h"
#include "op/relay/kernel/relay_form/relay_form.h"

/* size (batch, channels, space...) gives (batch, space..., axes). */
pln_status pln_infer_affine_grid(pln_infer *call) {
  if (pln_arg_absent(call, 1))
    return pln_infer_relay_affine_grid(call);
  pln_list size = pln_arg_list(call, 1, NULL);
  pln_shape out;
  bool good = size.sized && size.count >= 3 && size.count < PLN_MAX_RANK;
  pln_shape_ranked(&out, good ? (int64_t)size.count : -1);
  if (!good)
    return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
  out.dims[0] = pln_list_at(&size, 0);
  for (uint32_t i = 2; i < size.count; i++)
    out.dims[i - 1] = pln_list_at(&size, i);
  out.dims[size.count - 1] = size.count - 2;
  return pln_result_tensor(call, 0, pln_arg_dtype(call, 0), &out);
}

/* The coordinate of element `i` of an axis in [-1, 1]. */
static double place(int64_t i, int64_t extent, bool align_corners) {
  if (align_corners)
    return extent > 1 ? -1 + 2 * (double)i / (double)(extent - 1) : 1;
  return (2 * (double)i + 1) / (double)extent - 1;
}

/* theta is (batch, axes, axes + 1); the last axis of space comes first. */
static void map_points(const pln_tensor *theta, uint32_t space,
                       const int64_t *extents, bool align, pln_tensor *out) {
  int64_t at[3] = {0};
  size_t points = pln_dims_product(extents, 0, space), o = 0;
  for (size_t i = 0; i < (size_t)theta->dims[0] * points; i++) {
    size_t row = i / points * space * (space + 1);
    for (uint32_t k = 0; k < space; k++, row += space + 1) {
      double sum = pln_element_at(theta, row + space);
      for (uint32_t m = 0; m < space; m++)
        sum += pln_element_at(theta, row + m) *
               place(at[space - 1 - m], extents[space - 1 - m], align);
      pln_element_set(out, o++, sum);
    }
    for (uint32_t k = space; k-- > 0;) {
      if (++at[k] < extents[k])
        break;
      at[k] = 0;
    }
  }
}

static pln_status affine_grid(pln_kernel_call *call) {
  const pln_tensor *theta = pln_kernel_arg(call, 0);
  pln_list size = pln_kernel_list(call, 1, NULL);
  bool align = pln_kernel_int(call, "align_corners", 0) != 0;
  int64_t dims[5];
  if (!pln_is_float32_or_64(theta))
    return pln_kernel_no_dtype(call, (pln_dtype)theta->dtype);
  if (size.count != 4 && size.count != 5)
    return pln_kernel_refuse(call, "a size of %u extents", size.count);
  uint32_t space = size.count - 2;
  for (uint32_t i = 0; i < size.count; i++)
    if (pln_list_at(&size, i) < 0)
      return pln_kernel_refuse(call, "an extent is negative");
  if (theta->rank != 3 || theta->dims[0] != pln_list_at(&size, 0) ||
      theta->dims[1] != space || theta->dims[2] != space + 1)
    return pln_kernel_refuse(call, "the map does not match the size");
  dims[0] = theta->dims[0];
  for (uint32_t i = 0; i < space; i++)
    dims[i + 1] = pln_list_at(&size, i + 2);
  dims[space + 1] = space;
  PLN_TRY(pln_tensor_unset(call->engine, (pln_dtype)theta->dtype, space + 2,
                           dims, &call->results[0]));
  if (call->results[0]->count)
    map_points(theta, space, dims + 1, align, call->results[0]);
  return PLN_OK;
}

pln_status pln_kernel_affine_grid(pln_kernel_call *call) {
  if (!pln_kernel_arg(call, 1))
    return pln_kernel_relay_affine_grid(call);
  return pln_kernel_through_float(call, "0", affine_grid);
}
