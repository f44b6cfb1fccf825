/* arith/iter/fuse.c: fuses a sum of splits into one iterator.
 *
 * Called by the rewriting of iterator maps.
 *
 *     x1 * c1 + ... + xn * cn = (x1 * s1 + ... + xn) * cn
 *
 * is one new iterator times cn, if each scale is the product of the extents
 * behind it. Constrained sums of iterators, which have another extent than that
 * product, are matched as a whole. */

#include "arith/iter/iter.h"

/* A search over the splits of a value. */
typedef struct fusing {
  pln_iter_map *m;
  pln_iter_value *v;
  bool *used;
  uint32_t unit; /* the first split of extent 1, or v->n */
} fusing;

#define NONE UINT32_MAX

static pln_iter_split *at(const fusing *f, uint32_t i) {
  return &f->m->values.items[f->v->first + i];
}

static bool is_one(const fusing *f, pln_term t) {
  return pln_is_value(f->m->a, t, 1);
}

static bool begin(fusing *f, pln_iter_map *m, pln_iter_value *v) {
  *f = (fusing){.m = m, .v = v, .unit = v->n};
  f->used = pln_mem_zeroed(m->a->engine, v->n + (size_t)1);
  if (!f->used)
    pln_arith_fail(m->a, pln_nomem(m->a->engine));
  for (uint32_t i = v->n; i-- > 0;)
    if (is_one(f, at(f, i)->extent))
      f->unit = i;
  return f->used != NULL;
}

static void end(fusing *f) {
  if (f->used)
    pln_mem_free(f->m->a->engine, f->used, f->v->n + (size_t)1);
}

static bool may_take(const fusing *f, uint32_t i, uint32_t mark) {
  return !f->used[i] && (mark == PLN_NO_ITER || at(f, i)->mark == mark);
}

/* The split of the least constant scale, from the right; of equal ones, one of
 * extent 1. Else that of the fewest factors. Of one mark, if it is given. */
static uint32_t find_base(const fusing *f, uint32_t mark, uint32_t end) {
  pln_analyzer *a = f->m->a;
  uint32_t best = NONE, least = 0;
  for (uint32_t i = end; i-- > 0;) {
    pln_term scale = at(f, i)->scale;
    if (!may_take(f, i, mark) || !pln_is_const(a, scale))
      continue;
    int64_t c = pln_const(a, scale);
    int64_t before = best == NONE ? 0 : pln_const(a, at(f, best)->scale);
    if (best == NONE || c < before ||
        (c == before && is_one(f, at(f, i)->extent) &&
         !is_one(f, at(f, best)->extent)))
      best = i;
  }
  if (best != NONE)
    return best;
  for (uint32_t i = end; i-- > 0;) {
    int64_t constant;
    if (!may_take(f, i, mark))
      continue;
    uint32_t n = pln_iter_factors(f->m, at(f, i)->scale, &constant);
    n += constant != 1;
    if (best == NONE || n < least) {
      best = i;
      least = n;
    }
  }
  return best;
}

/* The split of that scale, from the right; those of extent 1 come first. */
static uint32_t find_scale(const fusing *f, pln_term scale, uint32_t mark,
                           uint32_t end) {
  uint32_t found = NONE;
  for (uint32_t i = end; i-- > 0;) {
    if (!may_take(f, i, mark) || !pln_iter_equal(f->m, at(f, i)->scale, scale))
      continue;
    if (is_one(f, at(f, i)->extent))
      return i;
    if (found == NONE)
      found = i;
    if (i <= f->unit)
      return found;
  }
  return found;
}

static bool proves_ge(pln_analyzer *a, pln_term x, pln_term y) {
  return pln_proves_ge(a, pln_simplify_term(a, pln_sub(a, x, y), 2), 0);
}

/* The split of the greatest scale that is at most `scale`. */
static uint32_t find_below(const fusing *f, pln_term scale) {
  pln_analyzer *a = f->m->a;
  uint32_t found = NONE;
  for (uint32_t i = f->v->n; i-- > 0;) {
    pln_term s = at(f, i)->scale;
    if (f->used[i] || !proves_ge(a, scale, s) || !pln_proves_ge(a, s, 0))
      continue;
    if (found == NONE ||
        proves_ge(a, s, pln_add_const(a, at(f, found)->scale, 1)))
      found = i;
  }
  return found;
}

/* ----------------------------------------------------------------- combine
 */

/* True if another split has the mark of split i. Sums have few splits. */
static bool shares_mark(const fusing *f, uint32_t i) {
  for (uint32_t k = 0; k < f->v->n; k++)
    if (k != i && at(f, k)->mark == at(f, i)->mark)
      return true;
  return false;
}

/* (x // (c * s)) % m * (s * t) + (x // c) % s * t = (x // c) % (m * s) * t */
static pln_iter_split join(fusing *f, uint32_t first, uint32_t end) {
  pln_iter_map *m = f->m;
  pln_iter_split low = *at(f, first);
  f->used[first] = true;
  for (;;) {
    pln_term scale = pln_iter_product(m, low.extent, low.scale);
    uint32_t i = find_scale(f, scale, low.mark, end);
    if (i == NONE)
      return low;
    pln_term factor = pln_iter_product(m, low.lower_factor, low.extent);
    if (!pln_iter_equal(m, at(f, i)->lower_factor, factor))
      return low;
    f->used[i] = true;
    low.extent = pln_iter_product(m, at(f, i)->extent, low.extent);
  }
}

static void reverse(pln_iter_split *items, uint32_t n) {
  pln_mem_reverse(items, n, sizeof *items);
}

static bool any_shared(const fusing *f) {
  for (uint32_t i = 0; i < f->v->n; i++)
    if (shares_mark(f, i))
      return true;
  return false;
}

static void combine(fusing *f) {
  pln_iter_map *m = f->m;
  uint32_t first = m->values.n;
  for (uint32_t i = f->v->n; i-- > 0 && m->a->status == PLN_OK;) {
    pln_iter_split s = *at(f, i);
    while (!f->used[i]) {
      uint32_t base = shares_mark(f, i) ? find_base(f, s.mark, i + 1) : i;
      pln_iter_split joined = join(f, base, i + 1);
      pln_iter_push(m, &m->values, joined);
    }
  }
  uint32_t n = m->values.n - first;
  reverse(&m->values.items[first], n);
  f->v->first = first;
  f->v->n = n;
}

bool pln_iter_combine(pln_iter_map *m, pln_iter_value *v) {
  fusing f;
  uint32_t n = v->n;
  if (n <= 1 || !begin(&f, m, v))
    return false;
  bool shared = any_shared(&f);
  if (shared)
    combine(&f);
  pln_mem_free(m->a->engine, f.used, n + (size_t)1);
  return shared;
}

/* -------------------------------------------------------------------- fuse
 */

/* Equal but for the scale. */
static bool same_split(const pln_iter_split *x, const pln_iter_split *y) {
  return x->mark == y->mark && x->lower_factor == y->lower_factor &&
         x->extent == y->extent;
}

/* The longest constrained sum that ends with the split. */
static uint32_t find_constraint(const fusing *f, uint32_t i) {
  const pln_iter_map *m = f->m;
  uint32_t found = PLN_NO_ITER;
  for (uint32_t k = 0; k < m->n_constrained; k++) {
    const pln_iter_row *row = &m->sums[m->constrained[k]];
    const pln_iter_split *last = &m->splits.items[row->first + row->n - 1];
    if (same_split(at(f, i), last) &&
        (found == PLN_NO_ITER || m->sums[found].n < row->n))
      found = m->constrained[k];
  }
  return found;
}

static uint32_t find_part(const fusing *f, pln_iter_split part,
                          pln_term scale) {
  pln_term wanted = pln_mul(f->m->a, part.scale, scale);
  for (uint32_t k = 0; k < f->v->n; k++)
    if (!f->used[k] && same_split(at(f, k), &part) &&
        pln_iter_equal(f->m, wanted, at(f, k)->scale))
      return k;
  return NONE;
}

/* What grows while the splits are taken, from the least scale on. */
typedef struct fusion {
  pln_term base_scale, scale; /* scale: what comes next */
  pln_term offset, tail;
  pln_iter_splits flat, groups; /* reversed */
} fusion;

/* The parts of a constrained sum as one iterator. */
static bool take_constrained(fusing *f, fusion *u, uint32_t sum, pln_term scale,
                             uint32_t *taken) {
  pln_iter_map *m = f->m;
  pln_analyzer *a = m->a;
  pln_iter_row row = m->sums[sum];
  for (uint32_t k = row.n; k-- > 0;) {
    uint32_t i = find_part(f, m->splits.items[row.first + k], scale);
    if (i == NONE || !pln_iter_push(m, &u->flat, *at(f, i)))
      return false;
    f->used[i] = true;
  }
  pln_iter_fusion known = m->fusions[sum];
  pln_term inner = pln_fold(a, PLN_PRIM_FLOORDIV, scale, u->base_scale);
  pln_iter_push(m, &u->groups, pln_iter_whole(m, known.mark, inner));
  u->offset = pln_add(a, u->offset, pln_mul(a, known.offset, scale));
  u->scale = pln_iter_product(m, m->marks[known.mark].extent, scale);
  *taken += row.n;
  return a->status == PLN_OK;
}

static bool take_split(fusing *f, fusion *u, uint32_t i, pln_term scale,
                       uint32_t *taken) {
  pln_iter_map *m = f->m;
  pln_analyzer *a = m->a;
  pln_iter_split s = *at(f, i);
  f->used[i] = true;
  s.scale = pln_simplify_term(
      a, pln_fold(a, PLN_PRIM_FLOORDIV, s.scale, u->base_scale), 2);
  u->scale = pln_iter_product(m, s.extent, scale);
  ++*taken;
  return pln_iter_push(m, &u->flat, s) && pln_iter_push(m, &u->groups, s);
}

/* The next split: of the scale that is expected, or, unless the map has to be
 * bijective, of the next smaller one. */
static uint32_t find_next(const fusing *f, const fusion *u, uint32_t base,
                          bool first, bool *exact) {
  uint32_t i = first ? base : find_scale(f, u->scale, PLN_NO_ITER, f->v->n);
  *exact = i != NONE;
  if (i == NONE && f->m->level != PLN_ITER_BIJECTIVE &&
      is_one(f, u->base_scale))
    i = find_below(f, u->scale);
  return i;
}

static bool take_all(fusing *f, fusion *u, uint32_t base) {
  pln_analyzer *a = f->m->a;
  for (uint32_t taken = 0; taken < f->v->n;) {
    bool exact, ok;
    uint32_t i = find_next(f, u, base, taken == 0, &exact);
    if (i == NONE)
      return false;
    pln_term scale = exact ? u->scale : at(f, i)->scale;
    if (!exact)
      u->tail = pln_add(a, u->tail, pln_sub(a, u->scale, scale));
    uint32_t sum = find_constraint(f, i);
    ok = sum == PLN_NO_ITER ? take_split(f, u, i, scale, &taken)
                            : take_constrained(f, u, sum, scale, &taken);
    if (!ok || a->status != PLN_OK)
      return false;
  }
  return true;
}

/* The mark of a flattened sum, made if there is none. False: its constraints
 * add something else than they did. */
static bool make_mark(pln_iter_map *m, fusion *u, uint32_t *mark) {
  pln_analyzer *a = m->a;
  pln_term zero = pln_const_like(a, u->scale, 0);
  reverse(u->flat.items, u->flat.n);
  reverse(u->groups.items, u->groups.n);
  uint32_t flat = pln_iter_sum_of(m, u->flat.n, u->flat.items, zero);
  if (flat == PLN_NO_ITER)
    return false;
  *mark = m->fusions[flat].mark;
  if (*mark != PLN_NO_ITER)
    return pln_iter_equal(m, u->offset,
                          pln_mul(a, m->fusions[flat].offset, u->base_scale));
  pln_term extent =
      pln_add(a, pln_fold(a, PLN_PRIM_DIV, u->scale, u->base_scale), u->tail);
  uint32_t sum = pln_iter_sum_of(m, u->groups.n, u->groups.items, zero);
  *mark = pln_iter_mark_of(m, PLN_NO_TERM, sum, extent);
  if (*mark == PLN_NO_ITER)
    return false;
  m->fusions[flat].mark = *mark;
  m->fusions[flat].offset = u->offset;
  m->fusions[sum].flat = flat;
  return true;
}

static bool fuse(fusing *f) {
  pln_iter_map *m = f->m;
  uint32_t base = find_base(f, PLN_NO_ITER, f->v->n), mark;
  if (base == NONE)
    return false;
  pln_term scale = at(f, base)->scale, zero = pln_const_like(m->a, scale, 0);
  fusion u = {
      .base_scale = scale, .scale = scale, .offset = zero, .tail = zero};
  bool ok = take_all(f, &u, base) && make_mark(m, &u, &mark);
  if (ok) {
    pln_iter_split whole = pln_iter_whole(m, mark, scale);
    f->v->first = m->values.n;
    ok = pln_iter_push(m, &m->values, whole);
    f->v->base = pln_add(m->a, f->v->base, u.offset);
  }
  if (u.flat.items)
    pln_mem_free(m->a->engine, u.flat.items,
                 u.flat.cap * sizeof(pln_iter_split));
  if (u.groups.items)
    pln_mem_free(m->a->engine, u.groups.items,
                 u.groups.cap * sizeof(pln_iter_split));
  return ok;
}

bool pln_iter_fuse(pln_iter_map *m, pln_iter_value *v, bool early) {
  fusing f;
  if (pln_iter_combine(m, v) && v->n <= 1 && early)
    return true;
  if (v->n == 0 || !begin(&f, m, v))
    return false;
  bool ok = fuse(&f);
  end(&f);
  if (ok)
    v->n = 1;
  return ok;
}
