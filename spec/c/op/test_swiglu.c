/* test_swiglu.c: gates by silu, as tables (op_table.h). */

#include "op_table.h"

static void gates(void) {
  static const row rows[] = {
      {"nn.swiglu",
       "",
       {"float32 3: 0 1 -1", "float32 3: 5 2 10"},
       "float32 3: 0 1.46212 -2.68941",
       0},
      {"nn.swiglu",
       "alpha=2.0",
       {"float64 1: 1", "float64 1: 1"},
       "float64 1: 0.880797",
       0},
      {"nn.swiglu",
       "",
       {"float32 3: -200 200 -inf", "float32 3: 1 1 1"},
       "float32 3: -0 200 nan",
       0},
      {"nn.swiglu", "", {"bfloat16 1: 0", "bfloat16 1: 1"}, "bfloat16 1: 0", 0},
      {"nn.swiglu",
       "",
       {"float32 2: 1 2", "float32 1: 1"},
       "ill-typed: 'nn.swiglu', operand 1: expected extent 2, got 1",
       0},
      {"nn.swiglu",
       "",
       {"int32 1: 1", "int32 1: 1"},
       "refused: 'nn.swiglu' is not implemented for int32",
       0},
  };
  run_rows(ROWS(rows));
}

static const check_test tests[] = {{"silu times another operand", gates}};
CHECK_MAIN(tests)
