/* shape_of.c: shape_of, size, constant, constant_of_shape, eye_like. Called
 * through ops.def. */

#include "op/kernel/composed.h"

/* ----------------------------------------------------------------- shape_of */

static int64_t clamp_rank_index(int64_t at, int64_t rank) {
  if (at < 0)
    at += rank;
  return at < 0 ? 0 : at > rank ? rank : at;
}

/* The dtype of a shape: int64 as in ONNX, unless the attribute gives another
 * one. Relay's default is int32. */
static pln_dtype shape_dtype(const pln_engine *engine, pln_attrs attrs,
                             pln_dtype other) {
  const pln_attr *a = pln_attrs_find(engine, attrs, "dtype");
  if (!a)
    return other;
  bool named = a->kind == PLN_ATTR_STRING && a->v.s.size > 0;
  return named ? pln_dtype_find(a->v.s) : PLN_INT32;
}

pln_status pln_infer_shape_of(pln_infer *call) {
  pln_dtype dtype = shape_dtype(call->engine, call->attrs, PLN_INT64);
  int32_t rank = pln_type_rank(call->engine, pln_arg_type(call, 0));
  pln_shape shape = {.rank = 1, .dims = {PLN_DIM_UNKNOWN}};
  if (rank < 0)
    return pln_result_tensor(call, 0, dtype, &shape);
  int64_t begin = clamp_rank_index(pln_call_int(call, "start", 0), rank);
  int64_t end = clamp_rank_index(pln_call_int(call, "end", rank), rank);
  shape.dims[0] = end > begin ? end - begin : 0;
  PLN_TRY(pln_result_tensor(call, 0, dtype, &shape));
  if (shape.dims[0] == 0)
    begin = 0;
  return pln_infer_set_value(call, 1, (uint32_t)shape.dims[0],
                             pln_arg_dims(call, 0) + begin);
}

/* Returns integers as a tensor of another dtype. */
static pln_status give_cast(pln_kernel_call *call, pln_dtype dtype,
                            uint32_t rank, int64_t n, const int64_t *ints) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = pln_compose_vector(&s, (uint32_t)n, ints);
  if (rank == 0)
    x = pln_compose_reshape(&s, x, 0, &n);
  return pln_composition_finish(&s, pln_compose_cast(&s, x, dtype));
}

/* Returns integers, a vector or a number. */
static pln_status give_ints(pln_kernel_call *call, pln_dtype dtype,
                            uint32_t rank, int64_t n, const int64_t *ints) {
  void *data;
  if (dtype != PLN_INT32 && dtype != PLN_INT64)
    return give_cast(call, dtype, rank, n, ints);
  PLN_TRY(pln_kernel_result(call, 0, dtype, rank, &n, &data));
  for (int64_t i = 0; i < n; i++)
    if (dtype == PLN_INT64)
      ((int64_t *)data)[i] = ints[i];
    else if (ints[i] > INT32_MAX)
      return pln_kernel_undefined(call);
    else
      ((int32_t *)data)[i] = (int32_t)ints[i];
  return PLN_OK;
}

/* Gives the scalar result the number of elements as its value. */
static pln_status infer_count(pln_infer *call, pln_dtype dtype) {
  PLN_TRY(pln_result_scalar(call, 0, dtype));
  int32_t rank = pln_type_rank(call->engine, pln_arg_type(call, 0));
  pln_dim n;
  if (rank < 0)
    return PLN_OK;
  PLN_TRY(pln_infer_product(call, pln_arg_dims(call, 0), 0, rank, &n));
  return pln_infer_set_value(call, 0, 1, &n);
}

pln_status pln_infer_ndarray_size(pln_infer *call) {
  return infer_count(call, shape_dtype(call->engine, call->attrs, PLN_INT32));
}

pln_status pln_kernel_ndarray_size(pln_kernel_call *call) {
  int64_t count = (int64_t)pln_kernel_arg(call, 0)->count;
  return give_ints(call, shape_dtype(call->engine, call->attrs, PLN_INT32), 0,
                   1, &count);
}

pln_status pln_kernel_shape_of(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  int64_t begin = clamp_rank_index(pln_kernel_int(call, "start", 0), x->rank);
  int64_t end = clamp_rank_index(pln_kernel_int(call, "end", x->rank), x->rank);
  int64_t n = end > begin ? end - begin : 0;
  pln_dtype dtype = shape_dtype(call->engine, call->attrs, PLN_INT64);
  return give_ints(call, dtype, 1, n, x->dims + (n ? begin : 0));
}

/* vm.shape_of; that of a scalar has a type without a value. */
pln_status pln_kernel_vm_shape_of(pln_kernel_call *call) {
  if (pln_kernel_arg(call, 0)->rank == 0)
    return pln_kernel_refuse(call, "a scalar has no extents");
  return pln_kernel_shape_of(call);
}

/* --------------------------------------------------------------------- size */

pln_status pln_infer_size(pln_infer *call) {
  return infer_count(call, PLN_INT64);
}

pln_status pln_kernel_size(pln_kernel_call *call) {
  int64_t n = (int64_t)pln_kernel_arg(call, 0)->count;
  void *data;
  PLN_TRY(pln_kernel_result(call, 0, PLN_INT64, 0, NULL, &data));
  memcpy(data, &n, sizeof n);
  return PLN_OK;
}

/* ----------------------------------------------------------------- constant */

/* An attribute that can hold the value of a constant, and the type that it
 * gives. */
typedef struct literal {
  const pln_attr *attr;
  pln_dtype dtype;
  uint32_t rank;
  int64_t count;
} literal;

static bool is_list(pln_attr_kind kind) {
  return kind == PLN_ATTR_INTS || kind == PLN_ATTR_FLOATS ||
         kind == PLN_ATTR_STRINGS;
}

static literal find_literal(const pln_engine *engine, pln_attrs attrs) {
  static const struct {
    const char *name;
    pln_dtype dtype;
    pln_attr_kind kind;
  } forms[] = {{"value_int", PLN_INT64, PLN_ATTR_INT},
               {"value_ints", PLN_INT64, PLN_ATTR_INTS},
               {"value_float", PLN_FLOAT32, PLN_ATTR_FLOAT},
               {"value_floats", PLN_FLOAT32, PLN_ATTR_FLOATS},
               {"value_string", PLN_STRING, PLN_ATTR_STRING},
               {"value_strings", PLN_STRING, PLN_ATTR_STRINGS}};
  for (size_t i = 0; i < PLN_COUNT(forms); i++) {
    const pln_attr *attr = pln_attrs_find(engine, attrs, forms[i].name);
    if (attr && attr->kind == forms[i].kind)
      return (literal){.attr = attr,
                       .dtype = forms[i].dtype,
                       .rank = is_list(forms[i].kind),
                       .count = is_list(forms[i].kind) ? attr->count : 1};
  }
  return (literal){.attr = NULL};
}

static const pln_tensor *tensor_attr(const pln_engine *engine, pln_attrs attrs,
                                     const char *name) {
  const pln_attr *attr = pln_attrs_find(engine, attrs, name);
  return attr && attr->kind == PLN_ATTR_TENSOR ? attr->v.tensor : NULL;
}

pln_status pln_infer_constant(pln_infer *call) {
  const pln_tensor *t = tensor_attr(call->engine, call->attrs, "value");
  if (t)
    return pln_type_tensor(call->engine, (pln_dtype)t->dtype, (int32_t)t->rank,
                           t->dims, call->results);
  literal l = find_literal(call->engine, call->attrs);
  if (!l.attr)
    return PLN_OK;
  PLN_TRY(pln_type_tensor(call->engine, l.dtype, (int32_t)l.rank, &l.count,
                          call->results));
  if (l.dtype != PLN_INT64 || l.count > PLN_VALUE_MAX)
    return PLN_OK;
  pln_list list =
      pln_arg_list(call, PLN_NONE, l.rank ? "value_ints" : "value_int");
  pln_dim elements[PLN_VALUE_MAX];
  for (uint32_t i = 0; i < list.count; i++)
    elements[i] = pln_list_at(&list, i);
  return pln_infer_set_value(call, l.rank, list.count, elements);
}

static pln_status floats(pln_kernel_call *call, const literal *l) {
  void *data;
  PLN_TRY(pln_kernel_result(call, 0, PLN_FLOAT32, l->rank, &l->count, &data));
  const double *from = l->rank ? l->attr->v.floats : &l->attr->v.f;
  for (int64_t i = 0; i < l->count; i++)
    ((float *)data)[i] = (float)from[i];
  return PLN_OK;
}

pln_status pln_kernel_constant(pln_kernel_call *call) {
  const pln_tensor *t = tensor_attr(call->engine, call->attrs, "value");
  if (t) {
    pln_kernel_same(call, 0, t);
    return PLN_OK;
  }
  literal l = find_literal(call->engine, call->attrs);
  if (!l.attr)
    return pln_kernel_refuse(call, "it has no value that is known here");
  if (l.dtype == PLN_FLOAT32)
    return floats(call, &l);
  const void *from = &l.attr->v;
  if (l.rank)
    from = l.dtype == PLN_INT64 ? (const void *)l.attr->v.ints
                                : (const void *)l.attr->v.strings;
  return pln_tensor_from_bytes(call->engine, l.dtype, l.rank, &l.count, from,
                               (size_t)l.count * pln_element_size(l.dtype),
                               call->results);
}

/* --------------------------------------------------------- constant_of_shape
 */

static pln_status fill_value(pln_infer *call, const pln_tensor *t,
                             const pln_shape *shape) {
  int64_t element = 0;
  pln_dim n = shape->rank == 1 ? shape->dims[0] : 1;
  if (shape->rank < 0 || shape->rank > 1 || !PLN_DIM_IS_CONST(n) || n < 0 ||
      n > PLN_VALUE_MAX)
    return PLN_OK;
  if (!t || !pln_tensor_int(t, 0, &element) || !PLN_DIM_IS_CONST(element))
    return PLN_OK;
  pln_dim elements[PLN_VALUE_MAX];
  for (pln_dim i = 0; i < n; i++)
    elements[i] = element;
  return pln_infer_set_value(call, (uint32_t)shape->rank, (uint32_t)n,
                             elements);
}

pln_status pln_infer_constant_of_shape(pln_infer *call) {
  const pln_tensor *t = tensor_attr(call->engine, call->attrs, "value");
  if (t && t->count != 1)
    return pln_call_error(call, "value must have one element, got %zu",
                          t->count);
  pln_list list = pln_arg_list(call, 0, NULL);
  pln_shape shape;
  pln_shape_ranked(&shape, list.sized ? (int64_t)list.count : -1);
  for (int32_t i = 0; i < shape.rank; i++) {
    shape.dims[i] = pln_list_at(&list, (uint32_t)i);
    if (PLN_DIM_IS_CONST(shape.dims[i]) && shape.dims[i] < 0)
      return pln_arg_error(call, 0, "extent %lld is negative",
                           (long long)shape.dims[i]);
  }
  PLN_TRY(pln_result_tensor(call, 0, t ? (pln_dtype)t->dtype : PLN_FLOAT32,
                            &shape));
  return fill_value(call, t, &shape);
}

pln_status pln_kernel_constant_of_shape(pln_kernel_call *call) {
  const pln_tensor *t = tensor_attr(call->engine, call->attrs, "value");
  pln_list list = pln_kernel_list(call, 0, NULL);
  int64_t dims[PLN_MAX_RANK];
  size_t count, bytes;
  pln_dtype dtype = t ? (pln_dtype)t->dtype : PLN_FLOAT32;
  if (!list.sized || list.count > PLN_MAX_RANK)
    return pln_kernel_refuse(call, "a result of too many axes");
  for (uint32_t i = 0; i < list.count; i++)
    dims[i] = pln_list_at(&list, i);
  if (pln_tensor_size(dtype, list.count, dims, &count, &bytes) != PLN_OK)
    return pln_kernel_refuse(call, "an extent is negative or too large");
  static const float zero = 0;
  const void *element = &zero;
  if (t)
    PLN_TRY(pln_tensor_data(t, &element));
  return pln_tensor_splat(call->engine, dtype, list.count, dims, element,
                          call->results);
}

/* ----------------------------------------------------------------- eye_like */

pln_status pln_infer_eye_like(pln_infer *call) {
  PLN_TRY(pln_arg_expect_rank(call, 0, 2));
  int64_t dtype = pln_call_int(call, "dtype", pln_arg_dtype(call, 0));
  if (dtype < 0 || dtype >= PLN_N_DTYPES)
    return pln_call_error(call, "dtype %lld is unknown", (long long)dtype);
  return pln_result_shaped_like(call, 0, 0, (pln_dtype)dtype);
}

/* Stores the number 1 in the dtype; false for dtypes without it. */
static bool store_one(pln_dtype dtype, uint64_t *bits) {
  static const float one32 = 1;
  static const double one64 = 1;
  *bits = 1;
  if (dtype == PLN_FLOAT32)
    memcpy(bits, &one32, sizeof one32);
  else if (dtype == PLN_FLOAT64)
    memcpy(bits, &one64, sizeof one64);
  else if (dtype == PLN_FLOAT16)
    *bits = pln_float_to_half(1);
  else if (dtype == PLN_BFLOAT16)
    *bits = pln_float_to_bfloat(1);
  else
    return dtype == PLN_BOOL || (dtype >= PLN_UINT8 && dtype <= PLN_INT64) ||
           dtype == PLN_UINT32 || dtype == PLN_UINT64;
  return true;
}

pln_status pln_kernel_eye_like(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_dtype dtype = (pln_dtype)pln_kernel_int(call, "dtype", x->dtype);
  int64_t k = pln_kernel_int(call, "k", 0);
  uint64_t one = 0;
  void *data;
  if (x->rank != 2)
    return pln_kernel_refuse(call, "a matrix is expected");
  if (!store_one(dtype, &one))
    return pln_kernel_no_dtype(call, dtype);
  size_t size = pln_element_size(dtype);
  PLN_TRY(pln_kernel_result(call, 0, dtype, x->rank, x->dims, &data));
  int64_t rows = x->dims[0], columns = x->dims[1];
  if (k >= columns || k <= -rows)
    return PLN_OK;
  for (int64_t i = k < 0 ? -k : 0; i < rows && i + k < columns; i++)
    memcpy((char *)data + (size_t)(i * columns + i + k) * size, &one, size);
  return PLN_OK;
}
