/* join_calls.c: a rule on concatenations of which neighbouring operands are the
 * same operator on parts of the same tensors, along the axis of the
 * concatenation: the operator works on all these parts at once.
 *
 *     concatenate(subtract(x[0], y[0]), subtract(x[1], y[1]), z)
 *       =>   concatenate(subtract(x, y), z), for columns 0 and 1 of x and y
 *     concatenate(prod(x[1, 2], axes=[1]), prod(x[1, 3], axes=[1]))
 *       =>   prod(reshape(take(x, [1, 2, 1, 3], axis=1), [0, 2, 2]), axes=[2])
 *
 * So do parts by themselves. The rule applies if fewer calls are left. */

#include "transform/simplify/pieces.h"

enum { MAX_JOINED = 64, MAX_TENSORS = 3 };

/* One operand of the joined calls: positions of x, or a node that all share. */
typedef struct joined_operand {
  pln_ref x;
  bool shared;
  uint32_t n;
  int64_t positions[PLN_MAX_POSITIONS];
} joined_operand;

typedef enum joined_form {
  JOIN_PARTS,      /* the operands are parts themselves */
  JOIN_ELEMENTS,   /* of elementwise calls of parts */
  JOIN_REDUCTIONS, /* of reductions of as many positions each */
} joined_form;

typedef struct join_run {
  pln_rewrite_context *ctx;
  const pln_graph *graph;
  int64_t axis, rank;
  joined_form form;
  uint32_t first, count; /* operands of the concatenation */
  pln_ref like;          /* the first of them */
  uint32_t n_operands;   /* of each call */
  uint32_t width;        /* positions that each reduction takes */
  uint32_t removed;      /* calls */
  joined_operand *operands;
} join_run;

/* ------------------------------------------------------------------- parts
 */

static bool append_range(joined_operand *to, int64_t begin, int64_t end) {
  if (end - begin > PLN_MAX_POSITIONS - (int64_t)to->n)
    return false;
  for (int64_t at = begin; at < end; at++)
    to->positions[to->n++] = at;
  return true;
}

static bool append_taken(const join_run *r, pln_ref node, joined_operand *to,
                         pln_ref *x) {
  pln_infer call = pln_infer_of(r->graph, node);
  const pln_tensor *table = pln_arg_tensor(&call, 1);
  int64_t rank = pln_arg_rank(&call, 0), at;
  int64_t axis = pln_call_int(&call, "axis", 0);
  axis += axis < 0 ? rank : 0;
  if (!table || table->rank != 1 || axis != r->axis || rank != r->rank ||
      pln_call_int(&call, "batch_dims", 0) || table->count < 1 ||
      table->count > PLN_MAX_POSITIONS - to->n)
    return false;
  pln_dim extent = pln_arg_dims(&call, 0)[axis];
  for (size_t i = 0; i < table->count; i++) {
    if (!PLN_DIM_IS_CONST(extent) || !pln_tensor_int(table, i, &at) ||
        at < -extent || at >= extent)
      return false;
    to->positions[to->n++] = at < 0 ? at + extent : at;
  }
  *x = call.args[0];
  return true;
}

/* Appends the positions of a part of operand `to`'s tensor, which the first
 * part sets. Counts the calls that go. */
static bool append_part(join_run *r, pln_ref node, joined_operand *to,
                        uint32_t *removed) {
  pln_piece piece;
  bool first = to->n == 0;
  pln_ref x;
  bool taken = pln_is_call(r->graph, node, PLN_OP_GATHER);
  if (taken) {
    if (!append_taken(r, node, to, &x))
      return false;
  } else {
    if (!pln_read_piece(r->graph, node, &piece) || piece.axis != r->axis ||
        pln_type_rank(r->ctx->engine, r->graph->nodes[piece.x].type) !=
            r->rank ||
        !append_range(to, piece.begin, piece.end))
      return false;
    x = piece.x;
  }
  *removed += r->graph->nodes[node].kind == PLN_CALL &&
              pln_rule_driver_uses(r->ctx->driver, node) == 1;
  to->x = first ? x : to->x;
  return to->x == x;
}

/* ------------------------------------------------------------------- calls
 */

static bool is_elementwise(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || !n->data || n->count < 1 ||
      n->count > MAX_TENSORS || n->data == PLN_OP_EXPAND ||
      !pln_is_call(g, node, n->data))
    return false;
  uint32_t traits = pln_op_row(g->engine, n->data)->traits;
  return (traits & (PLN_TRAIT_ELEMENTWISE | PLN_TRAIT_BROADCAST)) &&
         !(traits & PLN_TRAIT_RANDOM) &&
         !pln_attrs_find(g->engine, n->attrs, "axis");
}

/* A reduction of the axis of the concatenation only, which is kept. */
static bool is_reduction(const join_run *r, pln_ref node) {
  const pln_graph *g = r->graph;
  const pln_node *n = &g->nodes[node];
  int64_t axis;
  if (n->kind != PLN_CALL || !n->data || n->count < 1 || n->count > 2 ||
      !pln_is_call(g, node, n->data) ||
      !(pln_op_row(g->engine, n->data)->traits & PLN_TRAIT_REDUCE) ||
      n->data == PLN_OP_ARG_MAX || n->data == PLN_OP_ARG_MIN)
    return false;
  pln_infer call = pln_infer_of(g, node);
  pln_list axes = pln_arg_list(&call, 1, "axes");
  if (!axes.given || axes.count != 1 || !pln_list_read(&axes, 1, &axis) ||
      !pln_call_int(&call, "keepdims", 1) || pln_call_int(&call, "exclude", 0))
    return false;
  return (axis < 0 ? axis + r->rank : axis) == r->axis;
}

static bool is_shared_number(const join_run *r, pln_ref node) {
  const pln_node *n = &r->graph->nodes[node];
  return n->kind == PLN_ABSENT ||
         (n->kind == PLN_CONSTANT && r->graph->tensors[n->data]->count == 1 &&
          pln_type_rank(r->ctx->engine, n->type) <= r->rank);
}

static bool are_equal_numbers(const pln_graph *g, pln_ref a, pln_ref b) {
  const pln_node *n = &g->nodes[a], *m = &g->nodes[b];
  if (a == b || n->kind == PLN_ABSENT || m->kind == PLN_ABSENT)
    return a == b || n->kind == m->kind;
  return n->kind == PLN_CONSTANT && m->kind == PLN_CONSTANT &&
         pln_tensor_equal(g->tensors[n->data], g->tensors[m->data]);
}

/* Appends operand `k` of a call. */
static bool append_operand(join_run *r, pln_ref call, uint32_t k,
                           uint32_t *removed) {
  pln_ref x = pln_operand(r->graph, call, k);
  joined_operand *to = &r->operands[k];
  bool first = r->count == 0;
  if (is_shared_number(r, x)) {
    bool equal = first || (to->shared && are_equal_numbers(r->graph, to->x, x));
    to->shared = true;
    to->x = first ? x : to->x;
    return equal && (first || to->n == 0);
  }
  return (first || !to->shared) && append_part(r, x, to, removed);
}

static joined_form form_of(const join_run *r, pln_ref node) {
  return is_elementwise(r->graph, node) ? JOIN_ELEMENTS
         : is_reduction(r, node)        ? JOIN_REDUCTIONS
                                        : JOIN_PARTS;
}

/* The call is the same operator as the first one of the run, and nothing else
 * uses it. */
static bool continues(const join_run *r, pln_ref node, joined_form form) {
  const pln_graph *g = r->graph;
  if (pln_type_rank(r->ctx->engine, g->nodes[node].type) != r->rank ||
      (form != JOIN_PARTS && pln_rule_driver_uses(r->ctx->driver, node) != 1))
    return false;
  if (r->count == 0)
    return true;
  const pln_node *n = &g->nodes[node], *m = &g->nodes[r->like];
  return form == r->form &&
         (form == JOIN_PARTS ||
          (n->data == m->data && n->attrs == m->attrs && n->count == m->count));
}

/* Adds an operand of the concatenation; false if it ends the run. */
static bool add_to_run(join_run *r, pln_ref node) {
  const pln_graph *g = r->graph;
  joined_form form = form_of(r, node);
  uint32_t before[MAX_TENSORS], removed = form != JOIN_PARTS;
  bool good = continues(r, node, form);
  if (r->count == 0) {
    r->form = form;
    r->n_operands = form == JOIN_ELEMENTS ? g->nodes[node].count : 1;
  }
  for (uint32_t k = 0; k < MAX_TENSORS; k++)
    before[k] = r->operands[k].n;
  if (good && form == JOIN_PARTS)
    good = append_part(r, node, &r->operands[0], &removed);
  for (uint32_t k = 0; good && form != JOIN_PARTS && k < r->n_operands; k++)
    good = append_operand(r, node, k, &removed);
  uint32_t width = r->operands[0].n - before[0];
  if (good && form == JOIN_REDUCTIONS) {
    good = width > 0 && (r->count == 0 || width == r->width);
    r->width = r->count == 0 ? width : r->width;
  }
  /* Elementwise operators keep the number of positions. */
  for (uint32_t k = 0; good && form == JOIN_ELEMENTS && k < r->n_operands; k++)
    good = r->operands[k].shared ||
           (int64_t)(r->operands[k].n - before[k]) ==
               pln_type_dims(r->ctx->engine, g->nodes[node].type)[r->axis];
  if (good) {
    r->removed += removed;
    r->count++;
    return true;
  }
  for (uint32_t k = 0; k < MAX_TENSORS; k++)
    r->operands[k].n = before[k];
  return false;
}

/* ---------------------------------------------------------------- building */

static bool is_whole(const join_run *r, const joined_operand *o) {
  pln_type type = r->graph->nodes[o->x].type;
  bool whole = pln_type_dims(r->ctx->engine, type)[r->axis] == (pln_dim)o->n;
  for (uint32_t i = 0; whole && i < o->n; i++)
    whole = o->positions[i] == i;
  return whole;
}

static bool pays(const join_run *r) {
  uint32_t built = r->form != JOIN_PARTS;
  bool tensors = false;
  if (r->count < 2)
    return false;
  for (uint32_t k = 0; k < r->n_operands; k++) {
    const joined_operand *o = &r->operands[k];
    built += !o->shared && !is_whole(r, o);
    tensors |= !o->shared;
  }
  built += r->form == JOIN_REDUCTIONS;
  return tensors && built < r->removed;
}

static pln_status build_operand(const join_run *r, const joined_operand *o,
                                pln_ref *out) {
  pln_rewrite_context ctx = *r->ctx;
  ctx.type = 0;
  *out = o->x;
  if (o->shared || is_whole(r, o))
    return PLN_OK;
  return pln_take_positions(&ctx, o->x, r->axis, o->n, o->positions, out);
}

/* reshape(x, [0 .., count, width, ..]); PLN_NONE if several extents behind the
 * axis are not constant. */
static pln_status build_split(const join_run *r, pln_ref x, pln_ref *out) {
  pln_rewrite_context ctx = *r->ctx;
  int64_t shape[PLN_MAX_RANK + 1] = {0};
  pln_ref args[2] = {x};
  pln_type type = pln_rewrite_graph(ctx.rw)->nodes[x].type;
  uint32_t open = 0;
  shape[r->axis] = r->count;
  shape[r->axis + 1] = r->width;
  for (int64_t i = r->axis + 1; i < r->rank; i++) {
    pln_dim dim = pln_type_dims(ctx.engine, type)[i];
    bool constant = PLN_DIM_IS_CONST(dim) && dim > 0;
    shape[i + 1] = constant ? dim : -1;
    open += !constant;
  }
  *out = PLN_NONE;
  if (open > 1)
    return PLN_OK;
  PLN_TRY(pln_rule_int_vector(&ctx, (uint32_t)r->rank + 1, shape, &args[1]));
  return pln_rule_build(&ctx, PLN_OP_RESHAPE, 0, 2, args, out);
}

/* The reduction of an axis behind that of the concatenation, which is made of
 * `width` positions each. */
static pln_status build_reduction(const join_run *r, pln_ref x, pln_ref *out) {
  pln_rewrite_context ctx = *r->ctx;
  pln_engine *e = ctx.engine;
  pln_ref args[2];
  pln_infer call = pln_infer_of(pln_rewrite_graph(ctx.rw), r->like);
  const pln_node n = pln_rewrite_graph(ctx.rw)->nodes[r->like];
  int64_t axes[1] = {r->axis + 1};
  pln_attrs attrs;
  pln_attr keep = {.kind = PLN_ATTR_INT, .v.i = 0};
  pln_attr list = {.kind = PLN_ATTR_INTS, .count = 1, .v.ints = axes};
  bool listed = !pln_arg_absent(&call, 1);
  PLN_TRY(build_split(r, x, &args[0]));
  *out = PLN_NONE;
  if (args[0] == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(e, pln_text("keepdims"), &keep.name));
  PLN_TRY(pln_attrs_with(e, n.attrs, &keep, &attrs));
  PLN_TRY(pln_symbol_intern(e, pln_text("axes"), &list.name));
  if (listed)
    PLN_TRY(pln_rule_int_vector(&ctx, 1, axes, &args[1]));
  else
    PLN_TRY(pln_attrs_with(e, attrs, &list, &attrs));
  return pln_rule_build(&ctx, n.data, attrs, listed ? 2 : 1, args, out);
}

static pln_status build_run(const join_run *r, pln_ref *out) {
  pln_ref args[MAX_TENSORS];
  const pln_node n = r->graph->nodes[r->like];
  for (uint32_t k = 0; k < r->n_operands; k++) {
    PLN_TRY(build_operand(r, &r->operands[k], &args[k]));
    if (args[k] == PLN_NONE) {
      *out = PLN_NONE;
      return PLN_OK;
    }
  }
  *out = args[0];
  if (r->form == JOIN_REDUCTIONS)
    return build_reduction(r, args[0], out);
  return r->form == JOIN_PARTS
             ? PLN_OK
             : pln_rule_build(r->ctx, n.data, n.attrs, n.count, args, out);
}

/* The concatenation with the run as one operand. */
static pln_status build_concat(const join_run *r, pln_ref *out) {
  pln_rewrite_context *ctx = r->ctx;
  pln_ref args[MAX_JOINED], joined;
  uint32_t n = 0, n_args = ctx->call.n_args;
  pln_attrs attrs = ctx->call.attrs;
  for (uint32_t i = 0; i < n_args; i++)
    if (i <= r->first || i >= r->first + r->count)
      args[n++] = pln_rule_arg(ctx, i);
  PLN_TRY(build_run(r, &joined));
  if (joined == PLN_NONE)
    return PLN_OK;
  args[r->first] = joined;
  if (n > 1)
    return pln_rule_replace_call(ctx, PLN_OP_CONCAT, attrs, n, args, out);
  *out = joined;
  return pln_keep_type(ctx->rw, joined, ctx->type);
}

static pln_status try_runs(join_run *r, pln_ref *out) {
  uint32_t n = r->ctx->call.n_args;
  for (uint32_t i = 0; i + 1 < n; i += r->count ? r->count : 1) {
    r->first = i;
    r->like = pln_rule_arg(r->ctx, i);
    r->count = r->removed = 0;
    for (uint32_t k = 0; k < MAX_TENSORS; k++) {
      r->operands[k].n = 0;
      r->operands[k].shared = false;
    }
    while (i + r->count < n &&
           add_to_run(r, pln_rule_arg(r->ctx, i + r->count)))
      ;
    if (pays(r))
      return build_concat(r, out);
  }
  return PLN_OK;
}

/* See the head of the file. */
pln_status pln_simplify_join_calls(pln_rewrite_context *ctx, pln_ref *out) {
  join_run r = {.ctx = ctx, .graph = ctx->call.graph};
  size_t bytes = MAX_TENSORS * sizeof *r.operands;
  r.rank = pln_type_rank(ctx->engine, ctx->type);
  r.axis = pln_call_int(&ctx->call, "axis", 0);
  r.axis += r.axis < 0 ? r.rank : 0;
  if (ctx->call.n_args < 2 || ctx->call.n_args > MAX_JOINED || r.rank < 2 ||
      r.rank >= PLN_MAX_RANK || r.axis < 0 || r.axis >= r.rank)
    return PLN_OK;
  r.operands = pln_mem_new(ctx->engine, bytes);
  if (!r.operands)
    return pln_nomem(ctx->engine);
  pln_status status = try_runs(&r, out);
  pln_mem_free(ctx->engine, r.operands, bytes);
  return status;
}
