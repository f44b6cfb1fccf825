/* saturate.c: equality saturation.
 *
 * Each round searches matches, adds what they build, merges the classes of
 * matched and built nodes, and restores congruence (rebuild). The first round
 * searches everything; a later one what can match because of a class that
 * changed in the round before: its e-nodes, and those above it up to the depth
 * of the deepest pattern. A rule that matches too often in a round pauses for
 * some rounds (egg's backoff). Called by the pass EqualitySaturation. */

#include "rule/egraph/saturate.h"

#include "ir/provenance/rule_application.h"
#include "rule/egraph/canonical.h"
#include "rule/egraph/ematch.h"
#include "rule/egraph/extract.h"

/* A rule pauses for BAN_LENGTH rounds when it matched in one round more often
 * than there are e-nodes, at least MATCH_LIMIT times; each time twice as many
 * of both. */
enum { MATCH_LIMIT = 2000, BAN_LENGTH = 4, MAX_BANS = 16, CHECKED_EVERY = 64 };

/* A variant that e-graphs are searched for. */
typedef struct saturate_row {
  uint32_t set, variant;
  uint32_t next; /* of the same operator; PLN_NONE */
} saturate_row;

/* What happened with a rule. */
typedef struct saturate_rule {
  uint32_t matches; /* in this round */
  uint32_t bans, banned_until;
  bool used, tried; /* e-graphs are searched for it; it matched once */
} saturate_rule;

/* Classes to merge after the search. */
typedef struct saturate_pair {
  pln_ref a, b;
} saturate_pair;

typedef struct saturation {
  pln_engine *engine;
  const pln_saturate_options *options;
  pln_saturate_report *report;
  pln_rule_driver run;
  pln_ematch em;
  pln_egraph eg;
  pln_canonical canonical;
  saturate_row *rows;
  uint32_t n_rows, cap_rows;
  uint32_t *rows_of; /* by operator; behind them tuples, fields, any call */
  uint32_t n_ops;
  uint32_t first_rule[PLN_SATURATE_MAX_SETS + 1];
  saturate_rule *rules;
  uint32_t depth;     /* of the deepest pattern */
  bool several_roots; /* a rule has several roots */
  uint8_t *pins;      /* by node of the old graph: PINNED or 0 */
  uint8_t *pinned;    /* by node of the new graph */
  uint32_t n_pinned, cap_pinned;
  pln_ref *wanted; /* classes to search */
  uint32_t n_wanted, cap_wanted, stamp;
  saturate_pair *pairs;
  uint32_t n_pairs, cap_pairs;
  pln_idmap *seen; /* applications */
  uint32_t round;
  double end; /* seconds; 0: none */
  uint32_t match_limit;
  bool missed, full;
  /* Of the option `once`: what the application gave for each root. */
  pln_ref answers[PLN_RULE_MAX_ROOTS];
  uint32_t n_answers;
  pln_saturate_stop stop;
  bool stopped;
} saturation;

/* ------------------------------------------------------------------- the rows
 */

enum { ROWS_TUPLE, ROWS_FIELD, ROWS_ANY, N_ROWS_OF };

static pln_status add_row(saturation *s, uint32_t key, uint32_t set,
                          uint32_t variant) {
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->rows, &s->cap_rows,
                       (size_t)s->n_rows + 1, sizeof *s->rows));
  s->rows[s->n_rows] = (saturate_row){set, variant, s->rows_of[key]};
  s->rows_of[key] = s->n_rows++;
  return PLN_OK;
}

static pln_status add_variant(saturation *s, uint32_t at, uint32_t variant) {
  const pln_rule_set *set = s->options->sets[at];
  const pln_rule_variant *v = &set->variants[variant];
  const pln_pattern_node *p = &set->patterns[v->first];
  if (p->kind == PLN_MATCH_TUPLE)
    return add_row(s, s->n_ops + ROWS_TUPLE, at, variant);
  if (p->kind == PLN_MATCH_FIELD)
    return add_row(s, s->n_ops + ROWS_FIELD, at, variant);
  if (p->kind != PLN_MATCH_CALL)
    return PLN_OK;
  if (!p->n_ops)
    return add_row(s, s->n_ops + ROWS_ANY, at, variant);
  for (uint32_t i = 0; i < p->n_ops; i++)
    PLN_TRY(add_row(s, set->ops[p->ops + i], at, variant));
  return PLN_OK;
}

static void note_shape(saturation *s, const pln_rule_set *set,
                       const pln_rule_variant *v) {
  uint32_t depth[PLN_RULE_MAX_NODES];
  s->several_roots |= v->n_roots > 1;
  for (uint32_t i = 0; i < v->count; i++) {
    const pln_pattern_node *p = &set->patterns[v->first + i];
    depth[i] = p->parent == PLN_MATCH_ROOT ? 0 : depth[p->parent] + 1;
    if (depth[i] > s->depth)
      s->depth = depth[i];
  }
}

/* Rows are lists; variants are added from the last one on, so that the first
 * one is tried first. */
static pln_status add_set(saturation *s, uint32_t at) {
  const pln_rule_set *set = s->options->sets[at];
  pln_rule_options rules = s->options->rules;
  rules.exact &= !(s->options->inexact_sets >> at & 1);
  for (uint32_t v = set->n_variants; v-- > 0;) {
    const pln_rule_info *info = &set->rules[set->variants[v].rule].info;
    if (!pln_ematch_takes(set, &set->variants[v]) ||
        !pln_rule_is_enabled(&rules, info->name, info->proof))
      continue;
    PLN_TRY(add_variant(s, at, v));
    note_shape(s, set, &set->variants[v]);
    saturate_rule *rule = &s->rules[s->first_rule[at] + set->variants[v].rule];
    s->report->rules += !rule->used;
    rule->used = true;
  }
  return PLN_OK;
}

static pln_status make_rows(saturation *s) {
  for (uint32_t i = 0; i < s->options->n_sets; i++) {
    const pln_rule_set *set = s->options->sets[i];
    PLN_TRY(pln_rule_set_read_all(set));
    s->first_rule[i + 1] = s->first_rule[i] + set->n_rules;
    for (uint32_t k = 0; k < set->n_ops; k++)
      if (set->ops[k] >= s->n_ops)
        s->n_ops = set->ops[k] + 1;
  }
  size_t n = s->n_ops + N_ROWS_OF, n_rules = s->first_rule[s->options->n_sets];
  s->rows_of = pln_mem_new(s->engine, n * sizeof *s->rows_of);
  s->rules = pln_mem_zeroed(s->engine, (n_rules + 1) * sizeof *s->rules);
  if (!s->rows_of || !s->rules)
    return pln_nomem(s->engine);
  memset(s->rows_of, 0xff, n * sizeof *s->rows_of);
  for (uint32_t i = s->options->n_sets; i-- > 0;)
    PLN_TRY(add_set(s, i));
  return PLN_OK;
}

/* -------------------------------------------------------------- applications
 */

static pln_status pair(saturation *s, pln_ref a, pln_ref b) {
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->pairs, &s->cap_pairs,
                       (size_t)s->n_pairs + 1, sizeof *s->pairs));
  s->pairs[s->n_pairs++] = (saturate_pair){a, b};
  return PLN_OK;
}

/* Of several roots the order does not count: two calls that were merged are
 * not merged the other way round. */
static uint64_t hash_application(const saturation *s, const saturate_row *row,
                                 uint32_t rule) {
  const pln_rule_match *m = s->run.match;
  uint64_t hash = pln_hash_mix(row->set, row->variant), sum = 0;
  if (m->variant->n_roots == 1) {
    for (uint32_t i = 0; i < m->variant->count; i++)
      hash = pln_hash_mix(hash, m->nodes[i]);
    return hash;
  }
  for (uint32_t i = 0; i < m->variant->count; i++)
    sum += pln_hash_mix(1, m->nodes[i]);
  return pln_hash_mix(pln_hash_mix(2, rule), sum);
}

/* *out: the variant was not applied to these nodes before. */
static pln_status is_new(saturation *s, const saturate_row *row, uint32_t rule,
                         bool *out) {
  uint64_t hash = hash_application(s, row, rule);
  *out = !pln_idmap_get(s->seen, hash);
  return *out ? pln_idmap_set(s->seen, hash, 1) : PLN_OK;
}

static void drop_from(const saturation *s, pln_ref first) {
  pln_graph *g = s->eg.b->graph;
  for (pln_ref i = first; i < g->n_nodes; i++)
    g->nodes[i].flags |= PLN_NODE_DROPPED;
}

static const pln_eorigin *span_of(saturation *s, pln_ref root) {
  return &s->eg.nodes[pln_egraph_class(&s->eg, root)].origin;
}

/* Where what the application builds comes from. */
static pln_eorigin origin_of(saturation *s, uint32_t rule) {
  const pln_rule_match *m = s->run.match;
  const pln_rule_variant *v = m->variant;
  pln_eorigin o = {.made_by = rule + 1, .first = PLN_NONE};
  for (uint32_t i = 0; i < v->count; i++) {
    const pln_pattern_node *p = &m->set->patterns[v->first + i];
    pln_ref node = m->nodes[i];
    uint32_t generation = p->kind == PLN_MATCH_ANY || node >= s->eg.n
                              ? 0
                              : s->eg.nodes[node].origin.generation;
    if (generation > o.generation)
      o.generation = generation;
  }
  o.generation += v->n_roots > 1;
  for (uint32_t i = 0; i < v->n_roots; i++) {
    const pln_eorigin *span = span_of(s, m->roots[i]);
    o.first = span->first < o.first ? span->first : o.first;
    o.last = span->last > o.last ? span->last : o.last;
  }
  return o;
}

/* A rule of several roots applies to what it made, without end. Here what such
 * rules made is taken k_multi - 1 times more, and two calls of which one
 * computes, among others, what the other does are never taken together. */
static bool may_apply(saturation *s, const pln_eorigin *origin) {
  const pln_rule_match *m = s->run.match;
  uint32_t n = m->variant->n_roots;
  if (n == 1)
    return true;
  if (origin->generation > s->options->k_multi)
    return false;
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t k = 0; k < i; k++) {
      const pln_eorigin *a = span_of(s, m->roots[k]);
      const pln_eorigin *b = span_of(s, m->roots[i]);
      if (a->first <= b->last && b->first <= a->last)
        return false;
    }
  return true;
}

/* Adds what was built, and notes which classes are equal. */
static pln_status take_answers(saturation *s, const pln_eorigin *origin,
                               pln_ref first) {
  const pln_rule_match *m = s->run.match;
  const pln_graph *g = pln_egraph_graph(&s->eg);
  for (pln_ref i = first; i < g->n_nodes; i++)
    if (!(g->nodes[i].flags & PLN_NODE_DROPPED))
      PLN_TRY(pln_egraph_add(&s->eg, i, origin));
  for (uint32_t i = 0; i < m->variant->n_roots; i++) {
    if (pln_egraph_class(&s->eg, m->answers[i]) == PLN_NONE)
      PLN_TRY(pln_egraph_add(&s->eg, m->answers[i], origin));
  }
  return PLN_OK;
}

/* An application changes something if a root and its answer differ. */
static bool is_change(saturation *s) {
  const pln_rule_match *m = s->run.match;
  for (uint32_t i = 0; i < m->variant->n_roots; i++)
    if (pln_egraph_class(&s->eg, m->roots[i]) !=
        pln_egraph_class(&s->eg, m->answers[i]))
      return true;
  return false;
}

/* The classes of matched and built nodes will be one. */
static pln_status pair_answers(saturation *s) {
  const pln_rule_match *m = s->run.match;
  bool once = s->options->once;
  if (once && (!is_change(s) || s->report->applications++ != s->options->at))
    return PLN_OK;
  for (uint32_t i = 0; i < m->variant->n_roots; i++) {
    PLN_TRY(pair(s, m->roots[i], m->answers[i]));
    if (once)
      s->answers[s->n_answers++] = m->answers[i];
  }
  return PLN_OK;
}

static void stop(saturation *s, pln_saturate_stop why) {
  s->stop = why;
  s->stopped = true;
}

static pln_status check_limits(saturation *s) {
  if (s->eg.n_live > s->options->node_limit)
    stop(s, PLN_SATURATE_NODES);
  if (s->report->matches % CHECKED_EVERY)
    return PLN_OK;
  if (s->end > 0 && pln_seconds_now() > s->end)
    stop(s, PLN_SATURATE_TIME);
  return pln_poll_stoppable(s->engine);
}

/* The replacement; PLN_NONE: there is none. */
static pln_status build_answer(pln_rule_match *m, pln_ref *out) {
  const pln_rule_info *info = &m->rule->info;
  pln_status status = pln_rule_replace(m, out);
  pln_span span = {.source = info->file, .row = info->row};
  if (status == PLN_ERR_TYPE)
    pln_diag_note(m->run->engine, &span, "in rule '%s'", info->name);
  return status;
}

static pln_status apply(saturation *s, const saturate_row *row, uint32_t rule) {
  pln_rule_match *m = s->run.match;
  pln_ref first = pln_egraph_graph(&s->eg)->n_nodes, out = PLN_NONE;
  const pln_eorigin origin = origin_of(s, rule);
  bool holds = may_apply(s, &origin);
  if (holds)
    PLN_TRY(is_new(s, row, rule, &holds));
  if (!holds)
    return PLN_OK;
  s->report->matches++;
  s->rules[rule].matches++;
  s->report->rules_tried += !s->rules[rule].tried;
  s->rules[rule].tried = true;
  PLN_TRY(pln_rule_check_condition(m, &holds));
  if (holds)
    PLN_TRY(build_answer(m, &out));
  if (out == PLN_NONE) {
    s->report->refused++;
    drop_from(s, first);
  } else {
    PLN_TRY(take_answers(s, &origin, first));
    PLN_TRY(pair_answers(s));
  }
  return check_limits(s);
}

/* -------------------------------------------------------------------- search
 */

static bool is_banned(saturation *s, uint32_t rule) {
  saturate_rule *r = &s->rules[rule];
  if (r->banned_until > s->round) {
    s->missed = true;
    return true;
  }
  if (r->matches >> r->bans <= s->match_limit)
    return false;
  r->banned_until = s->round + 1 + ((uint32_t)BAN_LENGTH << r->bans);
  if (r->bans < MAX_BANS)
    r->bans++;
  s->missed = true;
  return true;
}

static pln_status search_row(saturation *s, const saturate_row *row,
                             pln_ref node) {
  const pln_rule_set *set = s->options->sets[row->set];
  pln_rule_match *m = s->run.match;
  const pln_rule_variant *v = &set->variants[row->variant];
  uint32_t rule = s->first_rule[row->set] + v->rule;
  bool found = true;
  if (v->n_roots > 1 && !s->options->k_multi)
    return PLN_OK;
  if (s->run.set != set)
    PLN_TRY(pln_rule_driver_use(&s->run, set));
  m->variant = v;
  m->root = node;
  pln_ematch_begin(&s->em, &s->eg, m);
  while (!s->stopped && !is_banned(s, rule)) {
    PLN_TRY(pln_ematch_next(&s->em, &found));
    if (!found)
      break;
    PLN_TRY(apply(s, row, rule));
  }
  return PLN_OK;
}

static pln_status search_rows(saturation *s, uint32_t key, pln_ref node) {
  for (uint32_t i = s->rows_of[key]; i != PLN_NONE && !s->stopped;) {
    const saturate_row row = s->rows[i];
    PLN_TRY(search_row(s, &row, node));
    i = row.next;
  }
  return PLN_OK;
}

/* (a, b).0 is a. */
static pln_status search_field(saturation *s, pln_ref node) {
  const pln_graph *g = pln_egraph_graph(&s->eg);
  pln_ref class_ = pln_egraph_class(&s->eg, pln_operand(g, node, 0)), at;
  uint32_t index = g->nodes[node].data;
  for (at = class_; at != PLN_NONE; at = s->eg.nodes[at].next) {
    const pln_node *n = &g->nodes[at];
    if (n->kind == PLN_TUPLE && pln_enode_is(&s->eg, at, PLN_ENODE_LIVE) &&
        !pln_enode_is(&s->eg, at, PLN_ENODE_OPAQUE) && index < n->count)
      return pair(s, node, g->operands[n->first + index]);
    if (s->eg.nodes[at].next == class_)
      break;
  }
  return PLN_OK;
}

static pln_status search_node(saturation *s, pln_ref node) {
  const pln_node n = pln_egraph_graph(&s->eg)->nodes[node];
  if (n.kind == PLN_TUPLE)
    return search_rows(s, s->n_ops + ROWS_TUPLE, node);
  if (n.kind == PLN_TUPLE_GET_ITEM) {
    PLN_TRY(search_field(s, node));
    return search_rows(s, s->n_ops + ROWS_FIELD, node);
  }
  if (n.data < s->n_ops)
    PLN_TRY(search_rows(s, n.data, node));
  return search_rows(s, s->n_ops + ROWS_ANY, node);
}

static pln_status want(saturation *s, pln_ref class_) {
  if (s->eg.nodes[class_].stamp == s->stamp)
    return PLN_OK;
  s->eg.nodes[class_].stamp = s->stamp;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->wanted, &s->cap_wanted,
                       (size_t)s->n_wanted + 1, sizeof *s->wanted));
  s->wanted[s->n_wanted++] = class_;
  return PLN_OK;
}

static pln_status want_users(saturation *s, pln_ref class_) {
  for (uint32_t u = s->eg.nodes[class_].first_use; u != PLN_NONE;
       u = s->eg.uses[u].next)
    PLN_TRY(want(s, pln_egraph_class(&s->eg, s->eg.uses[u].user)));
  return PLN_OK;
}

/* Other roots of a rule are found from its anchor: all users of what a wanted
 * class uses may be one. */
static pln_status want_other_roots(saturation *s, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const pln_graph *g = pln_egraph_graph(&s->eg);
    pln_ref node = s->wanted[i];
    const pln_node *p = &g->nodes[node];
    for (uint32_t k = 0;
         k < p->count && !pln_enode_is(&s->eg, node, PLN_ENODE_OPAQUE); k++)
      PLN_TRY(
          want_users(s, pln_egraph_class(&s->eg, g->operands[p->first + k])));
  }
  return PLN_OK;
}

static pln_status choose_wanted(saturation *s) {
  uint32_t begin = 0;
  s->n_wanted = 0;
  s->stamp++;
  for (uint32_t i = 0; s->full && i < s->eg.n_added; i++)
    PLN_TRY(want(s, pln_egraph_class(&s->eg, s->eg.added[i])));
  for (uint32_t i = 0; i < s->eg.n_changed; i++)
    PLN_TRY(want(s, pln_egraph_class(&s->eg, s->eg.changed[i])));
  s->eg.n_changed = 0;
  for (uint32_t depth = 0; !s->full && depth < s->depth; depth++) {
    uint32_t end = s->n_wanted;
    for (; begin < end; begin++)
      PLN_TRY(want_users(s, s->wanted[begin]));
  }
  return s->several_roots && s->options->k_multi && !s->full
             ? want_other_roots(s, s->n_wanted)
             : PLN_OK;
}

static pln_status search_class(saturation *s, pln_ref class_) {
  pln_ref node = class_;
  do {
    if (pln_enode_is(&s->eg, node, PLN_ENODE_LIVE) &&
        !pln_enode_is(&s->eg, node, PLN_ENODE_OPAQUE))
      PLN_TRY(search_node(s, node));
    node = s->eg.nodes[node].next;
  } while (node != class_ && !s->stopped);
  return PLN_OK;
}

static pln_status merge_pairs(saturation *s) {
  bool merged;
  for (uint32_t i = 0; i < s->n_pairs; i++)
    PLN_TRY(pln_egraph_merge(&s->eg, s->pairs[i].a, s->pairs[i].b, &merged));
  s->n_pairs = 0;
  return pln_egraph_rebuild(&s->eg);
}

static pln_status run_round(saturation *s) {
  s->missed = false;
  s->match_limit = s->eg.n_live > MATCH_LIMIT ? s->eg.n_live : MATCH_LIMIT;
  PLN_TRY(choose_wanted(s));
  for (uint32_t i = 0; i < s->first_rule[s->options->n_sets]; i++)
    s->rules[i].matches = 0;
  for (uint32_t i = 0; i < s->n_wanted && !s->stopped; i++)
    PLN_TRY(search_class(s, s->wanted[i]));
  PLN_TRY(merge_pairs(s));
  s->full = s->missed;
  s->report->iterations++;
  if (!s->stopped && !s->eg.n_changed && !s->missed)
    stop(s, PLN_SATURATE_DONE);
  return PLN_OK;
}

static pln_status saturate(saturation *s) {
  s->stopped = s->full = false;
  for (uint32_t i = 0; i < s->first_rule[s->options->n_sets]; i++)
    s->rules[i].bans = s->rules[i].banned_until = 0;
  PLN_TRY(pln_idmap_new(s->engine, &s->seen));
  uint32_t most = s->options->once ? 1 : s->options->iter_limit;
  for (s->round = 0; !s->stopped && s->round < most; s->round++)
    PLN_TRY(run_round(s));
  if (!s->stopped)
    stop(s, PLN_SATURATE_ITERATIONS);
  return PLN_OK;
}

/* -------------------------------------------------------------------- scopes
 */

/* Nodes that are computed whatever the result of their scope becomes: those
 * that a let, a call with effects or a nested scope uses, and what they are
 * computed of. */
static void mark_pins(const pln_graph *g, const pln_scope *scopes,
                      uint8_t *pins) {
  for (pln_ref i = g->n_nodes; i-- > 0;) {
    const pln_node *n = &g->nodes[i];
    bool plain = (n->kind == PLN_CALL && n->data) || n->kind == PLN_TUPLE ||
                 n->kind == PLN_TUPLE_GET_ITEM;
    bool keeps = !plain || pins[i] || pln_is_effect_ordered(n);
    for (uint32_t k = 0; k < n->count; k++) {
      pln_ref operand = g->operands[n->first + k];
      if (keeps || scopes[operand] != scopes[i])
        pins[operand] = PLN_ENODE_PINNED;
    }
  }
}

static pln_status find_pins(saturation *s, const pln_graph *g) {
  size_t size = (size_t)g->n_nodes * sizeof(pln_scope);
  s->pins = pln_mem_zeroed(s->engine, g->n_nodes);
  pln_scope *scopes = pln_mem_new(s->engine, size);
  if (s->pins && scopes) {
    pln_graph_node_scopes(g, scopes);
    mark_pins(g, scopes, s->pins);
  }
  pln_mem_free(s->engine, scopes, scopes ? size : 0);
  return s->pins && scopes ? PLN_OK : pln_nomem(s->engine);
}

static pln_status note_pin(void *ud, pln_rewrite *rw, pln_ref old,
                           pln_ref *node) {
  saturation *s = ud;
  if (!pln_rewrite_builder(rw))
    return PLN_ERR_NOMEM;
  if (!s->pins[old])
    return PLN_OK;
  uint32_t before = s->cap_pinned;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->pinned, &s->cap_pinned,
                       (size_t)*node + 1, sizeof *s->pinned));
  memset(s->pinned + before, 0, s->cap_pinned - before);
  s->pinned[*node] = PLN_ENODE_PINNED;
  return PLN_OK;
}

/* *take: what is picked replaces the program. */
static pln_status pick(saturation *s, pln_extraction *x, double *before,
                       double *after, bool *take) {
  *take = false;
  if (s->options->once && !s->n_answers)
    return PLN_OK;
  PLN_TRY(pln_extraction_pick(x, before, after));
  *take = *after < *before;
  if (s->options->once)
    *take = pln_extraction_force(x, s->n_answers, s->answers, after);
  return PLN_OK;
}

static pln_status take_out(saturation *s, pln_rewrite *rw, pln_ref *result) {
  double before = 0, after = 0;
  pln_extraction x;
  bool take = false;
  pln_ref out = *result;
  pln_status status = pln_extraction_begin(&x, &s->eg, s->options, *result);
  if (status == PLN_OK)
    status = pick(s, &x, &before, &after, &take);
  if (status == PLN_OK && take)
    status = pln_rewrite_apply(rw, "equality_saturation", &take);
  if (status == PLN_OK && take)
    status = pln_extraction_build(&x, s->report->taken, &out);
  pln_extraction_end(&x);
  s->n_answers = 0;
  s->report->cost_before += before;
  s->report->cost_after += out != *result ? after : before;
  s->report->changed += out != *result;
  *result = out;
  return status;
}

static pln_status saturate_scope(saturation *s, pln_rewrite *rw,
                                 pln_ref *result) {
  PLN_TRY(pln_egraph_add_tree(&s->eg, *result));
  if (pln_enode_is(&s->eg, *result, PLN_ENODE_OPAQUE))
    return PLN_OK;
  PLN_TRY(saturate(s));
  PLN_TRY(take_out(s, rw, result));
  s->report->scopes++;
  s->report->e_nodes += s->eg.n_live;
  s->report->e_classes += s->eg.n_classes;
  s->report->rehashed += s->eg.n_rehashed;
  s->report->stopped[s->stop]++;
  return PLN_OK;
}

static pln_status leave_scope(void *ud, pln_rewrite *rw, pln_scope old,
                              pln_ref *result) {
  saturation *s = ud;
  pln_builder *b = pln_rewrite_builder(rw);
  (void)old;
  if (!b)
    return PLN_ERR_NOMEM;
  s->run.rw = rw;
  s->eg.pinned = s->pinned;
  s->eg.n_pinned = s->cap_pinned;
  s->eg.canonical = pln_egraph_canonical_attrs;
  s->canonical.match = s->run.match;
  s->eg.ud = &s->canonical;
  pln_egraph_open(&s->eg, b, rw->open[rw->n_open - 1].image);
  pln_status status = saturate_scope(s, rw, result);
  pln_egraph_close(&s->eg);
  pln_idmap_free(s->seen);
  s->seen = NULL;
  s->n_pairs = 0;
  return status;
}

static void end_saturation(saturation *s, const pln_graph *g) {
  pln_engine *e = s->engine;
  size_t n_rules = s->first_rule[s->options->n_sets] + (size_t)1;
  pln_egraph_end(&s->eg);
  pln_mem_free(e, s->rows, s->cap_rows * sizeof *s->rows);
  pln_mem_free(e, s->rows_of,
               s->rows_of ? (s->n_ops + N_ROWS_OF) * sizeof *s->rows_of : 0);
  pln_mem_free(e, s->rules, s->rules ? n_rules * sizeof *s->rules : 0);
  pln_mem_free(e, s->pins, s->pins ? g->n_nodes : 0);
  pln_mem_free(e, s->pinned, s->cap_pinned);
  pln_mem_free(e, s->wanted, s->cap_wanted * sizeof *s->wanted);
  pln_mem_free(e, s->pairs, s->cap_pairs * sizeof *s->pairs);
  if (s->run.uses.engine)
    pln_use_counts_end(&s->run.uses);
  pln_rule_driver_end(&s->run);
}

static pln_status begin_saturation(saturation *s, const pln_graph *graph) {
  PLN_TRY(pln_rule_driver_begin(&s->run, s->engine, s->options->sets[0],
                                &s->options->rules));
  s->run.saturates = true;
  PLN_TRY(make_rows(s));
  PLN_TRY(pln_rule_driver_use(&s->run, s->options->sets[0]));
  PLN_TRY(find_pins(s, graph));
  return pln_use_counts_begin(&s->run.uses, graph);
}

/* Nothing cheaper was found: the program stays, the very same. */
static void keep_program(const saturation *s, const pln_graph *graph,
                         pln_graph **out) {
  if (s->report->changed || *out == graph)
    return;
  pln_graph_release(*out);
  *out = pln_graph_retain(graph);
}

pln_status pln_rules_saturate(const pln_graph *graph,
                              const pln_saturate_options *options,
                              pln_saturate_report *report, pln_graph **out) {
  uint32_t *taken = report->taken;
  saturation *s = pln_mem_zeroed(graph->engine, sizeof *s);
  *report = (pln_saturate_report){.taken = taken};
  if (!s)
    return pln_nomem(graph->engine);
  s->engine = graph->engine;
  pln_egraph_begin(&s->eg, graph->engine);
  s->options = options;
  s->report = report;
  s->end = options->seconds > 0 ? pln_seconds_now() + options->seconds : 0;
  pln_mutator m = {
      .ud = s, .visit = note_pin, .leave = leave_scope, .keeps_types = true};
  pln_status status = begin_saturation(s, graph);
  if (status == PLN_OK)
    status = pln_graph_rewrite(graph, &m, out);
  if (status == PLN_OK)
    keep_program(s, graph, out);
  end_saturation(s, graph);
  pln_mem_free(graph->engine, s, sizeof *s);
  return status;
}
