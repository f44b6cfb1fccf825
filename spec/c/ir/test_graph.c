/* test_graph.c: building, sealing, rewriting, importing, verifying. */

#include "graph_fixture.h"
#include "ir/graph/graph.h"

static pln_type vector(pln_engine *e, int64_t n) {
  pln_type type = 0;
  CHECK_OK(pln_type_tensor(e, PLN_FLOAT32, 1, &n, &type));
  return type;
}

static pln_ref var(const char *name) {
  pln_symbol symbol = 0;
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_symbol_intern(engine, pln_text(name), &symbol));
  CHECK_OK(pln_build_var(b, symbol, vector(engine, 4), 0, &ref));
  return ref;
}

/* Fits as a condition, too. */
static pln_ref untyped(void) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_var(b, 0, 0, 0, &ref));
  return ref;
}

static pln_ref call(pln_builder *to, pln_op op, uint32_t n,
                    const pln_ref *args) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_call(to, op, 0, 0, n, args, &ref));
  return ref;
}

static pln_ref unary(pln_op op, pln_ref x) {
  return call(b, op, 1, &x);
}

static pln_ref bind(pln_ref param, pln_ref body) {
  pln_ref f = PLN_NONE;
  CHECK_OK(pln_build_bind(b, 1, &param, body, 0, 0, &f));
  return f;
}

static pln_graph *seal(pln_ref root) {
  pln_graph *g = NULL;
  CHECK_OK(pln_builder_seal(b, root, &g));
  if (g)
    CHECK_OK(pln_graph_verify(g));
  return g;
}

static pln_kind kind(const pln_graph *g, pln_ref ref) {
  return pln_node_kind(g, ref);
}

/* --------------------------------------------------------------- free layout
 */

static void lays_out_in_order_of_evaluation(void) {
  begin();
  pln_ref x = var("x");
  pln_ref unused = unary(PLN_OP_EXP, x);
  pln_ref right = unary(PLN_OP_TANH, x), left = unary(PLN_OP_RELU, x);
  pln_graph *g = seal(bind(x, add(left, right)));
  (void)unused;
  CHECK_EQ_INT(pln_graph_size(g), 5);
  CHECK_EQ_INT(kind(g, 0), PLN_VAR);
  CHECK_EQ_INT(pln_node_op(g, 1), PLN_OP_RELU);
  CHECK_EQ_INT(pln_node_op(g, 2), PLN_OP_TANH);
  CHECK_EQ_INT(kind(g, pln_graph_root(g)), PLN_FUNCTION);
  pln_scope body = pln_node_scope(g, 4, 0);
  CHECK_EQ_INT(pln_scope_n_params(g, body), 1);
  CHECK_EQ_INT(pln_scope_result(g, body), 3);
  pln_graph_release(g);
  end();
}

static void shared_nodes_go_where_all_uses_see_them(void) {
  begin();
  pln_ref x = var("x"), c = untyped();
  pln_ref both = unary(PLN_OP_EXP, x), one = unary(PLN_OP_TANH, x);
  pln_ref branch;
  CHECK_OK(pln_build_floating_if(b, c, add(both, one), both, &branch));
  pln_ref f;
  CHECK_OK(pln_build_bind(b, 2, (pln_ref[]){c, x}, branch, 0, 0, &f));
  pln_graph *g = seal(f);
  pln_ref owner = pln_graph_root(g) - 1;
  CHECK_EQ_INT(kind(g, owner), PLN_IF);
  pln_scope then_scope = pln_node_scope(g, owner, 0);
  pln_scope else_scope = pln_node_scope(g, owner, 1);
  CHECK_EQ_INT(pln_scope_begin(g, then_scope), 3);
  CHECK_EQ_INT(pln_scope_end(g, then_scope), 5);
  CHECK_EQ_INT(pln_scope_begin(g, else_scope), 5);
  CHECK_EQ_INT(pln_scope_end(g, else_scope), 5);
  CHECK_EQ_INT(pln_scope_result(g, else_scope), 2);
  CHECK_EQ_INT(pln_node_op(g, 2), PLN_OP_EXP);
  pln_graph_release(g);
  end();
}

static void lets_in_tail_position_share_a_scope(void) {
  begin();
  pln_ref x = var("x"), v = var("v"), w = var("w"), let_w, let_v;
  CHECK_OK(
      pln_build_floating_let(b, w, add(v, v), unary(PLN_OP_EXP, w), &let_w));
  CHECK_OK(pln_build_floating_let(b, v, unary(PLN_OP_TANH, x), let_w, &let_v));
  pln_graph *g = seal(bind(x, let_v));
  CHECK_EQ_INT(pln_graph_n_scopes(g), 2);
  static const pln_kind kinds[] = {PLN_VAR, PLN_VAR,  PLN_CALL,
                                   PLN_LET, PLN_VAR,  PLN_CALL,
                                   PLN_LET, PLN_CALL, PLN_FUNCTION};
  CHECK_EQ_INT(pln_graph_size(g), PLN_COUNT(kinds));
  for (pln_ref i = 0; i < PLN_COUNT(kinds); i++)
    CHECK_EQ_INT(kind(g, i), kinds[i]);
  pln_graph_release(g);
  end();
}

static void a_let_elsewhere_opens_a_scope(void) {
  begin();
  pln_ref x = var("x"), v = var("v"), let;
  CHECK_OK(
      pln_build_floating_let(b, v, unary(PLN_OP_TANH, x), add(v, x), &let));
  pln_graph *g = seal(bind(x, unary(PLN_OP_EXP, let)));
  CHECK_EQ_INT(pln_graph_n_scopes(g), 3);
  CHECK_EQ_INT(kind(g, pln_graph_root(g) - 2), PLN_LET_BLOCK);
  pln_graph_release(g);
  end();
}

static void what_is_kept_stays_in_its_block(void) {
  begin();
  pln_ref x = var("x"), kept = unary(PLN_OP_TANH, x), block, again;
  CHECK_OK(
      pln_build_floating_extra_root(b, kept, unary(PLN_OP_EXP, x), &block));
  CHECK_STATUS(pln_build_floating_extra_root(b, kept, x, &again), PLN_ERR_TYPE);
  CHECK_STATUS(pln_build_floating_extra_root(b, x, x, &again), PLN_ERR_TYPE);
  pln_graph *g = seal(bind(x, block));
  CHECK_EQ_INT(pln_graph_n_scopes(g), 2);
  CHECK_EQ_INT(pln_node_op(g, 1), PLN_OP_TANH);
  CHECK_EQ_INT(pln_node_op(g, 2), PLN_OP_EXP);
  pln_graph_release(g);
  pln_ref outside;
  CHECK_OK(pln_build_tuple(b, 2, (pln_ref[]){kept, block}, &outside));
  CHECK_STATUS(pln_builder_seal(b, outside, &g), PLN_ERR_TYPE);
  end();
}

static void a_variable_outside_of_its_function_is_refused(void) {
  begin();
  pln_ref x = var("x"), f = bind(x, unary(PLN_OP_EXP, x));
  pln_ref both;
  pln_graph *g = NULL;
  CHECK_OK(pln_build_tuple(b, 2, (pln_ref[]){f, x}, &both));
  CHECK_STATUS(pln_builder_seal(b, both, &g), PLN_ERR_INVALID);
  pln_ref twice;
  CHECK_OK(pln_build_tuple(b, 2, (pln_ref[]){f, bind(x, unary(PLN_OP_TANH, x))},
                           &twice));
  CHECK_STATUS(pln_builder_seal(b, twice, &g), PLN_ERR_TYPE);
  end();
}

static void a_million_nodes_and_deep_scopes_need_no_stack(void) {
  begin();
  pln_ref x = var("x"), c = untyped(), deep = x;
  for (int i = 0; i < 1000000; i++)
    deep = unary(PLN_OP_RELU, deep);
  for (int i = 0; i < 100000; i++)
    CHECK_OK(pln_build_floating_if(b, c, deep, x, &deep));
  for (int i = 0; i < 100000; i++) {
    pln_ref v = var("v");
    CHECK_OK(pln_build_floating_let(b, v, x, deep, &deep));
  }
  pln_graph *g = seal(bind(x, bind(c, deep)));
  uint64_t hash;
  bool same = false;
  CHECK_OK(pln_graph_hash(g, pln_graph_root(g), false, &hash));
  CHECK_OK(pln_graph_equal(g, pln_graph_root(g), g, pln_graph_root(g), false,
                           &same));
  CHECK(same);
  pln_graph_release(g);
  end();
}

/* -------------------------------------------------------------- scoped layout
 */

static pln_ref param(pln_builder *to, const char *name) {
  pln_symbol symbol = 0;
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_symbol_intern(engine, pln_text(name), &symbol));
  CHECK_OK(pln_build_param(to, symbol, vector(engine, 4), 0, &ref));
  return ref;
}

static void keeps_extra_roots_and_drops_the_rest(void) {
  begin();
  pln_scope body;
  pln_ref f;
  CHECK_OK(pln_build_open(b, &body));
  pln_ref x = param(b, "x");
  pln_ref dead = unary(PLN_OP_EXP, x), kept = unary(PLN_OP_TANH, x);
  pln_build_extra_root(b, kept);
  CHECK_OK(pln_build_end(b, body, unary(PLN_OP_RELU, x), 0));
  CHECK_OK(pln_build_function(b, body, 0, 0, &f));
  pln_graph *g = seal(f);
  (void)dead;
  CHECK_EQ_INT(pln_graph_size(g), 4);
  CHECK_EQ_INT(pln_node_op(g, 1), PLN_OP_TANH);
  pln_graph_release(g);
  end();
}

static void nodes_for_an_enclosing_scope_come_before_the_inner_one(void) {
  begin();
  pln_scope body, then_scope, else_scope;
  pln_ref f, owner;
  CHECK_OK(pln_build_open(b, &body));
  pln_ref x = PLN_NONE;
  CHECK_OK(pln_build_param(b, 0, 0, 0, &x));
  CHECK_OK(pln_build_open(b, &then_scope));
  pln_ref inner = unary(PLN_OP_EXP, x);
  CHECK_OK(pln_build_in(b, body));
  pln_ref outer = unary(PLN_OP_TANH, x);
  CHECK_OK(pln_build_in(b, PLN_NONE));
  CHECK_OK(pln_build_end(b, then_scope, add(inner, outer), 0));
  CHECK_OK(pln_build_open(b, &else_scope));
  CHECK_OK(pln_build_end(b, else_scope, outer, 0));
  CHECK_OK(pln_build_if(b, x, then_scope, else_scope, 0, 0, &owner));
  CHECK_OK(pln_build_end(b, body, owner, 0));
  CHECK_OK(pln_build_function(b, body, 0, 0, &f));
  pln_graph *g = seal(f);
  CHECK_EQ_INT(pln_node_op(g, 1), PLN_OP_TANH);
  CHECK_EQ_INT(pln_node_op(g, 2), PLN_OP_EXP);
  CHECK_EQ_INT(kind(g, 4), PLN_IF);
  pln_graph_release(g);
  end();
}

static void the_loop_level_fits(void) {
  begin();
  pln_type index;
  CHECK_OK(pln_type_prim(engine, PLN_INT64, 1, &index));
  pln_scope outer, inner;
  pln_ref i, k, n, sum, stmt, loop, nest;
  CHECK_OK(pln_build_open(b, &outer));
  CHECK_OK(pln_build_param(b, 0, index, 0, &i));
  CHECK_OK(pln_build_int_imm(b, index, 4, &n));
  CHECK_OK(pln_build_binary(b, PLN_PRIM_ADD, i, n, &sum));
  CHECK_OK(pln_build_open(b, &inner));
  CHECK_OK(pln_build_param(b, 0, index, 0, &k));
  CHECK_OK(pln_build_prim(
      b, &(pln_prim){.kind = PLN_EVALUATE, .n = 1, .operands = &k}, &stmt));
  CHECK_OK(pln_build_end(b, inner, stmt, 0));
  CHECK_OK(pln_build_for(b, i, sum, inner, &loop));
  CHECK_OK(pln_build_end(b, outer, loop, 0));
  CHECK_OK(pln_build_int_imm(b, index, 4, &n));
  CHECK_OK(pln_build_for(b, n, n, outer, &nest));
  pln_graph *g = seal(nest);
  CHECK_EQ_INT(pln_graph_size(g), 8);
  CHECK_EQ_INT(pln_node_effects(g, pln_graph_root(g)), PLN_EFFECT_WRITES);
  CHECK_EQ_INT(pln_node_n_scopes(g, pln_graph_root(g)), 1);
  CHECK_OK(pln_graph_verify(g));
  pln_graph_release(g);
  end();
}

/* ------------------------------------------------------------------ rewriting
 */

static pln_status nothing(void *ud, pln_rewrite *rw, pln_ref old,
                          pln_ref *node) {
  (void)rw;
  (void)old;
  (void)node;
  ++*(int *)ud;
  return PLN_OK;
}

static pln_status tanh_to_exp(void *ud, pln_rewrite *rw, pln_ref old,
                              pln_ref *node) {
  (void)ud;
  if (pln_node_op(pln_rewrite_old(rw), old) != PLN_OP_TANH)
    return PLN_OK;
  pln_ref x = pln_node_operands(pln_rewrite_graph(rw), *node)[0];
  pln_builder *to = pln_rewrite_builder(rw);
  return to ? pln_build_call(to, PLN_OP_EXP, 0, 0, 1, &x, node) : PLN_ERR_NOMEM;
}

static pln_status share(void *ud, pln_rewrite *rw, pln_ref old, pln_ref *node) {
  (void)ud;
  (void)old;
  return *node == PLN_NONE ? PLN_OK : pln_rewrite_number_value(rw, *node, node);
}

static pln_status take_then(void *ud, pln_rewrite *rw, pln_scope old,
                            pln_scope_action *action) {
  const pln_graph *g = pln_rewrite_old(rw);
  pln_ref owner = pln_scope_owner(g, old);
  (void)ud;
  if (pln_node_kind(g, owner) == PLN_IF)
    *action = pln_node_scope(g, owner, 0) == old ? PLN_SCOPE_DISSOLVE
                                                 : PLN_SCOPE_SKIP;
  return PLN_OK;
}

static pln_graph *sample(void) {
  pln_ref x = var("x"), c = untyped(), branch, f;
  pln_ref then_value = add(unary(PLN_OP_TANH, x), unary(PLN_OP_TANH, x));
  pln_ref else_value = unary(PLN_OP_TANH, unary(PLN_OP_TANH, x));
  CHECK_OK(pln_build_floating_if(b, c, then_value, else_value, &branch));
  CHECK_OK(pln_build_bind(b, 2, (pln_ref[]){x, c}, add(branch, x), 0, 0, &f));
  return seal(f);
}

static pln_graph *rewrite(const pln_graph *g, pln_mutator mutator) {
  pln_graph *out = NULL;
  CHECK_OK(pln_graph_rewrite(g, &mutator, &out));
  if (out)
    CHECK_OK(pln_graph_verify(out));
  return out;
}

static void unchanged_is_the_same_graph(void) {
  begin();
  int seen = 0;
  pln_graph *g = sample();
  pln_graph *h = rewrite(g, (pln_mutator){.ud = &seen, .visit = nothing});
  CHECK(g == h);
  CHECK_EQ_INT(seen, pln_graph_size(g));
  pln_graph_release(g);
  pln_graph_release(h);
  end();
}

static uint32_t count_op(const pln_graph *g, pln_op op) {
  uint32_t n = 0;
  for (pln_ref i = 0; i < pln_graph_size(g); i++)
    n += pln_node_op(g, i) == op;
  return n;
}

static void replaces_nodes_in_nested_scopes(void) {
  begin();
  pln_graph *g = sample();
  pln_graph *h = rewrite(g, (pln_mutator){.visit = tanh_to_exp});
  CHECK_EQ_INT(pln_graph_size(h), pln_graph_size(g));
  CHECK_EQ_INT(count_op(h, PLN_OP_TANH), 0);
  CHECK_EQ_INT(count_op(h, PLN_OP_EXP), 4);
  CHECK_EQ_INT(pln_graph_n_scopes(h), pln_graph_n_scopes(g));
  CHECK_EQ_INT(pln_node_type(h, pln_graph_root(h)),
               pln_node_type(g, pln_graph_root(g)));
  pln_graph_release(g);
  pln_graph_release(h);
  end();
}

static void shares_within_a_scope_and_never_across_branches(void) {
  begin();
  pln_graph *g = sample();
  pln_graph *h = rewrite(g, (pln_mutator){.visit = share});
  CHECK_EQ_INT(count_op(h, PLN_OP_TANH), 3);
  pln_graph *again = rewrite(h, (pln_mutator){.visit = share});
  CHECK(h == again);
  pln_graph_release(g);
  pln_graph_release(h);
  pln_graph_release(again);
  end();
}

static void dissolves_the_taken_branch(void) {
  begin();
  pln_graph *g = sample();
  pln_graph *h = rewrite(g, (pln_mutator){.enter = take_then});
  CHECK_EQ_INT(pln_graph_n_scopes(h), 2);
  CHECK_EQ_INT(count_op(h, PLN_OP_TANH), 2);
  CHECK_EQ_INT(count_op(h, PLN_OP_ADD), 2);
  pln_graph_release(g);
  pln_graph_release(h);
  end();
}

/* ------------------------------------------------------- import and equality
 */

static void an_import_keeps_scopes_and_identities(void) {
  begin();
  pln_graph *g = sample(), *h;
  pln_builder *other;
  pln_ref f;
  bool same = false;
  CHECK_OK(pln_builder_new(engine, &other));
  CHECK_OK(pln_build_import(other, g, pln_graph_root(g), &f));
  CHECK_OK(pln_builder_seal(other, f, &h));
  CHECK_OK(pln_graph_equal(g, pln_graph_root(g), h, pln_graph_root(h), false,
                           &same));
  CHECK(same);
  CHECK_EQ_INT(pln_graph_size(h), pln_graph_size(g));
  uint64_t a = 0, c = 1;
  CHECK_OK(pln_graph_hash(g, pln_graph_root(g), false, &a));
  CHECK_OK(pln_graph_hash(h, pln_graph_root(h), false, &c));
  CHECK_EQ_INT(a, c);
  pln_builder_free(other);
  pln_graph_release(g);
  pln_graph_release(h);
  end();
}

static void an_imported_parameter_is_a_free_variable(void) {
  begin();
  pln_ref x = var("x");
  pln_graph *g = seal(bind(x, unary(PLN_OP_EXP, x)));
  pln_builder *other;
  pln_ref body, again;
  CHECK_OK(pln_builder_new(engine, &other));
  CHECK_OK(pln_build_import(other, g, 1, &body));
  CHECK_OK(pln_build_import(other, g, 1, &again));
  CHECK_EQ_INT(body, again);
  const pln_graph *o = pln_builder_graph(other);
  pln_ref free_var = pln_node_operands(o, body)[0];
  CHECK_EQ_INT(pln_node_var(o, free_var), pln_node_var(g, 0));
  pln_ref f;
  pln_graph *h;
  CHECK_OK(pln_build_bind(other, 1, &free_var, body, 0, 0, &f));
  CHECK_OK(pln_builder_seal(other, f, &h));
  bool same = false;
  CHECK_OK(pln_graph_equal(g, 2, h, 2, false, &same));
  CHECK(same);
  pln_builder_free(other);
  pln_graph_release(g);
  pln_graph_release(h);
  end();
}

static void shared_differs_from_repeated(void) {
  begin();
  pln_ref x = var("x"), e = unary(PLN_OP_EXP, x);
  pln_graph *shared = seal(bind(x, add(e, e)));
  pln_ref y = var("y");
  pln_graph *repeated =
      seal(bind(y, add(unary(PLN_OP_EXP, y), unary(PLN_OP_EXP, y))));
  bool same = true;
  CHECK_OK(pln_graph_equal(shared, pln_graph_root(shared), repeated,
                           pln_graph_root(repeated), false, &same));
  CHECK(!same);
  uint64_t a = 0, c = 0;
  CHECK_OK(pln_graph_hash(shared, pln_graph_root(shared), false, &a));
  CHECK_OK(pln_graph_hash(repeated, pln_graph_root(repeated), false, &c));
  CHECK(a != c);
  pln_graph_release(shared);
  pln_graph_release(repeated);
  end();
}

static void the_verifier_names_what_is_broken(void) {
  begin();
  pln_graph *g = sample();
  pln_ref saved = g->operands[0];
  g->operands[0] = g->n_nodes - 1;
  CHECK_STATUS(pln_graph_verify(g), PLN_ERR_INVALID);
  g->operands[0] = saved;
  g->scopes[1].end--;
  CHECK_STATUS(pln_graph_verify(g), PLN_ERR_INVALID);
  g->scopes[1].end++;
  g->nodes[0].kind = 200;
  CHECK_STATUS(pln_graph_verify(g), PLN_ERR_INVALID);
  g->nodes[0].kind = PLN_VAR;
  CHECK_OK(pln_graph_verify(g));
  pln_graph_release(g);
  end();
}

static void a_graph_holds_numbers_for_no_foreign_node(void) {
  begin();
  pln_ref out;
  CHECK_STATUS(pln_build_call(b, PLN_OP_EXP, 0, 0, 1, (pln_ref[]){7}, &out),
               PLN_ERR_ARGUMENT);
  CHECK_STATUS(pln_build_tuple_get_item(b, var("x"), 0, &out), PLN_ERR_TYPE);
  end();
}

/* ----------------------------------------------------------- out of memory */

static pln_status build_and_rewrite(pln_engine *e, void *ud) {
  pln_builder *to = NULL;
  pln_graph *g = NULL, *h = NULL, *k = NULL;
  pln_ref x, c, y, branch, f;
  pln_type type;
  int64_t four = 4;
  (void)ud;
  PLN_TRY(pln_type_tensor(e, PLN_FLOAT32, 1, &four, &type));
  PLN_TRY(pln_builder_new(e, &to));
  pln_status status = pln_build_var(to, 0, type, 0, &x);
  if (status == PLN_OK)
    status = pln_build_var(to, 0, 0, 0, &c);
  if (status == PLN_OK)
    status = pln_build_call(to, PLN_OP_TANH, 0, 0, 1, &x, &y);
  if (status == PLN_OK)
    status = pln_build_floating_if(to, c, y, x, &branch);
  if (status == PLN_OK)
    status = pln_build_bind(to, 2, (pln_ref[]){x, c}, branch, 0, 0, &f);
  if (status == PLN_OK)
    status = pln_builder_seal(to, f, &g);
  pln_mutator mutator = {.visit = tanh_to_exp}, sharing = {.visit = share};
  if (status == PLN_OK)
    status = pln_graph_rewrite(g, &mutator, &h);
  if (status == PLN_OK)
    status = pln_graph_rewrite(h, &sharing, &k);
  pln_graph_release(g);
  pln_graph_release(h);
  pln_graph_release(k);
  pln_builder_free(to);
  return status;
}

static void survives_lack_of_memory(void) {
  oom_sweep(build_and_rewrite, NULL);
}

static const check_test tests[] = {
    {"lays out in order of evaluation", lays_out_in_order_of_evaluation},
    {"shared nodes go where all uses see them",
     shared_nodes_go_where_all_uses_see_them},
    {"lets in tail position share a scope",
     lets_in_tail_position_share_a_scope},
    {"a let elsewhere opens a scope", a_let_elsewhere_opens_a_scope},
    {"what is kept stays in its block", what_is_kept_stays_in_its_block},
    {"a variable outside of its function is refused",
     a_variable_outside_of_its_function_is_refused},
    {"a million nodes and deep scopes need no stack",
     a_million_nodes_and_deep_scopes_need_no_stack},
    {"keeps extra roots and drops the rest",
     keeps_extra_roots_and_drops_the_rest},
    {"nodes for an enclosing scope come before the inner one",
     nodes_for_an_enclosing_scope_come_before_the_inner_one},
    {"the loop level fits", the_loop_level_fits},
    {"unchanged is the same graph", unchanged_is_the_same_graph},
    {"replaces nodes in nested scopes", replaces_nodes_in_nested_scopes},
    {"shares within a scope and never across branches",
     shares_within_a_scope_and_never_across_branches},
    {"dissolves the taken branch", dissolves_the_taken_branch},
    {"an import keeps scopes and identities",
     an_import_keeps_scopes_and_identities},
    {"an imported parameter is a free variable",
     an_imported_parameter_is_a_free_variable},
    {"shared differs from repeated", shared_differs_from_repeated},
    {"the verifier names what is broken", the_verifier_names_what_is_broken},
    {"a graph holds numbers for no foreign node",
     a_graph_holds_numbers_for_no_foreign_node},
    {"survives lack of memory", survives_lack_of_memory},
};
CHECK_MAIN(tests)
