/* core.c: the module perilune.core: the binding of an engine to a Lua state,
 * its registry tables, and metatables.
 *
 * The engine lives as long as the Lua state: its box is made first and
 * therefore finalized last. (A worker's state borrows its engine instead.) The
 * engine uses the allocator of the Lua state, so that a host's memory limits
 * cover the IR. */

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file.h"
#include "lua/binding.h"

PLN_API int luaopen_perilune_core(lua_State *L);

const pln_lua_keys pln_lua_key = {0};
static const char state_key = 0;

/* Below this many engine bytes no extra collection is run. */
enum { COLLECT_FROM = 64 << 20 };

/* ------------------------------------------------------------------- state */

pln_lua *pln_lua_state_of(lua_State *L) {
  pln_lua *b = lua_touserdata(L, lua_upvalueindex(1));
  if (!b->engine)
    luaL_error(L, "perilune is closed: the Lua state is being closed");
  b->L = L;
  return b;
}

static int state_gc(lua_State *L) {
  pln_lua *b = lua_touserdata(L, 1);
  pln_engine *engine = b->engine;
  b->L = L;
  if (engine && !b->worker_state)
    pln_engine_free(engine);
  b->engine = NULL;
  return 0;
}

/* Pushes the box of the binding.  [-0, +1] */
static void push_state(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
}

/* A pln_write_fn that prints PrintIR's text to stderr. */
static pln_status print_error(void *ud, const char *data, size_t size) {
  pln_lua *b = ud;
  if (fwrite(data, 1, size, stderr) == size)
    return PLN_OK;
  return pln_diag_error(b->engine, PLN_ERR_IO, NULL,
                        "stderr cannot be written");
}

static lua_CFunction global_function(lua_State *L, const char *name) {
  lua_getglobal(L, name);
  lua_CFunction f = lua_tocfunction(L, -1);
  lua_pop(L, 1);
  return f;
}

/* The allocator of luaL_newstate is the C library's. It may be called by
 * several threads at once, which the engine does not assume of a host's own. */
static pln_alloc_fn engine_allocator(lua_State *L, void **ud) {
  pln_alloc_fn alloc = lua_getallocf(L, ud);
  void *unused;
  lua_State *standard = luaL_newstate();
  if (!standard)
    return alloc;
  bool same = lua_getallocf(standard, &unused) == alloc;
  lua_close(standard);
  return same ? NULL : alloc;
}

static void new_state(lua_State *L) {
  void *ud;
  pln_alloc_fn alloc = engine_allocator(L, &ud);
  pln_lua *b = lua_newuserdatauv(L, sizeof *b, 0);
  *b = (pln_lua){.L = L,
                 .collect_at = COLLECT_FROM,
                 .pcall = global_function(L, "pcall"),
                 .xpcall = global_function(L, "xpcall")};
  lua_createtable(L, 0, 2);
  lua_pushcfunction(L, state_gc);
  lua_setfield(L, -2, "__gc");
  lua_pushliteral(L, "perilune.Engine");
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  b->worker_state = pln_lua_worker_state_of(L);
  b->engine = b->worker_state ? pln_lua_worker_engine(b->worker_state)
                              : pln_engine_new(alloc, ud);
  if (!b->engine)
    luaL_error(L, "out of memory");
  pln_lua_open_interrupt(L, b);
  pln_engine_set_output(b->engine, print_error, b);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
}

/* ------------------------------------------------------------------ tables */

void pln_lua_table(lua_State *L, const char *key) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, key);
}

void pln_lua_registry_set(lua_State *L, const char *key, const void *pointer) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, key);
  lua_insert(L, -2);
  lua_rawsetp(L, -2, pointer);
  lua_pop(L, 1);
}

void pln_lua_forget(lua_State *L, const char *key, const void *pointer) {
  if (!lua_checkstack(L, 2))
    return; /* it stays until the state is closed */
  if (pln_lua_registry_get(L, key, pointer) != LUA_TNIL) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_pushnil(L);
    lua_rawsetp(L, -2, pointer); /* the key exists, so nothing is allocated */
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

int pln_lua_registry_get(lua_State *L, const char *key, const void *pointer) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, key);
  int type = lua_rawgetp(L, -1, pointer);
  lua_remove(L, -2);
  return type;
}

static void new_table(lua_State *L, const char *key, const char *mode) {
  lua_newtable(L);
  if (mode) {
    lua_createtable(L, 0, 1);
    lua_pushstring(L, mode);
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
  }
  lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

static void new_tables(lua_State *L) {
  const pln_lua_keys *k = &pln_lua_key;
  new_table(L, &k->unique, "v");
  new_table(L, &k->anchors, NULL);
  new_table(L, &k->callbacks, NULL);
  new_table(L, &k->interned, "v");
  new_table(L, &k->ops, NULL);
  new_table(L, &k->kinds, NULL);
  new_table(L, &k->floating, "v");
  new_table(L, &k->library, NULL);
  new_table(L, &k->stacks, "k");
  lua_pushboolean(L, false);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &k->saved_error);
}

/* ----------------------------------------------------------------- classes */

void pln_lua_functions(lua_State *L, const luaL_Reg *functions) {
  push_state(L);
  luaL_setfuncs(L, functions, 1);
}

void pln_lua_handle_type(lua_State *L, const char *name, lua_CFunction gc) {
  luaL_newmetatable(L, name);
  lua_pushcfunction(L, gc);
  lua_setfield(L, -2, "__gc");
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 1);
}

static int no_writes(lua_State *L) {
  const char *class = luaL_tolstring(L, lua_upvalueindex(2), NULL);
  if (lua_type(L, 2) == LUA_TSTRING)
    return luaL_error(L, "%s has no writable field '%s'", class,
                      lua_tostring(L, 2));
  return luaL_error(L, "%s has no writable fields", class);
}

/* A function of the binding has the box as its first upvalue. */
static bool is_own(lua_State *L, lua_Debug *ar) {
  bool own = false;
  if (!lua_getinfo(L, "f", ar))
    return false;
  if (lua_iscfunction(L, -1) && lua_getupvalue(L, -1, 1)) {
    push_state(L);
    own = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
  }
  lua_pop(L, 1);
  return own;
}

bool pln_lua_is_nested(lua_State *L) {
  lua_Debug ar;
  for (int level = 1; lua_getstack(L, level, &ar); level++)
    if (is_own(L, &ar))
      return true;
  return false;
}

/* [methods, meta]: sets meta.__index.  [-0, +0] */
static void set_index(lua_State *L, lua_CFunction index) {
  if (index) {
    push_state(L);
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -3);
    lua_pushcclosure(L, index, 3);
  } else {
    lua_pushvalue(L, -2);
  }
  lua_setfield(L, -2, "__index");
}

void pln_lua_class(lua_State *L, const char *name, const luaL_Reg *methods,
                   const luaL_Reg *meta, lua_CFunction index) {
  lua_newtable(L);
  pln_lua_functions(L, methods);
  luaL_newmetatable(L, name); /* methods, meta */
  pln_lua_functions(L, meta);
  set_index(L, index);
  push_state(L);
  lua_pushstring(L, name);
  lua_pushcclosure(L, no_writes, 2);
  lua_setfield(L, -2, "__newindex");
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__metatable");
  lua_insert(L, -2); /* meta, methods */
  lua_rawsetp(L, -2, &state_key);
  lua_pop(L, 1);
}

void *pln_lua_userdata(lua_State *L, const char *name, size_t size,
                       int uservalues) {
  void *slot = lua_newuserdatauv(L, size, uservalues);
  memset(slot, 0, size);
  luaL_setmetatable(L, name);
  return slot;
}

/* Lua's collector sees only the few bytes of a box, not the engine memory
 * behind it. So it is run when the engine's memory has doubled since the last
 * time. */
void *pln_lua_large_userdata(lua_State *L, const char *name, size_t size,
                             int uservalues) {
  push_state(L);
  pln_lua *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  if (b->engine && pln_engine_memory(b->engine, NULL) > b->collect_at) {
    lua_gc(L, LUA_GCCOLLECT);
    size_t used = 2 * pln_engine_memory(b->engine, NULL);
    b->collect_at = used > COLLECT_FROM ? used : COLLECT_FROM;
  }
  return pln_lua_userdata(L, name, size, uservalues);
}

void pln_lua_unique(lua_State *L, const void *pointer) {
  if (pln_lua_registry_get(L, &pln_lua_key.unique, pointer) == LUA_TNIL) {
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    pln_lua_registry_set(L, &pln_lua_key.unique, pointer);
  } else {
    lua_remove(L, -2);
  }
}

/* ------------------------------------------------------------------- other */

/* extend(class, methods [, metamethods]): adds methods written in Lua */
static int core_extend(lua_State *L) {
  luaL_checktype(L, 2, LUA_TTABLE);
  luaL_argcheck(L, luaL_getmetatable(L, luaL_checkstring(L, 1)) == LUA_TTABLE,
                1, "no such class");
  int meta = lua_gettop(L);
  lua_rawgetp(L, meta, &state_key);
  for (lua_pushnil(L); lua_next(L, 2);) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, meta + 1);
  }
  if (lua_istable(L, 3))
    for (lua_pushnil(L); lua_next(L, 3);) {
      lua_pushvalue(L, -2);
      lua_insert(L, -2);
      lua_rawset(L, meta);
    }
  return 0;
}

pln_symbol pln_lua_check_symbol(lua_State *L, pln_lua *b, int arg) {
  pln_symbol symbol;
  pln_slice text;
  text.data = luaL_checklstring(L, arg, &text.size);
  pln_lua_must(L, b, pln_symbol_intern(b->engine, text, &symbol));
  return symbol;
}

/* clock() -> monotonic time in seconds */
static int core_clock(lua_State *L) {
  lua_pushnumber(L, pln_seconds_now());
  return 1;
}

/* memory() -> bytes that the engine holds now, the peak, the number of
 * allocations and their total bytes */
static int core_memory(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  size_t peak;
  lua_pushinteger(L, (lua_Integer)pln_engine_memory(b->engine, &peak));
  lua_pushinteger(L, (lua_Integer)peak);
  lua_pushinteger(L, (lua_Integer)pln_engine_allocations(b->engine));
  lua_pushinteger(L, (lua_Integer)pln_engine_allocated(b->engine));
  return 4;
}

/* memory_pool([bytes]) -> bytes: sets and returns the size of the engine's
 * pool */
static int core_memory_pool(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  if (!lua_isnoneornil(L, 1)) {
    lua_Integer bytes = luaL_checkinteger(L, 1);
    luaL_argcheck(L, bytes >= 0, 1, "a number of bytes is not negative");
    pln_engine_set_pool(b->engine, (size_t)bytes);
    b->pool_is_set = true;
  }
  lua_pushinteger(L, (lua_Integer)pln_engine_pool(b->engine));
  return 1;
}

/* lua_seconds() -> total time spent in passes written in Lua */
static int core_lua_seconds(lua_State *L) {
  lua_pushnumber(L, pln_lua_state_of(L)->seconds);
  return 1;
}

/* interrupted() -> whether a stop was requested since the last pass or
 * evaluation; clears the request. For scripts that run long. */
static int core_interrupted(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  bool requested = pln_engine_interrupted(b->engine);
  if (requested) {
    pln_stoppable_begin(b->engine);
    pln_stoppable_end(b->engine);
  }
  lua_pushboolean(L, requested);
  return 1;
}

/* file_kind(bytes) -> a guess at the format of a file that is not an ONNX
 * model, or nil */
static int core_file_kind(lua_State *L) {
  pln_slice bytes;
  bytes.data = luaL_checklstring(L, 1, &bytes.size);
  lua_pushstring(L, pln_file_kind(bytes)); /* nil for NULL */
  return 1;
}

/* reset_file_mode(path) -> whether the file has the mode of a new one now */
static int core_reset_file_mode(lua_State *L) {
  mode_t mask = umask(0);
  (void)umask(mask);
  lua_pushboolean(L, chmod(luaL_checkstring(L, 1), 0666 & ~mask) == 0);
  return 1;
}

/* terminal(["stdout"]) -> whether stderr, or stdout, is a terminal */
static int core_terminal(lua_State *L) {
  static const char *const names[] = {"stderr", "stdout", NULL};
  int which = luaL_checkoption(L, 1, "stderr", names);
  lua_pushboolean(L, isatty(which ? STDOUT_FILENO : STDERR_FILENO));
  return 1;
}

static const luaL_Reg functions[] = {
    {"extend", core_extend},
    {"clock", core_clock},
    {"interrupted", core_interrupted},
    {"memory", core_memory},
    {"memory_pool", core_memory_pool},
    {"lua_seconds", core_lua_seconds},
    {"internal", pln_lua_internal},
    {"is_internal", pln_lua_is_internal},
    {"diags", pln_lua_diags},
    {"diag", pln_lua_diag},
    {"raise", pln_lua_raise_value},
    {"traceback", pln_lua_traceback},
    {"terminal", core_terminal},
    {"file_kind", core_file_kind},
    {"reset_file_mode", core_reset_file_mode},
    {NULL, NULL},
};

/* Each adds its functions to the table on top. */
static void (*const parts[])(lua_State *L) = {
    pln_lua_open_text,        pln_lua_open_graph,
    pln_lua_open_node,        pln_lua_open_build,
    pln_lua_open_dominators,  pln_lua_open_shrink,
    pln_lua_open_infer,       pln_lua_open_type_build,
    pln_lua_open_builder,     pln_lua_open_op,
    pln_lua_open_op_attr,     pln_lua_open_operator,
    pln_lua_open_type,        pln_lua_open_attrs,
    pln_lua_open_tensor,      pln_lua_open_module,
    pln_lua_open_functions,   pln_lua_open_callback,
    pln_lua_open_pass,        pln_lua_open_script_stop,
    pln_lua_open_registry,    pln_lua_open_context,
    pln_lua_open_mutator,     pln_lua_open_rules,
    pln_lua_open_dataflow,    pln_lua_open_pattern_table,
    pln_lua_open_visitor,     pln_lua_open_vars,
    pln_lua_open_compare,     pln_lua_open_mismatch,
    pln_lua_open_well_formed, pln_lua_open_runtime_value,
    pln_lua_open_npy,         pln_lua_open_eval,
    pln_lua_open_profile,     pln_lua_open_onnx,
    pln_lua_open_relay,       pln_lua_open_count,
    pln_lua_open_base64,      pln_lua_open_blas,
    pln_lua_open_random,      pln_lua_open_tir,
    pln_lua_open_tir_node,    pln_lua_open_tir_run,
    pln_lua_open_codegen,     pln_lua_open_sqlite,
    pln_lua_open_xgboost,     pln_lua_open_child,
    pln_lua_open_arith,       pln_lua_open_te,
    pln_lua_open_coroutine,   pln_lua_open_subprocess,
    pln_lua_open_output,
};

int luaopen_perilune_core(lua_State *L) {
  luaL_checkversion(L);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key) == LUA_TNIL) {
    new_tables(L);
    new_state(L);
  }
  lua_newtable(L);
  pln_lua_functions(L, functions);
  for (size_t i = 0; i < PLN_COUNT(parts); i++)
    parts[i](L);
  lua_pushstring(L, pln_version());
  lua_setfield(L, -2, "_VERSION");
  return 1;
}
