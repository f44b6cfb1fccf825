/* test_attention.c: attention, linear attention and rotary embeddings: small
 * ones computed by hand and what is refused, as tables (op_table.h); then
 * attention over more keys than a block has, beside the plain sum.
 *
 * ln 3 = 1.0986123 makes weights of quarters. */

#include "oom.h"

#include "op_table.h"

#define Q1 "float32 1x1x1x1: 1"
#define K2 "float32 1x1x2x1: 0 1.0986123"
#define V2 "float32 1x1x2x1: 4 8"
#define Q3 "float32 1x1x3x1: 0 0 0"
#define K3 "float32 1x1x3x1: 0 0 0"
#define V3 "float32 1x1x3x1: 2 4 12"

static void plain(void) {
  static const row rows[] = {
      {"attention", "", {Q1, K2, V2}, "float32 1x1x1x1: 7", 0},
      {"attention", "scale=-1.", {Q1, K2, V2}, "float32 1x1x1x1: 5", 0},
      /* 1 / sqrt(4) by default. */
      {"attention",
       "",
       {"float64 1x1x1x4: 1 1 1 1",
        "float64 1x1x2x4: 0 0 0 0 0.5493061443 0.5493061443 0.5493061443 "
        "0.5493061443",
        "float64 1x1x2x2: 4 0 8 1"},
       "float64 1x1x1x2: 7 0.75",
       0},
      {"attention",
       "",
       {"float16 1x1x1x1: 0", "float16 1x1x2x1: 5 7", "float16 1x1x2x1: 2 4"},
       "float16 1x1x1x1: 3",
       0},
      /* Two heads of queries share one of keys. */
      {"attention",
       "",
       {"float32 1x2x1x1: 1 -1", K2, V2},
       "float32 1x2x1x1: 7 5",
       0},
      /* Heads within columns: head 1 has values 10 and 30. */
      {"attention",
       "q_num_heads=2 kv_num_heads=2",
       {"float32 1x1x2: 1 0", "float32 1x2x2: 0 0 1.0986123 0",
        "float32 1x2x2: 4 10 8 30"},
       "float32 1x1x2: 7 20",
       0},
      {"attention",
       "softcap=2.",
       {"float32 1x1x1x1: 1000", K2, V2},
       "float32 1x1x1x1: 7.52319",
       0},
      {"attention",
       "softmax_precision=10",
       {Q3, K3, V3},
       "float32 1x1x3x1: 5.99854 5.99854 5.99854",
       0},
      {"attention",
       "",
       {"float32 0x1x1x1:", "float32 0x1x2x1:", "float32 0x1x2x1:"},
       "float32 0x1x1x1:",
       0},
      {"attention",
       "",
       {Q1, "float32 1x1x0x1:", "float32 1x1x0x2:"},
       "float32 1x1x1x2: 0 0",
       0},
  };
  run_rows(ROWS(rows));
}

static void masks(void) {
  static const row rows[] = {
      {"attention", "is_causal=1", {Q3, K3, V3}, "float32 1x1x3x1: 2 3 6", 0},
      {"attention",
       "",
       {Q3, K3, V3, "bool 3x3: 0 1 1 0 0 0 1 0 0"},
       "float32 1x1x3x1: 8 0 2",
       0},
      /* Nothing of what is closed gets through. */
      {"attention",
       "",
       {Q3, K3, "float32 1x1x3x1: 2 4 nan", "bool 3: 1 1 0"},
       "float32 1x1x3x1: nan nan nan",
       0},
      {"attention",
       "",
       {Q3, "float32 1x1x3x1: 0 0 nan", V3, "bool 3: 1 1 0"},
       "float32 1x1x3x1: 3 3 3",
       0},
      {"attention",
       "",
       {Q1, "float32 1x1x2x1: 0 0", V2, "float32 1x2: 0 1.0986123"},
       "float32 1x1x1x1: 7",
       0},
      {"attention",
       "",
       {Q3, K3, V3, "float32 3x3: -inf 0 -inf -inf -inf -inf 0 0 0"},
       "float32 1x1x3x1: 4 0 6",
       0},
      {"attention",
       "",
       {Q3, K3, V3, "float64 1x1x1x3: 0 0 -inf"},
       "float32 1x1x3x1: 3 3 3",
       0},
      /* Keys that a mask does not reach are closed. */
      {"attention",
       "",
       {Q3, K3, V3, "bool 3x2: 1 1 1 0 0 0"},
       "float32 1x1x3x1: 3 2 0",
       0},
      {"attention",
       "is_causal=1",
       {Q3, K3, V3, "bool 1x3: 0 1 1"},
       "float32 1x1x3x1: 0 4 8",
       0},
      {"attention",
       "left_window_size=0 right_window_size=1",
       {Q3, K3, V3},
       "float32 1x1x3x1: 3 8 12",
       0},
      {"attention",
       "left_window_size=1 right_window_size=9223372036854775807",
       {Q3, K3, V3},
       "float32 1x1x3x1: 6 6 8",
       0},
      /* One query, lengths 1 and 2. */
      {"attention",
       "is_causal=1",
       {"float32 2x1x1x1: 0 0", "float32 2x1x2x1: 0 0 0 0",
        "float32 2x1x2x1: 4 8 4 8", "-", "-", "-", "int64 2: 1 2"},
       "float32 2x1x1x1: 4 6",
       0},
      /* More queries than keys: the first sees nothing. */
      {"attention",
       "is_causal=1",
       {"float32 1x1x2x1: 0 0", "float32 1x1x2x1: 0 0", V2, "-", "-", "-",
        "int64 1: 1"},
       "float32 1x1x2x1: 0 4",
       0},
  };
  run_rows(ROWS(rows));
}

static void past_and_scores(void) {
  static const row rows[] = {
      {"attention",
       "",
       {Q1, "float32 1x1x1x1: 1.0986123", "float32 1x1x1x1: 8", "-",
        "float32 1x1x1x1: 0", "float32 1x1x1x1: 4"},
       "float32 1x1x1x1: 7 | float32 1x1x2x1: 0 1.09861 | "
       "float32 1x1x2x1: 4 8",
       3},
      /* The query comes after what is past. */
      {"attention",
       "is_causal=1 kv_num_heads=1 q_num_heads=1",
       {"float32 1x2x1: 0 0", "float32 1x2x1: 0 0", "float32 1x2x1: 4 12", "-",
        "float32 1x1x1x1: 0", "float32 1x1x1x1: 2"},
       "float32 1x2x1: 3 6 | float32 1x1x3x1: 0 0 0 | "
       "float32 1x1x3x1: 2 4 12",
       3},
      {"attention",
       "scale=2. softcap=1.",
       {Q1, K2, V2, "bool 2: 1 0"},
       "float32 1x1x1x1: 4 | float32 1x1x2x1: 0 1.09861 | "
       "float32 1x1x2x1: 4 8 | float32 1x1x1x2: 0 2.19722",
       4},
      {"attention",
       "scale=2. softcap=1. qk_matmul_output_mode=1",
       {Q1, K2, V2, "bool 2: 1 0"},
       "float32 1x1x1x1: 4 | float32 1x1x2x1: 0 1.09861 | "
       "float32 1x1x2x1: 4 8 | float32 1x1x1x2: 0 0.97561",
       4},
      {"attention",
       "qk_matmul_output_mode=2",
       {Q1, K2, V2, "bool 2: 1 0"},
       "float32 1x1x1x1: 4 | float32 1x1x2x1: 0 1.09861 | "
       "float32 1x1x2x1: 4 8 | float32 1x1x1x2: 0 -inf",
       4},
      {"attention",
       "qk_matmul_output_mode=3",
       {Q1, K2, V2},
       "float32 1x1x1x1: 7 | float32 1x1x2x1: 0 1.09861 | "
       "float32 1x1x2x1: 4 8 | float32 1x1x1x2: 0.25 0.75",
       4},
  };
  run_rows(ROWS(rows));
}

static void refuses(void) {
  static const row rows[] = {
      {"attention",
       "q_num_heads=3 kv_num_heads=1",
       {"float32 1x1x4: 0 0 0 0", "float32 1x1x4: 0 0 0 0",
        "float32 1x1x4: 0 0 0 0"},
       "refused: 'attention': q_num_heads is 3, of 4 columns",
       0},
      {"attention",
       "",
       {"float32 1x1x1: 0", "float32 1x1x1: 0", "float32 1x1x1: 0"},
       "refused: 'attention': q_num_heads is 0, of 1 columns",
       0},
      {"attention",
       "",
       {"float32 1x3x1x1: 0 0 0", "float32 1x2x1x1: 0 0",
        "float32 1x2x1x1: 0 0"},
       "refused: 'attention': query, key and value do not match each other",
       0},
      {"attention",
       "",
       {Q1, K2, V2, "bool 3: 1 1 1"},
       "refused: 'attention': the mask does not match 2 keys",
       0},
      {"attention",
       "",
       {Q1, K2, V2, "bool 2x2: 1 1 1 1"},
       "refused: 'attention': the mask does not broadcast",
       0},
      {"attention",
       "",
       {Q1, K2, V2, "-", Q1},
       "refused: 'attention': past key and value come together",
       0},
      {"attention",
       "",
       {Q1, K2, V2, "-", "-", "-", "int64 1: 3"},
       "refused: 'attention': batch 0 has 3 of 2 keys",
       0},
      {"attention",
       "qk_matmul_output_mode=4",
       {Q1, K2, V2},
       "refused: 'attention': qk_matmul_output_mode is 4",
       0},
      {"attention",
       "",
       {"int32 1x1x1x1: 1", "int32 1x1x1x1: 1", "int32 1x1x1x1: 1"},
       "refused: 'attention' is not implemented for int32",
       0},
  };
  run_rows(ROWS(rows));
}

/* --------------------------------------------------------- many keys */

static pln_tensor *numbers(const int64_t *dims, uint64_t seed) {
  pln_random_spec noise = {
      .kind = PLN_RANDOM_NORMAL, .deviation = 1, .seed = seed};
  pln_tensor *t = NULL;
  CHECK_OK(pln_tensor_random(engine, PLN_FLOAT32, 4, dims, &noise, &t));
  return t;
}

enum { QUERIES = 70, KEYS = 9000, WIDTH = 3 };

/* Causal attention of one query, as its definition has it. */
static double plain_sum(const float *q, const float *k, const float *v,
                        size_t keys, size_t column) {
  double sum = 0, all = 0;
  for (size_t j = 0; j < keys; j++) {
    double score = 0;
    for (size_t i = 0; i < WIDTH; i++)
      score += (double)q[i] * (double)k[j * WIDTH + i];
    double weight = exp(score / sqrt((double)WIDTH));
    all += weight;
    sum += weight * (double)v[j * WIDTH + column];
  }
  return sum / all;
}

static void many_keys(void) {
  static const int64_t few[4] = {1, 1, QUERIES, WIDTH};
  static const int64_t many[4] = {1, 1, KEYS, WIDTH};
  begin();
  pln_tensor *t[3] = {numbers(few, 1), numbers(many, 2), numbers(many, 3)};
  pln_tensor *out = NULL;
  pln_ref refs[3], node;
  for (int i = 0; i < 3; i++)
    CHECK_OK(pln_build_constant(builder, t[i], &refs[i]));
  pln_op op = pln_op_find(engine, pln_text("attention"));
  CHECK_OK(pln_build_call(builder, op, read_attrs("is_causal=1"), 0, 3, refs,
                          &node));
  CHECK_OK(pln_eval_call(pln_builder_graph(builder), node, &out));
  const float *y = out->data, *q = t[0]->data;
  double worst = 0;
  for (size_t i = 0; i < QUERIES; i++)
    for (size_t c = 0; c < WIDTH; c++)
      worst = fmax(worst, fabs((double)y[i * WIDTH + c] -
                               plain_sum(q + i * WIDTH, t[1]->data, t[2]->data,
                                         i + 1, c)));
  CHECK(worst < 1e-5);
  pln_tensor_release(out);
  CHECK_OK(pln_build_call(builder, op, 0, 0, 3, refs, &node));
  CHECK_OK(pln_eval_call(pln_builder_graph(builder), node, &out));
  y = out->data;
  worst = fabs((double)y[QUERIES * WIDTH - 1] -
               plain_sum(q + (QUERIES - 1) * WIDTH, t[1]->data, t[2]->data,
                         KEYS, WIDTH - 1));
  CHECK(worst < 1e-5);
  pln_tensor_release(out);
  for (int i = 0; i < 3; i++)
    pln_tensor_release(t[i]);
  end();
}

/* ------------------------------------------------------------------- rotary */

static void rotary(void) {
  static const row rows[] = {
      /* By 90 degrees: (x, y) becomes (-y, x). */
      {"rotary_embedding",
       "",
       {"float32 1x1x1x4: 1 2 3 4", "float32 1x1x2: 0 1", "float32 1x1x2: 1 0"},
       "float32 1x1x1x4: -3 2 1 4",
       0},
      {"rotary_embedding",
       "interleaved=1",
       {"float32 1x1x1x4: 1 2 3 4", "float32 1x1x2: 0 1", "float32 1x1x2: 1 0"},
       "float32 1x1x1x4: -2 1 3 4",
       0},
      {"rotary_embedding",
       "rotary_embedding_dim=2",
       {"float64 1x1x1x4: 1 2 3 4", "float64 1x1x1: 0", "float64 1x1x1: 1"},
       "float64 1x1x1x4: -2 1 3 4",
       0},
      /* Two heads in columns, two steps, positions 1 and 0. */
      {"rotary_embedding",
       "num_heads=2",
       {"float32 1x2x4: 1 2 3 4 5 6 7 8", "float32 2x1: 1 0",
        "float32 2x1: 0 1", "int64 1x2: 1 0"},
       "float32 1x2x4: -2 1 -4 3 5 6 7 8",
       0},
      {"rotary_embedding",
       "",
       {"float16 1x2x1x2: 1 2 3 4", "float16 1x1x1: 0", "float16 1x1x1: 1"},
       "float16 1x2x1x2: -2 1 -4 3",
       0},
      {"rotary_embedding",
       "",
       {"float32 1x1x1x3: 1 2 3", "float32 1x1x1: 0", "float32 1x1x1: 1"},
       "refused: 'rotary_embedding': 3 of 3 elements cannot be rotated",
       0},
      {"rotary_embedding",
       "",
       {"float32 1x1x2: 1 2", "float32 1x1x1: 0", "float32 1x1x1: 1"},
       "refused: 'rotary_embedding': num_heads is 0, of 2 columns",
       0},
      {"rotary_embedding",
       "",
       {"float32 1x1x1x2: 1 2", "float32 1x1x2: 0 0", "float32 1x1x1: 1"},
       "refused: 'rotary_embedding': operand 1 does not match the others",
       0},
      {"rotary_embedding",
       "",
       {"float32 1x1x1x2: 1 2", "float32 2x1: 0 0", "float32 2x1: 1 1",
        "int64 1x1: 2"},
       "refused: 'rotary_embedding': step 0 has no position in the tables",
       0},
  };
  run_rows(ROWS(rows));
}

/* -------------------------------------------------------- linear attention */

#define T2(a, b) "float32 1x2x1: " #a " " #b
#define HEADS1 "q_num_heads=1 kv_num_heads=1 scale=1. "

static void linear(void) {
  static const row rows[] = {
      /* The state is 8, then 8 + 15. */
      {"linear_attention",
       HEADS1 "update_rule=linear",
       {T2(1, 2), T2(2, 3), T2(4, 5)},
       "float32 1x2x1: 8 46 | float32 1x1x1x1: 23",
       2},
      /* The decay of ln 0.5 halves it. */
      {"linear_attention",
       HEADS1 "update_rule=gated",
       {T2(1, 1), T2(2, 3), T2(4, 5), "-", T2(0, -0.6931472)},
       "float32 1x2x1: 8 19 | float32 1x1x1x1: 19",
       2},
      {"linear_attention",
       HEADS1 "update_rule=delta",
       {T2(1, 1), T2(2, 3), T2(4, 5), "-", "-", T2(0.5, 0.5)},
       "float32 1x2x1: 4 -6.5",
       0},
      {"linear_attention",
       HEADS1,
       {"float16 1x1x1: 1", "float16 1x1x1: 2", "float16 1x1x1: 4",
        "float32 1x1x1x1: 2", "float16 1x1x1: 0", "float16 1x1x1: 1"},
       "float16 1x1x1: 2 | float32 1x1x1x1: 2",
       2},
      /* Two heads of queries share a state. */
      {"linear_attention",
       "q_num_heads=2 kv_num_heads=1 update_rule=linear scale=2.",
       {"float64 1x1x2: 1 10", "float64 1x1x1: 2", "float64 1x1x1: 4"},
       "float64 1x1x2: 16 160",
       0},
      /* 1 / sqrt(4) by default; each key decays alone. */
      {"linear_attention",
       "q_num_heads=1 kv_num_heads=1 update_rule=gated",
       {"float32 1x1x4: 1 1 1 1", "float32 1x1x4: 0 0 0 0", "float32 1x1x1: 9",
        "float32 1x1x4x1: 1 2 3 4", "float32 1x1x4: -inf 0 0 -0.6931472"},
       "float32 1x1x1: 3.5 | float32 1x1x4x1: 0 2 3 2",
       2},
      {"linear_attention",
       "q_num_heads=3 kv_num_heads=2 update_rule=linear",
       {T2(1, 1), T2(2, 3), T2(4, 5)},
       "refused: 'linear_attention': 3 heads of queries and 2 of keys do not "
       "match the operands",
       0},
      {"linear_attention",
       HEADS1 "update_rule=squared",
       {T2(1, 1), T2(2, 3), T2(4, 5)},
       "refused: 'linear_attention': update_rule is unknown",
       0},
      {"linear_attention",
       HEADS1 "update_rule=gated",
       {T2(1, 1), T2(2, 3), T2(4, 5)},
       "refused: 'linear_attention': decay and beta are not those of 'gated'",
       0},
      {"linear_attention",
       HEADS1 "update_rule=linear",
       {T2(1, 1), T2(2, 3), T2(4, 5), "float32 1x1x1x2: 0 0"},
       "refused: 'linear_attention': the past state does not match the query",
       0},
  };
  run_rows(ROWS(rows));
}

/* ----------------------------------------------------------------- failures
 */

static pln_status attend_halves(pln_engine *e, void *ud) {
  static const int64_t dims[4] = {1, 2, 3, 2}, mask[1] = {6};
  (void)ud;
  pln_tensor *args[6] = {NULL}, *results[4] = {NULL};
  pln_status status = pln_tensor_new(e, PLN_INT8, 1, mask, &args[3]);
  for (uint32_t i = 0; i < 6 && status == PLN_OK; i++)
    if (i != 3)
      status = pln_tensor_new(e, PLN_FLOAT16, 4, dims, &args[i]);
  pln_kernel_call call = {.engine = e,
                          .op = pln_op_find(e, pln_text("attention")),
                          .n_args = 6,
                          .args = (const pln_tensor *const *)args,
                          .n_results = 4,
                          .results = results};
  if (status == PLN_OK)
    status = pln_op_row(e, call.op)->kernel(&call);
  for (uint32_t i = 0; i < 6; i++)
    pln_tensor_release(args[i]);
  for (uint32_t i = 0; i < 4; i++)
    pln_tensor_release(results[i]);
  return status;
}

static void hears_of_memory(void) {
  oom_sweep(attend_halves, NULL);
}

static const check_test tests[] = {
    {"attention by hand", plain},
    {"masks, windows and lengths", masks},
    {"what is past, and scores", past_and_scores},
    {"what does not match is refused", refuses},
    {"many keys", many_keys},
    {"rotary embeddings by hand", rotary},
    {"linear attention by hand", linear},
    {"memory that runs out is heard of", hears_of_memory},
};
CHECK_MAIN(tests)
