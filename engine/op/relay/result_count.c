/* result_count.c: the number of results of Relay's calls that depends on
 * attributes. Called through relay.def. */

#include "op/op.h"

uint32_t pln_relay_count_split(const pln_engine *engine, pln_attrs core) {
  const pln_attr *a = pln_attrs_find(engine, core, "indices_or_sections");
  if (a && a->kind == PLN_ATTR_INTS && a->count < UINT16_MAX)
    return a->count + 1;
  if (a && a->kind == PLN_ATTR_INT && a->v.i > 0 && a->v.i <= UINT16_MAX)
    return (uint32_t)a->v.i;
  return 0;
}

uint32_t pln_relay_count_topk(const pln_engine *engine, pln_attrs core) {
  pln_slice what = pln_attrs_string(engine, core, "ret_type", "both");
  return pln_slice_is(what, "both") ? 2 : 0;
}

uint32_t pln_relay_count_unique(const pln_engine *engine, pln_attrs core) {
  return pln_attrs_int(engine, core, "return_counts", 0) ? 5 : 4;
}

/* Indices of boxes and their number, or the boxes alone. */
uint32_t pln_relay_count_nms(const pln_engine *engine, pln_attrs core) {
  return pln_attrs_int(engine, core, "return_indices", 1) ? 2 : 0;
}

uint32_t pln_relay_count_all_class_nms(const pln_engine *engine,
                                       pln_attrs core) {
  pln_slice format = pln_attrs_string(engine, core, "output_format", "onnx");
  return pln_slice_is(format, "onnx") ? 2 : 3;
}
