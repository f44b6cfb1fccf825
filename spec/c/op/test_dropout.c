/* test_dropout.c: dropout: what is refused, as tables (op_table.h); how much is
 * dropped in training, far within what chance allows. */

#include "op_table.h"

enum { N = 40000 };

/* A call that folding would not compute, computed. `x` is of ones. */
static void drop(pln_dtype dtype, const char *attrs, const char *ratio,
                 const char *training, pln_tensor **out) {
  row r = {"nn.dropout", attrs, {"float32 1: 1", ratio, training}, "", 2};
  const pln_tensor *args[3];
  pln_tensor *ones;
  pln_ref node;
  uint64_t one = dtype == PLN_FLOAT64 ? 0x3ff0000000000000u : 0x3f800000u;
  if (dtype == PLN_FLOAT16)
    one = 0x3c00;
  CHECK_OK(build(&r, &node));
  const pln_graph *g = pln_builder_graph(builder);
  const pln_ref *operands = &g->operands[g->nodes[node].first];
  CHECK_OK(pln_tensor_splat(engine, dtype, 1, (int64_t[]){N}, &one, &ones));
  args[0] = ones;
  for (int i = 1; i < 3; i++)
    args[i] = g->tensors[g->nodes[operands[i]].data];
  out[0] = out[1] = NULL;
  CHECK_OK(pln_compute(g, node, 3, args, out));
  pln_tensor_release(ones);
}

static void release(pln_tensor **out) {
  pln_tensor_release(out[0]);
  pln_tensor_release(out[1]);
}

static size_t kept(const pln_tensor *mask) {
  size_t n = 0;
  for (size_t i = 0; i < mask->count; i++)
    n += ((const uint8_t *)mask->data)[i];
  return n;
}

/* What is dropped is 0; what is kept is scaled. */
static void trains(void) {
  begin();
  pln_tensor *out[2], *again[2];
  drop(PLN_FLOAT32, "seed=7", "float32: 0.75", "bool: 1", out);
  const float *x = out[0]->data;
  const uint8_t *mask = out[1]->data;
  for (size_t i = 0; i < N; i++)
    if (x[i] != (mask[i] ? 4.0f : 0.0f))
      CHECK(false && "scaled or 0");
  size_t n = kept(out[1]);
  CHECK(n > N / 4 - 600 && n < N / 4 + 600);
  drop(PLN_FLOAT32, "seed=7", "float32: 0.75", "bool: 1", again);
  CHECK(!memcmp(mask, again[1]->data, N));
  release(again);
  drop(PLN_FLOAT32, "", "float32: 0.75", "bool: 1", again);
  CHECK(memcmp(mask, again[1]->data, N));
  release(again);
  release(out);
  end();
}

static void of_other_dtypes(void) {
  begin();
  pln_tensor *out[2];
  drop(PLN_FLOAT64, "", "float16: 0.5", "bool: 1", out);
  CHECK_EQ_INT(out[0]->dtype, PLN_FLOAT64);
  for (size_t i = 0; i < N; i++)
    CHECK(((const double *)out[0]->data)[i] ==
          2 * ((const uint8_t *)out[1]->data)[i]);
  release(out);
  drop(PLN_FLOAT16, "", "float32: 0.5", "bool: 1", out);
  CHECK_EQ_INT(out[0]->dtype, PLN_FLOAT16);
  CHECK_EQ_INT(out[1]->dtype, PLN_BOOL);
  for (size_t i = 0; i < N; i++)
    CHECK(pln_half_to_float(((const uint16_t *)out[0]->data)[i]) ==
          2.0f * ((const uint8_t *)out[1]->data)[i]);
  release(out);
  drop(PLN_FLOAT32, "", "float32: 0", "bool: 1", out);
  CHECK_EQ_INT((int64_t)kept(out[1]), N);
  release(out);
  end();
}

static void refuses(void) {
  static const row rows[] = {
      {"nn.dropout",
       "",
       {"float32 1: 1", "float32: 1", "bool: 1"},
       "refused: 'nn.dropout': ratio 1 is outside of [0, 1)",
       0},
      {"nn.dropout",
       "",
       {"float32 1: 1", "float32 2: 0 0", "bool: 1"},
       "refused: 'nn.dropout': the ratio is not a number",
       0},
      {"nn.dropout",
       "",
       {"int32 1: 1", "float32: 0.5", "bool: 1"},
       "refused: 'nn.dropout' is not implemented for int32",
       0},
  };
  run_rows(ROWS(rows));
}

static const check_test tests[] = {
    {"drops and scales in training", trains},
    {"of other dtypes", of_other_dtypes},
    {"refuses ratios", refuses},
};
CHECK_MAIN(tests)
