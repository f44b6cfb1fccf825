/* arith/modular_set.c: the integers coeff * k + base among which the values of
 * an expression are.
 *
 * Called by the simplifiers and for users. What overflows gives the set of all
 * integers, {1, 0}. */

#include "arith/arith.h"

static const pln_modular EVERYTHING = {1, 0};

pln_modular pln_modular_make(int64_t coeff, int64_t base) {
  if (coeff == INT64_MIN || base == INT64_MIN)
    return EVERYTHING;
  coeff = coeff < 0 ? -coeff : coeff;
  if (coeff == 0)
    return (pln_modular){0, base};
  return (pln_modular){coeff, pln_floor_mod(base, coeff)};
}

static pln_modular join(pln_modular x, pln_modular y) {
  int64_t apart;
  if (!pln_sub_fits(x.base, y.base, &apart))
    return EVERYTHING;
  int64_t coeff = pln_gcd(pln_gcd(x.coeff, y.coeff), apart);
  return pln_modular_make(coeff, x.base);
}

static pln_modular sum(pln_modular x, pln_modular y, int64_t sign) {
  int64_t base;
  bool fits = sign > 0 ? pln_add_fits(x.base, y.base, &base)
                       : pln_sub_fits(x.base, y.base, &base);
  return fits ? pln_modular_make(pln_gcd(x.coeff, y.coeff), base) : EVERYTHING;
}

static pln_modular product(pln_modular x, pln_modular y) {
  int64_t p, q, r, base;
  if (!pln_mul_fits(x.coeff, y.coeff, &p) ||
      !pln_mul_fits(x.coeff, y.base, &q) ||
      !pln_mul_fits(x.base, y.coeff, &r) ||
      !pln_mul_fits(x.base, y.base, &base))
    return EVERYTHING;
  return pln_modular_make(pln_gcd(p, pln_gcd(q, r)), base);
}

/* coeff * k + base over a divisor of coeff: exact if base is 0 or the quotient
 * is rounded down. */
static pln_modular quotient(pln_modular x, int64_t c, bool down) {
  if (c == 0 || c == INT64_MIN || c == -1)
    return c == -1 ? sum((pln_modular){0, 0}, x, -1) : EVERYTHING;
  if (x.coeff % c != 0)
    return EVERYTHING;
  if (x.base != 0 && !down)
    return EVERYTHING;
  return pln_modular_make(x.coeff / c, pln_floor_div(x.base, c));
}

static pln_modular remainder_of(pln_modular x, int64_t c, bool down) {
  int64_t coeff = pln_gcd(x.coeff, c);
  if (c == 0 || c == INT64_MIN)
    return EVERYTHING;
  if (coeff == 0)
    return EVERYTHING;
  int64_t base = pln_floor_mod(x.base, coeff);
  if (base != 0 && !down)
    return EVERYTHING;
  if (x.coeff != 0 && x.coeff % c == 0 && down && c > 0)
    return (pln_modular){0, pln_floor_mod(x.base, c)};
  return pln_modular_make(coeff, base);
}

/* x and y hold: the Chinese remainder theorem. If they contradict, x. */
pln_modular pln_modular_meet(pln_modular x, pln_modular y) {
  if (x.coeff == 0)
    return x;
  if (y.coeff == 0)
    return y;
  int64_t gcd = pln_gcd(x.coeff, y.coeff), apart, coeff;
  if (!pln_sub_fits(y.base, x.base, &apart) || apart % gcd != 0 ||
      !pln_mul_fits(x.coeff / gcd, y.coeff, &coeff))
    return x.coeff >= y.coeff ? x : y;
  /* Solve x.coeff * k = apart (mod y.coeff) by extended Euclid. */
  int64_t m = y.coeff / gcd, r0 = x.coeff / gcd % m, r1 = m, s0 = 1, s1 = 0;
  while (r1 != 0) {
    int64_t q = r0 / r1, r = r0 - q * r1, s = s0 - q * s1;
    r0 = r1;
    r1 = r;
    s0 = s1;
    s1 = s;
  }
  __extension__ typedef __int128 wide;
  wide k = (wide)pln_floor_mod(s0, m) * pln_floor_mod(apart / gcd, m) % m;
  wide base = (wide)x.base + (wide)x.coeff * k;
  return pln_modular_make(coeff, (int64_t)(base % coeff));
}

/* ------------------------------------------------------------------- terms */

static pln_modular known_of(const pln_analyzer *a, pln_term t) {
  return a->facts[t].modular;
}

static pln_modular of_division(pln_analyzer *a, pln_term t) {
  const pln_term_node n = *pln_at(a, t);
  pln_modular divisor = known_of(a, n.b);
  bool floor = n.kind == PLN_PRIM_FLOORDIV || n.kind == PLN_PRIM_FLOORMOD;
  if (divisor.coeff != 0)
    return EVERYTHING;
  pln_modular x = known_of(a, n.a);
  bool down = floor || pln_bound_of(a, n.a).min >= 0;
  if (n.kind == PLN_PRIM_DIV || n.kind == PLN_PRIM_FLOORDIV)
    return quotient(x, divisor.base, down && (floor || divisor.base > 0));
  return remainder_of(x, divisor.base, down);
}

static pln_modular of_call(pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  if ((uint32_t)n->u.data == 0 || n->n != 2)
    return EVERYTHING;
  const char *name = pln_builtin_name((uint32_t)n->u.data);
  pln_modular x = known_of(a, n->a), y = known_of(a, n->b);
  if (y.coeff != 0 || y.base < 0)
    return EVERYTHING;
  if (y.base < 62 && strcmp(name, "shift_right") == 0)
    return quotient(x, (int64_t)1 << y.base, true);
  if (y.base < 62 && strcmp(name, "shift_left") == 0)
    return product(x, (pln_modular){0, (int64_t)1 << y.base});
  if (strcmp(name, "bitwise_and") == 0 && y.base < PLN_INF &&
      (y.base & (y.base + 1)) == 0)
    return remainder_of(x, y.base + 1, true);
  return EVERYTHING;
}

static pln_modular of_var(pln_analyzer *a, pln_term t) {
  const pln_var_fact *fact = pln_var_fact_of(a, t, false);
  return fact && fact->modular ? fact->set : EVERYTHING;
}

/* The body with the value in the place of the variable. */
static pln_modular of_let(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  if (a->depth >= 6)
    return known_of(a, n.c);
  a->depth++;
  pln_modular out =
      pln_modular_of(a, pln_term_substitute(a, n.c, 1, &n.a, &n.b));
  a->depth--;
  return out;
}

static pln_modular compute(pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  pln_modular x = n->n > 0 && n->n <= 3 ? known_of(a, n->a) : EVERYTHING;
  pln_modular y = n->n > 1 && n->n <= 3 ? known_of(a, n->b) : EVERYTHING;
  switch (n->kind) {
  case PLN_INT_IMM: return pln_modular_make(0, n->u.value);
  case PLN_VAR: return of_var(a, t);
  case PLN_PRIM_CAST: return x;
  case PLN_PRIM_LET: return of_let(a, t);
  case PLN_SELECT: return join(y, known_of(a, n->c));
  case PLN_PRIM_ADD: return sum(x, y, 1);
  case PLN_PRIM_SUB: return sum(x, y, -1);
  case PLN_PRIM_MUL: return product(x, y);
  case PLN_PRIM_MIN:
  case PLN_PRIM_MAX: return join(x, y);
  case PLN_PRIM_DIV:
  case PLN_PRIM_MOD:
  case PLN_PRIM_FLOORDIV:
  case PLN_PRIM_FLOORMOD: return of_division(a, t);
  case PLN_PRIM_CALL: return of_call(a, t);
  default: return EVERYTHING;
  }
}

static pln_modular with_constraints(const pln_analyzer *a, pln_term t,
                                    pln_modular set) {
  for (uint32_t i = 0; i < a->n_divisible; i++)
    if (a->divisible[i].term == t)
      set = pln_modular_meet(set, a->divisible[i].set);
  return set;
}

static bool has_modular(const pln_analyzer *a, pln_term t) {
  return a->facts[t].modular_at == a->epoch;
}

static void set_modular(pln_analyzer *a, pln_term t) {
  pln_modular set = with_constraints(a, t, compute(a, t));
  a->facts[t].modular = set;
  a->facts[t].modular_at = a->epoch;
}

pln_modular pln_modular_of(pln_analyzer *a, pln_term t) {
  pln_term_list order;
  if (!t)
    return EVERYTHING;
  if (has_modular(a, t))
    return a->facts[t].modular;
  if (!pln_term_order(a, t, has_modular, &order))
    return EVERYTHING;
  for (uint32_t i = 0; i < order.n; i++)
    if (!has_modular(a, order.items[i]))
      set_modular(a, order.items[i]);
  pln_term_list_free(a, &order);
  return a->facts[t].modular;
}
