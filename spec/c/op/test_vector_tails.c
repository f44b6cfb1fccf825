/* test_vector_tails.c: what a kernel gives for an element is the same wherever
 * the element lies: alone, in the body of a vectorised loop, or in its tail;
 * and with operands broadcast along any axes. */

#include "kernel_call.h"

static pln_engine *engine;

static pln_tensor *compute(const char *op, uint32_t n, pln_tensor **args) {
  return one_call(engine, op, 0, NULL, n, args);
}

static void make_engine(void) {
  engine = pln_engine_new(NULL, NULL);
}

/* --------------------------------------------------------------- functions */

enum { LONGEST = 77 };

static void same_everywhere(const char *op, const float *x) {
  int64_t n = LONGEST;
  pln_tensor *arg = one_tensor(engine, PLN_FLOAT32, 1, &n, x);
  pln_tensor *whole = compute(op, 1, &arg);
  const char *all = whole->data;
  bool same = true;
  for (int64_t begin = 0; begin < LONGEST; begin++) {
    n = LONGEST - begin;
    arg = one_tensor(engine, PLN_FLOAT32, 1, &n, x + begin);
    pln_tensor *part = compute(op, 1, &arg);
    same = same && !memcmp(part->data, all + 4 * begin, part->bytes);
    pln_tensor_release(part);
  }
  if (!CHECK(same))
    printf("# %s\n", op);
  pln_tensor_release(whole);
}

static void functions(void) {
  static const char *const ops[] = {
      "sin",           "cos",     "atan",    "exp",     "log",
      "erf",           "tanh",    "sigmoid", "nn.gelu", "nn.softplus",
      "nn.silu",       "nn.mish", "nn.elu",  "nn.selu", "nn.celu",
      "nn.hard_swish", "sqrt",    "floor",   "round",   "reciprocal",
      "nn.leaky_relu", "negative"};
  float x[LONGEST];
  make_engine();
  for (int i = 0; i < LONGEST; i++)
    x[i] = (float)((i * 37) % LONGEST - 38) * 0.171f;
  x[5] = 100;
  x[20] = -100;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    same_everywhere(ops[i], x);
  pln_engine_free(engine);
}

/* -------------------------------------------------------------- broadcasts */

enum { AXES = 3, ELEMENTS = 2 * 3 * 40 };
static const int64_t full[AXES] = {2, 3, 40};

/* A tensor with extent 1 where `mask` has a bit, and its steps. */
static pln_tensor *broadcastable(pln_dtype dtype, unsigned mask, int64_t *steps,
                                 const void *data) {
  int64_t dims[AXES], step = 1;
  pln_tensor *t = NULL;
  for (int i = AXES; i-- > 0;) {
    dims[i] = mask >> i & 1 ? 1 : full[i];
    steps[i] = mask >> i & 1 ? 0 : step;
    step *= dims[i];
  }
  size_t size = pln_dtype_bits(dtype) / 8;
  CHECK_OK(pln_tensor_from_bytes(engine, dtype, AXES, dims, data,
                                 (size_t)step * size, &t));
  return t;
}

static size_t place(const int64_t *steps, int64_t i) {
  return (size_t)(i / 120 * steps[0] + i / 40 % 3 * steps[1] +
                  i % 40 * steps[2]);
}

static void where_of(unsigned c, unsigned a, unsigned b) {
  uint8_t cond[ELEMENTS];
  float yes[ELEMENTS], no[ELEMENTS];
  int64_t steps[3][AXES];
  for (int i = 0; i < ELEMENTS; i++) {
    cond[i] = i * 7 % 3 != 0;
    yes[i] = (float)i;
    no[i] = (float)-i - 1;
  }
  pln_tensor *args[] = {broadcastable(PLN_BOOL, c, steps[0], cond),
                        broadcastable(PLN_FLOAT32, a, steps[1], yes),
                        broadcastable(PLN_FLOAT32, b, steps[2], no)};
  pln_tensor *out = compute("where", 3, args);
  const float *got = out->data;
  bool same = true;
  for (int64_t i = 0; i < ELEMENTS; i++) {
    float want = cond[place(steps[0], i)] ? yes[place(steps[1], i)]
                                          : no[place(steps[2], i)];
    same = same && got[i] == want;
  }
  if (!CHECK(same))
    printf("# where of %u %u %u\n", c, a, b);
  pln_tensor_release(out);
}

static void where_broadcasts(void) {
  make_engine();
  for (unsigned c = 0; c < 8; c++)
    for (unsigned a = 0; a < 8; a++)
      for (unsigned b = 0; b < 8; b++)
        if (!(c & a & b)) /* some operand has each extent */
          where_of(c, a, b);
  pln_engine_free(engine);
}

static const check_test tests[] = {
    {"functions of one element", functions},
    {"where, broadcast in all ways", where_broadcasts},
};
CHECK_MAIN(tests)
