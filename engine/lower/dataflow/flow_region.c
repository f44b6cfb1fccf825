/* flow_region.c: the elements that an access touches (flow.h), as an interval
 * in each dimension.
 *
 * Called by the other files of this folder. */

#include "lower/dataflow/flow.h"

/* -------------------------------------------------------------------- terms
 */

/* value_now of a variable whose value reads memory. */
#define FLOW_OPAQUE PLN_TERM_POS_INF

pln_status pln_flow_set_value(pln_flow *x, pln_term t, pln_term value) {
  uint32_t old = x->cap_value_now;
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->value_now, &x->cap_value_now,
                       (size_t)t + 1, sizeof *x->value_now));
  memset(x->value_now + old, 0,
         (x->cap_value_now - old) * sizeof *x->value_now);
  x->value_now[t] = value;
  return PLN_OK;
}

static bool is_impure(const pln_flow *x, pln_term t) {
  const pln_term_node *n = pln_at(x->a, t);
  switch (n->kind) {
  case PLN_VAR: return t < x->cap_value_now && x->value_now[t] == FLOW_OPAQUE;
  case PLN_BUFFER_LOAD:
  case PLN_PRODUCER_LOAD:
  case PLN_PRIM_LET:
  case PLN_REDUCE: return true;
  case PLN_PRIM_CALL: {
    uint32_t builtin = (uint32_t)n->u.data;
    return builtin == 0 ||
           pln_call_effect(pln_builtin_row(builtin)->effect) != PLN_EFFECT_NONE;
  }
  default: return false;
  }
}

static bool is_pure(pln_flow *x, pln_term t) {
  pln_term_list order;
  bool pure = true;
  if (!t || !pln_term_order(x->a, t, NULL, &order))
    return false;
  for (uint32_t i = 0; i < order.n && pure; i++)
    pure = !is_impure(x, order.items[i]);
  pln_term_list_free(x->a, &order);
  return pure;
}

/* `t` with what its variables and loads stand for now. */
static pln_term with_values(pln_flow *x, pln_term t) {
  pln_term from[FLOW_MOST_SIZE], to[FLOW_MOST_SIZE];
  pln_term_list order;
  uint32_t n = 0;
  if (x->cap_value_now == 0)
    return t;
  if (!pln_term_order(x->a, t, NULL, &order))
    return PLN_NO_TERM;
  for (uint32_t i = 0; i < order.n && n < FLOW_MOST_SIZE; i++) {
    pln_term item = order.items[i];
    pln_term value = item < x->cap_value_now ? x->value_now[item] : 0;
    if (value && value != FLOW_OPAQUE) {
      from[n] = item;
      to[n++] = value;
    }
  }
  pln_term_list_free(x->a, &order);
  return n > 0 ? pln_term_substitute(x->a, t, n, from, to) : t;
}

pln_term pln_flow_reading_term(pln_flow *x, pln_ref expr) {
  pln_term t;
  pln_status status = pln_analyzer_import_more(x->a, x->g, expr, &t);
  if (status != PLN_OK) {
    x->status = status;
    return pln_arith_fail(x->a, status);
  }
  if (pln_at(x->a, t)->size > FLOW_MOST_SIZE)
    return PLN_NO_TERM;
  t = with_values(x, t);
  return t && pln_at(x->a, t)->size <= FLOW_MOST_SIZE ? t : PLN_NO_TERM;
}

pln_term pln_flow_term(pln_flow *x, pln_ref expr) {
  pln_term t = pln_flow_reading_term(x, expr);
  return is_pure(x, t) ? t : PLN_NO_TERM;
}

static pln_status bind_param(pln_flow *x, pln_ref param, pln_ref value) {
  pln_term var, t = pln_flow_term(x, value);
  const pln_node *n = &x->g->nodes[value];
  PLN_TRY(x->a->status);
  if (pln_type_get_kind(x->g->engine, n->type) != PLN_TYPE_PRIM ||
      pln_type_dtype(x->g->engine, n->type) == PLN_DTYPE_NONE)
    return PLN_OK; /* a pointer */
  PLN_TRY(pln_analyzer_import_more(x->a, x->g, param, &var));
  return pln_flow_set_value(x, var, t ? t : FLOW_OPAQUE);
}

pln_status pln_flow_bind_params(pln_flow *x, pln_scope scope) {
  const pln_graph *g = x->g;
  const pln_scope_row *row = &g->scopes[scope];
  pln_kind kind = row->owner == PLN_NONE ? PLN_N_KINDS
                                         : (pln_kind)g->nodes[row->owner].kind;
  if (kind == PLN_LET_STMT)
    return bind_param(x, row->begin, pln_operand(g, row->owner, 0));
  pln_ref realize = kind == PLN_BLOCK ? g->scopes[row->parent].owner : PLN_NONE;
  if (realize == PLN_NONE || g->nodes[realize].kind != PLN_BLOCK_REALIZE)
    return PLN_OK;
  uint32_t n = g->nodes[realize].count - 1;
  for (uint32_t i = 0; i < n && i < row->n_params; i++)
    PLN_TRY(bind_param(x, row->begin + i, pln_operand(g, realize, 1 + i)));
  return PLN_OK;
}

/* ------------------------------------------------------------------ regions
 */

pln_term pln_flow_axis(pln_flow *x, uint32_t k, uint8_t dtype) {
  pln_term *axis = &x->axis[k][dtype == PLN_INT64];
  if (!*axis)
    *axis = pln_term_fresh(x->a, pln_term_int(x->a, (pln_dtype)dtype, 1, 0),
                           "axis");
  return *axis;
}

pln_status pln_flow_memory(pln_flow *x, pln_ref data, uint32_t *out) {
  pln_term t;
  uint32_t old = x->cap_memory_of;
  PLN_TRY(pln_analyzer_import_more(x->a, x->g, data, &t));
  PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->memory_of, &x->cap_memory_of,
                       (size_t)t + 1, sizeof *x->memory_of));
  memset(x->memory_of + old, 0,
         (x->cap_memory_of - old) * sizeof *x->memory_of);
  if (!x->memory_of[t]) {
    size_t n = (size_t)x->n_memories + 1;
    PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->lists, &x->cap_lists, n,
                         sizeof *x->lists));
    PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->recorded, &x->cap_recorded,
                         n, sizeof *x->recorded));
    PLN_TRY(pln_mem_grow(x->g->engine, (void **)&x->wild, &x->cap_wild, n,
                         sizeof *x->wild));
    x->lists[n - 1] = (flow_list){0};
    x->recorded[n - 1] = 0;
    x->wild[n - 1] = false;
    x->memory_of[t] = x->n_memories = (uint32_t)n;
  }
  *out = x->memory_of[t] - 1;
  return PLN_OK;
}

static void set_any(flow_region *r, uint32_t k, bool *exact) {
  r->lo[k] = r->hi[k] = PLN_NO_TERM;
  *exact = false;
}

/* The interval of a vector's lanes: of Ramp and Broadcast. */
static void set_vector(pln_flow *x, flow_region *r, uint32_t k, pln_term t,
                       bool *exact) {
  pln_analyzer *a = x->a;
  const pln_term_node *n = pln_at(a, t);
  pln_term base = n->a;
  int64_t lanes = n->lanes;
  if (n->kind == PLN_BROADCAST) {
    r->lo[k] = r->hi[k] = base;
    return;
  }
  if (n->kind != PLN_RAMP || !pln_is_const(a, n->b)) {
    set_any(r, k, exact);
    return;
  }
  int64_t stride = pln_const(a, n->b), length;
  if (stride < 1 || !pln_mul_fits(stride, lanes - 1, &length)) {
    set_any(r, k, exact);
    return;
  }
  *exact = *exact && stride == 1;
  r->lo[k] = base;
  r->hi[k] = pln_add_const(a, base, length);
}

static void set_index(pln_flow *x, flow_region *r, uint32_t k, pln_term t,
                      bool *exact) {
  uint8_t dtype = t ? pln_at(x->a, t)->dtype : (uint8_t)PLN_INT32;
  r->dtype[k] = dtype;
  if (!t || (dtype != PLN_INT32 && dtype != PLN_INT64))
    set_any(r, k, exact);
  else if (pln_at(x->a, t)->lanes > 1)
    set_vector(x, r, k, t, exact);
  else
    r->lo[k] = r->hi[k] = t;
}

pln_status pln_flow_region_of(pln_flow *x, pln_ref access, uint32_t first,
                              flow_region *out, bool *exact) {
  pln_ref buffer = pln_operand(x->g, access, 0);
  uint32_t rank = x->g->nodes[access].count - first, vectors = 0;
  *out = (flow_region){.rank = rank};
  PLN_TRY(pln_analyzer_import_more(x->a, x->g, buffer, &out->buffer));
  PLN_TRY(pln_flow_memory(x, pln_operand(x->g, buffer, 0), &out->memory));
  *exact = rank <= FLOW_MOST_AXES;
  if (rank > FLOW_MOST_AXES)
    out->rank = 0; /* all of it */
  for (uint32_t k = 0; k < out->rank; k++) {
    pln_ref index = pln_operand(x->g, access, first + k);
    set_index(x, out, k, pln_flow_term(x, index), exact);
    vectors += pln_prim_lanes(x->g, index) > 1;
  }
  *exact = *exact && vectors <= 1;
  return x->a->status;
}

bool pln_flow_uses(pln_flow *x, const flow_region *r, pln_term var) {
  for (uint32_t k = 0; k < r->rank; k++)
    if (r->lo[k] && (pln_term_uses(x->a, r->lo[k], var) ||
                     pln_term_uses(x->a, r->hi[k], var)))
      return true;
  return false;
}

flow_region pln_flow_sweep(pln_flow *x, const flow_region *r, pln_term var,
                           pln_term from, pln_term to) {
  flow_region out = *r;
  pln_interval range = {from, to};
  for (uint32_t k = 0; k < r->rank; k++) {
    if (!r->lo[k])
      continue;
    pln_interval low = pln_interval_of(x->a, r->lo[k], 1, &var, &range, false),
                 high = pln_interval_of(x->a, r->hi[k], 1, &var, &range, false);
    bool known = low.min && high.max && !pln_is_infinite(low.min) &&
                 !pln_is_infinite(high.max);
    out.lo[k] = known ? pln_simplify_term(x->a, low.min, 2) : PLN_NO_TERM;
    out.hi[k] = known ? pln_simplify_term(x->a, high.max, 2) : PLN_NO_TERM;
  }
  return out;
}

flow_region pln_flow_all_iterations(pln_flow *x, const flow_region *r,
                                    pln_term var, pln_term min, pln_term max) {
  return var ? pln_flow_sweep(x, r, var, min, max) : *r;
}

static pln_term or_else(pln_flow *x, pln_term p, pln_term q) {
  return p ? pln_fold(x->a, PLN_PRIM_OR, p, q) : q;
}

pln_term pln_flow_outside(pln_flow *x, const flow_region *r) {
  pln_analyzer *a = x->a;
  pln_term out = PLN_NO_TERM;
  for (uint32_t k = 0; k < r->rank; k++) {
    if (!r->lo[k])
      continue;
    pln_term axis = pln_flow_axis(x, k, r->dtype[k]);
    if (r->lo[k] == r->hi[k]) {
      out = or_else(x, out, pln_fold(a, PLN_PRIM_NE, axis, r->lo[k]));
      continue;
    }
    out = or_else(x, out, pln_fold(a, PLN_PRIM_LT, axis, r->lo[k]));
    out = or_else(x, out, pln_fold(a, PLN_PRIM_LT, r->hi[k], axis));
  }
  return out;
}
