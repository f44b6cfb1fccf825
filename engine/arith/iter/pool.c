/* arith/iter/pool.c: marks and sums of iterator maps, interned, and the terms
 * that they stand for. */

#include "arith/iter/iter.h"

pln_status pln_iter_map_new(pln_analyzer *a, pln_iter_map **out) {
  pln_iter_map *m = pln_mem_zeroed(a->engine, sizeof *m);
  if (!m)
    return pln_nomem(a->engine);
  m->a = a;
  *out = m;
  return PLN_OK;
}

static void free_items(pln_iter_map *m, void *items, size_t cap, size_t item) {
  if (items)
    pln_mem_free(m->a->engine, items, cap * item);
}

void pln_iter_map_free(pln_iter_map *m) {
  if (!m)
    return;
  free_items(m, m->marks, m->cap_marks, sizeof *m->marks);
  free_items(m, m->paddings, m->cap_paddings, sizeof *m->paddings);
  free_items(m, m->sums, m->cap_sums, sizeof *m->sums);
  free_items(m, m->fusions, m->cap_fusions, sizeof *m->fusions);
  free_items(m, m->splits.items, m->splits.cap, sizeof *m->splits.items);
  free_items(m, m->table, (size_t)m->mask + 1, sizeof *m->table);
  free_items(m, m->errors, m->cap_errors, sizeof *m->errors);
  free_items(m, m->values.items, m->values.cap, sizeof *m->values.items);
  free_items(m, m->value_of, m->cap_value_of, sizeof *m->value_of);
  free_items(m, m->value_at, m->cap_value_at, sizeof *m->value_at);
  free_items(m, m->ranges, m->n_ranges + (size_t)1, sizeof *m->ranges);
  free_items(m, m->input_of, m->n_ranges + (size_t)1, sizeof *m->input_of);
  free_items(m, m->constrained, m->cap_constrained, sizeof *m->constrained);
  pln_mem_free(m->a->engine, m, sizeof *m);
}

/* Makes room for one more item. */
static bool grow(pln_iter_map *m, void **items, uint32_t *cap, uint32_t n,
                 size_t item) {
  pln_status status =
      pln_mem_grow(m->a->engine, items, cap, (size_t)n + 1, item);
  pln_arith_fail(m->a, status);
  return status == PLN_OK;
}

bool pln_iter_push(pln_iter_map *m, pln_iter_splits *list, pln_iter_split s) {
  if (!grow(m, (void **)&list->items, &list->cap, list->n, sizeof s))
    return false;
  list->items[list->n++] = s;
  return true;
}

/* The nodes that the terms of the errors may have together, since each is
 * printed; errors beyond that are left out, but not the first. */
enum { MOST_REPORTED = 1 << 16 };

void pln_iter_report(pln_iter_map *m, pln_iter_error error) {
  uint64_t size = 1;
  if (error.x)
    size += pln_at(m->a, error.x)->size;
  if (error.y)
    size += pln_at(m->a, error.y)->size;
  if (m->n_errors > 0 && m->reported + size > MOST_REPORTED)
    return;
  m->reported += size;
  if (grow(m, (void **)&m->errors, &m->cap_errors, m->n_errors, sizeof error))
    m->errors[m->n_errors++] = error;
}

/* ---------------------------------------------------------------- interning
 */

static uint32_t mix(uint32_t h, uint32_t x) {
  h = (h ^ x) * UINT32_C(0x9E3779B1);
  return h ^ h >> 15;
}

static uint32_t mark_hash(const pln_iter_mark *k) {
  return mix(mix(mix(7, k->source), k->sum), k->extent);
}

static uint32_t sum_hash(uint32_t n, const pln_iter_split *s, pln_term base) {
  uint32_t h = mix(n + 1, base);
  for (uint32_t i = 0; i < n; i++)
    h = mix(mix(mix(mix(h, s[i].mark), s[i].lower_factor), s[i].extent),
            s[i].scale);
  return h;
}

static bool same_splits(const pln_iter_split *x, const pln_iter_split *y,
                        uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (x[i].mark != y[i].mark || x[i].lower_factor != y[i].lower_factor ||
        x[i].extent != y[i].extent || x[i].scale != y[i].scale)
      return false;
  return true;
}

static uint32_t entry_hash(const pln_iter_map *m, uint32_t entry) {
  uint32_t i = entry / 2 - 1;
  return entry % 2 ? m->sums[i].hash : mark_hash(&m->marks[i]);
}

static void insert(pln_iter_map *m, uint32_t entry) {
  uint32_t i = entry_hash(m, entry) & m->mask;
  while (m->table[i])
    i = (i + 1) & m->mask;
  m->table[i] = entry;
}

/* The table is at most half full. */
static bool widen(pln_iter_map *m) {
  if (m->table && 2 * (m->n_table + 1) <= m->mask)
    return true;
  uint32_t size = m->table ? 2 * (m->mask + 1) : 32;
  uint32_t *table = pln_mem_zeroed(m->a->engine, size * sizeof *table);
  if (!table) {
    pln_arith_fail(m->a, pln_nomem(m->a->engine));
    return false;
  }
  free_items(m, m->table, (size_t)m->mask + 1, sizeof *m->table);
  m->table = table;
  m->mask = size - 1;
  for (uint32_t i = 0; i < m->n_marks; i++)
    insert(m, 2 * (i + 1));
  for (uint32_t i = 0; i < m->n_sums; i++)
    insert(m, 2 * (i + 1) + 1);
  return true;
}

static uint32_t find_mark(const pln_iter_map *m, const pln_iter_mark *k) {
  for (uint32_t i = mark_hash(k) & m->mask; m->table[i];
       i = (i + 1) & m->mask) {
    if (m->table[i] % 2)
      continue;
    const pln_iter_mark *x = &m->marks[m->table[i] / 2 - 1];
    if (x->source == k->source && x->sum == k->sum && x->extent == k->extent)
      return m->table[i] / 2 - 1;
  }
  return PLN_NO_ITER;
}

uint32_t pln_iter_mark_of(pln_iter_map *m, pln_term source, uint32_t sum,
                          pln_term extent) {
  pln_iter_mark k = {source, sum, extent};
  if (m->a->status != PLN_OK || !widen(m))
    return PLN_NO_ITER;
  uint32_t found = find_mark(m, &k);
  if (found != PLN_NO_ITER)
    return found;
  if (!grow(m, (void **)&m->marks, &m->cap_marks, m->n_marks, sizeof k) ||
      !grow(m, (void **)&m->paddings, &m->cap_paddings, m->n_marks,
            sizeof *m->paddings))
    return PLN_NO_ITER;
  m->paddings[m->n_marks] =
      (pln_iter_padding){.padded = PLN_NO_ITER, .origin = PLN_NO_ITER};
  m->marks[m->n_marks++] = k;
  m->n_table++;
  insert(m, 2 * m->n_marks);
  return m->n_marks - 1;
}

static uint32_t find_sum(const pln_iter_map *m, uint32_t hash, uint32_t n,
                         const pln_iter_split *splits, pln_term base) {
  for (uint32_t i = hash & m->mask; m->table[i]; i = (i + 1) & m->mask) {
    if (m->table[i] % 2 == 0)
      continue;
    const pln_iter_row *x = &m->sums[m->table[i] / 2 - 1];
    if (x->hash == hash && x->n == n && x->base == base &&
        (n == 0 || same_splits(&m->splits.items[x->first], splits, n)))
      return m->table[i] / 2 - 1;
  }
  return PLN_NO_ITER;
}

uint32_t pln_iter_sum_of(pln_iter_map *m, uint32_t n,
                         const pln_iter_split *splits, pln_term base) {
  if (m->a->status != PLN_OK || !widen(m))
    return PLN_NO_ITER;
  pln_iter_row row = {m->splits.n, n, base, sum_hash(n, splits, base)};
  uint32_t found = find_sum(m, row.hash, n, splits, base);
  if (found != PLN_NO_ITER)
    return found;
  if (!grow(m, (void **)&m->sums, &m->cap_sums, m->n_sums, sizeof row) ||
      !grow(m, (void **)&m->fusions, &m->cap_fusions, m->n_sums,
            sizeof *m->fusions))
    return PLN_NO_ITER;
  for (uint32_t i = 0; i < n; i++)
    if (!pln_iter_push(m, &m->splits, splits[i]))
      return PLN_NO_ITER;
  m->fusions[m->n_sums] = (pln_iter_fusion){PLN_NO_ITER, 0, PLN_NO_ITER, false};
  m->sums[m->n_sums++] = row;
  m->n_table++;
  insert(m, 2 * m->n_sums + 1);
  return m->n_sums - 1;
}

/* ------------------------------------------------------------------- terms
 *
 * Marks nest as deep as the user's expression does. So the terms of all marks
 * below are made in their order. */

static bool needs_no_division(pln_iter_map *m, const pln_iter_split *s) {
  return pln_iter_equal(m, s->extent, m->marks[s->mark].extent) &&
         pln_is_value(m->a, s->lower_factor, 1);
}

/* Of a split of `source`, which is the term of its mark. */
static pln_term split_term(pln_iter_map *m, const pln_iter_split *s,
                           pln_term source) {
  pln_analyzer *a = m->a;
  pln_term extent = m->marks[s->mark].extent;
  if (needs_no_division(m, s))
    return pln_mul(a, source, s->scale);
  pln_term span = pln_mul(a, s->lower_factor, s->extent);
  if (!pln_iter_equal(m, extent, span))
    source = pln_fold(a, PLN_PRIM_FLOORMOD, source, span);
  else if (pln_is_value(a, s->extent, 1) && !pln_is_value(a, extent, 1))
    return pln_const_like(a, s->extent, 0);
  source = pln_fold(a, PLN_PRIM_FLOORDIV, source, s->lower_factor);
  return pln_mul(a, source, s->scale);
}

static pln_term sum_term(pln_iter_map *m, uint32_t sum, const pln_term *terms) {
  pln_iter_row row = m->sums[sum];
  pln_term out = pln_const_like(m->a, row.base, 0);
  for (uint32_t i = 0; i < row.n; i++) {
    pln_iter_split s = m->splits.items[row.first + i];
    out = pln_add(m->a, out, split_term(m, &s, terms[s.mark]));
  }
  return pln_add(m->a, out, row.base);
}

/* Marks the marks that `mark` uses; those have smaller numbers. */
static void need_marks(const pln_iter_map *m, uint32_t mark, uint8_t *needed) {
  needed[mark] = 1;
  for (uint32_t k = mark + 1; k-- > 0;) {
    if (!needed[k] || m->marks[k].source)
      continue;
    pln_iter_row row = m->sums[m->marks[k].sum];
    for (uint32_t i = 0; i < row.n; i++)
      needed[m->splits.items[row.first + i].mark] = 1;
  }
}

pln_term pln_iter_mark_term(pln_iter_map *m, uint32_t mark) {
  pln_analyzer *a = m->a;
  if (mark == PLN_NO_ITER || m->marks[mark].source)
    return mark == PLN_NO_ITER ? PLN_NO_TERM : m->marks[mark].source;
  size_t size = (mark + (size_t)1) * (sizeof(pln_term) + 1);
  pln_term *terms = pln_mem_zeroed(a->engine, size);
  if (!terms)
    return pln_arith_fail(a, pln_nomem(a->engine));
  uint8_t *needed = (uint8_t *)(terms + mark + 1);
  need_marks(m, mark, needed);
  for (uint32_t k = 0; k <= mark; k++)
    if (needed[k])
      terms[k] = m->marks[k].source ? m->marks[k].source
                                    : sum_term(m, m->marks[k].sum, terms);
  pln_term out = terms[mark];
  pln_mem_free(a->engine, terms, size);
  return out;
}

pln_term pln_iter_split_term(pln_iter_map *m, const pln_iter_split *s) {
  return split_term(m, s, pln_iter_mark_term(m, s->mark));
}

pln_term pln_iter_sum_term(pln_iter_map *m, uint32_t sum) {
  if (sum == PLN_NO_ITER)
    return PLN_NO_TERM;
  pln_iter_row row = m->sums[sum];
  pln_term out = pln_const_like(m->a, row.base, 0);
  for (uint32_t i = 0; i < row.n; i++) {
    pln_iter_split s = m->splits.items[row.first + i];
    out = pln_add(m->a, out, pln_iter_split_term(m, &s));
  }
  return pln_add(m->a, out, row.base);
}

/* ------------------------------------------------------------------- proofs
 */

bool pln_iter_equal(pln_iter_map *m, pln_term x, pln_term y) {
  pln_analyzer *a = m->a;
  if (!x || !y || x == y)
    return x && x == y;
  if (pln_is_const(a, x) && pln_is_const(a, y))
    return pln_const(a, x) == pln_const(a, y);
  return pln_prove(a, pln_fold(a, PLN_PRIM_EQ, x, y), 0);
}

bool pln_iter_divisible(pln_iter_map *m, pln_term x, pln_term y) {
  pln_analyzer *a = m->a;
  if (!x || !y || pln_is_value(a, y, 0))
    return false;
  if (pln_is_const(a, x) && pln_is_const(a, y))
    return pln_floor_mod(pln_const(a, x), pln_const(a, y)) == 0;
  if (pln_iter_equal(m, x, y))
    return true;
  pln_term rest = pln_fold(a, PLN_PRIM_FLOORMOD, x, y);
  return pln_prove(
      a, pln_fold(a, PLN_PRIM_EQ, rest, pln_const_like(a, rest, 0)), 0);
}

/* Multiplies *rest by what is no constant in t, and *constant by what is. */
static uint32_t collect_factors(pln_iter_map *m, pln_term t, pln_term *rest,
                                int64_t *constant) {
  pln_analyzer *a = m->a;
  pln_term_list stack = {0};
  uint32_t n = 0;
  pln_term_list_push(a, &stack, t);
  while (stack.n > 0 && a->status == PLN_OK) {
    t = stack.items[--stack.n];
    pln_term_node node = *pln_at(a, t);
    int64_t product;
    if (node.kind == PLN_PRIM_MUL) {
      pln_term_list_push(a, &stack, node.b);
      pln_term_list_push(a, &stack, node.a);
    } else if (pln_is_const(a, t) &&
               pln_mul_fits(*constant, pln_const(a, t), &product)) {
      *constant = product;
    } else {
      if (rest)
        *rest = pln_mul(a, *rest, t);
      n++;
    }
  }
  pln_term_list_free(a, &stack);
  return n;
}

uint32_t pln_iter_factors(pln_iter_map *m, pln_term t, int64_t *constant) {
  *constant = 1;
  return t ? collect_factors(m, t, NULL, constant) : 0;
}

pln_term pln_iter_product(pln_iter_map *m, pln_term x, pln_term y) {
  if (!x || !y)
    return PLN_NO_TERM;
  pln_term rest = pln_const_like(m->a, x, 1);
  int64_t constant = 1;
  collect_factors(m, x, &rest, &constant);
  collect_factors(m, y, &rest, &constant);
  return constant == 1 ? rest : pln_mul_const(m->a, rest, constant);
}

/* ------------------------------------------------------------ public access
 */

pln_status pln_iter_map_mark(pln_iter_map *m, pln_term source, uint32_t sum,
                             pln_term extent, uint32_t *out) {
  PLN_TRY(pln_check_term(m->a, extent));
  if (source)
    PLN_TRY(pln_check_term(m->a, source));
  if (source ? sum != PLN_NO_ITER : sum >= m->n_sums)
    return pln_diag_error(m->a->engine, PLN_ERR_ARGUMENT, NULL,
                          "arith: an IterMark has one source");
  *out = pln_iter_mark_of(m, source, sum, extent);
  return m->a->status;
}

pln_status pln_iter_map_sum(pln_iter_map *m, uint32_t n,
                            const pln_iter_split *splits, pln_term base,
                            uint32_t *out) {
  PLN_TRY(pln_check_term(m->a, base));
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(pln_check_term(m->a, splits[i].lower_factor));
    PLN_TRY(pln_check_term(m->a, splits[i].extent));
    PLN_TRY(pln_check_term(m->a, splits[i].scale));
    if (splits[i].mark >= m->n_marks)
      return pln_diag_error(m->a->engine, PLN_ERR_ARGUMENT, NULL,
                            "arith: no such IterMark");
  }
  *out = pln_iter_sum_of(m, n, splits, base);
  return m->a->status;
}

pln_iter_mark pln_iter_map_mark_at(const pln_iter_map *m, uint32_t mark) {
  return mark < m->n_marks ? m->marks[mark] : (pln_iter_mark){0};
}

pln_iter_sum pln_iter_map_sum_at(const pln_iter_map *m, uint32_t sum) {
  if (sum >= m->n_sums)
    return (pln_iter_sum){0};
  const pln_iter_row *row = &m->sums[sum];
  return (pln_iter_sum){row->n ? &m->splits.items[row->first] : NULL, row->n,
                        row->base};
}

uint32_t pln_iter_map_error_count(const pln_iter_map *m) {
  return m->n_errors;
}

pln_iter_error pln_iter_map_error_at(const pln_iter_map *m, uint32_t i) {
  return i < m->n_errors ? m->errors[i] : (pln_iter_error){0};
}

pln_term pln_iter_map_padding(const pln_iter_map *m) {
  return m->padding;
}

pln_status pln_iter_map_expr(pln_iter_map *m, uint32_t sum, pln_term *out) {
  if (sum >= m->n_sums)
    return pln_diag_error(m->a->engine, PLN_ERR_ARGUMENT, NULL,
                          "arith: no such IterSumExpr");
  PLN_TRY(pln_check_term(m->a, m->sums[sum].base));
  *out = pln_iter_sum_term(m, sum);
  return m->a->status;
}
