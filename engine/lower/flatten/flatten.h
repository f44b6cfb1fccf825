/* flatten.h: the steps of tir.StorageFlatten, each of which is a pass too.
 *
 * Each takes a PrimFunc and gives the new one; the function itself, retained,
 * if nothing changed, or if it was not made of tensor expressions (attribute
 * from_legacy_te_schedule). */

#ifndef PLN_LOWER_FLATTEN_FLATTEN_H
#define PLN_LOWER_FLATTEN_FLATTEN_H

#include "lower/flatten/flattened_buffer.h"
#include "lower/lower.h"

pln_status pln_texture_flatten(const pln_graph *function,
                               pln_graph **out) PLN_CHECKED;
pln_status pln_buffer_shape_legalize(const pln_graph *function,
                                     pln_graph **out) PLN_CHECKED;
pln_status pln_buffer_stride_legalize(const pln_graph *function,
                                      pln_graph **out) PLN_CHECKED;
pln_status pln_thread_scope_propagate(const pln_graph *function,
                                      pln_graph **out) PLN_CHECKED;
pln_status pln_buffer_bind_unwrapper(const pln_graph *function,
                                     pln_graph **out) PLN_CHECKED;
pln_status pln_apply_layout_transforms(const pln_graph *function,
                                       pln_graph **out) PLN_CHECKED;
/* With bounds, stores stand in attributes buffer_bound. */
pln_status pln_storage_flattener(const pln_graph *function, bool bounds,
                                 pln_graph **out) PLN_CHECKED;
/* tir.FlattenBuffer. */
pln_status pln_flatten_blocks(const pln_graph *function, bool bounds,
                              pln_graph **out) PLN_CHECKED;
pln_status pln_assert_simplifier(const pln_graph *function,
                                 pln_graph **out) PLN_CHECKED;

/* The data pointers of the Buffers of parameters, by identity; and whether that
 * of `buffer` is one of them. */
pln_status pln_external_buffers(const pln_graph *graph,
                                pln_idmap **out) PLN_CHECKED;
bool pln_is_external_buffer(const pln_idmap *external, const pln_graph *graph,
                            pln_ref buffer);
/* The key of an AttrStmt; empty for other nodes. */
pln_slice pln_attr_key(const pln_graph *graph, pln_ref stmt);

#endif
