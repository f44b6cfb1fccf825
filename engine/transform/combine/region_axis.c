/* region_axis.c: the axis along which the results of a tuple of nodes can be
 * concatenated, from those of its operands. Called by region.c.
 *
 * Each operator that passes an axis through has a function here; for others
 * there is none, and regions end before them. */

#include "transform/combine/region.h"

typedef struct axis_query {
  const pln_combine *c;
  const pln_region *r;
  const pln_combine_tuple *operand; /* tuple of operand 0 */
  pln_combine_tuple *t;
  pln_infer call; /* the first node's */
  int32_t rank;   /* of the results */
} axis_query;

static const pln_dim *dims_of(const pln_combine *c, pln_ref node) {
  return pln_type_dims(c->engine, c->graph->nodes[node].type);
}

static int32_t rank_of(const pln_combine *c, pln_ref node) {
  return pln_type_rank(c->engine, c->graph->nodes[node].type);
}

bool pln_region_read_sizes(const pln_combine *c, const pln_region *r,
                           pln_combine_tuple *t) {
  int64_t total = 0;
  for (uint32_t j = 0; j < r->k; j++) {
    int32_t rank = rank_of(c, t->nodes[j]);
    if (rank != rank_of(c, t->nodes[0]) || (int32_t)t->axis >= rank)
      return false;
    pln_dim size = dims_of(c, t->nodes[j])[t->axis];
    if (!PLN_DIM_IS_CONST(size) || size <= 0 || size > INT32_MAX)
      return false;
    t->sizes[j] = size;
    total += size;
  }
  return total <= INT32_MAX;
}

static bool have_equal_sizes(const pln_region *r, const pln_combine_tuple *a,
                             const pln_combine_tuple *b) {
  return !memcmp(a->sizes, b->sizes, r->k * sizeof *a->sizes);
}

/* Operand `i` is the same for all members, or there is none. */
static bool is_shared(const axis_query *q, uint32_t i) {
  return i >= q->call.n_args ||
         pln_region_operand(q->c, q->r, q->t, i) == PLN_OPERAND_SHARED;
}

static bool are_shared_from(const axis_query *q, uint32_t i) {
  for (; i < q->call.n_args; i++)
    if (!is_shared(q, i))
      return false;
  return true;
}

static int64_t from_front(int64_t axis, int64_t rank) {
  return axis < 0 ? axis + rank : axis;
}

/* ------------------------------------------------------------- elementwise */

/* The result's axis must lie where operand `i` has extent 1 or no axis, so that
 * each member broadcasts it. */
static bool broadcasts_along(const axis_query *q, uint32_t i, int64_t axis) {
  int32_t rank = pln_arg_rank(&q->call, i);
  int64_t at = axis - q->rank + rank;
  if (pln_arg_absent(&q->call, i))
    return true;
  return rank >= 0 && (at < 0 || pln_arg_dims(&q->call, i)[at] == 1);
}

/* Constants that do not broadcast have the members' extents along the axis,
 * also if they are the same for all. */
static bool are_weights_along(const axis_query *q, uint32_t i, int64_t axis,
                              const int64_t *sizes) {
  int64_t at = axis - q->rank + pln_arg_rank(&q->call, i);
  for (uint32_t j = 0; at >= 0 && j < q->r->k; j++) {
    pln_ref arg = pln_operand(q->c->graph, q->t->nodes[j], i);
    if (q->c->graph->nodes[arg].kind != PLN_CONSTANT ||
        dims_of(q->c, arg)[at] != sizes[j])
      return false;
  }
  return at >= 0;
}

static bool broadcast_operand(axis_query *q, uint32_t i, int64_t *axis,
                              const pln_combine_tuple **first) {
  const pln_combine_tuple *t = pln_region_operand_tuple(q->c, q->r, q->t, i);
  int64_t at = t->axis + q->rank - (int64_t)pln_arg_rank(&q->call, i);
  if (*first && (at != *axis || !have_equal_sizes(q->r, t, *first)))
    return false;
  *axis = at;
  *first = t;
  return true;
}

/* Elementwise with broadcasting: tuples of equal extents along one axis. */
static bool find_broadcast_axis(axis_query *q) {
  const pln_combine_tuple *first = NULL;
  int64_t axis = 0;
  for (uint32_t i = 0; i < q->call.n_args; i++)
    if (pln_region_operand(q->c, q->r, q->t, i) == PLN_OPERAND_TUPLE &&
        !broadcast_operand(q, i, &axis, &first))
      return false;
  for (uint32_t i = 0; first && i < q->call.n_args; i++) {
    pln_operand_class kind = pln_region_operand(q->c, q->r, q->t, i);
    bool good = kind == PLN_OPERAND_TUPLE ||
                (kind == PLN_OPERAND_SHARED && broadcasts_along(q, i, axis)) ||
                ((kind == PLN_OPERAND_SHARED || kind == PLN_OPERAND_WEIGHTS) &&
                 are_weights_along(q, i, axis, first->sizes)) ||
                pln_region_has_numbers(q->c, q->r, q->t, i);
    if (!good)
      return false;
  }
  q->t->axis = (uint32_t)axis;
  return first && pln_region_read_sizes(q->c, q->r, q->t) &&
         have_equal_sizes(q->r, q->t, first);
}

/* -------------------------------------------------------------------- axes */

bool pln_transpose_axes(const pln_graph *graph, pln_ref node, int64_t *axes) {
  const pln_node *n = &graph->nodes[node];
  int32_t rank = pln_type_rank(graph->engine, n->type);
  const pln_attr *perm = pln_attrs_find(graph->engine, n->attrs, "axes");
  if (rank < 0 || rank > PLN_MAX_RANK ||
      (perm && (perm->kind != PLN_ATTR_INTS || perm->count != (uint32_t)rank)))
    return false;
  for (int32_t i = 0; i < rank; i++) {
    axes[i] = perm ? perm->v.ints[i] : rank - 1 - i;
    if (axes[i] < 0 || axes[i] >= rank)
      return false;
  }
  return true;
}

static bool find_transposed_axis(axis_query *q) {
  const pln_graph *g = q->c->graph;
  int64_t axes[PLN_MAX_RANK], other[PLN_MAX_RANK];
  size_t size = (size_t)q->rank * sizeof *axes;
  if (!pln_transpose_axes(g, q->t->nodes[q->t->lead], axes))
    return false;
  for (int32_t i = 0; i < q->rank; i++)
    if (axes[i] == q->operand->axis)
      q->t->axis = (uint32_t)i;
  for (uint32_t j = 0; j < q->r->k; j++) {
    if (!pln_transpose_axes(g, q->t->nodes[j], other))
      return false;
    q->t->n_differ += memcmp(axes, other, size) != 0;
  }
  memcpy(q->t->sizes, q->operand->sizes, sizeof q->t->sizes);
  return true;
}

/* Sets the axis after the axes marked in `gone` were removed. */
static bool axis_after_removal(axis_query *q, const bool *gone) {
  uint32_t axis = q->operand->axis;
  for (uint32_t i = 0; i < q->operand->axis; i++)
    axis -= gone[i];
  q->t->axis = axis;
  return !gone[q->operand->axis];
}

/* Marks the listed axes of `rank`; false if one is not known. */
static bool mark_axes(const pln_list *list, int64_t rank, bool *marked) {
  for (uint32_t i = 0; i < list->count; i++) {
    pln_dim axis = pln_list_at(list, i);
    if (!PLN_DIM_IS_CONST(axis) || axis < -rank || axis >= rank)
      return false;
    marked[from_front(axis, rank)] = true;
  }
  return list->given && list->sized;
}

static bool find_reduced_axis(axis_query *q) {
  bool gone[PLN_MAX_RANK] = {false};
  pln_list axes = pln_arg_list(&q->call, 1, "axes");
  bool one = q->call.op == PLN_OP_ARG_MAX || q->call.op == PLN_OP_ARG_MIN;
  int64_t rank = pln_arg_rank(&q->call, 0);
  if (one || axes.count == 0 || pln_call_int(&q->call, "exclude", 0) ||
      !mark_axes(&axes, rank, gone) || gone[q->operand->axis])
    return false;
  q->t->axis = q->operand->axis;
  return pln_call_int(&q->call, "keepdims", 1) || axis_after_removal(q, gone);
}

static bool find_squeezed_axis(axis_query *q) {
  bool gone[PLN_MAX_RANK] = {false};
  pln_list axes = pln_arg_list(&q->call, 1, "axes");
  return mark_axes(&axes, pln_arg_rank(&q->call, 0), gone) &&
         axis_after_removal(q, gone);
}

static bool find_unsqueezed_axis(axis_query *q) {
  bool added[PLN_MAX_RANK] = {false};
  pln_list axes = pln_arg_list(&q->call, 1, "axes");
  uint32_t at = 0;
  if (!mark_axes(&axes, q->rank, added))
    return false;
  for (uint32_t i = 0; i < (uint32_t)q->rank; i++)
    if (!added[i] && at++ == q->operand->axis)
      q->t->axis = i;
  return true;
}

/* Softmax and the like: independent along all axes but one. */
static bool find_softmax_axis(axis_query *q) {
  q->t->axis = q->operand->axis;
  return !pln_call_int(&q->call, "coerce_2d", 0) &&
         from_front(pln_call_int(&q->call, "axis", -1), q->rank) !=
             q->operand->axis;
}

/* Normalisations over the axes from `axis` on. */
static bool find_normalised_axis(axis_query *q) {
  q->t->axis = q->operand->axis;
  return from_front(pln_call_int(&q->call, "axis", -1), q->rank) >
         q->operand->axis;
}

static bool find_sliced_axis(axis_query *q) {
  bool cut[PLN_MAX_RANK] = {false};
  pln_list axes = pln_arg_list(&q->call, 3, "axes");
  q->t->axis = q->operand->axis;
  return mark_axes(&axes, q->rank, cut) && !cut[q->operand->axis];
}

static bool find_taken_axis(axis_query *q) {
  int64_t rank = pln_arg_rank(&q->call, 0), indices = pln_arg_rank(&q->call, 1);
  int64_t axis = from_front(pln_call_int(&q->call, "axis", 0), rank);
  bool behind = q->operand->axis > axis;
  q->t->axis = q->operand->axis + (behind ? (uint32_t)(indices - 1) : 0);
  return indices >= 0 && axis != q->operand->axis &&
         !pln_call_int(&q->call, "batch_dims", 0);
}

/* Rows of a product, or its batch axes, where operand 1 has none. */
static bool find_product_axis(axis_query *q) {
  q->t->axis = q->operand->axis;
  return pln_arg_rank(&q->call, 1) == 2 &&
         (int64_t)q->operand->axis < pln_arg_rank(&q->call, 0) - 1;
}

/* All operands are tuples that agree in the axis, which is another one. */
static bool find_joined_axis(axis_query *q) {
  int64_t axis = from_front(pln_call_int(&q->call, "axis", 0), q->rank);
  for (uint32_t i = 0; i < q->call.n_args; i++) {
    if (pln_region_operand(q->c, q->r, q->t, i) != PLN_OPERAND_TUPLE)
      return false;
    const pln_combine_tuple *t = pln_region_operand_tuple(q->c, q->r, q->t, i);
    if (t->axis != q->operand->axis || !have_equal_sizes(q->r, t, q->operand))
      return false;
  }
  q->t->axis = q->operand->axis;
  return axis != q->operand->axis;
}

/* ----------------------------------------------------------------- reshape
 */

static pln_dim product_from(pln_engine *e, const pln_dim *dims, int32_t begin,
                            int32_t end) {
  pln_dim product = 1;
  for (int32_t i = begin; i < end; i++)
    if (pln_dim_binary(e, PLN_DIM_MUL, product, dims[i], &product) != PLN_OK)
      return PLN_DIM_UNKNOWN;
  return product;
}

/* Member `j` keeps its block of elements: the axes from `at` on have those of
 * the operand's axes from the tuple's axis on. */
static bool keeps_block(axis_query *q, uint32_t j, int32_t at) {
  pln_engine *e = q->c->engine;
  pln_ref x = q->operand->nodes[j];
  pln_dim before = product_from(e, dims_of(q->c, x), (int32_t)q->operand->axis,
                                rank_of(q->c, x));
  return before != PLN_DIM_UNKNOWN &&
         before == product_from(e, dims_of(q->c, q->t->nodes[j]), at, q->rank);
}

static bool keeps_blocks(axis_query *q, int32_t at) {
  const pln_combine *c = q->c;
  pln_dim inner =
      product_from(c->engine, dims_of(c, q->t->nodes[0]), at + 1, q->rank);
  for (uint32_t j = 0; j < q->r->k; j++)
    if (!keeps_block(q, j, at) || inner == PLN_DIM_UNKNOWN ||
        product_from(c->engine, dims_of(c, q->t->nodes[j]), at + 1, q->rank) !=
            inner)
      return false;
  return true;
}

/* The target shape can be written for the combined operand: it is constant, and
 * a 0 does not copy the extent that grows to another axis. */
static bool target_is_writable(const axis_query *q) {
  pln_list list = pln_arg_list(&q->call, 1, "newshape");
  if (pln_arg_absent(&q->call, 1) || !pln_list_known(&list) ||
      (int32_t)list.count != q->rank)
    return false;
  for (uint32_t i = 0; i < list.count; i++)
    if (pln_list_at(&list, i) == 0 &&
        ((i == q->operand->axis) != (i == q->t->axis) ||
         pln_call_int(&q->call, "allowzero", 0)))
      return false;
  return true;
}

/* The results of all members have the same extents, but for axis `at`. One of
 * them may be unknown, as the others tell it. */
static bool have_equal_shapes_but(const axis_query *q, int32_t at) {
  const pln_dim *first = dims_of(q->c, q->t->nodes[0]);
  uint32_t unknown = 0;
  for (int32_t i = 0; i < q->rank; i++)
    unknown += i != at && first[i] == PLN_DIM_UNKNOWN;
  for (uint32_t j = 1; j < q->r->k; j++) {
    const pln_dim *dims = dims_of(q->c, q->t->nodes[j]);
    for (int32_t i = 0; i < q->rank; i++)
      if (i != at && dims[i] != first[i])
        return false;
  }
  return unknown <= 1;
}

static bool find_reshaped_axis(axis_query *q) {
  for (uint32_t j = 0; j < q->r->k; j++)
    if (rank_of(q->c, q->t->nodes[j]) != q->rank)
      return false;
  for (int32_t at = q->rank - 1; at >= 0; at--)
    if (keeps_blocks(q, at) && have_equal_shapes_but(q, at)) {
      q->t->axis = (uint32_t)at;
      return target_is_writable(q) && pln_arg_list(&q->call, 1, NULL).given;
    }
  return false;
}

static bool have_constant_targets(const axis_query *q) {
  for (uint32_t j = 0; j < q->r->k; j++) {
    pln_ref node = q->t->nodes[j];
    if (q->c->graph->nodes[node].count != 2 ||
        q->c->graph->nodes[pln_operand(q->c->graph, node, 1)].kind !=
            PLN_CONSTANT)
      return false;
  }
  return true;
}

/* ---------------------------------------------------------------- dispatch */

static bool find_split_axis(axis_query *q) {
  int64_t axis = pln_call_int(&q->call, "axis", 0);
  q->t->axis = q->operand->axis;
  memcpy(q->t->sizes, q->operand->sizes, sizeof q->t->sizes);
  return from_front(axis, pln_arg_rank(&q->call, 0)) != q->operand->axis;
}

static bool find_field_axis(axis_query *q) {
  q->t->axis = q->operand->axis;
  return pln_region_read_sizes(q->c, q->r, q->t) &&
         have_equal_sizes(q->r, q->t, q->operand);
}

static bool find_other_axis(axis_query *q) {
  uint32_t traits = pln_op_row(q->c->engine, q->call.op)->traits;
  if (q->call.op == PLN_OP_CONCAT)
    return find_joined_axis(q);
  if (!are_shared_from(q, 1))
    return false;
  switch (q->call.op) {
  case PLN_OP_SQUEEZE: return find_squeezed_axis(q);
  case PLN_OP_UNSQUEEZE: return find_unsqueezed_axis(q);
  case PLN_OP_SOFTMAX:
  case PLN_OP_LOG_SOFTMAX: return find_softmax_axis(q);
  case PLN_OP_LAYER_NORMALIZATION:
  case PLN_OP_RMS_NORMALIZATION: return find_normalised_axis(q);
  case PLN_OP_SLICE: return find_sliced_axis(q);
  case PLN_OP_GATHER: return find_taken_axis(q);
  case PLN_OP_MAT_MUL: return find_product_axis(q);
  default: return (traits & PLN_TRAIT_REDUCE) && find_reduced_axis(q);
  }
}

static bool find_call_axis(axis_query *q) {
  uint32_t traits = pln_op_row(q->c->engine, q->call.op)->traits;
  if (q->call.op == PLN_OP_EXPAND || (traits & PLN_TRAIT_RANDOM))
    return false;
  if (traits & (PLN_TRAIT_ELEMENTWISE | PLN_TRAIT_BROADCAST))
    return find_broadcast_axis(q);
  if (pln_region_operand(q->c, q->r, q->t, 0) != PLN_OPERAND_TUPLE)
    return false;
  q->operand = pln_region_operand_tuple(q->c, q->r, q->t, 0);
  if (q->call.op == PLN_OP_TRANSPOSE)
    return find_transposed_axis(q);
  if (q->call.op == PLN_OP_RESHAPE)
    return have_constant_targets(q) && find_reshaped_axis(q) &&
           pln_region_read_sizes(q->c, q->r, q->t);
  return find_other_axis(q) && pln_region_read_sizes(q->c, q->r, q->t) &&
         have_equal_sizes(q->r, q->t, q->operand);
}

bool pln_region_find_axis(const pln_combine *c, const pln_region *r,
                          pln_combine_tuple *t) {
  const pln_node *n = &c->graph->nodes[t->nodes[t->lead]];
  axis_query q = {.c = c, .r = r, .t = t};
  q.call = pln_infer_of(c->graph, t->nodes[t->lead]);
  q.rank = pln_type_rank(c->engine, n->type);
  if (n->kind == PLN_CALL && n->data == PLN_OP_SPLIT && n->results &&
      pln_region_operand(c, r, t, 0) == PLN_OPERAND_TUPLE &&
      are_shared_from(&q, 1)) {
    q.operand = pln_region_operand_tuple(c, r, t, 0);
    return find_split_axis(&q);
  }
  if (n->results || q.rank < 0 || q.rank > PLN_MAX_RANK)
    return false;
  if (n->kind == PLN_TUPLE_GET_ITEM) {
    q.operand = pln_region_operand_tuple(c, r, t, 0);
    return pln_region_operand(c, r, t, 0) == PLN_OPERAND_TUPLE &&
           find_field_axis(&q);
  }
  return find_call_axis(&q);
}
