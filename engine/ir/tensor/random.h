/* random.h: made-up elements piece by piece; for the binding. */

#ifndef PLN_IR_TENSOR_RANDOM_H
#define PLN_IR_TENSOR_RANDOM_H

#include "base/base.h"

/* Whether there are such elements of that dtype; a diagnostic when not. */
pln_status pln_random_check(pln_engine *engine, const pln_random_spec *spec,
                            pln_dtype dtype) PLN_CHECKED;
/* Elements first to first + count - 1 of an endless tensor, stored from the
 * start of `out`, aligned as the dtype. `noise` was checked. */
void pln_random_fill(const pln_random_spec *spec, pln_dtype dtype,
                     uint64_t first, size_t count, void *out);

#endif
