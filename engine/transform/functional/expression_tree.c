/* expression_tree.c: a sealed function read as the tree of its Relay
 * expressions, and copies of its atoms and patterns.
 *
 * Called by ToCPS, PartialEvaluate and Gradient. Linear in the graph. Effects
 * that nothing uses keep their place between the lets of their scope. */

#include "transform/functional/expression_tree.h"

#include "ir/graph/describe.h"
#include "transform/functional/let.h"

/* ------------------------------------------------------------------ sharing */

pln_status pln_refuse_node(const pln_graph *g, pln_ref node, const char *pass,
                           const char *why) {
  pln_description text;
  return pln_diag_error(g->engine, PLN_ERR_INVALID, NULL, "%s: %s: %s", pass,
                        pln_describe_node(g, node, &text), why);
}

/* Counts uses up to 2. */
static void count_use(uint8_t *uses, pln_ref node) {
  uses[node] = uses[node] ? 2 : 1;
}

static void count_uses(const pln_graph *g, uint8_t *uses) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    for (uint32_t i = 0; i < g->nodes[ref].count; i++)
      count_use(uses, pln_operand(g, ref, i));
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result != PLN_NONE)
      count_use(uses, g->scopes[s].result);
}

static bool is_shared_atom(const pln_node *n) {
  return n->kind == PLN_CONSTANT || pln_let_is_atom(n);
}

static pln_status check_sharing(const pln_graph *g, const uint8_t *uses,
                                const char *pass) {
  for (pln_ref ref = 0; ref < g->n_nodes; ref++)
    if (uses[ref] > 1 && !is_shared_atom(&g->nodes[ref]))
      return pln_refuse_node(g, ref, pass,
                             "a value with several uses that no let binds; run "
                             "ToANormalForm first");
  return PLN_OK;
}

/* --------------------------------------------------------------- statements */

static bool is_statement(const pln_graph *g, const uint8_t *uses, pln_ref ref) {
  const pln_node *n = &g->nodes[ref];
  if (n->kind == PLN_LET)
    return true;
  return !uses[ref] && pln_kinds[n->kind].kind_class == PLN_CLASS_EXPR &&
         n->flags & PLN_NODE_EFFECT;
}

/* Lists are made from the last node to the first. */
static pln_status list_statements(pln_expression_tree *t, const uint8_t *uses) {
  const pln_graph *g = t->graph;
  size_t size = g->n_nodes * sizeof(pln_scope);
  pln_scope *scope = pln_mem_new(g->engine, size);
  if (!scope)
    return pln_nomem(g->engine);
  pln_graph_node_scopes(g, scope);
  for (pln_ref ref = g->n_nodes; ref-- > 0;) {
    if (!is_statement(g, uses, ref))
      continue;
    t->next[ref] = t->first[scope[ref]];
    t->first[scope[ref]] = ref;
  }
  pln_mem_free(g->engine, scope, size);
  return PLN_OK;
}

pln_status pln_expression_tree_new(const pln_graph *g, const char *pass,
                                   pln_expression_tree *out) {
  size_t n = g->n_nodes, k = g->n_scopes;
  uint8_t *uses = pln_mem_zeroed(g->engine, n);
  *out = (pln_expression_tree){.graph = g};
  out->first = pln_mem_new(g->engine, k * sizeof *out->first);
  out->next = pln_mem_new(g->engine, n * sizeof *out->next);
  pln_status status = PLN_OK;
  if (!uses || !out->first || !out->next)
    status = pln_nomem(g->engine);
  if (status == PLN_OK) {
    memset(out->first, 0xff, k * sizeof *out->first);
    count_uses(g, uses);
    status = check_sharing(g, uses, pass);
  }
  if (status == PLN_OK)
    status = list_statements(out, uses);
  pln_mem_free(g->engine, uses, n);
  return status;
}

void pln_expression_tree_free(pln_expression_tree *t) {
  if (!t->graph)
    return;
  pln_engine *e = t->graph->engine;
  pln_mem_free(e, t->first, t->graph->n_scopes * sizeof *t->first);
  pln_mem_free(e, t->next, t->graph->n_nodes * sizeof *t->next);
  t->graph = NULL;
}

/* ------------------------------------------------------------------ copying */

pln_status pln_builder_derive(pln_builder *b, const pln_graph *from,
                              pln_ref node) {
  pln_origins *origins = pln_builder_origins(b);
  uint32_t origin;
  if (!origins)
    return PLN_ERR_NOMEM;
  PLN_TRY(pln_builder_import_origin(b, from, node, &origin));
  return pln_origins_step(origins, 0, origin, &b->origin);
}

pln_status pln_copy_atom(pln_builder *b, const pln_graph *from, pln_ref node,
                         pln_ref *out) {
  pln_node copy = from->nodes[node];
  if (copy.kind == PLN_CONSTANT)
    PLN_TRY(
        pln_graph_add_tensor(b->graph, from->tensors[copy.data], &copy.data));
  copy.flags &= (uint8_t)~PLN_NODE_KEEP;
  PLN_TRY(pln_builder_import_origin(b, from, node, &b->origin));
  PLN_TRY(pln_builder_append(b, &copy, 0, NULL, out));
  b->graph->values[*out] = from->values[node];
  b->graph->typed_from[*out] = from->typed_from[node];
  return PLN_OK;
}

static pln_status copy_pattern_node(pln_builder *b, const pln_graph *from,
                                    pln_ref node, pln_ref *map) {
  const pln_node *n = &from->nodes[node];
  size_t size = (n->count + (size_t)1) * sizeof(pln_ref);
  pln_ref *parts = pln_mem_new(b->engine, size);
  if (!parts)
    return pln_nomem(b->engine);
  for (uint32_t i = 0; i < n->count; i++)
    parts[i] = map[pln_operand(from, node, i)];
  pln_node copy = *n;
  pln_status status = pln_builder_add(b, &copy, n->count, parts, &map[node]);
  pln_mem_free(b->engine, parts, size);
  return status;
}

pln_status pln_copy_pattern(pln_builder *b, const pln_graph *from,
                            pln_scope arm, pln_ref *map) {
  const pln_scope_row *row = &from->scopes[arm];
  for (pln_ref ref = row->begin + row->n_params; ref < row->end; ref++) {
    if (pln_kinds[from->nodes[ref].kind].kind_class != PLN_CLASS_PATTERN)
      continue;
    PLN_TRY(copy_pattern_node(b, from, ref, map));
    if (from->nodes[ref].kind == PLN_CLAUSE)
      return PLN_OK;
  }
  return PLN_OK;
}
