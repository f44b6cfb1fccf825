/* wire.h: reads and writes protobuf's wire format without a schema.
 *
 * Reading: a cursor over the fields of a message in a file's bytes; nothing is
 * copied. Writing: a rope of bytes, file slices and tensor data. Lengths are
 * filled in when a message ends; large data is read only when the rope is
 * streamed. */

#ifndef PLN_ONNX_WIRE_WIRE_H
#define PLN_ONNX_WIRE_WIRE_H

#include "base/base.h"
#include "base/file/file.h"
#include "onnx/wire/proto.h"

/* ----------------------------------------------------------------- reading */

/* A message: `size` bytes of `file` from `data` on. */
typedef struct pln_message {
  pln_file *file; /* borrowed */
  const uint8_t *data;
  size_t size;
} pln_message;

typedef struct pln_wire {
  pln_file *file;
  const uint8_t *at;
  const uint8_t *end;
  const uint8_t *bad; /* first malformed byte, or NULL */
  const char *why;
} pln_wire;

typedef struct pln_field {
  uint32_t tag;         /* PLN_TAG; 0 if the field number is over 2^28 */
  uint64_t value;       /* value of a varint or fixed number */
  pln_slice bytes;      /* contents of a PLN_BYTES field */
  const uint8_t *start; /* start of the field with its tag */
  const uint8_t *next;  /* start of the next field */
} pln_field;

pln_wire pln_wire_open(pln_message message);
/* Reads the next field; false at the end, or if the rest is malformed. */
bool pln_wire_next(pln_wire *wire, pln_field *field);
/* The number of fields with this tag. */
uint32_t pln_wire_count(pln_message message, uint32_t tag);
/* PLN_ERR_FORMAT if the walk ended early; the diagnostic has the message's name
 * and the offset in its file. */
pln_status pln_wire_done(const pln_wire *wire, pln_engine *engine,
                         const char *message) PLN_CHECKED;
/* Reads a StringStringEntryProto; what it does not have is empty. */
pln_status pln_wire_entry(pln_engine *engine, pln_message entry, pln_slice *key,
                          pln_slice *value) PLN_CHECKED;
/* The contents of a field as a message of the same file. */
pln_message pln_wire_message(const pln_wire *wire, const pln_field *field);
/* Reads one varint of a packed field; false at the end, or if malformed (then
 * *at stays before the end). */
bool pln_wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *value);
uint64_t pln_message_offset(pln_message message);
/* The submessage `tag`. If it occurs several times, the occurrences are
 * concatenated in a new file *joined, which the caller releases; else *joined
 * is NULL. An empty message if there is none; *found (may be NULL) tells. */
pln_status pln_wire_merged(pln_engine *engine, pln_message message,
                           const char *name, uint32_t tag, pln_message *out,
                           pln_file **joined, bool *found) PLN_CHECKED;

static inline float pln_wire_float(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof value);
  return value;
}

/* ----------------------------------------------------------------- writing */

typedef enum pln_segment_kind {
  PLN_SEGMENT_BYTES,  /* the next `size` bytes of the rope's buffer */
  PLN_SEGMENT_LENGTH, /* `size` as a varint */
  PLN_SEGMENT_FILE,   /* a slice of `file` at `offset` */
  PLN_SEGMENT_DATA,   /* `size` bytes at `data` */
  PLN_SEGMENT_SPLAT,  /* `size` bytes, all copies of `offset` bytes at `data` */
  PLN_SEGMENT_ALIGN   /* zero bytes up to a multiple of `offset` */
} pln_segment_kind;

typedef struct pln_segment {
  pln_segment_kind kind;
  uint64_t size;
  uint64_t offset;
  const void *data; /* borrowed, as files are */
  const pln_file *file;
} pln_segment;

typedef struct pln_rope {
  pln_engine *engine;
  pln_buffer bytes;
  size_t open;   /* bytes before it belong to a segment */
  uint64_t size; /* complete bytes, without the lengths of open messages */
  pln_segment *segments;
  uint32_t n_segments, cap_segments;
} pln_rope;

void pln_rope_init(pln_rope *rope, pln_engine *engine);
void pln_rope_free(pln_rope *rope);

pln_status pln_rope_varint(pln_rope *rope, uint64_t value) PLN_CHECKED;
pln_status pln_rope_raw(pln_rope *rope, const void *data,
                        size_t size) PLN_CHECKED;
/* Append fields. */
pln_status pln_rope_int(pln_rope *rope, uint32_t tag, uint64_t v) PLN_CHECKED;
pln_status pln_rope_float(pln_rope *rope, uint32_t tag, float v) PLN_CHECKED;
pln_status pln_rope_bytes(pln_rope *rope, uint32_t tag,
                          pln_slice v) PLN_CHECKED;
/* Appends a whole message of a file; a large one is copied when streamed. */
pln_status pln_rope_message(pln_rope *rope, uint32_t tag,
                            pln_message message) PLN_CHECKED;
/* Appends complete fields of a file as they are. */
pln_status pln_rope_fields(pln_rope *rope, pln_message fields) PLN_CHECKED;
/* Appends data that is streamed later. `segment` is not BYTES or LENGTH. */
pln_status pln_rope_segment(pln_rope *rope, pln_segment segment) PLN_CHECKED;

/* Opens a small message: its bytes are moved when its length is known. */
pln_status pln_rope_open(pln_rope *rope, uint32_t tag, size_t *at) PLN_CHECKED;
pln_status pln_rope_close(pln_rope *rope, size_t at) PLN_CHECKED;
/* An open message of any size: its length is a segment of its own. */
typedef struct pln_open_message {
  uint32_t segment;
  uint64_t start;
} pln_open_message;
pln_status pln_rope_begin(pln_rope *rope, uint32_t tag,
                          pln_open_message *nest) PLN_CHECKED;
pln_status pln_rope_end(pln_rope *rope, pln_open_message nest) PLN_CHECKED;

/* A position to rewind to. No message that was open then may have been closed
 * since. */
typedef struct pln_rope_mark {
  size_t bytes, open;
  uint64_t size;
  uint32_t n_segments;
} pln_rope_mark;
pln_rope_mark pln_rope_here(const pln_rope *rope);
void pln_rope_rewind(pln_rope *rope, pln_rope_mark mark);

/* Streams the rope. No message may be open. */
pln_status pln_rope_write(pln_rope *rope, pln_write_fn write,
                          void *ud) PLN_CHECKED;
pln_status pln_rope_output(pln_rope *rope, pln_output *output) PLN_CHECKED;

#endif
