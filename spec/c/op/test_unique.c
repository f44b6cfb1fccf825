/* test_unique.c: unique, as tables (op_table.h). */

#include "op_table.h"

static void elements(void) {
  static const row rows[] = {
      {"unique",
       "",
       {"float32 6: 2 1 1 3 4 3"},
       "float32 4: 1 2 3 4 | int64 4: 1 0 3 4 | int64 6: 1 0 0 2 3 2 | "
       "int64 4: 2 1 2 1",
       4},
      {"unique",
       "sorted=0",
       {"float32 6: 2 1 1 3 4 3"},
       "float32 4: 2 1 3 4 | int64 4: 0 1 3 4 | int64 6: 0 1 1 2 3 2 | "
       "int64 4: 1 2 2 1",
       4},
      {"unique", "", {"int8 2x2: 1 -1 -128 1"}, "int8 3: -128 -1 1", 0},
      {"unique", "", {"uint8 3: 200 7 200"}, "uint8 2: 7 200", 0},
      {"unique", "", {"int64 3: 5 -9000000000 5"}, "int64 2: -9000000000 5", 0},
      {"unique", "", {"bool 3: 1 0 1"}, "bool 2: 0 1", 0},
      /* Zeros are equal, NaN too, which comes last. */
      {"unique",
       "",
       {"float64 7: nan 0 -0 -inf nan -2 inf"},
       "float64 5: -inf -2 0 inf nan",
       0},
      {"unique", "", {"float16 3: -1 1 -2"}, "float16 3: -2 -1 1", 0},
      {"unique",
       "",
       {"bfloat16: 3"},
       "bfloat16 1: 3 | int64 1: 0 | int64 1: 0",
       3},
      {"unique",
       "",
       {"float32 0:"},
       "float32 0: | int64 0: | int64 0: | int64 0:",
       4},
      {"unique",
       "",
       {"float8_e5m2 1: 0"},
       "refused: 'unique' is not implemented for float8_e5m2",
       0},
  };
  run_rows(ROWS(rows));
}

static void slices(void) {
  static const row rows[] = {
      {"unique",
       "axis=0",
       {"float32 3x2: 2 3 1 0 2 3"},
       "float32 2x2: 1 0 2 3 | int64 2: 1 0 | int64 3: 1 0 1 | int64 2: 1 2",
       4},
      {"unique",
       "axis=-1 sorted=0",
       {"int32 2x3: 5 4 5 1 0 1"},
       "int32 2x2: 5 4 1 0 | int64 2: 0 1 | int64 3: 0 1 0 | int64 2: 2 1",
       4},
      {"unique",
       "axis=1",
       {"int32 2x3x1: 1 1 0 1 0 9"},
       "int32 2x3x1: 0 1 1 9 0 1 | int64 3: 2 1 0",
       2},
      {"unique",
       "axis=0",
       {"int32 3x0:"},
       "int32 1x0: | int64 1: 0 | int64 3: 0 0 0 | int64 1: 3",
       4},
      {"unique", "axis=1", {"int32 3x0:"}, "int32 3x0: | int64 0:", 2},
      {"unique",
       "axis=2",
       {"int32 1x1: 1"},
       "ill-typed: 'unique': axis 2 is outside of [-2, 2)",
       0},
  };
  run_rows(ROWS(rows));
}

static void strings(void) {
  begin();
  pln_slice words[] = {pln_text("b"), pln_text("ab"), pln_text(""),
                       pln_text("b"), pln_text("a")};
  const char *want[] = {"", "a", "ab", "b"};
  pln_tensor *t, *results[2] = {NULL};
  pln_ref x = PLN_NONE, call = PLN_NONE;
  CHECK_OK(pln_tensor_from_bytes(engine, PLN_STRING, 1, (int64_t[]){5}, words,
                                 sizeof words, &t));
  CHECK_OK(pln_build_constant(builder, t, &x));
  CHECK_OK(pln_build_call(builder, pln_op_find(engine, pln_text("unique")), 0,
                          2, 1, &x, &call));
  CHECK_OK(pln_eval_call(pln_builder_graph(builder), call, results));
  CHECK_EQ_INT(results[0]->count, 4);
  const pln_slice *got = results[0]->data;
  for (size_t i = 0; i < 4; i++)
    CHECK(pln_slice_is(got[i], want[i]));
  CHECK_EQ_INT(((const int64_t *)results[1]->data)[3], 0);
  pln_tensor_release(results[0]);
  pln_tensor_release(results[1]);
  pln_tensor_release(t);
  end();
}

/* Against counting: the numbers below 1000 that squares leave. */
static void many(void) {
  begin();
  enum { N = 100000, M = 997 };
  pln_tensor *t, *results[4] = {NULL};
  pln_ref x = PLN_NONE, call = PLN_NONE;
  int64_t *squares = malloc(N * sizeof *squares), seen[M] = {0}, kinds = 0;
  for (int64_t i = 0; i < N; i++)
    kinds += seen[squares[i] = (i * i) % M]++ == 0;
  CHECK_OK(pln_tensor_from_bytes(engine, PLN_INT64, 1, (int64_t[]){N}, squares,
                                 N * sizeof *squares, &t));
  CHECK_OK(pln_build_constant(builder, t, &x));
  CHECK_OK(pln_build_call(builder, pln_op_find(engine, pln_text("unique")), 0,
                          4, 1, &x, &call));
  CHECK_OK(pln_eval_call(pln_builder_graph(builder), call, results));
  CHECK_EQ_INT((int64_t)results[0]->count, kinds);
  const int64_t *values = results[0]->data, *counts = results[3]->data;
  const int64_t *inverse = results[2]->data;
  for (int64_t i = 0; i < kinds; i++)
    CHECK(counts[i] == seen[values[i]] && (!i || values[i - 1] < values[i]));
  for (int64_t i = 0; i < N; i++)
    if (values[inverse[i]] != squares[i])
      CHECK_EQ_INT(values[inverse[i]], squares[i]);
  for (int i = 0; i < 4; i++)
    pln_tensor_release(results[i]);
  pln_tensor_release(t);
  free(squares);
  end();
}

static const check_test tests[] = {
    {"elements of all dtypes", elements},
    {"slices along an axis", slices},
    {"strings", strings},
    {"many elements", many},
};
CHECK_MAIN(tests)
