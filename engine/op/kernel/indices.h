/* indices.h: reads and checks tensors of indices, and walks over them. */

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

/* Returns true if the indices fit the operand along all axes but `axis`. */
static inline bool pln_indices_lie_within(const pln_tensor *indices,
                                          const pln_tensor *x, uint32_t axis) {
  for (uint32_t i = 0; i < x->rank; i++)
    if (i != axis && indices->dims[i] > x->dims[i])
      return false;
  return true;
}

/* Sets `position` in the first `n_axes` axes of the indices to the i-th one. */
static inline void pln_indices_seek(const pln_tensor *indices, uint32_t n_axes,
                                    size_t i, int64_t *position) {
  for (uint32_t k = n_axes; k-- > 0; i /= (size_t)indices->dims[k])
    position[k] = (int64_t)(i % (size_t)indices->dims[k]);
}

/* Advances `position` in the first `n_axes` axes of the indices and returns the
 * offset of the element of the operand there, with position 0 along `axis`.
 * `offset` is the one before; `steps` are the strides of the operand. */
static inline int64_t pln_indices_advance(const pln_tensor *indices,
                                          uint32_t n_axes, uint32_t axis,
                                          const int64_t *steps,
                                          int64_t *position, int64_t offset) {
  for (uint32_t i = n_axes; i-- > 0;) {
    int64_t step = i == axis ? 0 : steps[i];
    offset += step;
    if (++position[i] < indices->dims[i])
      break;
    offset -= step * position[i];
    position[i] = 0;
  }
  return offset;
}

#endif
