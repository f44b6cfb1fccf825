/* tir/script/parse/buffer.c: variables, and the buffers of T.Buffer,
 * T.match_buffer, T.decl_buffer and T.alloc_buffer.
 *
 * Called by the statement parser, which knows the names that they get. */

#include "ir/tir/script/parse/parse.h"

/* The default alignment of buffers in TVM. */
enum { USUAL_ALIGNMENT = 64 };

/* The arguments, in the order of methods.def. */
enum {
  SHAPE,
  DTYPE,
  DATA,
  STRIDES,
  ELEM_OFFSET,
  SCOPE,
  ALIGN,
  OFFSET_FACTOR,
  BUFFER_TYPE,
  AXIS_SEPARATORS
};

pln_status pln_script_make_var(pln_script_parser *p, pln_slice name,
                               pln_type type, bool is_size, pln_ref *out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(p->engine, name, &symbol));
  return is_size ? pln_build_size_var(p->b, symbol, type, 0, out)
                 : pln_build_var(p->b, symbol, type, 0, out);
}

/* A new pointer to the elements; bools are stored as int8. */
static pln_status new_pointer(pln_script_parser *p, pln_slice name,
                              pln_type element, pln_slice scope, pln_ref *out) {
  pln_symbol symbol;
  pln_type pointer;
  if (pln_type_dtype(p->engine, element) == PLN_BOOL)
    PLN_TRY(pln_type_prim(p->engine, PLN_INT8,
                          pln_type_number(p->engine, element), &element));
  PLN_TRY(pln_symbol_intern(p->engine, scope, &symbol));
  PLN_TRY(pln_type_make(p->engine, PLN_TYPE_POINTER, symbol, 1, &element,
                        &pointer));
  return pln_script_make_var(p, name, pointer, false, out);
}

/* A string is the name of a new variable. */
static pln_status push_strides(pln_script_parser *p,
                               const pln_script_value *strides, pln_type index,
                               uint32_t *n) {
  pln_script_value whole = *strides;
  pln_ref ref;
  if (whole.kind != PLN_V_LIST && whole.kind != PLN_V_TUPLE)
    return pln_script_refuse(p, strides, "a list of strides is expected");
  *n = whole.n;
  for (uint32_t i = 0; i < whole.n; i++) {
    const pln_script_value *item = &p->kept[whole.first + i];
    PLN_TRY(item->kind == PLN_V_STRING
                ? pln_script_make_var(p, item->v.s, index, false, &ref)
                : pln_script_ref(p, item, index, &ref));
    PLN_TRY(pln_script_push_ref(p, ref));
  }
  return PLN_OK;
}

/* Position of the first element, 0 by default. With an offset_factor it is a
 * new variable. */
static pln_status offset_of(pln_script_parser *p, pln_slice name,
                            const pln_script_value *given, int64_t factor,
                            pln_type index, pln_ref *out) {
  if (given && given->kind != PLN_V_NONE)
    return pln_script_ref(p, given, index, out);
  if (factor <= 0)
    return pln_script_int(p, index, 0, out);
  p->word.size = 0;
  PLN_TRY(pln_buffer_add(&p->word, name.data, name.size));
  PLN_TRY(pln_buffer_add(&p->word, "_elem_offset", 12));
  return pln_script_make_var(p, (pln_slice){p->word.data, p->word.size}, index,
                             false, out);
}

static pln_status separators(pln_script_parser *p, const pln_script_value *list,
                             pln_attrs *attrs) {
  pln_attr entry = {.kind = PLN_ATTR_INTS, .count = list->n};
  if (list->kind != PLN_V_LIST && list->kind != PLN_V_TUPLE)
    return pln_script_refuse(p, list, "a list of axes is expected");
  if (list->n == 0)
    return PLN_OK;
  int64_t *items = pln_arena_new(&p->arena, list->n * sizeof *items);
  if (!items)
    return pln_nomem(p->engine);
  for (uint32_t i = 0; i < list->n; i++)
    PLN_TRY(pln_script_as_int(p, &p->kept[list->first + i], 0, INT32_MAX,
                              &items[i]));
  entry.v.ints = items;
  PLN_TRY(
      pln_symbol_intern(p->engine, pln_text("axis_separators"), &entry.name));
  return pln_attrs_with(p->engine, *attrs, &entry, attrs);
}

static pln_status options(pln_script_parser *p,
                          const pln_script_value *const *a, int64_t factor,
                          pln_attrs *attrs) {
  int64_t align = 0;
  pln_slice type = {"", 0};
  if (a[ALIGN])
    PLN_TRY(pln_script_as_int(p, a[ALIGN], INT32_MIN, INT32_MAX, &align));
  if (align > 0 && align != USUAL_ALIGNMENT)
    PLN_TRY(pln_script_with_int(p, "data_alignment", align, attrs));
  if (factor > 1)
    PLN_TRY(pln_script_with_int(p, "offset_factor", factor, attrs));
  if (a[BUFFER_TYPE])
    PLN_TRY(pln_script_as_string(p, a[BUFFER_TYPE], &type));
  if (pln_slice_is(type, "auto") || pln_slice_is(type, "auto_broadcast"))
    PLN_TRY(pln_script_with_string(p, "buffer_type", pln_text("auto"), attrs));
  else if (type.size > 0 && !pln_slice_is(type, "default"))
    return pln_script_refuse(p, a[BUFFER_TYPE],
                             "a buffer_type is \"\", \"default\" or \"auto\"");
  return a[AXIS_SEPARATORS] ? separators(p, a[AXIS_SEPARATORS], attrs) : PLN_OK;
}

/* The shape on p->refs, and the dtype of indices, which is that of the first
 * extent. */
static pln_status push_shape(pln_script_parser *p,
                             const pln_script_value *shape, uint32_t *rank,
                             pln_type *index) {
  uint32_t first = p->n_refs;
  PLN_TRY(pln_script_push_list(p, shape, 0, rank));
  *index = *rank ? pln_script_type_of(p, p->refs[first]) : p->types[0];
  if (pln_type_get_kind(p->engine, *index) != PLN_TYPE_PRIM ||
      !pln_type_dtype(p->engine, *index))
    return pln_script_refuse(p, shape, "extents must be integers");
  return PLN_OK;
}

static pln_status data_of(pln_script_parser *p,
                          const pln_script_value *const *a, pln_slice name,
                          pln_type element, pln_ref *out, pln_ref *fresh) {
  pln_slice scope = pln_text("global");
  *fresh = PLN_NONE;
  if (a[DATA] && a[DATA]->kind != PLN_V_NONE)
    return pln_script_ref(p, a[DATA], 0, out);
  if (a[SCOPE])
    PLN_TRY(pln_script_as_string(p, a[SCOPE], &scope));
  PLN_TRY(new_pointer(p, name, element, scope, out));
  *fresh = *out;
  return PLN_OK;
}

pln_status pln_script_make_buffer(pln_script_parser *p,
                                  const pln_script_value *call, pln_slice name,
                                  pln_ref *out, pln_ref *data) {
  pln_script_args args;
  uint32_t first = p->n_refs, rank, strides = 0;
  int64_t factor = 0;
  pln_type index;
  pln_buffer_spec spec = {.type = p->types[1]};
  PLN_TRY(pln_script_bind_args(p, call, &args));
  const pln_script_value *const *a =
      args.at + (call->v.of.number == PLN_METHOD_MATCH_BUFFER);
  PLN_TRY(push_shape(p, a[SHAPE], &rank, &index));
  if (a[STRIDES] && a[STRIDES]->kind != PLN_V_NONE)
    PLN_TRY(push_strides(p, a[STRIDES], index, &strides));
  if (a[DTYPE])
    PLN_TRY(pln_script_as_type(p, a[DTYPE], &spec.type));
  if (a[OFFSET_FACTOR])
    PLN_TRY(pln_script_as_int(p, a[OFFSET_FACTOR], 0, INT32_MAX, &factor));
  PLN_TRY(options(p, a, factor, &spec.attrs));
  PLN_TRY(data_of(p, a, name, spec.type, &spec.data, data));
  PLN_TRY(offset_of(p, name, a[ELEM_OFFSET], factor, index, &spec.elem_offset));
  PLN_TRY(pln_symbol_intern(p->engine, name, &spec.name));
  spec.rank = rank;
  spec.shape = pln_refs_at(p->refs, first);
  spec.n_strides = strides;
  spec.strides = pln_refs_at(p->refs, first + rank);
  p->n_refs = first;
  p->place = call->at;
  p->place_size = call->size;
  return pln_build_buffer(p->b, &spec, out);
}
