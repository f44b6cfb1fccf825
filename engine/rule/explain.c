/* explain.c: why a rule does not replace a node.
 *
 * Each variant of the rule is matched, its condition evaluated and its
 * replacement built, as in a rewrite, and what it built is dropped. The variant
 * that gets furthest explains the rule. Called by drive.c for each node of a
 * run with the option `explain`. */

#include "rule/set.h"

/* ----------------------------------------------------------------- the order
 */

/* Returns true if `a` gets further than `b`. */
static bool is_better(const pln_rule_explanation *a,
                      const pln_rule_explanation *b) {
  if (a->stage != b->stage)
    return a->stage > b->stage;
  return (uint64_t)a->matched * b->total > (uint64_t)b->matched * a->total;
}

/* Inserts an explanation; earlier ones come before equal ones. */
static void insert(pln_rule_explain *x, const pln_rule_explanation *new) {
  uint32_t i = x->n;
  while (i && is_better(new, &x->best[i - 1]))
    i--;
  if (i == x->capacity)
    return;
  if (x->n < x->capacity)
    x->n++;
  memmove(x->best + i + 1, x->best + i, (x->n - i - 1) * sizeof *x->best);
  x->best[i] = *new;
}

/* ------------------------------------------------------------------ the place
 */

/* The part of the text that a pattern or an expression is. */
static void set_text(pln_rule_explanation *x, const pln_ast *a, uint32_t at) {
  x->begin = a->nodes[at].position;
  x->end = a->nodes[at].end;
  for (uint32_t i = a->nodes[at].begin; i < at; i++)
    if (a->nodes[i].position < x->begin)
      x->begin = a->nodes[i].position;
}

static void set_place(pln_rule_explanation *x, const pln_rule_match *m,
                      uint32_t at) {
  const pln_graph *g = pln_rule_graph(m);
  const pln_pattern_node *p = &m->set->patterns[m->variant->first + at];
  uint32_t count;
  set_text(x, &m->rule->ast, p->ast);
  while (p->parent != PLN_MATCH_ROOT && x->depth < PLN_EXPLAINED_DEPTH) {
    const pln_ref *operands = pln_rule_bound_operands(
        &m->run->lets.now, g, m->nodes[p->parent], &count);
    x->path[x->depth++] =
        pln_rule_bound_index(&m->run->lets.now, g, operands, count, p->arg);
    p = &m->set->patterns[m->variant->first + p->parent];
  }
  for (uint32_t i = 0; i < x->depth / 2; i++) {
    uint32_t swapped = x->path[i];
    x->path[i] = x->path[x->depth - 1 - i];
    x->path[x->depth - 1 - i] = swapped;
  }
}

/* ----------------------------------------------------------------- a variant
 */

/* Continues after the pattern matched. */
static pln_status explain_rest(pln_rule_match *m, pln_rule_explanation *x) {
  const pln_ast *a = &m->rule->ast;
  bool holds;
  pln_ref answer;
  x->matched = x->total;
  x->stage = PLN_STAGE_CONDITION;
  PLN_TRY(pln_rule_check_condition(m, &holds));
  if (!holds) {
    if (a->condition != PLN_NONE)
      set_text(x, a, a->condition);
    return PLN_OK;
  }
  x->stage = PLN_STAGE_REPLACEMENT;
  PLN_TRY(pln_rule_build_answer(m, &answer));
  if (answer != PLN_NONE) {
    x->stage = PLN_STAGE_APPLIES;
    m->reason = NULL;
  } else if (a->replacement != PLN_NONE) {
    set_text(x, a, a->replacement);
  }
  return PLN_OK;
}

static pln_status explain_variant(pln_rule_match *m, uint32_t variant,
                                  pln_rule_explanation *x) {
  bool matches;
  m->variant = &m->set->variants[variant];
  *x = (pln_rule_explanation){.rule = m->variant->rule,
                              .root = m->root,
                              .node = PLN_NONE,
                              .total = m->variant->count};
  PLN_TRY(pln_rule_find_match(m, &matches));
  if (matches) {
    PLN_TRY(explain_rest(m, x));
  } else {
    /* attributes are compared when all nodes match */
    bool attributes = m->failed_attribute != PLN_NONE;
    x->stage = attributes ? PLN_STAGE_ATTRIBUTES : PLN_STAGE_STRUCTURE;
    x->matched = attributes ? x->total : m->failed_at;
    set_place(x, m, m->failed_at);
    if (attributes)
      set_text(x, &m->rule->ast, m->failed_attribute);
  }
  x->reason = m->reason;
  return PLN_OK;
}

/* The variant of the rule that gets furthest. */
static pln_status explain_rule(pln_rule_match *m, uint32_t rule,
                               pln_rule_explanation *best) {
  const pln_rule_entry *entry = &m->set->rules[rule];
  pln_rule_explanation x;
  for (uint32_t i = 0; i < entry->n_variants; i++) {
    PLN_TRY(explain_variant(m, entry->first_variant + i, &x));
    if (i == 0 || is_better(&x, best))
      *best = x;
  }
  return PLN_OK;
}

/* The node of the old graph at the explained place; PLN_NONE: there is none. */
static pln_ref find_place(const pln_rule_driver *r,
                          const pln_rule_explanation *x) {
  const pln_graph *g = pln_rewrite_old(r->rw);
  pln_ref node = x->depth < PLN_EXPLAINED_DEPTH ? x->root : PLN_NONE;
  for (uint32_t i = 0; node != PLN_NONE && i < x->depth; i++)
    node = pln_rule_bound_operand(&r->lets.old, g, node, x->path[i], true);
  return node;
}

pln_status pln_rule_explain_node(pln_rule_match *m, pln_ref node) {
  pln_rule_explain *wanted = m->run->options->explain;
  bool any = wanted->node == PLN_NONE, one = wanted->rule != PLN_NONE;
  if (!any && wanted->node != m->run->old)
    return PLN_OK;
  m->root = node;
  uint32_t end = one ? wanted->rule + 1 : m->set->n_rules;
  for (uint32_t rule = one ? wanted->rule : 0; rule < end; rule++) {
    pln_rule_explanation x;
    PLN_TRY(explain_rule(m, rule, &x));
    x.root = m->run->old;
    if (x.stage <= PLN_STAGE_ATTRIBUTES)
      x.node = find_place(m->run, &x);
    if (!any || x.matched || x.stage)
      insert(wanted, &x);
  }
  return PLN_OK;
}
