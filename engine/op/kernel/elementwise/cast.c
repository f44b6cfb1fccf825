/* cast.c: cast, cast_like and bit_cast. Called through ops.def. Conversion
 * itself is in convert.c. */

#include "op/kernel/elementwise/convert.h"

/* ---------------------------------------------------------------- inference */

static pln_status read_to(const pln_infer *call, pln_dtype *out) {
  int64_t to = pln_call_int(call, "to", 0);
  if (to <= 0 || to >= PLN_N_DTYPES)
    return to ? pln_call_error(call, "dtype %lld is unknown", (long long)to)
              : pln_call_error(call, "dtype is missing");
  *out = (pln_dtype)to;
  return PLN_OK;
}

/* The symbolic value of an integer cast to an integer dtype, or to bool. */
static pln_status cast_value(pln_infer *call, pln_dtype to) {
  pln_value value = pln_arg_any_value(call, 0);
  if (!value)
    return PLN_OK;
  uint32_t n = pln_value_count(call->engine, value);
  const pln_dim *from = pln_value_elements(call->engine, value);
  pln_dim elements[PLN_VALUE_MAX];
  if (n > PLN_VALUE_MAX)
    return PLN_OK;
  for (uint32_t i = 0; i < n; i++)
    if (to != PLN_BOOL)
      elements[i] = from[i];
    else if (PLN_DIM_IS_CONST(from[i]))
      elements[i] = from[i] != 0;
    else
      elements[i] = PLN_DIM_UNKNOWN;
  return pln_infer_set_value(call, pln_value_rank(call->engine, value), n,
                             elements);
}

pln_status pln_infer_cast(pln_infer *call) {
  pln_dtype to = PLN_DTYPE_NONE;
  PLN_TRY(read_to(call, &to));
  PLN_TRY(pln_result_shaped_like(call, 0, 0, to));
  return cast_value(call, to);
}

pln_status pln_infer_cast_like(pln_infer *call) {
  pln_dtype to = pln_arg_dtype(call, 1);
  PLN_TRY(pln_result_shaped_like(call, 0, 0, to));
  return cast_value(call, to);
}

pln_status pln_infer_bit_cast(pln_infer *call) {
  pln_dtype to = PLN_DTYPE_NONE, from = pln_arg_dtype(call, 0);
  PLN_TRY(read_to(call, &to));
  if (from && pln_dtype_bits(from) != pln_dtype_bits(to))
    return pln_call_error(call, "%s and %s differ in size",
                          pln_dtype_name(from), pln_dtype_name(to));
  return pln_result_shaped_like(call, 0, 0, to);
}

/* ------------------------------------------------------------------ kernels */

static pln_e8m0_round read_rounding(const pln_kernel_call *call) {
  if (pln_kernel_string_is(call, "round_mode", "up", "down"))
    return PLN_E8M0_DOWN;
  if (pln_kernel_string_is(call, "round_mode", "up", "nearest"))
    return PLN_E8M0_NEAREST;
  return PLN_E8M0_UP;
}

static pln_status refuse_cast(const pln_kernel_call *call, pln_converted why,
                              pln_dtype to) {
  const char *name = pln_dtype_name(to);
  if (why == PLN_CONVERT_NAN)
    return pln_kernel_refuse(call, "NaN is no %s", name);
  if (why == PLN_CONVERT_NEGATIVE)
    return pln_kernel_refuse(call, "a negative number is no %s", name);
  return pln_kernel_refuse(call, "a number is outside of %s", name);
}

static pln_status cast_to(pln_kernel_call *call, pln_dtype to) {
  const pln_tensor *x = call->args[0];
  pln_conversion c = {.engine = call->engine,
                      .from = (pln_dtype)x->dtype,
                      .to = to,
                      .folding = call->folding,
                      .saturate = pln_kernel_int(call, "saturate", 1) != 0,
                      .rounding = read_rounding(call)};
  void *data;
  if (c.from == to) {
    pln_kernel_same(call, 0, x);
    return PLN_OK;
  }
  if (!pln_convertible(c.from) || !pln_convertible(to))
    return pln_kernel_no_dtype(call, pln_convertible(to) ? c.from : to);
  PLN_TRY(pln_kernel_unset(call, 0, to, x->rank, x->dims, &data));
  pln_converted done = pln_convert(&c, x->data, x->count, data);
  return done == PLN_CONVERTED ? PLN_OK : refuse_cast(call, done, to);
}

pln_status pln_kernel_cast(pln_kernel_call *call) {
  int64_t to = pln_kernel_int(call, "to", 0);
  if (to <= 0 || to >= PLN_N_DTYPES)
    return pln_kernel_refuse(call, "dtype %lld is unknown", (long long)to);
  return cast_to(call, (pln_dtype)to);
}

pln_status pln_kernel_cast_like(pln_kernel_call *call) {
  return cast_to(call, (pln_dtype)call->args[1]->dtype);
}

pln_status pln_kernel_bit_cast(pln_kernel_call *call) {
  const pln_tensor *x = call->args[0];
  int64_t to = pln_kernel_int(call, "to", 0);
  if (to <= 0 || to >= PLN_N_DTYPES || to == PLN_STRING ||
      x->dtype == PLN_STRING ||
      pln_dtype_bits((pln_dtype)to) != pln_dtype_bits((pln_dtype)x->dtype))
    return pln_kernel_refuse(call, "the dtypes differ in size");
  return pln_tensor_from_bytes(call->engine, (pln_dtype)to, x->rank, x->dims,
                               x->data, x->bytes, call->results);
}
