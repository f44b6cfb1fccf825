/* weight_params.c: replaces weights of a function that are parameters by
 * parameters of another form. Called by DenseToSparse, Conv2dToSparse and
 * SimplifyFCTranspose.
 *
 *     fn (%w, %x, %y) { nn.dense(%x, %w) }   =>
 *     fn (%x, %w.data, %w.indices, %w.indptr) { nn.sparse_dense(%x, ..) }
 *
 * The caller of the function has to give it the new weights: what the pass
 * makes is another function by definition. */

#include "transform/sparse/weight_params.h"

#include <stdio.h>

#include "ir/rewrite/with_params.h"

/* ------------------------------------------------------------------- weights
 */

static bool is_param_of_root(const pln_graph *g, pln_ref node) {
  const pln_node *root = &g->nodes[g->root];
  if (root->kind != PLN_FUNCTION)
    return false;
  const pln_scope_row *row = &g->scopes[root->data];
  return node >= row->begin && node < row->begin + row->n_params;
}

int64_t pln_weight_index(const pln_graph *graph, pln_ref weight,
                         const pln_attr *names) {
  if (!is_param_of_root(graph, weight))
    return -1;
  pln_slice name = pln_symbol_text(graph->engine, graph->nodes[weight].attrs);
  for (uint32_t i = 0; i < names->count; i++)
    if (pln_slice_equal(names->v.strings[i], name))
      return i;
  return -1;
}

pln_ref pln_weight_param(pln_relay_builder *r, pln_ref weight,
                         const char *suffix, pln_type type) {
  const pln_graph *old = pln_rewrite_old(r->rw);
  pln_slice name = pln_symbol_text(r->engine, old->nodes[weight].attrs);
  pln_buffer text;
  pln_symbol symbol;
  pln_ref out = PLN_NONE;
  if (r->status != PLN_OK)
    return PLN_NONE;
  pln_buffer_init(&text, r->engine);
  r->status = pln_buffer_add(&text, name.data, name.size);
  if (r->status == PLN_OK)
    r->status = pln_buffer_text(&text, suffix);
  if (r->status == PLN_OK)
    r->status = pln_symbol_intern(
        r->engine, (pln_slice){(const char *)text.data, text.size}, &symbol);
  pln_buffer_free(&text);
  if (r->status == PLN_OK)
    r->status = pln_build_var(r->b, symbol, type, 0, &out);
  return r->status == PLN_OK ? out : PLN_NONE;
}

/* ------------------------------------------------------------ sparse weights
 */

static pln_status wrong_shapes(pln_pass_run *run, const char *what) {
  return pln_diag_error(pln_run_engine(run), PLN_ERR_ARGUMENT, NULL,
                        "pass '%s': option 'weight_shape' %s",
                        pln_pass_name(pln_run_pass(run)), what);
}

pln_status pln_sparse_options_read(pln_pass_run *run, uint32_t least,
                                   uint32_t most, pln_sparse_options *out) {
  const pln_engine *e = pln_run_engine(run);
  char text[80];
  if (!pln_run_option(run, "weight_name", &out->names) ||
      !pln_run_option(run, "weight_shape", &out->shapes))
    return wrong_shapes(run, "is missing");
  if (pln_attrs_count(e, out->shapes.v.dict) != out->names.count)
    return wrong_shapes(run, "needs a list for each name of 'weight_name'");
  snprintf(text, sizeof text, "needs lists of %u to %u positive integers",
           least, most);
  for (uint32_t i = 0; i < out->names.count; i++) {
    const pln_attr *shape = pln_attrs_at(e, out->shapes.v.dict, i);
    if (shape->count < least || shape->count > most)
      return wrong_shapes(run, text);
    for (uint32_t k = 0; k < shape->count; k++)
      if (shape->v.ints[k] < 1)
        return wrong_shapes(run, text);
  }
  return PLN_OK;
}

static pln_status build_params(pln_relay_builder *r, pln_ref weight,
                               const pln_attr *shape, pln_ref *out) {
  static const char *const suffixes[] = {".data", ".indices", ".indptr"};
  uint32_t rank = shape->count - 2;
  for (uint32_t i = 0; i < 3; i++) {
    pln_type type;
    PLN_TRY(pln_type_tensor(
        r->engine, i == 0 ? PLN_FLOAT32 : PLN_INT32, i == 0 ? (int32_t)rank : 1,
        shape->v.ints + (i == 0 ? 0 : rank + i - 1), &type));
    out[i] = pln_weight_param(r, weight, suffixes[i], type);
  }
  return PLN_OK;
}

/* The type of the sparse call has to agree with that of the call. */
static pln_status check_result(const pln_relay_builder *r, pln_type wanted,
                               pln_ref sparse, pln_slice name) {
  pln_type met;
  bool conflict = sparse == PLN_NONE;
  if (r->status != PLN_OK && r->status != PLN_ERR_TYPE)
    return r->status;
  if (!conflict)
    PLN_TRY(pln_type_meet(r->engine, wanted, r->b->graph->nodes[sparse].type,
                          &met, &conflict));
  if (!conflict)
    return PLN_OK;
  return pln_diag_error(r->engine, PLN_ERR_TYPE, NULL,
                        "option 'weight_shape': the shape of '%.*s' does not "
                        "give a result of the type that the weight gives",
                        (int)name.size, name.data);
}

pln_status pln_sparse_replace(pln_rewrite *rw, pln_ref old,
                              const pln_sparse_options *options, int64_t index,
                              pln_op op, uint32_t n_attrs,
                              const pln_relay_attr *attrs, pln_ref *node,
                              int64_t *replaced) {
  const pln_graph *g = pln_rewrite_old(rw);
  pln_relay_builder r;
  PLN_TRY(pln_relay_begin(&r, rw));
  pln_ref args[4] = {pln_operand(r.b->graph, *node, 0)}, before = *node;
  PLN_TRY(build_params(
      &r, pln_operand(g, old, 1),
      pln_attrs_at(r.engine, options->shapes.v.dict, (uint32_t)index),
      &args[1]));
  pln_ref sparse = pln_relay_call_with(&r, op, n_attrs, attrs, 4, args);
  PLN_TRY(check_result(&r, g->nodes[old].type, sparse,
                       options->names.v.strings[index]));
  PLN_TRY(pln_relay_finish(&r, "convert", sparse, node));
  *replaced += *node != before;
  return PLN_OK;
}

/* ---------------------------------------------------------------- parameters
 */

typedef struct param_order {
  pln_engine *engine;
  const pln_graph *graph;
  pln_idmap *free; /* identities of free variables, then of listed ones */
  uint32_t n, n_new, cap, cap_new;
  pln_node *used, *new_vars;
} param_order;

static pln_status add_free(void *ud, const pln_graph *g, pln_ref var) {
  param_order *o = ud;
  PLN_TRY(pln_mem_grow(o->engine, (void **)&o->new_vars, &o->cap_new,
                       (size_t)o->n_new + 1, sizeof *o->new_vars));
  o->new_vars[o->n_new++] = g->nodes[var];
  return PLN_OK;
}

/* Where Relay's body of the function begins: its first let, or its result. */
static pln_ref body_of(const pln_graph *g) {
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  pln_ref ref = row->begin;
  while (ref < row->end &&
         (g->nodes[ref].kind != PLN_LET ||
          pln_graph_scope_of(g, ref) != g->nodes[g->root].data))
    ref++;
  return ref < row->end ? ref : row->result;
}

static pln_status enter_node(void *ud, const pln_graph *g, pln_ref node,
                             bool *skip) {
  param_order *o = ud;
  (void)skip;
  if (!is_param_of_root(g, node))
    return PLN_OK;
  PLN_TRY(pln_mem_grow(o->engine, (void **)&o->used, &o->cap, (size_t)o->n + 1,
                       sizeof *o->used));
  o->used[o->n++] = g->nodes[node];
  return PLN_OK;
}

/* Lists the parameters that are used, in order, and behind them the free
 * variables. */
static pln_status list_params(param_order *o) {
  const pln_visitor visitor = {.ud = o, .enter = enter_node};
  PLN_TRY(pln_graph_vars(o->graph, o->graph->root, PLN_VARS_FREE, add_free, o));
  if (o->n_new == 0)
    return PLN_OK;
  PLN_TRY(pln_walk(o->graph, body_of(o->graph), &visitor));
  PLN_TRY(pln_mem_grow(o->engine, (void **)&o->used, &o->cap,
                       (size_t)o->n + o->n_new, sizeof *o->used));
  memcpy(o->used + o->n, o->new_vars, o->n_new * sizeof *o->used);
  o->n += o->n_new;
  return PLN_OK;
}

static pln_status set_params(pln_pass_run *run, const pln_graph *graph) {
  param_order o = {.engine = pln_run_engine(run), .graph = graph};
  pln_graph *out = NULL;
  pln_status status = list_params(&o);
  if (status == PLN_OK && o.n_new)
    status = pln_graph_with_params(graph, o.n, o.used, &out);
  pln_mem_free(o.engine, o.used, o.cap * sizeof *o.used);
  pln_mem_free(o.engine, o.new_vars, o.cap_new * sizeof *o.new_vars);
  if (status == PLN_OK && out)
    pln_run_set_function(run, out);
  return status;
}

pln_status pln_rewrite_weights(pln_pass_run *run, const pln_mutator *mutator) {
  const pln_graph *function = pln_run_function(run);
  pln_graph *rewritten;
  PLN_TRY(pln_graph_rewrite(function, mutator, &rewritten));
  pln_status status =
      rewritten == function ? PLN_OK : set_params(run, rewritten);
  pln_graph_release(rewritten);
  return status;
}
