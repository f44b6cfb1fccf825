/* indices.h: reading tensors of indices. */

#ifndef PLN_OP_INDICES_H
#define PLN_OP_INDICES_H

#include "op/kernel.h"

/* Element `i` as an index into [0, extent); negative ones count from the end.
 * False when it lies outside, or is no integer. */
static inline bool pln_index_at(const pln_tensor *t, size_t i, int64_t extent,
                                int64_t *out) {
  int64_t at;
  if (t->dtype == PLN_INT64)
    memcpy(&at, (const char *)t->data + i * sizeof at, sizeof at);
  else if (!pln_tensor_int(t, i, &at))
    return false;
  if (at < 0)
    at += extent;
  *out = at;
  return at >= 0 && at < extent;
}

#endif
