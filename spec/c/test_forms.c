/* test_forms.c: dominators against their definition, the table of fusion
 * patterns, and the passes that give a graph another form while memory is
 * short. What they make is checked by spec/fuse_ops_spec.lua and
 * spec/graph_forms_spec.lua. */

#include "base/base.h"
#include "ir/dominators.h"
#include "oom.h"
#include "op/op.h"
#include "pass/pass.h"
#include "transform/fuse_pattern.h"

/* --------------------------------------------------------------- dominators */

enum { NODES = 24 };

typedef struct random_graph {
  uint64_t state;
  bool uses[NODES][NODES]; /* [user][used], user > used */
  bool escapes[NODES];
} random_graph;

static uint32_t draw(random_graph *r, uint32_t below) {
  r->state = r->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(r->state >> 33) % below;
}

static void make_random(random_graph *r) {
  memset(r->uses, 0, sizeof r->uses);
  for (uint32_t i = 0; i < NODES; i++) {
    r->escapes[i] = i + 1 == NODES || draw(r, 12) == 0;
    for (uint32_t k = 0; i > 0 && k < 2; k++)
      r->uses[i][draw(r, i)] = true;
  }
}

/* Can the value of `from` leave without going through `blocked`? */
static bool leaves(const random_graph *r, uint32_t from, uint32_t blocked) {
  bool reached[NODES] = {0};
  reached[from] = true;
  for (uint32_t i = from; i < NODES; i++) {
    if (i == blocked || !reached[i])
      continue;
    bool used = false;
    for (uint32_t user = i + 1; user < NODES; user++)
      if (r->uses[user][i])
        used = reached[user] = true;
    if (r->escapes[i] || !used)
      return true;
  }
  return false;
}

static pln_ref first_dominator(const random_graph *r, uint32_t node) {
  for (uint32_t i = node + 1; i < NODES; i++)
    if (!leaves(r, node, i))
      return i;
  return NODES;
}

static void check_random(pln_engine *e, const random_graph *r) {
  pln_dominators d;
  CHECK_OK(pln_dominators_begin(&d, e, NODES));
  for (uint32_t i = NODES; i-- > 0;) {
    if (r->escapes[i])
      pln_dominators_escape(&d, i);
    pln_dominators_close(&d, i);
    for (uint32_t k = 0; k < i; k++)
      if (r->uses[i][k])
        pln_dominators_use(&d, k, i, 0);
  }
  for (uint32_t i = 0; i < NODES; i++)
    CHECK_EQ_INT(d.parent[i], first_dominator(r, i));
  pln_dominators_end(&d);
}

static void dominators_are_what_they_are_defined_as(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  random_graph r = {.state = 1};
  for (int round = 0; round < 400; round++) {
    make_random(&r);
    check_random(e, &r);
  }
  pln_engine_free(e);
}

/* A chain with a weight at one place: each ancestor is reached over it. */
static void weights_are_the_greatest_on_the_way(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  pln_dominators d;
  CHECK_OK(pln_dominators_begin(&d, e, 103));
  for (uint32_t i = 103; i-- > 0;) {
    pln_dominators_close(&d, i);
    if (i == 102) {
      pln_dominators_use(&d, 0, i, 1);
      pln_dominators_use(&d, 101, i, 2);
    } else if (i > 1) {
      pln_dominators_use(&d, i - 1, i, i == 50 ? 7 : 2);
      if (i == 2)
        pln_dominators_use(&d, 0, i, 2);
    }
  }
  CHECK_EQ_INT(d.parent[0], 102);
  CHECK_EQ_INT(d.weight[0], 7);
  CHECK_EQ_INT(d.parent[1], 2);
  pln_dominators_end(&d);
  pln_engine_free(e);
}

/* ----------------------------------------------------------------- patterns */

static const char *const names[] = {
#define FUSE(name, PATTERN, how) name,
#include "transform/fuse_patterns.def"
};

static void patterns_are_sorted_by_name(void) {
  for (size_t i = 1; i < PLN_COUNT(names); i++)
    CHECK(strcmp(names[i - 1], names[i]) < 0);
}

static void patterns_follow_traits(void) {
  pln_engine *e = pln_engine_new(NULL, NULL);
  CHECK_EQ_INT(pln_fuse_trait_of(e, PLN_OP_TANH).pattern, PLN_FUSE_ELEMENTWISE);
  CHECK_EQ_INT(pln_fuse_trait_of(e, PLN_OP_ADD).pattern, PLN_FUSE_BROADCAST);
  CHECK_EQ_INT(pln_fuse_trait_of(e, PLN_OP_CONV).pattern, PLN_FUSE_OUT_FUSABLE);
  CHECK_EQ_INT(pln_fuse_trait_of(e, PLN_OP_TOP_K).pattern, PLN_FUSE_OPAQUE);
  CHECK(pln_fuse_trait_of(e, PLN_OP_RESHAPE).reshapes);
  pln_engine_free(e);
}

/* ------------------------------------------------- a program with all scopes:
 * let v = exp(x); if (c) { tanh(v) + v } else { v } */

typedef struct program {
  pln_engine *e;
  pln_builder *b;
  pln_type vector, truth;
} program;

static pln_status types(program *p) {
  static const int64_t four[] = {4};
  PLN_TRY(pln_type_tensor(p->e, PLN_FLOAT32, 1, four, &p->vector));
  return pln_type_tensor(p->e, PLN_BOOL, 0, NULL, &p->truth);
}

static pln_status branch(program *p, pln_ref v, bool computes, pln_scope *out) {
  pln_ref sum[2] = {v, v}, result = v;
  PLN_TRY(pln_build_open(p->b, out));
  if (computes) {
    PLN_TRY(pln_build_call(p->b, PLN_OP_TANH, 0, 0, 1, &v, &sum[0]));
    PLN_TRY(pln_build_call(p->b, PLN_OP_ADD, 0, 0, 2, sum, &result));
  }
  return pln_build_end(p->b, *out, result, 0);
}

static pln_status body(program *p, pln_ref c, pln_ref x, pln_ref *out) {
  pln_ref v, value, let;
  pln_scope scopes[2];
  PLN_TRY(pln_build_var(p->b, 0, 0, 0, &v));
  PLN_TRY(pln_build_call(p->b, PLN_OP_EXP, 0, 0, 1, &x, &value));
  PLN_TRY(pln_build_let(p->b, v, value, &let));
  PLN_TRY(branch(p, v, true, &scopes[0]));
  PLN_TRY(branch(p, v, false, &scopes[1]));
  return pln_build_if(p->b, c, scopes[0], scopes[1], 0, 0, out);
}

static pln_status function(program *p, pln_graph **out) {
  pln_scope scope;
  pln_ref c, x, result, root;
  PLN_TRY(types(p));
  PLN_TRY(pln_build_open(p->b, &scope));
  PLN_TRY(pln_build_param(p->b, 0, p->truth, 0, &c));
  PLN_TRY(pln_build_param(p->b, 0, p->vector, 0, &x));
  PLN_TRY(body(p, c, x, &result));
  PLN_TRY(pln_build_end(p->b, scope, result, 0));
  PLN_TRY(pln_build_function(p->b, scope, 0, 0, &root));
  return pln_builder_seal(p->b, root, out);
}

static pln_status make_module(pln_engine *e, pln_module **out) {
  program p = {.e = e};
  pln_graph *graph = NULL;
  pln_module *empty;
  pln_symbol name;
  PLN_TRY(pln_symbol_intern(e, pln_text("main"), &name));
  PLN_TRY(pln_builder_new(e, &p.b));
  pln_status status = function(&p, &graph);
  pln_builder_free(p.b);
  PLN_TRY(status);
  status = pln_module_new(e, &empty);
  if (status == PLN_OK) {
    status = pln_module_with(empty, name, graph, out);
    pln_module_release(empty);
  }
  pln_graph_release(graph);
  return status;
}

/* All passes in order: each finds what the one before has made. */
static pln_status whole(pln_engine *e, void *ud) {
  pln_module *module, *out;
  pln_pass *pipeline;
  (void)ud;
  PLN_TRY(make_module(e, &module));
  pln_status status = pln_pipeline_parse(
      e,
      pln_text("FuseOps,ToBasicBlockNormalForm,ToANormalForm,"
               "ToGraphNormalForm,FuseOps,LambdaLift,EtaExpand{expand_global_"
               "var=true},"
               "DefuseOps,Inline"),
      &pipeline);
  if (status == PLN_OK) {
    status = pln_pass_apply(pipeline, module, &out);
    pln_pass_release(pipeline);
  }
  pln_module_release(module);
  if (status == PLN_OK)
    pln_module_release(out);
  return status;
}

static void survives_oom(void) {
  oom_sweep(whole, NULL);
}

static const check_test tests[] = {
    {"dominators are what they are defined as",
     dominators_are_what_they_are_defined_as},
    {"weights are the greatest on the way",
     weights_are_the_greatest_on_the_way},
    {"patterns of fusion are sorted by name", patterns_are_sorted_by_name},
    {"patterns of fusion follow the traits", patterns_follow_traits},
    {"lack of memory at any place is an error, not a crash", survives_oom},
};

int main(int argc, char **argv) {
  return check_run(tests, PLN_COUNT(tests), argc, argv);
}
