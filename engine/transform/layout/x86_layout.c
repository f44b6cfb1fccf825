/* x86_layout.c: blocks of channels for convolutions, packed weights for dense
 * products.
 *
 * Called by AlterOpLayout when the target is x86 and no function was set for
 * the operator. A block has as many channels as divide all of them, at most a
 * vector register of floats.
 *
 *     nn.conv2d(%x: (1, 8, ..), %w: (16, 8, 3, 3)), 16 lanes
 *       =>   nn.contrib_conv2d_NCHWc, "NCHW8c", "OIHW8i16o" -> "NCHW16c"
 *     nn.dense(%x, %w: (8, 4))   =>   nn.contrib_dense_pack, "NC8n"
 *
 * Semantics: TVM's conv2d_alter_layout and dense_alter_layout for x86, with the
 * schedules that are used without tuning. */

#include "transform/layout/x86_layout.h"

#include <stdio.h>

/* The greatest divisor of `n` that is at most `most`. */
static int64_t block_size(int64_t n, int64_t most) {
  while (most > 1 && n % most != 0)
    most--;
  return most;
}

/* The extents of argument `i`; NULL if it is no tensor of that rank, or if one
 * of the extents [0, known) is unknown. */
static const pln_dim *argument_dims(const pln_layout_change *c, uint32_t i,
                                    int32_t rank, int32_t known) {
  const pln_graph *g = pln_rewrite_old(c->rw);
  pln_type type = g->nodes[pln_operand(g, c->old, i)].type;
  if (pln_type_get_kind(g->engine, type) != PLN_TYPE_TENSOR ||
      pln_type_rank(g->engine, type) != rank)
    return NULL;
  const pln_dim *dims = pln_type_dims(g->engine, type);
  for (int32_t k = 0; k < known; k++)
    if (!PLN_DIM_IS_CONST(dims[k]) || dims[k] < 1)
      return NULL;
  return dims;
}

static pln_dtype argument_dtype(const pln_layout_change *c, uint32_t i) {
  const pln_graph *g = pln_rewrite_old(c->rw);
  return pln_type_dtype(g->engine, g->nodes[pln_operand(g, c->old, i)].type);
}

static pln_status set_attr(pln_layout_change *c, const char *name,
                           pln_attr value) {
  return pln_relay_set(pln_rewrite_old(c->rw)->engine, c->op, c->attrs, name,
                       value, &c->attrs);
}

static pln_status set_text(pln_layout_change *c, const char *name,
                           const char *text) {
  return set_attr(c, name,
                  (pln_attr){.kind = PLN_ATTR_STRING, .v.s = pln_text(text)});
}

/* ------------------------------------------------------------- convolutions */

static bool has_text(const pln_layout_change *c, const char *name,
                     const char *text) {
  pln_attr value;
  return pln_relay_get(pln_rewrite_old(c->rw)->engine, c->op, c->attrs, name,
                       &value) == PLN_OK &&
         value.kind == PLN_ATTR_STRING && pln_slice_is(value.v.s, text);
}

static bool is_dilated(const pln_layout_change *c) {
  pln_attr value;
  if (pln_relay_get(pln_rewrite_old(c->rw)->engine, c->op, c->attrs, "dilation",
                    &value) != PLN_OK ||
      value.kind != PLN_ATTR_INTS)
    return false;
  for (uint32_t i = 0; i < value.count; i++)
    if (value.v.ints[i] != 1)
      return true;
  return false;
}

/* The padding before each axis counts for both sides. */
static pln_status write_both_paddings(pln_layout_change *c) {
  pln_attr value;
  int64_t pads[4];
  PLN_TRY(pln_relay_get(pln_rewrite_old(c->rw)->engine, c->op, c->attrs,
                        "padding", &value));
  if (value.kind != PLN_ATTR_INTS || value.count != 2)
    return PLN_OK;
  for (uint32_t i = 0; i < 4; i++)
    pads[i] = value.v.ints[i % 2];
  value.count = 4;
  value.v.ints = pads;
  return set_attr(c, "padding", value);
}

static pln_status set_blocks(const pln_compile_target *target,
                             pln_layout_change *c, const pln_dim *data,
                             const pln_dim *weight, bool depthwise) {
  char text[64];
  int64_t out = block_size(weight[0], target->lanes);
  int64_t in = block_size(data[1], out);
  PLN_TRY(write_both_paddings(c));
  PLN_TRY(set_attr(c, "channels",
                   (pln_attr){.kind = PLN_ATTR_INT, .v.i = weight[0]}));
  snprintf(text, sizeof text, "NCHW%lldc", (long long)in);
  PLN_TRY(set_text(c, "data_layout", text));
  snprintf(text, sizeof text, "OIHW%lldi%lldo", (long long)(depthwise ? 1 : in),
           (long long)out);
  PLN_TRY(set_text(c, "kernel_layout", text));
  snprintf(text, sizeof text, "NCHW%lldc", (long long)out);
  PLN_TRY(set_text(c, "out_layout", text));
  c->op = depthwise ? PLN_OP_DEPTHWISE_CONV_2D_NCHWC : PLN_OP_CONV_2D_NCHWC;
  return PLN_OK;
}

/* Products of bytes have a layout of their own for the weights; they stay. */
static pln_status alter_conv(const pln_compile_target *target,
                             pln_layout_change *c) {
  pln_engine *e = pln_rewrite_old(c->rw)->engine;
  const pln_dim *data = argument_dims(c, 0, 4, 2);
  const pln_dim *weight = argument_dims(c, 1, 4, 4);
  int64_t groups = pln_attrs_int(e, c->attrs, "groups", 1);
  if (!data || !weight || !has_text(c, "data_layout", "NCHW") ||
      !has_text(c, "kernel_layout", "OIHW") ||
      !pln_attrs_find(e, c->attrs, "kernel_size"))
    return PLN_OK;
  bool bytes = target->dot_int8 && argument_dtype(c, 0) == PLN_UINT8 &&
               argument_dtype(c, 1) == PLN_INT8;
  bool depthwise = groups > 1 && data[1] == groups && weight[0] == groups &&
                   weight[1] == 1 && !is_dilated(c);
  if (depthwise || (groups == 1 && !bytes))
    return set_blocks(target, c, data, weight, depthwise);
  return PLN_OK;
}

/* --------------------------------------------------------------------- dense
 */

static bool is_packed_bytes(const pln_compile_target *target,
                            const pln_layout_change *c, const pln_dim *weight) {
  return target->lanes == 16 && argument_dtype(c, 0) == PLN_UINT8 &&
         argument_dtype(c, 1) == PLN_INT8 && weight[0] % 16 == 0 &&
         weight[1] % 4 == 0;
}

static pln_status alter_dense(const pln_compile_target *target,
                              pln_layout_change *c) {
  const pln_graph *g = pln_rewrite_old(c->rw);
  const pln_dim *weight = argument_dims(c, 1, 2, 2);
  pln_dtype dtype = pln_type_dtype(g->engine, g->nodes[c->old].type);
  char text[64];
  if (!weight || !argument_dims(c, 0, 2, 0) || dtype == PLN_DTYPE_NONE)
    return PLN_OK;
  if (is_packed_bytes(target, c, weight))
    snprintf(text, sizeof text, "NC16n4c");
  else
    snprintf(text, sizeof text, "NC%lldn",
             (long long)block_size(weight[0], 2 * (int64_t)target->lanes));
  c->op = PLN_OP_DENSE_PACK;
  c->attrs = 0;
  PLN_TRY(set_text(c, "weight_layout", text));
  return set_text(c, "out_dtype", pln_dtype_name(dtype));
}

pln_status pln_x86_alter_layout(const pln_compile_target *target,
                                pln_layout_change *change) {
  switch (change->op) {
  case PLN_OP_CONV_2D: return alter_conv(target, change);
  case PLN_OP_DENSE: return alter_dense(target, change);
  default: return PLN_OK;
  }
}
