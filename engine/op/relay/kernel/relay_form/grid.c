/* grid.c: kernels of Relay's image.affine_grid and image.grid_sample, composed
 * of ONNX's. Called by op/kernel/image; types are in relay/infer/image.c.
 *
 * Relay's grid is (batch, coordinate, space...), ONNX's (batch, space...,
 * coordinate). Semantics: TVM topi.image.affine_grid, topi.image.grid_sample.
 */

#include "op/kernel/composed.h"
#include "op/relay/kernel/relay_form/relay_form.h"

/* (batch, 2, 3) to (batch, 2, height, width); corners are aligned. */
pln_status pln_kernel_relay_affine_grid(pln_kernel_call *call) {
  static const int64_t coordinate_first[] = {0, 3, 1, 2};
  const pln_tensor *map = pln_kernel_arg(call, 0);
  pln_list target = pln_kernel_list(call, UINT32_MAX, "target_shape");
  pln_composition s;
  if (map->rank != 3 || target.count != 2)
    return pln_kernel_refuse(call, "the map does not match the size");
  int64_t size[] = {map->dims[0], 1, pln_list_at(&target, 0),
                    pln_list_at(&target, 1)};
  pln_composition_begin(&s, call);
  const pln_tensor *args[2] = {map, pln_compose_vector(&s, 4, size)};
  pln_compose_int(&s, "align_corners", 1);
  const pln_tensor *grid = pln_compose_call(&s, PLN_OP_AFFINE_GRID, 2, args);
  return pln_composition_finish(
      &s, pln_compose_transpose(&s, grid, 4, coordinate_first));
}

/* Relay's name of an interpolation in ONNX; NULL: it has none. */
static const char *onnx_mode(pln_slice method) {
  static const char *const names[][2] = {
      {"bilinear", "linear"}, {"nearest", "nearest"}, {"bicubic", "cubic"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (pln_slice_is(method, names[i][0]))
      return names[i][1];
  return NULL;
}

/* A tensor in NCHW or NCDHW, sampled at the positions of a grid. */
pln_status pln_kernel_relay_grid_sample(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *grid = pln_kernel_arg(call, 1);
  pln_slice layout =
      pln_attrs_string(call->engine, call->attrs, "layout", "NCHW");
  const char *mode = onnx_mode(
      pln_attrs_string(call->engine, call->attrs, "method", "bilinear"));
  int64_t axes[PLN_MAX_RANK] = {0};
  pln_composition s;
  if (!mode)
    return pln_kernel_refuse(call, "unknown method");
  if (!pln_slice_is(layout, "NCHW") && !pln_slice_is(layout, "NCDHW"))
    return pln_kernel_refuse(call, "layout %.*s", (int)layout.size,
                             layout.data);
  if (x->rank != layout.size || grid->rank != x->rank)
    return pln_kernel_refuse(call, "the grid does not match the operand");
  for (uint32_t i = 1; i < grid->rank; i++)
    axes[i] = i + 1 < grid->rank ? i + 1 : 1;
  pln_composition_begin(&s, call);
  const pln_tensor *args[2] = {
      x, pln_compose_transpose(&s, grid, grid->rank, axes)};
  pln_compose_string(&s, "mode", mode);
  pln_compose_forward(&s, "padding_mode");
  pln_compose_int(&s, "align_corners",
                  pln_kernel_int(call, "align_corners", 1));
  return pln_composition_finish(
      &s, pln_compose_call(&s, PLN_OP_GRID_SAMPLE, 2, args));
}
