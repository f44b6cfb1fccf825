/* infer_window.c: layouts of operators that name them in attributes.
 *
 * Called through layouts.def. Convolutions and products keep their layouts, and
 * other operators adapt to them. Pooling, resizing and upsampling adapt: their
 * attribute follows the layout of the data.
 *
 *     nn.max_pool2d(layout="NCHW") of data in "NHWC"   =>   layout="NHWC"
 *
 * Semantics: TVM's FInferCorrectLayout of each operator. */

#include "transform/layout/infer_layout.h"

/* ------------------------------------------------------- layouts that stay */

pln_status pln_layout_conv(pln_layout_call *call) {
  pln_tensor_layout data, kernel, out;
  uint32_t weight = call->op == PLN_OP_DEFORMABLE_CONV_2D ? 2 : 1;
  PLN_TRY(pln_layout_attr(call, "data_layout", &data));
  PLN_TRY(pln_layout_attr(call, "kernel_layout", &kernel));
  PLN_TRY(pln_layout_attr(call, "out_layout", &out));
  if (call->n != weight + 1)
    return PLN_OK;
  for (uint32_t i = 0; i < weight; i++)
    call->in[i] = data;
  call->in[weight] = kernel;
  pln_layout_set_results(call, out ? out : data);
  return PLN_OK;
}

pln_status pln_layout_correlation(pln_layout_call *call) {
  pln_tensor_layout layout;
  PLN_TRY(pln_layout_attr(call, "layout", &layout));
  for (uint32_t i = 0; i < call->n; i++)
    call->in[i] = layout;
  pln_layout_set_results(call, layout);
  return PLN_OK;
}

/* The regions are rows of five numbers. */
pln_status pln_layout_regions(pln_layout_call *call) {
  if (call->n != 2)
    return PLN_OK;
  PLN_TRY(pln_layout_attr(call, "layout", &call->in[0]));
  PLN_TRY(pln_layout_named(call, "N5", &call->in[1]));
  pln_layout_set_results(call, call->in[0]);
  return PLN_OK;
}

pln_status pln_layout_dense(pln_layout_call *call) {
  pln_tensor_layout rows, weight;
  if (call->n != 2)
    return PLN_OK;
  PLN_TRY(pln_layout_named(call, "NC", &rows));
  PLN_TRY(pln_layout_attr(call, "weight_layout", &weight));
  call->in[0] = rows;
  call->in[1] = weight ? weight : rows;
  pln_layout_set_results(call, rows);
  return PLN_OK;
}

/* ------------------------------------------------------ layouts that follow */

/* Sets the attribute `layout` to that layout, if it changes. */
static pln_status follow_data(pln_layout_call *call, pln_tensor_layout *layout,
                              pln_tensor_layout data) {
  if (*layout == data || data <= PLN_LAYOUT_SCALAR)
    return PLN_OK;
  *layout = data;
  return pln_layout_set_text(call, "layout",
                             pln_tensor_layout_text(call->table, data));
}

/* The result's layout, if it is given, must be the data's. */
pln_status pln_layout_pool(pln_layout_call *call) {
  pln_tensor_layout layout, out;
  PLN_TRY(pln_layout_attr(call, "layout", &layout));
  PLN_TRY(pln_layout_attr(call, "out_layout", &out));
  if (out && out != layout)
    return PLN_OK;
  if (!out && call->now)
    PLN_TRY(follow_data(call, &layout, call->now[0]));
  call->in[0] = layout;
  pln_layout_set_results(call, layout);
  return PLN_OK;
}

pln_status pln_layout_resize(pln_layout_call *call) {
  const pln_layout_table *t = call->table;
  pln_tensor_layout layout;
  PLN_TRY(pln_layout_attr(call, "layout", &layout));
  if (call->now && layout == call->old[0] &&
      pln_tensor_layout_rank(t, call->now[0]) ==
          pln_tensor_layout_rank(t, layout))
    PLN_TRY(follow_data(call, &layout, call->now[0]));
  call->in[0] = layout;
  pln_layout_set_results(call, layout);
  return PLN_OK;
}

/* True if the data has the axis where the layout has it, undivided. */
static bool has_space(const pln_layout_table *t, pln_tensor_layout data,
                      pln_tensor_layout layout, char letter) {
  return pln_tensor_layout_find(t, data, letter, true) < 0 &&
         pln_tensor_layout_find(t, data, letter, false) ==
             pln_tensor_layout_find(t, layout, letter, false);
}

pln_status pln_layout_upsampling(pln_layout_call *call) {
  const pln_layout_table *t = call->table;
  pln_tensor_layout layout;
  PLN_TRY(pln_layout_attr(call, "layout", &layout));
  if (call->n != 1)
    return PLN_OK;
  if (call->now && has_space(t, call->now[0], layout, 'W') &&
      has_space(t, call->now[0], layout, 'H') &&
      has_space(t, call->now[0], layout, 'D'))
    PLN_TRY(follow_data(call, &layout, call->now[0]));
  call->in[0] = layout;
  pln_layout_set_results(call, layout);
  return PLN_OK;
}
