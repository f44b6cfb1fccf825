/* qnn_float.c: kernels of Relay's quantised operators that are dequantised,
 * computed in float32 and quantised again: qnn.leaky_relu, qnn.softmax,
 * qnn.avg_pool2d; and those that simulate quantisation on floats. Called
 * through ops.def.
 *
 *     qnn.softmax(q, s, z, s', z')
 *         =>   qnn.quantize(nn.softmax(qnn.dequantize(q, s, z)), s', z')
 *
 * Semantics: TVM's definitions of the operators. TVM lowers some of them to
 * integer arithmetic, which differs by the rounding of fixed-point
 * multipliers. */

#include <math.h>

#include "op/kernel/composed.h"

/* (x, scale, zero): operands 0 to 2, as float32. */
static const pln_tensor *dequantized(pln_composition *s) {
  const pln_tensor *args[3] = {pln_kernel_arg(s->call, 0),
                               pln_kernel_arg(s->call, 1),
                               pln_kernel_arg(s->call, 2)};
  return pln_compose_call(s, PLN_OP_QNN_DEQUANTIZE, 3, args);
}

/* Quantised by operands 3 and 4, as operand 0 is. */
static pln_status finish_quantized(pln_composition *s, const pln_tensor *y) {
  const pln_tensor *args[3] = {y, pln_kernel_arg(s->call, 3),
                               pln_kernel_arg(s->call, 4)};
  pln_compose_string(
      s, "out_dtype",
      pln_dtype_name((pln_dtype)pln_kernel_arg(s->call, 0)->dtype));
  return pln_composition_finish(
      s, pln_compose_call(s, PLN_OP_QNN_QUANTIZE, 3, args));
}

pln_status pln_kernel_qnn_leaky_relu(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = dequantized(&s);
  pln_compose_float(&s, "alpha", pln_kernel_float(call, "alpha", 0.25));
  return finish_quantized(&s, pln_compose_unary(&s, PLN_OP_LEAKY_RELU, x));
}

pln_status pln_kernel_qnn_softmax(pln_kernel_call *call) {
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = dequantized(&s);
  pln_compose_int(&s, "axis", pln_kernel_int(call, "axis", -1));
  return finish_quantized(&s, pln_compose_unary(&s, PLN_OP_SOFTMAX, x));
}

pln_status pln_kernel_qnn_avg_pool_2d(pln_kernel_call *call) {
  static const char *const names[] = {
      "pool_size", "strides",    "dilation",  "padding",
      "layout",    "out_layout", "ceil_mode", "count_include_pad"};
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *x = dequantized(&s);
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    pln_compose_forward(&s, names[i]);
  return finish_quantized(&s, pln_compose_unary(&s, PLN_OP_AVG_POOL_2D, x));
}

/* -------------------------------------------------------------- simulation */

/* The numbers by which operand 1 of the simulating operators names a dtype. */
enum { SIMULATED_NONE, SIMULATED_INT8, SIMULATED_UINT8, SIMULATED_INT32 };

/* A scale or zero point: one number, or one for each index of an axis. */
typedef struct spread {
  const float *of;
  size_t n, inner;
} spread;

static float number_at(const spread *s, size_t i) {
  return s->of[s->n == 1 ? 0 : i / s->inner % s->n];
}

static bool read_spread(pln_composition *s, uint32_t arg, spread *out) {
  const pln_tensor *x = pln_kernel_arg(s->call, 0);
  const pln_tensor *t = pln_kernel_arg(s->call, arg);
  uint32_t axis = 0;
  bool one = t->count == 1;
  if (!one &&
      (t->rank != 1 ||
       !pln_kernel_axis(pln_kernel_int(s->call, "axis", -1), x->rank, &axis) ||
       x->dims[axis] != t->dims[0]))
    pln_composition_refuse(s, "a scale or zero point does not match operand 0");
  t = pln_compose_cast(s, t, PLN_FLOAT32);
  if (!t)
    return false;
  *out = (spread){t->data, t->count,
                  one ? 1 : pln_dims_product(x->dims, axis + 1, x->rank)};
  return true;
}

typedef struct simulation {
  spread scale, zero;
  int64_t dtype;
  const float *x;
  float *out;
} simulation;

static void simulate_quantize(const simulation *m, size_t n) {
  static const float least[] = {0, -128, 0, -2147483648.0f};
  static const float most[] = {0, 127, 255, 2147483647.0f};
  for (size_t i = 0; i < n; i++) {
    float y =
        roundf(m->x[i] / number_at(&m->scale, i)) + number_at(&m->zero, i);
    y = y < least[m->dtype] ? least[m->dtype] : y;
    m->out[i] = y > most[m->dtype] ? most[m->dtype] : y;
  }
}

static void simulate_dequantize(const simulation *m, size_t n) {
  for (size_t i = 0; i < n; i++)
    m->out[i] = (m->x[i] - number_at(&m->zero, i)) * number_at(&m->scale, i);
}

/* (x, dtype, scale, zero) */
static pln_status simulate(pln_kernel_call *call, bool back) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *t = pln_kernel_arg(call, 1);
  simulation m = {.dtype = SIMULATED_NONE};
  void *data;
  pln_composition s;
  if (x->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (t->count != 1 || !pln_tensor_int(t, 0, &m.dtype) ||
      m.dtype < SIMULATED_NONE || m.dtype > SIMULATED_INT32)
    return pln_kernel_refuse(call, "operand 1 names no dtype");
  if (m.dtype == SIMULATED_NONE) {
    pln_kernel_same(call, 0, x);
    return PLN_OK;
  }
  pln_composition_begin(&s, call);
  if (read_spread(&s, 2, &m.scale) && read_spread(&s, 3, &m.zero))
    s.status = pln_kernel_unset(call, 0, PLN_FLOAT32, x->rank, x->dims, &data);
  if (s.status != PLN_OK)
    return pln_composition_end(&s);
  m.x = x->data;
  m.out = data;
  if (back)
    simulate_dequantize(&m, x->count);
  else
    simulate_quantize(&m, x->count);
  return pln_composition_end(&s);
}

pln_status pln_kernel_qnn_simulated_quantize(pln_kernel_call *call) {
  return simulate(call, false);
}

pln_status pln_kernel_qnn_simulated_dequantize(pln_kernel_call *call) {
  return simulate(call, true);
}

/* relay.op.annotation.simulated_quantize (x, scale, least, most): rounded to a
 * multiple of the scale between two. Kind 0 marks what is kept. */
pln_status pln_kernel_simulated_quantize(pln_kernel_call *call) {
  const pln_tensor *x = pln_kernel_arg(call, 0), *scale;
  pln_composition s;
  if (pln_kernel_int(call, "kind", 1) == 0) {
    pln_kernel_same(call, 0, x);
    return PLN_OK;
  }
  if (!pln_kernel_int(call, "sign", 1) ||
      !pln_kernel_string_is(call, "rounding", "round", "round"))
    return pln_kernel_refuse(call, "it is defined for sign=True and "
                                   "rounding=\"round\"");
  pln_composition_begin(&s, call);
  scale = pln_kernel_arg(call, 1);
  x = pln_compose_binary(&s, PLN_OP_DIV, x, scale);
  x = pln_compose_binary(&s, PLN_OP_MIN, x, pln_kernel_arg(call, 3));
  x = pln_compose_binary(&s, PLN_OP_MAX, x, pln_kernel_arg(call, 2));
  pln_compose_int(&s, "relay", 1);
  x = pln_compose_unary(&s, PLN_OP_ROUND, x);
  return pln_composition_finish(&s,
                                pln_compose_binary(&s, PLN_OP_MUL, x, scale));
}
