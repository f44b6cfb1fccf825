/* test_random.c: random operators: what is refused, as tables (op_table.h);
 * moments of what is drawn, far within what chance allows: a seed gives the
 * same numbers each time. */

#include "op_table.h"

/* A call that folding would not compute, computed. */
static pln_tensor *draw(const char *op, const char *attrs, const char *arg) {
  row r = {op, attrs, {arg}, "", 0};
  const pln_tensor *args[1] = {NULL};
  pln_tensor *out = NULL;
  pln_ref node;
  CHECK_OK(build(&r, &node));
  const pln_graph *g = pln_builder_graph(builder);
  if (arg)
    args[0] = g->tensors[g->nodes[g->operands[g->nodes[node].first]].data];
  CHECK_OK(pln_compute(g, node, arg ? 1 : 0, args, &out));
  return out;
}

typedef struct moments {
  double mean, variance, low, high;
} moments;

static double element(const pln_tensor *t, size_t i) {
  int64_t integer = 0;
  uint16_t half;
  switch ((int)t->dtype) {
  case PLN_FLOAT32: return ((const float *)t->data)[i];
  case PLN_FLOAT64: return ((const double *)t->data)[i];
  case PLN_FLOAT16:
    memcpy(&half, (const char *)t->data + 2 * i, 2);
    return pln_half_to_float(half);
  }
  CHECK(pln_tensor_int(t, i, &integer));
  return (double)integer;
}

static moments measure(const pln_tensor *t) {
  moments m = {0, 0, INFINITY, -INFINITY};
  for (size_t i = 0; i < t->count; i++) {
    double x = element(t, i);
    m.mean += x / (double)t->count;
    m.low = fmin(m.low, x);
    m.high = fmax(m.high, x);
  }
  for (size_t i = 0; i < t->count; i++)
    m.variance += pow(element(t, i) - m.mean, 2) / (double)t->count;
  return m;
}

static bool near(double got, double want, double within) {
  bool is = fabs(got - want) <= within;
  if (!CHECK(is))
    printf("# %g, not %g\n", got, want);
  return is;
}

static void uniform(void) {
  begin();
  pln_tensor *t =
      draw("random_uniform", "shape=300,301 low=-2. high=4. dtype=11", NULL);
  moments m = measure(t);
  CHECK_EQ_INT(t->count, 90300);
  near(m.mean, 1, 0.03);
  near(m.variance, 3, 0.03);
  CHECK(m.low >= -2 && m.low < -1.999 && m.high < 4 && m.high > 3.999);
  pln_tensor_release(t);
  end();
}

static void normal(void) {
  begin();
  pln_tensor *t = draw("random_normal", "shape=99999, mean=5. scale=2.", NULL);
  moments m = measure(t);
  near(m.mean, 5, 0.03);
  near(m.variance, 4, 0.06);
  CHECK(m.low < -1.5 && m.high > 11.5 && m.high < 17);
  size_t inside = 0;
  for (size_t i = 0; i < t->count; i++)
    inside += fabs(element(t, i) - 5) < 2;
  near((double)inside / (double)t->count, 0.6827, 0.006);
  pln_tensor_release(t);
  end();
}

static void like(void) {
  begin();
  pln_tensor *t = draw("random_normal_like", "", "float16 2x3: 0 0 0 0 0 0");
  CHECK_EQ_INT(t->dtype, PLN_FLOAT16);
  CHECK(t->rank == 2 && t->dims[0] == 2 && t->dims[1] == 3);
  pln_tensor_release(t);
  t = draw("random_uniform_like", "dtype=1", "int32 3: 0 0 0");
  CHECK_EQ_INT(t->dtype, PLN_FLOAT32);
  CHECK(measure(t).variance > 0);
  pln_tensor_release(t);
  t = draw("random_uniform", "shape=0,3", NULL);
  CHECK_EQ_INT(t->count, 0);
  pln_tensor_release(t);
  end();
}

static void events(void) {
  begin();
  pln_tensor *t = draw("bernoulli", "dtype=9", "float32 4: 0 1 0 1");
  CHECK_EQ_INT(t->dtype, PLN_BOOL);
  CHECK(!memcmp(t->data, "\0\1\0\1", 4));
  pln_tensor_release(t);
  pln_tensor *half = NULL;
  const int64_t dims[1] = {20000};
  double chance = 0.25;
  CHECK_OK(pln_tensor_splat(engine, PLN_FLOAT64, 1, dims, &chance, &half));
  const pln_tensor *dense = NULL;
  CHECK_OK(pln_tensor_dense(half, (pln_tensor **)&dense));
  pln_tensor *out = NULL;
  pln_kernel_call call = {.engine = engine,
                          .op = pln_op_find(engine, pln_text("bernoulli")),
                          .n_args = 1,
                          .args = &dense,
                          .n_results = 1,
                          .results = &out};
  CHECK_OK(pln_op_row(engine, call.op)->kernel(&call));
  near(measure(out).mean, 0.25, 0.01);
  pln_tensor_release(out);
  pln_tensor_release((pln_tensor *)dense);
  pln_tensor_release(half);
  end();
}

/* Weights 1 : 3 : 0 as logarithms, whatever is added to them. */
static void classes(void) {
  begin();
  pln_tensor *t = draw("multinomial", "sample_size=20000 dtype=7",
                       "float32 2x3: 0 1.0986123 -inf 900 901.0986 -inf");
  CHECK_EQ_INT(t->dtype, PLN_INT64);
  CHECK(t->rank == 2 && t->dims[0] == 2 && t->dims[1] == 20000);
  moments m = measure(t);
  near(m.mean, 0.75, 0.01);
  CHECK(m.low == 0 && m.high == 1);
  pln_tensor_release(t);
  t = draw("multinomial", "", "float64 1x1: 0");
  CHECK_EQ_INT(t->dtype, PLN_INT32);
  CHECK(measure(t).high == 0);
  pln_tensor_release(t);
  end();
}

/* What is drawn follows from the seeds alone. */
static void seeds(void) {
  begin();
  pln_tensor *t[4];
  engine->random_calls = 0;
  t[0] = draw("random_normal", "shape=600,", NULL);
  t[1] = draw("random_normal", "shape=600,", NULL);
  engine->random_calls = 0;
  t[2] = draw("random_normal", "shape=1200,", NULL);
  pln_engine_set_seed(engine, 1);
  CHECK_EQ_INT(pln_engine_seed(engine), 1);
  engine->random_calls = 0;
  t[3] = draw("random_normal", "shape=600,", NULL);
  CHECK(memcmp(t[0]->data, t[1]->data, t[0]->bytes));
  CHECK(!memcmp(t[0]->data, t[2]->data, t[0]->bytes));
  CHECK(memcmp(t[0]->data, t[3]->data, t[0]->bytes));
  for (int i = 0; i < 4; i++)
    pln_tensor_release(t[i]);
  t[0] = draw("random_normal", "shape=600, seed=7.", NULL);
  pln_engine_set_seed(engine, 0);
  t[1] = draw("random_normal", "shape=600, seed=7.", NULL);
  CHECK(!memcmp(t[0]->data, t[1]->data, t[0]->bytes));
  for (int i = 0; i < 2; i++)
    pln_tensor_release(t[i]);
  end();
}

/* They are never folded. */
static void not_folded(void) {
  static const row rows[] = {
      {"bernoulli",
       "",
       {"float32 2: 0.5 1.5"},
       "refused: 'bernoulli': 1.5 is not a probability",
       0},
      {"bernoulli",
       "",
       {"int32 1: 1"},
       "refused: 'bernoulli' is not implemented for int32",
       0},
      {"random_uniform_like",
       "",
       {"int32 1: 1"},
       "refused: 'random_uniform_like' is not implemented for int32",
       0},
      {"multinomial",
       "",
       {"float32 1x2: -inf -inf"},
       "refused: 'multinomial': no class of row 0 has a positive probability",
       0},
      {"multinomial",
       "",
       {"float32 1x0:"},
       "refused: 'multinomial': no class of row 0 has a positive probability",
       0},
      {"multinomial",
       "dtype=1",
       {"float32 1x1: 0"},
       "refused: 'multinomial' is not implemented for float32",
       0},
  };
  run_rows(ROWS(rows));
}

static const check_test tests[] = {
    {"uniform numbers", uniform},
    {"normal numbers", normal},
    {"shapes and dtypes of others", like},
    {"events", events},
    {"classes", classes},
    {"seeds", seeds},
    {"what has no numbers is refused", not_folded},
};
CHECK_MAIN(tests)
