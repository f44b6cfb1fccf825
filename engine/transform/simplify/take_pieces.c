/* take_pieces.c: rules that make one take of slices that are concatenated, of
 * elements that are repeated, and of positions of one axis that are permuted by
 * reshapes around a transpose. */

#include "transform/simplify/pieces.h"
#include "transform/simplify/rule.h"

/* Limits on the positions of a take that is made, and on the operands of the
 * concatenation. */
enum { MAX_POSITIONS = PLN_MAX_POSITIONS, MAX_PIECES = 16 };

pln_status pln_take_positions(pln_rewrite_context *ctx, pln_ref x, int64_t axis,
                              uint32_t n, const int64_t *positions,
                              pln_ref *out) {
  pln_attrs attrs;
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = axis};
  pln_ref args[2] = {x};
  PLN_TRY(pln_rule_int_vector(ctx, n, positions, &args[1]));
  PLN_TRY(pln_symbol_intern(ctx->engine, pln_text("axis"), &entry.name));
  PLN_TRY(pln_attrs_make(ctx->engine, 1, &entry, &attrs));
  return ctx->type
             ? pln_rule_replace_call(ctx, PLN_OP_GATHER, attrs, 2, args, out)
             : pln_rule_build(ctx, PLN_OP_GATHER, attrs, 2, args, out);
}

/* ------------------------------------------------------------------- repeats
 */

/* The axis at which `repeated` has the extent n * times and x the extent n;
 * -1 if the shapes differ otherwise. `added` is the axis of `times` in the
 * tensor that was broadcast. */
static int64_t repeated_axis(const pln_engine *e, pln_type x, pln_type spread,
                             pln_type repeated, int64_t *times) {
  int32_t rank = pln_type_rank(e, x);
  if (rank < 1 || rank != pln_type_rank(e, repeated) ||
      pln_type_rank(e, spread) != rank + 1)
    return -1;
  const pln_dim *from = pln_type_dims(e, x), *to = pln_type_dims(e, repeated);
  const pln_dim *between = pln_type_dims(e, spread);
  int32_t axis = 0;
  while (axis < rank && from[axis] == to[axis] && from[axis] == between[axis])
    axis++;
  if (axis == rank || !PLN_DIM_IS_CONST(from[axis]) ||
      !PLN_DIM_IS_CONST(to[axis]) || !PLN_DIM_IS_CONST(between[axis + 1]))
    return -1;
  *times = between[axis + 1];
  bool same = from[axis] > 0 && between[axis] == from[axis] && *times > 1 &&
              *times <= MAX_POSITIONS && to[axis] == from[axis] * *times;
  for (int32_t i = axis + 1; i < rank; i++)
    same = same && from[i] == to[i] && from[i] == between[i + 1] &&
           from[i] != PLN_DIM_UNKNOWN;
  for (int32_t i = 0; i < axis; i++)
    same = same && from[i] != PLN_DIM_UNKNOWN;
  return same && to[axis] <= MAX_POSITIONS ? axis : -1;
}

/* Returns true if the axis of extent 1 behind `axis` was added. */
static bool is_added_behind(const pln_engine *e, pln_type x, pln_type added,
                            int64_t axis) {
  int32_t rank = pln_type_rank(e, x);
  if (pln_type_rank(e, added) != rank + 1)
    return false;
  for (int32_t i = 0; i <= rank; i++) {
    pln_dim dim = i == axis + 1 ? 1 : pln_type_dims(e, x)[i - (i > axis + 1)];
    if (pln_type_dims(e, added)[i] != dim)
      return false;
  }
  return true;
}

/* reshape(broadcast_to(expand_dims(x, [2]), [N, 2, 3, S]), [N, 6, S]) =>
 * take(x, [0, 0, 0, 1, 1, 1], axis=1), for x: (N, 2, S) */
pln_status pln_simplify_take_repeated(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref spread = pln_rule_arg(ctx, 0);
  int64_t positions[MAX_POSITIONS], times;
  if (!pln_is_call(g, spread, PLN_OP_EXPAND))
    return PLN_OK;
  pln_ref added = pln_operand(g, spread, 0);
  if (!pln_is_call(g, added, PLN_OP_UNSQUEEZE) &&
      !pln_is_call(g, added, PLN_OP_RESHAPE))
    return PLN_OK;
  pln_ref x = pln_operand(g, added, 0);
  int64_t axis = repeated_axis(ctx->engine, g->nodes[x].type,
                               g->nodes[spread].type, ctx->type, &times);
  if (axis < 0 || !is_added_behind(ctx->engine, g->nodes[x].type,
                                   g->nodes[added].type, axis))
    return PLN_OK;
  uint32_t n = (uint32_t)pln_type_dims(ctx->engine, ctx->type)[axis];
  for (uint32_t i = 0; i < n; i++)
    positions[i] = i / times;
  return pln_take_positions(ctx, x, axis, n, positions, out);
}

/* --------------------------------------------------------------- permutations
 */

/* An axis of x that a reshape splits into `count` axes of known extents. */
typedef struct split_axis {
  int32_t axis;
  int32_t count;
} split_axis;

/* Finds the only axis of x that `split` splits; false if the shapes differ
 * otherwise, or another extent is not known to be the same. */
static bool find_split_axis(const pln_engine *e, pln_type x, pln_type split,
                            split_axis *out) {
  int32_t rank = pln_type_rank(e, x), parts = pln_type_rank(e, split);
  if (rank < 1 || parts <= rank || parts > PLN_MAX_RANK)
    return false;
  const pln_dim *from = pln_type_dims(e, x), *to = pln_type_dims(e, split);
  *out = (split_axis){.count = parts - rank + 1};
  while (out->axis < rank && from[out->axis] == to[out->axis] &&
         from[out->axis] != PLN_DIM_UNKNOWN)
    out->axis++;
  int64_t product = 1;
  for (int32_t i = 0; out->axis < rank && i < out->count; i++) {
    pln_dim dim = to[out->axis + i];
    if (!PLN_DIM_IS_CONST(dim) || dim < 1 || dim > MAX_POSITIONS)
      return false;
    product *= product <= MAX_POSITIONS ? dim : 1;
  }
  for (int32_t i = out->axis + 1; i < rank; i++)
    if (from[i] != to[i + out->count - 1] || from[i] == PLN_DIM_UNKNOWN)
      return false;
  return out->axis < rank && product == from[out->axis] &&
         product <= MAX_POSITIONS;
}

/* Returns true if the permutation moves axes of the group only. */
static bool permutes_within(const pln_attr *perm, int32_t rank,
                            const split_axis *group) {
  bool seen[PLN_MAX_RANK] = {false};
  if (!perm || perm->kind != PLN_ATTR_INTS || perm->count != (uint32_t)rank)
    return false;
  for (int32_t i = 0; i < rank; i++) {
    int64_t axis = perm->v.ints[i];
    bool inside = i >= group->axis && i < group->axis + group->count;
    if (axis < 0 || axis >= rank || seen[axis] || (!inside && axis != i))
      return false;
    seen[axis] = true;
  }
  return true;
}

/* The positions along the axis in the order in which the permuted axes
 * enumerate them. */
static void enumerate_positions(const pln_dim *dims, const int64_t *perm,
                                const split_axis *group, uint32_t n,
                                int64_t *positions) {
  int64_t strides[PLN_MAX_RANK], stride = 1;
  for (int32_t i = group->count - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= dims[group->axis + i];
  }
  for (uint32_t k = 0; k < n; k++) {
    int64_t rest = k;
    positions[k] = 0;
    for (int32_t i = group->count - 1; i >= 0; i--) {
      int64_t axis = perm[group->axis + i];
      positions[k] += rest % dims[axis] * strides[axis - group->axis];
      rest /= dims[axis];
    }
  }
}

static bool is_reshape(const pln_graph *g, pln_ref node) {
  return pln_is_call(g, node, PLN_OP_RESHAPE) ||
         pln_is_call(g, node, PLN_OP_UNSQUEEZE);
}

/* reshape(transpose(reshape(x, [N, 2, 3, S]), [0, 2, 1, 3]), [N, 6, S]) =>
 * take(x, [0, 3, 1, 4, 2, 5], axis=1), for x: (N, 6, S), if nothing else uses
 * what is between. */
pln_status pln_simplify_take_permuted(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  const pln_engine *e = ctx->engine;
  pln_ref move = pln_rule_arg(ctx, 0);
  int64_t positions[MAX_POSITIONS];
  split_axis group;
  if (!pln_is_call(g, move, PLN_OP_TRANSPOSE) || !pln_rule_is_only_use(ctx, 0))
    return PLN_OK;
  pln_ref split = pln_operand(g, move, 0);
  if (!is_reshape(g, split) || pln_rule_driver_uses(ctx->driver, split) != 1)
    return PLN_OK;
  pln_ref x = pln_operand(g, split, 0);
  pln_type type = g->nodes[x].type, parts = g->nodes[split].type;
  const pln_attr *perm = pln_attrs_find(e, g->nodes[move].attrs, "axes");
  if (!find_split_axis(e, type, parts, &group) ||
      !permutes_within(perm, pln_type_rank(e, parts), &group) ||
      pln_type_rank(e, ctx->type) != pln_type_rank(e, type) ||
      memcmp(pln_type_dims(e, ctx->type), pln_type_dims(e, type),
             (size_t)pln_type_rank(e, type) * sizeof(pln_dim)))
    return PLN_OK;
  uint32_t n = (uint32_t)pln_type_dims(e, type)[group.axis];
  enumerate_positions(pln_type_dims(e, parts), perm->v.ints, &group, n,
                      positions);
  return pln_take_positions(ctx, x, group.axis, n, positions, out);
}

/* -------------------------------------------------------------------- pieces
 */

static bool single_int(const pln_list *list, int64_t *out) {
  return list->given && list->count == 1 && pln_list_read(list, 1, out);
}

static int64_t clamped(int64_t i, int64_t extent) {
  i += i < 0 ? extent : 0;
  return i < 0 ? 0 : i > extent ? extent : i;
}

static bool read_sliced_piece(const pln_graph *g, pln_ref node,
                              pln_piece *out) {
  pln_infer call = pln_infer_of(g, node);
  pln_list starts = pln_arg_list(&call, 1, "starts");
  pln_list ends = pln_arg_list(&call, 2, "ends");
  pln_list axes = pln_arg_list(&call, 3, "axes");
  pln_list steps = pln_arg_list(&call, 4, NULL);
  int64_t rank = pln_arg_rank(&call, 0), step = 1;
  out->axis = 0;
  out->x = call.args[0];
  if (!single_int(&starts, &out->begin) || !single_int(&ends, &out->end) ||
      (axes.given && !single_int(&axes, &out->axis)) ||
      (steps.given && !single_int(&steps, &step)) || step != 1)
    return false;
  out->axis += out->axis < 0 ? rank : 0;
  if (out->axis < 0 || out->axis >= rank)
    return false;
  pln_dim extent = pln_arg_dims(&call, 0)[out->axis];
  if (!PLN_DIM_IS_CONST(extent) || extent > PLN_MAX_POSITIONS)
    return false;
  out->begin = clamped(out->begin, extent);
  out->end = clamped(out->end, extent);
  return out->begin < out->end;
}

static bool read_split_piece(const pln_graph *g, pln_ref field,
                             pln_piece *out) {
  const pln_engine *e = g->engine;
  pln_ref split = pln_operand(g, field, 0);
  const pln_node *n = &g->nodes[split];
  int64_t rank = pln_type_rank(e, g->nodes[field].type);
  if (n->kind != PLN_CALL || n->data != PLN_OP_SPLIT || !n->results ||
      !pln_op_is_onnx_form(g, split) || !pln_call_is_valid(g, split))
    return false;
  out->x = pln_operand(g, split, 0);
  out->axis = pln_attrs_int(e, n->attrs, "axis", 0);
  out->axis += out->axis < 0 ? rank : 0;
  out->end = 0;
  for (uint32_t k = 0; k <= g->nodes[field].data; k++) {
    pln_type part = pln_type_part_at(e, n->type, k);
    if (out->axis < 0 || out->axis >= pln_type_rank(e, part) ||
        !PLN_DIM_IS_CONST(pln_type_dims(e, part)[out->axis]))
      return false;
    out->begin = out->end;
    out->end += pln_type_dims(e, part)[out->axis];
  }
  return out->begin < out->end && out->end <= PLN_MAX_POSITIONS;
}

bool pln_read_piece(const pln_graph *graph, pln_ref node, pln_piece *out) {
  if (pln_is_call(graph, node, PLN_OP_SLICE))
    return read_sliced_piece(graph, node, out);
  return graph->nodes[node].kind == PLN_TUPLE_GET_ITEM &&
         read_split_piece(graph, node, out);
}

/* concatenate(strided_slice(x, [2], [4]), strided_slice(x, [0], [2])) =>
 * take(x, [2, 3, 0, 1]), if nothing else uses the slices. */
pln_status pln_simplify_take_pieces(pln_rewrite_context *ctx, pln_ref *out) {
  int64_t positions[MAX_POSITIONS];
  uint32_t n = 0;
  pln_piece first = {0}, piece;
  int64_t axis = pln_call_int(&ctx->call, "axis", 0);
  if (ctx->call.n_args < 2 || ctx->call.n_args > MAX_PIECES ||
      pln_type_rank(ctx->engine, ctx->type) < 2)
    return PLN_OK;
  axis += axis < 0 ? pln_type_rank(ctx->engine, ctx->type) : 0;
  for (uint32_t i = 0; i < ctx->call.n_args; i++) {
    if (!pln_rule_is_only_use(ctx, i) ||
        !pln_read_piece(ctx->call.graph, pln_rule_arg(ctx, i), &piece) ||
        piece.axis != axis || (i > 0 && piece.x != first.x) ||
        piece.end - piece.begin > MAX_POSITIONS - n)
      return PLN_OK;
    first = i == 0 ? piece : first;
    for (int64_t at = piece.begin; at < piece.end; at++)
      positions[n++] = at;
  }
  return pln_take_positions(ctx, first.x, axis, n, positions, out);
}

/* --------------------------------------------------------------------- signs
 */

/* Reads which operands of a concatenation along the last axis are negated;
 * false if none is, or an extent is not known. */
static bool read_signs(const pln_rewrite_context *ctx, const pln_infer *join,
                       int8_t *signs, uint32_t *n) {
  const pln_graph *g = ctx->call.graph;
  uint32_t negated = 0;
  *n = 0;
  for (uint32_t i = 0; i < join->n_args; i++) {
    int64_t rank = pln_arg_rank(join, i);
    bool minus = pln_is_call(g, join->args[i], PLN_OP_NEG) &&
                 pln_rule_driver_uses(ctx->driver, join->args[i]) == 1;
    pln_dim extent =
        rank < 1 ? PLN_DIM_UNKNOWN : pln_arg_dims(join, i)[rank - 1];
    if (!PLN_DIM_IS_CONST(extent) || extent < 0 || extent > MAX_POSITIONS - *n)
      return false;
    for (int64_t k = 0; k < extent; k++)
      signs[(*n)++] = minus ? -1 : 1;
    negated += minus;
  }
  return negated > 0;
}

static pln_status build_unsigned(pln_rewrite_context *ctx, pln_ref join,
                                 pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  const pln_node n = g->nodes[join];
  pln_ref args[MAX_PIECES];
  for (uint32_t i = 0; i < n.count; i++) {
    pln_ref arg = pln_operand(g, join, i);
    bool minus = pln_is_call(g, arg, PLN_OP_NEG) &&
                 pln_rule_driver_uses(ctx->driver, arg) == 1;
    args[i] = minus ? pln_operand(g, arg, 0) : arg;
  }
  return pln_rule_build(ctx, PLN_OP_CONCAT, n.attrs, n.count, args, out);
}

static pln_status build_signs(pln_rewrite_context *ctx, pln_dtype dtype,
                              uint32_t n, const int8_t *signs, pln_ref *out) {
  int64_t dims[1] = {n};
  char bytes[MAX_POSITIONS * sizeof(double)];
  size_t size = pln_dtype_bits(dtype) / 8;
  pln_tensor *tensor;
  pln_builder *b = pln_rewrite_builder(ctx->rw);
  if (!b)
    return PLN_ERR_NOMEM;
  for (uint32_t i = 0; i < n; i++)
    pln_float_store(dtype, signs[i], bytes + i * size);
  PLN_TRY(pln_tensor_from_bytes(ctx->engine, dtype, 1, dims, bytes, n * size,
                                &tensor));
  pln_status status = pln_build_constant(b, tensor, out);
  pln_tensor_release(tensor);
  return status;
}

/* The operand with the signs must have as many elements on the last axis. */
static bool takes_signs(const pln_rewrite_context *ctx, pln_ref x, uint32_t n) {
  pln_type type = ctx->call.graph->nodes[x].type;
  int32_t rank = pln_type_rank(ctx->engine, type);
  return rank >= 1 && pln_dtype_is_float(pln_type_dtype(ctx->engine, type)) &&
         pln_type_dims(ctx->engine, type)[rank - 1] == (pln_dim)n;
}

/* multiply(concatenate(negative(a), b), t) =>
 * multiply(concatenate(a, b), multiply(t, [-1 .. -1, 1 .. 1])), if nothing else
 * uses the concatenation and the negation: other products with t share its
 * signs. */
pln_status pln_simplify_move_signs(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  int8_t signs[MAX_POSITIONS];
  for (uint32_t i = 0; i < 2; i++) {
    pln_ref join = pln_rule_arg(ctx, i), args[2] = {pln_rule_arg(ctx, 1 - i)};
    uint32_t n;
    if (!pln_is_call(g, join, PLN_OP_CONCAT) ||
        g->nodes[join].count > MAX_PIECES || !pln_rule_is_only_use(ctx, i))
      continue;
    pln_infer call = pln_rule_operand(ctx, i);
    int64_t axis = pln_call_int(&call, "axis", 0);
    if ((axis != -1 &&
         axis != pln_type_rank(ctx->engine, g->nodes[join].type) - 1) ||
        !read_signs(ctx, &call, signs, &n) || !takes_signs(ctx, args[0], n))
      continue;
    pln_dtype dtype = pln_type_dtype(ctx->engine, g->nodes[join].type);
    PLN_TRY(build_unsigned(ctx, join, &join));
    PLN_TRY(build_signs(ctx, dtype, n, signs, &args[1]));
    PLN_TRY(pln_rule_build(ctx, PLN_OP_MUL, 0, 2, args, &args[0]));
    args[1] = join;
    if (join == PLN_NONE || args[0] == PLN_NONE)
      return PLN_OK;
    return pln_rule_replace_call(ctx, PLN_OP_MUL, 0, 2, args, out);
  }
  return PLN_OK;
}
