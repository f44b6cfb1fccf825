/* fill.c: rules for tensors whose elements are all equal: constant_of_shape, a
 * broadcast scalar, and constants used as indices. Exporters write the same
 * tensor in each of these ways. */

#include <math.h>

#include "transform/simplify/rule.h"

/* Limits on a chain that is followed, and on a constant that is read. */
enum { MAX_STEPS = 8, MAX_BYTES = 65536 };

pln_status pln_rule_fill(pln_rewrite *rw, pln_ref fill, pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_attr *value =
      pln_attrs_find(g->engine, g->nodes[fill].attrs, "value");
  static const float zero = 0;
  const void *data = &zero;
  pln_dtype dtype = PLN_FLOAT32;
  pln_tensor *scalar;
  if (value && (value->kind != PLN_ATTR_TENSOR || value->v.tensor->count != 1))
    return PLN_OK;
  if (value) {
    dtype = (pln_dtype)value->v.tensor->dtype;
    PLN_TRY(pln_tensor_data(value->v.tensor, &data));
  }
  if (dtype == PLN_STRING)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_tensor_splat(g->engine, dtype, 0, NULL, data, &scalar));
  pln_status status = pln_build_constant(b, scalar, out);
  pln_tensor_release(scalar);
  return status;
}

/* ------------------------------------------------------------------- values */

/* The number that each element of a call of constant_of_shape has; false if it
 * is not known or no number. */
static bool fill_number(const pln_graph *g, pln_ref fill, double *out) {
  const pln_attr *value =
      pln_attrs_find(g->engine, g->nodes[fill].attrs, "value");
  int64_t x;
  *out = 0;
  if (!value)
    return true;
  if (value->kind != PLN_ATTR_TENSOR || value->v.tensor->count != 1)
    return false;
  const pln_tensor *t = value->v.tensor;
  if (t->external)
    return false;
  if (pln_tensor_int(t, 0, &x))
    *out = (double)x;
  else if (pln_dtype_is_float((pln_dtype)t->dtype))
    *out = pln_float_load((pln_dtype)t->dtype, t->data);
  else
    return false;
  return true;
}

static bool moves_elements(const pln_graph *g, pln_ref node) {
  return pln_rule_only_reshapes(g, node) ||
         pln_is_call(g, node, PLN_OP_TRANSPOSE) ||
         pln_is_call(g, node, PLN_OP_SLICE) ||
         pln_is_call(g, node, PLN_OP_EXPAND);
}

/* The call of constant_of_shape whose elements the node rearranges, or
 * PLN_NONE. */
static pln_ref filled_by(const pln_graph *g, pln_ref node) {
  for (int i = 0; i < MAX_STEPS && moves_elements(g, node); i++)
    node = pln_operand(g, node, 0);
  return pln_is_call(g, node, PLN_OP_CONSTANT_OF_SHAPE) ? node : PLN_NONE;
}

/* Builds a constant of rank 0 with the first element of a tensor. */
static pln_status build_element(pln_rewrite_context *ctx, const pln_tensor *t,
                                pln_ref *out) {
  pln_builder *b = pln_rewrite_builder(ctx->rw);
  const void *data;
  pln_tensor *scalar;
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_tensor_data(t, &data));
  PLN_TRY(pln_tensor_splat(ctx->engine, (pln_dtype)t->dtype, 0, NULL, data,
                           &scalar));
  pln_status status = pln_build_constant(b, scalar, out);
  pln_tensor_release(scalar);
  return status;
}

/* Builds broadcast_to(x, shape) with the type of the current call. */
static pln_status build_broadcast(pln_rewrite_context *ctx, pln_ref x,
                                  pln_ref shape, pln_ref *out) {
  pln_ref args[2] = {x, shape};
  return pln_rule_replace_call(ctx, PLN_OP_EXPAND, 0, 2, args, out);
}

static pln_status build_shape_of(pln_rewrite_context *ctx, pln_ref x,
                                 pln_ref *out) {
  return pln_rule_build(ctx, PLN_OP_SHAPE, 0, 1, &x, out);
}

/* -------------------------------------------------------------------- rules */

static bool is_small(const pln_tensor *t) {
  size_t bits = pln_dtype_bits((pln_dtype)t->dtype);
  return !t->external && t->dtype != PLN_STRING && t->count > 0 && bits >= 8 &&
         t->count <= MAX_BYTES / (bits / 8);
}

static pln_status fill_with(pln_rewrite_context *ctx, const pln_tensor *t,
                            pln_ref shape, pln_ref *out) {
  const void *data;
  pln_tensor *value;
  pln_attrs attrs;
  int64_t one[1] = {1};
  pln_attr entry = {.kind = PLN_ATTR_TENSOR};
  PLN_TRY(pln_symbol_intern(ctx->engine, pln_text("value"), &entry.name));
  PLN_TRY(pln_tensor_data(t, &data));
  PLN_TRY(pln_tensor_from_bytes(ctx->engine, (pln_dtype)t->dtype, 1, one, data,
                                pln_dtype_bits((pln_dtype)t->dtype) / 8,
                                &value));
  entry.v.tensor = value;
  pln_status status = pln_attrs_make(ctx->engine, 1, &entry, &attrs);
  pln_tensor_release(value);
  PLN_TRY(status);
  return pln_rule_replace_call(ctx, PLN_OP_CONSTANT_OF_SHAPE, attrs, 1, &shape,
                               out);
}

/* broadcast_to(c, s) => constant_of_shape(s, value=c) for a scalar c and a
 * computed shape, of the dtypes that constant_of_shape has in every opset. */
pln_status pln_simplify_fill_of_scalar(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  const pln_node *c = &g->nodes[pln_rule_arg(ctx, 0)];
  pln_list list = pln_arg_list(&ctx->call, 1, NULL);
  if (c->kind != PLN_CONSTANT || ctx->call.n_args != 2 || !list.sized ||
      list.given == 0 || list.count == 0 ||
      g->nodes[pln_rule_arg(ctx, 1)].kind == PLN_CONSTANT)
    return PLN_OK;
  const pln_tensor *t = g->tensors[c->data];
  pln_dtype dtype = (pln_dtype)t->dtype;
  if (t->count != 1 || t->rank > list.count || t->external ||
      (dtype != PLN_FLOAT32 && dtype != PLN_FLOAT64 && dtype != PLN_FLOAT16 &&
       dtype != PLN_INT64 && dtype != PLN_INT32 && dtype != PLN_BOOL))
    return PLN_OK;
  return fill_with(ctx, t, pln_rule_arg(ctx, 1), out);
}

/* Returns true if the result has the extents of the list. */
static bool has_extents(const pln_rewrite_context *ctx, const pln_list *list) {
  int32_t rank = pln_type_rank(ctx->engine, ctx->type);
  if (!list->given || !list->sized || rank < 0 || list->count != (uint32_t)rank)
    return false;
  for (uint32_t i = 0; i < list->count; i++) {
    pln_dim dim = pln_list_at(list, i);
    if (dim == PLN_DIM_UNKNOWN ||
        dim != pln_type_dims(ctx->engine, ctx->type)[i])
      return false;
  }
  return true;
}

/* broadcast_to(arange(n) >= 0, s) => constant_of_shape(s, value=true) if the
 * result has the shape s. */
pln_status pln_simplify_fill_of_condition(pln_rewrite_context *ctx,
                                          pln_ref *out) {
  pln_list list = pln_arg_list(&ctx->call, 1, NULL);
  if (ctx->call.n_args != 2 ||
      !pln_always_holds(ctx->call.graph, pln_rule_arg(ctx, 0)) ||
      !has_extents(ctx, &list))
    return PLN_OK;
  static const uint8_t yes = 1;
  pln_tensor *t;
  PLN_TRY(pln_tensor_splat(ctx->engine, PLN_BOOL, 0, NULL, &yes, &t));
  pln_status status = fill_with(ctx, t, pln_rule_arg(ctx, 1), out);
  pln_tensor_release(t);
  return status;
}

/* where(constant_of_shape(s, value=true), a, b) => broadcast_to(a, s) for
 * numbers a and b; b if it is false. */
pln_status pln_simplify_choice_of_fill(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref fill = pln_rule_arg(ctx, 0);
  double holds;
  if (!pln_is_call(g, fill, PLN_OP_CONSTANT_OF_SHAPE) ||
      !fill_number(g, fill, &holds) ||
      !pln_same_extents(ctx->engine, g->nodes[fill].type, ctx->type))
    return PLN_OK;
  for (uint32_t i = 1; i < 3; i++) {
    const pln_node *n = &g->nodes[pln_rule_arg(ctx, i)];
    if (n->kind != PLN_CONSTANT || g->tensors[n->data]->count != 1)
      return PLN_OK;
  }
  return build_broadcast(ctx, pln_rule_arg(ctx, holds != 0 ? 1 : 2),
                         pln_operand(g, fill, 0), out);
}

/* cast(constant_of_shape(s, value=c)) => broadcast_to(cast(c), s) */
pln_status pln_simplify_cast_of_fill(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref fill = pln_rule_arg(ctx, 0), c = PLN_NONE;
  if (!pln_is_call(g, fill, PLN_OP_CONSTANT_OF_SHAPE))
    return PLN_OK;
  pln_ref shape = pln_operand(g, fill, 0);
  pln_attrs attrs = ctx->call.attrs;
  PLN_TRY(pln_rule_fill(ctx->rw, fill, &c));
  if (c == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_rule_build(ctx, PLN_OP_CAST, attrs, 1, &c, &c));
  return c == PLN_NONE ? PLN_OK : build_broadcast(ctx, c, shape, out);
}

static bool is_constant_of(const pln_graph *g, pln_ref node, int32_t rank) {
  return g->nodes[node].kind == PLN_CONSTANT &&
         pln_type_rank(g->engine, g->nodes[node].type) == rank;
}

/* take(w, constant_of_shape(s, value=c), axis=0) =>
 * broadcast_to(take(w, c, axis=0), concatenate(s, extents of a row)) for a
 * constant w with rows. */
pln_status pln_simplify_take_of_fill(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref row[2] = {pln_rule_arg(ctx, 0)}, shape[2], fill;
  pln_attrs attrs = ctx->call.attrs;
  double index;
  fill = pln_rule_arg(ctx, 1);
  if (!pln_is_call(g, fill, PLN_OP_CONSTANT_OF_SHAPE) ||
      !is_constant_of(g, row[0], 2) ||
      pln_attrs_int(ctx->engine, attrs, "axis", 0) != 0 ||
      pln_attrs_int(ctx->engine, attrs, "batch_dims", 0) != 0 ||
      !fill_number(g, fill, &index) || index < 0 ||
      index >= (double)pln_arg_dims(&ctx->call, 0)[0])
    return PLN_OK;
  int64_t width = pln_arg_dims(&ctx->call, 0)[1];
  shape[0] = pln_operand(g, fill, 0);
  PLN_TRY(pln_rule_int_constant(ctx, (int64_t)index, &row[1]));
  PLN_TRY(pln_rule_build(ctx, PLN_OP_GATHER, attrs, 2, row, &row[0]));
  PLN_TRY(pln_rule_int_vector(ctx, 1, &width, &shape[1]));
  PLN_TRY(pln_rule_build(ctx, PLN_OP_CONCAT, 0, 2, shape, &shape[0]));
  return row[0] == PLN_NONE || shape[0] == PLN_NONE
             ? PLN_OK
             : build_broadcast(ctx, row[0], shape[0], out);
}

/* Returns true if all elements of a small tensor of integers are equal. */
static bool is_even(const pln_tensor *t) {
  int64_t first, x;
  if (!is_small(t) || !pln_tensor_int(t, 0, &first))
    return false;
  for (size_t i = 1; i < t->count; i++)
    if (!pln_tensor_int(t, i, &x) || x != first)
      return false;
  return true;
}

/* gather(c, i) => broadcast_to(element of c, shape_of(i)) if all elements of
 * the constant c are equal. */
pln_status pln_simplify_gather_of_fill(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  const pln_node *c = &g->nodes[pln_rule_arg(ctx, 0)];
  pln_ref i = pln_rule_arg(ctx, 1), element, shape;
  if (c->kind != PLN_CONSTANT || !is_even(g->tensors[c->data]))
    return PLN_OK;
  PLN_TRY(build_element(ctx, g->tensors[c->data], &element));
  PLN_TRY(build_shape_of(ctx, i, &shape));
  return shape == PLN_NONE ? PLN_OK : build_broadcast(ctx, element, shape, out);
}

/* The number that leaves the other operand as it is. */
static double neutral_number(pln_op op) {
  return op == PLN_OP_AND || op == PLN_OP_MUL ? 1 : 0;
}

/* logical_and(x, y) => broadcast_to(x, shape_of(y)) if each element of y is
 * true, and likewise for or, sum and product with a filled tensor. */
pln_status pln_simplify_neutral_fill(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  double wanted = neutral_number(ctx->call.op), x;
  for (uint32_t i = 0; i < 2; i++) {
    pln_ref y = pln_rule_arg(ctx, i), other = pln_rule_arg(ctx, 1 - i), shape;
    pln_ref fill = filled_by(g, y);
    if (fill == PLN_NONE || !fill_number(g, fill, &x) || x != wanted)
      continue;
    PLN_TRY(build_shape_of(ctx, y, &shape));
    return shape == PLN_NONE ? PLN_OK : build_broadcast(ctx, other, shape, out);
  }
  return PLN_OK;
}

/* Returns true if each axis that is repeated has extent 1. */
static bool repeats_ones(const pln_infer *call, const pln_list *reps) {
  if (pln_arg_rank(call, 0) != (int32_t)reps->count)
    return false;
  for (uint32_t i = 0; i < reps->count; i++)
    if (pln_list_at(reps, i) != 1 && pln_arg_dims(call, 0)[i] != 1)
      return false;
  return true;
}

/* tile(x, reps) => broadcast_to(x, reps) if only axes of extent 1 are
 * repeated, which elementwise operators do by themselves. */
pln_status pln_simplify_tile_ones(pln_rewrite_context *ctx, pln_ref *out) {
  pln_list reps = pln_arg_list(&ctx->call, 1, NULL);
  if (ctx->call.n_args != 2 || !reps.given || !reps.sized ||
      !repeats_ones(&ctx->call, &reps))
    return PLN_OK;
  return build_broadcast(ctx, pln_rule_arg(ctx, 0), pln_rule_arg(ctx, 1), out);
}

/* Returns the fill of trilu(fill of ones, upper=0), or PLN_NONE. */
static pln_ref lower_ones(const pln_graph *g, pln_ref node) {
  double x;
  if (!pln_is_call(g, node, PLN_OP_TRILU) || g->nodes[node].count != 1 ||
      pln_attrs_int(g->engine, g->nodes[node].attrs, "upper", 1) != 0)
    return PLN_NONE;
  pln_ref fill = pln_operand(g, node, 0);
  return pln_is_call(g, fill, PLN_OP_CONSTANT_OF_SHAPE) &&
                 fill_number(g, fill, &x) && x == 1
             ? fill
             : PLN_NONE;
}

/* Returns true for a constant of one element, stored in *out as a number if it
 * is one. */
static bool read_scalar(const pln_graph *g, pln_ref node, double *out) {
  const pln_node *n = &g->nodes[node];
  int64_t x;
  if (n->kind != PLN_CONSTANT)
    return false;
  const pln_tensor *t = g->tensors[n->data];
  if (t->count != 1 || t->external)
    return false;
  *out = NAN;
  if (pln_tensor_int(t, 0, &x))
    *out = (double)x;
  else if (pln_dtype_is_float((pln_dtype)t->dtype))
    *out = pln_float_load((pln_dtype)t->dtype, t->data);
  return true;
}

/* where(equal(trilu(ones, upper=0), 0), a, 0) => trilu(a's, 1, upper=1): the
 * mask of attention to earlier positions. */
pln_status pln_simplify_triangle(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref equal = pln_rule_arg(ctx, 0), args[2] = {pln_rule_arg(ctx, 1)};
  double a, x, y;
  if (!pln_is_call(g, equal, PLN_OP_EQUAL) || !read_scalar(g, args[0], &a) ||
      !read_scalar(g, pln_rule_arg(ctx, 2), &x) || x != 0)
    return PLN_OK;
  for (uint32_t i = 0; i < 2; i++) {
    pln_ref fill = lower_ones(g, pln_operand(g, equal, i));
    if (fill == PLN_NONE || !read_scalar(g, pln_operand(g, equal, 1 - i), &y) ||
        y != 0 ||
        !pln_same_extents(ctx->engine, g->nodes[fill].type, ctx->type))
      continue;
    args[1] = pln_operand(g, fill, 0);
    PLN_TRY(pln_rule_build(ctx, PLN_OP_EXPAND, 0, 2, args, &args[0]));
    if (args[0] == PLN_NONE)
      return PLN_OK;
    PLN_TRY(pln_rule_int_constant(ctx, 1, &args[1]));
    return pln_rule_replace_call(ctx, PLN_OP_TRILU, 0, 2, args, out);
  }
  return PLN_OK;
}
