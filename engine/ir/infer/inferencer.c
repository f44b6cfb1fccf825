/* infer/inferencer.c: type inference for whole graphs by unification
 * (Hindley-Milner).
 *
 * Called by infer/module.c for functions that need each other. Each node has a
 * term, which is a type with holes. A worklist applies the rules of nodes,
 * which unify terms of nodes and operands, in array order. A rule that lacks
 * information waits for a hole. When no rule is ready, the waiting ones are run
 * in order with what is known. Types known before are neither inferred again
 * nor changed. */

#include "ir/infer/inferencer.h"
#include "ir/graph/describe.h"
#include "ir/graph/module.h"
#include "ir/infer/check_calls.h"
#include "ir/infer/digest.h"
#include "ir/infer/type_args.h"

/* ---------------------------------------------------------------- lifetime */

void pln_inferencer_init(pln_inferencer *t, pln_engine *engine,
                         const pln_module *module) {
  *t = (pln_inferencer){.engine = engine, .module = module};
  t->lenient = module && pln_module_was_onnx(module);
  t->most_refused = PLN_MOST_REFUSED;
  pln_unifier_init(&t->u, engine);
}

static void free_graph(pln_engine *e, pln_inferencer_graph *g) {
  size_t n = g->old->n_nodes;
  pln_mem_free(e, g->terms, n * sizeof *g->terms);
  pln_mem_free(e, g->open, n * sizeof *g->open);
  pln_mem_free(e, g->refused, n * sizeof *g->refused);
  pln_mem_free(e, g->node_scope, n * sizeof *g->node_scope);
  pln_graph_release(g->graph);
}

void pln_inferencer_free(pln_inferencer *t) {
  for (uint32_t i = 0; i < t->n_graphs; i++)
    free_graph(t->engine, &t->graphs[i]);
  pln_mem_free(t->engine, t->graphs, t->cap_graphs * sizeof *t->graphs);
  pln_idmap_free(t->met);
  pln_unifier_free(&t->u);
}

/* ------------------------------------------------------------------- terms */

static bool is_open(const pln_engine *e, pln_type type) {
  return pln_type_flags(e, type) & PLN_TYPE_HAS_HOLE;
}

bool pln_is_untyped(pln_kind kind) {
  return kind == PLN_ABSENT || kind == PLN_OP || kind == PLN_LET ||
         kind == PLN_CLAUSE || kind == PLN_PATTERN_WILDCARD ||
         pln_kinds[kind].kind_class >= PLN_CLASS_PRIM;
}

bool pln_graph_is_open(const pln_graph *graph) {
  for (pln_ref ref = 0; ref < graph->n_nodes; ref++)
    if (is_open(graph->engine, graph->nodes[ref].type) &&
        !pln_is_untyped((pln_kind)graph->nodes[ref].kind))
      return true;
  return false;
}

static bool has_open_tensor(const pln_engine *e, pln_type type) {
  return pln_type_flags(e, type) & PLN_TYPE_HAS_OPEN_TENSOR;
}

static bool uses_open(const pln_inferencer_graph *g, const pln_node *n) {
  const pln_graph *old = g->old;
  for (uint32_t i = 0; i < n->count; i++)
    if (g->open[old->operands[n->first + i]])
      return true;
  if (!pln_owns(n))
    return false;
  for (pln_scope s = n->data; s != PLN_NONE; s = old->scopes[s].next)
    if (g->open[old->scopes[s].result])
      return true;
  return false;
}

/* True if a function's type became more precise than its mention. */
static bool is_outdated(const pln_inferencer *t, const pln_node *n) {
  if (n->kind != PLN_GLOBAL_VAR || !t->module ||
      !has_open_tensor(t->engine, n->type))
    return false;
  uint32_t i = pln_module_find(t->module, n->data);
  if (i == PLN_NONE)
    return false;
  const pln_graph *f = pln_module_function_at(t->module, i);
  return (t->along && t->along[i]) || (f->nodes[f->root].type != n->type &&
                                       f->nodes[f->root].kind != PLN_PRIM_FUNC);
}

/* A node is open if its type is incomplete, or was inferred from incomplete
 * types; a let passes this on to its variable. */
static void find_open(const pln_inferencer *t, pln_inferencer_graph *g) {
  const pln_engine *e = t->engine;
  for (pln_ref ref = 0; ref < g->old->n_nodes; ref++) {
    const pln_node *n = &g->old->nodes[ref];
    bool untyped = pln_is_untyped((pln_kind)n->kind);
    g->open[ref] = !untyped && (is_open(e, n->type) || is_outdated(t, n));
    if (!untyped && has_open_tensor(e, n->type) && uses_open(g, n))
      g->open[ref] = true;
    if (n->kind != PLN_LET)
      continue;
    const pln_ref *lr = pln_operands(g->old, n);
    if (g->open[lr[1]] && has_open_tensor(e, g->old->nodes[lr[0]].type) &&
        g->old->nodes[lr[0]].type == g->old->nodes[lr[1]].type)
      g->open[lr[0]] = true;
  }
}

/* The parameters precede their function. An undeclared result type is that of
 * the body. */
static pln_status function_term(pln_inferencer *t, pln_inferencer_graph *g,
                                pln_ref ref) {
  pln_engine *e = t->engine;
  const pln_node *n = &g->old->nodes[ref];
  const pln_scope_row *row = &g->old->scopes[n->data];
  pln_type ret = 0;
  if (pln_type_get_kind(e, n->type) == PLN_TYPE_FUNC)
    ret = pln_type_part_at(e, n->type, pln_type_n_parts(e, n->type) - 1);
  if (g->open[row->result] && ret == g->old->nodes[row->result].type)
    ret = 0;
  PLN_TRY(pln_unifier_open(&t->u, ret, &ret));
  PLN_TRY(pln_type_func(e, row->n_params, g->terms + row->begin, ret, 0, NULL,
                        0, NULL, &g->terms[ref]));
  if (!row->type_params)
    return PLN_OK;
  return pln_type_generic(e, g->terms[ref], row->type_params, &g->terms[ref]);
}

static pln_status first_term(pln_inferencer *t, pln_inferencer_graph *g,
                             pln_ref ref) {
  const pln_node *n = &g->old->nodes[ref];
  g->terms[ref] = n->type;
  if (!g->open[ref] && n->kind != PLN_OP)
    return PLN_OK;
  if (n->kind == PLN_FUNCTION)
    return function_term(t, g, ref);
  if (n->kind == PLN_VAR && is_open(t->engine, n->type))
    return pln_unifier_open(&t->u, n->type, &g->terms[ref]);
  return pln_unifier_hole(&t->u, &g->terms[ref]);
}

/* The type of a let variable follows its value's type. If that was inferred
 * from unknown operands, it is inferred again. */
static pln_status relax_lets(pln_inferencer *t, pln_inferencer_graph *g) {
  for (pln_ref ref = 0; ref < g->old->n_nodes; ref++) {
    if (g->old->nodes[ref].kind != PLN_LET)
      continue;
    const pln_ref *lr = pln_operands(g->old, &g->old->nodes[ref]);
    pln_type type = g->old->nodes[lr[0]].type;
    if (g->open[lr[0]] && g->open[lr[1]] && has_open_tensor(t->engine, type) &&
        type == g->old->nodes[lr[1]].type)
      PLN_TRY(pln_unifier_resolve_relaxed(&t->u, type, &g->terms[lr[0]]));
  }
  return PLN_OK;
}

static pln_status alloc_node_terms(pln_inferencer *t, pln_inferencer_graph *g) {
  size_t n = g->old->n_nodes;
  g->terms = pln_mem_zeroed(t->engine, n * sizeof *g->terms);
  g->node_scope = pln_mem_new(t->engine, n * sizeof *g->node_scope);
  g->open = pln_mem_zeroed(t->engine, n * sizeof *g->open);
  g->refused = pln_mem_zeroed(t->engine, n * sizeof *g->refused);
  if (!g->terms || !g->node_scope || !g->open || !g->refused)
    return pln_nomem(t->engine);
  find_open(t, g);
  pln_graph_node_scopes(g->old, g->node_scope);
  PLN_TRY(pln_graph_copy(g->old, &g->graph));
  for (pln_ref ref = 0; ref < n; ref++) {
    PLN_TRY(pln_poll_round(t->engine, ref));
    PLN_TRY(first_term(t, g, ref));
  }
  return relax_lets(t, g);
}

pln_status pln_inferencer_add(pln_inferencer *t, pln_symbol name,
                              const pln_graph *graph) {
  if (graph->n_nodes > UINT32_MAX / 2 - t->n_ids)
    return pln_diag_error(t->engine, PLN_ERR_LIMIT, NULL,
                          "functions that call each other have more than 2^31 "
                          "nodes");
  PLN_TRY(pln_mem_grow(t->engine, (void **)&t->graphs, &t->cap_graphs,
                       (size_t)t->n_graphs + 1, sizeof *t->graphs));
  pln_inferencer_graph *g = &t->graphs[t->n_graphs++];
  *g = (pln_inferencer_graph){.name = name, .old = graph, .base = t->n_ids};
  t->n_ids += graph->n_nodes;
  return alloc_node_terms(t, g);
}

/* ----------------------------------------------------------------- solving */

/* The graph of the waiting node `id`. */
static pln_inferencer_graph *graph_of(pln_inferencer *t, uint32_t id) {
  uint32_t low = 0, high = t->n_graphs;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (t->graphs[middle].base <= id)
      low = middle;
    else
      high = middle;
  }
  return &t->graphs[low];
}

/* Reports contradictions up to a limit. Terms left open by one become
 * unconstrained, so that it is reported once. */
static pln_status record_refusal(pln_inferencer *t, pln_inferencer_graph *g,
                                 pln_ref ref, pln_status status) {
  if (status != PLN_ERR_TYPE)
    return status;
  const pln_node *n = &g->old->nodes[ref];
  pln_ref at = n->kind == PLN_CLAUSE ? pln_operand(g->old, ref, 0) : ref;
  PLN_TRY(pln_annotate_node_of(g->graph, at, g->name));
  g->refused[ref] = true;
  return ++t->n_refused < t->most_refused ? PLN_OK : status;
}

static pln_status apply_rule(pln_inferencer *t, pln_inferencer_graph *g,
                             pln_ref ref, bool last) {
  if (g->refused[ref])
    return PLN_OK;
  return record_refusal(t, g, ref, pln_constraint_rule(t, g, ref, last));
}

static pln_status apply_ready_rules(pln_inferencer *t) {
  uint32_t id;
  while (pln_unifier_next_ready(&t->u, &id)) {
    pln_inferencer_graph *g = graph_of(t, id);
    PLN_TRY(apply_rule(t, g, id - g->base, false));
  }
  return PLN_OK;
}

pln_status pln_inferencer_check_node(pln_inferencer *t, uint32_t index,
                                     pln_ref ref) {
  PLN_TRY(apply_rule(t, &t->graphs[index], ref, false));
  return apply_ready_rules(t);
}

/* A rule runs when its node or an operand is open. */
static bool rule_applies(const pln_inferencer_graph *g, pln_ref ref) {
  const pln_node *n = &g->old->nodes[ref];
  pln_ref data = n->kind == PLN_CLAUSE ? pln_clause_data(g, ref) : PLN_NONE;
  return g->open[ref] || n->kind == PLN_OP || uses_open(g, n) ||
         (data != PLN_NONE && g->open[data]);
}

static pln_status ask_all(pln_inferencer *t, pln_inferencer_graph *g,
                          bool last) {
  for (pln_ref ref = 0; ref < g->old->n_nodes; ref++) {
    if (!rule_applies(g, ref))
      continue;
    PLN_TRY(apply_rule(t, g, ref, last));
    PLN_TRY(apply_ready_rules(t));
  }
  return PLN_OK;
}

/* Propagates results to operands, users first. */
static pln_status ask_back(pln_inferencer *t, pln_inferencer_graph *g) {
  for (pln_ref ref = g->old->n_nodes; ref-- > 0;) {
    const pln_node *n = &g->old->nodes[ref];
    PLN_TRY(pln_poll_round(t->engine, ref));
    if (n->kind != PLN_CALL || !n->data || g->refused[ref] || !uses_open(g, n))
      continue;
    PLN_TRY(
        record_refusal(t, g, ref, pln_inferencer_infer_operands(t, g, ref)));
    PLN_TRY(apply_ready_rules(t));
  }
  return PLN_OK;
}

/* The last round: rules that still wait use what is known. */
static pln_status ask_again(pln_inferencer *t, pln_inferencer_graph *g) {
  for (pln_ref ref = 0; ref < g->old->n_nodes; ref++) {
    const pln_node *n = &g->old->nodes[ref];
    if (n->kind != PLN_CALL || !n->data || !g->open[ref])
      continue;
    pln_type found = pln_unifier_find(&t->u, g->terms[ref]);
    if (pln_type_get_kind(t->engine, found) != PLN_TYPE_HOLE)
      continue;
    PLN_TRY(apply_rule(t, g, ref, true));
    PLN_TRY(apply_ready_rules(t));
  }
  return PLN_OK;
}

pln_status pln_inferencer_solve(pln_inferencer *t) {
  for (uint32_t i = 0; i < t->n_graphs; i++)
    PLN_TRY(ask_all(t, &t->graphs[i], false));
  for (uint32_t i = t->n_graphs; i-- > 0;)
    PLN_TRY(ask_back(t, &t->graphs[i]));
  for (uint32_t i = 0; i < t->n_graphs; i++)
    PLN_TRY(ask_again(t, &t->graphs[i]));
  pln_unifier_freeze(&t->u);
  return t->n_refused > 0 ? PLN_ERR_TYPE : PLN_OK;
}

/* ----------------------------------------------------------------- results */

/* Types known before are kept. */
static pln_status found_type(pln_inferencer *t, pln_inferencer_graph *g,
                             pln_ref ref, pln_type *out) {
  const pln_node *n = &g->old->nodes[ref];
  pln_status status = pln_unifier_resolve(&t->u, g->terms[ref], out, NULL);
  if (status == PLN_ERR_TYPE)
    PLN_TRY(pln_annotate_node_of(g->graph, ref, g->name));
  PLN_TRY(status);
  if (!n->type || !has_open_tensor(t->engine, n->type))
    return PLN_OK;
  bool conflict;
  return pln_type_meet_again(t->engine, *out, n->type, &t->met, out, &conflict);
}

/* A GlobalVar has its function's type, whatever its calls imply. */
static pln_status global_type(pln_inferencer *t, pln_inferencer_graph *g,
                              pln_ref ref, pln_type *out) {
  uint32_t i = PLN_NONE;
  if (t->module)
    i = pln_module_find(t->module, g->old->nodes[ref].data);
  if (i == PLN_NONE)
    return found_type(t, g, ref, out);
  if (t->along && t->along[i]) {
    pln_inferencer_graph *callee = &t->graphs[t->along[i] - 1];
    *out = callee->old->nodes[callee->old->root].type;
    if (!callee->open[callee->old->root])
      return PLN_OK;
    return found_type(t, callee, callee->old->root, out);
  }
  const pln_graph *f = pln_module_function_at(t->module, i);
  if (pln_has_own_type(g->old, &g->old->nodes[ref], f))
    return found_type(t, g, ref, out);
  *out = f->nodes[f->root].type;
  return PLN_OK;
}

/* Records the digest: the rules found consistent types. */
static void note(pln_graph *g, pln_ref ref) {
  if (g->typed_from[ref] != PLN_TYPED_REFUSED)
    pln_type_digest_record(g, ref);
}

pln_status pln_inferencer_result(pln_inferencer *t, uint32_t index,
                                 pln_graph **out) {
  pln_inferencer_graph *g = &t->graphs[index];
  bool changed = false, matches;
  for (pln_ref ref = 0; ref < g->old->n_nodes; ref++) {
    const pln_node *n = &g->old->nodes[ref];
    pln_type type = n->type;
    PLN_TRY(pln_poll_round(t->engine, ref));
    if (g->open[ref] && n->kind == PLN_GLOBAL_VAR)
      PLN_TRY(global_type(t, g, ref, &type));
    else if (g->open[ref])
      PLN_TRY(found_type(t, g, ref, &type));
    g->graph->nodes[ref].type = type;
    if (g->open[ref] && pln_has_callee(n))
      PLN_TRY(pln_drop_redundant_type_args(g->graph, ref));
    changed = changed || type != n->type;
    matches = pln_type_digest_matches(g->old, ref);
    if (g->open[ref] || matches)
      note(g->graph, ref);
  }
  *out = pln_graph_retain(changed ? g->graph : g->old);
  return PLN_OK;
}
