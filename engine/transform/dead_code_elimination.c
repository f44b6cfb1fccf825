/* dead_code_elimination.c: removes nodes that no result and no effect needs.
 *
 * Run by the executor, once per function. Requires a verified graph. Unused
 * ONNX nodes and initializers lose their keep marks. A let is removed when its
 * variable is dead and its value has no effect; a block without lets is
 * dissolved. The sweep is repeated while it removes effects that kept other
 * nodes alive. Unused results of a call stay. What has an effect is determined
 * over the whole module (ir/analysis/purity.c): a dead call of a recursive
 * function goes too. With `inline_once` the value of a variable that is used
 * once, and not by a nested function, takes its place. With `ignore_impurity`
 * effects count as none.
 *
 *     let %y = tanh(%x); %x                    =>   %x
 *     let %y = tanh(%x); exp(%y), inline_once  =>   exp(tanh(%x))
 *
 * Semantics: TVM DeadCodeElimination, on every scope. */

#include "transform/functional/let.h"
#include "transform/transform.h"

/* Nested blocks are dissolved from the inside, one level per sweep; deeper
 * nests are left unfinished. */
enum { MAX_SWEEPS = 64 };
/* Values of `live`: needed for its effect only; a let whose variable is
 * replaced by its value. */
enum { FOR_EFFECTS = 2, INLINED = 3 };

/* The tables exist only if the graph has a let, or effects are ignored. Other
 * dead nodes are dropped when the graph is sealed. */
typedef struct dce_rewrite {
  pln_pass_run *run;
  const pln_graph *graph;
  bool inline_once, ignore_impurity;
  bool kept;             /* some nodes have keep marks */
  bool effects;          /* some nodes have effects, or may have */
  uint8_t *live;         /* by node */
  uint8_t *impure;       /* by node: PLN_IMPURE_* */
  uint8_t *uses;         /* by node: how often it is evaluated; 2: or more */
  pln_ref *first;        /* by node: its first user */
  pln_scope *node_scope; /* by node: its innermost scope */
  uint32_t *depth;       /* by scope: number of functions around it */
  uint32_t *lets;        /* by scope: number of its own lets that stay */
  bool again;            /* a let lost the effects that kept it */
  int64_t removed;
} dce_rewrite;

/* ----------------------------------------------------------------- liveness */

static void find_lets_and_effects(dce_rewrite *s, bool *lets) {
  const pln_graph *g = s->graph;
  *lets = false;
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    *lets |= g->nodes[i].kind == PLN_LET;
    s->effects |= pln_flags_effect(g->nodes[i].flags) != PLN_EFFECT_NONE ||
                  g->nodes[i].kind == PLN_GLOBAL_VAR;
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
  if (n->kind == PLN_LET)
    return s->live[pln_operand(g, i, 0)] ||
           s->impure[pln_operand(g, i, 1)] & PLN_IMPURE_EVAL;
  return pln_flags_effect(n->flags) != PLN_EFFECT_NONE &&
         s->impure[i] & PLN_IMPURE_EVAL;
}

/* Returns true if the node is live but has no live user. */
static bool is_for_effects(const dce_rewrite *s, pln_ref i) {
  const pln_graph *g = s->graph;
  return !s->live[i] &&
         (g->nodes[i].kind != PLN_LET || !s->live[pln_operand(g, i, 0)]);
}

static void count_use(dce_rewrite *s, pln_ref node, uint32_t times,
                      pln_scope user) {
  bool nested = s->graph->nodes[node].kind == PLN_VAR &&
                s->depth[user] > s->depth[s->node_scope[node]];
  times = nested ? 2 : times + s->uses[node];
  s->uses[node] = (uint8_t)(times < 2 ? times : 2);
}

/* A let uses its value once, however often it is used itself. */
static void count_uses(dce_rewrite *s, pln_ref i) {
  const pln_graph *g = s->graph;
  const pln_node *n = &g->nodes[i];
  if (n->kind == PLN_LET) {
    count_use(s, pln_operand(g, i, 1), 1, s->node_scope[i]);
    return;
  }
  for (uint32_t k = 0; k < n->count; k++)
    count_use(s, pln_operand(g, i, k), s->uses[i], s->node_scope[i]);
  if (pln_owns(n))
    for (pln_scope c = n->data; c != PLN_NONE; c = g->scopes[c].next)
      count_use(s, g->scopes[c].result, s->uses[i], c);
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

/* Sets *out for a live let whose variable is replaced by its value. That of a
 * recursive function is used before the let. */
static pln_status is_inlined(const dce_rewrite *s, pln_ref i, bool *out) {
  const pln_graph *g = s->graph;
  *out = false;
  if (!s->uses || g->nodes[i].kind != PLN_LET)
    return PLN_OK;
  pln_ref var = pln_operand(g, i, 0), value = pln_operand(g, i, 1);
  if (s->uses[var] != 1 || s->first[var] < i ||
      s->impure[value] & PLN_IMPURE_EVAL)
    return PLN_OK;
  return pln_rule_apply(g->engine, "inline", i, out);
}

static pln_status mark_live(dce_rewrite *s, pln_ref i) {
  const pln_node *n = &s->graph->nodes[i];
  bool inlined;
  PLN_TRY(is_inlined(s, i, &inlined));
  s->live[i] = inlined ? INLINED : is_for_effects(s, i) ? FOR_EFFECTS : 1;
  s->lets[s->node_scope[i]] += n->kind == PLN_LET && !inlined;
  mark(s, n);
  if (s->uses)
    count_uses(s, i);
  return PLN_OK;
}

/* Marks live nodes in one backward sweep: users come after operands, owners
 * after their scopes, and uses of a variable after its let. */
static pln_status find_live(dce_rewrite *s) {
  const pln_graph *g = s->graph;
  s->live[g->root] = 1;
  if (s->uses)
    s->uses[g->root] = 1;
  for (pln_ref i = g->n_nodes; i-- > 0;) {
    bool stays;
    if (in_dead_scope(s, i))
      continue;
    PLN_TRY(let_stays(s, i, &stays));
    if (stays)
      PLN_TRY(mark_live(s, i));
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
  const pln_graph *g = s->graph;
  pln_ref before = old;
  if (s->live[old] != FOR_EFFECTS)
    return false;
  if (g->nodes[old].kind == PLN_LET) {
    before = pln_operand(g, old, 1);
    node = pln_rewrite_image(rw, before);
  }
  const pln_node *n = &pln_rewrite_graph(rw)->nodes[node];
  return pln_flags_effect(g->nodes[before].flags) != PLN_EFFECT_NONE &&
         pln_flags_effect(n->flags) == PLN_EFFECT_NONE;
}

/* Replaces a dead or inlined let by its value, which is dropped if nothing uses
 * it. */
static pln_status replace_let(const dce_rewrite *s, pln_rewrite *rw,
                              pln_ref old, pln_ref *node) {
  if (!pln_rewrite_builder(rw))
    return PLN_ERR_NOMEM;
  *node = pln_rewrite_image(rw, pln_operand(s->graph, old, 1));
  if (s->live[old] == INLINED)
    pln_rewrite_bind(rw, pln_operand(s->graph, old, 0), *node);
  return PLN_OK;
}

/* Clears the effect of a dead node, so that sealing drops it. */
static pln_status drop_effect(pln_rewrite *rw, pln_ref node) {
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  b->graph->nodes[node].flags &= (uint8_t)~PLN_NODE_EFFECT;
  return PLN_OK;
}

static pln_status eliminate_dead_node(void *ud, pln_rewrite *rw, pln_ref old,
                                      pln_ref *node) {
  dce_rewrite *s = ud;
  const pln_node *n = &s->graph->nodes[old];
  if (n->flags & PLN_NODE_KEEP)
    PLN_TRY(drop_mark(rw, *node));
  if (!s->live)
    return PLN_OK;
  s->again |= loses_effects(s, rw, old, *node);
  if (n->kind == PLN_LET && (!s->live[old] || s->live[old] == INLINED))
    return replace_let(s, rw, old, node);
  if (!s->live[old] && pln_flags_effect(n->flags) != PLN_EFFECT_NONE)
    return drop_effect(rw, *node);
  return PLN_OK;
}

static pln_status eliminate(dce_rewrite *s) {
  pln_graph *out;
  pln_mutator m = {
      .ud = s, .visit = eliminate_dead_node, .enter = enter_live_scope};
  if (!s->live && !s->kept)
    m.visit = NULL;
  PLN_TRY(pln_graph_rewrite(s->graph, &m, &out));
  s->removed += (int64_t)s->graph->n_nodes - out->n_nodes;
  pln_run_set_function(s->run, out);
  return PLN_OK;
}

/* ------------------------------------------------------------------- tables */

static pln_status new_tables(dce_rewrite *s) {
  const pln_graph *g = s->graph;
  pln_engine *e = g->engine;
  size_t n = g->n_nodes, k = g->n_scopes;
  s->live = pln_mem_zeroed(e, n * sizeof *s->live);
  s->impure = pln_mem_zeroed(e, n * sizeof *s->impure);
  s->node_scope = pln_mem_zeroed(e, n * sizeof *s->node_scope);
  s->lets = pln_mem_zeroed(e, k * sizeof *s->lets);
  s->depth = pln_mem_zeroed(e, k * sizeof *s->depth);
  if (!s->live || !s->impure || !s->node_scope || !s->lets || !s->depth)
    return pln_nomem(e);
  if (!s->inline_once)
    return PLN_OK;
  s->uses = pln_mem_zeroed(e, n * sizeof *s->uses);
  s->first = pln_mem_new(e, n * sizeof *s->first);
  return s->uses && s->first ? PLN_OK : pln_nomem(e);
}

static void free_tables(dce_rewrite *s, const pln_graph *g) {
  pln_engine *e = g->engine;
  size_t n = g->n_nodes, k = g->n_scopes;
  pln_mem_free(e, s->live, n * sizeof *s->live);
  pln_mem_free(e, s->impure, n * sizeof *s->impure);
  pln_mem_free(e, s->node_scope, n * sizeof *s->node_scope);
  pln_mem_free(e, s->lets, k * sizeof *s->lets);
  pln_mem_free(e, s->depth, k * sizeof *s->depth);
  pln_mem_free(e, s->uses, n * sizeof *s->uses);
  pln_mem_free(e, s->first, n * sizeof *s->first);
  s->live = s->impure = s->uses = NULL;
  s->node_scope = s->lets = s->depth = NULL;
  s->first = NULL;
}

static pln_status fill_tables(dce_rewrite *s) {
  const pln_graph *g = s->graph;
  const pln_purity *purity;
  pln_graph_node_scopes(g, s->node_scope);
  if (s->first)
    pln_let_first_users(g, s->first);
  for (pln_scope k = 1; k < g->n_scopes; k++)
    s->depth[k] = s->depth[g->scopes[k].parent] +
                  (g->nodes[g->scopes[k].owner].kind == PLN_FUNCTION);
  if (s->effects && !s->ignore_impurity) {
    PLN_TRY(pln_run_purity(s->run, &purity));
    PLN_TRY(pln_purity_mark(purity, pln_run_module(s->run), g, s->impure));
  }
  return find_live(s);
}

/* The result of a sweep replaces the graph of an earlier one. */
static pln_status eliminate_with_tables(dce_rewrite *s) {
  pln_graph *g = pln_graph_retain(s->graph);
  pln_status status = new_tables(s);
  if (status == PLN_OK)
    status = fill_tables(s);
  if (status == PLN_OK)
    status = eliminate(s);
  free_tables(s, g);
  pln_graph_release(g);
  return status;
}

static pln_status sweep_once(dce_rewrite *s) {
  bool lets;
  s->kept = s->effects = s->again = false;
  find_lets_and_effects(s, &lets);
  return lets || (s->effects && s->ignore_impurity) ? eliminate_with_tables(s)
                                                    : eliminate(s);
}

pln_status pln_pass_dead_code_elimination(pln_pass_run *run) {
  dce_rewrite s = {.run = run,
                   .graph = pln_run_function(run),
                   .inline_once = pln_run_int(run, "inline_once"),
                   .ignore_impurity = pln_run_int(run, "ignore_impurity")};
  PLN_TRY(pln_rule_tried(pln_run_engine(run), "drop", 0, 0));
  PLN_TRY(sweep_once(&s));
  for (uint32_t n = 1; s.again && n < MAX_SWEEPS; n++) {
    s.graph = run->new_function;
    PLN_TRY(sweep_once(&s));
  }
  return s.removed > 0 ? pln_run_count(run, "removed", s.removed) : PLN_OK;
}
