/* symbol_range.c: prevents inference from taking attribute values for symbolic
 * dims.
 *
 * The smallest 2^32 integers encode symbolic dims (pln_dim). An attribute with
 * such a value is replaced by the smallest constant before inference. Nearly
 * all dictionaries are unchanged. Nested lists are checked as deep as operators
 * read them. */

#include "ir/op_info.h"

#define SMALLEST (INT64_MIN + (int64_t)UINT32_MAX + 1)

static bool is_small(const pln_attr *a) {
  if (a->kind == PLN_ATTR_INT)
    return !PLN_DIM_IS_CONST(a->v.i);
  for (uint32_t i = 0; a->kind == PLN_ATTR_INTS && i < a->count; i++)
    if (!PLN_DIM_IS_CONST(a->v.ints[i]))
      return true;
  return false;
}

static bool has_small(const pln_engine *engine, pln_attrs attrs) {
  uint32_t n = pln_attrs_count(engine, attrs);
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *a = pln_attrs_at(engine, attrs, i);
    if (is_small(a))
      return true;
    uint32_t inner =
        a->kind == PLN_ATTR_LIST ? pln_attrs_count(engine, a->v.dict) : 0;
    for (uint32_t k = 0; k < inner; k++)
      if (is_small(pln_attrs_at(engine, a->v.dict, k)))
        return true;
  }
  return false;
}

/* The value without such integers; lists are allocated in the arena. */
static pln_status limit(pln_engine *engine, pln_arena *arena, pln_attr *a) {
  if (a->kind == PLN_ATTR_INT && !PLN_DIM_IS_CONST(a->v.i))
    a->v.i = SMALLEST;
  if (a->kind != PLN_ATTR_INTS)
    return PLN_OK;
  int64_t *list = pln_arena_new(arena, (a->count + 1u) * sizeof *list);
  if (!list)
    return pln_nomem(engine);
  for (uint32_t i = 0; i < a->count; i++)
    list[i] = PLN_DIM_IS_CONST(a->v.ints[i]) ? a->v.ints[i] : SMALLEST;
  a->v.ints = list;
  return PLN_OK;
}

/* Copies the entries of a dictionary or list without such integers. */
static pln_status limit_all(pln_engine *engine, pln_arena *arena,
                            pln_attrs attrs, pln_attr **out) {
  uint32_t n = pln_attrs_count(engine, attrs);
  pln_attr *all = pln_arena_new(arena, (n + 1u) * sizeof *all);
  if (!all)
    return pln_nomem(engine);
  for (uint32_t i = 0; i < n; i++) {
    all[i] = *pln_attrs_at(engine, attrs, i);
    PLN_TRY(limit(engine, arena, &all[i]));
  }
  *out = all;
  return PLN_OK;
}

static pln_status limit_dictionary(pln_engine *engine, pln_arena *arena,
                                   pln_attrs attrs, pln_attrs *out) {
  uint32_t n = pln_attrs_count(engine, attrs);
  pln_attr *all, *items;
  PLN_TRY(limit_all(engine, arena, attrs, &all));
  for (uint32_t i = 0; i < n; i++) {
    if (all[i].kind != PLN_ATTR_LIST)
      continue;
    uint32_t inner = pln_attrs_count(engine, all[i].v.dict);
    PLN_TRY(limit_all(engine, arena, all[i].v.dict, &items));
    PLN_TRY(pln_attrs_list(engine, inner, items, &all[i].v.dict));
  }
  return pln_attrs_make(engine, n, all, out);
}

pln_status pln_attrs_within(pln_engine *engine, pln_attrs attrs,
                            pln_attrs *out) {
  *out = attrs;
  if (!has_small(engine, attrs))
    return PLN_OK;
  pln_arena arena;
  pln_arena_init(&arena, engine);
  pln_status status = limit_dictionary(engine, &arena, attrs, out);
  pln_arena_free(&arena);
  return status;
}
