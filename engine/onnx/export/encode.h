/* encode.h: encodes types, opsets and tensors as ONNX messages, for what cannot
 * be copied from the imported file. */

#ifndef PLN_ONNX_EXPORT_ENCODE_H
#define PLN_ONNX_EXPORT_ENCODE_H

#include "ir/graph/graph.h"
#include "onnx/wire/wire.h"

/* Writes a TypeProto as field `tag`; nothing for an unknown type. */
pln_status pln_encode_type(pln_rope *rope, pln_engine *engine, uint32_t tag,
                           pln_type type) PLN_CHECKED;
/* Writes a ValueInfoProto. */
pln_status pln_encode_value_info(pln_rope *rope, pln_engine *engine,
                                 uint32_t tag, pln_slice name,
                                 pln_type type) PLN_CHECKED;
/* Writes opset_import, one field per entry, from a dictionary from domains to
 * versions. */
pln_status pln_encode_opsets(pln_rope *rope, pln_engine *engine, uint32_t tag,
                             pln_attrs opsets) PLN_CHECKED;
/* Writes the elements of a tensor from `segment`. The unused bits after the
 * last packed element of a splat are 0. */
pln_status pln_encode_elements(pln_rope *rope, const pln_tensor *tensor,
                               pln_segment segment) PLN_CHECKED;

#endif
