/* random.c: random tensors, whole or slice by slice, for weights that are
 * larger than a script wants to hold. */

#include "ir/tensor/random.h"
#include "lua/binding.h"

enum { MAX_CHUNK = 1 << 24 };

/* Reads a number from a field; false if there is none.  [-0, +0] */
static bool number_field(lua_State *L, int arg, const char *name, double *out) {
  int type = lua_getfield(L, arg, name);
  if (type == LUA_TNUMBER)
    *out = lua_tonumber(L, -1);
  else if (type != LUA_TNIL)
    luaL_error(L, "field '%s' is a number, got %s", name, luaL_typename(L, -1));
  lua_pop(L, 1);
  return type != LUA_TNIL;
}

static uint64_t seed_field(lua_State *L, int arg) {
  lua_Integer seed = 0;
  int is_integer = 1;
  if (lua_getfield(L, arg, "seed") != LUA_TNIL)
    seed = lua_tointegerx(L, -1, &is_integer);
  if (!is_integer)
    luaL_error(L, "field 'seed' is an integer");
  lua_pop(L, 1);
  return (uint64_t)seed;
}

/* Reads { low, high, seed } or { mean, deviation, seed }; the default is mean 0
 * and deviation 1. */
static void check_random_spec(lua_State *L, int arg, pln_random_spec *spec) {
  *spec = (pln_random_spec){PLN_RANDOM_NORMAL, 0, 1, 0, 1, 0};
  if (lua_isnoneornil(L, arg))
    return;
  static const char *const names[] = {"low",       "high", "mean",
                                      "deviation", "seed", "count"};
  luaL_checktype(L, arg, LUA_TTABLE);
  pln_lua_known_keys(L, arg, "random", names, PLN_COUNT(names));
  bool low = number_field(L, arg, "low", &spec->low);
  bool high = number_field(L, arg, "high", &spec->high);
  bool mean = number_field(L, arg, "mean", &spec->mean);
  bool deviation = number_field(L, arg, "deviation", &spec->deviation);
  luaL_argcheck(L, !(low || high) || !(mean || deviation), arg,
                "give either low and high, or mean and deviation");
  if (low || high)
    spec->kind = PLN_RANDOM_UNIFORM;
  spec->seed = seed_field(L, arg);
}

/* random(dims, dtype, options) -> Tensor */
static int core_random(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  int64_t dims[PLN_LUA_MAX_RANK];
  pln_random_spec spec;
  pln_dtype dtype;
  uint32_t rank = pln_lua_check_dims_dtype(L, 1, PLN_FLOAT32, dims, &dtype);
  check_random_spec(L, 3, &spec);
  pln_tensor **slot = pln_lua_new_tensor(L);
  pln_lua_must(L, b,
               pln_tensor_random(b->engine, dtype, rank, dims, &spec, slot));
  return 1;
}

/* random_bytes(first, count, noise) -> bytes of the float32 elements `first`
 * (from 0) and on of an endless random tensor */
static int core_random_bytes(lua_State *L) {
  pln_lua *b = pln_lua_state_of(L);
  pln_random_spec spec;
  lua_Integer first = luaL_checkinteger(L, 1);
  lua_Integer count = luaL_checkinteger(L, 2);
  luaL_argcheck(L, first >= 0, 1, "an index from 0");
  luaL_argcheck(L, count >= 0 && count <= MAX_CHUNK, 2,
                "at most 16777216 elements at a time");
  check_random_spec(L, 3, &spec);
  pln_lua_must(L, b, pln_random_check(b->engine, &spec, PLN_FLOAT32));
  luaL_Buffer buffer;
  size_t bytes = (size_t)count * sizeof(float);
  void *out = luaL_buffinitsize(L, &buffer, bytes);
  pln_random_fill(&spec, PLN_FLOAT32, (uint64_t)first, (size_t)count, out);
  luaL_pushresultsize(&buffer, bytes);
  return 1;
}

static const luaL_Reg functions[] = {
    {"random", core_random}, {"random_bytes", core_random_bytes}, {NULL, NULL}};

void pln_lua_open_random(lua_State *L) {
  pln_lua_functions(L, functions);
}
