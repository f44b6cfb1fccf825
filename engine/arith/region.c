/* arith/region.c: bounds of regions, and unions and intersections of sets.
 *
 * Called by the public functions. A region whose least values are an iterator
 * map has exact bounds: those of the iterators. */

#include "arith/iter/iter.h"

/* -------------------------------------------------------------------- strict
 */

/* [min, min + extent - 1] */
static pln_interval from_extent(pln_analyzer *a, pln_term min,
                                pln_term extent) {
  return (pln_interval){min, pln_add_const(a, pln_add(a, extent, min), -1)};
}

/* The values of base + split, each with `extent` values from there on, which
 * leave no gap. */
static bool span_of(pln_iter_map *m, uint32_t sum, pln_term extent,
                    pln_interval *out) {
  pln_analyzer *a = m->a;
  pln_iter_sum s = pln_iter_map_sum_at(m, sum);
  if (s.n == 0) {
    *out = from_extent(a, s.base, extent);
    return true;
  }
  pln_iter_split p = s.splits[0];
  if (pln_proves_lt(a, p.extent, 1)) {
    *out = (pln_interval){PLN_TERM_POS_INF, PLN_TERM_NEG_INF};
    return true;
  }
  pln_term zero = pln_const_like(a, p.scale, 0);
  bool down = pln_prove(a, pln_fold(a, PLN_PRIM_LT, p.scale, zero), 0);
  pln_term step = down ? pln_sub(a, zero, p.scale) : p.scale;
  if (!pln_prove(a, pln_fold(a, PLN_PRIM_GE, extent, step), 0))
    return false;
  pln_term most = pln_mul(a, pln_add_const(a, p.extent, -1), p.scale);
  if (down)
    *out = from_extent(a, pln_add(a, s.base, most), pln_sub(a, extent, most));
  else
    *out = from_extent(a, s.base, pln_add(a, extent, most));
  return true;
}

typedef struct region_request {
  pln_analyzer *a;
  uint32_t n_ranges;
  const pln_term_range *ranges;
  pln_term predicate;
} region_request;

/* An iterator of one value may be left in what stands beside the splits. */
static pln_term with_values(const pln_iter_map *m, pln_term t) {
  if (pln_is_infinite(t))
    return t;
  for (uint32_t i = 0; i < m->n_ranges; i++)
    if (pln_is_value(m->a, m->ranges[i].extent, 1))
      t = pln_term_substitute(m->a, t, 1, &m->ranges[i].var, &m->ranges[i].min);
  return t;
}

static pln_status strict_in(const region_request *r, pln_iter_map *m,
                            uint32_t n, const pln_term_range *region,
                            uint32_t *sums, pln_term *mins, pln_interval *out,
                            bool *found) {
  for (uint32_t i = 0; i < n; i++)
    mins[i] = region[i].min;
  PLN_TRY(pln_iter_map_detect(m, n, mins, r->n_ranges, r->ranges, r->predicate,
                              PLN_ITER_SURJECTIVE, true, sums, found));
  *found = *found && !m->rotated && !m->unbounded;
  for (uint32_t i = 0; i < n && *found; i++) {
    *found = span_of(m, sums[i], region[i].extent, &out[i]);
    if (*found)
      out[i] = (pln_interval){with_values(m, out[i].min),
                              with_values(m, out[i].max)};
  }
  return r->a->status;
}

static pln_status strict(const region_request *r, uint32_t n,
                         const pln_term_range *region, pln_interval *out,
                         bool *found) {
  pln_engine *e = r->a->engine;
  pln_iter_map *m;
  size_t size = (n + (size_t)1) * 2 * sizeof(uint32_t);
  *found = false;
  for (uint32_t i = 0; i < n; i++)
    if (!pln_is_const(r->a, region[i].extent))
      return PLN_OK;
  PLN_TRY(pln_iter_map_new(r->a, &m));
  uint32_t *sums = pln_mem_zeroed(e, size);
  pln_status status =
      sums ? strict_in(r, m, n, region, sums, sums + n + 1, out, found)
           : pln_nomem(e);
  if (sums)
    pln_mem_free(e, sums, size);
  pln_iter_map_free(m);
  return status;
}

/* --------------------------------------------------------------------- upper
 */

static pln_interval coarse(const region_request *r, pln_term_range dimension,
                           const pln_term *vars, const pln_interval *sets) {
  pln_analyzer *a = r->a;
  pln_term last = pln_simplify_term(
      a, pln_add_const(a, pln_add(a, dimension.min, dimension.extent), -1), 2);
  pln_interval low =
      pln_interval_of(a, dimension.min, r->n_ranges, vars, sets, false);
  pln_interval high = pln_interval_of(a, last, r->n_ranges, vars, sets, false);
  return (pln_interval){low.min, high.max};
}

static pln_term_domain *make_domains(const region_request *r) {
  pln_analyzer *a = r->a;
  pln_term_domain *out =
      pln_mem_new(a->engine, (r->n_ranges + (size_t)1) * sizeof *out);
  for (uint32_t i = 0; out && i < r->n_ranges; i++) {
    pln_term_range x = r->ranges[i];
    pln_term last = pln_add_const(a, pln_add(a, x.min, x.extent), -1);
    out[i] = (pln_term_domain){x.var, x.min, pln_simplify_term(a, last, 2)};
  }
  return out;
}

/* Each dimension by itself: strictly, or by intervals. */
static pln_status each(const region_request *r, uint32_t n,
                       const pln_term_range *region, pln_interval *out) {
  pln_term *vars;
  pln_interval *sets;
  pln_engine *e = r->a->engine;
  pln_term_domain *domains = make_domains(r);
  if (!domains)
    return pln_nomem(e);
  pln_status status =
      pln_read_domains(r->a, r->n_ranges, domains, &vars, &sets);
  pln_mem_free(e, domains, (r->n_ranges + (size_t)1) * sizeof *domains);
  PLN_TRY(status);
  uint32_t mark = pln_enter(r->a, r->predicate);
  for (uint32_t i = 0; i < n && status == PLN_OK; i++) {
    bool found;
    status = strict(r, 1, &region[i], &out[i], &found);
    if (status == PLN_OK && !found)
      out[i] = coarse(r, region[i], vars, sets);
  }
  pln_leave(r->a, mark);
  pln_free_domains(r->a, r->n_ranges, vars, sets);
  return status == PLN_OK ? r->a->status : status;
}

pln_status pln_analyzer_estimate_region(
    pln_analyzer *a, uint32_t n, const pln_term_range *region,
    uint32_t n_ranges, const pln_term_range *ranges, pln_term predicate,
    pln_region_bound bound, pln_term *out, bool *found) {
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(pln_check_term(a, region[i].min));
    PLN_TRY(pln_check_term(a, region[i].extent));
  }
  for (uint32_t i = 0; i < n_ranges; i++) {
    PLN_TRY(pln_check_term(a, ranges[i].var));
    PLN_TRY(pln_check_term(a, ranges[i].min));
    PLN_TRY(pln_check_term(a, ranges[i].extent));
  }
  if (!predicate)
    predicate = pln_term_bool(a, true);
  PLN_TRY(pln_check_bool_term(a, predicate));
  region_request r = {a, n_ranges, ranges, predicate};
  size_t size = (n + (size_t)1) * sizeof(pln_interval);
  pln_interval *sets = pln_mem_zeroed(a->engine, size);
  if (!sets)
    return pln_nomem(a->engine);
  pln_status status = strict(&r, n, region, sets, found);
  if (status == PLN_OK && !*found && bound == PLN_REGION_UPPER) {
    status = each(&r, n, region, sets);
    *found = status == PLN_OK;
  }
  for (uint32_t i = 0; i < n && *found; i++) {
    out[2 * i] = sets[i].min;
    out[2 * i + 1] = sets[i].max;
  }
  pln_mem_free(a->engine, sets, size);
  return status;
}

/* ---------------------------------------------------------------------- sets
 */

/* The lesser or greater of two ends; an infinity of the `losing` kind gives
 * way, the other one stays. */
static pln_term select_end(pln_analyzer *a, pln_kind kind, pln_term x,
                           pln_term y, pln_term losing) {
  if (x == losing || y == losing)
    return x == losing ? y : x;
  if (pln_is_infinite(x) || pln_is_infinite(y))
    return pln_is_infinite(x) ? x : y;
  return pln_simplify_term(a, pln_fold(a, kind, x, y), 2);
}

static pln_interval intersect(pln_analyzer *a, pln_interval x, pln_interval y) {
  pln_interval out = {
      select_end(a, PLN_PRIM_MAX, x.min, y.min, PLN_TERM_NEG_INF),
      select_end(a, PLN_PRIM_MIN, x.max, y.max, PLN_TERM_POS_INF)};
  if (!pln_is_infinite(out.min) && !pln_is_infinite(out.max) &&
      pln_prove(a, pln_fold(a, PLN_PRIM_LT, out.max, out.min), 0))
    out = (pln_interval){PLN_TERM_POS_INF, PLN_TERM_NEG_INF};
  return out;
}

static pln_interval unite(pln_analyzer *a, pln_interval x, pln_interval y) {
  return (pln_interval){
      select_end(a, PLN_PRIM_MIN, x.min, y.min, PLN_TERM_POS_INF),
      select_end(a, PLN_PRIM_MAX, x.max, y.max, PLN_TERM_NEG_INF)};
}

/* Surely nothing lies between the end of x and the begin of y. */
static bool reaches(pln_analyzer *a, pln_term max, pln_term min) {
  if (min == PLN_TERM_NEG_INF || max == PLN_TERM_POS_INF)
    return true;
  if (pln_is_infinite(min) || pln_is_infinite(max))
    return false;
  return pln_prove(a, pln_fold(a, PLN_PRIM_LE, min, pln_add_const(a, max, 1)),
                   0);
}

static pln_interval combine(pln_analyzer *a, pln_set_operation operation,
                            pln_interval x, pln_interval y) {
  if (operation == PLN_SET_INTERSECT)
    return pln_is_empty(x) || pln_is_empty(y)
               ? (pln_interval){PLN_TERM_POS_INF, PLN_TERM_NEG_INF}
               : intersect(a, x, y);
  if (pln_is_empty(x) || pln_is_empty(y))
    return pln_is_empty(x) ? y : x;
  if (operation == PLN_SET_UNION_LOWER &&
      !(reaches(a, x.max, y.min) && reaches(a, y.max, x.min)))
    return x;
  return unite(a, x, y);
}

pln_status pln_analyzer_combine_sets(pln_analyzer *a,
                                     pln_set_operation operation, uint32_t n,
                                     const pln_term *ends, pln_term *min,
                                     pln_term *max) {
  pln_interval out = {PLN_TERM_POS_INF, PLN_TERM_NEG_INF};
  a->status = PLN_OK;
  for (uint32_t i = 0; i < 2 * n; i++)
    if (!pln_is_infinite(ends[i]))
      PLN_TRY(pln_check_term(a, ends[i]));
  for (uint32_t i = 0; i < n; i++) {
    pln_interval set = {ends[2 * i], ends[2 * i + 1]};
    out = i == 0 ? set : combine(a, operation, out, set);
  }
  *min = out.min;
  *max = out.max;
  return a->status;
}

/* ----------------------------------------------------- common subexpressions
 */

static bool may_be_shared(const pln_analyzer *a, pln_term t) {
  pln_kind kind = pln_term_kind(a, t);
  return pln_at(a, t)->n > 0 && kind != PLN_RAMP && kind != PLN_BROADCAST;
}

/* uses[i]: how often the term is used, as a tree; operands come after their
 * users. */
static void count_uses(pln_analyzer *a, const pln_term_list *order,
                       uint32_t *uses, const uint32_t *place) {
  for (uint32_t i = order->n; i-- > 0;) {
    pln_term t = order->items[i];
    for (uint32_t k = 0; k < pln_at(a, t)->n; k++) {
      uint32_t *u = &uses[place[pln_term_operand(a, t, k)]];
      *u = UINT32_MAX - *u < uses[i] ? UINT32_MAX : *u + uses[i];
    }
  }
}

static void list_common(pln_analyzer *a, const pln_term_list *order,
                        const uint32_t *uses, uint32_t threshold, uint32_t cap,
                        pln_term *out, uint32_t *counts, uint32_t *n) {
  for (uint32_t i = order->n; i-- > 0;) {
    if (uses[i] < threshold || !may_be_shared(a, order->items[i]))
      continue;
    if (*n < cap) {
      out[*n] = order->items[i];
      counts[*n] = uses[i];
    }
    ++*n;
  }
}

pln_status pln_analyzer_common_subexprs(pln_analyzer *a, pln_term t,
                                        uint32_t threshold, uint32_t cap,
                                        pln_term *out, uint32_t *counts,
                                        uint32_t *n) {
  pln_term_list order;
  *n = 0;
  PLN_TRY(pln_check_term(a, t));
  if (!pln_term_order(a, t, NULL, &order))
    return a->status;
  size_t size = (order.n + (size_t)t + 1) * sizeof(uint32_t);
  uint32_t *uses = pln_mem_zeroed(a->engine, size);
  if (uses) {
    uint32_t *place = uses + order.n;
    for (uint32_t i = 0; i < order.n; i++)
      place[order.items[i]] = i;
    uses[order.n - 1] = 1;
    count_uses(a, &order, uses, place);
    list_common(a, &order, uses, threshold, cap, out, counts, n);
    pln_mem_free(a->engine, uses, size);
  }
  pln_term_list_free(a, &order);
  return uses ? a->status : pln_nomem(a->engine);
}
