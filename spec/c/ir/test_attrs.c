/* test_attrs.c: interned dictionaries of attributes; the table of operators. */

#include <math.h>

#include "base/base.h"
#include "ir/op_info.h"
#include "oom.h"

static pln_symbol symbol(pln_engine *e, const char *text) {
  pln_symbol out = 0;
  CHECK_OK(pln_symbol_intern(e, pln_text(text), &out));
  return out;
}

static pln_attr int_attr(pln_engine *e, const char *name, int64_t value) {
  return (pln_attr){
      .name = symbol(e, name), .kind = PLN_ATTR_INT, .v.i = value};
}

static pln_attr float_attr(pln_engine *e, const char *name, double value) {
  return (pln_attr){
      .name = symbol(e, name), .kind = PLN_ATTR_FLOAT, .v.f = value};
}

static pln_attrs make(pln_engine *e, uint32_t n, const pln_attr *entries) {
  pln_attrs out = 0;
  CHECK_OK(pln_attrs_make(e, n, entries, &out));
  return out;
}

static void order_does_not_matter(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_attr x[] = {int_attr(e, "b", 1), int_attr(e, "a", 2),
                  int_attr(e, "ab", 3)};
  pln_attr y[] = {x[2], x[0], x[1]};
  pln_attrs a = make(e, 3, x);
  CHECK(a != 0);
  CHECK_EQ_INT(make(e, 3, y), a);
  CHECK_EQ_INT(make(e, 0, NULL), 0);
  CHECK_EQ_INT(pln_attrs_count(e, a), 3);
  CHECK_EQ_INT(pln_attrs_at(e, a, 0)->v.i, 2);
  CHECK_EQ_INT(pln_attrs_at(e, a, 1)->v.i, 3);
  CHECK_EQ_INT(pln_attrs_int(e, a, "b", 7), 1);
  CHECK_EQ_INT(pln_attrs_int(e, a, "c", 7), 7);
  CHECK_EQ_INT(pln_attrs_int(e, 0, "a", 7), 7);
  pln_attr twice[] = {x[0], x[1], int_attr(e, "b", 9)};
  pln_attrs out;
  CHECK_STATUS(pln_attrs_make(e, 3, twice, &out), PLN_ERR_ARGUMENT);
  pln_engine_free(e);
}

static void floats_are_bits(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_attr zero = float_attr(e, "x", 0.0), minus = float_attr(e, "x", -0.0);
  pln_attr nan = float_attr(e, "x", NAN);
  CHECK(make(e, 1, &zero) != make(e, 1, &minus));
  CHECK_EQ_INT(make(e, 1, &nan), make(e, 1, &nan));
  CHECK(isnan(pln_attrs_float(e, make(e, 1, &nan), "x", 0.0)));
  pln_attr one = int_attr(e, "x", 0);
  CHECK(make(e, 1, &one) != make(e, 1, &zero));
  pln_engine_free(e);
}

static void lists_are_copied(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  int64_t ints[] = {1, 2, 3};
  char letters[] = "same";
  pln_slice strings[] = {{letters, 4}, {letters, 0}, {"\0x", 2}};
  pln_attr x[] = {{.name = symbol(e, "ints"),
                   .kind = PLN_ATTR_INTS,
                   .count = 3,
                   .v.ints = ints},
                  {.name = symbol(e, "strings"),
                   .kind = PLN_ATTR_STRINGS,
                   .count = 3,
                   .v.strings = strings},
                  {.name = symbol(e, "none"), .kind = PLN_ATTR_NONE}};
  pln_attrs a = make(e, 3, x);
  ints[0] = 99;
  letters[0] = 'l';
  const pln_attr *found = pln_attrs_find(e, a, "ints");
  REQUIRE(found && found->count == 3);
  CHECK_EQ_INT(found->v.ints[0], 1);
  CHECK_EQ_INT((uintptr_t)found->v.ints % 8, 0);
  found = pln_attrs_find(e, a, "strings");
  REQUIRE(found && found->count == 3);
  CHECK(pln_slice_is(found->v.strings[0], "same"));
  CHECK_EQ_INT(found->v.strings[1].size, 0);
  CHECK_EQ_INT(found->v.strings[2].size, 2);
  CHECK(make(e, 3, x) != a);
  x[0].count = 0;
  CHECK(pln_attrs_find(e, make(e, 1, x), "ints")->count == 0);
  pln_engine_free(e);
}

static void equal_tensors_are_one(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  int64_t dims[] = {2};
  float data[] = {1, 2}, other[] = {1, 3};
  pln_tensor *a, *b, *c;
  REQUIRE_OK(pln_tensor_from_bytes(e, PLN_FLOAT32, 1, dims, data, 8, &a));
  REQUIRE_OK(pln_tensor_from_bytes(e, PLN_FLOAT32, 1, dims, data, 8, &b));
  REQUIRE_OK(pln_tensor_from_bytes(e, PLN_FLOAT32, 1, dims, other, 8, &c));
  pln_attr x = {.name = symbol(e, "t"), .kind = PLN_ATTR_TENSOR};
  x.v.tensor = a;
  pln_attrs first = make(e, 1, &x);
  x.v.tensor = b;
  CHECK_EQ_INT(make(e, 1, &x), first);
  x.v.tensor = c;
  CHECK(make(e, 1, &x) != first);
  pln_tensor *list[] = {a, c, b};
  pln_attr y = {.name = symbol(e, "ts"),
                .kind = PLN_ATTR_TENSORS,
                .count = 3,
                .v.tensors = list};
  const pln_attr *found = pln_attrs_find(e, make(e, 1, &y), "ts");
  REQUIRE(found && found->count == 3);
  CHECK(found->v.tensors[0] == found->v.tensors[2]);
  pln_tensor_release(a);
  pln_tensor_release(b);
  pln_tensor_release(c);
  CHECK(pln_tensor_equal(found->v.tensors[1], found->v.tensors[1]));
  pln_engine_free(e);
}

static void changed_copies(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_attr x[] = {int_attr(e, "a", 1), int_attr(e, "b", 2)};
  pln_attr c = int_attr(e, "c", 3), b = int_attr(e, "b", 9);
  pln_attrs both = make(e, 2, x), out;
  REQUIRE_OK(pln_attrs_with(e, both, &c, &out));
  CHECK_EQ_INT(pln_attrs_count(e, out), 3);
  REQUIRE_OK(pln_attrs_without(e, out, "c", &out));
  CHECK_EQ_INT(out, both);
  REQUIRE_OK(pln_attrs_with(e, both, &b, &out));
  CHECK_EQ_INT(pln_attrs_int(e, out, "b", 0), 9);
  REQUIRE_OK(pln_attrs_without(e, both, "zzz", &out));
  CHECK_EQ_INT(out, both);
  REQUIRE_OK(pln_attrs_with(e, 0, &c, &out));
  CHECK_EQ_INT(out, make(e, 1, &c));
  pln_engine_free(e);
}

static void many_entries_are_found(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_attr entries[500];
  char name[16];
  for (int i = 0; i < 500; i++) {
    snprintf(name, sizeof name, "key%d", i * 7 % 500);
    entries[i] = int_attr(e, name, i * 7 % 500);
  }
  pln_attrs a = make(e, 500, entries);
  for (int i = 0; i < 500; i++) {
    snprintf(name, sizeof name, "key%d", i);
    CHECK_EQ_INT(pln_attrs_int(e, a, name, -1), i);
  }
  CHECK(!pln_attrs_find(e, a, "key"));
  pln_engine_free(e);
}

static void unknown_operators_are_opaque(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  REQUIRE(e);
  pln_op add = pln_op_find(e, pln_text("add")), op = 0, again = 0;
  uint32_t count = pln_op_count(e);
  CHECK(add != 0);
  CHECK(pln_slice_is(pln_op_name(e, add), "add"));
  CHECK_EQ_INT(pln_op_find(e, pln_text("com.acme::Magic")), 0);
  REQUIRE_OK(pln_op_opaque(e, pln_text("com.acme::Magic"), &op));
  REQUIRE_OK(pln_op_opaque(e, pln_text("com.acme::Magic"), &again));
  CHECK_EQ_INT(op, again);
  CHECK_EQ_INT(op, count + 1);
  CHECK_EQ_INT(pln_op_count(e), count + 1);
  CHECK_EQ_INT(pln_op_find(e, pln_text("com.acme::Magic")), op);
  CHECK(pln_op_row(e, op)->traits == PLN_TRAIT_OPAQUE);
  CHECK_EQ_INT(pln_op_row(e, op)->max_args, -1);
  REQUIRE_OK(pln_op_opaque(e, pln_text("add"), &again));
  CHECK_EQ_INT(again, add);
  pln_engine_free(e);
}

static pln_status make_one(pln_engine *e, pln_tensor *tensor) {
  pln_symbol a, b;
  pln_op op;
  pln_attrs out;
  PLN_TRY(pln_symbol_intern(e, pln_text("a"), &a));
  PLN_TRY(pln_symbol_intern(e, pln_text("b"), &b));
  PLN_TRY(pln_op_opaque(e, pln_text("x::Y"), &op));
  pln_slice strings[] = {pln_text("x"), pln_text("y")};
  pln_attr entries[] = {
      {.name = b, .kind = PLN_ATTR_TENSOR},
      {.name = a, .kind = PLN_ATTR_STRINGS, .count = 2, .v.strings = strings}};
  entries[0].v.tensor = tensor;
  PLN_TRY(pln_attrs_make(e, 2, entries, &out));
  CHECK_EQ_INT(pln_attrs_count(e, out), 2);
  return PLN_OK;
}

static pln_status work(pln_engine *e, void *ud) {
  (void)ud;
  pln_tensor *tensor;
  PLN_TRY(pln_tensor_new(e, PLN_FLOAT32, 0, NULL, &tensor));
  pln_status status = make_one(e, tensor);
  pln_tensor_release(tensor);
  return status;
}

static void survives_oom(void) {
  oom_sweep(work, NULL);
}

static const check_test tests[] = {
    {"order does not matter", order_does_not_matter},
    {"floats are bits", floats_are_bits},
    {"lists are copied", lists_are_copied},
    {"equal tensors are one", equal_tensors_are_one},
    {"changed copies", changed_copies},
    {"many entries are found", many_entries_are_found},
    {"unknown operators are opaque", unknown_operators_are_opaque},
    {"survives failing allocations", survives_oom},
};
CHECK_MAIN(tests)
