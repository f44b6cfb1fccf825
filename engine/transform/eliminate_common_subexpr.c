/* eliminate_common_subexpr.c: replaces equal computations by one.
 *
 * Run by the executor, once per function. Requires a verified graph. A node is
 * replaced by an earlier equal one that is visible in its scope. Never merged:
 * nodes with effects, nodes of sibling scopes, functions, branches. Constants
 * up to 1 KiB are compared by content, larger ones by address. Two calls that
 * give integers are also equal if their symbolic values are fully known and
 * equal, such as the extent N read from two different tensors.
 *
 *     %0 = tanh(%x); %1 = tanh(%x); add(%0, %1)
 *       =>   %0 = tanh(%x); add(%0, %0)
 *
 * Semantics: TVM EliminateCommonSubexpr, extended to every kind and scope. */

#include "ir/rewrite/rewrite.h"
#include "transform/transform.h"

typedef struct cse_rewrite {
  pln_engine *engine;
  pln_idmap *by_value;   /* type and value -> old node + 1; NULL until needed */
  pln_scope *node_scope; /* by old node; NULL until needed */
  int64_t merged;
  bool watched;
} cse_rewrite;

/* ------------------------------------------------------------------- values
 */

static bool is_known_value(const pln_engine *e, pln_value value) {
  const pln_dim *elements = pln_value_elements(e, value);
  for (uint32_t i = 0; i < pln_value_count(e, value); i++)
    if (elements[i] == PLN_DIM_UNKNOWN)
      return false;
  return true;
}

static pln_status need_table(cse_rewrite *m, const pln_graph *old) {
  if (m->by_value)
    return PLN_OK;
  m->node_scope = pln_mem_new(m->engine, old->n_nodes * sizeof *m->node_scope);
  if (!m->node_scope)
    return pln_nomem(m->engine);
  pln_graph_node_scopes(old, m->node_scope);
  return pln_idmap_new(m->engine, &m->by_value);
}

/* Returns true if `before` is in the scope of `old` or in one that encloses
 * it. */
static bool is_visible(const cse_rewrite *m, const pln_graph *g, pln_ref before,
                       pln_ref old) {
  const pln_scope_row *row = &g->scopes[m->node_scope[before]];
  return row->begin <= old && old < row->end;
}

/* Replaces the call by an earlier one of the same type and value, if there is
 * one. */
static pln_status merge_equal_call(cse_rewrite *m, pln_rewrite *rw, pln_ref old,
                                   pln_ref node, pln_ref *out) {
  const pln_graph *g = pln_rewrite_graph(rw);
  const pln_node *n = &g->nodes[node];
  pln_value value = g->values[node];
  *out = node;
  if (!value || n->kind != PLN_CALL || n->results ||
      pln_flags_effect(n->flags) != PLN_EFFECT_NONE ||
      !is_known_value(m->engine, value))
    return PLN_OK;
  PLN_TRY(need_table(m, pln_rewrite_old(rw)));
  uint64_t key = (uint64_t)n->type << 32 | value;
  uint32_t before = pln_idmap_get(m->by_value, key);
  if (before && is_visible(m, pln_rewrite_old(rw), before - 1, old)) {
    *out = pln_rewrite_image(rw, before - 1);
    return PLN_OK;
  }
  return pln_idmap_set(m->by_value, key, old + 1);
}

/* -------------------------------------------------------------------- sweep
 */

static pln_status find_equal_node(cse_rewrite *m, pln_rewrite *rw, pln_ref old,
                                  pln_ref *node) {
  pln_ref shared;
  bool allowed;
  pln_type type = pln_rewrite_graph(rw)->nodes[*node].type;
  PLN_TRY(pln_rewrite_number_value(rw, *node, &shared));
  if (shared == *node)
    PLN_TRY(merge_equal_call(m, rw, old, *node, &shared));
  if (shared == *node)
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(rw, "merge", &allowed));
  if (!allowed)
    return PLN_OK;
  PLN_TRY(pln_rewrite_merge_origin(rw, shared));
  m->merged++;
  *node = shared;
  return pln_keep_rank(rw, shared, type);
}

static pln_status merge_common_node(void *ud, pln_rewrite *rw, pln_ref old,
                                    pln_ref *node) {
  cse_rewrite *m = ud;
  if (!m->watched)
    return find_equal_node(m, rw, old, node);
  double began = pln_rule_clock(m->engine);
  PLN_TRY(find_equal_node(m, rw, old, node));
  return pln_rule_tried(m->engine, "merge", 1, began);
}

pln_status pln_pass_eliminate_common_subexpr(pln_pass_run *run) {
  cse_rewrite m = {.engine = pln_run_engine(run)};
  m.watched = pln_rules_watched(m.engine);
  pln_mutator mutator = {
      .ud = &m, .visit = merge_common_node, .keeps_types = true};
  const pln_graph *old = pln_run_function(run);
  pln_status status = pln_rewrite_function(run, &mutator);
  if (m.by_value)
    pln_idmap_free(m.by_value);
  if (m.node_scope)
    pln_mem_free(m.engine, m.node_scope, old->n_nodes * sizeof *m.node_scope);
  PLN_TRY(status);
  return m.merged ? pln_run_count(run, "merged", m.merged) : PLN_OK;
}
