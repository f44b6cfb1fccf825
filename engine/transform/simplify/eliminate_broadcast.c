/* eliminate_broadcast.c: EliminateBroadcast: leaves out broadcasts that a later
 * elementwise operator does itself.
 *
 * Run by the executor, once per function. Requires a verified graph. A
 * broadcast is a broadcast_to, a constant_of_shape, or a reshape or expand_dims
 * that adds axes of extent 1 in front. It is left out if all its users are
 * elementwise and either keep the shape of their results without it, or have
 * only such users themselves. No call is added. SimplifyExpr has rules for
 * broadcasts whose direct user does not need them.
 *
 *     add(%scores, where(broadcast_to(%mask, [2, 1, 9, 9]), 0, -1e9))
 *       =>   add(%scores, where(%mask, 0, -1e9))
 *     for %scores: (2, 8, 9, 9) and %mask: (1, 1, 9, 9)
 *
 * Two sweeps decide: forwards, the shape that each node has without the
 * broadcasts before it; backwards, whether a user needs the full shape. */

#include "ir/analysis/users.h"
#include "ir/graph/describe.h"
#include "transform/simplify/rule.h"

enum { MAX_ARGS = 8 };

typedef struct broadcast_sweep {
  pln_engine *engine;
  const pln_graph *graph;
  pln_users u;
  pln_type *narrow; /* by node: its type without broadcasts before it */
  bool *full;       /* by node: a user needs its own shape */
  bool found;       /* some type is narrow */
  int64_t left_out;
} broadcast_sweep;

static pln_type type_at(const broadcast_sweep *s, pln_ref node) {
  return s->graph->nodes[node].type;
}

/* ----------------------------------------------------------------- operators
 */

/* A call that passes may change, with ONNX's meaning and one result. */
static bool is_plain_call(const broadcast_sweep *s, pln_ref node) {
  const pln_node *n = &s->graph->nodes[node];
  return n->kind == PLN_CALL && n->data && !n->results && n->count > 0 &&
         n->count <= MAX_ARGS &&
         !(n->flags & (PLN_NODE_KEEP | PLN_NODE_EFFECT)) &&
         pln_op_is_onnx_form(s->graph, node) &&
         pln_call_is_valid(s->graph, node) &&
         pln_type_rank(s->engine, n->type) >= 0;
}

/* A call whose result has the shape that its operands broadcast to. */
static bool is_elementwise(const broadcast_sweep *s, pln_ref node) {
  const pln_node *n = &s->graph->nodes[node];
  uint32_t traits;
  if (!is_plain_call(s, node) || n->data == PLN_OP_EXPAND ||
      n->data == PLN_OP_BROADCAST_TO_LIKE ||
      n->data == PLN_OP_DYN_BROADCAST_TO || n->data == PLN_OP_PRELU)
    return false;
  traits = pln_op_row(s->engine, n->data)->traits;
  return (traits & PLN_TRAIT_BROADCAST) ||
         ((traits & PLN_TRAIT_ELEMENTWISE) && n->count == 1);
}

/* The number of axes of extent 1 in front of the shape of a reshape or
 * expand_dims, at most as many as it adds. */
static int32_t ones_in_front(const broadcast_sweep *s, pln_ref node) {
  const pln_graph *g = s->graph;
  pln_type x = type_at(s, pln_operand(g, node, 0)), type = type_at(s, node);
  int32_t rank = pln_type_rank(s->engine, type), n = 0;
  int32_t own = pln_type_rank(s->engine, x);
  const pln_dim *dims = pln_type_dims(s->engine, type);
  if (own < 0 || own >= rank || rank > PLN_MAX_RANK)
    return 0;
  while (n < rank - own && dims[n] == 1)
    n++;
  return n;
}

/* The number of axes that an expand_dims adds in front of all axes of its
 * operand. An axis of extent 1 of the operand's own is none. */
static int32_t axes_in_front(const broadcast_sweep *s, pln_ref node) {
  pln_infer call = pln_infer_of(s->graph, node);
  pln_list list = pln_arg_list(&call, 1, "axes");
  int64_t rank = pln_type_rank(s->engine, type_at(s, node));
  uint32_t added = 0; /* a bit an axis */
  int32_t n = 0;
  if (!pln_list_known(&list) || list.count > PLN_MAX_RANK || rank < 0 ||
      rank > PLN_MAX_RANK)
    return 0;
  for (uint32_t i = 0; i < list.count; i++) {
    int64_t axis = pln_list_at(&list, i);
    axis += axis < 0 ? rank : 0;
    if (axis >= 0 && axis < rank)
      added |= UINT32_C(1) << axis;
  }
  while (n < rank && (added >> n & 1))
    n++;
  return n;
}

/* A reshape or expand_dims that only adds axes of extent 1 in front. */
static bool only_adds_in_front(const broadcast_sweep *s, pln_ref node) {
  const pln_graph *g = s->graph;
  pln_type x = type_at(s, pln_operand(g, node, 0)), type = type_at(s, node);
  int32_t own = pln_type_rank(s->engine, x), n = ones_in_front(s, node);
  if (n == 0 || n + own != pln_type_rank(s->engine, type))
    return false;
  for (int32_t i = 0; i < own; i++) {
    pln_dim dim = pln_type_dims(s->engine, x)[i];
    if (dim == PLN_DIM_UNKNOWN || dim != pln_type_dims(s->engine, type)[n + i])
      return false;
  }
  return true;
}

typedef enum broadcast_form {
  NO_BROADCAST,
  OF_OPERAND, /* its operand is the same without the broadcast */
  OF_NUMBER,  /* a number is */
  OF_AXES     /* an expand_dims of fewer axes is */
} broadcast_form;

/* Returns true if the call is all that stands between a cast to a half float
 * and its users. ONNX Runtime computes those in float32 and would drop the
 * cast, with its rounding, if it saw both. */
static bool separates_casts(const broadcast_sweep *s, pln_ref node) {
  const pln_node *n = &s->graph->nodes[pln_operand(s->graph, node, 0)];
  pln_dtype dtype = pln_type_dtype(s->engine, n->type);
  return n->kind == PLN_CALL && n->data == PLN_OP_CAST &&
         (dtype == PLN_FLOAT16 || dtype == PLN_BFLOAT16);
}

static broadcast_form form_of(const broadcast_sweep *s, pln_ref node) {
  if (!is_plain_call(s, node) || separates_casts(s, node))
    return NO_BROADCAST;
  switch (s->graph->nodes[node].data) {
  case PLN_OP_EXPAND: return OF_OPERAND;
  case PLN_OP_CONSTANT_OF_SHAPE: return OF_NUMBER;
  case PLN_OP_RESHAPE:
    return only_adds_in_front(s, node) ? OF_OPERAND : NO_BROADCAST;
  case PLN_OP_UNSQUEEZE:
    return only_adds_in_front(s, node) ? OF_OPERAND
           : axes_in_front(s, node)    ? OF_AXES
                                       : NO_BROADCAST;
  default: return NO_BROADCAST;
  }
}

/* ------------------------------------------------------------- narrow shapes
 */

static pln_dim extent_at(const pln_engine *e, pln_type type, int32_t rank,
                         int32_t axis) {
  int32_t own = pln_type_rank(e, type), at = axis - rank + own;
  return at < 0 ? 1 : pln_type_dims(e, type)[at];
}

/* The extent that `a` and `b` broadcast to, as inference knows it. */
static pln_dim broadcast_extents(pln_dim a, pln_dim b) {
  if (a == PLN_DIM_UNKNOWN || b == PLN_DIM_UNKNOWN)
    return PLN_DIM_UNKNOWN;
  if (a == b || b == 1)
    return a;
  if (a == 1)
    return b;
  if (PLN_DIM_IS_CONST(a) && PLN_DIM_IS_CONST(b))
    return PLN_DIM_UNKNOWN;
  return PLN_DIM_IS_CONST(a) ? a : PLN_DIM_IS_CONST(b) ? b : PLN_DIM_UNKNOWN;
}

/* The shape that n tensors broadcast to; rank -1: some extent is not known. */
static void broadcast_types(const pln_engine *e, uint32_t n,
                            const pln_type *types, pln_shape *out) {
  out->rank = 0;
  for (uint32_t i = 0; i < n; i++) {
    int32_t rank = pln_type_rank(e, types[i]);
    if (rank < 0 || rank > PLN_MAX_RANK) {
      out->rank = -1;
      return;
    }
    out->rank = rank > out->rank ? rank : out->rank;
  }
  for (int32_t axis = 0; axis < out->rank; axis++) {
    pln_dim dim = 1;
    for (uint32_t i = 0; i < n; i++)
      dim = broadcast_extents(dim, extent_at(e, types[i], out->rank, axis));
    out->dims[axis] = dim;
    if (dim == PLN_DIM_UNKNOWN) {
      out->rank = -1;
      return;
    }
  }
}

static bool has_shape(const pln_engine *e, pln_type type,
                      const pln_shape *shape) {
  if (shape->rank < 0 || pln_type_rank(e, type) != shape->rank)
    return false;
  for (int32_t i = 0; i < shape->rank; i++)
    if (pln_type_dims(e, type)[i] != shape->dims[i])
      return false;
  return true;
}

/* Reads the types of the operands of an elementwise call, narrow or not. */
static void operand_types(const broadcast_sweep *s, pln_ref node, bool narrow,
                          pln_type *types) {
  for (uint32_t i = 0; i < s->graph->nodes[node].count; i++) {
    pln_ref arg = pln_operand(s->graph, node, i);
    types[i] = narrow ? s->narrow[arg] : type_at(s, arg);
  }
}

/* An elementwise call of narrow operands. If its shape is not known then, the
 * call keeps its own. */
static pln_status narrow_elementwise(broadcast_sweep *s, pln_ref node) {
  pln_type types[MAX_ARGS], type = type_at(s, node);
  uint32_t n = s->graph->nodes[node].count;
  bool same = true;
  pln_shape shape;
  operand_types(s, node, true, types);
  for (uint32_t i = 0; i < n; i++)
    same = same && types[i] == type_at(s, pln_operand(s->graph, node, i));
  if (same)
    return PLN_OK;
  broadcast_types(s->engine, n, types, &shape);
  if (shape.rank < 0) {
    s->full[node] = true;
    return PLN_OK;
  }
  return pln_type_tensor(s->engine, pln_type_dtype(s->engine, type), shape.rank,
                         shape.dims, &s->narrow[node]);
}

/* The type of a broadcast without its first axes of extent 1. */
static pln_status without_front(broadcast_sweep *s, pln_ref node, int32_t n,
                                pln_type *out) {
  pln_type type = type_at(s, node);
  return pln_type_tensor(s->engine, pln_type_dtype(s->engine, type),
                         pln_type_rank(s->engine, type) - n,
                         pln_type_dims(s->engine, type) + n, out);
}

static pln_status narrow_node(broadcast_sweep *s, pln_ref node) {
  pln_type *out = &s->narrow[node];
  *out = type_at(s, node);
  if (is_elementwise(s, node))
    return narrow_elementwise(s, node);
  broadcast_form form = form_of(s, node);
  s->found = s->found || form != NO_BROADCAST;
  if (form == OF_OPERAND)
    *out = s->narrow[pln_operand(s->graph, node, 0)];
  else if (form == OF_NUMBER)
    return pln_type_tensor(s->engine, pln_type_dtype(s->engine, *out), 0, NULL,
                           out);
  else if (form == OF_AXES)
    return without_front(s, node, axes_in_front(s, node), out);
  return PLN_OK;
}

/* --------------------------------------------------------------- full shapes
 */

/* Marks the operands of an elementwise call that must have their own shape, so
 * that the call's result has its own. */
static void need_operands(broadcast_sweep *s, pln_ref node) {
  const pln_graph *g = s->graph;
  pln_type types[MAX_ARGS];
  uint32_t n = g->nodes[node].count;
  pln_shape shape;
  operand_types(s, node, true, types);
  broadcast_types(s->engine, n, types, &shape);
  if (has_shape(s->engine, type_at(s, node), &shape))
    return;
  operand_types(s, node, false, types);
  for (uint32_t i = 0; i < n; i++) {
    pln_ref arg = pln_operand(g, node, i);
    types[i] = s->narrow[arg];
    broadcast_types(s->engine, n, types, &shape);
    if (has_shape(s->engine, type_at(s, node), &shape))
      continue;
    types[i] = type_at(s, arg);
    s->full[arg] = true;
  }
}

static void need_all_operands(broadcast_sweep *s, pln_ref node) {
  const pln_node *n = &s->graph->nodes[node];
  for (uint32_t i = 0; i < n->count; i++)
    s->full[s->graph->operands[n->first + i]] = true;
}

/* Marks what the node needs of its operands; its users are marked before. */
static void mark_needs(broadcast_sweep *s, pln_ref node) {
  broadcast_form form;
  s->full[node] = s->full[node] || s->u.is_result[node] ||
                  pln_users_count(&s->u, node) == 0;
  if (is_elementwise(s, node)) {
    if (s->full[node])
      need_operands(s, node);
    return;
  }
  form = form_of(s, node);
  if (form == OF_OPERAND && !s->full[node])
    return;
  need_all_operands(s, node);
}

/* Users that are no calls need what they use as it is. */
static void mark_operands_of_others(broadcast_sweep *s) {
  for (pln_ref i = 0; i < s->graph->n_nodes; i++)
    for (uint32_t k = s->u.first[i]; k < s->u.first[i + 1]; k++)
      if (s->graph->nodes[s->u.users[k]].kind != PLN_CALL)
        s->full[i] = true;
}

static void mark_all(broadcast_sweep *s) {
  mark_operands_of_others(s);
  for (pln_ref i = s->graph->n_nodes; i-- > 0;)
    if (s->graph->nodes[i].kind == PLN_CALL)
      mark_needs(s, i);
}

/* ----------------------------------------------------------------- rewriting
 */

/* expand_dims of the operand with the axes that are not in front. */
static pln_status build_fewer_axes(broadcast_sweep *s, pln_rewrite *rw,
                                   pln_ref old, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_infer call = pln_infer_of(g, *node);
  pln_list list = pln_arg_list(&call, 1, "axes");
  int64_t axes[PLN_MAX_RANK], rank = pln_type_rank(s->engine, type_at(s, old));
  int32_t front = axes_in_front(s, old);
  uint32_t n = 0;
  if (!pln_list_known(&list) || list.count > PLN_MAX_RANK)
    return PLN_OK;
  for (uint32_t i = 0; i < list.count; i++) {
    int64_t axis = pln_list_at(&list, i);
    axis += axis < 0 ? rank : 0;
    if (axis >= front)
      axes[n++] = axis - front;
  }
  pln_rewrite_context ctx = {.engine = s->engine, .rw = rw, .old = old};
  pln_rule_set_call(&ctx, *node);
  ctx.type = 0;
  pln_ref built, x = pln_rule_arg(&ctx, 0);
  PLN_TRY(pln_rule_replace_list(&ctx, x, pln_arg_absent(&call, 1) ? 0 : 1,
                                "axes", n, axes, &built));
  *node = built == PLN_NONE ? *node : built;
  return PLN_OK;
}

static pln_status leave_out(broadcast_sweep *s, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  broadcast_form form = form_of(s, old);
  pln_ref before = *node;
  bool allowed;
  PLN_TRY(pln_rewrite_apply(rw, "broadcast", &allowed));
  if (!allowed)
    return PLN_OK;
  if (form == OF_OPERAND)
    *node = pln_operand(g, *node, 0);
  else if (form == OF_AXES)
    PLN_TRY(build_fewer_axes(s, rw, old, node));
  else
    PLN_TRY(pln_rule_fill(rw, before, node));
  s->left_out += *node != before;
  return PLN_OK;
}

static pln_status visit(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node) {
  broadcast_sweep *s = ud;
  pln_type type = type_at(s, old);
  if (s->graph->nodes[old].kind != PLN_CALL)
    return PLN_OK;
  if (!s->full[old] && form_of(s, old) != NO_BROADCAST)
    return leave_out(s, rw, old, node);
  if (s->full[old] && pln_rewrite_graph(rw)->nodes[*node].type != type)
    return pln_keep_type(rw, *node, type);
  return PLN_OK;
}

/* ---------------------------------------------------------------------- pass
 */

static void end_sweep(broadcast_sweep *s) {
  size_t n = s->graph->n_nodes + (size_t)1;
  if (s->u.engine)
    pln_users_end(&s->u);
  pln_mem_free(s->engine, s->narrow, n * sizeof *s->narrow);
  pln_mem_free(s->engine, s->full, n * sizeof *s->full);
}

/* While a broadcast is left out, inference may refuse one behind it that is
 * left out too, hence the lenient rewrite. */
static pln_status sweep(broadcast_sweep *s, pln_graph **out) {
  pln_mutator m = {.ud = s, .visit = visit, .lenient = true};
  size_t n = s->graph->n_nodes + (size_t)1;
  s->narrow = pln_mem_zeroed(s->engine, n * sizeof *s->narrow);
  s->full = pln_mem_zeroed(s->engine, n * sizeof *s->full);
  if (!s->narrow || !s->full)
    return pln_nomem(s->engine);
  *out = pln_graph_retain(s->graph);
  for (pln_ref i = 0; i < s->graph->n_nodes; i++)
    PLN_TRY(narrow_node(s, i));
  if (!s->found)
    return PLN_OK;
  PLN_TRY(pln_users_begin(&s->u, s->graph));
  mark_all(s);
  pln_graph_release(*out);
  *out = NULL;
  return pln_graph_rewrite(s->graph, &m, out);
}

pln_status pln_pass_eliminate_broadcast(pln_pass_run *run) {
  broadcast_sweep s = {.engine = pln_run_engine(run),
                       .graph = pln_run_function(run)};
  pln_graph *out = NULL;
  pln_status status = sweep(&s, &out);
  end_sweep(&s);
  if (status == PLN_OK && s.left_out)
    status = pln_run_count(run, "broadcast", s.left_out);
  if (status == PLN_OK)
    pln_run_set_function(run, out);
  else
    pln_graph_release(out);
  return status;
}
