/* fake_quantization.h: operators of a fake-quantised region, converted to
 * integers one by one. */

#ifndef PLN_TRANSFORM_QUANTIZE_FAKE_QUANTIZATION_H
#define PLN_TRANSFORM_QUANTIZE_FAKE_QUANTIZATION_H

#include "transform/quantize/qnn_call.h"

/* The affine type of integers x: they stand for (x - zero) * scale. Scale and
 * zero point are nodes of the new graph; vectors of them belong to an axis.
 * scale PLN_NONE: not known, the value is a float. */
typedef struct pln_affine_type {
  pln_ref scale, zero;
  pln_dtype dtype;
  int64_t axis;
} pln_affine_type;

/* A call whose operands are converted already. */
typedef struct pln_fake_quantized_call {
  pln_qnn_call q; /* the float call with converted operands */
  pln_affine_type types[PLN_QNN_MOST_ARGS];
  /* The region's result, for operators that choose their result's scale; not
   * known when one operator is converted by itself. */
  pln_affine_type region;
  /* A pool of whose result the quantised value is computed by other operators
   * along their first operands. */
  bool below_root;
  /* The fields of operand 0, if it is a tuple. */
  uint32_t n_fields;
  const pln_affine_type *fields;
  /* Set by the conversion: the result's type, or that of each of its fields. */
  pln_affine_type result;
  uint32_t n_result_fields;
} pln_fake_quantized_call;

/* The integer expression, or PLN_NONE if there is none. */
typedef pln_ref (*pln_fake_quantized_fn)(pln_fake_quantized_call *c);

/* The conversion of an operator; NULL: there is none. `optional`: also those
 * that are used only if the pass names them. */
pln_fake_quantized_fn pln_fake_quantized_find(pln_op op, bool optional);
/* True for operators that can be converted by themselves between dequantised
 * operands and a dequantised result. */
bool pln_fake_quantized_alone(pln_op op);

/* fake_quantized_attribute.c: the conversion that the attribute of the operator
 * says. *out: the integer expression, or PLN_NONE. `old` is the root of the
 * region in the old graph. */
#define PLN_FAKE_QUANTIZATION_KEY "FTVMFakeQuantizationToInteger"
pln_status pln_fake_quantized_ask(pln_fake_quantized_call *c, pln_rewrite *rw,
                                  pln_ref old, pln_ref *out) PLN_CHECKED;

/* affine_type.c */
static inline bool pln_affine_is_known(const pln_affine_type *t) {
  return t->scale != PLN_NONE;
}
/* Constants are equal up to rounding (1e-5), other expressions structurally. */
bool pln_affine_is_near(const pln_qnn_call *q, pln_ref a, pln_ref b);
/* Equal scales, zero points, dtypes and axes. */
bool pln_affine_is_equal(const pln_qnn_call *q, const pln_affine_type *a,
                         const pln_affine_type *b);
/* The constant that a call of constants evaluates to, else the call. */
pln_ref pln_affine_fold(pln_qnn_call *q, pln_ref node);
/* scale(a) * scale(b), and a zero point for each of them. */
pln_affine_type pln_affine_product(pln_qnn_call *q, const pln_affine_type *a,
                                   const pln_affine_type *b, pln_dtype dtype,
                                   int64_t axis);
/* qnn.quantize, qnn.requantize and qnn.dequantize calls. */
pln_ref pln_affine_quantize(pln_qnn_call *q, pln_ref x,
                            const pln_affine_type *to, int64_t axis);
pln_ref pln_affine_requantize(pln_qnn_call *q, pln_ref x,
                              const pln_affine_type *from,
                              const pln_affine_type *to, pln_dtype dtype,
                              int64_t axis);
pln_ref pln_affine_dequantize(pln_qnn_call *q, pln_ref x,
                              const pln_affine_type *from);

#endif
