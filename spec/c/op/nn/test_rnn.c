/* test_rnn.c: recurrent layers: small ones computed by hand and what is
 * refused, as tables (op_table.h); then larger ones, where what runs side by
 * side, in blocks or backwards must be as what runs alone.
 *
 * With the activations Affine and Relu, gates are polynomials of small
 * integers. */

#include "oom.h"

#include "op_table.h"

#define LINEAR "activations=[Affine] "
#define LINEAR2 "activations=[Affine,Affine] "
#define LINEAR3 "activations=[Affine,Affine,Affine] "
#define ONE3 "float32 1x1x1: 1"

/* ------------------------------------------------------------------- tables */

static void plain_layers(void) {
  static const row rows[] = {
      /* h = x + 2 h */
      {"rnn",
       LINEAR,
       {"float32 3x1x1: 1 2 3", ONE3, "float32 1x1x1: 2"},
       "float32 3x1x1x1: 1 4 11 | float32 1x1x1: 11",
       2},
      {"rnn",
       LINEAR "direction=reverse",
       {"float32 3x1x1: 1 2 3", ONE3, "float32 1x1x1: 2"},
       "float32 3x1x1x1: 17 8 3 | float32 1x1x1: 17",
       2},
      {"rnn",
       "direction=bidirectional activations=[Affine,Relu]",
       {"float64 2x1x1: 1 2", "float64 2x1x1: 1 -1", "float64 2x1x1: 2 1",
        "float64 2x2: 0 0 3 -1"},
       "float64 2x2x1x1: 1 1 4 0 | float64 2x1x1: 4 1",
       2},
      /* Two sequences, one of one step; initial states; both biases. */
      {"rnn",
       LINEAR,
       {"float32 2x2x1: 1 10 2 20", ONE3, ONE3, "float32 1x2: 100 1000",
        "int32 2: 2 1", "float32 1x2x1: 5 6"},
       "float32 2x1x2x1: 1106 1116 2208 0 | float32 1x2x1: 2208 1116",
       2},
      {"rnn",
       LINEAR "direction=reverse layout=1",
       {"float32 2x2x1: 1 2 10 20", ONE3, ONE3, "-", "int32 2: 2 1",
        "float32 2x1x1: 5 6"},
       "float32 2x2x1x1: 8 7 16 0 | float32 2x1x1: 8 16",
       2},
      {"rnn",
       LINEAR,
       {"float32 1x2x1: 1 2", ONE3, ONE3, "-", "int32 2: 0 1",
        "float32 1x2x1: 5 6"},
       "float32 1x1x2x1: 0 8 | float32 1x2x1: 0 8",
       2},
      {"rnn",
       "hidden_size=2",
       {"float16 1x1x1: 0", "float16 1x2x1: 1 1", "float16 1x2x2: 0 0 0 0"},
       "float16 1x1x1x2: 0 0",
       0},
      {"rnn",
       "",
       {"float32 0x1x1:", ONE3, ONE3},
       "float32 0x1x1x1: | float32 1x1x1: 0",
       2},
      {"rnn",
       "clip=2.5 " LINEAR,
       {"float32 2x1x1: 1 -9", ONE3, ONE3},
       "float32 2x1x1x1: 1 -2.5",
       0},
  };
  run_rows(ROWS(rows));
}

/* Each on x = -2, -0.5, 1 at once, as three neurons. */
static void activations(void) {
#define ACT(attrs, want)                      \
  {                                           \
    "rnn", attrs,                             \
        {ONE3, "float32 1x3x1: -2 -0.5 1",    \
         "float32 1x3x3: 0 0 0 0 0 0 0 0 0"}, \
        "float32 1x1x1x3: " want, 0           \
  }
  static const row rows[] = {
      ACT("", "-0.964028 -0.462117 0.761594"),
      ACT("activations=[Sigmoid]", "0.119203 0.377541 0.731059"),
      ACT("activations=[relu]", "0 0 1"),
      ACT("activations=[Affine]", "-2 -0.5 1"),
      ACT("activations=[Affine] activation_alpha=2., activation_beta=1.,",
          "-3 0 3"),
      ACT("activations=[LeakyRelu]", "-0.02 -0.005 1"),
      ACT("activations=[LeakyRelu] activation_alpha=0.5,", "-1 -0.25 1"),
      ACT("activations=[ThresholdedRelu]", "0 0 1"),
      ACT("activations=[ThresholdedRelu] activation_alpha=-1.,", "0 -0.5 1"),
      ACT("activations=[ScaledTanh] activation_alpha=2., activation_beta=0.5,",
          "-1.52319 -0.489837 0.924234"),
      ACT("activations=[HardSigmoid]", "0.1 0.4 0.7"),
      ACT("activations=[Elu]", "-0.864665 -0.393469 1"),
      ACT("activations=[Softsign]", "-0.666667 -0.333333 0.5"),
      ACT("activations=[Softplus]", "0.126928 0.474077 1.31326"),
  };
#undef ACT
  run_rows(ROWS(rows));
}

static void long_memory(void) {
  static const row rows[] = {
      /* i = x, o = 2, f = 3, g = x: c = 3 c + x^2, h = 2 c */
      {"lstm",
       LINEAR3,
       {"float32 2x1x1: 1 2", "float32 1x4x1: 1 0 0 1",
        "float32 1x4x1: 0 0 0 0", "float32 1x8: 0 2 3 0 0 0 0 0"},
       "float32 2x1x1x1: 2 14 | float32 1x1x1: 14 | float32 1x1x1: 7",
       3},
      /* The same from h = 1, c = 10, with R on the candidate: g = x + h. */
      {"lstm",
       LINEAR3,
       {"float32 1x1x1: 2", "float32 1x4x1: 1 0 0 1", "float32 1x4x1: 0 0 0 1",
        "float32 1x8: 0 1 2 0 0 1 1 0", "-", ONE3, "float32 1x1x1: 10"},
       "float32 1x1x1x1: 72 | float32 1x1x1: 72 | float32 1x1x1: 36",
       3},
      /* Peepholes i, o, f: i = 1 + 10 c, f = 2 c, o = c after. */
      {"lstm",
       LINEAR3,
       {"float32 1x1x1: 1", "float32 1x4x1: 1 0 0 1", "float32 1x4x1: 0 0 0 0",
        "-", "-", "-", "float32 1x1x1: 3", "float32 1x3: 10 1 2"},
       "float32 1x1x1x1: 2401 | float32 1x1x1: 2401 | float32 1x1x1: 49",
       3},
      /* Coupled: f = 1 - i. */
      {"lstm",
       LINEAR3 "input_forget=1",
       {"float32 1x1x1: 3", "float32 1x4x1: 1 0 9 1", "float32 1x4x1: 0 0 0 0",
        "float32 1x8: 0 1 0 0 0 0 0 0", "-", "-", "float32 1x1x1: 2"},
       "float32 1x1x1x1: 5 | float32 1x1x1: 5 | float32 1x1x1: 5",
       3},
      /* Gates are limited, the cell is not. */
      {"lstm",
       LINEAR3 "clip=2.",
       {"float32 1x1x1: 3", "float32 1x4x1: 1 1 1 1", "float32 1x4x1: 0 0 0 0",
        "-", "-", "-", ONE3},
       "float32 1x1x1x1: 12 | float32 1x1x1: 12 | float32 1x1x1: 6",
       3},
      {"lstm",
       "",
       {"float64 1x1x1: 0", "float64 1x4x1: 0 0 0 0", "float64 1x4x1: 0 0 0 0",
        "float64 1x8: 0 0 0 1 0 0 0 0"},
       "float64 1x1x1x1: 0.1817 | float64 1x1x1: 0.1817 | "
       "float64 1x1x1: 0.380797",
       3},
      /* Each list serves those functions that have such a parameter. */
      {"lstm",
       "activations=[Relu,Affine,Affine] activation_alpha=2.,3. "
       "activation_beta=1.,4.",
       {"float32 1x1x1: 1", "float32 1x4x1: 1 1 1 1", "float32 1x4x1: 0 0 0 0"},
       "float32 1x1x1x1: 13",
       0},
  };
  run_rows(ROWS(rows));
}

static void gated_units(void) {
  static const row rows[] = {
      /* z = 2, r = 3, n = x + 5 r h (+ biases): h = -n + 2 h */
      {"gru",
       LINEAR2,
       {"float32 1x1x1: 1", "float32 1x3x1: 0 0 1", "float32 1x3x1: 0 0 5",
        "float32 1x6: 2 3 0 0 0 100", "-", "float32 1x1x1: 2"},
       "float32 1x1x1x1: -127 | float32 1x1x1: -127",
       2},
      {"gru",
       LINEAR2 "linear_before_reset=1",
       {"float32 1x1x1: 1", "float32 1x3x1: 0 0 1", "float32 1x3x1: 0 0 5",
        "float32 1x6: 2 3 0 0 0 100", "-", "float32 1x1x1: 2"},
       "float32 1x1x1x1: -327 | float32 1x1x1: -327",
       2},
      {"gru",
       LINEAR2 "linear_before_reset=1",
       {"float32 1x1x1: 1", "float32 1x3x1: 0 1 1", "float32 1x3x1: 0 0 5", "-",
        "-", "float32 1x1x1: 2"},
       "float32 1x1x1x1: 11",
       0},
      {"gru",
       "",
       {"float32 2x1x1: 1 1", "float32 1x3x1: 0 0 1", "float32 1x3x1: 0 0 0"},
       "float32 2x1x1x1: 0.380797 0.571196 | float32 1x1x1: 0.571196",
       2},
  };
  run_rows(ROWS(rows));
}

static void refuses(void) {
  static const row rows[] = {
      {"rnn",
       "direction=sideways",
       {ONE3, ONE3, ONE3},
       "refused: 'rnn': direction must be forward, reverse or bidirectional",
       0},
      {"rnn",
       "activations=[Sine]",
       {ONE3, ONE3, ONE3},
       "refused: 'rnn': activation 'Sine' is unknown",
       0},
      {"rnn",
       "activations=[Affine,Affine]",
       {ONE3, ONE3, ONE3},
       "refused: 'rnn': 2 activations, not 1",
       0},
      {"rnn",
       "activations=[ScaledTanh]",
       {ONE3, ONE3, ONE3},
       "refused: 'rnn': activation 'ScaledTanh' needs activation_alpha and "
       "activation_beta",
       0},
      {"rnn", "clip=-1.", {ONE3, ONE3, ONE3}, "refused: 'rnn': clip is -1", 0},
      {"rnn",
       "",
       {ONE3, "float32 1x1x2: 1 1", ONE3},
       "refused: 'rnn': operand 1 does not match the others",
       0},
      {"rnn",
       "hidden_size=2",
       {ONE3, ONE3, ONE3},
       "refused: 'rnn': hidden_size is 2, but that of R is 1",
       0},
      {"rnn",
       "",
       {ONE3, ONE3, ONE3, "-", "int32 1: 2"},
       "refused: 'rnn': sequence 0 has length 2, outside of [0, 1]",
       0},
      {"rnn",
       "",
       {ONE3, ONE3, ONE3, "-", "int64 1: 1"},
       "refused: 'rnn' is not implemented for int64",
       0},
      {"rnn",
       "",
       {"int32 1x1x1: 1", "int32 1x1x1: 1", "int32 1x1x1: 1"},
       "refused: 'rnn' is not implemented for int32",
       0},
      {"lstm",
       "",
       {ONE3, "float32 1x4x1: 1 1 1 1", "float32 1x4x1: 1 1 1 1", "-", "-", "-",
        "-", "float32 1x4: 1 1 1 1"},
       "refused: 'lstm': operand 7 does not match the others",
       0},
  };
  run_rows(ROWS(rows));
}

/* ------------------------------------------------------------- larger layers
 */

/* Numbers in [-most, most], the same each time. */
static pln_tensor *numbers(uint32_t rank, const int64_t *dims, uint64_t seed,
                           double most) {
  pln_random_spec noise = {
      .kind = PLN_RANDOM_UNIFORM, .low = -most, .high = most, .seed = seed};
  pln_tensor *t = NULL;
  CHECK_OK(pln_tensor_random(engine, PLN_FLOAT32, rank, dims, &noise, &t));
  return t;
}

typedef struct layer {
  const char *op;
  int64_t gates, steps, batch, inputs, hidden;
} layer;

static const layer layers[] = {{"lstm", 4, 70, 5, 3, 50},
                               {"gru", 3, 40, 9, 7, 33},
                               {"gru", 3, 3, 2, 5, 4},
                               {"rnn", 1, 130, 1, 4, 300}};

/* Computes a layer of one direction; results are states and last states. */
static void compute(const layer *l, const char *attrs,
                    const pln_tensor *const *args, pln_tensor **results) {
  pln_ref refs[4] = {0}, node;
  for (uint32_t i = 0; i < 4; i++)
    CHECK_OK(pln_build_constant(builder, args[i], &refs[i]));
  pln_op op = pln_op_find(engine, pln_text(l->op));
  CHECK_OK(pln_build_call(builder, op, read_attrs(attrs), 2, 4, refs, &node));
  CHECK_OK(pln_eval_call(pln_builder_graph(builder), node, results));
}

static void begin_layer(const layer *l, pln_tensor **args) {
  int64_t x[3] = {l->steps, l->batch, l->inputs};
  int64_t w[3] = {1, l->gates * l->hidden, l->inputs};
  int64_t r[3] = {1, l->gates * l->hidden, l->hidden};
  int64_t b[2] = {1, 2 * l->gates * l->hidden};
  args[0] = numbers(3, x, 1, 0.5);
  args[1] = numbers(3, w, 2, 0.5);
  /* Uniform in [-1/sqrt(n), 1/sqrt(n)], the n x n weights of the state have a
   * spectral radius near 0.58: rounding does not grow from step to step. */
  args[2] = numbers(3, r, 3, 1 / sqrt((double)l->hidden));
  args[3] = numbers(2, b, 4, 0.5);
}

static void release(uint32_t n, pln_tensor **t) {
  for (uint32_t i = 0; i < n; i++)
    pln_tensor_release(t[i]);
}

static float at(const pln_tensor *t, int64_t line, int64_t n, int64_t i) {
  return ((const float *)t->data)[line * n + i];
}

/* The rows of x in another order: steps backwards, or sequences first. */
static pln_tensor *reordered(const layer *l, const pln_tensor *x,
                             bool batch_first, bool backwards) {
  int64_t dims[3] = {l->steps, l->batch, l->inputs};
  pln_tensor *out = NULL;
  if (batch_first) {
    dims[0] = l->batch;
    dims[1] = l->steps;
  }
  CHECK_OK(pln_tensor_new(engine, PLN_FLOAT32, 3, dims, &out));
  float *to = pln_tensor_writable(out);
  for (int64_t t = 0; t < l->steps; t++)
    for (int64_t b = 0; b < l->batch; b++) {
      int64_t from = backwards ? l->steps - 1 - t : t;
      int64_t place = batch_first ? b * l->steps + t : t * l->batch + b;
      for (int64_t i = 0; i < l->inputs; i++)
        to[place * l->inputs + i] = at(x, from * l->batch + b, l->inputs, i);
    }
  return out;
}

/* Whether states[t][b] are those of `other` at the step and place given. */
static void same_states(const layer *l, const pln_tensor *states,
                        const pln_tensor *other, bool batch_first,
                        bool backwards) {
  double worst = 0;
  for (int64_t t = 0; t < l->steps; t++)
    for (int64_t b = 0; b < l->batch; b++) {
      int64_t from = backwards ? l->steps - 1 - t : t;
      int64_t place = batch_first ? b * l->steps + from : from * l->batch + b;
      for (int64_t i = 0; i < l->hidden; i++)
        worst = fmax(worst,
                     fabs((double)at(states, t * l->batch + b, l->hidden, i) -
                          (double)at(other, place, l->hidden, i)));
    }
  CHECK(worst < 1e-5);
}

static void other_orders(void) {
  for (size_t k = 0; k < sizeof layers / sizeof *layers; k++) {
    const layer *l = &layers[k];
    pln_tensor *args[4], *forward[2], *turned[2], *batches[2];
    begin();
    begin_layer(l, args);
    compute(l, "", (const pln_tensor *const *)args, forward);
    pln_tensor *x = args[0];
    args[0] = reordered(l, x, false, true);
    compute(l, "direction=reverse", (const pln_tensor *const *)args, turned);
    same_states(l, forward[0], turned[0], false, true);
    pln_tensor_release(args[0]);
    args[0] = reordered(l, x, true, false);
    compute(l, "layout=1", (const pln_tensor *const *)args, batches);
    same_states(l, forward[0], batches[0], true, false);
    release(2, forward);
    release(2, turned);
    release(2, batches);
    pln_tensor_release(x);
    release(4, args);
    end();
  }
}

/* One sequence alone is as the same among others. */
static void alone(void) {
  for (size_t k = 0; k < sizeof layers / sizeof *layers; k++) {
    layer l = layers[k];
    pln_tensor *args[4], *all[2], *one[2];
    begin();
    begin_layer(&l, args);
    compute(&l, "", (const pln_tensor *const *)args, all);
    pln_tensor *x = args[0];
    int64_t batch = l.batch, last = batch - 1;
    int64_t dims[3] = {l.steps, 1, l.inputs};
    CHECK_OK(pln_tensor_new(engine, PLN_FLOAT32, 3, dims, &args[0]));
    float *to = pln_tensor_writable(args[0]);
    for (int64_t t = 0; t < l.steps; t++)
      for (int64_t i = 0; i < l.inputs; i++)
        to[t * l.inputs + i] = at(x, t * batch + last, l.inputs, i);
    l.batch = 1;
    compute(&l, "", (const pln_tensor *const *)args, one);
    double worst = 0;
    for (int64_t t = 0; t < l.steps; t++)
      for (int64_t i = 0; i < l.hidden; i++)
        worst = fmax(worst,
                     fabs((double)at(one[0], t, l.hidden, i) -
                          (double)at(all[0], t * batch + last, l.hidden, i)));
    CHECK(worst < 1e-5);
    release(2, all);
    release(2, one);
    pln_tensor_release(x);
    release(4, args);
    end();
  }
}

/* ----------------------------------------------------------------- failures
 */

static pln_status layer_of_halves(pln_engine *e, void *ud) {
  static const int64_t dims[3][3] = {{5, 2, 3}, {1, 8, 3}, {1, 8, 2}};
  (void)ud;
  pln_tensor *args[3] = {NULL}, *results[3] = {NULL};
  pln_status status = PLN_OK;
  for (uint32_t i = 0; i < 3 && status == PLN_OK; i++)
    status = pln_tensor_new(e, PLN_FLOAT16, 3, dims[i], &args[i]);
  pln_kernel_call call = {.engine = e,
                          .op = pln_op_find(e, pln_text("lstm")),
                          .n_args = 3,
                          .args = (const pln_tensor *const *)args,
                          .n_results = 3,
                          .results = results};
  if (status == PLN_OK)
    status = pln_op_row(e, call.op)->kernel(&call);
  for (uint32_t i = 0; i < 3; i++) {
    pln_tensor_release(args[i]);
    pln_tensor_release(results[i]);
  }
  return status;
}

static void hears_of_memory(void) {
  oom_sweep(layer_of_halves, NULL);
}

static const check_test tests[] = {
    {"plain layers by hand", plain_layers},
    {"activations and their parameters", activations},
    {"long short-term memory by hand", long_memory},
    {"gated units by hand", gated_units},
    {"what does not match is refused", refuses},
    {"backwards and sequences first give the same states", other_orders},
    {"a sequence is alone as it is among others", alone},
    {"memory that runs out is heard of", hears_of_memory},
};
CHECK_MAIN(tests)
