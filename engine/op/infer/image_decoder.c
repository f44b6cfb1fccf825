/* image_decoder.c: type inference of image decoding, which has no kernel.
 * Called through ops.def. */

#include "op/infer/infer.h"

pln_status pln_infer_image_decoder(pln_infer *call) {
  pln_shape out;
  pln_shape_ranked(&out, 3);
  bool grey = pln_call_string_is(call, "pixel_format", "RGB", "Grayscale");
  out.dims[2] = grey ? 1 : 3;
  return pln_result_tensor(call, 0, PLN_UINT8, &out);
}
