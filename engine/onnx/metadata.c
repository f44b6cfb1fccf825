/* metadata.c: the schedules of a model in the metadata of an ONNX file.
 *
 * Called by import and export. Other entries stay as they are: export copies
 * their bytes. */

#include "onnx/metadata.h"

#include "onnx/wire/proto.h"

static const char key_name[] = "perilune.schedules";
static const char attr_name[] = "schedules";

pln_status pln_metadata_schedules(pln_engine *engine, pln_message entry,
                                  bool *is_schedules, pln_slice *value) {
  pln_slice key;
  PLN_TRY(pln_wire_entry(engine, entry, &key, value));
  *is_schedules = pln_slice_is(key, key_name);
  return PLN_OK;
}

pln_status pln_metadata_put_schedules(pln_rope *rope, pln_engine *engine,
                                      pln_attrs attrs) {
  pln_slice text = pln_attrs_string(engine, attrs, attr_name, "");
  size_t at;
  if (!text.size)
    return PLN_OK;
  PLN_TRY(pln_rope_open(rope, MODEL_METADATA, &at));
  PLN_TRY(pln_rope_bytes(rope, ENTRY_KEY, pln_text(key_name)));
  PLN_TRY(pln_rope_bytes(rope, ENTRY_VALUE, text));
  return pln_rope_close(rope, at);
}

pln_status pln_metadata_take_schedules(pln_engine *engine, pln_message model,
                                       pln_attrs *attrs) {
  pln_attr entry = {.kind = PLN_ATTR_STRING};
  bool found = false;
  pln_field f;
  pln_wire w = pln_wire_open(model);
  while (pln_wire_next(&w, &f)) {
    bool is_schedules = false;
    pln_slice value;
    if (f.tag != MODEL_METADATA)
      continue;
    PLN_TRY(pln_metadata_schedules(engine, pln_wire_message(&w, &f),
                                   &is_schedules, &value));
    if (is_schedules) {
      entry.v.s = value;
      found = true;
    }
  }
  PLN_TRY(pln_wire_done(&w, engine, "ModelProto"));
  if (!found)
    return PLN_OK;
  PLN_TRY(pln_symbol_intern(engine, pln_text(attr_name), &entry.name));
  return pln_attrs_with(engine, *attrs, &entry, attrs);
}
