/* fold_weights.c: folds a per-channel scale and shift into the weights of a
 * product. Called by fold_batch_norm.c and fold_conv_bias.c;
 * mat_mul_add_to_gemm.c uses its sweep.
 *
 * Invariants: the product has no other user, so it dies; a weight with other
 * users is copied only within the budget; the new product replaces the folded
 * call and has the origin of the old product. */

#include "transform/fold/fold_weights.h"

/* Limits on sweeps and on the channels of a product. */
enum { MAX_ROUNDS = 32, MAX_CHANNELS = 1 << 24 };

/* ------------------------------------------------------------------ products
 */

static bool is_matrix(const pln_graph *g, pln_ref node) {
  return pln_type_rank(g->engine, g->nodes[node].type) == 2;
}

/* A matmul of two matrices counts as a product: it can become a gemm. */
static bool is_product(const pln_graph *g, pln_ref node) {
  pln_op op = g->nodes[node].data;
  if (op == PLN_OP_MAT_MUL)
    return is_matrix(g, pln_operand(g, node, 0)) &&
           is_matrix(g, pln_operand(g, node, 1));
  return op == PLN_OP_CONV || op == PLN_OP_CONV_TRANSPOSE || op == PLN_OP_GEMM;
}

bool pln_fold_is_only_use(const pln_fold_candidate *ctx, uint32_t i) {
  const pln_graph *g = ctx->at.call.graph;
  const pln_graph *old = pln_rewrite_old(ctx->at.rw);
  pln_ref node = pln_rule_arg(&ctx->at, i);
  const pln_node *n = &g->nodes[node];
  pln_ref before = pln_operand(old, ctx->at.old, i);
  return n->kind == PLN_CALL && n->data && n->results == 0 &&
         pln_call_is_valid(g, node) && !(n->flags & PLN_NODE_KEEP) &&
         ctx->uses->now[node] == 1 &&
         ctx->node_scope[before] == ctx->node_scope[ctx->at.old];
}

bool pln_fold_is_product(const pln_fold_candidate *ctx, uint32_t i) {
  const pln_graph *g = ctx->at.call.graph;
  pln_ref node = pln_rule_arg(&ctx->at, i);
  return pln_fold_is_only_use(ctx, i) && g->nodes[node].count >= 2 &&
         is_product(g, node);
}

pln_status pln_fold_replace(pln_fold_candidate *ctx, pln_ref product,
                            pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  bool allowed = false;
  if (*node != PLN_NONE)
    PLN_TRY(pln_rewrite_apply(ctx->at.rw, ctx->rule, &allowed));
  if (!allowed) {
    *node = PLN_NONE;
    return PLN_OK;
  }
  PLN_TRY(pln_use_counts_change(ctx->uses, g, ctx->at.node, -1));
  PLN_TRY(pln_use_counts_change(ctx->uses, g, product, -1));
  return pln_use_counts_change(ctx->uses, g, *node, 1);
}

static bool is_convolution(pln_op op) {
  return op == PLN_OP_CONV || op == PLN_OP_CONV_TRANSPOSE;
}

/* Reads the extents of the weight; false if one is unknown or the rank is too
 * low. */
static bool weight_dims(const pln_graph *g, pln_ref product, int32_t *rank,
                        const pln_dim **dims) {
  pln_type type = g->nodes[pln_operand(g, product, 1)].type;
  *rank = pln_type_rank(g->engine, type);
  *dims = *rank > 0 ? pln_type_dims(g->engine, type) : NULL;
  for (int32_t i = 0; i < *rank; i++)
    if (!PLN_DIM_IS_CONST((*dims)[i]) || (*dims)[i] < 1)
      return false;
  return *rank >= (is_convolution(g->nodes[product].data) ? 3 : 2);
}

static size_t product_of(const pln_dim *dims, int32_t begin, int32_t end) {
  size_t n = 1;
  for (int32_t i = begin; i < end; i++)
    if (__builtin_mul_overflow(n, (size_t)dims[i], &n))
      return 0;
  return n;
}

/* Layouts of the weight: (out, in / group, window) for conv, (in, out / group,
 * window) for conv_transpose, (in, out) for matmul and gemm, (out, in) for gemm
 * with transB. */
static bool find_channels(const pln_graph *g, pln_ref product,
                          pln_channels *out) {
  const pln_node *n = &g->nodes[product];
  const pln_engine *e = g->engine;
  int32_t rank;
  const pln_dim *dims;
  *out = (pln_channels){0};
  if (!weight_dims(g, product, &rank, &dims) ||
      !pln_op_is_onnx_form(g, product))
    return false;
  int64_t groups = pln_attrs_int(e, n->attrs, "group", 1);
  bool second =
      n->data == PLN_OP_CONV_TRANSPOSE || n->data == PLN_OP_MAT_MUL ||
      (n->data == PLN_OP_GEMM && !pln_attrs_int(e, n->attrs, "transB", 0));
  out->outer = second ? (size_t)dims[0] : 1;
  out->channels = (size_t)dims[second ? 1 : 0];
  out->inner = product_of(dims, second ? 2 : 1, rank);
  out->group = out->outer;
  if (n->data != PLN_OP_CONV_TRANSPOSE)
    return n->data == PLN_OP_CONV || rank == 2;
  if (groups < 1 || dims[0] % groups)
    return false;
  out->group = (size_t)(dims[0] / groups);
  return true;
}

size_t pln_fold_channels(const pln_fold_candidate *ctx, pln_ref product) {
  pln_channels channels;
  if (!find_channels(pln_rewrite_graph(ctx->at.rw), product, &channels))
    return 0;
  size_t n = pln_channels_count(&channels);
  return n <= MAX_CHANNELS ? n : 0;
}

/* --------------------------------------------------------------------- bias
 */

static bool has_bias(const pln_graph *g, pln_ref product) {
  return g->nodes[product].count > 2 &&
         g->nodes[pln_operand(g, product, 2)].kind != PLN_ABSENT;
}

/* Returns true for one number per channel or one for all: a vector, or for gemm
 * also a row. */
static bool is_by_channel(const pln_weight *bias, bool gemm, size_t n) {
  if (!gemm)
    return bias->rank == 1 && bias->count == n;
  if (bias->count == 1)
    return bias->rank <= 2;
  return bias->count == n && bias->rank >= 1 && bias->rank <= 2 &&
         (size_t)bias->dims[bias->rank - 1] == n;
}

/* numbers = bias * factor + addend; false if the bias is not constant. */
static bool fold_bias(const pln_graph *g, pln_ref product, size_t n,
                      const double *factors, const double *addends,
                      double *numbers) {
  bool gemm = !is_convolution(g->nodes[product].data);
  double beta =
      gemm ? pln_attrs_float(g->engine, g->nodes[product].attrs, "beta", 1) : 1;
  pln_weight bias;
  memcpy(numbers, addends, n * sizeof *numbers);
  if (!has_bias(g, product))
    return true;
  if (!pln_weight_read(g, pln_operand(g, product, 2), &bias) ||
      !is_by_channel(&bias, gemm, n))
    return false;
  for (size_t i = 0; i < n; i++)
    numbers[i] += beta * pln_weight_at(&bias, bias.count == 1 ? 0 : i) *
                  (factors ? factors[i] : 1);
  return true;
}

/* ------------------------------------------------------------------- budget
 */

/* Bytes that die with the call and the product, without the weight. */
static size_t freed_rest(const pln_fold_candidate *ctx, pln_ref product,
                         size_t weight) {
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  size_t sum = pln_budget_freed(g, ctx->at.node, ctx->uses->now) +
               pln_budget_freed(g, product, ctx->uses->now);
  return sum > weight ? sum - weight : 0;
}

/* Bytes of the weight if only the product uses it, else 0. */
static size_t freed_weight(const pln_fold_candidate *ctx, const pln_weight *w) {
  if (w->filled || ctx->uses->now[w->node] != 1)
    return 0;
  return w->splat ? pln_dtype_bits(w->dtype) / 8 : w->bytes;
}

static bool is_allowed(pln_fold_candidate *ctx, pln_ref product,
                       const pln_weight *weight, size_t n,
                       const double *factors) {
  size_t freed = factors ? freed_weight(ctx, weight) : 0;
  size_t bias = n * (pln_dtype_bits(weight->dtype) / 8);
  size_t bytes = factors ? pln_weight_scaled_bytes(weight, n, factors) : 0;
  if (bytes > PLN_BUDGET_MAX) {
    pln_budget_refuse(ctx->budget, PLN_REFUSED_OVER_BUDGET);
    return false;
  }
  if (factors && !pln_budget_allows(ctx->budget, bytes, freed))
    return false;
  return pln_budget_allows(ctx->budget, bias, freed_rest(ctx, product, freed));
}

/* ------------------------------------------------------------------ folding
 */

/* The new operator and its attributes. gemm gets no beta, because the bias is
 * added as it is. A matmul becomes a gemm without attributes. */
static pln_status find_form(const pln_graph *g, pln_ref product, pln_op *op,
                            pln_attrs *attrs) {
  const pln_node *n = &g->nodes[product];
  *op = n->data == PLN_OP_MAT_MUL ? PLN_OP_GEMM : n->data;
  *attrs = n->data == PLN_OP_MAT_MUL ? 0 : n->attrs;
  if (*op != PLN_OP_GEMM)
    return PLN_OK;
  return pln_attrs_without(g->engine, *attrs, "beta", attrs);
}

static pln_status build_product(pln_fold_candidate *ctx, pln_ref product,
                                pln_ref weight, pln_ref bias, pln_ref *out) {
  pln_builder *b = pln_rewrite_builder(ctx->at.rw);
  if (!b)
    return PLN_ERR_NOMEM;
  const pln_graph *g = b->graph;
  pln_ref args[3] = {pln_operand(g, product, 0), weight, bias};
  pln_op op;
  pln_attrs attrs;
  PLN_TRY(find_form(g, product, &op, &attrs));
  pln_builder_origin(b, g->origin[product]);
  PLN_TRY(pln_rule_replace_call(&ctx->at, op, attrs, 3, args, out));
  return pln_fold_replace(ctx, product, out);
}

static pln_status fold_numbers(pln_fold_candidate *ctx, pln_ref product,
                               const pln_weight *weight,
                               const pln_channels *channels,
                               const double *factors, const double *numbers,
                               pln_ref like, pln_ref *out) {
  pln_ref scaled = weight->node, bias;
  size_t n = pln_channels_count(channels);
  if (!is_allowed(ctx, product, weight, n, factors))
    return PLN_OK;
  PLN_TRY(
      pln_weight_vector(ctx->at.rw, weight->dtype, n, numbers, like, &bias));
  if (factors && bias != PLN_NONE)
    PLN_TRY(pln_weight_scale(ctx->at.rw, weight, channels, factors, &scaled));
  if (bias == PLN_NONE || scaled == PLN_NONE)
    return PLN_OK;
  return build_product(ctx, product, scaled, bias, out);
}

/* Reads the weight. Without factors only its dtype is needed. */
static bool read_weight(const pln_graph *g, pln_ref product,
                        const double *factors, pln_weight *out) {
  pln_ref node = pln_operand(g, product, 1);
  if (factors)
    return pln_weight_read(g, node, out);
  *out = (pln_weight){.node = node,
                      .dtype = pln_type_dtype(g->engine, g->nodes[node].type)};
  return pln_dtype_is_float((pln_dtype)out->dtype);
}

pln_status pln_fold_affine(pln_fold_candidate *ctx, pln_ref product,
                           const double *factors, const double *addends,
                           pln_ref like, pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(ctx->at.rw);
  pln_engine *e = ctx->at.engine;
  pln_channels channels;
  pln_weight weight;
  if (!find_channels(g, product, &channels) ||
      !read_weight(g, product, factors, &weight) ||
      pln_type_dtype(e, ctx->at.type) != weight.dtype ||
      (factors && !ctx->halves && pln_dtype_bits(weight.dtype) == 16))
    return PLN_OK;
  size_t n = pln_channels_count(&channels);
  double *numbers = pln_mem_new(e, n * sizeof *numbers);
  if (!numbers)
    return pln_nomem(e);
  pln_status status = PLN_OK;
  if (fold_bias(g, product, n, factors, addends, numbers))
    status = fold_numbers(ctx, product, &weight, &channels, factors, numbers,
                          like, out);
  pln_mem_free(e, numbers, n * sizeof *numbers);
  return status;
}

/* -------------------------------------------------------------------- sweep
 */

typedef struct fold_weights_rewrite {
  pln_engine *engine;
  uint32_t n_rows;
  const pln_fold_rule_row *rows;
  pln_budget budget;
  pln_use_counts uses;
  pln_scaled_constants scaled;
  pln_scope *node_scope;
  int64_t folded;
  bool halves;
} fold_weights_rewrite;

static const pln_fold_rule_row *product_row_of(const fold_weights_rewrite *s,
                                               const pln_graph *g,
                                               pln_ref node) {
  const pln_node *n = &g->nodes[node];
  for (uint32_t i = 0; i < s->n_rows; i++)
    if (pln_is_call(g, node, s->rows[i].op))
      return (int64_t)n->count >= pln_op_row(s->engine, n->data)->min_args
                 ? &s->rows[i]
                 : NULL;
  return NULL;
}

static pln_status fold_call(fold_weights_rewrite *s, pln_rewrite *rw,
                            const pln_fold_rule_row *row, pln_ref old,
                            pln_ref *node) {
  pln_fold_candidate ctx = {.budget = &s->budget,
                            .uses = &s->uses,
                            .scaled = &s->scaled,
                            .node_scope = s->node_scope,
                            .halves = s->halves,
                            .rule = row->name};
  pln_ref found = PLN_NONE;
  double began = pln_rule_clock(s->engine);
  ctx.at = (pln_rewrite_context){.engine = s->engine, .rw = rw, .old = old};
  pln_rule_set_call(&ctx.at, *node);
  PLN_TRY(row->rule(&ctx, &found));
  if (pln_rules_watched(s->engine))
    PLN_TRY(pln_rule_tried(s->engine, row->name, 1, began));
  if (found == PLN_NONE)
    return PLN_OK;
  *node = found;
  s->folded++;
  return PLN_OK;
}

static pln_status fold_product_node(void *ud, pln_rewrite *rw, pln_ref old,
                                    pln_ref *node) {
  fold_weights_rewrite *s = ud;
  const pln_fold_rule_row *row =
      product_row_of(s, pln_rewrite_graph(rw), *node);
  if (row)
    PLN_TRY(fold_call(s, rw, row, old, node));
  return pln_use_counts_replace(&s->uses, old, *node);
}

static pln_status begin_scaled_constants(pln_engine *engine,
                                         pln_scaled_constants *set) {
  *set = (pln_scaled_constants){.engine = engine};
  return pln_idmap_new(engine, &set->row_of);
}

static void end_scaled_constants(pln_scaled_constants *set) {
  pln_idmap_free(set->row_of);
  if (set->rows)
    pln_mem_free(set->engine, set->rows, set->cap * sizeof *set->rows);
  *set = (pln_scaled_constants){0};
}

static uint64_t hash_of_scaled(const pln_scaled_constant *row) {
  uint64_t factor;
  memcpy(&factor, &row->factor, sizeof factor);
  return pln_hash_mix(pln_hash_mix(pln_hash_mix(0, row->constant), row->scope),
                      factor);
}

pln_ref pln_scaled_constants_find(const pln_scaled_constants *set,
                                  const pln_scaled_constant *wanted) {
  uint32_t at = pln_idmap_get(set->row_of, hash_of_scaled(wanted));
  const pln_scaled_constant *row = at ? &set->rows[at - 1] : NULL;
  return row && row->constant == wanted->constant &&
                 row->scope == wanted->scope && row->factor == wanted->factor
             ? row->scaled
             : PLN_NONE;
}

pln_status pln_scaled_constants_add(pln_scaled_constants *set,
                                    const pln_scaled_constant *row) {
  PLN_TRY(pln_mem_grow(set->engine, (void **)&set->rows, &set->cap,
                       (size_t)set->n + 1, sizeof *set->rows));
  set->rows[set->n] = *row;
  return pln_idmap_set(set->row_of, hash_of_scaled(row), ++set->n);
}

static pln_status sweep_once(fold_weights_rewrite *s, const pln_graph *g,
                             pln_graph **out) {
  pln_mutator m = {.ud = s, .visit = fold_product_node, .keeps_types = true};
  size_t size = g->n_nodes * sizeof *s->node_scope;
  memset(s->budget.refused, 0, sizeof s->budget.refused);
  if (!(s->node_scope = pln_mem_new(s->engine, size)))
    return pln_nomem(s->engine);
  pln_graph_node_scopes(g, s->node_scope);
  pln_status status = pln_use_counts_begin(&s->uses, g);
  if (status == PLN_OK)
    status = begin_scaled_constants(s->engine, &s->scaled);
  if (status == PLN_OK)
    status = pln_graph_rewrite(g, &m, out);
  end_scaled_constants(&s->scaled);
  pln_use_counts_end(&s->uses);
  pln_mem_free(s->engine, s->node_scope, size);
  return status;
}

static bool has_work(const fold_weights_rewrite *s, const pln_graph *g) {
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (product_row_of(s, g, i))
      return true;
  return false;
}

/* Repeats the sweep: folding one call may let a weight die with another call
 * that was refused. */
static pln_status sweep_all(fold_weights_rewrite *s, pln_graph **graph) {
  for (int round = 0; round < MAX_ROUNDS; round++) {
    pln_graph *next;
    PLN_TRY(sweep_once(s, *graph, &next));
    bool changed = next != *graph;
    pln_graph_release(*graph);
    *graph = next;
    if (!changed || !s->budget.refused[PLN_REFUSED_OVER_BUDGET])
      return PLN_OK;
  }
  return PLN_OK;
}

static pln_status report_weight_folds(const fold_weights_rewrite *s,
                                      pln_pass_run *run, const char *key) {
  uint32_t refused = s->budget.refused[PLN_REFUSED_OVER_BUDGET];
  if (s->folded)
    PLN_TRY(pln_run_count(run, key, s->folded));
  return refused ? pln_run_count(run, "refused: over_budget", refused) : PLN_OK;
}

pln_status pln_fold_weights(pln_pass_run *run, uint32_t n_rows,
                            const pln_fold_rule_row *rows, const char *key,
                            pln_fold_step then) {
  fold_weights_rewrite s = {
      .engine = pln_run_engine(run), .n_rows = n_rows, .rows = rows};
  s.budget.all = pln_slice_is(pln_run_string(run, "fold"), "all");
  s.halves = pln_run_int(run, "halves") != 0;
  for (uint32_t i = 0; i < n_rows; i++)
    PLN_TRY(pln_rule_tried(s.engine, rows[i].name, 0, 0));
  if (!has_work(&s, pln_run_function(run)))
    return PLN_OK;
  pln_graph *graph = pln_graph_retain(pln_run_function(run));
  pln_status status = sweep_all(&s, &graph);
  if (status == PLN_OK && then)
    status = then(s.engine, &s.budget, s.halves, &graph, &s.folded);
  if (status == PLN_OK)
    status = report_weight_folds(&s, run, key);
  if (status == PLN_OK)
    pln_run_set_function(run, graph);
  else
    pln_graph_release(graph);
  return status;
}
