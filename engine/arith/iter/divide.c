/* arith/iter/divide.c: divides the iterators of a map into outer and inner
 * ones, and inverts a map.
 *
 * Both go through the marks in the order of their numbers, which is that of
 * their sources: the division from the variables up, the inverse from the
 * indices down. */

#include "arith/iter/iter.h"

/* --------------------------------------------------------------------- parts
 *
 * What is divided is outer * extent(inner) + inner. */

typedef struct part {
  uint32_t sum;
  pln_term extent;
  bool single; /* the sum is one split of scale 1: `split` */
  pln_iter_split split;
} part;

typedef enum side { MIXED, INNER, OUTER, FAILED } side;

typedef struct division {
  side side;
  part outer, inner;
} division;

typedef struct divider {
  pln_iter_map *m;
  uint32_t n_inner;
  const pln_term *inner;
  pln_iter_use use;
  division *splits; /* by number of the split */
  pln_term outer_condition, inner_condition;
} divider;

static part nothing(pln_iter_map *m, pln_term like, pln_term base) {
  return (part){.sum = pln_iter_sum_of(m, 0, NULL, base),
                .extent = pln_const_like(m->a, like, 1)};
}

static part single(pln_iter_map *m, pln_iter_split s) {
  pln_term zero = pln_const_like(m->a, s.extent, 0);
  return (part){pln_iter_sum_of(m, 1, &s, zero), s.extent, true, s};
}

static division on_side(pln_iter_map *m, side where, part p) {
  pln_term zero = pln_const_like(m->a, p.extent, 0);
  part none = nothing(m, p.extent, zero);
  return where == INNER ? (division){INNER, none, p}
                        : (division){OUTER, p, none};
}

static division failed(void) {
  return (division){.side = FAILED};
}

/* The part as one split. */
static pln_iter_split as_split(pln_iter_map *m, const part *p) {
  if (p->single)
    return p->split;
  uint32_t mark = pln_iter_mark_of(m, PLN_NO_TERM, p->sum, p->extent);
  return pln_iter_whole(m, mark, pln_const_like(m->a, p->extent, 1));
}

/* --------------------------------------------------------------------- sums
 */

/* Splits from the innermost on, each with the extents before it as scale. */
static part stacked(pln_iter_map *m, pln_iter_splits *list, pln_term base) {
  pln_analyzer *a = m->a;
  pln_term extent = pln_const_like(a, base, 1);
  for (uint32_t i = 0; i < list->n; i++) {
    list->items[i].scale = extent;
    extent = pln_mul(a, extent, list->items[i].extent);
  }
  for (uint32_t i = 0; i < list->n / 2; i++) {
    pln_iter_split s = list->items[i];
    list->items[i] = list->items[list->n - 1 - i];
    list->items[list->n - 1 - i] = s;
  }
  return (part){.sum = pln_iter_sum_of(m, list->n, list->items, base),
                .extent = extent};
}

static void require_below(divider *d, side where, part p, pln_term extent) {
  pln_analyzer *a = d->m->a;
  pln_term *condition =
      where == OUTER ? &d->outer_condition : &d->inner_condition;
  pln_term value = pln_iter_sum_term(d->m, p.sum);
  *condition = pln_fold(a, PLN_PRIM_AND, *condition,
                        pln_fold(a, PLN_PRIM_LT, value, extent));
}

static void free_splits(pln_iter_map *m, pln_iter_splits *list) {
  if (list->items)
    pln_mem_free(m->a->engine, list->items, list->cap * sizeof *list->items);
}

/* Outer splits, then inner ones, from the left: read from the right. False:
 * they are mixed, or none has the scale 1. */
static bool separate(divider *d, pln_iter_row row, pln_iter_splits *outer,
                     pln_iter_splits *inner, pln_term *extent) {
  pln_iter_map *m = d->m;
  bool unit = false;
  for (uint32_t i = row.n; i-- > 0;) {
    pln_iter_split s = m->splits.items[row.first + i];
    division x = d->splits[row.first + i];
    unit = unit || pln_is_value(m->a, s.scale, 1);
    if (x.side == FAILED || x.side == MIXED || (x.side == INNER && outer->n))
      return false;
    s = as_split(m, x.side == INNER ? &x.inner : &x.outer);
    if (!pln_iter_push(m, x.side == INNER ? inner : outer, s))
      return false;
    *extent = pln_mul(m->a, *extent, s.extent);
  }
  return unit;
}

static division divide_many(divider *d, pln_iter_row row,
                            pln_term mark_extent) {
  pln_iter_map *m = d->m;
  pln_analyzer *a = m->a;
  pln_iter_splits outer = {0}, inner = {0};
  pln_term extent = pln_const_like(a, row.base, 1);
  pln_term zero = pln_const_like(a, row.base, 0);
  division out = failed();
  if (separate(d, row, &outer, &inner, &extent)) {
    bool whole = mark_extent && pln_iter_equal(m, extent, mark_extent);
    part p = stacked(m, &outer, zero), q = stacked(m, &inner, row.base);
    if (whole) {
      out = (division){MIXED, p, q};
    } else if (mark_extent && (inner.n == 0 || outer.n == 0)) {
      side where = inner.n == 0 ? OUTER : INNER;
      part all = where == OUTER ? p : q;
      require_below(d, where, all, mark_extent);
      all.extent = mark_extent;
      out = on_side(m, where, all);
    }
  }
  free_splits(m, &outer);
  free_splits(m, &inner);
  return out;
}

/* `extent`: that of the mark whose source it is, or PLN_NO_TERM. */
static division divide_sum(divider *d, uint32_t sum, pln_term extent) {
  pln_iter_map *m = d->m;
  pln_analyzer *a = m->a;
  pln_iter_row row = m->sums[sum];
  pln_term zero = pln_const_like(a, row.base, 0);
  if (row.n == 0)
    return (division){MIXED, nothing(m, row.base, zero),
                      nothing(m, row.base, row.base)};
  if (row.n > 1)
    return divide_many(d, row, extent);
  if (!pln_is_value(a, m->splits.items[row.first].scale, 1))
    return failed();
  division out = d->splits[row.first];
  if (out.side == FAILED || pln_is_value(a, row.base, 0))
    return out;
  pln_iter_row inner = m->sums[out.inner.sum];
  pln_iter_split copy = out.inner.single ? out.inner.split
                        : inner.n == 1   ? m->splits.items[inner.first]
                                         : (pln_iter_split){0};
  if (inner.n > 1)
    return failed();
  out.inner.sum =
      pln_iter_sum_of(m, inner.n, &copy, pln_add(a, inner.base, row.base));
  out.inner.single = false;
  return out;
}

/* -------------------------------------------------------------------- marks
 */

static bool is_inner(const divider *d, pln_term var) {
  for (uint32_t i = 0; i < d->n_inner; i++)
    if (d->inner[i] == var)
      return true;
  return false;
}

/* The split of `mark` instead of its own mark. */
static division moved(divider *d, side where, uint32_t split, const part *p,
                      pln_term first_factor) {
  pln_iter_map *m = d->m;
  pln_iter_split s = m->splits.items[split];
  s.mark = pln_iter_mark_of(m, PLN_NO_TERM, p->sum, p->extent);
  if (first_factor)
    s.lower_factor =
        pln_fold(m->a, PLN_PRIM_FLOORDIV, s.lower_factor, first_factor);
  return on_side(m, where, single(m, s));
}

static uint32_t next_split(divider *d, uint32_t n, const uint32_t *splits,
                           const bool *used, pln_term factor) {
  for (uint32_t i = 0; i < n; i++)
    if (!used[i] &&
        pln_iter_equal(d->m, d->m->splits.items[splits[i]].lower_factor,
                       factor))
      return i;
  return n;
}

/* The splits of a mark that is outer * extent(inner) + inner: those below that
 * extent are inner ones. False: one lies across. */
static bool divide_splits(divider *d, const division *x, uint32_t n,
                          const uint32_t *splits, bool *used) {
  pln_iter_map *m = d->m;
  pln_term span = pln_const_like(m->a, x->inner.extent, 1), first = PLN_NO_TERM;
  bool outer = x->side == OUTER;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = next_split(d, n, splits, used, span);
    if (k == n)
      return false;
    used[k] = true;
    pln_iter_split s = m->splits.items[splits[k]];
    if (outer && !first)
      first = s.lower_factor;
    d->splits[splits[k]] = outer ? moved(d, OUTER, splits[k], &x->outer, first)
                                 : moved(d, INNER, splits[k], &x->inner, 0);
    span = pln_mul(m->a, span, s.extent);
    outer = outer || pln_iter_equal(m, span, x->inner.extent);
  }
  return outer;
}

/* The side where all values of a division are, or MIXED. */
static side only_side(const pln_iter_map *m, const division *x) {
  if (x->side == MIXED && pln_is_value(m->a, x->outer.extent, 1))
    return INNER;
  if (x->side == MIXED && pln_is_value(m->a, x->inner.extent, 1))
    return OUTER;
  return x->side;
}

/* The only split of a mark: all of it, or a part of what lies on one side. */
static bool divide_single(divider *d, const division *x, uint32_t mark,
                          uint32_t split) {
  pln_iter_map *m = d->m;
  const pln_iter_split *s = &m->splits.items[split];
  bool whole = pln_is_value(m->a, s->lower_factor, 1) &&
               pln_iter_equal(m, s->extent, m->marks[mark].extent);
  side where = only_side(m, x);
  if (whole)
    d->splits[split] = *x;
  else if (where != MIXED)
    d->splits[split] =
        moved(d, where, split, where == INNER ? &x->inner : &x->outer, 0);
  return whole || where != MIXED;
}

static bool divide_mark(divider *d, uint32_t mark) {
  pln_iter_map *m = d->m;
  pln_iter_mark k = m->marks[mark];
  uint32_t n = d->use.first[mark + 1] - d->use.first[mark];
  const uint32_t *splits = &d->use.splits[d->use.first[mark]];
  if (k.source) {
    pln_term_node node = *pln_at(m->a, k.source);
    pln_term var = node.kind == PLN_PRIM_SUB ? node.a : k.source;
    for (uint32_t i = 0; i < n; i++)
      d->splits[splits[i]] = on_side(m, is_inner(d, var) ? INNER : OUTER,
                                     single(m, m->splits.items[splits[i]]));
    return true;
  }
  if (m->paddings[mark].origin != PLN_NO_ITER)
    return false;
  division x = divide_sum(d, k.sum, k.extent);
  if (x.side == FAILED)
    return false;
  if (n == 1)
    return divide_single(d, &x, mark, splits[0]);
  bool *used = pln_mem_zeroed(m->a->engine, n + (size_t)1);
  if (!used) {
    pln_arith_fail(m->a, pln_nomem(m->a->engine));
    return false;
  }
  bool ok = divide_splits(d, &x, n, splits, used);
  pln_mem_free(m->a->engine, used, n + (size_t)1);
  return ok;
}

static uint32_t mark_of(pln_iter_map *m, const part *p) {
  return pln_iter_mark_of(m, PLN_NO_TERM, p->sum, p->extent);
}

static bool divide(divider *d, uint32_t n, const uint32_t *sums,
                   uint32_t *marks) {
  pln_iter_map *m = d->m;
  for (uint32_t k = 0; k < d->use.cap && m->a->status == PLN_OK; k++)
    if (d->use.marks[k] && !divide_mark(d, k))
      return false;
  for (uint32_t i = 0; i < n && m->a->status == PLN_OK; i++) {
    division x = divide_sum(d, sums[i], PLN_NO_TERM);
    if (x.side == FAILED)
      return false;
    marks[2 * i] = mark_of(m, &x.outer);
    marks[2 * i + 1] = mark_of(m, &x.inner);
  }
  pln_term zero = pln_term_int(m->a, PLN_INT32, 1, 0);
  uint32_t none = pln_iter_sum_of(m, 0, NULL, zero);
  marks[2 * n] = pln_iter_mark_of(m, PLN_NO_TERM, none, d->outer_condition);
  marks[2 * n + 1] = pln_iter_mark_of(m, PLN_NO_TERM, none, d->inner_condition);
  return true;
}

static pln_status check_sums(pln_iter_map *m, uint32_t n,
                             const uint32_t *sums) {
  for (uint32_t i = 0; i < n; i++)
    if (sums[i] >= m->n_sums)
      return pln_diag_error(m->a->engine, PLN_ERR_ARGUMENT, NULL,
                            "arith: no such IterSumExpr");
  m->a->status = PLN_OK;
  return PLN_OK;
}

pln_status pln_iter_map_divide(pln_iter_map *m, uint32_t n,
                               const uint32_t *sums, uint32_t n_inner,
                               const pln_term *inner, uint32_t *marks,
                               bool *found) {
  pln_analyzer *a = m->a;
  for (uint32_t i = 0; i < n_inner; i++)
    PLN_TRY(pln_check_term(a, inner[i]));
  PLN_TRY(check_sums(m, n, sums));
  divider d = {.m = m, .n_inner = n_inner, .inner = inner};
  size_t size = (m->splits.n + (size_t)1) * sizeof *d.splits;
  *found = false;
  d.outer_condition = d.inner_condition = pln_term_bool(a, true);
  d.splits = pln_mem_zeroed(a->engine, size);
  if (!d.splits)
    return pln_nomem(a->engine);
  if (pln_iter_collect(m, n, sums, &d.use)) {
    *found = divide(&d, n, sums, marks) && a->status == PLN_OK;
    pln_iter_use_free(m, &d.use);
  }
  pln_mem_free(a->engine, d.splits, size);
  return a->status;
}

/* ------------------------------------------------------------------ inverse
 */

static void add_to(pln_iter_map *m, pln_term *values, uint32_t split,
                   pln_term value) {
  pln_iter_split s = m->splits.items[split];
  value = pln_mul(m->a, value, s.lower_factor);
  values[s.mark] =
      values[s.mark] ? pln_add(m->a, values[s.mark], value) : value;
}

/* Gives the value of a sum to its splits: digits of a number whose places are
 * the scales. False: the scales are none. */
static bool give_back(pln_iter_map *m, pln_term *values, uint32_t sum,
                      pln_term value) {
  pln_analyzer *a = m->a;
  pln_iter_row row = m->sums[sum];
  value = pln_sub(a, value, row.base);
  if (row.n == 1) {
    pln_term scale = m->splits.items[row.first].scale;
    if (!pln_is_value(a, scale, 1) && !pln_is_value(a, scale, -1))
      return false;
    add_to(m, values, row.first, pln_mul(a, value, scale));
    return true;
  }
  pln_term expected = PLN_NO_TERM;
  for (uint32_t i = row.n; i-- > 0;) {
    pln_iter_split s = m->splits.items[row.first + i];
    if (expected && !pln_iter_equal(m, s.scale, expected))
      return false;
    expected = pln_mul(a, s.scale, s.extent);
    pln_term digit = pln_fold(a, PLN_PRIM_FLOORDIV, value, s.scale);
    if (i > 0)
      digit = pln_fold(a, PLN_PRIM_FLOORMOD, digit, s.extent);
    add_to(m, values, row.first + i, digit);
  }
  return true;
}

/* var, or var - min, has the value. */
static pln_term solve_source(pln_analyzer *a, pln_term *source,
                             pln_term value) {
  pln_term_node n = *pln_at(a, *source);
  if (n.kind == PLN_PRIM_SUB) {
    *source = n.a;
    return pln_add(a, value, n.b);
  }
  if (n.kind == PLN_PRIM_ADD) { /* var - c is var + -c */
    *source = n.a;
    return pln_sub(a, value, n.b);
  }
  return value;
}

static pln_status invert(pln_iter_map *m, uint32_t cap, pln_term *values,
                         pln_term *vars, pln_term *out, uint32_t *n_vars) {
  pln_analyzer *a = m->a;
  for (uint32_t k = m->n_marks; k-- > 0 && a->status == PLN_OK;) {
    if (!values[k])
      continue;
    pln_term source = m->marks[k].source;
    if (source) {
      pln_term value = solve_source(a, &source, values[k]);
      if (*n_vars == cap)
        return pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                              "arith: room for too few variables");
      vars[*n_vars] = source;
      out[(*n_vars)++] = value;
    } else if (!give_back(m, values, m->marks[k].sum, values[k])) {
      return pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                            "arith: an iterator map with other scales than "
                            "those of a fusion has no inverse");
    }
  }
  return a->status;
}

pln_status pln_iter_map_inverse(pln_iter_map *m, uint32_t n,
                                const uint32_t *sums, const pln_term *outputs,
                                uint32_t cap, pln_term *vars, pln_term *out,
                                uint32_t *n_vars) {
  pln_analyzer *a = m->a;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_check_term(a, outputs[i]));
  PLN_TRY(check_sums(m, n, sums));
  size_t size = (m->n_marks + (size_t)1) * sizeof(pln_term);
  pln_term *values = pln_mem_zeroed(a->engine, size);
  bool ok = true;
  *n_vars = 0;
  if (!values)
    return pln_nomem(a->engine);
  for (uint32_t i = 0; i < n && ok; i++)
    ok = give_back(m, values, sums[i], outputs[i]);
  pln_status status = PLN_OK;
  if (!ok && a->status == PLN_OK)
    status = pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                            "arith: an iterator map with other scales than "
                            "those of a fusion has no inverse");
  if (ok)
    status = invert(m, cap, values, vars, out, n_vars);
  pln_mem_free(a->engine, values, size);
  return status == PLN_OK ? a->status : status;
}
