/* operator_gradient.c: builds the gradients of the arguments of a call: by the
 * function that a script registered for the operator, else by its row of
 * gradients.def.
 *
 * Called by Gradient and FirstOrderGradient with a free builder. A registered
 * function sees a function of its own that only has the call, as passes that
 * rewrite show nodes to functions; what it builds is imported.
 *
 * Semantics: TVM FPrimalGradient. */

#include "transform/gradient/operator_gradient.h"

#include "perilune/op_attr.h"

#define GRADIENT_KEY "FPrimalGradient"

static const struct gradient_row {
  pln_op op;
  pln_gradient_fn build;
} rows[] = {
#define GRADIENT(op, function) {PLN_OP_##op, function},
#include "transform/gradient/gradients.def"
};

static pln_gradient_fn find_row(pln_op op) {
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (rows[i].op == op)
      return rows[i].build;
  return NULL;
}

bool pln_has_gradient(const pln_engine *engine, pln_op op) {
  return find_row(op) || pln_op_attr_get(engine, op, GRADIENT_KEY);
}

/* ----------------------------------------------------------------- formulas */

void pln_gradient_refuse(pln_gradient *g, const char *why) {
  if (g->r.status == PLN_OK)
    g->r.status = pln_diag_error(g->r.engine, PLN_ERR_UNSUPPORTED, NULL,
                                 "the gradient of '%s': %s",
                                 pln_op_row(g->r.engine, g->op)->name, why);
}

pln_type pln_gradient_type(const pln_gradient *g, pln_ref node) {
  return node == PLN_NONE ? 0 : g->r.b->graph->nodes[node].type;
}

const pln_dim *pln_gradient_shape(pln_gradient *g, pln_ref node,
                                  int32_t *rank) {
  pln_engine *e = g->r.engine;
  pln_type type = pln_gradient_type(g, node);
  const pln_dim *dims = pln_type_dims(e, type);
  *rank = pln_type_rank(e, type);
  for (int32_t i = 0; i < *rank; i++)
    if (!PLN_DIM_IS_CONST(dims[i]))
      *rank = -1;
  if (*rank >= 0)
    return dims;
  pln_gradient_refuse(g, "the shape of an argument is not known");
  return NULL;
}

static const pln_attr *attr_of(const pln_gradient *g, const char *name,
                               pln_attr_kind kind) {
  const pln_attr *a = pln_attrs_find(g->r.engine, g->attrs, name);
  bool boolean = kind == PLN_ATTR_INT && a && a->kind == PLN_ATTR_BOOL;
  return a && (a->kind == kind || boolean) ? a : NULL;
}

int64_t pln_gradient_int(const pln_gradient *g, const char *name,
                         int64_t fallback) {
  const pln_attr *a = attr_of(g, name, PLN_ATTR_INT);
  return a ? a->v.i : fallback;
}

double pln_gradient_float(const pln_gradient *g, const char *name,
                          double fallback) {
  const pln_attr *a = attr_of(g, name, PLN_ATTR_FLOAT);
  return a ? a->v.f : (double)pln_gradient_int(g, name, (int64_t)fallback);
}

const char *pln_gradient_text(const pln_gradient *g, const char *name,
                              const char *fallback) {
  const pln_attr *a = attr_of(g, name, PLN_ATTR_STRING);
  return a ? a->v.s.data : fallback;
}

int32_t pln_gradient_ints(const pln_gradient *g, const char *name, int32_t most,
                          int64_t *out) {
  const pln_attr *a = attr_of(g, name, PLN_ATTR_INTS);
  const pln_attr *one = attr_of(g, name, PLN_ATTR_INT);
  if (one)
    out[0] = one->v.i;
  if (!a || a->count > (uint32_t)most)
    return one ? 1 : -1;
  if (a->count)
    memcpy(out, a->v.ints, a->count * sizeof *out);
  return (int32_t)a->count;
}

pln_ref pln_scalar_like(pln_gradient *g, pln_ref like, double value) {
  pln_dtype dtype = pln_type_dtype(g->r.engine, pln_gradient_type(g, like));
  return pln_relay_scalar(&g->r, dtype, value);
}

pln_ref pln_ints_constant(pln_gradient *g, int32_t n, const int64_t *values) {
  pln_tensor *tensor = NULL;
  pln_ref out = PLN_NONE;
  int64_t dims = n;
  if (g->r.status != PLN_OK)
    return PLN_NONE;
  g->r.status = pln_tensor_new(g->r.engine, PLN_INT32, 1, &dims, &tensor);
  if (g->r.status != PLN_OK)
    return PLN_NONE;
  int32_t *data = pln_tensor_writable(tensor);
  for (int32_t i = 0; i < n; i++)
    data[i] = (int32_t)values[i];
  g->r.status = pln_build_constant(g->r.b, tensor, &out);
  pln_tensor_release(tensor);
  return g->r.status == PLN_OK ? out : PLN_NONE;
}

pln_ref pln_reshape_to(pln_gradient *g, pln_ref x, uint32_t n,
                       const int64_t *shape) {
  pln_relay_attr attr = pln_relay_ints("newshape", n, shape);
  return pln_relay_call_with(&g->r, PLN_OP_RESHAPE, 1, &attr, 1, &x);
}

pln_ref pln_sum_over(pln_gradient *g, pln_ref x, int32_t n, const int64_t *axes,
                     bool keepdims, bool exclude) {
  pln_relay_attr attrs[3];
  uint32_t k = 0;
  attrs[k++] = pln_relay_int("keepdims", keepdims);
  attrs[k++] = pln_relay_int("exclude", exclude);
  if (n >= 0)
    attrs[k++] = pln_relay_ints("axis", (uint32_t)n, axes);
  return pln_relay_call_with(&g->r, PLN_OP_REDUCE_SUM, k, attrs, 1, &x);
}

/* --------------------------------------------------------------- built in */

static pln_status check_gradients(const pln_gradient *g) {
  pln_engine *e = g->r.engine;
  PLN_TRY(g->r.status == PLN_ERR_TYPE
              ? pln_diag_error(e, PLN_ERR_TYPE, NULL,
                               "the gradient of '%s' is ill-typed",
                               pln_op_row(e, g->op)->name)
              : g->r.status);
  for (uint32_t i = 0; i < g->n; i++)
    if (g->out[i] == PLN_NONE)
      return pln_diag_error(e, PLN_ERR_UNSUPPORTED, NULL,
                            "'%s' has no gradient with respect to argument %u",
                            pln_op_row(e, g->op)->name, i + 1);
  return PLN_OK;
}

static pln_status build_by_row(pln_gradient *g, pln_gradient_fn build) {
  bool expressible;
  pln_attrs core = g->r.b->graph->nodes[g->orig].attrs;
  PLN_TRY(pln_relay_write(g->r.engine, g->op, core, &g->attrs, &expressible));
  for (uint32_t i = 0; i < g->n; i++)
    g->out[i] = PLN_NONE;
  build(g);
  return check_gradients(g);
}

/* --------------------------------------------------------------- registered */

/* fn (arguments, gradient) { (the call, the gradient) } */
typedef struct gradient_call {
  pln_gradient *g;
  pln_graph *graph;
  pln_ref call, result;
  bool called;
} gradient_call;

static pln_status add_params(pln_gradient *g, pln_builder *b, pln_ref *params) {
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(b->engine, pln_text("x"), &name));
  for (uint32_t i = 0; i <= g->n; i++)
    PLN_TRY(pln_build_param(
        b, name, pln_gradient_type(g, i < g->n ? g->args[i] : g->grad), 0,
        &params[i]));
  return PLN_OK;
}

static pln_status build_shown(pln_gradient *g, pln_builder *b, pln_ref *params,
                              pln_graph **out) {
  const pln_node *orig = &g->r.b->graph->nodes[g->orig];
  pln_scope scope;
  pln_ref pair[2], root;
  PLN_TRY(pln_build_open(b, &scope));
  PLN_TRY(add_params(g, b, params));
  PLN_TRY(pln_build_call(b, g->op, orig->attrs, orig->results, g->n, params,
                         &pair[0]));
  pair[1] = params[g->n];
  PLN_TRY(pln_build_tuple(b, 2, pair, &root));
  PLN_TRY(pln_build_end(b, scope, root, 0));
  PLN_TRY(pln_build_function(b, scope, 0, 0, &root));
  return pln_builder_seal(b, root, out);
}

static pln_status show_call(gradient_call *c) {
  pln_engine *e = c->g->r.engine;
  size_t size = (c->g->n + (size_t)1) * sizeof(pln_ref);
  pln_ref *params = pln_mem_new(e, size);
  pln_builder *b = NULL;
  pln_status status = params ? pln_builder_new(e, &b) : pln_nomem(e);
  if (status == PLN_OK)
    status = build_shown(c->g, b, params, &c->graph);
  pln_builder_free(b);
  pln_mem_free(e, params, size);
  return status;
}

/* Replaces the tuple of the call and the gradient by that of the gradients. */
static pln_status ask_function(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  gradient_call *c = ud;
  if (c->graph->nodes[old].kind != PLN_TUPLE || c->called)
    return PLN_OK;
  pln_op_value args[] = {
      {.kind = PLN_OP_OLD_NODE, .v.node = pln_operand(c->graph, old, 0)},
      {.kind = PLN_OP_OLD_NODE, .v.node = pln_operand(c->graph, old, 1)}};
  size_t size = (c->g->n + (size_t)1) * sizeof(pln_op_value);
  pln_op_value *items = pln_mem_zeroed(c->g->r.engine, size);
  pln_ref *fields = c->g->out;
  if (!items)
    return pln_nomem(c->g->r.engine);
  for (uint32_t i = 0; i < c->g->n; i++)
    items[i].kind = PLN_OP_NODE;
  pln_op_value result = {.kind = PLN_OP_LIST,
                         .v.list = {.n = c->g->n, .items = items}};
  pln_op_call call = {.engine = c->g->r.engine,
                      .graph = c->graph,
                      .node = args[0].v.node,
                      .rewrite = rw,
                      .image = pln_rewrite_image(rw, args[0].v.node),
                      .n_args = 2,
                      .args = args,
                      .result = &result};
  pln_builder *b = pln_rewrite_builder(rw);
  pln_status status = b ? pln_op_attr_call(call.engine, c->g->op, GRADIENT_KEY,
                                           &call, &c->called)
                        : PLN_ERR_NOMEM;
  for (uint32_t i = 0; i < c->g->n; i++)
    fields[i] = items[i].v.node;
  if (status == PLN_OK && c->called)
    status = pln_build_tuple(b, c->g->n, fields, node);
  pln_mem_free(c->g->r.engine, items, size);
  return status;
}

static pln_status import_gradients(gradient_call *c, const pln_graph *made) {
  pln_gradient *g = c->g;
  const pln_scope_row *row = &made->scopes[made->nodes[made->root].data];
  for (uint32_t i = 0; i <= g->n; i++)
    PLN_TRY(pln_import_seed(g->r.b, made, row->begin + i,
                            i < g->n ? g->args[i] : g->grad));
  for (uint32_t i = 0; i < g->n; i++)
    PLN_TRY(pln_build_import(g->r.b, made, pln_operand(made, row->result, i),
                             &g->out[i]));
  return PLN_OK;
}

/* *done: the operator has a function that was called. */
static pln_status build_by_function(pln_gradient *g, bool *done) {
  gradient_call c = {.g = g};
  pln_mutator m = {.ud = &c, .visit = ask_function, .retypes_results = true};
  pln_graph *made = NULL;
  *done = false;
  if (!pln_op_attr_get(g->r.engine, g->op, GRADIENT_KEY))
    return PLN_OK;
  pln_status status = show_call(&c);
  if (status == PLN_OK)
    status = pln_graph_rewrite(c.graph, &m, &made);
  if (status == PLN_OK && c.called)
    status = import_gradients(&c, made);
  *done = c.called;
  pln_graph_release(made);
  pln_graph_release(c.graph);
  return status;
}

pln_status pln_operator_gradient(pln_builder *b, pln_ref orig, pln_ref grad,
                                 pln_ref *out) {
  const pln_node *n = &b->graph->nodes[orig];
  size_t size = (n->count + (size_t)1) * sizeof(pln_ref);
  pln_gradient g = {.r = {.engine = b->engine, .b = b},
                    .op = n->data,
                    .orig = orig,
                    .grad = grad,
                    .n = n->count,
                    .out = out};
  pln_ref *args = pln_mem_new(b->engine, size); /* the graph grows */
  if (!args)
    return pln_nomem(b->engine);
  if (n->count)
    memcpy(args, pln_operands(b->graph, n), n->count * sizeof *args);
  g.args = args;
  bool done;
  pln_gradient_fn build = find_row(g.op);
  pln_status status = build_by_function(&g, &done);
  if (status == PLN_OK && !done)
    status = build ? build_by_row(&g, build)
                   : pln_diag_error(b->engine, PLN_ERR_UNSUPPORTED, NULL,
                                    "'%s' has no gradient",
                                    pln_op_row(b->engine, g.op)->name);
  pln_mem_free(b->engine, args, size);
  return status;
}
