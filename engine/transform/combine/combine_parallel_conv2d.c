/* combine_parallel_conv2d.c: CombineParallelConv2D: does the convolutions of
 * one tensor as one, and what follows each of them.
 *
 * Run by the executor, once per function, through parallel_branches.c.
 * Convolutions without groups are compatible that differ in the number of
 * filters only.
 *
 *     nn.conv2d(%x, %w), nn.conv2d(%x, %v)   =>
 *     %0 = nn.conv2d(%x, concatenate((%w, %v)));
 *     strided_slice(%0, ..), strided_slice(%0, ..)
 *
 * Semantics: TVM CombineParallelConv2D (its PassInfo: CombineParallelConv2d).
 * Of kernels with blocks of filters, channels is the number of all filters. */

#include "op/relay/data_layout.h"
#include "transform/combine/parallel_branches.h"

/* The axis of a letter in one of the call's layouts; -1: none. */
static int32_t layout_axis(const pln_graph *g, pln_ref call, const char *name,
                           const char *fallback, char letter) {
  pln_data_layout l;
  pln_slice text =
      pln_attrs_string(g->engine, g->nodes[call].attrs, name, fallback);
  if (!pln_data_layout_read(text.size ? text : pln_text(fallback), &l))
    return -1;
  for (int32_t i = 0; i < l.rank; i++)
    if (l.letter[i] == letter && !l.factor[i])
      return i;
  return -1;
}

static int32_t filter_axis(const pln_graph *g, pln_ref call) {
  return layout_axis(g, call, "kernel_layout", "OIHW", 'O');
}

static int32_t channel_axis(const pln_graph *g, pln_ref call) {
  pln_slice out =
      pln_attrs_string(g->engine, g->nodes[call].attrs, "out_layout", "");
  return layout_axis(g, call, out.size ? "out_layout" : "data_layout", "NCHW",
                     'C');
}

/* The type of the kernel with one filter, or one block of them. */
static pln_status one_filter(const pln_graph *g, pln_ref kernel, int32_t axis,
                             pln_type *out) {
  const pln_engine *e = g->engine;
  pln_type type = g->nodes[kernel].type;
  int32_t rank = pln_type_rank(e, type);
  pln_dim dims[PLN_LAYOUT_AXES];
  *out = 0;
  if (axis < 0 || rank > PLN_LAYOUT_AXES || axis >= rank)
    return PLN_OK;
  for (int32_t i = 0; i < rank; i++) {
    dims[i] = pln_type_dims(e, type)[i];
    if (!PLN_DIM_IS_CONST(dims[i]))
      return PLN_OK;
  }
  dims[axis] = 1;
  return pln_type_tensor(g->engine, pln_type_dtype(e, type), rank, dims, out);
}

static pln_status conv_key(const pln_graph *g, pln_ref call, pln_attrs *attrs,
                           pln_type *type) {
  pln_engine *e = g->engine;
  const pln_node *n = &g->nodes[call];
  int32_t axis = filter_axis(g, call);
  pln_ref kernel = pln_operand(g, call, 1);
  *type = 0;
  if (pln_attrs_int(e, n->attrs, "groups", 1) != 1 ||
      pln_branch_extent(g, call, channel_axis(g, call)) !=
          pln_branch_extent(g, kernel, axis))
    return PLN_OK;
  PLN_TRY(pln_attrs_without(e, n->attrs, "channels", attrs));
  PLN_TRY(pln_attrs_without(e, *attrs, "kernel_size", attrs));
  return one_filter(g, kernel, axis, type);
}

/* A number per channel, which is not broadcast. */
static bool conv_fits(const pln_graph *g, const pln_branch_level *level,
                      uint32_t arg, uint32_t branch) {
  pln_ref a = pln_operand(g, level->nodes[0], arg);
  pln_ref call = level->nodes[branch], b = pln_operand(g, call, arg);
  int32_t rank = pln_type_rank(g->engine, g->nodes[b].type);
  int32_t axis =
      level->axis - pln_type_rank(g->engine, g->nodes[call].type) + rank;
  return axis >= 0 && pln_branch_alike(g, a, b, axis) &&
         pln_branch_extent(g, b, axis) ==
             pln_branch_extent(g, call, level->axis);
}

/* The number of filters of all branches. */
static int64_t n_filters(const pln_branch_build *build) {
  pln_data_layout l;
  const pln_graph *g = build->old;
  pln_slice text =
      pln_attrs_string(g->engine, g->nodes[build->group->first->nodes[0]].attrs,
                       "kernel_layout", "OIHW");
  int64_t blocks = pln_branch_total(build);
  if (pln_data_layout_read(text, &l))
    for (int32_t i = 0; i < l.rank; i++)
      if (l.letter[i] == 'O' && l.factor[i])
        blocks *= l.factor[i];
  return blocks;
}

static pln_ref combine_convs(pln_branch_build *build) {
  const pln_graph *g = build->old;
  const pln_branch_level *level = build->group->first;
  pln_ref call = level->nodes[0];
  pln_attr channels = {.kind = PLN_ATTR_INT, .v.i = n_filters(build)};
  pln_attrs attrs = 0;
  pln_relay_builder *r = &build->r;
  pln_ref args[2] = {
      pln_rewrite_image(r->rw, pln_operand(g, call, 0)),
      pln_branch_concatenate(build, level, 1, filter_axis(g, call))};
  if (r->status == PLN_OK)
    r->status =
        pln_symbol_intern(r->engine, pln_text("channels"), &channels.name);
  if (r->status == PLN_OK)
    r->status =
        pln_attrs_with(r->engine, g->nodes[call].attrs, &channels, &attrs);
  return pln_relay_call_core(r, PLN_OP_CONV_2D, attrs, 2, args);
}

static pln_ref conv_operand(pln_branch_build *build,
                            const pln_branch_level *level, uint32_t arg) {
  const pln_graph *g = build->old;
  pln_ref call = level->nodes[0], x = pln_operand(g, call, arg);
  int32_t axis = level->axis - pln_type_rank(g->engine, g->nodes[call].type) +
                 pln_type_rank(g->engine, g->nodes[x].type);
  return pln_branch_concatenate(build, level, arg, axis);
}

static void conv_parts(pln_branch_build *build, pln_ref combined,
                       pln_ref *parts) {
  pln_branch_slice(build, combined, (uint32_t)build->group->last->axis + 1,
                   parts);
}

pln_status pln_pass_combine_parallel_conv2d(pln_pass_run *run) {
  static const pln_branch_kind kind = {.op = PLN_OP_CONV_2D,
                                       .key = conv_key,
                                       .axis = channel_axis,
                                       .fits = conv_fits,
                                       .combine = combine_convs,
                                       .operand = conv_operand,
                                       .take_parts = conv_parts};
  return pln_combine_branches(run, &kind);
}
