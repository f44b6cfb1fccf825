/* type_text.c: reads a type as Relay writes it.
 *
 *   type   = "Tensor[" shape "," dtype "]" | dtype | "(" types ")" | "?" | "_"
 *          | "fn" [ "[" names "]" ] "(" types ")" "->" type
 *          | name "(" types ")" | Name [ "[" types "]" ]
 *   shape  = "*" | "(" dims ")"
 *   dim    = "?" | sums and products of integers and names
 *
 * where `name` is ref, seq, optional, map or sparse, and `Name` a type variable
 * in sight, else a data type: one that is written without arguments begins with
 * a capital. Nesting is limited, so that recursion is too. Called for the text
 * that scripts give. */

#include "lua/binding.h"

enum { MAX_DEPTH = 64, MAX_PARTS = 64, MAX_RANK = 64, MAX_VARS = 64 };

typedef struct reader {
  pln_engine *engine;
  pln_slice text;
  size_t at;
  int depth;
  /* Type variables in sight: those of the caller, then those of the functions
   * around. */
  uint32_t n_given, n_vars;
  const pln_type *given;
  pln_type vars[MAX_VARS];
} reader;

static pln_status read_type(reader *r, pln_type *out);
static pln_status read_sum(reader *r, pln_dim *out);

/* ------------------------------------------------------------------ tokens */

static pln_status fail(const reader *r, const char *wanted) {
  return pln_diag_error(r->engine, PLN_ERR_FORMAT, NULL,
                        "type '%.*s', column %zu: expected %s",
                        (int)(r->text.size < 200 ? r->text.size : 200),
                        r->text.data, r->at + 1, wanted);
}

static char peek(reader *r) {
  while (r->at < r->text.size && strchr(" \t\r\n", r->text.data[r->at]) &&
         r->text.data[r->at] != '\0')
    r->at++;
  return r->at < r->text.size ? r->text.data[r->at] : '\0';
}

static bool accept(reader *r, const char *token) {
  size_t n = strlen(token);
  peek(r);
  if (r->text.size - r->at < n || memcmp(r->text.data + r->at, token, n) != 0)
    return false;
  r->at += n;
  return true;
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '.' || c == ':';
}

/* A name: letters, digits, '_', '.', ':'; empty when there is none. */
static pln_slice word(reader *r) {
  peek(r);
  size_t start = r->at;
  while (r->at < r->text.size && is_word(r->text.data[r->at]))
    r->at++;
  return (pln_slice){r->text.data + start, r->at - start};
}

static pln_status expect(reader *r, const char *token, const char *wanted) {
  return accept(r, token) ? PLN_OK : fail(r, wanted);
}

static pln_status enter(reader *r) {
  if (++r->depth > MAX_DEPTH)
    return pln_diag_error(r->engine, PLN_ERR_LIMIT, NULL,
                          "a type nests deeper than %d levels", MAX_DEPTH);
  return PLN_OK;
}

/* -------------------------------------------------------------------- dims */

static pln_status read_integer(reader *r, pln_slice digits, pln_dim *out) {
  int64_t value = 0;
  for (size_t i = 0; i < digits.size; i++) {
    int digit = digits.data[i] - '0';
    if (digit < 0 || digit > 9 || value > (INT64_MAX - digit) / 10)
      return fail(r, "an integer below 2^63");
    value = value * 10 + digit;
  }
  *out = value;
  return PLN_OK;
}

static pln_status read_quoted(reader *r, pln_dim *out) {
  size_t start = r->at;
  while (r->at < r->text.size && r->text.data[r->at] != '"')
    r->at++;
  pln_slice name = {r->text.data + start, r->at - start};
  PLN_TRY(expect(r, "\"", "a closing quote"));
  return pln_dim_named(r->engine, name, out);
}

/* min(a, b), max(a, b): after the opening parenthesis */
static pln_status read_extreme(reader *r, pln_dim_op op, pln_dim *out) {
  pln_dim a, b;
  PLN_TRY(read_sum(r, &a));
  PLN_TRY(expect(r, ",", "','"));
  PLN_TRY(read_sum(r, &b));
  PLN_TRY(expect(r, ")", "')'"));
  return pln_dim_binary(r->engine, op, a, b, out);
}

static pln_status read_atom(reader *r, pln_dim *out) {
  if (accept(r, "?")) {
    *out = PLN_DIM_UNKNOWN;
    return PLN_OK;
  }
  if (accept(r, "\""))
    return read_quoted(r, out);
  if (accept(r, "(")) {
    PLN_TRY(read_sum(r, out));
    return expect(r, ")", "')'");
  }
  pln_slice name = word(r);
  if (name.size == 0)
    return fail(r, "a dim: an integer, '?' or a name");
  if (name.data[0] >= '0' && name.data[0] <= '9')
    return read_integer(r, name, out);
  bool is_min = pln_slice_is(name, "min");
  if ((is_min || pln_slice_is(name, "max")) && accept(r, "("))
    return read_extreme(r, is_min ? PLN_DIM_MIN : PLN_DIM_MAX, out);
  return pln_dim_named(r->engine, name, out);
}

static pln_status read_product(reader *r, pln_dim *out) {
  PLN_TRY(read_atom(r, out));
  for (;;) {
    pln_dim_op op;
    pln_dim right;
    if (accept(r, "*"))
      op = PLN_DIM_MUL;
    else if (accept(r, "//"))
      op = PLN_DIM_FLOORDIV;
    else if (accept(r, "/"))
      op = PLN_DIM_TRUNCDIV;
    else if (accept(r, "%"))
      op = PLN_DIM_FLOORMOD;
    else
      return PLN_OK;
    PLN_TRY(read_atom(r, &right));
    PLN_TRY(pln_dim_binary(r->engine, op, *out, right, out));
  }
}

static pln_status read_sum(reader *r, pln_dim *out) {
  PLN_TRY(enter(r));
  *out = 0;
  pln_dim_op op = accept(r, "-") ? PLN_DIM_SUB : PLN_DIM_ADD;
  for (;;) {
    pln_dim right;
    PLN_TRY(read_product(r, &right));
    PLN_TRY(pln_dim_binary(r->engine, op, *out, right, out));
    if (accept(r, "+"))
      op = PLN_DIM_ADD;
    else if (accept(r, "-"))
      op = PLN_DIM_SUB;
    else
      break;
  }
  r->depth--;
  return PLN_OK;
}

/* ------------------------------------------------------------------- types */

static pln_status read_dims(reader *r, pln_dim *dims, int32_t *rank) {
  *rank = 0;
  PLN_TRY(expect(r, "(", "'(' before the dims"));
  while (!accept(r, ")")) {
    if (*rank == MAX_RANK)
      return fail(r, "at most 64 dims");
    PLN_TRY(read_sum(r, &dims[*rank]));
    if (PLN_DIM_IS_CONST(dims[*rank]) && dims[*rank] < 0)
      return fail(r, "a dim that is not negative");
    ++*rank;
    if (!accept(r, ",") && peek(r) != ')')
      return fail(r, "',' or ')' after a dim");
  }
  return PLN_OK;
}

/* After "Tensor": "[shape, dtype]" */
static pln_status read_tensor(reader *r, pln_type *out) {
  pln_dim dims[MAX_RANK];
  int32_t rank = -1;
  pln_dtype dtype = PLN_DTYPE_NONE;
  uint32_t lanes = 1;
  PLN_TRY(expect(r, "[", "'[' after Tensor"));
  if (!accept(r, "*"))
    PLN_TRY(read_dims(r, dims, &rank));
  PLN_TRY(expect(r, ",", "',' and the dtype"));
  if (!accept(r, "?")) {
    dtype = pln_dtype_find_vector(word(r), &lanes);
    if (dtype == PLN_DTYPE_NONE)
      return fail(r, "a dtype, such as float32, before here");
  }
  PLN_TRY(expect(r, "]", "']'"));
  PLN_TRY(pln_type_tensor(r->engine, dtype, rank, dims, out));
  return lanes > 1 ? pln_type_with_lanes(r->engine, *out, lanes, out) : PLN_OK;
}

/* Types up to `close`, which is taken too. */
static pln_status read_types(reader *r, const char *close, pln_type *parts,
                             uint32_t *n) {
  *n = 0;
  while (!accept(r, close)) {
    if (*n == MAX_PARTS)
      return fail(r, "at most 64 parts");
    PLN_TRY(read_type(r, &parts[*n]));
    ++*n;
    if (!accept(r, ",") && peek(r) != *close)
      return fail(r, "',' or the end of the list");
  }
  return PLN_OK;
}

/* The innermost type variable of that name; 0 when there is none. */
static pln_type find_var(const reader *r, pln_slice name) {
  for (uint32_t i = r->n_vars + r->n_given; i-- > 0;) {
    pln_type var = i < r->n_given ? r->given[i] : r->vars[i - r->n_given];
    pln_symbol symbol = pln_type_symbol(r->engine, var);
    if (pln_slice_equal(pln_symbol_text(r->engine, symbol), name))
      return var;
  }
  return 0;
}

/* Variables of one name are equal, so that texts that are equal are equal
 * types; but not those inside of a function that has the name already. */
static pln_status read_var(reader *r) {
  pln_slice name = word(r);
  pln_symbol symbol;
  if (name.size == 0)
    return fail(r, "the name of a type parameter");
  if (r->n_vars == MAX_VARS)
    return fail(r, "at most 64 type parameters");
  bool known = find_var(r, name) != 0;
  PLN_TRY(pln_symbol_intern(r->engine, name, &symbol));
  pln_type *var = &r->vars[r->n_vars];
  if (known)
    PLN_TRY(pln_type_var(r->engine, symbol, PLN_TKIND_TYPE, var));
  else
    PLN_TRY(pln_type_make(r->engine, PLN_TYPE_VAR, symbol, 0, NULL, var));
  r->n_vars++;
  return PLN_OK;
}

static pln_status read_vars(reader *r) {
  if (!accept(r, "["))
    return PLN_OK;
  while (!accept(r, "]")) {
    PLN_TRY(read_var(r));
    if (!accept(r, ",") && peek(r) != ']')
      return fail(r, "',' or ']' after a type parameter");
  }
  return PLN_OK;
}

static pln_status read_function(reader *r, pln_type *out) {
  pln_type parts[MAX_PARTS];
  uint32_t n, outer = r->n_vars;
  pln_type ret;
  PLN_TRY(read_vars(r));
  PLN_TRY(expect(r, "(", "'(' after fn"));
  PLN_TRY(read_types(r, ")", parts, &n));
  PLN_TRY(expect(r, "->", "'->' and the result's type"));
  PLN_TRY(read_type(r, &ret));
  PLN_TRY(pln_type_func(r->engine, n, parts, ret, r->n_vars - outer,
                        r->vars + outer, 0, NULL, out));
  r->n_vars = outer;
  return PLN_OK;
}

/* A data type, with its arguments or without. */
static pln_status read_call(reader *r, pln_slice name, pln_type *out) {
  pln_type parts[MAX_PARTS];
  uint32_t n = 0;
  pln_symbol symbol;
  if (accept(r, "["))
    PLN_TRY(read_types(r, "]", parts, &n));
  PLN_TRY(pln_symbol_intern(r->engine, name, &symbol));
  return pln_type_make(r->engine, PLN_TYPE_CALL, symbol, n, parts, out);
}

/* The kinds written as name(parts), with how many parts each takes. */
static const struct {
  const char *name;
  pln_type_kind kind;
  uint32_t n;
} named[] = {
    {"ref", PLN_TYPE_REF, 1},           {"seq", PLN_TYPE_SEQUENCE, 1},
    {"optional", PLN_TYPE_OPTIONAL, 1}, {"map", PLN_TYPE_MAP, 2},
    {"sparse", PLN_TYPE_SPARSE, 1},
};

static pln_status read_named(reader *r, pln_slice name, pln_type *out) {
  for (size_t i = 0; i < PLN_COUNT(named); i++) {
    pln_type parts[MAX_PARTS];
    uint32_t n;
    if (!pln_slice_is(name, named[i].name))
      continue;
    PLN_TRY(expect(r, "(", "'('"));
    PLN_TRY(read_types(r, ")", parts, &n));
    if (n != named[i].n)
      return fail(r, "another number of parts before here");
    return pln_type_make(r->engine, named[i].kind, 0, n, parts, out);
  }
  uint32_t lanes;
  pln_dtype dtype = pln_dtype_find_vector(name, &lanes);
  bool capital = name.size > 0 && name.data[0] >= 'A' && name.data[0] <= 'Z';
  *out = find_var(r, name);
  if (*out)
    return PLN_OK;
  if (dtype == PLN_DTYPE_NONE && name.size > 0 && (capital || peek(r) == '['))
    return read_call(r, name, out);
  if (dtype == PLN_DTYPE_NONE)
    return fail(r, "a type, such as Tensor[(1, ?), float32], before here");
  PLN_TRY(pln_type_tensor(r->engine, dtype, 0, NULL, out));
  return lanes > 1 ? pln_type_with_lanes(r->engine, *out, lanes, out) : PLN_OK;
}

static pln_status read_plain(reader *r, pln_type *out) {
  pln_type parts[MAX_PARTS];
  uint32_t n;
  if (accept(r, "?")) {
    *out = 0;
    return PLN_OK;
  }
  if (accept(r, "(")) {
    PLN_TRY(read_types(r, ")", parts, &n));
    return pln_type_make(r->engine, PLN_TYPE_TUPLE, 0, n, parts, out);
  }
  pln_slice name = word(r);
  if (pln_slice_is(name, "_")) {
    *out = 0;
    return PLN_OK;
  }
  if (pln_slice_is(name, "Tensor"))
    return read_tensor(r, out);
  if (pln_slice_is(name, "fn"))
    return read_function(r, out);
  return read_named(r, name, out);
}

static pln_status read_type(reader *r, pln_type *out) {
  PLN_TRY(enter(r));
  PLN_TRY(read_plain(r, out));
  r->depth--;
  return PLN_OK;
}

pln_status pln_lua_parse_type(pln_engine *engine, pln_slice text,
                              uint32_t n_vars, const pln_type *vars,
                              pln_type *out) {
  reader r = {.engine = engine, .text = text, .n_given = n_vars, .given = vars};
  PLN_TRY(read_type(&r, out));
  if (peek(&r) != '\0' || r.at != text.size)
    return fail(&r, "the end");
  return PLN_OK;
}
