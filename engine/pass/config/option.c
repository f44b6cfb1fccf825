/* option.c: options of passes and config keys: their rows (name, kind, bounds,
 * default), and checks of values against rows.
 *
 * Called when passes and contexts are made and by the parsers of options.
 * Invariant: a checked value has its row's kind, is within its bounds, and has
 * every field of a row with fields. Fields cannot have fields. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "pass/pass.h"

/* ------------------------------------------------------------------- kinds */

static bool has_numeric_kind(const pln_option *row) {
  return !row->is_bool &&
         (row->kind == PLN_ATTR_INT || row->kind == PLN_ATTR_FLOAT ||
          row->kind == PLN_ATTR_INTS || row->kind == PLN_ATTR_FLOATS);
}

static const char *kind_text(const pln_option *row) {
  switch (row->kind) {
  case PLN_ATTR_INT: return row->is_bool ? "true or false" : "an integer";
  case PLN_ATTR_FLOAT: return "a number";
  case PLN_ATTR_INTS: return "a list of integers";
  case PLN_ATTR_FLOATS: return "a list of numbers";
  case PLN_ATTR_STRINGS: return "a list of strings";
  case PLN_ATTR_LIST: return "a list of lists of integers";
  case PLN_ATTR_DICT:
    return row->entries == PLN_ATTR_STRINGS ? "a table of lists of strings"
                                            : "a table";
  case PLN_ATTR_NONE: return "a function";
  default: return "a string";
  }
}

static const char *value_text(pln_attr_kind kind) {
  switch (kind) {
  case PLN_ATTR_INT: return "an integer";
  case PLN_ATTR_FLOAT: return "a number";
  case PLN_ATTR_STRING: return "a string";
  case PLN_ATTR_BOOL: return "a boolean";
  case PLN_ATTR_INTS: return "a list of integers";
  case PLN_ATTR_FLOATS: return "a list of numbers";
  case PLN_ATTR_STRINGS: return "a list of strings";
  case PLN_ATTR_LIST: return "a list";
  case PLN_ATTR_DICT: return "a table";
  default: return "something else";
  }
}

void pln_option_describe(const pln_option *row, char *text, size_t size) {
  const char *list = row->kind == PLN_ATTR_STRINGS ? "a list of " : "one of ";
  if (row->choices)
    snprintf(text, size, "%s%s", list, row->choices);
  else if (has_numeric_kind(row) && row->least && row->most)
    snprintf(text, size, "%s from %s to %s", kind_text(row), row->least,
             row->most);
  else if (has_numeric_kind(row) && row->least)
    snprintf(text, size, "%s from %s on", kind_text(row), row->least);
  else if (has_numeric_kind(row) && row->most)
    snprintf(text, size, "%s up to %s", kind_text(row), row->most);
  else
    snprintf(text, size, "%s", kind_text(row));
}

/* ------------------------------------------------------------------ scalars */

static bool read_bool(pln_slice text, int64_t *out) {
  *out = pln_slice_is(text, "true") || pln_slice_is(text, "1");
  return *out || pln_slice_is(text, "false") || pln_slice_is(text, "0");
}

/* Reads all of `text` as an integer or a float. */
static bool read_option_number(pln_slice text, bool integer, pln_attr *out) {
  char copy[64];
  char *end;
  if (text.size == 0 || text.size >= sizeof copy)
    return false;
  memcpy(copy, text.data, text.size);
  copy[text.size] = 0;
  errno = 0;
  if (integer)
    out->v.i = strtoll(copy, &end, 0);
  else
    out->v.f = strtod(copy, &end);
  return end == copy + text.size && !(integer && errno == ERANGE);
}

bool pln_option_read(const pln_option *row, pln_slice text, pln_attr *out) {
  *out = (pln_attr){.kind = (uint8_t)row->kind};
  if (row->kind == PLN_ATTR_STRING) {
    out->v.s = text;
    return true;
  }
  if (row->is_bool) {
    out->kind = PLN_ATTR_BOOL;
    return row->kind == PLN_ATTR_INT && read_bool(text, &out->v.i);
  }
  return (row->kind == PLN_ATTR_INT || row->kind == PLN_ATTR_FLOAT) &&
         read_option_number(text, row->kind == PLN_ATTR_INT, out);
}

/* ------------------------------------------------------------------- rows */

static pln_status copy_text(pln_engine *engine, const char *text,
                            const char **out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(engine, pln_text(text), &symbol));
  *out = pln_symbol_text(engine, symbol).data;
  return PLN_OK;
}

static pln_status copy_texts(pln_engine *engine, const pln_option *row,
                             pln_option *out) {
  PLN_TRY(copy_text(engine, row->name, &out->name));
  PLN_TRY(copy_text(engine, row->fallback, &out->fallback));
  PLN_TRY(copy_text(engine, row->doc, &out->doc));
  if (row->choices)
    PLN_TRY(copy_text(engine, row->choices, &out->choices));
  if (row->least)
    PLN_TRY(copy_text(engine, row->least, &out->least));
  if (row->most)
    PLN_TRY(copy_text(engine, row->most, &out->most));
  return PLN_OK;
}

static bool is_bound(const pln_option *row, const char *text) {
  pln_attr value;
  bool integer = row->kind == PLN_ATTR_INT || row->kind == PLN_ATTR_INTS;
  return !text || (has_numeric_kind(row) &&
                   read_option_number(pln_text(text), integer, &value));
}

static bool is_kind(const pln_option *row, bool inner) {
  switch (row->kind) {
  case PLN_ATTR_INT:
  case PLN_ATTR_FLOAT:
  case PLN_ATTR_STRING:
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS:
  case PLN_ATTR_LIST:
    return row->n_fields == 0 && (!row->is_bool || row->kind == PLN_ATTR_INT);
  case PLN_ATTR_DICT:
    return !inner && !row->is_bool &&
           (row->n_fields > 0) != (row->entries != PLN_ATTR_NONE);
  case PLN_ATTR_NONE: return !inner && !row->is_bool && row->n_fields == 0;
  default: return false;
  }
}

static pln_status bad_row(pln_engine *engine, const pln_option *row,
                          const char *needs) {
  return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL, "option '%s' needs %s",
                        row->name, needs);
}

static pln_status check_row(pln_engine *engine, const pln_option *row,
                            bool inner) {
  if (!row->name || !*row->name)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "an option needs a name");
  if (!is_kind(row, inner))
    return bad_row(engine, row,
                   inner ? "a kind: an integer, a number, a string, true or "
                           "false, or a list"
                         : "a kind (an integer, a number, a string, true or "
                           "false, a list, a table with fields, or a function) "
                           "and a default of that kind");
  if (!is_bound(row, row->least) || !is_bound(row, row->most))
    return bad_row(engine, row, "bounds that are numbers of its kind");
  return PLN_OK;
}

static pln_status copy_fields(pln_engine *engine, const pln_option *row,
                              pln_option *out) {
  pln_option *fields = pln_mem_zeroed(engine, row->n_fields * sizeof *fields);
  if (!fields)
    return pln_nomem(engine);
  out->fields = fields;
  out->n_fields = row->n_fields;
  for (uint32_t i = 0; i < row->n_fields; i++) {
    const pln_option *field = &row->fields[i];
    PLN_TRY(check_row(engine, field, true));
    if (pln_option_find(row->fields, i, pln_text(field->name)))
      return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                            "field '%s' of option '%s' is listed twice",
                            field->name, row->name);
    fields[i] = *field;
    PLN_TRY(copy_texts(engine, field, &fields[i]));
  }
  return PLN_OK;
}

/* The default must be one of the values that the row allows. */
static pln_status check_default(pln_engine *engine, const pln_option *row) {
  pln_attr value;
  return pln_option_default(engine, row, &value);
}

pln_status pln_option_copy(pln_engine *engine, const pln_option *row,
                           pln_option *out) {
  PLN_TRY(check_row(engine, row, false));
  *out = *row;
  out->fields = NULL;
  out->n_fields = 0;
  pln_status status = copy_texts(engine, row, out);
  if (status == PLN_OK && row->n_fields)
    status = copy_fields(engine, row, out);
  if (status == PLN_OK)
    status = check_default(engine, out);
  if (status == PLN_OK)
    return PLN_OK;
  pln_options_free(engine, 1, out);
  *out = (pln_option){0};
  return status;
}

void pln_options_free(pln_engine *engine, uint32_t n, const pln_option *rows) {
  for (uint32_t i = 0; i < n; i++)
    pln_mem_free(engine, (pln_option *)rows[i].fields,
                 rows[i].n_fields * sizeof *rows[i].fields);
}

/* Most of many names differ early, so that their lengths are not counted. */
static bool is_named(const pln_option *row, pln_slice name) {
  for (size_t i = 0; i < name.size; i++)
    if (row->name[i] != name.data[i] || row->name[i] == 0)
      return false;
  return row->name[name.size] == 0;
}

const pln_option *pln_option_find(const pln_option *rows, uint32_t n,
                                  pln_slice name) {
  for (uint32_t i = 0; i < n; i++)
    if (is_named(&rows[i], name))
      return &rows[i];
  return NULL;
}

/* Appends "; did you mean 'b'?", or the list of names. */
static pln_status add_names(pln_buffer *text, const pln_option *rows,
                            uint32_t n, const char *wanted) {
  char hint[160] = "";
  size_t size = ((size_t)n + 1) * sizeof(char *);
  const char **names = pln_mem_new(text->engine, size);
  if (!names)
    return pln_nomem(text->engine);
  for (uint32_t i = 0; i < n; i++)
    names[i] = rows[i].name;
  pln_suggest(wanted, n, names, hint, sizeof hint);
  pln_mem_free(text->engine, names, size);
  if (*hint)
    return pln_buffer_text(text, hint);
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_buffer_printf(text, "%s'%s'", i ? ", " : "; it has ",
                              rows[i].name));
  return PLN_OK;
}

pln_status pln_option_unknown(pln_engine *engine, const char *whom,
                              const char *what, const pln_option *rows,
                              uint32_t n, pln_slice name) {
  pln_buffer text;
  char wanted[128];
  snprintf(wanted, sizeof wanted, "%.*s",
           (int)(name.size < 127 ? name.size : 127), name.data);
  pln_buffer_init(&text, engine);
  pln_status status = add_names(&text, rows, n, wanted);
  if (status == PLN_OK)
    status = pln_buffer_add(&text, "", 1);
  if (status == PLN_OK)
    status = pln_diag_error(engine, PLN_ERR_NAME, NULL, "%s has no %s '%s'%s",
                            whom, what, wanted, text.data);
  pln_buffer_free(&text);
  return status;
}

/* ------------------------------------------------------------------- checks */

static pln_status expects(pln_engine *engine, const pln_option *row,
                          const char *whom, const char *got) {
  char wanted[256];
  pln_option_describe(row, wanted, sizeof wanted);
  return pln_diag_error(engine, PLN_ERR_TYPE, NULL, "%s expects %s, got %s",
                        whom, wanted, got);
}

/* Returns true if `text` is one of the alternatives separated by '|'. */
static bool is_choice(const char *choices, pln_slice text) {
  for (const char *at = choices; at; at = strchr(at, '|')) {
    at += *at == '|';
    size_t n = strcspn(at, "|");
    if (n == text.size && !memcmp(at, text.data, n))
      return true;
  }
  return false;
}

static pln_status check_choice(pln_engine *engine, const pln_option *row,
                               const char *whom, pln_slice text) {
  char got[80];
  if (!row->choices || is_choice(row->choices, text))
    return PLN_OK;
  snprintf(got, sizeof got, "'%.*s'", (int)(text.size < 64 ? text.size : 64),
           text.data);
  return expects(engine, row, whom, got);
}

static pln_status check_int(pln_engine *engine, const pln_option *row,
                            const char *whom, int64_t value) {
  char got[32];
  pln_attr least = {.v.i = INT64_MIN}, most = {.v.i = INT64_MAX};
  if (row->least)
    (void)read_option_number(pln_text(row->least), true, &least);
  if (row->most)
    (void)read_option_number(pln_text(row->most), true, &most);
  if (value >= least.v.i && value <= most.v.i)
    return PLN_OK;
  snprintf(got, sizeof got, "%lld", (long long)value);
  return expects(engine, row, whom, got);
}

/* NaN is never within bounds. */
static pln_status check_float(pln_engine *engine, const pln_option *row,
                              const char *whom, double value) {
  char got[32];
  pln_attr least = {.v.f = -INFINITY}, most = {.v.f = INFINITY};
  if (row->least)
    (void)read_option_number(pln_text(row->least), false, &least);
  if (row->most)
    (void)read_option_number(pln_text(row->most), false, &most);
  if (value >= least.v.f && value <= most.v.f)
    return PLN_OK;
  snprintf(got, sizeof got, "%g", value);
  return expects(engine, row, whom, got);
}

static bool is_whole(double f) {
  return f >= -9007199254740992.0 && f <= 9007199254740992.0 && f == floor(f);
}

/* Converts a list of integers to floats, which live as long as the engine. */
static pln_status to_floats(pln_engine *engine, pln_attr *value) {
  pln_attrs kept;
  size_t size = ((size_t)value->count + 1) * sizeof(double);
  double *floats = pln_mem_new(engine, size);
  if (!floats)
    return pln_nomem(engine);
  for (uint32_t i = 0; i < value->count; i++)
    floats[i] = (double)value->v.ints[i];
  value->kind = PLN_ATTR_FLOATS;
  value->v.floats = floats;
  pln_status status = pln_attrs_make(engine, 1, value, &kept);
  pln_mem_free(engine, floats, size);
  if (status == PLN_OK)
    *value = *pln_attrs_at(engine, kept, 0);
  return status;
}

/* Replaces a string by the list of it, likewise kept. */
static pln_status to_list(pln_engine *engine, pln_attr *value) {
  pln_attrs kept;
  pln_slice only = value->v.s;
  value->kind = PLN_ATTR_STRINGS;
  value->count = 1;
  value->v.strings = &only;
  PLN_TRY(pln_attrs_make(engine, 1, value, &kept));
  *value = *pln_attrs_at(engine, kept, 0);
  return PLN_OK;
}

/* Applies lossless conversions. An empty table converts to any empty list. */
static pln_status convert(pln_engine *engine, const pln_option *row,
                          pln_attr *value) {
  pln_attr_kind given = (pln_attr_kind)value->kind;
  bool empty = given == PLN_ATTR_INTS && value->count == 0;
  if (row->is_bool && given == PLN_ATTR_INT && value->v.i >= 0 &&
      value->v.i <= 1) {
    value->kind = PLN_ATTR_BOOL;
  } else if (row->kind == PLN_ATTR_FLOAT && given == PLN_ATTR_INT) {
    value->v.f = (double)value->v.i;
    value->kind = PLN_ATTR_FLOAT;
  } else if (row->kind == PLN_ATTR_INT && !row->is_bool &&
             given == PLN_ATTR_FLOAT && is_whole(value->v.f)) {
    value->v.i = (int64_t)value->v.f;
    value->kind = PLN_ATTR_INT;
  } else if (row->kind == PLN_ATTR_FLOATS && given == PLN_ATTR_INTS) {
    return to_floats(engine, value);
  } else if (row->single && given == PLN_ATTR_STRING) {
    return to_list(engine, value);
  } else if (row->kind == PLN_ATTR_STRINGS && empty) {
    value->kind = PLN_ATTR_STRINGS;
  } else if ((row->kind == PLN_ATTR_DICT || row->kind == PLN_ATTR_LIST) &&
             empty) {
    value->kind = (uint8_t)row->kind;
    value->v.dict = 0;
  }
  return PLN_OK;
}

/* Every item is a list of integers. */
static pln_status check_lists(pln_engine *engine, const pln_option *row,
                              const char *whom, pln_attrs items) {
  for (uint32_t i = 0; i < pln_attrs_count(engine, items); i++) {
    const pln_attr *item = pln_attrs_at(engine, items, i);
    if (item->kind != PLN_ATTR_INTS)
      return expects(engine, row, whom, value_text((pln_attr_kind)item->kind));
  }
  return PLN_OK;
}

/* Checks the bounds of a value that has the row's kind. */
static pln_status check_bounds(pln_engine *engine, const pln_option *row,
                               const char *whom, const pln_attr *value) {
  switch ((pln_attr_kind)value->kind) {
  case PLN_ATTR_INT: return check_int(engine, row, whom, value->v.i);
  case PLN_ATTR_FLOAT: return check_float(engine, row, whom, value->v.f);
  case PLN_ATTR_STRING: return check_choice(engine, row, whom, value->v.s);
  case PLN_ATTR_INTS:
    for (uint32_t i = 0; i < value->count; i++)
      PLN_TRY(check_int(engine, row, whom, value->v.ints[i]));
    return PLN_OK;
  case PLN_ATTR_FLOATS:
    for (uint32_t i = 0; i < value->count; i++)
      PLN_TRY(check_float(engine, row, whom, value->v.floats[i]));
    return PLN_OK;
  case PLN_ATTR_STRINGS:
    for (uint32_t i = 0; i < value->count; i++)
      PLN_TRY(check_choice(engine, row, whom, value->v.strings[i]));
    return PLN_OK;
  case PLN_ATTR_LIST: return check_lists(engine, row, whom, value->v.dict);
  default: return PLN_OK;
  }
}

static pln_status check_plain(pln_engine *engine, const pln_option *row,
                              const char *whom, pln_attr *value) {
  char got[32];
  pln_attr_kind given = (pln_attr_kind)value->kind;
  PLN_TRY(convert(engine, row, value));
  if (value->kind == (row->is_bool ? PLN_ATTR_BOOL : row->kind))
    return check_bounds(engine, row, whom, value);
  snprintf(got, sizeof got, "%s", value_text(given));
  if (row->is_bool && given == PLN_ATTR_INT)
    snprintf(got, sizeof got, "%lld", (long long)value->v.i);
  return expects(engine, row, whom, got);
}

/* Adds a checked field to *all. */
static pln_status set_option_field(pln_engine *engine, const pln_option *row,
                                   const char *whom, pln_attr entry,
                                   pln_attrs *all) {
  char place[320];
  pln_slice name = pln_symbol_text(engine, entry.name);
  const pln_option *field = pln_option_find(row->fields, row->n_fields, name);
  if (!field)
    return pln_option_unknown(engine, whom, "field", row->fields, row->n_fields,
                              name);
  snprintf(place, sizeof place, "%s, field '%s'", whom, field->name);
  PLN_TRY(check_plain(engine, field, place, &entry));
  return pln_attrs_with(engine, *all, &entry, all);
}

pln_option pln_option_of_entry(const pln_option *row, const char *name) {
  return (pln_option){.name = name, .kind = row->entries, .doc = row->doc};
}

/* Checks the entries of a map. */
static pln_status check_entries(pln_engine *engine, const pln_option *row,
                                const char *whom, pln_attr *value) {
  uint32_t n = pln_attrs_count(engine, value->v.dict);
  pln_attrs all = 0;
  for (uint32_t i = 0; i < n; i++) {
    char place[320];
    pln_attr entry = *pln_attrs_at(engine, value->v.dict, i);
    pln_option item =
        pln_option_of_entry(row, pln_symbol_text(engine, entry.name).data);
    snprintf(place, sizeof place, "%s, '%s'", whom, item.name);
    PLN_TRY(check_plain(engine, &item, place, &entry));
    PLN_TRY(pln_attrs_with(engine, all, &entry, &all));
  }
  value->v.dict = all;
  return PLN_OK;
}

pln_status pln_option_check(pln_engine *engine, const pln_option *row,
                            const char *whom, pln_attr *value) {
  pln_attrs all;
  PLN_TRY(check_plain(engine, row, whom, value));
  if (row->kind != PLN_ATTR_DICT)
    return PLN_OK;
  if (row->entries)
    return check_entries(engine, row, whom, value);
  uint32_t n = pln_attrs_count(engine, value->v.dict);
  PLN_TRY(pln_option_defaults(engine, row->fields, row->n_fields, &all));
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(set_option_field(engine, row, whom,
                             *pln_attrs_at(engine, value->v.dict, i), &all));
  value->v.dict = all;
  return PLN_OK;
}

/* ----------------------------------------------------------------- defaults */

/* { name = default } of a row without fields. */
static pln_status plain_default(pln_engine *engine, const pln_option *row,
                                pln_attrs *out) {
  char whom[160];
  snprintf(whom, sizeof whom, "the default of option '%s'", row->name);
  PLN_TRY(pln_option_parse(engine, row, whom,
                           pln_text(row->fallback ? row->fallback : ""), out));
  pln_attr value = *pln_attrs_at(engine, *out, 0);
  return check_plain(engine, row, whom, &value);
}

pln_status pln_option_defaults(pln_engine *engine, const pln_option *rows,
                               uint32_t n, pln_attrs *out) {
  *out = 0;
  for (uint32_t i = 0; i < n; i++) {
    pln_attr value;
    PLN_TRY(pln_option_default(engine, &rows[i], &value));
    PLN_TRY(pln_attrs_with(engine, *out, &value, out));
  }
  return PLN_OK;
}

pln_status pln_option_default(pln_engine *engine, const pln_option *row,
                              pln_attr *out) {
  pln_attrs value;
  pln_attr dict = {.kind = PLN_ATTR_DICT};
  if (row->kind == PLN_ATTR_NONE) {
    *out = (pln_attr){.kind = PLN_ATTR_NONE};
    return pln_symbol_intern(engine, pln_text(row->name), &out->name);
  }
  if (row->kind != PLN_ATTR_DICT) {
    PLN_TRY(plain_default(engine, row, &value));
    *out = *pln_attrs_at(engine, value, 0);
    return PLN_OK;
  }
  /* Fields have no fields, so this recursion is one level deep. */
  PLN_TRY(pln_symbol_intern(engine, pln_text(row->name), &dict.name));
  PLN_TRY(
      pln_option_defaults(engine, row->fields, row->n_fields, &dict.v.dict));
  *out = dict;
  return PLN_OK;
}
