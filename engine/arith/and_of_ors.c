/* arith/and_of_ors.c: conditions in conjunctive normal form, with clauses
 * simplified against each other (TVM's SimplifyAsAndOfOrs).
 *
 * Called by the public functions that simplify, for analyzers with the
 * extension PLN_ARITH_AND_OF_ORS. The form may be exponentially larger than the
 * condition: beyond a limit the condition stays as it is.
 *
 *     k == 20 and ((i == 0 or j == 10) and k != 30)
 *         =>   (i == 0 or j == 10) and k == 20 */

#include "arith/arith.h"

enum { MOST_CLAUSES = 64, MOST_ITEMS = 16 };

/* A disjunction. */
typedef struct clause {
  pln_term items[MOST_ITEMS];
  uint32_t n;
} clause;

typedef struct normal_form {
  pln_analyzer *a;
  clause open[MOST_CLAUSES]; /* a stack: the next one is the last */
  clause done[MOST_CLAUSES];
  uint32_t n_open, n_done;
  bool too_large;
} normal_form;

/* --------------------------------------------------------------- distribution
 */

static bool has_item(const clause *c, pln_term t) {
  for (uint32_t i = 0; i < c->n; i++)
    if (c->items[i] == t)
      return true;
  return false;
}

static bool is_part_of(const clause *c, const clause *whole) {
  for (uint32_t i = 0; i < c->n; i++)
    if (!has_item(whole, c->items[i]))
      return false;
  return true;
}

/* A clause of conditions that are neither And nor Or; one with the same
 * conditions as another is left out. */
static void add_clause(normal_form *f, const clause *c) {
  clause once = {.n = 0};
  for (uint32_t i = 0; i < c->n; i++)
    if (!has_item(&once, c->items[i]))
      once.items[once.n++] = c->items[i];
  for (uint32_t i = 0; i < f->n_done; i++)
    if (f->done[i].n == once.n && is_part_of(&once, &f->done[i]))
      return;
  f->too_large |= f->n_done == MOST_CLAUSES;
  if (!f->too_large)
    f->done[f->n_done++] = once;
}

/* Both sides of an Or in the place of item `i`. */
static void open_or(normal_form *f, clause c, uint32_t i, pln_term x,
                    pln_term y) {
  f->too_large |= c.n == MOST_ITEMS;
  if (f->too_large)
    return;
  memmove(c.items + i + 2, c.items + i + 1, (c.n - i - 1) * sizeof *c.items);
  c.items[i] = x;
  c.items[i + 1] = y;
  c.n++;
  f->open[f->n_open++] = c;
}

/* Two clauses, each with one side of an And in the place of item `i`. */
static void open_and(normal_form *f, clause c, uint32_t i, pln_term x,
                     pln_term y) {
  f->too_large |= f->n_open + 2 > MOST_CLAUSES;
  if (f->too_large)
    return;
  c.items[i] = y;
  f->open[f->n_open++] = c;
  c.items[i] = x;
  f->open[f->n_open++] = c;
}

static void open_clause(normal_form *f) {
  const clause *c = &f->open[--f->n_open];
  for (uint32_t i = 0; i < c->n; i++) {
    pln_term_node n = *pln_at(f->a, c->items[i]);
    if (n.kind == PLN_PRIM_OR) {
      open_or(f, *c, i, n.a, n.b);
      return;
    }
    if (n.kind == PLN_PRIM_AND) {
      open_and(f, *c, i, n.a, n.b);
      return;
    }
  }
  add_clause(f, c);
}

/* ------------------------------------------------------------- simplification
 */

/* Simplifies two conditions together: one that both come to takes the place of
 * the second, and what changes nothing that of the first. */
static void simplify_pair(normal_form *f, pln_kind kind, pln_term *x,
                          pln_term *y) {
  pln_analyzer *a = f->a;
  pln_term joint = pln_fold(a, kind, *x, *y);
  pln_term simple = pln_simplify_term(a, joint, 2);
  if (!simple || simple == joint)
    return;
  pln_term_node n = *pln_at(a, simple);
  bool both = n.kind == kind;
  *x = both ? n.a : pln_term_bool(a, kind == PLN_PRIM_AND);
  *y = both ? n.b : simple;
}

static void simplify_within(normal_form *f, clause *c) {
  for (uint32_t i = 0; i < c->n; i++)
    for (uint32_t k = i + 1; k < c->n; k++)
      simplify_pair(f, PLN_PRIM_OR, &c->items[i], &c->items[k]);
}

/* The number of items that the other clause does not have, and the last. */
static uint32_t distinct_items(const clause *c, const clause *other,
                               uint32_t *last) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->n; i++)
    if (!has_item(other, c->items[i])) {
      *last = i;
      n++;
    }
  return n;
}

static void make_true(normal_form *f, clause *c) {
  c->n = 1;
  c->items[0] = pln_term_bool(f->a, true);
}

/* (A or B) and (A or B or C) is (A or B); of (A or B) and (A or C), B and C are
 * simplified together. */
static void simplify_clauses(normal_form *f, clause *x, clause *y) {
  uint32_t i = 0, k = 0;
  uint32_t own = distinct_items(x, y, &i), other = distinct_items(y, x, &k);
  if (x->n != 1 || y->n != 1) {
    if (own == 0) {
      make_true(f, y);
      return;
    }
    if (other == 0) {
      make_true(f, x);
      return;
    }
  }
  if (own == 1 && other == 1)
    simplify_pair(f, PLN_PRIM_AND, &x->items[i], &y->items[k]);
}

static pln_term conjunction(normal_form *f) {
  pln_term all = pln_term_bool(f->a, true);
  for (uint32_t i = 0; i < f->n_done; i++) {
    pln_term any = pln_term_bool(f->a, false);
    for (uint32_t k = 0; k < f->done[i].n; k++)
      any = pln_fold(f->a, PLN_PRIM_OR, any, f->done[i].items[k]);
    all = pln_fold(f->a, PLN_PRIM_AND, all, any);
  }
  return all;
}

static pln_term normalize(normal_form *f, pln_term t) {
  f->open[0].items[0] = t;
  f->open[0].n = f->n_open = 1;
  while (f->n_open > 0 && !f->too_large)
    open_clause(f);
  if (f->too_large)
    return t;
  for (uint32_t i = 0; i < f->n_done; i++)
    simplify_within(f, &f->done[i]);
  for (uint32_t i = 0; i < f->n_done; i++)
    for (uint32_t k = i + 1; k < f->n_done; k++)
      simplify_clauses(f, &f->done[i], &f->done[k]);
  return conjunction(f);
}

pln_term pln_and_of_ors(pln_analyzer *a, pln_term t) {
  if (!t || !(a->extensions & PLN_ARITH_AND_OF_ORS) ||
      pln_at(a, t)->lanes != 1 ||
      (pln_term_kind(a, t) != PLN_PRIM_AND &&
       pln_term_kind(a, t) != PLN_PRIM_OR))
    return t;
  normal_form *f = pln_mem_zeroed(a->engine, sizeof *f);
  if (!f)
    return pln_arith_fail(a, pln_nomem(a->engine));
  f->a = a;
  pln_term out = normalize(f, t);
  pln_mem_free(a->engine, f, sizeof *f);
  return a->status == PLN_OK ? out : PLN_NO_TERM;
}
