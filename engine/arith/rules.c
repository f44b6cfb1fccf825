/* arith/rules.c: applies the rules of rules.def to a term.
 *
 * Called by rewrite.c for each node whose operands are simplified. The rules of
 * a root operator are tried in the order of the table; sets of bits, by the
 * kinds of the operands and of theirs, leave few of them. Right sides and
 * guards are a few levels deep, so that recursion over them is bounded. */

#include "arith/rules.h"

pln_status pln_arith_rules_compile(pln_engine *engine,
                                   struct pln_arith_rules **out) {
  struct pln_arith_rules *rules = pln_mem_zeroed(engine, sizeof *rules);
  if (!rules)
    return pln_nomem(engine);
  pln_status status = pln_arith_rules_parse(engine, rules);
  if (status != PLN_OK) {
    pln_mem_free(engine, rules, sizeof *rules);
    return status;
  }
  *out = rules;
  return PLN_OK;
}

void pln_arith_rules_free(pln_engine *engine, struct pln_arith_rules *rules) {
  if (rules)
    pln_mem_free(engine, rules, sizeof *rules);
}

typedef struct binding {
  pln_analyzer *a;
  const pln_pattern_node *nodes;
  pln_term slots[PLN_RULE_REGISTERS];
  pln_term root;
  bool overflow; /* a constant cannot be computed */
} binding;

/* ----------------------------------------------------------------- matching */

static bool passes(binding *m, const pln_match_step *s) {
  const pln_term_node *from = pln_at(m->a, m->slots[s->from]);
  pln_term t = s->operand == 0 ? from->a : s->operand == 1 ? from->b : from->c;
  switch (s->test) {
  case PLN_TEST_SAME: return m->slots[s->to] == t;
  case PLN_TEST_NUMBER: return pln_is_value(m->a, t, s->value);
  case PLN_TEST_TRUTH:
    return pln_is_bool(m->a, t) && pln_is_value(m->a, t, s->value);
  case PLN_TEST_KIND:
    if (pln_at(m->a, t)->kind != s->kind)
      return false;
    break;
  default: break;
  }
  m->slots[s->to] = t;
  return true;
}

/* The sets of the root admit the variant. */
static bool match(binding *m, const pln_rule_variant *v) {
  const pln_match_step *s = m->a->rules->steps + v->step;
  m->slots[PLN_ROOT_REGISTER] = m->root;
  for (uint32_t n = v->n_steps; n > 0; n--, s++)
    if (!passes(m, s))
      return false;
  return true;
}

/* ----------------------------------------------------------------- building */

static pln_term build(binding *m, uint16_t at, pln_term like);

static pln_term fold_binary(binding *m, pln_kind kind, pln_term x, pln_term y) {
  pln_analyzer *a = m->a;
  pln_term t = pln_fold(a, kind, x, y);
  if (t && pln_is_const(a, x) && pln_is_const(a, y) && !pln_is_const(a, t))
    m->overflow = true;
  return m->overflow ? PLN_NO_TERM : t;
}

/* A number has the dtype of the other operand. */
static pln_term build_binary(binding *m, const pln_pattern_node *p,
                             pln_term like) {
  bool number = m->nodes[p->a].op == PLN_PAT_NUMBER;
  pln_term x = number ? PLN_NO_TERM : build(m, p->a, like);
  pln_term y = build(m, p->b, number ? like : x);
  if (number)
    x = build(m, p->a, y);
  return fold_binary(m, (pln_kind)p->op, x, y);
}

static pln_term build(binding *m, uint16_t at, pln_term like) {
  const pln_pattern_node *p = &m->nodes[at];
  pln_analyzer *a = m->a;
  uint16_t lanes = pln_at(a, m->root)->lanes;
  pln_term x;
  switch (p->op) {
  case PLN_PAT_SLOT: return m->slots[p->slot];
  case PLN_PAT_NUMBER: return pln_const_like(a, like, p->value);
  case PLN_PAT_TRUTH: return pln_const_like(a, m->root, p->value);
  case PLN_PAT_RAMP:
    x = build(m, p->a, like);
    return pln_term_ramp(a, x, build(m, p->b, x), lanes);
  case PLN_PAT_BROADCAST:
    return pln_term_broadcast(a, build(m, p->a, like), lanes);
  case PLN_PRIM_NOT: return pln_fold_not(a, build(m, p->a, like));
  case PLN_SELECT:
    x = build(m, p->a, like);
    return pln_fold_select(a, x, build(m, p->b, like), build(m, p->c, like));
  default: return build_binary(m, p, like);
  }
}

/* ------------------------------------------------------------------- guards */

static int64_t value(binding *m, uint16_t at);

static int64_t checked(binding *m, bool fits, const int64_t *result) {
  if (!fits)
    m->overflow = true;
  return fits ? *result : 0;
}

static int64_t arithmetic(binding *m, uint8_t op, int64_t x, int64_t y) {
  int64_t out = 0;
  bool divides = y != 0 && !(y == -1 && x == INT64_MIN);
  switch (op) {
  case PLN_PRIM_ADD: return checked(m, pln_add_fits(x, y, &out), &out);
  case PLN_PRIM_SUB: return checked(m, pln_sub_fits(x, y, &out), &out);
  case PLN_PRIM_MUL: return checked(m, pln_mul_fits(x, y, &out), &out);
  case PLN_PRIM_FLOORDIV:
    out = divides ? pln_floor_div(x, y) : 0;
    return checked(m, divides, &out);
  case PLN_PRIM_FLOORMOD:
    out = divides ? pln_floor_mod(x, y) : 0;
    return checked(m, divides, &out);
  case PLN_PRIM_EQ: return x == y;
  case PLN_PRIM_NE: return x != y;
  case PLN_PRIM_LT: return x < y;
  case PLN_PRIM_LE: return x <= y;
  case PLN_PRIM_GT: return x > y;
  case PLN_PRIM_GE: return x >= y;
  default: return checked(m, false, &out);
  }
}

static bool has_any(pln_analyzer *a, pln_term t) {
  pln_term_list order;
  bool found = false;
  if (pln_term_kind(a, t) != PLN_ANY && pln_at(a, t)->n == 0)
    return false;
  if (!pln_term_order(a, t, NULL, &order))
    return true;
  for (uint32_t i = 0; i < order.n && !found; i++)
    found = pln_term_kind(a, order.items[i]) == PLN_ANY;
  pln_term_list_free(a, &order);
  return found;
}

static bool ask(binding *m, const pln_pattern_node *p) {
  pln_analyzer *a = m->a;
  pln_term t = build(m, p->a, m->slots[0]);
  if (!t)
    return false;
  switch (p->op) {
  case PLN_PAT_NONNEG: return pln_proves_ge(a, t, 0);
  case PLN_PAT_ZERO: return pln_proves_equal(a, t, pln_const_like(a, t, 0));
  case PLN_PAT_EXTREMUM:
    return pln_term_kind(a, t) == PLN_PRIM_MIN ||
           pln_term_kind(a, t) == PLN_PRIM_MAX;
  case PLN_PAT_CONSTANT: return pln_is_const(a, t);
  default: return has_any(a, t);
  }
}

static int64_t value(binding *m, uint16_t at) {
  const pln_pattern_node *p = &m->nodes[at];
  switch (p->op) {
  case PLN_PAT_SLOT: return pln_const(m->a, m->slots[p->slot]);
  case PLN_PAT_NUMBER: return p->value;
  case PLN_PAT_NONNEG:
  case PLN_PAT_ZERO:
  case PLN_PAT_EXTREMUM:
  case PLN_PAT_CONSTANT:
  case PLN_PAT_ANY: return ask(m, p);
  case PLN_PRIM_AND: return value(m, p->a) && !m->overflow && value(m, p->b);
  case PLN_PRIM_OR: return value(m, p->a) || value(m, p->b);
  case PLN_PRIM_NOT: return !value(m, p->a);
  default: break;
  }
  int64_t x = value(m, p->a);
  return arithmetic(m, p->op, x, value(m, p->b));
}

/* ----------------------------------------------------------------- the rules
 */

static pln_term try_variant(pln_analyzer *a, const pln_rule_variant *v,
                            pln_term t) {
  binding m;
  m.a = a;
  m.nodes = a->rules->nodes;
  m.root = t;
  m.overflow = false;
  m.slots[0] = PLN_NO_TERM;
  if (!match(&m, v))
    return PLN_NO_TERM;
  if (v->guard && (!value(&m, v->guard) || m.overflow))
    return PLN_NO_TERM;
  pln_term out = build(&m, v->rhs, t);
  return m.overflow || out == t ? PLN_NO_TERM : out;
}

/* Which set of dtypes: index scalars, vectors, others. */
static uint32_t dtype_class(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  pln_term x =
      n->n > 1 && n->kind != PLN_SELECT && pln_is_bool(a, t) ? n->a : t;
  bool logical = n->kind == PLN_PRIM_AND || n->kind == PLN_PRIM_OR;
  if (n->lanes > 1)
    return 1;
  return logical || pln_is_index(a, x) ? 0 : 2;
}

/* The terms at the places of a term, and their classes. No two places without a
 * term are equal; their class is that of term 0, an Any. */
typedef struct operand_places {
  pln_term term[PLN_RULE_PLACES];
  uint8_t class[PLN_RULE_PLACES];
} operand_places;

static void set_places(const pln_analyzer *a, pln_term t, uint32_t place,
                       uint32_t below, operand_places *out) {
  const uint8_t *class_of = a->rules->class_of;
  const pln_term_node *n = pln_at(a, t);
  pln_term x = n->n > 0 && n->n <= 3 ? n->a : PLN_NO_TERM;
  pln_term y = n->n > 1 && n->n <= 3 ? n->b : PLN_NO_TERM;
  out->term[place] = t;
  out->term[below] = x ? x : UINT32_MAX - below;
  out->term[below + 1] = y ? y : UINT32_MAX - below - 1;
  out->class[place] = class_of[n->kind];
  out->class[below] = class_of[pln_at(a, x)->kind];
  out->class[below + 1] = class_of[pln_at(a, y)->kind];
}

static void find_places(const pln_analyzer *a, pln_term t,
                        operand_places *out) {
  const pln_term_node *n = pln_at(a, t);
  pln_term second = n->n > 1 ? n->b : PLN_NO_TERM;
  set_places(a, n->a, PLN_AT_FIRST, PLN_AT_FIRST_FIRST, out);
  set_places(a, second, PLN_AT_SECOND, PLN_AT_SECOND_FIRST, out);
}

/* The pairs of places that have one term. */
static uint32_t equal_pairs(const operand_places *p) {
  uint32_t equal = 0, i = 0;
#define PAIR(x, y) equal |= (uint32_t)(p->term[x] == p->term[y]) << i++;
  PLN_RULE_PAIRS(PAIR)
#undef PAIR
  return equal;
}

/* The variants of one word whose kinds match. */
static uint64_t admitted(const pln_rule_root *root, const operand_places *p,
                         uint32_t dtype, uint32_t w) {
  uint64_t set = root->by_dtype[dtype][w];
  for (uint32_t place = 0; place < PLN_RULE_PLACES; place++)
    set &= root->by_class[place][p->class[place]][w];
  return set;
}

pln_term pln_rules_apply_to(pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  if (n->kind < PLN_PRIM_ADD || n->kind > PLN_SELECT)
    return PLN_NO_TERM;
  const pln_rule_root *root = &a->rules->roots[n->kind - PLN_PRIM_ADD];
  uint32_t dtype = dtype_class(a, t);
  operand_places places;
  find_places(a, t, &places);
  uint32_t equal = equal_pairs(&places);
  for (uint32_t w = 0; w * 64 < root->n; w++) {
    uint64_t set = admitted(root, &places, dtype, w);
    if (!equal)
      set &= ~root->repeating[w];
    for (; set; set &= set - 1) {
      const pln_rule_variant *v =
          &root->variants[64 * w + (uint32_t)__builtin_ctzll(set)];
      if (v->equal & ~equal)
        continue;
      pln_term out = try_variant(a, v, t);
      if (out || a->status != PLN_OK)
        return out;
    }
  }
  return PLN_NO_TERM;
}
