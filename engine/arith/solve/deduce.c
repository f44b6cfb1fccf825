/* arith/deduce.c: what a condition says of a variable: DeduceBound,
 * DetectLinearEquation, DetectClipBound, NarrowPredicateExpression.
 *
 * Called by the public functions. */

#include <stdlib.h>

#include "arith/arith.h"

/* -------------------------------------------------------------- DeduceBound */

typedef enum direction { AT_LEAST, AT_MOST, EQUAL } direction;

typedef struct deduction {
  pln_analyzer *a;
  pln_term var, expr, result; /* expr is at least, at most or equal to result */
  direction op;
  uint32_t n_hints;
  const pln_term *hint_vars;
  const pln_interval *hints;
} deduction;

static direction reversed(direction op) {
  return op == AT_LEAST ? AT_MOST : op == AT_MOST ? AT_LEAST : EQUAL;
}

/* Brings the condition into the form of a deduction. */
static bool orient(deduction *d, pln_term condition) {
  pln_analyzer *a = d->a;
  pln_term_node n = *pln_at(a, condition);
  if (n.kind < PLN_PRIM_EQ || n.kind > PLN_PRIM_GE || n.kind == PLN_PRIM_NE)
    return false;
  bool left = pln_term_uses(a, n.a, d->var),
       right = pln_term_uses(a, n.b, d->var);
  if (left == right || !pln_is_index(a, n.a))
    return false;
  bool strict = n.kind == PLN_PRIM_LT || n.kind == PLN_PRIM_GT;
  bool less = n.kind == PLN_PRIM_LT || n.kind == PLN_PRIM_LE;
  d->op = n.kind == PLN_PRIM_EQ ? EQUAL : less ? AT_MOST : AT_LEAST;
  if (right)
    d->op = reversed(d->op);
  d->expr = left ? n.a : n.b;
  d->result = left ? n.b : n.a;
  if (strict)
    d->result = pln_add_const(a, d->result, d->op == AT_MOST ? -1 : 1);
  return true;
}

/* The condition for all values of the relaxed variables. */
static bool relax(deduction *d, uint32_t n, const pln_term *vars,
                  const pln_interval *sets) {
  pln_analyzer *a = d->a;
  if (n == 0)
    return true;
  pln_interval x = pln_interval_of(a, d->expr, n, vars, sets, false);
  pln_interval y = pln_interval_of(a, d->result, n, vars, sets, false);
  if (d->op == EQUAL && (x.min != x.max || y.min != y.max))
    return false;
  d->expr = d->op == AT_LEAST ? x.min : x.max;
  d->result = d->op == AT_LEAST ? y.max : y.min;
  return !pln_is_infinite(d->expr) && !pln_is_infinite(d->result);
}

static int sign_by_hints(deduction *d, pln_term t) {
  pln_analyzer *a = d->a;
  pln_interval set =
      pln_interval_of(a, t, d->n_hints, d->hint_vars, d->hints, false);
  if (!pln_is_infinite(set.min) && pln_proves_ge(a, set.min, 1))
    return 1;
  if (!pln_is_infinite(set.max) && pln_proves_lt(a, set.max, 0))
    return -1;
  return 0;
}

static bool undo_product(deduction *d, pln_term factor) {
  pln_analyzer *a = d->a;
  int sign = sign_by_hints(d, factor);
  if (!sign && d->op != EQUAL)
    sign = pln_proves_ge(a, factor, 1)   ? 1
           : pln_proves_lt(a, factor, 0) ? -1
                                         : 0;
  if (!sign)
    return false;
  if (sign < 0)
    d->op = reversed(d->op);
  pln_term rest = pln_fold(a, PLN_PRIM_FLOORMOD, d->result, factor);
  bool exact = pln_is_value(a, pln_simplify_term(a, rest, 2), 0);
  d->result = pln_fold(a, PLN_PRIM_FLOORDIV, d->result, factor);
  if (!exact && d->op == AT_LEAST)
    d->result = pln_add_const(a, d->result, 1);
  return exact || d->op != EQUAL;
}

/* floor(x / d) >= r is x / d >= r; floor(x / d) <= r is x / d < r + 1. */
static bool undo_quotient(deduction *d, pln_term divisor) {
  pln_analyzer *a = d->a;
  int sign = sign_by_hints(d, divisor);
  if (!sign || d->op == EQUAL)
    return false;
  if (sign < 0 && d->op == AT_MOST) {
    d->result = pln_mul(a, pln_add_const(a, d->result, 1), divisor);
    d->result = pln_add_const(a, d->result, 1);
    d->op = AT_LEAST;
    return true;
  }
  if (d->op == AT_MOST)
    d->result = pln_add_const(a, d->result, 1);
  d->result = pln_mul(a, d->result, divisor);
  if (d->op == AT_MOST)
    d->result = pln_add_const(a, d->result, -1);
  if (sign < 0)
    d->op = AT_MOST;
  return true;
}

/* Moves the outermost operation of the expression to the other side. */
static bool undo(deduction *d) {
  pln_analyzer *a = d->a;
  pln_term_node n = *pln_at(a, d->expr);
  if (n.n != 2)
    return false;
  bool left = pln_term_uses(a, n.a, d->var);
  if (left == pln_term_uses(a, n.b, d->var))
    return false;
  pln_term inner = left ? n.a : n.b, other = left ? n.b : n.a;
  d->expr = inner;
  switch (n.kind) {
  case PLN_PRIM_ADD: d->result = pln_sub(a, d->result, other); return true;
  case PLN_PRIM_SUB:
    d->result =
        left ? pln_add(a, d->result, other) : pln_sub(a, other, d->result);
    if (!left)
      d->op = reversed(d->op);
    return true;
  case PLN_PRIM_MUL: return undo_product(d, other);
  case PLN_PRIM_FLOORDIV: return left && undo_quotient(d, other);
  default: return false;
  }
}

static bool solve(deduction *d) {
  while (d->expr != d->var)
    if (d->a->status != PLN_OK || !undo(d))
      return false;
  d->result = pln_simplify_term(d->a, d->result, 2);
  return d->result != PLN_NO_TERM;
}

static bool deduce(deduction *d, pln_term condition, uint32_t n,
                   const pln_term *vars, const pln_interval *sets) {
  return orient(d, condition) && relax(d, n, vars, sets) && solve(d);
}

pln_status pln_analyzer_deduce_bound(pln_analyzer *a, pln_term var,
                                     pln_term condition, uint32_t n_hints,
                                     const pln_term_domain *hints,
                                     uint32_t n_relaxed,
                                     const pln_term_domain *relaxed,
                                     pln_term *min, pln_term *max) {
  pln_term *hint_vars, *vars;
  pln_interval *hint_sets, *sets;
  PLN_TRY(pln_check_term(a, var));
  PLN_TRY(pln_check_term(a, condition));
  *min = PLN_TERM_POS_INF;
  *max = PLN_TERM_NEG_INF;
  PLN_TRY(pln_read_domains(a, n_hints, hints, &hint_vars, &hint_sets));
  pln_status status = pln_read_domains(a, n_relaxed, relaxed, &vars, &sets);
  deduction d = {.a = a,
                 .var = var,
                 .n_hints = n_hints,
                 .hint_vars = hint_vars,
                 .hints = hint_sets};
  if (status == PLN_OK && deduce(&d, condition, n_relaxed, vars, sets)) {
    *min = d.op == AT_MOST ? PLN_TERM_NEG_INF : d.result;
    *max = d.op == AT_LEAST ? PLN_TERM_POS_INF : d.result;
  }
  if (status == PLN_OK)
    pln_free_domains(a, n_relaxed, vars, sets);
  pln_free_domains(a, n_hints, hint_vars, hint_sets);
  return status == PLN_OK ? a->status : status;
}

/* ---------------------------------------------------------- linear equations
 */

/* coef * var + base, for each term of an order; coef none: the term does not
 * contain the variable. set_of keeps the pairs. */
static bool linear_step(pln_analyzer *a, pln_term t, pln_term var) {
  pln_term_node n = *pln_at(a, t);
  bool uses = t == var;
  for (uint32_t i = 0; i < n.n; i++)
    uses = uses || a->set_of[pln_term_operand(a, t, i)].min;
  if (!uses) {
    a->set_of[t] = (pln_interval){PLN_NO_TERM, t};
    return true;
  }
  if (t == var) {
    a->set_of[t] =
        (pln_interval){pln_const_like(a, t, 1), pln_const_like(a, t, 0)};
    return true;
  }
  if (n.kind != PLN_PRIM_ADD && n.kind != PLN_PRIM_SUB &&
      n.kind != PLN_PRIM_MUL)
    return false;
  pln_interval x = a->set_of[n.a], y = a->set_of[n.b];
  pln_term zero = pln_const_like(a, t, 0);
  if (n.kind == PLN_PRIM_MUL) {
    if (x.min && y.min)
      return false;
    pln_interval varying = x.min ? x : y;
    pln_term fixed = x.min ? y.max : x.max;
    a->set_of[t] = (pln_interval){pln_mul(a, varying.min, fixed),
                                  pln_mul(a, varying.max, fixed)};
    return true;
  }
  a->set_of[t] = (pln_interval){
      pln_fold(a, (pln_kind)n.kind, x.min ? x.min : zero, y.min ? y.min : zero),
      pln_fold(a, (pln_kind)n.kind, x.max, y.max)};
  return true;
}

/* t = *coef * var + *base. */
static bool split_linear(pln_analyzer *a, pln_term t, pln_term var,
                         pln_term *coef, pln_term *base) {
  pln_term_list order;
  bool ok = true;
  if (!pln_begin_sets(a, a->n - 1) || !pln_term_order(a, t, NULL, &order))
    return false;
  for (uint32_t i = 0; ok && i < order.n; i++)
    ok = linear_step(a, order.items[i], var) && a->status == PLN_OK;
  pln_term_list_free(a, &order);
  if (!ok)
    return false;
  pln_interval pair = a->set_of[t];
  *coef =
      pair.min ? pln_simplify_term(a, pair.min, 2) : pln_const_like(a, var, 0);
  *base = pair.max;
  return *coef && *base;
}

bool pln_detect_linear(pln_analyzer *a, pln_term t, uint32_t n,
                       const pln_term *vars, pln_term *out) {
  for (uint32_t i = 0; i < n; i++)
    if (!split_linear(a, t, vars[i], &out[i], &t))
      return false;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < n; k++)
      if (pln_term_uses(a, out[i], vars[k]))
        return false;
  out[n] = pln_simplify_term(a, t, 2);
  return out[n] != PLN_NO_TERM;
}

pln_status pln_analyzer_linear_equation(pln_analyzer *a, pln_term t, uint32_t n,
                                        const pln_term *vars, pln_term *out,
                                        bool *linear) {
  PLN_TRY(pln_check_term(a, t));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_check_term(a, vars[i]));
  *linear = pln_detect_linear(a, t, n, vars, out);
  return a->status;
}

/* ---------------------------------------------------------- DetectClipBound */

static void clip(pln_analyzer *a, pln_term *slot, pln_kind kind, pln_term t) {
  *slot = *slot ? pln_fold(a, kind, *slot, t) : t;
  *slot = pln_simplify_term(a, *slot, 2);
}

/* The quotient of a limit by the positive factor of the variable, rounded to
 * the inside. */
static pln_term inner_quotient(pln_analyzer *a, pln_term limit, int64_t factor,
                               bool above) {
  if (factor == 1)
    return limit;
  if (above)
    limit = pln_add_const(a, limit, factor - 1);
  return limit ? pln_fold(a, PLN_PRIM_FLOORDIV, limit,
                          pln_const_like(a, limit, factor))
               : PLN_NO_TERM;
}

/* c * var + base op 0. */
static bool clip_one(pln_analyzer *a, pln_kind op, pln_term diff, pln_term var,
                     pln_term *out) {
  pln_term coef, base;
  if (!split_linear(a, diff, var, &coef, &base) || !pln_is_const(a, coef))
    return false;
  int64_t c = pln_const(a, coef), factor = c < 0 ? -c : c;
  if (c == 0 || c == INT64_MIN)
    return false;
  bool less = op == PLN_PRIM_LT || op == PLN_PRIM_LE;
  bool strict = op == PLN_PRIM_LT || op == PLN_PRIM_GT;
  pln_term limit = c > 0 ? pln_sub(a, pln_const_like(a, base, 0), base) : base;
  if (op == PLN_PRIM_EQ) {
    clip(a, &out[0], PLN_PRIM_MAX, inner_quotient(a, limit, factor, true));
    clip(a, &out[1], PLN_PRIM_MIN, inner_quotient(a, limit, factor, false));
    return true;
  }
  bool above = less != (c > 0);
  if (strict)
    limit = pln_add_const(a, limit, above ? 1 : -1);
  limit = inner_quotient(a, limit, factor, above);
  clip(a, &out[above ? 0 : 1], above ? PLN_PRIM_MAX : PLN_PRIM_MIN, limit);
  return true;
}

static bool clip_part(pln_analyzer *a, pln_term t, uint32_t n,
                      const pln_term *vars, pln_term *out) {
  pln_term_node node = *pln_at(a, t);
  uint32_t uses = 0, which = 0;
  if (node.kind < PLN_PRIM_EQ || node.kind > PLN_PRIM_GE ||
      node.kind == PLN_PRIM_NE || !pln_is_index(a, node.a))
    return false;
  pln_term diff = pln_simplify_term(a, pln_sub(a, node.a, node.b), 2);
  for (uint32_t i = 0; i < n; i++)
    if (diff && pln_term_uses(a, diff, vars[i])) {
      uses++;
      which = i;
    }
  return uses == 1 &&
         clip_one(a, (pln_kind)node.kind, diff, vars[which], &out[2 * which]);
}

enum { MOST_PARTS = 64 };

pln_status pln_analyzer_clip_bound(pln_analyzer *a, pln_term condition,
                                   uint32_t n, const pln_term *vars,
                                   pln_term *out, bool *found) {
  pln_term parts[MOST_PARTS];
  uint32_t k = 0;
  PLN_TRY(pln_check_term(a, condition));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_check_term(a, vars[i]));
  memset(out, 0, 2 * n * sizeof *out);
  *found = true;
  parts[k++] = pln_rewrite_term(a, condition);
  while (k > 0 && *found && a->status == PLN_OK) {
    pln_term t = parts[--k];
    const pln_term_node *node = pln_at(a, t);
    if (node->kind == PLN_PRIM_AND && k + 2 <= MOST_PARTS) {
      parts[k++] = node->b;
      parts[k++] = node->a;
    } else {
      *found = clip_part(a, t, n, vars, out);
    }
  }
  return a->status;
}

/* --------------------------------------------------- NarrowPredicateExpression
 */

typedef struct narrowing {
  pln_analyzer *a;
  uint32_t n;
  const pln_term *vars;
  const pln_interval *sets;
} narrowing;

static bool reads_memory(pln_analyzer *a, pln_term t) {
  pln_term_list order;
  bool found = false;
  if (!pln_term_order(a, t, NULL, &order))
    return true;
  for (uint32_t i = 0; i < order.n && !found; i++)
    found = pln_term_kind(a, order.items[i]) == PLN_BUFFER_LOAD;
  pln_term_list_free(a, &order);
  return found;
}

/* x op y for all values: the greatest x with the least y, or the reverse. */
static pln_term narrow_order(const narrowing *w, pln_kind kind, pln_term x,
                             pln_term y) {
  pln_analyzer *a = w->a;
  bool less = kind == PLN_PRIM_LT || kind == PLN_PRIM_LE;
  if (reads_memory(a, x) || reads_memory(a, y))
    return pln_term_bool(a, false);
  pln_interval p = pln_interval_of(a, x, w->n, w->vars, w->sets, false);
  pln_interval q = pln_interval_of(a, y, w->n, w->vars, w->sets, false);
  pln_term u = less ? p.max : p.min, v = less ? q.min : q.max;
  if (pln_is_infinite(u) || pln_is_infinite(v))
    return pln_term_bool(a, false);
  return pln_fold(a, kind, u, v);
}

static pln_kind opposite(pln_kind kind) {
  switch (kind) {
  case PLN_PRIM_LT: return PLN_PRIM_GE;
  case PLN_PRIM_LE: return PLN_PRIM_GT;
  case PLN_PRIM_GT: return PLN_PRIM_LE;
  case PLN_PRIM_GE: return PLN_PRIM_LT;
  case PLN_PRIM_EQ: return PLN_PRIM_NE;
  default: return PLN_PRIM_EQ;
  }
}

static pln_term narrow_comparison(const narrowing *w, pln_kind kind, pln_term x,
                                  pln_term y) {
  pln_analyzer *a = w->a;
  if (kind == PLN_PRIM_EQ)
    return pln_fold(a, PLN_PRIM_AND, narrow_order(w, PLN_PRIM_LE, x, y),
                    narrow_order(w, PLN_PRIM_LE, y, x));
  if (kind == PLN_PRIM_NE)
    return pln_fold(a, PLN_PRIM_OR, narrow_order(w, PLN_PRIM_LT, x, y),
                    narrow_order(w, PLN_PRIM_LT, y, x));
  return narrow_order(w, kind, x, y);
}

static pln_term narrow_condition(const narrowing *w, pln_term t, bool negated) {
  pln_analyzer *a = w->a;
  pln_term_node n = *pln_at(a, t);
  if (n.kind >= PLN_PRIM_EQ && n.kind <= PLN_PRIM_GE && pln_is_integer(a, n.a))
    return narrow_comparison(
        w, negated ? opposite((pln_kind)n.kind) : (pln_kind)n.kind, n.a, n.b);
  bool uses = reads_memory(a, t);
  for (uint32_t i = 0; i < w->n; i++)
    uses = uses || pln_term_uses(a, t, w->vars[i]);
  if (uses)
    return pln_term_bool(a, false);
  return negated ? pln_fold_not(a, t) : t;
}

/* The narrowed forms of a condition and of its negation. */
typedef struct narrow_pair {
  pln_term plain, negated;
} narrow_pair;

static narrow_pair *pair_of(narrow_pair *pairs, const pln_term_list *order,
                            pln_term t) {
  uint32_t low = 0, high = order->n;
  while (low + 1 < high) {
    uint32_t middle = low + (high - low) / 2;
    if (order->items[middle] <= t)
      low = middle;
    else
      high = middle;
  }
  return &pairs[low];
}

static bool is_connective(pln_kind kind) {
  return kind == PLN_PRIM_AND || kind == PLN_PRIM_OR || kind == PLN_PRIM_NOT;
}

static narrow_pair narrow_node(const narrowing *w, pln_term t,
                               narrow_pair *pairs, const pln_term_list *order) {
  pln_analyzer *a = w->a;
  pln_term_node n = *pln_at(a, t);
  if (!is_connective((pln_kind)n.kind))
    return (narrow_pair){narrow_condition(w, t, false),
                         narrow_condition(w, t, true)};
  narrow_pair x = *pair_of(pairs, order, n.a);
  if (n.kind == PLN_PRIM_NOT)
    return (narrow_pair){x.negated, x.plain};
  narrow_pair y = *pair_of(pairs, order, n.b);
  pln_kind dual = n.kind == PLN_PRIM_AND ? PLN_PRIM_OR : PLN_PRIM_AND;
  return (narrow_pair){pln_fold(a, (pln_kind)n.kind, x.plain, y.plain),
                       pln_fold(a, dual, x.negated, y.negated)};
}

static bool is_no_condition(const pln_analyzer *a, pln_term t) {
  return !pln_is_bool(a, t);
}

static int by_number(const void *p, const void *q) {
  pln_term x = *(const pln_term *)p, y = *(const pln_term *)q;
  return x < y ? -1 : x > y;
}

static pln_term narrow(const narrowing *w, pln_term t) {
  pln_analyzer *a = w->a;
  pln_term_list order;
  if (pln_is_const(a, t))
    return t;
  if (!pln_term_order(a, t, is_no_condition, &order))
    return PLN_NO_TERM;
  qsort(order.items, order.n, sizeof *order.items, by_number);
  narrow_pair *pairs = pln_mem_new(a->engine, order.n * sizeof *pairs);
  pln_term out = PLN_NO_TERM;
  if (!pairs)
    pln_arith_fail(a, pln_nomem(a->engine));
  for (uint32_t i = 0; pairs && i < order.n; i++) {
    pairs[i] = narrow_node(w, order.items[i], pairs, &order);
    if (order.items[i] == t)
      out = pairs[i].plain;
  }
  if (pairs)
    pln_mem_free(a->engine, pairs, order.n * sizeof *pairs);
  pln_term_list_free(a, &order);
  return out;
}

pln_status pln_analyzer_narrow_predicate(pln_analyzer *a, pln_term condition,
                                         uint32_t n,
                                         const pln_term_domain *domains,
                                         pln_term *out) {
  pln_term *vars;
  pln_interval *sets;
  PLN_TRY(pln_check_bool_term(a, condition));
  PLN_TRY(pln_read_domains(a, n, domains, &vars, &sets));
  narrowing w = {a, n, vars, sets};
  *out = narrow(&w, condition);
  pln_free_domains(a, n, vars, sets);
  return a->status;
}
