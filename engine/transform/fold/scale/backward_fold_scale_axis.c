/* backward_fold_scale_axis.c: BackwardFoldScaleAxis: moves a scale along axes
 * of a tensor backwards, into the weights of the products that it comes from.
 *
 * Run by the executor, once per function. Requires a verified graph. From
 * operands to users, each node that is used once tells along which axes its
 * result can be scaled by scaling weights. A multiply of such a node becomes
 * that node, rebuilt together with what leads from the products to it: nn.relu
 * and nn.leaky_relu, which need a scale of constants that are not negative,
 * sums and differences, and nn.bias_add. What is added is multiplied by the
 * scale.
 *
 *     multiply(add(nn.conv2d(%x, %w), %b), %s)
 *       =>   add(nn.conv2d(%x, multiply(%w, %s)), multiply(%b, %s))
 *
 * Semantics: TVM BackwardFoldScaleAxis. */

#include "ir/analysis/users.h"
#include "transform/fold/scale/scale_axis.h"

typedef struct backward_fold {
  pln_engine *engine;
  const pln_graph *old;
  pln_users users;
  pln_scale_message *messages; /* by node: the axes that it can be scaled at */
  pln_ref *next;  /* by multiply: the first node that is rebuilt; by such a
                   * node: the next one. Ascending. */
  pln_ref *root;  /* by node: the multiply that it is rebuilt for */
  pln_ref *image; /* by rebuilt node: in the new graph */
  int64_t folded;
} backward_fold;

/* ----------------------------------------------------------------- messages */

static pln_scale_message sum_message(const backward_fold *f, pln_ref sum) {
  const pln_graph *g = f->old;
  pln_ref x = pln_operand(g, sum, 0), y = pln_operand(g, sum, 1);
  const pln_scale_message *mx = &f->messages[x], *my = &f->messages[y];
  bool both = mx->n_axes && my->n_axes;
  pln_scale_message none = {0};
  if (both && !pln_scale_same_axes(mx, my))
    return none;
  pln_scale_message m = mx->n_axes ? *mx : *my;
  m.needs_positive |= both && my->needs_positive;
  bool fits =
      (mx->n_axes && pln_scale_matches(g, x, y, &m)) ||
      (my->n_axes && pln_scale_matches(g, y, x, &m)) ||
      (both && pln_same_extents(g->engine, g->nodes[x].type, g->nodes[y].type));
  return fits && pln_scale_passes(g, sum, mx->n_axes ? 0 : 1, &m) ? m : none;
}

static pln_scale_message bias_add_message(const backward_fold *f,
                                          pln_ref node) {
  pln_scale_message m = f->messages[pln_operand(f->old, node, 0)];
  int64_t axis = pln_attrs_int(f->engine, f->old->nodes[node].attrs, "axis", 1);
  return m.n_axes == 1 && m.axes[0] == axis ? m : (pln_scale_message){0};
}

static pln_scale_message relu_message(const backward_fold *f, pln_ref node) {
  pln_scale_message m = f->messages[pln_operand(f->old, node, 0)];
  if (!pln_scale_passes(f->old, node, 0, &m))
    return (pln_scale_message){0};
  m.needs_positive = true;
  return m;
}

/* Used once, in its own scope. */
static bool can_be_rebuilt(const backward_fold *f, pln_ref node) {
  const pln_users *u = &f->users;
  const pln_node *n = &f->old->nodes[node];
  return n->kind == PLN_CALL && !(n->flags & PLN_NODE_KEEP) &&
         pln_users_once(u, node) &&
         u->node_scope[u->users[u->first[node]]] == u->node_scope[node];
}

static pln_status find_message(backward_fold *f, pln_ref node) {
  const pln_node *n = &f->old->nodes[node];
  pln_scaled_product product;
  pln_scale_message *m = &f->messages[node];
  if (!can_be_rebuilt(f, node))
    return PLN_OK;
  switch (n->data) {
  case PLN_OP_ADD:
  case PLN_OP_SUB: *m = sum_message(f, node); return PLN_OK;
  case PLN_OP_BIAS_ADD: *m = bias_add_message(f, node); return PLN_OK;
  case PLN_OP_RELU:
  case PLN_OP_LEAKY_RELU: *m = relu_message(f, node); return PLN_OK;
  }
  PLN_TRY(pln_scale_of_result(f->old, node, &product));
  *m = product.message;
  return PLN_OK;
}

/* -------------------------------------------------------------------- roots */

/* The operand that the multiply scales; 2: the scale stays here. */
static uint32_t scaled_operand(const backward_fold *f, pln_ref node) {
  const pln_graph *g = f->old;
  const pln_node *n = &g->nodes[node];
  if (n->kind != PLN_CALL || n->data != PLN_OP_MUL || n->count != 2)
    return 2;
  uint32_t i = f->messages[pln_operand(g, node, 0)].n_axes ? 0 : 1;
  pln_ref x = pln_operand(g, node, i);
  return f->messages[x].n_axes &&
                 pln_scale_is_factor(g, node, i, &f->messages[x])
             ? i
             : 2;
}

/* True if the rebuilt node needs operand `i` scaled, and the operand can be. */
static bool needs_scaled(const backward_fold *f, pln_ref node, uint32_t i) {
  switch (f->old->nodes[node].data) {
  case PLN_OP_ADD:
  case PLN_OP_SUB: return f->messages[pln_operand(f->old, node, i)].n_axes > 0;
  case PLN_OP_BIAS_ADD:
  case PLN_OP_RELU:
  case PLN_OP_LEAKY_RELU: return i == 0;
  default: return false;
  }
}

/* The nodes that are rebuilt for a multiply: its operand, and from each of them
 * the operands that can be scaled. Every one has one user, so it belongs to one
 * multiply. */
static bool find_roots(backward_fold *f) {
  const pln_graph *g = f->old;
  bool any = false;
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    uint32_t scaled = scaled_operand(f, ref);
    pln_ref root = f->root[ref];
    any |= scaled < 2;
    if (root == PLN_NONE && scaled == 2)
      continue;
    for (uint32_t i = 0; i < g->nodes[ref].count; i++)
      if (root == PLN_NONE ? i == scaled : needs_scaled(f, ref, i))
        f->root[pln_operand(g, ref, i)] = root == PLN_NONE ? ref : root;
    if (root != PLN_NONE) {
      f->next[ref] = f->next[root];
      f->next[root] = ref;
    }
  }
  return any;
}

/* -------------------------------------------------------------------- sweep */

typedef struct scaled_rebuild {
  backward_fold *fold;
  pln_relay_builder r;
  pln_ref scale; /* squeezed */
} scaled_rebuild;

static pln_ref image_of(const scaled_rebuild *s, pln_ref old, uint32_t i) {
  return pln_rewrite_image(s->r.rw, pln_operand(s->fold->old, old, i));
}

/* Operand `i` scaled: rebuilt, or multiplied by the scale along axes of a
 * tensor like operand `shape`. */
static pln_ref scaled_arg(scaled_rebuild *s, pln_ref old, uint32_t i,
                          uint32_t shape, uint32_t n_axes,
                          const uint8_t *axes) {
  pln_ref arg = pln_operand(s->fold->old, old, i);
  if (s->fold->root[arg] != PLN_NONE && needs_scaled(s->fold, old, i))
    return s->fold->image[arg];
  return pln_scale_apply(&s->r, PLN_OP_MUL, image_of(s, old, i), s->scale,
                         image_of(s, old, shape), n_axes, axes);
}

/* The bias of ONNX's convolution, or nothing. */
static pln_ref scaled_bias(scaled_rebuild *s, pln_ref old) {
  static const uint8_t first = 0;
  if (s->fold->old->nodes[pln_operand(s->fold->old, old, 2)].kind == PLN_ABSENT)
    return image_of(s, old, 2);
  return scaled_arg(s, old, 2, 2, 1, &first);
}

static pln_status rebuild_product(scaled_rebuild *s, pln_ref old,
                                  pln_ref *args) {
  pln_scaled_product product;
  PLN_TRY(pln_scale_of_result(s->fold->old, old, &product));
  args[0] = image_of(s, old, 0);
  args[1] =
      scaled_arg(s, old, 1, 1, product.message.n_axes, product.weight_axes);
  if (s->fold->old->nodes[old].count > 2)
    args[2] = scaled_bias(s, old);
  return PLN_OK;
}

static void rebuild_sum(scaled_rebuild *s, pln_ref old, pln_ref *args) {
  const pln_scale_message *m = &s->fold->messages[old];
  uint32_t shape = needs_scaled(s->fold, old, 0) ? 0 : 1;
  for (uint32_t i = 0; i < 2; i++)
    args[i] = scaled_arg(s, old, i, shape, m->n_axes, m->axes);
}

static void rebuild_bias_add(scaled_rebuild *s, pln_ref old, pln_ref *args) {
  static const uint8_t first = 0;
  args[0] = scaled_arg(s, old, 0, 0, 1, &first);
  args[1] = scaled_arg(s, old, 1, 1, 1, &first);
}

static pln_status rebuild(scaled_rebuild *s, pln_ref old, pln_ref *out) {
  const pln_graph *g = s->fold->old;
  const pln_node *n = &g->nodes[old];
  pln_ref args[PLN_SCALE_MAX_OPERANDS];
  pln_builder_origin(s->r.b,
                     s->r.b->graph->origin[pln_rewrite_image(s->r.rw, old)]);
  switch (n->data) {
  case PLN_OP_ADD:
  case PLN_OP_SUB: rebuild_sum(s, old, args); break;
  case PLN_OP_BIAS_ADD: rebuild_bias_add(s, old, args); break;
  case PLN_OP_RELU:
  case PLN_OP_LEAKY_RELU:
    args[0] = s->fold->image[pln_operand(g, old, 0)];
    break;
  default: PLN_TRY(rebuild_product(s, old, args));
  }
  *out = pln_relay_call_core(&s->r, n->data, n->attrs, n->count, args);
  return pln_relay_status(&s->r);
}

static pln_status fold_node(void *ud, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  backward_fold *f = ud;
  scaled_rebuild s = {.fold = f};
  bool allowed;
  if (f->next[old] == PLN_NONE || f->root[old] != PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "fold_backward", &allowed));
  if (!allowed)
    return PLN_OK;
  PLN_TRY(pln_relay_begin(&s.r, rw));
  uint32_t i = scaled_operand(f, old);
  pln_ref value = pln_operand(f->old, old, i);
  pln_builder_origin(s.r.b, s.r.b->graph->origin[*node]);
  s.scale = pln_scale_squeeze(&s.r, image_of(&s, old, i),
                              image_of(&s, old, 1 - i), &f->messages[value]);
  for (pln_ref ref = f->next[old]; ref != PLN_NONE; ref = f->next[ref])
    PLN_TRY(rebuild(&s, ref, &f->image[ref]));
  *node = f->image[value];
  f->folded++;
  return pln_relay_status(&s.r);
}

/* --------------------------------------------------------------------- pass */

static pln_status alloc_tables(backward_fold *f) {
  size_t n = f->old->n_nodes;
  f->messages = pln_mem_zeroed(f->engine, n * sizeof *f->messages);
  f->next = pln_mem_new(f->engine, n * sizeof *f->next);
  f->root = pln_mem_new(f->engine, n * sizeof *f->root);
  f->image = pln_mem_new(f->engine, n * sizeof *f->image);
  if (!f->messages || !f->next || !f->root || !f->image)
    return pln_nomem(f->engine);
  memset(f->next, 0xff, n * sizeof *f->next);
  memset(f->root, 0xff, n * sizeof *f->root);
  return pln_users_begin(&f->users, f->old);
}

static void free_tables(backward_fold *f) {
  size_t n = f->old->n_nodes;
  pln_users_end(&f->users);
  pln_mem_free(f->engine, f->messages, n * sizeof *f->messages);
  pln_mem_free(f->engine, f->next, n * sizeof *f->next);
  pln_mem_free(f->engine, f->root, n * sizeof *f->root);
  pln_mem_free(f->engine, f->image, n * sizeof *f->image);
}

pln_status pln_pass_backward_fold_scale_axis(pln_pass_run *run) {
  backward_fold f = {.engine = pln_run_engine(run),
                     .old = pln_run_function(run)};
  pln_mutator m = {.ud = &f, .visit = fold_node, .keeps_types = true};
  pln_status status = alloc_tables(&f);
  for (pln_ref ref = 0; status == PLN_OK && ref < f.old->n_nodes; ref++)
    status = find_message(&f, ref);
  if (status == PLN_OK && find_roots(&f))
    status = pln_rewrite_function(run, &m);
  free_tables(&f);
  if (status == PLN_OK && f.folded)
    status = pln_run_count(run, "folded", f.folded);
  return status;
}
