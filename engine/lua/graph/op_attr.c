/* op_attr.c: attributes of operators whose values are Lua values.
 *
 * pl.op_attr (lua/perilune/ir/op_attr.lua) sets and reads them; passes in C
 * call the functions among them, through pln_op_attr_call. A function runs as
 * the function of a mutator does: when the pass rewrites, constructors append
 * to the new graph at the visited node, and handles of the old graph stand for
 * their images. Handles of the new graph are stale after the call.
 *
 *     pl.op_attr("nn.dense", "FTVMLegalize", function(attrs, inputs, types)
 *       ... return pl.op.nn.relu(inputs[1]) end) */

#include "lua/graph/constructor.h"
#include "lua/graph/mutator.h"
#include "transform/fuse/fuse_pattern.h"

/* ---------------------------------------------------------------- arguments */

/* One running call. `rewriting` is used while a graph is rewritten. */
typedef struct op_function_call {
  pln_lua *state;
  pln_op_call *call;
  const void *function; /* its key in the table of callbacks */
  pln_lua_rewriting rewriting;
} op_function_call;

enum { MAX_DEPTH = 8 }; /* nesting of lists */

static void push_node(lua_State *L, const op_function_call *f, bool old,
                      pln_ref node) {
  if (old || !f->call->rewrite)
    pln_lua_push_graph(L, f->state, f->call->graph);
  else
    pln_lua_registry_get(L, &pln_lua_key.anchors, f->rewriting.new);
  pln_lua_push_node(L, -1, node);
  lua_remove(L, -2);
}

static void push_value(lua_State *L, const op_function_call *f,
                       const pln_op_value *v, int depth);

/* Sets the item in the list on top: by name, by node, or as the next one.  [-1,
 * +0] */
static void set_item(lua_State *L, const op_function_call *f,
                     const pln_op_value *item) {
  if (item->name) {
    lua_setfield(L, -2, item->name);
  } else if (item->keyed) {
    push_node(L, f, !item->new_key, item->key);
    lua_insert(L, -2);
    lua_rawset(L, -3);
  } else {
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
}

static void push_list(lua_State *L, const op_function_call *f,
                      const pln_op_value *v, int depth) {
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  lua_createtable(L, (int)v->v.list.n, 0);
  for (uint32_t i = 0; i < v->v.list.n && depth < MAX_DEPTH; i++) {
    push_value(L, f, &v->v.list.items[i], depth + 1);
    set_item(L, f, &v->v.list.items[i]);
  }
}

static void push_value(lua_State *L, const op_function_call *f,
                       const pln_op_value *v, int depth) {
  switch (v->kind) {
  case PLN_OP_NIL: lua_pushnil(L); return;
  case PLN_OP_BOOL: lua_pushboolean(L, v->v.i != 0); return;
  case PLN_OP_INT: lua_pushinteger(L, v->v.i); return;
  case PLN_OP_FLOAT: lua_pushnumber(L, v->v.f); return;
  case PLN_OP_STRING:
    lua_pushlstring(L, v->v.s.size ? v->v.s.data : "", v->v.s.size);
    return;
  case PLN_OP_NODE: push_node(L, f, false, v->v.node); return;
  case PLN_OP_OLD_NODE: push_node(L, f, true, v->v.node); return;
  case PLN_OP_TYPE: pln_lua_push_type(L, f->state, v->v.type); return;
  case PLN_OP_ATTRS: pln_lua_push_attrs(L, f->state, v->v.attrs); return;
  case PLN_OP_LIST: push_list(L, f, v, depth); return;
  }
}

/* ------------------------------------------------------------------ results */

static const char *wanted_kind(const pln_op_value *v) {
  switch (v->kind) {
  case PLN_OP_NIL: return "nothing";
  case PLN_OP_BOOL: return "a boolean";
  case PLN_OP_INT: return "an integer";
  case PLN_OP_FLOAT: return "a number";
  case PLN_OP_STRING: return "a string";
  case PLN_OP_NODE:
  case PLN_OP_OLD_NODE: return "a node";
  case PLN_OP_TYPE: return "a type";
  case PLN_OP_ATTRS: return "a table of attributes";
  case PLN_OP_LIST: return "a list";
  }
  return "";
}

/* Raises an error about the value on top; names the function's location. */
static void bad_result(lua_State *L, const op_function_call *f,
                       const pln_op_value *v) {
  lua_Debug ar = {.short_src = "?"};
  const char *got = luaL_typename(L, -1);
  if (luaL_getmetafield(L, -1, "__name") == LUA_TSTRING)
    got = lua_tostring(L, -1);
  pln_lua_registry_get(L, &pln_lua_key.callbacks, f->function);
  if (lua_isfunction(L, -1))
    lua_getinfo(L, ">S", &ar);
  luaL_error(L, "%s:%d: attribute '%s' of '%s': %s%s expected%s%s, got %s",
             ar.short_src, ar.linedefined, f->call->key, f->call->op,
             wanted_kind(v), v->optional ? " or nil" : "",
             v->name ? " as " : "", v->name ? v->name : "", got);
}

static pln_slice symbol_text(lua_State *L, pln_lua *b) {
  pln_slice text;
  pln_symbol symbol;
  text.data = lua_tolstring(L, -1, &text.size);
  pln_lua_must(L, b, pln_symbol_intern(b->engine, text, &symbol));
  return pln_symbol_text(b->engine, symbol);
}

/* A number or a tensor becomes a constant of the dtype of the call. */
static pln_ref result_node(lua_State *L, const op_function_call *f,
                           const pln_op_value *v) {
  pln_lua *b = f->state;
  bool constant = lua_type(L, -1) == LUA_TNUMBER || pln_lua_test_tensor(L, -1);
  const pln_lua_node *node = pln_lua_test_node(L, -1);
  if (!node && !(constant && f->call->rewrite))
    bad_result(L, f, v);
  if (!f->call->rewrite) {
    if (node->graph->graph != f->call->graph)
      bad_result(L, f, v);
    return node->ref;
  }
  pln_type type = pln_node_type(f->call->graph, f->call->node);
  return pln_lua_operand(L, b, f->rewriting.new, lua_gettop(L),
                         constant ? pln_type_dtype(b->engine, type)
                                  : PLN_DTYPE_NONE);
}

static void read_value(lua_State *L, const op_function_call *f,
                       pln_op_value *v);

/* A list has the wanted items and no more; those with names are fields. */
static void read_list(lua_State *L, const op_function_call *f,
                      pln_op_value *v) {
  lua_Integer n = 0;
  if (!lua_istable(L, -1))
    bad_result(L, f, v);
  luaL_checkstack(L, LUA_MINSTACK, NULL);
  for (uint32_t i = 0; i < v->v.list.n; i++) {
    if (v->v.list.items[i].name)
      lua_getfield(L, -1, v->v.list.items[i].name);
    else
      lua_geti(L, -1, ++n);
    read_value(L, f, &v->v.list.items[i]);
    lua_pop(L, 1); /* the list keeps it */
  }
  if ((lua_Integer)lua_rawlen(L, -1) > n)
    luaL_error(L, "attribute '%s' of '%s': a list of %d expected, got %d",
               f->call->key, f->call->op, (int)n, (int)lua_rawlen(L, -1));
}

static void read_number(lua_State *L, const op_function_call *f,
                        pln_op_value *v) {
  int exact = 0;
  if (lua_type(L, -1) != LUA_TNUMBER)
    bad_result(L, f, v);
  if (v->kind == PLN_OP_FLOAT) {
    v->v.f = lua_tonumber(L, -1);
    return;
  }
  v->v.i = lua_tointegerx(L, -1, &exact);
  if (!exact)
    bad_result(L, f, v);
}

/* Reads the value on top.  [-0, +0] */
static void read_value(lua_State *L, const op_function_call *f,
                       pln_op_value *v) {
  int top = lua_gettop(L);
  if (v->optional && lua_isnil(L, -1)) {
    v->kind = PLN_OP_NIL;
    return;
  }
  switch (v->kind) {
  case PLN_OP_NIL: break;
  case PLN_OP_BOOL: v->v.i = lua_toboolean(L, -1); break;
  case PLN_OP_INT:
  case PLN_OP_FLOAT: read_number(L, f, v); break;
  case PLN_OP_STRING:
    if (lua_type(L, -1) != LUA_TSTRING)
      bad_result(L, f, v);
    v->v.s = symbol_text(L, f->state);
    break;
  case PLN_OP_NODE:
  case PLN_OP_OLD_NODE: v->v.node = result_node(L, f, v); break;
  case PLN_OP_TYPE:
    if (lua_type(L, -1) != LUA_TSTRING && !luaL_testudata(L, -1, PLN_LUA_TYPE))
      bad_result(L, f, v);
    v->v.type = pln_lua_check_type(L, f->state, top);
    break;
  case PLN_OP_ATTRS: v->v.attrs = pln_lua_check_attrs(L, f->state, top); break;
  case PLN_OP_LIST: read_list(L, f, v); break;
  }
  lua_settop(L, top);
}

/* ------------------------------------------------------------------- calling
 */

/* Makes the boxes of both graphs; the old one stays on the stack.  [-0, +1] */
static void begin_rewriting(lua_State *L, op_function_call *f) {
  pln_lua *b = f->state;
  pln_lua_rewriting *r = &f->rewriting;
  r->old = pln_lua_push_graph(L, b, f->call->graph);
  if (!f->call->rewrite)
    return;
  r->new = pln_lua_new_graph(L, b, PLN_LUA_REWRITING);
  pln_lua_registry_set(L, &pln_lua_key.anchors, r->new);
  r->rw = r->new->rewrite = f->call->rewrite;
  b->rewriting = r;
  b->target = r->new;
}

static int call_body(lua_State *L) {
  op_function_call *f = lua_touserdata(L, 1);
  luaL_checkstack(L, LUA_MINSTACK + (int)f->call->n_args, NULL);
  begin_rewriting(L, f);
  pln_lua_registry_get(L, &pln_lua_key.callbacks, f->function);
  for (uint32_t i = 0; i < f->call->n_args; i++)
    push_value(L, f, &f->call->args[i], 0);
  lua_call(L, (int)f->call->n_args, 1);
  read_value(L, f, f->call->result);
  return 0;
}

/* pln_op_function.call. The function may replace itself, so `ud` is not used
 * after the call. */
static pln_status call_op_function(void *ud, pln_op_call *call) {
  pln_lua *b = ((pln_lua_callback *)ud)->state;
  pln_ref image = call->image;
  op_function_call f = {.state = b, .call = call, .function = ud};
  f.rewriting = (pln_lua_rewriting){.state = b,
                                    .outer = b->rewriting,
                                    .rw = call->rewrite,
                                    .at = call->node,
                                    .image = &image};
  pln_lua_graph *target = b->target;
  pln_status status = pln_lua_protect(b, call_body, &f);
  b->rewriting = f.rewriting.outer;
  b->target = target;
  if (f.rewriting.new) {
    pln_lua_end_graph(f.rewriting.new);
    pln_lua_forget(b->L, &pln_lua_key.anchors, f.rewriting.new);
  }
  return status;
}

pln_op_function pln_lua_op_function(pln_lua_callback *callback) {
  return (pln_op_function){.call = call_op_function,
                           .release = pln_lua_release_callback,
                           .ud = callback};
}

/* ------------------------------------------------------------------ functions
 */

/* Reads the plain value at `arg`. */
static pln_attr plain_value(lua_State *L, int arg) {
  switch (lua_type(L, arg)) {
  case LUA_TBOOLEAN:
    return (pln_attr){.kind = PLN_ATTR_BOOL, .v.i = lua_toboolean(L, arg)};
  case LUA_TNUMBER:
    if (lua_isinteger(L, arg))
      return (pln_attr){.kind = PLN_ATTR_INT, .v.i = lua_tointeger(L, arg)};
    return (pln_attr){.kind = PLN_ATTR_FLOAT, .v.f = lua_tonumber(L, arg)};
  case LUA_TSTRING: {
    pln_attr text = {.kind = PLN_ATTR_STRING};
    text.v.s.data = lua_tolstring(L, arg, &text.v.s.size);
    return text;
  }
  default:
    luaL_typeerror(L, arg, "a boolean, a number, a string or a function");
    return (pln_attr){0};
  }
}

/* TOpPattern is an integer that passes take for a pattern. */
static void check_fuse_pattern(lua_State *L, int arg, const pln_op_attr *attr) {
  if (attr->is_function || attr->value.kind != PLN_ATTR_INT ||
      !pln_is_fuse_pattern(attr->value.v.i))
    luaL_argerror(L, arg,
                  "TOpPattern is 0 (elementwise), 1 (broadcast), 2 "
                  "(injective), 3 (reduce), 4 (out-fusable), 7 (tuple) or 8 "
                  "(opaque)");
}

/* op_attr_set(op, key, value, level) -> whether it was set */
static int core_op_attr_set(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  bool set;
  pln_op op = pln_lua_check_op(L, b, 1);
  const char *key = luaL_checkstring(L, 2);
  pln_op_attr attr = {.is_function = lua_isfunction(L, 3)};
  lua_Integer level = luaL_optinteger(L, 4, PLN_OP_ATTR_LEVEL);
  if (level < INT32_MIN || level > INT32_MAX)
    luaL_argerror(L, 4, "a level of 32 bits expected");
  attr.level = (int32_t)level;
  if (!attr.is_function)
    attr.value = plain_value(L, 3);
  if (strcmp(key, "TOpPattern") == 0)
    check_fuse_pattern(L, 3, &attr);
  pln_lua_callback **slot = pln_lua_new_callbacks(L, 1);
  if (attr.is_function) {
    lua_pushvalue(L, 3);
    pln_lua_set_callback(L, b, slot);
    attr.function = pln_lua_op_function(*slot);
  }
  pln_lua_must(L, b, pln_op_attr_set(b->engine, op, key, &attr, &set));
  *slot = NULL;
  lua_pushboolean(L, set);
  return 1;
}

/* op_attr_reset(op, key) */
static int core_op_attr_reset(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_op op = pln_lua_check_op(L, b, 1);
  const char *key = luaL_checkstring(L, 2);
  pln_lua_must(L, b, pln_op_attr_reset(b->engine, op, key));
  return 0;
}

/* The value that the library has of its own; only FuseOps' is a plain one. [-0,
 * +0 or 1] */
static int push_built_in(lua_State *L, const pln_lua *b, pln_op op,
                         const char *key) {
  if (strcmp(key, "TOpPattern") != 0)
    return 0;
  lua_pushinteger(L, pln_fuse_trait_of(b->engine, op).pattern);
  return 1;
}

/* op_attr_get(op, key) -> value or nil, level */
static int core_op_attr_get(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_op op = pln_lua_check_op(L, b, 1);
  const char *key = luaL_checkstring(L, 2);
  const pln_op_attr *attr = pln_op_attr_get(b->engine, op, key);
  if (!attr)
    return push_built_in(L, b, op, key);
  lua_Integer level = attr->level;
  if (!attr->is_function)
    pln_lua_push_attr(L, b, &attr->value);
  else if (attr->function.call == call_op_function)
    pln_lua_registry_get(L, &pln_lua_key.callbacks, attr->function.ud);
  else /* a function in C, which Lua cannot call */
    lua_pushboolean(L, true);
  lua_pushinteger(L, level);
  return 2;
}

void pln_lua_open_op_attr(lua_State *L) {
  static const luaL_Reg functions[] = {{"op_attr_set", core_op_attr_set},
                                       {"op_attr_reset", core_op_attr_reset},
                                       {"op_attr_get", core_op_attr_get},
                                       {NULL, NULL}};
  pln_lua_functions(L, functions);
}
