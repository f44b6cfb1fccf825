/* operation.c: operations of tensor expressions, for scripts.
 *
 * lua/perilune/te makes the nodes, by TVM's names; here they become an
 * operation. Schedules are in schedule.c. */

#include "lua/te/te.h"

static int operation_gc(lua_State *L) {
  const pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  pln_lua_operation *box = luaL_checkudata(L, 1, PLN_LUA_OPERATION);
  if (b->engine)
    pln_te_op_release(box->op);
  box->op = NULL;
  return 0;
}

/* Reads the operations in the list at `arg`, into scratch memory.  [-0, +1] */
pln_te_op **pln_lua_check_operations(lua_State *L, int arg, uint32_t *n) {
  luaL_checktype(L, arg, LUA_TTABLE);
  *n = (uint32_t)lua_rawlen(L, arg);
  pln_te_op **ops = lua_newuserdatauv(L, (*n + 1) * sizeof *ops, 0);
  for (uint32_t i = 0; i < *n; i++) {
    lua_rawgeti(L, arg, (lua_Integer)i + 1);
    pln_lua_operation *box = luaL_testudata(L, -1, PLN_LUA_OPERATION);
    luaL_argcheck(L, box && box->op, arg, "a list of operations expected");
    ops[i] = box->op;
    lua_pop(L, 1);
  }
  return ops;
}

/* te_op(kind, name, tag, attrs, outputs, axis, body, stmt, inputs) ->
 * operation. `kind` is a pln_te_kind; the lists are of nodes; tag and stmt may
 * be nil. */
static int core_te_op(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  lua_settop(L, 9);
  lua_Integer kind = luaL_checkinteger(L, 1);
  luaL_argcheck(L, kind >= PLN_TE_PLACEHOLDER && kind <= PLN_TE_EXTERN, 1,
                "no such kind");
  pln_te_spec spec = {.kind = (pln_te_kind)kind,
                      .name = pln_lua_check_symbol(L, b, 2),
                      .stmt = PLN_NONE};
  spec.tag = lua_isnil(L, 3) ? 0 : pln_lua_check_symbol(L, b, 3);
  spec.attrs = pln_lua_check_attrs(L, b, 4);
  lua_settop(L, 9);
  pln_lua_operation *box =
      pln_lua_large_userdata(L, PLN_LUA_OPERATION, sizeof *box, 0);
  spec.inputs = pln_lua_check_operations(L, 9, &spec.n_inputs);
  pln_lua_construction m = pln_lua_begin_floating_construction(L, b);
  spec.outputs = pln_lua_parts(&m, 5, &spec.n_outputs);
  spec.axis = pln_lua_parts(&m, 6, &spec.n_axis);
  spec.body = pln_lua_parts(&m, 7, &spec.n_body);
  if (!lua_isnil(L, 8)) {
    pln_lua_check_node(L, 8);
    spec.stmt = pln_lua_part(&m, 8, PLN_DTYPE_NONE);
  }
  pln_lua_must(
      L, b, pln_te_op_new(pln_lua_construction_builder(&m), &spec, &box->op));
  lua_settop(L, 10);
  return 1;
}

/* te_op_inputs(operation, list) -> positions in `list` of the operations that
 * it reads, in the order of first use */
static int core_te_op_inputs(lua_State *L) {
  const pln_lua_operation *box = luaL_checkudata(L, 1, PLN_LUA_OPERATION);
  uint32_t n;
  pln_te_op **ops = pln_lua_check_operations(L, 2, &n);
  uint32_t n_inputs = pln_te_op_n_inputs(box->op);
  lua_createtable(L, (int)n_inputs, 0);
  for (uint32_t i = 0; i < n_inputs; i++)
    for (uint32_t k = 0; k < n; k++)
      if (ops[k] == pln_te_op_input(box->op, i)) {
        lua_pushinteger(L, (lua_Integer)k + 1);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
        break;
      }
  return 1;
}

/* te_scan_fix_points(operation) -> a list of booleans, one for each axis */
static int core_te_scan_fix_points(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  const pln_lua_operation *box = luaL_checkudata(L, 1, PLN_LUA_OPERATION);
  uint32_t n = pln_te_op_n_axis(box->op);
  bool *is_fixed = lua_newuserdatauv(L, (n + 1) * sizeof *is_fixed, 0);
  pln_lua_must(L, b, pln_te_scan_fix_points(b->engine, box->op, is_fixed));
  lua_createtable(L, (int)n, 0);
  for (uint32_t i = 0; i < n; i++) {
    lua_pushboolean(L, is_fixed[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static const luaL_Reg meta[] = {{"__gc", operation_gc}, {NULL, NULL}};
static const luaL_Reg methods[] = {{NULL, NULL}};
static const luaL_Reg functions[] = {
    {"te_op", core_te_op},
    {"te_op_inputs", core_te_op_inputs},
    {"te_scan_fix_points", core_te_scan_fix_points},
    {NULL, NULL}};

void pln_lua_open_te(lua_State *L) {
  pln_lua_class(L, PLN_LUA_OPERATION, methods, meta, NULL);
  pln_lua_functions(L, functions);
  pln_lua_open_schedules(L);
}
