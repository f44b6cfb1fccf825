/* dataflow.h: compiled dataflow patterns of scripts. */

#ifndef PLN_LUA_RULE_DATAFLOW_H
#define PLN_LUA_RULE_DATAFLOW_H

#include "lua/binding.h"
#include "rule/dataflow/dataflow.h"

/* The pattern that core.dataflow_pattern made, at `arg`. */
const pln_dataflow_pattern *pln_lua_check_dataflow_pattern(lua_State *L,
                                                           int arg);

#endif
