/* indices.h: reads and checks tensors of indices. */

#ifndef PLN_OP_KERNEL_INDICES_H
#define PLN_OP_KERNEL_INDICES_H

#include "op/kernel/kernel.h"

/* Reads element `i` as an index into [0, extent); negative indices count from
 * the end. False if it is out of range or not an integer. */
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

/* The same for elements `i` to `i + n` at once. */
static inline bool pln_indices_at(const pln_tensor *t, size_t i, size_t n,
                                  int64_t extent, int64_t *out) {
  const int64_t *in = t->data;
  bool good = true;
  for (size_t k = 0; k < n && t->dtype != PLN_INT64; k++)
    good = good && pln_index_at(t, i + k, extent, &out[k]);
  if (t->dtype != PLN_INT64)
    return good;
  for (size_t k = 0; k < n; k++) {
    int64_t at = in[i + k] + (in[i + k] < 0 ? extent : 0);
    good &= (at >= 0) & (at < extent);
    out[k] = at;
  }
  return good;
}

#endif
