/* relay/metadata/read_struct.c: reads a call's attributes from the metadata
 * section: a node that is an attribute struct of TVM, such as
 * relay.attrs.ROIAlignAttrs.
 *
 * Called for meta[relay.attrs.X][i] after the arguments. The operator's row
 * lists the fields; the result is the attributes that inline text would give,
 * under Relay's names. */

#include <stdlib.h>

#include "ir/relay/metadata/read_section.h"

enum { MAX_FIELDS = 64, MAX_ITEMS = 1024 };

typedef struct entries {
  pln_attr rows[MAX_FIELDS];
  uint32_t count;
} entries;

/* Reads the name and kind of the next field of a schema
 * "name>core:kind=default" and advances *schema; false at the end. */
static bool next_field(const char **schema, pln_slice *name, pln_slice *kind) {
  const char *at = *schema + strspn(*schema, " +");
  size_t size = strcspn(at, ">: "), word = strcspn(at, " ");
  const char *colon = memchr(at, ':', word);
  *schema = at + word;
  *name = (pln_slice){at, size};
  *kind = (pln_slice){at, 0};
  if (colon)
    *kind = (pln_slice){colon + 1, strcspn(colon + 1, "=? ")};
  return word > 0;
}

static const pln_json_value *field_of(const pln_metadata_reader *m,
                                      uint32_t node, pln_slice name) {
  char text[64];
  if (name.size >= sizeof text)
    return NULL;
  memcpy(text, name.data, name.size);
  text[name.size] = '\0';
  return pln_metadata_read_field(m, node, text);
}

/* Copies the text of a number as a terminated string; longer text is cut. */
static const char *digits(pln_slice text, char *out, size_t size) {
  size_t n = text.size < size - 1 ? text.size : size - 1;
  memcpy(out, text.data, n);
  out[n] = '\0';
  return out;
}

/* Reads an Array of IntImm as INTS; false if the node is none. */
static bool read_struct_ints(pln_parser *p, uint32_t node, pln_attr *out) {
  const pln_metadata_reader *m = p->meta;
  const pln_json_value *list =
      pln_json_get(&m->json, pln_metadata_read_node(m, node), "data");
  char text[32];
  uint64_t item;
  if (!pln_metadata_reader_is(m, node, "Array") ||
      (list && (list->kind != PLN_JSON_ARRAY || list->count > MAX_ITEMS)))
    return false;
  uint32_t n = list ? list->count : 0;
  int64_t *ints = pln_arena_new(&p->arena, (n + 1) * sizeof *ints);
  uint32_t at = list ? (uint32_t)(list - m->json.values) + 1 : 0;
  for (uint32_t i = 0; ints && i < n; i++) {
    if (!pln_json_number(&m->json.values[at], &item))
      return false;
    const pln_json_value *value =
        pln_metadata_read_field(m, (uint32_t)item, "value");
    if (!value)
      return false;
    ints[i] = strtoll(digits(value->text, text, sizeof text), NULL, 10);
    at = m->json.values[at].next;
  }
  out->kind = PLN_ATTR_INTS;
  out->count = n;
  out->v.ints = ints;
  return ints != NULL;
}

/* Converts the node that a field refers to: an IntImm, an Array of IntImm or a
 * string; any other is kept as an object. Node 0 is None. */
static pln_status read_node(pln_parser *p, const pln_token *key,
                            const pln_json_value *reference, pln_attr *out) {
  uint64_t node;
  if (!pln_json_number(reference, &node) || node >= p->meta->n_nodes)
    return pln_parse_report(
        p, key, PLN_ERR_FORMAT,
        "an attribute refers to a node that the metadata section lacks");
  const pln_json_value *text = pln_metadata_read_string(p->meta, reference);
  const pln_json_value *value =
      pln_metadata_read_field(p->meta, (uint32_t)node, "value");
  char number[32];
  if (value && pln_metadata_reader_is(p->meta, (uint32_t)node, "IntImm")) {
    out->kind = PLN_ATTR_INT;
    out->v.i = strtoll(digits(value->text, number, sizeof number), NULL, 10);
    return PLN_OK;
  }
  if (node == 0 || read_struct_ints(p, (uint32_t)node, out))
    return PLN_OK;
  if (text) {
    out->kind = PLN_ATTR_STRING;
    out->v.s = text->text;
    return PLN_OK;
  }
  out->kind = PLN_ATTR_OBJECT;
  return pln_metadata_read_object(p, key, (uint32_t)node, 0, &out->v.s);
}

/* Reads a string field, which TVM stores in the struct or as a node of its
 * own. */
static pln_slice string_of(const pln_metadata_reader *m,
                           const pln_json_value *value) {
  const pln_json_value *text = pln_metadata_read_string(m, value);
  return text ? text->text : value->text;
}

static pln_status read_struct_field(pln_parser *p, const pln_token *key,
                                    pln_slice kind, const pln_json_value *value,
                                    pln_attr *out) {
  char text[64];
  digits(value->text, text, sizeof text);
  if (pln_slice_is(kind, "int") || pln_slice_is(kind, "bool")) {
    out->kind = pln_slice_is(kind, "int") ? PLN_ATTR_INT : PLN_ATTR_BOOL;
    out->v.i = strtoll(text, NULL, 10);
    if (out->kind == PLN_ATTR_BOOL)
      out->v.i = out->v.i != 0;
  } else if (pln_slice_is(kind, "float")) {
    out->kind = PLN_ATTR_FLOAT;
    out->v.f = strtod(text, NULL);
  } else if (pln_slice_is(kind, "string") || pln_slice_is(kind, "dtype")) {
    out->kind = PLN_ATTR_STRING;
    out->v.s = string_of(p->meta, value);
  } else {
    return read_node(p, key, value, out);
  }
  return PLN_OK;
}

static pln_status read_fields(pln_parser *p, const pln_token *key,
                              uint32_t node, const char *schema, entries *all) {
  pln_slice name, kind;
  while (all->count < MAX_FIELDS && next_field(&schema, &name, &kind)) {
    const pln_json_value *value = field_of(p->meta, node, name);
    pln_attr *row = &all->rows[all->count];
    if (!value)
      continue;
    *row = (pln_attr){.kind = PLN_ATTR_NONE};
    PLN_TRY(pln_symbol_intern(p->engine, name, &row->name));
    PLN_TRY(read_struct_field(p, key, kind, value, row));
    all->count++;
  }
  return PLN_OK;
}

pln_status pln_metadata_read_struct(pln_parser *p, const pln_token *key,
                                    uint32_t node, const char *schema,
                                    pln_attrs *out) {
  entries all = {.count = 0};
  PLN_TRY(read_fields(p, key, node, schema, &all));
  return pln_attrs_make(p->engine, all.count, all.rows, out);
}
