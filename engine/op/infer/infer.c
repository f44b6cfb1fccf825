/* infer.c: reads operands and attributes of a call, reports its errors, sets
 * its results. Called by all inference functions. Shape arithmetic is in
 * shape.c, symbolic values are in symbolic_value.c. */

#include "op/infer/infer.h"

#include <stdio.h>

/* ---------------------------------------------------------------- operands */

bool pln_arg_absent(const pln_infer *call, uint32_t i) {
  if (i >= call->n_args || call->fields)
    return i >= call->n_args || (call->tensors && !call->tensors[i]);
  return call->graph->nodes[call->args[i]].kind == PLN_ABSENT;
}

pln_type pln_arg_type(const pln_infer *call, uint32_t i) {
  if (call->fields)
    return i < call->n_args ? call->fields[i] : 0;
  return pln_arg_absent(call, i) ? 0 : call->graph->nodes[call->args[i]].type;
}

pln_dtype pln_arg_dtype(const pln_infer *call, uint32_t i) {
  return pln_type_dtype(call->engine, pln_arg_type(call, i));
}

int32_t pln_arg_rank(const pln_infer *call, uint32_t i) {
  int32_t rank = pln_type_rank(call->engine, pln_arg_type(call, i));
  return rank > PLN_MAX_RANK ? -1 : rank;
}

const pln_dim *pln_arg_dims(const pln_infer *call, uint32_t i) {
  return pln_type_dims(call->engine, pln_arg_type(call, i));
}

void pln_arg_shape(const pln_infer *call, uint32_t i, pln_shape *out) {
  out->rank = pln_arg_rank(call, i);
  if (out->rank > 0)
    memcpy(out->dims, pln_arg_dims(call, i),
           (size_t)out->rank * sizeof *out->dims);
}

const pln_tensor *pln_arg_tensor(const pln_infer *call, uint32_t i) {
  const pln_tensor *tensor = NULL;
  if (i >= call->n_args)
    return NULL;
  if (call->tensors)
    tensor = call->tensors[i];
  else if (!call->fields) {
    const pln_node *n = &call->graph->nodes[call->args[i]];
    tensor = n->kind == PLN_CONSTANT ? call->graph->tensors[n->data] : NULL;
  }
  return tensor && !tensor->external ? tensor : NULL;
}

pln_value pln_arg_any_value(const pln_infer *call, uint32_t i) {
  return i < call->n_args && !call->fields ? call->graph->values[call->args[i]]
                                           : 0;
}

pln_value pln_arg_value(const pln_infer *call, uint32_t i) {
  pln_value value = pln_arg_any_value(call, i);
  return pln_value_rank(call->engine, value) > 1 ? 0 : value;
}

/* ------------------------------------------------------------------- tuples */

/* The fields of a tuple that was not built in this graph. */
static pln_status infer_fields(pln_infer *call, pln_infer_fn infer) {
  pln_engine *e = call->engine;
  pln_type tuple = pln_arg_type(call, 0);
  uint32_t n = pln_type_n_parts(e, tuple);
  pln_infer inner = *call;
  pln_type *fields = pln_mem_new(e, (n + 1u) * sizeof *fields);
  if (!fields)
    return pln_nomem(e);
  for (uint32_t i = 0; i < n; i++)
    fields[i] = pln_type_part_at(e, tuple, i);
  inner.fields = fields;
  inner.n_args = n;
  inner.operands = NULL;
  pln_status status = infer(&inner);
  call->value = inner.value;
  pln_mem_free(e, fields, (n + 1u) * sizeof *fields);
  return status;
}

pln_status pln_infer_spread(pln_infer *call, pln_infer_fn infer) {
  pln_type type = pln_arg_type(call, 0);
  if (call->n_args != 1 || call->fields)
    return infer(call);
  const pln_node *n = &call->graph->nodes[call->args[0]];
  if (n->kind == PLN_TUPLE) {
    pln_infer inner = *call;
    inner.args = pln_operands(call->graph, n);
    inner.n_args = n->count;
    inner.operands = NULL; /* they belong to the tuple */
    pln_status status = infer(&inner);
    call->value = inner.value;
    return status;
  }
  if (pln_type_get_kind(call->engine, type) == PLN_TYPE_TUPLE)
    return infer_fields(call, infer);
  return type == 0 ? PLN_OK : infer(call);
}

/* ------------------------------------------------------------------- lists */

static bool is_shape_value_dtype(pln_dtype dtype) {
  return dtype == PLN_INT64 || dtype == PLN_INT32 || dtype == PLN_BOOL ||
         dtype == PLN_UINT8 || dtype == PLN_INT8 || dtype == PLN_UINT16 ||
         dtype == PLN_INT16 || dtype == PLN_UINT32;
}

static pln_list list_of_type(const pln_infer *call, uint32_t arg) {
  pln_list list = {.given = true};
  int32_t rank = pln_arg_rank(call, arg);
  pln_dim n = rank == 1 ? pln_arg_dims(call, arg)[0] : rank == 0 ? 1 : -1;
  if (!PLN_DIM_IS_CONST(n) || n < 0 || n > UINT32_MAX)
    return list;
  list.sized = true;
  list.count = (uint32_t)n;
  return list;
}

static pln_list list_of_arg(const pln_infer *call, uint32_t arg) {
  const pln_tensor *t = pln_arg_tensor(call, arg);
  if (t && t->rank <= 1 && t->count <= UINT32_MAX &&
      is_shape_value_dtype((pln_dtype)t->dtype))
    return (pln_list){
        .given = true, .sized = true, .count = (uint32_t)t->count, .tensor = t};
  pln_value value = pln_arg_value(call, arg);
  if (value)
    return (pln_list){.given = true,
                      .sized = true,
                      .count = pln_value_count(call->engine, value),
                      .dims = pln_value_elements(call->engine, value)};
  return list_of_type(call, arg);
}

pln_list pln_list_of_attr(pln_engine *engine, pln_attrs attrs,
                          const char *attr) {
  const pln_attr *a = attr ? pln_attrs_find(engine, attrs, attr) : NULL;
  if (a && a->kind == PLN_ATTR_INTS)
    return (pln_list){
        .given = true, .sized = true, .count = a->count, .ints = a->v.ints};
  if (a && a->kind == PLN_ATTR_INT)
    return (pln_list){
        .given = true, .sized = true, .count = 1, .ints = &a->v.i};
  return (pln_list){.sized = true};
}

pln_list pln_arg_list(const pln_infer *call, uint32_t arg, const char *attr) {
  if (arg != PLN_NONE && !pln_arg_absent(call, arg))
    return list_of_arg(call, arg);
  return pln_list_of_attr(call->engine, call->attrs, attr);
}

pln_dim pln_list_at(const pln_list *list, uint32_t i) {
  int64_t element;
  if (list->dims)
    return list->dims[i];
  if (list->ints)
    element = list->ints[i];
  else if (!list->tensor || !pln_tensor_int(list->tensor, i, &element))
    return PLN_DIM_UNKNOWN;
  if (!PLN_DIM_IS_CONST(element))
    element = INT64_MIN + (int64_t)UINT32_MAX + 1;
  return element;
}

bool pln_list_known(const pln_list *list) {
  if (!list->sized)
    return false;
  if (list->ints || list->tensor || list->count == 0)
    return true;
  for (uint32_t i = 0; i < list->count; i++)
    if (!list->dims || !PLN_DIM_IS_CONST(list->dims[i]))
      return false;
  return true;
}

/* -------------------------------------------------------------- attributes */

int64_t pln_call_int(const pln_infer *call, const char *name,
                     int64_t fallback) {
  return pln_attrs_int(call->engine, call->attrs, name, fallback);
}

const int64_t *pln_call_ints(const pln_infer *call, const char *name,
                             uint32_t *count) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  *count = 0;
  if (!a || a->kind != PLN_ATTR_INTS)
    return NULL;
  *count = a->count;
  return a->v.ints;
}

bool pln_call_has(const pln_infer *call, const char *name) {
  return pln_attrs_find(call->engine, call->attrs, name) != NULL;
}

pln_dtype pln_call_dtype(const pln_infer *call, const char *name,
                         pln_dtype fallback) {
  pln_slice s = pln_attrs_string(call->engine, call->attrs, name, "");
  return s.size ? pln_dtype_find(s) : fallback;
}

bool pln_call_string_is(const pln_infer *call, const char *name,
                        const char *fallback, const char *text) {
  pln_slice s = pln_attrs_string(call->engine, call->attrs, name, fallback);
  return pln_slice_is(s, text);
}

/* ------------------------------------------------------------------ errors */

pln_status pln_call_error(const pln_infer *call, const char *format, ...) {
  char text[200];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return pln_diag_error(call->engine, PLN_ERR_TYPE, NULL, "'%s': %s",
                        pln_op_row(call->engine, call->op)->name, text);
}

pln_status pln_arg_expect_rank(const pln_infer *call, uint32_t i,
                               int32_t rank) {
  int32_t got = pln_arg_rank(call, i);
  if (got < 0 || got == rank)
    return PLN_OK;
  return pln_arg_error(call, i, "expected rank %d, got %d", rank, got);
}

pln_status pln_arg_expect_rank_within(const pln_infer *call, uint32_t i,
                                      int32_t least, int32_t most) {
  int32_t got = pln_arg_rank(call, i);
  if (got < 0 || (got >= least && got <= most))
    return PLN_OK;
  if (got < least)
    return pln_arg_error(call, i, "expected rank %d or more, got %d", least,
                         got);
  return pln_arg_error(call, i, "expected rank %d or less, got %d", most, got);
}

pln_status pln_args_one_dtype(const pln_infer *call, uint32_t first,
                              uint32_t end, pln_dtype *out) {
  pln_dtype all = PLN_DTYPE_NONE;
  for (uint32_t i = first; i < end && i < call->n_args; i++) {
    pln_dtype dtype = pln_arg_dtype(call, i);
    if (dtype && all && dtype != all)
      return pln_arg_error(call, i, "expected %s, got %s", pln_dtype_name(all),
                           pln_dtype_name(dtype));
    if (dtype)
      all = dtype;
  }
  *out = all;
  return PLN_OK;
}

pln_status pln_args_channels(const pln_infer *call, uint32_t first,
                             uint32_t end, int64_t axis) {
  int32_t rank = pln_arg_rank(call, 0), at = 0;
  if (rank < 1)
    return PLN_OK;
  PLN_TRY(pln_call_axis(call, axis, rank, &at));
  for (uint32_t i = first; i < end; i++) {
    pln_dim channels = pln_arg_dims(call, 0)[at];
    if (pln_arg_rank(call, i) == 1 && PLN_DIM_IS_CONST(channels))
      PLN_TRY(pln_infer_same_dim(call, i, &channels, pln_arg_dims(call, i)[0]));
  }
  return PLN_OK;
}

pln_status pln_call_axis(const pln_infer *call, int64_t axis, int32_t rank,
                         int32_t *out) {
  if (axis < -(int64_t)rank || axis >= rank)
    return pln_call_error(call, "axis %lld is outside of [%d, %d)",
                          (long long)axis, -rank, rank);
  *out = (int32_t)(axis < 0 ? axis + rank : axis);
  return PLN_OK;
}

/* ----------------------------------------------------------------- results */

uint32_t pln_call_n_results(const pln_infer *call) {
  return call->n_results ? call->n_results : 1;
}

pln_status pln_result_tensor(pln_infer *call, uint32_t i, pln_dtype dtype,
                             const pln_shape *shape) {
  if (i >= pln_call_n_results(call))
    return PLN_OK;
  return pln_type_tensor(call->engine, dtype, shape->rank, shape->dims,
                         &call->results[i]);
}

pln_status pln_set_operand_type(pln_infer *call, uint32_t i, pln_dtype dtype,
                                const pln_shape *shape) {
  if (!call->operands || i >= call->n_args || pln_arg_type(call, i))
    return PLN_OK;
  return pln_type_tensor(call->engine, dtype, shape->rank, shape->dims,
                         &call->operands[i]);
}

pln_status pln_set_operand_vector(pln_infer *call, uint32_t i, pln_dtype dtype,
                                  pln_dim extent) {
  pln_shape shape;
  pln_shape_ranked(&shape, 1);
  shape.dims[0] = extent;
  return pln_set_operand_type(call, i, dtype, &shape);
}

pln_status pln_set_operand_func(pln_infer *call, uint32_t i, uint32_t n,
                                const pln_type *parts) {
  pln_engine *e = call->engine;
  pln_type f = pln_arg_type(call, i), few[8], *types = few;
  if (!call->operands || pln_type_get_kind(e, f) != PLN_TYPE_FUNC ||
      pln_type_n_parts(e, f) != n + 1)
    return PLN_OK;
  size_t size = (n + 1) * sizeof *types;
  if (size > sizeof few && !(types = pln_mem_new(e, size)))
    return pln_nomem(e);
  for (uint32_t k = 0; k <= n; k++)
    types[k] = pln_type_part_at(e, f, k) ? 0 : parts[k];
  pln_status status =
      pln_type_make(e, PLN_TYPE_FUNC, 0, n + 1, types, &call->operands[i]);
  if (types != few)
    pln_mem_free(e, types, size);
  return status;
}

pln_status pln_set_operand_channels(pln_infer *call, uint32_t first,
                                    uint32_t end, int64_t axis) {
  int32_t rank = pln_arg_rank(call, 0), at = 0;
  if (rank < 1 || !call->operands)
    return PLN_OK;
  PLN_TRY(pln_call_axis(call, axis, rank, &at));
  for (uint32_t i = first; i < end; i++)
    PLN_TRY(pln_set_operand_vector(call, i, pln_arg_dtype(call, 0),
                                   pln_arg_dims(call, 0)[at]));
  return PLN_OK;
}

pln_status pln_result_scalar(pln_infer *call, uint32_t i, pln_dtype dtype) {
  if (i >= pln_call_n_results(call))
    return PLN_OK;
  return pln_type_tensor(call->engine, dtype, 0, NULL, &call->results[i]);
}

/* The symbolic value of the operand is also that of the result. */
void pln_result_like(pln_infer *call, uint32_t i, uint32_t arg) {
  if (i >= pln_call_n_results(call))
    return;
  pln_type type = pln_arg_type(call, arg);
  if (call->operands && i == 0 && arg < call->n_args && !type)
    call->operands[arg] = call->results[0];
  call->results[i] = type;
}

pln_status pln_result_shaped_like(pln_infer *call, uint32_t i, uint32_t arg,
                                  pln_dtype dtype) {
  if (i >= pln_call_n_results(call))
    return PLN_OK;
  pln_type type = pln_arg_type(call, arg);
  return pln_type_tensor(call->engine, dtype, pln_type_rank(call->engine, type),
                         pln_type_dims(call->engine, type), &call->results[i]);
}
