/* build.c: constructors of types for scripts, one per kind, and rebuilding a
 * type from its parts. lua/perilune/ir/types.lua gives them their names. */

#include "ir/infer/apply.h"
#include "ir/type/substitute.h"
#include "ir/type/type.h"
#include "lua/binding.h"

/* Reads the types in the table at `arg` (nil: none) into scratch memory. [-0,
 * +1] */
static pln_type *check_types(lua_State *L, pln_lua *b, int arg, uint32_t *n) {
  lua_Integer count = 0;
  if (!lua_isnoneornil(L, arg)) {
    luaL_checktype(L, arg, LUA_TTABLE);
    count = (lua_Integer)lua_rawlen(L, arg);
  }
  if (count >= INT32_MAX)
    luaL_argerror(L, arg, "too many types");
  pln_type *types =
      lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *types, 0);
  for (lua_Integer i = 0; i < count; i++) {
    lua_rawgeti(L, arg, i + 1);
    types[i] = pln_lua_check_type(L, b, lua_gettop(L));
    lua_pop(L, 1);
  }
  *n = (uint32_t)count;
  return types;
}

static int push_built_type(lua_State *L, pln_lua *b, pln_status status,
                           pln_type type) {
  pln_lua_must(L, b, status);
  pln_lua_push_type(L, b, type);
  return 1;
}

/* type_make(kind, name, parts) -> Type, for kinds without other fields */
static int core_type_make(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  static const char *const names[] = {"tuple",    "ref", "call",   "sequence",
                                      "optional", "map", "sparse", "opaque",
                                      "pointer",  NULL};
  static const pln_type_kind kinds[] = {
      PLN_TYPE_TUPLE,    PLN_TYPE_REF,      PLN_TYPE_CALL,
      PLN_TYPE_SEQUENCE, PLN_TYPE_OPTIONAL, PLN_TYPE_MAP,
      PLN_TYPE_SPARSE,   PLN_TYPE_OPAQUE,   PLN_TYPE_POINTER};
  pln_type_kind kind = kinds[luaL_checkoption(L, 1, NULL, names)];
  pln_symbol name = lua_isnoneornil(L, 2) ? 0 : pln_lua_check_symbol(L, b, 2);
  pln_type type = 0;
  uint32_t n;
  pln_type *parts = check_types(L, b, 3, &n);
  pln_status status = pln_type_make(b->engine, kind, name, n, parts, &type);
  return push_built_type(L, b, status, type);
}

/* The variable kind at argument 2. */
static pln_type_var_kind check_kind(lua_State *L, const char *unless_said) {
  static const char *const names[] = {"Type",       "ShapeVar",  "BaseType",
                                      "Constraint", "AdtHandle", "TypeData",
                                      NULL};
  static const pln_type_var_kind kinds[] = {
      PLN_TKIND_TYPE,       PLN_TKIND_SHAPE_VAR,  PLN_TKIND_BASE_TYPE,
      PLN_TKIND_CONSTRAINT, PLN_TKIND_ADT_HANDLE, PLN_TKIND_TYPE_DATA};
  return kinds[luaL_checkoption(L, 2, unless_said, names)];
}

typedef pln_status (*make_named)(pln_engine *engine, pln_symbol name,
                                 pln_type_var_kind kind, pln_type *out);

static int named(lua_State *L, make_named make, const char *unless_said) {
  pln_lua *b = pln_lua_state_of(L);
  pln_symbol name = pln_lua_check_symbol(L, b, 1);
  pln_type type = 0;
  pln_status status = make(b->engine, name, check_kind(L, unless_said), &type);
  return push_built_type(L, b, status, type);
}

/* type_var(name [, kind]) -> Type: a new variable */
static int core_type_var(lua_State *L) {
  return named(L, pln_type_var, "Type");
}

/* type_global_var(name [, kind]) -> Type: the name of a data type */
static int core_type_global_var(lua_State *L) {
  return named(L, pln_type_global_var, "AdtHandle");
}

/* type_func(params, ret [, type_params [, constraints]]) -> Type */
static int core_type_func(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n, n_vars, n_constraints;
  pln_type type = 0;
  lua_settop(L, 4);
  pln_type ret = lua_isnil(L, 2) ? 0 : pln_lua_check_type(L, b, 2);
  pln_type *params = check_types(L, b, 1, &n);
  pln_type *vars = check_types(L, b, 3, &n_vars);
  pln_type *constraints = check_types(L, b, 4, &n_constraints);
  for (uint32_t i = 0; i < n_vars; i++)
    if (pln_type_get_kind(b->engine, vars[i]) != PLN_TYPE_VAR)
      luaL_argerror(L, 3, "a type parameter is a type variable");
  for (uint32_t i = 0; i < n_constraints; i++)
    if (pln_type_get_kind(b->engine, constraints[i]) == PLN_TYPE_TENSOR)
      luaL_argerror(L, 4, "a constraint is not a tensor");
  pln_status status = pln_type_func(b->engine, n, params, ret, n_vars, vars,
                                    n_constraints, constraints, &type);
  return push_built_type(L, b, status, type);
}

/* type_relation(name, args [, n_inputs [, attrs]]) -> Type */
static int core_type_relation(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n;
  pln_type type = 0;
  luaL_checkstring(L, 1);
  lua_settop(L, 4);
  pln_symbol name = pln_lua_check_symbol(L, b, 1);
  pln_type *args = check_types(L, b, 2, &n);
  lua_Integer inputs = luaL_optinteger(L, 3, n);
  luaL_argcheck(L, inputs >= 0 && inputs <= (lua_Integer)n, 3,
                "a relation has at most as many inputs as arguments");
  pln_attrs attrs = pln_lua_check_attrs(L, b, 4);
  pln_status status = pln_type_relation(b->engine, name, n, args,
                                        (uint32_t)inputs, attrs, &type);
  return push_built_type(L, b, status, type);
}

/* type_hole() -> Type: a new incomplete type, equal to no other */
static int core_type_hole(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = 0;
  pln_status status = pln_type_hole(b->engine, &type);
  return push_built_type(L, b, status, type);
}

/* type_prim(dtype | nil [, lanes]) -> Type; nil: a handle */
static int core_type_prim(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = 0;
  pln_dtype dtype = pln_lua_check_dtype(L, 1, PLN_DTYPE_NONE);
  lua_Integer lanes = luaL_optinteger(L, 2, 1);
  luaL_argcheck(L, lanes > 0 && lanes <= UINT16_MAX, 2, "lanes are 1 to 65535");
  pln_status status = pln_type_prim(b->engine, dtype, (uint32_t)lanes, &type);
  return push_built_type(L, b, status, type);
}

/* type_parts(type) -> a list of all parts, with a function's type parameters
 * and constraints */
static int core_type_parts(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n;
  const pln_type *parts =
      pln_type_all_parts(b->engine, pln_lua_check_type(L, b, 1), &n);
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    pln_lua_push_type(L, b, parts[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* type_rebuild(type, parts) -> a type of the same kind with other parts */
static int core_type_rebuild(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = pln_lua_check_type(L, b, 1), out = 0;
  uint32_t n, wanted;
  pln_type *parts = check_types(L, b, 2, &n);
  pln_type_all_parts(b->engine, type, &wanted);
  luaL_argcheck(L, n == wanted, 2, "wrong number of parts");
  uint32_t first = pln_type_n_parts(b->engine, type);
  for (uint32_t i = 0; i < pln_type_n_vars(b->engine, type); i++)
    luaL_argcheck(
        L, pln_type_get_kind(b->engine, parts[first + i]) == PLN_TYPE_VAR, 2,
        "a type parameter is a type variable");
  pln_status status = pln_type_rebuild(b->engine, type, parts, &out);
  return push_built_type(L, b, status, out);
}

/* type_substitute(type, vars, types) -> Type */
static int core_type_substitute(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = pln_lua_check_type(L, b, 1), out = 0;
  uint32_t n, m;
  lua_settop(L, 3);
  pln_type *vars = check_types(L, b, 2, &n);
  pln_type *types = check_types(L, b, 3, &m);
  luaL_argcheck(L, n == m, 3, "a type for each variable");
  pln_status status =
      pln_type_substitute(b->engine, type, n, vars, types, &out);
  return push_built_type(L, b, status, out);
}

/* type_unify(a, b) -> the unified type, or nil */
static int core_type_unify(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type x = pln_lua_check_type(L, b, 1), y = pln_lua_check_type(L, b, 2);
  bool fits;
  pln_type both = 0;
  pln_lua_must(L, b, pln_type_unify(b->engine, x, y, &both, &fits));
  if (fits)
    pln_lua_push_type(L, b, both);
  else
    luaL_pushfail(L);
  return 1;
}

static const luaL_Reg functions[] = {
    {"type_make", core_type_make},
    {"type_var", core_type_var},
    {"type_global_var", core_type_global_var},
    {"type_func", core_type_func},
    {"type_relation", core_type_relation},
    {"type_hole", core_type_hole},
    {"type_prim", core_type_prim},
    {"type_parts", core_type_parts},
    {"type_rebuild", core_type_rebuild},
    {"type_substitute", core_type_substitute},
    {"type_unify", core_type_unify},
    {NULL, NULL},
};

void pln_lua_open_type_build(lua_State *L) {
  pln_lua_functions(L, functions);
}
