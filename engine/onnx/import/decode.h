/* decode.h: decodes ONNX messages: types, tensors, attributes. Used by import,
 * and by export for what it compares or moves. */

#ifndef PLN_ONNX_IMPORT_DECODE_H
#define PLN_ONNX_IMPORT_DECODE_H

#include "ir/graph/graph.h"
#include "onnx/wire/wire.h"

/* The context of decoding. */
typedef struct pln_decoder {
  pln_engine *engine;
  pln_symbol directory; /* directory of external data; 0: not allowed */
  /* The file of external data that was met last, and its version; or NULL. */
  struct pln_known_stamp {
    pln_symbol location;
    uint64_t stamp;
  } * known;
} pln_decoder;

/* The string field `tag` of a message (the last one); empty if missing. */
pln_status pln_decode_string(const pln_decoder *d, pln_message message,
                             const char *what, uint32_t tag,
                             pln_slice *out) PLN_CHECKED;

/* Decodes opset_import, the fields `tag` of a message: a dictionary from
 * domains ("ai.onnx" for "") to versions. Of a repeated domain the last one
 * counts. */
pln_status pln_decode_opsets(const pln_decoder *d, pln_message message,
                             uint32_t tag, pln_attrs *out) PLN_CHECKED;

/* Decodes a TypeProto. Denotations are not part of a type. */
pln_status pln_decode_type(const pln_decoder *d, pln_message message,
                           pln_type *out) PLN_CHECKED;
/* Decodes a ValueInfoProto; *out is 0 if it has no type. */
pln_status pln_decode_value_info(const pln_decoder *d, pln_message message,
                                 pln_slice *name, pln_type *out) PLN_CHECKED;

/* Decodes a TensorProto. *out is NULL for a well-formed one with an unknown
 * dtype. */
pln_status pln_decode_tensor(const pln_decoder *d, pln_message message,
                             pln_slice *name, pln_tensor **out) PLN_CHECKED;
/* Reads a SparseTensorProto: its name and the type of the dense tensor. */
pln_status pln_decode_sparse(const pln_decoder *d, pln_message message,
                             pln_slice *name, pln_type *out) PLN_CHECKED;

/* AttributeProto.type; guessed from the fields present if it is missing. */
pln_status pln_decode_attr_kind(const pln_decoder *d, pln_message message,
                                pln_slice *name, uint32_t *kind) PLN_CHECKED;
/* Decodes an AttributeProto. Lists live in `arena`. A tensor made here is
 * appended to `tensors`, retained; the caller releases it. GRAPH and GRAPHS add
 * to *graph the number of operands that they stand for. */
typedef struct pln_attr_scratch {
  pln_arena arena;
  pln_tensor **tensors;
  uint32_t n_tensors, cap_tensors;
} pln_attr_scratch;
pln_status pln_decode_attr(const pln_decoder *d, pln_message message,
                           pln_attr_scratch *scratch, uint32_t *graph,
                           pln_attr *out) PLN_CHECKED;
void pln_attr_scratch_clear(pln_engine *engine, pln_attr_scratch *scratch);

#endif
