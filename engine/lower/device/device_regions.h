/* device_regions.h: the parts of a function that run on another device: an
 * AttrStmt with the key "target", whose `node` is the target. */

#ifndef PLN_LOWER_DEVICE_DEVICE_REGIONS_H
#define PLN_LOWER_DEVICE_DEVICE_REGIONS_H

#include "lower/host/host.h"

bool pln_has_attr_key(const pln_graph *graph, pln_ref stmt, const char *key);
/* The target of an AttrStmt that marks such a part, 0: it marks none. */
pln_attrs pln_region_target(const pln_graph *graph, pln_ref stmt);

/* By node: whether it is an AttrStmt for which `marks` holds, inside of no
 * other one. `out` has a byte for each node. */
pln_status pln_outermost_marks(const pln_graph *graph,
                               bool (*marks)(const pln_graph *, pln_ref),
                               bool *out) PLN_CHECKED;

#endif
