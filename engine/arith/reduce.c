/* arith/reduce.c: reductions in normal form: the combiner is simplified, and
 * has only the values that the result depends on (TVM's
 * SimplifyReduceCombiner); a reduction over no axis is its source.
 *
 * Called by the machine of rewrite.c. Reductions of many values stay as they
 * are. */

#include "arith/arith.h"

enum { MOST_VALUES = 16, MOST_PARTS = 128 };

typedef struct reduction {
  pln_analyzer *a;
  pln_term t, combiner;
  uint32_t k, n_init, n_axes, index;
  pln_term result[MOST_VALUES];
  bool used[MOST_VALUES];
} reduction;

static pln_term with_operands(pln_analyzer *a, pln_term like, uint32_t count,
                              uint32_t data, uint32_t n,
                              const pln_term *operands) {
  pln_term_node node = *pln_at(a, like);
  for (uint32_t i = 0; i < n; i++)
    if (!operands[i])
      return PLN_NO_TERM;
  node.n = (uint16_t)n;
  node.count = (uint16_t)count;
  node.u.data = (node.u.data & ~(uint64_t)UINT32_MAX) | data;
  if (n <= 3) {
    node.a = n > 0 ? operands[0] : 0;
    node.b = n > 1 ? operands[1] : 0;
    node.c = n > 2 ? operands[2] : 0;
  }
  return pln_term_intern(a, &node, operands);
}

/* The parts of the combiner: lhs, rhs, results, identities. */
static pln_term part_of(const reduction *r, uint32_t part, uint32_t i) {
  return pln_term_operand(r->a, r->combiner, part * r->k + i);
}

static bool read_reduction(pln_analyzer *a, pln_term t, reduction *r) {
  const pln_term_node *n = pln_at(a, t);
  *r = (reduction){.a = a, .t = t, .combiner = pln_term_operand(a, t, 0)};
  r->k = pln_at(a, r->combiner)->n / 4u;
  r->n_init = n->count;
  r->index = (uint32_t)n->u.data;
  if (r->k == 0 || r->k > MOST_VALUES || n->n > MOST_PARTS ||
      n->n < 2 + r->k + r->n_init || r->index >= r->k ||
      (r->n_init != 0 && r->n_init != r->k))
    return false;
  r->n_axes = n->n - 2 - r->k - r->n_init;
  return true;
}

/* Marks the values whose variables the result of value `i` has. */
static bool mark_variables(reduction *r, uint32_t i) {
  pln_term_list order;
  if (!pln_term_order(r->a, r->result[i], NULL, &order))
    return false;
  for (uint32_t at = 0; at < order.n; at++)
    for (uint32_t k = 0; k < r->k; k++)
      r->used[k] |= order.items[at] == part_of(r, 0, k) ||
                    order.items[at] == part_of(r, 1, k);
  pln_term_list_free(r->a, &order);
  return true;
}

/* Calls of functions, and of builtins that write or whose effect is unknown. */
static bool has_effect(const pln_analyzer *a, pln_term t) {
  const pln_term_node *n = pln_at(a, t);
  uint32_t builtin = (uint32_t)n->u.data;
  if (n->kind != PLN_PRIM_CALL)
    return false;
  return builtin == 0 ||
         pln_call_effect(pln_builtin_row(builtin)->effect) > PLN_EFFECT_READS;
}

/* Marks the values whose source is computed for its effect too. */
static bool mark_effects(reduction *r) {
  for (uint32_t i = 0; i < r->k; i++) {
    pln_term_list order;
    if (!pln_term_order(r->a, pln_term_operand(r->a, r->t, 2 + i), NULL,
                        &order))
      return false;
    for (uint32_t at = 0; at < order.n && !r->used[i]; at++)
      r->used[i] = has_effect(r->a, order.items[at]);
    pln_term_list_free(r->a, &order);
  }
  return true;
}

/* The values that the result depends on, through others too. */
static bool mark_used(reduction *r) {
  bool done[MOST_VALUES] = {false};
  r->used[r->index] = true;
  if (!mark_effects(r))
    return false;
  for (uint32_t i = 0; i < r->k; i++) {
    if (!r->used[i] || done[i])
      continue;
    done[i] = true;
    if (!mark_variables(r, i))
      return false;
    i = UINT32_MAX; /* from the first again */
  }
  return true;
}

static pln_term used_combiner(const reduction *r) {
  pln_term operands[4 * MOST_VALUES];
  uint32_t n = 0;
  for (uint32_t part = 0; part < 4; part++)
    for (uint32_t i = 0; i < r->k; i++) {
      if (!r->used[i])
        continue;
      operands[n++] = part == 2   ? r->result[i]
                      : part == 3 ? pln_canonical_term(r->a, part_of(r, 3, i))
                                  : part_of(r, part, i);
    }
  return with_operands(r->a, r->combiner, pln_at(r->a, r->combiner)->count,
                       (uint32_t)pln_at(r->a, r->combiner)->u.data, n,
                       operands);
}

/* The reduction of the values that are used. */
static pln_term used_reduction(const reduction *r) {
  pln_analyzer *a = r->a;
  pln_term operands[MOST_PARTS];
  uint32_t n = 0, kept = 0, index = 0;
  operands[n++] = used_combiner(r);
  operands[n++] = pln_canonical_term(a, pln_term_operand(a, r->t, 1));
  for (uint32_t i = 0; i < r->k; i++) {
    index += r->used[i] && i < r->index;
    kept += r->used[i];
    if (r->used[i])
      operands[n++] = pln_canonical_term(a, pln_term_operand(a, r->t, 2 + i));
  }
  for (uint32_t i = 0; i < r->n_init; i++)
    if (r->used[i])
      operands[n++] = pln_term_operand(a, r->t, 2 + r->k + i);
  for (uint32_t i = 0; i < r->n_axes; i++)
    operands[n++] = pln_term_operand(a, r->t, 2 + r->k + r->n_init + i);
  return with_operands(a, r->t, r->n_init ? kept : 0, index, n, operands);
}

pln_term pln_canonical_reduce(pln_analyzer *a, pln_term t) {
  reduction r;
  if (!read_reduction(a, t, &r))
    return t;
  if (r.n_axes == 0 && r.n_init == 0)
    return pln_canonical_term(
        a, pln_fold_select(a, pln_term_operand(a, t, 1),
                           pln_term_operand(a, t, 2 + r.index),
                           part_of(&r, 3, r.index)));
  for (uint32_t i = 0; i < r.k; i++)
    r.result[i] = pln_canonical_term(a, part_of(&r, 2, i));
  if (a->status != PLN_OK || !mark_used(&r))
    return PLN_NO_TERM;
  return used_reduction(&r);
}
