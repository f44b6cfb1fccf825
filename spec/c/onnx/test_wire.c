/* test_wire.c: protobuf's wire format: the cursor, the rope, names in scopes.
 */

#include "base/base.h"

#define OOM_ENGINE_NEW pln_base_new
#define OOM_ENGINE_FREE pln_base_free
#include "onnx/scoped_names.h"
#include "onnx/wire/wire.h"
#include "oom.h"

static pln_engine *engine;
static pln_file *file;

/* A message of these bytes; freed by `done`. */
static pln_message message(const char *bytes, size_t size) {
  engine = pln_base_new(NULL, NULL);
  file = NULL;
  CHECK_OK(pln_file_copy(engine, (pln_slice){bytes, size}, "test", &file));
  return (pln_message){file, pln_file_data(file), size};
}

static void done(void) {
  pln_file_release(file);
  pln_base_free(engine);
}

#define MESSAGE(text) message(text, sizeof(text) - 1)

static void reads_each_kind(void) {
  pln_wire w =
      pln_wire_open(MESSAGE("\x08\x96\x01\x15\0\0\x80?\x19\1\0\0\0\0\0\0\2"
                            "\x22\2hi"));
  pln_field f;
  CHECK(pln_wire_next(&w, &f));
  CHECK_EQ_INT(f.tag, PLN_TAG(1, PLN_VARINT));
  CHECK_EQ_INT(f.value, 150);
  CHECK(pln_wire_next(&w, &f));
  CHECK_EQ_INT(f.tag, PLN_TAG(2, PLN_FIXED32));
  CHECK(pln_wire_float(f.value) == 1.0f);
  CHECK(pln_wire_next(&w, &f));
  CHECK_EQ_INT(f.value, 0x0200000000000001);
  CHECK(pln_wire_next(&w, &f));
  CHECK(pln_slice_is(f.bytes, "hi"));
  CHECK_EQ_INT(f.next - f.start, 4);
  CHECK(!pln_wire_next(&w, &f));
  CHECK_OK(pln_wire_done(&w, engine, "Test"));
  done();
}

static void negative_numbers_take_ten_bytes(void) {
  pln_wire w =
      pln_wire_open(MESSAGE("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  pln_field f;
  CHECK(pln_wire_next(&w, &f));
  CHECK_EQ_INT(f.value, -1);
  done();
}

static void groups_are_one_field(void) {
  pln_wire w = pln_wire_open(
      MESSAGE("\x0b\x08\x01\x13\x1a\1x\x14\x0c\x10\x07")); /* nested groups */
  pln_field f;
  CHECK(pln_wire_next(&w, &f));
  CHECK_EQ_INT(f.next - f.start, 9);
  CHECK(pln_wire_next(&w, &f));
  CHECK_EQ_INT(f.value, 7);
  done();
}

static void malformed_messages_are_told_with_their_offset(void) {
  static const struct {
    const char *bytes;
    size_t size;
  } bad[] = {{"\x08", 1},
             {"\x08\xff", 2},
             {"\x12\x05hi", 4},
             {"\x15\0\0", 3},
             {"\x19\0", 2},
             {"\x00\x01", 2},
             {"\x0e\x01", 2},
             {"\x0b\x08\1", 3},
             {"\x0c", 1},
             {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10},
             {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}};
  for (size_t i = 0; i < PLN_COUNT(bad); i++) {
    pln_wire w = pln_wire_open(message(bad[i].bytes, bad[i].size));
    pln_field f;
    while (pln_wire_next(&w, &f))
      continue;
    CHECK_STATUS(pln_wire_done(&w, engine, "Test"), PLN_ERR_FORMAT);
    CHECK(pln_diag_count(engine) == 1 &&
          strstr(pln_diag_at(engine, 0)->message, "Test, byte 0: "));
    done();
  }
}

static void pieces_of_a_message_are_merged(void) {
  pln_message out, whole = MESSAGE("\x0a\2ab\x10\1\x0a\1c");
  pln_file *joined;
  bool found;
  CHECK_OK(pln_wire_merged(engine, whole, "Test", PLN_TAG(1, PLN_BYTES), &out,
                           &joined, &found));
  CHECK(found && joined && out.size == 3 && !memcmp(out.data, "abc", 3));
  pln_file_release(joined);
  CHECK_OK(pln_wire_merged(engine, whole, "Test", PLN_TAG(3, PLN_BYTES), &out,
                           &joined, &found));
  CHECK(!found && !joined && out.size == 0);
  done();
}

/* Messages in messages, with data that is not in the rope's own bytes. */
static pln_status nested(pln_engine *e, void *ud) {
  static const char data[300] = "data";
  pln_rope r;
  pln_buffer out;
  pln_open_message outer, inner;
  size_t small;
  pln_status s;
  pln_rope_init(&r, e);
  pln_buffer_init(&out, e);
  if ((s = pln_rope_begin(&r, PLN_TAG(1, PLN_BYTES), &outer)) == PLN_OK &&
      (s = pln_rope_open(&r, PLN_TAG(2, PLN_BYTES), &small)) == PLN_OK &&
      (s = pln_rope_raw(&r, data, 200)) == PLN_OK &&
      (s = pln_rope_close(&r, small)) == PLN_OK &&
      (s = pln_rope_begin(&r, PLN_TAG(3, PLN_BYTES), &inner)) == PLN_OK &&
      (s = pln_rope_segment(&r, (pln_segment){.kind = PLN_SEGMENT_DATA,
                                              .size = sizeof data,
                                              .data = data})) == PLN_OK &&
      (s = pln_rope_end(&r, inner)) == PLN_OK &&
      (s = pln_rope_end(&r, outer)) == PLN_OK &&
      (s = pln_rope_write(&r, pln_buffer_write, &out)) == PLN_OK && ud)
    *(size_t *)ud = out.size == r.size && !memcmp(out.data,
                                                  "\x0a\xfa\x03\x12\xc8\x01"
                                                  "data",
                                                  10)
                        ? out.size
                        : 0;
  pln_rope_free(&r);
  pln_buffer_free(&out);
  return s;
}

static void lengths_are_filled_in(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  size_t size = 0;
  CHECK_OK(nested(e, &size));
  CHECK_EQ_INT(size, 3 + 203 + 303);
  pln_base_free(e);
}

static void survives_lack_of_memory(void) {
  oom_sweep(nested, NULL);
}

static void a_rope_goes_back(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_rope r;
  pln_buffer out;
  pln_rope_init(&r, e);
  pln_buffer_init(&out, e);
  CHECK_OK(pln_rope_int(&r, PLN_TAG(1, PLN_VARINT), 1));
  pln_rope_mark mark = pln_rope_here(&r);
  CHECK_OK(pln_rope_int(&r, PLN_TAG(2, PLN_VARINT), 2));
  CHECK_OK(pln_rope_segment(
      &r, (pln_segment){.kind = PLN_SEGMENT_DATA, .size = 1, .data = "x"}));
  pln_rope_rewind(&r, mark);
  CHECK_OK(pln_rope_int(&r, PLN_TAG(3, PLN_VARINT), 3));
  CHECK_OK(pln_rope_write(&r, pln_buffer_write, &out));
  CHECK(out.size == 4 && !memcmp(out.data, "\x08\1\x18\3", 4));
  pln_buffer_free(&out);
  pln_rope_free(&r);
  pln_base_free(e);
}

static void repeats_and_aligns(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_rope r;
  pln_buffer out;
  pln_rope_init(&r, e);
  pln_buffer_init(&out, e);
  CHECK_OK(pln_rope_raw(&r, "a", 1));
  CHECK_OK(pln_rope_segment(
      &r, (pln_segment){.kind = PLN_SEGMENT_ALIGN, .offset = 8}));
  CHECK_OK(pln_rope_segment(&r, (pln_segment){.kind = PLN_SEGMENT_SPLAT,
                                              .size = 9998,
                                              .offset = 2,
                                              .data = "xy"}));
  CHECK_OK(pln_rope_write(&r, pln_buffer_write, &out));
  CHECK_EQ_INT(out.size, 8 + 9998);
  CHECK(out.size == r.size && !memcmp(out.data, "a\0\0\0\0\0\0\0xyxy", 12));
  CHECK(!memcmp(out.data + out.size - 4, "xyxy", 4));
  pln_buffer_free(&out);
  pln_rope_free(&r);
  pln_base_free(e);
}

static void inner_names_hide_outer_ones(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_scoped_names names;
  char text[1000][8];
  pln_scoped_names_init(&names, e);
  CHECK_EQ_INT(pln_scoped_names_find(&names, pln_text("x"), 0), PLN_NONE);
  for (uint32_t i = 0; i < 1000; i++) {
    snprintf(text[i], sizeof text[i], "v%u", i);
    CHECK_OK(pln_scoped_names_add(&names, pln_text(text[i]), i));
  }
  CHECK_OK(pln_scoped_names_add(&names, pln_text("v7"), 5000));
  CHECK_EQ_INT(pln_scoped_names_find(&names, pln_text("v7"), 0), 1000);
  CHECK_EQ_INT(pln_scoped_names_find(&names, pln_text("v8"), 1000), PLN_NONE);
  pln_scoped_names_truncate(&names, 1000);
  CHECK_EQ_INT(pln_scoped_names_find(&names, pln_text("v7"), 0), 7);
  pln_scoped_names_truncate(&names, 7);
  CHECK_EQ_INT(pln_scoped_names_find(&names, pln_text("v7"), 0), PLN_NONE);
  pln_scoped_names_free(&names);
  pln_base_free(e);
}

static const check_test tests[] = {
    {"reads each kind of field", reads_each_kind},
    {"negative numbers take ten bytes", negative_numbers_take_ten_bytes},
    {"groups are one field", groups_are_one_field},
    {"malformed messages are told with their offset",
     malformed_messages_are_told_with_their_offset},
    {"pieces of a message are merged", pieces_of_a_message_are_merged},
    {"lengths are filled in", lengths_are_filled_in},
    {"survives lack of memory", survives_lack_of_memory},
    {"a rope goes back to a mark", a_rope_goes_back},
    {"repeats and aligns", repeats_and_aligns},
    {"inner names hide outer ones", inner_names_hide_outer_ones}};
CHECK_MAIN(tests)
