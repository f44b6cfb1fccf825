/* test_cumulative.c: running sums and products, as tables (op_table.h). */

#include "op_table.h"

static void runs(void) {
  static const row rows[] = {
      {"cumsum",
       "",
       {"float32 4: 1 2 3 4", "int64: 0"},
       "float32 4: 1 3 6 10",
       0},
      {"cumsum",
       "exclusive=1",
       {"float64 2x2: 1 2 3 4", "int32 1: 0"},
       "float64 2x2: 0 0 1 2",
       0},
      {"cumsum",
       "reverse=1 exclusive=1",
       {"int32 2x3: 1 2 3 4 5 6", "int64: -1"},
       "int32 2x3: 5 3 0 11 6 0",
       0},
      {"cumsum",
       "",
       {"int32 2: 2147483647 1", "int64: 0"},
       "int32 2: 2147483647 -2147483648",
       0},
      {"cumsum", "", {"float16 3: 1 2 3", "int64: 0"}, "float16 3: 1 3 6", 0},
      {"cumprod",
       "",
       {"float32 4: 1 2 3 4", "int64: 0"},
       "float32 4: 1 2 6 24",
       0},
      {"cumprod",
       "exclusive=1",
       {"int64 2x3: 1 2 3 4 5 6", "int64: 1"},
       "int64 2x3: 1 1 2 1 4 20",
       0},
      {"cumprod",
       "reverse=1",
       {"int64 2x2: 1 2 3 4", "int64: 0"},
       "int64 2x2: 3 8 3 4",
       0},
      {"cumprod", "", {"float32 0x2:", "int64: 0"}, "float32 0x2:", 0},
      {"cumprod",
       "",
       {"float32 2: 1 2", "int64: 1"},
       "refused: 'cumprod': axis 1 is outside of the operand",
       0},
      {"cumprod",
       "",
       {"bool 2: 1 0", "int64: 0"},
       "refused: 'cumprod' is not implemented for bool",
       0},
  };
  run_rows(ROWS(rows));
}

static const check_test tests[] = {{"running sums and products", runs}};
CHECK_MAIN(tests)
