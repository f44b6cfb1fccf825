/* arith/iter/constrain.c: bounds of iterators by a predicate.
 *
 * Called by detection. The predicate is a conjunction of comparisons, each of
 * which bounds a variable, whose range becomes narrower, or a sum of iterators,
 * which becomes an iterator of that extent. */

#include "arith/iter/iter.h"

/* low <= t < high; PLN_NO_TERM: no bound. */
typedef struct constraint {
  pln_term t, low, high;
} constraint;

typedef struct constraint_list {
  constraint *items;
  uint32_t n, cap;
} constraint_list;

static bool push(pln_iter_map *m, constraint_list *list, constraint c) {
  pln_status status = pln_mem_grow(m->a->engine, (void **)&list->items,
                                   &list->cap, (size_t)list->n + 1, sizeof c);
  pln_arith_fail(m->a, status);
  if (status == PLN_OK)
    list->items[list->n++] = c;
  return status == PLN_OK;
}

/* Parts with iterators to *with, the others, negated, to *without. */
static void separate(pln_iter_map *m, pln_term t, pln_term *with,
                     pln_term *without) {
  pln_analyzer *a = m->a;
  pln_term_list stack = {0}; /* pairs: a term, and 1 if it is subtracted */
  pln_term_list_push(a, &stack, t);
  pln_term_list_push(a, &stack, 0);
  while (stack.n > 0 && a->status == PLN_OK) {
    pln_term minus = stack.items[--stack.n], x = stack.items[--stack.n];
    pln_term_node n = *pln_at(a, x);
    if (n.kind == PLN_PRIM_ADD || n.kind == PLN_PRIM_SUB) {
      pln_term_list_push(a, &stack, n.b);
      pln_term_list_push(a, &stack, n.kind == PLN_PRIM_SUB ? !minus : minus);
      pln_term_list_push(a, &stack, n.a);
      pln_term_list_push(a, &stack, minus);
    } else if (pln_iter_uses_input(m, x)) {
      *with = minus ? pln_sub(a, *with, x) : pln_add(a, *with, x);
    } else {
      *without = minus ? pln_add(a, *without, x) : pln_sub(a, *without, x);
    }
  }
  pln_term_list_free(a, &stack);
  *with = pln_simplify_term(a, *with, 2);
  *without = pln_simplify_term(a, *without, 2);
}

/* x < y or x <= y as a bound of one side. */
static constraint bound_of(pln_iter_map *m, pln_term x, pln_term y,
                           bool equal) {
  pln_analyzer *a = m->a;
  bool left = pln_iter_uses_input(m, x), right = pln_iter_uses_input(m, y);
  if (left && right) {
    pln_term diff = pln_sub(a, x, y);
    x = y = pln_const_like(a, x, 0);
    separate(m, diff, &x, &y);
  }
  if (left)
    return (constraint){x, PLN_NO_TERM, equal ? pln_add_const(a, y, 1) : y};
  return (constraint){y, equal ? x : pln_add_const(a, x, 1), PLN_NO_TERM};
}

static void narrow(pln_iter_map *m, pln_term_range *r, constraint c) {
  pln_analyzer *a = m->a;
  pln_term low = r->min, high = pln_add(a, r->min, r->extent);
  if (c.low)
    low = pln_fold(a, PLN_PRIM_MAX, low, c.low);
  if (c.high)
    high = pln_fold(a, PLN_PRIM_MIN, high, c.high);
  r->min = low;
  r->extent = pln_sub(a, high, low);
}

static bool read_comparison(pln_iter_map *m, pln_term t,
                            constraint_list *list) {
  pln_analyzer *a = m->a;
  pln_term_node n = *pln_at(a, t);
  bool less = n.kind == PLN_PRIM_LT || n.kind == PLN_PRIM_LE;
  bool equal = n.kind == PLN_PRIM_LE || n.kind == PLN_PRIM_GE;
  if (pln_is_value(a, t, 1))
    return true;
  if (n.kind < PLN_PRIM_LT || n.kind > PLN_PRIM_GE || !pln_is_integer(a, n.a))
    return false;
  if (!pln_iter_uses_input(m, t))
    return true;
  constraint c =
      less ? bound_of(m, n.a, n.b, equal) : bound_of(m, n.b, n.a, equal);
  pln_term_range *range = pln_iter_range(m, c.t);
  if (!range)
    return push(m, list, c);
  narrow(m, range, c);
  return true;
}

static bool read_predicate(pln_iter_map *m, pln_term t, constraint_list *list) {
  pln_analyzer *a = m->a;
  pln_term_list stack = {0};
  bool ok = pln_term_list_push(a, &stack, t);
  while (ok && stack.n > 0 && a->status == PLN_OK) {
    t = stack.items[--stack.n];
    pln_term_node n = *pln_at(a, t);
    if (n.kind == PLN_PRIM_AND)
      ok = pln_term_list_push(a, &stack, n.a) &&
           pln_term_list_push(a, &stack, n.b);
    else
      ok = read_comparison(m, t, list);
  }
  pln_term_list_free(a, &stack);
  return ok;
}

/* Smaller expressions first: those that use them come later. */
static void sort(const pln_iter_map *m, constraint_list *list) {
  for (uint32_t i = 1; i < list->n; i++) {
    constraint c = list->items[i];
    uint32_t k = i, size = pln_at(m->a, c.t)->size;
    for (; k > 0 && pln_at(m->a, list->items[k - 1].t)->size > size; k--)
      list->items[k] = list->items[k - 1];
    list->items[k] = c;
  }
}

/* ------------------------------------------------------------------- bounds
 */

/* The bounds of the mark of a fused sum become narrower. */
static void bound_mark(pln_iter_map *m, uint32_t mark, constraint c) {
  pln_analyzer *a = m->a;
  uint32_t sum = m->marks[mark].sum, flat = m->fusions[sum].flat;
  pln_iter_row row = m->sums[sum];
  pln_term low = m->fusions[flat].offset;
  pln_term high = pln_add(a, low, m->marks[mark].extent), before = low;
  if (c.low)
    low = pln_fold(a, PLN_PRIM_MAX, c.low, low);
  if (c.high && pln_prove(a, pln_fold(a, PLN_PRIM_LE, c.high, high), 0))
    high = c.high;
  else if (c.high)
    high = pln_fold(a, PLN_PRIM_MIN, c.high, high);
  pln_iter_splits copy = {0};
  for (uint32_t i = 0; i < row.n; i++) {
    pln_iter_split s = m->splits.items[row.first + i];
    pln_iter_push(m, &copy, s);
  }
  pln_term base = pln_sub(a, row.base, pln_sub(a, low, before));
  pln_term extent = pln_sub(a, high, low);
  bool narrowed = m->fusions[flat].narrowed ||
                  !pln_iter_equal(m, extent, m->marks[mark].extent);
  sum = pln_iter_sum_of(m, copy.n, copy.items, base);
  mark = pln_iter_mark_of(m, PLN_NO_TERM, sum, extent);
  if (copy.items)
    pln_mem_free(a->engine, copy.items, copy.cap * sizeof *copy.items);
  if (mark == PLN_NO_ITER)
    return;
  m->fusions[sum].flat = flat;
  m->fusions[flat].mark = mark;
  m->fusions[flat].offset = low;
  m->fusions[flat].narrowed = narrowed;
  pln_status status =
      pln_mem_grow(a->engine, (void **)&m->constrained, &m->cap_constrained,
                   (size_t)m->n_constrained + 1, sizeof *m->constrained);
  pln_arith_fail(a, status);
  if (status == PLN_OK)
    m->constrained[m->n_constrained++] = flat;
}

static bool apply(pln_iter_map *m, constraint c) {
  pln_analyzer *a = m->a;
  pln_iter_value v = pln_iter_rewrite(m, c.t);
  pln_term base = v.base;
  if (!pln_is_value(a, base, 0)) {
    v.base = pln_const_like(a, base, 0);
    if (c.low)
      c.low = pln_sub(a, c.low, base);
    if (c.high)
      c.high = pln_sub(a, c.high, base);
  }
  bool ok = m->n_errors == 0 && v.iter && pln_iter_fuse(m, &v, false) &&
            pln_is_value(a, m->values.items[v.first].scale, 1);
  if (ok)
    bound_mark(m, m->values.items[v.first].mark, c);
  else
    pln_iter_report(
        m, (pln_iter_error){.before = "Could not normalize iterators using the "
                                      "constraints given."});
  return ok && m->n_errors == 0;
}

/* Each of the splits of x is one of y, or none of them. */
static bool nested_or_apart(const pln_iter_map *m, uint32_t x, uint32_t y) {
  pln_iter_row p = m->sums[x], q = m->sums[y];
  uint32_t shared = 0;
  for (uint32_t i = 0; i < p.n; i++) {
    const pln_iter_split *s = &m->splits.items[p.first + i];
    for (uint32_t k = 0; k < q.n; k++) {
      const pln_iter_split *r = &m->splits.items[q.first + k];
      if (s->mark == r->mark && s->lower_factor == r->lower_factor &&
          s->extent == r->extent && s->scale == r->scale) {
        shared++;
        break;
      }
    }
  }
  return shared == 0 || shared == p.n;
}

static bool all_nested(const pln_iter_map *m) {
  for (uint32_t i = 0; i < m->n_constrained; i++)
    for (uint32_t k = i + 1; k < m->n_constrained; k++)
      if (!nested_or_apart(m, m->constrained[i], m->constrained[k]))
        return false;
  return true;
}

/* The number of constraints whose pairs are compared. */
enum { MOST_CONSTRAINTS = 256 };

bool pln_iter_constrain(pln_iter_map *m, pln_term predicate) {
  constraint_list list = {0};
  bool ok = !predicate || pln_is_value(m->a, predicate, 1) ||
            read_predicate(m, predicate, &list);
  ok = ok && list.n <= MOST_CONSTRAINTS;
  if (!ok)
    pln_iter_report(m, (pln_iter_error){
                           .before = "Could not parse predicate as constraints "
                                     "on the input iterators."});
  sort(m, &list);
  pln_iter_make_inputs(m);
  for (uint32_t i = 0; i < list.n && ok && m->a->status == PLN_OK; i++)
    ok = apply(m, list.items[i]);
  if (list.items)
    pln_mem_free(m->a->engine, list.items, list.cap * sizeof *list.items);
  if (ok && !all_nested(m)) {
    pln_iter_report(m, (pln_iter_error){.before = "Invalid constraints."});
    ok = false;
  }
  return ok && m->a->status == PLN_OK;
}
