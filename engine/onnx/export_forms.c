/* export_forms.c: attributes of the core that ONNX has as inputs, by forms.def.
 *
 * Called for nodes that passes or scripts made; what a file gave keeps its
 * form. The value becomes a Constant node in front of the node. */

#include "onnx/export.h"

typedef struct form {
  pln_op op;
  const char *attribute;
  uint32_t input;
  int32_t since;
} form;

static const form forms[] = {
#define FORM(CORE, attribute, input, since) \
  {PLN_OP_##CORE, attribute, input, since},
#include "onnx/forms.def"
};

bool pln_export_is_input(const pln_export *ex, pln_op op, const char *name) {
  int64_t opset = pln_onnx_opset(ex->engine, ex->opsets, pln_text(""), 1);
  for (size_t i = 0; i < PLN_COUNT(forms); i++)
    if (forms[i].op == op && opset >= forms[i].since &&
        !strcmp(forms[i].attribute, name))
      return true;
  return false;
}

/* ------------------------------------------------------------------- values */

/* A scalar of the dtype of the node's first operand. */
static pln_status scalar(pln_export *ex, const pln_node *n, double value,
                         pln_tensor **out) {
  pln_ref x = n->count ? pln_operands(ex->g, n)[0] : PLN_NONE;
  pln_dtype dtype = x == PLN_NONE
                        ? PLN_DTYPE_NONE
                        : pln_type_dtype(ex->engine, ex->g->nodes[x].type);
  float f = (float)value;
  uint16_t half =
      dtype == PLN_BFLOAT16 ? pln_float_to_bfloat(f) : pln_float_to_half(f);
  if (dtype == PLN_FLOAT64)
    return pln_tensor_from(ex->engine, dtype, 0, NULL, &value, sizeof value,
                           out);
  if (dtype == PLN_FLOAT16 || dtype == PLN_BFLOAT16)
    return pln_tensor_from(ex->engine, dtype, 0, NULL, &half, sizeof half, out);
  if (dtype == PLN_FLOAT32)
    return pln_tensor_from(ex->engine, dtype, 0, NULL, &f, sizeof f, out);
  return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "a limit for elements of %s cannot be written",
                        pln_dtype_name(dtype));
}

static pln_status float_list(pln_export *ex, const pln_attr *a,
                             pln_tensor **out) {
  int64_t count = a->count;
  PLN_TRY(pln_tensor_new(ex->engine, PLN_FLOAT32, 1, &count, out));
  float *to = pln_tensor_writable(*out);
  for (uint32_t i = 0; i < a->count; i++)
    to[i] = (float)a->v.floats[i];
  return PLN_OK;
}

static pln_status value_of(pln_export *ex, const pln_node *n, const pln_attr *a,
                           pln_tensor **out) {
  int64_t count = a->count, one = 1;
  if (a->kind == PLN_ATTR_INTS)
    return pln_tensor_from(ex->engine, PLN_INT64, 1, &count, a->v.ints,
                           a->count * sizeof *a->v.ints, out);
  if (a->kind == PLN_ATTR_INT)
    return pln_tensor_from(ex->engine, PLN_INT64, 1, &one, &a->v.i,
                           sizeof a->v.i, out);
  if (a->kind == PLN_ATTR_FLOATS)
    return float_list(ex, a, out);
  if (a->kind == PLN_ATTR_FLOAT)
    return scalar(ex, n, a->v.f, out);
  return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                        "attribute '%s' is of a kind that no input can be",
                        pln_symbol_text(ex->engine, a->name).data);
}

/* ------------------------------------------------------------------- inputs */

/* Makes `name` input `index` of the node at hand. */
static pln_status set_input(pln_export *ex, uint32_t index, pln_slice name) {
  PLN_TRY(pln_mem_grow(ex->engine, (void **)&ex->inputs, &ex->cap_inputs,
                       (size_t)index + 1, sizeof *ex->inputs));
  while (ex->n_inputs <= index)
    ex->inputs[ex->n_inputs++] = (pln_slice){"", 0};
  if (ex->inputs[index].size)
    return pln_diag_error(ex->engine, PLN_ERR_UNSUPPORTED, NULL,
                          "input %u is given as attribute and as operand",
                          index + 1);
  ex->inputs[index] = name;
  return PLN_OK;
}

static pln_status add_input(pln_export *ex, pln_ref node, const form *f,
                            const pln_attr *a) {
  pln_tensor *tensor;
  pln_slice name;
  PLN_TRY(value_of(ex, &ex->g->nodes[node], a, &tensor));
  pln_status status =
      pln_export_new_name(ex, pln_text(f->attribute), node, &name);
  if (status == PLN_OK)
    status = pln_export_constant(ex, name, tensor);
  pln_tensor_release(tensor);
  return status == PLN_OK ? set_input(ex, f->input, name) : status;
}

pln_status pln_export_inputs(pln_export *ex, pln_ref node) {
  const pln_node *n = &ex->g->nodes[node];
  if (n->kind != PLN_CALL || !n->data)
    return PLN_OK;
  for (size_t i = 0; i < PLN_COUNT(forms); i++) {
    if (forms[i].op != n->data ||
        !pln_export_is_input(ex, n->data, forms[i].attribute))
      continue;
    const pln_attr *a =
        pln_attrs_find(ex->engine, n->attrs, forms[i].attribute);
    if (a)
      PLN_TRY(add_input(ex, node, &forms[i], a));
  }
  return PLN_OK;
}
