/* nn_gradients.c: gradients of products, convolutions, pooling, and losses.
 * Called through gradients.def.
 *
 * Semantics: TVM FPrimalGradient. */

#include "op/infer/infer.h"
#include "transform/gradient/operator_gradient.h"

static pln_ref mul(pln_gradient *g, pln_ref x, pln_ref y) {
  return pln_binary(g, PLN_OP_MUL, x, y);
}
static pln_ref sum_like(pln_gradient *g, pln_ref x, pln_ref like) {
  return pln_binary(g, PLN_OP_COLLAPSE_SUM_LIKE, x, like);
}
static pln_ref neg(pln_gradient *g, pln_ref x) {
  return pln_unary(g, PLN_OP_NEG, x);
}
static pln_relay_attr text_attr(const char *name, const char *text) {
  pln_attr value = {.kind = PLN_ATTR_STRING, .v.s = pln_text(text)};
  return (pln_relay_attr){name, value};
}
static pln_relay_attr bool_attr(const char *name, bool value) {
  return pln_relay_int(name, value);
}

/* ------------------------------------------------------------------ softmax
 */

/* (g - sum(g z)) z */
void pln_gradient_softmax(pln_gradient *g) {
  int64_t axis = pln_gradient_int(g, "axis", -1);
  pln_ref z = g->orig;
  pln_ref sum = pln_sum_over(g, mul(g, g->grad, z), 1, &axis, true, false);
  g->out[0] = mul(g, pln_binary(g, PLN_OP_SUB, g->grad, sum), z);
}

/* g - sum(g) exp(z) */
void pln_gradient_log_softmax(pln_gradient *g) {
  int64_t axis = pln_gradient_int(g, "axis", -1);
  pln_ref sum = pln_sum_over(g, g->grad, 1, &axis, true, false);
  pln_ref part = mul(g, sum, pln_unary(g, PLN_OP_EXP, g->orig));
  g->out[0] = pln_binary(g, PLN_OP_SUB, g->grad, part);
}

void pln_gradient_bias_add(pln_gradient *g) {
  int64_t axis = pln_gradient_int(g, "axis", 1);
  g->out[0] = sum_like(g, g->grad, g->args[0]);
  g->out[1] = pln_sum_over(g, g->grad, 1, &axis, false, true);
}

/* The gradient by the number of rows. */
static pln_ref mean_over_batch(pln_gradient *g) {
  pln_ref x = g->args[0];
  pln_relay_attr int32 = text_attr("dtype", "int32");
  pln_relay_attr axis = pln_relay_int("axis", 0);
  pln_ref shape = pln_relay_call_with(&g->r, PLN_OP_SHAPE, 1, &int32, 1, &x);
  pln_ref first[] = {shape, pln_relay_scalar(&g->r, PLN_INT32, 0)};
  pln_ref rows = pln_relay_call_with(&g->r, PLN_OP_GATHER, 1, &axis, 2, first);
  pln_dtype dtype = pln_type_dtype(g->r.engine, pln_gradient_type(g, x));
  pln_relay_attr to = text_attr("dtype", pln_dtype_name(dtype));
  rows = pln_relay_call_with(&g->r, PLN_OP_CAST, 1, &to, 1, &rows);
  return pln_binary(g, PLN_OP_DIV, g->grad, rows);
}

void pln_gradient_cross_entropy(pln_gradient *g) {
  pln_ref x = g->args[0], y = g->args[1], grad = mean_over_batch(g);
  pln_ref by_y = mul(g, neg(g, grad), y);
  g->out[0] = pln_binary(g, PLN_OP_DIV, by_y, x);
  g->out[1] = mul(g, neg(g, grad), pln_unary(g, PLN_OP_LOG, x));
}

void pln_gradient_cross_entropy_with_logits(pln_gradient *g) {
  pln_ref grad = mean_over_batch(g);
  g->out[0] = mul(g, neg(g, grad), g->args[1]);
  g->out[1] = mul(g, neg(g, grad), g->args[0]);
}

/* ----------------------------------------------------------------- products
 */

/* With the number of units if it is known, which -1 leaves open. */
static pln_ref dense(pln_gradient *g, pln_ref x, pln_ref weight,
                     int64_t units) {
  pln_relay_attr attr = pln_relay_int("units", units);
  pln_ref args[] = {x, weight};
  return pln_relay_call_with(&g->r, PLN_OP_DENSE, units >= 0, &attr, 2, args);
}

static int64_t extent(pln_gradient *g, pln_ref x, int32_t axis) {
  pln_type type = pln_gradient_type(g, x);
  if (pln_type_rank(g->r.engine, type) <= axis)
    return -1;
  pln_dim dim = pln_type_dims(g->r.engine, type)[axis];
  return PLN_DIM_IS_CONST(dim) ? dim : -1;
}

static pln_ref transposed(pln_gradient *g, pln_ref x) {
  return pln_unary(g, PLN_OP_TRANSPOSE, x);
}

void pln_gradient_dense(pln_gradient *g) {
  pln_ref data = g->args[0], weight = g->args[1];
  pln_ref by_data =
      dense(g, g->grad, transposed(g, weight), extent(g, weight, 1));
  pln_ref t = transposed(g, g->grad);
  pln_ref by_weight = dense(g, t, transposed(g, data), extent(g, data, 1));
  g->out[0] = sum_like(g, by_data, data);
  g->out[1] = sum_like(g, by_weight, weight);
}

/* TVM writes a product with a transposed second matrix as nn.dense. */
static pln_ref matmul(pln_gradient *g, pln_ref x, pln_ref y, bool transpose_x,
                      bool transpose_y) {
  pln_relay_attr attrs[] = {bool_attr("transpose_a", transpose_x),
                            bool_attr("transpose_b", transpose_y)};
  pln_ref args[] = {x, y};
  if (!transpose_x && transpose_y)
    return dense(g, x, y, -1);
  return pln_relay_call_with(&g->r, PLN_OP_MAT_MUL, 2, attrs, 2, args);
}

static void set_products(pln_gradient *g, pln_ref x, pln_ref y) {
  g->out[0] = sum_like(g, x, g->args[0]);
  g->out[1] = sum_like(g, y, g->args[1]);
}

void pln_gradient_matmul(pln_gradient *g) {
  bool a = pln_gradient_int(g, "transpose_a", 0);
  bool b = pln_gradient_int(g, "transpose_b", 0);
  pln_ref x = g->args[0], y = g->args[1], z = g->grad;
  if (!a && b) {
    pln_gradient_dense(g);
    return;
  }
  pln_ref by_x = a ? matmul(g, y, z, b, true) : matmul(g, z, y, false, true);
  pln_ref by_y = b ? matmul(g, z, x, true, a) : matmul(g, x, z, !a, false);
  set_products(g, by_x, by_y);
}

static pln_ref batch_matmul(pln_gradient *g, pln_ref x, pln_ref y,
                            bool transpose_x, bool transpose_y) {
  pln_relay_attr attrs[] = {bool_attr("transpose_a", transpose_x),
                            bool_attr("transpose_b", transpose_y)};
  pln_ref args[] = {x, y};
  return pln_relay_call_with(&g->r, PLN_OP_BATCH_MATMUL, 2, attrs, 2, args);
}

static pln_ref swap_matrix(pln_gradient *g, pln_ref x) {
  int64_t axes[] = {0, 2, 1};
  pln_relay_attr attr = pln_relay_ints("axes", 3, axes);
  return pln_relay_call_with(&g->r, PLN_OP_TRANSPOSE, 1, &attr, 1, &x);
}

void pln_gradient_batch_matmul(pln_gradient *g) {
  bool a = pln_gradient_int(g, "transpose_a", 0);
  bool b = pln_gradient_int(g, "transpose_b", 0);
  pln_ref x = g->args[0], y = g->args[1], z = g->grad, by_x, by_y;
  if (!a && b) {
    by_x = batch_matmul(g, z, swap_matrix(g, y), false, true);
    pln_ref t = swap_matrix(g, z);
    by_y = batch_matmul(g, t, swap_matrix(g, x), false, true);
  } else {
    by_x =
        a ? batch_matmul(g, y, z, b, true) : batch_matmul(g, z, y, false, true);
    by_y =
        b ? batch_matmul(g, z, x, true, a) : batch_matmul(g, x, z, !a, false);
  }
  set_products(g, by_x, by_y);
}

/* -------------------------------------------------------------- convolution
 */

/* The padding of both axes: top, left, bottom, right. */
static bool read_padding(pln_gradient *g, int64_t *out) {
  int64_t given[4];
  int32_t n = pln_gradient_ints(g, "padding", 4, given);
  for (int32_t i = 0; i < 4; i++)
    out[i] = n < 0 ? 0 : n == 1 ? given[0] : n == 2 ? given[i % 2] : given[i];
  return n < 0 || n == 1 || n == 2 || n == 4;
}

static void read_pair(pln_gradient *g, const char *name, int64_t *out) {
  int32_t n = pln_gradient_ints(g, name, 2, out);
  if (n < 0)
    out[0] = 1;
  if (n < 2)
    out[1] = out[0];
}

typedef struct convolution {
  int64_t strides[2], dilation[2], padding[4], kernel[2], output_padding[2];
  int64_t groups;
} convolution;

static bool has_layouts(pln_gradient *g) {
  const char *out = pln_gradient_text(g, "out_layout", "");
  return !strcmp(pln_gradient_text(g, "data_layout", "NCHW"), "NCHW") &&
         !strcmp(pln_gradient_text(g, "kernel_layout", "OIHW"), "OIHW") &&
         (!*out || !strcmp(out, "NCHW"));
}

static bool read_convolution(pln_gradient *g, convolution *c) {
  int32_t rank;
  const pln_dim *data = pln_gradient_shape(g, g->args[0], &rank);
  const pln_dim *weight = pln_gradient_shape(g, g->args[1], &rank);
  const pln_dim *grad = pln_gradient_shape(g, g->orig, &rank);
  if (!data || !weight || !grad)
    return false;
  if (!has_layouts(g) || !read_padding(g, c->padding)) {
    pln_gradient_refuse(g, "only layouts NCHW and OIHW are supported");
    return false;
  }
  read_pair(g, "strides", c->strides);
  read_pair(g, "dilation", c->dilation);
  c->groups = pln_gradient_int(g, "groups", 1);
  for (int32_t i = 0; i < 2; i++) {
    c->kernel[i] = weight[2 + i];
    int64_t window = (c->kernel[i] - 1) * c->dilation[i] + 1;
    int64_t size = (grad[2 + i] - 1) * c->strides[i] - c->padding[i] -
                   c->padding[2 + i] + window;
    c->output_padding[i] = data[2 + i] - size;
  }
  return true;
}

static const char *out_dtype(pln_gradient *g) {
  const char *dtype = pln_gradient_text(g, "out_dtype", "");
  pln_type data = pln_gradient_type(g, g->args[0]);
  return *dtype ? dtype : pln_dtype_name(pln_type_dtype(g->r.engine, data));
}

static pln_ref backward_data(pln_gradient *g, const convolution *c) {
  pln_relay_attr attrs[] = {
      pln_relay_ints("strides", 2, c->strides),
      pln_relay_ints("padding", 4, c->padding),
      pln_relay_ints("dilation", 2, c->dilation),
      pln_relay_int("groups", c->groups),
      pln_relay_ints("output_padding", 2, c->output_padding),
      text_attr("out_dtype", out_dtype(g))};
  pln_ref args[] = {g->grad, g->args[1]};
  return pln_relay_call_with(&g->r, PLN_OP_CONV_2D_TRANSPOSE, PLN_COUNT(attrs),
                             attrs, 2, args);
}

/* The operator takes the gradient and the data for data and kernel, and the
 * weights for the result. */
static pln_ref backward_weight(pln_gradient *g, const convolution *c) {
  int64_t channels = pln_gradient_int(g, "channels", -1);
  pln_relay_attr attrs[] = {pln_relay_ints("strides", 2, c->strides),
                            pln_relay_ints("padding", 4, c->padding),
                            pln_relay_ints("dilation", 2, c->dilation),
                            pln_relay_int("groups", c->groups),
                            pln_relay_ints("kernel_size", 2, c->kernel),
                            text_attr("data_layout", "NCHW"),
                            text_attr("kernel_layout", "NCHW"),
                            text_attr("out_layout", "OIHW"),
                            text_attr("out_dtype", out_dtype(g)),
                            pln_relay_int("channels", channels)};
  pln_ref args[] = {g->grad, g->args[0]};
  uint32_t n = PLN_COUNT(attrs) - (channels < 0);
  return pln_relay_call_with(&g->r, PLN_OP_CONV_2D_BACKWARD_WEIGHT, n, attrs, 2,
                             args);
}

void pln_gradient_conv2d(pln_gradient *g) {
  convolution c;
  if (!read_convolution(g, &c))
    return;
  g->out[0] = backward_data(g, &c);
  g->out[1] = backward_weight(g, &c);
}

/* ------------------------------------------------------------------ pooling
 */

typedef struct pooling {
  int64_t size[2], strides[2], padding[4];
} pooling;

static bool read_pooling(pln_gradient *g, pooling *p) {
  read_pair(g, "pool_size", p->size);
  read_pair(g, "strides", p->strides);
  if (read_padding(g, p->padding))
    return true;
  pln_gradient_refuse(g, "the padding has 1, 2 or 4 extents");
  return false;
}

static void pool_gradient(pln_gradient *g, const pooling *p, pln_op op,
                          int32_t count_include_pad) {
  pln_relay_attr attrs[] = {
      pln_relay_ints("pool_size", 2, p->size),
      pln_relay_ints("strides", 2, p->strides),
      pln_relay_ints("padding", 4, p->padding),
      pln_relay_ints("dilation", 0, NULL),
      text_attr("layout", pln_gradient_text(g, "layout", "NCHW")),
      bool_attr("ceil_mode", pln_gradient_int(g, "ceil_mode", 0)),
      bool_attr("count_include_pad", count_include_pad > 0)};
  pln_ref args[] = {g->grad, g->args[0]};
  uint32_t n = PLN_COUNT(attrs) - (count_include_pad < 0);
  g->out[0] = pln_relay_call_with(&g->r, op, n, attrs, 2, args);
}

void pln_gradient_max_pool2d(pln_gradient *g) {
  pooling p;
  if (read_pooling(g, &p))
    pool_gradient(g, &p, PLN_OP_MAX_POOL_2D_GRAD, -1);
}

void pln_gradient_avg_pool2d(pln_gradient *g) {
  pooling p;
  if (read_pooling(g, &p))
    pool_gradient(g, &p, PLN_OP_AVG_POOL_2D_GRAD,
                  pln_gradient_int(g, "count_include_pad", 0) != 0);
}

void pln_gradient_global_avg_pool2d(pln_gradient *g) {
  const char *layout = pln_gradient_text(g, "layout", "NCHW");
  bool last = !strcmp(layout, "NHWC");
  pooling p = {.strides = {1, 1}};
  int32_t rank;
  const pln_dim *shape = pln_gradient_shape(g, g->args[0], &rank);
  if (!shape)
    return;
  if (!last && strcmp(layout, "NCHW") != 0) {
    pln_gradient_refuse(g, "only layouts NCHW and NHWC are supported");
    return;
  }
  p.size[0] = shape[last ? 1 : 2];
  p.size[1] = shape[last ? 2 : 3];
  pool_gradient(g, &p, PLN_OP_AVG_POOL_2D_GRAD, 1);
}
