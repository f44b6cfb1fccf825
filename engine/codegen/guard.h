/* guard.h: comparisons of a loop's index that hold in one run of its rounds. */

#ifndef PLN_CODEGEN_GUARD_H
#define PLN_CODEGEN_GUARD_H

#include "codegen/writer.h"

enum { PLN_C_MOST_GUARDS = 8 };

/* A comparison: `offset + i < limit` or `offset + i >= limit`, with `plus`
 * added to the limit. */
typedef struct pln_c_guard {
  pln_ref condition;
  pln_ref offset; /* PLN_NONE: 0 */
  pln_ref limit;
  bool is_upper;
  bool plus; /* 1 is added to the limit */
} pln_c_guard;

typedef struct pln_c_guards {
  pln_c_guard list[PLN_C_MOST_GUARDS];
  uint32_t n;
  pln_ref stmt; /* the IfThenElse that is all of the loop, and whose condition
                 * is that all guards hold; PLN_NONE: some rounds differ */
} pln_c_guards;

/* The guards of a loop that is about to be written; false: none. */
bool pln_c_find_guards(const pln_cw *w, pln_ref loop, pln_c_guards *out);
/* Whether a loop of few rounds moves the bounds of one inside of it, whose
 * guards compare the sum of both indices. */
bool pln_c_moves_bounds(const pln_cw *w, pln_ref loop);
/* Pushes what a guard compares, before the loop. */
void pln_c_push_guards(pln_cw *w, const pln_c_guards *guards);
/* Narrows [first, end) to the rounds in which guards hold; a bit of *mask for
 * each one that is known to. Values that guards compare were written. */
void pln_c_narrow(pln_cw *w, const pln_c_guards *guards, pln_c_value index,
                  pln_c_value *first, pln_c_value *end, uint32_t *mask);

#endif
