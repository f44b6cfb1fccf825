/* arith/transitive.c: comparisons by known inequalities x <= y + c and
 * x ~= y + c: by one of them, or by several (extension `transitive`).
 *
 * Called by pln_compare_terms. The facts are the edges of a graph; the shortest
 * paths between two terms bound their difference (Bellman and Ford). */

#include "arith/arith.h"

enum { MOST_FACTS = 64 };

typedef struct reached {
  pln_term term[2 * MOST_FACTS + 1];
  int64_t c[2 * MOST_FACTS + 1]; /* start <= term + c */
  uint32_t n;
} reached;

static bool improve(reached *r, pln_term t, int64_t c) {
  for (uint32_t i = 0; i < r->n; i++)
    if (r->term[i] == t) {
      if (r->c[i] <= c)
        return false;
      r->c[i] = c;
      return true;
    }
  if (r->n == PLN_COUNT(r->term))
    return false;
  r->term[r->n] = t;
  r->c[r->n++] = c;
  return true;
}

/* As pln_split_offset; a constant is 0 + c. */
static pln_offset split_constant(const pln_analyzer *a, pln_term t) {
  return pln_is_const(a, t) ? (pln_offset){PLN_NO_TERM, pln_const(a, t)}
                            : pln_split_offset(a, t);
}

/* One fact, with the constants of its sides moved to c. */
static bool relax(const pln_analyzer *a, reached *r, uint32_t fact) {
  const pln_relation_fact *f = &a->relations[fact];
  pln_offset x = split_constant(a, f->x), y = split_constant(a, f->y);
  int64_t c;
  if (f->unequal || !pln_add_fits(f->c, y.c, &c) || !pln_sub_fits(c, x.c, &c))
    return false;
  for (uint32_t i = 0; i < r->n; i++)
    if (r->term[i] == x.base && pln_add_fits(c, r->c[i], &c))
      return improve(r, y.base, c);
  return false;
}

/* A constant is not greater than a term of the facts, minus its least value. */
static void begin_at_constant(pln_analyzer *a, reached *r, int64_t constant,
                              uint32_t first) {
  for (uint32_t i = first; i < a->n_relations; i++) {
    pln_offset x = split_constant(a, a->relations[i].x);
    int64_t c;
    if (!x.base)
      continue;
    pln_bound bound = pln_bound_of(a, x.base);
    if (bound.min != -PLN_INF && pln_sub_fits(constant, bound.min, &c))
      improve(r, x.base, c);
  }
}

/* What is not greater than a term is not greater than its greatest value. */
static void end_at_constant(pln_analyzer *a, reached *r) {
  uint32_t n = r->n;
  for (uint32_t i = 0; i < n; i++) {
    int64_t c;
    if (!r->term[i])
      continue;
    pln_bound bound = pln_bound_of(a, r->term[i]);
    if (bound.max != PLN_INF && pln_add_fits(bound.max, r->c[i], &c))
      improve(r, PLN_NO_TERM, c);
  }
}

/* The least c that the facts give with x <= y + c. */
static bool least_offset(pln_analyzer *a, pln_term x, pln_term y,
                         int64_t *out) {
  reached r = {.n = 0};
  pln_offset p = split_constant(a, x), q = split_constant(a, y);
  uint32_t first =
      a->n_relations > MOST_FACTS ? a->n_relations - MOST_FACTS : 0;
  bool changed = true;
  improve(&r, p.base, p.c);
  if (!p.base)
    begin_at_constant(a, &r, p.c, first);
  for (uint32_t round = 0; changed && round < MOST_FACTS; round++) {
    changed = false;
    for (uint32_t i = first; i < a->n_relations; i++)
      changed = relax(a, &r, i) || changed;
  }
  if (!q.base)
    end_at_constant(a, &r);
  for (uint32_t i = 0; i < r.n; i++)
    if (r.term[i] == q.base)
      return pln_sub_fits(r.c[i], q.c, out);
  return false;
}

static int by_several(pln_analyzer *a, pln_term x, pln_term y) {
  int possible = PLN_REL_UNKNOWN;
  int64_t c;
  if (least_offset(a, x, y, &c))
    possible &= c < 0 ? PLN_REL_LT : c == 0 ? PLN_REL_LE : PLN_REL_UNKNOWN;
  if (least_offset(a, y, x, &c))
    possible &= c < 0 ? PLN_REL_GT : c == 0 ? PLN_REL_GE : PLN_REL_UNKNOWN;
  return possible ? possible : PLN_REL_UNKNOWN;
}

/* The c of x <= y + c, or x ~= y + c, that the fact gives without the offsets
 * of its sides; false: it is of other terms. */
static bool offset_of_fact(const pln_analyzer *a, const pln_relation_fact *f,
                           pln_offset x, pln_offset y, int64_t *c) {
  pln_offset p = split_constant(a, f->x), q = split_constant(a, f->y);
  return p.base == x.base && q.base == y.base && pln_add_fits(f->c, q.c, c) &&
         pln_sub_fits(*c, p.c, c) && pln_add_fits(*c, x.c, c) &&
         pln_sub_fits(*c, y.c, c);
}

static int by_one(const pln_analyzer *a, pln_term x, pln_term y) {
  pln_offset p = split_constant(a, x), q = split_constant(a, y);
  uint32_t first =
      a->n_relations > MOST_FACTS ? a->n_relations - MOST_FACTS : 0;
  int possible = PLN_REL_UNKNOWN;
  for (uint32_t i = first; i < a->n_relations; i++) {
    const pln_relation_fact *f = &a->relations[i];
    int64_t c;
    if (offset_of_fact(a, f, p, q, &c))
      possible &= f->unequal ? (c == 0 ? PLN_REL_NE : PLN_REL_UNKNOWN)
                  : c < 0    ? PLN_REL_LT
                  : c == 0   ? PLN_REL_LE
                             : PLN_REL_UNKNOWN;
    if (offset_of_fact(a, f, q, p, &c))
      possible &= f->unequal ? (c == 0 ? PLN_REL_NE : PLN_REL_UNKNOWN)
                  : c < 0    ? PLN_REL_GT
                  : c == 0   ? PLN_REL_GE
                             : PLN_REL_UNKNOWN;
  }
  return possible ? possible : PLN_REL_UNKNOWN;
}

int pln_transitive_compare(pln_analyzer *a, pln_term x, pln_term y) {
  if (a->n_relations == 0)
    return PLN_REL_UNKNOWN;
  int one = by_one(a, x, y);
  if (!(a->extensions & PLN_ARITH_TRANSITIVE))
    return one;
  int several = by_several(a, x, y);
  return one & several ? one & several : several;
}
