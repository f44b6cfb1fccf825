/* config.c: options of passes and config keys: rows, values, checks.
 *
 * Called when passes and contexts are made and by the pipeline's parser. What
 * always holds: a value that got past here has its row's kind. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "pass/pass.h"

/* ------------------------------------------------------------------- rows */

static pln_status copy_text(pln_engine *engine, const char *text,
                            const char **out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(engine, pln_text(text), &symbol));
  *out = pln_symbol_text(engine, symbol).data;
  return PLN_OK;
}

static pln_status bad_row(pln_engine *engine, const pln_option *row) {
  return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                        "option '%s' needs a kind (an integer, a number, a "
                        "string, true or false) and a default of that kind",
                        row->name);
}

pln_status pln_option_copy(pln_engine *engine, const pln_option *row,
                           pln_option *out) {
  pln_attr value;
  if (!row->name || !*row->name)
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "an option needs a name");
  if (!pln_option_read(row, pln_text(row->fallback), &value))
    return bad_row(engine, row);
  *out = *row;
  PLN_TRY(copy_text(engine, row->name, &out->name));
  PLN_TRY(copy_text(engine, row->fallback, &out->fallback));
  if (row->choices)
    PLN_TRY(copy_text(engine, row->choices, &out->choices));
  return copy_text(engine, row->doc, &out->doc);
}

const pln_option *pln_option_find(const pln_option *rows, uint32_t n,
                                  pln_slice name) {
  for (uint32_t i = 0; i < n; i++)
    if (pln_slice_is(name, rows[i].name))
      return &rows[i];
  return NULL;
}

pln_status pln_option_unknown(pln_engine *engine, const pln_span *span,
                              const char *whom, const pln_option *rows,
                              uint32_t n, pln_slice name) {
  char hint[160] = "";
  char wanted[128];
  const char **names = pln_mem_new(engine, ((size_t)n + 1) * sizeof *names);
  if (!names)
    return pln_nomem(engine);
  for (uint32_t i = 0; i < n; i++)
    names[i] = rows[i].name;
  snprintf(wanted, sizeof wanted, "%.*s",
           (int)(name.size < 127 ? name.size : 127), name.data);
  pln_suggest(wanted, n, names, hint, sizeof hint);
  if (!*hint && n)
    snprintf(hint, sizeof hint, "; it has '%s'", rows[0].name);
  pln_mem_free(engine, names, ((size_t)n + 1) * sizeof *names);
  return pln_diag_error(engine, PLN_ERR_NAME, span, "%s has no option '%s'%s",
                        whom, wanted, hint);
}

pln_status pln_config_register(pln_engine *engine, const pln_option *key) {
  struct pln_registry *r = engine->passes;
  if (key->name && pln_option_find(r->keys, r->n_keys, pln_text(key->name)))
    return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                          "config key '%s' is registered already", key->name);
  PLN_TRY(pln_mem_grow(engine, (void **)&r->keys, &r->cap_keys,
                       (size_t)r->n_keys + 1, sizeof *r->keys));
  PLN_TRY(pln_option_copy(engine, key, &r->keys[r->n_keys]));
  r->n_keys++;
  return PLN_OK;
}

const pln_option *pln_config_row(const pln_engine *engine, uint32_t index) {
  const struct pln_registry *r = engine->passes;
  return index < r->n_keys ? &r->keys[index] : NULL;
}

/* ------------------------------------------------------------------ values */

static const char *kind_text(const pln_option *row) {
  return row->is_bool                  ? "true or false"
         : row->kind == PLN_ATTR_INT   ? "an integer"
         : row->kind == PLN_ATTR_FLOAT ? "a number"
                                       : "a string";
}

static const char *value_text(pln_attr_kind kind) {
  return kind == PLN_ATTR_INT      ? "an integer"
         : kind == PLN_ATTR_FLOAT  ? "a number"
         : kind == PLN_ATTR_STRING ? "a string"
                                   : "something else";
}

static bool is_whole(double f) {
  return f >= -9007199254740992.0 && f <= 9007199254740992.0 && f == floor(f);
}

/* `text` is one of the words that stand between bars. */
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
                               const char *key, const pln_attr *value) {
  if (!row->choices || value->kind != PLN_ATTR_STRING ||
      is_choice(row->choices, value->v.s))
    return PLN_OK;
  return pln_diag_error(engine, PLN_ERR_TYPE, NULL,
                        "'%s' expects one of %s, got '%.*s'", key, row->choices,
                        (int)(value->v.s.size < 64 ? value->v.s.size : 64),
                        value->v.s.data);
}

pln_status pln_option_check(pln_engine *engine, const pln_option *row,
                            const char *key, pln_attr *value) {
  pln_attr_kind given = (pln_attr_kind)value->kind;
  if (row->is_bool && given == PLN_ATTR_BOOL) {
    value->kind = PLN_ATTR_INT;
  } else if (row->kind == PLN_ATTR_FLOAT && given == PLN_ATTR_INT) {
    value->v.f = (double)value->v.i;
    value->kind = PLN_ATTR_FLOAT;
  } else if (row->kind == PLN_ATTR_INT && !row->is_bool &&
             given == PLN_ATTR_FLOAT && is_whole(value->v.f)) {
    value->v.i = (int64_t)value->v.f;
    value->kind = PLN_ATTR_INT;
  }
  if (value->kind != row->kind)
    return pln_diag_error(engine, PLN_ERR_TYPE, NULL, "'%s' expects %s, got %s",
                          key, kind_text(row), value_text(given));
  if (row->is_bool && (value->v.i < 0 || value->v.i > 1))
    return pln_diag_error(engine, PLN_ERR_TYPE, NULL,
                          "'%s' expects true or false, got %lld", key,
                          (long long)value->v.i);
  return check_choice(engine, row, key, value);
}

static bool read_bool(pln_slice text, int64_t *out) {
  *out = pln_slice_is(text, "true") || pln_slice_is(text, "1");
  return *out || pln_slice_is(text, "false") || pln_slice_is(text, "0");
}

/* The whole of `text` as an integer or a number. */
static bool read_number(pln_slice text, bool integer, pln_attr *out) {
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
  if (row->is_bool)
    return row->kind == PLN_ATTR_INT && read_bool(text, &out->v.i);
  return (row->kind == PLN_ATTR_INT || row->kind == PLN_ATTR_FLOAT) &&
         read_number(text, row->kind == PLN_ATTR_INT, out);
}

/* ------------------------------------------------------- whole dictionaries */

/* Checks entry `i` of `attrs` against its row, found by the caller. */
typedef pln_status (*row_of_fn)(pln_engine *engine, const void *ud,
                                const pln_attr *entry, const pln_option **row);

static pln_status check_all(pln_engine *engine, pln_attrs attrs, row_of_fn fn,
                            const void *ud, pln_attrs *out) {
  uint32_t n = pln_attrs_count(engine, attrs);
  *out = attrs;
  for (uint32_t i = 0; i < n; i++) {
    pln_attr entry = *pln_attrs_get(engine, attrs, i);
    uint8_t kind = entry.kind;
    const pln_option *row;
    PLN_TRY(fn(engine, ud, &entry, &row));
    const char *key = pln_symbol_text(engine, entry.name).data;
    PLN_TRY(pln_option_check(engine, row, key, &entry));
    if (entry.kind != kind)
      PLN_TRY(pln_attrs_with(engine, *out, &entry, out));
  }
  return PLN_OK;
}

static pln_status pass_row(pln_engine *engine, const pln_span *span,
                           const pln_pass *pass, pln_slice name,
                           const pln_option **row) {
  char whom[160];
  const pln_pass_def *def = pass->def;
  *row = pln_option_find(def->options, def->n_options, name);
  if (*row)
    return PLN_OK;
  snprintf(whom, sizeof whom, "pass '%s'", pln_pass_name(pass));
  return pln_option_unknown(engine, span, whom, def->options, def->n_options,
                            name);
}

static pln_status option_row(pln_engine *engine, const void *ud,
                             const pln_attr *entry, const pln_option **row) {
  return pass_row(engine, NULL, ud, pln_symbol_text(engine, entry->name), row);
}

pln_status pln_options_check(pln_engine *engine, const pln_pass *pass,
                             pln_attrs attrs, pln_attrs *out) {
  return check_all(engine, attrs, option_row, pass, out);
}

static pln_status unknown_key(pln_engine *engine, pln_slice key) {
  const struct pln_registry *r = engine->passes;
  char text[512] = "";
  size_t used = 0;
  for (uint32_t i = 0; i < r->n_keys && used < sizeof text; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s'%s'",
                             i ? ", " : "", r->keys[i].name);
  return pln_diag_error(engine, PLN_ERR_NAME, NULL,
                        "there is no config key '%s'; there are %s, and "
                        "'Pass.option' for each option of a pass",
                        key.data, text);
}

/* The last dot of the key parts pass and option. */
static const char *last_dot(pln_slice key) {
  for (size_t i = key.size; i-- > 0;)
    if (key.data[i] == '.')
      return key.data + i;
  return NULL;
}

static pln_status config_row(pln_engine *engine, const void *ud,
                             const pln_attr *entry, const pln_option **row) {
  const struct pln_registry *r = ud;
  pln_slice key = pln_symbol_text(engine, entry->name);
  const char *dot = last_dot(key);
  pln_symbol name;
  *row = pln_option_find(r->keys, r->n_keys, key);
  if (*row)
    return PLN_OK;
  if (!dot)
    return unknown_key(engine, key);
  pln_slice owner = {key.data, (size_t)(dot - key.data)};
  pln_slice option = {dot + 1, key.size - owner.size - 1};
  PLN_TRY(pln_symbol_intern(engine, owner, &name));
  const pln_pass *pass = pln_pass_lookup(engine, name);
  if (!pass)
    return pln_pass_unknown(engine, NULL,
                            "config: ", pln_symbol_text(engine, name).data);
  return pass_row(engine, NULL, pass, option, row);
}

pln_status pln_config_check(pln_engine *engine, pln_attrs config,
                            pln_attrs *out) {
  return check_all(engine, config, config_row, engine->passes, out);
}
