/* fake_quantized_attribute.c: the conversion of an operator by its attribute
 * FTVMFakeQuantizationToInteger. Called by FakeQuantizationToInteger.
 *
 * The function gets the call with converted operands, and a table that has the
 * affine type { scale, zero_point, dtype, axis } of each quantised operand, and
 * for the call that of the region's result. It returns { expression, affine
 * type }, or nothing if it has no conversion.
 *
 *     pl.op_attr("atan", "FTVMFakeQuantizationToInteger",
 *       function(expr, types) return { expr, types[expr.args[1]] } end)
 *
 * Semantics: TVM's register_fake_quantization_to_integer. */

#include "transform/quantize/fake_quantization.h"

enum { SCALE, ZERO_POINT, DTYPE, AXIS, N_FIELDS };

/* An affine type as a table. */
typedef struct affine_table {
  pln_op_value fields[N_FIELDS];
} affine_table;

static pln_op_value table_value(affine_table *t) {
  return (pln_op_value){.kind = PLN_OP_LIST, .v.list = {N_FIELDS, t->fields}};
}

static void write_type(const pln_affine_type *type, affine_table *out) {
  out->fields[SCALE] = (pln_op_value){
      .kind = PLN_OP_NODE, .name = "scale", .v.node = type->scale};
  out->fields[ZERO_POINT] = (pln_op_value){
      .kind = PLN_OP_NODE, .name = "zero_point", .v.node = type->zero};
  out->fields[DTYPE] =
      (pln_op_value){.kind = PLN_OP_STRING,
                     .name = "dtype",
                     .v.s = pln_text(pln_dtype_name(type->dtype))};
  out->fields[AXIS] =
      (pln_op_value){.kind = PLN_OP_INT, .name = "axis", .v.i = type->axis};
}

static pln_status read_type(const pln_fake_quantized_call *c,
                            const affine_table *from, pln_affine_type *out) {
  pln_slice dtype = from->fields[DTYPE].v.s;
  *out = (pln_affine_type){from->fields[SCALE].v.node,
                           from->fields[ZERO_POINT].v.node,
                           pln_dtype_find(dtype), from->fields[AXIS].v.i};
  if (out->dtype)
    return PLN_OK;
  return pln_diag_error(
      c->q.r.engine, PLN_ERR_TYPE, NULL,
      "attribute '%s' of '%s': '%.*s' is no dtype", PLN_FAKE_QUANTIZATION_KEY,
      pln_op_row(c->q.r.engine, c->q.op)->name, (int)dtype.size, dtype.data);
}

/* The types of the quantised operands and of the call, by node. */
typedef struct type_map {
  uint32_t n;
  pln_op_value entries[PLN_QNN_MOST_ARGS + 1];
  affine_table tables[PLN_QNN_MOST_ARGS + 1];
} type_map;

static void add_type(type_map *map, pln_ref key, const pln_affine_type *type) {
  if (!pln_affine_is_known(type))
    return;
  write_type(type, &map->tables[map->n]);
  map->entries[map->n] = table_value(&map->tables[map->n]);
  map->entries[map->n].keyed = map->entries[map->n].new_key = true;
  map->entries[map->n++].key = key;
}

pln_status pln_fake_quantized_ask(pln_fake_quantized_call *c, pln_rewrite *rw,
                                  pln_ref old, pln_ref *out) {
  type_map map = {.n = 0};
  affine_table type;
  pln_ref expr =
      pln_relay_call_core(&c->q.r, c->q.op, c->q.attrs, c->q.n_args, c->q.args);
  bool called;
  *out = PLN_NONE;
  if (expr == PLN_NONE)
    return PLN_OK;
  for (uint32_t i = 0; i < c->q.n_args; i++)
    add_type(&map, c->q.args[i], &c->types[i]);
  add_type(&map, expr, &c->region);
  write_type(&c->region, &type);
  pln_op_value args[] = {{.kind = PLN_OP_NODE, .v.node = expr},
                         {.kind = PLN_OP_LIST, .v.list = {map.n, map.entries}}};
  pln_op_value items[] = {{.kind = PLN_OP_NODE}, table_value(&type)};
  pln_op_value result = {.kind = PLN_OP_LIST,
                         .optional = true,
                         .v.list = {PLN_COUNT(items), items}};
  pln_op_call call = {.graph = pln_rewrite_old(rw),
                      .node = old,
                      .rewrite = rw,
                      .image = expr,
                      .n_args = PLN_COUNT(args),
                      .args = args,
                      .result = &result};
  PLN_TRY(pln_op_attr_call(c->q.r.engine, c->q.op, PLN_FAKE_QUANTIZATION_KEY,
                           &call, &called));
  if (result.kind == PLN_OP_NIL)
    return PLN_OK;
  *out = items[0].v.node;
  return read_type(c, &type, &c->result);
}
