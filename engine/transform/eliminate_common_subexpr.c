/* eliminate_common_subexpr.c: replaces equal computations by one.
 *
 * Run by the executor, once per function. Requires a verified graph. A node is
 * replaced by an earlier equal one that is visible in its scope. Never merged:
 * nodes with effects, nodes of sibling scopes, functions, branches. Constants
 * up to 1 KiB are compared by content, larger ones by address. Two calls that
 * give integers are also equal if their symbolic values are fully known and
 * equal, such as the extent N read from two different tensors. Equal scalars
 * stay apart, except in ONNX's functions (unshare_scalars.c). A call or
 * projection of which the function `fskip` says true is neither replaced nor
 * taken as a replacement.
 *
 *     %0 = tanh(%x); %1 = tanh(%x); add(%0, %1)
 *       =>   %0 = tanh(%x); add(%0, %0)
 *
 * Semantics: TVM EliminateCommonSubexpr, extended to every kind and scope. */

#include "ir/rewrite/rewrite.h"
#include "transform/unshare_scalars.h"

typedef struct cse_rewrite {
  pln_engine *engine;
  pln_idmap *by_value;   /* type and value -> old node + 1; NULL until needed */
  pln_scope *node_scope; /* by old node; NULL until needed */
  const pln_pass_run *run;
  const pln_predicate *skips; /* option fskip, or NULL */
  int64_t merged;             /* without scalars, which are taken apart again */
  bool watched, onnx;
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

/* Equal scalars are numbered alike, but stay apart in the end. */
static bool is_scalar(const pln_graph *g, pln_ref node) {
  const pln_node *n = &g->nodes[node];
  return n->kind == PLN_CONSTANT && pln_is_literal_scalar(g->tensors[n->data]);
}

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
  m->merged += m->onnx || !is_scalar(pln_rewrite_graph(rw), *node);
  *node = shared;
  return pln_keep_rank(rw, shared, type);
}

/* The old node is equal to the new one: merging changes no expression. */
static pln_status is_skipped(const cse_rewrite *m, const pln_graph *g,
                             pln_ref old, bool *skipped) {
  uint8_t kind = g->nodes[old].kind;
  *skipped = false;
  if (!m->skips || (kind != PLN_CALL && kind != PLN_TUPLE_GET_ITEM))
    return PLN_OK;
  return m->skips->call(m->skips->ud, m->run, g, old, skipped);
}

static pln_status merge_common_node(void *ud, pln_rewrite *rw, pln_ref old,
                                    pln_ref *node) {
  cse_rewrite *m = ud;
  bool skipped;
  PLN_TRY(is_skipped(m, pln_rewrite_old(rw), old, &skipped));
  if (skipped)
    return PLN_OK;
  if (!m->watched)
    return find_equal_node(m, rw, old, node);
  double began = pln_rule_clock(m->engine);
  PLN_TRY(find_equal_node(m, rw, old, node));
  return pln_rule_tried(m->engine, "merge", 1, began);
}

/* In ONNX's functions equal scalars stay one initializer. */
static pln_status set_merged(const cse_rewrite *m, pln_pass_run *run,
                             pln_graph *merged) {
  pln_graph *out = merged;
  if (m->merged == 0) {
    pln_graph_release(merged);
    return PLN_OK;
  }
  if (!m->onnx) {
    pln_status status = pln_unshare_scalars(merged, &out);
    pln_graph_release(merged);
    PLN_TRY(status);
  }
  pln_run_set_function(run, out);
  return pln_run_count(run, "merged", m->merged);
}

pln_status pln_pass_eliminate_common_subexpr(pln_pass_run *run) {
  const pln_graph *old = pln_run_function(run);
  cse_rewrite m = {.engine = pln_run_engine(run),
                   .run = run,
                   .onnx = pln_function_is_onnx(old)};
  m.watched = pln_rules_watched(m.engine);
  m.skips = pln_pass_predicate(pln_run_pass(run), "fskip");
  pln_mutator mutator = {
      .ud = &m, .visit = merge_common_node, .keeps_types = true};
  pln_graph *out;
  pln_status status = pln_graph_rewrite(old, &mutator, &out);
  if (m.by_value)
    pln_idmap_free(m.by_value);
  if (m.node_scope)
    pln_mem_free(m.engine, m.node_scope, old->n_nodes * sizeof *m.node_scope);
  PLN_TRY(status);
  return set_merged(&m, run, out);
}
