/* flow_fact.c: facts, and whether one holds of what is accessed (flow.h).
 *
 * Called by the other files of this folder. */

#include "lower/dataflow/flow.h"

pln_status pln_flow_add_fact(pln_flow *x, const flow_fact *fact,
                             uint32_t *out) {
  flow_fact copy = *fact; /* it may be one of the array */
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->facts, &x->cap_facts,
                       (size_t)x->n_facts + 1, sizeof *x->facts));
  x->facts[x->n_facts] = copy;
  *out = x->n_facts++;
  return PLN_OK;
}

pln_status pln_flow_limit(pln_flow *x, uint32_t fact, pln_term condition,
                          uint32_t *out) {
  flow_fact f = x->facts[fact];
  pln_term simple = pln_simplify_term(x->a, condition, 2);
  PLN_TRY(x->a->status);
  *out = fact;
  if (pln_is_const(x->a, simple)) {
    if (pln_const(x->a, simple) == 0)
      *out = PLN_NONE;
    return PLN_OK;
  }
  *out = PLN_NONE;
  if (f.n_conditions == FLOW_MOST_CONDITIONS ||
      pln_at(x->a, condition)->size > FLOW_MOST_SIZE)
    return PLN_OK;
  /* As it is: what it is simplified to depends on where it is asked. */
  f.conditions[f.n_conditions++] = condition;
  return pln_flow_add_fact(x, &f, out);
}

static bool proves(pln_flow *x, pln_kind kind, pln_term p, pln_term q) {
  pln_term condition = pln_fold(x->a, kind, p, q);
  return condition && pln_prove(x->a, condition, 1);
}

static bool is_apart(pln_flow *x, const flow_region *r, const flow_region *s) {
  for (uint32_t k = 0; k < r->rank && k < s->rank; k++)
    if (r->lo[k] && s->lo[k] && r->dtype[k] == s->dtype[k] &&
        (proves(x, PLN_PRIM_LT, r->hi[k], s->lo[k]) ||
         proves(x, PLN_PRIM_LT, s->hi[k], r->lo[k])))
      return true;
  return false;
}

/* Whether all of `s` is in `r`. */
static bool contains(pln_flow *x, const flow_region *r, const flow_region *s) {
  for (uint32_t k = 0; k < r->rank; k++) {
    if (!r->lo[k])
      continue;
    if (!s->lo[k] || r->dtype[k] != s->dtype[k] ||
        !proves(x, PLN_PRIM_LE, r->lo[k], s->lo[k]) ||
        !proves(x, PLN_PRIM_LE, s->hi[k], r->hi[k]))
      return false;
  }
  return true;
}

static bool same_axes(const flow_region *r, const flow_region *s) {
  if (r->buffer != s->buffer || r->rank != s->rank)
    return false;
  for (uint32_t k = 0; k < r->rank; k++)
    if (r->dtype[k] != s->dtype[k])
      return false;
  return true;
}

pln_status pln_flow_exclude(pln_flow *x, uint32_t fact, const flow_region *r,
                            pln_term guard, uint32_t *out) {
  flow_region region = x->facts[fact].region;
  *out = PLN_NONE;
  if (!same_axes(&region, r))
    return PLN_OK;
  *out = fact;
  if (is_apart(x, &region, r))
    return x->a->status;
  *out = PLN_NONE;
  if (!guard && contains(x, r, &region))
    return x->a->status;
  pln_term outside = pln_flow_outside(x, r);
  if (guard)
    outside = outside ? pln_fold(x->a, PLN_PRIM_OR, guard, outside) : guard;
  PLN_TRY(x->a->status);
  return outside ? pln_flow_limit(x, fact, outside, out) : PLN_OK;
}

bool pln_flow_fact_uses(pln_flow *x, const flow_fact *f, pln_term var) {
  bool uses = pln_flow_uses(x, &f->region, var) ||
              (f->value && pln_term_uses(x->a, f->value, var));
  for (uint32_t i = 0; i < f->n_conditions && !uses; i++)
    uses = pln_term_uses(x->a, f->conditions[i], var);
  return uses;
}

/* -------------------------------------------------------------------- cover
 */

/* The index of an element of an access: of a Ramp, that of any lane. */
static pln_term index_of(pln_flow *x, pln_ref index) {
  pln_analyzer *a = x->a;
  pln_term t = pln_flow_term(x, index);
  if (!t || pln_at(a, t)->lanes == 1)
    return t;
  pln_term_node n = *pln_at(a, t);
  if (n.kind == PLN_BROADCAST)
    return n.a;
  if (n.kind != PLN_RAMP)
    return PLN_NO_TERM;
  pln_term *lane = &x->lane[n.dtype == PLN_INT64];
  if (!*lane)
    *lane = pln_term_fresh(a, n.a, "lane");
  pln_term none = pln_const_like(a, n.a, 0);
  if (pln_analyzer_bind_range(a, *lane, none, pln_const_like(a, n.a, n.lanes),
                              true) != PLN_OK)
    return PLN_NO_TERM;
  return pln_add(a, n.a, pln_mul(a, *lane, n.b));
}

static bool holds_in(pln_flow *x, const flow_region *r, uint32_t k,
                     pln_term index) {
  if (!r->lo[k])
    return true;
  if (r->lo[k] == r->hi[k])
    return pln_proves_equal(x->a, index, r->lo[k]) ||
           proves(x, PLN_PRIM_EQ, index, r->lo[k]);
  return proves(x, PLN_PRIM_LE, r->lo[k], index) &&
         proves(x, PLN_PRIM_LE, index, r->hi[k]);
}

static bool uses_lane(pln_flow *x, pln_term t) {
  return (x->lane[0] && pln_term_uses(x->a, t, x->lane[0])) ||
         (x->lane[1] && pln_term_uses(x->a, t, x->lane[1]));
}

bool pln_flow_covers(pln_flow *x, const flow_fact *fact, pln_ref access,
                     uint32_t first, const flow_region *r, pln_term *value) {
  pln_term axes[FLOW_MOST_AXES], indices[FLOW_MOST_AXES];
  const flow_fact f = *fact;
  pln_analyzer *a = x->a;
  *value = PLN_NO_TERM;
  if (!same_axes(&f.region, r))
    return false;
  for (uint32_t k = 0; k < r->rank; k++) {
    axes[k] = pln_flow_axis(x, k, r->dtype[k]);
    indices[k] = index_of(x, pln_operand(x->g, access, first + k));
    if (!indices[k] || !holds_in(x, &f.region, k, indices[k]))
      return false;
  }
  for (uint32_t i = 0; i < f.n_conditions; i++) {
    pln_term t =
        pln_term_substitute(a, f.conditions[i], r->rank, axes, indices);
    if (!t || !pln_prove(a, t, 1))
      return false;
  }
  if (f.value)
    *value = pln_term_substitute(a, f.value, r->rank, axes, indices);
  if (*value && uses_lane(x, *value))
    *value = PLN_NO_TERM;
  return a->status == PLN_OK;
}
