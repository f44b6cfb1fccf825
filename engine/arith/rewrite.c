/* arith/rewrite.c: simplifies an expression operand by operand, by rules
 * (rewrite_simplify) or to its normal form (canonical_simplify).
 *
 * Called by the public functions and by proofs. A stack of frames replaces
 * recursion: a frame rewrites one node until nothing applies, after its
 * operands. Results are kept by term, for the present context. Fuel bounds what
 * the measure of the rules does not: rewriting always ends. Proofs inside of
 * rules nest a few levels deep at most; deeper ones are not tried. */

#include "arith/arith.h"

enum { MOST_STEPS = 64, MOST_NESTED = 6, MOST_SCOPES = 24 };

typedef struct frame {
  pln_term origin, current;
  uint16_t steps;
  bool entered; /* the operands have been pushed */
} frame;

typedef struct machine {
  pln_analyzer *a;
  frame *stack;
  uint32_t n, cap;
  bool canonical;
  frame few[32];
} machine;

static bool is_done(const machine *m, pln_term t) {
  const pln_term_facts *f = &m->a->facts[t];
  return (m->canonical ? f->canonical_at : f->simple_at) == m->a->epoch;
}

static pln_term result_of(const machine *m, pln_term t) {
  const pln_term_facts *f = &m->a->facts[t];
  return m->canonical ? f->canonical : f->simple;
}

static pln_term simple_operand(const machine *m, pln_term x) {
  return is_done(m, x) ? result_of(m, x) : x;
}

static void keep(machine *m, pln_term t, pln_term result) {
  pln_term_facts *f = &m->a->facts[t];
  if (m->canonical) {
    f->canonical = result;
    f->canonical_at = m->a->epoch;
  } else {
    f->simple = result;
    f->simple_at = m->a->epoch;
  }
}

static bool widen(machine *m) {
  uint32_t cap = 2 * m->cap;
  frame *wider = pln_mem_new(m->a->engine, cap * sizeof *wider);
  if (!wider) {
    pln_arith_fail(m->a, pln_nomem(m->a->engine));
    return false;
  }
  memcpy(wider, m->stack, m->n * sizeof *wider);
  if (m->stack != m->few)
    pln_mem_free(m->a->engine, m->stack, m->cap * sizeof *wider);
  m->stack = wider;
  m->cap = cap;
  return true;
}

static inline void push(machine *m, pln_term t) {
  if (m->n < m->cap || widen(m))
    m->stack[m->n++] = (frame){.origin = t, .current = t};
}

static void finish(machine *m, pln_term result) {
  frame *f = &m->stack[m->n - 1];
  if (!result)
    result = f->current;
  keep(m, result, result);
  if (f->origin != result)
    keep(m, f->origin, result);
  if (f->current != result)
    keep(m, f->current, result);
  m->a->facts[f->origin].busy = false;
  m->n--;
}

/* ------------------------------------------------------------------ branches
 */

static bool is_builtin(const pln_analyzer *a, pln_term t, const char *name) {
  const pln_term_node *n = pln_at(a, t);
  return n->kind == PLN_PRIM_CALL && (uint32_t)n->u.data != 0 &&
         strcmp(pln_builtin_name((uint32_t)n->u.data), name) == 0;
}

static bool is_branch(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  return n->n == 3 && n->lanes == 1 &&
         (n->kind == PLN_SELECT || is_builtin(a, t, "if_then_else"));
}

/* A branch is simplified anew for each condition that it is below, so that
 * branches that are shared would be simplified exponentially often: steps are
 * limited. */
static bool knows_condition(const pln_analyzer *a, pln_term t) {
  return is_branch(a, t) && a->depth < MOST_SCOPES && a->branch_fuel > 0;
}

static pln_term simplify_nested(machine *m, pln_term t) {
  return m->canonical ? pln_canonical_term(m->a, t) : pln_rewrite_term(m->a, t);
}

static pln_term under(machine *m, pln_term condition, pln_term t) {
  pln_analyzer *a = m->a;
  if (pln_at(a, t)->n == 0 && pln_term_kind(a, t) != PLN_VAR)
    return t;
  uint32_t depth = a->depth;
  a->branches++;
  uint32_t mark = pln_enter(a, condition);
  a->depth = depth + 1;
  pln_term out = simplify_nested(m, t);
  a->depth = depth;
  a->branches--;
  pln_leave(a, mark);
  return out;
}

static pln_term negated(pln_analyzer *a, pln_term condition) {
  return pln_rewrite_term(a, pln_fold_not(a, condition));
}

/* The branch that a constant condition takes, not simplified yet. */
static pln_term taken_branch(const machine *m, pln_term t) {
  const pln_term_node *n = pln_at(m->a, t);
  pln_term condition = simple_operand(m, n->a);
  if (!pln_is_const(m->a, condition))
    return PLN_NO_TERM;
  return pln_const(m->a, condition) ? n->b : n->c;
}

/* The condition has been simplified; each branch is simplified knowing it. */
static pln_term reduce_branch(machine *m, pln_term t) {
  pln_analyzer *a = m->a;
  pln_term_node n = *pln_at(a, t);
  pln_term operands[3] = {simple_operand(m, n.a), n.b, n.c};
  operands[1] = under(m, operands[0], n.b);
  operands[2] = under(m, negated(a, operands[0]), n.c);
  if (n.kind == PLN_SELECT && operands[1] == operands[2])
    return operands[1];
  return pln_term_with(a, t, operands);
}

/* --------------------------------------------------------- both sides known
 */

/* Each side of And and Or is simplified again where the other decides nothing,
 * so the cost grows with the nesting: conditions that nest deeper or are larger
 * are left as they are. */
enum { MOST_NESTED_SIDES = 3, LARGEST_SIDES = 200, MOST_SIDE_ROUNDS = 4 };

static bool has_known_sides(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  return (a->extensions & PLN_ARITH_IN_BRANCHES) && n->lanes == 1 &&
         (n->kind == PLN_PRIM_AND || n->kind == PLN_PRIM_OR) &&
         a->depth < MOST_NESTED_SIDES && n->size <= LARGEST_SIDES &&
         a->branch_fuel > 0;
}

/* x && y: x where y holds and the reverse; x || y: where the other does not.
 * PLN_NO_TERM: nothing changes. */
static pln_term reduce_sides(machine *m, pln_term t) {
  pln_analyzer *a = m->a;
  pln_term_node n = *pln_at(a, t);
  pln_term sides[2] = {n.a, n.b};
  uint32_t same = 0;
  for (uint32_t i = 0; i < MOST_SIDE_ROUNDS && same < 2; i++) {
    pln_term other = sides[1 - i % 2];
    if (n.kind == PLN_PRIM_OR)
      other = negated(a, other);
    pln_term next = under(m, other, sides[i % 2]);
    if (a->status != PLN_OK)
      return PLN_NO_TERM;
    same = next == sides[i % 2] ? same + 1 : 0;
    sides[i % 2] = next;
  }
  if (sides[0] == n.a && sides[1] == n.b)
    return PLN_NO_TERM;
  return pln_fold(a, (pln_kind)n.kind, sides[0], sides[1]);
}

/* ------------------------------------------------------------------- operands
 */

static bool needs_leaves(const machine *m, pln_term t) {
  return m->canonical && pln_is_linear(m->a, t);
}

/* A number, or a variable of which no value is known: nothing becomes of it. */
static bool is_settled(const pln_analyzer *a, pln_term x) {
  uint8_t kind = a->nodes[x].kind;
  const pln_term_facts *f = &a->facts[x];
  return kind == PLN_INT_IMM || (kind == PLN_VAR && !f->known &&
                                 (!f->var || !a->vars[f->var - 1].value));
}

static void push_operand(machine *m, pln_term x) {
  if (is_settled(m->a, x) || is_done(m, x))
    return;
  if (m->a->facts[x].busy)
    keep(m, x, x);
  else
    push(m, x);
}

/* `form`: of a small sum, else NULL. */
static void push_leaves(machine *m, pln_term t, const pln_small_form *form) {
  pln_term_list leaves;
  if (form) {
    for (uint32_t i = form->n; i-- > 0;)
      push_operand(m, form->leaves[i]);
    return;
  }
  if (!pln_linear_leaves(m->a, t, &leaves))
    return;
  for (uint32_t i = leaves.n; i-- > 0;)
    push_operand(m, leaves.items[i]);
  pln_term_list_free(m->a, &leaves);
}

static void push_operands(machine *m, pln_term t) {
  const pln_term_node *node = pln_at(m->a, t);
  uint32_t n = node->n;
  if (n == 2) {
    pln_term x = node->a;
    push_operand(m, node->b);
    push_operand(m, x);
    return;
  }
  if (knows_condition(m->a, t))
    n = 1;
  while (n-- > 0)
    push_operand(m, pln_term_operand(m->a, t, n));
}

static pln_term folded(pln_analyzer *a, pln_term t, const pln_term *operands) {
  const pln_term_node *n = pln_at(a, t);
  pln_kind kind = (pln_kind)n->kind;
  if (kind == PLN_PRIM_NOT)
    return pln_fold_not(a, operands[0]);
  if (kind == PLN_SELECT)
    return pln_fold_select(a, operands[0], operands[1], operands[2]);
  if (kind == PLN_PRIM_CAST)
    return pln_fold_cast(a, (pln_dtype)n->dtype, operands[0]);
  return pln_term_with(a, t, operands);
}

/* Buffers and what declares variables keep their operands. */
static bool is_opaque(pln_kind kind) {
  return kind == PLN_BUFFER || kind == PLN_COMM_REDUCER ||
         kind == PLN_ITER_VAR || kind == PLN_REDUCE;
}

static pln_term binary_with_results(machine *m, pln_term t) {
  const pln_term_node *n = pln_at(m->a, t);
  pln_term x = simple_operand(m, n->a), y = simple_operand(m, n->b);
  return x == n->a && y == n->b ? pln_fold_again(m->a, t)
                                : pln_fold(m->a, (pln_kind)n->kind, x, y);
}

static pln_term with_results(machine *m, pln_term t) {
  const pln_term_node *node = pln_at(m->a, t);
  uint32_t n = node->n;
  pln_term few[8], *operands = few;
  bool same = true;
  if (node->kind >= PLN_PRIM_ADD && node->kind <= PLN_PRIM_OR)
    return binary_with_results(m, t);
  if (n == 0 || is_opaque((pln_kind)node->kind))
    return t;
  if (n > PLN_COUNT(few))
    operands = pln_mem_new(m->a->engine, n * sizeof *operands);
  if (!operands)
    return pln_arith_fail(m->a, pln_nomem(m->a->engine));
  for (uint32_t i = 0; i < n; i++) {
    pln_term x = pln_term_operand(m->a, t, i);
    operands[i] = simple_operand(m, x);
    same = same && operands[i] == x;
  }
  pln_term out = same ? pln_fold_again(m->a, t) : folded(m->a, t, operands);
  if (operands != few)
    pln_mem_free(m->a->engine, operands, n * sizeof *operands);
  return out;
}

/* -------------------------------------------------------------------- a step
 */

static pln_term reduce_var(const pln_analyzer *a, pln_term t) {
  const pln_var_fact *fact =
      pln_var_fact_of((pln_analyzer *)(uintptr_t)a, t, false);
  return fact ? fact->value : PLN_NO_TERM;
}

/* What becomes of a node whose operands are simplified; PLN_NO_TERM: it is
 * simple. */
static pln_term reduce(machine *m, pln_term t) {
  pln_analyzer *a = m->a;
  int known = pln_known_condition(a, t);
  if (known >= 0)
    return pln_const_like(a, t, known);
  if (pln_term_kind(a, t) == PLN_VAR)
    return reduce_var(a, t);
  if (m->canonical && pln_term_kind(a, t) == PLN_PRIM_LT) {
    pln_term less = pln_canonical_less(a, t);
    if (less)
      return less;
  }
  pln_term out = has_known_sides(a, t) ? reduce_sides(m, t) : PLN_NO_TERM;
  if (!out)
    out = pln_native_before(a, t);
  if (!out)
    out = pln_rules_apply_to(a, t);
  return out ? out : pln_native_after(a, t);
}

static pln_term reduce_reduction(pln_analyzer *a, pln_term t) {
  a->depth++;
  pln_term out = a->depth < MOST_NESTED ? pln_canonical_reduce(a, t) : t;
  a->depth--;
  return out;
}

static void work(machine *m) {
  pln_analyzer *a = m->a;
  frame *f = &m->stack[m->n - 1];
  pln_term t = f->current, next;
  if (m->canonical && pln_term_kind(a, t) == PLN_REDUCE) {
    finish(m, reduce_reduction(a, t));
    return;
  }
  bool branch = knows_condition(a, t);
  pln_term taken = branch ? taken_branch(m, t) : PLN_NO_TERM;
  if (taken) {
    f->current = taken;
    f->entered = false;
    return;
  }
  next = branch ? reduce_branch(m, t) : with_results(m, t);
  f = &m->stack[m->n - 1];
  if (next && next != t && !branch) {
    f->current = t = next;
    if (is_done(m, t) || needs_leaves(m, t)) {
      f->entered = false;
      return;
    }
  } else if (next && next != t) {
    f->current = t = next;
    if (!is_branch(a, t)) {
      f->entered = false;
      return;
    }
  }
  if (m->canonical && pln_is_index(a, t)) {
    next = pln_canonical_division(a, t);
    if (next) {
      finish(m, next);
      return;
    }
  }
  next = reduce(m, t);
  f = &m->stack[m->n - 1];
  if (!next || next == t || ++f->steps > MOST_STEPS || a->fuel == 0) {
    finish(m, t);
    return;
  }
  a->fuel--;
  f->current = next;
  f->entered = false;
}

/* A sum: its leaves, and then its normal form. Where the leaves are in normal
 * form already, its linear form serves for both. */
static void step_sum(machine *m, pln_term t, bool entered) {
  uint32_t n = m->n;
  pln_small_form small;
  const pln_small_form *form =
      pln_small_linear_form(m->a, t, &small) ? &small : NULL;
  if (!entered)
    push_leaves(m, t, form);
  if (m->n == n)
    finish(m, pln_canonical_sum(m->a, t, form));
}

static void step(machine *m) {
  frame *f = &m->stack[m->n - 1];
  uint32_t n = m->n;
  if (m->a->branches > 0 && m->a->branch_fuel > 0)
    m->a->branch_fuel--;
  if (is_done(m, f->current)) {
    finish(m, result_of(m, f->current));
    return;
  }
  bool entered = f->entered;
  if (!entered) {
    f->entered = true;
    m->a->facts[f->origin].busy = true;
  }
  if (needs_leaves(m, f->current)) {
    step_sum(m, f->current, entered);
    return;
  }
  if (!entered) {
    push_operands(m, f->current);
    if (m->n > n)
      return;
  }
  work(m);
}

static pln_term run_machine(pln_analyzer *a, pln_term t, bool canonical) {
  machine m;
  m.a = a;
  m.canonical = canonical;
  m.n = 0;
  m.stack = m.few;
  m.cap = PLN_COUNT(m.few);
  if (!t)
    return PLN_NO_TERM;
  if (is_done(&m, t))
    return result_of(&m, t);
  if (is_settled(a, t))
    return t;
  bool outer = a->canonical;
  a->canonical = canonical;
  push(&m, t);
  while (m.n > 0 && a->status == PLN_OK && !pln_analyzer_stopped(a))
    step(&m);
  a->canonical = outer;
  for (uint32_t i = 0; i < m.n; i++)
    a->facts[m.stack[i].origin].busy = false;
  if (m.stack != m.few)
    pln_mem_free(a->engine, m.stack, m.cap * sizeof *m.stack);
  return a->status == PLN_OK ? result_of(&m, t) : PLN_NO_TERM;
}

pln_term pln_rewrite_term(pln_analyzer *a, pln_term t) {
  return run_machine(a, t, false);
}

pln_term pln_canonical_term(pln_analyzer *a, pln_term t) {
  return run_machine(a, t, true);
}

/* -------------------------------------------------------------------- proofs
 */

static int relation_of_bound(pln_bound b, int64_t value) {
  int possible = PLN_REL_UNKNOWN;
  if (b.min >= value)
    possible &= ~PLN_REL_LT;
  if (b.min > value)
    possible &= ~PLN_REL_EQ;
  if (b.max <= value)
    possible &= ~PLN_REL_GT;
  if (b.max < value)
    possible &= ~PLN_REL_EQ;
  return possible;
}

/* How `diff` compares with a value. */
static int compare_with(pln_analyzer *a, pln_term diff, int64_t value) {
  int possible = relation_of_bound(pln_bound_of(a, diff), value);
  if (possible & PLN_REL_EQ && possible != PLN_REL_EQ) {
    pln_modular m = pln_modular_of(a, diff);
    if (m.coeff > 1 && pln_floor_mod(value, m.coeff) != m.base)
      possible &= ~PLN_REL_EQ;
  }
  return possible;
}

/* As the analyzer simplifies at present: by rules, or to normal form. */
static pln_term nested_rewrite(pln_analyzer *a, pln_term t) {
  if (a->depth >= MOST_NESTED)
    return t;
  a->depth++;
  pln_term out = run_machine(a, t, a->canonical);
  a->depth--;
  return out;
}

int pln_compare_terms(pln_analyzer *a, pln_term x, pln_term y) {
  if (!x || !y)
    return PLN_REL_UNKNOWN;
  if (x == y)
    return PLN_REL_EQ;
  if (pln_is_const(a, y))
    return compare_with(a, nested_rewrite(a, x), pln_const(a, y)) &
           pln_transitive_compare(a, x, y);
  pln_bound p = pln_bound_of(a, x), q = pln_bound_of(a, y);
  if (p.max < q.min)
    return PLN_REL_LT;
  if (p.min > q.max)
    return PLN_REL_GT;
  return compare_with(a, nested_rewrite(a, pln_sub(a, x, y)), 0) &
         pln_transitive_compare(a, x, y);
}

bool pln_proves_ge(pln_analyzer *a, pln_term x, int64_t value) {
  if (!x)
    return false;
  if (pln_bound_of(a, x).min >= value)
    return true;
  pln_term zero = pln_const_like(a, x, value);
  return !(pln_compare_terms(a, x, zero) & PLN_REL_LT);
}

bool pln_proves_lt(pln_analyzer *a, pln_term x, int64_t value) {
  pln_term limit = pln_const_like(a, x, value);
  return x && pln_compare_terms(a, x, limit) == PLN_REL_LT;
}

bool pln_proves_equal(pln_analyzer *a, pln_term x, pln_term y) {
  return x && y && pln_compare_terms(a, x, y) == PLN_REL_EQ;
}
