/* test_reduce.c: reductions over any axes of tensors of any extents beside the
 * plainest loops: sums and extremes of floats and integers, places of extremes.
 */

#include "check.h"

#include <math.h>

#include "eval/call.h"
#include "ir/tensor/tensor.h"

enum { AXES = 3, MOST = 3 * 40 * 40 };
static pln_engine *engine;

typedef struct sample {
  int64_t dims[AXES];
  unsigned axes; /* a bit each */
  const char *op;
  pln_dtype dtype;
} sample;

static size_t elements(const sample *s) {
  return (size_t)(s->dims[0] * s->dims[1] * s->dims[2]);
}

/* Element i, in all dtypes; where `special`, some are NaN and whole rows of 40
 * are infinite. */
static double number(size_t i, bool special) {
  size_t row = i / 40 % 7;
  if (special && i % 97 == 13)
    return (double)NAN;
  if (special && (row == 2 || row == 4))
    return row == 2 ? (double)INFINITY : -(double)INFINITY;
  return (double)(i * 29 % 31) - 11;
}

static void put(pln_dtype dtype, void *data, size_t i, double x) {
  if (dtype == PLN_FLOAT32)
    ((float *)data)[i] = (float)x;
  else if (dtype == PLN_FLOAT64)
    ((double *)data)[i] = x;
  else if (dtype == PLN_FLOAT16)
    ((uint16_t *)data)[i] = pln_float_to_half((float)x);
  else if (dtype == PLN_INT32)
    ((int32_t *)data)[i] = (int32_t)x;
  else
    ((int8_t *)data)[i] = (int8_t)x;
}

static double get(pln_dtype dtype, const void *data, size_t i) {
  if (dtype == PLN_FLOAT32)
    return (double)((const float *)data)[i];
  if (dtype == PLN_FLOAT64)
    return ((const double *)data)[i];
  if (dtype == PLN_FLOAT16)
    return (double)pln_half_to_float(((const uint16_t *)data)[i]);
  if (dtype == PLN_INT64)
    return (double)((const int64_t *)data)[i];
  return dtype == PLN_INT32 ? (double)((const int32_t *)data)[i]
                            : (double)((const int8_t *)data)[i];
}

static pln_attrs make_attrs(const sample *s) {
  pln_attr list[1] = {{0}};
  pln_attrs out = 0;
  int64_t axes[AXES];
  uint32_t n = 0;
  for (int i = 0; i < AXES; i++)
    if (s->axes >> i & 1)
      axes[n++] = i;
  bool place = !strncmp(s->op, "arg", 3);
  CHECK_OK(pln_symbol_intern(engine, pln_text(place ? "axis" : "axes"),
                             &list[0].name));
  list[0].kind = place ? PLN_ATTR_INT : PLN_ATTR_INTS;
  if (place) {
    list[0].v.i = axes[0];
  } else {
    list[0].count = n;
    list[0].v.ints = axes;
  }
  CHECK_OK(pln_attrs_make(engine, 1, list, &out));
  return out;
}

static pln_tensor *compute(const sample *s, const void *data) {
  pln_builder *b;
  pln_ref arg = PLN_NONE, node = PLN_NONE;
  pln_tensor *in = NULL, *out = NULL;
  size_t size = elements(s) * pln_dtype_bits(s->dtype) / 8;
  CHECK_OK(pln_builder_new(engine, &b));
  CHECK_OK(
      pln_tensor_from_bytes(engine, s->dtype, AXES, s->dims, data, size, &in));
  CHECK_OK(pln_build_constant(b, in, &arg));
  CHECK_OK(pln_build_call(b, pln_op_find(engine, pln_text(s->op)),
                          make_attrs(s), 0, 1, &arg, &node));
  const pln_tensor *args[] = {in};
  CHECK_OK(pln_compute(pln_builder_graph(b), node, 1, args, &out));
  pln_builder_free(b);
  pln_tensor_release(in);
  return out;
}

/* ---------------------------------------------------------------- plainly */

typedef struct state {
  double all;
  int64_t place, n;
} state;

static void take(const char *op, state *st, double x, int64_t place) {
  bool greatest = !strcmp(op, "max") || !strcmp(op, "argmax");
  bool first = st->n++ == 0;
  if (!strcmp(op, "sum") || !strcmp(op, "mean"))
    st->all += x;
  else if (!strcmp(op, "reduce_l1"))
    st->all += fabs(x);
  else if (!strcmp(op, "reduce_sum_square"))
    st->all += x * x;
  else if (first || (st->all == st->all &&
                     (x != x || (greatest ? x > st->all : x < st->all)))) {
    st->all = x;
    st->place = place;
  }
}

/* Which result element i belongs to, all axes kept with extent 1. */
static size_t result_of(const sample *s, size_t i, int64_t *place) {
  size_t inner = (size_t)s->dims[2], rows = (size_t)s->dims[1], to = 0;
  size_t at[AXES] = {i / inner / rows, i / inner % rows, i % inner};
  for (int k = 0; k < AXES; k++)
    if (s->axes >> k & 1)
      *place = (int64_t)at[k];
    else
      to = to * (size_t)s->dims[k] + at[k];
  return to;
}

static bool close_to(pln_dtype dtype, double got, double want) {
  if (want != want || got != got)
    return want != want && got != got;
  double rough = dtype == PLN_FLOAT16   ? 0x1p-10
                 : dtype == PLN_FLOAT32 ? 0x1p-23
                                        : 0;
  return got == want || fabs(got - want) <= rough * fabs(want);
}

/* As the dtype holds it. */
static double held(pln_dtype dtype, double x) {
  double element;
  if (dtype == PLN_INT8)
    x = (double)(int8_t)(int64_t)x;
  put(dtype, &element, 0, x);
  return get(dtype, &element, 0);
}

static double expected(const sample *s, const state *st) {
  if (!strncmp(s->op, "arg", 3))
    return (double)st->place;
  if (strcmp(s->op, "mean"))
    return held(s->dtype, st->all);
  if (s->dtype == PLN_INT8 || s->dtype == PLN_INT32)
    return trunc(held(s->dtype, st->all) / (double)st->n);
  return held(s->dtype, st->all / (double)st->n);
}

static void check(const sample *s) {
  static uint64_t data[MOST];
  static state states[MOST];
  bool floats = s->dtype != PLN_INT8 && s->dtype != PLN_INT32;
  bool sums = strlen(s->op) != 3 && strncmp(s->op, "arg", 3);
  sums = sums || !strcmp(s->op, "sum");
  memset(states, 0, sizeof states);
  for (size_t i = 0; i < elements(s); i++) {
    int64_t place = 0;
    double x = number(i, floats && !sums);
    size_t to = result_of(s, i, &place);
    put(s->dtype, data, i, x);
    take(s->op, &states[to], x, place);
  }
  pln_tensor *out = compute(s, data);
  bool good = true;
  for (size_t i = 0; i < out->count; i++)
    good = good && close_to(s->dtype, get((pln_dtype)out->dtype, out->data, i),
                            expected(s, &states[i]));
  if (!CHECK(good))
    printf("# %s of %s (%d, %d, %d), axes %u\n", s->op,
           pln_dtype_name(s->dtype), (int)s->dims[0], (int)s->dims[1],
           (int)s->dims[2], s->axes);
  pln_tensor_release(out);
}

static void check_shapes(const char *op, pln_dtype dtype) {
  static const int64_t extents[] = {1, 3, 40};
  for (int i = 0; i < 27; i++)
    for (unsigned axes = 1; axes < 8; axes++) {
      bool place = !strncmp(op, "arg", 3), single = !(axes & (axes - 1));
      sample s = {{extents[i / 9], extents[i / 3 % 3], extents[i % 3]},
                  axes,
                  op,
                  dtype};
      if (elements(&s) <= MOST && (single || !place))
        check(&s);
    }
}

static const pln_dtype dtypes[] = {PLN_FLOAT32, PLN_FLOAT64, PLN_FLOAT16,
                                   PLN_INT32, PLN_INT8};

static void check_ops(size_t n, const char *const *ops) {
  engine = pln_engine_new(NULL, NULL);
  for (size_t i = 0; i < n; i++)
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
      check_shapes(ops[i], dtypes[d]);
  pln_engine_free(engine);
}

static void sums(void) {
  static const char *const ops[] = {"sum", "mean", "reduce_l1",
                                    "reduce_sum_square"};
  check_ops(sizeof ops / sizeof *ops, ops);
}

static void extremes(void) {
  static const char *const ops[] = {"max", "min"};
  check_ops(sizeof ops / sizeof *ops, ops);
}

static void places(void) {
  static const char *const ops[] = {"argmax", "argmin"};
  check_ops(sizeof ops / sizeof *ops, ops);
}

static const check_test tests[] = {
    {"sums", sums},
    {"extremes", extremes},
    {"places of extremes", places},
};
CHECK_MAIN(tests)
