/* relay/metadata/references.c: numbers the entries that text refers to as
 * meta[type key][i].
 *
 * The printer numbers Constants while it plans and attributes when it writes
 * them; the section follows at the end (relay/metadata/write_section.c). An
 * entry borrows its object from the module. */

#include "ir/relay/metadata/references.h"

#include "ir/relay/metadata/object.h"

pln_status pln_metadata_init(pln_metadata *meta, pln_engine *engine) {
  *meta = (pln_metadata){.engine = engine};
  PLN_TRY(pln_interner_new(engine, &meta->objects));
  return pln_idmap_new(engine, &meta->dim_number);
}

void pln_metadata_free(pln_metadata *meta) {
  if (!meta->engine)
    return;
  if (meta->objects)
    pln_interner_free(meta->objects);
  if (meta->dim_number)
    pln_idmap_free(meta->dim_number);
  pln_mem_free(meta->engine, meta->keys, meta->cap_keys * sizeof *meta->keys);
  pln_mem_free(meta->engine, meta->entries,
               meta->capacity * sizeof *meta->entries);
  pln_mem_free(meta->engine, meta->object_numbers,
               meta->cap_object_numbers * sizeof *meta->object_numbers);
}

/* Keys are few: one a type. */
static pln_status find_key(pln_metadata *meta, pln_slice name,
                           pln_metadata_key **out) {
  for (uint32_t i = 0; i < meta->n_keys; i++)
    if (pln_slice_equal(meta->keys[i].name, name)) {
      *out = &meta->keys[i];
      return PLN_OK;
    }
  if (meta->n_keys == meta->cap_keys)
    PLN_TRY(pln_mem_grow(meta->engine, (void **)&meta->keys, &meta->cap_keys,
                         meta->n_keys + 1u, sizeof *meta->keys));
  *out = &meta->keys[meta->n_keys++];
  **out = (pln_metadata_key){.name = name, .first = PLN_NONE, .last = PLN_NONE};
  return PLN_OK;
}

static pln_status add_entry(pln_metadata *meta, pln_slice name,
                            const pln_metadata_entry *entry, uint32_t *number) {
  pln_metadata_key *key;
  PLN_TRY(find_key(meta, name, &key));
  if (meta->count == meta->capacity)
    PLN_TRY(pln_mem_grow(meta->engine, (void **)&meta->entries, &meta->capacity,
                         meta->count + 1u, sizeof *meta->entries));
  uint32_t index = meta->count++;
  meta->entries[index] = *entry;
  meta->entries[index].next = PLN_NONE;
  if (key->last == PLN_NONE)
    key->first = index;
  else
    meta->entries[key->last].next = index;
  key->last = index;
  *number = key->count++;
  return PLN_OK;
}

static const char constant_key[] = "relay.Constant";

pln_status pln_metadata_add(pln_metadata *meta, const pln_tensor *tensor,
                            uint32_t *number) {
  pln_metadata_entry entry = {.kind = PLN_META_CONSTANT, .of.tensor = tensor};
  return add_entry(meta, pln_text(constant_key), &entry, number);
}

/* Of one text there is one entry; its number is kept by the text's id. */
static pln_status add_object(pln_metadata *meta, pln_slice key,
                             pln_slice object, uint32_t *number) {
  bool added;
  uint32_t id;
  pln_metadata_entry entry = {.kind = PLN_META_OBJECT, .of.object = object};
  PLN_TRY(pln_intern(meta->objects, object.data, object.size, &id, &added));
  if (added) {
    PLN_TRY(pln_mem_grow(meta->engine, (void **)&meta->object_numbers,
                         &meta->cap_object_numbers, id,
                         sizeof *meta->object_numbers));
    PLN_TRY(add_entry(meta, key, &entry, &meta->object_numbers[id - 1]));
  }
  *number = meta->object_numbers[id - 1];
  return PLN_OK;
}

pln_status pln_metadata_add_module(pln_metadata *meta, pln_slice text) {
  pln_metadata_entry entry = {.kind = PLN_META_TEXT, .of.object = text};
  uint32_t number;
  return add_entry(meta, pln_text(PLN_META_MODULE), &entry, &number);
}

/* ----------------------------------------------------------------- writing */

static void put_reference(pln_writer *w, pln_slice key, pln_status status,
                          uint32_t number) {
  w->met = true;
  if (status != PLN_OK) {
    w->status = w->status == PLN_OK ? status : w->status;
    return;
  }
  pln_put_text(w, "meta[");
  pln_put(w, key.data, key.size);
  pln_put_text(w, "][");
  if (number == PLN_NONE)
    pln_put_text(w, "?");
  else
    pln_put_int(w, number);
  pln_put_text(w, "]");
}

void pln_put_meta_tensor(pln_writer *w, const pln_tensor *tensor) {
  pln_metadata_entry entry = {.kind = PLN_META_TENSOR, .of.tensor = tensor};
  pln_status status = PLN_OK;
  uint32_t number = PLN_NONE;
  pln_slice key = pln_text(constant_key);
  if (w->meta && w->meta->by_digest) {
    w->met = true;
    pln_put_constant_digest(w, tensor);
    return;
  }
  if (w->meta)
    status = add_entry(w->meta, key, &entry, &number);
  put_reference(w, key, status, number);
}

void pln_put_meta_object(pln_writer *w, pln_slice object) {
  pln_object_node root;
  size_t at = 0;
  pln_slice key = pln_text("Object");
  pln_status status = PLN_OK;
  uint32_t number = PLN_NONE;
  if (pln_object_next(object, &at, &root)) {
    key = root.type_key;
    if (w->meta)
      status = add_object(w->meta, key, object, &number);
  }
  put_reference(w, key, status, number);
}

void pln_put_meta_attrs(pln_writer *w, const char *type_key, pln_attrs attrs) {
  pln_metadata_entry entry = {.kind = PLN_META_ATTRS, .of.attrs = attrs};
  pln_status status = PLN_OK;
  uint32_t number = PLN_NONE;
  if (w->meta)
    status = add_entry(w->meta, pln_text(type_key), &entry, &number);
  put_reference(w, pln_text(type_key), status, number);
}

static pln_status number_dim(pln_metadata *meta, pln_symbol name,
                             pln_slice dtype, uint32_t *number) {
  pln_metadata_entry entry = {
      .kind = PLN_META_DIM, .of.dim.name = name, .of.dim.dtype = dtype};
  uint32_t known = pln_idmap_get(meta->dim_number, name);
  *number = known - 1;
  if (known)
    return PLN_OK;
  PLN_TRY(add_entry(meta, pln_text("tir.Var"), &entry, number));
  return pln_idmap_set(meta->dim_number, name, *number + 1);
}

bool pln_put_meta_dim(pln_writer *w, pln_dim dim) {
  pln_symbol name = w->meta && w->meta->tir_vars && !PLN_DIM_IS_CONST(dim)
                        ? pln_dim_name(w->engine, dim)
                        : 0;
  if (!name)
    return false;
  const pln_attr *dtype = pln_attrs_find(w->engine, w->meta->tir_vars,
                                         pln_symbol_text(w->engine, name).data);
  if (!dtype || dtype->kind != PLN_ATTR_STRING)
    return false;
  uint32_t number;
  pln_status status = number_dim(w->meta, name, dtype->v.s, &number);
  put_reference(w, pln_text("tir.Var"), status, number);
  return true;
}
