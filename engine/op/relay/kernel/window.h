/* window.h: converts Relay's window attributes to ONNX's, for the kernels of
 * convolutions and pooling. */

#ifndef PLN_OP_RELAY_KERNEL_WINDOW_H
#define PLN_OP_RELAY_KERNEL_WINDOW_H

#include "op/kernel/composed.h"

/* The largest number of spatial axes. */
enum { PLN_WINDOW_AXES = 3 };

/* Reads `n` integers of a list attribute, of which one may stand for all; false
 * if the length is not 0, 1 or n. */
bool pln_relay_ints(const pln_kernel_call *call, const char *name, uint32_t n,
                    int64_t other, int64_t *out);
/* Reads pads in ONNX's order: before all axes, then after all axes. */
bool pln_relay_pads(const pln_kernel_call *call, uint32_t n, int64_t *out);
/* Sets strides and dilations as attributes of the next step, with those pads,
 * or the call's own if NULL. */
void pln_compose_window(pln_composition *s, uint32_t n, const int64_t *pads);
/* Transposes an operand from the layout in attribute `attr` to `plain`, which
 * is also the default. */
const pln_tensor *pln_compose_to_plain_layout(pln_composition *s,
                                              const pln_tensor *x,
                                              const char *attr,
                                              const char *plain);
/* The inverse: to the layout in `attr`, else in `other`; NULL: there is
 * none. */
const pln_tensor *pln_compose_from_plain_layout(pln_composition *s,
                                                const pln_tensor *y,
                                                const char *attr,
                                                const char *other,
                                                const char *plain);

/* Convolves operands in the layouts of the call's attributes (conv.c). The
 * dtype of the sums is out_dtype, else that of x. */
const pln_tensor *pln_compose_convolution(pln_composition *s,
                                          const pln_tensor *x,
                                          const pln_tensor *w);

#endif
