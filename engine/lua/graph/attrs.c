/* attrs.c: converts attributes to and from Lua.
 *
 * Reading: an Attrs object is a view of an interned dictionary, one object per
 * dictionary. Writing: a table keyed by names. An operator's schema decides
 * which names exist and whether a number is a float; without a schema the
 * value's own subtype decides. A name that only Relay's schema has selects
 * Relay's form of the operator. */

#include "ir/attrs/attrs.h"
#include "ir/op_info.h"
#include "lua/binding.h"

enum { MAX_DEPTH = 32 }; /* nesting of dictionaries and lists */

/* ------------------------------------------------------------------ to Lua */

void pln_lua_push_attrs(lua_State *L, pln_lua *b, pln_attrs attrs) {
  (void)b;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.interned);
  if (lua_rawgeti(L, -1, 2 * (lua_Integer)attrs + 1) == LUA_TNIL) {
    lua_pop(L, 1);
    *(pln_attrs *)pln_lua_userdata(L, PLN_LUA_ATTRS, sizeof attrs, 0) = attrs;
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, 2 * (lua_Integer)attrs + 1);
  }
  lua_remove(L, -2);
}

/* Element i of a list kind.  [-0, +1] */
static void push_element(lua_State *L, pln_lua *b, const pln_attr *attr,
                         uint32_t i) {
  switch ((pln_attr_kind)attr->kind) {
  case PLN_ATTR_FLOATS: lua_pushnumber(L, attr->v.floats[i]); return;
  case PLN_ATTR_STRINGS:
    lua_pushlstring(L, attr->v.strings[i].data, attr->v.strings[i].size);
    return;
  case PLN_ATTR_TENSORS: pln_lua_push_tensor(L, attr->v.tensors[i]); return;
  case PLN_ATTR_TYPES: pln_lua_push_type(L, b, attr->v.types[i]); return;
  default: /* INTS, GRAPHS */ lua_pushinteger(L, attr->v.ints[i]); return;
  }
}

static void push_ref(lua_State *L, pln_lua *b, pln_symbol symbol) {
  pln_slice name = pln_symbol_text(b->engine, symbol);
  lua_createtable(L, 0, 1);
  lua_pushlstring(L, name.data, name.size);
  lua_setfield(L, -2, "ref");
}

static void push_list(lua_State *L, pln_lua *b, pln_attrs list, int depth);

void pln_lua_push_attr(lua_State *L, pln_lua *b, const pln_attr *attr) {
  switch ((pln_attr_kind)attr->kind) {
  case PLN_ATTR_INT:
  case PLN_ATTR_GRAPH: lua_pushinteger(L, attr->v.i); return;
  case PLN_ATTR_FLOAT: lua_pushnumber(L, attr->v.f); return;
  case PLN_ATTR_STRING:
  case PLN_ATTR_OBJECT:
  case PLN_ATTR_BYTES:
    lua_pushlstring(L, attr->v.s.data, attr->v.s.size);
    return;
  case PLN_ATTR_BOOL: lua_pushboolean(L, attr->v.i != 0); return;
  case PLN_ATTR_TENSOR: pln_lua_push_tensor(L, attr->v.tensor); return;
  case PLN_ATTR_TYPE: pln_lua_push_type(L, b, attr->v.type); return;
  case PLN_ATTR_DICT: pln_lua_push_attrs(L, b, attr->v.dict); return;
  case PLN_ATTR_REF: push_ref(L, b, attr->v.symbol); return;
  case PLN_ATTR_NONE:
  case PLN_N_ATTR_KINDS: lua_pushboolean(L, true); return;
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS:
  case PLN_ATTR_TENSORS:
  case PLN_ATTR_TYPES:
  case PLN_ATTR_GRAPHS:
    lua_createtable(L, (int)attr->count, 0);
    for (uint32_t i = 0; i < attr->count; i++) {
      push_element(L, b, attr, i);
      lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return;
  case PLN_ATTR_LIST: push_list(L, b, attr->v.dict, 0); return;
  }
}

/* Lists nest no deeper than MAX_DEPTH; deeper levels are cut off. */
static void push_list(lua_State *L, pln_lua *b, pln_attrs list, int depth) {
  uint32_t n = pln_attrs_count(b->engine, list);
  lua_createtable(L, (int)n, 0);
  luaL_checkstack(L, 8, "lists nest too deep");
  for (uint32_t i = 0; i < n; i++) {
    const pln_attr *item = pln_attrs_at(b->engine, list, i);
    if (item->kind != PLN_ATTR_LIST)
      pln_lua_push_attr(L, b, item);
    else if (depth < MAX_DEPTH)
      push_list(L, b, item->v.dict, depth + 1);
    else
      lua_newtable(L);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

static pln_attrs check_userdata(lua_State *L, int arg) {
  return *(pln_attrs *)luaL_checkudata(L, arg, PLN_LUA_ATTRS);
}

/* attrs[name] -> value or nil; attrs[i] -> the name of entry i */
static int attrs_index(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_attrs attrs = check_userdata(L, 1);
  const pln_attr *attr = NULL;
  if (lua_type(L, 2) == LUA_TSTRING)
    attr = pln_attrs_find(b->engine, attrs, lua_tostring(L, 2));
  if (!attr)
    return 0;
  pln_lua_push_attr(L, b, attr);
  return 1;
}

static int attrs_len(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_pushinteger(L, pln_attrs_count(b->engine, check_userdata(L, 1)));
  return 1;
}

/* The iterator of pairs. Upvalue 2 is the index of the next entry. */
static int next_attr(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_attrs attrs = check_userdata(L, 1);
  lua_Integer i = lua_tointeger(L, lua_upvalueindex(2));
  if (i >= pln_attrs_count(b->engine, attrs))
    return 0;
  lua_pushinteger(L, i + 1);
  lua_replace(L, lua_upvalueindex(2));
  const pln_attr *attr = pln_attrs_at(b->engine, attrs, (uint32_t)i);
  pln_slice name = pln_symbol_text(b->engine, attr->name);
  lua_pushlstring(L, name.data, name.size);
  pln_lua_push_attr(L, b, attr);
  return 2;
}

static int attrs_pairs(lua_State *L) {
  check_userdata(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, next_attr, 2);
  lua_pushvalue(L, 1);
  return 2;
}

static int attrs_tostring(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_attrs attrs = check_userdata(L, 1);
  pln_buffer *text = pln_lua_text(L, b);
  pln_lua_must(L, b, pln_print_attrs(b->engine, attrs, pln_buffer_write, text));
  pln_lua_text_done(L);
  return 1;
}

/* ------------------------------------------------------------------ schemas */

/* The kind that a schema such as "axis:int=1 axes:ints" gives `name`: NONE if
 * it has no such name, N_ATTR_KINDS if any kind is allowed. */
static pln_attr_kind schema_kind(const char *schema, const char *name) {
  static const struct {
    const char *word;
    pln_attr_kind kind;
  } words[] = {
      {"ints", PLN_ATTR_INTS},     {"int", PLN_ATTR_INT},
      {"bool", PLN_ATTR_INT},      {"floats", PLN_ATTR_FLOATS},
      {"float", PLN_ATTR_FLOAT},   {"strings", PLN_ATTR_STRINGS},
      {"string", PLN_ATTR_STRING}, {"tensors", PLN_ATTR_TENSORS},
      {"tensor", PLN_ATTR_TENSOR}, {"types", PLN_ATTR_TYPES},
      {"type", PLN_ATTR_TYPE},     {"graphs", PLN_ATTR_GRAPHS},
      {"graph", PLN_ATTR_GRAPH},   {"function", PLN_ATTR_GRAPH},
      {"dict", PLN_ATTR_DICT},     {"dtype", PLN_ATTR_STRING},
      {"extent", PLN_ATTR_INT},    {"scalar", PLN_ATTR_FLOAT},
  };
  size_t size = strlen(name);
  const char *p = schema;
  while (*p) {
    size_t n = strcspn(p, " ");
    if (n > size && !memcmp(p, name, size) && p[size] == ':')
      for (size_t i = 0; i < PLN_COUNT(words); i++)
        if (!strncmp(p + size + 1, words[i].word, strlen(words[i].word)))
          return words[i].kind;
    if (n > size && !memcmp(p, name, size) && p[size] == ':')
      return PLN_N_ATTR_KINDS;
    p += n;
    p += strspn(p, " ");
  }
  return PLN_ATTR_NONE;
}

/* -------------------------------------------------------------- from Lua */

/* The kind of a value by its Lua type. */
static pln_attr_kind attr_kind_of_value(lua_State *L, int index) {
  switch (lua_type(L, index)) {
  case LUA_TBOOLEAN: return PLN_ATTR_BOOL;
  case LUA_TNUMBER:
    return lua_isinteger(L, index) ? PLN_ATTR_INT : PLN_ATTR_FLOAT;
  case LUA_TSTRING: return PLN_ATTR_STRING;
  case LUA_TUSERDATA:
    if (pln_lua_test_tensor(L, index))
      return PLN_ATTR_TENSOR;
    if (luaL_testudata(L, index, PLN_LUA_TYPE))
      return PLN_ATTR_TYPE;
    if (luaL_testudata(L, index, PLN_LUA_ATTRS))
      return PLN_ATTR_DICT;
    return PLN_ATTR_NONE;
  default: return PLN_ATTR_NONE;
  }
}

static pln_attr_kind list_of(pln_attr_kind kind) {
  switch (kind) {
  case PLN_ATTR_INT: return PLN_ATTR_INTS;
  case PLN_ATTR_FLOAT: return PLN_ATTR_FLOATS;
  case PLN_ATTR_STRING: return PLN_ATTR_STRINGS;
  case PLN_ATTR_TENSOR: return PLN_ATTR_TENSORS;
  case PLN_ATTR_TYPE: return PLN_ATTR_TYPES;
  default: return PLN_ATTR_LIST;
  }
}

/* The kind of a list by its elements. Integers and floats give floats; other
 * mixtures, and nested lists, give a LIST. */
static pln_attr_kind kind_of_list(lua_State *L, int index) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, index);
  pln_attr_kind kind = PLN_ATTR_INT;
  for (lua_Integer i = 1; i <= n; i++) {
    lua_rawgeti(L, index, i);
    pln_attr_kind next = attr_kind_of_value(L, -1);
    lua_pop(L, 1);
    if (i == 1 || (kind == PLN_ATTR_INT && next == PLN_ATTR_FLOAT))
      kind = next;
    else if (next != kind && !(kind == PLN_ATTR_FLOAT && next == PLN_ATTR_INT))
      return PLN_ATTR_LIST;
  }
  return list_of(kind);
}

static bool is_dict(lua_State *L, int index) {
  lua_pushnil(L);
  if (!lua_next(L, index))
    return false;
  bool dict =
      lua_type(L, -2) == LUA_TSTRING || lua_type(L, -2) == LUA_TUSERDATA;
  lua_pop(L, 2);
  return dict;
}

static int64_t to_int(lua_State *L, int index) {
  if (lua_isboolean(L, index))
    return lua_toboolean(L, index);
  int ok;
  lua_Integer value = lua_tointegerx(L, index, &ok);
  if (!ok || lua_type(L, index) != LUA_TNUMBER)
    luaL_error(L, "an integer expected, got %s",
               luaL_tolstring(L, index, NULL));
  return value;
}

static double to_float(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TNUMBER)
    luaL_error(L, "a number expected, got %s", luaL_typename(L, index));
  return lua_tonumber(L, index);
}

static pln_slice to_slice(lua_State *L, int index) {
  pln_slice s;
  if (lua_type(L, index) != LUA_TSTRING)
    luaL_error(L, "a string expected, got %s", luaL_typename(L, index));
  s.data = lua_tolstring(L, index, &s.size);
  return s;
}

static pln_tensor *to_tensor(lua_State *L, int index) {
  pln_tensor *tensor = pln_lua_test_tensor(L, index);
  if (!tensor)
    luaL_error(L, "a tensor expected, got %s", luaL_typename(L, index));
  return tensor;
}

/* The table that they are read from keeps strings and tensors alive. */
static void read_lua_attr_list(lua_State *L, pln_lua *b, int index,
                               pln_attr *attr) {
  luaL_checktype(L, index, LUA_TTABLE);
  lua_Integer n = (lua_Integer)lua_rawlen(L, index);
  if (n > INT32_MAX / 16)
    luaL_error(L, "a list of %I values is too long", n);
  attr->count = (uint32_t)n;
  void *list = lua_newuserdatauv(L, (size_t)n * sizeof(pln_slice) + 1, 0);
  for (lua_Integer i = 0; i < n; i++) {
    lua_rawgeti(L, index, i + 1);
    switch ((pln_attr_kind)attr->kind) {
    case PLN_ATTR_FLOATS: ((double *)list)[i] = to_float(L, -1); break;
    case PLN_ATTR_STRINGS: ((pln_slice *)list)[i] = to_slice(L, -1); break;
    case PLN_ATTR_TENSORS: ((pln_tensor **)list)[i] = to_tensor(L, -1); break;
    case PLN_ATTR_TYPES:
      ((pln_type *)list)[i] = pln_lua_check_type(L, b, -1);
      break;
    default: ((int64_t *)list)[i] = to_int(L, -1); break;
    }
    lua_pop(L, 1);
  }
  attr->v.ints =
      list; /* all list kinds keep their pointer at the same offset */
}

static pln_attrs read_dict(lua_State *L, pln_lua *b, int arg, pln_op op,
                           int depth);

static pln_attrs read_items(lua_State *L, pln_lua *b, int index, int depth);

static void read_lua_attr_value(lua_State *L, pln_lua *b, int index, int depth,
                                pln_attr *attr) {
  switch ((pln_attr_kind)attr->kind) {
  case PLN_ATTR_BOOL: attr->v.i = lua_toboolean(L, index); return;
  case PLN_ATTR_LIST: attr->v.dict = read_items(L, b, index, depth + 1); return;
  case PLN_ATTR_INT:
  case PLN_ATTR_GRAPH: attr->v.i = to_int(L, index); return;
  case PLN_ATTR_FLOAT: attr->v.f = to_float(L, index); return;
  case PLN_ATTR_STRING: attr->v.s = to_slice(L, index); return;
  case PLN_ATTR_TENSOR: attr->v.tensor = to_tensor(L, index); return;
  case PLN_ATTR_TYPE: attr->v.type = pln_lua_check_type(L, b, index); return;
  case PLN_ATTR_DICT:
    attr->v.dict = read_dict(L, b, index, 0, depth + 1);
    return;
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS:
  case PLN_ATTR_TENSORS:
  case PLN_ATTR_TYPES:
  case PLN_ATTR_GRAPHS: read_lua_attr_list(L, b, index, attr); return;
  case PLN_ATTR_NONE:
  case PLN_ATTR_REF:
  case PLN_ATTR_BYTES:
  case PLN_ATTR_OBJECT:
  case PLN_N_ATTR_KINDS:
    luaL_error(L,
               "a number, boolean, string, tensor, type or a list of such "
               "expected, got %s",
               luaL_typename(L, index));
  }
}

/* Attributes of operators are float32, as in ONNX, so that a value survives a
 * round trip through a file. */
static void round_floats(pln_attr *attr) {
  if (attr->kind == PLN_ATTR_FLOAT)
    attr->v.f = (float)attr->v.f;
  if (attr->kind != PLN_ATTR_FLOATS)
    return;
  double *list =
      (double *)(uintptr_t)attr->v.floats; /* from read_lua_attr_list */
  for (uint32_t i = 0; i < attr->count; i++)
    list[i] = (float)list[i];
}

/* The kind that the value at `index` is stored as without a schema. */
static pln_attr_kind kind_of_value(lua_State *L, int index) {
  if (!lua_istable(L, index))
    return attr_kind_of_value(L, index);
  return is_dict(L, index) ? PLN_ATTR_DICT : kind_of_list(L, index);
}

/* Reads the table of mixed values at `index`.  [-0, +1]: the pushed value keeps
 * the memory of lists alive */
static pln_attrs read_items(lua_State *L, pln_lua *b, int index, int depth) {
  pln_attrs out;
  lua_Integer n = (lua_Integer)lua_rawlen(L, index);
  if (depth > MAX_DEPTH)
    luaL_error(L, "attributes nest deeper than %d levels", MAX_DEPTH);
  if (n > 100000)
    luaL_error(L, "a list of %I values is too long", n);
  pln_attr *items = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *items, 0);
  lua_newtable(L); /* keeps the memory of inner lists alive */
  int anchors = lua_gettop(L);
  luaL_checkstack(L, 16, "lists nest too deep");
  for (lua_Integer i = 0; i < n; i++) {
    lua_rawgeti(L, index, i + 1);
    int value = lua_gettop(L);
    items[i] = (pln_attr){.kind = (uint8_t)kind_of_value(L, value)};
    read_lua_attr_value(L, b, value, depth, &items[i]);
    while (lua_gettop(L) > anchors)
      luaL_ref(L, anchors);
  }
  pln_lua_must(L, b, pln_attrs_list(b->engine, (uint32_t)n, items, &out));
  return out;
}

/* Returns true if the value at `index` can be read as that kind. Elements of
 * lists are not checked. */
static bool value_has_attr_kind(lua_State *L, int index, pln_attr_kind kind) {
  int type = lua_type(L, index);
  switch (kind) {
  case PLN_ATTR_INT:
  case PLN_ATTR_GRAPH:
    return type == LUA_TBOOLEAN ||
           (type == LUA_TNUMBER &&
            (lua_Number)lua_tointeger(L, index) == lua_tonumber(L, index));
  case PLN_ATTR_FLOAT: return type == LUA_TNUMBER;
  case PLN_ATTR_STRING: return type == LUA_TSTRING;
  case PLN_ATTR_TENSOR: return pln_lua_test_tensor(L, index) != NULL;
  case PLN_ATTR_DICT: return type == LUA_TTABLE || type == LUA_TUSERDATA;
  case PLN_ATTR_INTS:
  case PLN_ATTR_FLOATS:
  case PLN_ATTR_STRINGS:
  case PLN_ATTR_TENSORS:
  case PLN_ATTR_TYPES:
  case PLN_ATTR_GRAPHS: return type == LUA_TTABLE;
  default: return true;
  }
}

/* Returns true if the elements of the list at `index` are valid for a list of
 * that kind. */
static bool elements_fit(lua_State *L, int index, pln_attr_kind kind) {
  pln_attr_kind one = kind == PLN_ATTR_INTS      ? PLN_ATTR_INT
                      : kind == PLN_ATTR_FLOATS  ? PLN_ATTR_FLOAT
                      : kind == PLN_ATTR_STRINGS ? PLN_ATTR_STRING
                      : kind == PLN_ATTR_TENSORS ? PLN_ATTR_TENSOR
                                                 : PLN_ATTR_NONE;
  lua_Integer n = one ? (lua_Integer)lua_rawlen(L, index) : 0;
  bool all = true;
  for (lua_Integer i = 1; i <= n && all; i++) {
    lua_rawgeti(L, index, i);
    all = value_has_attr_kind(L, -1, one);
    lua_pop(L, 1);
  }
  return all;
}

/* An integer given for a list of integers becomes a list of one. */
static void make_list(lua_State *L, int index, pln_attr_kind kind) {
  if (kind != PLN_ATTR_INTS || lua_type(L, index) != LUA_TNUMBER)
    return;
  lua_createtable(L, 1, 0);
  lua_pushvalue(L, index);
  lua_rawseti(L, -2, 1);
  lua_replace(L, index);
}

/* The kind that the operator's ONNX schema gives the value at `index`. Raises
 * the error that the parser would report for a wrong name or value. */
static pln_attr_kind own_kind(lua_State *L, pln_lua *b, pln_op op,
                              pln_slice name, int index) {
  pln_attr_kind kind = schema_kind(pln_op_row(b->engine, op)->attrs, name.data);
  if (!kind)
    pln_lua_must(L, b, pln_attr_unknown(b->engine, op, name));
  make_list(L, index, kind);
  bool fits =
      value_has_attr_kind(L, index, kind) && elements_fit(L, index, kind);
  if (!fits && pln_op_registered(b->engine, op))
    pln_lua_error(L, PLN_ERR_TYPE, "'%s': attribute '%s' takes %s",
                  pln_op_name(b->engine, op).data, name.data,
                  pln_attr_wanted(b->engine, op, name));
  if (!fits)
    pln_lua_error(L, PLN_ERR_TYPE, "attribute '%s' takes %s", name.data,
                  pln_attr_wanted(b->engine, op, name));
  return kind;
}

/* The name of an entry. Dictionaries that belong to no operator may also have
 * variables as keys, which stand for their names. */
static pln_slice read_key(lua_State *L, pln_lua *b, pln_op op, int index) {
  pln_lua_node *node = op ? NULL : pln_lua_test_node(L, index);
  const pln_graph *g = node ? pln_lua_graph_of(L, node->graph) : NULL;
  if (g && pln_node_kind(g, node->ref) == PLN_VAR)
    return pln_symbol_text(b->engine, pln_node_symbol(g, node->ref));
  if (lua_type(L, index) != LUA_TSTRING)
    luaL_error(L, "names of attributes are strings, got a %s",
               luaL_typename(L, index));
  return to_slice(L, index);
}

/* Reads the entry with the key at -2 and the value at -1, which stay. */
static void read_lua_attr_entry(lua_State *L, pln_lua *b, pln_op op, int depth,
                                pln_attr *attr) {
  int value = lua_gettop(L);
  pln_slice name = read_key(L, b, op, value - 1);
  pln_attr_kind kind = op ? own_kind(L, b, op, name, value) : PLN_ATTR_NONE;
  if (!kind || kind == PLN_N_ATTR_KINDS)
    kind = kind_of_value(L, value);
  *attr = (pln_attr){.kind = (uint8_t)kind};
  pln_lua_must(L, b, pln_symbol_intern(b->engine, name, &attr->name));
  read_lua_attr_value(L, b, value, depth, attr);
  if (op)
    round_floats(attr);
}

static int count_entries(lua_State *L, int arg) {
  int n = 0;
  for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1))
    n++;
  return n;
}

static pln_attrs read_dict(lua_State *L, pln_lua *b, int arg, pln_op op,
                           int depth) {
  pln_attrs out;
  arg = lua_absindex(L, arg);
  if (depth > MAX_DEPTH)
    luaL_error(L, "attributes nest deeper than %d levels", MAX_DEPTH);
  if (lua_isnoneornil(L, arg))
    return 0;
  if (lua_isuserdata(L, arg))
    return check_userdata(L, arg);
  luaL_checktype(L, arg, LUA_TTABLE);
  uint32_t n = (uint32_t)count_entries(L, arg), i = 0;
  if (n > 10000)
    luaL_argerror(L, arg, "at most 10000 attributes");
  pln_attr *entries = lua_newuserdatauv(L, (n + 1) * sizeof *entries, 0);
  luaL_checkstack(L, (int)n + 8, "too many attributes");
  lua_newtable(
      L); /* keeps the lists' memory alive until the dictionary is interned */
  int anchors = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, arg) && i < n; i++) {
    int top = lua_gettop(L);
    read_lua_attr_entry(L, b, op, depth, &entries[i]);
    for (int kept = lua_gettop(L); kept > top; kept--)
      luaL_ref(L, anchors);
    lua_pop(L, 1);
  }
  lua_settop(L, anchors);
  pln_lua_must(L, b, pln_attrs_make(b->engine, i, entries, &out));
  return out;
}

pln_attrs pln_lua_check_attrs(lua_State *L, pln_lua *b, int arg) {
  return read_dict(L, b, arg, 0, 0);
}

/* Returns true if the table at `arg` has a name that only Relay's schema
 * has. */
static bool says_relay(lua_State *L, pln_lua *b, int arg, pln_op op) {
  bool relay = false;
  for (lua_pushnil(L); lua_istable(L, arg) && lua_next(L, arg); lua_pop(L, 1))
    relay |= lua_type(L, -2) == LUA_TSTRING &&
             pln_relay_only_attr(b->engine, op, to_slice(L, -2));
  return relay;
}

pln_attrs pln_lua_check_op_attrs(lua_State *L, pln_lua *b, int arg, pln_op op,
                                 bool *relay) {
  const pln_relay_row *row = pln_relay_of(b->engine, op);
  pln_attrs given, out;
  arg = lua_absindex(L, arg);
  *relay = row && says_relay(L, b, arg, op);
  if (pln_op_row(b->engine, op)->traits & PLN_TRAIT_OPAQUE)
    return read_dict(L, b, arg, 0, 0);
  if (!*relay)
    return read_dict(L, b, arg, op, 0);
  given = read_dict(L, b, arg, 0, 0);
  pln_lua_must(L, b, pln_relay_read(b->engine, row, given, &out));
  return out;
}

/* attrs(table) -> Attrs */
static int core_attrs(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_push_attrs(L, b, pln_lua_check_attrs(L, b, 1));
  return 1;
}

/* target(text, Attrs or table) -> Attrs, with the entries that every target
 * has */
static int core_target(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_attrs out;
  if (lua_type(L, 1) == LUA_TSTRING) {
    pln_lua_must(L, b, pln_target_read(b->engine, to_slice(L, 1), &out));
  } else {
    pln_attrs given = pln_lua_check_attrs(L, b, 1);
    pln_lua_must(L, b, pln_target_complete(b->engine, given, &out));
  }
  pln_lua_push_attrs(L, b, out);
  return 1;
}

static const luaL_Reg methods[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {{"__len", attrs_len},
                                {"__pairs", attrs_pairs},
                                {"__tostring", attrs_tostring},
                                {NULL, NULL}};
static const luaL_Reg functions[] = {
    {"attrs", core_attrs}, {"target", core_target}, {NULL, NULL}};

void pln_lua_open_attrs(lua_State *L) {
  pln_lua_class(L, PLN_LUA_ATTRS, methods, meta, attrs_index);
  pln_lua_functions(L, functions);
}
