/* pass_clone.c: clones parallel passes, whose bodies are functions of files,
 * into one Lua state per worker thread.
 *
 * Called by the executor through pln_lua_pass_cloner. Invariant: no other
 * thread touches the script's own Lua state. A worker loads the script's file
 * again in a state over its own engine and uses the pass whose body is defined
 * on the same line. Upvalues are those of that load. */

#include "lua/binding.h"

#include <lualib.h>

#include "pass/pass.h"

int luaopen_perilune_core(lua_State *L);

enum { MAX_SEARCHERS = 8 };

/* What a worker needs to load the pass. Texts are symbols of the engine. */
typedef struct packed_function {
  pln_engine *engine;
  const char *name, *file;
  int line;
  const char *path, *cpath; /* package.path and package.cpath */
  uint32_t n_searchers;     /* searchers of the host, such as the command's */
  lua_CFunction searchers[MAX_SEARCHERS];
} packed_function;

/* The Lua state of a worker and the passes made in it. */
typedef struct pln_lua_worker_state {
  pln_engine *engine;
  lua_State *L;
  uint32_t n, capacity;
  pln_pass **made; /* retained */
} pln_lua_worker_state;

static const char worker_state_key, files_key;

pln_lua_worker_state *pln_lua_worker_state_of(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &worker_state_key);
  pln_lua_worker_state *worker_state = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return worker_state;
}

pln_engine *pln_lua_worker_engine(const pln_lua_worker_state *worker_state) {
  return worker_state->engine;
}

void pln_lua_record_loaded_pass(lua_State *L, pln_lua *b, const pln_pass *pass,
                                const char *name) {
  pln_lua_worker_state *h = b->worker_state;
  pln_symbol symbol;
  if (!h)
    return;
  if (!pass) {
    pln_lua_must(L, b, pln_symbol_intern(b->engine, pln_text(name), &symbol));
    pass = pln_pass_lookup(b->engine, symbol);
  }
  pln_lua_must(L, b,
               pln_mem_grow(b->engine, (void **)&h->made, &h->capacity,
                            (size_t)h->n + 1, sizeof(pln_pass *)));
  h->made[h->n++] = pln_pass_retain(pass);
}

/* ------------------------------------------------------------------ packing */

typedef struct packing_run {
  pln_lua *state;
  const pln_pass *pass;
  packed_function *out;
} packing_run;

static const char *symbol_of(lua_State *L, pln_lua *b, const char *text) {
  pln_symbol symbol;
  pln_lua_must(L, b, pln_symbol_intern(b->engine, pln_text(text), &symbol));
  return pln_symbol_text(b->engine, symbol).data;
}

/* Returns the file and line where the function on top is defined; false if it
 * is in no file.  [-1, +0] */
static bool function_line_of(lua_State *L, lua_Debug *ar) {
  if (!lua_isfunction(L, -1)) {
    lua_pop(L, 1);
    return false;
  }
  lua_getinfo(L, ">S", ar);
  return ar->source[0] == '@';
}

/* Packs the searchers that are C functions without upvalues; others cannot move
 * to another state. */
static void pack_searchers(lua_State *L, packed_function *out) {
  if (lua_getfield(L, -1, "searchers") != LUA_TTABLE)
    return;
  lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
  for (lua_Integer i = 1; i <= n && out->n_searchers < MAX_SEARCHERS; i++) {
    lua_rawgeti(L, -1, i);
    if (lua_iscfunction(L, -1) && !lua_getupvalue(L, -1, 1))
      out->searchers[out->n_searchers++] = lua_tocfunction(L, -1);
    lua_settop(L, 3);
  }
}

static int pack_body(lua_State *L) {
  const packing_run *p = lua_touserdata(L, 1);
  pln_lua *b = p->state;
  lua_Debug ar;
  pln_lua_registry_get(L, &pln_lua_key.callbacks, p->pass->def->ud);
  if (!function_line_of(L, &ar))
    return 0;
  p->out->name = pln_pass_name(p->pass);
  p->out->line = ar.linedefined;
  p->out->file = symbol_of(L, b, ar.source + 1);
  if (lua_getglobal(L, "package") != LUA_TTABLE)
    return 0;
  lua_getfield(L, 2, "path");
  p->out->path = symbol_of(L, b, luaL_optstring(L, -1, ""));
  lua_getfield(L, 2, "cpath");
  p->out->cpath = symbol_of(L, b, luaL_optstring(L, -1, ""));
  lua_settop(L, 2);
  pack_searchers(L, p->out);
  return 0;
}

static void drop_packed_pass(void *ud) {
  packed_function *p = ud;
  pln_mem_free(p->engine, p, sizeof *p);
}

static pln_status pack_pass_function(const pln_pass *pass, void **out) {
  const pln_lua_callback *callback = pass->def->ud;
  pln_lua *b = callback->state;
  packed_function *p = pln_mem_zeroed(b->engine, sizeof *p);
  if (!p)
    return pln_nomem(b->engine);
  p->engine = b->engine;
  packing_run call = {b, pass, p};
  pln_status status = pln_lua_protect(b, pack_body, &call);
  *out = p;
  if (status != PLN_OK || !p->path) {
    drop_packed_pass(p);
    *out = NULL;
  }
  return status;
}

/* ------------------------------------------------------------- in the worker
 */

typedef struct worker_open {
  pln_lua_worker_state *worker_state;
  const packed_function *from;
  const pln_pass *found;
} worker_open;

static void set_path(lua_State *L, const char *name, const char *value) {
  lua_pushstring(L, value);
  lua_setfield(L, -2, name);
}

/* [package]: inserts the searchers after the one of package.preload, as in the
 * script's state. */
static void add_searchers(lua_State *L, const packed_function *from) {
  lua_getfield(L, -1, "searchers");
  lua_Integer n = (lua_Integer)lua_rawlen(L, -1);
  lua_Integer more = from->n_searchers;
  for (lua_Integer i = n; i >= 2 && more > 0; i--) {
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, -2, i + more);
  }
  for (lua_Integer i = 0; i < more; i++) {
    lua_pushcfunction(L, from->searchers[i]);
    lua_rawseti(L, -2, 2 + i);
  }
  lua_pop(L, 1);
}

static int set_up(lua_State *L) {
  const worker_open *o = lua_touserdata(L, 1);
  luaL_checkversion(L);
  luaL_openlibs(L);
  lua_pushlightuserdata(L, o->worker_state);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &worker_state_key);
  lua_newtable(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &files_key);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_perilune_core);
  lua_setfield(L, -2, "perilune.core");
  lua_getglobal(L, "package");
  set_path(L, "path", o->from->path);
  set_path(L, "cpath", o->from->cpath);
  add_searchers(L, o->from);
  return 0;
}

/* Loads a file once, even if several passes come from it. */
static void load_file(lua_State *L, const char *file) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &files_key);
  if (lua_getfield(L, -1, file) == LUA_TNIL) {
    lua_pushboolean(L, true);
    lua_setfield(L, -3, file);
    if (luaL_loadfilex(L, file, NULL) != LUA_OK)
      lua_error(L);
    lua_call(L, 0, 0);
  }
}

static bool is_at(lua_State *L, const pln_pass *pass,
                  const packed_function *from) {
  lua_Debug ar;
  pln_lua_registry_get(L, &pln_lua_key.callbacks, pass->def->ud);
  return function_line_of(L, &ar) && ar.linedefined == from->line &&
         !strcmp(ar.source + 1, from->file);
}

/* If several passes are defined on one line, the name decides. */
static int load_script_in_worker(lua_State *L) {
  worker_open *o = lua_touserdata(L, 1);
  const packed_function *from = o->from;
  uint32_t n = 0, n_named = 0;
  load_file(L, from->file);
  for (uint32_t i = 0; i < o->worker_state->n; i++) {
    const pln_pass *pass = o->worker_state->made[i];
    if (!is_at(L, pass, from))
      continue;
    bool named = !strcmp(pln_pass_name(pass), from->name);
    if (named || n_named == 0)
      o->found = pass;
    n++;
    n_named += named;
  }
  if (n == 0)
    return luaL_error(
        L,
        "%s:%d: loading the file again does not make a pass from this function",
        from->file, from->line);
  if (n > 1 && n_named != 1)
    return luaL_error(L, "%s:%d: several passes are made from this function",
                      from->file, from->line);
  return 0;
}

static int as_text(lua_State *L) {
  luaL_tolstring(L, 1, NULL);
  return 1;
}

/* Calls `body` with `o`; reports an error as a diagnostic. */
static pln_status call_in_worker(worker_open *o, lua_CFunction body) {
  lua_State *L = o->worker_state->L;
  lua_pushcfunction(L, as_text);
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, o);
  int status = lua_pcall(L, 1, 0, -3);
  pln_status reported = PLN_OK;
  if (status == LUA_ERRMEM)
    reported = pln_nomem(o->worker_state->engine);
  else if (status != LUA_OK)
    reported = pln_diag_error(o->worker_state->engine, PLN_ERR_ARGUMENT, NULL,
                              "pass '%s' cannot be made for another thread: %s",
                              o->from->name, lua_tostring(L, -1));
  lua_settop(L, 0);
  return reported;
}

static pln_status new_worker_state(pln_engine *engine,
                                   const packed_function *from, void **out) {
  pln_lua_worker_state *h = pln_mem_zeroed(engine, sizeof *h);
  if (!h)
    return pln_nomem(engine);
  *out = h;
  h->engine = engine;
  h->L = luaL_newstate();
  if (!h->L)
    return pln_nomem(engine);
  worker_open o = {h, from, NULL};
  return call_in_worker(&o, set_up);
}

static pln_status open(pln_engine *engine, const void *ud, void **worker_state,
                       pln_pass **out) {
  if (!*worker_state)
    PLN_TRY(new_worker_state(engine, ud, worker_state));
  worker_open o = {*worker_state, ud, NULL};
  PLN_TRY(call_in_worker(&o, load_script_in_worker));
  *out = pln_pass_retain(o.found);
  return PLN_OK;
}

/* Passes are released before the state that holds their bodies. */
static void close(void *worker_state) {
  pln_lua_worker_state *h = worker_state;
  for (uint32_t i = 0; i < h->n; i++)
    pln_pass_release(h->made[i]);
  if (h->L)
    lua_close(h->L);
  pln_mem_free(h->engine, h->made, h->capacity * sizeof(pln_pass *));
  pln_mem_free(h->engine, h, sizeof *h);
}

const pln_pass_cloner pln_lua_pass_cloner = {pack_pass_function,
                                             drop_packed_pass, open, close};
