/* registered.c: maps nodes of custom domains to registered operators and back.
 * Called by import for each new pair of domain and type, by export for each
 * call of a registered operator, and for the list of ONNX's operators. */

#include "onnx/registered.h"

pln_op pln_onnx_registered(const pln_engine *engine, pln_slice domain,
                           pln_slice type, int64_t version) {
  pln_op found = 0;
  int32_t since = 0;
  uint32_t left = pln_ops_registered(engine);
  for (pln_op op = pln_op_count(engine); op > 0 && left > 0; op--) {
    const pln_operator_onnx *node = pln_onnx_registered_node(engine, op);
    left -= pln_op_registered(engine, op) != NULL;
    if (node && node->since_version > since && node->since_version <= version &&
        pln_slice_is(domain, node->domain) &&
        pln_slice_is(type, node->op_type)) {
      found = op;
      since = node->since_version;
    }
  }
  return found;
}

const pln_operator_onnx *pln_onnx_registered_node(const pln_engine *engine,
                                                  pln_op op) {
  const pln_operator_spec *spec = pln_op_registered(engine, op);
  return spec && spec->onnx.domain ? &spec->onnx : NULL;
}

pln_slice pln_onnx_registered_attr(const pln_operator_onnx *node,
                                   pln_slice onnx_name) {
  for (uint32_t i = 0; i < node->n_attrs; i++)
    if (pln_slice_is(onnx_name, node->attrs[i].onnx_name))
      return pln_text(node->attrs[i].name);
  return onnx_name;
}

static const char *onnx_name_of(const pln_operator_onnx *node,
                                const char *name) {
  for (uint32_t i = 0; i < node->n_attrs; i++)
    if (!strcmp(name, node->attrs[i].name))
      return node->attrs[i].onnx_name;
  return name;
}

pln_status pln_onnx_registered_attrs(pln_engine *engine, pln_op op,
                                     pln_attrs attrs, pln_attrs *out) {
  const pln_operator_onnx *node = pln_onnx_registered_node(engine, op);
  pln_attrs full;
  PLN_TRY(pln_registered_full(engine, pln_op_row(engine, op)->registered, attrs,
                              &full));
  *out = full;
  if (!node || node->n_attrs == 0)
    return PLN_OK;
  *out = 0;
  for (uint32_t i = 0; i < pln_attrs_count(engine, full); i++) {
    pln_attr entry = *pln_attrs_at(engine, full, i);
    const char *name = pln_symbol_text(engine, entry.name).data;
    PLN_TRY(pln_symbol_intern(engine, pln_text(onnx_name_of(node, name)),
                              &entry.name));
    PLN_TRY(pln_attrs_with(engine, *out, &entry, out));
  }
  return PLN_OK;
}

uint32_t pln_onnx_registered_operand(const pln_operator_spec *spec,
                                     uint32_t i) {
  if (i >= spec->onnx.n_inputs)
    return i;
  for (uint32_t k = 0; k < spec->n_args; k++)
    if (!strcmp(spec->args[k].name, spec->onnx.inputs[i]))
      return k;
  return i;
}
