/* mutator.h: the running rewrite, as constructors and field accesses need
 * it. */

#ifndef PLN_LUA_GRAPH_MUTATOR_H
#define PLN_LUA_GRAPH_MUTATOR_H

#include "lua/binding.h"

/* If `node` belongs to the graph that is being rewritten, returns the new graph
 * and sets *out to the node's image in it; else returns NULL. */
pln_lua_graph *pln_lua_image(lua_State *L, pln_lua *b, const pln_lua_node *node,
                             pln_ref *out);
/* block.c. `g` is the graph of the box. pln_lua_scope_of returns the
 * scope of a node. pln_lua_block_ended returns true if the result of a scope is
 * known: the scope is neither open nor being swept. */
pln_scope pln_lua_scope_of(const pln_lua_graph *slot, const pln_graph *g,
                           pln_ref node);
bool pln_lua_block_ended(const pln_lua_graph *slot, const pln_graph *g,
                         pln_scope scope);
/* The value of a scope as Relay sees it: its first Let from `from` on (0: from
 * the start), whose body is the next Let, else its result. */
pln_ref pln_lua_block_value(pln_lua_graph *slot, const pln_graph *g,
                            pln_scope scope, pln_ref from);
/* Writes the lets of a block from `let` on, then its result, to `out` (NULL:
 * only counts). Returns the number of lets. */
uint32_t pln_lua_let_chain(pln_lua_graph *slot, const pln_graph *g, pln_ref let,
                           pln_ref *out);
/* operand.c. Returns true for a Let that is not an expression: in a sealed
 * graph or one being rewritten it stands for the rest of its block, which is
 * rebuilt in `to` from its lets.  [-0, +0] */
bool pln_lua_is_let(lua_State *L, const pln_lua_node *node);
pln_ref pln_lua_let_expr(lua_State *L, pln_lua *b, pln_lua_graph *to,
                         const pln_lua_node *node);
/* Pushes the field named by the key at 2 of a TIR node (tir/node.c); 0 if it
 * has none.  [-0, +0 or 1] */
int pln_lua_tir_field(lua_State *L, pln_lua_node *node, const pln_graph *g,
                      int graph);

#endif
