/* test_tensor_scatter.c: updates of caches, as tables (op_table.h). */

#include "op_table.h"

#define CACHE "int32 2x3x1: 1 2 3 4 5 6"

static void updates(void) {
  static const row rows[] = {
      {"tensor_scatter",
       "",
       {CACHE, "int32 2x2x1: 7 8 9 10", "int64 2: 0 1"},
       "int32 2x3x1: 7 8 3 4 9 10",
       0},
      {"tensor_scatter",
       "",
       {CACHE, "int32 2x2x1: 7 8 9 10"},
       "int32 2x3x1: 7 8 3 9 10 6",
       0},
      {"tensor_scatter",
       "mode=circular",
       {CACHE, "int32 2x2x1: 7 8 9 10", "int64 2: 2 1"},
       "int32 2x3x1: 8 2 7 4 9 10",
       0},
      {"tensor_scatter",
       "axis=-1",
       {"float16 1x2x2: 1 2 3 4", "float16 1x2x1: 5 6", "int64 1: 1"},
       "float16 1x2x2: 1 5 3 6",
       0},
      {"tensor_scatter",
       "",
       {"int32 0x3x1:", "int32 0x2x1:", "int64 0:"},
       "int32 0x3x1:",
       0},
      {"tensor_scatter",
       "",
       {CACHE, "int32 2x2x1: 7 8 9 10", "int64 2: 0 2"},
       "refused: 'tensor_scatter': position 2 is outside of [0, 1]",
       0},
      {"tensor_scatter",
       "mode=circular",
       {CACHE, "int32 2x2x1: 7 8 9 10", "int64 2: 3 0"},
       "refused: 'tensor_scatter': position 3 is outside of [0, 2]",
       0},
      {"tensor_scatter",
       "",
       {CACHE, "int32 2x2x1: 7 8 9 10", "int64 1: 0"},
       "refused: 'tensor_scatter': the positions are not one for each batch",
       0},
      {"tensor_scatter",
       "",
       {CACHE, "int32 2x4x1: 1 2 3 4 5 6 7 8"},
       "refused: 'tensor_scatter': the update does not match the cache",
       0},
      {"tensor_scatter",
       "axis=0",
       {CACHE, "int32 2x2x1: 7 8 9 10"},
       "refused: 'tensor_scatter': axis 0 is not an axis of positions",
       0},
  };
  run_rows(ROWS(rows));
}

static const check_test tests[] = {
    {"updates at positions", updates},
};
CHECK_MAIN(tests)
