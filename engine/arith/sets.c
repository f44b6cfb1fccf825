/* arith/sets.c: symbolic intervals: between which expressions do the values of
 * an expression lie.
 *
 * Called for regions, and by proofs of strength 1. The sets of the operands of
 * a node give that of the node; correlations are lost. */

#include "arith/arith.h"

static const pln_interval EVERYTHING = {PLN_TERM_NEG_INF, PLN_TERM_POS_INF};
static const pln_interval EMPTY = {PLN_TERM_POS_INF, PLN_TERM_NEG_INF};

static pln_interval point(pln_term t) {
  return (pln_interval){t, t};
}

static bool is_point(pln_interval i) {
  return i.min == i.max && !pln_is_infinite(i.min);
}

static bool has_min(pln_interval i) {
  return !pln_is_infinite(i.min);
}

static bool has_max(pln_interval i) {
  return !pln_is_infinite(i.max);
}

static bool is_finite(pln_interval i) {
  return has_min(i) && has_max(i);
}

/* An operation on ends; an infinite one stays what `or_else` says. */
static pln_term end(pln_analyzer *a, pln_kind kind, pln_term x, pln_term y,
                    pln_term or_else) {
  return pln_is_infinite(x) || pln_is_infinite(y) ? or_else
                                                  : pln_fold(a, kind, x, y);
}

static pln_interval add(pln_analyzer *a, pln_interval x, pln_interval y) {
  return (pln_interval){end(a, PLN_PRIM_ADD, x.min, y.min, PLN_TERM_NEG_INF),
                        end(a, PLN_PRIM_ADD, x.max, y.max, PLN_TERM_POS_INF)};
}

static pln_interval subtract(pln_analyzer *a, pln_interval x, pln_interval y) {
  return (pln_interval){end(a, PLN_PRIM_SUB, x.min, y.max, PLN_TERM_NEG_INF),
                        end(a, PLN_PRIM_SUB, x.max, y.min, PLN_TERM_POS_INF)};
}

/* 1: at least 1, -1: at most -1, 2: at least 0, -2: at most 0, 0: unknown. */
static int sign_of(pln_analyzer *a, pln_term t) {
  if (pln_proves_ge(a, t, 1))
    return 1;
  if (pln_proves_lt(a, t, 0))
    return -1;
  return pln_proves_ge(a, t, 0) ? 2 : pln_proves_lt(a, t, 1) ? -2 : 0;
}

/* Both ends by one number: for a negative one they change places. */
static pln_interval scale(pln_analyzer *a, pln_kind kind, pln_interval x,
                          pln_term by, bool negative) {
  pln_term low = negative ? x.max : x.min, high = negative ? x.min : x.max;
  return (pln_interval){end(a, kind, low, by, PLN_TERM_NEG_INF),
                        end(a, kind, high, by, PLN_TERM_POS_INF)};
}

static pln_interval by_unknown_sign(pln_analyzer *a, pln_kind kind,
                                    pln_interval x, pln_term by) {
  if (!is_finite(x))
    return EVERYTHING;
  pln_term low = pln_fold(a, kind, x.min, by),
           high = pln_fold(a, kind, x.max, by);
  pln_term positive = pln_fold(a, PLN_PRIM_GE, by, pln_const_like(a, by, 0));
  return (pln_interval){pln_fold_select(a, positive, low, high),
                        pln_fold_select(a, positive, high, low)};
}

static pln_interval multiply(pln_analyzer *a, pln_interval x, pln_interval y) {
  if (!is_point(y)) {
    pln_interval z = x;
    x = y;
    y = z;
  }
  if (!is_point(y))
    return EVERYTHING;
  if (pln_is_value(a, y.min, 0))
    return y;
  int sign = sign_of(a, y.min);
  return sign ? scale(a, PLN_PRIM_MUL, x, y.min, sign < 0)
              : by_unknown_sign(a, PLN_PRIM_MUL, x, y.min);
}

static pln_interval divide(pln_analyzer *a, pln_kind kind, pln_interval x,
                           pln_interval y) {
  if (!is_point(y) || pln_is_value(a, y.min, 0))
    return EVERYTHING;
  int sign = sign_of(a, y.min);
  return sign ? scale(a, kind, x, y.min, sign < 0)
              : by_unknown_sign(a, kind, x, y.min);
}

/* All values have one quotient: the ends keep their order. */
static bool same_quotient(pln_analyzer *a, pln_kind div, pln_interval x,
                          pln_term by, pln_interval *out) {
  if (!is_finite(x))
    return false;
  pln_term low = pln_simplify_term(a, pln_fold(a, div, x.min, by), 2);
  pln_term high = pln_simplify_term(a, pln_fold(a, div, x.max, by), 2);
  if (!low || !high || !pln_proves_equal(a, low, high))
    return false;
  pln_term whole = pln_mul(a, low, by);
  *out = (pln_interval){pln_sub(a, x.min, whole), pln_sub(a, x.max, whole)};
  return true;
}

/* t % c, for a constant c: what is divided may be known modulo a number. */
static pln_interval constant_remainder(pln_analyzer *a, pln_term t, int64_t c) {
  int64_t size = c < 0 ? -c : c, gcd = 1, base = 0;
  if (c > 0) {
    pln_modular m = pln_modular_of(a, pln_at(a, t)->a);
    gcd = pln_gcd(m.coeff, c);
    base = gcd > 0 ? pln_floor_mod(m.base, gcd) : 0;
  }
  pln_term low = pln_const_like(a, t, c < 0 ? c + 1 : base);
  pln_term high = pln_const_like(a, t, c < 0 ? 0 : size - gcd + base);
  return low == high ? point(low) : (pln_interval){low, high};
}

static pln_interval remainder_of(pln_analyzer *a, pln_term t, pln_interval x,
                                 pln_interval y) {
  pln_interval out;
  pln_kind kind = pln_term_kind(a, t);
  bool floor = kind == PLN_PRIM_FLOORMOD;
  if (!is_point(y) || pln_is_value(a, y.min, 0))
    return EVERYTHING;
  bool constant = floor && pln_is_const(a, y.min) && y.min == pln_at(a, t)->b;
  if (sign_of(a, y.min) != 1)
    return constant ? constant_remainder(a, t, pln_const(a, y.min))
                    : EVERYTHING;
  if (floor && same_quotient(a, PLN_PRIM_FLOORDIV, x, y.min, &out))
    return out;
  if (constant)
    return constant_remainder(a, t, pln_const(a, y.min));
  pln_term most = pln_add_const(a, y.min, -1);
  pln_term zero = pln_const_like(a, y.min, 0);
  if (floor || (has_min(x) && pln_proves_ge(a, x.min, 0)))
    return (pln_interval){zero, most};
  return (pln_interval){pln_sub(a, zero, most), most};
}

static pln_interval extremum(pln_analyzer *a, pln_kind kind, pln_interval x,
                             pln_interval y) {
  bool least = kind == PLN_PRIM_MIN;
  pln_term low = least ? PLN_TERM_NEG_INF : has_min(x) ? x.min : y.min;
  pln_term high = !least ? PLN_TERM_POS_INF : has_max(x) ? x.max : y.max;
  return (pln_interval){end(a, kind, x.min, y.min, low),
                        end(a, kind, x.max, y.max, high)};
}

static pln_interval join(pln_analyzer *a, pln_interval x, pln_interval y) {
  if (pln_is_empty(x) || pln_is_empty(y))
    return pln_is_empty(x) ? y : x;
  return (pln_interval){end(a, PLN_PRIM_MIN, x.min, y.min, PLN_TERM_NEG_INF),
                        end(a, PLN_PRIM_MAX, x.max, y.max, PLN_TERM_POS_INF)};
}

/* -------------------------------------------------------------------- terms */

typedef struct evaluation {
  pln_analyzer *a;
  uint32_t n;
  const pln_term *vars;
  const pln_interval *sets;
  bool bound;
} evaluation;

static pln_interval known_of(const pln_analyzer *a, pln_term t) {
  return a->set_at[t] == a->set_stamp ? a->set_of[t] : point(t);
}

static pln_interval of_var(const evaluation *e, pln_term t) {
  for (uint32_t i = 0; i < e->n; i++)
    if (e->vars[i] == t)
      return e->sets[i];
  const pln_var_fact *fact = pln_var_fact_of(e->a, t, false);
  if (e->bound && fact && fact->ranged)
    return (pln_interval){fact->min, fact->max};
  return point(t);
}

static pln_interval of_binary(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  pln_interval x = known_of(a, n.a), y = known_of(a, n.b);
  if (is_point(x) && is_point(y))
    return point(pln_fold(a, (pln_kind)n.kind, x.min, y.min));
  if (pln_is_empty(x) || pln_is_empty(y))
    return EMPTY;
  switch (n.kind) {
  case PLN_PRIM_ADD: return add(a, x, y);
  case PLN_PRIM_SUB: return subtract(a, x, y);
  case PLN_PRIM_MUL: return multiply(a, x, y);
  case PLN_PRIM_DIV:
  case PLN_PRIM_FLOORDIV: return divide(a, (pln_kind)n.kind, x, y);
  case PLN_PRIM_MOD:
  case PLN_PRIM_FLOORMOD: return remainder_of(a, t, x, y);
  case PLN_PRIM_MIN:
  case PLN_PRIM_MAX: return extremum(a, (pln_kind)n.kind, x, y);
  default: return EVERYTHING;
  }
}

static pln_interval of_ramp(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  pln_interval base = known_of(a, n.a), stride = known_of(a, n.b);
  if (!is_point(stride) || !pln_is_const(a, stride.min))
    return EVERYTHING;
  pln_term last = pln_mul_const(a, stride.min, n.lanes - 1);
  return join(a, base, add(a, base, point(last)));
}

static bool operands_are_points(const pln_analyzer *a, pln_term t) {
  for (uint32_t i = 0; i < pln_at(a, t)->n; i++) {
    pln_term x = pln_term_operand(a, t, i);
    pln_interval set = known_of(a, x);
    if (!is_point(set) || set.min != x)
      return false;
  }
  return true;
}

static pln_interval compute(const evaluation *e, pln_term t) {
  pln_analyzer *a = e->a;
  const pln_term_node *n = pln_at(a, t);
  if (n->kind == PLN_VAR)
    return of_var(e, t);
  if (operands_are_points(a, t))
    return point(t);
  if (n->kind >= PLN_PRIM_ADD && n->kind <= PLN_PRIM_MAX)
    return of_binary(a, t);
  switch (n->kind) {
  case PLN_SELECT: return join(a, known_of(a, n->b), known_of(a, n->c));
  case PLN_RAMP: return of_ramp(a, t);
  case PLN_BROADCAST: return known_of(a, n->a);
  case PLN_PRIM_CAST: {
    pln_interval x = known_of(a, n->a);
    pln_dtype dtype = (pln_dtype)n->dtype;
    if (is_finite(x) && pln_is_index(a, t))
      return (pln_interval){pln_fold_cast(a, dtype, x.min),
                            pln_fold_cast(a, dtype, x.max)};
    return EVERYTHING;
  }
  default: return EVERYTHING;
  }
}

/* A constraint of the scope bounds the term itself. */
static pln_interval with_constraints(pln_analyzer *a, pln_term t,
                                     pln_interval set) {
  pln_bound b = {-PLN_INF, PLN_INF};
  if (a->facts[t].limit)
    b = a->known[a->facts[t].limit - 1].bound;
  bool least = pln_is_infinite(set.min) ||
               (pln_is_const(a, set.min) && pln_const(a, set.min) < b.min);
  bool most = pln_is_infinite(set.max) ||
              (pln_is_const(a, set.max) && pln_const(a, set.max) > b.max);
  if (b.min > -PLN_INF && least && !pln_is_empty(set))
    set.min = pln_const_like(a, t, b.min);
  if (b.max < PLN_INF && most && !pln_is_empty(set))
    set.max = pln_const_like(a, t, b.max);
  return set;
}

bool pln_begin_sets(pln_analyzer *a, pln_term t) {
  uint32_t old = a->cap_set_at;
  pln_status status =
      pln_mem_grow(a->engine, (void **)&a->set_of, &a->cap_set_of,
                   (size_t)t + 1, sizeof *a->set_of);
  if (status == PLN_OK)
    status = pln_mem_grow(a->engine, (void **)&a->set_at, &a->cap_set_at,
                          (size_t)t + 1, sizeof *a->set_at);
  pln_arith_fail(a, status);
  if (status == PLN_OK)
    memset(a->set_at + old, 0, (a->cap_set_at - old) * sizeof *a->set_at);
  a->set_stamp++;
  return status == PLN_OK;
}

pln_interval pln_interval_of(pln_analyzer *a, pln_term t, uint32_t n,
                             const pln_term *vars, const pln_interval *sets,
                             bool bound) {
  evaluation e = {a, n, vars, sets, bound};
  pln_term_list order;
  if (!t || !pln_begin_sets(a, t) || !pln_term_order(a, t, NULL, &order))
    return EVERYTHING;
  for (uint32_t i = 0; i < order.n && a->status == PLN_OK; i++) {
    pln_term item = order.items[i];
    pln_interval set = compute(&e, item);
    if (!set.min || !set.max)
      set = EVERYTHING;
    if (a->facts[item].limit && !is_point(set))
      set = with_constraints(a, item, set);
    a->set_of[item] = set;
    a->set_at[item] = a->set_stamp;
  }
  pln_term_list_free(a, &order);
  return known_of(a, t);
}

static pln_term simple_end(pln_analyzer *a, pln_term t) {
  return pln_is_infinite(t) ? t : pln_simplify_term(a, t, 2);
}

static bool is_end(const pln_analyzer *a, pln_term t) {
  return pln_is_infinite(t) || (t && t < a->n);
}

pln_status pln_read_domains(pln_analyzer *a, uint32_t n,
                            const pln_term_domain *domains, pln_term **vars,
                            pln_interval **sets) {
  *vars = NULL;
  *sets = NULL;
  if (n == 0)
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++)
    if (!is_end(a, domains[i].min) || !is_end(a, domains[i].max) ||
        pln_is_infinite(domains[i].var) || !is_end(a, domains[i].var))
      return pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                            "arith: no such term");
  *vars = pln_mem_new(a->engine, n * sizeof **vars);
  *sets = pln_mem_new(a->engine, n * sizeof **sets);
  if (!*vars || !*sets) {
    pln_free_domains(a, n, *vars, *sets);
    return pln_nomem(a->engine);
  }
  for (uint32_t i = 0; i < n; i++) {
    (*vars)[i] = domains[i].var;
    (*sets)[i] = (pln_interval){domains[i].min, domains[i].max};
  }
  return PLN_OK;
}

void pln_free_domains(pln_analyzer *a, uint32_t n, pln_term *vars,
                      pln_interval *sets) {
  if (vars)
    pln_mem_free(a->engine, vars, n * sizeof *vars);
  if (sets)
    pln_mem_free(a->engine, sets, n * sizeof *sets);
}

pln_status pln_analyzer_int_set(pln_analyzer *a, pln_term t, uint32_t n,
                                const pln_term_domain *domains, bool bound,
                                pln_term *min, pln_term *max) {
  pln_term *vars;
  pln_interval *sets;
  PLN_TRY(pln_check_term(a, t));
  PLN_TRY(pln_read_domains(a, n, domains, &vars, &sets));
  pln_interval set = pln_interval_of(a, t, n, vars, sets, bound);
  pln_free_domains(a, n, vars, sets);
  *min = simple_end(a, set.min);
  *max = simple_end(a, set.max);
  return a->status;
}
