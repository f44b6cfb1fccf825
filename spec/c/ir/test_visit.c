/* test_visit.c: visits of nodes: their order, once each, without recursion. */

#include "graph_fixture.h"
#include "ir/graph/graph.h"

static pln_ref var(const char *name) {
  pln_symbol symbol = 0;
  pln_type type = 0;
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_symbol_intern(engine, pln_text(name), &symbol));
  CHECK_OK(pln_type_tensor(engine, PLN_FLOAT32, 0, NULL, &type));
  CHECK_OK(pln_build_var(b, symbol, type, 0, &ref));
  return ref;
}

static pln_ref tanh_of(pln_ref x) {
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_build_call(b, PLN_OP_TANH, 0, 0, 1, &x, &ref));
  return ref;
}

static pln_graph *seal(pln_ref root) {
  pln_graph *g = NULL;
  CHECK_OK(pln_builder_seal(b, root, &g));
  return g;
}

/* ------------------------------------------------------------ what is told */

/* A letter for each event: the first of the kind's name or of the variable's,
 * in capitals when entered. */
typedef struct log {
  char text[256];
  size_t n;
  bool names; /* of variables */
  pln_kind skipped;
} log;

static char letter(const pln_graph *g, pln_ref node) {
  if (pln_node_kind(g, node) == PLN_VAR)
    return pln_symbol_text(g->engine, pln_node_symbol(g, node)).data[0];
  return (char)(pln_kind_name(pln_node_kind(g, node))[0] | 0x20);
}

static pln_status note(void *ud, const pln_graph *g, pln_ref node) {
  log *l = ud;
  if (l->n + 1 < sizeof l->text)
    l->text[l->n++] = letter(g, node);
  return PLN_OK;
}

static pln_status note_enter(void *ud, const pln_graph *g, pln_ref node,
                             bool *skip) {
  log *l = ud;
  CHECK_OK(note(ud, g, node));
  l->text[l->n - 1] &= (char)~0x20;
  *skip = pln_node_kind(g, node) == l->skipped;
  return PLN_OK;
}

static const char *post_order(log *l, const pln_graph *g, pln_ref node) {
  *l = (log){.n = 0};
  CHECK_OK(pln_walk_post_order(g, node, note, l));
  return l->text;
}

static const char *both(log *l, const pln_graph *g, pln_ref node) {
  pln_visitor visitor = {.ud = l, .enter = note_enter, .leave = note};
  l->n = 0;
  memset(l->text, 0, sizeof l->text);
  CHECK_OK(pln_walk(g, node, &visitor));
  return l->text;
}

/* ------------------------------------------------------------------- order */

static void operands_come_first_and_once(void) {
  begin();
  log l;
  pln_ref x = var("x"), y = var("y");
  pln_ref shared = tanh_of(x);
  pln_graph *g = seal(add(add(y, shared), add(shared, x)));
  CHECK_STR(post_order(&l, g, pln_graph_root(g)), "yxcccc");
  l.skipped = PLN_N_KINDS;
  CHECK_STR(both(&l, g, pln_graph_root(g)), "CCYyCXxccCcc");
  pln_graph_release(g);
  end();
}

static void a_part_is_walked_alone(void) {
  begin();
  log l;
  pln_ref x = var("x"), y = var("y");
  pln_graph *g = seal(add(tanh_of(x), tanh_of(y)));
  pln_ref second = pln_operand(g, pln_graph_root(g), 1);
  CHECK_STR(post_order(&l, g, second), "yc");
  pln_graph_release(g);
  end();
}

static void functions_and_branches_are_gone_into(void) {
  begin();
  log l = {.skipped = PLN_N_KINDS};
  pln_ref x = var("x"), c = PLN_NONE, branch = PLN_NONE;
  pln_type type = 0;
  CHECK_OK(pln_type_tensor(engine, PLN_BOOL, 0, NULL, &type));
  CHECK_OK(pln_build_var(b, pln_node_symbol(pln_builder_graph(b), var("q")),
                         type, 0, &c));
  CHECK_OK(pln_build_floating_if(b, c, tanh_of(x), add(x, x), &branch));
  pln_graph *g = seal(function(2, (pln_ref[]){c, x}, branch));
  CHECK_STR(post_order(&l, g, pln_graph_root(g)), "qxccif");
  l.skipped = PLN_N_KINDS;
  CHECK_STR(both(&l, g, pln_graph_root(g)), "FQqXxICcCcif");
  l.skipped = PLN_IF;
  CHECK_STR(both(&l, g, pln_graph_root(g)), "FQqXxIf");
  pln_graph_release(g);
  end();
}

/* let a = tanh(x); let b = add(a, a); b: as Relay sees it, the second Let is
 * the body of the first. */
static void lets_are_entered_in_order_and_left_in_reverse(void) {
  begin();
  log l = {.skipped = PLN_N_KINDS};
  pln_ref x = var("x"), a = var("a"), c = var("b");
  pln_ref block = let(a, tanh_of(x), let(c, add(a, a), c));
  pln_graph *g = seal(function(1, &x, block));
  CHECK_STR(both(&l, g, pln_graph_root(g)), "FXxLAaCcLBbCcllf");
  CHECK_STR(post_order(&l, g, pln_graph_root(g)), "xacbcllf");
  pln_ref first = PLN_NONE, second = PLN_NONE;
  for (pln_ref i = pln_graph_size(g); i-- > 0;)
    if (pln_node_kind(g, i) == PLN_LET) {
      second = second == PLN_NONE ? i : second;
      first = i;
    }
  CHECK_STR(post_order(&l, g, second), "bacl");
  CHECK_STR(post_order(&l, g, first), "axcbcll");
  pln_graph_release(g);
  g = seal(block); /* no function around: the block of lets is the root */
  CHECK_STR(post_order(&l, g, pln_graph_root(g)), "axcbclll");
  pln_graph_release(g);
  end();
}

static pln_ref arm_var(const char *name) {
  pln_symbol symbol = 0;
  pln_ref ref = PLN_NONE;
  CHECK_OK(pln_symbol_intern(engine, pln_text(name), &symbol));
  CHECK_OK(pln_build_param(b, symbol, 0, 0, &ref));
  return ref;
}

static void arms_come_pattern_first(void) {
  begin();
  log l = {.skipped = PLN_N_KINDS};
  pln_scope f, arm;
  pln_ref match = PLN_NONE, fn = PLN_NONE, pattern = PLN_NONE, clause;
  CHECK_OK(pln_build_open(b, &f));
  pln_ref x = arm_var("x");
  CHECK_OK(pln_build_open(b, &arm));
  pln_ref h = arm_var("h"), t = arm_var("t"), two[2], body = PLN_NONE;
  CHECK_OK(pln_build_pattern_var(b, h, &two[0]));
  CHECK_OK(pln_build_pattern_var(b, t, &two[1]));
  CHECK_OK(pln_build_pattern_tuple(b, 2, two, &pattern));
  CHECK_OK(pln_build_clause(b, pattern, &clause));
  CHECK_OK(pln_build_tuple(b, 1, &h, &body));
  CHECK_OK(pln_build_end(b, arm, body, 0));
  CHECK_OK(pln_build_match(b, x, true, 1, &arm, &match));
  CHECK_OK(pln_build_end(b, f, match, 0));
  CHECK_OK(pln_build_function(b, f, 0, 0, &fn));
  pln_graph *g = seal(fn);
  CHECK_STR(both(&l, g, pln_graph_root(g)), "FXxMHhTtCPPpPppcTtmf");
  pln_graph_release(g);
  end();
}

/* ------------------------------------------------------------ size and depth
 */

static pln_status count(void *ud, const pln_graph *g, pln_ref node) {
  (void)g;
  (void)node;
  ++*(uint32_t *)ud;
  return PLN_OK;
}

static uint32_t visited(const pln_graph *g) {
  uint32_t n = 0;
  CHECK_OK(pln_walk_post_order(g, pln_graph_root(g), count, &n));
  return n;
}

static void long_chains_take_no_stack(void) {
  enum { LENGTH = 1000000 };
  begin();
  pln_ref x = var("x"), y = x;
  for (int i = 0; i < LENGTH; i++)
    y = add(y, y);
  pln_graph *g = seal(y);
  CHECK_EQ_INT(visited(g), LENGTH + 1);
  pln_graph_release(g);
  y = x;
  for (int i = 0; i < LENGTH; i++)
    y = let(var("v"), x, y);
  g = seal(function(1, &x, y));
  CHECK_EQ_INT(visited(g), 2 * LENGTH + 2);
  pln_graph_release(g);
  end();
}

static void deep_nesting_takes_no_stack(void) {
  enum { DEPTH = 100000 };
  begin();
  pln_ref x = var("x"), y = x, c = PLN_NONE;
  pln_type type = 0;
  CHECK_OK(pln_type_tensor(engine, PLN_BOOL, 0, NULL, &type));
  CHECK_OK(pln_build_var(b, 0, type, 0, &c));
  for (int i = 0; i < DEPTH; i++)
    CHECK_OK(pln_build_floating_if(b, c, y, x, &y));
  for (int i = 0; i < DEPTH; i++)
    y = function(0, NULL, y);
  for (int i = 0; i < DEPTH; i++) {
    pln_ref v = PLN_NONE;
    CHECK_OK(pln_build_var(b, 0, 0, 0, &v));
    y = let(v, y, x);
  }
  pln_graph *g = seal(y);
  CHECK(visited(g) >= 5 * DEPTH);
  pln_graph_release(g);
  end();
}

/* ------------------------------------------------------------------ errors */

static pln_status refuse(void *ud, const pln_graph *g, pln_ref node) {
  (void)ud;
  (void)node;
  return pln_diag_error(g->engine, PLN_ERR_TYPE, NULL, "refused");
}

static void a_callback_ends_the_walk(void) {
  begin();
  pln_graph *g = seal(tanh_of(var("x")));
  CHECK_STATUS(pln_walk_post_order(g, pln_graph_root(g), refuse, NULL),
               PLN_ERR_TYPE);
  CHECK_STATUS(pln_walk_post_order(g, 99, refuse, NULL), PLN_ERR_ARGUMENT);
  CHECK_STATUS(pln_walk_post_order(pln_builder_graph(b), 0, refuse, NULL),
               PLN_ERR_ARGUMENT);
  pln_graph_release(g);
  end();
}

static pln_status chain(pln_engine *e, pln_graph **out) {
  pln_builder *builder;
  pln_ref x;
  PLN_TRY(pln_builder_new(e, &builder));
  pln_status status = pln_build_var(builder, 0, 0, 0, &x);
  for (int i = 0; i < 40 && status == PLN_OK; i++)
    status = pln_build_tuple(builder, 1, &x, &x);
  if (status == PLN_OK)
    status = pln_builder_seal(builder, x, out);
  pln_builder_free(builder);
  return status;
}

static pln_status walk_chain(pln_engine *e, void *ud) {
  pln_graph *g = NULL;
  uint32_t n = 0;
  (void)ud;
  PLN_TRY(chain(e, &g));
  pln_walker *w = NULL;
  pln_status status = pln_walk_post_order(g, pln_graph_root(g), count, &n);
  if (status == PLN_OK)
    status = pln_walker_new(g, pln_graph_root(g), &w);
  pln_walk_event event = PLN_WALK_ENTER;
  pln_ref node;
  while (status == PLN_OK && event != PLN_WALK_DONE)
    status = pln_walker_next(w, &event, &node);
  CHECK(status != PLN_OK || !pln_walker_revisit(w, pln_graph_root(g)));
  pln_walker_free(w);
  pln_graph_release(g);
  return status;
}

static void walks_without_memory_say_so(void) {
  oom_sweep(walk_chain, NULL);
}

static const check_test tests[] = {
    {"operands come first and once", operands_come_first_and_once},
    {"a part is walked alone", a_part_is_walked_alone},
    {"functions and branches are gone into",
     functions_and_branches_are_gone_into},
    {"lets are entered in order and left in reverse",
     lets_are_entered_in_order_and_left_in_reverse},
    {"arms come pattern first", arms_come_pattern_first},
    {"long chains take no stack", long_chains_take_no_stack},
    {"deep nesting takes no stack", deep_nesting_takes_no_stack},
    {"a callback ends the walk", a_callback_ends_the_walk},
    {"walks without memory say so", walks_without_memory_say_so},
};
CHECK_MAIN(tests)
