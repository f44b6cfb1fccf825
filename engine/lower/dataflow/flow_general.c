/* flow_general.c: whether one branch of an IfThenElse may run in the place of
 * the other (flow.h).
 *
 * Called by buffer_flow.c where the other one, the special case, begins. Of the
 * general case those statements are left out that do nothing there: stores of
 * what the elements hold (found forwards), or of what is overwritten before
 * anything reads it (backwards), and what has no effect. If what is left is the
 * special case, the condition is not needed.
 *
 * Semantics: BranchReducer of TVM's reduce_branching_through_overcompute.cc. An
 * answer is made of one kind of stores only, so that answers do not depend on
 * each other: elements that are overwritten are read by nothing that counts. */

#include "lower/dataflow/flow.h"
#include "lower/lower.h"

/* Loop and let variables of the general case, and those of the special case
 * that stand for them. */
enum { MOST_VARS = 16 };

typedef struct comparison {
  pln_flow *x;
  bool nothing[FLOW_MOST_BRANCH]; /* by node of the general case: it does
                                   * nothing */
  pln_ref first;                  /* its first node */
  pln_term from[MOST_VARS], to[MOST_VARS];
  uint32_t n_vars;
} comparison;

/* ---------------------------------------------------------- what does nothing
 */

/* The load in the store's value of the element that it stores to. */
static pln_status find_own_load(pln_flow *x, pln_ref store, pln_term *out) {
  *out = PLN_NO_TERM;
  for (uint32_t i = 0; i < x->n_reads && !*out; i++) {
    pln_ref load = x->reads[i];
    bool same = x->g->nodes[load].kind == PLN_BUFFER_LOAD &&
                pln_is_same_memory(x->g, pln_operand(x->g, load, 0),
                                   pln_operand(x->g, store, 0));
    for (uint32_t k = 1; same && k < x->g->nodes[load].count; k++) {
      pln_term p = pln_flow_term(x, pln_operand(x->g, load, k)),
               q = pln_flow_term(x, pln_operand(x->g, store, k + 1));
      same = p && q && pln_proves_equal(x->a, p, q);
    }
    if (same)
      PLN_TRY(pln_analyzer_import_more(x->a, x->g, load, out));
  }
  return x->a->status;
}

static bool is_equal_value(pln_flow *x, pln_term p, pln_term q) {
  if (!p || !q || pln_at(x->a, p)->dtype != pln_at(x->a, q)->dtype ||
      pln_at(x->a, p)->lanes != pln_at(x->a, q)->lanes)
    return false;
  return p == q || pln_simplify_term(x->a, p, 2) == q ||
         (pln_is_integer(x->a, p) && pln_proves_equal(x->a, p, q));
}

/* Whether the element holds what is stored. */
static pln_status stores_what_is_there(pln_flow *x, pln_ref store,
                                       const flow_region *r, bool exact,
                                       bool *out) {
  pln_term own, value = pln_flow_reading_term(x, pln_operand(x->g, store, 1));
  PLN_TRY(find_own_load(x, store, &own));
  *out = is_equal_value(x, value, own);
  const flow_list list = *pln_flow_facts(x, r->memory);
  for (uint32_t i = 0; exact && i < list.n && !*out; i++) {
    pln_term there;
    if (pln_flow_covers(x, &x->facts[list.ids[i]], store, 2, r, &there))
      *out = is_equal_value(x, value, there);
  }
  return x->a->status;
}

static pln_status is_overwritten(pln_flow *x, pln_ref store,
                                 const flow_region *r, bool exact, bool *out) {
  const flow_list list = *pln_flow_facts(x, r->memory);
  *out = false;
  for (uint32_t i = 0; exact && i < list.n && !*out; i++) {
    pln_term value;
    *out = pln_flow_covers(x, &x->facts[list.ids[i]], store, 2, r, &value);
  }
  return x->a->status;
}

/* Whether each index of the access is within the Buffer's shape: the general
 * case was not meant to run here. */
static bool is_in_bounds(pln_flow *x, pln_ref access, uint32_t first) {
  pln_buffer_fields f =
      pln_buffer_fields_of(x->g, pln_operand(x->g, access, 0));
  pln_analyzer *a = x->a;
  flow_region r;
  bool exact;
  if (pln_flow_region_of(x, access, first, &r, &exact) != PLN_OK ||
      r.rank != f.rank)
    return false;
  for (uint32_t k = 0; k < r.rank; k++) {
    pln_term extent = pln_flow_term(x, f.shape[k]);
    if (!r.lo[k] || !extent || pln_at(a, extent)->dtype != r.dtype[k] ||
        !pln_prove(
            a, pln_fold(a, PLN_PRIM_GE, r.lo[k], pln_const_like(a, r.lo[k], 0)),
            1) ||
        !pln_prove(a, pln_fold(a, PLN_PRIM_LT, r.hi[k], extent), 1))
      return false;
  }
  return true;
}

static bool reads_in_bounds(pln_flow *x) {
  for (uint32_t i = 0; i < x->n_reads; i++)
    if (x->g->nodes[x->reads[i]].kind == PLN_BUFFER_LOAD &&
        !is_in_bounds(x, x->reads[i], 1))
      return false;
  return true;
}

static pln_status store_does_nothing(pln_flow *x, pln_ref store, bool *out) {
  flow_region region;
  bool exact;
  PLN_TRY(pln_flow_find_reads(x, store, 0));
  for (uint32_t i = 0; i < x->n_reads && !x->backward; i++)
    if (x->g->nodes[x->reads[i]].kind == PLN_BUFFER_LOAD)
      PLN_TRY(pln_flow_answer_load(x, x->reads[i]));
  PLN_TRY(pln_flow_region_of(x, store, 2, &region, &exact));
  *out = false;
  if (is_in_bounds(x, store, 2) && reads_in_bounds(x))
    PLN_TRY(x->backward ? is_overwritten(x, store, &region, exact, out)
                        : stores_what_is_there(x, store, &region, exact, out));
  uint32_t n = x->n_reads;
  PLN_TRY(pln_flow_end_reading(x));
  for (uint32_t i = 0; i < n; i++)
    x->out->value_of[x->reads[i]] = PLN_NO_TERM;
  return PLN_OK;
}

/* Whether an operand of the statement has a greater effect than `most`. */
static bool exceeds(const pln_graph *g, pln_ref stmt, pln_effect most) {
  const pln_node *n = &g->nodes[stmt];
  for (uint32_t i = 0; i < n->count; i++)
    if (pln_flags_effect(g->nodes[g->operands[n->first + i]].flags) > most)
      return true;
  return false;
}

/* The statements of the scopes of `stmt` do nothing. */
static bool bodies_do_nothing(const comparison *c, pln_ref stmt) {
  const pln_flow *x = c->x;
  for (pln_scope s = x->g->nodes[stmt].data; s != PLN_NONE;
       s = x->g->scopes[s].next)
    for (pln_ref ref = x->g->scopes[s].begin; ref < x->g->scopes[s].end; ref++)
      if (pln_is_stmt(&x->g->nodes[ref]) && !c->nothing[ref - c->first])
        return false;
  return true;
}

static pln_status find_nothing(comparison *c, pln_ref stmt) {
  pln_flow *x = c->x;
  bool *nothing = &c->nothing[stmt - c->first];
  pln_kind kind = (pln_kind)x->g->nodes[stmt].kind;
  if (exceeds(x->g, stmt,
              kind == PLN_BUFFER_STORE ? PLN_EFFECT_READS : PLN_EFFECT_NONE))
    return PLN_OK;
  switch (kind) {
  case PLN_BUFFER_STORE: return store_does_nothing(x, stmt, nothing);
  case PLN_EVALUATE: *nothing = true; return PLN_OK;
  case PLN_FOR:
  case PLN_LET_STMT:
  case PLN_IF_THEN_ELSE: *nothing = bodies_do_nothing(c, stmt); return PLN_OK;
  default: return PLN_OK;
  }
}

/* Variables of loops in the general case are in their ranges. */
static pln_status bind_scopes(pln_flow *x, pln_scope first, pln_ref end) {
  for (pln_scope s = first; s < x->g->n_scopes && x->g->scopes[s].begin < end;
       s++) {
    flow_range range = {0};
    pln_ref owner = x->g->scopes[s].owner;
    PLN_TRY(pln_flow_bind_params(x, s));
    if (s != first && owner != PLN_NONE && x->g->nodes[owner].kind == PLN_FOR)
      PLN_TRY(pln_flow_range_of(x, s, &range));
    if (!range.var)
      continue;
    pln_term extent =
        pln_add_const(x->a, pln_sub(x->a, range.max, range.min), 1);
    PLN_TRY(x->a->status);
    PLN_TRY(pln_analyzer_bind_range(x->a, range.var, range.min, extent, true));
  }
  return PLN_OK;
}

/* --------------------------------------------------------------- comparison
 */

static bool maps(comparison *c, pln_term p, pln_term q) {
  return p && pln_term_replace(c->x->a, p, c->n_vars, c->from, c->to) == q;
}

static pln_status same_operands(comparison *c, pln_ref p, pln_ref q,
                                bool *same) {
  pln_flow *x = c->x;
  const pln_node *m = &x->g->nodes[p], *n = &x->g->nodes[q];
  *same = m->kind == n->kind && m->count == n->count &&
          m->results == n->results && (pln_owns(m) || m->data == n->data) &&
          m->attrs == n->attrs;
  for (uint32_t i = 0; i < m->count && *same; i++) {
    pln_term s, t;
    PLN_TRY(pln_analyzer_import_more(x->a, x->g, pln_operand(x->g, p, i), &s));
    PLN_TRY(pln_analyzer_import_more(x->a, x->g, pln_operand(x->g, q, i), &t));
    *same = maps(c, s, t);
  }
  return x->a->status;
}

static pln_status map_params(comparison *c, pln_scope p, pln_scope q,
                             bool *same) {
  pln_flow *x = c->x;
  const pln_scope_row *m = &x->g->scopes[p], *n = &x->g->scopes[q];
  *same =
      m->n_params == n->n_params && c->n_vars + m->n_params <= MOST_VARS &&
      (x->g->nodes[m->owner].data == p) == (x->g->nodes[n->owner].data == q);
  for (uint32_t i = 0; i < m->n_params && *same; i++) {
    uint32_t k = c->n_vars++;
    PLN_TRY(pln_analyzer_import_more(x->a, x->g, m->begin + i, &c->from[k]));
    PLN_TRY(pln_analyzer_import_more(x->a, x->g, n->begin + i, &c->to[k]));
  }
  return PLN_OK;
}

/* The statement that an event belongs to. */
static pln_ref statement_of(const pln_flow *x, const flow_event *e) {
  return e->kind == FLOW_ENTER || e->kind == FLOW_LEAVE
             ? x->g->scopes[e->at].owner
             : e->at;
}

static uint32_t skip_nothing(const comparison *c, uint32_t at, uint32_t end) {
  while (at < end &&
         c->nothing[statement_of(c->x, &c->x->events[at]) - c->first])
    at++;
  return at;
}

static bool is_no_op(const pln_flow *x, const flow_event *e) {
  return e->kind == FLOW_SIMPLE && x->g->nodes[e->at].kind == PLN_EVALUATE &&
         x->g->nodes[pln_operand(x->g, e->at, 0)].kind == PLN_INT_IMM;
}

static pln_status same_event(comparison *c, const flow_event *p,
                             const flow_event *q, bool *same) {
  *same = p->kind == q->kind;
  if (!*same || p->kind == FLOW_LEAVE || p->kind == FLOW_CLOSE)
    return PLN_OK;
  return p->kind == FLOW_ENTER ? map_params(c, p->at, q->at, same)
                               : same_operands(c, p->at, q->at, same);
}

/* Whether what is left of the general case is the special case, from event `q`
 * to `q_end`. */
static pln_status compare(comparison *c, pln_scope general, uint32_t q,
                          uint32_t q_end, bool *same) {
  pln_flow *x = c->x;
  uint32_t p = x->enter_of[general] + 1, p_end = x->leave_of[general];
  *same = true;
  while (*same) {
    p = skip_nothing(c, p, p_end);
    while (q < q_end && is_no_op(x, &x->events[q]))
      q++;
    if (p == p_end || q == q_end)
      break;
    PLN_TRY(same_event(c, &x->events[p++], &x->events[q++], same));
  }
  *same = *same && p == p_end && q == q_end;
  return PLN_OK;
}

static bool is_short(const pln_flow *x, pln_scope scope) {
  return x->g->scopes[scope].end - x->g->scopes[scope].begin <=
         FLOW_MOST_BRANCH;
}

pln_status pln_flow_compare_branches(pln_flow *x, pln_ref branching,
                                     uint32_t k) {
  const pln_graph *g = x->g;
  pln_scope then = g->nodes[branching].data, other = g->scopes[then].next;
  pln_scope general = k == 0 ? other : then, special = k == 0 ? then : other;
  comparison c = {.x = x};
  bool same;
  if (x->out->general[branching] >= 0 || general == PLN_NONE ||
      !is_short(x, general) || (special != PLN_NONE && !is_short(x, special)) ||
      exceeds(g, branching, PLN_EFFECT_READS))
    return PLN_OK;
  const pln_scope_row *row = &g->scopes[general];
  c.first = row->begin;
  PLN_TRY(bind_scopes(x, general, row->end));
  for (pln_ref ref = row->begin; ref < row->end; ref++)
    if (pln_is_stmt(&g->nodes[ref]))
      PLN_TRY(find_nothing(&c, ref));
  uint32_t q = special == PLN_NONE ? 0 : x->enter_of[special] + 1;
  uint32_t q_end = special == PLN_NONE ? 0 : x->leave_of[special];
  PLN_TRY(compare(&c, general, q, q_end, &same));
  if (same)
    x->out->general[branching] = k == 0;
  return PLN_OK;
}
