/* test_prim_fold.c: arithmetic on immediates of the loop level: what integers
 * wrap to, what is refused, what floats overflow to. */

#include <math.h>

#include "graph_fixture.h"

static pln_ref imm(pln_dtype dtype, int64_t value) {
  pln_type type;
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_type_prim(engine, dtype, 1, &type));
  CHECK_OK(pln_build_int_imm(b, type, value, &ref));
  return ref;
}

static pln_ref real(pln_dtype dtype, double value) {
  pln_type type;
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_type_prim(engine, dtype, 1, &type));
  CHECK_OK(pln_build_float_imm(b, type, value, &ref));
  return ref;
}

static pln_ref fold(pln_kind kind, pln_ref x, pln_ref y) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_folded(b, kind, x, y, &ref));
  return ref;
}

static void integers_wrap_in_their_dtype(void) {
  static const struct {
    pln_kind kind;
    pln_dtype dtype;
    int64_t x, y, value;
  } rows[] = {
      {PLN_PRIM_ADD, PLN_INT8, 127, 1, -128},
      {PLN_PRIM_ADD, PLN_UINT8, 255, 1, 0},
      {PLN_PRIM_SUB, PLN_INT16, -32768, 1, 32767},
      {PLN_PRIM_SUB, PLN_UINT16, 0, 1, 65535},
      {PLN_PRIM_MUL, PLN_INT32, 65536, 32768, INT32_MIN},
      {PLN_PRIM_MUL, PLN_INT64, INT64_MAX, 2, -2},
      {PLN_PRIM_ADD, PLN_INT64, INT64_MIN, -1, INT64_MAX},
      {PLN_PRIM_DIV, PLN_INT64, INT64_MIN, -1, INT64_MIN},
      {PLN_PRIM_FLOORDIV, PLN_INT32, INT32_MIN, -1, INT32_MIN},
      {PLN_PRIM_MOD, PLN_INT64, INT64_MIN, -1, 0},
      {PLN_PRIM_FLOORMOD, PLN_INT64, INT64_MIN, INT64_MAX, INT64_MAX - 1},
      {PLN_PRIM_DIV, PLN_INT32, -7, 2, -3},
      {PLN_PRIM_FLOORDIV, PLN_INT32, -7, 2, -4},
      {PLN_PRIM_MOD, PLN_INT32, -7, 2, -1},
      {PLN_PRIM_FLOORMOD, PLN_INT32, -7, 2, 1},
      {PLN_PRIM_MIN, PLN_INT64, INT64_MIN, 0, INT64_MIN},
      {PLN_PRIM_MAX, PLN_BOOL, 0, 1, 1},
  };
  begin();
  for (size_t i = 0; i < PLN_COUNT(rows); i++) {
    pln_ref ref = fold(rows[i].kind, imm(rows[i].dtype, rows[i].x),
                       imm(rows[i].dtype, rows[i].y));
    CHECK_EQ_INT(pln_node_kind(b->graph, ref), PLN_INT_IMM);
    CHECK_EQ_INT(pln_node_int(b->graph, ref), rows[i].value);
  }
  end();
}

static void floats_overflow_to_infinity(void) {
  begin();
  pln_ref ref =
      fold(PLN_PRIM_MUL, real(PLN_FLOAT32, 3e38), real(PLN_FLOAT32, 10));
  CHECK(isinf(pln_node_float(b->graph, ref)));
  ref = fold(PLN_PRIM_ADD, real(PLN_FLOAT32, 1e300), real(PLN_FLOAT32, 1));
  CHECK(isinf(pln_node_float(b->graph, ref)));
  ref = fold(PLN_PRIM_LT, real(PLN_FLOAT32, (double)NAN), real(PLN_FLOAT32, 1));
  CHECK_EQ_INT(pln_node_int(b->graph, ref), 0);
  ref = fold(PLN_PRIM_ADD, real(PLN_FLOAT16, 1), real(PLN_FLOAT16, 2));
  CHECK_EQ_INT(pln_node_kind(b->graph, ref), PLN_PRIM_ADD);
  end();
}

static void a_division_by_zero_is_refused(void) {
  static const pln_kind kinds[] = {PLN_PRIM_DIV, PLN_PRIM_MOD,
                                   PLN_PRIM_FLOORDIV, PLN_PRIM_FLOORMOD};
  begin();
  for (size_t i = 0; i < PLN_COUNT(kinds); i++) {
    pln_ref ref;
    CHECK_EQ_INT(pln_build_folded(b, kinds[i], imm(PLN_INT32, 1),
                                  imm(PLN_INT32, 0), &ref),
                 PLN_ERR_ARGUMENT);
    pln_diag_clear(engine);
  }
  end();
}

static pln_status fold_once(pln_engine *e, void *ud) {
  pln_builder *to;
  pln_type type;
  pln_ref x, y, ref;
  (void)ud;
  PLN_TRY(pln_builder_new(e, &to));
  pln_status status = pln_type_prim(e, PLN_INT32, 1, &type);
  if (status == PLN_OK)
    status = pln_build_int_imm(to, type, 3, &x);
  if (status == PLN_OK)
    status = pln_build_int_imm(to, type, 4, &y);
  if (status == PLN_OK)
    status = pln_build_folded(to, PLN_PRIM_LT, x, y, &ref);
  pln_builder_free(to);
  return status;
}

static void memory_may_run_out_anywhere(void) {
  oom_sweep(fold_once, NULL);
}

static const check_test tests[] = {
    {"integers wrap in their dtype", integers_wrap_in_their_dtype},
    {"floats overflow to infinity", floats_overflow_to_infinity},
    {"a division by zero is refused", a_division_by_zero_is_refused},
    {"memory may run out anywhere", memory_may_run_out_anywhere},
};

CHECK_MAIN(tests)
