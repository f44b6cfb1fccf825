/* script.h: the scripts that the command carries, as the build compiled them
 * (embed.c). */

#ifndef PLN_CLI_SCRIPT_H
#define PLN_CLI_SCRIPT_H

#include <stddef.h>

typedef struct pln_embedded_script {
  const char *name; /* of the module: "perilune.cli.opt" */
  const unsigned char *code;
  size_t size;
} pln_embedded_script;

/* The last row has no name. */
extern const pln_embedded_script pln_scripts[];

#endif
