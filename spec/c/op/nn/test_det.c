/* test_det.c: determinants, as tables (op_table.h). */

#include "op_table.h"

static void determinants(void) {
  static const row rows[] = {
      {"det", "", {"float32 2x2: 1 2 3 4"}, "float32: -2", 0},
      {"det", "", {"float64 2x2x2: 0 1 1 0 2 0 0 3"}, "float64 2: -1 6", 0},
      {"det", "", {"float32 3x3: 2 -1 0 -1 2 -1 0 -1 2"}, "float32: 4", 0},
      {"det", "", {"float32 2x2: 1 2 2 4"}, "float32: 0", 0},
      {"det", "", {"float16 1x1x1: 5"}, "float16 1: 5", 0},
      {"det", "", {"float32 2x0x0:"}, "float32 2: 1 1", 0},
      {"det", "", {"float32 0x2x2:"}, "float32 0:", 0},
      {"det",
       "",
       {"int32 1x1: 1"},
       "refused: 'det' is not implemented for int32",
       0},
      {"det",
       "",
       {"float32 1x2: 1 2"},
       "ill-typed: 'det', operand 0: expected extent 1, got 2",
       0},
      {"det",
       "",
       {"float32 2: 1 2"},
       "ill-typed: 'det', operand 0: expected rank 2 or more, got 1",
       0},
  };
  run_rows(ROWS(rows));
}

static const check_test tests[] = {
    {"determinants of matrices", determinants},
};
CHECK_MAIN(tests)
