/* reshape.c: rules for operators that change the shape and keep the order of
 * elements: reshape, flatten, squeeze, expand_dims. */

#include "transform/simplify/rule.h"

/* limit on the length of the chains that are followed */
enum { MAX_LOOK = 8 };

/* Relay's reverse_reshape differs from reshape in its codes only. */
static bool is_reverse_reshape(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && n->data == PLN_OP_REVERSE_RESHAPE &&
         n->count == 1 && pln_call_is_valid(g, node);
}

static bool keeps_order(const pln_graph *g, pln_ref node) {
  return is_reverse_reshape(g, node) || pln_rule_only_reshapes(g, node);
}

static bool allows_zero(const pln_rewrite_context *ctx) {
  return pln_call_int(&ctx->call, "allowzero", 0) != 0;
}

/* Returns true for a reshape to the operand's own shape, written by 0, by
 * extents, and by at most one -1. */
static bool copies_all(const pln_rewrite_context *ctx) {
  pln_list list = pln_arg_list(&ctx->call, 1, "newshape");
  uint32_t open = 0;
  if (ctx->call.op != PLN_OP_RESHAPE || !list.given || !pln_list_known(&list) ||
      allows_zero(ctx) || (int64_t)list.count != pln_arg_rank(&ctx->call, 0))
    return false;
  const pln_dim *extents = pln_arg_dims(&ctx->call, 0);
  for (uint32_t i = 0; i < list.count; i++) {
    pln_dim dim = pln_list_at(&list, i);
    open += dim == -1;
    if (dim != 0 && dim != -1 && dim != extents[i])
      return false;
  }
  return open <= 1;
}

/* reshape(...(x)) => x if the result has the shape of x. */
pln_status pln_simplify_same_reshape(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref x = pln_rule_arg(ctx, 0);
  if (copies_all(ctx)) {
    *out = x;
    return PLN_OK;
  }
  for (int i = 0; i < MAX_LOOK; i++) {
    if (pln_same_shape_by_count(ctx->engine, ctx->type, g->nodes[x].type)) {
      *out = x;
      return PLN_OK;
    }
    if (!keeps_order(g, x))
      return PLN_OK;
    x = pln_operand(g, x, 0);
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- reshape
 */

/* A target shape for a reshape of `x`: constants, 0 for the extent of x on the
 * same axis, at most one -1. */
typedef struct target {
  uint32_t n;
  uint32_t n_open; /* number of elements that are -1 */
  bool is_empty;   /* an extent is 0, so -1 would be ambiguous */
  int64_t dims[PLN_MAX_RANK];
} target;

/* Sets element `i` to `dim`, which may be symbolic. */
static bool place_target_dim(const pln_rewrite_context *ctx, pln_type x,
                             target *t, uint32_t i, pln_dim dim) {
  const pln_engine *e = ctx->engine;
  bool same = (int32_t)i < pln_type_rank(e, x) && dim != PLN_DIM_UNKNOWN &&
              pln_type_dims(e, x)[i] == dim;
  if (PLN_DIM_IS_CONST(dim) && dim != 0) {
    t->dims[i] = dim;
  } else if (same) {
    t->dims[i] = 0;
    t->is_empty |= dim == 0;
  } else if (dim == 0) {
    return false;
  } else {
    t->dims[i] = -1;
  }
  t->n_open += t->dims[i] == -1;
  return t->dims[i] >= -1 && t->n_open <= 1;
}

/* The dim that an element 0 copies from the operand. */
static pln_dim copied_dim(const pln_engine *e, pln_type operand, uint32_t i) {
  return (int32_t)i < pln_type_rank(e, operand) ? pln_type_dims(e, operand)[i]
                                                : PLN_DIM_UNKNOWN;
}

pln_status pln_rule_reshape(pln_rewrite_context *ctx, pln_ref x, uint32_t n,
                            const pln_dim *dims, pln_ref *out) {
  pln_type type = pln_rewrite_graph(ctx->rw)->nodes[x].type;
  target t = {.n = n};
  pln_ref args[2] = {x};
  *out = PLN_NONE;
  for (uint32_t i = 0; i < n; i++)
    if (dims[i] == PLN_DIM_UNKNOWN ||
        !place_target_dim(ctx, type, &t, i, dims[i]))
      return PLN_OK;
  if (t.is_empty && t.n_open)
    return PLN_OK;
  PLN_TRY(pln_rule_int_vector(ctx, n, t.dims, &args[1]));
  return pln_rule_build(ctx, PLN_OP_RESHAPE, 0, 2, args, out);
}

/* The dim that an element -1 stands for: the result's extent, if known. */
static pln_dim found_dim(const pln_rewrite_context *ctx, uint32_t n,
                         uint32_t i) {
  const pln_engine *e = ctx->engine;
  if (pln_type_rank(e, ctx->type) != (int32_t)n)
    return -1;
  pln_dim dim = pln_type_dims(e, ctx->type)[i];
  return dim == PLN_DIM_UNKNOWN || dim == 0 ? -1 : dim;
}

/* Rewrites the call's target shape for a reshape of a tensor of type `x`.
 * `given` is the type of the call's own operand. */
static bool find_target(const pln_rewrite_context *ctx, pln_type given,
                        pln_type x, const pln_list *list, target *t) {
  bool literal = allows_zero(ctx);
  *t = (target){.n = list->count};
  if (!list->given || !list->sized || list->count > PLN_MAX_RANK)
    return false;
  for (uint32_t i = 0; i < list->count; i++) {
    pln_dim dim = pln_list_at(list, i);
    if (dim == 0 && literal)
      return false;
    if (dim == 0)
      dim = copied_dim(ctx->engine, given, i);
    else if (dim == -1)
      dim = found_dim(ctx, list->count, i);
    if (!place_target_dim(ctx, x, t, i, dim))
      return false;
  }
  return !t->is_empty || t->n_open == 0;
}

/* Builds the reshape of `x` with allowzero off: zeros copy extents. That holds
 * for a call with allowzero too, because there a 0 in the shape is an extent 0
 * of x. */
static pln_status reshape_to(const pln_rewrite_context *ctx, pln_ref x,
                             const target *t, pln_ref *out) {
  pln_rewrite_context plain = *ctx;
  PLN_TRY(pln_attrs_without(ctx->engine, ctx->call.attrs, "allowzero",
                            &plain.call.attrs));
  return pln_rule_replace_list(&plain, x, 1, "newshape", t->n, t->dims, out);
}

/* An attribute, as Relay has it, gives the whole shape if that is known. */
static bool find_concrete_target(const pln_rewrite_context *ctx, target *t) {
  int32_t rank = pln_type_rank(ctx->engine, ctx->type);
  if (!pln_arg_absent(&ctx->call, 1) || rank < 0 || rank > PLN_MAX_RANK)
    return false;
  *t = (target){.n = (uint32_t)rank};
  for (int32_t i = 0; i < rank; i++) {
    t->dims[i] = pln_type_dims(ctx->engine, ctx->type)[i];
    if (!PLN_DIM_IS_CONST(t->dims[i]) || t->dims[i] <= 0)
      return false;
  }
  return true;
}

/* reshape(reshape(x, a), b) => reshape(x, b), also for the other operators that
 * keep the order. A 0 in b copies from the inner result, so it is rewritten. */
pln_status pln_simplify_merge_reshape(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref inner = pln_rule_arg(ctx, 0);
  pln_list list = pln_arg_list(&ctx->call, 1, "newshape");
  target t;
  if (!keeps_order(g, inner) || !pln_list_known(&list))
    return PLN_OK;
  pln_ref x = pln_operand(g, inner, 0);
  if (find_concrete_target(ctx, &t))
    return reshape_to(ctx, x, &t, out);
  bool has_zero = false;
  for (uint32_t i = 0; i < list.count; i++)
    has_zero |= pln_list_at(&list, i) == 0;
  if (!has_zero)
    return pln_rule_replace_arg(ctx, 0, x, out);
  if (!find_target(ctx, g->nodes[inner].type, g->nodes[x].type, &list, &t))
    return PLN_OK;
  return reshape_to(ctx, x, &t, out);
}

/* reshape(x, [N, 12, S*64]) => reshape(x, [0, 12, -1]), or the same of what x
 * is a reshape of. The computation of the shape becomes dead. */
pln_status pln_simplify_fold_reshape_shape(pln_rewrite_context *ctx,
                                           pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  target t;
  if (pln_arg_absent(&ctx->call, 1) ||
      g->nodes[pln_rule_arg(ctx, 1)].kind == PLN_CONSTANT ||
      !pln_arg_value(&ctx->call, 1))
    return PLN_OK;
  pln_list list = pln_arg_list(&ctx->call, 1, NULL);
  pln_ref x = pln_rule_arg(ctx, 0);
  pln_type given = g->nodes[x].type;
  for (int i = 0; i < MAX_LOOK; i++) {
    if (find_target(ctx, given, g->nodes[x].type, &list, &t))
      return reshape_to(ctx, x, &t, out);
    if (!keeps_order(g, x))
      break;
    x = pln_operand(g, x, 0);
  }
  return PLN_OK;
}

/* --------------------------------------------------------- squeeze, unsqueeze
 */

/* A set of axes of a tensor with `rank` axes. */
typedef struct axes {
  int32_t rank;
  uint32_t n;
  bool in[PLN_MAX_RANK];
} axes;

static bool read_squeezed_axes(const pln_infer *call, int32_t rank, axes *out) {
  int64_t list[PLN_MAX_RANK];
  pln_list given = pln_arg_list(call, 1, "axes");
  *out = (axes){.rank = rank, .n = given.count};
  if (rank < 0 || rank > PLN_MAX_RANK ||
      !pln_list_read(&given, PLN_MAX_RANK, list))
    return false;
  for (uint32_t i = 0; i < given.count; i++) {
    int64_t axis = list[i] < 0 ? list[i] + rank : list[i];
    if (axis < 0 || axis >= rank || out->in[axis])
      return false;
    out->in[axis] = true;
  }
  return true;
}

static uint32_t list_axes(const axes *set, int64_t *out) {
  uint32_t n = 0;
  for (int32_t i = 0; i < set->rank; i++)
    if (set->in[i])
      out[n++] = i;
  return n;
}

/* Maps the axes of `outer` to axes of the tensor before `inner` removed
 * some. */
static void add_around(const axes *inner, const axes *outer, axes *all) {
  int32_t k = 0;
  *all = *inner;
  for (int32_t i = 0; i < inner->rank; i++)
    if (!inner->in[i])
      all->in[i] = outer->in[k++];
}

/* squeeze(squeeze(x, A), B) => squeeze(x, A and B mapped to axes of x) */
pln_status pln_simplify_merge_squeeze(pln_rewrite_context *ctx, pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref node = pln_rule_arg(ctx, 0);
  axes inner, outer, all;
  int64_t list[PLN_MAX_RANK];
  if (!pln_is_call(g, node, PLN_OP_SQUEEZE))
    return PLN_OK;
  pln_infer call = pln_rule_operand(ctx, 0);
  if (!read_squeezed_axes(&call, pln_arg_rank(&call, 0), &inner) ||
      !read_squeezed_axes(&ctx->call, inner.rank - (int32_t)inner.n, &outer))
    return PLN_OK;
  add_around(&inner, &outer, &all);
  return pln_rule_replace_list(ctx, call.args[0], 1, "axes",
                               list_axes(&all, list), list, out);
}

/* Returns true if the call adds axes only behind those of its operand. An axis
 * in front stays apart: transposes carry it on, and it is removed again. */
static bool adds_last_axes(const pln_rewrite_context *ctx) {
  int32_t rank = pln_arg_rank(&ctx->call, 0);
  int32_t more = pln_type_rank(ctx->engine, ctx->type) - rank;
  const pln_dim *dims = pln_type_dims(ctx->engine, ctx->type);
  if (rank < 0 || more < 0)
    return false;
  for (int32_t i = 0; i < rank; i++)
    if (dims[i] != pln_arg_dims(&ctx->call, 0)[i])
      return false;
  return true;
}

/* expand_dims(reshape(x)) => reshape(x), also for squeeze and flatten, if
 * nothing else uses the inner reshape. */
pln_status pln_simplify_reshape_at_once(pln_rewrite_context *ctx,
                                        pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  int32_t rank = pln_type_rank(ctx->engine, ctx->type);
  pln_dim dims[PLN_MAX_RANK];
  if (!pln_is_call(g, pln_rule_arg(ctx, 0), PLN_OP_RESHAPE) ||
      !pln_rule_is_only_use(ctx, 0) || rank < 0 || rank > PLN_MAX_RANK ||
      (ctx->call.op == PLN_OP_UNSQUEEZE && !adds_last_axes(ctx)))
    return PLN_OK;
  for (int32_t i = 0; i < rank; i++)
    dims[i] = pln_type_dims(ctx->engine, ctx->type)[i];
  return pln_rule_reshape(ctx, pln_operand(g, pln_rule_arg(ctx, 0), 0),
                          (uint32_t)rank, dims, out);
}

/* unsqueeze(unsqueeze(x, A), B) => unsqueeze(x, B and A as axes of the
 * result) */
pln_status pln_simplify_merge_unsqueeze(pln_rewrite_context *ctx,
                                        pln_ref *out) {
  const pln_graph *g = ctx->call.graph;
  pln_ref node = pln_rule_arg(ctx, 0);
  axes inner, outer, all;
  int64_t list[PLN_MAX_RANK];
  if (!pln_is_call(g, node, PLN_OP_UNSQUEEZE))
    return PLN_OK;
  pln_infer call = pln_rule_operand(ctx, 0);
  int32_t rank = pln_type_rank(ctx->engine, g->nodes[node].type);
  pln_list given = pln_arg_list(&ctx->call, 1, "axes");
  if (rank < 0 || !given.sized || given.count > PLN_MAX_RANK ||
      !read_squeezed_axes(&call, rank, &inner) ||
      !read_squeezed_axes(&ctx->call, rank + (int32_t)given.count, &outer))
    return PLN_OK;
  add_around(&outer, &inner, &all);
  return pln_rule_replace_list(ctx, call.args[0], 1, "axes",
                               list_axes(&all, list), list, out);
}
