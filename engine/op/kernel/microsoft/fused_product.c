/* fused_product.c: products of com.microsoft with what is fused into them:
 * transposed axes, a factor, a summand, an activation. Called through ops.def.
 *
 *     FusedMatMul<transA=1, alpha=2>(a, b)
 *         =>   multiply(nn.matmul(transpose(a), b), 2)
 *
 * Semantics: ONNX Runtime's FusedMatMul, TransposeMatMul, FusedGemm,
 * FusedConv. */

#include "op/kernel/composed.h"
#include "op/kernel/half_as_float.h"

/* ------------------------------------------------------------------ matmul */

/* With `batch` the first axis comes behind all but the last; with `last` the
 * last two are exchanged. */
static const pln_tensor *transpose_operand(pln_composition *s,
                                           const pln_tensor *x, bool batch,
                                           bool last) {
  int64_t axes[PLN_MAX_RANK];
  uint32_t n = x->rank;
  if (n < 2 || n > PLN_MAX_RANK || (!batch && !last))
    return x;
  for (uint32_t i = 0; i < n; i++)
    axes[i] = batch && i + 1 < n ? (i + 1) % (n - 1) : i;
  if (last) {
    int64_t kept = axes[n - 1];
    axes[n - 1] = axes[n - 2];
    axes[n - 2] = kept;
  }
  return pln_compose_transpose(s, x, n, axes);
}

static const pln_tensor *scale_by_alpha(pln_composition *s,
                                        const pln_tensor *x) {
  double alpha = pln_kernel_float(s->call, "alpha", 1);
  if (alpha == 1 || !x)
    return x;
  return pln_compose_binary(s, PLN_OP_MUL, x,
                            pln_compose_scalar(s, (pln_dtype)x->dtype, alpha));
}

static pln_status fused_matmul(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *a = transpose_operand(
      &s, pln_kernel_arg(call, 0), pln_kernel_int(call, "transBatchA", 0) != 0,
      pln_kernel_int(call, "transA", 0) != 0);
  const pln_tensor *b = transpose_operand(
      &s, pln_kernel_arg(call, 1), pln_kernel_int(call, "transBatchB", 0) != 0,
      pln_kernel_int(call, "transB", 0) != 0);
  return pln_composition_finish(
      &s, scale_by_alpha(&s, pln_compose_binary(&s, PLN_OP_MAT_MUL, a, b)));
}

pln_status pln_kernel_fused_matmul(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", fused_matmul);
}

/* ------------------------------------------------------------- activations */

/* How a fused activation is computed: the operator, and the attributes that its
 * parameters are. */
typedef struct fused_activation {
  const char *name;
  pln_op op;
  const char *parameters[2];
} fused_activation;

static const fused_activation activations[] = {
    {"Relu", PLN_OP_RELU, {NULL, NULL}},
    {"Sigmoid", PLN_OP_SIGMOID, {NULL, NULL}},
    {"Tanh", PLN_OP_TANH, {NULL, NULL}},
    {"Softplus", PLN_OP_SOFTPLUS, {NULL, NULL}},
    {"Softsign", PLN_OP_SOFTSIGN, {NULL, NULL}},
    {"Elu", PLN_OP_ELU, {"alpha", NULL}},
    {"LeakyRelu", PLN_OP_LEAKY_RELU, {"alpha", NULL}},
    {"ThresholdedRelu", PLN_OP_THRESHOLDED_RELU, {"alpha", NULL}},
    {"HardSigmoid", PLN_OP_HARD_SIGMOID, {"alpha", "beta"}},
    {"Clip", PLN_OP_CLIP, {"a_min", "a_max"}},
};

static const fused_activation *find_activation(pln_slice name) {
  for (size_t i = 0; i < PLN_COUNT(activations); i++)
    if (pln_slice_is(name, activations[i].name))
      return &activations[i];
  return NULL;
}

/* Parameter `i`: an element of activation_params, or the attribute
 * activation_alpha or activation_beta. False: the default. */
static bool read_parameter(const pln_kernel_call *call, uint32_t i,
                           double *out) {
  static const char *const names[] = {"activation_alpha", "activation_beta"};
  const pln_attr *a =
      pln_attrs_find(call->engine, call->attrs, "activation_params");
  if (a && a->kind == PLN_ATTR_FLOATS && i < a->count) {
    *out = a->v.floats[i];
    return true;
  }
  a = pln_attrs_find(call->engine, call->attrs, names[i]);
  if (!a || a->kind != PLN_ATTR_FLOAT)
    return false;
  *out = a->v.f;
  return true;
}

/* The activation that the call names, applied to x. */
static const pln_tensor *activate(pln_composition *s, const pln_tensor *x) {
  const pln_kernel_call *call = s->call;
  pln_slice name =
      pln_attrs_string(call->engine, call->attrs, "activation", "");
  const fused_activation *f = find_activation(name);
  double value;
  if (name.size == 0)
    return x;
  if (!f && s->status == PLN_OK)
    s->status =
        pln_kernel_refuse(call, "activation '%.*s' is not known",
                          (int)(name.size < 64 ? name.size : 64), name.data);
  for (uint32_t i = 0; f && i < 2 && f->parameters[i]; i++)
    if (read_parameter(call, i, &value))
      pln_compose_float(s, f->parameters[i], value);
  return f ? pln_compose_unary(s, f->op, x) : NULL;
}

/* ------------------------------------------------------------ gemm and conv */

static pln_status fused_gemm(pln_kernel_call *call) {
  static const char *const names[] = {"alpha", "beta", "transA", "transB"};
  const pln_tensor *args[3] = {pln_kernel_arg(call, 0), pln_kernel_arg(call, 1),
                               pln_kernel_arg(call, 2)};
  pln_composition s;
  pln_composition_begin(&s, call);
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    pln_compose_forward(&s, names[i]);
  return pln_composition_finish(
      &s, activate(&s, pln_compose_call(&s, PLN_OP_GEMM, 3, args)));
}

pln_status pln_kernel_fused_gemm(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", fused_gemm);
}

/* (x, weights, bias, summand) */
static pln_status fused_conv(pln_kernel_call *call) {
  static const char *const names[] = {"auto_pad",     "dilations", "group",
                                      "kernel_shape", "pads",      "strides"};
  const pln_tensor *args[3] = {pln_kernel_arg(call, 0), pln_kernel_arg(call, 1),
                               pln_kernel_arg(call, 2)};
  const pln_tensor *summand = pln_kernel_arg(call, 3);
  pln_composition s;
  pln_composition_begin(&s, call);
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    pln_compose_forward(&s, names[i]);
  const pln_tensor *y = pln_compose_call(&s, PLN_OP_CONV, 3, args);
  if (summand)
    y = pln_compose_binary(&s, PLN_OP_ADD, y, summand);
  return pln_composition_finish(&s, activate(&s, y));
}

pln_status pln_kernel_fused_conv(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", fused_conv);
}
