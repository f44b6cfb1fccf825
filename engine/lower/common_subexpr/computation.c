/* computation.c: see computation.h. Called by common_subexpr_elim.c. */

#include "lower/common_subexpr/computation.h"

/* -------------------------------------------------------------------- tables
 */

static pln_status grow_stamped(pln_analyzer *a, pln_computation_table *t) {
  uint32_t old = t->cap_stamp;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&t->row_of, &t->cap_row_of, a->n,
                       sizeof *t->row_of));
  PLN_TRY(pln_mem_grow(a->engine, (void **)&t->stamp, &t->cap_stamp, a->n,
                       sizeof *t->stamp));
  if (t->cap_stamp > old)
    memset(t->stamp + old, 0, (t->cap_stamp - old) * sizeof *t->stamp);
  return PLN_OK;
}

static uint32_t row_of(const pln_computation_table *t, pln_term term) {
  return term < t->cap_stamp && t->stamp[term] == t->now + 1 ? t->row_of[term]
                                                             : 0;
}

uint32_t pln_computation_count(const pln_computation_table *t, pln_term term) {
  uint32_t row = row_of(t, term);
  return row ? t->rows[row - 1].count : 0;
}

pln_status pln_computation_add(pln_analyzer *a, pln_computation_table *t,
                               pln_term term, uint32_t count) {
  uint32_t row = row_of(t, term);
  if (row) {
    t->rows[row - 1].count += count;
    return PLN_OK;
  }
  PLN_TRY(grow_stamped(a, t));
  PLN_TRY(pln_mem_grow(a->engine, (void **)&t->rows, &t->cap, (size_t)t->n + 1,
                       sizeof *t->rows));
  t->rows[t->n++] = (pln_computation){term, count};
  t->row_of[term] = t->n;
  t->stamp[term] = t->now + 1;
  return PLN_OK;
}

void pln_computation_clear(pln_computation_table *t) {
  t->n = 0;
  t->now++;
}

void pln_computation_free(pln_engine *e, pln_computation_table *t) {
  pln_mem_free(e, t->rows, t->cap * sizeof *t->rows);
  pln_mem_free(e, t->row_of, t->cap_row_of * sizeof *t->row_of);
  pln_mem_free(e, t->stamp, t->cap_stamp * sizeof *t->stamp);
}

/* --------------------------------------------------------------- eligibility
 */

enum { UNKNOWN, FORBIDDEN, ATOM, COMPUTATION };

static bool is_forbidden(pln_kind kind) {
  return kind == PLN_PRIM_CALL || kind == PLN_BUFFER_LOAD ||
         kind == PLN_PRODUCER_LOAD || kind == PLN_REDUCE ||
         kind == PLN_BUFFER || kind == PLN_SHUFFLE || kind == PLN_PRIM_LET;
}

/* From the kinds of the operands, which are known. */
static uint8_t kind_of(const pln_analyzer *a, const pln_computation_kinds *k,
                       pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  if (is_forbidden((pln_kind)n->kind))
    return FORBIDDEN;
  for (uint32_t i = 0; i < n->n; i++)
    if (k->kind[pln_term_operand(a, t, i)] == FORBIDDEN)
      return FORBIDDEN;
  if (n->kind == PLN_RAMP || n->kind == PLN_BROADCAST || n->n == 0)
    return ATOM;
  return COMPUTATION;
}

static pln_status find_kinds(pln_analyzer *a, pln_computation_kinds *k,
                             pln_term term) {
  uint32_t old = k->cap;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&k->kind, &k->cap, a->n,
                       sizeof *k->kind));
  if (k->cap > old)
    memset(k->kind + old, UNKNOWN, k->cap - old);
  if (k->kind[term] != UNKNOWN)
    return PLN_OK;
  pln_term_list order;
  if (!pln_term_order(a, term, NULL, &order))
    return a->status;
  for (uint32_t i = 0; i < order.n; i++)
    if (k->kind[order.items[i]] == UNKNOWN)
      k->kind[order.items[i]] = kind_of(a, k, order.items[i]);
  pln_term_list_free(a, &order);
  return PLN_OK;
}

pln_status pln_is_computation(pln_analyzer *a, pln_computation_kinds *k,
                              pln_term term, bool *out) {
  PLN_TRY(find_kinds(a, k, term));
  *out = k->kind[term] == COMPUTATION;
  return PLN_OK;
}

/* --------------------------------------------------------------------- parts
 */

static bool is_closed(const pln_analyzer *a, pln_term t) {
  pln_kind kind = pln_term_kind(a, t);
  return kind == PLN_BUFFER || kind == PLN_PRIM_LET || kind == PLN_REDUCE;
}

static bool push_operands(pln_analyzer *a, pln_term_list *stack, pln_term t) {
  uint32_t n = pln_at(a, t)->n;
  for (uint32_t i = n; i-- > 0;)
    if (!pln_term_list_push(a, stack, pln_term_operand(a, t, i)))
      return false;
  return true;
}

pln_status pln_computations_of(pln_analyzer *a, pln_computation_kinds *k,
                               pln_term term, bool whole, uint32_t count,
                               pln_computation_table *table) {
  pln_term_list stack = {0};
  PLN_TRY(find_kinds(a, k, term));
  bool ok = whole ? pln_term_list_push(a, &stack, term)
                  : push_operands(a, &stack, term);
  pln_status status = ok ? PLN_OK : a->status;
  while (status == PLN_OK && stack.n > 0) {
    pln_term t = stack.items[--stack.n];
    if (k->kind[t] == COMPUTATION)
      status = pln_computation_add(a, table, t, count);
    else if (!is_closed(a, t) && !push_operands(a, &stack, t))
      status = a->status;
  }
  pln_term_list_free(a, &stack);
  return status;
}
