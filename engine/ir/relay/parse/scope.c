/* relay/parse/scope.c: the attributes of a function's or If's scopes, written
 * among its own attributes: `scope.name="g", scope.output_names=["y"]`.
 *
 * Called after such attributes were parsed. Graphs of ONNX files have them. */

#include "ir/relay/parse/parse.h"
#include "ir/relay/print/plan.h"

static const char schema[] =
    "input_names:strings output_names:strings " PLN_ATTRIBUTES_ATTR ":strings";

static bool begins(pln_slice name, pln_slice prefix) {
  return name.size > prefix.size &&
         memcmp(name.data, prefix.data, prefix.size) == 0;
}

/* Splits the attributes: those whose name has the prefix are stored, without
 * it, from the end of `entries`; the *n_own others from its beginning. */
static pln_status split_scope_attrs(pln_parser *p, pln_slice prefix,
                                    pln_attrs given, pln_attr *entries,
                                    uint32_t *n_own) {
  uint32_t n = pln_attrs_count(p->engine, given), at = n;
  *n_own = 0;
  for (uint32_t i = 0; i < n; i++) {
    pln_attr entry = *pln_attrs_at(p->engine, given, i);
    pln_slice name = pln_symbol_text(p->engine, entry.name);
    if (!begins(name, prefix)) {
      entries[(*n_own)++] = entry;
      continue;
    }
    name.data += prefix.size;
    name.size -= prefix.size;
    PLN_TRY(pln_symbol_intern(p->engine, name, &entry.name));
    entries[--at] = entry;
  }
  return PLN_OK;
}

static pln_status split(pln_parser *p, pln_slice prefix, pln_attrs *attrs,
                        pln_attrs *out) {
  pln_engine *e = p->engine;
  uint32_t n = pln_attrs_count(e, *attrs), n_own;
  pln_attr *entries = pln_mem_new(e, n * sizeof *entries);
  if (!entries)
    return n > 0 ? pln_nomem(e) : PLN_OK;
  pln_status status = split_scope_attrs(p, prefix, *attrs, entries, &n_own);
  if (status == PLN_OK && n_own < n) {
    status = pln_attrs_make(e, n_own, entries, attrs);
    if (status == PLN_OK)
      status = pln_attrs_make(e, n - n_own, entries + n_own, out);
  }
  pln_mem_free(e, entries, n * sizeof *entries);
  return status;
}

static pln_status add_input_names(pln_parser *p, uint32_t n,
                                  const pln_parsed_param *params,
                                  pln_attrs *out) {
  pln_attr names = {.kind = PLN_ATTR_STRINGS, .count = n};
  pln_slice *list = pln_mem_new(p->engine, (n + (size_t)1) * sizeof *list);
  if (!list)
    return pln_nomem(p->engine);
  for (uint32_t i = 0; i < n; i++)
    list[i] = pln_symbol_text(p->engine, params[i].name);
  names.v.strings = list;
  pln_status status =
      pln_symbol_intern(p->engine, pln_text(PLN_INPUT_NAMES_ATTR), &names.name);
  if (status == PLN_OK)
    status = pln_attrs_with(p->engine, *out, &names, out);
  pln_mem_free(p->engine, list, (n + (size_t)1) * sizeof *list);
  return status;
}

pln_status pln_parse_scope_attrs(pln_parser *p, const char *prefix, uint32_t n,
                                 const pln_parsed_param *params,
                                 pln_attrs *attrs, pln_attrs *out) {
  pln_engine *e = p->engine;
  *out = 0;
  PLN_TRY(split(p, pln_text(prefix), attrs, out));
  if (!*out)
    return PLN_OK;
  PLN_TRY(pln_parse_convert_attrs(p, schema, out));
  const pln_attr *names = pln_attrs_find(e, *out, PLN_INPUT_NAMES_ATTR);
  if (!names)
    return add_input_names(p, n, params, out);
  return names->kind == PLN_ATTR_NONE
             ? pln_attrs_without(e, *out, PLN_INPUT_NAMES_ATTR, out)
             : PLN_OK;
}
