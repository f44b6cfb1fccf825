/* type/equal.c: equality of types, whatever the names of bound type
 * variables.
 *
 * Called by comparisons of graphs and of modules. Types are interned, so types
 * without variables are equal when they are the same number; the others are
 * compared part by part, on a stack, each pair once. */

#include "ir/equal.h"

void pln_type_match_free(pln_type_match *m) {
  pln_pairing_free(&m->vars);
  pln_idmap_free(m->seen);
  pln_mem_free(m->engine, m->stack, m->cap_stack * sizeof *m->stack);
}

static pln_status match_vars(pln_type_match *m, pln_type x, pln_type y,
                             bool free, bool *same) {
  const pln_engine *e = m->engine;
  *same = pln_type_kind_of(e, x) == PLN_TYPE_VAR &&
          pln_type_kind_of(e, y) == PLN_TYPE_VAR &&
          pln_type_var_kind_of(e, x) == pln_type_var_kind_of(e, y) &&
          pln_pairing_fits(&m->vars, x, y) && (!free || x == y || m->map_free);
  return *same ? pln_pairing_add(m->engine, &m->vars, x, y) : PLN_OK;
}

pln_status pln_type_match_bind(pln_type_match *m, pln_type x, pln_type y,
                               bool *same) {
  return match_vars(m, x, y, false, same);
}

/* A variable whose partner is known needs no permission to be free. */
static pln_status match_use(pln_type_match *m, pln_type x, pln_type y,
                            bool *same) {
  bool known = m->vars.to && pln_idmap_get(m->vars.to, x) == y;
  return match_vars(m, x, y, !known, same);
}

static pln_status push(pln_type_match *m, pln_type x, pln_type y) {
  PLN_TRY(pln_mem_grow(m->engine, (void **)&m->stack, &m->cap_stack,
                       (size_t)m->top + 2, sizeof *m->stack));
  m->stack[m->top++] = x;
  m->stack[m->top++] = y;
  return PLN_OK;
}

static pln_status bind_vars(pln_type_match *m, pln_type x, pln_type y,
                            bool *same) {
  const pln_engine *e = m->engine;
  uint32_t n = pln_type_n_vars(e, x);
  *same = n == pln_type_n_vars(e, y);
  for (uint32_t i = 0; *same && i < n; i++)
    PLN_TRY(match_vars(m, pln_type_var_at(e, x, i), pln_type_var_at(e, y, i),
                       false, same));
  return PLN_OK;
}

static pln_status match_func(pln_type_match *m, pln_type x, pln_type y,
                             bool *same) {
  const pln_engine *e = m->engine;
  uint32_t n = pln_type_n_constraints(e, x);
  PLN_TRY(bind_vars(m, x, y, same));
  *same = *same && n == pln_type_n_constraints(e, y);
  for (uint32_t i = 0; *same && i < n; i++)
    PLN_TRY(
        push(m, pln_type_constraint(e, x, i), pln_type_constraint(e, y, i)));
  return PLN_OK;
}

/* What a compound says beside its parts. */
static pln_status match_head(pln_type_match *m, pln_type x, pln_type y,
                             bool *same) {
  const pln_engine *e = m->engine;
  pln_type_kind kind = pln_type_kind_of(e, x);
  *same = pln_type_n_parts(e, x) == pln_type_n_parts(e, y) &&
          pln_type_symbol(e, x) == pln_type_symbol(e, y);
  if (!*same)
    return PLN_OK;
  if (kind == PLN_TYPE_FUNC)
    return match_func(m, x, y, same);
  *same = pln_type_number(e, x) == pln_type_number(e, y);
  return *same && kind == PLN_TYPE_RELATION
             ? pln_attrs_equal(m->engine, pln_type_attrs(e, x),
                               pln_type_attrs(e, y), same)
             : PLN_OK;
}

/* Notes the pair; *first: it was not noted before. */
static pln_status note(pln_type_match *m, pln_type x, pln_type y, bool *first) {
  uint64_t key = (uint64_t)x << 32 | y;
  if (!m->seen)
    PLN_TRY(pln_idmap_new(m->engine, &m->seen));
  *first = pln_idmap_get(m->seen, key) == 0;
  return *first ? pln_idmap_set(m->seen, key, 1) : PLN_OK;
}

static bool is_leaf(pln_type_kind kind) {
  return kind == PLN_TYPE_INCOMPLETE || kind == PLN_TYPE_TENSOR ||
         kind == PLN_TYPE_HOLE || kind == PLN_TYPE_PRIM;
}

static pln_status match_pair(pln_type_match *m, pln_type x, pln_type y,
                             bool *same) {
  const pln_engine *e = m->engine;
  pln_type_kind kind = pln_type_kind_of(e, x);
  *same = kind == pln_type_kind_of(e, y);
  if (!*same)
    return PLN_OK;
  if (kind == PLN_TYPE_VAR)
    return match_use(m, x, y, same);
  if (is_leaf(kind)) {
    *same = x == y;
    return PLN_OK;
  }
  bool first = false;
  PLN_TRY(note(m, x, y, &first));
  if (!first)
    return PLN_OK;
  PLN_TRY(match_head(m, x, y, same));
  for (uint32_t i = pln_type_n_parts(e, x); *same && i-- > 0;)
    PLN_TRY(push(m, pln_type_part(e, x, i), pln_type_part(e, y, i)));
  return PLN_OK;
}

pln_status pln_type_match_run(pln_type_match *m, pln_type x, pln_type y,
                              bool *same) {
  *same = true;
  /* While no variable has another partner, a type is equal to itself. */
  if (x == y &&
      (!m->vars.to || pln_type_kind_of(m->engine, x) == PLN_TYPE_TENSOR))
    return PLN_OK;
  m->top = 0;
  PLN_TRY(push(m, x, y));
  while (*same && m->top > 0) {
    m->top -= 2;
    PLN_TRY(match_pair(m, m->stack[m->top], m->stack[m->top + 1], same));
  }
  return PLN_OK;
}

pln_status pln_type_equal(pln_engine *engine, pln_type a, pln_type b,
                          bool map_free_vars, bool *out) {
  pln_type_match m = {.engine = engine, .map_free = map_free_vars};
  pln_status status = pln_type_match_run(&m, a, b, out);
  pln_type_match_free(&m);
  return status;
}
