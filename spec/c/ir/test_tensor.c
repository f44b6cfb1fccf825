/* test_tensor.c: dtypes, tensors, views, external data, half floats. */

#include <math.h>
#include <unistd.h>

#include "ir/tensor/tensor.h"

#define OOM_ENGINE_NEW pln_base_new
#define OOM_ENGINE_FREE pln_base_free
#include "oom.h"

static const int64_t two_by_three[] = {2, 3};

static const void *data_of(const pln_tensor *t) {
  const void *data = NULL;
  CHECK_OK(pln_tensor_data(t, &data));
  return data;
}

static void dtypes_have_names(void) {
  for (uint32_t i = 1; i < PLN_N_DTYPES; i++) {
    const char *name = pln_dtype_name((pln_dtype)i);
    CHECK_EQ_INT(pln_dtype_find(pln_text(name)), i);
    CHECK(pln_dtype_bits((pln_dtype)i) >= 2);
  }
  CHECK_STR(pln_dtype_name(PLN_DTYPE_NONE), "?");
  CHECK_STR(pln_dtype_name((pln_dtype)99), "?");
  CHECK_EQ_INT(pln_dtype_find(pln_text("?")), PLN_DTYPE_NONE);
  CHECK_EQ_INT(pln_dtype_find(pln_text("float")), PLN_DTYPE_NONE);
  CHECK_EQ_INT(pln_dtype_bits(PLN_INT4), 4);
}

static void new_tensors_are_zero_and_aligned(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_tensor *t;
  REQUIRE_OK(pln_tensor_new(e, PLN_FLOAT32, 2, two_by_three, &t));
  CHECK_EQ_INT(pln_tensor_count(t), 6);
  CHECK_EQ_INT(pln_tensor_bytes(t), 24);
  CHECK_EQ_INT(pln_tensor_rank(t), 2);
  CHECK_EQ_INT(pln_tensor_dims(t)[1], 3);
  CHECK_EQ_INT((uintptr_t)data_of(t) % 64, 0);
  float *x = pln_tensor_writable(t);
  REQUIRE(x);
  for (int i = 0; i < 6; i++)
    CHECK(x[i] == 0);
  pln_tensor *same = pln_tensor_retain(t);
  CHECK(!pln_tensor_writable(t));
  pln_tensor_release(same);
  CHECK(pln_tensor_writable(t));
  pln_tensor_release(t);
  pln_base_free(e);
}

static void size_is(pln_dtype dtype, int64_t a, int64_t b, int64_t bytes) {
  const int64_t dims[] = {a, b};
  size_t count, size;
  pln_status status = pln_tensor_size(dtype, 2, dims, &count, &size);
  CHECK_STATUS(status, bytes < 0 ? PLN_ERR_ARGUMENT : PLN_OK);
  if (status == PLN_OK)
    CHECK_EQ_INT(size, bytes);
}

static void sizes_are_checked(void) {
  size_is(PLN_FLOAT64, 3, 5, 120);
  size_is(PLN_INT4, 3, 5, 8);
  size_is(PLN_UINT2, 3, 5, 4);
  size_is(PLN_UINT8, 0, INT64_MAX, 0);
  size_is(PLN_UINT8, INT64_MAX, 0, 0);
  size_is(PLN_UINT8, INT64_MAX, INT64_MAX, -1);
  size_is(PLN_UINT8, (int64_t)1 << 32, (int64_t)1 << 32, -1);
  size_is(PLN_UINT8, INT64_MAX / 16, 1, INT64_MAX / 16);
  size_is(PLN_UINT8, INT64_MAX / 16 + 1, 1, -1);
  size_is(PLN_FLOAT32, -1, 0, -1);
  size_is(PLN_DTYPE_NONE, 1, 1, -1);
  pln_engine *e = pln_base_new(NULL, NULL);
  const int64_t huge[] = {INT64_MAX, 2};
  pln_tensor *t;
  CHECK_STATUS(pln_tensor_new(e, PLN_INT8, 2, huge, &t), PLN_ERR_ARGUMENT);
  CHECK_STATUS(pln_tensor_from_bytes(e, PLN_INT8, 0, NULL, "ab", 2, &t),
               PLN_ERR_ARGUMENT);
  pln_base_free(e);
}

static pln_tensor *make(pln_engine *e, pln_dtype dtype, int64_t n,
                        const void *data, size_t size) {
  pln_tensor *t = NULL;
  CHECK_OK(pln_tensor_from_bytes(e, dtype, 1, &n, data, size, &t));
  return t;
}

static void int_is(pln_dtype dtype, const void *data, size_t size, size_t n,
                   size_t index, int64_t wanted) {
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_tensor *t = make(e, dtype, (int64_t)n, data, size);
  int64_t got = 12345;
  REQUIRE(t);
  CHECK(pln_tensor_int(t, index, &got));
  CHECK_EQ_INT(got, wanted);
  CHECK(!pln_tensor_int(t, n, &got));
  pln_tensor_release(t);
  pln_base_free(e);
}

static void integers_are_read(void) {
  int_is(PLN_INT8, "\x01\xff", 2, 2, 1, -1);
  int_is(PLN_UINT8, "\x01\xff", 2, 2, 1, 255);
  int_is(PLN_BOOL, "\x00\x02", 2, 2, 1, 1);
  int_is(PLN_INT16, "\0\0\xfe\xff", 4, 2, 1, -2);
  int_is(PLN_UINT16, "\0\0\xfe\xff", 4, 2, 1, 65534);
  int_is(PLN_INT32, "\xfd\xff\xff\xff", 4, 1, 0, -3);
  int_is(PLN_UINT32, "\xfd\xff\xff\xff", 4, 1, 0, 4294967293);
  int_is(PLN_INT64, "\0\0\0\0\0\0\0\x80", 8, 1, 0, INT64_MIN);
  int_is(PLN_UINT4, "\x21\xf3", 2, 4, 1, 2);
  int_is(PLN_INT4, "\x21\xf3", 2, 4, 3, -1);
  int_is(PLN_INT4, "\x21\x83", 2, 3, 2, 3);
  int_is(PLN_UINT2, "\xe4", 1, 4, 3, 3);
  int_is(PLN_INT2, "\xe4", 1, 4, 2, -2);
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_tensor *t = make(e, PLN_UINT64, 1, "\0\0\0\0\0\0\0\x80", 8);
  int64_t value;
  CHECK(!pln_tensor_int(t, 0, &value));
  pln_tensor_release(t);
  t = make(e, PLN_FLOAT32, 1, "\0\0\0\0", 4);
  CHECK(!pln_tensor_int(t, 0, &value));
  pln_tensor_release(t);
  pln_base_free(e);
}

static pln_tensor *splat(pln_engine *e, float value, int64_t n) {
  pln_tensor *t = NULL;
  CHECK_OK(pln_tensor_splat(e, PLN_FLOAT32, 1, &n, &value, &t));
  return t;
}

static void splats_equal_what_they_stand_for(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  const float ones[5] = {1, 1, 1, 1, 1};
  pln_tensor *dense = make(e, PLN_FLOAT32, 5, ones, sizeof ones), *written;
  pln_tensor *one = splat(e, 1, 5), *two = splat(e, 2, 5);
  pln_tensor *large = splat(e, 1, 1 << 30), *again = splat(e, 1, 1 << 30);
  CHECK(pln_tensor_is_splat(one) && !pln_tensor_is_splat(dense));
  CHECK(pln_tensor_equal(one, dense) && pln_tensor_equal(dense, one));
  CHECK_EQ_INT(pln_tensor_hash(one), pln_tensor_hash(dense));
  CHECK(!pln_tensor_equal(one, two));
  CHECK(pln_tensor_equal(large, again));
  CHECK_EQ_INT(pln_tensor_hash(large), pln_tensor_hash(again));
  CHECK_EQ_INT(pln_tensor_bytes(large), (int64_t)4 << 30);
  CHECK(pln_engine_memory(e, NULL) < 1 << 20);
  REQUIRE_OK(pln_tensor_dense(two, &written));
  CHECK(!pln_tensor_is_splat(written) && pln_tensor_equal(written, two));
  CHECK(((const float *)data_of(written))[4] == 2);
  CHECK_STATUS(
      pln_tensor_splat(e, PLN_DTYPE_NONE, 2, two_by_three, "x", &written),
      PLN_ERR_ARGUMENT);
  pln_tensor *all[] = {dense, written, one, two, large, again};
  for (size_t i = 0; i < PLN_COUNT(all); i++)
    pln_tensor_release(all[i]);
  pln_base_free(e);
}

static void strings_are_copied(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  char text[] = "hello";
  pln_slice s[] = {{text, 5}, {NULL, 0}, {"a\0b", 3}};
  pln_tensor *t = make(e, PLN_STRING, 3, s, sizeof s);
  pln_tensor *u = make(e, PLN_STRING, 3, s, sizeof s);
  REQUIRE(t && u);
  CHECK(pln_tensor_equal(t, u));
  CHECK_EQ_INT(pln_tensor_hash(t), pln_tensor_hash(u));
  text[0] = 'j';
  pln_tensor *v = make(e, PLN_STRING, 3, s, sizeof s);
  CHECK(!pln_tensor_equal(t, v));
  const pln_slice *got = data_of(t);
  CHECK(pln_slice_is(got[0], "hello") && got[1].size == 0 && got[2].size == 3);
  CHECK(!pln_tensor_writable(t));
  pln_tensor_release(t);
  pln_tensor_release(u);
  pln_tensor_release(v);
  pln_base_free(e);
}

static void equality_is_by_content_or_place(void) {
  static const char zeros[4096];
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_tensor *small = make(e, PLN_INT8, 1024, zeros, 1024);
  pln_tensor *other = make(e, PLN_INT8, 1024, zeros, 1024);
  pln_tensor *large = make(e, PLN_INT8, 1025, zeros, 1025);
  pln_tensor *twin = make(e, PLN_INT8, 1025, zeros, 1025);
  pln_tensor *wide = make(e, PLN_INT16, 512, zeros, 1024);
  CHECK(pln_tensor_equal(small, other));
  CHECK(!pln_tensor_equal(small, wide));
  CHECK(pln_tensor_equal(large, large) && !pln_tensor_equal(large, twin));
  pln_tensor *nan = make(e, PLN_FLOAT32, 1, "\0\0\xc0\x7f", 4);
  pln_tensor *same = make(e, PLN_FLOAT32, 1, "\0\0\xc0\x7f", 4);
  CHECK(pln_tensor_equal(nan, same));
  pln_tensor *all[] = {small, other, large, twin, wide, nan, same};
  for (size_t i = 0; i < PLN_COUNT(all); i++)
    pln_tensor_release(all[i]);
  pln_base_free(e);
}

static void views_pin_their_file(void) {
  static char bytes[4000];
  const int64_t n = 1500;
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_file *file;
  pln_tensor *a, *b, *c, *bad;
  REQUIRE_OK(
      pln_file_copy(e, (pln_slice){bytes, sizeof bytes}, "m.onnx", &file));
  REQUIRE_OK(pln_tensor_view(e, PLN_INT8, 1, &n, file, 1, 1500, &a));
  REQUIRE_OK(pln_tensor_view(e, PLN_INT8, 1, &n, file, 1, 1500, &b));
  REQUIRE_OK(pln_tensor_view(e, PLN_INT8, 1, &n, file, 2, 1500, &c));
  CHECK_STATUS(pln_tensor_view(e, PLN_INT8, 1, &n, file, 1, 1499, &bad),
               PLN_ERR_FORMAT);
  CHECK_STATUS(pln_tensor_view(e, PLN_INT8, 1, &n, file, 2501, 1500, &bad),
               PLN_ERR_FORMAT);
  CHECK_STATUS(
      pln_tensor_view(e, PLN_INT8, 1, &n, file, UINT64_MAX, 1500, &bad),
      PLN_ERR_FORMAT);
  pln_file_release(file);
  CHECK(pln_tensor_equal(a, b) && !pln_tensor_equal(a, c));
  CHECK_EQ_INT(pln_tensor_hash(a), pln_tensor_hash(b));
  CHECK(!pln_tensor_writable(a));
  CHECK(data_of(c) == (const char *)data_of(a) + 1);
  pln_tensor_release(a);
  pln_tensor_release(b);
  pln_tensor_release(c);
  pln_base_free(e);
}

static void reshaped_tensors_share_their_elements(void) {
  static const int64_t six = 6, three_by_two[] = {3, 2};
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_tensor *t, *flat, *again, *bad;
  REQUIRE_OK(pln_tensor_new(e, PLN_FLOAT32, 2, two_by_three, &t));
  const void *data = data_of(t);
  REQUIRE_OK(pln_tensor_reshaped(t, 1, &six, &flat));
  CHECK(!pln_tensor_writable(t)); /* somebody else reads it */
  CHECK_STATUS(pln_tensor_reshaped(t, 2, (int64_t[]){2, 2}, &bad),
               PLN_ERR_ARGUMENT);
  pln_tensor_release(t);
  REQUIRE_OK(pln_tensor_reshaped(flat, 2, three_by_two, &again));
  pln_tensor_release(flat);
  CHECK(data_of(again) == data);
  CHECK(!pln_tensor_writable(again));
  CHECK_EQ_INT(pln_tensor_dims(again)[0], 3);
  pln_tensor_release(again);
  pln_base_free(e);
}

static void splats_are_reshaped_to_splats(void) {
  static const int64_t six = 6;
  const float one = 1;
  pln_engine *e = pln_base_new(NULL, NULL);
  pln_tensor *t, *flat, *dense;
  REQUIRE_OK(pln_tensor_splat(e, PLN_FLOAT32, 2, two_by_three, &one, &t));
  REQUIRE_OK(pln_tensor_reshaped(t, 1, &six, &flat));
  pln_tensor_release(t);
  CHECK(pln_tensor_is_splat(flat));
  REQUIRE_OK(pln_tensor_dense(flat, &dense));
  CHECK(((const float *)data_of(dense))[5] == 1);
  pln_tensor_release(flat);
  pln_tensor_release(dense);
  pln_base_free(e);
}

static pln_symbol symbol(pln_engine *e, const char *text) {
  pln_symbol id = 0;
  CHECK_OK(pln_symbol_intern(e, pln_text(text), &id));
  return id;
}

/* `length` bytes at `offset` of a file of 64 bytes, as 8 int32. */
static void external(pln_engine *e, const char *folder, const char *name,
                     uint64_t offset, uint64_t length, pln_status wanted) {
  const int64_t n = 8;
  pln_external where = {.directory = folder ? symbol(e, folder) : 0,
                        .location = symbol(e, name),
                        .offset = offset,
                        .length = length};
  pln_tensor *t;
  const void *data;
  REQUIRE_OK(pln_tensor_external(e, PLN_INT32, 1, &n, &where, &t));
  CHECK_STATUS(pln_tensor_data(t, &data), wanted);
  if (wanted == PLN_OK)
    CHECK_EQ_INT(((const char *)data)[1], (char)(offset + 1));
  CHECK_EQ_INT(pln_tensor_hash(t), pln_tensor_hash(t));
  pln_tensor_release(t);
}

static void external_data_is_opened_when_read(void) {
  pln_engine *e = pln_base_new(NULL, NULL);
  char folder[] = "/tmp/perilune-test-XXXXXX", path[64];
  REQUIRE(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/w.bin", folder);
  FILE *f = fopen(path, "wb");
  REQUIRE(f);
  for (int i = 0; i < 64; i++)
    fputc(i, f);
  fclose(f);
  external(e, folder, "w.bin", 5, UINT64_MAX, PLN_OK);
  external(e, folder, "w.bin", 32, 32, PLN_OK);
  external(e, folder, "w.bin", 33, 32, PLN_ERR_FORMAT);
  external(e, folder, "w.bin", UINT64_MAX, 32, PLN_ERR_FORMAT);
  external(e, folder, "w.bin", 0, 31, PLN_ERR_FORMAT);
  external(e, folder, "../w.bin", 0, 32, PLN_ERR_FORMAT);
  external(e, folder, "x.bin", 0, 32, PLN_ERR_IO);
  external(e, NULL, "w.bin", 0, 32, PLN_ERR_IO);
  unlink(path);
  rmdir(folder);
  pln_base_free(e);
}

static pln_status make_tensors(pln_engine *e, void *ud) {
  (void)ud;
  pln_slice strings[] = {{"a", 1}, {"bc", 2}};
  const int64_t two = 2;
  float x = 3;
  pln_tensor *t, *dense;
  PLN_TRY(pln_tensor_new(e, PLN_FLOAT32, 2, two_by_three, &t));
  pln_tensor_release(t);
  PLN_TRY(pln_tensor_from_bytes(e, PLN_STRING, 1, &two, strings, sizeof strings,
                                &t));
  pln_tensor_release(t);
  PLN_TRY(pln_tensor_splat(e, PLN_FLOAT32, 1, &two, &x, &t));
  pln_status status = pln_tensor_dense(t, &dense);
  pln_tensor_release(t);
  PLN_TRY(status);
  pln_tensor_release(dense);
  return PLN_OK;
}

static void tensors_survive_oom(void) {
  oom_sweep(make_tensors, NULL);
}

/* The nearest half by search: an oracle that knows no bit tricks. */
static uint16_t nearest_half(double x) {
  if (fabs(x) >= 65520)
    return x < 0 ? 0xfc00 : 0x7c00;
  uint16_t best = 0;
  uint32_t low = 0, high = 0x7bff;
  while (low < high) {
    uint32_t middle = (low + high + 1) / 2;
    if ((double)pln_half_to_float((uint16_t)middle) <= fabs(x))
      low = middle;
    else
      high = middle - 1;
  }
  best = (uint16_t)low;
  if (low < 0x7bff) {
    double below = fabs(x) - (double)pln_half_to_float((uint16_t)low);
    double above = (double)pln_half_to_float((uint16_t)(low + 1)) - fabs(x);
    best = (uint16_t)(low + (above < below || (above == below && low % 2)));
  } else if (fabs(x) > 65504 + 16) {
    best = 0x7c00;
  }
  return (uint16_t)(best | (signbit(x) ? 0x8000 : 0));
}

static void halves_round_to_even(void) {
  bool good = true;
  for (uint32_t h = 0; h < 65536; h++) {
    float x = pln_half_to_float((uint16_t)h);
    good &= isnan(x) ? (h & 0x7fff) > 0x7c00 &&
                           isnan(pln_half_to_float(pln_float_to_half(x)))
                     : pln_float_to_half(x) == h;
  }
  CHECK(good);
  for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 40503) {
    float x;
    uint32_t word = (uint32_t)bits;
    memcpy(&x, &word, sizeof x);
    if (!isnan(x))
      good &= pln_float_to_half(x) == nearest_half((double)x);
  }
  CHECK(good);
  CHECK_EQ_INT(pln_float_to_half(1), 0x3c00);
  CHECK_EQ_INT(pln_float_to_half(-2), 0xc000);
  CHECK_EQ_INT(pln_float_to_half(65504), 0x7bff);
  CHECK_EQ_INT(pln_float_to_half(65519.99f), 0x7bff);
  CHECK_EQ_INT(pln_float_to_half(65520), 0x7c00);
  CHECK_EQ_INT(pln_float_to_half(0x1p-24f), 1);
  CHECK_EQ_INT(pln_float_to_half(0x1p-25f), 0);
  CHECK_EQ_INT(pln_float_to_half(0x1.8p-25f), 1);
  CHECK_EQ_INT(pln_float_to_half(1 + 0x1p-11f), 0x3c00);
  CHECK_EQ_INT(pln_float_to_half(1 + 0x1.8p-10f), 0x3c02);
}

static void bfloats_round_to_even(void) {
  bool good = true;
  for (uint32_t b = 0; b < 65536; b++) {
    float x = pln_bfloat_to_float((uint16_t)b);
    good &= isnan(x) ? isnan(pln_bfloat_to_float(pln_float_to_bfloat(x))) != 0
                     : pln_float_to_bfloat(x) == b;
  }
  CHECK(good);
  CHECK_EQ_INT(pln_float_to_bfloat(1), 0x3f80);
  CHECK_EQ_INT(pln_float_to_bfloat(1 + 0x1p-8f), 0x3f80);
  CHECK_EQ_INT(pln_float_to_bfloat(1 + 0x1.8p-7f), 0x3f82);
  CHECK_EQ_INT(pln_float_to_bfloat(0x1.fffffep127f), 0x7f80);
}

static const check_test tests[] = {
    {"dtypes have names", dtypes_have_names},
    {"new tensors are zero and aligned", new_tensors_are_zero_and_aligned},
    {"sizes are checked", sizes_are_checked},
    {"integers of every width are read", integers_are_read},
    {"splats equal what they stand for", splats_equal_what_they_stand_for},
    {"strings are copied", strings_are_copied},
    {"equality is by content or place", equality_is_by_content_or_place},
    {"views pin their file", views_pin_their_file},
    {"reshaped tensors share their elements",
     reshaped_tensors_share_their_elements},
    {"splats are reshaped to splats", splats_are_reshaped_to_splats},
    {"external data is opened when read", external_data_is_opened_when_read},
    {"tensors survive lack of memory", tensors_survive_oom},
    {"float16 rounds to even", halves_round_to_even},
    {"bfloat16 rounds to even", bfloats_round_to_even},
};
CHECK_MAIN(tests)
