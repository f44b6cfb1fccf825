/* type/dim_sum.c: sums of products of atoms, the normal form of symbolic dims.
 *
 * Called by type/dim.c. A sum that overflows or exceeds the limits of
 * type/dim.h becomes unknown and stays so. Invariant: terms are sorted and none
 * is zero. */

#include "ir/type/dim.h"

/* ---------------------------------------------------------------- ordering */

static int compare_numbers(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int compare_text(pln_slice a, pln_slice b) {
  size_t size = a.size < b.size ? a.size : b.size;
  int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
  return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* Recursion is bounded by PLN_DIM_MAX_DEPTH: operands of a call are less deep
 * than the call. */
static int compare_atoms(const pln_engine *engine, uint32_t a, uint32_t b) {
  if (a == b)
    return 0;
  const pln_dim_row *x = pln_dim_row_of(engine, a);
  const pln_dim_row *y = pln_dim_row_of(engine, b);
  if (x->kind != y->kind)
    return x->kind < y->kind ? -1 : 1;
  if (x->kind == PLN_DIM_SYMBOL)
    return compare_text(pln_symbol_text(engine, (pln_symbol)x->symbol),
                        pln_symbol_text(engine, (pln_symbol)y->symbol));
  if (x->op != y->op)
    return x->op < y->op ? -1 : 1;
  int order = pln_dim_compare(engine, x->a, y->a);
  return order ? order : pln_dim_compare(engine, x->b, y->b);
}

/* Higher degree first, then lexicographic by atoms. This order is compatible
 * with multiplication, which exact division relies on. */
static int compare_products(const pln_engine *engine, const pln_dim_term *x,
                            const pln_dim_term *y) {
  if (x->degree != y->degree)
    return x->degree > y->degree ? -1 : 1;
  for (uint32_t i = 0; i < x->degree; i++) {
    int order = compare_atoms(engine, x->factors[i], y->factors[i]);
    if (order)
      return order;
  }
  return 0;
}

/* The terms of an expression, in place; an atom is converted to one term in
 * `room`. */
static uint32_t view_terms(const pln_dim_row *row, uint32_t id,
                           pln_dim_term *room, const pln_dim_term **out) {
  if (row->kind == PLN_DIM_SUM) {
    *out = (const pln_dim_term *)(row + 1);
    return row->n_terms;
  }
  *room = (pln_dim_term){.coef = 1, .degree = 1, .factors = {id}};
  *out = room;
  return 1;
}

int pln_dim_compare(const pln_engine *engine, pln_dim a, pln_dim b) {
  if (a == b)
    return 0;
  if (PLN_DIM_IS_CONST(a) || PLN_DIM_IS_CONST(b))
    return PLN_DIM_IS_CONST(a) && PLN_DIM_IS_CONST(b) ? compare_numbers(a, b)
           : PLN_DIM_IS_CONST(a)                      ? 1
                                                      : -1;
  const pln_dim_row *x = pln_dim_row_of(engine, pln_dim_id(a));
  const pln_dim_row *y = pln_dim_row_of(engine, pln_dim_id(b));
  pln_dim_term rooms[2];
  const pln_dim_term *s, *t;
  uint32_t n = view_terms(x, pln_dim_id(a), &rooms[0], &s);
  uint32_t m = view_terms(y, pln_dim_id(b), &rooms[1], &t);
  for (uint32_t i = 0; i < n && i < m; i++) {
    int order = compare_products(engine, &s[i], &t[i]);
    order = order ? order : compare_numbers(s[i].coef, t[i].coef);
    if (order)
      return order;
  }
  if (n != m)
    return n < m ? -1 : 1;
  return compare_numbers(x->kind == PLN_DIM_SUM ? x->a : 0,
                         y->kind == PLN_DIM_SUM ? y->a : 0);
}

/* ------------------------------------------------------------------ ranges */

static const int64_t far = INT64_C(1) << 62;

/* The product of two range bounds. 0 times infinity is 0, because the bound 0
 * is attained. */
static int64_t multiply_ends(int64_t a, int64_t b) {
  int64_t product;
  if (a == 0 || b == 0)
    return 0;
  bool infinite = a == INT64_MIN || a == INT64_MAX || b == INT64_MIN ||
                  b == INT64_MAX || __builtin_mul_overflow(a, b, &product);
  if (infinite)
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
  return product;
}

static pln_dim_range multiply_ranges(pln_dim_range a, pln_dim_range b) {
  int64_t ends[4] = {multiply_ends(a.low, b.low), multiply_ends(a.low, b.high),
                     multiply_ends(a.high, b.low),
                     multiply_ends(a.high, b.high)};
  pln_dim_range out = {ends[0], ends[0]};
  for (int i = 1; i < 4; i++) {
    out.low = ends[i] < out.low ? ends[i] : out.low;
    out.high = ends[i] > out.high ? ends[i] : out.high;
  }
  out.low = out.low > far ? far : out.low;
  out.high = out.high < -far ? -far : out.high;
  return out;
}

static pln_dim_range add_ranges(pln_dim_range a, pln_dim_range b) {
  pln_dim_range out;
  if (a.low == INT64_MIN || b.low == INT64_MIN)
    out.low = INT64_MIN;
  else if (__builtin_add_overflow(a.low, b.low, &out.low))
    out.low = a.low > 0 ? far : INT64_MIN;
  if (a.high == INT64_MAX || b.high == INT64_MAX)
    out.high = INT64_MAX;
  else if (__builtin_add_overflow(a.high, b.high, &out.high))
    out.high = a.high < 0 ? -far : INT64_MAX;
  return out;
}

static pln_dim_range term_range(const pln_engine *engine,
                                const pln_dim_term *term) {
  pln_dim_range range = {term->coef, term->coef};
  for (uint32_t i = 0; i < term->degree; i++)
    range =
        multiply_ranges(range, pln_dim_row_of(engine, term->factors[i])->range);
  return range;
}

/* The number d of a term c * floor(x / d), which may be 1; *x is x. 0: the term
 * has another form. */
static int64_t quotient_divisor(const pln_engine *engine,
                                const pln_dim_term *term, pln_dim *x) {
  if (term->degree != 1)
    return 0;
  const pln_dim_row *row = pln_dim_row_of(engine, term->factors[0]);
  *x = pln_dim_of_id(term->factors[0]);
  if (row->kind != PLN_DIM_CALL || row->op != PLN_DIM_FLOORDIV ||
      !PLN_DIM_IS_CONST(row->b) || row->b < 1)
    return 1;
  *x = row->a;
  return row->b;
}

/* c * floor(x / d) - c * m * floor(x / (d * m)) is c times a remainder of m,
 * for c > 0: a bound on both terms together, which each alone does not give. */
static bool remainder_range(const pln_engine *engine, const pln_dim_term *term,
                            const pln_dim_term *coarse, pln_dim_range *out) {
  pln_dim x = 0, y = 0;
  int64_t d = quotient_divisor(engine, term, &x);
  int64_t whole = quotient_divisor(engine, coarse, &y);
  if (term->coef < 1 || coarse->coef >= 0 || !d || !whole || x != y ||
      whole <= d || whole % d || coarse->coef % term->coef ||
      coarse->coef / term->coef != -(whole / d))
    return false;
  *out = (pln_dim_range){0, -(coarse->coef + term->coef)};
  return true;
}

/* Finds the unmatched term that `coarse` is subtracted from. */
static bool find_remainder(const pln_engine *engine, const pln_sum *sum,
                           uint32_t coarse, uint64_t *matched,
                           pln_dim_range *out) {
  for (uint32_t i = 0; i < sum->n; i++)
    if (!(*matched >> i & 1) && i != coarse &&
        remainder_range(engine, &sum->terms[i], &sum->terms[coarse], out)) {
      *matched |= (uint64_t)1 << i | (uint64_t)1 << coarse;
      return true;
    }
  return false;
}

/* A sum has at most PLN_DIM_MAX_TERMS terms, one bit each. */
pln_dim_range pln_sum_range(const pln_engine *engine, const pln_sum *sum) {
  pln_dim_range range = {sum->constant, sum->constant}, pair;
  uint64_t matched = 0;
  for (uint32_t i = 0; i < sum->n; i++)
    if (sum->terms[i].coef < 0 && sum->n > 1 &&
        find_remainder(engine, sum, i, &matched, &pair))
      range = add_ranges(range, pair);
  for (uint32_t i = 0; i < sum->n; i++)
    if (!(matched >> i & 1))
      range = add_ranges(range, term_range(engine, &sum->terms[i]));
  return range;
}

pln_dim_range pln_dim_range_of(const pln_engine *engine, pln_dim dim) {
  if (PLN_DIM_IS_CONST(dim))
    return (pln_dim_range){dim, dim};
  if (dim == PLN_DIM_UNKNOWN)
    return (pln_dim_range){INT64_MIN, INT64_MAX};
  return pln_dim_row_of(engine, pln_dim_id(dim))->range;
}

/* -------------------------------------------------------------- arithmetic */

void pln_sum_zero(pln_sum *sum) {
  sum->constant = 0;
  sum->n = 0;
  sum->unknown = false;
}

void pln_sum_load(const pln_engine *engine, pln_dim dim, pln_sum *out) {
  pln_sum_zero(out);
  pln_sum_add(engine, out, 1, dim);
}

/* The position of a product among the sorted terms, present or not. */
static uint32_t find_term_place(const pln_engine *engine, const pln_sum *sum,
                                const pln_dim_term *term, bool *there) {
  uint32_t low = 0, high = sum->n;
  *there = false;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    int order = compare_products(engine, &sum->terms[middle], term);
    if (order == 0) {
      *there = true;
      return middle;
    }
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void remove_term(pln_sum *sum, uint32_t at) {
  sum->n--;
  memmove(&sum->terms[at], &sum->terms[at + 1],
          (sum->n - at) * sizeof sum->terms[0]);
}

static void insert_term(pln_sum *sum, uint32_t at, const pln_dim_term *term) {
  if (sum->n == PLN_DIM_MAX_TERMS) {
    sum->unknown = true;
    return;
  }
  memmove(&sum->terms[at + 1], &sum->terms[at],
          (sum->n - at) * sizeof sum->terms[0]);
  sum->terms[at] = *term;
  sum->n++;
}

static void add_term(const pln_engine *engine, pln_sum *sum, int64_t factor,
                     const pln_dim_term *term) {
  pln_dim_term scaled = *term;
  bool there;
  if (__builtin_mul_overflow(factor, term->coef, &scaled.coef))
    sum->unknown = true;
  if (sum->unknown || scaled.coef == 0)
    return;
  uint32_t at = find_term_place(engine, sum, term, &there);
  if (!there) {
    insert_term(sum, at, &scaled);
    return;
  }
  int64_t *coef = &sum->terms[at].coef;
  if (__builtin_add_overflow(*coef, scaled.coef, coef))
    sum->unknown = true;
  else if (*coef == 0)
    remove_term(sum, at);
}

static void add_constant(pln_sum *sum, int64_t factor, int64_t value) {
  int64_t product;
  if (__builtin_mul_overflow(factor, value, &product) ||
      __builtin_add_overflow(sum->constant, product, &sum->constant))
    sum->unknown = true;
}

void pln_sum_add(const pln_engine *engine, pln_sum *sum, int64_t factor,
                 pln_dim dim) {
  if (dim == PLN_DIM_UNKNOWN) {
    sum->unknown = true;
    return;
  }
  if (PLN_DIM_IS_CONST(dim)) {
    add_constant(sum, factor, dim);
    return;
  }
  pln_dim_term room;
  const pln_dim_term *terms;
  const pln_dim_row *row = pln_dim_row_of(engine, pln_dim_id(dim));
  uint32_t n = view_terms(row, pln_dim_id(dim), &room, &terms);
  for (uint32_t i = 0; i < n; i++)
    add_term(engine, sum, factor, &terms[i]);
  if (row->kind == PLN_DIM_SUM)
    add_constant(sum, factor, row->a);
}

void pln_sum_add_sum(const pln_engine *engine, pln_sum *sum, int64_t factor,
                     const pln_sum *other) {
  sum->unknown |= other->unknown;
  for (uint32_t i = 0; i < other->n; i++)
    add_term(engine, sum, factor, &other->terms[i]);
  add_constant(sum, factor, other->constant);
}

/* False when the product overflows or has too many factors. */
static bool multiply_terms(const pln_engine *engine, const pln_dim_term *x,
                           const pln_dim_term *y, pln_dim_term *out) {
  *out = (pln_dim_term){.degree = x->degree + y->degree};
  if (out->degree > PLN_DIM_MAX_DEGREE ||
      __builtin_mul_overflow(x->coef, y->coef, &out->coef))
    return false;
  uint32_t i = 0, j = 0;
  while (i + j < out->degree) {
    bool first = j == y->degree ||
                 (i < x->degree &&
                  compare_atoms(engine, x->factors[i], y->factors[j]) <= 0);
    out->factors[i + j] = first ? x->factors[i] : y->factors[j];
    if (first)
      i++;
    else
      j++;
  }
  return true;
}

/* out += term * sum */
static void add_multiple(const pln_engine *engine, pln_sum *out,
                         const pln_dim_term *term, const pln_sum *sum) {
  pln_dim_term product;
  for (uint32_t i = 0; i < sum->n; i++)
    if (multiply_terms(engine, term, &sum->terms[i], &product))
      add_term(engine, out, 1, &product);
    else
      out->unknown = true;
  add_term(engine, out, sum->constant, term);
}

void pln_sum_multiply(const pln_engine *engine, const pln_sum *a,
                      const pln_sum *b, pln_sum *out) {
  pln_sum_zero(out);
  out->unknown = a->unknown || b->unknown;
  for (uint32_t i = 0; i < a->n && !out->unknown; i++)
    add_multiple(engine, out, &a->terms[i], b);
  pln_sum_add_sum(engine, out, a->constant, b);
}

/* ---------------------------------------------------------------- division */

static bool out_of_bounds(int64_t constant) {
  return constant > far || constant < -far;
}

/* x / y when y's atoms are among x's and the coefficients divide. */
static bool divide_terms(const pln_dim_term *x, const pln_dim_term *y,
                         pln_dim_term *out) {
  *out = (pln_dim_term){0};
  if (y->degree > x->degree || out_of_bounds(x->coef) || x->coef % y->coef != 0)
    return false;
  out->coef = x->coef / y->coef;
  uint32_t j = 0;
  for (uint32_t i = 0; i < x->degree; i++)
    if (j < y->degree && x->factors[i] == y->factors[j])
      j++;
    else
      out->factors[out->degree++] = x->factors[i];
  return j == y->degree;
}

static bool divide_by_number(const pln_sum *a, int64_t k, pln_sum *out) {
  if (k == 0 || a->constant % k != 0)
    return false;
  *out = *a;
  out->constant = a->constant / k;
  for (uint32_t i = 0; i < a->n; i++) {
    if (a->terms[i].coef % k != 0)
      return false;
    out->terms[i].coef = a->terms[i].coef / k;
  }
  return true;
}

/* Polynomial long division by leading terms. */
bool pln_sum_divide_exactly(const pln_engine *engine, const pln_sum *a,
                            const pln_sum *b, pln_sum *out) {
  if (a->unknown || b->unknown)
    return false;
  if (b->n == 0)
    return divide_by_number(a, b->constant, out);
  pln_sum rest = *a;
  pln_sum_zero(out);
  for (int steps = 0; rest.n > 0 && steps < PLN_DIM_MAX_TERMS; steps++) {
    pln_dim_term t, minus;
    if (!divide_terms(&rest.terms[0], &b->terms[0], &t))
      return false;
    if (t.degree == 0)
      out->constant = t.coef;
    else
      add_term(engine, out, 1, &t);
    minus = t;
    minus.coef = -t.coef;
    if (t.degree == 0)
      pln_sum_add_sum(engine, &rest, -t.coef, b);
    else
      add_multiple(engine, &rest, &minus, b);
    if (rest.unknown || out->unknown)
      return false;
  }
  return rest.n == 0 && rest.constant == 0;
}

void pln_sum_split(const pln_sum *a, int64_t k, pln_sum *quotient,
                   pln_sum *rest) {
  pln_sum_zero(quotient);
  pln_sum_zero(rest);
  for (uint32_t i = 0; i < a->n; i++) {
    pln_dim_term part = a->terms[i];
    part.coef = pln_floor_div(a->terms[i].coef, k);
    if (part.coef != 0)
      quotient->terms[quotient->n++] = part;
    part.coef = a->terms[i].coef - part.coef * k;
    if (part.coef != 0)
      rest->terms[rest->n++] = part;
  }
  quotient->constant = pln_floor_div(a->constant, k);
  rest->constant = a->constant - quotient->constant * k;
}

int64_t pln_sum_content(const pln_sum *sum, int64_t start) {
  int64_t g = start;
  for (uint32_t i = 0; i < sum->n; i++)
    g = pln_gcd(g, sum->terms[i].coef);
  return g;
}

void pln_sum_reduce(pln_sum *sum, int64_t g) {
  for (uint32_t i = 0; i < sum->n; i++)
    sum->terms[i].coef = pln_floor_div(sum->terms[i].coef, g);
  sum->constant = pln_floor_div(sum->constant, g);
}

/* --------------------------------------------------------------- interning */

/* A record with room for all terms. */
typedef struct sum_record {
  pln_dim_row row;
  pln_dim_term terms[PLN_DIM_MAX_TERMS];
} sum_record;

static bool too_large(const pln_sum *sum) {
  bool large = sum->unknown || out_of_bounds(sum->constant);
  for (uint32_t i = 0; i < sum->n && !large; i++)
    large = out_of_bounds(sum->terms[i].coef);
  return large;
}

static void measure_sum_weight(const pln_engine *engine, const pln_sum *sum,
                               pln_dim_row *row) {
  for (uint32_t i = 0; i < sum->n; i++) {
    row->weight++;
    for (uint32_t j = 0; j < sum->terms[i].degree; j++) {
      const pln_dim_row *atom =
          pln_dim_row_of(engine, sum->terms[i].factors[j]);
      row->weight += atom->weight;
      row->depth = atom->depth > row->depth ? atom->depth : row->depth;
    }
  }
}

pln_status pln_sum_intern(pln_engine *engine, const pln_sum *sum,
                          pln_dim *out) {
  const pln_dim_term *first = &sum->terms[0];
  *out = PLN_DIM_UNKNOWN;
  if (too_large(sum))
    return PLN_OK;
  if (sum->n == 0) {
    *out = sum->constant;
    return PLN_OK;
  }
  if (sum->n == 1 && sum->constant == 0 && first->coef == 1 &&
      first->degree == 1) {
    *out = pln_dim_of_id(first->factors[0]);
    return PLN_OK;
  }
  sum_record record;
  record.row = (pln_dim_row){.kind = PLN_DIM_SUM,
                             .n_terms = (uint8_t)sum->n,
                             .range = pln_sum_range(engine, sum),
                             .a = sum->constant};
  measure_sum_weight(engine, sum, &record.row);
  if (record.row.weight > PLN_DIM_MAX_WEIGHT)
    return PLN_OK;
  size_t size = sum->n * sizeof record.terms[0];
  memcpy(record.terms, sum->terms, size);
  uint32_t id;
  PLN_TRY(pln_intern(engine->dims->exprs, &record, sizeof record.row + size,
                     &id, NULL));
  *out = pln_dim_of_id(id);
  return PLN_OK;
}
