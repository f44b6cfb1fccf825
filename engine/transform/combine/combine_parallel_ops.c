/* combine_parallel_ops.c: CombineParallelOps: does parallel computations as
 * one, and splits the result.
 *
 * Run by the executor, once per function. Requires a verified graph. Products
 * (nn.conv, nn.gemm, nn.matmul, matmul_integer) of one tensor with constant
 * weights become one product with the concatenated weights, and so do the same
 * operators behind them; likewise the same operators on parts of one tensor.
 * Applied only if the number of calls decreases; constants are concatenated
 * within the budget.
 *
 *     transpose(add(nn.matmul(%x, W), b)), transpose(add(nn.matmul(%x, V), c))
 *       =>   split(transpose(add(nn.matmul(%x, [W V]), [b c])))
 *
 * A product of more columns may be summed in another order, so results differ
 * by rounding. What TVM's passes do for Relay's operators is in
 * parallel_branches.c. */

#include "transform/combine/region.h"

enum { MAX_SWEEPS = 32 };

/* ------------------------------------------------------------------- tables
 */

static pln_status begin_tables(pln_combine *c) {
  size_t n = c->graph->n_nodes;
  c->regions = NULL;
  c->n_tuples = 0;
  c->tuple_of = pln_mem_zeroed(c->engine, (n + 1) * sizeof *c->tuple_of);
  c->region_of = pln_mem_zeroed(c->engine, (n + 1) * sizeof *c->region_of);
  PLN_TRY(pln_users_begin(&c->u, c->graph));
  return c->tuple_of && c->region_of ? PLN_OK : pln_nomem(c->engine);
}

static void end_tables(pln_combine *c) {
  pln_engine *e = c->engine;
  size_t n = c->graph->n_nodes;
  pln_users_end(&c->u);
  pln_mem_free(e, c->tuple_of, (n + 1) * sizeof *c->tuple_of);
  pln_mem_free(e, c->region_of, (n + 1) * sizeof *c->region_of);
  while (c->regions) {
    pln_region *next = c->regions->next;
    pln_mem_free(e, c->regions, sizeof *next);
    c->regions = next;
  }
}

/* ----------------------------------------------------------------- products
 */

static bool is_product(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  const pln_engine *e = g->engine;
  if (n->kind != PLN_CALL || n->results || n->count < 2 ||
      (n->flags & PLN_NODE_KEEP) || !n->data)
    return false;
  if (n->data != PLN_OP_MAT_MUL && n->data != PLN_OP_GEMM &&
      n->data != PLN_OP_CONV && n->data != PLN_OP_MAT_MUL_INTEGER)
    return false;
  const pln_node *weight = &g->nodes[pln_operand(g, node, 1)];
  return weight->kind == PLN_CONSTANT && pln_op_is_onnx_form(g, node) &&
         pln_call_is_valid(g, node) && pln_type_rank(e, n->type) >= 2 &&
         (n->data == PLN_OP_CONV ? pln_attrs_int(e, n->attrs, "group", 1) == 1
                                 : pln_type_rank(e, weight->type) == 2);
}

/* The extents of operand `i` agree, except those of axis `but`. */
static bool have_equal_extents(const pln_graph *g, pln_ref a, pln_ref b,
                               uint32_t i, int32_t but) {
  pln_type x = g->nodes[pln_operand(g, a, i)].type;
  pln_type y = g->nodes[pln_operand(g, b, i)].type;
  int32_t rank = pln_type_rank(g->engine, x);
  if (rank < 0 || rank != pln_type_rank(g->engine, y) ||
      pln_type_dtype(g->engine, x) != pln_type_dtype(g->engine, y))
    return false;
  for (int32_t k = 0; k < rank; k++)
    if (k != but &&
        pln_type_dims(g->engine, x)[k] != pln_type_dims(g->engine, y)[k])
      return false;
  return true;
}

/* The bias is a constant with a number per channel on its last axis. */
static bool is_bias(const pln_graph *g, pln_ref product) {
  const pln_node *n = &g->nodes[product];
  const pln_node *bias = &g->nodes[pln_operand(g, product, 2)];
  int32_t rank = pln_type_rank(g->engine, bias->type);
  int32_t axis =
      n->data == PLN_OP_CONV ? 1 : pln_type_rank(g->engine, n->type) - 1;
  if (bias->kind != PLN_CONSTANT || rank < 1 || rank > 2)
    return false;
  const pln_dim *dims = pln_type_dims(g->engine, bias->type);
  return dims[rank - 1] == pln_type_dims(g->engine, n->type)[axis] &&
         (rank == 1 || dims[0] == 1);
}

static bool has_bias(const pln_graph *g, pln_ref product) {
  return g->nodes[product].count > 2 &&
         g->nodes[product].data != PLN_OP_MAT_MUL_INTEGER &&
         g->nodes[pln_operand(g, product, 2)].kind != PLN_ABSENT;
}

/* Returns true if all columns of both quantised products have the same zero
 * points. */
static bool have_equal_zero_points(const pln_graph *g, pln_ref a, pln_ref b) {
  for (uint32_t i = 2; i < g->nodes[a].count; i++) {
    const pln_node *n = &g->nodes[pln_operand(g, a, i)];
    const pln_node *m = &g->nodes[pln_operand(g, b, i)];
    bool omitted = n->kind == PLN_ABSENT && m->kind == PLN_ABSENT;
    if (!omitted && pln_type_rank(g->engine, n->type) != 0)
      return false;
    if (n == m || omitted)
      continue;
    if (n->kind != PLN_CONSTANT || m->kind != PLN_CONSTANT ||
        !pln_tensor_equal(g->tensors[n->data], g->tensors[m->data]))
      return false;
  }
  return true;
}

/* Returns true if the weights of both products can be concatenated. */
static bool is_parallel(const pln_combine *c, pln_ref node, pln_ref like) {
  const pln_graph *g = c->graph;
  const pln_node *n = &g->nodes[node], *m = &g->nodes[like];
  bool quantised = n->data == PLN_OP_MAT_MUL_INTEGER;
  int32_t channels = n->data == PLN_OP_MAT_MUL || quantised ||
                             (n->data == PLN_OP_GEMM &&
                              !pln_attrs_int(g->engine, n->attrs, "transB", 0))
                         ? 1
                         : 0;
  if (n->data != m->data || n->attrs != m->attrs || n->count != m->count ||
      c->u.node_scope[node] != c->u.node_scope[like] || c->tuple_of[node] ||
      pln_operand(g, node, 0) != pln_operand(g, like, 0) ||
      !have_equal_extents(g, node, like, 1, channels) ||
      (quantised && !have_equal_zero_points(g, node, like)) ||
      has_bias(g, node) != has_bias(g, like))
    return false;
  return !has_bias(g, node) ||
         (is_bias(g, node) && is_bias(g, like) &&
          pln_type_rank(g->engine, g->nodes[pln_operand(g, node, 2)].type) ==
              pln_type_rank(g->engine, g->nodes[pln_operand(g, like, 2)].type));
}

/* ------------------------------------------------------------------ regions
 */

static void begin_region(const pln_combine *c, pln_region *r) {
  *r = (pln_region){.base = c->n_tuples, .split = PLN_NONE, .parts = PLN_NONE};
}

static void add_member(pln_region *r, pln_ref node) {
  pln_combine_tuple *t = &r->tuples[0];
  t->nodes[r->k++] = node;
  if (node < t->nodes[t->lead])
    t->lead = r->k - 1;
}

/* Lists, such as the shapes of reshapes, are not counted. */
static bool is_list(const pln_graph *g, pln_ref constant) {
  const pln_node *n = &g->nodes[constant];
  return g->tensors[n->data]->bytes <= 1024 &&
         pln_dtype_is_integer(pln_type_dtype(g->engine, n->type));
}

/* Bytes of constants that are concatenated, and of those among them that
 * nothing else uses. */
static void count_weights(const pln_combine *c, const pln_region *r,
                          size_t *bytes, size_t *freed) {
  const pln_graph *g = c->graph;
  for (uint32_t i = 0; i < r->n; i++)
    for (uint32_t j = 0; j < r->k; j++) {
      pln_ref node = r->tuples[i].nodes[j];
      for (uint32_t a = i == 0 && r->split != PLN_NONE ? g->nodes[node].count
                                                       : 0;
           a < g->nodes[node].count; a++) {
        pln_ref arg = pln_operand(g, node, a);
        if (g->nodes[arg].kind != PLN_CONSTANT || is_list(g, arg))
          continue;
        size_t size = g->tensors[g->nodes[arg].data]->bytes;
        *bytes += size;
        *freed += c->u.first[arg + 1] - c->u.first[arg] == 1 ? size : 0;
      }
    }
}

/* Larger constants are not read: doing several products as one saves little
 * time where they are large. */
static bool is_affordable(const pln_combine *c, const pln_region *r) {
  size_t bytes = 0, freed = 0;
  pln_budget budget = {0};
  count_weights(c, r, &bytes, &freed);
  return bytes <= PLN_BUDGET_MAX && pln_budget_allows(&budget, bytes, freed);
}

static pln_status apply_region(pln_combine *c, const pln_region *found) {
  pln_region *r = pln_mem_new(c->engine, sizeof *r);
  if (!r)
    return pln_nomem(c->engine);
  *r = *found;
  r->next = c->regions;
  c->regions = r;
  c->n_tuples += r->n;
  for (uint32_t i = 0; i < r->n; i++)
    for (uint32_t j = 0; j < r->k; j++)
      c->region_of[r->tuples[i].nodes[j]] = r;
  if (r->split != PLN_NONE)
    c->region_of[r->split] = r;
  return PLN_OK;
}

static void forget_region(pln_combine *c, const pln_region *r) {
  for (uint32_t i = 0; i < r->n; i++)
    for (uint32_t j = 0; j < r->k; j++)
      c->tuple_of[r->tuples[i].nodes[j]] = 0;
}

/* Grows the region from its first tuple, and keeps it if it pays. */
static pln_status try_region(pln_combine *c, pln_region *r, bool *applied) {
  r->n = 1;
  for (uint32_t j = 0; j < r->k; j++)
    c->tuple_of[r->tuples[0].nodes[j]] = r->base + 1;
  pln_region_grow(c, r);
  *applied = pln_region_gain(c, r) > 0 && is_affordable(c, r);
  if (*applied)
    return apply_region(c, r);
  forget_region(c, r);
  return PLN_OK;
}

/* -------------------------------------------------------------------- seeds
 */

static bool seed_axis(const pln_combine *c, pln_region *r, uint32_t axis) {
  r->tuples[0].axis = axis;
  return pln_region_read_sizes(c, r, &r->tuples[0]);
}

/* Tries the products of the same operand that are parallel to `like`, which is
 * user number `at` of it. */
static pln_status try_products(pln_combine *c, pln_region *r, pln_ref x,
                               uint32_t at) {
  const pln_graph *g = c->graph;
  pln_ref like = c->u.users[at];
  bool applied;
  begin_region(c, r);
  for (uint32_t i = at; i < c->u.first[x + 1] && r->k < PLN_MAX_MEMBERS; i++)
    if (is_product(g, c->u.users[i]) && is_parallel(c, c->u.users[i], like) &&
        (i == at || c->u.users[i] != c->u.users[i - 1]))
      add_member(r, c->u.users[i]);
  int32_t rank = pln_type_rank(g->engine, g->nodes[like].type);
  bool conv = g->nodes[like].data == PLN_OP_CONV;
  if (r->k < 2 || !seed_axis(c, r, conv ? 1 : (uint32_t)rank - 1))
    return PLN_OK;
  return try_region(c, r, &applied);
}

static pln_status try_products_of(pln_combine *c, pln_region *r, pln_ref x) {
  uint32_t begin = c->u.first[x], end = c->u.first[x + 1];
  if (end - begin < 2 || end - begin > PLN_MAX_USERS)
    return PLN_OK;
  for (uint32_t i = begin; i < end; i++)
    if (!c->tuple_of[c->u.users[i]] && is_product(c->graph, c->u.users[i]) &&
        pln_operand(c->graph, c->u.users[i], 0) == x)
      PLN_TRY(try_products(c, r, x, i));
  return PLN_OK;
}

/* Finds the only node for each field of a Split; false if something else uses
 * it. */
static bool find_fields(const pln_combine *c, pln_ref split, pln_ref *fields) {
  const pln_graph *g = c->graph;
  for (uint32_t i = 0; i < g->nodes[split].results; i++)
    fields[i] = PLN_NONE;
  for (uint32_t i = c->u.first[split]; i < c->u.first[split + 1]; i++) {
    const pln_node *n = &g->nodes[c->u.users[i]];
    if (n->kind != PLN_TUPLE_GET_ITEM || n->data >= g->nodes[split].results ||
        fields[n->data] != PLN_NONE || c->tuple_of[c->u.users[i]] ||
        c->u.node_scope[c->u.users[i]] != c->u.node_scope[split])
      return false;
    fields[n->data] = c->u.users[i];
  }
  return !c->u.is_result[split];
}

/* Tries `k` fields from number `first` on. */
static pln_status try_fields(pln_combine *c, pln_region *r, pln_ref split,
                             const pln_ref *fields, uint32_t first, uint32_t k,
                             bool *applied) {
  const pln_node *n = &c->graph->nodes[split];
  int64_t axis = pln_attrs_int(c->engine, n->attrs, "axis", 0);
  begin_region(c, r);
  r->split = split;
  r->first = first;
  r->is_whole = k == n->results;
  *applied = false;
  for (uint32_t j = 0; j < k; j++) {
    if (fields[first + j] == PLN_NONE)
      return PLN_OK;
    add_member(r, fields[first + j]);
  }
  int32_t rank = pln_type_rank(c->engine, c->graph->nodes[fields[first]].type);
  axis += axis < 0 ? rank : 0;
  if (rank < 1 || axis < 0 || axis >= rank || !seed_axis(c, r, (uint32_t)axis))
    return PLN_OK;
  return try_region(c, r, applied);
}

static bool has_known_parts(const pln_combine *c, pln_ref split) {
  const pln_node *n = &c->graph->nodes[split];
  int64_t axis = pln_attrs_int(c->engine, n->attrs, "axis", 0);
  for (uint32_t i = 0; i < n->results; i++) {
    pln_type part = pln_type_part_at(c->engine, n->type, i);
    int64_t rank = pln_type_rank(c->engine, part);
    int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank ||
        !PLN_DIM_IS_CONST(pln_type_dims(c->engine, part)[at]))
      return false;
  }
  return true;
}

/* Tries all fields, then fewer that stand beside each other. */
static pln_status try_split(pln_combine *c, pln_region *r, pln_ref split) {
  pln_ref fields[PLN_MAX_MEMBERS];
  uint32_t n = c->graph->nodes[split].results;
  bool applied = false;
  if (n < 2 || n > PLN_MAX_MEMBERS || !pln_op_is_onnx_form(c->graph, split) ||
      !pln_call_is_valid(c->graph, split) || !has_known_parts(c, split) ||
      !find_fields(c, split, fields))
    return PLN_OK;
  for (uint32_t k = n; k >= 2 && !applied; k--)
    for (uint32_t i = 0; i + k <= n && !applied; i++)
      PLN_TRY(try_fields(c, r, split, fields, i, k, &applied));
  return PLN_OK;
}

static pln_status find_regions(pln_combine *c, pln_region *r) {
  const pln_graph *g = c->graph;
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    const pln_node *n = &g->nodes[i];
    if (n->kind == PLN_CALL && n->data == PLN_OP_SPLIT && n->results)
      PLN_TRY(try_split(c, r, i));
    else if (n->kind != PLN_CONSTANT)
      PLN_TRY(try_products_of(c, r, i));
  }
  return PLN_OK;
}

/* -------------------------------------------------------------------- sweep
 */

static pln_status combine_once(pln_combine *c, pln_region *r, pln_graph **out) {
  pln_mutator m = {.ud = c, .visit = pln_region_visit, .keeps_types = true};
  pln_status status = begin_tables(c);
  if (status == PLN_OK)
    status = find_regions(c, r);
  if (status == PLN_OK && c->regions)
    status = pln_graph_rewrite(c->graph, &m, out);
  else if (status == PLN_OK)
    *out = pln_graph_retain(c->graph);
  end_tables(c);
  return status;
}

/* What follows a region may form others, so sweeps are repeated. */
static pln_status combine_all(pln_combine *c, pln_region *r,
                              pln_graph **graph) {
  for (int i = 0; i < MAX_SWEEPS; i++) {
    pln_graph *next;
    c->graph = *graph;
    PLN_TRY(combine_once(c, r, &next));
    bool changed = next != *graph;
    pln_graph_release(*graph);
    *graph = next;
    if (!changed)
      break;
  }
  return PLN_OK;
}

pln_status pln_pass_combine_parallel_ops(pln_pass_run *run) {
  pln_combine c = {.engine = pln_run_engine(run)};
  pln_region *r = pln_mem_new(c.engine, sizeof *r);
  if (!r)
    return pln_nomem(c.engine);
  pln_graph *graph = pln_graph_retain(pln_run_function(run));
  pln_status status = combine_all(&c, r, &graph);
  pln_mem_free(c.engine, r, sizeof *r);
  if (status == PLN_OK && c.combined)
    status = pln_run_count(run, "combined", c.combined);
  if (status == PLN_OK)
    pln_run_set_function(run, graph);
  else
    pln_graph_release(graph);
  return status;
}
