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

/* The text of that target, "cuda -arch=sm_50 -host=\"llvm\""; empty: none. */
pln_slice pln_run_target_text(const pln_pass_run *run);
/* The next word of a target's text from *at on; blanks in quotes are part of a
 * word. False at the end. */
bool pln_target_next_word(pln_slice text, size_t *at, pln_slice *word);
/* Reads "-name=value"; the value is without quotes. False if it is no such
 * word. */
bool pln_target_read_attr(pln_slice word, pln_slice *name, pln_slice *value);
/* The value of an attribute of the target, not of its host; empty: none. */
pln_slice pln_target_attr(pln_slice text, const char *attr);
/* An attribute of the current target as a number; 0 if it has none or another
 * value. */
uint32_t pln_run_target_count(const pln_pass_run *run, const char *attr);

#endif
