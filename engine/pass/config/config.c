/* config.c: the config keys of an engine; checks dictionaries of options and of
 * config keys against their rows.
 *
 * Called when passes and contexts are made, by the command's --set, and by
 * users. Invariant: a checked dictionary has only known names, each with a
 * valid value of its row. */

#include <stdio.h>

#include "pass/pass.h"

/* --------------------------------------------------------------- the registry
 */

static pln_status built_in(pln_engine *engine, const char *name) {
  return pln_diag_error(engine, PLN_ERR_NAME, NULL,
                        "config key '%s' is built in and stays as it is", name);
}

/* Returns the row of a key, or NULL. */
static pln_option *find_key(const pln_engine *engine, pln_slice name) {
  const struct pln_registry *r = engine->passes;
  return (pln_option *)pln_option_find(r->keys, r->n_keys, name);
}

/* Stores the default now: passes in threads read it and must not allocate in
 * the engine. */
static pln_status set_default(pln_engine *engine, const pln_option *row) {
  struct pln_registry *r = engine->passes;
  pln_attr value;
  PLN_TRY(pln_option_default(engine, row, &value));
  return pln_attrs_with(engine, r->key_defaults, &value, &r->key_defaults);
}

pln_status pln_config_register(pln_engine *engine, const pln_option *key) {
  struct pln_registry *r = engine->passes;
  pln_option copy;
  pln_option *row = key->name ? find_key(engine, pln_text(key->name)) : NULL;
  if (row && row < r->keys + r->n_inherited)
    return PLN_OK; /* a script registers its keys again when a child engine
                      reloads it */
  if (row && row < r->keys + r->n_built_in_keys)
    return built_in(engine, key->name);
  PLN_TRY(pln_mem_grow(engine, (void **)&r->keys, &r->cap_keys,
                       (size_t)r->n_keys + 1, sizeof *r->keys));
  PLN_TRY(pln_option_copy(engine, key, &copy));
  row = find_key(engine, pln_text(key->name));
  pln_status status = set_default(engine, &copy);
  if (status != PLN_OK) {
    pln_options_free(engine, 1, &copy);
    return status;
  }
  if (row)
    pln_options_free(engine, 1, row);
  else
    row = &r->keys[r->n_keys++];
  *row = copy;
  return PLN_OK;
}

pln_status pln_config_unregister(pln_engine *engine, const char *name) {
  struct pln_registry *r = engine->passes;
  pln_option *row = find_key(engine, pln_text(name));
  if (!row)
    return pln_diag_error(engine, PLN_ERR_NAME, NULL,
                          "there is no config key '%s'", name);
  if (row < r->keys + r->n_built_in_keys)
    return built_in(engine, name);
  pln_options_free(engine, 1, row);
  r->n_keys--;
  memmove(row, row + 1, (size_t)(r->keys + r->n_keys - row) * sizeof *row);
  return PLN_OK;
}

void pln_config_seal(pln_engine *engine) {
  engine->passes->n_built_in_keys = engine->passes->n_keys;
}

const pln_option *pln_config_key_at(const pln_engine *engine, uint32_t index) {
  const struct pln_registry *r = engine->passes;
  return index < r->n_keys ? &r->keys[index] : NULL;
}

/* ------------------------------------------------------------- unknown names
 */

typedef struct names {
  pln_engine *engine;
  uint32_t n, cap;
  const char **items; /* texts of symbols */
} names;

static pln_status add_name(names *list, const char *owner, const char *name) {
  char text[512];
  pln_symbol symbol;
  snprintf(text, sizeof text, "%s%s%s", owner, *owner ? "." : "", name);
  PLN_TRY(pln_symbol_intern(list->engine, pln_text(text), &symbol));
  PLN_TRY(pln_mem_grow(list->engine, (void **)&list->items, &list->cap,
                       (size_t)list->n + 1, sizeof *list->items));
  list->items[list->n++] = pln_symbol_text(list->engine, symbol).data;
  return PLN_OK;
}

static pln_status add_rows(names *list, const char *owner,
                           const pln_option *rows, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(add_name(list, owner, rows[i].name));
  return PLN_OK;
}

/* Adds every key, "key.field" and "Pass.option" to the list of candidates. */
static pln_status add_all(names *list) {
  const struct pln_registry *r = list->engine->passes;
  PLN_TRY(add_rows(list, "", r->keys, r->n_keys));
  for (uint32_t i = 0; i < r->n_keys; i++)
    PLN_TRY(add_rows(list, r->keys[i].name, r->keys[i].fields,
                     r->keys[i].n_fields));
  for (uint32_t i = 0; i < r->n_passes; i++) {
    const pln_pass *pass = r->passes[i].pass;
    PLN_TRY(add_rows(list, pln_pass_name(pass), pass->def->options,
                     pass->def->n_options));
  }
  return PLN_OK;
}

/* "; there are 'a', 'b', ..." */
static pln_status write_keys(const struct pln_registry *r, pln_buffer *text) {
  for (uint32_t i = 0; i < r->n_keys; i++)
    PLN_TRY(pln_buffer_printf(text, "%s'%s'", i ? ", " : "; there are ",
                              r->keys[i].name));
  return pln_buffer_add(text, ", and 'Pass.option' for each option of a pass",
                        sizeof ", and 'Pass.option' for each option of a pass");
}

static pln_status say_unknown(pln_engine *engine, const char *key,
                              const names *list) {
  char hint[160];
  pln_buffer text;
  pln_suggest(key, list->n, list->items, hint, sizeof hint);
  pln_buffer_init(&text, engine);
  pln_status status = *hint ? pln_buffer_add(&text, hint, strlen(hint) + 1)
                            : write_keys(engine->passes, &text);
  if (status == PLN_OK)
    status = pln_diag_error(engine, PLN_ERR_NAME, NULL,
                            "there is no config key '%s'%s", key, text.data);
  pln_buffer_free(&text);
  return status;
}

static pln_status unknown_key(pln_engine *engine, const char *key) {
  names list = {.engine = engine};
  pln_status status = add_all(&list);
  if (status == PLN_OK)
    status = say_unknown(engine, key, &list);
  pln_mem_free(engine, list.items, list.cap * sizeof *list.items);
  return status;
}

/* ------------------------------------------------------- whole dictionaries */

static pln_status unknown_option(pln_engine *engine, const char *whom,
                                 const pln_option *rows, uint32_t n,
                                 pln_slice name) {
  return pln_option_unknown(engine, whom, "option", rows, n, name);
}

pln_status pln_options_check_rows(pln_engine *engine, const pln_option *rows,
                                  uint32_t n, const char *whom, pln_attrs attrs,
                                  pln_attrs *out) {
  uint32_t count = pln_attrs_count(engine, attrs);
  *out = attrs;
  for (uint32_t i = 0; i < count; i++) {
    char place[256];
    pln_attr entry = *pln_attrs_at(engine, attrs, i);
    pln_slice name = pln_symbol_text(engine, entry.name);
    const pln_option *row = pln_option_find(rows, n, name);
    if (!row)
      return unknown_option(engine, whom, rows, n, name);
    snprintf(place, sizeof place, "%s: option '%s'", whom, row->name);
    PLN_TRY(pln_option_check(engine, row, place, &entry));
    PLN_TRY(pln_attrs_with(engine, *out, &entry, out));
  }
  return PLN_OK;
}

pln_status pln_options_check(pln_engine *engine, const pln_pass *pass,
                             pln_attrs attrs, pln_attrs *out) {
  char whom[160];
  const pln_pass_def *def = pass->def;
  snprintf(whom, sizeof whom, "pass '%s'", pln_pass_name(pass));
  return pln_options_check_rows(engine, def->options, def->n_options, whom,
                                attrs, out);
}

pln_status pln_options_over(pln_engine *engine, pln_attrs base,
                            pln_attrs *options) {
  pln_attrs given = *options;
  uint32_t n = pln_attrs_count(engine, given);
  *options = base;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(pln_attrs_with(engine, *options, pln_attrs_at(engine, given, i),
                           options));
  return PLN_OK;
}

/* ------------------------------------------------------------ keys of configs
 */

/* The meaning of a config entry: a key's row, a field of a key's row, or an
 * option of a pass. */
typedef struct meaning {
  const pln_option *row;
  const pln_option *key; /* NULL unless the row is a field */
  const pln_pass *pass;  /* NULL unless the row is an option */
} meaning;

/* The last dot separates key and field, or pass and option. */
static const char *last_dot(pln_slice key) {
  for (size_t i = key.size; i-- > 0;)
    if (key.data[i] == '.')
      return key.data + i;
  return NULL;
}

/* Finds the option named after the dot. */
static pln_status find_option(pln_engine *engine, const pln_pass *pass,
                              pln_slice option, meaning *out) {
  char whom[160];
  const pln_pass_def *def = pass->def;
  out->row = pln_option_find(def->options, def->n_options, option);
  if (out->row)
    return PLN_OK;
  snprintf(whom, sizeof whom, "pass '%s'", pln_pass_name(pass));
  return unknown_option(engine, whom, def->options, def->n_options, option);
}

static pln_status find_field(pln_engine *engine, const pln_option *key,
                             pln_slice field, meaning *out) {
  char whom[200];
  out->key = key;
  out->row = pln_option_find(key->fields, key->n_fields, field);
  if (out->row)
    return PLN_OK;
  snprintf(whom, sizeof whom, "config key '%s'", key->name);
  return pln_option_unknown(engine, whom, "field", key->fields, key->n_fields,
                            field);
}

static const pln_pass *find_pass(const pln_engine *engine, pln_slice name) {
  const struct pln_registry *r = engine->passes;
  for (uint32_t i = 0; i < r->n_passes; i++)
    if (pln_slice_is(name, pln_pass_name(r->passes[i].pass)))
      return r->passes[i].pass;
  return NULL;
}

/* out->row is NULL if the name is unknown. Allocates nothing. */
static pln_status find_meaning(pln_engine *engine, pln_slice key,
                               meaning *out) {
  const char *dot = last_dot(key);
  *out = (meaning){.row = find_key(engine, key)};
  if (out->row || !dot)
    return PLN_OK;
  pln_slice owner = {key.data, (size_t)(dot - key.data)};
  pln_slice member = {dot + 1, key.size - owner.size - 1};
  const pln_option *outer = find_key(engine, owner);
  if (outer && outer->n_fields)
    return find_field(engine, outer, member, out);
  out->pass = find_pass(engine, owner);
  return out->pass ? find_option(engine, out->pass, member, out) : PLN_OK;
}

/* Sets a field in the table of its key, beside the fields given before. */
static pln_status set_config_field(pln_engine *engine, const pln_option *key,
                                   const pln_option *field, pln_attr entry,
                                   pln_attrs *out) {
  pln_attr dict = {.kind = PLN_ATTR_DICT};
  const pln_attr *former = pln_attrs_find(engine, *out, key->name);
  PLN_TRY(pln_symbol_intern(engine, pln_text(key->name), &dict.name));
  PLN_TRY(pln_symbol_intern(engine, pln_text(field->name), &entry.name));
  if (former)
    dict.v.dict = former->v.dict;
  else
    PLN_TRY(
        pln_option_defaults(engine, key->fields, key->n_fields, &dict.v.dict));
  PLN_TRY(pln_attrs_with(engine, dict.v.dict, &entry, &dict.v.dict));
  return pln_attrs_with(engine, *out, &dict, out);
}

static pln_status check_entry(pln_engine *engine, pln_attr entry,
                              pln_attrs *out) {
  char whom[600];
  meaning m;
  pln_slice key = pln_symbol_text(engine, entry.name);
  PLN_TRY(find_meaning(engine, key, &m));
  if (!m.row)
    return unknown_key(engine, key.data);
  if (m.key)
    snprintf(whom, sizeof whom, "config key '%s', field '%s'", m.key->name,
             m.row->name);
  else
    snprintf(whom, sizeof whom, "config key '%s'", key.data);
  PLN_TRY(pln_option_check(engine, m.row, whom, &entry));
  if (m.key)
    return set_config_field(engine, m.key, m.row, entry, out);
  return pln_attrs_with(engine, *out, &entry, out);
}

/* Entries are visited in order of names, so that a key comes before its fields.
 */
pln_status pln_config_check(pln_engine *engine, pln_attrs config,
                            pln_attrs *out) {
  uint32_t n = pln_attrs_count(engine, config);
  *out = 0;
  for (uint32_t i = 0; i < n; i++)
    PLN_TRY(check_entry(engine, *pln_attrs_at(engine, config, i), out));
  return PLN_OK;
}

pln_status pln_config_parse(pln_engine *engine, const char *key, pln_slice text,
                            pln_attrs *out) {
  char whom[600];
  meaning m;
  pln_attrs read;
  *out = 0;
  PLN_TRY(find_meaning(engine, pln_text(key), &m));
  if (!m.row)
    return PLN_OK;
  snprintf(whom, sizeof whom, "config key '%s'", key);
  PLN_TRY(pln_option_parse(engine, m.row, whom, text, &read));
  pln_attr value = *pln_attrs_at(engine, read, 0);
  PLN_TRY(pln_symbol_intern(engine, pln_text(key), &value.name));
  PLN_TRY(pln_option_check(engine, m.row, whom, &value));
  return pln_attrs_make(engine, 1, &value, out);
}

/* ------------------------------------------------------------------ reading */

/* The value in the dictionary, or in that of the defaults; NULL if neither has
 * it. */
static const pln_attr *find_in(const pln_engine *e, pln_attrs values,
                               const char *key, const meaning *m) {
  if (!m->key)
    return pln_attrs_find(e, values, key);
  const pln_attr *dict = pln_attrs_find(e, values, m->key->name);
  if (!dict || dict->kind != PLN_ATTR_DICT)
    return NULL;
  return pln_attrs_find(e, dict->v.dict, m->row->name);
}

/* Allocates nothing, so that passes in threads may call it. */
pln_status pln_context_config_value(const pln_context *context, const char *key,
                                    pln_attr *out) {
  meaning m;
  pln_engine *engine = context->engine;
  PLN_TRY(find_meaning(engine, pln_text(key), &m));
  if (!m.row)
    return unknown_key(engine, key);
  const pln_attr *value = find_in(engine, context->config, key, &m);
  if (!value && m.pass)
    value = pln_attrs_find(engine, m.pass->def->defaults, m.row->name);
  else if (!value)
    value = find_in(engine, engine->passes->key_defaults, key, &m);
  *out = *value;
  return PLN_OK;
}
