/* host.h: what the passes of lower/host share. */

#ifndef PLN_LOWER_HOST_HOST_H
#define PLN_LOWER_HOST_HOST_H

#include "lower/emit.h"
#include "lower/lower.h"

/* The function's attribute `target`, 0 without; a text of a dictionary: "kind".
 */
pln_attrs pln_target_of(const pln_graph *function);
/* The target's host, 0 without. */
pln_attrs pln_target_host(const pln_engine *engine, pln_attrs target);
/* TVM's number of the device of a target: 1 the processor, 2 CUDA. */
int32_t pln_target_device_type(const pln_engine *engine, pln_attrs target);
/* attrs with name = dict. */
pln_status pln_attrs_with_dict(pln_engine *engine, pln_attrs attrs,
                               const char *name, pln_attrs dict,
                               pln_attrs *out) PLN_CHECKED;

#endif
