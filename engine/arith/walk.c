/* arith/walk.c: walks over the terms that an expression consists of.
 *
 * Called by the analyses. Nothing here recurses: an order is made with a stack
 * of its own. */

#include "arith/arith.h"

/* Lists are kept for reuse: walks are many and short. */
static void take_spare(pln_analyzer *a, pln_term_list *o) {
  if (a->n_spare > 0)
    *o = a->spare[--a->n_spare];
  o->n = 0;
}

/* Takes a spare list, or makes room. */
bool pln_term_list_grow(pln_analyzer *a, pln_term_list *o, pln_term t) {
  if (!o->items)
    take_spare(a, o);
  pln_status status = pln_mem_grow(a->engine, (void **)&o->items, &o->cap,
                                   (size_t)o->n + 1, sizeof *o->items);
  if (status != PLN_OK) {
    pln_arith_fail(a, status);
    return false;
  }
  o->items[o->n++] = t;
  return true;
}

void pln_term_list_free(pln_analyzer *a, pln_term_list *o) {
  if (o->items && a->n_spare < PLN_COUNT(a->spare))
    a->spare[a->n_spare++] = *o;
  else if (o->items)
    pln_mem_free(a->engine, o->items, o->cap * sizeof *o->items);
  *o = (pln_term_list){0};
}

/* A term is on the stack twice: to be entered, and, marked by the upper bit, to
 * be listed behind its operands. */
#define LEAVE UINT32_C(0x80000000)

/* What an order leaves out: one of the two, or neither. */
typedef struct left_out {
  pln_done_fn done;
  const pln_term_marks *marks;
} left_out;

static bool is_left_out(const pln_analyzer *a, left_out l, pln_term t) {
  return l.done ? l.done(a, t) : l.marks && pln_term_is_marked(l.marks, t);
}

static bool push_operands(pln_analyzer *a, pln_term_list *stack, pln_term t,
                          left_out l) {
  for (uint32_t i = pln_at(a, t)->n; i-- > 0;) {
    pln_term x = pln_term_operand(a, t, i);
    if (a->facts[x].visit != a->walk && !is_left_out(a, l, x) &&
        !pln_term_list_push(a, stack, x))
      return false;
  }
  return true;
}

static bool step(pln_analyzer *a, pln_term_list *stack, left_out l,
                 pln_term_list *out) {
  pln_term t = stack->items[--stack->n];
  if (t & LEAVE)
    return pln_term_list_push(a, out, t & ~LEAVE);
  if (a->facts[t].visit == a->walk)
    return true;
  a->facts[t].visit = a->walk;
  if (pln_at(a, t)->n == 0)
    return pln_term_list_push(a, out, t);
  return pln_term_list_push(a, stack, t | LEAVE) &&
         push_operands(a, stack, t, l);
}

static bool order_terms(pln_analyzer *a, pln_term t, left_out l,
                        pln_term_list *out) {
  pln_term_list stack = {0};
  *out = (pln_term_list){0};
  a->walk++;
  bool ok = t && (is_left_out(a, l, t) || pln_term_list_push(a, &stack, t));
  while (ok && stack.n > 0)
    ok = step(a, &stack, l, out);
  pln_term_list_free(a, &stack);
  if (!ok)
    pln_term_list_free(a, out);
  return ok;
}

bool pln_term_order(pln_analyzer *a, pln_term t, pln_done_fn done,
                    pln_term_list *out) {
  return order_terms(a, t, (left_out){.done = done}, out);
}

bool pln_term_preorder(pln_analyzer *a, pln_term t, pln_term_list *out) {
  pln_term_list stack = {0};
  *out = (pln_term_list){0};
  a->walk++;
  bool ok = pln_term_list_push(a, &stack, t);
  while (ok && stack.n > 0) {
    pln_term x = stack.items[--stack.n];
    if (a->facts[x].visit == a->walk)
      continue;
    a->facts[x].visit = a->walk;
    ok = pln_term_list_push(a, out, x) &&
         (pln_term_kind(a, x) == PLN_BUFFER ||
          push_operands(a, &stack, x, (left_out){0}));
  }
  pln_term_list_free(a, &stack);
  if (!ok)
    pln_term_list_free(a, out);
  return ok;
}

bool pln_term_order_unmarked(pln_analyzer *a, pln_term t,
                             const pln_term_marks *marks, pln_term_list *out) {
  return order_terms(a, t, (left_out){.marks = marks}, out);
}

pln_status pln_term_marks_grow(pln_analyzer *a, pln_term_marks *m) {
  uint32_t old = m->cap;
  PLN_TRY(pln_mem_grow(a->engine, (void **)&m->stamp, &m->cap, a->n,
                       sizeof *m->stamp));
  if (m->cap > old)
    memset(m->stamp + old, 0, (m->cap - old) * sizeof *m->stamp);
  return PLN_OK;
}

void pln_term_marks_free(pln_analyzer *a, pln_term_marks *m) {
  pln_mem_free(a->engine, m->stamp, m->cap * sizeof *m->stamp);
}

bool pln_term_uses(pln_analyzer *a, pln_term t, pln_term part) {
  pln_term_list order;
  bool found = false;
  if (t == part || t < part)
    return t == part;
  if (!pln_term_order(a, t, NULL, &order))
    return true;
  for (uint32_t i = 0; i < order.n && !found; i++)
    found = order.items[i] == part;
  pln_term_list_free(a, &order);
  return found;
}

static pln_term folded(pln_analyzer *a, pln_term t, const pln_term *operands) {
  pln_kind kind = pln_term_kind(a, t);
  if (kind >= PLN_PRIM_ADD && kind <= PLN_PRIM_OR)
    return pln_fold(a, kind, operands[0], operands[1]);
  if (kind == PLN_PRIM_NOT)
    return pln_fold_not(a, operands[0]);
  return pln_term_with(a, t, operands);
}

static pln_term image(const pln_analyzer *a, pln_term t) {
  return a->image_at[t] == a->image_stamp ? a->image_of[t] : PLN_NO_TERM;
}

static void set_image(pln_analyzer *a, pln_term t, pln_term value) {
  a->image_at[t] = a->image_stamp;
  a->image_of[t] = value;
}

static bool rebuild(pln_analyzer *a, pln_term t, bool fold) {
  uint32_t n = pln_at(a, t)->n;
  pln_term few[8], *operands = few;
  bool changed = false;
  if (n > PLN_COUNT(few))
    operands = pln_mem_new(a->engine, n * sizeof *operands);
  if (!operands) {
    pln_arith_fail(a, pln_nomem(a->engine));
    return false;
  }
  for (uint32_t i = 0; i < n; i++) {
    pln_term x = pln_term_operand(a, t, i);
    operands[i] = image(a, x) ? image(a, x) : x;
    changed = changed || operands[i] != x;
  }
  pln_term made = !changed ? t
                  : fold   ? folded(a, t, operands)
                           : pln_term_with(a, t, operands);
  set_image(a, t, made);
  if (operands != few)
    pln_mem_free(a->engine, operands, n * sizeof *operands);
  return made != PLN_NO_TERM;
}

static bool begin_images(pln_analyzer *a, pln_term t) {
  uint32_t old = a->cap_image_at;
  pln_status status =
      pln_mem_grow(a->engine, (void **)&a->image_of, &a->cap_image_of,
                   (size_t)t + 1, sizeof *a->image_of);
  if (status == PLN_OK)
    status = pln_mem_grow(a->engine, (void **)&a->image_at, &a->cap_image_at,
                          (size_t)t + 1, sizeof *a->image_at);
  pln_arith_fail(a, status);
  if (status == PLN_OK)
    memset(a->image_at + old, 0, (a->cap_image_at - old) * sizeof *a->image_at);
  a->image_stamp++;
  return status == PLN_OK;
}

static pln_term replace(pln_analyzer *a, pln_term t, uint32_t n,
                        const pln_term *from, const pln_term *to, bool fold) {
  pln_term_list order;
  if (n == 0 || !t)
    return t;
  if (!begin_images(a, t) || !pln_term_order(a, t, NULL, &order))
    return PLN_NO_TERM;
  for (uint32_t i = 0; i < n; i++)
    if (from[i] && from[i] <= t)
      set_image(a, from[i], to[i]);
  bool ok = true;
  for (uint32_t i = 0; ok && i < order.n; i++)
    if (!image(a, order.items[i]))
      ok = rebuild(a, order.items[i], fold);
  pln_term out = ok ? image(a, t) : PLN_NO_TERM;
  pln_term_list_free(a, &order);
  return out;
}

pln_term pln_term_substitute(pln_analyzer *a, pln_term t, uint32_t n,
                             const pln_term *vars, const pln_term *values) {
  return replace(a, t, n, vars, values, true);
}

pln_term pln_term_replace(pln_analyzer *a, pln_term t, uint32_t n,
                          const pln_term *from, const pln_term *to) {
  return replace(a, t, n, from, to, false);
}
