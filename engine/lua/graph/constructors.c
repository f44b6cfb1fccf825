/* constructors.c: constructors: convert Lua values to nodes.
 *
 * Constants, names, calls and tuples are appended to the builder of the running
 * rewrite, else of the running pass, else to the floating one. Vars, functions,
 * ifs and lets are always built in the floating builder or the pass's, and are
 * imported where they are used. An operand may be a handle of any graph. */

#include "ir/graph/graph.h"
#include "ir/op_info.h"
#include "lua/graph/constructor.h"

/* ---------------------------------------------------------------- operands */

/* Converts the operands in stack slots first .. last, into scratch memory. [-0,
 * +1] */
static pln_ref *operands(const pln_lua_construction *m, int first, int last) {
  pln_dtype dtype = pln_lua_dtype_of(m->L, first, last);
  size_t n = last >= first ? (size_t)(last - first + 1) : 0;
  pln_ref *refs = lua_newuserdatauv(m->L, (n + 1) * sizeof *refs, 0);
  for (size_t i = 0; i < n; i++)
    refs[i] = pln_lua_part(m, first + (int)i, dtype);
  return refs;
}

/* ---------------------------------------------------------------- op calls */

static bool is_operand_list(lua_State *L, int arg) {
  if (!lua_istable(L, arg) || lua_rawlen(L, arg) == 0)
    return false;
  lua_rawgeti(L, arg, 1);
  bool yes = lua_isuserdata(L, -1);
  lua_pop(L, 1);
  return yes;
}

static bool is_attrs(lua_State *L, int arg) {
  if (lua_istable(L, arg))
    return lua_rawlen(L, arg) == 0;
  return luaL_testudata(L, arg, PLN_LUA_ATTRS) != NULL;
}

/* Pops the attributes, without the reserved key n_results, which is returned as
 * a number.  [-1, +0] */
static pln_attrs take_attrs(lua_State *L, pln_lua *b, pln_op op,
                            uint32_t *n_results) {
  bool relay, counted = false;
  int top = lua_gettop(L), table = top;
  if (lua_istable(L, top) && lua_getfield(L, top, "n_results") != LUA_TNIL) {
    int whole;
    lua_Integer n = lua_tointegerx(L, -1, &whole);
    luaL_argcheck(L, whole, top, "n_results is an integer");
    luaL_argcheck(L, n >= 0 && n <= UINT16_MAX, top, "n_results out of range");
    *n_results = (uint32_t)n;
    counted = true;
    lua_newtable(L); /* a copy without n_results */
    table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, top);) {
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_rawset(L, table);
    }
    lua_pushnil(L);
    lua_setfield(L, table, "n_results");
  }
  pln_attrs attrs = pln_lua_check_op_attrs(L, b, table, op, &relay);
  if (relay && !counted)
    *n_results =
        pln_relay_n_results(b->engine, pln_relay_of(b->engine, op), 0, attrs);
  lua_settop(L, top - 1);
  return attrs;
}

/* Replaces lists of operands among the arguments by their elements. */
static void expand_argument_table(lua_State *L, int first) {
  for (int i = first; i <= lua_gettop(L); i++) {
    if (!is_operand_list(L, i))
      continue;
    lua_Integer n = (lua_Integer)lua_rawlen(L, i);
    luaL_checkstack(L, n < 1000000 ? (int)n + 8 : 1000000, "too many operands");
    lua_pushvalue(L, i);
    lua_remove(L, i);
    int list = lua_gettop(L), after = list - i;
    for (lua_Integer k = 1; k <= n; k++)
      lua_rawgeti(L, list, k);
    for (int k = 0; k < after; k++) { /* the arguments after the list */
      lua_pushvalue(L, i);
      lua_remove(L, i);
    }
    lua_remove(L, i); /* the list itself */
    i += (int)n - 1;
  }
}

/* op(args... [, attrs]) -> Call */
static int op_call(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_op op = pln_lua_check_op(L, b, 1);
  pln_attrs attrs = 0;
  bool registered = pln_op_registered(b->engine, op) != NULL;
  uint32_t n_results = registered ? pln_op_n_results(b->engine, op, 0) : 0;
  if (lua_gettop(L) > 1 && is_attrs(L, -1))
    attrs = take_attrs(L, b, op, &n_results);
  pln_lua_must(L, b, pln_relay_expect(b->engine, op, attrs));
  while (lua_gettop(L) > 1 && lua_isnil(L, -1))
    lua_pop(L, 1);
  expand_argument_table(L, 2);
  int last = lua_gettop(L);
  luaL_checkstack(L, 16, NULL);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  pln_ref *args = operands(&m, 2, last);
  return pln_lua_finish_construction(
      &m, pln_build_call(pln_lua_construction_builder(&m), op, attrs, n_results,
                         (uint32_t)(last - 1), args, &m.ref));
}

/* ------------------------------------------------------------------ leaves */

/* var(name [, type]) -> Var with a new identity */
static int core_var(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_symbol name = pln_lua_check_symbol(L, b, 1);
  pln_type type = lua_isnoneornil(L, 2) ? 0 : pln_lua_check_type(L, b, 2);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  return pln_lua_finish_construction(
      &m,
      pln_build_var(pln_lua_construction_builder(&m), name, type, 0, &m.ref));
}

/* constant(value [, dtype]) -> Constant of a tensor, number or table */
static int core_constant(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checkany(L, 1);
  pln_dtype dtype = pln_lua_check_dtype(L, 2, PLN_DTYPE_NONE);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  pln_tensor *tensor = pln_lua_to_tensor(L, b, 1, dtype);
  return pln_lua_finish_construction(
      &m, pln_build_constant(pln_lua_construction_builder(&m), tensor, &m.ref));
}

/* absent() -> Absent: an omitted operand of an ONNX node */
static int core_absent(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  return pln_lua_finish_construction(
      &m, pln_build_absent(pln_lua_construction_builder(&m), &m.ref));
}

/* global_var(name [, type]) -> GlobalVar */
static int core_global_var(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_symbol name = pln_lua_check_symbol(L, b, 1);
  pln_type type = lua_isnoneornil(L, 2) ? 0 : pln_lua_check_type(L, b, 2);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  return pln_lua_finish_construction(
      &m, pln_build_global_var(pln_lua_construction_builder(&m), name, type,
                               &m.ref));
}

/* op_value(op) -> Op as a node, to be passed as an argument */
static int core_op_value(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_op op = pln_lua_check_op(L, b, 1);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  return pln_lua_finish_construction(
      &m, pln_build_op(pln_lua_construction_builder(&m), op, &m.ref));
}

/* ------------------------------------------------------------- expressions */

/* tuple(list) -> Tuple */
static int core_tuple(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n;
  lua_settop(L, 1);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  pln_ref *fields = pln_lua_parts(&m, 1, &n);
  return pln_lua_finish_construction(
      &m, pln_build_tuple(pln_lua_construction_builder(&m), n, fields, &m.ref));
}

/* get(tuple, index) -> TupleGetItem; the index counts from 0, as in Relay */
static int core_get(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_Integer index = luaL_checkinteger(L, 2);
  luaL_argcheck(L, index >= 0 && index <= UINT16_MAX, 2, "index out of range");
  lua_settop(L, 2);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  pln_ref tuple = pln_lua_part(&m, 1, PLN_DTYPE_NONE);
  return pln_lua_finish_construction(
      &m, pln_build_tuple_get_item(pln_lua_construction_builder(&m), tuple,
                                   (uint32_t)index, &m.ref));
}

/* Reads the types in the list at `arg` (nil: none) into scratch memory.  [-0,
 * +1] */
static pln_type *list_types(lua_State *L, pln_lua *b, int arg, uint32_t *n) {
  if (!lua_isnil(L, arg))
    luaL_checktype(L, arg, LUA_TTABLE);
  *n = lua_isnil(L, arg) ? 0 : (uint32_t)lua_rawlen(L, arg);
  pln_type *types = lua_newuserdatauv(L, ((size_t)*n + 1) * sizeof *types, 0);
  for (uint32_t i = 0; i < *n; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    types[i] = pln_lua_check_type(L, b, lua_gettop(L));
    lua_pop(L, 1);
  }
  return types;
}

/* apply(callee, args [, attrs [, n_results [, type_args]]]) -> Call of an
 * expression */
static int core_apply(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n, n_types;
  lua_Integer results = luaL_optinteger(L, 4, 0);
  luaL_argcheck(L, results >= 0 && results <= UINT16_MAX, 4, "out of range");
  lua_settop(L, 5);
  pln_type *types = list_types(L, b, 5, &n_types);
  lua_replace(L, 5);
  pln_attrs attrs = pln_lua_check_attrs(L, b, 3);
  lua_settop(L, 5);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  pln_ref callee = pln_lua_part(&m, 1, PLN_DTYPE_NONE);
  pln_ref *args = pln_lua_parts(&m, 2, &n);
  return pln_lua_finish_construction(
      &m, pln_build_apply_with_types(pln_lua_construction_builder(&m), callee,
                                     n_types, types, attrs, (uint32_t)results,
                                     n, args, &m.ref));
}

typedef pln_status (*build_1)(pln_builder *b, pln_ref x, pln_ref *out);
typedef pln_status (*build_2)(pln_builder *b, pln_ref x, pln_ref y,
                              pln_ref *out);

static int build_unary(lua_State *L, build_1 build) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checkany(L, 1);
  lua_settop(L, 1);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  pln_ref x = pln_lua_part(&m, 1, PLN_DTYPE_NONE);
  return pln_lua_finish_construction(
      &m, build(pln_lua_construction_builder(&m), x, &m.ref));
}

static int build_binary(lua_State *L, build_2 build) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checkany(L, 2);
  lua_settop(L, 2);
  pln_dtype dtype = pln_lua_dtype_of(L, 1, 2);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  pln_ref x = pln_lua_part(&m, 1, dtype);
  pln_ref y = pln_lua_part(&m, 2, dtype);
  return pln_lua_finish_construction(
      &m, build(pln_lua_construction_builder(&m), x, y, &m.ref));
}

/* ref_create(value), ref_read(ref), ref_write(ref, value) */
static int core_ref_create(lua_State *L) {
  return build_unary(L, pln_build_ref_create);
}

static int core_ref_read(lua_State *L) {
  return build_unary(L, pln_build_ref_read);
}

static int core_ref_write(lua_State *L) {
  return build_binary(L, pln_build_ref_write);
}

/* --------------------------------------------------------------- always free
 */

/* func(params, body [, ret_type [, attrs [, type_params]]]) -> Function */
static int core_func(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n, n_vars;
  luaL_checkany(L, 2);
  lua_settop(L, 5);
  pln_type ret = lua_isnil(L, 3) ? 0 : pln_lua_check_type(L, b, 3);
  pln_type *vars = list_types(L, b, 5, &n_vars);
  lua_replace(L, 5);
  pln_attrs attrs = pln_lua_check_attrs(L, b, 4);
  lua_settop(L, 5);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  pln_ref *params = pln_lua_parts(&m, 1, &n);
  pln_ref body = pln_lua_part(&m, 2, PLN_DTYPE_NONE);
  pln_builder *into = pln_lua_construction_builder(&m);
  pln_lua_must(L, b, pln_build_bind(into, n, params, body, attrs, ret, &m.ref));
  return pln_lua_finish_construction(
      &m, n_vars == 0 ? PLN_OK : pln_build_generic(into, m.ref, n_vars, vars));
}

/* if_(cond, then_value, else_value) -> If */
static int core_if(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checkany(L, 3);
  lua_settop(L, 3);
  pln_dtype dtype = pln_lua_dtype_of(L, 2, 3);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  pln_ref cond = pln_lua_part(&m, 1, PLN_BOOL);
  pln_ref yes = pln_lua_part(&m, 2, dtype);
  pln_ref no = pln_lua_part(&m, 3, dtype);
  return pln_lua_finish_construction(
      &m, pln_build_floating_if(pln_lua_construction_builder(&m), cond, yes, no,
                                &m.ref));
}

/* let(var, value, body) -> an expression: a block with that Let */
static int core_let(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  luaL_checkany(L, 3);
  lua_settop(L, 3);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  pln_ref var = pln_lua_part(&m, 1, PLN_DTYPE_NONE);
  pln_dtype dtype = pln_lua_dtype_of(L, 1, 1);
  pln_ref value = pln_lua_part(&m, 2, dtype);
  pln_ref body = pln_lua_part(&m, 3, PLN_DTYPE_NONE);
  return pln_lua_finish_construction(
      &m, pln_build_floating_let(pln_lua_construction_builder(&m), var, value,
                                 body, &m.ref));
}

/* ---------------------------------------------------------------- patterns */

/* constructor(name [, type]) -> Constructor */
static int core_constructor(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_symbol name = pln_lua_check_symbol(L, b, 1);
  pln_type type = lua_isnoneornil(L, 2) ? 0 : pln_lua_check_type(L, b, 2);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  return pln_lua_finish_construction(
      &m, pln_build_constructor(pln_lua_construction_builder(&m), name, type,
                                &m.ref));
}

/* pattern_wildcard() -> PatternWildcard */
static int core_pattern_wildcard(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  return pln_lua_finish_construction(
      &m, pln_build_pattern_wildcard(pln_lua_construction_builder(&m), &m.ref));
}

/* pattern_var(var) -> PatternVar */
static int core_pattern_var(lua_State *L) {
  return build_unary(L, pln_build_pattern_var);
}

/* pattern_constructor(name, patterns) -> PatternConstructor */
static int core_pattern_constructor(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n;
  pln_symbol name = pln_lua_check_symbol(L, b, 1);
  lua_settop(L, 2);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  pln_ref *patterns = pln_lua_parts(&m, 2, &n);
  return pln_lua_finish_construction(
      &m, pln_build_pattern_constructor(pln_lua_construction_builder(&m), name,
                                        n, patterns, &m.ref));
}

/* pattern_tuple(patterns) -> PatternTuple */
static int core_pattern_tuple(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n;
  lua_settop(L, 1);
  pln_lua_construction m = pln_lua_begin_construction(L, b);
  pln_ref *patterns = pln_lua_parts(&m, 1, &n);
  return pln_lua_finish_construction(
      &m, pln_build_pattern_tuple(pln_lua_construction_builder(&m), n, patterns,
                                  &m.ref));
}

/* match(data, patterns, bodies, complete) -> Match */
static int core_match(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  uint32_t n, n_bodies;
  lua_settop(L, 4);
  bool complete = lua_toboolean(L, 4);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  pln_ref data = pln_lua_part(&m, 1, PLN_DTYPE_NONE);
  pln_ref *patterns = pln_lua_parts(&m, 2, &n);
  pln_ref *bodies = pln_lua_parts(&m, 3, &n_bodies);
  luaL_argcheck(L, n == n_bodies, 3, "one body a pattern expected");
  return pln_lua_finish_construction(
      &m, pln_build_floating_match(pln_lua_construction_builder(&m), data,
                                   complete, n, patterns, bodies, &m.ref));
}

static const luaL_Reg functions[] = {
    {"call", op_call},
    {"var", core_var},
    {"constant", core_constant},
    {"absent", core_absent},
    {"global_var", core_global_var},
    {"op_value", core_op_value},
    {"tuple", core_tuple},
    {"get", core_get},
    {"apply", core_apply},
    {"ref_create", core_ref_create},
    {"ref_read", core_ref_read},
    {"ref_write", core_ref_write},
    {"func", core_func},
    {"if_", core_if},
    {"let", core_let},
    {"constructor", core_constructor},
    {"pattern_wildcard", core_pattern_wildcard},
    {"pattern_var", core_pattern_var},
    {"pattern_constructor", core_pattern_constructor},
    {"pattern_tuple", core_pattern_tuple},
    {"match", core_match},
    {NULL, NULL},
};

void pln_lua_open_build(lua_State *L) {
  pln_lua_functions(L, functions);
}
