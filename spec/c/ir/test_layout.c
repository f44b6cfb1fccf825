/* test_layout.c: sealing what was built freely: its cost, and Matches. */

#include "ir/graph/graph.h"
#include "oom.h"
#include "op/op.h"

static pln_engine *engine;
static pln_builder *b;
static oom memory;

static void begin(void) {
  memory = (oom){0};
  engine = pln_engine_new(oom_alloc, &memory);
  CHECK_OK(pln_builder_new(engine, &b));
}

static void end(void) {
  pln_builder_free(b);
  pln_engine_free(engine);
}

static pln_ref var(const char *name) {
  pln_symbol symbol = 0;
  pln_ref ref = PLN_NONE;
  pln_type type = 0;
  int64_t four = 4;
  CHECK_OK(pln_type_tensor(engine, PLN_FLOAT32, 1, &four, &type));
  CHECK_OK(pln_symbol_intern(engine, pln_text(name), &symbol));
  CHECK_OK(pln_build_var(b, symbol, type, 0, &ref));
  return ref;
}

static pln_ref add(pln_ref x, pln_ref y) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_call(b, PLN_OP_ADD, 0, 0, 2, (pln_ref[]){x, y}, &ref));
  return ref;
}

/* ------------------------------------------------------------------- costs */

/* Bytes living at the most while x + x is sealed, beyond those before. */
static size_t cost_of_a_function(void) {
  pln_ref x = var("x"), f = PLN_NONE;
  size_t before, peak;
  pln_graph *g = NULL;
  CHECK_OK(pln_build_bind(b, 1, &x, add(x, x), 0, 0, &f));
  CHECK_OK(pln_builder_seal(b, f, &g)); /* the marks grow with the builder */
  pln_graph_release(g);
  before = memory.bytes;
  uint64_t calls = memory.calls;
  CHECK_OK(pln_builder_seal(b, f, &g));
  peak = memory.bytes - before;
  CHECK(memory.calls - calls < 64);
  pln_graph_release(g);
  return peak;
}

static void costs_what_the_root_needs(void) {
  begin();
  size_t alone = cost_of_a_function();
  pln_ref x = var("x"), chain = x;
  for (int i = 0; i < 100000; i++)
    chain = add(chain, x);
  CHECK_EQ_INT(cost_of_a_function(), alone);
  pln_graph *g = NULL;
  CHECK_OK(pln_builder_seal(b, chain, &g));
  CHECK_EQ_INT(pln_graph_size(g), 100001);
  pln_graph_release(g);
  end();
}

/* ----------------------------------------------------------------- matches */

static pln_ref wildcard(void) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_pattern_wildcard(b, &ref));
  return ref;
}

static pln_ref bound(pln_ref variable) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_pattern_var(b, variable, &ref));
  return ref;
}

static pln_ref tuple(pln_ref x, pln_ref y) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_pattern_tuple(b, 2, (pln_ref[]){x, y}, &ref));
  return ref;
}

static pln_status match(pln_ref p, pln_ref body, pln_ref q, pln_ref other,
                        pln_graph **out) {
  pln_ref node = PLN_NONE;
  CHECK_OK(pln_build_floating_match(b, var("data"), true, 2, (pln_ref[]){p, q},
                                    (pln_ref[]){body, other}, &node));
  *out = NULL;
  return pln_builder_seal(b, node, out);
}

static void a_pattern_s_variables_come_first(void) {
  begin();
  pln_graph *g;
  pln_ref h = var("h"), t = var("t"), outer = var("outer");
  pln_ref both = tuple(bound(h), tuple(wildcard(), bound(t)));
  CHECK_OK(match(both, add(add(h, outer), t), wildcard(), outer, &g));
  static const uint8_t kinds[] = {PLN_VAR,
                                  PLN_VAR,
                                  PLN_VAR,
                                  PLN_VAR,
                                  PLN_PATTERN_VAR,
                                  PLN_PATTERN_WILDCARD,
                                  PLN_PATTERN_VAR,
                                  PLN_PATTERN_TUPLE,
                                  PLN_PATTERN_TUPLE,
                                  PLN_CLAUSE,
                                  PLN_CALL,
                                  PLN_CALL,
                                  PLN_PATTERN_WILDCARD,
                                  PLN_CLAUSE,
                                  PLN_MATCH};
  if (CHECK_EQ_INT(pln_graph_size(g), sizeof kinds))
    for (pln_ref i = 0; i < sizeof kinds; i++)
      CHECK_EQ_INT(pln_node_kind(g, i), kinds[i]);
  pln_scope arm = pln_node_scope(g, pln_graph_root(g), 0);
  CHECK_EQ_INT(pln_scope_n_params(g, arm), 2);
  CHECK_EQ_INT(pln_scope_begin(g, arm), 2);
  CHECK_STR(pln_symbol_text(engine, g->nodes[2].attrs).data, "h");
  CHECK_STR(pln_symbol_text(engine, g->nodes[3].attrs).data, "t");
  CHECK_EQ_INT(pln_scope_n_params(g, arm + 1), 0);
  pln_graph_release(g);
  end();
}

static void arms_may_share_a_pattern(void) {
  begin();
  pln_graph *g;
  pln_ref any = wildcard(), pair = tuple(any, any), x = var("x");
  CHECK_OK(match(pair, x, pair, x, &g));
  CHECK_EQ_INT(pln_graph_size(g), 2 + 3 + 3 + 1);
  pln_graph_release(g);
  end();
}

static void a_variable_belongs_to_one_arm(void) {
  begin();
  pln_graph *g;
  pln_ref x = var("x"), y = var("y");
  CHECK_STATUS(match(bound(x), x, bound(x), x, &g), PLN_ERR_TYPE);
  CHECK_STR(pln_diag_at(engine, 0)->message,
            "the variable 'x' is bound more than once, or used outside of the "
            "arm that binds it");
  CHECK_STATUS(match(tuple(bound(x), bound(x)), x, wildcard(), y, &g),
               PLN_ERR_TYPE);
  CHECK_STATUS(match(bound(x), x, wildcard(), x, &g), PLN_ERR_INVALID);
  CHECK_OK(match(bound(x), x, bound(y), y, &g));
  pln_graph_release(g);
  end();
}

static void a_match_is_copied_as_a_whole(void) {
  begin();
  pln_graph *g, *again = NULL;
  pln_ref x = var("x"), copy = PLN_NONE;
  bool same = false;
  CHECK_OK(
      match(tuple(wildcard(), bound(x)), add(x, x), wildcard(), var("y"), &g));
  pln_builder *other = NULL;
  CHECK_OK(pln_builder_new(engine, &other));
  CHECK_OK(pln_build_import(other, g, pln_graph_root(g), &copy));
  CHECK_OK(pln_builder_seal(other, copy, &again));
  CHECK_EQ_INT(pln_graph_size(again), pln_graph_size(g));
  CHECK_OK(pln_graph_equal(g, pln_graph_root(g), again, pln_graph_root(again),
                           false, &same));
  CHECK(same);
  pln_builder_free(other);
  pln_graph_release(g);
  pln_graph_release(again);
  end();
}

static void patterns_may_nest_deeply(void) {
  begin();
  pln_graph *g;
  pln_ref x = var("x"), deep = bound(x);
  for (int i = 0; i < 100000; i++)
    deep = tuple(wildcard(), deep);
  CHECK_OK(match(deep, x, wildcard(), var("y"), &g));
  CHECK_EQ_INT(pln_graph_size(g), 200008);
  pln_graph_release(g);
  end();
}

static pln_status seal_twice(pln_engine *e, void *ud) {
  (void)ud;
  pln_builder *to = NULL;
  pln_graph *g = NULL;
  pln_symbol name;
  pln_ref data, x, p, m, f;
  PLN_TRY(pln_symbol_intern(e, pln_text("x"), &name));
  PLN_TRY(pln_builder_new(e, &to));
  pln_status status = pln_build_var(to, name, 0, 0, &data);
  if (status == PLN_OK)
    status = pln_build_var(to, name, 0, 0, &x);
  if (status == PLN_OK)
    status = pln_build_pattern_var(to, x, &p);
  if (status == PLN_OK)
    status = pln_build_floating_match(to, data, false, 1, &p, &x, &m);
  if (status == PLN_OK)
    status = pln_build_bind(to, 1, &data, m, 0, 0, &f);
  for (int i = 0; i < 2 && status == PLN_OK; i++) {
    status = pln_builder_seal(to, f, &g);
    pln_graph_release(status == PLN_OK ? g : NULL);
  }
  pln_builder_free(to);
  return status;
}

static void survives_lack_of_memory(void) {
  oom_sweep(seal_twice, NULL);
}

static const check_test tests[] = {
    {"costs what the root needs", costs_what_the_root_needs},
    {"a pattern's variables come first", a_pattern_s_variables_come_first},
    {"arms may share a pattern", arms_may_share_a_pattern},
    {"a variable belongs to one arm", a_variable_belongs_to_one_arm},
    {"a match is copied as a whole", a_match_is_copied_as_a_whole},
    {"patterns may nest deeply", patterns_may_nest_deeply},
    {"survives lack of memory", survives_lack_of_memory},
};
CHECK_MAIN(tests)
