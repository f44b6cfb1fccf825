/* function.c: the attributes that a FunctionProto declares, stored as
 * attributes of its scope: "attributes", the names without default, and
 * "attribute_defaults", the values of the others.
 *
 * Called by graph.c when a function's body is done. The evaluator resolves
 * attribute references with them; export writes them for functions that come
 * from no file. */

#include "onnx/import/import.h"

static pln_status add_entry(pln_import *in, const char *name, pln_attr entry,
                            pln_attrs *attrs) {
  PLN_TRY(pln_symbol_intern(in->engine, pln_text(name), &entry.name));
  return pln_attrs_with(in->engine, *attrs, &entry, attrs);
}

static pln_status add_names(pln_import *in, pln_message function,
                            pln_attrs *attrs) {
  uint32_t n = pln_wire_count(function, FUNCTION_ATTRIBUTE), i = 0;
  if (n == 0)
    return PLN_OK;
  pln_slice *names = pln_mem_new(in->engine, n * sizeof *names);
  if (!names)
    return pln_nomem(in->engine);
  pln_wire w = pln_wire_open(function);
  pln_field f;
  while (pln_wire_next(&w, &f))
    if (f.tag == FUNCTION_ATTRIBUTE)
      names[i++] = f.bytes;
  pln_attr entry = {.kind = PLN_ATTR_STRINGS, .count = n, .v.strings = names};
  pln_status status = add_entry(in, PLN_ATTRIBUTES_ATTR, entry, attrs);
  pln_mem_free(in->engine, names, n * sizeof *names);
  return status;
}

static pln_status read_defaults(pln_import *in, pln_message function,
                                pln_attr_scratch *scratch, pln_attrs *out) {
  pln_wire w = pln_wire_open(function);
  pln_field f;
  uint32_t graph = 0;
  while (pln_wire_next(&w, &f)) {
    pln_attr entry;
    if (f.tag != FUNCTION_ATTRIBUTE_PROTO)
      continue;
    PLN_TRY(pln_decode_attr(&in->decoder, pln_wire_message(&w, &f), scratch,
                            &graph, &entry));
    if (entry.kind != PLN_ATTR_GRAPH && entry.kind != PLN_ATTR_GRAPHS)
      PLN_TRY(pln_attrs_with(in->engine, *out, &entry, out));
  }
  return PLN_OK;
}

pln_status pln_import_function_attrs(pln_import *in, pln_message function,
                                     pln_attrs *attrs) {
  pln_attr defaults = {.kind = PLN_ATTR_DICT};
  PLN_TRY(add_names(in, function, attrs));
  if (pln_wire_count(function, FUNCTION_ATTRIBUTE_PROTO) == 0)
    return PLN_OK;
  pln_attr_scratch scratch = {0};
  pln_arena_init(&scratch.arena, in->engine);
  pln_status status = read_defaults(in, function, &scratch, &defaults.v.dict);
  pln_attr_scratch_clear(in->engine, &scratch);
  PLN_TRY(status);
  return add_entry(in, PLN_ATTRIBUTE_DEFAULTS_ATTR, defaults, attrs);
}
