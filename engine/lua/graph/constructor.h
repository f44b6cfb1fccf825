/* constructor.h: the steps of a constructor called by a script; see operand.c.
 *
 * A constructor reads its arguments, begins (which decides where it appends),
 * converts its operands, builds, and returns the handle:
 *
 *     pln_lua_construction m = pln_lua_begin_construction(L, b);
 *     pln_ref x = pln_lua_part(&m, 1, PLN_DTYPE_NONE);
 *     return pln_lua_finish_construction(
 *         &m, pln_build_ref_read(pln_lua_construction_builder(&m), x, &m.ref));
 */

#ifndef PLN_LUA_GRAPH_CONSTRUCTOR_H
#define PLN_LUA_GRAPH_CONSTRUCTOR_H

#include "lua/binding.h"

typedef struct pln_lua_construction {
  lua_State *L;
  pln_lua *b;
  pln_lua_graph *to; /* where the node is appended */
  int at;            /* stack slot of that graph's box */
  pln_ref ref;       /* the new node */
} pln_lua_construction;

/* Begins where scripts append now; begins in the builder for free construction.
 * [-0, +1] */
pln_lua_construction pln_lua_begin_construction(lua_State *L, pln_lua *b);
pln_lua_construction pln_lua_begin_floating_construction(lua_State *L,
                                                         pln_lua *b);
/* The builder. For a rewrite, asking for it marks the graph as changed, so
 * convert the operands first: that may fail. */
pln_builder *pln_lua_construction_builder(const pln_lua_construction *m);
/* Converts the operand at `arg`; a number becomes a constant of `dtype`. */
pln_ref pln_lua_part(const pln_lua_construction *m, int arg, pln_dtype dtype);
/* Converts the operands in the list at `arg`, into scratch memory.  [-0, +1] */
pln_ref *pln_lua_parts(const pln_lua_construction *m, int arg, uint32_t *n);
/* Return value of a constructor: pushes the node's handle, or raises.  [-0,
 * +1] */
int pln_lua_finish_construction(const pln_lua_construction *m,
                                pln_status status);

#endif
