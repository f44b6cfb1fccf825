/* lowered_functions.h: the memory scopes of PrimFuncs' buffers, read into the
 * plan of devices and written from it; for plan_devices.c. */

#ifndef PLN_TRANSFORM_DEVICE_LOWERED_FUNCTIONS_H
#define PLN_TRANSFORM_DEVICE_LOWERED_FUNCTIONS_H

#include "transform/device/device_plan.h"

/* Makes the domain of the PrimFunc `index` of the module, if it has none:
 * `type` is that of a GlobalVar which refers to it from Relay code.
 * PLN_ERR_INVALID when the tensors of one operand are in several memories. */
pln_status pln_plan_lowered(pln_device_plan *plan, uint32_t index,
                            pln_type type) PLN_CHECKED;
/* The PrimFunc with the memory scopes that its calls give its buffers; the
 * PrimFunc itself, retained, if all of them are known. */
pln_status pln_capture_scopes(pln_device_plan *plan, uint32_t index,
                              pln_graph **out) PLN_CHECKED;

#endif
