/* mutator.h: what constructors must know of a running rewrite. */

#ifndef PLN_LUA_MUTATOR_H
#define PLN_LUA_MUTATOR_H

#include "lua/binding.h"

/* The new graph of the running rewrite when `node` is one of the graph that it
 * rewrites, and *out the node's image there; else NULL. */
pln_lua_graph *pln_lua_image(lua_State *L, pln_lua *b, const pln_lua_node *node,
                             pln_ref *out);
/* The lets of a block from `let` on, then its result, into `out` (NULL: only
 * count); returns the number of lets. */
uint32_t pln_lua_let_chain(pln_lua_graph *box, pln_ref let, pln_ref *out);
/* The field named by the key at 2 of a node of the loop level (tir.c); 0 when
 * there is none.  [-0, +0 or 1] */
int pln_lua_loop_field(lua_State *L, pln_lua_node *node, const pln_graph *g,
                       int graph);

#endif
