/* arith/iter/divide_split.c: quotients and remainders of a split.
 *
 * Called by the rewriting of iterator maps. A split whose extent is no multiple
 * of the divisor is padded: its mark gets values on both sides until all the
 * splits of it have extents that are. In a first pass the divisors are
 * collected, in a second one the padded mark takes the place of the other. */

#include "arith/iter/iter.h"

static bool is_zero(const pln_iter_map *m, pln_term t) {
  return pln_is_value(m->a, t, 0);
}

static bool is_one(const pln_iter_map *m, pln_term t) {
  return pln_is_value(m->a, t, 1);
}

static pln_term quotient(pln_iter_map *m, pln_term x, pln_term y) {
  return pln_fold(m->a, PLN_PRIM_FLOORDIV, x, y);
}

static pln_term modulo(pln_iter_map *m, pln_term x, pln_term y) {
  return pln_fold(m->a, PLN_PRIM_FLOORMOD, x, y);
}

static pln_term simplify(pln_iter_map *m, pln_term t) {
  return pln_simplify_term(m->a, t, 2);
}

/* The least that is to be added to `edge` for a multiple of `divisor`. */
static pln_term fill(pln_iter_map *m, pln_term edge, pln_term divisor) {
  pln_term zero = pln_const_like(m->a, edge, 0);
  if (pln_iter_divisible(m, edge, divisor))
    return zero;
  return modulo(m, pln_sub(m->a, zero, edge), divisor);
}

/* ------------------------------------------------------------------ padding
 */

typedef struct product {
  pln_term rest; /* PLN_NO_TERM: 1 */
  int64_t constant;
} product;

static product split_product(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  if (pln_is_const(a, t))
    return (product){PLN_NO_TERM, pln_const(a, t)};
  if (n->kind == PLN_PRIM_MUL && pln_is_const(a, n->b))
    return (product){n->a, pln_const(a, n->b)};
  if (n->kind == PLN_PRIM_MUL && pln_is_const(a, n->a))
    return (product){n->b, pln_const(a, n->a)};
  return (product){t, 1};
}

/* A common multiple of the factors that are no constants. */
static pln_term rest_multiple(pln_iter_map *m, pln_term x, pln_term y) {
  if (!x || !y)
    return x ? x : y;
  if (pln_iter_divisible(m, x, y))
    return x;
  if (pln_iter_divisible(m, y, x))
    return y;
  return pln_mul(m->a, x, y);
}

/* A common multiple, the least one of constants. */
static pln_term common_multiple(pln_iter_map *m, pln_term x, pln_term y) {
  pln_analyzer *a = m->a;
  if (!x || !y)
    return PLN_NO_TERM;
  product p = split_product(a, x), q = split_product(a, y);
  int64_t gcd = pln_gcd(p.constant, q.constant), lcm = 0;
  if (gcd == 0 || !pln_mul_fits(p.constant / gcd, q.constant, &lcm) ||
      lcm == INT64_MIN || !pln_holds_int((pln_dtype)pln_at(a, x)->dtype, lcm))
    return pln_mul(a, x, y);
  pln_term rest = rest_multiple(m, p.rest, q.rest);
  if (!rest)
    return pln_const_like(a, x, lcm < 0 ? -lcm : lcm);
  return pln_mul_const(a, rest, lcm < 0 ? -lcm : lcm);
}

/* The first pass: what the padding of the mark has to allow for. */
static void collect(pln_iter_map *m, pln_iter_split *s, pln_term divisor,
                    pln_term need, pln_term more) {
  pln_analyzer *a = m->a;
  pln_iter_padding *p = &m->paddings[s->mark];
  pln_term factor = pln_mul(a, divisor, s->lower_factor);
  if (!p->factor) {
    p->factor = pln_const_like(a, divisor, 1);
    p->left = pln_const_like(a, divisor, 0);
  }
  p->factor = common_multiple(m, p->factor, factor);
  if (is_zero(m, more))
    return;
  m->padded = true;
  p->left = simplify(m, pln_fold(a, PLN_PRIM_MAX, p->left, need));
  s->extent = simplify(m, pln_add(a, s->extent, more));
}

/* True where the value of a padded mark is padding: below `left`, in the first
 * block of `factor`, or from `edge` on, in the last. */
static pln_term padding_condition(pln_iter_map *m, pln_term value,
                                  pln_term factor, pln_term left, pln_term edge,
                                  pln_term right) {
  pln_analyzer *a = m->a;
  pln_term zero = pln_const_like(a, factor, 0);
  pln_term block = quotient(m, value, factor), rest = modulo(m, value, factor);
  pln_term first =
      pln_fold(a, PLN_PRIM_AND, pln_fold(a, PLN_PRIM_EQ, block, zero),
               pln_fold(a, PLN_PRIM_LT, rest, left));
  pln_term last =
      pln_fold(a, PLN_PRIM_AND,
               pln_fold(a, PLN_PRIM_EQ, block, quotient(m, edge, factor)),
               pln_fold(a, PLN_PRIM_GE, rest, modulo(m, edge, factor)));
  first =
      pln_fold(a, PLN_PRIM_AND, pln_fold(a, PLN_PRIM_NE, left, zero), first);
  last = pln_fold(a, PLN_PRIM_AND, pln_fold(a, PLN_PRIM_NE, right, zero), last);
  return pln_fold(a, PLN_PRIM_OR, first, last);
}

/* Makes the padded mark of s.mark. */
static bool make_padded(pln_iter_map *m, const pln_iter_split *s) {
  pln_analyzer *a = m->a;
  pln_iter_padding p = m->paddings[s->mark];
  pln_term edge = pln_add(a, m->marks[s->mark].extent, p.left);
  pln_term right = fill(m, edge, p.factor);
  pln_term extent = simplify(m, pln_add(a, edge, right));
  pln_iter_split whole =
      pln_iter_whole(m, s->mark, pln_const_like(a, p.left, 1));
  uint32_t sum = pln_iter_sum_of(m, 1, &whole, p.left);
  uint32_t padded = pln_iter_mark_of(m, PLN_NO_TERM, sum, extent);
  if (padded == PLN_NO_ITER)
    return false;
  m->paddings[s->mark].padded = padded;
  m->paddings[s->mark].right = simplify(m, right);
  m->paddings[padded].origin = s->mark;
  pln_term value = pln_iter_mark_term(m, padded);
  m->padding =
      pln_fold(a, PLN_PRIM_OR, m->padding,
               padding_condition(m, value, p.factor, p.left, edge, right));
  return a->status == PLN_OK;
}

static bool report_factor(pln_iter_map *m, pln_term factor, pln_term by) {
  pln_iter_report(m, (pln_iter_error){"The padding factor ", factor,
                                      " is not divisible by ", by, NULL});
  return false;
}

static bool report_left(pln_iter_map *m, const pln_iter_split *s,
                        pln_term left) {
  pln_iter_report(m, (pln_iter_error){"Detect incompatible left padding on ",
                                      pln_iter_split_term(m, s),
                                      ", the iter mark is left padded with ",
                                      left, NULL});
  return false;
}

/* The second pass, of a mark that is not padded: nothing may move its values.
 */
static bool leave_mark(pln_iter_map *m, const pln_iter_split *s,
                       pln_term left) {
  if (m->paddings[s->mark].origin != PLN_NO_ITER)
    m->rotated = m->rotated || !is_zero(m, left);
  else if (!is_zero(m, left) && m->level == PLN_ITER_BIJECTIVE)
    pln_iter_report(
        m, (pln_iter_error){.before = "Bijectvie mapping should not take iter "
                                      "paddings"});
  else if (!is_zero(m, left))
    return report_left(m, s, pln_const_like(m->a, left, 0));
  return m->n_errors == 0;
}

/* The second pass: s + base = padded split - *left + base. A padding that is
 * another one than the divisor asks for takes each value as often, but not at
 * the same place. */
static bool apply(pln_iter_map *m, pln_iter_split *s, pln_term base,
                  pln_term divisor, pln_term *left) {
  pln_iter_padding p = m->paddings[s->mark];
  if (!p.factor || (is_zero(m, p.left) &&
                    pln_iter_divisible(m, m->marks[s->mark].extent, p.factor)))
    return leave_mark(m, s, *left);
  if (!pln_iter_divisible(m, p.factor, s->lower_factor))
    return report_factor(m, p.factor, s->lower_factor);
  if (!pln_iter_divisible(m, p.factor, divisor))
    return report_factor(m, p.factor, divisor);
  if (!pln_iter_divisible(m, p.left, s->lower_factor))
    return report_left(m, s, p.left);
  *left = quotient(m, p.left, s->lower_factor);
  pln_term moved = simplify(m, pln_sub(m->a, base, *left));
  if (!pln_iter_divisible(m, moved, divisor))
    m->rotated = true;
  if (p.padded == PLN_NO_ITER && !make_padded(m, s))
    return false;
  s->mark = m->paddings[s->mark].padded;
  s->extent = quotient(m, m->marks[s->mark].extent, s->lower_factor);
  return true;
}

/* Pads the split so that (left + split) has whole blocks of `divisor`. *base:
 * what is left of it. */
static bool pad(pln_iter_map *m, pln_iter_split *s, pln_iter_value *v,
                pln_term *base, pln_term divisor) {
  pln_analyzer *a = m->a;
  pln_term left = simplify(m, modulo(m, *base, divisor));
  if (m->collecting) {
    pln_term edge = pln_add(a, left, s->extent);
    pln_term right = simplify(m, fill(m, edge, divisor));
    pln_term need = pln_mul(a, left, s->lower_factor);
    v->absorbed = v->absorbed ? pln_add(a, v->absorbed, need) : need;
    collect(m, s, divisor, v->absorbed, pln_add(a, left, right));
  } else if (!apply(m, s, *base, divisor, &left)) {
    return false;
  }
  *base = pln_sub(a, *base, left);
  return a->status == PLN_OK;
}

/* ----------------------------------------------------------------- division
 */

/* (s * scale + base) op divisor becomes an op of s, if scale divides both. */
static bool unscale(pln_iter_map *m, pln_iter_split *s, pln_term *base,
                    pln_term *divisor) {
  pln_term scale = s->scale;
  if (!pln_iter_divisible(m, *divisor, scale) ||
      !(is_zero(m, *base) || pln_iter_divisible(m, *base, scale)))
    return false;
  if (!is_zero(m, *base))
    *base = quotient(m, *base, scale);
  *divisor = quotient(m, *divisor, scale);
  return true;
}

static bool set(pln_iter_map *m, pln_iter_value *v, pln_iter_split s,
                pln_term base) {
  *v = (pln_iter_value){m->values.n, 1, base, v->absorbed, true};
  return pln_iter_push(m, &m->values, s);
}

static pln_term ceil_quotient(pln_iter_map *m, pln_term x, pln_term y) {
  pln_analyzer *a = m->a;
  pln_term more = pln_add_const(a, y, -1);
  return simplify(m, quotient(m, pln_add(a, x, more), y));
}

/* The split as a mark of its own. */
static pln_iter_split wrapped(pln_iter_map *m, pln_iter_split s) {
  pln_term zero = pln_const_like(m->a, s.extent, 0);
  uint32_t sum = pln_iter_sum_of(m, 1, &s, zero);
  uint32_t mark = pln_iter_mark_of(m, PLN_NO_TERM, sum, s.extent);
  return pln_iter_whole(m, mark, pln_const_like(m->a, s.extent, 1));
}

/* A split of extent e divided by `divisor`. */
static pln_iter_split divided(pln_iter_map *m, pln_iter_split s,
                              pln_term divisor) {
  pln_analyzer *a = m->a;
  if (pln_iter_divisible(m, s.extent, divisor)) {
    s.lower_factor = pln_mul(a, s.lower_factor, divisor);
    s.extent = simplify(m, quotient(m, s.extent, divisor));
    return s;
  }
  if (!is_one(m, s.lower_factor) ||
      !pln_iter_equal(m, s.extent, m->marks[s.mark].extent))
    s = wrapped(m, s);
  s.extent = ceil_quotient(m, s.extent, divisor);
  s.lower_factor = divisor;
  return s;
}

/* A split modulo `divisor`: of blocks of it, or of all that is above the lower
 * factor, the extent alone changes. */
static pln_iter_split reduced(pln_iter_map *m, pln_iter_split s,
                              pln_term divisor) {
  pln_analyzer *a = m->a;
  pln_term span = pln_mul(a, s.lower_factor, s.extent);
  if (!pln_iter_divisible(m, s.extent, divisor) &&
      !pln_iter_equal(m, span, m->marks[s.mark].extent)) {
    if (pln_prove(a, pln_fold(a, PLN_PRIM_LE, s.extent, divisor), 0))
      return s;
    s = wrapped(m, s);
  }
  s.extent = divisor;
  return s;
}

/* The parts of a split go up with it, so that no divisor is negative. */
static bool divides_upwards(pln_iter_map *m, pln_term divisor) {
  if (!pln_proves_lt(m->a, divisor, 0))
    return true;
  pln_iter_report(m, (pln_iter_error){"Cannot represent as IterMap: iterators "
                                      "are not divided by ",
                                      divisor, NULL, 0, NULL});
  return false;
}

bool pln_iter_floordiv(pln_iter_map *m, pln_iter_value *v, pln_term divisor) {
  pln_analyzer *a = m->a;
  pln_iter_split s = m->values.items[v->first];
  pln_term base = v->base, scale = s.scale;
  if (is_one(m, divisor))
    return true;
  if (!is_one(m, scale)) {
    if (pln_iter_divisible(m, scale, divisor) &&
        (is_zero(m, base) || pln_iter_divisible(m, base, divisor))) {
      s.scale = quotient(m, scale, divisor);
      return set(m, v, s, quotient(m, base, divisor));
    }
    if (!unscale(m, &s, &base, &divisor)) {
      pln_iter_report(
          m, (pln_iter_error){
                 "Cannot represent as IterMap: the numerator's scaling "
                 "factor, ",
                 scale, " and the divisor ", divisor,
                 " cannot be simplified to remove the scaling factor."});
      return false;
    }
    s.scale = pln_const_like(a, divisor, 1);
  }
  if (!divides_upwards(m, divisor))
    return false;
  if (!pad(m, &s, v, &base, divisor))
    return false;
  s = divided(m, s, divisor);
  base = quotient(m, base, divisor);
  return s.mark != PLN_NO_ITER && set(m, v, s, pln_simplify_term(a, base, 6));
}

bool pln_iter_floormod(pln_iter_map *m, pln_iter_value *v, pln_term divisor) {
  pln_analyzer *a = m->a;
  pln_iter_split s = m->values.items[v->first];
  pln_term base = v->base, scale = s.scale;
  pln_term zero = pln_const_like(a, divisor, 0);
  bool whole = is_one(m, divisor);
  if (!whole && !is_one(m, scale))
    whole = pln_iter_divisible(m, scale, divisor) &&
            pln_iter_divisible(m, base, divisor);
  if (whole) {
    *v = (pln_iter_value){.base = zero};
    return true;
  }
  if (!is_one(m, scale) && !unscale(m, &s, &base, &divisor)) {
    pln_iter_report(
        m, (pln_iter_error){
               "Cannot represent as IterMap: the left-hand side of FloorMod "
               "has a scaling factor, ",
               scale, " and the right-hand ", divisor,
               " cannot be used to simplify out the scaling factor."});
    return false;
  }
  if (!divides_upwards(m, divisor))
    return false;
  if (!pad(m, &s, v, &base, divisor))
    return false;
  s.scale = pln_const_like(a, divisor, 1);
  s = reduced(m, s, divisor);
  s.scale = scale;
  return s.mark != PLN_NO_ITER && set(m, v, s, zero);
}
