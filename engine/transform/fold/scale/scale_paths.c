/* scale_paths.c: moves a factor to the constants that its operand is linear in.
 * Called by FoldConstantScale, after the factors that stand behind a product
 * alone.
 *
 * From the factor up, each operator says which operands to scale instead of its
 * result: both of a sum, one of a product, the part that a Split gives. A node
 * is scaled only if all its users ask for the same; parts of a Split are
 * independent of each other. Nodes are visited in descending order, each after
 * all its users. Factors are for all elements, or for an interval of one axis.
 *
 *     multiply(matmul(split(reshape(matmul(%x, W), ..)).0, %y), 2f)
 *       =>   matmul(split(reshape(matmul(%x, W * [2 .. 2 1 .. 1]), ..)).0, %y)
 */

#include "transform/fold/scale/scale_paths.h"

#include <math.h>

#include "ir/analysis/users.h"
#include "op/infer/infer.h"
#include "rule/rule.h"
#include "transform/fold/weight.h"

enum { MAX_PATH_NODES = 64, MAX_EDITS = 16, MAX_ROUNDS = 32 };

/* Which elements of a node are scaled: all, or [begin, end) of an axis, `each`
 * of them by the same factor. */
typedef struct scaled_range {
  int32_t axis; /* -1: all elements */
  int64_t begin, end, each;
} scaled_range;

/* A constant operand to be scaled. `axis` is one of the constant's own. */
typedef struct scale_edit {
  pln_ref node;
  uint32_t arg;
  scaled_range range;
} scale_edit;

/* A factor and the constants that take it up. */
typedef struct scale_plan {
  pln_ref root;
  uint32_t x; /* the operand that remains of the root */
  bool divides;
  pln_weight factors; /* one, or one per position of `range` */
  scaled_range range; /* of the root */
  uint32_t n_edits;
  scale_edit edits[MAX_EDITS];
  bool refused, started;
  struct scale_plan *next;
} scale_plan;

typedef struct scale_walk {
  pln_engine *engine;
  const pln_graph *graph;
  pln_budget *budget;
  bool halves;
  pln_users u;
  uint32_t *asked;      /* by node: uses that ask for scaling */
  scaled_range *range;  /* by node, where asked */
  scale_plan **plan_of; /* by node: the plan of which it is root or edited */
  scale_plan *plans;
  pln_ref pending[MAX_PATH_NODES], seen[MAX_PATH_NODES];
  uint32_t n_pending, n_seen;
  uint32_t choice; /* the operand of a product of two tensors */
} scale_walk;

static double factor_at(const scale_plan *p, size_t i) {
  double number = pln_weight_at(&p->factors, p->factors.count == 1 ? 0 : i);
  return p->divides ? 1 / number : number;
}

static bool are_positive(const scale_plan *p) {
  for (size_t i = 0; i < p->factors.count; i++)
    if (!(factor_at(p, i) > 0))
      return false;
  return true;
}

/* ------------------------------------------------------------------ demands
 */

static const pln_dim *node_dims(const scale_walk *w, pln_ref node,
                                int32_t *rank) {
  pln_type type = w->graph->nodes[node].type;
  *rank = pln_type_rank(w->engine, type);
  return *rank > 0 ? pln_type_dims(w->engine, type) : NULL;
}

static bool equal_ranges(const scaled_range *a, const scaled_range *b) {
  return a->axis == b->axis &&
         (a->axis < 0 ||
          (a->begin == b->begin && a->end == b->end && a->each == b->each));
}

/* Asks for the scaling of `node`; false if another user asks for something
 * else. */
static bool ask(scale_walk *w, pln_ref node, scaled_range range) {
  if (w->asked[node])
    return w->asked[node]++, equal_ranges(&w->range[node], &range);
  if (w->n_seen == MAX_PATH_NODES)
    return false;
  w->asked[node] = 1;
  w->range[node] = range;
  w->seen[w->n_seen++] = node;
  w->pending[w->n_pending++] = node;
  return true;
}

static pln_ref pop_last(scale_walk *w) {
  uint32_t last = 0;
  for (uint32_t i = 1; i < w->n_pending; i++)
    if (w->pending[i] > w->pending[last])
      last = i;
  pln_ref node = w->pending[last];
  w->pending[last] = w->pending[--w->n_pending];
  return node;
}

static void forget_demands(scale_walk *w) {
  for (uint32_t i = 0; i < w->n_seen; i++)
    w->asked[w->seen[i]] = 0;
  w->n_seen = w->n_pending = 0;
}

/* The range as one of operand `arg`, which is broadcast to the node's shape;
 * false if the operand has a single element for the range. */
static bool align_range(const scale_walk *w, pln_ref node, uint32_t arg,
                        scaled_range *range) {
  int32_t rank, own;
  const pln_dim *dims = node_dims(w, pln_operand(w->graph, node, arg), &own);
  (void)node_dims(w, node, &rank);
  if (own < 0 || rank < 0)
    return false;
  if (range->axis < 0)
    return true;
  range->axis += own - rank;
  return range->axis >= 0 && dims[range->axis] != 1;
}

/* -------------------------------------------------------------------- edits
 */

static bool is_affordable(scale_walk *w, pln_ref constant,
                          const pln_weight *weight) {
  size_t freed =
      pln_users_once(&w->u, constant) && !weight->splat ? weight->bytes : 0;
  return weight->bytes <= PLN_BUDGET_MAX && weight->count > 0 &&
         (w->halves || !pln_dtype_is_half(weight->dtype)) && !weight->filled &&
         pln_budget_allows(w->budget, weight->bytes, freed);
}

static bool add_edit(scale_walk *w, scale_plan *p, pln_ref node, uint32_t arg,
                     scaled_range range) {
  pln_ref constant = pln_operand(w->graph, node, arg);
  pln_weight weight;
  if (w->graph->nodes[constant].kind != PLN_CONSTANT ||
      p->n_edits == MAX_EDITS || w->plan_of[node] ||
      !pln_weight_read(w->graph, constant, &weight) ||
      !is_affordable(w, constant, &weight) ||
      (range.axis >= 0 && (uint32_t)range.axis >= weight.rank))
    return false;
  p->edits[p->n_edits++] = (scale_edit){node, arg, range};
  return true;
}

/* Scales operand `arg` of an elementwise operator. */
static bool scale_arg(scale_walk *w, scale_plan *p, pln_ref node, uint32_t arg,
                      scaled_range range) {
  pln_ref x = pln_operand(w->graph, node, arg);
  if (!align_range(w, node, arg, &range))
    return false;
  return w->graph->nodes[x].kind == PLN_CONSTANT
             ? add_edit(w, p, node, arg, range)
             : ask(w, x, range);
}

/* --------------------------------------------------------------- operators */

static bool is_constant_arg(const scale_walk *w, pln_ref node, uint32_t arg) {
  return w->graph->nodes[pln_operand(w->graph, node, arg)].kind == PLN_CONSTANT;
}

/* Returns true if operand `arg` is a product with a constant that has all
 * elements of the range. */
static bool is_scaled_arg(const scale_walk *w, pln_ref node, uint32_t arg,
                          scaled_range range) {
  const pln_graph *g = w->graph;
  pln_ref x = pln_operand(g, node, arg);
  if (g->nodes[x].kind != PLN_CALL || g->nodes[x].data != PLN_OP_MUL ||
      g->nodes[x].count != 2 || !align_range(w, node, arg, &range))
    return false;
  for (uint32_t i = 0; i < 2; i++) {
    scaled_range own = range;
    if (is_constant_arg(w, x, i) && align_range(w, x, i, &own))
      return true;
  }
  return false;
}

/* The operand to scale of a product of elements: a constant, a product with
 * one, or the first that has all elements. */
static bool scale_one_factor(scale_walk *w, scale_plan *p, pln_ref node,
                             scaled_range range) {
  const pln_graph *g = w->graph;
  for (uint32_t i = 0; i < 2; i++) {
    scaled_range own = range;
    if (is_constant_arg(w, node, i) && align_range(w, node, i, &own))
      return add_edit(w, p, node, i, own);
  }
  for (uint32_t i = 0; i < 2; i++)
    if (is_scaled_arg(w, node, i, range))
      return scale_arg(w, p, node, i, range);
  for (uint32_t i = 0; i < 2; i++)
    if (!is_constant_arg(w, node, i) &&
        pln_same_extents(w->engine, g->nodes[pln_operand(g, node, i)].type,
                         g->nodes[node].type))
      return scale_arg(w, p, node, i, range);
  return false;
}

static bool scale_transposed(scale_walk *w, pln_ref node, scaled_range range) {
  const pln_graph *g = w->graph;
  const pln_attr *perm =
      pln_attrs_find(w->engine, g->nodes[node].attrs, "axes");
  if (range.axis >= 0) {
    if (!perm || perm->kind != PLN_ATTR_INTS ||
        (uint32_t)range.axis >= perm->count)
      return false;
    range.axis = (int32_t)perm->v.ints[range.axis];
  }
  return ask(w, pln_operand(g, node, 0), range);
}

static pln_dim trailing(const scale_walk *w, const pln_dim *dims, int32_t from,
                        int32_t rank) {
  pln_dim product = 1;
  for (int32_t i = from; i < rank; i++)
    if (pln_dim_binary(w->engine, PLN_DIM_MUL, product, dims[i], &product) !=
        PLN_OK)
      return PLN_DIM_UNKNOWN;
  return product;
}

/* Maps the range to the axis of the operand whose block of elements it divides.
 */
static bool scale_reshaped(scale_walk *w, pln_ref node, scaled_range range) {
  pln_ref x = pln_operand(w->graph, node, 0);
  int32_t rank, own;
  const pln_dim *to = node_dims(w, node, &rank), *from = node_dims(w, x, &own);
  if (range.axis < 0)
    return ask(w, x, range);
  if (rank < 1 || own < 1)
    return false;
  pln_dim block = trailing(w, to, range.axis, rank);
  pln_dim inner = trailing(w, to, range.axis + 1, rank);
  for (int32_t axis = own - 1; axis >= 0; axis--) {
    pln_dim size = trailing(w, from, axis + 1, own);
    if (block == PLN_DIM_UNKNOWN || trailing(w, from, axis, own) != block)
      continue;
    if (!PLN_DIM_IS_CONST(inner) || !PLN_DIM_IS_CONST(size) || size < 1 ||
        inner > INT32_MAX || range.begin * inner % size ||
        range.each * inner % size)
      return false;
    range = (scaled_range){axis, range.begin * inner / size,
                           range.end * inner / size, range.each * inner / size};
    return ask(w, x, range);
  }
  return false;
}

/* A take along another axis. */
static bool scale_taken(scale_walk *w, pln_ref node, scaled_range range) {
  const pln_graph *g = w->graph;
  const pln_node *n = &g->nodes[node];
  pln_ref x = pln_operand(g, node, 0);
  int32_t rank, indices;
  int64_t axis = pln_attrs_int(w->engine, n->attrs, "axis", 0);
  (void)node_dims(w, x, &rank);
  (void)node_dims(w, pln_operand(g, node, 1), &indices);
  axis += axis < 0 ? rank : 0;
  return (range.axis < 0 || (indices == 1 && axis != range.axis)) &&
         ask(w, x, range);
}

/* A slice of other axes. */
static bool scale_sliced(scale_walk *w, pln_ref node, scaled_range range) {
  const pln_graph *g = w->graph;
  const pln_node *n = &g->nodes[node];
  pln_infer call = {.engine = w->engine,
                    .graph = g,
                    .args = pln_operands(g, n),
                    .n_args = n->count,
                    .op = n->data,
                    .attrs = n->attrs};
  pln_list axes = pln_arg_list(&call, 3, "axes");
  int64_t rank = pln_arg_rank(&call, 0);
  for (uint32_t i = 0; range.axis >= 0 && i < axes.count; i++) {
    pln_dim axis = pln_list_at(&axes, i);
    if (!PLN_DIM_IS_CONST(axis) ||
        (axis < 0 ? axis + rank : axis) == range.axis)
      return false;
  }
  return (range.axis < 0 || axes.given) && ask(w, call.args[0], range);
}

static bool scale_joined(scale_walk *w, pln_ref node, scaled_range range) {
  const pln_graph *g = w->graph;
  const pln_node *n = &g->nodes[node];
  int64_t axis = pln_attrs_int(w->engine, n->attrs, "axis", 0);
  axis += axis < 0 ? pln_type_rank(w->engine, n->type) : 0;
  if (range.axis == axis)
    return false;
  for (uint32_t i = 0; i < n->count; i++)
    if (is_constant_arg(w, node, i) || !ask(w, pln_operand(g, node, i), range))
      return false;
  return true;
}

/* The range of a Split's operand that is scaled with field `index`. */
static bool scale_field(scale_walk *w, pln_ref node, scaled_range range) {
  const pln_graph *g = w->graph;
  pln_ref split = pln_operand(g, node, 0);
  const pln_node *n = &g->nodes[split];
  int32_t rank = pln_type_rank(w->engine, g->nodes[node].type);
  if (n->kind != PLN_CALL || n->data != PLN_OP_SPLIT || rank < 1 ||
      !pln_op_is_onnx_form(g, split))
    return false;
  int32_t axis = (int32_t)pln_attrs_int(w->engine, n->attrs, "axis", 0);
  axis += axis < 0 ? rank : 0;
  int64_t begin = 0, size = 0;
  for (uint32_t i = 0; i <= g->nodes[node].data; i++) {
    pln_type part = pln_type_part_at(w->engine, n->type, i);
    if (axis < 0 || pln_type_rank(w->engine, part) != rank || axis >= rank ||
        !PLN_DIM_IS_CONST(pln_type_dims(w->engine, part)[axis]))
      return false;
    begin += size;
    size = pln_type_dims(w->engine, part)[axis];
  }
  if (range.axis >= 0 && range.axis != axis)
    return false;
  if (range.axis < 0)
    range = (scaled_range){axis, 0, size, size};
  range.begin += begin;
  range.end += begin;
  return ask(w, split, range);
}

/* A product with a constant weight: the weight and the bias. */
static bool scale_product(scale_walk *w, scale_plan *p, pln_ref node,
                          scaled_range range) {
  const pln_graph *g = w->graph;
  const pln_node *n = &g->nodes[node];
  int32_t rank = pln_type_rank(w->engine, n->type), own;
  bool conv = n->data == PLN_OP_CONV;
  (void)node_dims(w, pln_operand(g, node, 1), &own);
  if (range.axis >= 0 && range.axis != (conv ? 1 : rank - 1))
    return false;
  if (range.axis >= 0 && !conv && own != 2)
    return false;
  bool first = conv || (n->data == PLN_OP_GEMM &&
                        pln_attrs_int(w->engine, n->attrs, "transB", 0));
  scaled_range bias = range;
  range.axis = range.axis < 0 ? -1 : first ? 0 : 1;
  if (!add_edit(w, p, node, 1, range))
    return false;
  if (n->count < 3 || g->nodes[pln_operand(g, node, 2)].kind == PLN_ABSENT)
    return true;
  const pln_dim *dims = node_dims(w, pln_operand(g, node, 2), &own);
  bias.axis = bias.axis < 0 ? -1 : own - 1;
  if (bias.axis >= 0 && dims[own - 1] == 1)
    return false;
  return own >= 0 && (bias.axis >= 0 || range.axis < 0) &&
         add_edit(w, p, node, 2, bias);
}

/* A normalisation with constant scale and bias, one number a channel. */
static bool scale_normalised(scale_walk *w, scale_plan *p, pln_ref node,
                             scaled_range range) {
  const pln_graph *g = w->graph;
  const pln_node *n = &g->nodes[node];
  int32_t rank = pln_type_rank(w->engine, n->type);
  bool layer = n->data == PLN_OP_LAYER_NORMALIZATION;
  int64_t axis = pln_attrs_int(w->engine, n->attrs, "axis", -1);
  if (pln_attrs_int(w->engine, n->attrs, "training_mode", 0) || rank < 2 ||
      (layer && axis != -1 && axis != rank - 1) ||
      (range.axis >= 0 && range.axis != (layer ? rank - 1 : 1)))
    return false;
  range.axis = range.axis < 0 ? -1 : 0;
  for (uint32_t i = 1; i < 3 && i < n->count; i++) {
    pln_ref arg = pln_operand(g, node, i);
    if (g->nodes[arg].kind != PLN_ABSENT &&
        (pln_type_rank(w->engine, g->nodes[arg].type) != 1 ||
         !add_edit(w, p, node, i, range)))
      return false;
  }
  return n->count >= 2;
}

static bool scale_matmul(scale_walk *w, scale_plan *p, pln_ref node,
                         scaled_range range) {
  if (is_constant_arg(w, node, 1))
    return scale_product(w, p, node, range);
  return range.axis < 0 &&
         ask(w, pln_operand(w->graph, node, w->choice), range);
}

static bool scale_all_from(scale_walk *w, scale_plan *p, pln_ref node,
                           uint32_t from, scaled_range range) {
  for (uint32_t i = from; i < w->graph->nodes[node].count; i++)
    if (!scale_arg(w, p, node, i, range))
      return false;
  return true;
}

/* Asks for what makes the scaled result of `node`. */
static bool scale_call(scale_walk *w, scale_plan *p, pln_ref node,
                       scaled_range range) {
  const pln_graph *g = w->graph;
  switch (g->nodes[node].data) {
  case PLN_OP_ADD:
  case PLN_OP_SUB: return scale_all_from(w, p, node, 0, range);
  case PLN_OP_WHERE: return scale_all_from(w, p, node, 1, range);
  case PLN_OP_MUL: return scale_one_factor(w, p, node, range);
  case PLN_OP_DIV: return scale_arg(w, p, node, 0, range);
  case PLN_OP_NEG: return ask(w, pln_operand(g, node, 0), range);
  case PLN_OP_RELU:
    return are_positive(p) && ask(w, pln_operand(g, node, 0), range);
  case PLN_OP_TRANSPOSE: return scale_transposed(w, node, range);
  case PLN_OP_RESHAPE:
  case PLN_OP_FLATTEN:
  case PLN_OP_SQUEEZE:
  case PLN_OP_UNSQUEEZE: return scale_reshaped(w, node, range);
  case PLN_OP_GATHER: return scale_taken(w, node, range);
  case PLN_OP_SLICE: return scale_sliced(w, node, range);
  case PLN_OP_CONCAT: return scale_joined(w, node, range);
  case PLN_OP_MAT_MUL: return scale_matmul(w, p, node, range);
  case PLN_OP_GEMM:
  case PLN_OP_CONV: return scale_product(w, p, node, range);
  case PLN_OP_LAYER_NORMALIZATION:
  case PLN_OP_BATCH_NORMALIZATION:
  case PLN_OP_INSTANCE_NORMALIZATION:
    return scale_normalised(w, p, node, range);
  default: return false;
  }
}

static bool scale_node(scale_walk *w, scale_plan *p, pln_ref node) {
  const pln_graph *g = w->graph;
  const pln_node *n = &g->nodes[node];
  scaled_range range = w->range[node];
  if (w->u.node_scope[node] != w->u.node_scope[p->root] || w->plan_of[node])
    return false;
  if (n->kind == PLN_CALL && n->data == PLN_OP_SPLIT && n->results)
    return ask(w, pln_operand(g, node, 0), range);
  if (w->asked[node] != pln_users_count(&w->u, node) || w->u.is_result[node])
    return false;
  if (n->kind == PLN_TUPLE_GET_ITEM)
    return scale_field(w, node, range);
  return n->kind == PLN_CALL && n->data && n->results == 0 &&
         pln_op_is_onnx_form(g, node) && pln_call_is_valid(g, node) &&
         scale_call(w, p, node, range);
}

/* ------------------------------------------------------------------ forward
 */

/* A use of the root as the data of a product with a constant weight: its rows
 * are scaled. */
static bool scale_rows(scale_walk *w, scale_plan *p, pln_ref user) {
  const pln_graph *g = w->graph;
  const pln_node *n = &g->nodes[user];
  int32_t rank = pln_type_rank(w->engine, g->nodes[p->root].type);
  bool conv = n->kind == PLN_CALL && n->data == PLN_OP_CONV;
  scaled_range range = p->range;
  if (n->kind != PLN_CALL || n->results || n->count < 2 ||
      (n->data != PLN_OP_MAT_MUL && n->data != PLN_OP_GEMM && !conv) ||
      pln_operand(g, user, 0) != p->root || !is_constant_arg(w, user, 1) ||
      w->u.node_scope[user] != w->u.node_scope[p->root] ||
      !pln_op_is_onnx_form(g, user) || !pln_call_is_valid(g, user))
    return false;
  if (conv ? pln_attrs_int(w->engine, n->attrs, "group", 1) != 1
           : pln_type_rank(w->engine, g->nodes[pln_operand(g, user, 1)].type) !=
                     2 ||
                 pln_attrs_int(w->engine, n->attrs, "transA", 0))
    return false;
  if (range.axis >= 0 && range.axis != (conv ? 1 : rank - 1))
    return false;
  range.axis = range.axis < 0                                            ? -1
               : conv || pln_attrs_int(w->engine, n->attrs, "transB", 0) ? 1
                                                                         : 0;
  return add_edit(w, p, user, 1, range);
}

/* All users are products. */
static bool find_products(scale_walk *w, scale_plan *p) {
  uint32_t begin = w->u.first[p->root], end = w->u.first[p->root + 1];
  p->n_edits = 0;
  if (w->u.is_result[p->root] || begin == end || end - begin > MAX_EDITS)
    return false;
  for (uint32_t i = begin; i < end; i++)
    if (!scale_rows(w, p, w->u.users[i]))
      return false;
  return true;
}

/* ----------------------------------------------------------------- planning
 */

/* One number, or numbers along one axis of the result. */
static bool read_factors(const scale_walk *w, pln_ref node, uint32_t i,
                         scale_plan *p) {
  const pln_graph *g = w->graph;
  int32_t rank;
  const pln_dim *dims = node_dims(w, node, &rank);
  pln_weight *f = &p->factors;
  if (!pln_weight_read(g, pln_operand(g, node, i), f) || f->filled ||
      f->count == 0 || f->count > PLN_BUDGET_FREE || (int32_t)f->rank > rank)
    return false;
  p->range = (scaled_range){.axis = -1};
  for (uint32_t k = 0; f->count > 1 && k < f->rank; k++)
    if (f->dims[k] == (int64_t)f->count)
      p->range = (scaled_range){rank - (int32_t)f->rank + (int32_t)k, 0,
                                f->dims[k], 1};
  if (f->count > 1 &&
      (p->range.axis < 0 || dims[p->range.axis] != (pln_dim)f->count))
    return false;
  for (size_t k = 0; k < f->count; k++) {
    double number = factor_at(p, k);
    if (!isfinite(number) || number == 0 || !isfinite(pln_weight_at(f, k)))
      return false;
  }
  return true;
}

/* Reads a multiplication or division by factors that leaves the shape as it
 * is. */
static bool read_root(const scale_walk *w, pln_ref node, scale_plan *p) {
  const pln_graph *g = w->graph;
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || (n->data != PLN_OP_MUL && n->data != PLN_OP_DIV) ||
      n->count != 2 || n->results || !pln_op_is_onnx_form(g, node) ||
      !pln_call_is_valid(g, node))
    return false;
  for (uint32_t i = n->data == PLN_OP_DIV; i < 2; i++) {
    pln_type type = g->nodes[pln_operand(g, node, 1 - i)].type;
    *p = (scale_plan){
        .root = node, .x = 1 - i, .divides = n->data == PLN_OP_DIV};
    if (pln_same_extents(w->engine, type, n->type) &&
        read_factors(w, node, i, p) &&
        p->factors.dtype == pln_type_dtype(w->engine, type))
      return true;
  }
  return false;
}

static bool find_path(scale_walk *w, scale_plan *p) {
  pln_ref x = pln_operand(w->graph, p->root, p->x);
  bool good = ask(w, x, p->range);
  p->n_edits = 0;
  while (good && w->n_pending)
    good = scale_node(w, p, pop_last(w));
  forget_demands(w);
  return good && p->n_edits > 0;
}

static pln_status keep_plan(scale_walk *w, const scale_plan *found) {
  scale_plan *p = pln_mem_new(w->engine, sizeof *p);
  if (!p)
    return pln_nomem(w->engine);
  *p = *found;
  p->next = w->plans;
  w->plans = p;
  w->plan_of[p->root] = p;
  for (uint32_t i = 0; i < p->n_edits; i++)
    w->plan_of[p->edits[i].node] = p;
  return PLN_OK;
}

static pln_status find_plans(scale_walk *w) {
  scale_plan p;
  for (pln_ref i = 0; i < w->graph->n_nodes; i++) {
    if (w->plan_of[i] || !read_root(w, i, &p))
      continue;
    bool found = false;
    for (w->choice = 0; w->choice < 2 && !found; w->choice++)
      found = find_path(w, &p);
    if (found || find_products(w, &p))
      PLN_TRY(keep_plan(w, &p));
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- building
 */

static size_t product_of(const int64_t *dims, uint32_t begin, uint32_t end) {
  size_t product = 1;
  for (uint32_t i = begin; i < end; i++)
    product *= (size_t)dims[i];
  return product;
}

/* The channels of a constant along the axis of the range. */
static pln_channels channels_of(const pln_weight *weight,
                                const scaled_range *range) {
  pln_channels c = {
      .outer = 1, .channels = 1, .inner = weight->count, .group = 1};
  if (range->axis < 0)
    return c;
  uint32_t axis = (uint32_t)range->axis;
  c.outer = c.group = product_of(weight->dims, 0, axis);
  c.channels = (size_t)weight->dims[axis];
  c.inner = product_of(weight->dims, axis + 1, weight->rank);
  return c;
}

/* The factor of position `i` of the axis; `i` is 0 if there is none. */
static double factor_of(const scale_plan *p, const scaled_range *range,
                        int64_t i) {
  if (range->axis < 0)
    return factor_at(p, 0);
  if (i < range->begin || i >= range->end)
    return 1;
  return factor_at(p, (size_t)((i - range->begin) / range->each));
}

static pln_status scale_range(pln_rewrite *rw, const scale_plan *p,
                              const pln_weight *weight,
                              const scaled_range *range, pln_ref *out) {
  pln_channels c = channels_of(weight, range);
  pln_engine *e = pln_rewrite_graph(rw)->engine;
  double *factors = pln_mem_new(e, c.channels * sizeof *factors);
  if (!factors)
    return pln_nomem(e);
  for (size_t i = 0; i < c.channels; i++)
    factors[i] = factor_of(p, range, (int64_t)i);
  pln_status status = pln_weight_scale(rw, weight, &c, factors, out);
  pln_mem_free(e, factors, c.channels * sizeof *factors);
  return status;
}

/* Builds the call with its scaled constants. */
static pln_status edit_call(const scale_plan *p, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  pln_builder *b = pln_rewrite_builder(rw);
  pln_ref args[8];
  if (!b)
    return PLN_ERR_NOMEM;
  pln_node n = b->graph->nodes[*node];
  if (n.count > PLN_COUNT(args))
    return PLN_OK;
  memcpy(args, b->graph->operands + n.first, n.count * sizeof *args);
  for (uint32_t i = 0; i < p->n_edits; i++) {
    const scale_edit *edit = &p->edits[i];
    pln_weight weight;
    pln_ref scaled;
    if (edit->node != old)
      continue;
    if (!pln_weight_read(b->graph, args[edit->arg], &weight))
      return PLN_ERR_FORMAT;
    PLN_TRY(scale_range(rw, p, &weight, &edit->range, &scaled));
    if (scaled == PLN_NONE)
      return PLN_ERR_FORMAT;
    args[edit->arg] = scaled;
  }
  pln_builder_origin(b, b->graph->origin[*node]);
  PLN_TRY(pln_build_call(b, n.data, n.attrs, 0, n.count, args, node));
  return pln_keep_type(rw, *node, n.type);
}

static pln_status visit_scaled(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  scale_walk *w = ud;
  scale_plan *p = w->plan_of[old];
  bool allowed = true;
  if (!p)
    return PLN_OK;
  if (!p->started) {
    p->started = true;
    PLN_TRY(pln_rewrite_apply(rw, "path", &allowed));
    p->refused = !allowed;
  }
  if (p->refused)
    return PLN_OK;
  if (old != p->root)
    return edit_call(p, rw, old, node);
  *node = pln_rewrite_image(rw, pln_operand(w->graph, old, p->x));
  return PLN_OK;
}

/* Every constant can be scaled without overflow; asked before anything is
 * built, because a plan is built as a whole. */
static bool stays_finite(const scale_walk *w, const scale_plan *p) {
  for (uint32_t i = 0; i < p->n_edits; i++) {
    const scale_edit *edit = &p->edits[i];
    pln_weight weight;
    pln_ref constant = pln_operand(w->graph, edit->node, edit->arg);
    if (!pln_weight_read(w->graph, constant, &weight))
      return false;
    double limit = weight.dtype == PLN_FLOAT64   ? 1e308
                   : weight.dtype == PLN_FLOAT16 ? 6e4
                                                 : 3e38;
    pln_channels c = channels_of(&weight, &edit->range);
    for (size_t k = 0; k < weight.count; k++)
      if (!(fabs(pln_weight_at(&weight, k) *
                 factor_of(p, &edit->range,
                           (int64_t)(k / c.inner % c.channels))) < limit))
        return false;
  }
  return true;
}

static void drop_infinite(scale_walk *w) {
  for (scale_plan *p = w->plans; p; p = p->next)
    if (!stays_finite(w, p))
      p->started = p->refused = true;
}

/* -------------------------------------------------------------------- sweep
 */

static pln_status begin_walk(scale_walk *w, const pln_graph *graph) {
  size_t n = graph->n_nodes + (size_t)1;
  w->graph = graph;
  w->plans = NULL;
  w->asked = pln_mem_zeroed(w->engine, n * sizeof *w->asked);
  w->range = pln_mem_new(w->engine, n * sizeof *w->range);
  w->plan_of = pln_mem_zeroed(w->engine, n * sizeof *w->plan_of);
  PLN_TRY(pln_users_begin(&w->u, graph));
  return w->asked && w->range && w->plan_of ? PLN_OK : pln_nomem(w->engine);
}

static void end_walk(scale_walk *w) {
  size_t n = w->graph->n_nodes + (size_t)1;
  pln_users_end(&w->u);
  pln_mem_free(w->engine, w->asked, n * sizeof *w->asked);
  pln_mem_free(w->engine, w->range, n * sizeof *w->range);
  pln_mem_free(w->engine, w->plan_of, n * sizeof *w->plan_of);
  while (w->plans) {
    scale_plan *next = w->plans->next;
    pln_mem_free(w->engine, w->plans, sizeof *next);
    w->plans = next;
  }
}

static pln_status walk_once(scale_walk *w, pln_graph **graph, int64_t *folded) {
  pln_mutator m = {.ud = w, .visit = visit_scaled, .keeps_types = true};
  pln_graph *next = NULL;
  pln_status status = begin_walk(w, *graph);
  if (status == PLN_OK)
    status = find_plans(w);
  if (status == PLN_OK && w->plans) {
    drop_infinite(w);
    status = pln_graph_rewrite(*graph, &m, &next);
  }
  for (const scale_plan *p = w->plans; p; p = p->next)
    *folded += !p->refused;
  end_walk(w);
  if (status == PLN_OK && next) {
    pln_graph_release(*graph);
    *graph = next;
  }
  return status;
}

/* Repeats the sweep while factors remain that wait for others. */
pln_status pln_fold_scale_paths(pln_engine *engine, pln_budget *budget,
                                bool halves, pln_graph **graph,
                                int64_t *folded) {
  scale_walk w = {.engine = engine, .budget = budget, .halves = halves};
  for (int i = 0; i < MAX_ROUNDS; i++) {
    int64_t before = *folded;
    PLN_TRY(walk_once(&w, graph, folded));
    if (*folded == before)
      break;
  }
  return PLN_OK;
}
