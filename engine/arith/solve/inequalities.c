/* inequalities.c: systems of linear inequalities.
 *
 * Called by the public function and by ranges.c. Variables are eliminated one
 * by one: each inequality with a positive coefficient of the variable is added
 * to each with a negative one, so that it cancels (Fourier 1827, Motzkin 1936;
 * the order of the operations is TVM's). */

#include "arith/solve/inequalities.h"

/* The pairs that one elimination may make. */
enum { MOST_INEQUALITIES = 256 };

/* lhs <= 0 or lhs = 0; else `whole` is a condition of another form. */
typedef struct inequality {
  pln_kind kind; /* PLN_PRIM_LE, PLN_PRIM_EQ, or PLN_ANY */
  pln_term lhs, whole;
} inequality;

typedef struct system_list {
  inequality *items;
  uint32_t n, cap;
} system_list;

/* coef * var + rest <= 0 */
typedef struct polar {
  int64_t coef;
  pln_term rest;
} polar;

typedef struct polar_list {
  polar *items;
  uint32_t n, cap;
} polar_list;

typedef struct elimination {
  pln_analyzer *a;
  system_list now, next;
  polar_list pos, neg;
  pln_term_list rest;
  pln_term_list lower, upper, equal;
  bool too_many;
} elimination;

static bool grow(pln_analyzer *a, void **items, uint32_t *cap, uint32_t n,
                 size_t item) {
  pln_status status = pln_mem_grow(a->engine, items, cap, (size_t)n + 1, item);
  pln_arith_fail(a, status);
  return status == PLN_OK;
}

static void push_inequality(pln_analyzer *a, system_list *list, inequality q) {
  if (grow(a, (void **)&list->items, &list->cap, list->n, sizeof q))
    list->items[list->n++] = q;
}

static void push_polar(pln_analyzer *a, polar_list *list, int64_t coef,
                       pln_term rest) {
  if (grow(a, (void **)&list->items, &list->cap, list->n, sizeof(polar)))
    list->items[list->n++] = (polar){coef, rest};
}

static pln_term simplify(pln_analyzer *a, pln_term t) {
  return pln_simplify_term(a, t, 3);
}

/* ---------------------------------------------------------------- normal form
 */

static inequality normalized(pln_analyzer *a, pln_term t) {
  pln_term_node n = *pln_at(a, t);
  pln_term x = n.a, y = n.b;
  if (n.kind < PLN_PRIM_EQ || n.kind > PLN_PRIM_GE || n.kind == PLN_PRIM_NE ||
      !pln_is_integer(a, n.a))
    return (inequality){PLN_ANY, PLN_NO_TERM, t};
  if (n.kind == PLN_PRIM_GT || n.kind == PLN_PRIM_GE) {
    x = n.b;
    y = n.a;
  }
  bool strict = n.kind == PLN_PRIM_LT || n.kind == PLN_PRIM_GT;
  pln_term lhs = pln_sub(a, x, y);
  if (strict)
    lhs = pln_add_const(a, lhs, 1);
  lhs = pln_simplify_term(a, lhs, 2);
  pln_kind kind = n.kind == PLN_PRIM_EQ ? PLN_PRIM_EQ : PLN_PRIM_LE;
  pln_term whole = pln_term_binary(a, kind, lhs, pln_const_like(a, lhs, 0));
  return (inequality){kind, lhs, whole};
}

/* x <= y */
static bool proves_at_most(pln_analyzer *a, pln_term x, pln_term y) {
  pln_term diff = pln_sub(a, x, y);
  return pln_prove(
      a, pln_fold(a, PLN_PRIM_LE, diff, pln_const_like(a, diff, 0)), 0);
}

/* Adds an inequality unless it follows from another; removes what follows from
 * it. */
static void add(elimination *e, system_list *list, inequality q) {
  pln_analyzer *a = e->a;
  uint32_t kept = 0;
  if (!q.whole || pln_prove(a, q.whole, 0))
    return;
  for (uint32_t i = 0; i < list->n; i++) {
    const inequality *old = &list->items[i];
    if (old->whole == q.whole ||
        (q.kind == PLN_PRIM_LE && old->kind == PLN_PRIM_LE &&
         proves_at_most(a, q.lhs, old->lhs)))
      return;
  }
  for (uint32_t i = 0; i < list->n; i++) {
    inequality old = list->items[i];
    if (q.kind != PLN_PRIM_LE || old.kind != PLN_PRIM_LE ||
        !proves_at_most(a, old.lhs, q.lhs))
      list->items[kept++] = old;
  }
  list->n = kept;
  e->too_many = e->too_many || kept >= MOST_INEQUALITIES;
  push_inequality(a, list, q);
}

/* --------------------------------------------------------------- elimination
 */

static pln_term negated(pln_analyzer *a, pln_term t) {
  return pln_sub(a, pln_const_like(a, t, 0), t);
}

/* By the sign of the coefficient of the variable. */
static void classify_one(elimination *e, inequality q, pln_term var) {
  pln_analyzer *a = e->a;
  pln_term coef[2];
  bool linear = q.kind != PLN_ANY &&
                pln_detect_linear(a, q.lhs, 1, &var, coef) &&
                pln_is_const(a, coef[0]) && pln_const(a, coef[0]) > -PLN_INF;
  if (!linear) {
    pln_term_list_push(a, &e->rest, q.whole);
    return;
  }
  int64_t c = pln_const(a, coef[0]);
  if (c == 0) {
    add(e, &e->next, q);
  } else if (q.kind == PLN_PRIM_EQ) {
    pln_term minus = negated(a, coef[1]);
    push_polar(a, &e->pos, c > 0 ? c : -c, c > 0 ? coef[1] : minus);
    push_polar(a, &e->neg, c > 0 ? -c : c, c > 0 ? minus : coef[1]);
  } else {
    push_polar(a, c > 0 ? &e->pos : &e->neg, c, coef[1]);
  }
}

static void add_range(elimination *e, const pln_term_range *r) {
  pln_analyzer *a = e->a;
  pln_term last = pln_add_const(a, pln_add(a, r->min, r->extent), -1);
  push_polar(a, &e->neg, -1, simplify(a, r->min));
  push_polar(a, &e->pos, 1, negated(a, simplify(a, last)));
}

static void combine(elimination *e, polar p, polar n) {
  pln_analyzer *a = e->a;
  int64_t g = pln_gcd(p.coef, n.coef);
  pln_term lhs = pln_sub(a, pln_mul_const(a, n.rest, p.coef / g),
                         pln_mul_const(a, p.rest, n.coef / g));
  pln_term whole = pln_fold(a, PLN_PRIM_LE, lhs, pln_const_like(a, lhs, 0));
  whole = simplify(a, whole);
  if (whole)
    add(e, &e->next, normalized(a, whole));
}

static void combine_all(elimination *e) {
  for (uint32_t i = 0; i < e->pos.n; i++)
    for (uint32_t k = 0; k < e->neg.n; k++)
      if (!e->too_many && e->a->status == PLN_OK)
        combine(e, e->pos.items[i], e->neg.items[k]);
}

/* ------------------------------------------------------------------- bounds
 */

static bool least_multiple(const polar_list *list, int64_t *lcm) {
  for (uint32_t i = 0; i < list->n; i++) {
    int64_t c = list->items[i].coef, g = pln_gcd(*lcm, c);
    if (!pln_mul_fits(*lcm / g, c < 0 ? -c : c, lcm))
      return false;
  }
  return true;
}

static void remove_at(pln_term_list *list, uint32_t i) {
  memmove(&list->items[i], &list->items[i + 1],
          (list->n - i - 1) * sizeof *list->items);
  list->n--;
}

/* Adds a bound unless another is as good; removes worse ones. */
static void add_bound(pln_analyzer *a, pln_term_list *list, pln_term bound,
                      bool upper) {
  for (uint32_t i = 0; i < list->n; i++)
    if (upper ? proves_at_most(a, list->items[i], bound)
              : proves_at_most(a, bound, list->items[i]))
      return;
  for (uint32_t i = list->n; i-- > 0;)
    if (upper ? proves_at_most(a, bound, list->items[i])
              : proves_at_most(a, list->items[i], bound))
      remove_at(list, i);
  pln_term_list_push(a, list, bound);
}

static void make_bounds(elimination *e, const polar_list *from,
                        pln_term_list *to, int64_t lcm, bool upper) {
  pln_analyzer *a = e->a;
  for (uint32_t i = 0; i < from->n && a->status == PLN_OK; i++) {
    polar p = from->items[i];
    pln_term bound = simplify(a, pln_mul_const(a, p.rest, -(lcm / p.coef)));
    if (bound)
      add_bound(a, to, bound, upper);
  }
}

/* Bounds on both sides are equations; the simplest comes first. */
static void find_equal(elimination *e) {
  pln_analyzer *a = e->a;
  for (uint32_t i = 0; i < e->upper.n;) {
    uint32_t k = 0;
    while (k < e->lower.n && e->lower.items[k] != e->upper.items[i])
      k++;
    if (k == e->lower.n) {
      i++;
      continue;
    }
    uint32_t at = e->equal.n, size = pln_at(a, e->upper.items[i])->size;
    pln_term_list_push(a, &e->equal, e->upper.items[i]);
    for (; at > 0 && pln_at(a, e->equal.items[at - 1])->size > size; at--) {
      pln_term swap = e->equal.items[at];
      e->equal.items[at] = e->equal.items[at - 1];
      e->equal.items[at - 1] = swap;
    }
    remove_at(&e->lower, k);
    remove_at(&e->upper, i);
  }
}

static void append(pln_analyzer *a, pln_linear_bounds *out,
                   const pln_term_list *list) {
  for (uint32_t i = 0; i < list->n; i++)
    if (grow(a, (void **)&out->terms, &out->cap_terms, out->n_terms,
             sizeof *out->terms))
      out->terms[out->n_terms++] = list->items[i];
}

static void give_bounds(elimination *e, pln_term var, int64_t lcm,
                        pln_linear_bounds *out) {
  pln_analyzer *a = e->a;
  out->groups[out->n_groups++] =
      (pln_group_bounds){var,          pln_const_like(a, var, lcm),
                         out->n_terms, e->lower.n,
                         e->equal.n,   e->upper.n};
  append(a, out, &e->lower);
  append(a, out, &e->equal);
  append(a, out, &e->upper);
}

static void eliminate(elimination *e, pln_term var, const pln_term_range *range,
                      pln_linear_bounds *out) {
  pln_analyzer *a = e->a;
  int64_t lcm = 1;
  e->next.n = e->pos.n = e->neg.n = 0;
  e->lower.n = e->upper.n = e->equal.n = 0;
  if (range)
    add_range(e, range);
  for (uint32_t i = 0; i < e->now.n && a->status == PLN_OK; i++)
    classify_one(e, e->now.items[i], var);
  combine_all(e);
  if (!least_multiple(&e->pos, &lcm) || !least_multiple(&e->neg, &lcm) ||
      !pln_holds_int((pln_dtype)pln_at(a, var)->dtype, lcm))
    e->too_many = true;
  if (a->status != PLN_OK || e->too_many)
    return;
  make_bounds(e, &e->pos, &e->upper, lcm, true);
  make_bounds(e, &e->neg, &e->lower, lcm, false);
  find_equal(e);
  give_bounds(e, var, lcm, out);
  system_list swap = e->now;
  e->now = e->next;
  e->next = swap;
}

static void relate(pln_analyzer *a, pln_linear_bounds *out, pln_term t) {
  if (grow(a, (void **)&out->relations, &out->cap_relations, out->n_relations,
           sizeof t))
    out->relations[out->n_relations++] = t;
}

/* What is left when all variables are gone. */
static void give_rest(elimination *e, pln_linear_bounds *out) {
  pln_analyzer *a = e->a;
  for (uint32_t i = 0; i < e->now.n && a->status == PLN_OK; i++) {
    pln_term t = simplify(a, e->now.items[i].whole);
    if (pln_is_value(a, t, 0)) {
      out->n_relations = 0;
      relate(a, out, t);
      break;
    }
    if (t && !pln_is_value(a, t, 1))
      relate(a, out, t);
  }
  for (uint32_t i = 0; i < e->rest.n; i++)
    relate(a, out, e->rest.items[i]);
}

/* ------------------------------------------------------------- public access
 */

const pln_term_range *pln_find_range(uint32_t n, const pln_term_range *ranges,
                                     pln_term var) {
  for (uint32_t i = 0; i < n; i++)
    if (ranges[i].var == var)
      return &ranges[i];
  return NULL;
}

uint32_t pln_enter_range(pln_analyzer *a, pln_term_range r) {
  pln_term last = pln_add(a, r.min, r.extent);
  uint32_t mark = pln_enter(a, pln_fold(a, PLN_PRIM_GE, r.var, r.min));
  pln_enter(a, pln_fold(a, PLN_PRIM_LT, r.var, last));
  return mark;
}

/* The variables whose ranges have one value, and the values. */
static void find_singles(pln_analyzer *a, uint32_t n,
                         const pln_term_range *ranges, pln_term_list *vars,
                         pln_term_list *values) {
  for (uint32_t i = 0; i < n; i++)
    if (pln_is_value(a, ranges[i].extent, 1)) {
      pln_term_list_push(a, vars, ranges[i].var);
      pln_term_list_push(a, values, ranges[i].min);
    }
}

static void read_relations(elimination *e, uint32_t m,
                           const pln_term *relations, uint32_t n_ranges,
                           const pln_term_range *ranges) {
  pln_analyzer *a = e->a;
  pln_term_list vars = {0}, values = {0};
  find_singles(a, n_ranges, ranges, &vars, &values);
  for (uint32_t i = 0; i < m && a->status == PLN_OK; i++) {
    pln_term t =
        pln_term_substitute(a, relations[i], vars.n, vars.items, values.items);
    t = simplify(a, t);
    if (t)
      add(e, &e->now, normalized(a, t));
  }
  pln_term_list_free(a, &vars);
  pln_term_list_free(a, &values);
}

static void solve(elimination *e, uint32_t m, const pln_term *relations,
                  uint32_t n, const pln_term *vars, uint32_t n_ranges,
                  const pln_term_range *ranges, pln_linear_bounds *out) {
  pln_analyzer *a = e->a;
  read_relations(e, m, relations, n_ranges, ranges);
  for (uint32_t i = 0; i < n && a->status == PLN_OK && !e->too_many; i++)
    eliminate(e, vars[i], pln_find_range(n_ranges, ranges, vars[i]), out);
  if (a->status == PLN_OK && !e->too_many)
    give_rest(e, out);
}

static void release(elimination *e) {
  pln_engine *engine = e->a->engine;
  system_list *systems[] = {&e->now, &e->next};
  polar_list *polars[] = {&e->pos, &e->neg};
  pln_term_list *lists[] = {&e->rest, &e->lower, &e->upper, &e->equal};
  for (uint32_t i = 0; i < 2; i++) {
    if (systems[i]->items)
      pln_mem_free(engine, systems[i]->items,
                   systems[i]->cap * sizeof(inequality));
    if (polars[i]->items)
      pln_mem_free(engine, polars[i]->items, polars[i]->cap * sizeof(polar));
  }
  for (uint32_t i = 0; i < PLN_COUNT(lists); i++)
    pln_term_list_free(e->a, lists[i]);
}

void pln_linear_bounds_free(pln_analyzer *a, pln_linear_bounds *b) {
  if (b->groups)
    pln_mem_free(a->engine, b->groups,
                 (b->n_vars + (size_t)1) * sizeof *b->groups);
  if (b->terms)
    pln_mem_free(a->engine, b->terms, b->cap_terms * sizeof *b->terms);
  if (b->relations)
    pln_mem_free(a->engine, b->relations,
                 b->cap_relations * sizeof *b->relations);
  *b = (pln_linear_bounds){0};
}

pln_status pln_check_unknown(pln_analyzer *a, pln_term var) {
  PLN_TRY(pln_check_term(a, var));
  if (pln_is_integer(a, var))
    return PLN_OK;
  return pln_diag_error(
      a->engine, PLN_ERR_TYPE, NULL,
      "arith: the variables of a system are integers; one is %s",
      pln_at(a, var)->dtype ? pln_dtype_name((pln_dtype)pln_at(a, var)->dtype)
                            : "a handle");
}

pln_status pln_check_system(pln_analyzer *a, uint32_t m,
                            const pln_term *relations, uint32_t n,
                            const pln_term *vars, uint32_t n_ranges,
                            const pln_term_range *ranges) {
  for (uint32_t i = 0; i < n; i++) {
    PLN_TRY(pln_check_unknown(a, vars[i]));
    for (uint32_t k = 0; k < i; k++)
      if (vars[k] == vars[i])
        return pln_diag_error(a->engine, PLN_ERR_ARGUMENT, NULL,
                              "arith: a variable appears more than one time in "
                              "the `variables` which might be a bug");
  }
  for (uint32_t i = 0; i < n_ranges; i++) {
    PLN_TRY(pln_check_unknown(a, ranges[i].var));
    PLN_TRY(pln_check_term(a, ranges[i].min));
    PLN_TRY(pln_check_term(a, ranges[i].extent));
  }
  for (uint32_t i = 0; i < m; i++)
    PLN_TRY(pln_check_bool_term(a, relations[i]));
  a->status = PLN_OK;
  return PLN_OK;
}

pln_status pln_analyzer_solve_linear_inequalities(
    pln_analyzer *a, uint32_t m, const pln_term *relations, uint32_t n,
    const pln_term *vars, uint32_t n_ranges, const pln_term_range *ranges,
    pln_linear_bounds *out) {
  *out = (pln_linear_bounds){.n_vars = n};
  if (n > MOST_INEQUALITIES || m > MOST_INEQUALITIES)
    return pln_diag_error(a->engine, PLN_ERR_LIMIT, NULL,
                          "arith: %u inequalities in %u variables are too many",
                          (unsigned)m, (unsigned)n);
  PLN_TRY(pln_check_system(a, m, relations, n, vars, n_ranges, ranges));
  out->groups =
      pln_mem_zeroed(a->engine, (n + (size_t)1) * sizeof *out->groups);
  if (!out->groups)
    return pln_nomem(a->engine);
  elimination e = {.a = a};
  uint32_t mark = UINT32_MAX;
  for (uint32_t i = n_ranges; i-- > 0;) {
    uint32_t first = pln_enter_range(a, ranges[i]);
    mark = mark == UINT32_MAX ? first : mark;
  }
  solve(&e, m, relations, n, vars, n_ranges, ranges, out);
  pln_leave(a, mark);
  release(&e);
  pln_status status = a->status;
  if (status == PLN_OK && e.too_many)
    status = pln_diag_error(a->engine, PLN_ERR_LIMIT, NULL,
                            "arith: the elimination of a variable makes more "
                            "than %u inequalities",
                            (unsigned)MOST_INEQUALITIES);
  if (status != PLN_OK)
    pln_linear_bounds_free(a, out);
  return status;
}
