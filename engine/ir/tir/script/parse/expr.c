/* tir/script/parse/expr.c: parses expressions of TVMScript with a stack of open
 * brackets and operators, and a stack of values.
 *
 * Called by the statement parser. Operators are applied as soon as their
 * precedence allows; a bracket's items are kept until the line ends. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/source_text.h"
#include "ir/tir/script/parse/parse.h"

enum {
  BINARY,
  NEGATE,
  INVERT,
  NOT,
  IF, /* the condition of "x if condition else y" */
  ELSE,
  PAREN,
  CALL,
  LIST,
  DICT,
  INDEX,
  STAR /* before a group whose items stand here */
};

/* Precedences of operators; brackets have 0. */
enum {
  PREC_BRACKET,
  PREC_IF,
  PREC_OR,
  PREC_AND,
  PREC_NOT,
  PREC_COMPARE,
  PREC_BIT_OR,
  PREC_BIT_XOR,
  PREC_BIT_AND,
  PREC_SHIFT,
  PREC_ADD,
  PREC_MUL,
  PREC_UNARY
};

static pln_script_value value_at_token(const pln_script_parser *p) {
  const pln_script_token *t = &p->token;
  return (pln_script_value){.at = t->whole.data,
                            .size = (uint32_t)(t->whole.size & UINT32_MAX)};
}

static pln_status push_value(pln_script_parser *p,
                             const pln_script_value *value) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->values, &p->cap_values,
                       (size_t)p->n_values + 1, sizeof *p->values));
  p->values[p->n_values++] = *value;
  return PLN_OK;
}

static pln_status push_open(pln_script_parser *p, pln_script_open open) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->open, &p->cap_open,
                       (size_t)p->n_open + 1, sizeof *p->open));
  open.first = p->n_values;
  p->open[p->n_open++] = open;
  return PLN_OK;
}

static pln_script_value *top_value(pln_script_parser *p) {
  return &p->values[p->n_values - 1];
}

/* The innermost bracket; NULL: none since `base`. */
static pln_script_open *bracket(pln_script_parser *p, uint32_t base) {
  pln_script_open *o = p->n_open > base ? &p->open[p->n_open - 1] : NULL;
  return o && o->prec == PREC_BRACKET ? o : NULL;
}

pln_status pln_script_keep(pln_script_parser *p, uint32_t first,
                           pln_script_value *out) {
  uint32_t n = p->n_values - first;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->kept, &p->cap_kept,
                       (size_t)p->n_kept + n + 1, sizeof *p->kept));
  if (n > 0)
    memcpy(p->kept + p->n_kept, p->values + first, n * sizeof *p->kept);
  out->first = p->n_kept;
  out->n = n;
  p->n_kept += n;
  p->n_values = first;
  return PLN_OK;
}

/* ---------------------------------------------------------------- literals */

/* The digits without '_', copied into p->word with a zero behind them. */
static pln_status plain_digits(pln_script_parser *p, pln_slice *text) {
  p->word.size = 0;
  for (size_t i = 0; i < text->size; i++)
    if (text->data[i] != '_')
      PLN_TRY(pln_buffer_add(&p->word, text->data + i, 1));
  PLN_TRY(pln_buffer_add(&p->word, "", 1));
  *text = (pln_slice){p->word.data, p->word.size - 1};
  return PLN_OK;
}

/* 0x1F, 0b101, 0o17 */
static pln_status read_prefixed(pln_script_parser *p, bool negative,
                                pln_script_value *v) {
  pln_slice text = p->token.text;
  char *end, base = (char)(text.data[1] | 0x20);
  PLN_TRY(plain_digits(p, &text));
  errno = 0;
  unsigned long long number = strtoull(text.data + 2, &end,
                                       base == 'x'   ? 16
                                       : base == 'b' ? 2
                                                     : 8);
  if (text.size == 2 || *end)
    return pln_script_refuse(p, v, "this is no number");
  if (errno || number > INT64_MAX)
    return pln_script_refuse(p, v, "this integer does not fit in int64");
  v->v.i = negative ? -(int64_t)number : (int64_t)number;
  return PLN_OK;
}

static pln_status read_integer(pln_script_parser *p, bool negative,
                               pln_script_value *v) {
  pln_slice text = p->token.text;
  v->kind = PLN_V_INT;
  if (text.size > 1 && *text.data == '0' && (text.data[1] & 0x40))
    return read_prefixed(p, negative, v);
  if (memchr(text.data, '_', text.size))
    PLN_TRY(plain_digits(p, &text));
  if (!pln_text_digits(text, negative, &v->v.i))
    return pln_script_refuse(p, v, "this integer does not fit in int64");
  return PLN_OK;
}

/* strtod needs a terminated string. */
static pln_status read_float(pln_script_parser *p, bool negative,
                             pln_script_value *v) {
  pln_slice text = p->token.text;
  PLN_TRY(plain_digits(p, &text));
  v->kind = PLN_V_FLOAT;
  v->v.f = strtod(p->word.data, NULL);
  if (isinf(v->v.f))
    return pln_script_refuse(p, v, "this number does not fit in float64");
  v->v.f = negative ? -v->v.f : v->v.f;
  return PLN_OK;
}

static pln_status read_string(pln_script_parser *p, pln_script_value *v) {
  v->kind = PLN_V_STRING;
  v->v.s = p->token.text;
  if (!p->token.escaped)
    return PLN_OK;
  p->word.size = 0;
  PLN_TRY(pln_text_unescape(p->token.text, &p->word));
  char *copy = pln_arena_new(&p->arena, p->word.size + 1);
  if (!copy)
    return pln_nomem(p->engine);
  if (p->word.size > 0)
    memcpy(copy, p->word.data, p->word.size);
  v->v.s = (pln_slice){copy, p->word.size};
  return PLN_OK;
}

/* Adjacent strings are one. */
static pln_status join_string(pln_script_parser *p, pln_script_value *v) {
  pln_script_value next = value_at_token(p);
  PLN_TRY(read_string(p, &next));
  size_t first = v->v.s.size, size = first + next.v.s.size;
  char *copy = pln_arena_new(&p->arena, size + 1);
  if (!copy)
    return pln_nomem(p->engine);
  if (first > 0)
    memcpy(copy, v->v.s.data, first);
  if (size > first)
    memcpy(copy + first, next.v.s.data, size - first);
  v->v.s = (pln_slice){copy, size};
  v->size = (uint32_t)(next.at + next.size - v->at);
  return pln_script_next(p);
}

/* ------------------------------------------------------------------ lambdas */

/* Skips a lambda up to the comma or bracket after it. */
static pln_status skip_lambda(pln_script_parser *p) {
  uint32_t depth = 0;
  bool body = false;
  for (;;) {
    uint8_t kind = p->token.kind;
    bool closes =
        kind == PLN_S_RPAREN || kind == PLN_S_RBRACKET || kind == PLN_S_RBRACE;
    if (kind == PLN_S_END || kind == PLN_S_NEWLINE ||
        (depth == 0 && (closes || (body && kind == PLN_S_COMMA))))
      return PLN_OK;
    body = body || (depth == 0 && kind == PLN_S_COLON);
    depth +=
        kind == PLN_S_LPAREN || kind == PLN_S_LBRACKET || kind == PLN_S_LBRACE;
    depth -= closes;
    PLN_TRY(pln_script_next(p));
  }
}

static pln_status read_lambda(pln_script_parser *p, pln_script_value *v) {
  PLN_TRY(pln_script_next(p));
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->lambdas, &p->cap_lambdas,
                       (size_t)p->n_lambdas + 1, sizeof *p->lambdas));
  v->kind = PLN_V_LAMBDA;
  v->v.of.number = p->n_lambdas;
  p->lambdas[p->n_lambdas++] = (pln_script_lambda){p->lexer, p->token};
  return skip_lambda(p);
}

/* --------------------------------------------------------------- attributes
 */

/* Dotted names of T: "axis.spatial". */
static pln_status read_method(pln_script_parser *p, pln_script_value *v) {
  pln_slice name = p->token.text;
  if (pln_slice_is(name, "axis")) {
    PLN_TRY(pln_script_next(p));
    PLN_TRY(pln_script_expect(p, PLN_S_DOT));
    if (p->token.kind != PLN_S_NAME)
      return pln_script_expected(p, "a kind of axis");
    name.size = (size_t)(p->token.text.data + p->token.text.size - name.data);
  }
  v->size = (uint32_t)(name.data + name.size - v->at);
  return pln_script_resolve_method(p, name, v);
}

static pln_status read_function(pln_script_parser *p, pln_script_value *v) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(p->engine, p->token.text, &symbol));
  uint32_t known = pln_idmap_get(p->functions, symbol);
  if (!known)
    return pln_script_unknown(p, p->token.text, "function of the module", 0,
                              NULL);
  v->kind = PLN_V_FUNCTION;
  v->v.of.tag = symbol;
  v->v.of.type = p->known[known - 1].result;
  return PLN_OK;
}

static pln_status dtype_field(pln_script_parser *p, pln_script_value *v,
                              pln_type type) {
  char text[48];
  uint32_t lanes = pln_type_number(p->engine, type);
  int n = snprintf(text, sizeof text, lanes > 1 ? "%sx%u" : "%s",
                   pln_dtype_name(pln_type_dtype(p->engine, type)),
                   (unsigned)lanes);
  char *copy = pln_arena_new(&p->arena, sizeof text);
  if (!copy)
    return pln_nomem(p->engine);
  memcpy(copy, text, sizeof text);
  v->kind = PLN_V_STRING;
  v->v.s = (pln_slice){copy, (size_t)n};
  return PLN_OK;
}

/* x.astype("float32"), at the name. Ends at the bracket, so that nothing
 * recurses. */
static pln_status read_astype(pln_script_parser *p, pln_script_value *v) {
  pln_script_value type = {0};
  pln_type to;
  pln_ref ref;
  PLN_TRY(pln_script_next(p));
  PLN_TRY(pln_script_expect(p, PLN_S_LPAREN));
  if (p->token.kind == PLN_S_NAME && pln_slice_is(p->token.text, "dtype")) {
    PLN_TRY(pln_script_next(p));
    PLN_TRY(pln_script_expect(p, PLN_S_ASSIGN));
  }
  if (p->token.kind != PLN_S_STRING)
    return pln_script_expected(p, "a dtype");
  type = value_at_token(p);
  PLN_TRY(read_string(p, &type));
  PLN_TRY(pln_script_as_type(p, &type, &to));
  PLN_TRY(pln_script_ref(p, v, 0, &ref));
  PLN_TRY(pln_script_next(p));
  if (p->token.kind != PLN_S_RPAREN)
    return pln_script_expected(p, "')'");
  PLN_TRY(pln_script_cast(p, to, ref, &ref));
  pln_script_set_ref(v, ref);
  return PLN_OK;
}

static pln_status read_field(pln_script_parser *p, pln_script_value *v) {
  const pln_node *n = &p->b->graph->nodes[v->v.of.ref];
  const pln_ref *o = p->b->graph->operands + n->first;
  pln_slice name = p->token.text;
  if (pln_slice_is(name, "data"))
    pln_script_set_ref(v, o[0]);
  else if (pln_slice_is(name, "elem_offset"))
    pln_script_set_ref(v, o[n->count - 1]);
  else if (pln_slice_is(name, "strides"))
    v->kind = PLN_V_STRIDES;
  else if (pln_slice_is(name, "shape"))
    v->kind = PLN_V_SHAPE;
  else if (pln_slice_is(name, "dtype"))
    return dtype_field(p, v, n->type);
  else if (pln_slice_is(name, "vload") || pln_slice_is(name, "vstore"))
    v->kind = name.size == 5 ? PLN_V_VLOAD : PLN_V_VSTORE;
  else
    return pln_script_unknown(p, name, "field of a buffer", 7,
                              (const char *const[]){"data", "elem_offset",
                                                    "strides", "shape", "dtype",
                                                    "vload", "vstore"});
  return PLN_OK;
}

/* After a value and '.', at the name. */
static pln_status read_attribute(pln_script_parser *p) {
  pln_script_value *v = top_value(p);
  if (p->token.kind != PLN_S_NAME)
    return pln_script_expected(p, "a name");
  if (v->kind == PLN_V_ERROR)
    return PLN_ERR_FORMAT;
  pln_status status = PLN_OK;
  if (v->kind == PLN_V_BUFFER)
    status = read_field(p, v);
  else if (v->kind == PLN_V_PRODUCER)
    status = pln_script_producer(
        p,
        (pln_slice){
            v->at, (size_t)(p->token.whole.data + p->token.whole.size - v->at)},
        v);
  else if (v->kind == PLN_V_MODULE)
    status = v->v.of.number == 'M' ? read_function(p, v) : read_method(p, v);
  else if (pln_slice_is(p->token.text, "astype"))
    status = read_astype(p, v);
  else
    status = pln_script_refuse(p, v, "this value has no fields");
  PLN_TRY(status);
  v->size = (uint32_t)(p->token.whole.data + p->token.whole.size - v->at);
  return pln_script_next(p);
}

/* ---------------------------------------------------------------- operators */

static pln_status negate(pln_script_parser *p, pln_script_value *v) {
  pln_script_value minus = {.kind = PLN_V_INT, .v.i = -1, .at = v->at};
  pln_script_value value = *v;
  return pln_script_binary(p, PLN_PRIM_MUL, &value, &minus, v);
}

static pln_status apply_not(pln_script_parser *p, pln_script_value *v) {
  pln_ref ref;
  PLN_TRY(pln_script_ref(p, v, p->types[2], &ref));
  PLN_TRY(pln_script_push_ref(p, ref));
  PLN_TRY(pln_script_node(p, (pln_prim){.kind = PLN_PRIM_NOT}, p->n_refs - 1,
                          &ref));
  pln_script_set_ref(v, ref);
  return PLN_OK;
}

static pln_status invert(pln_script_parser *p, pln_script_value *v) {
  pln_script_value value = *v;
  if (v->kind != PLN_V_INT)
    return pln_script_bitwise(p, "bitwise_not", &value, NULL, v);
  v->v.i = ~v->v.i;
  return PLN_OK;
}

/* The items take the place of the group; the list around it takes them. */
static pln_status spread(pln_script_parser *p, pln_script_value *v) {
  pln_script_value group = *v;
  if (v->kind != PLN_V_TUPLE && v->kind != PLN_V_LIST)
    return pln_script_refuse(p, v, "only a tuple or list follows '*'");
  p->n_values--;
  for (uint32_t i = 0; i < group.n; i++)
    PLN_TRY(push_value(p, &p->kept[group.first + i]));
  return PLN_OK;
}

/* x if condition else y: the values are x, condition, y. */
static pln_status choose(pln_script_parser *p) {
  pln_script_value y = *top_value(p), *v;
  p->n_values -= 2;
  v = top_value(p);
  pln_script_value condition = v[1], x = *v;
  p->place = x.at;
  p->place_size = (uint32_t)(y.at + y.size - x.at);
  if (condition.kind == PLN_V_BOOL)
    *v = condition.v.i ? x : y;
  else
    PLN_TRY(pln_script_choose(p, &condition, &x, &y, v));
  v->at = p->place = x.at;
  v->size = (uint32_t)(y.at + y.size - x.at);
  return PLN_OK;
}

static pln_status apply_binary(pln_script_parser *p, uint8_t token,
                               const pln_script_value *a,
                               const pln_script_value *b,
                               pln_script_value *out);

/* Applies the newest open operator. */
static pln_status apply(pln_script_parser *p) {
  pln_script_open o = p->open[--p->n_open];
  pln_script_value *v = top_value(p);
  p->place = o.at;
  p->place_size = (uint32_t)(v->at + v->size - o.at);
  if (o.what == NEGATE)
    return negate(p, v);
  if (o.what == INVERT)
    return invert(p, v);
  if (o.what == NOT)
    return apply_not(p, v);
  if (o.what == STAR)
    return spread(p, v);
  if (o.what == IF)
    return pln_script_expected(p, "'else'");
  if (o.what == ELSE)
    return choose(p);
  pln_script_value b = *v, a = v[-1];
  p->n_values--;
  v = top_value(p);
  p->place = a.at;
  p->place_size = (uint32_t)(b.at + b.size - a.at);
  v->size = p->place_size;
  return apply_binary(p, (uint8_t)o.kind, &a, &b, v);
}

static pln_status apply_down_to(pln_script_parser *p, uint32_t base,
                                uint8_t prec) {
  while (p->n_open > base && p->open[p->n_open - 1].prec >= prec &&
         p->open[p->n_open - 1].prec > PREC_BRACKET)
    PLN_TRY(apply(p));
  return PLN_OK;
}

static const struct {
  uint8_t prec;
  uint8_t kind; /* 0: a call of `builtin` */
  const char *builtin;
} operators[PLN_N_SCRIPT_TOKENS] = {
    [PLN_S_OR] = {PREC_OR, PLN_PRIM_OR, NULL},
    [PLN_S_AND] = {PREC_AND, PLN_PRIM_AND, NULL},
    [PLN_S_EQUAL] = {PREC_COMPARE, PLN_PRIM_EQ, NULL},
    [PLN_S_NOT_EQUAL] = {PREC_COMPARE, PLN_PRIM_NE, NULL},
    [PLN_S_LESS] = {PREC_COMPARE, PLN_PRIM_LT, NULL},
    [PLN_S_LESS_EQUAL] = {PREC_COMPARE, PLN_PRIM_LE, NULL},
    [PLN_S_GREATER] = {PREC_COMPARE, PLN_PRIM_GT, NULL},
    [PLN_S_GREATER_EQUAL] = {PREC_COMPARE, PLN_PRIM_GE, NULL},
    [PLN_S_BIT_OR] = {PREC_BIT_OR, 0, "bitwise_or"},
    [PLN_S_BIT_XOR] = {PREC_BIT_XOR, 0, "bitwise_xor"},
    [PLN_S_BIT_AND] = {PREC_BIT_AND, 0, "bitwise_and"},
    [PLN_S_SHIFT_LEFT] = {PREC_SHIFT, 0, "shift_left"},
    [PLN_S_SHIFT_RIGHT] = {PREC_SHIFT, 0, "shift_right"},
    [PLN_S_PLUS] = {PREC_ADD, PLN_PRIM_ADD, NULL},
    [PLN_S_MINUS] = {PREC_ADD, PLN_PRIM_SUB, NULL},
    [PLN_S_STAR] = {PREC_MUL, PLN_PRIM_MUL, NULL},
    [PLN_S_SLASH] = {PREC_MUL, PLN_PRIM_DIV, NULL},
    [PLN_S_FLOOR] = {PREC_MUL, PLN_PRIM_FLOORDIV, NULL},
    [PLN_S_PERCENT] = {PREC_MUL, PLN_PRIM_FLOORMOD, NULL},
};

static pln_status apply_binary(pln_script_parser *p, uint8_t token,
                               const pln_script_value *a,
                               const pln_script_value *b,
                               pln_script_value *out) {
  if (operators[token].builtin)
    return pln_script_bitwise(p, operators[token].builtin, a, b, out);
  return pln_script_binary(p, (pln_kind)operators[token].kind, a, b, out);
}

pln_status pln_script_augment(pln_script_parser *p, pln_slice sign,
                              const pln_script_value *a,
                              const pln_script_value *b,
                              pln_script_value *out) {
  pln_script_lexer lexer;
  pln_script_token token;
  pln_script_lex_begin(&lexer, sign);
  pln_script_lex_next(&lexer, &token);
  out->at = a->at;
  out->size = (uint32_t)(b->at + b->size - a->at);
  return apply_binary(p, token.kind, a, b, out);
}

/* ----------------------------------------------------------------- brackets */

static pln_status open_bracket(pln_script_parser *p, uint8_t what) {
  PLN_TRY(
      push_open(p, (pln_script_open){.what = what, .at = p->token.whole.data}));
  return pln_script_next(p);
}

/* Ends a slice: lower, upper and step become one value. */
static pln_status end_slice(pln_script_parser *p, pln_script_open *o,
                            bool missing) {
  pln_script_value none = {.kind = PLN_V_NONE, .at = o->at, .size = 1};
  uint8_t colons = o->colons;
  o->colons = 0;
  if (missing)
    PLN_TRY(push_value(p, &none));
  if (colons == 1)
    PLN_TRY(push_value(p, &none));
  pln_script_value slice = {.kind = PLN_V_SLICE};
  slice.at = p->values[p->n_values - 3].at;
  const pln_script_value *end = &p->values[p->n_values - 2];
  slice.size = end->kind == PLN_V_NONE
                   ? p->values[p->n_values - 3].size
                   : (uint32_t)(end->at + end->size - slice.at);
  PLN_TRY(pln_script_keep(p, p->n_values - 3, &slice));
  return push_value(p, &slice);
}

/* After an item of a bracket. */
static void end_item(pln_script_parser *p, pln_script_open *o) {
  if (o->what == CALL) {
    top_value(p)->key = o->key;
    o->key = (pln_slice){NULL, 0};
  }
}

static pln_status close_group(pln_script_parser *p, const pln_script_open *o,
                              pln_script_value *v) {
  bool single = o->what == PAREN && !o->comma && p->n_values - o->first == 1;
  if (single) {
    uint32_t size = v->size;
    const char *at = v->at;
    *v = p->values[--p->n_values];
    v->at = at;
    v->size = size;
    return PLN_OK;
  }
  v->kind = o->what == PAREN  ? PLN_V_TUPLE
            : o->what == LIST ? PLN_V_LIST
                              : PLN_V_DICT;
  v->bracketed = true;
  return pln_script_keep(p, o->first, v);
}

static pln_status index_field(pln_script_parser *p, pln_script_value *v) {
  const pln_node *n = &p->b->graph->nodes[v->v.of.ref];
  const pln_ref *o = p->b->graph->operands + n->first;
  uint32_t rank = n->results, first = 1, count = rank;
  if (v->kind == PLN_V_STRIDES) {
    first = 1 + rank;
    count = n->count - 2 - rank;
  }
  const pln_script_value *i = &p->kept[v->first];
  if (v->n != 1 || i->kind != PLN_V_INT || i->v.i < 0 || i->v.i >= count)
    return pln_script_refuse(p, v, "an index from 0 to below %u is expected",
                             (unsigned)count);
  pln_script_set_ref(v, o[first + i->v.i]);
  return PLN_OK;
}

static pln_status index_metadata(pln_script_parser *p, pln_script_value *v) {
  const pln_script_value *i = &p->kept[v->first];
  if (v->kind == PLN_V_METADATA) {
    if (v->n != 1 || i->kind != PLN_V_STRING ||
        !pln_slice_is(i->v.s, "runtime.NDArray"))
      return pln_script_refuse(
          p, v, "only \"runtime.NDArray\" of the metadata is known");
    v->kind = PLN_V_TENSORS;
    return PLN_OK;
  }
  if (v->n != 1 || i->kind != PLN_V_INT || i->v.i < 0 || i->v.i >= p->n_tensors)
    return pln_script_refuse(p, v, "the metadata has %u tensors",
                             (unsigned)p->n_tensors);
  v->v.of.number = (uint32_t)i->v.i;
  v->kind = PLN_V_TENSOR;
  return PLN_OK;
}

/* An item of a tuple or list; -1 is the last one. */
static pln_status index_group(pln_script_parser *p,
                              const pln_script_value *group,
                              pln_script_value *v) {
  const pln_script_value *i = &p->kept[v->first];
  int64_t n = group->n;
  if (v->n != 1 || i->kind != PLN_V_INT || i->v.i < -n || i->v.i >= n)
    return pln_script_refuse(p, v, "an index from 0 to below %u is expected",
                             (unsigned)group->n);
  pln_script_value item =
      p->kept[group->first + (uint32_t)(i->v.i < 0 ? n + i->v.i : i->v.i)];
  item.at = v->at;
  item.size = v->size;
  *v = item;
  return PLN_OK;
}

static pln_status close_index(pln_script_parser *p, const pln_script_open *o,
                              const pln_script_value *whole) {
  pln_script_value *v = &p->values[o->first - 1], group = *v;
  PLN_TRY(pln_script_keep(p, o->first, v));
  v = top_value(p);
  v->size = (uint32_t)(whole->at + whole->size - v->at);
  if (group.kind == PLN_V_TUPLE || group.kind == PLN_V_LIST)
    return index_group(p, &group, v);
  if (v->n == 1 && p->kept[v->first].kind == PLN_V_TUPLE) {
    group = p->kept[v->first]; /* A[(i, j)]; A[()] has no indices */
    v->first = group.first;
    v->n = group.n;
  }
  /* A producer may be declared as a handle. */
  if (v->kind == PLN_V_EXPR && p->has_producers &&
      p->b->graph->nodes[v->v.of.ref].kind == PLN_VAR)
    v->kind = PLN_V_PRODUCER;
  switch (v->kind) {
  case PLN_V_BUFFER:
    v->v.of.number = 0;
    v->kind = PLN_V_INDEX;
    return PLN_OK;
  case PLN_V_PRODUCER:
    v->v.of.number = 1;
    v->kind = PLN_V_INDEX;
    return PLN_OK;
  case PLN_V_METHOD: /* T.Buffer[(16,), "float32"] */
    if (v->v.of.number != PLN_METHOD_BUFFER)
      break;
    v->kind = PLN_V_CALL;
    return PLN_OK;
  case PLN_V_STRIDES:
  case PLN_V_SHAPE: return index_field(p, v);
  case PLN_V_METADATA:
  case PLN_V_TENSORS: return index_metadata(p, v);
  default: break;
  }
  return pln_script_refuse(p, v, "this value has no elements");
}

static pln_status close_call(pln_script_parser *p, const pln_script_open *o,
                             const pln_script_value *whole) {
  pln_script_value items = {.kind = PLN_V_TUPLE}, out = {0};
  pln_script_value callee = p->values[o->first - 1];
  PLN_TRY(pln_script_keep(p, o->first, &items));
  callee.size = (uint32_t)(whole->at + whole->size - callee.at);
  out.at = callee.at;
  out.size = callee.size;
  items.at = o->at;
  items.size = (uint32_t)(whole->at + whole->size - o->at);
  p->place = callee.at;
  p->place_size = callee.size;
  PLN_TRY(pln_script_call(p, &callee, &items, &out));
  out.key = (pln_slice){NULL, 0};
  *top_value(p) = out;
  return PLN_OK;
}

static const uint8_t closers[] = {[PAREN] = PLN_S_RPAREN,
                                  [CALL] = PLN_S_RPAREN,
                                  [LIST] = PLN_S_RBRACKET,
                                  [DICT] = PLN_S_RBRACE,
                                  [INDEX] = PLN_S_RBRACKET};

/* At the bracket that closes the innermost one. */
static pln_status close_bracket(pln_script_parser *p, uint32_t base) {
  pln_script_open *o = bracket(p, base);
  if (p->token.kind != closers[o->what])
    return pln_script_expected(
        p, pln_script_token_name((pln_script_token_kind)closers[o->what]));
  if (o->what == DICT && (p->n_values - o->first) % 2)
    return pln_script_expected(p, "':' and a value");
  pln_script_open closed = *o;
  p->n_open--;
  pln_script_value whole = {.at = closed.at};
  whole.size =
      (uint32_t)(p->token.whole.data + p->token.whole.size - closed.at);
  PLN_TRY(pln_script_next(p));
  if (closed.what == CALL)
    return close_call(p, &closed, &whole);
  if (closed.what == INDEX)
    return close_index(p, &closed, &whole);
  PLN_TRY(close_group(p, &closed, &whole));
  return push_value(p, &whole);
}

/* ------------------------------------------------------------------- states */

static bool is_closer(uint8_t kind) {
  return kind == PLN_S_RPAREN || kind == PLN_S_RBRACKET || kind == PLN_S_RBRACE;
}

/* A keyword argument's name and '='. */
static pln_status read_keyword(pln_script_parser *p, uint32_t base,
                               bool *found) {
  pln_script_open *o = bracket(p, base);
  *found = o && o->what == CALL && p->token.kind == PLN_S_NAME &&
           !o->key.data && pln_script_lex_before_assign(&p->lexer);
  if (!*found)
    return PLN_OK;
  o->key = p->token.text;
  PLN_TRY(pln_script_next(p));
  return pln_script_next(p);
}

static pln_status read_minus(pln_script_parser *p, bool *done) {
  const char *at = p->token.whole.data;
  PLN_TRY(pln_script_next(p));
  *done = p->token.kind == PLN_S_INTEGER || p->token.kind == PLN_S_FLOAT;
  if (!*done)
    return push_open(
        p, (pln_script_open){.what = NEGATE, .prec = PREC_UNARY, .at = at});
  pln_script_value v = value_at_token(p);
  v.size += (uint32_t)(v.at - at);
  v.at = at;
  PLN_TRY(p->token.kind == PLN_S_INTEGER ? read_integer(p, true, &v)
                                         : read_float(p, true, &v));
  PLN_TRY(push_value(p, &v));
  return pln_script_next(p);
}

/* A literal or a name. */
static pln_status read_atom(pln_script_parser *p) {
  pln_script_value v = value_at_token(p);
  switch (p->token.kind) {
  case PLN_S_INTEGER: PLN_TRY(read_integer(p, false, &v)); break;
  case PLN_S_FLOAT: PLN_TRY(read_float(p, false, &v)); break;
  case PLN_S_STRING:
    PLN_TRY(read_string(p, &v));
    PLN_TRY(pln_script_next(p));
    while (p->token.kind == PLN_S_STRING)
      PLN_TRY(join_string(p, &v));
    return push_value(p, &v);
  case PLN_S_NAME: PLN_TRY(pln_script_resolve(p, &v)); break;
  case PLN_S_TRUE:
  case PLN_S_FALSE:
    v.kind = PLN_V_BOOL;
    v.v.i = p->token.kind == PLN_S_TRUE;
    break;
  case PLN_S_NONE: v.kind = PLN_V_NONE; break;
  case PLN_S_LAMBDA: PLN_TRY(read_lambda(p, &v)); return push_value(p, &v);
  default: return pln_script_expected(p, "an expression");
  }
  PLN_TRY(push_value(p, &v));
  return pln_script_next(p);
}

/* Where an operand is expected; *have: one was read. */
static pln_status want_operand(pln_script_parser *p, uint32_t base,
                               bool *have) {
  pln_script_open *o = bracket(p, base);
  uint8_t kind = p->token.kind;
  bool keyword;
  if (o && is_closer(kind) && !o->key.data &&
      !(o->what == INDEX && o->first == p->n_values)) {
    *have = true;
    if (o->colons)
      PLN_TRY(end_slice(p, o, true));
    return close_bracket(p, base);
  }
  if (o && o->what == INDEX && kind == PLN_S_COLON) {
    pln_script_value none = value_at_token(p);
    none.kind = PLN_V_NONE;
    *have = true;
    return push_value(p, &none);
  }
  switch (kind) {
  case PLN_S_LPAREN: return open_bracket(p, PAREN);
  case PLN_S_LBRACKET: return open_bracket(p, LIST);
  case PLN_S_LBRACE: return open_bracket(p, DICT);
  case PLN_S_MINUS: return read_minus(p, have);
  case PLN_S_PLUS: return pln_script_next(p);
  case PLN_S_STAR:
    if (!o || o->what == DICT)
      break;
    PLN_TRY(push_open(p, (pln_script_open){.what = STAR,
                                           .prec = PREC_IF,
                                           .at = p->token.whole.data}));
    return pln_script_next(p);
  case PLN_S_BIT_NOT:
    PLN_TRY(push_open(p, (pln_script_open){.what = INVERT,
                                           .prec = PREC_UNARY,
                                           .at = p->token.whole.data}));
    return pln_script_next(p);
  case PLN_S_NOT:
    PLN_TRY(push_open(p, (pln_script_open){.what = NOT,
                                           .prec = PREC_NOT,
                                           .at = p->token.whole.data}));
    return pln_script_next(p);
  default: break;
  }
  PLN_TRY(read_keyword(p, base, &keyword));
  if (keyword)
    return PLN_OK;
  *have = true;
  return read_atom(p);
}

/* a < b < c is a < b and b < c. */
static pln_status chain(pln_script_parser *p, uint32_t base) {
  PLN_TRY(apply_down_to(p, base, PREC_COMPARE + 1));
  const pln_script_open *o = p->n_open > base ? &p->open[p->n_open - 1] : NULL;
  if (!o || o->what != BINARY || o->prec != PREC_COMPARE)
    return PLN_OK;
  pln_script_value middle = *top_value(p);
  PLN_TRY(apply_down_to(p, base, PREC_COMPARE));
  PLN_TRY(push_open(p, (pln_script_open){.what = BINARY,
                                         .prec = PREC_COMPARE,
                                         .kind = PLN_S_AND,
                                         .at = middle.at}));
  return push_value(p, &middle);
}

/* "if" after a value, and "else" after its condition. */
static pln_status read_conditional(pln_script_parser *p, uint32_t base,
                                   bool *have) {
  pln_script_open *o;
  bool begins = p->token.kind == PLN_S_IF;
  PLN_TRY(apply_down_to(p, base, PREC_OR));
  o = p->n_open > base ? &p->open[p->n_open - 1] : NULL;
  if (begins)
    PLN_TRY(push_open(p, (pln_script_open){.what = IF,
                                           .prec = PREC_IF,
                                           .at = p->token.whole.data}));
  else if (o && o->what == IF)
    o->what = ELSE;
  else
    return pln_script_expected(p, "an 'if' before");
  *have = false;
  return pln_script_next(p);
}

static pln_status read_operator(pln_script_parser *p, uint32_t base,
                                bool *have) {
  uint8_t prec = operators[p->token.kind].prec;
  if (prec == PREC_COMPARE)
    PLN_TRY(chain(p, base));
  else
    PLN_TRY(apply_down_to(p, base, prec));
  PLN_TRY(push_open(p, (pln_script_open){.what = BINARY,
                                         .prec = prec,
                                         .kind = p->token.kind,
                                         .at = p->token.whole.data}));
  *have = false;
  return pln_script_next(p);
}

static pln_status read_comma(pln_script_parser *p, pln_script_open *o,
                             bool *have) {
  if (o->colons)
    PLN_TRY(end_slice(p, o, false));
  if (o->what == DICT && (p->n_values - o->first) % 2)
    return pln_script_expected(p, "':'");
  end_item(p, o);
  o->comma = true;
  *have = false;
  return pln_script_next(p);
}

static pln_status read_colon(pln_script_parser *p, pln_script_open *o,
                             bool *have) {
  bool key = o->what == DICT && (p->n_values - o->first) % 2 == 1;
  bool slice = o->what == INDEX && o->colons < 2;
  if (!key && !slice)
    return pln_script_expected(p, "',' or a closing bracket");
  o->colons += slice;
  *have = false;
  return pln_script_next(p);
}

/* In the brackets of one expression, after an operand. */
static pln_status in_bracket(pln_script_parser *p, uint32_t base, bool *have) {
  pln_script_open *o = bracket(p, base);
  if (p->token.kind == PLN_S_COMMA)
    return read_comma(p, o, have);
  if (p->token.kind == PLN_S_COLON)
    return read_colon(p, o, have);
  if (!is_closer(p->token.kind))
    return pln_script_expected(p, "an operator, ',' or a closing bracket");
  if (o->colons)
    PLN_TRY(end_slice(p, o, false));
  end_item(p, o);
  return close_bracket(p, base);
}

/* After an operand; *done: the expression has ended. */
static pln_status have_operand(pln_script_parser *p, uint32_t base, bool *have,
                               bool *done) {
  switch (p->token.kind) {
  case PLN_S_LPAREN: *have = false; return open_bracket(p, CALL);
  case PLN_S_LBRACKET: *have = false; return open_bracket(p, INDEX);
  case PLN_S_DOT: PLN_TRY(pln_script_next(p)); return read_attribute(p);
  case PLN_S_IF:
  case PLN_S_ELSE: return read_conditional(p, base, have);
  default: break;
  }
  if (operators[p->token.kind].prec)
    return read_operator(p, base, have);
  PLN_TRY(apply_down_to(p, base, PREC_IF));
  *done = p->n_open == base;
  return *done ? PLN_OK : in_bracket(p, base, have);
}

static pln_status parse(pln_script_parser *p, uint32_t base) {
  bool have = false, done = false;
  while (!done)
    PLN_TRY(have ? have_operand(p, base, &have, &done)
                 : want_operand(p, base, &have));
  return PLN_OK;
}

pln_status pln_script_expr_parse(pln_script_parser *p, pln_script_value *out) {
  uint32_t base = p->n_open, values = p->n_values;
  pln_status status = parse(p, base);
  if (status == PLN_OK)
    *out = *top_value(p);
  p->n_open = base;
  p->n_values = values;
  return status;
}
