/* qnn_align_channels.h: quantised products with whole vectors of channels. */

#ifndef PLN_TRANSFORM_QUANTIZE_QNN_ALIGN_CHANNELS_H
#define PLN_TRANSFORM_QUANTIZE_QNN_ALIGN_CHANNELS_H

#include "transform/quantize/qnn_call.h"

/* qnn.conv2d or qnn.dense of bytes; PLN_NONE if its channels are aligned. */
pln_ref pln_qnn_align_channels(pln_qnn_call *q);

#endif
