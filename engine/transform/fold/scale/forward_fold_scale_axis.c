/* forward_fold_scale_axis.c: ForwardFoldScaleAxis: moves a scale along axes of
 * a tensor forwards, into the weights of the products that the tensor reaches.
 *
 * Run by the executor, once per function. Requires a verified graph. From users
 * to operands, each node is told along which axes every one of its users can
 * take up a scale. A multiply whose users all agree then becomes its operand,
 * and the users are rebuilt with the scale on their other operand. nn.relu and
 * nn.leaky_relu need a scale of constants that are not negative; what is added
 * on the way is divided by the scale.
 *
 *     nn.conv2d(nn.relu(multiply(%x, [a, b])), %w)
 *       =>   nn.conv2d(nn.relu(%x), multiply(%w, [a, b]))
 *
 * Semantics: TVM ForwardFoldScaleAxis. */

#include "transform/fold/scale/scale_axis.h"

typedef struct forward_fold {
  pln_engine *engine;
  const pln_graph *old;
  pln_scale_message *messages; /* by node: what its users can take up */
  uint8_t *has_message;        /* by node: a user was seen */
  pln_ref *source; /* by node: the multiply whose scale its image lacks */
  pln_ref *scales; /* by multiply: the squeezed scale in the new graph */
  int64_t folded;
} forward_fold;

static const pln_scale_message no_message;

/* ----------------------------------------------------------------- messages */

/* Meets the messages of several users of a node. */
static void send(forward_fold *f, pln_ref to,
                 const pln_scale_message *message) {
  pln_scale_message *m = &f->messages[to];
  if (!f->has_message[to]) {
    f->has_message[to] = true;
    *m = *message;
  } else if (!pln_scale_same_axes(m, message)) {
    *m = no_message;
  } else {
    m->needs_positive |= message->needs_positive;
    m->divides |= message->divides;
  }
}

static bool is_call_of(const pln_graph *g, pln_ref node, pln_op a, pln_op b) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CALL && (n->data == a || n->data == b);
}

/* The operand of a sum or difference through which the message goes on; 2: no
 * operand. */
static uint32_t passing_operand(const pln_graph *g, pln_ref sum,
                                const pln_scale_message *m) {
  for (uint32_t i = 0; i < 2; i++)
    if (pln_scale_passes(g, sum, i, m) &&
        pln_scale_matches(g, pln_operand(g, sum, i), pln_operand(g, sum, 1 - i),
                          m))
      return i;
  return 2;
}

static void send_through_sum(forward_fold *f, pln_ref sum) {
  pln_scale_message m = f->messages[sum];
  uint32_t passing = passing_operand(f->old, sum, &m);
  m.divides = true;
  for (uint32_t i = 0; i < 2; i++)
    send(f, pln_operand(f->old, sum, i), i == passing ? &m : &no_message);
}

static pln_status send_to_operands(forward_fold *f, pln_ref node) {
  const pln_graph *g = f->old;
  const pln_node *n = &g->nodes[node];
  pln_scaled_product product;
  pln_scale_message m = f->messages[node];
  if (n->count == 2 && is_call_of(g, node, PLN_OP_ADD, PLN_OP_SUB)) {
    send_through_sum(f, node);
    return PLN_OK;
  }
  PLN_TRY(pln_scale_of_data(g, node, &product));
  if (!is_call_of(g, node, PLN_OP_RELU, PLN_OP_LEAKY_RELU) ||
      !pln_scale_passes(g, node, 0, &m))
    m = product.message;
  else
    m.needs_positive = true;
  for (uint32_t i = 0; i < n->count; i++)
    send(f, pln_operand(g, node, i), i == 0 ? &m : &no_message);
  return PLN_OK;
}

/* What a scope gives, and what is kept, is used by others than operators. */
static pln_status collect_messages(forward_fold *f) {
  const pln_graph *g = f->old;
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result != PLN_NONE)
      send(f, g->scopes[s].result, &no_message);
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    if (g->nodes[ref].flags & PLN_NODE_KEEP)
      send(f, ref, &no_message);
    PLN_TRY(send_to_operands(f, ref));
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ sources */

/* The operand that the multiply scales; 2: the scale stays here. */
static uint32_t scaled_operand(const forward_fold *f, pln_ref multiply) {
  const pln_graph *g = f->old;
  const pln_node *n = &g->nodes[multiply];
  if (n->kind != PLN_CALL || n->data != PLN_OP_MUL || n->count != 2 ||
      !f->messages[multiply].n_axes)
    return 2;
  for (uint32_t i = 0; i < 2; i++)
    if (pln_scale_is_factor(g, multiply, i, &f->messages[multiply]))
      return i;
  return 2;
}

static pln_ref source_of(const forward_fold *f, pln_ref node) {
  const pln_graph *g = f->old;
  if (!f->messages[node].n_axes)
    return PLN_NONE;
  if (scaled_operand(f, node) < 2)
    return node;
  if (is_call_of(g, node, PLN_OP_RELU, PLN_OP_LEAKY_RELU))
    return f->source[pln_operand(g, node, 0)];
  if (!is_call_of(g, node, PLN_OP_ADD, PLN_OP_SUB))
    return PLN_NONE;
  uint32_t passing = passing_operand(g, node, &f->messages[node]);
  return passing < 2 ? f->source[pln_operand(g, node, passing)] : PLN_NONE;
}

static bool find_sources(forward_fold *f) {
  bool any = false;
  for (pln_ref ref = 0; ref < f->old->n_nodes; ref++) {
    f->source[ref] = source_of(f, ref);
    any |= f->source[ref] != PLN_NONE;
  }
  return any;
}

/* -------------------------------------------------------------------- sweep */

static pln_status take_scale(forward_fold *f, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  pln_relay_builder r;
  bool allowed;
  PLN_TRY(pln_rewrite_apply(rw, "fold_forward", &allowed));
  if (!allowed)
    return PLN_OK;
  PLN_TRY(pln_relay_begin(&r, rw));
  uint32_t i = scaled_operand(f, old);
  pln_ref value = pln_operand(r.b->graph, *node, i);
  pln_ref scale = pln_operand(r.b->graph, *node, 1 - i);
  pln_builder_origin(r.b, r.b->graph->origin[*node]);
  f->scales[old] = pln_scale_squeeze(&r, value, scale, &f->messages[old]);
  *node = value;
  f->folded++;
  return pln_relay_status(&r);
}

/* A scale to apply to an operand of a call. */
typedef struct scale_use {
  pln_ref scale;
  pln_op operation;
  uint32_t arg, shape; /* operands: the scaled one; whose axes are meant */
  uint32_t n_axes;
  const uint8_t *axes;
} scale_use;

/* Builds the call with operation(operand, scale) as that operand. */
static pln_status rebuild(pln_rewrite *rw, const scale_use *use,
                          pln_ref *node) {
  pln_relay_builder r;
  PLN_TRY(pln_relay_begin(&r, rw));
  pln_node n = r.b->graph->nodes[*node];
  pln_ref args[PLN_SCALE_MAX_OPERANDS];
  memcpy(args, pln_operands(r.b->graph, &n), n.count * sizeof *args);
  pln_builder_origin(r.b, r.b->graph->origin[*node]);
  args[use->arg] =
      pln_scale_apply(&r, use->operation, args[use->arg], use->scale,
                      args[use->shape], use->n_axes, use->axes);
  *node = pln_relay_call_core(&r, n.data, n.attrs, n.count, args);
  return pln_relay_status(&r);
}

static pln_status divide_summand(forward_fold *f, pln_rewrite *rw, pln_ref old,
                                 pln_ref *node) {
  const pln_scale_message *m = &f->messages[old];
  uint32_t passing = passing_operand(f->old, old, m);
  const scale_use use = {f->scales[f->source[old]],
                         PLN_OP_DIV,
                         1 - passing,
                         passing,
                         m->n_axes,
                         m->axes};
  return rebuild(rw, &use, node);
}

static pln_status scale_weight(forward_fold *f, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  const pln_graph *g = f->old;
  pln_scaled_product product;
  PLN_TRY(pln_scale_of_data(g, old, &product));
  if (!product.message.n_axes)
    return PLN_OK;
  pln_ref source = f->source[pln_operand(g, old, 0)];
  if (source == PLN_NONE || f->scales[source] == PLN_NONE)
    return PLN_OK;
  const scale_use use = {f->scales[source],      PLN_OP_MUL,         1, 1,
                         product.message.n_axes, product.weight_axes};
  return rebuild(rw, &use, node);
}

static pln_status fold_node(void *ud, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  forward_fold *f = ud;
  pln_ref source = f->source[old];
  if (source == old)
    return take_scale(f, rw, old, node);
  if (source == PLN_NONE)
    return scale_weight(f, rw, old, node);
  return f->scales[source] != PLN_NONE &&
                 is_call_of(f->old, old, PLN_OP_ADD, PLN_OP_SUB)
             ? divide_summand(f, rw, old, node)
             : PLN_OK;
}

/* --------------------------------------------------------------------- pass */

static pln_status alloc_tables(forward_fold *f) {
  size_t n = f->old->n_nodes;
  f->messages = pln_mem_zeroed(f->engine, n * sizeof *f->messages);
  f->has_message = pln_mem_zeroed(f->engine, n);
  f->source = pln_mem_new(f->engine, n * sizeof *f->source);
  f->scales = pln_mem_new(f->engine, n * sizeof *f->scales);
  if (!f->messages || !f->has_message || !f->source || !f->scales)
    return pln_nomem(f->engine);
  memset(f->scales, 0xff, n * sizeof *f->scales);
  return PLN_OK;
}

static void free_tables(forward_fold *f) {
  size_t n = f->old->n_nodes;
  pln_mem_free(f->engine, f->messages, n * sizeof *f->messages);
  pln_mem_free(f->engine, f->has_message, n);
  pln_mem_free(f->engine, f->source, n * sizeof *f->source);
  pln_mem_free(f->engine, f->scales, n * sizeof *f->scales);
}

pln_status pln_pass_forward_fold_scale_axis(pln_pass_run *run) {
  forward_fold f = {.engine = pln_run_engine(run),
                    .old = pln_run_function(run)};
  pln_mutator m = {.ud = &f, .visit = fold_node, .keeps_types = true};
  pln_status status = alloc_tables(&f);
  if (status == PLN_OK)
    status = collect_messages(&f);
  if (status == PLN_OK && find_sources(&f))
    status = pln_rewrite_function(run, &m);
  free_tables(&f);
  if (status == PLN_OK && f.folded)
    status = pln_run_count(run, "folded", f.folded);
  return status;
}
