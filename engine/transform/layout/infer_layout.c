/* infer_layout.c: asks an operator for the layouts of a call (layouts.def), and
 * what the functions of operators have in common.
 *
 * Called by transform_layout.c.
 *
 *     nn.relu, operand 0 in "NHWC"   =>   result in "NHWC"
 *
 * Semantics: TVM's InferCorrectLayouts. */

#include "transform/layout/infer_layout.h"

static const pln_layout_fn functions[PLN_N_OPS] = {
#define LAYOUT(ID, function) [PLN_OP_##ID] = function,
#include "transform/layout/layouts.def"
};

pln_layout_fn pln_layout_fn_of(pln_op op) {
  return op < PLN_N_OPS ? functions[op] : NULL;
}

pln_status pln_layout_infer(pln_layout_call *call, bool *known) {
  pln_layout_fn infer = pln_layout_fn_of(call->op);
  *known = false;
  memset(call->in, 0, call->n * sizeof *call->in);
  memset(call->out, 0, call->n_results * sizeof *call->out);
  if (!infer || call->n == 0)
    return PLN_OK;
  PLN_TRY(infer(call));
  *known = true;
  for (uint32_t i = 0; i < call->n; i++)
    *known = *known && call->in[i] != PLN_LAYOUT_UNDEFINED;
  for (uint32_t i = 0; i < call->n_results; i++)
    *known = *known && call->out[i] != PLN_LAYOUT_UNDEFINED;
  return PLN_OK;
}

/* -------------------------------------------------------------- attributes */

pln_status pln_layout_attr(pln_layout_call *call, const char *name,
                           pln_tensor_layout *out) {
  pln_attr value;
  *out = PLN_LAYOUT_UNDEFINED;
  PLN_TRY(pln_relay_get(call->engine, call->op, call->attrs, name, &value));
  if (value.kind != PLN_ATTR_STRING)
    return PLN_OK;
  return pln_tensor_layout_read(call->table, value.v.s, out);
}

pln_status pln_layout_set_text(pln_layout_call *call, const char *name,
                               pln_slice text) {
  pln_attr value = {.kind = PLN_ATTR_STRING, .v.s = text};
  return pln_relay_set(call->engine, call->op, call->attrs, name, value,
                       &call->attrs);
}

pln_status pln_layout_int(pln_layout_call *call, const char *name,
                          int64_t fallback, int64_t *out) {
  pln_attr value;
  PLN_TRY(pln_relay_get(call->engine, call->op, call->attrs, name, &value));
  bool number = value.kind == PLN_ATTR_INT || value.kind == PLN_ATTR_BOOL;
  *out = number ? value.v.i : fallback;
  return PLN_OK;
}

pln_status pln_layout_set_int(pln_layout_call *call, const char *name,
                              int64_t value) {
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = value};
  return pln_relay_set(call->engine, call->op, call->attrs, name, entry,
                       &call->attrs);
}

pln_status pln_layout_ints(pln_layout_call *call, const char *name,
                           const int64_t **ints, uint32_t *n) {
  pln_attr value;
  PLN_TRY(pln_relay_get(call->engine, call->op, call->attrs, name, &value));
  *ints = value.kind == PLN_ATTR_INTS ? value.v.ints : NULL;
  *n = *ints ? value.count : 0;
  return PLN_OK;
}

pln_status pln_layout_set_ints(pln_layout_call *call, const char *name,
                               uint32_t n, const int64_t *ints) {
  pln_attr entry = {.kind = PLN_ATTR_INTS, .count = n, .v.ints = ints};
  return pln_relay_set(call->engine, call->op, call->attrs, name, entry,
                       &call->attrs);
}

/* ----------------------------------------------------- operands and results */

void pln_layout_set_results(pln_layout_call *call, pln_tensor_layout layout) {
  for (uint32_t i = 0; i < call->n_results; i++)
    call->out[i] = layout;
}

pln_status pln_layout_named(pln_layout_call *call, const char *text,
                            pln_tensor_layout *out) {
  return pln_tensor_layout_read(call->table, pln_text(text), out);
}

pln_status pln_layout_channels(pln_layout_call *call, uint32_t first) {
  pln_tensor_layout channels;
  PLN_TRY(pln_layout_named(call, "C", &channels));
  for (uint32_t i = first; i < call->n; i++)
    call->in[i] = channels;
  return PLN_OK;
}

int32_t pln_layout_arg_rank(const pln_layout_call *call, uint32_t i) {
  if (i >= call->n ||
      pln_type_get_kind(call->engine, call->types[i]) != PLN_TYPE_TENSOR)
    return -1;
  return pln_type_rank(call->engine, call->types[i]);
}

int64_t pln_layout_normal_axis(const pln_layout_call *call, int64_t axis) {
  int64_t rank = pln_layout_arg_rank(call, 0);
  axis += axis < 0 && rank > 0 ? rank : 0;
  return axis >= 0 && axis < rank ? axis : -1;
}
