/* compile_target.c: reads the config key `target`, as TVM writes targets.
 *
 * Called by passes whose result depends on the processor (AlterOpLayout,
 * Legalize) or on other attributes of the target (FuseOps, SplitArgs,
 * PlanDevices).
 *
 *     "llvm -mcpu=cascadelake"   =>   x86, 16 lanes, dot products of bytes
 *
 * Semantics: TVM's target_has_sse42, target_has_avx512 and get_simd_32bit_lanes
 * of tvm.topi.x86. */

#include "transform/compile_target.h"

typedef struct processor {
  const char *name;
  uint32_t lanes;
  bool vnni;
} processor;

/* Processors with vectors of more than 128 bits, or dot products of bytes. */
static const processor processors[] = {
    {"nehalem", 4, false},
    {"westmere", 4, false},
    {"sandybridge", 4, false},
    {"ivybridge", 4, false},
    {"silvermont", 4, false},
    {"slm", 4, false},
    {"goldmont", 4, false},
    {"goldmont-plus", 4, false},
    {"tremont", 4, false},
    {"haswell", 8, false},
    {"broadwell", 8, false},
    {"skylake", 8, false},
    {"core-avx2", 8, false},
    {"znver1", 8, false},
    {"znver2", 8, false},
    {"znver3", 8, false},
    {"alderlake", 8, false},
    {"raptorlake", 8, false},
    {"skylake-avx512", 16, false},
    {"skx", 16, false},
    {"knl", 16, false},
    {"knm", 16, false},
    {"cannonlake", 16, false},
    {"cascadelake", 16, true},
    {"cooperlake", 16, true},
    {"icelake-client", 16, true},
    {"icelake-server", 16, true},
    {"tigerlake", 16, true},
    {"rocketlake", 16, true},
    {"sapphirerapids", 16, true},
    {"znver4", 16, true},
};

/* The word after `flag` in the text; empty if there is none. */
static pln_slice flag_of(pln_slice text, const char *flag) {
  size_t n = strlen(flag);
  for (size_t i = 0; i + n <= text.size; i++) {
    if (memcmp(text.data + i, flag, n) != 0)
      continue;
    pln_slice word = {text.data + i + n, 0};
    while (i + n + word.size < text.size && word.data[word.size] != ' ')
      word.size++;
    return word;
  }
  return pln_text("");
}

static bool begins_with(pln_slice text, const char *prefix) {
  size_t n = strlen(prefix);
  return text.size >= n && memcmp(text.data, prefix, n) == 0;
}

static bool is_x86(pln_slice text) {
  pln_slice triple = flag_of(text, "-mtriple=");
  return begins_with(text, "llvm") && !flag_of(text, "-device=").size &&
         (!triple.size || begins_with(triple, "x86_64") ||
          begins_with(triple, "i386") || begins_with(triple, "i686"));
}

static pln_compile_target target_of(pln_slice text) {
  pln_slice name = flag_of(text, "-mcpu=");
  pln_compile_target target = {.cpu = true, .lanes = 4};
  if (!is_x86(text))
    return (pln_compile_target){0};
  for (size_t i = 0; i < PLN_COUNT(processors); i++)
    if (pln_slice_is(name, processors[i].name))
      target = (pln_compile_target){.cpu = true,
                                    .lanes = processors[i].lanes,
                                    .dot_int8 = true,
                                    .vnni = processors[i].vnni};
  return target;
}

pln_slice pln_run_target_text(const pln_pass_run *run) {
  const pln_attr *value =
      pln_attrs_find(run->engine, run->context->config, "target");
  return value && value->kind == PLN_ATTR_STRING ? value->v.s : pln_text("");
}

pln_compile_target pln_run_target(const pln_pass_run *run) {
  return target_of(pln_run_target_text(run));
}

/* -------------------------------------------------------------- attributes */

bool pln_target_next_word(pln_slice text, size_t *at, pln_slice *word) {
  char quote = 0;
  while (*at < text.size && text.data[*at] == ' ')
    ++*at;
  size_t from = *at;
  for (; *at < text.size && (quote || text.data[*at] != ' '); ++*at) {
    char c = text.data[*at];
    if (quote ? c == quote : c == '"' || c == '\'')
      quote = quote ? 0 : c;
  }
  *word = (pln_slice){text.data ? text.data + from : NULL, *at - from};
  return word->size > 0;
}

/* A value without the quotes around it. */
static pln_slice unquoted(pln_slice value) {
  char end = value.size > 1 ? value.data[value.size - 1] : 0;
  if ((end != '"' && end != '\'') || value.data[0] != end)
    return value;
  return (pln_slice){value.data + 1, value.size - 2};
}

bool pln_target_read_attr(pln_slice word, pln_slice *name, pln_slice *value) {
  size_t at = 0;
  while (at < word.size && at < 2 && word.data[at] == '-')
    at++;
  const char *equals =
      at > 0 ? memchr(word.data + at, '=', word.size - at) : NULL;
  if (!equals)
    return false;
  size_t n = (size_t)(equals - word.data);
  *name = (pln_slice){word.data + at, n - at};
  *value = unquoted((pln_slice){equals + 1, word.size - n - 1});
  return true;
}

pln_slice pln_target_attr(pln_slice text, const char *attr) {
  pln_slice word, name, value;
  for (size_t at = 0; pln_target_next_word(text, &at, &word);)
    if (pln_target_read_attr(word, &name, &value) && pln_slice_is(name, attr))
      return value;
  return pln_text("");
}

uint32_t pln_run_target_count(const pln_pass_run *run, const char *attr) {
  pln_slice value = pln_target_attr(pln_run_target_text(run), attr);
  uint64_t count = 0;
  for (size_t i = 0; i < value.size; i++) {
    if (value.data[i] < '0' || value.data[i] > '9' || count > UINT32_MAX / 10)
      return 0;
    count = 10 * count + (uint64_t)(value.data[i] - '0');
  }
  return count > UINT32_MAX ? 0 : (uint32_t)count;
}
