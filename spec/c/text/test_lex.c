/* test_lex.c: tokens of Relay text. */

#include <stdlib.h>
#include <time.h>

#include "check.h"
#include "ir/relay/parse/lex.h"

/* The kinds and texts of all tokens: "%x ( 1f32 )". */
static const char *tokens(const char *text) {
  static char out[4096];
  pln_lexer x;
  pln_token t;
  size_t n = 0;
  out[0] = 0;
  pln_lex_begin(&x, pln_text(text));
  for (pln_lex_next(&x, &t); t.kind != PLN_T_END; pln_lex_next(&x, &t))
    n += (size_t)snprintf(out + n, sizeof out - n, "%s%d<%.*s|%.*s>",
                          n ? " " : "", t.kind, (int)t.text.size, t.text.data,
                          (int)t.suffix.size, t.suffix.data);
  return out;
}

static pln_token only(const char *text) {
  pln_lexer x;
  pln_token t, end;
  pln_lex_begin(&x, pln_text(text));
  pln_lex_next(&x, &t);
  pln_lex_next(&x, &end);
  CHECK_EQ_INT(end.kind, PLN_T_END);
  return t;
}

static void check_text(const char *text, pln_token_kind kind,
                       const char *wanted, const char *suffix) {
  pln_token t = only(text);
  CHECK_EQ_INT(t.kind, kind);
  CHECK(pln_slice_is(t.text, wanted));
  CHECK(pln_slice_is(t.suffix, suffix));
}

static void names(void) {
  check_text("nn.conv2d", PLN_T_NAME, "nn.conv2d", "");
  check_text("ai.onnx.ml::Scaler", PLN_T_NAME, "ai.onnx.ml::Scaler", "");
  check_text("_", PLN_T_NAME, "_", "");
  check_text("%x/y", PLN_T_LOCAL, "x/y", "");
  check_text("%\"a b\"", PLN_T_LOCAL, "a b", "");
  check_text("@main", PLN_T_GLOBAL, "main", "");
  check_text("%12", PLN_T_TEMP, "12", "");
  check_text("%12a", PLN_T_LOCAL, "12a", "");
  check_text("ref_read", PLN_T_REF_READ, "ref_read", "");
  check_text("ref_ready", PLN_T_NAME, "ref_ready", "");
  check_text("True", PLN_T_TRUE, "True", "");
}

static void numbers(void) {
  check_text("1", PLN_T_NUMBER, "1", "");
  check_text("1i64", PLN_T_NUMBER, "1", "i64");
  check_text("1f", PLN_T_NUMBER, "1", "f");
  check_text("1.5e-3f16", PLN_T_NUMBER, "1.5e-3", "f16");
  check_text("2e8f", PLN_T_NUMBER, "2e8", "f");
  check_text("1ebf16", PLN_T_NUMBER, "1", "ebf16");
  check_text("1.f", PLN_T_NUMBER, "1.", "f");
}

static void fields(void) {
  pln_lexer x;
  pln_token t;
  pln_lex_begin(&x, pln_text("%0.1.2"));
  uint8_t kinds[] = {PLN_T_TEMP, PLN_T_DOT,    PLN_T_NUMBER,
                     PLN_T_DOT,  PLN_T_NUMBER, PLN_T_END};
  for (size_t i = 0; i < PLN_COUNT(kinds); i++) {
    pln_lex_next(&x, &t);
    CHECK_EQ_INT(t.kind, kinds[i]);
  }
}

static void strings(void) {
  check_text("\"a b\"", PLN_T_STRING, "a b", "");
  pln_token t = only("\"a\\\"b\"");
  CHECK(t.escaped && pln_slice_is(t.text, "a\\\"b"));
  t = only("\"open");
  CHECK_EQ_INT(t.kind, PLN_T_BAD);
  CHECK_STR(t.problem, "this string is not closed on its line");
}

static void signs(void) {
  char wanted[64];
  snprintf(wanted, sizeof wanted, "%d<|> %d<|> %d<|> %d<|> %d<|> %d<|>",
           PLN_T_ARROW, PLN_T_DARROW, PLN_T_LESS_EQUAL, PLN_T_EQUAL,
           PLN_T_ASSIGN, PLN_T_NOT_EQUAL);
  CHECK_STR(tokens("-> => <= == = !="), wanted);
  snprintf(wanted, sizeof wanted, "%d<|> %d<|> %d<a|>", PLN_T_MINUS,
           PLN_T_MINUS, PLN_T_NAME);
  CHECK_STR(tokens("--a"), wanted);
}

/* In a type alone, '/', '//' and '%' stand between dims. */
static void types_alone(void) {
  static const uint8_t kinds[] = {PLN_T_NAME,   PLN_T_SLASH,  PLN_T_NAME,
                                  PLN_T_FLOOR,  PLN_T_NUMBER, PLN_T_PERCENT,
                                  PLN_T_NUMBER, PLN_T_END};
  pln_lexer x;
  pln_token t;
  pln_lex_begin(&x, pln_text("N/M//2%3"));
  x.type_alone = true;
  for (size_t i = 0; i < PLN_COUNT(kinds); i++) {
    pln_lex_next(&x, &t);
    CHECK_EQ_INT(t.kind, kinds[i]);
  }
}

static void pragmas(void) {
  check_text("#[version = \"0.0.5\"]", PLN_T_VERSION, "0.0.5", "");
  check_text("#[metadata]", PLN_T_METADATA, "", "");
  CHECK_EQ_INT(only("#[nothing]").kind, PLN_T_BAD);
  CHECK_EQ_INT(only("#[version = \"0.0.5\"").kind, PLN_T_BAD);
}

static void comments(void) {
  check_text("// a\n/* b /* c */ */ x // d", PLN_T_NAME, "x", "");
  check_text("/**/ x /*/*/**/*/*/", PLN_T_NAME, "x", "");
  CHECK_EQ_INT(only("/* /* */").kind, PLN_T_BAD);
  CHECK_EQ_INT(only("/*/").kind, PLN_T_BAD);
}

static void rows(void) {
  pln_lexer x;
  pln_token t;
  pln_lex_begin(&x, pln_text("a\r\n  /* \n */ b\n\nc"));
  uint32_t places[][2] = {{1, 1}, {3, 5}, {5, 1}};
  for (size_t i = 0; i < PLN_COUNT(places); i++) {
    pln_lex_next(&x, &t);
    CHECK_EQ_INT(t.row, places[i][0]);
    CHECK_EQ_INT(t.column, places[i][1]);
  }
}

static void notes(void) {
  pln_lexer x;
  pln_token t;
  pln_lex_begin(&x, pln_text("a /* ty=int32 span=from here:12:345 */ ; "
                             "b /* ty=Tensor[(4), float32] */ ; "
                             "/* span=a::b_0.x:0:0 */ /* span=a:9:99999999999 "
                             "*/ ;"));
  pln_lex_next(&x, &t);
  CHECK(!x.note.source.data);
  pln_lex_next(&x, &t);
  CHECK(pln_slice_is(x.note.source, "from here"));
  CHECK_EQ_INT(x.note.row, 12);
  CHECK_EQ_INT(x.note.column, 345);
  pln_lex_next(&x, &t);
  CHECK(!x.note.source.data);
  pln_lex_next(&x, &t);
  CHECK(!x.note.source.data);
  pln_lex_next(&x, &t);
  CHECK(pln_slice_is(x.note.source, "a::b_0.x"));
  CHECK_EQ_INT(x.note.row, 0);
}

/* Every byte is a token, or in one; nothing is read past the end. */
static void any_bytes(void) {
  uint32_t state = 7;
  for (int round = 0; round < 2000; round++) {
    size_t size = (size_t)(round % 61) + 1;
    char *text = malloc(size);
    REQUIRE(text);
    for (size_t i = 0; i < size; i++) {
      state = state * 1664525u + 1013904223u;
      text[i] = round % 2 ? "%@\"#/*.:-=>\\\n\r19ex[]~"[(state >> 24) % 22]
                          : (char)(state >> 24);
    }
    pln_lexer x;
    pln_token t;
    size_t steps = 0;
    pln_lex_begin(&x, (pln_slice){text, size});
    do
      pln_lex_next(&x, &t);
    while (t.kind != PLN_T_END && ++steps <= size);
    CHECK(steps <= size);
    free(text);
  }
}

static const check_test tests[] = {
    {"names", names},
    {"numbers and their suffixes", numbers},
    {"numbers of fields", fields},
    {"strings", strings},
    {"signs", signs},
    {"signs in a type alone", types_alone},
    {"the version and the metadata's head", pragmas},
    {"comments nest", comments},
    {"rows and columns", rows},
    {"places told by comments", notes},
    {"any bytes are cut into tokens", any_bytes},
};

CHECK_MAIN(tests)
