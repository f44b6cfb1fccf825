/* normalizer.c: string_normalizer: removes stop words and changes case. Called
 * through ops.def; the type is in infer/string.c.
 *
 * Case mapping is Unicode's, one to one, from the C library in a locale of its
 * own, independent of the process's. */

#include <locale.h>
#include <wctype.h>

#include "op/kernel/string/builder.h"
#include "op/kernel/string/utf8.h"

typedef enum change { KEEP, LOWER, UPPER } change;

/* ------------------------------------------------------------------- letters
 */

typedef struct normalizer {
  pln_kernel_call *call;
  const pln_tensor *x;
  const pln_attr *stop; /* words; or NULL */
  change change;
  bool exact; /* stop words are case sensitive */
  locale_t locale;
} normalizer;

static uint32_t changed(const normalizer *n, uint32_t c, change how) {
  if (how == KEEP)
    return c;
  return (uint32_t)(how == LOWER ? towlower_l((wint_t)c, n->locale)
                                 : towupper_l((wint_t)c, n->locale));
}

static pln_status add_changed(const normalizer *n, pln_string_builder *texts,
                              pln_slice s) {
  if (n->change == KEEP)
    return pln_string_builder_add(texts, s.data, s.size);
  while (s.size) {
    char bytes[4];
    size_t size;
    int32_t c = pln_utf8_decode(s, &size);
    if (c < 0)
      return pln_kernel_refuse(n->call, "a string is not valid UTF-8");
    PLN_TRY(pln_string_builder_add(
        texts, bytes,
        pln_utf8_encode(changed(n, (uint32_t)c, n->change), bytes)));
    s = (pln_slice){s.data + size, s.size - size};
  }
  return PLN_OK;
}

/* ---------------------------------------------------------------- stop words
 */

/* Equal except for case; text that is not UTF-8 is compared bytewise. */
static bool words_equal_normalized(const normalizer *n, pln_slice a,
                                   pln_slice b) {
  while (a.size && b.size) {
    size_t i, k;
    int32_t x = pln_utf8_decode(a, &i), y = pln_utf8_decode(b, &k);
    if (x < 0 || y < 0)
      return pln_slice_equal(a, b);
    if (changed(n, (uint32_t)x, LOWER) != changed(n, (uint32_t)y, LOWER))
      return false;
    a = (pln_slice){a.data + i, a.size - i};
    b = (pln_slice){b.data + k, b.size - k};
  }
  return a.size == b.size;
}

static bool is_stop_word(const normalizer *n, pln_slice s) {
  for (uint32_t i = 0; n->stop && i < n->stop->count; i++)
    if (n->exact ? pln_slice_equal(s, n->stop->v.strings[i])
                 : words_equal_normalized(n, s, n->stop->v.strings[i]))
      return true;
  return false;
}

/* ------------------------------------------------------------------- kernel */

/* Only these languages have case mappings that depend on the locale. */
static bool changes_letters(pln_slice locale) {
  static const char *const languages[] = {"tr", "az", "lt"};
  for (size_t i = 0; i < PLN_COUNT(languages) && locale.size >= 2; i++)
    if (!memcmp(locale.data, languages[i], 2))
      return true;
  return false;
}

static pln_status read_normalizer(pln_kernel_call *call, normalizer *n) {
  const char *action = "case_change_action";
  const pln_tensor *x = pln_kernel_arg(call, 0);
  const pln_attr *stop = pln_attrs_find(call->engine, call->attrs, "stopwords");
  pln_slice locale = pln_attrs_string(call->engine, call->attrs, "locale", "");
  *n = (normalizer){.call = call, .x = x};
  n->stop = stop && stop->kind == PLN_ATTR_STRINGS ? stop : NULL;
  n->exact = pln_kernel_int(call, "is_case_sensitive", 0) != 0;
  if (pln_kernel_string_is(call, action, "NONE", "LOWER"))
    n->change = LOWER;
  else if (pln_kernel_string_is(call, action, "NONE", "UPPER"))
    n->change = UPPER;
  else if (!pln_kernel_string_is(call, action, "NONE", "NONE"))
    return pln_kernel_refuse(call, "%s is not LOWER, UPPER or NONE", action);
  if (x->dtype != PLN_STRING)
    return pln_kernel_no_dtype(call, (pln_dtype)x->dtype);
  if (x->count == 0 || (x->rank != 1 && (x->rank != 2 || x->dims[0] != 1)))
    return pln_kernel_refuse(call, "the strings must be one row");
  if (changes_letters(locale))
    return pln_kernel_refuse(call, "locale %.*s is unknown",
                             locale.size < 20 ? (int)locale.size : 20,
                             locale.data);
  return PLN_OK;
}

static pln_status normalize(const normalizer *n, pln_string_builder *texts) {
  const pln_slice *x = n->x->data;
  for (size_t i = 0; i < n->x->count; i++) {
    PLN_TRY(pln_poll_round(n->call->engine, i));
    if (is_stop_word(n, x[i]))
      continue;
    PLN_TRY(add_changed(n, texts, x[i]));
    pln_string_builder_next(texts);
  }
  if (texts->ended ==
      0) /* if no string is left, the result is one empty string */
    pln_string_builder_next(texts);
  int64_t dims[2] = {1, (int64_t)texts->ended};
  return pln_string_builder_result(texts, n->call, n->x->rank,
                                   n->x->rank == 1 ? dims + 1 : dims);
}

pln_status pln_kernel_string_normalizer(pln_kernel_call *call) {
  normalizer n;
  pln_string_builder texts;
  PLN_TRY(read_normalizer(call, &n));
  n.locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  if (!n.locale)
    return pln_kernel_refuse(call, "the C library has no locale C.UTF-8");
  pln_status status =
      pln_string_builder_begin(call->engine, n.x->count, &texts);
  if (status == PLN_OK) {
    status = normalize(&n, &texts);
    pln_string_builder_end(&texts);
  }
  freelocale(n.locale);
  return status;
}
