/* rope.c: builds a protobuf message as a rope of byte, file and tensor
 * segments.
 *
 * Used by export. Invariant: the segments in order, and then the bytes of the
 * buffer from `open` on, are the message. Files and data that a segment refers
 * to outlive the rope. */

#include "onnx/wire/wire.h"

/* Messages of at least this size are copied only when the rope is streamed. */
enum { BY_REFERENCE = 16 * 1024 };

void pln_rope_init(pln_rope *rope, pln_engine *engine) {
  *rope = (pln_rope){.engine = engine};
  pln_buffer_init(&rope->bytes, engine);
}

void pln_rope_free(pln_rope *rope) {
  pln_buffer_free(&rope->bytes);
  pln_mem_free(rope->engine, rope->segments,
               rope->cap_segments * sizeof *rope->segments);
  rope->segments = NULL;
  rope->n_segments = rope->cap_segments = 0;
}

static size_t varint_bytes(uint64_t v, uint8_t out[10]) {
  size_t n = 0;
  while (v >= 0x80) {
    out[n++] = (uint8_t)(v | 0x80);
    v >>= 7;
  }
  out[n++] = (uint8_t)v;
  return n;
}

pln_status pln_rope_raw(pln_rope *rope, const void *data, size_t size) {
  PLN_TRY(pln_buffer_add(&rope->bytes, data, size));
  rope->size += size;
  return PLN_OK;
}

pln_status pln_rope_varint(pln_rope *rope, uint64_t value) {
  uint8_t bytes[10];
  return pln_rope_raw(rope, bytes, varint_bytes(value, bytes));
}

pln_status pln_rope_int(pln_rope *rope, uint32_t tag, uint64_t v) {
  PLN_TRY(pln_rope_varint(rope, tag));
  return pln_rope_varint(rope, v);
}

pln_status pln_rope_float(pln_rope *rope, uint32_t tag, float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  uint8_t bytes[4];
  for (int i = 0; i < 4; i++)
    bytes[i] = (uint8_t)(bits >> 8 * i);
  PLN_TRY(pln_rope_varint(rope, tag));
  return pln_rope_raw(rope, bytes, sizeof bytes);
}

pln_status pln_rope_bytes(pln_rope *rope, uint32_t tag, pln_slice v) {
  PLN_TRY(pln_rope_int(rope, tag, v.size));
  return pln_rope_raw(rope, v.data, v.size);
}

static pln_status add_segment(pln_rope *rope, pln_segment segment) {
  PLN_TRY(pln_mem_grow(rope->engine, (void **)&rope->segments,
                       &rope->cap_segments, (size_t)rope->n_segments + 1,
                       sizeof *rope->segments));
  rope->segments[rope->n_segments++] = segment;
  return PLN_OK;
}

/* Makes a segment of the bytes appended since the last one. */
static pln_status flush(pln_rope *rope) {
  size_t size = rope->bytes.size - rope->open;
  if (size)
    PLN_TRY(add_segment(
        rope, (pln_segment){.kind = PLN_SEGMENT_BYTES, .size = size}));
  rope->open = rope->bytes.size;
  return PLN_OK;
}

pln_status pln_rope_segment(pln_rope *rope, pln_segment segment) {
  PLN_TRY(flush(rope));
  if (segment.kind == PLN_SEGMENT_ALIGN)
    segment.size = -rope->size & (segment.offset - 1);
  PLN_TRY(add_segment(rope, segment));
  rope->size += segment.size;
  return PLN_OK;
}

pln_status pln_rope_fields(pln_rope *rope, pln_message fields) {
  if (fields.size < BY_REFERENCE)
    return pln_rope_raw(rope, fields.data, fields.size);
  return pln_rope_segment(rope,
                          (pln_segment){.kind = PLN_SEGMENT_FILE,
                                        .size = fields.size,
                                        .offset = pln_message_offset(fields),
                                        .file = fields.file});
}

pln_status pln_rope_message(pln_rope *rope, uint32_t tag, pln_message message) {
  PLN_TRY(pln_rope_int(rope, tag, message.size));
  return pln_rope_fields(rope, message);
}

/* ------------------------------------------------------------------ nesting */

pln_status pln_rope_open(pln_rope *rope, uint32_t tag, size_t *at) {
  PLN_TRY(pln_rope_varint(rope, tag));
  *at = rope->bytes.size;
  return pln_rope_raw(rope, "", 1);
}

pln_status pln_rope_close(pln_rope *rope, size_t at) {
  uint8_t length[10];
  size_t size = rope->bytes.size - at - 1;
  size_t n = varint_bytes(size, length);
  if (n > 1) {
    PLN_TRY(pln_rope_raw(rope, length, n - 1));
    memmove(rope->bytes.data + at + n, rope->bytes.data + at + 1, size);
  }
  memcpy(rope->bytes.data + at, length, n);
  return PLN_OK;
}

pln_status pln_rope_begin(pln_rope *rope, uint32_t tag,
                          pln_open_message *nest) {
  PLN_TRY(pln_rope_varint(rope, tag));
  PLN_TRY(flush(rope));
  nest->segment = rope->n_segments;
  nest->start = rope->size;
  return add_segment(rope, (pln_segment){.kind = PLN_SEGMENT_LENGTH});
}

pln_status pln_rope_end(pln_rope *rope, pln_open_message nest) {
  uint8_t length[10];
  uint64_t size = rope->size - nest.start;
  rope->segments[nest.segment].size = size;
  rope->size += varint_bytes(size, length);
  return PLN_OK;
}

pln_rope_mark pln_rope_here(const pln_rope *rope) {
  return (pln_rope_mark){rope->bytes.size, rope->open, rope->size,
                         rope->n_segments};
}

void pln_rope_rewind(pln_rope *rope, pln_rope_mark mark) {
  rope->bytes.size = mark.bytes;
  rope->open = mark.open;
  rope->size = mark.size;
  rope->n_segments = mark.n_segments;
}

/* ---------------------------------------------------------------- streaming */

typedef struct sink {
  pln_write_fn write;
  void *ud;
  pln_output *output; /* or NULL */
} sink;

static pln_status emit(const sink *s, const void *data, size_t size) {
  if (s->output)
    return pln_output_write(s->output, data, size);
  return size ? s->write(s->ud, data, size) : PLN_OK;
}

/* Writes an element of 1, 2, 4, 8 or 16 bytes repeatedly. */
static pln_status emit_repeated(const sink *s, const void *element,
                                size_t width, uint64_t size) {
  char block[4096];
  for (size_t i = 0; i < sizeof block; i += width)
    memcpy(block + i, element, width);
  for (; size > sizeof block; size -= sizeof block)
    PLN_TRY(emit(s, block, sizeof block));
  return emit(s, block, (size_t)size);
}

static pln_status emit_zeros(const sink *s, uint64_t size) {
  if (s->output)
    return pln_output_pad(s->output, pln_output_position(s->output) + size);
  return emit_repeated(s, "", 1, size);
}

static pln_status emit_file(const sink *s, const pln_segment *p) {
  if (s->output)
    return pln_output_copy(s->output, p->file, p->offset, p->size);
  return emit(s, pln_file_data(p->file) + p->offset, (size_t)p->size);
}

static pln_status emit_segment(const sink *s, const pln_segment *p,
                               const char **bytes) {
  uint8_t length[10];
  switch (p->kind) {
  case PLN_SEGMENT_BYTES:
    *bytes += p->size;
    return emit(s, *bytes - p->size, (size_t)p->size);
  case PLN_SEGMENT_LENGTH:
    return emit(s, length, varint_bytes(p->size, length));
  case PLN_SEGMENT_FILE: return emit_file(s, p);
  case PLN_SEGMENT_DATA: return emit(s, p->data, (size_t)p->size);
  case PLN_SEGMENT_SPLAT:
    return emit_repeated(s, p->data, (size_t)p->offset, p->size);
  case PLN_SEGMENT_ALIGN: return emit_zeros(s, p->size);
  }
  return PLN_OK;
}

static pln_status stream(pln_rope *rope, const sink *s) {
  PLN_TRY(flush(rope));
  const char *bytes = rope->bytes.data;
  for (uint32_t i = 0; i < rope->n_segments; i++)
    PLN_TRY(emit_segment(s, &rope->segments[i], &bytes));
  return PLN_OK;
}

pln_status pln_rope_write(pln_rope *rope, pln_write_fn write, void *ud) {
  return stream(rope, &(sink){.write = write, .ud = ud});
}

pln_status pln_rope_output(pln_rope *rope, pln_output *output) {
  return stream(rope, &(sink){.output = output});
}
