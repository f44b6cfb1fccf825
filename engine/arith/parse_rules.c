/* arith/parse_rules.c: reads rules.def: the texts of the rules become pattern
 * nodes, sorted by the operator at the root.
 *
 * Called once for each engine. The texts are ours, so that their depth is
 * small, and recursion over them is bounded. */

#include "arith/rules.h"

static const pln_arith_rule table[] = {
#define INDEX(lhs, rhs, guard, order) {lhs, rhs, guard, order},
#define VECTOR(lhs, rhs, guard, order) {lhs, rhs, guard, order},
#define ANY(lhs, rhs, guard, order) {lhs, rhs, guard, order},
#include "arith/rules.def"
};

static const uint8_t dtypes[] = {
#define INDEX(lhs, rhs, guard, order) 1,
#define VECTOR(lhs, rhs, guard, order) 2,
#define ANY(lhs, rhs, guard, order) 7,
#include "arith/rules.def"
};

const pln_arith_rule *pln_arith_rule_at(uint32_t i) {
  return i < PLN_COUNT(table) ? &table[i] : NULL;
}

typedef struct parser {
  struct pln_arith_rules *rules;
  const char *at;
  bool failed;
} parser;

static uint16_t fail(parser *p) {
  p->failed = true;
  p->at = "";
  return 0;
}

static uint16_t node(parser *p, uint32_t op, uint16_t a, uint16_t b,
                     uint16_t c) {
  struct pln_arith_rules *r = p->rules;
  if (r->n_nodes == PLN_MOST_PATTERNS)
    return fail(p);
  r->nodes[r->n_nodes] =
      (pln_pattern_node){.op = (uint8_t)op, .a = a, .b = b, .c = c};
  return (uint16_t)r->n_nodes++;
}

static void skip(parser *p) {
  while (*p->at == ' ')
    p->at++;
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Takes a word or a sign if it is what comes next. */
static bool take(parser *p, const char *text) {
  size_t n = strlen(text);
  skip(p);
  if (strncmp(p->at, text, n) != 0 || (is_letter(*text) && is_letter(p->at[n])))
    return false;
  p->at += n;
  return true;
}

static uint16_t expression(parser *p);

static uint16_t number(parser *p) {
  int64_t value = 0;
  for (; *p->at >= '0' && *p->at <= '9'; p->at++)
    value = 10 * value + (*p->at - '0');
  uint16_t n = node(p, PLN_PAT_NUMBER, 0, 0, 0);
  p->rules->nodes[n].value = value;
  return n;
}

static uint16_t argument(parser *p) {
  uint16_t n = expression(p);
  if (!take(p, ",") && !take(p, ")"))
    return fail(p);
  return n;
}

typedef struct function {
  const char *name;
  uint8_t op, n;
} function;

static const function functions[] = {
    {"div(", PLN_PRIM_DIV, 2},          {"mod(", PLN_PRIM_MOD, 2},
    {"min(", PLN_PRIM_MIN, 2},          {"max(", PLN_PRIM_MAX, 2},
    {"select(", PLN_SELECT, 3},         {"ramp(", PLN_PAT_RAMP, 2},
    {"bc(", PLN_PAT_BROADCAST, 1},      {"nonneg(", PLN_PAT_NONNEG, 1},
    {"zero(", PLN_PAT_ZERO, 1},         {"any(", PLN_PAT_ANY, 1},
    {"extremum(", PLN_PAT_EXTREMUM, 1}, {"constant(", PLN_PAT_CONSTANT, 1},
};

static uint16_t call(parser *p) {
  for (size_t i = 0; i < PLN_COUNT(functions); i++) {
    const function *f = &functions[i];
    if (strncmp(p->at, f->name, strlen(f->name)) != 0)
      continue;
    p->at += strlen(f->name);
    uint16_t args[3] = {0};
    for (uint32_t k = 0; k < f->n; k++)
      args[k] = argument(p);
    return node(p, f->op, args[0], args[1], args[2]);
  }
  return 0;
}

static uint16_t slot(parser *p) {
  static const char letters[] = "xyzwvpqr";
  const char *letter = *p->at ? strchr(letters, *p->at) : NULL;
  bool constant = p->at[0] == 'c' && p->at[1] >= '1' && p->at[1] <= '4';
  if ((!letter || is_letter(p->at[1])) && !constant)
    return fail(p);
  uint32_t which = constant ? (uint32_t)(PLN_FIRST_CONST + p->at[1] - '1')
                            : (uint32_t)(letter - letters);
  p->at += constant ? 2 : 1;
  uint16_t n = node(p, PLN_PAT_SLOT, 0, 0, 0);
  p->rules->nodes[n].slot = (uint8_t)which;
  return n;
}

static uint16_t primary(parser *p) {
  if (take(p, "not"))
    return node(p, PLN_PRIM_NOT, primary(p), 0, 0);
  if (take(p, "-")) {
    uint16_t zero = node(p, PLN_PAT_NUMBER, 0, 0, 0);
    return node(p, PLN_PRIM_SUB, zero, primary(p), 0);
  }
  if (take(p, "(")) {
    uint16_t n = expression(p);
    return take(p, ")") ? n : fail(p);
  }
  bool truth = take(p, "true");
  if (truth || take(p, "false")) {
    uint16_t n = node(p, PLN_PAT_TRUTH, 0, 0, 0);
    p->rules->nodes[n].value = truth;
    return n;
  }
  if (*p->at >= '0' && *p->at <= '9')
    return number(p);
  uint16_t n = call(p);
  return n ? n : slot(p);
}

typedef struct sign {
  const char *text;
  uint8_t kind, level;
} sign;

static const sign signs[] = {
    {"//", PLN_PRIM_FLOORDIV, 4}, {"%", PLN_PRIM_FLOORMOD, 4},
    {"*", PLN_PRIM_MUL, 4},       {"+", PLN_PRIM_ADD, 3},
    {"-", PLN_PRIM_SUB, 3},       {"==", PLN_PRIM_EQ, 2},
    {"~=", PLN_PRIM_NE, 2},       {"<=", PLN_PRIM_LE, 2},
    {">=", PLN_PRIM_GE, 2},       {"<", PLN_PRIM_LT, 2},
    {">", PLN_PRIM_GT, 2},        {"and", PLN_PRIM_AND, 1},
    {"or", PLN_PRIM_OR, 0},
};

static const sign *next_sign(parser *p, uint8_t level) {
  for (size_t i = 0; i < PLN_COUNT(signs); i++)
    if (signs[i].level == level && take(p, signs[i].text))
      return &signs[i];
  return NULL;
}

static uint16_t at_level(parser *p, uint8_t level) {
  if (level > 4)
    return primary(p);
  uint16_t left = at_level(p, level + 1);
  const sign *s;
  while ((s = next_sign(p, level)) != NULL)
    left = node(p, s->kind, left, at_level(p, level + 1), 0);
  return left;
}

static uint16_t expression(parser *p) {
  return at_level(p, 0);
}

/* ----------------------------------------------------------------- decision */

/* The kinds of terms that a pattern node matches: one, or all. */
static pln_kind kind_of(const pln_pattern_node *n) {
  if (n->op < PLN_N_KINDS)
    return (pln_kind)n->op;
  switch (n->op) {
  case PLN_PAT_NUMBER:
  case PLN_PAT_TRUTH: return PLN_INT_IMM;
  case PLN_PAT_RAMP: return PLN_RAMP;
  case PLN_PAT_BROADCAST: return PLN_BROADCAST;
  default: return n->slot >= PLN_FIRST_CONST ? PLN_INT_IMM : PLN_N_KINDS;
  }
}

/* The class of a kind that a left side names. */
static uint32_t class_of(parser *p, pln_kind kind) {
  struct pln_arith_rules *r = p->rules;
  if (!r->class_of[kind] && r->n_classes + 1 == PLN_KIND_CLASSES)
    fail(p);
  else if (!r->class_of[kind])
    r->class_of[kind] = (uint8_t)++r->n_classes;
  return r->class_of[kind];
}

/* Variant `i` admits at the place what the pattern node matches. 0: anything */
static void admit(parser *p, pln_rule_root *root, pln_operand_place place,
                  uint16_t at, uint32_t i) {
  pln_kind kind = at ? kind_of(&p->rules->nodes[at]) : PLN_N_KINDS;
  uint64_t bit = UINT64_C(1) << i % 64;
  if (kind != PLN_N_KINDS)
    root->by_class[place][class_of(p, kind)][i / 64] |= bit;
  else
    for (uint32_t k = 0; k < PLN_KIND_CLASSES; k++)
      root->by_class[place][k][i / 64] |= bit;
}

/* The operands of a pattern node that is an operator. */
static pln_pattern_node below(const parser *p, uint16_t at) {
  const pln_pattern_node *n = &p->rules->nodes[at];
  bool is_operator = at && (n->op < PLN_N_KINDS || n->op == PLN_PAT_RAMP ||
                            n->op == PLN_PAT_BROADCAST);
  return is_operator ? *n : (pln_pattern_node){0};
}

/* 1 + the slot of a pattern node; 0: it is none. */
static uint32_t slot_of(const parser *p, uint16_t at) {
  const pln_pattern_node *n = &p->rules->nodes[at];
  return at && n->op == PLN_PAT_SLOT ? n->slot + 1u : 0;
}

/* The pairs of places that have one slot. */
static uint16_t equal_places(const parser *p,
                             const uint16_t at[PLN_RULE_PLACES]) {
  static const uint8_t pairs[][2] = {
#define PAIR(x, y) {x, y},
      PLN_RULE_PAIRS(PAIR)
#undef PAIR
  };
  uint16_t equal = 0;
  for (uint32_t i = 0; i < PLN_COUNT(pairs); i++) {
    uint32_t slot = slot_of(p, at[pairs[i][0]]);
    if (slot && slot == slot_of(p, at[pairs[i][1]]))
      equal |= (uint16_t)(1u << i);
  }
  return equal;
}

static void admit_variant(parser *p, pln_rule_root *root, uint16_t lhs,
                          uint32_t i) {
  pln_pattern_node top = below(p, lhs), x = below(p, top.a),
                   y = below(p, top.b);
  uint16_t at[PLN_RULE_PLACES] = {top.a, top.b, x.a, x.b, y.a, y.b};
  for (uint32_t k = 0; k < PLN_RULE_PLACES; k++)
    admit(p, root, (pln_operand_place)k, at[k], i);
  root->variants[i].equal = equal_places(p, at);
  if (root->variants[i].equal)
    root->repeating[i / 64] |= UINT64_C(1) << i % 64;
  for (uint32_t k = 0; k < PLN_COUNT(root->by_dtype); k++)
    if (root->variants[i].dtypes >> k & 1)
      root->by_dtype[k][i / 64] |= UINT64_C(1) << i % 64;
}

/* --------------------------------------------------------------------- steps
 */

/* What is being compiled: the registers in use. */
typedef struct compiler {
  parser *p;
  uint32_t bound;     /* slots, as bits */
  uint32_t registers; /* used so far */
} compiler;

static void add_step(compiler *c, pln_match_step step) {
  struct pln_arith_rules *r = c->p->rules;
  if (r->n_steps == PLN_MOST_STEPS)
    fail(c->p);
  else
    r->steps[r->n_steps++] = step;
}

/* A slot is bound where it is first, and compared where it is again. */
static void compile_slot(compiler *c, const pln_pattern_node *n,
                         pln_match_step step, bool admitted) {
  bool again = c->bound >> n->slot & 1;
  c->bound |= UINT32_C(1) << n->slot;
  step.to = n->slot;
  step.kind = PLN_INT_IMM;
  step.test = again                                   ? PLN_TEST_SAME
              : admitted || n->slot < PLN_FIRST_CONST ? PLN_TEST_NOTHING
                                                      : PLN_TEST_KIND;
  add_step(c, step);
}

static void compile_operands(compiler *c, const pln_pattern_node *n,
                             uint8_t reg, uint32_t depth);

/* `admitted`: the sets have tested the kind. */
static void compile_node(compiler *c, uint16_t at, pln_match_step step,
                         uint32_t depth, bool admitted) {
  const pln_pattern_node *n = &c->p->rules->nodes[at];
  switch (n->op) {
  case PLN_PAT_SLOT: compile_slot(c, n, step, admitted); return;
  case PLN_PAT_NUMBER:
  case PLN_PAT_TRUTH:
    step.test = n->op == PLN_PAT_TRUTH ? PLN_TEST_TRUTH : PLN_TEST_NUMBER;
    step.value = n->value;
    add_step(c, step);
    return;
  default: break;
  }
  if (c->registers == PLN_RULE_REGISTERS) {
    fail(c->p);
    return;
  }
  step.to = (uint8_t)c->registers++;
  step.kind = (uint8_t)kind_of(n);
  step.test = admitted ? PLN_TEST_NOTHING : PLN_TEST_KIND;
  add_step(c, step);
  compile_operands(c, n, step.to, depth + 1);
}

/* The sets test the first two operands, down to the second level. */
static void compile_operands(compiler *c, const pln_pattern_node *n,
                             uint8_t reg, uint32_t depth) {
  uint16_t operands[3] = {n->a, n->b, n->c};
  for (uint8_t i = 0; i < 3; i++)
    if (operands[i])
      compile_node(c, operands[i], (pln_match_step){.from = reg, .operand = i},
                   depth, depth <= 2 && i < 2);
}

static void compile_variant(parser *p, pln_rule_variant *v) {
  compiler c = {.p = p, .registers = PLN_ROOT_REGISTER + 1};
  v->step = (uint16_t)p->rules->n_steps;
  compile_operands(&c, &p->rules->nodes[v->lhs], PLN_ROOT_REGISTER, 1);
  v->n_steps = (uint16_t)(p->rules->n_steps - v->step);
}

static void add_variant(parser *p, const pln_rule_variant *v) {
  const pln_pattern_node *lhs = &p->rules->nodes[v->lhs];
  if (lhs->op < PLN_PRIM_ADD || lhs->op > PLN_SELECT) {
    fail(p);
    return;
  }
  pln_rule_root *root = &p->rules->roots[lhs->op - PLN_PRIM_ADD];
  if (root->n == PLN_MOST_VARIANTS) {
    fail(p);
    return;
  }
  root->variants[root->n] = *v;
  compile_variant(p, &root->variants[root->n]);
  admit_variant(p, root, v->lhs, root->n++);
}

static uint16_t whole(parser *p, const char *text) {
  p->at = text;
  uint16_t n = expression(p);
  skip(p);
  return *p->at ? fail(p) : n;
}

static void parse_rule(parser *p, uint32_t i) {
  const pln_arith_rule *rule = &table[i];
  pln_rule_variant v = {.rule = (uint16_t)i, .dtypes = dtypes[i]};
  v.rhs = whole(p, rule->rhs);
  v.guard = *rule->guard ? whole(p, rule->guard) : 0;
  p->at = rule->lhs;
  do {
    v.lhs = expression(p);
    if (!p->failed)
      add_variant(p, &v);
  } while (take(p, "|"));
  if (*p->at)
    fail(p);
}

pln_status pln_arith_rules_parse(pln_engine *engine,
                                 struct pln_arith_rules *rules) {
  parser p = {.rules = rules};
  rules->n_nodes = 1; /* 0 is no node */
  for (uint32_t i = 0; i < PLN_COUNT(table); i++) {
    parse_rule(&p, i);
    if (p.failed)
      return pln_diag_error(engine, PLN_ERR_FORMAT, NULL,
                            "arith/rules.def: rule %u: '%s'", (unsigned)i,
                            table[i].lhs);
  }
  return PLN_OK;
}
