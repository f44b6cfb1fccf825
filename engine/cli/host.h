/* host.h: what the command's scripts ask of the system. */

#ifndef PLN_CLI_HOST_H
#define PLN_CLI_HOST_H

#include <lauxlib.h>
#include <lua.h>

/* Opens the module "perilune.cli.host". */
int pln_cli_host(lua_State *L);

/* stop.c */

/* Those of its functions that tell of stops. */
extern const luaL_Reg pln_cli_stop_functions[];
/* From here on a pipe whose reader has gone is an error of the command. */
void pln_cli_catch_pipes(void);
/* What runs between the two has to end within the time limit of the command,
 * else the process ends with that status. */
void pln_cli_guard_begin(int status);
void pln_cli_guard_end(void);
/* The state is about to be closed: finalisers are looked for no more. */
void pln_cli_forget_state(void);

#endif
