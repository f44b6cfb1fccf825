/* kernel_function.h: a function of its own of a part that runs on a device. */

#ifndef PLN_LOWER_DEVICE_KERNEL_FUNCTION_H
#define PLN_LOWER_DEVICE_KERNEL_FUNCTION_H

#include "lower/device/device_regions.h"

typedef struct pln_kernel {
  pln_graph *function;
  uint32_t n_params;
  uint32_t *params; /* the variables (Var's `data`) that they stand for */
  bool returns;     /* 0, or the number of an error */
} pln_kernel;

/* The function of the body of an AttrStmt of a sealed graph
 * (pln_region_target). Its parameters are the variables that the body does not
 * bind: pointers first, then by name. */
pln_status pln_kernel_make(const pln_graph *graph, pln_ref region,
                           pln_kernel *out) PLN_CHECKED;
void pln_kernel_end(pln_engine *engine, pln_kernel *kernel);

#endif
