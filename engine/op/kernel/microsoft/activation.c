/* activation.c: activations of com.microsoft, and sums that end in one. Called
 * through ops.def.
 *
 *     BiasGelu(x, b)   =>   nn.gelu(add(x, b))
 *
 * Semantics: ONNX Runtime's BiasGelu, FastGelu, GemmFastGelu, QuickGelu,
 * BiasSplitGelu, BiasAdd, BiasSoftmax, BiasDropout. */

#include "op/kernel/composed.h"
#include "op/kernel/half_as_float.h"

/* Operands [first, end) that are present, added to operand 0. */
static const pln_tensor *add_operands(pln_composition *s, uint32_t end) {
  const pln_tensor *sum = pln_kernel_arg(s->call, 0);
  for (uint32_t i = 1; i < end; i++) {
    const pln_tensor *x = pln_kernel_arg(s->call, i);
    if (x)
      sum = pln_compose_binary(s, PLN_OP_ADD, sum, x);
  }
  return sum;
}

/* The sum must have the shape of operand 0: inference says so. */
static pln_status finish_sum(pln_composition *s, const pln_tensor *sum,
                             const pln_tensor *result) {
  const pln_tensor *x = pln_kernel_arg(s->call, 0);
  if (sum && (sum->rank != x->rank || sum->count != x->count))
    pln_composition_refuse(s, "a bias has more elements than operand 0");
  return pln_composition_finish(s, result);
}

static pln_status bias_gelu(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *sum = add_operands(&s, 2);
  return finish_sum(&s, sum, pln_compose_unary(&s, PLN_OP_GELU, sum));
}

pln_status pln_kernel_bias_gelu(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", bias_gelu);
}

static pln_status fast_gelu(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *sum = add_operands(&s, 2);
  pln_compose_string(&s, "approximate", "tanh");
  return finish_sum(&s, sum, pln_compose_unary(&s, PLN_OP_GELU, sum));
}

pln_status pln_kernel_fast_gelu(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", fast_gelu);
}

/* (x, weights, bias) */
static pln_status gemm_fast_gelu(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *y = pln_compose_binary(
      &s, PLN_OP_MAT_MUL, pln_kernel_arg(call, 0), pln_kernel_arg(call, 1));
  if (pln_kernel_arg(call, 2))
    y = pln_compose_binary(&s, PLN_OP_ADD, y, pln_kernel_arg(call, 2));
  pln_compose_string(&s, "approximate", "tanh");
  return pln_composition_finish(&s, pln_compose_unary(&s, PLN_OP_GELU, y));
}

pln_status pln_kernel_gemm_fast_gelu(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", gemm_fast_gelu);
}

pln_status pln_kernel_quick_gelu(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  pln_compose_float(&s, "alpha",
                    pln_kernel_float(call, "alpha", (double)1.702f));
  return pln_composition_finish(
      &s, pln_compose_unary(&s, PLN_OP_SWISH, pln_kernel_arg(call, 0)));
}

static pln_status bias_split_gelu(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0);
  pln_composition s;
  pln_composition_begin(&s, call);
  if (x->rank == 0 || x->dims[x->rank - 1] % 2)
    return pln_kernel_refuse(call, "the last axis cannot be halved");
  int64_t n = x->dims[x->rank - 1];
  const pln_tensor *sum = add_operands(&s, 2);
  const pln_tensor *left = pln_compose_slice(&s, sum, -1, 0, n / 2);
  const pln_tensor *gate = pln_compose_unary(
      &s, PLN_OP_GELU, pln_compose_slice(&s, sum, -1, n / 2, n));
  return finish_sum(&s, sum, pln_compose_binary(&s, PLN_OP_MUL, left, gate));
}

pln_status pln_kernel_bias_split_gelu(pln_kernel_call *call) {
  return pln_kernel_through_float(call, "0", bias_split_gelu);
}

/* (x, bias, skip) */
pln_status pln_kernel_bias_and_skip_add(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *sum = add_operands(&s, 3);
  return finish_sum(&s, sum, sum);
}

/* The softmax is over all axes from `axis` on. */
pln_status pln_kernel_bias_softmax(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *sum = add_operands(&s, 2);
  pln_compose_int(&s, "axis", pln_kernel_int(call, "axis", 1));
  pln_compose_int(&s, "coerce_2d", 1);
  return finish_sum(&s, sum, pln_compose_unary(&s, PLN_OP_SOFTMAX, sum));
}
