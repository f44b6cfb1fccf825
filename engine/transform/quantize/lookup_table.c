/* lookup_table.c: functions of quantised integers as tables. Called by
 * qnn.Legalize and FakeQuantizationToInteger.
 *
 *     qnn.sigmoid(%x, s, z, t, y)   =>
 *     take(table, reinterpret(%x, uint8), axis=0, mode="fast")
 *
 * Semantics: TVM's create_integer_lookup_op. Values are computed in float32:
 * dequantised, mapped, quantised with halves away from zero. */

#include <math.h>

#include "transform/quantize/lookup_table.h"
#include "transform/quantize/qnn_call.h"

static float hardswish(float x) {
  float y = x + 3.0f;
  y = y < 0 ? 0 : y > 6 ? 6 : y;
  return x * y / 6.0f;
}

static float value_of(pln_op op, float x) {
  switch (op) {
  case PLN_OP_QNN_TANH:
  case PLN_OP_TANH: return tanhf(x);
  case PLN_OP_QNN_EXP:
  case PLN_OP_EXP: return expf(x);
  case PLN_OP_QNN_SQRT:
  case PLN_OP_SQRT: return sqrtf(x);
  case PLN_OP_QNN_RSQRT:
  case PLN_OP_RSQRT: return 1.0f / sqrtf(x);
  case PLN_OP_QNN_ERF:
  case PLN_OP_ERF: return erff(x);
  case PLN_OP_QNN_SIGMOID:
  case PLN_OP_SIGMOID: return 1.0f / (1.0f + expf(-x));
  case PLN_OP_QNN_LOG:
  case PLN_OP_LOG: return logf(x);
  case PLN_OP_QNN_ABS:
  case PLN_OP_ABS: return fabsf(x);
  default: return hardswish(x);
  }
}

static bool is_known(pln_op op) {
  switch (op) {
  case PLN_OP_QNN_TANH:
  case PLN_OP_TANH:
  case PLN_OP_QNN_EXP:
  case PLN_OP_EXP:
  case PLN_OP_QNN_SQRT:
  case PLN_OP_SQRT:
  case PLN_OP_QNN_RSQRT:
  case PLN_OP_RSQRT:
  case PLN_OP_QNN_ERF:
  case PLN_OP_ERF:
  case PLN_OP_QNN_SIGMOID:
  case PLN_OP_SIGMOID:
  case PLN_OP_QNN_LOG:
  case PLN_OP_LOG:
  case PLN_OP_QNN_ABS:
  case PLN_OP_ABS:
  case PLN_OP_QNN_HARDSWISH: return true;
  default: return false;
  }
}

static bool is_small(pln_dtype dtype) {
  return dtype == PLN_INT8 || dtype == PLN_UINT8 || dtype == PLN_INT16 ||
         dtype == PLN_UINT16;
}

bool pln_lookup_table_exists(const pln_lookup_table *t) {
  return is_known(t->op) && is_small(t->from) && is_small(t->to) &&
         isfinite(t->scale) && t->out_scale > 0 && isfinite(t->out_scale);
}

/* The element whose bits are those of the index. */
static int32_t element_at(pln_dtype dtype, uint32_t index) {
  switch (dtype) {
  case PLN_INT8: return (int8_t)(uint8_t)index;
  case PLN_INT16: return (int16_t)(uint16_t)index;
  default: return (int32_t)index;
  }
}

/* What is no number is compared as false and becomes the greatest value. */
static int32_t quantised_value(const pln_lookup_table *t, int32_t element,
                               double least, double most) {
  float x = (float)(element - t->zero) * t->scale;
  float y = roundf(value_of(t->op, x) / t->out_scale) + (float)t->out_zero;
  if (!(y < (float)most))
    return (int32_t)most;
  return y > (float)least ? (int32_t)y : (int32_t)least;
}

static void fill(const pln_lookup_table *t, uint32_t n, char *data) {
  double least, most;
  uint32_t bytes = pln_dtype_bits(t->to) / 8;
  if (!pln_qnn_range(t->to, &least, &most))
    return;
  for (uint32_t i = 0; i < n; i++) {
    int32_t value = quantised_value(t, element_at(t->from, i), least, most);
    uint16_t wide = (uint16_t)value;
    uint8_t narrow = (uint8_t)value;
    memcpy(data + (size_t)i * bytes, bytes == 2 ? (void *)&wide : &narrow,
           bytes);
  }
}

static pln_status build_table(pln_relay_builder *r, const pln_lookup_table *t,
                              pln_ref *out) {
  int64_t dims[1] = {INT64_C(1) << pln_dtype_bits(t->from)};
  pln_tensor *tensor;
  PLN_TRY(pln_tensor_new(r->engine, t->to, 1, dims, &tensor));
  fill(t, (uint32_t)dims[0], pln_tensor_writable(tensor));
  pln_status status = pln_build_constant(r->b, tensor, out);
  pln_tensor_release(tensor);
  return status;
}

pln_ref pln_build_lookup(pln_relay_builder *r, const pln_lookup_table *t,
                         pln_ref x) {
  const char *index = pln_dtype_bits(t->from) == 8 ? "uint8" : "uint16";
  pln_relay_attr dtype = {"dtype",
                          {.kind = PLN_ATTR_STRING, .v.s = pln_text(index)}};
  pln_relay_attr take[] = {
      pln_relay_int("axis", 0),
      {"mode", {.kind = PLN_ATTR_STRING, .v.s = pln_text("fast")}}};
  pln_ref args[2];
  if (r->status != PLN_OK)
    return PLN_NONE;
  r->status = build_table(r, t, &args[0]);
  args[1] = pln_relay_call_with(r, PLN_OP_REINTERPRET, 1, &dtype, 1, &x);
  return pln_relay_call_with(r, PLN_OP_GATHER, 2, take, 2, args);
}
