/* test_conv.c: convolutions, plain and transposed: small ones computed by hand
 * and what is refused, as tables (op_table.h); then ones made at random beside
 * the plain sum. */

#include "oom.h"

#include "op_table.h"

#define IOTA9 "float32 1x1x3x3: 1 2 3 4 5 6 7 8 9"
#define ONES4 "float32 1x1x2x2: 1 1 1 1"

/* ------------------------------------------------------------------- tables */

static void slides(void) {
  static const row rows[] = {
      {"nn.conv", "", {IOTA9, ONES4}, "float32 1x1x2x2: 12 16 24 28", 0},
      {"nn.conv",
       "",
       {IOTA9, ONES4, "float32 1: 100"},
       "float32 1x1x2x2: 112 116 124 128",
       0},
      {"nn.conv",
       "pads=1,0,0,0 strides=2,2",
       {IOTA9, ONES4},
       "float32 1x1x2x1: 3 24",
       0},
      {"nn.conv", "dilations=2,2", {IOTA9, ONES4}, "float32 1x1x1x1: 20", 0},
      {"nn.conv",
       "auto_pad=SAME_UPPER",
       {IOTA9, ONES4},
       "float32 1x1x3x3: 12 16 9 24 28 15 15 17 9",
       0},
      {"nn.conv",
       "auto_pad=SAME_LOWER",
       {IOTA9, ONES4},
       "float32 1x1x3x3: 1 3 5 5 12 16 11 24 28",
       0},
      {"nn.conv",
       "auto_pad=VALID strides=2,",
       {"float64 1x1x5: 1 2 3 4 5", "float64 1x1x2: 1 10"},
       "float64 1x1x2: 21 43",
       0},
      {"nn.conv",
       "group=2",
       {"float32 1x2x2: 1 2 3 4", "float32 2x1x1: 1 10"},
       "float32 1x2x2: 1 2 30 40",
       0},
      {"nn.conv",
       "",
       {"float32 2x2x1: 1 2 3 4", "float32 1x2x1: 1 10"},
       "float32 2x1x1: 21 43",
       0},
      {"nn.conv",
       "",
       {"float32 1x1x2x1x2: 1 2 3 4", "float32 1x1x2x1x1: 1 10"},
       "float32 1x1x1x1x2: 31 42",
       0},
      {"nn.conv",
       "",
       {"float16 1x1x2: 1 2", "float16 1x1x2: 1 0.5", "float16 1: 0.5"},
       "float16 1x1x1: 2.5",
       0},
      {"nn.conv",
       "",
       {"bfloat16 1x1x2: 1 2", "bfloat16 1x1x2: 1 0.5"},
       "bfloat16 1x1x1: 2",
       0},
      {"nn.conv",
       "pads=1,1 strides=3,",
       {"float32 1x1x3: 1 2 3", "float32 1x1x1: 5"},
       "float32 1x1x2: 0 15",
       0},
  };
  run_rows(ROWS(rows));
}

static void slides_over_nothing(void) {
  static const row rows[] = {
      {"nn.conv",
       "",
       {"float32 0x1x3:", "float32 2x1x1: 1 2"},
       "float32 0x2x3:",
       0},
      {"nn.conv",
       "",
       {"float32 1x1x0:", "float32 1x1x3: 1 2 3"},
       "float32 1x1x0:",
       0},
      {"nn.conv",
       "",
       {"float32 1x0x2:", "float32 2x0x1:", "float32 2: 1 2"},
       "float32 1x2x2: 1 1 2 2",
       0},
      {"nn.conv",
       "",
       {"float32 1x1x2: 1 2", "float32 0x1x1:"},
       "float32 1x0x2:",
       0},
      {"nn.conv",
       "pads=1000000000,0 dilations=1000000000,",
       {"float32 1x1x2: 1 2", "float32 1x1x2: 1 10"},
       "float32 1x1x2: 10 20",
       0},
  };
  run_rows(ROWS(rows));
}

static void refuses(void) {
  static const row rows[] = {
      {"nn.conv",
       "group=2",
       {"float32 1x2x2: 1 2 3 4", "float32 3x1x1: 1 2 3"},
       "refused: 'nn.conv': 2 groups of 2 and 3 channels",
       0},
      {"nn.conv",
       "pads=-1,0",
       {"float32 1x1x2: 1 2", "float32 1x1x1: 1"},
       "refused: 'nn.conv': pads[0] is -1, not within 0 to 1073741824",
       0},
      {"nn.conv",
       "strides=0,",
       {"float32 1x1x2: 1 2", "float32 1x1x1: 1"},
       "ill-typed: 'nn.conv': strides and dilations must be positive",
       0},
      {"nn.conv",
       "strides=1073741825,",
       {"float32 1x1x2: 1 2", "float32 1x1x1: 1"},
       "refused: 'nn.conv': strides[0] is 1073741825, not within 1 to "
       "1073741824",
       0},
      {"nn.conv",
       "kernel_shape=2,",
       {"float32 1x1x3: 1 2 3", "float32 1x1x1: 1"},
       "refused: 'nn.conv': kernel_shape[0] is 2, of weights 1",
       0},
      {"nn.conv",
       "",
       {"float32 1x1x3: 1 2 3", "float32 1x1x0:"},
       "refused: 'nn.conv': axis 2: a window of 0 over 3",
       0},
      {"nn.conv",
       "",
       {"float32 1x1x1: 1", "float32 1x1x1: 1", "float32 2: 1 2"},
       "refused: 'nn.conv': the bias must be 1 elements of float32",
       0},
      {"nn.conv",
       "",
       {"float32 1x1x1x1x1x1: 1", "float32 1x1x1x1x1x1: 1"},
       "refused: 'nn.conv': more than 3 spatial axes",
       0},
      {"nn.conv",
       "",
       {"int32 1x1x1: 1", "int32 1x1x1: 1"},
       "refused: 'nn.conv' is not implemented for int32",
       0},
      {"nn.conv_transpose",
       "group=2",
       {"float32 1x2x1: 1 2", "float32 3x1x1: 1 2 3"},
       "ill-typed: 'nn.conv_transpose', operand 0: expected extent 2, got 3",
       0},
      {"nn.conv_transpose",
       "output_padding=-1,",
       {"float32 1x1x2: 1 2", "float32 1x1x1: 1"},
       "refused: 'nn.conv_transpose': output_padding[0] is -1, not within 0 to "
       "1073741824",
       0},
  };
  run_rows(ROWS(rows));
}

#define IOTA5 "float32 1x1x5: 1 10 100 1000 10000"
#define ONE23 "float32 1x1x3: 1 2 3"

static void unslides(void) {
  static const row rows[] = {
      {"nn.conv_transpose",
       "",
       {"float32 1x1x2x2: 1 2 3 4", ONES4},
       "float32 1x1x3x3: 1 3 2 4 10 6 3 7 4",
       0},
      {"nn.conv_transpose",
       "strides=2, pads=1,0 output_padding=1,",
       {"float32 1x1x2: 1 10", ONE23, "float32 1: 1000"},
       "float32 1x1x5: 1002 1013 1020 1030 1000",
       0},
      {"nn.conv_transpose",
       "dilations=2,",
       {"float32 1x1x2: 1 10", "float32 1x1x2: 1 2"},
       "float32 1x1x4: 1 10 2 20",
       0},
      {"nn.conv_transpose",
       "group=2",
       {"float32 1x2x1: 1 2", "float32 2x2x1: 1 10 100 1000"},
       "float32 1x4x1: 1 10 200 2000",
       0},
      {"nn.conv_transpose",
       "strides=2, auto_pad=SAME_UPPER",
       {IOTA5, ONE23},
       "float32 1x1x10: 1 2 13 20 130 200 1300 2000 13000 20000",
       0},
      {"nn.conv_transpose",
       "strides=2, auto_pad=SAME_LOWER",
       {IOTA5, ONE23},
       "float32 1x1x10: 2 13 20 130 200 1300 2000 13000 20000 30000",
       0},
      {"nn.conv_transpose",
       "strides=2, output_shape=8,",
       {IOTA5, ONE23},
       "float32 1x1x8: 13 20 130 200 1300 2000 13000 20000",
       0},
      {"nn.conv_transpose",
       "strides=2, output_shape=8, auto_pad=SAME_UPPER",
       {IOTA5, ONE23},
       "float32 1x1x8: 2 13 20 130 200 1300 2000 13000",
       0},
      {"nn.conv_transpose",
       "strides=2, output_shape=12,",
       {IOTA5, ONE23},
       "float32 1x1x12: 1 2 13 20 130 200 1300 2000 13000 20000 30000 0",
       0},
      {"nn.conv_transpose",
       "",
       {"float16 1x1x1: 2", "float16 1x1x2: 1 0.5"},
       "float16 1x1x2: 2 1",
       0},
      {"nn.conv_transpose",
       "",
       {"float64 1x1x2x1x1: 2 3", "float64 1x1x2x1x1: 1 10"},
       "float64 1x1x3x1x1: 2 23 30",
       0},
      {"nn.conv_transpose",
       "",
       {"float32 1x0x2:", "float32 0x1x2:", "float32 1: 7"},
       "float32 1x1x3: 7 7 7",
       0},
  };
  run_rows(ROWS(rows));
}

/* ---------------------------------------------------------- beside the plain
 */

/* A convolution over up to three axes; `in` and `out` are channels of a group.
 */
typedef struct shape {
  int64_t batch, group, in, out, space;
  int64_t size[3], window[3], stride[3], dilation[3], begin[3], end[3];
  int64_t result[3];
} shape;

static uint32_t noise;

static int64_t pick(int64_t least, int64_t most) {
  noise = noise * 1664525u + 1013904223u;
  return least + (int64_t)((noise >> 8) % (uint32_t)(most - least + 1));
}

static pln_attr ints_of(const char *name, uint32_t n, const int64_t *ints) {
  pln_attr a = {.kind = PLN_ATTR_INTS, .count = n, .v.ints = ints};
  CHECK_OK(pln_symbol_intern(engine, pln_text(name), &a.name));
  return a;
}

static pln_attrs attrs_of(const shape *s) {
  uint32_t n = (uint32_t)s->space;
  int64_t pads[6];
  pln_attrs out = 0;
  memcpy(pads, s->begin, n * sizeof *pads);
  memcpy(pads + n, s->end, n * sizeof *pads);
  pln_attr list[4] = {ints_of("strides", n, s->stride),
                      ints_of("dilations", n, s->dilation),
                      ints_of("pads", 2 * n, pads),
                      {.kind = PLN_ATTR_INT, .v.i = s->group}};
  CHECK_OK(pln_symbol_intern(engine, pln_text("group"), &list[3].name));
  CHECK_OK(pln_attrs_make(engine, 4, list, &out));
  return out;
}

/* Small whole numbers, of which any order of summing gives the same. */
static pln_tensor *tensor_of(pln_dtype dtype, int64_t first, int64_t second,
                             int64_t space, const int64_t *size) {
  int64_t dims[5] = {first, second};
  pln_tensor *t = NULL;
  memcpy(dims + 2, size, (size_t)space * sizeof *dims);
  CHECK_OK(pln_tensor_new(engine, dtype, (uint32_t)space + 2, dims, &t));
  void *data = pln_tensor_writable(t);
  for (size_t i = 0; i < t->count; i++)
    if (dtype == PLN_FLOAT32)
      ((float *)data)[i] = (float)pick(-4, 4);
    else
      ((double *)data)[i] = (double)pick(-4, 4);
  return t;
}

static double element(const pln_tensor *t, int64_t i) {
  return t->dtype == PLN_FLOAT32 ? (double)((const float *)t->data)[i]
                                 : ((const double *)t->data)[i];
}

static int64_t volume(const shape *s, const int64_t *size) {
  int64_t n = 1;
  for (int64_t i = 0; i < s->space; i++)
    n *= size[i];
  return n;
}

/* Where tap t of position o falls on an axis of `limit`; -1 when outside. */
static int64_t meeting(const shape *s, int64_t o, int64_t t,
                       const int64_t *from, const int64_t *limit) {
  int64_t at = 0, scale = 1;
  for (int64_t i = s->space; i-- > 0;) {
    int64_t x = o % from[i] * s->stride[i] + t % s->window[i] * s->dilation[i] -
                s->begin[i];
    if (x < 0 || x >= limit[i])
      return -1;
    at += x * scale;
    scale *= limit[i];
    o /= from[i];
    t /= s->window[i];
  }
  return at;
}

/* Adds what one group of one image gives to `want`, doubles. */
static void plain_part(const shape *s, bool transposed, const pln_tensor *x,
                       const pln_tensor *w, int64_t part, double *want) {
  const int64_t *from = transposed ? s->size : s->result;
  const int64_t *to = transposed ? s->result : s->size;
  int64_t taps = volume(s, s->window), n_in = volume(s, s->size);
  int64_t n_out = volume(s, s->result), g = part % s->group;
  for (int64_t m = 0; m < s->out; m++)
    for (int64_t c = 0; c < s->in; c++)
      for (int64_t o = 0; o < volume(s, from); o++)
        for (int64_t t = 0; t < taps; t++) {
          int64_t at = meeting(s, o, t, from, to);
          if (at < 0)
            continue;
          int64_t in = transposed ? o : at, out = transposed ? at : o;
          int64_t filter = transposed ? (g * s->in + c) * s->out + m
                                      : (g * s->out + m) * s->in + c;
          want[(part * s->out + m) * n_out + out] +=
              element(x, (part * s->in + c) * n_in + in) *
              element(w, filter * taps + t);
        }
}

static bool same_numbers(const pln_tensor *got, const double *want) {
  for (size_t i = 0; i < got->count; i++)
    if (element(got, (int64_t)i) != want[i])
      return false;
  return true;
}

static void check_result(const shape *s, const pln_tensor *got, bool transposed,
                         const pln_tensor *const *args) {
  size_t count = (size_t)(s->batch * s->group * s->out * volume(s, s->result));
  double *want = calloc(count + 1, sizeof *want);
  if (!want || !CHECK_EQ_INT(got->count, count)) {
    free(want);
    return;
  }
  size_t plane = (size_t)volume(s, s->result);
  for (size_t i = 0; i < count && args[2]; i++)
    want[i] = element(args[2], (int64_t)(i / plane) % (s->group * s->out));
  for (int64_t part = 0; part < s->batch * s->group; part++)
    plain_part(s, transposed, args[0], args[1], part, want);
  if (!CHECK(same_numbers(got, want)))
    printf("# batch %d, group %d, in %d, out %d, size %d %d %d, window %d %d "
           "%d, stride %d, dilation %d, begin %d\n",
           (int)s->batch, (int)s->group, (int)s->in, (int)s->out,
           (int)s->size[0], (int)s->size[1], (int)s->size[2], (int)s->window[0],
           (int)s->window[1], (int)s->window[2], (int)s->stride[0],
           (int)s->dilation[0], (int)s->begin[0]);
  free(want);
}

/* Computes one, and compares. */
static void try_shape(const shape *s, bool transposed, bool biased,
                      pln_dtype dtype) {
  int64_t channels = s->group * s->out;
  int64_t first = s->group * (transposed ? s->in : s->out);
  pln_tensor *args[3] = {
      tensor_of(dtype, s->batch, s->group * s->in, s->space, s->size),
      tensor_of(dtype, first, transposed ? s->out : s->in, s->space, s->window),
      NULL};
  pln_tensor *out = NULL;
  pln_ref nodes[3], node = 0;
  uint32_t n = biased ? 3 : 2;
  if (biased) {
    CHECK_OK(pln_tensor_new(engine, dtype, 1, &channels, &args[2]));
    for (int64_t i = 0; dtype == PLN_FLOAT32 && i < channels; i++)
      ((float *)pln_tensor_writable(args[2]))[i] = (float)i;
  }
  for (uint32_t i = 0; i < n; i++)
    CHECK_OK(pln_build_constant(builder, args[i], &nodes[i]));
  pln_op op = pln_op_find(
      engine, pln_text(transposed ? "nn.conv_transpose" : "nn.conv"));
  CHECK_OK(pln_build_call(builder, op, attrs_of(s), 0, n, nodes, &node));
  if (CHECK_OK(pln_eval_call(pln_builder_graph(builder), node, &out)))
    check_result(s, out, transposed, (const pln_tensor *const *)args);
  else
    print_diags(engine);
  pln_tensor_release(out);
  for (uint32_t i = 0; i < 3; i++)
    pln_tensor_release(args[i]);
}

/* The extents that come out; false when there are none. */
static bool measure(shape *s, bool transposed) {
  for (int64_t i = 0; i < s->space; i++) {
    int64_t reach = (s->window[i] - 1) * s->dilation[i] + 1;
    int64_t pads = s->begin[i] + s->end[i];
    int64_t room = s->size[i] + pads - reach;
    s->result[i] = transposed ? (s->size[i] - 1) * s->stride[i] + reach - pads
                              : room / s->stride[i] + 1;
    if (transposed ? s->result[i] < 1 : room < 0)
      return false;
  }
  return true;
}

static void made_at_random(void) {
  static const int64_t most[3] = {60, 19, 7};
  noise = 5;
  begin();
  for (int made = 0; made < 400;) {
    shape s = {.batch = pick(1, 2),
               .group = pick(1, 3),
               .in = pick(1, 9),
               .out = pick(1, 11),
               .space = pick(1, 3)};
    for (int64_t i = 0; i < s.space; i++) {
      s.size[i] = pick(1, most[s.space - 1]);
      s.window[i] = pick(1, 4);
      s.stride[i] = pick(1, 3);
      s.dilation[i] = pick(1, 3);
      s.begin[i] = pick(0, 2);
      s.end[i] = pick(0, 2);
    }
    bool transposed = pick(0, 2) == 0;
    if (!measure(&s, transposed))
      continue;
    try_shape(&s, transposed, pick(0, 1),
              pick(0, 2) ? PLN_FLOAT32 : PLN_FLOAT64);
    made++;
  }
  end();
}

/* Bands of rows, of columns, of channels; rows one by one; windows that no band
 * holds; more positions than a block has. */
static void too_large_for_one_piece(void) {
  static const shape shapes[] = {
      {1, 1, 3, 9, 2, {300, 400}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0}},
      {1, 1, 200, 3, 2, {20, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 1}, {0}},
      {1, 1, 2, 2, 1, {200000}, {5}, {1}, {1}, {2}, {2}, {0}},
      {1,
       1,
       40,
       5,
       2,
       {30, 28},
       {3, 3},
       {1, 1},
       {12, 12},
       {12, 12},
       {12, 12},
       {0}},
      {1,
       1,
       2,
       9,
       2,
       {60, 60},
       {2, 2},
       {1, 1},
       {600, 600},
       {300, 300},
       {300, 300},
       {0}},
      {1, 2, 2, 3, 1, {70}, {3}, {2}, {300000}, {300000}, {300000}, {0}},
  };
  begin();
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int transposed = 0; transposed < 2; transposed++) {
      shape s = shapes[i];
      if (measure(&s, transposed) && volume(&s, s.result) < 1000000)
        try_shape(&s, transposed, false, i % 2 ? PLN_FLOAT64 : PLN_FLOAT32);
    }
  end();
}

/* ------------------------------------------------------------------ failures
 */

static pln_status convolve_halves(pln_engine *e, void *name) {
  const int64_t dims[4] = {3, 3, 3, 3};
  pln_builder *b;
  pln_tensor *t = NULL, *out = NULL;
  pln_ref node = 0;
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = pln_tensor_new(e, PLN_FLOAT16, 4, dims, &t);
  if (status == PLN_OK)
    status = pln_build_constant(b, t, &node);
  pln_tensor_release(t);
  pln_ref args[2] = {node, node};
  if (status == PLN_OK)
    status =
        pln_build_call(b, pln_op_find(e, pln_text(name)), 0, 0, 2, args, &node);
  if (status == PLN_OK)
    status = pln_eval_call(pln_builder_graph(b), node, &out);
  pln_tensor_release(out);
  pln_builder_free(b);
  return status;
}

static void hears_of_memory(void) {
  char plain[] = "nn.conv", transposed[] = "nn.conv_transpose";
  oom_sweep(convolve_halves, plain);
  oom_sweep(convolve_halves, transposed);
}

static const check_test tests[] = {
    {"convolutions by hand", slides},
    {"what is empty gives what is empty, or the bias", slides_over_nothing},
    {"what does not match is refused", refuses},
    {"transposed convolutions by hand", unslides},
    {"convolutions made at random", made_at_random},
    {"what is too large for one piece", too_large_for_one_piece},
    {"memory that runs out is heard of", hears_of_memory},
};
CHECK_MAIN(tests)
