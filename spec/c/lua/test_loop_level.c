/* test_loop_level.c: schedules, lowering, the C writer and CanonicalizeShapes
 * when memory runs out, as scripts use them: every allocation from a number on
 * fails until the work ends. It fails or does all of its work, what comes after
 * it works, and nothing is lost. Lua and the engine share the allocator.
 *
 * PERILUNE_OOM_STEP: the distance of the numbers (53). */

#include <stdlib.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "check.h"

int luaopen_perilune_core(lua_State *L);

typedef struct limits {
  size_t blocks;
  long count, fail; /* 0: never */
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
    if (l->fail && l->count >= l->fail)
      return NULL;
  }
  void *block = realloc(ptr, nsize);
  l->blocks += !ptr && block;
  return block;
}

/* Returns two functions: what is tried, and its result as a text. */
static const char script[] =
    "package.path = 'lua/?.lua;lua/?/init.lua'\n"
    "local pl = require 'perilune'\n"
    "local te = pl.te\n"
    "local function schedule()\n"
    "  local A = te.placeholder({ 16, 24 }, 'float32', 'A')\n"
    "  local B = te.placeholder({ 24, 20 }, 'float32', 'B')\n"
    "  local k = te.reduce_axis({ 0, 24 }, 'k')\n"
    "  local C = te.compute({ 16, 20 }, function(i, j)\n"
    "    return te.sum(A(i, k) * B(k, j), k) end, 'C')\n"
    "  local D = te.compute({ 16, 20 }, function(i, j)\n"
    "    return te.max(C(i, j), 0) + 1 end, 'D')\n"
    "  local s = te.create_schedule(D.op)\n"
    "  local CL = s:cache_write(C, 'local')\n"
    "  local yo, xo, yi, xi = s[D]:tile(D.op.axis[1], D.op.axis[2], 5, 4)\n"
    "  s[C]:compute_at(s[D], xo)\n"
    "  s[A]:transform_layout(function(i, j) return j, i end)\n"
    "  local outer = s[C]:transform_layout(function(i, j)\n"
    "    return j // 4, te.AXIS_SEPARATOR, i, j % 4 end)\n"
    "  s[CL]:compute_at(s[C], outer)\n"
    "  s[D]:vectorize(xi)\n"
    "  s[D]:parallel(yo)\n"
    "  s:undo()\n"
    "  return s, { A, B, D }\n"
    "end\n"
    "local function shapes()\n"
    "  local x = pl.var('x', 'Tensor[(N, 4, 6), float32]')\n"
    "  local op = pl.op\n"
    "  local shape = op.shape_of(x, { dtype = 'int64' })\n"
    "  local n = op.take(shape, pl.const(pl.tensor({ 0 }, 'int64')))\n"
    "  local to = op.concatenate(pl.tuple(n,\n"
    "    pl.const(pl.tensor({ 24 }, 'int64'))), { axis = 0 })\n"
    "  return pl.module { main = pl.func({ x }, op.reshape(x, to)) }\n"
    "end\n"
    "local function layers()\n"
    "  local x = pl.var('x', 'Tensor[(2, 6), float32]')\n"
    "  local first, last = pl.op.nn.softmax(x), pl.op.tanh(x)\n"
    "  return pl.module { main = pl.func({ x },\n"
    "    pl.op.nn.softmax(pl.op.add(first, last))) }\n"
    "end\n"
    "local mod, model = shapes(), layers()\n"
    "local row = { 0, 0, 0, 0, 0, 0 }\n"
    "local function compile()\n"
    "  local pipeline = pl.sequential { 'InferType', 'FuseOps', 'LowerTE' }\n"
    "  local lowered = pipeline(model)\n"
    "  local result = pl.eval(lowered, { row, row }):to_table()\n"
    "  return pl.build(lowered):source() .. result[2][1]\n"
    "end\n"
    "return function()\n"
    "  local s, args = schedule()\n"
    "  local lowered = pl.lower(s, { args = args, name = 'f' })\n"
    "  local text = tostring(lowered) .. pl.build(lowered):source()\n"
    "  text = text .. compile()\n"
    "  return text .. tostring(pl.passes.CanonicalizeShapes()(mod))\n"
    "end\n";

static int load_script(lua_State *L) {
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_perilune_core);
  lua_setfield(L, -2, "perilune.core");
  if (luaL_loadstring(L, script) != LUA_OK)
    return lua_error(L);
  lua_call(L, 0, 1);
  return 1;
}

/* Calls the work; its text is on the stack when it is done. */
static bool work(lua_State *L) {
  lua_pushvalue(L, 1);
  return lua_pcall(L, 0, 1, 0) == LUA_OK;
}

static long step_between(void) {
  const char *text = getenv("PERILUNE_OOM_STEP");
  long step = text ? strtol(text, NULL, 10) : 53;
  return step > 0 ? step : 1;
}

static void sweep(lua_State *L, limits *l) {
  long before = l->count;
  REQUIRE(work(L));
  long all = l->count - before, step = step_between();
  for (long n = 1; n <= all; n += step) {
    lua_settop(L, 2);
    l->fail = l->count + n;
    bool done = work(L);
    l->fail = 0;
    if (done)
      CHECK(lua_rawequal(L, 2, -1));
    lua_settop(L, 2);
  }
  CHECK(work(L) && lua_rawequal(L, 2, -1));
}

static void survives_the_end_of_memory(void) {
  limits l = {0};
  lua_State *L = lua_newstate(limited, &l);
  REQUIRE(L);
  lua_pushcfunction(L, load_script);
  if (lua_pcall(L, 0, 1, 0) != LUA_OK)
    printf("# %s\n", luaL_tolstring(L, -1, NULL));
  REQUIRE(lua_isfunction(L, 1));
  bool done = work(L);
  if (!done)
    printf("# %s\n", luaL_tolstring(L, -1, NULL));
  CHECK(done);
  if (done)
    sweep(L, &l);
  lua_close(L);
  CHECK_EQ_INT(l.blocks, 0);
}

static const check_test tests[] = {
    {"loses nothing when memory ends", survives_the_end_of_memory},
};
CHECK_MAIN(tests)
