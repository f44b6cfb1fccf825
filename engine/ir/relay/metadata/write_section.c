/* relay/metadata/write_section.c: writes the metadata section, TVM's table of
 * nodes in JSON.
 *
 * Called at the end of a module's text. TVM numbers nodes in depth-first
 * preorder from the section's map. Lists of entries precede the entries, so one
 * pass counts and a second pass with the same steps writes. The only node that
 * entries share is the unconstrained virtual device. */

#include "ir/relay/metadata/object.h"
#include "ir/relay/metadata/references.h"
#include "ir/tensor/ndarray.h"

#include <stdio.h>

typedef struct section_writer {
  pln_metadata *meta;
  pln_writer *w;
  uint32_t device;  /* number of the shared device; 0: not written yet */
  uint32_t row;     /* number of the next node */
  uint32_t n_array; /* index of the next entry of "b64ndarrays" */
  uint32_t *map;    /* numbers of an object's nodes */
  uint32_t cap_map;
} section_writer;

/* ------------------------------------------------------------------ pieces */

static void write_metadata_text(section_writer *s, const char *text) {
  pln_put_text(s->w, text);
}

/* Starts a node; its fields follow. */
static void open_node(section_writer *s, pln_slice type_key) {
  write_metadata_text(s, ", \n    {\n      \"type_key\": \"");
  pln_put(s->w, type_key.data, type_key.size);
  write_metadata_text(s, "\"");
}

static void close_node(section_writer *s) {
  write_metadata_text(s, "\n    }");
}

/* Starts "attrs" with n fields; TVM writes a single field on one line. */
static void open_attrs(section_writer *s, uint32_t n) {
  write_metadata_text(s, n > 1 ? ", \n      \"attrs\": {\n"
                               : ", \n      \"attrs\": {");
}

static void write_metadata_field(section_writer *s, bool first,
                                 const char *name) {
  write_metadata_text(s, first ? "        \"" : ", \n        \"");
  write_metadata_text(s, name);
  write_metadata_text(s, "\": \"");
}

static void write_metadata_number(section_writer *s, bool first,
                                  const char *name, int64_t value) {
  write_metadata_field(s, first, name);
  pln_put_int(s->w, value);
  write_metadata_text(s, "\"");
}

static void put_word(section_writer *s, bool first, const char *name,
                     pln_slice word) {
  write_metadata_field(s, first, name);
  pln_put(s->w, word.data, word.size);
  write_metadata_text(s, "\"");
}

/* Writes the numbers from `from` on, or those of a key's entries. */
static void put_data(section_writer *s, uint32_t n, uint32_t from,
                     uint32_t entry) {
  const pln_metadata_entry *entries = s->meta->entries;
  bool wide = n > 10;
  write_metadata_text(s, ", \n      \"data\": [");
  for (uint32_t i = 0; i < n && !pln_writer_done(s->w); i++) {
    write_metadata_text(s, i > 0 ? ", " : "");
    write_metadata_text(s, wide ? "\n        " : "");
    pln_put_int(s->w, entry == PLN_NONE ? from + i : entries[entry].root);
    entry = entry == PLN_NONE ? entry : entries[entry].next;
  }
  write_metadata_text(s, wide ? "\n      ]" : "]");
}

static void put_list_node(section_writer *s, uint32_t n, uint32_t from,
                          uint32_t entry) {
  open_node(s, pln_text("Array"));
  if (n > 0)
    put_data(s, n, from, entry);
  close_node(s);
}

static void put_string_node(section_writer *s, pln_slice text) {
  open_node(s, pln_text("runtime.String"));
  if (text.size > 0) {
    write_metadata_text(s, ", \n      \"repr_str\": ");
    pln_put_json(s->w, text);
  }
  close_node(s);
}

static void put_int_node(section_writer *s, int64_t value) {
  bool wide = value > INT32_MAX || value < INT32_MIN;
  open_node(s, pln_text("IntImm"));
  open_attrs(s, 3);
  put_word(s, true, "dtype", pln_text(wide ? "int64" : "int32"));
  write_metadata_number(s, false, "span", 0);
  write_metadata_number(s, false, "value", value);
  write_metadata_text(s, "\n      }");
  close_node(s);
}

static void put_real(section_writer *s, double value) {
  char text[32];
  int size = snprintf(text, sizeof text, "%.16g", value);
  pln_put(s->w, text, size > 0 ? (size_t)size : 0);
}

static void put_float_node(section_writer *s, double value) {
  open_node(s, pln_text("FloatImm"));
  open_attrs(s, 3);
  put_word(s, true, "dtype", pln_text("float32"));
  write_metadata_number(s, false, "span", 0);
  write_metadata_field(s, false, "value");
  put_real(s, value);
  write_metadata_text(s, "\"\n      }");
  close_node(s);
}

/* --------------------------------------------------------------- constants */

/* The device's number if the next node may be the device; *own: it is the next
 * node. */
static uint32_t reuse_device_row(section_writer *s, uint32_t next, bool *own) {
  if (s->device == 0)
    s->device = next;
  *own = s->device == next;
  return s->device;
}

static void put_device(section_writer *s) {
  open_node(s, pln_text("VirtualDevice"));
  open_attrs(s, 4);
  write_metadata_number(s, true, "device_type_int", -1);
  write_metadata_number(s, false, "memory_scope", s->device + 1);
  write_metadata_number(s, false, "target", 0);
  write_metadata_number(s, false, "virtual_device_id", -1);
  write_metadata_text(s, "\n      }");
  close_node(s);
  put_string_node(s, (pln_slice){NULL, 0});
}

static void put_type_nodes(section_writer *s, const pln_tensor *tensor,
                           uint32_t number) {
  uint32_t rank = pln_tensor_rank(tensor);
  open_node(s, pln_text("relay.TensorType"));
  open_attrs(s, 3);
  put_word(s, true, "dtype",
           pln_text(pln_dtype_name(pln_tensor_dtype(tensor))));
  write_metadata_number(s, false, "shape", number + 1);
  write_metadata_number(s, false, "span", 0);
  write_metadata_text(s, "\n      }");
  close_node(s);
  put_list_node(s, rank, number + 2, PLN_NONE);
  for (uint32_t i = 0; i < rank; i++)
    put_int_node(s, pln_tensor_dims(tensor)[i]);
}

static void write_metadata_constant(section_writer *s,
                                    const pln_metadata_entry *e, bool write) {
  bool own, typed = e->kind == PLN_META_CONSTANT;
  uint32_t device = reuse_device_row(s, s->row + 1, &own);
  uint32_t type = s->row + (own ? 3 : 1);
  uint32_t rank = pln_tensor_rank(e->of.tensor);
  s->row = typed ? type + 2 + rank : type;
  if (!write)
    return;
  open_node(s, pln_text("relay.Constant"));
  open_attrs(s, 4);
  write_metadata_number(s, true, "_checked_type_", typed ? type : 0);
  write_metadata_number(s, false, "data", s->n_array++);
  write_metadata_number(s, false, "span", 0);
  write_metadata_number(s, false, "virtual_device_", device);
  write_metadata_text(s, "\n      }");
  close_node(s);
  if (own)
    put_device(s);
  if (typed)
    put_type_nodes(s, e->of.tensor, type);
}

static void write_metadata_dim(section_writer *s, const pln_metadata_entry *e,
                               bool write) {
  uint32_t number = s->row;
  s->row += 3;
  if (!write)
    return;
  open_node(s, pln_text("tir.Var"));
  open_attrs(s, 4);
  put_word(s, true, "dtype", e->of.dim.dtype);
  write_metadata_number(s, false, "name", number + 1);
  write_metadata_number(s, false, "span", 0);
  write_metadata_number(s, false, "type_annotation", number + 2);
  write_metadata_text(s, "\n      }");
  close_node(s);
  put_string_node(s, pln_symbol_text(s->w->engine, e->of.dim.name));
  open_node(s, pln_text("PrimType"));
  open_attrs(s, 1);
  write_metadata_text(s, "\"dtype\": \"");
  pln_put(s->w, e->of.dim.dtype.data, e->of.dim.dtype.size);
  write_metadata_text(s, "\"}");
  close_node(s);
}

/* ----------------------------------------------------------------- structs */

/* Number of nodes that a value needs below its struct: a list and its elements,
 * or an object. */
static uint32_t nodes_of(const pln_attr *a) {
  if (a->kind == PLN_ATTR_LIST)
    return 1;
  bool list = a->kind == PLN_ATTR_INTS || a->kind == PLN_ATTR_FLOATS;
  return list ? 1 + a->count : 0;
}

/* Writes a quoted value; `number` is the number of its list node. */
static void write_metadata_value(section_writer *s, const pln_attr *a,
                                 uint32_t number) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_INTS:
  case PLN_ATTR_LIST:
  case PLN_ATTR_FLOATS: pln_put_int(s->w, number); break;
  case PLN_ATTR_INT: pln_put_int(s->w, a->v.i); break;
  case PLN_ATTR_FLOAT: put_real(s, a->v.f); break;
  case PLN_ATTR_STRING: pln_put(s->w, a->v.s.data, a->v.s.size); break;
  default: write_metadata_text(s, "0"); break; /* null */
  }
}

/* The entry of `list` that follows `last` by name; NULL at the end. */
static const pln_attr *next_by_name(const pln_engine *e, pln_attrs list,
                                    const pln_attr *last) {
  const pln_attr *best = NULL;
  for (uint32_t i = 0; i < pln_attrs_count(e, list); i++) {
    const pln_attr *a = pln_attrs_at(e, list, i);
    const char *name = pln_symbol_text(e, a->name).data;
    bool behind =
        !last || strcmp(name, pln_symbol_text(e, last->name).data) > 0;
    if (behind &&
        (!best || strcmp(name, pln_symbol_text(e, best->name).data) < 0))
      best = a;
  }
  return best;
}

/* The number of the list node for the value `a` of `list`. */
static uint32_t number_of(const pln_engine *e, pln_attrs list,
                          const pln_attr *a, uint32_t number) {
  for (uint32_t i = 0; i < pln_attrs_count(e, list); i++) {
    const pln_attr *other = pln_attrs_at(e, list, i);
    if (other == a)
      break;
    number += nodes_of(other);
  }
  return number + 1;
}

static void write_metadata_elements(section_writer *s, const pln_attr *a,
                                    uint32_t number) {
  if (nodes_of(a) == 0)
    return;
  if (a->kind == PLN_ATTR_LIST) {
    const pln_attr *object = pln_attrs_at(s->w->engine, a->v.dict, 0);
    if (object->kind == PLN_ATTR_STRING)
      put_string_node(s, object->v.s);
    else
      put_int_node(s, object->v.i);
    return;
  }
  put_list_node(s, a->count, number + 1, PLN_NONE);
  for (uint32_t i = 0; i < a->count; i++)
    if (a->kind == PLN_ATTR_INTS)
      put_int_node(s, a->v.ints[i]);
    else
      put_float_node(s, a->v.floats[i]);
}

static void put_struct(section_writer *s, const pln_metadata_entry *e,
                       pln_slice key, bool write) {
  const pln_engine *engine = s->w->engine;
  pln_attrs list = e->of.attrs;
  uint32_t n = pln_attrs_count(engine, list), number = s->row++;
  for (uint32_t i = 0; i < n; i++)
    s->row += nodes_of(pln_attrs_at(engine, list, i));
  if (!write)
    return;
  open_node(s, key);
  if (n > 0)
    open_attrs(s, n);
  const pln_attr *a = NULL;
  for (uint32_t i = 0; i < n && (a = next_by_name(engine, list, a)); i++) {
    write_metadata_text(s, n == 1  ? "\""
                           : i > 0 ? ", \n        \""
                                   : "        \"");
    write_metadata_text(s, pln_symbol_text(engine, a->name).data);
    write_metadata_text(s, "\": \"");
    write_metadata_value(s, a, number_of(engine, list, a, number));
    write_metadata_text(s, "\"");
  }
  if (n > 0)
    write_metadata_text(s, n == 1 ? "}" : "\n      }");
  close_node(s);
  for (uint32_t i = 0; i < n; i++) {
    a = pln_attrs_at(engine, list, i);
    write_metadata_elements(s, a, number_of(engine, list, a, number));
  }
}

/* ----------------------------------------------------------------- objects */

static bool attr_is(pln_slice attrs, const char *wanted, const char *value) {
  size_t at = 0;
  pln_slice name, text;
  while (pln_object_entry(attrs, &at, &name, &text))
    if (pln_slice_is(name, wanted))
      return pln_slice_is(text, value);
  return false;
}

/* True for the unconstrained device, whose memory scope, an empty string, is
 * the next node. */
static bool is_shared(pln_slice object, size_t at, const pln_object_node *node,
                      uint32_t index) {
  pln_object_node next;
  char scope[16];
  snprintf(scope, sizeof scope, "%u", (unsigned)index + 1);
  return pln_slice_is(node->type_key, "VirtualDevice") &&
         attr_is(node->attrs, "\"device_type_int\"", "\"-1\"") &&
         attr_is(node->attrs, "\"virtual_device_id\"", "\"-1\"") &&
         attr_is(node->attrs, "\"target\"", "0") &&
         attr_is(node->attrs, "\"memory_scope\"", scope) &&
         pln_object_next(object, &at, &next) &&
         pln_slice_is(next.type_key, "runtime.String") && next.text.size <= 2;
}

static pln_status map_node(section_writer *s, uint32_t index, uint32_t number) {
  if (index >= s->cap_map)
    PLN_TRY(pln_mem_grow(s->w->engine, (void **)&s->map, &s->cap_map,
                         index + 1u, sizeof *s->map));
  s->map[index] = number;
  return PLN_OK;
}

/* Numbers an object's nodes from s->row on, reusing the shared device if it was
 * written before. */
static pln_status number_object(section_writer *s, pln_slice object) {
  size_t at = 0;
  pln_object_node node;
  for (uint32_t i = 0; pln_object_next(object, &at, &node); i++) {
    bool own = true;
    uint32_t number = s->row;
    bool shared = is_shared(object, at, &node, i);
    if (shared)
      number = reuse_device_row(s, s->row, &own);
    PLN_TRY(map_node(s, i, number));
    s->row += own;
    if (!shared)
      continue;
    if (!pln_object_next(object, &at, &node))
      break;
    PLN_TRY(map_node(s, ++i, number + 1));
    s->row += own;
  }
  return PLN_OK;
}

/* A string is written as it is, a reference as the number of its node, an array
 * as its index among the arrays. */
static void put_object_value(section_writer *s, pln_slice value, uint32_t n,
                             bool quoted) {
  bool string = value.data[0] == '"';
  if (string && value.size > 5 && !memcmp(value.data, "\"b64:", 5)) {
    write_metadata_text(s, "\"");
    pln_put_int(s->w, s->n_array++);
    write_metadata_text(s, "\"");
  } else if (string) {
    pln_put(s->w, value.data, value.size);
  } else {
    uint64_t index = 0;
    for (size_t i = 0; i < value.size && index <= n; i++)
      index = 10 * index + (uint64_t)(value.data[i] - '0');
    write_metadata_text(s, quoted ? "\"" : "");
    pln_put_int(s->w, index > 0 && index < n ? s->map[index] : 0);
    write_metadata_text(s, quoted ? "\"" : "");
  }
}

static uint32_t count_entries(pln_slice list) {
  uint32_t n = 0;
  size_t at = 0;
  pln_slice name, value;
  while (pln_object_entry(list, &at, &name, &value))
    n++;
  return n;
}

/* Writes "keys", "data" or "attrs" of an object's node. */
static void put_object_list(section_writer *s, const char *field,
                            pln_slice list, uint32_t n_nodes) {
  uint32_t n = count_entries(list);
  bool attrs = field[0] == 'a';
  bool wide = attrs ? n > 1 : n > 10 || field[0] == 'k';
  size_t at = 0;
  pln_slice name, value;
  if (n == 0)
    return;
  write_metadata_text(s, ", \n      \"");
  write_metadata_text(s, field);
  write_metadata_text(s, attrs ? "\": {" : "\": [");
  for (uint32_t i = 0; pln_object_entry(list, &at, &name, &value); i++) {
    write_metadata_text(s, i > 0 ? ", " : "");
    write_metadata_text(s, wide ? "\n        " : "");
    if (attrs) {
      pln_put(s->w, name.data, name.size);
      write_metadata_text(s, ": ");
    }
    put_object_value(s, value, n_nodes, attrs);
  }
  write_metadata_text(s, wide ? "\n      " : "");
  write_metadata_text(s, attrs ? "}" : "]");
}

static void put_object_node(section_writer *s, const pln_object_node *node,
                            uint32_t n_nodes) {
  open_node(s, node->type_key);
  if (node->text.size > 2) {
    write_metadata_text(s, ", \n      \"repr_str\": ");
    pln_put(s->w, node->text.data, node->text.size);
  }
  put_object_list(s, "keys", node->keys, n_nodes);
  put_object_list(s, "data", node->data, n_nodes);
  put_object_list(s, "attrs", node->attrs, n_nodes);
  close_node(s);
}

static uint32_t count_nodes(pln_slice object) {
  uint32_t n = 0;
  size_t at = 0;
  pln_object_node node;
  while (pln_object_next(object, &at, &node))
    n++;
  return n;
}

static pln_status put_object(section_writer *s, const pln_metadata_entry *e,
                             bool write) {
  pln_slice object = e->of.object;
  uint32_t from = s->row, n = count_nodes(object);
  size_t at = 0;
  pln_object_node node;
  PLN_TRY(number_object(s, object));
  for (uint32_t i = 0; write && pln_object_next(object, &at, &node); i++)
    if (s->map[i] >= from)
      put_object_node(s, &node, n);
  return PLN_OK;
}

/* ----------------------------------------------------------------- section */

/* Counts or writes the nodes of an entry. */
static pln_status do_entry(section_writer *s, pln_metadata_entry *e,
                           pln_slice key, bool write) {
  e->root = s->row;
  switch ((pln_metadata_kind)e->kind) {
  case PLN_META_CONSTANT:
  case PLN_META_TENSOR: write_metadata_constant(s, e, write); break;
  case PLN_META_DIM: write_metadata_dim(s, e, write); break;
  case PLN_META_ATTRS: put_struct(s, e, key, write); break;
  case PLN_META_TEXT:
    s->row++;
    if (write)
      put_string_node(s, e->of.object);
    break;
  case PLN_META_OBJECT:
    PLN_TRY(put_object(s, e, write));
    e->root = s->cap_map > 0 ? s->map[0] : e->root;
    break;
  }
  return PLN_OK;
}

/* Keys are written newest first, the order of TVM's hash table. */
static pln_status do_entries(section_writer *s, bool write) {
  pln_metadata *meta = s->meta;
  s->row = 2;
  for (uint32_t k = meta->n_keys; k-- > 0;) {
    pln_metadata_key *key = &meta->keys[k];
    key->row = s->row++;
    if (write)
      put_list_node(s, key->count, 0, key->first);
    for (uint32_t i = key->first; i != PLN_NONE; i = meta->entries[i].next)
      PLN_TRY(do_entry(s, &meta->entries[i], key->name, write));
  }
  return PLN_OK;
}

static void put_map(section_writer *s) {
  const pln_metadata *meta = s->meta;
  write_metadata_text(
      s, "#[metadata]\n{\n  \"root\": 1, \n  \"nodes\": [\n"
         "    {\n      \"type_key\": \"\"\n    }, \n"
         "    {\n      \"type_key\": \"Map\", \n      \"keys\": [\n        \"");
  for (uint32_t k = meta->n_keys; k-- > 0;) {
    pln_put(s->w, meta->keys[k].name.data, meta->keys[k].name.size);
    write_metadata_text(s, k > 0 ? "\", \n        \""
                                 : "\"\n      ], \n      \"data\": [");
  }
  for (uint32_t k = meta->n_keys; k-- > 0;) {
    pln_put_int(s->w, meta->keys[k].row);
    write_metadata_text(s, k > 0 ? ", " : "]\n    }");
  }
}

/* An array of an object, in base64; brief text has those of large tensors as it
 * has other constants. */
static void put_object_array(section_writer *s, pln_slice base64) {
  pln_tensor *tensor = NULL;
  if (s->w->constants == PLN_CONSTANTS_BRIEF &&
      pln_ndarray_read_base64(s->meta->engine, base64, &tensor) == PLN_OK &&
      pln_tensor_count(tensor) > PLN_BRIEF_ELEMENTS) {
    pln_put_array(s->w, tensor);
  } else {
    write_metadata_text(s, "\"");
    pln_put(s->w, base64.data, base64.size);
    write_metadata_text(s, "\"");
  }
  pln_tensor_release(tensor);
}

/* The arrays of an object, in the order of its nodes. */
static void put_object_arrays(section_writer *s, pln_slice object) {
  size_t at = 0;
  pln_object_node node;
  while (pln_object_next(object, &at, &node)) {
    size_t in = 0;
    pln_slice name, value;
    while (pln_object_entry(node.attrs, &in, &name, &value)) {
      if (value.size <= 6 || memcmp(value.data, "\"b64:", 5) != 0)
        continue;
      write_metadata_text(s, s->n_array++ > 0 ? ", \n    " : "\n    ");
      put_object_array(s, (pln_slice){value.data + 5, value.size - 6});
    }
  }
}

static void put_arrays(section_writer *s) {
  const pln_metadata *meta = s->meta;
  s->n_array = 0;
  write_metadata_text(s, "\n  ], \n  \"b64ndarrays\": [");
  for (uint32_t k = meta->n_keys; k-- > 0;)
    for (uint32_t i = meta->keys[k].first; i != PLN_NONE && !s->w->status;
         i = meta->entries[i].next) {
      const pln_metadata_entry *e = &meta->entries[i];
      if (e->kind == PLN_META_OBJECT)
        put_object_arrays(s, e->of.object);
      if (e->kind != PLN_META_CONSTANT && e->kind != PLN_META_TENSOR)
        continue;
      write_metadata_text(s, s->n_array++ > 0 ? ", \n    " : "\n    ");
      pln_put_array(s->w, e->of.tensor);
    }
  write_metadata_text(s, s->n_array > 0 ? "\n  ]" : "]");
  write_metadata_text(s, ", \n  \"attrs\": {\"tvm_version\": \"0.14.0\"}\n}");
}

void pln_write_metadata_section(pln_writer *w, pln_metadata *meta) {
  section_writer s = {.meta = meta, .w = w};
  if (meta->count == 0 || pln_writer_done(w))
    return;
  write_metadata_text(&s, "\n");
  pln_status status = do_entries(&s, false);
  if (status == PLN_OK) {
    put_map(&s);
    status = do_entries(&s, true);
  }
  if (status == PLN_OK)
    put_arrays(&s);
  else
    w->status = status;
  pln_mem_free(w->engine, s.map, s.cap_map * sizeof *s.map);
}
