/* target_attr.c: the attribute `target` of functions, as passes of lower/host
 * ask for it (host.h). */

#include "lower/host/host.h"

pln_attrs pln_target_of(const pln_graph *g) {
  const pln_attr *target =
      pln_attrs_find(g->engine, g->nodes[g->root].attrs, "target");
  return target && target->kind == PLN_ATTR_DICT ? target->v.dict : 0;
}

pln_attrs pln_target_host(const pln_engine *e, pln_attrs target) {
  const pln_attr *host = pln_attrs_find(e, target, "host");
  return host && host->kind == PLN_ATTR_DICT ? host->v.dict : 0;
}

int32_t pln_target_device_type(const pln_engine *e, pln_attrs target) {
  static const struct {
    const char *kind;
    int32_t number;
  } rows[] = {{"cuda", 2},     {"nvptx", 2},   {"opencl", 4},
              {"vulkan", 7},   {"metal", 8},   {"rocm", 10},
              {"hexagon", 16}, {"webgpu", 15}, {"ext_dev", 12}};
  pln_slice kind = pln_attrs_string(e, target, "kind", "");
  for (size_t i = 0; i < PLN_COUNT(rows); i++)
    if (pln_slice_is(kind, rows[i].kind))
      return rows[i].number;
  return 1;
}

pln_status pln_attrs_with_dict(pln_engine *e, pln_attrs attrs, const char *name,
                               pln_attrs dict, pln_attrs *out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(e, pln_text(name), &symbol));
  return pln_attrs_with(
      e, attrs,
      &(pln_attr){.name = symbol, .kind = PLN_ATTR_DICT, .v.dict = dict}, out);
}
