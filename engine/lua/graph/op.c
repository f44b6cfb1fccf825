/* op.c: Op objects: named, documented and callable. There is one object per
 * operator, so that node.op == pl.op.nn.relu holds. */

#include "ir/op_info.h"
#include "lua/binding.h"

typedef struct op_userdata {
  pln_op op;
} op_userdata;

void pln_lua_push_op(lua_State *L, pln_lua *b, pln_op op) {
  (void)b;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pln_lua_key.ops);
  if (lua_rawgeti(L, -1, op) == LUA_TNIL) {
    lua_pop(L, 1);
    ((op_userdata *)pln_lua_userdata(L, PLN_LUA_OP, sizeof(op_userdata), 0))
        ->op = op;
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, op);
  }
  lua_remove(L, -2);
}

pln_op pln_lua_check_op(lua_State *L, pln_lua *b, int arg) {
  if (lua_type(L, arg) != LUA_TSTRING)
    return ((op_userdata *)luaL_checkudata(L, arg, PLN_LUA_OP))->op;
  pln_slice name;
  name.data = lua_tolstring(L, arg, &name.size);
  pln_op op = pln_op_find(b->engine, name);
  if (op == 0)
    luaL_argerror(L, arg,
                  lua_pushfstring(L, "no operator is called '%s'", name.data));
  return op;
}

/* The operator's traits by name.  [-0, +1] */
static void push_traits(lua_State *L, uint32_t traits) {
  static const struct {
    uint32_t bit;
    const char *name;
  } names[] = {
      {PLN_TRAIT_PURE, "pure"},
      {PLN_TRAIT_COMMUTATIVE, "commutative"},
      {PLN_TRAIT_ASSOCIATIVE, "associative"},
      {PLN_TRAIT_IDEMPOTENT, "idempotent"},
      {PLN_TRAIT_ELEMENTWISE, "elementwise"},
      {PLN_TRAIT_BROADCAST, "broadcast"},
      {PLN_TRAIT_INJECTIVE, "injective"},
      {PLN_TRAIT_REDUCE, "reduce"},
      {PLN_TRAIT_RANDOM, "random"},
      {PLN_TRAIT_OPAQUE, "opaque"},
  };
  lua_createtable(L, 0, (int)PLN_COUNT(names));
  for (size_t i = 0; i < PLN_COUNT(names); i++)
    if (traits & names[i].bit) {
      lua_pushboolean(L, true);
      lua_setfield(L, -2, names[i].name);
    }
}

static int push_count(lua_State *L, int32_t n) {
  if (n < 0)
    return 0;
  lua_pushinteger(L, n);
  return 1;
}

/* op.name, .doc, .min_args, .max_args (nil: any number), .attrs (ONNX schema),
 * .relay (Relay's schema, nil if Relay lacks the operator), .traits,
 * .has_kernel, .registered, and of registered ones .args, .results, .onnx */
static int op_index(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_op op = ((op_userdata *)luaL_checkudata(L, 1, PLN_LUA_OP))->op;
  const char *key = luaL_checkstring(L, 2);
  const pln_op_info *row = pln_op_row(b->engine, op);
  if (!strcmp(key, "name")) {
    pln_slice name = pln_op_name(b->engine, op);
    lua_pushlstring(L, name.data, name.size);
  } else if (!strcmp(key, "doc")) {
    lua_pushstring(L, row->doc);
  } else if (!strcmp(key, "attrs")) {
    lua_pushstring(L, row->attrs);
  } else if (!strcmp(key, "relay")) {
    const pln_relay_row *relay = pln_relay_of(b->engine, op);
    if (!relay)
      return 0;
    lua_pushstring(L, relay->attrs);
  } else if (!strcmp(key, "min_args")) {
    return push_count(L, row->min_args);
  } else if (!strcmp(key, "max_args")) {
    return push_count(L, row->max_args);
  } else if (!strcmp(key, "traits")) {
    push_traits(L, row->traits);
  } else if (!strcmp(key, "has_kernel")) {
    lua_pushboolean(L, row->kernel != NULL);
  } else if (!pln_lua_push_registered(L, b, op, key)) {
    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(2));
  }
  return 1;
}

static int op_tostring(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  op_userdata *slot = luaL_checkudata(L, 1, PLN_LUA_OP);
  pln_slice name = pln_op_name(b->engine, slot->op);
  lua_pushlstring(L, name.data, name.size);
  return 1;
}

/* op(name) -> Op or nil */
static int core_op(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_slice name;
  name.data = luaL_checklstring(L, 1, &name.size);
  pln_op op = pln_op_find(b->engine, name);
  if (op == 0)
    return 0;
  pln_lua_push_op(L, b, op);
  return 1;
}

/* opaque_op(name) -> the Op of an unknown operator named domain::Type, as
 * import makes it */
static int core_opaque_op(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_op op;
  pln_slice name;
  name.data = luaL_checklstring(L, 1, &name.size);
  pln_lua_must(L, b, pln_op_opaque(b->engine, name, &op));
  pln_lua_push_op(L, b, op);
  return 1;
}

/* ops() -> the names of all operators, in registry order */
static int core_ops(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n = pln_op_count(b->engine);
  lua_createtable(L, (int)n, 0);
  for (pln_op op = 1; op <= n; op++) {
    pln_slice name = pln_op_name(b->engine, op);
    lua_pushlstring(L, name.data, name.size);
    lua_rawseti(L, -2, op);
  }
  return 1;
}

/* suggest(wanted, names) -> "; did you mean 'x'?" or "" */
static int core_suggest(lua_State *L) {
  char text[200] = "";
  uint32_t n;
  const char *wanted = luaL_checkstring(L, 1);
  const char **names = pln_lua_check_names(L, 2, &n);
  pln_suggest(wanted, n, names, text, sizeof text);
  lua_pushstring(L, text);
  return 1;
}

static const luaL_Reg methods[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {{"__tostring", op_tostring}, {NULL, NULL}};
static const luaL_Reg functions[] = {{"op", core_op},
                                     {"ops", core_ops},
                                     {"opaque_op", core_opaque_op},
                                     {"suggest", core_suggest},
                                     {NULL, NULL}};

void pln_lua_open_op(lua_State *L) {
  pln_lua_class(L, PLN_LUA_OP, methods, meta, op_index);
  pln_lua_functions(L, functions);
}
