/* reshape_codes.h: the target shape of Relay's reshape. Besides extents, 0
 * (copies the extent) and -1 (inferred), it has -2: copies all remaining
 * extents; -3: the product of the next two; -4, a, b: splits an extent in two,
 * of which one may be -1. */

#ifndef PLN_OP_RELAY_RESHAPE_CODES_H
#define PLN_OP_RELAY_RESHAPE_CODES_H

#include "op/infer/infer.h"

/* Returns true if an element is one of Relay's own codes. */
bool pln_reshape_codes_used(const pln_list *list);
/* Applies the codes to the extents of an operand. dims has room for
 * PLN_MAX_RANK; -1 marks an inferred extent. With `reverse` codes are read from
 * the last axis on. *fits is true if the number of extents is right. */
pln_status pln_reshape_codes_read(pln_engine *engine, const pln_list *list,
                                  int32_t rank, const pln_dim *in, bool reverse,
                                  pln_dim *dims, uint32_t *count,
                                  bool *fits) PLN_CHECKED;

#endif
