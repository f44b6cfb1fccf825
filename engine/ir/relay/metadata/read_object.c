/* relay/metadata/read_object.c: reads TVM objects from the metadata section.
 *
 * Called for attributes that refer to objects without an IR counterpart. Such
 * an object is kept as text (relay/metadata/object.h): all nodes that it
 * reaches, itself first, the others in TVM's order, renumbered. That order
 * depends on the other objects of the section; where it is not breadth first,
 * the text has the nodes in that order too, to be compared by. */

#include <stdlib.h>

#include "ir/relay/metadata/object.h"
#include "ir/relay/metadata/read_section.h"

/* Limits the size of all objects of one text: each reference copies the
 * object. */
enum { MAX_BYTES = 1 << 26 };

typedef struct numbered_node {
  uint32_t node, number;
} numbered_node;

/* An object being written. A node is numbered by its index in `nodes`. */
typedef struct object {
  pln_engine *engine;
  const pln_metadata_reader *m;
  uint32_t *nodes;        /* breadth first, then in TVM's order */
  numbered_node *numbers; /* by node */
  uint32_t count, capacity;
  pln_buffer text;
} object;

static pln_slice type_key_of(const object *o, uint32_t node) {
  const pln_json_value *key =
      pln_json_get(&o->m->json, pln_metadata_read_node(o->m, node), "type_key");
  return key ? key->text : (pln_slice){"", 0};
}

/* ---------------------------------------------------------------- reaching */

static pln_status resolve_object_reference(object *o,
                                           const pln_json_value *reference) {
  uint64_t node;
  if (!pln_json_number(reference, &node) || node == 0 ||
      node >= o->m->n_nodes || o->m->marks[node] == o->m->mark)
    return PLN_OK;
  o->m->marks[node] = o->m->mark;
  PLN_TRY(pln_mem_grow(o->engine, (void **)&o->nodes, &o->capacity,
                       (size_t)o->count + 1, sizeof *o->nodes));
  o->nodes[o->count++] = (uint32_t)node;
  return PLN_OK;
}

static pln_status reach_list(object *o, const pln_json_value *list) {
  if (!list || list->kind != PLN_JSON_ARRAY)
    return PLN_OK;
  const pln_json_value *values = o->m->json.values;
  uint32_t at = (uint32_t)(list - values) + 1;
  for (uint32_t i = 0; i < list->count; i++) {
    PLN_TRY(resolve_object_reference(o, &values[at]));
    at = values[at].next;
  }
  return PLN_OK;
}

static pln_status reach_fields(object *o, uint32_t node) {
  const pln_json_value *values = o->m->json.values;
  const pln_json_value *attrs =
      pln_json_get(&o->m->json, pln_metadata_read_node(o->m, node), "attrs");
  if (!attrs || attrs->kind != PLN_JSON_OBJECT)
    return PLN_OK;
  uint32_t at = (uint32_t)(attrs - values) + 1;
  for (uint32_t i = 0; i < attrs->count; i++) {
    if (pln_object_refers(type_key_of(o, node), values[at].text))
      PLN_TRY(resolve_object_reference(o, &values[at + 1]));
    at = values[at + 1].next;
  }
  return PLN_OK;
}

static int compare_numbered_nodes(const void *a, const void *b) {
  const numbered_node *x = a, *y = b;
  return (x->node > y->node) - (x->node < y->node);
}

static void number_nodes(object *o) {
  for (uint32_t i = 0; i < o->count; i++)
    o->numbers[i] = (numbered_node){o->nodes[i], i};
  qsort(o->numbers, o->count, sizeof *o->numbers, compare_numbered_nodes);
}

/* Lists all nodes reachable from `root`, breadth first. */
static pln_status reach_all(object *o, uint32_t root) {
  PLN_TRY(pln_mem_grow(o->engine, (void **)&o->nodes, &o->capacity, 1,
                       sizeof *o->nodes));
  o->m->marks[root] = o->m->mark;
  o->nodes[o->count++] = root;
  for (uint32_t i = 0; i < o->count; i++) {
    const pln_json_value *node = pln_metadata_read_node(o->m, o->nodes[i]);
    PLN_TRY(reach_list(o, pln_json_get(&o->m->json, node, "data")));
    PLN_TRY(reach_fields(o, o->nodes[i]));
  }
  o->numbers = pln_mem_new(o->engine, o->count * sizeof *o->numbers);
  return o->numbers ? PLN_OK : pln_nomem(o->engine);
}

/* ----------------------------------------------------------------- writing */

static uint32_t number_of(const object *o, const pln_json_value *reference) {
  uint64_t wide;
  if (!pln_json_number(reference, &wide) || wide == 0 || wide >= o->m->n_nodes)
    return 0;
  numbered_node wanted = {.node = (uint32_t)wide};
  const numbered_node *found = bsearch(&wanted, o->numbers, o->count,
                                       sizeof wanted, compare_numbered_nodes);
  return found ? found->number : 0;
}

static pln_status append_object_text(object *o, const char *text) {
  return pln_buffer_text(&o->text, text);
}

/* Writes a string between quotes. Its escapes are copied unchanged. */
static pln_status put_string(object *o, pln_slice text) {
  PLN_TRY(append_object_text(o, "\""));
  PLN_TRY(pln_buffer_add(&o->text, text.data, text.size));
  return append_object_text(o, "\"");
}

static pln_status append_object_list(object *o, const char *name,
                                     const pln_json_value *list,
                                     bool references) {
  if (!list || list->kind != PLN_JSON_ARRAY)
    return PLN_OK;
  const pln_json_value *values = o->m->json.values;
  uint32_t at = (uint32_t)(list - values) + 1;
  PLN_TRY(append_object_text(o, name));
  for (uint32_t i = 0; i < list->count; i++) {
    PLN_TRY(append_object_text(o, i > 0 ? ", " : ""));
    PLN_TRY(references
                ? pln_buffer_printf(&o->text, "%u", number_of(o, &values[at]))
                : put_string(o, values[at].text));
    at = values[at].next;
  }
  return append_object_text(o, "]");
}

/* Writes the base64 text of an array in place of its index in "b64ndarrays". */
static pln_status put_array(object *o, const pln_json_value *reference) {
  uint64_t array;
  if (!pln_json_number(reference, &array) || array >= o->m->n_arrays)
    return append_object_text(o, "\"\"");
  PLN_TRY(append_object_text(o, "\"b64:"));
  pln_slice text = o->m->json.values[o->m->arrays[array]].text;
  PLN_TRY(pln_buffer_add(&o->text, text.data, text.size));
  return append_object_text(o, "\"");
}

static pln_status append_object_field(object *o, pln_slice type_key,
                                      pln_slice name,
                                      const pln_json_value *value) {
  PLN_TRY(put_string(o, name));
  PLN_TRY(append_object_text(o, ": "));
  if (pln_object_refers(type_key, name))
    return pln_buffer_printf(&o->text, "%u", number_of(o, value));
  if (pln_slice_is(type_key, "relay.Constant") && pln_slice_is(name, "data"))
    return put_array(o, value);
  return put_string(o, value->text);
}

static pln_status append_object_attrs(object *o, pln_slice type_key,
                                      const pln_json_value *attrs) {
  if (!attrs || attrs->kind != PLN_JSON_OBJECT)
    return PLN_OK;
  const pln_json_value *values = o->m->json.values;
  uint32_t at = (uint32_t)(attrs - values) + 1;
  PLN_TRY(append_object_text(o, ", \"attrs\": {"));
  for (uint32_t i = 0; i < attrs->count; i++) {
    PLN_TRY(append_object_text(o, i > 0 ? ", " : ""));
    PLN_TRY(append_object_field(o, type_key, values[at].text, &values[at + 1]));
    at = values[at + 1].next;
  }
  return append_object_text(o, "}");
}

static pln_status append_object_node(object *o, uint32_t node) {
  const pln_json *j = &o->m->json;
  const pln_json_value *value = pln_metadata_read_node(o->m, node);
  const pln_json_value *text = pln_json_get(j, value, "repr_str");
  pln_slice key = type_key_of(o, node);
  PLN_TRY(append_object_text(o, "{\"type_key\": "));
  PLN_TRY(put_string(o, key));
  if (text) {
    PLN_TRY(append_object_text(o, ", \"repr_str\": "));
    PLN_TRY(put_string(o, text->text));
  }
  PLN_TRY(append_object_list(o, ", \"keys\": [", pln_json_get(j, value, "keys"),
                             false));
  PLN_TRY(append_object_list(o, ", \"data\": [", pln_json_get(j, value, "data"),
                             true));
  PLN_TRY(append_object_attrs(o, key, pln_json_get(j, value, "attrs")));
  return append_object_text(o, "}");
}

static pln_status put_nodes(object *o) {
  number_nodes(o);
  PLN_TRY(append_object_text(o, "["));
  for (uint32_t i = 0; i < o->count; i++) {
    PLN_TRY(append_object_text(o, i > 0 ? ", " : ""));
    PLN_TRY(append_object_node(o, o->nodes[i]));
  }
  return append_object_text(o, "]");
}

static int compare_nodes(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static bool is_sorted(const object *o) {
  for (uint32_t i = 2; i < o->count; i++)
    if (o->nodes[i - 1] > o->nodes[i])
      return false;
  return true;
}

/* The nodes in TVM's order, and then breadth first unless that is the same. */
static pln_status put_object(object *o, uint32_t index) {
  pln_buffer breadth_first;
  if (is_sorted(o)) {
    PLN_TRY(put_nodes(o));
    return pln_buffer_printf(&o->text, "#%u", index);
  }
  PLN_TRY(put_nodes(o));
  breadth_first = o->text;
  pln_buffer_init(&o->text, o->engine);
  qsort(o->nodes + 1, o->count - 1, sizeof *o->nodes, compare_nodes);
  pln_status status = put_nodes(o);
  if (status == PLN_OK)
    status = pln_buffer_add(&o->text, breadth_first.data, breadth_first.size);
  if (status == PLN_OK)
    status = pln_buffer_printf(&o->text, "#%u,%zu", index, breadth_first.size);
  pln_buffer_free(&breadth_first);
  return status;
}

/* Copies the text to the arena of the parser, which outlives the interning of
 * attributes. */
static pln_status store_object_text(const object *o, pln_arena *arena,
                                    pln_slice *out) {
  char *copy = pln_arena_new(arena, o->text.size);
  if (!copy)
    return pln_nomem(o->engine);
  memcpy(copy, o->text.data, o->text.size);
  *out = (pln_slice){copy, o->text.size};
  return PLN_OK;
}

static pln_status write_object(object *o, uint32_t root, uint32_t index) {
  pln_buffer_init(&o->text, o->engine);
  PLN_TRY(reach_all(o, root));
  return put_object(o, index);
}

static void free_object(object *o) {
  pln_buffer_free(&o->text);
  pln_mem_free(o->engine, o->numbers,
               o->numbers ? o->count * sizeof *o->numbers : 0);
  pln_mem_free(o->engine, o->nodes, o->capacity * sizeof *o->nodes);
}

pln_status pln_metadata_read_object(pln_parser *p, const pln_token *key,
                                    uint32_t node, uint32_t index,
                                    pln_slice *out) {
  pln_metadata_reader *m = p->meta;
  object o = {.engine = p->engine, .m = m};
  if (m->object_bytes > MAX_BYTES)
    return pln_parse_fail(p, key,
                          "the objects of the metadata section are too large");
  m->mark++;
  pln_status status = write_object(&o, node, index);
  if (status == PLN_OK)
    status = store_object_text(&o, &p->arena, out);
  m->object_bytes += o.text.size + o.count;
  free_object(&o);
  return status;
}

/* ------------------------------------------------------------ built objects */

/* The nodes of a list, as values of its JSON. */
static pln_status list_nodes(pln_metadata_reader *m) {
  const pln_json_value *list = m->json.values;
  if (list->kind != PLN_JSON_ARRAY || list->count == 0)
    return PLN_ERR_FORMAT;
  m->nodes = pln_mem_new(m->engine, list->count * sizeof *m->nodes);
  m->marks = pln_mem_zeroed(m->engine, list->count * sizeof *m->marks);
  m->n_nodes = list->count;
  if (!m->nodes || !m->marks)
    return pln_nomem(m->engine);
  uint32_t at = 1;
  for (uint32_t i = 0; i < m->n_nodes; i++) {
    m->nodes[i] = at;
    at = m->json.values[at].next;
  }
  return PLN_OK;
}

static pln_status order_nodes(pln_metadata_reader *m, pln_slice nodes,
                              pln_buffer *out) {
  object o = {.engine = m->engine, .m = m};
  PLN_TRY(pln_json_read(&m->json, m->engine, nodes));
  PLN_TRY(list_nodes(m));
  m->mark = m->marks[0] = 1;
  pln_status status = write_object(&o, 0, 0);
  if (status == PLN_OK) {
    out->size = 0;
    status = pln_buffer_add(out, o.text.data, o.text.size);
  }
  free_object(&o);
  return status;
}

pln_status pln_object_build(pln_engine *engine, pln_slice nodes,
                            pln_buffer *out) {
  pln_metadata_reader m = {.engine = engine};
  pln_status status = order_nodes(&m, nodes, out);
  pln_json_free(&m.json);
  pln_mem_free(engine, m.nodes, m.nodes ? m.n_nodes * sizeof *m.nodes : 0);
  pln_mem_free(engine, m.marks, m.marks ? m.n_nodes * sizeof *m.marks : 0);
  return status;
}
