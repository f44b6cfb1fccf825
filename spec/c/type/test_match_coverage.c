/* test_match_coverage.c: the cases that a match does not cover, while memory
 * runs out. spec/type/match_coverage_spec.lua tests which these are. */

#include "ir/graph/module.h"
#include "oom.h"
#include "op/op.h"

/* Arms that name constructors at two places, so that cases are combined. */
static const char partial[] = "#[version = \"0.0.5\"]\n"
                              "type List[A] { Cons(A, List[A]), Nil }\n"
                              "type Color { Red, Green, Blue }\n"
                              "def @main(%a: (Color, List[Color])) -> int32 {\n"
                              "  match? (%a) {\n"
                              "    (Red, _) => 1,\n"
                              "    (_, Cons(Green, Cons(_, Nil))) => 2,\n"
                              "    (Blue, Nil) => 3\n"
                              "  }\n"
                              "}\n";

static const char complete[] =
    "#[version = \"0.0.5\"]\n"
    "type Color { Red, Green, Blue }\n"
    "def @main(%a: (Color, Color)) -> int32 {\n"
    "  match (%a) { (Red, _) => 1, (_, Blue) => 2 }\n"
    "}\n";

static pln_ref find_match(const pln_graph *g) {
  pln_ref ref = 0;
  while (ref < g->n_nodes && g->nodes[ref].kind != PLN_MATCH)
    ref++;
  return ref;
}

static pln_status count_cases(pln_engine *e, const pln_module *m, uint32_t *n) {
  const pln_graph *g = pln_module_function_at(m, 0);
  pln_builder *b;
  pln_ref cases;
  PLN_TRY(pln_builder_new(e, &b));
  pln_status status = pln_build_uncovered_cases(b, g, find_match(g), m, &cases);
  if (status == PLN_OK)
    *n = pln_builder_graph(b)->nodes[cases].count;
  pln_builder_free(b);
  return status;
}

static pln_status build(pln_engine *e, void *ud) {
  pln_module *m;
  uint32_t n = 0;
  (void)ud;
  PLN_TRY(pln_parse_module(e, pln_text(partial), "partial", NULL, &m));
  pln_status status = count_cases(e, m, &n);
  if (status == PLN_OK)
    CHECK_EQ_INT(n, 9);
  pln_module_release(m);
  return status;
}

static void memory_runs_out_while_cases_are_built(void) {
  oom_sweep(build, NULL);
}

static const char refusal[] =
    "the match does not cover (Green, Red), (Green, Green), (Blue, Red), "
    "(Blue, Green); only 'match?' may leave out cases: in Match(%a: (Color[], "
    "Color[])) of @main";

/* Refusing is what is wanted; without memory less is said. */
static pln_status refuse(pln_engine *e, void *ud) {
  pln_module *m;
  (void)ud;
  pln_status status =
      pln_parse_module(e, pln_text(complete), "complete", NULL, &m);
  if (CHECK(status != PLN_OK) && status == PLN_ERR_TYPE &&
      strcmp(pln_diag_at(e, 0)->message, refusal) == 0)
    return PLN_OK;
  return PLN_ERR_NOMEM;
}

static void memory_runs_out_while_cases_are_told(void) {
  oom_sweep(refuse, NULL);
}

static const check_test tests[] = {
    {"memory runs out while cases are built",
     memory_runs_out_while_cases_are_built},
    {"memory runs out while cases are told",
     memory_runs_out_while_cases_are_told},
};
CHECK_MAIN(tests)
