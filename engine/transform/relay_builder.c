/* relay_builder.c: builds calls of operators in Relay's form inside a rewrite.
 *
 * Called by passes that replace a node by an expression of TVM's: it converts
 * the attributes (ir/relay/attr_conversion.c) and keeps the first failure. */

#include "transform/relay_builder.h"

#include <stdarg.h>

#include "op/infer/infer.h"

enum { MAX_OPERANDS = 8, MAX_ATTRS = 16 };

pln_status pln_relay_begin(pln_relay_builder *r, pln_rewrite *rw) {
  pln_builder *b = pln_rewrite_builder(rw);
  if (!b)
    return PLN_ERR_NOMEM;
  *r = (pln_relay_builder){.engine = b->engine, .rw = rw, .b = b};
  return PLN_OK;
}

/* True if an operand could not be built, or the builder failed before. */
static bool has_failed(const pln_relay_builder *r, uint32_t n,
                       const pln_ref *args) {
  for (uint32_t i = 0; i < n; i++)
    if (args[i] == PLN_NONE)
      return true;
  return r->status != PLN_OK;
}

/* Keeps a failure. The diagnostics of a refused call are dropped. */
static pln_ref keep_failure(pln_relay_builder *r, pln_status status,
                            size_t mark, pln_ref out) {
  if (status == PLN_OK)
    return out;
  if (status == PLN_ERR_TYPE)
    pln_diag_drop(r->engine, mark);
  r->status = status;
  return PLN_NONE;
}

pln_ref pln_relay_call_core(pln_relay_builder *r, pln_op op, pln_attrs attrs,
                            uint32_t n, const pln_ref *args) {
  size_t mark = pln_diag_count(r->engine);
  uint32_t n_results = pln_op_n_results(r->engine, op, attrs);
  pln_ref out = PLN_NONE;
  if (has_failed(r, n, args))
    return PLN_NONE;
  pln_status status = pln_build_call(r->b, op, attrs, n_results, n, args, &out);
  return keep_failure(r, status, mark, out);
}

static pln_status read_attrs(pln_relay_builder *r, pln_op op, uint32_t n,
                             const pln_relay_attr *attrs, pln_attrs *out) {
  pln_attr entries[MAX_ATTRS];
  pln_attrs relay;
  if (n > MAX_ATTRS)
    return pln_diag_error(r->engine, PLN_ERR_LIMIT, NULL,
                          "'%s': more than %d attributes",
                          pln_op_row(r->engine, op)->name, MAX_ATTRS);
  for (uint32_t i = 0; i < n; i++) {
    entries[i] = attrs[i].value;
    PLN_TRY(pln_symbol_intern(r->engine, pln_text(attrs[i].name),
                              &entries[i].name));
  }
  PLN_TRY(pln_attrs_make(r->engine, n, entries, &relay));
  return pln_relay_read(r->engine, pln_relay_of(r->engine, op), relay, out);
}

pln_ref pln_relay_call_with(pln_relay_builder *r, pln_op op, uint32_t n_attrs,
                            const pln_relay_attr *attrs, uint32_t n,
                            const pln_ref *args) {
  size_t mark = pln_diag_count(r->engine);
  pln_attrs core;
  if (has_failed(r, n, args))
    return PLN_NONE;
  pln_status status = read_attrs(r, op, n_attrs, attrs, &core);
  if (status != PLN_OK)
    return keep_failure(r, status, mark, PLN_NONE);
  return pln_relay_call_core(r, op, core, n, args);
}

pln_ref pln_relay_call(pln_relay_builder *r, pln_op op, uint32_t n, ...) {
  pln_ref args[MAX_OPERANDS];
  va_list list;
  va_start(list, n);
  for (uint32_t i = 0; i < n && i < MAX_OPERANDS; i++)
    args[i] = va_arg(list, pln_ref);
  va_end(list);
  return pln_relay_call_with(r, op, 0, NULL, n, args);
}

/* ONNX has a list of the new axes. */
static pln_ref expand_dims_for_onnx(pln_relay_builder *r, pln_ref vector,
                                    int32_t count) {
  int64_t axes[PLN_MAX_RANK];
  pln_attr list = {
      .kind = PLN_ATTR_INTS, .count = (uint32_t)count, .v.ints = axes};
  pln_attrs attrs = 0;
  for (int32_t i = 0; i < count; i++)
    axes[i] = i + 1;
  if (r->status == PLN_OK)
    r->status = pln_symbol_intern(r->engine, pln_text("axes"), &list.name);
  if (r->status == PLN_OK)
    r->status = pln_attrs_make(r->engine, 1, &list, &attrs);
  return pln_relay_call_core(r, PLN_OP_UNSQUEEZE, attrs, 1, &vector);
}

pln_ref pln_relay_along_axis(pln_relay_builder *r, pln_ref vector, int32_t rank,
                             int32_t axis) {
  int32_t count = rank - axis - 1;
  pln_relay_attr attrs[] = {pln_relay_int("axis", 1),
                            pln_relay_int("num_newaxis", count)};
  if (count <= 0)
    return vector;
  if (pln_function_is_onnx(pln_rewrite_old(r->rw)))
    return expand_dims_for_onnx(r, vector, count);
  return pln_relay_call_with(r, PLN_OP_UNSQUEEZE, 2, attrs, 1, &vector);
}

pln_ref pln_relay_tuple(pln_relay_builder *r, uint32_t n,
                        const pln_ref *fields) {
  pln_ref out = PLN_NONE;
  if (!has_failed(r, n, fields))
    r->status = pln_build_tuple(r->b, n, fields, &out);
  return r->status == PLN_OK ? out : PLN_NONE;
}

pln_ref pln_relay_field(pln_relay_builder *r, pln_ref tuple, uint32_t index) {
  pln_ref out = PLN_NONE;
  if (!has_failed(r, 1, &tuple))
    r->status = pln_build_tuple_get_item(r->b, tuple, index, &out);
  return r->status == PLN_OK ? out : PLN_NONE;
}

pln_ref pln_relay_scalar(pln_relay_builder *r, pln_dtype dtype, double value) {
  pln_tensor *tensor;
  pln_ref out = PLN_NONE;
  if (r->status != PLN_OK)
    return PLN_NONE;
  r->status = pln_tensor_full(r->engine, dtype, 0, NULL, value, &tensor);
  if (r->status != PLN_OK)
    return PLN_NONE;
  if (!tensor) {
    r->status = PLN_ERR_TYPE;
    return PLN_NONE;
  }
  r->status = pln_build_constant(r->b, tensor, &out);
  pln_tensor_release(tensor);
  return r->status == PLN_OK ? out : PLN_NONE;
}

pln_status pln_relay_finish(pln_relay_builder *r, const char *rule,
                            pln_ref result, pln_ref *node) {
  pln_type type = r->b->graph->nodes[*node].type;
  bool allowed;
  if (r->status == PLN_ERR_TYPE || (r->status == PLN_OK && result == PLN_NONE))
    return PLN_OK;
  PLN_TRY(r->status);
  PLN_TRY(pln_rewrite_apply(r->rw, rule, &allowed));
  if (!allowed)
    return PLN_OK;
  *node = result;
  return pln_keep_type(r->rw, result, type);
}

pln_status pln_relay_status(const pln_relay_builder *r) {
  if (r->status != PLN_ERR_TYPE)
    return r->status;
  return pln_diag_error(r->engine, PLN_ERR_TYPE, NULL,
                        "a call of the replacement is ill-typed");
}
