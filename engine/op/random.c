/* random.c: the types of random values. Called through ops.def. There are no
 * kernels: their values are nobody's to fold. */

#include "op/infer.h"

static pln_dtype dtype_attr(const pln_infer *call, const char *name,
                            pln_dtype fallback) {
  int64_t dtype = pln_call_int(call, name, fallback);
  return dtype > 0 && dtype < PLN_N_DTYPES ? (pln_dtype)dtype : fallback;
}

pln_status pln_infer_random(pln_infer *call) {
  pln_list list = pln_arg_list(call, PLN_NONE, "shape");
  pln_shape shape;
  pln_shape_ranked(&shape, list.given ? (int64_t)list.count : -1);
  for (int32_t i = 0; i < shape.rank; i++)
    shape.dims[i] = pln_list_at(&list, (uint32_t)i);
  return pln_result_tensor(call, 0, dtype_attr(call, "dtype", PLN_FLOAT32),
                           &shape);
}

pln_status pln_infer_random_like(pln_infer *call) {
  pln_dtype dtype = dtype_attr(call, "dtype", pln_arg_dtype(call, 0));
  return pln_result_shaped_like(call, 0, 0, dtype);
}

pln_status pln_infer_multinomial(pln_infer *call) {
  pln_shape x, out;
  PLN_TRY(pln_arg_expect_rank(call, 0, 2));
  pln_arg_shape(call, 0, &x);
  pln_shape_ranked(&out, 2);
  if (x.rank == 2)
    out.dims[0] = x.dims[0];
  int64_t size = pln_call_int(call, "sample_size", 1);
  if (PLN_DIM_IS_CONST(size))
    out.dims[1] = size;
  return pln_result_tensor(call, 0, dtype_attr(call, "dtype", PLN_INT32), &out);
}
