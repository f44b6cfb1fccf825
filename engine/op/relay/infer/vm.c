/* vm.c: type inference of the operators that TVM's compiler adds (memory,
 * virtual machine), and of Relay's random operators, which return the next key.
 * Called through ops.def. */

#include "ir/tensor/tensor.h"
#include "op/infer/infer.h"

/* (function, arguments as a tuple): the function's result. */
pln_status pln_infer_call_lowered(pln_infer *call) {
  pln_engine *e = call->engine;
  pln_type type = pln_arg_type(call, 0);
  if (type && pln_type_get_kind(e, type) != PLN_TYPE_FUNC)
    return pln_arg_error(call, 0, "expected a function");
  if (type)
    call->results[0] = pln_type_part_at(e, type, pln_type_n_parts(e, type) - 1);
  return PLN_OK;
}

/* No result: the empty tuple. */
pln_status pln_infer_unit(pln_infer *call) {
  return pln_type_make(call->engine, PLN_TYPE_TUPLE, 0, 0, NULL,
                       &call->results[0]);
}

static pln_status of_list(pln_infer *call, uint32_t result, const char *name,
                          pln_dtype dtype) {
  pln_list list = pln_arg_list(call, PLN_NONE, name);
  pln_shape out;
  pln_shape_ranked(&out, list.given ? (int64_t)list.count : -1);
  for (int32_t i = 0; i < out.rank; i++)
    out.dims[i] = pln_list_at(&list, (uint32_t)i);
  return pln_result_tensor(call, result, dtype, &out);
}

/* The result has TVM's type Storage. */
pln_status pln_infer_alloc_storage(pln_infer *call) {
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(call->engine, pln_text("Storage"), &name));
  return pln_type_make(call->engine, PLN_TYPE_CALL, name, 0, NULL,
                       &call->results[0]);
}

/* Reads constant attribute `name` as extents; false if its elements are not
 * available. */
static bool read_extents(const pln_infer *call, const char *name,
                         pln_shape *out) {
  const pln_attr *a = pln_attrs_find(call->engine, call->attrs, name);
  const pln_tensor *t = a && a->kind == PLN_ATTR_TENSOR ? a->v.tensor : NULL;
  if (!t || t->external || t->rank > 1 || t->count > PLN_MAX_RANK)
    return false;
  pln_shape_ranked(out, (int64_t)t->count);
  for (uint32_t i = 0; i < t->count; i++) {
    int64_t extent;
    if (!pln_tensor_int(t, i, &extent) || extent < 0 ||
        !PLN_DIM_IS_CONST(extent))
      return false;
    out->dims[i] = extent;
  }
  return true;
}

pln_status pln_infer_alloc_tensor(pln_infer *call) {
  pln_dtype dtype = pln_call_dtype(call, "dtype", PLN_FLOAT32);
  pln_shape shape;
  if (read_extents(call, "const_shape", &shape))
    return pln_result_tensor(call, 0, dtype, &shape);
  return of_list(call, 0, "assert_shape", dtype);
}

pln_status pln_infer_reshape_tensor(pln_infer *call) {
  return of_list(call, 0, "newshape", pln_arg_dtype(call, 0));
}

/* The shape as vm.shape_of gives it; for a scalar it is a scalar, too. */
pln_status pln_infer_ndarray_shape(pln_infer *call) {
  int32_t rank = pln_arg_rank(call, 0);
  pln_shape out = {.rank = 1, .dims = {PLN_DIM_UNKNOWN}};
  if (rank >= 0)
    out.dims[0] = rank;
  if (rank == 0)
    out.rank = 0;
  PLN_TRY(pln_result_tensor(call, 0, pln_call_dtype(call, "dtype", PLN_INT64),
                            &out));
  return rank > 0 ? pln_infer_set_value(call, 1, (uint32_t)rank,
                                        pln_arg_dims(call, 0))
                  : PLN_OK;
}

/* --------------------------------------------------------- random operators:
 * a key and what is drawn with it */

/* A key is ten words. It has the type of operand 0. */
static pln_status next_key(pln_infer *call, uint32_t result) {
  pln_shape key = {.rank = 1, .dims = {10}};
  PLN_TRY(pln_set_operand_type(call, 0, PLN_UINT64, &key));
  return pln_result_tensor(call, result, PLN_UINT64, &key);
}

pln_status pln_infer_threefry(pln_infer *call) {
  PLN_TRY(next_key(call, 0));
  return of_list(call, 1, "out_shape", PLN_UINT64);
}

pln_status pln_infer_threefry_split(pln_infer *call) {
  PLN_TRY(next_key(call, 0));
  return next_key(call, 1);
}

/* (key, two scalar parameters of the distribution) */
pln_status pln_infer_sampled(pln_infer *call) {
  static const pln_shape scalar = {.rank = 0};
  pln_dtype dtype = pln_call_dtype(call, "out_dtype", PLN_FLOAT32);
  if (dtype != PLN_FLOAT32 && dtype != PLN_FLOAT64)
    return pln_call_error(call, "out_dtype is %s, expected float32 or float64",
                          pln_dtype_name(dtype));
  PLN_TRY(next_key(call, 0));
  for (uint32_t i = 1; i < 3; i++)
    PLN_TRY(pln_set_operand_type(call, i, dtype, &scalar));
  return of_list(call, 1, "out_shape", dtype);
}

/* (key, probabilities): samples along the last axis. */
pln_status pln_infer_sampled_classes(pln_infer *call) {
  int64_t samples = pln_call_int(call, "num_samples", 1);
  pln_shape x;
  if (samples < 0)
    return pln_call_error(call, "num_samples is %lld", (long long)samples);
  PLN_TRY(next_key(call, 0));
  PLN_TRY(pln_arg_expect_rank_within(call, 1, 1, INT32_MAX));
  pln_arg_shape(call, 1, &x);
  if (x.rank > 0)
    x.dims[x.rank - 1] = samples;
  return pln_result_tensor(call, 1, PLN_INT32, &x);
}
