/* cost.c: counts what calls compute (cost.h). Called by eval/profile.c and the
 * binding.
 *
 * A product has a row in `products`, which says how its extents give the count.
 * Nothing here depends on how a kernel computes it. */

#include "op/cost.h"
#include "op/op.h"
#include "op/relay/data_layout.h"

/* ------------------------------------------------------------------- extents
 */

static pln_status multiply_extents(const pln_cost_call *c, pln_dim *product,
                                   pln_dim factor) {
  return pln_dim_binary(c->engine, PLN_DIM_MUL, *product, factor, product);
}

/* The product of extents [begin, end) of a shape. */
static pln_status extents(const pln_cost_call *c, const pln_shape *s,
                          int32_t begin, int32_t end, pln_dim *out) {
  *out = s->rank < 0 ? PLN_DIM_UNKNOWN : 1;
  for (int32_t i = begin; i < end && i < s->rank; i++)
    PLN_TRY(multiply_extents(c, out, s->dims[i]));
  return PLN_OK;
}

static pln_status elements(const pln_cost_call *c, const pln_shape *s,
                           pln_dim *out) {
  return extents(c, s, 0, s->rank, out);
}

static const pln_shape *shape_at(const pln_cost_call *c, uint32_t i) {
  static const pln_shape unknown = {.rank = -1};
  return i < c->n_args ? &c->args[i] : &unknown;
}

/* Extent `axis`, counted from the end if negative. */
static pln_dim extent_at(const pln_shape *s, int32_t axis) {
  int32_t at = axis < 0 ? axis + s->rank : axis;
  return at >= 0 && at < s->rank ? s->dims[at] : (pln_dim)PLN_DIM_UNKNOWN;
}

static bool is_true(const pln_cost_call *c, const char *name) {
  return pln_attrs_int(c->engine, c->attrs, name, 0) != 0;
}

/* -------------------------------------------------------------- convolutions
 */

/* The product of the extents of weights without axis `letter` (lower case for
 * its inner part) of their layout. */
static pln_status extents_but(const pln_cost_call *c, const pln_shape *w,
                              pln_slice layout, char letter, pln_dim *out) {
  int32_t axis = 0;
  *out = w->rank < 0 ? PLN_DIM_UNKNOWN : 1;
  for (size_t i = 0; i < layout.size && axis < w->rank; i++) {
    char x = layout.data[i];
    if (x >= '0' && x <= '9')
      continue;
    if (x != letter && x != letter - 'A' + 'a')
      PLN_TRY(multiply_extents(c, out, w->dims[axis]));
    axis++;
  }
  return PLN_OK;
}

/* The results that Relay's depthwise weights (C, multiplier, ...) give a
 * channel: these are no part of a sum. 1 for other weights. */
static int64_t multiplier(const pln_cost_call *c, const pln_shape *w,
                          pln_slice layout) {
  int64_t groups = pln_attrs_int(c->engine, c->attrs, "groups", 1);
  int64_t channels = pln_attrs_int(c->engine, c->attrs, "channels", -1);
  const char *o = memchr(layout.data, 'O', layout.size);
  bool few = groups > 1 && o && channels > groups && channels % groups == 0 &&
             extent_at(w, (int32_t)(o - layout.data)) == groups;
  return few ? channels / groups : 1;
}

/* Weights w: (out, in / groups, window...), or in Relay's kernel_layout. Each
 * element of the result sums over all axes but the first. */
static pln_status conv_macs(const pln_cost_call *c, uint32_t w, pln_dim *out) {
  pln_slice layout = pln_attrs_string(c->engine, c->attrs, "kernel_layout", "");
  pln_dim per;
  if (layout.size) {
    PLN_TRY(extents_but(c, shape_at(c, w), layout, 'O', &per));
    if (PLN_DIM_IS_CONST(per))
      per /= multiplier(c, shape_at(c, w), layout);
  } else
    PLN_TRY(extents(c, shape_at(c, w), 1, shape_at(c, w)->rank, &per));
  PLN_TRY(elements(c, &c->result, out));
  return multiply_extents(c, out, per);
}

/* Weights: (in, out / groups, window...). Each element of the operand goes into
 * as many sums as the other axes have elements. */
static pln_status conv_transpose_macs(const pln_cost_call *c, uint32_t w,
                                      pln_dim *out) {
  pln_slice layout = pln_attrs_string(c->engine, c->attrs, "kernel_layout", "");
  pln_dim per;
  if (layout.size)
    PLN_TRY(extents_but(c, shape_at(c, w), layout, 'I', &per));
  else
    PLN_TRY(extents(c, shape_at(c, w), 1, shape_at(c, w)->rank, &per));
  PLN_TRY(elements(c, shape_at(c, 0), out));
  return multiply_extents(c, out, per);
}

/* ------------------------------------------------------------------ matrices
 */

/* Each element of the result sums over the last axis of operand 0, or over the
 * one before if it is transposed. */
static pln_status matmul_macs(const pln_cost_call *c, uint32_t unused,
                              pln_dim *out) {
  (void)unused;
  bool transposed = is_true(c, "transA") || is_true(c, "transpose_a");
  PLN_TRY(elements(c, &c->result, out));
  return multiply_extents(c, out,
                          extent_at(shape_at(c, 0), transposed ? -2 : -1));
}

/* Queries by keys, and weights by values: each for every key. */
static pln_status attention_macs(const pln_cost_call *c, uint32_t unused,
                                 pln_dim *out) {
  const pln_shape *keys = shape_at(c, 1), *past = shape_at(c, 4);
  pln_dim n_keys = extent_at(keys, keys->rank == 3 ? 1 : -2), results;
  (void)unused;
  if (past->rank > 0)
    PLN_TRY(pln_dim_binary(c->engine, PLN_DIM_ADD, n_keys, extent_at(past, -2),
                           &n_keys));
  PLN_TRY(elements(c, shape_at(c, 0), out));
  PLN_TRY(elements(c, &c->result, &results));
  PLN_TRY(pln_dim_binary(c->engine, PLN_DIM_ADD, *out, results, out));
  return multiply_extents(c, out, n_keys);
}

/* Both weights once for each step of each sequence. */
static pln_status recurrent_macs(const pln_cost_call *c, uint32_t unused,
                                 pln_dim *out) {
  pln_dim hidden;
  (void)unused;
  PLN_TRY(elements(c, shape_at(c, 1), out));
  PLN_TRY(elements(c, shape_at(c, 2), &hidden));
  PLN_TRY(pln_dim_binary(c->engine, PLN_DIM_ADD, *out, hidden, out));
  PLN_TRY(multiply_extents(c, out, extent_at(shape_at(c, 0), 0)));
  return multiply_extents(c, out, extent_at(shape_at(c, 0), 1));
}

/* The product of the extents of all labels; ellipses are not counted. */
static pln_status einsum_macs(const pln_cost_call *c, uint32_t unused,
                              pln_dim *out) {
  pln_slice equation = pln_attrs_string(c->engine, c->attrs, "equation", "");
  bool seen[256] = {false};
  uint32_t arg = 0;
  int32_t axis = 0;
  (void)unused;
  *out = 1;
  for (size_t i = 0; i < equation.size && equation.data[i] != '-'; i++) {
    unsigned char x = (unsigned char)equation.data[i];
    if (x == '.')
      *out = PLN_DIM_UNKNOWN;
    if (x == ',')
      arg++, axis = 0;
    if (x == ',' || x == ' ' || x == '.')
      continue;
    if (!seen[x])
      PLN_TRY(multiply_extents(c, out, extent_at(shape_at(c, arg), axis)));
    seen[x] = true;
    axis++;
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- products
 */

static const struct product {
  pln_op op;
  pln_status (*macs)(const pln_cost_call *call, uint32_t weights, pln_dim *out);
  uint32_t weights; /* the operand that has them */
} products[] = {
    {PLN_OP_MAT_MUL, matmul_macs, 0},
    {PLN_OP_GEMM, matmul_macs, 0},
    {PLN_OP_DENSE, matmul_macs, 0},
    {PLN_OP_BATCH_MATMUL, matmul_macs, 0},
    {PLN_OP_MAT_MUL_INTEGER, matmul_macs, 0},
    {PLN_OP_QLINEAR_MAT_MUL, matmul_macs, 0},
    {PLN_OP_QNN_DENSE, matmul_macs, 0},
    {PLN_OP_QNN_BATCH_MATMUL, matmul_macs, 0},
    {PLN_OP_EINSUM, einsum_macs, 0},
    {PLN_OP_ATTENTION, attention_macs, 0},
    {PLN_OP_FLEX_ATTENTION, attention_macs, 0},
    {PLN_OP_RNN, recurrent_macs, 0},
    {PLN_OP_GRU, recurrent_macs, 0},
    {PLN_OP_LSTM, recurrent_macs, 0},
    {PLN_OP_CONV, conv_macs, 1},
    {PLN_OP_CONV_INTEGER, conv_macs, 1},
    {PLN_OP_QLINEAR_CONV, conv_macs, 3},
    {PLN_OP_DEFORM_CONV, conv_macs, 1},
    {PLN_OP_DEFORMABLE_CONV_2D, conv_macs, 2},
    {PLN_OP_CONV_1D, conv_macs, 1},
    {PLN_OP_CONV_2D, conv_macs, 1},
    {PLN_OP_CONV_3D, conv_macs, 1},
    {PLN_OP_CONV_2D_NCHWC, conv_macs, 1},
    {PLN_OP_QNN_CONV_2D, conv_macs, 1},
    {PLN_OP_CONV_TRANSPOSE, conv_transpose_macs, 1},
    {PLN_OP_CONV_1D_TRANSPOSE, conv_transpose_macs, 1},
    {PLN_OP_CONV_2D_TRANSPOSE, conv_transpose_macs, 1},
    {PLN_OP_CONV_3D_TRANSPOSE, conv_transpose_macs, 1},
    {PLN_OP_QNN_CONV_2D_TRANSPOSE, conv_transpose_macs, 1},
};

static const struct product *find_product(pln_op op) {
  for (size_t i = 0; i < PLN_COUNT(products); i++)
    if (products[i].op == op)
      return &products[i];
  return NULL;
}

static pln_status count_flops(const pln_cost_call *c, pln_dim macs,
                              pln_dim *out) {
  uint32_t traits = pln_op_row(c->engine, c->op)->traits;
  *out = 2;
  if (macs != 0)
    return multiply_extents(c, out, macs);
  *out = 0;
  if (traits & PLN_TRAIT_REDUCE)
    return elements(c, shape_at(c, 0), out);
  if (traits & (PLN_TRAIT_ELEMENTWISE | PLN_TRAIT_BROADCAST))
    return elements(c, &c->result, out);
  return PLN_OK;
}

pln_status pln_op_cost(const pln_cost_call *call, pln_dim *macs,
                       pln_dim *flops) {
  const struct product *product = find_product(call->op);
  *macs = 0;
  if (product)
    PLN_TRY(product->macs(call, product->weights, macs));
  return count_flops(call, *macs, flops);
}

/* The shape of a tensor's type. */
static void read_shape(const pln_engine *engine, pln_type type,
                       pln_shape *out) {
  out->rank = pln_type_rank(engine, type);
  if (out->rank > PLN_MAX_RANK)
    out->rank = -1;
  if (out->rank > 0)
    memcpy(out->dims, pln_type_dims(engine, type),
           (size_t)out->rank * sizeof *out->dims);
}

/* Costs depend on few operands: those behind them are left out. */
enum { MOST_COST_ARGS = 8 };

pln_status pln_node_cost(const pln_graph *graph, pln_ref node, pln_dim *macs,
                         pln_dim *flops) {
  const pln_node *n = &graph->nodes[node];
  pln_engine *e = graph->engine;
  pln_shape shapes[MOST_COST_ARGS];
  pln_cost_call c = {.engine = e, .op = n->data, .attrs = n->attrs};
  pln_type type = n->type;
  *macs = *flops = 0;
  if (n->kind != PLN_CALL || !n->data)
    return PLN_OK;
  c.args = shapes;
  c.n_args = n->count < MOST_COST_ARGS ? n->count : MOST_COST_ARGS;
  for (uint32_t i = 0; i < c.n_args; i++)
    read_shape(e, graph->nodes[pln_operands(graph, n)[i]].type, &shapes[i]);
  if (pln_type_get_kind(e, type) == PLN_TYPE_TUPLE)
    type = pln_type_n_parts(e, type) ? pln_type_part_at(e, type, 0) : 0;
  read_shape(e, type, &c.result);
  return pln_op_cost(&c, macs, flops);
}
