/* test_strings.c: operators on strings, as tables (op_table.h). */

#include "oom.h"

#include "op_table.h"

static void joined(void) {
  static const row rows[] = {
      {"string_concat",
       "",
       {"string 3: a ~ c", "string 3: x y ~"},
       "string 3: ax y c",
       0},
      {"string_concat",
       "",
       {"string 2x1: a b", "string 3: 1 2 3"},
       "string 2x3: a1 a2 a3 b1 b2 b3",
       0},
      {"string_concat", "", {"string: a", "string: b"}, "string: ab", 0},
      {"string_concat", "", {"string 1: a", "string 0x1:"}, "string 0x1:", 0},
      {"string_concat",
       "",
       {"string 2: a b", "string 3: a b c"},
       "ill-typed: 'string_concat', operand 1: extents 2 and 3 do not "
       "broadcast",
       0},
  };
  run_rows(ROWS(rows));
}

static void cut(void) {
  static const row rows[] = {
      {"string_split",
       "delimiter=;",
       {"string 3: a;b;;c; ; ab"},
       "string 3x5: a b ~ c ~ ~ ~ ~ ~ ~ ab ~ ~ ~ ~ | int64 3: 5 2 1",
       2},
      {"string_split",
       "delimiter=:: maxsplit=1",
       {"string 2: a::b:::c :a"},
       "string 2x2: a b:::c :a ~ | int64 2: 2 1",
       2},
      {"string_split",
       "",
       {"string 2x1: _a__b\tc_ ~"},
       "string 2x1x3: a b c ~ ~ ~ | int64 2x1: 3 0",
       2},
      {"string_split",
       "maxsplit=1",
       {"string: _a__b__c_"},
       "string 2: a b__c | int64: 2",
       2},
      {"string_split",
       "maxsplit=0",
       {"string 2: _a_b_ _"},
       "string 2x1: a_b ~ | int64 2: 1 0",
       2},
      {"string_split",
       "",
       {"int64 1: 1"},
       "refused: 'string_split' is not implemented for int64",
       0},
      {"string_concat",
       "",
       {"float32 1: 1", "string 1: a"},
       "refused: 'string_concat': operands are no strings that fit each other",
       0},
      {"string_split", "", {"string 1: a_b"}, "string 1x2: a b", 0},
      {"string_split", "", {"string 2: ~ __"}, "string 2x0:", 0},
      {"string_split",
       "delimiter=;",
       {"string 0:"},
       "string 0x0: | int64 0:",
       2},
      {"string_split",
       "delimiter=; maxsplit=-3",
       {"string 1: ;"},
       "string 1x2: ~ ~",
       0},
  };
  run_rows(ROWS(rows));
}

static void normalized(void) {
  static const row rows[] = {
      {"string_normalizer",
       "",
       {"int64 1: 1"},
       "refused: 'string_normalizer' is not implemented for int64",
       0},
      {"string_normalizer", "", {"string 2: a B"}, "string 2: a B", 0},
      {"string_normalizer",
       "case_change_action=LOWER",
       {"string 4: \xc3\x89"
        "a \xce\xa3 \xf0\x90\x90\x80 A1_z"},
       "string 4: \xc3\xa9"
       "a \xcf\x83 \xf0\x90\x90\xa8 a1_z",
       0},
      {"string_normalizer",
       "case_change_action=UPPER",
       {"string 1x3: \xc3\xa9"
        "a \xc3\xbf \xe2\x82\xac"},
       "string 1x3: \xc3\x89"
       "A \xc5\xb8 \xe2\x82\xac",
       0},
      {"string_normalizer",
       "stopwords=[a,B]",
       {"string 5: A b c a B"},
       "string 1: c",
       0},
      {"string_normalizer",
       "stopwords=[a,B] is_case_sensitive=1 case_change_action=UPPER",
       {"string 5: A b c a B"},
       "string 3: A B C",
       0},
      {"string_normalizer",
       "stopwords=[\xc3\x89]",
       {"string 1x2: \xc3\xa9 \xc3\x89"},
       "string 1x1: ~",
       0},
      {"string_normalizer", "stopwords=[a]", {"string 1: a"}, "string 1: ~", 0},
      {"string_normalizer",
       "case_change_action=LOWER",
       {"string 1: \xc3"},
       "refused: 'string_normalizer': a string is not valid UTF-8",
       0},
      {"string_normalizer",
       "case_change_action=LOWER",
       {"string 1: \xed\xa0\x80"},
       "refused: 'string_normalizer': a string is not valid UTF-8",
       0},
      {"string_normalizer",
       "case_change_action=lower",
       {"string 1: a"},
       "refused: 'string_normalizer': case_change_action is not LOWER, UPPER "
       "or NONE",
       0},
      {"string_normalizer",
       "",
       {"string 2x1: a b"},
       "refused: 'string_normalizer': the strings must be one row",
       0},
      {"string_normalizer",
       "locale=tr_TR.UTF-8",
       {"string 1: a"},
       "refused: 'string_normalizer': locale tr_TR.UTF-8 is unknown",
       0},
  };
  run_rows(ROWS(rows));
}

#define POOL                                                  \
  "ngram_counts=0,2 ngram_indexes=2,0,1 pool_int64s=1,2,1,2 " \
  "min_gram_length=1 max_gram_length=2 max_skip_count=1 "
#define ITEMS "int64 6: 1 2 1 2 3 1"

static void counted(void) {
  static const row rows[] = {
      {"tf_idf_vectorizer", POOL "mode=TF", {ITEMS}, "float32 3: 2 2 3", 0},
      {"tf_idf_vectorizer",
       POOL "mode=IDF weights=2.,3.,5.",
       {"int64 3: 1 1 2"},
       "float32 3: 3 5 2",
       0},
      {"tf_idf_vectorizer",
       POOL "mode=TFIDF weights=2.,3.,5.",
       {ITEMS},
       "float32 3: 6 10 6",
       0},
      {"tf_idf_vectorizer",
       POOL "mode=TF",
       {"int32 2x2: 1 2 2 2"},
       "float32 2x3: 1 1 1 2 0 0",
       0},
      {"tf_idf_vectorizer",
       POOL "mode=TF",
       {"int64 0:"},
       "float32 3: 0 0 0",
       0},
      {"tf_idf_vectorizer",
       "ngram_counts=0,0 ngram_indexes=0,1 pool_strings=[a,b,b,a] "
       "min_gram_length=2 max_gram_length=9 max_skip_count=9 mode=TF",
       {"string 4: a b b a"},
       "float32 2: 2 2",
       0},
      /* Two of one place. */
      {"tf_idf_vectorizer",
       "ngram_counts=0, ngram_indexes=0,0 pool_int64s=4,5 min_gram_length=1 "
       "max_gram_length=1 max_skip_count=0 mode=TF",
       {"int64 3: 4 5 6"},
       "float32 1: 2",
       0},
      {"tf_idf_vectorizer",
       "ngram_counts=0, ngram_indexes=0,1 pool_int64s=4,4 mode=TF",
       {"int64 1: 4"},
       "refused: 'tf_idf_vectorizer': the pool has an n-gram twice",
       0},
      {"tf_idf_vectorizer",
       "ngram_counts=0,1 ngram_indexes=0,1 pool_int64s=4,5 mode=TF",
       {"int64 1: 4"},
       "refused: 'tf_idf_vectorizer': ngram_counts[1] is 1",
       0},
      {"tf_idf_vectorizer",
       "ngram_counts=0, ngram_indexes=0,1,2 pool_int64s=4,5 mode=TF",
       {"int64 1: 4"},
       "refused: 'tf_idf_vectorizer': the pool does not hold 3 n-grams",
       0},
      {"tf_idf_vectorizer",
       "ngram_counts=0, ngram_indexes=0, pool_int64s=4,5 mode=TF",
       {"int64 1: 4"},
       "refused: 'tf_idf_vectorizer': the pool does not hold 1 n-grams",
       0},
      {"tf_idf_vectorizer",
       "ngram_counts=0, ngram_indexes=0,1 pool_int64s=4,5 weights=1.,2.,3. "
       "mode=TF",
       {"int64 1: 4"},
       "refused: 'tf_idf_vectorizer': 3 weights of 2 n-grams",
       0},
      {"tf_idf_vectorizer",
       "ngram_counts=0, ngram_indexes=0,1 pool_int64s=4,5 mode=TF",
       {"string 1: a"},
       "refused: 'tf_idf_vectorizer' is not implemented for string",
       0},
      {"tf_idf_vectorizer",
       "ngram_counts=0, ngram_indexes=0,1 pool_int64s=4,5 mode=tf",
       {"int64 1: 4"},
       "refused: 'tf_idf_vectorizer': mode is not TF, IDF or TFIDF",
       0},
  };
  run_rows(ROWS(rows));
}

/* ----------------------------------------------------------------- failures
 */

static pln_status run_texts(pln_engine *e, void *name) {
  static const int64_t dims[1] = {3};
  static const pln_slice words[3] = {{"a b", 3}, {"", 0}, {"C", 1}};
  pln_tensor *x = NULL, *results[2] = {NULL};
  PLN_TRY(
      pln_tensor_from_bytes(e, PLN_STRING, 1, dims, words, sizeof words, &x));
  const pln_tensor *args[2] = {x, x};
  pln_kernel_call call = {.engine = e,
                          .op = pln_op_find(e, pln_text(name)),
                          .n_args = 2,
                          .args = args,
                          .n_results = 2,
                          .results = results};
  pln_status status = pln_op_row(e, call.op)->kernel(&call);
  for (int i = 0; i < 2; i++)
    pln_tensor_release(results[i]);
  pln_tensor_release(x);
  return status;
}

static void hears_of_memory(void) {
  char concat[] = "string_concat", split[] = "string_split";
  char normalizer[] = "string_normalizer";
  oom_sweep(run_texts, concat);
  oom_sweep(run_texts, split);
  oom_sweep(run_texts, normalizer);
}

static const check_test tests[] = {
    {"strings joined", joined},
    {"strings cut", cut},
    {"strings normalised", normalized},
    {"n-grams counted", counted},
    {"memory that runs out is heard of", hears_of_memory},
};
CHECK_MAIN(tests)
