/* shrink.c: replaces nodes by something smaller for test-case reduction: a free
 * variable, zeros, an operand, one branch; or removes a let. The search is
 * Zeller and Hildebrandt's ddmin, in lua/perilune/reduce.
 *
 * Called by scripts. Invariants: the old graph is unchanged; all replacements
 * are made in one sweep, each in terms of the results of the others. */

#include "ir/graph/graph.h"

typedef struct shrinker {
  pln_engine *engine;
  const pln_graph *old;
  const uint32_t *shrink_actions;
  pln_scope *node_scope;
  uint8_t *has_lets; /* per scope: some of its lets remain */
} shrinker;

static pln_status refuse_shrink(const shrinker *c, pln_ref ref,
                                const char *what) {
  return pln_diag_error(c->engine, PLN_ERR_ARGUMENT, NULL,
                        "node %u, a %s, cannot be cut to %s", (unsigned)ref,
                        pln_kind_name((pln_kind)c->old->nodes[ref].kind), what);
}

/* ------------------------------------------------------------ what stands in
 */

static pln_status free_var(const shrinker *c, pln_builder *to, pln_ref old,
                           pln_ref *node) {
  const pln_node *n = &c->old->nodes[old];
  pln_symbol name;
  if (pln_kinds[n->kind].kind_class != PLN_CLASS_EXPR || !n->type)
    return refuse_shrink(c, old, "a variable");
  PLN_TRY(pln_symbol_intern(c->engine, pln_text("p"), &name));
  return pln_build_var(to, name, n->type, 0, node);
}

static bool has_known_dims(const pln_engine *e, pln_type type) {
  int32_t rank = pln_type_rank(e, type);
  const pln_dim *dims = pln_type_dims(e, type);
  for (int32_t i = 0; i < rank; i++)
    if (dims[i] < 0)
      return false;
  return pln_type_get_kind(e, type) == PLN_TYPE_TENSOR && rank >= 0 &&
         pln_type_number(e, type) == 0;
}

static pln_status zeros(const shrinker *c, pln_builder *to, pln_ref old,
                        pln_ref *node) {
  static const unsigned char zero[16];
  pln_type type = c->old->nodes[old].type;
  pln_dtype dtype = pln_type_dtype(c->engine, type);
  pln_tensor *tensor;
  if (!has_known_dims(c->engine, type) || !dtype || dtype == PLN_STRING)
    return refuse_shrink(c, old, "zeros");
  PLN_TRY(pln_tensor_splat(c->engine, dtype,
                           (uint32_t)pln_type_rank(c->engine, type),
                           pln_type_dims(c->engine, type), zero, &tensor));
  pln_status status = pln_build_constant(to, tensor, node);
  pln_tensor_release(tensor);
  return status;
}

static pln_status let_value(const shrinker *c, pln_rewrite *rw, pln_ref old,
                            pln_ref *node) {
  if (c->old->nodes[old].kind != PLN_LET)
    return refuse_shrink(c, old, "a value");
  *node = pln_rewrite_image(rw, pln_operand(c->old, old, 1));
  pln_rewrite_bind(rw, pln_operand(c->old, old, 0), *node);
  return PLN_OK;
}

static pln_status replace_with_operand(const shrinker *c, pln_rewrite *rw,
                                       pln_ref old, pln_ref *node) {
  const pln_node *n = &c->old->nodes[old];
  uint32_t k = c->shrink_actions[old] - PLN_SHRINK_TO_OPERAND;
  if (n->kind == PLN_IF && k < 2)
    return PLN_OK; /* `enter` has dissolved the branch */
  if (pln_owns(n) || k >= n->count ||
      pln_kinds[n->kind].kind_class != PLN_CLASS_EXPR)
    return refuse_shrink(c, old, "an operand");
  *node = pln_rewrite_image(rw, pln_operand(c->old, old, k));
  return PLN_OK;
}

/* ------------------------------------------------------------------- sweep */

static pln_status shrink_node(void *ud, pln_rewrite *rw, pln_ref old,
                              pln_ref *node) {
  const shrinker *c = ud;
  if (c->shrink_actions[old] == PLN_SHRINK_KEEP)
    return PLN_OK;
  pln_builder *to = pln_rewrite_builder(rw);
  if (!to)
    return PLN_ERR_NOMEM;
  switch (c->shrink_actions[old]) {
  case PLN_SHRINK_FREE_VAR: return free_var(c, to, old, node);
  case PLN_SHRINK_TO_ZERO: return zeros(c, to, old, node);
  case PLN_SHRINK_LET_VALUE: return let_value(c, rw, old, node);
  default: return replace_with_operand(c, rw, old, node);
  }
}

/* The taken branch of an If is dissolved into the enclosing scope, and so is a
 * block without remaining lets. */
static pln_status enter_shrunk_scope(void *ud, pln_rewrite *rw, pln_scope old,
                                     pln_scope_action *action) {
  const shrinker *c = ud;
  pln_ref owner = c->old->scopes[old].owner;
  const pln_node *n = &c->old->nodes[owner];
  uint32_t shrink = c->shrink_actions[owner];
  (void)rw;
  if (n->kind == PLN_IF && shrink >= PLN_SHRINK_TO_OPERAND &&
      shrink - PLN_SHRINK_TO_OPERAND < 2) {
    bool second = old != n->data;
    bool taken = second == (shrink - PLN_SHRINK_TO_OPERAND == 1);
    *action = taken ? PLN_SCOPE_DISSOLVE : PLN_SCOPE_SKIP;
  } else if (n->kind == PLN_LET_BLOCK && !c->has_lets[old]) {
    *action = PLN_SCOPE_DISSOLVE;
  }
  return PLN_OK;
}

static pln_status prepare_shrinker(shrinker *c) {
  const pln_graph *g = c->old;
  c->node_scope = pln_mem_new(c->engine, g->n_nodes * sizeof *c->node_scope);
  c->has_lets = pln_mem_zeroed(c->engine, g->n_scopes);
  if (!c->node_scope || !c->has_lets)
    return pln_nomem(c->engine);
  pln_graph_node_scopes(g, c->node_scope);
  for (pln_ref i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].kind == PLN_LET &&
        c->shrink_actions[i] != PLN_SHRINK_LET_VALUE)
      c->has_lets[c->node_scope[i]] = 1;
  return PLN_OK;
}

pln_status pln_graph_shrink(const pln_graph *graph,
                            const uint32_t *shrink_actions, pln_graph **out) {
  shrinker c = {
      .engine = graph->engine, .old = graph, .shrink_actions = shrink_actions};
  pln_mutator mutator = {
      .ud = &c, .visit = shrink_node, .enter = enter_shrunk_scope};
  pln_status status = prepare_shrinker(&c);
  if (status == PLN_OK)
    status = pln_graph_rewrite(graph, &mutator, out);
  pln_mem_free(c.engine, c.node_scope, graph->n_nodes * sizeof *c.node_scope);
  pln_mem_free(c.engine, c.has_lets, graph->n_scopes);
  return status;
}
