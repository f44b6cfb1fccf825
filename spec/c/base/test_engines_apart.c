/* test_engines_apart.c: engines in two threads know nothing of each other:
 * contexts, config keys, passes, instruments and diagnostics are each one's
 * own, as TVM's are each thread's. */

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "check.h"
#include "pass/pass.h"

enum { ROUNDS = 200 };

typedef struct side {
  int level;         /* of its context */
  uint32_t befores;  /* of its instrument */
  uint32_t mistakes; /* what was found to be another's */
} side;

static atomic_int waiting;

/* Both threads go on from here together. */
static void meet(void) {
  atomic_fetch_add(&waiting, 1);
  while (atomic_load(&waiting) < 2)
    ;
}

static pln_status nothing(pln_pass_run *run) {
  (void)run;
  return PLN_OK;
}

static pln_status count(void *ud, const pln_module *module,
                        const pln_pass *pass) {
  (void)module;
  (void)pass;
  ((side *)ud)->befores++;
  return PLN_OK;
}

static pln_status set_up(pln_engine *e, side *s, pln_context **context,
                         pln_module **module) {
  const pln_option key = {.name = s->level ? "mine" : "yours",
                          .kind = PLN_ATTR_INT,
                          .fallback = "3"};
  const pln_pass_spec spec = {
      .name = "Own", .kind = PLN_PASS_MODULE, .run = nothing};
  const pln_instrument counter = {.name = "count", .ud = s, .before = count};
  const pln_context_spec wanted = {
      .opt_level = s->level, .n_instruments = 1, .instruments = &counter};
  PLN_TRY(pln_config_register(e, &key));
  PLN_TRY(pln_pass_register(e, &spec));
  PLN_TRY(pln_context_new(e, &wanted, context));
  return pln_module_new(e, module);
}

static pln_status round_once(pln_engine *e, side *s, pln_context *context,
                             const pln_module *module) {
  pln_pass *pass;
  pln_module *out;
  pln_attr value;
  PLN_TRY(pln_context_enter(context));
  s->mistakes += pln_context_opt_level(pln_context_current(e)) != s->level;
  PLN_TRY(pln_pipeline_parse(e, pln_text("Own,SimplifyExpr"), &pass));
  pln_status status = pln_pass_apply(pass, module, &out);
  pln_pass_release(pass);
  PLN_TRY(status);
  pln_module_release(out);
  size_t mark = pln_diag_count(e);
  s->mistakes += pln_context_config_value(context, s->level ? "yours" : "mine",
                                          &value) != PLN_ERR_NAME;
  s->mistakes += pln_diag_count(e) != mark + 1;
  pln_diag_clear(e);
  return pln_context_exit(context);
}

static void *run_side(void *ud) {
  side *s = ud;
  pln_context *context = NULL;
  pln_module *module = NULL;
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_status status = e ? set_up(e, s, &context, &module) : PLN_ERR_NOMEM;
  meet();
  for (int i = 0; i < ROUNDS && status == PLN_OK; i++)
    status = round_once(e, s, context, module);
  s->mistakes += status != PLN_OK;
  if (e) {
    s->mistakes += pln_context_opt_level(pln_context_current(e)) != 2;
    pln_module_release(module);
    pln_context_release(context);
    pln_engine_free(e);
  }
  return NULL;
}

static void threads_have_contexts_of_their_own(void) {
  side sides[2] = {{.level = 0}, {.level = 3}};
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    REQUIRE(pthread_create(&threads[i], NULL, run_side, &sides[i]) == 0);
  for (int i = 0; i < 2; i++)
    CHECK(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < 2; i++) {
    CHECK_EQ_INT(sides[i].mistakes, 0);
    /* The sequential, and its two elements. */
    CHECK_EQ_INT(sides[i].befores, 3 * ROUNDS);
  }
}

static const check_test tests[] = {
    {"threads have contexts of their own", threads_have_contexts_of_their_own},
};
CHECK_MAIN(tests)
