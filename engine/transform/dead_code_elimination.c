/* dead_code_elimination.c: removes nodes that no result and no effect needs.
 *
 * Run by the executor, once per function. Requires a verified graph. Unused
 * ONNX nodes and initializers lose their keep marks. A let is removed when its
 * variable is dead and its value has no effect; a block without lets is
 * dissolved. The sweep is repeated while it removes effects that kept other
 * nodes alive. Unused results of a call stay.
 *
 *     let %y = tanh(%x); %x   =>   %x
 *
 * Semantics: TVM DeadCodeElimination, on every scope. */

#include "transform/transform.h"

/* Nested blocks are dissolved from the inside, one level per sweep; deeper
 * nests are left unfinished. */
enum { MAX_SWEEPS = 64 };
/* A value of `live`: needed for its effect only. */
enum { FOR_EFFECTS = 2 };

/* The tables exist only if the graph has a let. Other dead nodes are dropped
 * when the graph is sealed. */
typedef struct dce_rewrite {
  const pln_graph *graph;
  bool kept;             /* some nodes have keep marks */
  uint8_t *live;         /* by node */
  pln_scope *node_scope; /* by node: its innermost scope */
  uint32_t *lets;        /* by scope: number of its own lets that stay */
  bool again;            /* a let lost the effects that kept it */
  int64_t removed;
} dce_rewrite;

/* ----------------------------------------------------------------- liveness */

static void count_live_uses(dce_rewrite *s, bool *lets) {
  const pln_graph *g = s->graph;
  *lets = false;
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    *lets |= g->nodes[i].kind == PLN_LET;
    s->kept |= (g->nodes[i].flags & PLN_NODE_KEEP) != 0;
  }
}

static bool in_dead_scope(const dce_rewrite *s, pln_ref i) {
  pln_ref owner = s->graph->scopes[s->node_scope[i]].owner;
  return owner != PLN_NONE && !s->live[owner];
}

/* Returns true for nodes that are evaluated whether used or not. A let is
 * needed if its value is, or if its variable is used. */
static bool is_needed(const dce_rewrite *s, pln_ref i) {
  const pln_graph *g = s->graph;
  const pln_node *n = &g->nodes[i];
  if (s->live[i])
    return true;
  if (n->kind == PLN_LET) {
    if (s->live[pln_operand(g, i, 0)])
      return true;
    n = &g->nodes[pln_operand(g, i, 1)];
  }
  return pln_flags_effect(n->flags) != PLN_EFFECT_NONE;
}

/* Returns true if the node is live but has no live user. */
static bool is_for_effects(const dce_rewrite *s, pln_ref i) {
  const pln_graph *g = s->graph;
  return !s->live[i] &&
         (g->nodes[i].kind != PLN_LET || !s->live[pln_operand(g, i, 0)]);
}

static void mark(dce_rewrite *s, const pln_node *n) {
  const pln_graph *g = s->graph;
  for (uint32_t k = 0; k < n->count; k++)
    s->live[g->operands[n->first + k]] = 1;
  if (pln_kinds[n->kind].payload == PLN_PAYLOAD_SCOPE)
    for (pln_scope c = n->data; c != PLN_NONE; c = g->scopes[c].next)
      s->live[g->scopes[c].result] = 1;
}

/* *out is false for a let that can be removed; asks the rule limits first. */
static pln_status let_stays(const dce_rewrite *s, pln_ref i, bool *out) {
  const pln_graph *g = s->graph;
  bool allowed;
  *out = is_needed(s, i);
  if (*out || g->nodes[i].kind != PLN_LET)
    return PLN_OK;
  PLN_TRY(pln_rule_apply(g->engine, "drop", i, &allowed));
  *out = !allowed;
  return PLN_OK;
}

/* Marks live nodes in one backward sweep: users come after operands, owners
 * after their scopes, and uses of a variable after its let. */
static pln_status find_live(dce_rewrite *s) {
  const pln_graph *g = s->graph;
  s->live[g->root] = 1;
  for (pln_ref i = g->n_nodes; i-- > 0;) {
    bool stays;
    if (in_dead_scope(s, i))
      continue;
    PLN_TRY(let_stays(s, i, &stays));
    if (!stays)
      continue;
    s->live[i] = is_for_effects(s, i) ? FOR_EFFECTS : 1;
    s->lets[s->node_scope[i]] += g->nodes[i].kind == PLN_LET;
    mark(s, &g->nodes[i]);
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------ rewrite */

static pln_status enter_live_scope(void *ud, pln_rewrite *rw, pln_scope old,
                                   pln_scope_action *action) {
  const dce_rewrite *s = ud;
  pln_ref owner = s->graph->scopes[old].owner;
  (void)rw;
  if (s->lets && s->graph->nodes[owner].kind == PLN_LET_BLOCK && !s->lets[old])
    *action = PLN_SCOPE_DISSOLVE;
  return PLN_OK;
}

/* Removes the keep mark; sealing then drops the node unless it is used. */
static pln_status drop_mark(pln_rewrite *rw, pln_ref node) {
  bool allowed;
  PLN_TRY(pln_rewrite_apply(rw, "drop", &allowed));
  if (!allowed)
    return PLN_OK;
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  b->graph->nodes[node].flags &= (uint8_t)~PLN_NODE_KEEP;
  return PLN_OK;
}

/* Returns true if `old` was kept for effects that the new node, or a let's
 * value, does not have: the effects were in a dissolved block or in removed
 * nodes. */
static bool loses_effects(const dce_rewrite *s, pln_rewrite *rw, pln_ref old,
                          pln_ref node) {
  if (!s->live || s->live[old] != FOR_EFFECTS)
    return false;
  if (s->graph->nodes[old].kind == PLN_LET)
    node = pln_rewrite_image(rw, pln_operand(s->graph, old, 1));
  const pln_node *n = &pln_rewrite_graph(rw)->nodes[node];
  return pln_flags_effect(n->flags) == PLN_EFFECT_NONE;
}

/* Replaces a dead let by its body. Its value is dropped too if nothing else
 * uses it. */
static pln_status eliminate_dead_node(void *ud, pln_rewrite *rw, pln_ref old,
                                      pln_ref *node) {
  dce_rewrite *s = ud;
  if (s->graph->nodes[old].flags & PLN_NODE_KEEP)
    return drop_mark(rw, *node);
  s->again |= loses_effects(s, rw, old, *node);
  if (s->graph->nodes[old].kind != PLN_LET || s->live[old])
    return PLN_OK;
  if (!pln_rewrite_builder(rw))
    return PLN_ERR_NOMEM;
  *node = pln_rewrite_image(rw, pln_operand(s->graph, old, 1));
  return PLN_OK;
}

static pln_status eliminate(dce_rewrite *s, pln_pass_run *run) {
  pln_graph *out;
  pln_mutator m = {
      .ud = s, .visit = eliminate_dead_node, .enter = enter_live_scope};
  if (!s->live && !s->kept)
    m.visit = NULL;
  PLN_TRY(pln_graph_rewrite(s->graph, &m, &out));
  s->removed += (int64_t)s->graph->n_nodes - out->n_nodes;
  pln_run_set_function(run, out);
  return PLN_OK;
}

/* Allocates the tables and removes dead lets. */
static pln_status eliminate_lets(dce_rewrite *s, pln_pass_run *run) {
  const pln_graph *g = s->graph;
  pln_engine *e = g->engine;
  size_t n = g->n_nodes, k = g->n_scopes;
  pln_status status = PLN_ERR_NOMEM;
  s->live = pln_mem_zeroed(e, n * sizeof *s->live);
  s->node_scope = pln_mem_zeroed(e, n * sizeof *s->node_scope);
  s->lets = pln_mem_zeroed(e, k * sizeof *s->lets);
  if (s->live && s->node_scope && s->lets) {
    pln_graph_node_scopes(g, s->node_scope);
    status = find_live(s);
    if (status == PLN_OK)
      status = eliminate(s, run);
  } else {
    pln_nomem(e);
  }
  pln_mem_free(e, s->live, n * sizeof *s->live);
  pln_mem_free(e, s->node_scope, n * sizeof *s->node_scope);
  pln_mem_free(e, s->lets, k * sizeof *s->lets);
  s->live = NULL;
  s->lets = NULL;
  return status;
}

static pln_status sweep_once(dce_rewrite *s, pln_pass_run *run) {
  bool lets;
  s->kept = s->again = false;
  count_live_uses(s, &lets);
  return lets ? eliminate_lets(s, run) : eliminate(s, run);
}

pln_status pln_pass_dead_code_elimination(pln_pass_run *run) {
  dce_rewrite s = {.graph = pln_run_function(run)};
  PLN_TRY(pln_rule_tried(pln_run_engine(run), "drop", 0, 0));
  PLN_TRY(sweep_once(&s, run));
  for (uint32_t n = 1; s.again && n < MAX_SWEEPS; n++) {
    s.graph = run->new_function;
    PLN_TRY(sweep_once(&s, run));
  }
  return s.removed > 0 ? pln_run_count(run, "removed", s.removed) : PLN_OK;
}
