/* flatten_rows.c: FlattenRows: computes a batch of matrices as one matrix.
 *
 * Run by the executor, once per function. Requires a verified graph. A product
 * of a tensor of three or more axes with a constant matrix treats each row
 * alike, and so do elementwise operators, normalisations of the last axis and
 * the like. Connected operators of that kind are a region. On the matrix of all
 * rows a product and what is added to it are one nn.gemm (MatMulAddToGemm). A
 * region is rewritten if that saves more calls than the reshapes around it
 * cost; reshapes that are there already only change their shapes. A shape with
 * several extents that are not constant is concatenated of those extents, if
 * something computes them, or has a shape that is or begins with them. A
 * product with a transposed constant is one nn.gemm without the transpose.
 *
 *     reshape(add(nn.matmul(nn.layer_norm(%x), W), b), [0, 0, 4, 8])
 *       =>   reshape(add(nn.matmul(nn.layer_norm(reshape(%x, [-1, 32])), W),
 * b),
 *                    [-1, 17, 4, 8])
 *
 * Sources: ONNX Runtime MatMulAddFusion; TVM's dense operators are of two axes
 * for the same reason. */

#include <stdlib.h>

#include "eval/eval.h"
#include "ir/analysis/users.h"
#include "op/infer/infer.h"
#include "rule/rule.h"
#include "transform/transform.h"

enum { MAX_ARGS = 8, MAX_TAILS = 8, MAX_SEARCHES = 64 };

/* Extents behind those of the rows, which are constant. */
typedef struct row_tail {
  int32_t n;
  pln_dim dims[PLN_MAX_RANK];
} row_tail;

typedef struct row_region {
  int64_t gain;
  pln_ref first;   /* its first node */
  pln_ref extents; /* a vector of the extents that make the rows, or a tensor
                    * whose shape begins with them; PLN_NONE: there is none */
  bool is_vector, is_longer; /* the tensor has more axes */
  bool refused, started;
  uint32_t n_built; /* shapes that are concatenated for the region */
  uint32_t n_tails; /* distinct ends of shapes: of those that are concatenated
                     * already, and of those that are for the region */
  row_tail tails[MAX_TAILS];
} row_region;

typedef struct flatten_rows {
  pln_engine *engine;
  const pln_graph *graph;
  pln_users u;
  uint32_t *region; /* by node: 1 + its region, or 0 */
  uint32_t *seen;   /* by node: the count that it was last part of */
  uint32_t n_counts, n_searches;
  pln_ref *flat; /* by old node: its matrix in the new graph, or PLN_NONE */
  pln_ref *queue;
  row_region *regions;
  uint32_t n_regions, cap_regions;
  int64_t flattened;
} flatten_rows;

/* ------------------------------------------------------------------- shapes
 */

static int32_t rank_at(const flatten_rows *f, pln_ref node) {
  return pln_type_rank(f->engine, f->graph->nodes[node].type);
}

static const pln_dim *dims_at(const flatten_rows *f, pln_ref node) {
  return pln_type_dims(f->engine, f->graph->nodes[node].type);
}

static bool is_static_extent(pln_dim dim) {
  return PLN_DIM_IS_CONST(dim) && dim > 0;
}

/* Returns true if `node` has three axes or more, the last one of known
 * extent. */
static bool has_rows(const flatten_rows *f, pln_ref node) {
  int32_t rank = rank_at(f, node);
  return rank >= 3 && rank <= PLN_MAX_RANK &&
         is_static_extent(dims_at(f, node)[rank - 1]);
}

/* Returns true if both have the same axes but for the last. */
static bool have_equal_rows(const flatten_rows *f, pln_ref a, pln_ref b) {
  int32_t rank = rank_at(f, a);
  if (!has_rows(f, a) || !has_rows(f, b) || rank != rank_at(f, b))
    return false;
  for (int32_t i = 0; i + 1 < rank; i++)
    if (dims_at(f, a)[i] == PLN_DIM_UNKNOWN ||
        dims_at(f, a)[i] != dims_at(f, b)[i])
      return false;
  return true;
}

/* The same operand for each row: a vector or a number; constants may have more
 * axes of extent 1. */
static bool is_same_for_rows(const flatten_rows *f, pln_ref x) {
  int32_t rank = rank_at(f, x);
  if (rank < 0 || (rank > 1 && f->graph->nodes[x].kind != PLN_CONSTANT))
    return false;
  for (int32_t i = 0; i + 1 < rank; i++)
    if (dims_at(f, x)[i] != 1)
      return false;
  return true;
}

/* A target shape needs at most one -1. */
static bool is_writable(const pln_dim *dims, int32_t rank) {
  uint32_t open = 0;
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] == PLN_DIM_UNKNOWN || dims[i] == 0)
      return false;
    open += !PLN_DIM_IS_CONST(dims[i]);
  }
  return rank >= 0 && open <= 1;
}

/* Returns true if the shape of `node` begins with the axes of the rows of `row`
 * and goes on with constants. */
static bool begins_with_rows(const flatten_rows *f, pln_ref node, pln_ref row) {
  int32_t rank = rank_at(f, node), rows = rank_at(f, row) - 1;
  if (rank < rows)
    return false;
  for (int32_t i = 0; i < rank; i++) {
    pln_dim dim = dims_at(f, node)[i];
    if (i < rows ? dim != dims_at(f, row)[i] : !is_static_extent(dim))
      return false;
  }
  return true;
}

static bool is_reshape(const flatten_rows *f, pln_ref node) {
  const pln_graph *g = f->graph;
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->results == 0 &&
         (n->data == PLN_OP_RESHAPE || n->data == PLN_OP_FLATTEN ||
          n->data == PLN_OP_SQUEEZE || n->data == PLN_OP_UNSQUEEZE) &&
         pln_op_is_onnx_form(g, node) && pln_call_is_valid(g, node) &&
         rank_at(f, node) >= 0 && rank_at(f, node) <= PLN_MAX_RANK;
}

/* --------------------------------------------------------------- operators */

/* Returns true for a transpose of a constant matrix. */
static bool is_transposed_matrix(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->data == PLN_OP_TRANSPOSE &&
         pln_op_is_onnx_form(g, node) && pln_call_is_valid(g, node) &&
         g->nodes[pln_operand(g, node, 0)].kind == PLN_CONSTANT;
}

static bool is_product(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  if (n->data != PLN_OP_MAT_MUL)
    return false;
  pln_ref weight = pln_operand(g, node, 1);
  return (g->nodes[weight].kind == PLN_CONSTANT ||
          is_transposed_matrix(g, weight)) &&
         pln_type_rank(g->engine, g->nodes[weight].type) == 2;
}

static bool is_last_axis(const flatten_rows *f, pln_ref node) {
  int64_t axis =
      pln_attrs_int(f->engine, f->graph->nodes[node].attrs, "axis", -1);
  return axis == -1 || axis == rank_at(f, node) - 1;
}

/* Elementwise operands are rows of the result, or the same for all rows. */
static bool is_elementwise(const flatten_rows *f, pln_ref node) {
  const pln_graph *g = f->graph;
  uint32_t rows = 0;
  for (uint32_t i = 0; i < g->nodes[node].count; i++) {
    pln_ref x = pln_operand(g, node, i);
    bool row = have_equal_rows(f, x, node);
    if (!row && g->nodes[x].kind != PLN_ABSENT && !is_same_for_rows(f, x))
      return false;
    rows += row;
  }
  return rows > 0;
}

/* Operand 0 has the rows; the others are the same for all. */
static bool is_of_rows(const flatten_rows *f, pln_ref node) {
  const pln_graph *g = f->graph;
  for (uint32_t i = 1; i < g->nodes[node].count; i++)
    if (rank_at(f, pln_operand(g, node, i)) > 1)
      return false;
  return have_equal_rows(f, pln_operand(g, node, 0), node);
}

/* A reduction of the last axis, which is kept. */
static bool is_reduction(const flatten_rows *f, pln_ref node) {
  const pln_graph *g = f->graph;
  if (!(pln_op_row(f->engine, g->nodes[node].data)->traits & PLN_TRAIT_REDUCE))
    return false;
  pln_infer call = pln_infer_of(g, node);
  pln_list axes = pln_arg_list(&call, 1, "axes");
  return g->nodes[node].data != PLN_OP_ARG_MAX &&
         g->nodes[node].data != PLN_OP_ARG_MIN && axes.given &&
         axes.count == 1 && pln_list_at(&axes, 0) == -1 &&
         pln_call_int(&call, "keepdims", 1) &&
         !pln_call_int(&call, "exclude", 0) && is_of_rows(f, node);
}

/* Returns true for a call that treats each row alike. */
static bool is_row_wise(const flatten_rows *f, pln_ref node) {
  const pln_graph *g = f->graph;
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || !n->data || n->results || n->count == 0 ||
      n->count > MAX_ARGS || (n->flags & (PLN_NODE_KEEP | PLN_NODE_EFFECT)) ||
      !has_rows(f, node) || !pln_op_is_onnx_form(g, node) ||
      !pln_call_is_valid(g, node))
    return false;
  uint32_t traits = pln_op_row(f->engine, n->data)->traits;
  if (n->data == PLN_OP_MAT_MUL)
    return is_product(g, node) &&
           have_equal_rows(f, pln_operand(g, node, 0), node);
  if (n->data == PLN_OP_LAYER_NORMALIZATION ||
      n->data == PLN_OP_RMS_NORMALIZATION || n->data == PLN_OP_SOFTMAX ||
      n->data == PLN_OP_LOG_SOFTMAX)
    return is_last_axis(f, node) && is_of_rows(f, node);
  if (n->data == PLN_OP_EXPAND)
    return false;
  if (traits & (PLN_TRAIT_ELEMENTWISE | PLN_TRAIT_BROADCAST))
    return is_elementwise(f, node);
  return is_reduction(f, node);
}

/* Returns true if operand `i` of a call of a region has rows. */
static bool is_row_operand(const flatten_rows *f, pln_ref node, uint32_t i) {
  return have_equal_rows(f, pln_operand(f->graph, node, i), node);
}

/* ------------------------------------------------------------------ regions
 */

static bool joins(const flatten_rows *f, pln_ref node, pln_ref to) {
  return !f->region[node] && f->u.node_scope[node] == f->u.node_scope[to] &&
         is_row_wise(f, node) && have_equal_rows(f, node, to);
}

/* Marks the region of `seed`; returns the number of its nodes, which are in the
 * queue. */
static uint32_t mark_region(flatten_rows *f, pln_ref seed, uint32_t number) {
  const pln_graph *g = f->graph;
  uint32_t n = 0;
  f->queue[n++] = seed;
  f->region[seed] = number;
  for (uint32_t at = 0; at < n; at++) {
    pln_ref node = f->queue[at];
    for (uint32_t i = 0; i < g->nodes[node].count; i++) {
      pln_ref x = pln_operand(g, node, i);
      if (joins(f, x, node)) {
        f->region[x] = number;
        f->queue[n++] = x;
      }
    }
    for (uint32_t i = f->u.first[node]; i < f->u.first[node + 1]; i++) {
      pln_ref user = f->u.users[i];
      if (joins(f, user, node)) {
        f->region[user] = number;
        f->queue[n++] = user;
      }
    }
  }
  return n;
}

static int compare_refs(const void *a, const void *b) {
  pln_ref x = *(const pln_ref *)a, y = *(const pln_ref *)b;
  return (x > y) - (x < y);
}

static bool all_users_within(const flatten_rows *f, pln_ref node,
                             uint32_t number) {
  for (uint32_t i = f->u.first[node]; i < f->u.first[node + 1]; i++)
    if (f->region[f->u.users[i]] != number)
      return false;
  return !f->u.is_result[node];
}

/* Returns true if a reshape outside of the region makes `x` the matrix of its
 * rows already. */
static bool has_matrix(const flatten_rows *f, pln_ref x, uint32_t number) {
  const pln_dim *dims = dims_at(f, x);
  for (uint32_t i = f->u.first[x]; i < f->u.first[x + 1]; i++) {
    pln_ref user = f->u.users[i];
    if (f->region[user] != number && is_reshape(f, user) &&
        f->u.node_scope[user] == f->u.node_scope[x] && rank_at(f, user) == 2 &&
        dims_at(f, user)[1] == dims[rank_at(f, x) - 1])
      return true;
  }
  return false;
}

/* What it costs to make the operands of `node` matrices. */
static int64_t cost_before(flatten_rows *f, pln_ref node, uint32_t number) {
  int64_t cost = 0;
  for (uint32_t i = 0; i < f->graph->nodes[node].count; i++) {
    pln_ref x = pln_operand(f->graph, node, i);
    if (!is_row_operand(f, node, i) || f->region[x] == number ||
        f->seen[x] == f->n_counts)
      continue;
    f->seen[x] = f->n_counts;
    cost += !(is_reshape(f, x) && all_users_within(f, x, number)) &&
            !has_matrix(f, x, number);
  }
  return cost;
}

/* Returns true if `node` needs reshapes of several operands, none of which is
 * of the region: one of its result costs less. */
static bool is_better_outside(const flatten_rows *f, pln_ref node,
                              uint32_t number) {
  uint32_t n = 0;
  pln_ref last = PLN_NONE;
  for (uint32_t i = 0; i < f->graph->nodes[node].count; i++) {
    pln_ref x = pln_operand(f->graph, node, i);
    if (!is_row_operand(f, node, i) || x == last)
      continue;
    if (f->region[x] == number)
      return false;
    last = x;
    n += !is_reshape(f, x) && !has_matrix(f, x, number);
  }
  return n > 1;
}

/* Leaves out what the region begins with where that saves reshapes; returns the
 * number of nodes that remain in the queue. */
static uint32_t trim_region(flatten_rows *f, uint32_t n, uint32_t number) {
  uint32_t kept = 0;
  qsort(f->queue, n, sizeof *f->queue, compare_refs);
  for (uint32_t i = 0; i < n; i++) {
    pln_ref node = f->queue[i];
    if (is_better_outside(f, node, number))
      f->region[node] = 0;
    else
      f->queue[kept++] = node;
  }
  return kept;
}

static row_region *region_at(const flatten_rows *f, pln_ref node) {
  return &f->regions[f->region[node] - 1];
}

/* Returns true if a reshape of a matrix of the region can have the shape of
 * `node`; `row` is a node of the region. */
static bool can_restore(const flatten_rows *f, pln_ref node, pln_ref row) {
  return is_writable(dims_at(f, node), rank_at(f, node)) ||
         (region_at(f, row)->extents != PLN_NONE &&
          begins_with_rows(f, node, row));
}

/* Returns true if `user` is a reshape of `row` that can be one of the matrix.
 */
static bool can_reshape_matrix(const flatten_rows *f, pln_ref user,
                               pln_ref row) {
  return is_reshape(f, user) && rank_at(f, user) > 0 &&
         can_restore(f, user, row);
}

/* Returns true if something needs the result of `node` in its shape. */
static bool needs_shape(const flatten_rows *f, pln_ref node) {
  uint32_t number = f->region[node];
  for (uint32_t i = f->u.first[node]; i < f->u.first[node + 1]; i++)
    if (f->region[f->u.users[i]] != number &&
        !can_reshape_matrix(f, f->u.users[i], node))
      return true;
  return f->u.is_result[node];
}

/* Returns true if the extents from number `rows` on are the tail. */
static bool is_tail(const row_tail *tail, const pln_dim *dims, int32_t rows,
                    int32_t rank) {
  return tail->n == rank - rows &&
         !memcmp(tail->dims, dims + rows, (size_t)tail->n * sizeof *dims);
}

/* Adds the extents from number `rows` on to the tails; returns true if they
 * were not there. */
static bool add_tail(row_region *r, const pln_dim *dims, int32_t rows,
                     int32_t rank) {
  for (uint32_t i = 0; i < r->n_tails; i++)
    if (is_tail(&r->tails[i], dims, rows, rank))
      return false;
  if (r->n_tails < MAX_TAILS) {
    row_tail *tail = &r->tails[r->n_tails++];
    tail->n = rank - rows;
    memcpy(tail->dims, dims + rows, (size_t)tail->n * sizeof *dims);
  }
  return true;
}

/* What the shape of `node` costs, for a reshape of the matrix of `row`. */
static int64_t cost_of_shape(flatten_rows *f, pln_ref node, pln_ref row) {
  row_region *r = region_at(f, row);
  int32_t rank = rank_at(f, node);
  if (is_writable(dims_at(f, node), rank))
    return 0;
  bool is_new = add_tail(r, dims_at(f, node), rank_at(f, row) - 1, rank);
  r->n_built += is_new;
  return is_new;
}

/* What it costs to reshape the matrix of `node` for those outside. */
static int64_t cost_behind(flatten_rows *f, pln_ref node) {
  uint32_t number = f->region[node];
  int64_t cost = 0;
  if (needs_shape(f, node))
    cost += 1 + cost_of_shape(f, node, node);
  for (uint32_t i = f->u.first[node]; i < f->u.first[node + 1]; i++) {
    pln_ref user = f->u.users[i];
    if (f->region[user] != number && can_reshape_matrix(f, user, node))
      cost += cost_of_shape(f, user, node);
  }
  return cost;
}

/* Returns true for a sum that a product can take up. */
static bool takes_up_sum(const flatten_rows *f, pln_ref product,
                         uint32_t number, pln_ref *sum) {
  if (!is_product(f->graph, product) || !pln_users_once(&f->u, product))
    return false;
  *sum = f->u.users[f->u.first[product]];
  return f->region[*sum] == number &&
         f->graph->nodes[*sum].data == PLN_OP_ADD &&
         pln_dtype_is_float(
             pln_type_dtype(f->engine, f->graph->nodes[product].type));
}

/* Returns true if the product makes the transpose of its weights dead. */
static bool takes_up_transpose(const flatten_rows *f, pln_ref node) {
  return is_product(f->graph, node) &&
         pln_dtype_is_float(
             pln_type_dtype(f->engine, f->graph->nodes[node].type)) &&
         is_transposed_matrix(f->graph, pln_operand(f->graph, node, 1)) &&
         pln_users_once(&f->u, pln_operand(f->graph, node, 1));
}

/* What the vector of extents costs: one call for a shape, and one for a part
 * of it. */
static int64_t cost_of_extents(const row_region *r) {
  if (r->n_built == 0 || r->is_vector)
    return 0;
  return r->is_longer ? 2 : 1;
}

/* Counts how many calls the region saves; negative if it cannot be
 * rewritten. 16-bit floats are rounded where elements are moved: no reshape is
 * added among them. */
static int64_t count_gain(flatten_rows *f, uint32_t n, uint32_t number) {
  row_region *r = &f->regions[number - 1];
  int64_t gain = 0;
  uint32_t n_tails = r->n_tails;
  bool half = pln_dtype_is_half(
      pln_type_dtype(f->engine, f->graph->nodes[f->queue[0]].type));
  r->n_built = 0;
  f->n_counts++;
  for (uint32_t i = 0; i < n; i++) {
    pln_ref node = f->queue[i], sum;
    int64_t cost = cost_before(f, node, number);
    if (needs_shape(f, node) && !can_restore(f, node, node))
      return -1;
    cost += cost_behind(f, node);
    if (half && cost > 0)
      return -1;
    gain += takes_up_transpose(f, node) - cost;
    if (takes_up_sum(f, node, number, &sum) && f->seen[sum] != f->n_counts) {
      f->seen[sum] = f->n_counts;
      gain++;
    }
  }
  r->n_tails = n_tails;
  return gain - cost_of_extents(r);
}

/* Returns true if the value of `node` is the extents that make the rows. */
static bool is_rows_vector(const flatten_rows *f, pln_ref node, pln_ref row) {
  const pln_graph *g = f->graph;
  pln_value value = g->values[node];
  uint32_t rows = (uint32_t)rank_at(f, row) - 1;
  if (!value || rank_at(f, node) != 1 || g->nodes[node].kind != PLN_CALL ||
      pln_type_dtype(f->engine, g->nodes[node].type) != PLN_INT64 ||
      pln_value_count(f->engine, value) != rows)
    return false;
  return !memcmp(pln_value_elements(f->engine, value), dims_at(f, row),
                 rows * sizeof(pln_dim));
}

/* Returns true if the shape of `node` begins with those extents. */
static bool is_rows_tensor(const flatten_rows *f, pln_ref node, pln_ref row) {
  const pln_node *n = &f->graph->nodes[node];
  int32_t rows = rank_at(f, row) - 1;
  return (n->kind == PLN_VAR || n->kind == PLN_CALL) && n->results == 0 &&
         rank_at(f, node) >= rows &&
         !memcmp(dims_at(f, node), dims_at(f, row),
                 (size_t)rows * sizeof(pln_dim));
}

/* Notes a vector of the extents and constants behind them that is there
 * already. */
static void note_shape(const flatten_rows *f, row_region *r, pln_ref node) {
  const pln_graph *g = f->graph;
  pln_value value = g->values[node];
  uint32_t rows = (uint32_t)rank_at(f, r->first) - 1;
  if (!value || g->nodes[node].kind != PLN_CALL ||
      g->nodes[node].data != PLN_OP_CONCAT || rank_at(f, node) != 1)
    return;
  uint32_t n = pln_value_count(f->engine, value);
  const pln_dim *dims = pln_value_elements(f->engine, value);
  if (n <= rows || n > PLN_MAX_RANK ||
      memcmp(dims, dims_at(f, r->first), rows * sizeof *dims) != 0)
    return;
  for (uint32_t i = rows; i < n; i++)
    if (!is_static_extent(dims[i]))
      return;
  add_tail(r, dims, (int32_t)rows, (int32_t)n);
}

/* Finds what gives the extents of the rows before the region begins, in this
 * order: a vector, a tensor of that shape, one of a longer shape. */
static void find_extents(const flatten_rows *f, row_region *r) {
  int32_t rows = rank_at(f, r->first) - 1;
  for (pln_ref i = 0; i < f->graph->n_nodes; i++) {
    if (f->u.node_scope[i] != f->u.node_scope[r->first])
      continue;
    note_shape(f, r, i);
    if (i >= r->first || r->is_vector)
      continue;
    r->is_vector = is_rows_vector(f, i, r->first);
    bool is_tensor = !r->is_vector && is_rows_tensor(f, i, r->first);
    bool is_longer = is_tensor && rank_at(f, i) > rows;
    if (!r->is_vector && (!is_tensor || (r->extents != PLN_NONE &&
                                         !(r->is_longer && !is_longer))))
      continue;
    r->extents = i;
    r->is_longer = is_longer;
  }
}

static pln_ref first_queued(const flatten_rows *f, uint32_t n) {
  pln_ref first = f->queue[0];
  for (uint32_t i = 1; i < n; i++)
    first = f->queue[i] < first ? f->queue[i] : first;
  return first;
}

/* Without extents first: looking for them takes time. */
static void weigh_region(flatten_rows *f, uint32_t n, uint32_t number) {
  row_region *r = &f->regions[number - 1];
  uint32_t sums = 0;
  pln_ref sum;
  r->first = first_queued(f, n);
  for (uint32_t i = 0; i < n; i++)
    sums += takes_up_sum(f, f->queue[i], number, &sum) +
            takes_up_transpose(f, f->queue[i]);
  r->gain = sums ? count_gain(f, n, number) : -1;
  if (sums > 0 && r->gain < 0 && f->n_searches++ < MAX_SEARCHES) {
    find_extents(f, r);
    if (r->extents != PLN_NONE)
      r->gain = count_gain(f, n, number);
  }
  r->refused = r->gain <= 0;
}

static pln_status add_row_region(flatten_rows *f) {
  if (f->n_regions == f->cap_regions) {
    uint32_t cap = f->cap_regions ? 2 * f->cap_regions : 8;
    row_region *grown = pln_mem_new(f->engine, cap * sizeof *grown);
    if (!grown)
      return pln_nomem(f->engine);
    if (f->n_regions)
      memcpy(grown, f->regions, f->n_regions * sizeof *grown);
    pln_mem_free(f->engine, f->regions, f->cap_regions * sizeof *grown);
    f->regions = grown;
    f->cap_regions = cap;
  }
  f->regions[f->n_regions++] = (row_region){.extents = PLN_NONE};
  return PLN_OK;
}

static pln_status find_row_regions(flatten_rows *f, bool *any) {
  *any = false;
  for (pln_ref i = 0; i < f->graph->n_nodes; i++) {
    if (f->region[i] || f->graph->nodes[i].kind != PLN_CALL ||
        f->graph->nodes[i].data != PLN_OP_MAT_MUL || !is_row_wise(f, i))
      continue;
    PLN_TRY(add_row_region(f));
    uint32_t n = mark_region(f, i, f->n_regions);
    n = trim_region(f, n, f->n_regions);
    weigh_region(f, n, f->n_regions);
    *any |= !f->regions[f->n_regions - 1].refused;
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- building
 */

static pln_status build_reshape(pln_builder *b, pln_ref x, uint32_t n,
                                const int64_t *shape, pln_ref *out) {
  pln_ref args[2] = {x};
  PLN_TRY(pln_build_int64s(b, 1, n, shape, &args[1]));
  return pln_build_call(b, PLN_OP_RESHAPE, 0, 0, 2, args, out);
}

/* Builds the vector of the extents that make the rows. */
static pln_status build_extents(pln_rewrite *rw, pln_builder *b,
                                const row_region *r, int32_t rows,
                                pln_ref *out) {
  *out = pln_rewrite_image(rw, r->extents);
  if (r->is_vector)
    return PLN_OK;
  pln_ref tensor = *out, args[4];
  PLN_TRY(pln_build_call(b, PLN_OP_SHAPE, 0, 0, 1, &tensor, &args[0]));
  *out = args[0];
  if (!r->is_longer)
    return PLN_OK;
  int64_t zero = 0, end = rows;
  PLN_TRY(pln_build_int64s(b, 1, 1, &zero, &args[1]));
  PLN_TRY(pln_build_int64s(b, 1, 1, &end, &args[2]));
  args[3] = args[1];
  return pln_build_call(b, PLN_OP_SLICE, 0, 0, 4, args, out);
}

/* Reshapes the matrix to the extents of the rows, and those behind them. */
static pln_status reshape_by_extents(const flatten_rows *f, pln_rewrite *rw,
                                     pln_builder *b, pln_ref matrix,
                                     pln_ref old, pln_ref row, pln_ref *out) {
  int32_t rows = rank_at(f, row) - 1, rank = rank_at(f, old);
  pln_attrs attrs;
  pln_attr axis = {.kind = PLN_ATTR_INT, .v.i = 0};
  pln_ref args[2] = {matrix}, parts[2];
  PLN_TRY(build_extents(rw, b, region_at(f, row), rows, &parts[0]));
  args[1] = parts[0];
  if (rank > rows) {
    PLN_TRY(pln_build_int64s(b, 1, (uint32_t)(rank - rows),
                             dims_at(f, old) + rows, &parts[1]));
    PLN_TRY(pln_symbol_intern(f->engine, pln_text("axis"), &axis.name));
    PLN_TRY(pln_attrs_make(f->engine, 1, &axis, &attrs));
    PLN_TRY(pln_build_call(b, PLN_OP_CONCAT, attrs, 0, 2, parts, &args[1]));
  }
  return pln_build_call(b, PLN_OP_RESHAPE, 0, 0, 2, args, out);
}

/* Reshapes the matrix of `row` to the shape of an old node. */
static pln_status restore_shape(const flatten_rows *f, pln_rewrite *rw,
                                pln_builder *b, pln_ref matrix, pln_ref old,
                                pln_ref row, pln_ref *out) {
  int64_t shape[PLN_MAX_RANK];
  int32_t rank = rank_at(f, old);
  if (!is_writable(dims_at(f, old), rank))
    return reshape_by_extents(f, rw, b, matrix, old, row, out);
  for (int32_t i = 0; i < rank; i++) {
    pln_dim dim = dims_at(f, old)[i];
    shape[i] = PLN_DIM_IS_CONST(dim) ? dim : -1;
  }
  return build_reshape(b, matrix, (uint32_t)rank, shape, out);
}

/* The matrix of an operand: of a reshape, that of what is reshaped. */
static pln_status flatten_operand(flatten_rows *f, pln_rewrite *rw,
                                  pln_builder *b, pln_ref old, pln_ref *out) {
  if (f->flat[old] == PLN_NONE) {
    pln_ref x = is_reshape(f, old) ? pln_operand(f->graph, old, 0) : old;
    int64_t shape[2] = {-1, dims_at(f, old)[rank_at(f, old) - 1]};
    PLN_TRY(
        build_reshape(b, pln_rewrite_image(rw, x), 2, shape, &f->flat[old]));
  }
  *out = f->flat[old];
  return PLN_OK;
}

/* A constant of more axes as a vector. */
static pln_status flatten_constant(const flatten_rows *f, pln_builder *b,
                                   pln_ref old, pln_ref *out) {
  const pln_tensor *t = f->graph->tensors[f->graph->nodes[old].data];
  int64_t shape[1] = {dims_at(f, old)[rank_at(f, old) - 1]};
  pln_ref constant, call;
  pln_tensor *vector;
  PLN_TRY(pln_build_constant(b, t, &constant));
  PLN_TRY(build_reshape(b, constant, 1, shape, &call));
  pln_status status = pln_eval_call(b->graph, call, &vector);
  if (status == PLN_ERR_UNSUPPORTED)
    return PLN_ERR_TYPE;
  PLN_TRY(status);
  status = pln_build_constant(b, vector, out);
  pln_tensor_release(vector);
  return status;
}

static pln_status flatten_arg(flatten_rows *f, pln_rewrite *rw, pln_builder *b,
                              pln_ref old, uint32_t i, pln_ref *out) {
  pln_ref x = pln_operand(f->graph, old, i);
  if (is_row_operand(f, old, i))
    return flatten_operand(f, rw, b, x, out);
  if (rank_at(f, x) > 1 && !is_product(f->graph, old))
    return flatten_constant(f, b, x, out);
  *out = pln_rewrite_image(rw, x);
  return PLN_OK;
}

/* An axis counted from the front is one of the old shape. */
static pln_status flat_attrs(const flatten_rows *f, pln_ref old,
                             pln_attrs *out) {
  pln_attr axis = {.kind = PLN_ATTR_INT, .v.i = -1};
  *out = f->graph->nodes[old].attrs;
  if (!pln_attrs_find(f->engine, *out, "axis"))
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(f->engine, pln_text("axis"), &axis.name));
  return pln_attrs_with(f->engine, *out, &axis, out);
}

static pln_status build_flat(flatten_rows *f, pln_rewrite *rw, pln_builder *b,
                             pln_ref old, pln_ref *node) {
  pln_ref args[MAX_ARGS];
  pln_attrs attrs;
  const pln_node *n = &f->graph->nodes[old];
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(flatten_arg(f, rw, b, old, i, &args[i]));
  PLN_TRY(flat_attrs(f, old, &attrs));
  pln_builder_origin(b, f->graph->origin[old]);
  PLN_TRY(pln_build_call(b, n->data, attrs, 0, n->count, args, &f->flat[old]));
  if (!needs_shape(f, old))
    return PLN_OK;
  PLN_TRY(restore_shape(f, rw, b, f->flat[old], old, old, node));
  return pln_keep_type(rw, *node, n->type);
}

/* An ill-typed call, as files may contain, ends the region: what is built of it
 * stays valid. */
static pln_status try_flat(flatten_rows *f, pln_rewrite *rw, row_region *r,
                           pln_ref old, pln_ref *node) {
  pln_builder *b = pln_rewrite_builder(rw);
  pln_ref before = *node;
  if (!b)
    return PLN_ERR_NOMEM;
  size_t mark = pln_diag_count(f->engine);
  pln_status status = build_flat(f, rw, b, old, node);
  if (status != PLN_ERR_TYPE)
    return status;
  pln_diag_drop(f->engine, mark);
  *node = before;
  f->flat[old] = PLN_NONE;
  r->refused = true;
  return PLN_OK;
}

static pln_status start_region(flatten_rows *f, pln_rewrite *rw,
                               row_region *r) {
  bool allowed;
  if (r->started || r->refused)
    return PLN_OK;
  r->started = true;
  PLN_TRY(pln_rewrite_apply(rw, "flatten", &allowed));
  r->refused = !allowed;
  f->flattened += allowed;
  return PLN_OK;
}

/* A reshape behind a region is one of the matrix. */
static pln_status reshape_flat(flatten_rows *f, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  pln_ref x = pln_operand(f->graph, old, 0);
  if (!f->region[x] || f->flat[x] == PLN_NONE || !can_reshape_matrix(f, old, x))
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(restore_shape(f, rw, b, f->flat[x], old, x, node));
  return pln_keep_type(rw, *node, f->graph->nodes[old].type);
}

static pln_status visit_rows(void *ud, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  flatten_rows *f = ud;
  if (is_reshape(f, old))
    return reshape_flat(f, rw, old, node);
  if (!f->region[old])
    return PLN_OK;
  row_region *r = &f->regions[f->region[old] - 1];
  PLN_TRY(start_region(f, rw, r));
  return r->refused ? PLN_OK : try_flat(f, rw, r, old, node);
}

/* -------------------------------------------------------------------- pass */

static pln_status begin_rows(flatten_rows *f) {
  size_t n = f->graph->n_nodes + (size_t)1;
  PLN_TRY(pln_users_begin(&f->u, f->graph));
  f->region = pln_mem_zeroed(f->engine, n * sizeof *f->region);
  f->seen = pln_mem_zeroed(f->engine, n * sizeof *f->seen);
  f->flat = pln_mem_new(f->engine, n * sizeof *f->flat);
  f->queue = pln_mem_new(f->engine, n * sizeof *f->queue);
  if (!f->region || !f->seen || !f->flat || !f->queue)
    return pln_nomem(f->engine);
  memset(f->flat, 0xff, n * sizeof *f->flat);
  return PLN_OK;
}

static void end_rows(flatten_rows *f) {
  size_t n = f->graph->n_nodes + (size_t)1;
  pln_users_end(&f->u);
  pln_mem_free(f->engine, f->region, n * sizeof *f->region);
  pln_mem_free(f->engine, f->seen, n * sizeof *f->seen);
  pln_mem_free(f->engine, f->flat, n * sizeof *f->flat);
  pln_mem_free(f->engine, f->queue, n * sizeof *f->queue);
  pln_mem_free(f->engine, f->regions, f->cap_regions * sizeof *f->regions);
}

static pln_status flatten_all(flatten_rows *f, pln_graph **out) {
  pln_mutator m = {.ud = f, .visit = visit_rows, .keeps_types = true};
  bool any;
  PLN_TRY(begin_rows(f));
  PLN_TRY(find_row_regions(f, &any));
  if (any)
    return pln_graph_rewrite(f->graph, &m, out);
  *out = pln_graph_retain(f->graph);
  return PLN_OK;
}

pln_status pln_pass_flatten_rows(pln_pass_run *run) {
  flatten_rows f = {.engine = pln_run_engine(run),
                    .graph = pln_run_function(run)};
  pln_graph *out;
  pln_status status = flatten_all(&f, &out);
  end_rows(&f);
  PLN_TRY(status);
  if (f.flattened)
    status = pln_run_count(run, "flattened", f.flattened);
  if (status == PLN_OK)
    pln_run_set_function(run, out);
  else
    pln_graph_release(out);
  return status;
}
