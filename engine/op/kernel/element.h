/* element.h: access to single elements of small float tensors: scales, means,
 * boxes. */

#ifndef PLN_OP_KERNEL_ELEMENT_H
#define PLN_OP_KERNEL_ELEMENT_H

#include "op/kernel/kernel.h"

static inline bool pln_is_float32_or_64(const pln_tensor *t) {
  return t->dtype == PLN_FLOAT32 || t->dtype == PLN_FLOAT64;
}
/* Reads, and writes, element `i` of a float32 or float64 tensor. */
static inline double pln_element_at(const pln_tensor *t, size_t i) {
  return t->dtype == PLN_FLOAT32 ? (double)((const float *)t->data)[i]
                                 : ((const double *)t->data)[i];
}
static inline void pln_element_set(pln_tensor *t, size_t i, double value) {
  void *data = pln_tensor_writable(t);
  if (t->dtype == PLN_FLOAT32)
    ((float *)data)[i] = (float)value;
  else
    ((double *)data)[i] = value;
}

#endif
