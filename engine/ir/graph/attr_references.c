/* attr_references.c: the values of attribute references at a call of a
 * function.
 *
 * Called by the evaluator and by Inline. An ONNX FunctionProto has attributes
 * that the nodes of its body refer to by name; each call supplies values. */

#include "ir/graph/graph.h"

static uint32_t resolve_entries(const pln_engine *engine, pln_attrs attrs,
                                pln_attrs given, pln_attr *entries) {
  uint32_t n = 0, count = pln_attrs_count(engine, attrs);
  for (uint32_t i = 0; i < count; i++) {
    const pln_attr *entry = pln_attrs_at(engine, attrs, i), *a = entry;
    if (entry->kind == PLN_ATTR_REF)
      a = pln_attrs_find(engine, given,
                         pln_symbol_text(engine, entry->v.symbol).data);
    if (!a)
      continue;
    entries[n] = *a;
    entries[n++].name = entry->name;
  }
  return n;
}

pln_status pln_attrs_resolve(pln_engine *engine, pln_attrs attrs,
                             pln_attrs given, pln_attrs *out) {
  *out = attrs;
  if (!pln_attrs_has_refs(engine, attrs))
    return PLN_OK;
  size_t size = pln_attrs_count(engine, attrs) * sizeof(pln_attr);
  pln_attr *entries = pln_mem_new(engine, size);
  if (!entries)
    return pln_nomem(engine);
  uint32_t n = resolve_entries(engine, attrs, given, entries);
  pln_status status = pln_attrs_make(engine, n, entries, out);
  pln_mem_free(engine, entries, size);
  return status;
}

pln_status pln_function_given(const pln_graph *function, pln_attrs *given) {
  pln_engine *e = function->engine;
  const pln_node *root = &function->nodes[function->root];
  if (root->kind != PLN_FUNCTION)
    return PLN_OK;
  const pln_attr *defaults = pln_attrs_find(
      e, function->scopes[root->data].attrs, PLN_ATTRIBUTE_DEFAULTS_ATTR);
  if (!defaults || defaults->kind != PLN_ATTR_DICT)
    return PLN_OK;
  uint32_t n = pln_attrs_count(e, defaults->v.dict);
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *a = pln_attrs_at(e, defaults->v.dict, i);
    if (!pln_attrs_find(e, *given, pln_symbol_text(e, a->name).data))
      PLN_TRY(pln_attrs_with(e, *given, a, given));
  }
  return PLN_OK;
}
