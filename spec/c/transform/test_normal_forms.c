/* test_normal_forms.c: dominators against their definition, the table of fusion
 * patterns, and the passes that give a graph another form while memory is
 * short. What they make is checked by spec/transform/fuse/fuse_ops_spec.lua and
 * spec/transform/functional/normal_forms_spec.lua. */

#include "base/base.h"
#include "ir/analysis/dominators.h"
#include "oom.h"
#include "op/op.h"
#include "pass/pass.h"
#include "transform/fuse/fuse_pattern.h"

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
#include "transform/fuse/fuse_patterns.def"
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

/* ------------------------------------- a program with all kinds of scopes */

static const char text[] =
    "#[version = \"0.0.5\"]\n"
    "type List { Cons(float32, List[]), Nil }\n"
    "def @sum(%l: List[]) -> float32 {\n"
    "  match (%l) { Cons(%h, %t) => { add(%h, @sum(%t)) }, Nil => { 0f } }\n"
    "}\n"
    "def @main(%c: bool, %x: float32) -> float32 {\n"
    "  let %r = ref(%x);\n"
    "  let %v = exp(%x);\n"
    "  let %f = fn (%a: float32) -> float32 {\n"
    "    let %u = ref_write(%r, add(ref_read(%r), %a)); multiply(%a, %v)\n"
    "  };\n"
    "  %0 = if (%c) { add(tanh(%v), %v) } else { %v };\n"
    "  %1 = %f(%0);\n"
    "  add(@sum(Cons(%1, Cons(ref_read(%r), Nil))), exp(tanh(%x)))\n"
    "}\n";

static pln_status run(pln_engine *e, const pln_module *module) {
  pln_tensor *tensors[2] = {NULL};
  pln_runtime_value args[2], result;
  pln_symbol main_name;
  PLN_TRY(pln_symbol_intern(e, pln_text("main"), &main_name));
  pln_status status =
      pln_tensor_from_bytes(e, PLN_BOOL, 0, NULL, "\1", 1, &tensors[0]);
  if (status == PLN_OK)
    status = pln_tensor_from_bytes(e, PLN_FLOAT32, 0, NULL, "\0\0\0\0", 4,
                                   &tensors[1]);
  for (int i = 0; i < 2; i++)
    args[i] = pln_runtime_value_tensor(tensors[i]);
  uint32_t i = pln_module_find(module, main_name);
  if (status == PLN_OK)
    status = pln_eval_run(module, pln_module_function_at(module, i), 2, args, 1,
                          &result);
  if (status == PLN_OK)
    pln_runtime_value_release(e, &result);
  for (int k = 0; k < 2; k++) {
    pln_runtime_value_release(e, &args[k]);
    pln_tensor_release(tensors[k]);
  }
  return status;
}

/* All passes in order: each finds what the one before has made. */
static pln_status whole(pln_engine *e, void *ud) {
  pln_module *module, *out;
  pln_pass *pipeline;
  (void)ud;
  PLN_TRY(pln_parse_module(e, pln_text(text), "text", NULL, &module));
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
  if (status != PLN_OK)
    return status;
  pln_ref node = PLN_NONE;
  for (uint32_t i = 0; i < pln_module_count(out) && status == PLN_OK; i++)
    status = pln_graph_basic_blocks(pln_module_function_at(out, i), &node);
  if (status == PLN_OK)
    status = run(e, out);
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

int check_main(int argc, char **argv) {
  return check_run(tests, PLN_COUNT(tests), argc, argv);
}
