/* arith/canonical.c: the normal form of integer expressions: a sum of
 * (index % upper // lower) * scale, and a constant.
 *
 * Called by rewrite.c in canonical mode. A tree of sums is flattened at its
 * root: coefficients are collected from the users to the operands, so that a
 * chain of additions and a shared operand are visited once. Order of the terms:
 * TVM's, by descending scale, then lower and upper factor, then first use. What
 * overflows int64 leaves the expression as it was. */

#include <stdlib.h>

#include "arith/arith.h"

typedef struct split {
  pln_term index;
  int64_t lower, upper, scale; /* upper PLN_INF: no remainder is taken */
  bool floor;
  uint32_t segment; /* by first use of the index */
  uint32_t place;   /* for a stable order */
} split;

typedef struct sum {
  pln_analyzer *a;
  split *items;
  uint32_t n, cap;
  int64_t base;
  bool failed; /* out of memory, or a number does not fit */
  split few[12];
} sum;

static void sum_begin(sum *s, pln_analyzer *a) {
  s->a = a;
  s->items = s->few;
  s->n = 0;
  s->cap = PLN_COUNT(s->few);
  s->base = 0;
  s->failed = false;
}

static void sum_end(sum *s) {
  if (s->items != s->few)
    pln_mem_free(s->a->engine, s->items, s->cap * sizeof *s->items);
}

static void sum_push(sum *s, split x) {
  if (s->n == s->cap) {
    split *wider = pln_mem_new(s->a->engine, 2 * s->cap * sizeof *wider);
    if (!wider) {
      pln_arith_fail(s->a, pln_nomem(s->a->engine));
      s->failed = true;
      return;
    }
    memcpy(wider, s->items, s->n * sizeof *wider);
    sum_end(s);
    s->items = wider;
    s->cap *= 2;
  }
  s->items[s->n++] = x;
}

static void add_base(sum *s, int64_t value, int64_t scale) {
  int64_t product;
  if (!pln_mul_fits(value, scale, &product) ||
      !pln_add_fits(s->base, product, &s->base))
    s->failed = true;
}

/* -------------------------------------------------------------------- linear
 */

/* The operands that have a coefficient: not the number of a product. */
static bool push_parts(pln_analyzer *a, pln_term_list *stack, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  if (n.kind == PLN_PRIM_MUL)
    return pln_term_list_push(a, stack, pln_is_const(a, n.b) ? n.a : n.b);
  return pln_term_list_push(a, stack, n.b) && pln_term_list_push(a, stack, n.a);
}

/* Adds a leaf. False: there is no room, or a number does not fit. */
static bool add_summand(pln_small_form *f, pln_term t, int64_t c) {
  for (uint32_t i = 0; i < f->n; i++)
    if (f->leaves[i] == t)
      return pln_add_fits(f->coefficients[i], c, &f->coefficients[i]);
  if (f->n == PLN_SMALL_FORM)
    return false;
  f->leaves[f->n] = t;
  f->coefficients[f->n++] = c;
  return true;
}

/* A part of a tree of sums, and what it is multiplied by. */
typedef struct scaled_part {
  pln_term t;
  int64_t c;
} scaled_part;

/* The operands of a linear node, in the place of the node. */
static bool open_part(const pln_analyzer *a, scaled_part *stack, uint32_t *n) {
  scaled_part x = stack[*n - 1];
  const pln_term_node *node = pln_at(a, x.t);
  if (node->kind == PLN_PRIM_MUL) {
    bool right = pln_is_const(a, node->b);
    stack[*n - 1].t = right ? node->a : node->b;
    return pln_mul_fits(x.c, pln_const(a, right ? node->b : node->a),
                        &stack[*n - 1].c);
  }
  bool sub = node->kind == PLN_PRIM_SUB;
  if (*n == PLN_SMALL_FORM || (sub && x.c == INT64_MIN))
    return false;
  stack[*n - 1] = (scaled_part){node->b, sub ? -x.c : x.c};
  stack[(*n)++] = (scaled_part){node->a, x.c};
  return true;
}

/* Parts that are shared are entered from each user, so that the number of steps
 * is limited. */
bool pln_small_linear_form(const pln_analyzer *a, pln_term t,
                           pln_small_form *out) {
  scaled_part stack[PLN_SMALL_FORM];
  uint32_t n = 1, steps = 4 * PLN_SMALL_FORM;
  stack[0] = (scaled_part){t, 1};
  out->n = 0;
  while (n > 0) {
    if (steps-- == 0)
      return false;
    scaled_part x = stack[n - 1];
    if (pln_is_linear(a, x.t)) {
      if (!open_part(a, stack, &n))
        return false;
    } else {
      n--;
      if (!add_summand(out, x.t, x.c))
        return false;
    }
  }
  return true;
}

bool pln_linear_leaves(pln_analyzer *a, pln_term t, pln_term_list *out) {
  pln_term_list stack = {0};
  *out = (pln_term_list){0};
  a->walk++;
  bool ok = pln_term_list_push(a, &stack, t);
  while (ok && stack.n > 0) {
    t = stack.items[--stack.n];
    if (a->facts[t].visit == a->walk)
      continue;
    a->facts[t].visit = a->walk;
    if (!pln_is_linear(a, t)) {
      ok = pln_term_list_push(a, out, t);
      continue;
    }
    ok = push_parts(a, &stack, t);
  }
  pln_term_list_free(a, &stack);
  if (!ok)
    pln_term_list_free(a, out);
  return ok;
}

static bool not_linear(const pln_analyzer *a, pln_term t) {
  return !pln_is_linear(a, t);
}

static bool begin_coefficients(pln_analyzer *a, pln_term t) {
  uint32_t old = a->cap_coef_at;
  pln_status status =
      pln_mem_grow(a->engine, (void **)&a->coef_of, &a->cap_coef_of,
                   (size_t)t + 1, sizeof *a->coef_of);
  if (status == PLN_OK)
    status = pln_mem_grow(a->engine, (void **)&a->coef_at, &a->cap_coef_at,
                          (size_t)t + 1, sizeof *a->coef_at);
  pln_arith_fail(a, status);
  if (status == PLN_OK)
    memset(a->coef_at + old, 0, (a->cap_coef_at - old) * sizeof *a->coef_at);
  a->coef_stamp++;
  return status == PLN_OK;
}

static bool add_coefficient(pln_analyzer *a, pln_term t, int64_t c) {
  if (a->coef_at[t] != a->coef_stamp) {
    a->coef_at[t] = a->coef_stamp;
    a->coef_of[t] = 0;
  }
  return pln_add_fits(a->coef_of[t], c, &a->coef_of[t]);
}

static bool pass_on(pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  int64_t c = a->coef_of[t], product;
  if (n->kind == PLN_PRIM_MUL) {
    pln_term k = pln_is_const(a, n->b) ? n->b : n->a;
    pln_term x = k == n->b ? n->a : n->b;
    return pln_mul_fits(c, pln_const(a, k), &product) &&
           add_coefficient(a, x, product);
  }
  if (n->kind == PLN_PRIM_SUB && c == INT64_MIN)
    return false;
  return add_coefficient(a, n->a, c) &&
         add_coefficient(a, n->b, n->kind == PLN_PRIM_SUB ? -c : c);
}

/* The coefficient of each leaf of the linear tree of `t`, in coef_of. */
static bool find_coefficients(pln_analyzer *a, pln_term t) {
  pln_term_list order;
  if (!begin_coefficients(a, t) || !pln_term_order(a, t, not_linear, &order))
    return false;
  bool ok = add_coefficient(a, t, 1);
  for (uint32_t i = order.n; ok && i-- > 0;)
    ok = pass_on(a, order.items[i]);
  pln_term_list_free(a, &order);
  return ok;
}

/* ------------------------------------------------------------ reading splits
 */

static bool is_divisor(const pln_analyzer *a, const pln_term_node *n,
                       pln_kind trunc, pln_kind floor) {
  return (n->kind == trunc || n->kind == floor) && pln_is_const(a, n->b) &&
         pln_const(a, n->b) > 0;
}

/* A term in normal form that is no sum, as a split. */
static split read_split(const pln_analyzer *a, pln_term t) {
  split s = {.index = t, .lower = 1, .upper = PLN_INF, .scale = 1};
  const pln_term_node *n = pln_at(a, t);
  if (n->kind == PLN_PRIM_MUL && pln_is_const(a, n->b)) {
    s.scale = pln_const(a, n->b);
    s.index = n->a;
    n = pln_at(a, s.index);
  }
  if (is_divisor(a, n, PLN_PRIM_DIV, PLN_PRIM_FLOORDIV)) {
    s.floor = n->kind == PLN_PRIM_FLOORDIV;
    s.lower = pln_const(a, n->b);
    s.index = n->a;
    n = pln_at(a, s.index);
  }
  if (!is_divisor(a, n, PLN_PRIM_MOD, PLN_PRIM_FLOORMOD))
    return s;
  bool floor = n->kind == PLN_PRIM_FLOORMOD;
  int64_t upper = pln_const(a, n->b);
  if (s.lower != 1 && (floor != s.floor || upper % s.lower != 0))
    return s;
  s.floor = floor;
  s.upper = upper;
  s.index = n->a;
  return s;
}

static bool is_plain(const split *s) {
  return s->lower == 1 && s->upper == PLN_INF;
}

static bool same_mode(const split *x, const split *y) {
  return x->floor == y->floor || is_plain(x) || is_plain(y);
}

static void add_term(sum *s, pln_term t, int64_t scale) {
  if (pln_is_const(s->a, t)) {
    add_base(s, pln_const(s->a, t), scale);
    return;
  }
  split x = read_split(s->a, t);
  if (!pln_mul_fits(x.scale, scale, &x.scale))
    s->failed = true;
  if (x.scale != 0)
    sum_push(s, x);
}

static void add_small_form(sum *s, const pln_small_form *f, int64_t scale) {
  for (uint32_t i = 0; i < f->n && !s->failed; i++) {
    int64_t c;
    if (!pln_mul_fits(f->coefficients[i], scale, &c))
      s->failed = true;
    else
      add_term(s, f->leaves[i], c);
  }
}

/* A term in normal form, times `scale`. */
static void add_normal(sum *s, pln_term t, int64_t scale) {
  pln_analyzer *a = s->a;
  pln_term_list leaves;
  pln_small_form form;
  if (!t || !pln_is_linear(a, t) || pln_term_kind(a, t) == PLN_PRIM_MUL) {
    if (t)
      add_term(s, t, scale);
    s->failed = s->failed || !t;
    return;
  }
  if (pln_small_linear_form(a, t, &form)) {
    add_small_form(s, &form, scale);
    return;
  }
  if (!find_coefficients(a, t) || !pln_linear_leaves(a, t, &leaves)) {
    s->failed = true;
    return;
  }
  for (uint32_t i = 0; i < leaves.n && !s->failed; i++) {
    int64_t c;
    if (!pln_mul_fits(a->coef_of[leaves.items[i]], scale, &c))
      s->failed = true;
    else
      add_term(s, leaves.items[i], c);
  }
  pln_term_list_free(a, &leaves);
}

/* ------------------------------------------------------------------- merging
 */

static int by_segment(const void *p, const void *q) {
  const split *x = p, *y = q;
  if (x->segment != y->segment)
    return x->segment < y->segment ? -1 : 1;
  if (x->lower != y->lower)
    return x->lower > y->lower ? -1 : 1;
  return x->place < y->place ? -1 : 1;
}

static int by_scale(const void *p, const void *q) {
  const split *x = p, *y = q;
  if (x->scale != y->scale)
    return x->scale > y->scale ? -1 : 1;
  if (x->lower != y->lower)
    return x->lower > y->lower ? -1 : 1;
  if (x->upper != y->upper)
    return x->upper > y->upper ? -1 : 1;
  if (x->floor != y->floor)
    return x->floor ? -1 : 1;
  return x->place < y->place ? -1 : 1;
}

enum { FEW_SEGMENTS = 8 };

/* True if two items have one index. */
static bool number_few_segments(sum *s) {
  bool shared = false;
  for (uint32_t i = 0; i < s->n; i++) {
    split *x = &s->items[i];
    uint32_t k = 0;
    while (s->items[k].index != x->index)
      k++;
    x->segment = k;
    x->place = i;
    shared |= k < i;
  }
  return shared;
}

/* The same; coef_of serves as a table from indices to segments. */
static bool number_segments(sum *s) {
  pln_analyzer *a = s->a;
  bool shared = false;
  if (s->n <= FEW_SEGMENTS)
    return number_few_segments(s);
  if (!begin_coefficients(a, a->n - 1)) {
    s->failed = true;
    return false;
  }
  for (uint32_t i = 0; i < s->n; i++) {
    pln_term t = s->items[i].index;
    shared = shared || a->coef_at[t] == a->coef_stamp;
    if (a->coef_at[t] != a->coef_stamp) {
      a->coef_at[t] = a->coef_stamp;
      a->coef_of[t] = i;
    }
    s->items[i].segment = (uint32_t)a->coef_of[t];
    s->items[i].place = i;
  }
  return shared;
}

enum { FAR = 16 };

/* x % (c * u) // u * (s * c) + x % u // l * (s * ..): the one that ends where
 * the other begins. */
static bool join(split *high, split *low) {
  if (high->lower == low->lower && high->upper == low->upper &&
      same_mode(high, low)) {
    if (!pln_add_fits(low->scale, high->scale, &low->scale))
      return false;
    low->floor = low->floor || high->floor;
    high->scale = 0;
    return true;
  }
  int64_t lower;
  if (high->lower != low->upper || low->scale == 0 ||
      high->scale % low->scale != 0 || !same_mode(high, low) ||
      !pln_mul_fits(high->scale / low->scale, low->lower, &lower) ||
      high->lower != lower)
    return true;
  low->upper = high->upper;
  high->scale = 0;
  return true;
}

static void join_all(sum *s) {
  for (uint32_t i = 0; i < s->n; i++) {
    split *x = &s->items[i];
    for (uint32_t k = i + 1; k < s->n && k < i + FAR && x->scale != 0; k++) {
      split *y = &s->items[k];
      if (x->segment != y->segment || x->upper < y->lower)
        break;
      if (y->scale != 0 && !join(x, y))
        s->failed = true;
    }
  }
}

static void drop_zeros(sum *s) {
  uint32_t n = 0;
  while (n < s->n && s->items[n].scale != 0)
    n++;
  for (uint32_t i = n; i < s->n; i++)
    if (s->items[i].scale != 0)
      s->items[n++] = s->items[i];
  s->n = n;
}

/* Sums are short, and most are in order: no library call for them. */
static inline void sort_items(sum *s,
                              int (*compare)(const void *, const void *)) {
  if (s->n > 16) {
    qsort(s->items, s->n, sizeof *s->items, compare);
    return;
  }
  for (uint32_t i = 1; i < s->n; i++) {
    if (compare(&s->items[i - 1], &s->items[i]) < 0)
      continue;
    split x = s->items[i];
    uint32_t k = i;
    for (; k > 0 && compare(&s->items[k - 1], &x) > 0; k--)
      s->items[k] = s->items[k - 1];
    s->items[k] = x;
  }
}

static void join_segments(sum *s) {
  sort_items(s, by_segment);
  join_all(s);
  drop_zeros(s);
  for (uint32_t i = 0; i < s->n; i++)
    s->items[i].place = i;
}

/* Items of different indices are in the order of segments, and nothing joins.
 */
static void normalize(sum *s) {
  if (s->failed)
    return;
  if (s->n > 1 && number_segments(s))
    join_segments(s);
  if (s->failed)
    return;
  if (s->n > 1)
    sort_items(s, by_scale);
  drop_zeros(s);
}

/* ------------------------------------------------------------ writing terms
 */

static pln_term by_const(pln_analyzer *a, pln_kind kind, pln_term x,
                         int64_t c) {
  return pln_fold(a, kind, x, pln_const_like(a, x, c));
}

static pln_term write_split(pln_analyzer *a, const split *s, int64_t scale) {
  pln_term t = s->index;
  if (s->upper != PLN_INF)
    t = by_const(a, s->floor ? PLN_PRIM_FLOORMOD : PLN_PRIM_MOD, t, s->upper);
  if (s->lower != 1)
    t = by_const(a, s->floor ? PLN_PRIM_FLOORDIV : PLN_PRIM_DIV, t, s->lower);
  return scale == 1 ? t : by_const(a, PLN_PRIM_MUL, t, scale);
}

/* Joined splits may leave an index that is a sum itself. */
static bool expand_sums(sum *s) {
  pln_analyzer *a = s->a;
  uint32_t n = s->n;
  bool found = false;
  for (uint32_t i = 0; i < n && !s->failed; i++) {
    split x = s->items[i];
    if (!is_plain(&x) || !pln_is_linear(a, x.index))
      continue;
    s->items[i].scale = 0;
    add_normal(s, x.index, x.scale);
    found = true;
  }
  drop_zeros(s);
  return found;
}

static pln_term write_positive(sum *s, pln_term out) {
  for (uint32_t i = 0; i < s->n; i++)
    if (s->items[i].scale > 0) {
      pln_term x = write_split(s->a, &s->items[i], s->items[i].scale);
      out = out ? pln_add(s->a, out, x) : x;
    }
  return out;
}

/* The number and its negative. */
static bool holds_both(pln_dtype dtype, int64_t c) {
  if (dtype == PLN_INT32)
    return c >= -INT32_MAX && c <= INT32_MAX;
  return c != INT64_MIN && (dtype == PLN_INT64 || (pln_holds_int(dtype, c) &&
                                                   pln_holds_int(dtype, -c)));
}

static bool numbers_fit(const sum *s, pln_dtype dtype) {
  bool fit = holds_both(dtype, s->base);
  for (uint32_t i = 0; fit && i < s->n; i++)
    fit = holds_both(dtype, s->items[i].scale);
  return fit;
}

/* Takes the operator from `t` if it is of that kind and number. */
static bool take_const(const pln_analyzer *a, pln_kind kind, int64_t c,
                       pln_term *t) {
  const pln_term_node *n = pln_at(a, *t);
  if (n->kind != kind || !pln_is_value(a, n->b, c))
    return false;
  *t = n->a;
  return true;
}

/* `t` is what write_split makes. */
static bool is_split(const pln_analyzer *a, const split *s, int64_t scale,
                     pln_term t) {
  if (scale != 1 && !take_const(a, PLN_PRIM_MUL, scale, &t))
    return false;
  if (s->lower != 1 &&
      !take_const(a, s->floor ? PLN_PRIM_FLOORDIV : PLN_PRIM_DIV, s->lower, &t))
    return false;
  if (s->upper != PLN_INF &&
      !take_const(a, s->floor ? PLN_PRIM_FLOORMOD : PLN_PRIM_MOD, s->upper, &t))
    return false;
  return t == s->index;
}

/* `t` is what write_terms makes of the sum, which has items: it is read from
 * its last operand to the first. Saves making all of it again. */
static bool is_written(const sum *s, pln_term t) {
  const pln_analyzer *a = s->a;
  uint32_t left = 0, i;
  if (s->base < 0 && !take_const(a, PLN_PRIM_SUB, -s->base, &t))
    return false;
  for (i = s->n; i-- > 0;) {
    const pln_term_node *n = pln_at(a, t);
    left += s->items[i].scale > 0;
    if (s->items[i].scale > 0)
      continue;
    if (n->kind != PLN_PRIM_SUB ||
        !is_split(a, &s->items[i], -s->items[i].scale, n->b))
      return false;
    t = n->a;
  }
  if (left == 0)
    return pln_is_value(a, t, s->base > 0 ? s->base : 0);
  if (s->base > 0 && !take_const(a, PLN_PRIM_ADD, s->base, &t))
    return false;
  for (i = s->n; i-- > 0;) {
    const pln_term_node *n = pln_at(a, t);
    if (s->items[i].scale <= 0)
      continue;
    if (--left == 0)
      return is_split(a, &s->items[i], s->items[i].scale, t);
    if (n->kind != PLN_PRIM_ADD ||
        !is_split(a, &s->items[i], s->items[i].scale, n->b))
      return false;
    t = n->a;
  }
  return false;
}

static pln_term write_terms(sum *s, pln_term like) {
  pln_analyzer *a = s->a;
  pln_term out = write_positive(s, PLN_NO_TERM);
  if (s->base > 0 || !out) {
    int64_t first = s->base > 0 ? s->base : 0;
    out = out ? pln_add_const(a, out, first) : pln_const_like(a, like, first);
  }
  for (uint32_t i = 0; i < s->n; i++)
    if (s->items[i].scale < 0)
      out = pln_sub(a, out, write_split(a, &s->items[i], -s->items[i].scale));
  return s->base < 0 ? by_const(a, PLN_PRIM_SUB, out, -s->base) : out;
}

/* `like` gives the dtype. PLN_NO_TERM: the sum failed. */
static pln_term write_sum(sum *s, pln_term like) {
  pln_analyzer *a = s->a;
  normalize(s);
  for (uint32_t round = 0; round < 4 && expand_sums(s); round++)
    normalize(s);
  if (s->failed || !numbers_fit(s, (pln_dtype)pln_at(a, like)->dtype))
    return PLN_NO_TERM;
  /* A product stays one, x * -1; a sum of one negative term is 0 - x. */
  if (s->n == 1 && s->base == 0 && s->items[0].scale < 0 &&
      pln_term_kind(a, like) == PLN_PRIM_MUL)
    return write_split(a, &s->items[0], s->items[0].scale);
  return s->n > 0 && is_written(s, like) ? like : write_terms(s, like);
}

static pln_term canonical_of(const pln_analyzer *a, pln_term t) {
  const pln_term_facts *f = &a->facts[t];
  return f->canonical_at == a->epoch ? f->canonical : t;
}

/* The leaves of a large sum, or of one with shared parts. */
static void add_leaves(sum *s, pln_term t) {
  pln_analyzer *a = s->a;
  pln_term_list leaves;
  if (!pln_linear_leaves(a, t, &leaves)) {
    s->failed = true;
    return;
  }
  int64_t few[32], *coefficients = few;
  if (leaves.n > PLN_COUNT(few))
    coefficients = pln_mem_new(a->engine, leaves.n * sizeof *coefficients);
  s->failed = !coefficients || !find_coefficients(a, t);
  for (uint32_t i = 0; i < leaves.n && !s->failed; i++)
    coefficients[i] = a->coef_of[leaves.items[i]];
  for (uint32_t i = 0; i < leaves.n && !s->failed; i++)
    if (coefficients[i] != 0)
      add_normal(s, canonical_of(a, leaves.items[i]), coefficients[i]);
  if (!coefficients)
    pln_arith_fail(a, pln_nomem(a->engine));
  else if (coefficients != few)
    pln_mem_free(a->engine, coefficients, leaves.n * sizeof *coefficients);
  pln_term_list_free(a, &leaves);
}

pln_term pln_canonical_sum(pln_analyzer *a, pln_term t,
                           const pln_small_form *form) {
  sum s;
  sum_begin(&s, a);
  if (form) {
    for (uint32_t i = 0; i < form->n && !s.failed; i++)
      if (form->coefficients[i] != 0)
        add_normal(&s, canonical_of(a, form->leaves[i]), form->coefficients[i]);
  } else {
    add_leaves(&s, t);
  }
  pln_term out = s.failed ? PLN_NO_TERM : write_sum(&s, t);
  sum_end(&s);
  return out;
}

/* ------------------------------------------------------------------ division
 */

typedef struct divisor {
  int64_t c;
  bool floor;
} divisor;

static pln_term write_alone(pln_analyzer *a, const split *s) {
  return write_split(a, s, s->scale);
}

static split plain(pln_term index) {
  return (split){.index = index, .lower = 1, .upper = PLN_INF, .scale = 1};
}

/* The split in that mode of division. */
static split in_mode(pln_analyzer *a, split s, bool floor) {
  if (s.floor == floor || is_plain(&s)) {
    s.floor = floor;
    return s;
  }
  split out = plain(write_split(a, &s, 1));
  out.scale = s.scale;
  out.floor = floor;
  return out;
}

static split divide_whole(pln_analyzer *a, split s, divisor d) {
  split out = plain(write_alone(a, &s));
  out.lower = d.c;
  out.floor = d.floor;
  return out;
}

/* t * scale, scale < 0, divided by d.c, a multiple of it: t divided by the
 * quotient, which is negative. The result stays whole: remainders of splits
 * with negative divisors are not those of their indices. */
static split divide_negated(pln_analyzer *a, const split *s, divisor d) {
  pln_term t = write_split(a, s, 1);
  split out = plain(by_const(a, d.floor ? PLN_PRIM_FLOORDIV : PLN_PRIM_DIV, t,
                             d.c / s->scale));
  out.floor = d.floor;
  return out;
}

static split divide_split(pln_analyzer *a, split s, divisor d) {
  s = in_mode(a, s, d.floor);
  if (s.scale % d.c == 0) {
    s.scale /= d.c;
    return s;
  }
  if (s.scale < 0 && d.c > 0 && d.c % s.scale == 0)
    return divide_negated(a, &s, d);
  if (s.scale <= 0 || d.c % s.scale != 0)
    return divide_whole(a, s, d);
  int64_t lower;
  if (!pln_mul_fits(s.lower, d.c / s.scale, &lower))
    return divide_whole(a, s, d);
  if (s.upper == PLN_INF || s.upper % lower == 0) {
    s.scale = 1;
    s.lower = lower;
    return s;
  }
  if (s.upper <= lower && s.floor) {
    s.scale = 0;
    return s;
  }
  s.index =
      by_const(a, d.floor ? PLN_PRIM_FLOORMOD : PLN_PRIM_MOD, s.index, s.upper);
  s.upper = PLN_INF;
  s.scale = 1;
  s.lower = lower;
  return s;
}

static pln_term nested(pln_analyzer *a, pln_term t) {
  if (a->depth >= 6)
    return t;
  a->depth++;
  pln_term out = pln_canonical_term(a, t);
  a->depth--;
  return out;
}

static pln_term remainder_whole(pln_analyzer *a, const split *s, divisor d) {
  return by_const(a, d.floor ? PLN_PRIM_FLOORMOD : PLN_PRIM_MOD,
                  write_alone(a, s), d.c);
}

/* The remainder of a split, as a term in normal form. */
static pln_term remainder_split(pln_analyzer *a, split s, divisor d) {
  pln_kind mod = d.floor ? PLN_PRIM_FLOORMOD : PLN_PRIM_MOD;
  s = in_mode(a, s, d.floor);
  if (s.scale % d.c == 0)
    return pln_const_like(a, s.index, 0);
  int64_t upper;
  if (s.scale <= 0 || d.c % s.scale != 0 ||
      !pln_mul_fits(s.lower, d.c / s.scale, &upper))
    return remainder_whole(a, &s, d);
  if (s.upper == PLN_INF) {
    s.upper = upper;
    return write_alone(a, &s);
  }
  if (upper % s.upper == 0)
    return write_alone(a, &s);
  if (s.upper % upper != 0)
    return remainder_whole(a, &s, d);
  pln_term t = nested(a, by_const(a, mod, s.index, upper));
  if (s.lower != 1)
    t = nested(
        a, by_const(a, d.floor ? PLN_PRIM_FLOORDIV : PLN_PRIM_DIV, t, s.lower));
  return s.scale == 1 ? t : nested(a, by_const(a, PLN_PRIM_MUL, t, s.scale));
}

/* The parts of the sum that the divisor divides, and the rest. */
static void separate(const sum *s, int64_t c, sum *whole, sum *rest) {
  sum_begin(whole, s->a);
  sum_begin(rest, s->a);
  for (uint32_t i = 0; i < s->n; i++)
    sum_push(s->items[i].scale % c == 0 ? whole : rest, s->items[i]);
  if (s->base % c == 0)
    whole->base = s->base;
  else
    rest->base = s->base;
}

static void divide_parts(sum *s, int64_t c) {
  for (uint32_t i = 0; i < s->n; i++)
    s->items[i].scale /= c;
  s->base /= c;
}

static bool in_range(pln_analyzer *a, pln_term t, int64_t c) {
  pln_bound b = pln_bound_of(a, t);
  return b.min >= 0 && b.max < c;
}

/* The quotient is 0, and `t` is its remainder. */
static bool is_remainder(pln_analyzer *a, pln_term t, divisor d) {
  pln_bound b = pln_bound_of(a, t);
  return b.max < d.c && b.min >= (d.floor ? 0 : 1 - d.c);
}

/* One split with scale, or the whole sum as an index. */
static split as_split(const sum *s, pln_term t) {
  if (s->base == 0 && s->n == 1)
    return s->items[0];
  return plain(t);
}

static bool proves_small(pln_analyzer *a, pln_term t, int64_t c) {
  return in_range(a, t, c) ||
         (pln_proves_ge(a, t, 0) && pln_proves_lt(a, t, c));
}

static pln_term divide_sum(pln_analyzer *a, pln_term t, const sum *s,
                           divisor d) {
  sum whole, rest;
  separate(s, d.c, &whole, &rest);
  pln_term extra = write_sum(&rest, t), out = PLN_NO_TERM;
  bool split_up = extra != PLN_NO_TERM && !whole.failed;
  if (split_up && !d.floor && !(rest.n == 0 && rest.base == 0)) {
    pln_term first = write_sum(&whole, t);
    split_up = pln_proves_ge(a, first, 0) && pln_proves_ge(a, extra, 0);
  }
  if (split_up) {
    divide_parts(&whole, d.c);
    if (rest.n == 0)
      add_base(&whole,
               d.floor ? pln_floor_div(rest.base, d.c) : rest.base / d.c, 1);
    else if (!proves_small(a, extra, d.c))
      sum_push(&whole, divide_split(a, as_split(&rest, extra), d));
    out = write_sum(&whole, t);
  }
  sum_end(&whole);
  sum_end(&rest);
  return out;
}

static pln_term divide(pln_analyzer *a, pln_term t, const sum *s, divisor d) {
  pln_term x = pln_at(a, t)->a;
  bool alone = s->n == 1 && s->base == 0;
  if (is_remainder(a, x, d))
    return pln_const_like(a, t, 0);
  pln_term out = alone ? PLN_NO_TERM : divide_sum(a, t, s, d);
  if (out)
    return out;
  split q = divide_split(a, alone ? s->items[0] : plain(x), d);
  return q.scale == 0 ? pln_const_like(a, t, 0) : write_alone(a, &q);
}

/* (x + c) % d: the constant modulo d. */
static pln_term with_small_base(pln_analyzer *a, sum *rest, pln_term t,
                                divisor d) {
  rest->base = pln_floor_mod(rest->base, d.c);
  pln_term x = write_sum(rest, t);
  split s = as_split(rest, x);
  return x ? remainder_split(a, s, d) : PLN_NO_TERM;
}

/* A sum that is not negative: its constant modulo the divisor, towards zero. */
static pln_term with_trunc_base(pln_analyzer *a, pln_term t, const sum *s,
                                divisor d) {
  int64_t least = pln_bound_of(a, pln_at(a, t)->a).min, base = s->base % d.c;
  pln_term out = PLN_NO_TERM;
  if (d.floor || base == s->base || least < 0 ||
      !pln_sub_fits(least, s->base, &least) || least < -base)
    return out;
  sum smaller;
  sum_begin(&smaller, a);
  for (uint32_t i = 0; i < s->n; i++)
    sum_push(&smaller, s->items[i]);
  smaller.base = base;
  pln_term x = write_sum(&smaller, t);
  if (x)
    out = remainder_split(a, as_split(&smaller, x), d);
  sum_end(&smaller);
  return out;
}

static pln_term remainder_sum(pln_analyzer *a, pln_term t, const sum *s,
                              divisor d) {
  sum whole, rest;
  separate(s, d.c, &whole, &rest);
  pln_term extra = write_sum(&rest, t), out = PLN_NO_TERM;
  bool zero = extra && rest.n == 0 && rest.base == 0;
  bool allowed = d.floor || zero;
  if (!allowed && extra) {
    pln_term first = write_sum(&whole, t);
    allowed = pln_proves_ge(a, first, 0) && pln_proves_ge(a, extra, 0);
  }
  if (zero)
    out = pln_const_like(a, t, 0);
  else if (allowed && extra && rest.n == 0)
    out = pln_const_like(
        a, t, d.floor ? pln_floor_mod(rest.base, d.c) : rest.base % d.c);
  else if (allowed && extra && proves_small(a, extra, d.c))
    out = extra;
  else if (allowed && extra && d.floor)
    out = with_small_base(a, &rest, t, d);
  else if (allowed && extra) {
    out = whole.n == 0 ? with_trunc_base(a, t, s, d) : PLN_NO_TERM;
    out = out ? out : remainder_split(a, as_split(&rest, extra), d);
  }
  sum_end(&whole);
  sum_end(&rest);
  return out;
}

/* z % 64 - 48, which is from 0 to 15, modulo 16: z % 16. */
static pln_term joined_remainder(pln_analyzer *a, pln_term t, const sum *s,
                                 divisor d) {
  const split *r = s->items;
  if (s->n != 1 || s->base >= 0 || s->base % d.c != 0 || r->scale != 1 ||
      r->lower != 1 || r->upper == PLN_INF || r->upper % d.c != 0 ||
      !in_range(a, pln_at(a, t)->a, d.c))
    return PLN_NO_TERM;
  return remainder_split(a, *r, d);
}

static pln_term remainder_of(pln_analyzer *a, pln_term t, const sum *s,
                             divisor d) {
  pln_term x = pln_at(a, t)->a;
  bool alone = s->n == 1 && s->base == 0;
  pln_term joined = joined_remainder(a, t, s, d);
  if (joined)
    return joined;
  if (is_remainder(a, x, d))
    return x;
  pln_term out = alone ? PLN_NO_TERM : remainder_sum(a, t, s, d);
  if (!out && !alone)
    out = with_trunc_base(a, t, s, d);
  return out ? out : remainder_split(a, alone ? s->items[0] : plain(x), d);
}

static pln_term by_constant(pln_analyzer *a, pln_term t, divisor d) {
  pln_kind kind = pln_term_kind(a, t);
  pln_term x = pln_at(a, t)->a, out = PLN_NO_TERM;
  sum s;
  sum_begin(&s, a);
  add_normal(&s, x, 1);
  normalize(&s);
  if (!s.failed && (kind == PLN_PRIM_DIV || kind == PLN_PRIM_FLOORDIV))
    out = divide(a, t, &s, d);
  else if (!s.failed)
    out = remainder_of(a, t, &s, d);
  sum_end(&s);
  return out == t ? PLN_NO_TERM : out;
}

/* ------------------------------------------------------------------ products
 */

enum { MOST_FACTORS = 32 };

typedef struct factors {
  pln_term items[MOST_FACTORS];
  uint32_t n;
  int64_t c;
  bool failed;
} factors;

static void collect(pln_analyzer *a, pln_term t, factors *f) {
  pln_term stack[MOST_FACTORS];
  uint32_t n = 0;
  stack[n++] = t;
  while (n > 0 && !f->failed) {
    t = stack[--n];
    const pln_term_node *node = pln_at(a, t);
    if (pln_is_const(a, t)) {
      f->failed = !pln_mul_fits(f->c, pln_const(a, t), &f->c);
    } else if (node->kind == PLN_PRIM_MUL && n + 2 <= MOST_FACTORS) {
      stack[n++] = node->b;
      stack[n++] = node->a;
    } else if (f->n < MOST_FACTORS) {
      f->items[f->n++] = t;
    } else {
      f->failed = true;
    }
  }
}

static pln_term multiply(pln_analyzer *a, const factors *f, pln_term like) {
  pln_term out = PLN_NO_TERM;
  for (uint32_t i = 0; i < f->n; i++)
    out = out ? pln_mul(a, out, f->items[i]) : f->items[i];
  if (!pln_holds_int((pln_dtype)pln_at(a, like)->dtype, f->c))
    return PLN_NO_TERM;
  if (!out)
    return pln_const_like(a, like, f->c);
  return f->c == 1 ? out : pln_mul_const(a, out, f->c);
}

static pln_term product(pln_analyzer *a, pln_term t) {
  factors f = {.c = 1};
  collect(a, t, &f);
  if (f.failed)
    return PLN_NO_TERM;
  pln_term out = multiply(a, &f, t);
  return out == t ? PLN_NO_TERM : out;
}

static bool take_factor(factors *f, pln_term t) {
  for (uint32_t i = 0; i < f->n; i++)
    if (f->items[i] == t) {
      memmove(&f->items[i], &f->items[i + 1],
              (f->n - i - 1) * sizeof *f->items);
      f->n--;
      return true;
    }
  return false;
}

/* Takes the common factors of both, and gives their product. */
static factors cancel(factors *x, factors *y) {
  factors common = {.c = pln_gcd(x->c, y->c)};
  for (uint32_t i = 0; i < y->n;) {
    pln_term t = y->items[i];
    if (!take_factor(x, t)) {
      i++;
      continue;
    }
    take_factor(y, t);
    common.items[common.n++] = t;
  }
  x->c /= common.c;
  y->c /= common.c;
  return common;
}

/* Products of which the common factors g are cancelled: (g * x) / (g * y) is
 * x / y, and the remainder g * (x % y). */
static pln_term by_product(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  factors x = {.c = 1}, y = {.c = 1};
  collect(a, n.a, &x);
  collect(a, n.b, &y);
  if (x.failed || y.failed || y.c == 0 || x.c == 0 || x.c == INT64_MIN ||
      y.c == INT64_MIN)
    return PLN_NO_TERM;
  factors g = cancel(&x, &y);
  if (g.n == 0 && g.c == 1)
    return PLN_NO_TERM;
  pln_term p = multiply(a, &x, t), q = multiply(a, &y, t);
  pln_term out = pln_fold(a, (pln_kind)n.kind, p, q);
  if (n.kind == PLN_PRIM_DIV || n.kind == PLN_PRIM_FLOORDIV || !out)
    return out;
  return pln_mul(a, out, multiply(a, &g, t));
}

/* -------------------------------------------------------------------- casts
 */

static bool fits_bound(pln_dtype dtype, pln_bound b) {
  return pln_holds_int(dtype, b.min) && pln_holds_int(dtype, b.max);
}

/* Adds the bound of scale * t. */
static bool add_scaled_bound(pln_bound *total, pln_bound b, int64_t scale) {
  int64_t low, high;
  return pln_mul_fits(scale < 0 ? b.max : b.min, scale, &low) &&
         pln_mul_fits(scale < 0 ? b.min : b.max, scale, &high) &&
         pln_add_fits(total->min, low, &total->min) &&
         pln_add_fits(total->max, high, &total->max);
}

/* In the order of write_sum, each sum on the way fits in `dtype`, and so do the
 * parts of each split. */
static bool stays_within(const sum *s, pln_dtype dtype) {
  pln_analyzer *a = s->a;
  pln_bound total = {0, 0};
  for (uint32_t round = 0; round < 2; round++) {
    for (uint32_t i = 0; i < s->n; i++) {
      const split *x = &s->items[i];
      if ((x->scale > 0) != (round == 0))
        continue;
      pln_bound b = pln_bound_of(a, write_split(a, x, 1));
      if (!fits_bound(dtype, pln_bound_of(a, x->index)) ||
          !fits_bound(dtype, b) || !add_scaled_bound(&total, b, x->scale) ||
          !fits_bound(dtype, total))
        return false;
    }
    bool now = (s->base > 0) == (round == 0);
    if (now && (!add_scaled_bound(&total, (pln_bound){s->base, s->base}, 1) ||
                !fits_bound(dtype, total)))
      return false;
  }
  return true;
}

/* The dtype of a sum of indices becomes that of its operands: where it is
 * wider, or all values on the way fit in it (TVM's PushCastToChildren). */
static pln_term cast_sum(pln_analyzer *a, pln_term t) {
  pln_term x = pln_at(a, t)->a, out = PLN_NO_TERM;
  pln_dtype to = (pln_dtype)pln_at(a, t)->dtype;
  if (!pln_is_index(a, x))
    return PLN_NO_TERM;
  sum s;
  sum_begin(&s, a);
  add_normal(&s, x, 1);
  normalize(&s);
  bool same =
      s.n == 1 && s.base == 0 && is_plain(s.items) && s.items[0].scale == 1;
  if (!s.failed && !same && (to == PLN_INT64 || stays_within(&s, to))) {
    for (uint32_t i = 0; i < s.n; i++)
      s.items[i].index = pln_fold_cast(a, to, s.items[i].index);
    out = write_sum(&s, t);
  }
  sum_end(&s);
  return out;
}

pln_term pln_canonical_division(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  if (n.kind == PLN_PRIM_CAST)
    return cast_sum(a, t);
  if (n.kind == PLN_PRIM_MUL)
    return product(a, t);
  if (n.kind < PLN_PRIM_DIV || n.kind > PLN_PRIM_FLOORMOD)
    return PLN_NO_TERM;
  if (!pln_is_const(a, n.b))
    return by_product(a, t);
  divisor d = {pln_const(a, n.b),
               n.kind == PLN_PRIM_FLOORDIV || n.kind == PLN_PRIM_FLOORMOD};
  return d.c > 0 ? by_constant(a, t, d) : PLN_NO_TERM;
}

/* ---------------------------------------------------------------- comparison
 */

static int64_t common_scale(const sum *s) {
  int64_t gcd = s->base;
  bool scaled = false;
  for (uint32_t i = 0; i < s->n; i++)
    if (s->items[i].scale > 1 || s->items[i].scale < -1) {
      scaled = true;
      gcd = pln_gcd(gcd, s->items[i].scale);
    }
  return scaled ? pln_gcd(gcd, 0) : 1;
}

/* Of a rest y % m // l that has multiples of d: y // (d * l) % (m / (d * l));
 * PLN_NO_TERM: it is none. */
static pln_term rest_in_steps(pln_analyzer *a, const sum *rest, int64_t d) {
  const split *s = rest->items;
  int64_t step;
  if (rest->n != 1 || rest->base != 0 || s->scale != 1 || !s->floor ||
      s->upper == PLN_INF || !pln_mul_fits(d, s->lower, &step) ||
      s->upper % step != 0)
    return PLN_NO_TERM;
  pln_term t = nested(a, by_const(a, PLN_PRIM_FLOORDIV, s->index, step));
  return nested(a, by_const(a, PLN_PRIM_FLOORMOD, t, s->upper / step));
}

/* d * whole + rest < 0 is whole < 0, where 0 <= rest < d. A rest that has
 * multiples of d is divided by it. */
pln_term pln_canonical_less(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  pln_term out = PLN_NO_TERM;
  sum s, whole, rest;
  if (!pln_is_index(a, n.a))
    return out;
  sum_begin(&s, a);
  add_normal(&s, n.a, 1);
  add_normal(&s, n.b, -1);
  normalize(&s);
  int64_t d = s.failed || s.base == INT64_MIN ? 1 : common_scale(&s);
  separate(&s, d, &whole, &rest);
  pln_term extra = d > 1 ? write_sum(&rest, n.a) : PLN_NO_TERM;
  bool small = extra && proves_small(a, extra, d);
  pln_term steps = extra && !small ? rest_in_steps(a, &rest, d) : PLN_NO_TERM;
  if (small || steps) {
    divide_parts(&whole, d);
    if (steps)
      sum_push(&whole, plain(steps));
    pln_term left = write_sum(&whole, n.a);
    out = left ? pln_fold(a, PLN_PRIM_LT, left, pln_const_like(a, left, 0))
               : PLN_NO_TERM;
  }
  sum_end(&whole);
  sum_end(&rest);
  sum_end(&s);
  return out;
}
