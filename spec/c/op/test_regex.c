/* test_regex.c: regex_full_match: which strings a pattern matches, and which
 * texts are no patterns. */

#include "oom.h"

#include "op_table.h"

/* A pattern, strings that match as a whole, strings that do not; split at
 * "|". NULL: the pattern is refused, and `yes` is why. */
typedef struct expression {
  const char *pattern, *yes, *no;
} expression;

static pln_status match(pln_engine *e, const char *pattern, const char *text,
                        size_t size, bool *out) {
  pln_slice word = {text, size};
  pln_tensor *x = NULL, *result = NULL;
  pln_attr a = {.kind = PLN_ATTR_STRING, .v.s = pln_text(pattern)};
  pln_attrs attrs;
  PLN_TRY(pln_symbol_intern(e, pln_text("pattern"), &a.name));
  PLN_TRY(pln_attrs_make(e, 1, &a, &attrs));
  PLN_TRY(
      pln_tensor_from_bytes(e, PLN_STRING, 0, NULL, &word, sizeof word, &x));
  const pln_tensor *args[1] = {x};
  pln_kernel_call call = {.engine = e,
                          .op = pln_op_find(e, pln_text("regex_full_match")),
                          .attrs = attrs,
                          .n_args = 1,
                          .args = args,
                          .n_results = 1,
                          .results = &result,
                          .folding = true}; /* the reason alone */
  pln_status status = pln_op_row(e, call.op)->kernel(&call);
  if (status == PLN_OK)
    *out = *(const uint8_t *)result->data != 0;
  pln_tensor_release(result);
  pln_tensor_release(x);
  return status;
}

static void try_all(const char *pattern, const char *texts, bool want) {
  for (const char *s = texts;; s++) {
    size_t n = strcspn(s, "|");
    bool got = !want;
    CHECK_OK(match(engine, pattern, s, n, &got));
    if (!CHECK(got == want))
      printf("# %s %s %.*s\n", pattern, want ? "does not match" : "matches",
             (int)n, s);
    s += n;
    if (!*s)
      break;
  }
}

static void try_expressions(size_t n, const expression *list) {
  begin();
  for (size_t i = 0; i < n; i++) {
    const expression *e = &list[i];
    bool got;
    if (e->no) {
      try_all(e->pattern, e->yes, true);
      try_all(e->pattern, e->no, false);
      continue;
    }
    CHECK_STATUS(match(engine, e->pattern, "", 0, &got), PLN_ERR_UNSUPPORTED);
    size_t last = pln_diag_count(engine);
    check_str(last ? pln_diag_at(engine, last - 1)->message : "", e->yes,
              __FILE__, __LINE__, e->pattern);
  }
  end();
}

static void characters(void) {
  static const expression list[] = {
      {"", "", "a"},
      {"abc", "abc", "ab|abcd|"},
      {".", "a|\xc3\xa9|\xf0\x9f\x98\x80", "|ab|\n"},
      {"(?s).", "\n|a", ""},
      {"[a-c]", "a|b|c", "d|A|"},
      {"[^a-c]", "d|\n|\xc3\xa9", "a|b"},
      {"[]a]", "]|a", "b"},
      {"[a-]", "a|-", "b"},
      {"[\\d_]", "0|9|_", "a"},
      {"[[:alpha:]\\-]", "a|Z|-", "1"},
      {"[[:^alpha:]]", "1|\xc3\xa9", "a"},
      {"\\d\\D\\w\\W\\s\\S", "1a_- x|9.9\xc3\xa9\tx", "aa_- x"},
      {"\\x41\\x{e9}\\101\\n\\.\\_",
       "A\xc3\xa9"
       "A\n._",
       "A"},
      {"\\Qa.b*\\E*", "a.b*|a.b|a.b**", "a.b*a"},
      {"{a{1,b}", "{a{1,b}", "{a"},
      {"[\xc3\xa0-\xc3\xbf]+", "\xc3\xa9\xc3\xa8", "e"},
  };
  try_expressions(sizeof list / sizeof *list, list);
}

static void repeated(void) {
  static const expression list[] = {
      {"a*", "|a|aaaa", "b|ab"},
      {"a+?", "a|aaaa", "|b"},
      {"a?b??", "|a|ab|b", "ba|aa"},
      {"(ab){2}", "abab", "ab|ababab|"},
      {"(ab){2,}", "abab|ababab", "ab|aba"},
      {"a{1,3}", "a|aa|aaa", "|aaaa"},
      {"a{0,2}b", "b|ab|aab", "aaab"},
      {"xa{0}y", "xy", "xay"},
      {"(a|b*)*", "|a|abba|bbb", "c"},
      {"(a*)*b", "b|aab", "a"},
      {"(|a)+", "|a|aa", "b"},
      {"(a{2}|b{1,2}c){2}", "aaaa|aabc|bbcaa", "aabb|aab"},
      {"((a{0,2}b){1,2}){2}", "bb|aabab|bbbb", "b|aaab|bbbbb"},
  };
  try_expressions(sizeof list / sizeof *list, list);
}

static void grouped(void) {
  static const expression list[] = {
      {"a|bc|", "a|bc|", "abc|b"},
      {"x(?:a|b|cd)y", "xay|xby|xcdy", "xy|xacdy"},
      {"(?P<n>a)(?<m>b)", "ab", "a"},
      {"(?i)a\xc3\x89k",
       "A\xc3\xa9"
       "K|a\xc3\xa9\xe2\x84\xaa",
       "ab"},
      {"(?i:a)b", "Ab|ab", "aB"},
      {"a(?i)b|c", "aB|ab|C", "AB"},
      {"((?i)a)b", "Ab", "AB"},
      {"(?i)(?-i)a", "a", "A"},
      {"(?i)[^a]", "b", "a|A"},
      {"(?i)\\W", "-", "k"},
      {"^a$", "a", "a\n"},
      {"(?m)a$\n^b", "a\nb", "ab"},
      {"\\Aa\\z", "a", "b"},
      {"a\\b b\\B.", "a bc", "a b-"},
      {"\\w+@\\w+\\.(com|org)", "x_1@y.com", "x@y.net|@y.com"},
  };
  try_expressions(sizeof list / sizeof *list, list);
}

static void refused(void) {
#define NO "'regex_full_match': pattern, byte "
  static const expression list[] = {
      {"(a", NO "2: missing closing parenthesis", NULL},
      {"a)", NO "1: unmatched closing parenthesis", NULL},
      {"[a", NO "2: missing terminating ] for character class", NULL},
      {"[z-a]", NO "3: range out of order in character class", NULL},
      {"[[:what:]]", NO "3: unknown POSIX class name", NULL},
      {"*a", NO "0: quantifier does not follow a repeatable item", NULL},
      {"a{3,2}", NO "5: numbers out of order in {} quantifier", NULL},
      {"((a{1000}){1000}){1000}", NO "23: regular expression is too large",
       NULL},
      {"\\", NO "1: \\ at end of pattern", NULL},
      {"\\C", NO "2: using \\C is disabled by the application", NULL},
      {"a\xff", NO "1: UTF-8 error: illegal byte (0xfe or 0xff)", NULL},
  };
#undef NO
  try_expressions(sizeof list / sizeof *list, list);
}

/* Characters that classes of RE2 do not take, and those of PCRE2 do. */
static void spaces(void) {
  bool got;
  begin();
  CHECK_STATUS(match(engine, "a\\s", "a\v", 2, &got), PLN_ERR_UNSUPPORTED);
  CHECK_STATUS(match(engine, "(?i)\\W", "\xe2\x84\xaa", 3, &got),
               PLN_ERR_UNSUPPORTED);
  CHECK_OK(match(engine, "\\\\s", "\\s", 2, &got));
  CHECK(got);
  end();
}

static void strings(void) {
  static const row rows[] = {
      {"regex_full_match",
       "pattern=a.",
       {"string 2x2: ab ~ c a_"},
       "bool 2x2: 1 0 0 1",
       0},
      {"regex_full_match", "pattern=a", {"string 0:"}, "bool 0:", 0},
      {"regex_full_match",
       "pattern=.",
       {"string 1: \xc3"},
       "refused: 'regex_full_match': a string is not valid UTF-8",
       0},
      {"regex_full_match",
       "pattern=(a|aa)+[bc]",
       {"string 1: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
       "refused: 'regex_full_match': a match takes too long",
       0},
      {"regex_full_match",
       "pattern=a",
       {"int64 1: 1"},
       "refused: 'regex_full_match' is not implemented for int64",
       0},
  };
  run_rows(ROWS(rows));
}

static pln_status match_often(pln_engine *e, void *ud) {
  bool got;
  (void)ud;
  return match(e, "(?i)((a|[b-d\\W])+x{2,5}){3}|(?:y\\b)*", "abx", 3, &got);
}

static void hears_of_memory(void) {
  oom_sweep(match_often, NULL);
}

static const check_test tests[] = {
    {"characters and classes", characters},
    {"repetitions", repeated},
    {"groups, flags and assertions", grouped},
    {"what is no pattern", refused},
    {"what RE2 and PCRE2 read differently", spaces},
    {"tensors of strings", strings},
    {"memory that runs out is heard of", hears_of_memory},
};
CHECK_MAIN(tests)
