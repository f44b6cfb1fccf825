/* qnn_legalize.h: the sweep that qnn.CanonicalizeOps and qnn.Legalize share. */

#ifndef PLN_TRANSFORM_QUANTIZE_QNN_LEGALIZE_H
#define PLN_TRANSFORM_QUANTIZE_QNN_LEGALIZE_H

#include "transform/quantize/qnn_call.h"

/* Replaces the calls of operators of which `key` is an attribute, or else those
 * that `find` has a replacement for; it returns NULL for the others. */
pln_status pln_qnn_legalize(pln_pass_run *run, const char *key,
                            pln_qnn_replace_fn (*find)(pln_op op)) PLN_CHECKED;

#endif
