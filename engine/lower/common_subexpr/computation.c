/* computation.c: see computation.h. Called by common_subexpr_elim.c. */

#include "lower/common_subexpr/computation.h"

/* -------------------------------------------------------------------- tables
 */

static bool is_row(const pln_computation *x, const pln_computation *y) {
  return x->term == y->term && x->outer == y->outer;
}

/* The slot of a row, or the empty one in which it would be. */
static uint32_t slot_of(const pln_computation_table *t,
                        const pln_computation *row) {
  uint32_t at = row->term * UINT32_C(2654435769) + row->outer;
  at = (at ^ at >> 16) & (t->n_slots - 1);
  while (t->slots[at] && !is_row(&t->rows[t->slots[at] - 1], row))
    at = (at + 1) & (t->n_slots - 1);
  return at;
}

/* At least half of the slots are empty. */
static pln_status grow_slots(pln_analyzer *a, pln_computation_table *t) {
  if (2 * ((size_t)t->n + 1) <= t->n_slots)
    return PLN_OK;
  uint32_t n = t->n_slots ? t->n_slots * 2 : 16;
  uint32_t *slots = pln_mem_zeroed(a->engine, n * sizeof *slots);
  if (!slots || !n)
    return pln_nomem(a->engine);
  pln_mem_free(a->engine, t->slots, t->n_slots * sizeof *t->slots);
  t->slots = slots;
  t->n_slots = n;
  for (uint32_t i = 0; i < t->n; i++)
    t->slots[slot_of(t, &t->rows[i])] = i + 1;
  return PLN_OK;
}

uint32_t pln_computation_count(const pln_computation_table *t,
                               const pln_computation *like) {
  uint32_t row = t->n ? t->slots[slot_of(t, like)] : 0;
  return row ? t->rows[row - 1].count : 0;
}

static uint32_t sum(uint32_t a, uint32_t b) {
  return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

pln_status pln_computation_add(pln_analyzer *a, pln_computation_table *t,
                               pln_computation row) {
  PLN_TRY(grow_slots(a, t));
  uint32_t at = slot_of(t, &row);
  if (t->slots[at]) {
    pln_computation *old = &t->rows[t->slots[at] - 1];
    old->count = sum(old->count, row.count);
    if (old->within < row.within && t->slots[at] > t->n_queued)
      old->within = row.within; /* in the heap the order is fixed */
    return PLN_OK;
  }
  PLN_TRY(pln_mem_grow(a->engine, (void **)&t->rows, &t->cap, (size_t)t->n + 1,
                       sizeof *t->rows));
  t->rows[t->n++] = row;
  t->slots[at] = t->n;
  return PLN_OK;
}

void pln_computation_free(pln_engine *e, pln_computation_table *t) {
  pln_mem_free(e, t->rows, t->cap * sizeof *t->rows);
  pln_mem_free(e, t->slots, t->n_slots * sizeof *t->slots);
  pln_mem_free(e, t->heap, t->cap_heap * sizeof *t->heap);
}

/* ------------------------------------------------------------- largest first
 */

static bool is_before(const pln_analyzer *a, const pln_computation_table *t,
                      uint32_t x, uint32_t y) {
  const pln_computation *rows = t->rows;
  uint32_t size_x = pln_at(a, rows[x].term)->size,
           size_y = pln_at(a, rows[y].term)->size;
  if (size_x != size_y)
    return size_x > size_y;
  return rows[x].within != rows[y].within ? rows[x].within > rows[y].within
                                          : x < y;
}

static pln_status heap_push(pln_analyzer *a, pln_computation_table *t,
                            uint32_t row) {
  PLN_TRY(pln_mem_grow(a->engine, (void **)&t->heap, &t->cap_heap,
                       (size_t)t->n_heap + 1, sizeof *t->heap));
  uint32_t at = t->n_heap++;
  while (at > 0 && is_before(a, t, row, t->heap[(at - 1) / 2])) {
    t->heap[at] = t->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  t->heap[at] = row;
  return PLN_OK;
}

static uint32_t heap_pop(const pln_analyzer *a, pln_computation_table *t) {
  uint32_t first = t->heap[0], last = t->heap[--t->n_heap], at = 0, child;
  while ((child = 2 * at + 1) < t->n_heap) {
    if (child + 1 < t->n_heap &&
        is_before(a, t, t->heap[child + 1], t->heap[child]))
      child++;
    if (!is_before(a, t, t->heap[child], last))
      break;
    t->heap[at] = t->heap[child];
    at = child;
  }
  t->heap[at] = last;
  return first;
}

pln_status pln_computation_next(pln_analyzer *a, pln_computation_table *t,
                                pln_computation *out, bool *found) {
  for (; t->n_queued < t->n; t->n_queued++)
    PLN_TRY(heap_push(a, t, t->n_queued));
  *found = t->n_heap > 0;
  if (*found)
    *out = t->rows[heap_pop(a, t)];
  return PLN_OK;
}

/* --------------------------------------------------------------- eligibility
 */

enum { FORBIDDEN, ATOM, COMPUTATION };

static bool is_forbidden(pln_kind kind) {
  return kind == PLN_PRIM_CALL || kind == PLN_BUFFER_LOAD ||
         kind == PLN_PRODUCER_LOAD || kind == PLN_REDUCE ||
         kind == PLN_BUFFER || kind == PLN_SHUFFLE || kind == PLN_PRIM_LET ||
         kind == PLN_RANGE;
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
  if (pln_term_is_marked(&k->known, term))
    return PLN_OK;
  PLN_TRY(pln_term_marks_grow(a, &k->known));
  PLN_TRY(pln_mem_grow(a->engine, (void **)&k->kind, &k->cap, a->n,
                       sizeof *k->kind));
  pln_term_list order;
  if (!pln_term_order_unmarked(a, term, &k->known, &order))
    return a->status;
  for (uint32_t i = 0; i < order.n; i++) {
    k->kind[order.items[i]] = kind_of(a, k, order.items[i]);
    pln_term_mark(&k->known, order.items[i]);
  }
  pln_term_list_free(a, &order);
  return PLN_OK;
}

/* Room for what the walks over a function find out of terms. */
pln_status pln_kinds_grow(pln_analyzer *a, pln_computation_kinds *k) {
  uint32_t innermost = k->cap_innermost, places = k->cap_places;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&k->innermost, &k->cap_innermost,
                       a->n, sizeof *k->innermost));
  memset(k->innermost + innermost, 0,
         (k->cap_innermost - innermost) * sizeof *k->innermost);
  PLN_TRY(pln_mem_grow(a->engine, (void **)&k->places, &k->cap_places, a->n,
                       sizeof *k->places));
  memset(k->places + places, 0, (k->cap_places - places) * sizeof *k->places);
  return PLN_OK;
}

pln_places pln_places_join(pln_places a, pln_places b) {
  if (!a.last || !b.last)
    return a.last ? a : b;
  return (pln_places){a.first < b.first ? a.first : b.first,
                      a.last > b.last ? a.last : b.last};
}

void pln_kinds_note_form(pln_computation_kinds *k, pln_term t, pln_term form) {
  if (!k->innermost[form])
    k->innermost[form] = k->innermost[t];
  k->places[form] = pln_places_join(k->places[form], k->places[t]);
}

void pln_computation_kinds_free(pln_analyzer *a, pln_computation_kinds *k) {
  pln_term_marks_free(a, &k->known);
  pln_mem_free(a->engine, k->innermost,
               k->cap_innermost * sizeof *k->innermost);
  pln_mem_free(a->engine, k->places, k->cap_places * sizeof *k->places);
  pln_mem_free(a->engine, k->kind, k->cap * sizeof *k->kind);
  pln_mem_free(a->engine, k->times, k->cap_times * sizeof *k->times);
}

pln_status pln_is_computation(pln_analyzer *a, pln_computation_kinds *k,
                              pln_term term, bool *out) {
  PLN_TRY(find_kinds(a, k, term));
  *out = k->kind[term] == COMPUTATION;
  return PLN_OK;
}

/* --------------------------------------------------------------------- parts
 */

bool pln_term_is_closed(const pln_analyzer *a, pln_term t) {
  pln_kind kind = pln_term_kind(a, t);
  return kind == PLN_BUFFER || kind == PLN_PRIM_LET || kind == PLN_REDUCE;
}

/* A walk over what an expression consists of down to its largest computations:
 * each term once, though it may be computed often. */
typedef struct part_walk {
  pln_analyzer *a;
  pln_computation_kinds *k;
  pln_term_list stack;
  pln_term_list parts; /* computations in the order of evaluation */
  pln_term_list outer; /* what they are in, operands first */
} part_walk;

/* On the stack again, behind its operands. */
#define LEAVE UINT32_C(0x80000000)

static bool expand(part_walk *w, pln_term t) {
  if (!pln_term_list_push(w->a, &w->stack, t | LEAVE))
    return false;
  for (uint32_t i = pln_at(w->a, t)->n; i-- > 0;)
    if (!pln_term_list_push(w->a, &w->stack, pln_term_operand(w->a, t, i)))
      return false;
  return true;
}

static bool counts(const pln_computation_kinds *k, pln_term t) {
  return !k->only || pln_innermost_var(k, t) == k->only;
}

static bool visit_part(part_walk *w, pln_term t) {
  if (t & LEAVE)
    return pln_term_list_push(w->a, &w->outer, t & ~LEAVE);
  if (w->k->times[t] || !counts(w->k, t))
    return true;
  w->k->times[t] = 1; /* seen; what counts is added to it */
  if (w->k->kind[t] == COMPUTATION)
    return pln_term_list_push(w->a, &w->parts, t);
  return pln_term_is_closed(w->a, t) ? pln_term_list_push(w->a, &w->outer, t)
                                     : expand(w, t);
}

/* Users come before their operands. */
static void count_times(part_walk *w) {
  uint32_t *times = w->k->times;
  for (uint32_t i = w->outer.n; i-- > 0;) {
    pln_term t = w->outer.items[i];
    for (uint32_t j = pln_term_is_closed(w->a, t) ? 0 : pln_at(w->a, t)->n;
         j-- > 0;) {
      pln_term operand = pln_term_operand(w->a, t, j);
      if (times[operand])
        times[operand] = sum(times[operand], times[t] - 1);
    }
  }
}

static void end_walk(part_walk *w) {
  for (uint32_t i = 0; i < w->parts.n; i++)
    w->k->times[w->parts.items[i]] = 0;
  for (uint32_t i = 0; i < w->outer.n; i++)
    w->k->times[w->outer.items[i]] = 0;
  for (uint32_t i = 0; i < w->stack.n; i++) /* after a failure */
    w->k->times[w->stack.items[i] & ~LEAVE] = 0;
  pln_term_list_free(w->a, &w->stack);
  pln_term_list_free(w->a, &w->parts);
  pln_term_list_free(w->a, &w->outer);
}

static pln_status grow_times(pln_analyzer *a, pln_computation_kinds *k) {
  uint32_t old = k->cap_times;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&k->times, &k->cap_times, a->n,
                       sizeof *k->times));
  if (k->cap_times > old)
    memset(k->times + old, 0, (k->cap_times - old) * sizeof *k->times);
  return PLN_OK;
}

static pln_status add_parts(part_walk *w, pln_computation row,
                            pln_computation_table *table) {
  for (uint32_t i = 0; i < w->parts.n; i++) {
    row.term = w->parts.items[i];
    row.count = w->k->times[row.term] - 1;
    PLN_TRY(pln_computation_add(w->a, table, row));
  }
  return PLN_OK;
}

pln_status pln_computations_of(pln_analyzer *a, pln_computation_kinds *k,
                               pln_computation row, bool whole,
                               pln_computation_table *table) {
  part_walk w = {.a = a, .k = k};
  pln_term term = row.term;
  if (!whole)
    row.within = pln_at(a, term)->size;
  PLN_TRY(find_kinds(a, k, term));
  PLN_TRY(grow_times(a, k));
  bool ok = whole ? visit_part(&w, term) : expand(&w, term);
  while (ok && w.stack.n > 0)
    ok = visit_part(&w, w.stack.items[--w.stack.n]);
  k->times[term] = sum(row.count, 1);
  if (ok)
    count_times(&w);
  pln_status status = ok ? add_parts(&w, row, table) : a->status;
  k->times[term] = 0;
  end_walk(&w);
  return status;
}
