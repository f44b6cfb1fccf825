/* tir/script/layout.c: prints transforms of layouts, which are an attribute of
 * the function in TVMScript:
 *
 *     T.func_attr({"layout_transform_map": {B: [T.index_map(lambda i: ...)]}})
 *
 * Called by script/expr.c among the function's attributes, and by
 * script/buffer.c behind the declaration of a buffer that is declared later. */

#include "ir/tir/script/script.h"

static const pln_attr *transforms_of(const pln_script_printer *s,
                                     pln_ref buffer) {
  const pln_attr *a =
      pln_attrs_find(s->engine, s->g->nodes[buffer].attrs, "layout_transforms");
  return a && a->kind == PLN_ATTR_STRINGS ? a : NULL;
}

bool pln_script_has_layout(const pln_script_printer *s, pln_ref buffer) {
  return transforms_of(s, buffer) != NULL;
}

static void put_maps(pln_script_printer *s, pln_ref buffer) {
  const pln_attr *maps = transforms_of(s, buffer);
  pln_script_expr(s, buffer);
  pln_script_write(s, ": [");
  for (uint32_t i = 0; maps && i < maps->count; i++) {
    pln_script_write(s, i > 0 ? ", " : "");
    pln_script_write_slice(s, maps->v.strings[i]);
  }
  pln_script_write(s, "]");
}

void pln_script_layouts(pln_script_printer *s) {
  pln_script_write(s, "\"layout_transform_map\": {");
  for (uint32_t i = 0; i < s->n_layouts; i++) {
    pln_script_write(s, i > 0 ? ", " : "");
    put_maps(s, s->layouts[i]);
  }
  pln_script_write(s, "}");
  s->n_layouts = 0;
}
