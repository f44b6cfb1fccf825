/* sink_transposes.c: SinkTransposes: moves transposes behind the operators that
 * they reach, where fewer are left.
 *
 * Run by the executor, once per function. Requires a verified graph. A region
 * is grown from a transpose through the operators that can work on what is
 * before it: elementwise ones with broadcasting, reductions that keep axes,
 * Softmax, concatenations, slices and Splits. Other transposes with the same
 * permutation join it; operands from outside are transposed back, and what is
 * used outside is transposed behind. Nodes are added in order of evaluation,
 * and of all regions on the way the one that leaves the fewest transposes is
 * taken, if that is fewer than before. Small constants are transposed here.
 *
 *     %0 = transpose(%x, axes=[0, 2, 3, 1]); %1 = transpose(%y, axes=[0, 2, 3,
 * 1]); transpose(max(concatenate(tanh(%0), %1, axis=3), axis=[3], keepdims=1),
 *               axes=[0, 3, 1, 2])
 *       =>   max(concatenate(tanh(%x), %y, axis=1), axis=[1], keepdims=1)
 *
 * A float sum over several axes may be taken in another order.
 *
 * Source: ONNX Runtime's TransposeOptimizer, which moves one transpose over one
 * operator at a time. */

#include "eval/eval.h"
#include "ir/analysis/users.h"
#include "op/infer/infer.h"
#include "rule/rule.h"
#include "transform/transform.h"

/* Limits on a region, on its open users, on users and on operands of a node. */
enum { MAX_REGION = 1024, MAX_OPEN = 128, MAX_USERS = 256, MAX_ARGS = 16 };

typedef struct transpose_region {
  int32_t rank;
  int64_t perm[PLN_MAX_RANK];
  bool started, refused;
} transpose_region;

/* A region while it is grown. */
typedef struct region_growth {
  transpose_region region;
  uint32_t stamp;
  pln_ref nodes[MAX_REGION]; /* members, then what the best region takes */
  uint32_t n, best_n;
  int64_t cost, best_cost; /* transposes more than before */
  pln_ref open[MAX_OPEN];  /* users that may be added, ascending */
  uint32_t n_open;
  pln_ref last; /* the node added last */
} region_growth;

typedef struct transpose_sink {
  pln_engine *engine;
  const pln_graph *graph;
  pln_users u;
  /* By node. */
  uint32_t *member;  /* the growth that it is a node or transpose of */
  uint32_t *needed;  /* uses of its result as it is, in that growth */
  uint32_t *crossed; /* the growth of which it is an operand from outside */
  uint32_t *owner;   /* 1 + the region that it is computed in */
  uint8_t *claimed;  /* a transpose that a region removes */
  pln_ref *moved;    /* its result before the transposes, in the new graph */
  transpose_region *regions;
  uint32_t n_regions, cap_regions, stamp;
  int64_t sunk;
} transpose_sink;

/* ------------------------------------------------------------ permutations */

static pln_type type_at(const transpose_sink *s, pln_ref node) {
  return s->graph->nodes[node].type;
}

static int32_t rank_at(const transpose_sink *s, pln_ref node) {
  return pln_type_rank(s->engine, type_at(s, node));
}

static bool is_valid_call(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->data && pln_op_is_onnx_form(g, node) &&
         pln_call_is_valid(g, node) &&
         !(n->flags & (PLN_NODE_KEEP | PLN_NODE_EFFECT));
}

/* Reads the permutation of a transpose; its rank, or 0 if the node is none. */
static int32_t read_perm(const transpose_sink *s, pln_ref node, int64_t *perm) {
  const pln_node *n = &s->graph->nodes[node];
  bool seen[PLN_MAX_RANK] = {false};
  int32_t rank = rank_at(s, node);
  if (n->kind != PLN_CALL || n->data != PLN_OP_TRANSPOSE || rank < 2 ||
      rank > PLN_MAX_RANK || !is_valid_call(s->graph, node))
    return 0;
  const pln_attr *axes = pln_attrs_find(s->engine, n->attrs, "axes");
  if (!axes || axes->kind != PLN_ATTR_INTS || axes->count != (uint32_t)rank)
    return 0;
  for (int32_t i = 0; i < rank; i++) {
    perm[i] = axes->v.ints[i];
    if (perm[i] < 0 || perm[i] >= rank || seen[perm[i]])
      return 0;
    seen[perm[i]] = true;
  }
  return rank;
}

static bool has_perm(const transpose_sink *s, pln_ref node,
                     const transpose_region *r) {
  int64_t perm[PLN_MAX_RANK];
  return read_perm(s, node, perm) == r->rank &&
         !memcmp(perm, r->perm, (size_t)r->rank * sizeof *perm);
}

static void invert(const transpose_region *r, int64_t *inverse) {
  for (int32_t i = 0; i < r->rank; i++)
    inverse[r->perm[i]] = i;
}

/* The permutation of transpose `node` behind the region's; false if together
 * they move nothing. */
static bool compose(const transpose_sink *s, pln_ref node,
                    const transpose_region *r, int64_t *out) {
  int64_t perm[PLN_MAX_RANK];
  bool moves = false;
  read_perm(s, node, perm);
  for (int32_t i = 0; i < r->rank; i++) {
    out[i] = r->perm[perm[i]];
    moves |= out[i] != i;
  }
  return moves;
}

/* --------------------------------------------------------------- operators */

static bool is_one_element(const transpose_sink *s, pln_ref x) {
  int32_t rank = rank_at(s, x);
  for (int32_t i = 0; i < rank; i++)
    if (pln_type_dims(s->engine, type_at(s, x))[i] != 1)
      return false;
  return rank >= 0;
}

/* A constant that is transposed here. */
static bool is_small_constant(const transpose_sink *s, pln_ref x) {
  const pln_node *n = &s->graph->nodes[x];
  return n->kind == PLN_CONSTANT && rank_at(s, x) >= 0 &&
         s->graph->tensors[n->data]->bytes <= PLN_BUDGET_FREE;
}

/* The operand stays as it is: omitted, or a number of no more axes. */
static bool stays(const transpose_sink *s, const transpose_region *r,
                  pln_ref x) {
  return s->graph->nodes[x].kind == PLN_ABSENT ||
         (is_one_element(s, x) && rank_at(s, x) <= r->rank);
}

static bool are_broadcast(const transpose_sink *s, const transpose_region *r,
                          pln_ref node) {
  const pln_node *n = &s->graph->nodes[node];
  for (uint32_t i = 0; i < n->count; i++) {
    pln_ref x = pln_operand(s->graph, node, i);
    bool constant = is_small_constant(s, x) && rank_at(s, x) <= r->rank;
    if (!stays(s, r, x) && !constant && rank_at(s, x) != r->rank)
      return false;
  }
  return true;
}

static bool are_of_rank(const transpose_sink *s, const transpose_region *r,
                        pln_ref node, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (rank_at(s, pln_operand(s->graph, node, i)) != r->rank)
      return false;
  return true;
}

static bool has_known_axes(const pln_infer *call, uint32_t arg, int32_t rank) {
  int64_t axes[PLN_MAX_RANK];
  pln_list list = pln_arg_list(call, arg, "axes");
  if (list.count == 0 || !pln_list_known(&list) || list.count > PLN_MAX_RANK)
    return false;
  for (uint32_t i = 0; i < list.count; i++) {
    axes[i] = pln_list_at(&list, i);
    if (axes[i] < -rank || axes[i] >= rank)
      return false;
  }
  return true;
}

static bool reduces(const transpose_sink *s, const transpose_region *r,
                    pln_ref node) {
  pln_infer call = pln_infer_of(s->graph, node);
  return call.op != PLN_OP_ARG_MAX && call.op != PLN_OP_ARG_MIN &&
         pln_call_int(&call, "keepdims", 1) &&
         !pln_call_int(&call, "exclude", 0) && call.n_args <= 2 &&
         has_known_axes(&call, 1, r->rank);
}

static bool slices(const transpose_sink *s, const transpose_region *r,
                   pln_ref node) {
  pln_infer call = pln_infer_of(s->graph, node);
  return call.n_args >= 4 && !pln_arg_absent(&call, 3) &&
         has_known_axes(&call, 3, r->rank);
}

static bool is_split(const pln_graph *g, pln_ref node) {
  return g->nodes[node].kind == PLN_CALL &&
         g->nodes[node].data == PLN_OP_SPLIT && g->nodes[node].results > 0;
}

/* Returns true for a call that can work on what is before the transposes. */
static bool can_sink(const transpose_sink *s, const transpose_region *r,
                     pln_ref node) {
  const pln_graph *g = s->graph;
  const pln_node *n = &g->nodes[node];
  if (!is_valid_call(g, node) || n->count == 0 || n->count > MAX_ARGS ||
      s->owner[node])
    return false;
  if (is_split(g, node))
    return are_of_rank(s, r, node, 1) && n->results <= MAX_ARGS;
  if (n->results || rank_at(s, node) != r->rank)
    return false;
  uint32_t traits = pln_op_row(s->engine, n->data)->traits;
  switch (n->data) {
  case PLN_OP_EXPAND:
  case PLN_OP_DYN_BROADCAST_TO:
  case PLN_OP_BROADCAST_TO_LIKE:
  case PLN_OP_FULL_LIKE:
  case PLN_OP_BIAS_ADD: return false;
  case PLN_OP_CONCAT: return are_of_rank(s, r, node, n->count);
  case PLN_OP_SLICE: return are_of_rank(s, r, node, 1) && slices(s, r, node);
  case PLN_OP_SOFTMAX:
  case PLN_OP_LOG_SOFTMAX:
    return !pln_attrs_int(s->engine, n->attrs, "coerce_2d", 0);
  default: break;
  }
  if (traits & PLN_TRAIT_REDUCE)
    return are_of_rank(s, r, node, 1) && reduces(s, r, node);
  return (traits & (PLN_TRAIT_ELEMENTWISE | PLN_TRAIT_BROADCAST)) &&
         !(traits & PLN_TRAIT_RANDOM) &&
         !pln_attrs_find(s->engine, n->attrs, "axis") &&
         are_broadcast(s, r, node);
}

/* The number of operands that are tensors to be transposed. */
static uint32_t n_tensors(const transpose_sink *s, pln_ref node) {
  const pln_node *n = &s->graph->nodes[node];
  bool one = n->data == PLN_OP_SLICE || n->data == PLN_OP_SPLIT ||
             (pln_op_row(s->engine, n->data)->traits & PLN_TRAIT_REDUCE);
  return one ? 1 : n->count;
}

/* ------------------------------------------------------------------ growing
 */

static uint32_t count_users(const transpose_sink *s, pln_ref node) {
  return s->u.first[node + 1] - s->u.first[node];
}

/* Some node transposes the operand back already. */
static bool is_transposed_back(const transpose_sink *s,
                               const transpose_region *r, pln_ref x) {
  transpose_region back = {.rank = r->rank};
  invert(r, back.perm);
  if (count_users(s, x) > MAX_USERS)
    return false;
  for (uint32_t i = s->u.first[x]; i < s->u.first[x + 1]; i++)
    if (has_perm(s, s->u.users[i], &back))
      return true;
  return false;
}

static void open_user(transpose_sink *s, region_growth *g, pln_ref user) {
  uint32_t i = g->n_open;
  if (user <= g->last || g->n_open == MAX_OPEN || s->member[user] == g->stamp ||
      !can_sink(s, &g->region, user) ||
      s->u.node_scope[user] != s->u.node_scope[g->nodes[0]])
    return;
  for (uint32_t k = 0; k < g->n_open; k++)
    if (g->open[k] == user)
      return;
  for (; i > 0 && g->open[i - 1] > user; i--)
    g->open[i] = g->open[i - 1];
  g->open[i] = user;
  g->n_open++;
}

/* Counts the uses of a new member as it is, and opens its users. */
static void look_behind(transpose_sink *s, region_growth *g, pln_ref node,
                        bool is_seed) {
  int64_t perm[PLN_MAX_RANK];
  uint32_t needed = s->u.is_result[node] ? 1 : 0;
  for (uint32_t i = s->u.first[node]; i < s->u.first[node + 1]; i++) {
    pln_ref user = s->u.users[i];
    if (!is_seed && read_perm(s, user, perm) && !s->claimed[user]) {
      g->cost -= !compose(s, user, &g->region, perm);
      continue;
    }
    needed++;
    open_user(s, g, user);
  }
  s->needed[node] = needed;
  g->cost += !is_seed && needed > 0;
}

static void add_member(transpose_sink *s, region_growth *g, pln_ref node,
                       bool is_seed) {
  s->member[node] = g->stamp;
  g->nodes[g->n++] = node;
  look_behind(s, g, node, is_seed);
}

/* A use of an operand by a new member. */
static void cross_operand(transpose_sink *s, region_growth *g, pln_ref x) {
  bool constant = is_small_constant(s, x);
  if (stays(s, &g->region, x) || constant)
    return;
  if (s->member[x] != g->stamp && !s->claimed[x] &&
      has_perm(s, x, &g->region) && g->n < MAX_REGION &&
      count_users(s, x) <= MAX_USERS)
    add_member(s, g, x, true);
  if (s->member[x] == g->stamp) {
    g->cost -= --s->needed[x] == 0;
  } else if (s->crossed[x] != g->stamp) {
    s->crossed[x] = g->stamp;
    g->cost += !is_transposed_back(s, &g->region, x);
  }
}

/* Members are added with the fields of a Split; false if there is no room. */
static bool add_node(transpose_sink *s, region_growth *g, pln_ref node) {
  uint32_t n = n_tensors(s, node), room = MAX_ARGS + 2;
  uint32_t begin = s->u.first[node], end = s->u.first[node + 1];
  if (g->n + room + n > MAX_REGION || end - begin > MAX_USERS)
    return false;
  g->last = node;
  for (uint32_t i = 0; i < n; i++)
    cross_operand(s, g, pln_operand(s->graph, node, i));
  if (!is_split(s->graph, node)) {
    add_member(s, g, node, false);
    return true;
  }
  s->member[node] = g->stamp;
  g->nodes[g->n++] = node;
  if (end - begin > MAX_ARGS || s->u.is_result[node])
    return false;
  for (uint32_t i = begin; i < end; i++)
    if (s->graph->nodes[s->u.users[i]].kind != PLN_TUPLE_GET_ITEM)
      return false;
  for (uint32_t i = begin; i < end; i++)
    if (s->member[s->u.users[i]] != g->stamp)
      add_member(s, g, s->u.users[i], false);
  return true;
}

/* Grows the region of a transpose, and notes the best one on the way. */
static void grow(transpose_sink *s, region_growth *g, pln_ref seed) {
  g->stamp = ++s->stamp;
  g->n = g->best_n = g->n_open = 0;
  g->cost = g->best_cost = 0;
  g->last = seed;
  g->nodes[0] = seed;
  add_member(s, g, seed, true);
  while (g->n_open) {
    pln_ref node = g->open[0];
    memmove(g->open, g->open + 1, --g->n_open * sizeof *g->open);
    if (s->member[node] == g->stamp)
      continue;
    if (!add_node(s, g, node))
      return;
    if (g->cost < g->best_cost) {
      g->best_cost = g->cost;
      g->best_n = g->n;
    }
  }
}

static pln_status add_region(transpose_sink *s, const transpose_region *r) {
  if (s->n_regions == s->cap_regions) {
    uint32_t cap = s->cap_regions ? 2 * s->cap_regions : 8;
    transpose_region *grown = pln_mem_new(s->engine, cap * sizeof *grown);
    if (!grown)
      return pln_nomem(s->engine);
    if (s->n_regions)
      memcpy(grown, s->regions, s->n_regions * sizeof *grown);
    pln_mem_free(s->engine, s->regions, s->cap_regions * sizeof *grown);
    s->regions = grown;
    s->cap_regions = cap;
  }
  s->regions[s->n_regions++] = *r;
  return PLN_OK;
}

/* Takes the best region. Its transposes, and those behind it, are claimed. */
static pln_status take_region(transpose_sink *s, const region_growth *g) {
  int64_t perm[PLN_MAX_RANK];
  PLN_TRY(add_region(s, &g->region));
  for (uint32_t i = 0; i < g->best_n; i++) {
    pln_ref node = g->nodes[i];
    if (has_perm(s, node, &g->region)) {
      s->claimed[node] = 1;
      continue;
    }
    s->owner[node] = s->n_regions;
    for (uint32_t k = s->u.first[node]; k < s->u.first[node + 1]; k++)
      if (read_perm(s, s->u.users[k], perm))
        s->claimed[s->u.users[k]] = 1;
  }
  return PLN_OK;
}

static pln_status find_regions(transpose_sink *s, region_growth *g) {
  for (pln_ref i = 0; i < s->graph->n_nodes; i++) {
    if (s->claimed[i] || count_users(s, i) > MAX_USERS)
      continue;
    g->region = (transpose_region){.rank = 0};
    g->region.rank = read_perm(s, i, g->region.perm);
    if (!g->region.rank)
      continue;
    grow(s, g, i);
    if (g->best_n)
      PLN_TRY(take_region(s, g));
  }
  return PLN_OK;
}

/* ----------------------------------------------------------------- building
 */

static pln_status build_transpose(const transpose_sink *s, pln_builder *b,
                                  pln_ref x, int32_t rank, const int64_t *perm,
                                  pln_ref *out) {
  pln_attrs attrs;
  pln_attr axes = {
      .kind = PLN_ATTR_INTS, .count = (uint32_t)rank, .v.ints = perm};
  PLN_TRY(pln_symbol_intern(s->engine, pln_text("axes"), &axes.name));
  PLN_TRY(pln_attrs_make(s->engine, 1, &axes, &attrs));
  return pln_build_call(b, PLN_OP_TRANSPOSE, attrs, 0, 1, &x, out);
}

static pln_status fold(const transpose_sink *s, pln_builder *b, pln_ref *node) {
  pln_tensor *tensor;
  pln_status status = pln_eval_call(b->graph, *node, &tensor);
  (void)s;
  if (status == PLN_ERR_UNSUPPORTED)
    return PLN_ERR_TYPE;
  PLN_TRY(status);
  status = pln_build_constant(b, tensor, node);
  pln_tensor_release(tensor);
  return status;
}

/* The constant with axes of extent 1 in front, transposed back. */
static pln_status transpose_constant(const transpose_sink *s, pln_builder *b,
                                     const transpose_region *r, pln_ref old,
                                     pln_ref *out) {
  const pln_graph *g = s->graph;
  int64_t shape[PLN_MAX_RANK], back[PLN_MAX_RANK];
  int32_t rank = rank_at(s, old), front = r->rank - rank;
  pln_ref args[2];
  for (int32_t i = 0; i < r->rank; i++)
    shape[i] =
        i < front ? 1 : pln_type_dims(s->engine, type_at(s, old))[i - front];
  invert(r, back);
  PLN_TRY(pln_build_constant(b, g->tensors[g->nodes[old].data], &args[0]));
  PLN_TRY(pln_build_int64s(b, 1, (uint32_t)r->rank, shape, &args[1]));
  PLN_TRY(pln_build_call(b, PLN_OP_RESHAPE, 0, 0, 2, args, out));
  PLN_TRY(fold(s, b, out));
  PLN_TRY(build_transpose(s, b, *out, r->rank, back, out));
  return fold(s, b, out);
}

/* The operand as it is before the transposes. */
static pln_status move_operand(transpose_sink *s, pln_rewrite *rw,
                               pln_builder *b, const transpose_region *r,
                               uint32_t owner, pln_ref old, pln_ref *out) {
  int64_t back[PLN_MAX_RANK];
  *out = pln_rewrite_image(rw, old);
  if (stays(s, r, old))
    return PLN_OK;
  if (s->owner[old] == owner) {
    *out = s->moved[old];
    return *out == PLN_NONE ? PLN_ERR_TYPE : PLN_OK;
  }
  if (has_perm(s, old, r)) {
    *out = pln_rewrite_image(rw, pln_operand(s->graph, old, 0));
    return PLN_OK;
  }
  if (is_small_constant(s, old))
    return transpose_constant(s, b, r, old, out);
  invert(r, back);
  return build_transpose(s, b, *out, r->rank, back, out);
}

/* The axis or axes of the call, as they are before the transposes. */
static pln_status move_axes(const transpose_sink *s, pln_builder *b,
                            const transpose_region *r, pln_ref old,
                            uint32_t arg, pln_attrs *attrs, pln_ref *args) {
  pln_infer call = pln_infer_of(s->graph, old);
  pln_list list = pln_arg_list(&call, arg, "axes");
  int64_t axes[PLN_MAX_RANK];
  for (uint32_t i = 0; i < list.count; i++) {
    int64_t axis = pln_list_at(&list, i);
    axes[i] = r->perm[axis < 0 ? axis + r->rank : axis];
  }
  if (!pln_arg_absent(&call, arg))
    return pln_build_int64s(b, 1, list.count, axes, &args[arg]);
  pln_attr entry = {.kind = PLN_ATTR_INTS, .count = list.count, .v.ints = axes};
  PLN_TRY(pln_symbol_intern(s->engine, pln_text("axes"), &entry.name));
  return pln_attrs_with(s->engine, *attrs, &entry, attrs);
}

static pln_status move_axis(const transpose_sink *s, const transpose_region *r,
                            int64_t fallback, pln_attrs *attrs) {
  int64_t axis = pln_attrs_int(s->engine, *attrs, "axis", fallback);
  if (axis < -r->rank || axis >= r->rank)
    return PLN_ERR_TYPE;
  pln_attr entry = {.kind = PLN_ATTR_INT,
                    .v.i = r->perm[axis < 0 ? axis + r->rank : axis]};
  PLN_TRY(pln_symbol_intern(s->engine, pln_text("axis"), &entry.name));
  return pln_attrs_with(s->engine, *attrs, &entry, attrs);
}

static pln_status build_moved(transpose_sink *s, pln_rewrite *rw,
                              pln_builder *b, const transpose_region *r,
                              pln_ref old) {
  const pln_graph *g = s->graph;
  const pln_node n = g->nodes[old];
  pln_ref args[MAX_ARGS];
  pln_attrs attrs = n.attrs;
  if (n.kind == PLN_TUPLE_GET_ITEM)
    return s->moved[pln_operand(g, old, 0)] == PLN_NONE
               ? PLN_ERR_TYPE
               : pln_build_tuple_get_item(b, s->moved[pln_operand(g, old, 0)],
                                          n.data, &s->moved[old]);
  uint32_t tensors = n_tensors(s, old);
  for (uint32_t i = 0; i < n.count; i++)
    if (i < tensors)
      PLN_TRY(move_operand(s, rw, b, r, s->owner[old], pln_operand(g, old, i),
                           &args[i]));
    else
      args[i] = pln_rewrite_image(rw, pln_operand(g, old, i));
  if (n.data == PLN_OP_CONCAT || n.data == PLN_OP_SPLIT)
    PLN_TRY(move_axis(s, r, 0, &attrs));
  else if (n.data == PLN_OP_SOFTMAX || n.data == PLN_OP_LOG_SOFTMAX)
    PLN_TRY(move_axis(s, r, -1, &attrs));
  else if (n.data == PLN_OP_SLICE)
    PLN_TRY(move_axes(s, b, r, old, 3, &attrs, args));
  else if (pln_op_row(s->engine, n.data)->traits & PLN_TRAIT_REDUCE)
    PLN_TRY(move_axes(s, b, r, old, 1, &attrs, args));
  pln_builder_origin(b, g->origin[old]);
  return pln_build_call(b, n.data, attrs, n.results, n.count, args,
                        &s->moved[old]);
}

/* Something uses the node as it is. */
static bool is_needed(const transpose_sink *s, pln_ref node) {
  int64_t perm[PLN_MAX_RANK];
  for (uint32_t i = s->u.first[node]; i < s->u.first[node + 1]; i++) {
    pln_ref user = s->u.users[i];
    if (s->owner[user] != s->owner[node] && !read_perm(s, user, perm))
      return true;
  }
  return s->u.is_result[node];
}

static pln_status sink_node(transpose_sink *s, pln_rewrite *rw,
                            transpose_region *r, pln_ref old, pln_ref *node) {
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(build_moved(s, rw, b, r, old));
  if (is_split(s->graph, old) || !is_needed(s, old))
    return PLN_OK;
  PLN_TRY(build_transpose(s, b, s->moved[old], r->rank, r->perm, node));
  return pln_keep_type(rw, *node, type_at(s, old));
}

/* An ill-typed call, as files may contain, ends the region: what is built of it
 * stays valid. */
static pln_status try_sink(transpose_sink *s, pln_rewrite *rw,
                           transpose_region *r, pln_ref old, pln_ref *node) {
  size_t mark = pln_diag_count(s->engine);
  pln_ref before = *node;
  pln_status status = sink_node(s, rw, r, old, node);
  if (status != PLN_ERR_TYPE)
    return status;
  pln_diag_drop(s->engine, mark);
  *node = before;
  s->moved[old] = PLN_NONE;
  r->refused = true;
  return PLN_OK;
}

/* A transpose behind a region is one of what is before the transposes. */
static pln_status merge_transpose(transpose_sink *s, pln_rewrite *rw,
                                  pln_ref old, pln_ref *node) {
  int64_t perm[PLN_MAX_RANK];
  pln_ref x = pln_operand(s->graph, old, 0);
  const transpose_region *r = &s->regions[s->owner[x] - 1];
  if (s->moved[x] == PLN_NONE || !read_perm(s, old, perm))
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  if (compose(s, old, r, perm))
    PLN_TRY(build_transpose(s, b, s->moved[x], r->rank, perm, node));
  else
    *node = s->moved[x];
  return pln_keep_type(rw, *node, type_at(s, old));
}

static pln_status start(transpose_sink *s, pln_rewrite *rw,
                        transpose_region *r) {
  bool allowed;
  if (r->started)
    return PLN_OK;
  r->started = true;
  PLN_TRY(pln_rewrite_apply(rw, "sink", &allowed));
  r->refused = !allowed;
  s->sunk += allowed;
  return PLN_OK;
}

static pln_status visit(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node) {
  transpose_sink *s = ud;
  const pln_node *n = &s->graph->nodes[old];
  if (s->owner[old]) {
    transpose_region *r = &s->regions[s->owner[old] - 1];
    PLN_TRY(start(s, rw, r));
    return r->refused ? PLN_OK : try_sink(s, rw, r, old, node);
  }
  if (n->kind == PLN_CALL && n->data == PLN_OP_TRANSPOSE && n->count == 1 &&
      s->owner[pln_operand(s->graph, old, 0)])
    return merge_transpose(s, rw, old, node);
  return PLN_OK;
}

/* ---------------------------------------------------------------------- pass
 */

static pln_status begin_sink(transpose_sink *s) {
  size_t n = s->graph->n_nodes + (size_t)1;
  PLN_TRY(pln_users_begin(&s->u, s->graph));
  s->member = pln_mem_zeroed(s->engine, n * sizeof *s->member);
  s->needed = pln_mem_zeroed(s->engine, n * sizeof *s->needed);
  s->crossed = pln_mem_zeroed(s->engine, n * sizeof *s->crossed);
  s->owner = pln_mem_zeroed(s->engine, n * sizeof *s->owner);
  s->claimed = pln_mem_zeroed(s->engine, n * sizeof *s->claimed);
  s->moved = pln_mem_new(s->engine, n * sizeof *s->moved);
  if (!s->member || !s->needed || !s->crossed || !s->owner || !s->claimed ||
      !s->moved)
    return pln_nomem(s->engine);
  for (size_t i = 0; i < n; i++)
    s->moved[i] = PLN_NONE;
  return PLN_OK;
}

static void end_sink(transpose_sink *s) {
  size_t n = s->graph->n_nodes + (size_t)1;
  pln_users_end(&s->u);
  pln_mem_free(s->engine, s->member, n * sizeof *s->member);
  pln_mem_free(s->engine, s->needed, n * sizeof *s->needed);
  pln_mem_free(s->engine, s->crossed, n * sizeof *s->crossed);
  pln_mem_free(s->engine, s->owner, n * sizeof *s->owner);
  pln_mem_free(s->engine, s->claimed, n * sizeof *s->claimed);
  pln_mem_free(s->engine, s->moved, n * sizeof *s->moved);
  pln_mem_free(s->engine, s->regions, s->cap_regions * sizeof *s->regions);
}

static bool has_transposes(const pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_CALL && g->nodes[i].data == PLN_OP_TRANSPOSE)
      return true;
  return false;
}

static pln_status sink(transpose_sink *s, pln_graph **out) {
  pln_mutator m = {.ud = s, .visit = visit, .keeps_types = true};
  region_growth *g = pln_mem_new(s->engine, sizeof *g);
  if (!g)
    return pln_nomem(s->engine);
  pln_status status = begin_sink(s);
  if (status == PLN_OK)
    status = find_regions(s, g);
  if (status == PLN_OK && s->n_regions)
    status = pln_graph_rewrite(s->graph, &m, out);
  else if (status == PLN_OK)
    *out = pln_graph_retain(s->graph);
  end_sink(s);
  pln_mem_free(s->engine, g, sizeof *g);
  return status;
}

pln_status pln_pass_sink_transposes(pln_pass_run *run) {
  transpose_sink s = {.engine = pln_run_engine(run),
                      .graph = pln_run_function(run)};
  pln_graph *out = NULL;
  if (!has_transposes(s.graph))
    return PLN_OK;
  PLN_TRY(sink(&s, &out));
  if (s.sunk)
    PLN_TRY(pln_run_count(run, "sink", s.sunk));
  pln_run_set_function(run, out);
  return PLN_OK;
}
