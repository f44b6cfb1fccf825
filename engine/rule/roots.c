/* roots.c: rules of several roots.
 *
 *     tanh(?x), negative(?x) => ?y@exp(?x), sin(?y)
 *
 * A rule is tried when the sweep meets the first of the calls, its anchor. The
 * others are looked for among the users, in the old graph, of the variable that
 * they share with the anchor. They are copied into the new graph, where the
 * variant is then matched as any other; so their operands must be swept, or be
 * constants. Their replacements are noted for when the sweep meets them.
 *
 * Called by drive.c and explain.c. */

#include "ir/rewrite/rewrite.h"
#include "rule/set.h"

/* MAX_SCANNED users are looked at, so that a node of many users costs no more
 * than its share. */
enum {
  MAX_SCANNED = 256,
  MAX_CANDIDATES = 16,
  MAX_COMBINATIONS = 64,
  MAX_COPIED = 64
};

/* The calls that may be the other roots. */
typedef struct root_search {
  pln_rule_match *m;
  const pln_graph *old;
  pln_ref found[PLN_RULE_MAX_ROOTS][MAX_CANDIDATES];
  uint32_t n[PLN_RULE_MAX_ROOTS], at[PLN_RULE_MAX_ROOTS];
} root_search;

static pln_status begin_roots(pln_rule_driver *r, const pln_graph *old) {
  size_t size = old->n_nodes * sizeof *r->replacements;
  PLN_TRY(pln_users_begin(&r->users, old));
  r->replacements = pln_mem_new(r->engine, size);
  if (!r->replacements)
    return pln_nomem(r->engine);
  memset(r->replacements, 0xff, size);
  return PLN_OK;
}

void pln_rule_forget_roots(pln_rule_driver *r, const pln_graph *old) {
  pln_mem_free(r->engine, r->replacements,
               old->n_nodes * sizeof *r->replacements);
  r->replacements = NULL;
  if (r->users.engine)
    pln_users_end(&r->users);
  r->users = (pln_users){0};
}

/* --------------------------------------------------------------- candidates */

static const pln_pattern_node *pattern_of(const pln_rule_match *m, uint32_t i) {
  return &m->set->patterns[m->variant->first + i];
}

/* The old graph's node where the anchor binds the variable that it shares with
 * root `i`; PLN_NONE if the old graph differs from what is matched. */
static pln_ref shared_node(const root_search *s, uint32_t i) {
  uint16_t way[PLN_RULE_MAX_NODES];
  uint32_t n = 0;
  for (uint32_t p = s->m->variant->link[i]; p; n++) {
    way[n] = (uint16_t)p;
    p = pattern_of(s->m, p)->parent;
  }
  pln_ref node = s->m->run->old;
  while (n-- && node != PLN_NONE)
    node = pln_rule_operand_at(s->old, node, pattern_of(s->m, way[n])->arg);
  return node;
}

/* An operand that the sweep has not reached can be used if it is a constant. */
static bool is_available(const root_search *s, pln_ref operand) {
  return operand < s->m->run->old ||
         s->old->nodes[operand].kind == PLN_CONSTANT;
}

static bool is_candidate_root(const root_search *s, uint32_t i, pln_ref node) {
  const pln_graph *g = s->old;
  const pln_node *n = &g->nodes[node];
  const pln_rule_driver *r = s->m->run;
  const pln_pattern_node *p = pattern_of(s->m, s->m->variant->root[i]);
  if (node <= r->old || n->kind != PLN_CALL || n->count > MAX_COPIED ||
      !pln_rule_has_op(s->m->set, p, n->data) || pln_is_effect_ordered(n) ||
      r->replacements[node] != PLN_NONE ||
      r->users.node_scope[node] != r->users.node_scope[r->old])
    return false;
  for (uint32_t k = 0; k < n->count; k++)
    if (!is_available(s, g->operands[n->first + k]))
      return false;
  return true;
}

/* The place in the list of the first user of a node behind the anchor. */
static uint32_t first_user_behind(const pln_rule_driver *r, pln_ref node) {
  uint32_t low = r->users.first[node], high = r->users.first[node + 1];
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (r->users.users[middle] <= r->old)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void find_candidates(root_search *s, uint32_t i) {
  const pln_rule_driver *r = s->m->run;
  pln_ref shared = shared_node(s, i);
  s->n[i] = s->at[i] = 0;
  if (shared == PLN_NONE)
    return;
  uint32_t first = first_user_behind(r, shared), end = first + MAX_SCANNED;
  if (end > r->users.first[shared + 1])
    end = r->users.first[shared + 1];
  for (uint32_t k = first; k < end && s->n[i] < MAX_CANDIDATES; k++)
    if (is_candidate_root(s, i, r->users.users[k]))
      s->found[i][s->n[i]++] = r->users.users[k];
}

/* ------------------------------------------------------------- combinations */

/* Advances to the next choice of candidates; false after the last one. */
static bool next_combination(root_search *s) {
  const pln_rule_variant *v = s->m->variant;
  for (uint32_t i = v->n_roots; i-- > 0;) {
    if (i == v->anchor)
      continue;
    if (++s->at[i] < s->n[i])
      return true;
    s->at[i] = 0;
  }
  return false;
}

/* The chosen calls differ from each other. */
static bool choose_roots(root_search *s) {
  const pln_rule_variant *v = s->m->variant;
  for (uint32_t i = 0; i < v->n_roots; i++) {
    if (i == v->anchor)
      continue;
    s->m->old_roots[i] = s->found[i][s->at[i]];
    for (uint32_t k = 0; k < i; k++)
      if (k != v->anchor && s->m->old_roots[k] == s->m->old_roots[i])
        return false;
  }
  return true;
}

static pln_status copy_operand(root_search *s, pln_builder *b, pln_ref operand,
                               pln_ref *out) {
  const pln_node *n = &s->old->nodes[operand];
  if (operand >= s->m->run->old)
    return pln_build_constant(b, s->old->tensors[n->data], out);
  *out = pln_rewrite_image(s->m->run->rw, operand);
  return PLN_OK;
}

/* Copies the call that was chosen for root `i` into the new graph. */
static pln_status copy_root(root_search *s, uint32_t i) {
  pln_builder *b = pln_rewrite_builder(s->m->run->rw);
  const pln_node *n = &s->old->nodes[s->m->old_roots[i]];
  pln_ref args[MAX_COPIED];
  if (!b)
    return PLN_ERR_NOMEM;
  for (uint32_t k = 0; k < n->count; k++)
    PLN_TRY(copy_operand(s, b, s->old->operands[n->first + k], &args[k]));
  return pln_build_call(b, n->data, n->attrs, n->results, n->count, args,
                        &s->m->roots[i]);
}

static pln_status try_combination(root_search *s, bool *out) {
  const pln_rule_variant *v = s->m->variant;
  *out = choose_roots(s);
  if (!*out)
    return PLN_OK;
  for (uint32_t i = 0; i < v->n_roots; i++)
    if (i != v->anchor)
      PLN_TRY(copy_root(s, i));
  PLN_TRY(pln_rule_match_variant(s->m, out));
  pln_builder *b = pln_rewrite_builder(s->m->run->rw);
  for (uint32_t i = 0; !*out && i < v->n_roots; i++)
    if (i != v->anchor)
      b->graph->nodes[s->m->roots[i]].flags |= PLN_NODE_DROPPED;
  return PLN_OK;
}

/* Matches the anchor alone, before anything is searched or copied. */
static pln_status match_anchor(pln_rule_match *m, bool *out) {
  m->anchor_only = true;
  pln_status status = pln_rule_match_variant(m, out);
  m->anchor_only = false;
  return status;
}

static pln_status match_roots(pln_rule_match *m, bool *out) {
  root_search s = {.m = m, .old = pln_rewrite_old(m->run->rw)};
  const pln_rule_variant *v = m->variant;
  bool possible = true;
  PLN_TRY(match_anchor(m, out));
  if (!*out)
    return PLN_OK;
  *out = false;
  if (!m->run->replacements)
    PLN_TRY(begin_roots(m->run, s.old));
  for (uint32_t i = 0; i < v->n_roots; i++)
    if (i != v->anchor) {
      find_candidates(&s, i);
      possible = possible && s.n[i] > 0;
    }
  if (!possible) {
    m->failed_at = v->n_anchor;
    m->reason = "no call after it can be another root of the rule";
  }
  for (uint32_t n = 0; possible && !*out && n < MAX_COMBINATIONS; n++) {
    PLN_TRY(try_combination(&s, out));
    possible = next_combination(&s);
  }
  return PLN_OK;
}

pln_status pln_rule_find_match(pln_rule_match *m, bool *out) {
  return m->variant->n_roots > 1 ? match_roots(m, out)
                                 : pln_rule_match_variant(m, out);
}

pln_status pln_rule_note_roots(pln_rule_match *m) {
  pln_rule_driver *r = m->run;
  for (uint32_t i = 0; i < m->variant->n_roots; i++) {
    if (i == m->variant->anchor)
      continue;
    r->replacements[m->old_roots[i]] = m->answers[i];
    PLN_TRY(pln_use_counts_cover(&r->uses, m->answers[i]));
    r->uses.now[m->answers[i]]++;
  }
  return PLN_OK;
}
