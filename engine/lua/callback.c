/* callback.c: Lua functions and tables that the engine holds: bodies of passes
 * and instruments of contexts.
 *
 * The engine knows a callback by a pointer. The Lua value is stored in a
 * registry table under that pointer until the engine releases it. */

#include "lua/binding.h"

typedef struct callbacks_userdata {
  uint32_t n;
  pln_lua_callback *slots[];
} callbacks_userdata;

void pln_lua_release_callback(void *ud) {
  pln_lua_callback *callback = ud;
  pln_lua *b = callback->state;
  pln_lua_forget(b->L, &pln_lua_key.callbacks, callback);
  pln_mem_free(b->engine, callback, sizeof *callback);
}

static int callbacks_gc(lua_State *L) {
  callbacks_userdata *slot = lua_touserdata(L, 1);
  for (uint32_t i = 0; i < slot->n; i++)
    if (slot->slots[i]) {
      slot->slots[i]->state->L = L;
      if (slot->slots[i]->state->engine)
        pln_lua_release_callback(slot->slots[i]);
      slot->slots[i] = NULL;
    }
  return 0;
}

pln_lua_callback **pln_lua_new_callbacks(lua_State *L, uint32_t n) {
  callbacks_userdata *slot =
      pln_lua_userdata(L, "perilune.Callbacks",
                       sizeof *slot + n * sizeof(pln_lua_callback *), 0);
  slot->n = n;
  return slot->slots;
}

void pln_lua_set_callback(lua_State *L, pln_lua *b, pln_lua_callback **slot) {
  *slot = pln_mem_new(b->engine, sizeof **slot);
  if (!*slot)
    pln_lua_raise(L, b, pln_nomem(b->engine));
  (*slot)->state = b;
  pln_lua_registry_set(L, &pln_lua_key.callbacks, *slot);
}

static const luaL_Reg none[] = {{NULL, NULL}};
static const luaL_Reg meta[] = {{"__gc", callbacks_gc}, {NULL, NULL}};

void pln_lua_open_callback(lua_State *L) {
  pln_lua_class(L, "perilune.Callbacks", none, meta, NULL);
}
