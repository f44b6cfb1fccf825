/* tir/script/parse/name.c: the names of a TVMScript text: variables and buffers
 * in their scopes, functions, and the names of T.
 *
 * Called by the other files of the parser. Bindings are kept in order, so that
 * a scope ends by removing the newest. */

#include "ir/tir/script/parse/parse.h"

/* ---------------------------------------------------------------- bindings */

pln_status pln_script_bind(pln_script_parser *p, pln_symbol name,
                           const pln_script_value *value) {
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->bindings, &p->cap_bindings,
                       (size_t)p->n_bindings + 1, sizeof *p->bindings));
  uint32_t former = pln_idmap_get(p->names, name);
  PLN_TRY(pln_idmap_set(p->names, name, p->n_bindings + 1));
  p->bindings[p->n_bindings] = (pln_script_binding){name, former, *value};
  p->bindings[p->n_bindings++].value.key = (pln_slice){NULL, 0};
  return PLN_OK;
}

const pln_script_value *pln_script_lookup(const pln_script_parser *p,
                                          pln_symbol name) {
  uint32_t found = pln_idmap_get(p->names, name);
  return found ? &p->bindings[found - 1].value : NULL;
}

/* Setting an existing key cannot fail. */
void pln_script_unbind(pln_script_parser *p, uint32_t mark) {
  while (p->n_bindings > mark) {
    const pln_script_binding *b = &p->bindings[--p->n_bindings];
    pln_status status = pln_idmap_set(p->names, b->name, b->former);
    (void)status;
  }
}

/* ------------------------------------------------------------- names of T */

static const struct {
  const char *name;
} methods[] = {
    {""},
#define METHOD(ID, name, when, parameters) {name},
#include "ir/tir/script/parse/methods.def"
};

/* Entries of the hash table: methods, then builtins. */
static const char *word_at(uint32_t entry) {
  return entry < PLN_N_METHODS
             ? methods[entry].name
             : pln_builtin_row(entry - PLN_N_METHODS + 1)->script;
}

static uint32_t slot_of(pln_slice name) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < name.size; i++)
    hash = (hash ^ (unsigned char)name.data[i]) * 16777619u;
  return (hash ^ hash >> 15) % PLN_COUNT(((pln_script_parser *)0)->words);
}

static uint32_t find_word(const pln_script_parser *p, pln_slice name) {
  uint32_t slot = slot_of(name);
  while (p->words[slot] && !pln_slice_is(name, word_at(p->words[slot])))
    slot = (slot + 1) % PLN_COUNT(p->words);
  return slot;
}

void pln_script_fill_words(pln_script_parser *p) {
  uint32_t end = PLN_N_METHODS + pln_builtin_count();
  for (uint32_t i = 1; i < end; i++) {
    uint32_t slot = find_word(p, pln_text(word_at(i)));
    if (!p->words[slot])
      p->words[slot] = (uint16_t)i;
  }
}

/* Other names that TVM has for the same. */
static pln_slice canonical_name(pln_slice name) {
  static const char *const names[][2] = {{"axis.S", "axis.spatial"},
                                         {"axis.R", "axis.reduce"},
                                         {"boolean", "bool"},
                                         {"broadcast", "Broadcast"},
                                         {"buffer_decl", "Buffer"},
                                         {"power", "pow"},
                                         {"ramp", "Ramp"},
                                         {"tvm_call_cpacked", "call_cpacked"},
                                         {"tvm_call_packed", "call_packed"}};
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    if (pln_slice_is(name, names[i][0]))
      return pln_text(names[i][1]);
  return name;
}

/* The dtypes that are named in a suggestion. */
static const char *const dtype_names[] = {
    "int8",    "int16",    "int32",  "int64",   "uint8",
    "uint16",  "uint32",   "uint64", "float16", "float32",
    "float64", "bfloat16", "bool",   "handle",  "void"};

static pln_status no_such_method(pln_script_parser *p, pln_slice name) {
  const char *names[512];
  uint32_t n = 0;
  for (uint32_t i = 1; i < PLN_N_METHODS + pln_builtin_count(); i++)
    if (n < PLN_COUNT(names) - PLN_COUNT(dtype_names))
      names[n++] = word_at(i);
  for (uint32_t i = 0; i < PLN_COUNT(dtype_names); i++)
    names[n++] = dtype_names[i];
  return pln_script_unknown(p, name, "function of T", n, names);
}

/* TVM's names of two 8-bit float dtypes differ. */
static pln_slice own_name(pln_slice name, char *text) {
  static const char *const names[][2] = {{"e4m3_float8", "float8_e4m3fn"},
                                         {"e5m2_float8", "float8_e5m2"}};
  for (size_t i = 0; i < PLN_COUNT(names); i++) {
    size_t n = strlen(names[i][0]), own = strlen(names[i][1]);
    if (name.size < n || name.size > n + 8 || memcmp(name.data, names[i][0], n))
      continue;
    memcpy(text, names[i][1], own);
    memcpy(text + own, name.data + n, name.size - n);
    return (pln_slice){text, own + name.size - n};
  }
  return name;
}

bool pln_script_find_dtype(pln_script_parser *p, pln_slice name, pln_type *out,
                           pln_status *status) {
  char text[40];
  uint32_t lanes = 1;
  *status = PLN_OK;
  if (name.size == 0 || pln_slice_is(name, "void")) {
    *status = pln_type_make(p->engine, PLN_TYPE_TUPLE, 0, 0, NULL, out);
    return true;
  }
  pln_dtype dtype = pln_dtype_find_vector(own_name(name, text), &lanes);
  if (dtype == PLN_DTYPE_NONE && !pln_slice_is(name, "handle"))
    return false;
  *status = pln_type_prim(p->engine, dtype, lanes, out);
  return true;
}

pln_status pln_script_resolve_method(pln_script_parser *p, pln_slice name,
                                     pln_script_value *out) {
  uint32_t entry = p->words[find_word(p, name)];
  pln_status status;
  if (entry) {
    bool builtin = entry >= PLN_N_METHODS;
    out->kind = builtin ? PLN_V_BUILTIN : PLN_V_METHOD;
    out->v.of.number = builtin ? entry - PLN_N_METHODS + 1 : entry;
    return PLN_OK;
  }
  out->kind = PLN_V_TYPE;
  out->called = out->is_size = false;
  if (pln_script_find_dtype(p, name, &out->v.of.type, &status))
    return status;
  pln_slice canonical = canonical_name(name);
  if (canonical.data != name.data)
    return pln_script_resolve_method(p, canonical, out);
  return no_such_method(p, name);
}

/* -------------------------------------------------------------------- names
 */

static pln_status unknown_name(pln_script_parser *p, pln_slice name) {
  const char *names[256];
  uint32_t n = 0;
  for (uint32_t i = p->n_bindings; i-- > 0 && n < PLN_COUNT(names);)
    names[n++] = pln_symbol_text(p->engine, p->bindings[i].name).data;
  return pln_script_unknown(p, name, "variable or function", n, names);
}

/* A producer is known by its name only; its dtype by its first use. */
static pln_status new_producer(pln_script_parser *p, pln_symbol name,
                               pln_script_value *out) {
  out->kind = PLN_V_PRODUCER;
  PLN_TRY(pln_build_var(p->b, name, p->types[3], 0, &out->v.of.ref));
  out->v.of.type = 0;
  return pln_script_bind(p, name, out);
}

/* True if a field of a buffer follows: "T" and "I" may be buffers, too. */
static bool before_field(const pln_script_parser *p) {
  static const char *const fields[] = {"data", "elem_offset", "strides",
                                       "shape"};
  pln_script_lexer ahead = p->lexer;
  pln_script_token t;
  pln_script_lex_next(&ahead, &t);
  if (t.kind != PLN_S_DOT)
    return true;
  pln_script_lex_next(&ahead, &t);
  for (size_t i = 0; i < PLN_COUNT(fields); i++)
    if (pln_slice_is(t.text, fields[i]))
      return true;
  return false;
}

static bool is_namespace(pln_slice name) {
  return name.size == 1 && (*name.data == 'T' || *name.data == 'I');
}

pln_status pln_script_producer(pln_script_parser *p, pln_slice name,
                               pln_script_value *out) {
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(p->engine, name, &symbol));
  const pln_script_value *known = pln_script_lookup(p, symbol);
  if (!known)
    return new_producer(p, symbol, out);
  out->kind = known->kind;
  out->v = known->v;
  return PLN_OK;
}

/* The variables that one name stands for, as a tuple. */
static pln_status expand_grid(pln_script_parser *p, pln_script_value *value) {
  uint32_t first = value->first;
  PLN_TRY(pln_mem_grow(p->engine, (void **)&p->kept, &p->cap_kept,
                       (size_t)p->n_kept + value->n + 1, sizeof *p->kept));
  value->kind = PLN_V_TUPLE;
  value->first = p->n_kept;
  for (uint32_t i = 0; i < value->n; i++) {
    pln_script_value item = {.at = value->at, .size = value->size};
    pln_script_set_ref(&item, p->grids[first + i]);
    p->kept[p->n_kept++] = item;
  }
  return PLN_OK;
}

pln_status pln_script_resolve(pln_script_parser *p, pln_script_value *out) {
  pln_slice name = p->token.text;
  pln_symbol symbol;
  PLN_TRY(pln_symbol_intern(p->engine, name, &symbol));
  const pln_script_value *known = pln_script_lookup(p, symbol);
  const char *at = out->at;
  uint32_t size = out->size;
  if (known && (!is_namespace(name) || before_field(p))) {
    *out = *known;
    out->at = at;
    out->size = size;
    return known->kind == PLN_V_GRID ? expand_grid(p, out) : PLN_OK;
  }
  uint32_t function = pln_idmap_get(p->functions, symbol);
  if (is_namespace(name) || pln_slice_is(name, "tvm") ||
      (p->class_name && symbol == p->class_name)) {
    out->kind = PLN_V_MODULE;
    out->v.of.number =
        (unsigned char)(symbol == p->class_name ? 'M' : *name.data);
    return PLN_OK;
  }
  if (pln_slice_is(name, "range")) {
    out->kind = PLN_V_METHOD;
    out->v.of.number = PLN_METHOD_SERIAL;
    return PLN_OK;
  }
  if (function) {
    out->kind = PLN_V_FUNCTION;
    out->v.of.tag = symbol;
    out->v.of.type = p->known[function - 1].result;
    return PLN_OK;
  }
  if (p->has_producers && !p->outside)
    return new_producer(p, symbol, out);
  return unknown_name(p, name);
}
