/* option_text.c: parses and prints the values of options.
 *
 *     options := [ "{" [ entry { "," entry } ] "}" ]
 *     entry   := name "=" value
 *     value   := word | string | list | options
 *     list    := "[" [ item { "," item } ] "]"
 *     item    := word | string | list of words
 *
 * Called by the parser and printer of pipelines, for defaults, and for --set.
 * Invariant: printed text parses to the same values. */

#include <stdio.h>
#include <stdlib.h>

#include "pass/pipeline/reader.h"

/* ------------------------------------------------------------------ reading */

static pln_status bad_value(pln_reader *r, const pln_option *row,
                            const char *whom, size_t begin) {
  char wanted[256], message[600];
  pln_option_describe(row, wanted, sizeof wanted);
  snprintf(message, sizeof message, "%s expects %s, got '%.60s'", whom, wanted,
           r->word.data);
  return pln_reader_error(r, begin, r->at, PLN_ERR_TYPE, message);
}

/* *out = { name = value }. Interned, because the reader's word is overwritten.
 */
static pln_status store_option_value(pln_engine *engine, const char *name,
                                     pln_attr value, pln_attrs *out) {
  PLN_TRY(pln_symbol_intern(engine, pln_text(name), &value.name));
  return pln_attrs_make(engine, 1, &value, out);
}

static bool is_list(const pln_option *row) {
  return row->kind == PLN_ATTR_INTS || row->kind == PLN_ATTR_FLOATS ||
         row->kind == PLN_ATTR_STRINGS || row->kind == PLN_ATTR_LIST;
}

/* Appends an element of a list: an int64_t, a double, or a slice of a symbol's
 * text. */
static pln_status add_item(pln_reader *r, const pln_option *row,
                           const char *whom, pln_buffer *items) {
  size_t begin;
  pln_attr value;
  pln_symbol symbol;
  const pln_option number = {
      .kind = row->kind == PLN_ATTR_INTS ? PLN_ATTR_INT : PLN_ATTR_FLOAT};
  PLN_TRY(pln_reader_word(r, "a value", &begin));
  pln_slice text = {r->word.data, r->word.size};
  if (row->kind != PLN_ATTR_STRINGS) {
    if (!pln_option_read(&number, text, &value))
      return bad_value(r, row, whom, begin);
    return number.kind == PLN_ATTR_INT
               ? pln_buffer_add(items, &value.v.i, sizeof value.v.i)
               : pln_buffer_add(items, &value.v.f, sizeof value.v.f);
  }
  PLN_TRY(pln_symbol_intern(r->engine, text, &symbol));
  text = pln_symbol_text(r->engine, symbol);
  return pln_buffer_add(items, &text, sizeof text);
}

static pln_status add_items(pln_reader *r, const pln_option *row,
                            const char *whom, char close, pln_buffer *items) {
  pln_reader_skip_space(r);
  if (close ? pln_reader_accept(r, close) : r->at >= r->size)
    return PLN_OK;
  do
    PLN_TRY(add_item(r, row, whom, items));
  while (pln_reader_accept(r, ','));
  return close ? pln_reader_expect(r, close, "',' or ']'") : PLN_OK;
}

static pln_status read_plain_list(pln_reader *r, const pln_option *row,
                                  const char *whom, char close,
                                  pln_attrs *out) {
  pln_buffer items;
  pln_buffer_init(&items, r->engine);
  pln_status status = add_items(r, row, whom, close, &items);
  if (status == PLN_OK) {
    pln_attr list = {.kind = (uint8_t)row->kind};
    bool strings = row->kind == PLN_ATTR_STRINGS;
    size_t size = strings ? sizeof(pln_slice) : sizeof(int64_t);
    list.count = (uint32_t)(items.size / size);
    list.v.ints =
        (const void *)items
            .data; /* all list kinds keep their pointer at the same offset */
    status = store_option_value(r->engine, row->name, list, out);
  }
  pln_buffer_free(&items);
  return status;
}

/* Appends the lists of a list of lists, as pln_attr. */
static pln_status add_lists(pln_reader *r, const pln_option *row,
                            const char *whom, char close, pln_buffer *items) {
  const pln_option inner = {.name = row->name, .kind = PLN_ATTR_INTS};
  pln_reader_skip_space(r);
  if (close ? pln_reader_accept(r, close) : r->at >= r->size)
    return PLN_OK;
  do {
    pln_attrs one;
    PLN_TRY(pln_reader_expect(r, '[', "'[' and a list of integers"));
    PLN_TRY(read_plain_list(r, &inner, whom, ']', &one));
    PLN_TRY(pln_buffer_add(items, pln_attrs_at(r->engine, one, 0),
                           sizeof(pln_attr)));
  } while (pln_reader_accept(r, ','));
  return close ? pln_reader_expect(r, close, "',' or ']'") : PLN_OK;
}

static pln_status read_option_list(pln_reader *r, const pln_option *row,
                                   const char *whom, char close,
                                   pln_attrs *out) {
  pln_buffer items;
  pln_attr list = {.kind = PLN_ATTR_LIST};
  if (row->kind != PLN_ATTR_LIST)
    return read_plain_list(r, row, whom, close, out);
  pln_buffer_init(&items, r->engine);
  pln_status status = add_lists(r, row, whom, close, &items);
  if (status == PLN_OK)
    status =
        pln_attrs_list(r->engine, (uint32_t)(items.size / sizeof(pln_attr)),
                       (const void *)items.data, &list.v.dict);
  if (status == PLN_OK)
    status = store_option_value(r->engine, row->name, list, out);
  pln_buffer_free(&items);
  return status;
}

static pln_status read_scalar(pln_reader *r, const pln_option *row,
                              const char *whom, pln_attrs *out) {
  size_t begin;
  pln_attr value;
  PLN_TRY(pln_reader_word(r, "a value", &begin));
  pln_slice text = {r->word.data, r->word.size};
  if (!pln_option_read(row, text, &value))
    return bad_value(r, row, whom, begin);
  return store_option_value(r->engine, row->name, value, out);
}

static pln_status refuse_function(pln_reader *r, const char *whom) {
  char message[400];
  size_t begin = r->at;
  snprintf(message, sizeof message,
           "%s is a function: a script or a host gives it, text cannot", whom);
  return pln_reader_error(r, begin, r->size, PLN_ERR_TYPE, message);
}

static pln_status read_option_value(pln_reader *r, const pln_option *row,
                                    const char *whom, pln_attrs *out) {
  if (row->kind == PLN_ATTR_NONE)
    return refuse_function(r, whom);
  if (!is_list(row))
    return read_scalar(r, row, whom, out);
  PLN_TRY(pln_reader_expect(r, '[', "'[' and a list"));
  return read_option_list(r, row, whom, ']', out);
}

/* One level of nesting: the table into which entries are read, that of a DICT
 * option or of the options as a whole. */
typedef struct level {
  const pln_option *rows;
  uint32_t n;
  const char *whom;
  const char *what;      /* "option" or "field" */
  char close;            /* 0: the level ends with the text */
  const pln_option *map; /* whose entries are read; NULL: `rows` are */
} level;

static pln_status find_row(pln_reader *r, const level *in, size_t *begin,
                           pln_option *row, pln_attrs so_far) {
  char message[80];
  pln_symbol name;
  snprintf(message, sizeof message, "the name of %s %s",
           *in->what == 'o' ? "an" : "a", in->what);
  PLN_TRY(pln_reader_name(r, message, begin, &name));
  size_t mark = pln_diag_count(r->engine), end = r->at;
  pln_slice text = pln_symbol_text(r->engine, name);
  const pln_option *found = pln_option_find(in->rows, in->n, text);
  *row = found     ? *found
         : in->map ? pln_option_of_entry(in->map, text.data)
                   : (pln_option){0};
  if (!row->name) {
    (void)!pln_option_unknown(r->engine, in->whom, in->what, in->rows, in->n,
                              text);
    return pln_reader_relocate_error(r, mark, *begin, end);
  }
  snprintf(message, sizeof message, "'=' after the %s", in->what);
  PLN_TRY(pln_reader_expect(r, '=', message));
  if (!pln_attrs_find(r->engine, so_far, text.data))
    return PLN_OK;
  snprintf(message, sizeof message, "the %s is given twice", in->what);
  return pln_reader_error(r, *begin, end, PLN_ERR_FORMAT, message);
}

/* Checks the value read from `begin` on and adds it. */
static pln_status accept_option_value(pln_reader *r, const pln_option *row,
                                      const char *whom, size_t begin,
                                      pln_attrs read, pln_attrs *out) {
  size_t mark = pln_diag_count(r->engine);
  pln_attr value = *pln_attrs_at(r->engine, read, 0);
  if (pln_option_check(r->engine, row, whom, &value) != PLN_OK)
    return pln_reader_relocate_error(r, mark, begin, r->at);
  return pln_attrs_with(r->engine, *out, &value, out);
}

static pln_status read_option_field(pln_reader *r, const level *in,
                                    pln_attrs *out) {
  char whom[320];
  size_t begin;
  pln_option row;
  pln_attrs read = 0;
  PLN_TRY(find_row(r, in, &begin, &row, *out));
  snprintf(whom, sizeof whom, "%s, field '%s'", in->whom, row.name);
  pln_reader_skip_space(r);
  begin = r->at;
  PLN_TRY(read_option_value(r, &row, whom, &read));
  return accept_option_value(r, &row, whom, begin, read, out);
}

static bool at_close(pln_reader *r, char close) {
  pln_reader_skip_space(r);
  return close ? pln_reader_accept(r, close) : r->at >= r->size;
}

/* Reads the fields of a DICT: { name = fields }. */
static pln_status read_fields(pln_reader *r, const pln_option *row,
                              const char *whom, char close, pln_attrs *out) {
  level in = {.rows = row->fields,
              .n = row->n_fields,
              .whom = whom,
              .what = "field",
              .close = close,
              .map = row->entries ? row : NULL};
  pln_attr dict = {.kind = PLN_ATTR_DICT};
  pln_attrs fields = 0;
  if (!at_close(r, close)) {
    do
      PLN_TRY(read_option_field(r, &in, &fields));
    while (pln_reader_accept(r, ','));
    if (!at_close(r, close))
      return pln_reader_expected(r, "',' or '}' after the field");
  }
  dict.v.dict = fields;
  return store_option_value(r->engine, row->name, dict, out);
}

static pln_status read_option(pln_reader *r, const level *in, pln_attrs *out) {
  char whom[256];
  size_t begin;
  pln_option row;
  pln_attrs read = 0;
  PLN_TRY(find_row(r, in, &begin, &row, *out));
  snprintf(whom, sizeof whom, "%s: option '%s'", in->whom, row.name);
  pln_reader_skip_space(r);
  begin = r->at;
  if (row.kind == PLN_ATTR_DICT) {
    PLN_TRY(pln_reader_expect(r, '{', "'{' and fields"));
    PLN_TRY(read_fields(r, &row, whom, '}', &read));
  } else {
    PLN_TRY(read_option_value(r, &row, whom, &read));
  }
  return accept_option_value(r, &row, whom, begin, read, out);
}

pln_status pln_options_read(pln_reader *r, const pln_option *rows, uint32_t n,
                            const char *whom, pln_attrs *out) {
  const level in = {
      .rows = rows, .n = n, .whom = whom, .what = "option", .close = '}'};
  *out = 0;
  if (!pln_reader_accept(r, '{') || pln_reader_accept(r, '}'))
    return PLN_OK;
  do
    PLN_TRY(read_option(r, &in, out));
  while (pln_reader_accept(r, ','));
  return pln_reader_expect(r, '}', "',' or '}' after the option");
}

pln_status pln_options_parse(pln_engine *engine, const pln_option *rows,
                             uint32_t n, const char *whom, const char *source,
                             pln_slice text, pln_attrs *out) {
  pln_reader r;
  pln_reader_init(&r, engine, source, text);
  pln_status status = pln_options_read(&r, rows, n, whom, out);
  pln_reader_skip_space(&r);
  if (status == PLN_OK && r.at < r.size)
    status = pln_reader_expected(&r, "the end");
  pln_reader_free(&r);
  return status;
}

/* Parses a list or table that takes all of the text; its outer brackets may be
 * missing. */
static pln_status parse_many(pln_reader *r, const pln_option *row,
                             const char *whom, pln_attrs *out) {
  bool dict = row->kind == PLN_ATTR_DICT;
  bool open = pln_reader_accept(r, dict ? '{' : '[');
  if (dict)
    PLN_TRY(read_fields(r, row, whom, open ? '}' : 0, out));
  else
    PLN_TRY(read_option_list(r, row, whom, open ? ']' : 0, out));
  pln_reader_skip_space(r);
  return r->at < r->size ? pln_reader_expected(r, "the end") : PLN_OK;
}

pln_status pln_option_parse(pln_engine *engine, const pln_option *row,
                            const char *whom, pln_slice text, pln_attrs *out) {
  pln_reader r;
  pln_attr value;
  pln_reader_init(&r, engine, row->name, text);
  pln_status status;
  if (row->kind == PLN_ATTR_DICT || is_list(row)) {
    status = parse_many(&r, row, whom, out);
  } else if (pln_option_read(row, text, &value)) {
    status = store_option_value(engine, row->name, value, out);
  } else {
    char wanted[256];
    pln_option_describe(row, wanted, sizeof wanted);
    status = pln_diag_error(engine, PLN_ERR_TYPE, NULL,
                            "%s expects %s, got '%.*s'", whom, wanted,
                            (int)(text.size < 60 ? text.size : 60), text.data);
  }
  pln_reader_free(&r);
  return status;
}

/* ----------------------------------------------------------------- printing */

typedef struct printer {
  pln_engine *engine;
  pln_write_fn write;
  void *ud;
} printer;

static pln_status write_option_text(const printer *p, const char *text) {
  return p->write(p->ud, text, strlen(text));
}

/* Writes the shortest text that reads back as the same number. */
static void write_float(double f, char *text, size_t size) {
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, size, "%.*g", digits, f);
    if (strtod(text, NULL) == f)
      return;
  }
}

static pln_status write_option_list(const printer *p, const pln_attr *value) {
  char text[32];
  PLN_TRY(write_option_text(p, "["));
  for (uint32_t i = 0; i < value->count; i++) {
    if (i)
      PLN_TRY(write_option_text(p, ","));
    if (value->kind == PLN_ATTR_STRINGS) {
      PLN_TRY(pln_pipeline_quote(value->v.strings[i], p->write, p->ud));
      continue;
    }
    if (value->kind == PLN_ATTR_FLOATS)
      write_float(value->v.floats[i], text, sizeof text);
    else
      snprintf(text, sizeof text, "%lld", (long long)value->v.ints[i]);
    PLN_TRY(write_option_text(p, text));
  }
  return write_option_text(p, "]");
}

static pln_status write_lists(const printer *p, pln_attrs items) {
  PLN_TRY(write_option_text(p, "["));
  for (uint32_t i = 0; i < pln_attrs_count(p->engine, items); i++) {
    if (i)
      PLN_TRY(write_option_text(p, ","));
    PLN_TRY(write_option_list(p, pln_attrs_at(p->engine, items, i)));
  }
  return write_option_text(p, "]");
}

static pln_status put_plain(const printer *p, const pln_attr *value) {
  char text[64];
  switch ((pln_attr_kind)value->kind) {
  case PLN_ATTR_STRING: return pln_pipeline_quote(value->v.s, p->write, p->ud);
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS: return write_option_list(p, value);
  case PLN_ATTR_LIST: return write_lists(p, value->v.dict);
  case PLN_ATTR_BOOL:
    return write_option_text(p, value->v.i ? "true" : "false");
  case PLN_ATTR_FLOAT: write_float(value->v.f, text, sizeof text); break;
  default: snprintf(text, sizeof text, "%lld", (long long)value->v.i); break;
  }
  return write_option_text(p, text);
}

/* Prints "{a=1,b=2}"; the values are not DICTs. Prints nothing if there are
 * none. */
static pln_status put_fields(const printer *p, pln_attrs fields) {
  uint32_t n = pln_attrs_count(p->engine, fields);
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *value = pln_attrs_at(p->engine, fields, i);
    PLN_TRY(write_option_text(p, i ? "," : "{"));
    PLN_TRY(pln_pipeline_put_name(p->engine, value->name, p->write, p->ud));
    PLN_TRY(write_option_text(p, "="));
    PLN_TRY(put_plain(p, value));
  }
  return n ? write_option_text(p, "}") : write_option_text(p, "{}");
}

pln_status pln_options_print(pln_engine *engine, pln_attrs options,
                             pln_write_fn write, void *ud) {
  const printer p = {engine, write, ud};
  uint32_t n = pln_attrs_count(engine, options);
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *value = pln_attrs_at(engine, options, i);
    PLN_TRY(write_option_text(&p, i ? "," : "{"));
    PLN_TRY(pln_pipeline_put_name(engine, value->name, write, ud));
    PLN_TRY(write_option_text(&p, "="));
    PLN_TRY(value->kind == PLN_ATTR_DICT ? put_fields(&p, value->v.dict)
                                         : put_plain(&p, value));
  }
  return n ? write_option_text(&p, "}") : PLN_OK;
}
