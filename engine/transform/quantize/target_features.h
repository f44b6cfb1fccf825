/* target_features.h: what the target of a context says about quantised
 * operators. */

#ifndef PLN_TRANSFORM_QUANTIZE_TARGET_FEATURES_H
#define PLN_TRANSFORM_QUANTIZE_TARGET_FEATURES_H

#include "transform/transform.h"

/* Which operands products of quantised tensors should have. */
typedef enum pln_product_operands {
  PLN_OPERANDS_ANY,
  PLN_OPERANDS_INT16,      /* zero points subtracted, no quantised operator */
  PLN_OPERANDS_UINT8_INT8, /* data of uint8, weights of int8 */
  PLN_OPERANDS_INT8,
  PLN_OPERANDS_SAME,   /* one dtype */
  PLN_OPERANDS_ALIGNED /* whole vectors of channels */
} pln_product_operands;

typedef struct pln_target_features {
  pln_product_operands conv_2d, dense;
  /* On ARM, convolutions other than depthwise ones with data in NHWC. */
  bool nhwc_is_same;
  bool has_sse41; /* rounds floats by one instruction */
} pln_target_features;

/* Of the config key "target": the text of a target. Without one any operands
 * will do. */
pln_target_features pln_target_features_of(const pln_pass_run *run);

#endif
