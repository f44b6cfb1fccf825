/* test_types.c: interned types: making, reading, meeting, printing. */

#include "base/base.h"
#include "captured_output.h"
#include "oom.h"

static pln_type tensor(pln_engine *e, pln_dtype dtype, int32_t rank,
                       const pln_dim *dims) {
  pln_type type = 0;
  CHECK_OK(pln_type_tensor(e, dtype, rank, dims, &type));
  return type;
}

static pln_type make(pln_engine *e, pln_type_kind kind, const char *name,
                     uint32_t n, const pln_type *parts) {
  pln_symbol symbol = 0;
  pln_type type = 0;
  if (name)
    CHECK_OK(pln_symbol_intern(e, pln_text(name), &symbol));
  CHECK_OK(pln_type_make(e, kind, symbol, n, parts, &type));
  return type;
}

static void check_prints(pln_engine *e, pln_type type, const char *wanted) {
  captured t = {.size = 0};
  CHECK_OK(pln_print_type(e, type, append, &t));
  CHECK_STR(t.data, wanted);
}

static void equal_types_are_equal_numbers(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_dim dims[20] = {2, 3, -1, PLN_DIM_UNKNOWN};
  pln_type a = tensor(e, PLN_FLOAT32, 2, dims);
  CHECK(a != 0);
  CHECK_EQ_INT(tensor(e, PLN_FLOAT32, 2, dims), a);
  CHECK(tensor(e, PLN_FLOAT32, 1, dims) != a);
  CHECK(tensor(e, PLN_INT32, 2, dims) != a);
  CHECK_EQ_INT(pln_type_get_kind(e, a), PLN_TYPE_TENSOR);
  CHECK_EQ_INT(pln_type_dtype(e, a), PLN_FLOAT32);
  CHECK_EQ_INT(pln_type_rank(e, a), 2);
  CHECK_EQ_INT(pln_type_dims(e, a)[1], 3);
  pln_type wide = tensor(e, PLN_INT8, 20, dims);
  CHECK_EQ_INT(tensor(e, PLN_INT8, 20, dims), wide);
  CHECK_EQ_INT(pln_type_dims(e, wide)[2], PLN_DIM_UNKNOWN);
  CHECK_EQ_INT(pln_type_get_kind(e, 0), PLN_TYPE_INCOMPLETE);
  CHECK_EQ_INT(pln_type_rank(e, 0), -1);
  pln_type parts[] = {a, wide, 0};
  pln_type tuple = make(e, PLN_TYPE_TUPLE, NULL, 3, parts);
  CHECK_EQ_INT(make(e, PLN_TYPE_TUPLE, NULL, 3, parts), tuple);
  CHECK_EQ_INT(pln_type_n_parts(e, tuple), 3);
  CHECK_EQ_INT(pln_type_part_at(e, tuple, 1), wide);
  pln_engine_free(e);
}

static void refuses_what_is_no_type(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_type out, parts[2] = {0, 12345};
  CHECK_STATUS(pln_type_tensor(e, PLN_FLOAT32, 1025, NULL, &out),
               PLN_ERR_LIMIT);
  CHECK_STATUS(pln_type_tensor(e, PLN_N_DTYPES, 0, NULL, &out),
               PLN_ERR_ARGUMENT);
  CHECK_STATUS(pln_type_make(e, PLN_TYPE_TUPLE, 0, 2, parts, &out),
               PLN_ERR_ARGUMENT);
  CHECK_STATUS(pln_type_make(e, PLN_TYPE_REF, 0, 2, parts, &out),
               PLN_ERR_ARGUMENT);
  CHECK_STATUS(pln_type_make(e, PLN_TYPE_VAR, 0, 0, NULL, &out),
               PLN_ERR_ARGUMENT);
  pln_engine_free(e);
}

static pln_type meet(pln_engine *e, pln_type a, pln_type b, bool conflicts) {
  pln_type out = 0;
  bool conflict = !conflicts;
  CHECK_OK(pln_type_meet(e, a, b, &out, &conflict));
  CHECK_EQ_INT(conflict, conflicts);
  return out;
}

static void meeting_says_what_both_say(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_dim n, m;
  REQUIRE_OK(pln_dim_named(e, pln_text("N"), &n));
  REQUIRE_OK(pln_dim_named(e, pln_text("M"), &m));
  pln_dim x[] = {n, PLN_DIM_UNKNOWN}, y[] = {2, m}, both[] = {2, m};
  pln_type a = tensor(e, PLN_DTYPE_NONE, 2, x);
  pln_type b = tensor(e, PLN_FLOAT32, 2, y);
  pln_type any = tensor(e, PLN_FLOAT32, -1, NULL);
  pln_type met = tensor(e, PLN_FLOAT32, 2, both);
  CHECK_EQ_INT(meet(e, a, b, false), met);
  CHECK_EQ_INT(meet(e, b, a, false), met);
  CHECK_EQ_INT(meet(e, any, b, false), b);
  CHECK_EQ_INT(meet(e, 0, b, false), b);
  CHECK_EQ_INT(meet(e, b, 0, false), b);
  CHECK_EQ_INT(meet(e, b, tensor(e, PLN_INT8, 2, y), true), b);
  CHECK_EQ_INT(meet(e, b, tensor(e, PLN_FLOAT32, 1, y), true), b);
  pln_type s = make(e, PLN_TYPE_TUPLE, NULL, 2, (pln_type[]){a, 0});
  pln_type t = make(e, PLN_TYPE_TUPLE, NULL, 2, (pln_type[]){b, any});
  pln_type u = make(e, PLN_TYPE_TUPLE, NULL, 2, (pln_type[]){met, any});
  CHECK_EQ_INT(meet(e, s, t, false), u);
  CHECK_EQ_INT(meet(e, s, make(e, PLN_TYPE_TUPLE, NULL, 0, NULL), true), s);
  CHECK_EQ_INT(meet(e, s, a, true), s);
  pln_engine_free(e);
}

static void nesting_has_no_limit(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_type a = 0, b = tensor(e, PLN_FLOAT32, 0, NULL), both = b;
  captured t = {.size = 0};
  for (int i = 0; i < 100000; i++) {
    a = make(e, PLN_TYPE_REF, NULL, 1, &a);
    b = make(e, PLN_TYPE_REF, NULL, 1, &b);
    both = b;
  }
  CHECK_EQ_INT(meet(e, a, b, false), both);
  CHECK_STATUS(pln_print_type(e, a, append, &t), PLN_ERR_LIMIT);
  pln_engine_free(e);
}

static void prints_relay(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_dim dims[] = {2, PLN_DIM_UNKNOWN};
  pln_type a = tensor(e, PLN_FLOAT32, 2, dims),
           s = tensor(e, PLN_BOOL, 0, NULL);
  check_prints(e, 0, "_");
  check_prints(e, a, "Tensor[(2, ?), float32]");
  check_prints(e, s, "bool");
  check_prints(e, tensor(e, PLN_INT8, -1, NULL), "Tensor[*, int8]");
  check_prints(e, make(e, PLN_TYPE_TUPLE, NULL, 0, NULL), "()");
  check_prints(e, make(e, PLN_TYPE_TUPLE, NULL, 1, &s), "(bool,)");
  pln_type f = make(e, PLN_TYPE_FUNC, NULL, 2, (pln_type[]){a, s});
  check_prints(e, f, "fn (Tensor[(2, ?), float32]) -> bool");
  check_prints(e, make(e, PLN_TYPE_FUNC, NULL, 1, &s), "fn () -> bool");
  check_prints(e, make(e, PLN_TYPE_CALL, "List", 1, &s), "List[bool]");
  check_prints(e, make(e, PLN_TYPE_CALL, "Unit", 0, NULL), "Unit[]");
  check_prints(e, make(e, PLN_TYPE_SEQUENCE, NULL, 1, &s), "seq(bool)");
  check_prints(e, make(e, PLN_TYPE_OPTIONAL, NULL, 1, &s), "optional(bool)");
  check_prints(e, make(e, PLN_TYPE_MAP, NULL, 2, (pln_type[]){s, s}),
               "map(bool, bool)");
  check_prints(e, make(e, PLN_TYPE_OPAQUE, "a::b", 0, NULL),
               "opaque(\"a::b\")");
  pln_engine_free(e);
}

static pln_status work(pln_engine *e, void *ud) {
  (void)ud;
  pln_dim dims[20] = {0};
  pln_type a, b, out;
  bool conflict;
  PLN_TRY(pln_type_tensor(e, PLN_FLOAT32, 20, dims, &a));
  PLN_TRY(pln_type_make(e, PLN_TYPE_REF, 0, 1, &a, &a));
  PLN_TRY(pln_type_make(e, PLN_TYPE_REF, 0, 1, (pln_type[]){0}, &b));
  return pln_type_meet(e, b, a, &out, &conflict);
}

/* 2^1000 leaves, 1,000 pairs. */
static void parts_that_are_shared_are_met_once(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_type a = 0, b = tensor(e, PLN_FLOAT32, -1, NULL), met = 0;
  bool conflict = true;
  for (int i = 0; i < 1000; i++) {
    a = make(e, PLN_TYPE_TUPLE, NULL, 2, (pln_type[]){a, a});
    b = make(e, PLN_TYPE_TUPLE, NULL, 2, (pln_type[]){b, b});
  }
  CHECK_OK(pln_type_meet(e, a, b, &met, &conflict));
  CHECK(!conflict);
  CHECK_EQ_INT(met, b);
  pln_engine_free(e);
}

static void survives_oom(void) {
  oom_sweep(work, NULL);
}

static const check_test tests[] = {
    {"equal types are equal numbers", equal_types_are_equal_numbers},
    {"refuses what is not a type", refuses_what_is_no_type},
    {"meeting says what both say", meeting_says_what_both_say},
    {"nesting has no limit", nesting_has_no_limit},
    {"prints Relay's notation", prints_relay},
    {"parts that are shared are met once", parts_that_are_shared_are_met_once},
    {"survives failing allocations", survives_oom},
};
CHECK_MAIN(tests)
