/* reshape_codes.h: a new shape in the words of Relay's reshape. Beside extents,
 * 0 (keeps the extent) and -1 (is found) there are -2: all extents that are
 * left; -3: the product of two; -4, a, b: one extent split in two, of which one
 * may be -1. For shape_reshape.c. */

#ifndef PLN_OP_RELAY_RESHAPE_CODES_H
#define PLN_OP_RELAY_RESHAPE_CODES_H

#include "op/infer/infer.h"

/* Some element is one of Relay's own codes. */
bool pln_reshape_codes_used(const pln_list *list);
/* The extents that the codes make of those of an operand, in dims, which has
 * room for PLN_MAX_RANK: -1 where one is to be found. Codes are read from the
 * last axis on with `reverse`. *fits: there were as many extents as they ask
 * for. */
pln_status pln_reshape_codes_read(pln_engine *engine, const pln_list *list,
                                  int32_t rank, const pln_dim *in, bool reverse,
                                  pln_dim *dims, uint32_t *count,
                                  bool *fits) PLN_CHECKED;

#endif
