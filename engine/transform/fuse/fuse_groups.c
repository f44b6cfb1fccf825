/* fuse_groups.c: partitions the nodes of a function into fusion groups. Called
 * by FuseOps.
 *
 * A node is merged with its immediate post-dominator and all nodes between them
 * if the patterns on the paths allow it. Three phases: what follows
 * convolutions and products; then injective nodes; then injective nodes into
 * fused tuples. Invariants: only the last node of a group has uses outside; a
 * walk visits at most max_depth nodes, so time is linear.
 *
 * Semantics: TVM's FuseOps, for each scope on its own. */

#include "transform/fuse/fuse_groups.h"

/* ------------------------------------------------------------------- tables */

static pln_status alloc_group_tables(pln_fuse_groups *f) {
  pln_engine *e = f->engine;
  size_t n = f->graph->n_nodes + (size_t)1;
  f->node_scope = pln_mem_new(e, n * sizeof *f->node_scope);
  f->closed = pln_mem_zeroed(e, f->graph->n_scopes);
  f->pattern = pln_mem_new(e, n);
  f->anchored = pln_mem_zeroed(e, n);
  f->group = pln_mem_new(e, n * sizeof *f->group);
  f->size = pln_mem_new(e, n * sizeof *f->size);
  f->first = pln_mem_zeroed(e, (n + 1) * sizeof *f->first);
  f->users =
      pln_mem_new(e, (f->graph->n_operands + (size_t)1) * sizeof *f->users);
  f->stamp = pln_mem_zeroed(e, n * sizeof *f->stamp);
  f->stack = pln_mem_new(e, n * sizeof *f->stack);
  if (!f->node_scope || !f->closed || !f->pattern || !f->anchored ||
      !f->group || !f->size || !f->first || !f->users || !f->stamp || !f->stack)
    return pln_nomem(e);
  return pln_dominators_begin(&f->tree, e, f->graph->n_nodes);
}

void pln_fuse_groups_free(pln_fuse_groups *f) {
  pln_engine *e = f->engine;
  size_t n = f->graph->n_nodes + (size_t)1;
  pln_mem_free(e, f->node_scope, n * sizeof *f->node_scope);
  pln_mem_free(e, f->closed, f->graph->n_scopes);
  pln_mem_free(e, f->pattern, n);
  pln_mem_free(e, f->anchored, n);
  pln_mem_free(e, f->group, n * sizeof *f->group);
  pln_mem_free(e, f->size, n * sizeof *f->size);
  pln_mem_free(e, f->first, (n + 1) * sizeof *f->first);
  pln_mem_free(e, f->users,
               (f->graph->n_operands + (size_t)1) * sizeof *f->users);
  pln_mem_free(e, f->stamp, n * sizeof *f->stamp);
  pln_mem_free(e, f->stack, n * sizeof *f->stack);
  pln_dominators_end(&f->tree);
  pln_fuse_arguments_end(f);
}

/* Nothing is fused inside functions that FuseOps made, also those without calls
 * (Primitive=0), or that belong to an external compiler. */
static void close_scopes(pln_fuse_groups *f) {
  const pln_graph *g = f->graph;
  for (pln_scope s = 1; s < g->n_scopes; s++) {
    const pln_node *owner = &g->nodes[g->scopes[s].owner];
    f->closed[s] = f->closed[g->scopes[s].parent];
    if (owner->kind == PLN_FUNCTION && owner->attrs)
      f->closed[s] |= pln_attrs_find(g->engine, owner->attrs, "Primitive") ||
                      pln_attrs_find(g->engine, owner->attrs, "Compiler");
  }
}

/* ----------------------------------------------------------------- patterns */

static bool is_tensor(const pln_fuse_groups *f, pln_type type) {
  return pln_type_get_kind(f->engine, type) == PLN_TYPE_TENSOR;
}

static bool is_tuple_of_tensors(const pln_fuse_groups *f, pln_type type) {
  uint32_t n = pln_type_n_parts(f->engine, type);
  if (pln_type_get_kind(f->engine, type) != PLN_TYPE_TUPLE)
    return false;
  for (uint32_t i = 0; i < n; i++)
    if (!is_tensor(f, pln_type_part_at(f->engine, type, i)))
      return false;
  return true;
}

/* Scalars that a kernel writes as literals. */
static bool is_simple(const pln_tensor *t) {
  return t->rank == 0 && (t->dtype == PLN_INT32 || t->dtype == PLN_INT64 ||
                          t->dtype == PLN_FLOAT32 || t->dtype == PLN_FLOAT64 ||
                          t->dtype == PLN_BOOL);
}

static pln_fuse_pattern pattern_of(const pln_fuse_groups *f, pln_ref ref) {
  const pln_graph *g = f->graph;
  const pln_node *n = &g->nodes[ref];
  if (f->closed[f->node_scope[ref]] || pln_is_effect_ordered(n))
    return PLN_FUSE_OPAQUE;
  if (n->kind == PLN_CONSTANT && is_simple(g->tensors[n->data]))
    return PLN_FUSE_ELEMENTWISE;
  if (n->kind == PLN_TUPLE)
    return PLN_FUSE_TUPLE;
  if (n->kind == PLN_TUPLE_GET_ITEM)
    return is_tuple_of_tensors(f, g->nodes[pln_operand(g, ref, 0)].type)
               ? PLN_FUSE_INJECTIVE
               : PLN_FUSE_OPAQUE;
  return pln_fuse_computes(g, n) ? pln_fuse_trait_of(f->engine, n->data).pattern
                                 : PLN_FUSE_OPAQUE;
}

static bool same_shape(const pln_fuse_groups *f, pln_type a, pln_type b) {
  int32_t rank = pln_type_rank(f->engine, a);
  if (!is_tensor(f, a) || !is_tensor(f, b) || rank < 0 ||
      rank != pln_type_rank(f->engine, b))
    return false;
  const pln_dim *x = pln_type_dims(f->engine, a);
  const pln_dim *y = pln_type_dims(f->engine, b);
  for (int32_t i = 0; i < rank; i++)
    if (x[i] != y[i] || x[i] == PLN_DIM_UNKNOWN)
      return false;
  return true;
}

/* *out is the user's pattern for this operand. Returns false if the operand's
 * value leaves the part of the graph that can be fused. */
static bool edge(const pln_fuse_groups *f, pln_ref user, pln_ref operand,
                 uint8_t *pattern) {
  const pln_node *u = &f->graph->nodes[user], *o = &f->graph->nodes[operand];
  bool here =
      f->node_scope[user] == f->node_scope[operand] || o->kind == PLN_CONSTANT;
  *pattern = f->pattern[user];
  if (!here || f->closed[f->node_scope[user]])
    return false;
  if (u->kind == PLN_TUPLE) {
    *pattern = PLN_FUSE_INJECTIVE;
    return is_tensor(f, o->type);
  }
  if (u->kind == PLN_TUPLE_GET_ITEM)
    return *pattern == PLN_FUSE_INJECTIVE;
  if (*pattern == PLN_FUSE_BROADCAST && same_shape(f, u->type, o->type))
    *pattern = PLN_FUSE_ELEMENTWISE;
  return u->kind == PLN_CALL && u->data;
}

/* ------------------------------------------------------------ graph of uses */

static void escape_results(pln_fuse_groups *f, const pln_node *owner) {
  const pln_graph *g = f->graph;
  for (pln_scope s = owner->data; s != PLN_NONE; s = g->scopes[s].next)
    pln_dominators_escape(&f->tree, g->scopes[s].result);
}

static void find_dominators(pln_fuse_groups *f) {
  const pln_graph *g = f->graph;
  pln_dominators_escape(&f->tree, g->root);
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->nodes[ref];
    if (pln_is_effect_ordered(n))
      pln_dominators_escape(&f->tree, ref);
    pln_dominators_close(&f->tree, ref);
    for (uint32_t i = 0; i < n->count; i++) {
      pln_ref operand = g->operands[n->first + i];
      uint8_t pattern;
      f->first[operand + 1]++;
      if (edge(f, ref, operand, &pattern))
        pln_dominators_use(&f->tree, operand, ref, pattern);
      else
        pln_dominators_escape(&f->tree, operand);
    }
    if (pln_owns(n))
      escape_results(f, n);
  }
}

/* Lists the users of each node, in CSR form. */
static void list_users(pln_fuse_groups *f) {
  const pln_graph *g = f->graph;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    f->first[ref + 1] += f->first[ref];
  memcpy(f->stack, f->first, g->n_nodes * sizeof *f->stack);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    for (uint32_t i = 0; i < g->nodes[ref].count; i++)
      f->users[f->stack[pln_operand(g, ref, i)]++] = ref;
}

/* ------------------------------------------------------------------- groups */

pln_ref pln_fuse_group_of(pln_fuse_groups *f, pln_ref node) {
  pln_ref root = node;
  while (f->group[root] != root)
    root = f->group[root];
  while (f->group[node] != root) {
    pln_ref next = f->group[node];
    f->group[node] = root;
    node = next;
  }
  return root;
}

static uint8_t stronger(uint8_t a, uint8_t b) {
  return a > b ? a : b;
}

static void merge(pln_fuse_groups *f, pln_ref child, pln_ref into) {
  child = pln_fuse_group_of(f, child);
  into = pln_fuse_group_of(f, into);
  if (child == into)
    return;
  f->size[into] += f->size[child];
  if (f->arguments.most)
    f->arguments.count[into] += f->arguments.count[child];
  f->group[child] = into;
  if (!f->anchored[child])
    return;
  f->anchored[into] = 1;
  f->pattern[into] = stronger(f->pattern[into], f->pattern[child]);
}

/* -------------------------------------------------------------------- walks */

/* The patterns allowed between a node and its post-dominator, and for the
 * dominator itself: bit sets. */
typedef struct pattern_limits {
  uint32_t between, sink;
} pattern_limits;

#define BIT(pattern) (1u << (pattern))
#define UP_TO(pattern) (BIT((pattern) + 1) - 1)

static bool allows(uint32_t set, uint8_t pattern) {
  return set & BIT(pattern);
}

/* Calls the visitor for each node on the paths from `from` to `sink`, both
 * excluded, until it returns false. All paths from `from` lead to `sink`. */
static bool walk_paths_to_sink(pln_fuse_groups *f, pln_ref from, pln_ref sink,
                               bool (*wanted)(pln_fuse_groups *f, pln_ref node,
                                              void *ud),
                               void *ud) {
  uint32_t top = 0;
  f->walk++;
  f->stamp[sink] = f->stamp[from] = f->walk;
  f->stack[top++] = from;
  while (top > 0) {
    pln_ref node = f->stack[--top];
    if (node != from && !wanted(f, node, ud))
      return false;
    for (uint32_t i = f->first[node]; i < f->first[node + 1]; i++) {
      pln_ref user = f->users[i];
      if (f->stamp[user] == f->walk)
        continue;
      f->stamp[user] = f->walk;
      f->stack[top++] = user;
    }
  }
  return true;
}

static bool pattern_allowed(pln_fuse_groups *f, pln_ref node, void *ud) {
  const pattern_limits *allowed = ud;
  return allows(allowed->between, f->pattern[pln_fuse_group_of(f, node)]);
}

static bool path_fits(pln_fuse_groups *f, pln_ref from, pln_ref sink,
                      pattern_limits allowed) {
  return allows(allowed.sink, f->pattern[pln_fuse_group_of(f, sink)]) &&
         walk_paths_to_sink(f, from, sink, pattern_allowed, &allowed);
}

static bool merge_into_group(pln_fuse_groups *f, pln_ref node, void *ud) {
  merge(f, node, *(pln_ref *)ud);
  return true;
}

static pln_status commit(pln_fuse_groups *f, pln_ref from, pln_ref sink) {
  if (f->arguments.postpone != PLN_NONE)
    return pln_fuse_arguments_postpone(f, from);
  walk_paths_to_sink(f, from, sink, merge_into_group, &sink);
  merge(f, from, sink);
  return PLN_OK;
}

static bool counts(pln_fuse_groups *f, pln_ref node, void *ud) {
  uint64_t *sum = ud;
  *sum += f->size[node];
  return *sum <= f->max_depth;
}

static bool is_too_deep(pln_fuse_groups *f, pln_ref from, pln_ref sink) {
  uint64_t sum = (uint64_t)f->size[pln_fuse_group_of(f, sink)] + f->size[from];
  return sum > f->max_depth || !walk_paths_to_sink(f, from, sink, counts, &sum);
}

/* ------------------------------------------------------------------- phases */

/* Phase 3: injective nodes join a tuple that was fused with its user. */
static bool fuses_into_tuple(pln_fuse_groups *f, pln_ref node, pln_ref sink) {
  uint8_t root = f->pattern[pln_fuse_group_of(f, sink)];
  static const pattern_limits injective = {UP_TO(PLN_FUSE_INJECTIVE),
                                           UP_TO(PLN_FUSE_INJECTIVE)};
  return f->pattern[node] <= PLN_FUSE_INJECTIVE &&
         f->pattern[sink] == PLN_FUSE_TUPLE && root <= PLN_FUSE_INJECTIVE &&
         path_fits(f, node, sink, injective);
}

/* Phase 1: a convolution takes the elementwise nodes that follow. */
static bool fuses_outwards(pln_fuse_groups *f, pln_ref node, pln_ref sink) {
  static const pattern_limits broadcast = {UP_TO(PLN_FUSE_BROADCAST),
                                           UP_TO(PLN_FUSE_BROADCAST)};
  return f->tree.weight[node] == PLN_FUSE_ELEMENTWISE &&
         path_fits(f, node, sink, broadcast);
}

static bool fuses_elements(pln_fuse_groups *f, pln_ref node, pln_ref sink) {
  static const pattern_limits any = {UP_TO(PLN_FUSE_INJECTIVE),
                                     UP_TO(PLN_FUSE_OUT_FUSABLE)};
  return f->tree.weight[node] <= PLN_FUSE_REDUCE &&
         path_fits(f, node, sink, any);
}

static bool fuses_injective(pln_fuse_groups *f, pln_ref node, pln_ref sink) {
  static const pattern_limits injective = {UP_TO(PLN_FUSE_INJECTIVE),
                                           UP_TO(PLN_FUSE_INJECTIVE)};
  return path_fits(f, node, sink, injective);
}

static bool fuses(pln_fuse_groups *f, pln_ref node, pln_ref sink, int phase) {
  uint8_t pattern = f->pattern[node];
  if (phase == 2)
    return fuses_into_tuple(f, node, sink);
  if (f->pattern[sink] == PLN_FUSE_TUPLE ||
      pln_fuse_group_of(f, node) == pln_fuse_group_of(f, sink))
    return false;
  if (pattern == PLN_FUSE_OUT_FUSABLE)
    return phase == 0 && fuses_outwards(f, node, sink);
  if (pattern <= PLN_FUSE_BROADCAST)
    return fuses_elements(f, node, sink);
  return pattern != PLN_FUSE_REDUCE && phase == 1 &&
         fuses_injective(f, node, sink);
}

/* Decides the fusions that waited for this node. */
static pln_status run_postponed(pln_fuse_groups *f, pln_ref node) {
  pln_fuse_arguments *a = &f->arguments;
  a->postpone = PLN_NONE;
  for (uint32_t i = a->most ? a->first[node] : 0; i;
       i = a->fusions[i - 1].next) {
    pln_ref source = a->fusions[i - 1].source;
    pln_ref sink = f->tree.parent[source];
    bool fits;
    PLN_TRY(pln_fuse_arguments_fit(f, node, &fits));
    if (fits && !f->anchored[sink])
      PLN_TRY(commit(f, source, sink));
  }
  if (a->most)
    a->first[node] = 0;
  return PLN_OK;
}

static pln_status run_phase(pln_fuse_groups *f, int phase) {
  for (pln_ref node = 0; node < f->graph->n_nodes; node++) {
    pln_ref sink = f->tree.parent[node];
    bool exceeds;
    PLN_TRY(run_postponed(f, node));
    if (f->pattern[node] == PLN_FUSE_OPAQUE || sink == f->tree.n ||
        is_too_deep(f, node, sink))
      continue;
    PLN_TRY(pln_fuse_arguments_exceed(f, node, &exceeds));
    if (!exceeds && fuses(f, node, sink, phase))
      PLN_TRY(commit(f, node, sink));
  }
  return PLN_OK;
}

pln_status pln_fuse_groups_find(pln_fuse_groups *f, const pln_graph *graph,
                                int64_t level, uint32_t max_depth,
                                uint32_t max_args) {
  *f = (pln_fuse_groups){
      .engine = graph->engine, .graph = graph, .max_depth = max_depth};
  PLN_TRY(alloc_group_tables(f));
  PLN_TRY(pln_fuse_arguments_begin(f, max_args));
  pln_graph_node_scopes(graph, f->node_scope);
  close_scopes(f);
  for (pln_ref ref = 0; ref < graph->n_nodes; ref++) {
    f->pattern[ref] = (uint8_t)pattern_of(f, ref);
    f->anchored[ref] = f->pattern[ref] == PLN_FUSE_OUT_FUSABLE;
    f->group[ref] = ref;
    f->size[ref] = 1;
  }
  if (level == 0)
    return PLN_OK;
  find_dominators(f);
  list_users(f);
  for (int phase = 0; phase < 3; phase++)
    PLN_TRY(run_phase(f, phase));
  return PLN_OK;
}
