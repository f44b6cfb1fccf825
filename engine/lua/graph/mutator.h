/* mutator.h: the running rewrite, as constructors and field accesses need
 * it. */

#ifndef PLN_LUA_GRAPH_MUTATOR_H
#define PLN_LUA_GRAPH_MUTATOR_H

#include "lua/binding.h"

/* A running rewrite. The innermost one is pln_lua.rewriting. */
typedef struct pln_lua_rewriting {
  pln_lua *state;
  pln_rewrite *rw;
  pln_lua_graph *old; /* kept alive as element 0 of the table of functions */
  pln_lua_graph *new;
  pln_ref at;     /* the old node being visited */
  pln_ref *image; /* its image, which the answer replaces */
  bool wanted[PLN_N_KINDS];
  bool wanted_types[PLN_N_TYPE_KINDS];
  const char *name; /* name of the rule if all functions are one; NULL: one rule
                       per kind */
  bool post;        /* functions get the rebuilt node as well */
  bool hoists;      /* nodes may be used after their scope has ended */
  pln_type *type;   /* the type being visited, which the answer replaces */
  struct pln_lua_rewriting *outer;
} pln_lua_rewriting;

/* Calls `body` with `r` while the old node `old` is visited: constructors
 * append to the new graph, handles of the old one stand for their images.
 * *node: the node's image, which `body` may replace (r->image). */
pln_status pln_lua_rewriting_call(pln_lua_rewriting *r, pln_rewrite *rw,
                                  pln_ref old, lua_CFunction body,
                                  pln_ref *node) PLN_CHECKED;

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
