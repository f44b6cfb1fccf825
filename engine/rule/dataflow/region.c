/* region.c: what dataflow patterns ask of a graph: the parts of a node, the
 * values of blocks, users, and post-dominators.
 *
 * Called by the matcher and by groups.c. Tables are computed when first needed,
 * each in linear time. Relay's view of lets is used: the value of a block is
 * its first Let, and the body of a Let is the next one, or the block's
 * result. */

#include "rule/dataflow/dataflow.h"

pln_status pln_ref_list_add(pln_engine *engine, pln_ref_list *list,
                            pln_ref ref) {
  PLN_TRY(pln_mem_grow(engine, (void **)&list->items, &list->cap,
                       (size_t)list->n + 1, sizeof *list->items));
  list->items[list->n++] = ref;
  return PLN_OK;
}

void pln_ref_list_free(pln_engine *engine, pln_ref_list *list) {
  pln_mem_free(engine, list->items, list->cap * sizeof *list->items);
  *list = (pln_ref_list){0};
}

pln_status pln_dataflow_region_begin(pln_dataflow_region *region,
                                     const pln_graph *graph, pln_ref root,
                                     bool lets) {
  *region = (pln_dataflow_region){
      .engine = graph->engine, .graph = graph, .root = root};
  if (graph->n_nodes < PLN_CANDIDATE_OP)
    return lets ? pln_rule_find_values(graph, &region->values) : PLN_OK;
  return pln_diag_error(graph->engine, PLN_ERR_LIMIT, NULL,
                        "a graph is too large for dataflow patterns");
}

void pln_dataflow_region_end(pln_dataflow_region *r) {
  pln_engine *e = r->engine;
  if (!e)
    return;
  size_t n = (size_t)r->graph->n_nodes + 1;
  pln_mem_free(e, r->node_scope, n * sizeof *r->node_scope);
  pln_mem_free(e, r->first_user, (n + 1) * sizeof *r->first_user);
  pln_mem_free(e, r->users, (r->n_users + 1) * sizeof *r->users);
  pln_dominators_end(&r->dominators);
  pln_rule_forget_values(e, &r->values);
  *r = (pln_dataflow_region){0};
}

/* ------------------------------------------------------------------ blocks */

pln_ref pln_dataflow_block_value(const pln_graph *graph, pln_scope scope,
                                 pln_ref from) {
  const pln_scope_row *row = &graph->scopes[scope];
  pln_ref let = pln_rule_next_let(graph, scope, from ? from : row->begin);
  if (let != PLN_NONE)
    return let;
  return row->result != PLN_NONE ? row->result : graph->root;
}

pln_ref pln_dataflow_let(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  if (n->kind == PLN_LET)
    return node;
  if (n->kind != PLN_LET_BLOCK)
    return PLN_NONE;
  pln_ref value = pln_dataflow_block_value(graph, n->data, 0);
  return graph->nodes[value].kind == PLN_LET ? value : PLN_NONE;
}

pln_scope pln_dataflow_scope_of(const pln_dataflow_region *region,
                                pln_ref node) {
  return region->node_scope ? region->node_scope[node]
                            : pln_graph_scope_of(region->graph, node);
}

pln_ref pln_dataflow_value(const pln_dataflow_region *r, pln_ref node) {
  const pln_graph *g = r->graph;
  for (;;) {
    node = pln_rule_bound_value(&r->values, node);
    if (!pln_dataflow_is_bound_let(r, node))
      return node;
    node =
        pln_dataflow_block_value(g, pln_dataflow_scope_of(r, node), node + 1);
  }
}

pln_candidate pln_dataflow_candidate(const pln_graph *graph, pln_ref node) {
  const pln_node *n = &graph->nodes[node];
  return n->kind == PLN_OP ? PLN_CANDIDATE_OP | n->data : node;
}

/* ------------------------------------------------------------------- parts */

static pln_status add_scope_parts(const pln_dataflow_region *r, pln_ref node,
                                  pln_ref_list *out) {
  const pln_graph *g = r->graph;
  const pln_node *n = &g->nodes[node];
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next) {
    const pln_scope_row *row = &g->scopes[s];
    for (uint32_t i = 0; n->kind == PLN_FUNCTION && i < row->n_params; i++)
      PLN_TRY(pln_ref_list_add(r->engine, out, row->begin + i));
    pln_ref value = pln_dataflow_block_value(g, s, 0);
    PLN_TRY(pln_ref_list_add(r->engine, out, pln_dataflow_value(r, value)));
  }
  return PLN_OK;
}

pln_status pln_dataflow_parts(const pln_dataflow_region *region, pln_ref node,
                              pln_ref_list *out) {
  const pln_graph *g = region->graph;
  const pln_node *n = &g->nodes[node];
  for (uint32_t i = 0; i < n->count; i++)
    PLN_TRY(pln_ref_list_add(
        region->engine, out,
        pln_dataflow_value(region, g->operands[n->first + i])));
  if (n->kind == PLN_LET) {
    pln_scope scope = pln_dataflow_scope_of(region, node);
    pln_ref body = pln_dataflow_block_value(g, scope, node + 1);
    return pln_ref_list_add(region->engine, out,
                            pln_dataflow_value(region, body));
  }
  return pln_owns(n) ? add_scope_parts(region, node, out) : PLN_OK;
}

/* ------------------------------------------------------------------ tables */

pln_status pln_dataflow_find_scopes(pln_dataflow_region *region) {
  size_t size = ((size_t)region->graph->n_nodes + 1) * sizeof(pln_scope);
  if (region->node_scope)
    return PLN_OK;
  region->node_scope = pln_mem_new(region->engine, size);
  if (!region->node_scope)
    return pln_nomem(region->engine);
  pln_graph_node_scopes(region->graph, region->node_scope);
  return PLN_OK;
}

/* The node that uses what a scope gives: its owner; PLN_NONE for scope 0. */
static pln_ref owner_of(const pln_dataflow_region *r, pln_ref node) {
  return r->graph->scopes[r->node_scope[node]].owner;
}

/* Calls f(ud, user, used) for each use; a result and an effect of a scope are
 * used by its owner. */
static void each_use(const pln_dataflow_region *r, pln_ref ref,
                     void (*f)(void *ud, pln_ref user, pln_ref used),
                     void *ud) {
  const pln_graph *g = r->graph;
  const pln_node *n = &g->nodes[ref];
  if (pln_dataflow_is_bound_let(r, ref))
    return;
  for (uint32_t i = 0; i < n->count; i++)
    f(ud, ref, pln_rule_bound_value(&r->values, g->operands[n->first + i]));
  if (!pln_owns(n))
    return;
  for (pln_scope s = n->data; s != PLN_NONE; s = g->scopes[s].next)
    f(ud, ref, pln_rule_bound_value(&r->values, g->scopes[s].result));
}

static void count_use(void *ud, pln_ref user, pln_ref used) {
  uint32_t *first = ud;
  (void)user;
  first[used + 1]++;
}

typedef struct user_table {
  uint32_t *next;
  pln_ref *users;
} user_table;

static void add_use(void *ud, pln_ref user, pln_ref used) {
  user_table *t = ud;
  t->users[t->next[used]++] = user;
}

static pln_status fill_users(pln_dataflow_region *r) {
  uint32_t n = r->graph->n_nodes;
  size_t size = ((size_t)n + 1) * sizeof(uint32_t);
  user_table t = {.next = pln_mem_new(r->engine, size), .users = r->users};
  if (!t.next)
    return pln_nomem(r->engine);
  memcpy(t.next, r->first_user, size);
  for (pln_ref ref = 0; ref < n; ref++)
    each_use(r, ref, add_use, &t);
  pln_mem_free(r->engine, t.next, size);
  return PLN_OK;
}

pln_status pln_dataflow_find_users(pln_dataflow_region *region) {
  pln_dataflow_region *r = region;
  uint32_t n = r->graph->n_nodes;
  if (r->users)
    return PLN_OK;
  r->first_user =
      pln_mem_zeroed(r->engine, ((size_t)n + 2) * sizeof *r->first_user);
  if (!r->first_user)
    return pln_nomem(r->engine);
  for (pln_ref ref = 0; ref < n; ref++)
    each_use(r, ref, count_use, r->first_user);
  for (pln_ref ref = 0; ref < n; ref++)
    r->first_user[ref + 1] += r->first_user[ref];
  r->n_users = r->first_user[n];
  r->users = pln_mem_new(r->engine, (r->n_users + 1) * sizeof *r->users);
  return r->users ? fill_users(r) : pln_nomem(r->engine);
}

/* -------------------------------------------------------------- dominators */

typedef struct dominator_sweep {
  pln_dominators *tree;
  uint8_t *reached; /* per node */
} dominator_sweep;

static void use_reached(void *ud, pln_ref user, pln_ref used) {
  dominator_sweep *s = ud;
  s->reached[used] = 1;
  pln_dominators_use(s->tree, used, user, 0);
}

/* Nodes are closed from users to operands, those only that the root reaches.
 * What a scope evaluates for its effect is used by its owner. */
static void sweep_dominators(pln_dataflow_region *r, dominator_sweep *s) {
  const pln_graph *g = r->graph;
  s->reached[r->root] = 1;
  pln_dominators_escape(s->tree, r->root);
  for (pln_ref ref = r->root + 1; ref-- > 0;) {
    pln_ref owner = owner_of(r, ref);
    if (pln_is_effect_ordered(&g->nodes[ref]) && owner != PLN_NONE &&
        owner <= r->root && s->reached[owner])
      use_reached(s, owner, ref);
    if (owner == PLN_NONE && pln_is_effect_ordered(&g->nodes[ref]))
      pln_dominators_escape(s->tree, ref);
    pln_dominators_close(s->tree, ref);
    if (s->reached[ref])
      each_use(r, ref, use_reached, s);
  }
}

pln_status pln_dataflow_find_dominators(pln_dataflow_region *region) {
  size_t n = (size_t)region->root + 1;
  if (region->has_dominators)
    return PLN_OK;
  PLN_TRY(pln_dataflow_find_scopes(region));
  PLN_TRY(pln_dominators_begin(&region->dominators, region->engine,
                               region->root + 1));
  dominator_sweep s = {.tree = &region->dominators,
                       .reached = pln_mem_zeroed(region->engine, n)};
  if (!s.reached)
    return pln_nomem(region->engine);
  sweep_dominators(region, &s);
  pln_mem_free(region->engine, s.reached, n);
  region->has_dominators = true;
  return PLN_OK;
}

bool pln_dataflow_dominates(const pln_dataflow_region *region,
                            pln_ref dominator, pln_ref node) {
  const pln_dominators *d = &region->dominators;
  if (dominator > region->root || node > region->root)
    return false;
  while (d->depth[node] > d->depth[dominator])
    node = d->depth[d->jump[node]] >= d->depth[dominator] ? d->jump[node]
                                                          : d->parent[node];
  return node == dominator;
}
