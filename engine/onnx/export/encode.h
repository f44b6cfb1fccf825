/* encode.h: things of the IR as ONNX messages. Used by export for what cannot
 * be taken from the imported file. */

#ifndef PLN_ONNX_EXPORT_ENCODE_H
#define PLN_ONNX_EXPORT_ENCODE_H

#include "ir/graph/graph.h"
#include "onnx/wire/wire.h"

/* TypeProto in field `tag`; nothing for a type that is not known. */
pln_status pln_encode_type(pln_rope *rope, pln_engine *engine, uint32_t tag,
                           pln_type type) PLN_CHECKED;
/* ValueInfoProto. */
pln_status pln_encode_value_info(pln_rope *rope, pln_engine *engine,
                                 uint32_t tag, pln_slice name,
                                 pln_type type) PLN_CHECKED;
/* opset_import from domain to version, one field an entry. */
pln_status pln_encode_opsets(pln_rope *rope, pln_engine *engine, uint32_t tag,
                             pln_attrs opsets) PLN_CHECKED;
/* The elements of a tensor, which `segment` tells. Bits behind the last packed
 * element of a splat are 0. */
pln_status pln_encode_elements(pln_rope *rope, const pln_tensor *tensor,
                               pln_segment segment) PLN_CHECKED;

#endif
