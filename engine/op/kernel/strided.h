/* strided.h: copies between two strided views of elements. Used to transpose,
 * slice, broadcast, tile, pad and concatenate. */

#ifndef PLN_OP_KERNEL_STRIDED_H
#define PLN_OP_KERNEL_STRIDED_H

#include "op/kernel/kernel.h"

/* Twice PLN_MAX_RANK, because tile splits each axis in two. */
enum { PLN_STRIDED_RANK = 2 * PLN_MAX_RANK };

/* The extents, and the strides in elements along each axis in target and
 * source. */
typedef struct pln_strided {
  uint32_t rank;
  int64_t dims[PLN_STRIDED_RANK];
  int64_t to[PLN_STRIDED_RANK];
  int64_t from[PLN_STRIDED_RANK];
} pln_strided;

/* Copies all elements of `size` bytes (1, 2, 4, 8 or 16); stops early if a stop
 * is requested. Modifies `view`. Threads share the longer ones; not to be
 * called by a function that threads run. */
void pln_strided_copy(pln_engine *engine, void *target, const void *source,
                      size_t size, pln_strided *view);
/* Copies bytes; stops early if a stop is requested. */
void pln_copy_run(const pln_engine *engine, void *to, const void *from,
                  size_t bytes);
/* Writes an element `count` times; stops early if a stop is requested. */
void pln_fill(const pln_engine *engine, void *target, size_t count,
              const void *element, size_t size);
/* The strides of a dense tensor. */
void pln_dense_strides(uint32_t rank, const int64_t *dims, int64_t *steps);

/* A result whose elements, possibly strings, are copied from arguments. */
typedef struct pln_strided_result {
  pln_kernel_call *call;
  uint32_t index; /* of the result */
  pln_dtype dtype;
  uint32_t rank;
  const int64_t *dims;
  size_t size; /* of an element */
  size_t count;
  void *data; /* target of the elements; strings are slices of the source's text
               */
} pln_strided_result;

/* Refuses dtypes smaller than a byte and ranks above PLN_MAX_RANK. `dims` must
 * live until pln_strided_result_end, which is called exactly once. */
pln_status pln_strided_result_begin(pln_kernel_call *call, uint32_t index,
                                    pln_dtype dtype, uint32_t rank,
                                    const int64_t *dims,
                                    pln_strided_result *out) PLN_CHECKED;
pln_status pln_strided_result_end(pln_strided_result *moved,
                                  pln_status status) PLN_CHECKED;
/* Begins, copies from `source` by `view` (its target strides are filled in),
 * and ends. */
pln_status pln_strided_result_copy(pln_kernel_call *call, uint32_t index,
                                   const pln_tensor *tensor, const void *source,
                                   uint32_t rank, const int64_t *dims,
                                   pln_strided *view) PLN_CHECKED;

#endif
