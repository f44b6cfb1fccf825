/* memory.c: makes Lua's allocations count for limit.memory while a pass runs,
 * as the engine's own do.
 *
 * Called around callbacks (errors.c). Invariant: outside of callbacks, and
 * without a limit, Lua uses the host's allocator. */

#include "lua/binding.h"

/* A lua_Alloc. Shrinking and freeing succeed whatever the limit is. */
static void *counted(void *ud, void *block, size_t old_size, size_t new_size) {
  const pln_lua *b = ud;
  size_t before =
      block ? old_size : 0; /* for a new block old_size is a type tag */
  if (new_size > before && !pln_mem_allows(b->engine, new_size - before))
    return NULL;
  void *moved = b->alloc(b->alloc_ud, block, old_size, new_size);
  if (moved || new_size == 0)
    pln_mem_count_host(b->engine, new_size - before);
  return moved;
}

bool pln_lua_count_begin(lua_State *L, pln_lua *b) {
  if (!b->engine->memory.limit || b->alloc)
    return false;
  b->alloc = lua_getallocf(L, &b->alloc_ud);
  lua_setallocf(L, counted, b);
  return true;
}

void pln_lua_count_end(lua_State *L, pln_lua *b, bool begun) {
  if (!begun)
    return;
  lua_setallocf(L, b->alloc, b->alloc_ud);
  b->alloc = NULL;
}
