/* compile_target.h: what passes ask of the target that a program is compiled
 * for (config key `target`). */

#ifndef PLN_TRANSFORM_COMPILE_TARGET_H
#define PLN_TRANSFORM_COMPILE_TARGET_H

#include "transform/transform.h"

typedef struct pln_compile_target {
  bool cpu;       /* a processor of x86 */
  uint32_t lanes; /* floats of 32 bits in a vector register */
  bool dot_int8;  /* dot products of bytes: of uint8 with int8 */
  bool vnni;      /* such products of 512 bits in one instruction */
} pln_compile_target;

/* The target of the current context; all zero if it is unknown or no x86. */
pln_compile_target pln_run_target(const pln_pass_run *run);

#endif
