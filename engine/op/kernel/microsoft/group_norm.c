/* group_norm.c: GroupNorm and SkipGroupNorm of com.microsoft: images with
 * channels last normalised by groups of channels, with an activation. Type and
 * kernels. Called through ops.def.
 *
 *     GroupNorm<activation=1>(x, gamma, beta)
 *         =>   nn.silu(nn.group_norm(x, gamma, beta))
 *
 * Semantics: ONNX Runtime's GroupNorm and SkipGroupNorm, which its CPU provider
 * does not have. Everything is computed in float32. */

#include "op/kernel/composed.h"

/* Results: the norm, and the sum that is normalised. */
pln_status pln_infer_group_norm_last(pln_infer *call) {
  int64_t groups = pln_call_int(call, "groups", 0);
  int64_t activation = pln_call_int(call, "activation", 0);
  bool last = pln_call_int(call, "channels_last", 1) != 0;
  PLN_TRY(pln_arg_expect_rank(call, 0, 4));
  if (groups < 1)
    return pln_call_error(call, "groups is %lld, not positive",
                          (long long)groups);
  if (activation != 0 && activation != 1)
    return pln_call_error(call, "activation is %lld, not 0 or 1",
                          (long long)activation);
  PLN_TRY(pln_args_channels(call, 1, 3, last ? 3 : 1));
  pln_result_like(call, 0, 0);
  pln_result_like(call, 1, 0);
  return PLN_OK;
}

/* The operand as float32 with channels second. */
static const pln_tensor *channels_second(pln_composition *s,
                                         const pln_tensor *x) {
  bool last = pln_kernel_int(s->call, "channels_last", 1) != 0;
  x = pln_compose_cast(s, x, PLN_FLOAT32);
  return last ? pln_compose_layout(s, x, pln_text("NHWC"), pln_text("NCHW"))
              : x;
}

/* Back to the layout and the dtype of operand 0. */
static const pln_tensor *as_operand(pln_composition *s, const pln_tensor *y) {
  bool last = pln_kernel_int(s->call, "channels_last", 1) != 0;
  if (last)
    y = pln_compose_layout(s, y, pln_text("NCHW"), pln_text("NHWC"));
  return pln_compose_cast(s, y, (pln_dtype)pln_kernel_arg(s->call, 0)->dtype);
}

static const pln_tensor *normalize_groups(pln_composition *s,
                                          const pln_tensor *x) {
  const pln_kernel_call *call = s->call;
  const pln_tensor *args[3] = {
      x, pln_compose_cast(s, pln_kernel_arg(call, 1), PLN_FLOAT32),
      pln_compose_cast(s, pln_kernel_arg(call, 2), PLN_FLOAT32)};
  pln_compose_int(s, "num_groups", pln_kernel_int(call, "groups", 1));
  pln_compose_float(s, "epsilon",
                    pln_kernel_float(call, "epsilon", (double)1e-5f));
  const pln_tensor *y =
      pln_compose_call(s, PLN_OP_GROUP_NORMALIZATION, 3, args);
  return pln_kernel_int(call, "activation", 0)
             ? pln_compose_unary(s, PLN_OP_SWISH, y)
             : y;
}

pln_status pln_kernel_group_norm_last(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = channels_second(&s, pln_kernel_arg(call, 0));
  return pln_composition_finish(&s, as_operand(&s, normalize_groups(&s, x)));
}

/* A skip of one row of channels for each image, or for all. */
static const pln_tensor *skip_of(pln_composition *s) {
  const pln_tensor *skip = pln_kernel_arg(s->call, 3);
  bool last = pln_kernel_int(s->call, "channels_last", 1) != 0;
  if (!skip || skip->rank != 2)
    return channels_second(s, skip);
  const int64_t dims[4] = {skip->dims[0], last ? 1 : skip->dims[1], 1,
                           last ? skip->dims[1] : 1};
  return channels_second(s, pln_compose_reshape(s, skip, 4, dims));
}

/* (x, gamma, beta, skip, bias) */
pln_status pln_kernel_skip_group_norm(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_tensor *bias = pln_kernel_arg(call, 4);
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *sum =
      pln_compose_binary(&s, PLN_OP_ADD, channels_second(&s, x), skip_of(&s));
  if (bias) {
    const int64_t dims[4] = {1, (int64_t)bias->count, 1, 1};
    bias = pln_compose_cast(&s, bias, PLN_FLOAT32);
    sum = pln_compose_binary(&s, PLN_OP_ADD, sum,
                             pln_compose_reshape(&s, bias, 4, dims));
  }
  if (sum && (sum->rank != x->rank || sum->count != x->count))
    pln_composition_refuse(&s, "skip or bias has more elements than operand 0");
  if (call->n_results > 1)
    pln_composition_set_result(&s, 1, as_operand(&s, sum));
  return pln_composition_finish(&s, as_operand(&s, normalize_groups(&s, sum)));
}
