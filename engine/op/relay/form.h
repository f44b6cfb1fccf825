/* form.h: type inference of Relay's form of operators that ONNX has too,
 * where the two forms have nothing in common. For the functions that ops.def
 * names. */

#ifndef PLN_OP_RELAY_FORM_H
#define PLN_OP_RELAY_FORM_H

#include "op/infer/infer.h"

pln_status pln_infer_relay_gather_nd(pln_infer *call) PLN_CHECKED;
pln_status pln_infer_relay_grid_sample(pln_infer *call) PLN_CHECKED;
pln_status pln_infer_relay_affine_grid(pln_infer *call) PLN_CHECKED;

#endif
