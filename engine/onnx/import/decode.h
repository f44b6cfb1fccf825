/* decode.h: messages of ONNX as things of the IR: types, tensors, attributes.
 * Used by import; export decodes what it compares or moves. */

#ifndef PLN_ONNX_IMPORT_DECODE_H
#define PLN_ONNX_IMPORT_DECODE_H

#include "ir/graph/graph.h"
#include "onnx/wire/wire.h"

/* What decoding needs beside the message. */
typedef struct pln_decoder {
  pln_engine *engine;
  pln_symbol directory; /* where external data may lie; 0: nowhere */
} pln_decoder;

/* The string field `tag` of a message (the last one), empty when missing. */
pln_status pln_decode_string(const pln_decoder *d, pln_message message,
                             const char *what, uint32_t tag,
                             pln_slice *out) PLN_CHECKED;

/* opset_import, the fields `tag` of a message: domain ("ai.onnx" for "") to
 * version. A domain that is there twice has its last version. */
pln_status pln_decode_opsets(const pln_decoder *d, pln_message message,
                             uint32_t tag, pln_attrs *out) PLN_CHECKED;

/* TypeProto. Denotations are not part of a type. */
pln_status pln_decode_type(const pln_decoder *d, pln_message message,
                           pln_type *out) PLN_CHECKED;
/* ValueInfoProto; 0 when it has no type. */
pln_status pln_decode_value_info(const pln_decoder *d, pln_message message,
                                 pln_slice *name, pln_type *out) PLN_CHECKED;

/* TensorProto. *out is NULL when it is well-formed but of a kind that no
 * tensor of ours represents (a dtype of the future). */
pln_status pln_decode_tensor(const pln_decoder *d, pln_message message,
                             pln_slice *name, pln_tensor **out) PLN_CHECKED;
/* SparseTensorProto: its name and the type of the tensor it stands for. */
pln_status pln_decode_sparse(const pln_decoder *d, pln_message message,
                             pln_slice *name, pln_type *out) PLN_CHECKED;

/* AttributeProto.type, read from what is there when it is missing. */
pln_status pln_decode_attr_kind(const pln_decoder *d, pln_message message,
                                pln_slice *name, uint32_t *kind) PLN_CHECKED;
/* AttributeProto as an attribute. Lists live in `arena`; a tensor made here is
 * added to `tensors` (retained, released by the caller). GRAPH and GRAPHS count
 * *graph up for the operands they stand for. */
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
