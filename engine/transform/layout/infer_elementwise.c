/* infer_elementwise.c: layouts of operators that compute element by element.
 *
 * Called through layouts.def. One operand: its layout is the result's. Two
 * operands that broadcast: the layout of the smaller one is changed in the way
 * in which the larger one's is, so that they broadcast as before.
 *
 *     add("NHWC" -> "NCHW", "C")   =>   add("NCHW", "NCHW")
 *
 * Semantics: TVM's ElemwiseArbitraryLayout and BinaryBroadcastLayout. */

#include "transform/layout/infer_layout.h"

pln_status pln_layout_elementwise(pln_layout_call *call) {
  pln_tensor_layout layout = pln_layout_operand(call, 0);
  for (uint32_t i = 1; i < call->n && !layout && !call->now; i++)
    layout = call->old[i];
  for (uint32_t i = 0; i < call->n; i++)
    call->in[i] = layout;
  pln_layout_set_results(call, layout);
  return PLN_OK;
}

/* --------------------------------------------------------------- broadcast */

/* The layouts of both operands before any change: of one, the last axes of the
 * other. False if they are not known. */
static pln_status before_change(pln_layout_call *call, bool *known) {
  int32_t ranks[2] = {pln_layout_arg_rank(call, 0),
                      pln_layout_arg_rank(call, 1)};
  call->in[0] = call->old[0];
  call->in[1] = call->old[1];
  *known = ranks[0] >= 0 && ranks[1] >= 0 && (call->in[0] || call->in[1]);
  if (!*known || (call->in[0] && call->in[1]))
    return PLN_OK;
  int given = call->in[0] ? 0 : 1, other = 1 - given;
  *known = ranks[given] >= ranks[other];
  if (!*known)
    return PLN_OK;
  return pln_tensor_layout_slice(call->table, call->in[given],
                                 ranks[given] - ranks[other], ranks[other],
                                 &call->in[other]);
}

/* Whether operand `i` lacks that part of an axis, or has one element in it. */
static bool is_single(const pln_layout_call *call, uint32_t i,
                      pln_tensor_layout old, char letter, bool inner) {
  int32_t at = pln_tensor_layout_find(call->table, old, letter, inner);
  const pln_dim *dims = pln_type_dims(call->engine, call->types[i]);
  return at < 0 || (at < pln_layout_arg_rank(call, i) && dims[at] == 1);
}

/* The layout with inner parts of one element where the operand, which broadcast
 * in layout `old`, has one element in that axis or lacks it. */
static pln_status shrink_parts(pln_layout_call *call, uint32_t i,
                               pln_tensor_layout old,
                               pln_tensor_layout *layout) {
  pln_layout_table *t = call->table;
  pln_data_layout axes = t->rows[*layout].axes;
  if (*layout == PLN_LAYOUT_UNDEFINED)
    return PLN_OK;
  for (int32_t k = 0; k < axes.rank; k++)
    if (axes.factor[k] && is_single(call, i, old, axes.letter[k], false) &&
        is_single(call, i, old, axes.letter[k], true))
      axes.factor[k] = 1;
  return pln_tensor_layout_of(t, &axes, layout);
}

/* Changes the smaller operand's layout in the way of the larger one's. */
static pln_status after_change(pln_layout_call *call) {
  const pln_layout_table *t = call->table;
  int large = pln_tensor_layout_n_primal(t, call->now[0]) >=
                      pln_tensor_layout_n_primal(t, call->now[1])
                  ? 0
                  : 1;
  int small = 1 - large;
  pln_tensor_layout old = call->in[small], layout;
  PLN_TRY(pln_tensor_layout_follow(call->table, old, call->in[large],
                                   call->now[large], &layout));
  PLN_TRY(shrink_parts(call, (uint32_t)small, old, &layout));
  call->in[large] = call->now[large];
  call->in[small] = layout;
  return PLN_OK;
}

pln_status pln_layout_broadcast(pln_layout_call *call) {
  bool known;
  if (call->n < 2)
    return PLN_OK;
  PLN_TRY(before_change(call, &known));
  if (!known) {
    call->in[0] = call->in[1] = PLN_LAYOUT_UNDEFINED;
    return PLN_OK;
  }
  int large =
      pln_layout_arg_rank(call, 0) >= pln_layout_arg_rank(call, 1) ? 0 : 1;
  pln_layout_set_results(call, call->now ? call->now[large] : call->in[large]);
  return call->now ? after_change(call) : PLN_OK;
}
