/* ematch.c: backtracking search for the matches of a variant in an e-graph.
 *
 * The patterns of a variant are in an order in which parents come first, so
 * that the candidates of each are known when its turn comes: the members of the
 * class of an operand. A variable without pattern takes the node that stands
 * for the class. Other roots are looked for among the users of the class of the
 * variable that they share with the anchor. */

#include "rule/egraph/ematch.h"

/* More candidates than these are not looked at for one root and variant. */
enum { MAX_STEPS = 1 << 14 };

bool pln_ematch_takes(const pln_rule_set *set,
                      const pln_rule_variant *variant) {
  const pln_rule_entry *rule = &set->rules[variant->rule];
  if (rule->native || rule->info.condition || rule->info.replacement ||
      rule->ast.replacement == PLN_NONE)
    return false;
  for (uint32_t i = 0; i < variant->count; i++)
    if (set->patterns[variant->first + i].kind == PLN_MATCH_KIND)
      return false;
  return true;
}

void pln_ematch_begin(pln_ematch *em, pln_egraph *eg, pln_rule_match *m) {
  em->eg = eg;
  em->m = m;
  em->begun = em->cut = false;
  em->steps = 0;
}

static const pln_pattern_node *pattern_at(const pln_ematch *em, uint32_t i) {
  return &em->m->set->patterns[em->m->variant->first + i];
}

/* --------------------------------------------------------------- candidates */

static bool has_constant(pln_egraph *eg, pln_ref operand) {
  pln_ref class_ = pln_egraph_class(eg, operand);
  return class_ == PLN_NONE
             ? pln_egraph_graph(eg)->nodes[operand].kind == PLN_CONSTANT
             : eg->nodes[class_].constant != PLN_NONE;
}

/* The operand that `arg` of a pattern means. Whether it is a constant is asked
 * of its class. */
static pln_ref operand_at(pln_egraph *eg, pln_ref node, uint32_t arg) {
  uint32_t count;
  const pln_ref *operands =
      pln_rule_operands(pln_egraph_graph(eg), node, &count);
  if (arg >= PLN_ARG_CONSTANT && count > 1) {
    uint32_t constant =
        !has_constant(eg, operands[1]) && has_constant(eg, operands[0]) ? 0 : 1;
    arg = arg == PLN_ARG_CONSTANT ? constant : 1 - constant;
  }
  return arg < count ? operands[arg] : PLN_NONE;
}

static pln_elevel one(pln_ref node) {
  return (pln_elevel){.list = PLN_ELIST_ONE, .at = node};
}

/* The variable was bound before: its node, if it is of the same class. */
static pln_elevel list_again(pln_ematch *em, const pln_pattern_node *p,
                             pln_ref class_) {
  const pln_rule_value *slot = &em->m->slots[p->slot];
  if (slot->kind == PLN_VALUE_NODE &&
      pln_egraph_class(em->eg, slot->v.node) == class_)
    return one(slot->v.node);
  return (pln_elevel){.list = PLN_ELIST_END};
}

static pln_elevel list_class(pln_ematch *em, const pln_pattern_node *p,
                             pln_ref node) {
  pln_ref class_ = pln_egraph_class(em->eg, node);
  if (class_ == PLN_NONE)
    return one(node);
  if (p->again)
    return list_again(em, p, class_);
  if (p->kind == PLN_MATCH_ANY || p->kind == PLN_MATCH_VALUE)
    return one(pln_egraph_node(em->eg, class_));
  return (pln_elevel){.list = PLN_ELIST_RING, .first = class_, .at = class_};
}

static pln_elevel list_users(pln_ematch *em, uint32_t root) {
  pln_ref shared = em->m->nodes[em->m->variant->link[root]];
  pln_ref class_ =
      shared == PLN_NONE ? PLN_NONE : pln_egraph_class(em->eg, shared);
  uint32_t first =
      class_ == PLN_NONE ? PLN_NONE : em->eg->nodes[class_].first_use;
  return (pln_elevel){
      .list = first == PLN_NONE ? PLN_ELIST_END : PLN_ELIST_USES, .at = first};
}

static void begin_level(pln_ematch *em) {
  const pln_pattern_node *p = pattern_at(em, em->level);
  pln_elevel *level = &em->levels[em->level];
  if (p->parent == PLN_MATCH_ROOT) {
    *level = p->arg == em->m->variant->anchor ? one(em->m->root)
                                              : list_users(em, p->arg);
  } else {
    pln_ref parent = em->m->nodes[p->parent];
    pln_ref node =
        parent == PLN_NONE ? PLN_NONE : operand_at(em->eg, parent, p->arg);
    bool omitted = node == PLN_NONE ||
                   (p->optional &&
                    pln_egraph_graph(em->eg)->nodes[node].kind == PLN_ABSENT);
    *level = omitted ? one(PLN_NONE) : list_class(em, p, node);
  }
  level->pool = em->m->run->n_pool;
}

/* Takes the next candidate; false after the last one. */
static bool next_candidate(pln_ematch *em, pln_ref *node) {
  pln_elevel *level = &em->levels[em->level];
  switch ((pln_elist)level->list) {
  case PLN_ELIST_END: return false;
  case PLN_ELIST_ONE:
    *node = level->at;
    level->list = PLN_ELIST_END;
    return true;
  case PLN_ELIST_RING:
    *node = level->at;
    level->at = em->eg->nodes[level->at].next;
    if (level->at == level->first)
      level->list = PLN_ELIST_END;
    return true;
  case PLN_ELIST_USES:
    *node = em->eg->uses[level->at].user;
    level->at = em->eg->uses[level->at].next;
    if (level->at == PLN_NONE)
      level->list = PLN_ELIST_END;
    return true;
  }
  return false;
}

/* ----------------------------------------------------------------- matching */

/* An e-node is taken apart if it is not opaque; another root is not the same
 * node as an earlier one. */
static bool is_candidate(const pln_ematch *em, const pln_pattern_node *p,
                         pln_ref node) {
  if (node == PLN_NONE || p->kind == PLN_MATCH_ANY ||
      p->kind == PLN_MATCH_VALUE)
    return true;
  if (!pln_enode_is(em->eg, node, PLN_ENODE_LIVE) ||
      pln_enode_is(em->eg, node, PLN_ENODE_OPAQUE))
    return false;
  for (uint32_t i = 0; p->parent == PLN_MATCH_ROOT && i < em->level; i++)
    if (pattern_at(em, i)->parent == PLN_MATCH_ROOT && em->m->nodes[i] == node)
      return false;
  return true;
}

static pln_status try_candidate(pln_ematch *em, pln_ref node, bool *out) {
  pln_rule_match *m = em->m;
  const pln_pattern_node *p = pattern_at(em, em->level);
  *out = is_candidate(em, p, node);
  if (!*out)
    return PLN_OK;
  m->run->n_pool = em->levels[em->level].pool;
  if (p->slot >= 0 && !p->again && node == PLN_NONE)
    m->slots[p->slot] = (pln_rule_value){0};
  if (p->parent == PLN_MATCH_ROOT)
    m->roots[p->arg] = node;
  return pln_rule_match_node(m, em->level, p, node, out);
}

static void begin_match(pln_ematch *em) {
  pln_rule_match *m = em->m;
  m->rule = &m->set->rules[m->variant->rule];
  m->failed_at = m->failed_attribute = PLN_NONE;
  m->run->n_pool = 0;
  memset(m->slots, 0, m->rule->n_vars * sizeof *m->slots);
  em->begun = true;
  em->level = 0;
  begin_level(em);
}

/* All patterns match: the attributes. */
static pln_status finish_match(pln_ematch *em, bool *found) {
  return pln_rule_match_attrs(em->m, em->m->variant->count, found);
}

pln_status pln_ematch_next(pln_ematch *em, bool *found) {
  pln_ref node;
  bool matches;
  *found = false;
  if (!em->begun)
    begin_match(em);
  while (!*found && em->steps < MAX_STEPS) {
    if (!next_candidate(em, &node)) {
      if (em->level-- == 0)
        return PLN_OK;
      continue;
    }
    em->steps++;
    PLN_TRY(try_candidate(em, node, &matches));
    if (!matches)
      continue;
    if (em->level + 1 == em->m->variant->count) {
      PLN_TRY(finish_match(em, found));
    } else {
      em->level++;
      begin_level(em);
    }
  }
  em->cut |= !*found;
  return PLN_OK;
}
