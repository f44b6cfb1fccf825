/* legalize_int8.c: products of bytes for processors that multiply uint8 by
 * int8, in vectors of 4 input and 16 output channels.
 *
 * Called by legalize.c. Data of int8 is moved by 128 to uint8, and what that
 * adds is subtracted from the result. Channels are padded with zeros; those
 * that this adds to the result are cut off.
 *
 *     nn.dense(%x: int8, %w: int8)   =>
 *       nn.dense(uint8(int32(%x) + 128), %w) - 128 * sum(int32(%w), axis=[-1])
 *
 * Semantics: TVM's conv2d_alter_int8_common, and the legalisations of conv2d,
 * dense and batch_matmul for x86. */

#include "transform/legalize/legalize.h"

enum { SHIFT = 128, IN_PART = 4, OUT_PART = 16 };

static pln_dtype dtype_of(const pln_legalization *l, uint32_t i) {
  pln_type type = pln_legalize_type(l, i);
  return pln_type_get_kind(l->engine, type) == PLN_TYPE_TENSOR
             ? pln_type_dtype(l->engine, type)
             : PLN_DTYPE_NONE;
}

static pln_ref cast(pln_relay_builder *r, pln_ref x, const char *dtype) {
  const pln_relay_attr attr = {
      "dtype", {.kind = PLN_ATTR_STRING, .v.s = pln_text(dtype)}};
  return pln_relay_call_with(r, PLN_OP_CAST, 1, &attr, 1, &x);
}

/* uint8(int32(x) + 128) */
static pln_ref to_uint8(pln_relay_builder *r, pln_ref x) {
  pln_ref moved = pln_relay_call(r, PLN_OP_ADD, 2, cast(r, x, "int32"),
                                 pln_relay_scalar(r, PLN_INT32, SHIFT));
  return cast(r, moved, "uint8");
}

static pln_ref sum_int32(pln_relay_builder *r, pln_ref x, uint32_t n,
                         const int64_t *axes) {
  const pln_relay_attr attr = pln_relay_ints("axis", n, axes);
  pln_ref wide = cast(r, x, "int32");
  return pln_relay_call_with(r, PLN_OP_REDUCE_SUM, 1, &attr, 1, &wide);
}

static pln_ref expand(pln_relay_builder *r, pln_ref x, int64_t axis,
                      int64_t count) {
  const pln_relay_attr attrs[] = {pln_relay_int("axis", axis),
                                  pln_relay_int("num_newaxis", count)};
  return pln_relay_call_with(r, PLN_OP_UNSQUEEZE, 2, attrs, 1, &x);
}

/* ------------------------------------------------------------- convolutions */

typedef struct int8_conv {
  bool nhwc;
  const pln_dim *data, *weight, *result;
  int64_t in, out; /* channels */
  bool moved;      /* int8 data is moved to uint8 */
  int64_t pads[4]; /* top, left, bottom, right */
} int8_conv;

static bool read_padding(const pln_legalization *l, int8_conv *c) {
  pln_attr value;
  if (pln_relay_get(l->engine, PLN_OP_CONV_2D, l->attrs, "padding", &value) !=
          PLN_OK ||
      value.kind != PLN_ATTR_INTS || (value.count != 2 && value.count != 4))
    return false;
  for (uint32_t i = 0; i < 4; i++)
    c->pads[i] = value.v.ints[i % value.count];
  return true;
}

static bool is_plain(const pln_legalization *l) {
  pln_attr dilation;
  if (pln_relay_get(l->engine, PLN_OP_CONV_2D, l->attrs, "dilation",
                    &dilation) != PLN_OK ||
      pln_attrs_int(l->engine, l->attrs, "groups", 1) != 1 ||
      pln_legalize_text(l, "out_layout").size)
    return false;
  for (uint32_t i = 0; dilation.kind == PLN_ATTR_INTS && i < dilation.count;
       i++)
    if (dilation.v.ints[i] != 1)
      return false;
  return true;
}

static bool read_int8_conv(const pln_legalization *l, int8_conv *c) {
  pln_slice data = pln_legalize_text(l, "data_layout");
  pln_slice kernel = pln_legalize_text(l, "kernel_layout");
  pln_dtype dtype = dtype_of(l, 0);
  pln_type result = pln_legalize_result(l);
  c->nhwc = pln_slice_is(data, "NHWC") && pln_slice_is(kernel, "HWIO");
  c->moved = dtype == PLN_INT8;
  c->data = pln_legalize_dims(l, 0, 4);
  c->weight = pln_legalize_dims(l, 1, 4);
  if (!l->target->dot_int8 || dtype_of(l, 1) != PLN_INT8 ||
      (!c->moved && dtype != PLN_UINT8) || !c->data || !c->weight ||
      (!c->nhwc &&
       !(pln_slice_is(data, "NCHW") && pln_slice_is(kernel, "OIHW"))) ||
      pln_type_get_kind(l->engine, result) != PLN_TYPE_TENSOR ||
      pln_type_rank(l->engine, result) != 4 || !is_plain(l))
    return false;
  c->in = c->data[c->nhwc ? 3 : 1];
  c->out = c->weight[c->nhwc ? 3 : 0];
  c->result = pln_type_dims(l->engine, result);
  return read_padding(l, c);
}

/* nn.pad with a pair an axis. The value is an int32, as TVM has it. */
static pln_ref pad(pln_relay_builder *r, const pln_legalization *l, pln_ref x,
                   const int64_t pairs[4][2], double value) {
  pln_attr rows[4];
  pln_relay_attr width = {"pad_width", {.kind = PLN_ATTR_LIST}};
  for (int i = 0; i < 4; i++)
    rows[i] = (pln_attr){.kind = PLN_ATTR_INTS, .count = 2, .v.ints = pairs[i]};
  if (r->status == PLN_OK)
    r->status = pln_attrs_list(l->engine, 4, rows, &width.value.v.dict);
  pln_ref args[] = {x, pln_relay_scalar(r, PLN_INT32, value)};
  return pln_relay_call_with(r, PLN_OP_PAD, 1, &width, 2, args);
}

static pln_ref pad_axis(pln_relay_builder *r, const pln_legalization *l,
                        pln_ref x, int axis, int64_t count) {
  int64_t pairs[4][2] = {{0}};
  pairs[axis][1] = count;
  return pad(r, l, x, (const int64_t(*)[2])pairs, 0);
}

static bool any_padding(const int8_conv *c) {
  return c->pads[0] || c->pads[1] || c->pads[2] || c->pads[3];
}

/* The padding of moved data is 128. */
static pln_ref move_data(pln_relay_builder *r, const pln_legalization *l,
                         const int8_conv *c) {
  const int h = c->nhwc ? 1 : 2;
  int64_t pairs[4][2] = {{0}};
  pln_ref data = to_uint8(r, l->args[0]);
  for (int i = 0; i < 2; i++) {
    pairs[h + i][0] = c->pads[i];
    pairs[h + i][1] = c->pads[2 + i];
  }
  return any_padding(c) ? pad(r, l, data, (const int64_t(*)[2])pairs, SHIFT)
                        : data;
}

/* What moving the data adds to each output channel. */
static pln_ref added_by_move(pln_relay_builder *r, const pln_legalization *l,
                             const int8_conv *c) {
  static const int64_t hwi[] = {0, 1, 2}, ihw[] = {1, 2, 3};
  pln_ref sum = sum_int32(r, l->args[1], 3, c->nhwc ? hwi : ihw);
  if (!c->nhwc)
    sum = expand(r, sum, 1, 2);
  return pln_relay_call(r, PLN_OP_MUL, 2, sum,
                        pln_relay_scalar(r, PLN_INT32, SHIFT));
}

static int64_t missing(int64_t channels, int64_t part) {
  return (part - channels % part) % part;
}

static pln_ref cut(pln_relay_builder *r, const int8_conv *c, pln_ref x) {
  const int64_t begin[4] = {0}, strides[] = {1};
  int64_t end[4];
  for (int i = 0; i < 4; i++)
    end[i] = c->result[i];
  const pln_relay_attr attrs[] = {pln_relay_ints("begin", 4, begin),
                                  pln_relay_ints("end", 4, end),
                                  pln_relay_ints("strides", 1, strides)};
  return pln_relay_call_with(r, PLN_OP_SLICE, 3, attrs, 1, &x);
}

static pln_status conv_attrs(const pln_legalization *l, const int8_conv *c,
                             int64_t more, pln_attrs *attrs) {
  static const int64_t none[4] = {0};
  pln_attr padding = {.kind = PLN_ATTR_INTS, .count = 4, .v.ints = c->pads};
  pln_attr channels = {.kind = PLN_ATTR_INT, .v.i = c->out + more};
  *attrs = l->attrs;
  if (c->moved)
    padding.v.ints = none;
  PLN_TRY(pln_legalize_set(l, "padding", padding, attrs));
  return more ? pln_legalize_set(l, "channels", channels, attrs) : PLN_OK;
}

pln_status pln_legalize_conv2d(const pln_legalization *l, pln_ref *out) {
  int8_conv c;
  pln_relay_builder r;
  pln_attrs attrs;
  if (l->n_args != 2 || !read_int8_conv(l, &c))
    return PLN_OK;
  int64_t more_in = missing(c.in, IN_PART), more_out = missing(c.out, OUT_PART);
  PLN_TRY(conv_attrs(l, &c, more_out, &attrs));
  PLN_TRY(pln_relay_begin(&r, l->rw));
  pln_ref args[] = {c.moved ? move_data(&r, l, &c) : l->args[0], l->args[1]};
  if (more_in) {
    args[0] = pad_axis(&r, l, args[0], c.nhwc ? 3 : 1, more_in);
    args[1] = pad_axis(&r, l, args[1], c.nhwc ? 2 : 1, more_in);
  }
  if (more_out)
    args[1] = pad_axis(&r, l, args[1], c.nhwc ? 3 : 0, more_out);
  *out = pln_relay_call_core(&r, PLN_OP_CONV_2D, attrs, 2, args);
  if (more_out)
    *out = cut(&r, &c, *out);
  if (c.moved)
    *out = pln_relay_call(&r, PLN_OP_SUB, 2, *out, added_by_move(&r, l, &c));
  return pln_relay_status(&r);
}

/* --------------------------------------------------------- dense products */

/* True if the product is of int8 and int8, the second one transposed, with
 * whole vectors. */
static bool is_int8_product(const pln_legalization *l, bool batch) {
  const pln_dim *weight = pln_legalize_dims(l, 1, batch ? 3 : 2);
  bool transposed =
      !batch || (!pln_attrs_int(l->engine, l->attrs, "transpose_a", 0) &&
                 pln_attrs_int(l->engine, l->attrs, "transpose_b", 0));
  return l->target->lanes == 16 && dtype_of(l, 0) == PLN_INT8 &&
         dtype_of(l, 1) == PLN_INT8 && weight && transposed &&
         weight[batch] % OUT_PART == 0 && weight[batch + 1] % IN_PART == 0 &&
         pln_type_get_kind(l->engine, pln_legalize_result(l)) ==
             PLN_TYPE_TENSOR &&
         pln_type_dtype(l->engine, pln_legalize_result(l)) == PLN_INT32;
}

pln_status pln_legalize_dense(const pln_legalization *l, pln_ref *out) {
  static const int64_t last = -1;
  pln_op op = l->graph->nodes[l->old].data;
  bool batch = op == PLN_OP_BATCH_MATMUL;
  pln_relay_builder r;
  if (l->n_args != 2 || !is_int8_product(l, batch))
    return PLN_OK;
  PLN_TRY(pln_relay_begin(&r, l->rw));
  pln_ref args[] = {to_uint8(&r, l->args[0]), l->args[1]};
  pln_ref added =
      pln_relay_call(&r, PLN_OP_MUL, 2, pln_relay_scalar(&r, PLN_INT32, SHIFT),
                     sum_int32(&r, l->args[1], 1, &last));
  if (batch)
    added = expand(&r, added, 1, 1);
  *out = pln_relay_call_core(&r, op, l->attrs, 2, args);
  *out = pln_relay_call(&r, PLN_OP_SUB, 2, *out, added);
  return pln_relay_status(&r);
}
