/* form.c: tells whether a call uses what only Relay's form of its operator has.
 * Passes that know an operator by ONNX's definition skip such calls, and ONNX
 * cannot express them. Called by transforms and by export. */

#include "op/infer/infer.h"

/* Attributes that ONNX's form lacks, or has only with another default. */
static const struct {
  pln_op op;
  const char *name;
} relay_names[] = {
    {PLN_OP_GATHER, "mode"},
    {PLN_OP_GATHER, "batch_dims"},
    {PLN_OP_UNSQUEEZE, "num_newaxis"},
    {PLN_OP_SLICE, "strides"},
    {PLN_OP_SLICE, "slice_mode"},
    {PLN_OP_PAD, "pad_width"},
    {PLN_OP_EXPAND, "shape"},
    {PLN_OP_EXPAND, "dtype"},
    {PLN_OP_TILE, "reps"},
    {PLN_OP_SPLIT, "indices_or_sections"},
    {PLN_OP_BATCH_NORMALIZATION, "axis"},
    {PLN_OP_BATCH_NORMALIZATION, "center"},
    {PLN_OP_BATCH_NORMALIZATION, "scale"},
    {PLN_OP_LAYER_NORMALIZATION, "one_axis"},
    {PLN_OP_LAYER_NORMALIZATION, "center"},
    {PLN_OP_LAYER_NORMALIZATION, "scale"},
    {PLN_OP_LRN, "axis"},
    {PLN_OP_PRELU, "axis"},
    {PLN_OP_MAT_MUL, "transpose_a"},
    {PLN_OP_MAT_MUL, "transpose_b"},
    {PLN_OP_MAT_MUL, "out_dtype"},
    {PLN_OP_MAT_MUL, "units"},
    {PLN_OP_REDUCE_SUM, "exclude"},
    {PLN_OP_REDUCE_MEAN, "exclude"},
    {PLN_OP_REDUCE_MAX, "exclude"},
    {PLN_OP_REDUCE_MIN, "exclude"},
    {PLN_OP_REDUCE_PROD, "exclude"},
    {PLN_OP_REDUCE_LOG_SUM_EXP, "exclude"},
    {PLN_OP_ARG_MAX, "exclude"},
    {PLN_OP_ARG_MAX, "index_dtype"},
    {PLN_OP_ARG_MIN, "exclude"},
    {PLN_OP_ARG_MIN, "index_dtype"},
    {PLN_OP_CUM_SUM, "axis"},
    {PLN_OP_CUM_SUM, "dtype"},
    {PLN_OP_CUM_PROD, "axis"},
    {PLN_OP_CUM_PROD, "dtype"},
    {PLN_OP_TOP_K, "is_ascend"},
    {PLN_OP_TOP_K, "ret_type"},
    {PLN_OP_TOP_K, "dtype"},
    {PLN_OP_SHAPE, "dtype"},
    {PLN_OP_RANGE, "dtype"},
    {PLN_OP_ONE_HOT, "depth"},
    {PLN_OP_UPSAMPLE, "scale_h"},
    {PLN_OP_ROI_ALIGN, "pooled_size"},
    {PLN_OP_MAX_ROI_POOL, "layout"},
    {PLN_OP_DEPTH_TO_SPACE, "layout"},
    {PLN_OP_SPACE_TO_DEPTH, "layout"},
    {PLN_OP_AFFINE_GRID, "target_shape"},
    {PLN_OP_INSTANCE_NORMALIZATION, "axis"},
    {PLN_OP_INSTANCE_NORMALIZATION, "center"},
    {PLN_OP_INSTANCE_NORMALIZATION, "scale"},
    {PLN_OP_GROUP_NORMALIZATION, "axis"},
    {PLN_OP_GROUP_NORMALIZATION, "center"},
    {PLN_OP_GROUP_NORMALIZATION, "scale"},
};

/* Returns true if "axis" is not a single integer. An attribute reference may be
 * one. */
static bool has_odd_axis(const pln_graph *g, const pln_node *n) {
  const pln_attr *a = pln_attrs_find(g->engine, n->attrs, "axis");
  return a && a->kind != PLN_ATTR_INT && a->kind != PLN_ATTR_REF;
}

/* Returns true if the new shape contains Relay's own codes. */
static bool has_codes(const pln_graph *g, const pln_node *n) {
  const pln_attr *a = pln_attrs_find(g->engine, n->attrs, "newshape");
  for (uint32_t i = 0; a && a->kind == PLN_ATTR_INTS && i < a->count; i++)
    if (a->v.ints[i] < -1)
      return true;
  return false;
}

static bool joins_tuple(const pln_graph *g, const pln_node *n) {
  pln_type type = n->count == 1 ? g->nodes[g->operands[n->first]].type : 0;
  return pln_type_get_kind(g->engine, type) == PLN_TYPE_TUPLE;
}

bool pln_op_is_relay_form(const pln_graph *g, pln_ref call) {
  const pln_node *n = &g->nodes[call];
  if (n->kind != PLN_CALL || n->data == 0 || n->data >= PLN_N_OPS)
    return false;
  if (n->data == PLN_OP_CONCAT || n->data == PLN_OP_EINSUM)
    return joins_tuple(g, n);
  if (n->attrs == 0)
    return false;
  if (has_odd_axis(g, n) || (n->data == PLN_OP_RESHAPE && has_codes(g, n)))
    return true;
  if (pln_attrs_find(g->engine, n->attrs, "relay"))
    return true;
  if (n->data == PLN_OP_DROPOUT)
    return pln_attrs_int(g->engine, n->attrs, "mask", 1) == 2;
  for (size_t i = 0; i < PLN_COUNT(relay_names); i++)
    if (relay_names[i].op == n->data &&
        pln_attrs_find(g->engine, n->attrs, relay_names[i].name))
      return true;
  return false;
}

bool pln_op_is_onnx_form(const pln_graph *g, pln_ref call) {
  return !pln_op_is_relay_form(g, call) &&
         !pln_attrs_has_refs(g->engine, g->nodes[call].attrs);
}
