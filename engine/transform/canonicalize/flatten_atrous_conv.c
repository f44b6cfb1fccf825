/* flatten_atrous_conv.c: FlattenAtrousConv: replaces a convolution between
 * nn.space_to_batch_nd and nn.batch_to_space_nd by a dilated convolution.
 *
 * Run by the executor, once per function. Requires a verified graph. Applies to
 * nn.conv2d and qnn.conv2d on NHWC without padding, strides and dilation of
 * their own, between blocks of equal shapes. The padding that remains, what
 * goes before the blocks less what is cropped behind them, must be such that
 * the result has the extents of the operand, and of zeros (for qnn.conv2d, of
 * the operand's zero point).
 *
 *     nn.batch_to_space_nd(nn.conv2d(nn.space_to_batch_nd(%x, [2, 2], [[2, 3],
 *       [2, 3]]), %w, kernel_size=[3, 3]), [2, 2], [[0, 1], [0, 1]])
 *       =>   nn.conv2d(%x, %w, padding=[2, 2, 2, 2], dilation=[2, 2])
 *
 * Semantics: TVM FlattenAtrousConv, which assumes that the padding is this. */

#include "op/infer/infer.h"
#include "rule/rule.h"
#include "transform/relay_builder.h"

/* The three calls, and the dilated convolution in their place. */
typedef struct atrous {
  pln_engine *engine;
  pln_infer to_space, conv, to_batch;
  int64_t dilation[2];
  int64_t padding[4]; /* top, left, bottom, right */
} atrous;

/* --------------------------------------------------------------- recognition
 */

static bool is_conv(pln_op op) {
  return op == PLN_OP_CONV_2D || op == PLN_OP_QNN_CONV_2D;
}

/* The call of an operator that the node is; false if it is none. */
static bool call_of(const pln_graph *g, pln_ref node, pln_infer *out) {
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || !n->data || n->results ||
      !pln_call_is_valid(g, node))
    return false;
  *out = pln_infer_of(g, node);
  return true;
}

static bool find_atrous(const pln_graph *g, pln_ref node, atrous *a) {
  a->engine = g->engine;
  return call_of(g, node, &a->to_space) &&
         a->to_space.op == PLN_OP_BATCH_TO_SPACE &&
         call_of(g, a->to_space.args[0], &a->conv) && is_conv(a->conv.op) &&
         call_of(g, a->conv.args[0], &a->to_batch) &&
         a->to_batch.op == PLN_OP_SPACE_TO_BATCH;
}

/* True if all elements of the attribute are `value`, or it is missing. */
static bool all_are(const pln_infer *call, const char *name, int64_t value) {
  uint32_t n;
  const int64_t *ints = pln_call_ints(call, name, &n);
  for (uint32_t i = 0; ints && i < n; i++)
    if (ints[i] != value)
      return false;
  return true;
}

static bool read_blocks(atrous *a) {
  uint32_t n, m;
  const int64_t *to_batch = pln_call_ints(&a->to_batch, "block_shape", &n);
  const int64_t *to_space = pln_call_ints(&a->to_space, "block_shape", &m);
  a->dilation[0] = a->dilation[1] = 1;
  for (uint32_t i = 0; i < 2; i++) {
    if ((to_batch && n != 2) || (to_space && m != 2) ||
        (to_batch ? to_batch[i] : 1) != (to_space ? to_space[i] : 1))
      return false;
    a->dilation[i] = to_batch ? to_batch[i] : 1;
  }
  return true;
}

/* Reads a list of two pairs: [[top, bottom], [left, right]]. */
static bool read_pairs(const pln_infer *call, const char *name, int64_t *out) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  if (!a || a->kind != PLN_ATTR_LIST ||
      pln_attrs_count(call->engine, a->v.dict) != 2)
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    const pln_attr *pair = pln_attrs_at(call->engine, a->v.dict, i);
    if (pair->kind != PLN_ATTR_INTS || pair->count != 2)
      return false;
    out[2 * i] = pair->v.ints[0];
    out[2 * i + 1] = pair->v.ints[1];
  }
  return true;
}

/* The padding with which a convolution over `extent` keeps it. */
static bool keeps_extent(pln_dim extent, int64_t kernel, int64_t dilation,
                         int64_t before, int64_t after) {
  int64_t pad = (kernel - 1) * dilation;
  return PLN_DIM_IS_CONST(extent) && before == pad / 2 &&
         after == pad - pad / 2;
}

static bool read_padding(atrous *a) {
  int64_t pads[4], crops[4];
  uint32_t n;
  const int64_t *kernel = pln_call_ints(&a->conv, "kernel_size", &n);
  const pln_dim *dims = pln_arg_dims(&a->to_batch, 0);
  if (pln_arg_rank(&a->to_batch, 0) != 4 || !kernel || n != 2 ||
      !read_pairs(&a->to_batch, "paddings", pads) ||
      !read_pairs(&a->to_space, "crops", crops))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    int64_t before = pads[2 * i] - crops[2 * i];
    int64_t after = pads[2 * i + 1] - crops[2 * i + 1];
    if (!keeps_extent(dims[i + 1], kernel[i], a->dilation[i], before, after))
      return false;
    a->padding[i] = before;
    a->padding[i + 2] = after;
  }
  return true;
}

/* True if what pads the blocks is what pads the convolution. */
static bool pads_with_zero_point(const atrous *a) {
  double value = pln_attrs_float(a->engine, a->to_batch.attrs, "pad_value", 0);
  double zero_point = 0;
  if (a->conv.op == PLN_OP_QNN_CONV_2D) {
    const pln_tensor *t = pln_arg_tensor(&a->conv, 2);
    if (!t || t->count != 1 || !pln_tensor_number(t, 0, &zero_point))
      return false;
  }
  return value == zero_point;
}

static bool is_plain_nhwc(const atrous *a) {
  return pln_call_string_is(&a->conv, "data_layout", "NCHW", "NHWC") &&
         pln_call_string_is(&a->conv, "out_layout", "", "") &&
         all_are(&a->conv, "strides", 1) && all_are(&a->conv, "padding", 0) &&
         all_are(&a->conv, "dilation", 1);
}

/* --------------------------------------------------------------- replacement
 */

static pln_status dilated_attrs(const atrous *a, pln_attrs *out) {
  pln_attr padding = {.kind = PLN_ATTR_INTS, .count = 4, .v.ints = a->padding};
  pln_attr dilation = {
      .kind = PLN_ATTR_INTS, .count = 2, .v.ints = a->dilation};
  PLN_TRY(pln_symbol_intern(a->engine, pln_text("padding"), &padding.name));
  PLN_TRY(pln_symbol_intern(a->engine, pln_text("dilation"), &dilation.name));
  PLN_TRY(pln_attrs_with(a->engine, a->conv.attrs, &padding, out));
  return pln_attrs_with(a->engine, *out, &dilation, out);
}

static pln_status flatten_node(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  int64_t *flattened = ud;
  pln_ref args[6], before = *node;
  pln_relay_builder r;
  pln_attrs attrs;
  atrous a;
  (void)old;
  if (!find_atrous(pln_rewrite_graph(rw), *node, &a) || !read_blocks(&a) ||
      !read_padding(&a) || !pads_with_zero_point(&a) || !is_plain_nhwc(&a) ||
      a.conv.n_args > PLN_COUNT(args))
    return PLN_OK;
  memcpy(args, a.conv.args, a.conv.n_args * sizeof *args);
  args[0] = a.to_batch.args[0];
  PLN_TRY(dilated_attrs(&a, &attrs));
  PLN_TRY(pln_relay_begin(&r, rw));
  pln_ref conv = pln_relay_call_core(&r, a.conv.op, attrs, a.conv.n_args, args);
  PLN_TRY(pln_relay_finish(&r, "flatten", conv, node));
  *flattened += *node != before;
  return PLN_OK;
}

pln_status pln_pass_flatten_atrous_conv(pln_pass_run *run) {
  int64_t flattened = 0;
  pln_mutator m = {
      .ud = &flattened, .visit = flatten_node, .keeps_types = true};
  PLN_TRY(pln_rewrite_function(run, &m));
  return flattened ? pln_run_count(run, "flattened", flattened) : PLN_OK;
}
