/* qnn_call.h: a call of a quantised operator that is being replaced, and the
 * expressions that replacements are made of.
 *
 * All expressions are built with the call's pln_relay_builder: after a failure
 * they are PLN_NONE. A replacement that is not possible is PLN_NONE too; the
 * call then stays. */

#ifndef PLN_TRANSFORM_QUANTIZE_QNN_CALL_H
#define PLN_TRANSFORM_QUANTIZE_QNN_CALL_H

#include "op/infer/infer.h"
#include "transform/quantize/target_features.h"
#include "transform/relay_builder.h"

enum { PLN_QNN_MOST_ARGS = 8 };

/* How qnn.requantize computes where its attributes leave it open. */
typedef struct pln_requantize_config {
  bool nearest;      /* TONEAREST; else UPWARD */
  pln_dtype compute; /* INT64, FLOAT32 or FLOAT64 */
  bool has_rounding; /* the target rounds floats by one instruction */
} pln_requantize_config;

typedef struct pln_qnn_call {
  pln_relay_builder r;
  pln_requantize_config config;
  pln_target_features target;
  pln_op op;
  pln_attrs attrs;
  pln_type type; /* of the call */
  uint32_t n_args;
  pln_ref args[PLN_QNN_MOST_ARGS];
} pln_qnn_call;

/* A replacement: the expression, or PLN_NONE. */
typedef pln_ref (*pln_qnn_replace_fn)(pln_qnn_call *q);

/* ------------------------------------------------------------------ questions
 * of nodes of the new graph */

pln_type pln_qnn_type(const pln_qnn_call *q, pln_ref node);
pln_dtype pln_qnn_dtype(const pln_qnn_call *q, pln_ref node);
int32_t pln_qnn_rank(const pln_qnn_call *q, pln_ref node); /* -1: unknown */
/* The extent along an axis; -1 if it is not known. */
int64_t pln_qnn_extent(const pln_qnn_call *q, pln_ref node, uint32_t axis);
/* The shape; false unless all extents are known. `dims` has PLN_MAX_RANK. */
bool pln_qnn_shape(const pln_qnn_call *q, pln_ref node, uint32_t *rank,
                   int64_t *dims);
/* A constant without axes, and its value. */
bool pln_qnn_is_scalar(const pln_qnn_call *q, pln_ref node);
double pln_qnn_scalar_value(const pln_qnn_call *q, pln_ref node);
/* Such a constant of that dtype and value. */
bool pln_qnn_is_value(const pln_qnn_call *q, pln_ref node, pln_dtype dtype,
                      double value);
/* Two such constants that are equal. */
bool pln_qnn_is_same_scalar(const pln_qnn_call *q, pln_ref a, pln_ref b);
/* The least and the greatest value of an integer dtype of at most 32 bits;
 * false for another one. */
bool pln_qnn_range(pln_dtype dtype, double *least, double *most);
/* An axis of the attributes, from 0 on; -1 counts from the end. */
int64_t pln_qnn_axis(const pln_qnn_call *q, const char *name, int32_t rank);

/* ----------------------------------------------------------------- expressions
 */

pln_ref pln_qnn_unary(pln_qnn_call *q, pln_op op, pln_ref x);
pln_ref pln_qnn_binary(pln_qnn_call *q, pln_op op, pln_ref x, pln_ref y);
pln_ref pln_qnn_cast(pln_qnn_call *q, pln_ref x, pln_dtype dtype);
pln_ref pln_qnn_scalar(pln_qnn_call *q, pln_dtype dtype, double value);
pln_ref pln_qnn_int64(pln_qnn_call *q, int64_t value);
/* A constant vector; `data` are elements of that dtype. */
pln_ref pln_qnn_vector(pln_qnn_call *q, pln_dtype dtype, uint32_t n,
                       const void *data);
pln_ref pln_qnn_clip(pln_qnn_call *q, pln_ref x, double least, double most);
/* Limits a tensor to the range of an integer dtype and casts it. */
pln_ref pln_qnn_convert(pln_qnn_call *q, pln_ref x, pln_dtype dtype);
pln_ref pln_qnn_reshape(pln_qnn_call *q, pln_ref x, uint32_t n,
                        const int64_t *dims);
pln_ref pln_qnn_sum(pln_qnn_call *q, pln_op op, pln_ref x, uint32_t n,
                    const int64_t *axes, bool keepdims);
pln_ref pln_qnn_repeat(pln_qnn_call *q, pln_ref x, int64_t repeats,
                       int64_t axis);
pln_ref pln_qnn_where(pln_qnn_call *q, pln_ref cond, pln_ref x, pln_ref y);
/* A vector with axes appended, so that it broadcasts along `axis` of a tensor
 * of that rank. */
pln_ref pln_qnn_along_axis(pln_qnn_call *q, pln_ref vector, int32_t rank,
                           int64_t axis);
/* zeros(shape), full(value, shape), broadcast_to(x, shape) with the shape of
 * `like`; PLN_NONE unless it is known. */
pln_ref pln_qnn_zeros(pln_qnn_call *q, pln_ref like, pln_dtype dtype);
pln_ref pln_qnn_full(pln_qnn_call *q, pln_ref value, pln_ref like,
                     pln_dtype dtype);
pln_ref pln_qnn_broadcast(pln_qnn_call *q, pln_ref x, pln_ref like);

/* ------------------------------------------------------------------ requantize
 */

/* requantize.c: what a tensor is requantised from and to. */
typedef struct pln_requantize {
  pln_ref x, scale, zero, out_scale, out_zero;
  pln_ref like; /* a tensor whose shape is used for constants */
  pln_dtype dtype;
  int64_t axis; /* as in the attribute */
  bool nearest;
  pln_dtype compute;
} pln_requantize;

/* Requantisation from (scale, zero) of operands `scale` and `scale` + 1 to the
 * result's, with what the config says; to be completed by the caller. */
pln_requantize pln_qnn_requantize_to(const pln_qnn_call *q, pln_ref x,
                                     pln_ref scale, pln_ref zero,
                                     pln_ref out_scale, pln_ref out_zero,
                                     pln_dtype dtype);
/* PLN_NONE unless scales are constants. */
pln_ref pln_qnn_build_requantize(pln_qnn_call *q, const pln_requantize *p);
/* The same, or a cast if nothing but the dtype differs. */
pln_ref pln_qnn_requantize_or_cast(pln_qnn_call *q, const pln_requantize *p);

/* value = multiplier * 2^(shift - 31), 2^30 <= multiplier < 2^31, or 0. */
typedef struct pln_fixed_point {
  int32_t multiplier, shift;
} pln_fixed_point;
pln_fixed_point pln_fixed_point_of(double value);
pln_ref pln_qnn_fixed_point_multiply(pln_qnn_call *q, pln_ref x, double value);

/* ----------------------------------------------------- replacements of calls
 */

pln_ref pln_qnn_quantize(pln_qnn_call *q);
pln_ref pln_qnn_dequantize(pln_qnn_call *q);
pln_ref pln_qnn_requantize(pln_qnn_call *q);
pln_ref pln_qnn_function(pln_qnn_call *q);
pln_ref pln_qnn_add(pln_qnn_call *q);
pln_ref pln_qnn_multiply(pln_qnn_call *q);
pln_ref pln_qnn_concatenate(pln_qnn_call *q);
pln_ref pln_qnn_leaky_relu(pln_qnn_call *q);
pln_ref pln_qnn_softmax(pln_qnn_call *q);
pln_ref pln_qnn_avg_pool(pln_qnn_call *q);
pln_ref pln_qnn_dense(pln_qnn_call *q);
pln_ref pln_qnn_batch_matmul(pln_qnn_call *q);
pln_ref pln_qnn_conv_2d(pln_qnn_call *q);

#endif
