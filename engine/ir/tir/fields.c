/* tir/fields.c: what is read of TIR nodes: dtype and lanes of a value, the
 * fields of a Buffer.
 *
 * Called by passes (lower) and by what translates loop programs (eval/loop,
 * codegen). */

#include "ir/tir/tir.h"

static bool is_prim(const pln_graph *g, pln_type type) {
  return pln_type_get_kind(g->engine, type) == PLN_TYPE_PRIM;
}

pln_dtype pln_prim_dtype(const pln_graph *g, pln_ref ref) {
  pln_type type = g->nodes[ref].type;
  return is_prim(g, type) ? pln_type_dtype(g->engine, type) : PLN_DTYPE_NONE;
}

uint32_t pln_prim_lanes(const pln_graph *g, pln_ref ref) {
  pln_type type = g->nodes[ref].type;
  uint32_t lanes = is_prim(g, type) ? pln_type_number(g->engine, type) : 1;
  return lanes ? lanes : 1;
}

pln_buffer_fields pln_buffer_fields_of(const pln_graph *g, pln_ref buffer) {
  const pln_node *n = &g->nodes[buffer];
  const pln_ref *operands = pln_operands(g, n);
  const pln_attr *separators =
      pln_attrs_find(g->engine, n->attrs, "axis_separators");
  pln_buffer_fields f = {.rank = n->results,
                         .n_strides = n->count - 2 - n->results,
                         .data = operands[0],
                         .shape = operands + 1,
                         .strides = operands + 1 + n->results,
                         .elem_offset = operands[n->count - 1],
                         .dtype = pln_prim_dtype(g, buffer),
                         .lanes = pln_prim_lanes(g, buffer)};
  if (separators && separators->kind == PLN_ATTR_INTS) {
    f.n_separators = separators->count;
    f.separators = separators->v.ints;
  }
  return f;
}
