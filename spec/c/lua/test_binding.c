/* test_binding.c: the binding when memory runs out: a script that uses all of
 * it, with each allocation failing in turn. Lua and the engine share the
 * allocator, so every block either of them takes is counted. */

#include <stdlib.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "check.h"

int luaopen_perilune_core(lua_State *L);

/* Fails from allocation number `fail` on, or only that one. */
typedef struct limits {
  size_t blocks;
  long count;
  long fail; /* 0: never */
  bool once;
} limits;

static void *limited(void *ud, void *ptr, size_t osize, size_t nsize) {
  limits *l = ud;
  if (nsize == 0) {
    l->blocks -= ptr != NULL;
    free(ptr);
    return NULL;
  }
  if (!ptr || nsize > osize) {
    l->count++;
    if (l->fail && (l->once ? l->count == l->fail : l->count >= l->fail))
      return NULL;
  }
  void *block = realloc(ptr, nsize);
  l->blocks += !ptr && block;
  return block;
}

static const char script[] =
    "local core = require 'perilune.core'\n"
    "local x = core.var('x', 'Tensor[(N, 4), float32]')\n"
    "local add, tanh = core.op 'add', core.op 'tanh'\n"
    "local y = core.call(add, core.call(tanh, x), 1.0)\n"
    "local f = core.func({ x }, y, nil, { Inline = 1, names = { 'a', 'b' } })\n"
    "local mod = core.module { main = f, other = f }\n"
    "local seen = {}\n"
    "for node in mod.functions.main:nodes() do seen[node] = node.kind end\n"
    "assert(#tostring(mod) > 0 and mod.attrs and #mod.names == 2)\n"
    "local t = core.tensor({ { 1, 2 }, { 3, 4 } }, 'float32')\n"
    "assert(t:to_table()[2][1] == 3 and #t:to_bytes() == 16)\n"
    "local ctx = core.context { opt_level = 3, instruments = {\n"
    "  { name = 'log', before = function(m, info) seen[info.name] = m end } } "
    "}\n"
    "local pass = core.pass { name = 'lua', kind = 'function', options = {},\n"
    "  run = function(fn, m, c)\n"
    "    c:note('runs', 1)\n"
    "    return core.mutate({ Call = function(call, rebuild)\n"
    "      if call.op == tanh then return core.call(add, call[1], 2.0) end\n"
    "    end }, fn)\n"
    "  end }\n"
    "local fails = core.pass { name = 'fails', kind = 'function', options = "
    "{},\n"
    "  run = function() error 'on purpose' end }\n"
    "local seq = core.sequential('s', 0, {}, { pass, pass })\n"
    "local out = seq(mod, ctx)\n"
    "assert(out ~= mod and #core.report() > 0)\n"
    "assert(not pcall(fails, mod) and not core.onnx_load '/nowhere')\n"
    "assert(core.eval(f, { { 1, 2, 3, 4 } }):to_table()[1][1])\n"
    "return core.node_equal(f, out.functions.main)\n";

static int run_script(lua_State *L) {
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_perilune_core);
  lua_setfield(L, -2, "perilune.core");
  if (luaL_loadstring(L, script) != LUA_OK)
    return lua_error(L);
  lua_call(L, 0, 1);
  return 1;
}

/* True when the script ran to its end; whatever happens, nothing is lost. */
static bool run(limits *l) {
  lua_State *L = lua_newstate(limited, l);
  bool done = false;
  if (L) {
    lua_pushcfunction(L, run_script);
    done = lua_pcall(L, 0, 1, 0) == LUA_OK;
    if (!done && l->fail == 0)
      printf("# %s\n", luaL_tolstring(L, -1, NULL));
    lua_close(L);
  }
  CHECK_EQ_INT(l->blocks, 0);
  return done;
}

static void runs(void) {
  limits l = {0};
  CHECK(run(&l));
}

static void sweep(bool once) {
  limits all = {0};
  REQUIRE(run(&all));
  for (long n = 1; n <= all.count; n++) {
    limits l = {.fail = n, .once = once};
    (void)run(&l);
  }
}

static void survives_the_end_of_memory(void) {
  sweep(false);
}

static void survives_one_failure(void) {
  sweep(true);
}

static const check_test tests[] = {
    {"runs a script that uses all of the binding", runs},
    {"loses nothing when memory ends", survives_the_end_of_memory},
    {"loses nothing when one allocation fails", survives_one_failure},
};
CHECK_MAIN(tests)
