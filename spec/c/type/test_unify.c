/* test_unify.c: unification of types: what TVM's solver of types pins, users'
 * holes, waiting, types that contain themselves, and linear time. */

#include "captured_output.h"
#include "ir/type/type.h"
#include "ir/type/unify.h"
#include "oom.h"

typedef struct world {
  pln_engine *e;
  pln_unifier u;
} world;

static void begin(world *w) {
  w->e = pln_engine_new(NULL, NULL);
  REQUIRE(w->e);
  pln_unifier_init(&w->u, w->e);
}

static void end(world *w) {
  pln_unifier_free(&w->u);
  pln_engine_free(w->e);
}

static pln_symbol name(world *w, const char *as) {
  pln_symbol symbol = 0;
  CHECK_OK(pln_symbol_intern(w->e, pln_text(as), &symbol));
  return symbol;
}

static pln_type tensor2(world *w, pln_dim a, pln_dim b) {
  pln_type type = 0;
  CHECK_OK(pln_type_tensor(w->e, PLN_FLOAT32, 2, (pln_dim[]){a, b}, &type));
  return type;
}

static pln_type hole(world *w) {
  pln_type type = 0;
  CHECK_OK(pln_unifier_hole(&w->u, &type));
  return type;
}

static pln_type var(world *w, const char *as) {
  pln_type type = 0;
  CHECK_OK(pln_type_var(w->e, name(w, as), PLN_TKIND_TYPE, &type));
  return type;
}

static pln_type pair(world *w, pln_type a, pln_type b) {
  pln_type type = 0;
  CHECK_OK(
      pln_type_make(w->e, PLN_TYPE_TUPLE, 0, 2, (pln_type[]){a, b}, &type));
  return type;
}

static pln_type ref(world *w, pln_type of) {
  pln_type type = 0;
  CHECK_OK(pln_type_make(w->e, PLN_TYPE_REF, 0, 1, &of, &type));
  return type;
}

static pln_type call(world *w, const char *of, uint32_t n,
                     const pln_type *args) {
  pln_type type = 0;
  CHECK_OK(pln_type_make(w->e, PLN_TYPE_CALL, name(w, of), n, args, &type));
  return type;
}

/* fn [vars](a, b) -> ret */
static pln_type func2(world *w, pln_type a, pln_type b, pln_type ret,
                      uint32_t n_vars, const pln_type *vars) {
  pln_type type = 0;
  CHECK_OK(pln_type_func(w->e, 2, (pln_type[]){a, b}, ret, n_vars, vars, 0,
                         NULL, &type));
  return type;
}

static bool unify(world *w, pln_type a, pln_type b) {
  bool fits = false;
  CHECK_OK(pln_unify(&w->u, a, b, &fits));
  return fits;
}

static pln_type resolve(world *w, pln_type type) {
  pln_type out = 0;
  CHECK_OK(pln_unifier_resolve(&w->u, type, &out, NULL));
  return out;
}

static void unifies_tuples(void) {
  world w;
  begin(&w);
  pln_type a = hole(&w), b = hole(&w), t = tensor2(&w, 2, 3);
  CHECK(unify(&w, pair(&w, a, t), pair(&w, b, b)));
  CHECK_EQ_INT(resolve(&w, pair(&w, a, b)), pair(&w, t, t));
  CHECK(!unify(&w, pair(&w, t, t), t));
  CHECK(!unify(&w, pair(&w, t, t), pair(&w, t, tensor2(&w, 3, 3))));
  end(&w);
}

static void unifies_names_of_definitions(void) {
  world w;
  begin(&w);
  pln_type list = 0, tree = 0, h = hole(&w);
  CHECK_OK(pln_type_make(w.e, PLN_TYPE_GLOBAL_VAR, name(&w, "List"), 0, NULL,
                         &list));
  CHECK_OK(pln_type_make(w.e, PLN_TYPE_GLOBAL_VAR, name(&w, "Tree"), 0, NULL,
                         &tree));
  CHECK(unify(&w, list, list));
  CHECK(unify(&w, h, tree));
  CHECK(!unify(&w, list, tree));
  CHECK(!unify(&w, list, h));
  end(&w);
}

static void unifies_calls_of_definitions(void) {
  world w;
  begin(&w);
  pln_type h = hole(&w), t = tensor2(&w, 1, 1);
  CHECK(unify(&w, call(&w, "List", 1, &h), call(&w, "List", 1, &t)));
  CHECK_EQ_INT(resolve(&w, h), t);
  CHECK(!unify(&w, call(&w, "List", 1, &t), call(&w, "Tree", 1, &t)));
  pln_type other = tensor2(&w, 1, 2);
  CHECK(!unify(&w, call(&w, "List", 1, &t), call(&w, "List", 1, &other)));
  CHECK(!unify(&w, call(&w, "List", 1, &t),
               call(&w, "List", 2, (pln_type[]){t, t})));
  end(&w);
}

static void unifies_functions(void) {
  world w;
  begin(&w);
  pln_type a = hole(&w), b = hole(&w), c = hole(&w);
  pln_type t = tensor2(&w, 2, 2), u = tensor2(&w, 5, 5);
  CHECK(unify(&w, func2(&w, a, b, c, 0, NULL), func2(&w, t, u, t, 0, NULL)));
  CHECK_EQ_INT(resolve(&w, func2(&w, a, b, c, 0, NULL)),
               func2(&w, t, u, t, 0, NULL));
  end(&w);
}

static void unifies_deeply_and_through_chains_of_holes(void) {
  world w;
  begin(&w);
  pln_type a = hole(&w), b = hole(&w), c = hole(&w), t = tensor2(&w, 2, 2);
  CHECK(unify(&w, a, b));
  CHECK(unify(&w, pair(&w, pair(&w, a, c), c), pair(&w, pair(&w, c, b), t)));
  CHECK_EQ_INT(resolve(&w, ref(&w, a)), ref(&w, t));
  end(&w);
}

static void holes_stand_for_type_variables(void) {
  world w;
  begin(&w);
  pln_type a = var(&w, "a"), b = var(&w, "b"), h = hole(&w), k = hole(&w);
  CHECK(unify(&w, pair(&w, a, b), pair(&w, h, k)));
  CHECK_EQ_INT(resolve(&w, pair(&w, h, k)), pair(&w, a, b));
  CHECK(!unify(&w, h, k));
  CHECK(!unify(&w, a, tensor2(&w, 1, 1)));
  end(&w);
}

static void generic_functions_are_equal_up_to_names(void) {
  world w;
  begin(&w);
  pln_type a = var(&w, "a"), b = var(&w, "b"), c = var(&w, "c"),
           d = var(&w, "d");
  pln_type f = func2(&w, a, b, a, 2, (pln_type[]){a, b});
  pln_type g = func2(&w, c, d, c, 2, (pln_type[]){c, d});
  CHECK(f != g);
  CHECK(unify(&w, f, g));
  CHECK(!unify(&w, f, func2(&w, c, d, d, 2, (pln_type[]){c, d})));
  end(&w);
}

static void a_generic_function_fits_a_concrete_one(void) {
  world w;
  begin(&w);
  pln_type a = var(&w, "a"), b = var(&w, "b"), t = tensor2(&w, 1, 2);
  pln_type f = func2(&w, a, b, a, 2, (pln_type[]){a, b});
  pln_type g = func2(&w, t, ref(&w, t), t, 0, NULL);
  CHECK(unify(&w, f, g));
  CHECK(unify(&w, g, f));
  CHECK(!unify(&w, f, func2(&w, t, t, ref(&w, t), 0, NULL)));
  end(&w);
}

static void nested_generic_functions_keep_their_own_variables(void) {
  world w;
  begin(&w);
  pln_type a = var(&w, "a"), b = var(&w, "b"), c = var(&w, "c"),
           d = var(&w, "d");
  pln_type f = func2(&w, a, func2(&w, a, b, b, 1, &b), a, 1, &a);
  pln_type g = func2(&w, c, func2(&w, c, d, d, 1, &d), c, 1, &c);
  CHECK(unify(&w, f, g));
  pln_type wrong = func2(&w, c, func2(&w, d, d, d, 1, &d), c, 1, &c);
  CHECK(!unify(&w, f, wrong));
  end(&w);
}

static void variables_correspond_in_order(void) {
  world w;
  begin(&w);
  pln_type a = var(&w, "a"), b = var(&w, "b"), c = var(&w, "c"),
           d = var(&w, "d");
  pln_type f = func2(&w, a, b, a, 2, (pln_type[]){a, b});
  CHECK(!unify(&w, f, func2(&w, d, c, d, 2, (pln_type[]){c, d})));
  CHECK(unify(&w, f, func2(&w, d, c, d, 2, (pln_type[]){d, c})));
  end(&w);
}

static void what_contains_itself_is_refused(void) {
  world w;
  begin(&w);
  pln_type a = hole(&w), b = hole(&w), out;
  (void)unify(&w, a, ref(&w, a));
  CHECK_STATUS(pln_unifier_resolve(&w.u, a, &out, NULL), PLN_ERR_TYPE);
  (void)unify(&w, pair(&w, b, b), pair(&w, ref(&w, a), a));
  CHECK_STATUS(pln_unifier_resolve(&w.u, b, &out, NULL), PLN_ERR_TYPE);
  end(&w);
}

static void open_dims_match_any(void) {
  world w;
  begin(&w);
  pln_type h = hole(&w), any = tensor2(&w, PLN_DIM_UNKNOWN, 3);
  CHECK(unify(&w, h, any));
  CHECK(unify(&w, h, tensor2(&w, 4, 3)));
  CHECK_EQ_INT(resolve(&w, h), any);
  CHECK(!unify(&w, h, tensor2(&w, 4, 4)));
  pln_type free = 0;
  CHECK_OK(pln_type_tensor(w.e, PLN_FLOAT32, -1, NULL, &free));
  CHECK(unify(&w, free, any));
  end(&w);
}

static void holes_of_users_remain(void) {
  world w;
  begin(&w);
  pln_type mine = 0, h = hole(&w), unknown = 0, out = 0;
  CHECK_OK(pln_type_hole(w.e, &mine));
  CHECK(unify(&w, h, mine));
  CHECK_OK(pln_unifier_resolve(&w.u, ref(&w, h), &out, &unknown));
  CHECK_EQ_INT(out, ref(&w, mine));
  CHECK_EQ_INT(unknown, mine);
  CHECK_EQ_INT(resolve(&w, hole(&w)), 0);
  CHECK(unify(&w, h, tensor2(&w, 1, 1)));
  CHECK_EQ_INT(resolve(&w, mine), tensor2(&w, 1, 1));
  end(&w);
}

static void who_waits_is_called_once(void) {
  world w;
  begin(&w);
  pln_type a = hole(&w), b = hole(&w);
  uint32_t id = 0;
  CHECK_OK(pln_unifier_wait(&w.u, a, 7));
  CHECK_OK(pln_unifier_wait(&w.u, b, 3));
  CHECK_OK(pln_unifier_wait(&w.u, b, 9));
  CHECK(unify(&w, a, b));
  CHECK(!pln_unifier_next_ready(&w.u, &id));
  CHECK(unify(&w, a, tensor2(&w, 1, 1)));
  uint32_t seen = 0;
  while (pln_unifier_next_ready(&w.u, &id))
    seen = seen * 10 + id;
  CHECK(seen == 739 || seen == 397);
  CHECK_OK(pln_unifier_wait(&w.u, a, 5));
  CHECK(pln_unifier_next_ready(&w.u, &id) && id == 5);
  end(&w);
}

static void incomplete_parts_are_opened_one_by_one(void) {
  world w;
  begin(&w);
  pln_type open = 0, t = tensor2(&w, 1, 1);
  CHECK_OK(pln_unifier_open(&w.u, pair(&w, ref(&w, 0), ref(&w, 0)), &open));
  CHECK(unify(&w, open, pair(&w, ref(&w, t), ref(&w, ref(&w, t)))));
  CHECK_EQ_INT(resolve(&w, open), pair(&w, ref(&w, t), ref(&w, ref(&w, t))));
  end(&w);
}

/* 1,000 times doubled, with a hole at the bottom: 2^1000 leaves. */
static void doubling_takes_linear_time(void) {
  world w;
  begin(&w);
  pln_type h = hole(&w), t = tensor2(&w, 1, 1), a = h, b = t;
  for (int i = 0; i < 1000; i++) {
    a = pair(&w, a, a);
    b = pair(&w, b, b);
  }
  CHECK(unify(&w, a, b));
  CHECK_EQ_INT(resolve(&w, h), t);
  CHECK_EQ_INT(resolve(&w, a), b);
  CHECK_OK(pln_unifier_open(&w.u, pair(&w, a, 0), &a));
  end(&w);
}

static void deep_types_do_not_recurse(void) {
  world w;
  begin(&w);
  pln_type h = hole(&w), t = tensor2(&w, 1, 1), a = h, b = t;
  for (int i = 0; i < 200000; i++) {
    a = ref(&w, a);
    b = ref(&w, b);
  }
  CHECK(unify(&w, a, b));
  CHECK_EQ_INT(resolve(&w, a), b);
  end(&w);
}

static pln_status unify_something(pln_engine *engine, void *ud) {
  world w = {.e = engine};
  (void)ud;
  pln_type vars[4] = {0}, parts[3], f = 0, g = 0, out = 0;
  bool fits = false;
  pln_unifier_init(&w.u, engine);
  pln_status status = PLN_OK;
  for (int i = 0; i < 2 && status == PLN_OK; i++)
    status = pln_type_var(engine, 1, PLN_TKIND_TYPE, &vars[i]);
  for (int i = 2; i < 4 && status == PLN_OK; i++)
    status = pln_unifier_hole(&w.u, &vars[i]);
  if (status == PLN_OK)
    status = pln_type_func(engine, 1, vars, vars[1], 2, vars, 0, NULL, &f);
  if (status == PLN_OK)
    status = pln_type_func(engine, 1, vars + 2, vars[3], 0, NULL, 0, NULL, &g);
  parts[0] = f;
  parts[1] = parts[2] = g;
  if (status == PLN_OK)
    status = pln_type_make(engine, PLN_TYPE_TUPLE, 0, 3, parts, &f);
  if (status == PLN_OK)
    status = pln_unifier_wait(&w.u, vars[2], 100);
  if (status == PLN_OK)
    status = pln_unifier_open(&w.u, 0, &g);
  if (status == PLN_OK)
    status = pln_unify(&w.u, g, f, &fits);
  if (status == PLN_OK)
    status = pln_unifier_resolve(&w.u, g, &out, NULL);
  pln_unifier_free(&w.u);
  return status;
}

static void survives_oom(void) {
  oom_sweep(unify_something, NULL);
}

static const check_test tests[] = {
    {"unifies tuples", unifies_tuples},
    {"unifies names of definitions", unifies_names_of_definitions},
    {"unifies calls of definitions", unifies_calls_of_definitions},
    {"unifies functions", unifies_functions},
    {"unifies deeply and through chains of holes",
     unifies_deeply_and_through_chains_of_holes},
    {"holes stand for type variables", holes_stand_for_type_variables},
    {"generic functions are equal up to names",
     generic_functions_are_equal_up_to_names},
    {"a generic function fits a concrete one",
     a_generic_function_fits_a_concrete_one},
    {"nested generic functions keep their own variables",
     nested_generic_functions_keep_their_own_variables},
    {"variables correspond in order", variables_correspond_in_order},
    {"what contains itself is refused", what_contains_itself_is_refused},
    {"open dims match any", open_dims_match_any},
    {"holes of users remain", holes_of_users_remain},
    {"who waits is called once", who_waits_is_called_once},
    {"incomplete parts are opened one by one",
     incomplete_parts_are_opened_one_by_one},
    {"doubling takes linear time", doubling_takes_linear_time},
    {"deep types do not recurse", deep_types_do_not_recurse},
    {"survives failing allocations", survives_oom},
};
CHECK_MAIN(tests)
