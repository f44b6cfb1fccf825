/* host.h: the system functions that the command's scripts use. */

#ifndef PLN_CLI_HOST_H
#define PLN_CLI_HOST_H

#include <lauxlib.h>
#include <lua.h>

/* Opens the module "perilune.cli.host". */
int pln_cli_host(lua_State *L);

/* stop.c */

/* Its functions about stopping. */
extern const luaL_Reg pln_cli_stop_functions[];
/* From here on a closed pipe on the output is an error of the command, not a
 * signal. */
void pln_cli_catch_failed_writes(void);
/* Code between these calls must end within the time limit of the command, or
 * the process exits with that status. */
void pln_cli_guard_begin(int status);
void pln_cli_guard_end(void);
/* Called before the state is closed: stops looking for running finalizers. */
void pln_cli_forget_state(void);

#endif
