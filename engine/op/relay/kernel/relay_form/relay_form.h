/* relay_form.h: kernels of Relay's form of operators that ONNX has in another
 * form. The kernels in op/kernel call them for calls with attribute relay. */

#ifndef PLN_OP_RELAY_KERNEL_RELAY_FORM_H
#define PLN_OP_RELAY_KERNEL_RELAY_FORM_H

#include "op/kernel/kernel.h"

/* signal.c */
pln_status pln_kernel_relay_dft(pln_kernel_call *call) PLN_CHECKED;
pln_status pln_kernel_relay_stft(pln_kernel_call *call) PLN_CHECKED;
/* grid.c */
pln_status pln_kernel_relay_affine_grid(pln_kernel_call *call) PLN_CHECKED;
pln_status pln_kernel_relay_grid_sample(pln_kernel_call *call) PLN_CHECKED;
/* unique.c */
pln_status pln_kernel_relay_unique(pln_kernel_call *call) PLN_CHECKED;
/* vision/non_max_suppression.c */
pln_status pln_kernel_relay_nms(pln_kernel_call *call) PLN_CHECKED;

#endif
