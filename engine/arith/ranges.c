/* arith/ranges.c: the solutions of linear inequalities as ranges of variables.
 *
 * Called by the public function. Variables are taken from the last one back,
 * which depends on none of the others. Of the bounds of a variable the pair
 * with the least difference is its range; what that does not say remains as
 * relations. */

#include <stdio.h>

#include "arith/solve/inequalities.h"

typedef struct ranging {
  pln_analyzer *a;
  pln_linear_ranges *out;
  pln_linear_bounds bounds;
  pln_term_range *known; /* of variables, old and new */
  uint32_t n_known, cap_known;
  pln_term_list done; /* old variables that have an image */
  pln_term_list images;
  bool deskew;
} ranging;

static void know(ranging *r, pln_term_range range) {
  pln_analyzer *a = r->a;
  for (uint32_t i = 0; i < r->n_known; i++)
    if (r->known[i].var == range.var) {
      r->known[i] = range;
      return;
    }
  pln_status status = pln_mem_grow(a->engine, (void **)&r->known, &r->cap_known,
                                   (size_t)r->n_known + 1, sizeof *r->known);
  pln_arith_fail(a, status);
  if (status == PLN_OK)
    r->known[r->n_known++] = range;
}

/* Enters all known ranges; the mark to leave them, or UINT32_MAX. */
static uint32_t enter_known(ranging *r) {
  uint32_t mark = UINT32_MAX;
  for (uint32_t i = 0; i < r->n_known; i++) {
    uint32_t first = pln_enter_range(r->a, r->known[i]);
    mark = mark == UINT32_MAX ? first : mark;
  }
  return mark;
}

/* ----------------------------------------------------------------- best range
 */

/* The bounds of one variable, with those of its range. */
typedef struct bound_set {
  pln_term_list lower, upper;
  pln_term coef;
} bound_set;

/* With deskew, old variables are replaced by the new ones; else those of one
 * value by it. */
static pln_term image(ranging *r, pln_term t) {
  return pln_term_substitute(r->a, t, r->done.n, r->done.items,
                             r->images.items);
}

/* Equations come before inequalities, on both sides. */
static void collect_bounds(ranging *r, const pln_group_bounds *g,
                           bound_set *out) {
  pln_analyzer *a = r->a;
  const pln_term *t = &r->bounds.terms[g->first];
  const pln_term_range *own = pln_find_range(r->n_known, r->known, g->var);
  for (uint32_t i = 0; i < g->n_equal; i++) {
    pln_term x = image(r, t[g->n_lower + i]);
    pln_term_list_push(a, &out->lower, x);
    pln_term_list_push(a, &out->upper, x);
  }
  if (own) {
    pln_term last = pln_add_const(a, pln_add(a, own->min, own->extent), -1);
    pln_term low = pln_simplify_term(a, pln_mul(a, own->min, g->coef), 2);
    pln_term high = pln_simplify_term(a, pln_mul(a, last, g->coef), 2);
    pln_term_list_push(a, &out->lower, low);
    pln_term_list_push(a, &out->upper, high);
  }
  for (uint32_t i = 0; i < g->n_lower; i++)
    pln_term_list_push(a, &out->lower, image(r, t[i]));
  for (uint32_t i = 0; i < g->n_upper; i++)
    pln_term_list_push(a, &out->upper,
                       image(r, t[g->n_lower + g->n_equal + i]));
}

/* The greatest value of a difference, if it is known. */
static pln_term greatest(ranging *r, pln_term diff, const pln_term *vars,
                         const pln_interval *sets) {
  pln_analyzer *a = r->a;
  if (!diff || pln_is_const(a, diff))
    return diff;
  pln_interval set = pln_interval_of(a, diff, r->n_known, vars, sets, false);
  return pln_is_infinite(set.max) ? PLN_NO_TERM
                                  : pln_simplify_term(a, set.max, 3);
}

static bool proves_less(pln_analyzer *a, pln_term x, pln_term y) {
  return pln_prove(a, pln_fold(a, PLN_PRIM_LT, x, y), 0);
}

/* The lesser of two; the first if that is not known. */
static pln_term lesser(pln_analyzer *a, pln_term x, pln_term y) {
  if (!x || !y)
    return x ? x : y;
  return proves_less(a, y, x) ? y : x;
}

typedef struct best {
  pln_term low, diff;
} best;

/* low / coef rounded up, to high / coef rounded down. */
static void try_pair(ranging *r, const bound_set *b, pln_term low,
                     pln_term high, const pln_term *vars,
                     const pln_interval *sets, best *out) {
  pln_analyzer *a = r->a;
  pln_term diff =
      pln_fold(a, PLN_PRIM_FLOORDIV, pln_sub(a, high, low), b->coef);
  pln_term up = pln_add_const(a, pln_add(a, low, b->coef), -1);
  pln_term first =
      pln_simplify_term(a, pln_fold(a, PLN_PRIM_FLOORDIV, up, b->coef), 3);
  pln_term other =
      pln_sub(a, pln_fold(a, PLN_PRIM_FLOORDIV, high, b->coef), first);
  pln_term x = greatest(r, pln_simplify_term(a, diff, 3), vars, sets);
  pln_term y = greatest(r, pln_simplify_term(a, other, 3), vars, sets);
  pln_term least = lesser(a, x, y);
  if (least && (!out->diff || proves_less(a, least, out->diff)))
    *out = (best){first, least};
}

static void try_pairs(ranging *r, const bound_set *b, best *out) {
  pln_analyzer *a = r->a;
  pln_term *vars;
  pln_interval *sets;
  pln_term_domain *domains =
      pln_mem_new(a->engine, (r->n_known + (size_t)1) * sizeof *domains);
  pln_status status = domains ? PLN_OK : pln_nomem(a->engine);
  for (uint32_t i = 0; i < r->n_known && domains; i++) {
    pln_term_range k = r->known[i];
    pln_term last = pln_add_const(a, pln_add(a, k.min, k.extent), -1);
    domains[i] = (pln_term_domain){k.var, k.min, pln_simplify_term(a, last, 2)};
  }
  if (status == PLN_OK)
    status = pln_read_domains(a, r->n_known, domains, &vars, &sets);
  if (domains)
    pln_mem_free(a->engine, domains,
                 (r->n_known + (size_t)1) * sizeof *domains);
  pln_arith_fail(a, status);
  if (status != PLN_OK)
    return;
  for (uint32_t i = 0; i < b->lower.n; i++)
    for (uint32_t k = 0; k < b->upper.n && a->status == PLN_OK; k++)
      try_pair(r, b, b->lower.items[i], b->upper.items[k], vars, sets, out);
  pln_free_domains(a, r->n_known, vars, sets);
}

/* False: there is none. */
static bool find_range(ranging *r, const pln_group_bounds *g,
                       pln_term_range *out) {
  pln_analyzer *a = r->a;
  bound_set b = {.coef = g->coef};
  best found = {0};
  collect_bounds(r, g, &b);
  bool one = b.lower.n == 1 && b.upper.n == 1 && pln_is_value(a, g->coef, 1);
  out->var = g->var;
  if (one) {
    out->min = pln_simplify_term(a, b.lower.items[0], 2);
    pln_term end =
        pln_simplify_term(a, pln_add_const(a, b.upper.items[0], 1), 2);
    out->extent = pln_simplify_term(a, pln_sub(a, end, out->min), 2);
  } else {
    try_pairs(r, &b, &found);
    out->min = found.low;
    out->extent = found.diff
                      ? pln_simplify_term(a, pln_add_const(a, found.diff, 1), 2)
                      : PLN_NO_TERM;
  }
  pln_term_list_free(a, &b.lower);
  pln_term_list_free(a, &b.upper);
  return out->min && out->extent;
}

/* ------------------------------------------------------------------ variables
 */

static uint32_t place_of(const ranging *r, pln_term var) {
  uint32_t i = 0;
  while (r->bounds.groups[i].var != var)
    i++;
  return i;
}

static void set_image(ranging *r, pln_term var, pln_term value) {
  pln_term_list_push(r->a, &r->done, var);
  pln_term_list_push(r->a, &r->images, value);
  r->out->to_new[place_of(r, var)] = value;
}

static void add_new(ranging *r, pln_term var, pln_term old) {
  pln_linear_ranges *out = r->out;
  out->new_vars[out->n_new] = var;
  out->to_old[out->n_new++] = old;
}

/* A new variable that begins with 0. */
static void shift(ranging *r, pln_term_range range) {
  pln_analyzer *a = r->a;
  char name[80];
  pln_slice text = pln_symbol_text(a->engine, pln_at(a, range.var)->b);
  snprintf(name, sizeof name, "%.*s.shifted",
           (int)(text.size < 60 ? text.size : 60), text.data);
  pln_term var = pln_term_fresh(a, range.var, name);
  pln_term back = pln_term_substitute(a, range.min, r->out->n_new,
                                      r->out->new_vars, r->out->to_old);
  pln_term old = pln_simplify_term(a, pln_sub(a, range.var, back), 2);
  pln_term_range moved = {var, pln_const_like(a, range.extent, 0),
                          range.extent};
  set_image(r, range.var, pln_add(a, var, range.min));
  add_new(r, var, old);
  r->out->ranges[r->out->n_ranges++] = moved;
  know(r, moved);
}

static void give_range(ranging *r, pln_term_range range) {
  r->out->ranges[r->out->n_ranges++] = range;
  know(r, range);
  if (pln_is_value(r->a, range.extent, 1)) {
    pln_term_list_push(r->a, &r->done, range.var);
    pln_term_list_push(r->a, &r->images, range.min);
  }
}

/* A variable that equals a term of the others. */
static void give_value(ranging *r, pln_term var, pln_term value) {
  pln_analyzer *a = r->a;
  value = image(r, value);
  if (r->deskew)
    set_image(r, var, value);
  else
    give_range(r, (pln_term_range){var, pln_simplify_term(a, value, 2),
                                   pln_const_like(a, value, 1)});
}

static void solve_variable(ranging *r, const pln_group_bounds *g) {
  pln_analyzer *a = r->a;
  pln_term_range range;
  if (pln_is_value(a, g->coef, 1) && g->n_equal > 0) {
    give_value(r, g->var, r->bounds.terms[g->first + g->n_lower]);
    return;
  }
  bool found = find_range(r, g, &range);
  if (a->status != PLN_OK)
    return;
  if (!found && r->deskew) {
    set_image(r, g->var, g->var);
    add_new(r, g->var, g->var);
  } else if (found && r->deskew && pln_is_value(a, range.extent, 1)) {
    set_image(r, g->var, range.min);
  } else if (found && pln_prove(a,
                                pln_fold(a, PLN_PRIM_LE, range.extent,
                                         pln_const_like(a, range.extent, 0)),
                                0)) {
    r->out->solvable = false;
  } else if (found && r->deskew) {
    shift(r, range);
  } else if (found) {
    give_range(r, range);
  }
}

/* ------------------------------------------------------------------ relations
 */

/* A relation in old variables stays as it is, unless it follows from their
 * values and ranges. */
static void relate(ranging *r, pln_term t) {
  pln_analyzer *a = r->a;
  pln_linear_ranges *out = r->out;
  pln_term now = t ? image(r, t) : PLN_NO_TERM;
  if (r->deskew)
    t = now = now ? pln_simplify_term(a, now, 2) : PLN_NO_TERM;
  if (!now || (r->deskew ? pln_is_value(a, now, 1) : pln_prove(a, now, 0)))
    return;
  pln_status status =
      pln_mem_grow(a->engine, (void **)&out->relations, &out->cap_relations,
                   (size_t)out->n_relations + 1, sizeof t);
  pln_arith_fail(a, status);
  if (status == PLN_OK)
    out->relations[out->n_relations++] = t;
}

static void relate_group(ranging *r, const pln_group_bounds *g) {
  pln_analyzer *a = r->a;
  pln_term lhs = pln_mul(a, g->coef, g->var);
  const pln_term *t = &r->bounds.terms[g->first];
  for (uint32_t i = 0; i < g->n_equal; i++)
    relate(r, pln_fold(a, PLN_PRIM_EQ, lhs, t[g->n_lower + i]));
  for (uint32_t i = 0; i < g->n_lower; i++)
    relate(r, pln_fold(a, PLN_PRIM_GE, lhs, t[i]));
  for (uint32_t i = 0; i < g->n_upper; i++)
    relate(r, pln_fold(a, PLN_PRIM_LE, lhs, t[g->n_lower + g->n_equal + i]));
}

static void give_relations(ranging *r) {
  uint32_t mark = enter_known(r);
  for (uint32_t i = 0; i < r->bounds.n_groups; i++)
    relate_group(r, &r->bounds.groups[i]);
  for (uint32_t i = 0; i < r->bounds.n_relations; i++)
    relate(r, r->bounds.relations[i]);
  pln_leave(r->a, mark);
}

/* The new variables in the order of the old ones. */
static void reverse_new(pln_linear_ranges *out) {
  pln_mem_reverse(out->new_vars, out->n_new, sizeof *out->new_vars);
  pln_mem_reverse(out->to_old, out->n_new, sizeof *out->to_old);
}

static void solve(ranging *r) {
  for (uint32_t i = r->bounds.n_groups;
       i-- > 0 && r->out->solvable && r->a->status == PLN_OK;) {
    uint32_t mark = enter_known(r);
    solve_variable(r, &r->bounds.groups[i]);
    pln_leave(r->a, mark);
  }
  if (!r->out->solvable || r->a->status != PLN_OK)
    return;
  give_relations(r);
  reverse_new(r->out);
}

/* -------------------------------------------------------------- public access
 */

void pln_linear_ranges_free(pln_analyzer *a, pln_linear_ranges *r) {
  size_t size = (r->n_vars + (size_t)1) * sizeof(pln_term);
  pln_term *lists[] = {r->to_new, r->new_vars, r->to_old};
  for (uint32_t i = 0; i < PLN_COUNT(lists); i++)
    if (lists[i])
      pln_mem_free(a->engine, lists[i], size);
  if (r->ranges)
    pln_mem_free(a->engine, r->ranges,
                 (r->n_vars + (size_t)1) * sizeof *r->ranges);
  if (r->relations)
    pln_mem_free(a->engine, r->relations,
                 r->cap_relations * sizeof *r->relations);
  *r = (pln_linear_ranges){0};
}

static pln_status make_arrays(pln_analyzer *a, uint32_t n,
                              pln_linear_ranges *out) {
  size_t size = (n + (size_t)1) * sizeof(pln_term);
  out->n_vars = n;
  out->solvable = true;
  out->to_new = pln_mem_zeroed(a->engine, size);
  out->new_vars = pln_mem_zeroed(a->engine, size);
  out->to_old = pln_mem_zeroed(a->engine, size);
  out->ranges =
      pln_mem_zeroed(a->engine, (n + (size_t)1) * sizeof *out->ranges);
  return out->to_new && out->new_vars && out->to_old && out->ranges
             ? PLN_OK
             : pln_nomem(a->engine);
}

static pln_status find_all(ranging *r, uint32_t n_ranges,
                           const pln_term_range *ranges) {
  pln_analyzer *a = r->a;
  for (uint32_t i = 0; i < n_ranges; i++)
    know(r, ranges[i]);
  solve(r);
  for (uint32_t i = 0; i < r->out->n_vars; i++)
    if (!r->deskew)
      r->out->to_new[i] = r->bounds.groups[i].var;
  pln_term_list_free(a, &r->done);
  pln_term_list_free(a, &r->images);
  if (r->known)
    pln_mem_free(a->engine, r->known, r->cap_known * sizeof *r->known);
  return a->status;
}

pln_status pln_analyzer_solve_inequalities_to_range(
    pln_analyzer *a, uint32_t m, const pln_term *relations, uint32_t n,
    const pln_term *vars, uint32_t n_ranges, const pln_term_range *ranges,
    bool deskew, pln_linear_ranges *out) {
  ranging r = {.a = a, .out = out, .deskew = deskew};
  *out = (pln_linear_ranges){0};
  PLN_TRY(pln_analyzer_solve_linear_inequalities(a, m, relations, n, vars,
                                                 n_ranges, ranges, &r.bounds));
  pln_status status = make_arrays(a, n, out);
  if (status == PLN_OK)
    status = find_all(&r, n_ranges, ranges);
  pln_linear_bounds_free(a, &r.bounds);
  if (status != PLN_OK)
    pln_linear_ranges_free(a, out);
  return status;
}
