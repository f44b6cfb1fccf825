/* random.h: random elements in blocks; for the binding. */

#ifndef PLN_IR_TENSOR_RANDOM_H
#define PLN_IR_TENSOR_RANDOM_H

#include "base/base.h"

/* Checks that the distribution is valid for the dtype; a diagnostic if not. */
pln_status pln_random_check(pln_engine *engine, const pln_random_spec *spec,
                            pln_dtype dtype) PLN_CHECKED;
/* Elements first to first + count - 1 of an endless tensor, stored at `out`,
 * which is aligned for the dtype. `spec` was checked. */
void pln_random_fill(const pln_random_spec *spec, pln_dtype dtype,
                     uint64_t first, size_t count, void *out);

#endif
