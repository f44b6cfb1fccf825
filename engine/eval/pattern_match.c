/* pattern_match.c: selects the arm of a Match for a value and binds the arm's
 * pattern variables.
 *
 * Called by evaluator.c. Patterns are matched with an explicit stack, so their
 * depth does not matter; arms are tried in order. */

#include "eval/pattern_match.h"

static pln_status push_match_item(pln_pattern_matcher *f, pln_ref pattern,
                                  const pln_runtime_value *value) {
  PLN_TRY(pln_mem_grow(f->engine, (void **)&f->todo, &f->cap_todo,
                       (size_t)f->n_todo + 1, sizeof *f->todo));
  f->todo[f->n_todo++] = (pln_pattern_binding){pattern, value};
  return PLN_OK;
}

static pln_status bind_pattern_var(pln_pattern_matcher *f, pln_ref var,
                                   const pln_runtime_value *value) {
  PLN_TRY(pln_mem_grow(f->engine, (void **)&f->bound, &f->cap_bound,
                       (size_t)f->n_bound + 1, sizeof *f->bound));
  f->bound[f->n_bound++] = (pln_pattern_binding){var, value};
  return PLN_OK;
}

/* Pushes the pattern's fields with the value's fields. */
static pln_status open_fields(pln_pattern_matcher *f, const pln_graph *g,
                              pln_ref pattern, const pln_runtime_value *value,
                              bool *fits) {
  const pln_node *n = &g->nodes[pattern];
  if (n->kind == PLN_PATTERN_CONSTRUCTOR)
    *fits = value->kind == PLN_RUNTIME_ADT_VALUE && value->number == n->data;
  else
    *fits = value->kind == PLN_RUNTIME_TUPLE;
  *fits = *fits && pln_runtime_value_count(value) == n->count;
  for (uint32_t i = n->count; *fits && i-- > 0;)
    PLN_TRY(push_match_item(f, pln_operand(g, pattern, i),
                            pln_runtime_value_at(value, i)));
  return PLN_OK;
}

static pln_status match_pattern(pln_pattern_matcher *f, const pln_graph *g,
                                pln_ref pattern, const pln_runtime_value *value,
                                bool *fits) {
  f->n_bound = f->n_todo = 0;
  *fits = true;
  PLN_TRY(push_match_item(f, pattern, value));
  while (*fits && f->n_todo > 0) {
    pln_pattern_binding next = f->todo[--f->n_todo];
    pln_kind kind = (pln_kind)g->nodes[next.node].kind;
    if (kind == PLN_PATTERN_VAR)
      PLN_TRY(bind_pattern_var(f, pln_operand(g, next.node, 0), next.value));
    else if (kind != PLN_PATTERN_WILDCARD)
      PLN_TRY(open_fields(f, g, next.node, next.value, fits));
  }
  return PLN_OK;
}

/* The pattern of an arm: the node after its parameters and subpatterns. */
static pln_ref pattern_of(const pln_graph *g, pln_scope arm) {
  pln_ref at = g->scopes[arm].begin + g->scopes[arm].n_params;
  while (g->nodes[at].kind != PLN_CLAUSE)
    at++;
  return pln_operand(g, at, 0);
}

pln_status pln_pattern_match_arm(pln_pattern_matcher *matcher,
                                 const pln_graph *graph, pln_ref match,
                                 const pln_runtime_value *value,
                                 pln_scope *out) {
  bool fits = false;
  pln_scope arm = graph->nodes[match].data;
  while (arm != PLN_NONE && !fits) {
    *out = arm;
    PLN_TRY(
        match_pattern(matcher, graph, pattern_of(graph, arm), value, &fits));
    arm = graph->scopes[arm].next;
  }
  if (!fits)
    *out = PLN_NONE;
  return PLN_OK;
}

void pln_pattern_matcher_end(pln_pattern_matcher *matcher) {
  pln_engine *e = matcher->engine;
  pln_mem_free(e, matcher->bound, matcher->cap_bound * sizeof *matcher->bound);
  pln_mem_free(e, matcher->todo, matcher->cap_todo * sizeof *matcher->todo);
}
