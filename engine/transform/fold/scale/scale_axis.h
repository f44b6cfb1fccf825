/* scale_axis.h: what the two directions of FoldScaleAxis share: which axes of a
 * tensor may be scaled, which operand of a multiply is such a scale, and the
 * calls that apply a scale to another tensor. */

#ifndef PLN_TRANSFORM_FOLD_SCALE_AXIS_H
#define PLN_TRANSFORM_FOLD_SCALE_AXIS_H

#include "transform/relay_builder.h"

/* The most operands of a call that takes part: ONNX's convolution has three. */
enum { PLN_SCALE_MAX_AXES = 2, PLN_SCALE_MAX_OPERANDS = 3 };

/* TVM's Message: the axes of a tensor along which a product takes up a scale;
 * two of them, the blocks and the elements of a block, in a blocked layout. */
typedef struct pln_scale_message {
  uint8_t n_axes;      /* 0: the tensor must not be scaled */
  bool needs_positive; /* the scale passes an operator such as nn.relu */
  bool divides;        /* something is divided by the scale on its way */
  uint8_t axes[PLN_SCALE_MAX_AXES]; /* ascending */
} pln_scale_message;

/* True if both have axes, and the same ones. */
bool pln_scale_same_axes(const pln_scale_message *a,
                         const pln_scale_message *b);

/* A product of the tensor with a weight: axes of data or result, and the axes
 * of the weight, its operand 1, that the same scale is for. */
typedef struct pln_scaled_product {
  pln_scale_message message;
  uint8_t weight_axes[PLN_SCALE_MAX_AXES];
} pln_scaled_product;

/* Sets the axes of the call's operand 0, or of its result, that its weight can
 * take up. None if the call is no product, or none that can. */
pln_status pln_scale_of_data(const pln_graph *graph, pln_ref call,
                             pln_scaled_product *out) PLN_CHECKED;
pln_status pln_scale_of_result(const pln_graph *graph, pln_ref call,
                               pln_scaled_product *out) PLN_CHECKED;

/* True if `scale` has the extents of `value` along the axes of the message, and
 * extent 1 or no axis elsewhere (TVM's MatchBroadcastToLeftAxes). */
bool pln_scale_matches(const pln_graph *graph, pln_ref value, pln_ref scale,
                       const pln_scale_message *message);
/* True if the multiply may hand operand 1 - `value` on as a scale of operand
 * `value`: also a scalar, and only constants where the message restricts
 * values. */
bool pln_scale_is_factor(const pln_graph *graph, pln_ref multiply,
                         uint32_t value, const pln_scale_message *message);

/* True if operand `arg` of an elementwise operator is a tensor of floats whose
 * extents along the axes are known if there are several. */
bool pln_scale_passes(const pln_graph *graph, pln_ref node, uint32_t arg,
                      const pln_scale_message *message);

/* Builds the scale with nothing but the axes of the message. `value` and
 * `scale` are nodes of the builder's graph. */
pln_ref pln_scale_squeeze(pln_relay_builder *r, pln_ref value, pln_ref scale,
                          const pln_scale_message *message);
/* Builds op(x, scale'), where scale' is a squeezed scale that was laid out
 * along `axes` of a tensor like `shape`. */
pln_ref pln_scale_apply(pln_relay_builder *r, pln_op op, pln_ref x,
                        pln_ref scale, pln_ref shape, uint32_t n_axes,
                        const uint8_t *axes);

#endif
