/* guard.h: loops whose body is one guarded statement. */

#ifndef PLN_CODEGEN_GUARD_H
#define PLN_CODEGEN_GUARD_H

#include "codegen/writer.h"

/* `if (offset + i < limit)` is all of a loop over i. */
typedef struct pln_c_guard {
  pln_ref stmt;   /* the IfThenElse */
  pln_ref offset; /* PLN_NONE: 0 */
  pln_ref limit;
} pln_c_guard;

bool pln_c_find_guard(const pln_cw *w, pln_ref loop, pln_c_guard *out);
/* The end of the loop where its guard does not hold any more; offset and limit
 * were written. *out: false if that is not known to be so, then `end`. */
pln_c_value pln_c_guarded_end(pln_cw *w, const pln_c_guard *guard,
                              pln_c_value min, pln_c_value end,
                              pln_c_value index, bool *out);

#endif
