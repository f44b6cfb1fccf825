/* dropout.c: nn.dropout: the identity in inference; in training, elements are
 * dropped at random and the others scaled, so that the mean stays. Called
 * through ops.def.
 *
 * Since opset 12 ONNX defines the mask as all true in inference; before, it was
 * undefined, and ONNX Runtime makes it false. Before opset 10 the mask had the
 * operand's dtype, as Relay's has. The attribute `mask` distinguishes them. */

#include "op/kernel/element.h"
#include "op/kernel/elementwise/convert.h"
#include "op/kernel/half_as_float.h"
#include "op/kernel/random/rng.h"

/* Values of the attribute `mask`. */
enum { ALL_FALSE = 0, ALL_TRUE = 1, RELAY = 2, ALL_ZERO = 3 };

pln_status pln_infer_dropout(pln_infer *call) {
  int64_t mask = pln_call_int(call, "mask", ALL_TRUE);
  bool number = mask == RELAY || mask == ALL_ZERO;
  pln_result_like(call, 0, 0);
  return pln_result_shaped_like(call, 1, 0,
                                number ? pln_arg_dtype(call, 0) : PLN_BOOL);
}

/* Returns true if the third operand asks for training. */
static bool trains(const pln_kernel_call *call) {
  const pln_tensor *training = pln_kernel_arg(call, 2);
  int64_t requested;
  return training && training->count == 1 &&
         pln_tensor_int(training, 0, &requested) && requested != 0;
}

static pln_status read_ratio(const pln_kernel_call *call, double *out) {
  const pln_tensor *ratio = pln_kernel_arg(call, 1);
  *out = pln_kernel_float(call, "ratio", 0.5);
  if (ratio) {
    pln_conversion c = {.from = (pln_dtype)ratio->dtype, .to = PLN_FLOAT64};
    if (ratio->count != 1 || !pln_convertible(c.from) ||
        pln_convert(&c, ratio->data, 1, out) != PLN_CONVERTED)
      return pln_kernel_refuse(call, "the ratio is not a number");
  }
  if (!(*out >= 0 && *out < 1))
    return pln_kernel_refuse(call, "ratio %g is outside of [0, 1)", *out);
  return PLN_OK;
}

/* A mask of the operand's dtype: Relay's is 1 where the element is kept. */
static pln_status number_mask(pln_kernel_call *call, const pln_tensor *x,
                              double number) {
  uint64_t element = 0;
  pln_conversion c = {.from = PLN_FLOAT64, .to = (pln_dtype)x->dtype};
  if (c.to == PLN_STRING || !pln_convertible(c.to) ||
      pln_convert(&c, &number, 1, &element) != PLN_CONVERTED)
    return pln_kernel_no_dtype(call, c.to);
  return pln_tensor_splat(call->engine, c.to, x->rank, x->dims, &element,
                          &call->results[1]);
}

static pln_status bool_mask(pln_kernel_call *call, const pln_tensor *x,
                            bool kept) {
  void *mask;
  PLN_TRY(pln_kernel_unset(call, 1, PLN_BOOL, x->rank, x->dims, &mask));
  if (x->count)
    memset(mask, kept, x->count);
  return PLN_OK;
}

static pln_status make_mask(pln_kernel_call *call, const pln_tensor *x) {
  int64_t says = pln_kernel_int(call, "mask", ALL_TRUE);
  return says == RELAY || says == ALL_ZERO
             ? number_mask(call, x, says == RELAY)
             : bool_mask(call, x, says == ALL_TRUE);
}

/* Makes result 1, the mask, if the call has it. */
static pln_status keep_all(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  if (call->n_results > 1)
    PLN_TRY(make_mask(call, x));
  pln_kernel_same(call, 0, x);
  return PLN_OK;
}

#define DROP(T)                                                      \
  static void drop_##T(pln_rng rng, double ratio, const T *x, T *to, \
                       uint8_t *mask, size_t n) {                    \
    const T scale = (T)(1 / (1 - ratio));                            \
    for (size_t i = 0; i < n; i++) {                                 \
      bool kept = pln_rng_unit(rng, i) >= ratio;                     \
      to[i] = kept ? x[i] * scale : 0;                               \
      if (mask)                                                      \
        mask[i] = kept;                                              \
    }                                                                \
  }
DROP(float)
DROP(double)

static pln_status drop(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  double ratio;
  void *out, *mask = NULL;
  if (!pln_is_float32_or_64(x))
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  PLN_TRY(read_ratio(call, &ratio));
  if (ratio == 0)
    return keep_all(call);
  PLN_TRY(
      pln_kernel_unset(call, 0, (pln_dtype)x->dtype, x->rank, x->dims, &out));
  if (call->n_results > 1)
    PLN_TRY(pln_kernel_unset(call, 1, PLN_BOOL, x->rank, x->dims, &mask));
  pln_rng rng = pln_rng_begin(call);
  if (x->dtype == PLN_FLOAT32)
    drop_float(rng, ratio, x->data, out, mask, x->count);
  else
    drop_double(rng, ratio, x->data, out, mask, x->count);
  return PLN_OK;
}

pln_status pln_kernel_dropout(pln_kernel_call *call) {
  if (!trains(call))
    return keep_all(call);
  return pln_kernel_through_float(call, "0", drop);
}
