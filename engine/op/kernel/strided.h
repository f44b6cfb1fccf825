/* strided.h: copying between two views of elements that lie at regular steps.
 * What transposes, slices, broadcasts, tiles, pads and joins. */

#ifndef PLN_OP_KERNEL_STRIDED_H
#define PLN_OP_KERNEL_STRIDED_H

#include "op/kernel/kernel.h"

/* Twice PLN_MAX_RANK: a tile is a view of two axes for each. */
enum { PLN_STRIDED_RANK = 2 * PLN_MAX_RANK };

/* The extents, and the steps in elements from one element to the next along
 * each axis, in the target and in the source. */
typedef struct pln_strided {
  uint32_t rank;
  int64_t dims[PLN_STRIDED_RANK];
  int64_t to[PLN_STRIDED_RANK];
  int64_t from[PLN_STRIDED_RANK];
} pln_strided;

/* Copies all elements of `size` bytes (1, 2, 4, 8 or 16), unless the engine is
 * asked to stop. `view` is used up. */
void pln_strided_copy(const pln_engine *engine, void *target,
                      const void *source, size_t size, pln_strided *view);
/* `count` times the same element, unless the engine is asked to stop. */
void pln_fill(const pln_engine *engine, void *target, size_t count,
              const void *element, size_t size);
/* The steps of a dense tensor. */
void pln_dense_strides(uint32_t rank, const int64_t *dims, int64_t *steps);

/* A result whose elements are moved from arguments, strings too. */
typedef struct pln_strided_result {
  pln_kernel_call *call;
  uint32_t index; /* of the result */
  pln_dtype dtype;
  uint32_t rank;
  const int64_t *dims;
  size_t size; /* of an element */
  size_t count;
  void *data; /* where elements go; strings as slices of the source's text */
} pln_strided_result;

/* Refuses dtypes that are packed below a byte and shapes above PLN_MAX_RANK.
 * `dims` must live until pln_strided_result_end, which is called exactly once.
 */
pln_status pln_strided_result_begin(pln_kernel_call *call, uint32_t index,
                                    pln_dtype dtype, uint32_t rank,
                                    const int64_t *dims,
                                    pln_strided_result *out) PLN_CHECKED;
pln_status pln_strided_result_end(pln_strided_result *moved,
                                  pln_status status) PLN_CHECKED;
/* Begin, copy from `source` by `view` (its `to` steps are filled in), end. */
pln_status pln_strided_result_copy(pln_kernel_call *call, uint32_t index,
                                   const pln_tensor *tensor, const void *source,
                                   uint32_t rank, const int64_t *dims,
                                   pln_strided *view) PLN_CHECKED;

#endif
