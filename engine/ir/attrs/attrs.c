/* attrs.c: the engine's table of attribute dictionaries.
 *
 * A dictionary is interned by a key: its entries, sorted by the bytes of their
 * names and serialised as 8-byte words, with a tensor as the number of the
 * first equal tensor. Next to each key stands the decoded dictionary; its lists
 * and strings point into the key, which never moves. A list of values is such a
 * key too, with a mark, and with its entries in the given order. */

#include <stdlib.h>

#include "ir/attrs/attrs.h"
#include "ir/intern_tables.h"
#include "ir/merge_ids.h"
#include "ir/tensor/tensor.h"

/* A decoded dictionary. */
typedef struct attr_set {
  uint32_t count;
  bool sorted;   /* by name; false for a list */
  bool refs;     /* an entry is a PLN_ATTR_REF */
  uint64_t hash; /* equal for all equal dictionaries */
  pln_attr *entries;
  pln_slice *names;
} attr_set;

struct pln_attr_sets {
  const struct pln_attr_sets *base; /* child engines: the parent's table */
  uint32_t below;                   /* number of keys in base */
  uint32_t n_borrowed; /* number of base's tensors, the first in `tensors` */
  pln_idmap *borrow_state; /* dictionary of base with tensors -> own set + 1 */
  attr_set *borrowed_sets; /* copies of those dictionaries with borrowed
                            * tensors */
  uint32_t n_borrowed_sets, cap_borrowed_sets;
  pln_interner *keys;
  pln_arena arena; /* entries, names, lists of slices and tensors */
  attr_set *sets;  /* per key: its dictionary, at id - below - 1 */
  uint32_t n_sets, cap_sets;
  pln_tensor **tensors; /* distinct tensors, retained; numbered from 1 */
  uint32_t n_tensors, cap_tensors;
  uint32_t *next; /* per own tensor: the next one of equal hash, or 0 */
  uint32_t cap_next;
  pln_idmap *by_hash; /* hash -> newest tensor of that hash */
};

/* An entry's header in a key; the payload follows in whole words. */
typedef struct key_entry {
  pln_symbol name;
  uint8_t kind;
  uint8_t onnx_type;
  uint16_t zero;
  uint64_t count; /* elements of a list; bytes of a string */
} key_entry;

/* Marks a list in the first word of a key, which is the number of entries. */
#define LIST_MARK (UINT64_C(1) << 63)

pln_status pln_attrs_new(pln_engine *engine) {
  struct pln_attr_sets *table = pln_mem_zeroed(engine, sizeof *table);
  if (!table)
    return pln_nomem(engine);
  engine->attrs = table;
  pln_arena_init(&table->arena, engine);
  pln_status status = pln_interner_new(engine, &table->keys);
  if (status == PLN_OK)
    status = pln_idmap_new(engine, &table->by_hash);
  if (status != PLN_OK)
    pln_attrs_free(engine);
  return status;
}

void pln_attrs_free(pln_engine *engine) {
  struct pln_attr_sets *t = engine->attrs;
  if (!t)
    return;
  for (uint32_t i = 0; i < t->n_tensors; i++)
    pln_tensor_release(t->tensors[i]);
  pln_idmap_free(t->borrow_state);
  pln_mem_free(engine, t->borrowed_sets,
               t->cap_borrowed_sets * sizeof *t->borrowed_sets);
  pln_mem_free(engine, t->tensors, t->cap_tensors * sizeof *t->tensors);
  pln_mem_free(engine, t->next, t->cap_next * sizeof *t->next);
  pln_mem_free(engine, t->sets, t->cap_sets * sizeof *t->sets);
  if (t->by_hash)
    pln_idmap_free(t->by_hash);
  if (t->keys)
    pln_interner_free(t->keys);
  pln_arena_free(&t->arena);
  pln_mem_free(engine, t, sizeof *t);
  engine->attrs = NULL;
}

/* ----------------------------------------------------------------- tensors */

static uint32_t newest_of(const struct pln_attr_sets *t, uint64_t hash) {
  uint32_t own = pln_idmap_get(t->by_hash, hash);
  return own || !t->base ? own : pln_idmap_get(t->base->by_hash, hash);
}

static uint32_t next_of(const struct pln_attr_sets *t, uint32_t number) {
  return number <= t->n_borrowed ? t->base->next[number - 1]
                                 : t->next[number - t->n_borrowed - 1];
}

/* The number of the first tensor equal to this one, which is retained if it is
 * new. */
static pln_status tensor_number(pln_engine *engine, pln_tensor *tensor,
                                uint32_t *out) {
  struct pln_attr_sets *t = engine->attrs;
  uint64_t hash = pln_tensor_hash(tensor);
  uint32_t newest = newest_of(t, hash);
  for (uint32_t i = newest; i; i = next_of(t, i))
    if (pln_tensor_equal(t->tensors[i - 1], tensor)) {
      *out = i;
      return PLN_OK;
    }
  size_t need = t->n_tensors + 1u;
  if (need > t->cap_tensors)
    PLN_TRY(pln_mem_grow(engine, (void **)&t->tensors, &t->cap_tensors, need,
                         sizeof *t->tensors));
  if (need - t->n_borrowed > t->cap_next)
    PLN_TRY(pln_mem_grow(engine, (void **)&t->next, &t->cap_next,
                         need - t->n_borrowed, sizeof *t->next));
  PLN_TRY(pln_idmap_set(t->by_hash, hash, (uint32_t)need));
  t->next[t->n_tensors - t->n_borrowed] = newest;
  t->tensors[t->n_tensors++] = pln_tensor_retain(tensor);
  *out = (uint32_t)need;
  return PLN_OK;
}

/* -------------------------------------------------------------------- keys */

static pln_status add_padded(pln_buffer *key, const void *bytes, size_t size) {
  static const char zeros[8];
  PLN_TRY(pln_buffer_add(key, bytes, size));
  return pln_buffer_add(key, zeros, (size_t)-size % 8);
}

static pln_status add_header(pln_buffer *key, const pln_attr *a, size_t count) {
  bool typed = a->kind == PLN_ATTR_REF || a->kind == PLN_ATTR_NONE ||
               a->kind == PLN_ATTR_BYTES;
  key_entry header = {.name = a->name,
                      .kind = a->kind,
                      .onnx_type = typed ? a->onnx_type : 0,
                      .count = count};
  return pln_buffer_add(key, &header, sizeof header);
}

static pln_status add_text(pln_buffer *key, pln_slice text) {
  uint64_t size = text.size;
  PLN_TRY(pln_buffer_add(key, &size, sizeof size));
  return add_padded(key, text.data, text.size);
}

static pln_status add_tensor(pln_buffer *key, pln_tensor *tensor) {
  uint32_t number;
  PLN_TRY(tensor_number(key->engine, tensor, &number));
  uint64_t word = number;
  return pln_buffer_add(key, &word, sizeof word);
}

/* The payload of a list. */
static pln_status add_list(pln_buffer *key, const pln_attr *a) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_STRINGS:
    for (uint32_t i = 0; i < a->count; i++)
      PLN_TRY(add_text(key, a->v.strings[i]));
    return PLN_OK;
  case PLN_ATTR_TENSORS:
    for (uint32_t i = 0; i < a->count; i++)
      PLN_TRY(add_tensor(key, a->v.tensors[i]));
    return PLN_OK;
  case PLN_ATTR_TYPES:
    return add_padded(key, a->v.types, a->count * sizeof *a->v.types);
  default: /* INTS, FLOATS, GRAPHS: words */
    return pln_buffer_add(key, a->v.ints, a->count * sizeof *a->v.ints);
  }
}

/* The payload of a value of one word. */
static pln_status add_word(pln_buffer *key, const pln_attr *a) {
  uint64_t word = 0;
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_INT:
  case PLN_ATTR_BOOL:
  case PLN_ATTR_GRAPH: word = (uint64_t)a->v.i; break;
  case PLN_ATTR_FLOAT: memcpy(&word, &a->v.f, sizeof word); break;
  case PLN_ATTR_REF: word = a->v.symbol; break;
  case PLN_ATTR_TYPE: word = a->v.type; break;
  case PLN_ATTR_LIST:
  case PLN_ATTR_DICT: word = a->v.dict; break;
  default: break;
  }
  return pln_buffer_add(key, &word, sizeof word);
}

static pln_status add_entry(pln_buffer *key, const pln_attr *a) {
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_NONE: return add_header(key, a, 0);
  case PLN_ATTR_STRING:
  case PLN_ATTR_OBJECT:
  case PLN_ATTR_BYTES:
    PLN_TRY(add_header(key, a, a->v.s.size));
    return add_padded(key, a->v.s.data, a->v.s.size);
  case PLN_ATTR_TENSOR:
    PLN_TRY(add_header(key, a, 0));
    return add_tensor(key, a->v.tensor);
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS:
  case PLN_ATTR_TENSORS:
  case PLN_ATTR_TYPES:
  case PLN_ATTR_GRAPHS:
    PLN_TRY(add_header(key, a, a->count));
    return add_list(key, a);
  default: PLN_TRY(add_header(key, a, 0)); return add_word(key, a);
  }
}

/* reading: decodes a new key into entries */

static void *read_key_bytes(const char **at, size_t size) {
  void *here = (void *)(uintptr_t)*at;
  *at += (size + 7) & ~(size_t)7;
  return here;
}

static uint64_t read_key_word(const char **at) {
  uint64_t word;
  memcpy(&word, *at, sizeof word);
  *at += sizeof word;
  return word;
}

static pln_slice read_key_text(const char **at, uint64_t size) {
  return (pln_slice){read_key_bytes(at, (size_t)size), (size_t)size};
}

static bool read_key_strings(struct pln_attr_sets *t, const char **at,
                             pln_attr *out) {
  pln_slice *list = pln_arena_new(&t->arena, (out->count + 1u) * sizeof *list);
  if (!list)
    return false;
  for (uint32_t i = 0; i < out->count; i++) {
    uint64_t size = read_key_word(at);
    list[i] = read_key_text(at, size);
  }
  out->v.strings = list;
  return true;
}

static bool read_tensors(struct pln_attr_sets *t, const char **at,
                         pln_attr *out) {
  pln_tensor **list =
      pln_arena_new(&t->arena, (out->count + 1u) * sizeof(pln_tensor *));
  if (!list)
    return false;
  for (uint32_t i = 0; i < out->count; i++)
    list[i] = t->tensors[read_key_word(at) - 1];
  out->v.tensors = list;
  return true;
}

static bool read_key_list(struct pln_attr_sets *t, const char **at,
                          pln_attr *out) {
  switch ((pln_attr_kind)out->kind) {
  case PLN_ATTR_STRINGS: return read_key_strings(t, at, out);
  case PLN_ATTR_TENSORS: return read_tensors(t, at, out);
  case PLN_ATTR_TYPES:
    out->v.types = read_key_bytes(at, out->count * sizeof(pln_type));
    return true;
  default:
    out->v.ints = read_key_bytes(at, out->count * sizeof(int64_t));
    return true;
  }
}

/* Decodes what add_entry wrote; false when out of memory. */
static bool read_key_entry(struct pln_attr_sets *t, const char **at,
                           pln_attr *out) {
  const key_entry *header = read_key_bytes(at, sizeof *header);
  *out = (pln_attr){.name = header->name,
                    .kind = header->kind,
                    .onnx_type = header->onnx_type};
  switch ((pln_attr_kind)header->kind) {
  case PLN_ATTR_NONE: return true;
  case PLN_ATTR_INT:
  case PLN_ATTR_BOOL:
  case PLN_ATTR_GRAPH: out->v.i = (int64_t)read_key_word(at); return true;
  case PLN_ATTR_FLOAT: memcpy(&out->v.f, read_key_bytes(at, 8), 8); return true;
  case PLN_ATTR_REF: out->v.symbol = (pln_symbol)read_key_word(at); return true;
  case PLN_ATTR_TYPE: out->v.type = (pln_type)read_key_word(at); return true;
  case PLN_ATTR_LIST:
  case PLN_ATTR_DICT: out->v.dict = (pln_attrs)read_key_word(at); return true;
  case PLN_ATTR_STRING:
  case PLN_ATTR_OBJECT:
  case PLN_ATTR_BYTES: out->v.s = read_key_text(at, header->count); return true;
  case PLN_ATTR_TENSOR:
    out->v.tensor = t->tensors[read_key_word(at) - 1];
    return true;
  default:
    out->count = (uint32_t)header->count;
    return read_key_list(t, at, out);
  }
}

static pln_slice attr_entry_name(const pln_engine *engine,
                                 const pln_attr *entry) {
  return entry->name ? pln_symbol_text(engine, entry->name) : pln_text("");
}

static pln_status read_key(pln_engine *engine, pln_attrs id, attr_set *out) {
  struct pln_attr_sets *t = engine->attrs;
  size_t size;
  const char *at = pln_interned(t->keys, id, &size);
  uint64_t first = read_key_word(&at);
  out->sorted = !(first & LIST_MARK);
  out->count = (uint32_t)first;
  out->refs = false;
  out->entries =
      pln_arena_new(&t->arena, (out->count + 1u) * sizeof *out->entries);
  out->names = pln_arena_new(&t->arena, (out->count + 1u) * sizeof *out->names);
  if (!out->entries || !out->names)
    return pln_nomem(engine);
  for (uint32_t i = 0; i < out->count; i++) {
    if (!read_key_entry(t, &at, &out->entries[i]))
      return pln_nomem(engine);
    out->names[i] = attr_entry_name(engine, &out->entries[i]);
    out->refs |= out->entries[i].kind == PLN_ATTR_REF;
  }
  out->hash = pln_attr_entries_hash(engine, out->count, out->entries);
  return PLN_OK;
}

/* ------------------------------------------------------------------ making */

/* An entry to be put in its place. */
typedef struct named_entry {
  pln_slice name;
  const pln_attr *entry;
} named_entry;

static int compare_names(pln_slice a, pln_slice b) {
  size_t size = a.size < b.size ? a.size : b.size;
  int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
  return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_entries(const void *a, const void *b) {
  return compare_names(((const named_entry *)a)->name,
                       ((const named_entry *)b)->name);
}

static pln_status sort_entries(pln_engine *engine, uint32_t count,
                               const pln_attr *entries, named_entry *sorted) {
  bool in_order = true;
  for (uint32_t i = 0; i < count; i++) {
    sorted[i].name = pln_symbol_text(engine, entries[i].name);
    sorted[i].entry = &entries[i];
    in_order &= i == 0 || compare_entries(&sorted[i - 1], &sorted[i]) < 0;
  }
  if (in_order)
    return PLN_OK;
  qsort(sorted, count, sizeof *sorted, compare_entries);
  for (uint32_t i = 1; i < count; i++)
    if (sorted[i - 1].entry->name == sorted[i].entry->name)
      return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                            "attribute '%.*s' is given twice",
                            (int)sorted[i].name.size, sorted[i].name.data);
  return PLN_OK;
}

static pln_status write_key(pln_buffer *key, uint32_t count,
                            const named_entry *sorted) {
  uint64_t word = count;
  PLN_TRY(pln_buffer_add(key, &word, sizeof word));
  for (uint32_t i = 0; i < count; i++)
    PLN_TRY(add_entry(key, sorted[i].entry));
  return PLN_OK;
}

/* If memory ran out before, a key may lack its dictionary; it gets one when it
 * is interned again. Keys and dictionaries have the same numbers, so gaps are
 * filled first. */
static pln_status intern_key(pln_engine *engine, const pln_buffer *key,
                             pln_attrs *out) {
  struct pln_attr_sets *t = engine->attrs;
  pln_attrs id = pln_intern_find(t->keys, key->data, key->size);
  if (!id) {
    size_t need = pln_interner_count(t->keys) - t->below + 1u;
    if (need > t->cap_sets)
      PLN_TRY(pln_mem_grow(engine, (void **)&t->sets, &t->cap_sets, need,
                           sizeof *t->sets));
    PLN_TRY(pln_intern(t->keys, key->data, key->size, &id, NULL));
  }
  for (; t->n_sets < pln_interner_count(t->keys) - t->below; t->n_sets++)
    PLN_TRY(read_key(engine, t->below + t->n_sets + 1, &t->sets[t->n_sets]));
  *out = id;
  return PLN_OK;
}

static pln_status make_sorted(pln_engine *engine, uint32_t count,
                              const pln_attr *entries, named_entry *sorted,
                              pln_attrs *out) {
  PLN_TRY(sort_entries(engine, count, entries, sorted));
  pln_buffer key;
  pln_buffer_init(&key, engine);
  pln_status status = write_key(&key, count, sorted);
  if (status == PLN_OK)
    status = intern_key(engine, &key, out);
  pln_buffer_free(&key);
  return status;
}

pln_status pln_attrs_make(pln_engine *engine, uint32_t count,
                          const pln_attr *entries, pln_attrs *out) {
  named_entry near[16];
  if (count == 0) {
    *out = 0;
    return PLN_OK;
  }
  for (uint32_t i = 0; i < count; i++)
    if (entries[i].kind >= PLN_N_ATTR_KINDS || entries[i].name == 0)
      return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                            "an attribute has no name, or a kind %u",
                            (unsigned)entries[i].kind);
  if (count <= PLN_COUNT(near))
    return make_sorted(engine, count, entries, near, out);
  named_entry *sorted = pln_mem_new(engine, count * sizeof *sorted);
  if (!sorted)
    return pln_nomem(engine);
  pln_status status = make_sorted(engine, count, entries, sorted, out);
  pln_mem_free(engine, sorted, count * sizeof *sorted);
  return status;
}

static pln_status write_list(pln_buffer *key, uint32_t count,
                             const pln_attr *items) {
  uint64_t word = count | LIST_MARK;
  PLN_TRY(pln_buffer_add(key, &word, sizeof word));
  for (uint32_t i = 0; i < count; i++)
    PLN_TRY(add_entry(key, &items[i]));
  return PLN_OK;
}

pln_status pln_attrs_list(pln_engine *engine, uint32_t count,
                          const pln_attr *items, pln_attrs *out) {
  *out = 0;
  for (uint32_t i = 0; i < count; i++)
    if (items[i].kind >= PLN_N_ATTR_KINDS)
      return pln_diag_error(engine, PLN_ERR_ARGUMENT, NULL,
                            "element %u of a list is of a kind %u", i,
                            (unsigned)items[i].kind);
  if (count == 0)
    return PLN_OK;
  pln_buffer key;
  pln_buffer_init(&key, engine);
  pln_status status = write_list(&key, count, items);
  if (status == PLN_OK)
    status = intern_key(engine, &key, out);
  pln_buffer_free(&key);
  return status;
}

/* ----------------------------------------------------------------- reading */

static const attr_set *set_of(const pln_engine *engine, pln_attrs attrs) {
  static const attr_set empty = {.sorted = true};
  const struct pln_attr_sets *t = engine->attrs;
  if (attrs == 0)
    return &empty;
  if (attrs > t->below)
    return &t->sets[attrs - t->below - 1];
  uint32_t borrow_state =
      t->n_borrowed_sets ? pln_idmap_get(t->borrow_state, attrs) : 0;
  return borrow_state ? &t->borrowed_sets[borrow_state - 1]
                      : &t->base->sets[attrs - 1];
}

uint32_t pln_attrs_count(const pln_engine *engine, pln_attrs attrs) {
  return set_of(engine, attrs)->count;
}

uint64_t pln_attrs_hash(const pln_engine *engine, pln_attrs attrs) {
  return set_of(engine, attrs)->hash;
}

bool pln_attrs_has_refs(const pln_engine *engine, pln_attrs attrs) {
  return set_of(engine, attrs)->refs;
}

const pln_attr *pln_attrs_at(const pln_engine *engine, pln_attrs attrs,
                             uint32_t index) {
  return &set_of(engine, attrs)->entries[index];
}

static const pln_attr *find_sorted(const attr_set *set, pln_slice name) {
  uint32_t low = 0, high = set->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int order = compare_names(set->names[middle], name);
    if (order == 0)
      return &set->entries[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

const pln_attr *pln_attrs_find(const pln_engine *engine, pln_attrs attrs,
                               const char *name) {
  const attr_set *set = set_of(engine, attrs);
  pln_slice wanted = pln_text(name);
  if (set->count > 12 && set->sorted)
    return find_sorted(set, wanted);
  for (uint32_t i = 0; i < set->count; i++)
    if (set->names[i].size == wanted.size &&
        memcmp(set->names[i].data, wanted.data, wanted.size) == 0)
      return &set->entries[i];
  return NULL;
}

int64_t pln_attrs_int(const pln_engine *engine, pln_attrs attrs,
                      const char *name, int64_t fallback) {
  const pln_attr *a = pln_attrs_find(engine, attrs, name);
  bool whole = a && (a->kind == PLN_ATTR_INT || a->kind == PLN_ATTR_BOOL);
  return whole ? a->v.i : fallback;
}

double pln_attrs_float(const pln_engine *engine, pln_attrs attrs,
                       const char *name, double fallback) {
  const pln_attr *a = pln_attrs_find(engine, attrs, name);
  return a && a->kind == PLN_ATTR_FLOAT ? a->v.f : fallback;
}

pln_slice pln_attrs_string(const pln_engine *engine, pln_attrs attrs,
                           const char *name, const char *fallback) {
  const pln_attr *a = pln_attrs_find(engine, attrs, name);
  return a && a->kind == PLN_ATTR_STRING ? a->v.s : pln_text(fallback);
}

/* --------------------------------------------------------------- children */

static bool holds_tensors(const attr_set *set) {
  for (uint32_t i = 0; i < set->count; i++)
    if (set->entries[i].kind == PLN_ATTR_TENSOR ||
        set->entries[i].kind == PLN_ATTR_TENSORS)
      return true;
  return false;
}

/* A child must not touch its parent's tensors, so it decodes dictionaries that
 * contain tensors again, with borrowed ones. */
static pln_status borrow_set(pln_engine *child, pln_attrs id) {
  struct pln_attr_sets *t = child->attrs;
  PLN_TRY(pln_mem_grow(child, (void **)&t->borrowed_sets, &t->cap_borrowed_sets,
                       t->n_borrowed_sets + 1u, sizeof *t->borrowed_sets));
  PLN_TRY(read_key(child, id, &t->borrowed_sets[t->n_borrowed_sets]));
  return pln_idmap_set(t->borrow_state, id, ++t->n_borrowed_sets);
}

static pln_status borrow_set_tensors(pln_engine *child) {
  struct pln_attr_sets *t = child->attrs;
  const struct pln_attr_sets *base = t->base;
  PLN_TRY(pln_mem_grow(child, (void **)&t->tensors, &t->cap_tensors,
                       base->n_tensors, sizeof *t->tensors));
  for (; t->n_tensors < base->n_tensors; t->n_tensors++, t->n_borrowed++)
    PLN_TRY(pln_borrow_tensor(child, base->tensors[t->n_tensors],
                              &t->tensors[t->n_tensors]));
  for (pln_attrs id = 1; id <= base->n_sets; id++)
    if (holds_tensors(&base->sets[id - 1]))
      PLN_TRY(borrow_set(child, id));
  return PLN_OK;
}

pln_status pln_attrs_child(pln_engine *child) {
  struct pln_attr_sets *t = pln_mem_zeroed(child, sizeof *t);
  if (!t)
    return pln_nomem(child);
  child->attrs = t;
  t->base = child->parent->attrs;
  t->below = pln_interner_count(t->base->keys);
  if (t->base->n_sets < t->below) /* a gap left when memory ran out */
    return pln_nomem(child);
  pln_arena_init(&t->arena, child);
  PLN_TRY(pln_interner_child(child, t->base->keys, &t->keys));
  PLN_TRY(pln_idmap_new(child, &t->by_hash));
  PLN_TRY(pln_idmap_new(child, &t->borrow_state));
  return t->base->n_tensors ? borrow_set_tensors(child) : PLN_OK;
}

uint32_t pln_attrs_inherited(const pln_engine *engine) {
  return engine->attrs->below;
}

uint32_t pln_attrs_total(const pln_engine *engine) {
  return engine->attrs->below + engine->attrs->n_sets;
}

/* Nested dictionaries are older; types may not be merged yet. */
static bool has_types(const pln_merge *j, const attr_set *set) {
  uint32_t known = j->types.below + j->types.n;
  for (uint32_t i = 0; i < set->count; i++) {
    const pln_attr *a = &set->entries[i];
    if (a->kind == PLN_ATTR_TYPE && a->v.type > known)
      return false;
    for (uint32_t k = 0; a->kind == PLN_ATTR_TYPES && k < a->count; k++)
      if (a->v.types[k] > known)
        return false;
  }
  return true;
}

static bool move_types(const pln_merge *j, pln_arena *arena, pln_attr *a) {
  pln_type *types = pln_arena_new(arena, (a->count + 1u) * sizeof *types);
  if (!types)
    return false;
  for (uint32_t i = 0; i < a->count; i++)
    types[i] = pln_merged_id(&j->types, a->v.types[i]);
  a->v.types = types;
  return true;
}

static bool move_tensors(const pln_merge *j, pln_arena *arena, pln_attr *a) {
  pln_tensor **tensors = pln_arena_new(arena, (a->count + 1u) * sizeof a);
  if (!tensors)
    return false;
  for (uint32_t i = 0; i < a->count; i++)
    tensors[i] = pln_merge_tensor(j, a->v.tensors[i]);
  a->v.tensors = tensors;
  return true;
}

/* The entry with the parent's ids; false when out of memory. Numbers and texts
 * are copied when they are interned. */
static bool move_entry(const pln_merge *j, pln_arena *arena, pln_attr *a) {
  a->name = pln_merged_id(&j->symbols, a->name);
  switch ((pln_attr_kind)a->kind) {
  case PLN_ATTR_REF:
    a->v.symbol = pln_merged_id(&j->symbols, a->v.symbol);
    break;
  case PLN_ATTR_TYPE: a->v.type = pln_merged_id(&j->types, a->v.type); break;
  case PLN_ATTR_LIST:
  case PLN_ATTR_DICT: a->v.dict = pln_merged_id(&j->attrs, a->v.dict); break;
  case PLN_ATTR_TENSOR: a->v.tensor = pln_merge_tensor(j, a->v.tensor); break;
  case PLN_ATTR_TENSORS: return move_tensors(j, arena, a);
  case PLN_ATTR_TYPES: return move_types(j, arena, a);
  default: break;
  }
  return true;
}

static pln_status move_set(pln_merge *j, pln_arena *arena, const attr_set *set,
                           pln_attrs *out) {
  pln_attr *entries = pln_arena_new(arena, (set->count + 1u) * sizeof *entries);
  if (!entries)
    return pln_nomem(j->parent);
  for (uint32_t i = 0; i < set->count; i++) {
    entries[i] = set->entries[i];
    if (!move_entry(j, arena, &entries[i]))
      return pln_nomem(j->parent);
  }
  return set->sorted ? pln_attrs_make(j->parent, set->count, entries, out)
                     : pln_attrs_list(j->parent, set->count, entries, out);
}

pln_status pln_merge_attrs(pln_merge *j, bool *ready) {
  const attr_set *set = &j->child->attrs->sets[j->attrs.n];
  *ready = has_types(j, set);
  if (!*ready)
    return PLN_OK;
  pln_arena arena;
  pln_arena_init(&arena, j->parent);
  pln_status status = move_set(j, &arena, set, &j->attrs.to[j->attrs.n]);
  pln_arena_free(&arena);
  j->attrs.n += status == PLN_OK;
  return status;
}

/* ---------------------------------------------------------- changed copies */

/* The entries of `attrs` except `without`, then `added` unless NULL. */
static pln_status make_changed(pln_engine *engine, pln_attrs attrs,
                               pln_symbol without, const pln_attr *added,
                               pln_attrs *out) {
  const attr_set *set = set_of(engine, attrs);
  size_t size = (set->count + 1u) * sizeof(pln_attr);
  pln_attr *entries = pln_mem_new(engine, size);
  if (!entries)
    return pln_nomem(engine);
  uint32_t n = 0;
  for (uint32_t i = 0; i < set->count; i++)
    if (set->entries[i].name != without)
      entries[n++] = set->entries[i];
  if (added)
    entries[n++] = *added;
  pln_status status = pln_attrs_make(engine, n, entries, out);
  pln_mem_free(engine, entries, size);
  return status;
}

pln_status pln_attrs_with(pln_engine *engine, pln_attrs attrs,
                          const pln_attr *entry, pln_attrs *out) {
  return make_changed(engine, attrs, entry->name, entry, out);
}

pln_status pln_attrs_without(pln_engine *engine, pln_attrs attrs,
                             const char *name, pln_attrs *out) {
  const pln_attr *entry = pln_attrs_find(engine, attrs, name);
  if (!entry) {
    *out = attrs;
    return PLN_OK;
  }
  return make_changed(engine, attrs, entry->name, NULL, out);
}
