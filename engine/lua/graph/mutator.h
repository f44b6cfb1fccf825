/* mutator.h: what constructors must know of a running rewrite. */

#ifndef PLN_LUA_GRAPH_MUTATOR_H
#define PLN_LUA_GRAPH_MUTATOR_H

#include "lua/binding.h"

/* The new graph of the running rewrite when `node` is one of the graph that it
 * rewrites, and *out the node's image there; else NULL. */
pln_lua_graph *pln_lua_image(lua_State *L, pln_lua *b, const pln_lua_node *node,
                             pln_ref *out);
/* block.c. `g` is the graph of the box. The scope that a node is in; whether
 * what it gives is known: a scope that is swept, or open, has not ended. */
pln_scope pln_lua_scope_of(const pln_lua_graph *slot, const pln_graph *g,
                           pln_ref node);
bool pln_lua_block_ended(const pln_lua_graph *slot, const pln_graph *g,
                         pln_scope scope);
/* What a scope evaluates to, as Relay sees it: its first Let from `from` on (0:
 * of all), whose body is the next one, else its result. */
pln_ref pln_lua_block_value(pln_lua_graph *slot, const pln_graph *g,
                            pln_scope scope, pln_ref from);
/* The lets of a block from `let` on, then its result, into `out` (NULL: only
 * count); returns the number of lets. */
uint32_t pln_lua_let_chain(pln_lua_graph *slot, const pln_graph *g, pln_ref let,
                           pln_ref *out);
/* operand.c. A Let is not an expression in a sealed graph, nor in one that is
 * rewritten: it stands for the rest of its block, which is built again in `to`
 * from its lets.  [-0, +0] */
bool pln_lua_is_let(lua_State *L, const pln_lua_node *node);
pln_ref pln_lua_let_expr(lua_State *L, pln_lua *b, pln_lua_graph *to,
                         const pln_lua_node *node);
/* The field named by the key at 2 of a node of the loop level
 * (tir/constructors.c); 0 when there is none.  [-0, +0 or 1] */
int pln_lua_tir_field(lua_State *L, pln_lua_node *node, const pln_graph *g,
                      int graph);

#endif
