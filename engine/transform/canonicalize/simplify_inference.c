/* simplify_inference.c: SimplifyInference: replaces normalisations by primitive
 * operators, and dropouts by their operands, as inference computes them.
 *
 * Run by the executor, once per function. Requires a verified graph. Of
 * nn.batch_norm and nn.dropout only the first result is replaced; whoever uses
 * the others keeps the call. nn.layer_norm, nn.group_norm and nn.instance_norm
 * use `variance`, which ONNX cannot express: they stay in functions that came
 * from an ONNX model. A call whose rank or dims are unknown stays.
 *
 *     nn.batch_norm(%x, %gamma, %beta, %mean, %var).0   =>
 *     %0 = divide(1f, sqrt(add(%var, 1e-05f)));  %1 = multiply(%0, %gamma);
 *     %2 = add(multiply(negative(%mean), %1), %beta);
 *     add(multiply(%x, expand_dims(%1)), expand_dims(%2))
 *
 * Semantics: TVM SimplifyInference. */

#include "op/infer/infer.h"
#include "rule/rule.h"
#include "transform/relay_builder.h"

typedef struct simplify_inference {
  pln_engine *engine;
  bool onnx; /* the function came from an ONNX model */
  /* By node of the old graph: it is used other than by its first result; NULL
   * without dropouts. */
  bool *has_other_use;
  int64_t replaced;
} simplify_inference;

/* A normalisation being replaced: its call, and what is read of it. */
typedef struct norm_call {
  pln_relay_builder r;
  pln_infer call;
  bool onnx;
  int32_t rank, axis; /* of operand 0; the axis is normalised to [0, rank) */
  pln_dtype dtype;
} norm_call;

typedef pln_ref (*expand_norm)(norm_call *n);

/* Returns false if the rank is unknown or the axis is outside of it. */
static bool read_norm_call(const pln_graph *g, pln_ref node, int64_t fallback,
                           norm_call *n) {
  n->call = pln_infer_of(g, node);
  n->rank = pln_arg_rank(&n->call, 0);
  n->dtype = pln_arg_dtype(&n->call, 0);
  int64_t axis = pln_call_int(&n->call, "axis", fallback);
  axis += axis < 0 ? n->rank : 0;
  n->axis = (int32_t)axis;
  return n->rank > 0 && axis >= 0 && axis < n->rank && n->dtype;
}

/* -------------------------------------------------------- building blocks */

static pln_ref binary(norm_call *n, pln_op op, pln_ref x, pln_ref y) {
  return pln_relay_call(&n->r, op, 2, x, y);
}

static pln_ref unary(norm_call *n, pln_op op, pln_ref x) {
  return pln_relay_call(&n->r, op, 1, x);
}

static pln_ref along_axis(norm_call *n, pln_ref vector) {
  return pln_relay_along_axis(&n->r, vector, n->rank, n->axis);
}

static pln_ref reshape_to(norm_call *n, pln_ref x, uint32_t rank,
                          const int64_t *dims) {
  pln_relay_attr shape = pln_relay_ints("newshape", rank, dims);
  return pln_relay_call_with(&n->r, PLN_OP_RESHAPE, 1, &shape, 1, &x);
}

/* Over all axes if `axes` is NULL. */
static pln_ref reduce_axes(norm_call *n, pln_op op, uint32_t n_axes,
                           const int64_t *axes, uint32_t n_args,
                           const pln_ref *args) {
  pln_relay_attr attrs[] = {pln_relay_int("keepdims", 1),
                            pln_relay_int("exclude", 0),
                            pln_relay_ints("axis", n_axes, axes)};
  return pln_relay_call_with(&n->r, op, axes ? 3 : 2, attrs, n_args, args);
}

static pln_ref epsilon(norm_call *n) {
  double value = pln_attrs_float(n->r.engine, n->call.attrs, "epsilon", 1e-5);
  return pln_relay_scalar(&n->r, n->dtype, value);
}

static bool has_factor(const norm_call *n, const char *name) {
  return pln_call_int(&n->call, name, 1) != 0;
}

/* (x - mean(x)) / sqrt(variance(x) + epsilon) over the axes. */
static pln_ref standardize(norm_call *n, pln_ref x, uint32_t n_axes,
                           const int64_t *axes) {
  pln_ref e = epsilon(n);
  pln_ref args[2] = {x};
  args[1] = reduce_axes(n, PLN_OP_REDUCE_MEAN, n_axes, axes, 1, args);
  pln_ref variance = reduce_axes(n, PLN_OP_VARIANCE, n_axes, axes, 2, args);
  pln_ref deviation = unary(n, PLN_OP_SQRT, binary(n, PLN_OP_ADD, variance, e));
  pln_ref centred = binary(n, PLN_OP_SUB, x, args[1]);
  return binary(n, PLN_OP_DIV, centred, deviation);
}

/* x * gamma + beta along the axis, as far as the call has them. */
static pln_ref scale_and_shift(norm_call *n, pln_ref x) {
  pln_ref gamma = n->call.args[1], beta = n->call.args[2];
  if (has_factor(n, "scale"))
    x = binary(n, PLN_OP_MUL, x, along_axis(n, gamma));
  if (has_factor(n, "center"))
    x = binary(n, PLN_OP_ADD, x, along_axis(n, beta));
  return x;
}

/* ----------------------------------------------------------- normalisations
 *
 * Building moves the operands of the builder's graph: each function copies what
 * it needs of the call first (replace_norm). */

static pln_ref expand_batch_norm(norm_call *n) {
  const pln_ref *args = n->call.args;
  pln_ref e = epsilon(n);
  pln_ref deviation = unary(n, PLN_OP_SQRT, binary(n, PLN_OP_ADD, args[4], e));
  pln_ref one = pln_relay_scalar(&n->r, n->dtype, 1);
  pln_ref scale = binary(n, PLN_OP_DIV, one, deviation);
  if (has_factor(n, "scale"))
    scale = binary(n, PLN_OP_MUL, scale, args[1]);
  pln_ref product = binary(n, PLN_OP_MUL, args[0], along_axis(n, scale));
  pln_ref negative = unary(n, PLN_OP_NEG, args[3]);
  pln_ref shift = binary(n, PLN_OP_MUL, negative, scale);
  if (has_factor(n, "center"))
    shift = binary(n, PLN_OP_ADD, shift, args[2]);
  return binary(n, PLN_OP_ADD, product, along_axis(n, shift));
}

static pln_ref expand_layer_norm(norm_call *n) {
  int64_t axis = pln_call_int(&n->call, "axis", -1);
  pln_ref x = standardize(n, n->call.args[0], 1, &axis);
  return scale_and_shift(n, x);
}

static pln_ref expand_instance_norm(norm_call *n) {
  int64_t axes[PLN_MAX_RANK];
  uint32_t n_axes = 0;
  for (int32_t i = 1; i < n->rank; i++)
    if (i != n->axis)
      axes[n_axes++] = i;
  return scale_and_shift(n, standardize(n, n->call.args[0], n_axes, axes));
}

/* The channels are split in groups, which are normalised with what follows. */
static pln_ref expand_group_norm(norm_call *n) {
  int64_t old[PLN_MAX_RANK], split[PLN_MAX_RANK + 1], axes[PLN_MAX_RANK];
  int64_t groups = pln_call_int(&n->call, "num_groups", 0);
  const pln_dim *dims = pln_arg_dims(&n->call, 0);
  uint32_t n_axes = 0, rank = 0;
  for (int32_t i = 0; i < n->rank; i++) {
    if (!PLN_DIM_IS_CONST(dims[i]))
      return PLN_NONE;
    old[i] = split[rank++] = dims[i];
    if (i >= n->axis)
      axes[n_axes++] = i + 1;
  }
  int64_t channels = old[n->axis];
  if (groups <= 0 || channels % groups)
    return PLN_NONE;
  memmove(split + n->axis + 2, split + n->axis + 1,
          (rank - (uint32_t)n->axis - 1) * sizeof *split);
  split[n->axis] = groups;
  split[n->axis + 1] = channels / groups;
  pln_ref x = reshape_to(n, n->call.args[0], rank + 1, split);
  x = standardize(n, x, n_axes, axes);
  return scale_and_shift(n, reshape_to(n, x, rank, old));
}

static pln_ref expand_l2_normalize(norm_call *n) {
  uint32_t n_axes;
  const int64_t *axes = pln_call_ints(&n->call, "axis", &n_axes);
  double eps = pln_attrs_float(n->r.engine, n->call.attrs, "eps", 0);
  pln_ref x = n->call.args[0], e = pln_relay_scalar(&n->r, n->dtype, eps);
  pln_ref square = binary(n, PLN_OP_MUL, x, x);
  pln_ref sum = reduce_axes(n, PLN_OP_REDUCE_SUM, n_axes, axes, 1, &square);
  sum = binary(n, PLN_OP_MAX, sum, e);
  return binary(n, PLN_OP_DIV, x, unary(n, PLN_OP_SQRT, sum));
}

/* -------------------------------------------------------------------- calls */

typedef struct norm_row {
  pln_op op;
  const char *rule;
  int64_t axis; /* the default of attribute "axis" */
  uint32_t n_args;
  bool relay_only; /* stays in functions of ONNX */
  expand_norm expand;
} norm_row;

static const norm_row norms[] = {
    {PLN_OP_BATCH_NORMALIZATION, "batch_norm", 1, 5, false, expand_batch_norm},
    {PLN_OP_LAYER_NORMALIZATION, "layer_norm", -1, 3, true, expand_layer_norm},
    {PLN_OP_GROUP_NORMALIZATION, "group_norm", 1, 3, true, expand_group_norm},
    {PLN_OP_INSTANCE_NORMALIZATION, "instance_norm", 1, 3, true,
     expand_instance_norm},
    {PLN_OP_L2_NORMALIZE, "l2_normalize", 0, 1, false, expand_l2_normalize},
};

static const norm_row *norm_of(pln_op op) {
  for (size_t i = 0; i < PLN_COUNT(norms); i++)
    if (norms[i].op == op)
      return &norms[i];
  return NULL;
}

/* Returns true for a call in the form that Relay defines: ONNX's nn.batch_norm
 * may train, and its nn.layer_norm may have several axes. */
static bool is_inference_norm(const norm_call *n, const norm_row *row) {
  const pln_infer *call = &n->call;
  if (call->n_args != row->n_args || (row->relay_only && n->onnx) ||
      pln_attrs_has_refs(call->engine, call->attrs))
    return false;
  if (row->op == PLN_OP_BATCH_NORMALIZATION)
    return !pln_call_int(call, "training_mode", 0) &&
           pln_call_int(call, "spatial", 1) == 1;
  if (row->op == PLN_OP_LAYER_NORMALIZATION)
    return pln_call_int(call, "one_axis", 0) || n->axis == n->rank - 1;
  return true;
}

/* Replaces *node, which is the call or its first result. */
static pln_status replace_norm(simplify_inference *s, pln_rewrite *rw,
                               pln_ref call, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const norm_row *row = norm_of(g->nodes[call].data);
  norm_call n = {.onnx = s->onnx};
  pln_ref args[5], old = *node;
  if (!row || !pln_call_is_valid(g, call) ||
      !read_norm_call(g, call, row->axis, &n) || !is_inference_norm(&n, row))
    return PLN_OK;
  memcpy(args, n.call.args, row->n_args * sizeof *args);
  PLN_TRY(pln_relay_begin(&n.r, rw));
  n.call.graph = n.r.b->graph;
  n.call.args = args;
  PLN_TRY(pln_relay_finish(&n.r, row->rule, row->expand(&n), node));
  s->replaced += *node != old;
  return PLN_OK;
}

/* ----------------------------------------------------------------- dropouts
 *
 * A dropout reads the random state, so that it is not dropped for being unused:
 * the call itself is replaced if nobody uses its mask. */

static bool is_dropout(const pln_graph *g, pln_ref node) {
  return g->nodes[node].kind == PLN_CALL &&
         g->nodes[node].data == PLN_OP_DROPOUT;
}

/* Marks the dropouts that are used other than by their first result. */
static void mark_used_masks(simplify_inference *s, const pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    const pln_node *n = &g->nodes[i];
    bool first = n->kind == PLN_TUPLE_GET_ITEM && n->data == 0;
    for (uint32_t k = 0; k < n->count && !first; k++)
      s->has_other_use[pln_operand(g, i, k)] = true;
    s->has_other_use[i] |= (n->flags & PLN_NODE_KEEP) != 0;
  }
  for (pln_scope scope = 0; scope < g->n_scopes; scope++)
    if (g->scopes[scope].result != PLN_NONE)
      s->has_other_use[g->scopes[scope].result] = true;
}

static pln_status find_used_masks(simplify_inference *s, const pln_graph *g) {
  bool any = false;
  for (pln_ref i = 0; i < g->n_nodes && !any; i++)
    any = is_dropout(g, i);
  if (!any)
    return PLN_OK;
  s->has_other_use =
      pln_mem_zeroed(s->engine, g->n_nodes * sizeof *s->has_other_use);
  if (!s->has_other_use)
    return pln_nomem(s->engine);
  mark_used_masks(s, g);
  return PLN_OK;
}

/* Replaces a call whose mask nobody uses by the tuple of its operand and
 * nothing. */
static pln_status replace_pair(pln_rewrite *rw, pln_ref x, pln_ref *node) {
  pln_builder *b = pln_rewrite_builder(rw);
  pln_ref fields[2] = {x};
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_build_absent(b, &fields[1]));
  return pln_build_tuple(b, 2, fields, node);
}

/* In inference every element is kept. ONNX's nn.dropout may be told to train.
 */
static pln_status replace_dropout(simplify_inference *s, pln_rewrite *rw,
                                  pln_ref old, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_infer dropout = pln_infer_of(g, *node);
  uint32_t results = g->nodes[*node].results;
  pln_type type = g->nodes[*node].type;
  bool allowed;
  if (!pln_call_is_valid(g, *node) || !pln_arg_absent(&dropout, 2) ||
      (results && (results != 2 || s->has_other_use[old])))
    return PLN_OK;
  pln_ref x = dropout.args[0];
  PLN_TRY(pln_rewrite_apply(rw, "dropout", &allowed));
  if (!allowed)
    return PLN_OK;
  s->replaced++;
  if (results)
    return replace_pair(rw, x, node);
  *node = x;
  return pln_keep_rank(rw, x, type);
}

/* The first result of a dropout is its operand, also if it has a mask. */
static pln_status replace_kept_elements(simplify_inference *s, pln_rewrite *rw,
                                        pln_ref tuple, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_type type = g->nodes[*node].type;
  bool allowed;
  if (is_dropout(g, tuple)) {
    pln_infer dropout = pln_infer_of(g, tuple);
    if (!pln_call_is_valid(g, tuple) || !pln_arg_absent(&dropout, 2))
      return PLN_OK;
    PLN_TRY(pln_rewrite_apply(rw, "dropout", &allowed));
    if (!allowed)
      return PLN_OK;
    s->replaced++;
  }
  *node = pln_operand(g, tuple, 0);
  return pln_keep_rank(rw, *node, type);
}

/* ------------------------------------------------------------------ the pass
 */

static pln_status replace_first_result(simplify_inference *s, pln_rewrite *rw,
                                       pln_ref old, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(rw);
  pln_ref tuple = pln_operand(g, *node, 0);
  if (is_dropout(pln_rewrite_old(rw), pln_operand(pln_rewrite_old(rw), old, 0)))
    return replace_kept_elements(s, rw, tuple, node);
  if (g->nodes[tuple].kind != PLN_CALL)
    return PLN_OK;
  return replace_norm(s, rw, tuple, node);
}

static pln_status simplify_inference_node(void *ud, pln_rewrite *rw,
                                          pln_ref old, pln_ref *node) {
  const pln_node *n = &pln_rewrite_graph(rw)->nodes[*node];
  if (n->kind == PLN_TUPLE_GET_ITEM && n->data == 0)
    return replace_first_result(ud, rw, old, node);
  if (n->kind != PLN_CALL)
    return PLN_OK;
  if (n->data == PLN_OP_DROPOUT)
    return replace_dropout(ud, rw, old, node);
  return n->results ? PLN_OK : replace_norm(ud, rw, *node, node);
}

pln_status pln_pass_simplify_inference(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  simplify_inference s = {.engine = pln_run_engine(run),
                          .onnx = pln_function_is_onnx(g)};
  pln_mutator m = {
      .ud = &s, .visit = simplify_inference_node, .keeps_types = true};
  pln_status status = find_used_masks(&s, g);
  if (status == PLN_OK)
    status = pln_rewrite_function(run, &m);
  pln_mem_free(s.engine, s.has_other_use, g->n_nodes * sizeof *s.has_other_use);
  PLN_TRY(status);
  return s.replaced ? pln_run_count(run, "replaced", s.replaced) : PLN_OK;
}
