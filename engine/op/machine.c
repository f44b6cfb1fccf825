/* machine.c: the types of Relay's operators that programs get when they are
 * compiled (memory, virtual machine) and of its random operators, which hand
 * on a key. Called through ops.def. */

#include "op/infer.h"

/* Nothing: the empty tuple. */
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

pln_status pln_infer_alloc_tensor(pln_infer *call) {
  return of_list(call, 0, "assert_shape",
                 pln_call_dtype(call, "dtype", PLN_FLOAT32));
}

pln_status pln_infer_reshape_tensor(pln_infer *call) {
  return of_list(call, 0, "newshape", pln_arg_dtype(call, 0));
}

/* The shape, as vm.shape_of gives it. */
pln_status pln_infer_ndarray_shape(pln_infer *call) {
  int32_t rank = pln_arg_rank(call, 0);
  pln_shape out = {.rank = 1, .dims = {PLN_DIM_UNKNOWN}};
  if (rank >= 0)
    out.dims[0] = rank;
  return pln_result_tensor(call, 0, pln_call_dtype(call, "dtype", PLN_INT64),
                           &out);
}

/* --------------------------------------------------------- random operators:
 * a key and what is drawn with it */

static pln_status next_key(pln_infer *call, uint32_t result) {
  pln_shape key = {.rank = 1, .dims = {10}};
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

pln_status pln_infer_drawn(pln_infer *call) {
  PLN_TRY(next_key(call, 0));
  return of_list(call, 1, "out_shape",
                 pln_call_dtype(call, "out_dtype", PLN_FLOAT32));
}
