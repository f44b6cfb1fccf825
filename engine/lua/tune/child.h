/* child.h: what the bindings of child processes share. */

#ifndef PLN_LUA_TUNE_CHILD_H
#define PLN_LUA_TUNE_CHILD_H

#include "base/process/process.h"

#include "lua/binding.h"

/* The words of a command, a list of 1 to 256 strings at `arg`, with NULL at
 * their end. They live as long as the two values that are pushed. [-0, +2] */
const char **pln_lua_push_words(lua_State *L, int arg);
/* Pushes { timed_out, signal, signal_name, code }.  [-0, +1] */
void pln_lua_push_child_end(lua_State *L, const pln_child_end *end);

#endif
