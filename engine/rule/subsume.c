/* subsume.c: rules that cannot work, found when a set is made.
 *
 * A pattern subsumes a term if it matches whatever the term stands for. A
 * replacement that the rule's own pattern subsumes would be replaced for ever.
 * A pattern that an earlier rule's pattern subsumes is never reached. Both
 * tests are conservative: what depends on a value is no match here.
 *
 * Called by set.c. */

#include "rule/set.h"

/* What every operator's calls and values hold a node to. */
#define CONSTANT_CONSTRAINTS \
  (PLN_CONSTRAINT_CONST | PLN_CONSTRAINT_SCALAR | PLN_CONSTRAINT_SPLAT)

/* --------------------------------------------- a replacement and its pattern
 */

/* A variant of the rule, compared with a subtree of its replacement. */
typedef struct subsumption {
  const pln_rule_set *set;
  const pln_rule_entry *rule;
  const pln_rule_variant *variant;
  uint32_t at[PLN_RULE_MAX_NODES]; /* by pattern node: the replacement's */
} subsumption;

static const pln_pattern_node *pattern_of(const subsumption *s, uint32_t i) {
  return &s->set->patterns[s->variant->first + i];
}

static const pln_ast_node *term(const subsumption *s, uint32_t i) {
  return &s->rule->ast.nodes[s->at[i]];
}

static bool is_attribute(const pln_ast_node *n) {
  return n->kind == PLN_AST_NAMED || n->kind == PLN_AST_SPREAD;
}

static bool is_call(const pln_ast_node *n) {
  return n->kind == PLN_AST_CALL || n->kind == PLN_AST_UNARY ||
         n->kind == PLN_AST_BINARY;
}

/* The pattern node that binds a variable, or that binds it as an operator. */
static const pln_pattern_node *binder(const subsumption *s, uint32_t var,
                                      bool as_operator) {
  for (uint32_t i = 0; i < s->variant->count; i++) {
    const pln_pattern_node *p = pattern_of(s, i);
    if ((as_operator ? p->op_slot : p->slot) == (int16_t)var)
      return p;
  }
  return NULL;
}

static bool has_every_op(const pln_rule_set *s, const pln_pattern_node *of,
                         const pln_op *ops, uint32_t n) {
  for (uint32_t i = 0, k = 0; i < n; i++) {
    while (k < of->n_ops && s->ops[of->ops + k] < ops[i])
      k++;
    if (k == of->n_ops || s->ops[of->ops + k] != ops[i])
      return false;
  }
  return true;
}

/* Returns true if calls that the term builds are calls of the pattern's
 * operators. */
static bool builds_ops(const subsumption *s, const pln_pattern_node *p,
                       const pln_ast_node *n) {
  pln_op op =
      n->kind == PLN_AST_CALL ? n->refers : pln_rule_operator_op(n->operator_);
  if (!n->text.size || n->kind != PLN_AST_CALL)
    return has_every_op(s->set, p, &op, 1);
  const pln_pattern_node *bound = binder(s, n->refers, true);
  return bound && bound->n_ops &&
         has_every_op(s->set, p, s->set->ops + bound->ops, bound->n_ops);
}

static uint32_t count_operands(const pln_ast *a, const pln_ast_node *n) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_ast_node *arg = &a->nodes[a->operands[n->first + i]];
    if (arg->kind == PLN_AST_VAR && arg->is_rest)
      return PLN_NONE;
    count += !is_attribute(arg);
  }
  return count;
}

static bool is_literal(const pln_ast_node *n) {
  return n->kind == PLN_AST_NUMBER || n->kind == PLN_AST_NAME ||
         n->kind == PLN_AST_STRING;
}

static bool same_literal(const pln_ast *a, uint32_t x, const pln_ast *b,
                         uint32_t y) {
  const pln_ast_node *m = &a->nodes[x], *n = &b->nodes[y];
  if (m->kind != n->kind || !is_literal(m))
    return false;
  return m->kind == PLN_AST_NUMBER
             ? m->number == n->number && m->integer == n->integer
             : pln_slice_equal(m->text, n->text);
}

/* Returns true if the term gives the attribute a value that the pattern
 * accepts. */
static bool gives_attribute(const subsumption *s, const pln_pattern_node *p,
                            const pln_attr_pattern *want,
                            const pln_ast_node *n) {
  const pln_ast *a = &s->rule->ast;
  pln_op op = s->set->ops[p->ops];
  for (uint32_t i = 0; i < n->count; i++) {
    const pln_ast_node *arg = &a->nodes[a->operands[n->first + i]];
    if (arg->kind == PLN_AST_NAMED &&
        pln_slice_equal(pln_rule_core_name(s->set->engine, op, arg->text),
                        want->name))
      return want->slot >= 0 ||
             same_literal(a, want->expression, a, a->operands[arg->first]);
  }
  return false;
}

static bool subsumes_call(const subsumption *s, const pln_pattern_node *p,
                          const pln_ast_node *n) {
  uint32_t count = count_operands(&s->rule->ast, n);
  if (!is_call(n) || !builds_ops(s, p, n) || count == PLN_NONE ||
      count < p->n_least || (count > p->n_args && !p->any_count) ||
      p->constraints & ~(uint32_t)PLN_CONSTRAINT_ONCE)
    return false;
  for (uint32_t i = 0; i < p->n_attrs; i++)
    if (!gives_attribute(s, p, &s->set->attrs[p->attrs + i], n))
      return false;
  return true;
}

/* Returns true if a node that the term stands for fulfils the constraints. */
static bool fulfils(const subsumption *s, uint32_t constraints,
                    const pln_ast_node *n) {
  if (!constraints)
    return true;
  if (n->kind == PLN_AST_NUMBER)
    return !(constraints & ~(uint32_t)CONSTANT_CONSTRAINTS);
  const pln_pattern_node *bound =
      n->kind == PLN_AST_VAR ? binder(s, n->refers, false) : NULL;
  return bound && !(constraints & PLN_CONSTRAINT_ONCE) &&
         !(constraints & ~bound->constraints);
}

/* Returns true if pattern nodes of one variable stand for one variable of the
 * replacement. */
static bool binds_alike(const subsumption *s, uint32_t i) {
  const pln_pattern_node *p = pattern_of(s, i);
  if (!p->again)
    return true;
  for (uint32_t k = 0; k < i; k++) {
    const pln_ast_node *a = term(s, k), *b = term(s, i);
    if (pattern_of(s, k)->slot == p->slot)
      return a->kind == PLN_AST_VAR && b->kind == PLN_AST_VAR &&
             a->refers == b->refers;
  }
  return false;
}

/* Returns true if the term has a variable that may be no constant, so that it
 * is not folded. */
static bool is_kept(const subsumption *s, uint32_t root) {
  const pln_ast *a = &s->rule->ast;
  for (uint32_t i = a->nodes[root].begin; i <= root; i++) {
    const pln_ast_node *n = &a->nodes[i];
    if (n->kind != PLN_AST_VAR || n->is_value)
      continue;
    const pln_pattern_node *p = binder(s, n->refers, false);
    if (!p || p->kind == PLN_MATCH_CALL ||
        !(p->constraints & CONSTANT_CONSTRAINTS))
      return true;
  }
  return false;
}

/* Operand `number` of a term, attributes not counted; PLN_NONE. */
static uint32_t operand_at(const pln_ast *a, const pln_ast_node *n,
                           uint32_t number) {
  for (uint32_t k = 0; k < n->count; k++) {
    uint32_t operand = a->operands[n->first + k];
    if (!is_attribute(&a->nodes[operand]) && number-- == 0)
      return operand;
  }
  return PLN_NONE;
}

/* Finds the operand of the parent's term; false: it is not certain which. */
static bool find_operand(subsumption *s, const pln_pattern_node *p,
                         uint32_t i) {
  const pln_ast *a = &s->rule->ast;
  const pln_ast_node *parent = term(s, p->parent);
  uint32_t number = p->arg, first = operand_at(a, parent, 0);
  if (p->arg >= PLN_ARG_CONSTANT) {
    uint32_t second = operand_at(a, parent, 1);
    if (first == PLN_NONE || second == PLN_NONE ||
        (is_kept(s, first) && is_kept(s, second)))
      return false;
    uint32_t constant = is_kept(s, second) ? 0 : 1;
    number = p->arg == PLN_ARG_CONSTANT ? constant : 1 - constant;
  }
  s->at[i] = operand_at(a, parent, number);
  return s->at[i] != PLN_NONE;
}

static bool subsumes(subsumption *s, uint32_t root) {
  s->at[0] = root;
  for (uint32_t i = 0; i < s->variant->count; i++) {
    const pln_pattern_node *p = pattern_of(s, i);
    if (i && !find_operand(s, p, i))
      return false;
    const pln_ast_node *n = term(s, i);
    bool fits = false;
    switch ((pln_pattern_kind)p->kind) {
    case PLN_MATCH_ANY: fits = fulfils(s, p->constraints, n); break;
    case PLN_MATCH_CALL: fits = subsumes_call(s, p, n); break;
    case PLN_MATCH_VALUE:
      fits = n->kind == PLN_AST_NUMBER && n->number == p->number &&
             (!n->is_int || n->integer == p->integer);
      break;
    case PLN_MATCH_TUPLE:
      fits = n->kind == PLN_AST_TUPLE && n->count == p->n_args;
      break;
    case PLN_MATCH_FIELD:
    case PLN_MATCH_KIND: break;
    }
    if (!fits || !binds_alike(s, i))
      return false;
  }
  return true;
}

pln_status pln_rule_check_endless(const pln_rule_set *set,
                                  const pln_rule_entry *rule) {
  const pln_ast *a = &rule->ast;
  subsumption s = {.set = set, .rule = rule};
  if (a->replacement == PLN_NONE || a->condition != PLN_NONE ||
      rule->info.condition || pln_ast_count_roots(a, a->pattern) > 1)
    return PLN_OK;
  for (uint32_t v = 0; v < rule->n_variants; v++) {
    s.variant = &set->variants[rule->first_variant + v];
    for (uint32_t i = a->nodes[a->replacement].begin; i <= a->replacement; i++)
      if (!a->nodes[i].is_value && is_call(&a->nodes[i]) && is_kept(&s, i) &&
          subsumes(&s, i))
        return pln_ast_error(a, PLN_ERR_ARGUMENT, a->nodes[i].position,
                             "the pattern of the rule matches this part of "
                             "its replacement: the rule would be applied for "
                             "ever");
  }
  return PLN_OK;
}

/* -------------------------------------------------------- two rules' patterns
 */

/* The number of the pattern of `variant` at operand `arg` of its pattern
 * `parent`; PLN_NONE: it says nothing of that operand. */
static uint32_t find_pattern(const pln_rule_set *s, const pln_rule_variant *v,
                             uint32_t parent, uint16_t arg) {
  for (uint32_t i = parent + 1; parent != PLN_NONE && i < v->count; i++) {
    const pln_pattern_node *p = &s->patterns[v->first + i];
    if (p->parent == parent && p->arg == arg)
      return i;
  }
  return PLN_NONE;
}

/* Returns true if pattern `p` of `rule` accepts the attributes of any call that
 * `q` of `other` accepts. */
static bool accepts_attributes(const pln_rule_set *s,
                               const pln_rule_entry *rule,
                               const pln_pattern_node *p,
                               const pln_rule_entry *other,
                               const pln_pattern_node *q) {
  for (uint32_t i = 0; i < p->n_attrs; i++) {
    const pln_attr_pattern *a = &s->attrs[p->attrs + i];
    bool accepted = false;
    for (uint32_t k = 0; k < q->n_attrs && !accepted; k++) {
      const pln_attr_pattern *b = &s->attrs[q->attrs + k];
      accepted = pln_slice_equal(a->name, b->name) &&
                 (a->slot >= 0 || same_literal(&rule->ast, a->expression,
                                               &other->ast, b->expression));
    }
    if (!accepted)
      return false;
  }
  return true;
}

static bool accepts_call(const pln_rule_set *s, const pln_rule_entry *rule,
                         const pln_pattern_node *p, const pln_rule_entry *other,
                         const pln_pattern_node *q) {
  return q->kind == PLN_MATCH_CALL && q->n_ops &&
         has_every_op(s, p, s->ops + q->ops, q->n_ops) &&
         p->n_least <= q->n_least &&
         (p->any_count || (!q->any_count && q->n_args <= p->n_args)) &&
         accepts_attributes(s, rule, p, other, q);
}

/* The operand exists in each call that the variant matches. */
static bool has_operand(const pln_rule_set *s, const pln_rule_variant *v,
                        uint32_t parent, const pln_pattern_node *p) {
  return parent != PLN_NONE && p->arg < PLN_ARG_CONSTANT &&
         p->arg < s->patterns[v->first + parent].n_least;
}

/* Returns true if variant `a` matches each node that variant `b` matches. */
static bool is_more_general(const pln_rule_set *s, const pln_rule_variant *a,
                            const pln_rule_variant *b) {
  uint32_t at[PLN_RULE_MAX_NODES] = {0}; /* by node of a: that of b */
  const pln_rule_entry *rule = &s->rules[a->rule], *other = &s->rules[b->rule];
  for (uint32_t i = 0; i < a->count; i++) {
    const pln_pattern_node *p = &s->patterns[a->first + i];
    if (i)
      at[i] = find_pattern(s, b, at[p->parent], p->arg);
    const pln_pattern_node *q =
        at[i] == PLN_NONE ? NULL : &s->patterns[b->first + at[i]];
    bool plain = p->kind == PLN_MATCH_ANY && !p->constraints && !p->again;
    if (!q && !(plain && has_operand(s, b, at[p->parent], p)))
      return false;
    if (!q || plain)
      continue;
    bool fits = p->kind == PLN_MATCH_ANY ||
                (p->kind == PLN_MATCH_CALL
                     ? accepts_call(s, rule, p, other, q)
                     : p->kind == q->kind && p->number == q->number &&
                           p->integer == q->integer && p->n_args == q->n_args &&
                           p->index == q->index);
    if (!fits || (p->constraints & ~q->constraints) || p->optional)
      return false;
    for (uint32_t k = 0; p->again && k < i; k++)
      if (s->patterns[a->first + k].slot == p->slot &&
          (at[k] == PLN_NONE || q->slot < 0 ||
           s->patterns[b->first + at[k]].slot != q->slot))
        return false;
  }
  return true;
}

/* Returns true if the rule replaces whatever its pattern matches. */
static bool always_applies(const pln_rule_entry *r) {
  const pln_ast *a = &r->ast;
  uint32_t calls = 0;
  if (a->replacement == PLN_NONE || a->condition != PLN_NONE ||
      r->info.condition || pln_ast_count_roots(a, a->pattern) > 1)
    return false;
  for (uint32_t i = a->nodes[a->replacement].begin; i <= a->replacement; i++) {
    if (is_attribute(&a->nodes[i]))
      return false;
    calls += is_call(&a->nodes[i]);
  }
  return r->info.grows || calls <= 1;
}

/* A bit for each number in the variant's pattern. A pattern with a number
 * matches only patterns with the same number, so that one that may be more
 * general has a subset of the bits. */
static uint64_t number_bits(const pln_rule_set *s, const pln_rule_variant *v) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < v->count; i++) {
    const pln_pattern_node *p = &s->patterns[v->first + i];
    double number = p->number + 0.0; /* -0 is 0 */
    if (p->kind == PLN_MATCH_VALUE)
      bits |= 1ull << (pln_hash_bytes(&number, sizeof number, 0) & 63);
  }
  return bits;
}

/* By variant: its bits, or all bits if its rule may refuse a match, which
 * shadows nothing. NULL: there is no memory. */
static uint64_t *find_number_bits(const pln_rule_set *s) {
  uint64_t *bits = pln_mem_new(s->engine, (s->n_variants + 1) * sizeof *bits);
  for (uint32_t i = 0; bits && i < s->n_variants; i++)
    bits[i] = always_applies(&s->rules[s->variants[i].rule])
                  ? number_bits(s, &s->variants[i])
                  : UINT64_MAX;
  return bits;
}

/* Returns true if a rule before `index` matches whatever variant `v` does.
 * `bits`: of find_number_bits. */
static bool is_shadowed(const pln_rule_set *s, const uint64_t *bits,
                        const pln_rule_variant *v, uint32_t index,
                        uint32_t *by) {
  const pln_pattern_node *root = &s->patterns[v->first];
  uint64_t others = ~number_bits(s, v);
  uint32_t count;
  const uint32_t *variants = pln_rule_tree_find_general(s, v, &count);
  for (uint32_t i = 0; i < count; i++) {
    const pln_rule_variant *a = &s->variants[variants[i]];
    const pln_rule_entry *r = &s->rules[a->rule];
    if (a->rule >= index)
      return false;
    if (bits[variants[i]] & others)
      continue;
    *by = a->rule;
    if (s->patterns[a->first].kind == root->kind &&
        r->info.proof <= s->rules[index].info.proof && is_more_general(s, a, v))
      return true;
  }
  return false;
}

pln_status pln_rule_warn_shadowed(const pln_rule_set *set) {
  uint64_t *bits = find_number_bits(set);
  if (!bits)
    return pln_nomem(set->engine);
  for (uint32_t i = 1; i < set->n_rules; i++) {
    const pln_rule_entry *r = &set->rules[i];
    uint32_t by = 0, shadowed = 0;
    while (shadowed < r->n_variants &&
           is_shadowed(set, bits, &set->variants[r->first_variant + shadowed],
                       i, &by))
      shadowed++;
    if (!r->n_variants || shadowed < r->n_variants)
      continue;
    pln_span span = {.source = r->info.file, .row = r->info.row};
    pln_diag_warn(set->engine, &span,
                  "rule '%s' is never applied: rule '%s', which is tried "
                  "before it, matches whatever it matches",
                  r->info.name, set->rules[by].info.name);
  }
  pln_mem_free(set->engine, bits, (set->n_variants + 1) * sizeof *bits);
  return PLN_OK;
}
