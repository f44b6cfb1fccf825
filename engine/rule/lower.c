/* lower.c: the pattern of a rule to variants, which have no choices.
 *
 * Alternatives (a | b), the two orders of a commutative operator's operands and
 * the groupings of an associative one's are choices. Each combination of
 * choices is a variant: an array of pattern nodes, parents first, which match.c
 * compares in one loop without backtracking. Variants are enumerated depth
 * first, the first alternative of each choice first, so that earlier
 * alternatives win.
 *
 * Called by set.c. */

#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "rule/set.h"

/* A pattern to be placed below its parent. */
typedef struct lower_item {
  uint32_t ast;
  uint16_t parent, arg;
  int16_t slot; /* a name given by ?x@ */
  uint32_t constraints;
  uint32_t operands; /* bits: the operands of an associative call that this
                      * call of two operands groups; 0: all of them */
} lower_item;

/* The operands of an associative operator that are grouped. */
enum { MAX_GROUPED = 4 };

typedef struct lowering {
  pln_rule_set *set;
  pln_rule_entry *rule;
  const pln_ast *ast;
  lower_item *stack;
  uint32_t n, cap;
  /* Choices of the current variant, in the order in which they are met. */
  uint8_t chosen[PLN_RULE_MAX_NODES], radix[PLN_RULE_MAX_NODES];
  uint32_t n_chosen, next;
  uint64_t bound; /* variables bound so far in this variant */
  uint32_t first; /* its first pattern node */
} lowering;

/* ----------------------------------------------------------------- variables
 */

uint32_t pln_rule_find_var(const pln_rule_entry *rule, pln_slice name) {
  for (uint32_t i = 0; i < rule->n_vars; i++)
    if (rule->vars[i].size == name.size &&
        !memcmp(rule->vars[i].data, name.data, name.size))
      return i;
  return PLN_NONE;
}

pln_status pln_rule_add_var(pln_rule_entry *r, pln_slice name,
                            uint32_t position, uint32_t *out) {
  *out = pln_rule_find_var(r, name);
  if (*out != PLN_NONE)
    return PLN_OK;
  if (r->n_vars == PLN_RULE_MAX_VARS)
    return pln_ast_error(&r->ast, PLN_ERR_LIMIT, position,
                         "a rule has at most %d variables", PLN_RULE_MAX_VARS);
  *out = r->n_vars++;
  r->vars[*out] = name;
  return PLN_OK;
}

static pln_status add_var(lowering *l, pln_slice name, uint32_t position,
                          int16_t *out) {
  uint32_t var;
  PLN_TRY(pln_rule_add_var(l->rule, name, position, &var));
  *out = (int16_t)var;
  return PLN_OK;
}

/* Every variable stands for one of: a node, a list of operands, an operator, a
 * value. */
static pln_status check_use(lowering *l, int16_t slot, uint64_t allowed,
                            uint32_t position) {
  const pln_rule_entry *r = l->rule;
  uint64_t bit = (uint64_t)1 << slot;
  uint64_t other = (r->node_vars | r->rest_vars | r->op_vars) & ~allowed;
  if (!(other & bit))
    return PLN_OK;
  return pln_ast_error(l->ast, PLN_ERR_TYPE, position,
                       "?%.*s stands for two different kinds of things",
                       (int)r->vars[slot].size, r->vars[slot].data);
}

static pln_status node_var(lowering *l, pln_slice name, uint32_t position,
                           int16_t *out) {
  PLN_TRY(add_var(l, name, position, out));
  PLN_TRY(check_use(l, *out, l->rule->node_vars, position));
  l->rule->node_vars |= (uint64_t)1 << *out;
  return PLN_OK;
}

/* ------------------------------------------------------------------- choices
 */

/* Takes choice number `next` of this variant, one of `radix`. */
static pln_status choose(lowering *l, uint32_t radix, uint32_t position,
                         uint32_t *out) {
  if (l->next == l->n_chosen) {
    if (l->n_chosen == PLN_RULE_MAX_NODES)
      return pln_ast_error(l->ast, PLN_ERR_LIMIT, position,
                           "a pattern has too many alternatives");
    l->chosen[l->n_chosen] = 0;
    l->radix[l->n_chosen++] = (uint8_t)radix;
  }
  *out = l->chosen[l->next++];
  return PLN_OK;
}

/* Advances to the next combination; false after the last one. */
static bool next_choices(lowering *l) {
  while (l->n_chosen) {
    uint32_t last = l->n_chosen - 1;
    if (++l->chosen[last] < l->radix[last])
      return true;
    l->n_chosen--;
  }
  return false;
}

/* --------------------------------------------------------------- operators */

/* True if the names differ only in case, underscores and the part up to the
 * last dot of `name`: Relu, relu and nn.relu. */
static bool is_similar(const char *name, const char *wanted) {
  const char *dot = strrchr(name, '.');
  const char *a = dot ? dot + 1 : name, *b = wanted;
  while (*a && *b) {
    if (*a == '_' || *b == '_') {
      a += *a == '_';
      b += *b == '_';
    } else if (tolower((unsigned char)*a++) != tolower((unsigned char)*b++)) {
      return false;
    }
  }
  return *a == *b;
}

static const char *find_similar(uint32_t n, const char *const *names,
                                const char *wanted) {
  for (uint32_t i = 0; i < n; i++)
    if (is_similar(names[i], wanted))
      return names[i];
  return NULL;
}

pln_status pln_rule_unknown_operator(pln_rule_set *set, const pln_ast *a,
                                     pln_slice name) {
  pln_engine *e = set->engine;
  uint32_t n = pln_op_count(e);
  char text[128], hint[160];
  const char **names = pln_mem_new(e, n * sizeof *names);
  if (!names)
    return pln_nomem(e);
  for (uint32_t i = 0; i < n; i++)
    names[i] = pln_op_row(e, i + 1)->name;
  snprintf(text, sizeof text, "%.*s", (int)name.size, name.data);
  const char *similar = find_similar(n, names, text);
  if (similar)
    snprintf(hint, sizeof hint, "; did you mean '%s'?", similar);
  else
    pln_suggest(text, n, names, hint, sizeof hint);
  pln_mem_free(e, names, n * sizeof *names);
  return pln_ast_error(a, PLN_ERR_NAME, (uint32_t)(name.data - a->source.data),
                       "there is no operator '%s'%s", text, hint);
}

/* The trait of a class of operators: elementwise, broadcast, ...; 0: none. */
static uint32_t class_trait(pln_slice name) {
  static const struct {
    const char *name;
    uint32_t trait;
  } rows[] = {{"elementwise", PLN_TRAIT_ELEMENTWISE},
              {"broadcast", PLN_TRAIT_BROADCAST},
              {"injective", PLN_TRAIT_INJECTIVE},
              {"reduction", PLN_TRAIT_REDUCE},
              {"commutative", PLN_TRAIT_COMMUTATIVE},
              {"associative", PLN_TRAIT_ASSOCIATIVE},
              {"idempotent", PLN_TRAIT_IDEMPOTENT}};
  for (uint32_t i = 0; i < PLN_COUNT(rows); i++)
    if (strlen(rows[i].name) == name.size &&
        !memcmp(rows[i].name, name.data, name.size))
      return rows[i].trait;
  return 0;
}

static pln_status add_op(pln_rule_set *s, uint32_t first, pln_op op) {
  uint32_t i = s->n_ops;
  for (uint32_t k = first; k < s->n_ops; k++)
    if (s->ops[k] == op)
      return PLN_OK;
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->ops, &s->cap_ops,
                       (size_t)s->n_ops + 1, sizeof *s->ops));
  for (; i > first && s->ops[i - 1] > op; i--)
    s->ops[i] = s->ops[i - 1];
  s->ops[i] = op;
  s->n_ops++;
  return PLN_OK;
}

/* Adds an operator, or all of a class that take part in it. */
static pln_status add_head_ops(lowering *l, uint32_t first, pln_slice name) {
  pln_rule_set *s = l->set;
  pln_op op = pln_op_find(s->engine, name);
  uint32_t trait = class_trait(name);
  if (op)
    return add_op(s, first, op);
  if (!trait)
    return pln_rule_unknown_operator(s, l->ast, name);
  uint32_t n = pln_op_count(s->engine);
  for (op = 1; op <= n; op++)
    if ((pln_op_row(s->engine, op)->traits & (trait | PLN_TRAIT_PURE)) ==
        (trait | PLN_TRAIT_PURE))
      PLN_TRY(add_op(s, first, op));
  return PLN_OK;
}

static pln_status lower_heads(lowering *l, const pln_ast_node *n,
                              pln_pattern_node *p) {
  p->ops = l->set->n_ops;
  for (uint32_t i = 0; i < n->n_heads; i++)
    PLN_TRY(add_head_ops(l, p->ops, l->ast->heads[n->heads + i]));
  p->n_ops = l->set->n_ops - p->ops;
  if (!n->text.size)
    return PLN_OK;
  PLN_TRY(add_var(l, n->text, n->position, &p->op_slot));
  PLN_TRY(check_use(l, p->op_slot, l->rule->op_vars, n->position));
  l->rule->op_vars |= (uint64_t)1 << p->op_slot;
  return PLN_OK;
}

/* True if all operators of the pattern are commutative. */
static bool is_commutative(const pln_rule_set *s, const pln_pattern_node *p) {
  for (uint32_t i = 0; i < p->n_ops; i++)
    if (!(pln_op_row(s->engine, s->ops[p->ops + i])->traits &
          PLN_TRAIT_COMMUTATIVE))
      return false;
  return p->n_ops > 0;
}

/* -------------------------------------------------------------- attributes */

pln_status pln_rule_unknown_attribute(pln_rule_set *set, const pln_ast *ast,
                                      pln_op op, const pln_ast_node *named) {
  pln_engine *e = set->engine;
  size_t mark = pln_diag_count(e);
  char message[256] = "";
  pln_status status = pln_attr_unknown(e, op, named->text);
  if (pln_diag_count(e) > mark)
    snprintf(message, sizeof message, "%s", pln_diag_at(e, mark)->message);
  pln_diag_drop(e, mark);
  return pln_ast_error(ast, status, named->position, "%s", message);
}

/* The core's name of the attribute for the operators of the call; an error if
 * none of them has it. */
static pln_status attribute_name(lowering *l, const pln_pattern_node *p,
                                 const pln_ast_node *named, pln_slice *out) {
  pln_rule_set *s = l->set;
  *out = named->text;
  for (uint32_t i = 0; i < p->n_ops; i++) {
    pln_op op = s->ops[p->ops + i];
    pln_slice core = pln_rule_core_name(s->engine, op, named->text);
    if (pln_op_row(s->engine, op)->traits & PLN_TRAIT_OPAQUE)
      return PLN_OK;
    if (core.size) {
      *out = core;
      return pln_rule_check_attribute(s, l->ast, op, named);
    }
  }
  if (!p->n_ops)
    return PLN_OK;
  return pln_rule_unknown_attribute(s, l->ast, s->ops[p->ops], named);
}

static pln_status lower_attr(lowering *l, pln_pattern_node *p, uint32_t named) {
  pln_rule_set *s = l->set;
  const pln_ast_node *n = &l->ast->nodes[named];
  uint32_t value = pln_ast_operand(l->ast, named, 0);
  const pln_ast_node *v = &l->ast->nodes[value];
  pln_attr_pattern a = {.expression = value, .slot = -1};
  PLN_TRY(attribute_name(l, p, n, &a.name));
  if (v->kind == PLN_AST_WILDCARD)
    return PLN_OK;
  if (v->kind == PLN_AST_VAR) {
    PLN_TRY(add_var(l, v->text, v->position, &a.slot));
    PLN_TRY(check_use(l, a.slot, 0, v->position));
    if (l->bound & ((uint64_t)1 << a.slot))
      a.slot = -1;
    else
      l->bound |= (uint64_t)1 << a.slot;
  }
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->attrs, &s->cap_attrs,
                       (size_t)s->n_attrs + 1, sizeof *s->attrs));
  s->attrs[s->n_attrs++] = a;
  p->n_attrs++;
  return PLN_OK;
}

/* ------------------------------------------------------------------ patterns
 */

static pln_status push_item(lowering *l, lower_item item) {
  PLN_TRY(pln_mem_grow(l->set->engine, (void **)&l->stack, &l->cap,
                       (size_t)l->n + 1, sizeof *l->stack));
  l->stack[l->n++] = item;
  return PLN_OK;
}

static pln_status add_pattern(lowering *l, const lower_item *item,
                              pln_pattern_node p, uint16_t *index) {
  pln_rule_set *s = l->set;
  uint32_t n = s->n_patterns - l->first;
  if (n == PLN_RULE_MAX_NODES)
    return pln_ast_error(l->ast, PLN_ERR_LIMIT,
                         l->ast->nodes[item->ast].position,
                         "a pattern has at most %d nodes", PLN_RULE_MAX_NODES);
  p.parent = item->parent;
  p.arg = item->arg;
  p.slot = item->slot;
  p.ast = item->ast;
  p.constraints |= item->constraints;
  p.optional = (p.constraints & PLN_CONSTRAINT_OPTIONAL) != 0;
  s->names_vars =
      s->names_vars || (p.kind == PLN_MATCH_KIND && p.index == PLN_VAR &&
                        p.parent != PLN_MATCH_ROOT);
  if (p.slot >= 0) {
    uint64_t bit = (uint64_t)1 << p.slot;
    p.again = (l->bound & bit) != 0;
    l->bound |= bit;
  }
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->patterns, &s->cap_patterns,
                       (size_t)s->n_patterns + 1, sizeof *s->patterns));
  s->patterns[s->n_patterns++] = p;
  *index = (uint16_t)n;
  return PLN_OK;
}

static pln_pattern_node blank(pln_pattern_kind kind) {
  return (pln_pattern_node){
      .kind = (uint8_t)kind, .slot = -1, .rest = -1, .op_slot = -1};
}

static bool is_optional(const pln_ast_node *n) {
  return (n->kind == PLN_AST_VAR || n->kind == PLN_AST_BIND) &&
         (n->constraints & (PLN_CONSTRAINT_OPTIONAL | PLN_CONSTRAINT_ABSENT));
}

static pln_status rest_operand(lowering *l, const pln_ast_node *n,
                               pln_pattern_node *p) {
  p->any_count = true;
  if (n->kind == PLN_AST_REST)
    return PLN_OK;
  PLN_TRY(add_var(l, n->text, n->position, &p->rest));
  PLN_TRY(check_use(l, p->rest, l->rule->rest_vars, n->position));
  l->rule->rest_vars |= (uint64_t)1 << p->rest;
  return PLN_OK;
}

/* Reads the operands of a call: positional ones are counted and listed, named
 * ones become attribute patterns. */
static pln_status lower_operands(lowering *l, const pln_ast_node *n,
                                 pln_pattern_node *p, uint32_t *positional) {
  p->attrs = l->set->n_attrs;
  for (uint32_t i = 0; i < n->count; i++) {
    uint32_t at = l->ast->operands[n->first + i];
    const pln_ast_node *arg = &l->ast->nodes[at];
    bool rest =
        arg->kind == PLN_AST_REST || (arg->kind == PLN_AST_VAR && arg->is_rest);
    if (arg->kind == PLN_AST_NAMED) {
      PLN_TRY(lower_attr(l, p, at));
      continue;
    }
    if (p->any_count)
      return pln_ast_error(l->ast, PLN_ERR_FORMAT, arg->position,
                           "an operand after '...'");
    if (rest) {
      PLN_TRY(rest_operand(l, arg, p));
      continue;
    }
    if (!is_optional(arg))
      p->n_least = (uint16_t)(p->n_args + 1);
    positional[p->n_args++] = at;
  }
  return PLN_OK;
}

/* Returns true if swapping two operands changes nothing: the same variable. */
static bool are_alike(const lowering *l, const uint32_t *operands) {
  const pln_ast_node *a = &l->ast->nodes[operands[0]];
  const pln_ast_node *b = &l->ast->nodes[operands[1]];
  return a->kind == b->kind &&
         (a->kind == PLN_AST_WILDCARD ||
          (a->kind == PLN_AST_VAR && pln_slice_equal(a->text, b->text)));
}

/* Returns true if the pattern matches constants only. */
static bool takes_constants(const lowering *l, uint32_t at) {
  const pln_ast_node *n = &l->ast->nodes[at];
  if (n->kind == PLN_AST_UNARY)
    return n->operator_ == PLN_AST_NEG &&
           l->ast->nodes[l->ast->operands[n->first]].kind == PLN_AST_NUMBER;
  if (n->kind == PLN_AST_VAR)
    return (n->constraints & (PLN_CONSTRAINT_CONST | PLN_CONSTRAINT_SCALAR |
                              PLN_CONSTRAINT_SPLAT)) != 0;
  return n->kind == PLN_AST_NUMBER || n->kind == PLN_AST_NAME;
}

/* How the operands of a call are numbered. */
typedef enum operand_order {
  IN_ORDER,
  SWAPPED,
  CONSTANT_FIRST,
  CONSTANT_LAST
} operand_order;

/* The order of the operands in this variant: a choice for two operands of a
 * commutative operator, unless it makes no difference or the operands tell. */
static pln_status choose_order(lowering *l, const pln_ast_node *n,
                               const pln_pattern_node *p,
                               const uint32_t *operands, operand_order *out) {
  uint32_t order = 0;
  *out = IN_ORDER;
  if (p->n_args != 2 || p->any_count || !is_commutative(l->set, p) ||
      are_alike(l, operands))
    return PLN_OK;
  bool first = takes_constants(l, operands[0]);
  bool second = takes_constants(l, operands[1]);
  if (first != second) {
    *out = first ? CONSTANT_FIRST : CONSTANT_LAST;
    return PLN_OK;
  }
  PLN_TRY(choose(l, 2, n->position, &order));
  *out = order ? SWAPPED : IN_ORDER;
  return PLN_OK;
}

static uint16_t operand_number(operand_order order, uint32_t i) {
  switch (order) {
  case IN_ORDER: break;
  case SWAPPED: return (uint16_t)(1 - i);
  case CONSTANT_FIRST: return i == 0 ? PLN_ARG_CONSTANT : PLN_ARG_OTHER;
  case CONSTANT_LAST: return i == 1 ? PLN_ARG_CONSTANT : PLN_ARG_OTHER;
  }
  return (uint16_t)i;
}

static pln_status push_operands(lowering *l, const uint32_t *positional,
                                uint32_t n, uint16_t parent,
                                operand_order order) {
  for (uint32_t i = n; i-- > 0;)
    PLN_TRY(push_item(l, (lower_item){.ast = positional[i],
                                      .parent = parent,
                                      .arg = operand_number(order, i),
                                      .slot = -1}));
  return PLN_OK;
}

static pln_status too_many_operands(lowering *l, const pln_ast_node *n) {
  return n->count <= PLN_RULE_MAX_NODES
             ? PLN_OK
             : pln_ast_error(l->ast, PLN_ERR_LIMIT, n->position,
                             "a pattern has at most %d operands",
                             PLN_RULE_MAX_NODES);
}

/* Returns true if calls of two operands compute the call in any grouping: its
 * operators are associative, and it lists more than two operands. */
static bool is_associative(const lowering *l, const pln_ast_node *n,
                           const pln_pattern_node *p) {
  const pln_rule_set *s = l->set;
  for (uint32_t i = 0; i < p->n_ops; i++) {
    const pln_op_info *row = pln_op_row(s->engine, s->ops[p->ops + i]);
    if (!(row->traits & PLN_TRAIT_ASSOCIATIVE) || row->max_args != 2)
      return false;
  }
  return p->n_ops == 1 && p->n_args > 2 && p->n_args <= MAX_GROUPED &&
         p->n_args == n->count && p->n_least == p->n_args;
}

/* The subset number `choice` of `all`, neither empty nor all of it, in
 * descending order: (a, b) before c is the first choice for a, b, c. */
static uint32_t proper_subset(uint32_t all, uint32_t choice) {
  uint32_t subset = all;
  do
    subset = (subset - 1) & all;
  while (choice--);
  return subset;
}

/* The subset number `choice` that has the first operands of `all` in order. */
static uint32_t proper_prefix(uint32_t all, uint32_t choice) {
  uint32_t rest = all;
  for (uint32_t dropped = 0; dropped <= choice; dropped++)
    rest &= ~(1u << (31 - (uint32_t)__builtin_clz(rest)));
  return rest;
}

/* Chooses which of the operands the first operand of a grouping call
 * computes. */
static pln_status choose_group(lowering *l, const pln_ast_node *n,
                               const pln_pattern_node *p, uint32_t all,
                               uint32_t *first) {
  uint32_t count = (uint32_t)__builtin_popcount(all), choice = 0;
  bool commutes = is_commutative(l->set, p);
  PLN_TRY(choose(l, commutes ? (1u << count) - 2 : count - 1, n->position,
                 &choice));
  *first = commutes ? proper_subset(all, choice) : proper_prefix(all, choice);
  return PLN_OK;
}

/* One of the two operands: a listed one, or a call that groups several. */
static pln_status push_group(lowering *l, const lower_item *call,
                             uint32_t operands, uint16_t parent, uint16_t arg) {
  const pln_ast_node *n = &l->ast->nodes[call->ast];
  lower_item item = {
      .ast = call->ast, .parent = parent, .arg = arg, .slot = -1};
  if (operands & (operands - 1))
    item.operands = operands;
  else
    item.ast = l->ast->operands[n->first + (uint32_t)__builtin_ctz(operands)];
  return push_item(l, item);
}

/* A call of two operands in place of one of more: it groups them. */
static pln_status lower_grouping(lowering *l, const lower_item *item,
                                 pln_pattern_node p) {
  const pln_ast_node *n = &l->ast->nodes[item->ast];
  uint32_t all = item->operands ? item->operands : (1u << p.n_args) - 1, first;
  uint16_t index;
  if (item->operands)
    p.op_slot = -1;
  PLN_TRY(choose_group(l, n, &p, all, &first));
  p.n_args = p.n_least = 2;
  PLN_TRY(add_pattern(l, item, p, &index));
  PLN_TRY(push_group(l, item, all & ~first, index, 1));
  return push_group(l, item, first, index, 0);
}

/* Returns true if the operator has calls of as many operands as the pattern
 * lists. */
static bool takes_operands(const pln_rule_set *s, pln_op op,
                           const pln_pattern_node *p) {
  const pln_op_info *row = pln_op_row(s->engine, op);
  return (row->max_args < 0 || p->n_least <= row->max_args) &&
         (p->any_count || p->n_args >= row->min_args ||
          p->n_args >= pln_rule_n_data(op));
}

static pln_status check_arity(lowering *l, const pln_ast_node *n,
                              const pln_pattern_node *p) {
  const pln_rule_set *s = l->set;
  for (uint32_t i = 0; i < p->n_ops; i++)
    if (takes_operands(s, s->ops[p->ops + i], p))
      return PLN_OK;
  const pln_op_info *row = pln_op_row(s->engine, s->ops[p->ops]);
  bool groups = (row->traits & PLN_TRAIT_ASSOCIATIVE) && p->n_args > 2;
  return pln_ast_error(l->ast, PLN_ERR_TYPE, n->position,
                       "no call of %s has %u operands%s", row->name, p->n_args,
                       groups ? "; a pattern groups at most 4" : "");
}

/* ------------------------------------------------------------ kinds of nodes
 */

static pln_status wrong_parts(const lowering *l, const pln_ast_node *n,
                              const char *name, int32_t parts) {
  const char *wanted = parts == 0   ? "has no parts"
                       : parts == 3 ? "has three parts"
                                    : "has at least one part";
  return pln_ast_error(l->ast, PLN_ERR_TYPE, n->position, "a pattern %s %s",
                       name, wanted);
}

/* Var("name") */
static pln_status lower_var_name(lowering *l, const pln_ast_node *n,
                                 pln_pattern_node *p) {
  const pln_ast_node *name = &l->ast->nodes[l->ast->operands[n->first]];
  if (p->index != PLN_VAR || n->count != 1 || name->kind != PLN_AST_STRING)
    return wrong_parts(l, n, pln_rule_kind_text((pln_kind)p->index), 0);
  return pln_symbol_intern(l->set->engine, name->text, &p->name);
}

/* The parts in the order of their numbers: a Function's body, which is written
 * last, is part 0. */
static pln_status list_parts(lowering *l, const pln_ast_node *n,
                             pln_pattern_node *p, uint32_t *parts) {
  uint32_t body = p->index == PLN_FUNCTION ? 1 : 0;
  if (body)
    parts[p->n_args++] = l->ast->operands[n->first + n->count - 1];
  for (uint32_t i = 0; i + body < n->count; i++) {
    uint32_t at = l->ast->operands[n->first + i];
    const pln_ast_node *arg = &l->ast->nodes[at];
    bool rest =
        arg->kind == PLN_AST_REST || (arg->kind == PLN_AST_VAR && arg->is_rest);
    if (p->any_count)
      return pln_ast_error(l->ast, PLN_ERR_FORMAT, arg->position,
                           "an operand after '...'");
    if (rest)
      PLN_TRY(rest_operand(l, arg, p));
    else
      parts[p->n_args++] = at;
  }
  p->n_least = p->n_args;
  return PLN_OK;
}

static pln_status lower_kind(lowering *l, const lower_item *item, pln_kind kind,
                             int32_t parts) {
  const pln_ast_node *n = &l->ast->nodes[item->ast];
  uint32_t list[PLN_RULE_MAX_NODES + 1];
  uint16_t index;
  pln_pattern_node p = blank(PLN_MATCH_KIND);
  p.index = (uint32_t)kind;
  PLN_TRY(too_many_operands(l, n));
  if (parts == 0 && n->count)
    PLN_TRY(lower_var_name(l, n, &p));
  else if (parts > 0 ? n->count != (uint32_t)parts : parts < 0 && !n->count)
    return wrong_parts(l, n, pln_rule_kind_text(kind), parts);
  else if (parts)
    PLN_TRY(list_parts(l, n, &p, list));
  PLN_TRY(add_pattern(l, item, p, &index));
  return push_operands(l, list, p.n_args, index, IN_ORDER);
}

static pln_status lower_call(lowering *l, const lower_item *item) {
  const pln_ast_node *n = &l->ast->nodes[item->ast];
  pln_kind kind;
  int32_t parts;
  if (n->n_heads == 1 && !n->text.size &&
      pln_rule_find_kind(l->ast->heads[n->heads], &kind, &parts))
    return lower_kind(l, item, kind, parts);
  uint32_t positional[PLN_RULE_MAX_NODES];
  operand_order order;
  uint16_t index;
  pln_pattern_node p = blank(PLN_MATCH_CALL);
  PLN_TRY(too_many_operands(l, n));
  if (!n->n_heads)
    return pln_ast_error(l->ast, PLN_ERR_NAME, n->position,
                         "in a pattern ?%.*s needs operators: ?%.*s{a|b}(...)",
                         (int)n->text.size, n->text.data, (int)n->text.size,
                         n->text.data);
  PLN_TRY(lower_heads(l, n, &p));
  PLN_TRY(lower_operands(l, n, &p, positional));
  if (is_associative(l, n, &p))
    return lower_grouping(l, item, p);
  PLN_TRY(check_arity(l, n, &p));
  PLN_TRY(choose_order(l, n, &p, positional, &order));
  PLN_TRY(add_pattern(l, item, p, &index));
  return push_operands(l, positional, p.n_args, index, order);
}

static pln_status lower_tuple(lowering *l, const lower_item *item) {
  const pln_ast_node *n = &l->ast->nodes[item->ast];
  uint16_t index;
  pln_pattern_node p = blank(PLN_MATCH_TUPLE);
  PLN_TRY(too_many_operands(l, n));
  p.n_args = p.n_least = (uint16_t)n->count;
  PLN_TRY(add_pattern(l, item, p, &index));
  return push_operands(l, l->ast->operands + n->first, n->count, index,
                       IN_ORDER);
}

/* a.0, a field of a tuple. */
static pln_status lower_field(lowering *l, const lower_item *item) {
  const pln_ast_node *n = &l->ast->nodes[item->ast];
  uint16_t index;
  pln_pattern_node p = blank(PLN_MATCH_FIELD);
  for (size_t i = 0; i < n->text.size; i++) {
    char c = n->text.data[i];
    if (c < '0' || c > '9' || p.index > 65535)
      return pln_ast_error(l->ast, PLN_ERR_FORMAT, n->position,
                           "in a pattern '.' takes the number of a field");
    p.index = p.index * 10 + (uint32_t)(c - '0');
  }
  p.n_args = p.n_least = 1;
  PLN_TRY(add_pattern(l, item, p, &index));
  return push_operands(l, l->ast->operands + n->first, 1, index, IN_ORDER);
}

/* `integer`: the number if it was written without a point. */
static pln_status lower_number(lowering *l, const lower_item *item,
                               double number, const int64_t *integer) {
  uint16_t index;
  pln_pattern_node p = blank(PLN_MATCH_VALUE);
  p.number = number;
  p.is_int = integer || (number >= -0x1p63 && number < 0x1p63 &&
                         number == (double)(int64_t)number);
  if (p.is_int)
    p.integer = integer ? *integer : (int64_t)number;
  return add_pattern(l, item, p, &index);
}

static pln_status lower_literal(lowering *l, const lower_item *item,
                                uint32_t literal, bool negative) {
  const pln_ast_node *n = &l->ast->nodes[literal];
  /* That of -2^63 is stored as itself. */
  int64_t integer = negative ? (int64_t) - (uint64_t)n->integer : n->integer;
  return lower_number(l, item, negative ? -n->number : n->number,
                      n->is_int ? &integer : NULL);
}

/* true, false, inf */
static pln_status lower_name(lowering *l, const lower_item *item) {
  static const struct {
    const char *name;
    double number;
  } rows[] = {{"true", 1}, {"false", 0}, {"inf", HUGE_VAL}};
  const pln_ast_node *n = &l->ast->nodes[item->ast];
  for (uint32_t i = 0; i < PLN_COUNT(rows); i++)
    if (pln_slice_is(n->text, rows[i].name))
      return lower_number(l, item, rows[i].number, NULL);
  pln_kind kind;
  int32_t parts;
  if (pln_rule_find_kind(n->text, &kind, &parts))
    return lower_kind(l, item, kind, parts);
  return pln_ast_error(l->ast, PLN_ERR_NAME, n->position,
                       "'%.*s' is no pattern; a variable is written ?%.*s",
                       (int)n->text.size, n->text.data, (int)n->text.size,
                       n->text.data);
}

static pln_status lower_operator(lowering *l, const lower_item *item) {
  const pln_ast_node *n = &l->ast->nodes[item->ast];
  uint32_t only = l->ast->operands[n->first];
  operand_order order;
  uint16_t index;
  if (n->operator_ == PLN_AST_NEG && l->ast->nodes[only].kind == PLN_AST_NUMBER)
    return lower_literal(l, item, only, true);
  if (n->operator_ == PLN_AST_NEG && l->ast->nodes[only].kind == PLN_AST_NAME &&
      pln_slice_is(l->ast->nodes[only].text, "inf"))
    return lower_number(l, item, -HUGE_VAL, NULL);
  pln_op op = pln_rule_operator_op(n->operator_);
  if (!op)
    return pln_ast_error(l->ast, PLN_ERR_FORMAT, n->position,
                         "this operator has no meaning in a pattern; "
                         "conditions stand behind 'where'");
  pln_pattern_node p = blank(PLN_MATCH_CALL);
  p.ops = l->set->n_ops;
  PLN_TRY(add_op(l->set, p.ops, op));
  p.n_ops = 1;
  p.n_args = p.n_least = (uint16_t)n->count;
  PLN_TRY(choose_order(l, n, &p, l->ast->operands + n->first, &order));
  PLN_TRY(add_pattern(l, item, p, &index));
  return push_operands(l, l->ast->operands + n->first, n->count, index, order);
}

static pln_status lower_var(lowering *l, lower_item *item) {
  const pln_ast_node *n = &l->ast->nodes[item->ast];
  uint16_t index;
  if (n->is_rest)
    return pln_ast_error(l->ast, PLN_ERR_FORMAT, n->position,
                         "'...' stands for operands of a call");
  if (item->slot >= 0)
    return pln_ast_error(l->ast, PLN_ERR_FORMAT, n->position,
                         "a variable has two names");
  PLN_TRY(node_var(l, n->text, n->position, &item->slot));
  item->constraints |= n->constraints;
  return add_pattern(l, item, blank(PLN_MATCH_ANY), &index);
}

static pln_status lower_bind(lowering *l, lower_item item) {
  const pln_ast_node *n = &l->ast->nodes[item.ast];
  if (item.slot >= 0)
    return pln_ast_error(l->ast, PLN_ERR_FORMAT, n->position,
                         "a pattern has two names");
  PLN_TRY(node_var(l, n->text, n->position, &item.slot));
  item.constraints |= n->constraints;
  item.ast = l->ast->operands[n->first];
  return push_item(l, item);
}

static pln_status lower_alternatives(lowering *l, lower_item item) {
  const pln_ast_node *n = &l->ast->nodes[item.ast];
  uint32_t which = 0;
  PLN_TRY(choose(l, 2, n->position, &which));
  item.ast = l->ast->operands[n->first + which];
  return push_item(l, item);
}

static pln_status lower_item_of(lowering *l, lower_item item) {
  const pln_ast_node *n = &l->ast->nodes[item.ast];
  uint16_t index;
  switch ((pln_ast_kind)n->kind) {
  case PLN_AST_CALL: return lower_call(l, &item);
  case PLN_AST_VAR: return lower_var(l, &item);
  case PLN_AST_WILDCARD:
    return add_pattern(l, &item, blank(PLN_MATCH_ANY), &index);
  case PLN_AST_NUMBER: return lower_literal(l, &item, item.ast, false);
  case PLN_AST_NAME: return lower_name(l, &item);
  case PLN_AST_TUPLE: return lower_tuple(l, &item);
  case PLN_AST_FIELD: return lower_field(l, &item);
  case PLN_AST_ALT: return lower_alternatives(l, item);
  case PLN_AST_BIND: return lower_bind(l, item);
  case PLN_AST_UNARY:
  case PLN_AST_BINARY: return lower_operator(l, &item);
  case PLN_AST_STRING:
  case PLN_AST_REST:
  case PLN_AST_LIST:
  case PLN_AST_NAMED:
  case PLN_AST_SPREAD:
  case PLN_AST_ROOTS:
  case PLN_AST_INDEX: break;
  }
  return pln_ast_error(l->ast, PLN_ERR_FORMAT, n->position,
                       "this has no meaning in a pattern");
}

static pln_status check_root(lowering *l, uint32_t at, bool several) {
  const pln_pattern_node *p = &l->set->patterns[at];
  uint32_t position = l->ast->nodes[p->ast].position;
  if (several && p->kind != PLN_MATCH_CALL)
    return pln_ast_error(l->ast, PLN_ERR_FORMAT, position,
                         "the roots of a rule that has several are calls");
  if (p->kind == PLN_MATCH_KIND && !pln_rule_can_replace((pln_kind)p->index))
    return pln_ast_error(l->ast, PLN_ERR_FORMAT, position,
                         "a rule does not replace variables and constants");
  if (p->kind == PLN_MATCH_ANY || p->kind == PLN_MATCH_VALUE)
    return pln_ast_error(l->ast, PLN_ERR_FORMAT, position,
                         "a rule matches a call, a tuple or a field; this "
                         "pattern matches any node");
  return PLN_OK;
}

/* Finds the anchor's pattern of a variable that is an operand of root `i`: the
 * other roots are looked for among the users of that node. */
static pln_status link_root(lowering *l, pln_rule_variant *v, uint32_t i) {
  const pln_pattern_node *patterns = l->set->patterns + l->first;
  for (uint32_t q = v->n_anchor; q < v->count; q++) {
    if (patterns[q].parent != v->root[i] || !patterns[q].again)
      continue;
    for (uint32_t k = 1; k < v->n_anchor; k++)
      if (patterns[k].slot == patterns[q].slot) {
        v->link[i] = (uint8_t)k;
        return PLN_OK;
      }
  }
  return pln_ast_error(l->ast, PLN_ERR_FORMAT,
                       l->ast->nodes[patterns[v->root[i]].ast].position,
                       "the roots of a rule have a variable in common that is "
                       "an operand of each");
}

/* Generates the patterns of one root. */
static pln_status lower_root(lowering *l, pln_rule_variant *v, uint32_t i) {
  uint32_t begin = l->set->n_patterns;
  v->root[i] = (uint8_t)(begin - l->first);
  PLN_TRY(
      push_item(l, (lower_item){.ast = pln_ast_root(l->ast, l->ast->pattern, i),
                                .parent = PLN_MATCH_ROOT,
                                .arg = (uint16_t)i,
                                .slot = -1}));
  while (l->n)
    PLN_TRY(lower_item_of(l, l->stack[--l->n]));
  return check_root(l, begin, v->n_roots > 1);
}

/* Generates the variant of the current choices. */
static pln_status lower_variant(lowering *l) {
  pln_rule_set *s = l->set;
  uint32_t n = pln_ast_count_roots(l->ast, l->ast->pattern), anchor = 0;
  pln_rule_variant v = {.rule = (uint32_t)(l->rule - s->rules),
                        .first = s->n_patterns,
                        .n_roots = (uint8_t)n};
  l->first = s->n_patterns;
  l->next = 0;
  l->bound = 0;
  l->n = 0;
  if (n > 1)
    PLN_TRY(choose(l, n, l->ast->nodes[l->ast->pattern].position, &anchor));
  v.anchor = (uint8_t)anchor;
  PLN_TRY(lower_root(l, &v, anchor));
  v.n_anchor = (uint16_t)(s->n_patterns - l->first);
  for (uint32_t i = 0; i < n; i++)
    if (i != anchor)
      PLN_TRY(lower_root(l, &v, i));
  v.count = s->n_patterns - l->first;
  for (uint32_t i = 0; i < n; i++)
    if (i != anchor)
      PLN_TRY(link_root(l, &v, i));
  PLN_TRY(pln_mem_grow(s->engine, (void **)&s->variants, &s->cap_variants,
                       (size_t)s->n_variants + 1, sizeof *s->variants));
  s->variants[s->n_variants++] = v;
  return PLN_OK;
}

static pln_status lower_all(lowering *l) {
  do {
    if (l->set->n_variants - l->rule->first_variant == PLN_RULE_MAX_VARIANTS)
      return pln_ast_error(l->ast, PLN_ERR_LIMIT,
                           l->ast->nodes[l->ast->pattern].position,
                           "the alternatives of a pattern combine to more "
                           "than %d variants",
                           PLN_RULE_MAX_VARIANTS);
    PLN_TRY(lower_variant(l));
  } while (next_choices(l));
  return PLN_OK;
}

pln_status pln_rule_lower(pln_rule_set *set, pln_rule_entry *rule) {
  lowering l = {.set = set, .rule = rule, .ast = &rule->ast};
  rule->first_variant = set->n_variants;
  pln_status status = lower_all(&l);
  rule->n_variants = set->n_variants - rule->first_variant;
  pln_mem_free(set->engine, l.stack, l.cap * sizeof *l.stack);
  return status;
}
