/* scale_axis.c: scales along axes of tensors, for ForwardFoldScaleAxis and
 * BackwardFoldScaleAxis.
 *
 * A scale is kept squeezed, with the axes of its message alone, and is expanded
 * where it is applied:
 *
 *     multiply(%y: (1, 8, 6, 6), %s: (8, 1, 1)), weight (8, 2, 3, 3), axes [1]
 *       =>   multiply(%w, expand_dims(squeeze(%s, axis=[1, 2]), axis=1,
 *                                     num_newaxis=3))
 *
 * ONNX's nn.conv takes up constant scales too.
 *
 * Semantics: TVM fold_scale_axis. A case that TVM aborts on, or in which it
 * changes values, is refused before anything is changed: weights and data of
 * different dtypes, integers through nn.relu or a division, and scales that may
 * be zero where something is divided by them. */

#include "transform/fold/scale/scale_axis.h"

#include "op/relay/data_layout.h"
#include "rule/rule.h"
#include "transform/fold/weight.h"

bool pln_scale_same_axes(const pln_scale_message *a,
                         const pln_scale_message *b) {
  return a->n_axes && a->n_axes == b->n_axes &&
         memcmp(a->axes, b->axes, a->n_axes) == 0;
}

static pln_type operand_type(const pln_graph *g, pln_ref node, uint32_t i) {
  return g->nodes[pln_operand(g, node, i)].type;
}

/* ----------------------------------------------------------------- products */

typedef struct conv_layouts {
  pln_data_layout data, result, kernel;
} conv_layouts;

static bool read_layout(const pln_graph *g, pln_ref call, const char *name,
                        const char *fallback, pln_data_layout *out) {
  pln_slice text =
      pln_attrs_string(g->engine, g->nodes[call].attrs, name, fallback);
  return pln_data_layout_read(text.size ? text : pln_text(fallback), out);
}

static bool read_conv_layouts(const pln_graph *g, pln_ref call,
                              conv_layouts *out) {
  bool two = g->nodes[call].data == PLN_OP_CONV_2D;
  const char *data = two ? "NCHW" : "NCDHW";
  if (!read_layout(g, call, "data_layout", data, &out->data) ||
      !read_layout(g, call, "kernel_layout", two ? "OIHW" : "OIDHW",
                   &out->kernel))
    return false;
  pln_slice result =
      pln_attrs_string(g->engine, g->nodes[call].attrs, "out_layout", "");
  if (result.size)
    return pln_data_layout_read(result, &out->result);
  out->result = out->data;
  return true;
}

/* The index of an axis, or of its inner part; -1: the layout lacks it. */
static int32_t axis_of(const pln_data_layout *l, char letter, bool inner) {
  for (int32_t i = 0; i < l->rank; i++)
    if (l->letter[i] == letter && (l->factor[i] != 0) == inner)
      return i;
  return -1;
}

/* Appends an axis and its inner part; false if they are not in that order. */
static bool take_axes(const pln_data_layout *l, char letter, bool blocked,
                      uint8_t *out) {
  int32_t outer = axis_of(l, letter, false), inner = axis_of(l, letter, true);
  if (outer < 0 || (inner >= 0) != blocked || (blocked && inner < outer))
    return false;
  out[0] = (uint8_t)outer;
  out[1] = (uint8_t)inner;
  return true;
}

/* One filter a channel, and as many groups. */
static pln_status is_depthwise(const pln_graph *g, pln_ref call,
                               const pln_data_layout *kernel, bool *out) {
  pln_infer infer = pln_infer_of(g, call);
  pln_type weight = operand_type(g, call, 1);
  pln_dim o, i;
  bool has_o, has_i;
  *out = false;
  if (pln_type_rank(g->engine, weight) != kernel->rank)
    return PLN_OK;
  const pln_dim *dims = pln_type_dims(g->engine, weight);
  PLN_TRY(pln_data_layout_extent(&infer, kernel, dims, 'O', &o, &has_o));
  PLN_TRY(pln_data_layout_extent(&infer, kernel, dims, 'I', &i, &has_i));
  int64_t groups = pln_attrs_int(g->engine, g->nodes[call].attrs, "groups", 1);
  *out = has_o && has_i && o == groups && i == 1;
  return PLN_OK;
}

static bool has_known_extents(const pln_engine *e, pln_type type, uint32_t n,
                              const uint8_t *axes) {
  for (uint32_t i = 0; i < n; i++)
    if (axes[i] >= pln_type_rank(e, type) ||
        !PLN_DIM_IS_CONST(pln_type_dims(e, type)[axes[i]]))
      return false;
  return true;
}

/* Grouped convolutions other than depthwise ones take up nothing. */
static pln_status conv_axes(const pln_graph *g, pln_ref call, bool of_result,
                            pln_scaled_product *out) {
  const pln_engine *e = g->engine;
  conv_layouts l;
  bool depthwise = false;
  if (!read_conv_layouts(g, call, &l))
    return PLN_OK;
  PLN_TRY(is_depthwise(g, call, &l.kernel, &depthwise));
  bool blocked = axis_of(&l.kernel, 'O', true) >= 0;
  if ((pln_attrs_int(e, g->nodes[call].attrs, "groups", 1) != 1 &&
       !depthwise) ||
      (axis_of(&l.kernel, 'I', true) >= 0) != blocked ||
      axis_of(&l.kernel, 'I', false) < 0 ||
      pln_type_rank(e, operand_type(g, call, 1)) != l.kernel.rank ||
      !take_axes(of_result ? &l.result : &l.data, 'C', blocked,
                 out->message.axes) ||
      !take_axes(&l.kernel, of_result || depthwise ? 'O' : 'I', blocked,
                 out->weight_axes) ||
      (blocked &&
       !has_known_extents(e, operand_type(g, call, 1), 2, out->weight_axes)))
    return PLN_OK;
  out->message.n_axes = blocked ? 2 : 1;
  return PLN_OK;
}

/* ONNX's convolutions have their channels second, and a bias at most. */
static void onnx_conv_axes(const pln_graph *g, pln_ref call, bool of_result,
                           pln_scaled_product *out) {
  const pln_engine *e = g->engine;
  pln_type weight = operand_type(g, call, 1);
  int64_t groups = pln_attrs_int(e, g->nodes[call].attrs, "group", 1);
  if (pln_type_rank(e, weight) < 3 || !pln_op_is_onnx_form(g, call) ||
      !pln_call_is_valid(g, call))
    return;
  const pln_dim *dims = pln_type_dims(e, weight);
  bool depthwise = dims[0] == groups && dims[1] == 1;
  if (groups != 1 && !depthwise)
    return;
  out->message.n_axes = 1;
  out->message.axes[0] = 1;
  out->weight_axes[0] = of_result || depthwise ? 0 : 1;
}

static void dense_axes(const pln_graph *g, pln_ref call, bool of_result,
                       pln_scaled_product *out) {
  if (pln_type_rank(g->engine, operand_type(g, call, 0)) != 2)
    return;
  out->message.n_axes = 1;
  out->message.axes[0] = 1;
  out->weight_axes[0] = of_result ? 0 : 1;
}

/* A scale moves between tensors of one dtype. Sums of integers wrap alike only
 * if the result has that dtype too. */
static bool has_one_dtype(const pln_graph *g, pln_ref call, bool of_result) {
  const pln_engine *e = g->engine;
  pln_dtype data = pln_type_dtype(e, operand_type(g, call, 0));
  pln_dtype weight = pln_type_dtype(e, operand_type(g, call, 1));
  pln_dtype result = pln_type_dtype(e, g->nodes[call].type);
  if (pln_dtype_is_float(weight))
    return weight == (of_result ? result : data);
  return weight && weight == data && weight == result;
}

static pln_status product_axes(const pln_graph *g, pln_ref call, bool of_result,
                               pln_scaled_product *out) {
  const pln_node *n = &g->nodes[call];
  *out = (pln_scaled_product){0};
  if (n->kind == PLN_CALL && n->data == PLN_OP_CONV) {
    if (n->count >= 2 && has_one_dtype(g, call, of_result))
      onnx_conv_axes(g, call, of_result, out);
    return PLN_OK;
  }
  if (n->kind != PLN_CALL || n->count != 2 ||
      (n->data != PLN_OP_DENSE && n->data != PLN_OP_CONV_2D &&
       n->data != PLN_OP_CONV_3D) ||
      !has_one_dtype(g, call, of_result))
    return PLN_OK;
  if (n->data != PLN_OP_DENSE)
    return conv_axes(g, call, of_result, out);
  dense_axes(g, call, of_result, out);
  return PLN_OK;
}

pln_status pln_scale_of_data(const pln_graph *graph, pln_ref call,
                             pln_scaled_product *out) {
  return product_axes(graph, call, false, out);
}

pln_status pln_scale_of_result(const pln_graph *graph, pln_ref call,
                               pln_scaled_product *out) {
  return product_axes(graph, call, true, out);
}

/* ------------------------------------------------------------------- scales */

static bool has_axis(const pln_scale_message *m, int32_t axis) {
  for (uint32_t i = 0; i < m->n_axes; i++)
    if (m->axes[i] == axis)
      return true;
  return false;
}

bool pln_scale_matches(const pln_graph *graph, pln_ref value, pln_ref scale,
                       const pln_scale_message *message) {
  const pln_engine *e = graph->engine;
  pln_type to = graph->nodes[value].type, from = graph->nodes[scale].type;
  int32_t rank = pln_type_rank(e, to), own = pln_type_rank(e, from);
  if (own < 0 || rank < own || !message->n_axes)
    return false;
  const pln_dim *dims = pln_type_dims(e, to), *mine = pln_type_dims(e, from);
  for (int32_t i = 0; i < rank; i++) {
    int32_t at = i - (rank - own);
    if (has_axis(message, i)
            ? at < 0 || dims[i] != mine[at] || dims[i] == PLN_DIM_UNKNOWN
            : at >= 0 && mine[at] != 1)
      return false;
  }
  return true;
}

/* Looks through operators that move or repeat elements. */
static pln_ref moved_constant(const pln_graph *g, pln_ref node) {
  for (;;) {
    const pln_node *n = &g->nodes[node];
    if (n->kind != PLN_CALL || n->count == 0 ||
        (n->data != PLN_OP_UNSQUEEZE && n->data != PLN_OP_RESHAPE &&
         n->data != PLN_OP_TRANSPOSE && n->data != PLN_OP_SQUEEZE &&
         n->data != PLN_OP_REPEAT))
      return node;
    node = pln_operand(g, node, 0);
  }
}

/* Every element is at least zero; greater, if something is divided by it. */
static bool is_allowed_constant(const pln_graph *g, pln_ref node,
                                const pln_scale_message *m) {
  pln_weight w;
  node = moved_constant(g, node);
  if (g->nodes[node].kind != PLN_CONSTANT || !pln_weight_read(g, node, &w) ||
      pln_dtype_is_half(w.dtype))
    return false;
  for (size_t i = 0, n = w.splat && w.count ? 1 : w.count; i < n; i++) {
    double x = pln_weight_at(&w, i);
    if (!(m->needs_positive ? x >= 0 : x == x) || (m->divides && x == 0))
      return false;
  }
  return true;
}

bool pln_scale_is_factor(const pln_graph *graph, pln_ref multiply,
                         uint32_t value, const pln_scale_message *message) {
  const pln_engine *e = graph->engine;
  pln_ref x = pln_operand(graph, multiply, value);
  pln_ref scale = pln_operand(graph, multiply, 1 - value);
  pln_type type = graph->nodes[x].type;
  bool scalar = pln_type_rank(e, graph->nodes[scale].type) == 0;
  if (pln_function_is_onnx(graph) && graph->nodes[scale].kind != PLN_CONSTANT)
    return false;
  if (scalar ? !has_known_extents(e, type, message->n_axes, message->axes)
             : !pln_scale_matches(graph, x, scale, message))
    return false;
  return !(message->needs_positive || message->divides) ||
         is_allowed_constant(graph, scale, message);
}

bool pln_scale_passes(const pln_graph *graph, pln_ref node, uint32_t arg,
                      const pln_scale_message *message) {
  pln_type type = operand_type(graph, node, arg);
  return message->n_axes &&
         pln_dtype_is_float(pln_type_dtype(graph->engine, type)) &&
         (message->n_axes == 1 ||
          has_known_extents(graph->engine, type, message->n_axes,
                            message->axes));
}

/* ----------------------------------------------------------------- building */

static pln_ref expand(pln_relay_builder *r, pln_ref x, int64_t axis,
                      int64_t n) {
  const pln_relay_attr attrs[] = {pln_relay_int("axis", axis),
                                  pln_relay_int("num_newaxis", n)};
  return pln_relay_call_with(r, PLN_OP_UNSQUEEZE, 2, attrs, 1, &x);
}

/* One element for each position of the axes. */
static pln_ref repeat_scalar(pln_relay_builder *r, pln_type value,
                             pln_ref scale, const pln_scale_message *m) {
  pln_ref out = expand(r, scale, 0, m->n_axes);
  for (uint32_t i = 0; i < m->n_axes; i++) {
    pln_dim extent = pln_type_dims(r->engine, value)[m->axes[i]];
    const pln_relay_attr attrs[] = {pln_relay_int("repeats", extent),
                                    pln_relay_int("axis", i)};
    out = pln_relay_call_with(r, PLN_OP_REPEAT, 2, attrs, 1, &out);
  }
  return out;
}

pln_ref pln_scale_squeeze(pln_relay_builder *r, pln_ref value, pln_ref scale,
                          const pln_scale_message *message) {
  const pln_graph *g = r->b->graph;
  pln_type type = g->nodes[value].type;
  int32_t rank = pln_type_rank(r->engine, type);
  int32_t own = pln_type_rank(r->engine, g->nodes[scale].type);
  int64_t axes[PLN_LAYOUT_AXES];
  uint32_t n = 0;
  if (own == 0)
    return repeat_scalar(r, type, scale, message);
  for (int32_t i = 0; i < own && n < PLN_LAYOUT_AXES; i++)
    if (!has_axis(message, i + rank - own))
      axes[n++] = i;
  const pln_relay_attr attr = pln_relay_ints("axis", n, axes);
  return n ? pln_relay_call_with(r, PLN_OP_SQUEEZE, 1, &attr, 1, &scale)
           : scale;
}

/* A tensor with the scale along the axes and extent 1 elsewhere. */
static pln_ref lay_out(pln_relay_builder *r, pln_ref scale, pln_type shape,
                       uint32_t n_axes, const uint8_t *axes) {
  int32_t rank = pln_type_rank(r->engine, shape);
  int64_t dims[PLN_LAYOUT_AXES];
  if (n_axes == 1)
    return pln_relay_along_axis(r, scale, rank, axes[0]);
  for (int32_t i = 0; i < rank && i < PLN_LAYOUT_AXES; i++)
    dims[i] =
        i == axes[0] || i == axes[1] ? pln_type_dims(r->engine, shape)[i] : 1;
  const pln_relay_attr attr = pln_relay_ints("newshape", (uint32_t)rank, dims);
  return pln_relay_call_with(r, PLN_OP_RESHAPE, 1, &attr, 1, &scale);
}

pln_ref pln_scale_apply(pln_relay_builder *r, pln_op op, pln_ref x,
                        pln_ref scale, pln_ref shape, uint32_t n_axes,
                        const uint8_t *axes) {
  pln_type type = r->b->graph->nodes[shape].type;
  return pln_relay_call(r, op, 2, x, lay_out(r, scale, type, n_axes, axes));
}
