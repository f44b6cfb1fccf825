/* compare/type_equal.c: equality of types up to renaming of bound type
 * variables.
 *
 * Called by comparisons of graphs and modules. Types are interned, so types
 * without variables are equal when their ids are equal; others are compared
 * part by part with a stack, each pair once. */

#include "ir/compare/equal.h"
#include "ir/type/type.h"

void pln_type_match_free(pln_type_match *m) {
  pln_bijection_free(&m->vars);
  while (m->n_scopes > 0)
    pln_idmap_free(m->scopes[--m->n_scopes].seen);
  pln_idmap_free(m->seen);
  pln_mem_free(m->engine, m->stack, m->cap_stack * sizeof *m->stack);
  pln_mem_free(m->engine, m->scopes, m->cap_scopes * sizeof *m->scopes);
  pln_mem_free(m->engine, m->rebound, m->cap_rebound * sizeof *m->rebound);
}

/* On the stack of pairs: the end of a generic function type. */
#define END UINT32_MAX

static bool same_kind(const pln_engine *e, pln_type x, pln_type y) {
  return pln_type_get_kind(e, x) == PLN_TYPE_VAR &&
         pln_type_get_kind(e, y) == PLN_TYPE_VAR &&
         pln_type_var_get_kind(e, x) == pln_type_var_get_kind(e, y);
}

pln_status pln_type_match_bind(pln_type_match *m, pln_type x, pln_type y,
                               bool *same) {
  *same = same_kind(m->engine, x, y);
  if (*same && !pln_bijection_allows(&m->vars, x, y)) {
    pln_idmap_free(m->seen); /* pairs compared under another correspondence */
    m->seen = NULL;
  }
  return *same ? pln_bijection_add(m->engine, &m->vars, x, y) : PLN_OK;
}

/* A variable that has a partner need not be allowed to be free. */
static pln_status match_use(pln_type_match *m, pln_type x, pln_type y,
                            bool *same) {
  bool known = m->vars.to && pln_idmap_get(m->vars.to, x) == y;
  *same = same_kind(m->engine, x, y) && pln_bijection_allows(&m->vars, x, y) &&
          (known || x == y || m->map_free);
  return *same ? pln_bijection_add(m->engine, &m->vars, x, y) : PLN_OK;
}

static pln_status push_type_pair(pln_type_match *m, pln_type x, pln_type y) {
  PLN_TRY(pln_mem_grow(m->engine, (void **)&m->stack, &m->cap_stack,
                       (size_t)m->top + 2, sizeof *m->stack));
  m->stack[m->top++] = x;
  m->stack[m->top++] = y;
  return PLN_OK;
}

/* Binds a variable within the current type only. */
static pln_status rebind(pln_type_match *m, pln_type x, pln_type y,
                         bool *same) {
  *same = same_kind(m->engine, x, y);
  PLN_TRY(pln_mem_grow(m->engine, (void **)&m->rebound, &m->cap_rebound,
                       (size_t)m->n_rebound + 1, sizeof *m->rebound));
  m->rebound[m->n_rebound++] = pln_bijection_get(&m->vars, x, y);
  return pln_bijection_add(m->engine, &m->vars, x, y);
}

/* Opens the scope of a function type's own variables. After it, former partners
 * are restored and earlier comparisons are valid again. */
static pln_status open_type_scope(pln_type_match *m, pln_type x, pln_type y,
                                  bool *same) {
  const pln_engine *e = m->engine;
  PLN_TRY(pln_mem_grow(m->engine, (void **)&m->scopes, &m->cap_scopes,
                       (size_t)m->n_scopes + 1, sizeof *m->scopes));
  PLN_TRY(push_type_pair(m, END, END));
  m->scopes[m->n_scopes++] = (pln_type_scope){m->seen, m->n_rebound};
  m->seen = NULL;
  for (uint32_t i = 0; *same && i < pln_type_n_vars(e, x); i++)
    PLN_TRY(
        rebind(m, pln_type_var_at(e, x, i), pln_type_var_at(e, y, i), same));
  return PLN_OK;
}

static pln_status close_scope(pln_type_match *m) {
  const pln_type_scope *scope = &m->scopes[--m->n_scopes];
  pln_idmap_free(m->seen);
  m->seen = scope->seen;
  while (m->n_rebound > scope->n_rebound)
    PLN_TRY(pln_bijection_restore(&m->vars, &m->rebound[--m->n_rebound]));
  return PLN_OK;
}

static pln_status match_func(pln_type_match *m, pln_type x, pln_type y,
                             bool *same) {
  const pln_engine *e = m->engine;
  uint32_t n = pln_type_n_constraints(e, x);
  *same = pln_type_n_vars(e, x) == pln_type_n_vars(e, y) &&
          n == pln_type_n_constraints(e, y);
  if (*same && pln_type_n_vars(e, x) > 0)
    PLN_TRY(open_type_scope(m, x, y, same));
  for (uint32_t i = 0; *same && i < n; i++)
    PLN_TRY(push_type_pair(m, pln_type_constraint_at(e, x, i),
                           pln_type_constraint_at(e, y, i)));
  return PLN_OK;
}

/* Compares everything but the parts of a composite type. */
static pln_status match_head(pln_type_match *m, pln_type x, pln_type y,
                             bool *same) {
  const pln_engine *e = m->engine;
  pln_type_kind kind = pln_type_get_kind(e, x);
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

/* Records the pair; *first: it was not recorded before. */
static pln_status note(pln_type_match *m, pln_type x, pln_type y, bool *first) {
  uint64_t key = (uint64_t)x << 32 | y;
  if (!m->seen)
    PLN_TRY(pln_idmap_new(m->engine, &m->seen));
  *first = pln_idmap_get(m->seen, key) == 0;
  return *first ? pln_idmap_set(m->seen, key, 1) : PLN_OK;
}

static bool is_atomic(pln_type_kind kind) {
  return kind == PLN_TYPE_INCOMPLETE || kind == PLN_TYPE_TENSOR ||
         kind == PLN_TYPE_HOLE || kind == PLN_TYPE_PRIM;
}

static pln_status match_pair(pln_type_match *m, pln_type x, pln_type y,
                             bool *same) {
  const pln_engine *e = m->engine;
  pln_type_kind kind = pln_type_get_kind(e, x);
  *same = kind == pln_type_get_kind(e, y);
  if (!*same)
    return PLN_OK;
  if (kind == PLN_TYPE_VAR)
    return match_use(m, x, y, same);
  if (is_atomic(kind)) {
    *same = x == y;
    return PLN_OK;
  }
  bool first = false;
  PLN_TRY(note(m, x, y, &first));
  if (!first)
    return PLN_OK;
  PLN_TRY(match_head(m, x, y, same));
  for (uint32_t i = pln_type_n_parts(e, x); *same && i-- > 0;)
    PLN_TRY(push_type_pair(m, pln_type_part_at(e, x, i),
                           pln_type_part_at(e, y, i)));
  return PLN_OK;
}

pln_status pln_type_match_run(pln_type_match *m, pln_type x, pln_type y,
                              bool *same) {
  *same = true;
  /* As long as every variable corresponds to itself, a type equals itself. */
  if (x == y &&
      (!m->vars.to || !(pln_type_flags(m->engine, x) & PLN_TYPE_HAS_VAR)))
    return PLN_OK;
  m->top = 0;
  PLN_TRY(push_type_pair(m, x, y));
  while ((*same || m->n_scopes > 0) && m->top > 0) {
    m->top -= 2;
    if (m->stack[m->top] == END)
      PLN_TRY(close_scope(m));
    else if (*same)
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
