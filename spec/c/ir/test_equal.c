/* test_equal.c: equality, hash and mismatches of types, expressions, modules;
 * what is well-formed. Cases of scripts are in spec/equal_spec.lua. */

#include <stdlib.h>
#include <unistd.h>

#include "graph_fixture.h"

static pln_symbol symbol(const char *text) {
  pln_symbol out = 0;
  CHECK_OK(pln_symbol_intern(engine, pln_text(text), &out));
  return out;
}

/* ------------------------------------------------------------------- types */

static pln_type tensor(int64_t n) {
  pln_type type = 0;
  CHECK_OK(pln_type_tensor(engine, PLN_FLOAT32, 1, &n, &type));
  return type;
}

static pln_type type_var(const char *name, pln_type_var_kind kind) {
  pln_type type = 0;
  CHECK_OK(pln_type_var(engine, symbol(name), kind, &type));
  return type;
}

static pln_type compound(pln_type_kind kind, const char *name, uint32_t n,
                         const pln_type *parts) {
  pln_type type = 0;
  CHECK_OK(
      pln_type_make(engine, kind, name ? symbol(name) : 0, n, parts, &type));
  return type;
}

static pln_type relation(const char *name, uint32_t n, const pln_type *args,
                         uint32_t inputs, pln_attrs attrs) {
  pln_type type = 0;
  CHECK_OK(
      pln_type_relation(engine, symbol(name), n, args, inputs, attrs, &type));
  return type;
}

static pln_type func(uint32_t n, const pln_type *params, pln_type ret,
                     uint32_t n_vars, const pln_type *vars, uint32_t n_rels,
                     const pln_type *rels) {
  pln_type type = 0;
  CHECK_OK(
      pln_type_func(engine, n, params, ret, n_vars, vars, n_rels, rels, &type));
  return type;
}

/* Both ways, and the hash agrees; free variables stay themselves. */
static bool same_types(pln_type x, pln_type y) {
  bool there = false, back = false;
  CHECK_OK(pln_type_equal(engine, x, y, false, &there));
  CHECK_OK(pln_type_equal(engine, y, x, false, &back));
  CHECK_EQ_INT(there, back);
  if (there)
    CHECK(pln_type_hash(engine, x) == pln_type_hash(engine, y));
  return there;
}

static void type_parameters_correspond_in_function_types_only(void) {
  begin();
  pln_type a = type_var("a", PLN_TKIND_TYPE), c = type_var("c", PLN_TKIND_TYPE);
  pln_type s = type_var("s", PLN_TKIND_SHAPE_VAR);
  CHECK(same_types(a, a));
  CHECK(!same_types(a, c));
  CHECK(!same_types(a, s));
  CHECK(same_types(func(0, NULL, a, 1, &a, 0, NULL),
                   func(0, NULL, c, 1, &c, 0, NULL)));
  CHECK(!same_types(func(0, NULL, a, 1, &a, 0, NULL),
                    func(0, NULL, s, 1, &s, 0, NULL)));
  bool mapped = false;
  CHECK_OK(pln_type_equal(engine, a, c, true, &mapped));
  CHECK(mapped);
  CHECK(pln_type_hash(engine, a) == pln_type_hash(engine, c));
  end();
}

static void function_types_differ_in_each_of_their_parts(void) {
  begin();
  pln_type t[] = {tensor(2), tensor(3)}, u[] = {t[1], t[0]};
  pln_type p[] = {type_var("p", 0), type_var("s", PLN_TKIND_SHAPE_VAR)};
  pln_type q[] = {type_var("q", 0), type_var("r", PLN_TKIND_SHAPE_VAR)};
  pln_type all[] = {p[0], q[0], p[1]};
  pln_type rel[] = {relation("Broadcast", 2, p, 1, 0),
                    relation("Identity", 2, p, 1, 0)};
  pln_type other = relation("Broadcast", 2, q, 1, 0);
  pln_type f = func(2, t, p[0], 2, p, 1, rel);
  CHECK(same_types(f, func(2, t, q[0], 2, q, 1, &other)));
  CHECK(!same_types(f, func(1, t, p[0], 2, p, 1, rel)));
  CHECK(!same_types(f, func(2, u, p[0], 2, p, 1, rel)));
  CHECK(!same_types(f, func(2, t, p[0], 2, p, 0, NULL)));
  CHECK(!same_types(f, func(2, t, q[0], 3, all, 1, rel)));
  CHECK(!same_types(f, func(2, t, p[0], 2, p, 1, rel + 1)));
  CHECK(!same_types(f, func(2, t, p[0], 2, p, 2, rel)));
  end();
}

static void tuples_are_equal_field_by_field(void) {
  begin();
  pln_type a = type_var("a", 0), c = type_var("c", 0);
  pln_type x[] = {tensor(2), tensor(3), a}, y[] = {tensor(3), tensor(2), a};
  pln_type z[] = {tensor(2), tensor(3), c};
  pln_type one = compound(PLN_TYPE_TUPLE, NULL, 3, x);
  CHECK(same_types(one, compound(PLN_TYPE_TUPLE, NULL, 3, x)));
  CHECK(!same_types(one, compound(PLN_TYPE_TUPLE, NULL, 3, y)));
  CHECK(!same_types(one, compound(PLN_TYPE_TUPLE, NULL, 3, z)));
  CHECK(!same_types(one, compound(PLN_TYPE_TUPLE, NULL, 2, x)));
  end();
}

static pln_attrs one_attr(const char *name, int64_t value) {
  pln_attr entry = {.name = symbol(name), .kind = PLN_ATTR_INT, .v.i = value};
  pln_attrs out = 0;
  CHECK_OK(pln_attrs_make(engine, 1, &entry, &out));
  return out;
}

static void relations_are_equal_by_function_arguments_and_attributes(void) {
  begin();
  pln_type x[] = {tensor(2), tensor(3)}, y[] = {tensor(3), tensor(2)};
  pln_attrs attrs = one_attr("axis", 1), other = one_attr("axis", 2);
  pln_type r = relation("Broadcast", 2, x, 1, attrs);
  CHECK(same_types(r, relation("Broadcast", 2, x, 1, attrs)));
  CHECK(!same_types(r, relation("Identity", 2, x, 1, attrs)));
  CHECK(!same_types(r, relation("Broadcast", 2, y, 1, attrs)));
  CHECK(!same_types(r, relation("Broadcast", 2, x, 1, other)));
  CHECK(!same_types(r, relation("Broadcast", 2, x, 2, attrs)));
  CHECK(!same_types(r, relation("Broadcast", 1, x, 1, attrs)));
  end();
}

static void calls_of_types_and_incomplete_types(void) {
  begin();
  pln_type x[] = {tensor(2), tensor(3)}, y[] = {tensor(3), tensor(2)};
  pln_type list = compound(PLN_TYPE_CALL, "List", 2, x), hole = 0, other = 0;
  CHECK(same_types(list, compound(PLN_TYPE_CALL, "List", 2, x)));
  CHECK(!same_types(list, compound(PLN_TYPE_CALL, "Tree", 2, x)));
  CHECK(!same_types(list, compound(PLN_TYPE_CALL, "List", 1, x)));
  CHECK(!same_types(list, compound(PLN_TYPE_CALL, "List", 2, y)));
  CHECK_OK(pln_type_hole(engine, &hole));
  CHECK_OK(pln_type_hole(engine, &other));
  CHECK(same_types(hole, hole));
  CHECK(!same_types(hole, other));
  end();
}

/* Tuples of two equal halves, 64 deep: 2^64 paths. */
static void types_that_share_parts_are_compared_once(void) {
  begin();
  pln_type x = type_var("a", 0), y = type_var("c", 0), p = x, q = y;
  for (int i = 0; i < 64; i++) {
    x = compound(PLN_TYPE_TUPLE, NULL, 2, (pln_type[]){x, x});
    y = compound(PLN_TYPE_TUPLE, NULL, 2, (pln_type[]){y, y});
  }
  CHECK(same_types(func(1, &x, p, 1, &p, 0, NULL),
                   func(1, &y, q, 1, &q, 0, NULL)));
  end();
}

/* -------------------------------------------------------------- expressions */

static pln_ref var(const char *name, pln_type type) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_var(b, symbol(name), type, 0, &ref));
  return ref;
}

static pln_graph *seal(pln_ref root) {
  pln_graph *g = NULL;
  CHECK_OK(pln_builder_seal(b, root, &g));
  return g;
}

/* Both ways; hashes are equal when and only when the graphs are. */
static bool same(pln_graph *x, pln_graph *y, bool map) {
  bool there = false, back = false;
  uint64_t h = 0, k = 0;
  pln_mismatch m;
  CHECK_OK(pln_graph_equal(x, x->root, y, y->root, map, &there));
  CHECK_OK(pln_graph_equal(y, y->root, x, x->root, map, &back));
  CHECK_OK(pln_graph_hash(x, x->root, map, &h));
  CHECK_OK(pln_graph_hash(y, y->root, map, &k));
  CHECK_OK(pln_graph_mismatch(x, x->root, y, y->root, map, false, &m));
  CHECK_EQ_INT(there, back);
  CHECK_EQ_INT(there, h == k);
  CHECK_EQ_INT(there, m.equal);
  pln_graph_release(x);
  pln_graph_release(y);
  return there;
}

static pln_graph *generic(const char *name, pln_type_var_kind kind, uint32_t n,
                          pln_ref *param) {
  pln_type t[2] = {type_var(name, kind), type_var("u", PLN_TKIND_TYPE)};
  pln_ref x = var("x", t[0]), f = PLN_NONE;
  CHECK_OK(pln_build_bind(b, 1, &x, x, 0, 0, &f));
  CHECK_OK(pln_build_generic(b, f, n, t));
  if (param)
    *param = x;
  return seal(f);
}

static void generic_functions_are_equal_but_for_names(void) {
  begin();
  CHECK(same(generic("t", PLN_TKIND_TYPE, 1, NULL),
             generic("s", PLN_TKIND_TYPE, 1, NULL), false));
  CHECK(!same(generic("t", PLN_TKIND_TYPE, 1, NULL),
              generic("t", PLN_TKIND_TYPE, 2, NULL), false));
  pln_graph *x = generic("t", PLN_TKIND_TYPE, 0, NULL);
  pln_graph *y = generic("t", PLN_TKIND_TYPE, 0, NULL);
  bool equal = true; /* the variables are free, and are two */
  CHECK_OK(pln_graph_equal(x, x->root, y, y->root, false, &equal));
  CHECK(!equal);
  CHECK(same(x, y, true));
  end();
}

static pln_ref wildcard(void) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_pattern_wildcard(b, &ref));
  return ref;
}

static pln_ref constructor(const char *name, uint32_t n, const pln_ref *args) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_pattern_constructor(b, symbol(name), n, args, &ref));
  return ref;
}

/* match (data) { Cons(x, _) => x, _ => data } and changes of it: the name of
 * the constructor, how many arms, whether it is complete. */
static pln_graph *matching(pln_ref data, const char *name, uint32_t n,
                           bool complete, bool first) {
  pln_ref x = var("x", 0), pv = PLN_NONE, m = PLN_NONE;
  CHECK_OK(pln_build_pattern_var(b, x, &pv));
  pln_ref cons = constructor(name, 2, (pln_ref[]){pv, wildcard()});
  pln_ref patterns[] = {cons, wildcard(), wildcard()};
  pln_ref bodies[] = {first ? x : data, data, data};
  CHECK_OK(
      pln_build_floating_match(b, data, complete, n, patterns, bodies, &m));
  return seal(m);
}

static void matches_are_equal_arm_by_arm(void) {
  begin();
  pln_ref data = var("data", 0);
  CHECK(same(matching(data, "Cons", 2, true, true),
             matching(data, "Cons", 2, true, true), false));
  CHECK(!same(matching(data, "Cons", 2, true, true),
              matching(data, "Snoc", 2, true, true), false));
  CHECK(!same(matching(data, "Cons", 2, true, true),
              matching(data, "Cons", 1, true, true), false));
  CHECK(!same(matching(data, "Cons", 2, true, true),
              matching(data, "Cons", 3, true, true), false));
  CHECK(!same(matching(data, "Cons", 2, true, true),
              matching(data, "Cons", 2, false, true), false));
  CHECK(!same(matching(data, "Cons", 2, true, true),
              matching(data, "Cons", 2, true, false), false));
  CHECK(!same(matching(data, "Cons", 2, true, true),
              matching(var("data", 0), "Cons", 2, true, true), false));
  CHECK(same(matching(data, "Cons", 2, true, true),
             matching(var("other", 0), "Cons", 2, true, true), true));
  end();
}

static void a_pattern_is_no_variable(void) {
  begin();
  pln_ref x = var("x", 0), pv = PLN_NONE;
  CHECK_OK(pln_build_pattern_var(b, var("y", 0), &pv));
  CHECK(!same(seal(x), seal(pv), false));
  end();
}

static pln_graph *with_float(double value) {
  pln_attr entry = {
      .name = symbol("epsilon"), .kind = PLN_ATTR_FLOAT, .v.f = value};
  pln_attr nested = {.name = symbol("inner"), .kind = PLN_ATTR_DICT};
  pln_attrs attrs = 0;
  pln_ref x = PLN_NONE, f = PLN_NONE;
  CHECK_OK(pln_attrs_make(engine, 1, &entry, &nested.v.dict));
  CHECK_OK(pln_attrs_make(engine, 1, &nested, &attrs));
  CHECK_OK(pln_build_tuple(b, 0, NULL, &x));
  CHECK_OK(pln_build_bind(b, 0, NULL, x, attrs, 0, &f));
  return seal(f);
}

static void floats_of_attributes_are_equal_within_a_tolerance(void) {
  begin();
  bool equal = true;
  CHECK(same(with_float(1.0), with_float(1.0 + 1e-10), false));
  pln_graph *x = with_float(1.0), *y = with_float(1.0 + 1e-8);
  CHECK_OK(pln_graph_equal(x, x->root, y, y->root, false, &equal));
  CHECK(!equal);
  pln_graph_release(x);
  pln_graph_release(y);
  end();
}

/* Tuples of nodes that Relay does not tell from their repetition: one graph
 * has each pattern once, the other twice. */
static pln_ref ladder(uint32_t copies) {
  pln_ref level[2] = {wildcard(), wildcard()};
  for (int i = 0; i < 60; i++) {
    pln_ref next[2] = {PLN_NONE, PLN_NONE};
    for (uint32_t k = 0; k < copies; k++)
      CHECK_OK(pln_build_pattern_tuple(
          b, 2, (pln_ref[]){level[0], level[copies - 1]}, &next[k]));
    memcpy(level, next, sizeof level);
  }
  pln_ref root = PLN_NONE;
  CHECK_OK(pln_build_pattern_tuple(
      b, 2, (pln_ref[]){level[0], level[copies - 1]}, &root));
  return root;
}

static void repeated_patterns_are_equal_and_cost_little(void) {
  begin();
  pln_graph *x = seal(ladder(1)), *y = seal(ladder(2));
  bool equal = false;
  uint64_t h = 0, k = 1;
  CHECK_OK(pln_graph_equal(x, x->root, y, y->root, false, &equal));
  CHECK_OK(pln_graph_hash(x, x->root, false, &h));
  CHECK_OK(pln_graph_hash(y, y->root, false, &k));
  CHECK(equal);
  CHECK(h == k);
  pln_graph_release(x);
  pln_graph_release(y);
  end();
}

/* Functions in functions, 100,000 deep, the innermost of x or of y. */
static pln_graph *deep(pln_type type) {
  pln_ref x = var("x", type), f = x;
  for (int i = 0; i < 100000; i++)
    CHECK_OK(pln_build_bind(b, i == 0, &x, f, 0, 0, &f));
  return seal(f);
}

static void deep_nesting_is_compared_and_told(void) {
  begin();
  pln_mismatch m;
  CHECK(same(deep(tensor(2)), deep(tensor(2)), false));
  pln_graph *x = deep(tensor(2)), *y = deep(tensor(3));
  CHECK_OK(pln_graph_mismatch(x, x->root, y, y->root, false, false, &m));
  CHECK(!m.equal);
  CHECK(!strncmp(m.text, "....body.body.", 14));
  CHECK(strstr(m.text, ".params[0].type: Tensor[(2), float32] versus") != NULL);
  CHECK_OK(pln_graph_well_formed(x));
  pln_graph_release(x);
  pln_graph_release(y);
  end();
}

/* ------------------------------------------------------------- well-formed */

/* Two nodes for one identity, each bound by a function of its own. */
/* ---------------------------------------------------------- external tensors
 */

static pln_graph *constant(pln_tensor *t) {
  pln_ref root = PLN_NONE;
  CHECK_OK(pln_build_constant(b, t, &root));
  pln_tensor_release(t);
  return seal(root);
}

static uint64_t hash_of(const pln_graph *g) {
  uint64_t hash = 0;
  CHECK_OK(pln_graph_hash(g, g->root, false, &hash));
  return hash;
}

static pln_graph *outside(const char *folder) {
  pln_external where = {
      .directory = symbol(folder), .location = symbol("w.bin"), .length = 4};
  const int64_t n = 4;
  pln_tensor *t = NULL;
  CHECK_OK(pln_tensor_external(engine, PLN_INT8, 1, &n, &where, &t));
  return constant(t);
}

/* Its hash is the same before a comparison opens it and after. */
static void tensors_outside_hash_as_what_they_hold(void) {
  begin();
  char folder[] = "/tmp/perilune-test-XXXXXX", path[64];
  const int64_t n = 4;
  REQUIRE(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/w.bin", folder);
  FILE *f = fopen(path, "wb");
  REQUIRE(f);
  fputs("abcd", f);
  fclose(f);
  pln_tensor *t = NULL;
  CHECK_OK(pln_tensor_from_bytes(engine, PLN_INT8, 1, &n, "abcd", 4, &t));
  pln_graph *x = outside(folder), *y = constant(t), *z = outside("/nowhere");
  uint64_t before = hash_of(x), missing = hash_of(z);
  CHECK(before == hash_of(y) && before != missing);
  CHECK(same(x, y, false));
  CHECK(missing == hash_of(z) && pln_diag_count(engine) == 0);
  pln_graph_release(z);
  unlink(path);
  rmdir(folder);
  end();
}

static void an_identity_is_bound_once(void) {
  begin();
  pln_scope s;
  pln_ref x = PLN_NONE, f[2] = {PLN_NONE, PLN_NONE}, both = PLN_NONE;
  uint32_t id = 0;
  for (int i = 0; i < 2; i++) {
    CHECK_OK(pln_build_open(b, &s));
    CHECK_OK(pln_build_param(b, symbol("x"), tensor(2), id, &x));
    id = pln_node_var(pln_builder_graph(b), x);
    CHECK_OK(pln_build_end(b, s, x, 0));
    CHECK_OK(pln_build_function(b, s, 0, 0, &f[i]));
  }
  CHECK_OK(pln_build_tuple(b, 2, f, &both));
  pln_graph *g = seal(both);
  CHECK_OK(pln_graph_verify(g));
  CHECK_STATUS(pln_graph_well_formed(g), PLN_ERR_INVALID);
  CHECK_STR(pln_diag_at(engine, 0)->message,
            "the variable x is bound more than once; this is not valid IR: in "
            "Function");
  pln_graph_release(g);
  end();
}

static void arms_are_verified(void) {
  begin();
  pln_graph *g = matching(var("data", 0), "Cons", 2, true, true);
  CHECK_OK(pln_graph_verify(g));
  pln_scope arm = pln_node_scope(g, g->root, 0);
  g->scopes[arm].n_params = 0;
  CHECK_STATUS(pln_graph_verify(g), PLN_ERR_INVALID);
  g->scopes[arm].n_params = 1;
  pln_ref clause = pln_scope_end(g, arm) - 1;
  CHECK_EQ_INT(g->nodes[clause].kind, PLN_CLAUSE);
  g->nodes[clause].kind = PLN_PATTERN_TUPLE;
  CHECK_STATUS(pln_graph_verify(g), PLN_ERR_INVALID);
  g->nodes[clause].kind = PLN_TUPLE;
  CHECK_STATUS(pln_graph_verify(g), PLN_ERR_INVALID);
  g->nodes[clause].kind = PLN_CLAUSE;
  CHECK_OK(pln_graph_verify(g));
  pln_graph_release(g);
  end();
}

/* ---------------------------------------------------------- lack of memory */

/* let v = x; (v, match (x) { y => y }), under type parameters. */
static pln_status sample(pln_engine *e, pln_graph **out) {
  pln_builder *to = NULL;
  pln_symbol name;
  pln_type t;
  pln_ref x, v, y, p, m, both, let, f;
  PLN_TRY(pln_symbol_intern(e, pln_text("x"), &name));
  PLN_TRY(pln_type_var(e, name, PLN_TKIND_TYPE, &t));
  PLN_TRY(pln_builder_new(e, &to));
  pln_status status = pln_build_var(to, name, t, 0, &x);
  if (status == PLN_OK)
    status = pln_build_var(to, name, t, 0, &v);
  if (status == PLN_OK)
    status = pln_build_var(to, name, t, 0, &y);
  if (status == PLN_OK)
    status = pln_build_pattern_var(to, y, &p);
  if (status == PLN_OK)
    status = pln_build_floating_match(to, x, true, 1, &p, &y, &m);
  if (status == PLN_OK)
    status = pln_build_tuple(to, 2, (pln_ref[]){v, m}, &both);
  if (status == PLN_OK)
    status = pln_build_floating_let(to, v, x, both, &let);
  if (status == PLN_OK)
    status = pln_build_bind(to, 0, NULL, let, 0, 0, &f);
  if (status == PLN_OK)
    status = pln_build_generic(to, f, 1, &t);
  if (status == PLN_OK)
    status = pln_builder_seal(to, f, out);
  pln_builder_free(to);
  return status;
}

static pln_status compare(pln_graph *x, pln_graph *y) {
  bool equal;
  uint64_t hash;
  pln_mismatch m;
  PLN_TRY(pln_graph_equal(x, x->root, y, y->root, true, &equal));
  PLN_TRY(pln_graph_hash(x, x->root, true, &hash));
  PLN_TRY(pln_graph_mismatch(x, x->root, y, y->root, false, false, &m));
  PLN_TRY(pln_graph_verify(x));
  PLN_TRY(pln_graph_well_formed(x));
  CHECK(equal && !m.equal);
  return PLN_OK;
}

static pln_status compare_samples(pln_engine *e, void *ud) {
  (void)ud;
  pln_graph *x = NULL, *y = NULL;
  pln_status status = sample(e, &x);
  if (status == PLN_OK)
    status = sample(e, &y);
  if (status == PLN_OK)
    status = compare(x, y);
  pln_graph_release(x);
  pln_graph_release(y);
  return status;
}

static pln_status module_of(pln_engine *e, pln_module **out) {
  pln_graph *g = NULL;
  pln_module *empty = NULL;
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(e, pln_text("main"), &name));
  PLN_TRY(pln_module_new(e, &empty));
  pln_status status = sample(e, &g);
  if (status == PLN_OK)
    status = pln_module_with(empty, name, g, out);
  pln_module_release(empty);
  pln_graph_release(g);
  return status;
}

static pln_status compare_modules(pln_engine *e, void *ud) {
  (void)ud;
  pln_module *x = NULL, *y = NULL;
  pln_mismatch m = {.equal = true};
  bool equal = true;
  uint64_t hash;
  pln_status status = module_of(e, &x);
  if (status == PLN_OK)
    status = module_of(e, &y);
  if (status == PLN_OK)
    status = pln_module_equal(x, y, &equal);
  if (status == PLN_OK)
    status = pln_module_mismatch(x, y, false, false, &m);
  if (status == PLN_OK)
    status = pln_module_hash(x, &hash);
  if (status == PLN_OK) /* %x is free, which a module may not have */
    status = pln_graph_well_formed(pln_module_function_at(x, 0));
  if (status == PLN_OK)
    CHECK(!equal && !m.equal && !strncmp(m.text, "@main.", 6));
  pln_module_release(x);
  pln_module_release(y);
  return status;
}

static void survives_lack_of_memory(void) {
  oom_sweep(compare_samples, NULL);
  oom_sweep(compare_modules, NULL);
}

static const check_test tests[] = {
    {"type parameters correspond in function types only",
     type_parameters_correspond_in_function_types_only},
    {"function types differ in each of their parts",
     function_types_differ_in_each_of_their_parts},
    {"tuples are equal field by field", tuples_are_equal_field_by_field},
    {"relations are equal by function, arguments and attributes",
     relations_are_equal_by_function_arguments_and_attributes},
    {"calls of types and incomplete types",
     calls_of_types_and_incomplete_types},
    {"types that share parts are compared once",
     types_that_share_parts_are_compared_once},
    {"generic functions are equal but for names",
     generic_functions_are_equal_but_for_names},
    {"matches are equal arm by arm", matches_are_equal_arm_by_arm},
    {"a pattern is no variable", a_pattern_is_no_variable},
    {"floats of attributes are equal within a tolerance",
     floats_of_attributes_are_equal_within_a_tolerance},
    {"repeated patterns are equal and cost little",
     repeated_patterns_are_equal_and_cost_little},
    {"deep nesting is compared and told", deep_nesting_is_compared_and_told},
    {"tensors outside hash as what they hold",
     tensors_outside_hash_as_what_they_hold},
    {"an identity is bound once", an_identity_is_bound_once},
    {"arms are verified", arms_are_verified},
    {"survives lack of memory", survives_lack_of_memory},
};
CHECK_MAIN(tests)
