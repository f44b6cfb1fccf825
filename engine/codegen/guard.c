/* guard.c: loops whose body is one guarded statement.
 *
 * Called by stmt.c and loop.c. `for i: if (x + i < y) body` ends where the
 * guard does not hold any more, so that its rounds need no test and may be
 * vectorised. What schedules leave of sizes that do not divide looks like that.
 */

#include "codegen/guard.h"
#include "codegen/bounds.h"

enum { MOST_NODES = 64 };

static const pln_ref *refs_of(const pln_cw *w, pln_ref ref) {
  return pln_operands(w->g, &w->g->nodes[ref]);
}

static bool is_var(const pln_cw *w, pln_ref ref, pln_ref var) {
  return w->g->nodes[ref].kind == PLN_VAR &&
         w->g->nodes[ref].data == w->g->nodes[var].data;
}

/* Whether an expression is known not to use a variable, and may be evaluated
 * although the loop runs no round. */
static bool is_apart(const pln_cw *w, pln_ref expr, pln_ref var) {
  pln_ref stack[MOST_NODES];
  uint32_t n = 1, seen = 0;
  if (w->unsafe[expr])
    return false;
  stack[0] = expr;
  while (n > 0) {
    pln_ref ref = stack[--n];
    const pln_node *node = &w->g->nodes[ref];
    bool plain = node->kind == PLN_VAR || node->kind == PLN_INT_IMM ||
                 (node->kind >= PLN_PRIM_ADD && node->kind <= PLN_PRIM_MAX);
    if (!plain || is_var(w, ref, var) || ++seen == MOST_NODES ||
        n + node->count > MOST_NODES)
      return false;
    for (uint32_t i = 0; i < node->count; i++)
      stack[n++] = refs_of(w, ref)[i];
  }
  return true;
}

/* The condition without likely(). */
static pln_ref bare(const pln_cw *w, pln_ref ref) {
  const pln_node *n = &w->g->nodes[ref];
  bool wrapped = n->kind == PLN_PRIM_CALL && n->data && n->count == 1 &&
                 !strcmp(pln_builtin_row(n->data)->name, "likely");
  return wrapped ? refs_of(w, ref)[0] : ref;
}

static bool split_sum(const pln_cw *w, pln_ref sum, pln_ref var,
                      pln_c_guard *out) {
  const pln_ref *o = refs_of(w, sum);
  out->offset = PLN_NONE;
  if (is_var(w, sum, var))
    return true;
  if (w->g->nodes[sum].kind != PLN_PRIM_ADD)
    return false;
  if (is_var(w, o[1], var))
    out->offset = o[0];
  else if (is_var(w, o[0], var))
    out->offset = o[1];
  return out->offset != PLN_NONE && is_apart(w, out->offset, var);
}

bool pln_c_find_guard(const pln_cw *w, pln_ref loop, pln_c_guard *out) {
  const pln_node *n = &w->g->nodes[loop];
  pln_ref var = w->g->scopes[n->data].begin;
  pln_ref stmt = w->first_stmt[n->data];
  pln_dtype dtype = pln_prim_dtype(w->g, var);
  if (n->count != 2 || pln_attrs_int(w->engine, n->attrs, "kind", 0) != 0 ||
      stmt == PLN_NONE || w->next_stmt[stmt] != PLN_NONE ||
      w->g->nodes[stmt].kind != PLN_IF_THEN_ELSE ||
      w->g->scopes[w->g->nodes[stmt].data].next != PLN_NONE ||
      (dtype != PLN_INT32 && dtype != PLN_INT64))
    return false;
  pln_ref condition = bare(w, refs_of(w, stmt)[0]);
  if (w->g->nodes[condition].kind != PLN_PRIM_LT ||
      pln_prim_lanes(w->g, condition) != 1)
    return false;
  out->stmt = stmt;
  out->limit = refs_of(w, condition)[1];
  return split_sum(w, refs_of(w, condition)[0], var, out) &&
         is_apart(w, out->limit, var);
}

/* min <= end <= the guard's limit - offset, in the loop's dtype. */
pln_c_value pln_c_guarded_end(pln_cw *w, const pln_c_guard *guard,
                              pln_c_value min, pln_c_value end,
                              pln_c_value index, bool *out) {
  pln_dtype dtype = (pln_dtype)index.dtype;
  pln_c_value limit = pln_c_value_of(w, guard->limit);
  pln_c_value offset = guard->offset == PLN_NONE
                           ? pln_c_int_value(w, dtype, 0)
                           : pln_c_value_of(w, guard->offset);
  int64_t lo, hi;
  *out = pln_c_bounds(PLN_PRIM_ADD, dtype, &offset, &index, &lo, &hi) &&
         pln_c_bounds(PLN_PRIM_SUB, PLN_INT64, &limit, &offset, &lo, &hi);
  if (!*out)
    return end;
  limit = pln_c_offset(w, PLN_PRIM_SUB, limit, offset);
  pln_c_use(w, PLN_C_HELPER_MIN, PLN_C_I64, 1);
  pln_c_use(w, PLN_C_HELPER_MAX, PLN_C_I64, 1);
  pln_c_value narrowed = pln_c_scalar(
      w, dtype,
      pln_c_textf(w, PLN_C_COMPOUND, "(%s)pl_max_i64(pl_min_i64(%s, %s), %s)",
                  pln_c_type_name(dtype), pln_c_text_at(w, &end, 0).data,
                  pln_c_text_at(w, &limit, 0).data,
                  pln_c_text_at(w, &min, 0).data));
  return pln_c_named(w, narrowed);
}
