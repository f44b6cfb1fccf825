/* window.h: windows in Relay's words, read for kernels that take them in
 * ONNX's: convolutions and pooling. */

#ifndef PLN_OP_RELAY_KERNEL_WINDOW_H
#define PLN_OP_RELAY_KERNEL_WINDOW_H

#include "op/kernel/composed.h"

/* Axes of space that a window walks over. */
enum { PLN_WINDOW_AXES = 3 };

/* `n` integers of a list attribute, of which one may stand for all; false when
 * there are others than none, one or n. */
bool pln_relay_ints(const pln_kernel_call *call, const char *name, uint32_t n,
                    int64_t other, int64_t *out);
/* Pads as ONNX has them: those before all axes, then those behind. */
bool pln_relay_pads(const pln_kernel_call *call, uint32_t n, int64_t *out);
/* Strides and dilations become attributes of the next step, with those pads,
 * or the call's own (NULL). */
void pln_compose_window(pln_composition *s, uint32_t n, const int64_t *pads);
/* An operand in the layout of attribute `attr` brought to `plain`, which an
 * empty one stands for. */
const pln_tensor *pln_compose_to_plain_layout(pln_composition *s,
                                              const pln_tensor *x,
                                              const char *attr,
                                              const char *plain);
/* And back: to the layout of `attr`, else of `other`; NULL: there is none. */
const pln_tensor *pln_compose_from_plain_layout(pln_composition *s,
                                                const pln_tensor *y,
                                                const char *attr,
                                                const char *other,
                                                const char *plain);

#endif
