/* memory.c: what Lua allocates while a pass with limit.memory runs counts for
 * that limit, as the engine's own memory does.
 *
 * Called around callbacks (errors.c). What always holds: outside of callbacks,
 * and without a limit, Lua has the allocator that the host gave it. */

#include "lua/binding.h"

/* A lua_Alloc that shrinks and frees whatever the limit says. */
static void *counted(void *ud, void *block, size_t old_size, size_t new_size) {
  const pln_lua *b = ud;
  size_t before = block ? old_size : 0; /* of a new one it is a kind */
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
