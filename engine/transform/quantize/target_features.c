/* target_features.c: what the text of a target says about quantised operators.
 * Called by qnn.Legalize and qnn.CanonicalizeOps.
 *
 *     "llvm -keys=cpu -mcpu=skylake-avx512"   =>   data of uint8, weights of
 * int8
 *
 * Semantics: the registrations by target of TVM's legalizations.py. */

#include "transform/quantize/target_features.h"

/* The value of "-name=" in the text, up to the next space; the host's options
 * are not the target's. */
static pln_slice option_of(pln_slice text, const char *name) {
  size_t n = strlen(name);
  for (size_t i = 0; i + n + 3 <= text.size; i++) {
    const char *at = text.data + i;
    if (i + 7 <= text.size && memcmp(at, " -host=", 7) == 0)
      break;
    if (memcmp(at, " -", 2) != 0 || memcmp(at + 2, name, n) != 0 ||
        at[n + 2] != '=')
      continue;
    pln_slice value = {at + n + 3, 0};
    while (value.data + value.size < text.data + text.size &&
           value.data[value.size] != ' ')
      value.size++;
    return value;
  }
  return pln_text("");
}

/* True if a word of a list "a,b,c" is `word`, or begins with it. */
static bool lists_word(pln_slice list, const char *word, bool prefix) {
  size_t n = strlen(word), at = 0;
  while (at < list.size) {
    const char *comma = memchr(list.data + at, ',', list.size - at);
    size_t end = comma ? (size_t)(comma - list.data) : list.size;
    if (end - at >= n && memcmp(list.data + at, word, n) == 0 &&
        (prefix || end - at == n))
      return true;
    at = end + 1;
  }
  return false;
}

static pln_slice kind_of(pln_slice text) {
  const char *space = text.size ? memchr(text.data, ' ', text.size) : NULL;
  if (space)
    text.size = (size_t)(space - text.data);
  return text;
}

/* ------------------------------------------------------------------------ x86
 */

/* Processors that LLVM knows to have SSE 4.2, by how their names begin. */
static const char *const sse42_processors[] = {
    "nehalem",       "westmere",      "corei7",      "sandybridge",
    "ivybridge",     "haswell",       "broadwell",   "core-avx",
    "skylake",       "skx",           "cascadelake", "cooperlake",
    "cannonlake",    "icelake",       "rocketlake",  "tigerlake",
    "alderlake",     "raptorlake",    "meteorlake",  "sapphirerapids",
    "emeraldrapids", "graniterapids", "silvermont",  "slm",
    "goldmont",      "tremont",       "gracemont",   "knl",
    "knm",           "bdver",         "btver2",      "znver",
    "x86-64-v2",     "x86-64-v3",     "x86-64-v4"};

static bool has_sse42(pln_slice target) {
  static const char *const features[] = {"+sse4.2", "+avx"};
  pln_slice mcpu = option_of(target, "mcpu");
  pln_slice mattr = option_of(target, "mattr");
  for (size_t i = 0; i < PLN_COUNT(sse42_processors); i++)
    if (lists_word(mcpu, sse42_processors[i], true))
      return true;
  for (size_t i = 0; i < PLN_COUNT(features); i++)
    if (lists_word(mattr, features[i], true))
      return true;
  return false;
}

static bool has_sse41(pln_slice target) {
  return has_sse42(target) ||
         lists_word(option_of(target, "mcpu"), "penryn", false) ||
         lists_word(option_of(target, "mattr"), "+sse4.1", false);
}

/* ------------------------------------------------------------------------ ARM
 */

static void read_arm(pln_slice target, pln_target_features *f) {
  pln_slice triple = option_of(target, "mtriple");
  pln_slice mattr = option_of(target, "mattr");
  bool simd = lists_word(triple, "aarch64", true) ||
              lists_word(triple, "arm64", true) ||
              lists_word(mattr, "+neon", false);
  bool dot = lists_word(mattr, "+dotprod", false);
  f->dense = f->conv_2d = simd && !dot ? PLN_OPERANDS_INT16 : PLN_OPERANDS_SAME;
  f->nhwc_is_same = true;
}

/* ----------------------------------------------------------------------- keys
 */

static void read_gpu(pln_slice target, pln_target_features *f) {
  pln_slice kind = kind_of(target);
  if (pln_slice_is(kind, "vulkan"))
    f->conv_2d = f->dense = PLN_OPERANDS_SAME;
  else if (pln_slice_is(kind, "cuda") || pln_slice_is(kind, "rocm"))
    f->conv_2d = f->dense = PLN_OPERANDS_INT8;
}

pln_target_features pln_target_features_of(const pln_pass_run *run) {
  pln_target_features f = {.conv_2d = PLN_OPERANDS_ANY};
  const pln_attr *attr =
      pln_attrs_find(run->engine, run->context->config, "target");
  pln_slice text =
      attr && attr->kind == PLN_ATTR_STRING ? attr->v.s : pln_text("");
  pln_slice keys = option_of(text, "keys");
  f.has_sse41 = pln_slice_is(kind_of(text), "llvm") && has_sse41(text);
  if (lists_word(keys, "arm_cpu", false))
    read_arm(text, &f);
  else if (lists_word(keys, "cpu", false))
    f.conv_2d = f.dense =
        has_sse42(text) ? PLN_OPERANDS_UINT8_INT8 : PLN_OPERANDS_INT16;
  else if (lists_word(keys, "gpu", false))
    read_gpu(text, &f);
  else if (lists_word(keys, "hexagon", false))
    f.conv_2d = f.dense = PLN_OPERANDS_ALIGNED;
  return f;
}
