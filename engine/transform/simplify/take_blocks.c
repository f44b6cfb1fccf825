/* take_blocks.c: a rule that makes one take of a tree of operators that only
 * move blocks of one tensor: reshapes, transposes, takes, slices, parts of a
 * Split and concatenations.
 *
 * The tree is walked from its root to the only tensor x that it reads. The
 * elements of x for each index of a batch are cut into blocks, as large as no
 * operator cuts them. Each operator is computed on the numbers of blocks, which
 * gives the positions that the whole tree takes. The batch is the first axis or
 * what it is a multiple of; it is never cut, and its extent need not be known.
 * The tree is replaced if at least one call less does the same. Concatenations
 * may be of results of the same elementwise operator, which is then applied
 * behind the take.
 *
 *     windows of 7 x 7, rolled by 3, of x: (N, 56, 56, 96): two takes, a
 *     reshape, a transpose and a reshape
 *       =>   reshape(take(reshape(x, [0, 3136, 96]), [...], axis=1)) */

#include "transform/simplify/rule.h"

enum {
  MAX_NODES = 48,
  MAX_BLOCKS = 4096,
  MAX_APPLIED = 2,
  MIN_BLOCK = 4 /* elements that a take copies at once */
};

typedef struct moved_node {
  pln_ref node;
  uint32_t refs; /* uses within the tree */
  bool inside;   /* of the tree; else x, or one of several tensors */
  int64_t size;  /* elements for each index of the batch */
  uint32_t n;    /* blocks of these */
  uint32_t n_applied;
  pln_ref applied[MAX_APPLIED]; /* elementwise calls, innermost first */
  uint16_t *blocks;             /* numbers of blocks of x, MAX_BLOCKS */
} moved_node;

typedef struct move_tree {
  pln_rewrite_context *ctx;
  const pln_graph *graph;
  pln_engine *engine;
  moved_node nodes[MAX_NODES]; /* once it is complete, operands first */
  uint32_t n, n_inside;
  int64_t block; /* elements */
  pln_dim batch; /* the extent of a first axis that all others are divided
                  * by */
  uint16_t *buffer;
} move_tree;

/* How an operator enumerates positions along an axis. */
typedef struct moved_axis {
  int64_t count, stride, begin, step;
  const pln_tensor *table; /* of positions, or NULL */
} moved_axis;

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* --------------------------------------------------------------- the tree */

static bool is_part(const pln_graph *g, pln_ref node) {
  if (g->nodes[node].kind != PLN_TUPLE_GET_ITEM)
    return false;
  pln_ref split = pln_operand(g, node, 0);
  const pln_node *n = &g->nodes[split];
  return n->kind == PLN_CALL && n->data == PLN_OP_SPLIT && n->results &&
         pln_op_is_onnx_form(g, split) && pln_call_is_valid(g, split);
}

static bool is_split(const pln_graph *g, pln_ref node) {
  return g->nodes[node].kind == PLN_CALL && g->nodes[node].data == PLN_OP_SPLIT;
}

static bool moves_blocks(const pln_graph *g, pln_ref node) {
  return pln_rule_only_reshapes(g, node) ||
         pln_is_call(g, node, PLN_OP_TRANSPOSE) ||
         pln_is_call(g, node, PLN_OP_SLICE) ||
         pln_is_call(g, node, PLN_OP_GATHER) || is_part(g, node);
}

/* An elementwise operator of one tensor and perhaps of constants. */
static bool is_unary(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || !n->data || n->count < 1 || n->count > 3 ||
      !pln_is_call(g, node, n->data) ||
      (n->count > 1 && n->data != PLN_OP_CLIP))
    return false;
  for (uint32_t i = 1; i < n->count; i++) {
    pln_ref arg = pln_operand(g, node, i);
    if (g->nodes[arg].kind != PLN_CONSTANT && g->nodes[arg].kind != PLN_ABSENT)
      return false;
  }
  uint32_t traits = pln_op_row(g->engine, n->data)->traits;
  return (traits & PLN_TRAIT_ELEMENTWISE) && !(traits & PLN_TRAIT_RANDOM);
}

/* Adds a use of a node, or a node; false if there is no room. */
static bool add_use(move_tree *t, pln_ref node) {
  for (uint32_t i = 0; i < t->n; i++)
    if (t->nodes[i].node == node) {
      t->nodes[i].refs++;
      return true;
    }
  if (t->n == MAX_NODES)
    return false;
  t->nodes[t->n++] = (moved_node){.node = node, .refs = 1};
  return true;
}

/* Takes a node into the tree, and its operands that are tensors to be moved. */
static bool enter_node(move_tree *t, uint32_t i) {
  const pln_graph *g = t->graph;
  pln_ref node = t->nodes[i].node;
  uint32_t n = pln_is_call(g, node, PLN_OP_CONCAT) ? g->nodes[node].count : 1;
  t->nodes[i].inside = true;
  t->n_inside += g->nodes[node].kind == PLN_CALL;
  for (uint32_t k = 0; k < n; k++)
    if (!add_use(t, pln_operand(g, node, k)))
      return false;
  return true;
}

static bool can_enter(const move_tree *t, uint32_t i, bool joins) {
  const pln_graph *g = t->graph;
  const moved_node *m = &t->nodes[i];
  if (m->inside || (g->nodes[m->node].flags & PLN_NODE_KEEP) ||
      (m->refs < pln_rule_driver_uses(t->ctx->driver, m->node)))
    return false;
  return moves_blocks(g, m->node) || is_split(g, m->node) ||
         (joins &&
          (pln_is_call(g, m->node, PLN_OP_CONCAT) || is_unary(g, m->node)));
}

/* The number of the only node outside; MAX_NODES if there are several, or it is
 * no tensor. */
static uint32_t find_source(const move_tree *t) {
  uint32_t found = MAX_NODES;
  for (uint32_t i = 0; i < t->n; i++)
    if (!t->nodes[i].inside) {
      if (found != MAX_NODES || is_split(t->graph, t->nodes[i].node))
        return MAX_NODES;
      found = i;
    }
  return found;
}

/* Enters what can be entered; with `joins`, also concatenations and elementwise
 * operators. If these lead to several tensors, the tree becomes the largest one
 * on the way that has a single source. */
static bool grow(move_tree *t, bool joins) {
  move_tree last = {.n = 0};
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < t->n; i++) {
      if (!can_enter(t, i, joins))
        continue;
      if (joins && find_source(t) != MAX_NODES)
        last = *t;
      if (!enter_node(t, i))
        return false;
      again = true;
    }
  }
  if (last.n && find_source(t) == MAX_NODES)
    *t = last;
  return true;
}

static bool meets_join(const move_tree *t) {
  for (uint32_t i = 0; i < t->n; i++)
    if (pln_is_call(t->graph, t->nodes[i].node, PLN_OP_CONCAT))
      return true;
  return false;
}

/* An elementwise operator that all of the tree reads stays where it is. */
static void leave_unary(move_tree *t) {
  for (uint32_t at = find_source(t); at != MAX_NODES && t->nodes[at].refs == 1;
       at = find_source(t)) {
    uint32_t user = 0;
    while (
        user < t->n &&
        !(t->nodes[user].inside && is_unary(t->graph, t->nodes[user].node) &&
          pln_operand(t->graph, t->nodes[user].node, 0) == t->nodes[at].node))
      user++;
    if (user == t->n)
      return;
    t->nodes[user].inside = false;
    t->n_inside--;
    t->nodes[at] = t->nodes[--t->n];
  }
}

/* Nodes of a graph have numbers above those of their operands. */
static void sort_nodes(move_tree *t) {
  for (uint32_t i = 1; i < t->n; i++) {
    moved_node m = t->nodes[i];
    uint32_t k = i;
    for (; k > 0 && t->nodes[k - 1].node > m.node; k--)
      t->nodes[k] = t->nodes[k - 1];
    t->nodes[k] = m;
  }
}

static moved_node *find_node(move_tree *t, pln_ref node) {
  uint32_t i = 0;
  while (t->nodes[i].node != node)
    i++;
  return &t->nodes[i];
}

/* ------------------------------------------------------------------- shapes
 */

static int32_t rank_of(const move_tree *t, pln_ref node) {
  return pln_type_rank(t->engine, t->graph->nodes[node].type);
}

static pln_dim dim_of(const move_tree *t, pln_ref node, int32_t i) {
  return pln_type_dims(t->engine, t->graph->nodes[node].type)[i];
}

/* The product of the extents from axis `first` on; 0 if one is not known, or
 * the product is too large. */
static int64_t size_from(const move_tree *t, pln_ref node, int32_t first) {
  int64_t size = 1;
  for (int32_t i = first; i < rank_of(t, node); i++) {
    pln_dim dim = dim_of(t, node, i);
    if (!PLN_DIM_IS_CONST(dim) || dim < 1 || dim > INT32_MAX / size)
      return 0;
    size *= dim;
  }
  return size;
}

static bool has_shape(const move_tree *t, pln_ref node) {
  int32_t rank = rank_of(t, node);
  return rank >= 1 && rank <= PLN_MAX_RANK &&
         dim_of(t, node, 0) != PLN_DIM_UNKNOWN && size_from(t, node, 1) > 0;
}

static int64_t axis_of(const move_tree *t, pln_ref call, pln_ref x) {
  int64_t axis =
      pln_attrs_int(t->engine, t->graph->nodes[call].attrs, "axis", 0);
  return axis < 0 ? axis + rank_of(t, x) : axis;
}

/* ------------------------------------------------------------------- views */

/* The axes of the operand's first `*n` axes as the operator enumerates them, in
 * elements; false if it does not keep the first axis, or is not understood.
 * `*contiguous`: on the last of them it takes a range. */
static bool read_transpose(const move_tree *t, pln_ref node, moved_axis *axes,
                           int32_t *n) {
  pln_ref x = pln_operand(t->graph, node, 0);
  const pln_attr *perm =
      pln_attrs_find(t->engine, t->graph->nodes[node].attrs, "axes");
  bool seen[PLN_MAX_RANK] = {false};
  int32_t rank = rank_of(t, x);
  if (!perm || perm->kind != PLN_ATTR_INTS || perm->count != (uint32_t)rank ||
      perm->v.ints[0] != 0)
    return false;
  *n = 1;
  for (int32_t i = 0; i < rank; i++) {
    int64_t axis = perm->v.ints[i];
    if (axis < 0 || axis >= rank || seen[axis])
      return false;
    seen[axis] = true;
    *n = axis != i ? i + 1 : *n;
    axes[i] = (moved_axis){.count = i ? dim_of(t, x, (int32_t)axis) : 0,
                           .stride = size_from(t, x, (int32_t)axis + 1),
                           .step = 1};
  }
  return true;
}

static void whole_axes(const move_tree *t, pln_ref x, moved_axis *axes) {
  for (int32_t i = 0; i < rank_of(t, x); i++)
    axes[i] = (moved_axis){.count = i ? dim_of(t, x, i) : 0,
                           .stride = size_from(t, x, i + 1),
                           .step = 1};
}

static bool read_slice(const move_tree *t, pln_ref node, moved_axis *axes,
                       int32_t *n) {
  pln_infer call = pln_infer_of(t->graph, node);
  pln_list starts = pln_arg_list(&call, 1, "starts");
  pln_list list = pln_arg_list(&call, 3, "axes");
  pln_list steps = pln_arg_list(&call, 4, NULL);
  pln_ref x = call.args[0];
  int64_t begin[PLN_MAX_RANK], at[PLN_MAX_RANK], step[PLN_MAX_RANK];
  int32_t rank = rank_of(t, x);
  if (!pln_list_read(&starts, PLN_MAX_RANK, begin) ||
      (list.given && (list.count != starts.count ||
                      !pln_list_read(&list, PLN_MAX_RANK, at))) ||
      (steps.given && (steps.count != starts.count ||
                       !pln_list_read(&steps, PLN_MAX_RANK, step))))
    return false;
  whole_axes(t, x, axes);
  *n = 1;
  for (uint32_t i = 0; i < starts.count; i++) {
    int64_t axis = list.given ? at[i] + (at[i] < 0 ? rank : 0) : i;
    int64_t stride = steps.given ? step[i] : 1;
    if (axis < 1 || axis >= rank || stride < 1 || stride > INT32_MAX)
      return false;
    int64_t extent = axes[axis].count, from = begin[i];
    from = from < -extent ? 0 : from < 0 ? from + extent : from;
    axes[axis].begin = from < extent ? from : extent;
    axes[axis].step = stride;
    axes[axis].count = dim_of(t, node, (int32_t)axis);
    *n = axis >= *n ? (int32_t)axis + 1 : *n;
  }
  return true;
}

static bool read_take(const move_tree *t, pln_ref node, moved_axis *axes,
                      int32_t *n) {
  pln_infer call = pln_infer_of(t->graph, node);
  pln_ref x = call.args[0];
  const pln_tensor *table = pln_arg_tensor(&call, 1);
  int64_t axis = axis_of(t, node, x), extent, at;
  if (!table || pln_call_int(&call, "batch_dims", 0) || axis < 1 ||
      axis >= rank_of(t, x) || table->count < 1 || table->count > MAX_BLOCKS)
    return false;
  whole_axes(t, x, axes);
  extent = axes[axis].count;
  for (size_t i = 0; i < table->count; i++)
    if (!pln_tensor_int(table, i, &at) || at < -extent || at >= extent)
      return false;
  axes[axis].count = (int64_t)table->count;
  axes[axis].table = table;
  axes[axis].step = extent; /* what is added to a negative position */
  *n = (int32_t)axis + 1;
  return true;
}

static bool read_part(const move_tree *t, pln_ref node, moved_axis *axes,
                      int32_t *n) {
  const pln_graph *g = t->graph;
  pln_ref split = pln_operand(g, node, 0), x = pln_operand(g, split, 0);
  int64_t axis = axis_of(t, split, x), begin = 0;
  if (axis < 1 || axis >= rank_of(t, x))
    return false;
  for (uint32_t i = 0; i < g->nodes[node].data; i++) {
    pln_type part = pln_type_part_at(t->engine, g->nodes[split].type, i);
    if (pln_type_rank(t->engine, part) <= axis ||
        !PLN_DIM_IS_CONST(pln_type_dims(t->engine, part)[axis]))
      return false;
    begin += pln_type_dims(t->engine, part)[axis];
  }
  whole_axes(t, x, axes);
  axes[axis].begin = begin;
  axes[axis].count = dim_of(t, node, (int32_t)axis);
  *n = (int32_t)axis + 1;
  return true;
}

/* The tensor whose elements the node moves. */
static pln_ref moved_operand(const pln_graph *g, pln_ref node) {
  pln_ref x = pln_operand(g, node, 0);
  return is_part(g, node) ? pln_operand(g, x, 0) : x;
}

static bool read_view(const move_tree *t, pln_ref node, moved_axis *axes,
                      int32_t *n) {
  if (!has_shape(t, moved_operand(t->graph, node)) || !has_shape(t, node))
    return false;
  if (is_part(t->graph, node))
    return read_part(t, node, axes, n);
  if (pln_is_call(t->graph, node, PLN_OP_TRANSPOSE))
    return read_transpose(t, node, axes, n);
  return pln_is_call(t->graph, node, PLN_OP_SLICE)
             ? read_slice(t, node, axes, n)
             : read_take(t, node, axes, n);
}

/* ------------------------------------------------------------- block size */

static bool cut_view(move_tree *t, pln_ref node) {
  moved_axis axes[PLN_MAX_RANK];
  int32_t n;
  if (!read_view(t, node, axes, &n))
    return false;
  const moved_axis *last = &axes[n - 1];
  bool moved = pln_is_call(t->graph, node, PLN_OP_TRANSPOSE);
  pln_ref x = moved_operand(t->graph, node);
  int64_t inner = size_from(t, x, n);
  if (n > 1 && !moved && !last->table && last->step == 1) {
    t->block = gcd(t->block, last->begin * inner);
    t->block = gcd(t->block, last->count * inner);
    inner *= dim_of(t, x, n - 1);
  }
  t->block = gcd(t->block, inner);
  return true;
}

static bool cut_concat(move_tree *t, pln_ref node) {
  const pln_graph *g = t->graph;
  int64_t axis = axis_of(t, node, node);
  if (!has_shape(t, node) || axis < 1 || axis >= rank_of(t, node))
    return false;
  for (uint32_t i = 0; i < g->nodes[node].count; i++) {
    pln_ref arg = pln_operand(g, node, i);
    if (!has_shape(t, arg) || rank_of(t, arg) != rank_of(t, node))
      return false;
    t->block = gcd(t->block, size_from(t, arg, (int32_t)axis));
  }
  return true;
}

/* Finds the largest blocks that no operator cuts. */
static bool find_block(move_tree *t) {
  const pln_graph *g = t->graph;
  for (uint32_t i = 0; i < t->n; i++) {
    pln_ref node = t->nodes[i].node;
    if (t->nodes[i].inside && is_split(g, node))
      continue;
    if (!has_shape(t, node))
      return false;
    if (!t->nodes[i].inside)
      t->block = gcd(t->block, size_from(t, node, 1));
    else if (pln_is_call(g, node, PLN_OP_CONCAT)) {
      if (!cut_concat(t, node))
        return false;
    } else if (!pln_rule_only_reshapes(g, node) && !is_unary(g, node) &&
               !cut_view(t, node))
      return false;
  }
  return true;
}

/* ------------------------------------------------------------- evaluation */

/* The size of a node, from those of its operands; 0 if they do not agree. */
static int64_t size_of(move_tree *t, const moved_node *m) {
  const pln_graph *g = t->graph;
  pln_ref x = moved_operand(g, m->node);
  const moved_node *from = find_node(t, x);
  int64_t inner = size_from(t, x, 1);
  bool join = pln_is_call(g, m->node, PLN_OP_CONCAT);
  if (!join && (pln_rule_only_reshapes(g, m->node) || is_unary(g, m->node)))
    return from->size;
  for (uint32_t i = 1; join && i < g->nodes[m->node].count; i++) {
    pln_ref arg = pln_operand(g, m->node, i);
    if (find_node(t, arg)->size * inner != from->size * size_from(t, arg, 1))
      return 0;
  }
  return from->size / inner * size_from(t, m->node, 1);
}

/* Sets the sizes for a batch of which the first axis of x is `times` as long.
 * *more: by how much `times` must grow, because a first axis would not be a
 * multiple of the batch; 1: it need not. */
static bool set_sizes(move_tree *t, int64_t times, int64_t *more) {
  *more = 1;
  t->batch = PLN_DIM_UNKNOWN;
  for (uint32_t i = 0; i < t->n && *more == 1; i++) {
    moved_node *m = &t->nodes[i];
    if (m->inside && is_split(t->graph, m->node))
      continue;
    int64_t inner = size_from(t, m->node, 1);
    m->size = m->inside ? size_of(t, m) : inner * times;
    if (!inner || m->size <= 0 || m->size > INT32_MAX)
      return false;
    *more = inner / gcd(m->size, inner);
    if (m->size == inner)
      t->batch = dim_of(t, m->node, 0);
    if (*more == 1 && (m->size % t->block || m->size / t->block > MAX_BLOCKS))
      return false;
    m->n = (uint32_t)(m->size / t->block);
  }
  return true;
}

/* Finds the batch, and the sizes. */
static bool find_sizes(move_tree *t) {
  int64_t times = 1, more;
  do {
    if (!set_sizes(t, times, &more) || more > MAX_BLOCKS / times)
      return false;
    times *= more;
  } while (more > 1);
  return t->batch != PLN_DIM_UNKNOWN;
}

/* Rewrites the last of n axes and what is inside of it in blocks. Returns the
 * number of axes. */
static int32_t axes_in_blocks(const move_tree *t, pln_ref x, moved_axis *axes,
                              int32_t n) {
  int64_t inner = size_from(t, x, n), block = t->block;
  moved_axis *last = &axes[n - 1];
  for (int32_t i = 0; i < n - 1; i++)
    axes[i].stride /= block;
  if (inner % block) {
    last->begin = last->begin * inner / block;
    last->count = last->count * inner / block;
    last->stride = 1;
    return n;
  }
  last->stride /= block;
  axes[n] = (moved_axis){.count = inner / block, .stride = 1, .step = 1};
  return n + 1;
}

static int64_t position_at(const moved_axis *axis, int64_t i) {
  int64_t at = i;
  if (!axis->table)
    return axis->begin + i * axis->step;
  pln_tensor_int(axis->table, (size_t)i, &at);
  return at < 0 ? at + axis->step : at;
}

/* Enumerates the blocks of `from` along the axes, the last one fastest. */
static void enumerate(const moved_axis *axes, int32_t n, const moved_node *from,
                      moved_node *to) {
  int64_t index[PLN_MAX_RANK + 1] = {0};
  for (uint32_t k = 0; k < to->n; k++) {
    int64_t at = 0;
    for (int32_t i = 0; i < n; i++)
      at += position_at(&axes[i], index[i]) * axes[i].stride;
    to->blocks[k] = from->blocks[at];
    for (int32_t i = n - 1; i >= 0 && ++index[i] == axes[i].count; i--)
      index[i] = 0;
  }
}

static bool map_view(move_tree *t, moved_node *m) {
  moved_axis axes[PLN_MAX_RANK + 1];
  pln_ref x = moved_operand(t->graph, m->node);
  const moved_node *from = find_node(t, x);
  int32_t n;
  if (!read_view(t, m->node, axes, &n))
    return false;
  axes[0].count = from->size / size_from(t, x, 1);
  bool moved = pln_is_call(t->graph, m->node, PLN_OP_TRANSPOSE);
  /* The axes of a transpose are in another order; what is inside of them stays.
   */
  if (moved) {
    for (int32_t i = 0; i < n; i++)
      axes[i].stride /= t->block;
    axes[n] = (moved_axis){
        .count = size_from(t, x, n) / t->block, .stride = 1, .step = 1};
    n++;
  } else
    n = axes_in_blocks(t, x, axes, n);
  m->n_applied = from->n_applied;
  memcpy(m->applied, from->applied, sizeof m->applied);
  enumerate(axes, n, from, m);
  return true;
}

static void copy_blocks(const moved_node *from, moved_node *to) {
  to->n_applied = from->n_applied;
  memcpy(to->applied, from->applied, sizeof to->applied);
  memcpy(to->blocks, from->blocks, from->n * sizeof *from->blocks);
}

static bool map_alias(move_tree *t, moved_node *m) {
  const moved_node *from = find_node(t, pln_operand(t->graph, m->node, 0));
  copy_blocks(from, m);
  if (pln_rule_only_reshapes(t->graph, m->node))
    return true;
  if (m->n_applied == MAX_APPLIED)
    return false;
  m->applied[m->n_applied++] = m->node;
  return true;
}

static bool are_equal_operands(const pln_graph *g, pln_ref a, pln_ref b) {
  const pln_node *n = &g->nodes[a], *m = &g->nodes[b];
  if (a == b || (n->kind == PLN_ABSENT && m->kind == PLN_ABSENT))
    return true;
  if (n->kind != PLN_CONSTANT || m->kind != PLN_CONSTANT)
    return false;
  const pln_tensor *x = g->tensors[n->data], *y = g->tensors[m->data];
  return x->bytes <= 64 && y->bytes <= 64 && !x->external && !y->external &&
         pln_tensor_equal(x, y);
}

/* The same operators were applied. */
static bool have_equal_applied(const pln_graph *g, const moved_node *a,
                               const moved_node *b) {
  bool same = a->n_applied == b->n_applied;
  for (uint32_t i = 0; same && i < a->n_applied; i++) {
    const pln_node *n = &g->nodes[a->applied[i]], *m = &g->nodes[b->applied[i]];
    same = n->data == m->data && n->attrs == m->attrs && n->count == m->count;
    for (uint32_t k = 1; same && k < n->count; k++)
      same = are_equal_operands(g, pln_operand(g, a->applied[i], k),
                                pln_operand(g, b->applied[i], k));
  }
  return same;
}

static bool map_concat(move_tree *t, moved_node *m) {
  const pln_graph *g = t->graph;
  int64_t axis = axis_of(t, m->node, m->node), at = 0;
  uint32_t n_args = g->nodes[m->node].count;
  const moved_node *first = find_node(t, pln_operand(g, m->node, 0));
  int64_t rows = first->size / size_from(t, first->node, (int32_t)axis);
  for (uint32_t i = 0; i < n_args; i++) {
    const moved_node *from = find_node(t, pln_operand(g, m->node, i));
    if (!have_equal_applied(g, from, first) ||
        from->size / size_from(t, from->node, (int32_t)axis) != rows)
      return false;
  }
  for (int64_t row = 0; row < rows; row++)
    for (uint32_t i = 0; i < n_args; i++) {
      const moved_node *from = find_node(t, pln_operand(g, m->node, i));
      int64_t n = from->n / rows;
      memcpy(m->blocks + at, from->blocks + row * n,
             (size_t)n * sizeof *m->blocks);
      at += n;
    }
  m->n_applied = first->n_applied;
  memcpy(m->applied, first->applied, sizeof m->applied);
  return true;
}

static bool map_nodes(move_tree *t) {
  const pln_graph *g = t->graph;
  for (uint32_t i = 0; i < t->n; i++) {
    moved_node *m = &t->nodes[i];
    m->blocks = t->buffer + (size_t)i * MAX_BLOCKS;
    if (!m->inside) {
      for (uint32_t k = 0; k < m->n; k++)
        m->blocks[k] = (uint16_t)k;
    } else if (pln_is_call(g, m->node, PLN_OP_CONCAT)) {
      if (!map_concat(t, m))
        return false;
    } else if (pln_rule_only_reshapes(g, m->node) || is_unary(g, m->node)) {
      if (!map_alias(t, m))
        return false;
    } else if (!is_split(g, m->node) && !map_view(t, m))
      return false;
  }
  return true;
}

/* ---------------------------------------------------------------- building */

static bool is_identity(const moved_node *x, const moved_node *root) {
  bool same = x->n == root->n;
  for (uint32_t i = 0; same && i < root->n; i++)
    same = root->blocks[i] == i;
  return same;
}

/* x is (batch, blocks, ...) as it is. */
static bool has_blocks_on_axis_1(const move_tree *t, const moved_node *x) {
  return rank_of(t, x->node) >= 2 && size_from(t, x->node, 2) == t->block &&
         dim_of(t, x->node, 1) == x->n;
}

static bool have_one_shape(const move_tree *t, pln_type a, pln_type b) {
  int32_t rank = pln_type_rank(t->engine, a);
  return rank == pln_type_rank(t->engine, b) &&
         !memcmp(pln_type_dims(t->engine, a), pln_type_dims(t->engine, b),
                 (size_t)rank * sizeof(pln_dim));
}

/* take(x, blocks, axis=1), with x reshaped first if need be. */
static pln_status build_take(move_tree *t, const moved_node *x,
                             const moved_node *root, pln_ref *out) {
  int64_t positions[MAX_BLOCKS];
  pln_rewrite_context *ctx = t->ctx;
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = 1};
  pln_dim dims[3] = {t->batch, x->n, t->block};
  pln_ref args[2] = {x->node};
  pln_attrs attrs;
  for (uint32_t i = 0; i < root->n; i++)
    positions[i] = root->blocks[i];
  if (!has_blocks_on_axis_1(t, x)) {
    pln_rewrite_context inner = *ctx;
    inner.type = 0;
    PLN_TRY(pln_rule_reshape(&inner, x->node, 3, dims, &args[0]));
  }
  *out = PLN_NONE;
  if (args[0] == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_rule_int_vector(ctx, root->n, positions, &args[1]));
  PLN_TRY(pln_symbol_intern(ctx->engine, pln_text("axis"), &entry.name));
  PLN_TRY(pln_attrs_make(ctx->engine, 1, &entry, &attrs));
  return pln_rule_build(ctx, PLN_OP_GATHER, attrs, 2, args, out);
}

static pln_status apply_unary(move_tree *t, const moved_node *root,
                              pln_ref *node) {
  for (uint32_t i = 0; *node != PLN_NONE && i < root->n_applied; i++) {
    const pln_graph *g = pln_rewrite_graph(t->ctx->rw);
    const pln_node n = g->nodes[root->applied[i]];
    pln_ref args[3];
    for (uint32_t k = 0; k < n.count; k++)
      args[k] = pln_operand(g, root->applied[i], k);
    args[0] = *node;
    PLN_TRY(pln_rule_build(t->ctx, n.data, n.attrs, n.count, args, node));
  }
  return PLN_OK;
}

/* How many calls replace the tree. */
static uint32_t count_new(const move_tree *t, const moved_node *x,
                          const moved_node *root, bool identity) {
  int32_t rank = rank_of(t, x->node), n = rank_of(t, root->node);
  bool apart = !has_blocks_on_axis_1(t, x);
  pln_type from = t->graph->nodes[x->node].type;
  pln_type to = t->graph->nodes[root->node].type;
  bool same = have_one_shape(t, from, to);
  if (identity)
    return root->n_applied + !same;
  /* A take along axis 1 has the result's shape, or a reshape is behind it. */
  same = rank == n && rank >= 2 && dim_of(t, root->node, 1) == root->n;
  for (int32_t i = 0; same && i < rank; i++)
    same = i == 1 || dim_of(t, x->node, i) == dim_of(t, root->node, i);
  if (apart)
    same = n == 3 && dim_of(t, root->node, 1) == root->n &&
           dim_of(t, root->node, 2) == t->block &&
           dim_of(t, root->node, 0) == t->batch;
  return root->n_applied + apart + 1 + !same;
}

/* Smaller blocks that are rows of x or of the result may need no reshape. */
static bool choose_block(move_tree *t, pln_ref source) {
  int64_t largest = t->block, best = largest;
  uint32_t fewest = UINT32_MAX;
  int64_t sizes[3] = {largest, 0, 0};
  sizes[1] = size_from(t, source, 2);
  sizes[2] = size_from(t, t->ctx->node, 2);
  for (uint32_t i = 0; i < PLN_COUNT(sizes); i++) {
    if (sizes[i] < (i ? MIN_BLOCK : 1) || largest % sizes[i])
      continue;
    t->block = sizes[i];
    if (!find_sizes(t))
      continue;
    uint32_t n =
        count_new(t, find_node(t, source), find_node(t, t->ctx->node), false);
    best = n < fewest ? sizes[i] : best;
    fewest = n < fewest ? n : fewest;
  }
  t->block = best;
  return fewest != UINT32_MAX && find_sizes(t);
}

static pln_status build_moved(move_tree *t, const moved_node *x,
                              const moved_node *root, bool identity,
                              pln_ref *out) {
  pln_rewrite_context inner = *t->ctx;
  pln_type to = t->ctx->type;
  pln_ref node = x->node;
  inner.type = 0;
  if (!identity)
    PLN_TRY(build_take(t, x, root, &node));
  if (node == PLN_NONE)
    return PLN_OK;
  pln_type from = pln_rewrite_graph(t->ctx->rw)->nodes[node].type;
  if (!have_one_shape(t, from, to))
    PLN_TRY(pln_rule_reshape(&inner, node,
                             (uint32_t)pln_type_rank(t->engine, to),
                             pln_type_dims(t->engine, to), &node));
  PLN_TRY(apply_unary(t, root, &node));
  *out = node;
  return node == PLN_NONE ? PLN_OK : pln_keep_type(t->ctx->rw, node, to);
}

static pln_status try_blocks(move_tree *t, pln_ref from, pln_ref *out) {
  if (!map_nodes(t))
    return PLN_OK;
  const moved_node *x = find_node(t, from);
  const moved_node *root = find_node(t, t->ctx->node);
  bool identity = is_identity(x, root);
  if ((!identity && t->block < MIN_BLOCK) ||
      count_new(t, x, root, identity) >= t->n_inside)
    return PLN_OK;
  return build_moved(t, x, root, identity, out);
}

/* Replaces the tree if that saves a call. */
static pln_status try_tree(move_tree *t, pln_ref *out) {
  size_t bytes = (size_t)MAX_NODES * MAX_BLOCKS * sizeof *t->buffer;
  uint32_t source = find_source(t);
  if (source == MAX_NODES || t->n_inside < 2)
    return PLN_OK;
  moved_node x = t->nodes[source];
  sort_nodes(t);
  t->block = 0;
  if (!find_block(t) || !choose_block(t, x.node))
    return PLN_OK;
  x = *find_node(t, x.node);
  if (t->n_inside == 2 && !has_blocks_on_axis_1(t, &x))
    return PLN_OK;
  t->buffer = pln_mem_new(t->engine, bytes);
  if (!t->buffer)
    return pln_nomem(t->engine);
  pln_status status = try_blocks(t, x.node, out);
  pln_mem_free(t->engine, t->buffer, bytes);
  return status;
}

static pln_status grow_and_try(move_tree *t, bool joins, pln_ref *out) {
  t->n = t->n_inside = 0;
  if (!add_use(t, t->ctx->node) || !enter_node(t, 0) || !grow(t, false) ||
      (joins && (!meets_join(t) || !grow(t, true))))
    return PLN_OK;
  leave_unary(t);
  return try_tree(t, out);
}

/* See the head of the file. Trees through concatenations are tried first. */
pln_status pln_simplify_take_blocks(pln_rewrite_context *ctx, pln_ref *out) {
  move_tree t = {.ctx = ctx, .graph = ctx->call.graph, .engine = ctx->engine};
  pln_ref first = pln_operand(t.graph, ctx->node, 0);
  bool join = pln_is_call(t.graph, ctx->node, PLN_OP_CONCAT);
  if (!pln_is_call(t.graph, ctx->node, ctx->call.op) ||
      (!join && !moves_blocks(t.graph, first) &&
       !pln_is_call(t.graph, first, PLN_OP_CONCAT)))
    return PLN_OK;
  PLN_TRY(grow_and_try(&t, true, out));
  return *out == PLN_NONE && !join ? grow_and_try(&t, false, out) : PLN_OK;
}
