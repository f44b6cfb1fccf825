/* relay/parse/type.c: parses types, in the form that type/print.c writes.
 *
 * Called by the files of the parser. Open types are on a stack of frames, their
 * parts on p->types. */

#include "ir/relay/parse/parse.h"

/* A type whose parts are being parsed. */
typedef struct pln_parsed_type_frame {
  pln_type_kind kind;
  bool result;    /* FUNC: the result type is being parsed */
  uint8_t closer; /* the pln_token_kind that ends the parts */
  uint32_t first; /* index of its first part in p->types */
  uint32_t
      n_vars;    /* FUNC: number of type parameters, stored before the parts */
  uint32_t mark; /* FUNC: number of bindings outside of it */
  pln_symbol symbol;
} pln_parsed_type_frame;

pln_status pln_parse_push_type(pln_parser *p, pln_type type) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->types, &p->cap_types,
                       (size_t)p->n_types + 1, sizeof *p->types));
  p->types[p->n_types++] = type;
  return PLN_OK;
}

void pln_parse_free_types(pln_parser *p) {
  pln_mem_free(p->engine, p->types, p->cap_types * sizeof *p->types);
  pln_mem_free(p->engine, p->type_frames,
               p->cap_type_frames * sizeof *p->type_frames);
}

/* ----------------------------------------------------------------- tensors */

enum { MAX_RANK = 1024 };

#define EXAMPLE "Tensor[(1, ?), float32]"

static pln_status unknown_dtype(pln_parser *p) {
  const char *names[PLN_N_DTYPES];
  for (uint32_t i = 1; i < PLN_N_DTYPES; i++)
    names[i - 1] = pln_dtype_name((pln_dtype)i);
  return pln_parse_unknown(p, &p->token, "dtype", PLN_N_DTYPES - 1, names);
}

static pln_status read_dtype(pln_parser *p, pln_dtype *out, uint32_t *lanes) {
  bool unknown;
  *out = PLN_DTYPE_NONE;
  *lanes = 1;
  PLN_TRY(pln_parse_accept(p, PLN_T_QUERY, &unknown));
  if (unknown)
    return PLN_OK;
  if (p->token.kind != PLN_T_NAME)
    return pln_parse_report_expected(p, "a dtype");
  *out = pln_dtype_find_vector(p->token.text, lanes);
  if (*out == PLN_DTYPE_NONE)
    PLN_TRY(unknown_dtype(p));
  return pln_parse_next(p);
}

static pln_status make_tensor(pln_parser *p, pln_dtype dtype, uint32_t lanes,
                              int32_t rank, const pln_dim *dims,
                              pln_type *out) {
  PLN_TRY(pln_type_tensor(p->engine, dtype, rank, dims, out));
  return lanes > 1 ? pln_type_with_lanes(p->engine, *out, lanes, out) : PLN_OK;
}

/* Parses a shape such as (4, ?, N). */
static pln_status read_dims(pln_parser *p, pln_dim *dims, int32_t *rank) {
  bool more = true;
  *rank = 0;
  if (p->token.kind != PLN_T_LPAREN)
    return pln_parse_report_expected(p, "'(', as in " EXAMPLE);
  PLN_TRY(pln_parse_next(p));
  while (more && p->token.kind != PLN_T_RPAREN) {
    if (*rank == MAX_RANK)
      return pln_parse_fail(p, &p->token, "a tensor has at most %d dimensions",
                            MAX_RANK);
    pln_token token = p->token;
    PLN_TRY(pln_parse_dim(p, &dims[*rank]));
    if (PLN_DIM_IS_CONST(dims[*rank]) && dims[*rank] < 0)
      return pln_parse_fail(p, &token, "a dim must not be negative");
    ++*rank;
    PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &more));
  }
  return pln_parse_expect(p, PLN_T_RPAREN);
}

/* Parses the rest of a tensor type; the current token is the "[" after
 * `Tensor`. */
static pln_status parse_tensor_type(pln_parser *p, pln_type *out) {
  pln_dim dims[MAX_RANK];
  int32_t rank = -1;
  pln_dtype dtype;
  uint32_t lanes;
  bool any;
  if (p->token.kind != PLN_T_LBRACKET)
    return pln_parse_report_expected(p, "'[', as in " EXAMPLE);
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_accept(p, PLN_T_STAR, &any));
  if (!any)
    PLN_TRY(read_dims(p, dims, &rank));
  if (p->token.kind != PLN_T_COMMA)
    return pln_parse_report_expected(p, "',' and a dtype, as in " EXAMPLE);
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(read_dtype(p, &dtype, &lanes));
  PLN_TRY(pln_parse_expect(p, PLN_T_RBRACKET));
  return make_tensor(p, dtype, lanes, rank, dims, out);
}

/* ------------------------------------------------------------------- names */

/* Types written like calls, such as seq(T). */
static const struct {
  const char *name;
  pln_type_kind kind;
} calls[] = {{"seq", PLN_TYPE_SEQUENCE},
             {"optional", PLN_TYPE_OPTIONAL},
             {"map", PLN_TYPE_MAP},
             {"sparse", PLN_TYPE_SPARSE}};

static pln_type_kind call_kind(const pln_parser *p) {
  for (size_t i = 0; i < PLN_COUNT(calls); i++)
    if (pln_parse_is(p, calls[i].name) && pln_parse_peek(p) == PLN_T_LPAREN)
      return calls[i].kind;
  return PLN_TYPE_INCOMPLETE;
}

enum { MAX_NAMES = 1000 };

static pln_status unknown_type(pln_parser *p) {
  const char *names[MAX_NAMES + PLN_N_DTYPES];
  uint32_t n = pln_parse_visible(p, PLN_SPACE_TYPE, MAX_NAMES, names);
  for (uint32_t i = 0; i < p->n_defined_types && n < MAX_NAMES; i++)
    names[n++] = pln_symbol_text(p->engine, p->defined_types[i]).data;
  for (uint32_t i = 1; i < PLN_N_DTYPES; i++)
    names[n++] = pln_dtype_name((pln_dtype)i);
  return pln_parse_unknown(p, &p->token, "type", n, names);
}

static pln_status push_parsed_type_frame(pln_parser *p, pln_type_kind kind,
                                         pln_token_kind closer,
                                         pln_symbol symbol) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->type_frames, &p->cap_type_frames,
                       (size_t)p->n_type_frames + 1, sizeof *p->type_frames));
  p->type_frames[p->n_type_frames++] =
      (pln_parsed_type_frame){.kind = kind,
                              .closer = (uint8_t)closer,
                              .first = p->n_types,
                              .mark = p->n_bindings,
                              .symbol = symbol};
  return PLN_OK;
}

/* Resolves an unknown name in a type without a module: a data type if it begins
 * with a capital letter or has arguments. An error otherwise. */
static pln_status read_data_type_or_var(pln_parser *p, pln_symbol name,
                                        pln_type *out, bool *open) {
  char first = p->token.text.size > 0 ? p->token.text.data[0] : '\0';
  pln_token token = p->token;
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_accept(p, PLN_T_LBRACKET, open));
  if (*open)
    return push_parsed_type_frame(p, PLN_TYPE_CALL, PLN_T_RBRACKET, name);
  if (first >= 'A' && first <= 'Z')
    return pln_type_make(p->engine, PLN_TYPE_CALL, name, 0, NULL, out);
  return pln_parse_fail(p, &token, "expected a type, such as " EXAMPLE);
}

/* Parses a type variable, a dtype (a scalar tensor type) or the name of a data
 * type. *open is set if type arguments follow. */
static pln_status read_named(pln_parser *p, pln_type *out, bool *open) {
  uint32_t lanes = 1;
  pln_symbol name;
  pln_dtype dtype = p->token.kind == PLN_T_NAME
                        ? pln_dtype_find_vector(p->token.text, &lanes)
                        : PLN_DTYPE_NONE;

  PLN_TRY(pln_parse_symbol(p, &p->token, &name));
  if (pln_parse_lookup(p, PLN_SPACE_TYPE, name, out))
    return pln_parse_next(p);
  bool annotated = pln_idmap_get(p->type_names, name) != 0;
  if (!annotated && dtype == PLN_DTYPE_NONE && !p->type_alone)
    PLN_TRY(unknown_type(
        p)); /* reported, and parsed as a data type: arguments may follow */
  if (annotated || (dtype == PLN_DTYPE_NONE && !p->type_alone)) {
    PLN_TRY(pln_parse_next(p));
    PLN_TRY(pln_parse_accept(p, PLN_T_LBRACKET, open));
    return *open
               ? push_parsed_type_frame(p, PLN_TYPE_CALL, PLN_T_RBRACKET, name)
               : pln_type_make(p->engine, PLN_TYPE_CALL, name, 0, NULL, out);
  }
  if (dtype == PLN_DTYPE_NONE)
    return read_data_type_or_var(p, name, out, open);
  PLN_TRY(pln_parse_next(p));
  return make_tensor(p, dtype, lanes, 0, NULL, out);
}

/* Parses opaque("domain::name"). */
static pln_status read_opaque(pln_parser *p, pln_type *out) {
  pln_symbol name;
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_expect(p, PLN_T_LPAREN));
  if (p->token.kind != PLN_T_STRING)
    return pln_parse_report_expected(p, "a string");
  PLN_TRY(pln_parse_symbol(p, &p->token, &name));
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_expect(p, PLN_T_RPAREN));
  return pln_type_make(p->engine, PLN_TYPE_OPAQUE, name, 0, NULL, out);
}

/* ------------------------------------------------------------------ frames */

/* Parses the beginning of a function type such as fn [A](A) -> A, up to its
 * "(". */
static pln_status open_function(pln_parser *p) {
  uint32_t mark = p->n_bindings, n;
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_generics(p, &n));
  PLN_TRY(pln_parse_expect(p, PLN_T_LPAREN));
  PLN_TRY(push_parsed_type_frame(p, PLN_TYPE_FUNC, PLN_T_RPAREN, 0));
  p->type_frames[p->n_type_frames - 1].n_vars = n;
  p->type_frames[p->n_type_frames - 1].mark = mark;
  return PLN_OK;
}

static pln_status read_word(pln_parser *p, pln_type *out, bool *open) {
  if (pln_parse_is(p, "Tensor")) {
    PLN_TRY(pln_parse_next(p));
    return parse_tensor_type(p, out);
  }
  if (pln_parse_is(p, "_"))
    return pln_parse_next(p);
  pln_type_kind kind = call_kind(p);
  if (kind != PLN_TYPE_INCOMPLETE) {
    *open = true;
    PLN_TRY(pln_parse_next(p));
    PLN_TRY(pln_parse_next(p));
    return push_parsed_type_frame(p, kind, PLN_T_RPAREN, 0);
  }
  if (pln_parse_is(p, "opaque") && pln_parse_peek(p) == PLN_T_LPAREN)
    return read_opaque(p, out);
  return read_named(p, out, open);
}

/* Parses a type without parts, or pushes a frame for one with parts and sets
 * *open. */
static pln_status begin_type(pln_parser *p, pln_type *out, bool *open) {
  *out = 0;
  *open = false;
  switch (p->token.kind) {
  case PLN_T_NAME:
  case PLN_T_STRING: return read_word(p, out, open);
  case PLN_T_LPAREN:
    *open = true;
    PLN_TRY(pln_parse_next(p));
    return push_parsed_type_frame(p, PLN_TYPE_TUPLE, PLN_T_RPAREN, 0);
  case PLN_T_REF:
    *open = true;
    PLN_TRY(pln_parse_next(p));
    PLN_TRY(pln_parse_expect(p, PLN_T_LPAREN));
    return push_parsed_type_frame(p, PLN_TYPE_REF, PLN_T_RPAREN, 0);
  case PLN_T_FN: *open = true; return open_function(p);
  case PLN_T_QUERY: return pln_parse_next(p);
  default: return pln_parse_report_expected(p, "a type");
  }
}

static pln_status finish_type(pln_parser *p, const pln_token *token,
                              pln_type *out) {
  pln_parsed_type_frame f = p->type_frames[--p->n_type_frames];
  const pln_type *parts = p->types + f.first;
  uint32_t n = p->n_types - f.first;
  size_t mark = pln_diag_count(p->engine);
  pln_status status =
      f.kind == PLN_TYPE_FUNC
          ? pln_type_func(p->engine, n - 1, parts, parts[n - 1], f.n_vars,
                          parts - f.n_vars, 0, NULL, out)
          : pln_type_make(p->engine, f.kind, f.symbol, n, parts, out);
  p->n_types = f.first - f.n_vars;
  if (f.kind == PLN_TYPE_FUNC)
    pln_parse_unbind(p, f.mark);
  return pln_parse_located(p, token, mark, status);
}

/* Parses what separates the parts of the top frame. *open is set if a part
 * follows; otherwise the type is finished and *out set. */
static pln_status parse_type_separator(pln_parser *p, bool first, pln_type *out,
                                       bool *open) {
  pln_parsed_type_frame *f = &p->type_frames[p->n_type_frames - 1];
  pln_token token = p->token;
  bool comma = first;
  *open = true;
  if (f->result) {
    *open = false;
    return finish_type(p, &token, out);
  }
  if (!first)
    PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &comma));
  if (p->token.kind != f->closer)
    return comma ? PLN_OK
                 : pln_parse_report_expected(p, "',' or the end of the list");
  token = p->token;
  PLN_TRY(pln_parse_next(p));
  if (f->kind == PLN_TYPE_FUNC) {
    f->result = true;
    return pln_parse_expect(p, PLN_T_ARROW);
  }
  *open = false;
  return finish_type(p, &token, out);
}

static pln_status read_type(pln_parser *p, uint32_t floor, pln_type *out) {
  for (;;) {
    bool open;
    uint32_t depth = p->n_type_frames;
    PLN_TRY(begin_type(p, out, &open));
    if (open && p->n_type_frames > depth)
      PLN_TRY(parse_type_separator(p, true, out, &open));
    while (!open) {
      if (p->n_type_frames == floor)
        return PLN_OK;
      PLN_TRY(pln_parse_push_type(p, *out));
      PLN_TRY(parse_type_separator(p, false, out, &open));
    }
  }
}

/* After an error the frames, parts and bindings of the unfinished type are
 * dropped. */
pln_status pln_parse_type(pln_parser *p, pln_type *out) {
  uint32_t frames = p->n_type_frames, types = p->n_types;
  uint32_t mark = p->n_bindings;
  pln_status status = read_type(p, frames, out);
  if (status != PLN_OK) {
    p->n_type_frames = frames;
    p->n_types = types;
    pln_parse_unbind(p, mark);
  }
  return status;
}

/* When a type is parsed without a module, free variables of one name are the
 * same type variable, so that equal texts give equal types. A name that an
 * enclosing function type binds is a new variable. */
static pln_status new_var(pln_parser *p, pln_symbol name, pln_type *out) {
  uint32_t known;
  if (p->type_alone && !pln_parse_lookup(p, PLN_SPACE_TYPE, name, &known))
    return pln_type_make(p->engine, PLN_TYPE_VAR, name, 0, NULL, out);
  return pln_type_var(p->engine, name, PLN_TKIND_TYPE, out);
}

pln_status pln_parse_generics(pln_parser *p, uint32_t *n) {
  pln_symbol name;
  pln_type var;
  bool more;
  const pln_type *given = p->given_vars;
  p->given_vars = NULL;
  *n = 0;
  PLN_TRY(pln_parse_accept(p, PLN_T_LBRACKET, &more));
  if (!more)
    return PLN_OK;
  while (more && p->token.kind != PLN_T_RBRACKET) {
    if (p->token.kind != PLN_T_NAME && p->token.kind != PLN_T_STRING)
      return pln_parse_report_expected(p, "the name of a type variable");
    PLN_TRY(pln_parse_symbol(p, &p->token, &name));
    if (given)
      var = given[*n];
    else
      PLN_TRY(new_var(p, name, &var));
    PLN_TRY(pln_parse_bind(p, PLN_SPACE_TYPE, name, var));
    PLN_TRY(pln_parse_push_type(p, var));
    ++*n;
    PLN_TRY(pln_parse_next(p));
    PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &more));
  }
  return p->token.kind == PLN_T_RBRACKET
             ? pln_parse_next(p)
             : pln_parse_report_expected(p, "',' or ']'");
}

bool pln_parse_at_type(const pln_parser *p) {
  pln_type_kind kind = call_kind(p);
  pln_token_kind next = pln_parse_peek(p);
  uint32_t lanes;
  return p->token.kind == PLN_T_FN || kind != PLN_TYPE_INCOMPLETE ||
         (p->token.kind == PLN_T_REF && next == PLN_T_LPAREN) ||
         (pln_parse_is(p, "Tensor") && next == PLN_T_LBRACKET) ||
         (pln_parse_is(p, "opaque") && next == PLN_T_LPAREN) ||
         (p->token.kind == PLN_T_NAME &&
          pln_dtype_find_vector(p->token.text, &lanes) != PLN_DTYPE_NONE);
}
