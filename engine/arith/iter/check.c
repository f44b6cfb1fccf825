/* arith/iter/check.c: whether the splits of each mark fit together.
 *
 * Called by detection and by the division of maps. */

#include "arith/iter/iter.h"

/* ------------------------------------------------------------------- uses
 *
 * The marks are in descending order, so that a mark comes before those that its
 * source uses. */

void pln_iter_use_free(pln_iter_map *m, pln_iter_use *u) {
  pln_engine *e = m->a->engine;
  if (u->marks)
    pln_mem_free(e, u->marks, (u->cap + (size_t)1) * sizeof *u->marks);
  if (u->first)
    pln_mem_free(e, u->first, (u->cap + (size_t)2) * sizeof *u->first);
  if (u->splits)
    pln_mem_free(e, u->splits, (u->n_splits + (size_t)1) * sizeof *u->splits);
  *u = (pln_iter_use){0};
}

/* Calls visit with each split of the sums and of the marks they use. */
typedef void (*visit_fn)(pln_iter_map *m, pln_iter_use *u, uint32_t split);

static void visit_sum(pln_iter_map *m, pln_iter_use *u, uint32_t sum,
                      visit_fn visit) {
  for (uint32_t i = 0; i < m->sums[sum].n; i++)
    visit(m, u, m->sums[sum].first + i);
}

static void visit_all(pln_iter_map *m, pln_iter_use *u, uint32_t n,
                      const uint32_t *sums, visit_fn visit) {
  for (uint32_t i = 0; i < n; i++)
    visit_sum(m, u, sums[i], visit);
  for (uint32_t k = m->n_marks; k-- > 0;)
    if (u->marks[k] && !m->marks[k].source)
      visit_sum(m, u, m->marks[k].sum, visit);
}

static void count_split(pln_iter_map *m, pln_iter_use *u, uint32_t split) {
  uint32_t mark = m->splits.items[split].mark;
  u->marks[mark] = 1;
  u->first[mark + 2]++;
  u->n_splits++;
}

/* first[mark + 1]: the end of what was placed so far. */
static void place_split(pln_iter_map *m, pln_iter_use *u, uint32_t split) {
  u->splits[u->first[m->splits.items[split].mark + 1]++] = split;
}

bool pln_iter_collect(pln_iter_map *m, uint32_t n, const uint32_t *sums,
                      pln_iter_use *u) {
  pln_engine *e = m->a->engine;
  *u = (pln_iter_use){.cap = m->n_marks};
  u->marks = pln_mem_zeroed(e, (u->cap + (size_t)1) * sizeof *u->marks);
  u->first = pln_mem_zeroed(e, (u->cap + (size_t)2) * sizeof *u->first);
  if (u->marks && u->first) {
    visit_all(m, u, n, sums, count_split);
    for (uint32_t k = 2; k < u->cap + 2; k++)
      u->first[k] += u->first[k - 1];
    u->splits =
        pln_mem_zeroed(e, (u->n_splits + (size_t)1) * sizeof *u->splits);
  }
  if (!u->splits) {
    pln_iter_use_free(m, u);
    pln_arith_fail(m->a, pln_nomem(e));
    return false;
  }
  visit_all(m, u, n, sums, place_split);
  for (uint32_t k = 0; k < u->cap; k++)
    u->n_marks += u->marks[k] != 0;
  return true;
}

/* ------------------------------------------------------------------ a mark
 */

static const pln_iter_split *at(const pln_iter_map *m, const uint32_t *splits,
                                uint32_t i) {
  return &m->splits.items[splits[i]];
}

/* The split whose lower factor is `factor`. */
static uint32_t find_factor(pln_iter_map *m, uint32_t n, const uint32_t *splits,
                            const bool *used, pln_term factor) {
  for (uint32_t i = 0; i < n; i++)
    if (!used[i] && pln_iter_equal(m, at(m, splits, i)->lower_factor, factor))
      return i;
  return n;
}

/* The split of the least lower factor; all of them are multiples of `factor`.
 */
static uint32_t find_above(pln_iter_map *m, uint32_t n, const uint32_t *splits,
                           const bool *used, pln_term factor) {
  uint32_t found = n;
  for (uint32_t i = 0; i < n; i++) {
    pln_term f = at(m, splits, i)->lower_factor;
    if (used[i])
      continue;
    if (!pln_iter_divisible(m, f, factor))
      return n;
    if (found == n ||
        pln_iter_divisible(m, at(m, splits, found)->lower_factor, f))
      found = i;
  }
  return found;
}

/* The product of the extents, or PLN_NO_TERM: the splits overlap, or leave
 * something out that they must not. */
static pln_term cover(pln_iter_map *m, uint32_t n, const uint32_t *splits,
                      bool *used) {
  pln_term span = pln_const_like(m->a, at(m, splits, 0)->lower_factor, 1);
  for (uint32_t i = 0; i < n && m->a->status == PLN_OK; i++) {
    uint32_t k = find_factor(m, n, splits, used, span);
    if (k == n && m->level != PLN_ITER_BIJECTIVE)
      k = find_above(m, n, splits, used, span);
    if (k == n)
      return PLN_NO_TERM;
    used[k] = true;
    span =
        pln_mul(m->a, at(m, splits, k)->lower_factor, at(m, splits, k)->extent);
  }
  return span;
}

static bool refuse(pln_iter_map *m, const char *why) {
  pln_iter_report(m, (pln_iter_error){.before = why});
  return false;
}

static const char NO_DIVISOR[] =
    "The lower factor is not divisible by the full iter space extent";

static bool proves_less(pln_iter_map *m, pln_term x, pln_term y) {
  return pln_prove(m->a, pln_fold(m->a, PLN_PRIM_LT, x, y), 0);
}

/* The padding on each side leaves something of the first and last block. */
static bool reaches_ends(pln_iter_map *m, uint32_t mark, pln_term block) {
  uint32_t origin = m->paddings[mark].origin;
  pln_term left = m->paddings[origin].left, right = m->paddings[origin].right;
  return proves_less(m, left, block) && proves_less(m, right, block);
}

/* Of a padded mark: the values before padding suffice for all of the splits. */
static bool check_padded(pln_iter_map *m, uint32_t mark, uint32_t n,
                         const uint32_t *splits, pln_term span, bool full,
                         bool divides) {
  pln_analyzer *a = m->a;
  pln_term before = m->marks[m->paddings[mark].origin].extent;
  bool enough = pln_prove(a, pln_fold(a, PLN_PRIM_GE, before, span), 0);
  if (full && n != 1)
    return refuse(m, "Dependent iterations on padding iter space");
  if (full && !enough && !reaches_ends(m, mark, at(m, splits, 0)->lower_factor))
    return refuse(m, "Split on padding iteration is not surjective if the "
                     "split extent equals to the full iter space extent");
  if (!full && !divides)
    return refuse(m, NO_DIVISOR);
  if (!full && !enough)
    return refuse(m, "The extent before padding is less than lower factor");
  return true;
}

static bool check_span(pln_iter_map *m, uint32_t mark, uint32_t n,
                       const uint32_t *splits, pln_term span) {
  pln_term extent = m->marks[mark].extent;
  uint32_t origin = m->paddings[mark].origin;
  bool full = pln_iter_equal(m, span, extent);
  bool divides = full || pln_iter_divisible(m, extent, span);
  if (m->level == PLN_ITER_BIJECTIVE && origin != PLN_NO_ITER)
    return refuse(m, "Bijectvie mapping should not take iter paddings");
  if (m->level == PLN_ITER_BIJECTIVE)
    return full || refuse(m, "The iterations do not traverse full iter space");
  if (origin == PLN_NO_ITER)
    return divides || refuse(m, NO_DIVISOR);
  return m->level != PLN_ITER_SURJECTIVE ||
         check_padded(m, mark, n, splits, span, full, divides);
}

static bool check_mark(pln_iter_map *m, uint32_t mark, uint32_t n,
                       const uint32_t *splits) {
  bool *used = pln_mem_zeroed(m->a->engine, n + (size_t)1);
  if (!used) {
    pln_arith_fail(m->a, pln_nomem(m->a->engine));
    return false;
  }
  pln_term span = cover(m, n, splits, used);
  pln_mem_free(m->a->engine, used, n + (size_t)1);
  return span && check_span(m, mark, n, splits, span);
}

static bool inputs_used(const pln_iter_map *m, const pln_iter_use *u) {
  for (uint32_t i = 0; i < m->n_ranges; i++) {
    uint32_t mark = m->input_of[i];
    if (mark != PLN_NO_ITER && !u->marks[mark] &&
        !pln_is_value(m->a, m->marks[mark].extent, 1))
      return false;
  }
  return true;
}

/* What a constraint took values from is used as the constrained iterator, or
 * not at all: its parts by themselves may have fewer values than their extents,
 * which TVM accepts. */
static bool keeps_constraints(const pln_iter_map *m, const pln_iter_use *u) {
  for (uint32_t i = 0; i < m->n_constrained; i++) {
    uint32_t flat = m->constrained[i];
    if (!m->fusions[flat].narrowed || u->marks[m->fusions[flat].mark])
      continue;
    for (uint32_t k = 0; k < m->sums[flat].n; k++)
      if (u->marks[m->splits.items[m->sums[flat].first + k].mark])
        return false;
  }
  return true;
}

bool pln_iter_check(pln_iter_map *m, uint32_t n, const uint32_t *sums) {
  pln_iter_use use;
  bool ok = pln_iter_collect(m, n, sums, &use);
  for (uint32_t k = 0; ok && k < use.cap; k++)
    if (use.marks[k])
      ok = check_mark(m, k, use.first[k + 1] - use.first[k],
                      &use.splits[use.first[k]]);
  if (ok && m->level == PLN_ITER_BIJECTIVE)
    ok = inputs_used(m, &use);
  m->unbounded = ok && !keeps_constraints(m, &use);
  pln_iter_use_free(m, &use);
  return ok && m->a->status == PLN_OK;
}
