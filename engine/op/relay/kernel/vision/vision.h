/* vision.h: what the kernels of Relay's detection operators share. */

#ifndef PLN_OP_RELAY_KERNEL_VISION_VISION_H
#define PLN_OP_RELAY_KERNEL_VISION_VISION_H

#include "op/kernel/composed.h"

/* A list attribute of floats, or one float that stands for it. */
typedef struct pln_floats {
  const double *of; /* may point to `one`: not to be copied */
  uint32_t count;
  double one;
} pln_floats;

void pln_read_floats(const pln_kernel_call *call, const char *name, uint32_t n,
                     const double *fallback, pln_floats *out);

/* Boxes by score, the highest first. */
typedef struct pln_scored {
  float score;
  uint32_t index;
} pln_scored;

/* Sorts by score; equal ones, and those that are no number, stay in their
 * order, which `index` must ascend by. */
void pln_sort_scored(pln_scored *list, size_t n);

/* The area that two boxes share over the area that they cover. A box is two
 * corners, in any order. */
float pln_box_overlap(const float *a, const float *b);

#endif
