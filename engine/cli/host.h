/* host.h: what the command's scripts ask of the system. */

#ifndef PLN_HOST_H
#define PLN_HOST_H

#include <lua.h>

/* Opens the module "perilune.cli.host". */
int pln_cli_host(lua_State *L);

#endif
