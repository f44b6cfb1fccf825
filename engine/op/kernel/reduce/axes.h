/* axes.h: which elements a reduction over axes brings together. For
 * reduce.c and arg_reduce.c. */

#ifndef PLN_OP_KERNEL_REDUCE_AXES_H
#define PLN_OP_KERNEL_REDUCE_AXES_H

#include "op/kernel/kernel.h"

/* Axes, outermost first; steps in elements. Axes that run on are one, and those
 * of one element are left out. */
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

/* `axes` tells of each axis whether it is reduced; `keep`: with extent 1. */
void pln_reduction_plan(const pln_tensor *x, const bool *axes, bool keep,
                        pln_reduction *out);
/* The next offset, odometer-wise; `at` is 0 at first. */
int64_t pln_loop_nest_advance(const pln_loop_nest *nest, int64_t *at,
                              int64_t offset);
/* Takes the innermost axis off, which is given; one of one element when there
 * is none. */
void pln_loop_nest_pop(pln_loop_nest *nest, size_t *dim, size_t *step);

#endif
