/* wire.c: the reading cursor over protobuf's wire format.
 *
 * Used by import, and by export on the slices that nodes came from. Invariants:
 * no byte outside the message is read, whatever its lengths say; nothing
 * recurses (groups are skipped with a counter). */

#include "onnx/wire/wire.h"
#include "onnx/wire/proto.h"

pln_wire pln_wire_open(pln_message message) {
  return (pln_wire){.file = message.file,
                    .at = message.data,
                    .end = message.data ? message.data + message.size : NULL};
}

bool pln_wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *value) {
  const uint8_t *p = *at;
  uint64_t v = 0;
  for (uint32_t shift = 0; shift < 70 && p < end; shift += 7) {
    uint8_t byte = *p++;
    v |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
    if (byte < 0x80) {
      *value = v;
      *at = p;
      return true;
    }
  }
  return false;
}

static bool bad(pln_wire *w, const uint8_t *at, const char *why) {
  w->bad = at;
  w->why = why;
  return false;
}

static bool fixed(pln_wire *w, pln_field *f, size_t size) {
  if ((size_t)(w->end - w->at) < size)
    return bad(w, f->start, "a number runs past the end of the message");
  f->value = 0;
  for (size_t i = size; i-- > 0;)
    f->value = f->value << 8 | w->at[i];
  w->at += size;
  return true;
}

static bool counted(pln_wire *w, pln_field *f) {
  uint64_t size;
  if (!pln_wire_varint(&w->at, w->end, &size))
    return bad(w, f->start, "a length is cut off or too long");
  if (size > (uint64_t)(w->end - w->at))
    return bad(w, f->start, "a length runs past the end of the message");
  f->bytes = (pln_slice){(const char *)w->at, (size_t)size};
  w->at += size;
  return true;
}

enum { GROUP = 3, END_GROUP = 4 };

static bool value(pln_wire *w, pln_field *f, uint32_t type) {
  switch (type) {
  case PLN_VARINT:
    if (!pln_wire_varint(&w->at, w->end, &f->value))
      return bad(w, f->start, "a number is cut off or too long");
    return true;
  case PLN_FIXED64: return fixed(w, f, 8);
  case PLN_FIXED32: return fixed(w, f, 4);
  case PLN_BYTES: return counted(w, f);
  default: return bad(w, f->start, "a field has an unknown wire type");
  }
}

/* Groups are deprecated and unused in ONNX, so they are unknown fields. */
static bool skip_group(pln_wire *w, pln_field *f) {
  for (size_t depth = 1; depth > 0;) {
    uint64_t key;
    if (!pln_wire_varint(&w->at, w->end, &key))
      return bad(w, f->start, "a group has no end");
    uint32_t type = key & 7;
    if (type == GROUP)
      depth++;
    else if (type == END_GROUP)
      depth--;
    else if (!value(w, f, type))
      return false;
  }
  return true;
}

bool pln_wire_next(pln_wire *w, pln_field *f) {
  if (w->at >= w->end || w->bad)
    return false;
  f->start = w->at;
  uint64_t key;
  if (!pln_wire_varint(&w->at, w->end, &key))
    return bad(w, f->start, "a field's number is cut off");
  if (key < 8 || key > UINT32_MAX)
    return bad(w, f->start, "a field's number is out of range");
  f->tag = (uint32_t)key;
  bool ok = (key & 7) == GROUP ? skip_group(w, f) : value(w, f, key & 7);
  f->next = w->at;
  return ok;
}

pln_status pln_wire_done(const pln_wire *wire, pln_engine *engine,
                         const char *message) {
  if (!wire->bad)
    return PLN_OK;
  uint64_t offset = (uint64_t)(wire->bad - pln_file_data(wire->file));
  return pln_diag_error(engine, PLN_ERR_FORMAT, NULL, "%s, byte %llu: %s",
                        message, (unsigned long long)offset, wire->why);
}

pln_status pln_wire_entry(pln_engine *engine, pln_message entry, pln_slice *key,
                          pln_slice *value) {
  pln_wire w = pln_wire_open(entry);
  pln_field f;
  *key = *value = (pln_slice){0};
  while (pln_wire_next(&w, &f))
    if (f.tag == ENTRY_KEY)
      *key = f.bytes;
    else if (f.tag == ENTRY_VALUE)
      *value = f.bytes;
  return pln_wire_done(&w, engine, "StringStringEntryProto");
}

pln_message pln_wire_message(const pln_wire *wire, const pln_field *field) {
  return (pln_message){.file = wire->file,
                       .data = (const uint8_t *)field->bytes.data,
                       .size = field->bytes.size};
}

uint64_t pln_message_offset(pln_message message) {
  return message.data ? (uint64_t)(message.data - pln_file_data(message.file))
                      : 0;
}

/* ---------------------------------------------------------------- merging */

static pln_status join(pln_engine *engine, pln_message message, uint32_t tag,
                       pln_file **out) {
  pln_buffer all;
  pln_buffer_init(&all, engine);
  pln_wire w = pln_wire_open(message);
  pln_field f;
  pln_status status = PLN_OK;
  while (status == PLN_OK && pln_wire_next(&w, &f))
    if (f.tag == tag)
      status = pln_buffer_add(&all, f.bytes.data, f.bytes.size);
  if (status == PLN_OK)
    status = pln_file_copy(engine, (pln_slice){all.data, all.size},
                           pln_file_path(message.file), out);
  pln_buffer_free(&all);
  return status;
}

pln_status pln_wire_merged(pln_engine *engine, pln_message message,
                           const char *name, uint32_t tag, pln_message *out,
                           pln_file **joined, bool *found) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  size_t slices = 0;
  *out = (pln_message){.file = message.file};
  *joined = NULL;
  while (pln_wire_next(&w, &f))
    if (f.tag == tag && ++slices)
      *out = pln_wire_message(&w, &f);
  PLN_TRY(pln_wire_done(&w, engine, name));
  if (found)
    *found = slices > 0;
  if (slices <= 1)
    return PLN_OK;
  PLN_TRY(join(engine, message, tag, joined));
  *out = (pln_message){*joined, pln_file_data(*joined),
                       (size_t)pln_file_size(*joined)};
  return PLN_OK;
}

uint32_t pln_wire_count(pln_message message, uint32_t tag) {
  pln_wire w = pln_wire_open(message);
  pln_field f;
  uint32_t n = 0;
  while (pln_wire_next(&w, &f))
    n += f.tag == tag;
  return n;
}
