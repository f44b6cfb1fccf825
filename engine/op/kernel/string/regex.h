/* regex.h: regular expressions in RE2's syntax, as small programs.
 *
 * Each part of an expression is a run of instructions whose jumps are relative,
 * so that parts are put together by copying. What captures, and who wins of
 * several matches, makes no difference to whether a whole string matches, and
 * is left out. */

#ifndef PLN_OP_KERNEL_STRING_REGEX_H
#define PLN_OP_KERNEL_STRING_REGEX_H

#include <locale.h>

#include "op/kernel/kernel.h"

typedef enum pln_pattern_op {
  PLN_PATTERN_SET,   /* takes a character of set `x` */
  PLN_PATTERN_SPLIT, /* goes on at +x and at +y */
  PLN_PATTERN_JUMP,  /* goes on at +x */
  PLN_PATTERN_TEXT_BEGIN,
  PLN_PATTERN_TEXT_END,
  PLN_PATTERN_LINE_BEGIN,
  PLN_PATTERN_LINE_END,
  PLN_PATTERN_WORD_EDGE, /* \b */
  PLN_PATTERN_NO_EDGE,   /* \B */
  PLN_PATTERN_MATCH
} pln_pattern_op;

typedef struct pln_pattern_step {
  pln_pattern_op op;
  int32_t x, y;
} pln_pattern_step;

typedef struct pln_char_range {
  uint32_t low, high;
} pln_char_range;

/* Characters in any of some ranges, or in none. */
typedef struct pln_char_set {
  uint32_t begin, count; /* of its ranges */
  bool negated, folded;  /* folded: small and capital letters are one */
} pln_char_set;

typedef struct pln_pattern {
  pln_engine *engine;
  pln_pattern_step *steps;
  pln_char_set *sets;
  pln_char_range *ranges;
  uint32_t n_steps, n_sets, n_ranges;
  uint32_t step_room, set_room, range_room;
  locale_t letters; /* which letters are one; 0 unless a set is folded */
} pln_pattern;

/* Refuses what is no expression, or one that is not known here: classes of
 * Unicode by name, single bytes. Freed in any case. */
pln_status pln_pattern_read(const pln_kernel_call *call, pln_slice text,
                            pln_pattern *out) PLN_CHECKED;
void pln_pattern_free(pln_pattern *pattern);

/* Classes of characters, added to the last set of the pattern. */

pln_status pln_pattern_add_range(pln_pattern *pattern, uint32_t low,
                                 uint32_t high) PLN_CHECKED;
/* \d, \w, \s and, in capitals, all others. *known: there is such a class. */
pln_status pln_pattern_add_letter(pln_pattern *pattern, char letter,
                                  bool *known) PLN_CHECKED;
/* "alpha", "^alpha", ... */
pln_status pln_pattern_add_named(pln_pattern *pattern, pln_slice name,
                                 bool *known) PLN_CHECKED;

#endif
