/* constructor.h: a node that a constructor makes for a script; operand.c.
 *
 * A constructor reads its arguments, says where it appends (pln_lua_make),
 * takes its operands, builds, and hands over:
 *
 *     pln_making m = pln_lua_make(L, b);
 *     pln_ref x = pln_lua_part(&m, 1, PLN_DTYPE_NONE);
 *     return pln_lua_give(&m, pln_build_ref_read(pln_lua_into(&m), x, &m.ref));
 */

#ifndef PLN_LUA_GRAPH_CONSTRUCTOR_H
#define PLN_LUA_GRAPH_CONSTRUCTOR_H

#include "lua/binding.h"

typedef struct pln_making {
  lua_State *L;
  pln_lua *b;
  pln_lua_graph *to; /* where it is appended */
  int at;            /* the stack slot of that graph's box */
  pln_ref ref;       /* the node that is made */
} pln_making;

/* Appends where the script is; appends freely.  [-0, +1] */
pln_making pln_lua_make(lua_State *L, pln_lua *b);
pln_making pln_lua_make_free(lua_State *L, pln_lua *b);
/* The builder. Asking for it says that something is made: take the operands
 * first, which may turn out not to be any. */
pln_builder *pln_lua_into(const pln_making *m);
/* The operand at `arg`; a number there becomes a constant of `dtype`. */
pln_ref pln_lua_part(const pln_making *m, int arg, pln_dtype dtype);
/* Operands from the list at `arg`, in scratch memory.  [-0, +1] */
pln_ref *pln_lua_parts(const pln_making *m, int arg, uint32_t *n);
/* What a constructor returns: the node's handle, or the error.  [-0, +1] */
int pln_lua_give(const pln_making *m, pln_status status);

#endif
