/* test_einsum.c: sums of products: small ones computed by hand, equations of
 * every form and what is refused, as tables (op_table.h); then ones of many
 * letters beside the plain sum over all of them. */

#include "oom.h"

#include "op_table.h"

#define SIX "float32 2x3: 1 2 3 4 5 6"
#define SQUARE "float32 2x2: 1 2 3 4"

/* ------------------------------------------------------------------- tables */

static void contracts(void) {
  static const row rows[] = {
      {"einsum",
       "equation=ij,jk->ik",
       {SIX, "float32 3x2: 1 0 0 1 1 1"},
       "float32 2x2: 4 5 10 11",
       0},
      {"einsum",
       "equation=ij,jk->ki",
       {SIX, "float32 3x2: 1 0 0 1 1 1"},
       "float32 2x2: 4 10 5 11",
       0},
      {"einsum",
       "equation=ij,kj",
       {SIX, "float32 1x3: 1 1 1"},
       "float32 2x1: 6 15",
       0},
      {"einsum",
       "equation=i,j->ji",
       {"float32 2: 1 2", "float32 3: 1 10 100"},
       "float32 3x2: 1 2 10 20 100 200",
       0},
      {"einsum",
       "equation=bij,bjk->bik",
       {"float64 2x1x2: 1 2 3 4", "float64 2x2x1: 1 10 100 1000"},
       "float64 2x1x1: 21 4300",
       0},
      {"einsum",
       "equation=ibj,kbj->bik",
       {"float32 2x2x1: 1 2 3 4", "float32 1x2x1: 5 7"},
       "float32 2x2x1: 5 15 14 28",
       0},
      {"einsum",
       "equation=ij,ij->ij",
       {SQUARE, "float32 2x2: 1 10 100 1000"},
       "float32 2x2: 1 20 300 4000",
       0},
      {"einsum",
       "equation=ij,ji->",
       {SQUARE, "float32 2x2: 1 10 100 1000"},
       "float32: 4231",
       0},
      {"einsum",
       "equation=ij,kl,jk->il",
       {SQUARE, "float32 2x2: 1 0 0 1", "float32 2x2: 0 1 1 0"},
       "float32 2x2: 2 1 4 3",
       0},
      {"einsum",
       "equation=i,,i->",
       {"float32 2: 1 2", "float32: 10", "float32 2: 3 4"},
       "float32: 110",
       0},
      {"einsum",
       "equation=ij,kl->",
       {SQUARE, "float32 1x2: 1 2"},
       "float32: 30",
       0},
  };
  run_rows(ROWS(rows));
}

static void has_one_operand(void) {
  static const row rows[] = {
      {"einsum", "equation=ij->ji", {SIX}, "float32 3x2: 1 4 2 5 3 6", 0},
      {"einsum", "equation=ij->i", {SIX}, "float32 2: 6 15", 0},
      {"einsum", "equation=ij->j", {SIX}, "float32 3: 5 7 9", 0},
      {"einsum", "equation=ij->", {SIX}, "float32: 21", 0},
      {"einsum", "equation=ba", {SIX}, "float32 3x2: 1 4 2 5 3 6", 0},
      {"einsum", "equation=aB", {SIX}, "float32 3x2: 1 4 2 5 3 6", 0},
      {"einsum", "equation=ii->i", {SQUARE}, "float32 2: 1 4", 0},
      {"einsum", "equation=ii", {SQUARE}, "float32: 5", 0},
      {"einsum", "equation=", {"float32: 7"}, "float32: 7", 0},
      {"einsum", "equation=->", {"float32: 7"}, "float32: 7", 0},
      {"einsum",
       "equation=iji->ji",
       {"float32 2x1x2: 1 2 3 4"},
       "float32 1x2: 1 4",
       0},
  };
  run_rows(ROWS(rows));
}

static void broadcasts(void) {
  static const row rows[] = {
      {"einsum", "equation=...j->...", {SIX}, "float32 2: 6 15", 0},
      {"einsum", "equation=j...", {SIX}, "float32 3x2: 1 4 2 5 3 6", 0},
      {"einsum", "equation=...j->j", {SIX}, "float32 3: 5 7 9", 0},
      {"einsum",
       "equation=...,...",
       {SIX, "float32 3: 1 10 100"},
       "float32 2x3: 1 20 300 4 50 600",
       0},
      {"einsum",
       "equation=...ij,...jk->...ik",
       {"float32 2x1x1x2: 1 2 3 4", "float32 3x2x1: 1 0 0 1 1 1"},
       "float32 2x3x1x1: 1 2 3 3 4 7",
       0},
      {"einsum",
       "equation=ij,jk",
       {SIX, "float32 1x2: 1 2"},
       "float32 2x2: 6 12 15 30",
       0},
      {"einsum",
       "equation=i...,i->...i",
       {SQUARE, "float32 2: 1 10"},
       "float32 2x2: 1 30 2 40",
       0},
  };
  run_rows(ROWS(rows));
}

static void knows_dtypes(void) {
  static const row rows[] = {
      {"einsum",
       "equation=ij,j->i",
       {"float16 1x2: 1 0.5", "float16 2: 3 4"},
       "float16 1: 5",
       0},
      {"einsum",
       "equation=ij->ji",
       {"bfloat16 1x2: 1 0.5"},
       "bfloat16 2x1: 1 0.5",
       0},
      {"einsum",
       "equation=i,i",
       {"int8 2: 100 3", "int8 2: 2 1"},
       "int8: -53",
       0},
      {"einsum", "equation=i->", {"uint8 3: 200 50 7"}, "uint8: 1", 0},
      {"einsum",
       "equation=i,i->i",
       {"int16 2: 300 -2", "int16 2: 300 4"},
       "int16 2: 24464 -8",
       0},
      {"einsum",
       "equation=i,j->ij",
       {"int32 1: 65536", "int32 2: 65536 -1"},
       "int32 1x2: 0 -65536",
       0},
      {"einsum",
       "equation=i,i",
       {"uint64 1: 4294967296", "uint64 1: 4294967297"},
       "uint64: 4294967296",
       0},
      {"einsum",
       "equation=i->",
       {"bool 2: 1 1"},
       "refused: 'einsum' is not implemented for bool",
       0},
  };
  run_rows(ROWS(rows));
}

static void sums_nothing(void) {
  static const row rows[] = {
      {"einsum",
       "equation=ij,jk->ik",
       {"float32 2x0:", "float32 0x2:"},
       "float32 2x2: 0 0 0 0",
       0},
      {"einsum", "equation=ij->j", {"float32 2x0:"}, "float32 0:", 0},
      {"einsum", "equation=ij->", {"int32 0x2:"}, "int32: 0", 0},
      {"einsum",
       "equation=i,i->i",
       {"float32 0:", "float32 1: 7"},
       "float32 0:",
       0},
  };
  run_rows(ROWS(rows));
}

static void refuses(void) {
  static const row rows[] = {
      {"einsum",
       "equation=ij,jk",
       {SIX, SQUARE},
       "ill-typed: 'einsum', operand 1: expected extent 3, got 2",
       0},
      {"einsum",
       "equation=ij",
       {SIX, SIX},
       "ill-typed: 'einsum': equation has fewer terms than operands",
       0},
      {"einsum",
       "equation=ij,ij,",
       {SIX, SIX},
       "ill-typed: 'einsum': equation has more terms than operands",
       0},
      {"einsum",
       "equation=i",
       {SIX},
       "ill-typed: 'einsum', operand 0: rank 2 does not match the equation",
       0},
      {"einsum",
       "equation=ij->k",
       {SIX},
       "ill-typed: 'einsum': 'k' is in the result only",
       0},
      {"einsum",
       "equation=ij->ii",
       {SIX},
       "ill-typed: 'einsum': 'i' is in the result twice",
       0},
      {"einsum",
       "equation=ij->i->j",
       {SIX},
       "ill-typed: 'einsum': equation has an unexpected '-'",
       0},
      {"einsum",
       "equation=i.j",
       {SIX},
       "ill-typed: 'einsum': equation has an unexpected '.'",
       0},
      {"einsum",
       "equation=...i...",
       {SIX},
       "ill-typed: 'einsum': equation has an unexpected '.'",
       0},
      {"einsum",
       "equation="
       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
       {SIX},
       "ill-typed: 'einsum': equation has a term of more than 64 letters",
       0},
  };
  run_rows(ROWS(rows));
}

/* ---------------------------------------------------------- the plain sum */

enum { MOST = 4, EXTENT = 3 };

/* Letters a to f of EXTENT elements each: every term's own elements are 1, 2,
 * 3, ... modulo 7. Sums products over all values of all letters. */
typedef struct sum {
  uint32_t n;
  const char *terms[MOST]; /* the last is the result's */
  pln_tensor *tensors[MOST];
} sum;

static size_t offset_of(const char *term, const int *at) {
  size_t offset = 0;
  for (; *term; term++)
    offset = offset * EXTENT + (size_t)at[*term - 'a'];
  return offset;
}

/* Steps through the values of the six letters. */
static bool advance(int *at) {
  for (int i = 6; i-- > 0; at[i] = 0)
    if (++at[i] < EXTENT)
      return true;
  return false;
}

static bool names(const sum *s, int letter) {
  for (uint32_t i = 0; i < s->n; i++)
    if (strchr(s->terms[i], 'a' + letter))
      return true;
  return false;
}

static void sum_plainly(const sum *s, double *out) {
  int at[6] = {0};
  do {
    double product = 1;
    for (int i = 0; i < 6; i++) /* a letter nobody names counts once */
      product *= at[i] == 0 || names(s, i);
    for (uint32_t i = 0; i + 1 < s->n; i++)
      product *=
          ((const float *)s->tensors[i]->data)[offset_of(s->terms[i], at)];
    out[offset_of(s->terms[s->n - 1], at)] += product;
  } while (advance(at));
}

static pln_tensor *counted(const char *term) {
  int64_t dims[8];
  uint32_t rank = (uint32_t)strlen(term);
  pln_tensor *t;
  for (uint32_t i = 0; i < rank; i++)
    dims[i] = EXTENT;
  CHECK_OK(pln_tensor_new(engine, PLN_FLOAT32, rank, dims, &t));
  float *data = pln_tensor_writable(t);
  for (size_t i = 0; i < t->count; i++)
    data[i] = (float)((i + rank) % 7) - 2;
  return t;
}

static pln_attrs equation_of(const sum *s) {
  char text[64] = "";
  pln_attr a = {.kind = PLN_ATTR_STRING};
  pln_attrs out = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    strcat(text, i == 0 ? "" : i + 1 < s->n ? " , " : "->");
    strcat(text, s->terms[i]);
  }
  a.v.s = pln_text(text);
  CHECK_OK(pln_symbol_intern(engine, pln_text("equation"), &a.name));
  CHECK_OK(pln_attrs_make(engine, 1, &a, &out));
  return out;
}

static void check_sum(sum *s) {
  pln_ref args[MOST], node;
  double want[EXTENT * EXTENT * EXTENT * EXTENT] = {0};
  pln_tensor *got;
  begin();
  for (uint32_t i = 0; i + 1 < s->n; i++) {
    s->tensors[i] = counted(s->terms[i]);
    CHECK_OK(pln_build_constant(builder, s->tensors[i], &args[i]));
  }
  CHECK_OK(pln_build_call(builder, PLN_OP_EINSUM, equation_of(s), 0, s->n - 1,
                          args, &node));
  CHECK_OK(pln_eval_call(pln_builder_graph(builder), node, &got));
  sum_plainly(s, want);
  for (size_t i = 0; i < got->count; i++)
    CHECK(((const float *)got->data)[i] == (float)want[i]);
  pln_tensor_release(got);
  for (uint32_t i = 0; i + 1 < s->n; i++)
    pln_tensor_release(s->tensors[i]);
  end();
}

static void agrees_with_the_plain_sum(void) {
  static const sum sums[] = {
      {3, {"abcd", "cdef", "abef"}, {0}},
      {3, {"abcd", "dcef", "feba"}, {0}},
      {3, {"abcd", "aebd", "abce"}, {0}},
      {3, {"abcd", "aebd", "caeb"}, {0}},
      {3, {"abcd", "cbef", "ae"}, {0}},
      {3, {"aabc", "cbd", "da"}, {0}},
      {3, {"abcd", "abcd", "dcba"}, {0}},
      {3, {"abc", "def", "f"}, {0}},
      {4, {"ab", "cd", "bc", "da"}, {0}},
      {4, {"abc", "cde", "eaf", "bdf"}, {0}},
      {4, {"abc", "abd", "abe", "bcde"}, {0}},
      {2, {"abcb", "ca"}, {0}},
      {2, {"abcd", "cadb"}, {0}},
  };
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    sum s = sums[i];
    check_sum(&s);
  }
}

/* ------------------------------------------------------------------- memory */

static pln_status make(pln_engine *e, void *ud) {
  static const int64_t dims[3] = {2, 3, 4};
  pln_builder *b = NULL;
  pln_tensor *t = NULL, *got = NULL;
  pln_ref args[3], node;
  pln_attr a = {.kind = PLN_ATTR_STRING, .v.s = pln_text(ud)};
  pln_attrs attrs;
  pln_status status = pln_builder_new(e, &b);
  if (status == PLN_OK)
    status = pln_symbol_intern(e, pln_text("equation"), &a.name);
  if (status == PLN_OK)
    status = pln_attrs_make(e, 1, &a, &attrs);
  if (status == PLN_OK)
    status = pln_tensor_new(e, PLN_FLOAT16, 3, dims, &t);
  for (int i = 0; i < 3 && status == PLN_OK; i++)
    status = pln_build_constant(b, t, &args[i]);
  if (status == PLN_OK)
    status = pln_build_call(b, PLN_OP_EINSUM, attrs, 0, 3, args, &node);
  if (status == PLN_OK)
    status = pln_eval_call(pln_builder_graph(b), node, &got);
  pln_tensor_release(got);
  pln_tensor_release(t);
  pln_builder_free(b);
  return status;
}

static void hears_of_memory(void) {
  char equation[] = "abc,abd,abe->eda";
  oom_sweep(make, equation);
}

static const check_test tests[] = {
    {"contractions by hand", contracts},
    {"one operand", has_one_operand},
    {"axes that broadcast", broadcasts},
    {"halves and integers", knows_dtypes},
    {"empty axes", sums_nothing},
    {"equations that are refused", refuses},
    {"many letters agree with the plain sum", agrees_with_the_plain_sum},
    {"memory that runs out is heard of", hears_of_memory},
};
CHECK_MAIN(tests)
