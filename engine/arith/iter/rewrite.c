/* arith/iter/rewrite.c: rewrites an expression of iterators as a sum of splits.
 *
 * Called by detection. Each term of the expression gets a value, operands
 * first: a sum of splits where it depends on iterators in a way that sums can
 * say, else a plain term. Why not is reported. */

#include "arith/iter/iter.h"

/* Sums of more splits are not made: fusing searches among them. */
enum { MOST_SPLITS = 1024 };

static pln_iter_value plain(pln_term t) {
  return (pln_iter_value){.base = t};
}

/* ------------------------------------------------------------------- inputs
 */

pln_status pln_iter_begin(pln_iter_map *m, uint32_t n_ranges,
                          const pln_term_range *ranges, pln_iter_level level,
                          bool trivial) {
  pln_engine *e = m->a->engine;
  if (m->ranges)
    pln_mem_free(e, m->ranges, (m->n_ranges + (size_t)1) * sizeof *m->ranges);
  if (m->input_of)
    pln_mem_free(e, m->input_of,
                 (m->n_ranges + (size_t)1) * sizeof *m->input_of);
  m->n_ranges = n_ranges;
  m->ranges = pln_mem_zeroed(e, (n_ranges + (size_t)1) * sizeof *m->ranges);
  m->input_of = pln_mem_zeroed(e, (n_ranges + (size_t)1) * sizeof *m->input_of);
  if (!m->ranges || !m->input_of)
    return pln_nomem(e);
  if (n_ranges)
    memcpy(m->ranges, ranges, n_ranges * sizeof *ranges);
  m->level = level;
  m->trivial = trivial;
  m->collecting = m->padded = m->rotated = m->unbounded = false;
  m->n_errors = m->n_constrained = 0;
  m->reported = 0;
  m->padding = pln_term_bool(m->a, false);
  for (uint32_t i = 0; i < m->n_marks; i++)
    m->paddings[i] =
        (pln_iter_padding){.padded = PLN_NO_ITER, .origin = PLN_NO_ITER};
  for (uint32_t i = 0; i < m->n_sums; i++)
    m->fusions[i] = (pln_iter_fusion){PLN_NO_ITER, 0, PLN_NO_ITER, false};
  return m->a->status;
}

void pln_iter_make_inputs(pln_iter_map *m) {
  pln_analyzer *a = m->a;
  for (uint32_t i = 0; i < m->n_ranges && a->status == PLN_OK; i++) {
    pln_term_range r = m->ranges[i];
    if (m->trivial && pln_is_value(a, r.extent, 1))
      m->input_of[i] = PLN_NO_ITER;
    else
      m->input_of[i] =
          pln_iter_mark_of(m, pln_sub(a, r.var, r.min), PLN_NO_ITER, r.extent);
  }
}

pln_term_range *pln_iter_range(pln_iter_map *m, pln_term var) {
  for (uint32_t i = 0; i < m->n_ranges; i++)
    if (m->ranges[i].var == var)
      return &m->ranges[i];
  return NULL;
}

bool pln_iter_uses_input(pln_iter_map *m, pln_term t) {
  for (uint32_t i = 0; i < m->n_ranges; i++)
    if (pln_term_uses(m->a, t, m->ranges[i].var))
      return true;
  return false;
}

/* ------------------------------------------------------------------- values
 */

static bool begin_values(pln_iter_map *m, pln_term t) {
  pln_engine *e = m->a->engine;
  uint32_t old = m->cap_value_at;
  pln_status status = pln_mem_grow(e, (void **)&m->value_of, &m->cap_value_of,
                                   (size_t)t + 1, sizeof *m->value_of);
  if (status == PLN_OK)
    status = pln_mem_grow(e, (void **)&m->value_at, &m->cap_value_at,
                          (size_t)t + 1, sizeof *m->value_at);
  pln_arith_fail(m->a, status);
  if (status != PLN_OK)
    return false;
  memset(m->value_at + old, 0, (m->cap_value_at - old) * sizeof *m->value_at);
  m->stamp++;
  m->values.n = 0;
  return true;
}

static void set_value(pln_iter_map *m, pln_term t, pln_iter_value v) {
  m->value_at[t] = m->stamp;
  m->value_of[t] = v;
}

static pln_iter_value value_of(const pln_iter_map *m, pln_term t) {
  return m->value_at[t] == m->stamp ? m->value_of[t] : plain(t);
}

static void set_inputs(pln_iter_map *m, pln_term t) {
  for (uint32_t i = 0; i < m->n_ranges; i++) {
    pln_term_range r = m->ranges[i];
    if (r.var > t)
      continue;
    pln_iter_value v = {.first = m->values.n, .base = r.min, .iter = true};
    if (m->input_of[i] != PLN_NO_ITER) {
      pln_term one = pln_const_like(m->a, r.extent, 1);
      pln_iter_split s = pln_iter_whole(m, m->input_of[i], one);
      v.n = pln_iter_push(m, &m->values, s);
    }
    set_value(m, r.var, v);
  }
}

/* --------------------------------------------------------------- arithmetic
 */

/* Adds a split, times 1 or -1, to the n splits from `first` on, which are the
 * last values. */
static void add_split(pln_iter_map *m, uint32_t first, pln_iter_split s,
                      bool minus) {
  pln_analyzer *a = m->a;
  for (uint32_t i = first; i < m->values.n; i++) {
    pln_iter_split *x = &m->values.items[i];
    if (x->mark == s.mark && x->lower_factor == s.lower_factor &&
        x->extent == s.extent) {
      x->scale =
          minus ? pln_sub(a, x->scale, s.scale) : pln_add(a, x->scale, s.scale);
      return;
    }
  }
  if (minus)
    s.scale = pln_sub(a, pln_const_like(a, s.scale, 0), s.scale);
  pln_iter_push(m, &m->values, s);
}

/* Removes splits of scale 0 from the last values. */
static void drop_zeros(pln_iter_map *m, uint32_t first) {
  uint32_t n = first;
  for (uint32_t i = first; i < m->values.n; i++)
    if (!pln_is_value(m->a, m->values.items[i].scale, 0))
      m->values.items[n++] = m->values.items[i];
  m->values.n = n;
}

static pln_iter_value add(pln_iter_map *m, pln_term t, pln_iter_value x,
                          pln_iter_value y, bool minus) {
  uint32_t first = m->values.n;
  if (x.n + (size_t)y.n > MOST_SPLITS) {
    pln_iter_report(
        m, (pln_iter_error){.before = "Too many iterators in ", .x = t});
    return plain(t);
  }
  for (uint32_t i = 0; i < x.n; i++) {
    pln_iter_split s = m->values.items[x.first + i];
    pln_iter_push(m, &m->values, s);
  }
  for (uint32_t i = 0; i < y.n && m->a->status == PLN_OK; i++) {
    pln_iter_split s = m->values.items[y.first + i];
    add_split(m, first, s, minus);
  }
  drop_zeros(m, first);
  pln_term base =
      minus ? pln_sub(m->a, x.base, y.base) : pln_add(m->a, x.base, y.base);
  pln_term absorbed = y.n == 0 ? x.absorbed : x.n == 0 ? y.absorbed : 0;
  return (pln_iter_value){first, m->values.n - first, base, absorbed, true};
}

static pln_iter_value multiply(pln_iter_map *m, pln_term t, pln_iter_value x,
                               pln_iter_value y) {
  pln_iter_value v = x.iter ? x : y, out = {.first = m->values.n, .iter = true};
  pln_term factor = x.iter ? y.base : x.base;
  if (x.iter && y.iter) {
    pln_iter_report(
        m, (pln_iter_error){"Product of two iterators cannot be represented as "
                            "an IterMap, occurs in ",
                            t, NULL, 0, NULL});
    return plain(t);
  }
  for (uint32_t i = 0; i < v.n; i++) {
    pln_iter_split s = m->values.items[v.first + i];
    s.scale = pln_mul(m->a, s.scale, factor);
    out.n += pln_iter_push(m, &m->values, s);
  }
  out.base = pln_mul(m->a, v.base, factor);
  out.absorbed = v.absorbed;
  return out;
}

/* One split and a base, of the dividend; false: there is none. */
static bool single_split(pln_iter_map *m, pln_term dividend,
                         pln_iter_value *v) {
  if (v->n == 0 || v->n == 1)
    return v->n == 1;
  if (pln_iter_fuse(m, v, true) && v->n == 1)
    return true;
  pln_iter_report(
      m, (pln_iter_error){"Dividend  ", dividend,
                          ", can't be written as a single fused IterSum", 0,
                          NULL});
  return false;
}

static pln_iter_value divide(pln_iter_map *m, pln_term t, pln_iter_value x,
                             pln_iter_value y) {
  pln_term_node n = *pln_at(m->a, t);
  bool quotient = n.kind == PLN_PRIM_FLOORDIV;
  if (y.iter) {
    pln_iter_report(
        m, quotient
               ? (pln_iter_error){"Cannot represent as an IterMap: the divisor "
                                  "in ",
                                  t, " may not be an iterator", 0, NULL}
               : (pln_iter_error){"Cannot represent as an IterMap: the "
                                  "right-hand side of FloorMod in ",
                                  t, " may not be an iterator", 0, NULL});
    return plain(t);
  }
  if (pln_is_value(m->a, y.base, 0)) {
    pln_iter_report(m,
                    (pln_iter_error){"Divide by zero in ", t, NULL, 0, NULL});
    return plain(t);
  }
  if (x.n == 0 && pln_is_const(m->a, x.base))
    return plain(pln_fold(m->a, (pln_kind)n.kind, x.base, y.base));
  if (!single_split(m, n.a, &x))
    return plain(t);
  bool ok = quotient ? pln_iter_floordiv(m, &x, y.base)
                     : pln_iter_floormod(m, &x, y.base);
  return ok ? x : plain(t);
}

/* What constants make of an operation without more ado. */
static bool fold_trivial(pln_iter_map *m, pln_kind kind, pln_iter_value x,
                         pln_iter_value y, pln_iter_value *out) {
  pln_analyzer *a = m->a;
  bool x0 = !x.iter && pln_is_value(a, x.base, 0);
  bool y0 = !y.iter && pln_is_value(a, y.base, 0);
  bool x1 = !x.iter && pln_is_value(a, x.base, 1);
  bool y1 = !y.iter && pln_is_value(a, y.base, 1);
  switch (kind) {
  case PLN_PRIM_ADD: *out = y0 ? x : y; return x0 || y0;
  case PLN_PRIM_SUB: *out = x; return y0;
  case PLN_PRIM_MUL: *out = x0 || y1 ? x : y; return x0 || y0 || x1 || y1;
  case PLN_PRIM_FLOORDIV: *out = x; return (x0 && !y0) || y1;
  default: *out = x0 ? x : plain(pln_const_like(a, x.base, 0)); return x0 || y1;
  }
}

/* A node of integer arithmetic. */
static pln_iter_value rewrite_binary(pln_iter_map *m, pln_term t) {
  pln_term_node n = *pln_at(m->a, t);
  pln_iter_value x = value_of(m, n.a), y = value_of(m, n.b), out;
  pln_kind kind = (pln_kind)n.kind;
  if (!x.iter && !y.iter)
    return plain(pln_fold(m->a, kind, x.base, y.base));
  if (fold_trivial(m, kind, x, y, &out))
    return out;
  switch (kind) {
  case PLN_PRIM_ADD: return add(m, t, x, y, false);
  case PLN_PRIM_SUB: return add(m, t, x, y, true);
  case PLN_PRIM_MUL: return multiply(m, t, x, y);
  default: return divide(m, t, x, y);
  }
}

/* A node of another kind: its operands have to be plain. */
static pln_iter_value rewrite_other(pln_iter_map *m, pln_term t) {
  uint32_t n = pln_at(m->a, t)->n;
  for (uint32_t i = 0; i < n; i++) {
    pln_term x = pln_term_operand(m->a, t, i);
    if (value_of(m, x).iter)
      pln_iter_report(
          m, (pln_iter_error){
                 "IterMapExpr or subclasses should only result from calls in "
                 "IterMapRewriter using DirectMutate.  Indirect return "
                 "occurred in ",
                 x, NULL, 0, NULL});
  }
  return plain(t);
}

static bool is_arithmetic(const pln_analyzer *a, pln_term t) {
  switch (pln_term_kind(a, t)) {
  case PLN_PRIM_ADD:
  case PLN_PRIM_SUB:
  case PLN_PRIM_MUL:
  case PLN_PRIM_FLOORDIV:
  case PLN_PRIM_FLOORMOD: return pln_is_index(a, t);
  default: return false;
  }
}

pln_iter_value pln_iter_rewrite(pln_iter_map *m, pln_term t) {
  pln_analyzer *a = m->a;
  pln_term_list order;
  if (!begin_values(m, t))
    return plain(t);
  set_inputs(m, t);
  if (!pln_term_order(a, t, NULL, &order))
    return plain(t);
  for (uint32_t i = 0; i < order.n && a->status == PLN_OK; i++) {
    pln_term x = order.items[i];
    if (m->value_at[x] == m->stamp)
      continue;
    set_value(m, x,
              is_arithmetic(a, x) ? rewrite_binary(m, x) : rewrite_other(m, x));
  }
  pln_term_list_free(a, &order);
  return a->status == PLN_OK ? value_of(m, t) : plain(t);
}
