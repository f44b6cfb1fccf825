/* rule.c: what the rules of SimplifyExpr ask of types and lists, and how
 * they build. Called by simplify_*.c, and by the passes fold_*.c. */

#include "transform/simplify/rule.h"

/* -------------------------------------------------------------------- types */

/* Tensors of one known dtype and rank. */
static bool alike(const pln_engine *e, pln_type a, pln_type b) {
  return pln_type_kind_of(e, a) == PLN_TYPE_TENSOR &&
         pln_type_kind_of(e, b) == PLN_TYPE_TENSOR && pln_type_dtype(e, a) &&
         pln_type_dtype(e, a) == pln_type_dtype(e, b) &&
         pln_type_rank(e, a) >= 0 && pln_type_rank(e, a) == pln_type_rank(e, b);
}

bool pln_same_shape(const pln_engine *engine, pln_type a, pln_type b) {
  if (!alike(engine, a, b))
    return false;
  const pln_dim *x = pln_type_dims(engine, a), *y = pln_type_dims(engine, b);
  for (int32_t i = 0; i < pln_type_rank(engine, a); i++)
    if (x[i] != y[i] || x[i] == PLN_DIM_UNKNOWN)
      return false;
  return true;
}

/* Equal products leave one dim no choice, when no other is 0. */
bool pln_same_shape_by_count(const pln_engine *engine, pln_type a, pln_type b) {
  if (!alike(engine, a, b))
    return false;
  const pln_dim *x = pln_type_dims(engine, a), *y = pln_type_dims(engine, b);
  int open = 0;
  bool positive = true;
  for (int32_t i = 0; i < pln_type_rank(engine, a); i++) {
    if (x[i] != y[i] || x[i] == PLN_DIM_UNKNOWN)
      open++;
    else
      positive &= pln_dim_lower_bound(engine, x[i]) > 0;
  }
  return open == 0 || (open == 1 && positive);
}

/* ----------------------------------------------------------- nodes and lists
 */

static bool has_operands(const pln_graph *g, const pln_node *n) {
  int32_t least = pln_op_row(g->engine, n->data)->min_args;
  if ((int64_t)n->count < least)
    return false;
  for (int32_t i = 0; i < least; i++)
    if (g->nodes[g->operands[n->first + (uint32_t)i]].kind == PLN_ABSENT)
      return false;
  return true;
}

bool pln_call_is_valid(const pln_graph *graph, pln_ref call) {
  return graph->typed_from[call] != PLN_TYPED_REFUSED &&
         has_operands(graph, &graph->nodes[call]);
}

bool pln_is_call(const pln_graph *graph, pln_ref node, pln_op op) {
  const pln_node *n = &graph->nodes[node];
  return n->kind == PLN_CALL && n->data == op && n->results == 0 &&
         pln_op_is_onnx_form(graph, node) && pln_call_is_valid(graph, node);
}

bool pln_list_all(const pln_list *list, int64_t wanted) {
  if (!list->given || !pln_list_known(list))
    return false;
  for (uint32_t i = 0; i < list->count; i++)
    if (pln_list_at(list, i) != wanted)
      return false;
  return true;
}

bool pln_list_read(const pln_list *list, uint32_t max, int64_t *out) {
  if (!list->given || !pln_list_known(list) || list->count > max)
    return false;
  for (uint32_t i = 0; i < list->count; i++)
    out[i] = pln_list_at(list, i);
  return true;
}

void pln_site_look(pln_site *site, pln_ref node) {
  const pln_graph *g = pln_rewrite_graph(site->rw);
  const pln_node *n = &g->nodes[node];
  site->node = node;
  site->type = n->type;
  site->call = (pln_infer){.engine = site->engine,
                           .graph = g,
                           .args = g->operands + n->first,
                           .n_args = n->count,
                           .op = n->data,
                           .attrs = n->attrs,
                           .n_results = n->results};
}

pln_infer pln_site_operand(const pln_site *site, uint32_t i) {
  const pln_graph *g = site->call.graph;
  const pln_node *n = &g->nodes[pln_site_arg(site, i)];
  return (pln_infer){.engine = site->engine,
                     .graph = g,
                     .args = pln_operands(g, n),
                     .n_args = n->count,
                     .op = n->data,
                     .attrs = n->attrs,
                     .n_results = n->results};
}

pln_status pln_site_is_sole(pln_site *site, uint32_t i, bool *out) {
  const pln_graph *old = pln_rewrite_old(site->rw);
  const pln_node *n = &old->nodes[site->old];
  *out = false;
  if (!site->uses->old)
    PLN_TRY(pln_uses_begin(site->uses, old));
  if (n->kind != PLN_CALL || i >= n->count)
    return PLN_OK;
  pln_ref before = pln_operand(old, site->old, i);
  *out = pln_rewrite_image(site->rw, before) == pln_site_arg(site, i) &&
         site->uses->old[before] == 1 &&
         !(old->nodes[before].flags & PLN_NODE_KEEP);
  return PLN_OK;
}

/* ----------------------------------------------------------------- building */

pln_status pln_site_build(pln_site *site, pln_op op, pln_attrs attrs,
                          uint32_t n, const pln_ref *args, pln_ref *out) {
  size_t mark = pln_diag_count(site->engine);
  pln_builder *b = pln_rewrite_builder(site->rw);
  if (!b)
    return PLN_ERR_NOMEM;
  uint32_t n_results = op == site->call.op ? site->call.n_results : 0;
  pln_status status = pln_build_call(b, op, attrs, n_results, n, args, out);
  if (status != PLN_ERR_TYPE)
    return status;
  pln_diag_drop(site->engine, mark);
  *out = PLN_NONE;
  return PLN_OK;
}

pln_status pln_site_call(pln_site *site, pln_op op, pln_attrs attrs, uint32_t n,
                         const pln_ref *args, pln_ref *out) {
  PLN_TRY(pln_site_build(site, op, attrs, n, args, out));
  if (*out == PLN_NONE)
    return PLN_OK;
  return pln_keep_type(site->rw, *out, site->type);
}

pln_status pln_site_with_arg(pln_site *site, uint32_t i, pln_ref arg,
                             pln_ref *out) {
  pln_ref args[8];
  uint32_t n = site->call.n_args;
  if (n > PLN_COUNT(args))
    return PLN_OK;
  memcpy(args, site->call.args, n * sizeof *args);
  args[i] = arg;
  return pln_site_call(site, site->call.op, site->call.attrs, n, args, out);
}

static pln_status build_int64(pln_site *site, uint32_t rank, uint32_t n,
                              const int64_t *ints, pln_ref *out) {
  int64_t dims[1] = {n};
  pln_tensor *tensor;
  pln_builder *b = pln_rewrite_builder(site->rw);
  if (!b)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_tensor_from(site->engine, PLN_INT64, rank, dims, ints,
                          n * sizeof *ints, &tensor));
  pln_status status = pln_build_constant(b, tensor, out);
  pln_tensor_release(tensor);
  return status;
}

pln_status pln_site_ints(pln_site *site, uint32_t n, const int64_t *ints,
                         pln_ref *out) {
  return build_int64(site, 1, n, ints, out);
}

pln_status pln_site_int(pln_site *site, int64_t value, pln_ref *out) {
  return build_int64(site, 0, 1, &value, out);
}

pln_status pln_site_transpose(pln_site *site, pln_ref x, uint32_t n,
                              const int64_t *axes, pln_ref *out) {
  pln_attrs attrs;
  pln_attr perm = {.kind = PLN_ATTR_INTS, .count = n, .v.ints = axes};
  PLN_TRY(pln_symbol_intern(site->engine, pln_text("perm"), &perm.name));
  PLN_TRY(pln_attrs_make(site->engine, 1, &perm, &attrs));
  return pln_site_call(site, PLN_OP_TRANSPOSE, attrs, 1, &x, out);
}

static pln_status with_attribute(pln_site *site, pln_ref x, const char *attr,
                                 uint32_t n, const int64_t *ints,
                                 pln_ref *out) {
  pln_attrs attrs;
  pln_attr entry = {.kind = PLN_ATTR_INTS, .count = n, .v.ints = ints};
  PLN_TRY(pln_symbol_intern(site->engine, pln_text(attr), &entry.name));
  PLN_TRY(pln_attrs_with(site->engine, site->call.attrs, &entry, &attrs));
  return pln_site_call(site, site->call.op, attrs, 1, &x, out);
}

pln_status pln_site_with_list(pln_site *site, pln_ref x, uint32_t arg,
                              const char *attr, uint32_t n, const int64_t *ints,
                              pln_ref *out) {
  pln_ref args[2] = {x};
  if (arg != 1 || pln_arg_absent(&site->call, 1))
    return with_attribute(site, x, attr, n, ints, out);
  PLN_TRY(pln_site_ints(site, n, ints, &args[1]));
  return pln_site_call(site, site->call.op, site->call.attrs, 2, args, out);
}
