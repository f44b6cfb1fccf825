/* relay/parse/attrs.c: parses attributes, `name=value, name=value`.
 *
 * Called at the ends of parameter and argument lists. Values nest: open lists
 * and dictionaries are on a stack of frames, their values on p->items. Arrays
 * of lists are allocated in the parser's arena until the attributes are
 * interned. */

#include "ir/relay/metadata/read_section.h"
#include "ir/relay/parse/parse.h"

typedef struct pln_attr_frame {
  pln_token token;
  pln_symbol name; /* of the entry with this value */
  uint32_t first;  /* its items are p->items from here on */
  uint8_t closer;  /* pln_token_kind: ']' or ')' of a list, '}' */
  bool comma;      /* a comma was parsed: (1,) is a list, (1) is not */
} pln_attr_frame;

void pln_parse_free_attrs(pln_parser *p) {
  pln_mem_free(p->engine, p->items, p->cap_items * sizeof *p->items);
  pln_mem_free(p->engine, p->attr_names,
               p->cap_attr_names * sizeof *p->attr_names);
  pln_mem_free(p->engine, p->attr_frames,
               p->cap_attr_frames * sizeof *p->attr_frames);
}

static pln_status push_item(pln_parser *p, const pln_attr *item) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->items, &p->cap_items,
                       (size_t)p->n_items + 1, sizeof *p->items));
  p->items[p->n_items++] = *item;
  return PLN_OK;
}

static pln_status push_attr_frame(pln_parser *p, pln_token_kind closer,
                                  pln_symbol name) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->attr_frames, &p->cap_attr_frames,
                       (size_t)p->n_attr_frames + 1, sizeof *p->attr_frames));
  p->attr_frames[p->n_attr_frames++] =
      (pln_attr_frame){.token = p->token,
                       .name = name,
                       .first = p->n_items,
                       .closer = (uint8_t)closer};
  return pln_parse_next(p);
}

/* ------------------------------------------------------------------- names */

/* A name, string or keyword followed by '='; or, where no other name is
 * possible, a name followed by ':'. */
bool pln_parse_at_attr(const pln_parser *p) {
  bool name = p->token.kind == PLN_T_NAME;
  if (!name && p->token.kind != PLN_T_STRING && p->token.kind < PLN_T_DEF)
    return false;
  pln_token_kind next = pln_parse_peek(p);
  return next == PLN_T_ASSIGN || (name && next == PLN_T_COLON);
}

static pln_status parse_attr_name(pln_parser *p, pln_symbol *out) {
  pln_token token = p->token;
  if (!pln_parse_at_attr(p))
    return pln_parse_report_expected(p, "name=value");
  if (token.kind >= PLN_T_DEF)
    token.text = token.whole;
  PLN_TRY(pln_parse_symbol(p, &token, out));
  PLN_TRY(pln_parse_next(p));
  return pln_parse_expect(p, PLN_T_ASSIGN);
}

/* Records the name's position for error messages. */
static pln_status note_name(pln_parser *p, pln_symbol name,
                            const pln_token *token) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->attr_names, &p->cap_attr_names,
                       (size_t)p->n_attr_names + 1, sizeof *p->attr_names));
  p->attr_names[p->n_attr_names++] = (pln_parsed_name){name, *token};
  return PLN_OK;
}

/* The second occurrence of a duplicate name; NULL when there is none, or when
 * out of memory. */
static const pln_token *find_twice(const pln_parser *p) {
  pln_idmap *seen = NULL;
  const pln_token *found = NULL;
  pln_status status = pln_idmap_new(p->engine, &seen);
  for (uint32_t i = 0; i < p->n_attr_names && status == PLN_OK && !found; i++) {
    if (pln_idmap_get(seen, p->attr_names[i].name))
      found = &p->attr_names[i].token;
    status = pln_idmap_set(seen, p->attr_names[i].name, 1);
  }
  pln_idmap_free(seen);
  return found;
}

/* ------------------------------------------------------------------ values */

static pln_status parse_attr_number(pln_parser *p, pln_attr *out) {
  pln_parsed_number number;
  PLN_TRY(pln_parse_number(p, &number));
  if (number.is_float) {
    out->kind = PLN_ATTR_FLOAT;
    out->v.f = number.dtype == PLN_FLOAT64 ? number.f : (double)(float)number.f;
  } else {
    out->kind = PLN_ATTR_INT;
    out->v.i = number.i;
  }
  return PLN_OK;
}

/* Copies the text of a string; the copy lives until the attributes are
 * interned. */
static pln_status keep_text(pln_parser *p, pln_slice *out) {
  PLN_TRY(pln_parse_text(p, &p->token, out));
  if (!p->token.escaped || out->size == 0)
    return PLN_OK;
  char *copy = pln_arena_new(&p->arena, out->size);
  if (!copy)
    return pln_nomem(p->engine);
  memcpy(copy, out->data, out->size);
  out->data = copy;
  return PLN_OK;
}

static pln_status read_string(pln_parser *p, pln_attr *out) {
  out->kind = PLN_ATTR_STRING;
  PLN_TRY(keep_text(p, &out->v.s));
  return pln_parse_next(p);
}

/* function(3): the operand of that index */
static pln_status read_function(pln_parser *p, pln_attr *out) {
  uint32_t operand;
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_expect(p, PLN_T_LPAREN));
  PLN_TRY(pln_parse_count(p, INT32_MAX, &operand));
  out->kind = PLN_ATTR_GRAPH;
  out->v.i = operand;
  return pln_parse_expect(p, PLN_T_RPAREN);
}

/* The optional type after the name in ref_attr("name", 2). */
static pln_status read_ref_type(pln_parser *p, pln_attr *out) {
  uint32_t type;
  if (p->token.kind != PLN_T_COMMA)
    return PLN_OK;
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_count(p, UINT8_MAX, &type));
  out->onnx_type = (uint8_t)type;
  return PLN_OK;
}

/* ref_attr("name", 2), bytes("...") */
static pln_status parse_call_attr(pln_parser *p, pln_attr *out) {
  bool ref = pln_parse_is(p, "ref_attr");
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_expect(p, PLN_T_LPAREN));
  if (p->token.kind != PLN_T_STRING)
    return pln_parse_report_expected(p, "a string");
  out->kind = ref ? PLN_ATTR_REF : PLN_ATTR_BYTES;
  if (ref)
    PLN_TRY(pln_parse_symbol(p, &p->token, &out->v.symbol));
  else
    PLN_TRY(keep_text(p, &out->v.s));
  PLN_TRY(pln_parse_next(p));
  if (ref)
    PLN_TRY(read_ref_type(p, out));
  return pln_parse_expect(p, PLN_T_RPAREN);
}

static pln_status read_type(pln_parser *p, pln_attr *out) {
  out->kind = PLN_ATTR_TYPE;
  return pln_parse_type(p, &out->v.type);
}

static pln_status read_word(pln_parser *p, pln_attr *out) {
  pln_token_kind next = pln_parse_peek(p);
  if (pln_parse_is(p, "None") || pln_parse_is(p, "nullptr"))
    return pln_parse_next(p);
  if (pln_parse_is(p, "meta") && next == PLN_T_LBRACKET)
    return pln_metadata_read_attr(p, out);
  if (next == PLN_T_LPAREN &&
      (pln_parse_is(p, "ref_attr") || pln_parse_is(p, "bytes")))
    return parse_call_attr(p, out);
  if (next == PLN_T_LPAREN && pln_parse_is(p, "function"))
    return read_function(p, out);
  if (pln_parse_at_type(p))
    return read_type(p, out);
  return pln_parse_report_expected(p, "the value of an attribute");
}

/* Parses a whole value, or the beginning of a nested one: *open. */
static pln_status begin_attr_value(pln_parser *p, pln_symbol name,
                                   pln_attr *out, bool *open) {
  *out = (pln_attr){.name = name};
  *open = false;
  if (pln_parse_at_number(p))
    return parse_attr_number(p, out);
  switch (p->token.kind) {
  case PLN_T_LBRACKET:
    *open = true;
    return push_attr_frame(p, PLN_T_RBRACKET, name);
  case PLN_T_LPAREN:
    *open = true;
    return push_attr_frame(p, PLN_T_RPAREN, name);
  case PLN_T_LBRACE:
    *open = true;
    return push_attr_frame(p, PLN_T_RBRACE, name);
  case PLN_T_TRUE:
  case PLN_T_FALSE:
    out->kind = PLN_ATTR_BOOL;
    out->v.i = p->token.kind == PLN_T_TRUE;
    return pln_parse_next(p);
  case PLN_T_STRING: return read_string(p, out);
  case PLN_T_FN:
  case PLN_T_REF: return read_type(p, out);
  default: return read_word(p, out);
  }
}

/* ------------------------------------------------------------------- lists */

/* The list kind for values of a single kind; LIST for mixed ones. */
static pln_attr_kind list_kind(const pln_attr *items, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    if (items[i].kind != items[0].kind)
      return PLN_ATTR_LIST;
  switch (n > 0 ? (pln_attr_kind)items[0].kind : PLN_ATTR_INT) {
  case PLN_ATTR_INT: return PLN_ATTR_INTS;
  case PLN_ATTR_FLOAT: return PLN_ATTR_FLOATS;
  case PLN_ATTR_STRING: return PLN_ATTR_STRINGS;
  case PLN_ATTR_TENSOR: return PLN_ATTR_TENSORS;
  case PLN_ATTR_TYPE: return PLN_ATTR_TYPES;
  case PLN_ATTR_GRAPH: return PLN_ATTR_GRAPHS;
  default: return PLN_ATTR_LIST;
  }
}

static void fill_attr_array(pln_attr_kind kind, const pln_attr *items,
                            uint32_t n, void *array) {
  for (uint32_t i = 0; i < n; i++)
    switch (kind) {
    case PLN_ATTR_FLOATS: ((double *)array)[i] = items[i].v.f; break;
    case PLN_ATTR_STRINGS: ((pln_slice *)array)[i] = items[i].v.s; break;
    case PLN_ATTR_TENSORS: ((pln_tensor **)array)[i] = items[i].v.tensor; break;
    case PLN_ATTR_TYPES: ((pln_type *)array)[i] = items[i].v.type; break;
    default: ((int64_t *)array)[i] = items[i].v.i; break;
    }
}

static pln_status make_list(pln_parser *p, const pln_attr *items, uint32_t n,
                            pln_attr *out) {
  pln_attr_kind kind = list_kind(items, n);
  out->kind = (uint8_t)kind;
  if (kind == PLN_ATTR_LIST)
    return pln_attrs_list(p->engine, n, items, &out->v.dict);
  void *array = pln_arena_new(&p->arena, (n + 1) * sizeof(pln_slice));
  if (!array)
    return pln_nomem(p->engine);
  fill_attr_array(kind, items, n, array);
  out->count = n;
  out->v.ints = array;
  return PLN_OK;
}

/* Interns entries. A duplicate name is an error at its position, or at `token`
 * if positions were not recorded. */
static pln_status make_dict(pln_parser *p, const pln_token *token,
                            const pln_attr *items, uint32_t n, pln_attrs *out) {
  size_t mark = pln_diag_count(p->engine);
  *out = 0;
  pln_status status = pln_attrs_make(p->engine, n, items, out);
  if (status == PLN_OK)
    return PLN_OK;
  const pln_token *twice = token ? token : find_twice(p);
  return pln_parse_located(p, twice ? twice : &p->token, mark, status);
}

/* After the closing bracket of the newest frame. */
static pln_status finish_attr_value(pln_parser *p, pln_attr *out) {
  pln_attr_frame f = p->attr_frames[--p->n_attr_frames];
  const pln_attr *items = p->items + f.first;
  uint32_t n = p->n_items - f.first;
  pln_status status = PLN_OK;
  *out = (pln_attr){.name = f.name};
  if (f.closer == PLN_T_RBRACE) {
    out->kind = PLN_ATTR_DICT;
    status = make_dict(p, &f.token, items, n, &out->v.dict);
  } else if (f.closer == PLN_T_RPAREN && n == 1 && !f.comma) {
    *out = items[0];
    out->name = f.name;
  } else {
    status = make_list(p, items, n, out);
  }
  p->n_items = f.first;
  return status;
}

/* Before the next item of the newest frame, or after its last one. */
static pln_status parse_attr_separator(pln_parser *p, bool first, pln_attr *out,
                                       bool *open) {
  pln_attr_frame *f = &p->attr_frames[p->n_attr_frames - 1];
  bool comma = first;
  if (!first)
    PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &comma));
  f->comma = f->comma || (comma && !first);
  *open = p->token.kind != f->closer;
  if (*open)
    return comma ? PLN_OK
                 : pln_parse_report_expected(p, "',' or the end of the list");
  PLN_TRY(pln_parse_next(p));
  return finish_attr_value(p, out);
}

/* Parses the value of `name`. */
static pln_status parse_attr_value(pln_parser *p, pln_symbol name,
                                   pln_attr *out) {
  uint32_t floor = p->n_attr_frames;
  for (;;) {
    bool open;
    PLN_TRY(begin_attr_value(p, name, out, &open));
    if (open)
      PLN_TRY(parse_attr_separator(p, true, out, &open));
    while (!open) {
      if (p->n_attr_frames == floor)
        return PLN_OK;
      PLN_TRY(push_item(p, out));
      PLN_TRY(parse_attr_separator(p, false, out, &open));
    }
    name = 0;
    if (p->attr_frames[p->n_attr_frames - 1].closer == PLN_T_RBRACE)
      PLN_TRY(parse_attr_name(p, &name));
  }
}

/* ----------------------------------------------------------------- entries */

static pln_status read_entries(pln_parser *p) {
  bool more = true;
  while (more && pln_parse_at_attr(p)) {
    pln_symbol name;
    pln_attr value;
    pln_token token = p->token;
    PLN_TRY(parse_attr_name(p, &name));
    PLN_TRY(note_name(p, name, &token));
    PLN_TRY(parse_attr_value(p, name, &value));
    PLN_TRY(push_item(p, &value));
    PLN_TRY(pln_parse_accept(p, PLN_T_COMMA, &more));
  }
  return PLN_OK;
}

/* A list of the names in source order; empty when they are sorted already. */
static pln_status list_names(pln_parser *p, pln_attr *items, uint32_t n,
                             pln_attrs dict, pln_attrs *out) {
  bool by_name = true;
  for (uint32_t i = 0; i < n; i++) {
    by_name &= items[i].name == pln_attrs_at(p->engine, dict, i)->name;
    items[i] = (pln_attr){.name = items[i].name};
  }
  *out = 0;
  return by_name ? PLN_OK : pln_attrs_list(p->engine, n, items, out);
}

pln_status pln_parse_attrs(pln_parser *p, pln_attrs *out) {
  pln_attrs order;
  return pln_parse_ordered_attrs(p, out, &order);
}

/* After a syntax error the open values are discarded. */
pln_status pln_parse_ordered_attrs(pln_parser *p, pln_attrs *out,
                                   pln_attrs *order) {
  uint32_t items = p->n_items, frames = p->n_attr_frames;
  *out = *order = 0;
  p->n_attr_names = 0;
  pln_status status = read_entries(p);
  if (status == PLN_OK && p->n_items > items)
    status = make_dict(p, NULL, p->items + items, p->n_items - items, out);
  if (status == PLN_OK && *out)
    status = list_names(p, p->items + items, p->n_items - items, *out, order);
  p->n_items = items;
  p->n_attr_frames = frames;
  if (items == 0) {
    pln_arena_free(&p->arena);
    pln_arena_init(&p->arena, p->engine);
  }
  return status;
}

/* ----------------------------------------------------------- of an operator */

/* The kind of an attribute according to a schema "axis:int=1 axes:ints". */
static pln_slice schema_kind(const char *schema, pln_slice name) {
  for (const char *at = schema ? schema : ""; *at;) {
    at += strspn(at, " ");
    size_t size = strcspn(at, ": ");
    const char *kind = at + size + (at[size] == ':');
    if (size == name.size && !memcmp(at, name.data, size))
      return (pln_slice){kind, strcspn(kind, "= ")};
    at += strcspn(at, " ");
  }
  return (pln_slice){"", 0};
}

/* Converts a value according to the schema where text is ambiguous: integers to
 * floats, empty lists, operand indices. */
static pln_status convert_attr(pln_parser *p, pln_slice kind,
                               const pln_attr *value, pln_attr *out) {
  *out = *value;
  if (value->kind == PLN_ATTR_BOOL)
    out->kind = PLN_ATTR_INT;
  if (value->kind == PLN_ATTR_INT && pln_slice_is(kind, "function"))
    out->kind = PLN_ATTR_GRAPH;
  if (value->kind == PLN_ATTR_INT && pln_slice_is(kind, "float")) {
    out->kind = PLN_ATTR_FLOAT;
    out->v.f = (double)(float)value->v.i;
  }
  if (value->kind != PLN_ATTR_INTS)
    return PLN_OK;
  if (value->count == 0 && pln_slice_is(kind, "strings"))
    out->kind = PLN_ATTR_STRINGS;
  if (value->count == 0 && pln_slice_is(kind, "tensors"))
    out->kind = PLN_ATTR_TENSORS;
  if (!pln_slice_is(kind, "floats"))
    return PLN_OK;
  double *floats =
      pln_arena_new(&p->arena, (value->count + 1) * sizeof *floats);
  if (!floats)
    return pln_nomem(p->engine);
  for (uint32_t i = 0; i < value->count; i++)
    floats[i] = (double)(float)value->v.ints[i];
  out->kind = PLN_ATTR_FLOATS;
  out->v.floats = floats;
  return PLN_OK;
}

pln_status pln_parse_convert_attrs(pln_parser *p, const char *schema,
                                   pln_attrs *attrs) {
  pln_attrs given = *attrs;
  for (uint32_t i = 0; i < pln_attrs_count(p->engine, given); i++) {
    const pln_attr *value = pln_attrs_at(p->engine, given, i);
    pln_slice name = pln_symbol_text(p->engine, value->name);
    pln_attr fitted;
    PLN_TRY(convert_attr(p, schema_kind(schema, name), value, &fitted));
    if (fitted.kind != value->kind)
      PLN_TRY(pln_attrs_with(p->engine, *attrs, &fitted, attrs));
  }
  return PLN_OK;
}

/* True if this attribute alone is refused with the same message as the newest,
 * at `mark`. Other diagnostics are dropped. */
static bool is_refused(pln_parser *p, const pln_relay_row *row,
                       const pln_attr *attr, size_t mark) {
  pln_engine *e = p->engine;
  pln_attrs alone, core;
  pln_status status = pln_attrs_make(e, 1, attr, &alone);
  if (status == PLN_OK)
    status = pln_relay_read(e, row, alone, &core);
  const pln_diag *first = pln_diag_at(e, mark);
  const pln_diag *again = pln_diag_at(e, mark + 1);
  bool same =
      status != PLN_OK && again && !strcmp(first->message, again->message);
  pln_diag_drop(e, mark + 1);
  return same;
}

enum { MAX_REFUSED_NAMES = 100 };

/* The position of the refused attribute; `token` when it is not known. */
static const pln_token *refused_attr_token(pln_parser *p,
                                           const pln_token *token,
                                           const pln_relay_row *row,
                                           pln_attrs given, size_t mark) {
  if (pln_diag_count(p->engine) != mark + 1)
    return token;
  for (uint32_t i = 0; i < p->n_attr_names && i < MAX_REFUSED_NAMES; i++) {
    const pln_parsed_name *at = &p->attr_names[i];
    const pln_attr *attr = pln_attrs_find(
        p->engine, given, pln_symbol_text(p->engine, at->name).data);
    if (attr && is_refused(p, row, attr, mark))
      return &at->token;
  }
  return token;
}

pln_status pln_parse_op_attrs(pln_parser *p, const pln_token *token, pln_op op,
                              pln_attrs given, pln_attrs *out, bool *good) {
  const pln_op_info *info = pln_op_row(p->engine, op);
  const pln_relay_row *row = pln_relay_of(p->engine, op);
  size_t mark = pln_diag_count(p->engine);
  *out = given;
  *good = true;
  if (!row)
    return pln_parse_convert_attrs(p, info->attrs, out);
  pln_status status = pln_relay_read(p->engine, row, given, out);
  if (status == PLN_OK)
    return PLN_OK;
  *good = false;
  token = refused_attr_token(p, token, row, given, mark);
  return pln_parse_located(p, token, mark, status);
}
