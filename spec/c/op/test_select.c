/* test_select.c: elements that are chosen by what they are, beside the plainest
 * loops: nonzero, topk. Tensors are larger than the blocks of the kernels. */

#include "kernel_call.h"

enum { AXES = 3, MOST = 4 * 700 * 3 };
static pln_engine *engine;
static const pln_dtype dtypes[] = {PLN_BOOL,    PLN_INT8,    PLN_INT64,
                                   PLN_FLOAT16, PLN_FLOAT32, PLN_FLOAT64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* Small integers, with many equals and zeros. */
static int number(size_t i) {
  return (int)(i * 7919 % 113 % 9) - 4;
}

static pln_tensor *make(pln_dtype dtype, const int64_t *dims) {
  static uint64_t data[MOST];
  for (size_t i = 0; i < (size_t)(dims[0] * dims[1] * dims[2]); i++) {
    int x = number(i);
    switch ((int)dtype) {
    case PLN_BOOL: ((uint8_t *)data)[i] = x > 0; break;
    case PLN_INT8: ((int8_t *)data)[i] = (int8_t)x; break;
    case PLN_INT64: ((int64_t *)data)[i] = x; break;
    case PLN_FLOAT16:
      ((uint16_t *)data)[i] = pln_float_to_half((float)x);
      break;
    case PLN_FLOAT32: ((float *)data)[i] = x ? (float)x : -0.0f; break;
    default: ((double *)data)[i] = x; break;
    }
  }
  return one_tensor(engine, dtype, AXES, dims, data);
}

static const int64_t shapes[][AXES] = {
    {1, 1, 1300}, {4, 700, 3}, {3, 2, 600}, {1300, 1, 1}, {2, 0, 3}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---------------------------------------------------------------- nonzero */

static void nonzero(pln_dtype dtype, const int64_t *dims) {
  pln_tensor *arg = make(dtype, dims);
  pln_tensor *out = one_call(engine, "nonzero", 0, NULL, 1, &arg);
  const int64_t *got = out->data;
  int64_t all = dims[0] * dims[1] * dims[2], n = out->dims[1], found = 0;
  bool same = out->dims[0] == AXES;
  for (int64_t i = 0; i < all; i++) {
    int x = number((size_t)i);
    if (dtype == PLN_BOOL ? x <= 0 : x == 0)
      continue;
    same = same && found < n && got[found] == i / dims[2] / dims[1] &&
           got[n + found] == i / dims[2] % dims[1] &&
           got[2 * n + found] == i % dims[2];
    found++;
  }
  CHECK(same && found == n);
  pln_tensor_release(out);
}

static void nonzeros(void) {
  engine = pln_engine_new(NULL, NULL);
  for (int d = 0; d < DTYPES; d++)
    for (int s = 0; s < SHAPES; s++)
      nonzero(dtypes[d], shapes[s]);
  pln_engine_free(engine);
}

/* ------------------------------------------------------------------- topk */

/* How many elements of a lane come before its element `i`. */
static int64_t rank_of(size_t base, size_t step, int64_t n, int64_t i,
                       bool largest) {
  int64_t rank = 0;
  int own = number(base + (size_t)i * step);
  for (int64_t k = 0; k < n; k++) {
    int other = number(base + (size_t)k * step);
    rank += largest ? other > own : other < own;
    rank += other == own && k < i;
  }
  return rank;
}

/* Where the elements of each lane that are among the first k should be. */
static void topk(pln_dtype dtype, const int64_t *dims, int axis, bool largest) {
  int64_t n = dims[axis], one = 1, k = n < 20 ? n : 20, step = 1;
  for (int a = AXES; a-- > axis + 1;)
    step *= dims[a];
  pln_attr attrs[] = {one_int(engine, "axis", axis),
                      one_int(engine, "largest", largest)};
  pln_tensor *args[] = {make(dtype, dims),
                        one_tensor(engine, PLN_INT64, 1, &one, &k)};
  pln_tensor *out[2];
  one_calls(engine, "topk", 2, attrs, 2, args, 2, out);
  const int64_t *places = out[1]->data;
  bool same = true;
  for (int64_t i = 0; i < dims[0] * dims[1] * dims[2]; i++) {
    int64_t lane = i / (n * step), at = i / step % n, inner = i % step;
    int64_t base = lane * n * step + inner;
    int64_t rank = rank_of((size_t)base, (size_t)step, n, at, largest);
    same =
        same && (rank >= k || places[(lane * k + rank) * step + inner] == at);
  }
  if (!CHECK(same))
    printf("# %s, axis %d\n", pln_dtype_name(dtype), axis);
  pln_tensor_release(out[0]);
  pln_tensor_release(out[1]);
}

static void topks(void) {
  static const int64_t dims[] = {3, 2, 600};
  engine = pln_engine_new(NULL, NULL);
  for (int d = 1; d < DTYPES; d++)
    for (int axis = 0; axis < AXES; axis++) {
      topk(dtypes[d], dims, axis, true);
      topk(dtypes[d], dims, axis, false);
    }
  pln_engine_free(engine);
}

static const check_test tests[] = {
    {"nonzero", nonzeros},
    {"topk, equals in order", topks},
};
CHECK_MAIN(tests)
