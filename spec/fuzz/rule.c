/* rule.c: reading rules from hostile bytes, and running what was read.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined -DLIBFUZZER ...
 * Without: `fuzz_rule [FLIPS [SEED]] [FILE...]` replays files, or the texts
 * below. What must hold: a diagnostic that points into the text, or a rule that
 * can run over a program: it ends, and the result is verified; no crash, no
 * leak. */

#include "replay.h"

#include "ir/graph/graph.h"
#include "ir/graph/module.h"
#include "rule/rule.h"

static const char *const seed_texts[] = {
    "transposes: transpose(transpose(?x, axes=?p), axes=?q) => transpose(?x, "
    "axes=compose(?p, ?q)) where len(?p) == len(?q) and ?p ~= [0, 1]",
    "multiply(add(?x, ?a:const), ?b:const:float) => add(multiply(?x, ?b), "
    "multiply(?a, ?b)) -- distributes",
    "(nn.relu(?r@nn.relu(?x)) | ?r@nn.relu(tanh(_))) => -(?r + 1.5e-1) * 2",
    "?f{elementwise}(?r@reshape(?x)) => reshape(?f(?x), **?r) where "
    "?x.shape[0] // 2 <= 3 or not every(?r.newshape, -1)",
    "concatenate(?x, ?rest...) => concatenate(?x, ?rest, axis=0, **?x)",
    "?r@sum(?x, axes=?a, keepdims=0) => squeeze(sum(?x, axes=?a, keepdims=1), "
    "axes=normalize(?a, ?x.rank))",
    "split(?x, axis='a').0 => (?x, constant([1, 2]), constant(1, float32)).0"};

static const char program[] =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(2, 3), float32]) {\n"
    "  %0 = transpose(transpose(%x, axes=[1, 0]), axes=[1, 0]);\n"
    "  %1 = multiply(add(nn.relu(nn.relu(%0)), 1f), 3f);\n"
    "  %2 = concatenate((%1, %0), axis=0);\n"
    "  %3 = split(nn.relu(tanh(%2)), indices_or_sections=2, axis=0);\n"
    "  (sum(exp(reshape(%2, newshape=[6, 2])), axis=[1]), %3.0)\n"
    "}\n";

static void fail(const char *what, const pln_engine *engine) {
  fprintf(stderr, "fuzz_rule: %s\n", what);
  for (size_t i = 0; engine && i < pln_diag_count(engine); i++)
    fprintf(stderr, "  %s\n", pln_diag_at(engine, i)->message);
  abort();
}

static void run_set(pln_engine *engine, const pln_rule_set *set) {
  pln_module *module;
  pln_graph *out;
  pln_rule_options options = {.number_values = true};
  if (pln_parse_module(engine, pln_text(program), NULL, NULL, &module) !=
      PLN_OK)
    fail("the program is not read", engine);
  const pln_graph *main_function = pln_module_function_at(module, 0);
  pln_status status = pln_rules_apply(set, main_function, &options, &out);
  if (status == PLN_OK) {
    if (pln_graph_verify(out) != PLN_OK)
      fail("the result is not well formed", engine);
    pln_graph_release(out);
  } else if (status != PLN_ERR_TYPE && status != PLN_ERR_LIMIT) {
    fail("running failed", engine);
  }
  pln_module_release(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  pln_engine *engine = pln_engine_new(NULL, NULL);
  pln_rule_set *set;
  char *text = malloc(size + 1);
  if (!engine || !text || pln_rule_set_new(engine, "fuzz", &set) != PLN_OK)
    abort();
  memcpy(text, data, size);
  text[size] = 0;
  pln_rule_info info = {.text = text};
  if (pln_rule_set_add(set, &info, NULL) != PLN_OK) {
    if (pln_diag_count(engine) == 0)
      fail("reading failed without a diagnostic", engine);
  } else if (pln_rule_set_compile(set) != PLN_OK) {
    fail("compiling failed", engine);
  } else {
    run_set(engine, set);
  }
  pln_rule_set_free(set);
  pln_engine_free(engine);
  free(text);
  return 0;
}

#ifndef LIBFUZZER

int main(int argc, char **argv) {
  replay_plan plan = {
      .change = change_text, .most_prefixes = 500, .flips = 400};
  if (replay_arguments(&plan, argc, argv))
    return 0;
  for (size_t i = 0; i < sizeof seed_texts / sizeof *seed_texts; i++)
    replay(&plan, (const uint8_t *)seed_texts[i], strlen(seed_texts[i]));
  return 0;
}

#endif
