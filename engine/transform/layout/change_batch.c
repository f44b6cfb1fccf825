/* change_batch.c: ChangeBatch: another batch size in the types of parameters.
 *
 * Run by the executor, once per function. `data` maps names of parameters to
 * the axis that is the batch; the extent of that axis becomes `batch`, and the
 * types of what is computed from it are inferred again. A function without a
 * parameter of these names stays as it is.
 *
 *     fn (%x: Tensor[(1, 3), float32]) { nn.relu(%x) }, data={x=0}, batch=16 =>
 *     fn (%x: Tensor[(16, 3), float32]) { nn.relu(%x) }
 *
 * Semantics: TVM ChangeBatch. A program that says the batch size elsewhere too,
 * such as in a reshape, is refused if types contradict each other then. */

#include "ir/graph/describe.h"
#include "transform/relay_builder.h"

typedef struct batch_change {
  pln_engine *engine;
  pln_attr data;
  int64_t batch;
  int64_t changed;
} batch_change;

static pln_status refuse_axis(const batch_change *c, const pln_attr *row,
                              pln_type type) {
  pln_description text;
  pln_slice name = pln_symbol_text(c->engine, row->name);
  return pln_diag_error(c->engine, PLN_ERR_ARGUMENT, NULL,
                        "parameter '%.*s' is %s: it has no "
                        "axis %lld",
                        (int)name.size, name.data,
                        pln_describe_type(c->engine, type, &text),
                        (long long)row->v.i);
}

/* The type with the extent of the axis replaced; a negative axis counts from
 * the end. */
static pln_status change_type(const batch_change *c, const pln_attr *row,
                              pln_type type, pln_type *out) {
  bool tensor = pln_type_get_kind(c->engine, type) == PLN_TYPE_TENSOR;
  int32_t rank = tensor ? pln_type_rank(c->engine, type) : -1;
  int64_t axis = row->v.i < 0 ? row->v.i + rank : row->v.i;
  if (rank < 0 || axis < 0 || axis >= rank)
    return refuse_axis(c, row, type);
  size_t size = (size_t)rank * sizeof(pln_dim);
  pln_dim *dims = pln_mem_new(c->engine, size);
  if (!dims)
    return pln_nomem(c->engine);
  memcpy(dims, pln_type_dims(c->engine, type), size);
  dims[axis] = c->batch;
  pln_status status = pln_type_tensor(
      c->engine, pln_type_dtype(c->engine, type), rank, dims, out);
  pln_mem_free(c->engine, dims, size);
  return status;
}

/* The entry of a parameter of the function in `data`, or NULL. */
static const pln_attr *find_entry(const batch_change *c, const pln_graph *g,
                                  pln_ref node) {
  const pln_scope_row *row = &g->scopes[g->nodes[g->root].data];
  if (node < row->begin || node - row->begin >= row->n_params ||
      !g->nodes[node].attrs)
    return NULL;
  return pln_attrs_find(c->engine, c->data.v.dict,
                        pln_symbol_text(c->engine, g->nodes[node].attrs).data);
}

/* The parameter becomes another variable: who holds the old one knows its type.
 */
static pln_status change_param(void *ud, pln_rewrite *rw, pln_ref old,
                               pln_ref *node) {
  batch_change *c = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  const pln_attr *entry = find_entry(c, g, old);
  bool allowed;
  pln_type type;
  if (!entry)
    return PLN_OK;
  PLN_TRY(change_type(c, entry, g->nodes[old].type, &type));
  if (type == g->nodes[old].type)
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "batch", &allowed));
  if (!allowed)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  c->changed++;
  b->graph->nodes[*node].type = type;
  b->graph->nodes[*node].data = ++c->engine->n_vars;
  return PLN_OK;
}

/* A variable gets the new type of what a let binds it to; its uses are all
 * still to come. */
static pln_status retype_bound_variable(void *ud, pln_rewrite *rw, pln_ref old,
                                        pln_ref *node) {
  const batch_change *c = ud;
  const pln_graph *g = pln_rewrite_old(rw);
  (void)node;
  if (!c->changed || g->nodes[old].kind != PLN_LET)
    return PLN_OK;
  pln_ref var = pln_rewrite_image(rw, pln_operand(g, old, 0));
  pln_ref value = pln_rewrite_image(rw, pln_operand(g, old, 1));
  pln_type type = pln_rewrite_graph(rw)->nodes[value].type;
  if (pln_rewrite_graph(rw)->nodes[var].type == type ||
      type == g->nodes[pln_operand(g, old, 1)].type)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  b->graph->nodes[var].type = type;
  return PLN_OK;
}

pln_status pln_pass_change_batch(pln_pass_run *run) {
  const pln_graph *g = pln_run_function(run);
  batch_change c = {.engine = pln_run_engine(run),
                    .batch = pln_run_int(run, "batch")};
  const pln_mutator m = {.ud = &c,
                         .replace = retype_bound_variable,
                         .visit = change_param,
                         .retypes_results = true};
  pln_graph *out;
  if (!pln_run_option(run, "data", &c.data) ||
      g->nodes[g->root].kind != PLN_FUNCTION)
    return PLN_OK;
  PLN_TRY(pln_graph_rewrite(g, &m, &out));
  pln_run_set_function(run, out);
  return c.changed ? pln_run_count(run, "changed", c.changed) : PLN_OK;
}
