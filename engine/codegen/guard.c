/* guard.c: comparisons of a loop's index that hold in one run of its rounds.
 *
 * Called by stmt.c and loop.c. `for i: if (x + i < y) body` ends where the
 * guard does not hold any more. An innermost loop that computes something else
 * where guards do not hold, as at a border, is written three times: before,
 * inside and behind the rounds in which all of them hold, so that those need no
 * test and may be vectorised. */

#include "codegen/guard.h"
#include "codegen/bounds.h"

enum {
  MOST_NODES = 64,
  MOST_SPLIT_NODES = 256,
  MOST_NESTED = 8,
  LEAST_ROUNDS = 8,
  FEW_ROUNDS = 4
};

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

static bool is_var(const pln_cw *w, pln_ref ref, pln_ref var) {
  return w->g->nodes[ref].kind == PLN_VAR &&
         w->g->nodes[ref].data == w->g->nodes[var].data;
}

/* Whether an expression is known not to use a variable, and may be evaluated
 * before the loop, although it may run no round. */
static bool is_apart(const pln_cw *w, pln_ref expr, pln_ref var) {
  pln_ref stack[MOST_NODES];
  uint32_t n = 1, seen = 0;
  if (w->unsafe[expr])
    return false;
  stack[0] = expr;
  while (n > 0) {
    pln_ref ref = stack[--n];
    const pln_node *node = &w->g->nodes[ref];
    bool plain = (node->kind == PLN_VAR && pln_c_is_bound(w, ref)) ||
                 node->kind == PLN_INT_IMM || pln_c_is_arithmetic(node);
    if (!plain || is_var(w, ref, var) || ++seen == MOST_NODES ||
        n + node->count > MOST_NODES)
      return false;
    for (uint32_t i = 0; i < node->count; i++)
      stack[n++] = refs_of(w, ref)[i];
  }
  return true;
}

/* ------------------------------------------------------------- comparisons */

static bool is_builtin(const pln_cw *w, pln_ref ref, const char *name) {
  const pln_node *n = &w->g->nodes[ref];
  return n->kind == PLN_PRIM_CALL && n->data &&
         !strcmp(pln_builtin_row(n->data)->name, name);
}

/* The value of a variable that a let inside of the loop binds. */
static pln_ref expanded(const pln_cw *w, pln_ref ref, pln_ref var) {
  for (uint32_t i = 0; i < MOST_NODES; i++) {
    const pln_node *n = &w->g->nodes[ref];
    uint32_t let = n->kind == PLN_VAR ? pln_idmap_get(w->lets, n->data) : 0;
    if (!let || is_var(w, ref, var) || pln_c_is_bound(w, ref))
      return ref;
    ref = let - 1;
  }
  return ref;
}

/* offset + var, where the offset is known before the loop. */
static bool split_sum(const pln_cw *w, pln_ref sum, pln_ref var,
                      pln_ref *offset) {
  sum = expanded(w, sum, var);
  *offset = PLN_NONE;
  if (is_var(w, sum, var))
    return true;
  if (w->g->nodes[sum].kind != PLN_PRIM_ADD)
    return false;
  const pln_ref *o = refs_of(w, sum);
  bool second = is_var(w, expanded(w, o[1], var), var);
  if (!second && !is_var(w, expanded(w, o[0], var), var))
    return false;
  *offset = o[!second];
  return is_apart(w, *offset, var);
}

static bool read_guard(const pln_cw *w, pln_ref condition, pln_ref var,
                       pln_c_guard *out) {
  pln_kind kind = (pln_kind)w->g->nodes[condition].kind;
  const pln_ref *o = refs_of(w, condition);
  if (kind < PLN_PRIM_LT || kind > PLN_PRIM_GE ||
      pln_prim_dtype(w->g, o[0]) != pln_prim_dtype(w->g, var) ||
      pln_prim_lanes(w->g, o[0]) != 1)
    return false;
  bool less = kind == PLN_PRIM_LT || kind == PLN_PRIM_LE;
  bool left = split_sum(w, o[0], var, &out->offset);
  if (!left && !split_sum(w, o[1], var, &out->offset))
    return false;
  out->condition = condition;
  out->limit = o[left];
  out->is_upper = left == less;
  /* i <= y is i < y + 1; i > y is i >= y + 1. */
  out->plus = (kind == PLN_PRIM_LE || kind == PLN_PRIM_GE) == out->is_upper;
  return is_apart(w, out->limit, var);
}

static bool add_guard(pln_c_guards *out, const pln_c_guard *guard) {
  for (uint32_t i = 0; i < out->n; i++)
    if (out->list[i].condition == guard->condition)
      return true;
  if (out->n == PLN_C_MOST_GUARDS)
    return false;
  out->list[out->n++] = *guard;
  return true;
}

/* Adds the guards among the terms of a conjunction; false: not all terms are
 * guards. */
static bool add_terms(const pln_cw *w, pln_ref condition, pln_ref var,
                      pln_c_guards *out) {
  pln_ref stack[MOST_NODES] = {condition};
  uint32_t n = 1, seen = 0;
  bool all = true;
  while (n > 0) {
    pln_ref ref = stack[--n];
    pln_c_guard guard;
    bool is_and = w->g->nodes[ref].kind == PLN_PRIM_AND;
    if (++seen == MOST_NODES || n + 2 > MOST_NODES)
      return false;
    if (is_builtin(w, ref, "likely"))
      stack[n++] = refs_of(w, ref)[0];
    else if (!is_and)
      all &= read_guard(w, ref, var, &guard) && add_guard(out, &guard);
    for (uint32_t i = 0; is_and && i < 2; i++)
      stack[n++] = refs_of(w, ref)[i];
  }
  return all;
}

/* ------------------------------------------------------------------- loops */

/* The IfThenElse without an else that is all of a loop. */
static pln_ref only_branch(const pln_cw *w, pln_scope body) {
  pln_ref stmt = w->first_stmt[body];
  bool is_branch = stmt != PLN_NONE && w->next_stmt[stmt] == PLN_NONE &&
                   w->g->nodes[stmt].kind == PLN_IF_THEN_ELSE;
  return is_branch && w->g->scopes[w->g->nodes[stmt].data].next == PLN_NONE
             ? stmt
             : PLN_NONE;
}

static bool chooses(const pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  return (n->kind == PLN_IF_THEN_ELSE || n->kind == PLN_SELECT ||
          is_builtin(w, ref, "if_then_else")) &&
         pln_prim_lanes(w->g, refs_of(w, ref)[0]) == 1;
}

/* Guards of what the rounds of a small innermost loop compute. */
static bool find_choices(const pln_cw *w, pln_ref loop, pln_ref var,
                         pln_c_guards *out) {
  const pln_graph *g = w->g;
  const pln_scope_row *body = &g->scopes[g->nodes[loop].data];
  const pln_node *extent = &g->nodes[refs_of(w, loop)[1]];
  if (body->end - body->begin > MOST_SPLIT_NODES ||
      (extent->kind == PLN_INT_IMM && pln_imm_bits(extent) < LEAST_ROUNDS))
    return false;
  for (pln_ref ref = body->begin; ref < body->end; ref++) {
    uint8_t kind = g->nodes[ref].kind;
    if (kind == PLN_FOR || kind == PLN_WHILE || kind == PLN_ALLOCATE ||
        kind == PLN_ASSERT_STMT || kind == PLN_ALLOCATE_CONST)
      return false;
    if (chooses(w, ref))
      (void)add_terms(w, refs_of(w, ref)[0], var, out);
  }
  return out->n > 0;
}

bool pln_c_find_guards(const pln_cw *w, pln_ref loop, pln_c_guards *out) {
  const pln_node *n = &w->g->nodes[loop];
  out->n = 0;
  out->stmt = PLN_NONE;
  if (n->kind != PLN_FOR || n->count != 2 ||
      pln_attrs_int(w->engine, n->attrs, "kind", 0) != 0)
    return false;
  pln_ref var = w->g->scopes[n->data].begin;
  pln_dtype dtype = pln_prim_dtype(w->g, var);
  if (dtype != PLN_INT32 && dtype != PLN_INT64)
    return false;
  out->stmt = only_branch(w, n->data);
  if (out->stmt != PLN_NONE && add_terms(w, refs_of(w, out->stmt)[0], var, out))
    return true;
  out->n = 0;
  out->stmt = PLN_NONE;
  return find_choices(w, loop, var, out);
}

void pln_c_push_guards(pln_cw *w, const pln_c_guards *guards) {
  for (uint32_t i = 0; i < guards->n; i++) {
    if (guards->list[i].offset != PLN_NONE)
      pln_c_push_expr(w, guards->list[i].offset);
    pln_c_push_expr(w, guards->list[i].limit);
  }
}

/* ------------------------------------------------------------------ bounds */

/* The first round at which a guard begins or ends to hold; false: a sum may
 * leave its dtype. */
static bool turning_point(pln_cw *w, const pln_c_guard *guard,
                          pln_c_value index, pln_c_value *out) {
  pln_dtype dtype = (pln_dtype)index.dtype;
  pln_c_value limit = pln_c_value_of(w, guard->limit);
  pln_c_value offset = guard->offset == PLN_NONE
                           ? pln_c_int_value(w, dtype, 0)
                           : pln_c_value_of(w, guard->offset);
  int64_t lo, hi;
  if (!pln_c_bounds(PLN_PRIM_ADD, dtype, &offset, &index, &lo, &hi) ||
      !pln_c_bounds(PLN_PRIM_SUB, PLN_INT64, &limit, &offset, &lo, &hi) ||
      lo == INT64_MAX || hi == INT64_MAX)
    return false;
  *out = pln_c_offset(w, PLN_PRIM_SUB, limit, offset);
  if (guard->plus)
    *out =
        pln_c_offset(w, PLN_PRIM_ADD, *out, pln_c_int_value(w, PLN_INT64, 1));
  return true;
}

static pln_c_value of_helper(pln_cw *w, pln_kind kind, pln_c_value a,
                             pln_c_value b) {
  int64_t lo, hi;
  bool is_min = kind == PLN_PRIM_MIN;
  if (pln_c_bounds(kind, PLN_INT64, &a, &b, &lo, &hi) && lo == hi)
    return pln_c_int_value(w, PLN_INT64, lo);
  pln_c_use(w, is_min ? PLN_C_HELPER_MIN : PLN_C_HELPER_MAX, PLN_C_I64, 1);
  pln_c_value out = pln_c_scalar(
      w, PLN_INT64,
      pln_c_textf(w, PLN_C_CALL, "pl_%s_i64(%s, %s)", is_min ? "min" : "max",
                  pln_c_text_at(w, &a, 0).data, pln_c_text_at(w, &b, 0).data));
  out.lo = lo;
  out.hi = hi;
  return out;
}

/* The value limited to [first, end], as a variable of the index's dtype. */
static pln_c_value limited(pln_cw *w, pln_c_value value, pln_c_value first,
                           pln_c_value end, pln_dtype dtype) {
  pln_c_value out = of_helper(w, PLN_PRIM_MIN, value, end);
  out = of_helper(w, PLN_PRIM_MAX, out, first);
  pln_c_text text = pln_c_text_at(w, &out, 0);
  if (out.lo != out.hi)
    text = pln_c_textf(w, PLN_C_COMPOUND, "(%s)%s", pln_c_type_name(dtype),
                       pln_c_arg(w, text));
  pln_c_value narrow = pln_c_scalar(w, dtype, text);
  narrow.lo = out.lo;
  narrow.hi = out.hi;
  return pln_c_named(w, narrow);
}

void pln_c_narrow(pln_cw *w, const pln_c_guards *guards, pln_c_value index,
                  pln_c_value *first, pln_c_value *end, uint32_t *mask) {
  pln_c_value lower = *first, upper = *end, at;
  bool raises = false, cuts = false;
  *mask = 0;
  for (uint32_t i = 0; i < guards->n; i++) {
    const pln_c_guard *guard = &guards->list[i];
    if (!turning_point(w, guard, index, &at))
      continue;
    *mask |= 1u << i;
    if (guard->is_upper)
      upper = of_helper(w, PLN_PRIM_MIN, upper, at);
    else
      lower = of_helper(w, PLN_PRIM_MAX, lower, at);
    cuts |= guard->is_upper;
    raises |= !guard->is_upper;
  }
  pln_dtype dtype = (pln_dtype)index.dtype;
  if (raises)
    *first = limited(w, lower, *first, *end, dtype);
  if (cuts)
    *end = limited(w, upper, *first, *end, dtype);
}

/* ------------------------------------------------------------ moving bounds */

/* The innermost loop among the first statements in a loop. */
static pln_ref innermost(const pln_cw *w, pln_ref loop) {
  pln_ref found = PLN_NONE, at = loop;
  for (uint32_t i = 0; i < MOST_NESTED; i++) {
    at = w->first_stmt[w->g->nodes[at].data];
    if (at == PLN_NONE || (w->g->nodes[at].kind != PLN_FOR &&
                           w->g->nodes[at].kind != PLN_LET_STMT))
      break;
    found = w->g->nodes[at].kind == PLN_FOR ? at : found;
  }
  return found;
}

bool pln_c_moves_bounds(const pln_cw *w, pln_ref loop) {
  int64_t rounds = pln_c_rounds(w, loop);
  pln_ref inner =
      rounds > 1 && rounds <= FEW_ROUNDS ? innermost(w, loop) : PLN_NONE;
  if (inner == PLN_NONE || pln_c_rounds(w, inner) < LEAST_ROUNDS)
    return false;
  const pln_scope_row *body = &w->g->scopes[w->g->nodes[inner].data];
  for (pln_ref ref = body->begin;
       ref < body->end && ref - body->begin < MOST_SPLIT_NODES; ref++) {
    const pln_node *n = &w->g->nodes[ref];
    pln_c_linear at;
    for (uint32_t i = 0;
         n->kind >= PLN_PRIM_LT && n->kind <= PLN_PRIM_GE && i < 2; i++)
      if (pln_c_linear_of(w, refs_of(w, ref)[i], pln_c_loop_var(w, loop),
                          pln_c_loop_var(w, inner), &at) &&
          at.outer != 0 && at.inner != 0)
        return true;
  }
  return false;
}
