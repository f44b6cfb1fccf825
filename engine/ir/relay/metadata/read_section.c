/* relay/metadata/read_section.c: reads the metadata section, TVM's table of
 * nodes in JSON, and resolves references to its entries.
 *
 * Called by the parser. The section is parsed as JSON at once; a node is
 * converted when something refers to it, a constant's bytes once. Everything is
 * checked before use. */

#include "ir/relay/metadata/read_section.h"
#include "ir/relay/metadata/object.h"
#include "ir/relay/metadata/references.h"
#include "ir/tensor/ndarray.h"

#include <stdio.h>

/* The limit of type keys: looking one up is linear in their number. */
enum { MAX_KEYS = 1000 };

/* ----------------------------------------------------------------- section */

const pln_json_value *pln_metadata_read_node(const pln_metadata_reader *m,
                                             uint32_t node) {
  return node < m->n_nodes ? &m->json.values[m->nodes[node]] : NULL;
}

const pln_json_value *pln_metadata_read_field(const pln_metadata_reader *m,
                                              uint32_t node, const char *name) {
  const pln_json_value *attrs =
      pln_json_get(&m->json, pln_metadata_read_node(m, node), "attrs");
  return pln_json_get(&m->json, attrs, name);
}

bool pln_metadata_reader_is(const pln_metadata_reader *m, uint32_t node,
                            const char *key) {
  const pln_json_value *v =
      pln_json_get(&m->json, pln_metadata_read_node(m, node), "type_key");
  return v && pln_slice_is(v->text, key);
}

/* Lists the indices of an array's values, for access by position. */
static pln_status list_values(pln_metadata_reader *m,
                              const pln_json_value *array, uint32_t **out,
                              uint32_t *n) {
  *n = array && array->kind == PLN_JSON_ARRAY ? array->count : 0;
  *out = pln_mem_new(m->engine, *n * sizeof **out);
  if (*n > 0 && !*out) {
    *n = 0;
    return pln_nomem(m->engine);
  }
  uint32_t at = array ? (uint32_t)(array - m->json.values) + 1 : 0;
  for (uint32_t i = 0; i < *n; i++) {
    (*out)[i] = at;
    at = m->json.values[at].next;
  }
  return PLN_OK;
}

/* Allocates the tables of converted nodes and retains the given constants. */
static pln_status make_tables(pln_metadata_reader *m,
                              const pln_parse_options *given) {
  if (given->n_constants > UINT32_MAX / 2 - m->n_nodes ||
      given->n_objects > UINT32_MAX / 2)
    return pln_nomem(m->engine);
  uint32_t n = m->n_nodes + given->n_constants;
  m->constants = pln_mem_zeroed(m->engine, n * sizeof *m->constants);
  m->n_constants = m->constants ? n : 0;
  m->dims = pln_mem_zeroed(m->engine, m->n_nodes * sizeof *m->dims);
  m->marks = pln_mem_zeroed(m->engine, m->n_nodes * sizeof *m->marks);
  if ((n > 0 && !m->constants) || (m->n_nodes > 0 && (!m->dims || !m->marks)))
    return pln_nomem(m->engine);
  for (uint32_t i = 0; i < given->n_constants; i++)
    m->constants[m->n_nodes + i] = pln_tensor_retain(given->constants[i]);
  return PLN_OK;
}

static pln_status open_section(pln_metadata_reader *m,
                               const pln_parse_options *given) {
  const pln_json *j = &m->json;
  const pln_json_value *whole = j->values;
  uint64_t root = 0;
  PLN_TRY(
      list_values(m, pln_json_get(j, whole, "nodes"), &m->nodes, &m->n_nodes));
  PLN_TRY(list_values(m, pln_json_get(j, whole, "b64ndarrays"), &m->arrays,
                      &m->n_arrays));
  PLN_TRY(make_tables(m, given));
  if (!pln_json_number(pln_json_get(j, whole, "root"), &root) ||
      root >= m->n_nodes)
    return PLN_ERR_FORMAT;
  const pln_json_value *map = pln_metadata_read_node(m, (uint32_t)root);
  const pln_json_value *keys = pln_json_get(j, map, "keys");
  const pln_json_value *data = pln_json_get(j, map, "data");
  if (!pln_metadata_reader_is(m, (uint32_t)root, "Map") || !keys || !data ||
      keys->count > MAX_KEYS || keys->kind != PLN_JSON_ARRAY ||
      data->kind != PLN_JSON_ARRAY)
    return PLN_ERR_FORMAT;
  m->keys = (uint32_t)(keys - j->values);
  m->entries = (uint32_t)(data - j->values);
  return PLN_OK;
}

/* Makes an empty token at a byte offset of the section, for diagnostics. */
static pln_token token_at(const pln_parser *p, pln_slice section, size_t at) {
  pln_lexer x = p->lexer;
  pln_token token = {.row = x.row, .whole = {section.data + at, 0}};
  const char *line = x.line;
  for (const char *c = x.at; c < section.data + at; c++)
    if (*c == '\n') {
      token.row++;
      line = c + 1;
    }
  token.column = (uint32_t)(section.data + at - line) + 1;
  return token;
}

static pln_status bad_section(pln_parser *p, pln_slice section, size_t at) {
  pln_token token = token_at(p, section, at);
  return pln_parse_fail(p, &token, "this is not a metadata section of TVM");
}

/* Refuses text that was printed without the elements of large constants
 * (PLN_CONSTANTS_BRIEF). The error stands at the first such tensor. */
static pln_status find_omitted(pln_parser *p, pln_slice section) {
  const pln_metadata_reader *m = p->meta;
  for (uint32_t i = 0; i < m->n_arrays; i++) {
    const pln_json_value *v = &m->json.values[m->arrays[i]];
    const pln_json_value *dtype = pln_json_get(&m->json, v, "dtype");
    if (v->kind != PLN_JSON_OBJECT || !dtype ||
        !pln_json_get(&m->json, v, PLN_META_OMITTED))
      continue;
    pln_token token =
        token_at(p, section, (size_t)(dtype->text.data - section.data));
    return pln_parse_fail(
        p, &token,
        "this text leaves the elements of large constants out, so that it "
        "cannot be read; mod:text() and 'perilune fmt --full' give the "
        "complete text");
  }
  return PLN_OK;
}

pln_status pln_metadata_reader_parse(pln_parser *p, pln_slice section) {
  pln_metadata_reader *m = pln_mem_zeroed(p->engine, sizeof *m);
  if (!m)
    return pln_nomem(p->engine);
  m->engine = p->engine;
  p->meta = m;
  pln_status status = pln_json_read(&m->json, p->engine, section);
  size_t at = status == PLN_OK ? 0 : m->json.error;
  if (status == PLN_OK)
    status = open_section(m, p->given);
  if (status == PLN_ERR_FORMAT)
    return bad_section(p, section, at);
  return status == PLN_OK ? find_omitted(p, section) : status;
}

void pln_metadata_reader_free(pln_parser *p) {
  pln_metadata_reader *m = p->meta;
  pln_engine *e = p->engine;
  if (!m)
    return;
  for (uint32_t i = 0; i < m->n_constants; i++)
    pln_tensor_release(m->constants[i]);
  pln_mem_free(e, m->constants, m->n_constants * sizeof *m->constants);
  pln_mem_free(e, m->dims, m->n_nodes * sizeof *m->dims);
  pln_mem_free(e, m->marks, m->n_nodes * sizeof *m->marks);
  pln_mem_free(e, m->nodes, m->n_nodes * sizeof *m->nodes);
  pln_mem_free(e, m->arrays, m->n_arrays * sizeof *m->arrays);
  pln_json_free(&m->json);
  pln_mem_free(e, m, sizeof *m);
  p->meta = NULL;
}

/* -------------------------------------------------------------- references */

/* Returns the node that entry `index` of a list refers to, or PLN_NONE. */
static uint32_t entry_of(const pln_metadata_reader *m,
                         const pln_json_value *list, uint32_t index) {
  uint64_t node;
  if (!list || list->kind != PLN_JSON_ARRAY || index >= list->count)
    return PLN_NONE;
  /* Entries can be indexed because each is a number, which takes one value. */
  uint32_t at = (uint32_t)(list - m->json.values);
  if (list->next != at + 1 + list->count ||
      !pln_json_number(list + 1 + index, &node) || node >= m->n_nodes)
    return PLN_NONE;
  return (uint32_t)node;
}

/* Returns the node of meta[key][index] in the section, or PLN_NONE. *known: the
 * key exists; *count: its number of entries. */
static uint32_t find_entry(const pln_metadata_reader *m, pln_slice key,
                           uint32_t index, bool *known, uint32_t *count) {
  const pln_json_value *v = m->json.values;
  uint32_t name = m->keys + 1, data = m->entries + 1;
  uint64_t array;
  *known = false;
  *count = 0;
  for (uint32_t i = 0; i < v[m->keys].count && i < v[m->entries].count; i++) {
    if (!pln_slice_equal(v[name].text, key)) {
      name = v[name].next;
      data = v[data].next;
      continue;
    }
    *known = true;
    if (!pln_json_number(&v[data], &array) || array >= m->n_nodes)
      return PLN_NONE;
    const pln_json_value *list = pln_json_get(
        &m->json, pln_metadata_read_node(m, (uint32_t)array), "data");
    *count = list ? list->count : 0;
    return entry_of(m, list, index);
  }
  return PLN_NONE;
}

/* Returns the index of the `index`-th given object with that type key, or
 * PLN_NONE. */
static uint32_t find_object(const pln_parser *p, pln_slice key,
                            uint32_t index) {
  const pln_parse_options *given = p->given;
  for (uint32_t i = 0; i < given->n_objects; i++) {
    pln_object_node node;
    size_t at = 0;
    if (pln_object_next(given->objects[i], &at, &node) &&
        pln_slice_equal(node.type_key, key) && index-- == 0)
      return i;
  }
  return PLN_NONE;
}

/* Resolves meta[key][index], in the section first, then among the given
 * constants and objects. Given constants are numbered after the nodes of the
 * section, objects after the constants. */
static uint32_t find_metadata_entry(const pln_parser *p, pln_slice key,
                                    uint32_t index, bool *known) {
  const pln_metadata_reader *m = p->meta;
  uint32_t count, node = find_entry(m, key, index, known, &count);
  uint32_t given = m->n_constants - m->n_nodes;
  if (node != PLN_NONE || index < count)
    return node;
  if (given > 0 && pln_slice_is(key, "relay.Constant")) {
    *known = true;
    return index - count < given ? m->n_nodes + (index - count) : PLN_NONE;
  }
  uint32_t object = find_object(p, key, index - count);
  *known = *known || object != PLN_NONE || find_object(p, key, 0) != PLN_NONE;
  return object == PLN_NONE ? PLN_NONE : m->n_constants + object;
}

/* Returns true for a constant of the section and for a given one. */
static bool is_constant(const pln_metadata_reader *m, uint32_t node) {
  return node < m->n_nodes ? pln_metadata_reader_is(m, node, "relay.Constant")
                           : node < m->n_constants;
}

/* Parses meta[key][index] and resolves it. *key is the token of the key. */
static pln_status read_metadata_entry(pln_parser *p, pln_token *key,
                                      uint32_t *entry, uint32_t *node) {
  uint32_t index;
  bool known = false;
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_expect(p, PLN_T_LBRACKET));
  *key = p->token;
  if (key->kind != PLN_T_NAME)
    return pln_parse_report_expected(p, "a type key");
  PLN_TRY(pln_parse_next(p));
  PLN_TRY(pln_parse_expect(p, PLN_T_RBRACKET));
  PLN_TRY(pln_parse_expect(p, PLN_T_LBRACKET));
  PLN_TRY(pln_parse_count(p, UINT32_MAX, &index));
  PLN_TRY(pln_parse_expect(p, PLN_T_RBRACKET));
  *entry = index;
  int size = key->text.size > 80 ? 80 : (int)key->text.size;
  *node = p->meta ? find_metadata_entry(p, key->text, index, &known) : PLN_NONE;
  if (*node != PLN_NONE)
    return PLN_OK;
  return known
             ? pln_parse_report(
                   p, key, PLN_ERR_NAME,
                   "the metadata section has no entry %u of '%.*s'", index,
                   size, key->text.data)
             : pln_parse_report(p, key, PLN_ERR_NAME,
                                "the metadata section has no entries of '%.*s'",
                                size, key->text.data);
}

static pln_status read_reference(pln_parser *p, pln_token *key,
                                 uint32_t *node) {
  uint32_t index;
  return read_metadata_entry(p, key, &index, node);
}

static pln_status bad_entry(pln_parser *p, const pln_token *key,
                            const char *what) {
  return pln_parse_report(p, key, PLN_ERR_FORMAT,
                          "this entry of the metadata section is not a %s",
                          what);
}

/* --------------------------------------------------------------- constants */

/* *out is the tensor of a constant, decoded at its first use. If the node holds
 * no array, an error is reported and *out is NULL. */
static pln_status constant_of(pln_parser *p, const pln_token *key,
                              uint32_t node, pln_tensor **out) {
  pln_metadata_reader *m = p->meta;
  uint64_t array;
  pln_status status = PLN_ERR_FORMAT;
  *out = node < m->n_constants ? m->constants[node] : NULL;
  if (*out)
    return PLN_OK;
  if (pln_metadata_reader_is(m, node, "relay.Constant") &&
      pln_json_number(pln_metadata_read_field(m, node, "data"), &array) &&
      array < m->n_arrays)
    status =
        pln_ndarray_read(p->engine, &m->json, &m->json.values[m->arrays[array]],
                         &m->constants[node]);
  if (status == PLN_ERR_FORMAT || status == PLN_ERR_ARGUMENT)
    return bad_entry(p, key, "constant");
  *out = m->constants[node];
  return status;
}

/* A constant that cannot be read is replaced by a scalar 0, after the error was
 * reported. */
pln_status pln_metadata_read_constant(pln_parser *p, pln_tensor **out,
                                      uint32_t *number) {
  pln_token key;
  pln_tensor *tensor = NULL;
  PLN_TRY(read_reference(p, &key, number));
  if (*number != PLN_NONE)
    PLN_TRY(constant_of(p, &key, *number, &tensor));
  if (!tensor)
    return pln_tensor_new(p->engine, PLN_FLOAT32, 0, NULL, out);
  *out = pln_tensor_retain(tensor);
  return PLN_OK;
}

pln_status pln_metadata_read_module(const pln_parser *p, pln_buffer *out,
                                    bool *found) {
  const pln_metadata_reader *m = p->meta;
  bool known;
  uint32_t node =
      m ? find_metadata_entry(p, pln_text(PLN_META_MODULE), 0, &known)
        : PLN_NONE;
  const pln_json_value *text =
      node != PLN_NONE && pln_metadata_reader_is(m, node, "runtime.String")
          ? pln_json_get(&m->json, pln_metadata_read_node(m, node), "repr_str")
          : NULL;
  *found = text != NULL;
  return text ? pln_json_text(text, out) : PLN_OK;
}

/* -------------------------------------------------------------------- dims */

static pln_status text_of(pln_parser *p, const pln_json_value *value,
                          pln_slice *out) {
  p->word.size = 0;
  PLN_TRY(pln_json_text(value, &p->word));
  *out = (pln_slice){p->word.data, p->word.size};
  return PLN_OK;
}

const pln_json_value *
pln_metadata_read_string(const pln_metadata_reader *m,
                         const pln_json_value *reference) {
  uint64_t node;
  if (!pln_json_number(reference, &node) || node >= m->n_nodes)
    return NULL;
  return pln_json_get(&m->json, pln_metadata_read_node(m, (uint32_t)node),
                      "repr_str");
}

enum { MAX_VARS = 1000 };

/* Returns the name, with a number appended if another tir.Var has it. */
static pln_status unused_name(pln_parser *p, const pln_json_value *name,
                              pln_symbol *out) {
  char text[256];
  pln_slice slice;
  PLN_TRY(text_of(p, name, &slice));
  PLN_TRY(pln_symbol_intern(p->engine, slice, out));
  const char *first = pln_symbol_text(p->engine, *out).data;
  for (int i = 1; pln_attrs_find(p->engine, p->tir_vars,
                                 pln_symbol_text(p->engine, *out).data);
       i++) {
    snprintf(text, sizeof text, "%.200s_%d", first, i);
    PLN_TRY(pln_symbol_intern(p->engine, pln_text(text), out));
  }
  return PLN_OK;
}

/* Makes a symbolic dim of a tir.Var. Its name and dtype are kept for printing.
 * Two tir.Vars of one name are different dims. */
static pln_status dim_of_var(pln_parser *p, const pln_token *key, uint32_t node,
                             pln_dim *out) {
  pln_metadata_reader *m = p->meta;
  const pln_json_value *name =
      pln_metadata_read_string(m, pln_metadata_read_field(m, node, "name"));
  const pln_json_value *dtype = pln_metadata_read_field(m, node, "dtype");
  pln_attr entry = {.kind = PLN_ATTR_STRING};
  if (!name || !dtype)
    return bad_entry(p, key, "tir.Var");
  if (pln_attrs_count(p->engine, p->tir_vars) == MAX_VARS)
    return pln_parse_fail(p, key, "a text has at most %d symbolic dims",
                          MAX_VARS);
  PLN_TRY(unused_name(p, name, &entry.name));
  entry.v.s = dtype->text;
  PLN_TRY(pln_attrs_with(p->engine, p->tir_vars, &entry, &p->tir_vars));
  PLN_TRY(
      pln_dim_named(p->engine, pln_symbol_text(p->engine, entry.name), out));
  m->dims[node] = *out;
  return PLN_OK;
}

pln_status pln_metadata_read_dim(pln_parser *p, pln_dim *out) {
  pln_token key;
  uint32_t node = PLN_NONE;
  uint64_t value;
  *out = PLN_DIM_UNKNOWN;
  PLN_TRY(read_reference(p, &key, &node));
  if (node == PLN_NONE || pln_metadata_reader_is(p->meta, node, "tir.Any"))
    return PLN_OK;
  if (node >= p->meta->n_nodes)
    return bad_entry(p, &key, "dim");
  *out = p->meta->dims[node];
  if (*out)
    return PLN_OK;
  *out = PLN_DIM_UNKNOWN;
  if (pln_metadata_reader_is(p->meta, node, "tir.Var") ||
      pln_metadata_reader_is(p->meta, node, "tir.SizeVar"))
    return dim_of_var(p, &key, node, out);
  if (!pln_metadata_reader_is(p->meta, node, "IntImm") ||
      !pln_json_number(pln_metadata_read_field(p->meta, node, "value"),
                       &value) ||
      value > INT64_MAX)
    return bad_entry(p, &key, "dim");
  *out = (int64_t)value;
  return PLN_OK;
}

/* -------------------------------------------------------------- attributes */

pln_status pln_metadata_read_attr(pln_parser *p, pln_attr *out) {
  pln_token key;
  uint32_t index, node = PLN_NONE;
  pln_tensor *tensor = NULL;
  PLN_TRY(read_metadata_entry(p, &key, &index, &node));
  if (node == PLN_NONE)
    return PLN_OK;
  if (node >= p->meta->n_constants) {
    out->kind = PLN_ATTR_OBJECT;
    out->v.s = p->given->objects[node - p->meta->n_constants];
    return PLN_OK;
  }
  if (!is_constant(p->meta, node)) {
    const pln_json_value *type_key = pln_json_get(
        &p->meta->json, pln_metadata_read_node(p->meta, node), "type_key");
    if (!type_key || !pln_slice_equal(type_key->text, key.text))
      return bad_entry(p, &key, "object of that type");
    out->kind = PLN_ATTR_OBJECT;
    return pln_metadata_read_object(p, &key, node, index, &out->v.s);
  }
  PLN_TRY(constant_of(p, &key, node, &tensor));
  out->kind = tensor ? PLN_ATTR_TENSOR : PLN_ATTR_NONE;
  out->v.tensor = tensor;
  return PLN_OK;
}

pln_status pln_metadata_read_attrs(pln_parser *p, pln_op op, pln_attrs *out) {
  const pln_relay_row *row = pln_relay_of(p->engine, op);
  pln_token key;
  uint32_t node = PLN_NONE;
  *out = 0;
  PLN_TRY(read_reference(p, &key, &node));
  if (node == PLN_NONE)
    return PLN_OK;
  if (!row || !pln_metadata_reader_is(p->meta, node, row->type_key))
    return pln_parse_report(p, &key, PLN_ERR_TYPE,
                            "the operator does not take these attributes");
  return pln_metadata_read_struct(p, &key, node, row->attrs, out);
}
