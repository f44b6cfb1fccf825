/* infer/check_uses.c: rechecks nodes that were built before an operand's type
 * was known, now that it is known.
 *
 * The verifier runs it for graphs with such nodes, InferType at its end. Most
 * graphs have none. The inference rules run for those nodes alone, once and in
 * order. Invariant: it refuses nothing that InferType accepts. */

#include "ir/infer/check_uses.h"
#include "ir/graph/describe.h"
#include "ir/graph/module.h"
#include "ir/infer/check_calls.h"
#include "ir/infer/inferencer.h"

/* Per node: the variable is used; it is used before its let; its rule will
 * run. */
enum { USED = 1, EARLY = 2, REQUESTED = 4 };

static pln_status infer_marked_nodes(const pln_graph *g,
                                     const pln_module *module,
                                     const uint8_t *marks) {
  pln_inferencer t;
  pln_inferencer_init(&t, g->engine, module);
  t.most_refused = 1;
  pln_status status = pln_inferencer_add(&t, 0, g);
  for (pln_ref ref = 0; ref < g->n_nodes && status == PLN_OK; ref++)
    if (marks[ref] & REQUESTED)
      status = pln_inferencer_check_node(&t, 0, ref);
  pln_inferencer_free(&t);
  return status;
}

/* -------------------------------------------------------------- early uses */

static bool has_lets(const pln_graph *g) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (g->nodes[ref].kind == PLN_LET)
      return true;
  return false;
}

static void mark_used(const pln_graph *g, const pln_node *n, uint8_t *marks) {
  for (uint32_t i = n->kind == PLN_LET; i < n->count; i++)
    marks[g->operands[n->first + i]] |= USED;
  for (pln_scope s = pln_owns(n) ? n->data : PLN_NONE; s != PLN_NONE;
       s = g->scopes[s].next)
    marks[g->scopes[s].result] |= USED;
}

/* Finds variables that are used before their let. */
static bool find_early(const pln_graph *g, uint8_t *marks) {
  bool any = false;
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    mark_used(g, n, marks);
    if (n->kind != PLN_LET || !(marks[g->operands[n->first]] & USED))
      continue;
    marks[g->operands[n->first]] |= EARLY;
    any = true;
  }
  return any;
}

static bool uses_early(const pln_graph *g, const pln_node *n,
                       const uint8_t *marks) {
  for (uint32_t i = 0; i < n->count; i++)
    if (marks[g->operands[n->first + i]] & EARLY)
      return true;
  for (pln_scope s = pln_owns(n) ? n->data : PLN_NONE; s != PLN_NONE;
       s = g->scopes[s].next)
    if (marks[g->scopes[s].result] & EARLY)
      return true;
  return false;
}

/* Marks the patterns that a Match compares its data with. */
static void ask_clauses(const pln_graph *g, const pln_node *match,
                        uint8_t *marks) {
  for (pln_scope s = match->data; s != PLN_NONE; s = g->scopes[s].next) {
    pln_ref at = g->scopes[s].begin + g->scopes[s].n_params;
    while (at < g->scopes[s].end && g->nodes[at].kind != PLN_CLAUSE)
      at++;
    if (at < g->scopes[s].end)
      marks[at] |= REQUESTED;
  }
}

static void ask_users(const pln_graph *g, uint8_t *marks) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++) {
    const pln_node *n = &g->nodes[ref];
    if (!uses_early(g, n, marks))
      continue;
    marks[ref] |= REQUESTED;
    if (n->kind == PLN_MATCH && pln_owns(n))
      ask_clauses(g, n, marks);
  }
}

pln_status pln_graph_check_early_uses(const pln_graph *graph) {
  if ((graph->origins && graph->origins->mismatched_calls) || !has_lets(graph))
    return PLN_OK;
  uint8_t *marks = pln_mem_zeroed(graph->engine, graph->n_nodes);
  if (!marks)
    return pln_nomem(graph->engine);
  pln_status status = PLN_OK;
  if (find_early(graph, marks)) {
    ask_users(graph, marks);
    status = infer_marked_nodes(graph, NULL, marks);
  }
  pln_mem_free(graph->engine, marks, graph->n_nodes);
  return status;
}

pln_status pln_module_check_early_uses(const pln_module *module) {
  for (uint32_t i = 0; i < module->count; i++)
    PLN_TRY(pln_annotate_function(
        module, i,
        pln_graph_check_early_uses(pln_module_function_at(module, i))));
  return PLN_OK;
}

/* ------------------------------------------------------------ constructors */

/* True for constructors, their calls, patterns, and the data matched by
 * patterns. */
static bool concerns_constructors(const pln_graph *g, const pln_node *n) {
  if (n->kind == PLN_CALL)
    return !n->data && g->nodes[g->operands[n->first]].kind == PLN_CONSTRUCTOR;
  return n->kind == PLN_CONSTRUCTOR ||
         pln_kinds[n->kind].kind_class == PLN_CLASS_PATTERN;
}

static pln_status check_untyped(const pln_graph *g, const pln_module *module) {
  uint8_t *marks = pln_mem_zeroed(g->engine, g->n_nodes);
  if (!marks)
    return pln_nomem(g->engine);
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (concerns_constructors(g, &g->nodes[ref]))
      marks[ref] = REQUESTED;
  pln_status status = infer_marked_nodes(g, module, marks);
  pln_mem_free(g->engine, marks, g->n_nodes);
  return status;
}

static pln_status check_constructor_name(const pln_graph *g,
                                         const pln_module *module,
                                         pln_ref ref) {
  uint32_t index;
  pln_symbol name = g->nodes[ref].data;
  if (pln_module_find_constructor(module, name, &index) != PLN_NONE)
    return PLN_OK;
  pln_diag_error(g->engine, PLN_ERR_TYPE, NULL,
                 "the module defines no constructor '%s'",
                 pln_symbol_text(g->engine, name).data);
  PLN_TRY(pln_annotate_node_of(g, ref, 0));
  return PLN_ERR_TYPE;
}

pln_status pln_graph_check_constructors(const pln_graph *graph,
                                        const pln_module *module) {
  bool untyped = false;
  for (pln_ref ref = 0; ref < graph->n_nodes; ref++) {
    const pln_node *n = &graph->nodes[ref];
    if (n->kind != PLN_CONSTRUCTOR && n->kind != PLN_PATTERN_CONSTRUCTOR)
      continue;
    PLN_TRY(check_constructor_name(graph, module, ref));
    untyped = untyped || !n->type;
  }
  return untyped ? check_untyped(graph, module) : PLN_OK;
}
