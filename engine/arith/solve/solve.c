/* solve.c: systems of linear equations over the integers.
 *
 * Called by the public function. The matrix A of A x = y is brought into the
 * diagonal form S by operations on rows, which are applied to y too, and on
 * columns, which are applied to V and inversely to x: x = V z with S z = y. A
 * zero of the diagonal leaves a new variable free (H. J. S. Smith, 1861; the
 * order of the operations is TVM's). */

#include <stdio.h>

#include "arith/arith.h"
#include "arith/solve/inequalities.h"

typedef struct linear_system {
  pln_analyzer *a;
  uint32_t m, n;  /* equations, variables */
  int64_t *s, *v; /* m * n, n * n */
  pln_term *y, *x;
  bool failed; /* a number does not fit */
} linear_system;

static int64_t *at(const linear_system *q, uint32_t i, uint32_t j) {
  return &q->s[(size_t)i * q->n + j];
}

static int64_t *v_at(const linear_system *q, uint32_t i, uint32_t j) {
  return &q->v[(size_t)i * q->n + j];
}

/* p * x + q * y */
static int64_t combine(linear_system *s, int64_t p, int64_t x, int64_t q,
                       int64_t y) {
  int64_t u, w, sum;
  if (pln_mul_fits(p, x, &u) && pln_mul_fits(q, y, &w) &&
      pln_add_fits(u, w, &sum) && sum != INT64_MIN)
    return sum;
  s->failed = true;
  return 0;
}

static pln_term combine_terms(linear_system *s, int64_t p, pln_term x,
                              int64_t q, pln_term y) {
  pln_analyzer *a = s->a;
  return pln_add(a, pln_mul(a, pln_const_like(a, x, p), x),
                 pln_mul(a, pln_const_like(a, y, q), y));
}

/* g = a * x + b * y, by Euclid's algorithm on |x| and y. As in TVM, g has the
 * sign of the last remainder: new variables get their signs from it. */
static int64_t extended_gcd(int64_t x, int64_t y, int64_t *a, int64_t *b) {
  int64_t s0 = 0, s1 = x < 0 ? -1 : 1, t0 = 1, t1 = 0, r0 = y,
          r1 = x < 0 ? -x : x;
  while (r0 != 0) {
    int64_t q = r1 / r0, r = r1 - q * r0, s = s1 - q * s0, t = t1 - q * t0;
    r1 = r0;
    r0 = r;
    s1 = s0;
    s0 = s;
    t1 = t0;
    t0 = t;
  }
  *a = s1;
  *b = t1;
  return r1;
}

static void swap_rows(linear_system *q, uint32_t i, uint32_t k) {
  for (uint32_t j = 0; j < q->n; j++) {
    int64_t x = *at(q, i, j);
    *at(q, i, j) = *at(q, k, j);
    *at(q, k, j) = x;
  }
  pln_term y = q->y[i];
  q->y[i] = q->y[k];
  q->y[k] = y;
}

static void swap_columns(linear_system *q, uint32_t j, uint32_t k) {
  for (uint32_t i = 0; i < q->m; i++) {
    int64_t x = *at(q, i, j);
    *at(q, i, j) = *at(q, i, k);
    *at(q, i, k) = x;
  }
  for (uint32_t i = 0; i < q->n; i++) {
    int64_t x = *v_at(q, i, j);
    *v_at(q, i, j) = *v_at(q, i, k);
    *v_at(q, i, k) = x;
  }
  pln_term x = q->x[j];
  q->x[j] = q->x[k];
  q->x[k] = x;
}

/* Puts a non-zero number at (d, d), if row or column has one. */
static bool choose_pivot(linear_system *q, uint32_t d) {
  uint32_t best = d;
  for (uint32_t i = d; i < q->m; i++) {
    int64_t x = *at(q, i, d), least = *at(q, best, d);
    if (x != 0 &&
        (least == 0 || (x < 0 ? -x : x) < (least < 0 ? -least : least)))
      best = i;
  }
  swap_rows(q, d, best);
  for (uint32_t j = d + 1; j < q->n && *at(q, d, d) == 0; j++)
    if (*at(q, d, j) != 0)
      swap_columns(q, d, j);
  return *at(q, d, d) != 0;
}

typedef struct step_numbers {
  int64_t a, b, p, q; /* g = a * x + b * y; p = x / g, q = y / g */
} step_numbers;

/* *exact: y is a multiple of x, whose line stays as it is. */
static step_numbers numbers_of(int64_t x, int64_t y, bool *exact) {
  step_numbers s = {.a = 1, .b = 0};
  int64_t g = x;
  *exact = y % x == 0;
  if (!*exact)
    g = extended_gcd(x, y, &s.a, &s.b);
  s.p = x / g;
  s.q = y / g;
  return s;
}

static void clear_below(linear_system *q, uint32_t d, uint32_t i) {
  bool exact;
  step_numbers s = numbers_of(*at(q, d, d), *at(q, i, d), &exact);
  for (uint32_t j = d; j < q->n; j++) {
    int64_t x = *at(q, d, j), y = *at(q, i, j);
    *at(q, d, j) = combine(q, s.a, x, s.b, y);
    *at(q, i, j) = combine(q, s.q, x, -s.p, y);
  }
  pln_term x = q->y[d], y = q->y[i];
  q->y[d] = combine_terms(q, s.a, x, s.b, y);
  q->y[i] = combine_terms(q, s.q, x, -s.p, y);
}

static void combine_columns(linear_system *q, int64_t *x, int64_t *y,
                            step_numbers s) {
  int64_t p = *x, r = *y;
  *x = combine(q, s.a, p, s.b, r);
  *y = combine(q, s.q, p, -s.p, r);
}

/* True if the column of the pivot may have changed. */
static bool clear_right(linear_system *q, uint32_t d, uint32_t j) {
  bool exact;
  step_numbers s = numbers_of(*at(q, d, d), *at(q, d, j), &exact);
  for (uint32_t i = d; i < q->m; i++)
    combine_columns(q, at(q, i, d), at(q, i, j), s);
  for (uint32_t i = 0; i < q->n; i++)
    combine_columns(q, v_at(q, i, d), v_at(q, i, j), s);
  pln_term x = q->x[d], y = q->x[j];
  q->x[d] = combine_terms(q, s.p, x, s.q, y);
  q->x[j] = combine_terms(q, s.b, x, -s.a, y);
  return !exact;
}

/* One pass over row and column d; true if it has to be repeated. */
static bool clear_cross(linear_system *q, uint32_t d) {
  bool again = false;
  for (uint32_t i = d + 1; i < q->m && !q->failed; i++)
    if (*at(q, i, d) != 0)
      clear_below(q, d, i);
  for (uint32_t j = d + 1; j < q->n && !q->failed; j++)
    if (*at(q, d, j) != 0)
      again = clear_right(q, d, j) || again;
  return again;
}

static void diagonalize(linear_system *q) {
  for (uint32_t d = 0; d < q->m && d < q->n; d++)
    while (!q->failed && q->a->status == PLN_OK && choose_pivot(q, d) &&
           clear_cross(q, d))
      continue;
}

/* ------------------------------------------------------------------ solution
 */

static void *array(pln_analyzer *a, size_t n, size_t item) {
  void *out = pln_mem_zeroed(a->engine, (n + 1) * item);
  if (!out)
    pln_arith_fail(a, pln_nomem(a->engine));
  return out;
}

static void release(pln_analyzer *a, void *items, size_t n, size_t item) {
  if (items)
    pln_mem_free(a->engine, items, (n + 1) * item);
}

void pln_linear_solution_free(pln_analyzer *a, pln_linear_solution *s) {
  release(a, s->solution, s->n_vars, sizeof *s->solution);
  release(a, s->new_vars, s->n_vars, sizeof *s->new_vars);
  release(a, s->to_old, s->n_vars, sizeof *s->to_old);
  release(a, s->min, s->n_vars, sizeof *s->min);
  release(a, s->max, s->n_vars, sizeof *s->max);
  if (s->relations)
    pln_mem_free(a->engine, s->relations,
                 s->cap_relations * sizeof *s->relations);
  *s = (pln_linear_solution){0};
}

static void relate(pln_analyzer *a, pln_linear_solution *s, pln_term t) {
  if (!t || pln_is_value(a, t, 1))
    return;
  if (pln_is_value(a, t, 0))
    s->solvable = false;
  pln_status status =
      pln_mem_grow(a->engine, (void **)&s->relations, &s->cap_relations,
                   (size_t)s->n_relations + 1, sizeof *s->relations);
  pln_arith_fail(a, status);
  if (status == PLN_OK)
    s->relations[s->n_relations++] = t;
}

/* A row of the matrix, if the relation is an equation with integer
 * coefficients. */
static bool read_row(linear_system *q, pln_term t, const pln_term *vars,
                     pln_term *coefs) {
  pln_analyzer *a = q->a;
  pln_term_node n = *pln_at(a, t);
  if (n.kind != PLN_PRIM_EQ || !pln_is_index(a, n.a))
    return false;
  pln_term diff = pln_simplify_term(a, pln_sub(a, n.a, n.b), 2);
  if (!diff || !pln_detect_linear(a, diff, q->n, vars, coefs))
    return false;
  for (uint32_t j = 0; j < q->n; j++)
    if (!pln_is_const(a, coefs[j]) || pln_const(a, coefs[j]) == INT64_MIN)
      return false;
  for (uint32_t j = 0; j < q->n; j++)
    *at(q, q->m, j) = pln_const(a, coefs[j]);
  pln_term zero = pln_const_like(a, coefs[q->n], 0);
  q->y[q->m++] = pln_simplify_term(a, pln_sub(a, zero, coefs[q->n]), 2);
  return true;
}

/* What must hold so that there is a solution. */
static void check_rows(linear_system *q, pln_linear_solution *out) {
  pln_analyzer *a = q->a;
  for (uint32_t i = 0; i < q->m && a->status == PLN_OK; i++) {
    int64_t d = i < q->n ? *at(q, i, i) : 0;
    q->y[i] = pln_simplify_term(a, q->y[i], 2);
    pln_term y = q->y[i], zero = pln_const_like(a, y, 0);
    if (d != 0)
      y = pln_fold(a, PLN_PRIM_FLOORMOD, y,
                   pln_const_like(a, y, d < 0 ? -d : d));
    relate(a, out, pln_simplify_term(a, pln_fold(a, PLN_PRIM_EQ, y, zero), 2));
  }
}

static pln_term new_variable(linear_system *q, pln_linear_solution *out,
                             uint32_t j) {
  pln_analyzer *a = q->a;
  pln_term old = pln_simplify_term(a, q->x[j], 2);
  char name[64];
  int size = snprintf(name, sizeof name, "n%u", (unsigned)out->n_new);
  if (old && pln_term_kind(a, old) == PLN_VAR) {
    pln_slice text = pln_symbol_text(a->engine, pln_at(a, old)->b);
    snprintf(name + size, sizeof name - (size_t)size, "_%.*s",
             (int)(text.size < 40 ? text.size : 40), text.data);
  }
  pln_term var = pln_term_fresh(a, old, name);
  out->new_vars[out->n_new] = var;
  out->to_old[out->n_new++] = old;
  return var;
}

/* The new variables, or values, in place of x. */
static void make_variables(linear_system *q, pln_linear_solution *out) {
  pln_analyzer *a = q->a;
  for (uint32_t j = 0; j < q->n && a->status == PLN_OK; j++) {
    int64_t d = j < q->m ? *at(q, j, j) : 0;
    if (d == 0) {
      q->x[j] = new_variable(q, out, j);
      continue;
    }
    pln_term y = q->y[j];
    if (d < 0)
      y = pln_sub(a, pln_const_like(a, y, 0), y);
    pln_term c = pln_const_like(a, y, d < 0 ? -d : d);
    q->x[j] = pln_simplify_term(a, pln_fold(a, PLN_PRIM_FLOORDIV, y, c), 2);
  }
  for (uint32_t i = 0; i < q->n && a->status == PLN_OK; i++) {
    pln_term sum = PLN_NO_TERM;
    for (uint32_t j = 0; j < q->n; j++) {
      pln_term x =
          pln_mul(a, pln_const_like(a, q->x[j], *v_at(q, i, j)), q->x[j]);
      sum = sum ? pln_add(a, sum, x) : x;
    }
    out->solution[i] = pln_simplify_term(a, sum, 2);
  }
}

/* The ranges of the new variables, from those of the old ones. */
static void infer_ranges(pln_analyzer *a, pln_linear_solution *out, uint32_t n,
                         const pln_term *vars, const pln_interval *sets) {
  for (uint32_t j = 0; j < out->n_new && a->status == PLN_OK; j++) {
    pln_interval set = pln_interval_of(a, out->to_old[j], n, vars, sets, false);
    out->min[j] =
        pln_is_infinite(set.min) ? set.min : pln_simplify_term(a, set.min, 2);
    out->max[j] =
        pln_is_infinite(set.max) ? set.max : pln_simplify_term(a, set.max, 2);
    pln_bound low = pln_is_infinite(set.min) ? (pln_bound){-PLN_INF, PLN_INF}
                                             : pln_bound_of(a, set.min);
    pln_bound high = pln_is_infinite(set.max) ? (pln_bound){-PLN_INF, PLN_INF}
                                              : pln_bound_of(a, set.max);
    if (low.min > high.max)
      continue;
    pln_status status =
        pln_analyzer_update_bound(a, out->new_vars[j], low.min, high.max, true);
    pln_arith_fail(a, status);
  }
}

/* Ranges of the old variables as relations of the new ones. */
static void relate_ranges(linear_system *q, pln_linear_solution *out,
                          const pln_term *vars, uint32_t n, const pln_term *of,
                          const pln_interval *sets) {
  pln_analyzer *a = q->a;
  for (uint32_t i = 0; i < q->n && a->status == PLN_OK; i++)
    for (uint32_t k = 0; k < n; k++) {
      if (of[k] != vars[i])
        continue;
      pln_term x = out->solution[i];
      if (!pln_is_infinite(sets[k].min))
        relate(
            a, out,
            pln_simplify_term(a, pln_fold(a, PLN_PRIM_LE, sets[k].min, x), 2));
      if (!pln_is_infinite(sets[k].max))
        relate(a, out,
               pln_simplify_term(a,
                                 pln_fold(a, PLN_PRIM_LT, x,
                                          pln_add_const(a, sets[k].max, 1)),
                                 2));
    }
}

static void solve(linear_system *q, pln_linear_solution *out, uint32_t n_rest,
                  const pln_term *rest, const pln_term *vars, uint32_t n,
                  const pln_term *of, const pln_interval *sets) {
  pln_analyzer *a = q->a;
  diagonalize(q);
  if (q->failed || a->status != PLN_OK)
    return;
  check_rows(q, out);
  if (!out->solvable || a->status != PLN_OK)
    return;
  make_variables(q, out);
  infer_ranges(a, out, n, of, sets);
  relate_ranges(q, out, vars, n, of, sets);
  for (uint32_t i = 0; i < n_rest && a->status == PLN_OK; i++)
    relate(a, out, pln_term_substitute(a, rest[i], q->n, vars, out->solution));
}

static bool make_arrays(linear_system *q, pln_linear_solution *out,
                        uint32_t m) {
  pln_analyzer *a = q->a;
  uint32_t n = q->n;
  q->s = array(a, (size_t)m * n, sizeof *q->s);
  q->v = array(a, (size_t)n * n, sizeof *q->v);
  q->y = array(a, m, sizeof *q->y);
  q->x = array(a, n, sizeof *q->x);
  out->n_vars = n;
  out->solution = array(a, n, sizeof(pln_term));
  out->new_vars = array(a, n, sizeof(pln_term));
  out->to_old = array(a, n, sizeof(pln_term));
  out->min = array(a, n, sizeof(pln_term));
  out->max = array(a, n, sizeof(pln_term));
  return a->status == PLN_OK;
}

static void read_system(linear_system *q, uint32_t m, const pln_term *relations,
                        const pln_term *vars, pln_term *rest, uint32_t *n_rest,
                        pln_term *coefs) {
  for (uint32_t i = 0; i < m && q->a->status == PLN_OK; i++)
    if (!read_row(q, relations[i], vars, coefs))
      rest[(*n_rest)++] = relations[i];
  for (uint32_t j = 0; j < q->n; j++) {
    *v_at(q, j, j) = 1;
    q->x[j] = vars[j];
  }
}

pln_status pln_analyzer_solve_linear_equations(pln_analyzer *a, uint32_t m,
                                               const pln_term *relations,
                                               uint32_t n, const pln_term *vars,
                                               uint32_t n_domains,
                                               const pln_term_domain *domains,
                                               pln_linear_solution *out) {
  linear_system q = {.a = a, .n = n};
  uint32_t n_rest = 0;
  pln_term *of = NULL;
  pln_interval *sets = NULL;
  *out = (pln_linear_solution){.solvable = true};
  for (uint32_t i = 0; i < m; i++)
    PLN_TRY(pln_check_term(a, relations[i]));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_check_unknown(a, vars[i]));
  if ((uint64_t)(m + (uint64_t)n) * n > 1 << 24)
    return pln_diag_error(a->engine, PLN_ERR_LIMIT, NULL,
                          "arith: a system of %u equations in %u variables is "
                          "too large",
                          (unsigned)m, (unsigned)n);
  a->status = PLN_OK;
  PLN_TRY(pln_read_domains(a, n_domains, domains, &of, &sets));
  pln_term *rest = array(a, m, sizeof *rest);
  pln_term *coefs = array(a, n, sizeof *coefs);
  if (make_arrays(&q, out, m) && rest && coefs) {
    read_system(&q, m, relations, vars, rest, &n_rest, coefs);
    if (a->status == PLN_OK)
      solve(&q, out, n_rest, rest, vars, n_domains, of, sets);
  }
  release(a, rest, m, sizeof *rest);
  release(a, coefs, n, sizeof *coefs);
  release(a, q.s, (size_t)m * n, sizeof *q.s);
  release(a, q.v, (size_t)n * n, sizeof *q.v);
  release(a, q.y, m, sizeof *q.y);
  release(a, q.x, n, sizeof *q.x);
  pln_free_domains(a, n_domains, of, sets);
  pln_status status = a->status;
  if (status == PLN_OK && q.failed)
    status = pln_diag_error(a->engine, PLN_ERR_LIMIT, NULL,
                            "arith: a coefficient of the system is too large");
  if (status != PLN_OK)
    pln_linear_solution_free(a, out);
  return status;
}
