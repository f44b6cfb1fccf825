/* index_grid.c: rules for gathers whose indices are computed, but are known to
 * enumerate all positions in order, as exporters write masks of attention; and
 * for conditions that are known to hold. */

#include "transform/simplify/rule.h"

/* Limits on the length of the chains that are followed, and on the elements of
 * constants that are looked at. */
enum { MAX_LOOK = 8, MAX_COUNTED = 1 << 14 };

static pln_ref below_reshapes(const pln_graph *g, pln_ref node) {
  for (int i = 0; i < MAX_LOOK && pln_rule_only_reshapes(g, node); i++)
    node = pln_operand(g, node, 0);
  return node;
}

static int32_t known_dims(const pln_graph *g, pln_ref node,
                          const pln_dim **dims) {
  pln_type type = g->nodes[node].type;
  int32_t rank = pln_type_rank(g->engine, type);
  *dims = rank > 0 ? pln_type_dims(g->engine, type) : NULL;
  return rank > PLN_MAX_RANK ? -1 : rank;
}

/* The only integer that the node's value consists of; PLN_DIM_UNKNOWN: not
 * known. */
static pln_dim single_value(const pln_graph *g, pln_ref node) {
  int64_t x;
  const pln_node *n = &g->nodes[node];
  if (n->kind == PLN_CONSTANT) {
    const pln_tensor *t = g->tensors[n->data];
    return t->count == 1 && !t->external && pln_tensor_int(t, 0, &x)
               ? x
               : PLN_DIM_UNKNOWN;
  }
  pln_value value = g->values[node];
  return value && pln_value_count(g->engine, value) == 1
             ? pln_value_elements(g->engine, value)[0]
             : PLN_DIM_UNKNOWN;
}

/* Returns true for 0, 1, 2, ... as a vector. */
static bool is_range(const pln_graph *g, pln_ref node) {
  return pln_is_call(g, node, PLN_OP_RANGE) && g->nodes[node].count == 3 &&
         single_value(g, pln_operand(g, node, 0)) == 0 &&
         single_value(g, pln_operand(g, node, 2)) == 1;
}

/* ------------------------------------------------------------- enumerations
 */

static pln_dim count_of(const pln_graph *g, pln_ref node, int32_t from) {
  const pln_dim *dims;
  int32_t rank = known_dims(g, node, &dims);
  pln_dim product = rank < 0 ? PLN_DIM_UNKNOWN : 1;
  for (int32_t i = from; i < rank && product != PLN_DIM_UNKNOWN; i++)
    if (pln_dim_binary(g->engine, PLN_DIM_MUL, product, dims[i], &product) !=
        PLN_OK)
      return PLN_DIM_UNKNOWN;
  return product;
}

/* Returns true if `x` has the extents of `to` on the axes [begin, end) of `to`,
 * and 1 on the others. */
static bool spans(const pln_graph *g, pln_ref x, pln_ref to, int32_t begin,
                  int32_t end) {
  const pln_dim *own, *all;
  int32_t rank = known_dims(g, to, &all), n = known_dims(g, x, &own);
  if (rank < 0 || n < 0)
    return false;
  for (int32_t i = 0; i < rank; i++) {
    int32_t at = i - rank + n;
    pln_dim dim = at < 0 ? 1 : own[at];
    if (dim != (i >= begin && i < end ? all[i] : 1) || dim == PLN_DIM_UNKNOWN)
      return false;
  }
  return true;
}

/* Returns true for a Constant of the integers 0, 1, 2, ... in order. */
static bool is_counting_constant(const pln_graph *g, pln_ref node) {
  if (g->nodes[node].kind != PLN_CONSTANT)
    return false;
  const pln_tensor *t = g->tensors[g->nodes[node].data];
  bool counts = !t->external && t->count > 0 && t->count <= MAX_COUNTED;
  int64_t x;
  for (size_t i = 0; counts && i < (size_t)t->count; i++)
    counts = pln_tensor_int(t, i, &x) && x == (int64_t)i;
  return counts;
}

/* A range in any shape. */
static bool is_plain_enumeration(const pln_graph *g, pln_ref node) {
  node = below_reshapes(g, node);
  return is_range(g, node) || is_counting_constant(g, node);
}

/* sum = row * n + column, where `scaled` is row * n in any shape, and the rows
 * and columns each are enumerated. *rows: the number of rows. */
static bool is_row_and_column(const pln_graph *g, pln_ref sum, pln_ref scaled,
                              pln_ref column, pln_dim *n, pln_dim *rows) {
  const pln_dim *dims;
  int32_t rank = known_dims(g, sum, &dims);
  pln_ref product = below_reshapes(g, scaled);
  if (!pln_is_call(g, product, PLN_OP_MUL) || !is_plain_enumeration(g, column))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    pln_ref row = pln_operand(g, product, i);
    *n = single_value(g, pln_operand(g, product, 1 - i));
    *rows = count_of(g, row, 0);
    if (*n == PLN_DIM_UNKNOWN || *rows == PLN_DIM_UNKNOWN ||
        *rows != count_of(g, product, 0) || !is_plain_enumeration(g, row))
      continue;
    for (int32_t at = 1; at < rank; at++)
      if (spans(g, scaled, sum, 0, at) && spans(g, column, sum, at, rank))
        return true;
  }
  return false;
}

/* The same in either order; *column is the operand that counts columns. */
static bool find_row_and_column(const pln_graph *g, pln_ref sum,
                                pln_ref *column, pln_dim *n, pln_dim *rows) {
  if (!pln_is_call(g, sum, PLN_OP_ADD))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    *column = pln_operand(g, sum, i);
    if (is_row_and_column(g, sum, pln_operand(g, sum, 1 - i), *column, n, rows))
      return true;
  }
  return false;
}

/* Returns true if the elements are 0, 1, 2, ... in order. */
static bool is_enumeration(const pln_graph *g, pln_ref node) {
  node = below_reshapes(g, node);
  pln_ref column;
  pln_dim n, rows;
  return is_range(g, node) ||
         (find_row_and_column(g, node, &column, &n, &rows) &&
          n == count_of(g, column, 0));
}

/* Builds the reshape of x, or of what x is a reshape of, to the shape of the
 * call. */
static pln_status reshape_to_result(pln_rewrite_context *ctx, pln_ref x,
                                    pln_ref *out) {
  const pln_dim *dims;
  int32_t rank = pln_type_rank(ctx->engine, ctx->type);
  if (rank < 0 || rank > PLN_MAX_RANK)
    return PLN_OK;
  dims = rank ? pln_type_dims(ctx->engine, ctx->type) : NULL;
  for (int i = 0; i < MAX_LOOK; i++) {
    PLN_TRY(pln_rule_reshape(ctx, x, (uint32_t)rank, dims, out));
    const pln_graph *g = pln_rewrite_graph(ctx->rw);
    if (*out != PLN_NONE || !pln_rule_only_reshapes(g, x))
      return PLN_OK;
    x = pln_operand(g, x, 0);
  }
  return PLN_OK;
}

/* Builds take(x, range, axis), and the reshape of that to the shape of the
 * call. */
static pln_status take_range(pln_rewrite_context *ctx, pln_ref x, pln_ref range,
                             int64_t axis, pln_ref *out) {
  pln_attrs attrs;
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = axis};
  pln_ref args[2] = {x, range}, taken;
  PLN_TRY(pln_symbol_intern(ctx->engine, pln_text("axis"), &entry.name));
  PLN_TRY(pln_attrs_make(ctx->engine, 1, &entry, &attrs));
  PLN_TRY(pln_rule_build(ctx, PLN_OP_GATHER, attrs, 2, args, &taken));
  return taken == PLN_NONE ? PLN_OK : reshape_to_result(ctx, taken, out);
}

/* take(flatten(x), row * n + column) => reshape(take(x, column, axis=1)), if
 * all rows of x, which has n columns, and its first columns are enumerated. */
static pln_status take_columns(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  const pln_dim *flat, *dims;
  pln_ref x = below_reshapes(g, pln_rule_arg(ctx, 0)), column;
  pln_dim n, rows;
  if (known_dims(g, pln_rule_arg(ctx, 0), &flat) < 1 ||
      known_dims(g, x, &dims) != 2 || flat[0] != count_of(g, x, 0) ||
      flat[0] == PLN_DIM_UNKNOWN ||
      !find_row_and_column(g, below_reshapes(g, pln_rule_arg(ctx, 1)), &column,
                           &n, &rows) ||
      rows != dims[0] || n != dims[1])
    return PLN_OK;
  return take_range(ctx, x, below_reshapes(g, column), 1, out);
}

/* take(x, [0 .. n - 1] in some shape) => reshape(x), if x has the extent n
 * there. */
pln_status pln_simplify_take_enumeration(pln_rewrite_context *ctx,
                                         pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  int64_t axis = pln_call_int(&ctx->call, "axis", 0);
  int64_t rank = pln_arg_rank(&ctx->call, 0);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank || pln_call_int(&ctx->call, "batch_dims", 0))
    return PLN_OK;
  pln_dim extent = pln_arg_dims(&ctx->call, 0)[axis];
  pln_ref index = pln_rule_arg(ctx, 1);
  if (extent == PLN_DIM_UNKNOWN)
    return PLN_OK;
  if (count_of(g, index, 0) == extent && is_enumeration(g, index))
    return reshape_to_result(ctx, pln_rule_arg(ctx, 0), out);
  return axis == 0 ? take_columns(ctx, out) : PLN_OK;
}

/* The coordinate `part` counts one axis of the grid and is the same along the
 * others; -1 if it does not. */
static int32_t counted_axis(const pln_graph *g, pln_ref part, pln_ref grid,
                            pln_dim *extent, pln_ref *range) {
  const pln_dim *dims;
  int32_t rank = known_dims(g, grid, &dims) - 1; /* the last axis is of the
                                                  * coordinates */
  pln_ref y = below_reshapes(g, part);
  if (pln_is_call(g, y, PLN_OP_EXPAND))
    y = pln_operand(g, y, 0);
  else
    y = part;
  *range = below_reshapes(g, y);
  *extent = count_of(g, y, 0);
  if (!is_range(g, *range) || *extent == PLN_DIM_UNKNOWN)
    return -1;
  const pln_dim *own;
  int32_t n = known_dims(g, y, &own);
  n -= n == rank + 1; /* not yet without the last axis */
  for (int32_t i = 0; i < n; i++)
    if (own[i] == *extent && dims[i - n + rank] == *extent)
      return i - n + rank;
  return -1;
}

/* gather_nd(x, coordinates of all positions in order) => reshape(x); of the
 * first positions of the last axis => reshape(take(x, arange(n), axis)). */
pln_status pln_simplify_gather_grid(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref grid = pln_rule_arg(ctx, 1);
  const pln_dim *x;
  int32_t last = -1, rank = known_dims(g, pln_rule_arg(ctx, 0), &x);
  pln_dim elements = count_of(g, pln_rule_arg(ctx, 0), 0);
  int64_t axis;
  if (!pln_is_call(g, grid, PLN_OP_CONCAT) || rank < 1 ||
      pln_call_int(&ctx->call, "batch_dims", 0) ||
      (int32_t)g->nodes[grid].count > rank)
    return PLN_OK;
  axis = pln_attrs_int(ctx->engine, g->nodes[grid].attrs, "axis", 0);
  int32_t rank_of_grid = pln_type_rank(ctx->engine, g->nodes[grid].type);
  if (rank_of_grid < 1 || (axis != -1 && axis != rank_of_grid - 1))
    return PLN_OK;
  int32_t k = 0, n_parts = (int32_t)g->nodes[grid].count;
  pln_dim extent = PLN_DIM_UNKNOWN;
  pln_ref range = PLN_NONE;
  for (; k < n_parts; k++) {
    int32_t at = counted_axis(g, pln_operand(g, grid, (uint32_t)k), grid,
                              &extent, &range);
    if (at <= last || x[k] == PLN_DIM_UNKNOWN)
      return PLN_OK;
    if (x[k] != extent)
      break;
    last = at;
  }
  if (k == n_parts - 1 && rank == n_parts) {
    pln_dim taken = extent;
    for (int32_t i = 0; i < k; i++)
      PLN_TRY(pln_dim_binary(ctx->engine, PLN_DIM_MUL, taken, x[i], &taken));
    return taken != PLN_DIM_UNKNOWN && taken == count_of(g, ctx->node, 0)
               ? take_range(ctx, pln_rule_arg(ctx, 0), range, k, out)
               : PLN_OK;
  }
  if (k < n_parts || elements == PLN_DIM_UNKNOWN ||
      count_of(g, ctx->node, 0) != elements)
    return PLN_OK;
  return reshape_to_result(ctx, pln_rule_arg(ctx, 0), out);
}

/* --------------------------------------------------------------- conditions
 */

static bool is_never_negative(const pln_graph *g, pln_ref node) {
  node = below_reshapes(g, node);
  pln_dim start, step;
  if (!pln_is_call(g, node, PLN_OP_RANGE) || g->nodes[node].count != 3)
    return false;
  start = single_value(g, pln_operand(g, node, 0));
  step = single_value(g, pln_operand(g, node, 2));
  return PLN_DIM_IS_CONST(start) && start >= 0 && PLN_DIM_IS_CONST(step) &&
         step > 0;
}

bool pln_always_holds(const pln_graph *g, pln_ref node) {
  bool swapped = pln_is_call(g, node, PLN_OP_LESS_OR_EQUAL);
  if (!swapped && !pln_is_call(g, node, PLN_OP_GREATER_OR_EQUAL))
    return false;
  pln_dim least = single_value(g, pln_operand(g, node, !swapped));
  return PLN_DIM_IS_CONST(least) && least <= 0 &&
         is_never_negative(g, pln_operand(g, node, swapped));
}

/* The condition without a part that always holds; PLN_NONE: there is none. */
static pln_ref without_tautology(const pln_graph *g, pln_ref node) {
  if (!pln_is_call(g, node, PLN_OP_AND))
    return PLN_NONE;
  for (uint32_t i = 0; i < 2; i++)
    if (pln_always_holds(g, pln_operand(g, node, i)))
      return pln_operand(g, node, 1 - i);
  return PLN_NONE;
}

/* Returns true for one number. */
static bool is_single(const pln_graph *g, pln_ref node) {
  return count_of(g, node, 0) == 1;
}

/* logical_and(arange(n) >= 0, c) => c, where a user broadcasts c to the shape
 * that it had: where(logical_and(..), x, y), and
 * add(x, where(logical_and(..), 0, -inf)). */
pln_status pln_simplify_drop_tautology(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  for (uint32_t i = 0; i < ctx->call.n_args; i++) {
    pln_ref arg = pln_rule_arg(ctx, i), c = without_tautology(g, arg);
    bool choice = pln_is_call(g, arg, PLN_OP_WHERE) &&
                  is_single(g, pln_operand(g, arg, 1)) &&
                  is_single(g, pln_operand(g, arg, 2));
    if (choice)
      c = without_tautology(g, pln_operand(g, arg, 0));
    if (c == PLN_NONE || !pln_rule_covers(ctx, i, c))
      continue;
    pln_ref args[3] = {c};
    if (choice) {
      args[1] = pln_operand(g, arg, 1);
      args[2] = pln_operand(g, arg, 2);
      PLN_TRY(pln_rule_build(ctx, PLN_OP_WHERE, 0, 3, args, &c));
      if (c == PLN_NONE)
        return PLN_OK;
    }
    pln_rule_set_call(ctx, ctx->node);
    return pln_rule_replace_arg(ctx, i, c, out);
  }
  return PLN_OK;
}
