/* constructor.h: a node that a constructor makes for a script; operand.c.
 *
 * A constructor reads its arguments, says where it appends
 * (pln_lua_begin_construction), takes its operands, builds, and hands over:
 *
 *     pln_lua_construction m = pln_lua_begin_construction(L, b);
 *     pln_ref x = pln_lua_part(&m, 1, PLN_DTYPE_NONE);
 *     return pln_lua_finish_construction(&m,
 * pln_build_ref_read(pln_lua_construction_builder(&m), x, &m.ref));
 */

#ifndef PLN_LUA_GRAPH_CONSTRUCTOR_H
#define PLN_LUA_GRAPH_CONSTRUCTOR_H

#include "lua/binding.h"

typedef struct pln_lua_construction {
  lua_State *L;
  pln_lua *b;
  pln_lua_graph *to; /* where it is appended */
  int at;            /* the stack slot of that graph's box */
  pln_ref ref;       /* the node that is made */
} pln_lua_construction;

/* Appends where the script is; appends freely.  [-0, +1] */
pln_lua_construction pln_lua_begin_construction(lua_State *L, pln_lua *b);
pln_lua_construction pln_lua_begin_floating_construction(lua_State *L,
                                                         pln_lua *b);
/* The builder. Asking for it says that something is made: take the operands
 * first, which may turn out not to be any. */
pln_builder *pln_lua_construction_builder(const pln_lua_construction *m);
/* The operand at `arg`; a number there becomes a constant of `dtype`. */
pln_ref pln_lua_part(const pln_lua_construction *m, int arg, pln_dtype dtype);
/* Operands from the list at `arg`, in scratch memory.  [-0, +1] */
pln_ref *pln_lua_parts(const pln_lua_construction *m, int arg, uint32_t *n);
/* What a constructor returns: the node's handle, or the error.  [-0, +1] */
int pln_lua_finish_construction(const pln_lua_construction *m,
                                pln_status status);

#endif
