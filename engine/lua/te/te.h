/* te.h: boxes of tensor expressions and schedules. */

#ifndef PLN_LUA_TE_TE_H
#define PLN_LUA_TE_TE_H

#include "lua/graph/constructor.h"

#define PLN_LUA_OPERATION "perilune.te.CoreOperation"
#define PLN_LUA_SCHEDULE "perilune.te.CoreSchedule"

typedef struct pln_lua_operation {
  pln_te_op *op;
} pln_lua_operation;

pln_te_op **pln_lua_check_operations(lua_State *L, int arg, uint32_t *n);
/* schedule.c */
void pln_lua_open_schedules(lua_State *L);

#endif
