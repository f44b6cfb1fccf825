/* constructors.c: constructors of TIR for scripts: PrimExprs, statements, their
 * types.
 *
 * lua/perilune/tir/init.lua adds TVM's names and defaults. Everything is built
 * in the floating builder; statements are sealed with their function. */

#include "ir/tir/tir.h"
#include "lua/graph/constructor.h"

/* -------------------------------------------------------------------- types */

/* prim_type(dtype or "handle" [, lanes]) -> Type */
static int core_prim_type(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type;
  pln_dtype dtype = PLN_DTYPE_NONE;
  lua_Integer lanes = luaL_optinteger(L, 2, 1);
  luaL_argcheck(L, lanes >= 1 && lanes <= UINT16_MAX, 2, "lanes out of range");
  if (strcmp(luaL_checkstring(L, 1), "handle") != 0)
    dtype = pln_lua_check_dtype(L, 1, PLN_DTYPE_NONE);
  pln_lua_must(L, b, pln_type_prim(b->engine, dtype, (uint32_t)lanes, &type));
  pln_lua_push_type(L, b, type);
  return 1;
}

/* pointer_type(element, scope) -> Type */
static int core_pointer_type(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type, element = pln_lua_check_type(L, b, 1);
  pln_symbol scope = pln_lua_check_symbol(L, b, 2);
  pln_lua_must(
      L, b,
      pln_type_make(b->engine, PLN_TYPE_POINTER, scope, 1, &element, &type));
  pln_lua_push_type(L, b, type);
  return 1;
}

/* ------------------------------------------------------------------- leaves */

/* int_imm(type, integer), float_imm(type, number), string_imm(text) */
static int core_int_imm(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = pln_lua_check_type(L, b, 1);
  int64_t value = luaL_checkinteger(L, 2);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  return pln_lua_finish_construction(
      &m,
      pln_build_int_imm(pln_lua_construction_builder(&m), type, value, &m.ref));
}

static int core_float_imm(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_type type = pln_lua_check_type(L, b, 1);
  double value = luaL_checknumber(L, 2);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  return pln_lua_finish_construction(
      &m, pln_build_float_imm(pln_lua_construction_builder(&m), type, value,
                              &m.ref));
}

static int core_string_imm(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_symbol value = pln_lua_check_symbol(L, b, 1);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  return pln_lua_finish_construction(
      &m,
      pln_build_string_imm(pln_lua_construction_builder(&m), value, &m.ref));
}

/* size_var(name, type) -> Var that is not negative */
static int core_size_var(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_symbol name = pln_lua_check_symbol(L, b, 1);
  pln_type type = pln_lua_check_type(L, b, 2);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  return pln_lua_finish_construction(
      &m, pln_build_size_var(pln_lua_construction_builder(&m), name, type, 0,
                             &m.ref));
}

/* ---------------------------------------------------------------- operators */

static pln_kind check_kind(lua_State *L, int arg) {
  lua_Integer kind = luaL_checkinteger(L, arg);
  luaL_argcheck(L, kind >= 1 && kind <= PLN_N_KINDS, arg, "no such kind");
  return (pln_kind)(kind - 1);
}

static uint32_t check_data(lua_State *L, pln_lua *b, int arg) {
  if (lua_type(L, arg) == LUA_TSTRING)
    return pln_lua_check_symbol(L, b, arg);
  lua_Integer data = luaL_optinteger(L, arg, 0);
  luaL_argcheck(L, data >= 0 && data <= INT32_MAX, arg, "out of range");
  return (uint32_t)data;
}

/* loop_node(kind, operands [, data [, count [, type [, attrs]]]]) -> node */
static int core_loop_node(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_settop(L, 6);
  lua_Integer count = luaL_optinteger(L, 4, 0);
  luaL_argcheck(L, count >= 0 && count <= UINT16_MAX, 4, "out of range");
  pln_prim spec = {.kind = check_kind(L, 1),
                   .data = check_data(L, b, 3),
                   .count = (uint16_t)count};
  spec.type = lua_isnil(L, 5) ? 0 : pln_lua_check_type(L, b, 5);
  spec.attrs = pln_lua_check_attrs(L, b, 6);
  lua_settop(L, 6);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  spec.operands = pln_lua_parts(&m, 2, &spec.n);
  return pln_lua_finish_construction(
      &m, pln_build_prim(pln_lua_construction_builder(&m), &spec, &m.ref));
}

/* folded(kind, a, b) -> a node of that kind, constant-folded if possible */
static int core_folded(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_kind kind = check_kind(L, 1);
  pln_lua_check_node(L, 2);
  pln_lua_check_node(L, 3);
  lua_settop(L, 3);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  pln_ref x = pln_lua_part(&m, 2, PLN_DTYPE_NONE);
  pln_ref y = pln_lua_part(&m, 3, PLN_DTYPE_NONE);
  return pln_lua_finish_construction(
      &m,
      pln_build_folded(pln_lua_construction_builder(&m), kind, x, y, &m.ref));
}

/* loop_stmt(kind, operands, type, attrs, params, body [, params, body]) -> a
 * statement or PrimFunc with bodies */
static int core_loop_stmt(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_body bodies[2];
  lua_settop(L, 8);
  uint32_t k = lua_isnil(L, 8) ? 1 : 2;
  pln_prim spec = {.kind = check_kind(L, 1)};
  spec.type = lua_isnil(L, 3) ? 0 : pln_lua_check_type(L, b, 3);
  spec.attrs = pln_lua_check_attrs(L, b, 4);
  lua_settop(L, 8);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  spec.operands = pln_lua_parts(&m, 2, &spec.n);
  for (uint32_t i = 0; i < k; i++) {
    bodies[i].params = pln_lua_parts(&m, 5 + 2 * (int)i, &bodies[i].n_params);
    pln_lua_check_node(L, 6 + 2 * (int)i);
    bodies[i].stmt = pln_lua_part(&m, 6 + 2 * (int)i, PLN_DTYPE_NONE);
  }
  return pln_lua_finish_construction(
      &m, pln_build_floating_stmt(pln_lua_construction_builder(&m), &spec, k,
                                  bodies, &m.ref));
}

/* seq(list) -> SeqStmt */
static int core_seq(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n;
  lua_settop(L, 1);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  pln_ref *stmts = pln_lua_parts(&m, 1, &n);
  return pln_lua_finish_construction(
      &m, pln_build_seq(pln_lua_construction_builder(&m), n, stmts, &m.ref));
}

/* builtin(name) -> its number, or nil; builtins() -> names */
static int core_builtin(lua_State *L) {
  pln_slice name;
  name.data = luaL_checklstring(L, 1, &name.size);
  uint32_t builtin = pln_builtin_find(name);
  if (builtin == 0)
    return 0;
  lua_pushinteger(L, builtin);
  return 1;
}

static int core_builtins(lua_State *L) {
  uint32_t n = pln_builtin_count();
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 1; i <= n; i++) {
    lua_pushstring(L, pln_builtin_name(i));
    lua_rawseti(L, -2, i);
  }
  return 1;
}

/* builtin_row(number) -> name, effect of a call, number of arguments or -1,
 * where the script form has the dtype ("first", "last" or nil), and the dtype
 * that it has else: "first", "second" (that of an argument), "bool", "int32",
 * "uint32", "handle", "void", or nil */
static int core_builtin_row(lua_State *L) {
  static const char *const places[] = {NULL, "first", "last"};
  static const char *const results[] = {NULL,    "first",  "second", "bool",
                                        "int32", "uint32", "handle", "void"};
  lua_Integer number = luaL_checkinteger(L, 1);
  luaL_argcheck(L, number >= 1 && number <= pln_builtin_count(), 1,
                "no such builtin");
  uint32_t builtin = (uint32_t)number;
  lua_pushstring(L, pln_builtin_name(builtin));
  lua_pushstring(L, pln_call_kind_name(pln_builtin_call_kind(builtin)));
  lua_pushinteger(L, pln_builtin_args(builtin));
  lua_pushstring(L, places[pln_builtin_row(builtin)->place]);
  lua_pushstring(L, results[pln_builtin_row(builtin)->result]);
  return 5;
}

static const luaL_Reg functions[] = {
    {"prim_type", core_prim_type},   {"pointer_type", core_pointer_type},
    {"int_imm", core_int_imm},       {"float_imm", core_float_imm},
    {"string_imm", core_string_imm}, {"size_var", core_size_var},
    {"loop_node", core_loop_node},   {"loop_stmt", core_loop_stmt},
    {"folded", core_folded},         {"seq", core_seq},
    {"builtin", core_builtin},       {"builtin_row", core_builtin_row},
    {"builtins", core_builtins},     {NULL, NULL}};

void pln_lua_open_tir(lua_State *L) {
  pln_lua_functions(L, functions);
}
