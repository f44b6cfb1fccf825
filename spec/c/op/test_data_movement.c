/* test_data_movement.c: elements that are moved, beside the plainest loops:
 * transposed in all ways, gathered along any axis, padded and cropped; softmax
 * along any axis, whose elements are walked alike. */

#include "kernel_call.h"

#include <math.h>

enum { AXES = 3, MOST = 40 * 40 * 40 };
static pln_engine *engine;
static uint8_t data[8 * MOST];

static const pln_dtype dtypes[] = {PLN_UINT8, PLN_FLOAT16, PLN_FLOAT32,
                                   PLN_INT64};

/* All bytes differ from their neighbours. */
static void make_data(void) {
  engine = pln_engine_new(NULL, NULL);
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (uint8_t)(i * 89 + i / 251);
}

/* -------------------------------------------------------------- transpose */

static size_t source_of(const int64_t *dims, const int64_t *perm, size_t i) {
  size_t at[AXES], rest = i;
  for (int k = AXES; k-- > 0; rest /= (size_t)dims[perm[k]])
    at[perm[k]] = rest % (size_t)dims[perm[k]];
  return (at[0] * (size_t)dims[1] + at[1]) * (size_t)dims[2] + at[2];
}

static void transpose(pln_dtype dtype, const int64_t *dims,
                      const int64_t *perm) {
  size_t size = pln_dtype_bits(dtype) / 8;
  pln_attr attr = one_ints(engine, "axes", AXES, perm);
  pln_tensor *arg = one_tensor(engine, dtype, AXES, dims, data);
  pln_tensor *out = one_call(engine, "transpose", 1, &attr, 1, &arg);
  const uint8_t *got = out->data;
  bool same = true;
  for (size_t i = 0; i < out->count; i++)
    same = same && !memcmp(got + i * size,
                           data + source_of(dims, perm, i) * size, size);
  if (!CHECK(same))
    printf("# %s, perm %d %d %d\n", pln_dtype_name(dtype), (int)perm[0],
           (int)perm[1], (int)perm[2]);
  pln_tensor_release(out);
}

static void transposes(void) {
  static const int64_t perms[][AXES] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  static const int64_t extents[] = {1, 3, 16, 37};
  make_data();
  for (int d = 0; d < 4; d++)
    for (int p = 0; p < 6; p++)
      for (int s = 0; s < 64; s++) {
        int64_t dims[] = {extents[s / 16], extents[s / 4 % 4], extents[s % 4]};
        transpose(dtypes[d], dims, perms[p]);
      }
  pln_engine_free(engine);
}

/* ----------------------------------------------------------------- gather */

static void gather(pln_dtype dtype, const int64_t *dims, int axis) {
  static int64_t indices[MOST];
  size_t size = pln_dtype_bits(dtype) / 8, n = 1;
  int64_t shape[AXES];
  memcpy(shape, dims, sizeof shape);
  shape[axis] = 7;
  for (int k = 0; k < AXES; k++)
    n *= (size_t)shape[k];
  for (size_t i = 0; i < n; i++)
    indices[i] =
        (int64_t)(i * 31 % 101) % dims[axis] - (i % 5 ? 0 : dims[axis]);
  pln_attr attr = one_int(engine, "axis", axis);
  pln_tensor *args[] = {one_tensor(engine, dtype, AXES, dims, data),
                        one_tensor(engine, PLN_INT64, AXES, shape, indices)};
  pln_tensor *out = one_call(engine, "gather", 1, &attr, 2, args);
  const uint8_t *got = out->data;
  bool same = true;
  for (size_t i = 0; i < n; i++) {
    int64_t at[AXES] = {(int64_t)i / shape[2] / shape[1],
                        (int64_t)i / shape[2] % shape[1],
                        (int64_t)i % shape[2]};
    at[axis] = indices[i] + (indices[i] < 0 ? dims[axis] : 0);
    size_t from = (size_t)((at[0] * dims[1] + at[1]) * dims[2] + at[2]);
    same = same && !memcmp(got + i * size, data + from * size, size);
  }
  if (!CHECK(same))
    printf("# %s, axis %d\n", pln_dtype_name(dtype), axis);
  pln_tensor_release(out);
}

static void gathers(void) {
  static const int64_t dims[] = {5, 6, 37};
  make_data();
  for (int d = 0; d < 4; d++)
    for (int axis = 0; axis < AXES; axis++)
      gather(dtypes[d], dims, axis);
  pln_engine_free(engine);
}

/* -------------------------------------------------------------------- pad */

/* -1: no element of the operand. */
static int64_t inside(const char *mode, int64_t at, int64_t extent,
                      int64_t before, int64_t after) {
  int64_t low = before < 0 ? -before : 0,
          end = extent + (after < 0 ? after : 0);
  if (!strcmp(mode, "wrap")) { /* what a negative width cuts off is gone */
    while (at < low || at >= end)
      at += at < low ? end - low : low - end;
    return at;
  }
  if (!strcmp(mode, "constant"))
    return at < 0 || at >= extent ? -1 : at;
  if (!strcmp(mode, "edge"))
    return at < 0 ? 0 : at >= extent ? extent - 1 : at;
  while (at < 0 || at >= extent)
    at = at < 0 ? -at : 2 * (extent - 1) - at;
  return at;
}

static void pad(pln_dtype dtype, const char *mode, int64_t before,
                int64_t after) {
  static const int64_t dims[] = {4, 19};
  static const uint8_t zero[8] = {0};
  int64_t pads[] = {before, after, after, before}, four = 4;
  size_t size = pln_dtype_bits(dtype) / 8;
  pln_attr attr = one_string(engine, "pad_mode", mode);
  pln_tensor *args[] = {one_tensor(engine, dtype, 2, dims, data),
                        one_tensor(engine, PLN_INT64, 1, &four, pads)};
  pln_tensor *out = one_call(engine, "nn.pad", 1, &attr, 2, args);
  const uint8_t *got = out->data;
  bool same = true;
  for (size_t i = 0; i < out->count; i++) {
    int64_t width = out->dims[1];
    int64_t r =
        inside(mode, (int64_t)i / width - before, dims[0], before, after);
    int64_t c =
        inside(mode, (int64_t)i % width - after, dims[1], after, before);
    const uint8_t *want =
        r < 0 || c < 0 ? zero : data + (size_t)(r * dims[1] + c) * size;
    same = same && !memcmp(got + i * size, want, size);
  }
  if (!CHECK(same))
    printf("# %s, %s, %d %d\n", pln_dtype_name(dtype), mode, (int)before,
           (int)after);
  pln_tensor_release(out);
}

static void pads(void) {
  static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
  make_data();
  for (int d = 0; d < 4; d++)
    for (int m = 0; m < 4; m++)
      for (int64_t before = -1; before < 3; before++)
        for (int64_t after = -1; after < 3; after++)
          pad(dtypes[d], modes[m], before, after);
  pln_engine_free(engine);
}

/* ---------------------------------------------------------------- softmax */

static void softmax(const int64_t *dims, int axis) {
  static float x[MOST];
  size_t count = (size_t)(dims[0] * dims[1] * dims[2]), step = 1;
  for (size_t i = 0; i < count; i++)
    x[i] = (float)(i * 37 % 101) * 0.21f - 9;
  for (int k = AXES; k-- > axis + 1;)
    step *= (size_t)dims[k];
  pln_attr attr = one_int(engine, "axis", axis);
  pln_tensor *arg = one_tensor(engine, PLN_FLOAT32, AXES, dims, x);
  pln_tensor *same = pln_tensor_retain(arg);
  pln_tensor *out = one_call(engine, "nn.softmax", 1, &attr, 1, &arg);
  pln_tensor *log_out = one_call(engine, "nn.log_softmax", 1, &attr, 1, &same);
  const float *got = out->data, *log_got = log_out->data;
  bool good = true;
  for (size_t i = 0; i < count; i++) {
    size_t n = (size_t)dims[axis], base = i - i / step % n * step;
    double sum = 0;
    for (size_t k = 0; k < n; k++)
      sum += exp((double)x[base + k * step]);
    double want = exp((double)x[i]) / sum;
    good = good && fabs((double)got[i] - want) < 3e-6 * want &&
           fabs((double)log_got[i] - log(want)) < 4e-6;
  }
  if (!CHECK(good))
    printf("# (%d, %d, %d), axis %d\n", (int)dims[0], (int)dims[1],
           (int)dims[2], axis);
  pln_tensor_release(out);
  pln_tensor_release(log_out);
}

static void softmaxes(void) {
  static const int64_t shapes[][AXES] = {{2, 3, 5},   {1, 130, 7},
                                         {3, 5, 200}, {2, 2, 9000},
                                         {1, 1, 1},   {17, 33, 1}};
  engine = pln_engine_new(NULL, NULL);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int axis = 0; axis < AXES; axis++)
      softmax(shapes[i], axis);
  pln_engine_free(engine);
}

static const check_test tests[] = {
    {"transposes", transposes},
    {"elements gathered along an axis", gathers},
    {"padding and cropping", pads},
    {"softmax and its logarithm", softmaxes},
};
CHECK_MAIN(tests)
