/* drive.c: runs a set of rules over a graph.
 *
 * One bottom-up sweep (ir/rewrite): the operands of a node are in their final
 * form when its rules are tried, and what a rule answers is looked at again. A
 * sweep is repeated if a rule may match an inner node of a replacement, or a
 * node before that became the only user of its operand. Constants are folded as
 * they are built.
 *
 * A rule is refused if it would build more calls than it makes dead, unless it
 * is declared to grow the graph. */

#include "eval/call.h"
#include "ir/graph/describe.h"
#include "ir/infer/apply.h"
#include "ir/provenance/rule_application.h"
#include "ir/rewrite/rewrite.h"
#include "rule/set.h"

enum { MAX_STEPS = 64, MAX_SWEEPS = 64 };

/* --------------------------------------------------------------- accessors */

pln_rewrite *pln_rule_driver_rewrite(const pln_rule_driver *run) {
  return run->rw;
}

uint32_t pln_rule_driver_uses(const pln_rule_driver *run, pln_ref node) {
  if (run->saturates)
    return 1;
  uint32_t uses = node < run->uses.n ? run->uses.now[node] : 0;
  return run->lets.now.n ? pln_rule_bound_uses(run, node, uses) : uses;
}

pln_ref pln_rule_driver_old(const pln_rule_driver *run) {
  return run->old;
}

void *pln_rule_driver_ud(const pln_rule_driver *driver) {
  return driver->options->ud;
}

uint32_t pln_rule_match_count(const pln_rule_match *match) {
  return match->rule->n_vars;
}

pln_slice pln_rule_match_name(const pln_rule_match *match, uint32_t var) {
  return match->rule->vars[var];
}

pln_ref pln_rule_match_root(const pln_rule_match *match) {
  return match->root;
}

pln_rule_driver *pln_rule_match_driver(const pln_rule_match *match) {
  return match->run;
}

const pln_rule_info *pln_rule_match_rule(const pln_rule_match *match) {
  return &match->rule->info;
}

uint32_t pln_rule_match_index(const pln_rule_match *match) {
  return match->variant->rule;
}

const pln_rule_value *pln_rule_match_value(const pln_rule_match *match,
                                           uint32_t var) {
  return &match->slots[var];
}

/* ------------------------------------------------------------ other results
 */

/* Marks calls with a use of a result other than the first. */
static void mark_other_results(const pln_graph *g, uint8_t *used) {
  for (pln_ref i = 0; i < g->n_nodes; i++) {
    const pln_node *n = &g->nodes[i];
    if (n->kind == PLN_TUPLE_GET_ITEM && n->data == 0)
      continue;
    for (uint32_t k = 0; k < n->count; k++)
      used[g->operands[n->first + k]] = 1;
  }
  for (pln_scope s = 0; s < g->n_scopes; s++)
    if (g->scopes[s].result != PLN_NONE)
      used[g->scopes[s].result] = 1;
}

pln_status pln_rule_driver_first_result_only(pln_rule_driver *r, bool *out) {
  const pln_graph *old = pln_rewrite_old(r->rw);
  if (!r->other_results) {
    r->other_results = pln_mem_zeroed(r->engine, old->n_nodes);
    if (!r->other_results)
      return pln_nomem(r->engine);
    mark_other_results(old, r->other_results);
  }
  *out = !r->other_results[r->old];
  return PLN_OK;
}

/* ----------------------------------------------------------------- folding */

static pln_status fits_budget(pln_rule_driver *r, const pln_graph *g,
                              pln_ref node, bool *out) {
  size_t bytes = pln_budget_bytes(g, node);
  *out = false;
  if (bytes > PLN_BUDGET_MAX)
    return PLN_OK;
  PLN_TRY(pln_use_counts_cover(&r->uses, node));
  *out = pln_budget_allows(&r->budget, bytes,
                           pln_budget_freed(g, node, r->uses.now));
  return PLN_OK;
}

/* Returns true if the call fills a tensor: it stays smaller as a call. */
static bool is_fill(const pln_node *n) {
  return n->count == 0 || n->data == PLN_OP_FULL;
}

pln_status pln_rule_fold(pln_rule_driver *r, pln_ref *node) {
  const pln_graph *g = pln_rewrite_graph(r->rw);
  pln_builder *b = pln_rewrite_builder(r->rw);
  pln_refusal why;
  pln_tensor *result;
  if (!b)
    return PLN_ERR_NOMEM;
  bool fits = false;
  if (!pln_n_fields(g, &g->nodes[*node]) && !is_fill(&g->nodes[*node]) &&
      pln_eval_can_fold(g, *node, &why))
    PLN_TRY(fits_budget(r, g, *node, &fits));
  if (!fits)
    return PLN_OK;
  pln_status status = pln_eval_call(g, *node, &result);
  if (status == PLN_ERR_UNSUPPORTED)
    return PLN_OK;
  PLN_TRY(status);
  pln_ref call = *node;
  status = pln_build_constant(b, result, node);
  pln_tensor_release(result);
  b->graph->nodes[call].flags |= PLN_NODE_DROPPED;
  return status;
}

/* The number that the next node of the new graph gets. Until the first change
 * the new graph is the old one, of which nodes were swept so far. */
static pln_ref next_node(const pln_rule_driver *r) {
  return r->rw->b ? r->rw->b->graph->n_nodes : r->rw->swept;
}

/* ---------------------------------------------------------------- use counts
 */

static pln_status push_dead(pln_rule_driver *r, pln_ref node) {
  PLN_TRY(pln_mem_grow(r->engine, (void **)&r->dead, &r->cap_dead,
                       (size_t)r->n_dead + 1, sizeof *r->dead));
  r->dead[r->n_dead++] = node;
  return PLN_OK;
}

static bool dies_unused(const pln_node *n) {
  return !pln_is_effect_ordered(n) && !pln_owns(n) && n->kind != PLN_VAR;
}

/* Returns true if a node built from `first` on uses the node. */
static bool is_used_from(const pln_rule_driver *r, pln_ref node,
                         pln_ref first) {
  const pln_graph *g = pln_rewrite_graph(r->rw);
  for (pln_ref i = first; i < next_node(r); i++)
    for (uint32_t k = 0; k < g->nodes[i].count; k++)
      if (g->operands[g->nodes[i].first + k] == node)
        return true;
  return false;
}

/* The uses that a replaced node made of its operands end, and so do those of
 * operands that are dead then. An operand with one use left may let its user,
 * which was swept, match now. */
static pln_status end_uses(pln_rule_driver *r, pln_ref node, pln_ref found,
                           pln_ref first) {
  const pln_graph *g = pln_rewrite_graph(r->rw);
  r->n_dead = 0;
  PLN_TRY(push_dead(r, node));
  while (r->n_dead) {
    const pln_node *n = &g->nodes[r->dead[--r->n_dead]];
    if (!dies_unused(n))
      continue;
    for (uint32_t i = 0; i < n->count; i++) {
      pln_ref operand = g->operands[n->first + i];
      if (operand >= r->uses.n || !r->uses.now[operand])
        continue;
      uint32_t left = --r->uses.now[operand];
      if (left == 0)
        PLN_TRY(push_dead(r, operand));
      r->unfinished |=
          left == 1 && operand != found && !is_used_from(r, operand, first);
    }
  }
  return PLN_OK;
}

/* Counts the uses made by the nodes built from `first` on. */
static pln_status count_built(pln_rule_driver *r, pln_ref first) {
  const pln_graph *g = pln_rewrite_graph(r->rw);
  for (pln_ref i = first; i < next_node(r); i++)
    if (!(g->nodes[i].flags & PLN_NODE_DROPPED))
      PLN_TRY(pln_use_counts_change(&r->uses, g, i, 1));
  return PLN_OK;
}

/* Counts the uses that change when `found`, or what was built for it from
 * `first` on, replaces a node. `found` itself gets its uses when the sweep goes
 * on; until then it is no dead operand. */
static pln_status replace_uses(pln_rule_driver *r, pln_ref node, pln_ref found,
                               pln_ref first) {
  PLN_TRY(count_built(r, first));
  PLN_TRY(pln_use_counts_cover(&r->uses, found));
  r->uses.now[found]++;
  pln_status status = end_uses(r, node, found, first);
  r->uses.now[found]--;
  return status;
}

/* Makes room for what the rules read so far need. */
static pln_status make_room(pln_rule_driver *r) {
  const pln_rule_set *s = r->set;
  uint32_t before = r->cap_values;
  PLN_TRY(pln_mem_grow(r->engine, (void **)&r->paths, &r->cap_paths,
                       (size_t)s->n_paths + 1, sizeof *r->paths));
  PLN_TRY(pln_mem_grow(r->engine, (void **)&r->values, &r->cap_values,
                       (size_t)s->most_ast + 1, sizeof *r->values));
  if (r->cap_values > before)
    memset(r->values + before, 0, (r->cap_values - before) * sizeof *r->values);
  return PLN_OK;
}

/* Reads the rules of a root unless they are read. */
static pln_status need_root(pln_rule_driver *r, uint32_t at, uint32_t *root) {
  const pln_rule_set *s = r->set;
  if (*root == PLN_TREE_UNREAD)
    PLN_TRY(pln_rule_set_read(s, at));
  *root = s->roots[at];
  bool small = r->cap_paths <= s->n_paths || r->cap_values <= s->most_ast;
  return small ? make_room(r) : PLN_OK;
}

/* The tree of a node's operator or kind. Rules may be read for it. */
static inline pln_status find_root(pln_rule_driver *r, const pln_graph *g,
                                   pln_ref node, uint32_t *root) {
  const pln_rule_set *s = r->set;
  uint32_t at = pln_rule_key(s->n_root_ops, &g->nodes[node]);
  *root = s->roots[at];
  return *root && s->self ? need_root(r, at, root) : PLN_OK;
}

/* What the tree leaves of the rules for a node. */
static const uint32_t *find_variants(const pln_rule_driver *r,
                                     const pln_graph *g, pln_ref node,
                                     uint32_t root, uint32_t *count) {
  return pln_rule_sees_lets(r)
             ? pln_rule_tree_find_bound(r->set, g, &r->lets.now, node, root,
                                        r->paths, count)
             : pln_rule_tree_find(r->set, g, node, root, r->paths, count);
}

/* Notes whether a rule may match an inner node of a replacement, which this
 * sweep does not visit. */
static pln_status look_at_inner_nodes(pln_rule_driver *r, pln_ref found,
                                      pln_ref first) {
  const pln_graph *g = pln_rewrite_graph(r->rw);
  uint32_t count, root;
  for (pln_ref i = first; i < next_node(r) && !r->unfinished; i++) {
    if (i == found || (g->nodes[i].flags & PLN_NODE_DROPPED))
      continue;
    PLN_TRY(find_root(r, g, i, &root));
    (void)find_variants(r, g, i, root, &count);
    r->unfinished = count > 0;
  }
  return PLN_OK;
}

/* ------------------------------------------------------------------- growth */

/* A let is used by what it is in. */
static bool has_one_user(const pln_rule_match *m, pln_ref node) {
  return pln_rule_graph(m)->nodes[node].kind == PLN_LET ||
         pln_rule_driver_uses(m->run, node) == 1;
}

/* The number of matched calls that nothing uses after the replacement. */
static uint32_t count_freed(const pln_rule_match *m) {
  const pln_graph *g = pln_rule_graph(m);
  bool dies[PLN_RULE_MAX_NODES] = {true};
  uint32_t n = 1;
  for (uint32_t i = 1; i < m->variant->count; i++) {
    const pln_pattern_node *p = &m->set->patterns[m->variant->first + i];
    pln_ref node = m->nodes[i];
    dies[i] = p->parent == PLN_MATCH_ROOT ||
              (node != PLN_NONE && dies[p->parent] && has_one_user(m, node) &&
               !(g->nodes[node].flags & PLN_NODE_KEEP));
    n += dies[i] && g->nodes[node].kind == PLN_CALL;
  }
  return n;
}

static bool is_constant_slot(const pln_rule_match *m, uint32_t var) {
  const pln_rule_value *v = &m->slots[var];
  return v->kind == PLN_VALUE_NODE &&
         pln_rule_graph(m)->nodes[v->v.node].kind == PLN_CONSTANT;
}

/* The number of calls that the replacement builds if all calls of constants
 * fold. */
static uint32_t count_new(pln_rule_match *m) {
  const pln_ast *a = &m->rule->ast;
  uint32_t root = a->replacement, n = 0;
  for (uint32_t i = a->nodes[root].begin; i <= root; i++) {
    const pln_ast_node *node = &a->nodes[i];
    bool constant = true;
    if (node->is_value)
      continue;
    bool literal = node->kind == PLN_AST_CALL && node->n_heads &&
                   pln_slice_is(a->heads[node->heads], "constant");
    for (uint32_t k = 0; k < node->count && !literal; k++)
      constant =
          constant &&
          m->run->values[a->operands[node->first + k]].kind == PLN_VALUE_BOOL;
    if (node->kind == PLN_AST_VAR)
      constant = is_constant_slot(m, node->refers);
    bool call = node->kind == PLN_AST_CALL || node->kind == PLN_AST_UNARY ||
                node->kind == PLN_AST_BINARY;
    n += call && !constant;
    if (node->kind == PLN_AST_NAMED || node->kind == PLN_AST_SPREAD)
      constant = true;
    /* BOOL marks what is constant; replace.c sets the values anew */
    m->run->values[i] =
        (pln_rule_value){.kind = constant ? PLN_VALUE_BOOL : PLN_VALUE_UNKNOWN};
  }
  return n;
}

static uint32_t count_calls(const pln_rule_driver *r, pln_ref first) {
  const pln_graph *g = pln_rewrite_graph(r->rw);
  uint32_t n = 0;
  for (pln_ref i = first; i < next_node(r); i++)
    n +=
        g->nodes[i].kind == PLN_CALL && !(g->nodes[i].flags & PLN_NODE_DROPPED);
  return n;
}

/* ------------------------------------------------------------------ answers */

/* Removes what a refused rule built. */
static void drop_built(pln_rule_driver *r, pln_ref first) {
  pln_builder *b = pln_rewrite_builder(r->rw);
  for (pln_ref i = first; b && i < b->graph->n_nodes; i++)
    b->graph->nodes[i].flags |= PLN_NODE_DROPPED;
}

/* PLN_ERR_TYPE: the replacement's type contradicts that of the root. A lenient
 * run does not use it: types that a file declares may be wrong. */
static pln_status check_type(pln_rule_match *m, pln_ref root, pln_ref found,
                             bool *use) {
  const pln_graph *g = pln_rule_graph(m);
  pln_engine *e = g->engine;
  pln_type both, old = g->nodes[root].type, now = g->nodes[found].type;
  bool fits;
  PLN_TRY(pln_type_unify(e, old, now, &both, &fits));
  *use = fits;
  if (fits || m->run->options->lenient)
    return PLN_OK;
  pln_description before, after;
  const pln_rule_info *rule = &m->rule->info;
  pln_span span = {.source = rule->file, .row = rule->row};
  return pln_diag_error(e, PLN_ERR_TYPE, &span,
                        "rule '%s' replaces a node of type %s by one of type "
                        "%s",
                        rule->name, pln_describe_type(e, old, &before),
                        pln_describe_type(e, now, &after));
}

/* Variables that the nodes built from `first` on have and do not bind. */
static int64_t count_free(const pln_graph *g, pln_ref first, pln_ref end) {
  int64_t n = 0;
  for (pln_ref i = first; i < end; i++) {
    const pln_node *node = &g->nodes[i];
    if (node->flags & PLN_NODE_DROPPED)
      continue;
    n += node->kind == PLN_VAR && !(node->flags & PLN_NODE_PARAM);
    n -= (node->kind == PLN_LET || node->kind == PLN_PATTERN_VAR) &&
         pln_operand(g, i, 0) >= first;
  }
  return n;
}

static bool is_bound_from(const pln_graph *g, pln_ref var, pln_ref end) {
  for (pln_ref i = var + 1; i < end; i++)
    if ((g->nodes[i].kind == PLN_LET || g->nodes[i].kind == PLN_PATTERN_VAR) &&
        pln_operand(g, i, 0) == var)
      return true;
  return false;
}

/* A callback may give nodes of another function: its variables would be free in
 * this one. A free expression may have any. */
static pln_status check_free(const pln_rule_match *m, pln_ref first) {
  const pln_graph *g = pln_rule_graph(m), *old = pln_rewrite_old(m->run->rw);
  pln_ref end = next_node(m->run);
  if (old->nodes[old->root].kind != PLN_FUNCTION ||
      count_free(g, first, end) <= 0)
    return PLN_OK;
  while (g->nodes[first].kind != PLN_VAR ||
         (g->nodes[first].flags & (PLN_NODE_PARAM | PLN_NODE_DROPPED)) ||
         is_bound_from(g, first, end))
    first++;
  const pln_rule_info *rule = &m->rule->info;
  pln_span span = {.source = rule->file, .row = rule->row};
  return pln_diag_error(g->engine, PLN_ERR_INVALID, &span,
                        "rule '%s': its replacement has the variable '%s', "
                        "which the function does not have",
                        rule->name,
                        pln_symbol_text(g->engine, g->nodes[first].attrs).data);
}

static const char larger[] = "its replacement would make the graph larger";

/* Finds the replacement of a matched rule; PLN_NONE: there is none that builds
 * at most `freed` calls. */
static pln_status find_answer(pln_rule_match *m, uint32_t freed, pln_ref *out) {
  const pln_rule_entry *rule = m->rule;
  pln_rule_driver *r = m->run;
  *out = PLN_NONE;
  if (rule->native)
    return rule->native(rule->native_ud, r, m->root, out);
  if (rule->info.replacement)
    return rule->info.replacement(rule->info.ud, m, NULL, out);
  const pln_ast *a = &rule->ast;
  if (a->nodes[a->replacement].kind == PLN_AST_VAR) {
    const pln_rule_value *v = &m->slots[a->nodes[a->replacement].refers];
    *out = v->kind == PLN_VALUE_NODE ? v->v.node : PLN_NONE;
    if (*out == PLN_NONE || !pln_rewrite_has_left(r->rw, *out))
      return PLN_OK;
  }
  if (count_new(m) > freed) {
    m->reason = larger;
    return PLN_OK;
  }
  pln_status status = pln_rule_replace(m, out);
  if (status == PLN_ERR_TYPE) {
    pln_span span = {.source = rule->info.file, .row = rule->info.row};
    pln_diag_note(r->engine, &span, "in rule '%s'", rule->info.name);
  }
  return status;
}

/* A new node keeps what was known of the old one's type. */
static pln_status keep_type(pln_rule_driver *r, pln_ref found, pln_ref first,
                            pln_type type) {
  return found >= first ? pln_keep_type(r->rw, found, type)
                        : pln_keep_rank(r->rw, found, type);
}

pln_status pln_rule_build_answer(pln_rule_match *m, pln_ref *out) {
  pln_rule_driver *r = m->run;
  pln_ref first = next_node(r);
  bool unlimited = m->rule->info.grows || m->rule->native, fits = true;
  uint32_t freed = unlimited ? UINT32_MAX / 2 : count_freed(m);
  m->reason = "there is no replacement for these values";
  r->hoisted = 0;
  PLN_TRY(find_answer(m, freed, out));
  if (*out == m->root && m->variant->n_roots == 1) {
    m->reason = "its replacement is the node itself";
    *out = PLN_NONE;
  }
  if (*out != PLN_NONE && count_calls(r, first) > freed + r->hoisted) {
    m->reason = larger;
    *out = PLN_NONE;
  }
  if (*out != PLN_NONE && m->rule->info.replacement)
    PLN_TRY(check_free(m, first));
  if (*out != PLN_NONE)
    PLN_TRY(check_type(m, m->root, *out, &fits));
  for (uint32_t i = 0; *out != PLN_NONE && fits && i < m->variant->n_roots; i++)
    if (i != m->variant->anchor)
      PLN_TRY(check_type(m, m->roots[i], m->answers[i], &fits));
  if (!fits) {
    m->reason = "its replacement has another type";
    *out = PLN_NONE;
  }
  if (*out == PLN_NONE && next_node(r) > first)
    drop_built(r, first);
  return PLN_OK;
}

/* Tries one variant; *out PLN_NONE: it does not apply. */
static pln_status try_variant(pln_rule_match *m, uint32_t variant,
                              pln_ref *out) {
  pln_rule_driver *r = m->run;
  const pln_graph *g = pln_rule_graph(m);
  bool matches, allowed;
  m->variant = &m->set->variants[variant];
  *out = PLN_NONE;
  pln_rule_counter none = {0}, *counter = &none;
  if (r->options->counts)
    counter = &r->options->counts[m->variant->rule];
  PLN_TRY(pln_rule_find_match(m, &matches));
  if (!matches)
    return PLN_OK;
  counter->matches++;
  PLN_TRY(pln_rule_check_condition(m, &matches));
  if (!matches) {
    counter->refused++;
    return PLN_OK;
  }
  pln_type type = g->nodes[m->root].type;
  pln_ref first = next_node(r);
  PLN_TRY(pln_rule_build_answer(m, out));
  if (*out == PLN_NONE)
    return PLN_OK;
  PLN_TRY(pln_rewrite_apply(r->rw, m->rule->info.name, &allowed));
  if (!allowed) {
    *out = PLN_NONE;
    return PLN_OK;
  }
  if (m->variant->n_roots > 1)
    PLN_TRY(pln_rule_note_roots(m));
  PLN_TRY(*out == m->root ? count_built(r, first)
                          : replace_uses(r, m->root, *out, first));
  counter->applied++;
  if (r->options->places)
    r->options->places[m->variant->rule].node = r->old;
  r->last_rule = m->variant->rule;
  PLN_TRY(look_at_inner_nodes(r, *out, first));
  return keep_type(r, *out, first, type);
}

static pln_status watched_try(pln_rule_match *m, uint32_t variant,
                              pln_ref *out) {
  pln_engine *e = m->run->engine;
  uint32_t rule = m->set->variants[variant].rule;
  const char *name = m->set->rules[rule].info.name;
  double began = m->run->watched ? pln_rule_clock(e) : 0;
  const pln_rule_options *options = m->run->options;
  double start = options->timed ? pln_seconds_now() : 0;
  if (options->counts)
    options->counts[rule].tried++;
  PLN_TRY(try_variant(m, variant, out));
  if (options->counts && options->timed)
    options->counts[rule].seconds += pln_seconds_now() - start;
  return m->run->watched ? pln_rule_tried(e, name, 1, began) : PLN_OK;
}

/* Counts the uses of nodes that were swept but not visited. */
static pln_status count_swept(pln_rule_driver *r) {
  for (; r->counted < r->old; r->counted++)
    PLN_TRY(pln_use_counts_replace(&r->uses, r->counted,
                                   pln_rewrite_image(r->rw, r->counted)));
  return PLN_OK;
}

/* Counts uses from the first node on that a rule may match. */
static pln_status begin_counting(pln_rule_driver *r) {
  PLN_TRY(pln_use_counts_begin(&r->uses, pln_rewrite_old(r->rw)));
  r->counting = true;
  r->counted = 0;
  return count_swept(r);
}

bool pln_rule_is_enabled(const pln_rule_options *options, const char *name,
                         pln_proof_class proof) {
  const pln_attr *only = options->only;
  bool listed = !only || only->count == 0;
  for (uint32_t i = 0; !listed && i < only->count; i++)
    listed = pln_slice_is(only->v.strings[i], name);
  return listed && (!options->exact || proof == PLN_PROOF_EXACT);
}

/* Tries a list of variants, or with `variants` NULL `count` ones from `first`
 * on. *out is the answer of the first that applies. */
static pln_status try_variants(pln_rule_driver *r, pln_ref node,
                               const uint32_t *variants, uint32_t first,
                               uint32_t count, pln_ref *out) {
  pln_rule_match *m = r->match;
  if (count && !r->counting)
    PLN_TRY(begin_counting(r));
  for (uint32_t i = 0; i < count && *out == PLN_NONE; i++) {
    uint32_t variant = variants ? variants[i] : first + i;
    const pln_rule_entry *rule = &r->set->rules[r->set->variants[variant].rule];
    if (!pln_rule_is_enabled(r->options, rule->info.name, rule->info.proof))
      continue;
    m->root = node;
    PLN_TRY(watched_try(m, variant, out));
  }
  return PLN_OK;
}

/* Tries all rules in order. */
static pln_status try_all(pln_rule_driver *r, pln_ref node, pln_ref *out) {
  for (uint32_t i = 0; i < r->set->n_rules && *out == PLN_NONE; i++) {
    const pln_rule_entry *rule = &r->set->rules[i];
    PLN_TRY(try_variants(r, node, NULL, rule->first_variant, rule->n_variants,
                         out));
  }
  return PLN_OK;
}

/* Tries the rules on one node. */
static pln_status try_rules(pln_rule_driver *r, pln_ref node, pln_ref *out) {
  uint32_t count, root;
  *out = PLN_NONE;
  if (r->options->naive)
    return try_all(r, node, out);
  const pln_graph *g = r->rw->b ? r->rw->b->graph : r->rw->old;
  PLN_TRY(find_root(r, g, node, &root));
  if (root == PLN_TREE_NO_MATCH)
    return PLN_OK;
  if (pln_rule_sees_lets(r) && r->set->names_vars)
    return try_all(r, node, out);
  const uint32_t *variants = find_variants(r, g, node, root, &count);
  return try_variants(r, node, variants, 0, count, out);
}

/* ------------------------------------------------------------------- sweeps */

static pln_status endless(const pln_rule_driver *r, const char *what,
                          uint32_t times) {
  const pln_rule_info *rule = &r->set->rules[r->last_rule].info;
  pln_span span = {.source = rule->file, .row = rule->row};
  return pln_diag_error(r->engine, PLN_ERR_LIMIT, &span,
                        "the rules of '%s' do not come to an end: %s %u "
                        "times, the last time by rule '%s'",
                        r->set->name, what, times, rule->name);
}

/* The node is a root that was replaced when the sweep met another root. */
static pln_status use_noted(pln_rule_driver *r, pln_ref *node) {
  pln_ref found = pln_rule_noted(r, r->old), root = *node;
  pln_type type = pln_rewrite_graph(r->rw)->nodes[root].type;
  PLN_TRY(replace_uses(r, root, found, next_node(r)));
  r->uses.now[found]--; /* it was held until now */
  *node = found;
  return keep_type(r, found, next_node(r), type);
}

/* Applies the rules to a node until none matches. */
static pln_status rewrite_node(pln_rule_driver *r, pln_ref *node) {
  for (int step = 0;; step++) {
    pln_ref first = next_node(r), next;
    if (step == MAX_STEPS)
      return endless(r, "one node was replaced", MAX_STEPS);
    PLN_TRY(try_rules(r, *node, &next));
    if (next == PLN_NONE)
      break;
    bool same = next == *node; /* other roots of a rule were replaced */
    *node = next;
    if (next < first && !same) /* its rules were tried when it was swept */
      break;
  }
  if (r->options->visit &&
      pln_node_kind(pln_rewrite_graph(r->rw), *node) == r->options->visited)
    PLN_TRY(r->options->visit(r->options->ud, r->rw, r->old, node));
  return r->options->number_values
             ? pln_rewrite_number_value(r->rw, *node, node)
             : PLN_OK;
}

static pln_status visit_node(void *ud, pln_rewrite *rw, pln_ref old,
                             pln_ref *node) {
  pln_rule_driver *r = ud;
  r->rw = rw;
  r->old = old;
  if (r->counting)
    PLN_TRY(count_swept(r));
  if (pln_rule_sees_lets(r))
    PLN_TRY(pln_rule_note_lets(r));
  if (r->options->explain) {
    if (!r->counting)
      PLN_TRY(begin_counting(r));
    PLN_TRY(pln_rule_explain_node(r->match, *node));
  } else if (pln_rule_noted(r, old) != PLN_NONE) {
    PLN_TRY(use_noted(r, node));
  } else {
    PLN_TRY(rewrite_node(r, node));
  }
  if (!r->counting)
    return PLN_OK;
  r->counted = old + 1;
  return pln_use_counts_replace(&r->uses, old, *node);
}

/* Finds the next node that a rule may match or that the options want. */
static pln_ref next_node_to_visit(void *ud, const pln_graph *old, pln_ref from,
                                  pln_ref end) {
  const pln_rule_driver *r = ud;
  pln_kind visited = r->options->visit ? r->options->visited : PLN_N_KINDS;
  return pln_rule_sees_lets(r)
             ? pln_rule_tree_next_bound(r->set, old, &r->lets.old, from, end,
                                        visited, r->paths)
             : pln_rule_tree_next(r->set, old, from, end, visited, r->paths);
}

/* Describes where each rule was applied last, while the swept graph is there.
 */
static void describe_places(const pln_rule_driver *r, const pln_graph *swept) {
  pln_rule_place *p = r->options->places;
  for (uint32_t i = 0; p && i < r->set->n_rules; i++)
    if (p[i].node != PLN_NONE)
      (void)pln_history_describe(swept, pln_node_history(swept, p[i].node),
                                 p[i].text, sizeof p[i].text);
}

static void forget_places(const pln_rule_driver *r) {
  pln_rule_place *p = r->options->places;
  for (uint32_t i = 0; p && i < r->set->n_rules; i++)
    p[i].node = PLN_NONE;
}

static pln_status sweep(pln_rule_driver *r, const pln_graph *graph,
                        pln_graph **out) {
  PLN_TRY(r->options->lets ? pln_rule_begin_lets(r, graph) : PLN_OK);
  bool all = r->options->naive || r->options->explain ||
             r->options->number_values ||
             (pln_rule_sees_lets(r) && r->set->names_vars);
  pln_mutator m = {.ud = r,
                   .visit = visit_node,
                   .next = all ? NULL : next_node_to_visit,
                   .keeps_types = r->options->lenient};
  r->counting = false;
  r->unfinished = false;
  forget_places(r);
  pln_status status = pln_graph_rewrite(graph, &m, out);
  if (status == PLN_OK && *out != graph)
    describe_places(r, graph);
  if (r->counting)
    pln_use_counts_end(&r->uses);
  pln_rule_forget_roots(r, graph);
  pln_rule_forget_lets(r);
  pln_mem_free(r->engine, r->other_results,
               r->other_results ? graph->n_nodes : 0);
  r->other_results = NULL;
  return status;
}

/* Sweeps until no rule may match a node that was not looked at. */
static pln_status sweep_all(pln_rule_driver *r, const pln_graph *graph,
                            pln_graph **out) {
  pln_graph *next;
  *out = pln_graph_retain(graph);
  for (uint32_t i = 0; i < MAX_SWEEPS; i++) {
    pln_status status = sweep(r, *out, &next);
    bool done = status != PLN_OK || next == *out || !r->unfinished;
    pln_graph_release(*out);
    *out = status == PLN_OK ? next : NULL;
    if (done)
      return status;
  }
  pln_graph_release(*out);
  *out = NULL;
  return endless(r, "the graph was swept", MAX_SWEEPS);
}

pln_status pln_rule_driver_use(pln_rule_driver *r, const pln_rule_set *set) {
  r->set = r->match->set = set;
  return make_room(r);
}

pln_status pln_rule_driver_begin(pln_rule_driver *r, pln_engine *engine,
                                 const pln_rule_set *set,
                                 const pln_rule_options *options) {
  *r = (pln_rule_driver){.engine = engine,
                         .set = set,
                         .options = options,
                         .watched = pln_rules_watched(engine)};
  r->match = pln_mem_zeroed(engine, sizeof *r->match);
  if (!r->match)
    return pln_nomem(engine);
  r->match->run = r;
  return pln_rule_driver_use(r, set);
}

void pln_rule_driver_end(pln_rule_driver *r) {
  pln_engine *e = r->engine;
  pln_mem_free(e, r->paths, r->cap_paths * sizeof *r->paths);
  pln_mem_free(e, r->values, r->cap_values * sizeof *r->values);
  pln_mem_free(e, r->match, r->match ? sizeof *r->match : 0);
  pln_mem_free(e, r->pool, r->cap_pool * sizeof *r->pool);
  pln_mem_free(e, r->dead, r->cap_dead * sizeof *r->dead);
}

pln_status pln_rules_apply(const pln_rule_set *set, const pln_graph *graph,
                           const pln_rule_options *options, pln_graph **out) {
  pln_rule_driver r;
  bool all = options->naive || options->explain;
  PLN_TRY(all ? pln_rule_set_read_all(set) : PLN_OK);
  pln_status status = pln_rule_driver_begin(&r, graph->engine, set, options);
  if (status == PLN_OK)
    status = sweep_all(&r, graph, out);
  pln_rule_driver_end(&r);
  return status;
}
