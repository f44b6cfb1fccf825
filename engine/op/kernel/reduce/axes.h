/* axes.h: the loop nests of a reduction. For reduce.c and arg_reduce.c. */

#ifndef PLN_OP_KERNEL_REDUCE_AXES_H
#define PLN_OP_KERNEL_REDUCE_AXES_H

#include "op/kernel/kernel.h"

/* Axes, outermost first, with strides in elements. Contiguous axes are merged,
 * and axes of extent 1 left out. */
typedef struct pln_loop_nest {
  uint32_t rank;
  size_t count; /* the product of dims */
  int64_t dims[PLN_MAX_RANK];
  int64_t steps[PLN_MAX_RANK];
} pln_loop_nest;

typedef struct pln_reduction {
  pln_loop_nest kept, reduced;
  uint32_t rank; /* of the result */
  int64_t dims[PLN_MAX_RANK];
} pln_reduction;

/* axes[i] tells whether axis i is reduced; `keep`: it stays with extent 1. */
void pln_reduction_plan(const pln_tensor *x, const bool *axes, bool keep,
                        pln_reduction *out);
/* Advances to the next offset, like an odometer; `at` is initially 0. */
int64_t pln_loop_nest_advance(const pln_loop_nest *nest, int64_t *at,
                              int64_t offset);
/* Sets `at` to position i of a nest without extent 0 and returns its offset. */
int64_t pln_loop_nest_seek(const pln_loop_nest *nest, size_t i, int64_t *at);
/* Removes the innermost axis and returns it; extent 1 if there is none. */
void pln_loop_nest_pop(pln_loop_nest *nest, size_t *dim, size_t *step);

#endif
