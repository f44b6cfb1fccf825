/* registered_op.c: the attributes of calls of registered operators.
 *
 * Called by the builder, which stores them in one form, and by inference and
 * kernels (op/infer/registered.c, op/kernel/registered.c). Invariant: of two
 * calls with equal attributes, defaults included, the dictionaries are the
 * same, so that calls merge. */

#include "ir/registered_op.h"

/* The index of the attribute, or the number of attributes. */
static uint32_t attr_index(const pln_registered_op *op, pln_symbol name) {
  uint32_t i = 0;
  while (i < op->spec.n_attrs && op->attr_names[i] != name)
    i++;
  return i;
}

/* ----------------------------------------------------------------- one form */

/* Converts an element of a list, and a number, as Relay text and Lua have
 * them. *one and *floats are memory for a list. */
static void to_kind(pln_attr_kind kind, int64_t *one, double *floats,
                    pln_attr *a) {
  if (a->kind == PLN_ATTR_BOOL)
    a->kind = PLN_ATTR_INT;
  if (a->kind == PLN_ATTR_INT && kind == PLN_ATTR_FLOAT) {
    a->kind = PLN_ATTR_FLOAT;
    a->v.f = (double)a->v.i;
  }
  if (a->kind == PLN_ATTR_FLOAT)
    a->v.f = (double)(float)a->v.f;
  if (a->kind == PLN_ATTR_INT && kind == PLN_ATTR_INTS) {
    *one = a->v.i;
    a->kind = PLN_ATTR_INTS;
    a->count = 1;
    a->v.ints = one;
  }
  if (a->kind == PLN_ATTR_INTS && a->count == 0 && kind == PLN_ATTR_STRINGS)
    a->kind = PLN_ATTR_STRINGS;
  if (a->kind == PLN_ATTR_INTS && kind == PLN_ATTR_FLOATS) {
    const int64_t *ints = a->v.ints;
    for (uint32_t i = 0; i < a->count; i++)
      floats[i] = (double)(float)ints[i];
    a->kind = PLN_ATTR_FLOATS;
    a->v.floats = floats;
  }
}

/* Appends the entry to the `n` first ones unless it is its default. */
static pln_status add_normal(pln_engine *engine, const pln_registered_op *op,
                             pln_arena *arena, const pln_attr *entry,
                             pln_attr *entries, uint32_t *n) {
  uint32_t i = attr_index(op, entry->name);
  pln_attr *a = &entries[*n];
  pln_attrs alone;
  *a = *entry;
  ++*n;
  if (i == op->spec.n_attrs)
    return PLN_OK;
  size_t count = a->kind == PLN_ATTR_INTS ? a->count : 0;
  int64_t *one = pln_arena_new(arena, sizeof *one);
  double *floats = pln_arena_new(arena, (count + 1) * sizeof *floats);
  if (!one || !floats)
    return pln_nomem(engine);
  to_kind(op->spec.attrs[i].kind, one, floats, a);
  if (!op->alone[i])
    return PLN_OK;
  PLN_TRY(pln_attrs_make(engine, 1, a, &alone));
  *n -= alone == op->alone[i];
  return PLN_OK;
}

pln_status pln_registered_normal(pln_engine *engine,
                                 const pln_registered_op *op, pln_attrs attrs,
                                 pln_attrs *out) {
  uint32_t count = pln_attrs_count(engine, attrs), n = 0;
  pln_arena arena;
  *out = attrs;
  if (count == 0)
    return PLN_OK;
  pln_arena_init(&arena, engine);
  pln_attr *entries = pln_arena_new(&arena, count * sizeof *entries);
  pln_status status = entries ? PLN_OK : pln_nomem(engine);
  for (uint32_t i = 0; i < count && status == PLN_OK; i++)
    status = add_normal(engine, op, &arena, pln_attrs_at(engine, attrs, i),
                        entries, &n);
  if (status == PLN_OK)
    status = pln_attrs_make(engine, n, entries, out);
  pln_arena_free(&arena);
  return status;
}

/* ----------------------------------------------------------------- checking */

static pln_status check_entry(pln_engine *engine, pln_op op,
                              const pln_attr *entry) {
  const pln_op_info *row = pln_op_row(engine, op);
  const pln_registered_op *registered = row->registered;
  uint32_t i = attr_index(registered, entry->name);
  pln_slice name = pln_symbol_text(engine, entry->name);
  if (i == registered->spec.n_attrs)
    return pln_attr_unknown(engine, op, name);
  pln_attr_kind kind = registered->spec.attrs[i].kind;
  if (kind == PLN_ATTR_BOOL)
    kind = PLN_ATTR_INT;
  if (entry->kind == kind || entry->kind == PLN_ATTR_REF)
    return PLN_OK;
  return pln_diag_error(engine, PLN_ERR_TYPE, NULL,
                        "'%s': attribute '%s' takes %s", row->name, name.data,
                        pln_attr_wanted(engine, op, name));
}

pln_status pln_registered_check(pln_engine *engine, pln_op op,
                                pln_attrs attrs) {
  const pln_op_info *row = pln_op_row(engine, op);
  const pln_operator_spec *spec = &row->registered->spec;
  for (uint32_t i = 0; i < pln_attrs_count(engine, attrs); i++)
    PLN_TRY(check_entry(engine, op, pln_attrs_at(engine, attrs, i)));
  for (uint32_t i = 0; i < spec->n_attrs; i++)
    if (spec->attrs[i].required &&
        !pln_attrs_find(engine, attrs, spec->attrs[i].name))
      return pln_diag_error(engine, PLN_ERR_TYPE, NULL,
                            "'%s': attribute '%s' is missing", row->name,
                            spec->attrs[i].name);
  return PLN_OK;
}

pln_status pln_registered_full(pln_engine *engine, const pln_registered_op *op,
                               pln_attrs attrs, pln_attrs *out) {
  uint32_t n = pln_attrs_count(engine, attrs);
  *out = op->defaults;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_attrs_with(engine, *out, pln_attrs_at(engine, attrs, i), out));
  return PLN_OK;
}
