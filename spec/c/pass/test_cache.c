/* test_cache.c: results of passes that are kept, and lack of memory meanwhile.
 */

#include "ir/compare/isomorphic.h"
#include "oom.h"
#include "pass/pass.h"

/* Two functions that differ in the numbers of their variables and in their
 * places only, and one that does not. */
static const char source[] = "#[version = \"0.0.5\"]\n"
                             "def @a(%x: Tensor[(2), float32]) {\n"
                             "  nn.relu(nn.relu(add(%x, 0f)))\n"
                             "}\n"
                             "def @b(%x: Tensor[(2), float32]) {\n"
                             "  nn.relu(nn.relu(add(%x, 0f)))\n"
                             "}\n"
                             "def @c(%x: Tensor[(2), float32]) {\n"
                             "  nn.relu(nn.relu(add(%x, 1f)))\n"
                             "}\n";

static pln_status parse(pln_engine *e, pln_module **out) {
  return pln_parse_module(e, pln_text(source), "source", NULL, out);
}

/* A context that keeps `bytes` of results, entered. */
static pln_status enter(pln_engine *e, int64_t bytes, pln_context **out) {
  pln_attr entry = {.kind = PLN_ATTR_INT, .v.i = bytes};
  pln_context_spec spec = {.opt_level = 3};
  PLN_TRY(pln_symbol_intern(e, pln_text("cache"), &entry.name));
  PLN_TRY(pln_attrs_make(e, 1, &entry, &spec.config));
  PLN_TRY(pln_context_new(e, &spec, out));
  pln_status status = pln_context_enter(*out);
  if (status != PLN_OK)
    pln_context_release(*out);
  return status;
}

static pln_status apply(pln_engine *e, const char *name, const pln_module *m) {
  pln_pass *pass;
  pln_module *out;
  PLN_TRY(pln_pass_make(e, name, 0, &pass));
  pln_status status = pln_pass_apply(pass, m, &out);
  if (status == PLN_OK)
    pln_module_release(out);
  pln_pass_release(pass);
  return status;
}

/* Misses, hits, twins; functions and modules; and rows that go for others. */
static pln_status passes(pln_engine *e, const pln_module *m, int64_t bytes) {
  pln_context *context;
  PLN_TRY(enter(e, bytes, &context));
  pln_status status = apply(e, "SimplifyExpr", m);
  if (status == PLN_OK)
    status = apply(e, "InferType", m);
  if (status == PLN_OK)
    status = apply(e, "SimplifyExpr", m);
  pln_status left = pln_context_exit(context);
  pln_context_release(context);
  return status == PLN_OK ? left : status;
}

static pln_status work(pln_engine *e, void *ud) {
  pln_module *m;
  PLN_TRY(parse(e, &m));
  pln_status status = passes(e, m, 1000000);
  if (status == PLN_OK)
    status = passes(e, m, 1000);
  pln_module_release(m);
  (void)ud;
  return status;
}

static void lack_of_memory_empties_it(void) {
  oom_sweep(work, NULL);
}

static void what_is_kept_is_counted(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL;
  CHECK_OK(parse(e, &m));
  CHECK_OK(passes(e, m, 1000000));
  pln_cache_stats stats = pln_cache_stats_read(e);
  CHECK_EQ_INT(stats.misses, 3); /* @a, @c, InferType */
  CHECK_EQ_INT(stats.hits, 4);   /* @b, and all again */
  CHECK_EQ_INT(stats.results, 4);
  CHECK(stats.bytes > 0);
  pln_cache_clear(e);
  stats = pln_cache_stats_read(e);
  CHECK_EQ_INT(stats.results, 0);
  CHECK_EQ_INT(stats.bytes, 0);
  CHECK_EQ_INT(stats.hits, 4);
  pln_module_release(m);
  pln_engine_free(e);
}

static void twins_are_told_from_others(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_module *m = NULL;
  pln_isomorphism twins;
  bool same;
  CHECK_OK(parse(e, &m));
  const pln_graph *a = pln_module_function_at(m, 0);
  const pln_graph *b = pln_module_function_at(m, 1);
  const pln_graph *c = pln_module_function_at(m, 2);
  CHECK(pln_isomorphism_hash(a) == pln_isomorphism_hash(b));
  CHECK(pln_isomorphism_hash(a) != pln_isomorphism_hash(c));
  CHECK_OK(pln_isomorphism_match(&twins, a, c, &same));
  CHECK(!same);
  pln_isomorphism_end(&twins);
  CHECK_OK(pln_isomorphism_match(&twins, a, b, &same));
  CHECK(same);
  pln_graph *carried = NULL;
  CHECK_OK(pln_isomorphism_remap(&twins, a, &carried));
  pln_isomorphism_end(&twins);
  REQUIRE(carried);
  CHECK_OK(pln_graph_equal(carried, carried->root, b, b->root, false, &same));
  CHECK(same && carried->origins == b->origins);
  CHECK_EQ_INT(carried->nodes[0].data, b->nodes[0].data);
  pln_graph_release(carried);
  pln_module_release(m);
  pln_engine_free(e);
}

static const check_test tests[] = {
    {"what is kept is counted", what_is_kept_is_counted},
    {"twins are told from others", twins_are_told_from_others},
    {"lack of memory empties it", lack_of_memory_empties_it},
};
CHECK_MAIN(tests)
