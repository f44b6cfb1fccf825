/* script.h: the Lua scripts embedded into the command, compiled by embed.c
 * during the build. */

#ifndef PLN_CLI_SCRIPT_H
#define PLN_CLI_SCRIPT_H

#include <stddef.h>

typedef struct pln_embedded_script {
  const char *name; /* module name: "perilune.cli.opt" */
  const unsigned char *code;
  size_t size;
} pln_embedded_script;

/* The last row has no name. */
extern const pln_embedded_script pln_scripts[];

#endif
