/* qnn_align_channels.c: pads the channels of quantised products to whole
 * vectors, for processors that multiply vectors of 4 input and 32 output
 * channels. Called by qnn.Legalize.
 *
 *     qnn.dense(%x, %w: (20, 8), z, y, s, t), units=20   =>
 *     %0 = qnn.dense(%x, nn.pad(%w, 0), z, y, s, t), units=32;
 *     strided_slice(%0, begin=[0, 0], end=[10, 20])
 *
 * The new input channels add nothing to a sum: their weights are 0, and where
 * both zero points differ from 0, their data are the zero point. Vectors of
 * scales and zero points are constants, and become longer.
 *
 * Semantics: TVM's legalizations.py for Hexagon, which pads data with 0. */

#include "transform/quantize/qnn_align_channels.h"

enum { IN_PART = 4, OUT_PART = 32 };

static int64_t missing(int64_t extent, int64_t part) {
  return (part - extent % part) % part;
}

static bool is_byte(const pln_qnn_call *q, uint32_t i) {
  pln_dtype dtype = pln_qnn_dtype(q, q->args[i]);
  return dtype == PLN_INT8 || dtype == PLN_UINT8;
}

/* -------------------------------------------------------------------- tensors
 */

/* The tensor with `more` elements behind the others of an axis. */
static pln_ref pad_axis(pln_qnn_call *q, pln_ref x, uint32_t axis, int64_t more,
                        pln_ref value) {
  int64_t pairs[PLN_MAX_RANK][2] = {{0}};
  pln_attr rows[PLN_MAX_RANK];
  uint32_t rank = (uint32_t)pln_qnn_rank(q, x);
  pln_relay_attr width = {"pad_width", {.kind = PLN_ATTR_LIST, .count = rank}};
  pln_ref args[2] = {x, value};
  pairs[axis][1] = more;
  for (uint32_t i = 0; i < rank; i++)
    rows[i] = (pln_attr){.kind = PLN_ATTR_INTS, .count = 2, .v.ints = pairs[i]};
  if (q->r.status == PLN_OK)
    q->r.status = pln_attrs_list(q->r.engine, rank, rows, &width.value.v.dict);
  return pln_relay_call_with(&q->r, PLN_OP_PAD, 1, &width, 2, args);
}

/* Elements of 4 bytes: those of the vector, then `more` of `value`. */
static pln_ref lengthened(pln_qnn_call *q, pln_ref vector, int64_t more,
                          const void *value) {
  const pln_tensor *t = pln_node_tensor(q->r.b->graph, vector);
  size_t n = t->count, size = (n + (size_t)more) * 4;
  char *data = pln_mem_new(q->r.engine, size);
  if (!data) {
    q->r.status = pln_nomem(q->r.engine);
    return PLN_NONE;
  }
  for (size_t i = 0; i < n + (size_t)more; i++)
    memcpy(data + 4 * i,
           i >= n ? value : (const char *)t->data + (t->splat ? 0 : 4 * i), 4);
  pln_ref out = pln_qnn_vector(q, (pln_dtype)t->dtype,
                               (uint32_t)(n + (size_t)more), data);
  pln_mem_free(q->r.engine, data, size);
  return out;
}

/* Scalars stay; false for vectors that are no constants. */
static bool lengthen(pln_qnn_call *q, uint32_t i, pln_dtype dtype, int64_t more,
                     const void *value) {
  const pln_graph *g = q->r.b->graph;
  if (pln_qnn_rank(q, q->args[i]) == 0)
    return true;
  if (g->nodes[q->args[i]].kind != PLN_CONSTANT ||
      pln_qnn_dtype(q, q->args[i]) != dtype)
    return false;
  q->args[i] = lengthened(q, q->args[i], more, value);
  return true;
}

/* Zero points and scales of the weights' new output channels. */
static bool lengthen_vectors(pln_qnn_call *q, int64_t more) {
  static const int32_t zero = 0;
  static const float one = 1;
  return lengthen(q, 3, PLN_INT32, more, &zero) &&
         lengthen(q, 5, PLN_FLOAT32, more, &one);
}

static pln_ref cut(pln_qnn_call *q, pln_ref x) {
  static const int64_t begin[PLN_MAX_RANK] = {0}, stride[1] = {1};
  int64_t end[PLN_MAX_RANK];
  uint32_t rank = (uint32_t)pln_type_rank(q->r.engine, q->type);
  for (uint32_t i = 0; i < rank; i++)
    end[i] = pln_type_dims(q->r.engine, q->type)[i];
  pln_relay_attr attrs[] = {pln_relay_ints("begin", rank, begin),
                            pln_relay_ints("end", rank, end),
                            pln_relay_ints("strides", 1, stride)};
  return pln_relay_call_with(&q->r, PLN_OP_SLICE, 3, attrs, 1, &x);
}

/* ------------------------------------------------------------------- products
 */

/* The call with its operands, and `name` for the number of outputs; without the
 * outputs that are new. */
static pln_ref multiply(pln_qnn_call *q, const char *name, int64_t outputs,
                        bool cuts) {
  pln_engine *e = q->r.engine;
  pln_attr count = {.kind = PLN_ATTR_INT, .v.i = outputs};
  pln_attrs attrs = q->attrs;
  if (cuts && q->r.status == PLN_OK)
    q->r.status = pln_symbol_intern(e, pln_text(name), &count.name);
  if (cuts && q->r.status == PLN_OK &&
      (q->op == PLN_OP_QNN_CONV_2D || pln_attrs_int(e, attrs, name, -1) >= 0))
    q->r.status = pln_attrs_with(e, attrs, &count, &attrs);
  pln_ref out = pln_relay_call_core(&q->r, q->op, attrs, 6, q->args);
  return cuts ? cut(q, out) : out;
}

static bool is_static(const pln_qnn_call *q) {
  const pln_engine *e = q->r.engine;
  int32_t rank = pln_type_rank(e, q->type);
  for (int32_t i = 0; i < rank; i++)
    if (!PLN_DIM_IS_CONST(pln_type_dims(e, q->type)[i]))
      return false;
  return rank > 0 && rank <= PLN_MAX_RANK;
}

static pln_ref align_dense(pln_qnn_call *q) {
  int64_t n = pln_qnn_extent(q, q->args[1], 0), more = missing(n, OUT_PART);
  if (n < 1 || more == 0 || !lengthen_vectors(q, more))
    return PLN_NONE;
  q->args[1] =
      pad_axis(q, q->args[1], 0, more, pln_qnn_scalar(q, PLN_INT32, 0));
  return multiply(q, "units", n + more, true);
}

static bool is_plain_conv(const pln_qnn_call *q) {
  pln_engine *e = q->r.engine;
  return pln_slice_is(pln_attrs_string(e, q->attrs, "data_layout", "NCHW"),
                      "NCHW") &&
         pln_slice_is(pln_attrs_string(e, q->attrs, "kernel_layout", "OIHW"),
                      "OIHW") &&
         pln_attrs_int(e, q->attrs, "groups", 1) == 1;
}

/* What the data of new channels are, whose weights are 0. */
static pln_ref data_padding(pln_qnn_call *q) {
  if (pln_qnn_is_value(q, q->args[2], PLN_INT32, 0) ||
      pln_qnn_is_value(q, q->args[3], PLN_INT32, 0))
    return pln_qnn_scalar(q, PLN_INT32, 0);
  return q->args[2];
}

static pln_ref align_conv_2d(pln_qnn_call *q) {
  int64_t in = pln_qnn_extent(q, q->args[0], 1);
  int64_t out = pln_qnn_extent(q, q->args[1], 0);
  int64_t more_in = missing(in, IN_PART), more_out = missing(out, OUT_PART);
  if (in < 1 || out < 1 || (more_in == 0 && more_out == 0) || !is_plain_conv(q))
    return PLN_NONE;
  if (more_in) {
    q->args[0] = pad_axis(q, q->args[0], 1, more_in, data_padding(q));
    q->args[1] =
        pad_axis(q, q->args[1], 1, more_in, pln_qnn_scalar(q, PLN_INT32, 0));
  }
  if (more_out) {
    q->args[1] =
        pad_axis(q, q->args[1], 0, more_out, pln_qnn_scalar(q, PLN_INT32, 0));
    if (!lengthen_vectors(q, more_out))
      return PLN_NONE;
  }
  return multiply(q, "channels", out + more_out, more_out > 0);
}

pln_ref pln_qnn_align_channels(pln_qnn_call *q) {
  if (!is_byte(q, 0) || !is_byte(q, 1) || !is_static(q))
    return PLN_NONE;
  return q->op == PLN_OP_QNN_DENSE ? align_dense(q) : align_conv_2d(q);
}
