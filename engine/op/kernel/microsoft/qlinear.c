/* qlinear.c: operators of com.microsoft on tensors with scale and zero point:
 * dequantised, computed in float32, quantised again. Called through ops.def.
 *
 *     QLinearSigmoid(x, sx, zx, sy, zy)
 *         =>   quantize_linear(sigmoid(dequantize_linear(x, sx, zx)), sy, zy)
 *
 * Semantics: ONNX Runtime's QLinear kernels, which compute some of these in
 * another order: a result may differ by one from theirs where a quotient lies
 * halfway between two integers. */

#include "op/kernel/composed.h"

/* Operand `arg`, with its scale and zero point behind it, as float32. */
static const pln_tensor *dequantized(pln_composition *s, uint32_t arg) {
  const pln_tensor *args[3] = {pln_kernel_arg(s->call, arg),
                               pln_kernel_arg(s->call, arg + 1),
                               pln_kernel_arg(s->call, arg + 2)};
  if (args[1] && args[1]->count != 1)
    pln_composition_refuse(s, "a scale is not one number");
  return pln_compose_call(s, PLN_OP_DEQUANTIZE_LINEAR, 3, args);
}

/* Quantised by operand `scale` and the zero point behind it; without one, the
 * dtype is that of operand `like`. */
static const pln_tensor *quantized(pln_composition *s, const pln_tensor *y,
                                   uint32_t scale, uint32_t zero,
                                   uint32_t like) {
  const pln_tensor *args[3] = {y, pln_kernel_arg(s->call, scale),
                               pln_kernel_arg(s->call, zero)};
  if (!args[2])
    pln_compose_int(s, "output_dtype", pln_kernel_arg(s->call, like)->dtype);
  return pln_compose_call(s, PLN_OP_QUANTIZE_LINEAR, 3, args);
}

static pln_status finish_quantized(pln_composition *s, const pln_tensor *y,
                                   uint32_t scale, uint32_t like) {
  return pln_composition_finish(s, quantized(s, y, scale, scale + 1, like));
}

/* ------------------------------------------------------- element by element */

pln_status pln_kernel_qlinear_sigmoid(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  return finish_quantized(
      &s, pln_compose_unary(&s, PLN_OP_SIGMOID, dequantized(&s, 0)), 3, 0);
}

pln_status pln_kernel_qlinear_leaky_relu(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = dequantized(&s, 0);
  pln_compose_float(&s, "alpha",
                    pln_kernel_float(call, "alpha", (double)0.01f));
  return finish_quantized(&s, pln_compose_unary(&s, PLN_OP_LEAKY_RELU, x), 3,
                          0);
}

static pln_status combine(pln_kernel_call *call, pln_op op) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *a = dequantized(&s, 0), *b = dequantized(&s, 3);
  return finish_quantized(&s, pln_compose_binary(&s, op, a, b), 6, 0);
}

pln_status pln_kernel_qlinear_add(pln_kernel_call *call) {
  return combine(call, PLN_OP_ADD);
}

pln_status pln_kernel_qlinear_mul(pln_kernel_call *call) {
  return combine(call, PLN_OP_MUL);
}

/* (condition, x, scale, zero, y, scale, zero, scale of z, zero of z) */
pln_status pln_kernel_qlinear_where(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *args[3] = {pln_kernel_arg(call, 0), NULL, NULL};
  args[1] = dequantized(&s, 1);
  args[2] = dequantized(&s, 4);
  return finish_quantized(&s, pln_compose_call(&s, PLN_OP_WHERE, 3, args), 7,
                          1);
}

/* ---------------------------------------------------------------- over axes */

/* Before opset 13, all axes from `axis` on are taken as one. */
pln_status pln_kernel_qlinear_softmax(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = dequantized(&s, 0);
  pln_compose_int(&s, "axis", pln_kernel_int(call, "axis", -1));
  pln_compose_int(&s, "coerce_2d", pln_kernel_int(call, "opset", 13) < 13);
  return finish_quantized(&s, pln_compose_unary(&s, PLN_OP_SOFTMAX, x), 3, 0);
}

pln_status pln_kernel_qlinear_reduce_mean(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = dequantized(&s, 0);
  pln_compose_forward(&s, "axes");
  pln_compose_forward(&s, "keepdims");
  return finish_quantized(&s, pln_compose_unary(&s, PLN_OP_REDUCE_MEAN, x), 3,
                          0);
}

/* (scale of y, zero of y, then x, scale, zero of each operand). The results of
 * the operands are joined, which is less to hold than their floats. */
pln_status pln_kernel_qlinear_concat(pln_kernel_call *call) {
  enum { MOST = PLN_COMPOSITION_TENSORS / 2 - 1 };
  const pln_tensor *parts[MOST];
  uint32_t n = (call->n_args - 2) / 3;
  pln_composition s;
  pln_composition_begin(&s, call);
  if (n < 1 || n > MOST || call->n_args % 3 != 2)
    return pln_kernel_refuse(call, "%u operands are no triples, or too many",
                             call->n_args);
  for (uint32_t i = 0; i < n; i++)
    parts[i] = quantized(&s, dequantized(&s, 2 + 3 * i), 0, 1, 2);
  pln_compose_int(&s, "axis", pln_kernel_int(call, "axis", 0));
  return pln_composition_finish(&s,
                                pln_compose_call(&s, PLN_OP_CONCAT, n, parts));
}

/* ------------------------------------------------------------ channels last */

/* Moves the last axis to place 1, or back. */
static const pln_tensor *move_channels(pln_composition *s, const pln_tensor *x,
                                       bool to_second) {
  int64_t axes[PLN_MAX_RANK] = {0};
  uint32_t n = x ? x->rank : 0;
  if (n < 3 || n > PLN_MAX_RANK)
    return x;
  for (uint32_t i = 1; i < n; i++)
    axes[i] = to_second ? (i == 1 ? n - 1 : i - 1) : (i + 1 == n ? 1 : i + 1);
  return pln_compose_transpose(s, x, n, axes);
}

static void forward_window(pln_composition *s) {
  static const char *const names[] = {"auto_pad",     "ceil_mode", "dilations",
                                      "kernel_shape", "pads",      "strides"};
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    pln_compose_forward(s, names[i]);
}

pln_status pln_kernel_qlinear_average_pool(pln_kernel_call *call) {
  bool last = pln_kernel_int(call, "channels_last", 0) != 0;
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = dequantized(&s, 0);
  if (last)
    x = move_channels(&s, x, true);
  forward_window(&s);
  pln_compose_forward(&s, "count_include_pad");
  const pln_tensor *y = pln_compose_unary(&s, PLN_OP_AVERAGE_POOL, x);
  return finish_quantized(&s, last ? move_channels(&s, y, false) : y, 3, 0);
}

pln_status pln_kernel_qlinear_global_average_pool(pln_kernel_call *call) {
  bool last = pln_kernel_int(call, "channels_last", 0) != 0;
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = dequantized(&s, 0);
  if (last)
    x = move_channels(&s, x, true);
  const pln_tensor *y = pln_compose_unary(&s, PLN_OP_GLOBAL_AVERAGE_POOL, x);
  return finish_quantized(&s, last ? move_channels(&s, y, false) : y, 3, 0);
}

pln_status pln_kernel_nhwc_max_pool(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = move_channels(&s, pln_kernel_arg(call, 0), true);
  forward_window(&s);
  const pln_tensor *y = pln_compose_unary(&s, PLN_OP_MAX_POOL, x);
  return pln_composition_finish(&s, move_channels(&s, y, false));
}

/* As qlinear_conv; with channels_last, images are (batch, space...,
 * channels). */
pln_status pln_kernel_qlinear_conv_layout(pln_kernel_call *call) {
  const pln_tensor *args[9];
  pln_composition s;
  if (!pln_kernel_int(call, "channels_last", 0))
    return pln_kernel_qlinear_conv(call);
  pln_composition_begin(&s, call);
  for (uint32_t i = 0; i < PLN_COUNT(args); i++)
    args[i] = pln_kernel_arg(call, i);
  args[0] = move_channels(&s, args[0], true);
  forward_window(&s);
  pln_compose_forward(&s, "group");
  const pln_tensor *y = pln_compose_call(&s, PLN_OP_QLINEAR_CONV, 9, args);
  return pln_composition_finish(&s, move_channels(&s, y, false));
}
