/* test_dims.c: symbolic dims and their arithmetic, and interned values. */

#include "base/base.h"
#include "captured_output.h"
#include "oom.h"

static pln_dim named(pln_engine *e, const char *name) {
  pln_dim dim = 0;
  CHECK_OK(pln_dim_named(e, pln_text(name), &dim));
  return dim;
}

static pln_dim op(pln_engine *e, pln_dim_op kind, pln_dim a, pln_dim b) {
  pln_dim dim = 0;
  CHECK_OK(pln_dim_binary(e, kind, a, b, &dim));
  return dim;
}

#define ADD(a, b) op(e, PLN_DIM_ADD, a, b)
#define SUB(a, b) op(e, PLN_DIM_SUB, a, b)
#define MUL(a, b) op(e, PLN_DIM_MUL, a, b)
#define DIV(a, b) op(e, PLN_DIM_FLOORDIV, a, b)
#define CUT(a, b) op(e, PLN_DIM_TRUNCDIV, a, b)
#define MOD(a, b) op(e, PLN_DIM_FLOORMOD, a, b)
#define MIN(a, b) op(e, PLN_DIM_MIN, a, b)
#define MAX(a, b) op(e, PLN_DIM_MAX, a, b)

#define CHECK_PRINTS(dim, wanted)                 \
  do {                                            \
    captured t_ = {.size = 0};                    \
    CHECK_OK(pln_print_dim(e, dim, append, &t_)); \
    CHECK_STR(t_.data, wanted);                   \
  } while (0)

static void proves_equal_what_is_equal(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_dim n = named(e, "N"), m = named(e, "M");
  CHECK_EQ_INT(SUB(ADD(n, 1), 1), n);
  CHECK_EQ_INT(ADD(MUL(2, n), n), MUL(3, n));
  CHECK_EQ_INT(MUL(n, m), MUL(m, n));
  CHECK_EQ_INT(SUB(n, n), 0);
  CHECK_EQ_INT(DIV(MUL(n, 4), 4), n);
  CHECK_EQ_INT(MOD(MUL(n, 4), 2), 0);
  CHECK_EQ_INT(MIN(n, n), n);
  CHECK_EQ_INT(MAX(ADD(n, 1), 1), ADD(n, 1));
  CHECK_EQ_INT(DIV(MUL(MUL(n, m), 64), MUL(n, 64)), m);
  CHECK_EQ_INT(DIV(MUL(ADD(n, 1), m), ADD(n, 1)), m);
  CHECK_EQ_INT(DIV(DIV(n, 2), 2), DIV(n, 4));
  CHECK_EQ_INT(DIV(ADD(MUL(n, 8), 3), 8), n);
  CHECK_EQ_INT(CUT(ADD(n, 3), 2), DIV(ADD(n, 3), 2));
  CHECK_EQ_INT(MIN(MIN(n, m), m), MIN(n, m));
  pln_engine_free(e);
}

static void keeps_apart_what_may_differ(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_dim n = named(e, "N"), m = named(e, "M");
  CHECK(MAX(n, 1) != n);
  CHECK(DIV(n, 2) != CUT(SUB(n, 3), 2));
  CHECK(MIN(n, m) != MAX(n, m));
  CHECK(CUT(SUB(n, 3), 2) != DIV(SUB(n, 3), 2));
  CHECK_EQ_INT(pln_dim_lower_bound(e, MAX(n, 1)), 1);
  CHECK_EQ_INT(pln_dim_lower_bound(e, SUB(n, m)), INT64_MIN);
  pln_engine_free(e);
}

static void gives_up_beyond_its_limits(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_dim n = named(e, "N"), sum = 0, deep = n;
  CHECK_EQ_INT(MUL(INT64_MAX, 2), PLN_DIM_UNKNOWN);
  CHECK_EQ_INT(ADD(INT64_C(1) << 62, 1), PLN_DIM_UNKNOWN);
  CHECK_EQ_INT(DIV(n, 0), PLN_DIM_UNKNOWN);
  CHECK_EQ_INT(MOD(7, 0), PLN_DIM_UNKNOWN);
  CHECK_EQ_INT(ADD(n, PLN_DIM_UNKNOWN), PLN_DIM_UNKNOWN);
  CHECK_EQ_INT(ADD(n, INT64_MAX), PLN_DIM_UNKNOWN);
  CHECK_EQ_INT(MIN(n, INT64_MAX), n);
  CHECK_EQ_INT(named(e, ""), PLN_DIM_UNKNOWN);
  for (int i = 0; i < 70; i++) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    sum = ADD(sum, named(e, name));
  }
  CHECK_EQ_INT(sum, PLN_DIM_UNKNOWN);
  for (int i = 0; i < 50; i++)
    deep = MIN(MUL(deep, 2), 1000 + i);
  CHECK_EQ_INT(deep, PLN_DIM_UNKNOWN);
  pln_engine_free(e);
}

static void folds_numbers(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  CHECK_EQ_INT(DIV(-7, 2), -4);
  CHECK_EQ_INT(CUT(-7, 2), -3);
  CHECK_EQ_INT(MOD(-7, 2), 1);
  CHECK_EQ_INT(MOD(7, -2), -1);
  CHECK_EQ_INT(MOD(INT64_MAX, -2), -1);
  pln_engine_free(e);
}

static void prints_as_a_formula(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_dim n = named(e, "N"), b = named(e, "batch size");
  CHECK_PRINTS(PLN_DIM_UNKNOWN, "?");
  CHECK_PRINTS(INT64_C(8589934592), "8589934592i64");
  CHECK_PRINTS(ADD(n, 1), "N+1");
  CHECK_PRINTS(SUB(MUL(n, b), MUL(2, n)), "N*\"batch size\"-2*N");
  CHECK_PRINTS(MAX(1, n), "max(N, 1)");
  CHECK_PRINTS(DIV(SUB(n, 3), 2), "floordiv(N+1, 2)-2");
  pln_engine_free(e);
}

static void substitutes(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_dim n = named(e, "N"), m = named(e, "M"), out = 0;
  pln_symbol name = pln_dim_name(e, n);
  CHECK(name);
  CHECK_EQ_INT(pln_dim_name(e, ADD(n, 1)), 0);
  CHECK_OK(pln_dim_substitute(e, ADD(DIV(n, 2), m), name, 10, &out));
  CHECK_EQ_INT(out, ADD(m, 5));
  CHECK_OK(pln_dim_substitute(e, MUL(n, n), name, ADD(m, 1), &out));
  CHECK_EQ_INT(out, ADD(ADD(MUL(m, m), MUL(2, m)), 1));
  pln_engine_free(e);
}

/* -------------------------------------------------- against plain integers */

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* A symbolic dim, and what it is for the values that stand for the names. */
typedef struct pair {
  pln_dim dim;
  int64_t value;
} pair;

static bool combine(pln_engine *e, pln_dim_op kind, pair a, pair b, pair *out) {
  bool divides = kind == PLN_DIM_FLOORDIV || kind == PLN_DIM_TRUNCDIV ||
                 kind == PLN_DIM_FLOORMOD;
  if (divides && b.value == 0)
    return false;
  out->dim = op(e, kind, a.dim, b.dim);
  out->value = op(e, kind, a.value, b.value);
  return out->dim != PLN_DIM_UNKNOWN && out->value < 100000 &&
         out->value > -100000;
}

static void check_pair(pln_engine *e, pair p, const pln_symbol *names,
                       const int64_t *values, int seed) {
  for (int i = 0; i < 3; i++)
    CHECK_OK(pln_dim_substitute(e, p.dim, names[i], values[i], &p.dim));
  if (!CHECK_EQ_INT(p.dim, p.value))
    printf("# seed %d\n", seed);
}

static void one_walk(pln_engine *e, int seed) {
  static const char *const names[3] = {"N", "M", "K"};
  uint64_t state = (uint64_t)seed;
  pln_symbol symbols[3];
  int64_t values[3];
  pair pool[16];
  for (int i = 0; i < 3; i++) {
    values[i] = (int64_t)(next_random(&state) % 12);
    pool[i] = (pair){named(e, names[i]), values[i]};
    symbols[i] = pln_dim_name(e, pool[i].dim);
  }
  for (int i = 3; i < 8; i++)
    pool[i].dim = pool[i].value = (int64_t)(next_random(&state) % 15) - 5;
  for (int i = 8, tries = 0; i < 16 && tries < 100; tries++) {
    pair a = pool[next_random(&state) % (uint64_t)i];
    pair b = pool[next_random(&state) % (uint64_t)i];
    if (!combine(e, (pln_dim_op)(next_random(&state) % 8), a, b, &pool[i]))
      continue;
    CHECK(pln_dim_lower_bound(e, pool[i].dim) <= pool[i].value);
    check_pair(e, pool[i], symbols, values, seed);
    i++;
  }
}

static void agrees_with_integers(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  for (int seed = 0; seed < 20000 && check_failures == 0; seed++)
    one_walk(e, seed);
  pln_engine_free(e);
}

/* ------------------------------------------------------------------ values */

static void values_are_interned(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_dim elements[] = {named(e, "N"), PLN_DIM_UNKNOWN, INT64_MAX};
  pln_value a, b, scalar, many;
  REQUIRE_OK(pln_value_make(e, 1, 3, elements, &a));
  REQUIRE_OK(pln_value_make(e, 1, 3, elements, &b));
  REQUIRE_OK(pln_value_make(e, 0, 1, elements, &scalar));
  CHECK(a != 0);
  CHECK_EQ_INT(a, b);
  CHECK(a != scalar);
  CHECK_EQ_INT(pln_value_rank(e, a), 1);
  CHECK_EQ_INT(pln_value_count(e, a), 3);
  CHECK_EQ_INT(pln_value_elements(e, a)[2], INT64_MAX);
  CHECK_EQ_INT(pln_value_count(e, 0), 0);
  pln_dim long_list[1025] = {0};
  REQUIRE_OK(pln_value_make(e, 1, 1025, long_list, &many));
  CHECK_EQ_INT(many, 0);
  REQUIRE_OK(pln_value_make(e, 2, 3, elements, &many));
  CHECK_EQ_INT(pln_value_rank(e, many), 2);
  CHECK(a != many);
  CHECK_STATUS(pln_value_make(e, 0, 2, elements, &many), PLN_ERR_ARGUMENT);
  pln_engine_free(e);
}

static pln_status work(pln_engine *e, void *ud) {
  (void)ud;
  pln_dim n, half, out;
  pln_value value;
  PLN_TRY(pln_dim_named(e, pln_text("N"), &n));
  PLN_TRY(pln_dim_binary(e, PLN_DIM_FLOORDIV, n, 2, &half));
  PLN_TRY(pln_dim_binary(e, PLN_DIM_MIN, half, 7, &out));
  return pln_value_make(e, 0, 1, &out, &value);
}

static void survives_oom(void) {
  oom_sweep(work, NULL);
}

/* A result in the range of the codes of symbols is no constant. */
static void no_constant_is_taken_for_a_symbol(void) {
  static const int64_t ends[] = {INT64_MAX, INT64_MAX - 1,
                                 INT64_MIN + (int64_t)UINT32_MAX + 1};
  pln_engine *e = pln_engine_new(NULL, NULL);
  for (size_t i = 0; i < PLN_COUNT(ends); i++)
    for (int op = PLN_DIM_ADD; op <= PLN_DIM_MAX; op++) {
      pln_dim d = 0;
      CHECK_OK(pln_dim_binary(e, (pln_dim_op)op, -2, ends[i], &d));
      CHECK(d == PLN_DIM_UNKNOWN || PLN_DIM_IS_CONST(d));
      CHECK_OK(pln_dim_binary(e, (pln_dim_op)op, ends[i], -1, &d));
      CHECK(d == PLN_DIM_UNKNOWN || PLN_DIM_IS_CONST(d));
    }
  pln_engine_free(e);
}

static const check_test tests[] = {
    {"no constant is taken for a symbol", no_constant_is_taken_for_a_symbol},
    {"proves equal what is equal", proves_equal_what_is_equal},
    {"keeps apart what may differ", keeps_apart_what_may_differ},
    {"gives up beyond its limits", gives_up_beyond_its_limits},
    {"folds numbers", folds_numbers},
    {"prints as a formula", prints_as_a_formula},
    {"substitutes", substitutes},
    {"agrees with integers", agrees_with_integers},
    {"values are interned", values_are_interned},
    {"survives failing allocations", survives_oom},
};
CHECK_MAIN(tests)
