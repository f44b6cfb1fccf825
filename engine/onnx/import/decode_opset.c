/* decode_opset.c: decodes opset_import of models and functions: a dictionary
 * from domains to versions. */

#include "onnx/import/decode.h"

static pln_status read_opset(const pln_decoder *d, pln_message message,
                             pln_attr *out) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  pln_slice domain = {"", 0};
  *out = (pln_attr){.kind = PLN_ATTR_INT};
  while (pln_wire_next(&w, &f)) {
    if (f.tag == OPSET_DOMAIN)
      domain = f.bytes;
    else if (f.tag == OPSET_VERSION)
      out->v.i = (int64_t)f.value;
  }
  PLN_TRY(pln_wire_done(&w, d->engine, "OperatorSetIdProto"));
  if (domain.size == 0)
    domain = pln_text("ai.onnx");
  return pln_symbol_intern(d->engine, domain, &out->name);
}

pln_status pln_decode_opsets(const pln_decoder *d, pln_message message,
                             uint32_t tag, pln_attrs *out) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  *out = 0;
  while (pln_wire_next(&w, &f)) {
    pln_attr entry;
    if (f.tag != tag)
      continue;
    PLN_TRY(read_opset(d, pln_wire_message(&w, &f), &entry));
    PLN_TRY(pln_attrs_with(d->engine, *out, &entry, out));
  }
  return PLN_OK;
}
