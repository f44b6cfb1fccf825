/* test_relation.c: constraints of function types while memory runs out, and
 * that all relations are known by an operator. spec/type/relation_spec.lua
 * tests what they tell. */

#include "ir/infer/relation.h"
#include "oom.h"
#include "op/op.h"

static pln_status name_type(pln_engine *e, const char *name, pln_type *out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(e, pln_text(name), &symbol));
  return pln_type_var(e, symbol, PLN_TKIND_TYPE, out);
}

/* fn [a, b, c](a, b) -> c where Broadcast(a, b, c) */
static pln_status make_callee(pln_engine *e, pln_type *out) {
  pln_type vars[3], relation;
  pln_symbol name;
  PLN_TRY(name_type(e, "a", &vars[0]));
  PLN_TRY(name_type(e, "b", &vars[1]));
  PLN_TRY(name_type(e, "c", &vars[2]));
  PLN_TRY(pln_symbol_intern(e, pln_text("Broadcast"), &name));
  PLN_TRY(pln_type_relation(e, name, 3, vars, 2, 0, &relation));
  return pln_type_func(e, 2, vars, vars[2], 3, vars, 1, &relation, out);
}

static pln_status build(pln_builder *b, pln_type *out) {
  static const pln_dim dims[] = {2, 1};
  pln_type function, x, y;
  pln_ref f, args[2], call;
  pln_engine *e = pln_builder_graph(b)->engine;
  PLN_TRY(make_callee(e, &function));
  PLN_TRY(pln_type_tensor(e, PLN_FLOAT32, 2, dims, &x));
  PLN_TRY(pln_type_tensor(e, PLN_FLOAT32, 1, dims, &y));
  PLN_TRY(pln_build_var(b, 0, function, 0, &f));
  PLN_TRY(pln_build_var(b, 0, x, 0, &args[0]));
  PLN_TRY(pln_build_var(b, 0, y, 0, &args[1]));
  PLN_TRY(pln_build_apply(b, f, 0, 0, 2, args, &call));
  *out = pln_builder_graph(b)->nodes[call].type;
  return PLN_OK;
}

static pln_status apply(pln_engine *e, void *ud) {
  pln_builder *b;
  pln_type type;
  (void)ud;
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = build(b, &type);
  if (status == PLN_OK)
    CHECK_EQ_INT(pln_type_dims(e, type)[1], 2);
  pln_builder_free(b);
  return status;
}

static void memory_runs_out(void) {
  oom_sweep(apply, NULL);
}

static void operators_exist(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  for (uint32_t i = 0; i < e->n_relations; i++)
    if (e->relations[i].op &&
        !CHECK(pln_op_find(e, pln_text(e->relations[i].op))))
      printf("# %s\n", e->relations[i].op);
  pln_engine_free(e);
}

static const check_test tests[] = {
    {"memory runs out while relations are solved", memory_runs_out},
    {"each relation is known by an operator", operators_exist},
};
CHECK_MAIN(tests)
