/* test_shrink.c: nodes replaced by less: pln_graph_shrink. */

#include "captured_output.h"
#include "graph_fixture.h"

static const char program[] =
    "fn (%c: bool, %x: Tensor[(2), float32], %n: Tensor[(N), float32]) {\n"
    "  let %a = tanh(%x);\n"
    "  let %b = if (%c) { let %e = exp(%a); add(%e, 1f) } else { abs(%x) };\n"
    "  (multiply(%b, %a), nn.relu(%n))\n"
    "}";

static pln_graph *parse(pln_engine *e, const char *source) {
  pln_graph *g = NULL;
  CHECK_OK(pln_parse_expr(e, pln_text(source), NULL, NULL, &g));
  return g;
}

static bool is_op(const pln_graph *g, pln_ref ref, const char *name) {
  pln_slice op = pln_op_name(pln_graph_engine(g), pln_node_op(g, ref));
  return op.size == strlen(name) && !memcmp(op.data, name, op.size);
}

/* The node of that kind, the nth of them from 0; of calls that of an operator
 * with the name. */
static pln_ref find(const pln_graph *g, pln_kind kind, const char *name,
                    uint32_t nth) {
  for (pln_ref i = 0; i < pln_graph_size(g); i++) {
    if (pln_node_kind(g, i) != kind)
      continue;
    if (name && !is_op(g, i, name))
      continue;
    if (!nth--)
      return i;
  }
  CHECK(false && "there is such a node");
  return 0;
}

static captured print(const pln_graph *g) {
  captured t = {.size = 0};
  CHECK_OK(pln_print_node(g, pln_graph_root(g), NULL, append, &t));
  return t;
}

static bool has(const pln_graph *g, const char *part) {
  captured t = print(g);
  if (strstr(t.data, part))
    return true;
  printf("# not there: %s\n%s\n", part, t.data);
  return false;
}

/* The sample with one node cut, which is verified. */
static pln_graph *cut_one(pln_kind kind, const char *name, uint32_t nth,
                          uint32_t cut) {
  pln_graph *g = parse(engine, program), *out = NULL;
  uint32_t cuts[64] = {0};
  cuts[find(g, kind, name, nth)] = cut;
  CHECK(pln_graph_size(g) <= PLN_COUNT(cuts));
  CHECK_OK(pln_graph_shrink(g, cuts, &out));
  CHECK_OK(pln_graph_verify(out));
  pln_graph_release(g);
  return out;
}

static void nothing_is_cut(void) {
  begin();
  pln_graph *g = parse(engine, program), *out = NULL;
  uint32_t cuts[64] = {0};
  CHECK_OK(pln_graph_shrink(g, cuts, &out));
  CHECK(out == g);
  pln_graph_release(out);
  pln_graph_release(g);
  end();
}

static void a_variable_stands_in(void) {
  begin();
  pln_graph *g = cut_one(PLN_CALL, "exp", 0, PLN_SHRINK_FREE_VAR);
  CHECK(has(g, "free_var %p: Tensor[(2), float32]"));
  CHECK(has(g, "let %e: Tensor[(2), float32] /* ty=Tensor[(2), float32] */ = "
               "%p;"));
  pln_graph_release(g);
  g = cut_one(PLN_IF, NULL, 0, PLN_SHRINK_FREE_VAR);
  CHECK(!strstr(print(g).data, "exp") && has(g, "= %p;"));
  pln_graph_release(g);
  end();
}

static void zeros_stand_in(void) {
  begin();
  pln_graph *g = cut_one(PLN_CALL, "exp", 0, PLN_SHRINK_TO_ZERO);
  CHECK(!strstr(print(g).data, "exp") && has(g, "meta[relay.Constant][0]"));
  pln_graph_release(g);
  end();
}

static void an_operand_stands_in(void) {
  begin();
  pln_graph *g = cut_one(PLN_CALL, "multiply", 0, PLN_SHRINK_TO_OPERAND + 1);
  CHECK(!strstr(print(g).data, "multiply") && has(g, "(%a, %0)"));
  pln_graph_release(g);
  end();
}

static void a_branch_is_taken(void) {
  begin();
  pln_graph *g = cut_one(PLN_IF, NULL, 0, PLN_SHRINK_TO_OPERAND);
  CHECK(!strstr(print(g).data, "if (") && !strstr(print(g).data, "abs"));
  CHECK(has(g, "exp(%a)"));
  pln_graph_release(g);
  g = cut_one(PLN_IF, NULL, 0, PLN_SHRINK_TO_OPERAND + 1);
  CHECK(!strstr(print(g).data, "exp") && has(g, "abs(%x)"));
  pln_graph_release(g);
  end();
}

static void a_let_goes(void) {
  begin();
  pln_graph *g = cut_one(PLN_LET, NULL, 0, PLN_SHRINK_LET_VALUE);
  CHECK(!strstr(print(g).data, "let %a") && has(g, "let %b"));
  pln_graph_release(g);
  g = cut_one(PLN_LET, NULL, 1, PLN_SHRINK_LET_VALUE);
  CHECK(!strstr(print(g).data, "let %e") && has(g, "exp(%a)"));
  pln_graph_release(g);
  end();
}

static void all_cuts_are_made_at_once(void) {
  begin();
  pln_graph *g = parse(engine, program), *out = NULL;
  uint32_t cuts[64] = {0};
  for (pln_ref i = 0; i < pln_graph_size(g); i++)
    if (pln_node_kind(g, i) == PLN_LET)
      cuts[i] = PLN_SHRINK_LET_VALUE;
  cuts[find(g, PLN_IF, NULL, 0)] = PLN_SHRINK_TO_OPERAND;
  cuts[find(g, PLN_CALL, "tanh", 0)] = PLN_SHRINK_TO_OPERAND;
  CHECK_OK(pln_graph_shrink(g, cuts, &out));
  CHECK_OK(pln_graph_verify(out));
  CHECK(!strstr(print(out).data, "let ") && has(out, "exp(%x)"));
  pln_graph_release(out);
  pln_graph_release(g);
  end();
}

static void refuses(pln_kind kind, const char *name, uint32_t cut,
                    const char *message) {
  pln_graph *g = parse(engine, program), *out = NULL;
  uint32_t cuts[64] = {0};
  cuts[find(g, kind, name, 0)] = cut;
  CHECK_STATUS(pln_graph_shrink(g, cuts, &out), PLN_ERR_ARGUMENT);
  size_t last = pln_diag_count(engine); /* behind the error: where it was */
  while (last > 1 && pln_diag_at(engine, last - 1)->severity != PLN_ERROR)
    last--;
  const char *said = pln_diag_at(engine, last - 1)->message;
  if (!CHECK(strstr(said, message)))
    printf("# %s\n", said);
  pln_graph_release(g);
}

static void misfits_are_told(void) {
  begin();
  refuses(PLN_CALL, "nn.relu", PLN_SHRINK_TO_ZERO,
          "a Call, cannot be cut to zeros");
  refuses(PLN_TUPLE, NULL, PLN_SHRINK_TO_ZERO,
          "a Tuple, cannot be cut to zeros");
  refuses(PLN_CALL, "exp", PLN_SHRINK_LET_VALUE,
          "a Call, cannot be cut to a value");
  refuses(PLN_CALL, "exp", PLN_SHRINK_TO_OPERAND + 1,
          "a Call, cannot be cut to an operand");
  refuses(PLN_IF, NULL, PLN_SHRINK_TO_OPERAND + 2,
          "a If, cannot be cut to an operand");
  refuses(PLN_VAR, NULL, UINT32_MAX, "a Var, cannot be cut to an operand");
  end();
}

static pln_status cut_many(pln_engine *e, void *ud) {
  pln_graph *g, *out;
  uint32_t cuts[64] = {0};
  (void)ud;
  PLN_TRY(pln_parse_expr(e, pln_text(program), NULL, NULL, &g));
  cuts[find(g, PLN_CALL, "tanh", 0)] = PLN_SHRINK_TO_ZERO;
  cuts[find(g, PLN_CALL, "abs", 0)] = PLN_SHRINK_FREE_VAR;
  cuts[find(g, PLN_LET, NULL, 1)] = PLN_SHRINK_LET_VALUE;
  pln_status status = pln_graph_shrink(g, cuts, &out);
  if (status == PLN_OK)
    pln_graph_release(out);
  pln_graph_release(g);
  return status;
}

static void survives_lack_of_memory(void) {
  oom_sweep(cut_many, NULL);
}

static const check_test tests[] = {
    {"nothing is cut", nothing_is_cut},
    {"a variable stands in", a_variable_stands_in},
    {"zeros stand in", zeros_stand_in},
    {"an operand stands in", an_operand_stands_in},
    {"a branch is taken", a_branch_is_taken},
    {"a let goes", a_let_goes},
    {"all cuts are made at once", all_cuts_are_made_at_once},
    {"misfits are told", misfits_are_told},
    {"survives lack of memory", survives_lack_of_memory},
};
CHECK_MAIN(tests)
