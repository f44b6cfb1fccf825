/* integer_product.c: products of 8-bit integers whose result is scaled.
 * Called through ops.def.
 *
 *     MatMulIntegerToFloat(a, b, sa, sb, za, zb, bias)
 *         =>   (a - za) (b - zb) * sa * sb + bias
 *
 * The sums are exact, in int32. Semantics: ONNX Runtime's MatMulIntegerToFloat,
 * DynamicQuantizeMatMul, QGemm. */

#include "op/kernel/composed.h"

typedef struct integer_product {
  const pln_tensor *a, *b, *zero_a, *zero_b, *scale_a, *scale_b, *bias;
} integer_product;

/* sum * (scale_a * scale_b), in the order of ONNX Runtime. */
static const pln_tensor *scaled(pln_composition *s, const pln_tensor *sum,
                                const pln_tensor *scale_a,
                                const pln_tensor *scale_b) {
  const pln_tensor *y = pln_compose_cast(s, sum, PLN_FLOAT32);
  const pln_tensor *factor =
      pln_compose_binary(s, PLN_OP_MUL, scale_a, scale_b);
  return pln_compose_binary(s, PLN_OP_MUL, y, factor);
}

static const pln_tensor *product(pln_composition *s, const integer_product *p) {
  const pln_tensor *args[4] = {p->a, p->b, p->zero_a, p->zero_b};
  const pln_tensor *sum = pln_compose_call(s, PLN_OP_MAT_MUL_INTEGER, 4, args);
  const pln_tensor *y = scaled(s, sum, p->scale_a, p->scale_b);
  return p->bias ? pln_compose_binary(s, PLN_OP_ADD, y, p->bias) : y;
}

/* (a, b, scale of a, scale of b, zero of a, zero of b, bias) */
pln_status pln_kernel_matmul_integer_to_float(pln_kernel_call *call) {
  integer_product p = {.a = pln_kernel_arg(call, 0),
                       .b = pln_kernel_arg(call, 1),
                       .scale_a = pln_kernel_arg(call, 2),
                       .scale_b = pln_kernel_arg(call, 3),
                       .zero_a = pln_kernel_arg(call, 4),
                       .zero_b = pln_kernel_arg(call, 5),
                       .bias = pln_kernel_arg(call, 6)};
  pln_composition s;
  pln_composition_begin(&s, call);
  if (p.scale_a->dtype != PLN_FLOAT32 || p.scale_b->dtype != PLN_FLOAT32)
    return pln_kernel_no_dtype(call, (pln_dtype)p.scale_a->dtype);
  return pln_composition_finish(&s, product(&s, &p));
}

/* (a, b, scale of b, zero of b, bias) */
pln_status pln_kernel_dynamic_quantize_matmul(pln_kernel_call *call) {
  const pln_tensor *q[3], *x = pln_kernel_arg(call, 0);
  pln_composition s;
  pln_composition_begin(&s, call);
  pln_compose_results(&s, PLN_OP_DYNAMIC_QUANTIZE_LINEAR, 1, &x, 3, q);
  integer_product p = {.a = q[0],
                       .scale_a = q[1],
                       .zero_a = q[2],
                       .b = pln_kernel_arg(call, 1),
                       .scale_b = pln_kernel_arg(call, 2),
                       .zero_b = pln_kernel_arg(call, 3),
                       .bias = pln_kernel_arg(call, 4)};
  return pln_composition_finish(&s, product(&s, &p));
}

/* -------------------------------------------------------------------- gemm */

static const pln_tensor *transpose_if(pln_composition *s, const char *attr,
                                      const pln_tensor *x) {
  static const int64_t axes[] = {1, 0};
  return pln_kernel_int(s->call, attr, 0) ? pln_compose_transpose(s, x, 2, axes)
                                          : x;
}

/* alpha (A - za) (B - zb) sa sb + C alpha sa sb: C is an integer of the sum's
 * scale. */
static const pln_tensor *qgemm_floats(pln_composition *s) {
  const pln_kernel_call *call = s->call;
  const pln_tensor *c = pln_kernel_arg(call, 6);
  const pln_tensor *args[4] = {
      transpose_if(s, "transA", pln_kernel_arg(call, 0)),
      transpose_if(s, "transB", pln_kernel_arg(call, 3)),
      pln_kernel_arg(call, 2), pln_kernel_arg(call, 5)};
  const pln_tensor *sum = pln_compose_call(s, PLN_OP_MAT_MUL_INTEGER, 4, args);
  if (c)
    sum = pln_compose_binary(s, PLN_OP_ADD, sum, c);
  const pln_tensor *alpha =
      pln_compose_scalar(s, PLN_FLOAT32, pln_kernel_float(call, "alpha", 1));
  const pln_tensor *scale =
      pln_compose_binary(s, PLN_OP_MUL, alpha, pln_kernel_arg(call, 1));
  return scaled(s, sum, scale, pln_kernel_arg(call, 4));
}

/* (a, scale, zero, b, scale, zero, c, scale of y, zero of y) */
pln_status pln_kernel_qgemm(pln_kernel_call *call) {
  const pln_tensor *scale = pln_kernel_arg(call, 7);
  pln_composition s;
  pln_composition_begin(&s, call);
  const pln_tensor *y = qgemm_floats(&s);
  if (scale && !pln_kernel_arg(call, 8))
    pln_composition_refuse(&s, "y_scale comes without y_zero_point");
  const pln_tensor *args[3] = {y, scale, pln_kernel_arg(call, 8)};
  return pln_composition_finish(
      &s, scale ? pln_compose_call(&s, PLN_OP_QUANTIZE_LINEAR, 3, args) : y);
}
