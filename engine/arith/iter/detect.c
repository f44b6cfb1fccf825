/* arith/iter/detect.c: detection of iterator maps, and what uses it at once:
 * simplification and the normal form of one index. */

#include <stdlib.h>

#include "arith/iter/iter.h"

static pln_status check_terms(pln_analyzer *a, uint32_t n,
                              const pln_term *terms) {
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_check_term(a, terms[i]));
  return PLN_OK;
}

static pln_status check_ranges(pln_analyzer *a, uint32_t n,
                               const pln_term_range *ranges) {
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(pln_check_term(a, ranges[i].var));
    PLN_TRY(pln_check_term(a, ranges[i].min));
    PLN_TRY(pln_check_term(a, ranges[i].extent));
    if (pln_term_kind(a, ranges[i].var) != PLN_VAR ||
        !pln_is_index(a, ranges[i].var))
      return pln_diag_error(a->engine, PLN_ERR_TYPE, NULL,
                            "arith: an iterator is a Var of an integer dtype");
  }
  return PLN_OK;
}

/* No range depends on an iterator. */
static bool ranges_are_free(pln_iter_map *m) {
  for (uint32_t i = 0; i < m->n_ranges; i++)
    if (pln_iter_uses_input(m, m->ranges[i].min) ||
        pln_iter_uses_input(m, m->ranges[i].extent))
      return false;
  return true;
}

/* The index as at most one split. */
static uint32_t rewrite_index(pln_iter_map *m, pln_term t) {
  pln_iter_value v = pln_iter_rewrite(m, t);
  if (v.n > 0 && !pln_iter_fuse(m, &v, true))
    pln_iter_report(
        m, (pln_iter_error){.before = "Could not normalize iterators"});
  if (m->a->status != PLN_OK || !v.base)
    return PLN_NO_ITER;
  return pln_iter_sum_of(m, v.n, v.n ? &m->values.items[v.first] : NULL,
                         v.base);
}

static bool rewrite_indices(pln_iter_map *m, uint32_t n,
                            const pln_term *indices, uint32_t *sums,
                            bool collecting) {
  m->collecting = collecting;
  for (uint32_t i = 0; i < n; i++) {
    sums[i] = rewrite_index(m, indices[i]);
    if (sums[i] == PLN_NO_ITER || m->n_errors > 0)
      break;
  }
  m->collecting = false;
  return m->n_errors == 0 && m->a->status == PLN_OK;
}

static bool detect(pln_iter_map *m, uint32_t n, const pln_term *indices,
                   pln_term predicate, uint32_t *sums) {
  bool may_pad = m->level != PLN_ITER_BIJECTIVE;
  if (!ranges_are_free(m)) {
    pln_iter_report(m, (pln_iter_error){
                           .before = "Invalid iterators.  Iterators may not be "
                                     "expressions of each other."});
    return false;
  }
  if (!pln_iter_constrain(m, predicate))
    return false;
  if (may_pad && !rewrite_indices(m, n, indices, sums, true))
    return false;
  if ((!may_pad || m->padded) && !rewrite_indices(m, n, indices, sums, false))
    return false;
  if (pln_iter_check(m, n, sums))
    return true;
  pln_iter_report(
      m, (pln_iter_error){
             .before = may_pad ? "Mapped indices are not independent."
                               : "Index mapping does not form a bijective "
                                 "transform."});
  return false;
}

pln_status pln_iter_map_detect(pln_iter_map *m, uint32_t n,
                               const pln_term *indices, uint32_t n_ranges,
                               const pln_term_range *ranges, pln_term predicate,
                               pln_iter_level level, bool trivial,
                               uint32_t *sums, bool *found) {
  pln_analyzer *a = m->a;
  *found = false;
  if (predicate)
    PLN_TRY(pln_check_bool_term(a, predicate));
  PLN_TRY(check_ranges(a, n_ranges, ranges));
  PLN_TRY(check_terms(a, n, indices));
  a->status = PLN_OK;
  PLN_TRY(pln_iter_begin(m, n_ranges, ranges, level, trivial));
  *found = detect(m, n, indices, predicate, sums) && a->status == PLN_OK;
  return a->status;
}

/* ----------------------------------------------------------------- simplify
 */

/* A rotated split has other values than its expression. */
static pln_status try_simplify(pln_iter_map *m, uint32_t n,
                               const pln_term *indices, uint32_t n_ranges,
                               const pln_term_range *ranges, pln_term predicate,
                               pln_iter_level level, bool trivial,
                               uint32_t *sums, bool *found) {
  PLN_TRY(pln_iter_map_detect(m, n, indices, n_ranges, ranges, predicate, level,
                              trivial, sums, found));
  *found = *found && !m->rotated;
  return PLN_OK;
}

pln_status pln_iter_map_simplify(pln_iter_map *m, uint32_t n,
                                 const pln_term *indices, uint32_t n_ranges,
                                 const pln_term_range *ranges,
                                 pln_term predicate, pln_iter_level level,
                                 bool trivial, pln_term *out) {
  pln_engine *e = m->a->engine;
  bool found = false;
  size_t size = (n + (size_t)1) * sizeof(uint32_t);
  uint32_t *sums = pln_mem_zeroed(e, size);
  if (!sums)
    return pln_nomem(e);
  pln_status status = try_simplify(m, n, indices, n_ranges, ranges, predicate,
                                   level, trivial, sums, &found);
  if (status == PLN_OK && !found && predicate && level != PLN_ITER_BIJECTIVE)
    status = try_simplify(m, n, indices, n_ranges, ranges, PLN_NO_TERM, level,
                          trivial, sums, &found);
  for (uint32_t i = 0; i < n && status == PLN_OK; i++)
    out[i] = found ? pln_iter_sum_term(m, sums[i]) : indices[i];
  pln_mem_free(e, sums, size);
  return status == PLN_OK ? m->a->status : status;
}

/* ---------------------------------------------------------------- normalize
 */

typedef struct sort_key {
  pln_iter_split split;
  int64_t constant;
  uint32_t factors, place;
} sort_key;

/* Greater constants first, then more factors. */
static int by_scale(const void *p, const void *q) {
  const sort_key *x = p, *y = q;
  if (x->constant != y->constant)
    return x->constant > y->constant ? -1 : 1;
  if (x->factors != y->factors)
    return x->factors > y->factors ? -1 : 1;
  return x->place < y->place ? -1 : 1;
}

static void sort_splits(pln_iter_map *m, pln_iter_value *v) {
  pln_analyzer *a = m->a;
  sort_key *keys = pln_mem_new(a->engine, v->n * sizeof *keys);
  if (!keys) {
    pln_arith_fail(a, pln_nomem(a->engine));
    return;
  }
  for (uint32_t i = 0; i < v->n; i++) {
    pln_iter_split s = m->values.items[v->first + i];
    s.scale = pln_iter_product(m, s.scale, pln_const_like(a, s.scale, 1));
    keys[i].factors = pln_iter_factors(m, s.scale, &keys[i].constant);
    keys[i].place = i;
    keys[i].split = s;
  }
  qsort(keys, v->n, sizeof *keys, by_scale);
  for (uint32_t i = 0; i < v->n; i++)
    m->values.items[v->first + i] = keys[i].split;
  pln_mem_free(a->engine, keys, v->n * sizeof *keys);
}

pln_status pln_iter_map_normalize(pln_iter_map *m, pln_term expr,
                                  uint32_t n_ranges,
                                  const pln_term_range *ranges, uint32_t *sum) {
  pln_analyzer *a = m->a;
  PLN_TRY(check_ranges(a, n_ranges, ranges));
  PLN_TRY(pln_check_term(a, expr));
  PLN_TRY(pln_iter_begin(m, n_ranges, ranges, PLN_ITER_NO_CHECK, true));
  if (!ranges_are_free(m))
    return pln_diag_error(
        a->engine, PLN_ERR_ARGUMENT, NULL,
        "Invalid iterators.  Iterators may not be expressions of each other.");
  pln_iter_make_inputs(m);
  pln_iter_value v = pln_iter_rewrite(m, expr);
  pln_iter_combine(m, &v);
  if (v.n > 0 && a->status == PLN_OK)
    sort_splits(m, &v);
  if (a->status == PLN_OK)
    *sum =
        pln_iter_sum_of(m, v.n, v.n ? &m->values.items[v.first] : NULL, v.base);
  return a->status;
}
